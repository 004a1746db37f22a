/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_gdb - gdb on a process of a run that has halted.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/repeat.h"

static _Noreturn void become_gdb(pid_t process, pid_t thread)
{
    char pid[20], find[40];
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(SIGINT, &usual, NULL);
    snprintf(pid, sizeof(pid), "%d", (int)process);
    snprintf(find, sizeof(find), "thread find LWP %d", (int)thread);
    execlp("gdb", "gdb", "-q", "-p", pid, "-ex", find, (char *)NULL);
    fprintf(stderr, "nonic: gdb cannot be started; it is a package of its own\n");
    _exit(127);
}

void repeat_gdb(void *context, pid_t process, pid_t thread, int number, uint64_t at_ns)
{
    (void)context;
    fprintf(
        stderr,
        "nonic: at %.9f s, before a turn of thread %d (LWP %d of process %d); the run ends with "
        "gdb\n",
        (double)at_ns / 1e9, number, (int)thread, (int)process);
    const pid_t gdb = fork();
    if (gdb == 0) {
        become_gdb(process, thread);
    }
    while (gdb > 0 && waitpid(gdb, NULL, 0) < 0 && errno == EINTR) {
    }
}
