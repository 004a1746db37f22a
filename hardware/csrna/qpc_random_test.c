/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    For any requests and any times of memory, each request is answered once, in the order of
 *         its queue pair, with the context that all earlier updates left. A context is fetched once
 *         at a time. A hit without predecessors is answered in its cycle. No request waits for
 *         ever. The counters agree with the events. Behaviours CSR-04, CSR-05, CSR-09, CSR-20,
 *         CSR-24, CSR-26, CSR-43, CSR-44, CSR-45, CSR-46, CSR-48, CSR-50.
 * Method  65,536 random requests per seed through three requesters, beside a model that knows of
 *         each queue pair how many requests the arbiter took, how many are answered, and how many
 *         updates those were. Of each seed: policy, oocap, capacity, victims, how many queue pairs,
 *         how long memory takes, how often either unit steps.
 *
 *         --seed N, --seeds FIRST COUNT: which worlds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/check.h"
#include "base/prng.h"
#include "hardware/csrna/qpc_manager.h"
#include "hardware/csrna/qpc_requester.h"

#if defined(__SANITIZE_ADDRESS__)
#define SEEDS_USUAL 40
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEEDS_USUAL 40
#endif
#endif
#ifndef SEEDS_USUAL
#define SEEDS_USUAL 1000
#endif

enum {
    REQUESTS = 65536,
    QPNS_MAX = 4096
};

/* A request that waits at an index. */
struct asked {
    uint32_t qp;
    uint32_t
        ticket; /* Its number among the requests of its queue pair, once the arbiter took it. */
    uint64_t sequence; /* Its number among all requests. */
    uint64_t asked_at;
    uint8_t channel, index, operation;
};

struct model_qp {
    uint32_t taken, answered; /* Requests but prefetches. */
    uint32_t updates;
    bool prefetching, fetching;
};

struct fetch {
    uint32_t qp;
    uint64_t due;
};

struct world {
    struct prng prng;
    struct qpc_manager manager;
    struct qpc_manager_parameters parameters;
    struct qpc_requester requesters[QPC_CHANNELS];
    struct asked waiting_memory[QPC_CHANNELS][QPC_OOCAP_MAX];
    uint32_t qps, stride;
    uint32_t delay_max, step_odds, ask_odds; /* Odds in 1/256. */
    struct model_qp *model;
    struct qpc *memory;
    struct asked arbiter[QPC_CHANNELS][256]; /* By policy, one FIFO or three. */
    uint8_t arbiter_head[QPC_CHANNELS], arbiter_tail[QPC_CHANNELS];
    uint32_t last_channel;
    struct fetch fetches[256];
    uint8_t fetch_head, fetch_tail;
    uint64_t now, asked, answered, sequence, next_sequence, oldest_wait;
    uint64_t digest;
    struct qpc_counters counters;
};

static uint32_t qpn_of(const struct world *world, uint32_t qp)
{
    return (7 + qp * world->stride) % QPC_QPN_LIMIT;
}

static uint32_t mark_of(uint32_t qpn, uint32_t version)
{
    return (qpn ^ version * 0x9e3779b9u) * 0x85ebca6bu;
}

static uint64_t seed_first = 1, seed_count = SEEDS_USUAL, seed_running;

static void require(bool condition, const char *what)
{
    if (!condition) {
        fail_msg("seed %llu: %s", (unsigned long long)seed_running, what);
    }
}

static struct world *world_make(uint64_t seed, bool small)
{
    static const uint32_t capacities[] = {1, 2, 5, 16, 300, 3000};
    static const uint32_t delays[] = {0, 3, 30, 100, 500};
    static const uint32_t strides[] = {1, 1, 256, 4095};
    struct world *world = calloc(1, sizeof(*world));
    prng_init(&world->prng, seed);
    struct prng *prng = &world->prng;
    struct qpc_manager_parameters *parameters = &world->parameters;
    parameters->policy = prng_below(prng, 4) == 0 ? QPC_FCFS : QPC_NONBLOCKING;
    parameters->victim = (enum qpc_victim_policy)prng_below(prng, QPC_VICTIM_RANDOM + 1);
    parameters->oocap = prng_below(prng, 4) == 0 ? 1 + (uint32_t)prng_below(prng, 2)
                                                 : 1 + (uint32_t)prng_below(prng, small ? 8 : 64);
    parameters->cache_entries = capacities[prng_below(prng, small ? 4 : COUNT_OF(capacities))];
    static const uint32_t most[] = {3, 20, 400, QPNS_MAX};
    world->qps = 1 + (uint32_t)prng_below(prng, most[prng_below(prng, COUNT_OF(most))]);
    world->stride = strides[prng_below(prng, COUNT_OF(strides))];
    world->delay_max = delays[prng_below(prng, COUNT_OF(delays))];
    world->step_odds = 64 + (uint32_t)prng_below(prng, 193);
    world->ask_odds = 16 + (uint32_t)prng_below(prng, 241);
    world->last_channel = QPC_CHANNELS - 1;
    world->model = calloc(world->qps, sizeof(*world->model));
    world->memory = calloc(world->qps, sizeof(*world->memory));
    for (uint32_t i = 0; i < world->qps; i++) {
        world->memory[i].qpn = qpn_of(world, i);
        world->memory[i].reserved[0] = mark_of(qpn_of(world, i), 0);
    }
    void *memory = aligned_alloc(64, line_aligned(qpc_manager_bytes(parameters)));
    qpc_manager_init(&world->manager, parameters, memory);
    for (int c = 0; c < QPC_CHANNELS; c++) {
        qpc_requester_init(&world->requesters[c], parameters->oocap, sizeof(struct asked),
                           world->waiting_memory[c]);
    }
    return world;
}

static void world_free(struct world *world)
{
    free(world->manager.cache.contexts); /* Where its memory begins. */
    free(world->memory);
    free(world->model);
    free(world);
}

/* -- Units --------------------------------------------------------------------------------------*/

static uint32_t fifo_of(const struct world *world, uint32_t channel)
{
    return world->parameters.policy == QPC_FCFS ? 0 : channel;
}

static void ask(struct world *world, uint32_t channel, uint64_t random)
{
    const int index = qpc_requester_reserve(&world->requesters[channel]);
    if (index < 0) {
        return; /* CSR-09: the other channels ask in this very cycle. */
    }
    struct asked asked = {.qp = (uint32_t)(((random >> 8 & 0xffffffff) * world->qps) >> 32),
                          .asked_at = world->now,
                          .channel = (uint8_t)channel,
                          .index = (uint8_t)index,
                          .operation = random & 3 ? QPC_READ : QPC_UPDATE};
    if (channel == QPC_DESCRIPTOR && (random >> 2 & 1)) {
        asked.operation = QPC_PREFETCH;
    }
    const uint32_t fifo = fifo_of(world, channel);
    world->arbiter[fifo][world->arbiter_tail[fifo]++] = asked;
    const struct qpc_request request = {.qpn = qpn_of(world, asked.qp),
                                        .channel = asked.channel,
                                        .index = asked.index,
                                        .operation = asked.operation};
    qpc_manager_request(&world->manager, &request);
    world->asked++;
}

static void check_context(struct world *world, const struct asked *asked, struct qpc *context)
{
    struct model_qp *qp = &world->model[asked->qp];
    const uint32_t qpn = qpn_of(world, asked->qp);
    require(context != NULL && context->qpn == qpn, "the context of another queue pair");
    require(context->version == qp->updates, "not what the earlier updates left");
    require(context->reserved[context->version % 56] == mark_of(qpn, context->version),
            "an update was lost");
    if (asked->operation == QPC_UPDATE) {
        qp->updates++;
        context->version++;
        context->reserved[context->version % 56] = mark_of(qpn, context->version);
    }
    world->digest = (world->digest ^ context->version) * UINT64_C(0x100000001b3);
}

static void on_answer(struct world *world, const struct qpc_answer *answer)
{
    struct qpc_requester *requester = &world->requesters[answer->channel];
    const struct asked *asked = qpc_requester_info(requester, answer->index);
    struct model_qp *qp = &world->model[asked->qp];
    require(answer->qpn == qpn_of(world, asked->qp) && answer->operation == asked->operation,
            "not what was asked at this index");
    if (asked->operation == QPC_PREFETCH) {
        require(answer->context == NULL, "a prefetch hands over no context");
    } else {
        require(asked->ticket == qp->answered, "not in the order of the queue pair"); /* CSR-05 */
        qp->answered++;
        check_context(world, asked, answer->context);
    }
    if (world->parameters.policy == QPC_FCFS) {
        require(asked->sequence == world->next_sequence, "not in order"); /* CSR-26 */
        world->next_sequence++;
    }
    const uint64_t waited = world->now - asked->asked_at;
    world->oldest_wait = waited > world->oldest_wait ? waited : world->oldest_wait;
    world->digest = (world->digest ^ (answer->qpn + ((uint64_t)answer->channel << 32) +
                                      ((uint64_t)answer->index << 40))) *
                    UINT64_C(0x100000001b3);
    qpc_requester_release(requester, answer->index);
    world->answered++;
}

static uint32_t qp_of(const struct world *world, uint32_t qpn)
{
    const uint32_t qp = (qpn - 7) / world->stride;
    require(qp < world->qps, "no such queue pair");
    return qp;
}

static void on_action(struct world *world, const struct qpc_action *action)
{
    if (action->writes_back) {
        world->counters.write_backs++;
        world->memory[qp_of(world, action->victim.qpn)] = action->victim.context;
    }
    if (action->fetches) {
        const uint32_t qp = qp_of(world, action->fetch_qpn);
        require(!world->model[qp].fetching, "fetched twice at a time"); /* CSR-02, CSR-03 */
        world->model[qp].fetching = true;
        world->counters.fetches++;
        uint64_t due = world->now + prng_below(&world->prng, world->delay_max + 1);
        if (world->fetch_head != world->fetch_tail) {
            const uint64_t before = world->fetches[(uint8_t)(world->fetch_tail - 1)].due;
            due = due < before ? before : due;
        }
        world->fetches[world->fetch_tail++] = (struct fetch){qp, due};
    }
    if (action->answers) {
        on_answer(world, &action->answer);
    }
}

/* -- Steps --------------------------------------------------------------------------------------*/

/* The request that the arbiter will take next, by the plainest of arbiters. */
static struct asked arbitrate(struct world *world)
{
    for (uint32_t i = 1; i <= QPC_CHANNELS; i++) {
        const uint32_t channel = (world->last_channel + i) % QPC_CHANNELS;
        if (world->arbiter_head[channel] != world->arbiter_tail[channel]) {
            world->last_channel = channel;
            return world->arbiter[channel][world->arbiter_head[channel]++];
        }
    }
    fail_msg("no request is left");
    return (struct asked){0};
}

/* Checks everything that a request must bring about, but for the answer itself. */
static void expect(struct world *world, const struct asked *asked, const struct qpc_action *action,
                   bool pending, bool cached)
{
    struct qpc_counters *counters = &world->counters;
    const bool prefetch = asked->operation == QPC_PREFETCH;
    counters->prefetches += prefetch;
    if (pending) {
        require(action->answers == prefetch && !action->fetches, "has a predecessor");
        counters->type_2 += !prefetch;
        counters->prefetch_pendings += prefetch;
    } else if (cached) { /* CSR-04: whatever else waits. */
        require(action->answers && !action->fetches, "a hit is answered at once");
        counters->hits += !prefetch;
        counters->prefetch_hits += prefetch;
    } else {
        require(!action->answers && action->fetches, "a miss fetches");
        counters->misses += !prefetch;
        world->model[asked->qp].prefetching |= prefetch;
    }
    require(!action->writes_back, "nothing was installed");
}

static void step_requests(struct world *world)
{
    struct qpc_action action;
    const bool due = qpc_manager_requests_due(&world->manager);
    if (!due) {
        require(!qpc_manager_step_requests(&world->manager, &action), "acts without work");
        return;
    }
    struct asked asked = arbitrate(world);
    struct model_qp *qp = &world->model[asked.qp];
    const bool pending = qp->taken != qp->answered || qp->prefetching;
    const bool cached = qpc_cache_holds(&world->manager.cache, qpn_of(world, asked.qp));
    if (asked.operation != QPC_PREFETCH) {
        asked.ticket = qp->taken++;
    }
    asked.sequence = world->sequence++;
    struct qpc_requester *requester = &world->requesters[asked.channel];
    *(struct asked *)qpc_requester_info(requester, asked.index) = asked;
    require(qpc_manager_step_requests(&world->manager, &action), "does not act");
    expect(world, &asked, &action, pending, cached);
    on_action(world, &action);
}

static void step_pending(struct world *world)
{
    struct qpc_action action;
    const bool due = qpc_manager_pending_due(&world->manager);
    require(qpc_manager_step_pending(&world->manager, &action) == due, "idle, or not idle");
    if (!due) {
        return;
    }
    world->counters.conversions += action.fetches;
    if (action.answers && action.answer.operation == QPC_PREFETCH) {
        world->model[qp_of(world, action.answer.qpn)].prefetching = false;
    }
    on_action(world, &action);
}

static void deliver(struct world *world)
{
    if (world->fetch_head != world->fetch_tail &&
        world->fetches[world->fetch_head].due <= world->now) {
        const uint32_t qp = world->fetches[world->fetch_head++].qp;
        world->model[qp].fetching = false;
        qpc_manager_on_fetched(&world->manager, qpn_of(world, qp), &world->memory[qp]);
    }
}

static void tick(struct world *world, uint64_t requests)
{
    const uint64_t random = prng_next(&world->prng);
    for (uint32_t c = 0; c < QPC_CHANNELS; c++) {
        if (world->asked < requests && (random >> 8 * c & 0xff) < world->ask_odds) {
            ask(world, c, prng_next(&world->prng));
        }
    }
    deliver(world);
    if ((random >> 24 & 0xff) < world->step_odds) {
        step_pending(world);
    }
    if ((random >> 32 & 0xff) < world->step_odds) {
        step_requests(world);
    }
    world->now++;
    if (qpc_manager_idle(&world->manager) && world->fetch_head != world->fetch_tail &&
        world->fetches[world->fetch_head].due > world->now && (random >> 40 & 3) == 0) {
        world->now = world->fetches[world->fetch_head].due;
    }
}

/* CSR-50: the counters agree with the events that were seen. */
static void check_counters(const struct world *world)
{
    struct qpc_counters seen = world->counters;
    const struct qpc_counters *counters = &world->manager.counters;
    seen.evictions = seen.fetches - world->manager.cache.count; /* Everything was installed. */
    seen.checks = counters->checks;
    seen.swaps = counters->swaps;
    seen.type_1 = world->parameters.policy == QPC_FCFS ? 0 : seen.fetches;
    assert_memory_equal(&seen, counters, sizeof(seen));
    assert_int_equal(seen.fetches, seen.misses + seen.conversions + seen.prefetches -
                                       seen.prefetch_hits - seen.prefetch_pendings);
}

/* Far more than anybody waits: all of the others before, each with a fetch and two passes. */
static uint64_t wait_limit(const struct world *world)
{
    const uint64_t places = QPC_CHANNELS * world->parameters.oocap;
    return 1000 + places * (world->delay_max + 16 * places + 64);
}

static uint64_t run(uint64_t seed, bool small)
{
    seed_running = seed;
    struct world *world = world_make(seed, small);
    const uint64_t requests = small ? 1000 : REQUESTS;
    const uint64_t limit = wait_limit(world);
    uint64_t asked = 0, changed_at = 0;
    while (world->answered < requests) {
        tick(world, requests);
        if (small || world->now % 4096 == 0) {
            qpc_manager_check(&world->manager);
        }
        if (world->answered != asked) {
            asked = world->answered;
            changed_at = world->now;
        }
        require(world->now - changed_at <= limit && world->oldest_wait <= limit,
                "a request waits too long"); /* CSR-46 */
    }
    qpc_manager_check(&world->manager);
    require(qpc_manager_idle(&world->manager), "work is left");
    require(world->fetch_head == world->fetch_tail, "fetched without need");
    require(pending_fifo_count(&world->manager.pending) == 0, "a request is left");
    check_counters(world);
    const uint64_t digest = world->digest;
    world_free(world);
    return digest;
}

/* CSR-43, CSR-44, CSR-45, CSR-46 */
static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = seed_first; seed < seed_first + seed_count; seed++) {
        const uint64_t digest = run(seed, false);
        if (seed % 64 == 0) { /* CSR-48 */
            require(run(seed, false) == digest, "another digest the second time");
        }
    }
}

/* All invariants after every cycle, in small worlds. */
static void test_invariants(void **state)
{
    (void)state;
    for (uint64_t seed = seed_first; seed < seed_first + seed_count; seed++) {
        run(seed, true);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        seed_first = strtoull(argv[2], NULL, 10);
        seed_count = 1;
    } else if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        seed_first = strtoull(argv[2], NULL, 10);
        seed_count = strtoull(argv[3], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
