/* SPDX-License-Identifier: BSD-2-Clause
 *
 * watch - the events of a machine, written into a trace while somebody looks.
 *
 * Purpose    Spans of packets on the lines of boards and receiver and of the states of queue pairs;
 *            levels of the switch's queues, of pauses, and of packets that are not acknowledged.
 * Ownership  The machine owns it. The trace is the caller's, and is closed after the watch's end.
 * Units      Picoseconds; bytes of frames without preamble and gap.
 * Source     Our choice.
 *
 * The machine has a pointer to the watch, which is NULL while nobody looks: that costs one branch.
 */
#ifndef LAB_FEROCE_WATCH_H
#define LAB_FEROCE_WATCH_H

#include "lab/feroce/packet.h"
#include "sim/trace.h"

struct feroce_machine;
struct feroce_watch;

/* Watches an open machine. */
struct feroce_watch *feroce_watch_open(const struct feroce_machine *machine,
                                       struct sim_trace *trace);
/* Spans that are under way end here. `watch` may be NULL. */
void feroce_watch_close(struct feroce_watch *watch);

/* A packet begins on the line of its sender. */
void feroce_watch_line(struct feroce_watch *watch, const struct feroce_packet_on_line *packet);
/* Something has happened in the machine: levels and states may have changed. */
void feroce_watch_look(struct feroce_watch *watch);

#endif
