/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Held payloads come out as they went in, in the order of their positions; a slot is free
 *         when it was released, and not before; a full pool says so.
 * Method  Random calls for several blocks against plain arrays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "transport/block/hold.h"

enum {
    BLOCKS = 3,
    POSITIONS = 64,
    MTU = 256,
};

struct model {
    struct prng prng;
    struct block_hold hold;
    void *memory;
    uint32_t rings[BLOCKS];
    bool there[BLOCKS][POSITIONS];
    uint32_t used, slots;
};

static uint32_t draw(struct model *model, uint32_t below)
{
    return (uint32_t)(prng_next(&model->prng) % below);
}

static uint32_t payload_of(uint32_t block, uint32_t position, uint8_t payload[MTU])
{
    memset(payload, (int)(block * POSITIONS + position), MTU);
    return position * 4;
}

static void add(struct model *model, uint32_t block)
{
    const uint8_t position = (uint8_t)draw(model, POSITIONS);
    uint8_t payload[MTU];
    const uint32_t bytes = payload_of(block, position, payload);
    if (model->there[block][position]) {
        return;
    }
    const bool added = block_hold_add(&model->hold, &model->rings[block], position, payload, bytes);
    assert_true(added == (model->used < model->slots));
    model->there[block][position] = added;
    model->used += added;
}

static void take(struct model *model, uint32_t block)
{
    uint32_t position = 0;
    while (position < POSITIONS && !model->there[block][position]) {
        position++;
    }
    assert_true((position == POSITIONS) == (model->rings[block] == BLOCK_HOLD_NONE));
    if (position == POSITIONS) {
        return;
    }
    const uint32_t slot = block_hold_first(&model->hold, model->rings[block]);
    uint8_t payload[MTU];
    const uint32_t bytes = payload_of(block, position, payload);
    assert_int_equal(block_hold_position(&model->hold, slot), position);
    assert_int_equal(block_hold_length(&model->hold, slot), bytes);
    assert_memory_equal(block_hold_payload(&model->hold, slot), payload, bytes);
    assert_int_equal(block_hold_detach(&model->hold, &model->rings[block]), slot);
    assert_int_equal(model->hold.used, model->used);
    block_hold_release(&model->hold, slot);
    model->there[block][position] = false;
    model->used--;
}

/* EXA-95 */
static void payloads_come_out_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct model model = {.slots = seed % 9 == 8 ? 100 : (uint32_t)(seed % 9)};
        prng_init(&model.prng, seed);
        const size_t bytes = block_hold_bytes(model.slots, MTU);
        model.memory = calloc(1, bytes + 64);
        block_hold_init(&model.hold, model.slots, MTU, model.memory);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            model.rings[i] = BLOCK_HOLD_NONE;
        }
        for (uint32_t i = 0; i < 300; i++) {
            const uint32_t block = draw(&model, BLOCKS);
            if (draw(&model, 5) < 3) {
                add(&model, block);
            } else {
                take(&model, block);
            }
            block_hold_check(&model.hold);
            assert_int_equal(model.hold.used, model.used);
        }
        for (uint32_t i = 0; i < BLOCKS; i++) {
            block_hold_drop(&model.hold, &model.rings[i]);
        }
        assert_int_equal(model.hold.used, 0);
        block_hold_check(&model.hold);
        free(model.memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_come_out_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
