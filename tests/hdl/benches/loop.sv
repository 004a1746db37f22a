// SPDX-License-Identifier: BSD-2-Clause
//
// loop - sends each frame back as it came, through a FIFO of packets, at any width.
module loop #(
    parameter int WIDTH = 64
) (
    input logic clk,
    input logic rst
);
    logic [WIDTH-1:0]   rx_data, tx_data;
    logic [WIDTH/8-1:0] rx_keep, tx_keep;
    logic               rx_valid, rx_ready, rx_last, rx_user, tx_valid, tx_ready, tx_last, tx_user;

    nonic_axis #(.DATA_WIDTH(WIDTH)) network (
        .clk, .rst,
        .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid), .s_axis_tready(tx_ready),
        .s_axis_tlast(tx_last), .s_axis_tuser(tx_user),
        .m_axis_tdata(rx_data), .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid), .m_axis_tready(rx_ready),
        .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
        .pause(), .tx_packet(), .rx_packet());

    xpm_fifo_axis #(.TDATA_WIDTH(WIDTH), .FIFO_DEPTH(1024), .PACKET_FIFO("true")) fifo (
        .s_aresetn(!rst), .s_aclk(clk), .m_aclk(clk),
        .s_axis_tvalid(rx_valid), .s_axis_tready(rx_ready), .s_axis_tdata(rx_data), .s_axis_tstrb(rx_keep),
        .s_axis_tkeep(rx_keep), .s_axis_tlast(rx_last), .s_axis_tid(1'b0), .s_axis_tdest(1'b0), .s_axis_tuser(rx_user),
        .m_axis_tvalid(tx_valid), .m_axis_tready(tx_ready), .m_axis_tdata(tx_data), .m_axis_tstrb(),
        .m_axis_tkeep(tx_keep), .m_axis_tlast(tx_last), .m_axis_tid(), .m_axis_tdest(), .m_axis_tuser(tx_user),
        .prog_full_axis(), .wr_data_count_axis(), .almost_full_axis(), .prog_empty_axis(), .rd_data_count_axis(),
        .almost_empty_axis(), .injectsbiterr_axis(1'b0), .injectdbiterr_axis(1'b0), .sbiterr_axis(), .dbiterr_axis());
endmodule
