/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A responder refuses as IBTA has it: with the right NAK and the right timer, or without an
 *         answer; and a refused request has changed nothing (docs/ibta.md names each rule).
 * Method  Requests of the peer are made by hand, one rule broken in each. The same request without
 *         the flaw is executed, so that nothing is refused for another reason.
 */
#include "nic/ibta/test_bench.h"

#include "transport/common/timing.h"

#define ALL_RIGHTS (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

/* The AETH of the one packet that answers. */
static uint8_t answered(struct bench *bench)
{
    struct roce_packet reply = {0};
    assert_int_equal(pull(bench, &reply), 1);
    assert_int_equal(reply.opcode, ROCE_ACKNOWLEDGE);
    return reply.aeth.syndrome;
}

static struct roce_packet write_of(const struct bench *bench, enum roce_operation operation,
                                   uint32_t psn, uint32_t whole, uint32_t bytes)
{
    return (struct roce_packet){.opcode = (uint8_t)operation,
                                .ack_request = true,
                                .psn = PEER_PSN + psn,
                                .reth = {.key = bench->region.key, .bytes = whole},
                                .payload_bytes = bytes};
}

static void send(struct bench *bench, enum roce_operation operation, uint32_t psn, uint32_t bytes)
{
    deliver(bench, (struct roce_packet){.opcode = (uint8_t)operation,
                                        .ack_request = true,
                                        .psn = PEER_PSN + psn,
                                        .payload_bytes = bytes});
}

static void receive(struct bench *bench, uint64_t wr_id, uint32_t bytes)
{
    const struct sge sge = {0, bytes, bench->region.key};
    assert_int_equal(qp_post_receive(bench->qp, wr_id, &sge, 1), STATUS_OK);
}

static void expect_refused(struct bench *bench, uint8_t syndrome)
{
    assert_int_equal(answered(bench), syndrome);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    end(bench);
}

/* -- Lengths ------------------------------------------------------------------------------------*/

/* C9-92: a LAST has a byte at least. */
static void test_last_without_bytes(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    deliver(bench, write_of(bench, ROCE_WRITE_FIRST, 0, MTU, MTU));
    expect_refused(bench, ROCE_NAK_INVALID_REQUEST); /* FIRST was all there is. */

    bench = begin(QP_RC, QP_RTS);
    receive(bench, 1, 4 * MTU);
    send(bench, ROCE_SEND_FIRST, 0, MTU);
    send(bench, ROCE_SEND_LAST, 1, 0);
    assert_int_equal(counted(bench, COUNTER_nak_invalid_length), 1);
    struct roce_packet reply;
    assert_true(pull(bench, &reply) >= 1);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    expect(bench, 1, COMPLETION_FLUSHED);
    end(bench);
}

/* The packets of a WRITE carry as much as its RETH says, no more and no less. */
static void test_write_of_another_length(void **state)
{
    (void)state;
    for (int32_t off = -4; off <= 4; off += 4) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        deliver(bench, write_of(bench, ROCE_WRITE_ONLY, 0, 64, (uint32_t)(64 + off)));
        if (off == 0) {
            assert_int_equal(answered(bench) & ROCE_AETH_KIND_MASK, ROCE_AETH_ACK);
            end(bench);
        } else {
            expect_refused(bench, ROCE_NAK_INVALID_REQUEST);
        }
    }
}

/* C9-94: a READ asks for 2^31 bytes at most; more is an invalid request, whatever its key. */
static void test_read_of_too_much(void **state)
{
    (void)state;
    static const struct {
        uint32_t bytes;
        uint8_t syndrome;
    } cases[] = {
        {0x80000000, ROCE_NAK_REMOTE_ACCESS}, /* The region is smaller. */
        {0x80000001, ROCE_NAK_INVALID_REQUEST},
        {UINT32_MAX, ROCE_NAK_INVALID_REQUEST},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench *bench = begin_with(QP_RC, QP_RTS, ALL_RIGHTS);
        deliver(bench, write_of(bench, ROCE_READ_REQUEST, 0, cases[i].bytes, 0));
        expect_refused(bench, cases[i].syndrome);
    }
}

/* -- Atomics ------------------------------------------------------------------------------------*/

/* Eight has to divide the address that the peer names, and the address in memory. */
static void test_misaligned_atomic(void **state)
{
    (void)state;
    for (uint32_t start = 0; start <= 4; start += 4) {
        for (uint32_t address = 4; address <= 12; address++) {
            struct bench *bench = begin_with(QP_RC, QP_RTS, ALL_RIGHTS);
            struct region region;
            const struct region_request request = {.address = (uintptr_t)bench->memory,
                                                   .start = start,
                                                   .bytes = MTU,
                                                   .access = ACCESS_LOCAL_WRITE | ALL_RIGHTS};
            assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &request, &region),
                             STATUS_OK);
            deliver(bench,
                    (struct roce_packet){
                        .opcode = ROCE_FETCH_ADD,
                        .psn = PEER_PSN,
                        .atomic = {.address = address, .key = region.key, .swap_or_add = 1}});
            if (start == 0 && address == 8) {
                struct roce_packet reply;
                assert_int_equal(pull(bench, &reply), 1);
                assert_int_equal(reply.opcode, ROCE_ATOMIC_ACKNOWLEDGE);
                end(bench);
            } else {
                assert_int_equal(counted(bench, COUNTER_nak_misaligned_atomic), 1);
                expect_refused(bench, ROCE_NAK_INVALID_REQUEST);
            }
        }
    }
}

/* oA19-28: eight bytes at an address that eight divides. */
static void test_wrong_atomic_write(void **state)
{
    (void)state;
    static const struct {
        uint32_t address, whole, bytes;
        bool right;
    } cases[] = {
        {8, 8, 8, true}, {8, 8, 4, false}, {8, 16, 8, false}, {8, 16, 16, false}, {4, 8, 8, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench *bench = begin_with(QP_RC, QP_RTS, ALL_RIGHTS);
        struct roce_packet packet =
            write_of(bench, ROCE_ATOMIC_WRITE, 0, cases[i].whole, cases[i].bytes);
        packet.reth.address = cases[i].address;
        deliver(bench, packet);
        if (cases[i].right) {
            struct roce_packet reply;
            assert_int_equal(pull(bench, &reply), 1);
            assert_int_equal(reply.opcode, ROCE_READ_RESPONSE_ONLY);
            end(bench);
        } else {
            expect_refused(bench, ROCE_NAK_INVALID_REQUEST);
        }
    }
}

/* -- Receives -----------------------------------------------------------------------------------*/

/* Without a receive a SEND is asked to come again, after the time that the program has set. */
static void test_timer_of_not_ready(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    send(bench, ROCE_SEND_ONLY, 0, 8);
    assert_int_equal(answered(bench), ROCE_AETH_RNR_NAK | RNR_CODE);
    assert_int_equal(qp_state_of(bench->qp), QP_RTS);
    receive(bench, 1, 8);
    send(bench, ROCE_SEND_ONLY, 0, 8);
    assert_int_equal(answered(bench) & ROCE_AETH_KIND_MASK, ROCE_AETH_ACK);
    expect(bench, 1, COMPLETION_SUCCESS);
    end(bench);
}

/* A SEND may invalidate a window of this queue pair, and nothing else. */
static void test_invalidates_something_else(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    receive(bench, 1, 8);
    deliver(bench, (struct roce_packet){.opcode = ROCE_SEND_ONLY_INVALIDATE,
                                        .psn = PEER_PSN,
                                        .invalidate_key = bench->region.key,
                                        .payload_bytes = 8});
    assert_int_equal(counted(bench, COUNTER_nak_invalidate), 1);
    expect(bench, 1, COMPLETION_FLUSHED);
    expect_refused(bench, ROCE_NAK_REMOTE_ACCESS);
}

/* 9.7.7.2: an acknowledgement says how many receives there are. */
static void test_credits_told(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    for (uint32_t receives = 0; receives <= 4; receives++) {
        deliver(bench, write_of(bench, ROCE_WRITE_ONLY, receives, 8, 8));
        assert_int_equal(answered(bench), ROCE_AETH_ACK | credits_encode(receives));
        if (receives < 4) {
            receive(bench, receives, 8);
        }
    }
    end(bench);
}

/* 9.7.7.2: receives that many queue pairs share are promised to none of them. */
static void test_shared_receives_promise_nothing(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct srq srq;
    void *receives = zeroed(receive_queue_bytes(4, 1));
    srq_init(&srq, &bench->pd, 4, 1, receives);
    struct qp_request request = {.type = QP_RC,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .srq = &srq,
                                 .capacity = {.sends = 1}};
    struct qp *first = bench->qp;
    void *memory = zeroed(qp_bytes(QP_RC, &request.capacity, true));
    assert_int_equal(qp_create(bench->nic, &request, memory, &bench->qp), STATUS_OK);
    receive_ready(bench);
    for (uint32_t posted = 0; posted <= 4; posted++) {
        deliver(bench, write_of(bench, ROCE_WRITE_ONLY, posted, 8, 8));
        assert_int_equal(answered(bench), ROCE_AETH_ACK | ROCE_AETH_CREDITS_UNLIMITED);
        const struct sge sge = {0, 8, bench->region.key};
        assert_int_equal(receive_queue_post(&srq.queue, posted, &sge, 1),
                         posted < 4 ? STATUS_OK : STATUS_FULL);
    }
    qp_destroy(bench->qp);
    bench->qp = first;
    free(memory);
    free(receives);
    end(bench);
}

/* The responses of a READ leave one by one: memory that the program takes back meanwhile is not
 * read. */
static void test_memory_taken_back_behind_a_read(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ALL_RIGHTS);
    struct nic_departure departure;
    struct roce_packet packet;
    deliver(bench, write_of(bench, ROCE_READ_REQUEST, 0, 3 * MTU, 0));
    assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    assert_int_equal(roce_decode_split(departure.headers, departure.headers_bytes, payload,
                                       departure.payload_bytes, &packet),
                     ROCE_GOOD);
    assert_int_equal(packet.opcode, ROCE_READ_RESPONSE_FIRST);
    assert_int_equal(region_remove(nic_regions(bench->nic), &bench->region), STATUS_OK);
    assert_int_equal(pull(bench, &packet), 1);
    assert_int_equal(packet.opcode, ROCE_ACKNOWLEDGE);
    assert_int_equal(packet.psn, PEER_PSN + 1);
    assert_int_equal(packet.aeth.syndrome, ROCE_NAK_REMOTE_ACCESS);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    end(bench);
}

/* -- UD -----------------------------------------------------------------------------------------*/

/* 10.2.5: bit 31 of a request's Q_Key asks for the queue pair's own. */
static void test_own_qkey(void **state)
{
    (void)state;
    static const struct {
        uint32_t asked, sent;
    } cases[] = {{0x89abcdef, QKEY}, {0x80000000, QKEY}, {0x09abcdef, 0x09abcdef}, {0, 0}};
    struct bench *bench = begin(QP_UD, QP_RTS);
    const struct nic_av av = {.destination = {{[15] = 1}}};
    const struct sge sge = {0, 8, bench->region.key};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct send_request request = {.kind = WORK_SEND,
                                             .sges = &sge,
                                             .sge_count = 1,
                                             .av = &av,
                                             .destination_qpn = 7,
                                             .destination_qkey = cases[i].asked};
        struct roce_packet packet;
        assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
        assert_int_equal(pull(bench, &packet), 1);
        assert_int_equal(packet.deth.qkey, cases[i].sent);
    }
    end(bench);
}

/* A QPN has 24 bits: hardware takes no more of what a program says, and a world finds the peer's
 * process by the upper 8 of them. */
static void test_ud_qpn(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UD, QP_RTS);
    const struct nic_av av = {.destination = {{[15] = 1}}};
    const struct sge sge = {0, 8, bench->region.key};
    const struct send_request request = {
        .kind = WORK_SEND, .sges = &sge, .sge_count = 1, .av = &av, .destination_qpn = 0xab123456};
    struct nic_departure departure;
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
    assert_int_equal(nic_qp_destination(bench->qp), 0x123456);
    assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    assert_int_equal(departure.destination_qpn, 0x123456);
    end(bench);
}

static void datagram(struct bench *bench, uint32_t bytes)
{
    deliver(bench, (struct roce_packet){.opcode = ROCE_SEND_ONLY,
                                        .deth = {.qkey = QKEY, .source_qpn = 9},
                                        .payload_bytes = bytes});
}

/* 9.8: a datagram that its receive has no room for is dropped, and the receive serves the next. */
static void test_ud_drops_what_is_too_long(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UD, QP_RTS);
    receive(bench, 1, NIC_GRH_BYTES + 8);
    receive(bench, 2, NIC_GRH_BYTES + 8);
    datagram(bench, 12);
    expect_nothing(bench);
    assert_int_equal(counted(bench, COUNTER_drop_wrong_length), 1);
    for (uint64_t wr_id = 1; wr_id <= 2; wr_id++) {
        datagram(bench, 8);
        expect(bench, wr_id, COMPLETION_SUCCESS);
    }
    assert_int_equal(pull(bench, NULL), 0);
    end(bench);
}

/* -- UC and UD: the receive's own memory --------------------------------------------------------*/

/* 9.9.3, class A: a receive whose key does not allow it completes so, and the queue pair ends. */
static void test_receive_that_is_not_allowed(void **state)
{
    (void)state;
    static const enum qp_type types[] = {QP_UC, QP_UD};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct bench *bench = begin(types[i], QP_RTS);
        const struct sge wrong = {0, 64, bench->region.key + 1};
        assert_int_equal(qp_post_receive(bench->qp, 1, &wrong, 1), STATUS_OK);
        receive(bench, 2, 64);
        if (types[i] == QP_UC) {
            send(bench, ROCE_SEND_ONLY, 0, 8);
        } else {
            datagram(bench, 8);
        }
        expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
        expect(bench, 2, COMPLETION_FLUSHED);
        expect_nothing(bench);
        assert_int_equal(counted(bench, COUNTER_drop_wrong_key), 1);
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        end(bench);
    }
}

/* The memory of a SEND is not there: neither is its receive lost, nor does it say that all is well
 * because the packets behind came into memory. */
static void test_receive_that_is_not_there(void **state)
{
    (void)state;
    static const struct {
        enum qp_type type;
        enum roce_operation operation;
        uint32_t bytes;
    } cases[] = {{QP_RC, ROCE_SEND_ONLY, 8},
                 {QP_RC, ROCE_SEND_FIRST, MTU},
                 {QP_UC, ROCE_SEND_ONLY, 8},
                 {QP_UC, ROCE_SEND_FIRST, MTU}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench *bench = begin(cases[i].type, QP_RTS);
        receive(bench, 1, 2 * MTU);
        receive(bench, 2, 2 * MTU);
        bench->slow = true;
        send(bench, cases[i].operation, 0, cases[i].bytes);
        finish_first(bench, NIC_MOVE_FAULTED);
        expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
        expect(bench, 2, COMPLETION_FLUSHED);
        expect_nothing(bench);
        if (cases[i].type == QP_RC) {
            assert_int_equal(answered(bench), ROCE_NAK_REMOTE_OPERATIONAL);
        }
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        end(bench);
    }
}

/* In worlds that move late, the rest of such a message may be in memory when that is found. */
static void test_receive_that_is_there_in_part(void **state)
{
    (void)state;
    static const enum qp_type types[] = {QP_RC, QP_UC};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct bench *bench = begin(types[i], QP_RTS);
        receive(bench, 1, 2 * MTU);
        receive(bench, 2, 2 * MTU);
        bench->slow = true;
        send(bench, ROCE_SEND_FIRST, 0, MTU);
        send(bench, ROCE_SEND_LAST, 1, 8);
        finish_first(bench, NIC_MOVE_FAULTED);
        finish_first(bench, NIC_MOVED);
        expect(bench, 2, COMPLETION_FLUSHED);
        expect(bench, 1, COMPLETION_FLUSHED);
        end(bench);
    }
}

/* A WRITE takes a receive for its immediate data, and that is not to blame. */
static void test_written_memory_that_is_not_there(void **state)
{
    (void)state;
    static const enum qp_type types[] = {QP_RC, QP_UC};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct bench *bench = begin(types[i], QP_RTS);
        receive(bench, 1, 0);
        bench->slow = true;
        deliver(bench, write_of(bench, ROCE_WRITE_ONLY_IMMEDIATE, 0, 8, 8));
        finish_first(bench, NIC_MOVE_FAULTED);
        expect(bench, 1, COMPLETION_FLUSHED);
        expect_nothing(bench);
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        end(bench);
    }
    /* Nor is one to blame that waits for the rest of a message that was lost. */
    struct bench *bench = begin(QP_UC, QP_RTS);
    receive(bench, 1, 2 * MTU);
    send(bench, ROCE_SEND_FIRST, 0, MTU);
    bench->slow = true;
    deliver(bench, write_of(bench, ROCE_WRITE_ONLY, 2, 8, 8));
    finish_first(bench, NIC_MOVE_FAULTED);
    expect(bench, 1, COMPLETION_FLUSHED);
    expect_nothing(bench);
    end(bench);
}

/* -- UC: no NAKs --------------------------------------------------------------------------------*/

/* 9.8.2: a message whose middle is lost is dropped, and its receive serves the next one. */
static void test_uc_uses_a_receive_again(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UC, QP_RTS);
    receive(bench, 1, 4 * MTU);
    send(bench, ROCE_SEND_FIRST, 0, MTU);
    send(bench, ROCE_SEND_LAST, 2, 8); /* 1 is missing. */
    expect_nothing(bench);
    send(bench, ROCE_SEND_ONLY, 3, 8);
    expect(bench, 1, COMPLETION_SUCCESS);
    assert_int_equal(pull(bench, NULL), 0);
    end(bench);
}

static void test_uc_drops_what_is_too_long(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UC, QP_RTS);
    receive(bench, 1, 8);
    send(bench, ROCE_SEND_ONLY, 0, 12);
    expect_nothing(bench);
    assert_int_equal(counted(bench, COUNTER_drop_wrong_length), 1);
    send(bench, ROCE_SEND_ONLY, 1, 8);
    expect(bench, 1, COMPLETION_SUCCESS);
    assert_int_equal(qp_state_of(bench->qp), QP_RTS);
    end(bench);
}

/* Neither a wrong key nor a queue pair without the right answers, or moves anything. */
static void test_uc_drops_what_is_not_allowed(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct bench *bench =
            begin_with(QP_UC, QP_RTS, i == 1 ? ACCESS_REMOTE_READ : ACCESS_REMOTE_WRITE);
        struct roce_packet packet = write_of(bench, ROCE_WRITE_ONLY, 0, 8, 8);
        packet.reth.key += i == 0;
        bench->slow = true;
        deliver(bench, packet);
        assert_int_equal(bench->move_count, i == 2);
        assert_int_equal(counted(bench, COUNTER_drop_wrong_key), i != 2);
        finish_moves(bench);
        assert_int_equal(pull(bench, NULL), 0);
        assert_int_equal(qp_state_of(bench->qp), QP_RTS);
        end(bench);
    }
}

/* -- Events -------------------------------------------------------------------------------------*/

/* 11.6.3: an event for an access that is not allowed, and another for a request that cannot be. */
static void test_events_of_refusals(void **state)
{
    (void)state;
    static const enum nic_event_kind kinds[] = {NIC_EVENT_QP_ACCESS_ERROR,
                                                NIC_EVENT_QP_REQUEST_ERROR};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        struct roce_packet packet = write_of(bench, ROCE_WRITE_ONLY, 0, 8, i == 0 ? 8 : 4);
        packet.reth.key += i == 0;
        deliver(bench, packet);
        uint32_t told = 0, others = 0;
        struct nic_event event;
        while (nic_next_event(bench->nic, &event)) {
            told += event.kind == kinds[i];
            others += event.kind == kinds[1 - i];
        }
        assert_int_equal(told, 1);
        assert_int_equal(others, 0);
        end(bench);
    }
}

/* -- The requester ------------------------------------------------------------------------------*/

/* Only the last packet of a message that takes a receive has the solicited bit, if the program
 * asked for it. */
static void test_solicited_by_the_last_packet(void **state)
{
    (void)state;
    static const enum work_kind kinds[] = {WORK_SEND, WORK_WRITE, WORK_WRITE_IMMEDIATE};
    struct bench *bench = begin(QP_RC, QP_RTS);
    const struct sge sge = {0, 3 * MTU, bench->region.key};
    for (size_t k = 0; k < 2 * COUNT_OF(kinds); k++) {
        const enum work_kind kind = kinds[k / 2];
        const bool solicited = k % 2 == 1 && kind != WORK_WRITE;
        const struct send_request request = {
            .kind = kind, .sges = &sge, .sge_count = 1, .flags = k % 2 == 1 ? WORK_SOLICITED : 0};
        struct nic_departure departure;
        assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
        for (int i = 0; i < 3; i++) {
            struct roce_packet packet;
            assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
            assert_int_equal(roce_decode_split(departure.headers, departure.headers_bytes, payload,
                                               departure.payload_bytes, &packet),
                             ROCE_GOOD);
            assert_int_equal(packet.solicited, solicited && i == 2);
        }
    }
    end(bench);
}

/* 9.9.2: a request whose local key is wrong does not begin. */
static void test_wrong_local_key_sends_nothing(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    const struct sge sge = {0, 3 * MTU, bench->region.key + 1};
    const struct send_request request = {
        .wr_id = 1, .kind = WORK_WRITE, .sges = &sge, .sge_count = 1};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
    assert_int_equal(pull(bench, NULL), 0);
    expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_without_bytes),
        cmocka_unit_test(test_write_of_another_length),
        cmocka_unit_test(test_read_of_too_much),
        cmocka_unit_test(test_misaligned_atomic),
        cmocka_unit_test(test_wrong_atomic_write),
        cmocka_unit_test(test_timer_of_not_ready),
        cmocka_unit_test(test_invalidates_something_else),
        cmocka_unit_test(test_credits_told),
        cmocka_unit_test(test_shared_receives_promise_nothing),
        cmocka_unit_test(test_memory_taken_back_behind_a_read),
        cmocka_unit_test(test_own_qkey),
        cmocka_unit_test(test_ud_qpn),
        cmocka_unit_test(test_ud_drops_what_is_too_long),
        cmocka_unit_test(test_receive_that_is_not_allowed),
        cmocka_unit_test(test_receive_that_is_not_there),
        cmocka_unit_test(test_receive_that_is_there_in_part),
        cmocka_unit_test(test_written_memory_that_is_not_there),
        cmocka_unit_test(test_uc_uses_a_receive_again),
        cmocka_unit_test(test_uc_drops_what_is_too_long),
        cmocka_unit_test(test_uc_drops_what_is_not_allowed),
        cmocka_unit_test(test_events_of_refusals),
        cmocka_unit_test(test_solicited_by_the_last_packet),
        cmocka_unit_test(test_wrong_local_key_sends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
