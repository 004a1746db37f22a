// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_fifo_async - a stand-in for Xilinx' FIFO between two clocks.
module xpm_fifo_async #(
    parameter int    CASCADE_HEIGHT      = 0,
    parameter int    CDC_SYNC_STAGES     = 2,
    parameter string DOUT_RESET_VALUE    = "0",
    parameter string ECC_MODE            = "no_ecc",
    parameter string EN_SIM_ASSERT_ERR   = "warning",
    parameter string FIFO_MEMORY_TYPE    = "auto",
    parameter int    FIFO_READ_LATENCY   = 1,
    parameter int    FIFO_WRITE_DEPTH    = 2048,
    parameter int    FULL_RESET_VALUE    = 0,
    parameter int    PROG_EMPTY_THRESH   = 10,
    parameter int    PROG_FULL_THRESH    = 10,
    parameter int    RD_DATA_COUNT_WIDTH = 1,
    parameter int    READ_DATA_WIDTH     = 32,
    parameter string READ_MODE           = "std",
    parameter int    RELATED_CLOCKS      = 0,
    parameter int    SIM_ASSERT_CHK      = 0,
    parameter string USE_ADV_FEATURES    = "0707",
    parameter int    WAKEUP_TIME         = 0,
    parameter int    WRITE_DATA_WIDTH    = 32,
    parameter int    WR_DATA_COUNT_WIDTH = 1
) (
    input  logic                           sleep,
    input  logic                           rst,
    input  logic                           wr_clk,
    input  logic                           wr_en,
    input  logic [WRITE_DATA_WIDTH-1:0]    din,
    output logic                           full,
    output logic                           prog_full,
    output logic [WR_DATA_COUNT_WIDTH-1:0] wr_data_count,
    output logic                           overflow,
    output logic                           wr_rst_busy,
    output logic                           almost_full,
    output logic                           wr_ack,
    input  logic                           rd_clk,
    input  logic                           rd_en,
    output logic [READ_DATA_WIDTH-1:0]     dout,
    output logic                           empty,
    output logic                           prog_empty,
    output logic [RD_DATA_COUNT_WIDTH-1:0] rd_data_count,
    output logic                           underflow,
    output logic                           rd_rst_busy,
    output logic                           almost_empty,
    output logic                           data_valid,
    input  logic                           injectsbiterr,
    input  logic                           injectdbiterr,
    output logic                           sbiterr,
    output logic                           dbiterr
);
    if (ECC_MODE != "no_ecc") $error("ECC_MODE: only no_ecc is supported");
    if (DOUT_RESET_VALUE != "0") $error("DOUT_RESET_VALUE: only 0 is supported");
    if (WAKEUP_TIME != 0) $error("WAKEUP_TIME: only 0 is supported");
    if (CDC_SYNC_STAGES < 2) $error("CDC_SYNC_STAGES: must be 2 or more");
    if (READ_MODE != "std" && READ_MODE != "fwft") $error("READ_MODE: is neither std nor fwft");

    assign {sbiterr, dbiterr} = '0;
    nonic_fifo #(
        .WRITE_WIDTH(WRITE_DATA_WIDTH), .READ_WIDTH(READ_DATA_WIDTH), .DEPTH(FIFO_WRITE_DEPTH),
        .FALL_THROUGH(READ_MODE == "fwft"), .LATENCY(FIFO_READ_LATENCY), .SYNC(CDC_SYNC_STAGES),
        .FULL_RESET(FULL_RESET_VALUE[0]),
        .PROG_FULL(PROG_FULL_THRESH), .PROG_EMPTY(PROG_EMPTY_THRESH), .FEATURES(USE_ADV_FEATURES),
        .WRITE_COUNT(WR_DATA_COUNT_WIDTH), .READ_COUNT(RD_DATA_COUNT_WIDTH)
    ) fifo (
        .wr_clk, .rst, .wr_en, .din, .full, .almost_full, .prog_full, .overflow, .wr_ack, .wr_rst_busy, .wr_data_count,
        .rd_clk, .rd_en, .dout, .empty, .almost_empty, .prog_empty, .underflow, .data_valid, .rd_rst_busy,
        .rd_data_count);
endmodule
