/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A link is found by its whole name, among many. Holders decide which links are idle, and
 *         in which order. Some idle links are kept, and a link that is wanted does not go.
 * Method  Random holds and releases are compared with a plain array.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "drivers/link_table.h"

#define LINKS 5000

static struct link links[LINKS];
static struct link_table table;

static struct link_name name_of(uint32_t number, struct gid *self, struct gid *peer)
{
    *self = (struct gid){{[15] = (uint8_t)(number % 3)}};
    *peer = (struct gid){{[12] = 10, [14] = (uint8_t)(number / 12 >> 8), (uint8_t)(number / 12)}};
    return (struct link_name){.self = self,
                              .peer = peer,
                              .slot = (int)(number / 3 % 2) - 1,
                              .hop_limit = (uint8_t)(number / 6 % 2)};
}

static struct link *find(uint32_t number)
{
    struct gid self, peer;
    const struct link_name name = name_of(number, &self, &peer);
    return link_table_find(&table, &name);
}

static void add(uint32_t number)
{
    struct gid self, peer;
    const struct link_name name = name_of(number, &self, &peer);
    link_init(&links[number], LINK_UDP, &name);
    assert_true(link_table_add(&table, &links[number]));
}

static int setup(void **state)
{
    (void)state;
    link_table_init(&table);
    for (uint32_t i = 0; i < LINKS; i++) {
        assert_null(find(i));
        add(i);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct link *link;
    while ((link = link_table_next(&table, NULL)) != NULL) {
        link_table_remove(&table, link);
    }
    link_table_close(&table);
    return 0;
}

static void test_found_among_many(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LINKS; i++) {
        assert_ptr_equal(find(i), &links[i]);
    }
    for (uint32_t i = 0; i < LINKS; i += 2) {
        link_table_remove(&table, &links[i]);
    }
    for (uint32_t i = 0; i < LINKS; i++) {
        assert_ptr_equal(find(i), i % 2 ? &links[i] : NULL);
    }
    assert_true(table.bucket_count >= table.count);
}

static uint32_t count_all(void)
{
    uint32_t count = 0;
    struct link *link = NULL;
    while ((link = link_table_next(&table, link)) != NULL) {
        count++;
    }
    return count;
}

static void test_idle_without_holders(void **state)
{
    (void)state;
    static uint32_t holders[LINKS];
    struct prng prng;
    uint32_t idle = LINKS, seen = 0;
    prng_init(&prng, 1);
    for (int i = 0; i < 100000; i++) {
        const uint32_t number = (uint32_t)prng_below(&prng, LINKS);
        if (holders[number] > 0 && prng_below(&prng, 2) == 0) {
            link_table_release(&table, &links[number]);
            idle += --holders[number] == 0;
        } else {
            link_table_hold(&table, &links[number]);
            idle -= holders[number]++ == 0;
        }
        assert_int_equal(table.idle_count, idle);
    }
    assert_int_equal(count_all(), LINKS);
    for (struct link *link = link_table_first_idle(&table); link != NULL;
         link = link_table_next(&table, link)) {
        assert_int_equal(holders[link - links], 0);
        seen++;
    }
    assert_int_equal(seen, idle);
}

/* Removes links as the live NIC does. */
static void sweep(void)
{
    struct link *next;
    for (struct link *link = link_table_first_idle(&table); link != NULL; link = next) {
        next = link_table_next(&table, link);
        if (link_table_spares(&table, link)) {
            link_table_remove(&table, link);
        }
    }
    link_table_note_swept(&table);
}

static void test_who_goes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        links[i].wanted = true;
    }
    links[100].routes = 1;
    links[LINKS - 1].lost = true;
    link_table_hold(&table, &links[200]);
    assert_true(link_table_is_crowded(&table));
    sweep();
    assert_int_equal(table.idle_count, 101);
    for (uint32_t i = 0; i < LINKS; i++) {
        assert_ptr_equal(find(i), i <= 100 || i == 200 ? &links[i] : NULL);
    }
    /* Links that are wanted are not looked at again for each new link that becomes idle. */
    for (uint32_t i = 300; i < 401; i++) {
        assert_false(link_table_is_crowded(&table));
        add(i);
    }
    add(401);
    assert_true(link_table_is_crowded(&table));
    for (uint32_t i = 0; i <= 100; i++) {
        links[i].wanted = false;
    }
    links[100].routes = 0;
    sweep();
    assert_int_equal(table.idle_count, LINKS_IDLE);
    for (uint32_t i = 402 - LINKS_IDLE; i < 402; i++) {
        assert_ptr_equal(find(i), &links[i]); /* The newest ones stay. */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found_among_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_without_holders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_goes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
