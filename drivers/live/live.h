/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live - one NIC in real time: its engines, the ports that carry its packets, and the thread or
 * program that drives them.
 *
 * Purpose    The live world (world/world.h): nic/ with the udp and shm ports, clock, progress
 *            thread, faults, capture. This header has the functions that tools and tests of
 *            drivers/ need besides.
 * Inputs     A configuration.
 * Outputs    Packets, completions; notifications and events through live_listener.
 * Ownership  live_claim allocates, live_close frees. Objects live in the NIC between lock and
 *            unlock.
 * Threads    As world.h.
 * Time       CLOCK_MONOTONIC.
 * Units      Nanoseconds, bytes.
 * Source     ARCHITECTURE.md, "live world".
 */
#ifndef DRIVERS_LIVE_H
#define DRIVERS_LIVE_H

#include "world/world.h"

enum live_wire {
    LIVE_WIRE_AUTO, /* Shared memory to nonic processes of this machine and user, UDP to others. */
    LIVE_WIRE_UDP,
    LIVE_WIRE_SHM, /* Shared memory only: no packet leaves the machine. */
};

/* When local peers map memory of regions (docs/decisions/0061). */
enum live_map {
    LIVE_MAP_AUTO, /* When accesses through the kernel have cost as much. */
    LIVE_MAP_NOW,  /* When it is registered. */
    LIVE_MAP_NEVER,
};

/* All strings may be NULL. Read from the environment by live_config_from_environment. */
struct live_config {
    enum live_personality nic;    /* NONIC_NIC=roce|efa */
    enum live_wire wire;          /* NONIC_WIRE=auto|udp|shm */
    enum nic_transport transport; /* NONIC_TRANSPORT=rc|block|auto: of connections over UDP. */
    const char *device;  /* NONIC_DEVICE=IFACE|ADDR[,...]; NULL: a loopback address of our own. */
    const char *capture; /* NONIC_CAPTURE=FILE.pcapng */
    const char *fault;   /* NONIC_FAULT=drop=0.01,... */
    const char *odd;     /* NONIC_ODD=SEED,... (drivers/odd.h) */
    bool stats;          /* NONIC_STATS=1: print the counters to stderr at exit. */
    /* NONIC_BATCH=1..256: queue pairs whose turn is prepared together, and requests of a polling
     * program that may wait for one another. 1: one by one, without prefetching. */
    uint32_t batch;
    uint32_t paths; /* NONIC_PATHS=1..16: source ports of each address at a time; 0: usual. */
    enum live_map map_memory; /* NONIC_MAP_MEMORY=auto|now|never */
    bool map_queues;          /* NONIC_MAP_QUEUES=1: of an EFA device (verbs/efa_mapped.h). */
    bool strict;              /* NONIC_STRICT=1: refuse what hardware refuses (verbs/strict.h). */
};

/* False: `error` says which variable is wrong and what it may be. */
bool live_config_from_environment(struct live_config *config, char *error, size_t error_bytes);

/* The address is claimed and the sockets are bound; threads start in live_start. NULL with a reason
 * in `error`. */
struct live *live_claim(const struct live_config *config, char *error, size_t error_bytes);

const char *live_device_text(
    const struct live *live); /* "127.84.3.9 (loopback, private to this process)" */

/* The ports that carry the packets, for people. */
struct live_ports {
    bool udp, segmentation, shm;
    uint32_t paths; /* UDP source ports of each address, for connections that speak blocks. */
    uint32_t receive_bytes, window_bytes;
};
void live_describe_ports(const struct live *live, struct live_ports *ports);

#endif
