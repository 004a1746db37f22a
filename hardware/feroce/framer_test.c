/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets are cut as 2.2 and 3.4 say, every byte of a message comes out once and in order,
 *         nothing of a packet before it is whole, and the FIFO holds 8 KB less a word.
 * Method  A plain model: all bytes that were ever given in one array, a packet being what lies
 *         between two cuts. Random messages, widths, PMTUs, sources and sinks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/feroce/framer.h"

enum {
    PHASES = 6,
    CYCLES = 2000, /* Each phase has so many. */
    PACKETS_MAX = PHASES * CYCLES,
    STREAM_BYTES = PACKETS_MAX * FEROCE_FRAMER_WIDTH_MAX,
};

/* -- The model ----------------------------------------------------------------------------------*/

struct model {
    uint32_t pmtu, width;
    uint32_t written, read; /* Bytes. */
    uint32_t packets;       /* Whole ones, ever; `gone` of them have left. */
    uint32_t gone;
    uint32_t message; /* Where the message that is being given begins. */
    uint32_t words_in, words_out;
    struct {
        uint32_t from, to;
        bool first, last;
    } packet[PACKETS_MAX];
    uint8_t bytes[STREAM_BYTES];
};

static void model_give(struct model *model, const struct feroce_beat *beat)
{
    memcpy(model->bytes + model->written, beat->bytes, beat->count);
    model->written += beat->count;
    model->words_in++;
    const uint32_t of_message = model->written - model->message;
    if (beat->last || of_message % model->pmtu == 0) {
        const uint32_t from = model->message + (of_message - 1) / model->pmtu * model->pmtu;
        model->packet[model->packets].from = from;
        model->packet[model->packets].to = model->written;
        model->packet[model->packets].first = from == model->message;
        model->packet[model->packets++].last = beat->last;
    }
    model->message = beat->last ? model->written : model->message;
}

static void assert_packet(const struct model *model, const struct feroce_framer *framer)
{
    struct feroce_cut cut;
    assert_int_equal(feroce_framer_packet(framer, &cut), model->gone < model->packets);
    if (model->gone < model->packets) {
        assert_int_equal(cut.bytes,
                         model->packet[model->gone].to - model->packet[model->gone].from);
        assert_int_equal(cut.first, model->packet[model->gone].first);
        assert_int_equal(cut.last, model->packet[model->gone].last);
    }
}

/* The sink looks, and may take. */
static void model_take(struct model *model, struct feroce_framer *framer, bool takes)
{
    struct feroce_beat beat;
    const bool offered = feroce_framer_offer(framer, &beat);
    assert_int_equal(offered, model->gone < model->packets);
    if (!offered) {
        return;
    }
    const uint32_t left = model->packet[model->gone].to - model->read;
    assert_int_equal(beat.count, left < model->width ? left : model->width);
    assert_int_equal(beat.last, left <= model->width);
    assert_memory_equal(beat.bytes, model->bytes + model->read, beat.count);
    if (takes) {
        feroce_framer_taken(framer);
        model->read += beat.count;
        model->words_out++;
        model->gone += beat.last;
    }
}

/* -- A source of messages -----------------------------------------------------------------------*/

struct source {
    struct prng prng;
    uint32_t left; /* Bytes of the message. */
};

static uint32_t some_length(struct prng *prng, uint32_t pmtu)
{
    switch (prng_below(prng, 4)) {
    case 0: return 4 + 4 * (uint32_t)prng_below(prng, 16);
    case 1: return pmtu * (1 + (uint32_t)prng_below(prng, 3));
    case 2: return pmtu * (uint32_t)prng_below(prng, 3) + 4;
    default: return 4 + 4 * (uint32_t)prng_below(prng, pmtu);
    }
}

static struct feroce_beat next_beat(struct source *source, const struct model *model)
{
    struct feroce_beat beat = {.count = 0};
    if (source->left == 0) {
        source->left = some_length(&source->prng, model->pmtu);
    }
    beat.count = (uint8_t)(source->left < model->width ? source->left : model->width);
    source->left -= beat.count;
    beat.last = source->left == 0;
    for (uint32_t i = 0; i < beat.count; i++) {
        beat.bytes[i] = (uint8_t)prng_next(&source->prng);
    }
    return beat;
}

static struct model model;
static struct feroce_framer framer;

static void begin(uint32_t width, uint32_t pmtu)
{
    const struct feroce_framer_config config = {.width_bytes = (uint16_t)width,
                                                .pmtu_bytes = (uint16_t)pmtu};
    memset(&model, 0, sizeof(model));
    model.width = width;
    model.pmtu = pmtu;
    feroce_framer_init(&framer, &config);
}

/* -- Tests --------------------------------------------------------------------------------------*/

/* A source that gives, and a sink that takes, in so many of 1,000,000 cycles. */
static void run(struct source *source, uint32_t gives, uint32_t takes)
{
    uint32_t full = 0;
    const uint32_t words = FEROCE_FRAMER_BYTES / model.width - 1;
    for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
        assert_packet(&model, &framer);
        /* A place that is left in this cycle is free in the next one. */
        const bool ready = model.words_in - model.words_out < words;
        assert_int_equal(feroce_framer_ready(&framer), ready);
        const bool given = ready && prng_chance(&source->prng, gives);
        model_take(&model, &framer, prng_chance(&source->prng, takes));
        if (given) {
            const struct feroce_beat beat = next_beat(source, &model);
            assert_int_equal(feroce_framer_take(&framer, &beat), FEROCE_BEAT_GOOD);
            model_give(&model, &beat);
        }
        full += !ready;
        feroce_framer_step(&framer);
    }
    assert_true(gives < 1000000 || takes > 0 || full > 0);
}

static void test_random(void **state)
{
    (void)state;
    static const uint32_t chances[] = {0, 100000, 500000, 900000, 1000000};
    for (uint32_t seed = 0; seed < 60; seed++) {
        struct source source = {.left = 0};
        prng_init(&source.prng, seed);
        begin(8u << prng_below(&source.prng, 5), 256u << prng_below(&source.prng, 5));
        for (uint32_t phase = 0; phase < PHASES; phase++) {
            run(&source, phase == PHASES - 1 ? 1000000 : chances[prng_below(&source.prng, 5)],
                phase == PHASES - 1 ? 0 : chances[prng_below(&source.prng, 5)]);
        }
        uint32_t drained = 0;
        for (; model.gone < model.packets; drained++) {
            model_take(&model, &framer, true);
            feroce_framer_step(&framer);
            assert_true(drained < FEROCE_FRAMER_WORDS);
        }
        assert_true(feroce_framer_idle(&framer));
        assert_int_equal(framer.counters.packets, model.packets);
        assert_int_equal(model.read, model.packet[model.packets - 1].to);
    }
}

/* Gives a message and takes its packets; returns their number, their lengths in `cuts`. */
static uint32_t cut_message(uint32_t bytes, uint32_t *cuts)
{
    uint32_t packets = 0, given = 0;
    for (bool done = false; !done;) {
        struct feroce_cut cut;
        struct feroce_beat beat;
        if (feroce_framer_offer(&framer, &beat)) {
            assert_true(feroce_framer_packet(&framer, &cut));
            assert_int_equal(cut.first, packets == 0);
            feroce_framer_taken(&framer);
            if (beat.last) {
                cuts[packets++] = cut.bytes;
                done = cut.last;
            }
        }
        if (given < bytes) {
            const uint32_t left = bytes - given;
            const uint32_t width = framer.config.width_bytes;
            memset(&beat, 0, sizeof(beat));
            beat.count = (uint8_t)(left < width ? left : width);
            beat.last = left <= width;
            given += beat.count;
            assert_int_equal(feroce_framer_take(&framer, &beat), FEROCE_BEAT_GOOD);
        }
        feroce_framer_step(&framer);
    }
    assert_int_equal(given, bytes);
    return packets;
}

/* 2.2: FIRST and MIDDLE carry PMTU bytes; up to PMTU is one packet; a multiple ends with a
 * full one. */
static void test_cuts(void **state)
{
    (void)state;
    for (uint32_t pmtu = FEROCE_FRAMER_PMTU_MIN; pmtu <= FEROCE_FRAMER_PMTU_MAX; pmtu *= 2) {
        for (uint32_t width = FEROCE_FRAMER_WIDTH_MIN; width <= FEROCE_FRAMER_WIDTH_MAX;
             width *= 2) {
            uint32_t cuts[4];
            begin(width, pmtu);
            for (uint32_t again = 0; again < 2; again++) {
                assert_int_equal(cut_message(4, cuts), 1);
                assert_int_equal(cuts[0], 4);
                assert_int_equal(cut_message(pmtu, cuts), 1);
                assert_int_equal(cuts[0], pmtu);
                assert_int_equal(cut_message(pmtu + 4, cuts), 2);
                assert_int_equal(cuts[0], pmtu);
                assert_int_equal(cuts[1], 4);
                assert_int_equal(cut_message(2 * pmtu, cuts), 2);
                assert_int_equal(cuts[1], pmtu);
                assert_int_equal(cut_message(2 * pmtu + 4, cuts), 3);
                assert_int_equal(cuts[1], pmtu);
                assert_int_equal(cuts[2], 4);
            }
            assert_int_equal(framer.counters.messages, 10);
            assert_int_equal(framer.counters.packets, 18);
        }
    }
}

/* 3.4: 8 KB less a word, so that a packet of 4,096 bytes and the next one but for a word fit; 511
 * words of 128 bits. */
static void test_capacity(void **state)
{
    (void)state;
    for (uint32_t width = FEROCE_FRAMER_WIDTH_MIN; width <= FEROCE_FRAMER_WIDTH_MAX; width *= 2) {
        struct feroce_beat beat = {.count = (uint8_t)width};
        struct feroce_cut cut;
        begin(width, 4096);
        uint32_t words = 0;
        for (; feroce_framer_ready(&framer); words++) {
            assert_int_equal(feroce_framer_take(&framer, &beat), FEROCE_BEAT_GOOD);
            feroce_framer_step(&framer);
            assert_int_equal(feroce_framer_packet(&framer, &cut), words + 1 >= 4096 / width);
        }
        assert_int_equal(words, 8192 / width - 1);
        assert_int_equal(framer.counters.packets, 1);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        uint8_t count;
        bool last;
        enum feroce_beat_verdict verdict;
    } beats[] = {
        {0, false, FEROCE_BEAT_EMPTY},    {0, true, FEROCE_BEAT_EMPTY},
        {20, true, FEROCE_BEAT_WIDE},     {128, false, FEROCE_BEAT_WIDE},
        {6, true, FEROCE_BEAT_ODD},       {15, false, FEROCE_BEAT_ODD},
        {12, false, FEROCE_BEAT_PARTIAL}, {12, true, FEROCE_BEAT_GOOD},
        {16, false, FEROCE_BEAT_GOOD},
    };
    begin(16, 256);
    for (uint32_t i = 0; i < COUNT_OF(beats); i++) {
        const struct feroce_beat beat = {.count = beats[i].count, .last = beats[i].last};
        const uint64_t before = framer.counters.beats[beats[i].verdict];
        const uint32_t used = framer.used;
        assert_int_equal(feroce_framer_take(&framer, &beat), beats[i].verdict);
        assert_int_equal(framer.counters.beats[beats[i].verdict], before + 1);
        feroce_framer_step(&framer);
        assert_int_equal(framer.used - used, beats[i].verdict == FEROCE_BEAT_GOOD ? 1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("feroce_framer", tests, NULL, NULL);
}
