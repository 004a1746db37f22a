/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/network/flow.h"

#include "base/check.h"

/* Frames that may be under way at a time. */
#define FRAMES 16384u

/* The class that senders send, and the class that the receiver sends. */
#define DATA_CLASS    0
#define REVERSE_CLASS 1

/* -- Ends of frames -----------------------------------------------------------------------------*/

static void end(struct flow_world *world, struct sim_frame *frame)
{
    sim_pool_give(&world->pool, CONTAINER_OF(frame, struct flow_frame, frame));
}

static void count_latency(struct flow_host *host, uint64_t latency_ps)
{
    struct flow_world *world = host->world;
    if (host->index == world->config.senders) {
        world->latency_ps += latency_ps;
        world->latencies++;
    }
}

static void on_frame(struct sim_port *port, struct sim_frame *frame)
{
    struct flow_host *host = CONTAINER_OF(port, struct flow_host, port);
    struct flow_world *world = host->world;
    const struct flow_frame *packet = CONTAINER_OF(frame, struct flow_frame, frame);
    const uint64_t now_ps = world->sim.now_ps;
    world->disordered +=
        packet->number < host->expected[packet->source] || frame->destination != host->index;
    host->expected[packet->source] = packet->number + 1;
    host->came++;
    if (now_ps >= world->config.warm_ps && now_ps < world->config.stop_ps) {
        host->counted[packet->source]++;
        count_latency(host, now_ps - packet->sent_ps);
    }
    world->ce += frame->ecn == SIM_CE && host->index == world->config.senders;
    sim_note(&world->sim,
             (uint64_t)frame->ecn << 40 | (uint64_t)packet->source << 32 | packet->number);
    end(world, frame);
}

static void on_loss(struct sim_ethernet_switch *from, struct sim_frame *frame, enum sim_loss loss)
{
    struct flow_world *world = CONTAINER_OF(from, struct flow_world, middle);
    const struct flow_frame *packet = CONTAINER_OF(frame, struct flow_frame, frame);
    world->lost[loss]++;
    sim_note(&world->sim,
             ~((uint64_t)loss << 40 | (uint64_t)packet->source << 32 | packet->number));
    end(world, frame);
}

/* -- Sending ------------------------------------------------------------------------------------*/

static uint32_t destination_of(const struct flow_host *host)
{
    const uint32_t senders = host->world->config.senders;
    return host->index == senders ? host->made % senders : senders;
}

static void make(struct flow_host *host)
{
    struct flow_world *world = host->world;
    const struct flow_config *config = &world->config;
    const bool receiver = host->index == config->senders;
    if (world->sim.now_ps >= config->stop_ps) {
        return;
    }
    struct flow_frame *packet = sim_pool_take(&world->pool);
    if (packet == NULL) {
        lab_fail(world->run, "more than %u frames are under way", FRAMES);
        return;
    }
    packet->source = host->index;
    sim_frame_open(&packet->frame, receiver ? config->reverse_bytes : config->frame_bytes,
                   destination_of(host), receiver ? REVERSE_CLASS : DATA_CLASS,
                   receiver ? SIM_NOT_ECT : config->ecn);
    packet->number = host->made++;
    sim_port_send(&host->port, &packet->frame);
}

static void on_start(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    make(CONTAINER_OF(event, struct flow_host, start));
}

static void show(struct flow_world *world)
{
    if (UNLIKELY(world->trace != NULL)) {
        const struct sim_port *output = &world->middle.ports[world->config.senders].port;
        sim_trace_value(world->trace, world->track, world->sim.now_ps,
                        output->waiting_bytes[DATA_CLASS]);
    }
}

/* A sender is never idle: its next frame waits behind the one that begins. */
static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    struct flow_host *host = CONTAINER_OF(port, struct flow_host, port);
    CONTAINER_OF(frame, struct flow_frame, frame)->sent_ps = frame->span.tail_ps;
    show(host->world);
    make(host);
}

static const struct sim_port_calls calls = {.on_frame = on_frame, .on_begin = on_begin};

/* -- The world ----------------------------------------------------------------------------------*/

static void open_host(struct flow_world *world, uint32_t index)
{
    struct flow_host *host = &world->hosts[index];
    host->world = world;
    host->index = index;
    sim_port_open(&host->port, &world->sim, &world->config.kind.line, &calls);
    sim_port_join(&host->port, &world->middle.ports[index].port);
    sim_event_init(&host->start, on_start);
    if (index < world->config.senders) {
        sim_schedule(&world->sim, &host->start,
                     world->config.start_ps + index * world->config.stagger_ps);
    } else if (world->config.reverse_bytes > 0) {
        sim_schedule(&world->sim, &host->start, 0);
    }
}

void flow_open(struct flow_world *world, struct lab_run *run, const struct flow_config *config)
{
    CHECK(config->senders >= 1 && config->senders <= FLOW_SENDERS_MAX);
    *world = (struct flow_world){.config = *config, .run = run};
    lab_world_begin(run, &world->sim, &world->trace, &world->capture, PCAPNG_LINK_BYTES);
    if (world->trace != NULL) {
        world->track = sim_trace_track(world->trace, "switch", 0, "queue of the receiver", 32);
    }
    sim_pool_open(&world->pool, FRAMES, sizeof(struct flow_frame));
    sim_ethernet_switch_open(&world->middle, &world->sim, &config->kind, config->senders + 1,
                             on_loss);
    if (config->unpaused) {
        world->middle.ports[0].limits =
            (struct sim_input_limits){.flow = SIM_NO_FLOW_CONTROL, .room_bytes = SIM_NO_BOUND};
    }
    for (uint32_t i = 0; i <= config->senders; i++) {
        open_host(world, i);
    }
}

static void hold(struct flow_world *world, uint16_t quanta)
{
    const struct pause pause = pause_classes(1u << DATA_CLASS, quanta);
    sim_port_pause(&world->hosts[world->config.senders].port, &pause);
}

/* A pause is asked for again before it is over, as a switch does it. */
static void hold_until(struct flow_world *world, uint64_t until_ps)
{
    const uint64_t pause_ps =
        sim_ethernet_quanta_ps(&world->config.kind.line, PAUSE_QUANTA_MAX) / 2;
    while (world->sim.now_ps < until_ps) {
        const uint64_t left_ps = until_ps - world->sim.now_ps;
        hold(world, PAUSE_QUANTA_MAX);
        sim_run_until(&world->sim, world->sim.now_ps + (left_ps < pause_ps ? left_ps : pause_ps));
    }
    hold(world, 0);
}

void flow_run(struct flow_world *world)
{
    const struct flow_config *config = &world->config;
    if (config->go_ps > config->hold_ps) {
        sim_run_until(&world->sim, config->hold_ps);
        hold_until(world, config->go_ps);
    }
    while (world->run->failure[0] == '\0' && sim_step(&world->sim)) {
    }
}

static void check(struct flow_world *world)
{
    uint64_t made = 0, ended = 0;
    for (uint32_t i = 0; i <= world->config.senders; i++) {
        made += world->hosts[i].made;
        ended += world->hosts[i].came;
    }
    for (uint32_t i = 0; i < SIM_LOSSES; i++) {
        ended += world->lost[i];
    }
    if (made != ended || world->disordered > 0 || sim_pool_taken(&world->pool) > 0) {
        lab_fail(world->run, "%llu frames were made, %llu came to an end, %llu in disorder",
                 (unsigned long long)made, (unsigned long long)ended,
                 (unsigned long long)world->disordered);
    }
}

void flow_close(struct flow_world *world)
{
    if (world->run->failure[0] == '\0') {
        check(world);
    }
    lab_add_memory(world->run, "host", world->config.senders + 1, sizeof(world->hosts));
    lab_add_memory(world->run, "switch", 1,
                   sizeof(world->middle) +
                       world->middle.port_count * sizeof(world->middle.ports[0]));
    lab_add_memory(world->run, "frame", world->pool.used,
                   world->pool.used * (uint64_t)world->pool.bytes);
    lab_world_end(world->run, &world->sim, world->trace, world->capture);
    for (uint32_t i = 0; i <= world->config.senders; i++) {
        sim_port_close(&world->hosts[i].port);
    }
    sim_ethernet_switch_close(&world->middle);
    sim_pool_close(&world->pool);
}
