/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters of FERoCE's machine, with their sources: the document, R (what the authors' public
 * design does), D (derived), OC (our choice). Section 7 of the specification says which of them
 * were fitted, and to what; no other may move to meet a row.
 */
#include "lab/feroce/experiments.h"

const struct lab_parameter feroce_parameters[FEROCE_PARAMETER_COUNT] = {
    /* The board. */
    LAB_WORD("clock", "10G 25G 100G", "document",
             "clock, width and line: 156.25 MHz of 64 bits, 390.625 of 64, 322.266 of 512"),
    LAB_WORD("quirks", "none rtl", "R", "whether the board has the faults that R has"),
    LAB_WHOLE("pmtu", "B", 4096, 256, 4096, "document", "payload of a packet; a power of two"),
    LAB_WHOLE("qps", "", 8, 2, 16, "R", "queue pairs; a power of two"),
    LAB_WHOLE("qp_width", "bits", 128, 64, 1024, "R", "of a queue pair's channel; a power of two"),
    LAB_WHOLE("buffer_bits", "", 21, 16, 24, "R",
              "retransmission memory, as a power of two of bytes"),
    LAB_WHOLE("rto", "cycles", 15000, 1, 100000000, "R: 100G", "until what is lost goes again"),
    LAB_WHOLE("retry", "", 7, 0, 7, "R", "how often it does"),
    LAB_WHOLE("rnr_retry", "", 7, 0, 7, "R", "the same after an RNR NAK; 7: for ever"),
    LAB_WHOLE("refresh", "cycles", 32767, 1, 100000000, "R",
              "after which a queue writes its PSN back"),
    LAB_WHOLE("request_cycles", "cycles", 6, 0, 10000, "OC",
              "what a request takes beside its data"),
    LAB_WHOLE("visit_cycles", "cycles", 3, 1, 10000, "D", "the reader's visit without a packet"),
    LAB_WHOLE("packet_cycles", "cycles", 8, 1, 10000, "D", "the reader's visit with a packet"),
    LAB_WHOLE("pipe_cycles", "cycles", 70, 0, 10000, "OC",
              "everything between a time stamp and the line, and back"),
    LAB_WHOLE("bubble_cycles", "cycles", 0, 0, 10000, "11.2: 0",
              "of the sender behind each packet: the rival hypothesis has 9"),
    LAB_WHOLE("read_ahead", "packets", 4, 0, 1024, "R",
              "that have left the reader and are not on the line"),
    /* Lines, switch, receiver. */
    LAB_FITTED_WHOLE("FER-A3", "extra_bytes", "B", 71, 0, 10000, "11.2",
                     "behind every frame on every line, unexplained; at 100G 0"),
    LAB_FITTED_WHOLE("FER-A5", "ack_ns", "ns", 3045, 0, 1000000, "11.3",
                     "from a packet's last bit in to the first bit of its ACK out"),
    LAB_WHOLE("cable", "ns", 10, 0, 1000000, "OC: 2 m", "of one pass"),
    LAB_WHOLE("switch", "ns", 500, 0, 1000000, "OC", "of one pass, cut through"),
    LAB_WHOLE("senders", "", 2, 1, 64, "OC: the count is lost", "to one receiver"),
    LAB_WHOLE("coalesce", "packets", 1, 1, 64, "OC", "that one ACK acknowledges"),
    /* The ICRC's unit. */
    LAB_WORD("crc_powers", "right slice seed", "document",
             "whether the power of M is one too high at each word's first slice, or at the seed"),
    LAB_WORD("crc_seed", "last first", "document: the third of three stages",
             "the stage that adds the seed's product"),
    LAB_WHOLE("crc_tree", "cycles", 1, 1, 8, "document: the second of three stages",
              "registers in the tree that adds the slices' products"),
    LAB_WHOLE("vectors", "", 10000, 1, 100000, "A33", "random words of each width"),
    LAB_WHOLE("frames", "", 1000, 1, 10000, "A34", "one behind the other, at each width"),
};
