/* SPDX-License-Identifier: BSD-2-Clause
 *
 * checked - calls of a program that is checked (checking.h): the usual ones, between two words to
 * the checker.
 *
 * The checker is told of a request before it is posted, since another thread may poll its
 * completion right afterwards; if the NIC refuses the request, it is taken back. Meanwhile no other
 * call of this file can come in between, so that requests are in the order in which they are
 * posted.
 */
#include "verbs/checking.h"
#include "verbs/findings.h"
#include "verbs/strict.h"

/* The place of the program that calls the function in which this stands. */
#define CALLER() findings_place(__builtin_return_address(0), __builtin_frame_address(0))

/* As verbs answer for them, requests and receives are refused for two reasons. */
static enum status status_of(int reason)
{
    return reason == ENOMEM ? STATUS_FULL : STATUS_INVALID;
}

/* -- Sends --------------------------------------------------------------------------------------*/

static void tell_handle(struct checker *checker, struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    if (post_names_foreign_handle(qp, wr)) {
        checker_tell(checker, CHECKER_ADDRESS, qp->qp_num, strict_wrong(STRICT_AH_DOMAIN));
    }
}

/* Returns how many requests the checker knows now: the call ends at one that cannot be translated,
 * if not earlier. */
static uint32_t tell_sends(struct checker *checker, struct ibv_qp *qp, const struct ibv_send_wr *wr,
                           uint32_t place)
{
    uint32_t count = 0;
    for (; wr != NULL; wr = wr->next, count++) {
        struct send_request request;
        if (post_translate(qp, wr, &request) != 0) {
            break;
        }
        tell_handle(checker, qp, wr);
        checker_send(checker, qp->qp_num, &request, place);
    }
    return count;
}

static uint32_t position_of(const struct ibv_send_wr *wr, const struct ibv_send_wr *bad)
{
    uint32_t position = 0;
    for (; wr != NULL && wr != bad; wr = wr->next) {
        position++;
    }
    return position;
}

static void take_back_sends(struct checker *checker, const struct verbs_qp *qp,
                            const struct ibv_send_wr *bad, uint32_t count, int reason)
{
    struct send_request request = {.kind = (enum work_kind)bad->opcode};
    (void)!post_translate(&qp->ex.qp_base, bad, &request);
    checker_unsend(checker, qp->ex.qp_base.qp_num, count);
    checker_send_refused(checker, qp->ex.qp_base.qp_num, qp_state_of(qp->core), &request,
                         status_of(reason));
}

int checked_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct checker *checker = checking_enter_queue(qp->context, &qp_of(qp)->sole, qp->qp_num);
    const uint32_t place = CALLER();
    const uint32_t told = tell_sends(checker, qp, wr, place);
    const int reason = live_is_strict(live_of(qp->context)) ? post_send_strictly(qp, wr, bad)
                                                            : post_send(qp, wr, bad);
    if (reason != 0) {
        const uint32_t done = position_of(wr, *bad);
        take_back_sends(checker, qp_of(qp), *bad, told > done ? told - done : 0, reason);
    }
    checking_leave_queue(&qp_of(qp)->sole);
    return reason;
}

/* -- Receives -----------------------------------------------------------------------------------*/

/* A number of SGEs that is none ends the call. */
static bool has_sges(const struct ibv_recv_wr *wr)
{
    return wr->num_sge >= 0 && wr->num_sge <= NIC_SGE_MAX;
}

static uint32_t tell_receives(struct checker *checker, uint32_t qpn, uint32_t srq,
                              const struct ibv_recv_wr *wr, uint32_t place)
{
    uint32_t count = 0;
    for (; wr != NULL && has_sges(wr); wr = wr->next, count++) {
        checker_receive(checker, qpn, srq, wr->wr_id, (const struct sge *)(const void *)wr->sg_list,
                        (uint32_t)wr->num_sge, place);
    }
    return count;
}

static uint32_t receive_position(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *bad)
{
    uint32_t position = 0;
    for (; wr != NULL && wr != bad; wr = wr->next) {
        position++;
    }
    return position;
}

int checked_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct checker *checker = checking_enter_queue(qp->context, &qp_of(qp)->sole, qp->qp_num);
    const uint32_t place = CALLER();
    const bool own = qp->srq == NULL;
    const uint32_t told = own ? tell_receives(checker, qp->qp_num, 0, wr, place) : 0;
    const int reason = live_is_strict(live_of(qp->context)) ? post_recv_strictly(qp, wr, bad)
                                                            : post_recv(qp, wr, bad);
    if (reason != 0) {
        const uint32_t done = receive_position(wr, *bad);
        checker_unreceive(checker, qp->qp_num, 0, told > done ? told - done : 0);
        checker_receive_refused(checker, qp->qp_num, qp_state_of(qp_of(qp)->core),
                                (uint32_t)(*bad)->num_sge, status_of(reason));
    }
    checking_leave_queue(&qp_of(qp)->sole);
    return reason;
}

int checked_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct checker *checker = checking_enter_queue(srq->context, &srq_of(srq)->sole, 0);
    const uint32_t place = CALLER();
    const uint32_t number = checking_srq_number(srq_of(srq));
    const uint32_t told = tell_receives(checker, 0, number, wr, place);
    const int reason = post_srq_recv_as_wished(srq, wr, bad);
    if (reason != 0) {
        const uint32_t done = receive_position(wr, *bad);
        checker_unreceive(checker, 0, number, told > done ? told - done : 0);
        checker_receive_refused(checker, 0, QP_INIT, (uint32_t)(*bad)->num_sge, status_of(reason));
    }
    checking_leave_queue(&srq_of(srq)->sole);
    return reason;
}
