/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The configuration space has the values of TR376 3.1.2, and lets a host change the fields
 *         that it names.
 * Method  Every register against a list written from the text; all ones and all zeros written to
 *         every offset. Behaviour FNX-48.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/forth/config_space.h"

static uint32_t read(const struct forth_config_space *space, uint32_t offset)
{
    return forth_config_read(space, offset, 0, 0);
}

/* FNX-48 */
static void test_values_after_reset(void **state)
{
    (void)state;
    struct forth_config_space space;
    forth_config_init(&space);
    assert_int_equal(read(&space, 0x00), 0x17df1600);
    assert_int_equal(read(&space, 0x04) >> 21 & 1, 1); /* 66 MHz */
    assert_int_equal(read(&space, 0x04) >> 25 & 3, 2); /* DEVSEL slow */
    assert_int_equal(read(&space, 0x04) & 0xffff, 0);
    assert_int_equal(read(&space, 0x08), 0x02000017);
    assert_int_equal(read(&space, 0x0c), 0x2000);
    assert_int_equal(read(&space, 0x34), 0x48);
    assert_int_equal(read(&space, 0x3c), 0x100);
    assert_int_equal(read(&space, 0x48), 0x07);
    assert_int_equal(read(&space, 0x4c) >> 16 & 3, 3);
    assert_int_equal(read(&space, 0x4c) >> 21 & 3, 3);
    assert_int_equal(read(&space, 0x4c) >> 23 & 7, 0);
    assert_int_equal(read(&space, 0x4c) >> 26 & 7, 2);
    for (uint32_t offset = 0x50; offset < FORTH_CONFIG_BYTES; offset += 4) {
        assert_int_equal(read(&space, offset), 0);
    }
}

/* FNX-48: what can be set, and what stays whatever is written. */
static void test_hard_wired_bits(void **state)
{
    (void)state;
    static const struct {
        uint8_t offset;
        uint32_t settable;
    } expected[] = {{0x04, 0x0146}, {0x0c, 0xffff}, {0x10, 0xf8000000}, {0x14, 0xffff8000},
                    {0x3c, 0xff},   {0x40, 0x1},    {0x48, 0x7f0000}};
    for (uint32_t offset = 0; offset < FORTH_CONFIG_BYTES; offset += 4) {
        struct forth_config_space space;
        uint32_t settable = 0;
        for (size_t i = 0; i < COUNT_OF(expected); i++) {
            settable |= expected[i].offset == offset ? expected[i].settable : 0;
        }
        forth_config_init(&space);
        const uint32_t reset = read(&space, offset);
        forth_config_write(&space, offset, 0xffffffff, 0xf);
        assert_int_equal(read(&space, offset), reset | settable);
        forth_config_write(&space, offset, 0, 0xf);
        assert_int_equal(read(&space, offset), reset & ~settable);
    }
}

static void test_byte_enables(void **state)
{
    (void)state;
    struct forth_config_space space;
    forth_config_init(&space);
    forth_config_write(&space, FORTH_CONFIG_LATENCY, 0xfe80, 0x2);
    assert_int_equal(read(&space, FORTH_CONFIG_LATENCY), 0xfe00);
    assert_int_equal(forth_config_latency_timer(&space), 0xfe);
    forth_config_write(&space, FORTH_CONFIG_COMMAND, 0x6, 0x1);
    assert_true(forth_config_master_enabled(&space) && forth_config_memory_enabled(&space));
}

/* FNX-48: errors stay until 1 is written to them. */
static void test_status_is_cleared_by_1(void **state)
{
    (void)state;
    struct forth_config_space space;
    forth_config_init(&space);
    forth_config_raise_status(&space, FORTH_STATUS_GOT_MASTER_ABORT);
    forth_config_write(&space, FORTH_CONFIG_COMMAND, 0, 0xf);
    assert_true(read(&space, FORTH_CONFIG_COMMAND) & FORTH_STATUS_GOT_MASTER_ABORT);
    forth_config_write(&space, FORTH_CONFIG_COMMAND, FORTH_STATUS_GOT_MASTER_ABORT, 0xf);
    assert_false(read(&space, FORTH_CONFIG_COMMAND) & FORTH_STATUS_GOT_MASTER_ABORT);
}

static void test_interrupt_is_a_level(void **state)
{
    (void)state;
    struct forth_config_space space;
    forth_config_init(&space);
    forth_config_raise_interrupt(&space);
    assert_false(forth_config_interrupts(&space)); /* Not enabled. */
    forth_config_write(&space, FORTH_CONFIG_APPLICATION, 1, 0xf);
    assert_true(forth_config_interrupts(&space));
    forth_config_write(&space, FORTH_CONFIG_APPLICATION, 1, 0xf);
    assert_true(forth_config_interrupts(&space));
    forth_config_write(&space, FORTH_CONFIG_APPLICATION, 0x11, 0xf);
    assert_false(forth_config_interrupts(&space));
    /* The queue's pointers show, their low 7 bits. */
    assert_int_equal(forth_config_read(&space, FORTH_CONFIG_APPLICATION, 0x3ff, 0x181), 0x7f010001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_after_reset),   cmocka_unit_test(test_hard_wired_bits),
        cmocka_unit_test(test_byte_enables),         cmocka_unit_test(test_status_is_cleared_by_1),
        cmocka_unit_test(test_interrupt_is_a_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
