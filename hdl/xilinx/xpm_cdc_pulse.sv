// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_cdc_pulse - a stand-in for Xilinx' synchroniser of pulses: each rising edge becomes one clock of dest_clk.
module xpm_cdc_pulse #(
    parameter int DEST_SYNC_FF   = 4,
    parameter int INIT_SYNC_FF   = 0,
    parameter int REG_OUTPUT     = 0,
    parameter int RST_USED       = 1,
    parameter int SIM_ASSERT_CHK = 0
) (
    input  logic src_clk,
    input  logic src_rst,
    input  logic src_pulse,
    input  logic dest_clk,
    input  logic dest_rst,
    output logic dest_pulse
);
    if (DEST_SYNC_FF < 2) $error("DEST_SYNC_FF: must be 2 or more");

    logic last, level, arrived, seen;

    initial {last, level} = '0;
    always_ff @(posedge src_clk) begin
        last <= src_pulse;
        level  <= level ^ (src_pulse && !last);
        if (RST_USED != 0 && src_rst) {last, level} <= '0;
    end
    nonic_sync #(.STAGES(DEST_SYNC_FF)) to (.clk(dest_clk), .d(level), .q(arrived));
    initial seen = 0;
    always_ff @(posedge dest_clk) seen <= arrived;
    nonic_sync #(.STAGES(REG_OUTPUT)) out (
        .clk(dest_clk), .d(arrived != seen && !(RST_USED != 0 && dest_rst)), .q(dest_pulse));
endmodule
