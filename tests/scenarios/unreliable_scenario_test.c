/* SPDX-License-Identifier: BSD-2-Clause
 *
 * unreliable_scenario_test - unreliable connections and datagrams over a bad network.
 *
 * Goal    What arrives is right and whole, whatever the network does; what is lost costs itself
 *         alone; the sender always gets its completion; on a good network nothing is lost.
 * Method  Two NICs in virtual time. Each message carries its serial number as immediate data, from
 *         which size and bytes follow. The seed chooses service, faults, MTU and slow memory. Run
 *         twice, a seed gives the same digest.
 *         Replay and more worlds: tests/scenarios/seeds.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/scenarios/seeds.h"
#include "tests/world/nic_world.h"
#include "tests/world/variety.h"

#define MESSAGES   200
#define SLOTS      64
#define SLOT_BYTES 16384
#define RECEIVES   48
#define US         UINT64_C(1000000)
#define BASE       0x100000000u
#define QKEY       0x77777777u

struct side {
    struct pd pd;
    struct cq cq;
    struct completion *ring;
    struct qp *qp;
    void *qp_memory;
    struct region region;
    uint8_t *bytes; /* SLOTS slots to send from or be written to, then RECEIVES slots. */
};

struct scenario {
    struct nic_world world;
    struct prng prng;
    uint64_t seed;
    enum qp_type type;
    uint32_t mtu_bytes;
    bool calm;
    struct side sides[2]; /* 0 sends, 1 receives. */
    struct nic_av av;
    uint32_t posted, completed, arrived, receives_posted, receives_used;
    uint8_t arrivals[MESSAGES];
    uint8_t is_write[MESSAGES];
};

static uint8_t pattern(uint32_t serial, uint32_t index)
{
    return (uint8_t)(serial * 37 + index * 7 + (index >> 8) * 13);
}

static uint32_t bytes_of(const struct scenario *scenario, uint32_t serial)
{
    struct prng prng;
    prng_init(&prng, scenario->seed * 1000 + serial);
    const uint32_t most = scenario->type == QP_UD ? scenario->mtu_bytes : SLOT_BYTES;
    switch (prng_below(&prng, 3)) {
    case 0: return (uint32_t)prng_below(&prng, 64);
    case 1: return most - (uint32_t)prng_below(&prng, 3);
    default: return (uint32_t)prng_below(&prng, most + 1);
    }
}

static void expect_message(const struct scenario *scenario, const uint8_t *bytes, uint32_t serial)
{
    const uint32_t count = bytes_of(scenario, serial);
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] != pattern(serial, i)) {
            fail_msg("seed %llu: message %u: byte %u of %u is wrong",
                     (unsigned long long)scenario->seed, serial, i, count);
        }
    }
}

/* -- Making -------------------------------------------------------------------------------------*/

static void make_side(struct scenario *scenario, int node)
{
    struct side *side = &scenario->sides[node];
    const size_t bytes = (SLOTS + RECEIVES) * SLOT_BYTES;
    side->bytes = calloc(1, bytes);
    const struct region_request region = {.address = (uintptr_t)side->bytes,
                                          .bytes = bytes,
                                          .start = BASE,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE};
    assert_int_equal(
        region_add(nic_regions(scenario->world.nodes[node].nic), &side->pd, &region, &side->region),
        STATUS_OK);
    side->ring = calloc(cq_ring_entries(512), sizeof(struct completion));
    cq_init(&side->cq, 512, side->ring);
    struct qp_request request = {
        .type = scenario->type,
        .pd = &side->pd,
        .send_cq = &side->cq,
        .receive_cq = &side->cq,
        .capacity = {.sends = 32, .receives = RECEIVES, .send_sges = 1, .receive_sges = 1},
        .signal_all = true};
    const size_t qp_size = (qp_bytes(scenario->type, &request.capacity, false) + 63u) & ~63ul;
    side->qp_memory = aligned_alloc(64, qp_size);
    memset(side->qp_memory, 0, qp_size);
    assert_int_equal(
        qp_create(scenario->world.nodes[node].nic, &request, side->qp_memory, &side->qp),
        STATUS_OK);
}

static void step_up(struct scenario *scenario, int node, uint32_t psn, uint8_t mtu)
{
    const bool ud = scenario->type == QP_UD;
    struct qp *qp = scenario->sides[node].qp;
    const struct instant now = sim_instant(&scenario->world.sim);
    struct qp_attributes step = {.state = QP_INIT,
                                 .port = 1,
                                 .qkey = QKEY,
                                 .access = ACCESS_REMOTE_WRITE,
                                 .path_mtu = (uint8_t)mtu,
                                 .psn = {.receive = psn, .send = psn},
                                 .destination_qpn = qp_number(scenario->sides[!node].qp),
                                 .av = {.source = scenario->world.nodes[node].gid,
                                        .destination = scenario->world.nodes[!node].gid}};
    assert_int_equal(qp_modify(qp, &step,
                               QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
                                   (uint32_t)(ud ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS),
                               now),
                     STATUS_OK);
    step.state = QP_RTR;
    const uint32_t connection = QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
    assert_int_equal(qp_modify(qp, &step, QP_ATTR_STATE | (ud ? 0 : connection), now), STATUS_OK);
    step.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &step, QP_ATTR_STATE | QP_ATTR_SQ_PSN, now), STATUS_OK);
    if (node == 0) {
        scenario->av = step.av;
    }
}

static struct nic_world_settings draw_settings(struct prng *prng, bool calm)
{
    const uint32_t drop = calm ? 0 : (uint32_t)prng_below(prng, 100000);
    const uint32_t duplicate = calm ? 0 : (uint32_t)prng_below(prng, 50000);
    const uint32_t reorder = calm ? 0 : (uint32_t)prng_below(prng, 50000);
    const uint32_t lazy = prng_below(prng, 2) ? (uint32_t)prng_below(prng, 500000) : 0;
    const uint64_t latency_ps = US / 2 + prng_below(prng, 20 * US);
    return (struct nic_world_settings){
        .move_ps = prng_below(prng, 2) ? prng_below(prng, 5 * US) : 0,
        .link = {.latency_ps = latency_ps,
                 .reorder_ps = 4 * latency_ps,
                 .faults.millionths = {[SIM_FAULT_drop] = drop,
                                       [SIM_FAULT_duplicate] = duplicate,
                                       [SIM_FAULT_reorder] = reorder,
                                       [SIM_FAULT_lazy] = lazy}}};
}

/* In every third world routers say that they meet congestion. */
static uint32_t draw_marks(uint64_t seed)
{
    struct prng prng;
    prng_init(&prng, seed * 2 + 7);
    return prng_below(&prng, 3) == 0 ? (uint32_t)prng_below(&prng, 100000) : 0;
}

static struct scenario *scenario_make(uint64_t seed)
{
    struct scenario *scenario = calloc(1, sizeof(*scenario));
    scenario->seed = seed;
    prng_init(&scenario->prng, seed * 2 + 1);
    struct prng *prng = &scenario->prng;
    scenario->calm = prng_below(prng, 4) == 0;
    scenario->type = prng_below(prng, 2) ? QP_UC : QP_UD;
    struct nic_world_settings settings = draw_settings(prng, scenario->calm);
    settings.link.faults.millionths[SIM_FAULT_mark] = draw_marks(seed);
    const struct nic_limits limits = {.qps = 16,
                                      .regions = 16,
                                      .sends_per_qp = 64,
                                      .receives_per_qp = 64,
                                      .receives_per_srq = 64,
                                      .sges = 8,
                                      .inline_bytes = 256,
                                      .reads_per_qp = 16,
                                      .cq_entries = 4096,
                                      .mtu = PATH_MTU_4096};
    nic_world_init(&scenario->world, seed, &settings, &limits);
    const uint8_t mtu =
        scenario->type == QP_UD ? PATH_MTU_4096 : (uint8_t)(PATH_MTU_256 + prng_below(prng, 5));
    scenario->mtu_bytes = 128u << mtu;
    make_side(scenario, 0);
    make_side(scenario, 1);
    step_up(scenario, 0, 0xfffff0, mtu);
    step_up(scenario, 1, 0xfffff0, mtu);
    return scenario;
}

static void scenario_free(struct scenario *scenario)
{
    for (int n = 0; n < 2; n++) {
        qp_destroy(scenario->sides[n].qp);
        free(scenario->sides[n].qp_memory);
        free(scenario->sides[n].ring);
        free(scenario->sides[n].bytes);
    }
    nic_world_free(&scenario->world);
    free(scenario);
}

/* -- Driving ------------------------------------------------------------------------------------*/

static void post(struct scenario *scenario)
{
    const uint32_t serial = scenario->posted++;
    struct side *side = &scenario->sides[0];
    const uint32_t slot = serial % SLOTS, bytes = bytes_of(scenario, serial);
    const bool write = scenario->type == QP_UC && prng_below(&scenario->prng, 3) == 0;
    for (uint32_t i = 0; i < bytes; i++) {
        side->bytes[slot * SLOT_BYTES + i] = pattern(serial, i);
    }
    scenario->is_write[serial] = write;
    const struct sge sge = {BASE + (uint64_t)slot * SLOT_BYTES, bytes, side->region.key};
    const struct send_request request = {.wr_id = serial,
                                         .kind = write ? WORK_WRITE_IMMEDIATE : WORK_SEND_IMMEDIATE,
                                         .sges = &sge,
                                         .sge_count = 1,
                                         .immediate = serial,
                                         .remote_address = sge.address,
                                         .remote_key = scenario->sides[1].region.key,
                                         .av = &scenario->av,
                                         .destination_qpn = qp_number(scenario->sides[1].qp),
                                         .destination_qkey = QKEY};
    assert_int_equal(qp_post_send(side->qp, &request), STATUS_OK);
}

static uint32_t receive_slot(uint64_t wr_id)
{
    return SLOTS + (uint32_t)(wr_id % RECEIVES);
}

/* Sometimes there is no receive: then a message is lost, and that is all. */
static void post_receives(struct scenario *scenario)
{
    struct side *side = &scenario->sides[1];
    const uint32_t wanted = scenario->calm ? RECEIVES : (uint32_t)prng_below(&scenario->prng, 4);
    while (scenario->receives_posted - scenario->receives_used < wanted) {
        const uint64_t id = scenario->receives_posted++;
        const struct sge sge = {BASE + (uint64_t)receive_slot(id) * SLOT_BYTES, SLOT_BYTES,
                                side->region.key};
        assert_int_equal(qp_post_receive(side->qp, id, &sge, 1), STATUS_OK);
    }
}

static void on_received(struct scenario *scenario, const struct completion *completion)
{
    const struct side *side = &scenario->sides[1];
    const uint32_t serial = completion->immediate;
    assert_true(completion->flags & COMPLETION_HAS_IMMEDIATE);
    assert_true(serial < scenario->posted);
    const bool ud = scenario->type == QP_UD, write = scenario->is_write[serial];
    const uint32_t slot = write ? serial % SLOTS : receive_slot(completion->wr_id);
    assert_int_equal(completion->bytes, bytes_of(scenario, serial) + (ud ? NIC_GRH_BYTES : 0));
    expect_message(scenario, side->bytes + slot * SLOT_BYTES + (ud ? NIC_GRH_BYTES : 0), serial);
    scenario->receives_used = (uint32_t)completion->wr_id + 1;
    scenario->arrivals[serial]++;
    scenario->arrived++;
}

static void poll_sides(struct scenario *scenario)
{
    struct completion completion = {0};
    while (cq_poll(&scenario->sides[0].cq, &completion, 1) == 1) {
        assert_int_equal(completion.status, COMPLETION_SUCCESS);
        assert_int_equal(completion.wr_id, scenario->completed);
        scenario->completed++;
    }
    while (cq_poll(&scenario->sides[1].cq, &completion, 1) == 1) {
        assert_int_equal(completion.status, COMPLETION_SUCCESS);
        on_received(scenario, &completion);
    }
}

/* On a good network no more is sent than there are receives for: then all of it must arrive. */
static bool may_post(const struct scenario *scenario)
{
    return scenario->posted < MESSAGES && scenario->posted - scenario->completed < 16 &&
           !(scenario->calm && scenario->posted - scenario->arrived >= RECEIVES);
}

struct sums {
    uint64_t counters[COUNTER_COUNT]; /* The receiver's. */
    struct variety faults;
};

static uint64_t run(uint64_t seed, struct sums *sums)
{
    struct scenario *scenario = scenario_make(seed);
    uint64_t steps = 0;
    bool more = true;
    while (more || scenario->completed < MESSAGES) {
        poll_sides(scenario);
        post_receives(scenario);
        if (may_post(scenario)) {
            post(scenario);
        }
        more = nic_world_step(&scenario->world);
        if (++steps > 1000000) {
            fail_msg("seed %llu: no end", (unsigned long long)seed);
        }
    }
    poll_sides(scenario);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        if (scenario->calm && scenario->arrivals[i] != 1) {
            fail_msg("seed %llu: message %u arrived %u times on a good network",
                     (unsigned long long)seed, i, scenario->arrivals[i]);
        }
    }
    for (int c = 0; c < COUNTER_COUNT; c++) {
        sums->counters[c] += nic_counters(scenario->world.nodes[1].nic)->values[c];
    }
    variety_add(&sums->faults, &scenario->world.link.settings.faults);
    const uint64_t digest = scenario->world.sim.digest + scenario->arrived;
    scenario_free(scenario);
    return digest;
}

static struct seeds seeds;

static void test_random_worlds(void **state)
{
    (void)state;
    struct sums sums = {0};
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        const uint64_t digest = run(seed, &sums);
        if (seed % 16 == 0 && run(seed, &sums) != digest) {
            fail_msg("seed %llu: another digest the second time", (unsigned long long)seed);
        }
    }
    /* Rules that nobody exercised are rules that nobody tested. */
    if (seeds.count >= 100) {
        assert_true(sums.counters[COUNTER_drop_no_receive] > 0);
        assert_true(sums.counters[COUNTER_drop_in_gap] > 0);
        assert_null(variety_missing(&sums.faults, 1u << SIM_FAULT_drop | 1u << SIM_FAULT_duplicate |
                                                      1u << SIM_FAULT_reorder |
                                                      1u << SIM_FAULT_lazy | 1u << SIM_FAULT_mark));
        assert_true(sums.counters[COUNTER_np_cnp_sent] > 0);
    }
}

int main(int argc, char **argv)
{
    seeds = seeds_from_arguments(argc, argv, 300);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_worlds)};
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
