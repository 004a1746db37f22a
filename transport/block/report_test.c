/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An answer says of every block up to the newest one seen whether it is complete, and if
 *         not, what came of it; it echoes the newest packet; `more` is set when something was left
 *         out, with which the next one goes on. Each path that asks has an echo of its own.
 * Method  Single packets of WRITEs that are marked without moving anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "transport/block/responder.h"

enum {
    MTU = 256,
    CONTEXTS = 256,
    MESSAGE_BYTES = 4 * MTU, /* One block of four packets each. */
};

#define BASE 0xfffffff0u /* The wrap comes soon. */

struct bench {
    struct block_contexts contexts;
    struct block_hold hold;
    struct block_responder responder;
    void *memory;
    struct instant now;
    uint32_t tsn;
};

static struct bench *begin(void)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    const size_t bytes = block_contexts_bytes(CONTEXTS);
    bench->memory = memset(aligned_alloc(64, bytes), 0, bytes);
    block_contexts_init(&bench->contexts, CONTEXTS, bench->memory);
    block_hold_init(&bench->hold, 0, MTU, bench->memory);
    const struct block_responder_config config = {
        .owner = 2, .session = 7, .window = 1024, .mtu_bytes = MTU, .first_number = BASE};
    block_responder_init(&bench->responder, &config, &bench->contexts, &bench->hold);
    bench->now = (struct instant){1000000};
    return bench;
}

static void end(struct bench *bench)
{
    block_responder_withdraw(&bench->responder);
    free(bench->memory);
    free(bench);
}

static struct block_packet packet_of(struct bench *bench, uint32_t block, uint8_t position)
{
    return (struct block_packet){.opcode = BLOCK_WRITE,
                                 .session = 7,
                                 .tsn = bench->tsn++,
                                 .number = BASE + block,
                                 .position = position,
                                 .last_position = 3,
                                 .last_block = true,
                                 .early = true,
                                 .path = 3,
                                 .message_bytes = MESSAGE_BYTES,
                                 .payload_bytes = MTU};
}

static struct block_case arrive(struct bench *bench, const struct block_packet *packet)
{
    const struct block_case it = block_responder_judge(&bench->responder, packet);
    block_responder_arrived(&bench->responder, packet, false, bench->now, bench->now);
    return it;
}

/* A packet that finds its place. */
static void mark(struct bench *bench, uint32_t block, uint8_t position)
{
    const struct block_packet packet = packet_of(bench, block, position);
    assert_int_equal(arrive(bench, &packet).arrived, BLOCK_ARRIVED_NEW);
    struct block_context *context = block_responder_context(&bench->responder, &packet, bench->now);
    block_responder_begin(&bench->responder, context, &packet);
    block_responder_placed(&bench->responder, context, position);
}

static struct block_answer answer(struct bench *bench)
{
    struct block_packet packet = {.opcode = BLOCK_ANSWER};
    block_responder_answer(&bench->responder, bench->now, &packet.answer);
    assert_int_equal(block_judge(&packet, MTU), BLOCK_CONSISTENT);
    return packet.answer;
}

static void check_record(const struct block_record *record, uint32_t block, enum block_state state,
                         uint64_t bitmap)
{
    assert_int_equal(record->number, BASE + block);
    assert_int_equal(record->state, state);
    assert_int_equal(record->bitmap, bitmap);
}

/* EXA-97 */
static void holes_and_runs_are_listed(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct block_answer said = answer(bench);
    assert_int_equal(said.record_count, 0);
    assert_true(said.echo_void && !said.more);
    mark(bench, 2, 1);
    mark(bench, 3, 0);
    mark(bench, 3, 1);
    mark(bench, 3, 2);
    mark(bench, 3, 3);
    mark(bench, 20, 3);
    bench->now.ns += 500;
    said = answer(bench);
    assert_int_equal(said.record_count, 4);
    assert_false(said.more);
    check_record(&said.records[0], 0, BLOCK_STATE_RUN, 2);
    check_record(&said.records[1], 2, BLOCK_STATE_INCOMPLETE, 2);
    check_record(&said.records[2], 4, BLOCK_STATE_RUN, 16); /* All of block 3 has come. */
    check_record(&said.records[3], 20, BLOCK_STATE_INCOMPLETE, 8);
    assert_int_equal(said.echo_tsn, 5);
    assert_int_equal(said.echo_path, 3);
    assert_int_equal(said.echo_delay_ns, 500);
    end(bench);
}

static void what_is_left_out_is_said(void **state)
{
    (void)state;
    struct bench *bench = begin();
    for (uint32_t block = 1; block <= 5; block++) {
        mark(bench, block, 0);
    }
    const struct block_answer said = answer(bench);
    assert_int_equal(said.record_count, 4);
    assert_true(said.more);
    check_record(&said.records[3], 3, BLOCK_STATE_INCOMPLETE, 1);
    /* The next one says the rest, and the one after it begins anew. */
    const struct block_answer rest = answer(bench);
    assert_int_equal(rest.record_count, 2);
    assert_false(rest.more);
    check_record(&rest.records[0], 4, BLOCK_STATE_INCOMPLETE, 1);
    check_record(&rest.records[1], 5, BLOCK_STATE_INCOMPLETE, 1);
    check_record(&answer(bench).records[0], 0, BLOCK_STATE_RUN, 1);
    /* No record at all would mean that all have come: then it begins anew, too. */
    for (uint8_t position = 1; position < 4; position++) {
        mark(bench, 4, position);
        mark(bench, 5, position);
    }
    check_record(&answer(bench).records[0], 0, BLOCK_STATE_RUN, 1);
    end(bench);
    /* Nor does an answer look at more than BLOCK_ANSWER_WALK contexts. */
    bench = begin();
    for (uint32_t block = 0; block <= BLOCK_ANSWER_WALK; block++) {
        for (uint8_t position = 0; position < 4; position++) {
            mark(bench, block, position);
        }
    }
    const struct block_answer full = answer(bench);
    assert_int_equal(full.record_count, 0);
    assert_true(full.more);
    end(bench);
}

/* EXA-97. While the oldest is missed nothing is executed: of two answers one begins there, and the
 * answer to a probe does, however many others there are to name. */
static void the_oldest_is_named_all_the_time(void **state)
{
    (void)state;
    enum {
        BLOCKS = 90
    };
    struct bench *bench = begin();
    bool named[BLOCKS] = {false};
    uint32_t left = BLOCKS, answers = 0, without_base = 0;
    for (uint32_t block = 0; block < BLOCKS; block++) {
        mark(bench, block, 1);
    }
    for (; left != 0; answers++) {
        const struct block_answer said = answer(bench);
        without_base = said.records[0].number == BASE ? 0 : without_base + 1;
        assert_in_range(without_base, 0, 1);
        for (uint32_t i = 0; i < said.record_count; i++) {
            const uint32_t block = said.records[i].number - BASE;
            left -= !named[block];
            named[block] = true;
        }
        assert_in_range(answers, 0, 2 * BLOCKS / BLOCK_RECORDS_MAX);
    }
    const struct block_packet probe = {.opcode = BLOCK_PROBE, .session = 7, .number = BASE + 90};
    for (uint32_t i = 0; i < 4; i++) {
        (void)arrive(bench, &probe);
        check_record(&answer(bench).records[0], 0, BLOCK_STATE_INCOMPLETE, 2);
    }
    end(bench);
}

static void what_was_declined_or_found_no_room_is_listed(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct block_packet packet = packet_of(bench, 4, 0);
    (void)arrive(bench, &packet);
    assert_true(block_responder_decline(&bench->responder, &packet, bench->now));
    assert_false(block_responder_decline(&bench->responder, &packet, bench->now));
    packet.round = 1;
    assert_true(block_responder_decline(&bench->responder, &packet, bench->now));
    /* 16 blocks of one set leave no room for the 17th. */
    const uint32_t sets = CONTEXTS / BLOCK_CONTEXT_WAYS;
    for (uint32_t i = 1; i <= 16; i++) {
        mark(bench, 1 + i * sets, 0);
    }
    packet = packet_of(bench, 1, 0);
    (void)arrive(bench, &packet);
    assert_null(block_responder_context(&bench->responder, &packet, bench->now));
    assert_true(bench->responder.answer_due);
    const struct block_answer said = answer(bench);
    check_record(&said.records[0], 0, BLOCK_STATE_RUN, 1);
    check_record(&said.records[1], 1, BLOCK_STATE_NO_CONTEXT, 0);
    check_record(&said.records[2], 2, BLOCK_STATE_RUN, 2);
    check_record(&said.records[3], 4, BLOCK_STATE_ORDER, 0);
    assert_int_equal(said.records[3].round, 1);
    /* Later answers know no more of the one without room than of those not seen. */
    struct block_answer later = said;
    while (later.more) {
        later = answer(bench);
    }
    later = answer(bench);
    check_record(&later.records[0], 0, BLOCK_STATE_RUN, 4);
    end(bench);
}

static void an_answer_is_due_when_it_is_asked_for(void **state)
{
    (void)state;
    struct bench *bench = begin();
    mark(bench, 0, 0);
    assert_false(bench->responder.answer_due);
    /* A hole behind which A comes, and the hole's end. */
    struct block_packet packet = packet_of(bench, 0, 3);
    packet.ack_request = true;
    (void)arrive(bench, &packet);
    struct block_context *context = block_responder_context(&bench->responder, &packet, bench->now);
    block_responder_begin(&bench->responder, context, &packet);
    assert_true(bench->responder.answer_due);
    (void)answer(bench);
    mark(bench, 0, 1);
    assert_false(bench->responder.answer_due);
    mark(bench, 0, 2);
    assert_true(bench->responder.answer_due);
    (void)answer(bench);
    /* A probe, even of what is executed. */
    const struct block_packet probe = {
        .opcode = BLOCK_PROBE, .session = 7, .number = BASE - 5, .tsn = 99};
    assert_int_equal(arrive(bench, &probe).arrived, BLOCK_ARRIVED_PROBE);
    assert_true(bench->responder.answer_due);
    const struct block_answer said = answer(bench);
    assert_true(said.answers_probe);
    assert_int_equal(said.echo_tsn, 99);
    end(bench);
}

static void ask(struct bench *bench, uint8_t path, bool asks)
{
    struct block_packet packet = packet_of(bench, 0, path);
    packet.path = path;
    packet.ack_request = asks;
    (void)arrive(bench, &packet);
}

/* Packets of several paths that come together are echoed, each by an answer of its own. */
static void each_path_that_asks_is_echoed(void **state)
{
    (void)state;
    struct bench *bench = begin();
    ask(bench, 0, true);
    ask(bench, 2, true);
    ask(bench, 0, false); /* Newer, so this one is echoed. */
    ask(bench, 1, false);
    assert_int_equal(answer(bench).echo_tsn, 2);
    assert_true(bench->responder.answer_due);
    const struct block_answer second = answer(bench);
    assert_int_equal(second.echo_path, 2);
    assert_int_equal(second.echo_tsn, 1);
    assert_false(bench->responder.answer_due);
    /* Nobody asks any more: the newest one, once. */
    const struct block_answer third = answer(bench);
    assert_int_equal(third.echo_path, 1);
    assert_true(answer(bench).echo_void);
    /* A status is echoed with the packet that it is about, whatever comes meanwhile. */
    ask(bench, 1, false);
    block_responder_refuse_for_now(&bench->responder);
    ask(bench, 2, true);
    ask(bench, 1, true);
    const struct block_answer status = answer(bench);
    assert_int_equal(status.status, BLOCK_STATUS_RNR);
    assert_int_equal(status.echo_tsn, 4);
    assert_int_equal(answer(bench).echo_tsn, 5);
    end(bench);
}

/* EXA-103 */
static void strangers_and_the_far_away_change_nothing(void **state)
{
    (void)state;
    struct bench *bench = begin();
    struct block_packet packet = packet_of(bench, 0, 0);
    packet.session = 8;
    assert_int_equal(block_responder_judge(&bench->responder, &packet).arrived,
                     BLOCK_ARRIVED_STRANGE);
    packet = packet_of(bench, 1024, 0);
    assert_int_equal(block_responder_judge(&bench->responder, &packet).arrived,
                     BLOCK_ARRIVED_BEYOND);
    packet = packet_of(bench, 1023, 0);
    assert_int_equal(block_responder_judge(&bench->responder, &packet).arrived, BLOCK_ARRIVED_NEW);
    packet = packet_of(bench, (uint32_t)-1, 0);
    assert_int_equal(block_responder_judge(&bench->responder, &packet).arrived,
                     BLOCK_ARRIVED_DUPLICATE);
    packet.opcode = BLOCK_READ;
    packet.early = false;
    packet.wanted = 1;
    packet.payload_bytes = 0;
    assert_int_equal(block_responder_judge(&bench->responder, &packet).arrived,
                     BLOCK_ARRIVED_REPEATED);
    packet.number = BASE - 1025;
    assert_int_equal(block_responder_judge(&bench->responder, &packet).arrived,
                     BLOCK_ARRIVED_BEFORE);
    end(bench);
}

/* A refusal is repeated to whatever comes, but once a millisecond. */
static void a_refusal_is_repeated(void **state)
{
    (void)state;
    struct bench *bench = begin();
    const struct block_packet packet = packet_of(bench, 0, 0);
    (void)arrive(bench, &packet);
    block_responder_refuse(&bench->responder, BLOCK_STATUS_ACCESS);
    block_responder_withdraw(&bench->responder);
    assert_true(bench->responder.answer_due);
    assert_int_equal(answer(bench).status, BLOCK_STATUS_ACCESS);
    bench->now.ns += BLOCK_REFUSAL_NS - 1;
    (void)arrive(bench, &packet);
    assert_false(bench->responder.answer_due);
    bench->now.ns += 1;
    (void)arrive(bench, &packet);
    assert_true(bench->responder.answer_due);
    const struct block_answer said = answer(bench);
    assert_int_equal(said.status, BLOCK_STATUS_ACCESS);
    assert_true(said.more && said.record_count == 0);
    end(bench);
}

/* Goal: an answer names the oldest READ that was refused. */
static void the_oldest_refused_read_is_named(void **state)
{
    (void)state;
    struct bench *bench = begin();
    mark(bench, 6, 1);
    block_responder_refuse_read(&bench->responder, BASE + 5);
    block_responder_refuse_read(&bench->responder, BASE + 3);
    block_responder_refuse_read(&bench->responder, BASE + 4);
    const struct block_answer said = answer(bench);
    assert_int_equal(said.status, BLOCK_STATUS_ACCESS);
    assert_int_equal(said.record_count, 1);
    check_record(&said.records[0], 3, BLOCK_STATE_REFUSED, 0);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes_and_runs_are_listed),
        cmocka_unit_test(what_is_left_out_is_said),
        cmocka_unit_test(the_oldest_is_named_all_the_time),
        cmocka_unit_test(what_was_declined_or_found_no_room_is_listed),
        cmocka_unit_test(an_answer_is_due_when_it_is_asked_for),
        cmocka_unit_test(each_path_that_asks_is_echoed),
        cmocka_unit_test(strangers_and_the_far_away_change_nothing),
        cmocka_unit_test(a_refusal_is_repeated),
        cmocka_unit_test(the_oldest_refused_read_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
