/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A trace has what boards, switch and receiver did; and to look changes nothing.
 * Method  Machines that are watched and machines that are not; the trace's records are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/feroce/machine.h"

struct counts {
    uint64_t digest, packets, resent, pauses, answers;
};

/* A machine runs to its end; with a path it is watched. */
static struct counts run_machine(const char *path, const struct feroce_load *load,
                                 enum feroce_speed speed, bool old)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, lab_find("feroce/congestion"), 1);
    run->trace_path = path;
    const struct feroce_setup setup =
        old ? feroce_setup_of(run, speed) : feroce_setup_2026(run, speed);
    struct feroce_machine *machine = feroce_machine_open(run, &setup, load);
    assert_non_null(machine);
    feroce_machine_run(machine);
    assert_true(feroce_machine_result(machine).done || load->acks != 0);
    struct counts counts = {.answers = machine->receiver.acks + machine->receiver.naks};
    for (uint32_t i = 0; i < load->senders; i++) {
        counts.packets += machine->nodes[i].packets;
        counts.resent += machine->nodes[i].resent;
        counts.pauses += machine->network.ports[i].counters.xoffs;
    }
    feroce_machine_close(machine);
    assert_string_equal(run->failure, "");
    counts.digest = run->digest;
    free(run);
    return counts;
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long bytes = ftell(file);
    assert_true(bytes > 0);
    rewind(file);
    char *text = calloc(1, (size_t)bytes + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), bytes);
    fclose(file);
    return text;
}

static uint64_t count_of(const char *text, const char *part)
{
    uint64_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

static char *trace_of(const char *end, const struct feroce_load *load, enum feroce_speed speed,
                      bool old, struct counts *counts)
{
    char path[64];
    snprintf(path, sizeof(path), "/tmp/nonic-XXXXXX%s", end);
    const int file = mkstemps(path, (int)strlen(end));
    assert_true(file >= 0);
    close(file);
    *counts = run_machine(path, load, speed, old);
    char *text = read_all(path);
    unlink(path);
    const struct counts unwatched = run_machine(NULL, load, speed, old);
    assert_true(unwatched.digest == counts->digest);
    return text;
}

/* Two boards that a switch pauses. */
static void test_pauses(void **state)
{
    (void)state;
    struct feroce_load load = feroce_load_of(65536, 30);
    struct counts counts;
    load.senders = 2;
    load.warm = 1;
    char *text = trace_of(".json", &load, FEROCE_10G, true, &counts);
    assert_true(counts.packets > 900 && counts.pauses > 100);
    assert_int_equal(count_of(text, "\"name\":\"data "), counts.packets);
    assert_int_equal(count_of(text, "\"name\":\"data, again "), 0);
    assert_int_equal(count_of(text, "\"name\":\"RTS "), 2);
    const uint64_t asked = count_of(text, "{\"asks for a pause\":1}");
    assert_int_equal(asked, counts.pauses);
    const uint64_t paused = count_of(text, "{\"paused\":1}");
    assert_true(paused > 0 && paused <= counts.pauses);
    assert_true(count_of(text, "\"name\":\"bytes to the receiver\"") > counts.pauses);
    free(text);
}

/* A packet is lost: a NAK, and packets that go again. */
static void test_resent(void **state)
{
    (void)state;
    struct feroce_load load = feroce_load_of(65536, 10);
    struct counts counts;
    load.warm = 1;
    load.lost_psn = 40;
    load.write = false;
    char *text = trace_of(".json", &load, FEROCE_100G, false, &counts);
    assert_true(counts.resent > 0);
    assert_int_equal(count_of(text, "\"name\":\"data, again "), counts.resent);
    assert_int_equal(count_of(text, "\"name\":\"data "), counts.packets - counts.resent);
    assert_int_equal(count_of(text, "\"name\":\"NAK "), 1);
    const uint64_t acks = count_of(text, "\"name\":\"ACK ");
    assert_true(acks >= 160 && acks < counts.answers);
    free(text);
}

/* All acknowledgements are lost: the queue pair ends in ERROR. A waveform has that, too. */
static void test_error(void **state)
{
    (void)state;
    struct feroce_load load = feroce_load_of(65536, 1000);
    struct counts counts;
    load.warm = 1;
    load.acks = 100;
    load.until_ps = UINT64_C(2) * 1000 * 1000 * 1000;
    char *text = trace_of(".vcd", &load, FEROCE_100G, false, &counts);
    assert_true(counts.resent > 0);
    assert_int_equal(count_of(text, "sERROR"), 1);
    assert_true(count_of(text, "sdata,_again") == counts.resent);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_resent),
        cmocka_unit_test(test_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
