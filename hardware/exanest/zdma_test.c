/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A write arrives byte for byte, in packets of the right size, with no more of them under
 *         way than may be. An error fails the transfer and leaves memory alone.
 * Method  Two engines with a memory each, and wires that take time; and one engine alone, to which
 *         a test sends any packet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/exanest/test_beats.h"
#include "hardware/exanest/zdma.h"

#define PDID   9u
#define BASE   UINT64_C(0x5ffff0000) /* Memory crosses bit 32 of the addresses. */
#define MEMORY 0x20000u
#define READS  32u
#define WIRE   4096u

struct end {
    struct exanest_zdma zdma;
    uint8_t memory[MEMORY];
    enum exanest_axi_response reads_give, writes_give;
    struct exanest_memory_read reads[READS];
    uint64_t read_due[READS];
    uint32_t read_head, read_tail, read_at;
    uint64_t write_due[READS];
    uint32_t write_head, write_tail;
    bool writing; /* In the midst of a burst. */
};

/* Words on their way, one way. */
struct wire {
    uint32_t head, tail;
    uint64_t due[WIRE];
    struct exanest_beat beats[WIRE];
};

struct bench {
    uint64_t now;
    uint32_t delay, memory_cycles, stall; /* `stall` of 8 cycles the wires stand still. */
    struct prng prng;
    struct end ends[2];
    struct wire wires[2]; /* Wires that begin at end i. */
    uint32_t under_way, most, packets;
};

static struct bench *new_bench(uint16_t packet, uint8_t outstanding)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    bench->delay = 20;
    bench->memory_cycles = 10;
    prng_init(&bench->prng, 1);
    for (uint32_t i = 0; i < 2; i++) {
        struct exanest_zdma_config config = exanest_zdma_defaults(i);
        config.packet = packet;
        config.outstanding = outstanding;
        exanest_zdma_init(&bench->ends[i].zdma, &config);
    }
    return bench;
}

static void step_reads(struct bench *bench, struct end *end)
{
    struct exanest_memory_read read;
    if (end->read_tail - end->read_head < READS && exanest_zdma_next_read(&end->zdma, &read)) {
        assert_true(read.address % EXANEST_PAGE_BYTES + read.bytes <= EXANEST_PAGE_BYTES);
        end->read_due[end->read_tail % READS] = bench->now + bench->memory_cycles;
        end->reads[end->read_tail++ % READS] = read;
    }
    if (end->read_head == end->read_tail || end->read_due[end->read_head % READS] > bench->now) {
        return;
    }
    const struct exanest_memory_read *oldest = &end->reads[end->read_head % READS];
    const uint32_t words = exanest_payload_words(oldest->address, oldest->bytes);
    const uint64_t va = (oldest->address & ~UINT64_C(15)) + 16 * (uint64_t)end->read_at;
    struct exanest_read_beat beat = {.response = (uint8_t)end->reads_give,
                                     .last = end->read_at + 1 == words};
    memcpy(&beat.word, end->memory + (va - BASE), 16);
    end->read_at = beat.last ? 0 : end->read_at + 1;
    end->read_head += beat.last;
    exanest_zdma_on_read_beat(&end->zdma, &beat);
}

static void step_writes(struct bench *bench, struct end *end)
{
    struct exanest_memory_write write;
    if (exanest_zdma_next_write(&end->zdma, &write)) {
        assert_int_equal(write.pdid, PDID);
        assert_int_equal(write.first, !end->writing);
        end->writing = !write.last;
        assert_true(write.va % 16 == 0 && write.va >= BASE && write.va < BASE + MEMORY);
        for (uint32_t i = 0; i < 16 && end->writes_give == EXANEST_AXI_OKAY; i++) {
            if ((write.lanes >> i & 1) != 0) {
                end->memory[write.va - BASE + i] = ((const uint8_t *)&write.word)[i];
            }
        }
        if (write.last) {
            end->write_due[end->write_tail++ % READS] = bench->now + bench->memory_cycles;
        }
    }
    if (end->write_head != end->write_tail &&
        end->write_due[end->write_head % READS] <= bench->now) {
        end->write_head++;
        exanest_zdma_on_write_response(&end->zdma, end->writes_give);
    }
}

/* Follows which packets are outstanding, as a listener at the first end's wires sees them. */
static void listen(struct bench *bench, uint32_t from, const struct exanest_beat *beat)
{
    struct exanest_header header;
    if (beat->part != EXANEST_HEADER) {
        return;
    }
    assert_int_equal(exanest_header_decode(beat->word, &header), EXANEST_GOOD);
    if (from == 0 && header.type == EXANEST_ZDMA_WRITE) {
        const struct exanest_zdma_config *config = &bench->ends[0].zdma.config;
        assert_true(header.target.va % config->packet + header.bytes <= config->packet);
        bench->packets++;
        bench->under_way++;
        bench->most = bench->under_way > bench->most ? bench->under_way : bench->most;
    }
}

static bool answers(const struct exanest_beat *beat)
{
    return beat->part == EXANEST_HEADER && beat->last;
}

static void step_wire(struct bench *bench, uint32_t from)
{
    struct exanest_zdma *to = &bench->ends[!from].zdma;
    struct wire *wire = &bench->wires[from];
    struct exanest_beat beat;
    if (wire->head != wire->tail && wire->due[wire->head % WIRE] <= bench->now &&
        exanest_zdma_ready(to, &wire->beats[wire->head % WIRE])) {
        const struct exanest_beat *oldest = &wire->beats[wire->head++ % WIRE];
        bench->under_way -= from == 1 && answers(oldest);
        exanest_zdma_take(to, oldest);
    }
    if (prng_below(&bench->prng, 8) < bench->stall ||
        !exanest_zdma_offer(&bench->ends[from].zdma, &beat)) {
        return;
    }
    assert_true(wire->tail - wire->head < WIRE);
    wire->due[wire->tail % WIRE] = bench->now + bench->delay;
    wire->beats[wire->tail++ % WIRE] = beat;
    exanest_zdma_taken(&bench->ends[from].zdma);
    listen(bench, from, &beat);
}

static void cycle(struct bench *bench)
{
    bench->now++;
    for (uint32_t i = 0; i < 2; i++) {
        step_wire(bench, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        step_reads(bench, &bench->ends[i]);
        step_writes(bench, &bench->ends[i]);
        exanest_zdma_step(&bench->ends[i].zdma);
    }
}

static struct exanest_zdma_transfer transfer_of(uint64_t source, uint64_t target, uint32_t bytes)
{
    return (struct exanest_zdma_transfer){
        .source = BASE + source, .target = {1, BASE + target}, .bytes = bytes, .pdid = PDID};
}

static struct exanest_zdma_state run(struct bench *bench,
                                     const struct exanest_zdma_transfer *transfer)
{
    struct exanest_zdma *zdma = &bench->ends[0].zdma;
    assert_int_equal(exanest_zdma_start(zdma, transfer), EXANEST_ZDMA_STARTED);
    for (uint32_t i = 0; i < 400000 && !exanest_zdma_idle(zdma); i++) {
        cycle(bench);
    }
    assert_true(exanest_zdma_idle(zdma));
    return exanest_zdma_state(zdma);
}

/* -- Two engines --------------------------------------------------------------------------------*/

static void fill(struct bench *bench, uint8_t *bytes)
{
    for (uint32_t i = 0; i < MEMORY; i++) {
        bytes[i] = (uint8_t)prng_next(&bench->prng);
    }
}

static void one_trial(uint64_t seed)
{
    struct prng prng;
    prng_init(&prng, seed);
    const uint16_t packet = (uint16_t)(16u << prng_below(&prng, 5));
    const uint8_t outstanding = (uint8_t)(1 + prng_below(&prng, 64));
    struct bench *bench = new_bench(packet, outstanding);
    uint8_t *expected = malloc(MEMORY);
    assert_non_null(expected);
    bench->prng = prng;
    bench->stall = (uint32_t)prng_below(&prng, 8);
    bench->delay = (uint32_t)prng_below(&prng, 100);
    fill(bench, bench->ends[0].memory);
    fill(bench, bench->ends[1].memory);
    memcpy(expected, bench->ends[1].memory, MEMORY);
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t bytes = 1 + (uint32_t)prng_below(&prng, i == 0 ? 0x4000 : 300);
        const uint32_t source = (uint32_t)prng_below(&prng, MEMORY - bytes);
        const uint32_t target = (uint32_t)prng_below(&prng, MEMORY - bytes);
        const struct exanest_zdma_transfer transfer = transfer_of(source, target, bytes);
        bench->packets = 0;
        const struct exanest_zdma_state state = run(bench, &transfer);
        assert_int_equal(state.phase, EXANEST_ZDMA_DONE);
        assert_int_equal(state.answered, bytes);
        assert_int_equal(bench->packets, (target + bytes - 1) / packet - target / packet + 1);
        memcpy(expected + target, bench->ends[0].memory + source, bytes);
        assert_memory_equal(expected, bench->ends[1].memory, MEMORY);
    }
    assert_true(bench->most <= outstanding && bench->under_way == 0);
    assert_true(exanest_zdma_idle(&bench->ends[1].zdma));
    free(expected);
    free(bench);
}

static void test_bytes_arrive(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        one_trial(seed);
    }
}

/* Both ends send to each other at once. */
static void test_both_ways(void **state)
{
    (void)state;
    struct bench *bench = new_bench(64, 6);
    struct exanest_zdma_transfer transfer = transfer_of(0, 0x8000, 0x2000);
    fill(bench, bench->ends[0].memory);
    fill(bench, bench->ends[1].memory);
    assert_int_equal(exanest_zdma_start(&bench->ends[0].zdma, &transfer), EXANEST_ZDMA_STARTED);
    transfer.target.coordinate = 0;
    assert_int_equal(exanest_zdma_start(&bench->ends[1].zdma, &transfer), EXANEST_ZDMA_STARTED);
    for (uint32_t i = 0; i < 40000; i++) {
        cycle(bench);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(bench->ends[i].zdma.state.phase, EXANEST_ZDMA_DONE);
        assert_memory_equal(bench->ends[i].memory, bench->ends[!i].memory + 0x8000, 0x2000);
    }
    free(bench);
}

/* EXANEST_ZDMA_OUTSTANDING packets leave before the first answer, which a slow peer never gives; no
 * more do. */
static void test_six_are_outstanding(void **state)
{
    (void)state;
    struct bench *bench = new_bench(EXANEST_ZDMA_PACKET, EXANEST_ZDMA_OUTSTANDING);
    const struct exanest_zdma_transfer transfer = transfer_of(0, 0, 0x1000);
    bench->memory_cycles = 1000;
    assert_int_equal(exanest_zdma_start(&bench->ends[0].zdma, &transfer), EXANEST_ZDMA_STARTED);
    for (uint32_t i = 0; i < 1900; i++) {
        cycle(bench);
    }
    assert_int_equal(bench->packets, 6);
    for (uint32_t i = 0; i < 300; i++) {
        cycle(bench);
    }
    assert_in_range(bench->under_way, 0, 6);
    assert_int_equal(bench->most, 6);
    free(bench);
}

/* -- Errors -------------------------------------------------------------------------------------*/

static void test_memory_refuses(void **state)
{
    (void)state;
    static const enum exanest_status statuses[] = {EXANEST_ACK, EXANEST_ACK,
                                                   EXANEST_NACK_PAGE_FAULT, EXANEST_NACK_DECODE};
    const struct exanest_zdma_transfer transfer = transfer_of(0x100, 0x200, 1000);
    for (uint32_t bad = EXANEST_AXI_SLAVE_ERROR; bad <= EXANEST_AXI_DECODE_ERROR; bad++) {
        struct bench *bench = new_bench(64, 6);
        bench->ends[1].writes_give = (enum exanest_axi_response)bad;
        struct exanest_zdma_state result = run(bench, &transfer);
        assert_int_equal(result.phase, EXANEST_ZDMA_FAILED);
        assert_int_equal(result.status, statuses[bad]);
        assert_true(bench->packets < 16 && result.answered == 0 && !result.timed_out);
        assert_true(bench->ends[1].zdma.counters.verdicts[EXANEST_ZDMA_FAULT] > 0);
        bench->ends[0].reads_give = (enum exanest_axi_response)bad;
        bench->packets = 0;
        result = run(bench, &transfer);
        assert_int_equal(result.phase, EXANEST_ZDMA_FAILED);
        assert_int_equal(result.status, EXANEST_NACK_PAGE_FAULT);
        assert_int_equal(bench->packets, 0);
        bench->ends[0].reads_give = bench->ends[1].writes_give = EXANEST_AXI_OKAY;
        result = run(bench, &transfer);
        assert_int_equal(result.phase, EXANEST_ZDMA_DONE);
        free(bench);
    }
}

/* A packet, or an answer, is lost: the transfer fails after the time; the next one works, also if
 * the answer comes after all. */
static void test_lost(void **state)
{
    (void)state;
    const struct exanest_zdma_transfer transfer = transfer_of(0x100, 0x200, 64);
    for (uint32_t from = 0; from < 2; from++) {
        struct bench *bench = new_bench(64, 6);
        struct wire *wire = &bench->wires[from];
        struct exanest_zdma *zdma = &bench->ends[0].zdma;
        assert_int_equal(exanest_zdma_start(zdma, &transfer), EXANEST_ZDMA_STARTED);
        while (wire->tail < (from == 0 ? 3 : 1)) {
            cycle(bench);
        }
        const struct exanest_beat first = wire->beats[0];
        wire->head = wire->tail;
        while (!exanest_zdma_idle(zdma)) {
            cycle(bench);
        }
        assert_in_range(bench->now, 15000, 15100);
        assert_true(zdma->state.phase == EXANEST_ZDMA_FAILED && zdma->state.timed_out);
        if (from == 1) {
            exanest_zdma_take(zdma, &first);
            assert_int_equal(zdma->counters.verdicts[EXANEST_ZDMA_STALE], 1);
        }
        const struct exanest_zdma_state result = run(bench, &transfer);
        assert_int_equal(result.phase, EXANEST_ZDMA_DONE);
        free(bench);
    }
}

static void test_start_is_judged(void **state)
{
    (void)state;
    const uint64_t end = UINT64_C(1) << EXANEST_MEMORY_BITS;
    struct bench *bench = new_bench(64, 6);
    struct exanest_zdma *zdma = &bench->ends[0].zdma;
    struct exanest_zdma_transfer transfer = transfer_of(0, 0, 0);
    assert_int_equal(exanest_zdma_start(zdma, &transfer), EXANEST_ZDMA_NO_BYTES);
    transfer.bytes = 17;
    transfer.source = end - 16;
    assert_int_equal(exanest_zdma_start(zdma, &transfer), EXANEST_ZDMA_NOT_MEMORY);
    transfer.source = BASE;
    transfer.target.va = exanest_peripheral_va(EXANEST_RT_RESPONSES, 0);
    assert_int_equal(exanest_zdma_start(zdma, &transfer), EXANEST_ZDMA_NOT_MEMORY);
    transfer.target.va = end - 17;
    assert_int_equal(exanest_zdma_start(zdma, &transfer), EXANEST_ZDMA_STARTED);
    assert_int_equal(exanest_zdma_start(zdma, &transfer), EXANEST_ZDMA_BUSY);
    free(bench);
}

/* -- One engine, and packets that a test makes --------------------------------------------------*/

static struct test_packet packet_of(uint8_t type, uint64_t va, uint16_t bytes, uint8_t *payload)
{
    const struct exanest_header header = {.target = {1, va},
                                          .pdid = PDID,
                                          .type = type,
                                          .bytes = bytes,
                                          .has_footer = true,
                                          .priority = type == EXANEST_WRITE,
                                          .aux = exanest_zdma_aux(BASE)};
    const struct exanest_footer footer = {.tid = 77, .first = true, .last = true};
    return test_packet(&header, &footer, payload);
}

/* Gives it to the second end; returns the answer's status, or -1. `where`: its peripheral. */
static int answer_to(struct bench *bench, const struct test_packet *packet, uint32_t *where)
{
    struct end *end = &bench->ends[1];
    struct exanest_beat beat;
    for (uint32_t i = 0; i < packet->count; i++) {
        assert_true(exanest_zdma_ready(&end->zdma, &packet->beats[i]));
        exanest_zdma_take(&end->zdma, &packet->beats[i]);
    }
    int status = -1;
    for (uint32_t i = 0; i < 60; i++) {
        bench->now++;
        step_writes(bench, end);
        exanest_zdma_step(&end->zdma);
        if (exanest_zdma_offer(&end->zdma, &beat)) {
            struct exanest_header header;
            assert_true(beat.last);
            assert_int_equal(exanest_header_decode(beat.word, &header), EXANEST_GOOD);
            assert_int_equal(header.aux & 0x3ff, 77);
            assert_int_equal(header.pdid, PDID);
            *where = exanest_va_peripheral(header.target.va);
            status = header.aux >> 10;
            exanest_zdma_taken(&end->zdma);
        }
    }
    assert_true(exanest_zdma_idle(&end->zdma));
    return status;
}

/* Nobody takes the answers: then no more packets are taken. Answers go before packets. */
static void test_answers_need_room(void **state)
{
    (void)state;
    uint8_t payload[16] = {0};
    struct bench *bench = new_bench(64, 6);
    struct end *end = &bench->ends[1];
    struct exanest_beat beat;
    struct exanest_zdma_transfer transfer = transfer_of(0, 0, 64);
    const struct test_packet packet =
        packet_of(EXANEST_ZDMA_WRITE, exanest_zdma_va(BASE), sizeof(payload), payload);
    uint32_t taken = 0;
    for (; exanest_zdma_ready(&end->zdma, packet.beats); taken++) {
        assert_true(taken < 100);
        for (uint32_t i = 0; i < packet.count; i++) {
            exanest_zdma_take(&end->zdma, &packet.beats[i]);
        }
        for (uint32_t i = 0; i < 20; i++) {
            bench->now++;
            step_writes(bench, end);
            exanest_zdma_step(&end->zdma);
        }
    }
    assert_int_equal(taken, EXANEST_REPLIES_MAX);
    assert_int_equal(exanest_zdma_start(&end->zdma, &transfer), EXANEST_ZDMA_STARTED);
    for (uint32_t left = taken; left > 0; left--) {
        for (uint32_t i = 0; i < 40; i++) {
            bench->now++;
            step_reads(bench, end);
            exanest_zdma_step(&end->zdma);
        }
        assert_true(exanest_zdma_offer(&end->zdma, &beat) && beat.last);
        assert_int_equal(end->zdma.count > 0, true);
        exanest_zdma_taken(&end->zdma);
    }
    exanest_zdma_step(&end->zdma);
    assert_true(exanest_zdma_offer(&end->zdma, &beat) && !beat.last);
    free(bench);
}

/* If nobody takes them for long, packets are taken again, and dropped; those already in memory keep
 * their answers. */
static void test_patience_ends(void **state)
{
    (void)state;
    uint8_t payload[16] = {0};
    struct bench *bench = new_bench(64, 6);
    struct end *end = &bench->ends[1];
    struct exanest_beat beat;
    const struct test_packet packet =
        packet_of(EXANEST_ZDMA_WRITE, exanest_zdma_va(BASE), sizeof(payload), payload);
    for (uint32_t taken = 0; taken < EXANEST_REPLIES_MAX + 3; taken++) {
        uint32_t waited = 0;
        for (; !exanest_zdma_ready(&end->zdma, packet.beats); waited++) {
            assert_true(waited <= EXANEST_PATIENCE_CYCLES);
            exanest_zdma_step(&end->zdma);
        }
        assert_int_equal(waited > 0, taken == EXANEST_REPLIES_MAX);
        for (uint32_t i = 0; i < packet.count; i++) {
            exanest_zdma_take(&end->zdma, &packet.beats[i]);
        }
        for (uint32_t i = 0; i < 20; i++) {
            bench->now++;
            step_writes(bench, end);
            exanest_zdma_step(&end->zdma);
        }
    }
    assert_int_equal(end->zdma.counters.unanswered, 3);
    assert_int_equal(end->zdma.counters.verdicts[EXANEST_ZDMA_STORED], EXANEST_REPLIES_MAX);
    for (uint32_t left = EXANEST_REPLIES_MAX; left > 0; left--) {
        assert_true(exanest_zdma_offer(&end->zdma, &beat) && beat.last);
        exanest_zdma_taken(&end->zdma);
        exanest_zdma_step(&end->zdma);
    }
    assert_true(exanest_zdma_idle(&end->zdma));
    free(bench);
}

static void test_who_does_not_belong(void **state)
{
    (void)state;
    const uint64_t va = exanest_zdma_va(BASE);
    uint8_t payload[64] = {1, 2, 3};
    struct bench *bench = new_bench(64, 6);
    uint32_t where = 99;
    struct test_packet packet = packet_of(EXANEST_ZDMA_WRITE, va, 64, payload);
    assert_int_equal(answer_to(bench, &packet, &where), EXANEST_ACK);
    assert_int_equal(where, EXANEST_ZDMA);
    assert_memory_equal(bench->ends[1].memory, payload, 64);
    payload[0] = 9;
    packet = packet_of(EXANEST_ZDMA_WRITE, va, 0, payload);
    assert_int_equal(answer_to(bench, &packet, &where), EXANEST_NACK_DECODE);
    packet = packet_of(EXANEST_ZDMA_READ, va, 64, payload);
    assert_int_equal(answer_to(bench, &packet, &where), EXANEST_NACK_DECODE);
    assert_int_equal(where, EXANEST_ZDMA);
    packet = packet_of(EXANEST_ZDMA_RESPONSE, va, 64, payload);
    assert_int_equal(answer_to(bench, &packet, &where), -1);
    packet = packet_of(EXANEST_WRITE, va, 64, payload);
    assert_int_equal(answer_to(bench, &packet, &where), EXANEST_NACK_DECODE);
    assert_int_equal(where, EXANEST_PACKETIZER);
    packet = packet_of(EXANEST_ZDMA_WRITE, BASE, 64, payload);
    assert_int_equal(answer_to(bench, &packet, &where), EXANEST_NACK_DECODE);
    packet = packet_of(EXANEST_ZDMA_WRITE, va, 64, payload);
    test_remove(&packet, 2);
    assert_int_equal(answer_to(bench, &packet, &where), EXANEST_NACK_CRC);
    struct exanest_header header = {.target = {1, va},
                                    .pdid = PDID,
                                    .bytes = 64,
                                    .type = EXANEST_ZDMA_WRITE,
                                    .has_footer = true,
                                    .aux = 0x80};
    const struct exanest_footer footer = {.tid = 77};
    packet = test_packet(&header, &footer, payload); /* An address of 40 bits. */
    assert_int_equal(answer_to(bench, &packet, &where), EXANEST_NACK_DECODE);
    assert_int_equal(bench->ends[1].memory[0], 1);
    free(bench);
}

/* For any wrong bit: nothing is written, and no answer says that something was. */
static void test_flipped_bits(void **state)
{
    (void)state;
    uint8_t payload[20], nothing[MEMORY] = {0};
    memset(payload, 0xa5, sizeof(payload));
    struct bench *bench = new_bench(64, 6);
    const struct test_packet good =
        packet_of(EXANEST_ZDMA_WRITE, exanest_zdma_va(BASE + 7), sizeof(payload), payload);
    for (uint32_t bit = 0; bit < 128 * good.count; bit++) {
        struct test_packet packet = good;
        uint32_t where;
        test_flip(&packet, bit / 128, bit % 128);
        const int status = answer_to(bench, &packet, &where);
        const bool in_payload = bit / 128 > 0 && bit / 128 + 1 < good.count;
        assert_true(status == (in_payload ? EXANEST_NACK_CRC : -1) || status == EXANEST_NACK_CRC);
    }
    assert_memory_equal(bench->ends[1].memory, nothing, MEMORY);
    assert_int_equal(bench->ends[1].zdma.counters.verdicts[EXANEST_ZDMA_STORED], 0);
    free(bench);
}

/* Answers that are not to what waits: of an earlier use, of another domain, with no known status.
 */
static void test_forged_answers(void **state)
{
    (void)state;
    const struct exanest_zdma_transfer transfer = transfer_of(0, 0, 64);
    struct bench *bench = new_bench(64, 6);
    struct exanest_zdma *zdma = &bench->ends[0].zdma;
    bench->delay = 1000;
    assert_int_equal(exanest_zdma_start(zdma, &transfer), EXANEST_ZDMA_STARTED);
    while (zdma->waiting == 0) {
        cycle(bench);
    }
    struct exanest_header header = {.target = {0, exanest_zdma_va(0)},
                                    .pdid = PDID,
                                    .type = EXANEST_ACKNOWLEDGEMENT,
                                    .aux = exanest_aux(EXANEST_ACK, 1 << 6)};
    struct exanest_header bad[4] = {header, header, header, header};
    bad[0].aux = exanest_aux(EXANEST_ACK, 2 << 6);
    bad[1].aux = exanest_aux(EXANEST_ACK, 1 << 6 | 1);
    bad[2].pdid = PDID + 1;
    bad[3].aux = (uint16_t)(EXANEST_STATUS_COUNT << 10 | 1 << 6);
    for (uint32_t i = 0; i < 4; i++) {
        const struct test_packet packet = test_packet(&bad[i], NULL, NULL);
        exanest_zdma_take(zdma, packet.beats);
        assert_int_equal(zdma->waiting, 1);
    }
    assert_int_equal(zdma->counters.verdicts[EXANEST_ZDMA_STALE], 3);
    assert_int_equal(zdma->counters.verdicts[EXANEST_ZDMA_UNEXPECTED], 1);
    const struct test_packet packet = test_packet(&header, NULL, NULL);
    exanest_zdma_take(zdma, packet.beats);
    assert_int_equal(zdma->waiting, 0);
    exanest_zdma_step(zdma);
    assert_int_equal(zdma->state.phase, EXANEST_ZDMA_DONE);
    free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_arrive),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_six_are_outstanding),
        cmocka_unit_test(test_memory_refuses),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_start_is_judged),
        cmocka_unit_test(test_who_does_not_belong),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_forged_answers),
        cmocka_unit_test(test_answers_need_room),
        cmocka_unit_test(test_patience_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
