/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The watch over the order of packets sees a late packet: else EXA-63 shows nothing.
 * Method  Packets of two blocks by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lab/exanest/order.h"

static void note(struct exanest_order *order, uint32_t fpga, uint32_t tid, uint32_t sequence,
                 uint32_t line, bool first)
{
    const struct exanest_place place = {.x = 1, .y = 0, .z = 1, .fpga = (uint8_t)fpga};
    const struct exanest_header header = {.type = EXANEST_WRITE, .target = {.va = 256u * line}};
    const struct exanest_footer footer = {.source = exanest_coordinate(place),
                                          .tid = (uint16_t)tid,
                                          .sequence = (uint16_t)sequence,
                                          .first = first};
    exanest_order_note(order, &header, &footer);
}

/* EXA-63. */
static void test_order(void **state)
{
    (void)state;
    const uint8_t size[3] = {2, 1, 2};
    struct exanest_order order;
    exanest_order_open(&order, size);
    for (uint32_t line = 3; line < 64; line++) {
        note(&order, 3, 7, 1, line, line == 3);
        note(&order, 2, 7, 1, 63 - line, false); /* Backwards; its first one is not seen. */
    }
    assert_int_equal(order.packets, 122);
    assert_int_equal(order.late, 61);
    note(&order, 3, 7, 1, 63, false); /* Twice. */
    assert_int_equal(order.late, 62);
    note(&order, 3, 7, 2, 0, true); /* The next block of this TID, */
    note(&order, 3, 7, 2, 1, false);
    assert_int_equal(order.late, 62);
    note(&order, 3, 7, 1, 60, false); /* and a packet of the one before. */
    assert_int_equal(order.late, 63);
    exanest_order_close(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
