/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna/internal.h"

#include <string.h>

#include "lab/csrna/machine.h"

/* In the byte before a packet's PSN. */
#define BTH_ACK_REQUEST 0x80u

/* In a trace, a span shorter than this was answered from the cache. */
#define HIT_PS 50000

/* The cache must hold the state of the engine: both change at the same places only. If the window
 * is on the chip, the packets that are not acknowledged are not in the context. */
static void check_context(struct csrna_nic *nic, const struct csrna_qp *qp,
                          const struct qpc *context)
{
    const struct qp_flow flow = qp_flow_of(qp->qp);
    const bool acked = nic->config.acks == CSRNA_ACKS_CONTEXT;
    nic->incoherent += !psn_equal(context->next_psn, flow.next) ||
                       (acked && !psn_equal(context->acknowledged_psn, flow.unacked)) ||
                       !psn_equal(context->expected_psn, flow.expected);
}

void csrna_store_context(const struct csrna_qp *qp, struct qpc *context)
{
    const struct qp_flow flow = qp_flow_of(qp->qp);
    context->next_psn = flow.next;
    context->acknowledged_psn = flow.unacked;
    context->expected_psn = flow.expected;
    context->version++;
}

/* -- Transmission -------------------------------------------------------------------------------*/

static bool gather(const struct nic_departure *departure, uint8_t *to)
{
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        memcpy(to, (const void *)(uintptr_t)segment->address, segment->bytes);
        to += segment->bytes;
    }
    memset(to, 0, departure->pad_bytes);
    return departure->payload_bytes + departure->pad_bytes > 0;
}

/* Takes the engine's next packet of a queue pair; NULL: it has none now. */
static struct csrna_packet *pull(struct csrna_nic *nic, struct qp *qp)
{
    struct nic_departure departure;
    if (!nic_next_packet(nic->engine, qp, sim_instant(nic->sim), &departure)) {
        return NULL;
    }
    struct csrna_packet *packet = csrna_machine_packet(nic->machine);
    if (packet == NULL) {
        return NULL;
    }
    packet->from = (uint16_t)nic->node;
    packet->to = csrna_gid_node(&departure.av->destination);
    packet->headers_bytes = departure.headers_bytes;
    packet->payload_bytes = departure.payload_bytes + departure.pad_bytes;
    memcpy(packet->headers, departure.headers, departure.headers_bytes);
    packet->reads_payload = gather(&departure, packet->payload);
    if (nic->config.ack_each && csrna_is_request(packet)) {
        packet->headers[8] |= BTH_ACK_REQUEST;
    }
    return packet;
}

/* Reads the payload first. A packet without payload stays behind the packets of its queue pair that
 * have one. */
void csrna_depart(struct csrna_nic *nic, struct csrna_packet *packet, uint32_t slot)
{
    if (!packet->reads_payload && nic->qps[slot].reading == 0) {
        csrna_send(nic, packet);
        return;
    }
    nic->reads++;
    nic->qps[slot].reading++;
    csrna_translated_read(
        nic, packet->payload_bytes,
        (struct csrna_dma){.kind = CSRNA_DMA_PAYLOAD, .number = slot, .packet = packet});
}

/* -- Answers ------------------------------------------------------------------------------------*/

/* The requester unit sends one packet: the next one of a message, or one that was lost. */
static void requester_answer(struct csrna_nic *nic, uint32_t entry)
{
    const uint32_t slot = entry & ~CSRNA_RESEND;
    struct csrna_qp *qp = &nic->qps[slot];
    const bool again = qp_flow_of(qp->qp).resending;
    if ((entry & CSRNA_RESEND) && !again) {
        qp->resend_asked = false;
        nic->resends_asked--;
        return;
    }
    struct csrna_packet *packet = pull(nic, qp->qp);
    if (packet != NULL) {
        packet->slot = slot;
        packet->again = again;
        nic->resends += again;
        csrna_queue_push(&nic->ready, packet);
    }
    if (qp_state_of(qp->qp) != QP_RTS) {
        nic->failed++;
    } else if (packet == NULL || again) {
        csrna_ring_push(&nic->messages, entry);
    }
}

/* Returns how many bytes were moved. */
static uint32_t move_memory(struct csrna_nic *nic, const struct nic_move *move)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        const struct segment *segment = &move->segments[i];
        memcpy((void *)(uintptr_t)segment->address, move->payload + bytes, segment->bytes);
        csrna_judge(nic->machine, nic->node, (const uint8_t *)(uintptr_t)segment->address,
                    segment->bytes);
        bytes += segment->bytes;
    }
    return bytes;
}

static void on_packet(struct csrna_nic *nic, const struct csrna_packet *packet)
{
    const struct nic_frame frame = {.headers = packet->headers,
                                    .payload = packet->payload,
                                    .headers_bytes = packet->headers_bytes,
                                    .payload_bytes = packet->payload_bytes,
                                    .source = csrna_node_gid(packet->from),
                                    .destination = csrna_node_gid(packet->to)};
    struct nic_move move;
    const struct instant now = sim_instant(nic->sim);
    const enum nic_arrived verdict = nic_on_packet(nic->engine, &frame, now, &move);
    sim_note(nic->sim, (uint64_t)verdict);
    if (verdict != NIC_MOVES) {
        return;
    }
    /* Writes to memory are posted: nothing waits for them, and later accesses come behind them. */
    CHECK(move.kind == NIC_MOVE_SCATTER || move.kind == NIC_MOVE_NOTHING);
    if (move.segment_count > 0) {
        csrna_port_move(nic, &nic->pcie_out, move_memory(nic, &move));
    }
    nic_on_moved(nic->engine, &move, NIC_MOVED, now);
}

/* An acknowledgement, or data that was read. */
void csrna_acknowledge(struct csrna_nic *nic, struct csrna_packet *packet)
{
    const uint32_t slot = packet->slot;
    const struct csrna_qp *qp = &nic->qps[slot];
    const struct psn before = qp_flow_of(qp->qp).unacked;
    on_packet(nic, packet);
    csrna_machine_free(nic->machine, packet);
    const int32_t packets = psn_distance(before, qp_flow_of(qp->qp).unacked);
    if (packets > 0) {
        CHECK((uint32_t)packets <= nic->in_flight);
        nic->in_flight -= (uint32_t)packets;
        qp_scheduler_acknowledged(&nic->scheduler, slot, (uint32_t)packets);
    }
    csrna_nic_resend(nic);
    csrna_machine_completions(nic->machine, nic);
}

static void responder_answer(struct csrna_nic *nic, struct csrna_packet *packet)
{
    const uint32_t slot = packet->slot;
    if (!csrna_is_request(packet)) {
        csrna_acknowledge(nic, packet);
        return;
    }
    on_packet(nic, packet);
    csrna_machine_free(nic->machine, packet);
    struct csrna_packet *reply;
    while ((reply = pull(nic, nic->qps[slot].qp)) != NULL) {
        csrna_depart(nic, reply, slot);
    }
}

void csrna_nic_resend(struct csrna_nic *nic)
{
    /* The engine lists every queue pair that may send. A queue pair that only has new messages is
     * left to its doorbell. */
    struct qp *next;
    while ((next = nic_next_qp(nic->engine)) != NULL) {
        const uint32_t slot = csrna_nic_slot(nic, next);
        nic_unready(nic->engine, next);
        if (qp_flow_of(next).resending && !nic->qps[slot].resend_asked) {
            nic->qps[slot].resend_asked = true;
            nic->resends_asked++;
            csrna_ring_push(&nic->messages, slot | CSRNA_RESEND);
            csrna_wake(nic, nic->sim->now_ps);
        }
    }
}

static void trace_answer(struct csrna_nic *nic, const struct qpc_answer *answer)
{
    const uint64_t asked_ps = nic->asked_ps[answer->channel][answer->index];
    const uint64_t now_ps = nic->sim->now_ps;
    const char *what = now_ps - asked_ps < HIT_PS          ? "context cached"
                       : answer->operation == QPC_PREFETCH ? "context prefetched"
                                                           : "context waited for";
    sim_trace_span(nic->trace, nic->tracks[answer->channel][answer->index], what,
                   nic->slots[answer->qpn & nic->slot_mask], asked_ps,
                   now_ps + nic->config.cycle_ps);
}

static void on_answer(struct csrna_nic *nic, const struct qpc_answer *answer)
{
    struct qpc_requester *requester = &nic->requesters[answer->channel];
    struct csrna_qp *qp = csrna_qp_of_number(nic, answer->qpn);
    if (nic->trace != NULL) {
        trace_answer(nic, answer);
    }
    if (answer->operation == QPC_PREFETCH) {
        qpc_requester_release(requester, answer->index);
        return;
    }
    check_context(nic, qp, answer->context);
    const void *info = qpc_requester_info(requester, answer->index);
    if (answer->channel == QPC_RESPONDER) {
        struct csrna_packet *packet;
        memcpy(&packet, info, sizeof(packet));
        qpc_requester_release(requester, answer->index);
        responder_answer(nic, packet);
    } else {
        const uint32_t entry = *(const uint32_t *)info;
        qpc_requester_release(requester, answer->index);
        if (answer->channel == QPC_DESCRIPTOR) {
            csrna_read_wqes(nic, entry);
        } else {
            requester_answer(nic, entry);
        }
    }
    if (answer->operation == QPC_UPDATE) {
        csrna_store_context(qp, answer->context);
    }
}

void csrna_act(struct csrna_nic *nic, const struct qpc_action *action)
{
    if (action->writes_back) {
        csrna_write_context(nic, &action->victim);
    }
    if (action->answers) {
        on_answer(nic, &action->answer);
    }
    if (action->fetches) {
        csrna_read_context(nic, action->fetch_qpn);
    }
}
