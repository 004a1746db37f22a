/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The receiving side of a reliable connection executes every request once and in order,
 *         answers duplicates, reports a gap once, and never lets an answer overtake another.
 * Method  One responder, fed by hand. (Against a requester, on bad networks: tests/scenarios.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "transport/ibta/rc_responder.h"

#define MTU       1024
#define RESOURCES 2
#define CREDITS   5

struct bench {
    struct rc_responder responder;
    struct rc_resource resources[RESOURCES];
    struct roce_packet packet;
};

static struct bench *begin(uint32_t expected)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_int_equal(rc_resource_entries(RESOURCES), RESOURCES);
    rc_responder_init(&bench->responder, psn_of(expected), MTU, RESOURCES, bench->resources);
    return bench;
}

static void end(struct bench *bench)
{
    rc_responder_check(&bench->responder);
    free(bench);
}

static enum rc_verdict judge(struct bench *bench, enum roce_operation operation, uint32_t psn,
                             uint32_t payload, uint32_t total)
{
    bench->packet = (struct roce_packet){
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, operation),
        .psn = psn & PSN_MASK,
        .payload_bytes = payload,
        .reth = {.address = 0x1000, .key = 9, .bytes = total},
    };
    rc_responder_check(&bench->responder);
    return rc_responder_judge(&bench->responder, &bench->packet);
}

/* A SEND or WRITE that is in order, its memory written at once. */
static void execute(struct bench *bench, enum roce_operation operation, uint32_t psn, bool ack)
{
    assert_int_equal(judge(bench, operation, psn, 8, 8), RC_VERDICT_EXECUTE);
    rc_responder_accept(&bench->responder, &bench->packet);
    rc_responder_on_moved(&bench->responder, psn_of(psn), ack);
}

static void accept_read(struct bench *bench, uint32_t psn, uint32_t bytes)
{
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, psn, 0, bytes), RC_VERDICT_EXECUTE);
    rc_responder_accept_read(&bench->responder, &bench->packet);
}

static struct rc_reply reply(struct bench *bench)
{
    const bool ready = rc_responder_ready(&bench->responder);
    const struct rc_reply answer = rc_responder_next_reply(&bench->responder, CREDITS);
    assert_int_equal(ready, answer.kind != RC_REPLY_NONE);
    rc_responder_check(&bench->responder);
    return answer;
}

static void expect_ack(struct bench *bench, uint32_t psn, uint32_t msn)
{
    const struct rc_reply answer = reply(bench);
    assert_int_equal(answer.kind, RC_REPLY_ACK);
    assert_int_equal(answer.psn.value, psn & PSN_MASK);
    assert_int_equal(answer.msn, msn);
    assert_int_equal(answer.syndrome, ROCE_AETH_ACK | CREDITS);
}

static void expect_nak(struct bench *bench, uint32_t psn, uint8_t syndrome)
{
    const struct rc_reply answer = reply(bench);
    assert_int_equal(answer.kind, RC_REPLY_NAK);
    assert_int_equal(answer.psn.value, psn & PSN_MASK);
    assert_int_equal(answer.syndrome, syndrome);
}

static void expect_response(struct bench *bench, uint32_t psn, enum roce_operation operation,
                            uint32_t offset, uint32_t bytes)
{
    const struct rc_reply answer = reply(bench);
    assert_int_equal(answer.kind, RC_REPLY_READ_RESPONSE);
    assert_int_equal(answer.psn.value, psn & PSN_MASK);
    assert_int_equal(answer.operation, operation);
    assert_int_equal(answer.offset, offset);
    assert_int_equal(answer.bytes, bytes);
}

static void expect_silence(struct bench *bench)
{
    assert_int_equal(reply(bench).kind, RC_REPLY_NONE);
}

/* -- Order and acknowledgements -----------------------------------------------------------------*/

static void test_acknowledgements_coalesce(void **state)
{
    (void)state;
    struct bench *bench = begin(0xffffff);
    execute(bench, ROCE_SEND_ONLY, 0xffffff, true);
    execute(bench, ROCE_WRITE_ONLY, 0, true);
    execute(bench, ROCE_SEND_ONLY, 1, false);
    expect_ack(bench, 0, 3); /* The MSN is that of now (9.7.5.1.4). */
    expect_silence(bench);
    end(bench);
}

/* An acknowledgement says that memory is written: not before the move is done. */
static void test_acknowledges_after_the_move(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    assert_int_equal(judge(bench, ROCE_WRITE_ONLY, 0, 8, 8), RC_VERDICT_EXECUTE);
    rc_responder_accept(&bench->responder, &bench->packet);
    expect_silence(bench);
    rc_responder_on_moved(&bench->responder, psn_of(0), true);
    expect_ack(bench, 0, 1);
    end(bench);
}

static void test_gap_is_reported_once(void **state)
{
    (void)state;
    struct bench *bench = begin(10);
    execute(bench, ROCE_SEND_ONLY, 10, false);
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 12, 8, 0), RC_VERDICT_REPORT_GAP);
    rc_responder_report_gap(&bench->responder, psn_of(12));
    expect_nak(bench, 11, ROCE_NAK_PSN_SEQUENCE);
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 13, 8, 0), RC_VERDICT_IN_GAP);
    expect_silence(bench);
    execute(bench, ROCE_SEND_ONLY, 11, false); /* It came: the next gap is news again. */
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 13, 8, 0), RC_VERDICT_REPORT_GAP);
    end(bench);
}

static void drop(struct bench *bench, uint32_t psn)
{
    const enum rc_verdict verdict = judge(bench, ROCE_SEND_ONLY, psn, 8, 0);
    if (verdict == RC_VERDICT_REPORT_GAP) {
        rc_responder_report_gap(&bench->responder, psn_of(psn));
    } else {
        assert_int_equal(verdict, RC_VERDICT_IN_GAP);
        rc_responder_pass_over(&bench->responder, psn_of(psn));
    }
}

/* Packets that were dropped beyond a gap have to come again, though the missing packet came before
 * the NAK left: nobody else asks for the last packet of a message. */
static void test_unsent_nak_asks_for_what_was_dropped(void **state)
{
    (void)state;
    for (uint32_t first = 0xfffff8; first != 8; first = (first + 1) & PSN_MASK) {
        struct bench *bench = begin(first);
        execute(bench, ROCE_SEND_ONLY, first, false);
        drop(bench, first + 3);
        drop(bench, first + 2); /* Not the farthest, as it comes again or late. */
        execute(bench, ROCE_SEND_ONLY, first + 1, true);
        execute(bench, ROCE_SEND_ONLY, first + 2, true);
        expect_nak(bench, first + 3, ROCE_NAK_PSN_SEQUENCE);
        expect_silence(bench);
        drop(bench, first + 4);
        expect_silence(bench); /* The requester resends all of them. */
        execute(bench, ROCE_SEND_ONLY, first + 3, true);
        expect_ack(bench, first + 3, 4);
        end(bench);
    }
}

/* The farthest of them counts, whichever came last. */
static void test_farthest_dropped_is_remembered(void **state)
{
    (void)state;
    struct bench *bench = begin(0xffffff);
    drop(bench, 0);
    drop(bench, 2);
    drop(bench, 1);
    for (uint32_t i = 0; i < 3; i++) {
        execute(bench, ROCE_SEND_ONLY, 0xffffff + i, true);
    }
    expect_nak(bench, 2, ROCE_NAK_PSN_SEQUENCE);
    expect_silence(bench);
    end(bench);
}

/* The two sides do not agree on the first PSN: nothing is ever taken. */
static void test_other_first_psn(void **state)
{
    (void)state;
    struct psn came;
    struct bench *bench = begin(10);
    assert_false(rc_responder_waits(&bench->responder, psn_of(10), &came));
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 4, 8, 0), RC_VERDICT_REPLAY);
    rc_responder_replay(&bench->responder, psn_of(4));
    assert_true(rc_responder_waits(&bench->responder, psn_of(10), &came));
    assert_int_equal(came.value, 4);
    drop(bench, 900);
    assert_true(rc_responder_waits(&bench->responder, psn_of(10), &came));
    assert_int_equal(came.value, 900);
    rc_responder_refuse(&bench->responder, psn_of(10), ROCE_NAK_INVALID_REQUEST);
    rc_responder_pass_over(&bench->responder, psn_of(901));
    assert_false(rc_responder_waits(&bench->responder, psn_of(10), &came)); /* It has come. */
    execute(bench, ROCE_SEND_ONLY, 10, true);
    assert_false(rc_responder_waits(&bench->responder, psn_of(10), &came));
    end(bench);
}

/* All of it came again before the NAK left: it would ask for what nobody has sent. */
static void test_unsent_nak_is_void_once_all_came(void **state)
{
    (void)state;
    struct bench *bench = begin(10);
    drop(bench, 12);
    execute(bench, ROCE_SEND_ONLY, 10, true);
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 9, 8, 0), RC_VERDICT_REPLAY);
    rc_responder_replay(&bench->responder, psn_of(9));
    execute(bench, ROCE_SEND_ONLY, 11, true);
    execute(bench, ROCE_SEND_ONLY, 12, true);
    expect_ack(bench, 12, 3);
    expect_silence(bench);
    drop(bench, 15); /* The next gap is another one. */
    expect_nak(bench, 13, ROCE_NAK_PSN_SEQUENCE);
    end(bench);
}

/* A READ passes what a stranger sent with PSNs of its responses. */
static void test_read_passes_what_was_dropped(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    drop(bench, 2);
    accept_read(bench, 0, 3 * MTU);
    expect_response(bench, 0, ROCE_READ_RESPONSE_FIRST, 0, MTU);
    expect_response(bench, 1, ROCE_READ_RESPONSE_MIDDLE, MTU, MTU);
    expect_response(bench, 2, ROCE_READ_RESPONSE_LAST, 2 * MTU, MTU);
    expect_silence(bench);
    end(bench);
}

/* A receive was posted, and the SEND came again, before the RNR NAK left: what was dropped behind
 * the SEND is asked for in its place; if nothing was, nothing is. */
static void test_unsent_rnr_nak_is_no_other(void **state)
{
    (void)state;
    for (uint32_t behind = 0; behind < 3; behind++) {
        struct bench *bench = begin(7);
        if (behind == 2) {
            drop(bench, 8);
        }
        assert_int_equal(judge(bench, ROCE_SEND_ONLY, 7, 8, 0), RC_VERDICT_EXECUTE);
        rc_responder_refuse(&bench->responder, psn_of(7), ROCE_AETH_RNR_NAK | 3);
        if (behind == 1) {
            drop(bench, 8);
        }
        execute(bench, ROCE_SEND_ONLY, 7, true);
        if (behind > 0) {
            expect_nak(bench, 8, ROCE_NAK_PSN_SEQUENCE);
        } else {
            expect_ack(bench, 7, 1);
        }
        expect_silence(bench);
        end(bench);
    }
}

/* A NAK acknowledges everything before it: it waits for moves that are under way. */
static void test_nak_waits_for_moves(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    assert_int_equal(judge(bench, ROCE_WRITE_ONLY, 0, 8, 8), RC_VERDICT_EXECUTE);
    rc_responder_accept(&bench->responder, &bench->packet);
    assert_int_equal(judge(bench, ROCE_WRITE_ONLY, 2, 8, 8), RC_VERDICT_REPORT_GAP);
    rc_responder_report_gap(&bench->responder, psn_of(2));
    expect_silence(bench);
    rc_responder_on_moved(&bench->responder, psn_of(0), true);
    expect_nak(bench, 1, ROCE_NAK_PSN_SEQUENCE);
    end(bench);
}

static void test_duplicate_is_acknowledged_not_executed(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    execute(bench, ROCE_SEND_ONLY, 0, true);
    execute(bench, ROCE_SEND_ONLY, 1, true);
    expect_ack(bench, 1, 2);
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 0, 8, 0), RC_VERDICT_REPLAY);
    rc_responder_replay(&bench->responder, psn_of(9));
    expect_ack(bench, 1, 2); /* The newest, whatever was repeated (9.7.5.1.3). */
    end(bench);
}

static void test_opcodes_out_of_order(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    assert_int_equal(judge(bench, ROCE_SEND_LAST, 0, 8, 0), RC_VERDICT_WRONG_ORDER);
    assert_int_equal(judge(bench, ROCE_SEND_FIRST, 0, 8, 0), RC_VERDICT_WRONG_LENGTH);
    assert_int_equal(judge(bench, ROCE_SEND_FIRST, 0, MTU, 0), RC_VERDICT_EXECUTE);
    rc_responder_accept(&bench->responder, &bench->packet);
    rc_responder_on_moved(&bench->responder, psn_of(0), false);
    assert_int_equal(judge(bench, ROCE_WRITE_ONLY, 1, 8, 8), RC_VERDICT_WRONG_ORDER);
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 1, 0, 8), RC_VERDICT_WRONG_ORDER);
    rc_responder_refuse(&bench->responder, psn_of(1), ROCE_NAK_INVALID_REQUEST);
    expect_nak(bench, 1, ROCE_NAK_INVALID_REQUEST);
    end(bench);
}

static void test_rnr_waits_for_the_same_request(void **state)
{
    (void)state;
    struct bench *bench = begin(7);
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 7, 8, 0), RC_VERDICT_EXECUTE);
    rc_responder_refuse(&bench->responder, psn_of(7), ROCE_AETH_RNR_NAK | 3);
    expect_nak(bench, 7, ROCE_AETH_RNR_NAK | 3);
    assert_int_equal(judge(bench, ROCE_SEND_ONLY, 8, 8, 0), RC_VERDICT_IN_GAP);
    execute(bench, ROCE_SEND_ONLY, 7, true);
    expect_ack(bench, 7, 1);
    end(bench);
}

/* -- READs and atomics --------------------------------------------------------------------------*/

static void test_read_responses(void **state)
{
    (void)state;
    struct bench *bench = begin(0xffffff);
    accept_read(bench, 0xffffff, 2 * MTU + 5);
    execute(bench, ROCE_WRITE_ONLY, 2, true); /* Three responses: its PSN is three further. */
    expect_response(bench, 0xffffff, ROCE_READ_RESPONSE_FIRST, 0, MTU);
    expect_response(bench, 0, ROCE_READ_RESPONSE_MIDDLE, MTU, MTU);
    expect_response(bench, 1, ROCE_READ_RESPONSE_LAST, 2 * MTU, 5);
    expect_ack(bench, 2, 2); /* Not before the responses, which it would declare lost. */
    expect_silence(bench);
    end(bench);
}

static void test_read_of_nothing(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    accept_read(bench, 0, 0);
    expect_response(bench, 0, ROCE_READ_RESPONSE_ONLY, 0, 0);
    expect_silence(bench);
    end(bench);
}

/* A READ behind a WRITE returns what was written. */
static void test_read_waits_for_moves(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    assert_int_equal(judge(bench, ROCE_WRITE_ONLY, 0, 8, 8), RC_VERDICT_EXECUTE);
    rc_responder_accept(&bench->responder, &bench->packet);
    accept_read(bench, 1, 8);
    expect_silence(bench);
    rc_responder_on_moved(&bench->responder, psn_of(0), false);
    expect_response(bench, 1, ROCE_READ_RESPONSE_ONLY, 0, 8);
    end(bench);
}

/* The memory of a WRITE turns out to be bad when the atomic behind it is under way already. */
static void test_atomic_behind_a_bad_move(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    assert_int_equal(judge(bench, ROCE_WRITE_ONLY, 0, 8, 8), RC_VERDICT_EXECUTE);
    rc_responder_accept(&bench->responder, &bench->packet);
    assert_int_equal(judge(bench, ROCE_FETCH_ADD, 1, 0, 0), RC_VERDICT_EXECUTE);
    rc_responder_accept_atomic(&bench->responder, &bench->packet);
    rc_responder_refuse(&bench->responder, psn_of(0), ROCE_NAK_REMOTE_OPERATIONAL);
    rc_responder_on_atomic(&bench->responder, psn_of(1), 77);
    expect_nak(bench, 0, ROCE_NAK_REMOTE_OPERATIONAL);
    expect_silence(bench);
    end(bench);
}

/* The requester has its data: the PSNs and the MSN move on, nothing is answered, and what is kept
 * for a duplicate makes room like any other. */
static void test_fetched_reads(void **state)
{
    (void)state;
    struct bench *bench = begin(0xffffff);
    for (uint32_t i = 0; i < 3 * RESOURCES; i++) {
        assert_int_equal(judge(bench, ROCE_READ_REQUEST, 0xffffff + 2 * i, 0, MTU + 1),
                         RC_VERDICT_EXECUTE);
        rc_responder_accept_fetched(&bench->responder, &bench->packet);
        expect_silence(bench);
    }
    execute(bench, ROCE_SEND_ONLY, 0xffffff + 6 * RESOURCES, true);
    expect_ack(bench, 0xffffff + 6 * RESOURCES, 3 * RESOURCES + 1);
    end(bench);
}

static void test_resent_read_starts_where_it_asks(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    accept_read(bench, 0, 3 * MTU);
    for (int i = 0; i < 3; i++) {
        reply(bench);
    }
    bench->packet.psn = 1;
    bench->packet.reth.address += MTU;
    bench->packet.reth.bytes = 2 * MTU;
    assert_int_equal(rc_responder_judge(&bench->responder, &bench->packet), RC_VERDICT_REPLAY_READ);
    rc_responder_replay_response(&bench->responder, &bench->packet);
    expect_response(bench, 1, ROCE_READ_RESPONSE_FIRST, MTU, MTU);
    expect_response(bench, 2, ROCE_READ_RESPONSE_LAST, 2 * MTU, MTU);
    expect_silence(bench);
    bench->packet.reth.bytes = 2 * MTU + 1; /* More than was asked for at first. */
    assert_int_equal(rc_responder_judge(&bench->responder, &bench->packet), RC_VERDICT_IGNORE);
    bench->packet.reth.bytes = MTU;
    bench->packet.reth.key++; /* By another key. */
    assert_int_equal(rc_responder_judge(&bench->responder, &bench->packet), RC_VERDICT_IGNORE);
    bench->packet.reth.key--;
    assert_int_equal(rc_responder_judge(&bench->responder, &bench->packet), RC_VERDICT_REPLAY_READ);
    bench->packet.reth.address++; /* Elsewhere. */
    assert_int_equal(rc_responder_judge(&bench->responder, &bench->packet), RC_VERDICT_IGNORE);
    end(bench);
}

static void test_atomic_is_executed_once(void **state)
{
    (void)state;
    struct bench *bench = begin(4);
    assert_int_equal(judge(bench, ROCE_FETCH_ADD, 4, 0, 0), RC_VERDICT_EXECUTE);
    rc_responder_accept_atomic(&bench->responder, &bench->packet);
    expect_silence(bench);
    assert_int_equal(judge(bench, ROCE_FETCH_ADD, 4, 0, 0), RC_VERDICT_REPLAY_ATOMIC);
    rc_responder_replay_response(&bench->responder, &bench->packet); /* Not executed yet. */
    expect_silence(bench);
    rc_responder_on_atomic(&bench->responder, psn_of(4), 1234);
    for (int i = 0; i < 2; i++) {
        const struct rc_reply answer = reply(bench);
        assert_int_equal(answer.kind, RC_REPLY_ATOMIC);
        assert_int_equal(answer.resource->original, 1234);
        assert_int_equal(judge(bench, ROCE_FETCH_ADD, 4, 0, 0), RC_VERDICT_REPLAY_ATOMIC);
        rc_responder_replay_response(&bench->responder, &bench->packet);
    }
    /* A different request at its PSN is not its duplicate. */
    assert_int_equal(judge(bench, ROCE_COMPARE_SWAP, 4, 0, 0), RC_VERDICT_IGNORE);
    end(bench);
}

static void test_no_more_resources_than_agreed(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    accept_read(bench, 0, 8);
    accept_read(bench, 1, 8);
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 2, 0, 8), RC_VERDICT_NO_RESOURCES);
    reply(bench);
    accept_read(bench, 2, 8); /* The answered one makes room, */
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 0, 0, 8),
                     RC_VERDICT_IGNORE); /* and is gone. */
    end(bench);
}

/* The limit changes in SQD: what nobody has heard the answer of is kept, and where it is kept may
 * change as well. */
static void test_limit_that_changes(void **state)
{
    (void)state;
    struct bench *bench = begin(0);
    struct rc_resource more[4] = {0};
    accept_read(bench, 0, 8);
    accept_read(bench, 1, 8);
    assert_true(rc_responder_may_limit(&bench->responder, 2));
    assert_false(rc_responder_may_limit(&bench->responder, 1));
    expect_response(bench, 0, ROCE_READ_RESPONSE_ONLY, 0, 8);
    assert_true(rc_responder_may_limit(&bench->responder, 1));
    assert_false(rc_responder_may_limit(&bench->responder, 0));
    rc_responder_set_limit(&bench->responder, 1);
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 0, 0, 8), RC_VERDICT_IGNORE);
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 2, 0, 8), RC_VERDICT_NO_RESOURCES);
    rc_responder_move(&bench->responder, 3, more);
    memset(bench->resources, 0xff, sizeof(bench->resources));
    rc_responder_set_limit(&bench->responder, 3);
    accept_read(bench, 2, 8);
    accept_read(bench, 3, 8);
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 4, 0, 8), RC_VERDICT_NO_RESOURCES);
    for (uint32_t psn = 1; psn <= 3; psn++) {
        expect_response(bench, psn, ROCE_READ_RESPONSE_ONLY, 0, 8);
        assert_int_equal(judge(bench, ROCE_READ_REQUEST, psn, 0, 8), RC_VERDICT_REPLAY_READ);
    }
    /* One that is asked for again goes with its replay. */
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 1, 0, 8), RC_VERDICT_REPLAY_READ);
    rc_responder_replay_response(&bench->responder, &bench->packet);
    rc_responder_set_limit(&bench->responder, 0);
    expect_silence(bench);
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, 4, 0, 8), RC_VERDICT_NO_RESOURCES);
    end(bench);
}

static void test_no_resources_at_all(void **state)
{
    (void)state;
    struct rc_responder responder;
    struct rc_resource none;
    rc_responder_init(&responder, psn_of(0), MTU, 0, &none);
    const struct roce_packet packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_READ_REQUEST)};
    assert_int_equal(rc_responder_judge(&responder, &packet), RC_VERDICT_NO_RESOURCES);
}

/* -- READs of 2^31 bytes in packets of 256: half of all PSNs ------------------------------------*/

#define LARGEST_BYTES   (1u << 31)
#define LARGEST_PACKETS (1u << 23)

static struct bench *begin_largest(void)
{
    struct bench *bench = begin(0);
    bench->responder.incoming.mtu_bytes = 256;
    return bench;
}

/* Its responses begin, and what lies behind it waits for them. */
static void test_largest_read(void **state)
{
    (void)state;
    struct bench *bench = begin_largest();
    accept_read(bench, 0, LARGEST_BYTES);
    expect_response(bench, 0, ROCE_READ_RESPONSE_FIRST, 0, 256);
    execute(bench, ROCE_WRITE_ONLY, LARGEST_PACKETS, true);
    expect_response(bench, 1, ROCE_READ_RESPONSE_MIDDLE, 256, 256);
    end(bench);
}

static void test_largest_read_is_refused(void **state)
{
    (void)state;
    struct bench *bench = begin_largest();
    accept_read(bench, 0, LARGEST_BYTES);
    rc_responder_refuse(&bench->responder, psn_of(0), ROCE_NAK_REMOTE_ACCESS);
    expect_nak(bench, 0, ROCE_NAK_REMOTE_ACCESS);
    expect_silence(bench);
    end(bench);
}

/* The whole of it may be asked for again; of what came before it nothing, since those PSNs are
 * ahead by now. */
static void test_largest_reads_are_kept(void **state)
{
    (void)state;
    struct bench *bench = begin_largest();
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t psn = i * LARGEST_PACKETS;
        assert_int_equal(judge(bench, ROCE_READ_REQUEST, psn, 0, LARGEST_BYTES),
                         RC_VERDICT_EXECUTE);
        rc_responder_accept_fetched(&bench->responder, &bench->packet);
        assert_int_equal(judge(bench, ROCE_READ_REQUEST, psn, 0, LARGEST_BYTES),
                         RC_VERDICT_REPLAY_READ);
    }
    expect_silence(bench);
    end(bench);
}

/* A requester has no more than half of all PSNs in flight, so that a responder can tell old ones
 * from new ones. One that has is not obeyed. */
static void test_too_much_in_flight(void **state)
{
    (void)state;
    struct bench *bench = begin_largest();
    accept_read(bench, 0, LARGEST_BYTES / 2);
    assert_int_equal(judge(bench, ROCE_READ_REQUEST, LARGEST_PACKETS / 2, 0, LARGEST_BYTES),
                     RC_VERDICT_NO_RESOURCES);
    accept_read(bench, LARGEST_PACKETS / 2, LARGEST_BYTES / 2);
    expect_response(bench, 0, ROCE_READ_RESPONSE_FIRST, 0, 256);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acknowledgements_coalesce),
        cmocka_unit_test(test_acknowledges_after_the_move),
        cmocka_unit_test(test_gap_is_reported_once),
        cmocka_unit_test(test_other_first_psn),
        cmocka_unit_test(test_unsent_nak_asks_for_what_was_dropped),
        cmocka_unit_test(test_farthest_dropped_is_remembered),
        cmocka_unit_test(test_unsent_nak_is_void_once_all_came),
        cmocka_unit_test(test_read_passes_what_was_dropped),
        cmocka_unit_test(test_unsent_rnr_nak_is_no_other),
        cmocka_unit_test(test_nak_waits_for_moves),
        cmocka_unit_test(test_duplicate_is_acknowledged_not_executed),
        cmocka_unit_test(test_opcodes_out_of_order),
        cmocka_unit_test(test_rnr_waits_for_the_same_request),
        cmocka_unit_test(test_read_responses),
        cmocka_unit_test(test_read_of_nothing),
        cmocka_unit_test(test_read_waits_for_moves),
        cmocka_unit_test(test_atomic_behind_a_bad_move),
        cmocka_unit_test(test_fetched_reads),
        cmocka_unit_test(test_resent_read_starts_where_it_asks),
        cmocka_unit_test(test_atomic_is_executed_once),
        cmocka_unit_test(test_no_more_resources_than_agreed),
        cmocka_unit_test(test_limit_that_changes),
        cmocka_unit_test(test_no_resources_at_all),
        cmocka_unit_test(test_largest_read),
        cmocka_unit_test(test_largest_read_is_refused),
        cmocka_unit_test(test_largest_reads_are_kept),
        cmocka_unit_test(test_too_much_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
