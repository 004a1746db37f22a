/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose - between programs and libc: calls about virtual files are answered here, all others go
 * on.
 *
 * Purpose    A preloaded library's functions come first. These look whether a path or descriptor is
 *            one of ours, and otherwise call the next library's function of that name.
 * Inputs     libc's calls.
 * Outputs    libc's results.
 * Threads    Any; also signal handlers and children of vfork, which change nothing here but the
 *            addresses of functions.
 * Units      As libc.
 * Limits     Calls that libc makes inside itself (nftw, fts, posix_spawn's file actions) and system
 *            calls without libc go to the kernel. Where the kernel has a directory itself, open()
 *            gives the kernel's.
 * Source     POSIX; glibc 2.36's headers.
 */
#ifndef KERNEL_INTERPOSE_H
#define KERNEL_INTERPOSE_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/check.h"
#include "drivers/system/initialised.h"
#include "kernel/sysfs.h"
#include "kernel/virtual_file.h"

#define EXPORT __attribute__((visibility("default")))

/* next_NAME(): the function of that name in the library behind ours, or `otherwise` if none has it.
 * It is looked up when it is first needed, which may be before any constructor ran. Two threads
 * that look it up find the same. */
#define NEXT_OR(name, otherwise)                                                                   \
    static __typeof__(&name) next_##name(void)                                                     \
    {                                                                                              \
        static atomic_uintptr_t cached;                                                            \
        uintptr_t address = atomic_load_explicit(&cached, memory_order_relaxed);                   \
        if (UNLIKELY(address == 0)) {                                                              \
            address = (uintptr_t)dlsym(RTLD_NEXT, #name);                                          \
            address = address == 0 ? (uintptr_t)(otherwise) : address;                             \
            CHECK(address != 0);                                                                   \
            atomic_store_explicit(&cached, address, memory_order_relaxed);                         \
        }                                                                                          \
        return (__typeof__(&name))address;                                                         \
    }
#define NEXT(name) NEXT_OR(name, 0)

/* libc's headers promise the compiler that paths are never NULL; programs promised nothing, and get
 * EFAULT. */
static inline const char *doubted(const char *path)
{
    __asm__("" : "+r"(path));
    return path;
}

/* The rest of interpose_answers, for paths that may be ours. */
bool interpose_find(int at, const char **path, bool follow, struct sysfs_node *node);

/* Is the path ours to answer? Otherwise the kernel is to be asked about `*path`, which may have
 * become another: then it is absolute, and lies in `node`. */
static inline bool interpose_answers(int at, const char **path, bool follow,
                                     struct sysfs_node *node)
{
    const char *p = doubted(*path);
    if (LIKELY(!sysfs_plausible(p)) &&
        LIKELY(p == NULL || p[0] == '/' ||
               !(at == AT_FDCWD ? virtual_cwd_possible() : virtual_descriptors_made()))) {
        return false;
    }
    return interpose_find(at, path, follow, node);
}

/* The kernel has nothing there: do its links, its working directory or a descriptor of its own lead
 * to where we may have something? Then `*path` becomes where they lead to, in `whole`. errno
 * stays. */
bool interpose_leads(int at, const char **path, char whole[SYSFS_PATH_BYTES]);

/* A call's answer about `path`, which it changes: `ours`, in which `node` is where the path leads,
 * or `theirs`, the next library's answer, which is `failed` where there is an errno. */
#define ANSWER(at, path, follow, failed, ours, theirs)                                             \
    __extension__({                                                                                \
        struct sysfs_node node;                                                                    \
        char whole_[SYSFS_PATH_BYTES];                                                             \
        unchecked_begin();                                                                         \
        const bool ours_ = interpose_answers(at, &(path), follow, &node);                          \
        __typeof__(theirs) answer_ = ours_ ? (ours) : (theirs);                                    \
        if (UNLIKELY(!ours_ && answer_ == (failed) && errno == ENOENT) &&                          \
            interpose_leads(at, &(path), whole_)) {                                                \
            answer_ = interpose_answers(AT_FDCWD, &(path), follow, &node) ? (ours) : (theirs);     \
        }                                                                                          \
        unchecked_end();                                                                           \
        answer_;                                                                                   \
    })

/* interpose_socket.c: netlink of RDMA devices, and what is sent to it. */
bool interpose_is_netlink(int fd);
ssize_t interpose_send(int fd, const void *bytes, size_t count, const void *name,
                       unsigned int length);

/* interpose_descriptor.c: the connection manager's device. */
int interpose_open_cm(int flags);
bool interpose_is_cm(int fd);

#endif
