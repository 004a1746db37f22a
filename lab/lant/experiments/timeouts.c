/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What if a packet's timer followed from the distance (5.2.2.1)? A node's number
 * says where it stands, so the hops to it are arithmetic. All of it is prediction.
 */
#include "lab/lant/bench.h"

enum {
    RING = 64,
    FAR = RING / 2,
    STORE_FLITS = 5, /* The timer starts with the last one. */
    STORE_BYTES = 8,
    TRANSFER_BYTES = 512,
    CROWD_STORES = 100,
    CROWD_ROWS = 4,
    CROWD_PLACE = 2 << 20, /* Not where the transfer is. */
    CROWD_TRANSFER = 1 << 18,
};

struct rule {
    double base, hop, fixed; /* Cycles. */
    bool by_distance;
};

static struct rule rule_of(struct lab_run *run)
{
    return (struct rule){.base = lab_value(run, "timeout_base"),
                         .hop = lab_value(run, "timeout_hop"),
                         .fixed = lab_value(run, "timeout"),
                         .by_distance = lab_word(run, "timeout_by") == 1};
}

/* The prediction rests on this rule, whatever the run's switch says. */
static double timer_to(const struct rule *rule, uint32_t hops)
{
    return rule->base + rule->hop * hops;
}

static struct lant_bench *begin(struct lab_run *run, const struct rule *rule, uint32_t rows)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_ring_of(run, RING);
    config.shm.early_timers = 0; /* A store is done when its peer has it. */
    config.shm.rows = rows == 0 ? config.shm.rows : (uint16_t)rows;
    config.timers = (struct lant_distance_timers){.used = rule->by_distance,
                                                  .base = lant_cycles((uint64_t)rule->base),
                                                  .hop = lant_cycles((uint64_t)rule->hop),
                                                  .torus = {.dimensions = 1, .size = {RING}}};
    return lant_bench_begin(run, &config, &fabric);
}

/* -- A packet that is lost ----------------------------------------------------------------------*/

/* From now on every line loses all, until `copies` more are lost. */
static void lose(struct lant_bench *bench, uint64_t copies)
{
    struct lant_fabric *fabric = &bench->world.fabric;
    const uint64_t until = fabric->counters.lost + copies;
    fabric->errors.loss_millionths = 1000000;
    (void)lant_bench_until(bench, &fabric->counters.lost, until);
    fabric->errors.loss_millionths = 0;
}

/* Cycles that a store takes, of whose copies the first one is lost, beyond one without a loss. */
static double store_recovery(struct lab_run *run, const struct rule *rule, uint32_t hops)
{
    struct lant_bench *bench = begin(run, rule, 0);
    const double whole = lant_bench_store(bench, hops, STORE_BYTES);
    const uint64_t began_ps = bench->sim.now_ps;
    CHECK(lant_bench_put(bench, 0, hops, 0, STORE_BYTES));
    lose(bench, 1);
    lant_bench_settle(bench);
    const double lossy = lant_in_cycles(bench->probes[0].done_ps - began_ps);
    lant_bench_end(bench);
    return lossy - whole;
}

static double transfer_cycles(struct lab_run *run, const struct rule *rule, uint32_t hops,
                              uint64_t copies)
{
    struct lant_bench *bench = begin(run, rule, 0);
    lant_bench_transfer(bench, hops, TRANSFER_BYTES, 0);
    if (copies != 0) {
        lose(bench, copies);
    }
    lant_bench_settle(bench);
    const double cycles = lant_in_cycles(bench->probes[0].sent_ps);
    lant_bench_end(bench);
    return cycles;
}

static void judge_recovery(struct lab_run *run, const struct rule *rule)
{
    static const uint32_t hops[] = {1, 8, FAR};
    static const char *const stores[] = {"LNI-W-1.store/1", "LNI-W-1.store/8", "LNI-W-1.store/32"};
    static const char *const transfers[] = {"LNI-W-1.transfer/1", "LNI-W-1.transfer/8",
                                            "LNI-W-1.transfer/32"};
    const struct rule fixed = {.fixed = rule->fixed};
    const double setup = lab_value(run, "rdma_setup") + lab_value(run, "ram");
    double near = 0;
    for (uint32_t i = 0; i < COUNT_OF(hops); i++) {
        const double store = store_recovery(run, rule, hops[i]);
        const double transfer =
            transfer_cycles(run, rule, hops[i], 1) - transfer_cycles(run, rule, hops[i], 0);
        near = i == 0 ? store : near;
        lab_judge_relative(lab_add_row(run, stores[i], "cycles",
                                       "that a store takes longer whose packet is lost, %u hops",
                                       hops[i]),
                           STORE_FLITS + timer_to(rule, hops[i]), store, 0.005);
        lab_judge_relative(lab_add_row(run, transfers[i], "cycles",
                                       "the same of a transfer of %u bytes", TRANSFER_BYTES),
                           setup + timer_to(rule, hops[i]), transfer, 0.005);
    }
    lab_judge_relative(
        lab_add_row(run, "LNI-W-1.gain", "",
                    "what a lost store costs between neighbours, by a fixed timer, of this"),
        (STORE_FLITS + rule->fixed) / (STORE_FLITS + timer_to(rule, 1)),
        store_recovery(run, &fixed, 1) / near, 0.01);
}

/* -- Packets that are not lost ------------------------------------------------------------------*/

static void crowd(struct lant_bench *bench)
{
    struct prng *prng = &bench->sim.prng;
    for (uint32_t i = 0; i < CROWD_STORES; i++) {
        for (uint32_t from = 0; from < RING; from++) {
            const uint32_t to = (from + 1 + (uint32_t)prng_below(prng, RING - 1)) % RING;
            const uint64_t place = CROWD_PLACE + STORE_BYTES * ((uint64_t)RING * i + from);
            CHECK(lant_bench_put(bench, from, to, place, STORE_BYTES));
        }
    }
    lant_bench_transfer(bench, FAR, CROWD_TRANSFER, 0);
}

static void judge_needless(struct lab_run *run, const struct rule *rule)
{
    struct lant_bench *bench = begin(run, rule, CROWD_ROWS);
    uint64_t again = 0, packets = 0;
    crowd(bench);
    lant_bench_settle(bench);
    for (uint32_t i = 0; i < RING; i++) {
        const struct lant_node *node = &bench->world.nodes[i];
        again += node->shm.counters.resent + node->rdma.counters.again;
        again += node->rdma.counters.told_again;
        packets += node->counters.sent;
    }
    lant_bench_end(bench);
    lab_judge_absolute(lab_add_row(run, "LNI-W-1.needless", "packets",
                                   "sent again though none is lost, of %llu on a ring of %u",
                                   (unsigned long long)packets, RING),
                       0, (double)again, 0.5);
}

static void draw(struct lab_run *run, const struct rule *rule)
{
    const struct rule fixed = {.fixed = rule->fixed};
    lab_add_figure(run, "recovery", "The cost of a lost packet for a store", "hops", "cycles",
                   false);
    struct lab_series *series = lab_add_curve(run, "timer by distance");
    for (uint32_t hops = 1; hops <= FAR; hops *= 2) {
        lab_add_point(series, hops, store_recovery(run, rule, hops),
                      STORE_FLITS + timer_to(rule, hops));
    }
    series = lab_add_curve(run, "fixed timer");
    for (uint32_t hops = 1; hops <= FAR; hops *= 2) {
        lab_add_point(series, hops, store_recovery(run, &fixed, hops), STORE_FLITS + rule->fixed);
    }
}

static void timeouts(struct lab_run *run)
{
    const struct rule rule = rule_of(run);
    judge_recovery(run, &rule);
    judge_needless(run, &rule);
    draw(run, &rule);
}

static const struct lab_claim timeouts_claims[] = {
    {.id = "LNI-W-1.store",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.2.2.1: a timer by the distance; OC: 500 + 200 a hop, and 5 flits",
     .broken_by = "timeout_by=fixed",
     .because = "every packet then waits for 10000 cycles"},
    {.id = "LNI-W-1.transfer",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source =
         "5.2.2.1: a timer by the distance; OC: and 33 + 30 until the engine has read memory again",
     .broken_by = "timeout_by=fixed",
     .because = "every packet then waits for 10000 cycles"},
    {.id = "LNI-W-1.gain",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 10005 of 5 + 500 + 200",
     .broken_by = "timeout_by=fixed",
     .because = "there is then nothing to gain"},
    {.id = "LNI-W-1.needless",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: a hop there and back takes 2 x (59 + 18) = 154 cycles, fewer than the slope",
     .broken_by = "timeout_hop=100 | timeout_base=0 timeout_hop=150",
     .because = "the answers of far nodes then come behind their timers"},
};

const struct lab_experiment lant_timeouts = {
    .name = "lant/timeouts",
    .what = "what if: timers that follow from the distance",
    LANT_COMMON,
    .uses = LANT_LINE_USES "switch shm_issue shm_receive shm_done rdma_setup ram rdma_receive ack "
                           "rows operations timers early engine_window timeout retries cam "
                           "register segment receiver timeout_by=distance timeout_base timeout_hop",
    LANT_CLAIMS(timeouts_claims),
    .quick = true,
    .run = timeouts,
    .explains = "The document's timer is one for all, and so as long as the farthest node needs. "
                "Numbers say where nodes stand, so a timer can be a base, for what ends and "
                "queues take, and a slope above the round trip of a hop: neighbours then recover "
                "14 times sooner, and nobody sends needlessly. The slope is for shortest ways; "
                "with detours, or full queues, base and slope would have to be larger.",
};
