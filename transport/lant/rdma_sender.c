/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The work of the DMA engine: descriptors and their packets. rdma_sender_end.c has their end.
 */
#include "transport/lant/rdma_sender.h"

#define LONGEST (UINT64_C(1) << 56) /* Sums of times do not overflow. */

static uint64_t timeout_most(const struct lant_rdma_config *config)
{
    return config->timeout_most == 0 ? config->timeout : config->timeout_most;
}

uint64_t lant_rdma_packet_lifetime(const struct lant_rdma_config *config)
{
    return (config->retries + UINT64_C(1)) * timeout_most(config) + config->wait + config->lifetime;
}

void lant_rdma_init(struct lant_rdma *rdma, const struct lant_rdma_config *config)
{
    CHECK(config->retries <= LANT_RETRIES_MAX && config->node < LANT_NODES_MAX);
    CHECK(config->timeout >= 1 && timeout_most(config) >= config->timeout);
    CHECK(timeout_most(config) <= LONGEST && config->lifetime <= LONGEST &&
          config->wait <= LONGEST);
    CHECK(config->partials >= config->rows && config->partials <= LANT_PARTIALS_MAX);
    CHECK(config->registers.mask_bits <= LANT_REGISTER_PACKETS_MAX);
    *rdma = (struct lant_rdma){
        .config = *config, .serial_row = LANT_NO_ROW, .identifier_at = LANT_NEVER};
    lant_work_init(&rdma->work, &config->work);
    lant_operations_init(&rdma->operations, config->operations, config->generations);
    lant_transactions_init(&rdma->transactions, config->rows);
    lant_retransmissions_init(&rdma->retransmissions, config->partials);
    INVARIANTS(lant_rdma_check(rdma));
}

bool lant_rdma_idle(const struct lant_rdma *rdma)
{
    return !lant_work_waits(&rdma->work) && rdma->operations.used == 0 &&
           rdma->transactions.used == 0 && rdma->retransmissions.count == 0 &&
           !rdma->current.active && !rdma->aside.active && rdma->ended[LANT_QUEUE_CPU].count == 0 &&
           rdma->ended[LANT_QUEUE_FPGA].count == 0;
}

uint32_t lant_rdma_unanswered(const struct lant_rdma *rdma, uint32_t identifier)
{
    const uint32_t slot = lant_operation_slot(&rdma->operations, identifier);
    const struct lant_operation *operation = &rdma->operations.table[slot];
    return slot < rdma->operations.slots && operation->phase == LANT_OPERATION_ACTIVE &&
                   operation->identifier == identifier
               ? operation->in_flight
               : 0;
}

/* -- Descriptors --------------------------------------------------------------------------------*/

static enum lant_rdma_start judge_start(const struct lant_rdma *rdma, uint64_t now, uint16_t *slot,
                                        uint64_t *until)
{
    *until = LANT_NEVER;
    if (rdma->current.active) {
        return LANT_RDMA_BUSY;
    }
    const bool any = rdma->retransmissions.count != 0 || rdma->aside.active;
    if (!any && !lant_work_waits(&rdma->work)) {
        return LANT_RDMA_NOTHING;
    }
    if (rdma->serial_row != LANT_NO_ROW) {
        return LANT_RDMA_WAITS_ANSWER;
    }
    if (any) {
        return rdma->retransmissions.count != 0 ? LANT_RDMA_STARTS_PARTIAL
                                                : LANT_RDMA_STARTS_GIVEN_WAY;
    }
    if (rdma->operations.free == 0) {
        return LANT_RDMA_WAITS_SLOT;
    }
    *slot = lant_operations_find(&rdma->operations, now, lant_rdma_packet_lifetime(&rdma->config),
                                 until);
    return *slot == LANT_NO_SLOT ? LANT_RDMA_WAITS_IDENTIFIER : LANT_RDMA_STARTS_OPERATION;
}

static void start_partial(struct lant_rdma *rdma)
{
    const struct lant_partial partial = lant_retransmissions_take(&rdma->retransmissions);
    rdma->current = (struct lant_rdma_current){.active = true,
                                               .again = true,
                                               .attempt = (uint8_t)partial.attempt,
                                               .identifier = partial.identifier,
                                               .offset = partial.offset,
                                               .end = partial.offset + 1u,
                                               .first_at = partial.first_at};
}

static void start_operation(struct lant_rdma *rdma, uint16_t slot, uint64_t now)
{
    struct lant_work_operation work;
    const uint64_t most = timeout_most(&rdma->config);
    if (!lant_work_next(&rdma->work, &work)) {
        UNREACHABLE("work waited");
    }
    struct lant_operation *operation = lant_operation_open(&rdma->operations, slot, &work, now);
    operation->registered = lant_operation_may_register(&work, &rdma->config.registers);
    /* The identifier rule holds for timeouts up to this one. */
    operation->timeout = work.timeout < most ? work.timeout : most;
    if (work.timeout == 0) {
        operation->timeout = rdma->config.timeout;
    }
    rdma->current = (struct lant_rdma_current){
        .active = true, .identifier = operation->identifier, .end = operation->packets};
    rdma->counters.operations++;
    rdma->counters.registered += operation->registered;
}

static struct lant_operation *current_operation(struct lant_rdma *rdma)
{
    struct lant_operation *operation =
        lant_operation_find(&rdma->operations, rdma->current.identifier);
    CHECK(operation != NULL);
    return operation;
}

static void describe(struct lant_rdma *rdma, struct lant_rdma_descriptor *descriptor)
{
    const struct lant_operation *operation = current_operation(rdma);
    const struct lant_rdma_current *current = &rdma->current;
    const uint32_t last = current->end - 1;
    *descriptor = (struct lant_rdma_descriptor){
        .source = lant_operation_packet_source(operation, current->offset),
        .destination = lant_operation_packet_destination(operation, current->offset),
        .bytes = (last - current->offset) * LANT_PAYLOAD_BYTES_MAX +
                 lant_operation_packet_bytes(operation, last),
        .identifier = current->identifier,
        .tag = operation->work.tag,
        .queue = operation->work.queue,
    };
}

enum lant_rdma_start lant_rdma_next_descriptor(struct lant_rdma *rdma, uint64_t now,
                                               struct lant_rdma_descriptor *descriptor)
{
    INVARIANTS(lant_rdma_check(rdma));
    uint16_t slot = LANT_NO_SLOT;
    const enum lant_rdma_start start = judge_start(rdma, now, &slot, &rdma->identifier_at);
    switch (start) {
    case LANT_RDMA_STARTS_PARTIAL: start_partial(rdma); break;
    case LANT_RDMA_STARTS_GIVEN_WAY:
        rdma->current = rdma->aside;
        rdma->aside = (struct lant_rdma_current){0};
        break;
    case LANT_RDMA_STARTS_OPERATION: start_operation(rdma, slot, now); break;
    case LANT_RDMA_NOTHING:
    case LANT_RDMA_BUSY:
    case LANT_RDMA_WAITS_ANSWER:
    case LANT_RDMA_WAITS_SLOT:
    case LANT_RDMA_WAITS_IDENTIFIER:
    default: return start;
    }
    describe(rdma, descriptor);
    INVARIANTS(lant_rdma_check(rdma));
    return start;
}

/* -- Packets ------------------------------------------------------------------------------------*/

static enum lant_rdma_push_verdict judge_push(const struct lant_rdma *rdma)
{
    if (!rdma->current.active) {
        return LANT_RDMA_PUSH_NOTHING;
    }
    /* A descriptor that goes again has its place already. */
    const uint32_t places = rdma->transactions.used + rdma->retransmissions.count;
    if (!rdma->current.again && places >= rdma->config.partials) {
        return rdma->transactions.used == 0 ? LANT_RDMA_PUSH_GIVES_WAY : LANT_RDMA_PUSH_WAITS;
    }
    return lant_transactions_full(&rdma->transactions) ? LANT_RDMA_PUSH_WAITS : LANT_RDMA_PUSHED;
}

/* A copy that leaves now may come when its receiver has forgotten the operation. */
static bool is_too_late(const struct lant_rdma *rdma, uint64_t now)
{
    const struct lant_rdma_config *config = &rdma->config;
    const uint64_t most = (config->retries + UINT64_C(1)) * timeout_most(config) + config->wait;
    return config->wait != 0 && rdma->current.again &&
           now > lant_time_after(rdma->current.first_at, most);
}

static void count_packet(struct lant_rdma *rdma, struct lant_operation *operation, uint16_t row)
{
    const struct lant_rdma_current *current = &rdma->current;
    operation->in_flight++;
    if (!current->again) {
        operation->sent++;
        rdma->counters.packets++;
        return;
    }
    operation->partials--;
    if (current->attempt > operation->attempts) {
        operation->attempts = current->attempt;
    }
    if (rdma->config.serial_retransmission) {
        rdma->serial_row = row;
    }
    rdma->counters.again++;
}

static void push_packet(struct lant_rdma *rdma, uint64_t now, struct lant_packet *packet,
                        struct lant_rdma_push *push)
{
    struct lant_rdma_current *current = &rdma->current;
    struct lant_operation *operation = current_operation(rdma);
    const struct lant_transaction transaction = {.first_at = current->first_at,
                                                 .identifier = current->identifier,
                                                 .offset = current->offset,
                                                 .attempt = current->attempt};
    const uint16_t row =
        lant_transaction_take(&rdma->transactions, &transaction, now, operation->timeout);
    lant_operation_packet(operation, current->offset, packet);
    packet->footer.source = rdma->config.node;
    packet->footer.row = row;
    packet->footer.bus_id = rdma->config.bus_id;
    packet->footer.attempt = current->attempt;
    count_packet(rdma, operation, row);
    const bool ends = current->offset + 1 == current->end;
    *push = (struct lant_rdma_push){
        .source = lant_operation_packet_source(operation, current->offset),
        .bytes = lant_operation_packet_bytes(operation, current->offset),
        .identifier = current->identifier,
        .tag = operation->work.tag,
        .queue = operation->work.queue,
        .again = current->again,
        .ends = ends,
        .all = ends && !current->again && operation->work.last,
    };
    current->offset++;
    if (ends) {
        *current = (struct lant_rdma_current){0};
    }
}

enum lant_rdma_push_verdict lant_rdma_next_packet(struct lant_rdma *rdma, uint64_t now,
                                                  struct lant_packet *packet,
                                                  struct lant_rdma_push *push)
{
    INVARIANTS(lant_rdma_check(rdma));
    const enum lant_rdma_push_verdict verdict = judge_push(rdma);
    if (verdict == LANT_RDMA_PUSHED && is_too_late(rdma, now)) {
        lant_rdma_give_up_current(rdma, now);
        INVARIANTS(lant_rdma_check(rdma));
        return LANT_RDMA_PUSH_NOTHING;
    }
    switch (verdict) {
    case LANT_RDMA_PUSHED: push_packet(rdma, now, packet, push); break;
    case LANT_RDMA_PUSH_GIVES_WAY:
        CHECK(!rdma->aside.active);
        rdma->aside = rdma->current;
        rdma->current = (struct lant_rdma_current){0};
        rdma->counters.gave_way++;
        break;
    case LANT_RDMA_PUSH_NOTHING:
    case LANT_RDMA_PUSH_WAITS:
    default: return verdict;
    }
    INVARIANTS(lant_rdma_check(rdma));
    return verdict;
}

/* The next slot in turn of those in `tells`. */
static uint32_t telling_slot(const struct lant_rdma *rdma)
{
    const uint64_t behind = rdma->tells >> rdma->tells_from << rdma->tells_from;
    return (uint32_t)__builtin_ctzll(behind != 0 ? behind : rdma->tells);
}

bool lant_rdma_next_completion(struct lant_rdma *rdma, uint64_t now, struct lant_packet *packet)
{
    INVARIANTS(lant_rdma_check(rdma));
    if (rdma->tells == 0) {
        return false;
    }
    const uint32_t slot = telling_slot(rdma);
    struct lant_operation *operation = &rdma->operations.table[slot];
    lant_operation_completion(operation, packet);
    packet->footer.source = rdma->config.node;
    packet->footer.row = (uint16_t)slot;
    packet->footer.bus_id = rdma->config.bus_id;
    packet->footer.attempt = operation->copies;
    rdma->counters.told += operation->copies == 0;
    rdma->counters.told_again += operation->copies != 0;
    operation->copies++;
    operation->phase = LANT_OPERATION_TOLD;
    operation->deadline = now + operation->timeout;
    rdma->tells &= ~(UINT64_C(1) << slot);
    rdma->timed |= UINT64_C(1) << slot;
    rdma->tells_from = (uint8_t)((slot + 1) % LANT_OPERATIONS_MAX);
    INVARIANTS(lant_rdma_check(rdma));
    return true;
}
