/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/exanetizer.h"

static bool sends_data(const struct exanest_exanetizer *exanetizer)
{
    return exanetizer->state >= EXANEST_SEND_HEADER && exanetizer->state <= EXANEST_SEND_FOOTER;
}

void exanest_exanetizer_check(const struct exanest_exanetizer *exanetizer,
                              const struct exanest_output_buffer *buffer,
                              const struct exanest_control_slot *control)
{
    CHECK(exanetizer->state <= EXANEST_SEND_CONTROL_FOOTER);
    CHECK(exanetizer->state != EXANEST_EXANETIZER_IDLE || !exanetizer->taken);
    CHECK(exanetizer->sent <= exanetizer->words);
    if (exanetizer->state >= EXANEST_SEND_HEADER && exanetizer->state <= EXANEST_PAYLOAD_WAIT) {
        CHECK(buffer->used >> exanetizer->slot & 1);
        CHECK((buffer->filled >> exanetizer->slot & 1) == 0);
    }
    if (exanetizer->state > EXANEST_SEND_FOOTER) {
        CHECK(control->ready);
    }
}

static void show(struct exanest_exanetizer *exanetizer, enum exanest_exanetizer_state state,
                 enum exanest_part part, struct exanest_word word)
{
    exanetizer->state = (uint8_t)state;
    exanetizer->beat =
        (struct exanest_beat){.part = part, .last = part == EXANEST_FOOTER, .word = word};
}

/* Chooses the next packet, behind a footer or at rest. */
static void choose(struct exanest_exanetizer *exanetizer, struct exanest_output_buffer *buffer,
                   const struct exanest_control_slot *control)
{
    exanetizer->sent = 0;
    exanetizer->crc = 0;
    exanetizer->words = 0;
    if (control->ready) {
        exanetizer->words = 2;
        show(exanetizer, EXANEST_SEND_CONTROL_HEADER, EXANEST_HEADER,
             exanest_header_encode(&control->header));
        return;
    }
    const int winner = exanest_buffer_winner(buffer, exanetizer->port);
    if (winner < 0) {
        exanetizer->state = EXANEST_EXANETIZER_IDLE;
        return;
    }
    exanest_buffer_latch(buffer, (uint32_t)winner);
    exanetizer->slot = (uint8_t)winner;
    const struct exanest_header *header = &buffer->slots[winner].header;
    exanetizer->words = (uint8_t)exanest_payload_words(header->target.va, header->bytes);
    show(exanetizer, EXANEST_SEND_HEADER, EXANEST_HEADER, exanest_header_encode(header));
    exanetizer->counters.bytes += header->bytes;
}

static void show_payload(struct exanest_exanetizer *exanetizer, enum exanest_exanetizer_state state,
                         const struct exanest_word *payload)
{
    const struct exanest_word word = payload[exanetizer->sent++];
    exanetizer->crc = exanest_payload_crc(exanetizer->crc, word);
    show(exanetizer, state, EXANEST_PAYLOAD, word);
}

static void show_footer(struct exanest_exanetizer *exanetizer, enum exanest_exanetizer_state state,
                        const struct exanest_footer *footer)
{
    exanetizer->footer = *footer;
    exanetizer->footer.payload_crc = exanetizer->crc;
    show(exanetizer, state, EXANEST_FOOTER, exanest_footer_encode(&exanetizer->footer));
}

/* Header or payload of a data packet was taken. */
static void go_on(struct exanest_exanetizer *exanetizer, struct exanest_output_buffer *buffer)
{
    const struct exanest_slot *slot = &buffer->slots[exanetizer->slot];
    if (exanetizer->sent < exanetizer->words) {
        show_payload(exanetizer, EXANEST_SEND_PAYLOAD, slot->payload);
        return;
    }
    show_footer(exanetizer, EXANEST_SEND_FOOTER, &slot->footer);
    if (!exanetizer->holds_slot) {
        exanest_buffer_release(buffer, exanetizer->slot, 0);
    }
}

static void go_on_control(struct exanest_exanetizer *exanetizer,
                          const struct exanest_control_slot *control)
{
    if (exanetizer->sent < exanetizer->words) {
        show_payload(exanetizer, EXANEST_SEND_CONTROL_PAYLOAD, control->payload);
    } else {
        show_footer(exanetizer, EXANEST_SEND_CONTROL_FOOTER, &control->footer);
    }
}

/* The footer was taken. */
static void finish(struct exanest_exanetizer *exanetizer, struct exanest_output_buffer *buffer,
                   struct exanest_control_slot *control)
{
    if (sends_data(exanetizer)) {
        exanetizer->counters.packets++;
        if (exanetizer->holds_slot) {
            exanest_buffer_release(buffer, exanetizer->slot, exanetizer->hold_cycles);
        }
    } else {
        exanetizer->counters.control_packets++;
        exanest_control_consume(control);
    }
    choose(exanetizer, buffer, control);
}

void exanest_exanetizer_step(struct exanest_exanetizer *exanetizer,
                             struct exanest_output_buffer *buffer,
                             struct exanest_control_slot *control)
{
    INVARIANTS(exanest_exanetizer_check(exanetizer, buffer, control));
    if (exanetizer->state == EXANEST_EXANETIZER_IDLE) {
        choose(exanetizer, buffer, control);
        return;
    }
    if (!exanetizer->taken) {
        exanetizer->counters.waits++;
        if (exanetizer->state == EXANEST_SEND_PAYLOAD) {
            exanetizer->state = EXANEST_PAYLOAD_WAIT;
        }
        return;
    }
    exanetizer->taken = false;
    switch ((enum exanest_exanetizer_state)exanetizer->state) {
    case EXANEST_SEND_HEADER:
    case EXANEST_SEND_PAYLOAD:
    case EXANEST_PAYLOAD_WAIT: go_on(exanetizer, buffer); break;
    case EXANEST_SEND_CONTROL_HEADER:
    case EXANEST_SEND_CONTROL_PAYLOAD: go_on_control(exanetizer, control); break;
    case EXANEST_SEND_FOOTER:
    case EXANEST_SEND_CONTROL_FOOTER: finish(exanetizer, buffer, control); break;
    case EXANEST_EXANETIZER_IDLE: UNREACHABLE("left above");
    }
    INVARIANTS(exanest_exanetizer_check(exanetizer, buffer, control));
}
