/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The send unit as a whole: the right packets, in the cycles that its parts sum up to, past
 *         full ports and unreadable pages.
 * Method  Made cases; every read and packet is held against a model (exadma_world.h). Behaviours
 *         EXA-02, EXA-21, EXA-26, EXA-28, EXA-31, and the rows EXA-A6, EXA-A7, EXA-A11, EXA-A19,
 *         EXA-A25, as far as they are the send unit's.
 */
#include "hardware/exanest/exadma_world.h"

/* EXA-02: the worked example (wire/exanest_test.c), from its descriptor. (The memory of the world
 * is not used.) */
static void test_worked_example(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    static struct exanest_exadma dma;
    void *memory = calloc(1, exanest_exadma_bytes(&config));
    config.coordinate = exanest_coordinate((struct exanest_place){.x = 1, .y = 2});
    exanest_exadma_init(&dma, &config, memory);
    exanest_scheduler_map(&dma.scheduler, 2, 5);
    const struct exanest_place place = {.x = 1, .y = 2, .fpga = 1};
    const struct exanest_descriptor descriptor = {
        .source = 0x1000,
        .target = {.coordinate = exanest_coordinate(place), .va = 0x12345678},
        .bytes = 20,
        .pdid = 5,
        .sequence = 1};
    exanest_descriptor_encode(&descriptor, dma.list.words[3]);
    exanest_scheduler_enqueue(&dma.scheduler, 3);
    static const uint8_t expected[4][17] = {
        "\x78\x56\x34\x12\x00\x04\x08\x02\x05\x00\x81\x42\x04\x00\x71\xe5",
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07",
        "\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x00\x00\x00\x00",
        "\xc6\x95\x33\x6c\x03\x00\x08\x02\x01\xc0\x00\x00\x00\x00\x00\x83",
    };
    uint32_t beats = 0, words = 0;
    for (int i = 0; i < 100; i++) {
        struct exanest_memory_read read;
        struct exanest_beat beat;
        exanest_exadma_step(&dma);
        if (exanest_exadma_next_read(&dma, &read)) {
            assert_true(read.address == 0x1000 && read.bytes == 20 && read.axi_id == 2);
            beats = 2;
        }
        if (beats != 0) {
            static const uint64_t data[2] = {0xffffffff13121110, 0x0706050403020100};
            const uint64_t more = UINT64_C(0x0f0e0d0c0b0a0908);
            beats--;
            exanest_exadma_on_read_beat(
                &dma, &(struct exanest_read_beat){
                          .word = {data[beats], more}, .axi_id = 2, .last = beats == 0});
        }
        if (exanest_exadma_offer(&dma, 0, &beat)) {
            assert_memory_equal(&beat.word, expected[words++], 16);
            exanest_exadma_taken(&dma, 0);
        }
    }
    assert_int_equal(words, 4);
    assert_true(exanest_exadma_idle(&dma));
    free(memory);
}

/* EXA-A7's share: store, 5 cycles, memory 15, shifter 2, slot 1, header 1. */
static void test_latency(void **state)
{
    (void)state;
    struct world *world = world_new(&EXANEST_EXADMA_USUAL, 1);
    const struct exanest_descriptor descriptor = world_block_of(3, 16);
    world->latency = 15;
    world_post(world, 3, &descriptor);
    while (exanest_scheduler_idle(&world->dma->scheduler)) {
        world_cycle(world);
    }
    const uint64_t stored = world->cycle;
    while (world->ports[0].words == 0) {
        world_cycle(world);
    }
    assert_int_equal(world->cycle - stored, 5 + 15 + 2 + 1 + 1);
    world_drain(world);
    world_check_end(world, 3);
    world_free(world);
}

/* Cycles of each packet, when port 0 takes nothing for `pause` cycles behind a packet. */
static double interval(const struct exanest_exadma_config *config, uint32_t pause, uint32_t latency,
                       uint32_t source, uint32_t target)
{
    struct world *world = world_new(config, 1);
    world->pause = pause;
    world->latency = latency;
    for (uint32_t tid = 0; tid < 16; tid++) {
        struct exanest_descriptor descriptor = world_block_of(tid, 16384);
        descriptor.source += source;
        descriptor.target.va += target;
        world_post(world, tid, &descriptor);
    }
    world_run(world, 4000);
    const uint64_t cycle = world->cycle, packets = world->packets;
    world_run(world, 8000);
    const double result = (double)(world->cycle - cycle) / (double)(world->packets - packets);
    world_free(world);
    return result;
}

static void assert_near(double got, double expected, double tolerance)
{
    if (got < expected - tolerance || got > expected + tolerance) {
        fail_msg("%.3f is not %.3f +- %.3f", got, expected, tolerance);
    }
}

/* EXA-A6: at a port that is always ready a packet takes 18 cycles; with the crossbar's two, 20. */
static void test_throughput(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    assert_near(interval(&config, 0, 40, 0, 0), 18, 0.02);
    assert_near(interval(&config, 2, 40, 0, 0), 20, 0.02);
    assert_near(interval(&config, 3, 40, 0, 0), 21, 0.02);
    config.scheduler_cycles = 21;
    assert_near(interval(&config, 2, 40, 0, 0), 21, 0.02);
}

/* EXA-A11: throughput over slots, relative to 16 of them. A slot's residence: from its allocation
 * CALC and AR 2, memory 40, 15 beats more, shifter 2, slot 1, header 1, 16 words, then 1 to 3
 * cycles until the scheduler looks. The mean is 79. */
static void test_slots(void **state)
{
    (void)state;
    static const double expected[] = {0, 0.25, 0.50, 0.75, 1, 1};
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.slots = 16;
    const double best = interval(&config, 2, 40, 0, 0);
    for (uint32_t slots = 1; slots <= 5; slots++) {
        config.slots = slots;
        assert_near(best / interval(&config, 2, 40, 0, 0), expected[slots], 0.03);
    }
    /* Settings that must push the ratio out. */
    config.slots = 3;
    assert_near(best / interval(&config, 2, 10, 0, 0), 1, 0.03);
    config.holds_slot = true;
    config.hold_cycles = 20;
    assert_near(best / interval(&config, 2, 40, 0, 0), 0.60, 0.03);
    config.holds_slot = false;
    config.slots = 8;
    config.reads_max = 1;
    assert_near(best / interval(&config, 2, 40, 0, 0), 0.34, 0.03);
}

/* EXA-A19: shifted bytes cost nothing but the block's ends; a bubble between commands does. */
static void test_shifted_throughput(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    const double aligned = interval(&config, 2, 40, 0, 0);
    for (uint32_t i = 0; i < 16; i++) {
        const double shifted = interval(&config, 2, 40, i, (i * 7 + 3) % 16) / aligned;
        assert_true(shifted < 1.02);
    }
    config.shifter_bubble = 8;
    assert_true(interval(&config, 2, 40, 0, 0) / aligned > 1.1);
}

/* EXA-21: each path by its own port, all at once. */
static void test_paths(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.ports = 32;
    struct world *world = world_new(&config, 1);
    world->pause = 600; /* So slow that memory's word a cycle is enough for all of them. */
    for (uint32_t tid = 0; tid < 32; tid++) {
        struct exanest_descriptor descriptor = world_block_of(tid, 16384);
        descriptor.path = (uint8_t)(31 - tid);
        world_post(world, tid, &descriptor);
        world_post_control(world, tid, 31 - tid);
    }
    world_run(world, 8000);
    for (uint32_t port = 0; port < 32; port++) {
        assert_in_range(world->ports[port].packets, 10, 13);
        assert_int_equal(world->ports[port].controls, 1);
    }
    world_drain(world);
    for (uint32_t tid = 0; tid < 32; tid++) {
        assert_int_equal(world->ports[tid].packets, 64);
        world_check_end(world, tid);
    }
    world_free(world);
}

/* EXA-A25: two paths are twice as fast as one, unless they share a small buffer. */
static void test_two_paths(void **state)
{
    (void)state;
    uint64_t packets[3];
    for (uint32_t i = 0; i < 3; i++) {
        struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
        config.ports = 2;
        config.shares_buffer = i == 2;
        config.slots = i == 2 ? 2 : 8;
        struct world *world = world_new(&config, 1);
        world->pause = 19; /* About a link's rate. */
        for (uint32_t tid = 0; tid < 8; tid++) {
            struct exanest_descriptor descriptor = world_block_of(tid, 16384);
            descriptor.path = i == 0 ? 0 : tid % 2;
            world_post(world, tid, &descriptor);
        }
        world_run(world, 6000);
        packets[i] = world->packets;
        world_drain(world);
        assert_int_equal(world->packets, 8 * 64);
        world_free(world);
    }
    assert_near((double)packets[1] / (double)packets[0], 2, 0.05);
    assert_near((double)packets[2] / (double)packets[0], 0.93, 0.1);
}

/* EXA-26: nothing of an unreadable page leaves; the block stops, the others go on. */
static void test_source_fault(void **state)
{
    (void)state;
    struct world *world = world_new(&EXANEST_EXADMA_USUAL, 1);
    struct exanest_descriptor descriptor = world_block_of(5, 16384);
    const struct exanest_descriptor other = world_block_of(6, 16384);
    world_post(world, 5, &descriptor);
    world_post(world, 6, &other);
    while (world->blocks[5].issued == 0) {
        world_cycle(world);
    }
    world->fault = 1000000;
    const uint32_t before = world->blocks[5].issued;
    while (world->blocks[5].issued == before) {
        world_cycle(world);
    }
    world->fault = 0;
    world_drain(world);
    assert_true(world->blocks[5].faulted && !world->blocks[6].faulted);
    assert_true(world->blocks[5].issued < 16384);
    assert_int_equal(world->blocks[5].received, world->blocks[5].issued - 256);
    world_check_end(world, 5);
    world_check_end(world, 6);
    descriptor.sequence++;
    world_post(world, 5, &descriptor);
    world_drain(world);
    world_check_end(world, 5);
    assert_int_equal(world->blocks[5].received, 16384);
    world_free(world);
}

/* EXA-26: the last packet cannot be read, which is known when Done is set and the transaction has
 * been issued anew: the old one's fault does not touch the new one. */
static void test_late_fault(void **state)
{
    (void)state;
    for (int reissued = 0; reissued < 2; reissued++) {
        struct world *world = world_new(&EXANEST_EXADMA_USUAL, 1);
        struct exanest_descriptor descriptor = world_block_of(5, 700);
        world->latency = 400;
        world->fault = 1000000;
        world_post(world, 5, &descriptor);
        while (world->blocks[5].issued < 700) {
            world_cycle(world);
        }
        world_run(world, 10);
        const struct exanest_pending_list *list = &world->dma->list;
        assert_true(exanest_pending_descriptor(list, 5).done);
        assert_false(exanest_pending_descriptor(list, 5).error);
        world->fault = 0;
        if (reissued) {
            descriptor.sequence++;
            world_post(world, 5, &descriptor);
        }
        world_drain(world);
        const struct exanest_descriptor got = world_descriptor(world, 5);
        assert_true(got.done && got.sent == 700);
        assert_int_equal(got.error, !reissued);
        assert_int_equal(world->blocks[5].received, reissued ? 700 : 0);
        assert_int_equal(world->dma->scheduler.counters.stale_faults, reissued ? 3 : 0);
        assert_int_equal(world->dma->scheduler.counters.faults, reissued ? 0 : 3);
        world_free(world);
    }
}

/* A successor stays parked when its predecessor has died. */
static void test_fault_in_a_chain(void **state)
{
    (void)state;
    struct world *world = world_new(&EXANEST_EXADMA_USUAL, 1);
    struct exanest_descriptor next = world_block_of(6, 600), first = world_block_of(5, 16384);
    next.waits = true;
    first.chained = true;
    first.successor = 6;
    world_post(world, 6, &next);
    world_post(world, 5, &first);
    world->blocks[6].predecessor = 5;
    world->fault = 1000000;
    world_drain(world);
    world_check_end(world, 5);
    assert_int_equal(world->blocks[6].issued, 0);
    world->fault = 0;
    first.sequence++;
    world_post(world, 5, &first);
    world_drain(world);
    world_check_end(world, 5);
    world_check_end(world, 6);
    world_free(world);
}

/* EXA-31: three stores behind the descriptor's, and the packet is first on the wire. */
static void test_control_before_data(void **state)
{
    (void)state;
    struct world *world = world_new(&EXANEST_EXADMA_USUAL, 1);
    struct exanest_descriptor descriptor = world_block_of(5, 600);
    descriptor.notify = true;
    descriptor.target.va += 5;
    world_post(world, 5, &descriptor);
    world_post_control(world, 5, 0);
    while (world->ports[0].controls == 0) {
        world_cycle(world);
    }
    assert_int_equal(world->packets, 0);
    world_drain(world);
    assert_int_equal(world->packets, 3);
    world_check_end(world, 5);
    world_free(world);
}

/* EXA-28: port 0 is blocked with a control packet. Others are written and sent as long as nobody
 * stores to port 0; the store to it waits, and the rest of the unit goes on. */
static void test_full_control_slot(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.ports = 2;
    struct world *world = world_new(&config, 1);
    world->stalled_ports = 1;
    struct exanest_descriptor descriptor = world_block_of(5, 16384);
    descriptor.path = 1;
    world_post(world, 5, &descriptor);
    world_post_control(world, 5, 0);
    world_post_control(world, 5, 1);
    world_post_control(world, 5, 1);
    descriptor = world_block_of(6, 600);
    descriptor.path = 1;
    world_post(world, 6, &descriptor);
    world_run(world, 400);
    assert_true(world->store_head == world->store_tail);
    assert_int_equal(world->ports[1].controls, 2);
    world_post_control(world, 6, 0);
    world_run(world, 4000);
    assert_int_equal(world->store_tail - world->store_head, 3);
    assert_int_equal(world->dma->list.write_state, EXANEST_WRITE_CONTROL);
    assert_false(exanest_exadma_write_data_ready(world->dma));
    assert_int_equal(world->ports[0].controls, 0);
    assert_int_equal(world->ports[1].packets, 64 + 3);
    world->stalled_ports = 0;
    world_drain(world);
    assert_int_equal(world->ports[0].controls, 2);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_example),      cmocka_unit_test(test_latency),
        cmocka_unit_test(test_throughput),          cmocka_unit_test(test_slots),
        cmocka_unit_test(test_shifted_throughput),  cmocka_unit_test(test_paths),
        cmocka_unit_test(test_two_paths),           cmocka_unit_test(test_source_fault),
        cmocka_unit_test(test_late_fault),          cmocka_unit_test(test_fault_in_a_chain),
        cmocka_unit_test(test_control_before_data), cmocka_unit_test(test_full_control_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
