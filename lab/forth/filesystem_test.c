/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Files come back as they were written, over any order of writing and removing, and over
 *         a remount; what does not fit or exist is refused.
 * Method  Random operations against an array of files; a device in memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "lab/forth/filesystem.h"

#define PAGES     220u
#define FILES     20u
#define BYTES_MAX 60000u

static uint8_t pages[PAGES][FILESYSTEM_PAGE_BYTES];

static bool device_read(void *owner, uint64_t page, uint32_t count, void *bytes)
{
    (void)owner;
    assert_true(page + count <= PAGES && count <= 8);
    memcpy(bytes, pages[page], (size_t)count * FILESYSTEM_PAGE_BYTES);
    return true;
}

static bool device_write(void *owner, uint64_t page, uint32_t count, const void *bytes)
{
    (void)owner;
    assert_true(page + count <= PAGES && count <= 8);
    memcpy(pages[page], bytes, (size_t)count * FILESYSTEM_PAGE_BYTES);
    return true;
}

static const struct filesystem_device device = {
    .read = device_read, .write = device_write, .pages = PAGES, .request_pages = 8};

static struct {
    uint8_t bytes[BYTES_MAX];
    uint32_t count;
    bool exists;
} model[FILES];

static void compare(struct filesystem *fs)
{
    static uint8_t back[BYTES_MAX + FILESYSTEM_PAGE_BYTES];
    for (uint32_t i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "dir/%u", i);
        if (!model[i].exists) {
            assert_int_equal(filesystem_size(fs, name), -1);
            assert_false(filesystem_read(fs, name, back));
            assert_false(filesystem_remove(fs, name));
            continue;
        }
        assert_int_equal(filesystem_size(fs, name), model[i].count);
        assert_true(filesystem_read(fs, name, back));
        assert_memory_equal(back, model[i].bytes, model[i].count);
    }
}

static void test_random(void **state)
{
    (void)state;
    struct filesystem fs;
    struct prng prng;
    uint32_t refused = 0;
    prng_init(&prng, 2);
    assert_false(filesystem_mount(&fs, &device));
    assert_true(filesystem_format(&device));
    assert_true(filesystem_mount(&fs, &device));
    for (uint32_t step = 0; step < 2000; step++) {
        const uint32_t i = (uint32_t)prng_below(&prng, FILES);
        char name[16];
        snprintf(name, sizeof(name), "dir/%u", i);
        if (prng_below(&prng, 3) == 0) {
            assert_int_equal(filesystem_remove(&fs, name), model[i].exists);
            model[i].exists = false;
        } else {
            model[i].count = (uint32_t)prng_below(&prng, BYTES_MAX);
            for (uint32_t k = 0; k < model[i].count; k++) {
                model[i].bytes[k] = (uint8_t)prng_next(&prng);
            }
            model[i].exists = filesystem_write(&fs, name, model[i].bytes, model[i].count);
            refused += !model[i].exists;
        }
        if (step % 100 == 0) {
            compare(&fs);
            struct filesystem other;
            assert_false(filesystem_mount(&other, &device)); /* It is mounted. */
            assert_true(filesystem_unmount(&fs));
            assert_true(filesystem_mount(&fs, &device));
            compare(&fs);
        }
    }
    assert_true(refused > 0); /* The disk was full now and then. */
    assert_false(filesystem_write(&fs, "", "x", 1));
    assert_false(filesystem_write(
        &fs, "a name that is longer than the room that an inode has for it", "x", 1));
    assert_true(filesystem_unmount(&fs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
