/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The receiving half of a RoCE NIC: the pipeline, contexts, DMA writes, completions.
 *
 * An engine completes work at once, and a program may look at any time. So the engine is told of an
 * acknowledgement when the completion behind it is visible, and of a move when its data are, and
 * the completion behind them.
 */
#include <string.h>

#include "base/bytes.h"
#include "lab/roce/internal.h"
#include "nic/inventory.h"

/* The BTH's destination QPN. */
static uint32_t qpn_of(const struct roce_flight *flight)
{
    return load_be32(flight->headers + 4) & ROCE_24_BITS;
}

/* It brings no data, whose way to memory would come first. */
static bool is_acknowledgement(const struct roce_flight *flight)
{
    const uint32_t services = 0xe0;
    return (flight->headers[0] & ~services) == ROCE_ACKNOWLEDGE;
}

/* -- After the engine was told ------------------------------------------------------------------*/

/* Completions take their time of the bus. */
static void settle(struct roce_flight *flight, uint32_t completions, bool changed)
{
    struct roce_function *function = flight->connection->function;
    struct roce_node *node = function->node;
    if (completions > 0) {
        (void)roce_pcie_write(node, completions * node->roce->config.cqe_bytes);
    }
    roce_settle(function, changed || completions > 0);
    roce_end(flight);
    roce_serve(node);
}

static uint32_t completions_of(const struct qp *qp)
{
    return qp == NULL ? 0 : qp_progress_of(qp).completions;
}

static void drop_forgotten(struct roce_flight *flight)
{
    flight->roce->counters.forgotten++;
    roce_end(flight);
}

/* -- Moves --------------------------------------------------------------------------------------*/

static void tell_moved(struct roce_flight *flight, enum nic_move_result result)
{
    struct roce_function *function = flight->connection->function;
    struct nic_move *move = &flight->move;
    const uint32_t before = completions_of(move->qp);
    /* Receives of XRC complete in the queue of a shared receive queue. */
    const bool changes = move->kind != NIC_MOVE_NOTHING || move->completes;
    roce_enter(function);
    nic_on_moved(function->engine, move, result, sim_instant(function->roce->sim));
    roce_note_done(flight->connection);
    settle(flight, completions_of(move->qp) - before, changes);
}

/* Its queue pair is forgotten and then destroyed: between the two a packet may still have come. */
static bool is_alive(const struct roce_flight *flight)
{
    const struct roce_function *function = flight->connection->function;
    const struct qp *qp = flight->move.qp;
    return roce_is_alive(flight->connection, flight->birth) &&
           (qp == NULL || nic_find_qp(function->engine, qpn_of(flight)) == qp);
}

static void on_completed(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    (void)sim;
    if (!is_alive(flight)) {
        drop_forgotten(flight);
        return;
    }
    flight->connection->moves--;
    tell_moved(flight, flight->faulted ? NIC_MOVE_FAULTED : NIC_MOVED);
}

/* The bytes of the move are in memory; the engine hears of it now, or when the completion is there.
 * Moves of a queue pair finish in their order. */
static void finish(struct roce_flight *flight)
{
    struct sim *sim = flight->roce->sim;
    struct roce_connection *connection = flight->connection;
    const bool completes = flight->move.completes || flight->move.purpose == NIC_FOR_REQUEST;
    const struct roce_node *node = connection->function->node;
    uint64_t at_ps = sim->now_ps;
    if (completes && flight->move.kind == NIC_MOVE_NOTHING) {
        at_ps = roce_pcie_completion(node);
    } else if (completes) {
        at_ps += roce_pcie_completion_ps(node);
    }
    connection->moved_ps = sim_later(connection->moved_ps, at_ps);
    sim_event_init(&flight->event, on_completed);
    if (connection->moved_ps == sim->now_ps) {
        on_completed(sim, &flight->event);
    } else {
        if (flight->move.kind != NIC_MOVE_NOTHING) {
            connection->function->host.on_change(connection->function->host.context);
        }
        sim_schedule(sim, &flight->event, connection->moved_ps);
    }
}

static bool scatter(const struct roce_flight *flight, const struct roce_host *host)
{
    const struct nic_move *move = &flight->move;
    uint8_t bytes[NIC_GRH_BYTES + ROCE_PAYLOAD_BYTES_MAX];
    memcpy(bytes, move->prefix, move->prefix_bytes);
    memcpy(bytes + move->prefix_bytes, flight->payload, flight->data_bytes);
    const uint8_t *from = bytes;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        const struct segment *segment = &move->segments[i];
        if (!host->write(host->context, segment->address, from, segment->bytes)) {
            return false;
        }
        from += segment->bytes;
    }
    return true;
}

/* The operation on 8 bytes, all at once: nothing else happens meanwhile. */
static bool operate(struct roce_flight *flight, const struct roce_host *host)
{
    struct nic_move *move = &flight->move;
    const uint64_t address = move->segments[0].address;
    uint64_t result;
    if (!host->read(host->context, address, &move->original, sizeof(move->original))) {
        return false;
    }
    result = nic_atomic_result(move, move->original);
    return host->write(host->context, address, &result, sizeof(result));
}

static void on_reached(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    const struct roce_host *host = &flight->connection->function->host;
    (void)sim;
    if (!is_alive(flight)) {
        drop_forgotten(flight);
        return;
    }
    switch (flight->move.kind) {
    case NIC_MOVE_SCATTER: flight->faulted = !scatter(flight, host); break;
    case NIC_MOVE_ATOMIC: flight->faulted = !operate(flight, host); break;
    case NIC_MOVE_FLUSH: /* Memory is the host's; none of it is kept without power. */
        flight->faulted = flight->move.flush.persistent;
        break;
    case NIC_MOVE_NOTHING: break;
    }
    finish(flight);
}

static uint32_t moved_bytes(const struct nic_move *move)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        bytes += move->segments[i].bytes;
    }
    return bytes;
}

/* A write of a peer that nothing is told of but the peer: posted, as PCIe has it, it cannot fail.
 * Behind a move of its queue pair of which the engine has not heard it waits as all do. */
static bool is_posted(const struct roce_flight *flight)
{
    const struct nic_move *move = &flight->move;
    return flight->roce->config.posts_writes && move->kind == NIC_MOVE_SCATTER &&
           move->purpose == NIC_FOR_PEER && !move->completes && flight->connection->moves == 0;
}

/* Its region is still there (roce_reached_ps), but its queue pair need not be. */
static void on_posted(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    const struct roce_function *function = flight->connection->function;
    (void)sim;
    if (!function->gone) {
        flight->roce->counters.unwritable += !scatter(flight, &function->host);
        function->host.on_change(function->host.context);
    }
    roce_end(flight);
}

/* The engine hears of the write now, and so its acknowledgement leaves. */
static void post_write(struct roce_flight *flight)
{
    struct roce_function *function = flight->connection->function;
    struct nic_move move = flight->move;
    roce_enter(function);
    nic_on_moved(function->engine, &move, NIC_MOVED, sim_instant(function->roce->sim));
    roce_settle(function, false);
}

/* Writes to memory. A flush is a read of nothing, which comes behind the writes before it. */
static void begin_move(struct roce_flight *flight)
{
    struct sim *sim = flight->roce->sim;
    struct roce_node *node = flight->connection->function->node;
    uint64_t at_ps = sim->now_ps;
    switch (flight->move.kind) {
    case NIC_MOVE_NOTHING: break;
    case NIC_MOVE_SCATTER: at_ps = roce_pcie_write(node, moved_bytes(&flight->move)); break;
    case NIC_MOVE_ATOMIC: at_ps = roce_pcie_read(node, sizeof(uint64_t)); break;
    case NIC_MOVE_FLUSH:
        at_ps = sim_later(node->out.free_ps, sim->now_ps) + node->roce->config.pcie.read_ps;
        break;
    }
    flight->faulted = false;
    uint64_t *reached_ps = &flight->connection->function->reached_ps;
    if (node->roce->config.posts_writes && flight->move.kind != NIC_MOVE_NOTHING) {
        at_ps = sim_later(at_ps, *reached_ps); /* Behind what was posted. */
    }
    *reached_ps = sim_later(*reached_ps, at_ps);
    if (is_posted(flight)) {
        post_write(flight);
        sim_event_init(&flight->event, on_posted);
        sim_schedule(sim, &flight->event, at_ps);
        return;
    }
    flight->connection->moves++;
    sim_event_init(&flight->event, on_reached);
    if (at_ps == sim->now_ps) {
        on_reached(sim, &flight->event);
    } else {
        sim_schedule(sim, &flight->event, at_ps);
    }
}

/* -- Judging ------------------------------------------------------------------------------------*/

static struct nic_frame frame_of(const struct roce_flight *flight)
{
    const uint8_t mark = flight->frame.ecn == SIM_CE ? INET_ECN_MASK : 0;
    return (struct nic_frame){.headers = flight->headers,
                              .payload = flight->payload,
                              .headers_bytes = flight->headers_bytes,
                              .payload_bytes = flight->data_bytes + flight->pad_bytes,
                              .source = flight->source,
                              .destination = flight->destination,
                              .traffic_class = flight->traffic_class | mark,
                              .hop_limit = flight->hop_limit,
                              .flow_label =
                                  inet_is_ipv4(flight->destination.bytes) ? 0 : flight->flow_label};
}

/* A datagram for QP 1 is in memory, and its completion behind it. */
static void on_managed(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    const struct roce_host *host = &flight->connection->function->host;
    (void)sim;
    if (!roce_is_alive(flight->connection, flight->birth)) {
        drop_forgotten(flight);
        return;
    }
    host->on_datagram(host->context, &flight->source, &flight->destination, flight->payload,
                      flight->data_bytes);
    settle(flight, 1, true);
}

static void manage(struct roce_flight *flight)
{
    struct roce_node *node = flight->connection->function->node;
    const uint64_t at_ps = roce_pcie_write(node, NIC_GRH_BYTES + flight->data_bytes);
    sim_event_init(&flight->event, on_managed);
    sim_schedule(flight->roce->sim, &flight->event, at_ps + roce_pcie_completion_ps(node));
}

static void on_judged(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    struct roce_connection *connection = flight->connection;
    struct roce_function *function = connection->function;
    if (!roce_is_alive(connection, flight->birth)) {
        drop_forgotten(flight);
        return;
    }
    const struct nic_frame frame = frame_of(flight);
    const uint32_t before = completions_of(connection->qp);
    roce_enter(function);
    const enum nic_arrived verdict =
        nic_on_packet(function->engine, &frame, sim_instant(sim), &flight->move);
    sim_note(sim, (uint64_t)verdict << 32 | qpn_of(flight));
    roce_note_done(connection);
    if (verdict == NIC_MOVES) {
        roce_settle(function, false);
        begin_move(flight);
        roce_serve(function->node);
        return;
    }
    if (verdict == NIC_MANAGEMENT) {
        roce_settle(function, false);
        manage(flight);
        return;
    }
    settle(flight, completions_of(connection->qp) - before, false);
}

/* The packet has passed the pipeline. Answers of a queue pair are judged in their order. */
void roce_judge(struct roce_flight *flight)
{
    struct sim *sim = flight->roce->sim;
    struct roce_connection *connection = flight->connection;
    uint64_t at_ps = sim->now_ps;
    sim_event_init(&flight->event, on_judged);
    if (flight->answers) {
        if (is_acknowledgement(flight)) {
            at_ps = roce_pcie_completion(connection->function->node);
        }
        at_ps = connection->judged_ps = sim_later(connection->judged_ps, at_ps);
    }
    if (at_ps == sim->now_ps) {
        on_judged(sim, &flight->event);
    } else {
        sim_schedule(sim, &flight->event, at_ps);
    }
}

static void on_received(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    roce_judge(CONTAINER_OF(event, struct roce_flight, event));
}

void roce_arrive(struct roce_node *node, struct roce_flight *flight)
{
    struct roce *roce = node->roce;
    struct sim *sim = roce->sim;
    struct roce_function *function = roce->functions[flight->to];
    if (function->gone) {
        roce->counters.nobody++;
        roce_end(flight);
        return;
    }
    flight->connection = roce_connection_at(function, qpn_of(flight));
    flight->birth = flight->connection->birth;
    if (node->units != NULL) {
        roce_units_receive(flight);
        return;
    }
    const struct sim_span in = sim_wire_send(&node->receiving, sim->now_ps, roce->config.packet_ps);
    const uint64_t passed_ps = in.head_ps + roce->config.receive_ps;
    sim_event_init(&flight->event, on_received);
    sim_schedule(sim, &flight->event, sim_later(passed_ps, roce_context(flight->connection)));
}
