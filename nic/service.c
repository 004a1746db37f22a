/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service.h"

void nic_count(struct nic *nic, enum nic_counter counter)
{
    nic->counters.values[counter]++;
}

bool nic_drop(struct nic *nic, enum nic_counter reason)
{
    nic_count(nic, reason);
    return false;
}

struct qp *nic_find_qp(const struct nic *nic, uint32_t qpn)
{
    struct qp *qp = nic->qps[qpn & nic->qp_mask];
    return qp != NULL && qp->number == qpn ? qp : NULL;
}

void qp_raise(struct qp *qp, enum nic_event_kind kind)
{
    if (qp->events == 0) {
        list_append(&qp->nic->qps_with_events, &qp->event_link);
    }
    qp->events |= 1u << kind;
}

/* An acknowledgement moves the deadline later with every packet; the wheel is told only when it
 * fires, so that the usual case costs a comparison. */
void nic_arm_timer(struct qp *qp, struct instant deadline)
{
    if (deadline.ns == UINT64_MAX) {
        return;
    }
    if (!timer_is_set(&qp->timer) || instant_before(deadline, qp->timer.at)) {
        timer_wheel_set(&qp->nic->timers, qp_timer_id(qp), &qp->timer, deadline);
    }
}
