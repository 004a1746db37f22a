/* SPDX-License-Identifier: BSD-2-Clause
 *
 * node_input - the way of a packet that has come to a node.
 */
#include "lab/lant/node.h"

#include <string.h>

static void lant_node_take_held(struct lant_node *node);

static const struct lant_costs *costs_of(const struct lant_node *node)
{
    return &node->world->config.costs;
}

/* A packet that is stored goes on to memory flit by flit. */
static uint64_t forward_ps(const struct lant_visit *visit)
{
    return costs_of(visit->node)->cut_through
               ? 0
               : lant_cycles(lant_packet_flits(&visit->packet.header));
}

/* The visit's packet is an answer now, whose first flit can leave after `delay_ps`. */
static void answer_after(struct lant_visit *visit, uint64_t delay_ps)
{
    struct lant_node *node = visit->node;
    visit->ready_ps = node->world->sim->now_ps + delay_ps;
    struct list *behind = node->answers.previous;
    while (behind != &node->answers &&
           CONTAINER_OF(behind, struct lant_visit, place)->ready_ps > visit->ready_ps) {
        behind = behind->previous;
    }
    list_prepend(behind, &visit->place);
}

/* The bus answers the accesses of one ID in their order, a cycle apart at least. */
static void go_to_memory(struct lant_visit *visit, enum lant_direction direction, sim_action act,
                         uint64_t delay_ps)
{
    struct sim *sim = visit->node->world->sim;
    uint64_t *const last_ps = &visit->node->answered_ps[direction][visit->local_id];
    const uint64_t own_ps = sim->now_ps + delay_ps, after_ps = *last_ps + lant_cycles(1);
    *last_ps = own_ps > after_ps ? own_ps : after_ps;
    sim_event_init(&visit->event, act);
    sim_schedule(sim, &visit->event, *last_ps);
}

static void leave(struct lant_visit *visit)
{
    sim_pool_give(&visit->node->world->visits, visit);
}

/* -- Loads and stores ---------------------------------------------------------------------------*/

static void on_memory(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_visit *visit = CONTAINER_OF(event, struct lant_visit, event);
    struct lant_node *node = visit->node;
    const bool store = visit->packet.header.type == LANT_AW;
    uint64_t beat;
    memcpy(&beat, node->memory + visit->address, sizeof(beat));
    if (store) {
        const uint64_t bits = lant_strobe_bits(visit->strobe);
        beat = (beat & ~bits) | (visit->data & bits);
        memcpy(node->memory + visit->address, &beat, sizeof(beat));
        if (node->program.on_stored != NULL) {
            node->program.on_stored(node->program.context, visit->address);
        }
    }
    struct lant_inbound_record record;
    const bool last = lant_inbound_on_memory(&node->inbound, store ? LANT_WRITES : LANT_READS,
                                             visit->local_id, LANT_OKAY, &record);
    CHECK(last && record.footer.class == LANT_CLASS_SHM);
    lant_shm_target_on_memory(&node->shm_target, &record, beat, &visit->packet);
    answer_after(visit, 0);
    lant_node_take_held(node);
    lant_node_settle(node);
}

/* False: the CAM has no room. */
static bool take_shm_request(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    struct lant_shm_work work;
    lant_shm_target_on_request(&node->shm_target, &node->inbound, &node->ranges, &visit->packet,
                               node->world->sim->now_ps, &work);
    const struct lant_costs *costs = costs_of(node);
    const uint64_t delay_ps = forward_ps(visit) + lant_cycles(costs->shm_receive + costs->memory);
    switch ((enum lant_shm_action)work.action) {
    case LANT_SHM_HOLD: return false;
    case LANT_SHM_DROP: leave(visit); return true;
    case LANT_SHM_ANSWER:
        visit->packet = work.answer;
        answer_after(visit, delay_ps);
        return true;
    case LANT_SHM_READ:
    case LANT_SHM_WRITE: break;
    }
    visit->local_id = work.local_id;
    visit->strobe = work.strobe;
    visit->address = work.address;
    visit->data = work.data;
    const bool store = work.action == LANT_SHM_WRITE;
    go_to_memory(visit, store ? LANT_WRITES : LANT_READS, on_memory, delay_ps);
    return true;
}

/* Nothing else of the unit comes between the read and the write. */
static void on_atomic(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_visit *visit = CONTAINER_OF(event, struct lant_visit, event);
    struct lant_node *node = visit->node;
    const struct lant_packet *packet = &visit->packet;
    uint64_t old;
    memcpy(&old, node->memory + visit->address, sizeof(old));
    const uint64_t result =
        lant_atomic_result((enum lant_atomic)packet->header.packets, old, packet->payload[0],
                           packet->header.payload > 1 ? packet->payload[1] : 0);
    memcpy(node->memory + visit->address, &result, sizeof(result));
    const struct lant_footer footer = packet->footer;
    lant_atomics_on_memory(&node->atomics, visit->tag, &footer, old, &visit->packet);
    answer_after(visit, 0);
    lant_node_settle(node);
}

/* An atomic takes its unit for two accesses to memory, and needs no bus ID: they go one by one. */
static void take_atomic(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    const struct lant_costs *costs = costs_of(node);
    const uint64_t access_ps = lant_cycles(costs->shm_receive + costs->memory);
    const uint64_t come_ps = node->world->sim->now_ps + forward_ps(visit);
    struct lant_atomic_work work;
    lant_atomics_on_request(&node->atomics, &node->ranges, &visit->packet, node->world->sim->now_ps,
                            &work);
    switch ((enum lant_atomic_action)work.action) {
    case LANT_ATOMIC_DROP: leave(visit); return;
    case LANT_ATOMIC_ANSWER:
        visit->packet = work.answer;
        answer_after(visit, come_ps - node->world->sim->now_ps + access_ps);
        return;
    case LANT_ATOMIC_DO: break;
    }
    const uint64_t begin_ps = come_ps > node->atomics_free_ps ? come_ps : node->atomics_free_ps;
    node->atomics_free_ps = begin_ps + 2 * access_ps;
    visit->address = work.address;
    visit->tag = work.tag;
    sim_event_init(&visit->event, on_atomic);
    sim_schedule(node->world->sim, &visit->event, node->atomics_free_ps);
}

static void on_shm_answer(struct sim *sim, struct sim_event *event)
{
    struct lant_visit *visit = CONTAINER_OF(event, struct lant_visit, event);
    struct lant_node *node = visit->node;
    (void)lant_shm_on_answer(&node->shm, &node->errors, &visit->packet, sim->now_ps);
    leave(visit);
    lant_node_settle(node);
}

/* -- RDMA ---------------------------------------------------------------------------------------*/

static void take_words(struct lant_node *node);

void lant_node_take_notifications(struct lant_node *node)
{
    struct lant_rdma_arrival arrival;
    struct lant_notifications *queue = &node->notifications[LANT_QUEUE_CPU];
    while (queue->count < queue->depth &&
           lant_rdma_target_next_notification(&node->rdma_target, &arrival)) {
        const struct lant_notification notification = {
            .kind = arrival.registered ? LANT_NOTIFY_RECV_REG : LANT_NOTIFY_RECV,
            .operation = arrival.operation,
            .tag = arrival.tag,
            .bytes = arrival.bytes,
            .node = arrival.source,
            .destination = arrival.address};
        lant_node_notify(node, LANT_QUEUE_CPU, &notification);
        take_words(node);
    }
}

/* True: the visit's packet is to be written. Else it was answered, or has left. */
static bool act_on_rdma(struct lant_visit *visit, const struct lant_rdma_action *action,
                        const struct lant_packet *answer)
{
    if (action->verdict == LANT_RDMA_TARGET_WRITE) {
        visit->judged = true;
        visit->write = action->write;
        return true;
    }
    if (action->answers) {
        const uint64_t delay_ps = forward_ps(visit);
        visit->packet = *answer;
        answer_after(visit, delay_ps + lant_cycles(costs_of(visit->node)->rdma_receive));
    } else {
        leave(visit);
    }
    return false;
}

/* Packets that waited for the registration which has just come. */
static void take_released(struct lant_node *node)
{
    struct lant_rdma_action action;
    struct lant_packet answer, packet;
    while (lant_rdma_target_next_released(&node->rdma_target, node->world->sim->now_ps, &packet,
                                          &action, &answer)) {
        struct lant_visit *visit = lant_node_visit(node, NULL);
        visit->packet = packet;
        if (act_on_rdma(visit, &action, &answer)) {
            list_append(&node->held, &visit->place);
        }
    }
}

/* False: the buffer has no room for this packet of a keyhole, which is dropped. */
static bool put_in_order(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    if (node->reorder == NULL) {
        return true;
    }
    switch (lant_reorder_put(node->reorder, &visit->packet)) {
    case LANT_REORDER_TAKEN:
    case LANT_REORDER_KNOWN: return true;
    case LANT_REORDER_BUSY: node->counters.reorder_busy++; break;
    case LANT_REORDER_FAR: node->counters.reorder_far++; break;
    case LANT_REORDER_WRONG: break;
    }
    return false;
}

/* Packets of a keyhole go on to its reader, in order if there is a buffer. */
static void stream(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    const struct lant_program *program = &node->program;
    struct lant_packet packet = visit->packet;
    bool comes = node->reorder == NULL || lant_reorder_next(node->reorder, &packet);
    while (comes) {
        if (program->on_stream != NULL) {
            program->on_stream(program->context, &packet);
        }
        comes = node->reorder != NULL && lant_reorder_next(node->reorder, &packet);
    }
}

static void on_written(struct sim *sim, struct sim_event *event)
{
    struct lant_visit *visit = CONTAINER_OF(event, struct lant_visit, event);
    struct lant_node *node = visit->node;
    struct lant_inbound_record record;
    const bool last =
        lant_inbound_on_memory(&node->inbound, LANT_WRITES, visit->local_id, LANT_OKAY, &record);
    CHECK(last && record.address == visit->write.address);
    if (visit->write.fixed) {
        stream(visit);
    } else {
        memcpy(node->memory + visit->write.address, visit->packet.payload, visit->write.bytes);
    }
    lant_rdma_target_on_written(&node->rdma_target, sim->now_ps, &visit->write, LANT_OKAY,
                                &visit->packet);
    answer_after(visit, lant_cycles(costs_of(node)->rdma_receive));
    lant_node_take_notifications(node);
    take_released(node);
    lant_node_take_held(node);
    lant_node_settle(node);
}

/* False: the CAM has no room. */
static bool write_data(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    const struct lant_inbound_record record = {.footer = visit->packet.footer,
                                               .address = visit->write.address,
                                               .type = visit->packet.header.type,
                                               .answers = 1,
                                               .response = LANT_OKAY};
    if (lant_inbound_holds(
            lant_inbound_admit(&node->inbound, LANT_WRITES, &record, &visit->local_id))) {
        return false;
    }
    go_to_memory(visit, LANT_WRITES, on_written,
                 forward_ps(visit) + lant_cycles(costs_of(node)->memory));
    return true;
}

/* False: the CAM has no room. */
static bool take_rdma_request(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    if (!visit->judged) {
        struct lant_rdma_action action;
        struct lant_packet answer;
        lant_rdma_target_on_packet(&node->rdma_target, node->world->sim->now_ps, &visit->packet,
                                   &action, &answer);
        const bool writes = act_on_rdma(visit, &action, &answer);
        take_released(node);
        if (!writes) {
            return true;
        }
        if (visit->write.fixed && !put_in_order(visit)) {
            leave(visit);
            return true;
        }
    }
    return write_data(visit);
}

/* False: the queue has no room. */
static bool take_word(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    struct lant_rdma_action action;
    struct lant_packet answer;
    lant_rdma_target_on_packet(&node->rdma_target, node->world->sim->now_ps, &visit->packet,
                               &action, &answer);
    if (action.verdict == LANT_RDMA_TARGET_HELD) {
        return false;
    }
    list_remove(&visit->place);
    if (action.answers) {
        visit->packet = answer;
        answer_after(visit, 0);
    } else {
        leave(visit);
    }
    return true;
}

static void take_words(struct lant_node *node)
{
    while (!list_empty(&node->words) &&
           take_word(CONTAINER_OF(node->words.next, struct lant_visit, place))) {
    }
}

/* The notification that an operation is complete takes its way to the queue. */
static void on_completion(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_visit *visit = CONTAINER_OF(event, struct lant_visit, event);
    struct lant_node *node = visit->node;
    list_append(&node->words, &visit->place);
    take_words(node);
    lant_node_take_notifications(node);
    lant_node_settle(node);
}

static void on_rdma_answer(struct sim *sim, struct sim_event *event)
{
    struct lant_visit *visit = CONTAINER_OF(event, struct lant_visit, event);
    struct lant_node *node = visit->node;
    (void)lant_rdma_on_answer(&node->rdma, sim->now_ps, &visit->packet.footer);
    leave(visit);
    lant_node_packets_over(node);
    lant_node_settle(node);
}

/* -- Arrival ------------------------------------------------------------------------------------*/

static void lant_node_take_held(struct lant_node *node)
{
    while (!list_empty(&node->held)) {
        struct lant_visit *visit = CONTAINER_OF(node->held.next, struct lant_visit, place);
        const uint8_t type = visit->packet.header.type;
        list_remove(&visit->place);
        if (type == LANT_AR || type == LANT_AW ? !take_shm_request(visit)
                                               : !take_rdma_request(visit)) {
            list_prepend(&node->held, &visit->place);
            return;
        }
    }
}

static void later(struct lant_visit *visit, sim_action act, uint64_t delay_ps)
{
    sim_event_init(&visit->event, act);
    sim_after(visit->node->world->sim, &visit->event, delay_ps);
}

static void take_whole(struct lant_visit *visit)
{
    struct lant_node *node = visit->node;
    const struct lant_costs *costs = costs_of(node);
    switch ((enum lant_type)visit->packet.header.type) {
    case LANT_AR:
    case LANT_AW:
    case LANT_RDMA_WRITE:
    case LANT_RDMA_WRITE_REGISTER:
    case LANT_RDMA_UNREGISTERED:
        list_append(&node->held, &visit->place);
        lant_node_take_held(node);
        return;
    case LANT_ATOMIC: take_atomic(visit); return;
    case LANT_R:
    case LANT_B: later(visit, on_shm_answer, lant_cycles(costs->shm_done)); return;
    case LANT_COMPLETION_NOTIFICATION:
        later(visit, on_completion, forward_ps(visit) + lant_cycles(costs->rdma_receive));
        return;
    case LANT_RDMA_ACK: later(visit, on_rdma_answer, lant_cycles(costs->row)); return;
    case LANT_ERROR_REPORT:
        node->counters.reports++;
        (void)lant_errors_on_report(&node->errors, &visit->packet, node->world->sim->now_ps);
        leave(visit);
        return;
    case LANT_TYPE_COUNT: break;
    }
    UNREACHABLE("a whole packet of no type");
}

/* The footer is readable: the sender is told of it, unless the packet is an answer itself. */
static void refuse(struct lant_visit *visit, enum lant_response response)
{
    const struct lant_packet *packet = &visit->packet;
    const uint8_t type = packet->header.type;
    if (lant_is_answer(type) || type == LANT_ERROR_REPORT) {
        leave(visit);
        return;
    }
    const struct lant_ends request = {packet->header, packet->footer};
    const struct lant_ends answer = lant_answer(&request, visit->node->index, response);
    const uint64_t delay_ps = forward_ps(visit);
    visit->packet = (struct lant_packet){.header = answer.header, .footer = answer.footer};
    answer_after(visit, delay_ps + lant_cycles(costs_of(visit->node)->shm_receive));
}

/* LANT_ESCAPES_MAX visits are kept for packets that an escape channel may release at once. */
static bool visits_are_short(const struct lant_world *world)
{
    const struct sim_pool *visits = &world->visits;
    return visits->count - visits->used + visits->depth <= LANT_ESCAPES_MAX;
}

/* The packet as it would be if its CRC were that of the flits that have come. */
static void believe_crc(struct lant_frame *frame)
{
    struct lant_header head;
    enum lant_part part = LANT_HEAD1;
    uint32_t crc = LANT_CRC_START;
    if (lant_head_decode(frame->flits[0], &head) == LANT_DAMAGED ||
        lant_packet_flits(&head) != frame->count) {
        return;
    }
    uint32_t left = head.payload;
    for (uint32_t i = 0; i + 1 < frame->count; i++) {
        uint64_t flit = frame->flits[i];
        if (part == LANT_BODY) {
            left--;
        } else {
            (void)lant_secded_check(&flit);
        }
        crc = lant_crc_flit(crc, part, flit);
        part = lant_part_next(&head, part, left);
    }
    uint64_t *last = &frame->flits[frame->count - 1];
    *last = (*last & ~(uint64_t)UINT32_MAX) | lant_crc_flit(crc, LANT_FOOT2, *last);
}

void lant_node_on_frame(void *nodes, uint32_t index, struct lant_frame *frame)
{
    struct lant_world *world = nodes;
    struct lant_node *node = &world->nodes[index];
    if (visits_are_short(world)) {
        node->counters.dropped_full++;
        lant_fabric_free(&world->fabric, frame);
        return;
    }
    struct lant_visit *visit = lant_node_visit(node, NULL);
    uint32_t repaired;
    lant_watch_came(world->watch, frame);
    if (world->config.believes_crc) {
        believe_crc(frame);
    }
    const enum lant_verdict verdict =
        lant_decode(frame->flits, frame->count, &visit->packet, &repaired);
    node->counters.received++;
    node->counters.verdicts[verdict]++;
    node->counters.repaired += repaired;
    lant_fabric_free(&world->fabric, frame);
    switch (verdict) {
    case LANT_WHOLE: take_whole(visit); break;
    case LANT_CRC_WRONG: refuse(visit, LANT_NACK_CRC); break;
    case LANT_TYPE_UNKNOWN: refuse(visit, LANT_DECERR); break;
    case LANT_SHORT:
    case LANT_HEAD_DAMAGED:
    case LANT_LENGTH_WRONG:
    case LANT_FOOT_DAMAGED:
    case LANT_MALFORMED: leave(visit); break;
    case LANT_VERDICT_COUNT: UNREACHABLE("no verdict");
    }
    lant_node_settle(node);
}
