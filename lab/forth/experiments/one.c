/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One point, as the parameters say: hosts on the switch, or two of them directly, and what they
 * learn.
 */
#include <math.h>
#include <stdlib.h>

#include "lab/forth/experiments.h"
#include "lab/forth/host.h"

#define LOOK_PS UINT64_C(1000000) /* Between two looks at the queues. */
/* Nobody sends, and nothing comes any more: longer than a packet's way, whatever the parameters. */
#define PATIENCE_PS UINT64_C(50000000000)

struct one {
    struct forth_machine machine;
    struct lab_plan plan;
    struct forth_hosts hosts;
    struct forth_stream streams[FORTH_PORTS_MAX];
    struct lab_lengths requests, packets;
};

/* -- The run ------------------------------------------------------------------------------------*/

static bool open_plan(struct lab_plan *plan, struct lab_run *run)
{
    const bool direct = lab_word(run, "joined") != 0;
    /* A credit tells whole units of 32 words: up to 31 that are free stay unknown for ever. */
    const uint32_t untold = (1u << FORTH_CREDIT_SHIFT) - 1;
    const uint32_t crosspoint =
        (uint32_t)lab_value(run, "crosspoint") - FORTH_OVERHEAD_WORDS - untold;
    const uint32_t most = direct || crosspoint > FORTH_WORDS_MAX ? FORTH_WORDS_MAX : crosspoint;
    const struct lab_plan_limits limits = {.nodes = (uint32_t)lab_value(run, "nodes"),
                                           .bytes_most = most * FORTH_QWORD_BYTES,
                                           .unit = FORTH_QWORD_BYTES};
    if (direct && limits.nodes != 2) {
        lab_fail(run, "joined=direct: a pair of links joins two nodes, not %u", limits.nodes);
        return false;
    }
    if (!direct && limits.nodes > (uint32_t)lab_value(run, "ports")) {
        lab_fail(run, "%u nodes do not fit a switch of %u ports", limits.nodes,
                 (uint32_t)lab_value(run, "ports"));
        return false;
    }
    return lab_plan_open(plan, run, &limits);
}

static void open_hosts(struct one *one, struct lab_run *run)
{
    struct forth_hosts *hosts = &one->hosts;
    forth_hosts_open(hosts, &one->machine, &one->plan);
    hosts->call_ps = lab_ps(run, "call");
    hosts->interrupt_ps = lab_ps(run, "interrupt");
    hosts->window = (uint32_t)lab_value(run, "window");
    for (uint32_t i = 0; i < one->machine.count; i++) {
        forth_stream_open(&one->streams[i], &one->machine, i, 1, 0);
        one->streams[i].host = &hosts->hosts[i];
    }
    forth_hosts_begin(hosts);
}

static void look(struct one *one)
{
    const struct forth_machine *machine = &one->machine;
    for (uint32_t i = 0; i < machine->count; i++) {
        lab_lengths_count(&one->requests, forth_node_pending(&machine->nodes[i]));
        for (uint32_t k = 0; machine->switched && k < machine->count; k++) {
            lab_lengths_count(&one->packets, crossbar_point(&machine->crossbar, i, k)->words);
        }
    }
}

static bool all_posted(const struct one *one)
{
    bool all = true;
    for (uint32_t i = 0; i < one->machine.count && all; i++) {
        all = forth_host_over(&one->hosts.hosts[i]);
    }
    return all;
}

/* Until every host knows of all messages, or nothing has come for long. */
static void play(struct one *one)
{
    struct sim *sim = &one->machine.sim;
    const struct sim_spread *known = &one->hosts.tally.latency;
    const uint32_t count = lab_plan_count(&one->plan);
    uint64_t look_ps = LOOK_PS, quiet_ps = 0, before = 0;
    while (known->count < count && sim_step(sim)) {
        if (sim->now_ps < look_ps) {
            continue;
        }
        look_ps = sim->now_ps + LOOK_PS;
        look(one);
        lab_progress(one->machine.run, (double)known->count / count);
        if (known->count != before || !all_posted(one)) {
            before = known->count;
            quiet_ps = sim->now_ps;
        } else if (sim->now_ps - quiet_ps > PATIENCE_PS) {
            return;
        }
    }
}

/* -- Results ------------------------------------------------------------------------------------*/

/* The sums over a machine, and its busiest parts as shares of the time. */
struct sums {
    uint64_t lost, flagged, wrong;
    double link, bus, host, held;
};

static void add_link(struct sums *sums, const struct forth_link *link, double ps)
{
    const double busy_ps = (double)forth_link_ps(link, link->busy_cycles);
    sums->lost += link->bad_headers + link->bad_sops;
    sums->link = fmax(sums->link, busy_ps / ps);
}

static struct sums sums_of(struct one *one, double ps)
{
    const struct forth_machine *machine = &one->machine;
    struct sums sums = {0};
    for (uint32_t i = 0; i < machine->count; i++) {
        struct forth_node *node = &machine->nodes[i];
        const uint32_t held = node->registers.counters[FORTH_backpressure_cycles];
        add_link(&sums, &machine->up[i], ps);
        sums.held = fmax(sums.held, (double)sim_clock_at(node->config.net, held) / ps);
        sums.bus = fmax(sums.bus, (double)forth_node_pci_ps(node, node->bus.busy_cycles) / ps);
        sums.host = fmax(sums.host, (double)one->hosts.hosts[i].busy_ps / ps);
        sums.flagged += one->streams[i].flagged;
        for (uint32_t k = 0; k < FORTH_PORTS_MAX; k++) {
            sums.wrong += one->streams[i].sinks[k].wrong_bytes + one->streams[i].sinks[k].earlier;
        }
        if (machine->switched) {
            add_link(&sums, &machine->down[i], ps);
            sums.lost += machine->crossbar.ports[i].overflows;
        }
        sums.wrong += one->streams[i].strays;
    }
    return sums;
}

/* Jain's index of the senders' rates, as receivers see them. */
static double fairness_of(const struct one *one)
{
    double rates[FORTH_PORTS_MAX] = {0};
    size_t count = 0;
    for (uint32_t from = 0; from < one->machine.count; from++) {
        uint64_t last_ps = 0, bytes = 0;
        for (uint32_t to = 0; to < one->machine.count; to++) {
            const struct sim_rate *rate = &one->streams[to].arrived[from];
            last_ps = rate->last_ps > last_ps ? rate->last_ps : last_ps;
            bytes += rate->amount;
        }
        if (bytes > 0 && last_ps > 0) {
            rates[count++] = (double)bytes / (double)last_ps;
        }
    }
    return count == 0 ? LAB_NOTHING : sim_fairness(rates, count);
}

static void add_results(struct one *one, struct lab_run *run)
{
    const struct lab_tally *tally = &one->hosts.tally;
    const struct sums sums = sums_of(one, fmax(1, (double)one->machine.sim.now_ps));
    const uint32_t count = lab_plan_count(&one->plan);
    const struct lab_outcome outcome = {
        .gbps = lab_tally_gbps(tally),
        .rate = lab_tally_rate(tally),
        .latency = &tally->latency,
        .latency_of = "from a sender's wish until the receiver's host knows",
        .link = sums.link,
        .link_of = "of its time, the busiest link",
        .bus = sums.bus,
        .bus_of = "of its time, the busiest PCI-X bus",
        .queue = &one->requests,
        .queue_of = "requests in a NIC's queue",
        .lost = sums.lost + sums.flagged,
        .lost_of = "packets lost, or known to be spoilt",
    };
    lab_add_outcome(run, &outcome);
    lab_add_reading(run, "host_share", "", sums.host, "of its time, the busiest processor");
    lab_add_reading(run, "held", "", sums.held, "of its time, the NIC that waited most for credit");
    if (one->machine.switched) {
        lab_add_reading(run, "crosspoint_mean", "QWords",
                        one->packets.looks == 0
                            ? LAB_NOTHING
                            : (double)one->packets.sum / (double)one->packets.looks,
                        "in a crosspoint of the switch, the mean of all");
        lab_add_reading(run, "crosspoint_max", "QWords", (double)one->packets.most,
                        "the most of them");
    }
    lab_add_reading(run, "fairness", "", fairness_of(one), "Jain's index of the senders' rates");
    lab_judge_absolute(
        lab_add_row(run, "FNX-W-one", "", "of %u packets did not come as sent", count), 0,
        (double)(count - tally->latency.count + sums.wrong), 0);
}

/* -- The experiment -----------------------------------------------------------------------------*/

static void judge_texts(struct lab_run *run)
{
    struct lab_plan plan;
    if (lab_plan_has_text(run) && open_plan(&plan, run)) {
        lab_plan_close(&plan);
    }
}

static void run_one(struct lab_run *run)
{
    struct one *one = calloc(1, sizeof(*one));
    CHECK(one != NULL);
    if (open_plan(&one->plan, run)) {
        forth_machine_open(&one->machine, run, one->plan.nodes, lab_word(run, "joined") == 0);
        open_hosts(one, run);
        play(one);
        add_results(one, run);
        forth_machine_close(&one->machine);
        forth_hosts_close(&one->hosts);
        lab_plan_close(&one->plan);
    }
    free(one);
}

static const struct lab_claim one_claims[] = {
    {.id = "FNX-W-one",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "4.2: the system has not reported errors",
     .broken_by = "flow_control=off senders=0 pattern=incast sends=1000 | bit_errors=1e-4",
     .because = "senders do not wait for credit; links flip bits, and nothing is sent again"},
};

const struct lab_experiment forth_one = {
    .name = "forth/one",
    .what = "one point: hosts on the switch, or two directly, as the parameters say",
    FORTH_COMMON,
    .uses = FORTH_USES_SWITCHED LAB_PLAN_USES "nodes joined window call interrupt weight",
    FORTH_CLAIMS(one_claims),
    .quick = true,
    .judge_texts = judge_texts,
    .run = run_one,
    .explains =
        "For exploring, with every byte checked. A message is a packet. The NIC acknowledges "
        "nothing, so a sender goes on as soon as its request is in the queue, and a packet that a "
        "link spoilt is lost, or flagged: that is counted, and does not fail the run. A host's "
        "processor takes no time unless call and interrupt say so; it deals with what came before "
        "it sends. The rate is that from the first wish until the last packet is known.",
};
