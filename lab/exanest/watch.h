/* SPDX-License-Identifier: BSD-2-Clause
 *
 * watch - a machine's events, written into a trace and a capture while somebody looks.
 *
 * Purpose    Spans of the R5s' actions, of packets at send units and on links, of links that are
 *            stopped, and of receivers' contexts; and each packet of each link as a frame.
 * Outputs    A trace and a capture, which are the caller's.
 * Ownership  The caller owns the watch: it is ended before the trace is closed, which still needs
 *            its names, and closed after that.
 * Time       The world's. A frame's time is the time when its last word has left. Frames are in
 *            that order but for the 20 ns of a clock's cycle and a word.
 * Units      Picoseconds. A frame is the packet's words, 16 bytes each, lowest byte first.
 * Limits     Spans of EXANEST_WATCHED_FPGAS FPGAs, frames of all; EXANEST_CONTEXT_LANES contexts of
 *            an FPGA at a time. Actions of an R5 that take no time are left out.
 * Source     Our choice.
 *
 * Each unit that can be watched has a pointer to the watch, which is NULL while nobody looks: that
 * costs one branch.
 */
#ifndef LAB_EXANEST_WATCH_H
#define LAB_EXANEST_WATCH_H

#include "hardware/exanest/beat.h"
#include "hardware/exanest/firmware.h"
#include "hardware/exanest/receiver.h"
#include "sim/capture.h"
#include "sim/kernel.h"
#include "sim/trace.h"

#define EXANEST_WATCHED_FPGAS  64u
#define EXANEST_CONTEXT_LANES  16u
#define EXANEST_SEND_PORTS_MAX 2u

struct exanest_machine;
struct exanest_watch;

/* Where packets pass one after the other. */
struct exanest_lane {
    struct exanest_watch *watch;
    uint32_t track, stopped_track;
    bool captures;
    bool stopped; /* The receiver has said XOFF, */
    uint64_t stopped_ps;
    uint64_t begin_ps; /* The packet under way, */
    uint8_t count;     /* and this number of its 64-bit words. */
    uint64_t words[2 * EXANEST_PACKET_WORDS_MAX];
};

struct exanest_watched_context {
    bool valid;
    uint8_t lane; /* EXANEST_CONTEXT_LANES: none was free. */
    uint16_t tid, sequence;
    uint32_t source;
    uint64_t begin_ps;
};

struct exanest_fpga_watch {
    struct exanest_watch *watch;
    /* Tracks. */
    uint32_t actions, used_track;
    uint32_t contexts[EXANEST_CONTEXT_LANES];
    struct exanest_lane sends[EXANEST_SEND_PORTS_MAX];
    uint16_t used;   /* Contexts, as the trace knows. */
    uint32_t busy;   /* Bit i: a context has lane i. */
    uint64_t judged; /* Packets that the receiver had judged when its contexts were looked at. */
    struct exanest_watched_context places[EXANEST_CONTEXTS_MAX];
};

/* Watches an open machine. NULL: neither trace nor capture is there. */
struct exanest_watch *exanest_watch_open(struct exanest_machine *machine, struct sim_trace *trace,
                                         struct sim_capture *capture);
/* Spans that are under way end here. `watch` may be NULL, here and below. */
void exanest_watch_end(struct exanest_watch *watch);
void exanest_watch_close(struct exanest_watch *watch);

/* 64-bit words of a packet pass from begin_ps to end_ps; the last ones of it, if `last`. */
void exanest_lane_take(struct exanest_lane *lane, const uint64_t *words, uint32_t count, bool last,
                       uint64_t begin_ps, uint64_t end_ps);
/* A whole word passes now. */
void exanest_lane_take_beat(struct exanest_lane *lane, const struct exanest_beat *beat);
/* The lane is stopped, or goes on. */
void exanest_lane_stop(struct exanest_lane *lane, bool stopped, uint64_t now_ps);

/* An action of the R5 that began then is done. */
void exanest_watch_action(struct exanest_fpga_watch *fpga,
                          const struct exanest_firmware_action *action, uint64_t value,
                          uint64_t began_ps);
/* Packets may have begun or ended contexts. */
void exanest_watch_contexts(struct exanest_fpga_watch *fpga,
                            const struct exanest_receiver *receiver);

#endif
