/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A byte that came wrong fails the run, however it came. Two runs that differ in a byte of
 *         a payload, or in a loss, have two digests.
 * Method  A bench of two nodes, the memory or a packet of which is changed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lant/bench.h"

enum {
    BYTES = 2048,
    PLACE = 0x1000,
    WORD = 8,
};

static struct lant_bench *begin(void)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, &lant_latency, 1);
    const struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_line_of(run);
    return lant_bench_begin(run, &config, &fabric);
}

/* The digest; whether the run has failed. */
static uint64_t end(struct lant_bench *bench, bool *failed)
{
    struct lab_run *run = bench->run;
    lant_bench_settle(bench);
    lant_bench_end(bench);
    *failed = run->failure[0] != '\0';
    const uint64_t digest = run->digest;
    free(run);
    return digest;
}

/* One byte of what is sent changes while it is under way: `at` BYTES means none. */
static bool transfer_fails(uint32_t at)
{
    bool failed;
    struct lant_bench *bench = begin();
    lant_bench_transfer(bench, 1, BYTES, 0);
    assert_true(lant_bench_until(bench, &bench->probes[0].pushed, 1));
    bench->world.nodes[0].memory[at] ^= 1;
    (void)end(bench, &failed);
    return failed;
}

static void test_transfers(void **state)
{
    (void)state;
    assert_false(transfer_fails(BYTES));
    assert_true(transfer_fails(0));
    assert_true(transfer_fails(BYTES / 2 + 1));
    assert_true(transfer_fails(BYTES - 1));
}

/* A store whose bytes are not those of lant_bench_put. */
static bool store_fails(bool wrong)
{
    bool failed;
    struct lant_bench *bench = begin();
    const struct lant_shm_access access = {
        .address = lant_global(1, PLACE), .bytes = WORD, .store = true};
    const uint64_t word = lant_bench_word(0, access.address) ^ (wrong ? 1 : 0);
    uint8_t data[WORD];
    memcpy(data, &word, WORD);
    assert_true(lant_node_access(&bench->world.nodes[0], &access, data));
    (void)end(bench, &failed);
    return failed;
}

static void test_stores(void **state)
{
    (void)state;
    assert_false(store_fails(false));
    assert_true(store_fails(true));
}

/* The packet as lant_bench_load makes it, with these bits of its payload changed on the way. */
static bool is_whole(uint64_t bits)
{
    struct lant_packet packet = {.header = {.destination = 1,
                                            .type = LANT_RDMA_UNREGISTERED,
                                            .payload = LANT_PAYLOAD_FLITS_MAX},
                                 .footer = {.class = LANT_CLASS_RDMA, .offset = 7}};
    struct lant_frame frame = {0};
    lant_bench_load(&packet);
    packet.payload[LANT_PAYLOAD_FLITS_MAX - 1] ^= bits;
    frame.count = lant_encode(&packet, frame.flits);
    return lant_bench_whole(&frame);
}

static void test_packets(void **state)
{
    (void)state;
    assert_true(is_whole(0));
    assert_false(is_whole(1));
    assert_false(is_whole(UINT64_C(1) << 63));
}

/* A store of BYTES of which one bit in the middle may differ, over a line that may lose its first
 * packet. */
static uint64_t digest_of(bool differs, bool loses)
{
    bool failed;
    struct lant_bench *bench = begin();
    lant_bench_fill(bench, 0, BYTES);
    bench->world.nodes[0].memory[LANT_PAYLOAD_BYTES_MAX / 2] ^= differs;
    lant_bench_transfer(bench, 1, BYTES, 0);
    bench->world.fabric.errors.loss_millionths = loses ? 1000000 : 0;
    (void)lant_bench_until(bench, &bench->world.nodes[0].counters.sent, 1);
    bench->world.fabric.errors.loss_millionths = 0;
    const uint64_t digest = end(bench, &failed);
    assert_false(failed);
    return digest;
}

static void test_digests(void **state)
{
    (void)state;
    const uint64_t digest = digest_of(false, false);
    assert_true(digest == digest_of(false, false));
    assert_true(digest != digest_of(true, false));
    assert_true(digest != digest_of(false, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_stores),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
