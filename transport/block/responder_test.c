/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A READ that waits for its turn may be asked for in pieces, and none of them counts as a
 *         copy of another.
 * Method  Requests of one READ at a responder, which keeps them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "transport/block/responder.h"

#define MTU      256
#define CONTEXTS 16
#define BASE     0xffffffffu

static enum block_arrived arrive(struct block_responder *responder, uint64_t wanted)
{
    const struct instant now = {1000000};
    const struct block_packet packet = {.opcode = BLOCK_READ,
                                        .number = BASE + 1, /* The block before it is missing. */
                                        .last_position = 3,
                                        .last_block = true,
                                        .message_bytes = 4 * MTU,
                                        .wanted = wanted};
    const struct block_case it = block_responder_judge(responder, &packet);
    if (it.arrived == BLOCK_ARRIVED_NEW) {
        block_responder_keep(responder, block_responder_context(responder, &packet, now), &packet);
    }
    return it.arrived;
}

/* EXA-84 */
static void test_pieces_of_a_read(void **state)
{
    (void)state;
    struct block_contexts contexts;
    struct block_hold hold;
    struct block_responder responder;
    const size_t bytes = block_contexts_bytes(CONTEXTS);
    void *memory = memset(aligned_alloc(64, bytes), 0, bytes);
    block_contexts_init(&contexts, CONTEXTS, memory);
    block_hold_init(&hold, 0, MTU, memory);
    const struct block_responder_config config = {
        .window = 64, .mtu_bytes = MTU, .first_number = BASE};
    block_responder_init(&responder, &config, &contexts, &hold);
    assert_int_equal(arrive(&responder, 0x3), BLOCK_ARRIVED_NEW);
    assert_int_equal(arrive(&responder, 0x3), BLOCK_ARRIVED_DUPLICATE);
    assert_int_equal(arrive(&responder, 0x6), BLOCK_ARRIVED_NEW);
    assert_int_equal(arrive(&responder, 0x1), BLOCK_ARRIVED_DUPLICATE);
    assert_int_equal(arrive(&responder, 0x8), BLOCK_ARRIVED_NEW);
    assert_int_equal(arrive(&responder, 0xf), BLOCK_ARRIVED_DUPLICATE);
    block_responder_withdraw(&responder);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_a_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
