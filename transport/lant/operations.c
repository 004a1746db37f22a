/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/operations.h"

#define SLOT_BITS_LEAST 4 /* A slot's, of OPN. */
#define WORD_BITS       3 /* SIZE: 8 bytes a beat. */

/* The payload of a COMPLETION_NOTIFICATION. */
#define COMPLETION_BYTES_AT 32
#define COMPLETION_OPN_AT   20
#define COMPLETION_TAG_MASK ((1u << 20) - 1)

#define OPN_MASK 0xfffu

static uint32_t bits_of(uint32_t slots)
{
    uint32_t bits = SLOT_BITS_LEAST;
    while (1u << bits < slots) {
        bits++;
    }
    return bits;
}

void lant_operations_init(struct lant_operations *operations, uint32_t slots, uint32_t generations)
{
    CHECK(slots >= 1 && slots <= LANT_OPERATIONS_MAX);
    const uint32_t slot_bits = bits_of(slots);
    const uint32_t most = 1u << (LANT_IDENTIFIER_BITS - slot_bits);
    CHECK(generations != 1 && (generations & (generations - 1)) == 0 && generations <= most);
    *operations = (struct lant_operations){
        .slots = (uint16_t)slots,
        .slot_bits = (uint8_t)slot_bits,
        .free = slots == 64 ? UINT64_MAX : (UINT64_C(1) << slots) - 1,
    };
    for (uint32_t i = 0; i < slots; i++) {
        operations->generations[i].count = generations == 0 ? most : generations;
    }
}

static void check_operation(const struct lant_operation *operation)
{
    const uint32_t unsent = operation->packets - operation->sent;
    CHECK(operation->sent <= operation->packets && operation->remaining <= operation->packets);
    CHECK(operation->packets ==
          (operation->work.bytes + LANT_PAYLOAD_BYTES_MAX - 1) / LANT_PAYLOAD_BYTES_MAX);
    CHECK(operation->remaining >= unsent + operation->in_flight + operation->partials);
    if (!operation->given_up) {
        CHECK(operation->remaining == unsent + operation->in_flight + operation->partials);
    } else {
        CHECK(operation->partials == 0 && (operation->status & LANT_STATUS_ERRORS) != 0);
    }
    if (operation->phase == LANT_OPERATION_ACTIVE) {
        CHECK(operation->in_flight != 0 || (!operation->given_up && operation->remaining != 0));
        CHECK(operation->copies == 0);
    } else {
        CHECK(operation->in_flight == 0 && (operation->given_up || operation->remaining == 0));
    }
    const bool tells = operation->phase == LANT_OPERATION_TELLS;
    CHECK(!(tells || operation->phase == LANT_OPERATION_TOLD) ||
          (!operation->registered && !operation->given_up));
    CHECK(operation->phase != LANT_OPERATION_TOLD || operation->copies != 0);
}

void lant_operations_check(const struct lant_operations *operations)
{
    uint32_t used = 0;
    for (uint32_t slot = 0; slot < operations->slots; slot++) {
        const struct lant_operation *operation = &operations->table[slot];
        const bool free = operation->phase == LANT_OPERATION_FREE;
        CHECK(free == (operations->free >> slot & 1));
        if (!free) {
            CHECK(lant_operation_slot(operations, operation->identifier) == slot);
            CHECK(operation->identifier >> LANT_IDENTIFIER_BITS == 0);
            check_operation(operation);
            used++;
        }
    }
    CHECK(used == operations->used && used <= operations->used_max);
    CHECK(operations->used_max <= operations->slots);
}

uint16_t lant_operations_find(const struct lant_operations *operations, uint64_t now,
                              uint64_t lifetime, uint64_t *until)
{
    *until = UINT64_MAX;
    for (uint64_t free = operations->free; free != 0; free &= free - 1) {
        const uint32_t slot = (uint32_t)__builtin_ctzll(free);
        const struct lant_identifiers *generations = &operations->generations[slot];
        if (lant_identifier_free(generations, now, lifetime)) {
            *until = UINT64_MAX;
            return (uint16_t)slot;
        }
        const uint64_t from = lant_identifier_free_at(generations, lifetime);
        *until = from < *until ? from : *until;
    }
    return LANT_NO_SLOT;
}

struct lant_operation *lant_operation_open(struct lant_operations *operations, uint32_t slot,
                                           const struct lant_work_operation *work, uint64_t now)
{
    CHECK(slot < operations->slots && (operations->free >> slot & 1) != 0);
    const uint32_t generation = lant_identifier_take(&operations->generations[slot], now);
    struct lant_operation *operation = &operations->table[slot];
    const uint32_t packets = (work->bytes + LANT_PAYLOAD_BYTES_MAX - 1) / LANT_PAYLOAD_BYTES_MAX;
    *operation = (struct lant_operation){.work = *work,
                                         .identifier = generation << operations->slot_bits | slot,
                                         .packets = packets,
                                         .remaining = packets,
                                         .phase = LANT_OPERATION_ACTIVE};
    operations->free &= ~(UINT64_C(1) << slot);
    operations->used++;
    if (operations->used > operations->used_max) {
        operations->used_max = operations->used;
    }
    return operation;
}

void lant_operation_close(struct lant_operations *operations, uint32_t slot, uint64_t now)
{
    CHECK(slot < operations->slots && (operations->free >> slot & 1) == 0);
    lant_identifier_over(&operations->generations[slot],
                         operations->table[slot].identifier >> operations->slot_bits, now);
    operations->table[slot].phase = LANT_OPERATION_FREE;
    operations->free |= UINT64_C(1) << slot;
    operations->used--;
}

bool lant_operation_may_register(const struct lant_work_operation *work,
                                 const struct lant_register_rule *rule)
{
    return !rule->off && work->may_register && !work->keyhole &&
           work->bytes <= rule->mask_bits * LANT_PAYLOAD_BYTES_MAX &&
           work->bytes <= rule->bytes_at_most;
}

static enum lant_type type_of(const struct lant_operation *operation, uint32_t offset)
{
    if (!operation->registered) {
        return LANT_RDMA_UNREGISTERED;
    }
    return offset == 0 ? LANT_RDMA_WRITE_REGISTER : LANT_RDMA_WRITE;
}

void lant_operation_packet(const struct lant_operation *operation, uint32_t offset,
                           struct lant_packet *packet)
{
    CHECK(offset < operation->packets);
    const uint32_t bytes = lant_operation_packet_bytes(operation, offset);
    const uint64_t destination = lant_operation_packet_destination(operation, offset);
    const uint32_t in_last = (bytes - 1) % LANT_FLIT_BYTES + 1;
    const enum lant_type type = type_of(operation, offset);
    packet->header = (struct lant_header){
        .destination = lant_global_node(destination),
        .type = (uint8_t)type,
        .payload = (uint8_t)((bytes + LANT_FLIT_BYTES - 1) / LANT_FLIT_BYTES),
        .packets = type == LANT_RDMA_WRITE_REGISTER ? (uint16_t)operation->packets : 0,
        .priority = operation->work.priority,
        .keyhole = operation->work.keyhole,
        .extended = operation->work.keyhole,
        .address = lant_global_address(destination),
        .strobe = (uint8_t)((1u << in_last) - 1),
        .size = WORD_BITS,
        .sequence = operation->work.keyhole ? offset : 0,
        .total = operation->work.keyhole ? operation->packets : 0,
    };
    packet->footer = (struct lant_footer){.class = LANT_CLASS_RDMA,
                                          .generation = (uint8_t)(operation->identifier >> 12),
                                          .operation = (uint16_t)(operation->identifier & OPN_MASK),
                                          .offset = offset};
}

void lant_operation_completion(const struct lant_operation *operation, struct lant_packet *packet)
{
    const struct lant_work_operation *work = &operation->work;
    packet->header = (struct lant_header){
        .destination = lant_global_node(work->destination),
        .type = LANT_COMPLETION_NOTIFICATION,
        .payload = 1,
        .priority = work->priority,
        .address = lant_global_address(work->destination),
        .strobe = 0xff,
        .size = WORD_BITS,
    };
    packet->footer =
        (struct lant_footer){.class = LANT_CLASS_NOTIFICATION,
                             .generation = (uint8_t)(operation->identifier >> 12),
                             .operation = (uint16_t)(operation->identifier & OPN_MASK)};
    packet->payload[0] = (uint64_t)work->bytes << COMPLETION_BYTES_AT |
                         (uint64_t)(operation->identifier & OPN_MASK) << COMPLETION_OPN_AT |
                         (work->tag & COMPLETION_TAG_MASK);
}
