/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Texts come line by line, whole or in the parts that there is room for; an error is told
 *         apart from the end; nothing is left open, and the caller's errno stays.
 * Method  Files in memory, by their names in /proc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>

#include "drivers/system/lines.h"

/* Makes a file with that text, of which `path` becomes the name. Returns its descriptor. */
static int make(const char *text, char path[64])
{
    const int fd = memfd_create("lines", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void lines_come_one_by_one(void **state)
{
    (void)state;
    struct lines lines;
    char path[64], line[16];
    const int fd = make("first\n\nno end", path);
    errno = EDOM;
    lines_open(&lines, AT_FDCWD, path);
    assert_true(descriptor_is_owned(lines.fd));
    assert_true(lines_next(&lines, line, sizeof(line)));
    assert_string_equal(line, "first\n");
    assert_true(lines_next(&lines, line, sizeof(line)));
    assert_string_equal(line, "\n");
    assert_true(lines_next(&lines, line, sizeof(line)));
    assert_string_equal(line, "no end");
    assert_false(lines_next(&lines, line, sizeof(line)));
    assert_string_equal(line, "");
    const int closed = lines.fd;
    assert_int_equal(lines_close(&lines), 0);
    assert_int_equal(errno, EDOM);
    assert_false(descriptor_is_owned(closed));
    assert_int_equal(fcntl(closed, F_GETFD), -1);
    close(fd);
}

/* A line may be longer than the bytes that are read ahead. */
static void a_long_line_comes_in_parts(void **state)
{
    (void)state;
    static char text[3000], all[sizeof(text)];
    struct lines lines;
    char path[64], part[700];
    size_t parts = 0, bytes = 0;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 5] = '\n';
    const int fd = make(text, path);
    lines_open(&lines, AT_FDCWD, path);
    while (lines_next(&lines, part, sizeof(part))) {
        memcpy(all + bytes, part, strlen(part));
        bytes += strlen(part);
        parts++;
    }
    assert_int_equal(lines_close(&lines), 0);
    assert_int_equal(parts, 6); /* Four of 699 bytes, the rest of 200, and the text behind the
                                   end. */
    assert_int_equal(bytes, sizeof(text) - 1);
    assert_memory_equal(all, text, bytes);
    close(fd);
}

static void an_error_is_no_end(void **state)
{
    (void)state;
    struct lines lines;
    char line[16];
    errno = EDOM;
    lines_open(&lines, AT_FDCWD, "/proc/self/nothing");
    assert_false(lines_next(&lines, line, sizeof(line)));
    assert_int_equal(lines_close(&lines), ENOENT);
    lines_open(&lines, AT_FDCWD, "/proc/self"); /* It can be opened, but not read. */
    assert_false(lines_next(&lines, line, sizeof(line)));
    assert_int_equal(lines_close(&lines), EISDIR);
    assert_int_equal(errno, EDOM);
}

static void a_beginning_has_what_there_is_room_for(void **state)
{
    (void)state;
    char path[64], text[8];
    const int fd = make("ab\ncdefghij\n", path);
    assert_int_equal(lines_read(AT_FDCWD, path, text, sizeof(text)), 0);
    assert_string_equal(text, "ab\ncdef");
    assert_int_equal(lines_read(AT_FDCWD, "/proc/self/nothing", text, sizeof(text)), ENOENT);
    assert_string_equal(text, "");
    close(fd);
}

static void *read_cancelled(void *argument)
{
    char text[16];
    pthread_cancel(pthread_self());
    (void)lines_read(AT_FDCWD, "/proc/self/comm", text, sizeof(text));
    *(bool *)argument = text[0] != '\0';
    pthread_testcancel();
    return NULL;
}

static void a_cancelled_thread_reads_to_the_end(void **state)
{
    (void)state;
    bool read = false;
    void *result;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_cancelled, &read), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true(read);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_one_by_one),
        cmocka_unit_test(a_long_line_comes_in_parts),
        cmocka_unit_test(an_error_is_no_end),
        cmocka_unit_test(a_beginning_has_what_there_is_room_for),
        cmocka_unit_test(a_cancelled_thread_reads_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
