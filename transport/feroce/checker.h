/* SPDX-License-Identifier: BSD-2-Clause
 *
 * checker - is what arrived what the front end's test data is?
 *
 * Purpose    Compares messages with a pattern, and tells what is missing from what is wrong.
 * Inputs     Messages in the order of their completion.
 * Outputs    Counts, and where the first wrong byte is.
 * Units      Bytes; words of 4 bytes.
 * Limits     2^32 words, then the pattern begins anew.
 * Source     RTL2026's test data, and the messages that feroce-rs sends (wire/feroce.h).
 *
 * Two or more words in ascending order that are not the expected ones are a jump: words are missing
 * or come again. So is a message that is one such word, up to JUMP_MAX words away. Anything else is
 * wrong. A message of fewer than 8 bytes is no message of feroce-rs'.
 */
#ifndef TRANSPORT_FEROCE_CHECKER_H
#define TRANSPORT_FEROCE_CHECKER_H

#include <stdbool.h>
#include <stdint.h>

enum feroce_check {
    FEROCE_CHECK_NONE,
    FEROCE_CHECK_COUNTER, /* Words that count: the board's generator. */
    FEROCE_CHECK_NUMBER,  /* A big-endian number in octets 0 to 7: feroce-rs' sender. */
};

#define FEROCE_NO_OFFSET UINT64_MAX

struct feroce_checker {
    enum feroce_check check;
    uint32_t word;   /* Expected next. */
    uint64_t number; /* Likewise. */
    bool has_number; /* The first one may be 0 or 1. */
    uint64_t bytes, messages;
    uint64_t wrong_messages; /* With at least one wrong byte. */
    uint64_t first_wrong;    /* Offset of the byte in all that was taken; FEROCE_NO_OFFSET: none. */
    uint64_t missing;        /* Words, or messages of feroce-rs. */
    uint64_t repeated;
};

void feroce_checker_init(struct feroce_checker *checker, enum feroce_check check);
/* The queue pair was opened: the pattern begins anew, the counts go on. */
void feroce_checker_open(struct feroce_checker *checker);
void feroce_checker_take(struct feroce_checker *checker, const uint8_t *payload, uint32_t bytes);
/* Was everything as it should be? */
bool feroce_checker_is_content(const struct feroce_checker *checker);

#endif
