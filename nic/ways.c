/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/ways.h"

#include "wire/inet.h"

/* What goes to an address that has proved nothing is paid for by what came from the peer: with all
 * other replies to it, it has at most three times as many bytes. A challenge has 56, with IPv4's
 * header; a packet that pays for half of one has 60 or more, and an answer to it at most 132. */
#define PRICE      2
#define CREDIT_MAX 16

uint32_t nic_ways_pairs(const struct nic_ways *ways)
{
    return 1u + (ways->own_count > ways->peer_count ? ways->own_count : ways->peer_count);
}

uint32_t nic_ways_count(const struct nic_ways *ways)
{
    const uint32_t count = nic_ways_pairs(ways) * ways->ports;
    return count < NIC_WAYS_MAX ? count : NIC_WAYS_MAX;
}

struct nic_way nic_ways_at(const struct nic_ways *ways, const struct nic_av *av, uint32_t number)
{
    CHECK(ways->ports > 0);
    const uint32_t pairs = nic_ways_pairs(ways), way = number % nic_ways_count(ways);
    const uint32_t pair = way % pairs;
    return (struct nic_way){
        .source = pair == 0 || pair > ways->own_count ? av->source : ways->own[pair - 1],
        .destination =
            pair == 0 || pair > ways->peer_count ? av->destination : ways->peer[pair - 1],
        .pair = (uint8_t)pair,
        .port = (uint8_t)(way / pairs),
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

bool nic_ways_is_named(const struct nic_ways *ways, uint32_t way)
{
    const uint32_t pair = way % nic_ways_pairs(ways);
    return pair != 0 && pair <= ways->peer_count;
}

/* `way`, or from its port between the address vector's own addresses. */
static uint8_t proven_way(const struct nic_ways *ways, uint32_t way)
{
    if (LIKELY(ways->unproven == 0)) {
        return (uint8_t)way;
    }
    const uint32_t pair = way % nic_ways_pairs(ways);
    const bool proven = !nic_ways_is_named(ways, way) || ways->proofs[pair - 1].given;
    return (uint8_t)(proven ? way : way - pair);
}

uint8_t nic_ways_turned(const struct nic_ways *ways, uint32_t av, uint32_t paths, uint32_t turns)
{
    const uint32_t count = nic_ways_count(ways);
    if (turns == 0 || count == 0) {
        return proven_way(ways, count == 0 ? 0 : av % count);
    }
    uint32_t step = paths;
    while (have_common_factor(count, step)) {
        step++;
    }
    return proven_way(ways, (av + turns * step) % count);
}

bool nic_ways_fit(const struct nic_ways *ways, uint32_t mtu_bytes)
{
    return mtu_bytes + NIC_WAYS_AROUND_PAYLOAD <= ways->datagram_bytes;
}

/* -- What the peer may name ---------------------------------------------------------------------*/

/* 127.0.0.0/8 and ::1. */
static bool is_loopback(const struct gid *gid)
{
    static const struct gid one = {{[15] = 1}};
    return inet_is_loopback_ipv4(gid->bytes) || gid_equal(gid, &one);
}

/* fe80::/10 needs a scope, which a GID does not carry. 169.254.0.0/16 is left to whoever uses it.
 */
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

/* -- Which goes with which ----------------------------------------------------------------------*/

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

static void arrange(const struct nic_ways *ways, struct gid *peer, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < ways->own_count; i++) {
        const uint32_t best = nearest(peer, i, count, &ways->own[i]);
        const struct gid moved = peer[i];
        peer[i] = peer[best];
        peer[best] = moved;
    }
}

static bool are_known(const struct nic_ways *ways, const struct gid *gids, uint32_t count)
{
    bool known = count == ways->peer_count;
    for (uint32_t i = 0; i < count && known; i++) {
        known = is_among(ways->peer, ways->peer_count, &gids[i]);
    }
    return known;
}

static void count_unproven(struct nic_ways *ways)
{
    ways->unproven = 0;
    ways->challenge_at = INSTANT_NEVER;
    for (uint32_t i = 0; i < ways->peer_count; i++) {
        ways->unproven = (uint8_t)(ways->unproven + !ways->proofs[i].given);
        ways->challenge_at = instant_earlier(ways->challenge_at, ways->proofs[i].next);
    }
}

static void earn(struct nic_ways *ways, uint32_t credit)
{
    ways->credit =
        (uint8_t)(ways->credit + credit < CREDIT_MAX ? ways->credit + credit : CREDIT_MAX);
}

/* An address that is named anew has proved nothing; that it was named pays for one challenge. */
static void keep_proof(struct nic_ways *ways, uint32_t place, const struct nic_ways *before)
{
    ways->proofs[place] = (struct proof){0};
    for (uint32_t i = 0; i < before->peer_count; i++) {
        if (gid_equal(&before->peer[i], &ways->peer[place])) {
            ways->proofs[place] = before->proofs[i];
            proof_renew(&ways->proofs[place]);
            return;
        }
    }
    earn(ways, PRICE);
}

bool nic_ways_learn(struct nic_ways *ways, const struct nic_av *av, const struct gid *gids,
                    uint32_t count)
{
    if (count > NIC_WAY_GIDS_MAX || !all_may_be_named(av, gids, count)) {
        return false;
    }
    if (are_known(ways, gids, count)) {
        for (uint32_t i = 0; i < count; i++) {
            proof_renew(&ways->proofs[i]);
        }
        count_unproven(ways);
        return true;
    }
    if (ways->taught == NIC_WAYS_TAUGHT_MAX) {
        return false;
    }
    const struct nic_ways before = *ways;
    for (uint32_t i = 0; i < count; i++) {
        ways->peer[i] = gids[i];
    }
    arrange(ways, ways->peer, count);
    ways->peer_count = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        keep_proof(ways, i, &before);
    }
    ways->taught++;
    count_unproven(ways);
    return true;
}

/* -- What it has to prove -----------------------------------------------------------------------*/

/* The next address whose turn it is; peer_count: none. */
static uint32_t find_due(const struct nic_ways *ways, struct instant now)
{
    uint32_t i = 0;
    while (i < ways->peer_count && !proof_due(&ways->proofs[i], ways->credit >= PRICE, now)) {
        i++;
    }
    return i;
}

bool nic_ways_challenge(struct nic_ways *ways, struct instant now,
                        struct nic_way_challenge *challenge)
{
    const uint32_t i = find_due(ways, now);
    if (i == ways->peer_count || ways->random == 0) {
        return false;
    }
    struct proof *proof = &ways->proofs[i];
    ways->credit = (uint8_t)(ways->credit - (proof->once ? 0 : PRICE));
    challenge->number = proof_challenge(proof, ways->random, now);
    challenge->way = (uint8_t)(i + 1);
    if (challenge->number == ways->random) {
        ways->random = 0;
    }
    count_unproven(ways);
    return true;
}

bool nic_ways_on_response(struct nic_ways *ways, uint64_t number)
{
    for (uint32_t i = 0; i < ways->peer_count; i++) {
        if (proof_on_response(&ways->proofs[i], number)) {
            count_unproven(ways);
            return true;
        }
    }
    return false;
}

void nic_ways_heard(struct nic_ways *ways)
{
    earn(ways, 1);
}

uint8_t nic_ways_back(const struct nic_ways *ways, const struct nic_av *av,
                      const struct gid *source, const struct gid *destination)
{
    for (uint8_t i = 1; i < nic_ways_pairs(ways); i++) {
        const struct nic_way way = nic_ways_at(ways, av, i);
        if (gid_equal(&way.source, destination) && gid_equal(&way.destination, source)) {
            return i;
        }
    }
    return 0;
}

bool nic_ways_connect(const struct nic_ways *ways, const struct nic_av *av,
                      const struct gid *source, const struct gid *destination)
{
    return (gid_equal(source, &av->destination) ||
            is_among(ways->peer, ways->peer_count, source)) &&
           (gid_equal(destination, &av->source) ||
            is_among(ways->own, ways->own_count, destination));
}
