/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A message may be empty, and so may any part of one: then no address is looked at, and
 *         NULL is as good as another, in every way to post.
 * Method  An ordinary verbs program that is its own peer. Sanitized builds also say when a NULL is
 *         handed to a function that must not get one.
 */
#include "tests/api/api.h"

#include <stdbool.h>
#include <string.h>

#define FILL 0x5a

/* The parts of a message; only the last one may have bytes. */
struct shape {
    int parts;
    uint32_t last_bytes;
    unsigned int flags;
};

static const struct shape shapes[] = {
    {0, 0, 0},
    {1, 0, 0},
    {3, 0, 0},
    {2, 5, 0},
    {0, 0, IBV_SEND_INLINE},
    {1, 0, IBV_SEND_INLINE},
    {3, 0, IBV_SEND_INLINE},
    {2, 5, IBV_SEND_INLINE},
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static int fill_parts(struct api *api, const struct shape *shape, struct ibv_sge *sges)
{
    memset(sges, 0, 4 * sizeof(*sges));
    if (shape->last_bytes > 0) {
        sges[shape->parts - 1] = api_sge(api->mrs[0], 0, shape->last_bytes);
    }
    return shape->parts;
}

/* With nothing, or with an empty part before the one for the bytes. */
static void receive(struct api *api, struct ibv_qp *qp, uint32_t offset, uint32_t bytes)
{
    struct ibv_sge sges[2] = {{0}, api_sge(api->mrs[1], offset, bytes)};
    struct ibv_recv_wr *bad,
        wr = {.sg_list = bytes > 0 ? sges : NULL, .num_sge = bytes > 0 ? 2 : 0};
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void check_received(struct api *api, struct ibv_cq *cq, uint32_t offset, uint32_t bytes)
{
    assert_int_equal(api_expect(cq, IBV_WC_SUCCESS).byte_len, offset + bytes);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(api->memory[1][offset + i], i < bytes ? i + 1 : FILL);
    }
}

static void fill_memory(struct api *api)
{
    memset(api->memory[1], FILL, 64);
    for (uint8_t i = 0; i < 8; i++) {
        api->memory[0][i] = i + 1;
    }
}

/* -- ibv_post_send ------------------------------------------------------------------------------*/

static void test_sends(void **state)
{
    struct api *api = *state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct ibv_sge sges[4];
        const int parts = fill_parts(api, &shapes[i], sges);
        struct ibv_send_wr *bad, wr = {.sg_list = parts > 0 ? sges : NULL,
                                       .num_sge = parts,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_SIGNALED | shapes[i].flags};
        fill_memory(api);
        receive(api, api->qps[1], 0, shapes[i].last_bytes);
        assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        check_received(api, api->cqs[1], 0, shapes[i].last_bytes);
    }
}

/* No bytes: neither the remote address nor its key is judged (IBTA C9-88). */
static void test_writes_and_reads(void **state)
{
    struct api *api = *state;
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_RDMA_READ};
    for (size_t i = 0; i < SHAPES * 3; i++) {
        const struct shape *shape = &shapes[i / 3];
        const enum ibv_wr_opcode opcode = opcodes[i % 3];
        if (shape->last_bytes > 0 || (opcode == IBV_WR_RDMA_READ && shape->flags != 0)) {
            continue;
        }
        struct ibv_sge sges[4];
        const int parts = fill_parts(api, shape, sges);
        struct ibv_send_wr *bad, wr = {.sg_list = parts > 0 ? sges : NULL,
                                       .num_sge = parts,
                                       .opcode = opcode,
                                       .send_flags = IBV_SEND_SIGNALED | shape->flags};
        if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
            receive(api, api->qps[1], 0, 0);
        }
        assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
            assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).byte_len, 0);
        }
    }
}

/* The GRH comes before the bytes, of which there may be none. */
static void test_datagrams(void **state)
{
    struct api *api = *state;
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_UD, api->cqs[0], NULL);
    struct ibv_ah *ah = api_address_handle(api);
    api_connect(api, qp, qp);
    for (size_t i = 0; i < SHAPES; i++) {
        struct ibv_sge sges[4];
        const int parts = fill_parts(api, &shapes[i], sges);
        struct ibv_send_wr *bad,
            wr = {.sg_list = parts > 0 ? sges : NULL,
                  .num_sge = parts,
                  .opcode = IBV_WR_SEND,
                  .send_flags = shapes[i].flags,
                  .wr.ud = {.ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = 0x11111111}};
        fill_memory(api);
        receive(api, qp, 0, sizeof(struct ibv_grh) + shapes[i].last_bytes);
        assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
        check_received(api, api->cqs[0], sizeof(struct ibv_grh), shapes[i].last_bytes);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* -- ibv_wr_* -----------------------------------------------------------------------------------*/

static struct ibv_qp *create_builder(struct api *api)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = api->cqs[0],
        .recv_cq = api->cqs[1],
        .cap = {16, 16, 4, 4, 64},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = api->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(api->context, &init);
    assert_non_null(qp);
    api_connect(api, qp, qp);
    return qp;
}

static void give_parts(struct ibv_qp_ex *ex, const struct shape *shape, struct ibv_sge *sges)
{
    if (!(shape->flags & IBV_SEND_INLINE)) {
        ibv_wr_set_sge_list(ex, (size_t)shape->parts, shape->parts > 0 ? sges : NULL);
    } else if (shape->parts == 0) {
        ibv_wr_set_inline_data(ex, NULL, 0);
    } else {
        struct ibv_data_buf buffers[4];
        for (int i = 0; i < shape->parts; i++) {
            buffers[i] = (struct ibv_data_buf){(void *)(uintptr_t)sges[i].addr, sges[i].length};
        }
        ibv_wr_set_inline_data_list(ex, (size_t)shape->parts, buffers);
    }
}

static void test_builder(void **state)
{
    struct api *api = *state;
    struct ibv_qp *qp = create_builder(api);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    for (size_t i = 0; i < SHAPES; i++) {
        struct ibv_sge sges[4];
        fill_parts(api, &shapes[i], sges);
        fill_memory(api);
        receive(api, qp, 0, shapes[i].last_bytes);
        ibv_wr_start(ex);
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(ex);
        give_parts(ex, &shapes[i], sges);
        assert_int_equal(ibv_wr_complete(ex), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        check_received(api, api->cqs[1], 0, shapes[i].last_bytes);
    }
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_inline_data_list(ex, 0, NULL);
    receive(api, qp, 0, 0);
    assert_int_equal(ibv_wr_complete(ex), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).byte_len, 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

#define RC_TEST(test) cmocka_unit_test_setup_teardown(test, api_open_rc, api_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RC_TEST(test_sends),
        RC_TEST(test_writes_and_reads),
        RC_TEST(test_datagrams),
        RC_TEST(test_builder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
