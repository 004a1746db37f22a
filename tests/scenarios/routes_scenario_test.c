/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A peer that names somebody else's address makes nobody send there but challenges, which
 *         are small, few, and fewer than the peer pays for; whichever connection it said so on.
 *         Addresses that are the peer's are used, left when they die, and used again.
 * Method  Two NICs in virtual time, with two connections between them; WRITEs and READs both ways.
 *         The liar is a NIC that takes the stranger's address for its own: it says so in HELLO and
 *         WELCOME, sends from there, and guesses responses.
 *         Replay and more worlds: tests/scenarios/seeds.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/proof.h"
#include "tests/scenarios/seeds.h"
#include "tests/world/nic_world.h"
#include "wire/block.h"

#define BYTES       200000u
#define PAIRS       2u /* Connections between the two. */
#define US          UINT64_C(1000000)
#define MS          (1000 * US)
#define PAUSE       (50 * MS)
#define BASE        0x100000u
#define STEPS_MAX   20000000
#define CHALLENGE_B (ROCE_BTH_BYTES + BLOCK_CXH_BYTES + ROCE_ICRC_BYTES + 28)

struct end {
    struct pd pd;
    struct cq cq;
    struct completion ring[64];
    struct region region;
    uint8_t *bytes;
    struct qp *qp[PAIRS];
    void *memory[PAIRS];
    uint32_t posted, done;
};

struct run {
    struct nic_world world;
    struct sim_event tick; /* The next messages' time. */
    struct end ends[2];
    uint64_t seed;
};

static struct seeds seeds;

static void *zeroed(size_t bytes)
{
    const size_t room = (bytes + 63u) & ~(size_t)63u;
    return memset(aligned_alloc(64, room), 0, room);
}

static void make_end(struct run *run, uint32_t node)
{
    struct end *end = &run->ends[node];
    struct nic *nic = run->world.nodes[node].nic;
    end->bytes = zeroed(BYTES);
    const struct region_request region = {.address = (uintptr_t)end->bytes,
                                          .bytes = BYTES,
                                          .start = BASE,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                    ACCESS_REMOTE_READ};
    assert_int_equal(region_add(nic_regions(nic), &end->pd, &region, &end->region), STATUS_OK);
    cq_init(&end->cq, 64, end->ring);
    struct qp_request request = {.type = QP_RC,
                                 .pd = &end->pd,
                                 .send_cq = &end->cq,
                                 .receive_cq = &end->cq,
                                 .capacity = {.sends = 8, .send_sges = 1},
                                 .signal_all = true};
    for (uint32_t i = 0; i < PAIRS; i++) {
        end->memory[i] = zeroed(qp_bytes(QP_RC, &request.capacity, false));
        assert_int_equal(qp_create(nic, &request, end->memory[i], &end->qp[i]), STATUS_OK);
    }
}

static void connect_end(struct run *run, uint32_t node, uint32_t pair)
{
    struct qp_attributes step = {.port = 1,
                                 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
                                 .path_mtu = PATH_MTU_1024,
                                 .destination_qpn = qp_number(run->ends[!node].qp[pair]),
                                 .av = {.source = run->world.nodes[node].gid,
                                        .destination = run->world.nodes[!node].gid,
                                        .peer = NIC_WORLD_PEER},
                                 .max_reads_out = 16,
                                 .max_reads_in = 16,
                                 .timeout = 14,
                                 .retry_count = 7};
    static const uint32_t masks[] = {QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
                                     QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                                         QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
                                         QP_ATTR_MIN_RNR_TIMER,
                                     QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                                         QP_ATTR_MAX_QP_RD_ATOMIC | QP_ATTR_SQ_PSN};
    for (uint32_t i = 0; i < COUNT_OF(masks); i++) {
        step.state = (uint8_t)(QP_INIT + i);
        assert_int_equal(qp_modify(run->ends[node].qp[pair], &step, masks[i] | QP_ATTR_STATE,
                                   sim_instant(&run->world.sim)),
                         STATUS_OK);
    }
}

static void on_tick(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    (void)event;
}

static struct run *begin(uint64_t seed, enum nic_world_second second)
{
    struct run *run = calloc(1, sizeof(*run));
    struct prng prng;
    prng_init(&prng, seed);
    const uint32_t worst = prng_below(&prng, 2) ? 20000 : 0;
    const struct nic_world_settings settings = {
        .second = second,
        .link = {.latency_ps = US + prng_below(&prng, 2 * MS),
                 .reorder_ps = 20 * US,
                 .faults.millionths = {[SIM_FAULT_drop] = (uint32_t)prng_below(&prng, worst + 1),
                                       [SIM_FAULT_reorder] = worst,
                                       [SIM_FAULT_duplicate] = worst}}};
    const struct nic_limits limits = {.qps = 4,
                                      .regions = 4,
                                      .sends_per_qp = 8,
                                      .receives_per_qp = 1,
                                      .sges = 1,
                                      .inline_bytes = 64,
                                      .reads_per_qp = 16,
                                      .cq_entries = 64,
                                      .mtu = PATH_MTU_1024,
                                      .block = {.transport = NIC_TRANSPORT_BLOCK,
                                                .window = 64,
                                                .contexts = 256,
                                                .held = 256,
                                                .reads = 64,
                                                .paths = 4,
                                                .peers = 1}};
    run->seed = seed;
    sim_event_init(&run->tick, on_tick);
    nic_world_init(&run->world, seed, &settings, &limits);
    for (uint32_t node = 0; node < 2; node++) {
        nic_note_answers(run->world.nodes[node].nic, NIC_WORLD_PEER, true);
        make_end(run, node);
    }
    for (uint32_t pair = 0; pair < PAIRS; pair++) {
        connect_end(run, 0, pair);
        connect_end(run, 1, pair);
    }
    return run;
}

static void end_run(struct run *run)
{
    for (uint32_t node = 0; node < 2; node++) {
        struct end *end = &run->ends[node];
        for (uint32_t i = 0; i < PAIRS; i++) {
            qp_destroy(end->qp[i]);
        }
        for (uint32_t i = 0; i < COUNT_OF(end->memory); i++) {
            free(end->memory[i]);
        }
        free(end->bytes);
    }
    nic_world_free(&run->world);
    free(run);
}

static void post(struct run *run, uint32_t node, uint32_t pair, enum work_kind kind)
{
    struct end *end = &run->ends[node];
    const uint64_t half = kind == WORK_WRITE ? 0 : BYTES / 2;
    const struct sge sge = {BASE + half, BYTES / 2, end->region.key};
    const struct send_request send = {.kind = kind,
                                      .sges = &sge,
                                      .sge_count = 1,
                                      .remote_address = BASE + half,
                                      .remote_key = run->ends[!node].region.key};
    assert_int_equal(qp_post_send(end->qp[pair], &send), STATUS_OK);
    end->posted++;
}

static uint64_t counter(const struct run *run, uint32_t node, enum nic_counter which)
{
    return nic_counters(run->world.nodes[node].nic)->values[which];
}

static void reap(struct run *run)
{
    struct completion completion = {0};
    for (uint32_t node = 0; node < 2; node++) {
        while (cq_poll(&run->ends[node].cq, &completion, 1) == 1) {
            if (completion.status != COMPLETION_SUCCESS) {
                fail_msg("seed %llu: node %u: status %u", (unsigned long long)run->seed, node,
                         completion.status);
            }
            run->ends[node].done++;
        }
    }
}

/* A response with a number that the liar makes up, from the address that it names. */
static void guess(struct run *run, uint32_t pair, uint64_t number)
{
    struct qp *qp = run->ends[0].qp[pair];
    uint8_t headers[BLOCK_HEADERS_BYTES_MAX];
    struct nic_move move;
    const struct block_packet packet = {.opcode = BLOCK_RESPONSE,
                                        .destination_qpn = qp_number(qp),
                                        .session = (uint32_t)number,
                                        .challenge = number};
    const struct nic_frame frame = {.headers = headers,
                                    .headers_bytes = (uint32_t)block_encode(&packet, headers),
                                    .source = run->world.gids[3],
                                    .destination = run->world.gids[2]};
    assert_int_equal(
        nic_on_packet(run->world.nodes[0].nic, &frame, sim_instant(&run->world.sim), &move),
        NIC_DONE);
}

/* Messages of both kinds by both ends on both connections. */
static void post_more(struct run *run)
{
    for (uint32_t node = 0; node < 2; node++) {
        const struct end *end = &run->ends[node];
        for (uint32_t i = 0; i < 2 * PAIRS && end->posted - end->done < 2 * PAIRS; i++) {
            post(run, node, i / 2, i % 2 ? WORK_WRITE : WORK_READ);
        }
    }
}

static void work_until(struct run *run, uint64_t end_ps, bool guesses)
{
    uint32_t steps = 0;
    while (run->world.sim.now_ps < end_ps) {
        if (!sim_event_scheduled(&run->tick)) {
            post_more(run);
            sim_after(&run->world.sim, &run->tick, PAUSE);
        }
        assert_true(nic_world_step(&run->world) && steps++ < STEPS_MAX);
        reap(run);
        if (guesses && steps % 100 == 0) {
            guess(run, steps / 100 % PAIRS, prng_next(&run->world.sim.prng));
        }
    }
}

static void expect_bounded(const struct run *run)
{
    const struct nic_world *world = &run->world;
    const uint64_t challenges = counter(run, 0, COUNTER_challenges_sent);
    const uint64_t responses = counter(run, 0, COUNTER_challenges_received);
    if (challenges == 0 || challenges > PROOF_TRIES_MAX ||
        world->astray_packets > challenges + responses ||
        world->astray_bytes != world->astray_packets * CHALLENGE_B ||
        world->astray_bytes > 3 * world->sent_bytes[1]) {
        fail_msg("seed %llu: %llu bytes in %llu packets went to the stranger; %llu challenges",
                 (unsigned long long)run->seed, (unsigned long long)world->astray_bytes,
                 (unsigned long long)world->astray_packets, (unsigned long long)challenges);
    }
}

static void test_nobodys_weapon(void **state)
{
    (void)state;
    uint64_t seed;
    struct seeds these = seeds;
    while (seeds_next(&these, &seed)) {
        struct run *run = begin(seed, NIC_WORLD_STOLEN);
        work_until(run, 500 * MS, true);
        expect_bounded(run);
        assert_int_equal(counter(run, 0, COUNTER_challenges_proven), 0);
        assert_true(counter(run, 0, COUNTER_block_streams) == PAIRS && run->ends[0].done > 0);
        end_run(run);
    }
}

/* Packets that left between second addresses while the ends worked for `long_ps`. */
static uint64_t work_on_second(struct run *run, uint64_t long_ps)
{
    const uint64_t before = run->world.carried[1];
    work_until(run, run->world.sim.now_ps + long_ps, false);
    return run->world.carried[1] - before;
}

/* The first address dies; then the second one, for longer than its proof lasts; and so on. */
static void test_own_addresses_come_and_go(void **state)
{
    (void)state;
    uint64_t seed;
    struct seeds these = seeds;
    while (seeds_next(&these, &seed)) {
        if (seed % 10 != 1) {
            continue;
        }
        struct run *run = begin(seed, NIC_WORLD_OWN);
        assert_true(work_on_second(run, 1000 * MS) > 20);
        assert_true(counter(run, 0, COUNTER_challenges_proven) > 0);
        run->world.dead_pairs[0] = true;
        assert_true(work_on_second(run, 8000 * MS) > 100);
        run->world.dead_pairs[0] = false;
        run->world.dead_pairs[1] = true;
        (void)work_on_second(run, 9000 * MS);
        assert_true(work_on_second(run, 3000 * MS) <= 100); /* Challenges, and a few more. */
        run->world.dead_pairs[1] = false;
        (void)work_on_second(run, 25000 * MS);
        assert_true(work_on_second(run, 1000 * MS) > 20);
        end_run(run);
    }
}

int main(int argc, char **argv)
{
    seeds = seeds_from_arguments(argc, argv, 20);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nobodys_weapon),
                                       cmocka_unit_test(test_own_addresses_come_and_go)};
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
