/* SPDX-License-Identifier: BSD-2-Clause
 *
 * notifications - a queue of completed transfers, which a program polls.
 *
 * Purpose    Keeps notifications in their order until they are read. Each work queue, the CPU's and
 *            the FPGA's, has one.
 * Inputs     Sent operations, by the sender; arrived ones, by the receiver.
 * Outputs    The oldest notification.
 * Units      Bytes; addresses are local to the node that has them, but for `destination`.
 * Limits     LANT_NOTIFICATIONS_MAX. Full: a sender or receiver keeps its notification, and asks
 *            again.
 * Source     Lant 3.3.4.2, 3.3.4.3, 5.2.3.1; LNI-42.
 */
#ifndef TRANSPORT_LANT_NOTIFICATIONS_H
#define TRANSPORT_LANT_NOTIFICATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"

#define LANT_NOTIFICATIONS_MAX   1024u
#define LANT_NOTIFICATIONS_DEPTH 64u

enum lant_notification_kind {
    LANT_NOTIFY_SENT,
    LANT_NOTIFY_RECV,     /* Its sender said that all has come. */
    LANT_NOTIFY_RECV_REG, /* The registration module saw that all has come. */
};

struct lant_notification {
    uint8_t kind;         /* enum lant_notification_kind. */
    uint8_t attempts;     /* SENT: the most that one of its packets took beyond the first. */
    uint32_t operation;   /* 20 bits. A segmented transfer has that of its last segment to end. */
    uint32_t tag;         /* SENT: the program's. RECV: the sender's, 20 bits. */
    uint32_t bytes;       /* The transfer's. */
    uint32_t status;      /* SENT: of the descriptor (LANT_STATUS_...). */
    uint32_t node;        /* RECV, RECV_REG: the sender. */
    uint64_t source;      /* SENT. */
    uint64_t destination; /* SENT: global. RECV, RECV_REG: local. */
};

struct lant_notifications {
    uint16_t depth, head, count, count_max;
    bool holding;   /* Somebody found it full, and nothing was put in since. */
    uint64_t given; /* All that ever were put in. */
    uint64_t held;  /* How often it began to be full for somebody. */
    struct lant_notification ring[LANT_NOTIFICATIONS_MAX];
};

static inline void lant_notifications_init(struct lant_notifications *queue, uint32_t depth)
{
    CHECK(depth >= 1 && depth <= LANT_NOTIFICATIONS_MAX);
    /* The ring is written before it is read: its pages need not be touched. */
    memset(queue, 0, offsetof(struct lant_notifications, ring));
    queue->depth = (uint16_t)depth;
}

/* May a notification be put in? If not, its owner is held, which is counted. */
bool lant_notifications_admit(struct lant_notifications *queue);
/* There is room: lant_notifications_admit said so. */
void lant_notifications_put(struct lant_notifications *queue,
                            const struct lant_notification *notification);
/* False: there is none. */
bool lant_notifications_take(struct lant_notifications *queue,
                             struct lant_notification *notification);

void lant_notifications_check(const struct lant_notifications *queue);

#endif
