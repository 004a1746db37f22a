/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_requester_check - the invariants of a requester between two calls; walks through the requests
 * in flight.
 */
#include "transport/ibta/rc_requester.h"
#include "transport/ibta/rc_window.h"

/* PSNs, cost and serial of a request that was begun go on where those of the one before it end. */
static void check_neighbours(const struct rc_requester *requester, const struct work *before,
                             const struct work *work)
{
    CHECK(psn_equal(work->first, work_end(before)));
    CHECK(work->cost == before->cost + rc_cost_of(requester, before, before->packets));
    CHECK(work->packets == 0 || before->packets == 0 ||
          (int32_t)(work->serial - before->serial) > 0);
}

/* The newest request that was begun, the only one that may be half sent. */
static void check_newest(const struct rc_requester *requester, const struct work *work)
{
    if (work->packets == 0) {
        CHECK(psn_equal(work->first, requester->next));
        CHECK(work->cost == requester->cost);
        return;
    }
    const uint32_t sent = psn_count(work->first, requester->next);
    CHECK(sent > 0 && sent <= work->packets);
    CHECK(requester->cost == work->cost + rc_cost_of(requester, work, sent));
    CHECK((int32_t)(requester->serial - work->serial) >= 0);
}

/* The requests that a check looks at, from the oldest on: a queue may have thousands in flight. */
#define REQUESTS_MAX 64

/* Requests are begun in order, and have PSNs without gaps. */
static void check_requests(const struct rc_requester *requester, const struct send_queue *queue)
{
    const struct work *newest = NULL;
    for (uint32_t at = queue->head; at != queue->tail; at++) {
        const struct work *work = send_queue_at(queue, at);
        if (!work->started) {
            CHECK((int32_t)(at - queue->next) >= 0);
            break;
        }
        if (at - queue->head == REQUESTS_MAX) {
            return;
        }
        if (newest != NULL) {
            check_neighbours(requester, newest, work);
        }
        newest = work;
    }
    if (newest != NULL) {
        check_newest(requester, newest);
    }
}

/* The request at the cursor is the one that `send` belongs to; no request behind it was begun. */
static void check_cursor(const struct rc_requester *requester, const struct send_queue *queue)
{
    CHECK(queue->next - queue->head <= queue->tail - queue->head);
    CHECK(queue->tail - queue->head <= queue->mask + 1);
    const struct work *work = queue->next == queue->tail ? NULL : send_queue_at(queue, queue->next);
    if (work == NULL || !work->started) {
        CHECK(psn_equal(requester->send, requester->next));
    } else {
        CHECK(work_covers(work, requester->send));
    }
}

/* A request that is held back waits for the answer to something in flight. */
static void check_flight(const struct rc_requester *requester)
{
    const bool idle = psn_equal(requester->unacked, requester->send);
    CHECK(psn_distance(requester->unacked, requester->send) >= 0);
    CHECK(psn_distance(requester->send, requester->next) >= 0);
    CHECK(psn_distance(requester->unacked, requester->asked) >= 0);
    CHECK(psn_distance(requester->asked, requester->next) >= 0);
    CHECK(!requester->window_shut || !idle);
    CHECK(requester->reads_out == 0 || !idle);
    CHECK(requester->window_max == 0 ||
          (requester->window != 0 && requester->window <= requester->window_max));
    CHECK(!requester->gap_known || psn_equal(requester->gap, requester->unacked));
}

static void check_time(const struct rc_requester *requester)
{
    CHECK(requester->retries_left <= requester->retry_limit);
    CHECK(requester->rnr_left <= requester->rnr_limit);
    switch ((enum rc_requester_mode)requester->mode) {
    case RC_REQUESTER_SENDING:
        CHECK(requester->retry_at.ns != UINT64_MAX ||
              psn_equal(requester->unacked, requester->send) || requester->timeout_code == 0);
        return;
    case RC_REQUESTER_WAITING_RNR:
        CHECK(requester->resume_at.ns != UINT64_MAX);
        CHECK(psn_equal(requester->unacked, requester->send));
        return;
    case RC_REQUESTER_STOPPED: CHECK(requester->retry_at.ns == UINT64_MAX); return;
    }
    UNREACHABLE("a mode outside its enum");
}

void rc_requester_check(const struct rc_requester *requester, const struct send_queue *queue)
{
    check_flight(requester);
    check_time(requester);
    check_cursor(requester, queue);
    check_requests(requester, queue);
}
