/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The board's packets and its generator's data are those of the RTL.
 * Method  Messages of all lengths at each PMTU, decoded by wire/roce.h.
 *         Behaviours FER-36, FER-37, FER-38, FER-39, FER-40, FER-48, FER-49, FER-50, FER-51,
 *         FER-64, FER-81, FER-94, FER-95, FER-96, FER-97, FER-148.
 */
#include "transport/feroce/generator.h"
#include "transport/feroce/test_board.h"

#define CYCLE_FS UINT64_C(3103030)

/* Stores a message of the pattern and says how many packets it has. */
static uint32_t store_message(struct feroce_board *board, uint32_t index,
                              const struct feroce_message *message, uint32_t word)
{
    static uint8_t payload[4096];
    const uint32_t pmtu = board->config.window.pmtu;
    uint32_t packets = 0;
    for (uint32_t done = 0; done < message->length; packets++) {
        const uint32_t rest = message->length - done, bytes = rest < pmtu ? rest : pmtu;
        feroce_pattern(word + done / 4, payload, bytes);
        done += bytes;
        assert_int_equal(feroce_board_store(board, index, message, payload, bytes,
                                            done == message->length, test_at(0)),
                         FEROCE_STORED);
    }
    return packets;
}

static uint8_t expected_opcode(bool write, bool immediate, uint32_t at, uint32_t packets)
{
    /* IBTA's numbers, not wire/roce.h's names. */
    const uint8_t base = write ? 0x06 : 0x00;
    if (packets == 1) {
        return (uint8_t)(base + 4 + immediate);
    }
    return (uint8_t)(base + (at == 0 ? 0 : at + 1 < packets ? 1 : 2 + immediate));
}

/* One packet of a message, judged. */
static void judge_packet(struct feroce_board *board, const struct feroce_message *message,
                         uint32_t at, uint32_t packets, uint32_t psn)
{
    const uint32_t pmtu = board->config.window.pmtu;
    const bool is_old = board->config.stack == FEROCE_STACK_2024;
    struct feroce_packet packet;
    struct roce_packet roce;
    assert_true(feroce_board_next_packet(board, test_at(0), &packet));
    const uint8_t *headers = packet.headers;
    const bool is_first = at == 0, is_last = at + 1 == packets;
    const bool immediate = message->has_immediate && is_last;
    assert_int_equal(headers[0],
                     expected_opcode(message->write, message->has_immediate, at, packets));
    assert_int_equal(headers[1], is_old ? 0x00 : 0x40);
    assert_int_equal(load_be16(headers + 2), 0xffff);
    assert_int_equal(headers[4], 0);
    assert_int_equal(load_be32(headers + 4), 0x11);
    assert_int_equal(headers[8], 0x80); /* FER-39: always. */
    assert_int_equal(load_be32(headers + 8) & 0xffffff, psn);
    assert_int_equal(packet.header_bytes,
                     12 + (message->write && is_first ? 16 : 0) + (immediate ? 4 : 0));
    assert_int_equal(packet.payload_bytes, is_last ? message->length - (packets - 1) * pmtu : pmtu);
    assert_int_equal(packet.is_last, is_last);
    assert_int_equal(roce_decode_split(headers, packet.header_bytes, packet.payload,
                                       packet.payload_bytes, &roce),
                     ROCE_GOOD);
    if (message->write && is_first) { /* FER-37 */
        assert_true(roce.reth.address == TEST_ADDRESS + message->offset);
        assert_int_equal(roce.reth.bytes, message->length);
        assert_int_equal(roce.reth.key,
                         board->config.window.quirks & FEROCE_QUIRK_RKEY0 ? 0 : 0x1234);
    }
    if (immediate) { /* FER-38 */
        assert_memory_equal(headers + packet.header_bytes - 4, &message->immediate, 4);
    }
    for (uint32_t i = 0; i < packet.payload_bytes; i += 4) {
        assert_int_equal(load_le32(packet.payload + i), (at * pmtu + i) / 4);
    }
}

static void judge_messages(struct feroce_board *board)
{
    const uint32_t pmtu = board->config.window.pmtu;
    const uint32_t lengths[] = {4, 8, pmtu - 4, pmtu, pmtu + 4, 2 * pmtu, 2 * pmtu + 4, 9 * pmtu};
    const bool is_old = board->config.stack == FEROCE_STACK_2024;
    uint32_t psn = 7;
    const uint32_t index = test_open(board, psn);
    for (int kind = is_old ? 2 : 0; kind < 4; kind++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            const struct feroce_message message = {.write = kind >= 2,
                                                   .has_immediate = kind % 2,
                                                   .immediate = 0x4e61bc00 + (uint32_t)i,
                                                   .offset = 1000,
                                                   .length = lengths[i]};
            const uint32_t packets = store_message(board, index, &message, 0);
            for (uint32_t at = 0; at < packets; at++) {
                judge_packet(board, &message, at, packets, psn++);
            }
            test_silent(board, test_at(0));
            if (!is_old) {
                assert_int_equal(test_answer(board, index, 0, psn - 1, test_at(0)),
                                 FEROCE_ARRIVAL_ACK);
            }
            assert_int_equal(board->table.contexts[index].remote.psn, psn);
        }
    }
}

/* FER-36 to 40, 51, and 81 with the RTL's mistake. FER-148: the frames of 2024. */
static void test_packets(void **state)
{
    (void)state;
    for (uint32_t pmtu = 256; pmtu <= 4096; pmtu *= 2) {
        for (int which = 0; which < 3; which++) {
            struct feroce_board_config config = test_config();
            config.window.pmtu = pmtu;
            config.window.quirks = which == 1 ? FEROCE_QUIRK_RKEY0 : 0;
            if (which == 2) {
                config.stack = FEROCE_STACK_2024;
                config.window.sends_once = true;
                config.window.qps = 1;
            }
            struct feroce_board *board = test_begin(&config);
            judge_messages(board);
            test_end(board);
        }
    }
}

/* FER-51: packets of several queue pairs leave one by one, each in its own sequence. */
static void test_interleaving(void **state)
{
    (void)state;
    const struct feroce_board_config config = test_config();
    struct feroce_board *board = test_begin(&config);
    for (uint32_t i = 0; i < 3; i++) {
        test_open(board, 100 * i);
        test_store(board, i, 5, test_at(0));
    }
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 3; i++) {
            struct feroce_packet packet;
            assert_true(feroce_board_next_packet(board, test_at(0), &packet));
            assert_int_equal(packet.qpn, 256 + i);
            assert_int_equal(packet.psn.value, 100 * i + round);
        }
    }
    test_end(board);
}

/* FER-64: what is sent again is the same, byte for byte. */
static void test_sent_again(void **state)
{
    (void)state;
    const struct feroce_board_config config = test_config();
    struct feroce_board *board = test_begin(&config);
    test_open(board, 0);
    const struct feroce_message message = {
        .write = true, .has_immediate = true, .immediate = 9, .offset = 3, .length = 12288};
    store_message(board, 0, &message, 5);
    struct feroce_packet first[3], again;
    for (int i = 0; i < 3; i++) {
        assert_true(feroce_board_next_packet(board, test_at(0), &first[i]));
    }
    feroce_board_on_time(board, test_at(TEST_RTO_NS));
    for (int i = 0; i < 3; i++) {
        assert_true(feroce_board_next_packet(board, test_at(TEST_RTO_NS), &again));
        assert_true(again.resent);
        assert_int_equal(again.header_bytes, first[i].header_bytes);
        assert_memory_equal(again.headers, first[i].headers, again.header_bytes);
        assert_int_equal(again.payload_bytes, first[i].payload_bytes);
        assert_ptr_equal(again.payload, first[i].payload);
        assert_int_equal(load_le32(again.payload), 5 + i * 1024);
    }
    test_end(board);
}

/* Times from a message's last packet to its ACK: one message of a queue pair at a time, and none of
 * which a packet was sent again. */
static void test_latency(void **state)
{
    (void)state;
    const struct feroce_board_config config = test_config();
    struct feroce_board *board = test_begin(&config);
    const struct feroce_latency *latency = &board->latency;
    const uint32_t a = test_open(board, 0xfffffe);
    test_store(board, a, 3, test_at(0)); /* PSN 0xfffffe, 0xffffff, 0. */
    test_store(board, a, 1, test_at(0)); /* 1: while the first one is watched. */
    for (uint32_t i = 0; i < 4; i++) {
        (void)test_sent(board, test_at(100 + 10 * i)); /* The first one's last packet at 120. */
    }
    assert_int_equal(test_answer(board, a, 0, 0xffffff, test_at(200)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(latency->messages, 0);
    assert_int_equal(test_answer(board, a, 0, 0, test_at(420)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(latency->messages, 1);
    assert_int_equal(latency->sum_ns, 300);
    assert_int_equal(test_answer(board, a, 0, 1, test_at(500)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(latency->messages, 1);
    /* One ACK for all. */
    test_store(board, a, 2, test_at(500));
    (void)test_sent(board, test_at(500));
    (void)test_sent(board, test_at(600));
    assert_int_equal(test_answer(board, a, 0, 3, test_at(700)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(latency->messages, 2);
    assert_int_equal(latency->least_ns, 100);
    assert_int_equal(latency->most_ns, 300);
    assert_int_equal(feroce_latency_mean_ns(latency), 200);
    /* Sent again: it does not count, and the next one does. */
    test_store(board, a, 1, test_at(1000));
    assert_int_equal(test_sent(board, test_at(1000)), 4);
    assert_int_equal(test_answer(board, a, ROCE_NAK_PSN_SEQUENCE, 4, test_at(1100)),
                     FEROCE_ARRIVAL_NAK);
    assert_int_equal(test_sent(board, test_at(1200)), 4);
    assert_int_equal(test_answer(board, a, 0, 4, test_at(1300)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(latency->messages, 2);
    test_store(board, a, 1, test_at(1400));
    (void)test_sent(board, test_at(1400));
    assert_int_equal(test_answer(board, a, 0, 5, test_at(1450)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(latency->messages, 3);
    assert_int_equal(latency->least_ns, 50);
    test_end(board);
}

/* A program's requests are judged. */
static void test_refused(void **state)
{
    (void)state;
    struct feroce_board_config config = test_config();
    config.window.pmtu = 1024;
    struct feroce_board *board = test_begin(&config);
    static const uint8_t payload[4096];
    test_open(board, 0);
    const struct feroce_message message = {.length = 2048};
    static const struct {
        uint32_t bytes;
        bool is_last;
    } wrong[] = {{0, true}, {3, true}, {1028, true}, {1020, false}, {4096, false}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(feroce_board_store(board, 0, &message, payload, wrong[i].bytes,
                                            wrong[i].is_last, test_at(0)),
                         FEROCE_STORE_REFUSED);
    }
    test_silent(board, test_at(0));
    test_end(board);
}

/* The board of 2024 knows WRITE only; after a NAK it finishes its message and begins no other one
 * until it is started. */
static void test_2024(void **state)
{
    (void)state;
    struct feroce_board_config config = test_config();
    config.stack = FEROCE_STACK_2024;
    config.window.sends_once = true;
    config.window.qps = 1;
    static const uint8_t naks[] = {ROCE_NAK_PSN_SEQUENCE, ROCE_NAK_REMOTE_ACCESS,
                                   ROCE_AETH_RNR_NAK | 3};
    static const uint8_t payload[4096];
    for (size_t i = 0; i < COUNT_OF(naks); i++) {
        struct feroce_board *board = test_begin(&config);
        struct feroce_message message = {.length = 8192};
        test_open(board, 0);
        assert_int_equal(feroce_board_store(board, 0, &message, payload, 4096, false, test_at(0)),
                         FEROCE_STORE_REFUSED);
        message.write = true;
        assert_int_equal(feroce_board_store(board, 0, &message, payload, 4096, false, test_at(0)),
                         FEROCE_STORED);
        assert_int_equal(test_sent(board, test_at(0)), 0);
        assert_int_equal(test_answer(board, 0, naks[i], 0, test_at(1)), FEROCE_ARRIVAL_NAK);
        test_silent(board, test_at(1));
        assert_int_equal(feroce_board_store(board, 0, &message, payload, 4096, true, test_at(0)),
                         FEROCE_STORED);
        assert_int_equal(test_sent(board, test_at(1)), 1);
        assert_int_equal(feroce_board_store(board, 0, &message, payload, 4096, false, test_at(0)),
                         FEROCE_STORE_HALTED);
        assert_true(feroce_board_deadline(board).ns == INSTANT_NEVER.ns);
        feroce_board_start(board, 0);
        assert_int_equal(feroce_board_store(board, 0, &message, payload, 4096, false, test_at(0)),
                         FEROCE_STORED);
        test_end(board);
    }
}

/* -- The generator ------------------------------------------------------------------------------*/

static struct feroce_generator begin_generator(enum feroce_stack stack)
{
    struct feroce_generator generator;
    feroce_generator_init(&generator, stack, CYCLE_FS);
    feroce_generator_open(&generator);
    return generator;
}

/* FER-94: the first 16 bytes are the words 0 to 3; the count goes on over messages and packets. */
static void test_pattern(void **state)
{
    (void)state;
    struct feroce_generator generator = begin_generator(FEROCE_STACK_2026);
    static const uint8_t golden[16] = {0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
    uint8_t out[4096];
    feroce_generator_fill(&generator, out, 16);
    assert_memory_equal(out, golden, 16);
    uint32_t word = 4;
    static const uint32_t lengths[] = {4, 4096, 100, 8};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        feroce_generator_fill(&generator, out, lengths[i]);
        for (uint32_t at = 0; at < lengths[i]; at += 4) {
            assert_int_equal(load_le32(out + at), word++);
        }
    }
    generator.word = UINT32_MAX; /* It wraps. */
    feroce_generator_fill(&generator, out, 8);
    assert_int_equal(load_le32(out), UINT32_MAX);
    assert_int_equal(load_le32(out + 4), 0);
    feroce_generator_open(&generator);
    feroce_generator_fill(&generator, out, 16);
    assert_memory_equal(out, golden, 16);
}

/* FER-48 to 50: offsets are the sum of lengths modulo 65,536 (2^18 in 2024); bits 1:0 of a length
 * are lost; beyond 0x10000000 the offset stays 0. FER-38: the immediate. */
static void test_offsets(void **state)
{
    (void)state;
    static const struct {
        enum feroce_stack stack;
        uint32_t length, sent, wrap;
    } rows[] = {{FEROCE_STACK_2026, 4099, 4096, 65536},
                {FEROCE_STACK_2026, 65532, 65532, 65536},
                {FEROCE_STACK_2026, 0x10000000, 0x10000000, 65536},
                {FEROCE_STACK_2026, 0x10000004, 0x10000004, 1},
                {FEROCE_STACK_2024, 262140, 262140, 262144}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct feroce_generator generator = begin_generator(rows[i].stack);
        const struct feroce_meta meta = {.valid = true,
                                         .start = true,
                                         .write = true,
                                         .immediate = true,
                                         .length = rows[i].length,
                                         .count = 20};
        assert_true(feroce_generator_start(&generator, &meta, test_at(0)));
        for (uint64_t n = 0; n < 20; n++) {
            struct feroce_message message;
            assert_true(feroce_generator_next(&generator, test_at(1000 + 10 * n), &message));
            assert_int_equal(message.length, rows[i].sent);
            assert_true(message.offset == n * rows[i].sent % rows[i].wrap);
            assert_true(message.write && message.has_immediate);
            static const uint8_t now[4] = {0x00, 0xbc, 0x61, 0x4e},
                                 then[4] = {0xde, 0xad, 0xbe, 0xef};
            assert_memory_equal(&message.immediate, rows[i].stack == FEROCE_STACK_2024 ? then : now,
                                4);
        }
        assert_false(generator.running);
    }
}

/* FER-95: a message each frequency + 1 cycles, however long the run. FER-96, 97: requests while it
 * runs are ignored; CLOSE stops it. */
static void test_frequency(void **state)
{
    (void)state;
    struct feroce_generator generator = begin_generator(FEROCE_STACK_2026);
    struct feroce_meta meta = {
        .valid = true, .start = true, .length = 64, .count = 100001, .frequency = 321};
    struct feroce_message message;
    assert_true(feroce_generator_start(&generator, &meta, test_at(0)));
    meta.length = 128;
    assert_false(feroce_generator_start(&generator, &meta, test_at(0)));
    for (uint64_t n = 1; n <= 100000; n++) {
        const uint64_t due = n * 322 * CYCLE_FS / 1000000;
        assert_true(feroce_generator_deadline(&generator).ns == due);
        assert_false(feroce_generator_next(&generator, test_at(due - 1), &message));
        assert_true(feroce_generator_next(&generator, test_at(due), &message));
        assert_int_equal(message.length, 64);
    }
    feroce_generator_open(&generator);
    assert_false(feroce_generator_next(&generator, test_at(UINT64_MAX - 1), &message));
    meta.length = 3; /* Nothing is left of it. */
    assert_false(feroce_generator_start(&generator, &meta, test_at(0)));
    meta.length = 4;
    meta.count = 0;
    assert_false(feroce_generator_start(&generator, &meta, test_at(0)));
}

/* A queue that is slower than the frequency: what was missed is not made up for. */
static void test_slow_queue(void **state)
{
    (void)state;
    struct feroce_generator generator = begin_generator(FEROCE_STACK_2026);
    const struct feroce_meta meta = {.valid = true, .start = true, .length = 64, .count = 100};
    struct feroce_message message;
    assert_true(feroce_generator_start(&generator, &meta, test_at(0)));
    assert_true(feroce_generator_next(&generator, test_at(1000), &message));
    assert_true(feroce_generator_deadline(&generator).ns == 1000);
    assert_true(feroce_generator_next(&generator, test_at(1000), &message));
    assert_false(feroce_generator_next(&generator, test_at(1000), &message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),    cmocka_unit_test(test_interleaving),
        cmocka_unit_test(test_sent_again), cmocka_unit_test(test_latency),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_2024),
        cmocka_unit_test(test_pattern),    cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_frequency),  cmocka_unit_test(test_slow_queue),
    };
    return cmocka_run_group_tests_name("feroce_packets", tests, NULL, NULL);
}
