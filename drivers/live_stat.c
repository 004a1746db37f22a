/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_stat - the counters, for `nonic stat` and `nonic run --stats`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "drivers/live_internal.h"
#include "drivers/stat_server.h"

void live_serve_stat(struct live *live)
{
    struct stat_line lines[COUNTER_COUNT];
    const struct nic_counters *counters = nic_counters(live->nic);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        lines[i].name = nic_counter_name((enum nic_counter)i);
        lines[i].value = counters->values[i];
    }
    stat_server_serve(live->stat_fd, live_device_text(live), lines, COUNTER_COUNT);
}

void live_print_stats(const struct live *live)
{
    const struct nic_counters *counters = nic_counters(live->nic);
    fprintf(stderr, "nonic: counters of process %d on %s\n", getpid(), live_device_text(live));
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        if (counters->values[i] != 0) {
            fprintf(stderr, "nonic: %24s %" PRIu64 "\n", nic_counter_name((enum nic_counter)i),
                    counters->values[i]);
        }
    }
}
