// SPDX-License-Identifier: BSD-2-Clause
//
// quiet_port - the network port that a design must have, for a bench that has no use for one.
module quiet_port (
    input logic clk,
    input logic rst
);
    nonic_axis network (
        .clk, .rst,
        .s_axis_tdata('0), .s_axis_tkeep('0), .s_axis_tvalid(1'b0), .s_axis_tready(), .s_axis_tlast(1'b0),
        .s_axis_tuser(1'b0),
        .m_axis_tdata(), .m_axis_tkeep(), .m_axis_tvalid(), .m_axis_tready(1'b1), .m_axis_tlast(), .m_axis_tuser(),
        .pause(), .tx_packet(), .rx_packet());
endmodule
