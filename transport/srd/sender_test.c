/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A sender brings each instance to the end that the receiver chose, over a network that
 *         loses, repeats and reorders; it greets, gives up and begins anew when it has to (SRD-24,
 *         SRD-28, SRD-29). It uses all of its paths, and leaves one that dies (SRD-36).
 * Method  Random worlds of one sender and one shipped receiver, whose verdicts are drawn; a table
 *         says what each message has to end with. Times and lost flows are tried one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "transport/srd/sender.h"

#define CHUNK    512u
#define RECORDS  64
#define MESSAGES 200
#define CHANNEL  256
#define MS       UINT64_C(1000000)
#define S        UINT64_C(1000000000)

struct way {
    struct srd_packet packets[CHANNEL];
    struct instant at[CHANNEL];
    uint32_t count;
};

struct bench {
    struct prng prng;
    struct instant now;
    struct srd_sender sender;
    struct path_policy policy;
    struct path_record path_records[SRD_PATH_RECORDS];
    struct srd_transmission transmissions[RECORDS];
    struct list records;
    struct srd_receiver receiver;
    bool open; /* The receiver knows the flow. */
    struct srd_assembly assemblies[8];
    bool used[8];
    struct way ways[2]; /* To the receiver, to the sender. */
    uint32_t loss, copies;
    uint64_t jitter;
    uint64_t delay[SRD_FLOW_PATHS]; /* By a path, there and back; UINT64_MAX: it is dead. */
    uint32_t carried[SRD_FLOW_PATHS], resent;
    struct path others[SRD_FLOW_PATHS - 1];
    struct path_record other_records[(SRD_FLOW_PATHS - 1) * SRD_PATH_RECORDS];
    struct srd_instance instances[MESSAGES];
    /* The receiver's verdict on each message, and its deeds. */
    uint8_t verdicts[MESSAGES]; /* enum srd_judged. */
    uint8_t refusals[MESSAGES]; /* How often there is no receive. */
    bool delivered[MESSAGES], ended[MESSAGES];
    uint32_t first_of[MESSAGES];
};

static void start(struct bench *bench, uint64_t seed)
{
    memset(bench, 0, sizeof(*bench));
    prng_init(&bench->prng, seed);
    bench->now = (struct instant){100 * S};
    bench->policy = path_policy_default();
    bench->jitter = MS / 10;
    list_init(&bench->records);
    for (int i = 0; i < RECORDS; i++) {
        list_init(&bench->transmissions[i].node);
        list_append(&bench->records, &bench->transmissions[i].node);
    }
    srd_sender_init(&bench->sender,
                    &(struct srd_sender_config){.chunk_bytes = CHUNK,
                                                .records = &bench->records,
                                                .policy = &bench->policy,
                                                .path_records = bench->path_records});
}

static void post(struct bench *bench, uint32_t message, uint32_t packets, uint8_t tries)
{
    struct srd_instance *instance = &bench->instances[message];
    instance->bytes = packets * CHUNK - 1;
    instance->packets = (uint8_t)packets;
    instance->tries = tries;
    srd_sender_post(&bench->sender, instance, bench->now);
}

/* -- The network --------------------------------------------------------------------------------*/

static void carry(struct bench *bench, int way, const struct srd_packet *packet)
{
    struct way *to = &bench->ways[way];
    const uint32_t copies = 1 + (prng_below(&bench->prng, 1000) < bench->copies);
    const uint8_t path = packet->opcode == SRD_ANSWER ? packet->answer.echo_path : packet->path;
    const uint64_t delay = bench->delay[path];
    bench->carried[path] += packet->opcode == SRD_SEND;
    bench->resent += packet->opcode == SRD_SEND && packet->resent;
    for (uint32_t i = 0; i < copies && delay != UINT64_MAX; i++) {
        if (prng_below(&bench->prng, 1000) >= bench->loss && to->count < CHANNEL) {
            to->packets[to->count] = *packet;
            to->at[to->count++] = instant_after(
                bench->now, delay + MS / 20 + prng_below(&bench->prng, bench->jitter));
        }
    }
}

static bool arrive(struct bench *bench, int way, struct srd_packet *packet)
{
    struct way *from = &bench->ways[way];
    uint32_t first = 0;
    for (uint32_t i = 1; i < from->count; i++) {
        first = instant_before(from->at[i], from->at[first]) ? i : first;
    }
    if (from->count == 0 || !instant_reached(bench->now, from->at[first])) {
        return false;
    }
    *packet = from->packets[first];
    from->count--;
    for (uint32_t i = first; i < from->count; i++) {
        from->packets[i] = from->packets[i + 1];
        from->at[i] = from->at[i + 1];
    }
    return true;
}

/* -- The receiver -------------------------------------------------------------------------------*/

static void challenge(struct bench *bench, const struct srd_packet *packet, enum srd_reason reason,
                      uint32_t boot)
{
    const struct srd_packet answer = {.opcode = SRD_CHALLENGE,
                                      .flow = packet->flow,
                                      .tag = packet->flow + 1,
                                      .challenge = {boot, (uint8_t)reason, packet->psn}};
    carry(bench, 1, &answer);
}

/* The message that a packet is of: its immediate data. */
static void judge(struct bench *bench, const struct srd_packet *packet)
{
    const uint32_t message = packet->immediate, psn = packet->psn;
    const struct srd_judgement judgement = srd_receiver_judge(&bench->receiver, packet);
    struct srd_assembly *assembly = judgement.assembly;
    switch (judgement.step) {
    case SRD_STEP_ANSWER:
    case SRD_STEP_MOVING:
    case SRD_STEP_BEYOND: return;
    case SRD_STEP_CONTRADICT: fail(); return;
    case SRD_STEP_SAME:
        srd_receiver_settle(&bench->receiver, psn, judgement.judged);
        bench->receiver.reply.due = true;
        return;
    case SRD_STEP_OPEN: {
        uint8_t judged = bench->verdicts[message];
        if (bench->refusals[message] != 0) {
            bench->refusals[message]--;
            judged = SRD_JUDGED_NO_RECEIVE;
        }
        if (judged != SRD_JUDGED_TAKEN) {
            srd_receiver_settle(&bench->receiver, psn, judged);
            bench->receiver.reply.due = true;
            return;
        }
        int free = 0;
        while (free < 8 && bench->used[free]) {
            free++;
        }
        if (free == 8) {
            return; /* There is no room: it is not judged. */
        }
        bench->used[free] = true;
        assembly = &bench->assemblies[free];
        srd_receiver_open(&bench->receiver, assembly, packet, bench->now);
        break;
    }
    case SRD_STEP_CONTINUE: break;
    }
    srd_receiver_move(&bench->receiver, assembly, psn);
    if (srd_receiver_moved(&bench->receiver, assembly, psn) == SRD_MOVED_COMPLETE) {
        bench->used[assembly - bench->assemblies] = false;
        assert_false(bench->delivered[message]);
        bench->delivered[message] = true;
    }
}

static void receive(struct bench *bench, const struct srd_packet *packet)
{
    struct srd_assembly *outdated;
    if (packet->opcode == SRD_HELLO) {
        challenge(bench, packet, SRD_REASON_HELLO, 7);
        return;
    }
    if (!bench->open) {
        srd_receiver_init(&bench->receiver, packet->flow, packet->tag, packet->psn - packet->back);
        bench->open = true;
    }
    srd_receiver_on_packet(&bench->receiver, packet, false, bench->now);
    while ((outdated = srd_receiver_outdated(&bench->receiver, bench->now)) != NULL) {
        assert_true(srd_receiver_leave(outdated));
        bench->used[outdated - bench->assemblies] = false;
    }
    if (packet->opcode == SRD_SEND) {
        judge(bench, packet);
    }
    bench->receiver.reply.due |= packet->ack_request;
    if (bench->receiver.reply.due) {
        struct srd_packet answer;
        srd_receiver_answer(&bench->receiver, 4, bench->now, &answer);
        carry(bench, 1, &answer);
    }
}

/* -- Time ---------------------------------------------------------------------------------------*/

static void pull(struct bench *bench)
{
    struct srd_packet packet;
    struct srd_departure leaving;
    while (srd_sender_ready(&bench->sender, bench->now) &&
           (leaving = srd_sender_next(&bench->sender, &bench->prng, bench->now, &packet)).kind !=
               SRD_LEAVES_NOTHING) {
        if (leaving.kind == SRD_LEAVES_PACKET) {
            packet.opcode = SRD_SEND;
            packet.immediate = (uint32_t)(leaving.instance - bench->instances);
            assert_true(packet.back < SRD_WINDOW);
        }
        carry(bench, 0, &packet);
    }
}

static void collect(struct bench *bench)
{
    struct srd_instance *instance;
    while ((instance = srd_sender_ended(&bench->sender)) != NULL) {
        const ptrdiff_t message = instance - bench->instances;
        assert_false(bench->ended[message]);
        bench->ended[message] = true;
        assert_true(instance->status != SRD_STATUS_OK || bench->delivered[message]);
    }
}

static void step(struct bench *bench)
{
    struct srd_packet packet;
    while (arrive(bench, 0, &packet)) {
        receive(bench, &packet);
    }
    while (arrive(bench, 1, &packet)) {
        if (packet.opcode == SRD_ANSWER) {
            assert_int_not_equal(srd_sender_on_answer(&bench->sender, &packet, bench->now),
                                 SRD_HEARD_IMPOSSIBLE);
        } else {
            (void)srd_sender_on_challenge(&bench->sender, &packet, bench->now);
        }
    }
    if (instant_reached(bench->now, srd_sender_deadline(&bench->sender, bench->now))) {
        srd_sender_on_time(&bench->sender, bench->now);
    }
    collect(bench);
    pull(bench);
    bench->now.ns += MS / 50;
}

static void widen(struct bench *bench, uint8_t paths)
{
    srd_sender_widen(&bench->sender, bench->others, bench->other_records, (uint8_t)(paths - 1),
                     bench->now);
}

/* -- Random worlds ------------------------------------------------------------------------------*/

static uint8_t expected_status(uint8_t verdict, uint8_t refusals, uint8_t tries)
{
    if (refusals > tries && tries != SRD_RETRY_FOREVER) {
        return SRD_STATUS_NO_RECEIVE;
    }
    return verdict == SRD_JUDGED_TAKEN ? SRD_STATUS_OK : (uint8_t)(verdict - SRD_JUDGED_REFUSED);
}

static void test_random_worlds(void **state)
{
    (void)state;
    static const uint8_t tries[] = {0, 1, 2, SRD_RETRY_FOREVER};
    struct bench *bench = malloc(sizeof(*bench));
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint8_t expected[MESSAGES];
        uint32_t left = MESSAGES, posted = 0;
        start(bench, seed);
        bench->loss = seed % 3 == 0 ? 0 : (uint32_t)prng_below(&bench->prng, 200);
        bench->copies = seed % 2 == 0 ? 0 : (uint32_t)prng_below(&bench->prng, 300);
        for (int steps = 0; left != 0; steps++) {
            assert_true(steps < 1000000);
            if (posted < MESSAGES && prng_below(&bench->prng, 4) == 0) {
                const uint8_t most = tries[prng_below(&bench->prng, COUNT_OF(tries))];
                bench->verdicts[posted] = prng_below(&bench->prng, 10)
                                              ? (uint8_t)SRD_JUDGED_TAKEN
                                              : srd_refused(SRD_STATUS_BAD_LENGTH);
                bench->refusals[posted] =
                    (uint8_t)(prng_below(&bench->prng, 4) == 0 ? prng_below(&bench->prng, 5) : 0);
                expected[posted] =
                    expected_status(bench->verdicts[posted], bench->refusals[posted], most);
                post(bench, posted,
                     1 + (uint32_t)prng_below(&bench->prng, prng_below(&bench->prng, 3) ? 4 : 64),
                     most);
                posted++;
            }
            step(bench);
            if (seed % 4 == 3 && bench->sender.state == SRD_FLOW_OPEN &&
                bench->sender.paths.count == 1 && rtt_known(&bench->sender.path.rtt)) {
                bench->delay[1] = prng_below(&bench->prng, 3) * MS;
                bench->delay[2] = prng_below(&bench->prng, 2) ? UINT64_MAX : MS;
                widen(bench, (uint8_t)(2 + seed / 4 % 2));
            }
            left = MESSAGES;
            for (uint32_t i = 0; i < posted; i++) {
                left -= bench->ended[i];
            }
        }
        for (uint32_t i = 0; i < MESSAGES; i++) {
            assert_int_equal(bench->instances[i].status, expected[i]);
            assert_int_equal(bench->delivered[i], expected[i] == SRD_STATUS_OK);
        }
        assert_true(srd_sender_is_idle(&bench->sender));
        assert_int_equal(bench->sender.lowest, bench->sender.next);
        assert_true(list_empty(&bench->sender.flight[0]) && list_empty(&bench->sender.lost));
    }
    free(bench);
}

/* -- Times --------------------------------------------------------------------------------------*/

/* How long a message waits for a receive each time, in units of 64 us (L10): as the receiver says,
 * or less at first, if it may wait for ever. */
static void expect_waits(uint8_t tries, const uint32_t *waits, uint32_t count)
{
    struct bench *bench = malloc(sizeof(*bench));
    uint32_t waited = 0;
    bool waits_now = false;
    start(bench, tries);
    bench->verdicts[0] = SRD_JUDGED_TAKEN;
    bench->refusals[0] = (uint8_t)(count + (tries != SRD_RETRY_FOREVER));
    post(bench, 0, 1, tries);
    while (!bench->ended[0]) {
        const struct instant now = bench->now;
        step(bench);
        if (!list_empty(&bench->sender.waiting) && !waits_now) {
            assert_true(waited < count);
            assert_int_equal(bench->instances[0].wait_until.ns - now.ns, waits[waited] * 64000);
            waited++;
        }
        waits_now = !list_empty(&bench->sender.waiting);
    }
    assert_int_equal(waited, count);
    assert_int_equal(bench->instances[0].status,
                     tries == SRD_RETRY_FOREVER ? SRD_STATUS_OK : SRD_STATUS_NO_RECEIVE);
    free(bench);
}

static void test_waits(void **state)
{
    (void)state;
    static const uint32_t as_told[] = {16, 16, 16}, sooner[] = {1, 2, 4, 8, 16, 16};
    expect_waits(3, as_told, COUNT_OF(as_told));
    expect_waits(SRD_RETRY_FOREVER, sooner, COUNT_OF(sooner));
}

/* HELLO leaves at 0, 5, 15, 35, 75 and 155 ms, then every 100 ms; nobody ever answered: 15. */
static void test_unreachable(void **state)
{
    (void)state;
    static const uint64_t times[] = {0, 5, 15, 35, 75, 155, 255, 355};
    struct bench *bench = malloc(sizeof(*bench));
    uint32_t hellos = 0;
    struct srd_packet packet;
    start(bench, 1);
    const struct instant began = bench->now;
    post(bench, 0, 1, 0);
    while (!bench->ended[0]) {
        if (srd_sender_ready(&bench->sender, bench->now)) {
            const struct srd_departure leaving =
                srd_sender_next(&bench->sender, &bench->prng, bench->now, &packet);
            if (leaving.kind == SRD_LEAVES_HELLO) {
                assert_true(hellos >= COUNT_OF(times) ||
                            bench->now.ns == began.ns + times[hellos] * MS);
                hellos++;
            }
        }
        collect(bench);
        const struct instant next = srd_sender_deadline(&bench->sender, bench->now);
        assert_true(bench->ended[0] || instant_before(bench->now, next));
        bench->now = bench->ended[0] ? bench->now : next;
    }
    assert_int_equal(bench->instances[0].status, SRD_STATUS_UNREACHABLE);
    assert_in_range((bench->now.ns - began.ns) / MS, 4000, 4100);
    assert_in_range(hellos, 44, 46);
    free(bench);
}

/* Opens the flow of a bench, whose network is good. */
static void open_flow(struct bench *bench)
{
    post(bench, 0, 1, 0);
    bench->verdicts[0] = SRD_JUDGED_TAKEN;
    while (!bench->ended[0]) {
        step(bench);
    }
    assert_int_equal(bench->instances[0].status, SRD_STATUS_OK);
}

/* -- Several paths (SRD-36) ---------------------------------------------------------------------*/

/* Messages of 20 packets from `from` on: all end well. */
static void play(struct bench *bench, uint32_t from, uint32_t count)
{
    memset(bench->carried, 0, sizeof(bench->carried));
    for (uint32_t i = from; i < from + count; i++) {
        bench->verdicts[i] = SRD_JUDGED_TAKEN;
        post(bench, i, 20, 0);
    }
    for (uint32_t i = from; i < from + count; i++) {
        while (!bench->ended[i]) {
            step(bench);
        }
        assert_int_equal(bench->instances[i].status, SRD_STATUS_OK);
        assert_true(bench->delivered[i]);
    }
}

/* One path is 20 times as long as the other. Both carry, and what is only late does not go again.
 */
static void test_unequal_paths(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 7);
    open_flow(bench);
    bench->delay[1] = 2 * MS;
    bench->jitter = 1;
    widen(bench, 2);
    play(bench, 1, 150);
    assert_true(bench->carried[0] > 300 && bench->carried[1] > 300);
    assert_int_equal(bench->resent, 0);
    free(bench);
}

static bool is_suspect(const struct bench *bench, uint8_t path)
{
    return paths_at(&bench->sender.paths, path)->suspect;
}

/* A path dies in the middle: what was under way there goes again by the other one, which then
 * carries all but a few tries. It comes back, and carries again. */
static void die(uint8_t dead)
{
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 8);
    open_flow(bench);
    bench->jitter = 1;
    widen(bench, 2);
    play(bench, 1, 40);
    assert_true(bench->carried[dead] > 100 && bench->resent == 0);
    const uint64_t delay = bench->delay[dead];
    bench->delay[dead] = UINT64_MAX;
    play(bench, 41, 40);
    assert_true(bench->resent > 0 && is_suspect(bench, dead));
    const uint32_t resent = bench->resent;
    play(bench, 81, 40);
    assert_true(bench->resent == resent && bench->carried[dead] == 0);
    bench->delay[dead] = delay;
    bench->now.ns += S / 2;
    play(bench, 121, 70);
    assert_true(!is_suspect(bench, dead) && bench->carried[dead] > 100);
    free(bench);
}

static void test_a_path_dies(void **state)
{
    (void)state;
    die(0);
    die(1);
}

/* A flow that begins anew has one path again, and a lone packet takes the quickest. */
static void test_paths_of_a_flow(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 9);
    open_flow(bench);
    bench->delay[1] = 2 * MS;
    widen(bench, 2);
    play(bench, 1, 40);
    memset(bench->carried, 0, sizeof(bench->carried));
    for (uint32_t i = 50; i < 60; i++) {
        bench->verdicts[i] = SRD_JUDGED_TAKEN;
        post(bench, i, 1, 0);
        while (!bench->ended[i]) {
            step(bench);
        }
    }
    assert_true(bench->carried[0] == 10 && bench->carried[1] == 0);
    bench->now.ns = bench->sender.used_at.ns + SRD_IDLE_NS;
    bench->open = false;
    play(bench, 60, 1);
    assert_int_equal(bench->sender.paths.count, 1);
    free(bench);
}

/* -- Questions ----------------------------------------------------------------------------------*/

/* How many packets of a kind are under way; `asks`: of those that ask for an answer. */
static uint32_t count_leaving(const struct bench *bench, enum srd_opcode opcode, bool asks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bench->ways[0].count; i++) {
        const struct srd_packet *packet = &bench->ways[0].packets[i];
        count += packet->opcode == opcode && (!asks || packet->ack_request);
    }
    return count;
}

static void post_one_by_one(struct bench *bench, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        bench->verdicts[i] = SRD_JUDGED_TAKEN;
        post(bench, i, 1, 0);
        pull(bench);
    }
}

static void step_until_ended(struct bench *bench, uint32_t message)
{
    while (!bench->ended[message]) {
        step(bench);
    }
}

/* The first of some messages that are posted one by one asks for an answer. When that is there, the
 * next message asks, or soon a probe does: long before the timeout. */
static void test_who_asks(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 10);
    open_flow(bench);
    bench->jitter = 1;
    post_one_by_one(bench, 1, 1);
    step_until_ended(bench, 1);

    post_one_by_one(bench, 2, 10);
    assert_int_equal(count_leaving(bench, SRD_SEND, false), 10);
    assert_int_equal(count_leaving(bench, SRD_SEND, true), 1);
    step_until_ended(bench, 2);
    assert_false(bench->ended[11]);
    post_one_by_one(bench, 12, 1);
    assert_int_equal(count_leaving(bench, SRD_SEND, true), 1);
    step_until_ended(bench, 12);
    assert_true(bench->ended[11]);

    post_one_by_one(bench, 13, 10);
    step_until_ended(bench, 13);
    const struct instant answered = bench->now;
    const uint64_t trip_ns = bench->sender.path.rtt.smoothed_ns;
    while (count_leaving(bench, SRD_PROBE, true) == 0) {
        step(bench);
    }
    assert_true(bench->now.ns - answered.ns <= trip_ns / 4 + MS / 25);
    step_until_ended(bench, 22);
    assert_true(bench->now.ns - answered.ns <= trip_ns * 3 / 2 + MS / 10);
    assert_int_equal(bench->resent, 0);
    free(bench);
}

/* -- Life ---------------------------------------------------------------------------------------*/

/* SRD-28: 4 s after its first packet left; the answer that comes then is not believed. */
static void test_give_up(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 2);
    open_flow(bench);
    bench->verdicts[1] = SRD_JUDGED_TAKEN;
    post(bench, 1, 1, 0);
    pull(bench);
    assert_int_equal(bench->ways[0].count, 1);
    const struct srd_packet request = bench->ways[0].packets[0];
    bench->ways[0].count = 0;
    bench->now.ns += 4 * S;
    receive(bench, &request);
    assert_true(bench->delivered[1] && bench->ways[1].count == 1);
    assert_int_equal(srd_sender_on_answer(&bench->sender, &bench->ways[1].packets[0], bench->now),
                     SRD_HEARD);
    collect(bench);
    assert_true(bench->ended[1]);
    assert_int_equal(bench->instances[1].status, SRD_STATUS_UNRESPONSIVE);
    free(bench);
}

/* SRD-29: the receiver does not know the flow any more. Of the same process everything begins anew;
 * of another, what had left ends, and what had not goes on. */
static void lose(bool same)
{
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 3);
    open_flow(bench);
    for (uint32_t i = 1; i < 4; i++) {
        bench->verdicts[i] = SRD_JUDGED_TAKEN;
        post(bench, i, i == 1 ? 2 : 64, 0);
    }
    pull(bench); /* 64 records: the last message does not leave whole, or not at all. */
    const uint32_t old_flow = bench->sender.flow;
    struct srd_packet packet = bench->ways[0].packets[0];
    bench->ways[0].count = bench->ways[1].count = 0;
    bench->open = false;
    challenge(bench, &packet, SRD_REASON_STALE, same ? 7 : 8);
    packet = bench->ways[1].packets[0];
    bench->ways[1].count = 0;
    packet.challenge.psn += 100000;
    assert_int_equal(srd_sender_on_challenge(&bench->sender, &packet, bench->now),
                     SRD_HEARD_IMPOSSIBLE);
    packet.challenge.psn -= 100000;
    assert_int_equal(srd_sender_on_challenge(&bench->sender, &packet, bench->now), SRD_HEARD);
    assert_int_equal(srd_sender_on_challenge(&bench->sender, &packet, bench->now), SRD_HEARD_STALE);
    while (!bench->ended[1] || !bench->ended[2] || !bench->ended[3]) {
        step(bench);
    }
    assert_int_not_equal(bench->sender.flow, old_flow);
    assert_int_equal(bench->instances[1].status, same ? SRD_STATUS_OK : SRD_STATUS_ABORT);
    assert_int_equal(bench->instances[3].status, SRD_STATUS_OK);
    assert_int_equal(bench->delivered[1], same);
    free(bench);
}

static void test_lost_flow(void **state)
{
    (void)state;
    lose(true);
    lose(false);
}

/* After 30 s without a packet the flow is begun anew. */
static void test_idle(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 4);
    open_flow(bench);
    const uint32_t flow = bench->sender.flow;
    bench->now.ns = bench->sender.used_at.ns + SRD_IDLE_NS - 1;
    bench->verdicts[1] = bench->verdicts[2] = SRD_JUDGED_TAKEN;
    post(bench, 1, 1, 0);
    pull(bench);
    assert_int_equal(bench->sender.flow, flow);
    while (!bench->ended[1]) {
        step(bench);
    }
    bench->now.ns = bench->sender.used_at.ns + SRD_IDLE_NS;
    bench->open = false;
    post(bench, 2, 1, 0);
    while (!bench->ended[2]) {
        step(bench);
    }
    assert_int_not_equal(bench->sender.flow, flow);
    assert_int_equal(bench->instances[2].status, SRD_STATUS_OK);
    free(bench);
}

/* Answers that nobody honest sends: they change nothing. */
static void test_impossible_answers(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 5);
    open_flow(bench);
    post(bench, 1, 2, 0);
    pull(bench);
    struct srd_sender *sender = &bench->sender;
    struct srd_packet answer = {.opcode = SRD_ANSWER,
                                .flow = sender->flow,
                                .tag = sender->tag,
                                .answer = {.taken_before = sender->lowest, .echo_void = true}};
    struct srd_packet wrong = answer;
    wrong.answer.taken_before = sender->next + 1;
    assert_int_equal(srd_sender_on_answer(sender, &wrong, bench->now), SRD_HEARD_IMPOSSIBLE);
    wrong = answer;
    wrong.answer.record_count = 1;
    wrong.answer.records[0] = (struct srd_record){.psn = sender->next, .bitmap = 1};
    assert_int_equal(srd_sender_on_answer(sender, &wrong, bench->now), SRD_HEARD_IMPOSSIBLE);
    wrong = answer;
    wrong.answer.echo_void = false;
    wrong.answer.echo_tsn = psn_after(sender->path.next, 1).value;
    assert_int_equal(srd_sender_on_answer(sender, &wrong, bench->now), SRD_HEARD_IMPOSSIBLE);
    wrong.answer.echo_tsn = sender->path.next.value - 1;
    wrong.answer.echo_path = SRD_FLOW_PATHS; /* A flow that rested may have had others. */
    assert_int_equal(srd_sender_on_answer(sender, &wrong, bench->now), SRD_HEARD_IMPOSSIBLE);
    wrong = answer;
    wrong.flow ^= 1;
    assert_int_equal(srd_sender_on_answer(sender, &wrong, bench->now), SRD_HEARD_STALE);
    wrong = answer;
    wrong.tag ^= 1;
    assert_int_equal(srd_sender_on_answer(sender, &wrong, bench->now), SRD_HEARD_STALE);
    assert_int_equal(bench->instances[1].taken, 0);
    assert_int_equal(srd_sender_on_answer(sender, &answer, bench->now), SRD_HEARD);
    free(bench);
}

/* The program does not want it any more: nothing of it is left, and the others go on. */
static void test_withdraw(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    start(bench, 6);
    open_flow(bench);
    for (uint32_t i = 1; i < 4; i++) {
        bench->verdicts[i] = SRD_JUDGED_TAKEN;
        post(bench, i, 40, 0);
    }
    pull(bench);
    srd_sender_withdraw(&bench->sender, &bench->instances[1]);
    srd_sender_withdraw(&bench->sender, &bench->instances[3]);
    while (!bench->ended[2]) {
        step(bench);
    }
    assert_int_equal(bench->instances[2].status, SRD_STATUS_OK);
    assert_true(srd_sender_is_idle(&bench->sender) && list_empty(&bench->sender.flight[0]));
    free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds), cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_give_up),       cmocka_unit_test(test_lost_flow),
        cmocka_unit_test(test_idle),          cmocka_unit_test(test_impossible_answers),
        cmocka_unit_test(test_withdraw),      cmocka_unit_test(test_unequal_paths),
        cmocka_unit_test(test_a_path_dies),   cmocka_unit_test(test_paths_of_a_flow),
        cmocka_unit_test(test_waits),         cmocka_unit_test(test_who_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
