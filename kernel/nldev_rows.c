/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_rows - reports on queue pairs, completion queues and so on: a row for each value.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "kernel/nldev_internal.h"

enum form {
    END, /* Behind the last row. */
    U8,
    U32,
    U64,
    ADDRESS,
};

struct row {
    enum nldev_value value;
    uint16_t attribute;
    enum form form;
};

static const struct row pd_rows[] = {{NLDEV_NUMBER, RDMA_NLDEV_ATTR_RES_PDN, U32},
                                     {PD_USERS, RDMA_NLDEV_ATTR_RES_USECNT, U64},
                                     {PD_CTXN, RDMA_NLDEV_ATTR_RES_CTXN, U32},
                                     {0}};

static const struct row cq_rows[] = {{NLDEV_NUMBER, RDMA_NLDEV_ATTR_RES_CQN, U32},
                                     {CQ_ENTRIES, RDMA_NLDEV_ATTR_RES_CQE, U32},
                                     {CQ_USERS, RDMA_NLDEV_ATTR_RES_USECNT, U64},
                                     {CQ_CTXN, RDMA_NLDEV_ATTR_RES_CTXN, U32},
                                     {0}};

static const struct row qp_rows[] = {{NLDEV_NUMBER, RDMA_NLDEV_ATTR_RES_LQPN, U32},
                                     {QP_PDN, RDMA_NLDEV_ATTR_RES_PDN, U32},
                                     {QP_TYPE, RDMA_NLDEV_ATTR_RES_TYPE, U8},
                                     {QP_STATE, RDMA_NLDEV_ATTR_RES_STATE, U8},
                                     {QP_SEND_PSN, RDMA_NLDEV_ATTR_RES_SQ_PSN, U32},
                                     {QP_PEER, RDMA_NLDEV_ATTR_RES_RQPN, U32},
                                     {QP_RECEIVE_PSN, RDMA_NLDEV_ATTR_RES_RQ_PSN, U32},
                                     {QP_MIGRATION, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, U8},
                                     {0}};

static const struct row cm_id_rows[] = {{NLDEV_NUMBER, RDMA_NLDEV_ATTR_RES_CM_IDN, U32},
                                        {CM_ID_QPN, RDMA_NLDEV_ATTR_RES_LQPN, U32},
                                        {CM_ID_TYPE, RDMA_NLDEV_ATTR_RES_TYPE, U8},
                                        {CM_ID_STATE, RDMA_NLDEV_ATTR_RES_STATE, U8},
                                        {CM_ID_PORT_SPACE, RDMA_NLDEV_ATTR_RES_PS, U32},
                                        {CM_ID_SOURCE, RDMA_NLDEV_ATTR_RES_SRC_ADDR, ADDRESS},
                                        {CM_ID_DESTINATION, RDMA_NLDEV_ATTR_RES_DST_ADDR, ADDRESS},
                                        {0}};

static const struct row mr_rows[] = {{NLDEV_NUMBER, RDMA_NLDEV_ATTR_RES_MRN, U32},
                                     {MR_PDN, RDMA_NLDEV_ATTR_RES_PDN, U32},
                                     {MR_BYTES, RDMA_NLDEV_ATTR_RES_MRLEN, U64},
                                     {MR_IOVA, RDMA_NLDEV_ATTR_RES_IOVA, U64},
                                     {MR_RKEY, RDMA_NLDEV_ATTR_RES_RKEY, U32},
                                     {MR_LKEY, RDMA_NLDEV_ATTR_RES_LKEY, U32},
                                     {0}};

static const struct row ctx_rows[] = {{NLDEV_NUMBER, RDMA_NLDEV_ATTR_RES_CTXN, U32}, {0}};

static const struct row srq_rows[] = {{NLDEV_NUMBER, RDMA_NLDEV_ATTR_RES_SRQN, U32},
                                      {SRQ_PDN, RDMA_NLDEV_ATTR_RES_PDN, U32},
                                      {SRQ_TYPE, RDMA_NLDEV_ATTR_RES_TYPE, U8},
                                      {SRQ_CQN, RDMA_NLDEV_ATTR_RES_CQN, U32},
                                      {0}};

static const struct {
    const char *name;
    uint16_t table, entry; /* The attributes around those of an object in a dump. */
    const struct row *rows;
    bool on_port;
} kinds[NLDEV_KINDS] = {
    [NLDEV_PD] = {"pd", RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY, pd_rows, false},
    [NLDEV_CQ] = {"cq", RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY, cq_rows, false},
    [NLDEV_QP] = {"qp", RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY, qp_rows, true},
    [NLDEV_CM_ID] = {"cm_id", RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
                     cm_id_rows, true},
    [NLDEV_MR] = {"mr", RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY, mr_rows, false},
    [NLDEV_CTX] = {"ctx", RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY, ctx_rows, false},
    [NLDEV_SRQ] = {"srq", RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, srq_rows, false},
};

const char *nldev_kind_name(enum nldev_kind kind)
{
    CHECK(kind < NLDEV_KINDS);
    return kinds[kind].name;
}

uint16_t nldev_number_attribute(enum nldev_kind kind)
{
    CHECK(kind < NLDEV_KINDS && kinds[kind].rows[0].value == NLDEV_NUMBER);
    return kinds[kind].rows[0].attribute;
}

static void put_address(struct nldev_out *out, uint16_t type, const uint64_t values[4])
{
    struct sockaddr_storage storage = {.ss_family = (sa_family_t)values[0]};
    uint8_t ip[16];
    for (int i = 0; i < 16; i++) {
        ip[i] = (uint8_t)(values[2 + i / 8] >> (56 - 8 * (i % 8)));
    }
    if (values[0] == AF_INET) {
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)&storage;
        in->sin_port = htons((uint16_t)values[1]);
        memcpy(&in->sin_addr, ip + 12, 4);
    } else if (values[0] == AF_INET6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&storage;
        in6->sin6_port = htons((uint16_t)values[1]);
        memcpy(&in6->sin6_addr, ip, sizeof(ip));
    } else {
        return;
    }
    nldev_put(out, type, &storage, sizeof(storage));
}

static void put_value(struct nldev_out *out, const struct row *row,
                      const struct nldev_resource *resource)
{
    CHECK(row->value + (row->form == ADDRESS ? 4 : 1) <= NLDEV_VALUES);
    const uint64_t *value = &resource->values[row->value];
    if (!(resource->present >> row->value & 1)) {
        return;
    }
    switch (row->form) {
    case U8: nldev_put_u8(out, row->attribute, (uint8_t)*value); break;
    case U32: nldev_put_u32(out, row->attribute, (uint32_t)*value); break;
    case U64: nldev_put_u64(out, row->attribute, *value); break;
    case ADDRESS: put_address(out, row->attribute, value); break;
    case END: CHECK(false);
    }
}

static void put_values(struct nldev_out *out, enum nldev_kind kind,
                       const struct nldev_resource *resource)
{
    CHECK(resource->present & 1u << NLDEV_NUMBER); /* Readers tell objects apart by that. */
    if (kinds[kind].on_port) {
        nldev_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    }
    for (const struct row *row = kinds[kind].rows; row->form != END; row++) {
        put_value(out, row, resource);
    }
    nldev_put_u32(out, RDMA_NLDEV_ATTR_RES_PID, resource->pid);
}

/* In a dump objects are entries of a table, however many there are; one alone stands for itself. */
void nldev_put_object(struct nldev_out *out, const struct nldev_request *request,
                      enum nldev_kind kind, const struct nldev_resource *resource)
{
    if (!request->dump) {
        put_values(out, kind, resource);
        return;
    }
    const size_t table = nldev_begin_nest(out, kinds[kind].table);
    const size_t entry = nldev_begin_nest(out, kinds[kind].entry);
    put_values(out, kind, resource);
    nldev_end_nest(out, entry);
    nldev_end_nest(out, table);
}
