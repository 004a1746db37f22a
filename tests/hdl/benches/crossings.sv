// SPDX-License-Identifier: BSD-2-Clause
//
// crossings - xpm_cdc_* between clocks that have nothing to do with one another.
module crossing_bench #(
    parameter int STAGES = 4,
    parameter int EXTRA  = 1            // the optional registers, and the handshake of the user
) (
    input  logic        clk,
    output logic [31:0] checked, wrong
);
    localparam int WIDTH = 8;
    logic src_clk, dest_clk, turn_s, turn_d;
    wire  rises_s = turn_s && !src_clk, rises_d = turn_d && !dest_clk;
    wire  falls_s = turn_s && src_clk, falls_d = turn_d && dest_clk;

    task automatic expects(input string what, input int is, input int be);
        checked = checked + 1;
        if (is != be) begin
            wrong = wrong + 1;
            if (wrong < 5) $display("%m: %s is %0d, not %0d", what, is, be);
        end
    endtask

    // Words arrive as they were, a number of edges later.
    logic [WIDTH-1:0] bits_in, bits_out, count_in, count_out, held_bits, held_count;
    logic             single_out, sync_rst_out, arst, arst_out, arst_low_out;
    logic [WIDTH-1:0] late_bits [1:STAGES], late_count [1:STAGES+1];
    logic             late_rst [1:STAGES];
    int               since;            // edges since arst has ended

    xpm_cdc_single #(.DEST_SYNC_FF(STAGES), .SRC_INPUT_REG(EXTRA)) single (
        .src_clk, .src_in(bits_in[0]), .dest_clk, .dest_out(single_out));
    xpm_cdc_array_single #(.DEST_SYNC_FF(STAGES), .SRC_INPUT_REG(EXTRA), .WIDTH(WIDTH)) array_single (
        .src_clk, .src_in(bits_in), .dest_clk, .dest_out(bits_out));
    xpm_cdc_gray #(.DEST_SYNC_FF(STAGES), .REG_OUTPUT(EXTRA), .SIM_ASSERT_CHK(1), .WIDTH(WIDTH)) gray (
        .src_clk, .src_in_bin(count_in), .dest_clk, .dest_out_bin(count_out));
    xpm_cdc_sync_rst #(.DEST_SYNC_FF(STAGES), .INIT(EXTRA)) sync_rst (
        .src_rst(bits_in[1]), .dest_clk, .dest_rst(sync_rst_out));
    xpm_cdc_async_rst #(.DEST_SYNC_FF(STAGES), .RST_ACTIVE_HIGH(1)) async_rst (
        .src_arst(arst), .dest_clk, .dest_arst(arst_out));
    xpm_cdc_async_rst #(.DEST_SYNC_FF(STAGES)) async_rst_low (
        .src_arst(!arst), .dest_clk, .dest_arst(arst_low_out));

    // Words by handshake, and pulses: none is lost, none comes twice.
    logic [WIDTH-1:0] word_in, word_out, due;
    logic             send, rcv, req, ack, pulse_in, pulse_out;
    int               sent, taken, pulses_in, pulses_out, rest, length, cycle;
    logic             asked;

    xpm_cdc_handshake #(.DEST_EXT_HSK(EXTRA), .DEST_SYNC_FF(STAGES), .SRC_SYNC_FF(STAGES), .WIDTH(WIDTH)) handshake (
        .src_clk, .src_in(word_in), .src_send(send), .src_rcv(rcv), .dest_clk, .dest_out(word_out), .dest_req(req),
        .dest_ack(ack));
    xpm_cdc_pulse #(.DEST_SYNC_FF(STAGES), .REG_OUTPUT(EXTRA), .RST_USED(EXTRA)) pulse (
        .src_clk, .src_rst(1'b0), .src_pulse(pulse_in), .dest_clk, .dest_rst(1'b0), .dest_pulse(pulse_out));

    initial begin
        {src_clk, dest_clk, turn_s, turn_d, bits_in, count_in, held_bits, held_count, arst, send, ack, pulse_in} = '0;
        {word_in, due, sent, taken, pulses_in, pulses_out, rest, length, cycle, asked, since, checked, wrong} = '0;
        for (int i = 1; i <= STAGES; i++) {late_bits[i], late_count[i], late_rst[i]} = {{2 * WIDTH{1'b0}}, EXTRA[0]};
        late_count[STAGES+1] = '0;
        since = STAGES;
    end
    always @(posedge clk) begin
        turn_s   <= $urandom % 2 == 0;
        turn_d   <= $urandom % 3 == 0;
        src_clk  <= src_clk ^ turn_s;
        dest_clk <= dest_clk ^ turn_d;
        if (rises_d) begin
            for (int i = STAGES; i > 1; i--) {late_bits[i], late_rst[i]} = {late_bits[i-1], late_rst[i-1]};
            for (int i = STAGES + 1; i > 1; i--) late_count[i] = late_count[i-1];
            late_bits[1]  = EXTRA != 0 ? held_bits : bits_in;
            late_rst[1]   = bits_in[1];
            late_count[1] = held_count;
            since         = arst ? 0 : since + 1;
        end
        if (rises_s) {held_bits, held_count} = {bits_in, count_in};
        if (falls_d) begin
            expects("single", int'(single_out), int'(late_bits[STAGES][0]));
            expects("array_single", int'(bits_out), int'(late_bits[STAGES]));
            expects("gray", int'(count_out), int'(late_count[STAGES+EXTRA]));
            expects("sync_rst", int'(sync_rst_out), int'(late_rst[STAGES]));
            expects("async_rst", int'(arst_out), int'(arst || since < STAGES));
            expects("async_rst_low", int'(arst_low_out), int'(!(arst || since < STAGES)));
            pulses_out = pulses_out + int'(pulse_out);
            if (req && !(EXTRA != 0 && asked)) begin
                taken = taken + 1;
                expects("words", taken, sent);
                expects("word", int'(word_out), int'(due));
            end
            asked = req;
            ack   <= req && (ack || $urandom % 4 == 0);
        end
        if (falls_s) begin
            if (!turn_d) bits_in <= WIDTH'($urandom);       // an edge of dest_clk at this time would be a race
            count_in <= count_in + WIDTH'($urandom % 3) - 1'b1;
            word_in  = WIDTH'($urandom);
            if (send) begin
                send <= !rcv;
            end else if (!rcv && $urandom % 4 == 0) begin
                send <= 1;
                sent = sent + 1;
                due  = word_in;
            end
            // A pulse of any length, when the one before it has surely arrived.
            rest     = rest > 0 ? rest - 1 : 60;
            pulse_in <= rest <= 40 && rest > 40 - length;
            if (rest == 60) length = 1 + $urandom % 20;
            if (rest == 40) pulses_in = pulses_in + 1;
            if (rest == 1) expects("pulses", pulses_out, pulses_in);
        end
        if (arst) since = 0;
        if (!turn_d && $urandom % 32 == 0) arst <= !arst;
        cycle = cycle + 1;
        if (cycle == 39000) expects("words and pulses pass", int'(taken > 200 && pulses_in > 100), 1);
    end
endmodule

module crossings (
    input logic clk,
    input logic rst
);
    localparam int BENCHES = 3;
    logic [31:0] checked [0:BENCHES-1], wrong [0:BENCHES-1];
    crossing_bench #(.STAGES(4), .EXTRA(1)) bench0 (.clk, .checked(checked[0]), .wrong(wrong[0]));
    crossing_bench #(.STAGES(2), .EXTRA(0)) bench1 (.clk, .checked(checked[1]), .wrong(wrong[1]));
    crossing_bench #(.STAGES(5), .EXTRA(0)) bench2 (.clk, .checked(checked[2]), .wrong(wrong[2]));

    quiet_port port (.clk, .rst);
    bench_end #(.BENCHES(BENCHES)) finish (.clk, .checked, .wrong);
endmodule
