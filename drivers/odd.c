/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/odd.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prng.h"
#include "drivers/system/memory.h"

enum {
    PIECES = 16, /* A packet's, about. */
    PIECES_MAX = PIECES + 2 * NIC_SEGMENT_MAX,
    SLOW_ONE_IN = 8, /* Packets, in the middle of which there is a pause. */
    PAUSE_NS = 50000,
};

uint32_t odd_wanted;
static uint64_t seed;
static _Atomic uint64_t drawn[ODD_COUNT];

#define ODD_NAME(name, text) text,
static const char *const names[] = {ODD_WORDS(ODD_NAME)};

/* -- Wishes -------------------------------------------------------------------------------------*/

static int word_named(const char *name)
{
    int word = 0;
    while (word < ODD_COUNT && strcmp(names[word], name) != 0) {
        word++;
    }
    return word;
}

static bool is_seed(const char *text)
{
    return text[0] != '\0' && strlen(text) < 20 && strspn(text, "0123456789") == strlen(text);
}

static void explain(const char *text, char *error, size_t error_bytes)
{
    size_t used = (size_t)snprintf(error, error_bytes,
                                   "--odd (NONIC_ODD) is '%s'; valid is a number, the seed, and "
                                   "with commas between them words, or -WORD for all but these:",
                                   text);
    for (size_t i = 0; i < ODD_COUNT && used < error_bytes; i++) {
        used += (size_t)snprintf(error + used, error_bytes - used, "%s %s", i == 0 ? "" : ",",
                                 names[i]);
    }
}

/* Takes the text apart. */
static bool parse(char *text, uint64_t *number, uint32_t *wanted)
{
    uint32_t named = 0, left_out = 0;
    char *word;
    for (bool is_first = true; (word = strsep(&text, ",")) != NULL; is_first = false) {
        const bool out = word[0] == '-';
        const int which = word_named(word + out);
        if (is_first && is_seed(word)) {
            *number = strtoull(word, NULL, 10);
        } else if (is_first || which == ODD_COUNT) {
            return false;
        } else {
            *(out ? &left_out : &named) |= 1u << which;
        }
    }
    *wanted = (named == 0 ? (1u << ODD_COUNT) - 1 : named) & ~left_out;
    return true;
}

bool odd_begin(const char *text, char *error, size_t error_bytes)
{
    char copy[256];
    uint64_t number = 0;
    uint32_t wanted = 0;
    if (text != NULL) {
        snprintf(copy, sizeof(copy), "%s", text);
        if (strlen(text) >= sizeof(copy) || !parse(copy, &number, &wanted)) {
            explain(text, error, error_bytes);
            return false;
        }
    }
    seed = number;
    odd_wanted = wanted;
    for (size_t i = 0; i < ODD_COUNT; i++) {
        atomic_store(&drawn[i], 0);
    }
    return true;
}

/* Each word has numbers of its own: threads that draw for different ones do not disturb each
 * other. */
uint32_t odd_draw(enum odd_word word, uint32_t bound)
{
    struct prng prng;
    const uint64_t number = atomic_fetch_add(&drawn[word], 1);
    prng_init(&prng, seed + (number << 24) + ((uint64_t)word << 20));
    return (uint32_t)prng_below(&prng, bound);
}

/* -- Pieces -------------------------------------------------------------------------------------*/

struct piece {
    struct segment to;
    const uint8_t *from;
};

static uint32_t cut(struct piece *pieces, uint32_t count, uint32_t size, struct segment to,
                    const uint8_t *from)
{
    while (to.bytes > 0) {
        struct piece *piece = &pieces[count++];
        CHECK(count <= PIECES_MAX);
        *piece = (struct piece){.to = to, .from = from};
        piece->to.bytes = to.bytes < size ? to.bytes : size;
        to.address += piece->to.bytes;
        to.bytes -= piece->to.bytes;
        from += piece->to.bytes;
    }
    return count;
}

/* The prefix and the payload of a move, one behind the other over its segments. */
static uint32_t cut_all(const struct nic_move *move, struct piece *pieces)
{
    uint32_t bytes = 0, count = 0, prefix_left = move->prefix_bytes;
    const uint8_t *prefix = move->prefix, *payload = move->payload;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        bytes += move->segments[i].bytes;
    }
    const uint32_t size = bytes / PIECES + 1;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        struct segment head = move->segments[i], rest = head;
        head.bytes = prefix_left < head.bytes ? prefix_left : head.bytes;
        rest.bytes -= head.bytes;
        rest.address += head.bytes;
        count = cut(pieces, count, size, head, prefix);
        count = cut(pieces, count, size, rest, payload);
        prefix += head.bytes;
        prefix_left -= head.bytes;
        payload += rest.bytes;
    }
    return count;
}

static bool put(const struct piece *piece)
{
    struct nic_move move = {.kind = NIC_MOVE_SCATTER,
                            .payload = piece->from,
                            .segments = {piece->to},
                            .segment_count = 1};
    return memory_move(&move) == NIC_MOVED;
}

/* The program sees what there is so far, also if it has to share the processor with us. */
static void pause_shortly(void)
{
    const struct timespec time = {.tv_nsec = PAUSE_NS};
    nanosleep(&time, NULL);
}

/* The 20 bytes in front of an IPv4 header are nothing. */
static void spoil_grh(struct nic_move *move)
{
    enum {
        BEFORE_IPV4 = 20,
    };
    if (is_odd(ODD_GRH) && move->prefix_bytes == NIC_GRH_BYTES &&
        move->prefix[BEFORE_IPV4] >> 4 == 4) {
        for (int i = 0; i < BEFORE_IPV4; i++) {
            move->prefix[i] = (uint8_t)odd_draw(ODD_GRH, 256);
        }
    }
}

/* Reads the number, and writes the result behind it: a device's atomics are atomic with each other
 * (we have the NIC's lock), and not with the processor's. */
static enum nic_move_result move_atomic(struct nic_move *move)
{
    struct nic_move read = *move;
    read.atomic = NIC_FETCH_ADD;
    read.swap_or_add = 0;
    if (memory_move(&read) != NIC_MOVED) {
        return NIC_MOVE_FAULTED;
    }
    if (odd_draw(ODD_ATOMICS, SLOW_ONE_IN) == 0) {
        pause_shortly();
    }
    move->original = read.original;
    const uint64_t result = nic_atomic_result(move, read.original);
    const struct piece piece = {.to = move->segments[0], .from = (const uint8_t *)&result};
    return put(&piece) ? NIC_MOVED : NIC_MOVE_FAULTED;
}

static enum nic_move_result scatter(struct nic_move *move)
{
    struct piece pieces[PIECES_MAX];
    uint32_t count = cut_all(move, pieces);
    const bool slow = count > 1 && odd_draw(ODD_PIECES, SLOW_ONE_IN) == 0;
    const uint32_t behind_pause = slow ? 1 + odd_draw(ODD_PIECES, count - 1) : UINT32_MAX;
    for (; count > 0; count--) {
        const uint32_t which = odd_draw(ODD_PIECES, count);
        if (!put(&pieces[which])) {
            return NIC_MOVE_FAULTED;
        }
        pieces[which] = pieces[count - 1];
        if (count - 1 == behind_pause) {
            pause_shortly();
        }
    }
    return NIC_MOVED;
}

enum nic_move_result odd_move(struct nic_move *move)
{
    if (move->kind == NIC_MOVE_ATOMIC && is_odd(ODD_ATOMICS)) {
        return move_atomic(move);
    }
    if (move->kind != NIC_MOVE_SCATTER) {
        return memory_move(move);
    }
    spoil_grh(move);
    return is_odd(ODD_PIECES) ? scatter(move) : memory_move(move);
}
