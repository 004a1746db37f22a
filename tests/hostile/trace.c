/* SPDX-License-Identifier: BSD-2-Clause
 *
 * trace - stops a process as a debugger does, until standard input ends.
 *
 *     trace PID
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    const pid_t pid = count == 2 ? atoi(arguments[1]) : 0;
    char end;
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, NULL, __WALL) != pid) {
        printf("not traced: %s\n", strerror(errno));
        return 1;
    }
    printf("stopped\n");
    fflush(stdout);
    return read(0, &end, 1) > 0;
}
