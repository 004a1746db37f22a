/* SPDX-License-Identifier: BSD-2-Clause
 *
 * claim - the life of a NIC: the box makes its arena, the process puts an engine into it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/system/system.h"
#include "virtual/world.h"
#include "world/account.h"

/* For objects that a child of fork makes on its copy. */
#define COPY_ROOM ((size_t)16 << 20)

static const struct nic_limits limits = {
    .qps = BOX_QPS_MAX,
    .regions = 1u << 15,
    .sends_per_qp = 1u << 14,
    .receives_per_qp = 1u << 14,
    .receives_per_srq = 1u << 15,
    .sges = NIC_SGE_MAX,
    .inline_bytes = 1024,
    .reads_per_qp = 16, /* as many as RoCE's NICs usually offer */
    .reads = 1u << 18,
    .cq_entries = 1u << 20,
    .mtu = PATH_MTU_4096,
};

/* -- Opening ------------------------------------------------------------------------------------*/

static bool is_in_box(void)
{
    return getauxval(AT_SYSINFO_EHDR) == BOX_VDSO_ADDRESS && world_page()->machine != 0;
}

/* The arena's file, mapped where the box has it. */
static void *map_arena(uint32_t number)
{
    char path[64];
    snprintf(path, sizeof(path), BOX_ARENA_PATH, (unsigned)number);
    const int file = system_open(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return NULL;
    }
    void *memory = mmap((void *)(uintptr_t)BOX_ARENA_ADDRESS(number), BOX_ARENA_BYTES,
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0);
    const int reason = errno;
    syscall(SYS_close, file);
    errno = reason;
    return memory == MAP_FAILED ? NULL : memory;
}

static bool make_nic(struct live *live, char *error, size_t error_bytes)
{
    void *memory = map_arena(live->number);
    if (memory == NULL) {
        snprintf(error, error_bytes, "the memory of the NIC cannot be mapped: %s", strerror(errno));
        return false;
    }
    /* A child of fork gets a copy (live_forked): the arena stays its parent's. */
    (void)!system_advise(memory, BOX_ARENA_BYTES, MADV_DONTFORK);
    live->arena = arena_begin(memory, BOX_ARENA_BYTES);
    void *place = arena_take(live->arena, nic_bytes(&limits));
    CHECK(place != NULL); /* The arena is larger by far. */
    live->nic = nic_init(&limits, live->arena->head.seed, place);
    if (!world_manager_open(live)) {
        snprintf(error, error_bytes, "no memory for the connection manager");
        errno = ENOMEM;
        return false;
    }
    const int64_t answer = world_ask(BOX_ASK_ATTACH, live->number, live->nic);
    if (answer != 0) {
        snprintf(error, error_bytes, "the machine takes no more NICs: %s", strerror((int)-answer));
        errno = (int)-answer;
        return false;
    }
    page_tell_nic(getauxval(AT_SYSINFO_EHDR),
                  &(struct box_nic){.process = getpid(),
                                    .counters = COUNTER_COUNT,
                                    .address = (uintptr_t)nic_counters(live->nic)->values,
                                    .account = (uintptr_t)account_of_nic,
                                    .nic = (uintptr_t)live->nic});
    return true;
}

struct live *live_claim_from_environment(char *error, size_t error_bytes)
{
    const char *strict = getenv("NONIC_STRICT");
    if (!is_in_box()) {
        snprintf(error, error_bytes,
                 "this library is for programs of 'nonic repeat --machine', which starts them");
        return NULL;
    }
    struct live *live = calloc(1, sizeof(*live));
    if (live == NULL) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    const int64_t number = world_ask(BOX_ASK_OPEN, 0, NULL);
    if (number < 0) {
        free(live);
        snprintf(error, error_bytes, "the machine takes no more NICs: %s", strerror((int)-number));
        errno = (int)-number;
        return NULL;
    }
    live->number = (uint32_t)number;
    live->strict = strict != NULL && strcmp(strict, "1") == 0;
    pthread_mutex_init(&live->mutex, NULL);
    if (!make_nic(live, error, error_bytes)) {
        const int reason = errno;
        live_close(live);
        errno = reason;
        return NULL;
    }
    world_use_arena(live->arena);
    return live;
}

bool live_start(struct live *live, char *error, size_t error_bytes)
{
    pthread_t thread;
    sigset_t all, before;
    if (live->is_started) {
        return true;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = system_start_thread(&thread, world_listen, live);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        snprintf(error, error_bytes, "no thread for the NIC's events: %s", strerror(failed));
        errno = failed;
        return false;
    }
    pthread_detach(thread);
    pthread_setname_np(thread, "nonic");
    live->is_started = true;
    return true;
}

/* -- The end ------------------------------------------------------------------------------------*/

/* Also if it was not opened whole. */
static void leave(struct live *live)
{
    if (!live->is_inherited && !live->has_left) {
        live->has_left = true;
        page_forget_nic(getauxval(AT_SYSINFO_EHDR), getpid(), live->nic);
        world_charge(COST_LEAVE);
        (void)world_ask(BOX_ASK_CLOSE, live->number, NULL);
    }
}

/* The NIC sends what it has to send while the kernel closes the device. */
void live_leave(struct live *live)
{
    if (live->is_started && live->owner.on_leaving != NULL) {
        live->owner.on_leaving();
    }
    if (!live->is_inherited && live_lock_unless_held(live)) {
        world_manager_leave(live);
        live_unlock(live);
    }
    leave(live);
}

void live_close(struct live *live)
{
    leave(live);
    world_manager_close(live);
    free(live);
}

/* -- Children -----------------------------------------------------------------------------------*/

/* Reads the arena's file, and leaves its holes out. */
static bool read_arena(uint32_t number, uint8_t *into, uint64_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), BOX_ARENA_PATH, (unsigned)number);
    const int file = system_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    off_t at = file < 0 ? -1 : lseek(file, 0, SEEK_DATA);
    bool good = file >= 0;
    while (good && at >= 0 && (uint64_t)at < bytes) {
        const off_t end = lseek(file, at, SEEK_HOLE);
        const uint64_t until = (uint64_t)end < bytes ? (uint64_t)end : bytes;
        const ssize_t read = pread(file, into + at, until - (uint64_t)at, at);
        good = end > at && read > 0;
        at = lseek(file, at + read, SEEK_DATA);
    }
    if (file >= 0) {
        syscall(SYS_close, file);
    }
    return good;
}

/* The arena is shared with the box, and goes on to be its parent's. */
void live_forks(struct live *live)
{
    const uint64_t used = live->arena->used;
    world_hold_arena();
    live->copy_bytes = (used + COPY_ROOM) / 4096 * 4096;
    live->copy = mmap(NULL, live->copy_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (live->copy != MAP_FAILED && !read_arena(live->number, live->copy, used)) {
        munmap(live->copy, live->copy_bytes);
        live->copy = MAP_FAILED;
    }
    if (live->copy == MAP_FAILED) {
        live->copy = NULL;
    }
}

void live_goes_on(struct live *live)
{
    world_let_arena();
    if (live->copy != NULL) {
        munmap(live->copy, live->copy_bytes);
        live->copy = NULL;
    }
}

/* Nobody drives the copy. Without memory for one, the child's objects are not there: it can still
 * execute another program. */
static void use_copy(struct live *live)
{
    void *const place = live->arena;
    if (live->copy != NULL) {
        CHECK(mremap(live->copy, live->copy_bytes, live->copy_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                     place) == place);
        live->arena->bytes = live->copy_bytes;
        live->copy = NULL;
        return;
    }
    CHECK(mmap(place, COPY_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == place);
    (void)arena_begin(place, COPY_ROOM);
}

void live_forked(struct live *live)
{
    if (!live->is_inherited) {
        use_copy(live);
    }
    world_forget_thread(live);
    world_use_arena(live->arena);
    live->listener = (struct live_listener){0};
    live->owner = (struct live_owner){0};
    live->is_started = false;
    live->is_inherited = true;
}
