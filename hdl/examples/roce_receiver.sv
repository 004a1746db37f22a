// SPDX-License-Identifier: BSD-2-Clause
//
// roce_receiver - takes frames apart: their first 128 octets, where each beat stands, and the ICRC.
module roce_receiver (
    input  logic          clk,
    input  logic          rst,
    // An AXI4-Stream of Ethernet frames, whose receiver is always ready.
    input  logic [63:0]   rx_data,
    input  logic [7:0]    rx_keep,
    input  logic          rx_valid,
    input  logic          rx_last,
    input  logic          rx_user,
    output logic [15:0]   rx_at,            // the frame's octet that is in lane 0 of this beat
    // For one cycle behind a frame's last beat.
    output logic          whole,            // the frame was not marked as bad
    output logic          icrc_right,       // if it is one of RoCEv2 over IPv4 without options
    output logic [1023:0] octets            // its first ones, octet 0 on the left, also of a frame that still comes
);
    `include "roce_icrc.svh"

    wire [63:0] in_order = {rx_data[7:0], rx_data[15:8], rx_data[23:16], rx_data[31:24],
                            rx_data[39:32], rx_data[47:40], rx_data[55:48], rx_data[63:56]};
    wire [15:0] ip_end   = 16'd14 + octets[8*(126-16) +: 16];   // of the IPv4 packet; behind it is padding
    logic [31:0] crc, beat_crc, found, beat_found;
    always_comb begin
        beat_crc   = rx_at == 0 ? ICRC_BEGIN : crc;
        beat_found = found;
        for (int j = 0; j < 8; j++) begin
            logic [15:0] at;
            at = rx_at + 16'(j);
            if (rx_keep[j] && at >= 14 && (at < 24 || at < ip_end - 4))
                beat_crc = icrc_with(beat_crc, at, rx_data[8 * j +: 8]);
            if (at >= 24 && at >= ip_end - 4 && at < ip_end) beat_found[8 * ((at - ip_end) & 16'd3) +: 8] = rx_data[8 * j +: 8];
        end
    end

    always_ff @(posedge clk) begin
        whole <= !rst && rx_valid && rx_last && !rx_user;
        if (rst) rx_at <= 0;
        else if (rx_valid) begin
            if (rx_at == 0) octets <= {in_order, 960'h0};
            else if (rx_at < 128) octets[64 * (15 - int'(rx_at[6:3])) +: 64] <= in_order;
            crc        <= beat_crc;
            found      <= beat_found;
            icrc_right <= ~beat_crc == beat_found;
            rx_at      <= rx_last ? 0 : rx_at + 8;
        end
    end
endmodule
