/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Units whose answers cannot leave do not wait for each other for ever, and packets that
 *         are lost by that are repaired (docs/decisions/0023-patience.md).
 * Method  The worst traffic for answers: all FPGAs send blocks of one small packet to each other as
 *         fast as their send units can. Without patience these worlds come to a standstill; with it
 *         they don't, for the same seeds. Behaviours EXA-46, EXA-56, EXA-63.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "lab/exanest/machine.h"

#define VA EXANEST_MEMORY_VA

/* As long as this no unit has patience, if it ends. */
#define STANDSTILL_PS (UINT64_C(4) * EXANEST_PATIENCE_CYCLES * 6667)

static uint64_t words_moved(struct exanest_fabric *fabric)
{
    uint64_t words = 0;
    for (uint32_t i = 0; i < exanest_fabric_fpgas(fabric); i++) {
        words += exanest_fabric_fpga(fabric, i)->crossbar.counters.words;
    }
    return words;
}

/* Runs until nothing moves any more; do all FPGAs rest? */
static bool comes_to_rest(struct sim *sim, struct exanest_fabric *fabric)
{
    uint64_t words;
    do {
        words = words_moved(fabric);
        sim_run_until(sim, sim->now_ps + STANDSTILL_PS);
    } while (words_moved(fabric) != words);
    for (uint32_t i = 0; i < exanest_fabric_fpgas(fabric); i++) {
        if (!exanest_fpga_idle(exanest_fabric_fpga(fabric, i))) {
            return false;
        }
    }
    return true;
}

/* -- Send units at their full speed -------------------------------------------------------------*/

enum {
    PDID = 5,
    CHAINS = 8, /* The next packet is ready when one has left. */
    CHAIN_BLOCKS = 120,
    BLOCKS = CHAINS * CHAIN_BLOCKS,
    BYTES = 0x100000,
};

/* Software of an FPGA: stores descriptors, then reads responses. */
struct host {
    struct sim_event event;
    struct flood *flood;
    struct exanest_fpga *fpga;
    uint32_t number;
    uint32_t stored; /* Words of descriptors. */
    bool storing;
    struct exanest_host_store store;
    uint64_t responses;
    struct exanest_descriptor descriptors[BLOCKS]; /* By TID. */
};

struct flood {
    struct sim sim;
    struct exanest_fabric fabric;
    uint32_t fpgas;
    struct host *hosts;
};

/* Chains are stored from their tails on, and their heads, which start them, at last. */
static uint32_t nth_tid(uint32_t n)
{
    const uint32_t behind = CHAIN_BLOCKS - 1;
    return n < CHAINS * behind ? n / behind * CHAIN_BLOCKS + behind - n % behind
                               : (n - CHAINS * behind) * CHAIN_BLOCKS;
}

static void store_next(struct host *host)
{
    static const uint8_t order[] = {3, 0, 1, 2}; /* W3 starts a block. */
    const uint32_t tid = nth_tid(host->stored / 4);
    const uint32_t word = order[host->stored % 4];
    if (!host->storing) {
        uint64_t words[EXANEST_DESCRIPTOR_WORDS];
        exanest_descriptor_encode(&host->descriptors[tid], words);
        host->store = exanest_host_store_64(EXANEST_DESCRIPTOR_BYTES * tid + 8 * word, words[word]);
        host->storing = true;
    }
    exanest_fabric_wake(&host->flood->fabric, host->number);
    if (exanest_exadma_write(&host->fpga->exadma, &host->store)) {
        host->storing = false;
        host->stored++;
    }
}

static void on_host(struct sim *sim, struct sim_event *event)
{
    struct host *host = CONTAINER_OF(event, struct host, event);
    if (host->fpga->rt_mailbox.responses > 0) {
        exanest_rt_mailbox_read_response(&host->fpga->rt_mailbox);
        host->responses++;
    }
    if (host->stored < 4 * BLOCKS) {
        store_next(host);
    }
    sim_after(sim, event, 6667);
}

static void plan(struct flood *flood, struct host *host)
{
    struct prng *prng = &flood->sim.prng;
    for (uint32_t tid = 0; tid < BLOCKS; tid++) {
        uint32_t to;
        do {
            to = (uint32_t)prng_below(prng, flood->fpgas);
        } while (to == host->number);
        host->descriptors[tid] = (struct exanest_descriptor){
            .source = VA,
            .target = {exanest_fabric_fpga(&flood->fabric, to)->coordinate, VA + BYTES / 2},
            .waits = tid % CHAIN_BLOCKS != 0,
            .chained = tid % CHAIN_BLOCKS != CHAIN_BLOCKS - 1,
            .successor = (uint16_t)(tid + 1),
            .bytes = 16,
            .pdid = PDID,
            .sequence = 1,
        };
    }
}

static struct flood *open_flood(uint32_t x, uint64_t seed, uint32_t patience)
{
    struct flood *flood = calloc(1, sizeof(*flood));
    assert_non_null(flood);
    sim_init(&flood->sim, seed);
    struct exanest_fabric_config config = exanest_fabric_default(x, 1, 1);
    config.fpga.receiver.patience_cycles = patience;
    exanest_fabric_open(&flood->fabric, &flood->sim, &config);
    flood->fpgas = exanest_fabric_fpgas(&flood->fabric);
    flood->hosts = calloc(flood->fpgas, sizeof(*flood->hosts));
    assert_non_null(flood->hosts);
    for (uint32_t i = 0; i < flood->fpgas; i++) {
        struct host *host = &flood->hosts[i];
        *host = (struct host){
            .flood = flood, .fpga = exanest_fabric_fpga(&flood->fabric, i), .number = i};
        assert_true(exanest_memory_map(&host->fpga->memory, PDID, VA, BYTES, true));
        exanest_fpga_give_channel(host->fpga, 0, PDID);
        plan(flood, host);
        sim_event_init(&host->event, on_host);
        sim_schedule(&flood->sim, &host->event, exanest_fabric_edge_ps(&flood->fabric));
    }
    return flood;
}

static void close_flood(struct flood *flood)
{
    exanest_fabric_close(&flood->fabric);
    free(flood->hosts);
    free(flood);
}

/* It does happen: receivers wait for each other. */
static void test_without_patience(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct flood *flood = open_flood(2, seed, 0);
        assert_false(comes_to_rest(&flood->sim, &flood->fabric));
        close_flood(flood);
    }
}

/* EXA-63. Each block is answered, or was dropped by a receiver that had no patience left, or a
 * response to it was. */
static void test_with_patience(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct flood *flood = open_flood(2, seed, EXANEST_PATIENCE_CYCLES);
        assert_true(comes_to_rest(&flood->sim, &flood->fabric));
        uint64_t responses = 0, unanswered = 0, lost = 0;
        for (uint32_t i = 0; i < flood->fpgas; i++) {
            responses += flood->hosts[i].responses;
            unanswered += flood->hosts[i].fpga->receiver.counters.unanswered;
            lost += flood->hosts[i].fpga->rt_mailbox.counters.responses_lost;
        }
        assert_true(unanswered > 0);
        assert_int_equal(lost, 0); /* Nothing stalls this software. */
        assert_int_equal(responses + unanswered, flood->fpgas * BLOCKS);
        close_flood(flood);
    }
}

/* -- The whole machine --------------------------------------------------------------------------*/

enum {
    PROCESSES = EXANEST_PROCESSES_MAX,
    POSTS = PROCESSES * EXANEST_WRITE_CHANNELS, /* By each FPGA. */
    NOTES = 0x40000,                            /* Where notifications come to. */
};

/* Cores that need no time: only then is software as fast as the send unit. */
static struct exanest_machine *open_machine(uint32_t x, uint64_t seed, uint32_t patience)
{
    struct exanest_machine_config config = exanest_machine_default(x, 1, 1);
    config.processes = PROCESSES;
    config.firmware.costs = (struct exanest_firmware_costs){.store = 1};
    config.firmware.sequences = EXANEST_CONTINUING;
    config.fabric.fpga.receiver.patience_cycles = patience;
    struct sim *sim = malloc(sizeof(*sim));
    struct exanest_machine *machine = malloc(sizeof(*machine));
    assert_true(sim != NULL && machine != NULL);
    sim_init(sim, seed);
    exanest_machine_open(machine, &config, sim);
    return machine;
}

static void close_machine(struct exanest_machine *machine)
{
    exanest_machine_close(machine);
    free(machine->sim);
    free(machine);
}

static uint64_t note_of(uint32_t from, uint32_t channel)
{
    return VA + NOTES + 16 * (from * EXANEST_WRITE_CHANNELS + channel);
}

/* The target of a write: each FPGA writes to all others in turn. */
static uint32_t target_of(struct exanest_machine *machine, uint32_t from, uint32_t post)
{
    const uint32_t fpgas = exanest_fabric_fpgas(&machine->fabric);
    return (from + 1 + post % (fpgas - 1)) % fpgas;
}

static void post_all(struct exanest_machine *machine)
{
    for (uint32_t from = 0; from < exanest_fabric_fpgas(&machine->fabric); from++) {
        for (uint32_t post = 0; post < POSTS; post++) {
            const uint32_t channel = post / PROCESSES;
            const struct exanest_write write = {
                .to = target_of(machine, from, post),
                .source = VA,
                .va = VA + 0x4000 + 16 * (uint64_t)post,
                .notify_va = note_of(from, channel),
                .bytes = 16,
                .data = {from + 1, post + 1},
            };
            exanest_machine_write(machine, from, post % PROCESSES, channel, &write);
        }
    }
}

static void check_posts(struct exanest_machine *machine)
{
    for (uint32_t from = 0; from < exanest_fabric_fpgas(&machine->fabric); from++) {
        for (uint32_t post = 0; post < POSTS; post++) {
            const uint32_t channel = post / PROCESSES, process = post % PROCESSES;
            const struct exanest_transfer done =
                exanest_r5_transfer(&machine->r5s[from], process, channel);
            assert_int_equal(done.state, EXANEST_TRANSFER_DONE);
            uint64_t note[2];
            memcpy(note,
                   exanest_machine_bytes(machine, target_of(machine, from, post), process,
                                         note_of(from, channel), sizeof(note)),
                   sizeof(note));
            assert_int_equal(note[0], from + 1);
            assert_int_equal(note[1], post + 1);
        }
    }
}

/* EXA-46, EXA-56: what receivers drop is sent again, and no notification is lost. */
static void test_no_notification_is_lost(void **state)
{
    (void)state;
    struct exanest_machine *machine = open_machine(2, 1, EXANEST_PATIENCE_CYCLES);
    post_all(machine);
    assert_true(exanest_machine_settle(machine, UINT64_C(1000000000000)));
    check_posts(machine);
    assert_true(exanest_machine_idle(machine));
    uint64_t unanswered = 0;
    for (uint32_t i = 0; i < exanest_fabric_fpgas(&machine->fabric); i++) {
        unanswered += exanest_fabric_fpga(&machine->fabric, i)->receiver.counters.unanswered;
    }
    assert_true(unanswered > 0);
    close_machine(machine);
}

static void test_the_machine_without_patience(void **state)
{
    (void)state;
    struct exanest_machine *machine = open_machine(2, 1, 0);
    post_all(machine);
    assert_false(comes_to_rest(machine->sim, &machine->fabric));
    close_machine(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_patience),
        cmocka_unit_test(test_with_patience),
        cmocka_unit_test(test_the_machine_without_patience),
        cmocka_unit_test(test_no_notification_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
