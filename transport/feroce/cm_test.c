/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The board's connection manager and table of queue pairs do what the RTL's do, with and
 *         without its mistakes.
 * Method  Requests of each kind in each state.
 *         Behaviours FER-03, FER-04, FER-05, FER-07, FER-08, FER-09, FER-10, FER-11, FER-12,
 *         FER-13, FER-14, FER-15, FER-16, FER-17, FER-18, FER-19, FER-20, FER-21, FER-22, FER-23,
 *         FER-26, FER-27, FER-28, FER-30, FER-31, FER-33, FER-145, FER-146.
 */
#include "transport/feroce/test_board.h"

static struct feroce_board *begin(uint32_t quirks)
{
    struct feroce_board_config config = test_config();
    config.window.quirks = quirks;
    return test_begin(&config);
}

static void drop_events(struct feroce_board *board)
{
    struct feroce_event event;
    while (feroce_board_next_event(board, &event)) {
    }
}

static struct feroce_cm close_of(uint32_t index)
{
    struct feroce_cm message = test_request(FEROCE_CLOSE_QP, 0x11, 0);
    message.remote = (struct feroce_side){.qpn = FEROCE_FIRST_QPN + index, .ip = TEST_BOARD_IP};
    return message;
}

/* FER-03, 04: other addresses and ports. FER-05: without info_valid nothing is opened. */
static void test_ignored(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    struct feroce_cm open = test_request(FEROCE_OPEN_QP, 0x11, 0);
    uint8_t bytes[FEROCE_CM_BYTES];
    feroce_cm_encode(FEROCE_CM_3, &open, bytes);
    assert_int_equal(
        feroce_board_on_cm(board, bytes, 64, TEST_BOARD_IP + 1, FEROCE_PORT_CM, FEROCE_PORT_CM),
        FEROCE_CM_ADDRESS);
    assert_int_equal(
        feroce_board_on_cm(board, bytes, 64, TEST_BOARD_IP, FEROCE_PORT_CM + 1, FEROCE_PORT_CM),
        FEROCE_CM_PORT);
    assert_int_equal(
        feroce_board_on_cm(board, bytes, 63, TEST_BOARD_IP, FEROCE_PORT_CM, FEROCE_PORT_CM),
        FEROCE_CM_LENGTH);
    open.info_valid = false;
    assert_int_equal(test_tell(board, &open), FEROCE_CM_NOTHING);
    /* FER-19: nor are NULL, SEND_QP_INFO and what has no name answered. */
    open.info_valid = true;
    static const uint8_t unanswered[] = {FEROCE_NULL, FEROCE_SEND_QP_INFO, 5, 6, 7};
    for (size_t i = 0; i < COUNT_OF(unanswered); i++) {
        open.request = unanswered[i];
        assert_int_equal(test_tell(board, &open), FEROCE_CM_NOTHING);
    }
    struct feroce_reply reply;
    assert_false(test_hear(board, test_at(0), &reply));
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(board->table.contexts[i].state, FEROCE_RESET);
    }
    test_end(board);
}

/* FER-07, 09 to 13, 21, 26, 27: OPEN after OPEN, until there is no queue pair left. */
static void test_open_all(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    struct feroce_cm open = test_request(FEROCE_OPEN_QP, 0x11, PSN_MASK);
    open.listening_port = 0xbeef;
    for (uint32_t i = 0; i < 8; i++) { /* The same request: each takes another one. */
        const struct feroce_reply reply = test_ask(board, &open);
        const struct feroce_cm *message = &reply.message;
        assert_int_equal(reply.ip, TEST_HOST_IP);
        assert_int_equal(reply.port, 0xbeef);
        assert_int_equal(message->request, FEROCE_OPEN_QP);
        assert_int_equal(message->ack, FEROCE_ACK);
        assert_true(message->info_valid && message->ack_valid);
        assert_int_equal(message->local.qpn, 256 + i);
        assert_int_equal(message->local.psn, 0);
        assert_int_equal(message->local.rkey, 0);
        assert_true(message->local.address == 0);
        assert_int_equal(message->local.ip, TEST_BOARD_IP);
        assert_memory_equal(&message->remote, &open.local, sizeof(open.local));
        assert_int_equal(message->listening_port, 0x4321);
        assert_false(message->meta.valid);
        assert_int_equal(message->meta.length | message->meta.count | message->meta.frequency, 0);
        assert_int_equal(board->table.contexts[i].state, FEROCE_RTS);
        /* The first PSN is the host's. */
        assert_int_equal(board->table.contexts[i].remote.psn, PSN_MASK);
        assert_int_equal(psn_after(board->window.windows[i].sent, 1).value, PSN_MASK);
    }
    const struct feroce_reply none = test_ask(board, &open);
    assert_int_equal(none.message.ack, FEROCE_ACK_NO_QP);
    assert_int_equal(none.ip, TEST_HOST_IP);
    assert_int_equal(none.message.request, FEROCE_OPEN_QP);
    test_end(board);
}

/* FER-08: what was closed comes after what was never open. FER-15 to 17: CLOSE elsewhere. */
static void test_close(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    for (uint32_t i = 0; i < 3; i++) {
        test_open(board, 0);
    }
    struct feroce_cm close = close_of(1);
    struct feroce_reply reply = test_ask(board, &close);
    assert_int_equal(reply.message.ack, FEROCE_ACK);
    assert_int_equal(reply.message.request, FEROCE_CLOSE_QP);
    assert_memory_equal(&reply.message.remote, &close.local, sizeof(close.local));
    assert_int_equal(reply.message.local.qpn, 257);
    assert_int_equal(reply.message.local.ip, TEST_BOARD_IP);
    reply = test_ask(board, &close);
    assert_int_equal(reply.message.ack, FEROCE_ACK_ERROR);
    drop_events(board);
    for (uint32_t next = 3; next <= 7; next++) {
        assert_int_equal(test_open(board, 0), next);
    }
    assert_int_equal(test_open(board, 0), 1);
    close.remote.qpn = 255;
    assert_int_equal(test_ask(board, &close).message.ack, FEROCE_ACK_NAK);
    close.remote.qpn = 264;
    assert_int_equal(test_ask(board, &close).message.ack, FEROCE_ACK_NAK);
    /* A queue pair in ERROR is closed like any other; FER-28: its syndrome stays till then. */
    test_store(board, 2, 1, test_at(0));
    test_sent(board, test_at(0));
    assert_int_equal(test_answer(board, 2, ROCE_NAK_REMOTE_ACCESS, 0, test_at(0)),
                     FEROCE_ARRIVAL_FATAL);
    assert_int_equal(board->table.contexts[2].state, FEROCE_ERROR);
    assert_int_equal(board->table.contexts[2].syndrome, ROCE_NAK_REMOTE_ACCESS);
    test_silent(board, test_at(0));
    assert_int_equal(board->table.contexts[2].syndrome, FEROCE_SYNDROME_LIMIT);
    assert_int_equal(board->table.contexts[2].first_syndrome, ROCE_NAK_REMOTE_ACCESS);
    close = close_of(2);
    assert_int_equal(test_ask(board, &close).message.ack, FEROCE_ACK);
    test_end(board);
}

/* A peer that refuses a packet and closes at once: that it was refused is told before that it was
 * closed, and once. */
static void test_refused_and_closed(void **state)
{
    (void)state;
    for (uint32_t given_up = 0; given_up < 2; given_up++) {
        struct feroce_board *board = begin(0);
        struct feroce_event event;
        test_open(board, 0);
        drop_events(board);
        test_store(board, 0, 1, test_at(0));
        test_sent(board, test_at(0));
        assert_int_equal(test_answer(board, 0, ROCE_NAK_INVALID_REQUEST, 0, test_at(0)),
                         FEROCE_ARRIVAL_FATAL);
        if (given_up != 0) {
            test_silent(board, test_at(0));
        }
        const uint8_t opcode = feroce_window_header(&board->window, 0, psn_of(0))->opcode;
        const struct feroce_cm close = close_of(0);
        assert_int_equal(test_ask(board, &close).message.ack, FEROCE_ACK);
        assert_true(feroce_board_next_event(board, &event));
        assert_int_equal(event.kind, FEROCE_EVENT_FAILED);
        assert_int_equal(event.syndrome, ROCE_NAK_INVALID_REQUEST);
        assert_int_equal(event.opcode, opcode);
        assert_true(feroce_board_next_event(board, &event));
        assert_int_equal(event.kind, FEROCE_EVENT_CLOSED);
        assert_false(feroce_board_next_event(board, &event));
        test_end(board);
    }
}

/* FER-14: with the RTL's mistake NO_QP and NAK go to whom the last reply went, with its fields. */
static void test_stale_error(void **state)
{
    (void)state;
    struct feroce_board *board = begin(FEROCE_QUIRK_STALE_ERROR);
    struct feroce_cm close = close_of(77);
    struct feroce_reply reply = test_ask(board, &close);
    assert_int_equal(reply.ip, 0);
    assert_int_equal(reply.port, 0x4322);
    assert_int_equal(reply.message.request, FEROCE_NULL);
    assert_int_equal(reply.message.ack, FEROCE_ACK_NAK);
    for (uint32_t i = 0; i < 8; i++) {
        test_open(board, 0);
    }
    struct feroce_cm other = test_request(FEROCE_OPEN_QP, 0x22, 0);
    other.local.ip = TEST_HOST_IP + 9;
    other.listening_port = 0xbeef;
    reply = test_ask(board, &other);
    assert_int_equal(reply.ip, TEST_HOST_IP);
    assert_int_equal(reply.port, FEROCE_PORT_CM);
    assert_int_equal(reply.message.ack, FEROCE_ACK_NO_QP);
    assert_int_equal(reply.message.remote.qpn, 0x11);
    assert_int_equal(reply.message.local.qpn, 263);
    test_end(board);
}

/* FER-18, 145, 146: MODIFY after OPEN, and the latch that it sets. */
static void test_modify(void **state)
{
    (void)state;
    for (int with_latch = 0; with_latch < 2; with_latch++) {
        struct feroce_board *board = begin(with_latch ? FEROCE_QUIRK_LATCH : 0);
        test_open(board, 0);
        struct feroce_cm modify = close_of(0);
        modify.request = FEROCE_MODIFY_QP_RTS;
        assert_int_equal(test_ask(board, &modify).message.ack, FEROCE_ACK_ERROR);
        assert_int_equal(board->table.contexts[0].state, FEROCE_RTS);
        const struct feroce_cm open = test_request(FEROCE_OPEN_QP, 0x12, 0);
        const struct feroce_reply second = test_ask(board, &open);
        uint8_t bytes[FEROCE_CM_BYTES];
        feroce_cm_encode(FEROCE_CM_3, &second.message, bytes);
        assert_int_equal(bytes[0], with_latch ? 0xf3 : 0x33);
        assert_int_equal(second.message.local.qpn, 257);
        assert_int_equal(board->table.contexts[1].state, with_latch ? FEROCE_INIT : FEROCE_RTS);
        assert_int_equal(board->table.free_count, 6);
        /* Until a CLOSE, which frees the queue pair in INIT, too. */
        struct feroce_cm close = close_of(1);
        assert_int_equal(test_ask(board, &close).message.ack, FEROCE_ACK);
        assert_int_equal(test_ask(board, &open).message.ack, FEROCE_ACK);
        /* One that is not the board's: NAK, and the connection manager goes on. */
        modify.remote.qpn = 300;
        assert_int_equal(test_ask(board, &modify).message.ack, FEROCE_ACK_NAK);
        assert_int_equal(test_ask(board, &open).message.ack, FEROCE_ACK);
        test_end(board);
    }
}

/* FER-20: what the generator is to do comes alone, or with a request. */
static void test_meta(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    struct feroce_cm message = {
        .remote.qpn = 256,
        .meta = {.valid = true, .start = true, .length = 16384, .count = 3, .frequency = 9}};
    assert_int_equal(test_tell(board, &message), FEROCE_CM_TAKEN);
    struct feroce_event event;
    assert_true(feroce_board_next_event(board, &event));
    assert_int_equal(event.kind, FEROCE_EVENT_META);
    assert_int_equal(event.meta.frequency, 9);
    struct feroce_cm both = test_request(FEROCE_OPEN_QP, 0x11, 0);
    both.meta = message.meta;
    both.remote.qpn = 256;
    assert_int_equal(test_tell(board, &both), FEROCE_CM_TAKEN);
    assert_true(feroce_board_next_event(board, &event));
    assert_int_equal(event.kind, FEROCE_EVENT_OPENED);
    assert_true(feroce_board_next_event(board, &event));
    assert_int_equal(event.kind, FEROCE_EVENT_META);
    assert_int_equal(event.meta.length, 16384);
    message.remote.qpn = 264;
    assert_int_equal(test_tell(board, &message), FEROCE_CM_META_FOREIGN);
    test_end(board);
}

/* A second request waits, a third is lost; with the RTL's mistake the second one is. */
static void test_busy(void **state)
{
    (void)state;
    for (int rtl = 0; rtl < 2; rtl++) {
        struct feroce_board *board = begin(rtl ? FEROCE_QUIRK_BUSY : 0);
        const struct feroce_cm open = test_request(FEROCE_OPEN_QP, 0x11, 0);
        assert_int_equal(test_tell(board, &open), FEROCE_CM_TAKEN);
        assert_int_equal(test_tell(board, &open), rtl ? FEROCE_CM_LOST : FEROCE_CM_TAKEN);
        assert_int_equal(test_tell(board, &open), FEROCE_CM_LOST);
        struct feroce_reply reply;
        assert_true(test_hear(board, test_at(0), &reply));
        assert_int_equal(test_hear(board, test_at(0), &reply), !rtl);
        test_end(board);
    }
}

/* Datagrams that come faster than the world looks cannot make more events than there is room. */
static void test_events_are_bounded(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    struct feroce_cm message = {.remote.qpn = 256,
                                .meta = {.valid = true, .start = true, .length = 4, .count = 1}};
    for (int i = 0; i < 1000; i++) {
        test_tell(board, &message);
    }
    assert_true(board->cm_arrivals[FEROCE_CM_LOST] > 900);
    assert_true(board->event_count + FEROCE_QPS_MAX <= FEROCE_EVENTS_MAX);
    drop_events(board);
    assert_int_equal(test_tell(board, &message), FEROCE_CM_TAKEN);
    test_end(board);
}

static struct feroce_cm answer_to(const struct feroce_reply *asked, enum feroce_ack ack)
{
    struct feroce_cm answer = asked->message;
    answer.ack_valid = true;
    answer.ack = (uint8_t)ack;
    answer.local =
        (struct feroce_side){.qpn = 0x33, .psn = 5, .rkey = 7, .ip = asked->ip, .address = 0x1000};
    answer.remote = asked->message.local;
    return answer;
}

/* The master: the board opens and closes by itself. */
static void test_master(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    struct feroce_reply asked;
    assert_int_equal(
        feroce_master_open(&board->master, &board->table, TEST_HOST_IP, FEROCE_PORT_CM_MASTER),
        FEROCE_STATUS_PENDING);
    assert_int_equal(feroce_master_open(&board->master, &board->table, TEST_HOST_IP, 1),
                     FEROCE_STATUS_BUSY);
    assert_true(test_hear(board, test_at(0), &asked));
    assert_int_equal(asked.ip, TEST_HOST_IP);
    assert_int_equal(asked.port, 0x4322);
    assert_int_equal(asked.message.local.qpn, 256);
    assert_int_equal(asked.message.remote.qpn, 0);
    assert_int_equal(asked.message.remote.ip, TEST_HOST_IP);
    /* FER-23: neither from elsewhere nor for someone else. */
    struct feroce_cm answer = answer_to(&asked, FEROCE_ACK);
    answer.local.ip++;
    assert_int_equal(test_tell(board, &answer), FEROCE_CM_UNASKED);
    answer = answer_to(&asked, FEROCE_ACK);
    answer.remote.ip++;
    assert_int_equal(test_tell(board, &answer), FEROCE_CM_UNASKED);
    answer = answer_to(&asked, FEROCE_ACK);
    assert_int_equal(test_tell(board, &answer), FEROCE_CM_TAKEN);
    assert_int_equal(board->master.status, FEROCE_STATUS_OK);
    assert_int_equal(board->table.contexts[0].state, FEROCE_RTS);
    assert_int_equal(board->table.contexts[0].remote.qpn, 0x33);
    assert_int_equal(board->table.contexts[0].remote.psn, 5);
    assert_int_equal(test_tell(board, &answer), FEROCE_CM_UNASKED);
    /* CLOSE; NO_QP is as good as an ACK. */
    assert_int_equal(feroce_master_close(&board->master, &board->table, 300, 1),
                     FEROCE_STATUS_FETCH);
    assert_int_equal(feroce_master_close(&board->master, &board->table, 256, FEROCE_PORT_CM),
                     FEROCE_STATUS_PENDING);
    assert_true(test_hear(board, test_at(0), &asked));
    assert_int_equal(asked.message.remote.qpn, 0x33);
    answer = answer_to(&asked, FEROCE_ACK_NO_QP);
    assert_int_equal(test_tell(board, &answer), FEROCE_CM_TAKEN);
    assert_int_equal(board->table.contexts[0].state, FEROCE_RESET);
    assert_int_equal(board->table.free_count, 8);
    test_end(board);
}

/* FER-22: once more, then TIMEOUT, and the QPN is free. A refusal frees it, or loses it. */
static void test_master_fails(void **state)
{
    (void)state;
    for (int rtl = 0; rtl < 2; rtl++) {
        struct feroce_board *board = begin(rtl ? FEROCE_QUIRK_LOST_STROBE : 0);
        struct feroce_reply asked;
        assert_int_equal(feroce_master_open(&board->master, &board->table, TEST_HOST_IP, 7),
                         FEROCE_STATUS_PENDING);
        assert_true(test_hear(board, test_at(0), &asked));
        assert_true(feroce_board_deadline(board).ns == 310000000);
        feroce_board_on_time(board, test_at(309999999));
        assert_false(test_hear(board, test_at(309999999), &asked));
        feroce_board_on_time(board, test_at(310000000));
        assert_true(test_hear(board, test_at(310000000), &asked));
        feroce_board_on_time(board, test_at(620000000));
        assert_int_equal(board->master.status, FEROCE_STATUS_TIMEOUT);
        assert_false(test_hear(board, test_at(620000000), &asked));
        assert_int_equal(board->table.free_count, 8);
        assert_int_equal(feroce_master_open(&board->master, &board->table, TEST_HOST_IP, 7),
                         FEROCE_STATUS_PENDING);
        assert_true(test_hear(board, test_at(0), &asked));
        const struct feroce_cm answer = answer_to(&asked, FEROCE_ACK_ERROR);
        assert_int_equal(test_tell(board, &answer), FEROCE_CM_TAKEN);
        assert_int_equal(board->master.status, FEROCE_STATUS_FAILED);
        assert_int_equal(board->table.free_count, rtl ? 7 : 8);
        test_end(board);
    }
}

/* FER-33: the 32 bytes of a context, each field at its greatest value alone. */
static void test_context(void **state)
{
    (void)state;
    static const struct {
        struct feroce_context context;
        int at, bytes;
    } fields[] = {
        {{.remote.ip = UINT32_MAX}, 1, 4},      {{.remote.qpn = 0xffffff}, 5, 3},
        {{.local_qpn = 0xffffff}, 8, 3},        {{.remote.psn = 0xffffff}, 11, 3},
        {{.local_psn.value = 0xffffff}, 14, 3}, {{.remote.address = UINT64_MAX}, 17, 8},
        {{.remote.rkey = UINT32_MAX}, 25, 4},   {{.syndrome = 0xff}, 29, 1},
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        uint8_t out[FEROCE_CONTEXT_BYTES];
        feroce_context_encode(&fields[i].context, out);
        for (int at = 0; at < FEROCE_CONTEXT_BYTES; at++) {
            const bool within = at >= fields[i].at && at < fields[i].at + fields[i].bytes;
            assert_int_equal(out[at], within ? 0xff : 0);
        }
    }
    uint8_t out[FEROCE_CONTEXT_BYTES];
    feroce_context_encode(&(struct feroce_context){.state = FEROCE_ERROR}, out);
    assert_int_equal(out[0], 6);
}

/* FER-30: a message for a queue pair that is not in RTS is not taken. FER-31: OPEN sets back the
 * state of that queue pair only. */
static void test_states(void **state)
{
    (void)state;
    struct feroce_board *board = begin(0);
    const struct feroce_message message = {.length = 4};
    const uint8_t payload[4] = {0};
    assert_int_equal(feroce_board_store(board, 0, &message, payload, 4, true, test_at(0)),
                     FEROCE_STORE_NOT_OPEN);
    test_open(board, 10);
    test_open(board, 20);
    test_store(board, 0, 3, test_at(0));
    test_store(board, 1, 3, test_at(0));
    for (int i = 0; i < 6; i++) {
        test_sent(board, test_at(0));
    }
    assert_int_equal(test_answer(board, 0, 0, 11, test_at(0)), FEROCE_ARRIVAL_ACK);
    assert_int_equal(test_answer(board, 1, 0, 21, test_at(0)), FEROCE_ARRIVAL_ACK);
    /* Two timeouts each. */
    feroce_board_on_time(board, test_at(TEST_RTO_NS));
    test_sent(board, test_at(TEST_RTO_NS));
    test_sent(board, test_at(TEST_RTO_NS));
    assert_int_equal(board->window.windows[1].retries, 1);
    struct feroce_cm close = close_of(0);
    assert_int_equal(test_ask(board, &close).message.ack, FEROCE_ACK);
    drop_events(board);
    assert_int_equal(feroce_board_store(board, 0, &message, payload, 4, true, test_at(0)),
                     FEROCE_STORE_NOT_OPEN);
    for (int i = 0; i < 6; i++) {
        test_open(board, 30);
    }
    assert_int_equal(test_open(board, 40), 0);
    assert_int_equal(board->window.windows[0].retries, 0);
    assert_int_equal(board->window.windows[0].acked.value, 39);
    assert_int_equal(board->table.contexts[0].acked.value, 0);
    assert_int_equal(board->window.windows[1].retries, 1);
    assert_int_equal(board->window.windows[1].acked.value, 21);
    assert_int_equal(board->table.contexts[1].acked.value, 21);
    test_end(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_open_all),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_refused_and_closed),
        cmocka_unit_test(test_stale_error),
        cmocka_unit_test(test_modify),
        cmocka_unit_test(test_meta),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_events_are_bounded),
        cmocka_unit_test(test_master),
        cmocka_unit_test(test_master_fails),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_states),
    };
    return cmocka_run_group_tests_name("feroce_cm", tests, NULL, NULL);
}
