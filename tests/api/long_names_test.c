/* SPDX-License-Identifier: BSD-2-Clause
 *
 * long_names_test - names in directories that are longer than struct dirent says.
 *
 * Goal    scandir gives them whole, and readdir_r, whose caller has room for 255 bytes, says that
 *         there is no such room (readdir_r(3)).
 * Method  File systems in user space have names of a thousand bytes. Here long_names.c, which is
 *         loaded behind our library, reads such a directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/long_names.h"

static void test_scandir(void **state)
{
    (void)state;
    struct dirent **entries;
    long_names_left = 2;
    assert_int_equal(scandir("/", &entries, NULL, NULL), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(strlen(entries[i]->d_name), LONG_NAME_BYTES);
        assert_true(malloc_usable_size(entries[i]) >= entries[i]->d_reclen);
        free(entries[i]);
    }
    free(entries);
}

/* In a directory in which we have entries, too, so that readdir_r is ours. */
static void test_readdir_r(void **state)
{
    (void)state;
    struct {
        struct dirent entry;
        char behind[64];
    } room;
    struct dirent *got;
    DIR *directory = opendir("/dev");
    assert_non_null(directory);
    memset(&room, 0x5a, sizeof(room));
    long_names_left = 1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    assert_int_equal(readdir_r(directory, &room.entry, &got), ENAMETOOLONG);
#pragma GCC diagnostic pop
    assert_null(got);
    for (size_t i = 0; i < sizeof(room.behind); i++) {
        assert_int_equal(room.behind[i], 0x5a);
    }
    closedir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scandir),
        cmocka_unit_test(test_readdir_r),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
