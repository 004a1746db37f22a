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

#include "hardware/csrna/on_chip.h"
#include "hardware/csrna/qpc.h"
#include "hardware/csrna/qpc_requester.h"
#include "hardware/csrna/sq_table.h"

/* The widths that make up the source's 40 bytes. */
static const struct on_chip_widths usual = {
    .fifo_index = 8, .qpn = 24, .channel = 2, .index = 6, .count = 6};

/* CSR-42 */
static void test_source(void **state)
{
    (void)state;
    const struct on_chip_memory memory = on_chip_memory(&usual, 16, 300, QPC_BYTES, 131072);
    assert_int_equal(memory.sq_table_bytes, 131072 * 10);
    assert_int_equal(memory.cache_bytes, 300 * 256);
    assert_int_equal(memory.order_bytes, 640);
    assert_int_equal(memory.total_bytes, 131072 * 10 + 300 * 256 + 640); /* "1.4 MB" */
    for (uint32_t oocap = 1; oocap <= QPC_OOCAP_MAX; oocap++) {
        assert_int_equal(on_chip_memory(&usual, oocap, 1, QPC_BYTES, 1).order_bytes, 40 * oocap);
    }
}

/* CSR-42: three index FIFOs; six elements of {dma_posted, qpn, channel, index}; three records of
 * {is_vld, qpn, pnd_cnt, dma_rtn}. */
static void test_fields(void **state)
{
    (void)state;
    assert_int_equal(on_chip_order_bits(&usual),
                     3 * 8 + 6 * (1 + 24 + 2 + 6) + 3 * (1 + 24 + 6 + 1));
    assert_int_equal(on_chip_order_bytes(&usual), 40);
    struct on_chip_widths wide = usual;
    wide.index = 8; /* As wide as in the FIFO: 318 + 12 bits are 41.25 bytes. */
    assert_int_equal(on_chip_order_bytes(&wide), 42);
    const struct on_chip_memory memory = on_chip_memory(&usual, 1, 7, QPC_BYTES, 1000);
    assert_int_equal(memory.cache_bytes, 7 * sizeof(struct qpc));
    assert_int_equal(memory.sq_table_bytes, 1000 * sizeof(struct sq_entry));
}

/* The usual widths are enough for what they hold, with an oocap of 16; and our own fields. */
static void test_widths_suffice(void **state)
{
    (void)state;
    assert_true(QPC_QPN_LIMIT == 1u << usual.qpn);
    assert_true(QPC_CHANNELS <= 1u << usual.channel);
    assert_true(QPC_OOCAP_MAX <= 1u << usual.index);
    assert_true(QPC_CHANNELS * 16 < 1u << usual.count);
    assert_int_equal(sizeof(((struct qpc_requester *)0)->free[0]) * 8, usual.fifo_index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_widths_suffice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
