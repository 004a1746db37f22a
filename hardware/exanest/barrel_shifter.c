/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/barrel_shifter.h"

/* Lanes below `lane`: the low `lane` bytes of a word. */
static const struct exanest_word below[EXANEST_WORD_BYTES + 1] = {
    {0, 0},
    {0xff, 0},
    {0xffff, 0},
    {0xffffff, 0},
    {0xffffffff, 0},
    {0xffffffffff, 0},
    {0xffffffffffff, 0},
    {0xffffffffffffff, 0},
    {UINT64_MAX, 0},
    {UINT64_MAX, 0xff},
    {UINT64_MAX, 0xffff},
    {UINT64_MAX, 0xffffff},
    {UINT64_MAX, 0xffffffff},
    {UINT64_MAX, 0xffffffffff},
    {UINT64_MAX, 0xffffffffffff},
    {UINT64_MAX, 0xffffffffffffff},
    {UINT64_MAX, UINT64_MAX},
};

void exanest_shifter_init(struct exanest_shifter *shifter, uint32_t cycles, uint32_t bubble,
                          uint32_t slots, struct exanest_shift_command *commands)
{
    CHECK(cycles <= EXANEST_SHIFTER_CYCLES_MAX && bubble < UINT8_MAX && slots < EXANEST_NO_SLOT);
    *shifter = (struct exanest_shifter){.cycles = (uint8_t)cycles,
                                        .bubble = (uint8_t)bubble,
                                        .slots = (uint16_t)slots,
                                        .commands = commands};
    for (uint32_t id = 0; id < EXANEST_AXI_IDS; id++) {
        shifter->channels[id].head = EXANEST_NO_SLOT;
    }
}

void exanest_shifter_check(const struct exanest_shifter *shifter)
{
    for (uint32_t id = 0; id < EXANEST_AXI_IDS; id++) {
        const struct exanest_shift_channel *channel = &shifter->channels[id];
        if (channel->head == EXANEST_NO_SLOT) {
            CHECK(channel->beats == 0 && channel->words == 0);
            continue;
        }
        CHECK(channel->head < shifter->slots && channel->tail < shifter->slots);
        const struct exanest_shift_command *command = &shifter->commands[channel->head];
        CHECK(command->slot == channel->head);
        CHECK(channel->beats < command->beats && channel->words < command->words);
        CHECK(shifter->commands[channel->tail].next == EXANEST_NO_SLOT);
    }
    CHECK((shifter->due >> (shifter->now & (EXANEST_SHIFTER_LINE - 1)) & 1) == 0);
}

void exanest_shifter_command(struct exanest_shifter *shifter, uint32_t axi_id, uint32_t slot,
                             uint64_t source, uint64_t target, uint32_t bytes)
{
    INVARIANTS(exanest_shifter_check(shifter));
    CHECK(axi_id < EXANEST_AXI_IDS && slot < shifter->slots);
    CHECK(bytes >= 1 && bytes <= EXANEST_PAYLOAD_BYTES_MAX);
    const uint32_t words = exanest_payload_words(target, bytes);
    CHECK(words <= EXANEST_PAYLOAD_WORDS_MAX);
    shifter->commands[slot] = (struct exanest_shift_command){
        .slot = (uint16_t)slot,
        .next = EXANEST_NO_SLOT,
        .bytes = (uint16_t)bytes,
        .source_lane = source % EXANEST_WORD_BYTES,
        .target_lane = target % EXANEST_WORD_BYTES,
        .beats = (uint8_t)exanest_payload_words(source, bytes),
        .words = (uint8_t)words,
    };
    struct exanest_shift_channel *channel = &shifter->channels[axi_id];
    if (channel->head == EXANEST_NO_SLOT) {
        channel->head = (uint16_t)slot;
    } else {
        shifter->commands[channel->tail].next = (uint16_t)slot;
    }
    channel->tail = (uint16_t)slot;
    INVARIANTS(exanest_shifter_check(shifter));
}

/* Byte i of the word becomes byte i + `lanes`, cyclically. */
static struct exanest_word rotated(struct exanest_word word, uint32_t lanes)
{
    if (lanes & 8) {
        word = (struct exanest_word){word.high, word.low};
    }
    const uint32_t bits = (lanes & 7) * 8;
    if (bits == 0) {
        return word;
    }
    return (struct exanest_word){word.low << bits | word.high >> (64 - bits),
                                 word.high << bits | word.low >> (64 - bits)};
}

/* The lanes of `upper` from `lane` on, those of `lower` below it. */
static struct exanest_word joined(struct exanest_word lower, struct exanest_word upper,
                                  uint32_t lane)
{
    const struct exanest_word mask = below[lane];
    return (struct exanest_word){(lower.low & mask.low) | (upper.low & ~mask.low),
                                 (lower.high & mask.high) | (upper.high & ~mask.high)};
}

/* Puts the channel's next word into the line. Bytes outside of the packet become 0. */
static void emit(struct exanest_shifter *shifter, struct exanest_shift_channel *channel,
                 const struct exanest_shift_command *command, struct exanest_word word,
                 uint32_t cycles)
{
    const struct exanest_word zero = {0, 0};
    if (channel->words == 0) {
        word = joined(zero, word, command->target_lane);
    }
    channel->words++;
    if (channel->words == command->words) {
        const uint32_t end = (command->target_lane + command->bytes - 1u) % EXANEST_WORD_BYTES + 1;
        word = joined(word, zero, end);
    }
    const uint32_t at = (shifter->now + cycles) % EXANEST_SHIFTER_LINE;
    CHECK((shifter->due >> at & 1) == 0);
    shifter->due |= (uint16_t)(1u << at);
    shifter->line[at] = (struct exanest_shifted){
        .word = word, .slot = command->slot, .response = channel->response};
}

void exanest_shifter_beat(struct exanest_shifter *shifter, const struct exanest_read_beat *beat)
{
    INVARIANTS(exanest_shifter_check(shifter));
    CHECK(exanest_shifter_ready(shifter) && beat->axi_id < EXANEST_AXI_IDS);
    struct exanest_shift_channel *channel = &shifter->channels[beat->axi_id];
    CHECK(channel->head != EXANEST_NO_SLOT);
    const struct exanest_shift_command *command = &shifter->commands[channel->head];
    const uint32_t shift =
        (uint32_t)(command->target_lane - command->source_lane) % EXANEST_WORD_BYTES;
    const struct exanest_word word = rotated(beat->word, shift);
    /* The slot's write register is a cycle more. */
    const uint32_t cycles = shifter->cycles + 1u;
    shifter->beat = true;
    channel->response |= beat->response;
    /* Where bytes move down, the first beat only fills the carry. */
    if (command->target_lane >= command->source_lane || channel->beats != 0) {
        emit(shifter, channel, command, joined(channel->carry, word, shift), cycles);
    }
    channel->carry = word;
    channel->beats++;
    if (channel->beats < command->beats) {
        INVARIANTS(exanest_shifter_check(shifter));
        return;
    }
    shifter->busy = shifter->bubble;
    if (channel->words < command->words) {
        emit(shifter, channel, command, word, cycles + 1);
        shifter->busy++;
    }
    CHECK(channel->words == command->words);
    channel->head = command->next;
    channel->beats = 0;
    channel->words = 0;
    channel->response = EXANEST_AXI_OKAY;
    INVARIANTS(exanest_shifter_check(shifter));
}

bool exanest_shifter_step(struct exanest_shifter *shifter, struct exanest_shifted *out)
{
    if (shifter->beat) {
        shifter->beat = false;
    } else if (shifter->busy != 0) {
        shifter->busy--;
    }
    shifter->now = (uint8_t)((shifter->now + 1u) % EXANEST_SHIFTER_LINE);
    const uint16_t bit = (uint16_t)(1u << shifter->now);
    if ((shifter->due & bit) == 0) {
        return false;
    }
    shifter->due &= (uint16_t)~bit;
    *out = shifter->line[shifter->now];
    return true;
}
