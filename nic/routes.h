/* SPDX-License-Identifier: BSD-2-Clause
 *
 * routes - by which addresses and UDP ports two NICs reach each other.
 *
 * Purpose    Numbers the routes between two ends: the same table for the engine that chooses one
 *            (nic_departure.route) and for the world that sends by it.
 * Inputs     The world's part, once, when the link is made; the peer's addresses, as HELLO and
 *            WELCOME name them (nic_routes_learn); responses to challenges.
 * Outputs    How many routes there are; which addresses and port route n is; whether two addresses
 *            are ends of one; which route is to be challenged, and which one a path takes.
 * Ownership  One struct for each link, the NIC's. The world keeps a pointer to it.
 * Threads    The NIC's caller.
 * Time       `now` is an argument wherever it matters.
 * Units      Bytes of UDP payload.
 * Limits     NIC_ROUTES_MAX routes; NIC_WAY_GIDS_MAX addresses of each end beside the address
 *            vector's; these change NIC_ROUTES_TAUGHT_MAX times at most, because the world keeps
 *            what each led to.
 * Source     docs/decisions/0026-several-routes.md.
 *
 * The address vector's source and destination are the first pair of addresses. Each other address
 * of ours makes a pair with the address of the peer that has the longest prefix in common with it:
 * of two interfaces in two subnets each leads to its own. Addresses left over make pairs with those
 * of the address vector. Route n is pair n modulo the number of pairs, from port n divided by it;
 * so the first routes are the different pairs, and route 0 is how everything else travels.
 *
 * A peer may name addresses that are not its own, and all connections to it share what it said. So
 * no path takes a route to an address that the peer named before somebody responded from there to a
 * challenge of a session (nic/proof.h): until then it takes the route of the address vector's own
 * addresses from the same port.
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

/* What stands around the payload of the block transport's packets that have one: headers of 52
 * bytes at most, and the ICRC. */
#define NIC_ROUTES_AROUND_PAYLOAD (52 + 4)

struct nic_routes {
    /* The world's part. */
    uint32_t datagram_bytes; /* The largest UDP payload that all of our interfaces take. */
    uint32_t grant_bytes;    /* The peer's receive buffer holds so much, if it is like ours. */
    uint8_t ports;     /* UDP source ports of each address: 1..NIC_ROUTES_MAX; 0: no routes yet. */
    uint8_t own_count; /* Addresses of ours beside the address vector's source. */
    uint64_t random;   /* A number that nobody can guess, which the world draws anew whenever it is
                          0: the next challenge takes it. */
    /* The peer's. */
    uint8_t peer_count;
    uint8_t taught;              /* So many times the peer's part has changed. */
    uint8_t unproven;            /* So many of its addresses may not be sent to. */
    uint8_t credit;              /* Half challenges that the peer has paid for. */
    struct instant challenge_at; /* None is due before; valid if peer_count is not 0. */
    /* The engine's. */
    bool blocks; /* A stream was agreed on: when packets come and what marks they have matters. */
    bool far;    /* The round trip is long: the whole grant may be on its way. */
    bool doubts; /* The peer asks for data and has not answered a probe: the world sends one. */
    struct gid own[NIC_ROUTE_GIDS_MAX];
    struct gid peer[NIC_ROUTE_GIDS_MAX];     /* In the order of those of `own` that they go with. */
    struct proof proofs[NIC_ROUTE_GIDS_MAX]; /* In the order of `peer`. */
};

struct nic_route {
    struct gid source, destination;
    uint8_t pair; /* 0: the address vector's own addresses. */
    uint8_t port; /* 0: the port that everything is sent from today. */
};

/* Pairs of addresses: 1..NIC_WAY_GIDS_MAX + 1. */
uint32_t nic_routes_pairs(const struct nic_routes *routes);
/* 1..NIC_ROUTES_MAX; 0 before the world has filled in its part. */
uint32_t nic_routes_count(const struct nic_routes *routes);
/* Route `number`, modulo the number of them: a peer may have taken back some. */
struct nic_route nic_routes_at(const struct nic_routes *routes, const struct nic_av *av,
                               uint32_t number);

/* The route of one of `paths` paths that has left its route `turns` times. It comes to all of them
 * that lead to addresses that are proven. */
uint8_t nic_routes_turned(const struct nic_routes *routes, uint32_t path, uint32_t paths,
                          uint32_t turns);

/* Do the block transport's packets with a payload of `mtu_bytes` fit? */
bool nic_routes_fit(const struct nic_routes *routes, uint32_t mtu_bytes);

/* The peer has these addresses beside av->destination. False: these are none that anybody may
 * name (too many, another family, multicast, no host's, of its own machine alone, or one twice), or
 * they have changed too often; then nothing changes. */
MUST_USE bool nic_routes_learn(struct nic_routes *routes, const struct nic_av *av,
                               const struct gid *gids, uint32_t count);

/* Is a challenge due, of which `nic_routes_challenge` says more? Most of the time that is one
 * comparison. */
static inline bool nic_routes_may_challenge(const struct nic_routes *routes, struct instant now)
{
    return routes->peer_count != 0 && instant_reached(now, routes->challenge_at);
}

struct nic_route_challenge {
    uint64_t number;
    uint8_t route;
};

/* A challenge that is to leave now, by its own route and whatever that has proved. False: none. */
MUST_USE bool nic_routes_challenge(struct nic_routes *routes, struct instant now,
                                   struct nic_route_challenge *challenge);
/* False: no such challenge is out. */
MUST_USE bool nic_routes_on_response(struct nic_routes *routes, uint64_t number);
/* Packets of the peer pay for challenges to addresses that never responded: two of them for one. */
void nic_routes_heard(struct nic_routes *routes);

/* Does this route lead to an address that the peer named? Then that is proven, if nic_routes_turned
 * said the way. */
bool nic_routes_is_named(const struct nic_routes *routes, uint32_t route);

/* The route by which a packet goes back that came from `source` to `destination`; 0: none other. */
uint8_t nic_routes_back(const struct nic_routes *routes, const struct nic_av *av,
                        const struct gid *source, const struct gid *destination);

/* May a packet of this connection have come from `source` to `destination`? */
bool nic_routes_connect(const struct nic_routes *routes, const struct nic_av *av,
                        const struct gid *source, const struct gid *destination);

#endif
