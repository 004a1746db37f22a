/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Traffic class, hop limit and flow label of an address handle come out in the GRH that a
 *         UD receiver gets, over every wire and both versions of IP; a connection's packets have
 *         them, too.
 * Method  An ordinary verbs program, and a plain socket for its peer. With the argument "ipv6" at
 *         ::1.
 */
#include "tests/api/api.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "wire/roce.h"

enum {
    GRH_BYTES = 40,
    SKIPPED = 77 /* Meson takes this status for a skipped test. */
};

/* The fields of an address vector, and those that have to arrive. The bits of congestion
 * notification are not the program's. A hop limit of 0 or 1 stands for the default. A label of 0
 * leaves the choice to the sender. */
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

static struct ibv_ah *handle_to(struct api *api, union ibv_gid gid)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .grh = {.dgid = gid, .hop_limit = 64}, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(api->pd, &attr);
    assert_non_null(ah);
    return ah;
}

static void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

/* A message has its own copy of the way: it waits in the queue when its handle and many others have
 * been destroyed, and arrives. */
static void test_handles_gone_before_their_messages(void **state)
{
    struct api *api = *state;
    const char *wire = getenv("NONIC_WIRE");
    if (wire != NULL && strcmp(wire, "shm") == 0) {
        return; /* Nobody is at other addresses. */
    }
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_UD, api->cqs[0], NULL);
    union ibv_gid other = api->gid;
    api_connect(api, qp, qp);
    set_state(qp, IBV_QPS_SQD);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(api_post_receive(qp, api_sge(api->mrs[1], 0, 100)), 0);
        struct ibv_ah *ah = handle_to(api, api->gid);
        struct ibv_sge sge = api_sge(api->mrs[0], 0, 8);
        struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = qp->qp_num;
        wr.wr.ud.remote_qkey = 0x11111111;
        assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
        assert_int_equal(ibv_destroy_ah(ah), 0);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        other.raw[14] = (uint8_t)(i / 200);
        other.raw[15] = (uint8_t)(1 + i % 200);
        assert_int_equal(ibv_destroy_ah(handle_to(api, other)), 0);
    }
    set_state(qp, IBV_QPS_RTS);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(api_expect(api->cqs[0], IBV_WC_SUCCESS).opcode, IBV_WC_RECV);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* UC and RC: what only RC takes is left out for UC. */
static void connect_to(struct ibv_qp *qp, const struct ibv_global_route *route, uint32_t qpn)
{
    const bool reliable = qp->qp_type == IBV_QPT_RC;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = qpn,
                                .ah_attr = {.is_global = 1, .grh = *route, .port_num = 1}};
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
        0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7};
    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_SQ_PSN |
                                       (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                                                 : 0)),
                     0);
}

/* A connection says what it was told, and its messages arrive. */
static void test_connection(void **state)
{
    struct api *api = *state;
    struct world world = {.api = api};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct ibv_global_route route = route_of(&world, &rows[i]);
        struct ibv_qp *qps[2];
        for (int j = 0; j < 2; j++) {
            qps[j] = api_create_qp(api, IBV_QPT_UC, api->cqs[j], NULL);
        }
        for (int j = 0; j < 2; j++) {
            struct ibv_qp_attr attr;
            struct ibv_qp_init_attr init;
            connect_to(qps[j], &route, qps[1 - j]->qp_num);
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

/* -- On the wire --------------------------------------------------------------------------------*/

/* A peer that is a socket, at an address that no other run of this test has. */
static int open_peer(union ibv_gid *gid)
{
    static const int on = 1;
    const uint32_t pid = (uint32_t)getpid();
    const uint8_t address[4] = {127, (uint8_t)(100 + (pid >> 8) % 100), (uint8_t)pid, 9};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    memcpy(&at.sin_addr, address, sizeof(address));
    *gid = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff}};
    memcpy(gid->raw + 12, address, sizeof(address));
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)), 0);
    return fd;
}

/* Traffic class and hop limit of the next packet for a queue pair: probes are for others. */
static void take_packet(int fd, uint32_t qpn, uint8_t *traffic_class, uint8_t *hop_limit)
{
    uint8_t packet[2048];
    _Alignas(struct cmsghdr) char control[128];
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        struct iovec part = {packet, sizeof(packet)};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        assert_int_equal(poll(&ready, 1, 30000), 1);
        assert_true(recvmsg(fd, &message, 0) >= 16);
        for (struct cmsghdr *said = CMSG_FIRSTHDR(&message); said != NULL;
             said = CMSG_NXTHDR(&message, said)) {
            if (said->cmsg_type == IP_TOS) {
                *traffic_class = *CMSG_DATA(said);
            } else if (said->cmsg_type == IP_TTL) {
                *hop_limit = *CMSG_DATA(said);
            }
        }
        if ((uint32_t)(packet[5] << 16 | packet[6] << 8 | packet[7]) == qpn) {
            return;
        }
    }
}

/* The traffic class, hop limit and flow label of a connection stand in the IP header of its
 * packets. */
static void test_connection_on_the_wire(void **state)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_RC};
    struct api *api = *state;
    struct world world = {.api = api};
    union ibv_gid peer;
    const char *wire = getenv("NONIC_WIRE");
    if (!is_ipv4(&api->gid) || (wire != NULL && strcmp(wire, "shm") == 0)) {
        return; /* At ::1 there is nobody else; and shared memory has no IP header. */
    }
    const int fd = open_peer(&peer);
    for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(types); i++) {
        const struct row *row = &rows[i % COUNT_OF(rows)];
        const uint32_t qpn = 0x4000 + (uint32_t)i;
        struct ibv_qp *qp = api_create_qp(api, types[i / COUNT_OF(rows)], api->cqs[0], NULL);
        struct ibv_global_route route = route_of(&world, row);
        uint8_t traffic_class = 0, hop_limit = 0;
        route.dgid = peer;
        connect_to(qp, &route, qpn);
        assert_int_equal(api_post(qp, IBV_WR_SEND, api_sge(api->mrs[0], 0, 100), 0, 0), 0);
        take_packet(fd, qpn, &traffic_class, &hop_limit);
        assert_int_equal(traffic_class & 0xfc, row->class_seen);
        assert_int_equal(hop_limit, row->hops_seen);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    close(fd);
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
        cmocka_unit_test_setup_teardown(test_handles_gone_before_their_messages, api_open,
                                        api_close),
        cmocka_unit_test_setup_teardown(test_connection, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_connection_on_the_wire, api_open, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
