/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ways - by which addresses and UDP ports two NICs reach each other.
 *
 * Purpose    Numbers the ways between two ends: the same table for the engine that chooses one
 *            (nic_departure.way) and for the world that sends by it.
 * Inputs     The world's part, once, when the link is made; the peer's addresses, as HELLO and
 *            WELCOME name them (nic_ways_learn).
 * Outputs    How many ways there are; which addresses and port way n is; whether two addresses are
 *            ends of one.
 * Ownership  One struct for each link, the NIC's. The world keeps a pointer to it.
 * Threads    The NIC's caller.
 * Time       Not used.
 * Units      Bytes of UDP payload.
 * Limits     NIC_WAYS_MAX ways; NIC_WAY_GIDS_MAX addresses of each end beside the path's own; these
 *            change NIC_WAYS_TAUGHT_MAX times at most, because the world keeps what each led to.
 * Source     docs/decisions/0026-several-ways.md.
 *
 * The path's own source and destination are the first pair of addresses. Each other address of ours
 * makes a pair with the address of the peer that has the longest prefix in common with it: of two
 * interfaces in two subnets each leads to its own. Addresses left over make pairs with the path's
 * own. Way n is pair n modulo the number of pairs, from port n divided by it; so the first ways are
 * the different pairs, and way 0 is how everything else travels.
 */
#ifndef NIC_WAYS_H
#define NIC_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "nic/types.h"

#define NIC_WAYS_MAX        16
#define NIC_WAY_GIDS_MAX    3
#define NIC_WAYS_TAUGHT_MAX 32

/* What stands around the payload of the block transport's packets that have one: headers of 52
 * bytes at most, and the ICRC. */
#define NIC_WAYS_AROUND_PAYLOAD (52 + 4)

struct nic_ways {
    /* The world's part. */
    uint32_t datagram_bytes; /* The largest UDP payload that all of our interfaces take. */
    uint32_t grant_bytes;    /* The peer's receive buffer holds so much, if it is like ours. */
    uint8_t ports;     /* UDP source ports of each address: 1..NIC_WAYS_MAX; 0: no ways yet. */
    uint8_t own_count; /* Addresses of ours beside the path's source. */
    /* The peer's. */
    uint8_t peer_count;
    uint8_t taught; /* So many times the peer's part has changed. */
    /* The engine's. */
    bool blocks; /* A stream was agreed on: when packets come and what marks they have matters. */
    bool far;    /* The round trip is long: the whole grant may be on its way. */
    struct gid own[NIC_WAY_GIDS_MAX];
    struct gid peer[NIC_WAY_GIDS_MAX]; /* In the order of those of `own` that they go with. */
};

struct nic_way {
    struct gid source, destination;
    uint8_t pair; /* 0: the path's own addresses. */
    uint8_t port; /* 0: the port that everything is sent from today. */
};

/* Pairs of addresses: 1..NIC_WAY_GIDS_MAX + 1. */
uint32_t nic_ways_pairs(const struct nic_ways *ways);
/* 1..NIC_WAYS_MAX; 0 before the world has filled in its part. */
uint32_t nic_ways_count(const struct nic_ways *ways);
/* Way `number`, modulo the number of them: a peer may have taken back some. */
struct nic_way nic_ways_at(const struct nic_ways *ways, const struct nic_path *path,
                           uint32_t number);

/* The way of one of `paths` paths that has left its way so often. It comes to all of them. */
uint8_t nic_ways_turned(const struct nic_ways *ways, uint32_t path, uint32_t paths, uint32_t turns);

/* Do the block transport's packets with a payload of `mtu_bytes` fit? */
bool nic_ways_fit(const struct nic_ways *ways, uint32_t mtu_bytes);

/* The peer has these addresses beside path->destination. False: these are none that anybody may
 * name (too many, another family, multicast, no host's, of its own machine alone, or one twice), or
 * they have changed too often; then nothing changes. */
MUST_USE bool nic_ways_learn(struct nic_ways *ways, const struct nic_path *path,
                             const struct gid *gids, uint32_t count);

/* May a packet of this connection have come from `source` to `destination`? */
bool nic_ways_connect(const struct nic_ways *ways, const struct nic_path *path,
                      const struct gid *source, const struct gid *destination);

#endif
