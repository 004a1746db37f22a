/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The words that an instruction touches are named as the processor's manual has them; what
 *         cannot be named is not known.
 * Method  Instructions as bytes, with addresses computed by hand; random bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/prng.h"
#include "box/access.h"

#define READ    true, false
#define WRITTEN false, true
#define BOTH    true, true

enum {
    RANDOM_CODES = 100000,
};

static const registers at = {.rax = 0x1000,
                             .rbx = 0x2000,
                             .rcx = 3,
                             .rsp = 0x8000,
                             .rsi = 0x6000,
                             .rdi = 0x7000,
                             .rip = 0x400000,
                             .fs_base = 0x500000};

static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint8_t code[ACCESS_CODE_MAX];
        int words;
        struct access_word word;
    } rows[] = {
        {"mov 16(%rbx,%rcx,8), %rax", {0x48, 0x8b, 0x44, 0xcb, 0x10}, 1, {0x2028, 8, READ}},
        {"mov %eax, (%rdi)", {0x89, 0x07}, 1, {0x7000, 4, WRITTEN}},
        {"cmpb $0, (%rsi)", {0x80, 0x3e, 0x00}, 1, {0x6000, 1, READ}},
        {"lock cmpxchg %ecx, (%rdi)", {0xf0, 0x0f, 0xb1, 0x0f}, 1, {0x7000, 4, BOTH}},
        {"xchg %eax, (%rdi)", {0x87, 0x07}, 1, {0x7000, 4, BOTH}},
        {"push %rax", {0x50}, 1, {0x7ff8, 8, WRITTEN}},
        {"pop %rax", {0x58}, 1, {0x8000, 8, READ}},
        {"call", {0xe8, 0, 0, 0, 0}, 1, {0x7ff8, 8, WRITTEN}},
        {"mov %fs:16, %eax", {0x64, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0}, 1, {0x500010, 4, READ}},
        {"mov 256(%rip), %eax", {0x8b, 0x05, 0, 1, 0, 0}, 1, {0x400106, 4, READ}},
        {"mov (%eax), %eax", {0x67, 0x8b, 0x00}, 1, {0x1000, 4, READ}},
        {"movdqa (%rsi), %xmm0", {0x66, 0x0f, 0x6f, 0x06}, 1, {0x6000, 16, READ}},
        {"lea (%rdi), %rax", {0x48, 0x8d, 0x07}, 0, {0}},
        {"pause", {0xf3, 0x90}, 0, {0}},
        {"jne", {0x75, 0xfe}, 0, {0}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct instruction_access access = access_of(rows[i].code, sizeof(rows[i].code), &at);
        const struct access_word *word = &access.word[0], *wanted = &rows[i].word;
        print_message("%s\n", rows[i].what);
        assert_true(access.known);
        assert_false(access.is_call || access.is_return);
        assert_int_equal(access.words, rows[i].words);
        assert_int_equal(word->address, wanted->address);
        assert_int_equal(word->bytes, wanted->bytes);
        assert_int_equal(word->read, wanted->read);
        assert_int_equal(word->written, wanted->written);
    }
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint8_t code[ACCESS_CODE_MAX];
        bool is_call;
    } rows[] = {
        {"syscall", {0x0f, 0x05}, true},
        {"rdtsc", {0x0f, 0x31}, true},
        {"rdtscp", {0x0f, 0x01, 0xf9}, true},
        {"int3", {0xcc}, true},
        {"ud2", {0x0f, 0x0b}, true},
        {"cpuid", {0x0f, 0xa2}, false},
        {"rdrand %eax", {0x0f, 0xc7, 0xf0}, false},
        {"rep movsb", {0xf3, 0xa4}, false},
        {"vpgatherdd", {0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x8b}, false},
        {"no instruction", {0x06}, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct instruction_access access = access_of(rows[i].code, sizeof(rows[i].code), &at);
        print_message("%s\n", rows[i].what);
        assert_false(access.known);
        assert_int_equal(access.is_call, rows[i].is_call);
    }
}

static void test_ends(void **state)
{
    (void)state;
    static const uint8_t returns[] = {0xc3}, half[] = {0x48, 0x8b}, rdtsc[] = {0x0f, 0x31},
                         rdtscp[] = {0x0f, 0x01, 0xf9}, syscall_code[] = {0x0f, 0x05};
    const struct instruction_access access = access_of(returns, sizeof(returns), &at);
    assert_true(access.known && access.is_return);
    assert_int_equal(access.word[0].address, 0x8000);
    assert_false(access_of(half, sizeof(half), &at).known);
    assert_int_equal(access_bytes(half, sizeof(half)), 0);
    assert_int_equal(access_bytes(syscall_code, sizeof(syscall_code)), 2);
    assert_int_equal(access_clock_bytes(rdtsc, sizeof(rdtsc)), 2);
    assert_int_equal(access_clock_bytes(rdtscp, sizeof(rdtscp)), 3);
    assert_int_equal(access_clock_bytes(rdtscp, 2), 0);
    assert_int_equal(access_clock_bytes(syscall_code, sizeof(syscall_code)), 0);
}

static void test_random_bytes(void **state)
{
    (void)state;
    struct prng prng;
    uint8_t code[ACCESS_CODE_MAX];
    prng_init(&prng, 42);
    for (int i = 0; i < RANDOM_CODES; i++) {
        for (size_t byte = 0; byte < sizeof(code); byte++) {
            code[byte] = (uint8_t)prng_below(&prng, 256);
        }
        const struct instruction_access access = access_of(code, sizeof(code), &at);
        const size_t bytes = access_bytes(code, sizeof(code));
        assert_true(bytes <= sizeof(code));
        assert_true(bytes > 0 || !access.known);
        assert_in_range(access.words, 0, ACCESS_WORDS_MAX);
        for (int word = 0; word < access.words; word++) {
            assert_in_range(access.word[word].bytes, 1, ACCESS_BYTES_MAX);
            assert_true(access.word[word].read || access.word[word].written);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
