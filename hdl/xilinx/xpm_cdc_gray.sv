// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_cdc_gray - a stand-in for Xilinx' synchroniser of a counter.
//
// In hardware the counter may change by 1 alone between two edges of src_clk. Here a jump arrives as it is, so it is
// told, if SIM_ASSERT_CHK is set.
module xpm_cdc_gray #(
    parameter int DEST_SYNC_FF          = 4,
    parameter int INIT_SYNC_FF          = 0,
    parameter int REG_OUTPUT            = 0,
    parameter int SIM_ASSERT_CHK        = 0,
    parameter int SIM_LOSSLESS_GRAY_CHK = 0,
    parameter int WIDTH                 = 2
) (
    input  logic             src_clk,
    input  logic [WIDTH-1:0] src_in_bin,
    input  logic             dest_clk,
    output logic [WIDTH-1:0] dest_out_bin
);
    if (DEST_SYNC_FF < 2) $error("DEST_SYNC_FF: must be 2 or more");

    logic [WIDTH-1:0] sent;
    nonic_sync #(.STAGES(1), .WIDTH(WIDTH)) from (.clk(src_clk), .d(src_in_bin), .q(sent));
    nonic_sync #(.STAGES(DEST_SYNC_FF + REG_OUTPUT), .WIDTH(WIDTH)) to (.clk(dest_clk), .d(sent), .q(dest_out_bin));

    bit told;
    always_ff @(posedge src_clk) begin
        if (SIM_ASSERT_CHK != 0 && !told && src_in_bin != sent && src_in_bin != sent + 1'b1 &&
            src_in_bin != sent - 1'b1) begin
            $display("%m: src_in_bin jumps from %0d to %0d", sent, src_in_bin);
            told <= 1;
        end
    end
endmodule
