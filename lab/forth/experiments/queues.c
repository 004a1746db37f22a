/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Queues in the NIC: one FIFO, whose head holds up all, beside a queue for each destination.
 */
#include "lab/forth/experiments.h"

enum {
    HOT = FORTH_SWITCHED_NODES - 1, /* Three nodes send to it, */
    VICTIM = 1                      /* and node 0 to this one, too. */
};

#define NODES_MAX 8u

static uint32_t qwords_of(struct lab_run *run)
{
    return (uint32_t)lab_value(run, "payload") / FORTH_QWORD_BYTES;
}

struct net {
    struct forth_machine machine;
    struct forth_stream streams[NODES_MAX];
};

static void open_net(struct net *net, struct lab_run *run, uint32_t nodes, bool divided)
{
    forth_machine_open(&net->machine, run, nodes, true);
    for (uint32_t i = 0; i < nodes; i++) {
        net->machine.nodes[i].config.queues = divided ? nodes : 1;
        forth_stream_open(&net->streams[i], &net->machine, i, qwords_of(run), forth_warm_ps(run));
    }
}

static void play(struct net *net)
{
    struct lab_run *run = net->machine.run;
    sim_run_until(&net->machine.sim, lab_ps(run, "duration"));
    for (uint32_t i = 0; i < net->machine.count; i++) {
        forth_stream_check(&net->streams[i], run);
    }
    forth_machine_close(&net->machine);
}

/* Each node sends to all others at random: the mean of the rates at which they receive. */
static double at_random(struct lab_run *run, uint32_t nodes, bool divided)
{
    struct net net;
    double sum = 0;
    open_net(&net, run, nodes, divided);
    for (uint32_t i = 0; i < nodes; i++) {
        net.streams[i].at_random = true;
        for (uint32_t k = 1; k < nodes; k++) {
            forth_stream_to(&net.streams[i], (i + k) % nodes);
        }
    }
    play(&net);
    for (uint32_t i = 0; i < nodes; i++) {
        sum += forth_stream_rate(&net.streams[i].all);
    }
    return sum / nodes;
}

struct rates {
    double victim, hot; /* Node 0's, to the one and to the other. */
};

static struct rates beside_hot(struct lab_run *run, bool divided)
{
    struct net net;
    open_net(&net, run, FORTH_SWITCHED_NODES, divided);
    for (uint32_t i = 0; i < HOT; i++) {
        forth_stream_to(&net.streams[i], HOT);
    }
    forth_stream_to(&net.streams[0], VICTIM);
    play(&net);
    return (struct rates){.victim = forth_stream_rate(&net.streams[VICTIM].arrived[0]),
                          .hot = forth_stream_rate(&net.streams[HOT].arrived[0])};
}

static void draw(struct lab_run *run)
{
    const uint32_t ports = (uint32_t)lab_value(run, "ports");
    lab_add_figure(run, "nodes", "Each node sends to all others at random", "nodes on the switch",
                   "MiB/s that a node receives", false);
    for (uint32_t divided = 0; divided < 2; divided++) {
        struct lab_series *series =
            lab_add_curve(run, divided ? "a queue for each destination" : "one FIFO");
        for (uint32_t nodes = 2; nodes <= NODES_MAX && nodes <= ports; nodes += 2) {
            lab_add_point(series, nodes, at_random(run, nodes, divided != 0), LAB_NOTHING);
        }
        lab_progress(run, (1.0 + divided) / 2);
    }
}

static void queues(struct lab_run *run)
{
    const bool divided = lab_word(run, "nic_queues") != 0;
    const double link = forth_link_rate(run, 1, qwords_of(run));
    const struct rates one = beside_hot(run, false), own = beside_hot(run, divided);
    lab_judge_relative(lab_add_row(run, "FNX-Q.one", "MiB/s",
                                   "beside a third of a hot output, one FIFO: to an idle output"),
                       93, one.victim, 0.02);
    lab_judge_relative(
        lab_add_row(run, "FNX-Q.hot", "MiB/s", "a queue for each destination: to the hot output"),
        93, own.hot, 0.02);
    lab_judge_relative(
        lab_add_row(run, "FNX-Q.own", "MiB/s", "a queue for each destination: to the idle output"),
        link - 93, own.victim, 0.03);
    const double random = at_random(run, FORTH_SWITCHED_NODES, divided);
    const double credits = 2 * lab_value(run, "credit");
    const double words = forth_frame_words(qwords_of(run));
    lab_judge_relative(lab_add_row(run, "FNX-Q.random", "MiB/s",
                                   "all to all at random, a queue for each destination"),
                       link * words / (words + credits), random, 0.02);
    lab_judge_range(lab_add_row(run, "FNX-Q.gain", "", "the same, over one FIFO"), 1.03, 1.3,
                    random / at_random(run, FORTH_SWITCHED_NODES, false));
    draw(run);
}

static const struct lab_claim claims[] = {
    {.id = "FNX-Q.one",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-A4.sum",
     .source = "2.1: one outgoing FIFO; 4.2: 93 on every sender",
     .broken_by = "arbiter=fixed",
     .because = "the lowest input is served whenever it has a packet"},
    {.id = "FNX-Q.hot",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-A4.sum",
     .source = "4.2: 93 on every sender",
     .broken_by = "arbiter=fixed",
     .because = "the lowest input is served whenever it has a packet"},
    {.id = "FNX-Q.own",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-A4.sum",
     .source = "OC: what the hot output leaves of the link",
     .broken_by = "nic_queues=one",
     .because = "one FIFO for all destinations"},
    {.id = "FNX-Q.random",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-A3",
     .source = "OC: the links' time for a packet and two credits",
     .broken_by = "nic_queues=one",
     .because = "one FIFO for all destinations"},
    {.id = "FNX-Q.gain",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-A3",
     .source = "2.1: a virtual output queue for every destination; OC",
     .broken_by = "nic_queues=one",
     .because = "one FIFO for all destinations"},
};

const struct lab_experiment forth_queues = {
    FORTH_COMMON,
    .name = "forth/queues",
    .what = "queues in the NIC: one FIFO, or one for each destination",
    .uses = FORTH_USES_DIRECT FORTH_USES_SWITCH
    "ports nic_queues=per-destination duration=1000 warm_up payload",
    FORTH_CLAIMS(claims),
    .quick = true,
    .run = queues,
    .explains = "The document's NIC has one outgoing FIFO \"regardless of the destination\", and "
                "says that a virtual output queue for each is being implemented (2.1). Node 0 "
                "sends in turn to an idle output and to one that two others fill. Its FIFO gives "
                "both the third of the hot output: the packet at the head waits for credit, and "
                "all behind it wait, too. With a queue for each destination the idle output gets "
                "what the link has left. At random, all to all, one FIFO loses 4 to 6 % with four "
                "to eight nodes, no more, as the crosspoints' buffers hide most of it. How such "
                "queues are built is our choice: the NIC takes requests out of the host's queue "
                "into one for each destination, and these have equal shares of the same 8 KB.",
};
