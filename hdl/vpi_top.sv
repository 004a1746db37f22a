// SPDX-License-Identifier: BSD-2-Clause
//
// vpi_top - the clock and the reset of a design under Icarus Verilog (hdl/vpi.c).
//
// Time stands still before a rising edge until nonic has granted it.
`timescale 1ps / 1ps
module nonic_top;
    reg           clk = 0;
    reg           rst = 1;
    reg [63:0]    to_rise, to_fall;
    reg           traced, tracing = 0;
    reg [63:0]    from, to;     // the time that is traced
    reg [32759:0] path;         // 4095 characters

`ifdef NONIC_PARAMETERS
    `NONIC_TOP #(`NONIC_PARAMETERS) dut (.clk(clk), .rst(rst));
`else
    `NONIC_TOP dut (.clk(clk), .rst(rst));
`endif

    initial begin
        $nonic_begin(to_rise, traced, from, to, path);
        if (traced) $dumpfile(path);
        forever begin
            #to_rise $nonic_clock(to_fall, to_rise, rst);
            if (traced && !tracing && $time >= from) begin
                $dumpvars(0, dut);
                tracing = 1;
            end
            if (tracing && $time >= to) begin
                $dumpoff;
                traced  = 0;
                tracing = 0;
            end
            clk = 1;
            #to_fall clk = 0;
        end
    end
endmodule
