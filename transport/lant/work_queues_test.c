/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The order of work_queues.h; large transfers are cut rightly and end once; a full queue
 *         refuses; nobody waits without a bound who need not.
 * Method  Cases by hand; then submissions and ends by chance, held against a plain list of what
 *         was submitted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/work_queues.h"

#define KB          1024u
#define DESTINATION UINT64_C(0x0520140000000000)

static struct lant_work_queues work;

static void begin(struct lant_work_config config)
{
    lant_work_init(&work, &config);
}

static struct lant_work transfer(uint32_t tag, uint32_t bytes)
{
    return (struct lant_work){
        .tag = tag,
        .descriptor = {.source = UINT64_C(1) << 20, .destination = DESTINATION, .bytes = bytes}};
}

static enum lant_submit submit(enum lant_queue queue, uint32_t tag, uint32_t bytes)
{
    const struct lant_work wanted = transfer(tag, bytes);
    return lant_work_submit(&work, queue, &wanted);
}

static struct lant_work_operation next(void)
{
    struct lant_work_operation operation;
    assert_true(lant_work_next(&work, &operation));
    return operation;
}

static void assert_next(uint32_t tag)
{
    assert_int_equal(next().tag, tag);
}

static void assert_none(void)
{
    struct lant_work_operation operation;
    assert_false(lant_work_waits(&work));
    assert_false(lant_work_next(&work, &operation));
}

/* By turns, each queue in its order. */
static void test_turns(void **state)
{
    (void)state;
    begin(LANT_WORK_DEFAULTS);
    assert_none();
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(submit(LANT_QUEUE_CPU, 10 + i, 8), LANT_SUBMIT_COMMITTED);
    }
    assert_int_equal(submit(LANT_QUEUE_FPGA, 20, 8), LANT_SUBMIT_COMMITTED);
    assert_next(10);
    assert_next(20);
    assert_next(11);
    assert_int_equal(submit(LANT_QUEUE_FPGA, 21, 8), LANT_SUBMIT_COMMITTED);
    assert_next(21);
    assert_next(12);
    assert_none();
}

static void test_full(void **state)
{
    (void)state;
    struct lant_work_config config = LANT_WORK_DEFAULTS;
    config.capacity = 2;
    config.parents = 1;
    begin(config);
    assert_int_equal(submit(LANT_QUEUE_CPU, 0, 0), LANT_SUBMIT_NO_BYTES);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(submit(LANT_QUEUE_CPU, i, 8),
                         i < 2 ? LANT_SUBMIT_COMMITTED : LANT_SUBMIT_FULL);
        assert_int_equal(submit(LANT_QUEUE_FPGA, 3, 100 * KB),
                         i < 1 ? LANT_SUBMIT_COMMITTED : LANT_SUBMIT_FULL);
    }
    assert_int_equal(work.submitted[LANT_SUBMIT_FULL], 3);
    assert_int_equal(work.submitted[LANT_SUBMIT_NO_BYTES], 1);
    assert_next(0);
    assert_int_equal(submit(LANT_QUEUE_CPU, 9, 8), LANT_SUBMIT_COMMITTED);
    assert_next(1);
    assert_next(9);
}

/* Priorities count if they are on; within one it is the order of before. */
static void test_priorities(void **state)
{
    (void)state;
    for (uint32_t on = 0; on < 2; on++) {
        struct lant_work_config config = LANT_WORK_DEFAULTS;
        config.priorities = on != 0;
        begin(config);
        for (uint32_t i = 0; i < 4; i++) {
            struct lant_work wanted = transfer(i, 8);
            wanted.descriptor.priority = (uint8_t)(i % 2 + 1);
            assert_int_equal(lant_work_submit(&work, LANT_QUEUE_CPU, &wanted),
                             LANT_SUBMIT_COMMITTED);
        }
        const uint32_t order[2][4] = {{0, 1, 2, 3}, {1, 3, 0, 2}};
        for (uint32_t i = 0; i < 4; i++) {
            const struct lant_work_operation operation = next();
            assert_int_equal(operation.tag, order[on][i]);
            assert_int_equal(operation.priority, operation.tag % 2 + 1);
        }
    }
}

/* LNI-69: ceil(M / N) segments, the last one shorter. Returns how many. */
static uint32_t take_all(uint32_t bytes, uint32_t segment)
{
    uint64_t at = 0;
    uint32_t count = 0;
    while (lant_work_waits(&work)) {
        const struct lant_work_operation operation = next();
        const bool last = at + operation.bytes == bytes;
        assert_int_equal(operation.source, (UINT64_C(1) << 20) + at);
        assert_int_equal(operation.destination, DESTINATION + at);
        assert_true(operation.bytes == segment || last);
        assert_int_equal(operation.last, last);
        assert_int_equal(operation.no_notif, !last);
        assert_int_equal(operation.tag, 7);
        assert_int_equal(lant_work_on_segment(&work, &operation, count, LANT_STATUS_COMPLETE, 0),
                         last);
        if (last) {
            assert_int_equal(work.parents[operation.parent].work.descriptor.bytes, bytes);
            assert_int_equal(work.parents[operation.parent].status, LANT_STATUS_COMPLETE);
            lant_work_release(&work, operation.parent);
        }
        at += operation.bytes;
        count++;
    }
    assert_int_equal(at, bytes);
    return count;
}

/* LNI-68, LNI-69. */
static void test_segments(void **state)
{
    (void)state;
    begin(LANT_WORK_DEFAULTS);
    for (uint32_t bytes = 64 * KB + 1; bytes < 300 * KB; bytes += 4093) {
        assert_int_equal(submit(LANT_QUEUE_FPGA, 7, bytes), LANT_SUBMIT_COMMITTED);
        assert_int_equal(take_all(bytes, 64 * KB), (bytes + 64 * KB - 1) / (64 * KB));
    }
    assert_int_equal(submit(LANT_QUEUE_CPU, 7, 1024 * KB), LANT_SUBMIT_COMMITTED);
    assert_int_equal(take_all(1024 * KB, 64 * KB), 16);
    /* M = N is not segmented. */
    assert_int_equal(submit(LANT_QUEUE_CPU, 7, 64 * KB), LANT_SUBMIT_COMMITTED);
    assert_int_equal(next().parent, LANT_NO_PARENT);
}

/* LNI-73: the threshold can be changed at run time, 0 is off; what was cut before stays so. */
static void test_threshold(void **state)
{
    (void)state;
    begin(LANT_WORK_DEFAULTS);
    assert_int_equal(submit(LANT_QUEUE_CPU, 7, 256 * KB), LANT_SUBMIT_COMMITTED);
    assert_false(lant_work_set_segment(&work, 1000));
    assert_false(lant_work_set_segment(&work, 64 * KB * KB));
    assert_int_equal(work.config.segment_bytes, 64 * KB);
    assert_true(lant_work_set_segment(&work, 0));
    assert_int_equal(take_all(256 * KB, 64 * KB), 4);
    assert_int_equal(submit(LANT_QUEUE_CPU, 7, LANT_TRANSFER_MAX), LANT_SUBMIT_COMMITTED);
    const struct lant_work_operation operation = next();
    assert_int_equal(operation.bytes, LANT_TRANSFER_MAX);
    assert_int_equal(operation.parent, LANT_NO_PARENT);
    assert_true(lant_work_set_segment(&work, 512));
    assert_int_equal(submit(LANT_QUEUE_CPU, 7, 1025), LANT_SUBMIT_COMMITTED);
    assert_int_equal(take_all(1025, 512), 3);
    struct lant_work keyhole = transfer(7, 64 * KB);
    keyhole.descriptor.keyhole = true;
    assert_int_equal(lant_work_submit(&work, LANT_QUEUE_CPU, &keyhole), LANT_SUBMIT_COMMITTED);
    assert_int_equal(next().bytes, 64 * KB);
}

/* LNI-71, LNI-72: small ones go first, for ever if they never end; with `large_after` a segment
 * goes after that number of them. */
static void test_starvation(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 5; after++) {
        struct lant_work_config config = LANT_WORK_DEFAULTS;
        config.large_after = after;
        begin(config);
        uint32_t in_a_row = 0, segments = 0;
        assert_int_equal(submit(LANT_QUEUE_CPU, 1, 4096 * KB), LANT_SUBMIT_COMMITTED);
        for (uint32_t i = 0; i < 40; i++) {
            assert_int_equal(submit(i % 2, 2, 8), LANT_SUBMIT_COMMITTED);
            const bool large = next().tag == 1;
            assert_int_equal(large, after != 0 && in_a_row == after);
            in_a_row = large ? 0 : in_a_row + 1;
            segments += large;
        }
        assert_int_equal(segments, after == 0 ? 0 : 40 / (after + 1));
    }
}

/* LNI-70: the transfer ends with its last segment to end; after an error nothing more is issued. */
static void test_ends(void **state)
{
    (void)state;
    struct lant_work_operation segments[3];
    begin(LANT_WORK_DEFAULTS);
    assert_int_equal(submit(LANT_QUEUE_CPU, 7, 192 * KB), LANT_SUBMIT_COMMITTED);
    for (uint32_t i = 0; i < 3; i++) {
        segments[i] = next();
    }
    assert_false(lant_work_on_segment(&work, &segments[2], 2, LANT_STATUS_COMPLETE, 0));
    assert_false(lant_work_on_segment(&work, &segments[0], 0, LANT_STATUS_COMPLETE, 3));
    assert_true(lant_work_on_segment(&work, &segments[1], 1, LANT_STATUS_COMPLETE, 1));
    assert_int_equal(work.parents[segments[0].parent].attempts, 3);
    assert_int_equal(work.parents[segments[0].parent].operation, 1);
    lant_work_release(&work, segments[0].parent);

    assert_int_equal(submit(LANT_QUEUE_CPU, 8, 192 * KB), LANT_SUBMIT_COMMITTED);
    assert_int_equal(submit(LANT_QUEUE_CPU, 9, 192 * KB), LANT_SUBMIT_COMMITTED);
    segments[0] = next();
    segments[1] = next();
    assert_false(lant_work_on_segment(&work, &segments[0], 0,
                                      LANT_STATUS_COMPLETE | LANT_STATUS_SLAVE_ERROR, 0));
    assert_next(9);
    assert_true(lant_work_on_segment(&work, &segments[1], 1, LANT_STATUS_COMPLETE, 0));
    assert_int_equal(work.parents[segments[0].parent].status, LANT_STATUS_SLAVE_ERROR);
    lant_work_release(&work, segments[0].parent);
}

/* -- By chance ----------------------------------------------------------------------------------*/

#define TRANSFERS 4000

/* The transfers that were submitted, by tag, and the bytes of each that were issued and have
 * ended. */
struct planned {
    uint32_t queue, bytes, issued, ended, ends;
};
static struct planned plans[TRANSFERS];
static struct lant_work_operation under_way[4096];

struct model {
    struct prng prng;
    uint32_t submitted, under_way, taken[2], refused;
};

static void random_submit(struct model *model)
{
    const uint32_t queue = (uint32_t)prng_below(&model->prng, 2);
    const uint32_t bytes = 1 + (uint32_t)prng_below(&model->prng, 5000);
    if (model->submitted == TRANSFERS) {
        return;
    }
    if (submit(queue, model->submitted, bytes) == LANT_SUBMIT_FULL) {
        model->refused++;
        return;
    }
    plans[model->submitted++] = (struct planned){.queue = queue, .bytes = bytes};
}

static void random_take(struct model *model)
{
    struct lant_work_operation operation;
    if (model->under_way == 4096 || !lant_work_next(&work, &operation)) {
        return;
    }
    struct planned *plan = &plans[operation.tag];
    assert_int_equal(operation.source, (UINT64_C(1) << 20) + plan->issued);
    assert_int_equal(operation.queue, plan->queue);
    assert_int_equal(operation.last, plan->issued + operation.bytes == plan->bytes);
    assert_int_equal(operation.parent == LANT_NO_PARENT, plan->bytes <= 1024);
    if (operation.parent == LANT_NO_PARENT) {
        /* Small ones of a queue stay in their order. */
        for (uint32_t i = model->taken[plan->queue]; i < operation.tag; i++) {
            assert_true(plans[i].queue != plan->queue || plans[i].bytes > 1024);
        }
        model->taken[plan->queue] = operation.tag + 1;
    }
    plan->issued += operation.bytes;
    under_way[model->under_way++] = operation;
}

static void random_end(struct model *model)
{
    if (model->under_way == 0) {
        return;
    }
    const uint32_t i = (uint32_t)prng_below(&model->prng, model->under_way);
    const struct lant_work_operation operation = under_way[i];
    struct planned *plan = &plans[operation.tag];
    under_way[i] = under_way[--model->under_way];
    plan->ended += operation.bytes;
    if (operation.parent == LANT_NO_PARENT) {
        plan->ends++;
        return;
    }
    const bool ends =
        lant_work_on_segment(&work, &operation, operation.tag, LANT_STATUS_COMPLETE, 0);
    assert_int_equal(ends, plan->ended == plan->bytes);
    if (ends) {
        plan->ends++;
        lant_work_release(&work, operation.parent);
    }
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 6; seed++) {
        static struct model model;
        model = (struct model){0};
        prng_init(&model.prng, seed);
        begin((struct lant_work_config){.capacity = (uint16_t)(1 + seed * 7),
                                        .parents = (uint16_t)(1 + seed * 5),
                                        .segment_bytes = 1024,
                                        .large_after = seed % 3});
        while (model.submitted < TRANSFERS || lant_work_waits(&work) || model.under_way != 0) {
            const uint64_t what = prng_below(&model.prng, 10);
            if (what < 3) {
                random_submit(&model);
            } else if (what < 7) {
                random_take(&model);
            } else {
                random_end(&model);
            }
        }
        for (uint32_t i = 0; i < TRANSFERS; i++) {
            assert_int_equal(plans[i].issued, plans[i].bytes);
            assert_int_equal(plans[i].ends, 1);
        }
        assert_int_equal(__builtin_popcountll(work.parents_free), work.config.parents);
        assert_true(model.refused != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),      cmocka_unit_test(test_full),
        cmocka_unit_test(test_priorities), cmocka_unit_test(test_segments),
        cmocka_unit_test(test_threshold),  cmocka_unit_test(test_starvation),
        cmocka_unit_test(test_ends),       cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
