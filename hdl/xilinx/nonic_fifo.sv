// SPDX-License-Identifier: BSD-2-Clause
//
// nonic_fifo - the queue in the stand-ins for Xilinx' XPM_FIFO.
//
// All is counted in units, which are as wide as the narrower port. Each side has a count of its own that only grows,
// and sees the other's SYNC registers later (0: one clock). Flags and counts are true of what their side has seen. The
// vendor's FIFO may show the same a clock or some later; it holds as many words.
//
// A reset is asked for by the side that writes, and both are busy until the other side has cleared itself and said so.
module nonic_fifo #(
    parameter int    WRITE_WIDTH  = 32,
    parameter int    READ_WIDTH   = 32,
    parameter int    DEPTH        = 2048,      // words of the side that writes; a power of two
    parameter bit    FALL_THROUGH = 0,
    parameter int    LATENCY      = 1,         // of reads, unless the first word falls through
    parameter int    SYNC         = 0,
    parameter bit    FULL_RESET   = 0,
    parameter int    PROG_FULL    = 10,
    parameter int    PROG_EMPTY   = 10,
    parameter string FEATURES     = "0707",    // in hexadecimal: which flags are there
    parameter int    WRITE_COUNT  = 1,         // bits
    parameter int    READ_COUNT   = 1
) (
    input  logic                   wr_clk,
    input  logic                   rst,
    input  logic                   wr_en,
    input  logic [WRITE_WIDTH-1:0] din,
    output logic                   full,
    output logic                   almost_full,
    output logic                   prog_full,
    output logic                   overflow,
    output logic                   wr_ack,
    output logic                   wr_rst_busy,
    output logic [WRITE_COUNT-1:0] wr_data_count,

    input  logic                   rd_clk,
    input  logic                   rd_en,
    output logic [READ_WIDTH-1:0]  dout,
    output logic                   empty,
    output logic                   almost_empty,
    output logic                   prog_empty,
    output logic                   underflow,
    output logic                   data_valid,
    output logic                   rd_rst_busy,
    output logic [READ_COUNT-1:0]  rd_data_count
);
    localparam int UNIT  = WRITE_WIDTH < READ_WIDTH ? WRITE_WIDTH : READ_WIDTH;
    localparam int PUT   = WRITE_WIDTH / UNIT;      // units of a word that is written
    localparam int TAKE  = READ_WIDTH / UNIT;
    localparam int BITS  = $clog2(DEPTH * PUT) + 1;
    // Another clock takes one word from what is promised, and the registers at the output hold two more.
    localparam int ROOM  = DEPTH * PUT - (SYNC > 0 ? PUT : 0) + (FALL_THROUGH ? 2 * TAKE : 0);
    localparam int WRITE_BITS = $clog2(DEPTH) + 1;
    localparam int READ_BITS  = $clog2(DEPTH * PUT / TAKE) + 1;

    typedef logic [BITS-1:0] count;

    localparam int FLAGS = FEATURES.atohex();
    function automatic bit has(input int flag);
        return FLAGS[flag];
    endfunction

    if (DEPTH < 16 || DEPTH != 1 << $clog2(DEPTH)) $error("FIFO_WRITE_DEPTH: is no power of two from 16 on");
    if (DEPTH * PUT / TAKE < 16) $error("READ_DATA_WIDTH: leaves less than 16 words to read");
    if (WRITE_WIDTH % UNIT != 0 || READ_WIDTH % UNIT != 0 || PUT > 8 || TAKE > 8) begin : widths
        $error("READ_DATA_WIDTH: one width must be 1, 2, 4 or 8 times the other");
    end
    if (!FALL_THROUGH && LATENCY < 1) $error("FIFO_READ_LATENCY: must be 1 or more in mode std");
    if (WRITE_COUNT > WRITE_BITS) $error("WR_DATA_COUNT_WIDTH: is too large for FIFO_WRITE_DEPTH");
    if (READ_COUNT > READ_BITS) $error("RD_DATA_COUNT_WIDTH: is too large for the depth");

    logic [UNIT-1:0] cells [0:(1<<BITS)-1];
    count            written, taken, written_seen, taken_seen;
    logic            clear, clear_seen, cleared_seen, clearing;

    nonic_sync #(.STAGES(SYNC), .WIDTH(BITS)) forward (.clk(rd_clk), .d(written), .q(written_seen));
    nonic_sync #(.STAGES(SYNC), .WIDTH(BITS)) back (.clk(wr_clk), .d(taken), .q(taken_seen));
    nonic_sync #(.STAGES(SYNC)) ask (.clk(rd_clk), .d(clear), .q(clear_seen));
    nonic_sync #(.STAGES(SYNC)) answer (.clk(wr_clk), .d(clearing), .q(cleared_seen));

    // The side that writes.
    wire count held  = written - taken_seen;
    wire       write = wr_en && !full && !wr_rst_busy;
    assign wr_rst_busy = clear || cleared_seen;
    assign full        = wr_rst_busy ? FULL_RESET : int'(held) + PUT > ROOM;
    assign almost_full = has(3) && (wr_rst_busy ? FULL_RESET : int'(held) + 2 * PUT > ROOM);
    assign prog_full   = has(1) && (wr_rst_busy ? FULL_RESET : int'(held) >= PROG_FULL * PUT);
    wire [WRITE_BITS-1:0] words_held = WRITE_BITS'((int'(held) + PUT - 1) / PUT);
    assign wr_data_count = has(2) && !wr_rst_busy ? words_held[WRITE_BITS-1 -: WRITE_COUNT] : '0;

    initial {written, clear, overflow, wr_ack} = '0;
    always_ff @(posedge wr_clk) begin
        if (rst)               clear <= 1;
        else if (cleared_seen) clear <= 0;
        written  <= clear ? '0 : written + (write ? count'(PUT) : '0);
        wr_ack   <= has(4) && write;
        overflow <= has(0) && wr_en && !write;
    end
    for (genvar i = 0; i < PUT; i++) begin : put
        always_ff @(posedge wr_clk) if (write) cells[written+count'(i)] <= din[i*UNIT +: UNIT];
    end

    // The side that reads.
    wire count               ready = written_seen - taken;
    wire                     read  = rd_en && !empty;
    logic [READ_WIDTH-1:0]   next;
    assign rd_rst_busy  = clear_seen || clearing;
    assign empty        = rd_rst_busy || int'(ready) < TAKE;
    assign almost_empty = has(11) && (empty || int'(ready) < 2 * TAKE);
    assign prog_empty   = has(9) && (empty || int'(ready) / TAKE <= PROG_EMPTY);
    wire [READ_BITS-1:0] words_ready = READ_BITS'(int'(ready) / TAKE);
    assign rd_data_count = has(10) && !rd_rst_busy ? words_ready[READ_BITS-1 -: READ_COUNT] : '0;
    for (genvar i = 0; i < TAKE; i++) begin : take
        assign next[i*UNIT +: UNIT] = cells[taken+count'(i)];
    end

    initial {taken, clearing, underflow} = '0;
    always_ff @(posedge rd_clk) begin
        clearing  <= clear_seen;
        taken     <= clear_seen ? '0 : taken + (read ? count'(TAKE) : '0);
        underflow <= has(8) && rd_en && !read;
    end

    if (FALL_THROUGH) begin : falls_through
        assign dout       = next;
        assign data_valid = has(12) && !empty;
    end else begin : waits
        logic [LATENCY:1] late;
        wire  [LATENCY:0] reads = {late, read};
        initial late = '0;
        always_ff @(posedge rd_clk) late <= rd_rst_busy ? '0 : reads[LATENCY-1:0];
        nonic_read #(.WIDTH(READ_WIDTH), .LATENCY(LATENCY)) out (
            .clk(rd_clk), .rst(rd_rst_busy), .en(read), .regce(reads[LATENCY-1]), .d(next), .q(dout));
        assign data_valid = has(12) && reads[LATENCY];
    end
endmodule
