/* SPDX-License-Identifier: BSD-2-Clause
 *
 * raced - programs that ThreadSanitizer watches: the NIC is a thread that touches their memory.
 *
 * Purpose    ThreadSanitizer reports two accesses to memory that nothing orders, one of them a
 *            write. It sees the program's threads, and nothing of a NIC. So each queue of a queue
 *            pair is a thread to it (a fiber), which accesses the memory of a request from its post
 *            on. Calls of verbs order that: a post orders what the program did before it, a
 *            completion that is polled orders the NIC's access before what the program does next.
 *            A write into a buffer between the two is then a race, in each run, whenever the bytes
 *            really move.
 * Inputs     Requests, completions, and accesses of peers.
 * Outputs    ThreadSanitizer's report, with the calls of the post as the stack of the NIC's access.
 * Threads    Accesses of one kind: one at a time. In other programs each of these does nothing.
 * Limits     Queue pairs share RACE_FIBERS threads of each kind: a race of two that share one is
 *            not found.
 * Source     <sanitizer/tsan_interface.h>, docs/decisions/0058.
 */
#ifndef DRIVERS_RACED_H
#define DRIVERS_RACED_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/types.h"

#define RACE_FIBERS 64

enum race_kind {
    RACE_SENDS,    /* Reads what is sent, writes what READs bring. */
    RACE_RECEIVES, /* Writes receives. */
    RACE_PEER,     /* WRITEs, READs and atomics of the peer. */
    RACE_KINDS,
};

/* Does ThreadSanitizer watch the program, and not nonic itself? */
bool race_is_noted(void);

/* From here to race_leave nothing that the thread does orders it with others, or touches the
 * program's memory: nonic's locks are no locks of the program. Pairs may be nested. A thread of
 * nonic's own leaves when it ends. */
void race_enter(void);
void race_leave(void);

/* All that the thread has done so far is before all that follows an acquire of the same word. To be
 * called between race_enter and race_leave. */
void race_release(const void *word);
void race_acquire(const void *word);

struct race_access {
    enum race_kind kind;
    uint32_t qpn;
    bool writes;
    const void *after, *before; /* Words that the fiber acquires first, and releases afterwards. */
    void *const *calls;         /* Addresses behind calls, the innermost first. */
    int call_count;
};
void race_touch(const struct race_access *access, const struct segment *segments, uint32_t count);

/* The word that orders what the program did before its last call of verbs, or before it sent
 * something by a socket, before accesses of peers. */
extern const char race_told;
/* The program tells another one something. Not between race_enter and race_leave. */
void race_tell(void);
/* A peer accesses memory: nothing of the program is ordered behind it but by a completion. */
void race_touch_for_peer(uint32_t qpn, bool writes, const struct segment *segments, uint32_t count);
/* The word that is released behind accesses of the queue pair's peer. */
const void *race_peer_word(uint32_t qpn);

/* ThreadSanitizer forgets what the program did with this descriptor, since nonic closes it unseen
 * (system.h), and the number may be another file's next. Not for children of fork. */
void race_forget(int fd);

#endif
