/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet that contradicts itself is refused with the right name, and no other is.
 * Method  Places of packets in messages are compared with a plain model that cuts the message into
 *         all its packets and looks for the one in question. Single contradictions of one good
 *         packet of each opcode are listed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "wire/block.h"

/* -- Judging ----------------------------------------------------------------------------------- */

/* A message of `bytes` cut into all its packets, in order: is this packet one of them? */
static bool model_fits(const struct block_packet *packet, uint32_t bytes, uint32_t mtu)
{
    uint32_t number = 0, left = bytes;
    for (;; number++) {
        const uint32_t carried = left < mtu ? left : mtu;
        left -= carried;
        if (number / 64 == packet->index && number % 64 == packet->position) {
            /* The block's last packet: go on until the block or the message ends. */
            uint32_t end = number, rest = left;
            while (rest > 0 && end % 64 != 63) {
                rest -= rest < mtu ? rest : mtu;
                end++;
            }
            return packet->last_position == end % 64 && packet->last_block == (rest == 0) &&
                   packet->payload_bytes == carried;
        }
        if (left == 0) {
            return false;
        }
    }
}

/* Every place and payload for messages around the ends of packets, blocks and nothing. */
static void test_places_against_model(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, 1, 2, 3, 4, 5, 126, 127, 128, 129, 130, 255, 256, 257};
    static const uint8_t positions[] = {0, 1, 2, 31, 62, 63};
    const uint32_t mtu = 2;
    uint32_t fits = 0;

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        for (uint32_t code = 0; code < 4u * 6 * 64 * 2 * 4; code++) {
            struct block_packet packet = {
                .opcode = code % 3 == 0 ? BLOCK_SEND : BLOCK_WRITE,
                .payload_bytes = code % 4,
                .last_block = code / 4 % 2,
                .last_position = code / 8 % 64,
                .position = positions[code / 512 % 6],
                .index = code / 3072,
                .message_bytes = lengths[i],
            };
            const bool expected = model_fits(&packet, lengths[i], mtu);
            assert_int_equal(block_judge(&packet, mtu) == BLOCK_CONSISTENT, expected);
            fits += expected;

            /* A READ asks for the block as a whole. */
            packet.opcode = BLOCK_READ;
            packet.wanted = 1;
            packet.payload_bytes = 0;
            const uint32_t at = packet.index * 128;
            struct block_packet first = packet;
            first.payload_bytes = lengths[i] <= at ? 0 : lengths[i] - at < 2 ? lengths[i] - at : 2;
            assert_int_equal(block_judge(&packet, mtu) == BLOCK_CONSISTENT,
                             packet.position == 0 && model_fits(&first, lengths[i], mtu));
        }
    }
    assert_in_range(fits, 60, 1000);
}

/* A message of any length up to 2^32 - 1, any of its packets; and the same with one wrong field. */
static void test_places_of_long_messages(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    for (int round = 0; round < 20000; round++) {
        const uint32_t mtu = 256u << prng_below(&prng, 5);
        const uint32_t bytes = (uint32_t)(prng_next(&prng) >> (32 + prng_below(&prng, 32)));
        const uint32_t packets = block_message_packets(bytes, mtu);
        const uint32_t number =
            prng_below(&prng, 2) ? packets - 1 : (uint32_t)prng_below(&prng, packets);
        const bool last = number == packets - 1;
        struct block_packet packet = {
            .opcode = BLOCK_SEND,
            .index = number / 64,
            .position = number % 64,
            .last_position = block_last_position(packets, number / 64),
            .last_block = number / 64 + 1 == block_message_blocks(packets),
            .message_bytes = bytes,
            .payload_bytes = last ? bytes - number * mtu : mtu,
        };
        assert_true(block_payload_offset(&packet, mtu) == (uint64_t)number * mtu);
        assert_int_equal(block_is_last(&packet), last);
        assert_int_equal(block_judge(&packet, mtu), BLOCK_CONSISTENT);

        struct block_packet wrong = packet;
        switch (prng_below(&prng, 5)) {
        case 0: wrong.payload_bytes ^= 1u << prng_below(&prng, 13); break;
        case 1: wrong.last_block = !wrong.last_block; break;
        case 2:
            wrong.last_position = (uint8_t)(wrong.last_position ^ 1u << prng_below(&prng, 6));
            break;
        case 3: wrong.index = packets / 64 + 1 + (uint32_t)(prng_next(&prng) >> 34); break;
        case 4: wrong.message_bytes += 64 * 4096 + (uint32_t)prng_below(&prng, mtu); break;
        }
        /* A longer message may have the same packet, if it is not the last one's block. */
        if (wrong.message_bytes > bytes && !packet.last_block) {
            continue;
        }
        assert_int_not_equal(block_judge(&wrong, mtu), BLOCK_CONSISTENT);
    }
}

/* A consistent packet of each opcode, at an MTU of 1024 bytes. */
static const struct block_packet good[] = {
    {.opcode = BLOCK_SEND,
     .index = 2,
     .position = 3,
     .last_position = 3,
     .last_block = true,
     .early = true,
     .has_immediate = true,
     .tag = 7,
     .message_bytes = 131 * 1024 + 3,
     .payload_bytes = 3},
    {.opcode = BLOCK_WRITE, .last_block = true, .message_bytes = 4, .payload_bytes = 4},
    {.opcode = BLOCK_READ,
     .index = 1,
     .last_position = 1,
     .last_block = true,
     .message_bytes = 65 * 1024 + 1,
     .wanted = 2},
    {.opcode = BLOCK_ATOMIC, .last_block = true, .atomic.kind = BLOCK_FETCH_ADD},
    {.opcode = BLOCK_DATA,
     .index = 1,
     .position = 1,
     .last_position = 1,
     .last_block = true,
     .payload_bytes = 2},
    {.opcode = BLOCK_ANSWER,
     .answer = {.base = 0xfffffff0,
                .record_count = 2,
                .records = {{0xfffffff0, 1, BLOCK_STATE_INCOMPLETE, 5},
                            {0xfffffff2, 0, BLOCK_STATE_RUN, 17}}}},
    {.opcode = BLOCK_PROBE, .number = 9, .path = 15},
    {.opcode = BLOCK_HELLO, .hello = {.mtu_code = 3, .paths = 1, .window = 64}},
    {.opcode = BLOCK_WELCOME, .hello = {.mtu_code = 3, .paths = 1, .window = 64}},
    {.opcode = BLOCK_CHALLENGE, .challenge = 1},
    {.opcode = BLOCK_RESPONSE, .challenge = UINT64_MAX},
};

/* The judgement of the opcode's good packet after a change. */
#define JUDGE(change, expected)                                                                    \
    do {                                                                                           \
        struct block_packet packet = good[opcode - BLOCK_OPCODE_FIRST];                            \
        change;                                                                                    \
        assert_int_equal(block_judge(&packet, 1024), (expected));                                  \
    } while (false)

/* EXA-72: each contradiction has its name. */
static void test_contradictions_of_requests(void **state)
{
    (void)state;
    uint8_t opcode = BLOCK_SEND;
    JUDGE(packet.position = 4, BLOCK_WRONG_POSITION);
    JUDGE(packet.last_position = 4, BLOCK_WRONG_LAST);
    JUDGE(packet.last_block = false, BLOCK_WRONG_LAST);
    JUDGE(packet.index = 3, BLOCK_WRONG_INDEX);
    JUDGE(packet.index = UINT32_MAX, BLOCK_WRONG_INDEX);
    JUDGE(packet.message_bytes = 128 * 1024, BLOCK_WRONG_INDEX);
    JUDGE(packet.payload_bytes = 4, BLOCK_WRONG_PAYLOAD);
    JUDGE(packet.position = 2, BLOCK_WRONG_PAYLOAD);
    JUDGE(packet.position = 2; packet.payload_bytes = 1024, BLOCK_WRONG_TAG);
    JUDGE(packet.position = 2; packet.payload_bytes = 1024;
          packet.has_immediate = false, BLOCK_WRONG_TAG);
    JUDGE(packet.position = 2; packet.payload_bytes = 1024; packet.has_immediate = false;
          packet.tag = 0, BLOCK_CONSISTENT);
    JUDGE(packet.has_immediate = false, BLOCK_WRONG_TAG);
    JUDGE(packet.invalidates = true, BLOCK_WRONG_TAG);
    JUDGE(packet.has_immediate = false; packet.invalidates = true, BLOCK_CONSISTENT);
    JUDGE(packet.tag = 0, BLOCK_CONSISTENT);
    JUDGE(packet.early = false, BLOCK_CONSISTENT);

    opcode = BLOCK_WRITE;
    JUDGE(packet.has_immediate = true, BLOCK_CONSISTENT);
    JUDGE(packet.invalidates = true, BLOCK_WRONG_TAG);
    JUDGE(packet.tag = 1, BLOCK_WRONG_TAG);
    JUDGE(packet.message_bytes = 0; packet.payload_bytes = 0, BLOCK_CONSISTENT);
    JUDGE(packet.message_bytes = 0, BLOCK_WRONG_PAYLOAD);
    JUDGE(packet.message_bytes = 1025, BLOCK_WRONG_LAST);

    opcode = BLOCK_READ;
    JUDGE(packet.position = 1, BLOCK_WRONG_POSITION);
    JUDGE(packet.early = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.has_immediate = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.invalidates = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.wanted = 0, BLOCK_WRONG_WANTED);
    JUDGE(packet.wanted = 4, BLOCK_WRONG_WANTED);
    JUDGE(packet.wanted = 3, BLOCK_CONSISTENT);
    JUDGE(packet.last_position = 2, BLOCK_WRONG_LAST);
    JUDGE(packet.index = 0; packet.last_position = 63; packet.last_block = false;
          packet.wanted = UINT64_MAX, BLOCK_CONSISTENT);

    opcode = BLOCK_ATOMIC;
    JUDGE(packet.index = 1, BLOCK_WRONG_INDEX);
    JUDGE(packet.position = 1, BLOCK_WRONG_POSITION);
    JUDGE(packet.last_position = 1, BLOCK_WRONG_LAST);
    JUDGE(packet.last_block = false, BLOCK_WRONG_LAST);
    JUDGE(packet.early = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.has_immediate = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.invalidates = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.atomic.kind = BLOCK_ATOMIC_WRITE, BLOCK_CONSISTENT);
    JUDGE(packet.atomic.kind = 3, BLOCK_WRONG_KIND);
    JUDGE(packet.atomic.kind = UINT32_MAX, BLOCK_WRONG_KIND);
}

/* EXA-72 */
static void test_contradictions_of_answers(void **state)
{
    (void)state;
    uint8_t opcode = BLOCK_DATA;
    JUDGE(packet.position = 2, BLOCK_WRONG_POSITION);
    JUDGE(packet.position = 0, BLOCK_WRONG_PAYLOAD);
    JUDGE(packet.position = 0; packet.payload_bytes = 1024, BLOCK_CONSISTENT);
    JUDGE(packet.payload_bytes = 1024, BLOCK_CONSISTENT);
    JUDGE(packet.payload_bytes = 0, BLOCK_WRONG_PAYLOAD);
    JUDGE(packet.last_position = 62; packet.last_block = false, BLOCK_WRONG_LAST);
    JUDGE(packet.last_block = false; packet.last_position = 63;
          packet.payload_bytes = 1024, BLOCK_CONSISTENT);
    JUDGE(packet.position = 0; packet.last_position = 0;
          packet.payload_bytes = 0, BLOCK_WRONG_PAYLOAD);
    JUDGE(packet.index = 0; packet.position = 0; packet.last_position = 0;
          packet.payload_bytes = 0, BLOCK_CONSISTENT);
    JUDGE(packet.early = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.has_immediate = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.invalidates = true, BLOCK_WRONG_FLAGS);

    opcode = BLOCK_PROBE;
    JUDGE(packet.index = 1, BLOCK_WRONG_INDEX);
    JUDGE(packet.position = 1, BLOCK_WRONG_POSITION);
    JUDGE(packet.last_position = 1, BLOCK_WRONG_LAST);
    JUDGE(packet.last_block = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.early = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.has_immediate = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.invalidates = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.resent = true, BLOCK_WRONG_FLAGS);
    JUDGE(packet.round = 255, BLOCK_CONSISTENT);

    for (opcode = BLOCK_HELLO; opcode <= BLOCK_WELCOME; opcode++) {
        JUDGE(packet.hello.mtu_code = 0, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.mtu_code = 1, BLOCK_CONSISTENT);
        JUDGE(packet.hello.mtu_code = 5, BLOCK_CONSISTENT);
        JUDGE(packet.hello.mtu_code = 6, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.paths = 0, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.paths = 16, BLOCK_CONSISTENT);
        JUDGE(packet.hello.paths = 17, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.window = 0,
              opcode == BLOCK_WELCOME ? BLOCK_CONSISTENT : BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.window = 1, BLOCK_CONSISTENT);
        JUDGE(packet.hello.window = 1025, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.read_queue = 0, BLOCK_CONSISTENT);
        JUDGE(packet.hello.mtu_code = 3; packet.hello.payload_bytes = 1024, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.mtu_code = 3; packet.hello.payload_bytes = 1088, BLOCK_CONSISTENT);
        JUDGE(packet.hello.mtu_code = 3; packet.hello.payload_bytes = 1100, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.mtu_code = 3; packet.hello.payload_bytes = 1984, BLOCK_CONSISTENT);
        JUDGE(packet.hello.mtu_code = 3; packet.hello.payload_bytes = 2048, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.mtu_code = 5; packet.hello.payload_bytes = 4160, BLOCK_WRONG_OFFER);
        JUDGE(packet.hello.mtu_code = 3; packet.hello.payload_bytes = 1088;
              packet.hello.gid_count = 1, BLOCK_WRONG_OFFER);
    }
}

/* EXA-72: records in BN order, inside the window that begins with base = 2^32 - 16. */
static void test_contradictions_of_records(void **state)
{
    (void)state;
    const uint8_t opcode = BLOCK_ANSWER;
    JUDGE(packet.answer.base++, BLOCK_WRONG_RECORD);
    JUDGE(packet.answer.base -= 1004, BLOCK_CONSISTENT);   /* The run ends with the window, */
    JUDGE(packet.answer.base -= 1006, BLOCK_WRONG_RECORD); /* or goes on behind it. */
    JUDGE(packet.answer.record_count = 0, BLOCK_CONSISTENT);
    JUDGE(packet.answer.records[1].number--, BLOCK_CONSISTENT);
    JUDGE(packet.answer.records[1].number -= 2, BLOCK_WRONG_RECORD);
    JUDGE(packet.answer.records[1].number -= 2; packet.answer.record_count = 1, BLOCK_CONSISTENT);
}

/* EXA-72: records do not overlap, and only a refused READ may lie before base. */
static void test_records(void **state)
{
    (void)state;
    struct block_packet answer = good[BLOCK_ANSWER - BLOCK_OPCODE_FIRST];
    struct block_record *first = &answer.answer.records[0], *second = first + 1;

    second->number = first->number;
    assert_int_equal(block_judge(&answer, 1024), BLOCK_WRONG_RECORD);
    second->number = first->number + 1;
    assert_int_equal(block_judge(&answer, 1024), BLOCK_CONSISTENT);
    first->state = BLOCK_STATE_RUN;
    first->bitmap = 2;
    assert_int_equal(block_judge(&answer, 1024), BLOCK_WRONG_RECORD);
    first->bitmap = 1;
    assert_int_equal(block_judge(&answer, 1024), BLOCK_CONSISTENT);
    first->bitmap = 0;
    assert_int_equal(block_judge(&answer, 1024), BLOCK_WRONG_RECORD);
    first->bitmap = (UINT64_C(1) << 32) + 1;
    assert_int_equal(block_judge(&answer, 1024), BLOCK_WRONG_RECORD);

    /* Only a refused READ may be named although base has passed it. */
    for (unsigned kind = 0; kind < BLOCK_STATE_COUNT; kind++) {
        *first = (struct block_record){.number = answer.answer.base - 1024, .state = (uint8_t)kind};
        first->bitmap = 1;
        const bool may = kind == BLOCK_STATE_REFUSED;
        assert_int_equal(block_judge(&answer, 1024), may ? BLOCK_CONSISTENT : BLOCK_WRONG_RECORD);
        first->number--;
        assert_int_equal(block_judge(&answer, 1024), BLOCK_WRONG_RECORD);
        *first = (struct block_record){
            .number = answer.answer.base + 1023, .state = (uint8_t)kind, .bitmap = 1};
        answer.answer.record_count = 1;
        assert_int_equal(block_judge(&answer, 1024), BLOCK_CONSISTENT);
        first->number++;
        assert_int_equal(block_judge(&answer, 1024), BLOCK_WRONG_RECORD);
        answer.answer.record_count = 2;
    }
}

/* -- Numbers ----------------------------------------------------------------------------------- */

/* BN and RN across their wrap. */
static void test_numbers(void **state)
{
    (void)state;
    static const uint32_t from[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    for (size_t i = 0; i < COUNT_OF(from); i++) {
        static const int32_t ways[] = {0, 1, 5, 1024, INT32_MAX, -1, -5, -1024, INT32_MIN};
        for (size_t j = 0; j < COUNT_OF(ways); j++) {
            const uint32_t to = (uint32_t)((int64_t)from[i] + ways[j]);
            assert_int_equal(block_number_distance(from[i], to), ways[j]);
            assert_int_equal(block_number_before(to, from[i]), ways[j] < 0);
        }
    }
    assert_true(block_positions(0) == 1);
    assert_true(block_positions(3) == 15);
    assert_true(block_positions(63) == UINT64_MAX);
    assert_int_equal(block_message_packets(0, 1024), 1);
    assert_int_equal(block_message_packets(UINT32_MAX, 256), 1 << 24);
    assert_int_equal(block_message_blocks(1 << 24), 1 << 18);
    assert_int_equal(block_last_position(1 << 24, (1 << 18) - 1), 63);
    assert_int_equal(block_last_position(65, 0), 63);
    assert_int_equal(block_last_position(65, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_against_model),
        cmocka_unit_test(test_places_of_long_messages),
        cmocka_unit_test(test_contradictions_of_requests),
        cmocka_unit_test(test_contradictions_of_answers),
        cmocka_unit_test(test_contradictions_of_records),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
