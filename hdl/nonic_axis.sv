// SPDX-License-Identifier: BSD-2-Clause
//
// nonic_axis - nonic at the end of an AXI4-Stream of Ethernet frames.
//
// A frame begins with the destination's address and ends before the FCS. Byte k of a beat is
// tdata[8k+7:8k]. The rules of the stream are those of hdl/port.h, which counts what breaks them.
// All outputs are registers of clk.
module nonic_axis #(
    parameter int DATA_WIDTH = 64,  // 64, 128, 256, 512 or 1024
    parameter int PORT       = 0    // the number of this port in the design, from 0 on
) (
    input  logic                    clk,
    input  logic                    rst,            // synchronous, active high
    // Frames of the design.
    input  logic [DATA_WIDTH-1:0]   s_axis_tdata,
    input  logic [DATA_WIDTH/8-1:0] s_axis_tkeep,
    input  logic                    s_axis_tvalid,
    output logic                    s_axis_tready,
    input  logic                    s_axis_tlast,
    input  logic                    s_axis_tuser,   // with tlast: the frame is bad
    // Frames to the design.
    output logic [DATA_WIDTH-1:0]   m_axis_tdata,
    output logic [DATA_WIDTH/8-1:0] m_axis_tkeep,
    output logic                    m_axis_tvalid,
    input  logic                    m_axis_tready,
    output logic                    m_axis_tlast,
    output logic                    m_axis_tuser,
    output logic [8:0]              pause,          // 8: the link, 7 to 0: the priorities
    // Numbers of the frames that pass, as in the captures, from 1 on; 0: none.
    output logic [31:0]             tx_packet,
    output logic [31:0]             rx_packet
);
    bit                    s_ready, m_valid, m_last, m_user;
    bit [DATA_WIDTH-1:0]   m_data;
    bit [DATA_WIDTH/8-1:0] m_keep;
    bit [8:0]              pauses;
    bit [31:0]             tx_number, rx_number;

`define NONIC_DRIVE                                                                                \
    s_axis_tready <= s_ready;                                                                      \
    m_axis_tvalid <= m_valid;                                                                      \
    m_axis_tdata  <= m_data;                                                                       \
    m_axis_tkeep  <= m_keep;                                                                       \
    m_axis_tlast  <= m_last;                                                                       \
    m_axis_tuser  <= m_user;                                                                       \
    pause         <= pauses;                                                                       \
    tx_packet     <= tx_number;                                                                    \
    rx_packet     <= rx_number;

`ifdef __ICARUS__
    // It has no DPI: hdl/vpi.c.
    always @(posedge clk) begin
        $nonic_edge(PORT, DATA_WIDTH, rst, s_axis_tvalid, s_axis_tdata, s_axis_tkeep, s_axis_tlast,
                    s_axis_tuser, m_axis_tready, s_ready, m_valid, m_data, m_keep, m_last, m_user,
                    pauses, tx_number, rx_number);
        `NONIC_DRIVE
    end
`else
    import "DPI-C" context function chandle nonic_attach(input int port, input int width);

    chandle handle;
    initial handle = nonic_attach(PORT, DATA_WIDTH);
    import "DPI-C" function void nonic_detach(input chandle handle);
    final nonic_detach(handle);

    // A name of C has one signature, so there is a function for each width.
`define NONIC_EDGE(W)                                                                              \
    import "DPI-C" context function void nonic_edge_``W(                                           \
        input chandle handle, input bit rst, input bit s_valid, input bit [W-1:0] s_data,          \
        input bit [W/8-1:0] s_keep, input bit s_last, input bit s_user, input bit m_ready,         \
        output bit s_ready, output bit m_valid, output bit [W-1:0] m_data,                         \
        output bit [W/8-1:0] m_keep, output bit m_last, output bit m_user,                         \
        output bit [8:0] pause, output bit [31:0] tx_packet, output bit [31:0] rx_packet);
    `NONIC_EDGE(64)
    `NONIC_EDGE(128)
    `NONIC_EDGE(256)
    `NONIC_EDGE(512)
    `NONIC_EDGE(1024)

`define NONIC_AT_EDGE(W)                                                                           \
    if (DATA_WIDTH == W) begin : width_``W                                                         \
        always @(posedge clk) begin                                                                \
            nonic_edge_``W(handle, rst, s_axis_tvalid, s_axis_tdata, s_axis_tkeep, s_axis_tlast,   \
                           s_axis_tuser, m_axis_tready, s_ready, m_valid, m_data, m_keep, m_last,  \
                           m_user, pauses, tx_number, rx_number);                                  \
            `NONIC_DRIVE                                                                           \
        end                                                                                        \
    end
    generate
        `NONIC_AT_EDGE(64)
        `NONIC_AT_EDGE(128)
        `NONIC_AT_EDGE(256)
        `NONIC_AT_EDGE(512)
        `NONIC_AT_EDGE(1024)
    endgenerate
`endif
endmodule
