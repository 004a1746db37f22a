/* SPDX-License-Identifier: BSD-2-Clause
 *
 * objects - the objects that the program has made, and rules about them.
 */
#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "checker/internal.h"

/* -- Queue pairs --------------------------------------------------------------------------------*/

static size_t qp_front(void)
{
    return line_aligned(sizeof(struct checked_qp));
}

size_t checker_qp_bytes(const struct checker_qp_request *request)
{
    const struct qp_capacity *capacity = &request->capacity;
    return qp_front() + ring_bytes(capacity->sends, capacity->send_sges) +
           (request->srq != 0 ? 0 : ring_bytes(capacity->receives, capacity->receive_sges));
}

void checker_qp_made(struct checker *checker, const struct checker_qp_request *request,
                     void *memory)
{
    struct checked_qp *qp = memory;
    const struct qp_capacity *capacity = &request->capacity;
    uint8_t *rings = (uint8_t *)memory + qp_front();
    qp->type = request->type;
    qp->signal_all = request->signal_all;
    qp->capacity = *capacity;
    qp->send_cq = request->send_cq;
    qp->receive_cq = request->receive_cq;
    qp->srq = request->srq;
    qp->domain = request->domain;
    ring_init(&qp->sends, capacity->sends, capacity->send_sges, rings);
    if (request->srq == 0) {
        ring_init(&qp->receives, capacity->receives, capacity->receive_sges,
                  rings + ring_bytes(capacity->sends, capacity->send_sges));
    }
    table_enter(checker, &qp->object, OBJECT_QP, request->qpn);
}

static void judge_signals(struct checker *checker, const struct checked_qp *qp)
{
    enum {
        MANY = 1000,
        DEEP = 4,
    };
    if (qp->posts >= MANY && qp->signaled == qp->posts && qp->deepest >= DEEP) {
        tell(checker, CHECKER_SIGNAL_EACH, qp->object.number, NULL,
             "each of its %llu requests was signaled, and up to %u of them were posted at a time",
             (unsigned long long)qp->posts, qp->deepest);
    }
}

void *checker_qp_gone(struct checker *checker, uint32_t qpn)
{
    struct checked_qp *qp = find_qp(checker, qpn);
    if (qp != NULL) {
        judge_signals(checker, qp);
        requests_forget(checker, qp);
    }
    return table_leave(checker, OBJECT_QP, qpn);
}

static const struct {
    enum qp_attribute bit;
    const char *name;
} attributes[] = {
    {QP_ATTR_STATE, "IBV_QP_STATE"},
    {QP_ATTR_CUR_STATE, "IBV_QP_CUR_STATE"},
    {QP_ATTR_EN_SQD_ASYNC_NOTIFY, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
    {QP_ATTR_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS"},
    {QP_ATTR_PKEY_INDEX, "IBV_QP_PKEY_INDEX"},
    {QP_ATTR_PORT, "IBV_QP_PORT"},
    {QP_ATTR_QKEY, "IBV_QP_QKEY"},
    {QP_ATTR_AV, "IBV_QP_AV"},
    {QP_ATTR_PATH_MTU, "IBV_QP_PATH_MTU"},
    {QP_ATTR_TIMEOUT, "IBV_QP_TIMEOUT"},
    {QP_ATTR_RETRY_CNT, "IBV_QP_RETRY_CNT"},
    {QP_ATTR_RNR_RETRY, "IBV_QP_RNR_RETRY"},
    {QP_ATTR_RQ_PSN, "IBV_QP_RQ_PSN"},
    {QP_ATTR_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC"},
    {QP_ATTR_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER"},
    {QP_ATTR_SQ_PSN, "IBV_QP_SQ_PSN"},
    {QP_ATTR_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC"},
    {QP_ATTR_DEST_QPN, "IBV_QP_DEST_QPN"},
};

/* The names of these attributes, with a word before them; nothing if there are none. */
static void name_attributes(char *text, size_t bytes, const char *word, uint32_t mask)
{
    for (size_t i = 0; i < COUNT_OF(attributes); i++) {
        if (mask & (uint32_t)attributes[i].bit) {
            const size_t used = strlen(text);
            snprintf(text + used, bytes - used, "%s%s", used == 0 ? word : ", ",
                     attributes[i].name);
        }
    }
}

static void judge_refusal(struct checker *checker, uint32_t qpn, uint32_t missing, uint32_t excess)
{
    char lacks[200] = "", has[200] = "";
    name_attributes(lacks, sizeof(lacks), "it lacks ", missing);
    name_attributes(has, sizeof(has), "it takes no ", excess);
    tell(checker, CHECKER_ATTRIBUTES, qpn, NULL, "ibv_modify_qp is refused: %s%s%s",
         lacks[0] == '\0' && has[0] == '\0'
             ? "no such change of state, or a value that is out of range"
             : lacks,
         lacks[0] != '\0' && has[0] != '\0' ? "; " : "", has);
}

static void judge_patience(struct checker *checker, uint32_t qpn,
                           const struct qp_attributes *wanted, uint32_t mask)
{
    if ((mask & QP_ATTR_TIMEOUT) && wanted->timeout == 0) {
        tell(checker, CHECKER_TIMEOUT_ZERO, qpn, NULL,
             "its timeout is 0: if a packet is lost, it waits for ever");
    }
    if ((mask & QP_ATTR_RETRY_CNT) && wanted->retry_count == 0) {
        tell(checker, CHECKER_RETRY_ZERO, qpn, NULL,
             "its retry_cnt is 0: one lost packet ends the connection");
    }
    if ((mask & QP_ATTR_MIN_RNR_TIMER) && wanted->min_rnr_timer == 0) {
        tell(checker, CHECKER_RNR_TIMER, qpn, NULL,
             "its min_rnr_timer is 0, which makes a peer wait 655 ms for a receive");
    }
    if ((mask & QP_ATTR_RNR_RETRY) && wanted->rnr_retry == 7) {
        tell(checker, CHECKER_RNR_ENDLESS, qpn, NULL,
             "its rnr_retry is 7: it waits for ever for a peer that posts no receive");
    }
}

void checker_modified(struct checker *checker, uint32_t qpn, const struct qp_attributes *wanted,
                      uint32_t mask, enum status status, uint32_t missing, uint32_t excess)
{
    struct checked_qp *qp = find_qp(checker, qpn);
    if (qp == NULL) {
        return;
    }
    if (status != STATUS_OK) {
        judge_refusal(checker, qpn, missing, excess);
        return;
    }
    if ((mask & QP_ATTR_STATE) && wanted->state == QP_RESET) {
        requests_forget(checker, qp);
    }
    if ((mask & QP_ATTR_STATE) && wanted->state == QP_ERR) {
        qp->failed = true;
    }
    if ((mask & QP_ATTR_STATE) && wanted->state == QP_RTS) {
        qp->failed = false; /* From SQE, too. */
    }
    if (qp->type == QP_RC || qp->type == QP_XRC_INITIATOR) {
        judge_patience(checker, qpn, wanted, mask);
    }
}

void checker_waits_for_psn(struct checker *checker, uint32_t qpn, uint32_t first, uint32_t came)
{
    tell(
        checker, CHECKER_PSN, qpn, NULL,
        "it has taken no request: they came with the packet sequence number %#x, say, and it waits "
        "for %#x (rq_psn), so that the peer's requests end without an answer",
        came, first);
}

/* -- Other objects ------------------------------------------------------------------------------*/

size_t checker_cq_bytes(void)
{
    return sizeof(struct checked_cq);
}

void checker_cq_made(struct checker *checker, uint32_t number, uint32_t entries, void *memory)
{
    struct checked_cq *cq = memory;
    cq->entries = entries;
    table_enter(checker, &cq->object, OBJECT_CQ, number);
}

void checker_cq_resized(struct checker *checker, uint32_t number, uint32_t entries)
{
    struct checked_cq *cq = find_cq(checker, number);
    if (cq != NULL) {
        cq->entries = entries;
    }
}

void *checker_cq_gone(struct checker *checker, uint32_t number)
{
    return table_leave(checker, OBJECT_CQ, number);
}

static size_t srq_front(void)
{
    return line_aligned(sizeof(struct checked_srq));
}

size_t checker_srq_bytes(const struct checker_srq_request *request)
{
    return srq_front() + ring_bytes(request->receives, request->sges);
}

void checker_srq_made(struct checker *checker, const struct checker_srq_request *request,
                      void *memory)
{
    struct checked_srq *srq = memory;
    srq->domain = request->domain;
    ring_init(&srq->receives, request->receives, request->sges, (uint8_t *)memory + srq_front());
    table_enter(checker, &srq->object, OBJECT_SRQ, request->number);
}

void *checker_srq_resized(struct checker *checker, const struct checker_srq_request *request,
                          void *memory)
{
    struct checked_srq *before = table_leave(checker, OBJECT_SRQ, request->number);
    checker_srq_made(checker, request, memory);
    if (before != NULL) {
        struct checked_srq *srq = memory;
        receives_move(checker, request->number, &before->receives, &srq->receives);
    }
    return before;
}

void *checker_srq_gone(struct checker *checker, uint32_t number)
{
    struct checked_srq *srq = find_srq(checker, number);
    if (srq != NULL) {
        receives_forget(checker, &srq->receives);
    }
    return table_leave(checker, OBJECT_SRQ, number);
}

void checker_region_made(struct checker *checker)
{
    enum {
        MANY = 1000,
    };
    checker->regions_made++;
    checker->regions++;
    if (checker->regions_made == MANY && checker->posts < 2 * (uint64_t)MANY &&
        checker->regions < MANY / 10) {
        tell(checker, CHECKER_REGISTER_EACH, 0, NULL,
             "%d regions were registered for %llu requests, and most of them were deregistered",
             MANY, (unsigned long long)checker->posts);
    }
}

void checker_region_gone(struct checker *checker, uint32_t key)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct object *object = checker->buckets[i]; object != NULL; object = object->next) {
            if (object->kind == OBJECT_QP) {
                struct checked_qp *qp = (struct checked_qp *)(void *)object;
                requests_lose_region(checker, qp, &qp->sends, key);
                requests_lose_region(checker, qp, &qp->receives, key);
            } else if (object->kind == OBJECT_SRQ) {
                requests_lose_region(checker, NULL,
                                     &((struct checked_srq *)(void *)object)->receives, key);
            }
        }
    }
    checker->regions -= checker->regions > 0;
}

void checker_handle_gone(struct checker *checker, const struct nic_av *handle)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct object *object = checker->buckets[i]; object != NULL; object = object->next) {
            struct checked_qp *qp = (struct checked_qp *)(void *)object;
            if (object->kind != OBJECT_QP || qp->type != QP_UD || qp->failed) {
                continue;
            }
            for (uint32_t at = qp->sends.head; at != qp->sends.tail; at++) {
                struct posted *posted = ring_at(&qp->sends, at);
                posted->handle_gone |= posted->handle == handle;
            }
        }
    }
}

void checker_counted(struct checker *checker, const struct checker_counts *counts)
{
    if (counts->rnr_naks > 0) {
        tell(checker, CHECKER_RNR_SEEN, 0, NULL,
             "%llu times a message came to a peer that had no receive posted (RNR)",
             (unsigned long long)counts->rnr_naks);
    }
    if (counts->rnr_sent > 0) {
        tell(checker, CHECKER_RNR_SENT, 0, NULL,
             "%llu times a message came when no receive was posted: its sender waits and tries "
             "again",
             (unsigned long long)counts->rnr_sent);
    }
    if (counts->wrong_qkeys > 0) {
        tell(checker, CHECKER_QKEY, 0, NULL,
             "%llu datagrams came with another Q_Key than their queue pair's, and were dropped",
             (unsigned long long)counts->wrong_qkeys);
    }
    if (counts->no_receives > 0) {
        tell(checker, CHECKER_NO_RECEIVE, 0, NULL,
             "%llu datagrams came when no receive was posted, and were dropped",
             (unsigned long long)counts->no_receives);
    }
}

void checker_busy(struct checker *checker, const char *object)
{
    tell(checker, CHECKER_BUSY, 0, NULL, "a %s is still in use and was not destroyed (EBUSY)",
         object);
}

void checker_ended(struct checker *checker)
{
    const uint32_t *count = checker->count;
    if (count[OBJECT_QP] + count[OBJECT_CQ] + count[OBJECT_SRQ] + checker->regions > 0) {
        tell(checker, CHECKER_LEFT_OVER, 0, NULL,
             "%u queue pairs, %u completion queues, %u shared receive queues and %u memory regions "
             "are left when the program ends",
             count[OBJECT_QP], count[OBJECT_CQ], count[OBJECT_SRQ], checker->regions);
    }
}
