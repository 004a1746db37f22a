/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What one function posts comes to another, byte by byte, and at the time that is the sum
 *         of the parameters on its way, to the picosecond. Payloads are those of their DMA time,
 *         inline data those of the post; a completion is never visible before its data. A NIC with
 *         csRNA's units waits for contexts as its policy says, and for nothing else.
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

#include "lab/roce/internal.h"
#include "lab/roce/machine.h"
#include "lab/roce/program.h"

#define MEMORY 1048576u
#define FAR    524288u /* The offset of what arrives. */

struct pair {
    struct sim sim;
    struct roce_config config;
    struct roce *roce;
    struct roce_program programs[2];
    struct qp *qps[2];
};

/* These stand among settings for csRNA's units, with a policy each. */
static const char hiding[] = "hiding", non_blocking[] = "non-blocking", blocking[] = "blocking";

static bool is_policy(const char *setting)
{
    return setting == hiding || setting == non_blocking || setting == blocking;
}

static void add_units(struct roce_config *config, const char *policy)
{
    config->units = (struct roce_units_config){
        .cycle_ps = 1000,
        .blocks = policy == blocking,
        .hides = policy == hiding,
        .prefetch = policy == hiding,
        .writes_back = true,
        .oocap = 2,
        .processing = 15,
        .wqe_room = 8,
        .visit_wqes = 4,
        .visit_bytes = 8192,
        .ready = 4,
        .payloads = 8,
        .backlog_ps = 1000000,
    };
    config->posts_writes = true;
    config->send_ps = config->receive_ps = config->packet_ps = config->complete_ps = 0;
}

static struct roce_config config_with(const char *const *settings)
{
    char error[LAB_TEXT_BYTES];
    struct roce_settings chosen = roce_settings_default();
    const char *policy = NULL;
    for (; *settings != NULL; settings++) {
        if (is_policy(*settings)) {
            policy = *settings;
        } else if (!roce_set(&chosen, *settings, error, sizeof(error))) {
            fail_msg("%s", error);
        }
    }
    struct roce_config config = roce_config_of(&chosen);
    strcpy(config.topology, "star:2");
    if (policy != NULL) {
        add_units(&config, policy);
    }
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

/* Message `number` goes from and to a place of its own. */
#define PLACE(number) ((number)*5000u)

static void write_number(struct pair *pair, uint32_t from, uint32_t number, uint32_t bytes,
                         uint32_t flags)
{
    const struct roce_program *peer = &pair->programs[1 - from];
    const struct send_request request = {.kind = WORK_WRITE,
                                         .flags = flags,
                                         .wr_id = bytes,
                                         .remote_address =
                                             roce_program_address(peer, FAR + PLACE(number)),
                                         .remote_key = peer->region.key};
    roce_program_post(&pair->programs[from], pair->qps[from], &request, PLACE(number), bytes);
}

static void write_from(struct pair *pair, uint32_t from, uint32_t bytes, uint32_t flags)
{
    write_number(pair, from, 0, bytes, flags);
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
    assert_int_equal(pair->programs[0].changes, 1);
    assert_int_equal(pair->programs[1].changes, 1);
    pair_close(pair);
}

/* A completion without data is a write of its own. */
static void test_empty_messages(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    roce_program_receive(&pair->programs[1], pair->qps[1], 5, FAR, 64);
    const struct send_request request = {.kind = WORK_SEND, .flags = WORK_SIGNALED};
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 0, 0);
    assert_int_equal(await(pair, 1).bytes, 0);
    assert_int_equal(pair->sim.now_ps, posted_ps(pair) + pipelines_ps(pair) +
                                           network_ps(pair, 12, 0) + pair->config.pcie.write_ps +
                                           completed_ps(pair));
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
    assert_int_equal(pair->programs[1].changes, 2);
    (void)await(pair, 0);
    assert_int_equal(pair->sim.now_ps, there_ps + completed_ps(pair) + acknowledged_ps(pair));
    pair_close(pair);
}

static void test_read_takes_the_sum(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    const struct send_request request = {.kind = WORK_READ,
                                         .flags = WORK_SIGNALED,
                                         .remote_address =
                                             roce_program_address(&pair->programs[1], 0),
                                         .remote_key = pair->programs[1].region.key};
    roce_program_post(&pair->programs[0], pair->qps[0], &request, FAR, 8);
    (void)await(pair, 0);
    assert_moved(pair, 1, 8);
    const uint64_t asked_ps = posted_ps(pair) + pipelines_ps(pair) + network_ps(pair, 12 + 16, 0);
    const uint64_t there_ps = asked_ps + bus_ps(pair, 20 + 8) + pair->config.pcie.read_ps +
                              pipelines_ps(pair) + network_ps(pair, 12 + 4, 8) +
                              written_ps(pair, 8);
    assert_int_equal(pair->programs[0].written_ps, there_ps);
    assert_int_equal(pair->sim.now_ps, there_ps + completed_ps(pair));
    pair_close(pair);
}

/* Neither the work request nor its data is read by DMA. */
static void test_inline_in_the_doorbell(void **state)
{
    (void)state;
    const char *const settings[] = {"cache=0", "wqe_by=doorbell", NULL};
    struct pair *pair = pair_open(QP_RC, settings);
    write_from(pair, 0, 8, WORK_SIGNALED | WORK_INLINE);
    pair->programs[0].memory[0] ^= 0xff; /* Too late. */
    (void)await(pair, 0);
    pair->programs[0].memory[0] ^= 0xff;
    assert_moved(pair, 0, 8);
    const uint64_t there_ps = bus_ps(pair, 24 + 64) + pair->config.pcie.doorbell_ps +
                              bus_ps(pair, 8) + pipelines_ps(pair) + network_ps(pair, 12 + 16, 8) +
                              written_ps(pair, 8);
    assert_int_equal(pair->programs[1].written_ps, there_ps);
    pair_close(pair);
}

/* Likewise of a READ, at the responder. */
static void test_answer_is_that_of_its_dma_time(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    const struct send_request request = {.kind = WORK_READ,
                                         .flags = WORK_SIGNALED,
                                         .remote_address =
                                             roce_program_address(&pair->programs[1], 0),
                                         .remote_key = pair->programs[1].region.key};
    const uint64_t read_ps = posted_ps(pair) + pipelines_ps(pair) + network_ps(pair, 12 + 16, 0) +
                             bus_ps(pair, 20 + 8) + pair->config.pcie.read_ps;
    roce_program_post(&pair->programs[0], pair->qps[0], &request, FAR, 8);
    sim_run_until(&pair->sim, read_ps - 1);
    pair->programs[1].memory[3] ^= 0xff;
    sim_run_until(&pair->sim, read_ps);
    pair->programs[1].memory[4] ^= 0xff;
    (void)await(pair, 0);
    pair->programs[1].memory[4] ^= 0xff;
    assert_moved(pair, 1, 8);
    pair_close(pair);
}

/* A change before the end of the DMA read is sent, a later one is not. */
static void test_payload_is_that_of_its_dma_time(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    const uint64_t read_ps = posted_ps(pair) + bus_ps(pair, 20 + 8) + pair->config.pcie.read_ps;
    write_from(pair, 0, 8, WORK_SIGNALED);
    sim_run_until(&pair->sim, read_ps - 1);
    pair->programs[0].memory[3] ^= 0xff;
    sim_run_until(&pair->sim, read_ps);
    pair->programs[0].memory[4] ^= 0xff;
    (void)await(pair, 0);
    pair->programs[0].memory[4] ^= 0xff;
    assert_moved(pair, 0, 8);
    pair_close(pair);
}

/* The first packet at each end finds no context. */
static void test_missed_contexts_cost_a_read(void **state)
{
    (void)state;
    const char *const settings[] = {"cache=1", NULL};
    struct pair *pair = pair_open(QP_RC, settings);
    write_from(pair, 0, 8, WORK_SIGNALED);
    (void)await(pair, 0);
    const uint64_t context_ps = bus_ps(pair, 20 + 256) + pair->config.pcie.read_ps;
    assert_int_equal(pair->programs[1].written_ps, one_way_ps(pair, 12 + 16, 8) + context_ps +
                                                       context_ps - pair->config.receive_ps);
    assert_int_equal(roce_counters_of(pair->roce).contexts_read, 2);
    const uint64_t begun_ps = pair->sim.now_ps;
    write_from(pair, 0, 8, WORK_SIGNALED);
    (void)await(pair, 0);
    assert_int_equal(pair->programs[1].written_ps, begun_ps + one_way_ps(pair, 12 + 16, 8));
    pair_close(pair);
}

static uint64_t word_at(const struct pair *pair, uint32_t program, size_t offset)
{
    uint64_t word;
    memcpy(&word, pair->programs[program].memory + offset, sizeof(word));
    return word;
}

static void test_atomic_adds_at_one_time(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    const uint64_t before = word_at(pair, 1, FAR);
    const struct send_request request = {.kind = WORK_FETCH_ADD,
                                         .flags = WORK_SIGNALED,
                                         .compare_or_add = 5,
                                         .remote_address =
                                             roce_program_address(&pair->programs[1], FAR),
                                         .remote_key = pair->programs[1].region.key};
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 64, 8);
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 72, 8);
    (void)await(pair, 0);
    const uint64_t read_ps = bus_ps(pair, 20 + 8) + pair->config.pcie.read_ps;
    const uint64_t there_ps =
        posted_ps(pair) + pipelines_ps(pair) + network_ps(pair, 12 + 28, 0) + read_ps;
    assert_int_equal(pair->sim.now_ps, there_ps + pipelines_ps(pair) +
                                           network_ps(pair, 12 + 4 + 8, 0) + written_ps(pair, 8) +
                                           completed_ps(pair));
    (void)await(pair, 0);
    assert_int_equal(word_at(pair, 0, 64), before);
    assert_int_equal(word_at(pair, 0, 72), before + 5);
    assert_int_equal(word_at(pair, 1, FAR), before + 10);
    pair_close(pair);
}

/* A queue pair of UD can send. */
static void make_ready(struct roce_program *program, struct qp *qp, uint32_t qkey)
{
    struct qp_attributes attributes = {.port = 1, .qkey = qkey};
    for (uint32_t state = QP_INIT; state <= QP_RTS; state++) {
        uint32_t missing, excess;
        qp_judge_change(QP_UD, qp_state_of(qp), (enum qp_state)state, 0, &missing, &excess);
        attributes.state = (uint8_t)state;
        assert_int_equal(
            qp_modify(qp, &attributes, QP_ATTR_STATE | missing, sim_instant(program->sim)),
            STATUS_OK);
    }
    roce_poke(program->function);
}

static void test_datagram_comes_with_its_addresses(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_UD, warm);
    for (uint32_t i = 0; i < 2; i++) {
        make_ready(&pair->programs[i], pair->qps[i], 7);
    }
    roce_program_receive(&pair->programs[1], pair->qps[1], 9, FAR - NIC_GRH_BYTES, 1024);
    const struct nic_av av = roce_program_av(&pair->programs[0], &pair->programs[1]);
    const struct send_request request = {.kind = WORK_SEND,
                                         .flags = WORK_SIGNALED,
                                         .av = &av,
                                         .destination_qpn = qp_number(pair->qps[1]),
                                         .destination_qkey = 7};
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 0, 100);
    uint8_t sent[100];
    memcpy(sent, pair->programs[0].memory, sizeof(sent));
    (void)await(pair, 0);
    memset(pair->programs[0].memory, 0, sizeof(sent)); /* It is the program's again. */
    const struct completion completion = await(pair, 1);
    assert_int_equal(completion.bytes, 100 + NIC_GRH_BYTES);
    assert_int_equal(completion.source_qpn, qp_number(pair->qps[0]));
    assert_memory_equal(pair->programs[1].memory + FAR, sent, sizeof(sent));
    pair_close(pair);
}

struct mail {
    uint32_t count;
    uint64_t at_ps;
    struct gid source;
    uint8_t mad[CM_MAD_BYTES];
};

static void on_datagram(struct roce_program *program, const struct gid *source,
                        const uint8_t *payload, uint32_t bytes)
{
    struct mail *mail = program->context;
    assert_int_equal(bytes, CM_MAD_BYTES);
    mail->count++;
    mail->at_ps = program->sim->now_ps;
    mail->source = *source;
    memcpy(mail->mad, payload, bytes);
}

/* It is posted, and its payload read, by the processor as any program's; its sender may use the
 * bytes again at once. */
static void test_datagram_of_the_manager_takes_the_sum(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_UD, warm);
    struct mail mail = {0};
    uint8_t mad[CM_MAD_BYTES], sent[CM_MAD_BYTES];
    memcpy(mad, pair->programs[0].memory, sizeof(mad));
    memcpy(sent, mad, sizeof(sent));
    pair->programs[1].on_datagram = on_datagram;
    pair->programs[1].context = &mail;
    const struct nic_av av = roce_program_av(&pair->programs[0], &pair->programs[1]);
    roce_manage(pair->programs[0].function, &av, mad);
    memset(mad, 0, sizeof(mad));
    while (mail.count == 0) {
        assert_true(sim_step(&pair->sim));
    }
    /* It is written with its GRH, by two TLPs. */
    const uint64_t bytes = CM_MAD_BYTES;
    assert_int_equal(mail.at_ps, one_way_ps(pair, 12 + 8, bytes) - written_ps(pair, bytes) +
                                     written_ps(pair, 24 + 40 + bytes) + completed_ps(pair));
    assert_memory_equal(mail.mad, sent, sizeof(sent));
    assert_true(gid_equal(&mail.source, &av.source));
    pair_close(pair);
}

/* A process ends: what its manager has said and is not on the line is dropped, and so is what comes
 * for it. */
static void test_datagrams_of_the_manager_end_with_it(void **state)
{
    (void)state;
    for (uint32_t gone = 0; gone < 2; gone++) {
        struct pair *pair = pair_open(QP_UD, warm);
        struct mail mail = {0};
        const uint8_t mad[CM_MAD_BYTES] = {0};
        pair->programs[1].on_datagram = on_datagram;
        pair->programs[1].context = &mail;
        const struct nic_av av = roce_program_av(&pair->programs[0], &pair->programs[1]);
        roce_manage(pair->programs[0].function, &av, mad);
        roce_program_close(&pair->programs[gone]);
        while (sim_step(&pair->sim)) {
        }
        const struct roce_counters counters = roce_counters_of(pair->roce);
        assert_int_equal(mail.count, 0);
        assert_int_equal(counters.forgotten, gone == 0);
        assert_int_equal(counters.nobody, gone == 1);
        roce_program_close(&pair->programs[1 - gone]);
        roce_close(pair->roce);
        free(pair);
    }
}

/* The engine has the second request when the first one leaves, long before its doorbell comes. */
/* A doorbell that has its request in it does not overtake one whose requests are being read. */
static void test_requests_come_in_their_order(void **state)
{
    (void)state;
    const char *const settings[] = {"cache=0", "wqe_by=doorbell", NULL};
    struct pair *pair = pair_open(QP_RC, settings);
    const struct roce_program *peer = &pair->programs[1];
    const struct send_request request = {.kind = WORK_WRITE,
                                         .remote_address = roce_program_address(peer, FAR),
                                         .remote_key = peer->region.key};
    roce_program_add(&pair->programs[0], pair->qps[0], &request, 0, 8);
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 0, 8);
    write_number(pair, 0, 1, 200000, WORK_SIGNALED);
    const uint64_t begun_ps = pair->sim.now_ps;
    (void)await(pair, 0);
    assert_moved(pair, 0, 8);
    assert_true(pair->sim.now_ps - begun_ps < 100000000); /* No timeout of RC, of 67 ms. */
    pair_close(pair);
}

/* Whenever a process ends, its packets take no room of others at its node afterwards. */
static void test_a_process_that_ended_takes_no_room(void **state)
{
    (void)state;
    uint64_t held = 0;
    for (uint64_t after_ps = 0; after_ps < 2000000; after_ps += 50000) {
        struct pair *pair = pair_open(QP_RC, warm);
        write_number(pair, 0, 0, 4096, 0);
        sim_run_until(&pair->sim, posted_ps(pair) + 1000);
        write_number(pair, 0, 1, 4096, WORK_SIGNALED);
        sim_run_until(&pair->sim, pair->sim.now_ps + after_ps);
        held += !list_empty(&roce_connection_of(pair->programs[0].function, pair->qps[0])->held);
        roce_program_close(&pair->programs[0]);
        sim_run_until(&pair->sim, pair->sim.now_ps + 100000000);
        assert_int_equal(pair->roce->nodes[0].waiting_bytes, 0);
        roce_program_close(&pair->programs[1]);
        roce_close(pair->roce);
        free(pair);
    }
    assert_true(held > 0);
}

static void test_a_request_waits_for_its_doorbell(void **state)
{
    (void)state;
    const uint64_t later_ps = 600000;
    struct pair *pair = pair_open(QP_RC, warm);
    write_number(pair, 0, 0, 8, 0);
    sim_run_until(&pair->sim, later_ps);
    write_number(pair, 0, 1, 8, WORK_SIGNALED);
    assert_true(later_ps < posted_ps(pair));
    (void)await(pair, 0);
    const uint64_t there_ps = later_ps + one_way_ps(pair, 12 + 16, 8);
    assert_int_equal(pair->programs[1].written_ps, there_ps);
    assert_int_equal(pair->sim.now_ps, there_ps + acknowledged_ps(pair));
    pair_close(pair);
}

/* -- Several queue pairs ------------------------------------------------------------------------*/

static void connect_another(struct pair *pair, struct qp *qps[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        qps[i] = roce_program_qp(&pair->programs[i], QP_RC);
    }
    roce_program_connect(&pair->programs[0], qps[0], &pair->programs[1], qps[1]);
}

static struct send_request request_to(const struct roce_program *peer, enum work_kind kind,
                                      uint32_t number)
{
    return (struct send_request){.kind = kind,
                                 .flags = WORK_SIGNALED,
                                 .wr_id = number,
                                 .remote_address = roce_program_address(peer, FAR + PLACE(number)),
                                 .remote_key = peer->region.key};
}

/* The first queue pair was posted to twice, and its doorbell does not come. The second one's answer
 * leaves. */
static void test_a_held_queue_pair_holds_no_other(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    struct qp *others[2];
    connect_another(pair, others);
    struct roce_program *own = &pair->programs[0];
    const struct sge sge = {roce_program_address(own, 0), 8, own->region.key};
    struct send_request first = request_to(&pair->programs[1], WORK_WRITE, 0);
    first.sges = &sge;
    first.sge_count = 1;
    assert_int_equal(qp_post_send(pair->qps[0], &first), STATUS_OK);
    assert_int_equal(qp_post_send(pair->qps[0], &first), STATUS_OK);
    roce_poke(own->function);
    const struct send_request back = request_to(own, WORK_WRITE, 1);
    roce_program_post(&pair->programs[1], others[1], &back, PLACE(1), 8);
    (void)await(pair, 1);
    assert_int_equal(pair->sim.now_ps, one_way_ps(pair, 12 + 16, 8) + acknowledged_ps(pair));
    roce_doorbell(own->function, pair->qps[0]);
    (void)await(pair, 0);
    (void)await(pair, 0);
    pair_close(pair);
}

/* Two that are posted to together end together; one after the other, the first one would need half
 * of the time. */
static void test_queue_pairs_take_turns(void **state)
{
    (void)state;
    const uint32_t bytes = 400000;
    static const enum work_kind kinds[] = {WORK_WRITE, WORK_READ};
    for (uint32_t i = 0; i < 2; i++) {
        struct pair *pair = pair_open(QP_RC, warm);
        struct qp *others[2];
        connect_another(pair, others);
        const struct send_request request = request_to(&pair->programs[1], kinds[i], 0);
        roce_program_post(&pair->programs[0], pair->qps[0], &request, 0, bytes);
        roce_program_post(&pair->programs[0], others[0], &request, 0, bytes);
        (void)await(pair, 0);
        const uint64_t first_ps = pair->sim.now_ps;
        (void)await(pair, 0);
        assert_true(pair->sim.now_ps - first_ps < first_ps / 10);
        pair_close(pair);
    }
}

/* Two queue pairs take turns, and each puts the other's context out at both ends. */
/* There is a single flight, which is another node's while both sides want it: they get it when that
 * ends, the one after the other. */
static void test_flights_that_are_free_again(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    pair->roce->flights.count = 1;
    struct roce_flight *taken = sim_pool_take(&pair->roce->flights);
    write_number(pair, 0, 0, 3000, WORK_SIGNALED);
    write_number(pair, 1, 1, 3000, WORK_SIGNALED);
    while (sim_step(&pair->sim)) {
    }
    taken->roce = pair->roce;
    roce_end(taken);
    (void)await(pair, 0);
    (void)await(pair, 1);
    assert_in_range(pair->sim.now_ps, 1, 100000 * SIM_NS);
    pair_close(pair);
}

static void test_the_oldest_context_goes(void **state)
{
    (void)state;
    const char *const settings[][2] = {{"cache=1", NULL}, {"cache=2", NULL}};
    for (uint32_t i = 0; i < 2; i++) {
        struct pair *pair = pair_open(QP_RC, settings[i]);
        struct qp *others[2];
        connect_another(pair, others);
        const struct send_request request = request_to(&pair->programs[1], WORK_WRITE, 0);
        for (uint32_t k = 0; k < 6; k++) {
            roce_program_post(&pair->programs[0], k % 2 == 0 ? pair->qps[0] : others[0], &request,
                              0, 8);
            (void)await(pair, 0);
        }
        assert_int_equal(roce_counters_of(pair->roce).contexts_read, i == 0 ? 12 : 4);
        pair_close(pair);
    }
}

/* A notification that nobody has taken is no news with the next packet. */
static void test_news_are_told_once(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    const struct roce_program *target = &pair->programs[1];
    cq_arm(&pair->programs[1].cq, false);
    roce_program_receive(&pair->programs[1], pair->qps[1], 5, FAR, 64);
    const struct send_request request = {.kind = WORK_SEND, .flags = WORK_SIGNALED};
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 0, 8);
    (void)await(pair, 0);
    assert_true(nic_has_news(target->engine));
    assert_int_equal(target->changes, 2);
    write_from(pair, 0, 8, WORK_SIGNALED);
    (void)await(pair, 0);
    assert_int_equal(target->changes, 3);
    pair_close(pair);
}

/* -- Ends ---------------------------------------------------------------------------------------*/

static void test_a_process_that_ended_gets_nothing(void **state)
{
    (void)state;
    struct pair *pair = pair_open(QP_RC, warm);
    write_from(pair, 0, 8, WORK_SIGNALED);
    sim_run_until(&pair->sim, posted_ps(pair) + 2000000);
    roce_program_close(&pair->programs[1]);
    sim_run_until(&pair->sim, pair->sim.now_ps + 100000000);
    assert_int_equal(roce_counters_of(pair->roce).nobody, 1);
    struct completion completion;
    while (cq_poll(&pair->programs[0].cq, &completion, 1) == 0) {
        assert_true(sim_step(&pair->sim)); /* The engine's timers are events. */
    }
    assert_int_equal(completion.status, COMPLETION_RETRY_EXCEEDED);
    assert_int_equal(roce_counters_of(pair->roce).nobody, 1 + 7);
    roce_program_close(&pair->programs[0]);
    roce_close(pair->roce);
    free(pair);
}

/* Moves and packets that are under way know a queue pair. At each time it may go. */
static void go_at_any_time(const char *const *settings, uint64_t step_ps)
{
    uint64_t forgotten = 0;
    for (uint64_t at_ps = 0; at_ps < 12000000; at_ps += step_ps) {
        struct pair *pair = pair_open(QP_RC, settings);
        const struct send_request request = {.kind = WORK_SEND, .flags = WORK_SIGNALED};
        roce_program_receive(&pair->programs[1], pair->qps[1], 5, FAR, 3000);
        roce_program_post(&pair->programs[0], pair->qps[0], &request, 0, 3000);
        write_number(pair, 1, 0, 3000, WORK_SIGNALED);
        sim_run_until(&pair->sim, at_ps);
        struct qp *qp = pair->qps[1];
        roce_forget(pair->programs[1].function, qp);
        qp_destroy(qp);
        memset((void *)qp, 0xa5, pair->programs[1].each_bytes);
        sim_run_until(&pair->sim, at_ps + 100000000);
        forgotten += roce_counters_of(pair->roce).forgotten;
        pair_close(pair);
    }
    assert_true(forgotten > 1000000 / step_ps);
}

static void test_a_queue_pair_goes_at_any_time(void **state)
{
    (void)state;
    go_at_any_time((const char *const[]){"cache=1", NULL}, 50000);
    go_at_any_time((const char *const[]){"cache=1", hiding, NULL}, 170000);
    go_at_any_time((const char *const[]){"cache=1", blocking, NULL}, 170000);
}

/* -- Streams ------------------------------------------------------------------------------------*/

#define ROUNDS 40u

/* Messages by number, and how many of each program's are complete. */
struct sent {
    enum work_kind kinds[2 * ROUNDS];
    uint32_t bytes[2 * ROUNDS], completed[2];
};

static void post_number(struct pair *pair, struct sent *sent, uint32_t i)
{
    const uint32_t from = i % 2;
    const struct roce_program *peer = &pair->programs[1 - from];
    const struct send_request request = {.kind = sent->kinds[i],
                                         .flags = WORK_SIGNALED,
                                         .remote_address =
                                             roce_program_address(peer, FAR + PLACE(i)),
                                         .remote_key = peer->region.key};
    if (sent->kinds[i] == WORK_SEND) {
        roce_program_receive(&pair->programs[1 - from], pair->qps[1 - from], i, FAR + PLACE(i),
                             PLACE(1));
    }
    const bool rings = i + 2 >= 2 * ROUNDS || prng_below(&pair->sim.prng, 3) != 0;
    (rings ? roce_program_post : roce_program_add)(&pair->programs[from], pair->qps[from], &request,
                                                   PLACE(i), sent->bytes[i]);
}

static void count_completions(struct pair *pair, struct sent *sent)
{
    struct completion completion = {0};
    for (uint32_t program = 0; program < 2; program++) {
        while (cq_poll(&pair->programs[program].cq, &completion, 1) == 1) {
            assert_int_equal(completion.status, COMPLETION_SUCCESS);
            sent->completed[program] += !completion_is_receive(&completion);
        }
    }
}

static void check_stream(const struct pair *pair, const struct sent *sent)
{
    for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
        assert_memory_equal(pair->programs[1 - i % 2].memory + FAR + PLACE(i),
                            pair->programs[i % 2].memory + PLACE(i), sent->bytes[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct nic_counters *counters = nic_counters(pair->programs[i].engine);
        assert_int_equal(counters->values[COUNTER_retransmitted_pkts], 0);
        assert_int_equal(counters->values[COUNTER_out_of_seq_request], 0);
        assert_int_equal(counters->values[COUNTER_stale_acks], 0);
        assert_int_equal(sent->completed[i], ROUNDS);
    }
}

/* Messages of several packets, both ways at a time, whose doorbells ring, for one or more of them,
 * while others are under way. */
static void stream(enum qp_type type, const char *const *settings)
{
    static const enum work_kind kinds[] = {WORK_WRITE, WORK_SEND, WORK_READ};
    struct pair *pair = pair_open(type, settings);
    struct prng *const prng = &pair->sim.prng;
    struct sent sent = {.completed = {0}};
    for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
        sent.kinds[i] = kinds[prng_below(prng, type == QP_RC ? 3 : 1)];
        sent.bytes[i] = 1 + (uint32_t)prng_below(prng, prng_below(prng, 2) == 0 ? 64 : PLACE(1));
        post_number(pair, &sent, i);
        if (prng_below(prng, 2) == 0) {
            sim_run_until(&pair->sim, pair->sim.now_ps + prng_below(prng, 900000));
        }
        count_completions(pair, &sent);
    }
    sim_run_until(&pair->sim, pair->sim.now_ps + 1000000000);
    count_completions(pair, &sent);
    check_stream(pair, &sent);
    pair_close(pair);
}

static void test_streams_keep_their_order(void **state)
{
    (void)state;
    const char *const misses[] = {"cache=1", NULL};
    const char *const carried[] = {"wqe_by=doorbell", "tlp=64", NULL};
    stream(QP_RC, warm);
    stream(QP_RC, misses);
    stream(QP_RC, carried);
    stream(QP_UC, warm);
    for (uint32_t i = 0; i < 3; i++) {
        const char *const policies[] = {hiding, non_blocking, blocking};
        const char *const units[] = {"cache=1", policies[i], NULL};
        stream(QP_RC, units);
        stream(QP_UC, units);
    }
}

/* -- csRNA's units ------------------------------------------------------------------------------*/

#define CYCLE_PS 1000u

/* When the bytes of a WRITE are there, and when it is complete; its contexts are missing, or are
 * there from a WRITE before. */
static void time_write(const char *const *settings, bool cold, uint64_t *there_ps, uint64_t *ps)
{
    struct pair *pair = pair_open(QP_RC, settings);
    uint64_t from_ps = 0;
    for (int i = cold ? 1 : 0; i < 2; i++) {
        from_ps = (pair->sim.now_ps / CYCLE_PS + 1) * CYCLE_PS;
        sim_run_until(&pair->sim, from_ps);
        write_from(pair, 0, 8, WORK_SIGNALED);
        (void)await(pair, 0);
    }
    assert_moved(pair, 0, 8);
    *there_ps = pair->programs[1].written_ps - from_ps;
    *ps = pair->sim.now_ps - from_ps;
    const struct roce_node_counters counters = roce_node_counters_of(pair->roce, 0);
    assert_int_equal(counters.contexts_read, 1);
    assert_int_equal(counters.followed, cold ? 1 : 2);
    pair_close(pair);
}

static void assert_about(uint64_t expected, uint64_t measured, uint64_t cycles)
{
    if (measured < expected || measured > expected + cycles * CYCLE_PS) {
        fail_msg("%llu ps, and not %llu", (unsigned long long)measured,
                 (unsigned long long)expected);
    }
}

/* Each unit takes a cycle. A write is acknowledged when the bus has taken it. */
static void test_units_take_the_sum(void **state)
{
    (void)state;
    const char *const settings[] = {"cache=2", hiding, NULL};
    struct pair *pair = pair_open(QP_RC, settings);
    const uint64_t bell_ps = pair->config.pcie.doorbell_ps;
    const uint64_t sum_ps = one_way_ps(pair, 12 + 16, 8) - posted_ps(pair) + bell_ps +
                            bus_ps(pair, 20 + 64) + pair->config.pcie.read_ps;
    const uint64_t completed = sum_ps - written_ps(pair, 8) + acknowledged_ps(pair);
    pair_close(pair);
    uint64_t there_ps, ps;
    time_write(settings, false, &there_ps, &ps);
    assert_about(sum_ps, there_ps, 10);
    assert_about(completed, ps, 12);
}

/* The receiver's context is never hidden; the sender's is by reading it beside the request. */
static void test_units_wait_for_contexts(void **state)
{
    (void)state;
    const char *const policies[] = {hiding, non_blocking, blocking};
    const uint64_t read_ps = 500000 + (20 + 256) * UINT64_C(63532) / 1000;
    for (uint32_t i = 0; i < 3; i++) {
        const char *const settings[] = {"cache=2", policies[i], NULL};
        uint64_t warm_ps, cold_ps, ps;
        time_write(settings, false, &warm_ps, &ps);
        time_write(settings, true, &cold_ps, &ps);
        const uint64_t reads = i == 0 ? 1 : 2;
        assert_about(reads * read_ps, cold_ps - warm_ps + 4 * CYCLE_PS, 40);
    }
}

/* A READ that comes behind a WRITE finds its bytes, though the WRITE was acknowledged before they
 * were there. */
static void test_a_read_finds_what_was_posted(void **state)
{
    (void)state;
    const char *const settings[] = {"cache=2", "write=9000", hiding, NULL};
    struct pair *pair = pair_open(QP_RC, settings);
    const struct roce_program *peer = &pair->programs[1];
    const struct send_request request = {.kind = WORK_READ,
                                         .flags = WORK_SIGNALED,
                                         .remote_address = roce_program_address(peer, FAR),
                                         .remote_key = peer->region.key};
    write_from(pair, 0, 1000, WORK_SIGNALED);
    roce_program_post(&pair->programs[0], pair->qps[0], &request, 2000, 1000);
    (void)await(pair, 0);
    (void)await(pair, 0);
    assert_memory_equal(pair->programs[0].memory + 2000, pair->programs[0].memory, 1000);
    pair_close(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_takes_the_sum),
        cmocka_unit_test(test_send_completes_behind_its_data),
        cmocka_unit_test(test_empty_messages),
        cmocka_unit_test(test_read_takes_the_sum),
        cmocka_unit_test(test_inline_in_the_doorbell),
        cmocka_unit_test(test_payload_is_that_of_its_dma_time),
        cmocka_unit_test(test_answer_is_that_of_its_dma_time),
        cmocka_unit_test(test_missed_contexts_cost_a_read),
        cmocka_unit_test(test_atomic_adds_at_one_time),
        cmocka_unit_test(test_datagram_comes_with_its_addresses),
        cmocka_unit_test(test_datagram_of_the_manager_takes_the_sum),
        cmocka_unit_test(test_datagrams_of_the_manager_end_with_it),
        cmocka_unit_test(test_requests_come_in_their_order),
        cmocka_unit_test(test_a_process_that_ended_takes_no_room),
        cmocka_unit_test(test_a_request_waits_for_its_doorbell),
        cmocka_unit_test(test_a_held_queue_pair_holds_no_other),
        cmocka_unit_test(test_queue_pairs_take_turns),
        cmocka_unit_test(test_flights_that_are_free_again),
        cmocka_unit_test(test_the_oldest_context_goes),
        cmocka_unit_test(test_news_are_told_once),
        cmocka_unit_test(test_a_process_that_ended_gets_nothing),
        cmocka_unit_test(test_a_queue_pair_goes_at_any_time),
        cmocka_unit_test(test_streams_keep_their_order),
        cmocka_unit_test(test_units_take_the_sum),
        cmocka_unit_test(test_units_wait_for_contexts),
        cmocka_unit_test(test_a_read_finds_what_was_posted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
