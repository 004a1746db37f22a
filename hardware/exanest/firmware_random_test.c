/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever happens to blocks, each transfer ends, with every byte delivered exactly as cut,
 *         or in ERROR within the limits; and nothing is left behind.
 * Method  Seeded worlds of the rig: writes and reads of random size, alignment and time on all
 *         pages; blocks that are acknowledged, refused for every cause, lost, answered twice, late
 *         and out of order; page faults at the source; stores that stall; requests that come twice.
 */
#include "hardware/exanest/firmware_rig.h"

struct world {
    struct rig *rig;
    uint32_t writes, reads; /* Still to be posted. */
    uint64_t next_at;
    bool busy[EXANEST_CHANNELS];
    uint32_t request_id, failed;
};

static uint32_t random_bytes(struct prng *prng)
{
    return 1 + (uint32_t)prng_below(prng, UINT64_C(1) << (1 + prng_below(prng, 17)));
}

static void post_write(struct world *world)
{
    struct rig *rig = world->rig;
    struct prng *prng = &rig->prng;
    const uint32_t page = (uint32_t)prng_below(prng, EXANEST_PAGES);
    const uint32_t channel = (uint32_t)prng_below(prng, EXANEST_WRITE_CHANNELS);
    if (world->busy[page * 64 + channel]) {
        return; /* The program waits until a channel is free (EXA-48). */
    }
    struct rig_transfer *transfer = rig_add(rig, (uint32_t)prng_below(prng, 40000),
                                            (uint32_t)prng_below(prng, 40000), random_bytes(prng));
    transfer->path = (uint8_t)prng_below(prng, rig->firmware.config.paths);
    if (prng_below(prng, 20) == 0) {
        transfer->doom = (int)(RIG_NACK_FAULT + prng_below(prng, RIG_LOST));
    }
    world->busy[page * 64 + channel] = true;
    world->writes--;
    rig_post(rig, transfer, page, channel, prng_below(prng, 2) == 0, prng_below(prng, 4) == 0);
}

static void post_read(struct world *world)
{
    struct rig *rig = world->rig;
    struct prng *prng = &rig->prng;
    if (rig->requests + 1 >= RIG_FIFO) {
        return; /* The mailbox refuses it; the packetizer tries again. */
    }
    struct rig_transfer *transfer = rig_add(rig, (uint32_t)prng_below(prng, 40000),
                                            (uint32_t)prng_below(prng, 40000), random_bytes(prng));
    const uint32_t page = (uint32_t)prng_below(prng, 3);
    const uint32_t id = world->request_id++;
    assert_true(rig_request(rig, transfer, page, id % 5, (uint16_t)(id % 16), id));
    world->reads--;
    if (prng_below(prng, 4) == 0) { /* Its acknowledgement is lost: it comes again (EXA-55). */
        rig_request(rig, transfer, page, id % 5, (uint16_t)(id % 16), id);
    }
}

/* The programs run. */
static void play_programs(struct world *world)
{
    struct rig *rig = world->rig;
    if (rig->now < world->next_at) {
        return;
    }
    if (world->writes + world->reads != 0) {
        world->next_at = rig->now + prng_below(&rig->prng, 30000);
        rig_event(rig, world->next_at, RIG_WAKE, 0, 0, 0);
    }
    for (uint32_t i = 0; i < rig->transfer_count; i++) {
        struct rig_transfer *transfer = &rig->transfers[i];
        if (transfer->ended && world->busy[transfer->channel] && transfer->pdid != 0) {
            const struct exanest_transfer state = rig_state(rig, transfer);
            const bool done = state.state == EXANEST_TRANSFER_DONE;
            assert_true(done || state.state == EXANEST_TRANSFER_ERROR);
            assert_true(done || transfer->doom >= 0);
            if (done) {
                assert_int_equal(state.acked, transfer->bytes);
                rig_assert_delivered(rig, transfer);
            }
            world->failed += !done;
            world->busy[transfer->channel] = false;
            transfer->pdid = 0; /* Seen. */
        }
    }
    for (uint64_t i = prng_below(&rig->prng, 4); i > 0; i--) {
        if (world->writes != 0) {
            post_write(world);
        }
        if (world->reads != 0) {
            post_read(world);
        }
    }
}

/* The events that all worlds together have seen. */
static uint64_t fates_seen[RIG_FATES];
static struct exanest_firmware_counters seen;

static void remember(const struct rig *rig)
{
    const struct exanest_firmware_counters *counters = &rig->firmware.counters;
    for (uint32_t fate = 0; fate < RIG_FATES; fate++) {
        fates_seen[fate] += rig->fates[fate];
    }
    seen.stale += counters->stale;
    seen.timeouts += counters->timeouts;
    seen.timeouts_unsent += counters->timeouts_unsent;
    seen.not_done += counters->not_done;
    seen.mapped += counters->mapped;
    seen.tid_waits += counters->tid_waits;
    seen.writes_failed += counters->writes_failed;
    seen.reads_duplicate += counters->reads_duplicate;
}

static void run_world(uint64_t seed, uint32_t trouble, struct exanest_firmware_config config)
{
    struct world *world = calloc(1, sizeof(*world));
    struct rig *rig = rig_new(&config, seed);
    *world = (struct world){.rig = rig, .writes = 150, .reads = 100};
    rig->random = true;
    rig->trouble = trouble;
    while (world->writes + world->reads != 0 || !rig_over(rig)) {
        play_programs(world);
        rig_step(rig);
        assert_true(rig->now < UINT64_C(60000000000)); /* A minute. */
    }
    play_programs(world);
    const struct exanest_firmware_counters *counters = &rig->firmware.counters;
    assert_int_equal(rig->firmware.free_count, config.tids);
    assert_int_equal(counters->writes_done + counters->writes_failed, 150);
    assert_int_equal(counters->reads_done, 100);
    for (uint32_t i = 0; i < rig->transfer_count; i++) {
        if (rig->transfers[i].read) {
            rig_assert_delivered(rig, &rig->transfers[i]);
            assert_int_equal(rig->transfers[i].served, 1);
        }
    }
    /* EXA-58, EXA-50: 12 reads for each request, none without a result. */
    assert_int_equal(rig->pl_request_reads,
                     config.request_reads * (counters->reads_taken + counters->reads_duplicate));
    exanest_firmware_check_all(&rig->firmware);
    remember(rig);
    free(rig);
    free(world);
}

static struct exanest_firmware_config continuing(void)
{
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.sequences = EXANEST_CONTINUING;
    return config;
}

/* EXA-44, EXA-45, EXA-46, EXA-47, EXA-51, EXA-52, EXA-53, EXA-55, EXA-56, EXA-67 */
static void test_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run_world(seed, (uint32_t)(seed % 4 * 12), continuing());
    }
}

/* The same with few TIDs (a full list just waits), other windows, paths and cores. */
static void test_variants(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 130; seed++) {
        struct exanest_firmware_config config = continuing();
        config.tids = (uint16_t)(seed % 3 == 0 ? 1 + seed % 7 : 1024);
        config.writes_outstanding = (uint16_t)(1 + seed % 6);
        config.reads_outstanding = (uint16_t)(1 + seed % 5);
        config.issues_per_pass = (uint16_t)(1 + seed % 4);
        config.paths = (uint8_t)(1 + seed % 3);
        config.path_policy = (uint8_t)(seed % 2);
        config.request_reads = seed % 2 ? 4 : 12;
        config.control_bytes = seed % 4 ? 16 : 32;
        config.polls_when_idle = seed % 5 == 0;
        if (config.polls_when_idle) { /* A core that never sleeps shall not have to wait long. */
            config.back_off_ns = 500;
            config.fault_wait_ns = 500;
            config.retries_max = 9;
        }
        if (seed % 6 == 1) {
            config.costs = (struct exanest_firmware_costs){0};
            config.polls_when_idle = false;
        }
        run_world(seed, 20, config);
    }
}

/* Strict sequences are right as long as nothing old arrives: no fate but an ACK, and refusals. */
static void test_strict(void **state)
{
    (void)state;
    for (uint64_t seed = 200; seed < 210; seed++) {
        run_world(seed, 0, exanest_firmware_defaults());
    }
}

/* Each fault has struck, and so has each rule. */
static void test_variety(void **state)
{
    (void)state;
    for (uint32_t fate = 0; fate < RIG_FATES; fate++) {
        assert_true(fates_seen[fate] > 20);
    }
    assert_true(seen.stale > 20 && seen.timeouts > 20 && seen.timeouts_unsent > 20);
    assert_true(seen.not_done > 20 && seen.mapped > 20 && seen.tid_waits > 20);
    assert_true(seen.writes_failed > 20 && seen.reads_duplicate > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults), cmocka_unit_test(test_variants),
        cmocka_unit_test(test_strict), cmocka_unit_test(test_variety), /* The last one. */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
