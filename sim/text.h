/* SPDX-License-Identifier: BSD-2-Clause
 *
 * text - lines of words, and errors that name the line.
 *
 * All files that people write for the laboratory have one form: words with blanks between them, one
 * statement a line, and a comment behind a '#'. A word points into the text and does not end in a
 * 0.
 */
#ifndef SIM_TEXT_H
#define SIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define TEXT_WORDS_MAX 8u

struct text_word {
    const char *text;
    uint32_t length;
};

struct text_lines {
    const char *at, *end;
    uint32_t number; /* This line's; the first is 1. */
    uint32_t count;  /* Words in it; TEXT_WORDS_MAX + 1: too many, and the others are not kept. */
    struct text_word words[TEXT_WORDS_MAX];
    char *error; /* Where text_line_refuse writes. */
    size_t error_bytes;
};

/* Where an error is written: the text may hold anything, the error holds what can be printed. */
bool text_refuse(char *error, size_t error_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void text_lines_init(struct text_lines *lines, const char *text, size_t bytes, char *error,
                     size_t error_bytes);
/* Goes to the next line that holds a word. False: none. */
bool text_lines_next(struct text_lines *lines);
/* Writes "line N: ..."; always false, so that it can be returned. */
bool text_line_refuse(const struct text_lines *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct text_word text_word_of(const char *text);
bool text_word_is(struct text_word word, const char *text);
/* Reads a whole number without a sign; false if it is none, or more than `most`. */
MUST_USE bool text_word_number(struct text_word word, uint64_t most, uint64_t *value);
/* Reads a decimal number with up to three places behind the point, as thousandths. */
MUST_USE bool text_word_thousandths(struct text_word word, uint64_t most, uint64_t *value);
/* Cuts off the text before the first `separator`. False: there is no separator, and all was cut
 * off. */
bool text_word_cut(struct text_word *rest, char separator, struct text_word *before);

/* To print a word: printf("%.*s", TEXT_WORD(word)). A long one is cut short. */
#define TEXT_WORD_SHOWN 40
#define TEXT_WORD(word)                                                                            \
    (int)((word).length < TEXT_WORD_SHOWN ? (word).length : TEXT_WORD_SHOWN), (word).text

#endif
