// SPDX-License-Identifier: BSD-2-Clause
//
// torture - sends each frame back as it came, with gaps in valid and ready at random places.
//
// It looks for errors in what stands around it: every rule of the stream is kept, and no cycle is like
// the one before. Frames wait in a ring of 32 KB; a bad one is taken out of it again.
`ifndef NETWORK
`define NETWORK nonic_axis           // or that of a file before this one (xgmii_mac.sv)
`endif

module torture (
    input logic clk,
    input logic rst
);
    localparam int WORDS = 4096;

    logic [63:0] rx_data, tx_data;
    logic [7:0]  rx_keep, tx_keep;
    logic        rx_valid, rx_ready, rx_last, rx_user, tx_valid, tx_ready, tx_last;
    logic [8:0]  pause;
    logic [31:0] tx_packet, rx_packet;

    `NETWORK #(.DATA_WIDTH(64), .PORT(0)) network (
        .clk, .rst,
        .s_axis_tdata(tx_data), .s_axis_tkeep(tx_keep), .s_axis_tvalid(tx_valid),
        .s_axis_tready(tx_ready), .s_axis_tlast(tx_last), .s_axis_tuser(1'b0),
        .m_axis_tdata(rx_data), .m_axis_tkeep(rx_keep), .m_axis_tvalid(rx_valid),
        .m_axis_tready(rx_ready), .m_axis_tlast(rx_last), .m_axis_tuser(rx_user),
        .pause, .tx_packet, .rx_packet);

    logic [72:0] ring [0:WORDS-1];            // last, keep, data
    logic [12:0] written, whole, read;        // words; `whole` is behind the last frame that is complete
    logic [31:0] dice;

    wire taken = rx_valid && rx_ready;
    wire next  = !tx_valid || tx_ready;       // the beat that is offered may be another one

    // Fibonacci's shift register, of 32 bits.
    always_ff @(posedge clk) begin
        if (rst) dice <= 32'h1;
        else     dice <= {dice[30:0], dice[31] ^ dice[21] ^ dice[1] ^ dice[0]};
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            written  <= 0;
            whole    <= 0;
            rx_ready <= 0;
        end else begin
            // Beside the beat that may be taken in this cycle there is room for the one behind it.
            rx_ready <= dice[3] && written - read < 13'(WORDS - 1);
            if (taken) begin
                ring[written[11:0]] <= {rx_last, rx_keep, rx_data};
                written             <= rx_last && rx_user ? whole : written + 1;
                if (rx_last && !rx_user) whole <= written + 1;
            end
        end
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            read     <= 0;
            tx_valid <= 0;
            tx_last  <= 0;
        end else if (next) begin
            tx_valid <= 0;
            if (read != whole && dice[7]) begin
                {tx_last, tx_keep, tx_data} <= ring[read[11:0]];
                tx_valid                    <= 1;
                read                        <= read + 1;
            end
        end
    end
endmodule
