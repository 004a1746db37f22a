/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crossbar - the laboratory's speed with packets through crossbars under full load.
 *
 * usage: crossbar PORTS PACKETS [SWITCHES [LOAD]]
 *
 * At load 1, the default, every port has packets of 24 to 512 bytes for every other at any time.
 * Their payload is written, its CRC made, checked and the bytes compared at the other end. Several
 * switches stand side by side in one world. Prints one JSON object.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lab/forth/experiments.h"

#define QWORDS_LEAST 1
#define QWORDS_MOST  62

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void load(struct forth_yard *yard, uint64_t each, double share)
{
    for (uint32_t i = 0; i < yard->count; i++) {
        struct station_config config = forth_station_config(yard->run, i, yard->count);
        config.least = QWORDS_LEAST;
        config.most = QWORDS_MOST;
        config.packets = each;
        config.load = share;
        forth_yard_station(yard, &config);
    }
}

static uint64_t received(const struct forth_yard *yards, uint32_t switches)
{
    uint64_t packets = 0;
    for (uint32_t k = 0; k < switches; k++) {
        for (uint32_t i = 0; i < yards[k].count; i++) {
            packets += yards[k].stations[i].received;
        }
    }
    return packets;
}

int main(int argc, char **argv)
{
    static struct lab_run run;
    const uint32_t ports = argc > 2 ? (uint32_t)atoi(argv[1]) : 0;
    const uint64_t wanted = argc > 2 ? (uint64_t)atoll(argv[2]) : 0;
    const uint32_t switches = argc > 3 ? (uint32_t)atoi(argv[3]) : 1;
    const double share = argc > 4 ? atof(argv[4]) : 1;
    if (ports < 2 || !(share > 0 && share <= 1) || ports > FORTH_PORTS_MAX || wanted == 0 ||
        switches == 0) {
        fprintf(stderr, "usage: crossbar PORTS PACKETS [SWITCHES [LOAD]]\n");
        return 2;
    }
    char error[LAB_TEXT_BYTES];
    lab_prepare(&run, lab_find("forth/soak"), 1);
    CHECK(lab_set_all(&run, "bit_errors=0 lost_credits=0 drift=0", error, sizeof(error)));
    struct sim *sim = calloc(1, sizeof(*sim));
    struct forth_yard *yards = calloc(switches, sizeof(yards[0]));
    CHECK(sim != NULL && yards != NULL);
    const uint64_t each = wanted / ports / switches;
    sim_init(sim, 1);
    for (uint32_t k = 0; k < switches; k++) {
        forth_yard_open_in(&yards[k], &run, sim, ports);
        load(&yards[k], each, share);
    }
    const uint64_t all = each * ports * switches;
    const double begun = seconds();
    while (received(yards, switches) < all) {
        sim_run_until(sim, sim->now_ps + 100000000);
    }
    const double taken = seconds() - begun;
    for (uint32_t k = 0; k < switches; k++) {
        forth_yard_check(&yards[k]);
    }
    if (run.failure[0] != '\0') {
        fprintf(stderr, "crossbar: %s\n", run.failure);
        return 1;
    }
    printf("{\"ports\":%u,\"switches\":%u,\"packets\":%" PRIu64 ",\"events\":%" PRIu64
           ",\"wall_s\":%.6f,\"packets_per_s\":%.0f,\"events_per_s\":%.0f}\n",
           ports, switches, all, sim->events, taken, (double)all / taken,
           (double)sim->events / taken);
    for (uint32_t k = 0; k < switches; k++) {
        forth_yard_close(&yards[k]);
    }
    free(yards);
    free(sim);
    return 0;
}
