// SPDX-License-Identifier: BSD-2-Clause
//
// mirror - a design of VHDL, reflect.vhd, in the module that it has to be in: the top is Verilog.
module mirror (
    input logic clk,
    input logic rst
);
    logic [63:0] rx_data, tx_data;
    logic [7:0]  rx_keep, tx_keep;
    logic        rx_valid, rx_ready, rx_last, rx_user, tx_valid, tx_ready, tx_last, tx_user;
    logic [8:0]  pause;
    logic [31:0] tx_packet, rx_packet;

    nonic_axis network (
        .clk, .rst,
        .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid),
        .s_axis_tready(tx_ready), .s_axis_tlast(tx_last), .s_axis_tuser(tx_user && tx_last),
        .m_axis_tdata(rx_data), .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid),
        .m_axis_tready(rx_ready), .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
        .pause, .tx_packet, .rx_packet);

    reflect core (
        .clk, .rst,
        .s_axis_tdata(rx_data), .s_axis_tkeep(rx_keep), .s_axis_tvalid(rx_valid),
        .s_axis_tready(rx_ready), .s_axis_tlast(rx_last), .s_axis_tuser(rx_user),
        .m_axis_tdata(tx_data), .m_axis_tkeep(tx_keep), .m_axis_tvalid(tx_valid),
        .m_axis_tready(tx_ready), .m_axis_tlast(tx_last), .m_axis_tuser(tx_user));
endmodule
