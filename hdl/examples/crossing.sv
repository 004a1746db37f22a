// SPDX-License-Identifier: BSD-2-Clause
//
// crossing - sends every frame back as it is, by way of a core whose clock is not the MAC's.
//
// clk is the core's, clk2 the MAC's: `nonic hdl replay crossing.so IN --period 4 --period2 6.4`.
// Reset is the core's; the MAC has it two of its edges later.
module crossing (
    input logic clk,
    input logic rst,
    input logic clk2
);
    logic [1:0] resets = '1;
    wire        mac_rst = resets[1];
    always_ff @(posedge clk2) resets <= {resets[0], rst};

    // A beat: data, keep, last, user.
    logic [63:0] rx_data, core_data, tx_data;
    logic [7:0]  rx_keep, core_keep, tx_keep;
    logic        rx_valid, rx_ready, rx_last, rx_user, core_valid, core_ready, core_last, core_user;
    logic        tx_valid, tx_ready, tx_last, tx_user;
    logic [8:0]  pause;
    logic [31:0] tx_packet, rx_packet;

    nonic_axis mac (
        .clk(clk2), .rst(mac_rst),
        .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid),
        .s_axis_tready(tx_ready), .s_axis_tlast(tx_last), .s_axis_tuser(tx_user && tx_last),
        .m_axis_tdata(rx_data), .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid),
        .m_axis_tready(rx_ready), .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
        .pause, .tx_packet, .rx_packet);

    // verilator lint_off PINMISSING
    xpm_fifo_axis #(.CLOCKING_MODE("independent_clock"), .TDATA_WIDTH(64), .FIFO_DEPTH(512)) to_core (
        .s_aclk(clk2), .s_aresetn(!mac_rst), .m_aclk(clk),
        .s_axis_tdata(rx_data), .s_axis_tkeep(rx_keep), .s_axis_tvalid(rx_valid),
        .s_axis_tready(rx_ready), .s_axis_tlast(rx_last), .s_axis_tuser(rx_user),
        .m_axis_tdata(core_data), .m_axis_tkeep(core_keep), .m_axis_tvalid(core_valid),
        .m_axis_tready(core_ready), .m_axis_tlast(core_last), .m_axis_tuser(core_user),
        .s_axis_tstrb('1), .s_axis_tid('0), .s_axis_tdest('0),
        .injectsbiterr_axis('0), .injectdbiterr_axis('0));

    xpm_fifo_axis #(.CLOCKING_MODE("independent_clock"), .TDATA_WIDTH(64), .FIFO_DEPTH(512)) to_mac (
        .s_aclk(clk), .s_aresetn(!rst), .m_aclk(clk2),
        .s_axis_tdata(core_data), .s_axis_tkeep(core_keep), .s_axis_tvalid(core_valid),
        .s_axis_tready(core_ready), .s_axis_tlast(core_last), .s_axis_tuser(core_user),
        .m_axis_tdata(tx_data), .m_axis_tkeep(tx_keep), .m_axis_tvalid(tx_valid),
        .m_axis_tready(tx_ready), .m_axis_tlast(tx_last), .m_axis_tuser(tx_user),
        .s_axis_tstrb('1), .s_axis_tid('0), .s_axis_tdest('0),
        .injectsbiterr_axis('0), .injectdbiterr_axis('0));
endmodule
