/* SPDX-License-Identifier: BSD-2-Clause
 *
 * without - runs a program as in a sandbox that answers one system call with an errno, or as on a
 * kernel that does not know the call (ENOSYS).
 *
 *     without NUMBER[,ARGUMENT] ERRNO PROGRAM [ARGUMENTS...]
 *
 * NUMBER is the system call's. With ARGUMENT only calls whose first argument this is are refused.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count < 4) {
        fprintf(stderr, "usage: without NUMBER[,ARGUMENT] ERRNO PROGRAM [ARGUMENTS...]\n");
        return 126;
    }
    char *argument;
    const unsigned number = (unsigned)strtoul(arguments[1], &argument, 10);
    const unsigned first = *argument == ',' ? (unsigned)strtoul(argument + 1, NULL, 10) : 0;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 0, *argument == ',' ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(arguments[2])),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("without");
        return 126;
    }
    execvp(arguments[3], arguments + 3);
    perror(arguments[3]);
    return 127;
}
