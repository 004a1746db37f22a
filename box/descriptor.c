/* SPDX-License-Identifier: BSD-2-Clause
 *
 * descriptor - duplicates of programs' descriptors, by which the box asks the kernel without
 * waiting.
 *
 * Ownership: a duplicate is held as long as the kernel would hold the file: while a call is under
 * way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "box/internal.h"

int descriptor_borrow(const struct thread *thread, int descriptor)
{
    return (int)syscall(__NR_pidfd_getfd, thread->process->descriptor, descriptor, 0);
}

void descriptor_return(struct thread *thread)
{
    if (thread->borrowed < 0) {
        return;
    }
    if (thread->is_blocking_borrowed) {
        const int flags = fcntl(thread->borrowed, F_GETFL);
        fcntl(thread->borrowed, F_SETFL, flags & ~O_NONBLOCK);
        thread->is_blocking_borrowed = false;
    }
    close(thread->borrowed);
    thread->borrowed = -1;
}

void descriptors_watch(struct thread *thread, const struct pollfd *wanted, int count)
{
    descriptors_forget(thread);
    thread->wait.ready = calloc((size_t)count + 1, sizeof(struct pollfd));
    CHECK(thread->wait.ready != NULL);
    for (int i = 0; i < count; i++) {
        const int own = wanted[i].fd < 0 ? -1 : descriptor_borrow(thread, wanted[i].fd);
        if (own >= 0) {
            thread->wait.ready[thread->wait.descriptors++] =
                (struct pollfd){own, wanted[i].events, 0};
        }
    }
}

bool descriptors_ready(struct thread *thread)
{
    return poll(thread->wait.ready, (nfds_t)thread->wait.descriptors, 0) > 0;
}

void descriptors_forget(struct thread *thread)
{
    for (int i = 0; i < thread->wait.descriptors; i++) {
        close(thread->wait.ready[i].fd);
    }
    free(thread->wait.ready);
    thread->wait.ready = NULL;
    thread->wait.descriptors = 0;
}
