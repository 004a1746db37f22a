/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Small requests of a program that posts in company wait for one another, large ones never:
 *         the peer copies the first while the next is posted. Over UDP large is what fills a call.
 * Method  Pairs of READs, each polled for at once, until the counters of the port say that one was
 *         posted and did not leave; then requests of all sizes.
 */
#include "tests/api/api.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A sanitized program is so slow that no poll follows its post soon enough to be a habit. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW 1
#else
#define SLOW 0
#endif

#define PAIRS_MAX (SLOW ? 2000 : 200000)

/* From here on. */
static uint32_t large_bytes(void)
{
    const char *wire = getenv("NONIC_WIRE");
    return wire != NULL && strcmp(wire, "udp") == 0 ? 32768 : 2048;
}

static uint64_t sent(void)
{
    return api_counter("hw_counters/sent_pkts");
}

static void post(struct api *api, enum ibv_wr_opcode opcode, uint32_t bytes)
{
    assert_int_equal(api_post(api->qps[0], opcode, api_sge(api->mrs[0], 0, bytes),
                              (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                     0);
}

static void reap(struct api *api, int count)
{
    struct ibv_wc wc;
    while (count > 0) {
        const int got = ibv_poll_cq(api->cqs[0], 1, &wc);
        assert_true(got >= 0);
        assert_true(got == 0 || wc.status == IBV_WC_SUCCESS);
        count -= got;
    }
}

static void post_pair(struct api *api)
{
    post(api, IBV_WR_RDMA_READ, 8);
    post(api, IBV_WR_RDMA_READ, 8);
    reap(api, 2);
}

/* The program's habit is believed: a small request is posted and waits. It is left under way. */
static bool one_waits(struct api *api)
{
    for (int pairs = 0; pairs < PAIRS_MAX; pairs++) {
        post_pair(api);
        if (pairs % 100 != 99) {
            continue;
        }
        const uint64_t before = sent();
        post(api, IBV_WR_RDMA_READ, 8);
        if (sent() == before) {
            return true;
        }
        reap(api, 1);
    }
    return false;
}

/* Behind a small request that waits. True: one of this size leaves at once. */
static bool leaves_at_once(struct api *api, uint32_t bytes)
{
    if (!one_waits(api)) {
        assert_true(SLOW);
        skip();
    }
    const uint64_t before = sent();
    post(api, IBV_WR_RDMA_WRITE, bytes);
    const bool left = sent() > before;
    reap(api, 2);
    return left;
}

static void test_large_requests_do_not_wait(void **state)
{
    struct api *api = *state;
    const uint32_t small[] = {1, 64, large_bytes() - 1};
    const uint32_t large[] = {large_bytes(), MEMORY_BYTES};
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
        /* When this thread is held up for a millisecond, nonic's own sends what waits. */
        int tries = 0;
        while (leaves_at_once(api, small[i])) {
            assert_true(++tries < 10);
        }
    }
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        assert_true(leaves_at_once(api, large[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_large_requests_do_not_wait, api_open_rc, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
