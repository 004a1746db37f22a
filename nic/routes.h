/* SPDX-License-Identifier: BSD-2-Clause
 *
 * routes - the addresses and UDP ports by which two NICs reach each other.
 *
 * Purpose    Numbers the routes between two ends: the same table for the engine that chooses one
 *            (nic_departure.route) and for the world that sends by it.
 * Inputs     The world's part, once, when the link is made; the peer's addresses, as HELLO and
 *            WELCOME name them (nic_routes_learn); responses to challenges.
 * Outputs    How many routes there are; which addresses and port route n is; whether two addresses
 *            are ends of one; which route is to be challenged, and which one a path takes.
 * Ownership  One struct for each link, the NIC's. The world keeps a pointer to it.
 * Units      Bytes of UDP payload.
 * Limits     NIC_ROUTES_MAX routes; NIC_ROUTE_GIDS_MAX addresses of each end beside the address
 *            vector's. The peer's addresses change NIC_ROUTES_TAUGHT_MAX times at most, because the
 *            world keeps state for each of them.
 * Source     docs/decisions/0026-several-ways.md.
 *
 * The address vector's source and destination are the first pair of addresses. Each other address
 * of ours makes a pair with the address of the peer that has the longest prefix in common with it:
 * of two interfaces in two subnets each leads to its own. Addresses left over make pairs with those
 * of the address vector. Route n is pair n modulo the number of pairs, from port n divided by it;
 * so the first routes are the different pairs, and route 0 is how everything else travels.
 *
 * A peer may name addresses that are not its own, and all connections to it share these addresses.
 * So no path takes a route to an address that the peer named before a challenge of a session was
 * responded to from there (nic/proof.h): until then the path takes the route of the address
 * vector's own addresses from the same port.
 */
#ifndef NIC_ROUTES_H
#define NIC_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "nic/proof.h"
#include "nic/types.h"

#define NIC_ROUTES_MAX        16
#define NIC_ROUTE_GIDS_MAX    3
#define NIC_ROUTES_TAUGHT_MAX 32

/* The bytes around the payload in a packet of the block transport: headers of 52 bytes at most, and
 * the ICRC. */
#define NIC_ROUTES_AROUND_PAYLOAD (52 + 4)

struct nic_routes {
    /* The world's part. */
    uint32_t datagram_bytes; /* The largest UDP payload that all of our interfaces take. */
    uint32_t grant_bytes;    /* The peer's receive buffer, if it is as large as ours. */
    uint8_t ports;     /* UDP source ports of each address: 1..NIC_ROUTES_MAX; 0: no routes yet. */
    uint8_t own_count; /* Addresses of ours beside the address vector's source. */
    uint64_t random;   /* A number that nobody can guess, which the world draws anew whenever it is
                          0: the next challenge takes it. */
    /* The peer's. */
    uint8_t peer_count;
    uint8_t taught;              /* How often the peer's part has changed. */
    uint8_t unproven;            /* Number of its addresses that are not proven. */
    uint8_t credit;              /* Half challenges that the peer has paid for. */
    struct instant challenge_at; /* None is due before; valid if peer_count is not 0. */
    /* The engine's. */
    bool blocks; /* A stream was agreed on: the world reports times and marks of packets. */
    bool far;    /* The round trip is long: the whole grant may be on its way. */
    bool doubts; /* The peer asks for data and has not answered a probe: the world sends one. */
    struct gid own[NIC_ROUTE_GIDS_MAX];
    struct gid peer[NIC_ROUTE_GIDS_MAX];     /* In the order of those of `own` that they go with. */
    struct proof proofs[NIC_ROUTE_GIDS_MAX]; /* In the order of `peer`. */
};

struct nic_route {
    struct gid source, destination;
    uint8_t pair; /* 0: the address vector's own addresses. */
    uint8_t port; /* 0: the port by which everything but blocks leaves. */
};

/* Pairs of addresses: 1..NIC_ROUTE_GIDS_MAX + 1. */
uint32_t nic_routes_pairs(const struct nic_routes *routes);
/* 1..NIC_ROUTES_MAX; 0 before the world has filled in its part. */
uint32_t nic_routes_count(const struct nic_routes *routes);
/* Route `number`, modulo the number of them: a peer may have taken back some. */
struct nic_route nic_routes_at(const struct nic_routes *routes, const struct nic_av *av,
                               uint32_t number);

/* The route of path number `path` out of `paths`, after it has left a route `turns` times. In time,
 * the path comes to all routes whose addresses are proven. */
uint8_t nic_routes_turned(const struct nic_routes *routes, uint32_t path, uint32_t paths,
                          uint32_t turns);

/* Do the block transport's packets with a payload of `mtu_bytes` fit? */
bool nic_routes_fit(const struct nic_routes *routes, uint32_t mtu_bytes);

/* The peer has these addresses beside av->destination. False: they may not be named (too many,
 * another family, multicast, no host's, of its own machine alone, or one twice), or they have
 * changed too often; then nothing changes. */
MUST_USE bool nic_routes_learn(struct nic_routes *routes, const struct nic_av *av,
                               const struct gid *gids, uint32_t count);

/* May a challenge be due? Then nic_routes_challenge says which. Most of the time this is one
 * comparison. */
static inline bool nic_routes_may_challenge(const struct nic_routes *routes, struct instant now)
{
    return routes->peer_count != 0 && instant_reached(now, routes->challenge_at);
}

struct nic_route_challenge {
    uint64_t number;
    uint8_t route;
};

/* A challenge that is to leave now, by its own route even if that is not proven. False: none. */
MUST_USE bool nic_routes_challenge(struct nic_routes *routes, struct instant now,
                                   struct nic_route_challenge *challenge);
/* False: no such challenge is out. */
MUST_USE bool nic_routes_on_response(struct nic_routes *routes, uint64_t number);

/* Responses that we owe: to the newest challenge by each pair of addresses. Zeroed: none. */
struct nic_responses {
    uint64_t numbers[NIC_ROUTE_GIDS_MAX + 1]; /* By the pair. */
    uint8_t due;                              /* One bit for each pair. */
};
/* A challenge came from `source` to `destination`. */
void nic_routes_owe(const struct nic_routes *routes, struct nic_responses *responses,
                    const struct nic_av *av, const struct gid *source,
                    const struct gid *destination, uint64_t number);
/* The next response, to leave by the route that its challenge came; one is due. */
struct nic_route_challenge nic_responses_next(struct nic_responses *responses);

/* Packets of the peer pay for challenges to addresses that never responded: two of them for one. */
void nic_routes_heard(struct nic_routes *routes);

/* Does this route lead to an address that the peer named? Then that address is proven, if
 * nic_routes_turned chose the route. */
bool nic_routes_is_named(const struct nic_routes *routes, uint32_t route);

/* The route back for a packet that came from `source` to `destination`; 0 if no other one fits. */
uint8_t nic_routes_back(const struct nic_routes *routes, const struct nic_av *av,
                        const struct gid *source, const struct gid *destination);

/* The counts say how many there are: loops over the entries rely on that. */
void nic_routes_check(const struct nic_routes *routes, const struct nic_responses *responses);

/* May a packet of this connection have come from `source` to `destination`? */
bool nic_routes_connect(const struct nic_routes *routes, const struct nic_av *av,
                        const struct gid *source, const struct gid *destination);

#endif
