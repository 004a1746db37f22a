/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/checker.h"

#include "base/bytes.h"

#define JUMP_MAX     65536
#define NUMBER_BYTES 8

void feroce_checker_init(struct feroce_checker *checker, enum feroce_check check)
{
    *checker = (struct feroce_checker){.check = check, .first_wrong = FEROCE_NO_OFFSET};
}

void feroce_checker_open(struct feroce_checker *checker)
{
    checker->word = 0;
    checker->has_number = false;
}

bool feroce_checker_is_content(const struct feroce_checker *checker)
{
    return checker->wrong_messages == 0 && checker->missing == 0 && checker->repeated == 0;
}

static void note_wrong(struct feroce_checker *checker, uint64_t at)
{
    checker->first_wrong =
        checker->first_wrong == FEROCE_NO_OFFSET ? checker->bytes + at : checker->first_wrong;
}

/* Compares `bytes`, 1 to 8, with those at the offset `at` of the message. */
static bool differs(struct feroce_checker *checker, const uint8_t *payload, uint64_t at,
                    const uint8_t *expected, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (payload[at + i] != expected[i]) {
            note_wrong(checker, at + i);
            return true;
        }
    }
    return false;
}

/* How many of `count` words from here on count up by one. */
static uint32_t ascending(const uint8_t *payload, uint32_t count)
{
    const uint32_t first = load_le32(payload);
    uint32_t words = 1;
    while (words < count && load_le32(payload + 4 * (uint64_t)words) == first + words) {
        words++;
    }
    return words;
}

static void jump(struct feroce_checker *checker, uint32_t first, uint32_t words)
{
    const int32_t ahead = (int32_t)(first - checker->word);
    if (ahead > 0) {
        checker->missing += (uint32_t)ahead;
    } else {
        /* From here on the pattern goes on behind the repeated words. */
        checker->repeated += words;
    }
    checker->word = first + words;
}

static bool is_near(const struct feroce_checker *checker, uint32_t first)
{
    const int32_t ahead = (int32_t)(first - checker->word);
    return ahead >= -JUMP_MAX && ahead <= JUMP_MAX;
}

static bool take_words(struct feroce_checker *checker, const uint8_t *payload, uint32_t bytes)
{
    const uint32_t count = bytes / 4;
    bool wrong = false;
    for (uint32_t at = 0; at < count;) {
        const uint8_t *from = payload + 4 * (uint64_t)at;
        const uint32_t first = load_le32(from);
        const uint32_t words = ascending(from, count - at);
        if (first == checker->word) {
            checker->word += words;
            at += words;
        } else if (words > 1 || (count == 1 && is_near(checker, first))) {
            jump(checker, first, words);
            at += words;
        } else {
            uint8_t expected[4];
            store_le32(expected, checker->word);
            wrong |= differs(checker, payload, 4 * (uint64_t)at, expected, 4);
            checker->word++;
            at++;
        }
    }
    if (bytes % 4 != 0) { /* The board sends no such message; but these bytes are checked, too. */
        uint8_t expected[4];
        store_le32(expected, checker->word++);
        wrong |= differs(checker, payload, 4 * (uint64_t)count, expected, bytes % 4);
    }
    return wrong;
}

static bool take_number(struct feroce_checker *checker, const uint8_t *payload, uint32_t bytes)
{
    uint8_t expected[NUMBER_BYTES];
    if (bytes < NUMBER_BYTES) {
        note_wrong(checker, bytes); /* The first one that is not there. */
        return true;
    }
    const uint64_t number = load_be64(payload);
    if (!checker->has_number) {
        checker->has_number = true;
        checker->number = number == 1 ? 1 : 0;
    }
    const uint64_t ahead = number - checker->number, behind = checker->number - number;
    if (ahead <= JUMP_MAX) {
        checker->missing += ahead;
        checker->number = number + 1;
        return false;
    }
    if (behind <= JUMP_MAX) {
        checker->repeated++;
        checker->number = number + 1;
        return false;
    }
    store_be64(expected, checker->number++);
    return differs(checker, payload, 0, expected, NUMBER_BYTES);
}

void feroce_checker_take(struct feroce_checker *checker, const uint8_t *payload, uint32_t bytes)
{
    bool wrong = false;
    switch (checker->check) {
    case FEROCE_CHECK_NONE: break;
    case FEROCE_CHECK_COUNTER: wrong = take_words(checker, payload, bytes); break;
    case FEROCE_CHECK_NUMBER: wrong = take_number(checker, payload, bytes); break;
    }
    checker->wrong_messages += wrong;
    checker->messages++;
    checker->bytes += bytes;
}
