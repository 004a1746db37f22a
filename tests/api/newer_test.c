/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The calls that rdma-core added after version 44 do what their man pages say, or refuse as
 *         these say that a device without such a thing does.
 * Method  An ordinary verbs program that is its own peer, with the newer declarations of its own.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/newer.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Fails for this reason; the value before the call does not matter. */
#define assert_refused(call, reason)                                                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_null(call);                                                                         \
        assert_int_equal(errno, reason);                                                           \
    } while (0)

/* -- Registering --------------------------------------------------------------------------------*/

static void assert_written(struct api *api, const struct ibv_mr *mr, uint64_t remote,
                           const uint8_t *memory)
{
    memset(api->memory[0], 0x5a, 64);
    assert_int_equal(
        api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 64), remote, mr->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_memory_equal(memory, api->memory[0], 64);
}

static void test_register(void **state)
{
    struct api *api = *state;
    uint8_t *memory = aligned_alloc(4096, 8192);
    struct mr_init_attr_59 attr = {
        .length = 8192, .access = ACCESS, .comp_mask = REG_MR_ADDR, .addr = memory};
    struct ibv_mr *mr = ibv_reg_mr_ex(api->pd, (void *)&attr);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, memory);
    assert_int_equal(mr->length, 8192);
    assert_ptr_equal(mr->pd, api->pd);
    assert_written(api, mr, (uintptr_t)memory + 4000, memory + 4000);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    attr.comp_mask |= REG_MR_IOVA;
    attr.iova = 0x10000;
    mr = ibv_reg_mr_ex(api->pd, (void *)&attr);
    assert_non_null(mr);
    assert_written(api, mr, 0x10000 + 128, memory + 128);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(memory);
}

static void test_register_refused(void **state)
{
    struct api *api = *state;
    static uint8_t memory[4096];
    struct mr_init_attr_59 attr = {.length = 4096, .access = ACCESS, .addr = memory, .fd = 0};
    static const struct {
        uint64_t mask;
        int reason;
    } refused[] = {
        {0, EINVAL},
        {REG_MR_IOVA, EINVAL},
        {REG_MR_ADDR | REG_MR_FD_OFFSET, EINVAL},
        {REG_MR_FD, EINVAL},
        {REG_MR_FD | REG_MR_FD_OFFSET, EINVAL},
        {REG_MR_FD | REG_MR_FD_OFFSET | REG_MR_IOVA | REG_MR_ADDR, EINVAL},
        {REG_MR_FD | REG_MR_FD_OFFSET | REG_MR_IOVA, EOPNOTSUPP}, /* A dma-buf. */
        {REG_MR_ADDR | REG_MR_DMAH, EOPNOTSUPP},
        {REG_MR_ADDR | 1 << 6, EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        attr.comp_mask = refused[i].mask;
        assert_refused(ibv_reg_mr_ex(api->pd, (void *)&attr), refused[i].reason);
    }
    attr.comp_mask = REG_MR_ADDR;
    attr.access = IBV_ACCESS_REMOTE_WRITE;
    assert_refused(ibv_reg_mr_ex(api->pd, (void *)&attr), EINVAL);
}

/* -- Buffers ------------------------------------------------------------------------------------*/

static void test_buffer(void **state)
{
    struct api *api = *state;
    struct ibv_buf *buffer = NULL;
    uint8_t *memory = ibv_alloc_buf(api->pd, 10000, &buffer);
    assert_non_null(memory);
    assert_non_null(buffer);
    assert_int_equal((uintptr_t)memory % 4096, 0);
    struct ibv_mr *mr = ibv_reg_buf_mr(api->pd, buffer, memory + 5000, 5000, ACCESS);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, memory + 5000);
    assert_written(api, mr, (uintptr_t)memory + 9936, memory + 9936);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    assert_refused(ibv_reg_buf_mr(api->pd, buffer, memory + 5000, 5001, ACCESS), EINVAL);
    assert_refused(ibv_reg_buf_mr(api->pd, buffer, memory - 1, 2, ACCESS), EINVAL);
    assert_refused(ibv_reg_buf_mr(api->pd, buffer, memory + 10001, 0, ACCESS), EINVAL);
    assert_refused(ibv_reg_buf_mr(api->pd, buffer, memory + 1, SIZE_MAX, ACCESS), EINVAL);
    struct ibv_pd *other = ibv_alloc_pd(api->context);
    assert_refused(ibv_reg_buf_mr(other, buffer, memory, 10000, ACCESS), EINVAL);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    struct mr_init_attr_59 attr = {
        .length = 64, .access = ACCESS, .comp_mask = REG_MR_BUF, .addr = memory, .buf = buffer};
    assert_refused(ibv_reg_mr_ex(api->pd, (void *)&attr), EINVAL);
    attr.comp_mask = REG_MR_BUF | REG_MR_ADDR | REG_MR_FD;
    assert_refused(ibv_reg_mr_ex(api->pd, (void *)&attr), EINVAL);

    errno = 0;
    assert_int_equal(ibv_export_buf_dmabuf_fd(buffer), -1);
    assert_int_equal(errno, ENODATA);
    ibv_free_buf(buffer);
    assert_refused(ibv_alloc_buf(api->pd, SIZE_MAX / 2, &buffer), ENOMEM);
    assert_refused(ibv_alloc_buf(api->pd, 0, &buffer), EINVAL);
}

/* -- Questions ----------------------------------------------------------------------------------*/

/* Newer programs give a longer struct, whose end repeats the speed. Nothing is written behind the
 * shorter struct of older programs. */
static void test_port(void **state)
{
    struct api *api = *state;
    struct verbs_context *verbs = verbs_get_ctx(api->context);
    struct port_attr_49 port;
    memset(&port, 0xff, sizeof(port));
    assert_int_equal(verbs->query_port(api->context, 1, &port.attr, sizeof(port)), 0);
    assert_int_equal(port.active_speed_ex, port.attr.active_speed);
    memset(&port, 0xff, sizeof(port));
    assert_int_equal(verbs->query_port(api->context, 1, &port.attr,
                                       offsetof(struct port_attr_49, active_speed_ex)),
                     0);
    assert_int_equal(port.active_speed_ex, UINT32_MAX);

    uint64_t speed = 0;
    assert_int_equal(ibv_query_port_speed(api->context, 2, &speed), EINVAL);
    assert_int_equal(ibv_query_port_speed(api->context, 1, &speed), 0);
    /* EDR x4 or HDR x8, as the wire is. */
    assert_int_equal(speed, port.attr.active_speed == 32 ? 1000 : 4000);
}

static void test_data_in_order(void **state)
{
    struct api *api = *state;
    struct ibv_qp *qp = api->qps[0];
    const int in_order = ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0);
    assert_in_range(in_order, 0, 1);
    const int caps = in_order ? 3 : 0;
    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 1), caps);
    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 3), caps);
    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 2), in_order);
    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 4), 0);
    struct ibv_qp *ud = api_create_qp(api, IBV_QPT_UD, api->cqs[0], NULL);
    assert_int_equal(ibv_query_qp_data_in_order(ud, IBV_WR_SEND, 1), 0);
    assert_int_equal(ibv_destroy_qp(ud), 0);
}

static void test_texts(void **state)
{
    (void)state;
    const enum ibv_event_type speed_change = IBV_EVENT_WQ_FATAL + 1;
    assert_string_equal(ibv_event_type_str(speed_change), "Device link speed change");
    assert_string_equal(ibv_event_type_str(speed_change + 1), "unknown");
}

/* -- Calls that are not offered -----------------------------------------------------------------*/

static void test_not_offered(void **state)
{
    struct api *api = *state;
    assert_refused(ibv_alloc_dmah(api->context, NULL), EOPNOTSUPP);
    assert_int_equal(ibv_dealloc_dmah(NULL), EOPNOTSUPP);
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(api->context, &attr);
    errno = 0;
    assert_int_equal(ibv_dm_export_dmabuf_fd(dm), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_free_dm(dm), 0);
    assert_int_equal(_ibv_query_comp_cntr_caps(api->context, NULL, 16), EOPNOTSUPP);
    assert_refused(ibv_create_comp_cntr(api->context, NULL), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_comp_cntr(NULL), EOPNOTSUPP);
    assert_int_equal(ibv_set_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_set_err_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_inc_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_inc_err_comp_cntr(NULL, 1), EOPNOTSUPP);
    assert_int_equal(ibv_read_comp_cntr(NULL, NULL), EOPNOTSUPP);
    assert_int_equal(ibv_read_err_comp_cntr(NULL, NULL), EOPNOTSUPP);
    assert_int_equal(ibv_qp_attach_comp_cntr(api->qps[0], NULL, NULL), EOPNOTSUPP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_register, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_register_refused, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_buffer, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_port, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_data_in_order, api_open_rc, api_close),
        cmocka_unit_test(test_texts),
        cmocka_unit_test_setup_teardown(test_not_offered, api_open_rc, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
