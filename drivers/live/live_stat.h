/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_stat - the counters, for `nonic stat` and `nonic run --stats`.
 */
#ifndef DRIVERS_LIVE_STAT_H
#define DRIVERS_LIVE_STAT_H

struct live;

/* Answers `nonic stat`. */
void live_serve_stat(struct live *live);
void live_print_stats(const struct live *live);
/* The packets that the UDP port dropped or handed on are counted among the NIC's. */
void live_count_port(struct live *live);

#endif
