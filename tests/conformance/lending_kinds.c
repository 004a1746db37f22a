/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lending_kinds - memory of each kind, processes that do not have what an exchange takes, and
 * programs that let others than themselves write (lending.h).
 */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <malloc.h>
#include <sys/resource.h>

#include "tests/conformance/lending.h"

#define BYTES (8 * PAGE)

/* -- Kinds --------------------------------------------------------------------------------------*/

enum fate {
    EXCHANGED, /* Private memory that peers map. */
    SHARED,    /* Shared memory that peers map as it is. */
    PERHAPS,   /* Shared memory: root finds its file. */
    KEPT,      /* Memory that peers reach by the kernel. */
};

static uint8_t data[BYTES + PAGE] = {1}, zeros[BYTES + PAGE];

static uint8_t *aligned(uint8_t *memory)
{
    return (uint8_t *)(((uintptr_t)memory + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

static uint8_t *map_file(int fd, int flags)
{
    EXPECT(fd >= 0 && ftruncate(fd, BYTES) == 0);
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
    EXPECT(memory != MAP_FAILED);
    close(fd);
    return memory;
}

static int temporary(void)
{
    char path[] = "/tmp/lending-XXXXXX";
    const int fd = mkstemp(path);
    EXPECT(fd >= 0 && unlink(path) == 0);
    return fd;
}

static int shared_object(bool linked)
{
    char name[64];
    snprintf(name, sizeof(name), "/lending-%d", getpid());
    const int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    EXPECT(fd >= 0 && (linked || shm_unlink(name) == 0));
    return fd;
}

static uint8_t *advised(int advice)
{
    uint8_t *memory = pages(BYTES);
    EXPECT(madvise(memory, BYTES, advice) == 0);
    return memory;
}

static uint8_t *huge(void)
{
    uint8_t *memory = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return memory == MAP_FAILED ? NULL : memory; /* The machine has none. */
}

static uint8_t *locked(void)
{
    uint8_t *memory = pages(BYTES);
    EXPECT(mlock(memory, BYTES) == 0);
    return memory;
}

static uint8_t *growing(void)
{
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    EXPECT(memory != MAP_FAILED);
    return memory;
}

static uint8_t *executable(void)
{
    uint8_t *memory = pages(BYTES);
    EXPECT(mprotect(memory, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    return memory;
}

static uint8_t *on_stack;

static uint8_t *plain(void)
{
    return pages(BYTES);
}

static uint8_t *zero_data(void)
{
    return aligned(zeros);
}

static uint8_t *initialised_data(void)
{
    return aligned(data);
}

static uint8_t *stack(void)
{
    return on_stack;
}

static uint8_t *undumped(void)
{
    return advised(MADV_DONTDUMP);
}

static uint8_t *wiped(void)
{
    return advised(MADV_WIPEONFORK);
}

static uint8_t *not_for_children(void)
{
    return advised(MADV_DONTFORK);
}

static uint8_t *for_huge_pages(void)
{
    return advised(MADV_HUGEPAGE);
}

static uint8_t *private_file(void)
{
    return map_file(temporary(), MAP_PRIVATE);
}

static uint8_t *linked_object(void)
{
    return map_file(shared_object(true), MAP_SHARED);
}

/* Its descriptor stays open. */
static uint8_t *unlinked_object(void)
{
    return map_file(dup(shared_object(false)), MAP_SHARED);
}

static uint8_t *unlinked_file(void)
{
    return map_file(temporary(), MAP_SHARED);
}

static uint8_t *closed_object(void)
{
    return map_file(shared_object(false), MAP_SHARED);
}

static uint8_t *anonymous_shared(void)
{
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static const struct {
    uint8_t *(*make)(void); /* NULL: the machine has none. */
    enum fate fate;
    bool stays; /* It is never unmapped. */
} kinds_of_memory[] = {
    {plain, EXCHANGED, false},
    {zero_data, EXCHANGED, true},
    {initialised_data, KEPT, true},
    {stack, KEPT, true},
    {undumped, KEPT, false},
    {wiped, KEPT, false},
    {not_for_children, KEPT, false},
    {for_huge_pages, KEPT, false},
    {locked, KEPT, false},
    {growing, KEPT, false},
    {executable, KEPT, false},
    {huge, KEPT, false},
    {private_file, KEPT, false},
    {linked_object, SHARED, false},
    {unlinked_object, SHARED, false},
    {unlinked_file, PERHAPS, false},
    {closed_object, PERHAPS, false},
    {anonymous_shared, PERHAPS, false},
};

/* The flags that the kernel has for the memory. */
static void read_flags(const uint8_t *memory, char *flags, size_t bytes)
{
    char text[512];
    unsigned long start = 0, end = 0, first, last;
    FILE *maps = fopen("/proc/self/smaps", "re");
    EXPECT(maps != NULL);
    flags[0] = '\0';
    while (fgets(text, sizeof(text), maps) != NULL) {
        if (sscanf(text, "%lx-%lx %*[rwxps-] ", &first, &last) == 2) {
            start = first;
            end = last;
        } else if (strncmp(text, "VmFlags", 7) == 0 && start <= (uintptr_t)memory &&
                   (uintptr_t)memory < end) {
            snprintf(flags, bytes, "%s", text);
        }
    }
    fclose(maps);
    EXPECT(flags[0] != '\0');
}

static void close_shared(void)
{
    char name[64];
    snprintf(name, sizeof(name), "/lending-%d", getpid());
    shm_unlink(name);
    for (int fd = 3; fd < 1024; fd++) {
        char path[64], to[64] = "";
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        (void)!readlink(path, to, sizeof(to) - 1);
        if (strncmp(to, "/dev/shm/lending-", 17) == 0) {
            close(fd);
        }
    }
}

/* The kernel says of the memory afterwards what it said before. */
static void check_kind(size_t kind, uint8_t *memory)
{
    const enum fate fate = kinds_of_memory[kind].fate;
    char before[256], after[256];
    memset(memory, 1, BYTES);
    read_flags(memory, before, sizeof(before));
    struct ibv_mr *mr = enrol(memory, BYTES - 10);
    if (fate == EXCHANGED) {
        reach_mapped(mr);
    } else {
        EXPECT(is_private(memory, BYTES));
        const bool mapped = is_mapped_within(mr, fate == KEPT ? 3 : 200);
        EXPECT(fate == PERHAPS || mapped == (fate == SHARED));
        exchange_bytes(mr, mapped);
    }
    release(mr);
    read_flags(memory, after, sizeof(after));
    if (strcmp(before, after) != 0) {
        fprintf(stderr, "kind %zu: before: %safter: %s", kind, before, after);
    }
    EXPECT(strcmp(before, after) == 0);
}

static void kinds(void)
{
    uint8_t memory_on_stack[BYTES + PAGE];
    const size_t kind = turn % (sizeof(kinds_of_memory) / sizeof(kinds_of_memory[0]));
    on_stack = aligned(memory_on_stack);
    uint8_t *memory = kinds_of_memory[kind].make();
    if (memory == NULL) {
        return;
    }
    EXPECT(memory != MAP_FAILED);
    check_kind(kind, memory);
    EXPECT(kinds_of_memory[kind].stays || munmap(memory, BYTES) == 0);
    close_shared();
}

/* Memory that the program may only read. */
static void constant(void)
{
    uint8_t *memory = pages(BYTES);
    fill(memory, BYTES, turn);
    EXPECT(mprotect(memory, BYTES, PROT_READ) == 0);
    struct ibv_mr *mr = ibv_reg_mr(self.pd, memory, BYTES, IBV_ACCESS_REMOTE_READ);
    EXPECT(mr != NULL && is_private(memory, BYTES));
    EXPECT(order(about(READ, mr, turn)).result == IBV_WC_SUCCESS);
    EXPECT(order(about(WRITE, mr, turn + 1)).result == IBV_WC_REM_ACCESS_ERR);
    connect_two();
    EXPECT(is_filled(memory, BYTES, turn));
    release(mr);
    EXPECT(munmap(memory, BYTES) == 0);
}

/* -- Advice, and the C library's ----------------------------------------------------------------*/

static bool is_zero(const uint8_t *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (memory[i] != 0) {
            return false;
        }
    }
    return true;
}

/* The memory is empty afterwards as it always was, also while a peer reads it. */
static void advice(void)
{
    uint8_t *memory = pages(BYTES);
    struct ibv_mr *mr = enrol(memory, BYTES);
    reach_mapped(mr);
    give_order(about(FETCH, mr, 0));
    wait_for_progress(2);
    fill(memory, BYTES, turn);
    if (turn % 2) {
        EXPECT(madvise(memory + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
        EXPECT(is_zero(memory + PAGE, 2 * PAGE));
    } else {
        EXPECT(madvise(memory + PAGE, 2 * PAGE, MADV_FREE) == 0);
    }
    EXPECT(is_private(memory, BYTES));
    EXPECT(is_filled(memory, PAGE, turn));
    EXPECT(stop() == IBV_WC_SUCCESS);
    exchange_bytes(mr, false);
    release(mr);
    EXPECT(madvise(memory, BYTES, MADV_DONTNEED) == 0 && is_zero(memory, BYTES));
    EXPECT(munmap(memory, BYTES) == 0);
}

/* Memory of malloc's that was exchanged and back is as any. */
static void heap(void)
{
    const size_t bytes = turn % 4 == 0 ? 1 << 20 : 1 + draw(100000);
    uint8_t *memory = malloc(bytes);
    struct ibv_mr *mr = enrol(memory, bytes);
    reach_mapped(mr);
    fill(memory, bytes, turn);
    release(mr);
    EXPECT((memory = realloc(memory, bytes + 300000)) != NULL);
    EXPECT(is_filled(memory, bytes, turn));
    free(memory);
    if (turn % 2) {
        malloc_trim(0);
    }
    EXPECT((memory = calloc(1, bytes)) != NULL && is_zero(memory, bytes));
    free(memory);
}

/* -- Shortages ----------------------------------------------------------------------------------*/

static void set_limit(int which, rlim_t value)
{
    struct rlimit now;
    EXPECT(getrlimit(which, &now) == 0);
    now.rlim_cur = value < now.rlim_max ? value : now.rlim_max;
    EXPECT(setrlimit(which, &now) == 0);
}

static rlim_t address_space(void)
{
    unsigned long count = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    EXPECT(file != NULL && fscanf(file, "%lu", &count) == 1);
    fclose(file);
    return count * PAGE;
}

enum {
    DESCRIPTORS = 256
};

/* Address space, sizes of files or descriptors. */
static void exhaust(int kind)
{
    static const int which[] = {RLIMIT_AS, RLIMIT_FSIZE};
    if (kind < 2) {
        set_limit(which[kind], kind == 0 ? address_space() + 4 * PAGE : 1 << 20);
        return;
    }
    set_limit(RLIMIT_NOFILE, DESCRIPTORS);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
}

static void restore(int kind)
{
    static const int which[] = {RLIMIT_AS, RLIMIT_FSIZE};
    if (kind < 2) {
        set_limit(which[kind], RLIM_INFINITY);
        return;
    }
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        char path[32], to[16] = "";
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, to, sizeof(to) - 1) > 0 && strcmp(to, "/dev/null") == 0) {
            close(fd);
        }
    }
}

/* The program has none left when it registers: its memory stays as it was, and is reached. */
static void limits(void)
{
    const size_t bytes = 3 << 20;
    const int kind = (int)(turn % 3);
    uint8_t *memory = pages(bytes);
    memset(memory, 1, bytes);
    exhaust(kind);
    struct ibv_mr *mr = ibv_reg_mr(self.pd, memory, bytes, VICTIM_ACCESS);
    restore(kind);
    EXPECT(mr != NULL);
    reach_unmapped(mr);
    release(mr);
    EXPECT(munmap(memory, bytes) == 0);
}

/* It has none left when the region goes: the memory becomes private with the next one. */
static void limits_at_the_end(void)
{
    const int kind = (int)(turn % 3);
    uint8_t *memory = pages(BYTES), *other = pages(PAGE);
    struct ibv_mr *mr = enrol(memory, BYTES);
    reach_mapped(mr);
    fill(memory, BYTES, turn);
    exhaust(kind);
    const int gone = ibv_dereg_mr(mr);
    restore(kind);
    EXPECT(gone == 0 && is_filled(memory, BYTES, turn));
    struct ibv_mr *next = enrol(other, PAGE);
    release(next);
    EXPECT(is_private(memory, BYTES) && is_filled(memory, BYTES, turn));
    EXPECT(munmap(memory, BYTES) == 0 && munmap(other, PAGE) == 0);
}

/* It has none left when it forks: a child has the memory, or ends when it touches it. It never
 * shares it. */
static void limits_at_fork(void)
{
    int status;
    const int kind = (int)(turn % 3);
    uint8_t *memory = pages(BYTES);
    struct ibv_mr *mr = enrol(memory, BYTES);
    reach_mapped(mr);
    fill(memory, BYTES, turn);
    exhaust(kind);
    const pid_t child = fork();
    if (child == 0) {
        const bool right = is_filled(memory, BYTES, turn);
        memset(memory, 0xee, BYTES);
        _exit(!right);
    }
    restore(kind);
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(status == 0 || (kind != 1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
    EXPECT(is_filled(memory, BYTES, turn));
    release(mr);
    EXPECT(munmap(memory, BYTES) == 0);
}

/* -- Others that write, and others that may not look --------------------------------------------*/

/* Descriptors by which the kernel may write into the memory at any time. */
static void pinned(void)
{
    struct io_uring_params params = {0};
    aio_context_t aio = 0;
    int fd = -1;
    if (turn % 2) {
        fd = (int)syscall(SYS_io_uring_setup, 4, &params);
    } else {
        EXPECT(syscall(SYS_io_setup, 4, &aio) == 0);
    }
    uint8_t *memory = pages(BYTES);
    struct ibv_mr *mr = enrol(memory, BYTES);
    if (turn % 2 == 0 || fd >= 0) {
        reach_unmapped(mr);
    }
    release(mr);
    if (fd >= 0) {
        close(fd);
    }
    EXPECT(aio == 0 || syscall(SYS_io_destroy, aio) == 0);
    mr = enrol(memory, BYTES);
    reach_mapped(mr);
    release(mr);
    EXPECT(munmap(memory, BYTES) == 0);
}

/* The same, begun while the memory is one that peers map: it stays so until that has ended, since
 * the kernel may write there. A child does not share it. */
static void pinned_later(void)
{
    aio_context_t aio = 0;
    int status;
    uint8_t *memory = pages(BYTES);
    struct ibv_mr *mr = enrol(memory, BYTES);
    reach_mapped(mr);
    fill(memory, BYTES, turn);
    EXPECT(syscall(SYS_io_setup, 4, &aio) == 0);
    const pid_t child = fork();
    if (child == 0) {
        memset(memory, 0xee, BYTES);
        _exit(0);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    EXPECT(is_lent(memory, BYTES) && is_filled(memory, BYTES, turn));
    EXPECT(syscall(SYS_io_destroy, aio) == 0);
    release(mr);
    EXPECT(munmap(memory, BYTES) == 0);
}

/* Nobody may look into the process: nobody gets a descriptor of its memory. */
static void undumpable(void)
{
    uint8_t *memory = pages(BYTES);
    EXPECT(prctl(PR_SET_DUMPABLE, 0) == 0);
    struct ibv_mr *mr = enrol(memory, BYTES);
    EXPECT(!is_mapped_within(mr, 3));
    exchange_bytes(mr, false);
    EXPECT(prctl(PR_SET_DUMPABLE, 1) == 0);
    release(mr);
    EXPECT(munmap(memory, BYTES) == 0);
}

/* The kernel refuses the peer each copy from now on, of memory that it has mapped or not. */
static void filtered(void)
{
    uint8_t *memory = turn % 2 ? pages(BYTES) : locked();
    struct ibv_mr *mr = enrol(memory, BYTES);
    if (turn % 2) {
        reach_mapped(mr);
    } else {
        reach_unmapped(mr);
    }
    EXPECT(order((struct order){.what = FILTER}).result == 0);
    exchange_bytes(mr, false);
    release(mr);
    kill_peer();
    connect_two();
    EXPECT(munmap(memory, BYTES) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"kinds", kinds},
        {"constant", constant},
        {"advice", advice},
        {"heap", heap},
        {"limits", limits},
        {"limits-at-the-end", limits_at_the_end},
        {"limits-at-fork", limits_at_fork},
        {"pinned", pinned},
        {"pinned-later", pinned_later},
        {"undumpable", undumpable},
        {"filtered", filtered},
        {NULL, NULL},
    };
    return run_cases(cases, argc, argv);
}
