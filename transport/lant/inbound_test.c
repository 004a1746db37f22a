/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each answer of memory finds its request: that of its source, its bus ID, its direction,
 *         the oldest first; what finds no place is held and not lost.
 * Method  Cases by hand; then requests and answers by chance against a list of all that are under
 *         way, searched from its beginning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/inbound.h"

static void start(struct lant_inbound *inbound, uint16_t entries, uint16_t records)
{
    const struct lant_inbound_config config = {.entries = entries, .records = records};
    lant_inbound_init(inbound, &config);
}

static struct lant_inbound_record request(uint32_t source, uint8_t bus_id, uint16_t row)
{
    return (struct lant_inbound_record){
        .footer = {.source = source, .bus_id = bus_id, .row = row}, .type = LANT_AW, .answers = 1};
}

static enum lant_inbound_verdict admit(struct lant_inbound *inbound,
                                       struct lant_inbound_record record, uint8_t *local_id)
{
    return lant_inbound_admit(inbound, LANT_WRITES, &record, local_id);
}

/* The row of the request that this answer is for. */
static uint32_t answer(struct lant_inbound *inbound, uint8_t local_id)
{
    struct lant_inbound_record record;
    assert_true(lant_inbound_on_memory(inbound, LANT_WRITES, local_id, LANT_OKAY, &record));
    return record.footer.row;
}

/* LNI-15: one entry for two requests of a pair; LNI-16: another for the same ID of another node. */
static void test_entries(void **state)
{
    (void)state;
    struct lant_inbound inbound;
    uint8_t a = 99, b = 99, c = 99;
    start(&inbound, 8, 256);
    assert_int_equal(admit(&inbound, request(1, 7, 10), &a), LANT_INBOUND_OPENS);
    assert_int_equal(admit(&inbound, request(1, 7, 11), &b), LANT_INBOUND_SHARES);
    assert_int_equal(admit(&inbound, request(2, 7, 12), &c), LANT_INBOUND_OPENS);
    assert_int_equal(a, b);
    assert_int_not_equal(a, c);
    assert_int_equal(lant_inbound_count(&inbound, a), 2);
    assert_int_equal(answer(&inbound, c), 12);
    assert_int_equal(answer(&inbound, a), 10);
    assert_int_equal(lant_inbound_count(&inbound, a), 1);
    assert_int_equal(answer(&inbound, a), 11);
    assert_true(lant_inbound_idle(&inbound));
}

/* LNI-17: the ninth pair waits until an entry is free. */
static void test_full(void **state)
{
    (void)state;
    for (uint16_t entries = 1; entries <= LANT_INBOUND_ENTRIES_MAX; entries++) {
        struct lant_inbound inbound;
        uint8_t local_id = 0;
        start(&inbound, entries, 256);
        for (uint16_t i = 0; i < entries; i++) {
            assert_int_equal(admit(&inbound, request(i, 3, i), &local_id), LANT_INBOUND_OPENS);
            assert_int_equal(local_id, i);
        }
        assert_int_equal(admit(&inbound, request(999, 3, 0), &local_id), LANT_INBOUND_HELD_ENTRY);
        assert_int_equal(admit(&inbound, request(0, 3, 77), &local_id), LANT_INBOUND_SHARES);
        assert_int_equal(answer(&inbound, 0), 0);
        assert_int_equal(admit(&inbound, request(999, 3, 0), &local_id), LANT_INBOUND_HELD_ENTRY);
        assert_int_equal(answer(&inbound, 0), 77);
        assert_int_equal(admit(&inbound, request(999, 3, 55), &local_id), LANT_INBOUND_OPENS);
        assert_int_equal(answer(&inbound, local_id), 55);
        assert_int_equal(inbound.counters.held_entry, 2);
        assert_int_equal(inbound.counters.entries_peak, entries);
    }
}

/* LNI-18: reads and writes of one ID are answered each in their order. */
static void test_directions(void **state)
{
    (void)state;
    struct lant_inbound inbound;
    struct lant_inbound_record record = request(1, 7, 20);
    uint8_t local_id = 0;
    start(&inbound, 8, 256);
    (void)lant_inbound_admit(&inbound, LANT_READS, &record, &local_id);
    (void)admit(&inbound, request(1, 7, 21), &local_id);
    assert_int_equal(answer(&inbound, local_id), 21);
    assert_true(lant_inbound_on_memory(&inbound, LANT_READS, local_id, LANT_DECERR, &record));
    assert_int_equal(record.footer.row, 20);
    assert_int_equal(record.response, LANT_DECERR);
}

/* A packet across a 4 KB line is two writes; its answer comes with the second, and the first error
 * counts. */
static void test_two_answers(void **state)
{
    (void)state;
    struct lant_inbound inbound;
    struct lant_inbound_record record = request(1, 7, 20);
    uint8_t local_id = 0;
    start(&inbound, 8, 8);
    record.answers = 2;
    (void)admit(&inbound, record, &local_id);
    (void)admit(&inbound, request(1, 7, 21), &local_id);
    assert_false(lant_inbound_on_memory(&inbound, LANT_WRITES, local_id, LANT_SLVERR, &record));
    assert_true(lant_inbound_on_memory(&inbound, LANT_WRITES, local_id, LANT_OKAY, &record));
    assert_int_equal(record.footer.row, 20);
    assert_int_equal(record.response, LANT_SLVERR);
    assert_int_equal(answer(&inbound, local_id), 21);
}

/* The model: all requests under way, in the order of their admission. */
struct model {
    uint32_t count, serial;
    struct {
        struct lant_footer footer;
        uint32_t name, direction;
        uint8_t local_id;
    } under_way[64];
};

static void admit_by_chance(struct prng *prng, struct lant_inbound *inbound, struct model *model)
{
    struct lant_inbound_record record =
        request((uint32_t)prng_below(prng, 4), (uint8_t)prng_below(prng, 3), 0);
    const enum lant_direction direction = prng_chance(prng, 500000) ? LANT_READS : LANT_WRITES;
    uint8_t local_id = 0;
    uint32_t pairs = 0, same = UINT32_MAX;
    for (uint32_t i = 0; i < model->count; i++) {
        bool first = true;
        for (uint32_t j = 0; j < i; j++) {
            first &= model->under_way[j].local_id != model->under_way[i].local_id;
        }
        pairs += first;
        if (model->under_way[i].footer.source == record.footer.source &&
            model->under_way[i].footer.bus_id == record.footer.bus_id) {
            same = i;
        }
    }
    record.tag = model->serial;
    record.footer.generation = (uint8_t)prng_next(prng);
    record.footer.operation = (uint16_t)prng_below(prng, 4096);
    record.footer.offset = (uint32_t)prng_below(prng, 1 << 17);
    record.footer.attempt = (uint8_t)prng_below(prng, 8);
    const enum lant_inbound_verdict verdict =
        lant_inbound_admit(inbound, direction, &record, &local_id);
    const bool entry = same != UINT32_MAX || pairs < inbound->config.entries;
    assert_int_equal(verdict, !entry                                    ? LANT_INBOUND_HELD_ENTRY
                              : model->count == inbound->config.records ? LANT_INBOUND_HELD_RECORD
                              : same != UINT32_MAX                      ? LANT_INBOUND_SHARES
                                                                        : LANT_INBOUND_OPENS);
    if (lant_inbound_holds(verdict)) {
        return;
    }
    assert_true(same == UINT32_MAX || model->under_way[same].local_id == local_id);
    model->under_way[model->count].footer = record.footer;
    model->under_way[model->count].name = model->serial++;
    model->under_way[model->count].direction = direction;
    model->under_way[model->count++].local_id = local_id;
}

static void answer_by_chance(struct prng *prng, struct lant_inbound *inbound, struct model *model)
{
    if (model->count == 0) {
        return;
    }
    const uint32_t any = (uint32_t)prng_below(prng, model->count);
    const uint8_t local_id = model->under_way[any].local_id;
    const uint32_t direction = model->under_way[any].direction;
    uint32_t i = 0;
    while (model->under_way[i].local_id != local_id || model->under_way[i].direction != direction) {
        i++;
    }
    struct lant_inbound_record record;
    assert_true(lant_inbound_on_memory(inbound, (enum lant_direction)direction, local_id, LANT_OKAY,
                                       &record));
    assert_int_equal(record.tag, model->under_way[i].name);
    /* LNI-18: each has its own, though it shares the entry. */
    const struct lant_footer *footer = &model->under_way[i].footer;
    assert_int_equal(record.footer.source, footer->source);
    assert_int_equal(record.footer.bus_id, footer->bus_id);
    assert_int_equal(record.footer.row, footer->row);
    assert_int_equal(record.footer.generation, footer->generation);
    assert_int_equal(record.footer.operation, footer->operation);
    assert_int_equal(record.footer.offset, footer->offset);
    assert_int_equal(record.footer.attempt, footer->attempt);
    model->count--;
    for (; i < model->count; i++) {
        model->under_way[i] = model->under_way[i + 1];
    }
}

static void test_random(void **state)
{
    (void)state;
    uint64_t held_entry = 0, held_record = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct prng prng;
        struct lant_inbound inbound;
        struct model model = {0};
        prng_init(&prng, seed);
        const uint16_t entries = (uint16_t)(1 + prng_below(&prng, 10));
        start(&inbound, entries, (uint16_t)(entries + prng_below(&prng, 30)));
        for (uint32_t i = 0; i < 5000; i++) {
            if (prng_chance(&prng, i % 100 < 50 ? 700000 : 300000)) {
                admit_by_chance(&prng, &inbound, &model);
            } else {
                answer_by_chance(&prng, &inbound, &model);
            }
        }
        while (model.count > 0) {
            answer_by_chance(&prng, &inbound, &model);
        }
        assert_true(lant_inbound_idle(&inbound));
        held_entry += inbound.counters.held_entry;
        held_record += inbound.counters.held_record;
    }
    assert_true(held_entry > 100 && held_record > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),    cmocka_unit_test(test_full),
        cmocka_unit_test(test_directions), cmocka_unit_test(test_two_answers),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
