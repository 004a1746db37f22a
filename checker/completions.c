/* SPDX-License-Identifier: BSD-2-Clause
 *
 * completions - what the program polls, held against what it posted.
 */
#include <inttypes.h>

#include "checker/internal.h"

static void skip_over(struct ring *ring)
{
    while (ring->head != ring->tail && ring_at(ring, ring->head)->over) {
        ring->head++;
    }
}

/* How the memory that the request names came to be not the NIC's or the program's any more. */
static enum checker_rule end_of_memory(const struct checker *checker, const struct posted *posted)
{
    const bool returned = posted->frame.stack != 0 && !checker->memory->may_be_live(&posted->frame);
    return posted->gone_key != 0 ? CHECKER_REGION_GONE
           : posted->freed       ? CHECKER_FREED
           : returned            ? CHECKER_STACK_GONE
                                 : CHECKER_RULE_COUNT;
}

/* Was the memory still there? `luck`: if not, it is told by this rule, and not as an error. */
static bool judge_presence(struct checker *checker, uint32_t qpn, const struct posted *posted,
                           const char *kind, enum checker_rule luck)
{
    const enum checker_rule end = end_of_memory(checker, posted);
    const enum checker_rule rule = luck == CHECKER_RULE_COUNT ? end : luck;
    if (end == CHECKER_REGION_GONE) {
        tell(checker, rule, qpn, posted,
             "the region with the key %#x was deregistered while a request that names it was not "
             "polled",
             posted->gone_key);
    } else if (end != CHECKER_RULE_COUNT) {
        tell(checker, rule, qpn, posted,
             "memory that a %s (wr_id %#" PRIx64 ") names %s before its completion was polled",
             kind, posted->wr_id,
             end == CHECKER_FREED ? "was freed" : "was a variable of a function that returned");
    }
    return end == CHECKER_RULE_COUNT;
}

static void judge_completed(struct checker *checker, const struct checked_qp *qp,
                            const struct posted *posted)
{
    const bool again = repeats(qp);
    if (posted->handle_gone) {
        tell(checker, CHECKER_HANDLE_GONE, qp->object.number, posted,
             "the address handle of a datagram was destroyed before its completion was polled");
    }
    if (judge_presence(checker, qp->object.number, posted, kind_name(posted->kind),
                       again ? CHECKER_RULE_COUNT : CHECKER_DATAGRAM_GONE)) {
        judge_bytes(checker, qp, posted, "the poll of its completion");
    }
}

/* A completion is that of the oldest request that has one, and covers all before it. One that
 * failed has a completion even if it is not signaled. */
static const struct posted *take_sends(struct checker *checker, struct checked_qp *qp,
                                       const struct completion *completion)
{
    struct posted *posted = NULL;
    bool found = false;
    const bool succeeded = completion->status == COMPLETION_SUCCESS;
    while (!found && qp->sends.head != qp->sends.tail) {
        posted = ring_at(&qp->sends, qp->sends.head++);
        give_back(checker, posted);
        const bool visible = is_visible(qp, posted);
        found = posted->wr_id == completion->wr_id && (visible || !succeeded);
        if (visible) {
            pay(checker, qp->send_cq);
        }
        if (succeeded || !found) {
            judge_completed(checker, qp, posted);
        }
        found = found || (visible && succeeded);
    }
    qp->sends.told_full = qp->sends.told_full && ring_count(&qp->sends) >= qp->sends.limit;
    return found ? posted : NULL;
}

static const struct posted *take_receive(struct checker *checker, struct ring *receives,
                                         const struct completion *completion)
{
    for (uint32_t at = receives->head; at != receives->tail; at++) {
        struct posted *posted = ring_at(receives, at);
        if (!posted->over && posted->wr_id == completion->wr_id) {
            posted->over = true;
            give_back(checker, posted);
            skip_over(receives);
            receives->open--;
            receives->told_full = receives->told_full && receives->open >= receives->limit;
            return posted;
        }
    }
    return NULL;
}

/* Why a request may have ended so. Other failures are seen by right programs, too. */
static const struct {
    enum completion_status status;
    const char *cause;
} causes[] = {
    {COMPLETION_LOCAL_LENGTH,
     "local length error: the message is longer than the receive that it came to, or than a "
     "datagram may be"},
    {COMPLETION_LOCAL_QP_OPERATION,
     "local QP operation error: a READ or atomic on a queue pair whose max_rd_atomic is 0"},
    {COMPLETION_LOCAL_PROTECTION,
     "local protection error: an lkey does not open the memory that its SGE names, or the region "
     "lacks IBV_ACCESS_LOCAL_WRITE"},
    {COMPLETION_WINDOW_BIND,
     "memory window bind error: the region lacks IBV_ACCESS_MW_BIND or a right that the window is "
     "to have, or is too small"},
    {COMPLETION_REMOTE_INVALID_REQUEST,
     "remote invalid request: the peer's receive is too small, its queue pair does not grant the "
     "right (qp_access_flags), its max_dest_rd_atomic is too small, or its path_mtu is another "
     "one"},
    {COMPLETION_REMOTE_ACCESS,
     "remote access error: the rkey does not open the peer's memory: an unknown or withdrawn key, "
     "a range outside the region, another protection domain, or a right that the region or the "
     "queue pair lacks"},
    {COMPLETION_REMOTE_OPERATION,
     "remote operation error: the peer could not carry it out; its own completions say why"},
    {COMPLETION_RNR_RETRY_EXCEEDED, "RNR retries exceeded: the peer posted no receive in time"},
};

static const char *cause_of(uint8_t status)
{
    for (size_t i = 0; i < COUNT_OF(causes); i++) {
        if ((uint8_t)causes[i].status == status) {
            return causes[i].cause;
        }
    }
    return NULL;
}

static void judge_status(struct checker *checker, struct checked_qp *qp,
                         const struct completion *completion, const struct posted *posted)
{
    const char *cause = cause_of(completion->status);
    if (completion->status == COMPLETION_SUCCESS) {
        return;
    }
    qp->failed = qp->type != QP_UD && qp->type != QP_SRD;
    if (cause != NULL) {
        tell(checker, CHECKER_REQUEST_FAILED, qp->object.number, posted,
             "a %s (wr_id %#" PRIx64 ") ended with a %s",
             completion_is_receive(completion) ? "receive"
             : posted == NULL                  ? "request"
                                               : kind_name(posted->kind),
             completion->wr_id, cause);
    }
}

static void take_received(struct checker *checker, const struct checked_qp *qp,
                          const struct completion *completion, const struct posted **posted)
{
    const bool named = qp == NULL || qp->type == QP_XRC_TARGET;
    const struct pd *domain;
    struct ring *receives = receives_of(
        checker, completion->qpn, named ? checker_xrc_srq(completion->source_qpn) : 0, &domain);
    *posted = receives == NULL ? NULL : take_receive(checker, receives, completion);
    if (qp != NULL && qp->srq == 0) {
        pay(checker, qp->receive_cq);
    }
    if (*posted != NULL && completion->status != COMPLETION_FLUSHED) {
        (void)judge_presence(checker, completion->qpn, *posted, "receive", CHECKER_RULE_COUNT);
    }
}

void checker_polled(struct checker *checker, const struct completion *completion)
{
    struct checked_qp *qp = find_qp(checker, completion->qpn);
    const struct posted *posted = NULL;
    if (completion_is_receive(completion)) {
        take_received(checker, qp, completion, &posted);
    } else if (qp != NULL) {
        posted = take_sends(checker, qp, completion);
    }
    if (qp != NULL) {
        judge_status(checker, qp, completion, posted);
    }
}
