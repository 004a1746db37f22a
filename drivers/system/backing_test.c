/* SPDX-License-Identifier: BSD-2-Clause
 *
 * backing_test - memory keeps its bytes while the pages behind it are exchanged, and is refused
 * where an exchange would be seen. Mappings, by which both are judged, are told as the kernel
 * says.
 */
#include "drivers/system/backing.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/mapping.h"

#define PAGE UINT64_C(4096)

static uint8_t *make(uint64_t bytes, int flags)
{
    uint8_t *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    return pages;
}

static void fill(uint8_t *bytes, uint64_t count, uint64_t seed)
{
    struct prng prng;
    prng_init(&prng, seed);
    for (uint64_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)prng_next(&prng);
    }
}

/* Its path lies in the original, until the next call. */
static struct mapping mapping_of(const void *address)
{
    static struct mapping mapping;
    assert_true(mapping_find((uintptr_t)address, &mapping));
    return mapping;
}

/* -- Mappings -----------------------------------------------------------------------------------*/

static void test_a_mapping_is_told(void **state)
{
    (void)state;
    const int file = memfd_create("told", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, 8 * PAGE), 0);
    uint8_t *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 2 * PAGE);
    assert_ptr_not_equal(memory, MAP_FAILED);
    const struct mapping mapping = mapping_of(memory + PAGE);
    struct stat status;
    assert_int_equal(fstat(file, &status), 0);
    assert_int_equal(mapping.start, (uintptr_t)memory);
    assert_int_equal(mapping.end, (uintptr_t)memory + 4 * PAGE);
    assert_int_equal(mapping.offset, 2 * PAGE);
    assert_int_equal(mapping.inode, status.st_ino);
    assert_int_equal(mapping.device, status.st_dev);
    assert_true(mapping.readable && mapping.writable && mapping.shared);
    assert_true(mapping_has(&mapping, (uintptr_t)memory, 4 * PAGE));
    assert_false(mapping_has(&mapping, (uintptr_t)memory, 4 * PAGE + 1));
    assert_false(mapping_has(&mapping, (uintptr_t)memory - 1, 2));
    assert_false(mapping_has(&mapping, (uintptr_t)memory + PAGE, UINT64_MAX));

    const int again = mapping_descriptor(&mapping);
    struct stat same;
    assert_true(again >= 0 && again != file && fstat(again, &same) == 0);
    assert_int_equal(same.st_ino, status.st_ino);
    descriptor_close(again);
    close(file);
    munmap(memory, 4 * PAGE);
    struct mapping gone;
    assert_false(mapping_find((uintptr_t)memory, &gone));
}

/* A file that can only be read serves memory that can only be read. */
static void test_a_file_serves_if_it_can(void **state)
{
    (void)state;
    char path[] = "/dev/shm/nonic-backing-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC);
    assert_true(file >= 0 && ftruncate(file, PAGE) == 0);
    uint8_t *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    close(file);
    struct mapping mapping = mapping_of(memory);
    file = mapping_descriptor(&mapping); /* By its path. */
    assert_true(file >= 0 && (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR);
    descriptor_close(file);
    const int reader = open(path, O_RDONLY | O_CLOEXEC);
    unlink(path);
    mapping = mapping_of(memory);
    const bool restores = geteuid() == 0; /* By /proc/self/map_files. */
    file = mapping_descriptor(&mapping);
    assert_int_equal(file >= 0, restores);
    descriptor_close(file);
    assert_int_equal(mprotect(memory, PAGE, PROT_READ), 0);
    mapping = mapping_of(memory);
    file = mapping_descriptor(&mapping);
    assert_true(file >= 0 && (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY);
    descriptor_close(file);
    close(reader);
    munmap(memory, PAGE);
    /* Private memory has no file; nor has a file's path a name that only looks like one. */
    memory = make(PAGE, MAP_PRIVATE);
    mapping = mapping_of(memory);
    assert_int_equal(mapping_descriptor(&mapping), -1);
    munmap(memory, PAGE);
}

/* -- The exchange -------------------------------------------------------------------------------*/

/* There and back, with neighbours, what either side writes is what the other one reads. */
static void check_exchange(uint64_t pages, uint64_t seed)
{
    const uint64_t bytes = pages * PAGE;
    uint8_t *memory = make(bytes + 2 * PAGE, MAP_PRIVATE), *there = memory + PAGE;
    uint8_t *copy = malloc(bytes + 2 * PAGE);
    fill(memory, bytes + 2 * PAGE, seed);
    memcpy(copy, memory, bytes + 2 * PAGE);
    const int file = backing_share((uintptr_t)there, bytes);
    assert_true(file >= 0);
    assert_memory_equal(memory, copy, bytes + 2 * PAGE);
    uint8_t *other = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(other, MAP_FAILED);
    fill(there, bytes, seed + 1);
    assert_memory_equal(other, there, bytes);
    fill(other, bytes, seed + 2);
    assert_memory_equal(other, there, bytes);
    assert_memory_equal(memory, copy, PAGE);
    assert_true(mapping_of(there).shared && !mapping_of(memory).shared);

    assert_true(backing_return((uintptr_t)there, bytes, file));
    assert_memory_equal(other, there, bytes);
    other[0]++;
    there[bytes - 1]++;
    assert_true(other[0] != there[0] && other[bytes - 1] != there[bytes - 1]);
    assert_false(mapping_of(there).shared);
    descriptor_close(file);
    munmap(other, bytes);
    munmap(memory, bytes + 2 * PAGE);
    free(copy);
}

static void test_bytes_stay(void **state)
{
    (void)state;
    static const uint64_t pages[] = {1, 2, 16, 511, 512, 513, 1500};
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        check_exchange(pages[i], 40 + i);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        check_exchange(1 + i % 3, 100 + i);
    }
}

/* A program may have given part of the memory back, and mapped something else there. */
static void test_only_what_is_ours_returns(void **state)
{
    (void)state;
    uint8_t *memory = make(4 * PAGE, MAP_PRIVATE);
    memset(memory, 1, 4 * PAGE);
    const int file = backing_share((uintptr_t)memory, 4 * PAGE);
    uint8_t *other = mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(other, memory + PAGE);
    munmap(memory + 2 * PAGE, PAGE);
    assert_true(backing_return((uintptr_t)memory, 4 * PAGE, file));
    assert_true(mapping_of(other).shared);
    assert_false(mapping_of(memory).shared || mapping_of(memory + 3 * PAGE).shared);
    assert_true(memory[0] == 1 && other[0] == 0 && memory[3 * PAGE] == 1);
    struct mapping gone;
    assert_false(mapping_find((uintptr_t)memory + 2 * PAGE, &gone));
    descriptor_close(file);
    munmap(memory, 4 * PAGE);
}

/* No peer can make the file smaller, and a mapping that grows stays in it. */
static void test_the_file_keeps_its_size(void **state)
{
    (void)state;
    uint8_t *memory = make(2 * PAGE, MAP_PRIVATE);
    memory[0] = 7;
    const int file = backing_share((uintptr_t)memory, 2 * PAGE);
    assert_int_equal(ftruncate(file, 0), -1);
    memory = mremap(memory, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memory[8 * PAGE - 1] = 1;
    assert_int_equal(memory[0], 7);
    descriptor_close(file);
    munmap(memory, 8 * PAGE);
}

/* The heap grows and shrinks as it did. */
static void test_the_heap_goes_on(void **state)
{
    (void)state;
    uint8_t *end = (uint8_t *)(((uintptr_t)sbrk(0) + PAGE - 1) & ~(PAGE - 1));
    assert_int_equal(brk(end + 4 * PAGE), 0);
    memset(end, 3, 4 * PAGE);
    assert_true(backing_is_ordinary((uintptr_t)end + PAGE, 2 * PAGE));
    const int file = backing_share((uintptr_t)end + PAGE, 2 * PAGE);
    assert_true(file >= 0);
    assert_int_equal(brk(end + 8 * PAGE), 0);
    memset(end, 4, 8 * PAGE);
    assert_int_equal(brk(end + 2 * PAGE), 0);
    assert_true(backing_return((uintptr_t)end + PAGE, 2 * PAGE, file));
    assert_true(end[0] == 4 && end[2 * PAGE - 1] == 4);
    assert_int_equal(brk(end), 0);
    descriptor_close(file);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

static void expect_special(void *memory, uint64_t bytes)
{
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_false(backing_is_ordinary((uintptr_t)memory, bytes));
}

static void test_what_is_not_ordinary(void **state)
{
    (void)state;
    uint8_t *memory = make(4 * PAGE, MAP_PRIVATE);
    assert_true(backing_is_ordinary((uintptr_t)memory, 4 * PAGE));
    assert_int_equal(mprotect(memory + 3 * PAGE, PAGE, PROT_READ), 0);
    assert_true(backing_is_ordinary((uintptr_t)memory, 3 * PAGE));
    expect_special(memory, 4 * PAGE);        /* There are two kinds. */
    expect_special(memory + 3 * PAGE, PAGE); /* Cannot be written. */
    static const int advice[] = {MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK, MADV_MERGEABLE};
    for (size_t i = 0; i < COUNT_OF(advice); i++) {
        uint8_t *special = make(PAGE, MAP_PRIVATE);
        if (madvise(special, PAGE, advice[i]) == 0) {
            expect_special(special, PAGE);
        }
        munmap(special, PAGE);
    }
    uint8_t *locked = make(PAGE, MAP_PRIVATE);
    if (syscall(SYS_mlock, locked, PAGE) == 0) { /* AddressSanitizer's mlock does nothing. */
        expect_special(locked, PAGE);
    }
    munmap(locked, PAGE);
    munmap(memory, 4 * PAGE);
    static uint8_t of_a_file = 1;
    /* A variable may lie on another stack, AddressSanitizer's. */
    expect_special((void *)((uintptr_t)__builtin_frame_address(0) & ~(PAGE - 1)), PAGE);
    expect_special((void *)((uintptr_t)&of_a_file & ~(PAGE - 1)), PAGE);
    uint8_t *shared = make(PAGE, MAP_SHARED);
    expect_special(shared, PAGE);
    munmap(shared, PAGE);
    expect_special(shared, PAGE); /* Not there. */
}

static void *wait_for(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* 1: ThreadSanitizer has a thread of its own, which it begins with the first of ours. */
static unsigned watchers;

static void test_alone(void **state)
{
    (void)state;
    assert_true(backing_is_alone(0));
    assert_false(backing_is_alone(1)); /* It is not there. */
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_mutex_lock(&gate);
    assert_int_equal(pthread_create(&thread, NULL, wait_for, &gate), 0);
#ifdef __SANITIZE_THREAD__
    watchers = 1;
#endif
    assert_false(backing_is_alone(watchers));
    assert_true(backing_is_alone(watchers + 1));
    pthread_mutex_unlock(&gate);
    pthread_join(thread, NULL);
    /* It is joined a little before it is gone. */
    for (int i = 0; i < 1000 && !backing_is_alone(watchers); i++) {
        usleep(1000);
    }
    assert_true(backing_is_alone(watchers));
}

/* Descriptors by which the kernel, or a device, may write, with high numbers, too. */
static void expect_company(int fd)
{
    if (fd < 0) {
        return; /* Not allowed, or not there. */
    }
    const int high = fcntl(fd, F_DUPFD, 700);
    close(fd);
    assert_false(backing_is_alone(watchers));
    close(high);
    assert_true(backing_is_alone(watchers));
}

static void test_others_that_may_write(void **state)
{
    (void)state;
    const int event = eventfd(0, 0), null = open("/dev/null", O_RDWR);
    assert_true(backing_is_alone(watchers));
    close(event);
    close(null);
    uint8_t parameters[120] = {0};
    expect_company((int)syscall(SYS_io_uring_setup, 4, parameters));
    expect_company((int)syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
    expect_company(open("/dev/kvm", O_RDWR));
    unsigned long context = 0;
    if (syscall(SYS_io_setup, 4, &context) == 0) {
        assert_false(backing_is_alone(watchers));
        syscall(SYS_io_destroy, context);
        assert_true(backing_is_alone(watchers));
    }
}

/* Limits are told, not met. */
static void in_child(void (*work)(void))
{
    const pid_t child = fork();
    int status;
    if (child == 0) {
        work();
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static void limit(int what, rlim_t most)
{
    const struct rlimit limit = {most, most};
    if (setrlimit((enum __rlimit_resource)what, &limit) != 0) {
        _exit(3);
    }
}

static void with_small_files(void)
{
    uint8_t *memory = make(PAGE, MAP_PRIVATE);
    memory[0] = 5;
    limit(RLIMIT_FSIZE, 1 << 20);
    if (backing_share((uintptr_t)memory, PAGE) != -1 || memory[0] != 5) {
        _exit(1);
    }
}

static void with_no_descriptors(void)
{
    uint8_t *memory = make(PAGE, MAP_PRIVATE);
    memory[0] = 5;
    limit(RLIMIT_NOFILE, 3);
    if (backing_share((uintptr_t)memory, PAGE) != -1 || memory[0] != 5) {
        _exit(1);
    }
}

/* The second piece finds no room: the first one becomes what it was. */
static void with_little_room(void)
{
    const uint64_t bytes = 3 * 512 * PAGE;
    uint8_t *memory = make(bytes, MAP_PRIVATE), *copy = make(bytes, MAP_PRIVATE);
    struct mapping mapping;
    fill(memory, bytes, 9);
    memcpy(copy, memory, bytes);
    char text[4096];
    FILE *status = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (status == NULL || fgets(text, sizeof(text), status) == NULL ||
        sscanf(text, "%lu", &pages) != 1) {
        _exit(2);
    }
    fclose(status);
    limit(RLIMIT_AS, (pages + 256) * PAGE); /* Half a piece. */
    if (backing_share((uintptr_t)memory, bytes) != -1 || memcmp(memory, copy, bytes) != 0 ||
        !mapping_find((uintptr_t)memory, &mapping) || mapping.shared) {
        _exit(1);
    }
}

static void test_limits(void **state)
{
    (void)state;
    in_child(with_small_files);
    in_child(with_no_descriptors);
    in_child(with_little_room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mapping_is_told),
        cmocka_unit_test(test_a_file_serves_if_it_can),
        cmocka_unit_test(test_bytes_stay),
        cmocka_unit_test(test_only_what_is_ours_returns),
        cmocka_unit_test(test_the_file_keeps_its_size),
        cmocka_unit_test(test_the_heap_goes_on),
        cmocka_unit_test(test_what_is_not_ordinary),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_others_that_may_write),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
