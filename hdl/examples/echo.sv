// SPDX-License-Identifier: BSD-2-Clause
//
// echo - answers datagrams to UDP port UDP_PORT: it swaps addresses and ports, and sends the frame
// back.
//
// One frame is stored. While it is sent back, the next one waits. The checksum of UDP stays right,
// because a sum does not care for the order of what it adds.
`ifndef NETWORK
`define NETWORK nonic_axis           // or that of a file before this one (xgmii_mac.sv)
`endif

module echo #(
    parameter int UDP_PORT = 7
) (
    input logic clk,
    input logic rst
);
    localparam logic [15:0] PORT = UDP_PORT[15:0];
    localparam int WORDS = 1536 / 8;

    logic [63:0] rx_data, tx_data;
    logic [7:0]  rx_keep, tx_keep;
    logic        rx_valid, rx_ready, rx_last, rx_user, tx_valid, tx_ready, tx_last;
    logic [8:0]  pause;
    logic [31:0] tx_packet, rx_packet;

    `NETWORK #(.DATA_WIDTH(64), .PORT(0)) network (
        .clk, .rst,
        .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid),
        .s_axis_tready(tx_ready), .s_axis_tlast(tx_last), .s_axis_tuser(1'b0),
        .m_axis_tdata(rx_data), .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid),
        .m_axis_tready(rx_ready), .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
        .pause, .tx_packet, .rx_packet);

    logic [63:0] store [0:WORDS-1];
    logic [7:0]  last_keep;
    logic [7:0]  count;          // words of the frame
    logic [7:0]  sent;
    logic        sending;

    // Functions get all that they read as arguments: Icarus calls them again when one changes.
    logic [319:0] headers;       // of the frame, octet 0 first
    wire  [63:0]  stored = store[sent];

    function automatic logic [7:0] octet(input logic [319:0] headers, input int i);
        return headers[8 * i +: 8];
    endfunction

    // The octet that stands at place i of the answer: addresses and ports change places.
    function automatic logic [7:0] swapped(input logic [319:0] headers, input int i);
        if (i < 6) return octet(headers, i + 6);
        if (i < 12) return octet(headers, i - 6);
        if (i >= 26 && i < 30) return octet(headers, i + 4);
        if (i >= 30 && i < 34) return octet(headers, i - 4);
        if (i == 34 || i == 35) return octet(headers, i + 2);
        if (i == 36 || i == 37) return octet(headers, i - 2);
        return octet(headers, i);
    endfunction

    wire for_us = {octet(headers, 12), octet(headers, 13)} == 16'h0800 && octet(headers, 14) == 8'h45 && octet(headers, 23) == 8'd17 &&
                  {octet(headers, 36), octet(headers, 37)} == PORT;

    assign rx_ready = !sending && !judge;
    assign tx_valid = sending;
    assign tx_last  = sent + 1 == count;
    assign tx_keep  = tx_last ? last_keep : 8'hff;
    always_comb begin
        for (int i = 0; i < 8; i++) begin
            tx_data[8 * i +: 8] = sent < 5 ? swapped(headers, 8 * int'(sent) + i) : stored[8 * i +: 8];
        end
    end

    logic judge;                 // a whole frame is stored
    always_ff @(posedge clk) begin
        if (rst) begin
            count   <= 0;
            sent    <= 0;
            sending <= 0;
            judge   <= 0;
        end else if (judge) begin
            judge   <= 0;
            sent    <= 0;
            sending <= for_us;
            if (!for_us) count <= 0;
        end else if (sending) begin
            if (tx_ready) begin
                sent <= sent + 1;
                if (tx_last) begin
                    sending <= 0;
                    count   <= 0;
                end
            end
        end else if (rx_valid && rx_ready) begin
            if (int'(count) < WORDS) begin
                store[count] <= rx_data;
                if (count < 5) headers[64 * int'(count) +: 64] <= rx_data;
                count        <= count + 1;
            end
            if (rx_last) begin
                last_keep <= rx_keep;
                judge     <= !rx_user && int'(count) < WORDS;
                if (rx_user || int'(count) >= WORDS) count <= 0;
            end
        end
    end
endmodule
