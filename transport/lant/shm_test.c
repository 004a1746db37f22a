/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Rows, the order of an address, attempts and limits are as shm.h has them.
 * Method  Cases by hand, each with the number of its behaviour. Early acknowledgements and failures
 *         are in shm_early_test.c, random worlds in shm_random_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/lant/shm_access.h"
#include "transport/lant/shm_rig.h"

/* -- Rows and order -----------------------------------------------------------------------------*/

static void test_shapes(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, 0);
    struct lant_shm_request request = rig_store(1, RIG_PEER, 4);
    assert_int_equal(rig_ask(&rig, request, 0), LANT_SHM_UNALIGNED);
    request.size = 4;
    assert_int_equal(rig_ask(&rig, request, 0), LANT_SHM_SIZE_WRONG);
    request.size = 2;
    assert_int_equal(rig_ask(&rig, request, 0), LANT_SHM_STROBE_WRONG);
    request.strobe = 0xf0;
    assert_int_equal(rig_ask(&rig, request, 0), LANT_SHM_ISSUED);
    request = rig_load(2, RIG_PEER, 8);
    request.strobe = 0;
    assert_int_equal(rig_ask(&rig, request, 0), LANT_SHM_STROBE_WRONG);
    assert_int_equal(rig.shm.counters.refused, 4);
    assert_true(rig_send(&rig, 0));
    assert_int_equal(rig.packet.header.address, 4);
    assert_int_equal(rig.packet.header.strobe, 0xf0); /* LNI-28. */
    assert_int_equal(rig.packet.header.size, 2);
    assert_int_equal(rig.packet.header.priority, 3);
    assert_int_equal(rig.packet.header.destination, RIG_PEER);
    assert_int_equal(rig.packet.footer.source, RIG_NODE);
}

/* LNI-21: the 17th waits for a row, whichever is free first. Any number of rows. */
static void test_rows(void **state)
{
    (void)state;
    for (uint16_t rows = 1; rows <= LANT_SHM_ROWS_MAX; rows++) {
        struct rig rig;
        struct lant_packet packets[LANT_SHM_ROWS_MAX];
        struct lant_shm_config config = rig_config();
        config.rows = rows;
        rig_init(&rig, &config);
        for (uint32_t i = 0; i < rows; i++) {
            assert_int_equal(rig_ask(&rig, rig_store(i, RIG_PEER, 8 * i), 0), LANT_SHM_ISSUED);
            assert_true(rig_send(&rig, 0));
            packets[i] = rig.packet;
        }
        const struct lant_shm_request more = rig_store(99, RIG_PEER, 8 * 99);
        assert_int_equal(rig_ask(&rig, more, 1), LANT_SHM_HELD_ROW);
        assert_int_equal(rig_answer(&rig, &packets[rows / 2], LANT_OKAY, 0, 2),
                         LANT_SHM_ANSWER_DONE);
        assert_int_equal(rig_ask(&rig, more, 3), LANT_SHM_ISSUED);
        assert_true(rig_send(&rig, 3));
        assert_int_equal(rig.packet.footer.row, packets[rows / 2].footer.row);
        assert_int_not_equal(rig.packet.footer.generation, packets[rows / 2].footer.generation);
    }
}

/* LNI-22, LNI-23, LNI-24: one address is done in program order, others go on. */
static void test_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, 0);
    assert_int_equal(rig_ask(&rig, rig_store(1, RIG_PEER, 0x40), 0), LANT_SHM_ISSUED);
    assert_int_equal(rig_ask(&rig, rig_load(2, RIG_PEER, 0x40), 0), LANT_SHM_PENDING);
    struct lant_shm_request half = rig_store(3, RIG_PEER, 0x44);
    half.size = 2;
    half.strobe = 0xf0;
    assert_int_equal(rig_ask(&rig, half, 0), LANT_SHM_PENDING);
    assert_int_equal(rig_ask(&rig, rig_load(4, RIG_PEER, 0x40), 0), LANT_SHM_PENDING);
    assert_int_equal(rig_ask(&rig, rig_load(5, RIG_PEER, 0x48), 0), LANT_SHM_ISSUED);
    assert_int_equal(rig_ask(&rig, rig_load(6, RIG_PEER + 1, 0x40), 0), LANT_SHM_ISSUED);
    assert_true(rig_send(&rig, 0) && rig_send(&rig, 0)); /* Loads 5 and 6 go first: C1. */
    for (uint32_t token = 1; token <= 4; token++) {
        assert_true(rig_send(&rig, token));
        assert_int_equal(rig.packet.header.type, token % 2 != 0 ? LANT_AW : LANT_AR);
        assert_false(rig_send(&rig, token));
        assert_int_equal(rig_answer(&rig, &rig.packet, LANT_OKAY, token, token),
                         LANT_SHM_ANSWER_DONE);
        const struct lant_shm_done done = rig_done(&rig, token);
        assert_int_equal(done.token, token);
        assert_int_equal(done.data, token % 2 != 0 ? 0 : token); /* LNI-29. */
    }
    assert_int_equal(rig.shm.counters.conflicts, 3);
}

/* A list that is full holds the initiator, and one of no length holds it at once. */
static void test_pending_full(void **state)
{
    (void)state;
    for (uint16_t length = 0; length <= LANT_SHM_PENDING_MAX; length += 8) {
        struct rig rig;
        struct lant_shm_config config = rig_config();
        config.pending = length;
        rig_init(&rig, &config);
        (void)rig_ask(&rig, rig_store(0, RIG_PEER, 0), 0);
        for (uint32_t i = 1; i <= length; i++) {
            assert_int_equal(rig_ask(&rig, rig_store(i, RIG_PEER, 0), 0), LANT_SHM_PENDING);
        }
        const struct lant_shm_request more = rig_store(99, RIG_PEER, 0);
        assert_int_equal(rig_ask(&rig, more, 0), LANT_SHM_HELD_PENDING);
        for (uint32_t i = 0; i <= length; i++) {
            assert_true(rig_send(&rig, 0));
            assert_int_equal((uint32_t)rig.packet.payload[0], i);
            assert_int_equal(rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 0), LANT_SHM_ANSWER_DONE);
        }
        assert_int_equal(rig_ask(&rig, more, 0), LANT_SHM_ISSUED);
    }
}

/* LNI-11, the part of SHM: retransmissions, then loads, then stores. */
static void test_priority(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, 0);
    (void)rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0);
    (void)rig_ask(&rig, rig_store(2, RIG_PEER, 16), 0);
    assert_true(rig_send(&rig, 0) && rig_send(&rig, 0));
    (void)rig_ask(&rig, rig_store(3, RIG_PEER, 24), 0);
    (void)rig_ask(&rig, rig_load(4, RIG_PEER, 32), 0);
    (void)rig_ask(&rig, rig_store(5, RIG_PEER, 40), 0);
    (void)rig_ask(&rig, rig_load(6, RIG_PEER, 48), 0);
    lant_shm_on_time(&rig.shm, &rig.errors, RIG_TIMEOUT);
    const uint64_t expected[6] = {8, 16, 32, 48, 24, 40};
    const enum lant_shm_queue_name queues[6] = {LANT_SHM_RESENDS, LANT_SHM_RESENDS,
                                                LANT_SHM_LOADS,   LANT_SHM_LOADS,
                                                LANT_SHM_STORES,  LANT_SHM_STORES};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(lant_shm_next_queue(&rig.shm), queues[i]);
        assert_true(rig_send(&rig, RIG_TIMEOUT));
        assert_int_equal(rig.packet.header.address, expected[i]);
    }
    assert_int_equal(lant_shm_next_queue(&rig.shm), LANT_SHM_QUEUES);
}

/* -- Attempts -----------------------------------------------------------------------------------*/

/* LNI-25: the timer of a row is its own, and runs from the footer. */
static void test_timeout(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, 0);
    (void)rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0);
    struct lant_shm_request far = rig_store(2, RIG_PEER, 16);
    far.timeout = 50;
    assert_int_equal(lant_shm_deadline(&rig.shm, 0), LANT_NEVER);
    assert_true(lant_shm_next_packet(&rig.shm, &rig.packet));
    assert_int_equal(lant_shm_deadline(&rig.shm, 0), LANT_NEVER);
    lant_shm_sent(&rig.shm, &rig.packet.footer, 5);
    assert_int_equal(lant_shm_deadline(&rig.shm, 5), 5 + RIG_TIMEOUT);
    (void)rig_ask(&rig, far, 10);
    assert_true(rig_send(&rig, 10));
    assert_int_equal(lant_shm_deadline(&rig.shm, 10), 60); /* A timeout of the request's own. */
    lant_shm_on_time(&rig.shm, &rig.errors, 59);
    assert_false(rig_send(&rig, 59));
    lant_shm_on_time(&rig.shm, &rig.errors, 60);
    assert_true(rig_send(&rig, 61));
    assert_int_equal(rig.packet.header.address, 16);
    assert_int_equal(rig.packet.footer.attempt, 1);
    assert_int_equal(rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 70), LANT_SHM_ANSWER_DONE);
    assert_int_equal(lant_shm_deadline(&rig.shm, 70), 5 + RIG_TIMEOUT);
}

/* All but TRY. */
static void expect_same(const struct lant_packet *a, const struct lant_packet *b)
{
    assert_int_equal(a->header.destination, b->header.destination);
    assert_int_equal(a->header.type, b->header.type);
    assert_int_equal(a->header.payload, b->header.payload);
    assert_int_equal(a->header.priority, b->header.priority);
    assert_int_equal(a->header.lock, b->header.lock);
    assert_int_equal(a->header.address, b->header.address);
    assert_int_equal(a->header.strobe, b->header.strobe);
    assert_int_equal(a->header.size, b->header.size);
    assert_int_equal(a->header.protection, b->header.protection);
    assert_int_equal(a->footer.row, b->footer.row);
    assert_int_equal(a->footer.generation, b->footer.generation);
    assert_int_equal(a->footer.bus_id, b->footer.bus_id);
    assert_int_equal(lant_sequence_of(&a->footer), lant_sequence_of(&b->footer));
    assert_int_equal(a->payload[0], b->payload[0]);
}

/* LNI-19, LNI-26: after a NACK the same packet, but for TRY. */
static void test_nack(void **state)
{
    (void)state;
    const enum lant_response nacks[3] = {LANT_NACK_CRC, LANT_NACK_LINK, LANT_NACK_BUSY};
    struct rig rig;
    rig_start(&rig, 0);
    struct lant_shm_request request = rig_store(1, RIG_PEER, 0x46);
    request.size = 1;
    request.strobe = 0x40;
    request.protection = 3;
    (void)rig_ask(&rig, request, 0);
    assert_true(rig_send(&rig, 0));
    const struct lant_packet first = rig.packet;
    for (uint8_t attempt = 1; attempt <= 3; attempt++) {
        assert_int_equal(rig_answer(&rig, &rig.packet, nacks[attempt - 1], 0, attempt),
                         LANT_SHM_ANSWER_RESENDS);
        assert_true(rig_send(&rig, attempt));
        assert_int_equal(rig.packet.footer.attempt, attempt);
        expect_same(&rig.packet, &first);
        assert_false(rig_send(&rig, attempt)); /* Once. */
    }
    assert_int_equal(rig_answer(&rig, &rig.packet, LANT_NACK_CRC, 0, 9), LANT_SHM_ANSWER_FAILS);
    rig_expect_done(&rig, 1, LANT_SHM_FAILED, LANT_SLVERR);
}

/* LNI-27: what is not of this request, or of an older attempt. */
static void test_stale(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, 0);
    (void)rig_ask(&rig, rig_load(1, RIG_PEER, 8), 0);
    assert_true(lant_shm_next_packet(&rig.shm, &rig.packet));
    const struct lant_packet first = rig.packet;
    assert_int_equal(rig_answer(&rig, &first, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_UNASKED);
    lant_shm_sent(&rig.shm, &first.footer, 0);
    struct lant_packet other = first;
    other.footer.generation++;
    assert_int_equal(rig_answer(&rig, &other, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_STALE);
    other = first;
    other.footer.operation++;
    assert_int_equal(rig_answer(&rig, &other, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_STALE);
    other = first;
    other.footer.offset ^= 0x10000;
    assert_int_equal(rig_answer(&rig, &other, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_STALE);
    other = first;
    other.footer.row = 16;
    assert_int_equal(rig_answer(&rig, &other, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_STALE);
    other = first;
    other.footer.attempt = 1;
    assert_int_equal(rig_answer(&rig, &other, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_UNASKED);
    other = first;
    other.header.destination++; /* Answered by another node. */
    assert_int_equal(rig_answer(&rig, &other, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_FOREIGN);
    other = first;
    other.header.type = LANT_AW;
    assert_int_equal(rig_answer(&rig, &other, LANT_OKAY, 1, 0), LANT_SHM_ANSWER_MALFORMED);
    assert_int_equal(rig_answer(&rig, &first, LANT_LOCKED, 1, 0), LANT_SHM_ANSWER_MALFORMED);

    lant_shm_on_time(&rig.shm, &rig.errors, RIG_TIMEOUT);
    assert_int_equal(rig_answer(&rig, &first, LANT_NACK_CRC, 0, 1), LANT_SHM_ANSWER_OLD_NACK);
    assert_true(rig_send(&rig, RIG_TIMEOUT));
    assert_int_equal(rig_answer(&rig, &first, LANT_NACK_CRC, 0, 1), LANT_SHM_ANSWER_OLD_NACK);
    assert_int_equal(rig_answer(&rig, &first, LANT_OKAY, 42, 1), LANT_SHM_ANSWER_DONE);
    assert_int_equal(rig_done(&rig, 0).data, 42);
    assert_int_equal(rig_answer(&rig, &first, LANT_OKAY, 43, 1), LANT_SHM_ANSWER_STALE);
    assert_int_equal(rig_answer(&rig, &rig.packet, LANT_OKAY, 43, 1), LANT_SHM_ANSWER_STALE);
    rig_expect_nothing(&rig);
}

/* The answer to an older attempt comes while the next one waits, or is being sent. */
static void test_answer_overtakes(void **state)
{
    (void)state;
    for (uint32_t sending = 0; sending < 2; sending++) {
        struct rig rig;
        rig_start(&rig, 0);
        (void)rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0);
        assert_true(rig_send(&rig, 0));
        const struct lant_packet first = rig.packet;
        lant_shm_on_time(&rig.shm, &rig.errors, RIG_TIMEOUT);
        assert_true(sending == 0 || lant_shm_next_packet(&rig.shm, &rig.packet));
        assert_int_equal(rig_answer(&rig, &first, LANT_OKAY, 0, RIG_TIMEOUT), LANT_SHM_ANSWER_DONE);
        (void)rig_ask(&rig, rig_store(2, RIG_PEER, 16), RIG_TIMEOUT);
        lant_shm_sent(&rig.shm, &rig.packet.footer, RIG_TIMEOUT); /* The row is another's. */
        assert_int_equal(lant_shm_deadline(&rig.shm, RIG_TIMEOUT), LANT_NEVER);
        assert_true(rig_send(&rig, RIG_TIMEOUT));
        assert_int_equal(rig.packet.header.address, 16);
        assert_false(rig_send(&rig, RIG_TIMEOUT));
    }
}

/* LNI-38: LOCKED is an answer, which is not sent again; SLVERR and DECERR are, too. */
static void test_final(void **state)
{
    (void)state;
    const enum lant_response finals[5] = {LANT_OKAY, LANT_EXOKAY, LANT_LOCKED, LANT_SLVERR,
                                          LANT_DECERR};
    for (uint32_t i = 0; i < 10; i++) {
        struct rig rig;
        struct lant_shm_request request =
            i < 5 ? rig_store(1, RIG_PEER, 8) : rig_load(1, RIG_PEER, 8);
        rig_start(&rig, 16);
        request.lock = true;
        (void)rig_ask(&rig, request, 0);
        assert_true(rig_send(&rig, 0));
        assert_true(rig.packet.header.lock);
        rig_expect_nothing(&rig); /* LNI-35: no early acknowledgement. */
        assert_int_equal(rig_answer(&rig, &rig.packet, finals[i % 5], 0, 1), LANT_SHM_ANSWER_DONE);
        rig_expect_done(&rig, 1, LANT_SHM_GENUINE, finals[i % 5]);
        rig_expect_nothing(&rig); /* LNI-35: no notice. */
        assert_false(rig_send(&rig, 1));
        assert_int_equal(rig.errors.counters.failures, 0);
        assert_true(lant_shm_idle(&rig.shm));
    }
}

/* -- Limits -------------------------------------------------------------------------------------*/

/* LNI-93: of 16 sequences the 17th use waits until they are old. */
static void test_sequences(void **state)
{
    (void)state;
    struct rig rig;
    struct lant_shm_config config = rig_config();
    config.sequences = 16;
    config.first_sequence = 13;
    config.lifetime = 1000;
    rig_init(&rig, &config);
    for (uint32_t i = 0; i < 11; i++) {
        assert_int_equal(rig_ask(&rig, rig_store(i, RIG_PEER, 8 * i), i), LANT_SHM_ISSUED);
        assert_true(rig_send(&rig, i));
        assert_int_equal(lant_sequence_of(&rig.packet.footer), (13 + i) % 16);
        (void)rig_answer(&rig, &rig.packet, LANT_OKAY, 0, i);
    }
    /* 8 was left at 2, with 15: the numbers of its half are free at 1002. */
    const struct lant_shm_request more = rig_store(99, RIG_PEER, 800);
    assert_int_equal(rig_ask(&rig, more, 20), LANT_SHM_HELD_SEQUENCE);
    assert_int_equal(lant_shm_deadline(&rig.shm, 20), 1002);
    assert_int_equal(rig_ask(&rig, more, 1001), LANT_SHM_HELD_SEQUENCE);
    assert_int_equal(rig_ask(&rig, more, 1002), LANT_SHM_ISSUED);
    assert_int_equal(lant_shm_deadline(&rig.shm, 1002), LANT_NEVER);
}

/* One that waits in the list finds no sequence when its turn comes. */
static void test_pending_without_sequence(void **state)
{
    (void)state;
    struct rig rig;
    struct lant_shm_config config = rig_config();
    config.sequences = 2;
    config.lifetime = 1000;
    rig_init(&rig, &config);
    (void)rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0);
    (void)rig_ask(&rig, rig_store(2, RIG_PEER, 16), 0);
    assert_int_equal(rig_ask(&rig, rig_store(3, RIG_PEER, 8), 0), LANT_SHM_PENDING);
    assert_int_equal(rig_ask(&rig, rig_store(4, RIG_PEER, 8), 0), LANT_SHM_PENDING);
    assert_true(rig_send(&rig, 1));
    (void)rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 2);
    assert_true(rig_send(&rig, 2)); /* That of 16. */
    assert_false(rig_send(&rig, 2));
    assert_int_equal(rig_ask(&rig, rig_store(5, RIG_PEER, 16), 3), LANT_SHM_PENDING);
    assert_int_equal(rig_ask(&rig, rig_store(6, RIG_PEER, 8), 3), LANT_SHM_PENDING);
    (void)rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 4);
    assert_false(rig_send(&rig, 4)); /* 3 and 5 are ready; the older one goes first. */
    lant_shm_on_time(&rig.shm, &rig.errors, lant_shm_deadline(&rig.shm, 4));
    assert_true(rig_send(&rig, 1000));
    assert_int_equal((uint32_t)rig.packet.payload[0], 3);
    assert_true(rig_send(&rig, 1000));
    assert_int_equal((uint32_t)rig.packet.payload[0], 5);
    assert_false(rig_send(&rig, 1000));
}

/* Nobody takes what is done: no more is begun than can be told. */
static void test_done_full(void **state)
{
    (void)state;
    struct rig rig;
    uint32_t issued = 0;
    rig_start(&rig, 16);
    for (; rig_ask(&rig, rig_store(issued, RIG_PEER, 8), 0) == LANT_SHM_ISSUED; issued++) {
        assert_true(rig_send(&rig, 0));
        (void)rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 0);
    }
    assert_int_equal(issued, LANT_SHM_DONE_MAX / 2);
    assert_int_equal(rig.shm.counters.held_done, 1);
    for (uint32_t i = 0; i < 4; i++) {
        (void)rig_done(&rig, 0);
    }
    /* A request that is under way counts with all events that it will bring. */
    assert_int_equal(rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0), LANT_SHM_ISSUED);
    assert_int_equal(rig_ask(&rig, rig_store(2, RIG_PEER, 16), 0), LANT_SHM_ISSUED);
    assert_int_equal(rig_ask(&rig, rig_load(3, RIG_PEER, 24), 0), LANT_SHM_HELD_DONE);
}

/* LNI-20: a store of 16 bytes is two packets in two rows, and done when both are acknowledged. */
static void test_two_packets(void **state)
{
    (void)state;
    struct rig rig;
    struct lant_packet packets[2];
    const uint8_t bytes[16] = {1, 2, 3};
    const struct lant_shm_access access = {
        .address = lant_global(RIG_PEER, 0x40), .bytes = sizeof(bytes), .token = 9, .store = true};
    struct lant_shm_gather gather = lant_shm_gather_begin(&access);
    rig_start(&rig, 0);
    for (uint32_t beat = 0; beat < 2; beat++) {
        assert_int_equal(rig_ask(&rig, lant_shm_access_beat(&access, beat, bytes), 0),
                         LANT_SHM_ISSUED);
        assert_true(rig_send(&rig, 0));
        packets[beat] = rig.packet;
    }
    assert_int_not_equal(packets[0].footer.row, packets[1].footer.row);
    for (uint32_t beat = 0; beat < 2; beat++) {
        assert_false(lant_shm_idle(&rig.shm));
        assert_int_equal(gather.unfinished, 2 - beat);
        assert_int_equal(rig_answer(&rig, &packets[1 - beat], LANT_OKAY, 0, 1),
                         LANT_SHM_ANSWER_DONE);
        const struct lant_shm_done done = rig_done(&rig, 1);
        lant_shm_gather_add(&gather, &access, &done, NULL);
    }
    assert_int_equal(gather.unfinished, 0);
    assert_int_equal(gather.response, LANT_OKAY);
    assert_true(lant_shm_idle(&rig.shm));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_packets),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_pending_full),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_nack),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_answer_overtakes),
        cmocka_unit_test(test_final),
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_pending_without_sequence),
        cmocka_unit_test(test_done_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
