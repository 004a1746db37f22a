/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdl/manager.h"

#include <string.h>

#include "base/bytes.h"
#include "transport/ibta/rdma_cm.h"
#include "wire/icrc.h"

enum {
    UD_SEND_ONLY = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
    SOURCE_PORT = 0xc001,
    AT_QPN = 5,
    PATH_MTU_FIRST = 1, /* 256 bytes. */
    PATH_MTU_LAST = 5,  /* 4,096 bytes. */
    RNR_RETRY = 7,      /* For ever. */
    ACK_DELAY = 16,     /* A simulator takes its time: 0.27 s. */
};

static void gid_of(uint32_t ip, uint8_t gid[16])
{
    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    store_be32(gid + 12, ip);
}

void manager_init(struct manager *manager, struct hdl_pair *pair, uint16_t port, uint64_t seed)
{
    memset(manager, 0, sizeof(*manager));
    cm_init(&manager->cm, seed, 0, seed);
    manager->pair = pair;
    manager->service_id = cm_service_id(RDMA_PORT_SPACE_TCP, port);
}

/* -- Connections --------------------------------------------------------------------------------*/

static struct cm_connection *spare(struct manager *manager)
{
    for (uint32_t i = 0; i < MANAGER_CONNECTIONS; i++) {
        if (!manager->taken[i]) {
            cm_connection_init(&manager->connections[i]);
            return &manager->connections[i];
        }
    }
    return NULL;
}

static void take(struct manager *manager, const struct cm_connection *connection, bool taken)
{
    manager->taken[connection - manager->connections] = taken;
}

static void let_go(struct manager *manager, struct cm_connection *connection, struct instant now)
{
    if (connection == manager->current) {
        manager->current = NULL;
        manager->pair->connected = false;
    }
    if (cm_release(&manager->cm, connection, now)) {
        take(manager, connection, false);
    }
}

/* Why not; 0: the design is ready for it. */
static uint16_t judge(const struct manager *manager, const struct cm_req *req)
{
    if (req->service_id != manager->service_id) {
        return CM_REASON_INVALID_SERVICE_ID;
    }
    if (req->transport != CM_TRANSPORT_RC) {
        return CM_REASON_INVALID_TRANSPORT;
    }
    if (req->path_mtu < PATH_MTU_FIRST || req->path_mtu > PATH_MTU_LAST) {
        return CM_REASON_INVALID_PATH_MTU;
    }
    return manager->current != NULL ? CM_REASON_NO_RESOURCES : 0;
}

static void accept_peer(struct manager *manager, struct cm_connection *connection,
                        const struct cm_req *req, uint32_t peer_ip, struct instant now)
{
    struct hdl_pair *pair = manager->pair;
    struct cm_message message = {.rep = {.qpn = pair->local.qpn,
                                         .starting_psn = pair->local.psn,
                                         .target_ack_delay = ACK_DELAY,
                                         .rnr_retry_count = RNR_RETRY,
                                         .ca_guid = manager->cm.ca_guid}};
    /* Each side says by which PSN the other one begins to send. */
    pair->peer = (struct hdl_half){.ip = peer_ip, .qpn = req->qpn, .psn = pair->local.psn};
    pair->send_psn = req->starting_psn;
    pair->receive_psn = pair->local.psn;
    pair->pmtu = 128u << req->path_mtu;
    pair->connected = pair->is_new = true;
    manager->current = connection;
    const enum status status = cm_reply(&manager->cm, connection, &message, now);
    CHECK(status == STATUS_OK);
}

static void on_event(struct manager *manager, const struct cm_event *event, uint32_t peer_ip,
                     struct instant now)
{
    struct cm_connection *connection = event->connection;
    uint16_t reason;
    switch (event->kind) {
    case CM_EVENT_REQUESTED:
        take(manager, connection, true);
        reason = judge(manager, &event->message->req);
        if (reason == 0) {
            accept_peer(manager, connection, &event->message->req, peer_ip, now);
            return;
        }
        manager->refused++;
        CHECK(cm_reject(&manager->cm, connection, reason, NULL, 0) == STATUS_OK);
        take(manager, connection, false);
        return;
    case CM_EVENT_SIDR_REQUESTED:
        take(manager, connection, true);
        manager->refused++;
        let_go(manager, connection, now);
        return;
    case CM_EVENT_REJECTED:
    case CM_EVENT_UNREACHABLE:
    case CM_EVENT_DISCONNECTED: let_go(manager, connection, now); return;
    case CM_EVENT_RELEASED: take(manager, connection, false); return;
    case CM_EVENT_NONE:
    case CM_EVENT_REPLIED:
    case CM_EVENT_ESTABLISHED:
    case CM_EVENT_TIMEWAIT_OVER:
    case CM_EVENT_SIDR_REPLIED:
    default: return;
    }
}

/* -- Datagrams ----------------------------------------------------------------------------------*/

bool manager_is_for(const struct inet_datagram *datagram)
{
    return datagram->own_port == ROCE_UDP_PORT && datagram->payload_bytes >= ROCE_BTH_BYTES &&
           (load_be32(datagram->payload + AT_QPN - 1) & ROCE_24_BITS) == CM_QPN;
}

void manager_come(struct manager *manager, const struct inet_datagram *datagram, struct instant now)
{
    struct roce_packet packet;
    struct cm_event event;
    uint8_t source[16], destination[16];
    if (roce_decode(datagram->payload, datagram->payload_bytes - ROCE_ICRC_BYTES, &packet) !=
            ROCE_GOOD ||
        packet.opcode != UD_SEND_ONLY || packet.deth.qkey != CM_QKEY ||
        packet.payload_bytes != CM_MAD_BYTES) {
        manager->no_mad++;
        return;
    }
    gid_of(datagram->peer_ip, source);
    gid_of(manager->pair->local.ip, destination);
    cm_on_message(&manager->cm, source, destination, packet.payload, packet.payload_bytes,
                  spare(manager), now, &event);
    on_event(manager, &event, datagram->peer_ip, now);
}

void manager_pass_time(struct manager *manager, struct instant now)
{
    struct cm_event event;
    if (!instant_reached(now, cm_deadline(&manager->cm))) {
        return;
    }
    do {
        cm_on_time(&manager->cm, now, &event);
        on_event(manager, &event, 0, now);
    } while (event.kind != CM_EVENT_NONE);
}

void manager_end(struct manager *manager, struct instant now)
{
    if (manager->current != NULL) {
        let_go(manager, manager->current, now);
    }
}

bool manager_next(struct manager *manager, struct inet_datagram *datagram)
{
    struct cm_mad mad;
    if (!cm_next_message(&manager->cm, &mad)) {
        return false;
    }
    const uint32_t peer_ip = load_be32(mad.destination + 12);
    const struct roce_packet packet = {.opcode = UD_SEND_ONLY,
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = CM_QPN,
                                       .psn = manager->psn++ & ROCE_24_BITS,
                                       .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN}};
    const struct inet_flow flow =
        inet_flow_ipv4(manager->pair->local.ip, SOURCE_PORT, peer_ip, ROCE_UDP_PORT);
    const size_t headers = roce_encode_headers(&packet, manager->packet);
    uint8_t *payload = manager->packet + headers;
    memcpy(payload, mad.bytes, CM_MAD_BYTES);
    store_le32(payload + CM_MAD_BYTES,
               icrc_compute(&flow, 0, manager->packet, headers, payload, CM_MAD_BYTES));
    *datagram = (struct inet_datagram){.peer_ip = peer_ip,
                                       .peer_port = ROCE_UDP_PORT,
                                       .own_port = SOURCE_PORT,
                                       .variant = INET_VARIANT_PLAIN,
                                       .payload = manager->packet,
                                       .payload_bytes = sizeof(manager->packet)};
    return true;
}
