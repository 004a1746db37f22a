/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/api/api.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 20

/* Not in the headers that programs get. */
int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t bytes);

static const int everything = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                              IBV_ACCESS_MW_BIND;

int api_open(void **state)
{
    struct api *api = calloc(1, sizeof(*api));
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    assert_non_null(list[0]);
    api->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(api->context);
    assert_int_equal(ibv_query_gid(api->context, 1, 0, &api->gid), 0);
    api->pd = ibv_alloc_pd(api->context);
    assert_non_null(api->pd);
    for (int i = 0; i < 2; i++) {
        api->cqs[i] = ibv_create_cq(api->context, 256, NULL, NULL, 0);
        assert_non_null(api->cqs[i]);
        api->memory[i] = calloc(1, MEMORY_BYTES);
        api->mrs[i] = ibv_reg_mr(api->pd, api->memory[i], MEMORY_BYTES, everything);
        assert_non_null(api->mrs[i]);
    }
    *state = api;
    return 0;
}

int api_open_rc(void **state)
{
    api_open(state);
    struct api *api = *state;
    for (int i = 0; i < 2; i++) {
        api->qps[i] = api_create_qp(api, IBV_QPT_RC, api->cqs[i], NULL);
    }
    api_connect(api, api->qps[0], api->qps[1]);
    api_connect(api, api->qps[1], api->qps[0]);
    return 0;
}

int api_close(void **state)
{
    struct api *api = *state;
    for (int i = 0; i < 2; i++) {
        if (api->qps[i] != NULL) {
            assert_int_equal(ibv_destroy_qp(api->qps[i]), 0);
        }
        assert_int_equal(ibv_dereg_mr(api->mrs[i]), 0);
        assert_int_equal(ibv_destroy_cq(api->cqs[i]), 0);
        free(api->memory[i]);
    }
    assert_int_equal(ibv_dealloc_pd(api->pd), 0);
    assert_int_equal(ibv_close_device(api->context), 0);
    free(api);
    return 0;
}

struct ibv_qp *api_create_qp(struct api *api, enum ibv_qp_type type, struct ibv_cq *cq,
                             struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64},
        .qp_type = type,
    };
    struct ibv_qp *qp = ibv_create_qp(api->pd, &init);
    assert_non_null(qp);
    return qp;
}

void api_connect(struct api *api, struct ibv_qp *qp, const struct ibv_qp *peer)
{
    api_connect_by(api, qp, peer, &(struct ibv_global_route){.dgid = api->gid, .hop_limit = 64});
}

void api_connect_by(struct api *api, struct ibv_qp *qp, const struct ibv_qp *peer,
                    const struct ibv_global_route *route)
{
    const bool rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = 0x11111111,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};
    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
                     0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qp_num,
        .rq_psn = 0xfffff0,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .grh = *route, .port_num = 1},
    };
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int reliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    assert_int_equal(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | (ud ? 0 : connected) | (rc ? reliable : 0)), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = api->timeout != 0 ? api->timeout : 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .sq_psn = 0xfffff0,
                                .max_rd_atomic = api->asks_nothing ? 0 : 4};
    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_SQ_PSN |
                                       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                 IBV_QP_MAX_QP_RD_ATOMIC
                                           : 0)),
                     0);
}

struct ibv_ah *api_address_handle(struct api *api)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .grh = {.dgid = api->gid, .hop_limit = 64}, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(api->pd, &attr);
    assert_non_null(ah);
    return ah;
}

struct ibv_sge api_sge(const struct ibv_mr *mr, uint32_t offset, uint32_t bytes)
{
    return (struct ibv_sge){(uintptr_t)mr->addr + offset, bytes, mr->lkey};
}

int api_post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote,
             uint32_t rkey)
{
    struct ibv_send_wr *bad = NULL, wr = {.wr_id = 77,
                                          .sg_list = &sge,
                                          .num_sge = 1,
                                          .opcode = opcode,
                                          .send_flags = IBV_SEND_SIGNALED};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = rkey;
    }
    const int status = ibv_post_send(qp, &wr, &bad);
    assert_ptr_equal(bad, status == 0 ? NULL : &wr);
    return status;
}

int api_post_receive(struct ibv_qp *qp, struct ibv_sge sge)
{
    struct ibv_recv_wr *bad = NULL, wr = {.wr_id = 88, .sg_list = &sge, .num_sge = 1};
    const int status = ibv_post_recv(qp, &wr, &bad);
    assert_ptr_equal(bad, status == 0 ? NULL : &wr);
    return status;
}

uint64_t api_counter(const char *name)
{
    char text[32];
    assert_true(
        ibv_read_sysfs_file("/sys/class/infiniband/nonic0/ports/1", name, text, sizeof(text)) > 0);
    return strtoull(text, NULL, 10);
}

struct ibv_wc api_wait(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    const time_t began = time(NULL);
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) {
        assert_true(time(NULL) - began < PATIENCE_S);
    }
    assert_int_equal(count, 1);
    return wc;
}

struct ibv_wc api_expect(struct ibv_cq *cq, enum ibv_wc_status status)
{
    const struct ibv_wc wc = api_wait(cq);
    assert_string_equal(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    return wc;
}

void api_expect_event(struct api *api, enum ibv_event_type type)
{
    struct pollfd wait = {.fd = api->context->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    assert_int_equal(poll(&wait, 1, PATIENCE_S * 1000), 1);
    assert_int_equal(ibv_get_async_event(api->context, &event), 0);
    assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
    ibv_ack_async_event(&event);
}
