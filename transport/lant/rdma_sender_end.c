/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How packets and operations end: answers, timers, failures, notifications.
 */
#include "transport/lant/rdma_sender.h"

/* -- Operations ---------------------------------------------------------------------------------*/

static uint32_t slot_of(const struct lant_rdma *rdma, const struct lant_operation *operation)
{
    return (uint32_t)(operation - rdma->operations.table);
}

static void put_ended(struct lant_rdma *rdma, uint32_t queue, uint32_t what)
{
    const uint32_t at = rdma->ended[queue].head + (uint32_t)rdma->ended[queue].count;
    CHECK(rdma->ended[queue].count < LANT_RDMA_ENDED_MAX);
    rdma->ended[queue].ring[at % LANT_RDMA_ENDED_MAX] = (uint16_t)what;
    rdma->ended[queue].count++;
}

static void end_segment(struct lant_rdma *rdma, const struct lant_operation *operation)
{
    const uint32_t parent = operation->work.parent;
    if (!lant_work_on_segment(&rdma->work, &operation->work, operation->identifier,
                              operation->status, operation->attempts)) {
        return;
    }
    if (rdma->work.parents[parent].work.no_notif) {
        lant_work_release(&rdma->work, parent);
    } else {
        put_ended(rdma, operation->work.queue, LANT_OPERATIONS_MAX + parent);
    }
}

/* Nothing of it is to be sent, or waited for. */
static void end(struct lant_rdma *rdma, struct lant_operation *operation, uint64_t now)
{
    const uint32_t slot = slot_of(rdma, operation);
    operation->status |= operation->sent == operation->packets ? LANT_STATUS_COMPLETE : 0;
    operation->phase = LANT_OPERATION_ENDED;
    rdma->tells &= ~(UINT64_C(1) << slot);
    rdma->timed &= ~(UINT64_C(1) << slot);
    rdma->counters.ended++;
    if (operation->work.parent != LANT_NO_PARENT) {
        end_segment(rdma, operation);
    } else if (!operation->work.no_notif) {
        put_ended(rdma, operation->work.queue, slot);
        return;
    }
    lant_operation_close(&rdma->operations, slot, now);
}

/* No packet of it is on its way, but perhaps an unanswered copy. */
static void settle(struct lant_rdma *rdma, struct lant_operation *operation, uint64_t now)
{
    const uint64_t bit = UINT64_C(1) << slot_of(rdma, operation);
    rdma->timed &= ~bit;
    if (operation->given_up || operation->registered) {
        end(rdma, operation, now);
    } else {
        operation->phase = LANT_OPERATION_TELLS;
        rdma->tells |= bit;
    }
}

/* Its last packet was answered or given up. Registered operations need no wait: their receiver
 * knows duplicates. */
static void complete(struct lant_rdma *rdma, struct lant_operation *operation, uint64_t now)
{
    CHECK(operation->phase == LANT_OPERATION_ACTIVE && operation->in_flight == 0);
    if (rdma->config.mpl_hold && !operation->registered && operation->copies_until > now) {
        operation->phase = LANT_OPERATION_HOLDS;
        operation->deadline = operation->copies_until;
        rdma->timed |= UINT64_C(1) << slot_of(rdma, operation);
        rdma->counters.held++;
        return;
    }
    settle(rdma, operation, now);
}

/* -- Failures -----------------------------------------------------------------------------------*/

static uint32_t status_of(enum lant_response response)
{
    return response == LANT_SLVERR   ? LANT_STATUS_SLAVE_ERROR
           : response == LANT_DECERR ? LANT_STATUS_DECODE_ERROR
                                     : LANT_STATUS_INTERNAL_ERROR;
}

static void interrupt(struct lant_rdma *rdma, const struct lant_rdma_failure *failure)
{
    rdma->counters.interrupts++;
    if (rdma->failures.count == LANT_RDMA_FAILURES_MAX) {
        rdma->failures.head = (uint16_t)((rdma->failures.head + 1u) % LANT_RDMA_FAILURES_MAX);
        rdma->failures.count--;
        rdma->counters.interrupts_lost++;
    }
    const uint32_t at = rdma->failures.head + (uint32_t)rdma->failures.count;
    rdma->failures.ring[at % LANT_RDMA_FAILURES_MAX] = *failure;
    rdma->failures.count++;
}

/* The first packet of an operation has failed for good: interrupts, and says why. */
static void report(struct lant_rdma *rdma, struct lant_operation *operation, uint32_t offset,
                   uint32_t attempts, enum lant_response response, uint64_t now)
{
    const bool told = operation->phase != LANT_OPERATION_ACTIVE;
    operation->given_up = true;
    rdma->counters.failed++;
    interrupt(rdma, &(struct lant_rdma_failure){
                        .time = now,
                        .source = lant_operation_packet_source(operation, offset),
                        .destination = lant_operation_packet_destination(operation, offset),
                        .identifier = operation->identifier,
                        .offset = offset,
                        .tag = operation->work.tag,
                        .queue = operation->work.queue,
                        .attempts = (uint8_t)attempts,
                        .response = (uint8_t)response,
                        .told = told});
}

static void forget_current(struct lant_rdma_current *current, uint32_t identifier)
{
    if (current->active && current->identifier == identifier) {
        *current = (struct lant_rdma_current){0};
    }
}

/* Nothing of the operation is pushed from now on. */
static void give_up(struct lant_rdma *rdma, struct lant_operation *operation,
                    const struct lant_transaction *failed, enum lant_response response,
                    uint64_t now)
{
    operation->status |= status_of(response);
    if (operation->given_up) {
        return;
    }
    report(rdma, operation, failed->offset, failed->attempt + 1u, response, now);
    forget_current(&rdma->current, operation->identifier);
    forget_current(&rdma->aside, operation->identifier);
    (void)lant_retransmissions_forget(&rdma->retransmissions, operation->identifier);
    operation->partials = 0;
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* A copy that was sent then has no answer. */
static void leave_copy(const struct lant_rdma *rdma, struct lant_operation *operation,
                       uint64_t sent_at)
{
    const uint64_t until = sent_at + rdma->config.lifetime;
    operation->copies_until = until > operation->copies_until ? until : operation->copies_until;
}

/* The row is free afterwards. */
static struct lant_operation *take_row(struct lant_rdma *rdma, uint32_t row,
                                       struct lant_transaction *packet)
{
    *packet = rdma->transactions.table[row];
    struct lant_operation *operation = lant_operation_find(&rdma->operations, packet->identifier);
    CHECK(operation != NULL && operation->in_flight != 0);
    lant_transaction_free(&rdma->transactions, row);
    operation->in_flight--;
    if (rdma->serial_row == row) {
        rdma->serial_row = LANT_NO_ROW;
    }
    return operation;
}

/* It goes again, if it may. */
static void fail_packet(struct lant_rdma *rdma, struct lant_operation *operation,
                        const struct lant_transaction *packet, enum lant_response response,
                        uint64_t now)
{
    if (operation->given_up) {
        return;
    }
    if (packet->attempt >= rdma->config.retries) {
        give_up(rdma, operation, packet, response, now);
        return;
    }
    lant_retransmissions_put(&rdma->retransmissions,
                             (struct lant_partial){.first_at = packet->first_at,
                                                   .identifier = packet->identifier,
                                                   .offset = packet->offset & 0xffffff,
                                                   .attempt = packet->attempt + 1u});
    operation->partials++;
}

static void after_packet(struct lant_rdma *rdma, struct lant_operation *operation, uint64_t now)
{
    if (operation->in_flight == 0 && (operation->given_up || operation->remaining == 0)) {
        complete(rdma, operation, now);
    }
}

void lant_rdma_give_up_current(struct lant_rdma *rdma, uint64_t now)
{
    const struct lant_rdma_current current = rdma->current;
    struct lant_operation *operation = lant_operation_find(&rdma->operations, current.identifier);
    CHECK(operation != NULL && current.again);
    const struct lant_transaction last = {.offset = current.offset,
                                          .attempt = (uint8_t)(current.attempt - 1)};
    give_up(rdma, operation, &last, LANT_OKAY, now);
    after_packet(rdma, operation, now);
}

static enum lant_rdma_answer on_packet_answer(struct lant_rdma *rdma, uint64_t now,
                                              const struct lant_footer *answer)
{
    const enum lant_rdma_answer verdict = lant_transaction_judge(&rdma->transactions, answer);
    struct lant_transaction packet;
    struct lant_operation *operation;
    switch (verdict) {
    case LANT_RDMA_ANSWER_POSITIVE:
        operation = take_row(rdma, answer->row, &packet);
        operation->remaining--;
        break;
    case LANT_RDMA_ANSWER_NEGATIVE:
        operation = take_row(rdma, answer->row, &packet);
        fail_packet(rdma, operation, &packet, (enum lant_response)answer->response, now);
        break;
    case LANT_RDMA_ANSWER_FINAL:
        operation = take_row(rdma, answer->row, &packet);
        give_up(rdma, operation, &packet, (enum lant_response)answer->response, now);
        break;
    case LANT_RDMA_ANSWER_STALE:
    case LANT_RDMA_ANSWER_OLDER:
    case LANT_RDMA_ANSWER_FOREIGN:
    case LANT_RDMA_ANSWER_COUNT:
    default: return verdict;
    }
    if (answer->attempt != packet.attempt) {
        leave_copy(rdma, operation, packet.sent_at);
    }
    after_packet(rdma, operation, now);
    return verdict;
}

/* -- COMPLETION_NOTIFICATIONs -------------------------------------------------------------------*/

static void fail_telling(struct lant_rdma *rdma, struct lant_operation *operation,
                         enum lant_response response, uint64_t now)
{
    operation->status |= status_of(response);
    report(rdma, operation, 0, operation->copies, response, now);
    end(rdma, operation, now);
}

/* The newest copy has failed: another one, if it may. */
static void tell_again(struct lant_rdma *rdma, struct lant_operation *operation,
                       enum lant_response response, uint64_t now)
{
    const uint64_t bit = UINT64_C(1) << slot_of(rdma, operation);
    if (operation->copies > rdma->config.retries) {
        fail_telling(rdma, operation, response, now);
        return;
    }
    operation->phase = LANT_OPERATION_TELLS;
    rdma->timed &= ~bit;
    rdma->tells |= bit;
}

static enum lant_rdma_answer judge_telling(struct lant_operation *operation,
                                           const struct lant_footer *answer)
{
    if (operation == NULL || answer->offset != 0 ||
        (operation->phase != LANT_OPERATION_TELLS && operation->phase != LANT_OPERATION_TOLD)) {
        return LANT_RDMA_ANSWER_STALE;
    }
    const enum lant_rdma_answer verdict = lant_answer_judge(answer, operation->copies);
    /* The next copy waits to be sent already. */
    const bool again = operation->phase == LANT_OPERATION_TELLS;
    return verdict == LANT_RDMA_ANSWER_NEGATIVE && again ? LANT_RDMA_ANSWER_OLDER : verdict;
}

static enum lant_rdma_answer on_telling_answer(struct lant_rdma *rdma, uint64_t now,
                                               const struct lant_footer *answer)
{
    struct lant_operation *operation =
        answer->row == lant_operation_slot(&rdma->operations, lant_operation_of(answer))
            ? lant_operation_find(&rdma->operations, lant_operation_of(answer))
            : NULL;
    const enum lant_rdma_answer verdict = judge_telling(operation, answer);
    switch (verdict) {
    case LANT_RDMA_ANSWER_POSITIVE: end(rdma, operation, now); break;
    case LANT_RDMA_ANSWER_NEGATIVE:
        tell_again(rdma, operation, (enum lant_response)answer->response, now);
        break;
    case LANT_RDMA_ANSWER_FINAL:
        fail_telling(rdma, operation, (enum lant_response)answer->response, now);
        break;
    case LANT_RDMA_ANSWER_STALE:
    case LANT_RDMA_ANSWER_OLDER:
    case LANT_RDMA_ANSWER_FOREIGN:
    case LANT_RDMA_ANSWER_COUNT:
    default: break;
    }
    return verdict;
}

/* Switches on the way may say that a packet was damaged, or that there is no such node; all else is
 * the destination's to say. */
static bool may_answer(struct lant_rdma *rdma, const struct lant_footer *answer)
{
    const enum lant_response response = (enum lant_response)answer->response;
    const struct lant_operation *operation =
        lant_operation_find(&rdma->operations, lant_operation_of(answer));
    return operation == NULL || lant_response_is_nack(response) || response == LANT_DECERR ||
           answer->source == lant_global_node(operation->work.destination);
}

enum lant_rdma_answer lant_rdma_on_answer(struct lant_rdma *rdma, uint64_t now,
                                          const struct lant_footer *answer)
{
    INVARIANTS(lant_rdma_check(rdma));
    enum lant_rdma_answer verdict = LANT_RDMA_ANSWER_FOREIGN;
    if (!may_answer(rdma, answer)) {
        /* Nobody asked this node. */
    } else if (answer->class == LANT_CLASS_RDMA) {
        verdict = on_packet_answer(rdma, now, answer);
    } else if (answer->class == LANT_CLASS_NOTIFICATION) {
        verdict = on_telling_answer(rdma, now, answer);
    }
    rdma->counters.answers[verdict]++;
    INVARIANTS(lant_rdma_check(rdma));
    return verdict;
}

/* -- Time ---------------------------------------------------------------------------------------*/

uint64_t lant_rdma_deadline(const struct lant_rdma *rdma)
{
    uint64_t deadline = lant_transactions_deadline(&rdma->transactions);
    deadline = rdma->identifier_at < deadline ? rdma->identifier_at : deadline;
    for (uint64_t timed = rdma->timed; timed != 0; timed &= timed - 1) {
        const uint64_t at = rdma->operations.table[__builtin_ctzll(timed)].deadline;
        deadline = at < deadline ? at : deadline;
    }
    return deadline;
}

static void expire_rows(struct lant_rdma *rdma, uint64_t now)
{
    for (;;) {
        const uint16_t row = lant_transactions_expired(&rdma->transactions, now);
        if (row == LANT_NO_ROW) {
            return;
        }
        struct lant_transaction packet;
        struct lant_operation *operation = take_row(rdma, row, &packet);
        rdma->counters.timeouts++;
        leave_copy(rdma, operation, packet.sent_at);
        fail_packet(rdma, operation, &packet, LANT_OKAY, now);
        after_packet(rdma, operation, now);
    }
}

void lant_rdma_on_time(struct lant_rdma *rdma, uint64_t now)
{
    INVARIANTS(lant_rdma_check(rdma));
    expire_rows(rdma, now);
    for (uint64_t timed = rdma->timed; timed != 0; timed &= timed - 1) {
        struct lant_operation *operation = &rdma->operations.table[__builtin_ctzll(timed)];
        if (operation->deadline > now) {
            continue;
        }
        if (operation->phase == LANT_OPERATION_HOLDS) {
            settle(rdma, operation, now);
        } else {
            rdma->counters.timeouts++;
            tell_again(rdma, operation, LANT_OKAY, now);
        }
    }
    if (rdma->identifier_at <= now) {
        rdma->identifier_at = LANT_NEVER;
    }
    INVARIANTS(lant_rdma_check(rdma));
}

/* -- Notifications ------------------------------------------------------------------------------*/

static void notify_operation(struct lant_rdma *rdma, uint32_t slot, uint64_t now,
                             struct lant_notification *notification)
{
    const struct lant_operation *operation = &rdma->operations.table[slot];
    *notification = (struct lant_notification){.kind = LANT_NOTIFY_SENT,
                                               .attempts = operation->attempts,
                                               .operation = operation->identifier,
                                               .tag = operation->work.tag,
                                               .bytes = operation->work.bytes,
                                               .status = operation->status,
                                               .source = operation->work.source,
                                               .destination = operation->work.destination};
    lant_operation_close(&rdma->operations, slot, now);
}

static void notify_parent(struct lant_rdma *rdma, uint32_t at,
                          struct lant_notification *notification)
{
    const struct lant_parent *parent = &rdma->work.parents[at];
    *notification = (struct lant_notification){.kind = LANT_NOTIFY_SENT,
                                               .attempts = parent->attempts,
                                               .operation = parent->operation,
                                               .tag = parent->work.tag,
                                               .bytes = parent->work.descriptor.bytes,
                                               .status = parent->status,
                                               .source = parent->work.descriptor.source,
                                               .destination = parent->work.descriptor.destination};
    lant_work_release(&rdma->work, at);
}

bool lant_rdma_next_notification(struct lant_rdma *rdma, uint64_t now, enum lant_queue queue,
                                 struct lant_notification *notification)
{
    INVARIANTS(lant_rdma_check(rdma));
    if (rdma->ended[queue].count == 0) {
        return false;
    }
    const uint32_t what = rdma->ended[queue].ring[rdma->ended[queue].head];
    rdma->ended[queue].head = (uint16_t)((rdma->ended[queue].head + 1u) % LANT_RDMA_ENDED_MAX);
    rdma->ended[queue].count--;
    if (what < LANT_OPERATIONS_MAX) {
        notify_operation(rdma, what, now, notification);
    } else {
        notify_parent(rdma, what - LANT_OPERATIONS_MAX, notification);
    }
    INVARIANTS(lant_rdma_check(rdma));
    return true;
}

bool lant_rdma_next_interrupt(struct lant_rdma *rdma, struct lant_rdma_failure *failure)
{
    if (rdma->failures.count == 0) {
        return false;
    }
    *failure = rdma->failures.ring[rdma->failures.head];
    rdma->failures.head = (uint16_t)((rdma->failures.head + 1u) % LANT_RDMA_FAILURES_MAX);
    rdma->failures.count--;
    return true;
}
