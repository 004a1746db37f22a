/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets leave whole and right, one behind the other, control packets first, whatever the
 *         network's Ready does.
 * Method  Made cases; random fills, control packets and Ready, while every register that was given
 *         back is spoiled at once. Behaviours EXA-27, EXA-29, EXA-30, EXA-31.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/exanetizer.h"

struct bench {
    struct exanest_exanetizer exanetizer;
    struct exanest_control_slot control;
    struct exanest_output_buffer buffer;
    struct exanest_slot slots[4];
    struct exanest_word packet[EXANEST_PACKET_WORDS_MAX];
    uint32_t count; /* Words of the packet that have come. */
    uint32_t last_tid, last_type;
    uint32_t packets;
};

static void begin(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    exanest_buffer_init(&bench->buffer, 4, bench->slots);
}

/* A slot whose words and registers follow from its identifier. */
static uint32_t fill(struct bench *bench, uint32_t tid, uint32_t bytes)
{
    const struct exanest_header header = {.target = {.coordinate = 7, .va = 256 + tid % 16},
                                          .type = EXANEST_WRITE,
                                          .bytes = (uint16_t)bytes,
                                          .has_footer = true,
                                          .aux = (uint16_t)(tid + 1)};
    const struct exanest_footer footer = {.tid = (uint16_t)tid, .sequence = (uint16_t)(tid + 1)};
    const uint32_t slot = exanest_buffer_allocate(&bench->buffer, 0);
    exanest_buffer_describe(&bench->buffer, slot, &header, &footer);
    for (uint32_t i = 0; i < exanest_payload_words(header.target.va, bytes); i++) {
        exanest_buffer_write(&bench->buffer, slot, (struct exanest_word){tid, i}, 0);
    }
    return slot;
}

static void control(struct bench *bench, uint32_t tid)
{
    const struct exanest_descriptor descriptor = {.sequence = (uint16_t)(tid + 1), .bytes = 5};
    for (uint64_t i = 0; i < 3; i++) {
        exanest_control_store(&bench->control, tid, i, &descriptor, 0, 0);
    }
}

/* Spoils slots that are free, as the scheduler may do at once. */
static void spoil(struct bench *bench)
{
    for (uint32_t slot = 0; slot < 4; slot++) {
        if ((bench->buffer.used >> slot & 1) == 0) {
            memset(&bench->slots[slot], 0xee, sizeof(bench->slots[slot]));
        }
    }
}

static void judge(struct bench *bench)
{
    struct exanest_header header;
    struct exanest_footer footer;
    uint32_t crc = 0;
    assert_int_equal(exanest_header_decode(bench->packet[0], &header), EXANEST_GOOD);
    assert_int_equal(exanest_packet_words(&header), bench->count);
    for (uint32_t i = 1; i + 1 < bench->count; i++) {
        crc = exanest_payload_crc(crc, bench->packet[i]);
        if (header.type == EXANEST_WRITE) {
            assert_true(bench->packet[i].low == header.aux - 1u && bench->packet[i].high == i - 1);
        }
    }
    assert_int_equal(exanest_footer_decode(bench->packet[bench->count - 1], &footer), EXANEST_GOOD);
    assert_int_equal(footer.payload_crc, crc);
    assert_int_equal(footer.tid + 1, header.aux);
    assert_int_equal(footer.sequence, header.aux);
    bench->last_tid = footer.tid;
    bench->last_type = header.type;
    bench->packets++;
    bench->count = 0;
}

/* A cycle. True: it ended a packet. */
static bool cycle(struct bench *bench, bool ready)
{
    struct exanest_beat beat;
    exanest_exanetizer_step(&bench->exanetizer, &bench->buffer, &bench->control);
    spoil(bench);
    if (!exanest_exanetizer_offer(&bench->exanetizer, &beat) || !ready) {
        return false;
    }
    assert_int_equal(beat.part == EXANEST_HEADER, bench->count == 0);
    bench->packet[bench->count++] = beat.word;
    exanest_exanetizer_taken(&bench->exanetizer);
    if (beat.part == EXANEST_FOOTER) {
        assert_true(beat.last);
        judge(bench);
        return true;
    }
    assert_false(beat.last);
    return false;
}

/* Header in the cycle behind the filling, then a word a cycle, packet behind packet. */
static void test_cycles(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench);
    assert_false(cycle(&bench, true));
    fill(&bench, 16, 256);
    fill(&bench, 32, 20);
    for (uint32_t i = 1; i <= 22; i++) {
        assert_int_equal(cycle(&bench, true), i == 18 || i == 22);
        if (i == 18) {
            assert_int_equal(bench.last_tid, 16);
        }
    }
    assert_int_equal(bench.last_tid, 32);
    cycle(&bench, true);
    assert_true(exanest_exanetizer_idle(&bench.exanetizer));
    assert_true(bench.exanetizer.counters.packets == 2 && bench.exanetizer.counters.bytes == 276);
}

/* EXA-27, EXA-31: not inside a packet, but before all others that wait. */
static void test_control_goes_first(void **state)
{
    (void)state;
    for (uint32_t late = 1; late <= 18; late++) {
        struct bench bench;
        begin(&bench);
        fill(&bench, 16, 256);
        fill(&bench, 32, 256);
        for (uint32_t i = 0; i < late; i++) {
            cycle(&bench, true);
        }
        control(&bench, 99);
        while (bench.packets < 2) {
            cycle(&bench, true);
        }
        assert_int_equal(bench.last_type, EXANEST_CONTROL);
        assert_true(bench.control.ready);
        cycle(&bench, false);
        assert_false(bench.control.ready);
        while (bench.packets < 3) {
            cycle(&bench, true);
        }
        assert_int_equal(bench.last_tid, 32);
    }
}

/* EXA-29: the footer waits for long, while its slot is used for another packet. */
static void test_footer_stays(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench);
    const uint32_t slot = fill(&bench, 16, 256);
    for (int i = 0; i < 17; i++) {
        cycle(&bench, true);
    }
    cycle(&bench, false);
    assert_int_equal(bench.exanetizer.state, EXANEST_SEND_FOOTER);
    assert_int_equal(fill(&bench, 32, 100), slot);
    for (int i = 0; i < 1000; i++) {
        assert_false(cycle(&bench, false));
    }
    assert_true(cycle(&bench, true));
    assert_int_equal(bench.last_tid, 16);
    while (bench.packets < 2) {
        cycle(&bench, true);
    }
    assert_int_equal(bench.last_tid, 32);
}

/* EXA-30: Ready comes and goes. A shown beat stays until then; none is lost or doubled. */
static void test_random_ready(void **state)
{
    (void)state;
    struct bench bench;
    struct prng prng;
    prng_init(&prng, 1);
    begin(&bench);
    uint32_t filled = 0, controls = 0, data = 0, controls_got = 0;
    struct exanest_beat before = {.last = false};
    bool showing = false;
    for (int round = 0; round < 500000; round++) {
        if (exanest_buffer_has_room(&bench.buffer) && prng_below(&prng, 20) == 0) {
            fill(&bench, filled++ % 1000, 1 + (uint32_t)prng_below(&prng, 240));
        }
        if (!bench.control.ready && prng_below(&prng, 100) == 0) {
            control(&bench, 1000 + controls++ % 20);
        }
        const bool ready = prng_below(&prng, 1 + (uint32_t)round / 100000) == 0;
        const uint32_t words = bench.count;
        if (cycle(&bench, ready)) {
            const bool is_control = bench.last_type == EXANEST_CONTROL;
            assert_int_equal(bench.last_tid, is_control ? 1000 + controls_got % 20 : data % 1000);
            controls_got += is_control;
            data += !is_control;
        }
        struct exanest_beat shown;
        if (showing && words == bench.count && bench.exanetizer.state != 0) {
            assert_true(exanest_exanetizer_offer(&bench.exanetizer, &shown));
            assert_memory_equal(&shown.word, &before.word, sizeof(before.word));
        }
        showing = exanest_exanetizer_offer(&bench.exanetizer, &before);
    }
    assert_true(data > 3000 && controls_got > 1000);
    assert_true(bench.exanetizer.counters.waits > 1000);
}

/* EXA-A11's variation: the slot is free only after the footer, and some cycles later. */
static void test_held_slot(void **state)
{
    (void)state;
    struct bench bench;
    begin(&bench);
    bench.exanetizer.holds_slot = true;
    bench.exanetizer.hold_cycles = 3;
    fill(&bench, 16, 16);
    for (int i = 0; i < 3; i++) {
        cycle(&bench, true);
        assert_true(bench.buffer.used_count == 1 && bench.buffer.waiting == 0);
    }
    cycle(&bench, true); /* The footer is gone. */
    assert_true(bench.buffer.used_count == 1 && bench.buffer.waiting == 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bench.buffer.used_count, 1);
        exanest_buffer_step(&bench.buffer);
    }
    assert_int_equal(bench.buffer.used_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycles),       cmocka_unit_test(test_control_goes_first),
        cmocka_unit_test(test_footer_stays), cmocka_unit_test(test_random_ready),
        cmocka_unit_test(test_held_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
