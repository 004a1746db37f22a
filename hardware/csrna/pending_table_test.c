/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A queue pair has one record as long as requests wait, at the address of the newest; the
 *         record vanishes with the last one. Behaviours CSR-06, CSR-07, CSR-08.
 * Method  Random requests with free indices only, answered in order, beside an array of them in
 *         order of arrival. QPNs of equal hash among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/csrna/pending_table.h"

struct waiting {
    uint32_t qpn, address;
};

struct model {
    struct waiting waiting[PENDING_MAX];
    uint32_t count;
    bool out[PENDING_MAX]; /* By address. */
};

static void compare(struct pending_table *table, const struct model *model, uint32_t qpn)
{
    uint32_t count = 0, newest = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->waiting[i].qpn == qpn) {
            count++;
            newest = model->waiting[i].address;
        }
    }
    const struct pending_record *record = pending_table_find(table, qpn);
    assert_int_equal(record != NULL, count != 0);
    if (record != NULL) {
        assert_int_equal(record->count, count);
        assert_int_equal(record->qpn, qpn);
        assert_int_equal(record - table->records, newest);
    }
}

static void request(struct pending_table *table, struct model *model, uint32_t qpn,
                    uint32_t address)
{
    struct pending_record *record = pending_table_find(table, qpn);
    if (record == NULL) {
        pending_table_write(table, address, qpn);
        assert_false(pending_table_find(table, qpn)->returned);
    } else {
        const bool returned = record->returned;
        pending_table_add(table, record, address);
        assert_int_equal(pending_table_find(table, qpn)->returned, returned);
    }
    model->waiting[model->count++] = (struct waiting){qpn, address};
    model->out[address] = true;
}

/* Answers the oldest one of the queue pair of waiting[at]. */
static void respond(struct pending_table *table, struct model *model, uint32_t at)
{
    const uint32_t qpn = model->waiting[at].qpn;
    uint32_t first = 0, left = 0;
    while (model->waiting[first].qpn != qpn) {
        first++;
    }
    model->out[model->waiting[first].address] = false;
    model->count--;
    memmove(&model->waiting[first], &model->waiting[first + 1],
            (model->count - first) * sizeof(model->waiting[0]));
    for (uint32_t i = 0; i < model->count; i++) {
        left += model->waiting[i].qpn == qpn;
    }
    struct pending_record *record = pending_table_find(table, qpn);
    record->returned = true;
    assert_int_equal(pending_table_answered(table, record), left != 0);
}

static void run(uint32_t oocap, uint32_t qpns, uint32_t stride)
{
    static struct pending_table table;
    static struct model model;
    struct prng prng;
    prng_init(&prng, oocap);
    model = (struct model){.count = 0};
    pending_table_init(&table, oocap);
    for (uint32_t step = 0; step < 10000; step++) {
        const uint32_t qpn = stride * (uint32_t)prng_below(&prng, qpns);
        const uint32_t address = pending_address(oocap, (uint32_t)prng_below(&prng, QPC_CHANNELS),
                                                 (uint32_t)prng_below(&prng, oocap));
        if (!model.out[address]) {
            request(&table, &model, qpn, address);
        } else {
            respond(&table, &model, (uint32_t)prng_below(&prng, model.count));
        }
        compare(&table, &model, qpn);
    }
    for (uint32_t i = 0; i < qpns; i++) {
        compare(&table, &model, stride * i);
    }
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t oocap = 1; oocap <= QPC_OOCAP_MAX; oocap++) {
        run(oocap, 3, 1);
        run(oocap, 2 * oocap, 256);
        run(oocap, 1000, 1);
    }
}

/* CSR-08: the source's example, and its formula. */
static void test_address(void **state)
{
    (void)state;
    static struct pending_table table;
    pending_table_init(&table, 16);
    pending_table_write(&table, pending_address(16, QPC_DESCRIPTOR, 0), 3);
    assert_int_equal(table.records[0].qpn, 3);
    assert_int_equal(table.records[0].count, 1);
    assert_int_equal(pending_address(16, QPC_RESPONDER, 5), 2 * 16 + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
