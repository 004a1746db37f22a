/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What one function posts comes to another, byte by byte, and at the time that is the sum
 *         of the parameters on its way, to the picosecond. Payloads are those of their DMA time,
 *         inline data those of the post; a completion is never visible before its data.
 * Method  Two programs on two nodes of a star post by the engine's own functions; the sums are
 *         written down here, apart from the machine's code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/roce/machine.h"
#include "lab/roce/program.h"

#define MEMORY 65536u
#define FAR    32768u /* The offset of what arrives. */

struct pair {
    struct sim sim;
    struct roce_config config;
    struct roce *roce;
    struct roce_program programs[2];
    struct qp *qps[2];
};

static struct roce_config config_with(const char *const *settings)
{
    char error[LAB_TEXT_BYTES];
    struct roce_settings chosen = roce_settings_default();
    for (; *settings != NULL; settings++) {
        if (!roce_set(&chosen, *settings, error, sizeof(error))) {
            fail_msg("%s", error);
        }
    }
    struct roce_config config = roce_config_of(&chosen);
    strcpy(config.topology, "star:2");
    return config;
}

static struct pair *pair_open(enum qp_type type, const char *const *settings)
{
    char error[LAB_TEXT_BYTES];
    struct pair *pair = calloc(1, sizeof(*pair));
    assert_non_null(pair);
    sim_init(&pair->sim, 1);
    pair->config = config_with(settings);
    pair->roce = roce_open(&pair->sim, &pair->config, error, sizeof(error));
    if (pair->roce == NULL) {
        fail_msg("%s", error);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct roce_program_config config = {.node = i,
                                                   .memory_bytes = MEMORY,
                                                   .qps = 4,
                                                   .depth = 64,
                                                   .mtu = PATH_MTU_1024,
                                                   .timeout = 14,
                                                   .seed = 1 + i};
        roce_program_open(&pair->programs[i], pair->roce, &pair->sim, &config);
        pair->qps[i] = roce_program_qp(&pair->programs[i], type);
        for (uint32_t at = 0; at < MEMORY; at++) {
            pair->programs[i].memory[at] = (uint8_t)(at * 7 + i * 101 + at / 256);
        }
    }
    if (type != QP_UD) {
        roce_program_connect(&pair->programs[0], pair->qps[0], &pair->programs[1], pair->qps[1]);
    }
    return pair;
}

static void pair_close(struct pair *pair)
{
    for (uint32_t i = 0; i < 2; i++) {
        nic_check(pair->programs[i].engine);
        roce_program_close(&pair->programs[i]);
    }
    roce_close(pair->roce);
    free(pair);
}

static void write_from(struct pair *pair, uint32_t from, uint32_t bytes, uint32_t flags)
{
    const struct roce_program *peer = &pair->programs[1 - from];
    const struct send_request request = {.kind = WORK_WRITE,
                                         .flags = flags,
                                         .wr_id = bytes,
                                         .remote_address = roce_program_address(peer, FAR),
                                         .remote_key = peer->region.key};
    roce_program_post(&pair->programs[from], pair->qps[from], &request, 0, bytes);
}

/* Runs until the program has a completion. */
static struct completion await(struct pair *pair, uint32_t program)
{
    struct completion completion;
    while (cq_poll(&pair->programs[program].cq, &completion, 1) == 0) {
        assert_true(sim_step(&pair->sim));
    }
    assert_int_equal(completion.status, COMPLETION_SUCCESS);
    return completion;
}

static void assert_moved(struct pair *pair, uint32_t from, uint32_t bytes)
{
    assert_memory_equal(pair->programs[1 - from].memory + FAR, pair->programs[from].memory, bytes);
}

/* -- The sums -----------------------------------------------------------------------------------*/

static uint64_t bus_ps(const struct pair *pair, uint64_t bytes)
{
    return bytes * pair->config.pcie.byte_fs / 1000;
}

/* A frame of RoCEv2 over IPv4 in a star: it cuts through the switch. */
static uint64_t network_ps(const struct pair *pair, uint64_t headers, uint64_t payload)
{
    const uint64_t frame = 14 + 20 + 8 + headers + (payload + 3) / 4 * 4 + 4 + 4;
    const uint64_t line = 8 + (frame < 64 ? 64 : frame);
    return line * pair->config.line.byte_fs / 1000 + 2 * pair->config.line.latency_ps +
           pair->config.switches.delay_ps;
}

static uint64_t posted_ps(const struct pair *pair)
{
    const struct roce_pcie *pcie = &pair->config.pcie;
    return bus_ps(pair, 24 + 8) + pcie->doorbell_ps + bus_ps(pair, 20 + 64) + pcie->read_ps;
}

static uint64_t pipelines_ps(const struct pair *pair)
{
    return pair->config.send_ps + pair->config.receive_ps;
}

static uint64_t written_ps(const struct pair *pair, uint64_t bytes)
{
    return bus_ps(pair, 24 + bytes) + pair->config.pcie.write_ps;
}

static uint64_t completed_ps(const struct pair *pair)
{
    return pair->config.complete_ps + bus_ps(pair, 24 + 64);
}

/* From a post of a few bytes until they are visible at the other end. */
static uint64_t one_way_ps(const struct pair *pair, uint64_t headers, uint64_t bytes)
{
    return posted_ps(pair) + bus_ps(pair, 20 + bytes) + pair->config.pcie.read_ps +
           pipelines_ps(pair) + network_ps(pair, headers, bytes) + written_ps(pair, bytes);
}

/* An acknowledgement, until its completion is visible. */
static uint64_t acknowledged_ps(const struct pair *pair)
{
    return pipelines_ps(pair) + network_ps(pair, 12 + 4, 0) + pair->config.pcie.write_ps +
           completed_ps(pair);
}

/* -- Tests --------------------------------------------------------------------------------------*/

static const char *const warm[] = {"cache=0", NULL};

static void test_write_takes_the_sum(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    write_from(pair, 0, 8, WORK_SIGNALED);
    (void)await(pair, 0);
    assert_moved(pair, 0, 8);
    const uint64_t there_ps = one_way_ps(pair, 12 + 16, 8);
    assert_int_equal(pair->programs[1].written_ps, there_ps);
    assert_int_equal(pair->sim.now_ps, there_ps + acknowledged_ps(pair));
    pair_close(pair);
}

static void test_send_completes_behind_its_data(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    roce_program_receive(&pair->programs[1], pair->qps[1], 5, FAR, 64);
    const struct send_request request = {.kind = WORK_SEND, .flags = WORK_SIGNALED};
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 0, 8);
    assert_int_equal(await(pair, 1).wr_id, 5);
    assert_moved(pair, 0, 8);
    const uint64_t there_ps = one_way_ps(pair, 12, 8);
    assert_int_equal(pair->programs[1].written_ps, there_ps);
    assert_int_equal(pair->sim.now_ps, there_ps + completed_ps(pair));
    (void)await(pair, 0);
    assert_int_equal(pair->sim.now_ps, there_ps + completed_ps(pair) + acknowledged_ps(pair));
    pair_close(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_takes_the_sum),
        cmocka_unit_test(test_send_completes_behind_its_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
