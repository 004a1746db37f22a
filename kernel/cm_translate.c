/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_translate - the connection manager's words in the kernel's structs, and back.
 */
#include <netinet/in.h>
#include <string.h>

#include "kernel/cm_internal.h"

/* As on Ethernet: 4.096 us * 2^16. */
#define PACKET_LIFETIME 16
#define RATE_100_GBPS   16 /* enum ibv_rate. */
#define HOP_LIMIT       64
#define EQUAL           2u /* Selectors of a path record. */

/* The uses of a path record: all of them. */
#define PATH_GMP             (1u << 0)
#define PATH_PRIMARY         (1u << 1)
#define PATH_OUTBOUND        (1u << 3)
#define PATH_INBOUND_REVERSE (1u << 5)

#ifndef AF_IB
#define AF_IB 27
#endif

/* -- Addresses ----------------------------------------------------------------------------------*/

bool cm_read_address(const void *sockaddr, size_t bytes, struct rdma_address *address)
{
    sa_family_t family = AF_UNSPEC;
    *address = (struct rdma_address){0};
    if (bytes >= sizeof(family)) {
        memcpy(&family, sockaddr, sizeof(family));
    }
    if (family == AF_INET && bytes >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in v4;
        memcpy(&v4, sockaddr, sizeof(v4));
        address->ip[10] = address->ip[11] = 0xff;
        memcpy(address->ip + 12, &v4.sin_addr, 4);
        address->port = ntohs(v4.sin_port);
        address->known = true;
        return true;
    }
    if (family == AF_INET6 && bytes >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 v6;
        memcpy(&v6, sockaddr, sizeof(v6));
        memcpy(address->ip, &v6.sin6_addr, 16);
        address->port = ntohs(v6.sin6_port);
        address->flow_label = v6.sin6_flowinfo;
        address->scope_id = v6.sin6_scope_id;
        address->ipv6 = true;
        address->known = true;
        return true;
    }
    return false;
}

/* Into a zeroed sockaddr with room for IPv6. Nothing for an id without an address. */
void cm_write_address(const struct rdma_address *address, void *sockaddr)
{
    if (!address->known) {
        return;
    }
    if (address->ipv6) {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                  .sin6_port = htons(address->port),
                                  .sin6_flowinfo = address->flow_label,
                                  .sin6_scope_id = address->scope_id};
        memcpy(&v6.sin6_addr, address->ip, 16);
        memcpy(sockaddr, &v6, sizeof(v6));
    } else {
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(address->port)};
        memcpy(&v4.sin_addr, address->ip + 12, 4);
        memcpy(sockaddr, &v4, sizeof(v4));
    }
}

/* -- Connections --------------------------------------------------------------------------------*/

_Static_assert(sizeof(((struct rdma_ucm_conn_param *)0)->private_data) ==
                       sizeof(((struct rdma_parameters *)0)->private_data) &&
                   sizeof(((struct rdma_parameters *)0)->private_data) > UINT8_MAX,
               "private data of any length");

/* Counts of three bits; programs that ask for more get the most there is, as from the kernel. */
static uint8_t at_most_7(uint8_t count)
{
    return count < 7 ? count : 7;
}

void cm_read_parameters(const struct rdma_ucm_conn_param *from, struct rdma_parameters *to)
{
    *to = (struct rdma_parameters){
        .private_bytes = from->private_data_len,
        .responder_resources = from->responder_resources,
        .initiator_depth = from->initiator_depth,
        .flow_control = from->flow_control != 0,
        .srq = from->srq != 0,
        .retry_count = at_most_7(from->retry_count),
        .rnr_retry_count = at_most_7(from->rnr_retry_count),
        .qpn = from->qp_num,
        .qkey = from->qkey,
    };
    memcpy(to->private_data, from->private_data, from->private_data_len);
}

static uint8_t gid_index(const struct live *live, const uint8_t gid[16])
{
    for (uint32_t i = 0; i < live_gid_count(live); i++) {
        const struct gid own = live_own_address(live, i);
        if (memcmp(own.bytes, gid, 16) == 0) {
            return (uint8_t)i;
        }
    }
    return 0;
}

static void write_way(const struct live *live, const struct rdma_id *id, const uint8_t gid[16],
                      struct ib_uverbs_ah_attr *attr)
{
    *attr = (struct ib_uverbs_ah_attr){
        .grh = {.sgid_index = gid_index(live, id->source_gid),
                .hop_limit = HOP_LIMIT,
                .traffic_class = id->type_of_service},
        .is_global = 1,
        .port_num = 1,
    };
    memcpy(attr->grh.dgid, gid, 16);
}

/* A path that is known has a GID at either end and, for connections, an MTU. */
static void path_check(const struct rdma_id *id)
{
    CHECK(id->has_path && id->source.known);
    CHECK(id->datagrams || (id->path_mtu >= IBV_MTU_256 && id->path_mtu <= IBV_MTU_4096));
}

static void write_conn(const struct rdma_parameters *from, struct rdma_ucm_conn_param *to)
{
    *to = (struct rdma_ucm_conn_param){
        .qp_num = from->qpn,
        .private_data_len = from->private_bytes,
        .srq = from->srq,
        .responder_resources = from->responder_resources,
        .initiator_depth = from->initiator_depth,
        .flow_control = from->flow_control,
        .retry_count = from->retry_count,
        .rnr_retry_count = from->rnr_retry_count,
    };
    memcpy(to->private_data, from->private_data, from->private_bytes);
}

static void write_ud(const struct live *live, const struct rdma_event *event,
                     struct rdma_ucm_ud_param *to)
{
    const struct rdma_parameters *from = &event->parameters;
    *to = (struct rdma_ucm_ud_param){
        .qp_num = from->qpn, .qkey = from->qkey, .private_data_len = from->private_bytes};
    write_way(live, event->id, event->peer_gid, &to->ah_attr);
    memcpy(to->private_data, from->private_data, from->private_bytes);
}

void cm_write_event(const struct live *live, const struct rdma_event *event,
                    struct rdma_ucm_event_resp *to)
{
    memset(to, 0, sizeof(*to));
    to->event = (uint32_t)event->kind;
    to->status = (uint32_t)event->status;
    to->id = event->id->handle;
    to->uid = event->id->uid;
    CHECK((event->kind == RDMA_EVENT_CONNECT_REQUEST) == (event->listener != NULL));
    if (event->kind == RDMA_EVENT_CONNECT_REQUEST) {
        to->uid = event->listener->uid;
    } else if (event->multicast != NULL) {
        to->id = event->multicast->handle;
        to->uid = event->multicast->uid;
    }
    if (event->kind == RDMA_EVENT_USER || event->kind == RDMA_EVENT_INTERNAL) {
        memcpy(&to->param, &event->argument, sizeof(event->argument));
    } else if (event->id->datagrams) {
        write_ud(live, event, &to->param.ud);
    } else {
        write_conn(&event->parameters, &to->param.conn);
    }
}

void cm_write_path(const struct rdma_id *id, struct ib_user_path_rec *path)
{
    INVARIANTS(path_check(id));
    *path = (struct ib_user_path_rec){
        .flow_label = 0,
        .reversible = 1,
        .mtu = id->path_mtu,
        .pkey = 0xffff,
        .hop_limit = HOP_LIMIT,
        .traffic_class = id->type_of_service,
        .numb_path = 1,
        .mtu_selector = EQUAL,
        .rate_selector = EQUAL,
        .rate = RATE_100_GBPS,
        .packet_life_time_selector = EQUAL,
        .packet_life_time = PACKET_LIFETIME,
    };
    memcpy(path->dgid, id->peer_gid, 16);
    memcpy(path->sgid, id->source_gid, 16);
}

/* As 64 bytes of a subnet administrator's answer (IBTA 15.2.5.16). */
void cm_pack_path(const struct ib_user_path_rec *path, struct ib_path_rec_data *data)
{
    uint8_t *out = (uint8_t *)data->path_rec;
    memset(data, 0, sizeof(*data));
    data->flags = PATH_GMP | PATH_PRIMARY | PATH_OUTBOUND | PATH_INBOUND_REVERSE;
    memcpy(out + 8, path->dgid, 16);
    memcpy(out + 24, path->sgid, 16);
    out[47] = path->hop_limit;
    out[48] = path->traffic_class;
    out[49] = (uint8_t)(path->reversible << 7 | (uint32_t)path->numb_path);
    memcpy(out + 50, &path->pkey, 2);
    out[54] = (uint8_t)(EQUAL << 6 | path->mtu);
    out[55] = (uint8_t)(EQUAL << 6 | path->rate);
    out[56] = (uint8_t)(EQUAL << 6 | path->packet_life_time);
}

uint16_t cm_write_gid(const uint8_t gid[16], void *sockaddr)
{
    const struct {
        uint16_t family, pkey;
        uint32_t flow_label;
        uint8_t gid[16];
        uint64_t service_id, mask, scope_id;
    } empty = {.family = AF_IB, .pkey = 0xffff};
    _Static_assert(sizeof(empty) <= sizeof(struct __kernel_sockaddr_storage), "it has room");
    memcpy(sockaddr, &empty, sizeof(empty));
    memcpy((uint8_t *)sockaddr + offsetof(__typeof__(empty), gid), gid, 16);
    return sizeof(empty);
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

static int write_init(const struct rdma_id *id, struct ib_uverbs_qp_attr *attr)
{
    attr->qp_attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    attr->port_num = 1;
    if (id->datagrams) {
        attr->qp_attr_mask |= IBV_QP_QKEY;
        attr->qkey = id->qkey != 0 ? id->qkey : RDMA_UDP_QKEY;
        return 0;
    }
    attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
    if (rdma_id_expects_peer(id)) {
        attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (id->responder_resources > 0) {
            attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        }
    }
    return 0;
}

static bool knows_peer(const struct rdma_id *id)
{
    return id->remote_qpn != 0 && !id->datagrams;
}

static int write_rtr(const struct live *live, const struct rdma_id *id,
                     struct ib_uverbs_qp_attr *attr)
{
    if (!knows_peer(id)) {
        return EINVAL;
    }
    INVARIANTS(path_check(id));
    attr->qp_attr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    write_way(live, id, id->peer_gid, &attr->ah_attr);
    attr->path_mtu = id->path_mtu;
    attr->dest_qp_num = id->remote_qpn;
    attr->rq_psn = id->starting_psn;
    if (!id->unreliable) {
        attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->max_dest_rd_atomic = id->responder_resources;
        attr->min_rnr_timer = 0;
    }
    return 0;
}

static int write_rts(const struct rdma_id *id, struct ib_uverbs_qp_attr *attr)
{
    if (!knows_peer(id)) {
        return EINVAL;
    }
    attr->qp_attr_mask |= IBV_QP_SQ_PSN;
    attr->sq_psn = id->remote_starting_psn;
    if (!id->unreliable) {
        attr->qp_attr_mask |=
            IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        attr->timeout = id->ack_timeout_set ? id->ack_timeout : id->path_ack_timeout;
        attr->retry_cnt = id->retry_count;
        attr->rnr_retry = id->rnr_retry_count;
        attr->max_rd_atomic = id->initiator_depth;
    }
    return 0;
}

int cm_write_qp_attributes(const struct live *live, const struct rdma_id *id, uint32_t state,
                           struct ib_uverbs_qp_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->qp_state = state;
    attr->qp_attr_mask = IBV_QP_STATE;
    switch (state) {
    case IBV_QPS_INIT: return write_init(id, attr);
    case IBV_QPS_RTR: return write_rtr(live, id, attr);
    case IBV_QPS_RTS: return write_rts(id, attr);
    default: return EINVAL;
    }
}
