/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever the network does to packets and whichever pages are absent, every byte of every
 *         transfer arrives, and nothing is left behind.
 * Method  Machines of several FPGAs whose processes write to and read from each other at random.
 *         Behaviours EXA-46, EXA-52, EXA-53, EXA-56, EXA-63, EXA-66.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "lab/exanest/machine.h"

#define VA     EXANEST_MEMORY_VA
#define SECOND UINT64_C(1000000000000)

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

static void fill(struct exanest_machine *machine, uint32_t fpga, uint32_t process, uint64_t va,
                 uint32_t bytes)
{
    uint8_t *at = exanest_machine_bytes(machine, fpga, process, va, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)prng_next(&machine->sim->prng);
    }
}

/* Two blocks and a notification. */
static void test_write(void **state)
{
    (void)state;
    const struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    struct exanest_machine *machine = open_machine(&config, 1);
    fill(machine, 0, 0, VA + 5, 30000);
    const struct exanest_write write = {.to = 1,
                                        .source = VA + 5,
                                        .va = VA + 0x20003,
                                        .notify_va = VA + 0x80000,
                                        .bytes = 30000,
                                        .data = {11, 12}};
    exanest_machine_write(machine, 0, 0, 3, &write);
    assert_true(exanest_machine_settle(machine, SECOND));
    const struct exanest_transfer done = exanest_r5_transfer(&machine->r5s[0], 0, 3);
    assert_int_equal(done.state, EXANEST_TRANSFER_DONE);
    assert_int_equal(done.acked, 30000);
    assert_memory_equal(exanest_machine_bytes(machine, 0, 0, VA + 5, 30000),
                        exanest_machine_bytes(machine, 1, 0, VA + 0x20003, 30000), 30000);
    uint64_t data[2];
    memcpy(data, exanest_machine_bytes(machine, 1, 0, VA + 0x80000, 16), sizeof(data));
    assert_int_equal(data[0], 11);
    assert_int_equal(data[1], 12);
    assert_true(exanest_machine_idle(machine));
    close_machine(machine);
}

static uint64_t time_with(uint32_t cores)
{
    const uint32_t bytes = 16 * 16384;
    struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    exanest_firmware_set_block_cost(&config.firmware.costs, 40000);
    config.firmware_cores = cores;
    struct exanest_machine *machine = open_machine(&config, 1);
    fill(machine, 0, 0, VA, bytes);
    const struct exanest_write write = {.to = 1, .source = VA, .va = VA + 0x80000, .bytes = bytes};
    exanest_machine_write(machine, 0, 0, 0, &write);
    while (exanest_r5_transfer(&machine->r5s[0], 0, 0).state != EXANEST_TRANSFER_DONE) {
        assert_true(sim_step(machine->sim));
    }
    const uint64_t done_ps = machine->sim->now_ps;
    assert_memory_equal(exanest_machine_bytes(machine, 0, 0, VA, bytes),
                        exanest_machine_bytes(machine, 1, 0, VA + 0x80000, bytes), bytes);
    assert_true(exanest_machine_settle(machine, SECOND));
    close_machine(machine);
    return done_ps;
}

/* EXA-A22: two cores share what 16 blocks cost. Before that the first four come together, in 64
 * us. */
static void test_two_cores(void **state)
{
    (void)state;
    const uint64_t one = time_with(1);
    assert_in_range(one, 685000000, 710000000);
    assert_in_range(one - time_with(2), 310000000, 320000000);
}

/* Nobody answers a notification, and nobody sends it again: if its page is absent it is lost,
 * though the transfer is done. A program has to touch the page before it waits. */
static void test_notification_of_an_absent_page(void **state)
{
    (void)state;
    const struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    struct exanest_machine *machine = open_machine(&config, 1);
    const struct exanest_fpga *target = exanest_fabric_fpga(&machine->fabric, 1);
    exanest_memory_set_present(&exanest_fabric_fpga(&machine->fabric, 1)->memory, 1, VA + 0x80000,
                               false);
    const struct exanest_write write = {.to = 1,
                                        .source = VA,
                                        .va = VA + 0x20000,
                                        .notify_va = VA + 0x80000,
                                        .bytes = 3000,
                                        .data = {11, 12}};
    for (uint32_t i = 0; i < 2; i++) {
        exanest_machine_write(machine, 0, 0, 3, &write);
        assert_true(exanest_machine_settle(machine, (i + 1) * SECOND));
        assert_int_equal(exanest_r5_transfer(&machine->r5s[0], 0, 3).state, EXANEST_TRANSFER_DONE);
        assert_int_equal(*exanest_machine_bytes(machine, 1, 0, VA + 0x80000, 1), i == 0 ? 0 : 11);
        assert_int_equal(target->receiver.counters.notify_failed, 1);
    }
    close_machine(machine);
}

/* EXA-53. */
static void test_read(void **state)
{
    (void)state;
    const struct exanest_machine_config config = exanest_machine_default(2, 1, 1);
    struct exanest_machine *machine = open_machine(&config, 1);
    fill(machine, 6, 0, VA + 9, 50000);
    const struct exanest_read read = {.owner = 6,
                                      .source = VA + 9,
                                      .va = VA + 0x30007,
                                      .notify_va = VA + 0x80000,
                                      .bytes = 50000,
                                      .request_id = 1,
                                      .data = 77};
    assert_true(exanest_machine_read(machine, 1, 0, &read));
    assert_true(exanest_machine_settle(machine, SECOND));
    assert_memory_equal(exanest_machine_bytes(machine, 6, 0, VA + 9, 50000),
                        exanest_machine_bytes(machine, 1, 0, VA + 0x30007, 50000), 50000);
    uint64_t data;
    memcpy(&data, exanest_machine_bytes(machine, 1, 0, VA + 0x80000, 8), sizeof(data));
    assert_int_equal(data, 77);
    assert_true(exanest_machine_idle(machine));
    close_machine(machine);
}

/* A write of a block whose bytes 1000 and 2000 are these; what decides on time is the same. */
static uint64_t digest_of(uint8_t first, uint8_t second)
{
    const struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    struct exanest_machine *machine = open_machine(&config, 1);
    const struct exanest_write write = {.to = 1, .source = VA, .va = VA + 0x20000, .bytes = 16384};
    uint8_t *at = exanest_machine_bytes(machine, 0, 0, VA, 16384);
    at[1000] = first;
    at[2000] = second;
    exanest_machine_write(machine, 0, 0, 0, &write);
    assert_true(exanest_machine_settle(machine, SECOND));
    const uint64_t digest = machine->sim->digest;
    close_machine(machine);
    return digest;
}

/* The digest sees bytes, and in which packet they are. */
static void test_digest(void **state)
{
    (void)state;
    assert_int_equal(digest_of(1, 2), digest_of(1, 2));
    assert_int_not_equal(digest_of(1, 2), digest_of(1, 3));
    assert_int_not_equal(digest_of(1, 2), digest_of(2, 1));
}

/* -- Soak ---------------------------------------------------------------------------------------*/

enum {
    SLOT_BYTES = 0xa000,
    SLOTS = 8,        /* Transfers of each FPGA. */
    OURS = 0,         /* The bytes to send lie here, */
    THEIRS = 0x60000, /* and those that come lie here, by sender and slot. */
};

struct soak {
    struct exanest_machine *machine;
    uint32_t fpgas;
    uint32_t to[64][SLOTS], bytes[64][SLOTS], offset[64][SLOTS], shift[64][SLOTS];
};

static uint64_t source_of(uint32_t slot)
{
    return VA + OURS + slot * SLOT_BYTES;
}

static uint64_t target_of(uint32_t from, uint32_t slot)
{
    return VA + THEIRS + (uint64_t)(from * SLOTS + slot) * SLOT_BYTES;
}

static void begin_soak(struct soak *soak)
{
    struct exanest_machine *machine = soak->machine;
    struct prng *prng = &machine->sim->prng;
    for (uint32_t from = 0; from < soak->fpgas; from++) {
        fill(machine, from, 0, VA + OURS, SLOTS * SLOT_BYTES);
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            soak->to[from][slot] = (uint32_t)prng_below(prng, soak->fpgas);
            soak->offset[from][slot] = (uint32_t)prng_below(prng, 64);
            soak->shift[from][slot] = (uint32_t)prng_below(prng, 64);
            soak->bytes[from][slot] = 1 + (uint32_t)prng_below(prng, SLOT_BYTES - 64);
            const struct exanest_write write = {.to = soak->to[from][slot],
                                                .source = source_of(slot) + soak->shift[from][slot],
                                                .va = target_of(from, slot) +
                                                      soak->offset[from][slot],
                                                .bytes = soak->bytes[from][slot]};
            exanest_machine_write(machine, from, 0, slot, &write);
        }
    }
}

static void check_soak(struct soak *soak)
{
    for (uint32_t from = 0; from < soak->fpgas; from++) {
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            const uint32_t bytes = soak->bytes[from][slot];
            const struct exanest_transfer done =
                exanest_r5_transfer(&soak->machine->r5s[from], 0, slot);
            assert_int_equal(done.state, EXANEST_TRANSFER_DONE);
            assert_int_equal(done.acked, bytes);
            assert_memory_equal(
                exanest_machine_bytes(soak->machine, from, 0,
                                      source_of(slot) + soak->shift[from][slot], bytes),
                exanest_machine_bytes(soak->machine, soak->to[from][slot], 0,
                                      target_of(from, slot) + soak->offset[from][slot], bytes),
                bytes);
        }
    }
}

/* Takes one page of `one_of` away, at both ends. */
static void take_pages(struct exanest_machine *machine, uint32_t one_of)
{
    for (uint32_t i = 0; i < exanest_fabric_fpgas(&machine->fabric); i++) {
        struct exanest_memory *memory = &exanest_fabric_fpga(&machine->fabric, i)->memory;
        for (uint64_t at = 0; at < machine->config.process_bytes; at += 4096) {
            if (prng_below(&machine->sim->prng, one_of) == 0) {
                exanest_memory_set_present(memory, 1, VA + at, false);
            }
        }
    }
}

static void soak_machine(const struct exanest_machine_config *config, uint64_t seed,
                         uint32_t one_absent_of)
{
    struct soak *soak = calloc(1, sizeof(*soak));
    soak->machine = open_machine(config, seed);
    soak->fpgas = exanest_fabric_fpgas(&soak->machine->fabric);
    begin_soak(soak);
    if (one_absent_of != 0) {
        take_pages(soak->machine, one_absent_of);
    }
    assert_true(exanest_machine_settle(soak->machine, SECOND));
    check_soak(soak);
    assert_true(exanest_machine_idle(soak->machine));
    close_machine(soak->machine);
    free(soak);
}

static struct exanest_machine_config soak_config(uint32_t x, uint32_t y)
{
    struct exanest_machine_config config = exanest_machine_default(x, y, 1);
    config.process_bytes = THEIRS + (uint64_t)4 * x * y * SLOTS * SLOT_BYTES;
    config.process_bytes = (config.process_bytes + 4095) / 4096 * 4096;
    config.firmware.sequences = EXANEST_CONTINUING;
    /* Three of four blocks lose a packet each time: 16 retries are not always enough. */
    config.firmware.retries_max = 100;
    return config;
}

/* EXA-63. */
static void test_all_to_all(void **state)
{
    (void)state;
    const struct exanest_machine_config config = soak_config(2, 2);
    soak_machine(&config, 1, 0);
}

/* EXA-66. */
static void test_bad_network(void **state)
{
    (void)state;
    struct exanest_machine_config config = soak_config(2, 1);
    config.faults.millionths[SIM_FAULT_drop] = 10000;
    config.faults.millionths[SIM_FAULT_duplicate] = 10000;
    config.faults.millionths[SIM_FAULT_damage] = 10000;
    config.faults.millionths[SIM_FAULT_reorder] = 100000;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        config.firmware_cores = 1 + seed % 2;
        soak_machine(&config, seed, 0);
    }
}

/* The what-if in which only lost packets are sent again: beginnings and ends of blocks among them.
 * None comes twice: a damaged second copy behind the end of its block is never repaired
 * (hazards_test.c). */
static void test_lost_packets(void **state)
{
    (void)state;
    struct exanest_machine_config config = soak_config(2, 1);
    config.firmware.resend = EXANEST_RESEND_PACKET;
    config.faults.millionths[SIM_FAULT_drop] = 30000;
    config.faults.millionths[SIM_FAULT_damage] = 10000;
    config.faults.millionths[SIM_FAULT_reorder] = 100000;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        soak_machine(&config, seed, seed == 5 ? 10 : 0);
    }
}

/* EXA-52. */
static void test_page_faults(void **state)
{
    (void)state;
    struct exanest_machine_config config = soak_config(2, 1);
    soak_machine(&config, 1, 10);
}

/* Every FPGA's old engine writes to another one, itself included, at once, over links and routers;
 * the R5s sleep. */
static void test_zdma(void **state)
{
    (void)state;
    const uint32_t bytes = 20001;
    struct exanest_machine_config config = exanest_machine_default(2, 1, 1);
    config.fabric.fpga.zdma.packet = 256;
    config.fabric.fpga.zdma.outstanding = 64;
    struct exanest_machine *machine = open_machine(&config, 1);
    const uint32_t fpgas = exanest_fabric_fpgas(&machine->fabric);
    for (uint32_t turn = 0; turn < fpgas; turn++) {
        const uint64_t target = VA + 0x10009 + turn * 0x6000;
        for (uint32_t i = 0; i < fpgas; i++) {
            const struct exanest_write write = {
                .to = (i + turn) % fpgas, .source = VA + 7, .va = target, .bytes = bytes};
            fill(machine, i, 0, VA + 7, bytes);
            assert_true(exanest_machine_zdma(machine, i, 0, &write));
            assert_false(exanest_machine_zdma(machine, i, 0, &write));
        }
        assert_true(exanest_machine_settle(machine, SECOND));
        for (uint32_t i = 0; i < fpgas; i++) {
            assert_int_equal(exanest_fabric_fpga(&machine->fabric, i)->zdma.state.phase,
                             EXANEST_ZDMA_DONE);
            assert_memory_equal(
                exanest_machine_bytes(machine, i, 0, VA + 7, bytes),
                exanest_machine_bytes(machine, (i + turn) % fpgas, 0, target, bytes), bytes);
        }
    }
    assert_int_equal(machine->r5s[0].firmware.counters.response_reads, 1); /* Its first look. */
    close_machine(machine);
}

/* A page of the target is absent: the old engine gives up, and nothing is left behind. */
static void test_zdma_page_fault(void **state)
{
    (void)state;
    const struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    struct exanest_machine *machine = open_machine(&config, 1);
    const struct exanest_zdma *zdma = &exanest_fabric_fpga(&machine->fabric, 0)->zdma;
    const struct exanest_write write = {.to = 1, .source = VA, .va = VA + 0x8000, .bytes = 0x3000};
    assert_true(exanest_memory_set_present(&exanest_fabric_fpga(&machine->fabric, 1)->memory, 1,
                                           VA + 0x9000, false));
    assert_true(exanest_machine_zdma(machine, 0, 0, &write));
    assert_true(exanest_machine_settle(machine, SECOND));
    assert_int_equal(zdma->state.phase, EXANEST_ZDMA_FAILED);
    assert_int_equal(zdma->state.status, EXANEST_NACK_PAGE_FAULT);
    assert_int_equal(zdma->state.answered, 0x1000);
    assert_true(exanest_machine_zdma(machine, 0, 0, &write)); /* The driver has brought it in. */
    assert_true(exanest_machine_settle(machine, SECOND));
    assert_int_equal(zdma->state.phase, EXANEST_ZDMA_DONE);
    assert_true(exanest_machine_idle(machine));
    close_machine(machine);
}

/* The old engine sends nothing again. But it ends, and when it says that all went well, it did. */
static void test_zdma_bad_network(void **state)
{
    (void)state;
    const uint32_t bytes = 1000, transfers = 200;
    struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    uint32_t done = 0, timed_out = 0, refused = 0;
    config.faults.millionths[SIM_FAULT_drop] = 10000;
    config.faults.millionths[SIM_FAULT_duplicate] = 10000;
    config.faults.millionths[SIM_FAULT_damage] = 10000;
    config.faults.millionths[SIM_FAULT_reorder] = 100000;
    struct exanest_machine *machine = open_machine(&config, 1);
    const struct exanest_zdma *zdma = &exanest_fabric_fpga(&machine->fabric, 0)->zdma;
    for (uint32_t i = 0; i < transfers; i++) {
        const uint64_t target = VA + 0x10005 + i * 0x400;
        const struct exanest_write write = {.to = 1, .source = VA, .va = target, .bytes = bytes};
        fill(machine, 0, 0, VA, bytes);
        assert_true(exanest_machine_zdma(machine, 0, 0, &write));
        assert_true(exanest_machine_settle(machine, (i + 1) * SECOND));
        const uint8_t *came = exanest_machine_bytes(machine, 1, 0, target, bytes);
        const bool right =
            memcmp(exanest_machine_bytes(machine, 0, 0, VA, bytes), came, bytes) == 0;
        assert_true(zdma->state.phase == EXANEST_ZDMA_FAILED ||
                    (zdma->state.phase == EXANEST_ZDMA_DONE && right));
        done += zdma->state.phase == EXANEST_ZDMA_DONE;
        timed_out += zdma->state.timed_out;
        refused += zdma->state.status == EXANEST_NACK_CRC;
    }
    assert_true(done > 50 && timed_out > 10 && refused > 5);
    assert_true(zdma->counters.verdicts[EXANEST_ZDMA_STALE] > 0);
    close_machine(machine);
}

/* A packetizer's message into another process's memory. */
static void test_send(void **state)
{
    (void)state;
    const struct exanest_machine_config config = exanest_machine_default(1, 1, 1);
    struct exanest_machine *machine = open_machine(&config, 1);
    const uint64_t va = VA + 0x107; /* Not a word's: 249 bytes are what 16 words take. */
    fill(machine, 0, 0, VA, 249);
    const uint8_t *sent = exanest_machine_bytes(machine, 0, 0, VA, 249);
    assert_true(exanest_machine_send(machine, 0, 0, 1, va, sent, 249));
    assert_false(exanest_machine_send(machine, 0, 0, 1, va, sent, 249));
    assert_true(exanest_machine_settle(machine, SECOND));
    assert_memory_equal(sent, exanest_machine_bytes(machine, 1, 0, va, 249), 249);
    assert_true(exanest_machine_send(machine, 0, 0, 1, va, sent, 1));
    close_machine(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_bad_network),
        cmocka_unit_test(test_page_faults),
        cmocka_unit_test(test_zdma),
        cmocka_unit_test(test_zdma_page_fault),
        cmocka_unit_test(test_zdma_bad_network),
        cmocka_unit_test(test_send),
        cmocka_unit_test(test_two_cores),
        cmocka_unit_test(test_lost_packets),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_notification_of_an_absent_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
