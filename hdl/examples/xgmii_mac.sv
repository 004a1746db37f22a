// SPDX-License-Identifier: BSD-2-Clause
//
// xgmii_mac - a MAC for 10 Gb/s, between the AXI4-Streams of a design and XGMII.
//
// It stands in the place of nonic_axis in the other examples, if this file comes first:
//
//     nonic hdl build --top echo xgmii_mac.sv echo.sv
//
// Frames are stored whole, both ways, 32 KB of them: a line waits for nobody. What is bad, or finds no
// room, goes no further. No flow control, and no answer to link faults.
`define NETWORK xgmii_mac

module xgmii_mac #(
    parameter int DATA_WIDTH = 64,
    parameter int PORT       = 0
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic [DATA_WIDTH-1:0]   s_axis_tdata,
    input  logic [DATA_WIDTH/8-1:0] s_axis_tkeep,
    input  logic                    s_axis_tvalid,
    output logic                    s_axis_tready,
    input  logic                    s_axis_tlast,
    input  logic                    s_axis_tuser,
    output logic [DATA_WIDTH-1:0]   m_axis_tdata,
    output logic [DATA_WIDTH/8-1:0] m_axis_tkeep,
    output logic                    m_axis_tvalid,
    input  logic                    m_axis_tready,
    output logic                    m_axis_tlast,
    output logic                    m_axis_tuser,
    output logic [8:0]              pause,
    output logic [31:0]             tx_packet,
    output logic [31:0]             rx_packet
);
    localparam logic [7:0] IDLE = 8'h07, START = 8'hfb, TERMINATE = 8'hfd, SFD = 8'hd5;
    localparam logic [63:0] PREAMBLE = {SFD, {6{8'h55}}, START};

    logic [63:0] txd, rxd;
    logic [7:0]  txc, rxc;
    logic        link_up;

    nonic_xgmii #(.PORT(PORT)) line (
        .clk, .rst, .xgmii_txd(txd), .xgmii_txc(txc), .xgmii_rxd(rxd), .xgmii_rxc(rxc),
        .link_up, .tx_packet, .rx_packet);

    assign pause        = 0;
    assign m_axis_tuser = 0;

    function automatic logic [31:0] crc_of(input logic [31:0] crc, input logic [7:0] octet);
        crc_of = crc ^ 32'(octet);
        for (int k = 0; k < 8; k++) crc_of = crc_of[0] ? (crc_of >> 1) ^ 32'hedb88320 : crc_of >> 1;
    endfunction

    // -- From the line ------------------------------------------------------------------------------

    typedef enum logic [1:0] {BETWEEN, IN_PREAMBLE, IN_FRAME} rx_place_t;
    typedef struct packed {
        rx_place_t   place;
        logic [31:0] crc;
        logic [6:0]  octets;         // of the frame, up to 64
        logic [31:0] late;           // its last four, which may be the FCS
        logic [63:0] word;           // those before them
        logic [3:0]  filled;         // octets of `word`
        logic        ended, good;    // the frame has ended with the last word of the line
    } rx_t;

    rx_t         rx, rx_next;
    logic        rx_put;
    logic [72:0] rx_beat;            // last, keep, data

    // At most one beat is complete in a cycle. The last one waits for the next cycle, in which none can be.
    always_comb begin
        rx_next = rx;
        rx_put  = rx.ended;
        rx_beat = {rx.ended, 8'((1 << rx.filled) - 1), rx.word};
        if (rx.ended) rx_next.filled = 0;
        rx_next.ended = 0;
        for (int i = 0; i < 8; i++) begin
            if (rxc[i]) begin
                if (rx_next.place != BETWEEN) begin
                    rx_next.ended = 1;
                    rx_next.good  = rx_next.place == IN_FRAME && rxd[8 * i +: 8] == TERMINATE &&
                                    rx_next.octets == 64 && rx_next.crc == 32'hdebb20e3;
                end
                rx_next.place  = rxd[8 * i +: 8] == START ? IN_PREAMBLE : BETWEEN;
                rx_next.crc    = '1;
                rx_next.octets = 0;
            end else if (rx_next.place == IN_PREAMBLE) begin
                if (rxd[8 * i +: 8] == SFD) rx_next.place = IN_FRAME;
            end else if (rx_next.place == IN_FRAME) begin
                if (rx_next.octets >= 4) begin
                    if (rx_next.filled == 8) begin
                        rx_put         = 1;
                        rx_beat        = {9'h0ff, rx_next.word};
                        rx_next.filled = 0;
                    end
                    rx_next.word[8 * rx_next.filled[2:0] +: 8] = rx_next.late[7:0];
                    rx_next.filled = rx_next.filled + 1;
                end
                rx_next.late   = {rxd[8 * i +: 8], rx_next.late[31:8]};
                rx_next.crc    = crc_of(rx_next.crc, rxd[8 * i +: 8]);
                rx_next.octets = rx_next.octets + 7'(rx_next.octets != 64);
            end
        end
    end

    always_ff @(posedge clk) rx <= rst ? '0 : rx_next;

    xgmii_store received (
        .clk, .rst, .put(rx_put), .beat(rx_beat), .bad(!rx.good), .room(),
        .has(m_axis_tvalid), .first({m_axis_tlast, m_axis_tkeep, m_axis_tdata}),
        .take(m_axis_tvalid && m_axis_tready));

    // -- To the line --------------------------------------------------------------------------------

    typedef enum logic [1:0] {WAIT, DATA, TAIL} tx_place_t;
    typedef struct packed {
        tx_place_t   place;
        logic [31:0] crc;
        logic [5:0]  octets;         // of the frame, up to 60
        logic [2:0]  fcs;            // octets of the FCS
        logic [3:0]  gap;            // octets since terminate, up to 15
    } tx_t;

    tx_t         tx, tx_next;
    logic        tx_has, tx_last;
    logic [7:0]  tx_keep;
    logic [63:0] tx_data, word;
    logic [7:0]  control;

    xgmii_store sent (
        .clk, .rst, .put(s_axis_tvalid && s_axis_tready), .beat({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
        .bad(s_axis_tuser), .room(s_axis_tready), .has(tx_has), .first({tx_last, tx_keep, tx_data}),
        .take(tx.place == DATA));

    always_comb begin
        tx_next = tx;
        word    = {8{IDLE}};
        control = '1;
        if (tx.place == WAIT) begin
            tx_next.gap = tx.gap >= 8 ? 15 : tx.gap + 8;
            if (tx_has && tx.gap >= 12) begin
                word    = PREAMBLE;
                control = 8'h01;
                tx_next = '{place: DATA, crc: '1, octets: 0, fcs: 0, gap: 0};
            end
        end else begin
            for (int i = 0; i < 8; i++) begin
                if (tx_next.place == DATA && !tx_keep[i]) tx_next.place = TAIL;
                if (tx_next.place == WAIT) tx_next.gap = tx_next.gap + 1;
                else if (tx_next.place == DATA || tx_next.octets != 60) begin
                    word[8 * i +: 8] = tx_next.place == DATA ? tx_data[8 * i +: 8] : 0;
                    control[i]       = 0;
                    tx_next.crc      = crc_of(tx_next.crc, word[8 * i +: 8]);
                    tx_next.octets   = tx_next.octets + 6'(tx_next.octets != 60);
                end else if (tx_next.fcs != 4) begin
                    word[8 * i +: 8] = ~tx_next.crc[8 * tx_next.fcs[1:0] +: 8];
                    control[i]       = 0;
                    tx_next.fcs      = tx_next.fcs + 1;
                end else begin
                    word[8 * i +: 8] = TERMINATE;
                    tx_next.place    = WAIT;
                    tx_next.gap      = 1;
                end
            end
            if (tx_next.place == DATA && tx_last) tx_next.place = TAIL;
        end
    end

    always_ff @(posedge clk) begin
        txd <= rst ? {8{IDLE}} : word;
        txc <= rst ? 8'hff : control;
        if (rst) tx <= '{place: WAIT, crc: 0, octets: 0, fcs: 0, gap: 15};
        else     tx <= tx_next;
    end
endmodule

// Beats of frames, which come out when their frame is whole. A bad one, or one without room, does not.
module xgmii_store (
    input  logic        clk,
    input  logic        rst,
    input  logic        put,
    input  logic [72:0] beat,        // last, keep, data
    input  logic        bad,         // with last
    output logic        room,
    output logic        has,
    output logic [72:0] first,
    input  logic        take
);
    localparam int WORDS = 4096;

    logic [72:0] ring [0:WORDS-1];
    logic [12:0] written, whole, read;        // words; `whole` is behind the last frame that is complete
    logic        lost;                        // a beat of this frame found no room

    wire last = beat[72];
    wire keep = !bad && room && !lost;

    assign room  = written - read < 13'(WORDS);
    assign has   = read != whole;
    assign first = ring[read[11:0]];

    always_ff @(posedge clk) begin
        if (rst) begin
            {written, whole, read} <= 0;
            lost                   <= 0;
        end else begin
            if (put && room) ring[written[11:0]] <= beat;
            if (put) begin
                written <= last && !keep ? whole : written + 13'(room);
                lost    <= !last && (lost || !room);
                if (last && keep) whole <= written + 1;
            end
            if (take) read <= read + 1;
        end
    end
endmodule
