// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_cdc_handshake - a stand-in for Xilinx' synchroniser of words: each is sent, taken and acknowledged.
module xpm_cdc_handshake #(
    parameter int DEST_EXT_HSK   = 1,
    parameter int DEST_SYNC_FF   = 4,
    parameter int INIT_SYNC_FF   = 0,
    parameter int SIM_ASSERT_CHK = 0,
    parameter int SRC_SYNC_FF    = 4,
    parameter int WIDTH          = 1
) (
    input  logic             src_clk,
    input  logic [WIDTH-1:0] src_in,
    input  logic             src_send,
    output logic             src_rcv,
    input  logic             dest_clk,
    output logic [WIDTH-1:0] dest_out,
    output logic             dest_req,
    input  logic             dest_ack
);
    if (DEST_SYNC_FF < 2) $error("DEST_SYNC_FF: must be 2 or more");
    if (SRC_SYNC_FF < 2) $error("SRC_SYNC_FF: must be 2 or more");

    logic [WIDTH-1:0] word;
    logic             send, arrived, seen;

    // The word is the one of the clock in which src_send rises.
    initial {word, send} = '0;
    always_ff @(posedge src_clk) begin
        send <= src_send;
        if (!send) word <= src_in;
    end
    nonic_sync #(.STAGES(DEST_SYNC_FF)) there (.clk(dest_clk), .d(send), .q(arrived));
    initial {seen, dest_req, dest_out} = '0;
    always_ff @(posedge dest_clk) begin
        seen     <= arrived;
        dest_req <= arrived && (DEST_EXT_HSK != 0 || !seen);     // a level; or one clock
        if (arrived && !seen) dest_out <= word;
    end
    nonic_sync #(.STAGES(SRC_SYNC_FF)) back (
        .clk(src_clk), .d(DEST_EXT_HSK != 0 ? dest_ack : seen), .q(src_rcv));
endmodule
