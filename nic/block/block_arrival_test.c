/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet of blocks reaches a stream only if it is well-formed and its peer's, of the
 *         session that was agreed on; all else changes nothing but the counter of its flaw. The
 *         terms have the smaller values of both sides.
 * Method  One NIC with a queue pair that speaks blocks and one that does not; frames by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/block/block.h"
#include "nic/block/block_receiver.h"

#define PEER_QPN  77
#define OUR_PSN   100
#define PEER_PSN  200
#define PEER      1
#define OUR_PATHS 4

struct bench {
    struct nic *nic;
    struct pd pd;
    struct cq cq;
    struct completion ring[64];
    struct qp *qp, *plain; /* The second one's link is not for blocks. */
    void *memory[4];
    uint32_t memory_count;
    struct instant now;
};

static const struct gid us = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct gid peer = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};
static const struct gid other = {{[10] = 0xff, 0xff, 10, 1, 0, 2}};

static void *zeroed(struct bench *bench, size_t bytes)
{
    const size_t room = (bytes + 63u) & ~(size_t)63u;
    void *memory = aligned_alloc(64, room);
    memset(memory, 0, room);
    bench->memory[bench->memory_count++] = memory;
    return memory;
}

static void modify(struct bench *bench, struct qp *qp, enum qp_state state, uint32_t mask)
{
    const struct qp_attributes attributes = {
        .state = (uint8_t)state,
        .port = 1,
        .access = ACCESS_REMOTE_WRITE,
        .destination_qpn = PEER_QPN,
        .path_mtu = PATH_MTU_1024,
        .psn = {.send = OUR_PSN, .receive = PEER_PSN},
        .av = {.source = us, .destination = peer, .peer = qp == bench->plain ? 0 : PEER},
        .timeout = 14,
        .retry_count = 7,
        .rnr_retry = 7,
    };
    assert_int_equal(qp_modify(qp, &attributes, mask | QP_ATTR_STATE, bench->now), STATUS_OK);
}

static struct qp *make_qp(struct bench *bench)
{
    struct qp_request request = {.type = QP_RC,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .capacity = {.sends = 4, .receives = 4}};
    struct qp *qp;
    void *memory = zeroed(bench, qp_bytes(QP_RC, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, memory, &qp), STATUS_OK);
    modify(bench, qp, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    return qp;
}

static void to_rtr(struct bench *bench, struct qp *qp)
{
    modify(bench, qp, QP_RTR,
           QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
}

static void to_rts(struct bench *bench, struct qp *qp)
{
    modify(bench, qp, QP_RTS,
           QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC |
               QP_ATTR_SQ_PSN);
}

/* Datagrams of 1,472 bytes carry 1,408 of payload: an interface of 1,500 bytes. */
enum {
    DATAGRAM = 1472,
    FULL = 1408
};

static struct bench *begin_with(uint32_t qps, bool beyond_mtu)
{
    const struct nic_limits limits = {.qps = qps,
                                      .regions = 4,
                                      .sends_per_qp = 16,
                                      .receives_per_qp = 4,
                                      .sges = 1,
                                      .inline_bytes = 64,
                                      .reads_per_qp = 2,
                                      .cq_entries = 64,
                                      .mtu = PATH_MTU_1024,
                                      .block = {.transport = NIC_TRANSPORT_BLOCK,
                                                .window = 256,
                                                .contexts = 16,
                                                .held = 1,
                                                .reads = 32,
                                                .paths = OUR_PATHS,
                                                .peers = 2,
                                                .beyond_mtu = beyond_mtu}};
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->now = (struct instant){1000};
    bench->nic = nic_init(&limits, 1, zeroed(bench, nic_bytes(&limits)));
    cq_init(&bench->cq, 64, bench->ring);
    struct nic_routes *routes = nic_peer_routes(bench->nic, PEER);
    routes->datagram_bytes = DATAGRAM;
    routes->ports = OUR_PATHS;
    bench->qp = make_qp(bench);
    bench->plain = make_qp(bench);
    to_rtr(bench, bench->qp);
    to_rtr(bench, bench->plain);
    return bench;
}

static struct bench *begin(void)
{
    return begin_with(4, false);
}

static void end(struct bench *bench)
{
    qp_destroy(bench->qp);
    qp_destroy(bench->plain);
    for (uint32_t i = 0; i < bench->memory_count; i++) {
        free(bench->memory[i]);
    }
    free(bench);
}

/* -- Frames -------------------------------------------------------------------------------------*/

static enum nic_arrived bring(struct bench *bench, const struct block_packet *packet,
                              const struct gid *from, struct nic_move *move)
{
    static const uint8_t payload[FULL + 100];
    uint8_t headers[NIC_HEADERS_BYTES_MAX];
    const bool zeroes = packet->opcode == BLOCK_HELLO || packet->opcode == BLOCK_WELCOME;
    const struct nic_frame frame = {
        .headers = headers,
        .headers_bytes = (uint32_t)block_encode(packet, headers),
        .payload = payload,
        .payload_bytes = zeroes && packet->hello.payload_bytes != 0
                             ? BLOCK_GREETING_ZEROES(packet->hello.payload_bytes)
                             : packet->payload_bytes,
        .source = *from,
        .destination = us,
    };
    return nic_on_packet(bench->nic, &frame, bench->now, move);
}

static void hand_in(struct bench *bench, const struct block_packet *packet, const struct gid *from)
{
    struct nic_move move;
    assert_int_equal(bring(bench, packet, from, &move), NIC_DONE);
}

static void hand_in_and_move(struct bench *bench, const struct block_packet *packet)
{
    struct nic_move move;
    if (bring(bench, packet, &peer, &move) == NIC_MOVES) {
        nic_on_moved(bench->nic, &move, NIC_MOVED, bench->now);
    }
    while (nic_next_held(bench->nic, &move)) {
        nic_on_moved(bench->nic, &move, NIC_MOVED, bench->now);
    }
}

/* `counter` and the counters of good frames go up by one, and no other one does. */
static void expect_dropped(struct bench *bench, const struct block_packet *packet,
                           const struct gid *from, enum nic_counter counter)
{
    struct nic_counters model = *nic_counters(bench->nic);
    model.values[COUNTER_rcvd_pkts]++;
    model.values[COUNTER_rcvd_bytes] += packet->payload_bytes;
    model.values[counter]++;
    hand_in(bench, packet, from);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        if (nic_counters(bench->nic)->values[i] != model.values[i]) {
            fail_msg("another counter: %s", nic_counter_name((enum nic_counter)i));
        }
    }
}

static struct block_packet hello_to(const struct qp *qp)
{
    return (struct block_packet){.opcode = BLOCK_HELLO,
                                 .destination_qpn = qp_number(qp),
                                 .hello = {.mtu_code = PATH_MTU_1024,
                                           .paths = 2,
                                           .nonce = 4711,
                                           .next_psn = PEER_PSN,
                                           .sender_qpn = PEER_QPN,
                                           .window = 128,
                                           .read_queue = 16}};
}

static struct block_packet packet_to(const struct qp *qp, enum block_opcode opcode)
{
    return (struct block_packet){.opcode = (uint8_t)opcode,
                                 .destination_qpn = qp_number(qp),
                                 .session = 4711,
                                 .last_block = true};
}

static uint64_t counted(const struct bench *bench, enum nic_counter counter)
{
    return nic_counters(bench->nic)->values[counter];
}

/* The only packet that is ready. */
static struct block_packet pull(struct bench *bench)
{
    struct nic_departure departure;
    struct block_packet packet;
    assert_ptr_equal(nic_next_qp(bench->nic), bench->qp);
    assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    const uint8_t *payload =
        departure.segment_count == 0 ? NULL : (const uint8_t *)departure.segments[0].address;
    assert_int_equal(block_decode(departure.headers, departure.headers_bytes, payload,
                                  departure.payload_bytes + departure.pad_bytes, &packet),
                     BLOCK_GOOD);
    return packet;
}

/* -- Tests --------------------------------------------------------------------------------------*/

/* EXA-103 */
static void test_whose_it_is(void **state)
{
    (void)state;
    struct bench *bench = begin();
    const struct block_packet hello = hello_to(bench->plain);
    struct block_packet packet = packet_to(bench->qp, BLOCK_SEND);
    expect_dropped(bench, &hello, &peer, COUNTER_drop_unwanted_block);
    expect_dropped(bench, &packet, &peer, COUNTER_drop_wrong_session);
    expect_dropped(bench, &packet, &other, COUNTER_drop_wrong_peer);
    packet.destination_qpn = (qp_number(bench->qp) + 5) & 0xffffff;
    expect_dropped(bench, &packet, &peer, COUNTER_drop_unknown_qp);
    packet = packet_to(bench->qp, BLOCK_ANSWER);
    expect_dropped(bench, &packet, &peer, COUNTER_drop_wrong_state);
    to_rts(bench, bench->qp);
    expect_dropped(bench, &packet, &peer, COUNTER_drop_wrong_session);
    packet.session = 0; /* The session of a stream that never asked. */
    expect_dropped(bench, &packet, &peer, COUNTER_drop_wrong_session);
    end(bench);
}

/* The answer refuses, and is not longer than the HELLO. */
static void expect_refused(struct bench *bench, const struct block_packet *hello)
{
    expect_dropped(bench, hello, &peer, COUNTER_hello_refused);
    const struct block_packet answer = pull(bench);
    assert_int_equal(answer.opcode, BLOCK_WELCOME);
    assert_int_equal(answer.destination_qpn, hello->hello.sender_qpn);
    assert_int_equal(answer.hello.window, 0);
    assert_int_equal(answer.hello.gid_count, 0);
    assert_int_equal(answer.hello.nonce, hello->hello.nonce);
    assert_int_equal(answer.hello.next_psn, hello->hello.next_psn);
    assert_int_equal(block_judge(&answer, 1024), BLOCK_CONSISTENT);
}

/* EXA-73 */
static void test_hellos_that_are_refused(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct block_packet hello = hello_to(bench->qp);
    hello.hello.next_psn++;
    expect_refused(bench, &hello);
    hello = hello_to(bench->qp);
    hello.hello.sender_qpn++;
    expect_refused(bench, &hello);
    hello = hello_to(bench->qp);
    hello.hello.mtu_code++;
    expect_refused(bench, &hello);
    hello = hello_to(bench->qp);
    hello.hello.reads = (uint8_t)(bench->qp->attributes.max_reads_in + 1);
    expect_refused(bench, &hello);
    hello = hello_to(bench->qp);
    expect_dropped(bench, &hello, &other, COUNTER_drop_wrong_peer);
    hello.hello.window = 0;
    expect_dropped(bench, &hello, &peer, COUNTER_drop_block_contradiction);
    assert_null(nic_next_qp(bench->nic));
    end(bench);
}

static void test_terms_are_what_both_have(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct block_packet hello = hello_to(bench->qp);
    hello.hello.window = 1024;
    hand_in(bench, &hello, &peer);
    const struct block_packet welcome = pull(bench);
    assert_int_equal(welcome.opcode, BLOCK_WELCOME);
    assert_int_equal(welcome.destination_qpn, PEER_QPN);
    assert_int_equal(welcome.hello.nonce, 4711);
    assert_int_equal(welcome.hello.next_psn, PEER_PSN);
    assert_int_equal(welcome.hello.sender_qpn, qp_number(bench->qp));
    assert_int_equal(welcome.hello.window, 256);
    assert_int_equal(welcome.hello.read_queue, 16);
    assert_int_equal(welcome.hello.paths, 2);
    assert_int_equal(bench->qp->block->receiving.window, 256);
    assert_int_equal(bench->qp->block->receiving.session, 4711);
    struct nic_event event;
    assert_true(nic_next_event(bench->nic, &event));
    assert_int_equal(event.kind, NIC_EVENT_COMMUNICATION_ESTABLISHED);
    /* Once more if it was lost; the session stays the same. */
    hand_in(bench, &hello, &peer);
    assert_int_equal(pull(bench).hello.nonce, 4711);
    assert_int_equal(nic_counters(bench->nic)->values[COUNTER_hello_welcomed], 2);
    end(bench);
}

/* The number of the answer to a PROBE of the session that this HELLO begins, or goes on with. */
static uint32_t answer_in_session(struct bench *bench, uint32_t nonce)
{
    struct block_packet hello = hello_to(bench->qp);
    struct block_packet probe = packet_to(bench->qp, BLOCK_PROBE);
    hello.hello.nonce = nonce;
    probe.session = nonce;
    probe.last_block = false;
    hand_in(bench, &hello, &peer);
    assert_int_equal(pull(bench).opcode, BLOCK_WELCOME);
    hand_in(bench, &probe, &peer);
    const struct block_packet answer = pull(bench);
    assert_int_equal(answer.opcode, BLOCK_ANSWER);
    assert_int_equal(answer.session, nonce);
    return answer.tsn;
}

/* EXA-73 EXA-97: a late HELLO takes the session away, the true one brings it back. Its requester
 * goes on from the answers that it had. */
static void test_answers_of_a_session_that_comes_back(void **state)
{
    (void)state;
    struct bench *bench = begin();
    uint32_t newest = 0;
    for (uint32_t i = 0; i < 3; i++) {
        newest = answer_in_session(bench, 4711);
    }
    (void)answer_in_session(bench, 4712);
    assert_true(answer_in_session(bench, 4711) > newest);
    end(bench);
}

/* EXA-92 */
static void test_sessions_end_with_their_queue_pair(void **state)
{
    (void)state;
    struct bench *bench = begin();
    const struct block_packet hello = hello_to(bench->qp);
    const struct block_packet probe = packet_to(bench->qp, BLOCK_PROBE);
    hand_in(bench, &hello, &peer);
    modify(bench, bench->qp, QP_RESET, 0);
    expect_dropped(bench, &probe, &peer, COUNTER_drop_unwanted_block);
    modify(bench, bench->qp, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    to_rtr(bench, bench->qp);
    expect_dropped(bench, &probe, &peer, COUNTER_drop_wrong_session);
    hand_in(bench, &hello, &peer);
    modify(bench, bench->qp, QP_ERR, 0);
    expect_dropped(bench, &probe, &peer, COUNTER_drop_wrong_state);
    end(bench);
}

/* EXA-73: until a block was executed, a HELLO of an earlier life may still take the session away,
 * also between an answer that says so and the block's next try. */
static void test_hello_goes_on_until_a_block_is_executed(void **state)
{
    (void)state;
    struct bench *bench = begin();
    to_rts(bench, bench->qp);
    const struct send_request request = {.kind = WORK_SEND, .flags = WORK_SIGNALED};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
    struct block_packet packet = pull(bench);
    assert_int_equal(packet.opcode, BLOCK_HELLO);
    packet.opcode = BLOCK_WELCOME;
    packet.destination_qpn = qp_number(bench->qp);
    packet.hello.sender_qpn = PEER_QPN;
    const uint32_t nonce = packet.hello.nonce;
    hand_in(bench, &packet, &peer);
    assert_int_equal(pull(bench).opcode, BLOCK_SEND);
    struct block_packet answer = {.opcode = BLOCK_ANSWER,
                                  .destination_qpn = qp_number(bench->qp),
                                  .session = nonce,
                                  .answer = {.status = BLOCK_STATUS_RNR, .rnr_code = 25}};
    hand_in(bench, &answer, &peer);
    bench->now.ns += HELLO_SECOND_NS;
    nic_on_time(bench->nic, bench->now);
    assert_int_equal(pull(bench).opcode, BLOCK_HELLO);
    answer.answer.status = BLOCK_STATUS_NONE;
    answer.answer.base = 1;
    answer.tsn = 1;
    hand_in(bench, &answer, &peer);
    assert_true(bench->qp->block->ask.confirmed);
    end(bench);
}

/* -- Payloads beyond the path MTU ---------------------------------------------------------------*/

/* The smaller one of both ends, or the MTU. */
static void test_a_payload_beyond_the_mtu_is_agreed_on(void **state)
{
    (void)state;
    static const struct {
        bool beyond, other_address;
        uint16_t asked, told;
        uint32_t carried;
    } rows[] = {
        {true, false, FULL, FULL, FULL}, {true, false, FULL + 64, FULL, FULL},
        {true, false, 1088, 1088, 1088}, {true, false, 0, 0, 1024},
        {false, false, FULL, 0, 1024},   {true, true, FULL, 0, 1024},
    };
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        struct bench *bench = begin_with(4, rows[i].beyond);
        struct nic_routes *routes = nic_peer_routes(bench->nic, PEER);
        routes->own_count = rows[i].other_address;
        routes->own[0] = other;
        struct block_packet hello = hello_to(bench->qp);
        hello.hello.payload_bytes = rows[i].asked;
        hand_in(bench, &hello, &peer);
        assert_int_equal(pull(bench).hello.payload_bytes, rows[i].told);
        assert_int_equal(bench->qp->block->receiving.payload_bytes, rows[i].carried);
        end(bench);
    }
}

static struct bench *begin_to_ask(void)
{
    struct bench *bench = begin_with(4, true);
    const struct send_request request = {.kind = WORK_SEND, .flags = WORK_SIGNALED};
    to_rts(bench, bench->qp);
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
    return bench;
}

static struct block_packet next_hello(struct bench *bench, uint64_t after_ms)
{
    bench->now.ns += after_ms * 1000000;
    nic_on_time(bench->nic, bench->now);
    const struct block_packet hello = pull(bench);
    assert_int_equal(hello.opcode, BLOCK_HELLO);
    return hello;
}

static struct block_packet welcome_to(const struct block_packet *hello, const struct qp *qp,
                                      uint16_t payload_bytes)
{
    struct block_packet welcome = hello_to(qp);
    welcome.opcode = BLOCK_WELCOME;
    welcome.hello.nonce = hello->hello.nonce;
    welcome.hello.next_psn = hello->hello.next_psn;
    welcome.hello.payload_bytes = payload_bytes;
    return welcome;
}

static void test_a_payload_beyond_the_mtu_is_asked_for(void **state)
{
    (void)state;
    for (uint16_t told = 1024; told <= FULL; told += 64) {
        struct bench *bench = begin_to_ask();
        const struct block_packet hello = next_hello(bench, 0);
        assert_int_equal(hello.hello.payload_bytes, FULL);
        struct block_packet welcome = welcome_to(&hello, bench->qp, FULL + 64);
        hand_in(bench, &welcome, &peer);
        assert_int_equal(counted(bench, COUNTER_drop_stale_welcome), 1);
        welcome.hello.payload_bytes = told == 1024 ? 0 : told;
        hand_in(bench, &welcome, &peer);
        assert_int_equal(bench->qp->block->sending.payload_bytes, told);
        end(bench);
    }
}

/* The third HELLO comes also where the longest datagrams are lost; what answers the earlier ones is
 * too late. */
static void test_a_smaller_router_is_noticed(void **state)
{
    (void)state;
    struct bench *bench = begin_to_ask();
    const struct block_packet first = next_hello(bench, 0), second = next_hello(bench, 5);
    const struct block_packet third = next_hello(bench, 10);
    assert_int_equal(second.hello.payload_bytes, FULL);
    assert_int_equal(second.hello.nonce, first.hello.nonce);
    assert_int_equal(third.hello.payload_bytes, 0);
    assert_int_not_equal(third.hello.nonce, first.hello.nonce);
    struct block_packet welcome = welcome_to(&first, bench->qp, FULL);
    hand_in(bench, &welcome, &peer);
    welcome = welcome_to(&third, bench->qp, FULL);
    hand_in(bench, &welcome, &peer);
    assert_int_equal(counted(bench, COUNTER_drop_stale_welcome), 2);
    assert_int_equal(next_hello(bench, 20).hello.nonce, third.hello.nonce);
    welcome = welcome_to(&third, bench->qp, 0);
    hand_in(bench, &welcome, &peer);
    assert_int_equal(bench->qp->block->sending.payload_bytes, 1024);
    end(bench);
}

/* EXA-72 */
static void test_bytes_that_are_no_packet(void **state)
{
    (void)state;
    struct bench *bench = begin();
    const struct block_packet hello = hello_to(bench->qp);
    static const struct {
        uint32_t at;
        uint8_t flip;
        enum nic_counter counter;
    } flaws[] = {
        {1, 0x01, COUNTER_drop_wrong_version},  {2, 0x01, COUNTER_drop_wrong_pkey},
        {4, 0x01, COUNTER_drop_block_reserved}, {12, 0x02, COUNTER_drop_block_version},
        {13, 0x10, COUNTER_drop_block_count},
    };
    for (uint32_t i = 0; i < COUNT_OF(flaws); i++) {
        uint8_t bytes[NIC_HEADERS_BYTES_MAX];
        const struct nic_frame frame = {.headers = bytes,
                                        .headers_bytes = (uint32_t)block_encode(&hello, bytes),
                                        .source = peer,
                                        .destination = us};
        bytes[flaws[i].at] ^= flaws[i].flip;
        struct nic_move move;
        const uint64_t before = nic_counters(bench->nic)->values[flaws[i].counter];
        assert_int_equal(nic_on_packet(bench->nic, &frame, bench->now, &move), NIC_DONE);
        if (nic_counters(bench->nic)->values[flaws[i].counter] != before + 1) {
            fail_msg("%s", nic_counter_name(flaws[i].counter));
        }
    }
    assert_int_equal(nic_counters(bench->nic)->values[COUNTER_rcvd_pkts], 0);
    end(bench);
}

static void hand_in_at(struct bench *bench, const struct block_packet *packet,
                       const struct gid *from, const struct gid *to)
{
    uint8_t headers[NIC_HEADERS_BYTES_MAX];
    struct nic_move move;
    const struct nic_frame frame = {.headers = headers,
                                    .headers_bytes = (uint32_t)block_encode(packet, headers),
                                    .source = *from,
                                    .destination = *to};
    assert_int_equal(nic_on_packet(bench->nic, &frame, bench->now, &move), NIC_DONE);
}

/* The peer names another address. A challenge goes there once the peer knows the session; answers
 * to the peer go to its first address until the response comes. */
static void test_a_named_address_is_challenged(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct nic_routes *routes = nic_peer_routes(bench->nic, PEER);
    struct block_packet hello = hello_to(bench->qp), probe = packet_to(bench->qp, BLOCK_PROBE);
    hello.hello.gid_count = 1;
    memcpy(hello.hello.gids[0], other.bytes, sizeof(other.bytes));
    routes->random = 0x123456789abcdef0;
    hand_in(bench, &hello, &peer);
    assert_int_equal(pull(bench).opcode, BLOCK_WELCOME);
    struct nic_departure departure;
    assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    assert_int_equal(departure.headers[0], BLOCK_CHALLENGE);
    assert_int_equal(departure.route, 1);
    assert_int_equal(load_be32(departure.headers + ROCE_BTH_BYTES), 4711);
    assert_int_equal(load_be64(departure.headers + ROCE_BTH_BYTES + 4), 0x123456789abcdef0);
    assert_false(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    struct block_packet response = packet_to(bench->qp, BLOCK_RESPONSE);
    response.challenge = 0x123456789abcdef1;
    expect_dropped(bench, &response, &other, COUNTER_drop_stale_response);
    response.session++;
    response.challenge--;
    expect_dropped(bench, &response, &other, COUNTER_drop_wrong_session);
    response.session--;
    expect_dropped(bench, &response, &us, COUNTER_drop_wrong_peer);
    probe.path = 1;
    for (uint32_t proven = 0; proven < 2; proven++) {
        hand_in(bench, &probe, &peer);
        assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
        assert_int_equal(departure.headers[0], BLOCK_ANSWER);
        assert_int_equal(departure.route, proven);
        hand_in(bench, &response, &other);
    }
    assert_int_equal(counted(bench, COUNTER_challenges_sent), 1);
    assert_int_equal(counted(bench, COUNTER_challenges_proven), 1);
    end(bench);
}

/* A response leaves by the route that the challenge came, as often as it comes; without a session
 * there is none. */
static void test_a_challenge_is_responded_to(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct nic_routes *routes = nic_peer_routes(bench->nic, PEER);
    static const struct gid second = {{[10] = 0xff, 0xff, 10, 1, 0, 1}};
    struct block_packet hello = hello_to(bench->qp);
    struct block_packet challenge = packet_to(bench->qp, BLOCK_CHALLENGE);
    routes->own_count = 1;
    routes->own[0] = second;
    hello.hello.gid_count = 1;
    memcpy(hello.hello.gids[0], other.bytes, sizeof(other.bytes));
    expect_dropped(bench, &challenge, &peer, COUNTER_drop_wrong_session);
    expect_dropped(bench, &challenge, &other, COUNTER_drop_wrong_peer);
    hand_in(bench, &hello, &peer);
    assert_int_equal(pull(bench).opcode, BLOCK_WELCOME);
    for (uint64_t i = 0; i < 4; i++) {
        struct nic_departure departure;
        challenge.challenge = UINT64_MAX - i;
        hand_in_at(bench, &challenge, i % 2 ? &other : &peer, i % 2 ? &second : &us);
        assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
        assert_int_equal(departure.headers[0], BLOCK_RESPONSE);
        assert_int_equal(departure.headers_bytes, ROCE_BTH_BYTES + BLOCK_CXH_BYTES);
        assert_int_equal(load_be64(departure.headers + ROCE_BTH_BYTES + 4), UINT64_MAX - i);
        assert_int_equal(departure.route, i % 2);
        assert_false(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    }
    assert_int_equal(counted(bench, COUNTER_challenges_received), 4);
    end(bench);
}

/* Before the peer's address has answered a probe, a READ gets nothing; the world is told to ask. */
static void test_data_of_reads_is_withheld(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct nic_routes *routes = nic_peer_routes(bench->nic, PEER);
    static uint8_t bytes[1024];
    struct region region;
    const struct region_request all = {
        .address = (uintptr_t)bytes, .bytes = sizeof(bytes), .access = ACCESS_REMOTE_READ};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &all, &region), STATUS_OK);
    const struct block_packet hello = hello_to(bench->qp);
    struct block_packet read = packet_to(bench->qp, BLOCK_READ);
    read.message_bytes = sizeof(bytes);
    read.wanted = 1;
    read.key = region.key;
    bench->qp->attributes.access |= ACCESS_REMOTE_READ;
    bench->qp->attributes.max_reads_in = 2;
    hand_in(bench, &hello, &peer);
    assert_int_equal(pull(bench).opcode, BLOCK_WELCOME);
    struct nic_departure departure;
    for (uint32_t i = 0; i < 3; i++) {
        read.resent = i != 0;
        routes->doubts = false;
        hand_in_and_move(bench, &read);
        assert_true(routes->doubts);
        assert_false(nic_next_packet(bench->nic, bench->qp, bench->now, &departure) &&
                     departure.headers[0] == BLOCK_DATA);
    }
    assert_int_equal(counted(bench, COUNTER_block_reads_withheld), 3);
    nic_note_answers(bench->nic, PEER, true);
    hand_in_and_move(bench, &read);
    assert_int_equal(pull(bench).opcode, BLOCK_DATA);
    nic_note_answers(bench->nic, PEER, false); /* It was silent for long. */
    hand_in_and_move(bench, &read);
    assert_int_equal(counted(bench, COUNTER_block_reads_withheld), 4);
    assert_int_equal(region_remove(nic_regions(bench->nic), &region), STATUS_OK);
    end(bench);
}

static void to_init(struct bench *bench, struct qp *qp)
{
    modify(bench, qp, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
}

/* A queue pair over a link for blocks has memory from RTR on; the memory that it gives back serves
 * the next one. */
static void test_memory_comes_and_goes(void **state)
{
    (void)state;
    struct bench *bench = begin();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(bench->qp->engine, ENGINE_RC_OR_BLOCKS);
        assert_true(qp_places_early(bench->qp));
        modify(bench, bench->qp, QP_RESET, 0);
        assert_int_equal(bench->qp->engine, ENGINE_RC);
        assert_false(qp_places_early(bench->qp));
        to_init(bench, bench->qp);
        assert_int_equal(bench->qp->engine, ENGINE_RC);
        to_rtr(bench, bench->qp);
    }
    assert_int_equal(bench->plain->engine, ENGINE_RC);
    assert_int_equal(counted(bench, COUNTER_blocks_no_memory), 0);
    end(bench);
}

/* A queue pair that finds no memory goes on by RC, which is counted, and takes some once it can. */
static void test_want_of_memory(void **state)
{
    (void)state;
    struct bench *bench = begin();
    void *last, *taken = NULL;
    modify(bench, bench->qp, QP_RESET, 0);
    while ((last = pool_take(&bench->nic->streams, 0)) != NULL) {
        taken = last;
    }
    to_init(bench, bench->qp);
    to_rtr(bench, bench->qp);
    assert_int_equal(bench->qp->engine, ENGINE_RC);
    assert_int_equal(counted(bench, COUNTER_blocks_no_memory), 1);
    const struct block_packet hello = hello_to(bench->qp);
    hand_in(bench, &hello, &peer);
    assert_int_equal(counted(bench, COUNTER_blocks_no_memory), 2);
    assert_int_equal(counted(bench, COUNTER_drop_unwanted_block), 1);
    pool_give(&bench->nic->streams, 0, taken);
    hand_in(bench, &hello, &peer);
    assert_int_equal(bench->qp->engine, ENGINE_RC_OR_BLOCKS);
    assert_int_equal(pull(bench).opcode, BLOCK_WELCOME);
    end(bench);
}

/* EXA-104: contexts are held only for packets that came before their turn. */
static void test_contexts_of_many_that_are_idle(void **state)
{
    (void)state;
    enum {
        MANY = 1000
    };
    struct bench *bench = begin_with(1024, false);
    struct qp *qps[MANY];
    void *memory[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        bench->memory_count = 3; /* Behind the bench's own. */
        qps[i] = make_qp(bench);
        memory[i] = bench->memory[3];
        to_rtr(bench, qps[i]);
        const struct block_packet hello = hello_to(qps[i]);
        hand_in(bench, &hello, &peer);
        struct block_packet write = packet_to(qps[i], BLOCK_WRITE);
        hand_in_and_move(bench, &write);
        assert_int_equal(bench->nic->block_shared->contexts.used, 0);
        write.number = 2; /* 1 is missing. */
        hand_in_and_move(bench, &write);
        assert_int_equal(bench->nic->block_shared->contexts.used, 1);
        write.number = 1;
        hand_in_and_move(bench, &write);
        assert_int_equal(bench->nic->block_shared->contexts.used, 0);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        qp_destroy(qps[i]);
        free(memory[i]);
    }
    bench->memory_count = 3;
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_it_is),
        cmocka_unit_test(test_hellos_that_are_refused),
        cmocka_unit_test(test_terms_are_what_both_have),
        cmocka_unit_test(test_answers_of_a_session_that_comes_back),
        cmocka_unit_test(test_sessions_end_with_their_queue_pair),
        cmocka_unit_test(test_hello_goes_on_until_a_block_is_executed),
        cmocka_unit_test(test_a_payload_beyond_the_mtu_is_agreed_on),
        cmocka_unit_test(test_a_payload_beyond_the_mtu_is_asked_for),
        cmocka_unit_test(test_a_smaller_router_is_noticed),
        cmocka_unit_test(test_bytes_that_are_no_packet),
        cmocka_unit_test(test_a_named_address_is_challenged),
        cmocka_unit_test(test_a_challenge_is_responded_to),
        cmocka_unit_test(test_data_of_reads_is_withheld),
        cmocka_unit_test(test_memory_comes_and_goes),
        cmocka_unit_test(test_want_of_memory),
        cmocka_unit_test(test_contexts_of_many_that_are_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
