/* SPDX-License-Identifier: BSD-2-Clause
 *
 * transactions - packets of the DMA engine that nobody has answered yet, and their timers.
 *
 * Purpose    A row for each packet on its way: its operation, its number there, and the end of its
 *            timer. No addresses, no data.
 * Inputs     Packets as they leave; answers.
 * Outputs    The meaning of an answer for the row that it names; the row whose timer ends first.
 * Time       Ticks of the caller's choice.
 * Units      Offsets count packets of 512 bytes.
 * Limits     LANT_ROWS_MAX. A timer is set in constant time if timeouts are equal, else it passes
 *            those that end later.
 * Source     Lant 5.2.3, Table 5.1; LNI-27, LNI-44, LNI-48.
 */
#ifndef TRANSPORT_LANT_TRANSACTIONS_H
#define TRANSPORT_LANT_TRANSACTIONS_H

#include "transport/lant/ticks.h"
#include "wire/lant.h"

#define LANT_ROWS_MAX 1024u
#define LANT_ROWS     16u
#define LANT_NO_ROW   UINT16_MAX

struct lant_transaction {
    uint64_t first_at; /* When its first copy left. */
    uint64_t sent_at, deadline;
    uint32_t identifier; /* The operation's: 20 bits. */
    uint32_t offset;
    uint16_t before, after; /* The rows whose timers end just before and after it, if busy. */
    uint8_t attempt;
    bool busy;
};

struct lant_transactions {
    uint16_t rows, used, used_max;
    uint16_t first, last; /* By deadline. */
    uint64_t free[LANT_ROWS_MAX / 64];
    struct lant_transaction table[LANT_ROWS_MAX];
};

/* The meaning of an answer for the packet that it names. */
enum lant_rdma_answer {
    LANT_RDMA_ANSWER_POSITIVE,
    LANT_RDMA_ANSWER_NEGATIVE, /* The packet goes again. */
    LANT_RDMA_ANSWER_FINAL,    /* SLVERR, DECERR: it does not. */
    LANT_RDMA_ANSWER_STALE,    /* Nothing waits for it. */
    LANT_RDMA_ANSWER_OLDER,    /* A NACK for a copy that was given up: a newer one is on its way. */
    LANT_RDMA_ANSWER_FOREIGN,  /* No answer to anything that a DMA engine sends. */
    LANT_RDMA_ANSWER_COUNT,
};

void lant_transactions_init(struct lant_transactions *transactions, uint32_t rows);

static inline bool lant_transactions_full(const struct lant_transactions *transactions)
{
    return transactions->used == transactions->rows;
}

/* A row for a packet that leaves now; there is one. Only identifier, offset and attempt are read of
 * `packet`, and of another copy than the first `first_at`. */
uint16_t lant_transaction_take(struct lant_transactions *transactions,
                               const struct lant_transaction *packet, uint64_t now,
                               uint64_t timeout);
void lant_transaction_free(struct lant_transactions *transactions, uint32_t row);

/* Judges an answer that repeats (identifier, offset) rightly. `copies` of the packet have been
 * sent; attempt `copies` - 1 is the newest. */
enum lant_rdma_answer lant_answer_judge(const struct lant_footer *answer, uint32_t copies);
/* `answer` is of class RDMA. Its row, if the verdict is POSITIVE, NEGATIVE or FINAL, is busy. */
enum lant_rdma_answer lant_transaction_judge(const struct lant_transactions *transactions,
                                             const struct lant_footer *answer);

/* When the first timer ends. */
static inline uint64_t lant_transactions_deadline(const struct lant_transactions *transactions)
{
    return transactions->used == 0 ? LANT_NEVER : transactions->table[transactions->first].deadline;
}

/* A row whose timer has ended by `now`; LANT_NO_ROW: there is none. */
static inline uint16_t lant_transactions_expired(const struct lant_transactions *transactions,
                                                 uint64_t now)
{
    return lant_transactions_deadline(transactions) <= now && transactions->used != 0
               ? transactions->first
               : LANT_NO_ROW;
}

void lant_transactions_check(const struct lant_transactions *transactions);

#endif
