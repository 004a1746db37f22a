/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/roce/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/roce/internal.h"

/* A run in which nothing is completed for this time stands still. */
#define PATIENCE_PS UINT64_C(2000000000000)
/* 4.096 us << 12: 17 ms. */
#define TIMEOUT_CODE 12
/* A flow's two ends: the one that posts, and its peer. */
enum {
    OWN,
    PEER,
};

/* -- Places -------------------------------------------------------------------------------------*/

static struct roce_program *end_of(const struct roce_flow *flow, uint32_t end)
{
    return &flow->world->programs[end == OWN ? flow->from : flow->to];
}

static size_t place_of(const struct roce_flow *flow, uint32_t end, uint64_t number)
{
    const struct roce_load *load = &flow->world->load;
    return flow->offsets[end] + (size_t)(number % load->depth) * load->bytes;
}

static uint8_t *bytes_of(const struct roce_flow *flow, uint32_t end, uint64_t number)
{
    return end_of(flow, end)->memory + place_of(flow, end, number);
}

static uint32_t index_of(const struct roce_flow *flow)
{
    return (uint32_t)(flow - flow->world->flows);
}

/* Words that tell the flow and the message; the last one may be cut. */
static void fill(const struct roce_flow *flow, uint32_t end, uint64_t number)
{
    const uint32_t bytes = flow->world->load.bytes;
    uint8_t *to = bytes_of(flow, end, number);
    const uint64_t flow_number = flow->world->load.alike ? 0 : index_of(flow);
    uint64_t word = (flow_number << 40 | number) + 1;
    for (uint32_t at = 0; at < bytes; at += sizeof(word)) {
        word = word * UINT64_C(0x9e3779b97f4a7c15) + 1;
        memcpy(to + at, &word, bytes - at < sizeof(word) ? bytes - at : sizeof(word));
    }
}

/* -- Messages -----------------------------------------------------------------------------------*/

static void post_receive(struct roce_flow *flow, uint64_t number)
{
    roce_program_receive(end_of(flow, PEER), flow->qps[PEER], index_of(flow),
                         place_of(flow, PEER, number), flow->world->load.bytes);
}

static void post(struct roce_flow *flow)
{
    static const enum work_kind kinds[] = {WORK_WRITE, WORK_SEND, WORK_READ};
    struct roce_world *world = flow->world;
    const uint64_t number = flow->posted++;
    world->posted++;
    const struct roce_program *peer = end_of(flow, PEER);
    const struct send_request request = {
        .wr_id = index_of(flow),
        .kind = kinds[world->load.work],
        .flags = WORK_SIGNALED | (world->load.inlined ? (uint32_t)WORK_INLINE : 0),
        .remote_address = roce_program_address(peer, place_of(flow, PEER, number)),
        .remote_key = peer->region.key,
    };
    fill(flow, world->load.work == ROCE_READ ? PEER : OWN, number);
    flow->posted_ps[number % world->load.depth] = world->sim.now_ps;
    roce_program_post(end_of(flow, OWN), flow->qps[OWN], &request, place_of(flow, OWN, number),
                      world->load.bytes);
}

static bool may_post(const struct roce_flow *flow)
{
    const struct roce_load *load = &flow->world->load;
    return flow->posted - flow->completed < load->depth &&
           (load->messages == 0 ? flow->world->sim.now_ps < load->stop_ps
                                : flow->posted < load->messages);
}

static void go_on(struct roce_flow *flow)
{
    while (may_post(flow)) {
        post(flow);
    }
}

static void on_start(struct sim *sim, struct sim_event *event)
{
    struct roce_flow *flow = CONTAINER_OF(event, struct roce_flow, start);
    (void)sim;
    flow->world->started++;
    go_on(flow);
}

/* Messages of a flow complete in their order. */
static void on_message(struct roce_flow *flow)
{
    struct roce_world *world = flow->world;
    const struct roce_load *load = &world->load;
    const uint64_t number = flow->completed++, now_ps = world->sim.now_ps;
    const uint64_t posted_ps = flow->posted_ps[number % load->depth];
    const struct roce_program *target = end_of(flow, load->work == ROCE_READ ? OWN : PEER);
    world->wrong +=
        memcmp(bytes_of(flow, OWN, number), bytes_of(flow, PEER, number), load->bytes) != 0;
    world->completed++;
    world->last_ps = now_ps;
    world->written_ps = target->written_ps - posted_ps;
    if (now_ps >= load->warm_ps && now_ps < load->stop_ps) {
        sim_rate_count(&flow->rate, now_ps, load->bytes);
        sim_rate_count(&world->rate, now_ps, load->bytes);
        sim_spread_count(world->latency, now_ps - posted_ps);
    }
    go_on(flow);
}

static void on_change(struct roce_program *program)
{
    struct roce_world *world = program->context;
    struct completion completion;
    while (cq_poll(&program->cq, &completion, 1) == 1) {
        struct roce_flow *flow = &world->flows[completion.wr_id];
        if (completion.status != COMPLETION_SUCCESS) {
            lab_fail(world->run, "a message from %u to %u ended with status %u", flow->from,
                     flow->to, completion.status);
        } else if (completion_is_receive(&completion)) {
            post_receive(flow, world->load.depth + flow->received++);
        } else {
            on_message(flow);
        }
    }
}

/* -- Opening ------------------------------------------------------------------------------------*/

static struct dcqcn_policy policy_of(const struct roce_world *world)
{
    struct dcqcn_policy policy = dcqcn_policy_default();
    policy.line_rate = (uint64_t)llround(1e15 / (double)world->config.line.byte_fs);
    return policy;
}

struct roce_config roce_world_config(struct lab_run *run, const struct roce_load *load)
{
    const struct roce_settings settings = roce_settings_of(run);
    struct roce_config config = roce_config_of(&settings);
    config.text = load->text;
    config.text_bytes = load->text_bytes;
    if (load->topology != NULL) {
        (void)snprintf(config.topology, sizeof(config.topology), "%s", load->topology);
    }
    if (load->pcie_byte_fs != 0) {
        config.pcie.byte_fs = load->pcie_byte_fs;
    }
    return config;
}

bool roce_world_fits(struct lab_run *run, const struct roce_load *load, char *error,
                     size_t error_bytes)
{
    struct sim sim;
    const struct roce_config config = roce_world_config(run, load);
    sim_init(&sim, run->seed);
    struct roce *roce = roce_open(&sim, &config, error, error_bytes);
    if (roce != NULL) {
        roce_close(roce);
    }
    return roce != NULL;
}

bool roce_world_open(struct roce_world *world, struct lab_run *run, const struct roce_load *load,
                     uint32_t flows)
{
    char error[LAB_TEXT_BYTES];
    CHECK(flows <= ROCE_FLOWS_MAX);
    *world = (struct roce_world){.run = run, .load = *load};
    if (run->failure[0] != '\0') {
        return false;
    }
    world->config = roce_world_config(run, load);
    lab_world_begin(run, &world->sim, &world->trace, &world->capture, PCAPNG_LINK_IP);
    world->roce = roce_open(&world->sim, &world->config, error, sizeof(error));
    if (world->roce == NULL) {
        lab_fail(run, "%s", error);
        lab_world_end(run, &world->sim, world->trace, world->capture);
        return false;
    }
    roce_capture(world->roce, world->capture);
    roce_trace(world->roce, world->trace);
    world->flows = calloc(flows, sizeof(world->flows[0]));
    world->programs = calloc(roce_nodes(world->roce), sizeof(world->programs[0]));
    world->latency = calloc(1, sizeof(*world->latency));
    CHECK(world->flows != NULL && world->programs != NULL && world->latency != NULL);
    return true;
}

void roce_world_flow(struct roce_world *world, uint32_t from, uint32_t to)
{
    CHECK(from != to && from < roce_nodes(world->roce) && to < roce_nodes(world->roce));
    struct roce_flow *flow = &world->flows[world->flow_count++];
    *flow = (struct roce_flow){.from = from, .to = to, .world = world};
    flow->posted_ps = calloc(world->load.depth, sizeof(flow->posted_ps[0]));
    CHECK(flow->posted_ps != NULL);
    sim_event_init(&flow->start, on_start);
}

/* Gives each end of each flow its places, and says how many flows a node has. */
static uint32_t *lay_out(struct roce_world *world)
{
    const size_t bytes = (size_t)world->load.bytes * world->load.depth;
    uint32_t *counts = calloc(roce_nodes(world->roce), sizeof(counts[0]));
    CHECK(counts != NULL);
    for (uint32_t i = 0; i < world->flow_count; i++) {
        struct roce_flow *flow = &world->flows[i];
        flow->offsets[OWN] = bytes * counts[flow->from]++;
        flow->offsets[PEER] = bytes * counts[flow->to]++;
        if (world->load.alike) {
            flow->offsets[OWN] = flow->offsets[PEER] = 0;
        }
    }
    return counts;
}

static void open_programs(struct roce_world *world)
{
    uint32_t *counts = lay_out(world);
    for (uint32_t i = 0; i < roce_nodes(world->roce); i++) {
        const uint32_t qps = counts[i] == 0 ? 1 : counts[i];
        const struct roce_program_config config = {
            .node = i,
            .memory_bytes =
                (size_t)world->load.bytes * world->load.depth * (world->load.alike ? 1 : qps),
            .qps = qps,
            .depth = world->load.depth,
            .mtu = PATH_MTU_4096,
            .timeout = TIMEOUT_CODE,
            .seed = world->run->seed * 65536 + i,
            .dcqcn = policy_of(world),
        };
        struct roce_program *program = &world->programs[i];
        roce_program_open(program, world->roce, &world->sim, &config);
        program->on_change = on_change;
        program->context = world;
    }
    free(counts);
}

static void open_flows(struct roce_world *world)
{
    for (uint32_t i = 0; i < world->flow_count; i++) {
        struct roce_flow *flow = &world->flows[i];
        for (uint32_t end = OWN; end <= PEER; end++) {
            flow->qps[end] = roce_program_qp(end_of(flow, end), QP_RC);
        }
        roce_program_connect(end_of(flow, OWN), flow->qps[OWN], end_of(flow, PEER),
                             flow->qps[PEER]);
        for (uint32_t k = 0; k < world->load.depth && world->load.work == ROCE_SEND; k++) {
            post_receive(flow, k);
        }
        sim_schedule(&world->sim, &flow->start, i * world->load.stagger_ps);
    }
}

/* -- Running ------------------------------------------------------------------------------------*/

static bool is_done(const struct roce_world *world)
{
    return world->started == world->flow_count && world->completed == world->posted;
}

void roce_world_run(struct roce_world *world)
{
    open_programs(world);
    open_flows(world);
    while (world->run->failure[0] == '\0' && !is_done(world)) {
        if (!sim_step(&world->sim) || world->sim.now_ps - world->last_ps > PATIENCE_PS) {
            lab_fail(world->run, "it stands still after %llu messages",
                     (unsigned long long)world->completed);
        }
    }
}

static void check_counters(struct roce_world *world)
{
    const struct roce_counters counters = roce_counters_of(world->roce);
    if (world->wrong + counters.nobody + counters.unreadable + counters.forgotten > 0) {
        lab_fail(world->run,
                 "%llu messages are not what was sent; %llu packets for nobody, %llu without "
                 "payload, %llu forgotten",
                 (unsigned long long)world->wrong, (unsigned long long)counters.nobody,
                 (unsigned long long)counters.unreadable, (unsigned long long)counters.forgotten);
    }
    lab_note(world->run, world->completed);
    lab_note(world->run, counters.packets);
    lab_note(world->run, counters.lost);
}

static void add_memory(struct roce_world *world)
{
    const struct roce *roce = world->roce;
    uint64_t nodes = roce->topology.nodes * sizeof(struct roce_node), qps = 0, qp_bytes = 0;
    for (uint32_t i = 0; i < roce->topology.nodes; i++) {
        const struct roce_program *program = &world->programs[i];
        nodes += program->config.memory_bytes;
        qps += program->qp_count;
        qp_bytes += program->qp_count * program->each_bytes;
    }
    lab_add_memory(world->run, "node", roce->topology.nodes, nodes);
    lab_add_memory(world->run, "queue pair", qps, qp_bytes);
    lab_add_memory(world->run, "packet", roce->flights.used,
                   (uint64_t)roce->flights.used * roce->flights.bytes);
}

void roce_world_close(struct roce_world *world)
{
    check_counters(world);
    add_memory(world);
    for (uint32_t i = 0; i < roce_nodes(world->roce); i++) {
        if (world->programs[i].roce != NULL) {
            roce_program_close(&world->programs[i]);
        }
    }
    for (uint32_t i = 0; i < world->flow_count; i++) {
        free(world->flows[i].posted_ps);
    }
    lab_world_end(world->run, &world->sim, world->trace, world->capture);
    roce_close(world->roce);
    free(world->programs);
    free(world->flows);
    free(world->latency);
}

/* -- Results ------------------------------------------------------------------------------------*/

double roce_flow_gbps(const struct roce_flow *flow)
{
    return sim_rate_per_second(&flow->rate) * 8e-9;
}

double roce_world_gbps(const struct roce_world *world)
{
    return sim_rate_per_second(&world->rate) * 8e-9;
}

double roce_world_fairness(const struct roce_world *world)
{
    double *shares = calloc(world->flow_count, sizeof(shares[0]));
    CHECK(shares != NULL);
    for (uint32_t i = 0; i < world->flow_count; i++) {
        shares[i] = roce_flow_gbps(&world->flows[i]);
    }
    const double index = sim_fairness(shares, world->flow_count);
    free(shares);
    return index;
}
