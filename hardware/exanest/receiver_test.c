/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Bytes are in memory before anybody is told so, each cause of an error has its own NACK,
 *         and a malformed packet costs no other one.
 * Method  Packets by hand into a receiver with a memory and a switch (receiver_rig.h). Many by
 *         chance: receiver_random_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/exanest/receiver_rig.h"

static uint8_t data[EXANEST_BLOCK_BYTES_MAX];

static struct rig *new_rig(void)
{
    const struct exanest_receiver_parameters parameters = exanest_receiver_defaults(RIG_COORDINATE);
    for (uint32_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 13 + i / 256);
    }
    return rig_new(&parameters, 1);
}

struct block {
    uint64_t va;
    uint32_t bytes;
    uint16_t tid, sequence;
    uint32_t source;
    bool notify;
};

/* The packet of a block that has its `line`-th line of 256 bytes. */
static struct test_packet packet_of(const struct block *block, uint32_t line)
{
    const uint64_t begin = block->va, end = begin + block->bytes;
    const uint64_t base = begin / 256 * 256 + 256 * (uint64_t)line;
    const uint64_t from = base < begin ? begin : base;
    const uint64_t to = base + 256 < end ? base + 256 : end;
    const struct exanest_header header = {
        .target = {.coordinate = RIG_COORDINATE, .va = from},
        .pdid = 1,
        .type = EXANEST_WRITE,
        .bytes = (uint16_t)(to - from),
        .has_footer = true,
        .aux = block->sequence,
    };
    const struct exanest_footer footer = {
        .tid = block->tid,
        .source = block->source,
        .sequence = block->sequence,
        .first = from == begin,
        .last = to == end,
        .notify = block->notify,
    };
    return test_packet(&header, &footer, data + (from - begin));
}

static uint32_t lines_of(const struct block *block)
{
    return (uint32_t)((block->va + block->bytes + 255) / 256 - block->va / 256);
}

static struct test_packet control_of(const struct block *block, struct exanest_target address)
{
    const struct exanest_control control = {.address = address,
                                            .data = {0x1122334455667788, 0x99aabbccddeeff00},
                                            .tid = block->tid,
                                            .sequence = block->sequence,
                                            .bytes = (uint16_t)block->bytes};
    struct exanest_word words[2];
    exanest_control_encode(&control, words);
    const struct exanest_header header = {
        .target = {.coordinate = RIG_COORDINATE, .va = block->va & ~UINT64_C(15)},
        .pdid = 1,
        .type = EXANEST_CONTROL,
        .bytes = sizeof(words),
        .has_footer = true,
        .priority = true,
        .aux = block->sequence,
    };
    const struct exanest_footer footer = {
        .tid = block->tid, .source = block->source, .sequence = block->sequence, .notify = true};
    return test_packet(&header, &footer, words);
}

static void send(struct rig *rig, const struct test_packet *packet)
{
    assert_true(rig_send(rig, packet));
}

static void send_line(struct rig *rig, const struct block *block, uint32_t line)
{
    const struct test_packet packet = packet_of(block, line);
    send(rig, &packet);
}

static void expect_reply(struct rig *rig, uint32_t index, const struct block *block,
                         enum exanest_status status)
{
    assert_true(rig_drain(rig));
    assert_false(rig->bad_reply);
    assert_int_equal(rig->outside, 0);
    assert_true(index < rig->reply_count);
    const struct test_sent *reply = &rig->replies[index];
    assert_int_equal(reply->header.type, EXANEST_ACKNOWLEDGEMENT);
    assert_int_equal(reply->header.target.coordinate, block->source);
    assert_int_equal(reply->header.target.va, exanest_peripheral_va(EXANEST_RT_RESPONSES, 0));
    assert_int_equal(reply->footer.tid, block->tid);
    assert_int_equal(reply->footer.sequence, block->sequence);
    assert_int_equal(reply->footer.source, RIG_COORDINATE);
    assert_int_equal(reply->footer.status, status);
}

static void expect_bytes(const struct rig *rig, const struct block *block)
{
    static const uint8_t zeros[RIG_BYTES];
    const uint8_t *memory = rig->memory[1];
    assert_memory_equal(memory + block->va, data, block->bytes);
    assert_memory_equal(memory, zeros, block->va);
    const uint64_t end = block->va + block->bytes;
    assert_memory_equal(memory + end, zeros, RIG_BYTES - end);
    assert_memory_equal(rig->memory[0], zeros, RIG_BYTES);
}

/* EXA-39, EXA-40, EXA-06: any place and size; the bytes are there, none beside them; one
 * response. */
static void test_blocks(void **state)
{
    (void)state;
    static const struct block blocks[] = {
        {0x0000, 16384, 1, 0, 7, false}, {0x4000, 1, 1023, 16383, 7, false},
        {0x40ff, 2, 3, 5, 7, false},     {0x7fff, 1, 3, 5, 7, false},
        {0x0801, 9000, 3, 5, 7, false},  {0x4003, 16381, 3, 5, 7, false},
        {0x41f1, 31, 3, 5, 7, false},
    };
    for (uint32_t b = 0; b < COUNT_OF(blocks); b++) {
        for (uint32_t backwards = 0; backwards < 2; backwards++) {
            struct rig *rig = new_rig();
            const uint32_t lines = lines_of(&blocks[b]);
            const uint64_t words = (blocks[b].va + blocks[b].bytes + 15) / 16 - blocks[b].va / 16;
            for (uint32_t i = 0; i < lines; i++) {
                send_line(rig, &blocks[b], backwards ? lines - 1 - i : i);
            }
            expect_reply(rig, 0, &blocks[b], EXANEST_ACK);
            assert_int_equal(rig->reply_count, 1);
            expect_bytes(rig, &blocks[b]);
            assert_int_equal(rig->receiver.table.used, 0);
            assert_int_equal(rig->receiver.counters.words_written, words);
            assert_int_equal(rig->receiver.intake.counters.packets[EXANEST_WRITE], lines);
            assert_int_equal(rig->receiver.intake.counters.bytes[EXANEST_WRITE], blocks[b].bytes);
            free(rig);
        }
    }
}

/* EXA-38, EXA-71: the four causes, each with its code and its counter. */
static void test_causes(void **state)
{
    (void)state;
    const struct block block = {0x100, 600, 9, 3, 7, false};
    static const struct {
        enum exanest_axi_response response;
        bool flips, fault;
        enum exanest_status status;
    } rows[] = {
        {EXANEST_AXI_OKAY, false, false, EXANEST_ACK},
        {EXANEST_AXI_SLAVE_ERROR, false, false, EXANEST_NACK_PAGE_FAULT},
        {EXANEST_AXI_DECODE_ERROR, false, false, EXANEST_NACK_DECODE},
        {EXANEST_AXI_DECODE_ERROR, false, true, EXANEST_NACK_PAGE_FAULT},
        {EXANEST_AXI_OKAY, true, false, EXANEST_NACK_CRC},
        {EXANEST_AXI_DECODE_ERROR, true, false, EXANEST_NACK_CRC},
    };
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig *rig = new_rig();
        rig->receiver.parameters.berr3_is_fault = rows[i].fault;
        for (uint32_t line = 0; line < 3; line++) {
            struct test_packet packet = packet_of(&block, line);
            if (line == 1 && rows[i].flips) {
                test_flip(&packet, 3, 77);
            }
            rig_plan(rig, line == 0 ? EXANEST_AXI_OKAY : rows[i].response);
            send(rig, &packet);
        }
        expect_reply(rig, 0, &block, rows[i].status);
        assert_int_equal(rig->reply_count, 1); /* The third packet was bad as well, but for one. */
        assert_int_equal(rig->receiver.counters.responses[rows[i].status], 1);
        assert_int_equal(rig->receiver.table.used, rows[i].status != EXANEST_ACK);
        free(rig);
    }
}

/* EXA-34, EXA-35: retransmission behind an error; late packets of the old instance do not count. */
static void test_retransmission(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    struct block old = {0x100, 600, 9, 3, 7, false};
    struct block new = old;
    new.sequence = 4;
    struct test_packet bad = packet_of(&old, 1);
    test_flip(&bad, 2, 0);
    send_line(rig, &old, 0);
    send(rig, &bad);
    send_line(rig, &new, 0);
    send_line(rig, &old, 1);
    send_line(rig, &old, 2);
    send_line(rig, &new, 2);
    expect_reply(rig, 0, &old, EXANEST_NACK_CRC);
    assert_int_equal(rig->reply_count, 1);
    send_line(rig, &new, 1);
    expect_reply(rig, 1, &new, EXANEST_ACK);
    assert_int_equal(rig->reply_count, 2);
    expect_bytes(rig, &new);
    assert_int_equal(rig->receiver.counters.meanings[EXANEST_OLDER], 2);
    assert_int_equal(rig->receiver.counters.flushes, 1);
    free(rig);
}

/* EXA-43: a bad footer is answered by nobody; the block can be sent again. */
static void test_bad_footer(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    struct block block = {0x100, 100, 9, 3, 7, false};
    struct test_packet packet = packet_of(&block, 0);
    test_flip(&packet, packet.count - 1, 40);
    send(rig, &packet);
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, 0);
    assert_int_equal(rig->receiver.counters.dropped, 1);
    assert_int_equal(rig->receiver.intake.counters.footers[EXANEST_WRONG_CRC8], 1);
    block.sequence = 4;
    send_line(rig, &block, 0);
    expect_reply(rig, 0, &block, EXANEST_ACK);
    free(rig);
}

/* A bad header: nothing is written. The footer names the sender, who is told. */
static void test_bad_header(void **state)
{
    (void)state;
    const struct block block = {0x100, 100, 9, 3, 7, false};
    for (uint32_t bit = 0; bit < 128; bit++) {
        struct rig *rig = new_rig();
        struct test_packet packet = packet_of(&block, 0);
        test_flip(&packet, 0, bit);
        send(rig, &packet);
        expect_reply(rig, 0, &block, EXANEST_NACK_CRC);
        assert_int_equal(rig->receiver.counters.words_written, 0);
        assert_int_equal(rig->receiver.table.used, 1); /* So that it is told once. */
        free(rig);
    }
}

/* Too many and too few words: NACK, and nothing outside of what the header names. */
static void test_wrong_words(void **state)
{
    (void)state;
    const struct block block = {0x104, 100, 9, 3, 7, false};
    for (uint32_t change = 0; change < 5; change++) {
        struct rig *rig = new_rig();
        struct test_packet packet = packet_of(&block, 0);
        switch (change) {
        case 0: test_remove(&packet, 3); break;
        case 1: test_insert(&packet, 3, packet.beats[2]); break;
        case 2: test_insert(&packet, packet.count - 1, packet.beats[2]); break;
        case 3:
            while (packet.count > 2) {
                test_remove(&packet, 1); /* No payload at all. */
            }
            break;
        default: packet.count -= 1; break; /* Cut off by the next packet. */
        }
        send(rig, &packet);
        const struct block next = {0x104, 100, 10, 3, 7, false};
        send_line(rig, &next, 0);
        if (change < 4) {
            expect_reply(rig, 0, &block, EXANEST_NACK_CRC);
        }
        expect_reply(rig, change < 4 ? 1 : 0, &next, EXANEST_ACK);
        expect_bytes(rig, &next);
        assert_int_equal(rig->receiver.counters.dropped, change == 4);
        free(rig);
    }
}

/* A packet that never ends: the unit may sleep, and goes on with the next header. */
static void test_endless(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    const struct block block = {0x104, 100, 9, 3, 7, false};
    struct test_packet packet = packet_of(&block, 0);
    packet.count = 3;
    send(rig, &packet);
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, 0);
    assert_int_equal(rig->receiver.arrivals, 1);
    send_line(rig, &block, 0);
    expect_reply(rig, 0, &block, EXANEST_ACK);
    expect_bytes(rig, &block);
    free(rig);
}

/* EXA-37: 17 blocks in one set. */
static void test_no_context(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    struct block blocks[17];
    uint32_t count = 0;
    for (uint16_t tid = 0; count < 17; tid++) {
        if (exanest_context_set(&rig->receiver.table, 7, tid) == 3) {
            blocks[count++] = (struct block){0x200u * tid % 0x4000, 300, tid, 0, 7, false};
        }
    }
    for (uint32_t i = 0; i < 17; i++) {
        send_line(rig, &blocks[i], 0);
    }
    expect_reply(rig, 0, &blocks[16], EXANEST_NACK_NO_CONTEXT);
    assert_int_equal(rig->reply_count, 1);
    send_line(rig, &blocks[16], 1);
    expect_reply(rig, 1, &blocks[16], EXANEST_NACK_NO_CONTEXT);
    send_line(rig, &blocks[5], 1);
    expect_reply(rig, 2, &blocks[5], EXANEST_ACK);
    blocks[16].sequence = 1;
    send_line(rig, &blocks[16], 0);
    send_line(rig, &blocks[16], 1);
    expect_reply(rig, 3, &blocks[16], EXANEST_ACK);
    free(rig);
}

/* EXA-56, EXA-57: the notification, wherever the control packet comes; after the response. */
static void test_notification(void **state)
{
    (void)state;
    const struct exanest_target address = {.coordinate = 0x3fffff, .va = 0x5559};
    for (uint32_t at = 0; at <= 4; at++) {
        struct rig *rig = new_rig();
        const struct block block = {0x123, 900, 9, 3, 7, true};
        const struct test_packet control = control_of(&block, address);
        assert_int_equal(lines_of(&block), 4);
        for (uint32_t line = 0; line < 4; line++) {
            if (line == at) {
                send(rig, &control);
            }
            send_line(rig, &block, line);
        }
        if (at == 4) {
            assert_true(rig_drain(rig));
            /* Not before the control packet: nobody would repair its loss. */
            assert_int_equal(rig->reply_count, 0);
            send(rig, &control);
        }
        expect_reply(rig, 0, &block, EXANEST_ACK);
        assert_int_equal(rig->reply_count, 2);
        const struct test_sent *reply = &rig->replies[1];
        assert_int_equal(reply->header.type, EXANEST_NOTIFICATION);
        assert_int_equal(reply->header.target.coordinate, address.coordinate);
        assert_int_equal(reply->header.target.va, address.va);
        assert_int_equal(reply->header.pdid, 1);
        static const uint64_t expected[2] = {0x1122334455667788, 0x99aabbccddeeff00};
        assert_memory_equal((const uint8_t *)reply->payload + 9, expected, 16);
        expect_bytes(rig, &block);
        free(rig);
    }
}

/* EXA-108: if the ACK was lost the block comes again, and so does its notification. */
static void test_notified_twice(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    struct block block = {0x123, 100, 9, 3, 7, true};
    for (uint32_t i = 0; i < 2; i++) {
        const struct test_packet control =
            control_of(&block, (struct exanest_target){.va = 0x9000});
        send_line(rig, &block, 0);
        send(rig, &control);
        expect_reply(rig, 2 * i, &block, EXANEST_ACK);
        assert_int_equal(rig->reply_count, 2 * i + 2);
        block.sequence++;
    }
    assert_int_equal(rig->receiver.counters.notifications, 2);
    free(rig);
}

/* EXA-108: a late duplicate is written before anything is known of its sequence. */
static void test_late_write(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    const struct block block = {0x100, 600, 9, 3, 7, false};
    struct block newer = block;
    const struct test_packet old = packet_of(&block, 0);
    newer.sequence = 4;
    send_line(rig, &newer, 1);
    assert_true(rig_drain(rig));
    assert_int_equal(rig->memory[1][0x100], 0);
    send(rig, &old);
    assert_true(rig_drain(rig));
    assert_int_equal(rig->receiver.counters.meanings[EXANEST_OLDER], 1);
    assert_memory_equal(rig->memory[1] + 0x100, data, 256);
    free(rig);
}

/* EXA-108: so is a damaged second copy of a packet whose block is complete. The NACK is about
 * a block that its R5 has done with: the bytes stay wrong. */
static void test_damaged_copy(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    const struct block block = {0x100, 256, 9, 3, 7, false};
    struct test_packet copy = packet_of(&block, 0);
    send_line(rig, &block, 0);
    expect_reply(rig, 0, &block, EXANEST_ACK);
    expect_bytes(rig, &block);
    test_flip(&copy, 1, 0);
    send(rig, &copy);
    expect_reply(rig, 1, &block, EXANEST_NACK_CRC);
    assert_int_equal(rig->memory[1][0x100], data[0] ^ 1);
    free(rig);
}

/* A notification of another receiver, and a packetizer's message, are written to memory. */
static void test_messages(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    struct exanest_header header = {.target = {.coordinate = RIG_COORDINATE, .va = 0x777},
                                    .pdid = 1,
                                    .type = EXANEST_NOTIFICATION,
                                    .bytes = 16,
                                    .has_footer = true};
    const struct exanest_footer footer = {.tid = 33, .source = 8, .first = true, .last = true};
    struct test_packet packet = test_packet(&header, &footer, data);
    send(rig, &packet);
    assert_true(rig_drain(rig));
    assert_memory_equal(rig->memory[1] + 0x777, data, 16);
    assert_int_equal(rig->reply_count, 0);
    assert_int_equal(rig->receiver.counters.notified, 1);
    rig_plan(rig, EXANEST_AXI_OKAY);
    rig_plan(rig, EXANEST_AXI_SLAVE_ERROR);
    header.type = EXANEST_WRITE;
    header.priority = true;
    header.target.va = 0x999;
    packet = test_packet(&header, &footer, data);
    send(rig, &packet);
    send(rig, &packet);
    assert_true(rig_drain(rig));
    assert_memory_equal(rig->memory[1] + 0x999, data, 16);
    assert_int_equal(rig->reply_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct exanest_header *reply = &rig->replies[i].header;
        assert_int_equal(reply->target.coordinate, 8);
        assert_int_equal(reply->target.va, exanest_peripheral_va(EXANEST_PACKETIZER, 0));
        assert_int_equal(reply->aux,
                         exanest_aux(i == 0 ? EXANEST_ACK : EXANEST_NACK_PAGE_FAULT, 33));
    }
    assert_int_equal(rig->receiver.table.used_max, 0);
    free(rig);
}

/* Places where nothing may be written, and types that do not belong here. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t va;
        uint16_t bytes;
        uint8_t type;
        bool answered;
    } rows[] = {
        {UINT64_C(7) << 39, 16, EXANEST_WRITE, true},
        {UINT64_C(7) << 39, 32, EXANEST_CONTROL, true},
        {(UINT64_C(1) << 39) - 8, 16, EXANEST_WRITE, true},
        {0x100, 48, EXANEST_CONTROL, true},
        {0x108, 32, EXANEST_CONTROL, true},
        {0x100, 48, EXANEST_READ_REQUEST, true},
        {0x100, 48, EXANEST_ZDMA_WRITE, false},
        {0x100, 0, EXANEST_ACKNOWLEDGEMENT, false},
        {0x100, 0, EXANEST_RELEASE, false},
        {UINT64_C(7) << 39, 16, EXANEST_NOTIFICATION, false},
    };
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig *rig = new_rig();
        const struct exanest_header header = {.target.va = rows[i].va,
                                              .pdid = 1,
                                              .type = rows[i].type,
                                              .bytes = rows[i].bytes,
                                              .has_footer = true};
        const struct exanest_footer footer = {.tid = 33, .source = 8, .first = true, .last = true};
        const struct test_packet packet = test_packet(&header, &footer, data);
        send(rig, &packet);
        assert_true(rig_drain(rig));
        assert_int_equal(rig->receiver.counters.words_written, 0);
        assert_int_equal(rig->reply_count, rows[i].answered);
        const struct test_sent *reply = &rig->replies[0];
        if (rows[i].type == EXANEST_READ_REQUEST) {
            assert_int_equal(reply->header.aux, exanest_aux(EXANEST_NACK_DECODE, 33));
        } else if (rows[i].answered) {
            assert_int_equal(reply->footer.status, EXANEST_NACK_DECODE);
        }
        free(rig);
    }
}

/* Headers without a footer have no source, and no transaction: here of each type. */
static void test_header_alone(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    const struct block block = {0x100, 100, 9, 3, 7, false};
    send_line(rig, &block, 0); /* This leaves a footer in the intake. */
    for (uint32_t type = EXANEST_WRITE; type <= EXANEST_FLOW_RATE; type++) {
        const struct exanest_header header = {.target.va = 0x100, .type = (uint8_t)type};
        const struct test_packet packet = test_packet(&header, NULL, NULL);
        send(rig, &packet);
    }
    expect_reply(rig, 0, &block, EXANEST_ACK);
    assert_int_equal(rig->reply_count, 1);
    assert_int_equal(rig->receiver.counters.unexpected, 10);
    free(rig);
}

/* Cut-through: the first word leaves 2 cycles after its beat, long before the footer has come. A
 * response begins 4 cycles after the memory's answer was judged. */
static void test_times(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    const struct block block = {0x000, 256, 9, 3, 7, false};
    struct exanest_beat beat;
    const struct test_packet packet = packet_of(&block, 0);
    for (uint32_t i = 0; i < packet.count; i++) {
        assert_true(exanest_receiver_ready(&rig->receiver, &packet.beats[i]));
        exanest_receiver_take(&rig->receiver, &packet.beats[i]);
        rig_cycle(rig);
        assert_int_equal(rig->receiver.counters.words_written, i < 3 ? 0 : i - 2);
    }
    rig->deaf = true;
    uint64_t answered = 0, offered = 0;
    for (uint32_t i = 0; i < 100 && offered == 0; i++) {
        rig_cycle(rig);
        answered = answered == 0 && rig->receiver.arrivals == 0 ? rig->cycle : answered;
        offered = exanest_receiver_offer(&rig->receiver, &beat) ? rig->cycle : 0;
    }
    assert_int_equal(offered - answered, 4);
    free(rig);
}

/* A switch that takes nothing: the receiver fills and waits, and loses nothing. */
static void test_back_pressure(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    rig->deaf = true;
    uint32_t sent = 0;
    while (sent < 100) {
        const struct block block = {0x100u * sent, 1, (uint16_t)sent, 0, 7, false};
        const struct test_packet packet = packet_of(&block, 0);
        if (!rig_send(rig, &packet)) {
            break;
        }
        sent++;
    }
    /* As many arrivals as there may be, and replies as long as there is room for two. */
    assert_int_equal(sent, rig->receiver.parameters.arrivals + 3);
    assert_true(rig->receiver.counters.waits >= 1000);
    rig->deaf = false;
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, sent);
    for (uint32_t i = 0; i < sent; i++) {
        assert_int_equal(rig->replies[i].footer.tid, i);
    }
    free(rig);
}

/* EXA-A26's comparison: a response for each packet, which the R5 takes for stale ones but for the
 * last. */
static void test_response_per_packet(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    rig->receiver.parameters.response_per_packet = true;
    const struct block block = {0, 16384, 9, 3, 7, false};
    for (uint32_t line = 0; line < 64; line++) {
        send_line(rig, &block, line);
    }
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, 64);
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(rig->replies[i].footer.sequence, i == 63 ? 3 : 2);
    }
    free(rig);
}

/* EXA-41: the debug port shows 256 transactions of four sources, and whose each one is. */
static void test_debug(void **state)
{
    (void)state;
    struct rig *rig = new_rig();
    uint64_t seen = 0;
    for (uint16_t tid = 0; tid < 64; tid++) {
        for (uint32_t source = 0; source < 4; source++) {
            const struct block block = {0x100, 600, tid, (uint16_t)(source + 1), source, false};
            send_line(rig, &block, tid % 3);
        }
    }
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, 0);
    for (uint32_t i = 0; i < EXANEST_CONTEXTS_MAX; i++) {
        const struct exanest_context *context = exanest_receiver_context(&rig->receiver, i);
        assert_true(context->valid);
        assert_int_equal(context->sequence, context->source + 1);
        assert_int_equal(context->bitmap, UINT64_C(1) << (1 + context->tid % 3));
        assert_int_equal(context->first_seen, context->tid % 3 == 0);
        seen += UINT64_C(1) << context->tid % 64;
    }
    assert_int_equal(seen, UINT64_MAX * 4);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),         cmocka_unit_test(test_causes),
        cmocka_unit_test(test_retransmission), cmocka_unit_test(test_bad_footer),
        cmocka_unit_test(test_bad_header),     cmocka_unit_test(test_wrong_words),
        cmocka_unit_test(test_no_context),     cmocka_unit_test(test_endless),
        cmocka_unit_test(test_notification),   cmocka_unit_test(test_notified_twice),
        cmocka_unit_test(test_late_write),     cmocka_unit_test(test_damaged_copy),
        cmocka_unit_test(test_messages),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_header_alone),   cmocka_unit_test(test_times),
        cmocka_unit_test(test_back_pressure),  cmocka_unit_test(test_response_per_packet),
        cmocka_unit_test(test_debug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
