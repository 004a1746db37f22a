/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_scenario_test - reliable connections over a bad network.
 *
 * Goal    Every request completes once, in order, with the right bytes, whatever the network loses,
 *         repeats or reorders; and it does so in a bounded time and number of packets.
 * Method  Two NICs in virtual time, random requests in both directions over several queue pairs,
 *         against a model of each side's memory. The seed chooses the world: faults, MTU, windows,
 *         depths, slow memory, lazy pulling. Run twice, a seed gives the same digest. Each world
 *         is run with RC, then with XRC: an initiator and a target take the place of each queue
 *         pair, and a shared receive queue that requests name that of its receives; then with
 *         blocks from the first request on, also with one pool of receives for all connections of
 *         a side, and with RC that moves over when it meets trouble.
 *         Replay and more worlds: tests/scenarios/seeds.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/scenarios/seeds.h"
#include "tests/world/nic_world.h"
#include "tests/world/variety.h"

#define PAIRS_MAX 4
#define SLOTS_MAX 128
#define RECEIVES  32
#define US        UINT64_C(1000000)
#define MS        UINT64_C(1000000000)
/* Regions start here for peers, so that packets repeat bit by bit. */
#define BASE 0x100000000u

enum flavor {
    FLAVOR_RC,
    FLAVOR_XRC,
    FLAVOR_BLOCK,
    FLAVOR_POOL,
    FLAVOR_AUTO,
    FLAVOR_STRANGER, /* Blocks, but the peer does not know them. */
    FLAVOR_COUNT,
};

static const char *const flavor_names[FLAVOR_COUNT] = {
    [FLAVOR_RC] = "RC",     [FLAVOR_XRC] = "XRC",   [FLAVOR_BLOCK] = "blocks",
    [FLAVOR_POOL] = "pool", [FLAVOR_AUTO] = "auto", [FLAVOR_STRANGER] = "stranger",
};

/* One request under way: which slot of the remote region it owns. */
struct operation {
    bool busy;
    enum work_kind kind;
    uint32_t bytes;
    uint64_t expected_original;
};

struct side {
    struct cq cq;
    struct completion *ring;
    struct qp *qp; /* Sends; with RC it receives, too. */
    void *qp_memory;
    struct qp *target; /* XRC only, as are the following. */
    void *target_memory;
    struct xrcd xrcd;
    struct srq srq;
    void *srq_memory;
    struct pd pd;
    struct region remote, local;
    uint8_t *remote_bytes; /* Peers write and read here: a slot for each request, then a counter. */
    uint8_t *local_bytes;  /* Sources and targets of our requests: likewise; then receives. */
    /* The bytes that remote_bytes must hold, as far as finished requests go. */
    uint8_t *model;
    uint64_t counter_model;
    struct operation operations[SLOTS_MAX];
    uint32_t posted, completed, sends_posted;
    uint32_t receives_posted, received;
    uint32_t send_sizes[1 << 12];
    uint64_t receive_pause_ps; /* Until then no receives are posted: RNR NAKs. */
};

/* Receives that all connections of a node share. */
struct pool {
    struct srq srq;
    void *memory;
    struct pd pd;
    struct region region;
    uint8_t *bytes;
    uint32_t posted;
    bool open[RECEIVES]; /* By wr_id modulo RECEIVES. */
    uint32_t number[RECEIVES];
    uint64_t pause_ps; /* Until then no receives are posted. */
};

struct scenario {
    struct nic_world world;
    struct pool pools[2]; /* FLAVOR_POOL */
    struct prng prng;
    uint64_t seed;
    enum flavor flavor;
    bool xrc;
    uint8_t piggyback_bytes;
    uint8_t timeout; /* Blocks have timers of their own, for milliseconds of jitter: what they try
                        again fits in a longer one. */
    uint32_t pairs, target, mtu;
    uint32_t receives;          /* A side has posted, if it does not pause; at most RECEIVES. */
    uint32_t slots, slot_bytes; /* Requests a side has under way, and how long they may be. */
    struct side sides[PAIRS_MAX][2];
};

static uint8_t pattern(uint64_t tag, uint32_t index)
{
    return (uint8_t)((tag * 0x9e3779b1u) + index * 7 + (index >> 8) * 13);
}

static void fill(uint8_t *bytes, uint32_t count, uint64_t tag)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = pattern(tag, i);
    }
}

static void expect_pattern(const struct scenario *scenario, const uint8_t *bytes, uint32_t count,
                           uint64_t tag, const char *what)
{
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] != pattern(tag, i)) {
            fail_msg("seed %llu: %s: byte %u of %u is %02x, not %02x",
                     (unsigned long long)scenario->seed, what, i, count, bytes[i], pattern(tag, i));
        }
    }
}

static void add_region(struct scenario *scenario, int node, struct pd *pd, struct region *region,
                       uint8_t *memory, uint64_t bytes, uint32_t access)
{
    const struct region_request request = {
        .address = (uintptr_t)memory, .bytes = bytes, .start = BASE, .access = access};
    assert_int_equal(region_add(nic_regions(scenario->world.nodes[node].nic), pd, &request, region),
                     STATUS_OK);
}

static struct qp *make_qp(struct scenario *scenario, int node, struct qp_request *request,
                          void **memory)
{
    struct qp *qp = NULL;
    const size_t bytes =
        (qp_bytes(request->type, &request->capacity, request->srq != NULL) + 63u) & ~(size_t)63u;
    *memory = aligned_alloc(64, bytes);
    memset(*memory, 0, bytes);
    assert_int_equal(qp_create(scenario->world.nodes[node].nic, request, *memory, &qp), STATUS_OK);
    return qp;
}

/* The receiving half of an XRC connection. */
static void make_target(struct scenario *scenario, int node, struct side *side)
{
    struct qp_request request = {.type = QP_XRC_TARGET, .xrcd = &side->xrcd};
    side->target = make_qp(scenario, node, &request, &side->target_memory);
    const size_t bytes = (receive_queue_bytes(RECEIVES, 2) + 63u) & ~(size_t)63u;
    side->srq_memory = aligned_alloc(64, bytes);
    srq_init(&side->srq, &side->pd, RECEIVES, 2, side->srq_memory);
    side->srq.xrcd = &side->xrcd;
    side->srq.cq = &side->cq;
    assert_int_equal(srq_enter(scenario->world.nodes[node].nic, &side->srq), STATUS_OK);
}

static void make_pool(struct scenario *scenario, int node)
{
    struct pool *pool = &scenario->pools[node];
    const size_t bytes = (size_t)RECEIVES * scenario->slot_bytes;
    const size_t queue_bytes = (receive_queue_bytes(RECEIVES, 2) + 63u) & ~(size_t)63u;
    pool->bytes = aligned_alloc(64, bytes);
    memset(pool->bytes, 0, bytes);
    add_region(scenario, node, &pool->pd, &pool->region, pool->bytes, bytes, ACCESS_LOCAL_WRITE);
    pool->memory = aligned_alloc(64, queue_bytes);
    srq_init(&pool->srq, &pool->pd, RECEIVES, 2, pool->memory);
}

static void make_side(struct scenario *scenario, int node, struct side *side)
{
    struct pool *pool = &scenario->pools[node];
    const bool pooled = scenario->flavor == FLAVOR_POOL;
    struct pd *pd = pooled ? &pool->pd : &side->pd;
    const uint32_t all = ACCESS_LOCAL_WRITE | ACCESS_REMOTE;
    const size_t remote_bytes = scenario->slots * scenario->slot_bytes + 64;
    const size_t local_bytes = (scenario->slots + RECEIVES) * scenario->slot_bytes;
    side->remote_bytes = aligned_alloc(64, remote_bytes);
    side->local_bytes = aligned_alloc(64, local_bytes);
    side->model = calloc(1, remote_bytes);
    memset(side->remote_bytes, 0, remote_bytes);
    memset(side->local_bytes, 0, local_bytes);
    add_region(scenario, node, pd, &side->remote, side->remote_bytes, remote_bytes, all);
    add_region(scenario, node, pd, &side->local, side->local_bytes, local_bytes,
               ACCESS_LOCAL_WRITE);
    side->ring = calloc(cq_ring_entries(512), sizeof(struct completion));
    cq_init(&side->cq, 512, side->ring);
    struct qp_request request = {.type = QP_RC,
                                 .pd = pd,
                                 .send_cq = &side->cq,
                                 .receive_cq = &side->cq,
                                 .capacity = {.sends = scenario->slots,
                                              .receives = RECEIVES,
                                              .send_sges = 3,
                                              .receive_sges = 2,
                                              .inline_bytes = 64},
                                 .signal_all = true};
    if (scenario->xrc) {
        request.type = QP_XRC_INITIATOR;
        request.receive_cq = NULL;
        request.capacity.receives = request.capacity.receive_sges = 0;
        make_target(scenario, node, side);
    }
    if (pooled) {
        request.srq = &pool->srq;
        request.capacity.receives = request.capacity.receive_sges = 0;
    }
    side->qp = make_qp(scenario, node, &request, &side->qp_memory);
}

static void connect_qp(struct scenario *scenario, int node, struct qp *qp, const struct qp *peer,
                       uint32_t psn, uint32_t peer_psn, uint32_t window, uint8_t reads)
{
    const enum qp_type type = qp_type_of(qp);
    const uint32_t answers = QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
    const uint32_t asks = QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC;
    const struct qp_attributes attributes = {.state = QP_INIT,
                                             .port = 1,
                                             .access = ACCESS_REMOTE,
                                             .path_mtu = (uint8_t)scenario->mtu,
                                             .psn = {.receive = peer_psn, .send = psn},
                                             .destination_qpn = qp_number(peer),
                                             .av = {.source = scenario->world.nodes[node].gid,
                                                    .destination = scenario->world.nodes[!node].gid,
                                                    .window_bytes = window,
                                                    .piggyback_bytes = scenario->piggyback_bytes,
                                                    .peer = NIC_WORLD_PEER},
                                             .max_reads_out = reads,
                                             .max_reads_in = reads,
                                             .min_rnr_timer = 12,
                                             .timeout = scenario->timeout,
                                             .retry_count = 7,
                                             .rnr_retry = 7};
    struct qp_attributes step = attributes;
    const struct instant now = sim_instant(&scenario->world.sim);
    assert_int_equal(
        qp_modify(qp, &step,
                  QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, now),
        STATUS_OK);
    step.state = QP_RTR;
    assert_int_equal(qp_modify(qp, &step,
                               QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                                   QP_ATTR_RQ_PSN | (type == QP_XRC_INITIATOR ? 0 : answers),
                               now),
                     STATUS_OK);
    step.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &step,
                               QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_SQ_PSN |
                                   (type == QP_XRC_TARGET ? 0 : asks),
                               now),
                     STATUS_OK);
}

static void connect_side(struct scenario *scenario, int node, struct side *side,
                         const struct side *peer, uint32_t psn, uint32_t peer_psn, uint32_t window,
                         uint8_t reads)
{
    const struct qp *receiver = scenario->xrc ? peer->target : peer->qp;
    connect_qp(scenario, node, side->qp, receiver, psn, peer_psn, window, reads);
    if (scenario->xrc) {
        connect_qp(scenario, node, side->target, peer->qp, psn, peer_psn, window, reads);
    }
}

/* -- Work ---------------------------------------------------------------------------------------*/

static uint32_t draw_bytes(struct scenario *scenario)
{
    struct prng *prng = &scenario->prng;
    uint32_t whole = 128u << scenario->mtu;
    switch (prng_below(prng, 5)) {
    case 0: return (uint32_t)prng_below(prng, 3);
    case 1: return (uint32_t)prng_below(prng, 64);
    case 2:
        whole *= (uint32_t)(1 + prng_below(prng, 3)); /* Whole packets, a byte less or more. */
        return whole - 1 + (uint32_t)prng_below(prng, 3);
    case 3: return (uint32_t)prng_below(prng, 4096);
    default: return (uint32_t)prng_below(prng, scenario->slot_bytes + 1);
    }
}

static enum work_kind draw_kind(struct scenario *scenario)
{
    struct prng *prng = &scenario->prng;
    static const enum work_kind kinds[] = {
        WORK_WRITE,     WORK_WRITE_IMMEDIATE, WORK_SEND,         WORK_SEND_IMMEDIATE, WORK_READ,
        WORK_FETCH_ADD, WORK_COMPARE_SWAP,    WORK_ATOMIC_WRITE, WORK_FLUSH};
    /* Blocks have no FLUSH. */
    const bool flushes = scenario->flavor == FLAVOR_RC || scenario->flavor == FLAVOR_XRC;
    const uint32_t count = COUNT_OF(kinds) - !flushes;
    /* Many under way are mostly those that want a response. */
    const uint32_t first = scenario->slots > 16 && prng_below(prng, 16) != 0 ? 4 : 0;
    return kinds[first + prng_below(prng, count - first)];
}

/* Splits a slot into one to three SGEs. */
static uint32_t split(struct scenario *scenario, const struct side *side, uint32_t slot,
                      uint32_t bytes, struct sge *sges)
{
    struct prng *prng = &scenario->prng;
    uint32_t count = 0;
    uint64_t address = BASE + (uint64_t)slot * scenario->slot_bytes;
    while (bytes > 0) {
        const uint32_t part = count == 2 ? bytes : 1 + (uint32_t)prng_below(prng, bytes);
        sges[count++] = (struct sge){address, part, side->local.key};
        address += part;
        bytes -= part;
    }
    return count;
}

static uint64_t tag_of(const struct side *side, uint32_t serial)
{
    return (uintptr_t)(side->local.key & 0xffff) + serial * 31u + 1;
}

/* Flushes a part of its slot, or all that there is. Returns what it carries. */
static uint32_t draw_flush(struct scenario *scenario, uint32_t bytes, struct send_request *request)
{
    const bool range = prng_below(&scenario->prng, 2);
    request->flush.bytes = range ? bytes : 0;
    request->flush.selectivity = range ? ROCE_SELECT_RANGE : ROCE_SELECT_REGION;
    request->flush.placement = (uint8_t)(1 + prng_below(&scenario->prng, 3));
    return 0;
}

static void post(struct scenario *scenario, struct side *side, struct side *peer, uint32_t slot)
{
    struct prng *prng = &scenario->prng;
    struct operation *operation = &side->operations[slot];
    const uint32_t serial = side->posted;
    enum work_kind kind = draw_kind(scenario);
    uint32_t bytes = draw_bytes(scenario);
    bytes = bytes > scenario->slot_bytes ? scenario->slot_bytes : bytes;
    struct sge sges[3];
    struct send_request request = {.wr_id = (uint64_t)serial << 8 | slot,
                                   .kind = kind,
                                   .sges = sges,
                                   .remote_address = BASE + (uint64_t)slot * scenario->slot_bytes,
                                   .remote_key = peer->remote.key,
                                   .immediate = serial,
                                   .srqn = peer->srq.number,
                                   .flags = prng_below(prng, 8) == 0 ? WORK_FENCE : 0};
    if (kind == WORK_FETCH_ADD || kind == WORK_COMPARE_SWAP) {
        /* Requests of one queue pair execute in order, so the model can run at posting time. */
        bytes = 8;
        request.remote_address = BASE + (uint64_t)scenario->slots * scenario->slot_bytes;
        operation->expected_original = peer->counter_model;
        const bool hit = prng_below(prng, 2) == 0;
        request.compare_or_add = kind == WORK_FETCH_ADD ? 3 + serial
                                 : hit                  ? peer->counter_model
                                                        : ~peer->counter_model;
        request.swap = serial * 0x100000001u;
        if (kind == WORK_FETCH_ADD) {
            peer->counter_model += request.compare_or_add;
        } else if (hit) {
            peer->counter_model = request.swap;
        }
    }
    if (kind == WORK_FLUSH) {
        bytes = draw_flush(scenario, bytes, &request);
    }
    bytes = kind == WORK_ATOMIC_WRITE ? 8 : bytes;
    const bool outgoing = kind == WORK_WRITE || kind == WORK_ATOMIC_WRITE ||
                          kind == WORK_WRITE_IMMEDIATE || kind == WORK_SEND ||
                          kind == WORK_SEND_IMMEDIATE;
    if (outgoing) {
        fill(side->local_bytes + slot * scenario->slot_bytes, bytes, tag_of(side, serial));
    } else {
        memset(side->local_bytes + slot * scenario->slot_bytes, 0xee, bytes);
    }
    if (outgoing && bytes <= 48 && prng_below(prng, 2)) {
        request.flags |= WORK_INLINE;
        sges[0] =
            (struct sge){(uintptr_t)side->local_bytes + slot * scenario->slot_bytes, bytes, 0};
        request.sge_count = 1;
    } else {
        request.sge_count = split(scenario, side, slot, bytes, sges);
    }
    assert_int_equal(qp_post_send(side->qp, &request), STATUS_OK);
    *operation = (struct operation){true, kind, bytes, operation->expected_original};
    if (kind != WORK_WRITE && kind != WORK_ATOMIC_WRITE && outgoing) {
        side->send_sizes[side->sends_posted++] = kind == WORK_WRITE_IMMEDIATE ? 0 : bytes;
    }
    side->posted++;
}

/* Now and then nobody posts receives for a while. */
static bool pauses(struct scenario *scenario, uint64_t *until_ps)
{
    const uint64_t now_ps = scenario->world.sim.now_ps;
    if (now_ps < *until_ps) {
        return true;
    }
    if (prng_below(&scenario->prng, 40) == 0) {
        *until_ps = now_ps + prng_below(&scenario->prng, 3 * MS);
    }
    return false;
}

static void fill_pool(struct scenario *scenario, struct pool *pool)
{
    if (pauses(scenario, &pool->pause_ps)) {
        return;
    }
    for (uint32_t slot; slot = pool->posted % RECEIVES, !pool->open[slot]; pool->posted++) {
        const struct sge sge = {BASE + (uint64_t)slot * scenario->slot_bytes, scenario->slot_bytes,
                                pool->region.key};
        pool->open[slot] = true;
        pool->number[slot] = pool->posted;
        assert_int_equal(srq_post_receive(&pool->srq, pool->posted, &sge, 1), STATUS_OK);
    }
}

static void post_receives(struct scenario *scenario, struct side *side)
{
    if (pauses(scenario, &side->receive_pause_ps)) {
        return;
    }
    while (side->receives_posted - side->received < scenario->receives) {
        const uint32_t slot = scenario->slots + side->receives_posted % RECEIVES;
        const struct sge sges[2] = {
            {BASE + (uint64_t)slot * scenario->slot_bytes, 100, side->local.key},
            {BASE + (uint64_t)slot * scenario->slot_bytes + 100, scenario->slot_bytes - 100,
             side->local.key}};
        assert_int_equal(scenario->xrc
                             ? srq_post_receive(&side->srq, side->receives_posted, sges, 2)
                             : qp_post_receive(side->qp, side->receives_posted, sges, 2),
                         STATUS_OK);
        side->receives_posted++;
    }
}

/* -- Completions --------------------------------------------------------------------------------*/

/* A FLUSH is complete: what was written before is there, but where a later request has the slot. */
static void expect_placed(const struct scenario *scenario, const struct side *side,
                          const struct side *peer)
{
    for (uint32_t slot = 0; slot < scenario->slots; slot++) {
        const size_t at = slot * scenario->slot_bytes;
        if (!side->operations[slot].busy &&
            memcmp(peer->remote_bytes + at, peer->model + at, scenario->slot_bytes) != 0) {
            fail_msg("seed %llu: a FLUSH overtook a WRITE", (unsigned long long)scenario->seed);
        }
    }
}

static void on_sent(struct scenario *scenario, struct side *side, struct side *peer,
                    const struct completion *completion)
{
    const uint32_t slot = completion->wr_id & 0xff;
    const uint32_t serial = (uint32_t)(completion->wr_id >> 8);
    struct operation *operation = &side->operations[slot];
    assert_int_equal(serial, side->completed);
    assert_true(operation->busy);
    const uint8_t *local = side->local_bytes + slot * scenario->slot_bytes;
    const uint8_t *remote = peer->remote_bytes + slot * scenario->slot_bytes;
    uint8_t *model = peer->model + slot * scenario->slot_bytes;
    switch (operation->kind) {
    case WORK_WRITE:
    case WORK_WRITE_IMMEDIATE:
    case WORK_ATOMIC_WRITE:
        fill(model, operation->bytes, tag_of(side, serial));
        expect_pattern(scenario, remote, operation->bytes, tag_of(side, serial), "written");
        break;
    case WORK_READ:
        if (memcmp(local, model, operation->bytes) != 0) {
            fail_msg("seed %llu: READ returned other bytes", (unsigned long long)scenario->seed);
        }
        break;
    case WORK_FLUSH: expect_placed(scenario, side, peer); break;
    case WORK_FETCH_ADD:
    case WORK_COMPARE_SWAP: assert_memory_equal(local, &operation->expected_original, 8); break;
    case WORK_SEND:
    case WORK_SEND_IMMEDIATE:
    case WORK_SEND_INVALIDATE:
    case WORK_LOCAL_INVALIDATE:
    case WORK_BIND_WINDOW: break;
    }
    operation->busy = false;
    side->completed++;
}

/* Where the bytes of a receive are. One of a pool is anybody's, but completes once. EXA-80 */
static const uint8_t *bytes_received(struct scenario *scenario, uint32_t node,
                                     const struct side *side, uint64_t wr_id)
{
    const uint32_t slot = (uint32_t)wr_id % RECEIVES;
    if (scenario->flavor != FLAVOR_POOL) {
        assert_int_equal(wr_id, side->received);
        return side->local_bytes + (scenario->slots + slot) * scenario->slot_bytes;
    }
    struct pool *pool = &scenario->pools[node];
    assert_true(pool->open[slot] && pool->number[slot] == wr_id);
    pool->open[slot] = false;
    return pool->bytes + slot * scenario->slot_bytes;
}

static void on_received(struct scenario *scenario, uint32_t node, struct side *side,
                        struct side *peer, const struct completion *completion)
{
    assert_true(side->received < peer->sends_posted);
    const uint8_t *bytes = bytes_received(scenario, node, side, completion->wr_id);
    if (completion->kind == COMPLETION_RECEIVE) {
        assert_int_equal(completion->bytes, peer->send_sizes[side->received]);
        /* The tag is not known here for plain sends; the first byte gives it away modulo 256, and
         * the pattern's shape must hold for the rest. */
        for (uint32_t i = 1; i < completion->bytes; i++) {
            if ((uint8_t)(bytes[i] - bytes[0]) != (uint8_t)(pattern(0, i) - pattern(0, 0))) {
                fail_msg("seed %llu: received byte %u is wrong", (unsigned long long)scenario->seed,
                         i);
            }
        }
    }
    side->received++;
}

static void poll_side(struct scenario *scenario, uint32_t node, struct side *side,
                      struct side *peer)
{
    struct completion completion = {0};
    while (cq_poll(&side->cq, &completion, 1) == 1) {
        if (completion.status != COMPLETION_SUCCESS) {
            fail_msg("seed %llu, %s: status %u for work kind %u",
                     (unsigned long long)scenario->seed, flavor_names[scenario->flavor],
                     completion.status, completion.kind);
        }
        if (completion.kind & COMPLETION_RECEIVE) {
            on_received(scenario, node, side, peer, &completion);
        } else {
            on_sent(scenario, side, peer, &completion);
        }
    }
}

static void drive_side(struct scenario *scenario, uint32_t node, struct side *side,
                       struct side *peer)
{
    poll_side(scenario, node, side, peer);
    if (scenario->flavor == FLAVOR_POOL) {
        fill_pool(scenario, &scenario->pools[node]);
    } else {
        post_receives(scenario, side);
    }
    const uint32_t slot = (uint32_t)prng_below(&scenario->prng, scenario->slots);
    if (side->posted < scenario->target && !side->operations[slot].busy &&
        side->posted - side->completed < scenario->slots) {
        post(scenario, side, peer, slot);
    }
}

static bool finished(const struct scenario *scenario)
{
    for (uint32_t p = 0; p < scenario->pairs; p++) {
        for (int n = 0; n < 2; n++) {
            if (scenario->sides[p][n].completed < scenario->target) {
                return false;
            }
        }
    }
    return true;
}

/* -- One run ------------------------------------------------------------------------------------*/

/* One world in four is good. In another one packets come when they were given up long ago, and the
 * link is cut now and then, for less than the eight timeouts that a request survives. */
static struct nic_world_settings draw_settings(struct prng *prng)
{
    const uint64_t weather = prng_below(prng, 4);
    const bool calm = weather == 0, harsh = weather == 1;
    const uint32_t drop = calm ? 0 : (uint32_t)prng_below(prng, 50000);
    const uint32_t duplicate = calm ? 0 : (uint32_t)prng_below(prng, 50000);
    const uint32_t reorder = calm ? 0 : (uint32_t)prng_below(prng, 50000);
    const uint32_t lazy = prng_below(prng, 2) ? (uint32_t)prng_below(prng, 500000) : 0;
    const uint64_t latency_ps = US / 2 + prng_below(prng, 20 * US);
    return (struct nic_world_settings){
        .move_ps = prng_below(prng, 2) ? prng_below(prng, 5 * US) : 0,
        .link = {.latency_ps = latency_ps,
                 .reorder_ps = 4 * latency_ps,
                 .late_ps = 5 * MS,
                 .cut_ps = MS,
                 .faults.millionths = {[SIM_FAULT_drop] = drop,
                                       [SIM_FAULT_duplicate] = duplicate,
                                       [SIM_FAULT_reorder] = reorder,
                                       [SIM_FAULT_late] = harsh ? 2000 : 0,
                                       [SIM_FAULT_cut] = harsh ? 100 : 0,
                                       [SIM_FAULT_lazy] = lazy}}};
}

/* In every third world routers say that they meet congestion: of one packet in ten, or fewer. */
static uint32_t draw_marks(uint64_t seed)
{
    struct prng prng;
    prng_init(&prng, seed * 2 + 7);
    return prng_below(&prng, 3) == 0 ? (uint32_t)prng_below(&prng, 100000) : 0;
}

/* From hardly any memory to more than enough. */
static struct block_limits draw_blocks(struct prng *prng, enum flavor flavor)
{
    static const enum nic_transport transports[FLAVOR_COUNT] = {
        [FLAVOR_BLOCK] = NIC_TRANSPORT_BLOCK,
        [FLAVOR_POOL] = NIC_TRANSPORT_BLOCK,
        [FLAVOR_AUTO] = NIC_TRANSPORT_AUTO,
        [FLAVOR_STRANGER] = NIC_TRANSPORT_BLOCK,
    };
    const bool scarce = prng_below(prng, 3) == 0;
    return (struct block_limits){
        .transport = transports[flavor],
        .place = prng_below(prng, 2) ? BLOCK_PLACE_EARLY : BLOCK_PLACE_HOLD,
        .window = 64u << prng_below(prng, 5),
        .contexts = scarce ? 16 : 1024,
        .held = scarce ? 1 : 256,
        .reads = scarce ? 1 : 64,
        .paths = 1 + (uint32_t)prng_below(prng, 4),
        .peers = 4,
        .connections = PAIRS_MAX,
        .auto_losses = 1 + (uint32_t)prng_below(prng, 3),
        .auto_round_trip_ns = prng_below(prng, 2) ? 10000 : 0,
    };
}

/* In every second world routes die, a quarter of them on average. Others have to be found within
 * the timeouts that a request survives. EXA-100 */
static void draw_deaths(struct prng *prng, struct nic_world_settings *settings)
{
    if (prng_below(prng, 2)) {
        return;
    }
    settings->dead_from_ps = prng_below(prng, 2 * MS);
    for (uint32_t node = 0; node < 2; node++) {
        settings->dead_routes[node] = (uint16_t)(prng_next(prng) & prng_next(prng));
    }
}

static struct scenario *scenario_make(uint64_t seed, enum flavor flavor, bool long_way)
{
    struct scenario *scenario = calloc(1, sizeof(*scenario));
    scenario->seed = seed;
    /* A packet may carry an acknowledgement, but where ways are compared: the long way has none. */
    scenario->piggyback_bytes = seed % 4 == 0 ? 0 : 255;
    scenario->flavor = flavor;
    scenario->xrc = flavor == FLAVOR_XRC;
    scenario->timeout =
        flavor == FLAVOR_BLOCK || flavor == FLAVOR_POOL || flavor == FLAVOR_AUTO ? 12 : 8;
    prng_init(&scenario->prng, seed * 2 + 1);
    struct prng *prng = &scenario->prng;
    struct nic_world_settings settings = draw_settings(prng);
    settings.stranger = flavor == FLAVOR_STRANGER;
    settings.link.faults.millionths[SIM_FAULT_mark] = draw_marks(seed);
    struct prng blocks_prng = *prng;
    if (flavor == FLAVOR_BLOCK) {
        draw_deaths(&blocks_prng, &settings);
    }
    const struct nic_limits limits = {.qps = 64,
                                      .xrc_srqs = 16,
                                      .regions = 64,
                                      .sends_per_qp = SLOTS_MAX,
                                      .receives_per_qp = 64,
                                      .receives_per_srq = 64,
                                      .sges = 8,
                                      .inline_bytes = 256,
                                      .reads_per_qp = NIC_READS_MAX,
                                      .cq_entries = 4096,
                                      .mtu = PATH_MTU_4096,
                                      .block = draw_blocks(&blocks_prng, flavor),
                                      .long_way = long_way};
    nic_world_init(&scenario->world, seed, &settings, &limits);
    nic_note_answers(scenario->world.nodes[0].nic, NIC_WORLD_PEER, true);
    nic_note_answers(scenario->world.nodes[1].nic, NIC_WORLD_PEER, true);
    scenario->pairs = 1 + (uint32_t)prng_below(prng, PAIRS_MAX);
    scenario->receives = prng_below(prng, 2) ? RECEIVES : 1 + (uint32_t)prng_below(prng, 8);
    const bool deep = prng_below(prng, 4) == 0;
    scenario->slots = deep ? SLOTS_MAX : 16;
    scenario->slot_bytes = deep ? 2048 : 20480;
    scenario->target = deep ? 300 : 60;
    scenario->mtu = PATH_MTU_256 + (uint32_t)prng_below(prng, 5);
    for (int n = 0; n < 2 && flavor == FLAVOR_POOL; n++) {
        make_pool(scenario, n);
    }
    for (uint32_t p = 0; p < scenario->pairs; p++) {
        struct side *pair = scenario->sides[p];
        make_side(scenario, 0, &pair[0]);
        make_side(scenario, 1, &pair[1]);
        /* Near the wrap more often than chance would have it. */
        const uint32_t psn =
            (uint32_t)prng_below(prng, 2) ? 0xffffe0u : (uint32_t)prng_next(prng) & 0xffffffu;
        const uint32_t window = prng_below(prng, 2) ? 0 : 8192 + (uint32_t)prng_below(prng, 100000);
        const uint64_t reads_out =
            deep ? (uint64_t)NIC_READS_MAX >> prng_below(prng, 3) : 1 + prng_below(prng, 16);
        const uint8_t reads = (uint8_t)reads_out;
        connect_side(scenario, 0, &pair[0], &pair[1], psn, psn + 99, window, reads);
        connect_side(scenario, 1, &pair[1], &pair[0], psn + 99, psn, window, reads);
    }
    return scenario;
}

static void scenario_free(struct scenario *scenario)
{
    for (uint32_t p = 0; p < scenario->pairs; p++) {
        for (int n = 0; n < 2; n++) {
            struct side *side = &scenario->sides[p][n];
            if (scenario->xrc) {
                srq_leave(scenario->world.nodes[n].nic, &side->srq);
                qp_destroy(side->target);
            }
            qp_destroy(side->qp);
            assert_int_equal(side->xrcd.users, 0);
            free(side->target_memory);
            free(side->srq_memory);
            free(side->qp_memory);
            free(side->ring);
            free(side->remote_bytes);
            free(side->local_bytes);
            free(side->model);
        }
    }
    for (int n = 0; n < 2; n++) {
        assert_int_equal(scenario->pools[n].srq.users, 0);
        free(scenario->pools[n].memory);
        free(scenario->pools[n].bytes);
    }
    nic_world_free(&scenario->world);
    free(scenario);
}

/* Counts of the worlds of one kind. */
struct sums {
    uint64_t counters[COUNTER_COUNT];
    uint64_t died; /* Packets on routes that were dead. */
    struct variety faults;
};

static void add_up(const struct nic_world *world, struct sums *sums)
{
    for (int c = 0; c < COUNTER_COUNT; c++) {
        sums->counters[c] += nic_counters(world->nodes[0].nic)->values[c] +
                             nic_counters(world->nodes[1].nic)->values[c];
    }
    sums->died += world->died;
    variety_add(&sums->faults, &world->link.settings.faults);
}

/* A peer that does not answer is asked five times, and gets no other packet of blocks. EXA-74 */
static void expect_rc_alone(const struct scenario *scenario)
{
    const uint64_t *ours = nic_counters(scenario->world.nodes[0].nic)->values;
    const uint64_t *theirs = nic_counters(scenario->world.nodes[1].nic)->values;
    assert_in_range(ours[COUNTER_hello_sent], 5, 5 * scenario->pairs);
    assert_int_equal(ours[COUNTER_hello_sent], 5 * ours[COUNTER_hello_unanswered]);
    assert_int_equal(ours[COUNTER_block_streams] + ours[COUNTER_block_probes_sent], 0);
    assert_int_equal(theirs[COUNTER_hello_sent] + theirs[COUNTER_block_answers_sent], 0);
}

static uint64_t run(uint64_t seed, enum flavor flavor, bool long_way, struct sums *sums)
{
    struct scenario *scenario = scenario_make(seed, flavor, long_way);
    const uint64_t steps_max = 4000000;
    uint64_t steps = 0;
    while (!finished(scenario)) {
        for (uint32_t p = 0; p < scenario->pairs; p++) {
            drive_side(scenario, 0, &scenario->sides[p][0], &scenario->sides[p][1]);
            drive_side(scenario, 1, &scenario->sides[p][1], &scenario->sides[p][0]);
        }
        nic_world_step(&scenario->world);
        if (++steps > steps_max) {
            fail_msg("seed %llu, %s: no end after %llu steps", (unsigned long long)seed,
                     flavor_names[flavor], (unsigned long long)steps);
        }
    }
    for (uint32_t p = 0; p < scenario->pairs; p++) {
        for (int n = 0; n < 2; n++) {
            const struct side *side = &scenario->sides[p][n];
            assert_memory_equal(side->remote_bytes, side->model,
                                scenario->slots * scenario->slot_bytes);
            assert_memory_equal(side->remote_bytes + scenario->slots * scenario->slot_bytes,
                                &side->counter_model, 8);
            assert_int_equal(side->received, scenario->sides[p][!n].sends_posted);
        }
    }
    if (flavor == FLAVOR_STRANGER) {
        expect_rc_alone(scenario);
    }
    add_up(&scenario->world, sums);
    const uint64_t digest = scenario->world.sim.digest;
    scenario_free(scenario);
    return digest;
}

static struct seeds seeds;

/* Rules that nobody exercised are rules that nobody tested. */
static void expect_variety(const struct sums *sums)
{
    static const enum nic_counter wanted[] = {
        COUNTER_duplicate_request, COUNTER_out_of_seq_request, COUNTER_rcvd_rnr_err,
        COUNTER_send_rnr_err,      COUNTER_rcvd_seq_err,       COUNTER_timeouts,
        COUNTER_implied_naks,      COUNTER_retransmitted_pkts, COUNTER_stale_acks,
        COUNTER_drop_in_gap,       COUNTER_nak_psn_sequence,   COUNTER_rdma_flushes,
        COUNTER_np_cnp_sent,       COUNTER_rp_cnp_handled};
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        if (sums->counters[wanted[i]] == 0) {
            fail_msg("no seed reached %s", nic_counter_name(wanted[i]));
        }
    }
    const char *missing = variety_missing(
        &sums->faults, 1u << SIM_FAULT_drop | 1u << SIM_FAULT_duplicate | 1u << SIM_FAULT_reorder |
                           1u << SIM_FAULT_late | 1u << SIM_FAULT_cut | 1u << SIM_FAULT_lazy |
                           1u << SIM_FAULT_mark);
    if (missing != NULL) {
        fail_msg("the fault %s never struck", missing);
    }
}

static void expect_blocks(const struct sums *sums)
{
    static const enum nic_counter wanted[] = {
        COUNTER_hello_sent,        COUNTER_hello_welcomed,      COUNTER_block_streams,
        COUNTER_block_probes_sent, COUNTER_block_answers_stale, COUNTER_blocks_no_context,
        COUNTER_blocks_held,       COUNTER_hold_full,           COUNTER_retransmitted_pkts,
        COUNTER_rcvd_rnr_err,      COUNTER_duplicate_request};
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        if (sums->counters[wanted[i]] == 0) {
            fail_msg("no seed reached %s by blocks", nic_counter_name(wanted[i]));
        }
    }
}

/* The short way (nic/ibta/rc_short.c) comes to what the long way comes to: each packet, when it
 * leaves, and each counter. */
static void compare_ways(uint64_t seed, enum flavor flavor)
{
    struct sums by_short = {0}, by_long = {0};
    if (run(seed, flavor, false, &by_short) != run(seed, flavor, true, &by_long) ||
        memcmp(&by_short, &by_long, sizeof(by_long)) != 0) {
        fail_msg("seed %llu, %s: the short way is another one", (unsigned long long)seed,
                 flavor_names[flavor]);
    }
}

/* EXA-75 EXA-79 EXA-80 EXA-84 EXA-86 EXA-87 EXA-88 EXA-94 EXA-95 EXA-109 */
static void test_random_worlds(void **state)
{
    (void)state;
    struct sums sums[FLAVOR_COUNT] = {0};
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        for (enum flavor flavor = FLAVOR_RC; flavor < FLAVOR_COUNT; flavor++) {
            const uint64_t digest = run(seed, flavor, false, &sums[flavor]);
            if (seed % 16 == 0 && run(seed, flavor, false, &sums[flavor]) != digest) {
                fail_msg("seed %llu: another digest the second time", (unsigned long long)seed);
            }
            if (seed % 4 == 0) {
                compare_ways(seed, flavor);
            }
        }
    }
    if (seeds.count >= 100) {
        expect_variety(&sums[FLAVOR_RC]);
        expect_variety(&sums[FLAVOR_XRC]);
        expect_blocks(&sums[FLAVOR_BLOCK]);
        expect_blocks(&sums[FLAVOR_POOL]);
        assert_true(sums[FLAVOR_BLOCK].died > 0);
        expect_blocks(&sums[FLAVOR_AUTO]);
    }
}

/* Worlds that found a defect: packets that a full hold could not keep went again for ever, and took
 * all room from the block that lacked them; a queue pair sent a CNP when its time had come, and was
 * woken no more. */
static void test_worlds_that_failed(void **state)
{
    static const uint64_t found[] = {78430369, 600877006};
    (void)state;
    struct sums sums = {0};
    for (size_t i = 0; i < COUNT_OF(found); i++) {
        for (enum flavor flavor = FLAVOR_RC; flavor < FLAVOR_COUNT; flavor++) {
            (void)run(found[i], flavor, false, &sums);
        }
    }
}

int main(int argc, char **argv)
{
    seeds = seeds_from_arguments(argc, argv, 300);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_worlds),
                                       cmocka_unit_test(test_worlds_that_failed)};
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
