/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An XRC target takes the packets of one message for one shared receive queue, and
 *         acknowledges again what it has executed, whatever has become of the queue (IBTA Annex
 *         A14).
 * Method  As in refusals_test: one target, two shared receive queues of its domain.
 */
#include "nic/ibta/test_bench.h"

enum {
    QUEUES = 2,
    RECEIVES = 4,
};

struct target {
    struct bench *bench;
    struct qp *first; /* The bench's own queue pair, which nobody needs here. */
    struct xrcd xrcd;
    struct srq srqs[QUEUES];
    void *receives[QUEUES], *memory;
};

static struct target *begin_target(void)
{
    struct target *target = zeroed(sizeof(*target));
    struct bench *bench = target->bench = begin(QP_RC, QP_RTS);
    const struct sge sge = {0, sizeof(bench->memory), bench->region.key};
    for (uint32_t i = 0; i < QUEUES; i++) {
        struct srq *srq = &target->srqs[i];
        target->receives[i] = zeroed(receive_queue_bytes(RECEIVES, 1));
        srq_init(srq, &bench->pd, RECEIVES, 1, target->receives[i]);
        srq->xrcd = &target->xrcd;
        srq->cq = &bench->cq;
        assert_int_equal(srq_enter(bench->nic, srq), STATUS_OK);
        assert_int_equal(receive_queue_post(&srq->queue, i, &sge, 1), STATUS_OK);
    }
    struct qp_request request = {.type = QP_XRC_TARGET, .xrcd = &target->xrcd};
    target->memory = zeroed(qp_bytes(request.type, &request.capacity, false));
    target->first = bench->qp;
    assert_int_equal(qp_create(bench->nic, &request, target->memory, &bench->qp), STATUS_OK);
    receive_ready(bench);
    return target;
}

static void end_target(struct target *target)
{
    struct bench *bench = target->bench;
    qp_destroy(bench->qp);
    bench->qp = target->first;
    for (uint32_t i = 0; i < QUEUES; i++) {
        if (target->srqs[i].number != 0) {
            srq_leave(bench->nic, &target->srqs[i]);
        }
        free(target->receives[i]);
    }
    end(bench);
    free(target->memory);
    free(target);
}

static void send(struct target *target, enum roce_operation operation, uint32_t psn, uint32_t srqn,
                 uint32_t bytes)
{
    deliver(target->bench, (struct roce_packet){.opcode = (uint8_t)operation,
                                                .ack_request = true,
                                                .psn = PEER_PSN + psn,
                                                .xrc = {.srqn = srqn},
                                                .payload_bytes = bytes});
}

/* The AETH of the newest answer. */
static uint8_t answered(struct target *target)
{
    struct roce_packet reply = {0};
    assert_int_equal(pull(target->bench, &reply), 1);
    assert_int_equal(reply.opcode, ROCE_OPCODE(ROCE_SERVICE_XRC, ROCE_ACKNOWLEDGE));
    return reply.aeth.syndrome;
}

static void test_one_queue_for_all_packets(void **state)
{
    (void)state;
    for (uint32_t other = 0; other < QUEUES; other++) {
        struct target *target = begin_target();
        struct bench *bench = target->bench;
        send(target, ROCE_SEND_FIRST, 0, target->srqs[0].number, MTU);
        pull(bench, NULL);
        send(target, ROCE_SEND_LAST, 1, target->srqs[other].number, 8);
        const uint8_t syndrome = answered(target);
        if (other == 0) {
            assert_int_equal(syndrome & ROCE_AETH_KIND_MASK, ROCE_AETH_ACK);
            expect(bench, 0, COMPLETION_SUCCESS);
        } else {
            assert_int_equal(syndrome, ROCE_NAK_INVALID_REQUEST);
            assert_int_equal(counted(bench, COUNTER_nak_unknown_srq), 1);
            assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        }
        end_target(target);
    }
}

/* A message that comes in the middle of another one is refused, and the receive that this one had
 * begun to fill is flushed where its own queue completes. */
static void test_flushed_where_it_belongs(void **state)
{
    (void)state;
    struct target *target = begin_target();
    struct completion ring[8];
    struct cq other;
    struct completion completion;
    cq_init(&other, 4, ring);
    list_init(&other.notify);
    target->srqs[1].cq = &other;
    send(target, ROCE_SEND_FIRST, 0, target->srqs[0].number, MTU);
    send(target, ROCE_SEND_ONLY, 1, target->srqs[1].number, 8);
    assert_int_equal(qp_state_of(target->bench->qp), QP_ERR);
    expect(target->bench, 0, COMPLETION_FLUSHED);
    assert_int_equal(cq_poll(&other, &completion, 1), 0);
    end_target(target);
}

/* A request that comes twice was executed when the queue was there, and is acknowledged; a new one
 * is refused. */
static void test_duplicate_behind_its_queue(void **state)
{
    (void)state;
    struct target *target = begin_target();
    struct bench *bench = target->bench;
    const uint32_t srqn = target->srqs[0].number;
    send(target, ROCE_SEND_ONLY, 0, srqn, 8);
    assert_int_equal(answered(target) & ROCE_AETH_KIND_MASK, ROCE_AETH_ACK);
    expect(bench, 0, COMPLETION_SUCCESS);
    srq_leave(bench->nic, &target->srqs[0]);
    send(target, ROCE_SEND_ONLY, 0, srqn, 8);
    assert_int_equal(answered(target) & ROCE_AETH_KIND_MASK, ROCE_AETH_ACK);
    assert_int_equal(qp_state_of(bench->qp), QP_RTR);
    expect_nothing(bench);
    send(target, ROCE_SEND_ONLY, 1, srqn, 8);
    assert_int_equal(answered(target), ROCE_NAK_INVALID_REQUEST);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    end_target(target);
}

/* As many queues as the NIC has room for get numbers, and no more. */
static void test_room_for_queues(void **state)
{
    (void)state;
    struct target *target = begin_target();
    struct bench *bench = target->bench;
    struct srq third = {.xrcd = &target->xrcd, .cq = &bench->cq}, fourth = third;
    assert_int_equal(bench->nic->limits.xrc_srqs, QUEUES + 1);
    assert_int_equal(srq_enter(bench->nic, &third), STATUS_OK);
    assert_int_equal(srq_enter(bench->nic, &fourth), STATUS_FULL);
    assert_ptr_equal(nic_find_srq(bench->nic, third.number), &third);
    for (uint32_t i = 0; i < QUEUES; i++) {
        assert_ptr_equal(nic_find_srq(bench->nic, target->srqs[i].number), &target->srqs[i]);
    }
    srq_leave(bench->nic, &third);
    end_target(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_queue_for_all_packets),
        cmocka_unit_test(test_flushed_where_it_belongs),
        cmocka_unit_test(test_duplicate_behind_its_queue),
        cmocka_unit_test(test_room_for_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
