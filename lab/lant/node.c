/* SPDX-License-Identifier: BSD-2-Clause
 *
 * node - see node.h: programs, timers, and a node's beginning and end.
 */
#include "lab/lant/node.h"

#include <stdlib.h>

/* The longest that a packet is in the network, and that the DMA engine takes for a packet. */
#define NETWORK_CYCLES 10000u
#define PACKET_CYCLES  80u
/* Another master of the bus than the CPU. */
#define DMA_BUS_ID 255u

/* The longest timer there is: that of the farthest node. */
static uint64_t longest_timer(const struct lant_distance_timers *timers)
{
    uint64_t hops = 0;
    for (uint32_t d = 0; d < timers->torus.dimensions; d++) {
        hops += timers->torus.size[d] / 2;
    }
    return timers->base + hops * timers->hop;
}

/* A packet's timer to this node; 0: the usual one. */
static uint64_t timer_to(const struct lant_node *node, uint32_t destination)
{
    const struct lant_distance_timers *timers = &node->world->config.timers;
    const uint32_t hops =
        timers->used ? lant_hops_torus(&timers->torus, node->index, destination) : LANT_NO_HOPS;
    return hops == LANT_NO_HOPS ? 0 : timers->base + hops * timers->hop;
}

/* How long receivers remember and numbers rest follows from timeouts, retries and segments. */
static void set_lifetimes(struct lant_node_config *config)
{
    if (config->timers.used) {
        config->shm.timeout = config->rdma.timeout = longest_timer(&config->timers);
    }
    const uint64_t network_ps = lant_cycles(NETWORK_CYCLES);
    const uint32_t segment = config->rdma.work.segment_bytes;
    /* A packet that goes again waits for the descriptor in progress (5.3.3). */
    const uint64_t packets = (segment == 0 ? LANT_TRANSFER_MAX : segment) / LANT_PAYLOAD_BYTES_MAX;
    const uint64_t wait_ps = lant_cycles(packets * PACKET_CYCLES);
    const uint64_t attempts = config->rdma.retries + 1u;
    config->rdma.lifetime = network_ps;
    config->rdma.wait = attempts * wait_ps;
    config->rdma_target.lifetime_ticks = lant_rdma_packet_lifetime(&config->rdma);
    config->rdma_target.age_ticks = (attempts + 1) * (config->rdma.timeout + wait_ps);
    config->shm_target.lifetime = (config->shm.retries + 1u) * config->shm.timeout + network_ps;
    config->shm_target.lock_lifetime = config->shm_target.lifetime;
    config->atomics.lifetime = config->shm_target.lifetime;
    config->shm.lifetime = 2 * config->shm_target.lifetime;
}

struct lant_node_config lant_node_default(void)
{
    struct lant_node_config config = {
        .costs = {.shm_issue = 9,
                  .shm_beat = 10,
                  .shm_receive = 16,
                  .shm_done = 5,
                  .rdma_setup = 33,
                  .ram = 30,
                  .rdma_receive = 17,
                  .rdma_done = 18,
                  .row = 2,
                  .early_timer = 2,
                  .t_gen = 8},
        .shm = LANT_SHM_DEFAULTS,
        .rdma = LANT_RDMA_DEFAULTS,
        .shm_target = {.recent = LANT_SHM_RECENT},
        .rdma_target = {.entries = LANT_REGISTRATIONS,
                        .mask_bits = LANT_MASK_BITS,
                        .escapes = LANT_ESCAPES,
                        .tombstones = LANT_TOMBSTONES,
                        .escape_ticks = lant_cycles(5000)},
        .inbound = LANT_INBOUND_DEFAULTS,
        .notifications = LANT_NOTIFICATIONS_DEPTH,
        .burst_window = 3,
        .early_timers = LANT_ROWS,
        .memory_bytes = 1 << 20,
    };
    config.rdma.bus_id = DMA_BUS_ID;
    config.shm.timeout = lant_cycles(config.shm.timeout);
    config.rdma.timeout = lant_cycles(config.rdma.timeout);
    return config;
}

/* -- Programs -----------------------------------------------------------------------------------*/

void lant_node_notify(struct lant_node *node, enum lant_queue queue,
                      const struct lant_notification *notification)
{
    lant_notifications_put(&node->notifications[queue], notification);
    node->counters.notifications[queue]++;
    if (node->program.on_notification != NULL) {
        struct lant_notification taken;
        (void)lant_notifications_take(&node->notifications[queue], &taken);
        node->program.on_notification(node->program.context, queue, &taken);
    } else if (node->program.on_ready != NULL) {
        node->program.on_ready(node->program.context, queue);
    }
}

bool lant_node_access(struct lant_node *node, const struct lant_shm_access *access,
                      const uint8_t *bytes)
{
    if (lant_shm_access_judge(access) != LANT_SHM_ACCESS_GOOD) {
        return false;
    }
    const uint32_t beats = lant_shm_access_beats(access);
    if (node->beats.count + beats > LANT_ACCESSES_MAX) {
        return false;
    }
    const struct lant_costs *costs = &node->world->config.costs;
    const uint64_t first_ps = node->world->sim->now_ps + lant_cycles(costs->shm_issue);
    const uint64_t timer = timer_to(node, lant_global_node(access->address));
    for (uint32_t beat = 0; beat < beats; beat++) {
        const uint32_t at = (node->beats.first + node->beats.count++) % LANT_ACCESSES_MAX;
        node->beats.ring[at].request = lant_shm_access_beat(access, beat, bytes);
        node->beats.ring[at].request.timeout = timer;
        node->beats.ring[at].ready_ps = first_ps + lant_cycles((uint64_t)beat * costs->shm_beat);
    }
    lant_node_settle(node);
    return true;
}

enum lant_submit lant_node_submit(struct lant_node *node, enum lant_queue queue,
                                  const struct lant_work *work)
{
    const uint64_t memory = node->world->config.memory_bytes;
    const struct lant_descriptor *descriptor = &work->descriptor;
    if (descriptor->source > memory || descriptor->bytes > memory - descriptor->source) {
        return LANT_SUBMIT_RANGE;
    }
    struct lant_work timed = *work;
    if (timed.timeout == 0) {
        timed.timeout = timer_to(node, lant_global_node(descriptor->destination));
    }
    const enum lant_submit verdict = lant_work_submit(&node->rdma.work, queue, &timed);
    lant_node_settle(node);
    return verdict;
}

bool lant_node_poll(struct lant_node *node, enum lant_queue queue,
                    struct lant_notification *notification)
{
    const bool some = lant_notifications_take(&node->notifications[queue], notification);
    if (some) {
        lant_node_take_notifications(node);
        lant_node_settle(node);
    }
    return some;
}

/* The beats whose time has come are issued, in their order. */
static void issue_beats(struct lant_node *node)
{
    const uint64_t now_ps = node->world->sim->now_ps;
    while (node->beats.count != 0) {
        const uint32_t at = node->beats.first;
        if (node->beats.ring[at].ready_ps > now_ps) {
            sim_reschedule(node->world->sim, &node->issue, node->beats.ring[at].ready_ps);
            return;
        }
        const enum lant_shm_verdict verdict =
            lant_shm_request(&node->shm, &node->beats.ring[at].request, now_ps);
        if (lant_shm_is_held(verdict)) {
            return; /* The event that frees a row comes by here. */
        }
        CHECK(verdict == LANT_SHM_ISSUED || verdict == LANT_SHM_PENDING);
        node->beats.first = (at + 1) % LANT_ACCESSES_MAX;
        node->beats.count--;
    }
}

static void on_issue(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    lant_node_settle(CONTAINER_OF(event, struct lant_node, issue));
}

/* Answers of stores are reported in their order, and so are those of loads: these are two channels
 * of the bus. An early acknowledgement waits for its timer, and a load's answer does not wait
 * behind it. */
static void delay(struct lant_node *node, const struct lant_shm_done *done, uint64_t at_ps)
{
    uint32_t place = node->delayed.count++;
    for (; place > 0; place--) {
        const uint32_t before = (node->delayed.first + place - 1) % LANT_DELAYED_MAX;
        if (node->delayed.ring[before].at_ps <= at_ps ||
            node->delayed.ring[before].done.store == done->store) {
            break;
        }
        node->delayed.ring[(before + 1) % LANT_DELAYED_MAX] = node->delayed.ring[before];
    }
    const uint32_t at = (node->delayed.first + place) % LANT_DELAYED_MAX;
    node->delayed.ring[at].done = *done;
    node->delayed.ring[at].at_ps = at_ps;
}

/* Operations that are done go to the program: early acknowledgements after the time that a timer
 * takes. */
static void collect_done(struct lant_node *node)
{
    struct lant_shm_done done;
    const uint64_t now_ps = node->world->sim->now_ps;
    while (node->delayed.count < LANT_DELAYED_MAX &&
           lant_shm_next_done(&node->shm, now_ps, &done)) {
        const uint32_t cycles =
            done.kind == LANT_SHM_EARLY ? node->world->config.costs.early_timer : 0;
        delay(node, &done, now_ps + lant_cycles(cycles));
    }
    if (node->delayed.count != 0) {
        const uint64_t at_ps = node->delayed.ring[node->delayed.first].at_ps;
        if (!sim_event_scheduled(&node->done) || node->done.at_ps > at_ps) {
            sim_reschedule(node->world->sim, &node->done, at_ps > now_ps ? at_ps : now_ps);
        }
    }
}

static void on_done(struct sim *sim, struct sim_event *event)
{
    struct lant_node *node = CONTAINER_OF(event, struct lant_node, done);
    while (node->delayed.count != 0 &&
           node->delayed.ring[node->delayed.first].at_ps <= sim->now_ps) {
        const struct lant_shm_done done = node->delayed.ring[node->delayed.first].done;
        node->delayed.first = (node->delayed.first + 1) % LANT_DELAYED_MAX;
        node->delayed.count--;
        if (node->program.on_done != NULL) {
            node->program.on_done(node->program.context, &done);
        }
    }
    lant_node_settle(node);
}

/* -- Timers -------------------------------------------------------------------------------------*/

static uint64_t earlier(uint64_t a_ps, uint64_t b_ps)
{
    return a_ps < b_ps ? a_ps : b_ps;
}

static void on_timer(struct sim *sim, struct sim_event *event)
{
    struct lant_node *node = CONTAINER_OF(event, struct lant_node, timer);
    lant_shm_on_time(&node->shm, &node->errors, sim->now_ps);
    lant_rdma_on_time(&node->rdma, sim->now_ps);
    lant_shm_target_on_time(&node->shm_target, sim->now_ps);
    lant_atomics_on_time(&node->atomics, sim->now_ps);
    lant_rdma_target_on_time(&node->rdma_target, sim->now_ps);
    lant_node_take_notifications(node);
    lant_node_packets_over(node);
    lant_node_settle(node);
}

static void arm_timer(struct lant_node *node)
{
    const uint64_t now_ps = node->world->sim->now_ps;
    uint64_t at_ps = lant_shm_deadline(&node->shm, now_ps);
    at_ps = earlier(at_ps, lant_rdma_deadline(&node->rdma));
    at_ps = earlier(at_ps, lant_shm_target_deadline(&node->shm_target));
    at_ps = earlier(at_ps, lant_atomics_deadline(&node->atomics));
    at_ps = earlier(at_ps, lant_rdma_target_deadline(&node->rdma_target));
    if (at_ps == LANT_NEVER) {
        sim_cancel(&node->timer);
    } else if (!sim_event_scheduled(&node->timer) || node->timer.at_ps != at_ps) {
        sim_reschedule(node->world->sim, &node->timer, at_ps > now_ps ? at_ps : now_ps);
    }
}

/* When the oldest notification of the queue is due; LANT_NEVER: none. */
static uint64_t ended_at(const struct lant_node *node, enum lant_queue queue)
{
    return node->ended[queue].count == 0 ? LANT_NEVER
                                         : node->ended[queue].at_ps[node->ended[queue].first];
}

static void on_notify(struct sim *sim, struct sim_event *event)
{
    struct lant_node *node = CONTAINER_OF(event, struct lant_node, notify);
    struct lant_notification notification;
    for (enum lant_queue queue = LANT_QUEUE_CPU; queue < LANT_QUEUE_COUNT; queue++) {
        while (ended_at(node, queue) <= sim->now_ps &&
               lant_notifications_admit(&node->notifications[queue])) {
            const bool some =
                lant_rdma_next_notification(&node->rdma, sim->now_ps, queue, &notification);
            CHECK(some);
            node->ended[queue].first = (node->ended[queue].first + 1) % LANT_RDMA_ENDED_MAX;
            node->ended[queue].count--;
            lant_node_notify(node, queue, &notification);
        }
    }
    lant_node_settle(node);
}

/* Transfers that have ended are notified in their time, if their queue has room. */
static void schedule_notifications(struct lant_node *node)
{
    const struct lant_costs *costs = &node->world->config.costs;
    const uint64_t now_ps = node->world->sim->now_ps;
    const uint32_t cycles = costs->rdma_done > costs->row ? costs->rdma_done - costs->row : 0;
    uint64_t at_ps = LANT_NEVER;
    for (enum lant_queue queue = LANT_QUEUE_CPU; queue < LANT_QUEUE_COUNT; queue++) {
        const uint32_t waiting = lant_rdma_notifications_waiting(&node->rdma, queue);
        while (node->ended[queue].count < waiting) {
            const uint32_t at = node->ended[queue].first + node->ended[queue].count++;
            node->ended[queue].at_ps[at % LANT_RDMA_ENDED_MAX] = now_ps + lant_cycles(cycles);
        }
        if (node->notifications[queue].count < node->notifications[queue].depth) {
            at_ps = earlier(at_ps, ended_at(node, queue));
        }
    }
    if (at_ps != LANT_NEVER && !sim_event_scheduled(&node->notify)) {
        sim_schedule(node->world->sim, &node->notify, at_ps > now_ps ? at_ps : now_ps);
    }
}

/* Keeps the failures of transfers for programs that look for them, and reports those of transfers
 * that an accelerator began (4.2). False: none has failed. */
static bool record_failures(struct lant_node *node)
{
    struct lant_rdma_failure failure;
    bool any = false;
    while (lant_rdma_next_interrupt(&node->rdma, &failure)) {
        const struct lant_error error = {
            .time = failure.time,
            .address = failure.destination,
            .reporter = node->index,
            .initiator = failure.tag,
            .kind = LANT_ERROR_RDMA,
            .attempts = failure.attempts,
            .response = failure.response == LANT_OKAY ? LANT_NO_RESPONSE : failure.response,
            .accelerator = failure.queue == LANT_QUEUE_FPGA};
        (void)lant_errors_record(&node->errors, &error);
        any = true;
    }
    return any;
}

static void show(const struct lant_node *node)
{
    if (node->world->watch != NULL) {
        const uint32_t levels[LANT_LEVEL_COUNT] = {
            [LANT_LEVEL_SHM] = (uint32_t)__builtin_popcountll(node->shm.busy),
            [LANT_LEVEL_RDMA] = lant_rdma_in_flight(&node->rdma),
            [LANT_LEVEL_CAM] = node->inbound.used_count,
        };
        lant_watch_levels(node->world->watch, node->index, levels);
    }
}

/* Something has happened on the node: whatever can go on now does. */
void lant_node_settle(struct lant_node *node)
{
    collect_done(node);
    issue_beats(node);
    (void)record_failures(node);
    lant_node_pump(node);
    if (record_failures(node)) {
        lant_node_pump(node); /* One was too late to go on, and there may be a report of it. */
    }
    schedule_notifications(node);
    arm_timer(node);
    show(node);
}

/* -- Worlds -------------------------------------------------------------------------------------*/

struct lant_visit *lant_node_visit(struct lant_node *node, sim_action act)
{
    struct lant_visit *visit = sim_pool_take(&node->world->visits);
    CHECK(visit != NULL);
    sim_event_init(&visit->event, act);
    list_init(&visit->place);
    visit->node = node;
    visit->judged = false;
    return visit;
}

static void *zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    CHECK(memory != NULL);
    return memory;
}

static void open_node(struct lant_world *world, uint32_t index)
{
    struct lant_node *node = &world->nodes[index];
    struct lant_node_config config = world->config;
    config.shm.node = config.rdma.node = index;
    config.shm_target.node = config.rdma_target.node = config.atomics.node = index;
    node->world = world;
    node->index = index;
    node->memory = zeroed(config.memory_bytes);
    node->tombstones = zeroed(lant_tombstones_bytes(config.rdma_target.tombstones));
    node->recent = zeroed(lant_shm_recent_bytes(config.shm_target.recent));
    node->ranges.count = 1;
    node->ranges.ranges[0] =
        (struct lant_range){0, config.memory_bytes, .may_read = true, .may_write = true};
    lant_shm_init(&node->shm, &config.shm);
    lant_shm_target_init(&node->shm_target, &config.shm_target, node->recent);
    if (config.atomics.entries != 0) {
        node->atomics_memory = zeroed(lant_shm_recent_bytes(config.atomics.entries));
    }
    lant_atomics_init(&node->atomics, &config.atomics, node->atomics_memory);
    lant_inbound_init(&node->inbound, &config.inbound);
    if (config.reorder != 0) {
        node->reorder = zeroed(sizeof(*node->reorder));
        lant_reorder_init(node->reorder, config.reorder);
    }
    lant_rdma_init(&node->rdma, &config.rdma);
    lant_rdma_target_init(&node->rdma_target, &config.rdma_target, &node->ranges, node->tombstones);
    const struct lant_errors_config errors = {.node = index, .in_charge = config.in_charge};
    lant_errors_init(&node->errors, &errors);
    for (uint32_t queue = 0; queue < LANT_QUEUE_COUNT; queue++) {
        lant_notifications_init(&node->notifications[queue], config.notifications);
    }
    list_init(&node->answers);
    list_init(&node->held);
    list_init(&node->words);
    sim_event_init(&node->output, lant_node_on_output);
    sim_event_init(&node->dma.bus, lant_node_on_bus);
    sim_event_init(&node->issue, on_issue);
    sim_event_init(&node->done, on_done);
    sim_event_init(&node->notify, on_notify);
    sim_event_init(&node->timer, on_timer);
}

static void on_ready(void *nodes, uint32_t index)
{
    struct lant_world *world = nodes;
    lant_node_settle(&world->nodes[index]);
}

bool lant_world_open(struct lant_world *world, const struct lant_node_config *config,
                     const struct lant_fabric_config *fabric, struct sim *sim, uint64_t seed,
                     char *error, size_t error_bytes)
{
    CHECK(config->costs.early_timer < LANT_PACKET_FLITS_MIN + 1);
    CHECK(config->memory_bytes % LANT_FLIT_BYTES == 0);
    *world = (struct lant_world){.sim = sim, .config = *config};
    set_lifetimes(&world->config);
    if (!lant_fabric_open(&world->fabric, fabric, sim, seed, lant_node_on_frame, world, error,
                          error_bytes)) {
        return false;
    }
    world->fabric.flow.on_ready = on_ready;
    world->count = world->fabric.topology.nodes;
    world->nodes = zeroed(world->count * sizeof(world->nodes[0]));
    sim_pool_open(&world->visits, 4 * fabric->packets + LANT_ESCAPES_MAX,
                  sizeof(struct lant_visit));
    for (uint32_t i = 0; i < world->count; i++) {
        open_node(world, i);
    }
    return true;
}

static void close_node(struct lant_node *node)
{
    struct sim_event *const events[] = {&node->output, &node->dma.bus, &node->issue,
                                        &node->done,   &node->notify,  &node->timer};
    for (uint32_t i = 0; i < COUNT_OF(events); i++) {
        sim_cancel(events[i]);
    }
    free(node->memory);
    free(node->tombstones);
    free(node->recent);
    free(node->atomics_memory);
    free(node->reorder);
}

void lant_world_close(struct lant_world *world)
{
    for (uint32_t i = 0; i < world->count; i++) {
        close_node(&world->nodes[i]);
    }
    sim_pool_close(&world->visits);
    free(world->nodes);
    lant_fabric_close(&world->fabric);
}

static bool node_is_idle(const struct lant_node *node)
{
    return lant_shm_idle(&node->shm) && lant_rdma_idle(&node->rdma) &&
           lant_inbound_idle(&node->inbound) && node->beats.count == 0 &&
           node->delayed.count == 0 && list_empty(&node->answers) && list_empty(&node->held) &&
           list_empty(&node->words) && !node->dma.active && !node->sending;
}

bool lant_world_idle(const struct lant_world *world)
{
    for (uint32_t i = 0; i < world->count; i++) {
        if (!node_is_idle(&world->nodes[i])) {
            return false;
        }
    }
    return world->visits.depth == world->visits.used &&
           world->fabric.frames.depth == world->fabric.frames.used;
}
