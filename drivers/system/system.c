/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/system.h"

#include <dlfcn.h>
#include <sys/eventfd.h>

#include "base/check.h"

int system_bind(int socket, const struct sockaddr *name, socklen_t name_bytes)
{
    return (int)syscall(SYS_bind, socket, name, name_bytes);
}

int system_connect(int socket, const struct sockaddr *name, socklen_t name_bytes)
{
    return (int)syscall(SYS_connect, socket, name, name_bytes);
}

int system_listen(int socket, int backlog)
{
    return (int)syscall(SYS_listen, socket, backlog);
}

int system_accept(int listener)
{
    return (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

int system_eventfd(int flags)
{
    return (int)syscall(SYS_eventfd2, 0, flags);
}

int system_epoll_create(int flags)
{
    return (int)syscall(SYS_epoll_create1, flags);
}

int system_epoll_change(int epoll, int operation, int fd, struct epoll_event *event)
{
    return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

/* Sanitizers forget what they know of memory when it is unmapped, but not MemorySanitizer. */
void *system_map(int fd, size_t bytes, int protection)
{
    void *map = (void *)syscall(SYS_mmap, NULL, bytes, protection, MAP_SHARED, fd, 0L);
    if (map != MAP_FAILED) {
        initialised(map, bytes);
    }
    return map;
}

int system_start_thread(pthread_t *thread, void *(*start)(void *), void *argument)
{
    typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    /* A search from within our library would find kernel's function of that name (-Bsymbolic). */
    const uintptr_t first = (uintptr_t)dlsym(dlopen(NULL, RTLD_NOW), "pthread_create");
    CHECK(first != 0);
    return ((create *)first)(thread, NULL, start, argument);
}
