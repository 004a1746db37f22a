/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_master - the board opens and closes a queue pair by itself.
 *
 * Purpose    One request at a time: send it, wait, send it once more, give up.
 * Inputs     What is wanted; replies; time.
 * Outputs    Messages with where they go; how it ended.
 * Units      Nanoseconds; host order.
 * Limits     One request under way.
 * Source     RTL2026 (wire/feroce.h). A reply counts only if it is of the request's type and, for
 *            OPEN, an ACK: our choice (the RTL takes any type, and NO_QP for an ACK).
 */
#ifndef TRANSPORT_FEROCE_CM_MASTER_H
#define TRANSPORT_FEROCE_CM_MASTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/instant.h"
#include "transport/feroce/cm_slave.h"

/* Status codes of the board's register. */
enum feroce_status {
    FEROCE_STATUS_OK = 0,
    FEROCE_STATUS_NO_QP = 1,  /* All local queue pairs are taken. */
    FEROCE_STATUS_FAILED = 2, /* The host refused. */
    FEROCE_STATUS_FETCH = 3,  /* No such queue pair, or none that is open. */
    FEROCE_STATUS_MODIFY = 4, /* The table refused. */
    FEROCE_STATUS_TIMEOUT = 5,
    FEROCE_STATUS_BUSY = 6,    /* Another request is under way: ours. */
    FEROCE_STATUS_PENDING = 7, /* No reply yet: ours. */
};

const char *feroce_status_name(enum feroce_status status);

struct feroce_master {
    uint32_t ip; /* The board's. */
    uint32_t quirks;
    uint64_t timeout_ns;
    enum feroce_request request; /* FEROCE_NULL: none is under way. */
    enum feroce_status status;   /* How the last request ended. */
    uint32_t index;
    uint32_t remote_ip, remote_qpn;
    uint16_t port;
    uint8_t sent; /* How often. */
    bool to_send;
    struct instant deadline;
};

void feroce_master_init(struct feroce_master *master, uint32_t ip, uint32_t quirks,
                        uint64_t timeout_ns);

/* FEROCE_STATUS_PENDING, or why nothing was begun. */
enum feroce_status feroce_master_open(struct feroce_master *master, struct feroce_table *table,
                                      uint32_t remote_ip, uint16_t port);
enum feroce_status feroce_master_close(struct feroce_master *master,
                                       const struct feroce_table *table, uint32_t qpn,
                                       uint16_t port);

/* A message with ack_valid. False: it answers no request of ours. */
MUST_USE bool feroce_master_take(struct feroce_master *master, struct feroce_table *table,
                                 const struct feroce_cm *reply, enum feroce_change *change);

/* False: there is nothing to send. */
MUST_USE bool feroce_master_next(struct feroce_master *master, struct instant now,
                                 struct feroce_reply *out);

void feroce_master_on_time(struct feroce_master *master, struct feroce_table *table,
                           struct instant now);

#endif
