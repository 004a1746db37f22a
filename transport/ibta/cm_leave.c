/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_leave - the end of a farewell, and the last words of a process that ends: behind it is no
 * kernel that would repeat them.
 */
#include <string.h>

#include "transport/ibta/cm.h"
#include "transport/ibta/cm_internal.h"

/* 10, 20, ... 320 ms after the first DREQ, and 640 ms for an answer to the last: 1.27 s. */
#define LAST_WAIT_NS UINT64_C(10000000)
#define LAST_TRIES   6

/* An answer is not acknowledged: several copies are sent, if it is recent enough to have been lost
 * without its receiver having asked again. Linux repeats a DREQ 4.2 s later if the peer made the
 * connection, 6.4 s if it did itself; others with CM_RESPONSE_TIMEOUT do so after 4.3 s. */
#define RECENT_NS UINT64_C(7000000000)

void cm_give_back(struct cm_connection *connection, struct cm_event *event)
{
    list_remove(&connection->out);
    cm_become_idle(connection);
    connection->abandoned = false;
    *event = (struct cm_event){.kind = CM_EVENT_RELEASED, .connection = connection};
}

void cm_note_sent(struct cm *cm, const struct cm_mad *mad, struct instant now)
{
    const uint16_t attribute = load_be16(mad->bytes + 16);
    if (attribute == CM_DREP || attribute == CM_REJ || attribute == CM_SIDR_REP) {
        struct cm_said *said = &cm->said[cm->said_count++ % CM_SAID_MAX];
        *said = (struct cm_said){.mad = *mad, .at = now};
    }
}

void cm_hurry(struct cm *cm, struct instant now)
{
    struct list *head = &cm->timed;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct cm_connection *connection = CONTAINER_OF(node, struct cm_connection, timed);
        if (connection->state == CM_STATE_DREQ_SENT) {
            connection->tries_left = LAST_TRIES;
            connection->wait_ns = LAST_WAIT_NS;
            cm_set_deadline(cm, connection, instant_after(now, LAST_WAIT_NS));
        }
    }
}

bool cm_is_parting(const struct cm *cm)
{
    const struct list *head = &cm->timed;
    for (const struct list *node = head->next; node != head; node = node->next) {
        if (CONTAINER_OF_CONST(node, struct cm_connection, timed)->state == CM_STATE_DREQ_SENT) {
            return true;
        }
    }
    return false;
}

void cm_say_again(struct cm *cm, struct instant now)
{
    for (uint32_t i = 0; i < CM_SAID_MAX; i++) {
        struct cm_said *said = &cm->said[i];
        const bool recent = said->at.ns != 0 && now.ns - said->at.ns < RECENT_NS;
        said->copies = recent ? said->mad.copies : 0;
    }
}

/* One copy of each message, then the next copy of each: a network often loses messages that are
 * close together. */
bool cm_next_copy(struct cm *cm, struct cm_mad *mad)
{
    struct cm_said *most = &cm->said[0];
    for (uint32_t i = 1; i < CM_SAID_MAX; i++) {
        most = cm->said[i].copies > most->copies ? &cm->said[i] : most;
    }
    if (most->copies == 0) {
        return false;
    }
    most->copies--;
    *mad = most->mad;
    cm->counters.sent++;
    cm->counters.retransmitted++;
    return true;
}
