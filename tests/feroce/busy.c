/* SPDX-License-Identifier: BSD-2-Clause
 *
 * busy - a program whose descriptors are always ready, so that its ppoll lets no signal in.
 *
 * Preloaded before libibverbs.
 */
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

typedef int ppoll_function(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                           const sigset_t *mask);

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    ppoll_function *next = NULL;
    void *found = dlsym(RTLD_NEXT, "ppoll");
    memcpy(&next, &found, sizeof(next));
    if (count == 0) {
        return next(fds, count, timeout, mask);
    }
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = fds[i].events;
    }
    return (int)count;
}
