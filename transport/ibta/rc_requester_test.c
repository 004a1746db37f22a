/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The sending side of a reliable connection numbers, paces, resends and gives up as IBTA
 *         9.7 says.
 * Method  One requester and its queue, driven by hand: what it sends next, and what it makes of an
 *         acknowledgement, a response or the clock. (Against a responder, on bad networks:
 *         tests/scenarios.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "transport/common/timing.h"
#include "transport/ibta/rc_requester.h"

#define MTU 1024

/* The live NIC's policy. */
#define PACKET_COST      512
#define READ_PACKETS     512
#define READ_WAITS_BYTES 2048

static const struct rc_policy policy = {
    .packet_cost = PACKET_COST,
    .read_packets = READ_PACKETS,
    .read_waits_bytes = READ_WAITS_BYTES,
};

struct bench {
    struct rc_requester requester;
    struct send_queue queue;
    void *memory;
    struct instant now;
    bool draining;
    struct rc_outgoing out;
};

static struct rc_requester_config usual(void)
{
    return (struct rc_requester_config){
        .first_psn = psn_of(0xfffffe), /* The wrap comes with the third packet. */
        .mtu_bytes = MTU,
        .retry_limit = 2,
        .rnr_limit = 1,
        .reads_max = 2,
        .timeout_code = 14,
        .policy = &policy,
    };
}

static struct bench *begin(struct rc_requester_config config)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->memory = calloc(1, send_queue_bytes(64, 64));
    send_queue_init(&bench->queue, 64, 64, bench->memory);
    rc_requester_init(&bench->requester, &config);
    bench->now = (struct instant){1000};
    return bench;
}

static void end(struct bench *bench)
{
    rc_requester_check(&bench->requester, &bench->queue);
    free(bench->memory);
    free(bench);
}

static struct work *post(struct bench *bench, uint8_t kind, uint32_t bytes, uint8_t flags)
{
    assert_false(send_queue_full(&bench->queue));
    struct work *work = send_queue_at(&bench->queue, bench->queue.tail++);
    memset(work, 0, sizeof(*work));
    work->kind = kind;
    work->bytes = bytes;
    work->flags = flags;
    return work;
}

/* The next packet, or false. */
static bool pull(struct bench *bench)
{
    const bool ready =
        rc_requester_ready(&bench->requester, &bench->queue, bench->draining, bench->now);
    const bool got = rc_requester_next(&bench->requester, &bench->queue, bench->draining,
                                       bench->now, &bench->out);
    assert_int_equal(got, ready);
    rc_requester_check(&bench->requester, &bench->queue);
    return got;
}

static void expect(struct bench *bench, enum roce_operation operation, uint32_t psn)
{
    assert_true(pull(bench));
    assert_int_equal(bench->out.operation, operation);
    assert_int_equal(bench->out.psn.value, psn & PSN_MASK);
}

static uint32_t pull_all(struct bench *bench)
{
    uint32_t count = 0;
    while (pull(bench)) {
        count++;
    }
    return count;
}

static struct rc_progress aeth(struct bench *bench, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
    const struct rc_progress progress = rc_requester_on_ack(&bench->requester, &bench->queue,
                                                            psn_of(psn), syndrome, msn, bench->now);
    rc_requester_check(&bench->requester, &bench->queue);
    return progress;
}

static struct rc_progress ack(struct bench *bench, uint32_t psn)
{
    return aeth(bench, psn, ROCE_AETH_ACK | ROCE_AETH_CREDITS_UNLIMITED, 0);
}

static struct rc_progress response(struct bench *bench, uint32_t psn, uint32_t bytes)
{
    struct rc_response response = {
        .psn = psn_of(psn), .syndrome = ROCE_AETH_CREDITS_UNLIMITED, .bytes = bytes};
    /* With the opcode that fits; what others mean: nic/ibta/rc_receive_test.c. */
    for (response.operation = ROCE_READ_RESPONSE_FIRST;; response.operation++) {
        struct rc_requester requester = bench->requester;
        const struct rc_progress progress =
            rc_requester_on_response(&bench->requester, &bench->queue, &response, bench->now);
        if (progress.verdict != RC_BAD_ORDER || response.operation == ROCE_READ_RESPONSE_ONLY) {
            return progress;
        }
        bench->requester = requester;
    }
}

/* Completes what is finished, as a queue pair does; returns how many. */
static uint32_t collect(struct bench *bench)
{
    uint32_t count = 0;
    while (rc_requester_completed(&bench->requester, &bench->queue) != NULL) {
        bench->queue.head++;
        count++;
    }
    return count;
}

/* -- Sending and acknowledgements ---------------------------------------------------------------*/

static void test_numbers_over_the_wrap(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 2 * MTU + 1, WORK_SIGNALED);
    post(bench, WORK_SEND, 0, WORK_SIGNALED);
    assert_false(bench->requester.retry_at.ns != UINT64_MAX);
    expect(bench, ROCE_WRITE_FIRST, 0xfffffe);
    assert_true(bench->out.alone);
    assert_false(bench->out.ack_request);
    expect(bench, ROCE_WRITE_MIDDLE, 0xffffff);
    assert_false(bench->out.alone);
    expect(bench, ROCE_WRITE_LAST, 0);
    assert_true(bench->out.ack_request && bench->out.last);
    assert_int_equal(bench->out.bytes, 1);
    expect(bench, ROCE_SEND_ONLY, 1);
    assert_false(pull(bench));
    assert_int_equal(collect(bench), 0);
    assert_int_equal(ack(bench, 0xffffff).verdict, RC_PROGRESS); /* In the middle of a message. */
    assert_int_equal(collect(bench), 0);
    assert_int_equal(ack(bench, 1).verdict, RC_PROGRESS); /* Covers everything up to it. */
    assert_int_equal(collect(bench), 2);
    assert_true(bench->requester.retry_at.ns == UINT64_MAX);
    assert_true(rc_requester_drained(&bench->requester, &bench->queue));
    end(bench);
}

static void test_ignores_what_cannot_be(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    assert_int_equal(ack(bench, 0xfffffe).verdict, RC_STALE); /* Nothing was sent. */
    post(bench, WORK_WRITE, 1, WORK_SIGNALED);
    pull(bench);
    assert_int_equal(ack(bench, 0xfffffd).verdict, RC_STALE);           /* Before the first. */
    assert_int_equal(ack(bench, 0xffffff).verdict, RC_STALE);           /* Beyond the last. */
    assert_int_equal(aeth(bench, 0xfffffe, 0x40, 0).verdict, RC_STALE); /* Reserved. */
    assert_int_equal(response(bench, 0xfffffe, 1).verdict, RC_STALE);   /* Not a READ. */
    assert_int_equal(collect(bench), 0);
    assert_int_equal(ack(bench, 0xfffffe).verdict, RC_PROGRESS);
    assert_int_equal(ack(bench, 0xfffffe).verdict, RC_STALE); /* Again. */
    end(bench);
}

/* Long messages ask for acknowledgements on the way. */
static void test_asks_for_acknowledgements(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 100 * MTU, 0);
    uint32_t asked = 0, gap = 0;
    while (pull(bench)) {
        asked += bench->out.ack_request;
        gap = bench->out.ack_request ? 0 : gap + 1;
        assert_true(gap < 32);
    }
    assert_in_range(asked, 4, 5);
    assert_true(bench->out.ack_request); /* The last, since nothing follows. */
    end(bench);
}

/* -- Loss ---------------------------------------------------------------------------------------*/

static void test_sequence_nak_resends(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 3 * MTU, WORK_SIGNALED);
    post(bench, WORK_WRITE, 1, WORK_SIGNALED);
    assert_int_equal(pull_all(bench), 4);
    assert_int_equal(aeth(bench, 0xffffff, ROCE_NAK_PSN_SEQUENCE, 0).verdict, RC_SEQUENCE_NAK);
    expect(bench, ROCE_WRITE_MIDDLE, 0xffffff);
    assert_true(bench->out.resent);
    expect(bench, ROCE_WRITE_LAST, 0);
    expect(bench, ROCE_WRITE_ONLY, 1);
    assert_true(bench->out.resent);
    assert_false(pull(bench));
    assert_int_equal(ack(bench, 1).verdict, RC_PROGRESS);
    assert_int_equal(collect(bench), 2);
    end(bench);
}

static void test_gives_up_after_its_retries(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    struct work *work = post(bench, WORK_WRITE, 1, WORK_SIGNALED);
    for (int retry = 0; retry <= 2; retry++) {
        expect(bench, ROCE_WRITE_ONLY, 0xfffffe);
        const struct instant due = bench->requester.retry_at;
        assert_true(due.ns == bench->now.ns + ack_timeout_ns(14));
        bench->now = (struct instant){due.ns - 1};
        assert_int_equal(rc_requester_on_time(&bench->requester, &bench->queue, bench->now).verdict,
                         RC_STALE);
        bench->now = due;
        const struct rc_progress progress =
            rc_requester_on_time(&bench->requester, &bench->queue, bench->now);
        assert_int_equal(progress.verdict, retry < 2 ? RC_SEQUENCE_NAK : RC_FAILED);
        if (retry == 2) {
            assert_ptr_equal(progress.work, work);
            assert_int_equal(progress.status, COMPLETION_RETRY_EXCEEDED);
        }
    }
    assert_false(pull(bench));
    assert_int_equal(ack(bench, 0xfffffe).verdict, RC_STALE); /* Too late. */
    end(bench);
}

static void test_progress_renews_the_retries(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 4 * MTU, WORK_SIGNALED);
    assert_int_equal(pull_all(bench), 4);
    for (uint32_t psn = 0xfffffe; psn != 0x1000002; psn++) {
        for (int loss = 0; loss < 2; loss++) {
            bench->now = bench->requester.retry_at;
            assert_int_equal(
                rc_requester_on_time(&bench->requester, &bench->queue, bench->now).verdict,
                RC_SEQUENCE_NAK);
            pull_all(bench);
        }
        assert_int_equal(ack(bench, psn).verdict, RC_PROGRESS);
    }
    assert_int_equal(collect(bench), 1);
    end(bench);
}

static void test_timer_code_0_never_fires(void **state)
{
    (void)state;
    struct rc_requester_config config = usual();
    config.timeout_code = 0;
    struct bench *bench = begin(config);
    post(bench, WORK_WRITE, 1, 0);
    pull(bench);
    assert_true(bench->requester.retry_at.ns == UINT64_MAX);
    end(bench);
}

/* A link without room may never get any: the timer runs though nothing was sent. */
static void test_blocked_link_runs_the_timer(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    struct work *work = post(bench, WORK_WRITE, 1, 0);
    for (int retry = 0; retry <= 2; retry++) {
        rc_requester_blocked(&bench->requester, bench->now);
        bench->now = bench->requester.retry_at;
        const struct rc_progress progress =
            rc_requester_on_time(&bench->requester, &bench->queue, bench->now);
        assert_int_equal(progress.verdict, retry < 2 ? RC_SEQUENCE_NAK : RC_FAILED);
        assert_true(retry < 2 || progress.work == work);
    }
    end(bench);
}

static void test_fatal_naks(void **state)
{
    (void)state;
    static const struct {
        uint8_t syndrome, status;
    } naks[] = {{ROCE_NAK_INVALID_REQUEST, COMPLETION_REMOTE_INVALID_REQUEST},
                {ROCE_NAK_REMOTE_ACCESS, COMPLETION_REMOTE_ACCESS},
                {ROCE_NAK_REMOTE_OPERATIONAL, COMPLETION_REMOTE_OPERATION}};
    for (size_t i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
        struct bench *bench = begin(usual());
        post(bench, WORK_WRITE, 1, 0);
        struct work *second = post(bench, WORK_WRITE, 1, 0);
        pull_all(bench);
        /* The NAK of the second acknowledges the first. */
        const struct rc_progress progress = aeth(bench, 0xffffff, naks[i].syndrome, 0);
        assert_int_equal(progress.verdict, RC_FAILED);
        assert_ptr_equal(progress.work, second);
        assert_int_equal(progress.status, naks[i].status);
        assert_int_equal(collect(bench), 1);
        end(bench);
    }
}

/* -- Receiver not ready -------------------------------------------------------------------------*/

static void test_rnr_waits_and_gives_up(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    struct work *work = post(bench, WORK_SEND, 1, WORK_SIGNALED);
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    assert_int_equal(aeth(bench, 0xfffffe, ROCE_AETH_RNR_NAK | 12, 0).verdict, RC_RNR_NAK);
    assert_false(pull(bench));
    assert_true(bench->requester.retry_at.ns == UINT64_MAX); /* The transport timer stands. */
    bench->now = (struct instant){bench->now.ns + rnr_timer_ns(12) - 1};
    assert_false(pull(bench));
    bench->now.ns++;
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    const struct rc_progress progress = aeth(bench, 0xfffffe, ROCE_AETH_RNR_NAK | 12, 0);
    assert_int_equal(progress.verdict, RC_FAILED);
    assert_ptr_equal(progress.work, work);
    assert_int_equal(progress.status, COMPLETION_RNR_RETRY_EXCEEDED);
    end(bench);
}

static void test_rnr_limit_7_is_for_ever(void **state)
{
    (void)state;
    struct rc_requester_config config = usual();
    config.rnr_limit = 7;
    struct bench *bench = begin(config);
    post(bench, WORK_SEND, 1, WORK_SIGNALED);
    for (int i = 0; i < 1000; i++) {
        expect(bench, ROCE_SEND_ONLY, 0xfffffe);
        assert_int_equal(aeth(bench, 0xfffffe, ROCE_AETH_RNR_NAK | 1, 0).verdict, RC_RNR_NAK);
        bench->now = bench->requester.resume_at;
    }
    end(bench);
}

/* -- READs and atomics --------------------------------------------------------------------------*/

static void test_read_takes_its_psns_and_limits(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    struct work *read = post(bench, WORK_READ, 3 * MTU, 0);
    post(bench, WORK_FETCH_ADD, 8, 0);
    post(bench, WORK_READ, 1, 0);
    post(bench, WORK_WRITE, 1, 0);
    expect(bench, ROCE_READ_REQUEST, 0xfffffe);
    assert_int_equal(bench->out.bytes, 3 * MTU);
    expect(bench, ROCE_FETCH_ADD, 1); /* The READ's responses take three. */
    assert_false(pull(bench));        /* Two outstanding are allowed; order holds back the WRITE. */
    const struct rc_progress progress = response(bench, 0xfffffe, MTU);
    assert_int_equal(progress.verdict, RC_RESPONSE);
    assert_ptr_equal(progress.work, read);
    assert_int_equal(response(bench, 0xffffff, MTU).offset, MTU);
    assert_int_equal(response(bench, 0, MTU).offset, 2 * MTU);
    assert_int_equal(collect(bench), 0); /* Until the payloads are in memory. */
    read->moves_pending = 0;
    assert_int_equal(collect(bench), 1);
    expect(bench, ROCE_READ_REQUEST, 2);
    expect(bench, ROCE_WRITE_ONLY, 3);
    end(bench);
}

static void test_missing_response_is_asked_for_once(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_READ, 3 * MTU, 0);
    pull_all(bench);
    assert_int_equal(response(bench, 0xfffffe, MTU).verdict, RC_RESPONSE);
    assert_int_equal(response(bench, 0, MTU).verdict, RC_IMPLIED_NAK); /* The middle is lost. */
    assert_int_equal(response(bench, 0, MTU).verdict, RC_STALE);
    expect(bench, ROCE_READ_REQUEST, 0xffffff); /* From where it is missing. */
    assert_int_equal(bench->out.offset, MTU);
    assert_int_equal(bench->out.bytes, 2 * MTU);
    assert_int_equal(response(bench, 0xffffff, MTU).verdict, RC_RESPONSE);
    assert_int_equal(response(bench, 0, MTU).verdict, RC_RESPONSE);
    end(bench);
}

/* An acknowledgement of something later says that the response was lost (9.7.5.1.2). */
static void test_acknowledgement_implies_a_lost_response(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 1, 0);
    post(bench, WORK_COMPARE_SWAP, 8, 0);
    post(bench, WORK_WRITE, 1, 0);
    pull_all(bench);
    assert_int_equal(ack(bench, 0).verdict, RC_IMPLIED_NAK);
    assert_int_equal(collect(bench), 1);
    expect(bench, ROCE_COMPARE_SWAP, 0xffffff);
    assert_true(bench->out.resent);
    end(bench);
}

static void test_wrong_response_length(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    struct work *read = post(bench, WORK_READ, MTU + 5, 0);
    pull_all(bench);
    assert_int_equal(response(bench, 0xfffffe, MTU).verdict, RC_RESPONSE);
    const struct rc_progress progress = response(bench, 0xffffff, 6);
    assert_int_equal(progress.verdict, RC_BAD_LENGTH);
    assert_ptr_equal(progress.work, read);
    assert_int_equal(progress.status, COMPLETION_BAD_RESPONSE);
    end(bench);
}

static void test_fence_waits_for_reads(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_READ, 1, 0);
    post(bench, WORK_WRITE, 1, 0);
    post(bench, WORK_WRITE, 1, WORK_FENCE);
    expect(bench, ROCE_READ_REQUEST, 0xfffffe);
    expect(bench, ROCE_WRITE_ONLY, 0xffffff);
    assert_false(pull(bench));
    assert_int_equal(response(bench, 0xfffffe, 1).verdict, RC_RESPONSE);
    assert_false(pull(bench)); /* Its data are not in memory yet. */
    send_queue_at(&bench->queue, bench->queue.head)->moves_pending = 0;
    expect(bench, ROCE_WRITE_ONLY, 0);
    end(bench);
}

/* -- Pacing -------------------------------------------------------------------------------------*/

/* A full window opens again when a quarter of it is free, and no sooner. */
static void test_window(void **state)
{
    (void)state;
    struct rc_requester_config config = usual();
    config.first_psn = psn_of(0);
    config.window_bytes = 16 * (MTU + PACKET_COST);
    struct bench *bench = begin(config);
    post(bench, WORK_WRITE, 64 * MTU, 0);
    assert_int_equal(pull_all(bench), 16);
    assert_true(bench->out.ack_request); /* Or the window would never open. */
    for (uint32_t psn = 0; psn < 3; psn++) {
        ack(bench, psn);
        assert_false(pull(bench));
    }
    ack(bench, 3);
    assert_int_equal(pull_all(bench), 4);
    ack(bench, 19);
    assert_int_equal(pull_all(bench), 16);
    end(bench);
}

static void test_window_smaller_than_a_packet_still_moves(void **state)
{
    (void)state;
    struct rc_requester_config config = usual();
    config.window_bytes = 100;
    struct bench *bench = begin(config);
    post(bench, WORK_WRITE, 3 * MTU, 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(pull_all(bench), 1);
        assert_true(bench->out.ack_request);
        ack(bench, 0xfffffe + i);
    }
    assert_int_equal(collect(bench), 1);
    end(bench);
}

static void test_loss_shrinks_the_window_and_progress_grows_it(void **state)
{
    (void)state;
    struct rc_requester_config config = usual();
    config.first_psn = psn_of(0);
    config.window_bytes = 64 * (MTU + PACKET_COST);
    config.retry_limit = 7;
    struct bench *bench = begin(config);
    post(bench, WORK_WRITE, 1000 * MTU, 0);
    assert_int_equal(pull_all(bench), 64);
    for (int loss = 0; loss < 6; loss++) {
        bench->now = bench->requester.retry_at;
        (void)!rc_requester_on_time(&bench->requester, &bench->queue, bench->now).verdict;
    }
    assert_int_equal(pull_all(bench), 16); /* The least there is. */
    uint32_t acked = 16;
    ack(bench, acked - 1);
    for (int round = 0; round < 200 && acked < 900; round++) {
        acked += pull_all(bench);
        ack(bench, acked - 1);
    }
    assert_int_equal(bench->requester.window, config.window_bytes);
    end(bench);
}

/* Where the path sets no limit a loss does, until enough has come through again. */
static void test_loss_limits_an_unlimited_path(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 40 * MTU, 0);
    assert_int_equal(pull_all(bench), 40);
    assert_int_equal(aeth(bench, 0xfffffe, ROCE_NAK_PSN_SEQUENCE, 0).verdict, RC_SEQUENCE_NAK);
    assert_int_equal(pull_all(bench), 20);
    assert_true(bench->out.ack_request);
    for (int i = 0; i < 50; i++) {
        post(bench, WORK_WRITE, 400 * MTU, 0);
    }
    while (bench->requester.window != 0) {
        assert_int_equal(ack(bench, bench->requester.send.value - 1).verdict, RC_PROGRESS);
        collect(bench);
        assert_true(pull_all(bench) > 0);
    }
    for (int i = 0; i < 4; i++) {
        post(bench, WORK_WRITE, 400 * MTU, 0);
    }
    assert_in_range(pull_all(bench), 1600, 5000);
    end(bench);
}

/* End-to-end credits (9.7.7.2): no SEND without a receive for it, but for one that asks. */
static void test_credits(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    for (int i = 0; i < 6; i++) {
        post(bench, WORK_SEND, 1, WORK_SIGNALED);
    }
    assert_int_equal(pull_all(bench), 6); /* Nothing known: nothing limits. */
    assert_int_equal(aeth(bench, 3, ROCE_AETH_ACK | 2, 6).verdict, RC_PROGRESS);
    collect(bench);
    for (int i = 0; i < 6; i++) {
        post(bench, WORK_SEND, 1, WORK_SIGNALED);
    }
    assert_int_equal(pull_all(bench), 2);
    assert_int_equal(aeth(bench, 5, ROCE_AETH_ACK | 0, 8).verdict, RC_PROGRESS);
    assert_int_equal(pull_all(bench), 1); /* On its own, to learn of new ones. */
    assert_int_equal(aeth(bench, 6, ROCE_AETH_ACK | ROCE_AETH_CREDITS_UNLIMITED, 9).verdict,
                     RC_PROGRESS);
    assert_int_equal(pull_all(bench), 3);
    end(bench);
}

/* Nobody signals these, and others follow; but who has no credit left has to learn of new ones. */
static void test_last_credit_asks(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_SEND, 1, WORK_SIGNALED);
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    assert_int_equal(aeth(bench, 0xfffffe, ROCE_AETH_ACK | 2, 1).verdict, RC_PROGRESS);
    post(bench, WORK_WRITE, 1, 0);
    for (int i = 0; i < 4; i++) {
        post(bench, WORK_SEND, 1, 0);
    }
    expect(bench, ROCE_WRITE_ONLY, 0xffffff);
    expect(bench, ROCE_SEND_ONLY, 0);
    assert_true(bench->out.ack_request);
    assert_false(pull(bench));
    assert_int_equal(aeth(bench, 0, ROCE_AETH_ACK | 0, 3).verdict, RC_PROGRESS);
    expect(bench, ROCE_SEND_ONLY, 1); /* On its own. */
    assert_true(bench->out.ack_request);
    assert_false(pull(bench));
    assert_int_equal(aeth(bench, 1, ROCE_AETH_ACK | 2, 4).verdict, RC_PROGRESS);
    expect(bench, ROCE_SEND_ONLY, 2);
    assert_false(bench->out.ack_request);
    end(bench);
}

/* A request that takes no receive does not ask for an answer. A request that waits for credits
 * behind it has nothing to wait for. */
static void test_no_credit_and_no_answer_under_way(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_SEND, 1, WORK_SIGNALED);
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    assert_int_equal(aeth(bench, 0xfffffe, ROCE_AETH_ACK | 1, 1).verdict, RC_PROGRESS);
    post(bench, WORK_SEND, 1, 0);
    post(bench, WORK_WRITE, 1, 0);
    post(bench, WORK_SEND, 1, 0);
    post(bench, WORK_SEND, 1, 0);
    expect(bench, ROCE_SEND_ONLY, 0xffffff);
    assert_true(bench->out.ack_request);
    expect(bench, ROCE_WRITE_ONLY, 0);
    assert_false(bench->out.ack_request);
    assert_false(pull(bench));
    assert_int_equal(aeth(bench, 0xffffff, ROCE_AETH_ACK | 0, 2).verdict, RC_PROGRESS);
    expect(bench, ROCE_SEND_ONLY, 1);
    assert_true(bench->out.ack_request);
    assert_false(pull(bench));
    end(bench);
}

/* Table 46 has no code for 7 credits: they are told as 6. Those that were told before stay. */
static void test_credits_that_are_rounded(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_SEND, 1, WORK_SIGNALED);
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    assert_int_equal(aeth(bench, 0xfffffe, ROCE_AETH_ACK | 6, 1).verdict, RC_PROGRESS); /* 8 */
    for (int i = 0; i < 8; i++) {
        post(bench, WORK_SEND, 1, i == 0 ? WORK_SIGNALED : 0);
    }
    for (uint32_t i = 0; i < 7; i++) {
        expect(bench, ROCE_SEND_ONLY, 0xffffff + i);
    }
    assert_int_equal(aeth(bench, 0xffffff, ROCE_AETH_ACK | 5, 2).verdict, RC_PROGRESS); /* 6 of 7 */
    expect(bench, ROCE_SEND_ONLY, 6);
    assert_true(bench->out.ack_request);
    end(bench);
}

/* The packets that follow were to ask for an answer to those in flight, and they do not come: then
 * the newest packet in flight goes once more, and asks. A packet that is answered anyway does not
 * ask again. */
static void test_asking_afterwards(void **state)
{
    (void)state;
    struct rc_requester_config config = usual();
    config.first_psn = psn_of(0);
    struct bench *bench = begin(config);
    assert_false(rc_requester_ask(&bench->requester, &bench->queue));
    post(bench, WORK_WRITE, 2 * MTU, 0);
    struct work *second = post(bench, WORK_WRITE, 1, 0);
    post(bench, WORK_WRITE, 1, 0);
    expect(bench, ROCE_WRITE_FIRST, 0);
    expect(bench, ROCE_WRITE_LAST, 1);
    assert_true(rc_requester_ask(&bench->requester, &bench->queue));
    expect(bench, ROCE_WRITE_LAST, 1);
    assert_true(bench->out.ack_request && bench->out.resent);
    expect(bench, ROCE_WRITE_ONLY, 2);
    assert_false(rc_requester_ask(&bench->requester, &bench->queue));
    ack(bench, 1);
    /* A request that has failed meanwhile does not go again, nor does one that was answered. */
    second->status = COMPLETION_LOCAL_PROTECTION;
    assert_false(rc_requester_ask(&bench->requester, &bench->queue));
    end(bench);
}

static void test_draining_finishes_what_was_begun(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 2 * MTU, 0);
    post(bench, WORK_WRITE, 1, 0);
    pull(bench);
    bench->draining = true;
    assert_int_equal(pull_all(bench), 1);
    assert_false(rc_requester_drained(&bench->requester, &bench->queue));
    ack(bench, 0xffffff);
    collect(bench);
    assert_true(rc_requester_drained(&bench->requester, &bench->queue));
    bench->draining = false;
    assert_int_equal(pull_all(bench), 1);
    end(bench);
}

/* Local work takes no PSN, keeps its place, and is not executed again when packets are resent. */
static void test_local_work(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 1, 0);
    post(bench, WORK_LOCAL_INVALIDATE, 0, 0);
    post(bench, WORK_WRITE, 1, 0);
    expect(bench, ROCE_WRITE_ONLY, 0xfffffe);
    assert_true(pull(bench));
    assert_true(work_is_local(bench->out.work));
    expect(bench, ROCE_WRITE_ONLY, 0xffffff);
    aeth(bench, 0xfffffe, ROCE_NAK_PSN_SEQUENCE, 0);
    expect(bench, ROCE_WRITE_ONLY, 0xfffffe);
    expect(bench, ROCE_WRITE_ONLY, 0xffffff);
    assert_int_equal(collect(bench), 0);
    ack(bench, 0xffffff);
    assert_int_equal(collect(bench), 3);
    end(bench);
}

/* Data that came by other means completes its request as responses would have. */
static void test_fetched_reads(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_READ, 2 * MTU, 0);
    post(bench, WORK_WRITE, 8, WORK_FENCE);
    expect(bench, ROCE_READ_REQUEST, 0xfffffe);
    assert_true(bench->out.alone);
    assert_int_equal(bench->out.bytes, 2 * MTU);
    assert_false(pull(bench)); /* The fence. */
    rc_requester_on_fetched(&bench->requester, &bench->queue, bench->now);
    assert_int_equal(bench->requester.retry_at.ns, UINT64_MAX);
    assert_int_equal(collect(bench), 1);
    assert_int_equal(response(bench, 0xfffffe, MTU).verdict, RC_STALE);
    expect(bench, ROCE_WRITE_ONLY, 0);
    assert_int_equal(ack(bench, 0).verdict, RC_PROGRESS);
    assert_int_equal(collect(bench), 1);
    end(bench);
}

static void answer(struct bench *bench, struct work *read, uint32_t psn, uint32_t bytes)
{
    assert_int_equal(response(bench, psn, bytes).verdict, RC_RESPONSE);
    read->moves_pending--;
}

/* After a READ was fetched the next one waits for what is in flight, which asks for its
 * acknowledgement; one that had to be answered ends that. */
static void test_reads_wait_to_be_fetched(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_READ, 2 * MTU, 0);
    expect(bench, ROCE_READ_REQUEST, 0xfffffe);
    rc_requester_on_fetched(&bench->requester, &bench->queue, bench->now);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_LOCAL_INVALIDATE, 0, 0);
    struct work *waiting = post(bench, WORK_READ, 2 * MTU, 0);
    struct work *behind = post(bench, WORK_READ, 2 * MTU, 0);
    post(bench, WORK_READ, 2 * MTU, 0);
    expect(bench, ROCE_SEND_ONLY, 0);
    assert_false(bench->out.ack_request);
    expect(bench, ROCE_SEND_ONLY, 1);
    assert_true(bench->out.ack_request);
    assert_true(pull(bench) && bench->out.work->kind == WORK_LOCAL_INVALIDATE);
    assert_false(pull(bench));
    assert_int_equal(ack(bench, 0).verdict, RC_PROGRESS);
    assert_false(pull(bench));
    assert_int_equal(ack(bench, 1).verdict, RC_PROGRESS);
    expect(bench, ROCE_READ_REQUEST, 2);
    assert_true(bench->out.alone);
    expect(bench, ROCE_READ_REQUEST, 4); /* As the one before was sent. */
    assert_false(bench->out.alone);
    answer(bench, waiting, 2, MTU);
    answer(bench, waiting, 3, MTU);
    expect(bench, ROCE_READ_REQUEST, 6);
    assert_false(bench->out.alone);
    answer(bench, behind, 4, MTU);
    end(bench);
}

/* The world says that it can place WRITEs: one of several packets waits for what is in flight,
 * others do not, and one that was not placed ends that. */
static void test_writes_wait_to_be_placed(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_SEND, 8, 0);
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    rc_requester_wait_to_place(&bench->requester);
    post(bench, WORK_WRITE, MTU, 0);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    expect(bench, ROCE_WRITE_ONLY, 0xffffff);
    expect(bench, ROCE_SEND_ONLY, 0);
    assert_true(bench->out.ack_request);
    assert_false(pull(bench));
    assert_int_equal(ack(bench, 0).verdict, RC_PROGRESS);
    expect(bench, ROCE_WRITE_FIRST, 1);
    assert_true(bench->out.alone);
    rc_requester_on_placed(&bench->requester, &bench->queue, bench->now);
    rc_requester_wait_to_place(&bench->requester);
    expect(bench, ROCE_WRITE_LAST, 2); /* It has begun. */
    assert_true(bench->out.alone);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_WRITE, 2 * MTU, 0);
    expect(bench, ROCE_SEND_ONLY, 3);
    expect(bench, ROCE_WRITE_FIRST, 4);
    assert_false(bench->out.alone);
    end(bench);
}

static void test_short_reads_do_not_wait(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_READ, MTU, 0);
    expect(bench, ROCE_READ_REQUEST, 0xfffffe);
    rc_requester_on_fetched(&bench->requester, &bench->queue, bench->now);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_READ, READ_WAITS_BYTES - 1, 0);
    expect(bench, ROCE_SEND_ONLY, 0xffffff);
    expect(bench, ROCE_SEND_ONLY, 0);
    assert_false(bench->out.ack_request);
    expect(bench, ROCE_READ_REQUEST, 1);
    end(bench);
}

/* A placed WRITE is acknowledged by nobody, so what the responder said of its receives stays. */
static void test_placed_writes(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_SEND, 8, 0);
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    aeth(bench, 0xfffffe, ROCE_AETH_ACK | 0, 1);
    assert_int_equal(collect(bench), 1);
    post(bench, WORK_WRITE, MTU + 1, 0);
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_SEND, 8, 0);
    expect(bench, ROCE_WRITE_FIRST, 0xffffff);
    assert_true(bench->out.alone);
    rc_requester_on_placed(&bench->requester, &bench->queue, bench->now);
    assert_int_equal(collect(bench), 0);
    expect(bench, ROCE_WRITE_LAST, 0);
    assert_true(bench->out.alone);
    rc_requester_on_placed(&bench->requester, &bench->queue, bench->now);
    assert_int_equal(collect(bench), 1);
    assert_int_equal(bench->requester.retry_at.ns, UINT64_MAX);
    /* One SEND without a credit, to ask for more; the next one waits. */
    expect(bench, ROCE_SEND_ONLY, 1);
    assert_true(bench->out.ack_request);
    assert_false(pull(bench));
    end(bench);
}

/* Nothing on the wire follows that would bring an acknowledgement. */
static void test_acknowledgement_before_local_work(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_SEND, 8, 0);
    post(bench, WORK_LOCAL_INVALIDATE, 0, WORK_SIGNALED);
    expect(bench, ROCE_SEND_ONLY, 0xfffffe);
    assert_true(bench->out.ack_request);
    end(bench);
}

/* However large, no request asks for more than READ_PACKETS at a time, and pieces that are
 * fetched and pieces that are sent add up. */
static void test_pieces_of_a_large_read(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    const uint32_t piece = READ_PACKETS * MTU;
    struct work *read = post(bench, WORK_READ, 2 * piece + 1, 0);
    expect(bench, ROCE_READ_REQUEST, 0xfffffe);
    assert_int_equal(bench->out.bytes, piece);
    rc_requester_on_fetched(&bench->requester, &bench->queue, bench->now);
    assert_int_equal(collect(bench), 0);
    expect(bench, ROCE_READ_REQUEST, 0xfffffe + READ_PACKETS);
    assert_true(bench->out.alone && !bench->out.last);
    assert_int_equal(bench->out.offset, piece);
    for (uint32_t i = 0; i < READ_PACKETS; i++) {
        assert_int_equal(response(bench, 0xfffffe + READ_PACKETS + i, MTU).verdict, RC_RESPONSE);
        read->moves_pending--;
    }
    expect(bench, ROCE_READ_REQUEST, 0xfffffe + 2 * READ_PACKETS);
    assert_true(bench->out.alone && bench->out.last);
    assert_int_equal(bench->out.bytes, 1);
    rc_requester_on_fetched(&bench->requester, &bench->queue, bench->now);
    assert_int_equal(collect(bench), 1);
    end(bench);
}

/* -- 2^31 bytes in packets of 256: half of all PSNs ---------------------------------------------*/

static struct bench *begin_largest(uint32_t window_bytes)
{
    struct rc_requester_config config = usual();
    config.mtu_bytes = 256;
    config.window_bytes = window_bytes;
    return begin(config);
}

static void test_largest_write(void **state)
{
    (void)state;
    struct bench *bench = begin_largest(1u << 20);
    uint32_t packets = 0;
    post(bench, WORK_WRITE, 1u << 31, WORK_SIGNALED);
    while (packets < 1u << 23) {
        if (rc_requester_next(&bench->requester, &bench->queue, false, bench->now, &bench->out)) {
            packets++;
            continue;
        }
        assert_int_equal(collect(bench), 0);
        rc_requester_check(&bench->requester, &bench->queue);
        assert_int_equal(ack(bench, 0xfffffe + packets - 1).verdict, RC_PROGRESS);
    }
    assert_int_equal(bench->out.operation, ROCE_WRITE_LAST);
    assert_int_equal(collect(bench), 0);
    assert_false(pull(bench));
    ack(bench, 0xfffffe + packets - 1);
    assert_int_equal(collect(bench), 1);
    end(bench);
}

/* One acknowledgement covers the end of it and a part of what follows: more than half of all PSNs
 * behind its beginning. */
static void test_largest_write_and_more(void **state)
{
    (void)state;
    struct bench *bench = begin_largest(1u << 20);
    const uint32_t half = 1u << 23;
    post(bench, WORK_WRITE, 1u << 31, WORK_SIGNALED);
    post(bench, WORK_WRITE, 1u << 31, WORK_SIGNALED);
    post(bench, WORK_READ, 256, WORK_SIGNALED);
    uint32_t packets = 0, acked = 0;
    while (acked <= half) {
        if (rc_requester_next(&bench->requester, &bench->queue, false, bench->now, &bench->out)) {
            packets++;
            continue;
        }
        rc_requester_check(&bench->requester, &bench->queue);
        assert_int_equal(collect(bench), 0);
        acked = packets - 100;
        assert_int_equal(ack(bench, 0xfffffe + acked - 1).verdict, RC_PROGRESS);
    }
    rc_requester_check(&bench->requester, &bench->queue);
    assert_int_equal(collect(bench), 1);
    assert_true(pull_all(bench) > 1000);
    aeth(bench, 0xfffffe + acked, ROCE_NAK_PSN_SEQUENCE, 0);
    expect(bench, ROCE_WRITE_MIDDLE, 0xfffffe + acked);
    end(bench);
}

/* 9.7.2: of more than half of all PSNs in flight nobody could tell the old from the new. */
static void test_half_of_all_psns(void **state)
{
    (void)state;
    struct bench *bench = begin_largest(0);
    uint32_t packets = 0;
    bool asked = false;
    post(bench, WORK_WRITE, 1u << 31, WORK_SIGNALED);
    post(bench, WORK_WRITE, 1u << 31, WORK_SIGNALED);
    while (rc_requester_next(&bench->requester, &bench->queue, false, bench->now, &bench->out)) {
        packets++;
        asked |= bench->out.ack_request;
        assert_true(packets <= 1u << 23);
    }
    assert_true(packets > 1u << 22);
    assert_true(asked); /* Or it would never go on. */
    assert_int_equal(ack(bench, 0xfffffe + packets - 1).verdict, RC_PROGRESS);
    assert_true(pull(bench));
    end(bench);
}

/* Nothing was acknowledged yet: all of it is sent again. */
static void test_largest_write_is_resent(void **state)
{
    (void)state;
    struct bench *bench = begin_largest(0);
    post(bench, WORK_WRITE, 1u << 31, WORK_SIGNALED);
    expect(bench, ROCE_WRITE_FIRST, 0xfffffe);
    assert_int_equal(collect(bench), 0);
    assert_non_null(rc_requester_oldest(&bench->requester, &bench->queue));
    aeth(bench, 0xfffffe, ROCE_NAK_PSN_SEQUENCE, 0);
    expect(bench, ROCE_WRITE_FIRST, 0xfffffe);
    expect(bench, ROCE_WRITE_MIDDLE, 0xffffff);
    end(bench);
}

static void test_largest_read(void **state)
{
    (void)state;
    struct bench *bench = begin_largest(0);
    post(bench, WORK_READ, 1u << 31, WORK_SIGNALED);
    post(bench, WORK_WRITE, 8, 0);
    for (uint32_t psn = 0; psn < 1u << 23; psn += READ_PACKETS) {
        assert_int_equal(collect(bench), 0);
        expect(bench, ROCE_READ_REQUEST, 0xfffffe + psn);
        rc_requester_on_fetched(&bench->requester, &bench->queue, bench->now);
    }
    assert_int_equal(collect(bench), 1);
    expect(bench, ROCE_WRITE_ONLY, 0xfffffe + (1u << 23));
    end(bench);
}

/* The timer is put off only while all that it is for waits to leave again: what is under way may be
 * lost. */
static void test_timer_is_put_off_while_nothing_is_under_way(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    post(bench, WORK_WRITE, 1, 0);
    assert_int_equal(pull_all(bench), 1);
    bench->now = bench->requester.retry_at;
    rc_requester_postpone(&bench->requester, bench->now);
    assert_int_equal(bench->requester.retry_at.ns, bench->now.ns);
    assert_int_equal(rc_requester_on_time(&bench->requester, &bench->queue, bench->now).verdict,
                     RC_SEQUENCE_NAK);
    rc_requester_blocked(&bench->requester, bench->now);
    bench->now = bench->requester.retry_at;
    rc_requester_postpone(&bench->requester, bench->now);
    assert_int_equal(bench->requester.retry_at.ns, bench->now.ns + ack_timeout_ns(14));
    end(bench);
}

/* A READ that is refused while its responses leave is the oldest request itself: it ends. */
static void test_fatal_nak_within_a_read(void **state)
{
    (void)state;
    struct bench *bench = begin(usual());
    struct work *read = post(bench, WORK_READ, 3 * MTU, 0);
    assert_int_equal(pull_all(bench), 1);
    assert_int_equal(response(bench, 0xfffffe, MTU).verdict, RC_RESPONSE);
    const struct rc_progress progress = aeth(bench, 0, ROCE_NAK_REMOTE_ACCESS, 0);
    assert_int_equal(progress.verdict, RC_FAILED);
    assert_ptr_equal(progress.work, read);
    assert_int_equal(progress.status, COMPLETION_REMOTE_ACCESS);
    end(bench);
}

/* Responses free the window as acknowledgements do. */
static void test_responses_open_the_window(void **state)
{
    (void)state;
    struct rc_requester_config config = usual();
    config.first_psn = psn_of(0);
    config.window_bytes = 8 * (MTU + PACKET_COST);
    struct bench *bench = begin(config);
    post(bench, WORK_READ, 2 * MTU, 0);
    post(bench, WORK_WRITE, 64 * MTU, 0);
    assert_int_equal(pull_all(bench), 1 + 6);
    assert_int_equal(response(bench, 0, MTU).verdict, RC_RESPONSE);
    assert_false(pull(bench));
    assert_int_equal(response(bench, 1, MTU).verdict, RC_RESPONSE);
    assert_int_equal(pull_all(bench), 2);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest_write),
        cmocka_unit_test(test_largest_write_and_more),
        cmocka_unit_test(test_half_of_all_psns),
        cmocka_unit_test(test_largest_write_is_resent),
        cmocka_unit_test(test_largest_read),
        cmocka_unit_test(test_numbers_over_the_wrap),
        cmocka_unit_test(test_ignores_what_cannot_be),
        cmocka_unit_test(test_asks_for_acknowledgements),
        cmocka_unit_test(test_sequence_nak_resends),
        cmocka_unit_test(test_gives_up_after_its_retries),
        cmocka_unit_test(test_progress_renews_the_retries),
        cmocka_unit_test(test_timer_code_0_never_fires),
        cmocka_unit_test(test_blocked_link_runs_the_timer),
        cmocka_unit_test(test_fatal_naks),
        cmocka_unit_test(test_rnr_waits_and_gives_up),
        cmocka_unit_test(test_rnr_limit_7_is_for_ever),
        cmocka_unit_test(test_read_takes_its_psns_and_limits),
        cmocka_unit_test(test_missing_response_is_asked_for_once),
        cmocka_unit_test(test_acknowledgement_implies_a_lost_response),
        cmocka_unit_test(test_wrong_response_length),
        cmocka_unit_test(test_fence_waits_for_reads),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_smaller_than_a_packet_still_moves),
        cmocka_unit_test(test_loss_shrinks_the_window_and_progress_grows_it),
        cmocka_unit_test(test_loss_limits_an_unlimited_path),
        cmocka_unit_test(test_credits),
        cmocka_unit_test(test_last_credit_asks),
        cmocka_unit_test(test_no_credit_and_no_answer_under_way),
        cmocka_unit_test(test_credits_that_are_rounded),
        cmocka_unit_test(test_asking_afterwards),
        cmocka_unit_test(test_draining_finishes_what_was_begun),
        cmocka_unit_test(test_local_work),
        cmocka_unit_test(test_fetched_reads),
        cmocka_unit_test(test_placed_writes),
        cmocka_unit_test(test_reads_wait_to_be_fetched),
        cmocka_unit_test(test_writes_wait_to_be_placed),
        cmocka_unit_test(test_short_reads_do_not_wait),
        cmocka_unit_test(test_acknowledgement_before_local_work),
        cmocka_unit_test(test_pieces_of_a_large_read),
        cmocka_unit_test(test_timer_is_put_off_while_nothing_is_under_way),
        cmocka_unit_test(test_fatal_nak_within_a_read),
        cmocka_unit_test(test_responses_open_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
