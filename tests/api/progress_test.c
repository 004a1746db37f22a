/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Progress is nonic's own business: a transfer goes on however seldom the program polls.
 * Method  A fault specification without faults makes every packet a datagram of its own, so that
 *         none hides in another's system call.
 */
#include "tests/api/api.h"

#include <stdlib.h>
#include <time.h>

static void sleep_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Until nonic believes that the program drives it. */
static void poll_much(struct api *api)
{
    struct ibv_wc wc;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(ibv_poll_cq(api->cqs[0], 1, &wc), 0);
    }
}

/* 64 packets there and 64 acknowledged, while the program looks in once a millisecond: a packet a
 * look would take longer than that, and starve the acknowledgement. */
static void test_program_that_polls_seldom(void **state)
{
    struct api *api = *state;
    struct ibv_wc wc;
    for (int round = 0; round < 10; round++) {
        int looks = 0;
        poll_much(api);
        assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE,
                                  api_sge(api->mrs[0], 0, MEMORY_BYTES), (uintptr_t)api->memory[1],
                                  api->mrs[1]->rkey),
                         0);
        while (ibv_poll_cq(api->cqs[0], 1, &wc) == 0) {
            sleep_ms(1);
            looks++;
            assert_true(looks < 40);
        }
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
    }
}

/* Not at all, after having polled much: the thread takes over. */
static void test_program_that_stops_polling(void **state)
{
    struct api *api = *state;
    for (int round = 0; round < 5; round++) {
        poll_much(api);
        api->memory[0][MEMORY_BYTES - 1] = (uint8_t)(round + 1);
        assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE,
                                  api_sge(api->mrs[0], 0, MEMORY_BYTES), (uintptr_t)api->memory[1],
                                  api->mrs[1]->rkey),
                         0);
        const volatile uint8_t *last = &api->memory[1][MEMORY_BYTES - 1];
        for (int ms = 0; *last != round + 1; ms++) {
            sleep_ms(1);
            assert_true(ms < 1000);
        }
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
}

static void write_bytes(struct api *api, uint32_t at)
{
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], at, 64),
                              (uintptr_t)api->memory[1] + at, api->mrs[1]->rkey),
                     0);
}

/* Posts in company, each polled for at once: the habit that lets posts wait for one another. */
static void post_in_company(struct api *api)
{
    int under_way = 0;
    for (int posted = 0; posted < 20000 || under_way > 0;) {
        for (; posted < 20000 && under_way < 8; posted++, under_way++) {
            write_bytes(api, 64);
        }
        struct ibv_wc wc[8];
        const int count = ibv_poll_cq(api->cqs[0], 8, wc);
        assert_true(count >= 0);
        under_way -= count;
    }
}

/* Data and flag are two requests, and the program looks at memory alone: neither may wait for a
 * poll that does not come. */
static void test_posts_wait_for_no_poll(void **state)
{
    struct api *api = *state;
    for (int round = 0; round < 8; round++) {
        post_in_company(api);
        const volatile uint8_t *flag = &api->memory[1][1024];
        api->memory[0][512] = api->memory[0][1024] = (uint8_t)(round + 1);
        write_bytes(api, 512);
        write_bytes(api, 1024);
        struct timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        while (*flag != round + 1) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            assert_true(now.tv_sec - begin.tv_sec < 5);
        }
        assert_int_equal(api->memory[1][512], round + 1);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
}

#define RC_TEST(test) cmocka_unit_test_setup_teardown(test, api_open_rc, api_close)

int main(void)
{
    setenv("NONIC_FAULT", "drop=0", 0);
    const struct CMUnitTest tests[] = {
        /* First: after the others nobody believes that this process polls. */
        RC_TEST(test_posts_wait_for_no_poll),
        RC_TEST(test_program_that_polls_seldom),
        RC_TEST(test_program_that_stops_polling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
