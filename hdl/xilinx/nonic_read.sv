// SPDX-License-Identifier: BSD-2-Clause
//
// nonic_read - the registers behind a memory: what is read with en comes LATENCY clocks later.
//
// The last register follows regce, if it is not the only one, and is the one that rst sets to 0.
module nonic_read #(
    parameter int WIDTH   = 32,
    parameter int LATENCY = 1
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             en,
    input  logic             regce,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
    if (LATENCY == 0) begin : wired
        assign q = d;
    end else begin : registers
        logic [WIDTH-1:0] stage [0:LATENCY];     // 0: the memory
        logic             moves [0:LATENCY];     // into the next stage
        assign stage[0] = d;
        assign moves[0] = en;
        for (genvar i = 1; i <= LATENCY; i++) begin : stages
            wire taken = LATENCY > 1 && i == LATENCY ? regce : moves[i-1];
            initial stage[i] = '0;
            initial moves[i] = 0;
            always_ff @(posedge clk) begin
                moves[i] <= moves[i-1];
                if (rst && i == LATENCY) stage[i] <= '0;
                else if (taken)          stage[i] <= stage[i-1];
            end
        end
        assign q = stage[LATENCY];
    end
endmodule
