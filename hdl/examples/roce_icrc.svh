// SPDX-License-Identifier: BSD-2-Clause
//
// The ICRC of RoCEv2 over IPv4 without options (IBTA Annex A17.3.3), octet by octet. Hardware would
// have a tree of XORs for a beat; a table simulates faster.
localparam logic [31:0] ICRC_BEGIN = 32'hdebb20e3;   // the CRC-32 of eight octets of ones

logic [31:0] icrc_table [0:255];
initial begin
    for (int i = 0; i < 256; i++) begin
        icrc_table[i] = i;
        for (int k = 0; k < 8; k++)
            icrc_table[i] = icrc_table[i][0] ? (icrc_table[i] >> 1) ^ 32'hedb88320 : icrc_table[i] >> 1;
    end
end

// Octets of a frame that count as ones, since they change on the way: TOS, TTL, both checksums, and
// those bits of the BTH that are for switches.
function automatic logic icrc_masks(input logic [15:0] at);
    return at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 || at == 46;
endfunction

// It has an octet of the frame more, the one at place `at`.
function automatic logic [31:0] icrc_with(input logic [31:0] crc, input logic [15:0] at, input logic [7:0] octet);
    return (crc >> 8) ^ icrc_table[crc[7:0] ^ (icrc_masks(at) ? 8'hff : octet)];
endfunction
