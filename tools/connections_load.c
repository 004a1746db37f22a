/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prng.h"
#include "tools/connections.h"

/* Completions taken at a time, and posts between two looks at the clock. */
#define POLL_MAX 64
#define SAMPLES  4000
/* Enough for every page of rings and tables between two processes. */
#define WARM_UP_MESSAGES 20000

/* The connections in the order of their turns, and how many messages each has under way. */
struct load {
    struct world *world;
    const struct plan *plan;
    uint32_t *posted;
    uint32_t *order;
    uint8_t *under_way;
    uint32_t turn;
    uint32_t in_flight;
    uint64_t completed;
    struct outcome *outcome;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool post(struct load *load, uint32_t index)
{
    struct world *world = load->world;
    const struct plan *plan = load->plan;
    uint8_t *slot = world->memory + (size_t)index * plan->bytes;
    load->posted[index]++;
    if (!plan->reads) {
        slot_fill(slot, plan->bytes, index, load->posted[index]);
    }
    struct ibv_sge sge = {(uintptr_t)slot, plan->bytes, world->mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = index,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = plan->reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {world->doors[index].address, world->doors[index].key},
                             };
    const int reason = ibv_post_send(world->qps[index], &wr, &bad);
    if (reason != 0) {
        snprintf(load->outcome->error, sizeof(load->outcome->error), "posting fails: %s",
                 strerror(reason));
        return false;
    }
    load->under_way[index]++;
    load->in_flight++;
    return true;
}

static bool reap(struct load *load)
{
    struct ibv_wc completions[POLL_MAX];
    const int count = ibv_poll_cq(load->world->cq, POLL_MAX, completions);
    for (int i = 0; i < count; i++) {
        if (completions[i].status != IBV_WC_SUCCESS) {
            snprintf(load->outcome->error, sizeof(load->outcome->error), "a message fails: %s",
                     ibv_wc_status_str(completions[i].status));
            return false;
        }
        load->under_way[completions[i].wr_id]--;
    }
    load->in_flight -= (uint32_t)count;
    load->completed += (uint64_t)count;
    return true;
}

static bool drain(struct load *load)
{
    while (load->in_flight > 0) {
        if (!reap(load)) {
            return false;
        }
    }
    return true;
}

/* Fills the window up to `depth`, one message a connection in turn. */
static bool fill(struct load *load)
{
    while (load->in_flight < load->plan->depth) {
        const uint32_t index = load->order[load->turn];
        if (load->under_way[index] >= load->plan->ring) {
            return true;
        }
        if (!post(load, index)) {
            return false;
        }
        load->turn = load->turn + 1 == load->plan->qps ? 0 : load->turn + 1;
    }
    return true;
}

static bool measure_rate(struct load *load)
{
    /* Uses every connection once, so that no page and no link is new any more. */
    while (load->completed < load->plan->qps) {
        if (!fill(load) || !reap(load)) {
            return false;
        }
    }
    const uint64_t before = load->completed;
    const double begin = now_s();
    double end = begin;
    for (uint32_t round = 0; end - begin < load->plan->seconds; round++) {
        if (!fill(load) || !reap(load)) {
            return false;
        }
        if (round % 16 == 0) {
            end = now_s();
        }
    }
    load->outcome->rate = (double)(load->completed - before) / (end - begin);
    return drain(load);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool measure_latency(struct load *load)
{
    static double samples[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const double begin = now_s();
        if (!post(load, load->order[load->turn]) || !drain(load)) {
            return false;
        }
        samples[i] = now_s() - begin;
        load->turn = load->turn + 1 == load->plan->qps ? 0 : load->turn + 1;
    }
    qsort(samples, SAMPLES, sizeof(samples[0]), compare);
    load->outcome->latency_us = samples[SAMPLES / 2] * 1e6;
    return true;
}

/* Runs the load over the first `qps` connections. */
static bool load_open(struct load *load, struct world *world, const struct plan *plan,
                      uint32_t *posted, struct outcome *outcome)
{
    *load = (struct load){
        .world = world,
        .plan = plan,
        .posted = posted,
        .order = calloc(plan->qps, sizeof(uint32_t)),
        .under_way = calloc(plan->qps, 1),
        .outcome = outcome,
    };
    if (load->order == NULL || load->under_way == NULL) {
        snprintf(outcome->error, sizeof(outcome->error), "no memory");
        return false;
    }
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < plan->qps; i++) {
        const uint32_t other = plan->shuffled ? (uint32_t)prng_below(&prng, i + 1) : i;
        load->order[i] = load->order[other];
        load->order[other] = i;
    }
    return true;
}

static void load_close(const struct load *load)
{
    free(load->order);
    free(load->under_way);
}

bool load_warm_up(struct world *world, const struct plan *plan, uint32_t qps, uint32_t *posted,
                  struct outcome *outcome)
{
    struct plan few = *plan;
    few.qps = qps;
    struct load load;
    bool good = load_open(&load, world, &few, posted, outcome);
    while (good && load.completed < WARM_UP_MESSAGES) {
        good = fill(&load) && reap(&load);
    }
    good = good && drain(&load);
    load_close(&load);
    return good;
}

bool load_run(struct world *world, const struct plan *plan, uint32_t *posted,
              struct outcome *outcome)
{
    struct load load;
    const bool good = load_open(&load, world, plan, posted, outcome) && measure_rate(&load) &&
                      measure_latency(&load);
    load_close(&load);
    return good;
}
