/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One point, as the parameters say: programs on the nodes of a network, and what they see.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/lant/crowd.h"
#include "lab/lant/sender.h"

enum {
    LOOK_PS = 1000000,    /* Between two looks at the queues. */
    FRAMES_A_NODE = 1024, /* Packets and answers of all rows, with room to spare. */
    LINE_NODES = 2,
};

#define MEMORY_BYTES (UINT64_C(1) << 33)

struct one {
    struct lab_run *run;
    struct lant_bench *bench;
    struct lab_plan plan;
    struct lant_senders senders;
    struct lab_lengths packets;
};

/* -- The network --------------------------------------------------------------------------------*/

static bool texts_fit(struct lab_run *run)
{
    static const char *const replaced[] = {"network", "nodes"};
    for (uint32_t i = 0; i < COUNT_OF(replaced) && run->texts[LAB_TOPOLOGY].name != NULL; i++) {
        if (lab_is_set(run, replaced[i])) {
            lab_fail(run,
                     "the topology that is given as text says what %s is: it cannot be set as "
                     "well",
                     replaced[i]);
        }
    }
    return run->failure[0] == '\0';
}

/* A torus' node has its switch in the same FPGA; elsewhere a line leads to it. */
static struct lant_fabric_config fabric_of(struct lab_run *run)
{
    const uint32_t word = lab_word(run, "network"), nodes = lant_whole(run, "nodes");
    const bool line = word == 0, given = run->texts[LAB_TOPOLOGY].name != NULL;
    struct lant_fabric_config config = lant_ring_of(run, LINE_NODES);
    if (line || word > 1 || given) {
        config.node_line = config.switch_line;
    }
    if (line && !given && lab_is_set(run, "nodes")) {
        lab_fail(run, "network=line has two nodes: nodes is of the other networks");
    }
    if (line) {
        (void)snprintf(config.topology, sizeof(config.topology), "all-to-all:%u", LINE_NODES);
    } else {
        lant_crowd_describe((enum lant_network_kind)(word - 1), nodes, config.topology,
                            sizeof(config.topology));
    }
    config.given = run->texts[LAB_TOPOLOGY];
    config.bit_errors = lab_value(run, "bit_errors");
    config.loss_millionths = (uint32_t)llround(lab_value(run, "loss") * 1e6);
    config.flow = (enum lant_flow_kind)lab_word(run, "flow");
    config.buffer_flits = lant_whole(run, "buffer");
    config.channels = lant_whole(run, "channels");
    config.one_way = lab_word(run, "paths") != 0;
    return config;
}

/* How many nodes the network has; 0: the run has failed. */
static uint32_t nodes_of(struct lab_run *run, const struct lant_fabric_config *fabric)
{
    struct topology topology;
    char error[TOPOLOGY_ERROR_BYTES];
    if (!lant_fabric_topology(fabric, &topology, error, sizeof(error))) {
        lab_fail(run, "%s%s%s", fabric->given.text != NULL ? fabric->given.name : "",
                 fabric->given.text != NULL ? ": " : "", error);
        return 0;
    }
    const uint32_t nodes = topology.nodes;
    topology_close(&topology);
    return nodes;
}

/* -- The plan -----------------------------------------------------------------------------------*/

static bool open_plan(struct one *one, struct lant_fabric_config *fabric)
{
    struct lab_run *run = one->run;
    const bool transfers = lab_word(run, "work") == LANT_SENDER_TRANSFERS;
    struct lab_plan_limits limits = {.bytes_most = transfers ? 1u << 20 : LANT_SHM_ACCESS_MAX,
                                     .unit = transfers ? 1 : sizeof(uint64_t),
                                     .any_network = true};
    *fabric = fabric_of(run);
    limits.nodes = texts_fit(run) ? nodes_of(run, fabric) : 0;
    if (!transfers && lab_word(run, "seen") != 0) {
        lab_fail(run, "seen=receiver: nobody tells a receiver of a load or store");
    }
    if (run->failure[0] != '\0' || !lab_plan_open(&one->plan, run, &limits)) {
        return false;
    }
    const uint32_t beats = lant_whole(run, "window") * (one->plan.longest / LANT_FLIT_BYTES);
    if (!transfers && beats > LANT_ACCESSES_MAX) {
        lab_fail(run, "loads and stores of %u beats at a time: a node has room for %u", beats,
                 LANT_ACCESSES_MAX);
        lab_plan_close(&one->plan);
        return false;
    }
    const uint64_t each = lant_senders_memory(&one->plan, lant_whole(run, "window"));
    if (each * limits.nodes > MEMORY_BYTES) {
        lab_fail(run, "%u nodes with places for %u bytes of each other need more than 8 GiB",
                 limits.nodes, one->plan.longest);
        lab_plan_close(&one->plan);
        return false;
    }
    fabric->packets = FRAMES_A_NODE * limits.nodes;
    return true;
}

static void open_world(struct one *one, const struct lant_fabric_config *fabric)
{
    struct lab_run *run = one->run;
    struct lant_node_config config = lant_config_of(run);
    const uint32_t window = lant_whole(run, "window");
    config.memory_bytes = lant_senders_memory(&one->plan, window);
    config.believes_crc = lab_word(run, "crc") != 0;
    config.costs.memory = lant_whole(run, "dram");
    one->bench = lant_bench_begin(run, &config, fabric);
    one->senders = (struct lant_senders){
        .world = &one->bench->world,
        .plan = &one->plan,
        .work = (enum lant_sender_work)lab_word(run, "work"),
        .receivers_look = lab_word(run, "seen") != 0,
        .window = window,
        .call_ps = lant_cycles(lant_whole(run, "call")),
        .look_ps = lant_cycles(lant_whole(run, "look")),
    };
    lant_senders_open(&one->senders);
}

/* -- The run ------------------------------------------------------------------------------------*/

static void look(struct one *one)
{
    for (uint32_t i = 0; i < one->bench->world.count; i++) {
        const struct lant_node *node = &one->bench->world.nodes[i];
        lab_lengths_count(&one->packets, lant_rdma_in_flight(&node->rdma) +
                                             (uint32_t)__builtin_popcountll(node->shm.busy));
    }
}

/* Until every message has come to its end, or nothing happens any more. */
static void play(struct one *one)
{
    struct sim *sim = &one->bench->sim;
    const uint32_t count = lab_plan_count(&one->plan);
    uint64_t look_ps = LOOK_PS;
    look(one);
    while (one->senders.tally.latency.count + one->senders.failed < count && sim_step(sim)) {
        if (sim->now_ps >= look_ps) {
            look_ps = sim->now_ps + LOOK_PS;
            look(one);
            lab_progress(one->run, (double)one->senders.tally.latency.count / count);
        }
    }
}

/* -- Results ------------------------------------------------------------------------------------*/

struct sums {
    uint64_t lost, again, timeouts, asked, waited;
    double link, host;
};

static struct sums sums_of(const struct one *one, double ps)
{
    const struct lant_world *world = &one->bench->world;
    const struct lant_fabric *fabric = &world->fabric;
    struct sums sums = {.lost = fabric->counters.lost + fabric->counters.dropped_heads +
                                fabric->counters.dropped_full + fabric->flow.dropped};
    for (uint32_t i = 0; i < world->count; i++) {
        const struct lant_node *node = &world->nodes[i];
        const uint64_t *verdicts = node->rdma_target.counters.verdicts;
        const uint64_t waits = verdicts[LANT_RDMA_TARGET_ESCAPED] +
                               verdicts[LANT_RDMA_TARGET_ESCAPE_FULL] +
                               verdicts[LANT_RDMA_TARGET_TABLE_FULL];
        sums.lost += node->counters.verdicts[LANT_CRC_WRONG];
        sums.again += node->rdma.counters.again + node->shm.counters.resent;
        sums.timeouts += node->rdma.counters.timeouts + node->shm.counters.timeouts;
        sums.waited += waits;
        sums.asked += waits + verdicts[LANT_RDMA_TARGET_WRITE];
        sums.host = fmax(sums.host, (double)one->senders.senders[i].busy_ps / ps);
    }
    const uint32_t ports = fabric->topology.first_port[topology_vertices(&fabric->topology)];
    for (uint32_t i = 0; i < ports; i++) {
        sums.link = fmax(sums.link, (double)fabric->busy_ps[i] / ps);
    }
    return sums;
}

static void add_results(struct one *one)
{
    struct lab_run *run = one->run;
    const struct lab_tally *tally = &one->senders.tally;
    const struct sums sums = sums_of(one, fmax(1, (double)one->bench->sim.now_ps));
    const uint32_t count = lab_plan_count(&one->plan);
    const struct lab_outcome outcome = {
        .gbps = lab_tally_gbps(tally),
        .rate = lab_tally_rate(tally),
        .latency = &tally->latency,
        .latency_of = "from a program's wish until the end is seen",
        .link = sums.link,
        .link_of = "of its time, the busiest direction of a line",
        .queue = &one->packets,
        .queue_of = "packets, loads and stores of a node under way",
        .hits = sums.asked == 0 ? LAB_NOTHING : 1 - (double)sums.waited / (double)sums.asked,
        .hits_of = "packets of transfers for which a receiver had an entry at once",
        .lost = sums.lost,
        .lost_of = "packets lost, dropped or damaged",
        .again = sums.again,
        .again_of = "packets sent again",
    };
    lab_add_outcome(run, &outcome);
    lab_add_reading(run, "host_share", "", sums.host, "of its time, the busiest processor");
    lab_add_reading(run, "timeouts", "", (double)sums.timeouts, "packets that nobody answered");
    lab_add_reading(run, "switches", "",
                    one->bench->world.fabric.counters.carried == 0
                        ? LAB_NOTHING
                        : (double)one->bench->world.fabric.counters.switches /
                              (double)one->bench->world.fabric.counters.carried,
                    "that a packet passed, the mean");
    lab_judge_absolute(lab_add_row(run, "LNI-W-one", "", "of %u messages did not come", count), 0,
                       (double)(count - tally->latency.count), 0);
    lab_judge_absolute(lab_add_row(run, "LNI-W-one-bytes", "", "came with wrong bytes"), 0,
                       one->senders.wrong, 0);
}

/* -- The experiment -----------------------------------------------------------------------------*/

static void judge_texts(struct lab_run *run)
{
    struct one one = {.run = run};
    struct lant_fabric_config fabric;
    if (lab_plan_has_text(run) && open_plan(&one, &fabric)) {
        lab_plan_close(&one.plan);
    }
}

static void run_one(struct lab_run *run)
{
    struct one *one = calloc(1, sizeof(*one));
    struct lant_fabric_config fabric;
    CHECK(one != NULL);
    one->run = run;
    if (open_plan(one, &fabric)) {
        open_world(one, &fabric);
        play(one);
        add_results(one);
        lant_bench_settle(one->bench);
        lant_senders_close(&one->senders);
        lant_bench_end(one->bench);
        lab_plan_close(&one->plan);
    }
    free(one);
}

static const struct lab_claim one_claims[] = {
    {.id = "LNI-W-one",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.2.3: what fails goes again",
     .broken_by = "loss=0.05 retries=0",
     .because = "packets are lost, and none goes again"},
    {.id = "LNI-W-one-bytes",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.2.1.1: no data are written before a CRC",
     .broken_by = "bit_errors=1e-5 crc=believed",
     .because = "damaged packets go to memory"},
};

const struct lab_experiment lant_one = {
    LANT_COMMON,
    .name = "lant/one",
    .what = "one point: programs on the nodes of a network, as the parameters say",
    .uses = LANT_LINE_USES LAB_PLAN_USES
    "switch shm_issue shm_beat shm_receive shm_done shm_rows rdma_setup ram rdma_receive rdma_done "
    "ack rows operations timers early_timer early t_gen engine_window timeout retries cam mask "
    "entries escapes escape_time register segment receiver dram=0 crc bit_errors=0 loss flow "
    "buffer channels paths network nodes work seen window call look",
    LANT_CLAIMS(one_claims),
    .quick = true,
    .judge_texts = judge_texts,
    .run = run_one,
    .explains =
        "For exploring, with every byte compared. Stores end when the bus has its answer, which "
        "may be an early one (early=off has none). Loads and stores are 8 bytes or a multiple up "
        "to "
        "4,096. Of a network that is given as text the links are the machine's, whatever rates it "
        "has. The rate is that from the first wish to the last end.",
};
