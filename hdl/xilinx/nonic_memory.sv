// SPDX-License-Identifier: BSD-2-Clause
//
// nonic_memory - the memory in the stand-ins for Xilinx' XPM_MEMORY: two ports, of different widths if need be.
//
// A row is as wide as the wider port. It is made of lanes, the smallest pieces that are written by themselves, and
// each lane is an array of its own: both ports may write into one row at a time. Of a wider port the bits from 0 on are
// those that the narrower one has at the lower address.
//
// Where both ports meet in one lane at one edge of a common clock, hardware promises nothing (unless the mode of the
// port that writes is read_first): such bits are X.
module nonic_memory #(
    parameter int    BITS      = 2048,
    parameter int    WIDTH_A   = 32,
    parameter int    WIDTH_B   = 32,
    parameter int    BYTE_A    = 32,           // bits that one bit of wea writes
    parameter int    BYTE_B    = 32,
    parameter int    ADDRESS_A = 6,
    parameter int    ADDRESS_B = 6,
    parameter int    LATENCY_A = 1,
    parameter int    LATENCY_B = 1,
    parameter string MODE_A    = "no_change",  // or read_first, write_first
    parameter string MODE_B    = "no_change",
    parameter bit    COMMON    = 1,            // clka and clkb are one clock
    parameter string FILE      = "none"        // of $readmemh; one lane in a row
) (
    input  logic                      clka,
    input  logic                      rsta,
    input  logic                      ena,
    input  logic                      regcea,
    input  logic [WIDTH_A/BYTE_A-1:0] wea,
    input  logic [ADDRESS_A-1:0]      addra,
    input  logic [WIDTH_A-1:0]        dina,
    output logic [WIDTH_A-1:0]        douta,

    input  logic                      clkb,
    input  logic                      rstb,
    input  logic                      enb,
    input  logic                      regceb,
    input  logic [WIDTH_B/BYTE_B-1:0] web,
    input  logic [ADDRESS_B-1:0]      addrb,
    input  logic [WIDTH_B-1:0]        dinb,
    output logic [WIDTH_B-1:0]        doutb
);
    localparam int ROW     = WIDTH_A > WIDTH_B ? WIDTH_A : WIDTH_B;
    localparam int LANE    = BYTE_A < BYTE_B ? BYTE_A : BYTE_B;
    localparam int LANES   = ROW / LANE;
    localparam int ROWS    = BITS / ROW;
    localparam int INDEX   = ROWS > 1 ? $clog2(ROWS) : 1;
    localparam int WORDS_A = ROW / WIDTH_A;  // in a row
    localparam int WORDS_B = ROW / WIDTH_B;

    if (WIDTH_A % BYTE_A != 0 || WIDTH_B % BYTE_B != 0 || BYTE_A % LANE != 0 || BYTE_B % LANE != 0 ||
        ROW % WIDTH_A != 0 || ROW % WIDTH_B != 0 || BITS % ROW != 0) begin : widths
        $error("MEMORY_SIZE, the widths of data and those of bytes are not multiples of one another");
    end
    if (MODE_A != "no_change" && MODE_A != "read_first" && MODE_A != "write_first" ||
        MODE_B != "no_change" && MODE_B != "read_first" && MODE_B != "write_first") begin : modes
        $error("WRITE_MODE is none of no_change, read_first and write_first");
    end
    if (FILE != "none" && FILE != "" && LANES != 1) begin : file
        $error("MEMORY_INIT_FILE is not supported with byte enables or ports of different widths");
    end

    wire [INDEX-1:0] row_a = INDEX'(32'(addra) / WORDS_A);
    wire [INDEX-1:0] row_b = INDEX'(32'(addrb) / WORDS_B);
    wire [31:0]      word_a = 32'(addra) % WORDS_A;
    wire [31:0]      word_b = 32'(addrb) % WORDS_B;
    logic [ROW-1:0]  found_a, found_b;

    for (genvar i = 0; i < LANES; i++) begin : lanes
        localparam int AT_A = i * LANE % WIDTH_A;    // the lane in a word of the port
        localparam int AT_B = i * LANE % WIDTH_B;
        // verilator lint_off MULTIDRIVEN
        logic [LANE-1:0] cells [0:ROWS-1];
        wire write_a = ena && word_a == i * LANE / WIDTH_A && wea[AT_A/BYTE_A];
        wire write_b = enb && word_b == i * LANE / WIDTH_B && web[AT_B/BYTE_B];
        wire meet    = COMMON && row_a == row_b;

        initial begin
            for (int row = 0; row < ROWS; row++) cells[row] = '0;
            if (FILE != "none" && FILE != "") $readmemh(FILE, cells);
        end
        always @(posedge clka) if (write_a && !(meet && write_b)) cells[row_a] <= dina[AT_A +: LANE];
        always @(posedge clkb) if (write_b) cells[row_b] <= meet && write_a ? 'x : dinb[AT_B +: LANE];

        assign found_a[i*LANE +: LANE] = meet && write_b && MODE_B != "read_first" ? 'x :
                                         write_a && MODE_A == "write_first" ? dina[AT_A +: LANE] : cells[row_a];
        assign found_b[i*LANE +: LANE] = meet && write_a && MODE_A != "read_first" ? 'x :
                                         write_b && MODE_B == "write_first" ? dinb[AT_B +: LANE] : cells[row_b];
        // verilator lint_on MULTIDRIVEN
    end

    nonic_read #(.WIDTH(WIDTH_A), .LATENCY(LATENCY_A)) read_a (
        .clk(clka), .rst(rsta), .en(ena && !(MODE_A == "no_change" && wea != 0)), .regce(regcea),
        .d(found_a[word_a*WIDTH_A +: WIDTH_A]), .q(douta));
    nonic_read #(.WIDTH(WIDTH_B), .LATENCY(LATENCY_B)) read_b (
        .clk(clkb), .rst(rstb), .en(enb && !(MODE_B == "no_change" && web != 0)), .regce(regceb),
        .d(found_b[word_b*WIDTH_B +: WIDTH_B]), .q(doutb));
endmodule
