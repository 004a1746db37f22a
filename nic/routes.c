/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/routes.h"

#include "wire/inet.h"

/* Bytes that go to an unproven address are paid for by bytes that came from the peer: together with
 * all other replies, they are at most three times as many. A challenge has 56 bytes with IPv4's
 * header. A packet of the peer pays for half a challenge: it has 60 bytes or more, and an answer to
 * it has at most 132. */
#define PRICE      2
#define CREDIT_MAX 16

uint32_t nic_routes_pairs(const struct nic_routes *routes)
{
    return 1u + (routes->own_count > routes->peer_count ? routes->own_count : routes->peer_count);
}

uint32_t nic_routes_count(const struct nic_routes *routes)
{
    const uint32_t count = nic_routes_pairs(routes) * routes->ports;
    return count < NIC_ROUTES_MAX ? count : NIC_ROUTES_MAX;
}

struct nic_route nic_routes_at(const struct nic_routes *routes, const struct nic_av *av,
                               uint32_t number)
{
    CHECK(routes->ports > 0);
    const uint32_t pairs = nic_routes_pairs(routes), route = number % nic_routes_count(routes);
    const uint32_t pair = route % pairs;
    return (struct nic_route){
        .source = pair == 0 || pair > routes->own_count ? av->source : routes->own[pair - 1],
        .destination =
            pair == 0 || pair > routes->peer_count ? av->destination : routes->peer[pair - 1],
        .pair = (uint8_t)pair,
        .port = (uint8_t)(route / pairs),
    };
}

static bool have_common_factor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a != 1;
}

bool nic_routes_is_named(const struct nic_routes *routes, uint32_t route)
{
    const uint32_t pair = route % nic_routes_pairs(routes);
    return pair != 0 && pair <= routes->peer_count;
}

/* `route` if its address is proven; else the route from the same port between the address vector's
 * own addresses. */
static uint8_t proven_route(const struct nic_routes *routes, uint32_t route)
{
    if (LIKELY(routes->unproven == 0)) {
        return (uint8_t)route;
    }
    const uint32_t pair = route % nic_routes_pairs(routes);
    const bool proven = !nic_routes_is_named(routes, route) || routes->proofs[pair - 1].given;
    return (uint8_t)(proven ? route : route - pair);
}

uint8_t nic_routes_turned(const struct nic_routes *routes, uint32_t path, uint32_t paths,
                          uint32_t turns)
{
    const uint32_t count = nic_routes_count(routes);
    if (turns == 0 || count == 0) {
        return proven_route(routes, count == 0 ? 0 : path % count);
    }
    uint32_t step = paths;
    while (have_common_factor(count, step)) {
        step++;
    }
    return proven_route(routes, (path + turns * step) % count);
}

bool nic_routes_fit(const struct nic_routes *routes, uint32_t mtu_bytes)
{
    return mtu_bytes + NIC_ROUTES_AROUND_PAYLOAD <= routes->datagram_bytes;
}

/* -- Addresses that the peer may name -----------------------------------------------------------*/

/* 127.0.0.0/8 and ::1. */
static bool is_loopback(const struct gid *gid)
{
    static const struct gid one = {{[15] = 1}};
    return inet_is_loopback_ipv4(gid->bytes) || gid_equal(gid, &one);
}

/* fe80::/10 needs a scope, which a GID does not carry. 169.254.0.0/16 is allowed, since some
 * networks use it. */
static bool needs_scope(const struct gid *gid)
{
    return gid->bytes[0] == 0xfe && (gid->bytes[1] & 0xc0) == 0x80;
}

/* A peer elsewhere must not make us send to programs of our own machine. */
static bool may_be_named(const struct nic_av *av, const struct gid *gid)
{
    return inet_is_ipv4(gid->bytes) == inet_is_ipv4(av->destination.bytes) &&
           !inet_is_multicast(gid->bytes) && !inet_is_any(gid->bytes) && !needs_scope(gid) &&
           (is_loopback(&av->destination) || !is_loopback(gid));
}

static bool is_among(const struct gid *gids, uint32_t count, const struct gid *gid)
{
    for (uint32_t i = 0; i < count; i++) {
        if (gid_equal(&gids[i], gid)) {
            return true;
        }
    }
    return false;
}

static bool all_may_be_named(const struct nic_av *av, const struct gid *gids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!may_be_named(av, &gids[i]) || gid_equal(&gids[i], &av->destination) ||
            is_among(gids, i, &gids[i])) {
            return false;
        }
    }
    return true;
}

/* -- Pairs of addresses -------------------------------------------------------------------------*/

static uint32_t common_bits(const struct gid *a, const struct gid *b)
{
    uint32_t bits = 0;
    while (bits < 128 && ((a->bytes[bits / 8] ^ b->bytes[bits / 8]) & 0x80 >> bits % 8) == 0) {
        bits++;
    }
    return bits;
}

/* The peer's address at `at` or behind that is nearest to `own`. */
static uint32_t nearest(const struct gid *peer, uint32_t at, uint32_t count, const struct gid *own)
{
    uint32_t best = at;
    for (uint32_t i = at + 1; i < count; i++) {
        if (common_bits(&peer[i], own) > common_bits(&peer[best], own)) {
            best = i;
        }
    }
    return best;
}

static void arrange(const struct nic_routes *routes, struct gid *peer, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < routes->own_count; i++) {
        const uint32_t best = nearest(peer, i, count, &routes->own[i]);
        const struct gid moved = peer[i];
        peer[i] = peer[best];
        peer[best] = moved;
    }
}

static bool are_known(const struct nic_routes *routes, const struct gid *gids, uint32_t count)
{
    bool known = count == routes->peer_count;
    for (uint32_t i = 0; i < count && known; i++) {
        known = is_among(routes->peer, routes->peer_count, &gids[i]);
    }
    return known;
}

static void count_unproven(struct nic_routes *routes)
{
    routes->unproven = 0;
    routes->challenge_at = INSTANT_NEVER;
    for (uint32_t i = 0; i < routes->peer_count; i++) {
        routes->unproven = (uint8_t)(routes->unproven + !routes->proofs[i].given);
        routes->challenge_at = instant_earlier(routes->challenge_at, routes->proofs[i].next);
    }
}

static void earn(struct nic_routes *routes, uint32_t credit)
{
    routes->credit =
        (uint8_t)(routes->credit + credit < CREDIT_MAX ? routes->credit + credit : CREDIT_MAX);
}

/* A new address is not proven yet; the packet that named it pays for one challenge. */
static void keep_proof(struct nic_routes *routes, uint32_t place, const struct nic_routes *before)
{
    routes->proofs[place] = (struct proof){0};
    for (uint32_t i = 0; i < before->peer_count; i++) {
        if (gid_equal(&before->peer[i], &routes->peer[place])) {
            routes->proofs[place] = before->proofs[i];
            proof_renew(&routes->proofs[place]);
            return;
        }
    }
    earn(routes, PRICE);
}

bool nic_routes_learn(struct nic_routes *routes, const struct nic_av *av, const struct gid *gids,
                      uint32_t count)
{
    if (count > NIC_ROUTE_GIDS_MAX || !all_may_be_named(av, gids, count)) {
        return false;
    }
    if (are_known(routes, gids, count)) {
        for (uint32_t i = 0; i < count; i++) {
            proof_renew(&routes->proofs[i]);
        }
        count_unproven(routes);
        return true;
    }
    if (routes->taught == NIC_ROUTES_TAUGHT_MAX) {
        return false;
    }
    const struct nic_routes before = *routes;
    for (uint32_t i = 0; i < count; i++) {
        routes->peer[i] = gids[i];
    }
    arrange(routes, routes->peer, count);
    routes->peer_count = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        keep_proof(routes, i, &before);
    }
    routes->taught++;
    count_unproven(routes);
    return true;
}

/* -- Proofs -------------------------------------------------------------------------------------*/

/* The next address whose challenge is due; peer_count: none. */
static uint32_t find_due(const struct nic_routes *routes, struct instant now)
{
    uint32_t i = 0;
    while (i < routes->peer_count && !proof_due(&routes->proofs[i], routes->credit >= PRICE, now)) {
        i++;
    }
    return i;
}

bool nic_routes_challenge(struct nic_routes *routes, struct instant now,
                          struct nic_route_challenge *challenge)
{
    const uint32_t i = find_due(routes, now);
    if (i == routes->peer_count || routes->random == 0) {
        return false;
    }
    struct proof *proof = &routes->proofs[i];
    routes->credit = (uint8_t)(routes->credit - (proof->once ? 0 : PRICE));
    challenge->number = proof_challenge(proof, routes->random, now);
    challenge->route = (uint8_t)(i + 1);
    if (challenge->number == routes->random) {
        routes->random = 0;
    }
    count_unproven(routes);
    return true;
}

bool nic_routes_on_response(struct nic_routes *routes, uint64_t number)
{
    for (uint32_t i = 0; i < routes->peer_count; i++) {
        if (proof_on_response(&routes->proofs[i], number)) {
            count_unproven(routes);
            return true;
        }
    }
    return false;
}

void nic_routes_heard(struct nic_routes *routes)
{
    earn(routes, 1);
}

uint8_t nic_routes_back(const struct nic_routes *routes, const struct nic_av *av,
                        const struct gid *source, const struct gid *destination)
{
    for (uint8_t i = 1; i < nic_routes_pairs(routes); i++) {
        const struct nic_route route = nic_routes_at(routes, av, i);
        if (gid_equal(&route.source, destination) && gid_equal(&route.destination, source)) {
            return i;
        }
    }
    return 0;
}

void nic_routes_owe(const struct nic_routes *routes, struct nic_responses *responses,
                    const struct nic_av *av, const struct gid *source,
                    const struct gid *destination, uint64_t number)
{
    const uint8_t route = nic_routes_back(routes, av, source, destination);
    responses->numbers[route] = number;
    responses->due |= (uint8_t)(1u << route);
}

struct nic_route_challenge nic_responses_next(struct nic_responses *responses)
{
    CHECK(responses->due != 0);
    const uint8_t route = (uint8_t)__builtin_ctz(responses->due);
    responses->due &= (uint8_t)(responses->due - 1);
    return (struct nic_route_challenge){.number = responses->numbers[route], .route = route};
}

void nic_routes_check(const struct nic_routes *routes, const struct nic_responses *responses)
{
    uint32_t unproven = 0;
    CHECK(responses->due >> COUNT_OF(responses->numbers) == 0);
    CHECK(routes->own_count <= NIC_ROUTE_GIDS_MAX && routes->peer_count <= NIC_ROUTE_GIDS_MAX);
    CHECK(routes->taught <= NIC_ROUTES_TAUGHT_MAX);
    for (uint32_t i = 0; i < routes->peer_count; i++) {
        unproven += !routes->proofs[i].given;
        CHECK(!routes->proofs[i].given || routes->proofs[i].once);
    }
    CHECK(unproven == routes->unproven);
}

bool nic_routes_connect(const struct nic_routes *routes, const struct nic_av *av,
                        const struct gid *source, const struct gid *destination)
{
    return (gid_equal(source, &av->destination) ||
            is_among(routes->peer, routes->peer_count, source)) &&
           (gid_equal(destination, &av->source) ||
            is_among(routes->own, routes->own_count, destination));
}
