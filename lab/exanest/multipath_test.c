/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Both links of a pair may be used at once, by blocks or by the packets of one block,
 *         though one is slower: everything arrives, and nothing has to be sent again.
 * Method  Writes and reads between two FPGAs with two links of different length; what each link
 *         carried is counted. Behaviours EXA-21, EXA-32, EXA-61, EXA-65, EXA-70.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/exanest/machine.h"

#define VA      EXANEST_MEMORY_VA
#define BLOCK   EXANEST_BLOCK_BYTES_MAX
#define TARGET  (VA + 64 * BLOCK)
#define LONGER  3780000u /* 4.2 us instead of 0.42. */
#define SECOND  UINT64_C(1000000000000)
#define PACKETS EXANEST_BLOCK_PACKETS_MAX

static struct exanest_machine_config two_links(uint32_t longer_ps)
{
    struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    config.fabric.links_per_pair = 2;
    config.fabric.second_longer_ps = longer_ps;
    config.process_bytes = 128 * BLOCK;
    return config;
}

static struct exanest_machine *open_machine(const struct exanest_machine_config *config,
                                            uint64_t seed)
{
    struct exanest_machine *machine = malloc(sizeof(*machine));
    struct sim *sim = malloc(sizeof(*sim));
    assert_true(machine != NULL && sim != NULL);
    sim_init(sim, seed);
    exanest_machine_open(machine, config, sim);
    return machine;
}

static void close_machine(struct exanest_machine *machine)
{
    exanest_machine_close(machine);
    free(machine->sim);
    free(machine);
}

static void post(struct exanest_machine *machine, uint32_t channel,
                 const struct exanest_write *write, uint32_t from)
{
    uint8_t *at = exanest_machine_bytes(machine, from, 0, write->source, write->bytes);
    for (uint32_t i = 0; i < write->bytes; i++) {
        at[i] = (uint8_t)prng_next(&machine->sim->prng);
    }
    exanest_machine_write(machine, from, 0, channel, write);
}

static void expect_written(struct exanest_machine *machine, uint32_t channel,
                           const struct exanest_write *write, uint32_t from)
{
    const struct exanest_transfer done = exanest_r5_transfer(&machine->r5s[from], 0, channel);
    assert_int_equal(done.state, EXANEST_TRANSFER_DONE);
    assert_int_equal(done.acked, write->bytes);
    assert_memory_equal(exanest_machine_bytes(machine, from, 0, write->source, write->bytes),
                        exanest_machine_bytes(machine, write->to, 0, write->va, write->bytes),
                        write->bytes);
}

/* Nothing was sent twice, refused, or lost on the way. */
static void expect_nothing_repaired(struct exanest_machine *machine)
{
    assert_true(exanest_machine_idle(machine));
    for (uint32_t i = 0; i < exanest_fabric_fpgas(&machine->fabric); i++) {
        const struct exanest_firmware_counters *firmware = &machine->r5s[i].firmware.counters;
        const struct exanest_receiver *receiver =
            &exanest_fabric_fpga(&machine->fabric, i)->receiver;
        assert_int_equal(firmware->retransmits, 0);
        assert_int_equal(firmware->timeouts, 0);
        assert_int_equal(firmware->stale, 0);
        for (uint32_t k = EXANEST_MARKED; k < EXANEST_MEANING_COUNT; k++) {
            const bool harmless = k == EXANEST_MARKED || k == EXANEST_COMPLETE;
            assert_true(harmless || receiver->counters.meanings[k] == 0);
        }
    }
}

/* Packets that a link of the pair F1, F2 has carried, from F1 to F2 or back. */
static uint64_t carried(struct exanest_machine *machine, uint32_t link, bool back)
{
    struct exanest_link *links = machine->fabric.qfdbs[0].links;
    return exanest_link_out(&links[link * EXANEST_QFDB_PAIRS], back ? 0 : 1)->counters.packets;
}

/* A context in which a later packet has come before an earlier one. */
static bool any_hole(const struct exanest_receiver *receiver)
{
    for (uint32_t i = 0; receiver->table.used > 0 && i < EXANEST_CONTEXTS_MAX; i++) {
        const struct exanest_context *context = exanest_receiver_context(receiver, i);
        if (context->valid && (context->bitmap & (context->bitmap + 1)) != 0) {
            return true;
        }
    }
    return false;
}

/* EXA-65: blocks of one transfer over two output ports. Responses take the first link. */
static void test_blocks_alternate(void **state)
{
    (void)state;
    struct exanest_machine_config config = two_links(LONGER);
    config.firmware.path_policy = EXANEST_PATH_ALTERNATES;
    struct exanest_machine *machine = open_machine(&config, 1);
    const struct exanest_write write = {.to = 1, .source = VA, .va = TARGET, .bytes = 15 * BLOCK};
    post(machine, 0, &write, 0);
    assert_true(exanest_machine_settle(machine, SECOND));
    expect_written(machine, 0, &write, 0);
    expect_nothing_repaired(machine);
    assert_int_equal(carried(machine, 0, false), 8 * PACKETS);
    assert_int_equal(carried(machine, 1, false), 7 * PACKETS);
    assert_int_equal(carried(machine, 0, true), 15);
    assert_int_equal(carried(machine, 1, true), 0);
    close_machine(machine);
}

/* EXA-21, EXA-70: a program's path. The rule about notifications holds on both. */
static void test_paths_of_programs(void **state)
{
    (void)state;
    const struct exanest_machine_config config = two_links(LONGER);
    struct exanest_machine *machine = open_machine(&config, 1);
    struct exanest_write writes[2];
    for (uint32_t path = 0; path < 2; path++) {
        writes[path] = (struct exanest_write){.to = 1,
                                              .source = VA + path * 8 * BLOCK,
                                              .va = TARGET + path * 8 * BLOCK,
                                              .notify_va = TARGET + (32 + path) * BLOCK,
                                              .bytes = (2 + path) * BLOCK,
                                              .path = (uint8_t)path,
                                              .data = {7, path}};
        post(machine, path, &writes[path], 0);
    }
    assert_true(exanest_machine_settle(machine, SECOND));
    for (uint32_t path = 0; path < 2; path++) {
        uint64_t data[2];
        expect_written(machine, path, &writes[path], 0);
        memcpy(data, exanest_machine_bytes(machine, 1, 0, writes[path].notify_va, 16),
               sizeof(data));
        assert_int_equal(data[0], 7);
        assert_int_equal(data[1], path);
        assert_int_equal(carried(machine, path, false), (2 + path) * PACKETS + 1);
    }
    expect_nothing_repaired(machine);
    close_machine(machine);
}

/* EXA-65, EXA-32: packets of each block over both links, by the fixture. */
static void test_packets_take_both(void **state)
{
    (void)state;
    struct exanest_machine_config config = two_links(LONGER);
    config.fabric.fpga.sprays = true;
    struct exanest_machine *machine = open_machine(&config, 1);
    const struct exanest_receiver *receiver = &exanest_fabric_fpga(&machine->fabric, 1)->receiver;
    const struct exanest_write write = {.to = 1, .source = VA, .va = TARGET, .bytes = 16 * BLOCK};
    uint64_t holes = 0;
    post(machine, 0, &write, 0);
    while (sim_step(machine->sim)) {
        holes += any_hole(receiver);
    }
    assert_true(holes > 1000);
    expect_written(machine, 0, &write, 0);
    expect_nothing_repaired(machine);
    assert_int_equal(receiver->counters.meanings[EXANEST_COMPLETE], 16);
    assert_int_equal(carried(machine, 0, false), 8 * PACKETS);
    assert_int_equal(carried(machine, 1, false), 8 * PACKETS);
    close_machine(machine);
}

/* EXA-65: any sizes, places and lengths of the second link, and all four FPGAs at once, each of
 * which sends to the next and reads from the one before. */
static void spray_at_random(uint64_t seed)
{
    struct prng prng;
    prng_init(&prng, seed);
    struct exanest_machine_config config = two_links((uint32_t)prng_below(&prng, LONGER));
    config.fabric.fpga.sprays = seed % 2 == 0;
    config.firmware.path_policy = EXANEST_PATH_ALTERNATES;
    struct exanest_machine *machine = open_machine(&config, seed);
    struct exanest_write writes[EXANEST_FPGAS];
    struct exanest_read read = {.va = VA + 16 * BLOCK, .notify_va = VA + 60 * BLOCK, .data = 77};
    for (uint32_t i = 0; i < EXANEST_FPGAS; i++) {
        writes[i] = (struct exanest_write){.to = (i + 1) % EXANEST_FPGAS,
                                           .source = VA + prng_below(&prng, 64),
                                           .va = TARGET + prng_below(&prng, BLOCK),
                                           .bytes = 1 + (uint32_t)prng_below(&prng, 8 * BLOCK),
                                           .path = (uint8_t)prng_below(&prng, 2)};
        post(machine, 0, &writes[i], i);
    }
    read.owner = 3;
    read.source = writes[3].source;
    read.bytes = writes[3].bytes;
    assert_true(exanest_machine_read(machine, 0, 0, &read));
    assert_true(exanest_machine_settle(machine, SECOND));
    for (uint32_t i = 0; i < EXANEST_FPGAS; i++) {
        expect_written(machine, 0, &writes[i], i);
    }
    assert_memory_equal(exanest_machine_bytes(machine, 3, 0, read.source, read.bytes),
                        exanest_machine_bytes(machine, 0, 0, read.va, read.bytes), read.bytes);
    expect_nothing_repaired(machine);
    close_machine(machine);
}

static void test_at_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        spray_at_random(seed);
    }
}

/* EXA-61: by the second link to F1, whose router has one port for both links of an FPGA. */
static void test_other_qfdbs(void **state)
{
    (void)state;
    struct exanest_machine_config config = two_links(0);
    config.fabric.size[0] = 2;
    struct exanest_machine *machine = open_machine(&config, 1);
    const struct exanest_write write = {
        .to = 6, .source = VA + 3, .va = TARGET + 5, .bytes = 5 * BLOCK, .path = 1};
    post(machine, 0, &write, 1);
    assert_true(exanest_machine_settle(machine, SECOND));
    expect_written(machine, 0, &write, 1);
    expect_nothing_repaired(machine);
    assert_int_equal(carried(machine, 0, true), 0);
    assert_int_equal(carried(machine, 1, true), 5 * PACKETS + 1);
    close_machine(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_alternate),  cmocka_unit_test(test_paths_of_programs),
        cmocka_unit_test(test_packets_take_both), cmocka_unit_test(test_at_random),
        cmocka_unit_test(test_other_qfdbs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
