/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Blocks go through two accelerators and come out right, byte by byte, with any fault of
 *         the network. They take the sum of the stages' times. Work that makes no sense, or finds
 *         no room, is refused and counted.
 * Method  The chain, beside a deliberately simple model: a sum of stages. Single accelerators whose
 *         work a program stores word by word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lant/chain.h"

static const struct lant_chain_costs costs = {
    .submit = 100, .notice = 50, .burst = 22, .turn = 37, .cpu_path = 404, .detour_cycles = 0.03};

struct rig {
    struct sim sim;
    struct lant_world world;
    struct lant_chain chain;
    struct lant_api apis[2];
    struct lant_accelerator accelerator; /* On node 1. */
    uint32_t results;
};

static struct rig *open_rig(uint64_t seed, double bit_errors)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct lant_node_config config = lant_node_default();
    const struct lant_line line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24};
    const struct lant_fabric_config fabric = {.topology = "all-to-all:2",
                                              .node_line = line,
                                              .switch_line = line,
                                              .bit_errors = bit_errors,
                                              .packets = 4096};
    char error[TOPOLOGY_ERROR_BYTES];
    assert_non_null(rig);
    config.memory_bytes = LANT_CHAIN_MEMORY;
    config.in_charge = 1;
    sim_init(&rig->sim, seed);
    assert_true(
        lant_world_open(&rig->world, &config, &fabric, &rig->sim, seed, error, sizeof(error)));
    return rig;
}

static void close_rig(struct rig *rig)
{
    lant_world_close(&rig->world);
    free(rig);
}

/* -- Chains -------------------------------------------------------------------------------------*/

/* A chain's run, whose bytes are right. */
static struct rig *run_chain(const struct lant_chain_config *config, uint64_t seed,
                             double bit_errors)
{
    struct rig *rig = open_rig(seed, bit_errors);
    struct lant_chain *chain = &rig->chain;
    lant_chain_open(chain, config, &rig->world);
    assert_true(lant_chain_run(chain));
    assert_int_equal(chain->wrong, 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct lant_accelerator_counters *counters = &chain->accelerators[i].counters;
        assert_int_equal(counters->works, config->blocks);
        assert_int_equal(counters->finished, config->blocks);
        assert_int_equal(counters->refused + counters->lost + counters->overruns, 0);
    }
    lant_chain_close(chain);
    return rig;
}

static double cycles(uint64_t ps)
{
    return (double)ps / LANT_CYCLE_PS;
}

/* The simple model: what the stages of one block take, one after the other. */
static double copy_cycles(uint32_t bytes)
{
    return 22 * ceil(bytes / 128.0);
}

/* A transfer of whole packets, until its notification: LNI-A57, and the line's time for each
 * more. */
static double transfer_cycles(uint32_t bytes)
{
    return 220 + 2 * 68 + (bytes / 512.0 - 1) * (68 + 4 + 68 / 24.0);
}

/* Five stores until the last one is in memory: LNI-A1's 9, 10 between two, and the fifth one's
 * way. */
static double stores_cycles(void)
{
    return 9 + 4 * 10 + 5 + 59 + 5 + 16;
}

static double latency_cycles(const struct lant_chain_config *config)
{
    double sum = 100 + 4 * copy_cycles(config->bytes) + 2.0 * (double)config->latency_cycles +
                 transfer_cycles(config->bytes) + stores_cycles() + 50;
    sum += config->by_cpu ? 404 + 0.03 * config->bytes : 0;
    return sum;
}

/* F1 alone: until the stores are acknowledged early, and its turn. */
static double period_cycles(const struct lant_chain_config *config)
{
    double sum = 2 * copy_cycles(config->bytes) + (double)config->latency_cycles +
                 transfer_cycles(config->bytes) + 9 + 4 * 10 + 5 + 2 + 37;
    sum += config->by_cpu ? 404 + 0.03 * config->bytes : 0;
    return sum;
}

/* LNI-85: latency and time between blocks are sums of stages, in both dataflows. */
static void test_times(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 7 * 4; i++) {
        struct lant_chain_config config = {.costs = costs,
                                           .by_cpu = i % 2 == 1,
                                           .bytes = 512u << i / 4,
                                           .blocks = 8,
                                           .under_way = 3,
                                           .latency_cycles = i / 2 % 2 * 2000,
                                           .buffers = 1};
        struct rig *rig = run_chain(&config, 1, 0);
        assert_true(fabs(cycles(rig->chain.first_ps) - latency_cycles(&config)) < 3);
        assert_true(
            fabs(lant_chain_period_ps(&rig->chain) / LANT_CYCLE_PS - period_cycles(&config)) < 3);
        close_rig(rig);
    }
}

/* Both dataflows give the same data, and the offloaded one takes less time; on a line that flips
 * bits as well, and with every way to overlap things. */
static void test_bytes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {8, 64, 504, 512, 520, 1024, 4096, 4104, 32768};
    static const double errors[] = {0, 1e-6, 2e-5};
    uint64_t resent = 0;
    for (uint32_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(errors); i++) {
        double period_ps[2] = {0};
        for (uint32_t way = 0; way < 5; way++) {
            const struct lant_chain_config config = {.costs = costs,
                                                     .by_cpu = way == 0,
                                                     .bytes = sizes[i / COUNT_OF(errors)],
                                                     .blocks = 10,
                                                     .under_way = way == 4 ? 1 : 3,
                                                     .buffers = way == 2 ? 2 : 1,
                                                     .overlap = way >= 3,
                                                     .direct = way == 4};
            struct rig *rig = run_chain(&config, i + 1, errors[i % COUNT_OF(errors)]);
            if (way < 2) {
                period_ps[way] = lant_chain_period_ps(&rig->chain);
            }
            resent +=
                rig->world.nodes[0].shm.counters.resent + rig->world.nodes[0].rdma.counters.again;
            close_rig(rig);
        }
        assert_true(i % COUNT_OF(errors) != 0 || period_ps[1] < period_ps[0]);
    }
    assert_true(resent > 100);
}

/* Words that are lost, not only damaged, come 10,000 cycles later: until they are there, no word of
 * the next work leaves, and the input of the lost one's is not overwritten. */
static void test_lost_words(void **state)
{
    (void)state;
    uint64_t timeouts = 0;
    for (uint32_t way = 0; way < 3; way++) {
        const struct lant_chain_config config = {.costs = costs,
                                                 .by_cpu = way == 0,
                                                 .bytes = 16,
                                                 .blocks = 400,
                                                 .under_way = 3,
                                                 .buffers = way == 2 ? 2 : 1};
        struct rig *rig = run_chain(&config, 1, 4e-4);
        timeouts += rig->world.nodes[0].shm.counters.timeouts;
        close_rig(rig);
    }
    assert_true(timeouts >= 10);
}

/* -- F2's work comes behind its data ------------------------------------------------------------*/

struct witness {
    struct lant_device device;
    struct rig *rig;
    uint64_t data, window;
    uint32_t seen, bytes;
};

static void look(struct lant_device *device, uint64_t address)
{
    struct witness *witness = CONTAINER_OF(device, struct witness, device);
    const struct rig *rig = witness->rig;
    if (address >= witness->window && address < witness->window + LANT_ACCELERATOR_WORK_BYTES) {
        witness->seen++;
        assert_memory_equal(rig->world.nodes[1].memory + witness->data,
                            rig->world.nodes[0].memory + witness->data, witness->bytes);
    }
}

/* No word of the work is there before all data is, whatever goes wrong with the transfer. */
static void test_order(void **state)
{
    (void)state;
    uint64_t again = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rig *rig = open_rig(seed, 2e-5);
        const struct lant_chain_config config = {
            .costs = costs, .bytes = 4096, .blocks = 6, .under_way = 1, .buffers = 1};
        struct witness witness = {.rig = rig, .device.on_stored = look, .bytes = 4096};
        lant_chain_open(&rig->chain, &config, &rig->world);
        witness.window = rig->chain.accelerators[1].config.work_window;
        witness.data = rig->chain.accelerators[0].config.intermediate;
        assert_int_equal(witness.data, rig->chain.accelerators[0].config.remote_source);
        lant_api_add_device(&rig->chain.apis[1], &witness.device);
        assert_true(lant_chain_run(&rig->chain));
        assert_int_equal(rig->chain.wrong, 0);
        assert_true(witness.seen >= 6 * LANT_ACCELERATOR_WORDS);
        again += rig->world.nodes[0].rdma.counters.again;
        lant_chain_close(&rig->chain);
        close_rig(rig);
    }
    assert_true(again > 20);
}

/* -- Work that a peer stores --------------------------------------------------------------------*/

enum {
    WINDOW = 0x200000,
    SOURCE = 0x1000,
    RESULT = 0x9000,
    NOTIFICATION = 0x300000,
    BYTES = 256,
};

static const struct lant_accelerator_work good = {SOURCE, BYTES, RESULT, BYTES, NOTIFICATION};

static void on_result(void *context, uint64_t address, const struct lant_accelerator_work *work)
{
    struct rig *rig = context;
    assert_int_equal(address, work->destination);
    rig->results++;
}

static struct rig *open_single(uint64_t latency)
{
    struct rig *rig = open_rig(1, 0);
    const struct lant_api_config api = {.timeout_ps = LANT_NEVER};
    const struct lant_accelerator_config config = {.role = LANT_ACCELERATOR_LAST,
                                                   .latency_cycles = latency,
                                                   .work_window = WINDOW,
                                                   .buffers = 1,
                                                   .burst_cycles = 22,
                                                   .adds = 1};
    for (uint32_t i = 0; i < 2; i++) {
        lant_api_open(&rig->apis[i], &api, &rig->world.nodes[i]);
    }
    lant_accelerator_open(&rig->accelerator, &config, &rig->apis[1], on_result, rig);
    for (uint32_t i = 0; i < BYTES; i++) {
        rig->world.nodes[1].memory[SOURCE + i] = (uint8_t)(i * 5);
    }
    return rig;
}

static void close_single(struct rig *rig)
{
    lant_accelerator_close(&rig->accelerator);
    for (uint32_t i = 0; i < 2; i++) {
        lant_api_close(&rig->apis[i]);
    }
    close_rig(rig);
}

/* Node 0 stores one word of the work, and waits until it is there. */
static void store_word(struct rig *rig, const struct lant_accelerator_work *work, uint32_t word)
{
    uint8_t bytes[LANT_ACCELERATOR_WORK_BYTES];
    struct lant_call call = {0}, fence = {0};
    lant_accelerator_encode(work, bytes);
    lant_api_shm_write(&rig->apis[0], &call, lant_global(1, WINDOW + 8 * word), bytes + 8 * word,
                       8);
    lant_api_shm_fence(&rig->apis[0], &fence, 1);
    while (!lant_call_has_returned(&fence)) {
        assert_true(sim_step(&rig->sim));
    }
    assert_int_equal(lant_api_poll(&call), LANT_STORE_DONE);
}

static void settle(struct rig *rig)
{
    sim_run_until(&rig->sim, rig->sim.now_ps + lant_cycles(200000));
}

/* The words are work when all have come, in any order. */
static void test_words(void **state)
{
    (void)state;
    struct rig *rig = open_single(10);
    for (uint32_t turn = 0; turn < LANT_ACCELERATOR_WORDS; turn++) {
        for (uint32_t i = 0; i < LANT_ACCELERATOR_WORDS; i++) {
            assert_int_equal(rig->accelerator.counters.works, turn);
            store_word(rig, &good,
                       (LANT_ACCELERATOR_WORDS - 1 - i + turn) % LANT_ACCELERATOR_WORDS);
        }
        settle(rig);
        assert_int_equal(rig->results, turn + 1);
        assert_int_equal(rig->world.nodes[1].memory[NOTIFICATION], turn + 1);
    }
    for (uint32_t i = 0; i < BYTES; i++) {
        assert_int_equal(rig->world.nodes[1].memory[RESULT + i], (uint8_t)(i * 5 + 1));
    }
    assert_int_equal(rig->accelerator.counters.overruns, 0);
    store_word(rig, &good, 2);
    store_word(rig, &good, 2);
    assert_int_equal(rig->accelerator.counters.overruns, 1);
    close_single(rig);
}

/* A peer's stores are judged; a store that finds no room is lost, and both are counted. */
static void test_peers(void **state)
{
    (void)state;
    struct rig *rig = open_single(1000000);
    struct lant_accelerator_work wrong = good;
    wrong.destination = LANT_CHAIN_MEMORY - BYTES + 1;
    for (uint32_t i = 0; i < LANT_ACCELERATOR_WORDS; i++) {
        store_word(rig, &wrong, i);
    }
    assert_int_equal(rig->accelerator.counters.refused, 1);
    /* One is being worked on, and as many as there can be wait. */
    for (uint32_t work = 0; work < LANT_ACCELERATOR_WORKS + 3; work++) {
        for (uint32_t i = 0; i < LANT_ACCELERATOR_WORDS; i++) {
            store_word(rig, &good, i);
        }
    }
    assert_int_equal(rig->accelerator.counters.works, LANT_ACCELERATOR_WORKS + 1);
    assert_int_equal(rig->accelerator.counters.lost, 2);
    assert_int_equal(rig->accelerator.counters.refused, 1);
    close_single(rig);
}

/* work_accelerator() returns 0, or 1 if the queue is full; nonsense is refused by another name. */
static void test_work(void **state)
{
    (void)state;
    struct rig *rig = open_single(10);
    struct lant_accelerator_work wrong[6];
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        wrong[i] = good;
    }
    wrong[0].bytes = LANT_ACCELERATOR_BLOCK_MAX + 8;
    wrong[1].result_bytes = BYTES + 1;
    wrong[2].result_bytes = 0;
    wrong[3].source = UINT64_MAX - 8;
    wrong[4].destination = LANT_CHAIN_MEMORY;
    wrong[5].notification = LANT_CHAIN_MEMORY - 7;
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(lant_accelerator_work(&rig->accelerator, &wrong[i]),
                         LANT_ACCELERATOR_REFUSES);
    }
    for (uint32_t i = 0; i < LANT_ACCELERATOR_WORKS; i++) {
        assert_int_equal(lant_accelerator_work(&rig->accelerator, &good), 0);
    }
    assert_int_equal(lant_accelerator_work(&rig->accelerator, &good), 1);
    assert_int_equal(rig->accelerator.counters.refused, COUNT_OF(wrong));
    settle(rig);
    assert_int_equal(rig->results, LANT_ACCELERATOR_WORKS);
    close_single(rig);
}

/* -- Failures -----------------------------------------------------------------------------------*/

/* A transfer or a store that is refused stops the accelerator; LNI-32: the CPU in charge hears of
 * the second. */
static void test_failures(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct rig *rig = open_rig(1, 0);
        const struct lant_chain_config config = {
            .costs = costs, .bytes = 1024, .blocks = 4, .under_way = 2, .buffers = 1};
        lant_chain_open(&rig->chain, &config, &rig->world);
        struct lant_accelerator_config *first = &rig->chain.accelerators[0].config;
        *(i == 0 ? &first->remote_bram : &first->remote_work) = lant_global(1, LANT_CHAIN_MEMORY);
        assert_false(lant_chain_run(&rig->chain));
        assert_true(rig->chain.accelerators[0].failed);
        assert_int_equal(rig->chain.finished, 0);
        assert_int_equal(rig->chain.accelerators[1].counters.works, 0);
        assert_true(i == 0 || rig->world.nodes[1].counters.reports > 0);
        lant_chain_close(&rig->chain);
        close_rig(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),      cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_lost_words), cmocka_unit_test(test_order),
        cmocka_unit_test(test_words),      cmocka_unit_test(test_peers),
        cmocka_unit_test(test_work),       cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
