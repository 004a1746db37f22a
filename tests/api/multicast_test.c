/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A UD queue pair gets what is sent to the groups it is attached to, and nothing else; each
 *         that is attached gets a copy of its own; wrong calls say so with the kernel's errno.
 * Method  Several queue pairs of one process. That nothing comes is shown by a message that comes
 *         behind it, on the same way.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QKEY          0x11111111u
#define MULTICAST_QPN 0xffffffu
#define GRH_BYTES     40

/* One of the groups that are free for local use (239.255.0.0/16), another for each process. */
static union ibv_gid group_of(uint8_t number)
{
    const uint32_t id = (uint32_t)getpid();
    return (union ibv_gid){
        .raw = {[10] = 0xff, 0xff, 239, (uint8_t)(192 + (id >> 8) % 64), (uint8_t)id, number}};
}

static struct ibv_qp *make_qp(struct api *api, int which)
{
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_UD, api->cqs[which], NULL);
    api_connect(api, qp, qp);
    return qp;
}

static struct ibv_ah *handle_to(struct api *api, union ibv_gid gid, uint8_t hop_limit)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .grh = {.dgid = gid, .hop_limit = hop_limit}, .port_num = 1};
    return ibv_create_ah(api->pd, &attr);
}

static void send_to(struct api *api, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn,
                    uint32_t qkey, uint8_t value)
{
    uint8_t *at = api->memory[0] + 32768;
    memset(at, value, 100);
    struct ibv_sge sge = api_sge(api->mrs[0], 32768, 100);
    struct ibv_send_wr *bad, wr = {.wr_id = 77,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.ud = {ah, qpn, qkey}};
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    struct ibv_wc wc;
    do {
        wc = api_wait(qp->send_cq);
        /* A receive may complete first where both share a queue: not in these tests. */
    } while (wc.wr_id != 77);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void expect_message(struct api *api, int which, const struct ibv_qp *qp, uint32_t offset,
                           union ibv_gid group, const struct ibv_qp *sender, uint8_t value)
{
    const struct ibv_wc wc = api_expect(api->cqs[which], IBV_WC_SUCCESS);
    const uint8_t *at = api->memory[which] + offset;
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.qp_num, qp->qp_num);
    assert_int_equal(wc.src_qp, sender->qp_num);
    assert_int_equal(wc.byte_len, GRH_BYTES + 100);
    assert_true(wc.wc_flags & IBV_WC_GRH);
    assert_memory_equal(at + 32, api->gid.raw + 12, 4);
    assert_memory_equal(at + 36, group.raw + 12, 4);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(at[GRH_BYTES + i], value);
    }
}

/* Two members in one process, one of which is the sender itself: both get a copy. */
static void test_every_member_gets_a_copy(void **state)
{
    struct api *api = *state;
    const union ibv_gid group = group_of(1);
    struct ibv_cq *sends = ibv_create_cq(api->context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = sends,
        .recv_cq = api->cqs[0],
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    struct ibv_qp *sender = ibv_create_qp(api->pd, &init), *other = make_qp(api, 1);
    api_connect(api, sender, sender);
    assert_int_equal(ibv_attach_mcast(sender, &group, 0), 0);
    assert_int_equal(ibv_attach_mcast(other, &group, 0), 0);
    assert_int_equal(ibv_attach_mcast(other, &group, 0xc001), 0); /* Once more: still one copy. */
    struct ibv_ah *ah = handle_to(api, group, 1);
    assert_non_null(ah);
    for (uint8_t round = 0; round < 10; round++) {
        assert_int_equal(api_post_receive(sender, api_sge(api->mrs[0], 0, 256)), 0);
        assert_int_equal(api_post_receive(other, api_sge(api->mrs[1], 0, 256)), 0);
        send_to(api, sender, ah, MULTICAST_QPN, QKEY, round);
        expect_message(api, 0, sender, 0, group, sender, round);
        expect_message(api, 1, other, 0, group, sender, round);
    }
    /* A member that left gets no more: the next receive stays posted while the other's is
     * filled. */
    assert_int_equal(ibv_detach_mcast(other, &group, 0), 0);
    assert_int_equal(api_post_receive(sender, api_sge(api->mrs[0], 0, 256)), 0);
    assert_int_equal(api_post_receive(other, api_sge(api->mrs[1], 0, 256)), 0);
    send_to(api, sender, ah, MULTICAST_QPN, QKEY, 99);
    expect_message(api, 0, sender, 0, group, sender, 99);
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(api->cqs[1], 1, &wc), 0);
    assert_int_equal(ibv_detach_mcast(sender, &group, 0), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(other), 0);
    assert_int_equal(ibv_destroy_cq(sends), 0);
}

/* Another group, another Q_Key, another QPN: none of them gets through to the member. */
static void test_what_is_not_for_the_member(void **state)
{
    struct api *api = *state;
    const union ibv_gid group = group_of(1), foreign = group_of(2);
    struct ibv_qp *sender = make_qp(api, 0), *member = make_qp(api, 1);
    assert_int_equal(ibv_attach_mcast(member, &group, 0), 0);
    assert_int_equal(ibv_attach_mcast(sender, &foreign, 0), 0);
    struct ibv_ah *ah = handle_to(api, group, 0), *elsewhere = handle_to(api, foreign, 255);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(api_post_receive(member, api_sge(api->mrs[1], (uint32_t)i * 256, 256)), 0);
    }
    send_to(api, sender, elsewhere, MULTICAST_QPN, QKEY, 1);
    send_to(api, sender, ah, MULTICAST_QPN, QKEY + 1, 2);
    send_to(api, sender, ah, member->qp_num, QKEY, 3);
    send_to(api, sender, ah, MULTICAST_QPN, QKEY, 4);
    expect_message(api, 1, member, 0, group, sender, 4);
    assert_int_equal(ibv_detach_mcast(member, &group, 0), 0);
    assert_int_equal(ibv_detach_mcast(sender, &foreign, 0), 0);
    ibv_destroy_ah(ah);
    ibv_destroy_ah(elsewhere);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(member), 0);
}

/* One queue pair in many groups: it gets each message once, and the GRH says which group it was. */
static void test_many_groups(void **state)
{
    struct api *api = *state;
    struct ibv_qp *sender = make_qp(api, 0), *member = make_qp(api, 1);
    for (uint8_t i = 0; i < 40; i++) {
        const union ibv_gid group = group_of(i);
        assert_int_equal(ibv_attach_mcast(member, &group, 0), 0);
    }
    for (uint8_t i = 0; i < 40; i++) {
        const union ibv_gid group = group_of((uint8_t)(i * 7 % 40));
        struct ibv_ah *ah = handle_to(api, group, 1);
        assert_int_equal(api_post_receive(member, api_sge(api->mrs[1], 0, 256)), 0);
        send_to(api, sender, ah, MULTICAST_QPN, QKEY, i);
        expect_message(api, 1, member, 0, group, sender, i);
        assert_int_equal(ibv_detach_mcast(member, &group, 0), 0);
        ibv_destroy_ah(ah);
    }
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(member), 0);
}

/* A device of 127.0.0.0/8 has groups of IPv4 alone: one of IPv6 is one of those there. */
static void test_groups_of_ipv6(void **state)
{
    struct api *api = *state;
    const uint32_t id = (uint32_t)getpid();
    const union ibv_gid group = {
        .raw = {0xff, 0x05, [13] = (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id}};
    struct ibv_qp *sender = make_qp(api, 0), *member = make_qp(api, 1);
    assert_int_equal(ibv_attach_mcast(member, &group, 0), 0);
    struct ibv_ah *ah = handle_to(api, group, 1);
    assert_non_null(ah);
    assert_int_equal(api_post_receive(member, api_sge(api->mrs[1], 0, 256)), 0);
    send_to(api, sender, ah, MULTICAST_QPN, QKEY, 5);
    assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).src_qp, sender->qp_num);
    assert_memory_equal(api->memory[1] + 32, api->gid.raw + 12, 4);
    assert_int_equal(api->memory[1][36], 239);
    assert_int_equal(api->memory[1][GRH_BYTES + 99], 5);
    assert_int_equal(ibv_detach_mcast(member, &group, 0), 0);
    assert_int_equal(ibv_detach_mcast(member, &group, 0), EINVAL);
    ibv_destroy_ah(ah);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(member), 0);
}

static void test_misuse(void **state)
{
    struct api *api = *state;
    const union ibv_gid group = group_of(1), other = group_of(2);
    struct ibv_qp *rc = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    struct ibv_qp *ud = api_create_qp(api, IBV_QPT_UD, api->cqs[0], NULL);
    assert_int_equal(ibv_attach_mcast(rc, &group, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, &api->gid, 0), EINVAL);
    assert_int_equal(ibv_detach_mcast(ud, &group, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, &group, 0), 0); /* In RESET: any state will do. */
    assert_int_equal(ibv_detach_mcast(ud, &other, 0), EINVAL);
    assert_int_equal(ibv_detach_mcast(rc, &group, 0), EINVAL);
    assert_int_equal(ibv_destroy_qp(ud), EBUSY);
    assert_int_equal(ibv_detach_mcast(ud, &group, 0), 0);
    assert_int_equal(ibv_detach_mcast(ud, &group, 0), EINVAL);
    assert_int_equal(ibv_destroy_qp(ud), 0);
    /* A connection has one peer. */
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(rc, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = 7,
        .ah_attr = {.is_global = 1, .grh = {.dgid = group, .hop_limit = 64}, .port_num = 1}};
    assert_int_equal(ibv_modify_qp(rc, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     EINVAL);
    assert_int_equal(ibv_destroy_qp(rc), 0);
}

/* As many groups as the device says it has, and not one more. */
static void test_limits(void **state)
{
    struct api *api = *state;
    struct ibv_device_attr device;
    assert_int_equal(ibv_query_device(api->context, &device), 0);
    assert_true(device.max_mcast_grp > 0 && device.max_mcast_grp <= 256);
    assert_true(device.max_mcast_qp_attach > 0);
    assert_true(device.max_total_mcast_qp_attach >= device.max_mcast_grp);
    struct ibv_qp *qp = make_qp(api, 0);
    for (int i = 0; i < device.max_mcast_grp; i++) {
        const union ibv_gid group = group_of((uint8_t)i);
        assert_int_equal(ibv_attach_mcast(qp, &group, 0), 0);
    }
    union ibv_gid further = group_of(0);
    further.raw[12] = 238;
    assert_int_equal(ibv_attach_mcast(qp, &further, 0), ENOMEM);
    for (int i = 0; i < device.max_mcast_grp; i++) {
        const union ibv_gid group = group_of((uint8_t)i);
        assert_int_equal(ibv_detach_mcast(qp, &group, 0), 0);
    }
    assert_int_equal(ibv_attach_mcast(qp, &further, 0), 0);
    assert_int_equal(ibv_detach_mcast(qp, &further, 0), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_member_gets_a_copy, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_what_is_not_for_the_member, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_many_groups, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_groups_of_ipv6, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_misuse, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_limits, api_open, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
