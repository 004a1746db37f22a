/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Shared memory keeps its size and its mark; memory of any other size, mark or seals is not
 *         mapped; and a descriptor for reading never lets anybody write.
 * Method  Memory that shm_memory_make makes, and a table of memory that the test makes in each
 *         wrong way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"

#define BYTES ((size_t)8192)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static int make(bool for_others, void **map)
{
    const int fd = shm_memory_make("test", BYTES, for_others, map);
    assert_true(fd >= 0 && descriptor_is_owned(fd));
    *(struct shm_mark *)*map = shm_mark_of(BYTES);
    return fd;
}

static void give_back(int fd, void *map)
{
    assert_int_equal(munmap(map, BYTES), 0);
    descriptor_close(fd);
}

static void test_both_see_the_same(void **state)
{
    (void)state;
    for (int for_others = 0; for_others < 2; for_others++) {
        void *ours;
        const int fd = make(for_others, &ours);
        char *theirs = shm_memory_map(fd, BYTES, for_others ? PROT_READ : PROT_READ | PROT_WRITE);
        assert_non_null(theirs);
        strcpy((char *)ours + 4000, "word");
        assert_string_equal(theirs + 4000, "word");
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        munmap(theirs, BYTES);
        give_back(fd, ours);
    }
}

/* Nobody can change the size, or add seals. */
static void test_sealed(void **state)
{
    (void)state;
    for (int for_others = 0; for_others < 2; for_others++) {
        void *map;
        const int fd = make(for_others, &map);
        const int seals = SEALS | F_SEAL_SEAL;
        assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals);
        assert_int_not_equal(ftruncate(fd, 0), 0);
        assert_int_not_equal(ftruncate(fd, 2 * BYTES), 0);
        assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
        give_back(fd, map);
    }
}

static void test_for_reading(void **state)
{
    (void)state;
    void *map;
    char path[64];
    const int fd = make(true, &map);
    assert_null(shm_memory_map(fd, BYTES, PROT_READ | PROT_WRITE));
    assert_int_equal(write(fd, "x", 1), -1);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int again = open(path, O_RDWR); /* Root may open it, but not write. */
    if (again >= 0) {
        assert_int_equal(write(again, "x", 1), -1);
        assert_ptr_equal(mmap(NULL, BYTES, PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
        close(again);
    }
    give_back(fd, map);
}

static void test_wrong_memory_is_not_mapped(void **state)
{
    (void)state;
    const struct shm_mark right = shm_mark_of(BYTES);
    const struct {
        size_t bytes;
        int seals;
        struct shm_mark mark;
        bool good;
    } cases[] = {
        {BYTES, SEALS, right, true},
        {BYTES, 0, right, false},
        {BYTES, F_SEAL_SHRINK, right, false},
        {BYTES, F_SEAL_GROW, right, false},
        {BYTES - 1, SEALS, right, false},
        {BYTES + 1, SEALS, right, false},
        {0, SEALS, right, false},
        {BYTES, SEALS, {0, right.layout, right.bytes}, false},
        {BYTES, SEALS, {right.magic, right.layout + 1, right.bytes}, false},
        {BYTES, SEALS, {right.magic, right.layout - 1, right.bytes}, false},
        {BYTES, SEALS, {right.magic, right.layout, right.bytes + 1}, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int fd = memfd_create("test", MFD_ALLOW_SEALING);
        assert_int_equal(pwrite(fd, &cases[i].mark, sizeof(right), 0), sizeof(right));
        assert_int_equal(ftruncate(fd, (off_t)cases[i].bytes), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, cases[i].seals), 0);
        void *map = shm_memory_map(fd, BYTES, PROT_READ);
        if ((map != NULL) != cases[i].good ||
            shm_mark_fits(&cases[i].mark, BYTES) != (memcmp(&cases[i].mark, &right, 16) == 0)) {
            fail_msg("case %zu", i);
        }
        if (map != NULL) {
            munmap(map, BYTES);
        }
        close(fd);
    }
}

static void test_no_memory_at_all(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(pipe(pair), 0);
    assert_null(shm_memory_map(pair[0], BYTES, PROT_READ));
    assert_null(shm_memory_map(-1, BYTES, PROT_READ));
    close(pair[0]);
    close(pair[1]);
}

/* An error leaves no descriptor open. */
static void test_limits(void **state)
{
    (void)state;
    struct rlimit files, open;
    void *map;
    const int next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &files), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &open), 0);
    const struct rlimit small = {BYTES - 1, files.rlim_max},
                        one = {(rlim_t)next + 1, open.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(shm_memory_make("test", BYTES, true, &map), -1);
    assert_int_equal(errno, EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &files), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &one), 0);
    /* It needs two descriptors. */
    assert_int_equal(shm_memory_make("test", BYTES, true, &map), -1);
    assert_int_equal(errno, EMFILE);
    const int again = dup(0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &open), 0);
    assert_int_equal(again, next);
    close(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_see_the_same), cmocka_unit_test(test_sealed),
        cmocka_unit_test(test_for_reading),       cmocka_unit_test(test_wrong_memory_is_not_mapped),
        cmocka_unit_test(test_no_memory_at_all),  cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
