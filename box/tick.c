/* SPDX-License-Identifier: BSD-2-Clause
 *
 * tick - a timer of the machine, and signals of a person, interrupt the box while it waits.
 *
 * A tick decides only when the box looks at a thread, and nothing of what it finds.
 */
#include <signal.h>
#include <sys/time.h>

#include "box/internal.h"

static volatile sig_atomic_t is_asked_to_end;

static void on_signal(int signal)
{
    is_asked_to_end = signal == SIGALRM ? is_asked_to_end : 1;
}

bool ticks_are_over(void)
{
    return is_asked_to_end != 0;
}

void ticks_begin(const struct box *box)
{
    const suseconds_t us = (suseconds_t)tick_us(box);
    const struct itimerval ticks = {{0, us}, {0, us}};
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    setitimer(ITIMER_REAL, &ticks, NULL);
}

void ticks_end(void)
{
    const struct itimerval none = {0};
    setitimer(ITIMER_REAL, &none, NULL);
}
