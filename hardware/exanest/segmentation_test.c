/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Blocks cover a transfer exactly, and each fits a bitmap of 64 packets.
 * Method  Random addresses and lengths; the lines of 256 bytes that a block touches are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/segmentation.h"

/* Lines of 256 bytes that a block touches: packets, and bits of the receiver's bitmap. */
static uint32_t packets_of(uint64_t va, uint32_t bytes)
{
    return (uint32_t)((va + bytes - 1) / 256 - va / 256 + 1);
}

struct cut {
    uint32_t blocks, packets, packets_max;
};

static struct cut cut_all(enum exanest_cut how, uint64_t source, uint64_t va, uint32_t bytes)
{
    struct cut cut = {0};
    for (uint32_t at = 0; at < bytes;) {
        const uint32_t n = exanest_block_bytes(how, source + at, va + at, bytes - at);
        const uint32_t packets = packets_of(va + at, n);
        assert_in_range(n, 1, EXANEST_BLOCK_BYTES_MAX);
        assert_true(n <= bytes - at);
        cut.blocks++;
        cut.packets += packets;
        cut.packets_max = packets > cut.packets_max ? packets : cut.packets_max;
        at += n;
    }
    return cut;
}

/* EXA-44: inside one 16 KB line of the destination; the source does not matter. */
static void test_lines(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int i = 0; i < 20000; i++) {
        const uint64_t source = prng_next(&prng) >> 8, va = prng_next(&prng) >> 24;
        const uint32_t bytes = 1 + (uint32_t)prng_below(&prng, 1 << prng_below(&prng, 22));
        const struct cut cut = cut_all(EXANEST_CUT_DESTINATION, source, va, bytes);
        assert_int_equal(cut.blocks, (va + bytes - 1) / 16384 - va / 16384 + 1);
        assert_int_equal(cut.packets, packets_of(va, bytes));
        assert_true(cut.packets_max <= EXANEST_BLOCK_PACKETS_MAX);
        uint32_t at = 0;
        while (at < bytes) {
            const uint32_t n =
                exanest_block_bytes(EXANEST_CUT_DESTINATION, source + at, va + at, bytes - at);
            assert_int_equal((va + at) / 16384, (va + at + n - 1) / 16384);
            at += n;
        }
    }
}

/* EXA-44, and the counts of row EXA-A19: 1 MB at every pair of offsets. */
static void test_unaligned_megabyte(void **state)
{
    (void)state;
    bool seen_too_many = false;
    for (uint32_t s = 0; s < 16; s++) {
        for (uint32_t d = 0; d < 16; d++) {
            struct cut cut = cut_all(EXANEST_CUT_DESTINATION, 0x100000 + s, 0x200000 + d, 1 << 20);
            assert_int_equal(cut.blocks, d == 0 ? 64 : 65);
            assert_int_equal(cut.packets, d == 0 ? 4096 : 4097);
            cut = cut_all(EXANEST_CUT_SOURCE, 0x100000 + s, 0x200000 + d, 1 << 20);
            assert_int_equal(cut.blocks, s == 0 ? 64 : 65);
            seen_too_many |= cut.packets_max > EXANEST_BLOCK_PACKETS_MAX;
        }
    }
    assert_true(seen_too_many); /* Cutting at the source's lines breaks this. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_unaligned_megabyte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
