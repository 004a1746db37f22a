/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Our requests by blocks end as those by RC would, whatever the program, the link and the
 *         memory do meanwhile.
 * Method  One NIC whose stream was agreed on; frames of the peer by hand. Where RC is to do the
 *         same, a queue pair without memory for blocks does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/block/block.h"
#include "wire/roce.h"

enum {
    PEER = 1,
    PEER_QPN = 77,
    MTU = 1024,
    TIMEOUT_CODE = 14,
    RETRIES = 7,
    TRIP_NS = 100000,
};

struct bench {
    struct nic *nic;
    struct pd pd;
    struct cq cq;
    struct completion ring[64];
    struct region region;
    struct qp *qp;
    void *memory[4];
    uint32_t memory_count;
    struct list waiting; /* For room on the link. */
    struct instant now;
    uint32_t session, answers;
    bool blocks; /* The link is for blocks. */
    uint64_t values[8];
};

static const struct gid us = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct gid peer = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};
static const uint8_t none[MTU];

static const uint64_t timeout_ns = UINT64_C(4096) << TIMEOUT_CODE;
/* More than a tick of the wheel of timers. */
static const uint64_t about_ns = 200000;

static void *zeroed(struct bench *bench, size_t bytes)
{
    const size_t room = (bytes + 63u) & ~(size_t)63u;
    void *memory = aligned_alloc(64, room);
    memset(memory, 0, room);
    assert_true(bench->memory_count < COUNT_OF(bench->memory));
    bench->memory[bench->memory_count++] = memory;
    return memory;
}

static void modify(struct bench *bench, enum qp_state state, uint32_t mask, uint8_t timeout)
{
    const struct qp_attributes attributes = {
        .state = (uint8_t)state,
        .port = 1,
        .destination_qpn = PEER_QPN,
        .path_mtu = PATH_MTU_1024,
        .av = {.source = us, .destination = peer, .peer = bench->blocks ? PEER : 0},
        .max_reads_out = 2,
        .timeout = timeout,
        .retry_count = RETRIES,
        .rnr_retry = 7,
    };
    assert_int_equal(qp_modify(bench->qp, &attributes, mask | QP_ATTR_STATE, bench->now),
                     STATUS_OK);
}

static void to(struct bench *bench, enum qp_state state)
{
    modify(bench, state, 0, 0);
}

static void make_qp(struct bench *bench)
{
    struct qp_request request = {.type = QP_RC,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .capacity = {.sends = 16, .receives = 4, .send_sges = 1},
                                 .signal_all = true};
    void *memory = zeroed(bench, qp_bytes(QP_RC, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, memory, &bench->qp), STATUS_OK);
    modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, 0);
    modify(bench, QP_RTR,
           QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
           0);
    modify(bench, QP_RTS,
           QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC |
               QP_ATTR_SQ_PSN,
           TIMEOUT_CODE);
}

/* -- Packets ------------------------------------------------------------------------------------*/

static void post(struct bench *bench, enum work_kind kind, uint32_t bytes)
{
    const struct sge sge = {0, bytes, bench->region.key};
    const struct send_request request = {
        .kind = kind, .sges = &sge, .sge_count = bytes != 0, .remote_address = 64};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
}

static bool pulls(struct bench *bench, struct block_packet *packet)
{
    struct nic_departure departure;
    memset(&departure, 0xff, sizeof(departure)); /* A world leaves in it what was there before. */
    if (!nic_next_packet(bench->nic, bench->qp, bench->now, &departure)) {
        return false;
    }
    assert_int_equal(departure.route, 0); /* There is no other. */
    if (packet != NULL) {
        assert_int_equal(block_decode(departure.headers, departure.headers_bytes, none,
                                      departure.payload_bytes + departure.pad_bytes, packet),
                         BLOCK_GOOD);
    }
    return true;
}

static struct block_packet pull(struct bench *bench)
{
    struct block_packet packet;
    assert_true(pulls(bench, &packet));
    return packet;
}

static void hand_in(struct bench *bench, const struct block_packet *packet)
{
    uint8_t headers[NIC_HEADERS_BYTES_MAX];
    const struct nic_frame frame = {
        .headers = headers,
        .headers_bytes = (uint32_t)block_encode(packet, headers),
        .payload = none,
        .payload_bytes = packet->payload_bytes,
        .source = peer,
        .destination = us,
    };
    struct nic_move move;
    assert_int_equal(nic_on_packet(bench->nic, &frame, bench->now, &move), NIC_DONE);
}

/* All before `base` was executed; `echo` is the newest that came. */
static void answer(struct bench *bench, uint32_t base, const struct block_packet *echo)
{
    const struct block_packet packet = {
        .opcode = BLOCK_ANSWER,
        .destination_qpn = qp_number(bench->qp),
        .session = bench->session,
        .tsn = bench->answers++,
        .answer = {.base = base,
                   .limit_void = true,
                   .echo_void = echo == NULL,
                   .echo_tsn = echo == NULL ? 0 : echo->tsn},
    };
    hand_in(bench, &packet);
}

static void expect(struct bench *bench, enum completion_status status)
{
    struct completion completion;
    assert_int_equal(cq_poll(&bench->cq, &completion, 1), 1);
    assert_int_equal(completion.status, status);
}

static void expect_nothing(struct bench *bench)
{
    struct completion completion;
    assert_int_equal(cq_poll(&bench->cq, &completion, 1), 0);
}

static uint64_t counted(const struct bench *bench, enum nic_counter counter)
{
    return nic_counters(bench->nic)->values[counter];
}

static uint64_t timeouts(const struct bench *bench)
{
    return counted(bench, COUNTER_timeouts);
}

/* One WRITE is done, and the stream is idle. */
static void agree(struct bench *bench)
{
    post(bench, WORK_WRITE, 8);
    struct block_packet packet = pull(bench);
    assert_int_equal(packet.opcode, BLOCK_HELLO);
    bench->session = packet.hello.nonce;
    packet.opcode = BLOCK_WELCOME;
    packet.destination_qpn = qp_number(bench->qp);
    packet.hello.sender_qpn = PEER_QPN;
    bench->now.ns += TRIP_NS;
    hand_in(bench, &packet);
    packet = pull(bench);
    assert_int_equal(packet.opcode, BLOCK_WRITE);
    bench->now.ns += TRIP_NS;
    answer(bench, 1, &packet);
    expect(bench, COMPLETION_SUCCESS);
    assert_false(pulls(bench, NULL));
}

static struct bench *begin(bool blocks)
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
                                      .block = {.transport = NIC_TRANSPORT_BLOCK,
                                                .window = 64,
                                                .contexts = 16,
                                                .held = 1,
                                                .reads = 32,
                                                .paths = 1,
                                                .peers = 1}};
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->now = (struct instant){1000};
    list_init(&bench->waiting);
    bench->nic = nic_init(&limits, 1, zeroed(bench, nic_bytes(&limits)));
    cq_init(&bench->cq, 64, bench->ring);
    const struct region_request all = {.address = (uintptr_t)bench->values,
                                       .start = 0,
                                       .bytes = sizeof(bench->values),
                                       .access = ACCESS_LOCAL_WRITE};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &all, &bench->region),
                     STATUS_OK);
    struct nic_routes *routes = nic_peer_routes(bench->nic, PEER);
    routes->datagram_bytes = 4096;
    routes->ports = 1;
    bench->blocks = blocks;
    make_qp(bench);
    if (blocks) {
        agree(bench);
    }
    return bench;
}

static void end(struct bench *bench)
{
    nic_check(bench->nic);
    qp_destroy(bench->qp);
    for (uint32_t i = 0; i < bench->memory_count; i++) {
        free(bench->memory[i]);
    }
    free(bench);
}

/* -- A link without room ------------------------------------------------------------------------*/

static void park(struct bench *bench)
{
    assert_ptr_equal(nic_next_qp(bench->nic), bench->qp);
    nic_park(bench->nic, bench->qp, &bench->waiting, bench->now);
}

static void pass(struct bench *bench, uint64_t ns)
{
    const struct instant until = instant_after(bench->now, ns);
    for (;;) {
        const struct instant deadline = nic_deadline(bench->nic);
        if (instant_before(until, deadline)) {
            break;
        }
        bench->now = instant_before(bench->now, deadline) ? deadline : bench->now;
        nic_on_time(bench->nic, bench->now);
    }
    bench->now = until;
}

/* A queue pair with nothing under way does not give up because a probe finds no room to leave. */
static void test_a_probe_without_room(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    post(bench, WORK_WRITE, 8);
    const struct block_packet write = pull(bench);
    while (nic_next_qp(bench->nic) == NULL) {
        pass(bench, 1000000);
    }
    assert_int_equal(pull(bench).opcode, BLOCK_PROBE); /* It is lost. */
    answer(bench, 2, &write);
    expect(bench, COMPLETION_SUCCESS);
    while (nic_next_qp(bench->nic) == NULL) {
        pass(bench, 1000000);
    }
    park(bench);
    pass(bench, 4 * (RETRIES + 1) * timeout_ns);
    assert_int_equal(qp_state_of(bench->qp), QP_RTS);
    nic_unpark(bench->nic, &bench->waiting);
    assert_int_equal(pull(bench).opcode, BLOCK_PROBE);
    end(bench);
}

/* A request that waits for room does not begin after the queue pair was told to drain, so it cannot
 * fail; also if it waited before. */
static void test_draining_without_room(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        const bool waited = i & 1;
        struct bench *bench = begin(i & 2);
        post(bench, WORK_WRITE, 8);
        if (waited) {
            park(bench);
        }
        to(bench, QP_SQD);
        if (!waited) {
            park(bench);
        }
        pass(bench, 4 * (RETRIES + 1) * timeout_ns);
        assert_int_equal(qp_state_of(bench->qp), QP_SQD);
        assert_int_equal(timeouts(bench), 0);
        expect_nothing(bench);
        to(bench, QP_RTS);
        if (i & 4) {
            pass(bench, 2 * (RETRIES + 1) * timeout_ns); /* There never is any. */
            expect(bench, COMPLETION_RETRY_EXCEEDED);
        } else {
            nic_unpark(bench->nic, &bench->waiting);
            assert_true(pulls(bench, NULL));
        }
        end(bench);
    }
}

/* The timer of what waits for room follows a timeout that gets shorter meanwhile. */
static void test_timeout_without_room(void **state)
{
    (void)state;
    for (uint32_t blocks = 0; blocks < 2; blocks++) {
        struct bench *bench = begin(blocks != 0);
        post(bench, WORK_WRITE, 8);
        park(bench);
        to(bench, QP_SQD);
        modify(bench, QP_SQD, QP_ATTR_TIMEOUT, TIMEOUT_CODE - 1);
        nic_check(bench->nic);
        pass(bench, 4 * (RETRIES + 1) * timeout_ns);
        expect_nothing(bench);
        to(bench, QP_RTS);
        pass(bench, (RETRIES + 1) * timeout_ns);
        expect(bench, COMPLETION_RETRY_EXCEEDED);
        end(bench);
    }
}

/* If the queue does not drain, a peer that makes no room for all timeouts (RETRIES + 1) is dead. */
static void test_sending_without_room(void **state)
{
    (void)state;
    for (uint32_t blocks = 0; blocks < 2; blocks++) {
        struct bench *bench = begin(blocks != 0);
        post(bench, WORK_WRITE, 8);
        park(bench);
        pass(bench, (RETRIES + 1) * timeout_ns - about_ns);
        expect_nothing(bench);
        pass(bench, 2 * about_ns);
        expect(bench, COMPLETION_RETRY_EXCEEDED);
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        end(bench);
    }
}

/* -- Requests behind another one ----------------------------------------------------------------*/

/* Behind local work that failed nothing leaves any more; the requests before it complete as
 * usual. */
static void test_behind_failed_local_work(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    const struct send_request invalidate = {.kind = WORK_LOCAL_INVALIDATE, .immediate = 0xdead};
    post(bench, WORK_WRITE, 8);
    assert_int_equal(qp_post_send(bench->qp, &invalidate), STATUS_OK);
    post(bench, WORK_WRITE, 8);
    const struct block_packet packet = pull(bench);
    assert_int_equal(packet.opcode, BLOCK_WRITE);
    assert_false(pulls(bench, NULL));
    expect_nothing(bench);
    bench->now.ns += TRIP_NS;
    answer(bench, packet.number + 1, &packet);
    expect(bench, COMPLETION_SUCCESS);
    expect(bench, COMPLETION_WINDOW_BIND);
    expect(bench, COMPLETION_FLUSHED);
    expect_nothing(bench);
    end(bench);
}

/* While the queue drains, a request that has not begun waits for RTS, and is not judged before. */
static void test_not_judged_while_draining(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    to(bench, QP_SQD);
    const struct sge sge = {0, 8, bench->region.key + 1};
    const struct send_request write = {.kind = WORK_WRITE, .sges = &sge, .sge_count = 1};
    assert_int_equal(qp_post_send(bench->qp, &write), STATUS_OK);
    assert_false(pulls(bench, NULL));
    expect_nothing(bench);
    assert_int_equal(qp_state_of(bench->qp), QP_SQD);
    to(bench, QP_RTS);
    assert_false(pulls(bench, NULL));
    expect(bench, COMPLETION_LOCAL_PROTECTION);
    end(bench);
}

/* A queue that drains tells so when its last request is done. */
static void test_drained(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    const struct qp_attributes attributes = {.state = QP_SQD, .notify_when_drained = true};
    struct nic_event event;
    post(bench, WORK_WRITE, 8);
    const struct block_packet packet = pull(bench);
    while (nic_next_event(bench->nic, &event)) {
    }
    assert_int_equal(
        qp_modify(bench->qp, &attributes, QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY, bench->now),
        STATUS_OK);
    assert_false(pulls(bench, NULL));
    assert_false(nic_next_event(bench->nic, &event));
    answer(bench, packet.number + 1, &packet);
    expect(bench, COMPLETION_SUCCESS);
    assert_true(nic_next_event(bench->nic, &event));
    assert_int_equal(event.kind, NIC_EVENT_SQ_DRAINED);
    assert_false(nic_next_event(bench->nic, &event));
    end(bench);
}

/* The data of a READ of 8 bytes. */
static struct block_packet data_of(struct bench *bench, const struct block_packet *read)
{
    return (struct block_packet){.opcode = BLOCK_DATA,
                                 .destination_qpn = qp_number(bench->qp),
                                 .session = bench->session,
                                 .tsn = bench->answers++,
                                 .number = read->number,
                                 .index = read->index,
                                 .position = 0,
                                 .last_position = read->last_position,
                                 .last_block = read->last_block,
                                 .payload_bytes = 8};
}

/* The data of a READ shows that the requests before it are done, even if there is no place for the
 * data. */
static void test_data_without_a_place(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    post(bench, WORK_WRITE, 8);
    post(bench, WORK_READ, 8);
    assert_int_equal(pull(bench).opcode, BLOCK_WRITE);
    const struct block_packet read = pull(bench);
    assert_int_equal(read.opcode, BLOCK_READ);
    assert_int_equal(region_remove(nic_regions(bench->nic), &bench->region), STATUS_OK);
    bench->now.ns += TRIP_NS;
    const struct block_packet data = data_of(bench, &read);
    hand_in(bench, &data);
    expect(bench, COMPLETION_SUCCESS);
    expect(bench, COMPLETION_LOCAL_PROTECTION);
    expect_nothing(bench);
    end(bench);
}

/* -- Answers that are counted -------------------------------------------------------------------*/

/* Each answer is counted once by its meaning; one that is old, or that names requests that never
 * left, changes nothing. */
static void test_answers_are_counted(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    post(bench, WORK_WRITE, 8);
    const struct block_packet packet = pull(bench);
    const uint32_t next = bench->answers;
    bench->now.ns += TRIP_NS;
    const struct {
        struct block_answer answer;
        uint32_t tsn;
        enum nic_counter counter;
    } cases[] = {
        {{.base = packet.number + 2}, next, COUNTER_drop_block_impossible},
        {{.base = packet.number, .status = BLOCK_STATUS_RNR}, next, COUNTER_rcvd_rnr_err},
        {{.base = packet.number + 1}, next - 1, COUNTER_block_answers_stale},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct block_packet told = {.opcode = BLOCK_ANSWER,
                                    .destination_qpn = qp_number(bench->qp),
                                    .session = bench->session,
                                    .tsn = cases[i].tsn,
                                    .answer = cases[i].answer};
        told.answer.limit_void = true;
        told.answer.echo_tsn = packet.tsn;
        const uint64_t before = counted(bench, COUNTER_block_answers_received);
        hand_in(bench, &told);
        assert_int_equal(counted(bench, COUNTER_block_answers_received), before + 1);
        for (size_t j = 0; j < COUNT_OF(cases); j++) {
            assert_int_equal(counted(bench, cases[j].counter), j <= i);
        }
        expect_nothing(bench);
    }
    end(bench);
}

/* Data for another place than its block has, or of another length, ends the queue pair; data that
 * nobody asked for does not. */
static void test_wrong_data_is_counted(void **state)
{
    (void)state;
    static const enum nic_counter counters[] = {
        COUNTER_bad_response_order, COUNTER_bad_response_length, COUNTER_drop_block_impossible};
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        struct bench *bench = begin(true);
        post(bench, WORK_READ, 8);
        const struct block_packet read = pull(bench);
        struct block_packet data = data_of(bench, &read);
        data.index += i == 0;
        data.payload_bytes = i == 1 ? 4 : 8;
        data.number += i == 2;
        hand_in(bench, &data);
        for (size_t j = 0; j < COUNT_OF(counters); j++) {
            assert_int_equal(counted(bench, counters[j]), i == j);
        }
        assert_int_equal(qp_state_of(bench->qp), i == 2 ? QP_RTS : QP_ERR);
        end(bench);
    }
}

/* -- Memory that is taken back ------------------------------------------------------------------*/

/* An atomic WRITE that goes again when its key is gone fails as one by RC does. */
static void test_value_that_went(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    bench->values[0] = 0x0123456789abcdef;
    post(bench, WORK_ATOMIC_WRITE, 8);
    struct block_packet packet = pull(bench);
    assert_int_equal(packet.opcode, BLOCK_ATOMIC);
    assert_int_equal(packet.atomic.kind, BLOCK_ATOMIC_WRITE);
    assert_int_equal(packet.atomic.swap_or_add, bench->values[0]);
    assert_int_equal(region_remove(nic_regions(bench->nic), &bench->region), STATUS_OK);
    while (qp_state_of(bench->qp) != QP_ERR) {
        assert_int_equal(timeouts(bench), 0);
        pass(bench, 1000000);
        while (pulls(bench, &packet)) {
            assert_int_equal(packet.opcode, BLOCK_PROBE);
        }
    }
    expect(bench, COMPLETION_LOCAL_PROTECTION);
    end(bench);
}

/* -- A timeout that changes in SQD --------------------------------------------------------------*/

static void set_timeout(struct bench *bench, uint8_t code)
{
    modify(bench, QP_SQD, QP_ATTR_TIMEOUT, code);
}

/* A request that left without a timer gets one when the program, in SQD, switches the timeout
 * on. */
static void test_timeout_switched_on(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    to(bench, QP_SQD);
    set_timeout(bench, 0);
    to(bench, QP_RTS);
    post(bench, WORK_WRITE, 8);
    assert_int_equal(pull(bench).opcode, BLOCK_WRITE);
    to(bench, QP_SQD);
    pass(bench, 4 * (RETRIES + 1) * timeout_ns);
    assert_int_equal(timeouts(bench), 0);
    set_timeout(bench, TIMEOUT_CODE);
    pass(bench, timeout_ns - about_ns);
    assert_int_equal(timeouts(bench), 0);
    pass(bench, 2 * about_ns);
    assert_int_equal(timeouts(bench), 1);
    pass(bench, RETRIES * timeout_ns);
    expect(bench, COMPLETION_RETRY_EXCEEDED);
    end(bench);
}

/* A shorter timeout counts from when the longer one began; one that is switched off is over. */
static void test_timeout_changed(void **state)
{
    (void)state;
    struct bench *bench = begin(true);
    post(bench, WORK_WRITE, 8);
    assert_int_equal(pull(bench).opcode, BLOCK_WRITE);
    to(bench, QP_SQD);
    pass(bench, 1000000);
    set_timeout(bench, TIMEOUT_CODE - 1);
    pass(bench, timeout_ns / 2 - 1000000 - about_ns);
    assert_int_equal(timeouts(bench), 0);
    pass(bench, 2 * about_ns);
    assert_int_equal(timeouts(bench), 1);
    set_timeout(bench, 0);
    pass(bench, 4 * (RETRIES + 1) * timeout_ns);
    assert_int_equal(timeouts(bench), 1);
    assert_int_equal(qp_state_of(bench->qp), QP_SQD);
    expect_nothing(bench);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_probe_without_room),
        cmocka_unit_test(test_draining_without_room),
        cmocka_unit_test(test_timeout_without_room),
        cmocka_unit_test(test_sending_without_room),
        cmocka_unit_test(test_behind_failed_local_work),
        cmocka_unit_test(test_not_judged_while_draining),
        cmocka_unit_test(test_drained),
        cmocka_unit_test(test_data_without_a_place),
        cmocka_unit_test(test_answers_are_counted),
        cmocka_unit_test(test_wrong_data_is_counted),
        cmocka_unit_test(test_value_that_went),
        cmocka_unit_test(test_timeout_switched_on),
        cmocka_unit_test(test_timeout_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
