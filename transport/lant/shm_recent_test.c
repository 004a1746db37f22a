/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A request is found for its lifetime and not longer, with the answer it was given; the
 *         oldest makes room, and that is counted.
 * Method  Cases by hand; then requests by chance against a plain array of all that ever came.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/shm_recent.h"

#define LIFETIME 500

static uint64_t memory[8192];

static void start(struct lant_shm_recent *recent, uint32_t capacity)
{
    assert_true(lant_shm_recent_bytes(capacity) <= sizeof(memory));
    lant_shm_recent_init(recent, capacity, LIFETIME, memory);
}

static void test_lifetime(void **state)
{
    (void)state;
    struct lant_shm_recent recent;
    start(&recent, 4);
    assert_null(lant_shm_recent_find(&recent, 0, 5));
    const uint32_t tag = lant_shm_recent_add(&recent, 10, 5);
    assert_false(lant_shm_recent_find(&recent, 11, 5)->done);
    lant_shm_recent_finish(&recent, tag, LANT_EXOKAY);
    assert_true(lant_shm_recent_find(&recent, 509, 5)->done);
    assert_int_equal(lant_shm_recent_find(&recent, 509, 5)->response, LANT_EXOKAY);
    assert_null(lant_shm_recent_find(&recent, 510, 5));
    assert_int_equal(lant_shm_recent_deadline(&recent), 510);
    /* The same key once more: the old one goes. */
    (void)lant_shm_recent_add(&recent, 600, 5);
    assert_int_equal(recent.count, 1);
    assert_int_equal(recent.evicted, 0);
    lant_shm_recent_on_time(&recent, 1100);
    assert_int_equal(recent.count, 0);
    assert_int_equal(lant_shm_recent_deadline(&recent), LANT_NEVER);
}

/* An entry that was forgotten to make room may still be answered. */
static void test_eviction(void **state)
{
    (void)state;
    struct lant_shm_recent recent;
    uint32_t tags[5];
    start(&recent, 4);
    for (uint32_t i = 0; i < 5; i++) {
        tags[i] = lant_shm_recent_add(&recent, i, 100 + i);
    }
    assert_int_equal(recent.evicted, 1);
    lant_shm_recent_finish(&recent, tags[0], LANT_OKAY);
    lant_shm_recent_finish(&recent, tags[1], LANT_SLVERR);
    assert_null(lant_shm_recent_find(&recent, 9, 100));
    assert_int_equal(lant_shm_recent_find(&recent, 9, 101)->response, LANT_SLVERR);
    assert_false(lant_shm_recent_find(&recent, 9, 104)->done);
}

/* Load, store and exclusive access are not taken for each other; nor are two sources. */
static void test_key(void **state)
{
    (void)state;
    struct lant_packet packet = {
        .header = {.type = LANT_AW},
        .footer = {.source = LANT_NODES_MAX - 1, .operation = 0xfff, .offset = 0x1ffff}};
    const uint64_t store = lant_shm_recent_key(&packet);
    packet.header.lock = true;
    const uint64_t exclusive = lant_shm_recent_key(&packet);
    packet.header.type = LANT_AR;
    const uint64_t load = lant_shm_recent_key(&packet);
    packet.footer.source--;
    assert_int_equal(load - lant_shm_recent_key(&packet), UINT64_C(1) << 31);
    assert_true(store != exclusive && store != load && exclusive != load);
    assert_true(store >> 53 == 0 && store >> 31 == LANT_NODES_MAX - 1);
}

static void test_random(void **state)
{
    (void)state;
    static struct {
        uint64_t key, at;
        uint32_t tag;
        int response;
    } all[4000];
    uint64_t evicted = 0, again = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct prng prng;
        struct lant_shm_recent recent;
        uint64_t now = 0;
        uint32_t count = 0;
        prng_init(&prng, seed);
        const uint32_t capacity = 1u << prng_below(&prng, 8);
        start(&recent, capacity);
        for (uint32_t i = 0; i < 4000; i++) {
            now += prng_below(&prng, 20);
            const uint64_t key = prng_below(&prng, 300);
            const struct lant_shm_recent_entry *entry = lant_shm_recent_find(&recent, now, key);
            /* The newest of the last `capacity` that has this key and is not too old. */
            uint32_t at = count;
            for (uint32_t back = 1; back <= capacity && back <= count && at == count; back++) {
                at = all[count - back].key == key ? count - back : count;
            }
            const bool known = at < count && now < all[at].at + LIFETIME;
            assert_int_equal(entry != NULL, known);
            if (!known) {
                all[count].key = key;
                all[count].at = now;
                all[count].response = -1;
                all[count++].tag = lant_shm_recent_add(&recent, now, key);
                continue;
            }
            again++;
            assert_int_equal(entry->done, all[at].response >= 0);
            assert_true(!entry->done || entry->response == all[at].response);
            if (!entry->done && prng_chance(&prng, 500000)) {
                all[at].response = (int)prng_below(&prng, 8);
                lant_shm_recent_finish(&recent, all[at].tag, (enum lant_response)all[at].response);
            }
        }
        evicted += recent.evicted;
    }
    assert_true(evicted > 100 && again > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lifetime),
        cmocka_unit_test(test_eviction),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
