/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every active transaction gets a packet in its turn, of the right bytes; a full port does
 *         not hold up another one; chains, errors and full FIFOs end as they should.
 * Method  Made cases in a send unit whose every read and packet is held against a model
 *         (exadma_world.h). Behaviours EXA-08 to EXA-10, EXA-12, EXA-13, EXA-15 to EXA-20, EXA-22.
 */
#include "hardware/exanest/exadma_world.h"

static struct world *usual(void)
{
    return world_new(&EXANEST_EXADMA_USUAL, 1);
}

/* With room for all packets of a test, so that memory and network need not do anything. */
static struct world *roomy(void)
{
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.slots = 16;
    return world_new(&config, 1);
}

/* The cycle and the transaction of the next read. */
static uint32_t next_read(struct world *world)
{
    const uint64_t before = world->last_read_at;
    for (int i = 0; i < 1000 && world->last_read_at == before; i++) {
        world_cycle(world);
    }
    assert_true(world->last_read_at != before);
    return world->last_tid;
}

/* EXA-15: three blocks, one packet each in turn; a packet takes five cycles. */
static void test_round_robin(void **state)
{
    (void)state;
    struct world *world = usual();
    for (uint32_t tid = 7; tid < 10; tid++) {
        const struct exanest_descriptor descriptor = world_block_of(tid, 16384);
        world_post(world, tid, &descriptor);
    }
    while (world->store_head != world->store_tail) {
        world_cycle(world); /* Some packets of the first block leave before the others are there. */
    }
    uint32_t order[3];
    for (int i = 0; i < 3; i++) {
        order[i] = next_read(world);
    }
    assert_int_equal(order[0] + order[1] + order[2], 7 + 8 + 9);
    assert_true(order[0] != order[1] && order[1] != order[2]);
    while (exanest_buffer_has_room(&world->dma->buffers[0])) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(next_read(world), order[i]);
        }
    }
    world_drain(world);
    for (uint32_t tid = 7; tid < 10; tid++) {
        world_check_end(world, tid);
    }
    world_free(world);
}

/* From the store to the read and from read to read, five cycles; six over a 4 KB line. */
static void test_cycles(void **state)
{
    (void)state;
    struct world *world = usual();
    struct exanest_descriptor descriptor = world_block_of(3, 1024);
    descriptor.source += 4096 - 256 - 16;
    world_post(world, 3, &descriptor);
    while (exanest_scheduler_idle(&world->dma->scheduler)) {
        world_cycle(world);
    }
    /* The store was taken in the cycle that is counted by now. */
    const uint64_t stored = world->cycle;
    next_read(world);
    assert_int_equal(world->last_read_at - stored, 5);
    next_read(world);
    assert_int_equal(world->last_read_at - stored, 10);
    next_read(world); /* Behind the line. */
    assert_int_equal(world->last_read_at - stored, 11);
    next_read(world);
    assert_int_equal(world->last_read_at - stored, 16);
    world_drain(world);
    world_free(world);

    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.scheduler_cycles = 21;
    world = world_new(&config, 1);
    descriptor = world_block_of(3, 1024);
    world_post(world, 3, &descriptor);
    next_read(world);
    const uint64_t first = world->last_read_at;
    next_read(world);
    assert_int_equal(world->last_read_at - first, 21);
    world_drain(world);
    world_free(world);
}

/* EXA-17, EXA-18, EXA-22: all starts of 4 KB lines and lanes; the model judges each packet. */
static void test_packets_of_a_block(void **state)
{
    (void)state;
    struct world *world = usual();
    struct prng prng;
    prng_init(&prng, 2);
    uint64_t expected = 0;
    for (uint32_t round = 0; round < 400; round++) {
        const uint32_t tid = round % EXANEST_TIDS;
        struct exanest_descriptor descriptor =
            world_block_of(tid, 1 + (uint32_t)prng_below(&prng, round % 2 ? 700 : 16384));
        descriptor.source += prng_below(&prng, 8192);
        descriptor.target.va += prng_below(&prng, 512);
        descriptor.notify = prng_below(&prng, 2);
        const uint32_t lane = descriptor.target.va % 256;
        expected += (lane + descriptor.bytes + 255u) / 256;
        world_post(world, tid, &descriptor);
        world_drain(world);
        world_check_end(world, tid);
    }
    assert_int_equal(world->packets, expected);
    assert_true(world->dma->scheduler.counters.second_reads > 100);
    world_free(world);
}

/* EXA-A19: a block that does not begin at a line has one packet more; cut at the source, twice. */
static void test_cut_at_source(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    for (int cuts = 0; cuts < 2; cuts++) {
        config.cuts_at_source = cuts;
        struct world *world = world_new(&config, 1);
        struct exanest_descriptor descriptor = world_block_of(3, 16384);
        world_post(world, 3, &descriptor);
        world_drain(world);
        assert_int_equal(world->packets, 64);
        descriptor.source += 5;
        world_post(world, 3, &descriptor);
        world_drain(world);
        assert_int_equal(world->packets, cuts ? 64 + 128 : 64 + 64);
        descriptor.target.va += 5;
        world_post(world, 3, &descriptor);
        world_drain(world);
        assert_int_equal(world->packets, cuts ? 64 + 128 + 65 : 64 + 64 + 65);
        world_check_end(world, 3);
        world_free(world);
    }
}

/* EXA-16: nothing leaves port 0; its blocks take turns for nothing, those of port 1 go on. */
static void test_full_port(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.ports = 2;
    struct world *world = world_new(&config, 1);
    world->stalled_ports = 1;
    for (uint32_t tid = 0; tid < 4; tid++) {
        struct exanest_descriptor descriptor = world_block_of(tid, 16384);
        descriptor.path = tid % 2;
        world_post(world, tid, &descriptor);
    }
    world_run(world, 4000);
    assert_int_equal(world->ports[0].packets, 0);
    assert_int_equal(world->ports[1].packets, 128);
    assert_int_equal(world->blocks[0].issued + world->blocks[2].issued, 8 * 256);
    assert_true(world->dma->scheduler.counters.turns[EXANEST_TURN_NO_SLOT] > 100);
    world_check_end(world, 1);
    world_check_end(world, 3);
    world->stalled_ports = 0;
    world_drain(world);
    world_check_end(world, 0);
    world_check_end(world, 2);
    world_free(world);
}

/* EXA-20, EXA-19: all descriptors at once. */
static void test_all_at_once(void **state)
{
    (void)state;
    struct world *world = usual();
    struct prng prng;
    prng_init(&prng, 3);
    world->stalled_ports = 1; /* None ends before all have begun. */
    for (uint32_t tid = 0; tid < EXANEST_TIDS; tid++) {
        struct exanest_descriptor descriptor =
            world_block_of(tid, 1 + (uint32_t)prng_below(&prng, 2000));
        descriptor.source += prng_below(&prng, 4096);
        descriptor.pdid = (uint16_t)(100 + tid % 8);
        world_post(world, tid, &descriptor);
    }
    while (world->store_head != world->store_tail) {
        world_cycle(world);
    }
    const struct exanest_scheduler *scheduler = &world->dma->scheduler;
    assert_true((uint32_t)scheduler->count + scheduler->in_hand > EXANEST_TIDS - 10u);
    exanest_exadma_check(world->dma);
    const struct exanest_descriptor during = world_descriptor(world, EXANEST_TIDS - 1);
    assert_true(!during.done && !during.error && during.sent == 0);
    world->stalled_ports = 0;
    world_drain(world);
    assert_int_equal(scheduler->count, 0);
    for (uint32_t tid = 0; tid < EXANEST_TIDS; tid++) {
        world_check_end(world, tid);
    }
    world_free(world);
}

/* EXA-09, EXA-12: ten blocks, of which software starts one; no bubble between them. */
static void test_chain(void **state)
{
    (void)state;
    struct world *world = usual();
    for (int at = 9; at >= 0; at--) {
        const uint32_t tid = 500 - 3 * (uint32_t)at;
        struct exanest_descriptor descriptor = world_block_of(tid, 1000);
        descriptor.chained = at != 9;
        descriptor.successor = (uint16_t)(tid - 3);
        descriptor.waits = at != 0;
        world_post(world, tid, &descriptor);
        world->blocks[tid].predecessor = at == 0 ? -1 : (int)tid + 3;
        if (at != 0) {
            world_drain(world);
            assert_int_equal(world->last_read_at, 0);
        }
    }
    next_read(world);
    const uint64_t first = world->last_read_at;
    world_drain(world);
    /* 4 packets a block; only the slots hold it up. */
    assert_true(world->last_read_at - first <= 39 * 20);
    assert_int_equal(world->packets, 40);
    assert_int_equal(world->dma->scheduler.counters.chained, 9);
    for (uint32_t tid = 473; tid <= 500; tid += 3) {
        world_check_end(world, tid);
    }
    world_free(world);
}

/* EXA-10: room for four; the rest waits at the slave, and nothing is lost. */
static void test_full_fifo(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    config.scheduler_entries = 4;
    struct world *world = world_new(&config, 1);
    world->stalled_ports = 1;
    for (uint32_t tid = 0; tid < 20; tid++) {
        const struct exanest_descriptor descriptor = world_block_of(tid, 600);
        world_post(world, tid, &descriptor);
    }
    world_run(world, 5000);
    assert_true(world->store_head != world->store_tail);
    assert_false(exanest_exadma_write_data_ready(world->dma));
    assert_int_equal(world->dma->list.write_state, EXANEST_WRITE_DATA);
    world->stalled_ports = 0;
    world_drain(world);
    for (uint32_t tid = 0; tid < 20; tid++) {
        world_check_end(world, tid);
    }
    world_free(world);
}

/* EXA-13: sequence and path are those of the last W4 that was written. */
static void test_word_4_stays(void **state)
{
    (void)state;
    struct world *world = usual();
    struct exanest_descriptor descriptor = world_block_of(5, 100);
    descriptor.sequence = 77;
    world_post(world, 5, &descriptor);
    world_drain(world);
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    exanest_descriptor_encode(&descriptor, words);
    for (uint32_t i = 0; i < 3; i++) {
        world_store(world, exanest_host_store_64(5 * 32 + 8 * i, words[i]));
    }
    world->blocks[5].issued = 0;
    world->blocks[5].received = 0;
    world_drain(world);
    assert_int_equal(world->packets, 2);
    world_check_end(world, 5);
    world_free(world);
}

/* A transaction that cannot be sent is answered by Error, and the others go on. */
static void test_wrong_descriptors(void **state)
{
    (void)state;
    struct world *world = usual();
    struct exanest_descriptor wrong[5];
    for (uint32_t i = 0; i < 5; i++) {
        wrong[i] = world_block_of(i, 300);
    }
    wrong[0].bytes = 0;
    wrong[1].bytes = 16385;
    wrong[2].path = 1;
    wrong[3].pdid = 99;
    for (uint32_t i = 0; i < 5; i++) {
        world_post(world, i, &wrong[i]);
    }
    world_drain(world);
    for (uint32_t i = 0; i < 5; i++) {
        const struct exanest_descriptor got = world_descriptor(world, i);
        assert_int_equal(got.error, i != 4);
        assert_int_equal(got.done, i == 4);
    }
    const uint64_t *turns = world->dma->scheduler.counters.turns;
    assert_int_equal(turns[EXANEST_TURN_WRONG_LENGTH], 2);
    assert_int_equal(turns[EXANEST_TURN_WRONG_PATH], 1);
    assert_int_equal(turns[EXANEST_TURN_NO_CHANNEL], 1);
    assert_int_equal(world->packets, 2);
    world_free(world);
}

/* A block that names itself, or one that is over, as its successor: it ends nevertheless. */
static void test_wrong_chains(void **state)
{
    (void)state;
    struct world *world = usual();
    struct exanest_descriptor descriptor = world_block_of(5, 100);
    descriptor.chained = true;
    descriptor.successor = 5;
    world_post(world, 5, &descriptor);
    world_drain(world);
    world_check_end(world, 5);
    struct exanest_descriptor other = world_block_of(6, 100);
    other.chained = true;
    other.successor = 5;
    world_post(world, 6, &other);
    world_drain(world);
    assert_int_equal(world->packets, 2);
    assert_int_equal(world->dma->scheduler.counters.turns[EXANEST_TURN_OVER], 2);
    world_free(world);
}

/* Posts `blocks` blocks of 4 packets, and after some cycles writes the first one's W3 again. */
static void renew(struct world *world, uint32_t blocks, uint32_t wait, bool waits)
{
    struct exanest_descriptor descriptor = world_block_of(5, 1000);
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    for (uint32_t i = 0; i < blocks; i++) {
        const struct exanest_descriptor posted = world_block_of(5 + i, 1000);
        world_post(world, 5 + i, &posted);
    }
    world_run(world, 12 * blocks + wait);
    descriptor.waits = waits;
    exanest_descriptor_encode(&descriptor, words);
    struct exanest_host_store store = exanest_host_store_64(5 * 32 + 16, words[2]);
    bool written = false;
    for (int i = 0; i < 200; i++) {
        struct exanest_memory_read read;
        exanest_exadma_step(world->dma);
        exanest_exadma_next_read(world->dma, &read);
        written = written || exanest_exadma_write(world->dma, &store);
        exanest_exadma_check(world->dma);
    }
    assert_true(written && exanest_scheduler_idle(&world->dma->scheduler));
}

/* EXA-08: a block whose W3 is written again while it is active, which software must not do, begins
 * again, once; with DB = 1 it stops. */
static void test_started_twice(void **state)
{
    (void)state;
    uint64_t twice = 0;
    for (uint32_t wait = 0; wait < 40; wait++) {
        for (uint32_t blocks = 1; blocks <= 2; blocks++) {
            struct world *world = roomy();
            renew(world, blocks, wait, false);
            const struct exanest_scheduler *scheduler = &world->dma->scheduler;
            const struct exanest_descriptor got = world_descriptor(world, 5);
            assert_true(got.done && got.sent == 1000);
            assert_in_range(scheduler->counters.turns[EXANEST_TURN_SENDS], 4 * blocks,
                            4 * blocks + 4);
            twice += scheduler->counters.enqueued_twice;
            world_free(world);
        }
        struct world *world = roomy();
        renew(world, 1, wait, true);
        const struct exanest_descriptor got = world_descriptor(world, 5);
        assert_true(got.waits && !got.done && got.sent == 0);
        world_free(world);
    }
    assert_true(twice > 10);
}

/* EXA-09: a successor that software has enqueued already is not enqueued a second time. */
static void test_active_successor(void **state)
{
    (void)state;
    struct world *world = usual();
    struct exanest_descriptor first = world_block_of(5, 2000);
    first.chained = true;
    first.successor = 6;
    const struct exanest_descriptor next = world_block_of(6, 16384);
    world_post(world, 6, &next);
    world_post(world, 5, &first);
    world_drain(world);
    world_check_end(world, 5);
    world_check_end(world, 6);
    assert_int_equal(world->dma->scheduler.counters.enqueued_twice, 1);
    assert_int_equal(world->dma->scheduler.counters.chained, 0);
    world_free(world);
}

/* The fault of an early packet may come in any cycle of the last one's turn. If it came in
 * time, Done and Error come together and the successor stays parked. */
static void test_fault_in_the_last_turn(void **state)
{
    (void)state;
    uint32_t parked = 0, begun = 0;
    for (uint32_t latency = 0; latency < 30; latency++) {
        struct world *world = usual();
        struct exanest_descriptor next = world_block_of(6, 16), first = world_block_of(5, 272);
        next.waits = true;
        first.chained = true;
        first.successor = 6;
        first.target.va += 240; /* A packet of one word, and one of 256 bytes. */
        world->latency = latency;
        world->fault = 1000000;
        world_post(world, 6, &next);
        world_post(world, 5, &first);
        const struct exanest_pending_list *list = &world->dma->list;
        struct exanest_descriptor got = {.done = false};
        while (!got.done && !got.error) {
            world_cycle(world);
            got = exanest_pending_descriptor(list, 5);
        }
        const uint64_t chained = world->dma->scheduler.counters.chained;
        assert_int_equal(chained, !got.error);
        parked += got.done && got.error;
        begun += chained != 0;
        world_drain(world);
        assert_true(exanest_pending_descriptor(list, 5).error);
        world_free(world);
    }
    assert_true(parked > 0 && begun > 0);
}

/* EXA-A27's variation: the first block leaves whole before the second one begins. (With a packet
 * every 19 cycles: where the interval is even, whose turn it is when a slot becomes free depends on
 * the phase of the FIFO that goes round meanwhile, and the turns are not even.) */
static void test_drains(void **state)
{
    (void)state;
    struct exanest_exadma_config config = EXANEST_EXADMA_USUAL;
    uint64_t first[2];
    for (int drains = 0; drains < 2; drains++) {
        config.drains = drains;
        struct world *world = world_new(&config, 1);
        world->pause = 1;
        for (uint32_t tid = 0; tid < 2; tid++) {
            const struct exanest_descriptor descriptor = world_block_of(tid, 16384);
            world_post(world, tid, &descriptor);
        }
        world_drain(world);
        first[drains] = world->blocks[0].finished_at;
        world_check_end(world, 0);
        world_check_end(world, 1);
        world_free(world);
    }
    assert_in_range(first[0], 124 * 19, 128 * 19 + 100);
    assert_in_range(first[1], 64 * 19, 64 * 19 + 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_packets_of_a_block),
        cmocka_unit_test(test_cut_at_source),
        cmocka_unit_test(test_full_port),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_full_fifo),
        cmocka_unit_test(test_word_4_stays),
        cmocka_unit_test(test_wrong_descriptors),
        cmocka_unit_test(test_wrong_chains),
        cmocka_unit_test(test_started_twice),
        cmocka_unit_test(test_active_successor),
        cmocka_unit_test(test_fault_in_the_last_turn),
        cmocka_unit_test(test_drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
