/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_memory - memory that processes share, passed by descriptor: made, sealed, and mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/system.h"

/* The seals that peers ask for: nobody can shrink the memory while they use it. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

struct shm_mark shm_mark_of(size_t bytes)
{
    CHECK(bytes <= UINT32_MAX);
    return (struct shm_mark){.magic = SHM_MAGIC, .layout = SHM_LAYOUT, .bytes = (uint32_t)bytes};
}

bool shm_mark_fits(const struct shm_mark *mark, size_t bytes)
{
    return mark->magic == SHM_MAGIC && mark->layout == SHM_LAYOUT && mark->bytes == bytes;
}

/* A child of fork does not get the memory that its parent shares with others. */
static void *map_shared(int fd, size_t bytes, int protection)
{
    CHECK(fd >= 0 && bytes >= sizeof(struct shm_mark));
    void *map = system_map(fd, bytes, protection);
    if (map != MAP_FAILED && system_advise(map, bytes, MADV_DONTFORK) != 0) {
        munmap(map, bytes);
        return MAP_FAILED;
    }
    return map;
}

/* A descriptor for reading only. A process that opens the memory again through /proc cannot write
 * it either: its mode forbids that to all but root, and F_SEAL_FUTURE_WRITE (Linux 5.1) forbids it
 * to all. */
static int for_others(int fd)
{
    if (fchmod(fd, S_IRUSR) != 0 ||
        (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 && errno != EINVAL)) {
        return -1;
    }
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return descriptor_own(system_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}

int shm_memory_make(const char *name, size_t bytes, bool sealed_for_others, void **map)
{
    const int fd = descriptor_may_grow_to(bytes)
                       ? descriptor_own(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING))
                       : -1;
    if (fd < 0) {
        return -1;
    }
    int given = -1;
    *map = ftruncate(fd, (off_t)bytes) == 0 ? map_shared(fd, bytes, PROT_READ | PROT_WRITE)
                                            : MAP_FAILED;
    if (*map != MAP_FAILED) {
        given = sealed_for_others ? for_others(fd) : fd;
    }
    CHECK(given < 0 || *map != MAP_FAILED);
    if (given >= 0 && fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) == 0) {
        descriptor_close(given == fd ? -1 : fd);
        return given;
    }
    const int reason = errno;
    if (*map != MAP_FAILED) {
        munmap(*map, bytes);
    }
    descriptor_close(given == fd ? -1 : given);
    descriptor_close(fd);
    errno = reason;
    return -1;
}

void *shm_memory_map(int fd, size_t bytes, int protection)
{
    struct stat status;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || system_status(fd, &status) != 0 ||
        status.st_size != (off_t)bytes) {
        return NULL;
    }
    void *map = map_shared(fd, bytes, protection);
    if (map == MAP_FAILED) {
        return NULL;
    }
    const struct shm_mark mark = *(const volatile struct shm_mark *)map;
    if (!shm_mark_fits(&mark, bytes)) {
        munmap(map, bytes);
        return NULL;
    }
    return map;
}
