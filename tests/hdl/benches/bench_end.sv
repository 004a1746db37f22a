// SPDX-License-Identifier: BSD-2-Clause
//
// bench_end - tells what benches have found, and ends the run.
module bench_end #(
    parameter int BENCHES = 1,
    parameter int CYCLES  = 40000
) (
    input logic        clk,
    input logic [31:0] checked [0:BENCHES-1],
    input logic [31:0] wrong [0:BENCHES-1]
);
    logic [31:0] cycles;
    initial cycles = 0;
    always @(posedge clk) begin
        cycles <= cycles + 1;
        if (cycles == CYCLES) begin
            for (int i = 0; i < BENCHES; i++) $display("bench %0d: %0d checked, %0d wrong", i, checked[i], wrong[i]);
            $finish;
        end
    end
endmodule
