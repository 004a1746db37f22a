/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Peers of librdmacm connect to a design that has no connection manager, and nobody else
 *         changes its connection.
 * Method  The other end is a connection manager of its own, whose messages are wrapped into
 *         datagrams by hand; some are lost, repeated or damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "hdl/manager.h"
#include "transport/ibta/rdma_cm.h"
#include "wire/icrc.h"

#define PORT      7471
#define DESIGN_IP 0x7f000014u
#define PEER_IP   0x7f000001u
#define SECOND    UINT64_C(1000000000)

struct rig {
    struct manager manager;
    struct hdl_pair pair;
    struct cm peer;
    struct cm_connection connection;
    struct instant now;
    struct prng prng;
    uint32_t loss_ppm;
    enum cm_event_kind heard; /* The last event of the peer's. */
    struct cm_message answer; /* Its message. */
};

static void gid_of(uint32_t ip, uint8_t gid[16])
{
    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    store_be32(gid + 12, ip);
}

static void rig_init(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->pair.local = (struct hdl_half){.ip = DESIGN_IP, .qpn = 0x100, .psn = 0xabcdef, .rkey = 7};
    manager_init(&rig->manager, &rig->pair, PORT, 3);
    cm_init(&rig->peer, 4, 0, 5);
    cm_connection_init(&rig->connection);
    prng_init(&rig->prng, 6);
    rig->now = (struct instant){SECOND};
}

/* -- Datagrams ----------------------------------------------------------------------------------*/

static size_t wrap(const uint8_t mad[CM_MAD_BYTES], uint8_t *out)
{
    const struct roce_packet packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = CM_QPN,
                                       .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN}};
    const size_t headers = roce_encode_headers(&packet, out);
    memcpy(out + headers, mad, CM_MAD_BYTES);
    return headers + CM_MAD_BYTES + ROCE_ICRC_BYTES;
}

static void deliver(struct rig *rig, const uint8_t *bytes, size_t count)
{
    const struct inet_datagram datagram = {.peer_ip = PEER_IP,
                                           .peer_port = 50000,
                                           .own_port = ROCE_UDP_PORT,
                                           .payload = bytes,
                                           .payload_bytes = (uint32_t)count};
    assert_true(manager_is_for(&datagram));
    manager_come(&rig->manager, &datagram, rig->now);
}

static void hear(struct rig *rig, const struct cm_event *event)
{
    if (event->kind == CM_EVENT_NONE || event->kind == CM_EVENT_TIMEWAIT_OVER) {
        return;
    }
    rig->heard = event->kind;
    if (event->message != NULL) {
        rig->answer = *event->message;
    }
    if (event->kind == CM_EVENT_REPLIED) {
        struct cm_message rtu = {0};
        assert_int_equal(cm_confirm(&rig->peer, &rig->connection, &rtu, rig->now), STATUS_OK);
    }
}

/* A datagram of the manager, whose ICRC has to be right for identification 0. */
static void take(struct rig *rig, const struct inet_datagram *datagram)
{
    const struct inet_flow flow =
        inet_flow_ipv4(DESIGN_IP, datagram->own_port, datagram->peer_ip, ROCE_UDP_PORT);
    const size_t bytes = datagram->payload_bytes - ROCE_ICRC_BYTES;
    uint8_t source[16], destination[16];
    struct roce_packet packet;
    struct cm_event event;
    assert_int_equal(datagram->peer_ip, PEER_IP);
    assert_int_equal(datagram->peer_port, ROCE_UDP_PORT);
    assert_int_equal(icrc_compute(&flow, 0, datagram->payload, bytes, NULL, 0),
                     load_le32(datagram->payload + bytes));
    assert_int_equal(roce_decode(datagram->payload, bytes, &packet), ROCE_GOOD);
    assert_int_equal(packet.destination_qpn, CM_QPN);
    assert_int_equal(packet.deth.qkey, CM_QKEY);
    gid_of(DESIGN_IP, source);
    gid_of(PEER_IP, destination);
    cm_on_message(&rig->peer, source, destination, packet.payload, packet.payload_bytes, NULL,
                  rig->now, &event);
    hear(rig, &event);
}

/* Messages go to and fro, and time passes for `seconds`. */
static void talk(struct rig *rig, uint32_t seconds)
{
    const struct instant end = instant_after(rig->now, seconds * SECOND);
    while (!instant_reached(rig->now, end)) {
        uint8_t bytes[512];
        struct inet_datagram datagram;
        struct cm_event event;
        struct cm_mad mad;
        while (cm_next_message(&rig->peer, &mad)) {
            const size_t count = wrap(mad.bytes, bytes);
            if (!prng_chance(&rig->prng, rig->loss_ppm)) {
                deliver(rig, bytes, count);
            }
        }
        while (manager_next(&rig->manager, &datagram)) {
            if (!prng_chance(&rig->prng, rig->loss_ppm)) {
                take(rig, &datagram);
            }
        }
        rig->now = instant_after(rig->now, SECOND / 100);
        manager_pass_time(&rig->manager, rig->now);
        do {
            cm_on_time(&rig->peer, rig->now, &event);
            hear(rig, &event);
        } while (event.kind != CM_EVENT_NONE);
    }
}

static void request(struct rig *rig, const struct cm_req *req)
{
    struct cm_message message = {.req = *req};
    uint8_t source[16], destination[16];
    gid_of(PEER_IP, source);
    gid_of(DESIGN_IP, destination);
    cm_connection_init(&rig->connection);
    rig->heard = CM_EVENT_NONE;
    assert_int_equal(
        cm_request(&rig->peer, &rig->connection, source, destination, &message, rig->now),
        STATUS_OK);
}

/* The peer lets go of its connection, which is over. */
static void part(struct rig *rig)
{
    if (!cm_release(&rig->peer, &rig->connection, rig->now)) {
        talk(rig, 80);
        assert_int_equal(rig->heard, CM_EVENT_RELEASED);
    }
    talk(rig, 80);
}

static struct cm_req good_request(void)
{
    return (struct cm_req){.service_id = cm_service_id(RDMA_PORT_SPACE_TCP, PORT),
                           .qpn = 0x222,
                           .starting_psn = 0x333,
                           .path_mtu = 4,
                           .pkey = ROCE_DEFAULT_PKEY};
}

/* -- Tests --------------------------------------------------------------------------------------*/

/* Each side chooses the PSN by which the other one begins. */
static void assert_connected(const struct rig *rig)
{
    const struct hdl_pair *pair = &rig->pair;
    assert_true(pair->connected);
    assert_int_equal(pair->peer.ip, PEER_IP);
    assert_int_equal(pair->peer.qpn, 0x222);
    assert_int_equal(pair->send_psn, 0x333);
    assert_int_equal(pair->receive_psn, 0xabcdef);
    assert_int_equal(pair->pmtu, 2048);
    assert_int_equal(rig->heard, CM_EVENT_REPLIED);
    assert_int_equal(rig->answer.rep.qpn, 0x100);
    assert_int_equal(rig->answer.rep.starting_psn, 0xabcdef);
}

static void connects_and_ends(void **state)
{
    static struct rig rig;
    (void)state;
    rig_init(&rig);
    for (int i = 0; i < 2 * MANAGER_CONNECTIONS; i++) {
        const struct cm_req req = good_request();
        request(&rig, &req);
        talk(&rig, 1);
        assert_connected(&rig);
        if (i % 2 == 0) {
            assert_int_equal(cm_disconnect(&rig.peer, &rig.connection, rig.now), STATUS_OK);
        } else {
            manager_end(&rig.manager, rig.now);
        }
        talk(&rig, 1);
        assert_false(rig.pair.connected);
        assert_int_equal(rig.heard, CM_EVENT_DISCONNECTED);
        part(&rig); /* A connection that is over is forgotten. */
    }
    assert_int_equal(rig.manager.refused, 0);
}

/* The next peer's request may come with the farewell of the one before: the design sees an edge
 * without a connection all the same. */
static void one_after_the_other(void **state)
{
    static struct rig rig, other;
    const struct cm_req req = good_request();
    uint8_t bytes[512];
    struct cm_mad mad;
    (void)state;
    rig_init(&rig);
    rig_init(&other);
    cm_init(&other.peer, 9, 1, 77); /* Other communication IDs. */
    request(&rig, &req);
    talk(&rig, 1);
    assert_false(hdl_pair_shows(&rig.pair));
    assert_true(hdl_pair_shows(&rig.pair));
    assert_int_equal(cm_disconnect(&rig.peer, &rig.connection, rig.now), STATUS_OK);
    assert_true(cm_next_message(&rig.peer, &mad));
    deliver(&rig, bytes, wrap(mad.bytes, bytes));
    request(&other, &req);
    assert_true(cm_next_message(&other.peer, &mad));
    deliver(&rig, bytes, wrap(mad.bytes, bytes));
    assert_true(rig.pair.connected);
    assert_false(hdl_pair_shows(&rig.pair));
    assert_true(hdl_pair_shows(&rig.pair));
}

static void messages_are_lost(void **state)
{
    static struct rig rig;
    (void)state;
    rig_init(&rig);
    rig.loss_ppm = 300000;
    for (int i = 0; i < 20; i++) {
        const struct cm_req req = good_request();
        request(&rig, &req);
        talk(&rig, 80);
        assert_true(rig.pair.connected);
        assert_int_equal(cm_disconnect(&rig.peer, &rig.connection, rig.now), STATUS_OK);
        talk(&rig, 80);
        assert_false(rig.pair.connected);
        part(&rig);
    }
}

static void wrong_requests(void **state)
{
    static const struct {
        uint16_t port;
        uint8_t transport, path_mtu;
        uint16_t reason;
    } cases[] = {{PORT + 1, CM_TRANSPORT_RC, 4, CM_REASON_INVALID_SERVICE_ID},
                 {PORT, CM_TRANSPORT_UC, 4, CM_REASON_INVALID_TRANSPORT},
                 {PORT, CM_TRANSPORT_RC, 0, CM_REASON_INVALID_PATH_MTU},
                 {PORT, CM_TRANSPORT_RC, 6, CM_REASON_INVALID_PATH_MTU}};
    static struct rig rig;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct cm_req req = good_request();
        req.service_id = cm_service_id(RDMA_PORT_SPACE_TCP, cases[i].port);
        req.transport = cases[i].transport;
        req.path_mtu = cases[i].path_mtu;
        rig_init(&rig);
        request(&rig, &req);
        talk(&rig, 5);
        assert_int_equal(rig.heard, CM_EVENT_REJECTED);
        assert_int_equal(rig.answer.rej.reason, cases[i].reason);
        assert_false(rig.pair.connected);
        assert_true(rig.manager.refused >= 1);
    }
}

/* The connection that there is stays as it is. */
static void second_peer(void **state)
{
    static struct rig rig, other;
    const struct cm_req req = good_request();
    struct cm_req late = req;
    uint8_t bytes[512];
    struct inet_datagram datagram;
    struct cm_mad mad;
    (void)state;
    rig_init(&rig);
    rig_init(&other);
    cm_init(&other.peer, 9, 1, 77); /* Other communication IDs. */
    request(&rig, &req);
    talk(&rig, 1);
    late.qpn = 0x999;
    request(&other, &late);
    assert_true(cm_next_message(&other.peer, &mad));
    deliver(&rig, bytes, wrap(mad.bytes, bytes));
    assert_int_equal(rig.manager.refused, 1);
    assert_true(manager_next(&rig.manager, &datagram));
    take(&other, &datagram);
    assert_int_equal(other.answer.rej.reason, CM_REASON_NO_RESOURCES);
    assert_connected(&rig);
}

/* Datagrams to QP 1 that are something else are counted; damaged messages do no harm. */
static void anything_at_all(void **state)
{
    static struct rig rig;
    const struct cm_req req = good_request();
    uint8_t bytes[512], damaged[512];
    struct cm_mad mad;
    (void)state;
    rig_init(&rig);
    request(&rig, &req);
    assert_true(cm_next_message(&rig.peer, &mad));
    const size_t count = wrap(mad.bytes, bytes);
    for (int i = 0; i < 200000; i++) {
        memcpy(damaged, bytes, count);
        for (uint64_t k = 0, bits = 1 + prng_below(&rig.prng, 8); k < bits; k++) {
            const uint64_t bit = prng_below(&rig.prng, 8 * count);
            damaged[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        store_be32(damaged + 4, CM_QPN);
        deliver(&rig, damaged, i % 10 == 0 ? 16 + prng_below(&rig.prng, count - 16) : count);
        struct inet_datagram datagram;
        while (manager_next(&rig.manager, &datagram)) {
            assert_int_equal(datagram.payload_bytes, count);
        }
        rig.now = instant_after(rig.now, SECOND / 100);
        manager_pass_time(&rig.manager, rig.now);
    }
    assert_in_range(rig.manager.no_mad, 20000, 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connects_and_ends), cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(messages_are_lost), cmocka_unit_test(wrong_requests),
        cmocka_unit_test(second_peer),       cmocka_unit_test(anything_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
