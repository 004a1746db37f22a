/* SPDX-License-Identifier: BSD-2-Clause
 *
 * trace - events and their times, for people: a file that a timeline or waveform viewer opens.
 *
 * Purpose    Tracks of spans (something lasts) and of values (a level changes), written as Chrome
 *            trace events (Perfetto, chrome://tracing) or as VCD (GTKWave, Surfer).
 * Ownership  Names are kept by pointer: string literals, or what lives as long as the trace.
 * Limits     SIM_TRACE_RECORDS_MAX records; later ones are counted and reported.
 * Source     "Trace Event Format" (Google, 2016); IEEE 1364-2005, clause 18 (VCD).
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_TRACE_RECORDS_MAX (4u << 20)
#define SIM_TRACE_TRACKS_MAX  4096u

struct sim_trace;

/* The path's end chooses the format: .json or .vcd. NULL, and why in `error`: another end, or the
 * file cannot be written. */
struct sim_trace *sim_trace_open(const char *path, char *error, size_t error_bytes);

/* A track of spans, or (bits > 0) of values of `bits` bits, in a group ("node 0", "transmitter").
 * The number after the name, if not negative, is appended to the group. */
uint32_t sim_trace_track(struct sim_trace *trace, const char *group, int number, const char *name,
                         uint32_t bits);

/* Records that something named `what`, with a number, lasted from begin to end. */
void sim_trace_span(struct sim_trace *trace, uint32_t track, const char *what, uint64_t number,
                    uint64_t begin_ps, uint64_t end_ps);
void sim_trace_value(struct sim_trace *trace, uint32_t track, uint64_t at_ps, uint64_t value);

/* The number of spans and values so far. */
uint32_t sim_trace_count(const struct sim_trace *trace);

/* Writes the file and frees the trace. Returns false, and why, if it could not be written. */
bool sim_trace_close(struct sim_trace *trace, char *error, size_t error_bytes);

#endif
