/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The memory we report is the source's, and that of the things we model. Behaviour CSR-42.
 * Method  Its formulas in numbers, and the sizes of our structures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nic/csrna/on_chip.h"
#include "nic/csrna/qpc.h"
#include "nic/csrna/sq_table.h"

/* CSR-42 */
static void test_source(void **state)
{
    (void)state;
    const struct on_chip_memory memory = on_chip_memory(16, 300, 131072);
    assert_int_equal(memory.sq_table_bytes, 131072 * 10);
    assert_int_equal(memory.cache_bytes, 300 * 256);
    assert_int_equal(memory.order_bytes, 640);
    assert_int_equal(memory.total_bytes, 131072 * 10 + 300 * 256 + 640); /* "1.4 MB" */
    for (uint32_t oocap = 1; oocap <= QPC_OOCAP_MAX; oocap++) {
        assert_int_equal(on_chip_memory(oocap, 1, 1).order_bytes, 40 * oocap);
    }
}

/* CSR-42: three index FIFOs of 8 bits; six elements of {dma_posted, qpn, channel, index}; three
 * records of {is_vld, qpn, pnd_cnt, dma_rtn}. */
static void test_fields(void **state)
{
    (void)state;
    assert_int_equal(on_chip_order_bits(), 3 * 8 + 6 * (1 + 24 + 2 + 6) + 3 * (1 + 24 + 6 + 1));
    assert_int_equal(on_chip_order_bytes(), 40);
    const struct on_chip_memory memory = on_chip_memory(1, 7, 1000);
    assert_int_equal(memory.cache_bytes, 7 * sizeof(struct qpc));
    assert_int_equal(memory.sq_table_bytes, 1000 * sizeof(struct sq_entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
