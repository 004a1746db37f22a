/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Datagrams of an EFA device are posted and completed as its library has it: SRD-6 (what
 *         may be posted, when), SRD-7 (the fields of completions), for UD.
 * Method  A program that is its own peer: each rule is broken alone, by both ways to post.
 */
#include "tests/api/efa_program.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* -- Posting ------------------------------------------------------------------------------------*/

/* A SEND of 8 bytes by the calls that build. */
static int build(struct efa *efa, struct ibv_qp *from, const struct ibv_qp *to, struct ibv_ah *ah,
                 unsigned int flags)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(from);
    ibv_wr_start(ex);
    ex->wr_id = 77;
    ex->wr_flags = flags;
    ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, ah, to->qp_num, EFA_QKEY);
    ibv_wr_set_sge(ex, efa->mr->lkey, (uintptr_t)efa->memory, 8);
    return ibv_wr_complete(ex);
}

/* Sends are taken in RTS and SQD, receives in all states but RESET and the error state. */
static void test_states(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                               IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        const bool sends = states[i] == IBV_QPS_RTS || states[i] == IBV_QPS_SQD;
        const bool receives = states[i] != IBV_QPS_RESET && states[i] != IBV_QPS_ERR;
        struct ibv_qp *qp = efa_queue_pair_ex(efa, efa->cq);
        efa_lead(qp, states[i]);
        assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), sends ? 0 : EINVAL);
        assert_int_equal(build(efa, qp, qp, ah, IBV_SEND_SIGNALED), sends ? 0 : EINVAL);
        assert_int_equal(efa_receive(efa, qp, 4096, 100), receives ? 0 : EINVAL);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    assert_int_equal(ibv_destroy_ah(ah), 0);
    for (struct ibv_wc wc; ibv_poll_cq(efa->cq, 1, &wc) > 0;) {
    }
}

/* Each request completes, and there are no other flags than INLINE. */
static void test_flags(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair_ex(efa, efa->cq);
    efa_lead(qp, IBV_QPS_RTS);
    static const unsigned int refused[] = {0, IBV_SEND_INLINE, IBV_SEND_SIGNALED | IBV_SEND_FENCE,
                                           IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
                                           IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(efa_send(efa, qp, qp, ah, 8, refused[i]), EINVAL);
        assert_int_equal(build(efa, qp, qp, ah, refused[i]), EINVAL);
    }
    assert_int_equal(efa_send(efa, qp, qp, ah, 32, IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
    assert_int_equal(efa_wait(efa->cq).status, IBV_WC_SUCCESS);
    assert_int_equal(efa_send(efa, qp, qp, ah, 33, IBV_SEND_SIGNALED | IBV_SEND_INLINE), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);

    struct ibv_qp_init_attr attr = {.send_cq = efa->cq,
                                    .recv_cq = efa->cq,
                                    .cap = {1, 1, 1, 1, 0},
                                    .qp_type = IBV_QPT_UD,
                                    .sq_sig_all = 1};
    qp = ibv_create_qp(efa->pd, &attr);
    efa_lead(qp, IBV_QPS_RTS);
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, 0), 0);
    assert_int_equal(efa_wait(efa->cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void test_kinds(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair(efa, efa->cq);
    struct ibv_sge sges[3] = {{.addr = (uintptr_t)efa->memory, .lkey = efa->mr->lkey}};
    struct ibv_send_wr *bad, wr = {.sg_list = sges, .send_flags = IBV_SEND_SIGNALED};
    efa_lead(qp, IBV_QPS_RTS);
    wr.wr.ud.ah = ah;
    for (int kind = IBV_WR_RDMA_WRITE; kind <= IBV_WR_TSO; kind++) {
        wr.opcode = (enum ibv_wr_opcode)kind;
        if (kind != IBV_WR_SEND && kind != IBV_WR_SEND_WITH_IMM) {
            assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
            assert_ptr_equal(bad, &wr);
        }
    }
    wr.opcode = IBV_WR_SEND;
    wr.num_sge = 3;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    struct ibv_recv_wr *bad_receive, receive = {.sg_list = sges, .num_sge = 3};
    assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
    assert_ptr_equal(bad_receive, &receive);
    receive.num_sge = -1;
    assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Four are taken while nothing leaves, and no more; a build that fails posts nothing. */
static void test_full(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair_ex(efa, efa->cq);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    efa_lead(qp, IBV_QPS_RTS);
    ibv_wr_start(ex);
    for (int i = 0; i < 5; i++) {
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(ex);
        ibv_wr_set_ud_addr(ex, ah, qp->qp_num, EFA_QKEY);
        ibv_wr_set_sge(ex, efa->mr->lkey, (uintptr_t)efa->memory, 8);
    }
    assert_int_equal(ibv_wr_complete(ex), ENOMEM);
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(efa->cq, 1, &wc), 0);
    assert_int_equal(efa_modify(qp, IBV_QPS_SQD, IBV_QP_STATE), 0); /* Nothing leaves. */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), i < 4 ? 0 : ENOMEM);
        assert_int_equal(efa_receive(efa, qp, 4096, 100), i < 4 ? 0 : ENOMEM);
    }
    assert_int_equal(build(efa, qp, qp, ah, IBV_SEND_SIGNALED), ENOMEM);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* -- Completions --------------------------------------------------------------------------------*/

static uint32_t number_of(struct efa *efa, struct ibv_qp *from, struct ibv_qp *to,
                          struct ibv_ah *ah)
{
    assert_int_equal(efa_receive(efa, to, 4096, EFA_GRH_BYTES + 8), 0);
    assert_int_equal(efa_send(efa, from, to, ah, 8, IBV_SEND_SIGNALED), 0);
    uint32_t slid = 0;
    for (int i = 0; i < 2; i++) {
        const struct ibv_wc wc = efa_wait(efa->cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        slid = wc.opcode == IBV_WC_RECV ? wc.slid : slid;
    }
    return slid;
}

static void check_send(const struct ibv_wc *wc, const struct ibv_qp *from)
{
    assert_int_equal(wc->wr_id, 77);
    assert_int_equal(wc->opcode, IBV_WC_SEND);
    assert_int_equal(wc->status, IBV_WC_SUCCESS);
    assert_int_equal(wc->vendor_err, 0);
    assert_int_equal(wc->qp_num, from->qp_num);
    assert_int_equal(wc->wc_flags, 0);
}

static void check_receive(const struct ibv_wc *wc, const struct ibv_qp *from,
                          const struct ibv_qp *to, uint32_t bytes)
{
    assert_int_equal(wc->wr_id, 88);
    assert_int_equal(wc->opcode, IBV_WC_RECV);
    assert_int_equal(wc->status, IBV_WC_SUCCESS);
    assert_int_equal(wc->vendor_err, 0);
    assert_int_equal(wc->qp_num, to->qp_num);
    assert_int_equal(wc->src_qp, from->qp_num);
    assert_int_equal(wc->byte_len, EFA_GRH_BYTES + bytes);
    assert_int_equal(wc->wc_flags, 0);
    assert_int_equal(wc->sl, 0);
    assert_int_equal(wc->dlid_path_bits, 0);
}

/* Each byte of messages of all sizes, and the fields of their completions. */
static void test_messages(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *from = efa_queue_pair(efa, efa->cq), *to = efa_queue_pair(efa, efa->cq);
    efa_lead(from, IBV_QPS_RTS);
    efa_lead(to, IBV_QPS_RTS);
    static const uint32_t sizes[] = {0, 1, 8, 32, 100, 1024, 4095, 4096};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(efa->memory, (int)i + 1, sizes[i]);
        memset(efa->memory + 8192, 0, 8192);
        assert_int_equal(efa_receive(efa, to, 8192, 8192), 0);
        assert_int_equal(efa_send(efa, from, to, ah, sizes[i], IBV_SEND_SIGNALED), 0);
        for (int k = 0; k < 2; k++) {
            const struct ibv_wc wc = efa_wait(efa->cq);
            if (wc.opcode == IBV_WC_SEND) {
                check_send(&wc, from);
            } else {
                check_receive(&wc, from, to, sizes[i]);
            }
        }
        assert_memory_equal(efa->memory + 8192 + EFA_GRH_BYTES, efa->memory, sizes[i]);
        assert_int_equal(efa->memory[8192 + EFA_GRH_BYTES + sizes[i]], 0);
    }
    assert_int_equal(ibv_destroy_qp(from), 0);
    assert_int_equal(ibv_destroy_qp(to), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* A sender is named by the number of the handles to it; the number of none is 0xffff. */
static void test_sender(void **state)
{
    struct efa *efa = *state;
    struct ibv_qp *from = efa_queue_pair(efa, efa->cq), *to = efa_queue_pair(efa, efa->cq);
    efa_lead(from, IBV_QPS_RTS);
    efa_lead(to, IBV_QPS_RTS);
    struct ibv_ah *first = efa_handle(efa), *second = efa_handle(efa);
    const uint32_t number = number_of(efa, from, to, first);
    assert_true(number < 0xffff);
    assert_int_equal(number_of(efa, from, to, second), number);
    assert_int_equal(ibv_destroy_ah(first), 0);
    assert_int_equal(number_of(efa, from, to, second), number);
    /* A message that is under way outlives the handle. */
    assert_int_equal(efa_receive(efa, to, 4096, EFA_GRH_BYTES + 8), 0);
    assert_int_equal(efa_send(efa, from, to, second, 8, IBV_SEND_SIGNALED), 0);
    assert_int_equal(ibv_destroy_ah(second), 0);
    for (int i = 0; i < 2; i++) {
        const struct ibv_wc wc = efa_wait(efa->cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_true(wc.opcode != IBV_WC_RECV || wc.slid == 0xffff);
    }
    assert_int_equal(ibv_destroy_qp(from), 0);
    assert_int_equal(ibv_destroy_qp(to), 0);
    struct ibv_ah_attr group = {.is_global = 1, .port_num = 1, .grh.dgid.raw = {0xff, 0x0e}};
    assert_refused(ibv_create_ah(efa->pd, &group), EINVAL);
    struct ibv_ah_attr local = {.dlid = 1, .port_num = 1};
    assert_refused(ibv_create_ah(efa->pd, &local), EINVAL);
}

static void test_immediate(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair_ex(efa, efa->cq);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    efa_lead(qp, IBV_QPS_RTS);
    assert_int_equal(efa_receive(efa, qp, 4096, EFA_GRH_BYTES), 0);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(ex, 0x12345678);
    ibv_wr_set_ud_addr(ex, ah, qp->qp_num, EFA_QKEY);
    ibv_wr_set_sge_list(ex, 0, NULL);
    assert_int_equal(ibv_wr_complete(ex), 0);
    for (int i = 0; i < 2; i++) {
        const struct ibv_wc wc = efa_wait(efa->cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wc_flags, wc.opcode == IBV_WC_RECV ? IBV_WC_WITH_IMM : 0);
        assert_true(wc.opcode != IBV_WC_RECV || wc.imm_data == 0x12345678);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* EFA's statuses beside those of verbs. */
static void test_errors(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair(efa, efa->cq);
    efa_lead(qp, IBV_QPS_RTS);
    const uint32_t lkey = efa->mr->lkey;
    efa->mr->lkey = lkey + 1;
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), 0);
    efa->mr->lkey = lkey;
    struct ibv_wc wc = efa_wait(efa->cq);
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(wc.vendor_err, 5);
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), 0);
    wc = efa_wait(efa->cq);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.vendor_err, 1);
    assert_int_equal(efa_modify(qp, IBV_QPS_RTS, IBV_QP_STATE), 0);
    assert_int_equal(efa_send(efa, qp, qp, ah, 4097, IBV_SEND_SIGNALED), 0);
    wc = efa_wait(efa->cq);
    assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
    assert_int_equal(wc.vendor_err, 6);
    assert_int_equal(efa_receive(efa, qp, 4096, 100), 0);
    assert_int_equal(efa_modify(qp, IBV_QPS_ERR, IBV_QP_STATE), 0);
    wc = efa_wait(efa->cq);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.vendor_err, 1);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* An SGE has room for 65,535 bytes at most, whatever it says: a message never sees that, but the
 * region's end does. */
static void test_long_receive(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair(efa, efa->cq);
    efa_lead(qp, IBV_QPS_RTS);
    assert_int_equal(efa_receive(efa, qp, EFA_MEMORY_BYTES - 65535, 70000), 0);
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(efa_wait(efa->cq).status, IBV_WC_SUCCESS);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Any completion wakes; there are no solicited ones. */
static void test_events(void **state)
{
    struct efa *efa = *state;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(efa->context);
    struct ibv_cq *cq = ibv_create_cq(efa->context, 4, NULL, channel, 0), *woken;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair(efa, cq);
    void *context;
    efa_lead(qp, IBV_QPS_RTS);
    assert_int_equal(ibv_req_notify_cq(cq, 1), EOPNOTSUPP);
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), 0);
    struct pollfd waits = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&waits, 1, 20000), 1);
    assert_int_equal(ibv_get_cq_event(channel, &woken, &context), 0);
    assert_ptr_equal(woken, cq);
    ibv_ack_cq_events(cq, 1);
    assert_int_equal(efa_wait(cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static uint64_t counter(const char *name)
{
    char path[128];
    unsigned long long value = 0;
    snprintf(path, sizeof(path), "/sys/class/infiniband/rdmap0s31/ports/1/hw_counters/%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &value), 1);
    fclose(file);
    return value;
}

/* The driver's counters (SRD-11): two messages, of which the second finds no receive. */
static void test_counters(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp *qp = efa_queue_pair(efa, efa->cq);
    efa_lead(qp, IBV_QPS_RTS);
    const uint64_t sends = counter("send_wrs"), receives = counter("recv_wrs"),
                   left = counter("tx_pkts"), came = counter("rx_pkts"),
                   dropped = counter("rx_drops");
    assert_int_equal(efa_receive(efa, qp, 4096, EFA_GRH_BYTES + 8), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(efa_wait(efa->cq).status, IBV_WC_SUCCESS);
    }
    for (const time_t end = time(NULL) + 20; counter("rx_drops") == dropped && time(NULL) < end;) {
        struct ibv_wc wc;
        assert_int_equal(ibv_poll_cq(efa->cq, 1, &wc), 0);
    }
    assert_int_equal(counter("send_wrs") - sends, 2);
    assert_int_equal(counter("recv_wrs") - receives, 1);
    assert_int_equal(counter("tx_pkts") - left, 2);
    assert_int_equal(counter("rx_pkts") - came, 2);
    assert_int_equal(counter("rx_drops") - dropped, 1);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

int main(void)
{
    /* The one that counts is the first: packets that others left behind may come late. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters), cmocka_unit_test(test_states),
        cmocka_unit_test(test_flags),    cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_full),     cmocka_unit_test(test_messages),
        cmocka_unit_test(test_sender),   cmocka_unit_test(test_immediate),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_long_receive),
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, efa_open, efa_close);
}
