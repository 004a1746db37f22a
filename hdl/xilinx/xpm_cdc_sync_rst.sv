// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_cdc_sync_rst - a stand-in for Xilinx' synchroniser of a reset that rises and falls with a clock.
module xpm_cdc_sync_rst #(
    parameter int DEST_SYNC_FF   = 4,
    parameter int INIT           = 1,
    parameter int INIT_SYNC_FF   = 0,
    parameter int SIM_ASSERT_CHK = 0
) (
    input  logic src_rst,
    input  logic dest_clk,
    output logic dest_rst
);
    if (DEST_SYNC_FF < 2) $error("DEST_SYNC_FF: must be 2 or more");

    nonic_sync #(.STAGES(DEST_SYNC_FF), .INIT(INIT[0])) bits (.clk(dest_clk), .d(src_rst), .q(dest_rst));
endmodule
