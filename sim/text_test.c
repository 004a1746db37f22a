/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Lines, words and numbers are read as people mean them, and errors name the line.
 * Method  Cases by hand, at the limits of the grammar.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "sim/text.h"

static void test_lines(void **state)
{
    (void)state;
    static const char text[] = "\n  one two\t three \r\n# nothing\nlast#comment";
    struct text_lines lines;
    char error[40];
    text_lines_init(&lines, text, sizeof(text) - 1, error, sizeof(error));
    assert_true(text_lines_next(&lines));
    assert_int_equal(lines.number, 2);
    assert_int_equal(lines.count, 3);
    assert_true(text_word_is(lines.words[0], "one"));
    assert_false(text_word_is(lines.words[0], "on"));
    assert_true(text_word_is(lines.words[2], "three"));
    assert_true(text_lines_next(&lines));
    assert_int_equal(lines.number, 4);
    assert_int_equal(lines.count, 1);
    assert_true(text_word_is(lines.words[0], "last"));
    assert_false(text_line_refuse(&lines, "no \x1b[%s", "31m"));
    assert_string_equal(error, "line 4: no ?[31m");
    assert_false(text_lines_next(&lines));
}

static void test_many_words(void **state)
{
    (void)state;
    static const char text[] = "1 2 3 4 5 6 7 8\n1 2 3 4 5 6 7 8 9\n1 2 3 4 5 6 7 8 9 10 11";
    static const uint32_t counts[] = {8, 9, 9};
    struct text_lines lines;
    text_lines_init(&lines, text, strlen(text), NULL, 0);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        assert_true(text_lines_next(&lines));
        assert_int_equal(lines.count, counts[i]);
        assert_true(text_word_is(lines.words[7], "8"));
    }
}

static void test_numbers(void **state)
{
    (void)state;
    uint64_t value = 0;
    assert_true(text_word_number(text_word_of("18446744073709551615"), UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    static const char *const wrong[] = {"", "18446744073709551616", "101", "-1", "+1", "0x1", "1."};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(text_word_number(text_word_of(wrong[i]), i < 2 ? UINT64_MAX : 100, &value));
    }
    static const struct {
        const char *text;
        uint64_t value;
    } right[] = {{"0", 0}, {"1.5", 1500}, {"0.001", 1}, {"12.34", 12340}, {"100", 100000}};
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        assert_true(text_word_thousandths(text_word_of(right[i].text), 100000, &value));
        assert_int_equal(value, right[i].value);
    }
    static const char *const no_decimals[] = {".5",      "1.",    "1.2345",
                                              "100.001", "1.2.3", "18446744073709551.616"};
    for (size_t i = 0; i < COUNT_OF(no_decimals); i++) {
        assert_false(text_word_thousandths(text_word_of(no_decimals[i]), 100000, &value));
    }
}

static void test_cuts(void **state)
{
    (void)state;
    struct text_word rest = text_word_of("ab:c:"), before;
    assert_true(text_word_cut(&rest, ':', &before));
    assert_true(text_word_is(before, "ab"));
    assert_true(text_word_cut(&rest, ':', &before));
    assert_true(text_word_is(before, "c"));
    assert_false(text_word_cut(&rest, ':', &before));
    assert_int_equal(before.length, 0);
    assert_int_equal(rest.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_many_words),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
