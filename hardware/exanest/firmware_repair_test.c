/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The firmware repairs a block that failed: by its cause, at its time, up to the limit, and
 *         this block alone is sent again. The two known hazards are there.
 * Method  Hand-made fates in the rig, which judges each store by itself.
 */
#include "hardware/exanest/firmware_rig.h"

static struct exanest_firmware_config continuing(void)
{
    struct exanest_firmware_config config = exanest_firmware_defaults();
    config.sequences = EXANEST_CONTINUING;
    return config;
}

/* One transfer of `bytes`, whose blocks have the fates of the script. */
static struct rig *script(const struct exanest_firmware_config *config, const uint8_t *fates,
                          uint32_t count, uint32_t bytes)
{
    struct rig *rig = rig_new(config, 1);
    memcpy(rig->script, fates, count);
    rig->scripted = count;
    rig_post(rig, rig_add(rig, 0, 0, bytes), 0, 0, true, false);
    return rig;
}

/* Until the third word is stored once more. */
static uint64_t next_issue(struct rig *rig)
{
    const uint64_t last = rig->w3_at;
    while (rig->w3_at == last) {
        assert_false(rig_over(rig));
        rig_step(rig);
    }
    return rig->w3_at;
}

#define SCRIPT(config, bytes, ...)                                                                 \
    script(config, (const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), bytes)

/* EXA-45: a block that failed is sent again under the next sequence, alone and at once. */
static void test_crc(void **state)
{
    (void)state;
    const struct exanest_firmware_config config = exanest_firmware_defaults();
    struct rig *rig = SCRIPT(&config, 4 * 16384, RIG_ACK, RIG_NACK_CRC);
    struct rig_transfer *transfer = &rig->transfers[0];
    rig_finish(rig, 1000000);
    rig_assert_delivered(rig, transfer);
    assert_int_equal(transfer->sent[1], 2);
    assert_int_equal(transfer->sent[0] + transfer->sent[2] + transfer->sent[3], 3);
    assert_int_equal(exanest_descriptor_decode(rig->blocks[transfer->tid[1]].words).sequence, 1);
    assert_int_equal(rig->firmware.counters.retransmits, 1);
    assert_int_equal(rig->firmware.counters.nacks[EXANEST_NACK_CRC], 1);
    assert_int_equal(rig->firmware.counters.sequence_stores, 1);
    assert_int_equal(rig_state(rig, transfer).retransmissions, 1);
    assert_int_equal(rig_state(rig, transfer).last_status, EXANEST_NACK_CRC);
    assert_true(rig->now < 100000);
    free(rig);
}

/* EXA-51: a NACK that comes while the send unit still sends. The rig sees a store before Done. */
static void test_waits_for_done(void **state)
{
    (void)state;
    const struct exanest_firmware_config config = continuing();
    struct rig *rig = SCRIPT(&config, 100, RIG_NACK_EARLY);
    const uint64_t first = next_issue(rig);
    const uint64_t second = next_issue(rig);
    assert_in_range(second - first, 50000, 50000 + config.descriptor_poll_ns + 2000);
    assert_in_range(rig->firmware.counters.not_done, 10, 30);
    rig_finish(rig, 1000000);
    rig_assert_delivered(rig, &rig->transfers[0]);
    free(rig);
}

/* No context: 20 us, then twice as long each time; more NACKs of the same instance are
 * stale. */
static void test_back_off(void **state)
{
    (void)state;
    const struct exanest_firmware_config config = continuing();
    struct rig *rig = SCRIPT(&config, 100, RIG_NACK_NO_CONTEXT, RIG_NACK_OFTEN, RIG_NACK_NO_CONTEXT,
                             RIG_NACK_NO_CONTEXT);
    uint64_t before = next_issue(rig);
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t at = next_issue(rig);
        const uint64_t waits = config.back_off_ns << i;
        assert_in_range(at - before, waits + 5000, waits + RIG_ANSWER_NS + 3000);
        before = at;
    }
    rig_finish(rig, 1000000);
    rig_assert_delivered(rig, &rig->transfers[0]);
    assert_int_equal(rig->firmware.counters.stale, 4);
    assert_int_equal(rig->firmware.counters.nacks[EXANEST_NACK_NO_CONTEXT], 4);
    free(rig);
}

/* EXA-46: lost data, or a lost answer: the timeout. With a lost answer a second notification
 * comes (EXA-108). */
static void test_timeout(void **state)
{
    (void)state;
    static const uint8_t fates[] = {RIG_LOST, RIG_ACK_LOST, RIG_ACK_LATE};
    static const uint32_t notified[] = {1, 2, 1};
    for (uint32_t i = 0; i < 3; i++) {
        const struct exanest_firmware_config config = continuing();
        struct rig *rig = script(&config, &fates[i], 1, 100);
        const uint64_t first = next_issue(rig);
        assert_in_range(next_issue(rig) - first, config.block_timeout_ns,
                        config.block_timeout_ns + 2000);
        rig_finish(rig, 10000000);
        assert_int_equal(rig->firmware.counters.timeouts, 1);
        assert_int_equal(rig->transfers[0].notified, notified[i]);
        assert_int_equal(rig->firmware.counters.stale, fates[i] == RIG_ACK_LATE);
        assert_int_equal(rig_state(rig, &rig->transfers[0]).last_status, EXANEST_LAST_TIMEOUT);
        free(rig);
    }
}

/* EXA-51: a block that the send unit has not come to is not late: its time begins anew. */
static void test_slow_send_unit(void **state)
{
    (void)state;
    const struct exanest_firmware_config config = continuing();
    struct rig *rig = SCRIPT(&config, 100, RIG_SLOW);
    rig_finish(rig, 10000000);
    assert_int_equal(rig->firmware.counters.timeouts, 0);
    assert_int_equal(rig->firmware.counters.timeouts_unsent, 2);
    assert_int_equal(rig->firmware.counters.retransmits, 0);
    rig_assert_delivered(rig, &rig->transfers[0]);
    free(rig);
}

/* The answer to a block that was sent just before its second timeout is waited for as long as any
 * other; a block that was lost is still found. */
static void test_sent_at_the_last_moment(void **state)
{
    (void)state;
    const struct exanest_firmware_config config = continuing();
    for (uint32_t lost = 0; lost < 2; lost++) {
        struct rig *rig = SCRIPT(&config, 100, RIG_LOST);
        const uint64_t first = next_issue(rig);
        rig->blocks[0].done_at = first + 2 * config.block_timeout_ns - 5000;
        if (!lost) {
            rig_event(rig, rig->blocks[0].done_at + 7000, RIG_ARRIVAL, 0, 1, EXANEST_ACK);
        } else {
            assert_in_range(next_issue(rig) - first, 3 * config.block_timeout_ns,
                            3 * config.block_timeout_ns + 5000);
        }
        rig_finish(rig, 10000000);
        assert_int_equal(rig->firmware.counters.timeouts_unsent, 2);
        assert_int_equal(rig->firmware.counters.timeouts, lost);
        assert_int_equal(rig->firmware.counters.retransmits, lost);
        assert_int_equal(rig->firmware.counters.stale, 0);
        rig_assert_delivered(rig, &rig->transfers[0]);
        free(rig);
    }
}

/* An answer that came in time, behind others that are not read yet, is waited for. A block whose
 * answer is not among them is found when a full mailbox could have been read. */
static void test_unread_answer(void **state)
{
    (void)state;
    const struct exanest_firmware_config config = continuing();
    for (uint32_t lost = 0; lost < 2; lost++) {
        struct rig *rig = SCRIPT(&config, 100, RIG_LOST);
        const uint64_t first = next_issue(rig);
        rig_run_until(rig, first + config.block_timeout_ns - 3000);
        for (uint32_t i = 0; i < 60; i++) {
            rig_respond(rig, 500, 0, EXANEST_ACK);
        }
        if (!lost) {
            rig_event(rig, rig->now, RIG_ARRIVAL, 0, 1, EXANEST_ACK);
        } else {
            assert_in_range(next_issue(rig) - first, config.block_timeout_ns + 90000,
                            config.block_timeout_ns + 110000);
        }
        rig_finish(rig, 10000000);
        assert_int_equal(rig->firmware.counters.timeouts, lost);
        assert_int_equal(rig->firmware.counters.retransmits, lost);
        assert_int_equal(rig->firmware.counters.stale, 60);
        rig_assert_delivered(rig, &rig->transfers[0]);
        free(rig);
    }
}

/* EXA-47: an old or a coming sequence, TIDs that wait for nothing, statuses that are none. */
static void test_stale(void **state)
{
    (void)state;
    const struct exanest_firmware_config config = continuing();
    struct rig *rig = SCRIPT(&config, 100, RIG_LOST);
    next_issue(rig); /* TID 0, sequence 1. */
    rig_respond(rig, 0, 0, EXANEST_ACK);
    rig_respond(rig, 0, 2, EXANEST_ACK);
    rig_respond(rig, 1, 0, EXANEST_ACK);
    rig_respond(rig, 1023, 0, EXANEST_NACK_CRC);
    rig_respond(rig, 0, 1, EXANEST_NACK_FULL);
    rig_respond(rig, 0, 1, 15);
    rig_run_until(rig, 500000);
    assert_int_equal(rig->firmware.counters.stale, 4);
    assert_int_equal(rig->firmware.counters.malformed, 2);
    assert_int_equal(rig->firmware.counters.acks, 0);
    assert_int_equal(rig->transfers[0].sent[0], 1);
    rig_finish(rig, 10000000);
    rig_assert_delivered(rig, &rig->transfers[0]);
    free(rig);
}

/* EXA-52: a page fault at the source. The driver's word starts the block again; without it
 * the timeout does. */
static void test_source_fault(void **state)
{
    (void)state;
    static const uint8_t fates[] = {RIG_FAULT, RIG_FAULT_MUTE};
    for (uint32_t i = 0; i < 2; i++) {
        const struct exanest_firmware_config config = continuing();
        struct rig *rig = script(&config, &fates[i], 1, 100);
        const uint64_t first = next_issue(rig);
        const uint64_t expected = i == 0 ? 60000 : config.block_timeout_ns;
        assert_in_range(next_issue(rig) - first, expected, expected + 2000);
        rig_finish(rig, 10000000);
        rig_assert_delivered(rig, &rig->transfers[0]);
        assert_int_equal(rig->firmware.counters.mapped, i == 0);
        assert_int_equal(rig_state(rig, &rig->transfers[0]).last_status, EXANEST_LAST_SOURCE_FAULT);
        free(rig);
    }
}

/* EXA-52: a page fault at the destination: an event, or waiting. Events about blocks that
 * have no fault change nothing. */
static void test_destination_fault(void **state)
{
    (void)state;
    struct exanest_firmware_config config = continuing();
    config.fault_wait_ns = 100000;
    struct rig *rig = SCRIPT(&config, 100, RIG_NACK_FAULT, RIG_NACK_FAULT, RIG_NACK_FAULT);
    uint64_t before = next_issue(rig);
    rig_event(rig, before + 40000, RIG_MAPPED, 0, 0, 0);
    uint64_t at = next_issue(rig);
    assert_in_range(at - before, 40000, 42000);
    for (uint32_t i = 1; i <= 2; i++) { /* The first wait was cut short, but it counts. */
        before = at;
        at = next_issue(rig);
        assert_in_range(at - before, config.fault_wait_ns << i,
                        (config.fault_wait_ns << i) + RIG_ANSWER_NS + 3000);
    }
    exanest_firmware_on_mapped(&rig->firmware, 0); /* In flight, without a fault; not Done, */
    rig_run_until(rig, rig->now + 4000);
    rig_event(rig, rig->now + 7000, RIG_MAPPED, 0, 0, 0); /* and Done. */
    exanest_firmware_on_mapped(&rig->firmware, 77);
    rig_finish(rig, 10000000);
    assert_int_equal(rig->transfers[0].sent[0], 4);
    assert_int_equal(rig->firmware.counters.mapped, 1);
    rig_assert_delivered(rig, &rig->transfers[0]);
    free(rig);
}

/* A decode error ends the transfer after R_dec more; a fault told as one does not. */
static void test_decode(void **state)
{
    (void)state;
    for (uint32_t is_fault = 0; is_fault < 2; is_fault++) {
        struct exanest_firmware_config config = continuing();
        config.decode_is_fault = is_fault != 0;
        struct rig *rig = SCRIPT(&config, 100, RIG_NACK_DECODE, RIG_NACK_DECODE, RIG_NACK_DECODE,
                                 RIG_NACK_DECODE, RIG_NACK_DECODE);
        rig_finish(rig, 10000000);
        assert_int_equal(rig->transfers[0].sent[0], is_fault ? 6 : 5);
        assert_int_equal(rig_state(rig, &rig->transfers[0]).state,
                         is_fault ? EXANEST_TRANSFER_DONE : EXANEST_TRANSFER_ERROR);
        assert_int_equal(rig->firmware.counters.nacks[EXANEST_NACK_DECODE], 5);
        free(rig);
    }
}

/* EXA-67: the limit ends in ERROR, for each cause; the blocks that are still out come home first,
 * and a later transfer on the same TID and channel works. */
static void test_limit(void **state)
{
    (void)state;
    for (int doom = RIG_NACK_FAULT; doom < RIG_FATES; doom++) {
        if (doom == RIG_ACK_TWICE || doom == RIG_ACK_LOST || doom == RIG_SLOW) {
            continue;
        }
        struct exanest_firmware_config config = continuing();
        config.retries_max = 6;
        config.tids = 1;
        struct rig *rig = rig_new(&config, 1);
        struct rig_transfer *transfer = rig_add(rig, 0, 0, 3 * 16384);
        transfer->doom = doom;
        rig_post(rig, transfer, 0, 0, true, false);
        rig_finish(rig, 100000000);
        assert_int_equal(transfer->sent[0], doom == RIG_NACK_DECODE ? 5 : 7);
        assert_int_equal(transfer->sent[1], 0);
        assert_int_equal(rig_state(rig, transfer).state, EXANEST_TRANSFER_ERROR);
        assert_int_equal(rig->firmware.counters.writes_failed, 1);
        struct rig_transfer *later = rig_add(rig, 0, 0, 3 * 16384);
        rig_post(rig, later, 0, 0, true, false);
        rig_finish(rig, 10000000);
        rig_assert_delivered(rig, later);
        free(rig);
    }
}

/* EXA-67: one block fails for good, another is late. */
static void test_failed_with_others_out(void **state)
{
    (void)state;
    struct exanest_firmware_config config = continuing();
    config.retries_max = 0;
    struct rig *rig =
        SCRIPT(&config, 8 * 16384, RIG_NACK_CRC, RIG_LOST, RIG_SLOW, RIG_NACK_NO_CONTEXT);
    rig_run_until(rig, 20000); /* The firmware does not wait for refused blocks any more. */
    assert_int_equal(rig->firmware.free_count, config.tids - 2);
    rig_run_until(rig, 900000);
    assert_int_equal(rig_state(rig, &rig->transfers[0]).state, EXANEST_TRANSFER_ACTIVE);
    rig_finish(rig, 10000000);
    assert_int_equal(rig_state(rig, &rig->transfers[0]).state, EXANEST_TRANSFER_ERROR);
    assert_int_equal(rig_state(rig, &rig->transfers[0]).last_status, EXANEST_NACK_CRC);
    assert_int_equal(rig->firmware.counters.blocks, 4);
    assert_true(rig->now > 2 * config.block_timeout_ns); /* The slow one was waited for. */
    free(rig);
}

/* Row EXA-A24's comparison: the whole transfer again. */
static void test_resend_transfer(void **state)
{
    (void)state;
    struct exanest_firmware_config config = continuing();
    config.resend = EXANEST_RESEND_TRANSFER;
    struct rig *rig = SCRIPT(&config, 6 * 16384, RIG_ACK, RIG_NACK_CRC, RIG_LOST, RIG_ACK, RIG_ACK,
                             RIG_ACK, RIG_ACK, RIG_ACK, RIG_NACK_CRC);
    rig_finish(rig, 10000000);
    rig_assert_delivered(rig, &rig->transfers[0]);
    assert_int_equal(rig->firmware.counters.restarts, 2);
    assert_int_equal(rig->firmware.counters.retransmits, 0);
    assert_in_range(rig->firmware.counters.blocks, 4 + 5 + 6, 5 + 6 + 6);
    assert_int_equal(rig_state(rig, &rig->transfers[0]).acked, 6 * 16384);
    free(rig);
}

/* EXA-108: an answer that comes twice. `strict` takes the second for the answer to the next block
 * of the TID, which never arrived; `continuing` knows it for what it is. */
static void test_hazard_of_strict(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct exanest_firmware_config config = exanest_firmware_defaults();
        config.sequences = i == 0 ? EXANEST_STRICT : EXANEST_CONTINUING;
        config.tids = 1;
        struct rig *rig = SCRIPT(&config, 100, RIG_ACK_TWICE, RIG_LOST);
        rig_run_until(rig, 300000);
        struct rig_transfer *victim = rig_add(rig, 0, 0, 100);
        rig_post(rig, victim, 0, 1, true, false);
        rig_run_until(rig, 900000);
        assert_int_equal(victim->sent[0], 1);
        assert_int_equal(victim->delivered, 0);
        assert_int_equal(rig_state(rig, victim).state,
                         i == 0 ? EXANEST_TRANSFER_DONE : EXANEST_TRANSFER_ACTIVE);
        rig_finish(rig, 10000000);
        assert_int_equal(victim->delivered, i);
        assert_int_equal(rig->firmware.counters.stale, i);
        free(rig);
    }
}

/* The 14 bits of a sequence wrap, and go on. */
static void test_sequence_wraps(void **state)
{
    (void)state;
    struct exanest_firmware_config config = continuing();
    config.tids = 1;
    struct rig *rig = rig_new(&config, 1);
    rig->firmware.blocks[0].sequence = EXANEST_SEQUENCES - 2;
    struct rig_transfer *transfer = rig_add(rig, 0, 0, 3 * 16384);
    rig->script[1] = RIG_NACK_CRC;
    rig->scripted = 2;
    rig_post(rig, transfer, 0, 0, true, false);
    rig_finish(rig, 10000000);
    rig_assert_delivered(rig, transfer);
    assert_int_equal(rig->firmware.blocks[0].sequence, 2);
    assert_int_equal(exanest_descriptor_decode(rig->blocks[0].words).sequence, 2);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc),
        cmocka_unit_test(test_waits_for_done),
        cmocka_unit_test(test_back_off),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_slow_send_unit),
        cmocka_unit_test(test_sent_at_the_last_moment),
        cmocka_unit_test(test_unread_answer),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_source_fault),
        cmocka_unit_test(test_destination_fault),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_failed_with_others_out),
        cmocka_unit_test(test_resend_transfer),
        cmocka_unit_test(test_hazard_of_strict),
        cmocka_unit_test(test_sequence_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
