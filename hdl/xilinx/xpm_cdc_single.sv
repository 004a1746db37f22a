// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_cdc_single - a stand-in for Xilinx' synchroniser of one bit.
module xpm_cdc_single #(
    parameter int DEST_SYNC_FF   = 4,
    parameter int INIT_SYNC_FF   = 0,
    parameter int SIM_ASSERT_CHK = 0,
    parameter int SRC_INPUT_REG  = 1
) (
    input  logic src_clk,
    input  logic src_in,
    input  logic dest_clk,
    output logic dest_out
);
    xpm_cdc_array_single #(.DEST_SYNC_FF(DEST_SYNC_FF), .SRC_INPUT_REG(SRC_INPUT_REG), .WIDTH(1)) bits (
        .src_clk, .src_in, .dest_clk, .dest_out);
endmodule
