/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Counters stand where registers.h says, count as wide as it says, and clear as it says.
 * Method  Every counter of the table by name; the control register's commands; the cumulative timer
 *         by a script. Behaviours FNX-50, FNX-51.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "hardware/forth/registers.h"

static uint32_t read(struct forth_registers *registers, uint32_t offset)
{
    return forth_registers_read(registers, offset, 0, 0);
}

static void write(struct forth_registers *registers, uint32_t offset, uint32_t value)
{
    assert_int_equal(forth_registers_write(registers, offset, value), FORTH_COMMAND_NONE);
}

/* Each at a place of its own, presettable where it is the host's, wrapping at its width. */
static void test_every_counter(void **state)
{
    (void)state;
    for (int i = 0; i < FORTH_COUNTER_COUNT; i++) {
        const enum forth_counter counter = (enum forth_counter)i;
        const uint32_t offset = forth_counter_offset(counter);
        struct forth_registers registers;
        forth_registers_init(&registers);
        forth_count(&registers, counter, 7);
        for (int other = 0; other < FORTH_COUNTER_COUNT; other++) {
            if (other != i) {
                assert_int_equal(read(&registers, forth_counter_offset((enum forth_counter)other)),
                                 0);
            }
        }
        assert_int_equal(read(&registers, offset), 7);
        const bool narrow = strcmp(forth_counter_name(counter), "body_crc_errors") == 0 ||
                            strcmp(forth_counter_name(counter), "header_alignment_errors") == 0;
        if (offset < 0x80) {
            write(&registers, offset, 0xffffffff);
            assert_int_equal(read(&registers, offset), narrow ? 0xffff : 0xffffffff);
            forth_count(&registers, counter, 3);
            assert_int_equal(read(&registers, offset), 2);
        }
    }
}

/* FNX-50: reading clears one, a store to 0x80 all nineteen, and none of the host's. */
static void test_network_counters_clear(void **state)
{
    (void)state;
    struct forth_registers registers;
    int count = 0;
    forth_registers_init(&registers);
    for (int i = 0; i < FORTH_COUNTER_COUNT; i++) {
        forth_count(&registers, (enum forth_counter)i, 5);
    }
    assert_int_equal(read(&registers, 0xa8), 5);
    assert_int_equal(read(&registers, 0xa8), 0);
    write(&registers, 0x80, 0x1234);
    for (int i = 0; i < FORTH_COUNTER_COUNT; i++) {
        const uint32_t offset = forth_counter_offset((enum forth_counter)i);
        count += offset >= 0x80;
        assert_int_equal(read(&registers, offset), offset >= 0x80 ? 0 : 5);
    }
    assert_int_equal(count, 19);
}

static void test_control(void **state)
{
    (void)state;
    struct forth_registers registers;
    forth_registers_init(&registers);
    assert_false(forth_registers_initiator_enabled(&registers));
    assert_int_equal(forth_registers_write(&registers, 0x00, 1u << 24 | 1u << 4 | 1),
                     FORTH_COMMAND_RESET_QUEUE | FORTH_COMMAND_SOFTWARE_RESET);
    assert_true(forth_registers_initiator_enabled(&registers));
    assert_int_equal(read(&registers, 0x00), 1); /* Commands do not stay. */
    write(&registers, 0x00, 3u << 30);
    assert_true(forth_registers_loops_back(&registers));
    write(&registers, 0x00, 1u << 30); /* Not supported: no loop-back. */
    assert_false(forth_registers_loops_back(&registers));
    assert_int_equal(forth_registers_read(&registers, 0x04, 0x7ff, 0x3ff), 0x07ff03ff);
    write(&registers, 0x08, 0x11111111);
    write(&registers, 0x0c, 0x22222222);
    write(&registers, 0x10, 0x33333333);
    write(&registers, 0x14, 0x44444444);
    assert_true(registers.remote_notification == 0x2222222211111111);
    assert_true(registers.local_notification == 0x4444444433333333);
    assert_int_equal(read(&registers, 0xf0), 0); /* Nothing there. */
}

/* FNX-51: armed by a write, started by the first request, read as of the last completion. */
static void test_cumulative_timer(void **state)
{
    (void)state;
    struct forth_registers registers;
    forth_registers_init(&registers);
    forth_timer_request(&registers, 10);
    forth_timer_completed(&registers, 20);
    assert_int_equal(read(&registers, FORTH_REGISTER_TIMER), 0); /* Never armed. */
    write(&registers, FORTH_REGISTER_TIMER, 0);
    forth_timer_completed(&registers, 50);
    assert_int_equal(read(&registers, FORTH_REGISTER_TIMER), 0); /* No request yet. */
    forth_timer_request(&registers, 100);
    forth_timer_request(&registers, 150); /* Runs already. */
    assert_int_equal(read(&registers, FORTH_REGISTER_TIMER), 0);
    forth_timer_completed(&registers, 180);
    assert_int_equal(read(&registers, FORTH_REGISTER_TIMER), 80);
    forth_timer_completed(&registers, 300);
    assert_int_equal(read(&registers, FORTH_REGISTER_TIMER), 200);
    write(&registers, FORTH_REGISTER_TIMER, 1000); /* Counts on from there. */
    forth_timer_request(&registers, 400);
    forth_timer_completed(&registers, 450);
    assert_int_equal(read(&registers, FORTH_REGISTER_TIMER), 1050);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_counter),
        cmocka_unit_test(test_network_counters_clear),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_cumulative_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
