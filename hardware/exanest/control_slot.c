/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/control_slot.h"

void exanest_control_slot_check(const struct exanest_control_slot *slot)
{
    CHECK(slot->stage < EXANEST_CONTROL_STORES);
    CHECK(!slot->ready || slot->stage == 0);
    CHECK(!slot->ready || exanest_packet_words(&slot->header) == 4);
}

static void build(struct exanest_control_slot *slot, const struct exanest_descriptor *descriptor,
                  uint32_t source, uint32_t port)
{
    const struct exanest_control control = {
        .address = exanest_target_decode(slot->stores[0]),
        .data = {slot->stores[1], slot->stores[2]},
        .tid = slot->tid,
        .sequence = descriptor->sequence,
        .bytes = descriptor->bytes,
    };
    exanest_control_encode(&control, slot->payload);
    slot->header = (struct exanest_header){
        .target = {.coordinate = descriptor->target.coordinate,
                   .va = descriptor->target.va & ~(uint64_t)(EXANEST_WORD_BYTES - 1)},
        .pdid = descriptor->pdid,
        .type = EXANEST_CONTROL,
        .bytes = EXANEST_CONTROL_BYTES,
        .has_footer = true,
        .priority = true,
        .aux = descriptor->sequence,
    };
    slot->footer = (struct exanest_footer){
        .tid = slot->tid,
        .source = source,
        .sequence = descriptor->sequence,
        .notify = descriptor->notify,
        .path = (uint8_t)port,
    };
    slot->ready = true;
}

bool exanest_control_store(struct exanest_control_slot *slot, uint32_t tid, uint64_t data,
                           const struct exanest_descriptor *descriptor, uint32_t source,
                           uint32_t port)
{
    INVARIANTS(exanest_control_slot_check(slot));
    CHECK(!slot->ready);
    if (slot->stage != 0 && slot->tid != tid) {
        slot->restarts++;
        slot->stage = 0;
    }
    slot->tid = (uint16_t)tid;
    slot->stores[slot->stage++] = data;
    if (slot->stage == EXANEST_CONTROL_STORES) {
        slot->stage = 0;
        build(slot, descriptor, source, port);
    }
    INVARIANTS(exanest_control_slot_check(slot));
    return slot->ready;
}

void exanest_control_consume(struct exanest_control_slot *slot)
{
    INVARIANTS(exanest_control_slot_check(slot));
    CHECK(slot->ready);
    slot->ready = false;
}
