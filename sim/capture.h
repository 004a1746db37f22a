/* SPDX-License-Identifier: BSD-2-Clause
 *
 * capture - packets of a world as a pcapng file, with picoseconds as their time; or nanoseconds,
 * since tshark 4.0 mistakes picoseconds for others 18 ms after the begin of a second.
 */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/pcapng.h"

struct sim_capture;

/* NULL, and why in `error`, if the file cannot be written. */
struct sim_capture *sim_capture_open(const char *path, enum pcapng_link link, char *error,
                                     size_t error_bytes);
/* The same, with times in nanoseconds, rounded down: for worlds that last. */
struct sim_capture *sim_capture_open_ns(const char *path, enum pcapng_link link, char *error,
                                        size_t error_bytes);
void sim_capture_packet(struct sim_capture *capture, uint64_t at_ps, const uint8_t *packet,
                        size_t bytes);
/* With a comment of at most PCAPNG_COMMENT_BYTES_MAX, which readers show with the packet. */
void sim_capture_commented(struct sim_capture *capture, uint64_t at_ps, const uint8_t *packet,
                           size_t bytes, const char *comment);
/* Packets so far. */
uint64_t sim_capture_count(const struct sim_capture *capture);
/* False, and why, if not everything could be written. */
bool sim_capture_close(struct sim_capture *capture, char *error, size_t error_bytes);

#endif
