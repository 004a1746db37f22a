/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A message lies whole in its queue's next slot before it's acknowledged; what has no place
 *         is refused; no process gets another domain's messages.
 * Method  Packets into a mailbox with a memory of one domain; a poller that reads slots.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/exanest/system_mailbox.h"
#include "hardware/exanest/test_beats.h"

#define OWN    17u
#define PDID   9u
#define QUEUE  3u
#define BASE   0x4000u
#define MEMORY 0x10000u

struct bench {
    struct exanest_system_mailbox mailbox;
    uint8_t memory[MEMORY];
    enum exanest_axi_response response; /* To the next slots. */
    uint32_t memory_cycles, wait;       /* Until the memory answers; of them left, plus 1. */
    struct test_sent answers[64];
    uint32_t answer_count;
    uint32_t read; /* Slots that the poller has read. */
};

static struct bench *new_bench(uint32_t slots)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    const struct exanest_system_mailbox_parameters parameters =
        exanest_system_mailbox_defaults(OWN);
    assert_non_null(bench);
    exanest_system_mailbox_init(&bench->mailbox, &parameters);
    exanest_system_mailbox_open(&bench->mailbox, QUEUE, PDID, BASE, slots);
    return bench;
}

static void cycle(struct bench *bench)
{
    struct exanest_memory_write write;
    struct exanest_beat beat;
    if (exanest_system_mailbox_next_write(&bench->mailbox, &write)) {
        assert_int_equal(write.pdid, PDID);
        assert_true(write.lanes == 0 ||
                    (write.va >= BASE && write.va + 16 <= BASE + 64 * EXANEST_SYSTEM_SLOTS));
        assert_int_equal(write.first, write.va % 64 == 0);
        for (uint32_t i = 0; i < 16 && bench->response == EXANEST_AXI_OKAY; i++) {
            if (write.lanes >> i & 1) {
                bench->memory[write.va + i] = ((const uint8_t *)&write.word)[i];
            }
        }
        bench->wait = write.last ? bench->memory_cycles + 1 : 0;
    }
    if (bench->wait > 0 && --bench->wait == 0) {
        exanest_system_mailbox_on_write_response(&bench->mailbox, bench->response);
    }
    if (exanest_system_mailbox_offer(&bench->mailbox, &beat)) {
        exanest_system_mailbox_taken(&bench->mailbox);
        const int whole = test_collect(&bench->answers[bench->answer_count], &beat);
        assert_true(whole >= 0);
        bench->answer_count += whole == 1;
        assert_true(bench->answer_count < COUNT_OF(bench->answers));
    }
    exanest_system_mailbox_step(&bench->mailbox);
}

static void send(struct bench *bench, const struct test_packet *packet)
{
    for (uint32_t i = 0; i < packet->count; i++) {
        for (uint32_t n = 0; !exanest_system_mailbox_ready(&bench->mailbox, &packet->beats[i]);
             n++) {
            exanest_system_mailbox_waits(&bench->mailbox);
            cycle(bench);
            assert_true(n < 100);
        }
        exanest_system_mailbox_take(&bench->mailbox, &packet->beats[i]);
        cycle(bench);
    }
}

static void drain(struct bench *bench)
{
    for (uint32_t n = 0; !exanest_system_mailbox_idle(&bench->mailbox); n++) {
        cycle(bench);
        assert_true(n < 100);
    }
}

static struct exanest_header message_header(uint32_t lane, uint32_t bytes)
{
    return (struct exanest_header){
        .target = {.coordinate = OWN,
                   .va = exanest_peripheral_va(EXANEST_SYSTEM_MAILBOXES, QUEUE << 16 | lane)},
        .pdid = PDID,
        .type = EXANEST_WRITE,
        .bytes = (uint16_t)bytes,
        .has_footer = true,
        .priority = true};
}

static const struct exanest_footer from = {.tid = 33, .source = 5, .first = true, .last = true};

static struct test_packet message(uint32_t lane, uint32_t bytes, uint32_t seed)
{
    uint8_t payload[EXANEST_PAYLOAD_BYTES_MAX];
    for (uint32_t i = 0; i < bytes; i++) {
        payload[i] = (uint8_t)(seed + i * 3);
    }
    const struct exanest_header header = message_header(lane, bytes);
    return test_packet(&header, &from, payload);
}

/* The status of the last acknowledgement; -1: there was none since. */
static int answer_of(struct bench *bench)
{
    drain(bench);
    if (bench->answer_count == 0) {
        return -1;
    }
    assert_int_equal(bench->answer_count, 1);
    bench->answer_count = 0;
    const struct exanest_header *header = &bench->answers[0].header;
    assert_int_equal(header->target.coordinate, 5);
    if (header->has_footer) {
        assert_int_equal(header->target.va, exanest_peripheral_va(EXANEST_RT_RESPONSES, 0));
        return bench->answers[0].footer.status;
    }
    assert_int_equal(header->target.va, exanest_peripheral_va(EXANEST_PACKETIZER, 0));
    assert_int_equal(header->aux & 0x3ff, 33);
    return header->aux >> 10;
}

/* As a process polls: is the next slot of this lap there? */
static bool poll(struct bench *bench, uint32_t slots, struct exanest_system_tag *tag,
                 const uint8_t **data)
{
    const uint8_t *slot = bench->memory + BASE + (size_t)64 * (bench->read % slots);
    uint64_t word;
    memcpy(&word, slot + 56, sizeof(word));
    *tag = exanest_system_tag_decode(word);
    *data = slot;
    if (tag->lap != (uint16_t)(bench->read / slots + 1)) {
        return false;
    }
    bench->read++;
    return true;
}

/* EXA-56: every lane and length; lap after lap. */
static void test_messages(void **state)
{
    (void)state;
    struct bench *bench = new_bench(7);
    struct exanest_system_tag tag;
    const uint8_t *data;
    for (uint32_t lane = 0; lane < 16; lane++) {
        for (uint32_t bytes = 1; bytes <= EXANEST_SYSTEM_MESSAGE_BYTES; bytes++) {
            const struct test_packet packet = message(lane, bytes, lane + bytes);
            assert_false(poll(bench, 7, &tag, &data));
            send(bench, &packet);
            assert_int_equal(answer_of(bench), EXANEST_ACK);
            assert_true(poll(bench, 7, &tag, &data));
            assert_int_equal(tag.bytes, bytes);
            assert_int_equal(tag.source, 5);
            assert_false(tag.notifies);
            for (uint32_t i = 0; i < EXANEST_SYSTEM_MESSAGE_BYTES; i++) {
                assert_int_equal(data[i], i < bytes ? (uint8_t)(lane + bytes + i * 3) : 0);
            }
            assert_true(exanest_system_mailbox_read(&bench->mailbox, QUEUE, bench->read));
        }
    }
    free(bench);
}

/* One message behind the other, with a memory that takes its time: each has its slot. */
static void test_back_to_back(void **state)
{
    (void)state;
    struct bench *bench = new_bench(8);
    struct exanest_system_tag tag;
    const uint8_t *data;
    bench->memory_cycles = 20;
    for (uint32_t i = 0; i < 5; i++) {
        const struct test_packet packet = message(0, 10 + i, i);
        send(bench, &packet);
    }
    drain(bench);
    assert_int_equal(bench->answer_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(poll(bench, 8, &tag, &data));
        assert_int_equal(tag.bytes, 10 + i);
        assert_int_equal(data[0], i);
    }
    assert_true(bench->mailbox.counters.waits > 0);
    free(bench);
}

/* EXA-56: a notification is stored, and answered by nobody. */
static void test_notification(void **state)
{
    (void)state;
    struct bench *bench = new_bench(1);
    struct exanest_system_tag tag;
    const uint8_t *data;
    static const uint8_t payload[16] = {1, 2, 3};
    struct exanest_header header = message_header(3, 16);
    header.type = EXANEST_NOTIFICATION;
    header.priority = false;
    const struct test_packet packet = test_packet(&header, &from, payload);
    send(bench, &packet);
    assert_int_equal(answer_of(bench), -1);
    assert_true(poll(bench, 1, &tag, &data));
    assert_true(tag.notifies);
    assert_memory_equal(data, payload, 16);
    send(bench, &packet); /* The queue is full. */
    assert_int_equal(answer_of(bench), -1);
    assert_int_equal(bench->mailbox.counters.notifications_lost, 1);
    free(bench);
}

/* Full: NACK, until the process has read; its claim of what it has read is judged. */
static void test_full(void **state)
{
    (void)state;
    struct bench *bench = new_bench(EXANEST_SYSTEM_SLOTS);
    const struct test_packet packet = message(0, 20, 1);
    for (uint32_t i = 0; i < EXANEST_SYSTEM_SLOTS; i++) {
        send(bench, &packet);
        assert_int_equal(answer_of(bench), EXANEST_ACK);
    }
    send(bench, &packet);
    assert_int_equal(answer_of(bench), EXANEST_NACK_FULL);
    assert_false(exanest_system_mailbox_read(&bench->mailbox, QUEUE, 257));
    assert_false(exanest_system_mailbox_read(&bench->mailbox, QUEUE, UINT32_MAX));
    assert_false(exanest_system_mailbox_read(&bench->mailbox, 0, 0));
    assert_false(exanest_system_mailbox_read(&bench->mailbox, 16, 0));
    assert_int_equal(bench->mailbox.counters.bad_heads, 4);
    assert_true(exanest_system_mailbox_read(&bench->mailbox, QUEUE, 2));
    assert_false(exanest_system_mailbox_read(&bench->mailbox, QUEUE, 1));
    for (uint32_t i = 0; i < 3; i++) {
        send(bench, &packet);
        assert_int_equal(answer_of(bench), i < 2 ? EXANEST_ACK : EXANEST_NACK_FULL);
    }
    free(bench);
}

/* A slot that could not be written is used by the next message. */
static void test_fault(void **state)
{
    (void)state;
    struct bench *bench = new_bench(4);
    struct exanest_system_tag tag;
    const uint8_t *data;
    const struct test_packet packet = message(0, 20, 1);
    bench->response = EXANEST_AXI_SLAVE_ERROR;
    send(bench, &packet);
    assert_int_equal(answer_of(bench), EXANEST_NACK_PAGE_FAULT);
    assert_false(poll(bench, 4, &tag, &data));
    bench->response = EXANEST_AXI_OKAY;
    send(bench, &packet);
    assert_int_equal(answer_of(bench), EXANEST_ACK);
    assert_true(poll(bench, 4, &tag, &data));
    free(bench);
}

static struct exanest_header changed(uint32_t change)
{
    struct exanest_header header = message_header(0, 20);
    switch (change) {
    case 0: header.pdid = PDID + 1; break;
    case 1: header.target.va += 1u << 16; break;
    case 2: header.target.va += UINT64_C(13) << 16; break;
    case 3: header.bytes = EXANEST_SYSTEM_MESSAGE_BYTES + 1; break;
    case 4: header.bytes = 0; break;
    case 5: header.target.va = exanest_peripheral_va(EXANEST_ZDMA, QUEUE << 16); break;
    case 6: header.type = EXANEST_READ_REQUEST; break;
    case 7: header.priority = false; break; /* A block: answered to the R5. */
    case 8: header.type = EXANEST_CONTROL; break;
    case 9: header.type = EXANEST_RELEASE; break;
    case 10: header.type = EXANEST_ACKNOWLEDGEMENT; break;
    default: UNREACHABLE("no such change");
    }
    return header;
}

/* A message that has no place is refused, and counted by its reason. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        enum exanest_system_verdict verdict;
        int answer;
    } rows[] = {
        {EXANEST_SYSTEM_WRONG_DOMAIN, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_NO_QUEUE, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_NO_QUEUE, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_WRONG_SIZE, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_WRONG_SIZE, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_UNEXPECTED, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_UNEXPECTED, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_STORED, EXANEST_ACK},
        {EXANEST_SYSTEM_UNEXPECTED, EXANEST_NACK_DECODE},
        {EXANEST_SYSTEM_UNEXPECTED, -1},
        {EXANEST_SYSTEM_UNEXPECTED, -1},
    };
    static const uint8_t payload[256];
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        struct bench *bench = new_bench(4);
        const struct exanest_header header = changed(i);
        const struct test_packet packet = test_packet(&header, &from, payload);
        send(bench, &packet);
        assert_int_equal(answer_of(bench), rows[i].answer);
        assert_int_equal(bench->mailbox.counters.verdicts[rows[i].verdict], 1);
        assert_int_equal(bench->mailbox.queues[QUEUE].tail,
                         rows[i].verdict == EXANEST_SYSTEM_STORED);
        assert_int_equal(bench->mailbox.counters.notifications_lost, 0);
        free(bench);
    }
    for (uint32_t part = 0; part < 3; part++) { /* A packet of a block that has several. */
        struct bench *bench = new_bench(4);
        const struct exanest_header header = changed(7);
        struct exanest_footer footer = from;
        footer.first = part == 1;
        footer.last = part == 2;
        const struct test_packet packet = test_packet(&header, &footer, payload);
        send(bench, &packet);
        assert_int_equal(answer_of(bench), EXANEST_NACK_DECODE);
        free(bench);
    }
    struct bench *bench = new_bench(4);
    for (uint32_t beat = 0; beat < 4; beat++) {
        struct test_packet packet = message(0, 20, 1);
        test_flip(&packet, beat, 60);
        send(bench, &packet);
        assert_int_equal(answer_of(bench), beat == 0 || beat == 3 ? -1 : EXANEST_NACK_CRC);
    }
    assert_int_equal(bench->mailbox.counters.verdicts[EXANEST_SYSTEM_DROPPED], 2);
    assert_int_equal(bench->mailbox.queues[QUEUE].tail, 0);
    free(bench);
}

/* The kernel closes or reopens a queue at any moment of a message. */
static void test_close(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < 16; at++) {
        struct bench *bench = new_bench(4);
        const struct test_packet packet = message(0, 20, 1);
        for (uint32_t i = 0; i < packet.count; i++) {
            exanest_system_mailbox_take(&bench->mailbox, &packet.beats[i]);
        }
        for (uint32_t i = 0; i < at / 2; i++) {
            cycle(bench);
        }
        const bool stored = bench->mailbox.queues[QUEUE].tail == 1;
        if (at % 2 == 0) {
            exanest_system_mailbox_close(&bench->mailbox, QUEUE);
        } else {
            exanest_system_mailbox_open(&bench->mailbox, QUEUE, PDID, BASE + 0x1000, 2);
        }
        const uint8_t before = bench->memory[BASE + 0x1000];
        assert_int_equal(answer_of(bench), stored ? EXANEST_ACK : EXANEST_NACK_DECODE);
        assert_int_equal(bench->memory[BASE + 0x1000], before);
        assert_int_equal(bench->mailbox.queues[QUEUE].tail, 0);
        free(bench);
    }
}

/* Packets by chance, many damaged: no hang, no CHECK; exactly the acknowledged messages were
 * stored. */
static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    struct bench *bench = new_bench(16);
    uint64_t acks = 0;
    prng_init(&prng, 3);
    for (uint32_t i = 0; i < 30000; i++) {
        struct test_packet packet =
            message((uint32_t)prng_below(&prng, 16), 1 + (uint32_t)prng_below(&prng, 70), i);
        if (prng_below(&prng, 3) == 0) {
            test_flip(&packet, (uint32_t)prng_below(&prng, packet.count),
                      (uint32_t)prng_below(&prng, 128));
        }
        if (prng_below(&prng, 3) == 0) {
            test_remove(&packet, (uint32_t)prng_below(&prng, packet.count));
        }
        bench->response = prng_below(&prng, 10) == 0 ? EXANEST_AXI_DECODE_ERROR : EXANEST_AXI_OKAY;
        send(bench, &packet);
        drain(bench);
        for (uint32_t n = 0; n < bench->answer_count; n++) {
            acks += bench->answers[n].header.aux >> 10 == EXANEST_ACK;
        }
        bench->answer_count = 0;
        const struct exanest_system_queue *queue = &bench->mailbox.queues[QUEUE];
        (void)exanest_system_mailbox_read(
            &bench->mailbox, QUEUE,
            queue->head + (uint32_t)prng_below(&prng, queue->tail - queue->head + 1));
    }
    assert_int_equal(acks, bench->mailbox.queues[QUEUE].tail);
    assert_int_equal(acks, bench->mailbox.counters.verdicts[EXANEST_SYSTEM_STORED]);
    assert_true(acks > 5000 && bench->mailbox.counters.verdicts[EXANEST_SYSTEM_FAULT] > 100);
    free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),     cmocka_unit_test(test_back_to_back),
        cmocka_unit_test(test_notification), cmocka_unit_test(test_full),
        cmocka_unit_test(test_fault),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_close),        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
