/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The board sends again what the RTL does, when it does, and gives up when it does.
 * Method  One queue pair of a board is driven step by step through losses and refusals.
 *         Behaviours FER-29, FER-32, FER-35, FER-52, FER-53, FER-54, FER-55, FER-56, FER-57,
 *         FER-58, FER-59, FER-60, FER-61, FER-62, FER-63, FER-65, FER-66, FER-67, FER-68, FER-69,
 *         FER-71, FER-72, FER-73, FER-74, FER-75, FER-76, FER-77, FER-78, FER-79, FER-100, FER-149,
 *         FER-150.
 */
#include "transport/common/timing.h"
#include "transport/feroce/test_board.h"

#define RTO TEST_RTO_NS

static struct feroce_board *begin(uint32_t quirks)
{
    struct feroce_board_config config = test_config();
    config.window.quirks = quirks;
    return test_begin(&config);
}

/* A board with one queue pair, and packets 5 to 10 of one message sent. */
static struct feroce_board *begin_flow(uint32_t quirks)
{
    struct feroce_board *board = begin(quirks);
    assert_int_equal(test_open(board, 5), 0);
    test_store(board, 0, 6, test_at(0));
    for (uint32_t psn = 5; psn <= 10; psn++) {
        assert_int_equal(test_sent(board, test_at(0)), psn);
    }
    test_silent(board, test_at(0));
    return board;
}

static const struct feroce_window *window_of(const struct feroce_board *board)
{
    return &board->window.windows[0];
}

/* FER-32, 52, 53: what is not an answer for one of the board's queue pairs. */
static void test_not_answers(void **state)
{
    (void)state;
    struct feroce_board *board = begin_flow(0);
    uint8_t bytes[64] = {0};
    for (int opcode = 0; opcode < 256; opcode++) {
        bytes[0] = (uint8_t)opcode;
        assert_int_equal(feroce_board_on_roce(board, bytes, sizeof(bytes), true, test_at(1)) ==
                             FEROCE_ARRIVAL_OTHER,
                         opcode != 0x11);
    }
    bytes[0] = 0x11;
    for (size_t count = 1; count < 20; count++) {
        assert_int_equal(feroce_board_on_roce(board, bytes, count, true, test_at(1)),
                         FEROCE_ARRIVAL_SHORT);
    }
    assert_int_equal(feroce_board_on_roce(board, bytes, 0, true, test_at(1)), FEROCE_ARRIVAL_OTHER);
    static const uint32_t foreign[] = {0, 1, 255, 264, 512, 0x10100, 0xffffff};
    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        assert_int_equal(test_answer(board, foreign[i] - FEROCE_FIRST_QPN, 0, 6, test_at(1)),
                         FEROCE_ARRIVAL_FOREIGN);
    }
    assert_int_equal(board->arrivals[FEROCE_ARRIVAL_FOREIGN], COUNT_OF(foreign) + 1);
    assert_int_equal(board->arrivals[FEROCE_ARRIVAL_SHORT], 19);
    assert_int_equal(test_answer(board, 1, 0, 6, test_at(1)), FEROCE_ARRIVAL_CLOSED);
    assert_int_equal(window_of(board)->acked.value, 4);
    test_end(board);
}

/* FER-54: a wrong ICRC is counted, and the ACK taken. FER-55: one ACK for several packets. FER-56,
 * 57: old ones, and ones ahead. FER-58, 59: fields that do not matter. */
static void test_acks(void **state)
{
    (void)state;
    struct feroce_board *board = begin_flow(0);
    uint8_t bytes[20] = {0x11, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0x7f, 0, 0, 7};
    bytes[12] = 0x80 | 0x15;                  /* Bit 7, and credits. */
    bytes[13] = bytes[14] = bytes[15] = 0xaa; /* MSN. */
    assert_int_equal(feroce_board_on_roce(board, bytes, 20, false, test_at(1)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(board->wrong_icrc, 1);
    assert_int_equal(window_of(board)->acked.value, 7);
    assert_int_equal(test_answer(board, 0, 0, 6, test_at(1)), FEROCE_ARRIVAL_OLD);
    assert_int_equal(test_answer(board, 0, 0, 7, test_at(1)), FEROCE_ARRIVAL_OLD);
    assert_int_equal(test_answer(board, 0, 0, 11, test_at(1)), FEROCE_ARRIVAL_AHEAD);
    assert_int_equal(test_answer(board, 0, 0x40, 8, test_at(1)), FEROCE_ARRIVAL_RESERVED);
    assert_int_equal(window_of(board)->acked.value, 7);
    test_silent(board, test_at(1));
    assert_int_equal(test_answer(board, 0, 0, 10, test_at(1)), FEROCE_ARRIVAL_ACK);
    assert_true(feroce_board_deadline(board).ns == INSTANT_NEVER.ns);
    test_end(board);
    /* With the RTL's mistake CPL goes wherever an ACK says. */
    board = begin_flow(FEROCE_QUIRK_ACK_ORDER);
    static const uint32_t wild[] = {9, 6, 77, 10};
    for (size_t i = 0; i < COUNT_OF(wild); i++) {
        assert_int_equal(test_answer(board, 0, 0, wild[i], test_at(1)), FEROCE_ARRIVAL_ACK);
        assert_int_equal(window_of(board)->acked.value, wild[i]);
    }
    test_end(board);
}

/* FER-60: a lost packet is sent again from its PSN on. FER-66: progress resets the retries. FER-63,
 * 100: triggers are counted, and no packet leaves before it is stored. */
static void test_lost_packet(void **state)
{
    (void)state;
    struct feroce_board *board = begin_flow(0);
    test_answer(board, 0, 0, 6, test_at(1));
    assert_int_equal(test_answer(board, 0, ROCE_NAK_PSN_SEQUENCE, 7, test_at(2)),
                     FEROCE_ARRIVAL_NAK);
    struct feroce_packet packet;
    for (uint32_t psn = 7; psn <= 10; psn++) {
        assert_true(feroce_board_next_packet(board, test_at(3), &packet));
        assert_int_equal(packet.psn.value, psn);
        assert_true(packet.resent);
        assert_int_equal(load_le32(packet.payload), psn - 4);
    }
    assert_int_equal(window_of(board)->retries, 1);
    assert_int_equal(board->window.sequence_rewinds, 1);
    assert_int_equal(board->window.resent, 4);
    test_answer(board, 0, 0, 7, test_at(4));
    test_silent(board, test_at(4));
    assert_int_equal(window_of(board)->retries, 0);
    test_store(board, 0, 1, test_at(4));
    assert_true(feroce_board_next_packet(board, test_at(4), &packet));
    assert_int_equal(packet.psn.value, 11);
    assert_false(packet.resent);
    test_end(board);
}

/* FER-65, 67, 68, 69, 29: the last packet is lost, then all are, until the queue pair is given up
 * after the eighth period. */
static void test_timeouts(void **state)
{
    (void)state;
    struct feroce_board *board = begin_flow(0);
    test_answer(board, 0, 0, 9, test_at(1000));
    test_store(board, 0, 1, test_at(2000)); /* Neither storing nor sending sets the timer anew. */
    assert_int_equal(test_sent(board, test_at(30000)), 11);
    assert_true(feroce_board_deadline(board).ns == 1000 + RTO);
    feroce_board_on_time(board, test_at(999 + RTO));
    test_silent(board, test_at(999 + RTO));
    for (uint64_t period = 1; period <= 7; period++) {
        const struct instant now = test_at(1000 + period * RTO);
        feroce_board_on_time(board, now);
        assert_int_equal(test_sent(board, now), 10);
        assert_int_equal(test_sent(board, now), 11);
        test_silent(board, now);
        assert_int_equal(window_of(board)->retries, period);
    }
    assert_int_equal(board->window.timeouts, 7);
    feroce_board_on_time(board, test_at(1000 + 8 * RTO));
    test_silent(board, test_at(1000 + 8 * RTO));
    struct feroce_event event;
    assert_true(feroce_board_next_event(board, &event));
    assert_int_equal(event.kind, FEROCE_EVENT_FAILED);
    assert_int_equal(event.syndrome, FEROCE_SYNDROME_LIMIT);
    assert_int_equal(board->table.contexts[0].state, FEROCE_ERROR);
    assert_int_equal(board->table.contexts[0].syndrome, 0x9f);
    assert_true(feroce_board_deadline(board).ns == INSTANT_NEVER.ns);
    test_end(board);
}

/* Without packets under way no timer runs; one that is stored then starts it (FER-69). */
static void test_timer_starts(void **state)
{
    (void)state;
    struct feroce_board *board = begin_flow(0);
    test_answer(board, 0, 0, 10, test_at(500));
    assert_true(feroce_board_deadline(board).ns == INSTANT_NEVER.ns);
    test_store(board, 0, 1, test_at(70000));
    assert_true(feroce_board_deadline(board).ns == 70000 + RTO);
    test_end(board);
}

/* FER-71, 72, 74: each wait is the table's, nothing leaves during it, and it may be for ever. */
static void test_rnr(void **state)
{
    (void)state;
    for (uint8_t code = 0; code < 32; code++) {
        struct feroce_board *board = begin_flow(0);
        test_answer(board, 0, 0, 6, test_at(1));
        assert_int_equal(test_answer(board, 0, (uint8_t)(ROCE_AETH_RNR_NAK | code), 7, test_at(9)),
                         FEROCE_ARRIVAL_RNR);
        const uint64_t end = 9 + rnr_timer_ns(code);
        assert_true(feroce_board_deadline(board).ns == end);
        assert_true(window_of(board)->timeout.ns == end + RTO);
        feroce_board_on_time(board, test_at(end - 1));
        test_silent(board, test_at(end - 1));
        /* FER-61: a NAK during the wait is ignored. */
        assert_int_equal(test_answer(board, 0, ROCE_NAK_PSN_SEQUENCE, 8, test_at(end - 1)),
                         FEROCE_ARRIVAL_WAITS);
        test_silent(board, test_at(end - 1));
        feroce_board_on_time(board, test_at(end));
        assert_int_equal(test_sent(board, test_at(end)), 7);
        assert_int_equal(window_of(board)->rnr_retries, 1);
        test_end(board);
    }
    for (uint8_t limit = 0; limit <= 7; limit++) {
        struct feroce_board_config config = test_config();
        config.window.rnr_limit = limit;
        struct feroce_board *board = test_begin(&config);
        test_open(board, 0);
        test_store(board, 0, 1, test_at(0));
        uint64_t now = 0, waits = 0;
        assert_int_equal(test_sent(board, test_at(now)), 0);
        while (waits < 100 && test_answer(board, 0, ROCE_AETH_RNR_NAK | 1, 0, test_at(now)) ==
                                  FEROCE_ARRIVAL_RNR) {
            now += rnr_timer_ns(1);
            feroce_board_on_time(board, test_at(now));
            assert_int_equal(test_sent(board, test_at(now)), 0);
            waits++;
        }
        assert_int_equal(waits, limit == 7 ? 100 : limit);
        test_silent(board, test_at(now));
        assert_int_equal(board->table.contexts[0].state, limit == 7 ? FEROCE_RTS : FEROCE_ERROR);
        test_end(board);
    }
}

/* FER-72: with a limit of 0 there is no wait, wherever the receiver is not ready. */
static void test_no_rnr(void **state)
{
    (void)state;
    for (int acks = 0; acks < 2; acks++) {
        struct feroce_board_config config = test_config();
        config.window.rnr_limit = 0;
        struct feroce_board *board = test_begin(&config);
        test_open(board, 0);
        test_store(board, 0, 2, test_at(0));
        assert_int_equal(test_sent(board, test_at(0)), 0);
        assert_int_equal(test_sent(board, test_at(0)), 1);
        if (acks) {
            assert_int_equal(test_answer(board, 0, 0, 0, test_at(1)), FEROCE_ARRIVAL_ACK);
            test_silent(board, test_at(1));
        }
        assert_int_equal(test_answer(board, 0, ROCE_AETH_RNR_NAK | 1, 1, test_at(2)),
                         FEROCE_ARRIVAL_FATAL);
        test_silent(board, test_at(2));
        assert_int_equal(board->table.contexts[0].state, FEROCE_ERROR);
        test_end(board);
    }
}

/* FER-73: an ACK during a wait. Ours sends again at once, the RTL after the RTO. */
static void test_ack_in_wait(void **state)
{
    (void)state;
    for (int rtl = 0; rtl < 2; rtl++) {
        struct feroce_board *board = begin_flow(rtl ? FEROCE_QUIRK_MR_RNR : 0);
        test_answer(board, 0, ROCE_AETH_RNR_NAK | 8, 8, test_at(10));
        assert_int_equal(test_answer(board, 0, 0, 6, test_at(20)), FEROCE_ARRIVAL_ACK);
        if (rtl) {
            test_silent(board, test_at(20));
            feroce_board_on_time(board, test_at(20 + RTO));
            assert_int_equal(test_sent(board, test_at(20 + RTO)), 7);
        } else {
            assert_int_equal(test_sent(board, test_at(20)), 8);
        }
        test_end(board);
    }
}

/* The same for a NAK that an ACK overtakes before the reader comes by, and for a wait that is over.
 * An ACK of what was refused settles it. */
static void test_ack_behind_nak(void **state)
{
    (void)state;
    for (int rtl = 0; rtl < 2; rtl++) {
        for (int waits = 0; waits < 2; waits++) {
            struct feroce_board *board = begin_flow(rtl ? FEROCE_QUIRK_MR_RNR : 0);
            const uint8_t syndrome = waits ? ROCE_AETH_RNR_NAK | 1 : ROCE_NAK_PSN_SEQUENCE;
            test_answer(board, 0, syndrome, 8, test_at(10));
            feroce_board_on_time(board, test_at(10 + rnr_timer_ns(1)));
            assert_int_equal(test_answer(board, 0, 0, 6, test_at(20000)), FEROCE_ARRIVAL_ACK);
            if (rtl) {
                test_silent(board, test_at(20000));
            } else {
                assert_int_equal(test_sent(board, test_at(20000)), 8);
            }
            test_end(board);
            board = begin_flow(rtl ? FEROCE_QUIRK_MR_RNR : 0);
            test_answer(board, 0, syndrome, 8, test_at(10));
            feroce_board_on_time(board, test_at(10 + rnr_timer_ns(1)));
            assert_int_equal(test_answer(board, 0, 0, 9, test_at(20000)), FEROCE_ARRIVAL_ACK);
            if (rtl) {
                test_silent(board, test_at(20000));
            } else {
                assert_int_equal(test_sent(board, test_at(20000)), 10);
            }
            test_end(board);
        }
    }
}

/* FER-62: the other codes end the queue pair. */
static void test_fatal(void **state)
{
    (void)state;
    for (uint8_t code = 1; code < 32; code++) {
        struct feroce_board *board = begin_flow(0);
        assert_int_equal(test_answer(board, 0, (uint8_t)(ROCE_AETH_NAK | code), 5, test_at(1)),
                         FEROCE_ARRIVAL_FATAL);
        test_silent(board, test_at(1));
        struct feroce_event event;
        assert_true(feroce_board_next_event(board, &event));
        assert_int_equal(event.kind, FEROCE_EVENT_FAILED);
        assert_int_equal(event.syndrome, ROCE_AETH_NAK | code);
        assert_false(feroce_board_next_event(board, &event));
        test_end(board);
    }
}

/* FER-149, 150: a packet that is lost each time, and a receiver that has not acknowledged what came
 * before it. Seven times, whatever retry_limit is; the RTL sends it again for ever. */
static void test_lost_each_time(void **state)
{
    (void)state;
    for (int rtl = 0; rtl < 2; rtl++) {
        struct feroce_board_config config = test_config();
        config.window.quirks = rtl ? FEROCE_QUIRK_UNCOUNTED : 0;
        config.window.retry_limit = 2;
        struct feroce_board *board = test_begin(&config);
        test_open(board, 5);
        test_store(board, 0, 6, test_at(0));
        for (int i = 0; i < 6; i++) {
            test_sent(board, test_at(0));
        }
        int again = 0;
        while (again < 50 &&
               test_answer(board, 0, ROCE_NAK_PSN_SEQUENCE, 8, test_at(1)) == FEROCE_ARRIVAL_NAK) {
            for (uint32_t psn = 8; psn <= 10; psn++) {
                assert_int_equal(test_sent(board, test_at(1)), psn);
            }
            test_silent(board, test_at(1));
            again++;
        }
        assert_int_equal(again, rtl ? 50 : 7);
        test_end(board);
    }
}

/* A NAK says that all in front of it has come, even if no ACK does: a receiver that names another
 * packet each time is not one that gets nowhere. (A responder sends no ACK beside a NAK.) */
static void test_naks_alone(void **state)
{
    (void)state;
    struct feroce_board_config config = test_config();
    config.window.rnr_limit = 2;
    struct feroce_board *board = test_begin(&config);
    test_open(board, 0);
    test_store(board, 0, 40, test_at(0));
    for (int i = 0; i < 40; i++) {
        test_sent(board, test_at(0));
    }
    uint64_t now = 0;
    for (uint32_t psn = 1; psn < 39; psn++) {
        const bool waits = psn % 2 == 0;
        assert_int_equal(test_answer(board, 0,
                                     waits ? ROCE_AETH_RNR_NAK | 1 : ROCE_NAK_PSN_SEQUENCE, psn,
                                     test_at(now)),
                         waits ? FEROCE_ARRIVAL_RNR : FEROCE_ARRIVAL_NAK);
        now += waits ? rnr_timer_ns(1) : 0;
        feroce_board_on_time(board, test_at(now));
        for (uint32_t next = psn; next < 40; next++) {
            assert_int_equal(test_sent(board, test_at(now)), next);
        }
    }
    test_end(board);
}

/* As if `packets` more had been stored, sent and acknowledged; the reader comes by. */
static void leap(struct feroce_board *board, uint32_t packets)
{
    struct feroce_window *window = &board->window.windows[0];
    struct psn *const psns[] = {&window->written, &window->sent, &window->acked, &window->high};
    uint32_t *const next = &board->table.contexts[0].remote.psn;
    for (size_t i = 0; i < COUNT_OF(psns); i++) {
        *psns[i] = psn_after(*psns[i], packets);
    }
    *next = psn_after(psn_of(*next), packets).value;
    test_silent(board, test_at(0));
}

/* FER-66: the same after more packets than half of all PSNs, not one of which was lost. */
static void test_naks_far_on(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct feroce_board_config config = test_config();
        config.window.rnr_limit = 2;
        struct feroce_board *board = test_begin(&config);
        test_open(board, 0);
        for (int i = 0; i < 3; i++) {
            leap(board, PSN_HALF / 2);
        }
        uint64_t now = 0;
        for (uint32_t psn = 3 * (PSN_HALF / 2); psn < 3 * (PSN_HALF / 2) + 20; psn++) {
            test_store(board, 0, 1, test_at(now));
            assert_int_equal(test_sent(board, test_at(now)), psn);
            assert_int_equal(test_answer(board, 0,
                                         waits ? ROCE_AETH_RNR_NAK | 1 : ROCE_NAK_PSN_SEQUENCE, psn,
                                         test_at(now)),
                             waits ? FEROCE_ARRIVAL_RNR : FEROCE_ARRIVAL_NAK);
            now += waits ? rnr_timer_ns(1) : 0;
            feroce_board_on_time(board, test_at(now));
            assert_int_equal(test_sent(board, test_at(now)), psn);
            assert_int_equal(test_answer(board, 0, 0, psn, test_at(now)), FEROCE_ARRIVAL_ACK);
            test_silent(board, test_at(now));
        }
        test_end(board);
    }
}

/* Packets that were sent before RD was set back may still be acknowledged: RD goes on behind them.
 */
static void test_late_ack(void **state)
{
    (void)state;
    struct feroce_board *board = begin_flow(0);
    feroce_board_on_time(board, test_at(RTO));
    assert_int_equal(test_sent(board, test_at(RTO)), 5);
    assert_int_equal(test_answer(board, 0, 0, 9, test_at(RTO + 1)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(test_sent(board, test_at(RTO + 1)), 10);
    test_silent(board, test_at(RTO + 1));
    test_end(board);
}

/* FER-75, 76: PSNs wrap; a queue stalls above `stop` and goes on at `release`. The figures are row
 * FER-A29's. */
static void test_stall(void **state)
{
    (void)state;
    static const struct {
        uint32_t bits, slots, stop, release;
    } sizes[] = {{21, 64, 50, 42}, {20, 32, 18, 10}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct feroce_board_config config = test_config();
        config.window.buffer_bits = sizes[i].bits;
        struct feroce_board *board = test_begin(&config);
        test_open(board, PSN_MASK - 20);
        assert_int_equal(board->window.slots, sizes[i].slots);
        assert_int_equal(feroce_stop(&board->window), sizes[i].stop);
        assert_int_equal(feroce_release(&board->window), sizes[i].release);
        uint32_t stored = 0, acked = 0;
        for (int round = 0; round < 20; round++) {
            while (feroce_board_has_room(board, 0)) {
                test_store(board, 0, 1, test_at(0));
                stored++;
                assert_int_equal(test_sent(board, test_at(0)),
                                 (PSN_MASK - 20 + stored - 1) & PSN_MASK);
            }
            assert_int_equal(stored - acked, sizes[i].stop + 1);
            while (!feroce_board_has_room(board, 0)) {
                test_answer(board, 0, 0, (PSN_MASK - 20 + acked) & PSN_MASK, test_at(0));
                acked++;
            }
            assert_int_equal(stored - acked, sizes[i].release);
        }
        /* Behind the stall the slots are still there; then there is no place at all. */
        while (stored - acked < sizes[i].slots) {
            test_store(board, 0, 1, test_at(0));
            stored++;
        }
        assert_int_equal(feroce_board_store(board, 0, &(struct feroce_message){.length = 4},
                                            (const uint8_t[4]){0}, 4, true, test_at(0)),
                         FEROCE_STORE_FULL);
        test_end(board);
    }
}

/* FER-77: a queue pair that is stalled does not hold up others. */
static void test_stalled_alone(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    test_open(board, 0);
    test_open(board, 0);
    while (feroce_board_has_room(board, 0)) {
        test_store(board, 0, 1, test_at(0));
        test_sent(board, test_at(0));
    }
    for (uint32_t psn = 0; psn < 40; psn++) {
        assert_true(feroce_board_has_room(board, 1));
        test_store(board, 1, 1, test_at(0));
        struct feroce_packet packet;
        assert_true(feroce_board_next_packet(board, test_at(0), &packet));
        assert_int_equal(packet.qpn, 257);
        assert_int_equal(packet.psn.value, psn);
    }
    test_end(board);
}

/* FER-78: configurations whose thresholds would wrap. */
static void test_refused(void **state)
{
    (void)state;
    struct feroce_board_config config = test_config();
    assert_null(feroce_board_refuses(&config));
    config.window.buffer_bits = 19; /* 16 slots; 2 * 8 + 6 = 22. */
    assert_non_null(feroce_board_refuses(&config));
    config.window.pmtu = 2048; /* 32. */
    assert_null(feroce_board_refuses(&config));
    config.window.qps = 16; /* 16. */
    assert_non_null(feroce_board_refuses(&config));
    static const struct {
        uint32_t qps, pmtu, bits;
    } wrong[] = {{3, 4096, 21}, {0, 4096, 21}, {32, 4096, 28}, {8, 128, 21},
                 {8, 8192, 21}, {8, 1000, 21}, {8, 4096, 29},  {8, 4096, 11}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        config = test_config();
        config.window.qps = wrong[i].qps;
        config.window.pmtu = wrong[i].pmtu;
        config.window.buffer_bits = wrong[i].bits;
        assert_non_null(feroce_board_refuses(&config));
    }
    config = test_config();
    config.window.sends_once = true;
    assert_non_null(feroce_board_refuses(&config));
    config.stack = FEROCE_STACK_2024;
    assert_non_null(feroce_board_refuses(&config));
    config.window.qps = 1;
    assert_null(feroce_board_refuses(&config));
}

/* FER-79: with the RTL's mistake a queue that is slower than the line is never stalled, and what is
 * not acknowledged is overwritten. Ours stalls. */
static void test_overwritten(void **state)
{
    (void)state;
    for (int rtl = 0; rtl < 2; rtl++) {
        struct feroce_board *board = begin(rtl ? FEROCE_QUIRK_STALL : 0);
        test_open(board, 0);
        uint32_t stored = 0;
        while (stored < 100 && feroce_board_has_room(board, 0)) {
            test_store(board, 0, 1, test_at(0));
            stored++;
            test_sent(board, test_at(0));
            for (int i = 0; i < 8; i++) { /* The reader comes by, and there is nothing. */
                test_silent(board, test_at(0));
            }
        }
        assert_int_equal(stored, rtl ? 100 : 51);
        assert_int_equal(board->window.overwritten, rtl ? 36 : 0);
        test_end(board);
    }
}

/* FER-35: packets of a queue pair that is closed do not leave. */
static void test_closed_with_packets(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    test_open(board, 0);
    test_store(board, 0, 10, test_at(0));
    test_sent(board, test_at(0));
    struct feroce_cm close = test_request(FEROCE_CLOSE_QP, 0x11, 0);
    close.remote.qpn = 256;
    assert_int_equal(test_ask(board, &close).message.ack, FEROCE_ACK);
    test_silent(board, test_at(0));
    feroce_board_on_time(board, test_at(100 * RTO));
    test_silent(board, test_at(100 * RTO));
    assert_int_equal(window_of(board)->written.value, PSN_MASK);
    test_end(board);
}

/* The board of 2024 waits for no ACK. One that comes after half of all PSNs, or after all of them,
 * makes it send nothing that was sent. */
static void test_silent_receiver(void **state)
{
    (void)state;
    static const uint32_t unanswered[] = {PSN_HALF + 100, PSN_MASK};
    for (size_t i = 0; i < COUNT_OF(unanswered); i++) {
        struct feroce_board_config config = test_config();
        config.stack = FEROCE_STACK_2024;
        config.window.qps = 1;
        config.window.sends_once = true;
        struct feroce_board *board = test_begin(&config);
        struct feroce_window *window = &board->window.windows[0];
        test_open(board, 5);
        leap(board, unanswered[i]);
        window->acked = psn_of(4);
        static const uint8_t payload[4];
        assert_int_equal(feroce_board_store(board, 0,
                                            &(struct feroce_message){.write = true, .length = 4},
                                            payload, 4, true, test_at(0)),
                         FEROCE_STORED);
        assert_int_equal(test_sent(board, test_at(0)), (5 + unanswered[i]) & PSN_MASK);
        (void)test_answer(board, 0, 0, 6, test_at(0));
        test_silent(board, test_at(0));
        assert_true(feroce_board_has_room(board, 0));
        test_end(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_answers),
        cmocka_unit_test(test_acks),
        cmocka_unit_test(test_lost_packet),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_timer_starts),
        cmocka_unit_test(test_rnr),
        cmocka_unit_test(test_no_rnr),
        cmocka_unit_test(test_ack_in_wait),
        cmocka_unit_test(test_ack_behind_nak),
        cmocka_unit_test(test_fatal),
        cmocka_unit_test(test_lost_each_time),
        cmocka_unit_test(test_naks_alone),
        cmocka_unit_test(test_naks_far_on),
        cmocka_unit_test(test_late_ack),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_stalled_alone),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_overwritten),
        cmocka_unit_test(test_closed_with_packets),
        cmocka_unit_test(test_silent_receiver),
    };
    return cmocka_run_group_tests_name("feroce_retransmission", tests, NULL, NULL);
}
