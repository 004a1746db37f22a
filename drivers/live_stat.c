/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_stat - the counters, for `nonic stat` and `nonic run --stats`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "drivers/live_internal.h"
#include "drivers/stat_server.h"

#define PORT_LINES 9

/* The NIC's counters, then the ports' own. Returns how many. */
static uint32_t collect(const struct live *live, struct stat_line lines[COUNTER_COUNT + PORT_LINES])
{
    const struct nic_counters *counters = nic_counters(live->nic);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        lines[i].name = nic_counter_name((enum nic_counter)i);
        lines[i].value = counters->values[i];
    }
    const struct udp_counters *udp = &live->udp.counters;
    const struct stat_line ports[PORT_LINES] = {
        {"udp_send_calls", udp->send_calls},
        {"udp_receive_calls", udp->receive_calls},
        {"udp_datagrams_sent", udp->datagrams_sent},
        {"udp_datagrams_received", udp->datagrams_received},
        {"udp_send_failed", udp->send_failed},
        {"udp_implausible_id", udp->implausible_identification},
        {"udp_probes_sent", udp->probes_sent},
        {"udp_probes_answered", udp->probes_answered},
        {"udp_probes_lost", udp->probes_lost},
    };
    for (uint32_t i = 0; i < PORT_LINES; i++) {
        lines[COUNTER_COUNT + i] = ports[i];
    }
    return COUNTER_COUNT + PORT_LINES;
}

void live_serve_stat(struct live *live)
{
    struct stat_line lines[COUNTER_COUNT + PORT_LINES];
    const uint32_t count = collect(live, lines);
    stat_server_serve(live->stat_fd, live_device_text(live), lines, count);
}

void live_print_stats(const struct live *live)
{
    struct stat_line lines[COUNTER_COUNT + PORT_LINES];
    const uint32_t count = collect(live, lines);
    fprintf(stderr, "nonic: counters of process %d on %s\n", getpid(), live_device_text(live));
    for (uint32_t i = 0; i < count; i++) {
        if (lines[i].value != 0) {
            fprintf(stderr, "nonic: %24s %" PRIu64 "\n", lines[i].name, lines[i].value);
        }
    }
}
