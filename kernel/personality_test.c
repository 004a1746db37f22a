/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A port's counters by the driver's names have all that is counted here under other names:
 *         every reason to drop a packet is in rx_drops, and everything of SRD is somewhere
 *         (SRD-11).
 * Method  Each counter of the NIC is looked for in the rows of an EFA device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kernel/personality.h"
#include "world/world.h"

static enum live_personality shown;

/* The world's. */
enum live_personality live_personality(void)
{
    return shown;
}

static uint32_t rows_of(enum nic_counter counter, bool *drops)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < counters_described(); i++) {
        const struct named_counter row = counter_described(i);
        if (row.first <= counter && counter <= row.last) {
            found++;
            *drops = strcmp(row.name, "rx_drops") == 0;
        }
    }
    return found;
}

static void test_efa(void **state)
{
    (void)state;
    /* Beside those of the driver: packets, failed SENDs, SENDs of SRD alone, and further ways. */
    static const char *const elsewhere[] = {"srd_requests", "srd_send_wr_err", "srd_send_wrs",
                                            "srd_recv_wrs", "srd_other_routes"};
    shown = LIVE_EFA;
    for (enum nic_counter i = 0; i < COUNTER_COUNT; i++) {
        const char *name = nic_counter_name(i);
        bool drops = false, known = false;
        const uint32_t rows = rows_of(i, &drops);
        for (size_t k = 0; k < sizeof(elsewhere) / sizeof(elsewhere[0]); k++) {
            known |= strcmp(name, elsewhere[k]) == 0;
        }
        assert_true(rows <= 1);
        assert_int_equal(drops, strncmp(name, "drop_", 5) == 0);
        if (strncmp(name, "srd_", 4) == 0) {
            assert_int_equal(rows, !known);
        }
    }
}

static void test_roce(void **state)
{
    (void)state;
    shown = LIVE_ROCE;
    assert_int_equal(counters_described(), COUNTER_COUNT);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        bool drops;
        assert_string_equal(counter_described(i).name, nic_counter_name((enum nic_counter)i));
        assert_int_equal(rows_of((enum nic_counter)i, &drops), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_efa),
        cmocka_unit_test(test_roce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
