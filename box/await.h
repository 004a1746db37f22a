/* SPDX-License-Identifier: BSD-2-Clause
 *
 * await - waits until the thread that runs stops, and looks at it when it makes no call for long.
 */
#ifndef BOX_AWAIT_H
#define BOX_AWAIT_H

#include <signal.h>
#include <sys/ptrace.h>

#include "box/internal.h"

/* waitpid's status of a thread that was asked to stop. */
#define EVENT_STOP (PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7f)

enum {
    FIRST_LOOK = 2, /* ticks without a call until the first look at a thread */
};

/* How the box looks at a thread that makes no call. */
struct look {
    uint64_t clock_reads;
    unsigned ticks, patience; /* since the last look; until the next one */
    unsigned seldom;          /* looks that were far apart, and showed no loop that waits */
    bool is_asked;            /* The thread was asked to stop. */
};

/* False: the turn is over, for the thread waits or is gone. Else `status` is waitpid's. */
bool await_stop(struct box *box, struct thread *thread, struct look *look, int *status);

#endif
