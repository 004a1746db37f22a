/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    FER-111: of what arrived, the first wrong byte is named, and what is missing or repeated
 *         is counted.
 * Method  The generator's own pattern, whole and spoilt at each byte and at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "transport/feroce/checker.h"
#include "transport/feroce/generator.h"

static struct feroce_checker begin(enum feroce_check check)
{
    struct feroce_checker checker;
    feroce_checker_init(&checker, check);
    feroce_checker_open(&checker);
    return checker;
}

/* Messages of all lengths, over the pattern's end. */
static void test_whole(void **state)
{
    (void)state;
    struct feroce_checker checker = begin(FEROCE_CHECK_COUNTER);
    uint8_t payload[4096];
    uint32_t word = UINT32_MAX - 5000;
    uint64_t bytes = 0;
    checker.word = word;
    for (uint32_t length = 4; length <= sizeof(payload); length += 4) {
        feroce_pattern(word, payload, length);
        feroce_checker_take(&checker, payload, length);
        word += length / 4;
        bytes += length;
    }
    assert_true(feroce_checker_is_content(&checker));
    assert_true(checker.bytes == bytes && checker.messages == 1024);
    assert_true(checker.first_wrong == FEROCE_NO_OFFSET);
    feroce_checker_open(&checker);
    feroce_pattern(0, payload, 8);
    feroce_checker_take(&checker, payload, 8);
    assert_true(feroce_checker_is_content(&checker));
}

/* FER-111: one bit wrong in one byte of the second message, whichever, is found where it is. */
static void test_each_byte(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < 256 * 8; at++) {
        struct feroce_checker checker = begin(FEROCE_CHECK_COUNTER);
        uint8_t payload[256];
        feroce_pattern(0, payload, 16);
        feroce_checker_take(&checker, payload, 16);
        feroce_pattern(4, payload, 256);
        payload[at / 8] ^= (uint8_t)(1u << at % 8);
        feroce_checker_take(&checker, payload, 256);
        assert_true(checker.first_wrong == 16 + at / 8);
        assert_true(checker.wrong_messages == 1 && !feroce_checker_is_content(&checker));
        assert_true(checker.missing == 0 && checker.repeated == 0);
        feroce_pattern(68, payload, 256);
        feroce_checker_take(&checker, payload, 256);
        assert_true(checker.wrong_messages == 1 && checker.first_wrong == 16 + at / 8);
    }
}

/* Messages that are left out or come again, at random: as many words as a plain sum says. */
static void test_gaps(void **state)
{
    (void)state;
    struct prng prng;
    struct feroce_checker checker = begin(FEROCE_CHECK_COUNTER);
    uint64_t missing = 0, repeated = 0;
    uint32_t word = 0, words_before = 0;
    prng_init(&prng, 5);
    for (int i = 0; i < 10000; i++) {
        uint8_t payload[512];
        const uint32_t words = 1 + (uint32_t)prng_below(&prng, 128);
        if (prng_chance(&prng, 100000)) {
            const uint32_t gap = 1 + (uint32_t)prng_below(&prng, 1000);
            missing += gap;
            word += gap;
        } else if (prng_chance(&prng, 100000) && words_before > 0) {
            word -= words_before; /* The message before, again. */
            feroce_pattern(word, payload, 4 * words_before);
            feroce_checker_take(&checker, payload, 4 * words_before);
            repeated += words_before;
            word += words_before;
        }
        feroce_pattern(word, payload, 4 * words);
        feroce_checker_take(&checker, payload, 4 * words);
        word += words;
        words_before = words;
        assert_true(checker.missing == missing && checker.repeated == repeated);
    }
    assert_true(missing > 1000 && repeated > 1000 && checker.wrong_messages == 0);
    assert_false(feroce_checker_is_content(&checker));
}

/* A payload that is neither the pattern nor a part of it. */
static void test_noise(void **state)
{
    (void)state;
    struct feroce_checker checker = begin(FEROCE_CHECK_COUNTER);
    uint8_t payload[64] = {0};
    feroce_checker_take(&checker, payload, 64); /* 0 is right, then 0 again. */
    assert_true(checker.first_wrong == 4 && checker.wrong_messages == 1);
    checker = begin(FEROCE_CHECK_COUNTER);
    store_le32(payload, 0x7fffffff);
    feroce_checker_take(&checker, payload, 4); /* One word alone, far away. */
    assert_true(checker.first_wrong == 0 && checker.missing == 0);
    checker = begin(FEROCE_CHECK_COUNTER);
    feroce_pattern(0, payload, 8);
    feroce_checker_take(&checker, payload, 6); /* Half a word: its octets are looked at. */
    assert_true(feroce_checker_is_content(&checker));
    payload[5] = 9;
    checker = begin(FEROCE_CHECK_COUNTER);
    feroce_checker_take(&checker, payload, 6);
    assert_true(checker.first_wrong == 5);
    checker = begin(FEROCE_CHECK_NONE);
    feroce_checker_take(&checker, payload, 64);
    assert_true(feroce_checker_is_content(&checker) && checker.bytes == 64);
}

static void take_numbered(struct feroce_checker *checker, uint64_t number)
{
    uint8_t payload[32] = {[20] = 7};
    store_be64(payload, number);
    feroce_checker_take(checker, payload, sizeof(payload));
}

/* feroce-rs' pattern. */
static void test_numbers(void **state)
{
    (void)state;
    for (uint64_t first = 0; first < 2; first++) {
        struct feroce_checker checker = begin(FEROCE_CHECK_NUMBER);
        for (uint64_t i = 0; i < 100; i++) {
            take_numbered(&checker, first + i);
        }
        assert_true(feroce_checker_is_content(&checker));
        take_numbered(&checker, first + 103);
        assert_true(checker.missing == 3);
        take_numbered(&checker, first + 103);
        assert_true(checker.repeated == 1);
        take_numbered(&checker, UINT64_C(1) << 40);
        assert_true(checker.first_wrong == 102 * 32 + 2); /* The octet of the bit 40. */
        take_numbered(&checker, first + 105);
        assert_true(checker.wrong_messages == 1 && checker.missing == 3);
        const uint8_t brief[7] = {0};
        feroce_checker_take(&checker, brief, sizeof(brief));
        assert_true(checker.wrong_messages == 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole), cmocka_unit_test(test_each_byte), cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_noise), cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests_name("feroce_checker", tests, NULL, NULL);
}
