/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Blocks that software hands to a send unit arrive, byte for byte, and are answered; then
 *         everything rests.
 * Method  A fabric without R5s: the test stores descriptors and reads the mailbox itself, within a
 *         QFDB and through a torus. Behaviour EXA-60.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "lab/exanest/fabric.h"

#define PDID  5
#define VA    UINT64_C(0x100000)
#define BYTES UINT64_C(0x100000)

struct world {
    struct sim sim;
    struct exanest_fabric fabric;
    struct sim_event store; /* Tries the store again at every edge. */
    struct exanest_host_store stores[4];
    uint32_t at, count, fpga;
};

static void on_store(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(event, struct world, store);
    struct exanest_fpga *fpga = exanest_fabric_fpga(&world->fabric, world->fpga);
    exanest_fabric_wake(&world->fabric, world->fpga);
    if (exanest_exadma_write(&fpga->exadma, &world->stores[world->at])) {
        world->at++;
    }
    if (world->at < world->count) {
        sim_after(sim, event, 6667);
    }
}

static struct world *world_open(const struct exanest_fabric_config *config)
{
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    sim_init(&world->sim, 1);
    exanest_fabric_open(&world->fabric, &world->sim, config);
    sim_event_init(&world->store, on_store);
    for (uint32_t i = 0; i < exanest_fabric_fpgas(&world->fabric); i++) {
        struct exanest_fpga *fpga = exanest_fabric_fpga(&world->fabric, i);
        assert_true(exanest_memory_map(&fpga->memory, PDID, VA, BYTES, true));
        exanest_fpga_give_channel(fpga, 0, PDID);
    }
    return world;
}

static void world_close(struct world *world)
{
    exanest_fabric_close(&world->fabric);
    free(world);
}

static uint8_t *bytes_of(struct world *world, uint32_t fpga, uint64_t va, uint64_t bytes)
{
    uint8_t *at =
        exanest_memory_bytes(&exanest_fabric_fpga(&world->fabric, fpga)->memory, PDID, va, bytes);
    assert_non_null(at);
    return at;
}

static void fill(struct world *world, uint32_t fpga, uint64_t va, uint32_t bytes)
{
    uint8_t *at = bytes_of(world, fpga, va, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)prng_next(&world->sim.prng);
    }
}

/* Hands a block to the send unit of `from`, from now on. */
static void send(struct world *world, uint32_t from, uint32_t to, uint32_t tid, uint64_t source,
                 uint64_t target, uint32_t bytes)
{
    const struct exanest_descriptor descriptor = {
        .source = source,
        .target = {exanest_fabric_fpga(&world->fabric, to)->coordinate, target},
        .bytes = (uint16_t)bytes,
        .pdid = PDID,
        .sequence = 1,
    };
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    exanest_descriptor_encode(&descriptor, words);
    static const uint8_t order[] = {3, 0, 1, 2}; /* W3 starts it. */
    for (uint32_t i = 0; i < 4; i++) {
        world->stores[i] = exanest_host_store_64(32 * tid + 8 * order[i], words[order[i]]);
    }
    world->fpga = from;
    world->at = 0;
    world->count = 4;
    sim_schedule(&world->sim, &world->store, exanest_fabric_edge_ps(&world->fabric));
}

/* Runs until the mailbox of `from` has a response; returns when. */
static uint64_t await_response(struct world *world, uint32_t from,
                               struct exanest_response *response)
{
    struct exanest_rt_mailbox *mailbox = &exanest_fabric_fpga(&world->fabric, from)->rt_mailbox;
    const uint64_t until_ps = world->sim.now_ps + UINT64_C(10000000000);
    while (mailbox->responses == 0) {
        assert_true(sim_step(&world->sim));
        assert_true(world->sim.now_ps < until_ps);
    }
    *response = exanest_response_decode(exanest_rt_mailbox_read_response(mailbox));
    return world->sim.now_ps;
}

static void check_block(struct world *world, uint32_t from, uint32_t to, uint64_t source,
                        uint64_t target, uint32_t bytes)
{
    struct exanest_response response;
    fill(world, from, source, bytes);
    memset(bytes_of(world, to, target, bytes), 0, bytes);
    send(world, from, to, 7, source, target, bytes);
    await_response(world, from, &response);
    assert_true(response.valid);
    assert_int_equal(response.tid, 7);
    assert_int_equal(response.status, EXANEST_ACK);
    assert_memory_equal(bytes_of(world, from, source, bytes), bytes_of(world, to, target, bytes),
                        bytes);
    /* Everything rests when nothing is left to do. */
    while (sim_step(&world->sim)) {
    }
    assert_int_equal(exanest_fabric_fpga(&world->fabric, to)->receiver.arrivals, 0);
}

static void test_within_a_qfdb(void **state)
{
    (void)state;
    const struct exanest_fabric_config config = exanest_fabric_default(1, 1, 1);
    struct world *world = world_open(&config);
    for (uint32_t from = 0; from < 4; from++) {
        for (uint32_t to = 0; to < 4; to++) {
            check_block(world, from, to, VA, VA + 0x8000, 16384);
            check_block(world, from, to, VA + 3, VA + 0x8009, 1000);
            check_block(world, from, to, VA, VA + 0x8000, 1);
        }
    }
    world_close(world);
}

static void test_through_the_torus(void **state)
{
    (void)state;
    const struct exanest_fabric_config config = exanest_fabric_default(3, 2, 2);
    struct world *world = world_open(&config);
    for (uint32_t i = 0; i < 100; i++) {
        const uint32_t from = (uint32_t)prng_below(&world->sim.prng, 48);
        const uint32_t to = (uint32_t)prng_below(&world->sim.prng, 48);
        const uint32_t offset = (uint32_t)prng_below(&world->sim.prng, 64);
        const uint32_t bytes = 1 + (uint32_t)prng_below(&world->sim.prng, 16384 - offset);
        check_block(world, from, to, VA + prng_below(&world->sim.prng, 4096), VA + 0x80000 + offset,
                    bytes);
    }
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_a_qfdb),
        cmocka_unit_test(test_through_the_torus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
