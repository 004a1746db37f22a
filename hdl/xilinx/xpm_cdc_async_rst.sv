// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_cdc_async_rst - a stand-in for Xilinx' synchroniser of a reset that begins at once, and ends with a clock.
module xpm_cdc_async_rst #(
    parameter int DEST_SYNC_FF    = 4,
    parameter int INIT_SYNC_FF    = 0,
    parameter int RST_ACTIVE_HIGH = 0
) (
    input  logic src_arst,
    input  logic dest_clk,
    output logic dest_arst
);
    if (DEST_SYNC_FF < 2) $error("DEST_SYNC_FF: must be 2 or more");

    wire                   reset = RST_ACTIVE_HIGH != 0 ? src_arst : !src_arst;
    logic [DEST_SYNC_FF:1] row;
    initial row = '0;
    always_ff @(posedge dest_clk or posedge reset) begin
        if (reset) row <= '1;
        else       row <= {row[DEST_SYNC_FF-1:1], 1'b0};
    end
    assign dest_arst = RST_ACTIVE_HIGH != 0 ? row[DEST_SYNC_FF] : !row[DEST_SYNC_FF];
endmodule
