/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_slave - the board's answers to those who open and close queue pairs from outside.
 *
 * Purpose    Judges a request, changes the table of queue pairs, and makes the reply.
 * Inputs     A decoded message that came to the board's address and port.
 * Outputs    What it did to a queue pair; replies with where they go.
 * Units      Host order.
 * Limits     FEROCE_REPLIES_MAX replies wait; a request beyond them is lost and counted.
 * Source     RTL2026 (wire/feroce.h).
 */
#ifndef TRANSPORT_FEROCE_CM_SLAVE_H
#define TRANSPORT_FEROCE_CM_SLAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/feroce/qp_table.h"
#include "transport/feroce/quirks.h"
#include "wire/feroce.h"

#define FEROCE_REPLIES_MAX 2 /* One that leaves, and one behind it. */

struct feroce_reply {
    struct feroce_cm message;
    uint32_t ip; /* The request's loc_ip, not the datagram's source. */
    uint16_t port;
};

struct feroce_slave {
    uint32_t ip; /* The board's. */
    uint32_t quirks;
    struct feroce_reply last; /* The reply that a stale error repeats. */
    struct feroce_reply replies[FEROCE_REPLIES_MAX];
    uint32_t first, count;
};

/* The effect of a request. */
enum feroce_change {
    FEROCE_CHANGE_NONE,
    FEROCE_CHANGE_OPENED, /* The queue pair is in RTS. */
    FEROCE_CHANGE_CLOSED, /* It was open, or in ERROR. */
    FEROCE_CHANGE_LOST,   /* Two requests wait already. */
};

void feroce_slave_init(struct feroce_slave *slave, uint32_t ip, uint32_t quirks);

/* The part of the message about queue pairs; `*index` is of the queue pair that changed. */
enum feroce_change feroce_slave_take(struct feroce_slave *slave, struct feroce_table *table,
                                     const struct feroce_cm *message, uint32_t *index);

/* The oldest reply. False: there is none. */
MUST_USE bool feroce_slave_next(struct feroce_slave *slave, struct feroce_reply *reply);

#endif
