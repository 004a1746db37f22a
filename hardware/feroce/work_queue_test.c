/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Sixteen requests wait, in order, whole; a seventeenth and lengths that no stream has are
 *         refused by name.
 * Method  A model that never forgets: all requests that were taken, and how many have gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/feroce/work_queue.h"

enum {
    ROUNDS = 20000,
};

static struct feroce_work some_work(struct prng *prng)
{
    return (struct feroce_work){
        .write = prng_below(prng, 2) != 0,
        .has_immediate = prng_below(prng, 2) != 0,
        .immediate = (uint32_t)prng_next(prng),
        .qpn = 256 + (uint32_t)prng_below(prng, 16),
        .offset = prng_next(prng),
        .length = (uint32_t)prng_below(prng, 64),
    };
}

static void assert_same(const struct feroce_work *a, const struct feroce_work *b)
{
    assert_int_equal(a->write, b->write);
    assert_int_equal(a->has_immediate, b->has_immediate);
    assert_int_equal(a->immediate, b->immediate);
    assert_int_equal(a->qpn, b->qpn);
    assert_true(a->offset == b->offset);
    assert_int_equal(a->length, b->length);
}

static void test_random(void **state)
{
    (void)state;
    static struct feroce_work taken[ROUNDS];
    struct feroce_work_queue queue;
    struct prng prng;
    uint32_t in = 0, out = 0;
    uint64_t posts[FEROCE_WORK_VERDICTS] = {0};
    prng_init(&prng, 1);
    feroce_work_queue_init(&queue);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const struct feroce_work *head = feroce_work_queue_head(&queue);
        assert_int_equal(head != NULL, out < in);
        if (head != NULL) {
            assert_same(head, &taken[out]);
        }
        /* For a while more come than go, and then fewer. */
        if (head != NULL && prng_below(&prng, 100) < (round / 500 % 2 == 0 ? 5 : 60)) {
            feroce_work_queue_advance(&queue);
            out++;
            continue;
        }
        const struct feroce_work work = some_work(&prng);
        const enum feroce_work_verdict expected = work.length == 0 || work.length % 4 != 0
                                                      ? FEROCE_WORK_LENGTH
                                                  : in - out == 16 ? FEROCE_WORK_FULL
                                                                   : FEROCE_WORK_GOOD;
        assert_int_equal(feroce_work_queue_post(&queue, &work), expected);
        posts[expected]++;
        if (expected == FEROCE_WORK_GOOD) {
            taken[in++] = work;
        }
    }
    for (uint32_t i = 0; i < FEROCE_WORK_VERDICTS; i++) {
        assert_true(posts[i] > 100);
        assert_int_equal(queue.posts[i], posts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests_name("feroce_work_queue", tests, NULL, NULL);
}
