/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/reach.h"

/* Do requests of that service name memory by key? */
static bool service_names_memory(enum qp_type type)
{
    switch (type) {
    case QP_RC:
    case QP_UC:
    case QP_XRC_TARGET: return true;
    case QP_UD:
    case QP_SRD: /* Only by packets, which SRD judges itself. */
    case QP_XRC_INITIATOR: return false;
    }
    UNREACHABLE("a type outside its enum");
}

/* Do both halves cut the message into the same packets? With different MTUs, only if it is one
 * packet for each (IBTA 9.7.4.1.6, 9.7.5.1.6). */
static bool cut_alike(const struct reach_terms *one, const struct reach_terms *other,
                      uint32_t message_bytes)
{
    return one->mtu_bytes == other->mtu_bytes ||
           (message_bytes <= one->mtu_bytes && message_bytes <= other->mtu_bytes);
}

static enum reach_verdict judge_qp(const struct reach_qp *qp, const struct reach_source *source,
                                   const struct reach_access *access)
{
    if (!service_names_memory(qp->type)) {
        return REACH_WRONG_SERVICE;
    }
    if (!reach_state_serves(qp->state)) {
        return REACH_WRONG_STATE;
    }
    if (!reach_is_peer(&qp->peer, &source->gid) || qp->peer_number != source->number) {
        return REACH_WRONG_PEER;
    }
    if (!cut_alike(&qp->terms, &source->terms, access->message_bytes)) {
        return REACH_OTHER_MTU;
    }
    if (!reach_grants(qp->granted, access->rights)) {
        return REACH_NO_RIGHT;
    }
    return (access->rights & ACCESS_REMOTE_READ) && source->terms.reads > qp->terms.reads
               ? REACH_OTHER_READS
               : REACH_ALLOWED;
}

enum reach_verdict reach_judge(const struct reach_qp *qp, const struct reach_source *source,
                               const struct reach_region *region, const struct reach_access *access)
{
    const enum reach_verdict verdict = judge_qp(qp, source, access);
    return verdict == REACH_ALLOWED ? reach_judge_key(&qp->user, region, access) : verdict;
}

enum reach_verdict reach_judge_direct_qp(const struct reach_qp *qp)
{
    if (qp->type != QP_RC) {
        return REACH_WRONG_SERVICE;
    }
    if (!reach_state_serves(qp->state) || qp->state == QP_SQD || qp->state == QP_SQE) {
        return REACH_WRONG_STATE;
    }
    return qp->granted & REACH_DIRECT ? REACH_ALLOWED : REACH_NO_RIGHT;
}

enum reach_verdict reach_judge_direct_region(const struct reach_region *region)
{
    if (!region->open) {
        return REACH_UNKNOWN_KEY;
    }
    if (region->kind != REGION_MEMORY) {
        return REACH_WINDOW;
    }
    if (region->access & ACCESS_ON_DEMAND) {
        return REACH_ON_DEMAND;
    }
    return region->access & REACH_DIRECT ? REACH_ALLOWED : REACH_FORBIDDEN;
}
