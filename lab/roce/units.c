/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A NIC as csRNA's (docs/decisions/0071): its clock, and what its units do in a cycle.
 *
 * The engine yields a packet as soon as it was posted. A request is held (send.c) until its work
 * request has been read, and the requester unit has its context: so this machine's units say when
 * the engine's packets go on, and never which.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "lab/roce/units.h"

/* -- The clock ----------------------------------------------------------------------------------*/

static uint64_t now_ps(const struct roce_units *units)
{
    return units->node->roce->sim->now_ps;
}

void roce_units_wake(struct roce_units *units, uint64_t at_ps)
{
    const uint64_t cycle = units->config->cycle_ps;
    const uint64_t at = sim_later((at_ps + cycle - 1) / cycle * cycle, units->next_cycle_ps);
    if (!sim_event_scheduled(&units->tick) || at < units->tick.at_ps) {
        sim_reschedule(units->node->roce->sim, &units->tick, at);
    }
}

/* -- Asking for contexts ------------------------------------------------------------------------*/

static bool has_index(const struct roce_units *units, enum qpc_channel channel)
{
    return units->requesters[channel].free_count > 0;
}

/* `info` is what the answer is for. */
static void ask(struct roce_units *units, enum qpc_channel channel, uint32_t slot,
                enum qpc_operation operation, const void *info)
{
    struct qpc_requester *requester = &units->requesters[channel];
    const uint32_t index = (uint32_t)qpc_requester_reserve(requester);
    memcpy(qpc_requester_info(requester, index), info, requester->info_bytes);
    const struct qpc_request request = {.qpn = slot,
                                        .channel = (uint8_t)channel,
                                        .index = (uint8_t)index,
                                        .operation = (uint8_t)operation};
    qpc_manager_request(&units->manager, &request);
}

/* -- The scheduler, and the descriptor unit -----------------------------------------------------*/

static uint32_t messages_waiting(const struct roce_units *units)
{
    return units->messages.tail - units->messages.head;
}

static bool may_visit(const struct roce_units *units)
{
    const bool asks = !units->config->hides || units->config->prefetch;
    return units->scheduler.listed > 0 &&
           messages_waiting(units) + units->reading_wqes < units->config->wqe_room &&
           (!asks || has_index(units, QPC_DESCRIPTOR));
}

static void scheduler_step(struct roce_units *units)
{
    const struct roce_units_config *config = units->config;
    struct qp_visit visit;
    if (!may_visit(units)) {
        return;
    }
    CHECK(qp_scheduler_next(&units->scheduler, &visit));
    units->reading_wqes += visit.wqes;
    if (config->hides) {
        roce_units_read_wqes(units, visit.slot);
    }
    if (!config->hides || config->prefetch) {
        ask(units, QPC_DESCRIPTOR, visit.slot, config->hides ? QPC_PREFETCH : QPC_READ,
            &visit.slot);
    }
}

/* The message that the i-th work request of a visit stands for. */
static struct qp_message message_of(const struct roce_units *units, uint32_t slot, uint32_t i)
{
    const struct roce_slot *own = &units->slots[slot];
    struct qp_message message = {.packets = 1};
    if (own->stale == 0) {
        const uint32_t taken = own->waiting - units->scheduler.qps[slot].pending;
        const uint32_t position = own->connection->fetched + taken + i;
        message.bytes = qp_request_bytes(own->connection->qp, position);
    }
    return message;
}

/* The work requests of a visit have come. */
void roce_units_on_wqes(struct roce_units *units, uint32_t slot)
{
    struct qp_message messages[UINT8_MAX];
    struct roce_slots_queue *queue = &units->messages;
    const uint32_t visited = units->scheduler.qps[slot].visited;
    for (uint32_t i = 0; i < visited; i++) {
        messages[i] = message_of(units, slot, i);
    }
    const uint32_t taken = qp_scheduler_take(&units->scheduler, slot, messages);
    for (uint32_t i = 0; i < taken; i++) {
        CHECK(queue->tail - queue->head <= queue->mask);
        queue->slots[queue->tail++ & queue->mask] = slot;
    }
    units->reading_wqes -= visited;
}

/* -- The requester ------------------------------------------------------------------------------*/

static bool may_ask(const struct roce_units *units)
{
    return messages_waiting(units) > 0 && units->ready_count < units->config->ready &&
           has_index(units, QPC_REQUESTER);
}

static void requester_step(struct roce_units *units)
{
    if (may_ask(units)) {
        const uint32_t slot = units->messages.slots[units->messages.head++ & units->messages.mask];
        ask(units, QPC_REQUESTER, slot, QPC_UPDATE, &slot);
    }
}

/* The next request of the place has its context. */
static void grant(struct roce_units *units, uint32_t slot)
{
    struct roce_slot *own = &units->slots[slot];
    qp_scheduler_acknowledged(&units->scheduler, slot, 1); /* The engine has its own window. */
    if (own->stale > 0) {
        own->stale--;
        return;
    }
    own->waiting--;
    roce_fetched(own->connection, own->connection->fetched + 1);
}

static bool has_payload_room(const struct roce_units *units)
{
    return units->ready_count > 0 && units->reading_payloads < units->config->payloads;
}

/* How long what waits before the line will take. */
static uint64_t backlog_ps(const struct roce_units *units)
{
    const struct sim_port *port = &units->node->port;
    uint64_t bytes = 0;
    for (uint32_t class = 0; class < PAUSE_CLASSES; class ++) {
        bytes += port->waiting_bytes[class];
    }
    return sim_later(port->free_ps, now_ps(units)) - now_ps(units) +
           sim_wire_ps(&port->kind.wire, bytes);
}

static void process(struct roce_units *units)
{
    const struct roce_units_config *config = units->config;
    if (!has_payload_room(units) || now_ps(units) < units->processing_until_ps ||
        backlog_ps(units) > config->backlog_ps) {
        return;
    }
    units->ready_count--;
    units->processing_until_ps = now_ps(units) + config->processing * config->cycle_ps;
    roce_read_payload(CONTAINER_OF(list_pop(&units->ready), struct roce_flight, held));
}

/* -- The responder ------------------------------------------------------------------------------*/

static bool may_respond(const struct roce_units *units)
{
    return !list_empty(&units->received) && has_index(units, QPC_RESPONDER);
}

static void responder_step(struct roce_units *units)
{
    if (may_respond(units)) {
        struct roce_flight *flight =
            CONTAINER_OF(list_pop(&units->received), struct roce_flight, held);
        ask(units, QPC_RESPONDER, flight->connection->slot - 1, QPC_UPDATE, &flight);
    }
}

/* An answer to one of our packets, whose window is on the chip. */
static void window_step(struct roce_units *units)
{
    if (!list_empty(&units->answers)) {
        roce_judge(CONTAINER_OF(list_pop(&units->answers), struct roce_flight, held));
    }
}

/* -- The management of contexts -----------------------------------------------------------------*/

static void on_answer(struct roce_units *units, const struct qpc_answer *answer)
{
    struct qpc_requester *requester = &units->requesters[answer->channel];
    const void *info = qpc_requester_info(requester, answer->index);
    if (answer->channel == QPC_RESPONDER) {
        struct roce_flight *flight;
        memcpy(&flight, info, sizeof(flight));
        qpc_requester_release(requester, answer->index);
        roce_judge(flight);
        return;
    }
    uint32_t slot;
    memcpy(&slot, info, sizeof(slot));
    qpc_requester_release(requester, answer->index);
    if (answer->channel == QPC_REQUESTER) {
        grant(units, slot);
    } else if (answer->operation == QPC_READ) {
        roce_units_read_wqes(units, slot);
    }
}

static void act(struct roce_units *units, const struct qpc_action *action)
{
    if (action->writes_back) {
        roce_units_write_context(units);
    }
    if (action->answers) {
        on_answer(units, &action->answer);
    }
    if (action->fetches) {
        roce_units_read_context(units, action->fetch_qpn);
    }
}

static void manager_step(struct roce_units *units)
{
    struct qpc_action action;
    if (qpc_manager_step_pending(&units->manager, &action)) {
        act(units, &action);
    }
    if (qpc_manager_step_requests(&units->manager, &action)) {
        act(units, &action);
    }
}

/* -- A cycle ------------------------------------------------------------------------------------*/

static void sleep_until_due(struct roce_units *units)
{
    if (may_visit(units) || may_ask(units) || may_respond(units) || !list_empty(&units->answers) ||
        !qpc_manager_idle(&units->manager)) {
        roce_units_wake(units, now_ps(units));
    }
    if (has_payload_room(units)) {
        const uint64_t wire_ps = now_ps(units) + backlog_ps(units);
        const uint64_t allowed_ps = units->config->backlog_ps;
        roce_units_wake(units, sim_later(units->processing_until_ps,
                                         wire_ps > allowed_ps ? wire_ps - allowed_ps : 0));
    }
}

static void tick(struct sim *sim, struct sim_event *event)
{
    struct roce_units *units = CONTAINER_OF(event, struct roce_units, tick);
    units->next_cycle_ps = sim->now_ps + units->config->cycle_ps;
    manager_step(units);
    window_step(units);
    process(units);
    requester_step(units);
    scheduler_step(units);
    responder_step(units);
    sleep_until_due(units);
}

/* -- From outside -------------------------------------------------------------------------------*/

/* The units' name of a queue pair's place; ROCE_SLOTS_MAX: they have no room for it. */
static uint32_t slot_of(struct roce_units *units, struct roce_connection *connection)
{
    if (connection->slot == 0 && units->slot_count < ROCE_SLOTS_MAX) {
        units->slots[units->slot_count].connection = connection;
        connection->slot = ++units->slot_count;
    }
    return connection->slot == 0 ? ROCE_SLOTS_MAX : connection->slot - 1;
}

void roce_units_ring(struct roce_connection *connection, uint32_t count)
{
    struct roce_units *units = connection->function->node->units;
    const uint32_t slot = slot_of(units, connection);
    struct roce_slot *own = &units->slots[slot == ROCE_SLOTS_MAX ? 0 : slot];
    const struct qp_doorbell bell = {.slot = slot, .count = (uint16_t)count, .offset = own->offset};
    if (slot == ROCE_SLOTS_MAX || count > UINT16_MAX ||
        qp_scheduler_doorbell(&units->scheduler, &bell) != STATUS_OK) {
        roce_fetched(connection, connection->rung); /* So many that the time says nothing. */
        return;
    }
    own->offset = (uint16_t)(own->offset + count);
    own->waiting += count;
    roce_units_wake(units, now_ps(units));
}

void roce_units_send(struct roce_flight *flight)
{
    struct roce_units *units = flight->connection->function->node->units;
    list_append(&units->ready, &flight->held);
    units->ready_count++;
    roce_units_wake(units, now_ps(units));
}

void roce_units_reading(struct roce_flight *flight, bool reads)
{
    struct roce_units *units = flight->connection->function->node->units;
    if (flight->paid != reads) {
        flight->paid = reads;
        units->reading_payloads += reads ? 1 : UINT32_MAX;
        roce_units_wake(units, now_ps(units));
    }
}

void roce_units_receive(struct roce_flight *flight)
{
    struct roce_units *units = flight->connection->function->node->units;
    const bool asks = !flight->answers || units->config->acks_ask;
    if (asks && slot_of(units, flight->connection) == ROCE_SLOTS_MAX) {
        roce_judge(flight);
        return;
    }
    list_append(asks ? &units->received : &units->answers, &flight->held);
    roce_units_wake(units, now_ps(units));
}

void roce_units_forget(struct roce_connection *connection)
{
    struct roce_units *units = connection->function->node->units;
    if (connection->slot != 0) {
        struct roce_slot *own = &units->slots[connection->slot - 1];
        own->stale += own->waiting;
        own->waiting = 0;
    }
}

void roce_units_count(const struct roce_node *node, struct roce_node_counters *counters)
{
    if (node->units != NULL) {
        const struct qpc_counters *contexts = &node->units->manager.counters;
        counters->contexts_asked += contexts->hits + contexts->misses + contexts->type_2;
        counters->contexts_found += contexts->hits;
    }
}

/* -- Opening ------------------------------------------------------------------------------------*/

static void *take(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    CHECK(memory != NULL);
    memset(memory, 0, bytes);
    return memory;
}

static void open_contexts(struct roce_units *units)
{
    const struct roce_units_config *config = units->config;
    const struct qpc_manager_parameters manager = {
        .policy = config->blocks ? QPC_FCFS : QPC_NONBLOCKING,
        .victim = config->victims,
        .oocap = config->oocap,
        .cache_entries = units->node->roce->config.contexts,
    };
    units->memory[0] = take(qpc_manager_bytes(&manager));
    qpc_manager_init(&units->manager, &manager, units->memory[0]);
    for (uint32_t c = 0; c < QPC_CHANNELS; c++) {
        const uint32_t bytes = c == QPC_RESPONDER ? sizeof(void *) : sizeof(uint32_t);
        units->memory[2 + c] = take(qpc_requester_bytes(config->oocap, bytes));
        qpc_requester_init(&units->requesters[c], config->oocap, bytes, units->memory[2 + c]);
    }
}

void roce_units_open(struct roce_node *node)
{
    const struct roce_units_config *config = &node->roce->config.units;
    const uint32_t messages = (uint32_t)power_of_two(config->wqe_room + config->visit_wqes);
    struct roce_units *units = calloc(1, sizeof(*units));
    CHECK(units != NULL);
    node->units = units;
    units->node = node;
    units->config = config;
    sim_event_init(&units->tick, tick);
    list_init(&units->ready);
    list_init(&units->received);
    list_init(&units->answers);
    units->slots = calloc(ROCE_SLOTS_MAX, sizeof(units->slots[0]));
    units->messages.slots = calloc(messages, sizeof(uint32_t));
    CHECK(units->slots != NULL && units->messages.slots != NULL);
    units->messages.mask = messages - 1;
    roce_reads_open(units);
    open_contexts(units);
    const struct qp_scheduler_parameters scheduler = {
        .qps = ROCE_SLOTS_MAX,
        .sq_wqes = 1u << 16,
        .visit_wqes = config->visit_wqes,
        .visit_bytes = config->visit_bytes,
        .window = UINT32_MAX,
    };
    units->memory[1] = calloc(1, qp_scheduler_bytes(ROCE_SLOTS_MAX));
    CHECK(units->memory[1] != NULL);
    qp_scheduler_init(&units->scheduler, &scheduler, units->memory[1]);
}

void roce_units_close(struct roce_node *node)
{
    struct roce_units *units = node->units;
    if (units != NULL) {
        sim_cancel(&units->tick);
        sim_cancel(&units->host_reads.event);
        sim_cancel(&units->board_reads.event);
        for (size_t i = 0; i < COUNT_OF(units->memory); i++) {
            free(units->memory[i]);
        }
        free(units->messages.slots);
        free(units->slots);
        free(units);
        node->units = NULL;
    }
}
