/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_time - the connection manager's reaction to time.
 */
#include "transport/common/timing.h"
#include "transport/ibta/cm.h"
#include "transport/ibta/cm_internal.h"

static void repeat(struct cm *cm, struct cm_connection *connection, struct instant now)
{
    const uint64_t longest_ns = ack_timeout_ns(CM_RESPONSE_TIMEOUT);
    connection->tries_left--;
    connection->wait_ns =
        connection->wait_ns > longest_ns / 2 ? longest_ns : 2 * connection->wait_ns;
    cm->counters.retransmitted++;
    cm_post_again(cm, connection);
    cm_set_deadline(cm, connection, instant_after(now, connection->wait_ns));
}

/* Nobody answered, however often we asked. */
static void give_up(struct cm *cm, struct cm_connection *connection, struct instant now,
                    struct cm_event *event)
{
    *event = (struct cm_event){.kind = CM_EVENT_UNREACHABLE, .connection = connection};
    switch ((enum cm_state)connection->state) {
    case CM_STATE_DREQ_SENT:
        if (connection->abandoned) {
            cm_give_back(connection, event);
            return;
        }
        cm_enter_timewait(cm, connection, now);
        event->kind = CM_EVENT_DISCONNECTED;
        return;
    case CM_STATE_TIMEWAIT:
        cm_become_idle(connection);
        event->kind = CM_EVENT_TIMEWAIT_OVER;
        return;
    case CM_STATE_REQ_SENT:
    case CM_STATE_REP_SENT:
        /* The peer's answer may be under way to nobody, or have been lost. */
        cm_post_rej(cm, connection, CM_ABOUT_OTHER, CM_REASON_TIMEOUT, NULL, 0);
        cm_become_idle(connection);
        return;
    case CM_STATE_SIDR_REQ_SENT: cm_become_idle(connection); return;
    case CM_STATE_IDLE:
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_REP_RECEIVED:
    case CM_STATE_ESTABLISHED:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: break;
    }
    UNREACHABLE("nothing is awaited in this state");
}

void cm_on_time(struct cm *cm, struct instant now, struct cm_event *event)
{
    *event = (struct cm_event){.kind = CM_EVENT_NONE};
    struct instant earliest = INSTANT_NEVER;
    struct list *next;
    for (struct list *node = cm->timed.next; node != &cm->timed; node = next) {
        struct cm_connection *connection = CONTAINER_OF(node, struct cm_connection, timed);
        next = node->next;
        if (instant_reached(now, connection->deadline)) {
            if (connection->state == CM_STATE_ESTABLISHED && connection->tries_left == 0) {
                cm_clear_deadline(connection); /* Enough RTUs. */
                continue;
            }
            if (connection->state == CM_STATE_TIMEWAIT || connection->tries_left == 0) {
                /* Those that follow wait for the next call, due at once as `deadline` stays. */
                give_up(cm, connection, now, event);
                INVARIANTS(cm_connection_check(cm, connection));
                return;
            }
            repeat(cm, connection, now);
            INVARIANTS(cm_connection_check(cm, connection));
        }
        if (instant_before(connection->deadline, earliest)) {
            earliest = connection->deadline;
        }
    }
    cm->deadline = earliest;
}
