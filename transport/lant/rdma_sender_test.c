/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The flow of each kind of operation: what is sent, what is sent again, what is notified.
 * Method  Cases by hand: the test is the DMA engine and the receiver. rdma_sender_random_test.c
 *         does the same by chance.
 */
#include "transport/lant/test_sender.h"

/* LNI-45, LNI-53: pushed before any answer; told at 0; notified when that is acknowledged. */
static void test_unregistered(void **state)
{
    (void)state;
    struct lant_packet packets[16];
    begin(LANT_RDMA_DEFAULTS);
    (void)start(LANT_RDMA_NOTHING);
    submit(7, 1500);
    const struct lant_rdma_descriptor descriptor = start(LANT_RDMA_STARTS_OPERATION);
    assert_int_equal(descriptor.source, SOURCE);
    assert_int_equal(descriptor.destination, DESTINATION);
    assert_int_equal(descriptor.bytes, 1500);
    assert_int_equal(descriptor.tag, 7);
    for (uint32_t k = 0; k < 3; k++) {
        (void)start(LANT_RDMA_BUSY);
        packets[k] = push();
        assert_int_equal(packets[k].header.type, LANT_RDMA_UNREGISTERED);
        assert_int_equal(pushed.source, SOURCE + 512 * k);
        assert_int_equal(pushed.bytes, k < 2 ? 512 : 476);
        assert_int_equal(pushed.ends, k == 2);
        /* LNI-41: status 31. */
        assert_int_equal(pushed.all, k == 2);
        assert_int_equal(lant_rdma_unanswered(&rdma, descriptor.identifier), k + 1);
    }
    push_none(LANT_RDMA_PUSH_NOTHING);
    for (uint32_t k = 3; k-- > 0;) {
        tell_none();
        acknowledge(&packets[k]);
        assert_int_equal(lant_rdma_in_flight(&rdma), k);
    }
    not_notified();
    const struct lant_packet told = tell();
    assert_int_equal(told.footer.class, LANT_CLASS_NOTIFICATION);
    assert_int_equal(told.payload[0] >> 32, 1500);
    tell_none();
    not_notified();
    acknowledge(&told);
    const struct lant_notification notification = notified(7, LANT_STATUS_COMPLETE);
    assert_int_equal(notification.bytes, 1500);
    assert_int_equal(notification.source, SOURCE);
    assert_int_equal(notification.destination, DESTINATION);
    not_notified();
    assert_idle();
}

/* A registered operation: the last acknowledgement notifies; nobody is told. */
static void test_registered(void **state)
{
    (void)state;
    struct lant_packet packets[16];
    begin(LANT_RDMA_DEFAULTS);
    submit_registered(7, 1500);
    push_operation(packets);
    assert_int_equal(packets[0].header.type, LANT_RDMA_WRITE_REGISTER);
    assert_int_equal(packets[0].header.packets, 3);
    assert_int_equal(packets[2].header.type, LANT_RDMA_WRITE);
    for (uint32_t k = 0; k < 3; k++) {
        not_notified();
        acknowledge(&packets[k]);
        tell_none();
    }
    (void)notified(7, LANT_STATUS_COMPLETE);
    assert_int_equal(rdma.counters.registered, 1);
    assert_idle();
}

/* LNI-65: 32 KB are registered, a byte more is not. */
static void test_threshold(void **state)
{
    (void)state;
    begin(LANT_RDMA_DEFAULTS);
    for (uint32_t more = 0; more < 2; more++) {
        submit_registered(1, 32 * KB + more);
        (void)start(LANT_RDMA_STARTS_OPERATION);
        assert_int_equal(push().header.type,
                         more ? LANT_RDMA_UNREGISTERED : LANT_RDMA_WRITE_REGISTER);
        begin(LANT_RDMA_DEFAULTS);
    }
}

/* LNI-46, LNI-47: only the damaged packet again, after the descriptor in progress. */
static void test_partial(void **state)
{
    (void)state;
    struct lant_packet packets[3];
    begin(LANT_RDMA_DEFAULTS);
    submit(7, 1300);
    submit(8, 512);
    const struct lant_rdma_descriptor whole = start(LANT_RDMA_STARTS_OPERATION);
    packets[0] = push();
    packets[1] = push();
    assert_int_equal(answer(&packets[1], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
    (void)start(LANT_RDMA_BUSY);
    packets[2] = push();
    assert_int_equal(packets[2].footer.offset, 2);
    assert_true(pushed.all);
    acknowledge(&packets[0]);
    acknowledge(&packets[2]);
    tell_none();
    /* LNI-72: before new work. */
    const struct lant_rdma_descriptor part = start(LANT_RDMA_STARTS_PARTIAL);
    assert_int_equal(part.source, SOURCE + 512);
    assert_int_equal(part.destination, DESTINATION + 512);
    assert_int_equal(part.bytes, 512);
    assert_int_equal(part.identifier, whole.identifier);
    const struct lant_packet again = push();
    assert_true(pushed.again && pushed.ends && !pushed.all);
    assert_int_equal(again.footer.offset, 1);
    assert_int_equal(again.footer.attempt, 1);
    assert_int_equal(again.footer.operation, packets[1].footer.operation);
    assert_int_equal(again.header.address, packets[1].header.address);
    assert_int_equal(rdma.operations.used, 1);
    acknowledge(&again);
    const struct lant_packet told = tell();
    acknowledge(&told);
    assert_int_equal(notified(7, LANT_STATUS_COMPLETE).attempts, 1);
    assert_int_equal(rdma.counters.again, 1);
    (void)start(LANT_RDMA_STARTS_OPERATION);
}

/* LNI-49: all packets, the last one, the same one again; LNI-50: REGISTER with all of NPKT. */
static void test_many_partials(void **state)
{
    (void)state;
    struct lant_packet packets[16];
    begin(LANT_RDMA_DEFAULTS);
    submit_registered(7, 1300);
    push_operation(packets);
    for (uint32_t round = 1; round <= 3; round++) {
        for (uint32_t k = 3; k-- > 0;) {
            assert_int_equal(answer(&packets[k], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
        }
        for (uint32_t k = 3; k-- > 0;) {
            assert_int_equal(start(LANT_RDMA_STARTS_PARTIAL).bytes, k == 2 ? 276 : 512);
            packets[k] = push();
            assert_int_equal(packets[k].footer.offset, k);
            assert_int_equal(packets[k].footer.attempt, round);
        }
        assert_int_equal(packets[0].header.type, LANT_RDMA_WRITE_REGISTER);
        assert_int_equal(packets[0].header.packets, 3);
    }
    for (uint32_t k = 0; k < 3; k++) {
        acknowledge(&packets[k]);
    }
    assert_int_equal(notified(7, LANT_STATUS_COMPLETE).attempts, 3);
    assert_idle();
}

/* LNI-27, LNI-48: each answer counts once; older NACKs do not, older positive answers do while the
 * row holds the packet. */
static void test_late_answers(void **state)
{
    (void)state;
    struct lant_packet packets[16];
    begin(LANT_RDMA_DEFAULTS);
    submit_registered(7, 1024);
    push_operation(packets);
    acknowledge(&packets[0]);
    assert_int_equal(answer(&packets[0], LANT_OKAY), LANT_RDMA_ANSWER_STALE);
    not_notified();
    /* No answer: exactly at its time. */
    assert_int_equal(lant_rdma_deadline(&rdma), 11000);
    now = 10999;
    lant_rdma_on_time(&rdma, now);
    (void)start(LANT_RDMA_NOTHING);
    now = 11000;
    lant_rdma_on_time(&rdma, now);
    assert_int_equal(answer(&packets[1], LANT_OKAY), LANT_RDMA_ANSWER_STALE);
    (void)start(LANT_RDMA_STARTS_PARTIAL);
    const struct lant_packet again = push();
    assert_int_not_equal(again.footer.row, packets[1].footer.row);
    assert_int_equal(answer(&again, LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
    (void)start(LANT_RDMA_STARTS_PARTIAL);
    const struct lant_packet third = push();
    assert_int_equal(third.footer.row, again.footer.row);
    assert_int_equal(answer(&again, LANT_NACK_CRC), LANT_RDMA_ANSWER_OLDER);
    assert_int_equal(answer(&again, LANT_LOCKED), LANT_RDMA_ANSWER_FOREIGN);
    assert_int_equal(answer(&again, LANT_OKAY), LANT_RDMA_ANSWER_POSITIVE);
    assert_int_equal(answer(&third, LANT_OKAY), LANT_RDMA_ANSWER_STALE);
    (void)notified(7, LANT_STATUS_COMPLETE);
    struct lant_packet foreign = third;
    foreign.footer.class = LANT_CLASS_SHM;
    assert_int_equal(answer(&foreign, LANT_OKAY), LANT_RDMA_ANSWER_FOREIGN);
    assert_int_equal(rdma.counters.answers[LANT_RDMA_ANSWER_STALE], 3);
    assert_idle();
}

/* LNI-44: the 17th packet waits, and so does the 17th operation. */
static void test_rows(void **state)
{
    (void)state;
    struct lant_packet packets[17];
    begin(LANT_RDMA_DEFAULTS);
    submit(7, 17 * 512);
    (void)start(LANT_RDMA_STARTS_OPERATION);
    for (uint32_t k = 0; k < 16; k++) {
        packets[k] = push();
    }
    push_none(LANT_RDMA_PUSH_WAITS);
    acknowledge(&packets[9]);
    packets[16] = push();
    assert_int_equal(packets[16].footer.row, packets[9].footer.row);
    push_none(LANT_RDMA_PUSH_NOTHING);
}

/* LNI-44. A slot is kept until its notification was taken. */
static void test_slots(void **state)
{
    (void)state;
    struct lant_packet packets[16];
    begin(LANT_RDMA_DEFAULTS);
    for (uint32_t i = 0; i < 17; i++) {
        submit(i, 8);
    }
    for (uint32_t i = 0; i < 16; i++) {
        (void)start(LANT_RDMA_STARTS_OPERATION);
        packets[i] = push();
    }
    (void)start(LANT_RDMA_WAITS_SLOT);
    acknowledge(&packets[5]);
    const struct lant_packet told = tell();
    assert_int_equal(told.footer.row, 5);
    acknowledge(&told);
    (void)start(LANT_RDMA_WAITS_SLOT);
    (void)notified(5, LANT_STATUS_COMPLETE);
    assert_int_equal(start(LANT_RDMA_STARTS_OPERATION).tag, 16);
}

/* LNI-52, the sender's half: told again after a timeout and a NACK; only one notification. */
static void test_telling(void **state)
{
    (void)state;
    struct lant_packet packets[16];
    begin(LANT_RDMA_DEFAULTS);
    submit(7, 8);
    push_operation(packets);
    acknowledge(&packets[0]);
    const struct lant_packet first = tell();
    now = lant_rdma_deadline(&rdma);
    assert_int_equal(now, 11000);
    lant_rdma_on_time(&rdma, now);
    const struct lant_packet second = tell();
    assert_int_equal(second.footer.attempt, 1);
    assert_int_equal(second.footer.operation, first.footer.operation);
    assert_int_equal(answer(&first, LANT_NACK_CRC), LANT_RDMA_ANSWER_OLDER);
    assert_int_equal(answer(&second, LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
    assert_int_equal(answer(&second, LANT_NACK_CRC), LANT_RDMA_ANSWER_OLDER);
    const struct lant_packet third = tell();
    assert_int_equal(third.footer.attempt, 2);
    assert_int_equal(answer(&first, LANT_OKAY), LANT_RDMA_ANSWER_POSITIVE);
    assert_int_equal(answer(&third, LANT_OKAY), LANT_RDMA_ANSWER_STALE);
    (void)notified(7, LANT_STATUS_COMPLETE);
    assert_int_equal(rdma.counters.told, 1);
    assert_int_equal(rdma.counters.told_again, 2);
    assert_idle();

    /* Acknowledged while the next copy waits to be sent: it is not sent. */
    submit(8, 8);
    push_operation(packets);
    acknowledge(&packets[0]);
    struct lant_packet late = tell();
    now = lant_rdma_deadline(&rdma);
    lant_rdma_on_time(&rdma, now);
    assert_int_equal(answer(&late, LANT_OKAY), LANT_RDMA_ANSWER_POSITIVE);
    tell_none();
    (void)notified(8, LANT_STATUS_COMPLETE);
    assert_idle();
}

/* LNI-68, LNI-70: a receiver is told of each segment, the program of all of them, when the
 * last to end has ended. */
static void test_segments(void **state)
{
    (void)state;
    static struct lant_packet packets[128];
    struct lant_packet told[16];
    struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
    uint32_t all = 0;
    config.rows = 128;
    begin(config);
    submit(7, 1024 * KB);
    for (uint32_t i = 0; i < 16; i++) {
        assert_int_equal(start(LANT_RDMA_STARTS_OPERATION).source, SOURCE + i * 64 * KB);
        for (uint32_t k = 0; k < 128; k++) {
            packets[k] = push();
            all += pushed.all;
        }
        assert_int_equal(all, i == 15);
        for (uint32_t k = 0; k < 128; k++) {
            acknowledge(&packets[k]);
        }
        told[i] = tell();
        assert_int_equal(told[i].header.address, 0x11110000 + i * 64 * KB);
        assert_int_equal(told[i].payload[0] >> 32, 64 * KB);
        if (i != 3) {
            acknowledge(&told[i]);
        }
    }
    not_notified();
    acknowledge(&told[3]);
    const struct lant_notification notification = notified(7, LANT_STATUS_COMPLETE);
    assert_int_equal(notification.bytes, 1024 * KB);
    assert_int_equal(notification.source, SOURCE);
    assert_int_equal(notification.destination, DESTINATION);
    assert_int_equal(rdma.counters.told, 16);
    assert_int_equal(rdma.counters.operations, 16);
    assert_idle();
}

/* LNI-71: a small transfer passes a large one between two segments. */
static void test_small_passes(void **state)
{
    (void)state;
    for (uint32_t on = 0; on < 2; on++) {
        struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
        config.work.segment_bytes = on ? 1024 : 0;
        begin(config);
        submit(1, 4096);
        (void)start(LANT_RDMA_STARTS_OPERATION);
        submit(2, 8);
        uint32_t large = 0;
        for (;;) {
            (void)push();
            if (pushed.tag == 2) {
                break;
            }
            large++;
            if (pushed.ends) {
                (void)start(LANT_RDMA_STARTS_OPERATION);
            }
        }
        assert_int_equal(large, on ? 2 : 8);
    }
}

/* LNI-42; and NO_NOTIF. */
static void test_queues(void **state)
{
    (void)state;
    struct lant_packet packet;
    struct lant_notification notification;
    begin(LANT_RDMA_DEFAULTS);
    for (uint32_t i = 0; i < 20; i++) {
        struct lant_work work = unregistered(i, 8);
        work.descriptor.no_register = false;
        work.no_notif = i >= 10;
        submit_work(i % 2 ? LANT_QUEUE_FPGA : LANT_QUEUE_CPU, &work);
        (void)start(LANT_RDMA_STARTS_OPERATION);
        packet = push();
        acknowledge(&packet);
    }
    for (uint32_t i = 0; i < 10; i++) {
        assert_true(lant_rdma_next_notification(
            &rdma, now, i % 2 ? LANT_QUEUE_FPGA : LANT_QUEUE_CPU, &notification));
        assert_int_equal(notification.tag, i);
    }
    not_notified();
    assert_idle();
}

/* LNI-54: no packet says where its data were read: two transfers of other memory to the same place
 * are the same packets. */
static void test_no_source_address(void **state)
{
    (void)state;
    uint64_t flits[2][4][LANT_PACKET_FLITS_MAX] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        struct lant_work work = unregistered(1, 4 * 512);
        work.descriptor.source += i * 0x123400;
        begin(LANT_RDMA_DEFAULTS);
        submit_work(LANT_QUEUE_CPU, &work);
        (void)start(LANT_RDMA_STARTS_OPERATION);
        for (uint32_t k = 0; k < 4; k++) {
            struct lant_packet packet = push();
            assert_int_equal(pushed.source, work.descriptor.source + 512 * k);
            for (uint32_t flit = 0; flit < LANT_PAYLOAD_FLITS_MAX; flit++) {
                packet.payload[flit] = 0;
            }
            assert_int_equal(lant_encode(&packet, flits[i][k]), LANT_PACKET_FLITS_MAX - 1);
        }
    }
    assert_memory_equal(flits[0], flits[1], sizeof(flits[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_source_address),
        cmocka_unit_test(test_unregistered),
        cmocka_unit_test(test_registered),
        cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_many_partials),
        cmocka_unit_test(test_late_answers),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_telling),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_small_passes),
        cmocka_unit_test(test_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
