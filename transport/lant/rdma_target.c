/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/rdma_target.h"

void lant_rdma_target_init(struct lant_rdma_target *target,
                           const struct lant_rdma_target_config *config,
                           const struct lant_ranges *ranges, void *tombstones)
{
    CHECK(config->node < LANT_NODES_MAX && config->age_ticks > 0);
    target->config = *config;
    target->ranges = ranges;
    target->arrivals_first = target->arrivals_count = target->arrivals_held = 0;
    target->counters = (struct lant_rdma_target_counters){0};
    lant_tombstones_init(&target->tombstones, config->tombstones, config->lifetime_ticks,
                         tombstones);
    lant_registrations_init(&target->registrations, config->entries, config->mask_bits);
    lant_escape_init(&target->escape, config->escapes, config->escape_ticks);
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static const struct lant_rdma_arrival *arrival_at(const struct lant_rdma_target *target,
                                                  uint32_t nth)
{
    return &target->arrivals[(target->arrivals_first + nth) % LANT_ARRIVALS_MAX];
}

static void lant_rdma_target_check(const struct lant_rdma_target *target)
{
    uint32_t held = 0, complete = 0;
    lant_registrations_check(&target->registrations);
    lant_escape_check(&target->escape);
    for (uint32_t i = 0; i < target->arrivals_count; i++) {
        const struct lant_rdma_arrival *arrival = arrival_at(target, i);
        held += !arrival->registered;
        CHECK(arrival->bytes >= 1 && arrival->bytes < LANT_RDMA_BYTES);
        CHECK(!arrival->registered ||
              lant_registrations_row(&target->registrations, arrival->row)->state ==
                  LANT_ROW_COMPLETE);
    }
    for (uint32_t i = 0; i < target->registrations.entries; i++) {
        complete += target->registrations.rows[i].state == LANT_ROW_COMPLETE;
    }
    CHECK(held == target->arrivals_held && held <= LANT_ARRIVALS_HELD);
    CHECK(held + complete == target->arrivals_count);
    CHECK(!target->config.strict_thesis || target->tombstones.count == 0);
}

/* -- Judging ------------------------------------------------------------------------------------*/

struct judgement {
    enum lant_rdma_target_verdict verdict;
    uint16_t bytes;
    uint16_t row;    /* LANT_ROW_NONE: it has none, or none yet. */
    uint16_t packet; /* Which of its operation. */
    bool registers;  /* With LANT_RDMA_TARGET_WRITE: a row is to be taken. */
};

/* Bytes of an RDMA packet's payload; 0: its last flit has holes, or the packet none. */
static uint32_t payload_bytes(const struct lant_header *header)
{
    const uint32_t strobe = header->strobe;
    if (header->payload == 0 || header->payload > LANT_PAYLOAD_FLITS_MAX || strobe == 0 ||
        (strobe & (strobe + 1)) != 0) {
        return 0;
    }
    return (header->payload - 1u) * LANT_FLIT_BYTES + (uint32_t)__builtin_ctz(~strobe);
}

static bool may_write(const struct lant_rdma_target *target, uint64_t address, uint32_t bytes)
{
    return lant_ranges_allow(target->ranges, address, bytes, LANT_ACCESS_WRITE);
}

/* The packet is part of a row's operation. */
static enum lant_rdma_target_verdict judge_in_row(const struct lant_rdma_target *target,
                                                  const struct judgement *judgement,
                                                  const struct lant_packet *packet)
{
    switch (lant_registrations_mark(&target->registrations, judgement->row, judgement->packet)) {
    case LANT_MARK_WRITTEN: return LANT_RDMA_TARGET_DUPLICATE;
    case LANT_MARK_TAKEN: return LANT_RDMA_TARGET_UNDER_WAY;
    case LANT_MARK_NEW: break;
    }
    return may_write(target, packet->header.address, judgement->bytes) ? LANT_RDMA_TARGET_WRITE
                                                                       : LANT_RDMA_TARGET_ILLEGAL;
}

/* The target answers a known packet before it looks for reasons to refuse it: the memory of a
 * complete operation may be offered no more. Of a new operation all packets' addresses are judged,
 * as far as they are known. */
static void judge_register(const struct lant_rdma_target *target, uint64_t now,
                           const struct lant_packet *packet, struct judgement *judgement)
{
    const struct lant_header *header = &packet->header;
    const struct lant_buried operation = {.source = packet->footer.source,
                                          .operation = lant_operation_of(&packet->footer),
                                          .packets = header->packets,
                                          .base = header->address};
    const uint32_t before_last = (header->packets - 1u) * LANT_PAYLOAD_BYTES_MAX;
    if (packet->footer.offset != 0 || header->packets == 0 ||
        (header->packets > 1 && judgement->bytes != LANT_PAYLOAD_BYTES_MAX)) {
        judgement->verdict = LANT_RDMA_TARGET_INCONSISTENT;
        return;
    }
    if (header->packets > target->config.mask_bits) {
        judgement->verdict = LANT_RDMA_TARGET_TOO_LONG;
        return;
    }
    judgement->row = (uint16_t)lant_registrations_find_base(
        &target->registrations, operation.source, operation.operation, operation.base);
    if (judgement->row != LANT_ROW_NONE) {
        const struct lant_row *row = lant_registrations_row(&target->registrations, judgement->row);
        judgement->verdict = row->packets == header->packets
                                 ? judge_in_row(target, judgement, packet)
                                 : LANT_RDMA_TARGET_INCONSISTENT;
    } else if (lant_tombstones_has_register(&target->tombstones, now, &operation)) {
        judgement->verdict = LANT_RDMA_TARGET_DUPLICATE;
    } else if (!may_write(target, header->address,
                          before_last + (header->packets > 1 ? 1 : judgement->bytes))) {
        judgement->verdict = LANT_RDMA_TARGET_ILLEGAL;
    } else if (lant_registrations_full(&target->registrations)) {
        judgement->verdict = LANT_RDMA_TARGET_TABLE_FULL;
    } else {
        judgement->registers = true;
    }
}

/* A packet of a registered operation, which is not its first. */
static void judge_member(const struct lant_rdma_target *target, uint64_t now,
                         const struct lant_packet *packet, struct judgement *judgement)
{
    const uint32_t source = packet->footer.source;
    const uint32_t operation = lant_operation_of(&packet->footer);
    const uint64_t address = packet->header.address;
    judgement->row =
        (uint16_t)lant_registrations_find(&target->registrations, source, operation, address);
    if (judgement->row != LANT_ROW_NONE) {
        const struct lant_row *row = lant_registrations_row(&target->registrations, judgement->row);
        const uint64_t behind = address - row->base;
        judgement->packet = (uint16_t)(behind / LANT_PAYLOAD_BYTES_MAX);
        judgement->verdict = behind % LANT_PAYLOAD_BYTES_MAX != 0 ||
                                     packet->footer.offset != judgement->packet ||
                                     (judgement->packet + 1u < row->packets &&
                                      judgement->bytes != LANT_PAYLOAD_BYTES_MAX)
                                 ? LANT_RDMA_TARGET_INCONSISTENT
                                 : judge_in_row(target, judgement, packet);
    } else if (lant_tombstones_has_packet(&target->tombstones, now, source, operation, address)) {
        judgement->verdict = LANT_RDMA_TARGET_DUPLICATE;
    } else if (!may_write(target, address, judgement->bytes)) {
        judgement->verdict = LANT_RDMA_TARGET_ILLEGAL;
    } else {
        judgement->verdict = lant_escape_full(&target->escape) ? LANT_RDMA_TARGET_ESCAPE_FULL
                                                               : LANT_RDMA_TARGET_ESCAPED;
    }
}

static void judge_data(const struct lant_rdma_target *target, uint64_t now,
                       const struct lant_packet *packet, struct judgement *judgement)
{
    const struct lant_header *header = &packet->header;
    judgement->bytes = (uint16_t)payload_bytes(header);
    if (judgement->bytes == 0 || header->address % LANT_FLIT_BYTES != 0) {
        judgement->verdict = LANT_RDMA_TARGET_INCONSISTENT;
        return;
    }
    if (header->keyhole) {
        /* All packets of a keyhole have one address, so no mask can tell them apart. */
        if (!target->config.keyhole || header->type != LANT_RDMA_UNREGISTERED) {
            judgement->verdict = LANT_RDMA_TARGET_KEYHOLE;
        } else if (!may_write(target, header->address, LANT_FLIT_BYTES)) {
            judgement->verdict = LANT_RDMA_TARGET_ILLEGAL;
        }
    } else if (header->type == LANT_RDMA_WRITE_REGISTER) {
        judge_register(target, now, packet, judgement);
    } else if (header->type == LANT_RDMA_WRITE) {
        judge_member(target, now, packet, judgement);
    } else if (!may_write(target, header->address, judgement->bytes)) {
        judgement->verdict = LANT_RDMA_TARGET_ILLEGAL;
    }
}

static uint32_t notified_bytes(const struct lant_packet *packet)
{
    return (uint32_t)(packet->payload[0] >> 32);
}

/* Payload 63:32 bytes, 31:20 operation, 19:0 user tag. */
static enum lant_rdma_target_verdict judge_notification(const struct lant_rdma_target *target,
                                                        uint64_t now,
                                                        const struct lant_packet *packet)
{
    if (packet->header.payload != 1 || notified_bytes(packet) == 0 ||
        notified_bytes(packet) >= LANT_RDMA_BYTES ||
        (packet->payload[0] >> 20 & 0xfff) != packet->footer.operation) {
        return LANT_RDMA_TARGET_INCONSISTENT;
    }
    if (lant_tombstones_has_notification(&target->tombstones, now, packet->footer.source,
                                         lant_operation_of(&packet->footer))) {
        return LANT_RDMA_TARGET_DUPLICATE;
    }
    return target->arrivals_held < LANT_ARRIVALS_HELD ? LANT_RDMA_TARGET_NOTIFIED
                                                      : LANT_RDMA_TARGET_HELD;
}

static void judge(const struct lant_rdma_target *target, uint64_t now,
                  const struct lant_packet *packet, struct judgement *judgement)
{
    *judgement = (struct judgement){.verdict = LANT_RDMA_TARGET_WRITE, .row = LANT_ROW_NONE};
    if (packet->header.destination != target->config.node) {
        judgement->verdict = LANT_RDMA_TARGET_ASTRAY;
        return;
    }
    switch (packet->header.type) {
    case LANT_RDMA_WRITE:
    case LANT_RDMA_WRITE_REGISTER:
    case LANT_RDMA_UNREGISTERED: judge_data(target, now, packet, judgement); break;
    case LANT_COMPLETION_NOTIFICATION:
        judgement->verdict = judge_notification(target, now, packet);
        break;
    default: UNREACHABLE("a packet for somebody else");
    }
}

/* -- Applying -----------------------------------------------------------------------------------*/

/* An answer repeats the footer of its packet. */
static void make_answer(const struct lant_rdma_target *target, const struct lant_footer *footer,
                        uint8_t priority, enum lant_response response, struct lant_packet *answer)
{
    answer->header = (struct lant_header){
        .destination = footer->source, .type = LANT_RDMA_ACK, .priority = priority};
    answer->footer = *footer;
    answer->footer.source = target->config.node;
    answer->footer.response = (uint8_t)response;
}

static void answer_packet(const struct lant_rdma_target *target, const struct lant_packet *packet,
                          enum lant_response response, struct lant_rdma_action *action,
                          struct lant_packet *answer)
{
    action->answers = true;
    make_answer(target, &packet->footer, packet->header.priority, response, answer);
}

static void push_arrival(struct lant_rdma_target *target, const struct lant_rdma_arrival *arrival)
{
    CHECK(target->arrivals_count < LANT_ARRIVALS_MAX);
    target->arrivals[(target->arrivals_first + target->arrivals_count) % LANT_ARRIVALS_MAX] =
        *arrival;
    target->arrivals_count++;
    target->arrivals_held = (uint16_t)(target->arrivals_held + !arrival->registered);
}

static void apply_notification(struct lant_rdma_target *target, uint64_t now,
                               const struct lant_packet *packet)
{
    const struct lant_rdma_arrival arrival = {
        .row = LANT_ROW_NONE,
        .source = packet->footer.source,
        .operation = lant_operation_of(&packet->footer),
        .tag = (uint32_t)(packet->payload[0] & 0xfffff),
        .bytes = notified_bytes(packet),
        .address = packet->header.address,
    };
    push_arrival(target, &arrival);
    if (!target->config.strict_thesis) {
        const struct lant_buried buried = {
            .source = arrival.source, .operation = arrival.operation, .base = arrival.address};
        lant_tombstones_plant(&target->tombstones, now, &buried);
    }
}

/* A row is not freed while its packet is on its way into memory. It is touched when the packet is
 * there. */
static void touch(struct lant_rdma_target *target, uint64_t now, uint32_t row)
{
    if (row != LANT_ROW_NONE && target->registrations.rows[row].state == LANT_ROW_ACTIVE) {
        lant_registrations_touch(&target->registrations, now, row);
    }
}

static uint16_t apply_register(struct lant_rdma_target *target, uint64_t now,
                               const struct lant_packet *packet)
{
    const struct lant_registering registering = {
        .source = packet->footer.source,
        .operation = lant_operation_of(&packet->footer),
        .base = packet->header.address,
        .packets = packet->header.packets,
    };
    (void)lant_escape_release(&target->escape,
                              lant_operation_key(registering.source, registering.operation),
                              registering.base, registering.packets);
    target->counters.registered++;
    return (uint16_t)lant_registrations_add(&target->registrations, now, &registering);
}

static void apply_write(struct lant_rdma_target *target, uint64_t now,
                        const struct lant_packet *packet, const struct judgement *judgement,
                        struct lant_rdma_write *write)
{
    const uint16_t row =
        judgement->registers ? apply_register(target, now, packet) : judgement->row;
    *write = (struct lant_rdma_write){
        .address = packet->header.address,
        .bytes = judgement->bytes,
        .fixed = packet->header.keyhole,
        .priority = packet->header.priority,
        .row = row,
        .packet = judgement->packet,
        .footer = packet->footer,
    };
    if (row != LANT_ROW_NONE) {
        write->birth = lant_registrations_row(&target->registrations, row)->birth;
        lant_registrations_take(&target->registrations, row, judgement->packet, judgement->bytes);
    }
}

static void receive(struct lant_rdma_target *target, uint64_t now, const struct lant_packet *packet,
                    struct lant_rdma_action *action, struct lant_packet *answer)
{
    struct judgement judgement;
    judge(target, now, packet, &judgement);
    *action = (struct lant_rdma_action){.verdict = judgement.verdict};
    target->counters.verdicts[judgement.verdict]++;
    switch (judgement.verdict) {
    case LANT_RDMA_TARGET_WRITE:
        apply_write(target, now, packet, &judgement, &action->write);
        break;
    case LANT_RDMA_TARGET_NOTIFIED:
        apply_notification(target, now, packet);
        answer_packet(target, packet, LANT_OKAY, action, answer);
        break;
    case LANT_RDMA_TARGET_DUPLICATE:
        touch(target, now, judgement.row);
        if (!target->config.strict_thesis) {
            answer_packet(target, packet, LANT_OKAY, action, answer);
        }
        break;
    case LANT_RDMA_TARGET_ESCAPED: lant_escape_put(&target->escape, now, packet); break;
    case LANT_RDMA_TARGET_ASTRAY:
    case LANT_RDMA_TARGET_ILLEGAL:
        answer_packet(target, packet, LANT_DECERR, action, answer);
        break;
    case LANT_RDMA_TARGET_INCONSISTENT:
    case LANT_RDMA_TARGET_TOO_LONG:
    case LANT_RDMA_TARGET_KEYHOLE:
        answer_packet(target, packet, LANT_SLVERR, action, answer);
        break;
    case LANT_RDMA_TARGET_UNDER_WAY:
    case LANT_RDMA_TARGET_ESCAPE_FULL:
    case LANT_RDMA_TARGET_TABLE_FULL:
    case LANT_RDMA_TARGET_HELD: break;
    case LANT_RDMA_TARGET_VERDICT_COUNT: UNREACHABLE("no verdict");
    }
}

/* -- Calls --------------------------------------------------------------------------------------*/

void lant_rdma_target_on_packet(struct lant_rdma_target *target, uint64_t now,
                                const struct lant_packet *packet, struct lant_rdma_action *action,
                                struct lant_packet *answer)
{
    INVARIANTS(lant_rdma_target_check(target));
    receive(target, now, packet, action, answer);
    INVARIANTS(lant_rdma_target_check(target));
}

bool lant_rdma_target_next_released(struct lant_rdma_target *target, uint64_t now,
                                    struct lant_packet *packet, struct lant_rdma_action *action,
                                    struct lant_packet *answer)
{
    if (!lant_escape_next_released(&target->escape, packet)) {
        return false;
    }
    target->counters.released++;
    receive(target, now, packet, action, answer);
    INVARIANTS(lant_rdma_target_check(target));
    return true;
}

/* The operation's row keeps its notification. The tombstone, whose time begins now, knows its
 * duplicates, however long the notification waits. */
static void complete(struct lant_rdma_target *target, uint64_t now,
                     const struct lant_rdma_write *write, const struct lant_row *row)
{
    const struct lant_rdma_arrival arrival = {
        .registered = true,
        .row = write->row,
        .source = write->footer.source,
        .operation = lant_operation_of(&write->footer),
        .bytes = lant_row_bytes(row),
        .address = row->base,
    };
    push_arrival(target, &arrival);
    if (!target->config.strict_thesis) {
        const struct lant_buried buried = {.source = arrival.source,
                                           .operation = arrival.operation,
                                           .packets = row->packets,
                                           .base = row->base};
        lant_tombstones_plant(&target->tombstones, now, &buried);
    }
}

void lant_rdma_target_on_written(struct lant_rdma_target *target, uint64_t now,
                                 const struct lant_rdma_write *write, enum lant_response response,
                                 struct lant_packet *answer)
{
    INVARIANTS(lant_rdma_target_check(target));
    make_answer(target, &write->footer, write->priority, response, answer);
    target->counters.written += response == LANT_OKAY;
    target->counters.write_failures += response != LANT_OKAY;
    if (write->row != LANT_ROW_NONE) {
        const struct lant_row *row = lant_registrations_row(&target->registrations, write->row);
        CHECK(row->birth == write->birth);
        touch(target, now, write->row);
        if (response != LANT_OKAY) {
            lant_registrations_give_back(&target->registrations, write->row, write->packet);
        } else if (lant_registrations_written(&target->registrations, write->row, write->packet)) {
            complete(target, now, write, row);
        }
    }
    INVARIANTS(lant_rdma_target_check(target));
}

bool lant_rdma_target_on_damaged(struct lant_rdma_target *target, const struct lant_packet *packet,
                                 struct lant_packet *answer)
{
    const uint8_t type = packet->header.type;
    if (type != LANT_RDMA_WRITE && type != LANT_RDMA_WRITE_REGISTER &&
        type != LANT_RDMA_UNREGISTERED && type != LANT_COMPLETION_NOTIFICATION) {
        return false;
    }
    make_answer(target, &packet->footer, packet->header.priority, LANT_NACK_CRC, answer);
    target->counters.nacks++;
    return true;
}

bool lant_rdma_target_next_notification(struct lant_rdma_target *target,
                                        struct lant_rdma_arrival *arrival)
{
    INVARIANTS(lant_rdma_target_check(target));
    if (target->arrivals_count == 0) {
        return false;
    }
    *arrival = *arrival_at(target, 0);
    target->arrivals_first = (uint16_t)((target->arrivals_first + 1) % LANT_ARRIVALS_MAX);
    target->arrivals_count--;
    target->counters.arrivals++;
    if (arrival->registered) {
        lant_registrations_remove(&target->registrations, arrival->row);
    } else {
        target->arrivals_held--;
    }
    INVARIANTS(lant_rdma_target_check(target));
    return true;
}

/* -- Time ---------------------------------------------------------------------------------------*/

static uint64_t age_deadline(const struct lant_rdma_target *target)
{
    const uint32_t row = lant_registrations_oldest(&target->registrations);
    return row == LANT_ROW_NONE
               ? LANT_NEVER
               : lant_time_after(target->registrations.rows[row].used_at, target->config.age_ticks);
}

uint64_t lant_rdma_target_deadline(const struct lant_rdma_target *target)
{
    uint64_t deadline = age_deadline(target);
    const uint64_t others[] = {lant_escape_deadline(&target->escape),
                               lant_tombstones_deadline(&target->tombstones)};
    for (uint32_t i = 0; i < COUNT_OF(others); i++) {
        deadline = others[i] < deadline ? others[i] : deadline;
    }
    return deadline;
}

void lant_rdma_target_on_time(struct lant_rdma_target *target, uint64_t now)
{
    INVARIANTS(lant_rdma_target_check(target));
    target->counters.expired += lant_escape_on_time(&target->escape, now);
    lant_tombstones_on_time(&target->tombstones, now);
    while (age_deadline(target) <= now) {
        const uint32_t row = lant_registrations_oldest(&target->registrations);
        if (target->registrations.rows[row].writing > 0) {
            lant_registrations_touch(&target->registrations, now, row);
        } else {
            lant_registrations_remove(&target->registrations, row);
            target->counters.aged++;
        }
    }
    INVARIANTS(lant_rdma_target_check(target));
}
