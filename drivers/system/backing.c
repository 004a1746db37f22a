/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/backing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/mapping.h"
#include "drivers/system/system.h"

/* The memory is exchanged in pieces, so that it takes no more than one of them beside itself. */
#define PIECE_BYTES ((uint64_t)2 << 20)
/* Room in the file behind the memory, which takes no memory: mremap may let a mapping grow. */
#define ROOM_BYTES ((uint64_t)1 << 36)
/* Numbers of descriptors that are looked at; a program that has one beyond is not alone. */
#define DESCRIPTORS_LOOKED_AT (1 << 16)

/* -- Alone? -------------------------------------------------------------------------------------*/

/* A directory's links are its own two and those of its directories, one for each thread. */
static bool has_threads(unsigned count)
{
    struct stat tasks;
    return system_status_of(AT_FDCWD, "/proc/self/task", &tasks) == 0 &&
           tasks.st_nlink == 2 + (nlink_t)count;
}

/* Null, zero, random numbers, terminals. */
static bool is_harmless_device(dev_t device)
{
    const unsigned number = major(device);
    return number == 1 || number == 4 || number == 5 || (number >= 136 && number <= 143);
}

/* A file that the kernel names "anon_inode:[eventfd]" and the like has no type. */
static bool is_harmless_object(int fd)
{
    static const char *const harmless[] = {"[eventfd]",  "[eventpoll]", "[timerfd]",
                                           "[signalfd]", "inotify",     "[pidfd]"};
    char path[64], name[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const ssize_t bytes = system_read_link(AT_FDCWD, path, name, sizeof(name) - 1);
    name[bytes < 0 ? 0 : bytes] = '\0';
    const char *kind = strchr(name, ':');
    for (size_t i = 0; kind != NULL && i < COUNT_OF(harmless); i++) {
        if (strcmp(kind + 1, harmless[i]) == 0) {
            return true;
        }
    }
    return kind != NULL && strncmp(name, "pidfd", 5) == 0;
}

/* May the kernel, or a device, write into the process's memory by way of it, at any time? */
static bool is_harmless(int fd, const struct stat *file)
{
    if (S_ISCHR(file->st_mode)) {
        return is_harmless_device(file->st_rdev);
    }
    return (file->st_mode & S_IFMT) != 0 ? !S_ISBLK(file->st_mode) : is_harmless_object(fd);
}

/* The directory's size is the number of descriptors (Linux 6.2; 0 before). */
static bool all_are_harmless(void)
{
    struct stat file;
    if (system_status_of(AT_FDCWD, "/proc/self/fd", &file) != 0 || file.st_size == 0) {
        return false;
    }
    off_t left = file.st_size;
    for (int fd = 0; left > 0 && fd < DESCRIPTORS_LOOKED_AT; fd++) {
        if (system_status(fd, &file) == 0) {
            if (!is_harmless(fd, &file)) {
                return false;
            }
            left--;
        }
    }
    return left == 0;
}

static bool has_contexts_of_aio(void)
{
    struct mapping mapping;
    struct lines maps;
    bool found = false;
    lines_open(&maps, AT_FDCWD, "/proc/self/maps");
    while (!found && mapping_read(&maps, &mapping)) {
        found = strncmp(mapping.path, "/[aio]", 6) == 0;
    }
    return lines_close(&maps) != 0 || found;
}

bool backing_is_alone(unsigned own)
{
    return has_threads(1 + own) && all_are_harmless() && !has_contexts_of_aio();
}

/* -- Ordinary? ----------------------------------------------------------------------------------*/

/* Readable, writable, may become so and executable, counted, and changed since somebody looked:
 * what VmFlags says about memory of which nobody has asked anything. */
static bool are_ordinary(char *flags)
{
    static const char ordinary[] = "rd wr mr mw me ac sd nr";
    char *rest = NULL;
    for (char *word = strtok_r(flags, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        if (strlen(word) != 2 || strstr(ordinary, word) == NULL) {
            return false;
        }
    }
    return true;
}

static bool is_ordinary(const struct mapping *mapping, struct lines *maps)
{
    char flags[MAPPING_FLAGS_BYTES];
    return mapping->readable && mapping->writable && !mapping->shared && mapping->inode == 0 &&
           (mapping->path[0] == '\0' || strcmp(mapping->path, "[heap]") == 0) &&
           mapping_read_flags(maps, flags) && are_ordinary(flags);
}

/* Memory that was exchanged and back is a mapping of its own between its neighbours. */
bool backing_is_ordinary(uint64_t start, uint64_t bytes)
{
    const uint64_t end = start + bytes;
    struct mapping mapping;
    struct lines maps;
    uint64_t at = start;
    lines_open(&maps, AT_FDCWD, "/proc/self/smaps");
    while (at < end && mapping_read(&maps, &mapping)) {
        if (mapping.end <= at) {
            continue;
        }
        if (mapping.start > at || !is_ordinary(&mapping, &maps)) {
            break;
        }
        at = mapping.end;
    }
    return lines_close(&maps) == 0 && at >= end;
}

/* -- The exchange -------------------------------------------------------------------------------*/

/* Programs' libraries watch libc's functions that map memory, and would take the region for gone.
 */
static void *map(uint64_t bytes, int flags, int fd, uint64_t offset)
{
    return (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
}

/* One call, so that the memory is there at any time. */
static bool put(void *pages, uint64_t bytes, uint64_t at)
{
    return syscall(SYS_mremap, pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == (long)at;
}

/* Neither memcpy nor code that a sanitizer watches: whole pages hold the gaps between a program's
 * objects, too, and bytes that its other processes write. */
__attribute__((no_sanitize("address", "thread"))) static void copy(void *to, uint64_t from,
                                                                   uint64_t bytes)
{
    const volatile uint64_t *source = (const volatile uint64_t *)(uintptr_t)from;
    uint64_t *target = to;
    for (uint64_t i = 0; i < bytes / 8; i++) {
        target[i] = source[i];
    }
}

/* Fills new pages with the bytes that are at `at`, and puts them there. */
static bool exchange(void *pages, uint64_t at, uint64_t bytes)
{
    if (pages == MAP_FAILED) {
        return false;
    }
    copy(pages, at, bytes);
    if (!put(pages, bytes, at)) {
        syscall(SYS_munmap, pages, bytes);
        return false;
    }
    return true;
}

static uint64_t piece_of(uint64_t left)
{
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* The file has the pages before they are touched: otherwise a shortage would end the program. */
static bool share_piece(int fd, uint64_t offset, uint64_t at, uint64_t bytes)
{
    return fallocate(fd, 0, (off_t)offset, (off_t)bytes) == 0 &&
           exchange(map(bytes, MAP_SHARED, fd, offset), at, bytes);
}

static bool share_all(int fd, uint64_t start, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += piece_of(bytes - done)) {
        if (!share_piece(fd, done, start + done, piece_of(bytes - done))) {
            (void)!backing_return(start, bytes, fd);
            return false;
        }
    }
    return true;
}

static int make_file(uint64_t bytes)
{
    const int fd =
        descriptor_may_grow_to(bytes + ROOM_BYTES)
            ? descriptor_own(memfd_create("nonic-region", MFD_CLOEXEC | MFD_ALLOW_SEALING))
            : -1;
    if (fd >= 0 && (ftruncate(fd, (off_t)(bytes + ROOM_BYTES)) != 0 ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        descriptor_close(fd);
        return -1;
    }
    return fd;
}

/* No handler of a signal runs in the midst of an exchange. */
static void block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

int backing_share(uint64_t start, uint64_t bytes)
{
    CHECK(start % 4096 == 0 && bytes % 4096 == 0 && bytes > 0);
    sigset_t before;
    int fd = make_file(bytes);
    if (fd < 0) {
        return -1;
    }
    block_signals(&before);
    const bool shared = share_all(fd, start, bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* A child that nobody told us of must not share what it writes. */
    if (!shared || system_advise((void *)(uintptr_t)start, bytes, MADV_DONTFORK) != 0) {
        (void)!(shared && backing_return(start, bytes, fd));
        descriptor_close(fd);
        return -1;
    }
    return fd;
}

static bool return_part(uint64_t start, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += piece_of(bytes - done)) {
        const uint64_t piece = piece_of(bytes - done);
        if (!exchange(map(piece, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), start + done, piece)) {
            return false;
        }
    }
    return true;
}

/* The first part of the memory from `from` on that is still the file's; no bytes: there is none.
 * False: nobody can tell. */
static bool find_part(uint64_t from, uint64_t end, const struct stat *file, uint64_t *start,
                      uint64_t *bytes)
{
    struct lines maps;
    struct mapping mapping;
    bool found = false;
    lines_open(&maps, AT_FDCWD, "/proc/self/maps");
    while (!found && mapping_read(&maps, &mapping)) {
        found = mapping.end > from && mapping.start < end && mapping.shared &&
                mapping.inode == file->st_ino && mapping.device == file->st_dev;
    }
    *bytes = 0;
    if (found) {
        *start = mapping.start > from ? mapping.start : from;
        *bytes = (mapping.end < end ? mapping.end : end) - *start;
    }
    return lines_close(&maps) == 0;
}

bool backing_return(uint64_t start, uint64_t bytes, int fd)
{
    struct stat file;
    sigset_t before;
    uint64_t at = start, part;
    bool returned = system_status(fd, &file) == 0;
    block_signals(&before);
    do {
        returned =
            returned && find_part(at, start + bytes, &file, &at, &part) && return_part(at, part);
        at += returned ? part : 0;
    } while (returned && part > 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return returned;
}
