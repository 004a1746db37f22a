/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A tag is read as what it is, for 2^24 ticks and not longer, by whom issued it, for the
 *         source and the flow that it was issued to (SRD-22).
 * Method  Tags of random times; each of them with one thing changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/srd/tag.h"

#define WRAP (UINT64_C(1) << 24)

static const struct siphash_key key = {{1, 2}};
static const struct srd_source source = {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 7};

static void test_times(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 5);
    for (int round = 0; round < 10000; round++) {
        const uint64_t issued = prng_next(&prng) >> (20 + prng_below(&prng, 40));
        const uint32_t flow = (uint32_t)prng_next(&prng);
        const uint64_t tag = srd_tag_make(&key, &source, flow, issued);
        const uint64_t ages[] = {0, 1, 8191, 8192, WRAP - 1, prng_below(&prng, WRAP)};
        uint64_t read = 0;
        for (size_t i = 0; i < COUNT_OF(ages); i++) {
            assert_true(srd_tag_read(&key, &source, flow, tag, issued + ages[i], &read));
            assert_true(read == issued);
        }
        assert_false(srd_tag_read(&key, &source, flow, tag, issued + WRAP, &read));
        assert_false(srd_tag_read(&key, &source, flow, tag, issued + 5 * WRAP, &read));
        assert_false(issued != 0 && srd_tag_read(&key, &source, flow, tag, issued - 1, &read));
    }
}

static void test_others(void **state)
{
    (void)state;
    const uint64_t tag = srd_tag_make(&key, &source, 99, 1000);
    uint64_t issued;
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_false(srd_tag_read(&key, &source, 99, tag ^ UINT64_C(1) << bit, 1000 + 5, &issued));
    }
    for (unsigned bit = 0; bit < 128; bit++) {
        struct srd_source other = source;
        struct siphash_key another = key;
        other.gid[bit / 8] ^= (uint8_t)(1 << bit % 8);
        another.halves[bit / 64] ^= UINT64_C(1) << bit % 64;
        assert_false(srd_tag_read(&key, &other, 99, tag, 1005, &issued));
        assert_false(srd_tag_read(&another, &source, 99, tag, 1005, &issued));
    }
    struct srd_source neighbour = source;
    neighbour.slot++;
    assert_false(srd_tag_read(&key, &neighbour, 99, tag, 1005, &issued));
    assert_false(srd_tag_read(&key, &source, 98, tag, 1005, &issued));
    assert_true(srd_tag_read(&key, &source, 99, tag, 1005, &issued));
}

/* 7.9 s is below the age at which a tag opens nothing, 8.1 s above it. */
static void test_ticks(void **state)
{
    (void)state;
    assert_true(srd_ticks((struct instant){7900000000}) < SRD_TAG_TICKS);
    assert_true(srd_ticks((struct instant){8100000000}) > SRD_TAG_TICKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_ticks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
