// SPDX-License-Identifier: BSD-2-Clause
//
// push - sends messages of RoCEv2 to a host, and sends packets again that get lost.
//
// One reliable queue pair. The host opens and closes it, and orders messages, by FERoCE's messages of
// version 3 to UDP port 0x4321 (wire/feroce.h); the board's address is the one that the host calls.
// The payload is a pattern, so it needs no memory: word n of the queue pair is n. Another OPEN takes
// the place of the queue pair that there was.
`ifndef NETWORK
`define NETWORK nonic_axis           // or that of a file before this one (xgmii_mac.sv)
`endif

module push #(
    parameter int PMTU       = 4096,
    parameter int WINDOW     = 16,       // packets that wait for their acknowledgement
    parameter bit RETRANSMIT = 1,
    parameter int RTO        = 7266,     // cycles without an acknowledgement until packets go again,
    parameter int RETRIES    = 7,        // this often in a row
    parameter int RNR        = 10000,    // cycles that a receiver without a buffer gets
    parameter bit DOUBLED    = 0         // a defect: the lower half of each word is sent twice
) (
    input logic clk,
    input logic rst
);
    localparam logic [23:0] QPN      = 24'h100;
    localparam logic [15:0] CM_PORT  = 16'h4321, CM_FROM = 16'h8765, ROCE_FROM = 16'h8657, ROCE_PORT = 16'd4791;
    localparam logic [31:0] IMMEDIATE = 32'd12345678;

    logic [63:0] rx_data, tx_data;
    logic [7:0]  rx_keep, tx_keep;
    logic        rx_valid, rx_last, rx_user, tx_valid, tx_ready, tx_last;
    logic [8:0]  pause;
    logic [31:0] tx_packet, rx_packet;

    `NETWORK #(.DATA_WIDTH(64), .PORT(0)) network (
        .clk, .rst,
        .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid),
        .s_axis_tready(tx_ready), .s_axis_tlast(tx_last), .s_axis_tuser(1'b0),
        .m_axis_tdata(rx_data), .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid),
        .m_axis_tready(1'b1), .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
        .pause, .tx_packet, .rx_packet);

    // -- The frame that came: its first 128 octets, the first one on the left -----------------------

    logic [1023:0] rx;
    logic [15:0]   rx_at;
    logic          rx_whole, rx_icrc_right;
    roce_receiver receiver (.clk, .rst, .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_user, .rx_at, .whole(rx_whole),
                            .icrc_right(rx_icrc_right), .octets(rx));

    function automatic logic [7:0] octet_at(input int i);
        return rx[8 * (127 - i) +: 8];
    endfunction
    function automatic logic [15:0] half_at(input int i);
        return rx[8 * (126 - i) +: 16];
    endfunction
    function automatic logic [31:0] word_at(input int i);
        return rx[8 * (124 - i) +: 32];
    endfunction

    wire [31:0] rx_to    = word_at(30);
    wire [15:0] rx_port  = half_at(36), rx_udp_bytes = half_at(38);
    wire        rx_udp   = rx_whole && half_at(12) == 16'h0800 && octet_at(14) == 8'h45 && octet_at(23) == 8'd17;
    wire        is_cm    = rx_udp && rx_port == CM_PORT && rx_udp_bytes == 72;
    wire        is_ack   = rx_udp && rx_port == ROCE_PORT && rx_udp_bytes == 28 && rx_icrc_right && rx_to == my_ip &&
                           octet_at(42) == 8'h11 && word_at(46) == {8'h0, QPN};
    wire [7:0]  order    = octet_at(93);
    wire [23:0] ack_psn  = 24'(word_at(50));
    wire [7:0]  syndrome = octet_at(54);

    // -- The queue pair -----------------------------------------------------------------------------

    // A packet's place in all that there is to send.
    typedef struct packed {
        logic [31:0] packet;         // packets before it,
        logic [31:0] message;        // and messages,
        logic [31:0] done;           // and bytes of its own message,
        logic [31:0] word;           // and words since the queue pair was opened
        logic [15:0] offset;         // of the message, in the host's memory
    } place_t;

    logic        open, cm_due;
    logic [7:0]  cm_first;           // octet 0 of the answer
    logic [31:0] my_ip, host_ip, host_rkey;
    logic [63:0] host_address;
    logic [23:0] host_qpn, host_psn;
    logic [15:0] host_port;
    logic        write, immediate;
    logic [31:0] length, messages, cycles;
    logic [15:0] order_at;           // the first message's offset of the order

    place_t      next, oldest;       // to be sent; not acknowledged, as far as the steps have come
    logic [31:0] acked, sent;        // packets that were acknowledged, and sent at least once
    logic        go_back;            // `next` becomes `oldest` when that has come to `acked`
    logic [31:0] timer, since, rnr;
    logic [3:0]  retries;

    function automatic logic [31:0] bytes_at(input place_t at);
        return length - at.done < PMTU ? length - at.done : PMTU;
    endfunction

    function automatic place_t behind(input place_t at);
        logic last;
        last           = at.done + bytes_at(at) == length;
        behind         = at;
        behind.packet  = at.packet + 1;
        behind.word    = at.word + (bytes_at(at) >> 2);
        behind.done    = last ? 0 : at.done + bytes_at(at);
        behind.message = at.message + 32'(last);
        behind.offset  = last ? at.offset + length[15:0] : at.offset;
    endfunction

    wire         stepping = oldest.packet != acked;
    wire         paced    = next.done == 0 && next.packet == sent && since < cycles;
    wire         may_send = open && !stepping && !go_back && rnr == 0 && !paced &&
                            next.message != messages && next.packet - acked < WINDOW;
    wire [31:0]  ahead    = {8'h0, ack_psn - (host_psn + acked[23:0])};  // packets behind the oldest
    wire [31:0]  under_way = sent - acked;

    // -- The frame that goes: an answer to the host, or a packet ------------------------------------

    wire [31:0] bytes   = bytes_at(next);
    wire        first   = next.done == 0, last = next.done + bytes == length;
    wire        with_immediate = immediate && last, with_reth = write && first;
    wire [7:0]  opcode  = (write ? 8'h06 : 8'h00) +
                          (first && last ? 8'h04 : first ? 8'h00 : last ? 8'h02 : 8'h01) + 8'(with_immediate);
    wire [15:0] inner   = 16'd12 + (with_reth ? 16'd16 : 16'd0) + (with_immediate ? 16'd4 : 16'd0);
    wire [23:0] psn     = host_psn + next.packet[23:0];
    wire [15:0] offset  = next.offset - order_at;
    wire [63:0] target  = host_address + 64'(offset);
    wire [8*12-1:0] bth = {opcode, 8'h40, 16'hffff, 8'h00, host_qpn, 8'h80, psn};
    wire [8*32-1:0] extended = with_reth && with_immediate ? {bth, target, host_rkey, length, IMMEDIATE} :
                               with_reth ? {bth, target, host_rkey, length, 32'h0} :
                               with_immediate ? {bth, IMMEDIATE, 128'h0} : {bth, 160'h0};
    wire [8*64-1:0] answer = {cm_first, 8'h0, QPN, 64'h0, 64'h0, my_ip, 8'h0, host_qpn, 8'h0, host_psn,
                              host_rkey, host_address, host_ip, CM_PORT, 104'h0};

    logic        idle;
    logic [31:0] word;               // the first one of the packet that goes
    logic [15:0] payload_at;
    logic [63:0] payload;
    always_comb begin
        for (int j = 0; j < 8; j++) begin
            logic [15:0] at;
            logic [31:0] value;
            at    = payload_at + 16'(j);
            value = word + (32'(at) >> 2);
            if (DOUBLED) value[31:16] = value[15:0];
            payload[8 * j +: 8] = value[8 * (at & 16'd3) +: 8];
        end
    end
    always_ff @(posedge clk) if (idle) word <= next.word;

    roce_sender sender (
        .clk, .rst, .start(cm_due || may_send), .idle,
        .from_ip(my_ip), .to_ip(host_ip), .from_port(cm_due ? CM_FROM : ROCE_FROM), .to_port(cm_due ? host_port : ROCE_PORT),
        .header(cm_due ? answer : {extended, 256'h0}), .header_bytes(cm_due ? 16'd64 : inner),
        .payload_bytes(cm_due ? 16'd0 : bytes[15:0]), .with_icrc(!cm_due), .payload_at, .payload,
        .tx_data, .tx_keep, .tx_valid, .tx_last, .tx_ready);

    // -- Sending, sending again, acknowledgements ---------------------------------------------------

    always_ff @(posedge clk) begin
        if (rst) begin
            open   <= 0;
            cm_due <= 0;
        end else begin
            since <= since + 32'(since < cycles);
            rnr   <= rnr - 32'(rnr != 0);
            if (idle && cm_due) cm_due <= 0;
            else if (idle && may_send) begin
                next <= behind(next);
                if (next.packet == sent) sent <= next.packet + 1;
                if (first) since <= 0;
            end
            if (stepping) begin
                oldest <= behind(oldest);
                if (next.packet == oldest.packet) next <= behind(oldest);
            end else if (go_back) begin
                next    <= oldest;
                go_back <= 0;
            end
            if (under_way == 0 || rnr != 0) timer <= 0;
            else if (timer == RTO) begin
                timer   <= 0;
                go_back <= RETRANSMIT;
                retries <= retries + 1;
                if (int'(retries) == RETRIES) open <= 0;
            end else timer <= timer + 1;

            if (is_ack && open && ahead <= under_way) begin
                if (syndrome[6:5] == 2'b00 && ahead < under_way) begin
                    acked   <= acked + ahead + 1;
                    timer   <= 0;
                    retries <= 0;
                end else if (syndrome[6:5] == 2'b01 || syndrome[6:0] == 7'h60) begin
                    acked   <= acked + ahead;
                    timer   <= 0;
                    go_back <= RETRANSMIT;
                    rnr     <= syndrome[6:5] == 2'b01 ? RNR : 0;
                    if (ahead != 0) retries <= 0;
                end else if (syndrome[6:5] == 2'b11) open <= 0;
            end
            if (is_cm && octet_at(42) == 8'h03) begin
                {open, cm_due, cm_first} <= {2'b11, 8'h33};
                {my_ip, host_ip, host_rkey, host_port} <= {rx_to, word_at(63), word_at(51), half_at(91)};
                {host_qpn, host_psn, host_address} <= {24'(word_at(43)), 24'(word_at(47)), word_at(55), word_at(59)};
                {next, oldest, acked, sent, messages} <= 0;
                {go_back, timer, since, rnr, retries, cycles} <= 0;
            end
            if (is_cm && octet_at(42) == 8'h09) {open, cm_due, cm_first} <= {2'b01, 8'h39};
            // An order of messages. While those of the order before it are under way, it is lost.
            if (is_cm && order[1:0] == 2'b11 && next.message == messages && under_way == 0) begin
                {write, immediate} <= order[3:2];
                length   <= word_at(94) & ~32'h3;
                order_at <= next.offset;
                messages <= messages + word_at(98);
                cycles   <= word_at(102);
            end
        end
    end
endmodule
