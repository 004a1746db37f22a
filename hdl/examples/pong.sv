// SPDX-License-Identifier: BSD-2-Clause
//
// pong - a reliable queue pair that sends each message back: the other end of ibv_rc_pingpong.
//
// SEND in any number of packets; everything else is refused as an invalid request. Two messages are
// stored: the one that goes back, and the next one. A third one is asked to come later (RNR NAK).
// nonic_qp has the peer's half of the connection, whoever brings it.
`ifndef NETWORK
`define NETWORK nonic_axis           // or that of a file before this one (xgmii_mac.sv)
`endif

module pong #(
    parameter int SIZE    = 65536,      // bytes of a message, at most; a power of two
    parameter int RTO     = 7266,       // cycles without an acknowledgement until packets go again,
    parameter int RETRIES = 7,          // this often in a row
    parameter int RNR     = 10000,      // cycles that a receiver without a buffer gets
    parameter int QPN     = 256
) (
    input logic clk,
    input logic rst
);
    localparam logic [15:0] ROCE_FROM = 16'hc000, ROCE_PORT = 16'd4791;
    localparam logic [7:0]  SEND_FIRST = 0, SEND_MIDDLE = 1, SEND_LAST = 2, SEND_ONLY = 4, ACKNOWLEDGE = 8'h11;
    localparam logic [7:0]  ACK = 8'h1f, RNR_NAK = 8'h2c, PSN_NAK = 8'h60, INVALID_NAK = 8'h61;    // 0.64 ms
    localparam logic [15:0] PAYLOAD_AT = 54;                                     // of a SEND, in its frame

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

    logic        connected;
    logic [31:0] my_ip, peer_ip, peer_rkey;
    logic [23:0] peer_qpn, send_psn, receive_psn;
    logic [63:0] peer_address;
    logic [15:0] pmtu;
    nonic_qp #(.NUMBER(0)) connection (
        .clk, .rst, .local_qpn(24'(QPN)), .local_psn(24'hfffff0), .local_address(64'h0), .local_rkey(32'h0),
        .connected, .local_ip(my_ip), .peer_ip, .peer_qpn, .peer_address, .peer_rkey, .send_psn, .receive_psn, .pmtu);

    // -- The packet that came -----------------------------------------------------------------------

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

    function automatic logic [1:0] padding_at(input int i);
        return rx[8 * (127 - i) + 4 +: 2];
    endfunction

    wire        for_us   = rx_whole && rx_icrc_right && connected && half_at(12) == 16'h0800 && octet_at(14) == 8'h45 &&
                           octet_at(23) == 8'd17 && word_at(26) == peer_ip && word_at(30) == my_ip &&
                           half_at(36) == ROCE_PORT && half_at(38) >= 24 &&
                           24'(word_at(46)) == 24'(QPN) && !dead;
    wire [7:0]  opcode   = octet_at(42), syndrome = octet_at(54);
    wire [23:0] psn      = 24'(word_at(50));
    wire [15:0] bytes    = half_at(38) - 16'd24 - 16'(padding_at(43));     // of payload, if it is a SEND
    wire        is_first = opcode == SEND_FIRST || opcode == SEND_ONLY;
    wire        is_last  = opcode == SEND_LAST || opcode == SEND_ONLY;
    wire        is_send  = is_first || is_last || opcode == SEND_MIDDLE;

    // -- Two messages: one that comes, one that goes back -------------------------------------------

    logic [7:0]  store [0:2*SIZE-1];
    logic [31:0] stored [0:1];       // bytes of a message
    logic        in, out;            // the message that comes or will, and the one that goes
    logic [1:0]  whole;              // messages that go back, or wait for that
    logic        under_way;          // packets of `in` have come

    wire [31:0]  filled = under_way ? stored[in] : 0;
    always_ff @(posedge clk) begin
        // A packet that is refused in the end leaves bytes behind those that count.
        if (rx_valid && !whole[in]) begin
            for (int j = 0; j < 8; j++) begin
                logic [31:0] to;
                to = filled + 32'(rx_at) + j - 32'(PAYLOAD_AT);
                if (rx_at + 16'(j) >= PAYLOAD_AT && to < SIZE) store[SIZE * int'(in) + to] <= rx_data[8 * j +: 8];
            end
        end
    end

    // -- Receiving: IBTA 9.7.5 ----------------------------------------------------------------------

    logic [23:0] expected;           // PSN
    logic        answer_due, has_refused;
    logic [7:0]  answer;
    logic [23:0] answer_psn, messages;

    wire [23:0]  ahead_in  = psn - expected;
    wire         duplicate = ahead_in[23];
    wire         valid     = is_send && is_first != under_way && filled + 32'(bytes) <= SIZE &&
                             (is_last ? bytes <= pmtu && (is_first || bytes != 0) : bytes == pmtu);
    wire         no_buffer = whole[in];
    wire         good      = for_us && opcode != ACKNOWLEDGE && ahead_in == 0 && valid && !no_buffer;

    // -- Sending back: packets of one message, and again from the oldest one on ---------------------

    logic [23:0] message_psn;        // of its first packet
    logic [31:0] acked, next, reached;     // packets of it: acknowledged; to be sent next; sent ever
    logic [31:0] timer, rnr;
    logic [3:0]  retries;
    logic        dead;               // no more can be sent

    wire         active    = whole[out] && connected && !dead;
    wire [31:0]  at        = next * 32'(pmtu);
    wire [31:0]  rest      = stored[out] - at;
    wire         ends      = rest <= 32'(pmtu);
    wire [15:0]  part      = ends ? rest[15:0] : pmtu;
    wire         sent_all  = next != 0 && at >= stored[out];
    wire         may_send  = active && !sent_all && rnr == 0;
    wire         is_ack    = for_us && opcode == ACKNOWLEDGE && half_at(38) == 28 && active;
    wire [31:0]  ahead_out = {8'h0, psn - (message_psn + acked[23:0])};  // packets behind the oldest
    wire [31:0]  unacked   = reached - acked;
    wire         is_nak    = syndrome[6:5] == 2'b01 || syndrome[6:0] == PSN_NAK[6:0];
    wire [31:0]  acked_now = acked + ahead_out + (is_nak ? 0 : 1);
    wire         moves     = is_ack && unacked != 0 && (is_nak ? ahead_out <= unacked : syndrome[6:5] == 2'b00 && ahead_out < unacked);
    wire         complete  = moves && acked_now == reached && 32'(pmtu) * acked_now >= stored[out];

    wire [1:0]   of_message = next == 0 ? (ends ? 2'd3 : 2'd0) : ends ? 2'd2 : 2'd1;
    wire [7:0]   send_opcode = of_message == 3 ? SEND_ONLY : 8'(of_message);
    wire [1:0]   padding    = 2'd0 - part[1:0];
    wire [8*12-1:0] bth     = {send_opcode, 1'b0, 1'b1, padding, 4'h0, 16'hffff, 8'h0, peer_qpn,
                               8'h80, message_psn + next[23:0]};
    wire [8*16-1:0] acknowledge = {ACKNOWLEDGE, 8'h40, 16'hffff, 8'h0, peer_qpn, 8'h0, answer_psn, answer, messages};

    logic        idle;
    logic [31:0] going_at;           // the payload of the packet that goes, in the store
    logic [15:0] payload_at;
    logic [63:0] payload;
    always_comb begin
        for (int j = 0; j < 8; j++) begin
            logic [15:0] place;
            place = payload_at + 16'(j);
            payload[8 * j +: 8] = store[(going_at + 32'(place)) & (2 * SIZE - 1)];
        end
    end

    roce_sender sender (
        .clk, .rst, .start(answer_due || may_send), .idle,
        .from_ip(my_ip), .to_ip(peer_ip), .from_port(ROCE_FROM), .to_port(ROCE_PORT),
        .header(answer_due ? {acknowledge, 384'h0} : {bth, 416'h0}), .header_bytes(answer_due ? 16'd16 : 16'd12),
        .payload_bytes(answer_due ? 16'd0 : part + 16'(padding)), .with_icrc(1'b1), .payload_at, .payload,
        .tx_data, .tx_keep, .tx_valid, .tx_last, .tx_ready);

    // -- What changes -------------------------------------------------------------------------------

    always_ff @(posedge clk) begin
        if (idle && answer_due) answer_due <= 0;
        else if (idle && may_send) begin
            going_at <= SIZE * int'(out) + at;
            next     <= next + 1;
            if (next == reached) reached <= next + 1;
        end

        // Requests.
        if (for_us && opcode != ACKNOWLEDGE) begin
            if (good) begin
                expected    <= expected + 1;
                stored[in]  <= filled + 32'(bytes);
                under_way   <= !is_last;
                has_refused <= 0;
                messages    <= messages + 24'(is_last);
                if (is_last) begin
                    whole[in] <= 1;
                    in        <= !in;
                end
                {answer_due, answer, answer_psn} <= {1'b1, ACK, psn};
            end else if (duplicate) begin
                if (!answer_due) {answer_due, answer, answer_psn} <= {1'b1, ACK, expected - 24'd1};
            end else if (ahead_in == 0 || !has_refused) begin    // once until the right one comes
                {answer_due, answer_psn} <= {1'b1, expected};
                answer      <= ahead_in != 0 ? PSN_NAK : valid ? RNR_NAK : INVALID_NAK;
                has_refused <= 1;
                dead        <= ahead_in == 0 && !valid;
            end
        end

        // Acknowledgements.
        rnr   <= rnr - 32'(rnr != 0);
        timer <= unacked == 0 || rnr != 0 ? 0 : timer + 1;
        if (timer == RTO) begin
            {timer, next} <= {32'h0, acked};
            retries       <= retries + 1;
            dead          <= int'(retries) == RETRIES;
        end
        if (moves) begin
            acked <= acked_now;
            timer <= 0;
            if (is_nak || next < acked_now) next <= acked_now;
            if (acked_now != acked) retries <= 0;
            if (is_nak && syndrome[6:5] == 2'b01) rnr <= RNR;
        end else if (is_ack && syndrome[6:5] == 2'b11 && !is_nak) dead <= 1;
        if (complete) begin
            whole[out]  <= 0;
            out         <= !out;
            message_psn <= message_psn + reached[23:0];
            {acked, next, reached} <= 0;
        end

        if (rst || !connected) begin
            {in, out, whole, under_way, answer_due, has_refused, dead} <= 0;
            {acked, next, reached, timer, rnr, retries, messages} <= 0;
            expected    <= receive_psn;
            message_psn <= send_psn;
        end
    end
endmodule
