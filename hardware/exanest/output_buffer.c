/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/output_buffer.h"

#include "hardware/exanest/axi.h"

#define BIT(slot) ((uint16_t)(1u << (slot)))

void exanest_buffer_init(struct exanest_output_buffer *buffer, uint32_t slot_count,
                         struct exanest_slot *slots)
{
    CHECK(slot_count >= 1 && slot_count <= EXANEST_SLOTS_MAX);
    *buffer = (struct exanest_output_buffer){.slot_count = (uint8_t)slot_count, .slots = slots};
}

void exanest_buffer_check(const struct exanest_output_buffer *buffer)
{
    uint16_t seen = 0;
    CHECK(buffer->used_count <= buffer->slot_count);
    for (uint32_t i = 0; i < buffer->used_count; i++) {
        const uint32_t slot = buffer->by_age[i];
        CHECK(slot < buffer->slot_count && (seen & BIT(slot)) == 0);
        seen |= BIT(slot);
        CHECK((buffer->filled & BIT(slot)) == 0 || buffer->slots[slot].left == 0);
        CHECK(buffer->slots[slot].written + buffer->slots[slot].left <= EXANEST_PAYLOAD_WORDS_MAX);
    }
    CHECK(seen == buffer->used);
    CHECK((buffer->filled & ~buffer->used) == 0 && (buffer->waiting & ~buffer->used) == 0);
    CHECK((buffer->filled & buffer->waiting) == 0);
}

uint32_t exanest_buffer_allocate(struct exanest_output_buffer *buffer, uint32_t port)
{
    INVARIANTS(exanest_buffer_check(buffer));
    CHECK(exanest_buffer_has_room(buffer));
    const uint32_t slot = (uint32_t)__builtin_ctz(~(uint32_t)buffer->used);
    buffer->used |= BIT(slot);
    buffer->by_age[buffer->used_count++] = (uint8_t)slot;
    struct exanest_slot *taken = &buffer->slots[slot];
    taken->port = (uint8_t)port;
    taken->written = 0;
    taken->left = 0;
    taken->response = EXANEST_AXI_OKAY;
    INVARIANTS(exanest_buffer_check(buffer));
    return slot;
}

void exanest_buffer_describe(struct exanest_output_buffer *buffer, uint32_t slot,
                             const struct exanest_header *header,
                             const struct exanest_footer *footer)
{
    CHECK(buffer->used & BIT(slot));
    struct exanest_slot *described = &buffer->slots[slot];
    CHECK(described->written == 0 && described->left == 0);
    described->header = *header;
    described->footer = *footer;
    described->left = (uint8_t)exanest_payload_words(header->target.va, header->bytes);
    CHECK(described->left >= 1 && described->left <= EXANEST_PAYLOAD_WORDS_MAX);
}

/* The slot is free, and those behind it are one nearer to their turn. */
static void set_free(struct exanest_output_buffer *buffer, uint32_t slot)
{
    uint32_t at = 0;
    while (buffer->by_age[at] != slot) {
        at++;
        CHECK(at < buffer->used_count);
    }
    buffer->used_count--;
    for (; at < buffer->used_count; at++) {
        buffer->by_age[at] = buffer->by_age[at + 1];
    }
    buffer->used &= (uint16_t)~BIT(slot);
}

enum exanest_fill exanest_buffer_write(struct exanest_output_buffer *buffer, uint32_t slot,
                                       struct exanest_word word, uint32_t response)
{
    INVARIANTS(exanest_buffer_check(buffer));
    CHECK(slot < buffer->slot_count && buffer->used & BIT(slot));
    struct exanest_slot *written = &buffer->slots[slot];
    CHECK(written->left != 0);
    written->payload[written->written++] = word;
    written->response |= (uint8_t)response;
    written->left--;
    enum exanest_fill fill = EXANEST_FILLING;
    if (written->left == 0 && written->response >= EXANEST_AXI_SLAVE_ERROR) {
        set_free(buffer, slot);
        fill = EXANEST_FAULTED;
    } else if (written->left == 0) {
        buffer->filled |= BIT(slot);
        fill = EXANEST_FILLED;
    }
    INVARIANTS(exanest_buffer_check(buffer));
    return fill;
}

int exanest_buffer_winner(const struct exanest_output_buffer *buffer, uint32_t port)
{
    if (buffer->filled == 0) {
        return -1;
    }
    for (uint32_t i = 0; i < buffer->used_count; i++) {
        const uint32_t slot = buffer->by_age[i];
        if (buffer->filled & BIT(slot) && buffer->slots[slot].port == port) {
            return (int)slot;
        }
    }
    return -1;
}

void exanest_buffer_latch(struct exanest_output_buffer *buffer, uint32_t slot)
{
    CHECK(slot < buffer->slot_count && buffer->filled & BIT(slot));
    buffer->filled &= (uint16_t)~BIT(slot);
}

void exanest_buffer_release(struct exanest_output_buffer *buffer, uint32_t slot, uint32_t cycles)
{
    INVARIANTS(exanest_buffer_check(buffer));
    CHECK(slot < buffer->slot_count && buffer->used & BIT(slot));
    CHECK(((buffer->filled | buffer->waiting) & BIT(slot)) == 0 && buffer->slots[slot].left == 0);
    CHECK(cycles <= UINT16_MAX);
    if (cycles == 0) {
        set_free(buffer, slot);
    } else {
        buffer->slots[slot].wait = (uint16_t)cycles;
        buffer->waiting |= BIT(slot);
    }
    INVARIANTS(exanest_buffer_check(buffer));
}

void exanest_buffer_step(struct exanest_output_buffer *buffer)
{
    for (uint32_t left = buffer->waiting; left != 0; left &= left - 1) {
        const uint32_t slot = (uint32_t)__builtin_ctz(left);
        if (--buffer->slots[slot].wait == 0) {
            buffer->waiting &= (uint16_t)~BIT(slot);
            set_free(buffer, slot);
        }
    }
    INVARIANTS(exanest_buffer_check(buffer));
}
