/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rdma_cm_internal - functions that the files of rdma_cm share.
 */
#ifndef TRANSPORT_IBTA_RDMA_CM_INTERNAL_H
#define TRANSPORT_IBTA_RDMA_CM_INTERNAL_H

#include "transport/ibta/rdma_cm.h"

#define RDMA_MULTICAST_QPN 0xffffffu
#define RDMA_HOP_LIMIT     64
#define RDMA_ETIMEDOUT     110 /* As programs of this system number it. */
/* The code of 4.096 us * 2^16 that Linux gives a packet on Ethernet to live, plus the way back. */
#define RDMA_ACK_TIMEOUT 17

/* 256 to 4096 bytes (IBTA 12.7.27). */
#define RDMA_PATH_MTU_FIRST 1
#define RDMA_PATH_MTU_LAST  5

static inline uint8_t rdma_ack_timeout(const struct rdma_id *id)
{
    return id->ack_timeout != 0 ? id->ack_timeout : RDMA_ACK_TIMEOUT;
}

static inline uint32_t rdma_draw_psn(struct rdma_cm *manager)
{
    return (uint32_t)prng_next(&manager->cm.prng) & 0xffffffu;
}

/* Queues an event and returns it to be filled in; NULL: the program is not told of it. Takes from
 * the stock; the caller has checked that there is enough. */
struct rdma_event *rdma_raise(struct rdma_cm *manager, struct rdma_id *id,
                              enum rdma_event_kind kind, int status);
/* All invariants of an id and of its connection. */
void rdma_id_check(struct rdma_cm *manager, const struct rdma_id *id);

#endif
