/* SPDX-License-Identifier: BSD-2-Clause
 *
 * station - a source and sink of packets at a port of a crossbar, without a NIC or a host.
 *
 * Purpose    Loads a switch as its papers do, and checks every byte that comes out of it.
 * Ownership  The station owns its queues; packets are the fabric's.
 * Limits     FORTH_PORTS_MAX stations a crossbar.
 * Source     TR376 2.1 (virtual output queues), 3.1.5; FNX-47.
 */
#ifndef LAB_FORTH_STATION_H
#define LAB_FORTH_STATION_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/forth/scheduler.h"
#include "lab/forth/link.h"
#include "sim/traffic.h"

struct station_config {
    uint32_t index, nodes;
    bool one_queue; /* One queue for all destinations: its head blocks the others. */
    /* The load on the link, 0..1; at 1 there is always a packet for every destination. */
    double load;
    double unbalance;          /* 0: uniform over the others; 1: all to the station opposite. */
    int only;                  /* A single destination, which may be the station itself; -1: all. */
    uint32_t least, most;      /* QWords of a packet: uniform between the two. */
    uint64_t packets;          /* How many packets the station makes in all. */
    uint64_t warm_ps;          /* Packets before this time are not counted in the rates. */
    uint32_t crosspoint_words; /* The room of a crosspoint; or FORTH_BUFFER_UNBOUNDED. */
    bool crc_ignored;          /* Wrong packets are taken for good ones. */
    uint32_t credit;           /* Cycles of a credit on the link. */
    uint64_t refresh_ps;
};

/* The packets to one destination. */
struct station_flow {
    struct forth_window window;
    uint16_t qwords; /* The size of the packet that is always there, if the station is saturated. */
    uint64_t number; /* The number of the next payload. */
    struct list queue; /* If it is not saturated: the packets that have arrived to be sent. */
};

struct station {
    struct sim_event send; /* A packet is to be sent. The members up to `end` serve that. */
    struct forth_fabric *fabric;
    struct forth_link *out;
    uint64_t eligible; /* Bit d: something is queued for d. A single queue uses bit 0. */
    uint32_t last;
    struct forth_ledger ledger; /* The words that have been taken out of our own FIFO. */
    uint64_t made, sent, received;
    struct station_config config;
    struct forth_end end;
    struct prng prng;
    struct sim_pool waiting; /* Descriptors of packets that have arrived to be sent. */
    uint64_t flagged, header_errors, bad_credits, not_queued;
    uint64_t received_qwords, warm_qwords, warm_packets; /* The latter two since warm_ps. */
    struct list queue; /* The queue for all destinations, if there is only one. */
    struct station_flow flows[FORTH_PORTS_MAX];
    struct sim_sink sinks[FORTH_PORTS_MAX];
    struct sim_event arrival, refresh;
};

void station_open(struct station *station, struct forth_fabric *fabric, struct forth_link *out,
                  const struct station_config *config, uint64_t seed);
void station_close(struct station *station);

/* Whether the station has made all its packets, and all have left. */
bool station_done(const struct station *station);

#endif
