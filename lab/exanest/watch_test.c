/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A capture has the packets that went over links, each as often as it crossed one, whole; a
 *         trace has what the parts did; and to look changes nothing.
 * Method  A machine of two QFDBs writes and reads. The memory that was written is made again out of
 *         the frames alone; spans are counted by their names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "lab/exanest/machine.h"

#define VA        EXANEST_MEMORY_VA
#define TARGET    (VA + 0x80000)
#define READ_TO   (VA + 0x100000)
#define READ_FROM (VA + 0x180000)
#define NOTIFY    (VA + 0x1f0000)
#define MEMORY    0x200000u
#define WRITTEN   300000u
#define READ      50000u
#define FILE_MAX  (8u << 20)
/* Words that several links send between two edges of the clock are written link by link, and a
 * word's end is known when it begins. */
#define DISORDER_PS 20000u
#define WRITER      0u
#define READER      1u
#define OWNER       6u

struct run {
    struct sim sim;
    struct exanest_machine machine;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct exanest_watch *watch;
};

static void fill(struct run *run, uint32_t fpga, uint64_t va, uint32_t bytes)
{
    uint8_t *at = exanest_machine_bytes(&run->machine, fpga, 0, va, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)prng_next(&run->sim.prng);
    }
}

/* F1 writes to F2 over both links, and F2 reads from F3 of the other QFDB. When this returns, all
 * transfers are done and the files are closed; the machine is still there. Of a million packets
 * `damaged` are damaged. */
static struct run *run_machine(const char *trace, const char *capture, uint32_t damaged)
{
    char error[200];
    struct run *run = calloc(1, sizeof(*run));
    struct exanest_machine_config config = exanest_machine_default(2, 1, 1);
    config.fabric.links_per_pair = 2;
    config.firmware.path_policy = EXANEST_PATH_ALTERNATES;
    config.process_bytes = MEMORY;
    config.faults.millionths[SIM_FAULT_damage] = damaged;
    sim_init(&run->sim, 1);
    exanest_machine_open(&run->machine, &config, &run->sim);
    run->trace = trace == NULL ? NULL : sim_trace_open(trace, error, sizeof(error));
    run->capture = capture == NULL
                       ? NULL
                       : sim_capture_open(capture, PCAPNG_LINK_EXANEST, error, sizeof(error));
    run->watch = exanest_watch_open(&run->machine, run->trace, run->capture);
    const struct exanest_write write = {
        .to = READER, .source = VA + 3, .va = TARGET + 9, .bytes = WRITTEN};
    const struct exanest_read read = {.owner = OWNER,
                                      .source = READ_FROM,
                                      .va = READ_TO,
                                      .notify_va = NOTIFY,
                                      .bytes = READ,
                                      .data = 77};
    fill(run, WRITER, write.source, WRITTEN);
    fill(run, OWNER, READ_FROM, READ);
    exanest_machine_write(&run->machine, WRITER, 0, 0, &write);
    assert_true(exanest_machine_read(&run->machine, READER, 0, &read));
    assert_true(exanest_machine_settle(&run->machine, UINT64_C(1000000000000)));
    exanest_watch_end(run->watch);
    assert_true(trace == NULL || sim_trace_close(run->trace, error, sizeof(error)));
    assert_true(capture == NULL || sim_capture_close(run->capture, error, sizeof(error)));
    return run;
}

static void end_run(struct run *run)
{
    exanest_machine_close(&run->machine);
    exanest_watch_close(run->watch);
    free(run);
}

static void path_of(char path[64], const char *end)
{
    snprintf(path, 64, "/tmp/nonic-watch-%d%s", getpid(), end);
}

/* The file's bytes, with a 0 behind them; the file is gone then. */
static uint8_t *take_file(const char *path, size_t *bytes)
{
    uint8_t *all = malloc(FILE_MAX);
    FILE *file = fopen(path, "re");
    assert_non_null(all);
    assert_non_null(file);
    *bytes = fread(all, 1, FILE_MAX - 1, file);
    assert_true(*bytes > 0 && *bytes < FILE_MAX - 1);
    all[*bytes] = 0;
    fclose(file);
    unlink(path);
    return all;
}

/* -- The capture --------------------------------------------------------------------------------*/

struct frames {
    uint64_t all, writes, from_owner, acks, controls, requests;
    uint64_t last_ps;
    uint8_t memory[MEMORY]; /* As the frames would leave the reader's. */
};

static uint64_t load_half(const uint8_t *at)
{
    return load_le32(at) | (uint64_t)load_le32(at + 4) << 32;
}

static struct exanest_word load_word(const uint8_t *at)
{
    return (struct exanest_word){load_half(at), load_half(at + 8)};
}

static void take_frame(struct frames *frames, const struct run *run, const uint8_t *at,
                       uint32_t bytes)
{
    struct exanest_header header;
    struct exanest_footer footer = {0};
    uint32_t crc = 0;
    assert_int_equal(exanest_header_decode(load_word(at), &header), EXANEST_GOOD);
    const uint32_t words = exanest_packet_words(&header);
    assert_int_equal(bytes, words * EXANEST_WORD_BYTES);
    if (header.has_footer) {
        assert_int_equal(exanest_footer_decode(load_word(at + 16 * (words - 1)), &footer),
                         EXANEST_GOOD);
    }
    for (uint32_t i = 1; i + 1 < words; i++) {
        crc = exanest_payload_crc(crc, load_word(at + 16 * i));
    }
    assert_int_equal(crc, footer.payload_crc);
    frames->all++;
    frames->acks += header.type == EXANEST_ACKNOWLEDGEMENT && header.has_footer;
    frames->controls += header.type == EXANEST_CONTROL;
    frames->requests += header.type == EXANEST_READ_REQUEST;
    if (header.type != EXANEST_WRITE) {
        return;
    }
    assert_int_equal(header.target.coordinate,
                     run->machine.fabric.qfdbs[0].fpgas[READER].coordinate);
    assert_true(header.target.va >= VA && header.target.va + header.bytes <= VA + MEMORY);
    frames->writes++;
    frames->from_owner += footer.source == run->machine.fabric.qfdbs[1].fpgas[OWNER - 4].coordinate;
    memcpy(frames->memory + header.target.va - VA, at + 16 + header.target.va % 16, header.bytes);
}

static struct frames *read_frames(const struct run *run, const char *path)
{
    size_t bytes;
    uint8_t *file = take_file(path, &bytes);
    struct frames *frames = calloc(1, sizeof(*frames));
    for (size_t at = 0; at < bytes; at += load_le32(file + at + 4)) {
        if (load_le32(file + at) != 6) { /* An enhanced packet block. */
            continue;
        }
        const uint64_t when = (uint64_t)load_le32(file + at + 12) << 32 | load_le32(file + at + 16);
        assert_true(when + DISORDER_PS >= frames->last_ps && when <= run->sim.now_ps);
        frames->last_ps = when;
        assert_int_equal(load_le32(file + at + 20), load_le32(file + at + 24));
        take_frame(frames, run, file + at + 28, load_le32(file + at + 20));
    }
    free(file);
    return frames;
}

static uint64_t carried(const struct run *run)
{
    uint64_t packets = 0;
    for (uint32_t i = 0; i < run->machine.fabric.qfdb_count; i++) {
        for (uint32_t k = 0; k < 2 * EXANEST_QFDB_PAIRS; k++) {
            struct exanest_link *link = &run->machine.fabric.qfdbs[i].links[k];
            packets += exanest_link_out(link, 0)->counters.packets;
            packets += exanest_link_out(link, 1)->counters.packets;
        }
    }
    return packets;
}

static void test_capture(void **state)
{
    (void)state;
    char path[64];
    path_of(path, ".pcapng");
    struct run *run = run_machine(NULL, path, 0);
    struct frames *frames = read_frames(run, path);
    const uint32_t read_packets = (READ + 255) / 256, read_blocks = (READ + 16383) / 16384;
    const uint32_t packets = (9 + WRITTEN + 255) / 256, blocks = (9 + WRITTEN + 16383) / 16384;
    /* The read crosses a link of each QFDB and a wire between two routers, and so do its request
     * and that one's answer. */
    assert_int_equal(frames->from_owner, 3 * read_packets);
    assert_int_equal(frames->writes, packets + 3 * read_packets);
    assert_int_equal(frames->acks, blocks + 3 * read_blocks);
    assert_int_equal(frames->requests, 3);
    assert_int_equal(frames->controls, 3);
    assert_int_equal(frames->all, carried(run) + read_packets + read_blocks + 3);
    assert_memory_equal(frames->memory + (TARGET + 9 - VA),
                        exanest_machine_bytes(&run->machine, WRITER, 0, VA + 3, WRITTEN), WRITTEN);
    assert_memory_equal(frames->memory + (READ_TO - VA),
                        exanest_machine_bytes(&run->machine, OWNER, 0, READ_FROM, READ), READ);
    free(frames);
    end_run(run);
}

/* -- The trace ----------------------------------------------------------------------------------*/

static uint32_t count(const char *text, const char *part)
{
    uint32_t times = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        times++;
    }
    return times;
}

static void test_trace(void **state)
{
    (void)state;
    char path[64];
    size_t bytes;
    path_of(path, ".json");
    struct run *run = run_machine(path, NULL, 0);
    char *text = (char *)take_file(path, &bytes);
    static const char *const lanes[] = {"\"FPGA 7\"",
                                        "\"R5\"",
                                        "\"send unit\"",
                                        "\"send unit, path 1\"",
                                        "\"link to F4\"",
                                        "\"context a\"",
                                        "\"contexts in use\"",
                                        "\"router to x + 1\"",
                                        "\"second link to F1 stopped\""};
    for (uint32_t i = 0; i < COUNT_OF(lanes); i++) {
        assert_non_null(strstr(text, lanes[i]));
    }
    const uint32_t read_packets = (READ + 255) / 256, read_blocks = (READ + 16383) / 16384;
    const uint32_t packets = (9 + WRITTEN + 255) / 256, blocks = (9 + WRITTEN + 16383) / 16384;
    /* Each once at its send unit, and once for each link and wire. */
    assert_int_equal(count(text, "\"write, sequence 0, TID "), 2 * packets + 4 * read_packets);
    assert_int_equal(count(text, "\"ACK, sequence 0, TID "), blocks + 3 * read_blocks);
    assert_int_equal(count(text, "\"read request, sequence 0, TID "), 3);
    assert_int_equal(count(text, "\"control, sequence 0, TID "), 4);
    assert_int_equal(count(text, "\"ACK, channel "), 3);
    assert_int_equal(count(text, "\"damaged packet "), 0);
    assert_int_equal(count(text, "\"block, sequence 0, TID "), blocks + read_blocks);
    assert_int_equal(count(text, "\"store W3 of TID "), blocks + read_blocks);
    assert_int_equal(count(text, "\"store control word 3 of TID "), 1);
    assert_int_equal(count(text, "\"read response, TID "), blocks + read_blocks);
    assert_true(count(text, "\"XOFF ") > 0);
    free(text);
    end_run(run);
}

/* A block that is sent again is another one in the receiver's place for it. */
static void test_sent_again(void **state)
{
    (void)state;
    char path[64];
    size_t bytes;
    path_of(path, ".json");
    struct run *run = run_machine(path, NULL, 3000);
    char *text = (char *)take_file(path, &bytes);
    const struct exanest_receiver *receiver =
        &exanest_fabric_fpga(&run->machine.fabric, READER)->receiver;
    const uint64_t flushes = receiver->counters.flushes;
    const uint32_t blocks = (9 + WRITTEN + 16383) / 16384 + (READ + 16383) / 16384;
    assert_true(flushes > 0);
    assert_int_equal(count(text, "\"block, sequence "), blocks + flushes);
    assert_true(count(text, "\"block, sequence 1, TID ") > 0);
    assert_true(count(text, "\"NACK for a CRC, sequence 0, TID ") > 0);
    free(text);
    end_run(run);
}

/* -- Neither ------------------------------------------------------------------------------------*/

static void test_looking_changes_nothing(void **state)
{
    (void)state;
    char trace[64], capture[64];
    path_of(trace, ".vcd");
    path_of(capture, ".pcapng");
    struct run *alone = run_machine(NULL, NULL, 0);
    struct run *watched = run_machine(trace, capture, 0);
    assert_null(alone->watch);
    assert_non_null(watched->watch);
    assert_int_equal(alone->sim.digest, watched->sim.digest);
    assert_int_equal(alone->sim.events, watched->sim.events);
    assert_int_equal(alone->sim.now_ps, watched->sim.now_ps);
    assert_int_equal(unlink(trace) | unlink(capture), 0);
    end_run(alone);
    end_run(watched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capture),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_sent_again),
        cmocka_unit_test(test_looking_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
