/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A unit whose answers cannot leave takes packets again when its patience ends. It may drop
 *         packets then, and their senders send them again (docs/decisions/0023-patience.md).
 * Method  Each unit by itself, beside a switch that takes nothing for a while.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "hardware/exanest/receiver_rig.h"
#include "hardware/exanest/rt_mailbox.h"
#include "hardware/exanest/system_mailbox.h"

#define OWN      RIG_COORDINATE
#define PATIENCE 300u
#define BLOCKS   50u

static const uint8_t payload[64];

static void test_replies(void **state)
{
    (void)state;
    struct exanest_replies replies;
    struct exanest_beat beat;
    const struct exanest_footer footer = {.tid = 1, .source = 5};
    exanest_replies_init(&replies, OWN, 4, PATIENCE, 2);
    exanest_replies_put_response(&replies, 0, &footer, EXANEST_ACK);
    for (uint32_t i = 0; i < 4 + PATIENCE; i++) {
        assert_false(exanest_replies_stuck(&replies));
        exanest_replies_step(&replies);
    }
    assert_true(exanest_replies_stuck(&replies));
    assert_true(exanest_replies_offer(&replies, &beat));
    exanest_replies_taken(&replies); /* A word of it is enough. */
    assert_false(exanest_replies_stuck(&replies));
    assert_int_equal(replies.longest, PATIENCE);
}

/* -- The receiver -------------------------------------------------------------------------------*/

static struct rig *impatient_rig(void)
{
    struct exanest_receiver_parameters parameters = exanest_receiver_defaults(OWN);
    parameters.patience_cycles = PATIENCE;
    return rig_new(&parameters, 1);
}

/* A block of one packet, or the control packet that goes with it. */
static void send_block(struct rig *rig, uint32_t tid, uint32_t sequence, bool notify,
                       bool is_control)
{
    const struct exanest_control control = {.address = {.coordinate = 3, .va = 0x100}};
    struct exanest_word words[2];
    exanest_control_encode(&control, words);
    const struct exanest_header header = {
        .target = {.coordinate = OWN, .va = 0x1000},
        .pdid = 1,
        .type = is_control ? EXANEST_CONTROL : EXANEST_WRITE,
        .bytes = 32,
        .has_footer = true,
    };
    const struct exanest_footer footer = {
        .tid = (uint16_t)tid,
        .source = 7,
        .sequence = (uint16_t)sequence,
        .first = true,
        .last = true,
        .notify = notify,
    };
    const struct test_packet packet = test_packet(&header, &footer, words);
    assert_true(rig_send(rig, &packet));
}

static void wait_in_vain(struct rig *rig)
{
    for (uint32_t i = 0; i < 2 * PATIENCE; i++) {
        rig_cycle(rig);
    }
}

static uint32_t count_of(const struct rig *rig, uint32_t type)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rig->reply_count; i++) {
        count += rig->replies[i].header.type == type;
    }
    return count;
}

/* EXA-46. */
static void test_receiver(void **state)
{
    (void)state;
    struct rig *rig = impatient_rig();
    const struct exanest_receiver_counters *counters = &rig->receiver.counters;
    rig->deaf = true;
    for (uint32_t tid = 0; tid < BLOCKS; tid++) {
        send_block(rig, tid, 0, false, false);
    }
    wait_in_vain(rig);
    rig->deaf = false;
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, rig->receiver.parameters.replies);
    assert_int_equal(counters->unanswered, BLOCKS - rig->reply_count);
    assert_int_equal(rig->receiver.table.used, 0);
    for (uint32_t tid = rig->reply_count; tid < BLOCKS; tid++) {
        send_block(rig, tid, 1, false, false);
    }
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, BLOCKS);
    assert_int_equal(counters->unanswered, BLOCKS - 4);
    free(rig);
}

/* EXA-56. With room for one reply of two, the block is not complete: neither is sent, until it is
 * sent again, and then both are. */
static void test_notification(void **state)
{
    (void)state;
    struct rig *rig = impatient_rig();
    rig->deaf = true;
    for (uint32_t tid = 0; tid < 3; tid++) {
        send_block(rig, tid, 0, false, false);
    }
    send_block(rig, 3, 0, true, true);
    send_block(rig, 3, 0, true, false);
    wait_in_vain(rig);
    assert_int_equal(rig->receiver.counters.unanswered, 1);
    rig->deaf = false;
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, 3);
    assert_int_equal(count_of(rig, EXANEST_NOTIFICATION), 0);
    /* Nothing of the packet was noted: a second copy of it alone completes the block. */
    send_block(rig, 3, 0, true, false);
    assert_true(rig_drain(rig));
    assert_int_equal(rig->reply_count, 5);
    assert_int_equal(count_of(rig, EXANEST_NOTIFICATION), 1);
    assert_int_equal(rig->receiver.table.used, 0);
    free(rig);
}

/* A packetizer's message, which it sends again if it hears nothing. */
static void test_message(void **state)
{
    (void)state;
    struct rig *rig = impatient_rig();
    rig->deaf = true;
    for (uint32_t tid = 0; tid < 4; tid++) {
        send_block(rig, tid, 0, false, false);
    }
    const struct exanest_header header = {.target = {.coordinate = OWN, .va = 0x1000},
                                          .pdid = 1,
                                          .type = EXANEST_WRITE,
                                          .bytes = 16,
                                          .has_footer = true,
                                          .priority = true};
    const struct exanest_footer footer = {.tid = 9, .source = 5, .first = true, .last = true};
    const struct test_packet packet = test_packet(&header, &footer, payload);
    assert_true(rig_send(rig, &packet));
    wait_in_vain(rig);
    assert_int_equal(rig->receiver.counters.unanswered, 1);
    assert_int_equal(rig->receiver.arrivals, 0);
    free(rig);
}

/* -- The mailboxes ------------------------------------------------------------------------------*/

static struct test_packet response(uint32_t tid)
{
    const struct exanest_header header = {
        .target = {.coordinate = OWN, .va = exanest_peripheral_va(EXANEST_RT_RESPONSES, 0)},
        .type = EXANEST_ACKNOWLEDGEMENT,
        .has_footer = true,
        .priority = true};
    const struct exanest_footer footer = {.tid = (uint16_t)tid, .source = 5};
    return test_packet(&header, &footer, NULL);
}

static struct test_packet request(void)
{
    const struct exanest_header header = {
        .target = {.coordinate = OWN, .va = exanest_peripheral_va(EXANEST_RT_READ_REQUESTS, 0)},
        .type = EXANEST_READ_REQUEST,
        .bytes = 48,
        .has_footer = true,
        .priority = true};
    const struct exanest_footer footer = {.tid = 77, .source = 5};
    return test_packet(&header, &footer, payload);
}

/* The cycles for which its header waits: `most` at most. */
static uint32_t rt_send(struct exanest_rt_mailbox *mailbox, const struct test_packet *packet,
                        uint32_t most)
{
    uint32_t waited = 0;
    for (; waited < most && !exanest_rt_mailbox_ready(mailbox, &packet->beats[0]); waited++) {
        exanest_rt_mailbox_waits(mailbox);
        exanest_rt_mailbox_step(mailbox);
    }
    for (uint32_t i = 0; waited < most && i < packet->count; i++) {
        assert_true(exanest_rt_mailbox_ready(mailbox, &packet->beats[i]));
        exanest_rt_mailbox_take(mailbox, &packet->beats[i]);
    }
    return waited;
}

static struct exanest_rt_mailbox *impatient_mailbox(void)
{
    struct exanest_rt_mailbox_parameters parameters = exanest_rt_mailbox_defaults(OWN);
    parameters.patience_cycles = PATIENCE;
    struct exanest_rt_mailbox *mailbox = malloc(sizeof(*mailbox));
    assert_non_null(mailbox);
    exanest_rt_mailbox_init(mailbox, &parameters);
    return mailbox;
}

/* An R5 that reads nothing: its patience begins anew with each response that it takes. */
static void test_responses(void **state)
{
    (void)state;
    struct exanest_rt_mailbox *mailbox = impatient_mailbox();
    struct test_packet packet;
    for (uint32_t i = 0; i < 64; i++) {
        packet = response(i);
        assert_int_equal(rt_send(mailbox, &packet, 1), 0);
    }
    packet = response(64);
    assert_int_equal(rt_send(mailbox, &packet, PATIENCE - 1), PATIENCE - 1);
    assert_int_equal(exanest_response_decode(exanest_rt_mailbox_read_response(mailbox)).tid, 0);
    assert_int_equal(rt_send(mailbox, &packet, 1), 0);
    assert_int_equal(rt_send(mailbox, &packet, 2 * PATIENCE), PATIENCE);
    assert_int_equal(mailbox->counters.responses_lost, 1);
    packet = request(); /* It needs no place among responses. */
    assert_int_equal(rt_send(mailbox, &packet, 1), 0);
    assert_int_equal(mailbox->requests, 1);
    for (uint32_t i = 1; i <= 64; i++) {
        assert_int_equal(exanest_response_decode(exanest_rt_mailbox_read_response(mailbox)).tid, i);
    }
    free(mailbox);
}

/* Requests whose acknowledgement cannot leave are not stored, responses are. */
static void test_requests(void **state)
{
    (void)state;
    struct exanest_rt_mailbox *mailbox = impatient_mailbox();
    const struct test_packet asks = request(), answers = response(1);
    for (uint32_t i = 0; i < mailbox->parameters.replies; i++) {
        assert_int_equal(rt_send(mailbox, &asks, 1), 0);
    }
    assert_in_range(rt_send(mailbox, &asks, 2 * PATIENCE), PATIENCE, PATIENCE + 4);
    assert_int_equal(rt_send(mailbox, &answers, 1), 0);
    assert_int_equal(mailbox->counters.unanswered, 1);
    assert_int_equal(mailbox->requests, mailbox->parameters.replies);
    assert_int_equal(mailbox->responses, 1);
    free(mailbox);
}

static uint32_t system_send(struct exanest_system_mailbox *mailbox, uint32_t type)
{
    const struct exanest_header header = {
        .target = {.coordinate = OWN, .va = exanest_peripheral_va(EXANEST_SYSTEM_MAILBOXES, 0)},
        .pdid = 1,
        .type = (uint8_t)type,
        .bytes = 16,
        .has_footer = true,
        .priority = type == EXANEST_WRITE};
    const struct exanest_footer footer = {.tid = 33, .source = 5, .first = true, .last = true};
    const struct test_packet packet = test_packet(&header, &footer, payload);
    struct exanest_memory_write write;
    uint32_t waited = 0;
    for (; !exanest_system_mailbox_ready(mailbox, &packet.beats[0]); waited++) {
        assert_true(waited < 2 * PATIENCE);
        exanest_system_mailbox_step(mailbox);
    }
    for (uint32_t i = 0; i < packet.count; i++) {
        exanest_system_mailbox_take(mailbox, &packet.beats[i]);
    }
    while (exanest_system_mailbox_next_write(mailbox, &write)) {
        if (write.last) {
            exanest_system_mailbox_on_write_response(mailbox, EXANEST_AXI_OKAY);
        }
    }
    return waited;
}

/* EXA-56. Messages are dropped; notifications, which nobody answers, are stored. */
static void test_system_mailbox(void **state)
{
    (void)state;
    struct exanest_system_mailbox_parameters parameters = exanest_system_mailbox_defaults(OWN);
    parameters.patience_cycles = PATIENCE;
    struct exanest_system_mailbox *mailbox = malloc(sizeof(*mailbox));
    assert_non_null(mailbox);
    exanest_system_mailbox_init(mailbox, &parameters);
    exanest_system_mailbox_open(mailbox, 0, 1, 0x1000, 100);
    for (uint32_t i = 0; i < parameters.replies; i++) {
        assert_int_equal(system_send(mailbox, EXANEST_WRITE), 0);
    }
    assert_in_range(system_send(mailbox, EXANEST_WRITE), PATIENCE, PATIENCE + 4);
    assert_int_equal(mailbox->counters.unanswered, 1);
    assert_int_equal(mailbox->queues[0].tail, parameters.replies);
    assert_int_equal(system_send(mailbox, EXANEST_NOTIFICATION), 0);
    assert_int_equal(mailbox->queues[0].tail, parameters.replies + 1);
    assert_int_equal(mailbox->counters.notifications_lost, 0);
    free(mailbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),        cmocka_unit_test(test_receiver),
        cmocka_unit_test(test_notification),   cmocka_unit_test(test_message),
        cmocka_unit_test(test_responses),      cmocka_unit_test(test_requests),
        cmocka_unit_test(test_system_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
