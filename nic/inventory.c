/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/inventory.h"

#include "nic/internal.h"

struct qp *nic_each_qp(const struct nic *nic, uint32_t *at)
{
    while (nic->qp_count > 0 && *at <= nic->qp_mask) {
        struct qp *qp = nic->qps[(*at)++];
        if (qp != NULL && qp->engine != ENGINE_FLOW) {
            return qp;
        }
    }
    return NULL;
}

struct region *nic_each_region(const struct nic *nic, uint32_t *at)
{
    while (nic->regions.count > 0 && *at <= nic->regions.mask) {
        struct region *region = nic->regions.slots[(*at)++];
        if (region != NULL) {
            return region;
        }
    }
    return NULL;
}

struct srq *nic_each_srq(const struct nic *nic, uint32_t *at)
{
    while (nic->srq_count > 0 && *at <= nic->srq_mask) {
        struct srq *srq = nic->srqs[(*at)++];
        if (srq != NULL) {
            return srq;
        }
    }
    return NULL;
}

const struct nic_av *nic_each_datagram(const struct nic *nic, struct nic_datagram_at *at)
{
    const struct list *node = at->qp == NULL ? nic->datagram_qps.next : &at->qp->in.ud;
    while (node != &nic->datagram_qps) {
        const struct qp *qp = CONTAINER_OF_CONST(node, struct qp, in.ud);
        at->position = at->qp == qp ? at->position + 1 : qp->sends.next;
        at->qp = qp;
        if (at->position != qp->sends.tail) {
            return send_queue_at(&qp->sends, at->position)->datagram.av;
        }
        node = node->next;
    }
    return NULL;
}

static struct nic_cq_account cq_account_of(const struct cq *cq)
{
    return (struct nic_cq_account){.completions = cq_count(cq), .arming = cq->arming};
}

struct nic_account nic_account_of(const struct qp *qp)
{
    struct nic_account account = {.has_receives = qp->receive_cq != NULL};
    if (qp->type != QP_XRC_TARGET) {
        account.sends = qp->sends.tail - qp->sends.head;
        account.sends_done = qp->sends.head;
        account.sent = cq_account_of(qp->send_cq);
    }
    if (account.has_receives) {
        const struct receive_queue *queue = qp_receives(qp);
        account.receives = receive_queue_count(queue);
        account.receives_used = queue->head;
        account.received = cq_account_of(qp->receive_cq);
        account.is_one_queue = qp->type != QP_XRC_TARGET && qp->receive_cq == qp->send_cq;
    }
    return account;
}

const struct gid *nic_group_of(const struct nic *nic, const struct qp *qp)
{
    const struct multicast_table *table = &nic->multicast;
    for (uint32_t i = 0; i < table->group_count && qp->type == QP_UD; i++) {
        uint32_t member = table->groups[i].first;
        while (member != MULTICAST_NOBODY && table->members[member].qp != qp) {
            member = table->members[member].next;
        }
        if (member != MULTICAST_NOBODY) {
            return &table->groups[i].gid;
        }
    }
    return NULL;
}
