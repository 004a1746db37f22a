/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A process that is known and idle costs 64 bytes, and its address 26; nothing ticks for
 *         it; and what it was about goes on as if it had not rested (SRD-33).
 * Method  100,000 processes at 50,000 addresses, in virtual time, of which 64 are active at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/srd_crowd.h"

#define PROCESSES 100000u
#define ACTIVE    64u
#define S         (1000 * CROWD_MS)

static const struct srd_limits many = {.contacts = PROCESSES,
                                       .peers = ACTIVE,
                                       .hosts = PROCESSES / CROWD_SHARED,
                                       .assemblies = 64,
                                       .requests = 256,
                                       .parts = 128,
                                       .packets = 256,
                                       .reads = 16};

static size_t bytes_of(uint32_t contacts, uint32_t hosts, uint32_t peers)
{
    struct srd_limits srd = many;
    srd.contacts = contacts;
    srd.hosts = hosts;
    srd.peers = peers;
    const struct nic_limits limits = crowd_limits(&srd);
    return nic_bytes(&limits);
}

/* A NIC allocates nothing after it was made, so its size is all that a process can cost. */
static void test_bytes(void **state)
{
    (void)state;
    static const uint32_t counts[] = {10000, 32767, 65535, 100000, 131072, 1000000};
    const size_t none = bytes_of(1, 1, 1);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        assert_in_range(bytes_of(counts[i] + 1, 1, 1) - none, 1, counts[i] * UINT64_C(60) + 64);
    }
    for (size_t i = 0; i < 3; i++) {
        const size_t hosts = bytes_of(1, counts[i] - 1, 1) - none;
        assert_in_range(hosts, 1, counts[i] * UINT64_C(26) + 64);
    }
}

/* Nothing goes on with anybody: then nothing is to be done, ever. */
static void expect_rest(const struct crowd *crowd, uint32_t known)
{
    nic_check(crowd->nic);
    assert_int_equal(srd_contact_count(crowd->nic), known);
    assert_int_equal(srd_peer_count(crowd->nic), 0);
    assert_true(srd_is_quiet(crowd->nic));
    assert_int_equal(nic_deadline(crowd->nic).ns, UINT64_MAX);
    assert_null(nic_next_qp(crowd->nic));
}

/* One message to each of `count`, 16 at a time. */
static void send_to_all(struct crowd *crowd, uint32_t count)
{
    struct completion completion;
    for (uint32_t i = 0; i < count; i += 16) {
        for (uint32_t k = i; k < i + 16; k++) {
            assert_int_equal(crowd_post(crowd, k, WORK_SEND, 8), STATUS_OK);
        }
        crowd_pass(crowd, CROWD_MS, true);
        for (uint32_t k = 0; k < 16; k++) {
            assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
            assert_int_equal(completion.status, COMPLETION_SUCCESS);
        }
    }
}

static void test_sending(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&many);
    send_to_all(crowd, PROCESSES);
    assert_int_equal(crowd->sent[SRD_HELLO], PROCESSES);
    assert_true(srd_peer_count(crowd->nic) != 0);
    crowd_pass(crowd, S + CROWD_MS, true);
    expect_rest(crowd, PROCESSES);
    send_to_all(crowd, PROCESSES); /* Their flows are still there ... */
    assert_int_equal(crowd->sent[SRD_HELLO], PROCESSES);
    assert_int_equal(crowd->sent[SRD_SEND], 2 * PROCESSES);
    crowd_pass(crowd, 31 * S, true);
    expect_rest(crowd, PROCESSES);
    send_to_all(crowd, 1600); /* ... but not after 30 s. */
    assert_int_equal(crowd->sent[SRD_HELLO], PROCESSES + 1600);
    crowd_end(crowd);
}

/* The answer to a SEND of 8 bytes by that process, of `psn`. */
static void expect_taken(struct crowd *crowd, uint32_t process, uint32_t flow, uint64_t tag,
                         uint32_t psn)
{
    struct srd_packet packet = crowd_request(crowd, SRD_SEND, process, flow, tag, psn);
    packet.message_bytes = packet.payload_bytes = 8;
    (void)crowd_say(crowd, process, &packet);
    assert_true(crowd_hear(crowd));
    assert_int_equal(crowd->last.opcode, SRD_ANSWER);
    assert_int_equal(crowd->last_to, process);
    assert_int_equal(crowd->last.answer.taken_before, psn + 1);
    assert_int_equal(crowd->last.answer.record_count, 0);
}

/* Each is challenged once; its tag and its PSNs are known when it comes again, and what it repeats
 * is not delivered twice. */
static void test_receiving(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&many);
    static uint64_t tags[PROCESSES];
    struct completion completion;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        crowd_pass(crowd, CROWD_MS, true);
        tags[i] = crowd_tag(crowd, i, i);
        crowd_post_receive(crowd, 8);
        expect_taken(crowd, i, i, tags[i], 7 * i);
        assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
    }
    crowd_pass(crowd, S + CROWD_MS, true);
    expect_rest(crowd, PROCESSES);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        crowd_post_receive(crowd, 8);
        expect_taken(crowd, i, i, tags[i], 7 * i);
        assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 0);
        expect_taken(crowd, i, i, tags[i], 7 * i + 1);
        assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
    }
    assert_int_equal(crowd->sent[SRD_CHALLENGE], PROCESSES);
    crowd_pass(crowd, S + CROWD_MS, true);
    expect_rest(crowd, PROCESSES);
    crowd_end(crowd);
}

/* A request that fails at once: its process rests as others do. */
static void test_failing(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&many);
    struct completion completion;
    assert_int_equal(crowd_post(crowd, 5, WORK_SEND, 8193), STATUS_OK);
    crowd_pass(crowd, CROWD_MS, true);
    assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
    assert_int_equal(completion.vendor_error, SRD_STATUS_LOCAL_BAD_LENGTH);
    crowd_pass(crowd, S + CROWD_MS, true);
    expect_rest(crowd, 1);
    crowd_end(crowd);
}

/* More are sent to than may be active: the others wait for them, and none fails. */
static void test_waiting(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&many);
    struct completion completion;
    for (uint32_t i = 0; i < 512; i++) {
        assert_int_equal(crowd_post(crowd, i, WORK_SEND, 8), STATUS_OK);
    }
    while (crowd_hear(crowd)) { /* They are greeted, and hear nothing. */
    }
    assert_int_equal(crowd->sent[SRD_HELLO], ACTIVE - ACTIVE / 4);
    crowd_pass(crowd, S, true);
    for (uint32_t i = 0; i < 512; i++) {
        assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
        assert_int_equal(completion.status, COMPLETION_SUCCESS);
    }
    crowd_end(crowd);
}

/* Packet `index` of a message of two from that process. */
static void say_half(struct crowd *crowd, uint32_t process, uint64_t tag, uint8_t index)
{
    struct srd_packet packet = crowd_request(crowd, SRD_SEND, process, process, tag, 5u + index);
    packet.index = index;
    packet.last = 1;
    packet.message_bytes = CROWD_CHUNK + 8;
    packet.payload_bytes = index == 0 ? CROWD_CHUNK : 8;
    packet.back = index;
    assert_int_equal(crowd_say(crowd, process, &packet), NIC_MOVES);
}

/* All peers are busy: three with messages that came in part, one with what the program sends, and
 * hears nothing of. Its next message waits until one of those is whole, and not until that peer
 * rests. */
static void test_yielding(void **state)
{
    (void)state;
    struct srd_limits few = many;
    few.peers = 4;
    struct crowd *crowd = crowd_start(&few);
    uint64_t tags[3];
    for (uint32_t i = 0; i < 3; i++) {
        tags[i] = crowd_tag(crowd, i * CROWD_SHARED, i * CROWD_SHARED);
        crowd_post_receive(crowd, 1024);
        say_half(crowd, i * CROWD_SHARED, tags[i], 0);
    }
    while (crowd_hear(crowd)) { /* Answers. */
    }
    assert_int_equal(crowd_post(crowd, 100, WORK_SEND, 8), STATUS_OK);
    assert_int_equal(crowd_post(crowd, 200, WORK_SEND, 8), STATUS_OK);
    assert_true(crowd_hear(crowd));
    assert_int_equal(crowd->last_to, 100);
    assert_false(crowd_hear(crowd));
    say_half(crowd, 0, tags[0], 1);
    assert_true(crowd_hear(crowd));
    assert_int_equal(crowd->last.opcode, SRD_ANSWER);
    assert_true(crowd_hear(crowd));
    assert_int_equal(crowd->last.opcode, SRD_HELLO);
    assert_int_equal(crowd->last_to, 200);
    crowd_pass(crowd, 5 * S, true);
    expect_rest(crowd, 5);
    crowd_end(crowd);
}

/* Processes may be forgotten to make room for others, and none is before T_FORGET. */
static void test_forgetting(void **state)
{
    (void)state;
    struct srd_limits few = many;
    few.contacts = 100;
    few.hosts = 100;
    struct crowd *crowd = crowd_start(&few);
    uint64_t tag = 0;
    for (uint32_t i = 0; i < 100; i++) {
        crowd_pass(crowd, CROWD_MS, true);
        tag = crowd_tag(crowd, i, i);
        crowd_post_receive(crowd, 8);
        expect_taken(crowd, i, i, tag, 5);
    }
    crowd_pass(crowd, 11 * S, true);
    expect_rest(crowd, 100);
    tag = crowd_tag(crowd, 100, 100);
    struct srd_packet packet = crowd_request(crowd, SRD_SEND, 100, 100, tag, 5);
    packet.message_bytes = packet.payload_bytes = 8;
    crowd_post_receive(crowd, 8);
    assert_int_equal(crowd_say(crowd, 100, &packet), NIC_DONE);
    assert_int_equal(nic_counters(crowd->nic)->values[COUNTER_drop_srd_full], 1);
    crowd_pass(crowd, S + 200 * CROWD_MS, true);
    expect_taken(crowd, 100, 100, tag, 5);
    /* A process that was forgotten is greeted anew, and so are its packets. */
    for (uint32_t i = 101; i < 200; i++) {
        assert_int_equal(crowd_post(crowd, i, WORK_SEND, 8), STATUS_OK);
        crowd_pass(crowd, S, true);
    }
    assert_int_equal(srd_contact_count(crowd->nic), 100);
    packet = crowd_request(crowd, SRD_SEND, 0, 0, 1, 6);
    packet.message_bytes = packet.payload_bytes = 8;
    (void)crowd_say(crowd, 0, &packet);
    assert_true(crowd_hear(crowd));
    assert_int_equal(crowd->last.opcode, SRD_CHALLENGE);
    crowd_end(crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_sending),
        cmocka_unit_test(test_receiving),  cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_failing),    cmocka_unit_test(test_yielding),
        cmocka_unit_test(test_forgetting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
