/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A capture is whole blocks at any time, with each packet once and in order; no two
 *         programs write one file; if the file cannot grow, the capture ends, not the program.
 * Method  Random packets, and the file read back block by block beside the same random numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/capture.h"
#include "wire/pcapng.h"
#include "wire/roce_frame.h"

#define PACKET_BLOCK  6
#define PACKET_AT     28 /* The offset of the packet in its block. */
#define HEADERS_BYTES (INET_IPV4_BYTES + INET_UDP_BYTES)
#define PACKETS       2000 /* About 4 MB: more than waits in memory. */

struct bench {
    char folder[64], path[128];
    struct inet_flow flow;
    struct prng prng; /* The packets that were recorded are drawn from it. */
    uint8_t *file;
    size_t bytes, at; /* Bytes that were read, and those of them that were compared. */
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
    strcpy(bench->folder, "/tmp/nonic-capture-XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    snprintf(bench->path, sizeof(bench->path), "%s/a.pcapng", bench->folder);
    bench->flow = roce_flow(here, here);
    prng_init(&bench->prng, 1);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", bench->folder);
    assert_int_equal(system(command), 0);
    free(bench->file);
    free(bench);
    return 0;
}

static struct capture *open_capture(const char *path)
{
    char error[512] = "";
    struct capture *capture = capture_open(path, error, sizeof(error));
    if (capture == NULL) {
        fail_msg("%s", error);
    }
    return capture;
}

/* Draws the bytes of the next packet. */
static size_t draw(struct prng *prng, uint8_t *bytes)
{
    const size_t count = 16 + prng_below(prng, 4000);
    memset(bytes, (int)prng_below(prng, 256), count);
    store_be32(bytes, (uint32_t)prng_next(prng));
    return count;
}

static void record(struct bench *bench, struct capture *capture, int packets)
{
    uint8_t bytes[4096];
    for (int i = 0; i < packets; i++) {
        const size_t count = draw(&bench->prng, bytes);
        capture_bytes(capture, &bench->flow, INET_VARIANT_PLAIN, bytes, count);
    }
}

/* -- Reading it back ----------------------------------------------------------------------------*/

static void read_file(struct bench *bench, const char *path)
{
    struct stat status;
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    bench->bytes = (size_t)status.st_size;
    bench->at = 0;
    free(bench->file);
    bench->file = malloc(bench->bytes + 1);
    assert_int_equal(read(fd, bench->file, bench->bytes), bench->bytes);
    close(fd);
}

/* The next block; NULL: the file ends here, and not within one. */
static const uint8_t *next_block(struct bench *bench)
{
    const uint8_t *block = bench->file + bench->at;
    const size_t left = bench->bytes - bench->at;
    if (left == 0) {
        return NULL;
    }
    assert_true(left >= 12);
    const uint32_t bytes = load_le32(block + 4);
    assert_in_range(bytes, 12, left);
    assert_int_equal(load_le32(block + bytes - 4), bytes);
    bench->at += bytes;
    return block;
}

/* Skips the blocks of the section and of its interface. */
static void skip_head(struct bench *bench)
{
    assert_int_equal(load_le32(next_block(bench)), 0x0a0d0d0a);
    assert_int_equal(load_le32(next_block(bench)), 1);
}

/* Expects the packets that `prng` makes behind the head; returns how many there are. */
static int compare(struct bench *bench, struct prng prng)
{
    uint8_t bytes[4096];
    const uint8_t *block;
    int packets = 0;
    skip_head(bench);
    while ((block = next_block(bench)) != NULL) {
        const size_t count = draw(&prng, bytes);
        assert_int_equal(load_le32(block), PACKET_BLOCK);
        assert_int_equal(load_le32(block + 20), HEADERS_BYTES + count);
        assert_memory_equal(block + PACKET_AT + HEADERS_BYTES, bytes, count);
        packets++;
    }
    return packets;
}

static void test_each_packet_once_and_in_order(void **state)
{
    struct bench *bench = *state;
    const struct prng prng = bench->prng;
    struct capture *capture = open_capture(bench->path);
    record(bench, capture, PACKETS);
    read_file(bench, bench->path); /* The file is still being written. */
    const int before = compare(bench, prng);
    assert_in_range(before, 1, PACKETS - 1);
    capture_flush(capture);
    read_file(bench, bench->path);
    assert_int_equal(compare(bench, prng), PACKETS);
    record(bench, capture, 3);
    capture_close(capture);
    read_file(bench, bench->path);
    assert_int_equal(compare(bench, prng), PACKETS + 3);
}

/* Bytes that are too few or too many for a packet are not recorded. */
static void test_pieces(void **state)
{
    struct bench *bench = *state;
    struct capture *capture = open_capture(bench->path);
    static const uint8_t payload[BLOCK_PACKET_BYTES_MAX];
    const uint8_t headers[ROCE_BTH_BYTES] = {ROCE_SEND_ONLY};
    static const size_t sizes[] = {0, 4, 4096, BLOCK_PACKET_BYTES_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        capture_pieces(capture, &bench->flow, INET_VARIANT_PLAIN, headers, sizeof(headers), payload,
                       sizes[i]);
    }
    capture_pieces(capture, &bench->flow, INET_VARIANT_PLAIN, headers, 4, NULL, 0);
    capture_close(capture);
    read_file(bench, bench->path);
    skip_head(bench);
    for (size_t i = 0; i < 3; i++) {
        const uint8_t *block = next_block(bench);
        assert_non_null(block);
        const size_t bytes = sizeof(headers) + sizes[i] + ROCE_ICRC_BYTES;
        assert_int_equal(load_le32(block + 20), HEADERS_BYTES + bytes);
        assert_true(roce_frame_is_whole(&bench->flow, block + PACKET_AT + HEADERS_BYTES, bytes));
    }
    assert_null(next_block(bench));
}

static void test_no_capture(void **state)
{
    (void)state;
    capture_flush(NULL);
    capture_forget(NULL);
    capture_close(NULL);
}

/* -- Names --------------------------------------------------------------------------------------*/

static void expect_file(const struct bench *bench, const char *before, const char *behind)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s%d%s", bench->folder, before, getpid(), behind);
    if (access(path, F_OK) != 0) {
        fail_msg("%s", path);
    }
}

static struct capture *open_in_folder(const struct bench *bench, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", bench->folder, name);
    return open_capture(path);
}

static void test_process_numbers_in_names(void **state)
{
    const struct bench *bench = *state;
    static const struct {
        const char *name, *before, *behind;
    } cases[] = {{"%p", "", ""}, {"x.%p.y", "x.", ".y"}, {"z%p%p", "z", "%p"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        capture_close(open_in_folder(bench, cases[i].name));
        expect_file(bench, cases[i].before, cases[i].behind);
    }
}

/* A file that another capture writes is left alone; when none writes it any more, it is written
 * anew. */
static void test_a_file_of_another(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *name, *before, *behind;
    } cases[] = {{"b.pcapng", "b.", ".pcapng"},
                 {"c", "c.", ""},
                 {"d.e.f", "d.e.", ".f"},
                 {"g.h/i", "g.h/i.", ""}};
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/g.h", bench->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct capture *first = open_in_folder(bench, cases[i].name);
        capture_close(open_in_folder(bench, cases[i].name));
        expect_file(bench, cases[i].before, cases[i].behind);
        capture_close(first);
    }
    struct capture *long_one = open_capture(bench->path);
    record(bench, long_one, 10);
    capture_close(long_one);
    capture_close(open_capture(bench->path));
    read_file(bench, bench->path);
    skip_head(bench);
    assert_null(next_block(bench));
}

static void test_files_that_cannot_be(void **state)
{
    const struct bench *bench = *state;
    char path[256], error[512];
    snprintf(path, sizeof(path), "%s/none/a", bench->folder);
    assert_null(capture_open(path, error, sizeof(error)));
    assert_int_equal(errno, ENOENT);
    assert_non_null(strstr(error, path));
    assert_non_null(strstr(error, strerror(ENOENT)));
    assert_null(capture_open(bench->folder, error, sizeof(error)));
    assert_int_equal(errno, EISDIR);
}

/* -- Children, limits ---------------------------------------------------------------------------*/

static void expect_success(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Packets that waited in memory at the time of fork are written once: by the parent. */
static void test_child_of_fork(void **state)
{
    struct bench *bench = *state;
    const struct prng prng = bench->prng;
    char byte;
    int pair[2];
    struct capture *capture = open_capture(bench->path);
    assert_int_equal(pipe(pair), 0);
    record(bench, capture, 2);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pair[1], STDERR_FILENO);
        capture_forget(capture);
        capture_close(capture);
        _exit(0);
    }
    close(pair[1]);
    expect_success(child);
    assert_int_equal(read(pair[0], &byte, 1), 0); /* The child said nothing. */
    close(pair[0]);
    record(bench, capture, 1);
    capture_close(capture);
    read_file(bench, bench->path);
    assert_int_equal(compare(bench, prng), 3);
}

/* There is no signal: SIGXFSZ would have ended the child. It reports the limit once, on its
 * standard error. */
static void test_a_limit_on_files(void **state)
{
    struct bench *bench = *state;
    const struct prng prng = bench->prng;
    char said[512] = "";
    int pair[2];
    assert_int_equal(pipe(pair), 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {1 << 21, 1 << 21};
        dup2(pair[1], STDERR_FILENO);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            _exit(1);
        }
        struct capture *capture = open_capture(bench->path);
        record(bench, capture, PACKETS);
        capture_close(capture);
        _exit(0);
    }
    close(pair[1]);
    expect_success(child);
    assert_true(read(pair[0], said, sizeof(said) - 1) > 0);
    const char *first = strstr(said, "the capture ends here");
    assert_non_null(first);
    assert_null(strstr(first + 1, "the capture ends here"));
    read_file(bench, bench->path);
    assert_in_range(bench->bytes, 1 << 20, 1 << 21);
    assert_in_range(compare(bench, prng), 1, PACKETS - 1);
    close(pair[0]);
}

#define CAPTURE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CAPTURE_TEST(test_each_packet_once_and_in_order),
        CAPTURE_TEST(test_pieces),
        CAPTURE_TEST(test_no_capture),
        CAPTURE_TEST(test_process_numbers_in_names),
        CAPTURE_TEST(test_a_file_of_another),
        CAPTURE_TEST(test_files_that_cannot_be),
        CAPTURE_TEST(test_child_of_fork),
        CAPTURE_TEST(test_a_limit_on_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
