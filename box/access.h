/* SPDX-License-Identifier: BSD-2-Clause
 *
 * access - which words of memory an instruction touches, and how.
 *
 * Source: the instructions' definitions as Zydis has them. An instruction whose words cannot be
 * named (gathers, strings, what is unknown) is not judged, so a loop that has it is never taken for
 * one that only waits.
 */
#ifndef BOX_ACCESS_H
#define BOX_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "box/tracee.h"

enum {
    ACCESS_WORDS_MAX = 3,  /* of an instruction */
    ACCESS_BYTES_MAX = 64, /* of a word */
    ACCESS_CODE_MAX = 15,  /* bytes of an instruction */
};

struct access_word {
    uint64_t address;
    uint32_t bytes;
    bool read, written;
};

struct instruction_access {
    bool known;   /* All that it touches is here, and its result rests on that and on registers. */
    bool is_call; /* It enters the kernel, or reads the processor's clock. */
    bool is_return; /* from a function */
    int words;
    struct access_word word[ACCESS_WORDS_MAX];
};

/* The words that the instruction in `code` touches if it runs with these registers. */
struct instruction_access access_of(const uint8_t *code, size_t bytes, const registers *at);

/* The length of the instruction at `code` if it reads the processor's clock (rdtsc, rdtscp); 0: it
 * does not. */
int access_clock_bytes(const uint8_t *code, size_t bytes);

/* The length of the instruction in `code`; 0: it is none. */
size_t access_bytes(const uint8_t *code, size_t bytes);

#endif
