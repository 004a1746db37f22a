/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The sending half of a RoCE NIC: doorbells, work requests, payloads, the pipeline.
 *
 * The engine yields a packet as soon as it was posted, also before its doorbell: a packet is held
 * until its work request is here, and no more of its queue pair are pulled until then.
 */
#include <string.h>

#include "lab/roce/internal.h"
#include "wire/cm.h"

/* A doorbell without a work request in it. */
#define BELL_BYTES 8u
/* Ethernet's header and FCS, UDP's header, the ICRC: what a frame has beside IP's header and the
 * packet. */
#define FRAME_BYTES (18u + INET_UDP_BYTES + ROCE_ICRC_BYTES)
/* Notifications of congestion pass what waits for a pause. */
#define CNP_CLASS 7u

static void depart(struct roce_flight *flight);

/* -- Doorbells ----------------------------------------------------------------------------------*/

static void unhold(struct roce_connection *connection)
{
    while (!list_empty(&connection->held)) {
        struct roce_flight *flight = CONTAINER_OF(connection->held.next, struct roce_flight, held);
        if ((int32_t)(flight->wanted - connection->fetched) > 0) {
            return;
        }
        list_remove(&flight->held);
        depart(flight);
    }
    if (list_empty(&connection->turn)) {
        list_append(&connection->function->turns, &connection->turn);
    }
}

void roce_fetched(struct roce_connection *connection, uint32_t position)
{
    if ((int32_t)(position - connection->fetched) > 0) {
        connection->fetched = position;
    }
    unhold(connection);
    roce_serve(connection->function->node);
}

static void on_fetched(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct roce_bell *bell = CONTAINER_OF(event, struct roce_bell, event);
    struct roce_connection *connection = bell->connection;
    const bool alive = roce_is_alive(connection, bell->birth);
    const uint32_t position = bell->position;
    sim_pool_give(&connection->function->roce->bells, bell);
    if (alive) {
        roce_fetched(connection, position);
    }
}

/* csRNA's units see it; the work requests are read when they say so. */
static void on_rung_units(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct roce_bell *bell = CONTAINER_OF(event, struct roce_bell, event);
    struct roce_connection *connection = bell->connection;
    const bool alive = roce_is_alive(connection, bell->birth);
    const uint32_t count = bell->count;
    sim_pool_give(&connection->function->roce->bells, bell);
    if (alive && count > 0) {
        roce_units_ring(connection, count);
    }
}

static bool carries(const struct roce_config *config, const struct roce_bell *bell)
{
    return config->doorbell_carries && bell->count == 1;
}

/* Work requests of a queue pair come in their order: one in a doorbell waits for those of an older
 * doorbell that are being read. */
static void on_rung(struct sim *sim, struct sim_event *event)
{
    struct roce_bell *bell = CONTAINER_OF(event, struct roce_bell, event);
    struct roce_connection *connection = bell->connection;
    struct roce_node *node = connection->function->node;
    const struct roce_config *config = &node->roce->config;
    const uint64_t here_ps =
        carries(config, bell) ? sim->now_ps : roce_pcie_read(node, bell->count * config->wqe_bytes);
    if (!roce_is_alive(connection, bell->birth)) {
        sim_pool_give(&node->roce->bells, bell);
        return;
    }
    connection->fetched_ps = sim_later(connection->fetched_ps, here_ps);
    sim_event_init(&bell->event, on_fetched);
    if (connection->fetched_ps == sim->now_ps) {
        on_fetched(sim, &bell->event);
    } else {
        sim_schedule(sim, &bell->event, connection->fetched_ps);
    }
}

static void ring(struct roce_node *node, struct roce_bell *bell)
{
    struct roce *roce = node->roce;
    const struct roce_config *config = &roce->config;
    const uint32_t bytes = carries(config, bell) ? config->wqe_bytes : BELL_BYTES;
    if (node->units == NULL) {
        sim_event_init(&bell->event, on_rung);
        sim_schedule(roce->sim, &bell->event, roce_pcie_ring(node, bytes));
    } else {
        sim_event_init(&bell->event, on_rung_units);
        sim_after(roce->sim, &bell->event, config->units.software_ps + config->pcie.doorbell_ps);
    }
}

/* One request of each reliable connection is followed at a time. */
static void follow(struct roce_connection *connection, uint32_t position)
{
    const enum qp_type type = qp_type_of(connection->qp);
    if (connection->followed_ps == 0 && (type == QP_RC || type == QP_XRC_INITIATOR)) {
        connection->followed = position;
        connection->followed_ps = connection->function->roce->sim->now_ps;
    }
}

void roce_doorbell(struct roce_function *function, struct qp *qp)
{
    struct roce *roce = function->roce;
    struct roce_connection *connection = roce_connection_of(function, qp);
    const struct qp_progress progress = qp_progress_of(qp);
    struct roce_bell *bell = sim_pool_take(&roce->bells);
    follow(connection, progress.posted);
    if (bell == NULL) { /* So many are on their way that the time of this one says nothing. */
        connection->rung = progress.posted;
        roce_fetched(connection, progress.posted);
        return;
    }
    *bell = (struct roce_bell){.connection = connection,
                               .birth = connection->birth,
                               .count = progress.posted - connection->rung,
                               .position = progress.posted};
    connection->rung = progress.posted;
    ring(function->node, bell);
    roce_enter(function);
    roce_settle(function, false);
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* Inline data lie in the queue pair's own memory, and came with the work request. */
static bool is_inline(const struct roce_flight *flight, const struct qp *qp)
{
    struct qp_capacity capacity = qp_capacity_of(qp);
    const size_t bytes = qp_bytes(qp_type_of(qp), &capacity, capacity.receives == 0);
    return flight->leaving.segment_count == 1 &&
           flight->leaving.segments[0].address - (uintptr_t)qp < bytes;
}

static bool gather(struct roce_flight *flight, const struct roce_host *host)
{
    uint8_t *to = flight->payload;
    for (uint32_t i = 0; i < flight->leaving.segment_count; i++) {
        const struct segment *segment = &flight->leaving.segments[i];
        if (!host->read(host->context, segment->address, to, segment->bytes)) {
            return false;
        }
        to += segment->bytes;
    }
    memset(to, 0, flight->pad_bytes);
    flight->gathered = true;
    return true;
}

/* -- The line -----------------------------------------------------------------------------------*/

static void on_sent(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    struct roce_node *node = flight->connection->function->node;
    struct roce *roce = flight->roce;
    if (flight->to >= roce->function_count) {
        roce_drop(flight, &roce->counters.nobody);
        return;
    }
    roce->counters.packets++;
    roce_capture_flight(flight);
    struct roce_node *peer = roce->functions[flight->to]->node;
    sim_note(sim, (uint64_t)flight->from << 32 | flight->to);
    if (peer == node) { /* It comes back by the node's own port, and takes no line. */
        roce_wait(node, -(int64_t)roce_room(flight));
        node->port.calls->on_frame(&node->port, &flight->frame);
        roce_serve(node);
    } else {
        flight->frame.destination = peer->number;
        sim_port_send(&node->port, &flight->frame);
    }
}

static void on_payload(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    const struct roce_connection *connection = flight->connection;
    struct roce_node *node = connection->function->node;
    struct roce *roce = node->roce;
    if (node->units != NULL) {
        roce_units_reading(flight, false);
    }
    if (!roce_is_alive(connection, flight->birth)) {
        roce_drop(flight, &roce->counters.forgotten);
    } else if (flight->unreadable ||
               (!flight->gathered && !gather(flight, &connection->function->host))) {
        roce_drop(flight, &roce->counters.unreadable);
    } else {
        const struct sim_span out =
            sim_wire_send(&node->sending, sim->now_ps, roce->config.packet_ps);
        sim_event_init(&flight->event, on_sent);
        sim_schedule(sim, &flight->event, out.head_ps + roce->config.send_ps);
    }
}

/* An answer reads behind the writes that were posted before it. */
static uint64_t written_ps(const struct roce_flight *flight)
{
    const struct roce_function *function = flight->connection->function;
    const bool waits = flight->answers && flight->data_bytes > 0;
    return waits && flight->roce->config.posts_writes ? function->reached_ps : 0;
}

void roce_read_payload(struct roce_flight *flight)
{
    struct sim *sim = flight->roce->sim;
    struct roce_connection *connection = flight->connection;
    struct roce_node *node = connection->function->node;
    const uint32_t bytes = flight->data_bytes;
    uint64_t ready_ps = sim_later(sim->now_ps, written_ps(flight));
    if (bytes > 0 && flight->inlined) {
        ready_ps = roce_pcie_carry(node, bytes);
    } else if (bytes > 0) {
        ready_ps = sim_later(ready_ps, roce_pcie_read(node, bytes));
    }
    if (node->units != NULL) {
        roce_units_reading(flight, true);
    }
    uint64_t *newest_ps = &connection->ready_ps[flight->answers];
    *newest_ps = sim_later(*newest_ps, ready_ps);
    sim_event_init(&flight->event, on_payload);
    sim_schedule(sim, &flight->event, *newest_ps);
}

static void on_context(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    roce_read_payload(CONTAINER_OF(event, struct roce_flight, event));
}

/* The request's units have seen to the context, and an answer's request had it. */
static void depart_from_units(struct roce_flight *flight)
{
    roce_wait(flight->connection->function->node, roce_room(flight));
    if (flight->answers) {
        roce_read_payload(flight);
    } else {
        roce_units_send(flight);
    }
}

/* The work request is here. */
static void depart(struct roce_flight *flight)
{
    struct sim *sim = flight->roce->sim;
    if (flight->connection->function->node->units != NULL) {
        depart_from_units(flight);
        return;
    }
    const uint64_t at_ps = roce_context(flight->connection);
    sim_event_init(&flight->event, on_context);
    if (at_ps == sim->now_ps) {
        on_context(sim, &flight->event);
    } else {
        sim_schedule(sim, &flight->event, at_ps);
    }
}

/* -- Pulling ------------------------------------------------------------------------------------*/

static uint32_t mixed(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t hash = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ c) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(hash >> 32);
}

/* Paths are chosen by addresses, and by the flow label; or, where there is none, by the two QPNs,
 * from which Linux makes the UDP source port then (rdma_get_udp_sport). */
static uint32_t entropy_of(const struct roce_flight *flight, uint32_t from_qpn, uint32_t to_qpn)
{
    const uint32_t label = flight->flow_label & INET_LABEL_MASK;
    const uint32_t ends = mixed(flight->from, flight->to, label);
    return label != 0 ? ends : mixed(from_qpn, to_qpn, ends);
}

static enum sim_ecn ecn_of(const struct nic_departure *departure)
{
    return departure->ecn == NIC_ECN_NOT ? SIM_NOT_ECT : SIM_ECT_0;
}

static void open_frame(struct roce_flight *flight, const struct nic_av *av, enum sim_ecn ecn)
{
    const bool ipv4 = inet_is_ipv4(flight->destination.bytes);
    const uint32_t bytes =
        FRAME_BYTES + (ipv4 ? INET_IPV4_BYTES : INET_IPV6_BYTES) + roce_room(flight);
    const bool cnp = flight->headers[0] == ROCE_OPCODE_CNP;
    const uint8_t class = cnp ? CNP_CLASS : av->service_level % PAUSE_CLASSES;
    sim_frame_open(&flight->frame, bytes, 0, class, ecn);
}

static void address(struct roce_flight *flight, const struct nic_av *av, uint32_t from_qpn,
                    uint32_t to_qpn)
{
    const struct inet_variant variant = nic_av_variant(av);
    flight->from = flight->connection->function->number;
    flight->to = (uint32_t)((uintptr_t)av->link - 1);
    flight->source = av->source;
    flight->destination = av->destination;
    flight->traffic_class = variant.traffic_class;
    flight->hop_limit = variant.hop_limit;
    flight->flow_label = variant.flow_label;
    flight->entropy = flight->roce->config.one_path ? 0 : entropy_of(flight, from_qpn, to_qpn);
}

static void fill(struct roce_flight *flight, const struct nic_departure *departure)
{
    address(flight, departure->av, qp_number(departure->qp), departure->destination_qpn);
    flight->headers_bytes = departure->headers_bytes;
    flight->data_bytes = departure->payload_bytes;
    flight->pad_bytes = departure->pad_bytes;
    flight->leaving.segment_count = departure->segment_count;
    memcpy(flight->headers, departure->headers, departure->headers_bytes);
    memcpy(flight->leaving.segments, departure->segments,
           departure->segment_count * sizeof(departure->segments[0]));
    flight->answers = !(roce_opcode(flight->headers[0])->traits & ROCE_IS_REQUEST);
    flight->paid = false;
    flight->gathered = departure->payload_bytes == 0;
    flight->unreadable = false;
    flight->inlined = !flight->answers && is_inline(flight, departure->qp);
    open_frame(flight, departure->av, ecn_of(departure));
}

/* The engine completes an unreliable request now, so its memory is the program's again. */
static void read_early(struct roce_flight *flight, const struct qp *qp)
{
    const enum qp_type type = qp_type_of(qp);
    if (!flight->gathered && (type == QP_UC || type == QP_UD)) {
        flight->unreadable = !gather(flight, &flight->connection->function->host);
    }
}

/* Takes a packet of a queue pair; false: it has none now. */
static bool pull(struct roce_connection *connection, struct qp *qp)
{
    struct roce_function *function = connection->function;
    struct roce *roce = function->roce;
    struct nic_departure departure;
    const struct qp_progress before = qp_progress_of(qp);
    roce_enter(function);
    const bool pulled = nic_next_packet(function->engine, qp, sim_instant(roce->sim), &departure);
    const struct qp_progress after = qp_progress_of(qp);
    if (pulled) {
        struct roce_flight *flight = sim_pool_take(&roce->flights);
        flight->roce = roce;
        flight->connection = connection;
        flight->birth = connection->birth;
        flight->wanted = after.passed + (after.passed == before.passed);
        fill(flight, &departure);
        if (function->node->units == NULL) { /* Else requests that are held take no room. */
            roce_wait(function->node, roce_room(flight));
        }
        read_early(flight, qp);
        const bool early = (int32_t)(flight->wanted - connection->fetched) > 0;
        if (!flight->answers && (early || !list_empty(&connection->held))) {
            list_append(&connection->held, &flight->held);
        } else {
            depart(flight);
        }
    }
    roce_settle(function, before.completions != after.completions);
    return pulled;
}

/* A queue pair that was held up and may go on; NULL: none. */
static struct qp *next_unheld(struct roce_function *function)
{
    struct list *node;
    while ((node = list_pop(&function->turns)) != NULL) {
        struct roce_connection *connection = CONTAINER_OF(node, struct roce_connection, turn);
        if (list_empty(&connection->held) && roce_has_qp(connection)) {
            list_append(&function->turns, node);
            return connection->qp;
        }
    }
    return NULL;
}

/* A queue pair that the engine lists and that is not held up; NULL: none. */
static struct qp *next_ready(struct roce_function *function)
{
    struct qp *qp;
    while ((qp = nic_next_qp(function->engine)) != NULL) {
        struct roce_connection *connection = roce_connection_of(function, qp);
        if (list_empty(&connection->held)) {
            list_remove(&connection->turn);
            return qp;
        }
        nic_unready(function->engine, qp);
    }
    return NULL;
}

static bool serve_function(struct roce_function *function)
{
    function->turn = !function->turn;
    struct qp *qp = function->turn ? next_unheld(function) : next_ready(function);
    if (qp == NULL) {
        qp = function->turn ? next_ready(function) : next_unheld(function);
    }
    if (qp == NULL) {
        return false;
    }
    struct roce_connection *connection = roce_connection_of(function, qp);
    if (pull(connection, qp)) {
        nic_rotate(function->engine, qp);
    } else {
        list_remove(&connection->turn);
    }
    return true;
}

/* A flight that ends may be another node's. */
static bool has_room(struct roce_node *node)
{
    struct roce *roce = node->roce;
    if (node->waiting_bytes >= roce->config.room_bytes) {
        return false;
    }
    const bool has_flights = sim_pool_taken(&roce->flights) < roce->flights.count;
    if (!has_flights && list_empty(&node->starved)) {
        list_append(&roce->starved, &node->starved);
    }
    return has_flights;
}

void roce_serve(struct roce_node *node)
{
    bool any = !list_empty(&node->functions);
    while (any && has_room(node)) {
        any = false;
        const struct list *const last = node->functions.previous;
        for (struct list *at = NULL; at != last && has_room(node);) {
            at = list_pop(&node->functions);
            list_append(&node->functions, at);
            any |= serve_function(CONTAINER_OF(at, struct roce_function, neighbours));
        }
    }
}

/* -- Datagrams of QP 1 --------------------------------------------------------------------------*/

static void on_manager_fetched(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    depart(CONTAINER_OF(event, struct roce_flight, event));
}

static void on_manager_rung(struct sim *sim, struct sim_event *event)
{
    struct roce_flight *flight = CONTAINER_OF(event, struct roce_flight, event);
    const struct roce *roce = flight->roce;
    sim_event_init(&flight->event, on_manager_fetched);
    sim_schedule(sim, &flight->event,
                 roce_pcie_read(flight->connection->function->node, roce->config.wqe_bytes));
}

static void fill_datagram(struct roce_flight *flight, const struct nic_av *av,
                          const uint8_t mad[CM_MAD_BYTES])
{
    const struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = CM_QPN,
        .psn = flight->connection->function->manager_psn++ & ROCE_24_BITS,
        .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN},
    };
    address(flight, av, CM_QPN, CM_QPN);
    flight->headers_bytes = (uint32_t)roce_encode_headers(&packet, flight->headers);
    flight->data_bytes = CM_MAD_BYTES;
    flight->pad_bytes = 0;
    flight->answers = flight->inlined = flight->unreadable = flight->paid = false;
    flight->gathered = true;
    memcpy(flight->payload, mad, CM_MAD_BYTES);
    open_frame(flight, av, SIM_NOT_ECT);
}

/* The engine has no QP 1, whose work requests are thus the manager's own. */
void roce_manage(struct roce_function *function, const struct nic_av *av,
                 const uint8_t mad[CM_MAD_BYTES])
{
    struct roce *roce = function->roce;
    struct roce_flight *flight = sim_pool_take(&roce->flights);
    if (flight == NULL) {
        roce->counters.lost++;
        return;
    }
    flight->roce = roce;
    flight->connection = roce_connection_at(function, CM_QPN);
    flight->birth = flight->connection->birth;
    fill_datagram(flight, av, mad);
    if (function->node->units == NULL) { /* As for a packet of the engine. */
        roce_wait(function->node, roce_room(flight));
    }
    sim_event_init(&flight->event, on_manager_rung);
    sim_schedule(roce->sim, &flight->event, roce_pcie_ring(function->node, BELL_BYTES));
}
