/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long a message takes from memory to memory, with early acknowledgement and without: Fig. 6.3
 * (rows A17 to A19, A62).
 */
#include "lab/lant/bench.h"

enum {
    CURVE = 64, /* Timers. */
    LARGE = 128 << 10,
    HOPS_MAX = 3,
    SLOW_MAC = 1000, /* Cycles: more than 16 packets can cover. */
};

/* Chapter 6 uses another MAC, which stores each packet, and DRAM. */
static struct lant_node_config config_of(struct lab_run *run, bool early)
{
    struct lant_node_config config = lant_config_of(run);
    config.costs.memory = lant_whole(run, "dram") + lant_whole(run, "mac_rest");
    config.rdma.work.segment_bytes = 0;
    if (!early) {
        config.early_timers = 0;
    }
    return config;
}

static void set_mac(struct lab_run *run, struct lant_fabric_config *fabric)
{
    const bool stores = lab_word(run, "mac_kind") == 0;
    fabric->switch_line.store_and_forward = stores;
    fabric->node_line.store_and_forward = stores && fabric->node_line.latency_cycles != 0;
}

/* From the descriptor to the local notification, in cycles. `hops` 0: a line without switches. */
static double message(struct lab_run *run, const struct lant_node_config *config, uint32_t hops,
                      uint32_t bytes)
{
    struct lant_fabric_config fabric =
        hops == 0 ? lant_line_of(run) : lant_ring_of(run, 2 * HOPS_MAX);
    set_mac(run, &fabric);
    struct lant_bench *bench = lant_bench_begin(run, config, &fabric);
    lant_bench_transfer(bench, hops == 0 ? 1 : hops, bytes, 0);
    lant_bench_settle(bench);
    const double cycles = lant_in_cycles(bench->probes[0].sent_ps);
    lant_bench_end(bench);
    return cycles;
}

/* -- Sizes --------------------------------------------------------------------------------------*/

static void sizes(struct lab_run *run)
{
    const struct lant_node_config early = config_of(run, true), late = config_of(run, false);
    struct lab_figure *figure =
        lab_add_figure(run, "sizes", "Time of a message over its size", "bytes", "us", true);
    figure->log_y = true;
    lab_add_mark(figure, 64, 1.9, "1.9");
    const struct lant_node_config *const configs[] = {&early, &late};
    double us[2] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        struct lab_series *series = lab_add_curve(run, i == 0 ? "with early acknowledgement"
                                                              : "without early acknowledgement");
        for (uint32_t bytes = 8; bytes <= LARGE; bytes *= 2) {
            us[i] = message(run, configs[i], 0, bytes) * LANT_CYCLE_PS * 1e-6;
            lab_add_point(series, bytes, us[i], LAB_NOTHING);
        }
    }
    const double small = message(run, &early, 0, 8), flat = message(run, &early, 0, 64);
    const double packet = message(run, &early, 0, 512);
    lab_judge_relative(lab_add_row(run, "LNI-A17.level", "us", "64 bytes (%.0f cycles)", flat), 1.9,
                       flat * LANT_CYCLE_PS * 1e-6, 0.005);
    lab_judge_range(lab_add_row(run, "LNI-A17.flat", "", "64 bytes, of 8 bytes"), 1, 1.10,
                    flat / small);
    lab_judge_range(lab_add_row(run, "LNI-A17.grows", "", "512 bytes, of 8 bytes"), 1.4,
                    LAB_UNBOUNDED, packet / small);
    lab_judge_range(lab_add_row(run, "LNI-A18", "", "128 KB with, of without"), 0.4, 0.6,
                    us[0] / us[1]);
}

/* -- Distance -----------------------------------------------------------------------------------*/

static double ratio(struct lab_run *run, uint32_t hops)
{
    const struct lant_node_config early = config_of(run, true), late = config_of(run, false);
    return message(run, &late, hops, LARGE) / message(run, &early, hops, LARGE);
}

/* From a packet to the next one, if only one is under way. */
static double round_trip(struct lab_run *run, uint32_t hops)
{
    struct lant_node_config one = config_of(run, false);
    one.burst_window = 1;
    const uint32_t packets = 32;
    const double more = message(run, &one, hops, 2 * packets * LANT_PAYLOAD_BYTES_MAX);
    return (more - message(run, &one, hops, packets * LANT_PAYLOAD_BYTES_MAX)) / packets;
}

static void distance(struct lab_run *run)
{
    const double near = ratio(run, 1), near_trip = round_trip(run, 1);
    for (uint32_t hops = 2; hops <= HOPS_MAX; hops++) {
        const double trip = round_trip(run, hops);
        lab_judge_relative(lab_add_row(run, hops == 2 ? "LNI-A19/2" : "LNI-A19/3", "",
                                       "128 KB over %u hops, round trip %.0f cycles", hops, trip),
                           near * trip / near_trip, ratio(run, hops), 0.05);
    }
}

/* -- Timers -------------------------------------------------------------------------------------*/

static double goodput(struct lab_run *run, const struct lant_node_config *config, uint32_t mac)
{
    struct lant_fabric_config fabric = lant_line_of(run);
    fabric.node_line.latency_cycles = mac;
    set_mac(run, &fabric);
    struct lant_bench *bench = lant_bench_begin(run, config, &fabric);
    const double gbps = lant_bench_goodput(bench, 1, LARGE);
    lant_bench_end(bench);
    return gbps;
}

/* The longest round trip over which the timers last, in cycles. */
static double longest(struct lab_run *run, double full)
{
    const struct lant_node_config config = config_of(run, true);
    uint32_t good = lant_whole(run, "mac"), bad = good + SLOW_MAC;
    while (bad - good > 1) {
        const uint32_t middle = (good + bad) / 2;
        *(goodput(run, &config, middle) >= 0.99 * full ? &good : &bad) = middle;
    }
    return round_trip(run, 0) + 2.0 * (good - lant_whole(run, "mac"));
}

static void timers(struct lab_run *run)
{
    struct lant_node_config config = config_of(run, true);
    const uint32_t all = config.early_timers, mac = lant_whole(run, "mac");
    const double full = goodput(run, &config, 0);
    uint32_t least = 0;
    lab_add_figure(run, "timers", "Throughput over timers for early acknowledgement", "timers",
                   "payload, Gb/s", false);
    struct lab_series *series = lab_add_curve(run, "one line");
    for (uint32_t n = 1; n <= all && (n <= CURVE || least == 0); n++) {
        config.early_timers = n;
        const double gbps = goodput(run, &config, mac);
        least = least == 0 && gbps >= 0.99 * full ? n : least;
        if (n <= CURVE) {
            lab_add_point(series, n, gbps, LAB_NOTHING);
        }
    }
    lab_judge_range(lab_add_row(run, "LNI-A62.least", "", "timers that are enough"), 5, 7,
                    least == 0 ? all + 1.0 : least);
    lab_judge_relative(
        lab_add_row(run, "LNI-A62.far", "cycles", "the round trip that %u cover", all), 1197,
        longest(run, full), 0.03);
}

static void messages(struct lab_run *run)
{
    sizes(run);
    lab_progress(run, 0.3);
    distance(run);
    lab_progress(run, 0.6);
    timers(run);
}

static const struct lab_claim messages_claims[] = {
    {.id = "LNI-A17.level",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "6.1: around 1.9 us, until over 64B",
     .broken_by = "mac_rest=0 | dram=0",
     .because = "what is left of the sum was set by it"},
    {.id = "LNI-A17.flat",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "6.1: consistent until over 64B; OC: the bound",
     .broken_by = "mac=0 ram=0 dram=0",
     .because = "without the latency of line and memory seven flits more show"},
    {.id = "LNI-A17.grows",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "6.1: consistent until over 64B; OC: the bound",
     .broken_by = "receiver=cut mac_kind=cut",
     .because = "a flit then takes its time once, not three times"},
    {.id = "LNI-A18",
     .reference = LAB_IN_WORDS,
     .ground = LAB_FITTED,
     .source = "6.1: roughly half; OC: the bounds",
     .broken_by = "engine_window=2 | engine_window=4 | early=off",
     .because = "one whole number was set by it: two give 0.39, three 0.58, four 0.77"},
    {.id = "LNI-A19",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.1: even more pronounced over more than one hop; OC: by as much as the round trip",
     .broken_by = "engine_window=16",
     .because = "with sixteen packets under way distance does not matter yet"},
    {.id = "LNI-A62.least",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.1: 16 are easily enough at one hop; OC: 413 / 74.8",
     .broken_by = "mac=0",
     .because = "a shorter round trip needs fewer",
     .not_reproduced = "three: the DMA engine leaves three bursts (A18) without a timer besides"},
    {.id = "LNI-A62.far",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 16 x 74.83",
     .broken_by = "timers=4 | rows=8",
     .because = "fewer packets under way cover less"},
};

const struct lab_experiment lant_messages = {
    .name = "lant/messages",
    .what = "a message's time over size and distance, acknowledged early and not",
    LANT_COMMON,
    .uses =
        LANT_LINE_USES "switch rdma_setup ram rdma_receive rdma_done ack rows timers t_gen early "
                       "engine_window timeout register receiver dram mac_rest mac_kind",
    LANT_CLAIMS(messages_claims),
    .quick = true,
    .run = messages,
    .explains =
        "Early answers lift the engine's own limit of bursts; what they gain is the ratio of "
        "round trip and packet time, divided by that limit. The limit itself is fitted.",
};
