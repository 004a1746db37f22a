/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/transactions.h"

void lant_transactions_init(struct lant_transactions *transactions, uint32_t rows)
{
    CHECK(rows >= 1 && rows <= LANT_ROWS_MAX);
    *transactions = (struct lant_transactions){
        .rows = (uint16_t)rows, .first = LANT_NO_ROW, .last = LANT_NO_ROW};
    for (uint32_t row = 0; row < rows; row++) {
        transactions->free[row / 64] |= UINT64_C(1) << row % 64;
    }
}

void lant_transactions_check(const struct lant_transactions *transactions)
{
    uint32_t used = 0, free = 0;
    uint16_t before = LANT_NO_ROW;
    uint64_t deadline = 0;
    for (uint16_t row = transactions->first; row != LANT_NO_ROW;
         row = transactions->table[row].after) {
        const struct lant_transaction *entry = &transactions->table[row];
        CHECK(row < transactions->rows && entry->busy && entry->before == before);
        CHECK((transactions->free[row / 64] >> row % 64 & 1) == 0);
        CHECK(entry->deadline >= deadline && entry->deadline >= entry->sent_at);
        CHECK(entry->offset < LANT_OFFSETS);
        deadline = entry->deadline;
        before = row;
        CHECK(++used <= transactions->rows);
    }
    for (uint32_t i = 0; i < LANT_ROWS_MAX / 64; i++) {
        free += (uint32_t)__builtin_popcountll(transactions->free[i]);
    }
    CHECK(transactions->last == before && used == transactions->used);
    CHECK(used + free == transactions->rows);
    CHECK(used <= transactions->used_max && transactions->used_max <= transactions->rows);
}

static uint16_t find_free(const struct lant_transactions *transactions)
{
    for (uint32_t i = 0; i < LANT_ROWS_MAX / 64; i++) {
        if (transactions->free[i] != 0) {
            return (uint16_t)(i * 64 + (uint32_t)__builtin_ctzll(transactions->free[i]));
        }
    }
    UNREACHABLE("no free row");
}

/* Puts the row between those whose timers end no later, and those whose timers end later. */
static void link_in(struct lant_transactions *transactions, uint16_t row)
{
    struct lant_transaction *entry = &transactions->table[row];
    uint16_t before = transactions->last;
    while (before != LANT_NO_ROW && transactions->table[before].deadline > entry->deadline) {
        before = transactions->table[before].before;
    }
    uint16_t *link =
        before == LANT_NO_ROW ? &transactions->first : &transactions->table[before].after;
    entry->before = before;
    entry->after = *link;
    *link = row;
    if (entry->after == LANT_NO_ROW) {
        transactions->last = row;
    } else {
        transactions->table[entry->after].before = row;
    }
}

uint16_t lant_transaction_take(struct lant_transactions *transactions,
                               const struct lant_transaction *packet, uint64_t now,
                               uint64_t timeout)
{
    CHECK(!lant_transactions_full(transactions));
    const uint16_t row = find_free(transactions);
    transactions->free[row / 64] &= ~(UINT64_C(1) << row % 64);
    transactions->table[row] =
        (struct lant_transaction){.first_at = packet->attempt == 0 ? now : packet->first_at,
                                  .sent_at = now,
                                  .deadline = now + timeout,
                                  .identifier = packet->identifier,
                                  .offset = packet->offset,
                                  .attempt = packet->attempt,
                                  .busy = true};
    link_in(transactions, row);
    transactions->used++;
    if (transactions->used > transactions->used_max) {
        transactions->used_max = transactions->used;
    }
    return row;
}

void lant_transaction_free(struct lant_transactions *transactions, uint32_t row)
{
    struct lant_transaction *entry = &transactions->table[row];
    CHECK(row < transactions->rows && entry->busy);
    if (entry->before == LANT_NO_ROW) {
        transactions->first = entry->after;
    } else {
        transactions->table[entry->before].after = entry->after;
    }
    if (entry->after == LANT_NO_ROW) {
        transactions->last = entry->before;
    } else {
        transactions->table[entry->after].before = entry->before;
    }
    entry->busy = false;
    transactions->free[row / 64] |= UINT64_C(1) << row % 64;
    transactions->used--;
}

enum lant_rdma_answer lant_answer_judge(const struct lant_footer *answer, uint32_t copies)
{
    if (answer->attempt >= copies) {
        return LANT_RDMA_ANSWER_STALE; /* To a copy that was never sent. */
    }
    switch ((enum lant_response)answer->response) {
    case LANT_OKAY: return LANT_RDMA_ANSWER_POSITIVE; /* Any copy that has arrived will do. */
    case LANT_SLVERR:
    case LANT_DECERR: return LANT_RDMA_ANSWER_FINAL;
    case LANT_NACK_CRC:
    case LANT_NACK_LINK:
    case LANT_NACK_BUSY:
        return answer->attempt + 1u == copies ? LANT_RDMA_ANSWER_NEGATIVE : LANT_RDMA_ANSWER_OLDER;
    case LANT_EXOKAY:
    case LANT_LOCKED:
    default: return LANT_RDMA_ANSWER_FOREIGN; /* A DMA engine asks for no lock. */
    }
}

enum lant_rdma_answer lant_transaction_judge(const struct lant_transactions *transactions,
                                             const struct lant_footer *answer)
{
    CHECK(answer->class == LANT_CLASS_RDMA);
    if (answer->row >= transactions->rows) {
        return LANT_RDMA_ANSWER_STALE;
    }
    const struct lant_transaction *entry = &transactions->table[answer->row];
    if (!entry->busy || entry->identifier != lant_operation_of(answer) ||
        entry->offset != answer->offset) {
        return LANT_RDMA_ANSWER_STALE;
    }
    return lant_answer_judge(answer, entry->attempt + 1u);
}
