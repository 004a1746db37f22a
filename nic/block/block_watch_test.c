/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal       A connection that may speak blocks (NIC_TRANSPORT_AUTO) is RC without memory for them
 *            until there is trouble, or its peer asks; and it asks for memory, and then its peer,
 *            in time.
 * Strategy   One connection; the test plays its peer, and says when answers come.
 * Oracle     Events, packets, and arithmetic on round trips.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/block/block.h"
#include "nic/queue_pair.h"
#include "wire/roce.h"

#define PEER       1
#define PEER_QPN   77
#define OUR_PSN    1000
#define PEER_PSN   2000
#define LONG_NS    UINT64_C(1000000)
#define LOSSES     2
#define ROUNDS     8
#define MEMORY_MAX 4

struct bench {
    struct nic *nic;
    struct pd pd;
    struct cq cq;
    struct completion ring[64];
    struct qp *qp;
    void *memory[MEMORY_MAX];
    uint32_t memory_count;
    struct instant now;
    uint32_t psn; /* The next request's. */
    bool may;     /* The link is for blocks. */
};

static const struct gid us = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct gid peer = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};
static const struct gid other = {{[10] = 0xff, 0xff, 10, 1, 0, 2}};

static void *zeroed(struct bench *bench, size_t bytes)
{
    const size_t room = (bytes + 63u) & ~(size_t)63u;
    void *memory = aligned_alloc(64, room);
    memset(memory, 0, room);
    assert_true(bench->memory_count < MEMORY_MAX);
    bench->memory[bench->memory_count++] = memory;
    return memory;
}

static void modify(struct bench *bench, enum qp_state state, uint32_t mask)
{
    const struct qp_attributes attributes = {
        .state = (uint8_t)state,
        .port = 1,
        .access = ACCESS_REMOTE_WRITE,
        .destination_qpn = PEER_QPN,
        .path_mtu = PATH_MTU_1024,
        .psn = {.send = OUR_PSN, .receive = PEER_PSN},
        .av = {.source = us, .destination = peer, .peer = bench->may ? PEER : 0},
        .timeout = 14,
        .retry_count = 7,
        .rnr_retry = 7,
    };
    assert_int_equal(qp_modify(bench->qp, &attributes, mask | QP_ATTR_STATE, bench->now),
                     STATUS_OK);
}

static void to_rtr(struct bench *bench)
{
    modify(bench, QP_RTR,
           QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
}

static void to_rts(struct bench *bench)
{
    modify(bench, QP_RTS,
           QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC |
               QP_ATTR_SQ_PSN);
}

static struct bench *begin(bool may)
{
    const struct nic_limits limits = {.qps = 4,
                                      .regions = 4,
                                      .sends_per_qp = 16,
                                      .receives_per_qp = 4,
                                      .sges = 1,
                                      .inline_bytes = 64,
                                      .reads_per_qp = 2,
                                      .cq_entries = 64,
                                      .mtu = PATH_MTU_1024,
                                      .block = {.transport = NIC_TRANSPORT_AUTO,
                                                .window = 64,
                                                .contexts = 16,
                                                .held = 1,
                                                .reads = 32,
                                                .paths = 1,
                                                .peers = 1,
                                                .connections = 1,
                                                .auto_losses = LOSSES,
                                                .auto_round_trip_ns = LONG_NS}};
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->now = (struct instant){1000};
    bench->may = may;
    bench->psn = OUR_PSN;
    bench->nic = nic_init(&limits, 1, zeroed(bench, nic_bytes(&limits)));
    cq_init(&bench->cq, 64, bench->ring);
    struct nic_routes *routes = nic_peer_routes(bench->nic, PEER);
    routes->datagram_bytes = 4096;
    routes->ports = 1;
    struct qp_request request = {.type = QP_RC,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .capacity = {.sends = 16, .receives = 4},
                                 .signal_all = true};
    void *memory = zeroed(bench, qp_bytes(QP_RC, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, memory, &bench->qp), STATUS_OK);
    modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    to_rtr(bench);
    return bench;
}

static void end(struct bench *bench)
{
    qp_destroy(bench->qp);
    for (uint32_t i = 0; i < bench->memory_count; i++) {
        free(bench->memory[i]);
    }
    free(bench);
}

static bool has_memory(const struct bench *bench)
{
    return bench->qp->engine == ENGINE_RC_OR_BLOCKS;
}

/* -- Packets ------------------------------------------------------------------------------------*/

static void post(struct bench *bench)
{
    const struct send_request request = {.kind = WORK_WRITE};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
}

static struct nic_departure pull(struct bench *bench)
{
    struct nic_departure departure;
    assert_ptr_equal(nic_next_qp(bench->nic), bench->qp);
    assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    return departure;
}

/* Acknowledges everything (syndrome 0x1f: no credits), or says that the newest was missed. */
static void answer(struct bench *bench, bool missed)
{
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    const struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = qp_number(bench->qp),
        .psn = bench->psn - 1,
        .aeth = {.syndrome = missed ? ROCE_NAK_PSN_SEQUENCE : 0x1f},
    };
    const struct nic_frame frame = {
        .headers = headers,
        .headers_bytes = (uint32_t)roce_encode_headers(&packet, headers),
        .source = peer,
        .destination = us,
    };
    struct nic_move move;
    assert_int_equal(nic_on_packet(bench->nic, &frame, bench->now, &move), NIC_DONE);
}

/* A request that is answered after `takes_ns`. */
static void go_round(struct bench *bench, uint64_t takes_ns)
{
    post(bench);
    assert_int_equal(pull(bench).headers[0], ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_WRITE_ONLY));
    bench->psn++;
    bench->now.ns += takes_ns;
    answer(bench, false);
}

/* A request that is lost once. */
static void lose(struct bench *bench)
{
    post(bench);
    (void)pull(bench);
    bench->psn++;
    answer(bench, true);
    (void)pull(bench);
    answer(bench, false);
}

static enum nic_arrived hand_in(struct bench *bench, const struct block_packet *packet,
                                const struct gid *from, struct nic_move *move)
{
    uint8_t headers[NIC_HEADERS_BYTES_MAX];
    const struct nic_frame frame = {
        .headers = headers,
        .headers_bytes = (uint32_t)block_encode(packet, headers),
        .source = *from,
        .destination = us,
    };
    return nic_on_packet(bench->nic, &frame, bench->now, move);
}

static struct block_packet hello_to(const struct qp *qp)
{
    return (struct block_packet){.opcode = BLOCK_HELLO,
                                 .destination_qpn = qp_number(qp),
                                 .hello = {.mtu_code = PATH_MTU_1024,
                                           .paths = 1,
                                           .nonce = 4711,
                                           .next_psn = PEER_PSN,
                                           .sender_qpn = PEER_QPN,
                                           .window = 64,
                                           .read_queue = 16}};
}

/* -- Tests --------------------------------------------------------------------------------------*/

/* EXA-73 */
static void test_long_round_trips(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    nic_note_answers(bench->nic, PEER, true);
    to_rts(bench);
    for (int i = 0; i < ROUNDS; i++) {
        assert_false(has_memory(bench));
        go_round(bench, LONG_NS + (uint64_t)i);
    }
    assert_true(has_memory(bench));
    /* All requests that had begun are done, so the peer is asked as soon as there is something to
     * send. */
    assert_null(nic_next_qp(bench->nic));
    post(bench);
    assert_int_equal(pull(bench).headers[0], BLOCK_HELLO);
    end(bench);
}

/* One short round trip shows that the route is short: the others waited for a processor, or in a
 * queue. */
static void test_one_short_round_trip(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    nic_note_answers(bench->nic, PEER, true);
    to_rts(bench);
    for (int i = 0; i < 3 * ROUNDS; i++) {
        go_round(bench, i == ROUNDS - 1 ? LONG_NS - 1 : 2 * LONG_NS);
    }
    assert_false(has_memory(bench));
    struct qp_report report;
    qp_report_of(bench->qp, &report);
    assert_int_equal(report.round_trip_ns, LONG_NS - 1);
    end(bench);
}

static void test_losses(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    nic_note_answers(bench->nic, PEER, true);
    to_rts(bench);
    for (int i = 1; i < LOSSES; i++) {
        lose(bench);
        go_round(bench, 1000);
        assert_false(has_memory(bench));
    }
    lose(bench);
    assert_true(has_memory(bench));
    struct qp_report report;
    qp_report_of(bench->qp, &report);
    assert_int_equal(report.losses, LOSSES);
    end(bench);
}

/* An acknowledgement of a request that was sent twice does not say how long the route is. */
static void test_a_lost_packet_is_not_measured(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    struct qp_report report;
    to_rts(bench);
    post(bench);
    (void)pull(bench);
    bench->psn++;
    answer(bench, true);
    (void)pull(bench);
    bench->now.ns += LONG_NS;
    answer(bench, false);
    qp_report_of(bench->qp, &report);
    assert_int_equal(report.losses, 1);
    assert_int_equal(report.round_trip_ns, 0);
    go_round(bench, LONG_NS / 2);
    qp_report_of(bench->qp, &report);
    assert_int_equal(report.round_trip_ns, LONG_NS / 2);
    end(bench);
}

/* EXA-74: a peer that does not answer probes may be no nonic; as soon as it answers one, the queue
 * pair takes memory. A queue pair that finds no memory goes on by RC, and takes some later. */
static void test_of_whom_to_ask(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    to_rts(bench);
    for (int i = 0; i < LOSSES; i++) {
        lose(bench);
    }
    assert_false(has_memory(bench));
    nic_note_answers(bench->nic, PEER, true);
    void *all = pool_take(&bench->nic->streams, 0);
    for (uint32_t i = 1; i <= 3; i++) {
        go_round(bench, 1000);
        assert_false(has_memory(bench));
        assert_int_equal(nic_counters(bench->nic)->values[COUNTER_blocks_no_memory], i);
    }
    pool_give(&bench->nic->streams, 0, all);
    go_round(bench, 1000);
    assert_true(has_memory(bench));
    end(bench);
}

static void test_a_link_that_is_none_for_blocks(void **state)
{
    (void)state;
    struct bench *bench = begin(false);
    const struct block_packet hello = hello_to(bench->qp);
    struct nic_move move;
    nic_note_answers(bench->nic, PEER, true);
    assert_false(qp_places_early(bench->qp));
    assert_int_equal(hand_in(bench, &hello, &peer, &move), NIC_DONE);
    assert_int_equal(nic_counters(bench->nic)->values[COUNTER_drop_unwanted_block], 1);
    to_rts(bench);
    for (int i = 0; i < 2 * LOSSES; i++) {
        lose(bench);
    }
    assert_false(has_memory(bench));
    end(bench);
}

/* EXA-73: a queue pair that the peer asks takes memory; the frame is counted once. */
static void test_the_peer_asks(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    struct block_packet hello = hello_to(bench->qp);
    struct nic_move move = {.qp = NULL};
    const uint64_t *count = nic_counters(bench->nic)->values;
    assert_true(qp_places_early(bench->qp));
    assert_int_equal(hand_in(bench, &hello, &other, &move), NIC_DONE);
    hello.hello.sender_qpn++;
    assert_int_equal(hand_in(bench, &hello, &peer, &move), NIC_DONE);
    assert_int_equal(count[COUNTER_drop_unwanted_block], 2);
    hello.hello.sender_qpn--;
    assert_false(has_memory(bench));
    assert_int_equal(hand_in(bench, &hello, &peer, &move), NIC_DONE);
    assert_int_equal(count[COUNTER_rcvd_pkts], 3);
    assert_int_equal(pull(bench).headers[0], BLOCK_WELCOME);
    end(bench);
}

/* Only a connection that speaks blocks both ways has nothing to slow down. */
static void test_cnps(void **state)
{
    (void)state;
    for (uint32_t both = 0; both < 4; both++) {
        struct bench *bench = begin(true);
        const struct nic_arrival arrival = {.source = peer};
        const uint64_t *count = nic_counters(bench->nic)->values;
        assert_true(block_join(bench->qp));
        bench->qp->block->ask.state = both & 1 ? HELLO_AGREED : HELLO_NOT_ASKED;
        bench->qp->block->answer.session = (both & 2) != 0;
        block_on_cnp(bench->qp, &arrival, bench->now);
        assert_int_equal(count[COUNTER_rp_cnp_ignored], both == 3);
        assert_int_equal(count[COUNTER_rp_cnp_handled], both != 3);
        bench->qp->block->ask.state = HELLO_NOT_ASKED;
        bench->qp->block->answer.session = false;
        end(bench);
    }
}

/* A queue pair in error takes no memory. */
static void test_the_error_state(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    const struct block_packet hello = hello_to(bench->qp);
    struct nic_move move;
    modify(bench, QP_ERR, 0);
    assert_int_equal(hand_in(bench, &hello, &peer, &move), NIC_DONE);
    assert_false(has_memory(bench));
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_round_trips),
        cmocka_unit_test(test_one_short_round_trip),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_a_lost_packet_is_not_measured),
        cmocka_unit_test(test_of_whom_to_ask),
        cmocka_unit_test(test_a_link_that_is_none_for_blocks),
        cmocka_unit_test(test_the_peer_asks),
        cmocka_unit_test(test_cnps),
        cmocka_unit_test(test_the_error_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
