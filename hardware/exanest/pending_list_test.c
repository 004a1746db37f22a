/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Descriptors are written and read as the slave's two state machines say, by stores of any
 *         width; W3's upper half starts a transaction, and nothing else does.
 * Method  Made cases; random stores and loads beside a plain memory of bytes. Behaviours EXA-05,
 *         EXA-07, EXA-08, EXA-09, EXA-10, EXA-11, EXA-13, EXA-14.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/pending_list.h"

#define W3_UPPER 0x880003ffu /* Bits that software can write: DB, notify, dependency. */

static struct exanest_pending_list *list_of(uint32_t ports)
{
    struct exanest_pending_list *list = calloc(1, sizeof(*list));
    exanest_pending_init(list, &(struct exanest_pending_config){.ports = ports});
    return list;
}

/* One whole store; its effect, and the answer. */
static struct exanest_pending_effect store(struct exanest_pending_list *list, uint32_t address,
                                           struct exanest_word data, uint16_t strobe,
                                           enum exanest_axi_response *response)
{
    uint8_t id;
    assert_true(exanest_pending_write_address_ready(list));
    exanest_pending_write_address(list, address, 9, 1);
    exanest_pending_step(list);
    assert_true(exanest_pending_write_data_ready(list, true, 0));
    const struct exanest_pending_effect effect = exanest_pending_write_data(list, data, strobe);
    exanest_pending_step(list);
    assert_true(exanest_pending_next_write_answer(list, &id, response));
    assert_int_equal(id, 9);
    exanest_pending_step(list);
    return effect;
}

static struct exanest_word load(struct exanest_pending_list *list, uint32_t address,
                                enum exanest_axi_response response)
{
    struct exanest_read_beat beat;
    assert_true(exanest_pending_read_address_ready(list));
    exanest_pending_read_address(list, address, 5, 1);
    exanest_pending_step(list);
    assert_false(exanest_pending_next_read_beat(list, &beat));
    exanest_pending_step(list);
    assert_true(exanest_pending_next_read_beat(list, &beat));
    assert_true(beat.axi_id == 5 && beat.last && beat.response == response);
    exanest_pending_step(list);
    return beat.word;
}

/* EXA-07, EXA-08, EXA-09, EXA-11: against a memory of lanes, in which W3 has bits of its own. */
static void test_random_stores(void **state)
{
    (void)state;
    struct exanest_pending_list *list = list_of(1);
    static uint32_t model[EXANEST_TIDS][8];
    struct prng prng;
    prng_init(&prng, 1);
    static const uint16_t strobes[] = {0xffff, 0x00ff, 0xff00, 0x000f, 0x00f0, 0x0f00, 0xf000};
    for (int round = 0; round < 200000; round++) {
        const uint32_t tid = (uint32_t)prng_below(&prng, EXANEST_TIDS);
        const uint32_t bank = (uint32_t)prng_below(&prng, 2);
        const uint16_t strobe = strobes[prng_below(&prng, COUNT_OF(strobes))];
        const struct exanest_word data = {prng_next(&prng), prng_next(&prng)};
        uint32_t lanes[4];
        memcpy(lanes, &data, sizeof(lanes));
        for (uint32_t lane = 0; lane < 4; lane++) {
            if (strobe >> 4 * lane & 1) {
                const bool upper = bank == 1 && lane == 1;
                model[tid][4 * bank + lane] = upper ? lanes[lane] & W3_UPPER : lanes[lane];
            }
        }
        enum exanest_axi_response response;
        const struct exanest_pending_effect effect = store(
            list, 32 * tid + 16 * bank + (uint32_t)prng_below(&prng, 16), data, strobe, &response);
        const bool triggers = bank == 1 && strobe & 0xf0;
        const bool waits = data.low >> 63;
        assert_int_equal(response, EXANEST_AXI_OKAY);
        assert_int_equal(effect.event, !triggers ? EXANEST_PENDING_NOTHING
                                       : waits   ? EXANEST_PENDING_RENEWED
                                                 : EXANEST_PENDING_ENQUEUE);
        assert_true(!triggers || effect.tid == tid);
        /* The scheduler's port, in the same cycles, of this or another transaction. */
        const uint32_t other = prng_below(&prng, 2) ? tid : (uint32_t)prng_below(&prng, 1024);
        const uint32_t sent = (uint32_t)prng_below(&prng, 16385);
        const uint32_t done = (uint32_t)prng_below(&prng, 2), error = !done;
        exanest_pending_publish(list, other, sent, done, error);
        model[other][5] = (model[other][5] & W3_UPPER) | sent << 10 | done << 25 | error << 28;
        const uint32_t at = (uint32_t)prng_below(&prng, 2048);
        const struct exanest_word got = load(list, 16 * at, EXANEST_AXI_OKAY);
        assert_memory_equal(&got, &model[at / 2][4 * (at % 2)], sizeof(got));
    }
    assert_memory_equal(list->words, model, sizeof(model));
    free(list);
}

/* EXA-05, EXA-08, EXA-13: the four words of a descriptor; a new W3 clears the published fields. */
static void test_descriptor(void **state)
{
    (void)state;
    struct exanest_pending_list *list = list_of(1);
    const struct exanest_descriptor written = {.source = 0x123456789abcdef0,
                                               .target = {.coordinate = 5, .va = 0x3ffffffffff},
                                               .notify = true,
                                               .successor = 1023,
                                               .chained = true,
                                               .bytes = 16384,
                                               .pdid = 0xffff,
                                               .sequence = 0x3fff,
                                               .path = 31};
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    exanest_descriptor_encode(&written, words);
    uint32_t enqueued = 0;
    static const uint32_t order[] = {3, 0, 1, 2};
    for (uint32_t i = 0; i < 4; i++) {
        enum exanest_axi_response response;
        const uint32_t at = order[i];
        const struct exanest_word data = {words[at], words[at]};
        enqueued +=
            store(list, 32 * 77 + 8 * at, data, at % 2 ? 0xff00 : 0x00ff, &response).event ==
            EXANEST_PENDING_ENQUEUE;
        assert_int_equal(enqueued, i == 3);
    }
    assert_memory_equal(list->words[77], words, sizeof(words));
    exanest_pending_publish(list, 77, 16384, true, true);
    struct exanest_descriptor got = exanest_pending_descriptor(list, 77);
    assert_true(got.sent == 16384 && got.done && got.error && got.successor == 1023 && got.notify);
    enum exanest_axi_response response;
    store(list, 32 * 77 + 16, (struct exanest_word){words[2] & UINT32_MAX, 0}, 0x000f, &response);
    got = exanest_pending_descriptor(list, 77);
    assert_true(got.sent == 16384 && got.done && got.error);
    store(list, 32 * 77 + 16, (struct exanest_word){UINT64_MAX, 0}, 0x00f0, &response);
    got = exanest_pending_descriptor(list, 77);
    assert_true(got.sent == 0 && !got.done && !got.error && !got.acked && got.waits);
    assert_int_equal(got.sequence, 0x3fff);
    assert_int_equal(got.path, 31);
    free(list);
}

/* EXA-14: AWREADY, WREADY, BVALID of each state; EXA-10: WREADY waits for the FIFO. */
static void test_write_states(void **state)
{
    (void)state;
    struct exanest_pending_list *list = list_of(2);
    uint8_t id;
    enum exanest_axi_response response;
    for (uint32_t control = 0; control < 2; control++) {
        const uint32_t address = control ? EXANEST_CONTROL_AT + 0x4000 + 16 * 9 : 32 * 9 + 16;
        assert_int_equal(list->write_state, EXANEST_WRITE_IDLE);
        assert_true(exanest_pending_idle(list));
        assert_true(exanest_pending_write_address_ready(list));
        assert_false(exanest_pending_write_data_ready(list, true, 0));
        assert_false(exanest_pending_next_write_answer(list, &id, &response));
        exanest_pending_write_address(list, address, 3, 1);
        assert_false(exanest_pending_write_address_ready(list));
        assert_false(exanest_pending_write_data_ready(list, true, 0));
        exanest_pending_step(list);
        assert_int_equal(list->write_state, control ? EXANEST_WRITE_CONTROL : EXANEST_WRITE_DATA);
        for (int i = 0; i < 3; i++) {
            assert_false(exanest_pending_write_address_ready(list));
            assert_int_equal(exanest_pending_write_data_ready(list, false, 1), control);
            assert_int_equal(exanest_pending_write_data_ready(list, true, 2), !control);
            assert_false(exanest_pending_next_write_answer(list, &id, &response));
            exanest_pending_step(list);
        }
        const struct exanest_pending_effect effect =
            exanest_pending_write_data(list, (struct exanest_word){5, 6}, 0x00ff);
        assert_int_equal(effect.event, control ? EXANEST_PENDING_CONTROL : EXANEST_PENDING_ENQUEUE);
        assert_int_equal(effect.tid, 9);
        assert_true(!control || (effect.port == 1 && effect.data == 5));
        assert_false(exanest_pending_write_data_ready(list, true, 0));
        assert_false(exanest_pending_next_write_answer(list, &id, &response));
        exanest_pending_step(list);
        assert_int_equal(list->write_state, EXANEST_WRITE_ACK);
        exanest_pending_step(list); /* BREADY is not there yet. */
        assert_false(exanest_pending_write_address_ready(list));
        assert_false(exanest_pending_write_data_ready(list, true, 0));
        assert_true(exanest_pending_next_write_answer(list, &id, &response));
        assert_true(id == 3 && response == EXANEST_AXI_OKAY);
        assert_false(exanest_pending_next_write_answer(list, &id, &response));
        exanest_pending_step(list);
    }
    free(list);
}

/* EXA-14: ARREADY and RVALID of each state; a write goes first. */
static void test_read_states(void **state)
{
    (void)state;
    struct exanest_pending_list *list = list_of(1);
    struct exanest_read_beat beat;
    uint8_t id;
    enum exanest_axi_response response;
    list->words[4][0] = 1;
    exanest_pending_read_address(list, 32 * 4, 2, 1);
    exanest_pending_write_address(list, 32 * 4, 3, 1);
    exanest_pending_step(list);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(list->read_state, EXANEST_READ_WAIT);
        assert_false(exanest_pending_read_address_ready(list));
        assert_false(exanest_pending_next_read_beat(list, &beat));
        exanest_pending_step(list);
    }
    exanest_pending_write_data(list, (struct exanest_word){2, 0}, 0xffff);
    exanest_pending_step(list);
    assert_int_equal(list->read_state, EXANEST_READ_WAIT);
    assert_true(exanest_pending_next_write_answer(list, &id, &response));
    exanest_pending_step(list);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(list->read_state, EXANEST_READ_READY);
        assert_false(exanest_pending_read_address_ready(list));
        exanest_pending_step(list);
    }
    assert_true(exanest_pending_next_read_beat(list, &beat));
    assert_true(beat.word.low == 2); /* The words that the write left. */
    exanest_pending_step(list);
    assert_true(exanest_pending_read_address_ready(list) && exanest_pending_idle(list));
    free(list);
}

/* EXA-07: bursts are taken whole, do nothing, and are answered with an error. */
static void test_bursts(void **state)
{
    (void)state;
    struct exanest_pending_list *list = list_of(1);
    uint8_t id;
    enum exanest_axi_response response;
    exanest_pending_write_address(list, 16, 1, 3);
    for (int i = 0; i < 3; i++) {
        exanest_pending_step(list);
        assert_true(exanest_pending_write_data_ready(list, true, 0));
        const struct exanest_pending_effect effect =
            exanest_pending_write_data(list, (struct exanest_word){1, 1}, 0xffff);
        assert_int_equal(effect.event, EXANEST_PENDING_NOTHING);
    }
    exanest_pending_step(list);
    assert_true(exanest_pending_next_write_answer(list, &id, &response));
    assert_int_equal(response, EXANEST_AXI_SLAVE_ERROR);
    exanest_pending_step(list);
    assert_true(list->words[0][2] == 0);
    exanest_pending_read_address(list, 0, 1, 2);
    exanest_pending_step(list);
    exanest_pending_step(list);
    for (int i = 0; i < 2; i++) {
        struct exanest_read_beat beat;
        assert_true(exanest_pending_next_read_beat(list, &beat));
        assert_int_equal(beat.response, EXANEST_AXI_SLAVE_ERROR);
        assert_int_equal(beat.last, i == 1);
        exanest_pending_step(list);
    }
    assert_true(exanest_pending_read_address_ready(list));
    assert_int_equal(list->counters.bursts, 2);
    free(list);
}

/* Accesses to no descriptor, and to parts of lanes: an error, and nothing has changed. */
static void test_refused(void **state)
{
    (void)state;
    struct exanest_pending_list *list = list_of(2);
    const struct exanest_word ones = {UINT64_MAX, UINT64_MAX};
    static const struct {
        uint32_t address;
        uint16_t strobe;
    } wrong[] = {{0x10, 0x0001},   {0x10, 0x0ff7},   {0x10, 0x8000},    {0x8000, 0xffff},
                 {0x8000, 0x000f}, {0x8000, 0x0ff0}, {0x10000, 0xffff}, {0xfffffff0, 0x00ff}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        enum exanest_axi_response response;
        const struct exanest_pending_effect effect =
            store(list, wrong[i].address, ones, wrong[i].strobe, &response);
        assert_int_equal(response, EXANEST_AXI_SLAVE_ERROR);
        assert_int_equal(effect.event, EXANEST_PENDING_NOTHING);
    }
    assert_int_equal(list->counters.wrong_strobes, 6);
    assert_int_equal(list->counters.wrong_places, 2);
    for (uint32_t i = 0; i < EXANEST_TIDS; i++) {
        assert_true(
            (list->words[i][0] | list->words[i][1] | list->words[i][2] | list->words[i][3]) == 0);
    }
    const struct exanest_word got = load(list, 0x8000, EXANEST_AXI_SLAVE_ERROR);
    assert_true(got.low == 0 && got.high == 0);
    free(list);
}

/* The two strides of control packets: which port and transaction an address means. */
static void test_control_addresses(void **state)
{
    (void)state;
    for (uint32_t bytes = 16; bytes <= 32; bytes *= 2) {
        struct exanest_pending_list *list = calloc(1, sizeof(*list));
        exanest_pending_init(list,
                             &(struct exanest_pending_config){.ports = 32, .control_bytes = bytes});
        for (uint32_t port = 0; port < 32; port += 31) {
            for (uint32_t tid = 0; tid < EXANEST_TIDS; tid += 341) {
                enum exanest_axi_response response;
                const uint32_t at = 0x8000 + (port * 1024 + tid) * bytes;
                const struct exanest_pending_effect effect =
                    store(list, at + 8, (struct exanest_word){0, tid}, 0xff00, &response);
                assert_int_equal(effect.event, EXANEST_PENDING_CONTROL);
                assert_int_equal(effect.port, port);
                assert_int_equal(effect.tid, tid);
                assert_int_equal(effect.data, tid);
            }
        }
        free(list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_stores),
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_write_states),
        cmocka_unit_test(test_read_states),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_control_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
