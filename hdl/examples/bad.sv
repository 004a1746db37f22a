// SPDX-License-Identifier: BSD-2-Clause
//
// bad - breaks one rule of its stream for each frame that it gets: byte 14 says which (hdl/port.h).
//
// The frame that it sends has four beats. 0 and numbers that name no rule give a right one.
module bad (
    input logic clk,
    input logic rst
);
    logic [63:0] rx_data, tx_data;
    logic [7:0]  rx_keep, tx_keep;
    logic        rx_valid, rx_last, rx_user, tx_valid, tx_ready, tx_last;
    logic [8:0]  pause;
    logic [31:0] tx_packet, rx_packet;

    nonic_axis #(.DATA_WIDTH(64), .PORT(0)) network (
        .clk, .rst,
        .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid),
        .s_axis_tready(tx_ready), .s_axis_tlast(tx_last), .s_axis_tuser(1'b0),
        .m_axis_tdata(rx_data), .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid),
        .m_axis_tready(1'b1), .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
        .pause, .tx_packet, .rx_packet);

    localparam logic [7:0] KEEP_PART = 1, KEEP_HOLE = 2, KEEP_NONE = 3, WITHDRAWN = 4,
                           UNSTABLE = 5, LATE = 6, OVERSIZE = 7;

    logic [7:0]  rule;
    logic [3:0]  got;            // beats of the frame that comes, 15 at most
    logic        sending;
    logic [15:0] beat, wait_for;
    wire  [15:0] last_beat = rule == OVERSIZE ? 2100 : 3;
    wire         pausing   = rule == LATE && beat == 2 && wait_for < 25000;
    wire         taking    = tx_valid && tx_ready;
    logic        waited;         // the beat was offered, and not taken

    assign tx_last = beat == last_beat;
    always_comb begin
        tx_valid = sending && !pausing;
        tx_keep  = 8'hff;
        tx_data  = {48'h0, beat};
        if (rule == KEEP_PART && beat == 1) tx_keep = 8'h7f;
        if (rule == KEEP_HOLE && tx_last) tx_keep = 8'h05;
        if (rule == KEEP_NONE && tx_last) tx_keep = 8'h00;
        if (rule == WITHDRAWN && waited) tx_valid = 0;
        if (rule == UNSTABLE && waited) tx_data = 64'hbad;
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            got     <= 0;
            sending <= 0;
            waited  <= 0;
        end else begin
            if (rx_valid) begin
                if (got == 1) rule <= rx_data[55:48];
                got <= rx_last ? 0 : got == 15 ? 15 : got + 1;
                if (rx_last) begin
                    sending  <= 1;
                    beat     <= 0;
                    wait_for <= 0;
                end
            end
            if (pausing) wait_for <= wait_for + 1;
            waited <= tx_valid && !tx_ready;
            if (taking) begin
                beat <= beat + 1;
                if (tx_last) sending <= 0;
            end
        end
    end
endmodule
