/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Operations that fail for good, and the sender's rules for bad networks: holding, serial
 *         retransmission, giving way, timeouts, resting identifiers.
 * Method  Cases by hand, as in rdma_sender_test.c.
 */
#include "transport/lant/test_sender.h"

#define FEW_ROWS 4

/* MAX_RETRY: after the first attempt and 3 more the operation is given up; the rest drains. */
static void test_given_up(void **state)
{
    (void)state;
    struct lant_packet packets[16];
    struct lant_rdma_failure failure;
    begin(LANT_RDMA_DEFAULTS);
    submit(7, 4 * 512);
    push_operation(packets);
    for (uint32_t attempt = 0; attempt < 4; attempt++) {
        assert_false(lant_rdma_next_interrupt(&rdma, &failure));
        assert_int_equal(answer(&packets[1], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
        if (attempt < 3) {
            (void)start(LANT_RDMA_STARTS_PARTIAL);
            packets[1] = push();
        }
    }
    assert_true(lant_rdma_next_interrupt(&rdma, &failure));
    assert_int_equal(failure.offset, 1);
    assert_int_equal(failure.attempts, 4);
    assert_int_equal(failure.response, LANT_NACK_CRC);
    assert_int_equal(failure.destination, DESTINATION + 512);
    assert_int_equal(failure.tag, 7);
    /* The others go on: one good, one bad, one silent. */
    not_notified();
    acknowledge(&packets[0]);
    assert_int_equal(answer(&packets[2], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
    (void)start(LANT_RDMA_NOTHING);
    not_notified();
    now = lant_rdma_deadline(&rdma);
    lant_rdma_on_time(&rdma, now);
    tell_none();
    (void)notified(7, LANT_STATUS_COMPLETE | LANT_STATUS_INTERNAL_ERROR);
    assert_int_equal(rdma.counters.interrupts, 1);
    assert_idle();
}

/* No copy leaves so late that its receiver may have forgotten the operation. A packet that
 * waited longer behind other descriptors fails instead, by name. */
static void test_too_late(void **state)
{
    (void)state;
    for (uint64_t late = 0; late < 2; late++) {
        struct lant_packet packets[16];
        struct lant_rdma_failure failure;
        struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
        config.wait = 500;
        begin(config);
        submit_registered(7, 3 * 512);
        push_operation(packets);
        now += 100;
        assert_int_equal(answer(&packets[1], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
        acknowledge(&packets[0]);
        (void)start(LANT_RDMA_STARTS_PARTIAL);
        now += 4 * config.timeout + config.wait - 100 + late;
        if (late == 0) {
            const struct lant_packet packet = push();
            assert_int_equal(packet.footer.offset, 1);
            acknowledge(&packet);
            acknowledge(&packets[2]);
            (void)notified(7, LANT_STATUS_COMPLETE);
            assert_idle();
            continue;
        }
        push_none(LANT_RDMA_PUSH_NOTHING);
        not_notified(); /* One packet is under way. */
        acknowledge(&packets[2]);
        (void)notified(7, LANT_STATUS_COMPLETE | LANT_STATUS_INTERNAL_ERROR);
        assert_true(lant_rdma_next_interrupt(&rdma, &failure));
        assert_int_equal(failure.offset, 1);
        assert_int_equal(failure.attempts, 1);
        assert_int_equal(failure.response, LANT_OKAY);
        assert_idle();
    }
    struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
    config.wait = 500;
    assert_int_equal(lant_rdma_packet_lifetime(&config), 4 * 10000 + 500 + 10000);
}

/* SLVERR and DECERR are final: the rest of the descriptor and its partial ones are not pushed. */
static void test_final(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct lant_packet packets[3];
        begin(LANT_RDMA_DEFAULTS);
        submit(7, 10 * 512);
        submit(8, 8);
        (void)start(LANT_RDMA_STARTS_OPERATION);
        for (uint32_t k = 0; k < 3; k++) {
            packets[k] = push();
        }
        assert_int_equal(answer(&packets[0], LANT_NACK_BUSY), LANT_RDMA_ANSWER_NEGATIVE);
        assert_int_equal(answer(&packets[1], i == 0 ? LANT_SLVERR : LANT_DECERR),
                         LANT_RDMA_ANSWER_FINAL);
        push_none(LANT_RDMA_PUSH_NOTHING);
        (void)start(LANT_RDMA_STARTS_OPERATION);
        assert_int_equal(push().footer.offset, 0);
        not_notified();
        assert_int_equal(answer(&packets[2], LANT_SLVERR), LANT_RDMA_ANSWER_FINAL);
        (void)notified(7, i == 0 ? LANT_STATUS_SLAVE_ERROR
                                 : LANT_STATUS_SLAVE_ERROR | LANT_STATUS_DECODE_ERROR);
        assert_int_equal(rdma.counters.interrupts, 1);
        assert_int_equal(rdma.retransmissions.count, 0);
    }
}

/* The data has come, but its receiver could not be told. */
static void test_telling_fails(void **state)
{
    (void)state;
    for (uint32_t refused = 0; refused < 2; refused++) {
        struct lant_packet packets[16], told;
        struct lant_rdma_failure failure;
        begin(LANT_RDMA_DEFAULTS);
        submit(7, 8);
        push_operation(packets);
        acknowledge(&packets[0]);
        for (uint32_t copy = 0; copy < (refused ? 1 : 4); copy++) {
            not_notified();
            told = tell();
            now = lant_rdma_deadline(&rdma);
            if (refused) {
                assert_int_equal(answer(&told, LANT_SLVERR), LANT_RDMA_ANSWER_FINAL);
            } else {
                lant_rdma_on_time(&rdma, now);
            }
        }
        (void)notified(7, LANT_STATUS_COMPLETE |
                              (refused ? LANT_STATUS_SLAVE_ERROR : LANT_STATUS_INTERNAL_ERROR));
        assert_true(lant_rdma_next_interrupt(&rdma, &failure));
        assert_true(failure.told);
        assert_int_equal(failure.attempts, refused ? 1 : 4);
        assert_idle();
    }
}

/* Records that nobody takes make room for newer ones, and are counted. A segmented transfer that
 * wants no notification leaves nothing behind. */
static void test_interrupts(void **state)
{
    (void)state;
    struct lant_rdma_failure failure;
    struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
    config.work.segment_bytes = 512;
    begin(config);
    for (uint32_t i = 0; i < LANT_RDMA_FAILURES_MAX + 3; i++) {
        struct lant_work work = unregistered(i, 1024);
        work.no_notif = true;
        submit_work(LANT_QUEUE_FPGA, &work);
        (void)start(LANT_RDMA_STARTS_OPERATION);
        const struct lant_packet packet = push();
        assert_int_equal(answer(&packet, LANT_SLVERR), LANT_RDMA_ANSWER_FINAL);
        not_notified();
        assert_idle();
    }
    for (uint32_t i = 3; i < LANT_RDMA_FAILURES_MAX + 3; i++) {
        assert_true(lant_rdma_next_interrupt(&rdma, &failure));
        assert_int_equal(failure.tag, i);
        assert_int_equal(failure.queue, LANT_QUEUE_FPGA);
    }
    assert_false(lant_rdma_next_interrupt(&rdma, &failure));
    assert_int_equal(rdma.counters.interrupts, LANT_RDMA_FAILURES_MAX + 3);
    assert_int_equal(rdma.counters.interrupts_lost, 3);
}

/* A segment fails: no more are issued, one notification says so. */
static void test_segment_fails(void **state)
{
    (void)state;
    struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
    config.work.segment_bytes = 512;
    begin(config);
    submit(7, 2048);
    (void)start(LANT_RDMA_STARTS_OPERATION);
    const struct lant_packet first = push();
    (void)start(LANT_RDMA_STARTS_OPERATION);
    const struct lant_packet second = push();
    assert_int_equal(answer(&first, LANT_DECERR), LANT_RDMA_ANSWER_FINAL);
    (void)start(LANT_RDMA_NOTHING);
    not_notified();
    acknowledge(&second);
    const struct lant_packet told = tell();
    acknowledge(&told);
    assert_int_equal(notified(7, LANT_STATUS_DECODE_ERROR).bytes, 2048);
    assert_idle();
}

/* With `mpl_hold` an operation whose copy is unanswered is complete when none can come. */
static void test_hold(void **state)
{
    (void)state;
    for (uint32_t hold = 0; hold < 2; hold++) {
        struct lant_packet packets[16];
        struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
        config.mpl_hold = hold != 0;
        config.lifetime = 50000;
        begin(config);
        submit(7, 8);
        push_operation(packets);
        now = lant_rdma_deadline(&rdma);
        lant_rdma_on_time(&rdma, now);
        (void)start(LANT_RDMA_STARTS_PARTIAL);
        now = 20000;
        packets[0] = push();
        acknowledge(&packets[0]);
        if (hold) {
            tell_none();
            assert_int_equal(lant_rdma_deadline(&rdma), 1000 + 50000);
            now = 1000 + 50000;
            lant_rdma_on_time(&rdma, now);
        }
        const struct lant_packet told = tell();
        acknowledge(&told);
        (void)notified(7, LANT_STATUS_COMPLETE);
        assert_int_equal(rdma.counters.held, hold);
        /* With every copy answered there is nothing to wait for. */
        submit(8, 8);
        push_operation(packets);
        assert_int_equal(answer(&packets[0], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
        (void)start(LANT_RDMA_STARTS_PARTIAL);
        packets[0] = push();
        acknowledge(&packets[0]);
        (void)tell();
    }
}

/* One retransmission at a time, each waits for its answer. */
static void test_serial(void **state)
{
    (void)state;
    for (uint32_t serial = 0; serial < 2; serial++) {
        struct lant_packet packets[16];
        struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
        config.serial_retransmission = serial != 0;
        begin(config);
        submit(7, 2048);
        push_operation(packets);
        for (uint32_t k = 0; k < 4; k++) {
            assert_int_equal(answer(&packets[k], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
        }
        submit(8, 8);
        for (uint32_t k = 0; k < 4; k++) {
            (void)start(LANT_RDMA_STARTS_PARTIAL);
            packets[k] = push();
            if (serial) {
                (void)start(LANT_RDMA_WAITS_ANSWER);
                if (k == 2) {
                    now = lant_rdma_deadline(&rdma);
                    lant_rdma_on_time(&rdma, now);
                } else {
                    acknowledge(&packets[k]);
                }
            }
        }
        (void)start(serial ? LANT_RDMA_STARTS_PARTIAL : LANT_RDMA_STARTS_OPERATION);
    }
}

/* When all places of the retransmission queue are taken, a descriptor gives way, and goes on. */
static void test_gives_way(void **state)
{
    (void)state;
    struct lant_packet packets[FEW_ROWS];
    struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
    config.rows = FEW_ROWS;
    config.partials = FEW_ROWS;
    begin(config);
    submit(7, 6 * 512);
    submit(8, 8);
    (void)start(LANT_RDMA_STARTS_OPERATION);
    for (uint32_t k = 0; k < FEW_ROWS; k++) {
        packets[k] = push();
    }
    for (uint32_t k = 0; k < FEW_ROWS; k++) {
        push_none(LANT_RDMA_PUSH_WAITS);
        assert_int_equal(answer(&packets[k], LANT_NACK_CRC), LANT_RDMA_ANSWER_NEGATIVE);
    }
    (void)start(LANT_RDMA_BUSY);
    push_none(LANT_RDMA_PUSH_GIVES_WAY);
    for (uint32_t k = 0; k < FEW_ROWS; k++) {
        (void)start(LANT_RDMA_STARTS_PARTIAL);
        packets[k] = push();
        assert_int_equal(packets[k].footer.offset, k);
    }
    const struct lant_rdma_descriptor rest = start(LANT_RDMA_STARTS_GIVEN_WAY);
    assert_int_equal(rest.source, SOURCE + 4 * 512);
    assert_int_equal(rest.bytes, 1024);
    push_none(LANT_RDMA_PUSH_WAITS);
    acknowledge(&packets[0]);
    assert_int_equal(push().footer.offset, 4);
    acknowledge(&packets[1]);
    assert_int_equal(push().footer.offset, 5);
    assert_true(pushed.all);
    assert_int_equal(start(LANT_RDMA_STARTS_OPERATION).tag, 8);
    assert_int_equal(rdma.counters.gave_way, 1);
}

/* A timeout of the operation's own, up to the longest one. */
static void test_timeouts(void **state)
{
    (void)state;
    struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
    config.timeout_most = 30000;
    const uint64_t wanted[] = {0, 500, 20000, 30001};
    const uint64_t expected[] = {10000, 500, 20000, 30000};
    assert_int_equal(lant_rdma_packet_lifetime(&config), 4 * 30000 + 10000);
    for (uint32_t i = 0; i < COUNT_OF(wanted); i++) {
        struct lant_packet packets[16];
        begin(config);
        struct lant_work work = unregistered(7, 8);
        work.timeout = wanted[i];
        submit_work(LANT_QUEUE_CPU, &work);
        push_operation(packets);
        assert_int_equal(lant_rdma_deadline(&rdma), now + expected[i]);
        acknowledge(&packets[0]);
        (void)tell();
        assert_int_equal(lant_rdma_deadline(&rdma), now + expected[i]);
    }
}

/* LNI-93: with two identifiers of one slot the third operation waits for the first one's rest. */
static void test_identifiers(void **state)
{
    (void)state;
    struct lant_rdma_config config = LANT_RDMA_DEFAULTS;
    const uint64_t lifetime = lant_rdma_packet_lifetime(&config);
    uint64_t ended[4];
    config.operations = 1;
    config.generations = 2;
    begin(config);
    assert_int_equal(lifetime, 50000);
    for (uint32_t i = 0; i < 4; i++) {
        struct lant_packet packets[16];
        submit_registered(i, 8);
        if (i >= 2) {
            (void)start(LANT_RDMA_WAITS_IDENTIFIER);
            assert_int_equal(lant_rdma_deadline(&rdma), ended[i - 2] + lifetime);
            now = ended[i - 2] + lifetime - 1;
            lant_rdma_on_time(&rdma, now);
            (void)start(LANT_RDMA_WAITS_IDENTIFIER);
            now++;
            lant_rdma_on_time(&rdma, now);
        }
        push_operation(packets);
        assert_int_equal(packets[0].footer.operation >> 4, i % 2);
        now += i == 1 ? 500 : 100;
        acknowledge(&packets[0]);
        (void)notified(i, LANT_STATUS_COMPLETE);
        ended[i] = now;
    }
    assert_idle();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_up),    cmocka_unit_test(test_too_late),
        cmocka_unit_test(test_final),       cmocka_unit_test(test_telling_fails),
        cmocka_unit_test(test_interrupts),  cmocka_unit_test(test_segment_fails),
        cmocka_unit_test(test_hold),        cmocka_unit_test(test_serial),
        cmocka_unit_test(test_gives_way),   cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_identifiers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
