/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A process that may not have many addresses (ulimit -v) has a NIC with smaller pools.
 * Method  An ordinary verbs program that is its own peer, in 300 MB more than it has when it
 *         begins.
 */
#include "tests/api/api.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define MORE_BYTES (300u << 20)

static void limit_addresses(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    const rlim_t bytes = pages * (rlim_t)sysconf(_SC_PAGESIZE) + MORE_BYTES;
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static int open_limited(void **state)
{
    limit_addresses();
    return api_open_rc(state);
}

static void test_the_nic_is_smaller_and_works(void **state)
{
    struct api *api = *state;
    struct ibv_device_attr attr;
    assert_int_equal(ibv_query_device(api->context, &attr), 0);
    assert_in_range(attr.max_res_rd_atom, 1 << 16, (1 << 23) - 1);
    api->memory[0][0] = 7;
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8),
                              (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api->memory[1][0], 7);
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_READ, api_sge(api->mrs[0], 8, 8),
                              (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api->memory[0][8], 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_nic_is_smaller_and_works, open_limited, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
