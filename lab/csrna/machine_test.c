/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The units work together on buses and wires: contexts are hidden or not, wait or not, and
 *         are never lost. The same parameters give the same run.
 * Method  Small machines; each run by itself fails if a byte is wrong, a packet out of order, or a
 *         cached context other than the engine's state. Behaviours CSR-25 .. CSR-30, CSR-39 ..
 *         CSR-41, CSR-47 .. CSR-50.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab/csrna/experiments.h"

static struct lab_run run;

static struct csrna_load prepare_for(const struct lab_experiment *experiment, const char *setting,
                                     enum csrna_policy policy, uint32_t qps)
{
    char error[LAB_TEXT_BYTES];
    lab_prepare(&run, experiment, 1);
    if (setting != NULL) {
        assert_true(lab_set_all(&run, setting, error, sizeof(error)));
    }
    struct csrna_load load = csrna_load_of(&run);
    load.policy = policy;
    load.qps = qps;
    load.bytes = 64;
    load.oocap = 16;
    load.framing = CSRNA_FRAMING_MODEL;
    return load;
}

/* For a rate. */
static struct csrna_load prepare(const char *setting, enum csrna_policy policy, uint32_t qps)
{
    return prepare_for(&csrna_one, setting, policy, qps);
}

static struct csrna_result execute(const struct csrna_load *load)
{
    const struct csrna_result result = csrna_run(&run, load);
    if (run.failure[0] != '\0') {
        fail_msg("%s", run.failure);
    }
    return result;
}

static double latency_of(enum csrna_policy policy, uint32_t qps)
{
    struct csrna_load load = prepare_for(&csrna_latency, "jitter=0", policy, qps);
    load.one_at_a_time = true;
    return execute(&load).latency_us;
}

/* CSR-28, CSR-29: with the send queue's address on the chip, WQE and context are read side by
 * side. */
static void test_hiding(void **state)
{
    (void)state;
    const double cached = latency_of(CSRNA_HIDING, 100);
    const double waits = latency_of(CSRNA_NB, 1000);
    const double hidden = latency_of(CSRNA_HIDING, 1000);
    assert_true(waits - cached > 0.5 && waits - cached < 0.55);
    assert_true(hidden - cached < 0.03);
}

/* CSR-27: nobody misses, so nobody is blocked: not a cycle's difference. CSR-30: contexts that are
 * cached are read once. */
static void test_all_cached(void **state)
{
    (void)state;
    struct csrna_load load = prepare(NULL, CSRNA_NB, 100);
    const struct csrna_result free = execute(&load);
    const uint64_t digest = run.digest;
    assert_int_equal(free.server.fetches, 100);
    load = prepare(NULL, CSRNA_FCFS, 100);
    const struct csrna_result blocking = execute(&load);
    assert_true(free.rate > 0.999 * blocking.rate && free.rate < 1.001 * blocking.rate);
    load = prepare(NULL, CSRNA_HIDING, 100);
    assert_int_equal(execute(&load).server.fetches, 100);
    assert_true(run.digest != digest);
    assert_true(latency_of(CSRNA_NB, 100) == latency_of(CSRNA_FCFS, 100));
}

/* CSR-25, CSR-26, CSR-40: a miss holds up everything, or, at sender and receivers, its own only. */
static void test_blocking(void **state)
{
    (void)state;
    struct csrna_load load = prepare(NULL, CSRNA_HIDING, 6000);
    const double small = execute(&load).rate;
    load.cache_entries = 6000;
    const double large = execute(&load).rate;
    assert_true(small > 0.97 * large);
    load.cache_entries = 300;
    load.policy = CSRNA_FCFS;
    assert_true(execute(&load).rate < 0.2 * large);
}

/* Other NICs: all contexts are on the chip, and a connection more is refused; or as many as its
 * parameter says, and a miss holds up everything. */
static void test_other_nics(void **state)
{
    (void)state;
    struct csrna_load load = prepare(NULL, CSRNA_ERNIC, 127);
    assert_int_equal(execute(&load).server.fetches, 127);
    load.qps = 128;
    assert_false(csrna_run(&run, &load).rate >= 0);
    assert_string_equal(run.failure, "eRNIC takes 127 connections, and not 128");
    load = prepare("srnic=400", CSRNA_SRNIC, 400);
    assert_int_equal(execute(&load).server.fetches, 400);
    load = prepare("connectx=200", CSRNA_CONNECTX, 200);
    const double best = execute(&load).rate;
    load.qps = 250;
    assert_true(execute(&load).rate < 0.2 * best);
}

/* CSR-39, CSR-41: packets are lost, data and acknowledgements; every byte arrives all the same. */
static void test_loss(void **state)
{
    (void)state;
    for (uint32_t reads = 0; reads < 2; reads++) {
        for (uint32_t policy = 0; policy < 3; policy++) {
            struct csrna_load load = prepare("loss=0.01", (enum csrna_policy)policy, 600);
            load.reads = reads != 0;
            const struct csrna_result result = execute(&load);
            assert_true(result.lost > 100 && result.resent > 100);
        }
    }
}

/* CSR-47: where contexts live changes when, not what. */
static void test_placement(void **state)
{
    (void)state;
    struct csrna_load load = prepare_for(&csrna_latency, NULL, CSRNA_NB, 1000);
    load.one_at_a_time = true;
    const struct csrna_result host = execute(&load);
    load.placement = CSRNA_BOARD;
    const struct csrna_result board = execute(&load);
    assert_int_equal(host.messages, board.messages);
    assert_int_equal(host.server.misses, board.server.misses);
    assert_true(host.latency_us - board.latency_us > 0.35);
}

/* CSR-48: a seed decides a run. CSR-50: the counters add up. */
static void test_repeats(void **state)
{
    (void)state;
    struct csrna_load load = prepare("loss=0.001", CSRNA_HIDING, 2000);
    const struct csrna_result first = execute(&load);
    const uint64_t digest = run.digest;
    load = prepare("loss=0.001", CSRNA_HIDING, 2000);
    execute(&load);
    assert_true(run.digest == digest);
    const struct qpc_counters *seen = &first.server;
    assert_int_equal(seen->fetches, seen->misses + seen->conversions + seen->prefetches -
                                        seen->prefetch_hits - seen->prefetch_pendings);
    assert_true(seen->evictions <= seen->fetches && seen->write_backs <= seen->evictions);
    lab_prepare(&run, &csrna_one, 2);
    execute(&load);
    assert_true(run.digest != digest);
}

/* CSR-49: more requests out of order, more messages, until something else is the bound. */
static void test_capacity(void **state)
{
    (void)state;
    double before = 0;
    for (uint32_t oocap = 1; oocap <= 16; oocap *= 2) {
        struct csrna_load load = prepare(NULL, CSRNA_HIDING, 3000);
        load.oocap = oocap;
        const double rate = execute(&load).rate;
        assert_true(rate > (oocap > 8 ? 0.999 : 1) * before);
        assert_true(oocap > 4 || (rate > 9.5e6 * oocap && rate < 10.6e6 * oocap));
        before = rate;
    }
}

/* CSR-43, CSR-44: the least of everything works. */
static void test_least(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < 3; policy++) {
        struct csrna_load load = prepare(NULL, (enum csrna_policy)policy, 50);
        load.oocap = 1;
        load.cache_entries = 1;
        assert_true(execute(&load).rate > 0);
        load.qps = 1;
        for (uint32_t victims = QPC_VICTIM_LRU; victims <= QPC_VICTIM_RANDOM; victims++) {
            load.victims = (enum qpc_victim_policy)victims;
            assert_true(execute(&load).rate > 0);
        }
    }
}

/* Evicted contexts are written behind everybody's back: a miss takes a visit one round trip, with
 * first come, first served, too. */
static void test_posted_writes(void **state)
{
    (void)state;
    struct csrna_load load = prepare(NULL, CSRNA_FCFS, 600);
    const double rate = execute(&load).rate;
    assert_true(rate > 0.88 * 5.5e6 / 0.518 && rate < 5.5e6 / 0.518);
}

/* Each direction of PCIe has its own bandwidth: in this machine, both are used more than half. */
static void test_both_directions(void **state)
{
    (void)state;
    struct csrna_load load = prepare("processing=1 ethernet=400", CSRNA_HIDING, 3000);
    load.reads = true;
    load.bytes = 256;
    const struct csrna_result result = execute(&load);
    assert_true(result.pcie_in + result.pcie_out > 1.05);
    assert_true(result.pcie_in <= 1 && result.pcie_out <= 1);
}

/* The bytes of a packet on the wire decide the rate of long messages: 12 + 8 + 16 bytes beside the
 * data, or 98 with RoCEv2. In the public model the server's own link is no bound, but that of a
 * client is. */
static void test_framing(void **state)
{
    (void)state;
    static const struct {
        enum csrna_framing framing;
        uint32_t clients, beside;
    } cases[] = {{CSRNA_FRAMING_HEADERS, 10, 36},
                 {CSRNA_FRAMING_ROCEV2, 10, 98},
                 {CSRNA_FRAMING_MODEL, 1, 0}};
    struct csrna_load load = prepare("processing=1", CSRNA_HIDING, 100);
    load.bytes = 4096;
    load.framing = CSRNA_FRAMING_MODEL;
    assert_true(execute(&load).rate > 1.2 * 12.5e9 / 4096);
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        load.framing = cases[i].framing;
        load.clients = cases[i].clients;
        const double bound = 12.5e9 / (4096 + cases[i].beside);
        const double share = execute(&load).rate / bound;
        assert_true(share > 0.99 && share < 1.01);
    }
}

/* A round trip takes 2 us on the wire alone. The window of a whole NIC lets its number of packets
 * through in this time, also if packets of a full window are lost. */
static void test_window(void **state)
{
    (void)state;
    struct csrna_load load = prepare(NULL, CSRNA_HIDING, 1000);
    assert_true(execute(&load).rate > 60e6);
    load.window_of = CSRNA_WINDOW_OF_NIC;
    const double rate = execute(&load).rate;
    assert_true(rate > 0.9 * 100 / 2.57e-6 && rate < 50e6); /* Contexts are missing, too. */
    load = prepare("window=1 loss=0.01", CSRNA_HIDING, 20);
    load.window_of = CSRNA_WINDOW_OF_NIC;
    assert_true(execute(&load).rate > 0);
    load = prepare("window=1", CSRNA_HIDING, 20);
    assert_true(execute(&load).rate > 0);
    load = prepare("window=5 loss=0.05", CSRNA_NB, 600);
    load.window_of = CSRNA_WINDOW_OF_NIC;
    assert_true(execute(&load).rate > 0);
}

/* An acknowledgement asks for a context only if the window is not on the chip. */
static void test_acks(void **state)
{
    (void)state;
    struct csrna_load load = prepare(NULL, CSRNA_NB, 100);
    const struct csrna_result on_chip = execute(&load);
    load = prepare("acks=context", CSRNA_NB, 100);
    const struct csrna_result context = execute(&load);
    assert_true(context.server.hits > on_chip.server.hits + context.messages / 12);
    assert_true(context.rate > 0.99 * on_chip.rate && context.rate < 1.01 * on_chip.rate);
}

/* The test finds what a setting breaks. */
static void test_found(void **state)
{
    (void)state;
    struct csrna_load load = prepare("write_back=off", CSRNA_HIDING, 600);
    assert_true(execute(&load).stale > 100);
    load = prepare("corrupt=0.001", CSRNA_HIDING, 600);
    assert_true(execute(&load).wrong > 10);
    load = prepare("loss=0.001", CSRNA_HIDING, 600);
    assert_true(execute(&load).disorder > 10);
    load = prepare(NULL, CSRNA_HIDING, 600);
    const struct csrna_result sound = execute(&load);
    assert_int_equal(sound.stale + sound.wrong + sound.disorder, 0);
}

/* Every byte of every message is compared, also in a batch whose messages go to one place, and with
 * what a READ brings. Two runs that differ in it have two digests. */
static void test_every_byte(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t digests[2];
        for (uint32_t corrupt = 0; corrupt < 2; corrupt++) {
            struct csrna_load load =
                prepare(corrupt ? "corrupt=0.001" : "corrupt=1e-9", CSRNA_HIDING, 200);
            load.reads = i % 2 != 0;
            load.bytes = i < 2 ? 64 : 1024;
            const struct csrna_result result = execute(&load);
            const double expected = corrupt ? 0.001 * (double)result.messages : 0;
            assert_true((double)result.wrong >= 0.6 * expected);
            assert_true((double)result.wrong <= 1.6 * expected);
            digests[corrupt] = run.digest;
        }
        assert_true(digests[0] != digests[1]);
    }
}

/* Software that takes longer now and shorter then: the mean stays, and the seed decides the run. */
static void test_jitter(void **state)
{
    (void)state;
    const double steady = latency_of(CSRNA_HIDING, 100);
    struct csrna_load load = prepare_for(&csrna_latency, "jitter=1", CSRNA_HIDING, 100);
    load.one_at_a_time = true;
    const double varies = execute(&load).latency_us;
    const uint64_t digest = run.digest;
    assert_true(varies > 0.99 * steady && varies < 1.01 * steady);
    run.seed = 2;
    execute(&load);
    assert_true(run.digest != digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hiding),
        cmocka_unit_test(test_all_cached),
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_other_nics),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_posted_writes),
        cmocka_unit_test(test_both_directions),
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_acks),
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
