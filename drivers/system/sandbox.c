/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/system/system.h"

static const struct {
    const char *name;
    long number;
} needed[] = {
    {"accept4", SYS_accept4},   {"connect", SYS_connect},   {"epoll_wait", SYSTEM_EPOLL_WAIT},
    {"recvfrom", SYS_recvfrom}, {"recvmmsg", SYS_recvmmsg}, {"recvmsg", SYS_recvmsg},
    {"sendmmsg", SYS_sendmmsg}, {"sendmsg", SYS_sendmsg},   {"sendto", SYS_sendto},
};

/* A filter refuses a call before the kernel sees that the descriptor is no socket. */
bool sandbox_answers(int epoll, char *error, size_t error_bytes)
{
    struct mmsghdr nothing = {.msg_len = 0};
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        const long room = needed[i].number == SYSTEM_EPOLL_WAIT ? 1 : 0;
        /* Valgrind would report an address whose length is at no place. */
        void *place = needed[i].number == SYS_accept4 ? NULL : &nothing;
        if (syscall(needed[i].number, epoll, place, room, 0L, NULL, 0) < 0 && errno != ENOTSOCK) {
            const int reason = errno;
            snprintf(error, error_bytes, "the system refuses %s, which nonic needs: %s",
                     needed[i].name, strerror(reason));
            errno = reason;
            return false;
        }
    }
    return true;
}
