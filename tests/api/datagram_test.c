/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Traffic class, hop limit and flow label of an address handle come out in the GRH that a
 *         UD receiver gets, over every wire and both versions of IP; a connection may have them.
 * Method  An ordinary verbs program. With the argument "ipv6" at ::1.
 */
#include "tests/api/api.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

enum {
    GRH_BYTES = 40,
    SKIPPED = 77 /* What meson takes for it. */
};

/* What an address vector says, and what has to arrive: the bits of congestion notification are not
 * the program's, and a hop limit of 0 or 1 says nothing. A label of 0 leaves it to the sender. */
static const struct row {
    uint8_t traffic_class, hop_limit;
    uint32_t flow_label;
    uint8_t class_seen, hops_seen;
} rows[] = {
    {0, 64, 0, 0, 64},         {0, 0, 0, 0, 64},        {0, 1, 0, 0, 64},
    {0x68, 64, 0, 0x68, 64},   {0x6b, 64, 0, 0x68, 64}, {0, 7, 0, 0, 7},
    {0xfc, 255, 0, 0xfc, 255}, {0, 64, 0x12345, 0, 64}, {0x20, 33, 0xfffff, 0x20, 33},
};

struct world {
    struct api *api;
    struct ibv_qp *sender, *receiver;
};

static bool is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static struct ibv_global_route route_of(const struct world *world, const struct row *row)
{
    return (struct ibv_global_route){.dgid = world->api->gid,
                                     .traffic_class = row->traffic_class,
                                     .hop_limit = row->hop_limit,
                                     .flow_label = row->flow_label};
}

static void check_grh(const struct world *world, const struct row *row)
{
    const uint8_t *grh = world->api->memory[1];
    if (is_ipv4(&world->api->gid)) {
        assert_int_equal(grh[20], 0x45);
        assert_int_equal(grh[21], row->class_seen);
        assert_int_equal(grh[28], row->hops_seen);
        return;
    }
    uint32_t first;
    memcpy(&first, grh, sizeof(first));
    first = ntohl(first);
    assert_int_equal(first >> 28, 6);
    assert_int_equal(first >> 20 & 0xff, row->class_seen);
    assert_int_equal(grh[7], row->hops_seen);
    if (row->flow_label != 0) {
        assert_int_equal(first & 0xfffff, row->flow_label);
    }
}

static void check_answer(const struct world *world, const struct row *row, struct ibv_wc *wc)
{
    struct ibv_ah_attr attr;
    assert_int_equal(ibv_init_ah_from_wc(world->api->context, 1, wc,
                                         (struct ibv_grh *)(void *)world->api->memory[1], &attr),
                     0);
    assert_int_equal(attr.grh.traffic_class, row->class_seen);
    assert_memory_equal(&attr.grh.dgid, &world->api->gid, sizeof(attr.grh.dgid));
}

/* Some fit into a slot of a ring together with what is told, others do not. */
static void send_one(struct world *world, const struct row *row, uint32_t bytes)
{
    struct api *api = world->api;
    struct ibv_ah_attr attr = {.is_global = 1, .grh = route_of(world, row), .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(api->pd, &attr);
    assert_non_null(ah);
    memset(api->memory[0], (int)bytes, bytes);
    memset(api->memory[1], 0, GRH_BYTES + bytes);
    assert_int_equal(api_post_receive(world->receiver, api_sge(api->mrs[1], 0, GRH_BYTES + bytes)),
                     0);
    struct ibv_sge sge = api_sge(api->mrs[0], 0, bytes);
    struct ibv_send_wr *bad,
        wr = {
            .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = world->receiver->qp_num;
    wr.wr.ud.remote_qkey = 0x11111111;
    assert_int_equal(ibv_post_send(world->sender, &wr, &bad), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    struct ibv_wc wc = api_expect(api->cqs[1], IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, GRH_BYTES + bytes);
    assert_memory_equal(api->memory[1] + GRH_BYTES, api->memory[0], bytes);
    check_grh(world, row);
    check_answer(world, row, &wc);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void test_grh(void **state)
{
    static const uint32_t sizes[] = {4, 24, 28, 32, 1000};
    struct api *api = *state;
    struct world world = {.api = api,
                          .sender = api_create_qp(api, IBV_QPT_UD, api->cqs[0], NULL),
                          .receiver = api_create_qp(api, IBV_QPT_UD, api->cqs[1], NULL)};
    api_connect(api, world.sender, world.sender);
    api_connect(api, world.receiver, world.receiver);
    for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(sizes); i++) {
        send_one(&world, &rows[i % COUNT_OF(rows)], sizes[i / COUNT_OF(rows)]);
    }
    assert_int_equal(ibv_destroy_qp(world.sender), 0);
    assert_int_equal(ibv_destroy_qp(world.receiver), 0);
}

/* A connection says what it was told, and its messages arrive. */
static void test_connection(void **state)
{
    struct api *api = *state;
    struct world world = {.api = api};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ibv_qp *qps[2];
        for (int j = 0; j < 2; j++) {
            qps[j] = api_create_qp(api, IBV_QPT_UC, api->cqs[j], NULL);
        }
        for (int j = 0; j < 2; j++) {
            struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
            struct ibv_qp_init_attr init;
            assert_int_equal(
                ibv_modify_qp(qps[j], &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                0);
            attr = (struct ibv_qp_attr){
                .qp_state = IBV_QPS_RTR,
                .path_mtu = IBV_MTU_1024,
                .dest_qp_num = qps[1 - j]->qp_num,
                .ah_attr = {.is_global = 1, .grh = route_of(&world, &rows[i]), .port_num = 1}};
            assert_int_equal(ibv_modify_qp(qps[j], &attr,
                                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                               IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
                             0);
            attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
            assert_int_equal(ibv_modify_qp(qps[j], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
            assert_int_equal(ibv_query_qp(qps[j], &attr, IBV_QP_AV, &init), 0);
            assert_int_equal(attr.ah_attr.grh.traffic_class, rows[i].traffic_class);
            assert_int_equal(attr.ah_attr.grh.hop_limit, rows[i].hop_limit);
            assert_int_equal(attr.ah_attr.grh.flow_label, rows[i].flow_label);
        }
        assert_int_equal(api_post_receive(qps[1], api_sge(api->mrs[1], 0, 5000)), 0);
        assert_int_equal(api_post(qps[0], IBV_WR_SEND, api_sge(api->mrs[0], 0, 5000), 0, 0), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).byte_len, 5000);
        for (int j = 0; j < 2; j++) {
            assert_int_equal(ibv_destroy_qp(qps[j]), 0);
        }
    }
}

static bool has_ipv6(void)
{
    const struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    const bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
    close(fd);
    return has;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "ipv6") == 0) {
        if (!has_ipv6()) {
            return SKIPPED;
        }
        setenv("NONIC_DEVICE", "::1", 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_grh, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_connection, api_open, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
