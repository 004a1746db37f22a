/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A program has its window of transfers under way, never more; it asks for a piece when the
 *         one before has come; and its calls and looks cost what they should.
 * Method  Programs of two FPGAs, watched after each event of the world.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/exanest/program.h"

enum {
    BYTES = 40000, /* 3 blocks. */
    COUNT = 40,
};

struct rig {
    struct sim sim;
    struct exanest_machine machine;
    struct exanest_program program;
    uint32_t most; /* Transfers under way. */
};

static struct rig *open_rig(const struct exanest_program_config *program)
{
    struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    config.process_bytes = exanest_program_memory(program->bytes);
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    sim_init(&rig->sim, 1);
    exanest_machine_open(&rig->machine, &config, &rig->sim);
    exanest_program_open(&rig->program, &rig->machine, program);
    return rig;
}

static void close_rig(struct rig *rig)
{
    exanest_machine_close(&rig->machine);
    free(rig);
}

static void run(struct rig *rig)
{
    const struct exanest_program *program = &rig->program;
    while (!exanest_program_over(program) && sim_step(&rig->sim)) {
        const uint32_t now = program->begun - program->ended;
        rig->most = now > rig->most ? now : rig->most;
    }
    assert_true(exanest_program_over(program));
    assert_int_equal(program->ended, program->config.count);
    assert_int_equal(program->failed, 0);
}

static void expect_window(bool writes, uint32_t window)
{
    struct exanest_program_config config = exanest_program_default(0, 1, writes, BYTES);
    config.count = COUNT;
    config.window = window;
    struct rig *rig = open_rig(&config);
    run(rig);
    assert_int_equal(rig->most, window < COUNT ? window : COUNT);
    assert_int_equal(rig->program.asked, COUNT);
    close_rig(rig);
}

static void test_windows(void **state)
{
    (void)state;
    expect_window(false, 1);
    expect_window(false, 3);
    expect_window(false, 33); /* One more than the owner has channels. */
    expect_window(false, 64);
    expect_window(true, 1);
    expect_window(true, 32);
}

/* A request for each block, when the last one has come. */
static void test_pieces(void **state)
{
    (void)state;
    struct exanest_program_config config = exanest_program_default(0, 1, false, BYTES);
    config.piece = EXANEST_BLOCK_BYTES_MAX;
    config.count = 2;
    struct rig *rig = open_rig(&config);
    uint8_t *source = exanest_machine_bytes(&rig->machine, 1, 0, exanest_program_source(), BYTES);
    for (uint32_t i = 0; i < BYTES; i++) {
        source[i] = (uint8_t)(i * 7 + i / 251);
    }
    const struct exanest_firmware *owner = &rig->machine.r5s[1].firmware;
    while (!exanest_program_over(&rig->program) && sim_step(&rig->sim)) {
        assert_true(owner->counters.reads_taken <= owner->counters.reads_done + 1);
    }
    assert_int_equal(rig->program.asked, 6);
    assert_int_equal(owner->counters.reads_taken, 6);
    assert_memory_equal(
        source, exanest_machine_bytes(&rig->machine, 0, 0, exanest_program_target(BYTES), BYTES),
        BYTES);
    close_rig(rig);
}

static uint64_t time_of(uint32_t call_ns, uint32_t poll_ns)
{
    struct exanest_program_config config = exanest_program_default(0, 1, false, 8);
    config.call_ns = call_ns;
    config.poll_ns = poll_ns;
    struct rig *rig = open_rig(&config);
    run(rig);
    const uint64_t took_ps = rig->program.sum_ps;
    assert_int_equal(rig->program.least_ps, took_ps);
    assert_int_equal(rig->program.most_ps, took_ps);
    assert_int_equal(rig->program.last_ps - rig->program.first_ps, took_ps);
    close_rig(rig);
    return took_ps;
}

/* Each of them is paid once; edges of the datapath's clock are 6.7 ns apart. */
static void test_costs(void **state)
{
    (void)state;
    const uint64_t usual_ps = time_of(EXANEST_CALL_NS, EXANEST_POLL_NS);
    const uint64_t late_ps = time_of(EXANEST_CALL_NS, EXANEST_POLL_NS + 1000);
    const uint64_t slow_ps = time_of(EXANEST_CALL_NS + 1000, EXANEST_POLL_NS);
    assert_int_equal(late_ps - usual_ps, 1000000);
    assert_in_range(slow_ps - usual_ps, 1000000 - 6667, 1000000 + 6667);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
