// SPDX-License-Identifier: BSD-2-Clause
//
// nonic_qp - both halves of a queue pair's connection, for a design whose queue pair nonic connects
// (`nonic hdl live --connect`, `--pingpong`, `--cm`).
//
// The design's half counts while the connection is made. The peer's half stands at the outputs one
// cycle before `connected` rises, and as long as it is high. A new connection lets it fall for at
// least one cycle. All outputs are registers of clk.
module nonic_qp #(
    parameter int NUMBER = 0        // of the queue pair in the design, from 0 on
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [23:0] local_qpn,
    input  logic [23:0] local_psn,      // one that is to begin with
    input  logic [63:0] local_address,  // for WRITE and READ of the peer
    input  logic [31:0] local_rkey,
    output logic        connected,
    output logic [31:0] local_ip,
    output logic [31:0] peer_ip,
    output logic [23:0] peer_qpn,
    output logic [63:0] peer_address,
    output logic [31:0] peer_rkey,
    output logic [23:0] send_psn,       // of the first packet that the design sends: local_psn, or the peer chose it
    output logic [23:0] receive_psn,    // of the first packet that comes
    output logic [15:0] pmtu            // bytes of payload in a packet, at most
);
    import "DPI-C" context function chandle nonic_attach_pair(input int number);
    import "DPI-C" function void nonic_pair_edge(
        input chandle handle, input bit [23:0] local_qpn, input bit [23:0] local_psn, input bit [63:0] local_address,
        input bit [31:0] local_rkey, output bit connected, output bit [31:0] local_ip, output bit [31:0] peer_ip,
        output bit [23:0] peer_qpn, output bit [63:0] peer_address, output bit [31:0] peer_rkey, output bit [23:0] send_psn,
        output bit [23:0] receive_psn, output bit [15:0] pmtu);

    chandle handle;
    initial handle = nonic_attach_pair(NUMBER);

    bit        is_connected, was_connected;
    bit [31:0] own_ip, ip, rkey;
    bit [23:0] qpn, first, expected;
    bit [63:0] address;
    bit [15:0] bytes;
    always @(posedge clk) begin
        nonic_pair_edge(handle, local_qpn, local_psn, local_address, local_rkey, is_connected, own_ip, ip, qpn, address, rkey,
                        first, expected, bytes);
        was_connected <= is_connected && !rst;
        connected     <= is_connected && was_connected && !rst;
        local_ip      <= own_ip;
        peer_ip       <= ip;
        peer_qpn      <= qpn;
        peer_address  <= address;
        peer_rkey     <= rkey;
        send_psn      <= first;
        receive_psn   <= expected;
        pmtu          <= bytes;
    end
endmodule
