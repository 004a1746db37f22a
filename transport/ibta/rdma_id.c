/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rdma_id - the settings of an id before it is used, and questions about its state.
 */
#include "transport/ibta/rdma_cm.h"

#define ACK_TIMEOUT_CODE_MAX 31

/* -- Options ------------------------------------------------------------------------------------*/

void rdma_id_set_service(struct rdma_id *id, enum roce_service service)
{
    CHECK(id->port_space == RDMA_PORT_SPACE_IB && id->state == RDMA_ID_IDLE);
    id->datagrams = service == ROCE_SERVICE_UD;
    id->unreliable = service == ROCE_SERVICE_UC;
}

void rdma_id_set_type_of_service(struct rdma_id *id, uint8_t type_of_service)
{
    id->type_of_service = type_of_service;
}

enum status rdma_id_set_ack_timeout(struct rdma_id *id, uint8_t code)
{
    if (code > ACK_TIMEOUT_CODE_MAX || id->datagrams || id->unreliable) {
        return STATUS_INVALID;
    }
    id->ack_timeout = code;
    id->ack_timeout_set = true;
    return STATUS_OK;
}

enum status rdma_id_set_ipv6_only(struct rdma_id *id, bool ipv6_only)
{
    if (!rdma_id_is_idle(id) && !rdma_id_is_bound(id)) {
        return STATUS_INVALID;
    }
    id->ipv6_only = ipv6_only;
    return STATUS_OK;
}

/* -- Progress -----------------------------------------------------------------------------------*/

bool rdma_id_is_idle(const struct rdma_id *id)
{
    return id->state == RDMA_ID_IDLE;
}

bool rdma_id_is_bound(const struct rdma_id *id)
{
    return id->state == RDMA_ID_BOUND;
}

bool rdma_id_has_route(const struct rdma_id *id)
{
    return id->has_path && id->state >= RDMA_ID_ROUTED && id->state != RDMA_ID_LISTENING;
}

bool rdma_id_has_connection(const struct rdma_id *id)
{
    return id->state >= RDMA_ID_FINDING && id->state != RDMA_ID_LISTENING;
}

bool rdma_id_expects_peer(const struct rdma_id *id)
{
    return id->state >= RDMA_ID_CONNECTING;
}
