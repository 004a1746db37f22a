// SPDX-License-Identifier: BSD-2-Clause
//
// nonic_sync - registers in a row, by which a signal reaches another clock; none: a wire.
//
// All bits of a word arrive together, as they do not in hardware.
module nonic_sync #(
    parameter int             STAGES = 2,
    parameter int             WIDTH  = 1,
    parameter bit [WIDTH-1:0] INIT   = '0
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
    if (STAGES == 0) begin : wired
        assign q = d;
    end else begin : registers
        logic [STAGES*WIDTH-1:0] row;
        initial row = {STAGES{INIT}};
        always_ff @(posedge clk) row <= (STAGES * WIDTH)'({row, d});
        assign q = row[STAGES*WIDTH-1 -: WIDTH];
    end
endmodule
