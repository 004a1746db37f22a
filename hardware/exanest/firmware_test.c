/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each rule of the firmware's normal course: its stores, their order, times and costs;
 *         channels, queues, chains, paths.
 * Method  Hand-made cases in the rig, which judges each store by itself.
 */
#include "hardware/exanest/firmware_rig.h"

static struct rig *usual(void)
{
    const struct exanest_firmware_config config = exanest_firmware_defaults();
    return rig_new(&config, 1);
}

/* Steps until something is stored, and says what. */
static struct exanest_firmware_action next_store(struct rig *rig)
{
    for (;;) {
        struct exanest_firmware before = rig->firmware;
        struct exanest_firmware_action action = {0};
        exanest_firmware_next(&before, rig->now, &action);
        if (rig_step(rig) == EXANEST_DO_STORE) {
            return action;
        }
        assert_false(rig_over(rig));
    }
}

static void expect_store(struct rig *rig, uint32_t tid, bool control, uint32_t word)
{
    const struct exanest_firmware_action action = next_store(rig);
    assert_int_equal(action.tid, tid);
    assert_int_equal(action.control, control);
    assert_int_equal(action.word, word);
}

/* EXA-56: two blocks; the second with the notification, when the first is acknowledged; its
 * descriptor before its control packet. W4 is not stored, as it has the right value already. */
static void test_write(void **state)
{
    (void)state;
    struct rig *rig = usual();
    struct rig_transfer *transfer = rig_add(rig, 3, 16384 - 100, 200);
    rig_post(rig, transfer, 4, 31, true, false);
    for (uint32_t word = 0; word < 3; word++) {
        expect_store(rig, 0, false, word);
    }
    assert_int_equal(rig->w3_at, 130 + 190 + 200 + 75 + 3 * 75); /* EXANEST_FIRMWARE_COSTS. */
    assert_int_equal(rig_state(rig, transfer).state, EXANEST_TRANSFER_ACTIVE);
    for (uint32_t word = 0; word < 3; word++) {
        expect_store(rig, 1, false, word);
    }
    assert_true(rig->w3_at > rig->w3_first_at + RIG_ANSWER_NS);
    for (uint32_t word = 0; word < 3; word++) {
        expect_store(rig, 1, true, word);
    }
    assert_int_equal(rig->control_at, rig->w3_at);
    rig_finish(rig, 100000);
    rig_assert_delivered(rig, transfer);
    assert_int_equal(rig_state(rig, transfer).state, EXANEST_TRANSFER_DONE);
    assert_int_equal(rig_state(rig, transfer).acked, 200);
    assert_int_equal(rig->firmware.counters.sequence_stores, 0);
    assert_int_equal(rig->firmware.counters.descriptor_stores, 6);
    assert_int_equal(rig->firmware.counters.request_reads, 0); /* EXA-50 */
    free(rig);
}

/* EXA-44: without a notification W_blk blocks are out at once, and never more. */
static void test_window(void **state)
{
    (void)state;
    for (uint16_t window = 1; window <= 5; window++) {
        struct exanest_firmware_config config = exanest_firmware_defaults();
        config.writes_outstanding = window;
        struct rig *rig = rig_new(&config, 1);
        rig_post(rig, rig_add(rig, 0, 0, 20 * 16384), 0, 0, false, false);
        uint32_t most = 0;
        while (!rig_over(rig)) {
            rig_step(rig);
            const uint32_t out = config.tids - rig->firmware.free_count;
            most = out > most ? out : most;
        }
        assert_int_equal(most, window);
        assert_int_equal(rig->firmware.counters.blocks, 20);
        free(rig);
    }
}

/* EXA-53, EXA-58, EXA-50: a read costs one read of the responses and 12 of the request, or 4. */
static void test_read(void **state)
{
    (void)state;
    static const uint8_t reads[] = {12, 4};
    for (uint32_t i = 0; i < 2; i++) {
        struct exanest_firmware_config config = exanest_firmware_defaults();
        config.request_reads = reads[i];
        struct rig *rig = rig_new(&config, 1);
        struct rig_transfer *transfer = rig_add(rig, 5, 7, 8);
        assert_true(rig_request(rig, transfer, 2, 77, 9, 1));
        rig_finish(rig, 100000);
        rig_assert_delivered(rig, transfer);
        assert_int_equal(rig->pl_request_reads, reads[i]);
        assert_int_equal(rig->w3_first_at, 130 + reads[i] * 130 + 390 + 300);
        assert_int_equal(rig->firmware.counters.reads_done, 1);
        free(rig);
    }
}

/* EXA-50: responses without the bit lead to no read of the request FIFO. */
static void test_no_read_in_vain(void **state)
{
    (void)state;
    struct rig *rig = usual();
    rig_post(rig, rig_add(rig, 0, 0, 1 << 20), 0, 0, false, false);
    rig_finish(rig, 10000000);
    assert_int_equal(rig->firmware.counters.acks, 64); /* One response a block. */
    assert_int_equal(
        rig->firmware.counters.response_reads - rig->firmware.counters.response_reads_empty, 64);
    assert_int_equal(rig->pl_request_reads, 0);
    free(rig);
}

/* EXA-48: 32 reads of a domain are served at once, the 33rd waits; another domain's does not. */
static void test_read_channels(void **state)
{
    (void)state;
    struct rig *rig = usual();
    for (uint32_t i = 0; i < 33; i++) {
        struct rig_transfer *transfer = rig_add(rig, 0, 0, 100);
        transfer->doom = RIG_SLOW;
        assert_true(rig_request(rig, transfer, 3, 1, 1, i));
    }
    struct rig_transfer *other = rig_add(rig, 0, 0, 100);
    assert_true(rig_request(rig, other, 4, 1, 1, 99));
    rig_run_until(rig, 1000000);
    assert_int_equal(rig->firmware.active[3] >> 32, 0xffffffff);
    assert_int_equal(rig->firmware.queued, 1);
    assert_int_equal(rig->transfers[31].served, 1);
    assert_int_equal(rig->transfers[32].served, 0);
    assert_int_equal(other->notified, 1);
    rig_finish(rig, 10000000);
    rig_assert_delivered(rig, &rig->transfers[32]);
    free(rig);
}

/* EXA-49: 32 active, 64 queued, more in the mailbox. Responses are drained, writes go on, the R5
 * sleeps when it can; and requests are taken again later. */
static void test_full_read_queue(void **state)
{
    (void)state;
    struct rig *rig = usual();
    uint32_t asked = 0;
    while (asked < 32 + 64 + 10) {
        struct rig_transfer *transfer = rig_add(rig, 0, 0, 100);
        transfer->doom = asked < 32 ? RIG_SLOW : -1;
        while (!rig_request(rig, transfer, 3, 1, 1, asked)) {
            rig_step(rig);
        }
        asked++;
    }
    rig_run_until(rig, 1000000);
    assert_int_equal(rig->firmware.queued, EXANEST_READ_QUEUE);
    assert_int_equal(rig->requests, 10);
    const uint64_t reads = rig->pl_request_reads, passes = rig->firmware.counters.passes;
    struct rig_transfer *write = rig_add(rig, 0, 0, 10 * 16384);
    rig_post(rig, write, 3, 0, true, false);
    rig_run_until(rig, 1500000);
    rig_assert_delivered(rig, write);
    assert_int_equal(rig->pl_request_reads, reads);
    assert_true(rig->firmware.counters.passes - passes < 100); /* It has not been spinning. */
    rig_finish(rig, 10000000);
    assert_int_equal(rig->firmware.counters.reads_done, asked);
    free(rig);
}

/* EXA-54, EXA-55: the domain decides whose memory is read. A requester without a domain here gets
 * nothing. A duplicate gets nothing, during the read, behind it, or while it waits. */
static void test_requests_dropped(void **state)
{
    (void)state;
    struct rig *rig = usual();
    struct rig_transfer *transfer = rig_add(rig, 0, 0, 50000);
    rig_request(rig, transfer, 3, 1, 1, 5);
    rig_request(rig, transfer, 3, 1, 1, 5);
    rig_run_until(rig, 8000);
    rig_request(rig, transfer, 3, 1, 1, 5);
    rig_finish(rig, 1000000);
    rig_request(rig, transfer, 3, 1, 1, 5);
    rig_finish(rig, 1000000);
    assert_int_equal(rig->firmware.counters.reads_duplicate, 3);
    assert_int_equal(transfer->served, 1);
    rig_assert_delivered(rig, transfer);
    rig_request(rig, rig_add(rig, 0, 0, 10), 16, 1, 1, 6); /* No page has this domain. */
    rig_request(rig, rig_add(rig, 0, 0, 0), 3, 1, 1, 7);
    rig_finish(rig, 1000000);
    assert_int_equal(rig->firmware.counters.reads_unbound, 1);
    assert_int_equal(rig->firmware.counters.reads_malformed, 1);
    assert_int_equal(rig->firmware.counters.reads_taken, 1);
    free(rig);
}

/* A full list of TIDs just waits: 1 TID, 3 programs. */
static void test_no_tid(void **state)
{
    (void)state;
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.tids = 1;
    struct rig *rig = rig_new(&config, 1);
    for (uint32_t i = 0; i < 3; i++) {
        rig_post(rig, rig_add(rig, 0, 0, 50000), i, 0, true, false);
    }
    rig_finish(rig, 10000000);
    for (uint32_t i = 0; i < 3; i++) {
        rig_assert_delivered(rig, &rig->transfers[i]);
    }
    assert_true(rig->firmware.counters.tid_waits > 0);
    free(rig);
}

/* When transfer `i` ended, in order. */
static void expect_order(struct rig *rig, const uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        while (!rig->transfers[order[i]].ended) {
            rig_step(rig);
            for (uint32_t later = i + 1; later < count; later++) {
                assert_int_equal(rig->transfers[order[later]].delivered, 0);
            }
            assert_false(rig_over(rig) && !rig->transfers[order[i]].ended);
        }
    }
}

/* EXA-70: a chained transfer begins when that of the channel before has ended, whatever the order
 * in which they were posted between two looks; without the flag they run together. */
static void test_chain(void **state)
{
    (void)state;
    static const uint32_t channels[] = {6, 5, 4}, order[] = {2, 1, 0};
    struct rig *rig = usual();
    for (uint32_t i = 0; i < 3; i++) {
        rig_post(rig, rig_add(rig, 0, 0, 100), 1, channels[i], true, channels[i] != 4);
    }
    expect_order(rig, order, 3);
    rig_finish(rig, 1000000);
    assert_int_equal(rig->firmware.counters.blocks, 3);

    /* Around the ring: the later one is read first. */
    static const uint32_t wrapped[] = {4, 3};
    rig_post(rig, rig_add(rig, 0, 0, 100), 1, 0, true, true);
    rig_post(rig, rig_add(rig, 0, 0, 100), 1, 31, true, false);
    expect_order(rig, wrapped, 2);
    rig_finish(rig, 1000000);

    /* Behind one that is refused; alone it waits for nobody. */
    struct rig_transfer *refused = rig_add(rig, 0, 0, 1);
    refused->bytes = 0;
    rig_post(rig, refused, 1, 31, false, false);
    rig_post(rig, rig_add(rig, 0, 0, 100), 1, 0, false, true);
    rig_post(rig, rig_add(rig, 0, 0, 100), 1, 9, false, true);
    rig_finish(rig, 1000000);
    assert_int_equal(rig_state(rig, refused).last_status, EXANEST_LAST_REFUSED);
    rig_assert_delivered(rig, &rig->transfers[6]);
    rig_assert_delivered(rig, &rig->transfers[7]);

    /* 32 that all wait for each other: the one that closes the ring begins. */
    for (uint32_t channel = 0; channel < 32; channel++) {
        rig_post(rig, rig_add(rig, 0, 0, 100), 2, channel, false, true);
    }
    rig_finish(rig, 10000000);
    assert_int_equal(rig->firmware.counters.writes_done, 3 + 2 + 2 + 32);
    free(rig);
}

/* EXA-70: the program chooses the path; W4 is stored when it differs from what the TID had. */
static void test_path(void **state)
{
    (void)state;
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.paths = 4;
    config.tids = 1;
    config.control_bytes = 32;
    struct rig *rig = rig_new(&config, 1);
    static const uint8_t paths[] = {3, 3, 0, 0, 1};
    static const uint64_t stores[] = {1, 1, 2, 2, 3};
    for (uint32_t i = 0; i < 5; i++) {
        struct rig_transfer *transfer = rig_add(rig, 0, 0, 100);
        transfer->path = paths[i];
        rig_post(rig, transfer, 1, 0, true, false);
        rig_finish(rig, 1000000);
        rig_assert_delivered(rig, transfer);
        const struct exanest_descriptor descriptor =
            exanest_descriptor_decode(rig->blocks[0].words);
        assert_int_equal(descriptor.path, paths[i]);
        assert_int_equal(descriptor.sequence, 0);
        assert_int_equal(rig->firmware.counters.sequence_stores, stores[i]);
    }
    struct rig_transfer *wrong = rig_add(rig, 0, 0, 100);
    wrong->path = 4;
    rig_post(rig, wrong, 1, 0, true, false);
    rig_finish(rig, 1000000);
    assert_int_equal(rig_state(rig, wrong).state, EXANEST_TRANSFER_ERROR);
    free(rig);
}

/* Row EXA-A25: the path alternates from block to block. */
static void test_path_alternates(void **state)
{
    (void)state;
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.paths = 2;
    config.path_policy = EXANEST_PATH_ALTERNATES;
    struct rig *rig = rig_new(&config, 1);
    struct rig_transfer *transfer = rig_add(rig, 0, 5, 8 * 16384);
    rig_post(rig, transfer, 0, 0, true, false);
    rig_finish(rig, 10000000);
    rig_assert_delivered(rig, transfer);
    for (uint32_t line = 0; line < 9; line++) {
        const struct exanest_descriptor descriptor =
            exanest_descriptor_decode(rig->blocks[transfer->tid[line]].words);
        assert_int_equal(descriptor.path, line % 2);
    }
    free(rig);
}

static void expect_refused(struct rig *rig, const struct exanest_transfer *posted, uint32_t channel)
{
    const uint64_t refused = rig->firmware.counters.posts_refused;
    exanest_scratchpad_post(&rig->pad, 1000, 0, channel, posted);
    rig_finish(rig, 1000000);
    const struct exanest_transfer got =
        exanest_transfer_decode(exanest_scratchpad_read(&rig->pad, channel));
    assert_int_equal(got.state, EXANEST_TRANSFER_ERROR);
    assert_int_equal(got.last_status, EXANEST_LAST_REFUSED);
    assert_int_equal(rig->firmware.counters.posts_refused, refused + 1);
    assert_int_equal(rig->stores, 0);
}

/* Everything that a program writes is judged; no wrong word of it reaches the send unit. */
static void test_refused(void **state)
{
    (void)state;
    struct rig *rig = usual();
    const struct exanest_transfer good = {.bytes = 100, .target.va = 4096, .doorbell = 1};
    struct exanest_transfer bad = good;
    bad.bytes = 0;
    expect_refused(rig, &bad, 0);
    bad = good;
    bad.read = true;
    expect_refused(rig, &bad, 1);
    expect_refused(rig, &good, 32); /* EXA-48: a channel for reads. */
    bad = good;
    bad.target.va = (UINT64_C(1) << 42) - 99; /* Runs into the coordinate, */
    expect_refused(rig, &bad, 2);
    bad.target.va = (UINT64_C(7) << 39) - 99; /* ... into peripherals. */
    expect_refused(rig, &bad, 3);
    bad = good;
    bad.source = UINT64_MAX - 98;
    expect_refused(rig, &bad, 4);
    bad = good;
    bad.path = 1;
    expect_refused(rig, &bad, 5);
    free(rig);
}

/* A program that rings a channel's doorbell while its transfer is under way changes nothing. */
static void test_busy_channel(void **state)
{
    (void)state;
    struct rig *rig = usual();
    struct rig_transfer *first = rig_add(rig, 0, 0, 50000);
    rig_post(rig, first, 0, 7, true, false);
    rig_run_until(rig, 3000);
    rig_post(rig, rig_add(rig, 0, 0, 1), 0, 7, false, false);
    rig_finish(rig, 1000000);
    rig_assert_delivered(rig, first);
    assert_int_equal(rig->firmware.counters.posts_busy, 1);
    assert_int_equal(rig->transfers[1].served, 0);
    free(rig);
}

/* A domain that has moved to another page keeps its requests when the old page is unbound again. */
static void test_unbind_twice(void **state)
{
    (void)state;
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.tids = 1;
    struct rig *rig = rig_new(&config, 1);
    assert_true(exanest_firmware_unbind(&rig->firmware, 5));
    assert_true(exanest_firmware_unbind(&rig->firmware, 6));
    assert_true(exanest_firmware_bind(&rig->firmware, 6, 1005));
    for (uint32_t i = 0; i <= EXANEST_READ_CHANNELS; i++) {
        rig_request(rig, rig_add(rig, 0, 0, 100), 5, 1, (uint16_t)i, i);
    }
    while (rig->firmware.counters.reads_taken <= EXANEST_READ_CHANNELS) {
        rig_step(rig);
    }
    const uint32_t queued = rig->firmware.queued;
    assert_true(queued > 0);
    assert_false(exanest_firmware_unbind(&rig->firmware, 5));
    assert_int_equal(rig->firmware.queued, queued);
    rig_finish(rig, 10000000);
    assert_int_equal(rig->firmware.counters.reads_done, EXANEST_READ_CHANNELS + 1);
    free(rig);
}

/* Pages come and go; a transfer that is under way keeps its page. */
static void test_unbind(void **state)
{
    (void)state;
    struct rig *rig = usual();
    rig_post(rig, rig_add(rig, 0, 0, 100), 5, 0, true, false);
    rig_run_until(rig, 3000);
    assert_false(exanest_firmware_unbind(&rig->firmware, 5));
    rig_finish(rig, 1000000);
    assert_true(exanest_firmware_unbind(&rig->firmware, 5));
    exanest_scratchpad_unbind(&rig->pad, 5);
    rig_request(rig, rig_add(rig, 0, 0, 100), 5, 1, 1, 1);
    rig_finish(rig, 1000000);
    assert_int_equal(rig->firmware.counters.reads_unbound, 1);
    assert_false(exanest_firmware_bind(&rig->firmware, 5, 1004));
    assert_true(exanest_firmware_bind(&rig->firmware, 5, 1005));
    assert_false(exanest_firmware_bind(&rig->firmware, 5, 1006));
    free(rig);
}

/* Row EXA-A22: with more blocks to come than the R5 can do, it takes a block in `c`. */
static void test_block_cost(void **state)
{
    (void)state;
    for (uint32_t c = 500; c <= 32000; c *= 4) {
        struct exanest_firmware_config config = exanest_firmware_defaults();
        exanest_firmware_set_block_cost(&config.costs, c);
        config.writes_outstanding = 64;
        struct rig *rig = rig_new(&config, 1);
        rig_post(rig, rig_add(rig, 0, 0, 64 * 16384), 0, 0, false, false);
        rig_post(rig, rig_add(rig, 0, 0, 64 * 16384), 1, 0, false, false);
        while (rig->firmware.counters.acks < 20) {
            rig_step(rig);
        }
        const uint64_t from = rig->now;
        while (rig->firmware.counters.acks < 40) {
            rig_step(rig);
        }
        if (c >= 2000) {
            assert_in_range((rig->now - from) / 20, c * 99 / 100, c * 101 / 100);
        }
        rig_finish(rig, 100000000);
        free(rig);
    }
}

/* What-if: responses cost nothing. And an R5 that polls and finds nothing pays for a read. */
static void test_costs(void **state)
{
    (void)state;
    uint64_t time[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct exanest_firmware_config config = exanest_firmware_defaults();
        config.writes_outstanding = 1;
        if (i == 1) {
            exanest_firmware_set_hardware_responses(&config.costs);
        }
        struct rig *rig = rig_new(&config, 1);
        rig_post(rig, rig_add(rig, 0, 0, 10 * 16384), 0, 0, false, false);
        rig_finish(rig, 1000000);
        time[i] = rig->now;
        free(rig);
    }
    assert_in_range(time[0] - time[1], 10 * 1500, 10 * 1500 + 3000);
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.polls_when_idle = true;
    struct rig *rig = rig_new(&config, 1);
    rig_event(rig, 1000000, RIG_WAKE, 0, 0, 0);
    rig_finish(rig, 2000000);
    assert_int_equal(rig->sleeps, 0);
    assert_in_range(rig->firmware.counters.response_reads_empty, 1000000 / 130, 1000000 / 130 + 2);
    free(rig);
}

/* Why notifications wait: a marked block that is not held back may complete before the others. */
static void test_notifies_early(void **state)
{
    (void)state;
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.notifies_early = true;
    struct rig *rig = rig_new(&config, 1);
    struct rig_transfer *transfer = rig_add(rig, 0, 0, 2 * 16384);
    rig->script[rig->scripted++] = RIG_LOST;
    rig_post(rig, transfer, 0, 0, true, false);
    rig_run_until(rig, 500000);
    assert_int_equal(transfer->notified, 1);
    assert_int_equal(transfer->delivered, 1); /* Half of the data is missing. */
    rig_finish(rig, 10000000);
    rig_assert_delivered(rig, transfer);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_no_read_in_vain),
        cmocka_unit_test(test_read_channels),
        cmocka_unit_test(test_full_read_queue),
        cmocka_unit_test(test_requests_dropped),
        cmocka_unit_test(test_no_tid),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_path_alternates),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_busy_channel),
        cmocka_unit_test(test_unbind),
        cmocka_unit_test(test_unbind_twice),
        cmocka_unit_test(test_block_cost),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_notifies_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
