// SPDX-License-Identifier: BSD-2-Clause
//
// roce_sender - makes frames of headers and payload: Ethernet, IPv4, UDP, and the ICRC of RoCEv2.
//
// A packet is taken in a cycle in which `start` and `idle` are high. Its payload is asked for beat by
// beat: lane k of `payload` is the octet at `payload_at` + k.
module roce_sender #(
    parameter logic [47:0] MAC = 48'h0200_0000_0001
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            start,
    output logic            idle,
    input  logic [31:0]     from_ip, to_ip,
    input  logic [15:0]     from_port, to_port,
    input  logic [8*64-1:0] header,         // what is behind UDP's, the first octet on the left
    input  logic [15:0]     header_bytes,   // of it
    input  logic [15:0]     payload_bytes,
    input  logic            with_icrc,
    output logic [15:0]     payload_at,
    input  logic [63:0]     payload,
    // An AXI4-Stream of Ethernet frames.
    output logic [63:0]     tx_data,
    output logic [7:0]      tx_keep,
    output logic            tx_valid,
    output logic            tx_last,
    input  logic            tx_ready
);
    `include "roce_icrc.svh"

    localparam int OUTER = 42, HEADERS = OUTER + 64;
    logic [8*HEADERS-1:0] left;             // of the headers, the next octet on the left
    logic [15:0]          headers_bytes, frame_bytes, position, identification;
    logic [31:0]          crc;
    logic                 busy, has_icrc;

    wire        load      = busy && (!tx_valid || tx_ready);
    wire [15:0] udp_bytes = 16'd8 + header_bytes + payload_bytes + (with_icrc ? 16'd4 : 16'd0);
    wire [15:0] ip_bytes  = udp_bytes + 16'd20;
    assign idle       = !busy && (!tx_valid || tx_ready);
    assign payload_at = position - headers_bytes;

    function automatic logic [15:0] ip_checksum(input logic [15:0] bytes, number, input logic [31:0] from, to);
        logic [31:0] sum;
        sum = 32'h4500 + 32'(bytes) + 32'(number) + 32'h4000 + 32'h4011 +
              32'(from[31:16]) + 32'(from[15:0]) + 32'(to[31:16]) + 32'(to[15:0]);
        sum = 32'(sum[31:16]) + 32'(sum[15:0]);
        return ~(sum[31:16] + sum[15:0]);
    endfunction

    wire [8*OUTER-1:0] outer = {
        16'h0200, to_ip, MAC, 16'h0800,
        16'h4500, ip_bytes, identification, 16'h4000, 16'h4011, ip_checksum(ip_bytes, identification, from_ip, to_ip),
        from_ip, to_ip,
        from_port, to_port, udp_bytes, 16'h0};

    logic [63:0] beat;
    logic [7:0]  beat_keep;
    logic [31:0] beat_crc;
    always_comb begin
        beat      = 0;
        beat_keep = 0;
        beat_crc  = crc;
        for (int j = 0; j < 8; j++) begin
            logic [15:0] at;
            logic [7:0]  octet;
            at    = position + 16'(j);
            octet = at < headers_bytes ? left[8 * (HEADERS - 1 - j) +: 8] :
                    has_icrc && at >= frame_bytes - 4 ? ~beat_crc[8 * ((at - frame_bytes) & 16'd3) +: 8] :
                    payload[8 * j +: 8];
            if (at < frame_bytes) begin
                beat[8 * j +: 8] = octet;
                beat_keep[j]     = 1;
            end
            if (at >= 14 && at < frame_bytes - 4) beat_crc = icrc_with(beat_crc, at, octet);
        end
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            busy           <= 0;
            tx_valid       <= 0;
            tx_last        <= 0;
            identification <= 0;
        end else begin
            if (tx_ready) tx_valid <= 0;
            if (load) begin
                tx_data  <= beat;
                tx_keep  <= beat_keep;
                tx_valid <= 1;
                tx_last  <= position + 8 >= frame_bytes;
                busy     <= position + 8 < frame_bytes;
                crc      <= beat_crc;
                left     <= left << 64;
                position <= position + 8;
            end
            if (idle && start) begin
                busy           <= 1;
                position       <= 0;
                identification <= identification + 1;
                crc            <= ICRC_BEGIN;
                has_icrc       <= with_icrc;
                headers_bytes  <= 16'(OUTER) + header_bytes;
                frame_bytes    <= ip_bytes + 16'd14;
                left           <= {outer, header};
            end
        end
    end
endmodule
