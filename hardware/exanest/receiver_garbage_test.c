/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Beats by chance break nothing: no CHECK, no hang, no write outside of what a good header
 *         named, and a good block behind them is received.
 * Method  100,000 beats for each of three mixtures, from random words to packets of which any part
 *         may be missing, doubled, or another packet's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/exanest/receiver_rig.h"

#define BEATS   100000u
#define HEADERS 64u

/* The good headers of late: a write must lie in what one of them names. */
struct named {
    struct exanest_header headers[HEADERS];
    uint32_t count;
};

static struct test_packet some_packet(struct prng *prng)
{
    static uint8_t payload[EXANEST_PAYLOAD_BYTES_MAX];
    struct exanest_header header = {
        .target = {.va = prng_below(prng, 50) == 0 ? prng_next(prng) >> 22
                                                   : prng_below(prng, 1u << 16)},
        .pdid = (uint16_t)prng_below(prng, 2),
        .type = (uint8_t)(prng_below(prng, 3) == 0 ? 1 + prng_below(prng, EXANEST_FLOW_RATE)
                                                   : EXANEST_WRITE),
        .has_footer = prng_below(prng, 20) != 0,
        .priority = prng_below(prng, 5) == 0,
    };
    if (header.has_footer) {
        header.bytes = (uint16_t)prng_below(prng, 257 - header.target.va % 16);
    }
    const struct exanest_footer footer = {
        .tid = (uint16_t)prng_below(prng, 8),
        .source = (uint32_t)prng_below(prng, 4),
        .sequence = (uint16_t)(prng_below(prng, 4) - 2) & (EXANEST_SEQUENCES - 1),
        .first = prng_below(prng, 2),
        .last = prng_below(prng, 2),
        .notify = prng_below(prng, 2),
    };
    return test_packet(&header, &footer, payload);
}

static struct exanest_beat some_beat(struct prng *prng, uint32_t mixture)
{
    const struct test_packet packet = some_packet(prng);
    struct exanest_beat beat = packet.beats[prng_below(prng, packet.count)];
    if (mixture == 0) {
        beat.word = (struct exanest_word){prng_next(prng), prng_next(prng)};
        beat.part = (enum exanest_part)prng_below(prng, 3);
    }
    if (prng_below(prng, 10) == 0) {
        beat.part = (enum exanest_part)prng_below(prng, 3);
    }
    beat.last = prng_below(prng, 10) == 0 ? !beat.last : beat.last;
    return beat;
}

static void name(struct named *named, const struct exanest_beat *beat)
{
    struct exanest_header header;
    if (beat->part == EXANEST_HEADER &&
        exanest_header_decode(beat->word, &header) == EXANEST_GOOD) {
        named->headers[named->count++ % HEADERS] = header;
    }
}

static void check_write(const struct named *named, const struct exanest_memory_write *write)
{
    const uint64_t mask = (UINT64_C(1) << EXANEST_MEMORY_BITS) - 1;
    assert_int_equal(write->va % 16, 0);
    assert_true(write->va <= mask - 15);
    if (write->lanes == 0) {
        return;
    }
    const uint64_t from = write->va + (uint32_t)__builtin_ctz(write->lanes);
    const uint64_t to = write->va + 32 - (uint32_t)__builtin_clz(write->lanes);
    for (uint32_t i = 0; i < HEADERS; i++) {
        const struct exanest_header *header = &named->headers[i];
        const uint64_t va = header->target.va & mask;
        if (header->pdid == write->pdid && va <= from && to <= va + header->bytes &&
            (header->type == EXANEST_WRITE || header->type == EXANEST_NOTIFICATION) &&
            !exanest_va_is_peripheral(header->target.va)) {
            return;
        }
    }
    fail_msg("a write outside of every header");
}

struct garbage {
    struct rig *rig;
    struct named named;
    uint32_t bursts;
};

/* A cycle whose writes are looked at, and answered by chance. */
static void cycle(struct garbage *garbage)
{
    struct exanest_memory_write write;
    struct exanest_beat beat;
    struct rig *rig = garbage->rig;
    if (exanest_receiver_next_write(&rig->receiver, &write)) {
        check_write(&garbage->named, &write);
        garbage->bursts += write.last;
    }
    if (garbage->bursts > 0 && prng_below(&rig->prng, 4) == 0) {
        static const enum exanest_axi_response responses[] = {
            EXANEST_AXI_OKAY, EXANEST_AXI_OKAY, EXANEST_AXI_SLAVE_ERROR, EXANEST_AXI_DECODE_ERROR};
        garbage->bursts--;
        exanest_receiver_on_write_response(&rig->receiver, responses[prng_below(&rig->prng, 4)]);
    }
    if (exanest_receiver_offer(&rig->receiver, &beat)) {
        exanest_receiver_taken(&rig->receiver);
        assert_true(test_collect(&rig->sending, &beat) >= 0);
    }
    exanest_receiver_step(&rig->receiver);
}

static void feed(struct garbage *garbage, const struct exanest_beat *beat)
{
    uint32_t cycles = 0;
    while (!exanest_receiver_ready(&garbage->rig->receiver, beat)) {
        cycle(garbage);
        cycles++;
        assert_true(cycles < 1000); /* If not, it hangs. */
    }
    name(&garbage->named, beat);
    exanest_receiver_take(&garbage->rig->receiver, beat);
    cycle(garbage);
}

/* A block of one packet, under a TID that the garbage does not have: is it answered with ACK? */
static void good_block(struct garbage *garbage)
{
    struct rig *rig = garbage->rig;
    static const uint8_t payload[100];
    const struct exanest_header header = {
        .target.va = 0x100, .type = EXANEST_WRITE, .bytes = 100, .has_footer = true};
    const struct exanest_footer footer = {.tid = 999, .source = 99, .first = true, .last = true};
    const struct test_packet packet = test_packet(&header, &footer, payload);
    for (uint32_t i = 0; i < packet.count; i++) {
        name(&garbage->named, &packet.beats[i]);
        assert_true(exanest_receiver_ready(&rig->receiver, &packet.beats[i]) || i == 0);
        feed(garbage, &packet.beats[i]);
    }
    while (garbage->bursts > 0 || rig->receiver.writes > 0) {
        if (rig->receiver.arrivals == 1 && garbage->bursts == 1) {
            exanest_receiver_on_write_response(&rig->receiver, EXANEST_AXI_OKAY);
            garbage->bursts--;
        }
        cycle(garbage);
    }
    assert_true(rig_drain(rig));
}

static void test_garbage(void **state)
{
    (void)state;
    for (uint32_t mixture = 0; mixture < 3; mixture++) {
        const struct exanest_receiver_parameters parameters =
            exanest_receiver_defaults(RIG_COORDINATE);
        struct garbage garbage = {.rig = rig_new(&parameters, mixture)};
        struct rig *rig = garbage.rig;
        for (uint32_t i = 0; i < BEATS;) {
            if (mixture < 2) {
                const struct exanest_beat beat = some_beat(&rig->prng, mixture);
                feed(&garbage, &beat);
                i++;
                continue;
            }
            const struct test_packet packet = some_packet(&rig->prng);
            for (uint32_t word = 0; word < packet.count; word++, i++) {
                if (prng_below(&rig->prng, 30) != 0) {
                    feed(&garbage, &packet.beats[word]);
                }
            }
        }
        const uint64_t before = rig->receiver.intake.counters.outcomes[EXANEST_WHOLE];
        good_block(&garbage);
        assert_int_equal(rig->receiver.intake.counters.outcomes[EXANEST_WHOLE], before + 1);
        assert_true(mixture == 0 || rig->receiver.counters.words_written > 1000);
        exanest_context_check(&rig->receiver.table);
        free(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_garbage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
