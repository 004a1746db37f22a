/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_state - the states of a queue pair and what ibv_modify_qp may change in each.
 *
 * Source: IBTA Vol. 1, 10.3.1 (states) and 11.2.5.2 tables 91-95 (attributes of each transition).
 */
#include "nic/engine.h"
#include "nic/internal.h"

#define RNR_RETRY_FOREVER 7
#include "nic/slots.h"

#define ATTR_MIGRATION (QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE)

/* One allowed transition of one service. */
struct transition {
    uint8_t type, from, to;
    uint32_t required, optional;
};

#define CONNECTED_RTR (QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN)
#define RELIABLE_RTS                                                                               \
    (QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC)

static const struct transition transitions[] = {
    {QP_RC, QP_RESET, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, 0},
    {QP_RC, QP_INIT, QP_INIT, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS},
    {QP_RC, QP_INIT, QP_RTR, CONNECTED_RTR | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
     QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX},
    {QP_RC, QP_RTR, QP_RTS, RELIABLE_RTS | QP_ATTR_SQ_PSN,
     QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER},
    {QP_RC, QP_RTS, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER},
    {QP_RC, QP_RTS, QP_SQD, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY},
    {QP_RC, QP_SQD, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER},
    {QP_RC, QP_SQD, QP_SQD, 0,
     QP_ATTR_PORT | QP_ATTR_AV | RELIABLE_RTS | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_ACCESS_FLAGS |
         QP_ATTR_PKEY_INDEX | QP_ATTR_MIN_RNR_TIMER},

    {QP_XRC_INITIATOR, QP_RESET, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
     0},
    {QP_XRC_INITIATOR, QP_INIT, QP_INIT, 0,
     QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS},
    /* Programs (perftest) set attributes on both halves of an XRC connection that only one of them
     * has. */
    {QP_XRC_INITIATOR, QP_INIT, QP_RTR, CONNECTED_RTR,
     QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX | QP_ATTR_MAX_DEST_RD_ATOMIC |
         QP_ATTR_MIN_RNR_TIMER},
    {QP_XRC_INITIATOR, QP_RTR, QP_RTS, RELIABLE_RTS | QP_ATTR_SQ_PSN,
     QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS},
    {QP_XRC_INITIATOR, QP_RTS, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS},
    {QP_XRC_INITIATOR, QP_RTS, QP_SQD, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY},
    {QP_XRC_INITIATOR, QP_SQD, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS},
    {QP_XRC_INITIATOR, QP_SQD, QP_SQD, 0,
     QP_ATTR_PORT | QP_ATTR_AV | RELIABLE_RTS | QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX},

    {QP_XRC_TARGET, QP_RESET, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, 0},
    {QP_XRC_TARGET, QP_INIT, QP_INIT, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS},
    {QP_XRC_TARGET, QP_INIT, QP_RTR,
     CONNECTED_RTR | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
     QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX},
    {QP_XRC_TARGET, QP_RTR, QP_RTS, QP_ATTR_TIMEOUT | QP_ATTR_SQ_PSN,
     QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER | RELIABLE_RTS},
    {QP_XRC_TARGET, QP_RTS, QP_RTS, 0,
     QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER},
    {QP_XRC_TARGET, QP_RTS, QP_SQD, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY},
    {QP_XRC_TARGET, QP_SQD, QP_RTS, 0,
     QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER},
    {QP_XRC_TARGET, QP_SQD, QP_SQD, 0,
     QP_ATTR_PORT | QP_ATTR_AV | QP_ATTR_TIMEOUT | QP_ATTR_MAX_DEST_RD_ATOMIC |
         QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX | QP_ATTR_MIN_RNR_TIMER},

    {QP_UC, QP_RESET, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, 0},
    {QP_UC, QP_INIT, QP_INIT, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS},
    {QP_UC, QP_INIT, QP_RTR, CONNECTED_RTR, QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX},
    {QP_UC, QP_RTR, QP_RTS, QP_ATTR_SQ_PSN, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS},
    {QP_UC, QP_RTS, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS},
    {QP_UC, QP_RTS, QP_SQD, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY},
    {QP_UC, QP_SQD, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS},
    {QP_UC, QP_SQD, QP_SQD, 0, QP_ATTR_AV | QP_ATTR_ACCESS_FLAGS | QP_ATTR_PKEY_INDEX},
    {QP_UC, QP_SQE, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS},

    {QP_SRD, QP_RESET, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY, 0},
    {QP_SRD, QP_INIT, QP_INIT, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY},
    {QP_SRD, QP_INIT, QP_RTR, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY},
    {QP_SRD, QP_RTR, QP_RTS, QP_ATTR_SQ_PSN, QP_ATTR_CUR_STATE | QP_ATTR_QKEY | QP_ATTR_RNR_RETRY},
    {QP_SRD, QP_RTS, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_QKEY},
    {QP_SRD, QP_RTS, QP_SQD, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY},
    {QP_SRD, QP_SQD, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_QKEY},
    {QP_SRD, QP_SQD, QP_SQD, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY},

    {QP_UD, QP_RESET, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY, 0},
    {QP_UD, QP_INIT, QP_INIT, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY},
    {QP_UD, QP_INIT, QP_RTR, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY},
    {QP_UD, QP_RTR, QP_RTS, QP_ATTR_SQ_PSN, QP_ATTR_CUR_STATE | QP_ATTR_QKEY},
    {QP_UD, QP_RTS, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_QKEY},
    {QP_UD, QP_RTS, QP_SQD, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY},
    {QP_UD, QP_SQD, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_QKEY},
    {QP_UD, QP_SQD, QP_SQD, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY},
    {QP_UD, QP_SQE, QP_RTS, 0, QP_ATTR_CUR_STATE | QP_ATTR_QKEY},
};

static const struct transition *find_transition(uint8_t type, uint8_t from, uint8_t to)
{
    for (uint32_t i = 0; i < COUNT_OF(transitions); i++) {
        if (transitions[i].type == type && transitions[i].from == from && transitions[i].to == to) {
            return &transitions[i];
        }
    }
    return NULL;
}

void qp_judge_change(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask,
                     uint32_t *missing, uint32_t *excess)
{
    const struct transition *transition =
        find_transition((uint8_t)type, (uint8_t)from, (uint8_t)to);
    const uint32_t given = mask & ~(uint32_t)QP_ATTR_STATE;
    *missing = transition == NULL ? 0 : transition->required & ~given;
    *excess = transition == NULL ? 0 : given & ~(transition->required | transition->optional);
}

static enum status judge_values(const struct qp *qp, const struct qp_attributes *wanted,
                                uint32_t mask)
{
    const struct nic_limits *limits = &qp->nic->limits;
    const bool bad =
        ((mask & QP_ATTR_PORT) && wanted->port != 1) ||
        ((mask & QP_ATTR_PKEY_INDEX) && wanted->pkey_index != 0) ||
        ((mask & QP_ATTR_PATH_MTU) &&
         (wanted->path_mtu < PATH_MTU_256 || wanted->path_mtu > limits->mtu)) ||
        ((mask & QP_ATTR_DEST_QPN) && wanted->destination_qpn > ROCE_24_BITS) ||
        ((mask & QP_ATTR_TIMEOUT) && wanted->timeout > 31) ||
        ((mask & QP_ATTR_RETRY_CNT) && wanted->retry_count > 7) ||
        ((mask & QP_ATTR_RNR_RETRY) && wanted->rnr_retry > 7) ||
        ((mask & QP_ATTR_MIN_RNR_TIMER) && wanted->min_rnr_timer > 31) ||
        ((mask & QP_ATTR_MAX_QP_RD_ATOMIC) && wanted->max_reads_out > limits->reads_per_qp) ||
        ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) && wanted->max_reads_in > limits->reads_per_qp) ||
        ((mask & QP_ATTR_ACCESS_FLAGS) &&
         (wanted->access & ~(uint32_t)(ACCESS_LOCAL_WRITE | ACCESS_REMOTE)) != 0) ||
        ((mask & QP_ATTR_CUR_STATE) && wanted->current_state != qp->state);
    return bad ? STATUS_INVALID : STATUS_OK;
}

/* Gets memory for `reads` READs and atomics of the peer. STATUS_BUSY: the peer waits for more of
 * them. STATUS_FULL: there is no memory for them. */
static enum status make_room(struct qp *qp, uint32_t reads)
{
    if (qp->state == QP_SQD && !engine_may_limit(qp, reads)) {
        return STATUS_BUSY;
    }
    return engine_make_room(qp, reads) ? STATUS_OK : STATUS_FULL;
}

static enum status judge(const struct qp *qp, const struct qp_attributes *wanted, uint32_t mask)
{
    const enum qp_state to = (enum qp_state)(mask & QP_ATTR_STATE ? wanted->state : qp->state);
    if (mask & (ATTR_MIGRATION | QP_ATTR_CAP | QP_ATTR_RATE_LIMIT)) {
        return STATUS_UNSUPPORTED;
    }
    if (to == QP_ERR && qp->state == QP_RESET) {
        return STATUS_INVALID; /* Nothing is posted that could be flushed (10.3.1). */
    }
    if (to == QP_RESET || to == QP_ERR) {
        return (mask & ~(uint32_t)(QP_ATTR_STATE | QP_ATTR_CUR_STATE)) ? STATUS_INVALID : STATUS_OK;
    }
    if (find_transition(qp->type, qp->state, (uint8_t)to) == NULL) {
        return STATUS_INVALID;
    }
    uint32_t missing, excess;
    qp_judge_change((enum qp_type)qp->type, (enum qp_state)qp->state, to, mask, &missing, &excess);
    return (missing | excess) != 0 ? STATUS_INVALID : judge_values(qp, wanted, mask);
}

static void copy_values(struct qp_attributes *to, const struct qp_attributes *from, uint32_t mask)
{
#define COPY_IF(bit, field)                                                                        \
    do {                                                                                           \
        if (mask & (bit)) {                                                                        \
            to->field = from->field;                                                               \
        }                                                                                          \
    } while (0)
    COPY_IF(QP_ATTR_EN_SQD_ASYNC_NOTIFY, notify_when_drained);
    COPY_IF(QP_ATTR_ACCESS_FLAGS, access);
    COPY_IF(QP_ATTR_PKEY_INDEX, pkey_index);
    COPY_IF(QP_ATTR_PORT, port);
    COPY_IF(QP_ATTR_QKEY, qkey);
    COPY_IF(QP_ATTR_AV, av);
    COPY_IF(QP_ATTR_PATH_MTU, path_mtu);
    COPY_IF(QP_ATTR_TIMEOUT, timeout);
    COPY_IF(QP_ATTR_RETRY_CNT, retry_count);
    COPY_IF(QP_ATTR_RNR_RETRY, rnr_retry);
    COPY_IF(QP_ATTR_RQ_PSN, psn.receive);
    COPY_IF(QP_ATTR_MAX_QP_RD_ATOMIC, max_reads_out);
    COPY_IF(QP_ATTR_MIN_RNR_TIMER, min_rnr_timer);
    COPY_IF(QP_ATTR_SQ_PSN, psn.send);
    COPY_IF(QP_ATTR_MAX_DEST_RD_ATOMIC, max_reads_in);
    COPY_IF(QP_ATTR_DEST_QPN, destination_qpn);
#undef COPY_IF
}

uint32_t qp_forget_completions(struct qp *qp)
{
    struct cq *const queues[] = {
        qp->type == QP_XRC_TARGET ? NULL : qp->send_cq,
        qp->receive_cq == qp->send_cq ? NULL : qp->receive_cq,
    };
    uint32_t count = 0;
    for (uint32_t i = 0; i < COUNT_OF(queues); i++) {
        if (queues[i] != NULL) {
            const struct cq_forgotten forgotten = cq_forget_qp(queues[i], qp->number);
            slots_give_back(qp, forgotten.receives);
            count += forgotten.sends + forgotten.receives;
        }
    }
    return count;
}

/* Everything posted and half done is forgotten without a completion (IBTA 10.3.1.1). */
static void reset(struct qp *qp)
{
    nic_unlist(qp);
    engine_withdraw(qp);
    timer_wheel_remove(&qp->nic->timers, qp_timer_id(qp), &qp->timer);
    qp->epoch++;
    qp->send_epoch++;
    qp->sends.head = qp->sends.next = qp->sends.tail;
    while (!qp->shares && receive_queue_first(&qp->receives) != NULL) {
        receive_queue_drop(&qp->receives);
    }
    /* A queue pair that starts anew does not report requests of before the reset: a program could
     * not tell old and new ones apart by the QPN (IBTA 10.3.1.1 lets completions go; hardware does
     * it so). */
    qp_forget_completions(qp);
    slots_reset(qp);
    qp->current = NULL;
    qp->last_words = false;
    qp->spoilt = false;
    qp->established = false;
    qp->attributes = (struct qp_attributes){.state = QP_RESET};
    qp->agreed = 0;
}

enum status qp_modify(struct qp *qp, const struct qp_attributes *wanted, uint32_t mask,
                      struct instant now)
{
    enum status status = judge(qp, wanted, mask);
    if (status == STATUS_OK && (mask & QP_ATTR_MAX_DEST_RD_ATOMIC)) {
        status = make_room(qp, wanted->max_reads_in);
    }
    if (status != STATUS_OK) {
        return status;
    }
    qp->nic->now = now;
    const enum qp_state from = (enum qp_state)qp->state;
    const enum qp_state to = mask & QP_ATTR_STATE ? (enum qp_state)wanted->state : from;
    if (to == QP_RESET) {
        reset(qp);
        qp->state = QP_RESET;
        INVARIANTS(qp_check(qp));
        return STATUS_OK;
    }
    if (to == QP_ERR) {
        qp->last_words = false;
        engine_enter_error(qp);
        INVARIANTS(qp_check(qp));
        return STATUS_OK;
    }
    if (qp->type == QP_SRD && from == QP_RTR && to == QP_RTS) {
        qp->attributes.rnr_retry = RNR_RETRY_FOREVER; /* Unless the program says otherwise. */
    }
    copy_values(&qp->attributes, wanted, mask);
    qp->agreed = 0;
    qp->state = (uint8_t)to;
    if (from == QP_INIT && to == QP_RTR) {
        engine_start_receiving(qp);
    } else if (from == QP_RTR && to == QP_RTS) {
        engine_start_sending(qp);
    } else if (to == QP_SQD) {
        if (mask & QP_ATTR_MAX_DEST_RD_ATOMIC) {
            engine_limit(qp, wanted->max_reads_in);
        }
        engine_retune(qp, now);
        if (from == QP_RTS) {
            qp->drained = false;
            engine_drain(qp);
        }
    }
    if (to == QP_RTS) {
        if (qp->listing == QP_LISTED_WAITING) {
            engine_on_blocked(qp, now); /* Requests may leave again, and wait for room: the
                                           timeout runs. */
        }
        nic_schedule(qp);
    }
    INVARIANTS(qp_check(qp));
    return STATUS_OK;
}
