/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_end - a queue pair with streams of blocks ends: reset, destruction, the error state.
 */
#include "nic/block/block_receiver.h"

void block_receive_withdraw(struct qp *qp)
{
    struct block_receiver *receiver = receiver_of(qp);
    if (receiver->stream.contexts == NULL) {
        return; /* There was no session. */
    }
    block_responder_withdraw(&receiver->stream);
    block_drop_receives(qp);
    INVARIANTS(CHECK(receiver->stream.chain.count == 0 && receiver->open_count == 0));
    if (qp->state != QP_ERR || !qp->last_words) {
        receiver->stream.answer_due = false;
        receiver->reads_count = 0;
        receiver->results_due = 0;
        for (uint32_t i = 0; i < receiver->results_limit; i++) {
            receiver->results[i].due = false;
        }
    }
    INVARIANTS(block_receiver_check(qp));
}

/* A queue pair that refused a request repeats the refusal as often as the peer asks, and needs its
 * session for that. */
void block_withdraw(struct qp *qp)
{
    struct block_streams *streams = qp->block;
    INVARIANTS(CHECK(qp->engine == ENGINE_RC_OR_BLOCKS));
    if (streams->answer.session) {
        block_receive_withdraw(qp);
    }
    if (qp->state != QP_ERR || !qp->last_words) {
        hello_drop(&streams->answer);
    }
    streams->ask = (struct hello_ask){.state = HELLO_NOT_ASKED};
    if (qp->nic->holder == qp) {
        qp->nic->holder = NULL;
    }
}

/* A queue pair that is in the error state already may have lost its last words just now. */
void block_enter_error(struct qp *qp)
{
    if (qp->state != QP_ERR || !qp->last_words) {
        qp_enter_error(qp);
        block_withdraw(qp);
    }
}

void block_fail_work(struct qp *qp, struct work *work, enum completion_status status)
{
    const bool in_error = qp->state == QP_ERR;
    qp_fail_work(qp, work, status);
    if (!in_error) {
        block_withdraw(qp);
    }
    CHECK(qp->state == QP_ERR && qp->block->ask.state == HELLO_NOT_ASKED);
}

bool block_fail_oldest(struct qp *qp)
{
    if (!qp_fail_oldest(qp)) {
        return false;
    }
    block_withdraw(qp);
    return true;
}
