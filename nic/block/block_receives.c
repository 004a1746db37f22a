/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_receives - the receive of each message. In the queue pair's own queue it is the one with
 * the message's number; in a shared queue it is the next one when the message's first packet comes,
 * in its turn or before.
 */
#include "nic/block/block_receiver.h"
#include "nic/slots.h"

static struct receive *copy_of(struct block_taken *taken)
{
    return (struct receive *)(void *)taken->receive;
}

/* -- A queue of our own -------------------------------------------------------------------------*/

static bool overlap(const struct receive *a, const struct receive *b)
{
    for (uint32_t i = 0; i < a->sge_count; i++) {
        for (uint32_t k = 0; k < b->sge_count; k++) {
            const struct sge *one = &a->sges[i];
            const struct sge *other = &b->sges[k];
            /* Two keys may open the same memory, so their addresses cannot be compared. */
            if (one->bytes != 0 && other->bytes != 0 &&
                (one->key != other->key || (one->address - other->address < other->bytes ||
                                            other->address - one->address < one->bytes))) {
                return true;
            }
        }
    }
    return false;
}

/* A message that comes before an earlier one may not be placed where that one will write. */
static bool shares_memory(const struct receive_queue *queue, uint32_t ahead)
{
    const struct receive *receive = receive_queue_at(queue, queue->head + ahead);
    for (uint32_t i = 0; i < ahead; i++) {
        if (overlap(receive, receive_queue_at(queue, queue->head + i))) {
            return true;
        }
    }
    return false;
}

static enum block_admission find_own(const struct qp *qp, const struct block_piece *piece,
                                     const struct receive **receive)
{
    const uint32_t ahead = piece->message.receive_number - receiver_of(qp)->stream.next_receive;
    if (ahead >= receive_queue_count(&qp->receives)) {
        return piece->in_order ? BLOCK_LATER : BLOCK_DECLINED;
    }
    if (ahead != 0 &&
        (ahead > BLOCK_RECEIVES_AHEAD || (piece->opens && shares_memory(&qp->receives, ahead)))) {
        return BLOCK_DECLINED;
    }
    *receive = receive_queue_at(&qp->receives, qp->receives.head + ahead);
    receive_queue_look_ahead(&qp->receives);
    return BLOCK_ADMITTED;
}

/* -- A shared queue -----------------------------------------------------------------------------*/

static struct block_taken *find_taken(struct block_receiver *receiver, uint32_t start)
{
    if (receiver->open_count == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < BLOCK_OPEN_MAX; i++) {
        if (receiver->open[i].used && receiver->open[i].start == start) {
            return &receiver->open[i];
        }
    }
    return NULL;
}

/* The last, or the first, of all open messages. */
static struct block_taken *outermost(struct block_receiver *receiver, bool last)
{
    struct block_taken *found = NULL;
    for (uint32_t i = 0; i < BLOCK_OPEN_MAX; i++) {
        struct block_taken *taken = &receiver->open[i];
        if (taken->used &&
            (found == NULL || block_number_before(found->start, taken->start) == last)) {
            found = taken;
        }
    }
    return found;
}

static void give_up(struct block_receiver *receiver, struct block_taken *taken)
{
    INVARIANTS(CHECK(taken->used && receiver->open_count > 0));
    taken->used = false;
    receiver->open_count--;
}

/* The receive of the message at base. If early messages have taken all receives, the last of them
 * gives its receive back: else nothing would ever complete. */
static const struct receive *take_in_order(struct qp *qp, uint32_t start)
{
    struct block_receiver *receiver = receiver_of(qp);
    if (qp_take_shared(qp, qp->shared.taken) == NULL) {
        struct block_taken *last = outermost(receiver, true);
        if (last == NULL) {
            return NULL;
        }
        const struct receive *receive = copy_of(last);
        __builtin_memcpy(qp->shared.taken, receive,
                         sizeof(*receive) + receive->sge_count * sizeof(struct sge));
        block_responder_forget(&receiver->stream, last->start);
        nic_count(qp->nic, COUNTER_blocks_reneged);
        give_up(receiver, last);
    }
    INVARIANTS(CHECK(!receiver->current)); /* Its receive would be overwritten. */
    receiver->current = true;
    receiver->current_start = start;
    return qp->shared.taken;
}

static const struct receive *take_early(struct qp *qp, uint32_t start)
{
    struct block_receiver *receiver = receiver_of(qp);
    const struct receive *next = receive_queue_first(&qp->shared.srq->queue);
    if (receiver->open_count >= receiver->open_limit || next == NULL ||
        next->sge_count > BLOCK_OPEN_SGES) {
        return NULL;
    }
    struct block_taken *taken = receiver->open;
    INVARIANTS(CHECK(receiver->open_limit <= BLOCK_OPEN_MAX));
    while (taken->used) {
        taken++;
    }
    taken->used = true;
    taken->start = start;
    receiver->open_count++;
    return qp_take_shared(qp, copy_of(taken));
}

static enum block_admission find_shared(struct qp *qp, const struct block_piece *piece,
                                        const struct receive **receive)
{
    struct block_receiver *receiver = receiver_of(qp);
    const uint32_t start = piece->message.start;
    if (receiver->current && receiver->current_start == start) {
        *receive = qp->shared.taken;
        return BLOCK_ADMITTED;
    }
    struct block_taken *taken = find_taken(receiver, start);
    if (taken != NULL) {
        *receive = copy_of(taken);
        return BLOCK_ADMITTED;
    }
    *receive = piece->in_order ? take_in_order(qp, start) : take_early(qp, start);
    if (*receive != NULL) {
        return BLOCK_ADMITTED;
    }
    return piece->in_order ? BLOCK_LATER : BLOCK_DECLINED;
}

/* -- Both ---------------------------------------------------------------------------------------*/

enum block_admission block_find_receive(struct qp *qp, const struct block_piece *piece,
                                        const struct receive **receive)
{
    return qp->shares ? find_shared(qp, piece, receive) : find_own(qp, piece, receive);
}

bool block_have_receive(struct qp *qp, const struct block_piece *piece)
{
    const struct receive *receive;
    return block_find_receive(qp, piece, &receive) == BLOCK_ADMITTED;
}

uint64_t block_use_receive(struct qp *qp, const struct block_message *message)
{
    struct block_receiver *receiver = receiver_of(qp);
    if (!qp->shares) {
        INVARIANTS(CHECK(receive_queue_count(&qp->receives) > 0)); /* block_admit has seen it. */
        const uint64_t wr_id = receive_queue_first(&qp->receives)->wr_id;
        receive_queue_drop(&qp->receives);
        return wr_id;
    }
    if (receiver->current && receiver->current_start == message->start) {
        receiver->current = false;
        return qp->shared.taken->wr_id;
    }
    struct block_taken *taken = find_taken(receiver, message->start);
    CHECK(taken != NULL);
    give_up(receiver, taken);
    return copy_of(taken)->wr_id;
}

static void drop(struct qp *qp, uint64_t wr_id)
{
    const struct completion completion = {
        .wr_id = wr_id,
        .qpn = qp->number,
        .status = COMPLETION_FLUSHED,
        .kind = COMPLETION_RECEIVE,
    };
    if (qp->state == QP_ERR) {
        qp_complete_receive(qp, 0, &completion);
    } else {
        slots_give_back(qp, 1);
    }
}

void block_drop_receives(struct qp *qp)
{
    struct block_receiver *receiver = receiver_of(qp);
    struct block_taken *taken;
    if (receiver->current) {
        receiver->current = false;
        drop(qp, qp->shared.taken->wr_id);
    }
    while ((taken = outermost(receiver, false)) != NULL) {
        drop(qp, copy_of(taken)->wr_id);
        give_up(receiver, taken);
    }
    CHECK(receiver->open_count == 0);
}

uint32_t block_receive_limit(const struct qp *qp)
{
    return receiver_of(qp)->stream.next_receive + receive_queue_count(&qp->receives);
}
