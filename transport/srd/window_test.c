/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A verdict on a PSN stays what it is until the sender knows it, also where PSNs wrap
 *         (SRD-23, SRD-27); an answer says what was judged and nothing else.
 * Method  Random verdicts, moves of the base and questions, beside a table of all verdicts that is
 *         never cleared, indexed by a number that does not wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "transport/srd/window.h"

#define STEPS 20000
#define SPAN  40000u

/* Numbers from 0 on; the PSN is START + number. */
struct model {
    uint32_t start, base, end;
    uint8_t judged[SPAN];
};

static uint8_t draw_verdict(struct prng *prng)
{
    static const uint8_t all[] = {SRD_JUDGED_MOVING,
                                  SRD_JUDGED_TAKEN,
                                  SRD_JUDGED_TAKEN,
                                  SRD_JUDGED_TAKEN,
                                  SRD_JUDGED_NO_RECEIVE,
                                  SRD_REFUSED(SRD_STATUS_BAD_ADDRESS),
                                  SRD_REFUSED(SRD_STATUS_FEATURE_MISMATCH)};
    return all[prng_below(prng, COUNT_OF(all))];
}

/* The verdict that the answer tells of a PSN; SRD_JUDGED_NOT: none. */
static uint8_t told(const struct srd_answer *answer, uint32_t psn)
{
    uint8_t judged = SRD_JUDGED_NOT;
    if (srd_distance(psn, answer->taken_before) > 0) {
        return SRD_JUDGED_TAKEN;
    }
    for (uint32_t i = 0; i < answer->record_count; i++) {
        const struct srd_record *record = &answer->records[i];
        const uint32_t ahead = psn - record->psn;
        if (ahead < 64 && (record->bitmap >> ahead & 1) != 0) {
            assert_int_equal(judged, SRD_JUDGED_NOT);
            judged = record->kind == SRD_KIND_TAKEN        ? SRD_JUDGED_TAKEN
                     : record->kind == SRD_KIND_NO_RECEIVE ? SRD_JUDGED_NO_RECEIVE
                                                           : SRD_JUDGED_REFUSED + record->status;
            assert_int_equal(record->wait_code, record->kind == SRD_KIND_NO_RECEIVE ? 9 : 0);
        }
    }
    return judged;
}

/* All that the answer tells is so; and it tells of all up to its last record's first PSN, or of all
 * that there is. */
static void compare_answer(const struct model *model, const struct srd_window *window)
{
    struct srd_packet packet = {.opcode = SRD_ANSWER, .destination_qpn = SRD_PORT};
    struct srd_answer *answer = &packet.answer;
    srd_window_report(window, 9, answer);
    assert_int_equal(srd_judge(&packet), SRD_GOOD);
    uint32_t full = model->end;
    if (answer->more) {
        assert_int_equal(answer->record_count, SRD_RECORDS_MAX);
        full = answer->records[SRD_RECORDS_MAX - 1].psn - model->start;
    }
    uint32_t taken_before = model->base;
    while (taken_before != model->end && model->judged[taken_before] == SRD_JUDGED_TAKEN) {
        taken_before++;
    }
    assert_int_equal(answer->taken_before, model->start + taken_before);
    for (uint32_t i = model->base; i < model->base + SRD_WINDOW; i++) {
        const uint8_t is =
            model->judged[i] == SRD_JUDGED_MOVING ? (uint8_t)SRD_JUDGED_NOT : model->judged[i];
        const uint8_t says = told(answer, model->start + i);
        assert_true(says == is || (says == SRD_JUDGED_NOT && i > full));
    }
}

static uint8_t model_instance(const struct model *model, uint32_t first, uint32_t packets)
{
    if (first < model->base) {
        return srd_refused(SRD_STATUS_BAD_QPN);
    }
    for (uint32_t i = first; i < first + packets && i < model->base + SRD_WINDOW; i++) {
        const uint8_t judged = model->judged[i];
        if (judged != SRD_JUDGED_NOT) {
            return judged == SRD_JUDGED_TAKEN || judged == SRD_JUDGED_MOVING
                       ? srd_refused(SRD_STATUS_BAD_QPN)
                       : judged;
        }
    }
    return SRD_JUDGED_NOT;
}

static void compare_places(const struct model *model, const struct srd_window *window,
                           struct prng *prng)
{
    const uint32_t base = model->base;
    const uint32_t edges[] = {base == 0 ? 0 : base - 1, base, base + 1023, base + 1024,
                              base + (uint32_t)prng_below(prng, 1100)};
    for (size_t i = 0; i < COUNT_OF(edges); i++) {
        const enum srd_place expected = edges[i] < base          ? SRD_PLACE_BEFORE
                                        : edges[i] < base + 1024 ? SRD_PLACE_INSIDE
                                                                 : SRD_PLACE_BEYOND;
        assert_int_equal(srd_window_place(window, model->start + edges[i]), expected);
        if (expected == SRD_PLACE_INSIDE) {
            assert_int_equal(srd_window_judged(window, model->start + edges[i]),
                             model->judged[edges[i]]);
        }
        const uint32_t packets = 1 + (uint32_t)prng_below(prng, 64);
        assert_int_equal(srd_window_judge_instance(window, model->start + edges[i], packets),
                         model_instance(model, edges[i], packets));
    }
}

static void run(uint32_t start, uint64_t seed)
{
    static struct model model;
    static struct srd_window window;
    struct prng prng;
    prng_init(&prng, seed);
    memset(&model, 0, sizeof(model));
    model.start = start;
    srd_window_init(&window, start);
    const uint32_t near = prng_below(&prng, 2) ? 70 : 1024;
    for (int step = 0; step < STEPS && model.base < SPAN - 4096; step++) {
        const uint32_t at = model.base + (uint32_t)prng_below(&prng, near);
        const uint8_t before = model.judged[at];
        if (before == SRD_JUDGED_NOT || before == SRD_JUDGED_MOVING) {
            model.judged[at] = draw_verdict(&prng);
            model.end = at + 1 > model.end ? at + 1 : model.end;
            srd_window_set(&window, start + at, model.judged[at]);
        }
        if (prng_below(&prng, 30) == 0) {
            const uint32_t by = (uint32_t)prng_below(&prng, prng_below(&prng, 20) ? 40 : 1500);
            model.base += by;
            model.end = model.end < model.base ? model.base : model.end;
            srd_window_advance(&window, start + model.base);
            srd_window_advance(&window, start + model.base - by / 2); /* An older packet. */
        }
        if (prng_below(&prng, 10) == 0) {
            compare_answer(&model, &window);
            compare_places(&model, &window, &prng);
        }
    }
}

static void test_against_model(void **state)
{
    (void)state;
    static const uint32_t starts[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffc00, 0xffffffff};
    for (uint64_t seed = 0; seed < 12; seed++) {
        run(starts[seed % COUNT_OF(starts)], seed);
    }
}

/* Further than the window is long, and half around: nothing old is left. */
static void test_long_moves(void **state)
{
    (void)state;
    struct srd_window window;
    srd_window_init(&window, 5);
    for (uint32_t i = 0; i < SRD_WINDOW; i++) {
        srd_window_set(&window, 5 + i, SRD_JUDGED_NO_RECEIVE);
    }
    srd_window_advance(&window, 5u + 0x7fffffff);
    for (uint32_t i = 0; i < SRD_WINDOW; i++) {
        assert_int_equal(srd_window_judged(&window, 5u + 0x7fffffff + i), SRD_JUDGED_NOT);
    }
    srd_window_advance(&window, 5);
    assert_int_equal(window.base, 5u + 0x7fffffff);
}

/* Each verdict that there may be is kept, beside whatever its neighbours have. */
static void test_verdicts(void **state)
{
    (void)state;
    static struct srd_window window;
    uint8_t verdicts[32];
    uint32_t count = 0;
    verdicts[count++] = SRD_JUDGED_MOVING;
    verdicts[count++] = SRD_JUDGED_TAKEN;
    verdicts[count++] = SRD_JUDGED_NO_RECEIVE;
    for (uint8_t status = 0; status < 32; status++) {
        if (srd_status_refuses(status)) {
            verdicts[count++] = srd_refused((enum srd_status)status);
        }
    }
    assert_int_equal(count, 8);
    for (uint32_t one = 0; one < count; one++) {
        for (uint32_t other = 0; other < count; other++) {
            srd_window_init(&window, 6);
            srd_window_set(&window, 7, verdicts[one]);
            srd_window_set(&window, 6, verdicts[other]);
            srd_window_set(&window, 8, verdicts[other]);
            assert_int_equal(srd_window_judged(&window, 7), verdicts[one]);
            assert_int_equal(srd_window_judged(&window, 6), verdicts[other]);
            assert_int_equal(srd_window_judged(&window, 8), verdicts[other]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_model),
                                       cmocka_unit_test(test_long_moves),
                                       cmocka_unit_test(test_verdicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
