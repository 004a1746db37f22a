// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_cdc_array_single - a stand-in for Xilinx' synchroniser of bits that have nothing to do with one another.
module xpm_cdc_array_single #(
    parameter int DEST_SYNC_FF   = 4,
    parameter int INIT_SYNC_FF   = 0,
    parameter int SIM_ASSERT_CHK = 0,
    parameter int SRC_INPUT_REG  = 1,
    parameter int WIDTH          = 2
) (
    input  logic             src_clk,
    input  logic [WIDTH-1:0] src_in,
    input  logic             dest_clk,
    output logic [WIDTH-1:0] dest_out
);
    if (DEST_SYNC_FF < 2) $error("DEST_SYNC_FF: must be 2 or more");

    logic [WIDTH-1:0] sent;
    nonic_sync #(.STAGES(SRC_INPUT_REG), .WIDTH(WIDTH)) from (.clk(src_clk), .d(src_in), .q(sent));
    nonic_sync #(.STAGES(DEST_SYNC_FF), .WIDTH(WIDTH)) to (.clk(dest_clk), .d(sent), .q(dest_out));
endmodule
