// SPDX-License-Identifier: BSD-2-Clause
//
// memories - xpm_memory_* against one long word, with random traffic and unrelated clocks.
//
// Inputs change when their clock falls, and outputs are looked at there: what rises at the same time is no race. Bits
// that hardware does not promise (both ports in one place, at one edge of a common clock) are not looked at.

// One port: what it asks for, and what it must show.
module memory_port #(
    parameter int WIDTH   = 32,
    parameter int BYTE    = 8,
    parameter int ADDRESS = 6,
    parameter int WORDS   = 64,
    parameter int LATENCY = 2,
    parameter bit WRITES  = 1,
    parameter bit READS   = 1,
    parameter string MODE =  "no_change"
) (
    input  logic                  clk,
    input  logic                  rises,
    input  logic                  falls,
    output logic                  rst, en, regce,
    output logic [WIDTH/BYTE-1:0] we,
    output logic [ADDRESS-1:0]    address,
    output logic [WIDTH-1:0]      din,
    input  logic [WIDTH-1:0]      found, doubt,     // in memory; bits of it that may be anything
    input  logic [WIDTH-1:0]      dout
);
    logic [WIDTH-1:0] latest, latest_doubt, value, value_doubt, mask;
    logic [WIDTH-1:0] late [0:LATENCY+1], late_doubt [0:LATENCY+1];
    logic [31:0]      checked, wrong;

    for (genvar i = 0; i < WIDTH / BYTE; i++) assign mask[i*BYTE +: BYTE] = {BYTE{we[i] && en}};

    initial begin
        {rst, en, regce, we, address, din, latest, latest_doubt, checked, wrong} = '0;
        for (int i = 0; i <= LATENCY + 1; i++) {late[i], late_doubt[i]} = '0;
    end
    always @(posedge clk) begin
        if (rises) begin
            if (en && !(MODE == "no_change" && we != 0)) begin
                value        = MODE == "write_first" ? found & ~mask | din & mask : found;
                latest       = value;
                latest_doubt = doubt;
            end
            // late[1] is what the memory shows one clock later.
            for (int i = LATENCY; i > 1; i--) begin
                if (i < LATENCY || regce) {late[i], late_doubt[i]} = {late[i-1], late_doubt[i-1]};
            end
            if (rst && LATENCY == 1) {latest, latest_doubt} = '0;
            {late[1], late_doubt[1]} = {latest, latest_doubt};
            if (rst) {late[LATENCY], late_doubt[LATENCY]} = '0;
        end
        if (falls) begin
            value       = LATENCY == 0 ? found : late[LATENCY];
            value_doubt = LATENCY == 0 ? doubt : late_doubt[LATENCY];
            if (READS) begin
                checked <= checked + 1;
                if (((value ^ dout) & ~value_doubt) != 0) begin
                    wrong <= wrong + 1;
                    if (wrong < 3) $display("%m: %h instead of %h, doubt %h", dout, value, value_doubt);
                end
            end
            rst     <= $urandom % 16 == 0;
            en      <= $urandom % 4 != 0;
            regce   <= $urandom % 4 != 0;
            we      <= WRITES && $urandom % 2 != 0 ? (WIDTH / BYTE)'({$urandom, $urandom}) : '0;
            address <= ADDRESS'($urandom % WORDS);
            din     <= WIDTH'({$urandom, $urandom, $urandom, $urandom});
        end
    end
endmodule

module memory_bench #(
    parameter string KIND =  "tdpram",
    parameter int WIDTH_A = 32,
    parameter int WIDTH_B = 32,
    parameter int BYTE_A  = 8,
    parameter int BYTE_B  = 8,
    parameter int LATENCY = 2,          // of port A; port B's is given
    parameter int LATE_B  = 2,
    parameter string MODE_A = "no_change",
    parameter string MODE_B = "no_change",
    parameter bit COMMON  = 1
) (
    input  logic        clk,
    output logic [31:0] checked, wrong
);
    localparam int SIZE  = 640;
    localparam int ADR_A = $clog2(SIZE / WIDTH_A), ADR_B = $clog2(SIZE / WIDTH_B);
    localparam     CLOCKS = COMMON ? "common_clock" : "independent_clock";
    localparam bit SPRAM = KIND == "spram", SDPRAM = KIND == "sdpram";

    logic clka, clkb, turn_a, turn_b, rsta, rstb, ena, enb, regcea, regceb;
    logic [WIDTH_A/BYTE_A-1:0] wea;
    logic [WIDTH_B/BYTE_B-1:0] web;
    logic [ADR_A-1:0]          addra;
    logic [ADR_B-1:0]          addrb;
    logic [WIDTH_A-1:0]        dina, douta;
    logic [WIDTH_B-1:0]        dinb, doutb;
    logic [SIZE-1:0]           all, doubted, put_a, put_b, from_a, from_b;
    wire                       rises_a = turn_a && !clka, rises_b = COMMON ? rises_a : turn_b && !clkb;
    wire                       falls_a = turn_a && clka, falls_b = COMMON ? falls_a : turn_b && clkb;

    // The bits of the memory that each port writes.
    always_comb begin
        {put_a, put_b} = '0;
        for (int i = 0; i < WIDTH_A; i++) put_a[int'(addra) * WIDTH_A + i] = ena && wea[i / BYTE_A];
        for (int i = 0; i < WIDTH_B; i++) put_b[int'(addrb) * WIDTH_B + i] = enb && web[i / BYTE_B] && !SPRAM;
    end
    assign from_a = SIZE'(dina) << int'(addra) * WIDTH_A;
    assign from_b = SIZE'(dinb) << int'(addrb) * WIDTH_B;
    wire [SIZE-1:0] doubt_a = doubted | (COMMON && MODE_B != "read_first" ? put_b : '0);
    wire [SIZE-1:0] doubt_b = doubted | (COMMON && (SDPRAM ? MODE_B : MODE_A) != "read_first" ? put_a : '0);

    initial {clka, clkb, turn_a, turn_b, all, doubted} = '0;
    always @(posedge clk) begin
        turn_a <= $urandom % 2 == 0;
        turn_b <= $urandom % 3 == 0;
        clka   <= clka ^ turn_a;
        clkb   <= clkb ^ turn_b;
        if (rises_a) begin
            all     <= all & ~put_a | from_a & put_a;
            doubted <= doubted & ~put_a;
        end
        if (rises_b) begin
            all     <= all & ~put_b | from_b & put_b;
            doubted <= doubted & ~put_b;
        end
        if (rises_a && rises_b) begin
            all     <= all & ~put_a & ~put_b | from_a & put_a & ~put_b | from_b & put_b;
            doubted <= doubted & ~put_a & ~put_b | put_a & put_b;
        end
    end

    memory_port #(.WIDTH(WIDTH_A), .BYTE(BYTE_A), .ADDRESS(ADR_A), .WORDS(SIZE / WIDTH_A), .LATENCY(LATENCY),
                  .READS(!SDPRAM), .MODE(MODE_A)) a (
        .clk, .rises(rises_a), .falls(falls_a), .rst(rsta), .en(ena), .regce(regcea), .we(wea), .address(addra),
        .din(dina),
        .found(all[int'(addra)*WIDTH_A +: WIDTH_A]), .doubt(doubt_a[int'(addra)*WIDTH_A +: WIDTH_A]), .dout(douta));
    memory_port #(.WIDTH(WIDTH_B), .BYTE(BYTE_B), .ADDRESS(ADR_B), .WORDS(SIZE / WIDTH_B), .LATENCY(LATE_B),
                  .WRITES(KIND == "tdpram"), .READS(!SPRAM), .MODE(MODE_B)) b (
        .clk, .rises(rises_b), .falls(falls_b), .rst(rstb), .en(enb), .regce(regceb), .we(web), .address(addrb),
        .din(dinb),
        .found(all[int'(addrb)*WIDTH_B +: WIDTH_B]), .doubt(doubt_b[int'(addrb)*WIDTH_B +: WIDTH_B]), .dout(doutb));
    assign checked = a.checked + b.checked;
    assign wrong   = a.wrong + b.wrong;

    if (KIND == "tdpram") begin : tdpram
        xpm_memory_tdpram #(
            .ADDR_WIDTH_A(ADR_A), .ADDR_WIDTH_B(ADR_B), .BYTE_WRITE_WIDTH_A(BYTE_A), .BYTE_WRITE_WIDTH_B(BYTE_B),
            .CLOCKING_MODE(CLOCKS), .MEMORY_SIZE(SIZE), .READ_DATA_WIDTH_A(WIDTH_A), .READ_DATA_WIDTH_B(WIDTH_B),
            .READ_LATENCY_A(LATENCY), .READ_LATENCY_B(LATE_B), .WRITE_DATA_WIDTH_A(WIDTH_A),
            .WRITE_DATA_WIDTH_B(WIDTH_B), .WRITE_MODE_A(MODE_A), .WRITE_MODE_B(MODE_B)
        ) memory (
            .clka, .rsta, .ena, .regcea, .wea, .addra, .dina, .injectsbiterra(1'b0), .injectdbiterra(1'b0),
            .douta, .sbiterra(), .dbiterra(),
            .clkb(COMMON ? clka : clkb), .rstb, .enb, .regceb, .web, .addrb, .dinb, .injectsbiterrb(1'b0),
            .injectdbiterrb(1'b0), .doutb, .sbiterrb(), .dbiterrb(), .sleep(1'b0));
    end else if (KIND == "sdpram") begin : sdpram
        xpm_memory_sdpram #(
            .ADDR_WIDTH_A(ADR_A), .ADDR_WIDTH_B(ADR_B), .BYTE_WRITE_WIDTH_A(BYTE_A), .CLOCKING_MODE(CLOCKS),
            .MEMORY_SIZE(SIZE), .READ_DATA_WIDTH_B(WIDTH_B), .READ_LATENCY_B(LATE_B), .WRITE_DATA_WIDTH_A(WIDTH_A),
            .WRITE_MODE_B(MODE_B)
        ) memory (
            .clka, .ena, .wea, .addra, .dina, .injectsbiterra(1'b0), .injectdbiterra(1'b0),
            .clkb(COMMON ? clka : clkb), .rstb, .enb, .regceb, .addrb, .doutb, .sbiterrb(), .dbiterrb(), .sleep(1'b0));
    end else begin : spram
        xpm_memory_spram #(
            .ADDR_WIDTH_A(ADR_A), .BYTE_WRITE_WIDTH_A(BYTE_A), .MEMORY_SIZE(SIZE), .READ_DATA_WIDTH_A(WIDTH_A),
            .READ_LATENCY_A(LATENCY), .WRITE_DATA_WIDTH_A(WIDTH_A), .WRITE_MODE_A(MODE_A)
        ) memory (
            .clka, .rsta, .ena, .regcea, .wea, .addra, .dina, .injectsbiterra(1'b0), .injectdbiterra(1'b0),
            .douta, .sbiterra(), .dbiterra(), .sleep(1'b0));
    end
endmodule

module memories (
    input logic clk,
    input logic rst
);
    localparam int BENCHES = 12;
    logic [31:0] checked [0:BENCHES-1], wrong [0:BENCHES-1];
`define BENCH(N, KIND_, WA_, WB_, BA_, BB_, LA_, LB_, MA_, MB_, COMMON_) \
    memory_bench #(.KIND(KIND_), .WIDTH_A(WA_), .WIDTH_B(WB_), .BYTE_A(BA_), .BYTE_B(BB_), .LATENCY(LA_), \
                   .LATE_B(LB_), .MODE_A(MA_), .MODE_B(MB_), .COMMON(COMMON_)) bench``N ( \
        .clk, .checked(checked[N]), .wrong(wrong[N]));
    `BENCH(0, "tdpram", 32, 32, 8, 8, 1, 2, "write_first", "read_first", 1)
    `BENCH(1, "tdpram", 64, 16, 8, 16, 2, 3, "no_change", "read_first", 1)
    `BENCH(2, "tdpram", 16, 128, 16, 32, 3, 1, "read_first", "write_first", 1)
    `BENCH(3, "tdpram", 32, 32, 32, 32, 2, 2, "no_change", "no_change", 1)
    `BENCH(4, "tdpram", 40, 40, 8, 8, 4, 1, "write_first", "no_change", 0)
    `BENCH(5, "sdpram", 64, 64, 8, 64, 2, 2, "read_first", "read_first", 1)
    `BENCH(6, "sdpram", 128, 32, 128, 32, 2, 1, "no_change", "no_change", 1)
    `BENCH(7, "sdpram", 32, 128, 8, 128, 2, 3, "no_change", "write_first", 0)
    `BENCH(8, "sdpram", 32, 32, 32, 32, 2, 0, "read_first", "read_first", 1)
    `BENCH(9, "spram", 32, 32, 8, 32, 1, 2, "write_first", "no_change", 1)
    `BENCH(10, "spram", 64, 64, 16, 64, 2, 2, "read_first", "no_change", 1)
    `BENCH(11, "spram", 32, 32, 8, 32, 3, 2, "no_change", "no_change", 1)

    quiet_port port (.clk, .rst);
    bench_end #(.BENCHES(BENCHES)) finish (.clk, .checked, .wrong);
endmodule
