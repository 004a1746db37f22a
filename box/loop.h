/* SPDX-License-Identifier: BSD-2-Clause
 *
 * loop - proves that a thread is in a loop which only a change of memory can end.
 *
 * Purpose: RDMA programs wait by reading their memory again and again. Such a thread makes no call,
 * so nothing says when its turn is over, and where a timer would stop it is different in each run.
 * A thread whose registers repeat over a whole round of its loop, and whose round leaves memory as
 * it was, goes on for ever unless somebody else writes what it reads. It is put to sleep at the
 * least state of the round, which does not depend on when we looked.
 * Method: the thread is stepped; Brent's algorithm finds a state that comes again; further rounds
 * show that each step repeats. Equal registers in each step are equal addresses and equal values of
 * plain stores; what an instruction both reads and writes is compared.
 */
#ifndef BOX_LOOP_H
#define BOX_LOOP_H

#include "box/access.h"

enum {
    LOOP_STEPS_MAX = 4000, /* to find a state that comes again, and of a round */
    LOOP_WORDS_MAX = 64,
};

struct loop_word {
    uint64_t address;
    uint32_t bytes;
    uint8_t value[ACCESS_BYTES_MAX];
};

/* Where the thread sleeps, and what its loop reads. */
struct loop {
    registers at;
    int steps; /* of a round */
    int words;
    struct loop_word word[LOOP_WORDS_MAX];
};

enum loop_verdict {
    LOOP_WAITS,   /* It waits for memory, and stands at the round's least state; see `loop`. */
    LOOP_UNKNOWN, /* No proof. It was stepped on, which changes nothing for it. */
    LOOP_STOPPED, /* A step ended otherwise (a signal, its end): handle `status`, as of waitpid. */
};

/* `thread` stands in its own code. `steps` counts the steps. */
enum loop_verdict loop_prove(pid_t thread, struct loop *loop, int *status, uint64_t *steps);

/* Steps at most `count` times, and at most until `returns` functions have returned into code
 * between the two addresses: a program's own code, where one of its statements ends and the next
 * one begins. LOOP_WAITS: it stands in its own code; LOOP_UNKNOWN: before a call; LOOP_STOPPED as
 * above. */
enum loop_verdict loop_step(pid_t thread, int count, int returns, const uint64_t code[2],
                            int *status, uint64_t *steps);

/* Whether a word that the loop reads has another value now. */
bool loop_is_over(pid_t thread, const struct loop *loop);

#endif
