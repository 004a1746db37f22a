/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever is pushed, checked, taken and swapped, the two FIFOs keep the order of arrival
 *         and lose nothing; neither ever needs more than 3 * oocap places. Behaviours CSR-16,
 *         CSR-17.
 * Method  Random use of all four ports, beside one array in order of arrival.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/csrna/pending_fifo.h"

struct model {
    uint32_t qpns[PENDING_MAX];
    uint32_t count;
};

static void take(struct model *model, uint32_t at, uint32_t qpn)
{
    assert_true(at < model->count);
    assert_int_equal(model->qpns[at], qpn);
    model->count--;
    memmove(&model->qpns[at], &model->qpns[at + 1], (model->count - at) * sizeof(model->qpns[0]));
}

static void check(struct pending_fifo *fifo, struct model *model, struct prng *prng)
{
    if (pending_ring_count(pending_offline(fifo)) == 0) {
        pending_fifo_swap(fifo);
    }
    const uint32_t before = pending_ring_count(pending_online(fifo));
    const struct pending element = pending_fifo_pop_check(fifo);
    if (prng_below(prng, 3) == 0) {
        take(model, before, element.qpn);
        if (prng_below(prng, 3) == 0) { /* An element of Type 2 becomes Type 1. */
            pending_fifo_push(fifo, element);
            model->qpns[model->count++] = element.qpn;
        }
    } else {
        pending_fifo_push_checked(fifo, element);
    }
}

static void run(uint32_t oocap)
{
    static struct pending_fifo fifo;
    struct model model = {.count = 0};
    struct prng prng;
    prng_init(&prng, oocap);
    pending_fifo_init(&fifo, oocap);
    uint32_t fullest = 0;
    for (uint32_t step = 0; step < 20000; step++) {
        const uint64_t draw = prng_below(&prng, 8);
        const bool filling = step / 1000 % 2; /* Phases in which it is full most of the time. */
        if ((draw < 3 || (filling && draw < 6)) && model.count < QPC_CHANNELS * oocap) {
            pending_fifo_push(&fifo, (struct pending){.qpn = step});
            model.qpns[model.count++] = step;
        } else if (draw == 6 && pending_ring_count(pending_online(&fifo)) != 0) {
            take(&model, 0, pending_fifo_pop_returned(&fifo).qpn);
        } else if (model.count != 0) {
            check(&fifo, &model, &prng);
        }
        assert_int_equal(pending_fifo_count(&fifo), model.count);
        fullest = model.count > fullest ? model.count : fullest;
    }
    assert_int_equal(fullest, QPC_CHANNELS * oocap);
    while (model.count != 0) {
        if (pending_ring_count(pending_online(&fifo)) == 0) {
            take(&model, 0, pending_fifo_pop_check(&fifo).qpn);
        } else {
            take(&model, 0, pending_fifo_pop_returned(&fifo).qpn);
        }
    }
    assert_int_equal(pending_fifo_count(&fifo), 0);
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t oocap = 1; oocap <= QPC_OOCAP_MAX; oocap++) {
        run(oocap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
