/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/rdma_sender.h"

struct tally {
    uint32_t in_flight[LANT_OPERATIONS_MAX], partials[LANT_OPERATIONS_MAX];
    uint32_t segments[LANT_PARENTS_MAX];
    uint32_t ended;
};

/* Each record of a packet belongs to an operation that is active. */
static uint32_t check_owner(const struct lant_rdma *rdma, uint32_t identifier, uint32_t offset,
                            uint32_t attempt)
{
    const uint32_t slot = lant_operation_slot(&rdma->operations, identifier);
    const struct lant_operation *operation = &rdma->operations.table[slot];
    CHECK(slot < rdma->operations.slots && operation->identifier == identifier);
    CHECK(operation->phase == LANT_OPERATION_ACTIVE);
    CHECK(offset < operation->packets && attempt <= rdma->config.retries);
    return slot;
}

static void check_current(const struct lant_rdma *rdma, const struct lant_rdma_current *current,
                          struct tally *tally)
{
    if (!current->active) {
        return;
    }
    CHECK(current->offset < current->end);
    const uint32_t slot = check_owner(rdma, current->identifier, current->offset, current->attempt);
    const struct lant_operation *operation = &rdma->operations.table[slot];
    CHECK(!operation->given_up);
    if (current->again) {
        CHECK(current->attempt != 0 && current->end == current->offset + 1);
        CHECK(current->offset < operation->sent);
        tally->partials[slot]++;
    } else {
        CHECK(current->attempt == 0 && current->end == operation->packets);
        CHECK(current->offset == operation->sent);
    }
}

static void tally_packets(const struct lant_rdma *rdma, struct tally *tally)
{
    const struct lant_transactions *transactions = &rdma->transactions;
    for (uint16_t row = transactions->first; row != LANT_NO_ROW;
         row = transactions->table[row].after) {
        const struct lant_transaction *entry = &transactions->table[row];
        const uint32_t slot = check_owner(rdma, entry->identifier, entry->offset, entry->attempt);
        CHECK(entry->offset < rdma->operations.table[slot].sent);
        tally->in_flight[slot]++;
    }
    for (uint32_t i = 0; i < rdma->retransmissions.count; i++) {
        const struct lant_partial *partial = lant_retransmissions_at(&rdma->retransmissions, i);
        const uint32_t slot =
            check_owner(rdma, partial->identifier, partial->offset, partial->attempt);
        CHECK(partial->attempt != 0 && !rdma->operations.table[slot].given_up);
        tally->partials[slot]++;
    }
    check_current(rdma, &rdma->current, tally);
    check_current(rdma, &rdma->aside, tally);
    CHECK(!rdma->aside.active || !rdma->aside.again);
    CHECK(!rdma->aside.active || !rdma->current.active || rdma->current.again);
    const bool place = rdma->current.active && rdma->current.again;
    CHECK((uint32_t)transactions->used + rdma->retransmissions.count + place <=
          rdma->config.partials);
}

static void check_slot(const struct lant_rdma *rdma, uint32_t slot, struct tally *tally)
{
    const struct lant_operation *operation = &rdma->operations.table[slot];
    CHECK(operation->in_flight == tally->in_flight[slot]);
    CHECK(operation->partials == tally->partials[slot]);
    CHECK(operation->attempts <= rdma->config.retries);
    CHECK(operation->copies <= rdma->config.retries + 1u);
    const bool tells = operation->phase == LANT_OPERATION_TELLS;
    const bool timed =
        operation->phase == LANT_OPERATION_HOLDS || operation->phase == LANT_OPERATION_TOLD;
    CHECK(tells == (rdma->tells >> slot & 1) && timed == (rdma->timed >> slot & 1));
    if (operation->phase == LANT_OPERATION_ENDED) {
        CHECK(operation->work.parent == LANT_NO_PARENT && !operation->work.no_notif);
        tally->ended++;
    }
    if (operation->work.parent != LANT_NO_PARENT) {
        tally->segments[operation->work.parent]++;
    }
}

static void check_parents(const struct lant_rdma *rdma, struct tally *tally)
{
    for (uint32_t i = 0; i < rdma->work.config.parents; i++) {
        const struct lant_parent *parent = &rdma->work.parents[i];
        if ((rdma->work.parents_free >> i & 1) != 0) {
            CHECK(tally->segments[i] == 0);
            continue;
        }
        CHECK(parent->outstanding == tally->segments[i]);
        tally->ended += parent->outstanding == 0 && parent->remaining == 0;
    }
}

void lant_rdma_check(const struct lant_rdma *rdma)
{
    struct tally tally = {0};
    lant_work_check(&rdma->work);
    lant_operations_check(&rdma->operations);
    lant_transactions_check(&rdma->transactions);
    tally_packets(rdma, &tally);
    for (uint32_t slot = 0; slot < rdma->operations.slots; slot++) {
        if (rdma->operations.table[slot].phase != LANT_OPERATION_FREE) {
            check_slot(rdma, slot, &tally);
        } else {
            CHECK(tally.in_flight[slot] == 0 && tally.partials[slot] == 0);
            CHECK(((rdma->tells | rdma->timed) >> slot & 1) == 0);
        }
    }
    check_parents(rdma, &tally);
    CHECK(tally.ended ==
          (uint32_t)rdma->ended[LANT_QUEUE_CPU].count + rdma->ended[LANT_QUEUE_FPGA].count);
    CHECK(rdma->serial_row == LANT_NO_ROW ||
          (rdma->config.serial_retransmission && rdma->transactions.table[rdma->serial_row].busy));
    CHECK(rdma->tells_from < LANT_OPERATIONS_MAX);
}
