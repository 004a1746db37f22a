/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A posted request is copied with all its details: the program's own may be gone when it is
 *         executed.
 * Method  Requests that are overwritten as soon as they are posted.
 */
#include "nic/ibta/test_bench.h"

enum {
    START = 8,
    BYTES = 16,
};

/* May a peer write `bytes` bytes from `address` on, by this key? */
static bool opens(const struct bench *bench, uint32_t key, uint64_t address, uint32_t bytes)
{
    struct segment segment;
    return region_judge(nic_regions(bench->nic), key, &bench->pd, bench->qp, address, bytes,
                        ACCESS_REMOTE_WRITE, &segment) == REACH_ALLOWED;
}

static void test_bind(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ACCESS_REMOTE_WRITE);
    struct region window, region;
    const struct region_request all = {.address = (uintptr_t)bench->memory,
                                       .bytes = sizeof(bench->memory),
                                       .access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &all, &region), STATUS_OK);
    assert_int_equal(window_add(nic_regions(bench->nic), &bench->pd, REGION_WINDOW_TYPE_2, &window),
                     STATUS_OK);
    const uint32_t key = window.key + 1;
    struct send_request request = {.wr_id = 1,
                                   .kind = WORK_BIND_WINDOW,
                                   .bind = {.window = &window,
                                            .region = &region,
                                            .address = START,
                                            .bytes = BYTES,
                                            .access = ACCESS_REMOTE_WRITE,
                                            .key = key}};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
    memset(&request, 0xff, sizeof(request));
    assert_int_equal(pull(bench, NULL), 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    assert_true(opens(bench, key, START, BYTES));
    assert_false(opens(bench, key, START - 1, 1));
    assert_false(opens(bench, key, START + BYTES, 1));
    window_remove(nic_regions(bench->nic), &window);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
