/* SPDX-License-Identifier: BSD-2-Clause
 *
 * netlink - the kernel's answers about its interfaces, as a program gets them.
 */
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "box/internal.h"
#include "box/netlink_mask.h"

enum {
    ANSWER_MAX = 65536,
};

void netlink_clear(struct thread *thread, int64_t bytes)
{
    static _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_MAX];
    struct msghdr message;
    struct iovec vector;
    uint64_t to = thread->call.argument[1];
    if (thread->call.number == SYS_recvmsg) {
        if (!tracee_read(thread->id, to, &message, sizeof(message)) || message.msg_iovlen != 1 ||
            !tracee_read(thread->id, (uint64_t)(uintptr_t)message.msg_iov, &vector,
                         sizeof(vector))) {
            return;
        }
        to = (uint64_t)(uintptr_t)vector.iov_base;
        bytes = bytes < (int64_t)vector.iov_len ? bytes : (int64_t)vector.iov_len;
    }
    if (bytes > 0 && bytes <= ANSWER_MAX && tracee_read(thread->id, to, answer, (size_t)bytes)) {
        netlink_mask(answer, (size_t)bytes);
        tracee_write(thread->id, to, answer, (size_t)bytes);
    }
}
