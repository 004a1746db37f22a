// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_fifo_axis - a stand-in for Xilinx' FIFO of an AXI4-Stream.
//
// A FIFO of packets offers the first beat of one when it has the last one, too, or when it is full without it: then the
// whole packet passes as it comes.
module xpm_fifo_axis #(
    parameter int    CASCADE_HEIGHT      = 0,
    parameter int    CDC_SYNC_STAGES     = 2,
    parameter string CLOCKING_MODE       = "common_clock",
    parameter string ECC_MODE            = "no_ecc",
    parameter string EN_SIM_ASSERT_ERR   = "warning",
    parameter int    FIFO_DEPTH          = 2048,
    parameter string FIFO_MEMORY_TYPE    = "auto",
    parameter string PACKET_FIFO         = "false",
    parameter int    PROG_EMPTY_THRESH   = 10,
    parameter int    PROG_FULL_THRESH    = 10,
    parameter int    RD_DATA_COUNT_WIDTH = 1,
    parameter int    RELATED_CLOCKS      = 0,
    parameter int    SIM_ASSERT_CHK      = 0,
    parameter int    TDATA_WIDTH         = 32,
    parameter int    TDEST_WIDTH         = 1,
    parameter int    TID_WIDTH           = 1,
    parameter int    TUSER_WIDTH         = 1,
    parameter string USE_ADV_FEATURES    = "1000",
    parameter int    WR_DATA_COUNT_WIDTH = 1
) (
    input  logic                           s_aresetn,
    input  logic                           s_aclk,
    input  logic                           m_aclk,
    input  logic                           s_axis_tvalid,
    output logic                           s_axis_tready,
    input  logic [TDATA_WIDTH-1:0]         s_axis_tdata,
    input  logic [TDATA_WIDTH/8-1:0]       s_axis_tstrb,
    input  logic [TDATA_WIDTH/8-1:0]       s_axis_tkeep,
    input  logic                           s_axis_tlast,
    input  logic [TID_WIDTH-1:0]           s_axis_tid,
    input  logic [TDEST_WIDTH-1:0]         s_axis_tdest,
    input  logic [TUSER_WIDTH-1:0]         s_axis_tuser,
    output logic                           m_axis_tvalid,
    input  logic                           m_axis_tready,
    output logic [TDATA_WIDTH-1:0]         m_axis_tdata,
    output logic [TDATA_WIDTH/8-1:0]       m_axis_tstrb,
    output logic [TDATA_WIDTH/8-1:0]       m_axis_tkeep,
    output logic                           m_axis_tlast,
    output logic [TID_WIDTH-1:0]           m_axis_tid,
    output logic [TDEST_WIDTH-1:0]         m_axis_tdest,
    output logic [TUSER_WIDTH-1:0]         m_axis_tuser,
    output logic                           prog_full_axis,
    output logic [WR_DATA_COUNT_WIDTH-1:0] wr_data_count_axis,
    output logic                           almost_full_axis,
    output logic                           prog_empty_axis,
    output logic [RD_DATA_COUNT_WIDTH-1:0] rd_data_count_axis,
    output logic                           almost_empty_axis,
    input  logic                           injectsbiterr_axis,
    input  logic                           injectdbiterr_axis,
    output logic                           sbiterr_axis,
    output logic                           dbiterr_axis
);
    localparam bit COMMON = CLOCKING_MODE == "common_clock";
    localparam bit PACKET = PACKET_FIFO == "true";
    localparam int WIDTH  = TDATA_WIDTH + 2 * (TDATA_WIDTH / 8) + 1 + TID_WIDTH + TDEST_WIDTH + TUSER_WIDTH;

    if (ECC_MODE != "no_ecc") $error("ECC_MODE: only no_ecc is supported");
    if (TDATA_WIDTH % 8 != 0) $error("TDATA_WIDTH: is no multiple of 8");
    if (!PACKET && PACKET_FIFO != "false") $error("PACKET_FIFO: is neither true nor false");
    if (PACKET && !COMMON) $error("PACKET_FIFO: true is supported with common_clock alone");
    if (!COMMON && CLOCKING_MODE != "independent_clock") begin : clocks
        $error("CLOCKING_MODE: is neither common_clock nor independent_clock");
    end
    if (!COMMON && CDC_SYNC_STAGES < 2) $error("CDC_SYNC_STAGES: must be 2 or more");

    logic full, empty, busy, held;
    wire  m_clk = COMMON ? s_aclk : m_aclk;
    wire  write = s_axis_tvalid && s_axis_tready;
    wire  read  = m_axis_tvalid && m_axis_tready;
    assign s_axis_tready = !full && !busy;
    assign m_axis_tvalid = !empty && !held;
    assign {sbiterr_axis, dbiterr_axis} = '0;

    nonic_fifo #(
        .WRITE_WIDTH(WIDTH), .READ_WIDTH(WIDTH), .DEPTH(FIFO_DEPTH), .FALL_THROUGH(1),
        .SYNC(COMMON ? 0 : CDC_SYNC_STAGES), .FULL_RESET(1),
        .PROG_FULL(PROG_FULL_THRESH), .PROG_EMPTY(PROG_EMPTY_THRESH), .FEATURES(USE_ADV_FEATURES),
        .WRITE_COUNT(WR_DATA_COUNT_WIDTH), .READ_COUNT(RD_DATA_COUNT_WIDTH)
    ) fifo (
        .wr_clk(s_aclk), .rst(!s_aresetn), .wr_en(write),
        .din({s_axis_tdata, s_axis_tstrb, s_axis_tkeep, s_axis_tlast, s_axis_tid, s_axis_tdest, s_axis_tuser}),
        .full, .almost_full(almost_full_axis), .prog_full(prog_full_axis), .overflow(), .wr_ack(), .wr_rst_busy(busy),
        .wr_data_count(wr_data_count_axis),
        .rd_clk(m_clk), .rd_en(read),
        .dout({m_axis_tdata, m_axis_tstrb, m_axis_tkeep, m_axis_tlast, m_axis_tid, m_axis_tdest, m_axis_tuser}),
        .empty, .almost_empty(almost_empty_axis), .prog_empty(prog_empty_axis), .underflow(), .data_valid(),
        .rd_rst_busy(), .rd_data_count(rd_data_count_axis));

    if (PACKET) begin : packets
        logic [31:0] whole;          // packets whose last beat is in the FIFO
        logic        passing;        // one that was too long has begun to leave
        assign held = whole == 0 && !passing;
        initial {whole, passing} = '0;
        always_ff @(posedge s_aclk) begin
            whole <= whole + 32'(write && s_axis_tlast) - 32'(read && m_axis_tlast);
            if (read && m_axis_tlast)    passing <= 0;
            else if (full && whole == 0) passing <= 1;
            if (busy) {whole, passing} <= '0;
        end
    end else begin : beats
        assign held = 0;
    end
endmodule
