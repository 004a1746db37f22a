/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_refuse - the final refusal of a request by a reliable connection's responder.
 */
#include "nic/ibta/ibta.h"

/* IBTA 9.9.3. */
bool rc_refuse(struct qp *qp, uint32_t psn, uint8_t syndrome, enum nic_counter counter)
{
    nic_count(qp->nic, counter);
    rc_responder_refuse(&qp->in.rc, psn_of(psn), syndrome);
    qp->last_words = true;
    if (syndrome == ROCE_NAK_INVALID_REQUEST) {
        qp_raise(qp, NIC_EVENT_QP_REQUEST_ERROR);
    } else if (syndrome == ROCE_NAK_REMOTE_ACCESS) {
        qp_raise(qp, NIC_EVENT_QP_ACCESS_ERROR);
    }
    qp_enter_error(qp);
    nic_schedule(qp);
    return false;
}

enum nic_counter rc_access_counter(enum reach_verdict verdict)
{
    switch (verdict) {
    case REACH_UNKNOWN_KEY: return COUNTER_nak_unknown_key;
    case REACH_WRONG_DOMAIN: return COUNTER_nak_wrong_domain;
    case REACH_OUT_OF_BOUNDS: return COUNTER_nak_out_of_bounds;
    case REACH_FORBIDDEN: return COUNTER_nak_forbidden;
    case REACH_ALLOWED:
    case REACH_UNKNOWN_QP:
    case REACH_WRONG_SERVICE:
    case REACH_WRONG_STATE:
    case REACH_WRONG_PEER:
    case REACH_NO_RIGHT:
    case REACH_WINDOW:
    case REACH_ON_DEMAND:
    case REACH_OTHER_PSN:
    case REACH_OTHER_MTU:
    case REACH_OTHER_READS:
    case REACH_VERDICT_COUNT: break;
    }
    UNREACHABLE("no counter for what is not a key's fault");
}
