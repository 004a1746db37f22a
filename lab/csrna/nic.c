/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "lab/csrna/machine.h"

/* -- Rings and queues ---------------------------------------------------------------------------*/

void csrna_ring_push(struct csrna_ring *ring, uint32_t value)
{
    CHECK(ring->tail - ring->head <= ring->mask);
    ring->entries[ring->tail++ & ring->mask] = value;
}

void csrna_queue_push(struct csrna_packets *queue, struct csrna_packet *packet)
{
    packet->next = NULL;
    if (queue->count++ == 0) {
        queue->first = packet;
    } else {
        queue->last->next = packet;
    }
    queue->last = packet;
}

static uint32_t ring_pop(struct csrna_ring *ring)
{
    return ring->entries[ring->head++ & ring->mask];
}

static bool ring_empty(const struct csrna_ring *ring)
{
    return ring->head == ring->tail;
}

static struct csrna_packet *queue_pop(struct csrna_packets *queue)
{
    struct csrna_packet *packet = queue->first;
    queue->first = packet->next;
    queue->count--;
    return packet;
}

/* -- The clock ----------------------------------------------------------------------------------*/

/* Says that the NIC has something to do at `at_ps`, or in the next cycle if that is later. */
void csrna_wake(struct csrna_nic *nic, uint64_t at_ps)
{
    const uint64_t cycle = nic->config.cycle_ps;
    const uint64_t edge = (at_ps + cycle - 1) / cycle * cycle;
    const uint64_t at = edge < nic->next_cycle_ps ? nic->next_cycle_ps : edge;
    if (!sim_event_scheduled(&nic->tick) || at < nic->tick.at_ps) {
        sim_reschedule(nic->sim, &nic->tick, at);
    }
}

/* -- The units ----------------------------------------------------------------------------------*/

static void ask(struct csrna_nic *nic, enum qpc_channel channel, uint32_t index, uint32_t slot,
                enum qpc_operation operation)
{
    const struct qpc_request request = {.qpn = qp_number(nic->qps[slot].qp),
                                        .channel = (uint8_t)channel,
                                        .index = (uint8_t)index,
                                        .operation = (uint8_t)operation};
    nic->asked_ps[channel][index] = nic->sim->now_ps;
    qpc_manager_request(&nic->manager, &request);
}

/* Takes an index and notes what the context is for; false: the unit stalls. */
static bool reserve(struct csrna_nic *nic, enum qpc_channel channel, uint32_t *index)
{
    const int got = qpc_requester_reserve(&nic->requesters[channel]);
    nic->stalls[channel] += got < 0;
    *index = (uint32_t)got;
    return got >= 0;
}

/* While packets are to be sent again, everything may go on: one of them may be the one that opens
 * the window. */
static bool resends(const struct csrna_nic *nic)
{
    return nic->resends + nic->resends_asked > 0;
}

static bool window_open(const struct csrna_nic *nic)
{
    return nic->in_flight < nic->config.nic_window || resends(nic);
}

/* Whether a packet before the unit's processing may go on, but for the time. */
static bool may_go_on(const struct csrna_nic *nic)
{
    return nic->ready.count > 0 &&
           (nic->reads + nic->leaving.count < nic->config.payloads || resends(nic));
}

/* Whether the unit's processing has room for one more. */
static bool may_process(const struct csrna_nic *nic)
{
    const uint64_t now_ps = nic->sim->now_ps;
    return may_go_on(nic) && now_ps >= nic->processing_until_ps &&
           nic->wire.free_ps <= now_ps + nic->config.backlog_ps;
}

static void process(struct csrna_nic *nic)
{
    if (!may_process(nic)) {
        return;
    }
    struct csrna_packet *packet = queue_pop(&nic->ready);
    nic->processing_until_ps = nic->sim->now_ps + nic->config.processing * nic->config.cycle_ps;
    csrna_depart(nic, packet, packet->slot);
}

static bool may_visit(const struct csrna_nic *nic)
{
    const uint32_t waiting = nic->messages.tail - nic->messages.head;
    return nic->scheduler.listed > 0 && waiting + nic->reading_wqes < nic->config.wqe_room;
}

/* With hiding the WQEs are read at once, and the context is on its way when their messages ask for
 * it; else the WQEs wait for the context. */
static void scheduler_step(struct csrna_nic *nic)
{
    struct qp_visit visit;
    uint32_t index = 0;
    const bool hiding = nic->config.policy->hides;
    const bool asks = !hiding || nic->config.prefetch;
    if (!may_visit(nic) || (asks && !reserve(nic, QPC_DESCRIPTOR, &index))) {
        return;
    }
    CHECK(qp_scheduler_next(&nic->scheduler, &visit));
    nic->reading_wqes += visit.wqes;
    nic->qps[visit.slot].wqes = (uint16_t)visit.wqes;
    if (hiding) {
        csrna_read_wqes(nic, visit.slot);
    }
    if (asks) {
        *(uint32_t *)qpc_requester_info(&nic->requesters[QPC_DESCRIPTOR], index) = visit.slot;
        ask(nic, QPC_DESCRIPTOR, index, visit.slot, hiding ? QPC_PREFETCH : QPC_READ);
    }
}

/* The WQEs of a visit have come: splits the WQEs into messages. */
static void csrna_split(struct csrna_nic *nic, uint32_t slot)
{
    struct qp_message messages[CSRNA_VISIT_WQES_MAX];
    for (uint32_t i = 0; i < nic->qps[slot].wqes; i++) {
        messages[i] = (struct qp_message){.bytes = nic->config.message_bytes, .packets = 1};
    }
    const uint32_t taken = qp_scheduler_take(&nic->scheduler, slot, messages);
    sq_table_advance(&nic->sq_table, slot, taken);
    for (uint32_t i = 0; i < taken; i++) {
        csrna_ring_push(&nic->messages, slot);
    }
    nic->reading_wqes -= nic->qps[slot].wqes;
}

static void requester_step(struct csrna_nic *nic)
{
    uint32_t index;
    if (!ring_empty(&nic->messages) && nic->ready.count < nic->config.ready &&
        reserve(nic, QPC_REQUESTER, &index)) {
        const uint32_t entry = ring_pop(&nic->messages);
        *(uint32_t *)qpc_requester_info(&nic->requesters[QPC_REQUESTER], index) = entry;
        ask(nic, QPC_REQUESTER, index, entry & ~CSRNA_RESEND, QPC_UPDATE);
    }
}

static void responder_step(struct csrna_nic *nic)
{
    uint32_t index;
    if (nic->received.count > 0 && reserve(nic, QPC_RESPONDER, &index)) {
        struct csrna_packet *packet = queue_pop(&nic->received);
        memcpy(qpc_requester_info(&nic->requesters[QPC_RESPONDER], index), &packet, sizeof(packet));
        ask(nic, QPC_RESPONDER, index, packet->slot, QPC_UPDATE);
    }
}

/* Requests leave as the NIC's window allows. */
static void send_leaving(struct csrna_nic *nic)
{
    while (nic->leaving.count > 0 && window_open(nic)) {
        struct csrna_packet *packet = queue_pop(&nic->leaving);
        nic->in_flight += !packet->again;
        nic->sent += !packet->again;
        nic->resends -= packet->again;
        csrna_machine_send(nic->machine, packet);
    }
}

void csrna_send(struct csrna_nic *nic, struct csrna_packet *packet)
{
    if (csrna_is_request(packet)) {
        csrna_queue_push(&nic->leaving, packet);
        send_leaving(nic);
    } else {
        csrna_machine_send(nic->machine, packet);
    }
}

/* An answer to one of our packets. */
static void window_step(struct csrna_nic *nic)
{
    if (nic->acks.count > 0) {
        csrna_acknowledge(nic, queue_pop(&nic->acks));
    }
    send_leaving(nic);
}

static void manager_step(struct csrna_nic *nic)
{
    struct qpc_action action;
    if (qpc_manager_step_pending(&nic->manager, &action)) {
        csrna_act(nic, &action);
    }
    if (qpc_manager_step_requests(&nic->manager, &action)) {
        csrna_act(nic, &action);
    }
}

/* -- A cycle ------------------------------------------------------------------------------------*/

static bool has_index(const struct csrna_nic *nic, enum qpc_channel channel)
{
    return nic->requesters[channel].free_count > 0;
}

/* Does any unit have work that it can do in the next cycle? */
static bool busy(const struct csrna_nic *nic)
{
    return (may_visit(nic) && has_index(nic, QPC_DESCRIPTOR)) || nic->acks.count > 0 ||
           (!ring_empty(&nic->messages) && nic->ready.count < nic->config.ready &&
            has_index(nic, QPC_REQUESTER)) ||
           (nic->received.count > 0 && has_index(nic, QPC_RESPONDER));
}

static void sleep_until_due(struct csrna_nic *nic)
{
    const uint64_t now_ps = nic->sim->now_ps;
    if (busy(nic)) {
        csrna_wake(nic, now_ps);
    }
    if (!qpc_manager_idle(&nic->manager)) {
        csrna_wake(nic, now_ps);
    }
    if (may_go_on(nic)) {
        const uint64_t backlog_ps = nic->config.backlog_ps;
        const uint64_t wire_ps =
            nic->wire.free_ps < backlog_ps ? 0 : nic->wire.free_ps - backlog_ps;
        const uint64_t due_ps =
            nic->processing_until_ps > wire_ps ? nic->processing_until_ps : wire_ps;
        csrna_wake(nic, due_ps > now_ps ? due_ps : now_ps);
    }
}

static void tick(struct sim *sim, struct sim_event *event)
{
    struct csrna_nic *nic = CONTAINER_OF(event, struct csrna_nic, tick);
    nic->next_cycle_ps = sim->now_ps + nic->config.cycle_ps;
    manager_step(nic);
    window_step(nic);
    process(nic);
    requester_step(nic);
    scheduler_step(nic);
    responder_step(nic);
    sleep_until_due(nic);
}

void csrna_on_read(struct csrna_nic *nic, const struct csrna_dma *dma)
{
    switch ((enum csrna_dma_kind)dma->kind) {
    case CSRNA_DMA_WQES: csrna_split(nic, dma->number); break;
    case CSRNA_DMA_CONTEXT: {
        const struct csrna_qp *qp = csrna_qp_of_number(nic, dma->number);
        qpc_manager_on_fetched(&nic->manager, dma->number, &qp->context);
        if (nic->trace != NULL) {
            sim_trace_span(nic->trace, nic->memory_track, "context read",
                           nic->slots[dma->number & nic->slot_mask], qp->began_ps,
                           nic->sim->now_ps);
        }
        break;
    }
    case CSRNA_DMA_PAYLOAD:
        nic->reads--;
        nic->qps[dma->number].reading--;
        csrna_send(nic, dma->packet);
        break;
    }
}

/* -- From outside -------------------------------------------------------------------------------*/

void csrna_nic_doorbell(struct csrna_nic *nic, uint32_t slot, uint32_t count, uint32_t offset)
{
    const struct qp_doorbell doorbell = {
        .slot = slot, .count = (uint16_t)count, .offset = (uint16_t)offset};
    CHECK(qp_scheduler_doorbell(&nic->scheduler, &doorbell) == STATUS_OK);
    csrna_wake(nic, nic->sim->now_ps);
}

void csrna_nic_receive(struct csrna_nic *nic, struct csrna_packet *packet)
{
    const uint32_t qpn = load_be32(packet->headers + 4) & ROCE_24_BITS;
    packet->slot = nic->slots[qpn & nic->slot_mask];
    if (packet->slot >= nic->qp_count || qp_number(nic->qps[packet->slot].qp) != qpn) {
        nic->bad_packets++;
        csrna_machine_free(nic->machine, packet);
        return;
    }
    const bool acks = nic->config.acks == CSRNA_ACKS_ON_CHIP && !csrna_is_request(packet);
    csrna_queue_push(acks ? &nic->acks : &nic->received, packet);
    csrna_wake(nic, nic->sim->now_ps);
}

/* -- Opening ------------------------------------------------------------------------------------*/

/* Memory for a NIC. */
static void *take(struct csrna_nic *nic, size_t bytes)
{
    nic->bytes += bytes;
    return csrna_zeroed(bytes);
}

static void open_ring(struct csrna_nic *nic, struct csrna_ring *ring, uint32_t least)
{
    const uint32_t count = (uint32_t)power_of_two(least);
    *ring = (struct csrna_ring){.entries = take(nic, count * sizeof(uint32_t)), .mask = count - 1};
}

static void open_units(struct csrna_nic *nic)
{
    const struct csrna_config *config = &nic->config;
    const struct qpc_manager_parameters manager = {
        .policy = config->policy->order,
        .victim = config->victims,
        .oocap = config->oocap,
        .cache_entries = config->cache_entries,
    };
    nic->memory[0] = take(nic, qpc_manager_bytes(&manager));
    qpc_manager_init(&nic->manager, &manager, nic->memory[0]);
    for (uint32_t c = 0; c < QPC_CHANNELS; c++) {
        const uint32_t bytes = c == QPC_RESPONDER ? sizeof(void *) : sizeof(uint32_t);
        nic->memory[1 + c] = take(nic, qpc_requester_bytes(config->oocap, bytes));
        qpc_requester_init(&nic->requesters[c], config->oocap, bytes, nic->memory[1 + c]);
    }
    const struct qp_scheduler_parameters scheduler = {
        .qps = nic->qp_count,
        .sq_wqes = CSRNA_SQ_WQES,
        .visit_wqes = config->visit_wqes,
        .visit_bytes = config->visit_bytes,
        .window = config->qp_window,
    };
    nic->memory[4] = take(nic, qp_scheduler_bytes(nic->qp_count));
    qp_scheduler_init(&nic->scheduler, &scheduler, nic->memory[4]);
    nic->memory[5] = take(nic, sq_table_bytes(nic->qp_count));
    sq_table_init(&nic->sq_table, nic->qp_count, CSRNA_SQ_WQES, nic->memory[5]);
}

static void open_tracks(struct csrna_nic *nic)
{
    static const char *const units[] = {"descriptor", "requester", "responder"};
    for (uint32_t c = 0; c < QPC_CHANNELS; c++) {
        for (uint32_t i = 0; i < nic->config.oocap; i++) {
            char *name = nic->track_names[c][i];
            snprintf(name, sizeof(nic->track_names[c][i]), "%s %u", units[c], i);
            nic->tracks[c][i] = sim_trace_track(nic->trace, "node", (int)nic->node, name, 0);
        }
    }
    nic->memory_track =
        sim_trace_track(nic->trace, "node", (int)nic->node, "contexts in memory", 0);
}

void csrna_nic_open(struct csrna_nic *nic, struct csrna_machine *machine, uint32_t node,
                    const struct csrna_config *config, uint32_t qps, struct sim_trace *trace)
{
    *nic = (struct csrna_nic){.machine = machine,
                              .sim = &machine->sim,
                              .config = *config,
                              .node = node,
                              .qp_count = qps,
                              .trace = trace,
                              .bytes = sizeof(*nic)};
    nic->qps = take(nic, qps * sizeof(struct csrna_qp));
    /* QPNs are given out one after the other, except four that are never given out. */
    nic->slot_mask = (uint32_t)power_of_two(qps + 4) - 1;
    nic->slots = take(nic, (nic->slot_mask + 1) * sizeof(uint32_t));
    nic->pcie_in =
        (struct csrna_port){.byte_fs = config->pcie_byte_fs, .latency_ps = config->read_ps};
    nic->pcie_out = (struct csrna_port){.byte_fs = config->pcie_byte_fs};
    nic->board =
        (struct csrna_port){.byte_fs = config->board_byte_fs, .latency_ps = config->board_ps};
    sim_event_init(&nic->tick, tick);
    struct csrna_reads *reads[] = {&nic->pcie_reads, &nic->board_reads};
    for (uint32_t i = 0; i < COUNT_OF(reads); i++) {
        reads[i]->nic = nic;
        reads[i]->entries = csrna_zeroed(CSRNA_DMA_MAX * sizeof(struct csrna_dma));
        sim_event_init(&reads[i]->event, csrna_on_reads);
    }
    nic->accesses.nic = nic;
    sim_event_init(&nic->accesses.event, csrna_on_accesses);
    open_ring(nic, &nic->messages, config->wqe_room + config->visit_wqes + 3 * QPC_OOCAP_MAX + qps);
    open_units(nic);
    csrna_translation_open(nic);
    if (trace != NULL) {
        open_tracks(nic);
    }
}

void csrna_nic_add(struct csrna_nic *nic, uint32_t slot, struct qp *qp)
{
    struct csrna_qp *own = &nic->qps[slot];
    uint32_t number;
    own->qp = qp;
    nic->slots[qp_number(qp) & nic->slot_mask] = slot;
    own->context.qpn = qp_number(qp);
    CHECK(sq_table_add(&nic->sq_table, (uint64_t)slot * CSRNA_SQ_WQES * SQ_WQE_BYTES, &number) ==
          STATUS_OK);
    CHECK(number == slot);
    csrna_store_context(own, &own->context);
}

void csrna_nic_close(struct csrna_nic *nic)
{
    for (uint32_t i = 0; i < COUNT_OF(nic->memory); i++) {
        csrna_free(nic->memory[i]);
    }
    csrna_translation_close(nic);
    csrna_free(nic->pcie_reads.entries);
    csrna_free(nic->board_reads.entries);
    csrna_free(nic->messages.entries);
    csrna_free(nic->slots);
    csrna_free(nic->qps);
}
