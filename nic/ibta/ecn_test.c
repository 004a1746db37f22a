/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet of the peer's with a congestion mark is answered with a CNP, once in 50 us and
 *         for nobody else; a CNP slows down the queue pair that it names, if it comes from its
 *         peer, and each one that does not is counted by its flaw; a queue pair that is slowed down
 *         goes on in time.
 * Method  One queue pair, packets by hand (test_bench.h).
 */
#include "nic/ibta/test_bench.h"

#include "nic/engine.h"
#include "nic/ibta/ecn.h"

#define US 1000u
#define MS 1000000u

enum {
    NOT_ECT = 0,
    ECT_1 = 1,
    ECT_0 = 2,
    CE = 3,
    CNP_BYTES = 28,
};

/* The peer's QPN is 0: the bench says none. */
static const uint8_t cnp_bytes[CNP_BYTES] = {0x81, 0x00, 0xff, 0xff, 0x40};

static void hand_in(struct bench *bench, const uint8_t *headers, uint32_t headers_bytes,
                    uint32_t payload_bytes, uint8_t traffic_class, uint8_t from)
{
    const struct nic_frame frame = {
        .headers = headers,
        .payload = payload,
        .headers_bytes = headers_bytes,
        .payload_bytes = payload_bytes,
        .traffic_class = traffic_class,
        .source = {{[15] = from}},
    };
    struct nic_move move;
    if (nic_on_packet(bench->nic, &frame, bench->now, &move) == NIC_MOVES) {
        nic_on_moved(bench->nic, &move, NIC_MOVED, bench->now);
    }
}

/* A WRITE of no bytes: it needs no receive. `number` counts from PEER_PSN. */
static void write_arrives(struct bench *bench, uint32_t number, uint8_t traffic_class, uint8_t from)
{
    const uint8_t service = bench->qp->type == QP_UC ? ROCE_SERVICE_UC : ROCE_SERVICE_RC;
    const struct roce_packet packet = {.opcode = ROCE_OPCODE(service, ROCE_WRITE_ONLY),
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = qp_number(bench->qp),
                                       .psn = PEER_PSN + number,
                                       .reth.key = bench->region.key};
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    hand_in(bench, headers, (uint32_t)roce_encode_headers(&packet, headers), 0, traffic_class,
            from);
}

static void cnp_arrives(struct bench *bench)
{
    const struct roce_packet packet = {.opcode = ROCE_OPCODE_CNP,
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = qp_number(bench->qp)};
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    hand_in(bench, headers, (uint32_t)roce_encode_headers(&packet, headers), 0, NOT_ECT, 1);
}

/* Takes all packets out; returns how many are CNPs. */
static uint32_t pull_cnps(struct bench *bench)
{
    struct nic_departure departure;
    uint32_t count = 0;
    while (nic_next_qp(bench->nic) != NULL) {
        if (nic_next_packet(bench->nic, bench->qp, bench->now, &departure) &&
            departure.headers[0] == ROCE_OPCODE_CNP) {
            assert_int_equal(departure.headers_bytes, CNP_BYTES);
            assert_memory_equal(departure.headers, cnp_bytes, CNP_BYTES);
            assert_int_equal(departure.payload_bytes + departure.pad_bytes, 0);
            assert_int_equal(departure.ecn, NIC_ECN_NOT);
            assert_ptr_equal(departure.av, &bench->qp->attributes.av);
            count++;
        }
    }
    return count;
}

/* -- Notification point -------------------------------------------------------------------------*/

static void marks_are_answered(enum qp_type type, enum qp_state state)
{
    struct bench *bench = begin(type, state);
    uint32_t number = 0;
    for (uint8_t bits = NOT_ECT; bits < CE; bits++) {
        write_arrives(bench, number++, (uint8_t)(0xb8 | bits), 1);
        assert_int_equal(pull_cnps(bench), 0);
    }
    assert_int_equal(counted(bench, COUNTER_np_ecn_marked_roce_packets), 0);
    /* A mark each 5 us, for 2 ms. */
    uint32_t cnps = 0;
    for (uint32_t i = 0; i < 400; i++, bench->now.ns += 5 * US) {
        write_arrives(bench, number++, 0xb8 | CE, 1);
        cnps += pull_cnps(bench);
        assert_int_equal(cnps, i / 10 + 1);
    }
    assert_int_equal(counted(bench, COUNTER_np_ecn_marked_roce_packets), 400);
    assert_int_equal(counted(bench, COUNTER_np_cnp_sent), 40);
    /* One that came before is marked as well. */
    bench->now.ns += MS;
    write_arrives(bench, 0, CE, 1);
    assert_int_equal(pull_cnps(bench), 1);
    end(bench);
}

static void test_marks_are_answered(void **state)
{
    (void)state;
    marks_are_answered(QP_RC, QP_RTS);
    marks_are_answered(QP_RC, QP_RTR);
    marks_are_answered(QP_UC, QP_RTS);
    marks_are_answered(QP_UC, QP_RTR);
}

/* Marks from strangers get no CNP, or anybody could slow the peer down. */
static void test_marks_of_strangers(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    write_arrives(bench, 0, CE, 2);
    assert_int_equal(counted(bench, COUNTER_drop_wrong_peer), 1);
    assert_int_equal(counted(bench, COUNTER_np_ecn_marked_roce_packets), 0);
    assert_int_equal(pull_cnps(bench), 0);
    modify(bench, QP_ERR, 0);
    write_arrives(bench, 0, CE, 1);
    assert_int_equal(counted(bench, COUNTER_drop_wrong_state), 1);
    assert_int_equal(pull_cnps(bench), 0);
    end(bench);
}

/* Nobody may make us send more bytes than came in. The packets are of UC, which drops those that it
 * has no receive for. */
static void test_small_packets_are_not_answered(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UC, QP_RTS);
    for (uint32_t bytes = 0; bytes <= 32; bytes += 4) {
        bench->now.ns += MS;
        const struct roce_packet packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UC, ROCE_SEND_ONLY),
                                           .pkey = ROCE_DEFAULT_PKEY,
                                           .destination_qpn = qp_number(bench->qp),
                                           .pad_bytes = bytes == 0 ? 0 : 3, /* They came, too. */
                                           .psn = PEER_PSN};
        uint8_t headers[ROCE_HEADERS_BYTES_MAX];
        const uint32_t count = (uint32_t)roce_encode_headers(&packet, headers);
        hand_in(bench, headers, count, bytes, CE, 1);
        assert_int_equal(counted(bench, COUNTER_np_ecn_marked_roce_packets), bytes / 4 + 1);
        assert_int_equal(pull_cnps(bench), count + bytes >= CNP_BYTES);
    }
    end(bench);
}

static void test_errors_take_it_back(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    write_arrives(bench, 0, CE, 1);
    cnp_arrives(bench);
    assert_true(ecn_rate(bench->qp) != 0);
    modify(bench, QP_ERR, 0);
    assert_int_equal(pull_cnps(bench), 0);
    assert_int_equal(ecn_rate(bench->qp), 0);
    modify(bench, QP_RESET, 0);
    receive_ready(bench);
    nic_check(bench->nic);
    assert_int_equal(counted(bench, COUNTER_np_cnp_sent), 0);
    end(bench);
}

/* -- Reaction point -----------------------------------------------------------------------------*/

struct flaw {
    const char *name;
    uint32_t qpn_xor;
    uint16_t pkey;
    uint8_t from, version;
    uint32_t shorter, longer;
    enum nic_counter counter;
};

static void test_flaws(void **state)
{
    (void)state;
    static const struct flaw flaws[] = {
        {"another P_Key", 0, 0x7ffe, 1, 0, 0, 0, COUNTER_drop_wrong_pkey},
        {"another queue pair", 1, 0xffff, 1, 0, 0, 0, COUNTER_drop_unknown_qp},
        {"somebody else's", 0, 0xffff, 2, 0, 0, 0, COUNTER_drop_wrong_peer},
        {"another version", 0, 0xffff, 1, 1, 0, 0, COUNTER_drop_wrong_version},
        {"a byte too short", 0, 0xffff, 1, 0, 1, 0, COUNTER_drop_short},
        {"the BTH alone", 0, 0xffff, 1, 0, 16, 0, COUNTER_drop_short},
        {"with a payload", 0, 0xffff, 1, 0, 0, 4, COUNTER_drop_too_long},
    };
    struct bench *bench = begin(QP_RC, QP_RTS);
    for (size_t i = 0; i < COUNT_OF(flaws); i++) {
        const struct flaw *flaw = &flaws[i];
        const struct roce_packet packet = {.opcode = ROCE_OPCODE_CNP,
                                           .version = flaw->version,
                                           .pkey = flaw->pkey,
                                           .destination_qpn = qp_number(bench->qp) ^ flaw->qpn_xor};
        uint8_t headers[ROCE_HEADERS_BYTES_MAX];
        const uint32_t bytes = (uint32_t)roce_encode_headers(&packet, headers);
        const uint64_t before = counted(bench, flaw->counter);
        hand_in(bench, headers, bytes - flaw->shorter, flaw->longer, NOT_ECT, flaw->from);
        if (counted(bench, flaw->counter) != before + 1 || ecn_rate(bench->qp) != 0) {
            fail_msg("%s: %s is not counted, or heeded", flaw->name,
                     nic_counter_name(flaw->counter));
        }
    }
    assert_int_equal(counted(bench, COUNTER_rp_cnp_handled), 0);
    cnp_arrives(bench);
    assert_int_equal(counted(bench, COUNTER_rp_cnp_handled), 1);
    assert_int_equal(ecn_rate(bench->qp), dcqcn_policy_default().line_rate / 2);
    cnp_arrives(bench); /* At once. */
    assert_int_equal(counted(bench, COUNTER_rp_cnp_ignored), 1);
    assert_int_equal(counted(bench, COUNTER_rp_cnp_handled), 1);
    end(bench);
}

/* A datagram's sender has no peer, so nobody may tell it anything. */
static void test_services_and_states(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UC, QP_RTS);
    cnp_arrives(bench);
    assert_int_equal(counted(bench, COUNTER_rp_cnp_handled), 1);
    modify(bench, QP_ERR, 0);
    bench->now.ns += MS;
    cnp_arrives(bench);
    assert_int_equal(counted(bench, COUNTER_drop_wrong_state), 1);
    bench->qp->engine = (uint8_t)engine_of_type(QP_UD);
    cnp_arrives(bench);
    assert_int_equal(counted(bench, COUNTER_drop_wrong_service), 1);
    bench->qp->engine = (uint8_t)engine_of_type(QP_UC);
    end(bench);
}

/* `times` notifications, as fast as they are obeyed. */
static void slow_down(struct bench *bench, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++, bench->now.ns += 50 * US) {
        cnp_arrives(bench);
    }
    assert_int_equal(counted(bench, COUNTER_rp_cnp_handled), times);
    assert_true(ecn_rate(bench->qp) != 0);
}

/* Lets time pass until the NIC wants to be told of it, and tells it. Returns how long it was. */
static uint64_t wait(struct bench *bench)
{
    const struct instant deadline = nic_deadline(bench->nic);
    assert_true(deadline.ns != UINT64_MAX);
    const uint64_t before = bench->now.ns;
    bench->now.ns = deadline.ns > before ? deadline.ns : before + 1;
    nic_on_time(bench->nic, bench->now);
    nic_check(bench->nic);
    return bench->now.ns - before;
}

/* All that is posted leaves, and no faster than the rate allows. */
static void requests_are_paced(enum qp_type type)
{
    struct bench *bench = begin(type, QP_RTS);
    slow_down(bench, 200);
    const uint64_t rate = ecn_rate(bench->qp), begun = bench->now.ns;
    assert_int_equal(rate, dcqcn_policy_default().least_rate);
    const uint32_t messages = 12;
    for (uint32_t i = 0; i < messages; i++) {
        post(bench, i, WORK_SEND, MTU);
    }
    uint32_t sent = 0;
    struct roce_packet packet;
    while (sent < messages) {
        const uint32_t now = pull(bench, &packet);
        assert_in_range(now, 0, 1 + (sent == 0)); /* It was idle at first. */
        if (now > 0 && type == QP_RC) {
            /* No pause follows the very first one; the next pauses are long. */
            assert_true(packet.ack_request || sent == 0 || sent > 3);
            answer(bench, ROCE_ACKNOWLEDGE, sent + now - 1, FINE, 0);
        }
        sent += now;
        if (sent < messages) {
            (void)wait(bench);
        }
    }
    /* Time raises the rate again, but not to twice as much. */
    const uint64_t least_ns = (messages - 2) * (uint64_t)(MTU + 82) * 1000000000 / rate;
    assert_in_range(bench->now.ns - begun, least_ns / 8, least_ns + MS);
    assert_int_equal(counted(bench, COUNTER_timeouts), 0);
    assert_int_equal(counted(bench, COUNTER_retransmitted_pkts), 0);
    end(bench);
}

static void test_requests_are_paced(void **state)
{
    (void)state;
    requests_are_paced(QP_RC);
    requests_are_paced(QP_UC);
}

/* A queue pair that pauses still acknowledges. */
static void test_acknowledgements_do_not_wait(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    slow_down(bench, 200);
    for (uint32_t i = 0; i < 4; i++) {
        post(bench, i, WORK_SEND, MTU);
    }
    (void)pull(bench, NULL);
    assert_true(bench->qp->paused);
    struct roce_packet packet;
    deliver(bench, (struct roce_packet){.opcode = ROCE_WRITE_ONLY,
                                        .psn = PEER_PSN,
                                        .reth.key = bench->region.key,
                                        .ack_request = true});
    assert_int_equal(pull(bench, &packet), 1);
    assert_int_equal(packet.opcode, ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE));
    assert_true(bench->qp->paused);
    end(bench);
}

/* A peer without a receive asks for a wait that is shorter than the pause: nothing leaves before
 * the pause is over. */
static void test_a_pause_outlasts_a_wait(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    slow_down(bench, 200);
    for (uint32_t i = 0; i < 4; i++) {
        post(bench, i, WORK_SEND, MTU);
    }
    (void)pull(bench, NULL);
    assert_true(bench->qp->paused);
    answer(bench, ROCE_ACKNOWLEDGE, 0, ROCE_AETH_RNR_NAK | 1, 0); /* 10 us. */
    bench->now.ns += 20 * US;
    nic_on_time(bench->nic, bench->now);
    assert_int_equal(pull(bench, NULL), 0);
    assert_in_range(nic_deadline(bench->nic).ns, ecn_deadline(bench->qp).ns, UINT64_MAX - 1);
    (void)wait(bench);
    assert_int_equal(pull(bench, NULL), 1);
    end(bench);
}

/* The data of a READ leaves at the responder's rate. */
static void test_responses_are_paced(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ACCESS_REMOTE_READ);
    slow_down(bench, 200);
    const uint32_t packets = 6;
    deliver(bench,
            (struct roce_packet){.opcode = ROCE_READ_REQUEST,
                                 .psn = PEER_PSN,
                                 .reth = {.key = bench->region.key, .bytes = packets * MTU}});
    uint32_t sent = 0, waits = 0;
    const uint64_t begun = bench->now.ns;
    for (; sent < packets; waits++) {
        sent += pull(bench, NULL);
        if (sent < packets) {
            assert_true(bench->qp->paused);
            (void)wait(bench);
        }
    }
    assert_true(waits >= 3);
    assert_true(bench->now.ns - begun > 100 * US);
    end(bench);
}

/* After a while without notifications, there is no limit any more. */
static void test_recovery(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    slow_down(bench, 200);
    bench->now.ns += 100 * MS;
    for (uint32_t i = 0; i < 12; i++) {
        post(bench, i, WORK_SEND, MTU);
    }
    assert_int_equal(pull(bench, NULL), 12);
    assert_int_equal(ecn_rate(bench->qp), 0);
    assert_false(bench->qp->limited || bench->qp->paused);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_are_answered),
        cmocka_unit_test(test_marks_of_strangers),
        cmocka_unit_test(test_small_packets_are_not_answered),
        cmocka_unit_test(test_errors_take_it_back),
        cmocka_unit_test(test_flaws),
        cmocka_unit_test(test_services_and_states),
        cmocka_unit_test(test_requests_are_paced),
        cmocka_unit_test(test_acknowledgements_do_not_wait),
        cmocka_unit_test(test_a_pause_outlasts_a_wait),
        cmocka_unit_test(test_responses_are_paced),
        cmocka_unit_test(test_recovery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
