/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_table - the queue pairs of a FERoCE board: their contexts, and which of them are free.
 *
 * Purpose    A context for each queue pair, from OPEN to CLOSE or ERROR.
 * Inputs     What the connection manager and the retransmission unit decide.
 * Outputs    QPNs, contexts, and the 32 bytes that the board's spy port shows.
 * Units      QPNs of the board: FEROCE_FIRST_QPN and up.
 * Limits     FEROCE_QPS_MAX queue pairs.
 * Source     RTL2026 (wire/feroce.h).
 */
#ifndef TRANSPORT_FEROCE_QP_TABLE_H
#define TRANSPORT_FEROCE_QP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "transport/common/psn.h"
#include "wire/feroce.h"

#define FEROCE_QPS_MAX       16u
#define FEROCE_FIRST_QPN     256u
#define FEROCE_CONTEXT_BYTES 32

/* The syndrome of a queue pair whose retries are used up. */
#define FEROCE_SYNDROME_LIMIT 0x9f

enum feroce_state {
    FEROCE_RESET = 0,
    FEROCE_INIT = 1,
    FEROCE_RTS = 3,
    FEROCE_ERROR = 6,
};

struct feroce_context {
    enum feroce_state state;
    struct feroce_side remote; /* Its PSN is the one that the board sends next. */
    uint32_t local_qpn;
    struct psn local_psn; /* Always 0: nothing is received. */
    struct psn acked;     /* By the last ACK; 0 at OPEN. */
    uint8_t syndrome;
    uint8_t first_syndrome; /* An AETH's that FEROCE_SYNDROME_LIMIT would hide; 0: none. */
};

struct feroce_table {
    struct feroce_context contexts[FEROCE_QPS_MAX];
    uint8_t free[FEROCE_QPS_MAX]; /* A queue of indices. */
    uint32_t first_free, free_count;
    uint32_t qps;
    bool latches; /* FEROCE_QUIRK_LATCH. */
    bool latched;
};

/* `qps` is 1, 2, 4, 8 or 16. */
void feroce_table_init(struct feroce_table *table, uint32_t qps, bool latches);

/* The index of a QPN that belongs to the board, or FEROCE_QPS_MAX. */
uint32_t feroce_table_find(const struct feroce_table *table, uint32_t qpn);

/* The next free queue pair in turn leaves the pool. False: there is none. */
MUST_USE bool feroce_table_take(struct feroce_table *table, uint32_t *index);
/* Back into the pool, at its end. */
void feroce_table_return(struct feroce_table *table, uint32_t index);

/* From RESET to INIT and at once to RTS. False: the latch keeps it in INIT. */
MUST_USE bool feroce_table_open(struct feroce_table *table, uint32_t index,
                                const struct feroce_side *remote);
/* From INIT to RTS, else nothing. False: that is refused (and may set the latch). */
MUST_USE bool feroce_table_modify(struct feroce_table *table, uint32_t index);
/* To RESET; clears the latch. False: it was in RESET. */
MUST_USE bool feroce_table_close(struct feroce_table *table, uint32_t index);
/* From RTS to ERROR, or in ERROR another syndrome; the first one of an AETH is kept. */
void feroce_table_fail(struct feroce_table *table, uint32_t index, uint8_t syndrome);

/* The context as the board stores it. */
void feroce_context_encode(const struct feroce_context *context, uint8_t out[FEROCE_CONTEXT_BYTES]);

#endif
