/* SPDX-License-Identifier: BSD-2-Clause
 *
 * queues - rules of completion queues and their events.
 */
#include "checker/internal.h"

enum {
    MANY_ACKS = 1000,
};

void checker_poll_failed(struct checker *checker, uint32_t number)
{
    struct checked_cq *cq = find_cq(checker, number);
    if (cq == NULL) {
        return;
    }
    if (!cq->failed) {
        tell(checker, CHECKER_CQ_OVERRUN, 0, NULL,
             "a completion queue of %u entries was full when a completion came, which is lost: the "
             "queue and its queue pairs have failed",
             cq->entries);
    } else {
        tell(checker, CHECKER_POLL_FAILED, 0, NULL,
             "ibv_poll_cq is called again for a queue for which it returned -1");
    }
    cq->failed = true;
}

void checker_waits(struct checker *checker, uint32_t number, uint32_t completions, bool armed)
{
    const struct checked_cq *cq = find_cq(checker, number);
    if (cq != NULL && armed && completions > 0) {
        tell(checker, CHECKER_LOST_WAKEUP, 0, NULL,
             "it waits for an event (ibv_get_cq_event), but %u completion%s came before it asked "
             "for one (ibv_req_notify_cq) and %s not polled: only a further completion wakes it",
             completions, completions == 1 ? "" : "s", completions == 1 ? "was" : "were");
    }
}

void checker_waits_unarmed(struct checker *checker)
{
    tell(checker, CHECKER_NOT_ARMED, 0, NULL,
         "it waits for an event (ibv_get_cq_event), and no queue of the channel was asked for one "
         "(ibv_req_notify_cq): unless another thread asks, nothing wakes it");
}

void checker_waits_for_async(struct checker *checker, const char *call, uint32_t count)
{
    tell(checker, CHECKER_ASYNC_UNACKED, 0, NULL,
         "%s waits for ever: %u asynchronous event%s of the object %s not acknowledged", call,
         count, count == 1 ? "" : "s", count == 1 ? "was" : "were");
}

void checker_event_taken(struct checker *checker, uint32_t number)
{
    struct checked_cq *cq = find_cq(checker, number);
    if (cq != NULL) {
        cq->events_taken++;
    }
}

void checker_events_acked(struct checker *checker, uint32_t number, uint32_t count)
{
    struct checked_cq *cq = find_cq(checker, number);
    if (cq == NULL) {
        return;
    }
    if (count > cq->events_taken - cq->events_acked) {
        tell(checker, CHECKER_EVENTS_OVERACKED, 0, NULL,
             "%u events are acknowledged, but only %u were taken and not acknowledged: "
             "ibv_destroy_cq will wait for ever",
             count, cq->events_taken - cq->events_acked);
        cq->events_acked = cq->events_taken;
        return;
    }
    cq->events_acked += count;
    cq->single_acks = count == 1 ? cq->single_acks + 1 : 0;
    if (cq->single_acks == MANY_ACKS) {
        tell(checker, CHECKER_ACK_EACH, 0, NULL, "%d events were acknowledged one by one",
             MANY_ACKS);
    }
}

void checker_cq_ends(struct checker *checker, uint32_t number)
{
    const struct checked_cq *cq = find_cq(checker, number);
    if (cq != NULL && cq->events_acked != cq->events_taken) {
        tell(checker, CHECKER_EVENTS_UNACKED, 0, NULL,
             "ibv_destroy_cq waits for ever: %u events of the queue were not acknowledged",
             cq->events_taken - cq->events_acked);
    }
}
