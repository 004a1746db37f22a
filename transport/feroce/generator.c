/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/generator.h"

#include "base/bytes.h"

#define FS_PER_NS 1000000u

/* Decimal 12345678, or DEADBEEF in 2024, as four octets. */
static uint32_t immediate_of(enum feroce_stack stack)
{
    uint32_t immediate = 0;
    store_be32(&immediate, stack == FEROCE_STACK_2024 ? 0xdeadbeef : 12345678);
    return immediate;
}

void feroce_generator_init(struct feroce_generator *generator, enum feroce_stack stack,
                           uint64_t cycle_fs)
{
    *generator =
        (struct feroce_generator){.stack = stack, .cycle_fs = cycle_fs, .due = INSTANT_NEVER};
}

void feroce_generator_open(struct feroce_generator *generator)
{
    feroce_generator_stop(generator);
    generator->word = 0;
}

/* One period of (frequency + 1) cycles after `due`; a part of a nanosecond is kept for the next
 * one. */
static void wait_a_period(struct feroce_generator *generator)
{
    const uint64_t cycles = (uint64_t)generator->meta.frequency + 1;
    const uint64_t fs = cycles * generator->cycle_fs + generator->lost_fs;
    generator->due = instant_after(generator->due, fs / FS_PER_NS);
    generator->lost_fs = fs % FS_PER_NS;
}

bool feroce_generator_start(struct feroce_generator *generator, const struct feroce_meta *meta,
                            struct instant now)
{
    const uint32_t length = meta->length & ~3u;
    if (generator->running || length == 0 || meta->count == 0) {
        return false;
    }
    generator->running = true;
    generator->meta = *meta;
    generator->meta.length = length;
    generator->left = meta->count;
    generator->offset = 0;
    generator->due = now;
    generator->lost_fs = 0;
    wait_a_period(generator);
    return true;
}

void feroce_generator_stop(struct feroce_generator *generator)
{
    generator->running = false;
    generator->due = INSTANT_NEVER;
}

struct instant feroce_generator_deadline(const struct feroce_generator *generator)
{
    return generator->due;
}

bool feroce_generator_next(struct feroce_generator *generator, struct instant now,
                           struct feroce_message *message)
{
    if (!generator->running || !instant_reached(now, generator->due)) {
        return false;
    }
    const struct feroce_meta *meta = &generator->meta;
    const uint64_t wrap = generator->stack == FEROCE_STACK_2024 ? 1u << 18 : 1u << 16;
    *message = (struct feroce_message){
        .write = meta->write,
        .has_immediate = meta->immediate,
        .immediate = immediate_of(generator->stack),
        .offset = generator->offset,
        .length = meta->length,
    };
    if (meta->length <= FEROCE_OFFSET_LENGTH_MAX) {
        generator->offset = (generator->offset + meta->length) % wrap;
    }
    wait_a_period(generator);
    if (instant_before(generator->due, now)) {
        generator->due = now; /* The queue was slower: missed messages are not made up for. */
    }
    if (--generator->left == 0) {
        feroce_generator_stop(generator);
    }
    return true;
}

void feroce_generator_fill(struct feroce_generator *generator, uint8_t *out, uint32_t bytes)
{
    feroce_pattern(generator->word, out, bytes);
    generator->word += bytes / 4;
}

void feroce_pattern(uint32_t word, uint8_t *out, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 4) {
        store_le32(out + at, word++);
    }
}
