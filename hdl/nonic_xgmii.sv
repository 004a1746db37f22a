// SPDX-License-Identifier: BSD-2-Clause
//
// nonic_xgmii - nonic at the end of an XGMII: a design that has its own MAC.
//
// 64 bits of data, lane i in bits 8i+7 to 8i, and a control bit for each. `clk` is the line's clock:
// 156.25 MHz for 10 Gb/s. hdl/xgmii.h takes the words apart, and counts what breaks the rules. All
// outputs are registers of clk. DPI alone: not for Icarus.
module nonic_xgmii #(
    parameter int PORT = 0          // the number of this port in the design, from 0 on
) (
    input  logic        clk,
    input  logic        rst,        // synchronous, active high
    // Frames of the design.
    input  logic [63:0] xgmii_txd,
    input  logic [7:0]  xgmii_txc,
    // Frames to the design.
    output logic [63:0] xgmii_rxd,
    output logic [7:0]  xgmii_rxc,
    output logic        link_up,    // low: the design sends ordered sets of a fault
    // Numbers of the frames that pass, as in the captures, from 1 on; 0: none.
    output logic [31:0] tx_packet,
    output logic [31:0] rx_packet
);
`ifdef __ICARUS__
    nonic_xgmii_needs_verilator not_for_icarus ();
`else
    import "DPI-C" context function chandle nonic_xgmii_attach(input int port);
    import "DPI-C" context function void nonic_xgmii_edge(
        input chandle handle, input bit rst, input bit [63:0] txd, input bit [7:0] txc,
        output bit [63:0] rxd, output bit [7:0] rxc, output bit link_up,
        output bit [31:0] tx_packet, output bit [31:0] rx_packet);

    chandle handle;
    initial handle = nonic_xgmii_attach(PORT);
    import "DPI-C" function void nonic_detach(input chandle handle);
    final nonic_detach(handle);

    bit [63:0] rxd;
    bit [7:0]  rxc;
    bit        link;
    bit [31:0] tx_number, rx_number;

    always @(posedge clk) begin
        nonic_xgmii_edge(handle, rst, xgmii_txd, xgmii_txc, rxd, rxc, link, tx_number, rx_number);
        xgmii_rxd <= rxd;
        xgmii_rxc <= rxc;
        link_up   <= link;
        tx_packet <= tx_number;
        rx_packet <= rx_number;
    end
`endif
endmodule
