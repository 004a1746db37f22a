/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters of FERoCE's machine, with their sources. Nothing but the extra gap, the receiver's
 * time, forward error correction, the two thresholds and the rival's bubbles was fitted; no other
 * parameter may move to meet a row.
 */
#include "lab/feroce/experiments.h"

/* The slides' titles begin with these words. */
static const char sections[] = "Introduction RDMA Front-End What Real-time RoCE RoCEv2 Throughput "
                               "Summary CRC32 CRC Matrix-Matrix";

static const char *const others[] = {
    "RTL2026: G. Bortolato and others, 100G-verilog-RoCEv2-lite, the authors' public Verilog, "
    "2026, "
    "github.com/Gabriele-bot/100G-verilog-RoCEv2-lite at a7716926",
    "feroce-rs: M. Migliorini, feroce-rs, the authors' public receiver in Rust, 2026, "
    "github.com/Mmiglio/feroce-rs at da5c748",
    "IBTA: InfiniBand Trade Association, InfiniBand Architecture Specification, Volume 1",
    "802.3: IEEE Standard for Ethernet, IEEE 802.3, 2022",
    NULL,
};

const struct lab_document feroce_document = {
    .title = "FERoCE 2024, lightweight RoCE endpoint",
    .sections = sections,
    .others = others,
};

const struct lab_parameter feroce_parameters[FEROCE_PARAMETER_COUNT] = {
    /* The board. */
    LAB_WORD("quirks", "none rtl", "RTL2026",
             "whether the board has the faults of the public design"),
    LAB_WHOLE("pmtu", "B", 4096, 256, 4096, "Throughput and Latency point-to-point",
              "payload of a packet; a power of two"),
    LAB_WHOLE("packets", "", 64, 1, 256,
              "Throughput and Latency point-to-point: 262 kB; OC: 64 packets of 4,096 bytes",
              "of a message of the tables"),
    LAB_WHOLE("qps", "", 8, 2, 16, "RTL2026", "queue pairs of stack 2026; a power of two"),
    LAB_WHOLE("qp_width", "bits", 128, 64, 1024, "RTL2026",
              "of a queue pair's channel; a power of two"),
    LAB_WHOLE("buffer_bits", "", 21, 16, 24, "RTL2026",
              "retransmission memory, as a power of two of bytes"),
    LAB_WHOLE("rto", "cycles", 15000, 100, 100000000, "RTL2026: 100G",
              "until what is lost goes again"),
    LAB_WHOLE("retry", "", 7, 0, 7, "RTL2026", "how often it does"),
    LAB_WHOLE("request_cycles", "cycles", 6, 0, 10000, "OC",
              "what a request takes beside its data"),
    LAB_WHOLE("visit_cycles", "cycles", 3, 1, 10000, "RTL2026",
              "the reader's visit without a packet"),
    LAB_WHOLE("packet_cycles", "cycles", 8, 1, 10000, "RTL2026",
              "the reader's visit with a packet"),
    LAB_WHOLE("pipe_cycles", "cycles", 70, 0, 10000, "OC",
              "everything between a time stamp and the line, and back"),
    LAB_WHOLE("bubble_cycles", "cycles", 0, 0, 10000, "OC",
              "of the sender behind each packet of A7"),
    LAB_FITTED_WHOLE("FER-A8.alone", "rival_bubble", "cycles", 9, 0, 10000, "OC",
                     "the same in the rival hypothesis, A8"),
    LAB_WHOLE("rival_extra", "B", 0, 0, 10000, "OC", "extra_bytes in the rival hypothesis, A8"),
    LAB_WHOLE("read_ahead", "packets", 4, 0, 32, "RTL2026",
              "that have left the reader and are not on the line"),
    LAB_WORD("timer", "acks sending", "RTL2026",
             "what restarts the RTO: progress alone, or packets too"),
    LAB_WORD("resend", "all alone", "RTL2026",
             "after a NAK: all from there on, or the lost packet"),
    LAB_WORD(
        "release", "below stop", "RTL2026",
        "a stalled queue goes on: slots - (2N + 6) below, or at the threshold that stopped it"),
    LAB_REAL("rnr_clock", "MHz", 322.265625, 100, 1000, "RTL2026",
             "that the RNR timer's counts are for"),
    LAB_WHOLE("rnr_code", "", 8, 0, 31, "feroce-rs", "the receiver's RNR time"),
    LAB_WORD("rkey", "zero right", "RTL2026", "the R_Key of the WRITE that is refused"),
    /* Lines, switch, receiver. */
    LAB_FITTED_WHOLE("FER-A3", "extra_bytes", "B", 71, 0, 10000, "OC",
                     "behind every frame on every line, unexplained; at 100G 0"),
    LAB_WORD("gap", "bytes time", "OC",
             "whether these are bytes at 25G, too, or their time at 10G"),
    LAB_FITTED_REAL("FER-A5", "ack_ns", "ns", 3045, 0, 1000000, "OC",
                    "from a packet's last bit in to the first bit of its ACK out"),
    LAB_REAL("fast_ack", "ns", 500, 0, 1000000, "OC", "the same for small messages"),
    LAB_REAL("host_ns", "ns", 1000, 0, 1000000, "OC", "from a completion to the next receive"),
    LAB_REAL("cable", "ns", 10, 0, 100000, "OC: 2 m", "of one pass"),
    LAB_REAL("switch", "ns", 500, 0, 100000, "OC", "of one pass, cut through"),
    LAB_FITTED_REAL("FER-A6", "fec_ns", "ns", 204.8, 0, 100000, "OC; 802.3: a word of RS(528,514)",
                    "of one pass of a line at 25G"),
    LAB_WHOLE("coalesce", "packets", 1, 1, 64, "OC", "that one ACK acknowledges"),
    LAB_WHOLE("senders", "", 2, 1, 8, "OC: the slides do not say", "to one receiver"),
    LAB_WORD("pfc", "on off", "Throughput and Latency with congestion: pause frames",
             "whether the switch asks senders to pause"),
    LAB_WORD("pauser", "switch receiver", "OC",
             "whose queue stops senders: each input's, or the one to the receiver"),
    LAB_WORD("paused", "all one", "OC", "which senders"),
    LAB_FITTED_WHOLE("FER-A9", "xoff_10G", "B", 4200, 64, 1000000, "OC",
                     "of an input, above which it asks for a pause at 10G; xon is half of it"),
    LAB_FITTED_WHOLE("FER-A10", "xoff_25G", "B", 29150, 64, 1000000, "OC", "the same at 25G"),
    LAB_WHOLE("buffer_bytes", "B", 1000000, 4200, 100000000, "OC", "of an output's queue"),
    LAB_WORD("receiver", "nic keeps", "IBTA", "whether it keeps what follows a lost packet"),
    LAB_WORD("requests", "spread one", "OC", "to as many queue pairs, or all to one"),
    LAB_WHOLE("lost_replies", "", 1, 0, 1, "OC", "of the board to OPEN"),
    LAB_REAL("loss", "", 0.001, 0, 0.01, "OC", "of packets from the board"),
    LAB_WORD("flip", "none payload icrc", "OC",
             "one bit of a packet's payload behind the check, or of its ICRC"),
    /* The ICRC's unit. */
    LAB_WORD("crc_powers", "right slice seed", "CRC32 operation",
             "whether the power of M is one too high at each word's first slice, or at the seed"),
    LAB_WORD("crc_seed", "last first", "CRC implementation: the third of three stages",
             "the stage that adds the seed's product"),
    LAB_WHOLE("crc_tree", "cycles", 1, 1, 8, "CRC implementation: the second of three stages",
              "registers in the tree that adds the slices' products"),
    LAB_WHOLE("vectors", "", 10000, 1, 100000, "OC", "random words of each width"),
    LAB_WHOLE("frames", "", 1000, 1, 10000, "OC", "one behind the other, at each width"),
    /* One point. */
    LAB_WORD("speed", "10G 25G 100G", "Throughput and Latency point-to-point; RTL2026: 100G",
             "one: of boards, lines and switch"),
    LAB_WORD("stack", "document 2026", "RoCE stack; RTL2026",
             "one: the slides' boards, which send nothing twice (not at 100G); or those of 2026"),
    LAB_WHOLE("pairs", "", 1, 1, 16, "RTL2026", "one: queue pairs of each board that send"),
    LAB_WORD("verb", "write send", "RoCE stack: WRITE only; RTL2026", "one: what boards send"),
    LAB_WHOLE("bytes", "B", 262144, 4, 1048576, "Throughput and Latency point-to-point: 262 kB",
              "one: a message, a multiple of 4"),
    LAB_WHOLE("bytes_odd", "B", 0, 0, 1048576, "OC",
              "one: a message of boards with odd numbers; 0: as those of the others"),
    LAB_WHOLE("messages", "", 120, 2, 1000000, "OC", "one: of each board, those to warm up too"),
    LAB_WHOLE("warm", "", 20, 1, 1000000, "OC", "one: of each board, that are not measured"),
    LAB_WHOLE("frequency", "cycles", 0, 0, 100000000, "RTL2026: cycles between messages",
              "one: from a message of a queue pair to the next; 0: as fast as it can"),
    LAB_REAL("stagger", "us", 1, 0, 1e6, "OC", "one: between the starts of two boards"),
    LAB_REAL("answer_loss", "", 0, 0, 0.01, "OC", "one: of packets to the board"),
    LAB_WHOLE("receives", "", 64, 1, 1024, "feroce-rs", "one: buffers of a queue pair"),
};
