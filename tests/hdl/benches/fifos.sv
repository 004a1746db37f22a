// SPDX-License-Identifier: BSD-2-Clause
//
// fifos - xpm_fifo_* against a ring, with random traffic, resets and unrelated clocks.
//
// Inputs change when their clock falls, and outputs are looked at there. With one clock every flag and count is known;
// with two, no word may be lost, changed or invented, the FIFO must fill and drain, and flags must be safe.
module fifo_bench #(
    parameter string KIND =  "sync",
    parameter int WRITE   = 32,
    parameter int READ    = 32,
    parameter string MODE =  "std",
    parameter int LATENCY = 1,
    parameter int DEPTH   = 16
) (
    input  logic        clk,
    output logic [31:0] checked, wrong
);
    localparam int UNIT = WRITE < READ ? WRITE : READ, PUT = WRITE / UNIT, TAKE = READ / UNIT;
    localparam bit SYNC = KIND == "sync", FWFT = MODE == "fwft";
    localparam int ROOM = DEPTH * PUT - (SYNC ? 0 : PUT) + (FWFT ? 2 * TAKE : 0);
    localparam int WRITE_COUNT = $clog2(DEPTH) + 1, READ_COUNT = $clog2(DEPTH * PUT / TAKE) + 1;
    localparam int PROG_FULL = 9, PROG_EMPTY = 5;

    logic             wr_clk, rd_clk, turn_w, turn_r, rst, wr_en, rd_en, full, empty, almost_full, almost_empty;
    logic             prog_full, prog_empty, overflow, underflow, wr_ack, data_valid, wr_rst_busy, rd_rst_busy;
    logic [WRITE-1:0] din;
    logic [READ-1:0]  dout, next;
    logic [WRITE_COUNT-1:0] wr_data_count;
    logic [READ_COUNT-1:0]  rd_data_count;

    wire rises_w = turn_w && !wr_clk, rises_r = SYNC ? rises_w : turn_r && !rd_clk;
    wire falls_w = turn_w && wr_clk, falls_r = SYNC ? falls_w : turn_r && rd_clk;
    wire write = wr_en && !full && !wr_rst_busy, read = rd_en && !empty;

    logic [UNIT-1:0] ring [0:1023];
    logic [READ-1:0] due [0:15];                    // words that were read and are not there yet
    logic [9:0]      put, taken;
    logic [3:0]      asked, shown;
    logic [31:0]     cycle, most;
    logic            wrote, refused, in_vain;
    wire  [9:0]      held = put - taken;
    wire             off = cycle[13:0] < 512;       // a reset, now and then
    wire             stop = off || cycle[13:0] > 16000;
    for (genvar i = 0; i < TAKE; i++) assign next[i*UNIT +: UNIT] = ring[taken + 10'(i)];

    task automatic expects(input string what, input int is, input int be);
        checked = checked + 1;
        if (is != be) begin
            wrong = wrong + 1;
            if (wrong < 5) $display("%m: %s is %0d, not %0d, cycle %0d, %0d held", what, is, be, cycle, held);
        end
    endtask

    // Flags of one clock.
    task automatic look;
        expects("full", int'(full), int'(int'(held) + PUT > ROOM));
        expects("almost_full", int'(almost_full), int'(int'(held) + 2 * PUT > ROOM));
        expects("prog_full", int'(prog_full), int'(int'(held) >= PROG_FULL * PUT));
        expects("empty", int'(empty), int'(int'(held) < TAKE));
        expects("almost_empty", int'(almost_empty), int'(int'(held) < 2 * TAKE));
        expects("prog_empty", int'(prog_empty), int'(int'(held) / TAKE <= PROG_EMPTY));
        expects("wr_data_count", int'(wr_data_count), (int'(held) + PUT - 1) / PUT);
        expects("rd_data_count", int'(rd_data_count), int'(held) / TAKE);
    endtask

    initial begin
        {wr_clk, rd_clk, turn_w, turn_r, rst, wr_en, rd_en, put, taken, asked, shown, checked, wrong, most} = '0;
        {wrote, refused, in_vain, din, cycle} = '0;
    end
    always @(posedge clk) begin
        cycle  <= cycle + 1;
        turn_w <= $urandom % 2 == 0;
        turn_r <= $urandom % 3 != 0;
        wr_clk <= wr_clk ^ turn_w;
        rd_clk <= rd_clk ^ turn_r;
        if (rises_w) begin
            if (write) for (int i = 0; i < PUT; i++) ring[put + 10'(i)] <= din[i*UNIT +: UNIT];
            if (write) put <= put + 10'(PUT);
            if (int'(held) > most) most <= 32'(held);
            {wrote, refused} <= {write, wr_en && !write};
        end
        if (rises_r) begin
            if (read && FWFT) expects("dout", int'(dout == next), 1);
            if (read && !FWFT) begin
                due[asked] <= next;
                asked      <= asked + 1;
            end
            in_vain <= rd_en && !read;
            if (read) taken <= taken + 10'(TAKE);
        end
        if (off) {put, taken, asked, shown} <= '0;
        if (falls_w) begin
            if (!off) expects("wr_ack", int'(wr_ack), int'(wrote));
            if (!off) expects("overflow", int'(overflow), int'(refused));
            if (!full && !off) expects("room", int'(int'(held) + PUT <= ROOM), 1);
            if (SYNC && !off) look;
            rst   <= off && cycle[8:5] == 1;
            din   <= WRITE'({$urandom, $urandom, $urandom, $urandom});
            wr_en <= !stop && (cycle[11] ? $urandom % 4 != 0 : $urandom % 8 == 0);
        end
        if (falls_r) begin
            if (!off) expects("underflow", int'(underflow), int'(in_vain));
            if (FWFT) expects("data_valid", int'(data_valid), int'(!empty));
            if (!empty && !off) expects("ready", int'(int'(held) >= TAKE), 1);
            if (!FWFT && data_valid && !off) begin
                expects("dout", int'(dout == due[shown] && shown != asked), 1);
                shown <= shown + 1;
            end
            rd_en <= !stop && (cycle[11] ? $urandom % 8 == 0 : $urandom % 4 != 0);
        end
        if (cycle[13:0] == 511) expects("busy after a reset", int'({wr_rst_busy, rd_rst_busy}), 0);
        if (cycle[13:0] == 511) expects("empty after a reset", int'(empty), 1);
        if (cycle[13:0] == 16383) expects("filled", int'(int'(most) > ROOM - PUT && int'(most) <= ROOM), 1);
        if (cycle[13:0] == 16383 && !FWFT) expects("words on their way", int'(shown), int'(asked));
    end

    if (SYNC) begin : sync
        xpm_fifo_sync #(
            .FIFO_READ_LATENCY(LATENCY), .FIFO_WRITE_DEPTH(DEPTH), .PROG_EMPTY_THRESH(PROG_EMPTY),
            .PROG_FULL_THRESH(PROG_FULL), .RD_DATA_COUNT_WIDTH(READ_COUNT), .READ_DATA_WIDTH(READ), .READ_MODE(MODE),
            .USE_ADV_FEATURES("1F1f"), .WRITE_DATA_WIDTH(WRITE), .WR_DATA_COUNT_WIDTH(WRITE_COUNT)
        ) fifo (
            .sleep(1'b0), .rst, .wr_clk, .wr_en, .din, .full, .prog_full, .wr_data_count, .overflow, .wr_rst_busy,
            .almost_full, .wr_ack, .rd_en, .dout, .empty, .prog_empty, .rd_data_count, .underflow, .rd_rst_busy,
            .almost_empty, .data_valid, .injectsbiterr(1'b0), .injectdbiterr(1'b0), .sbiterr(), .dbiterr());
    end else begin : async
        xpm_fifo_async #(
            .CDC_SYNC_STAGES(LATENCY + 1), .FIFO_READ_LATENCY(LATENCY), .FIFO_WRITE_DEPTH(DEPTH),
            .PROG_EMPTY_THRESH(PROG_EMPTY), .PROG_FULL_THRESH(PROG_FULL), .RD_DATA_COUNT_WIDTH(READ_COUNT),
            .READ_DATA_WIDTH(READ), .READ_MODE(MODE), .USE_ADV_FEATURES("1F1F"), .WRITE_DATA_WIDTH(WRITE),
            .WR_DATA_COUNT_WIDTH(WRITE_COUNT)
        ) fifo (
            .sleep(1'b0), .rst, .wr_clk, .wr_en, .din, .full, .prog_full, .wr_data_count, .overflow, .wr_rst_busy,
            .almost_full, .wr_ack, .rd_clk, .rd_en, .dout, .empty, .prog_empty, .rd_data_count, .underflow,
            .rd_rst_busy, .almost_empty, .data_valid, .injectsbiterr(1'b0), .injectdbiterr(1'b0), .sbiterr(),
            .dbiterr());
    end
endmodule

// The flags that USE_ADV_FEATURES leaves out are 0, and a count that is too narrow has the upper bits.
module fifo_features (
    input  logic        clk,
    output logic [31:0] checked, wrong
);
    logic [4:0] cycle;
    logic       almost_full, almost_empty, wr_ack, data_valid, prog_empty, underflow;
    logic [1:0] wr_data_count;
    initial {cycle, checked, wrong} = '0;
    always @(posedge clk) begin
        cycle   <= cycle + 1;
        checked <= checked + 1;
        if ({almost_full, almost_empty, wr_ack, data_valid, prog_empty, underflow} != 0) wrong <= wrong + 1;
        if (cycle == 20 && wr_data_count != 2) wrong <= wrong + 1;      // 16 of 16 words
    end
    xpm_fifo_sync #(.FIFO_WRITE_DEPTH(16), .WR_DATA_COUNT_WIDTH(2), .USE_ADV_FEATURES("0007")) fifo (
        .sleep(1'b0), .rst(cycle > 20), .wr_clk(clk), .wr_en(1'b1), .din('0), .full(), .prog_full(), .wr_data_count,
        .overflow(), .wr_rst_busy(), .almost_full, .wr_ack, .rd_en(1'b0), .dout(), .empty(), .prog_empty,
        .rd_data_count(), .underflow, .rd_rst_busy(), .almost_empty, .data_valid, .injectsbiterr(1'b0),
        .injectdbiterr(1'b0), .sbiterr(), .dbiterr());
endmodule

module fifos (
    input logic clk,
    input logic rst
);
    localparam int BENCHES = 10;
    logic [31:0] checked [0:BENCHES-1], wrong [0:BENCHES-1];
`define BENCH(N, KIND_, WRITE_, READ_, MODE_, LATENCY_, DEPTH_) \
    fifo_bench #(.KIND(KIND_), .WRITE(WRITE_), .READ(READ_), .MODE(MODE_), .LATENCY(LATENCY_), \
                 .DEPTH(DEPTH_)) bench``N (.clk, .checked(checked[N]), .wrong(wrong[N]));
    `BENCH(0, "sync", 32, 32, "std", 1, 16)
    `BENCH(1, "sync", 40, 40, "fwft", 0, 16)
    `BENCH(2, "sync", 64, 16, "std", 2, 16)
    `BENCH(3, "sync", 16, 64, "fwft", 0, 64)
    `BENCH(4, "async", 32, 32, "std", 1, 16)
    `BENCH(5, "async", 72, 72, "fwft", 2, 16)
    `BENCH(6, "async", 16, 32, "std", 3, 64)
    `BENCH(7, "async", 64, 8, "fwft", 1, 16)
    `BENCH(8, "sync", 8, 8, "std", 4, 32)
    fifo_features bench9 (.clk, .checked(checked[9]), .wrong(wrong[9]));

    quiet_port port (.clk, .rst);
    bench_end #(.BENCHES(BENCHES)) finish (.clk, .checked, .wrong);
endmodule
