/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* -- Errors -------------------------------------------------------------------------------------*/

/* A file's bytes must not reach a terminal as they are. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            *text = '?';
        }
    }
}

bool text_refuse(char *error, size_t error_bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error, error_bytes, format, arguments);
    va_end(arguments);
    make_printable(error);
    return false;
}

bool text_line_refuse(const struct text_lines *lines, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return text_refuse(lines->error, lines->error_bytes, "line %u: %s", lines->number, what);
}

/* -- Lines --------------------------------------------------------------------------------------*/

void text_lines_init(struct text_lines *lines, const char *text, size_t bytes, char *error,
                     size_t error_bytes)
{
    *lines = (struct text_lines){
        .at = text, .end = text + bytes, .error = error, .error_bytes = error_bytes};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void add_word(struct text_lines *lines, const char *from, const char *to)
{
    if (lines->count < TEXT_WORDS_MAX) {
        const size_t length = (size_t)(to - from);
        lines->words[lines->count] =
            (struct text_word){from, length < UINT32_MAX ? (uint32_t)length : UINT32_MAX};
    }
    lines->count += lines->count <= TEXT_WORDS_MAX;
}

/* Splits the words before a comment. */
static void split(struct text_lines *lines, const char *from, const char *to)
{
    lines->count = 0;
    while (from < to && *from != '#') {
        if (is_blank(*from)) {
            from++;
            continue;
        }
        const char *const begin = from;
        while (from < to && !is_blank(*from) && *from != '#') {
            from++;
        }
        add_word(lines, begin, from);
    }
}

bool text_lines_next(struct text_lines *lines)
{
    while (lines->at < lines->end) {
        const char *const begin = lines->at;
        const char *const newline = memchr(begin, '\n', (size_t)(lines->end - begin));
        const char *const end = newline != NULL ? newline : lines->end;
        lines->at = newline != NULL ? newline + 1 : end;
        lines->number++;
        split(lines, begin, end);
        if (lines->count > 0) {
            return true;
        }
    }
    return false;
}

/* -- Words --------------------------------------------------------------------------------------*/

struct text_word text_word_of(const char *text)
{
    return (struct text_word){text, (uint32_t)strlen(text)};
}

bool text_word_is(struct text_word word, const char *text)
{
    return strlen(text) == word.length && memcmp(text, word.text, word.length) == 0;
}

bool text_word_number(struct text_word word, uint64_t most, uint64_t *value)
{
    uint64_t number = 0;
    for (uint32_t i = 0; i < word.length; i++) {
        const uint32_t digit = (uint32_t)(uint8_t)word.text[i] - '0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = 10 * number + digit;
    }
    *value = number;
    return word.length > 0 && number <= most;
}

bool text_word_thousandths(struct text_word word, uint64_t most, uint64_t *value)
{
    struct text_word whole;
    uint64_t units = 0, parts = 0;
    const bool point = text_word_cut(&word, '.', &whole);
    if (!text_word_number(whole, UINT64_MAX / 1000 - 1, &units) ||
        (point && (word.length > 3 || !text_word_number(word, 999, &parts)))) {
        return false;
    }
    for (uint32_t places = word.length; point && places < 3; places++) {
        parts *= 10;
    }
    *value = 1000 * units + parts;
    return *value <= most;
}

bool text_word_cut(struct text_word *rest, char separator, struct text_word *before)
{
    const char *const at = memchr(rest->text, separator, rest->length);
    const uint32_t length = at != NULL ? (uint32_t)(at - rest->text) : rest->length;
    *before = (struct text_word){rest->text, length};
    rest->text += at != NULL ? length + 1 : length;
    rest->length -= at != NULL ? length + 1 : length;
    return at != NULL;
}
