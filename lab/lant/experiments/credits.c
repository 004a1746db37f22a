/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What if switches had finite buffers, and lines credits? The document
 * assumes that nothing is dropped, and says nothing about how. All of it is prediction.
 */
#include <stdio.h>
#include <string.h>

#include "lab/lant/bench.h"

/* Printed (MAC), or fitted to what is printed; parameters do not change them. */
enum {
    MAC = 59,
    SWITCH = 18,
    PACKET_FLITS = 68,
};

#define LINE_CYCLES (PACKET_FLITS + 4 + PACKET_FLITS / 24.0) /* A packet on a full line. */
#define LOOP_CYCLES (2.0 * MAC + SWITCH + PACKET_FLITS)      /* Until a packet's room is back. */

enum {
    SENDERS = 4,
    EACH_BYTES = 1 << 16,
    ALL_PACKETS = SENDERS * EACH_BYTES / LANT_PAYLOAD_BYTES_MAX,
    STREAM_BYTES = 1 << 18,
    LOOPS = 2, /* Buffers of one packet, and of two. */
    RING = 16,
    RING_PACKETS = 64, /* Packets that each node sends. */
};

static double gbps_of(double cycles_each)
{
    return 8e3 * LANT_PAYLOAD_BYTES_MAX / (cycles_each * LANT_CYCLE_PS);
}

static struct lant_fabric_config network_of(struct lab_run *run, enum lant_flow_kind flow,
                                            uint32_t buffer)
{
    static const char *const names[] = {"fat-tree:4:3", "star:16", "torus:4x4"};
    struct lant_fabric_config fabric = lant_line_of(run);
    fabric.switch_cycles = lant_whole(run, "switch");
    fabric.flow = flow;
    fabric.buffer_flits = buffer;
    fabric.channels = lant_whole(run, "channels");
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "%s",
                   names[lab_word(run, "credit_network")]);
    return fabric;
}

/* False: this network cannot have this flow control, and the run has failed. */
static bool accepts(struct lab_run *run, enum lant_flow_kind flow)
{
    const struct lant_fabric_config fabric = network_of(run, flow, LANT_PACKET_FLITS_MAX);
    struct topology topology;
    char error[TOPOLOGY_ERROR_BYTES];
    CHECK(topology_open(&topology, fabric.topology, error, sizeof(error)));
    const char *refused = lant_flow_refuses(flow, fabric.channels, &topology);
    topology_close(&topology);
    if (refused != NULL) {
        lab_fail(run, "%s", refused);
    }
    return refused == NULL;
}

/* -- A hot spot ---------------------------------------------------------------------------------*/

struct outcome {
    uint64_t dropped, again, whole; /* Packets; packets; transfers that came, and are right. */
    double gbps;                    /* At the receiver, of the middle half of all packets. */
    double cycles;                  /* Until all has come. */
};

/* One in each part of the tree; the first one shares the receiver's switch. */
static uint32_t sender(uint32_t number)
{
    return 1 + 4 * number;
}

static struct outcome look(const struct lant_bench *bench)
{
    const struct lant_world *world = &bench->world;
    struct outcome outcome = {.dropped = world->fabric.flow.dropped};
    for (uint32_t i = 0; i < SENDERS; i++) {
        const struct lant_node *node = &world->nodes[sender(i)];
        outcome.again += node->rdma.counters.again + node->rdma.counters.told_again;
        outcome.whole += memcmp(world->nodes[0].memory + (uint64_t)EACH_BYTES * i, node->memory,
                                EACH_BYTES) == 0 &&
                         node->rdma.counters.failed == 0;
    }
    return outcome;
}

/* All senders send to node 0 at once. */
static struct outcome hot_spot(struct lab_run *run, enum lant_flow_kind flow, uint32_t buffer)
{
    const struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = network_of(run, flow, buffer);
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    const uint64_t *written = &bench->world.nodes[0].rdma_target.counters.written;
    for (uint32_t i = 0; i < SENDERS; i++) {
        struct lant_node *node = &bench->world.nodes[sender(i)];
        const struct lant_work work = {
            .descriptor = {.destination = lant_global(0, (uint64_t)EACH_BYTES * i),
                           .bytes = EACH_BYTES},
            .tag = i};
        lant_bench_fill(bench, sender(i), EACH_BYTES);
        CHECK(lant_node_submit(node, LANT_QUEUE_CPU, &work) == LANT_SUBMIT_COMMITTED);
    }
    (void)lant_bench_until(bench, written, ALL_PACKETS / 4);
    const uint64_t from_ps = bench->sim.now_ps;
    (void)lant_bench_until(bench, written, 3 * ALL_PACKETS / 4);
    const double cycles = lant_in_cycles(bench->sim.now_ps - from_ps) / (ALL_PACKETS / 2.0);
    lant_bench_settle(bench);
    struct outcome outcome = look(bench);
    outcome.gbps = gbps_of(cycles);
    outcome.cycles = lant_in_cycles(bench->probes[0].received_ps);
    lant_bench_end(bench);
    return outcome;
}

static void judge_hot_spot(struct lab_run *run, enum lant_flow_kind flow, uint32_t buffer)
{
    const struct outcome kept = hot_spot(run, flow, buffer);
    const struct outcome dropped = hot_spot(run, LANT_FLOW_DROP, buffer);
    lab_judge_absolute(lab_add_row(run, "LNI-W-3.dropped", "packets",
                                   "dropped for want of room, %u senders to one", SENDERS),
                       0, (double)kept.dropped, 0.5);
    lab_judge_absolute(lab_add_row(run, "LNI-W-3.again", "packets", "sent again"), 0,
                       (double)kept.again, 0.5);
    lab_judge_relative(lab_add_row(run, "LNI-W-3.hot", "Gb/s", "what the receiver gets"),
                       gbps_of(LINE_CYCLES), kept.gbps, 0.01);
    lab_judge_absolute(lab_add_row(run, "LNI-W-3.whole", "transfers",
                                   "that came whole where %llu packets were dropped",
                                   (unsigned long long)dropped.dropped),
                       SENDERS, (double)dropped.whole, 0.5);
    lab_judge_absolute(
        lab_add_row(run, "LNI-W-3.resent", "", "sent again for each one that was dropped"), 1,
        (double)dropped.again / (double)dropped.dropped, 0.02);
}

/* -- How large a buffer is enough ---------------------------------------------------------------*/

/* One flow, from node 1 to node 0: of its two lines, the first one leads to a buffer. */
static double stream(struct lab_run *run, enum lant_flow_kind flow, uint32_t buffer)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = network_of(run, flow, buffer);
    config.rdma.work.segment_bytes = 0;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    const double gbps = lant_bench_goodput(bench, 1, STREAM_BYTES);
    lant_bench_end(bench);
    return gbps;
}

static void judge_buffers(struct lab_run *run, enum lant_flow_kind flow, uint32_t buffer)
{
    static const char *const ids[LOOPS] = {"LNI-W-3.loop/1", "LNI-W-3.loop/2"};
    for (uint32_t n = 1; n <= LOOPS; n++) {
        lab_judge_relative(
            lab_add_row(run, ids[n - 1], "Gb/s", "one flow, buffers of %u packets", n),
            n * gbps_of(LOOP_CYCLES), stream(run, flow, n * PACKET_FLITS + 1), 0.01);
    }
    lab_judge_relative(
        lab_add_row(run, "LNI-W-3.enough", "Gb/s", "one flow, buffers of %u flits", buffer),
        gbps_of(LINE_CYCLES), stream(run, flow, buffer), 0.01);
}

/* -- Circles ------------------------------------------------------------------------------------*/

struct ring {
    struct lant_fabric fabric;
    uint32_t come, wrong;
};

static void on_packet(void *context, uint32_t node, struct lant_frame *frame)
{
    (void)node;
    struct ring *ring = context;
    ring->come++;
    ring->wrong += !lant_bench_whole(frame);
    lant_fabric_free(&ring->fabric, frame);
}

/* Every node of a ring sends nearly half way around, all in one direction, as fast as it can: the
 * share of the packets that come. */
static double ring_share(struct lab_run *run, enum lant_flow_kind flow, uint32_t buffer)
{
    struct ring ring = {0};
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    char error[TOPOLOGY_ERROR_BYTES];
    struct lant_fabric_config config = network_of(run, flow, buffer);
    (void)snprintf(config.topology, sizeof(config.topology), "torus:%u", RING);
    config.may_deadlock = true;
    lab_world_begin(run, &sim, &trace, &capture, PCAPNG_LINK_LANT);
    CHECK(lant_fabric_open(&ring.fabric, &config, &sim, 1, on_packet, &ring, error, sizeof(error)));
    for (uint32_t i = 0; i < RING * RING_PACKETS; i++) {
        struct lant_packet packet = {
            .header = {.destination = (i + RING / 2 - 1) % RING,
                       .type = LANT_RDMA_UNREGISTERED,
                       .payload = LANT_PAYLOAD_FLITS_MAX},
            .footer = {.source = i % RING, .offset = i, .class = LANT_CLASS_RDMA}};
        struct lant_frame *frame = lant_fabric_frame(&ring.fabric);
        CHECK(frame != NULL);
        lant_bench_load(&packet);
        frame->count = lant_encode(&packet, frame->flits);
        (void)lant_fabric_send(&ring.fabric, i % RING, frame, 0);
    }
    while (sim_step(&sim)) {
    }
    const double share = (double)ring.come / (RING * RING_PACKETS);
    if (ring.wrong != 0) {
        lab_fail(run, "%u packets came wrong", ring.wrong);
    }
    lant_fabric_close(&ring.fabric);
    lab_world_end(run, &sim, trace, capture);
    return share;
}

static void draw(struct lab_run *run)
{
    static const char *const names[] = {"", "credits", "packets are dropped"};
    lab_add_figure(run, "hot-spot", "Four senders to one: time until all has come",
                   "flits of buffer", "cycles", true);
    for (enum lant_flow_kind flow = LANT_FLOW_CREDITS; flow <= LANT_FLOW_DROP; flow++) {
        struct lab_series *series = lab_add_curve(run, "%s", names[flow]);
        for (uint32_t buffer = 137; buffer <= 4400; buffer *= 2) {
            const struct outcome outcome = hot_spot(run, flow, buffer);
            lab_add_point(series, buffer, outcome.cycles, LAB_NOTHING);
        }
    }
}

static void credits(struct lab_run *run)
{
    const enum lant_flow_kind flow = (enum lant_flow_kind)lab_word(run, "flow");
    const uint32_t buffer = lant_whole(run, "buffer");
    if (!accepts(run, flow) || !accepts(run, LANT_FLOW_CREDITS)) {
        return;
    }
    judge_hot_spot(run, flow, buffer);
    judge_buffers(run, flow, buffer);
    lab_judge_absolute(lab_add_row(run, "LNI-W-3.ring", "",
                                   "share of packets that come, all nodes of a ring of %u sending",
                                   RING),
                       1, ring_share(run, flow, buffer), 1e-6);
    draw(run);
}

static const struct lab_claim credits_claims[] = {
    {.id = "LNI-W-3.dropped",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: who sends knows what room is left",
     .broken_by = "flow=drop",
     .because = "nobody knows it then"},
    {.id = "LNI-W-3.again",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source =
         "OC: nothing is lost, and the 4 x (16 + 3) packets under way take 5700 cycles of the "
         "last line, less than a timer",
     .broken_by = "flow=drop | timeout=1000",
     .because = "what is dropped goes again; or what only waits does"},
    {.id = "LNI-W-3.hot",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A11",
     .source = "OC: 512 bytes in 68 + 4 + 68 / 24 cycles, the last line is never idle",
     .broken_by = "buffer=69 mac=200",
     .because = "three buffers of one packet do not cover the round trip of their lines"},
    {.id = "LNI-W-3.whole",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.2.3: what is lost goes again",
     .broken_by = "retries=0",
     .because = "what is dropped is given up"},
    {.id = "LNI-W-3.resent",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.2.3: only what is lost goes again, when its timer ends",
     .broken_by = "retries=0 | timeout=1000",
     .because = "nothing goes again; or what only waits does"},
    {.id = "LNI-W-3.loop",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = "OC: n x 512 bytes in 2 x 59 + 18 + 68 = 204 cycles",
     .broken_by = "flow=none | mac=30",
     .because = "nobody waits for room; or the word of it is back sooner"},
    {.id = "LNI-W-3.enough",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A11",
     .source = "OC: 204 cycles are 2.7 packets of a full line, and three are enough",
     .broken_by = "buffer=137 | mac=200",
     .because = "the buffer does not cover the round trip then"},
    {.id = "LNI-W-3.ring",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "Dally1987: two virtual channels a ring, so that nothing waits in a circle",
     .broken_by = "channels=1",
     .because = "every buffer of the ring is full of packets for the next one"},
};

const struct lab_experiment lant_credits = {
    .name = "lant/credits",
    .what = "what if: finite buffers in switches, with credits",
    LANT_COMMON,
    .uses = LANT_LINE_USES
    "switch rdma_setup ram rdma_receive ack rows operations timers early_timer early engine_window "
    "timeout=40000 register segment receiver credit_network channels flow=credits buffer retries=7",
    LANT_CLAIMS(credits_claims),
    .quick = true,
    .run = credits,
    .explains =
        "With credits for each line nothing is dropped, and a buffer of three packets a line is "
        "enough for the document's MAC. Without, the transport repairs what switches drop, and "
        "pays a timer for each; the receiver's line is busy all the same while all send. Packets "
        "that wait in the network do so within their timer: the document's 10000 cycles are too "
        "short for some packets of four senders. In a fat tree, which goes up and then down, one "
        "channel is sound; in a ring all packets can come to wait for each other, unless a second "
        "channel takes those that have passed its end.",
};
