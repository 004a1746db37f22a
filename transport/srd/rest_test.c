/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Who rested goes on as if he had not: a receiver gives the same verdicts and answers, a
 *         sender has the same flow, PSNs and TSNs. Nothing is forgotten too early (SRD-33).
 * Method  Beside a receiver that never rests runs one that rests whenever it may; both get the same
 *         random packets. Times at each edge, and after the 48 days in which they wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "transport/srd/rest.h"

#define S   UINT64_C(1000000000)
#define DAY (86400 * S)

static const struct siphash_key key = {{5, 6}};
static const struct srd_source source = {{9, 8, 7}, 3};

struct kept {
    struct srd_entry entry;
    struct srd_receiver receiver;
    struct instant heard_at;
};

/* A receiver is not to be copied: it is the head of a list. */
static void open_both(struct kept both[2], uint32_t flow, uint32_t base, struct instant now)
{
    for (int i = 0; i < 2; i++) {
        struct srd_entry *entry = &both[i].entry;
        srd_entry_open(entry, flow, srd_tag_make(&key, &source, flow, srd_ticks(now)), now);
        srd_receiver_init(&both[i].receiver, flow, entry->tag, base);
        both[i].heard_at = now;
    }
}

/* *again is `kept` after a rest. */
static void rest_until(const struct kept *kept, struct kept *again, struct instant now,
                       struct instant later)
{
    struct srd_rest rest;
    memset(&rest, 0xaa, sizeof(rest));
    srd_rest_receiver(&rest, &kept->entry, &kept->receiver, kept->heard_at, now);
    memset(again, 0xbb, sizeof(*again));
    srd_resume_receiver(&rest, &key, &source, &again->entry, &again->receiver, &again->heard_at,
                        later);
}

/* -- Receivers ----------------------------------------------------------------------------------*/

static void compare(const struct kept *kept, const struct kept *again)
{
    struct srd_answer one, other;
    memset(&one, 0, sizeof(one));
    memset(&other, 0, sizeof(other));
    srd_window_report(&kept->receiver.window, 3, &one);
    srd_window_report(&again->receiver.window, 3, &other);
    assert_memory_equal(&one, &other, sizeof(one));
    assert_int_equal(kept->receiver.window.base, again->receiver.window.base);
    assert_int_equal(kept->receiver.window.end, again->receiver.window.end);
    assert_int_equal(kept->receiver.flow, again->receiver.flow);
    assert_int_equal(kept->receiver.tag, again->receiver.tag);
    assert_int_equal(kept->entry.flow, again->entry.flow);
    assert_int_equal(kept->entry.tag, again->entry.tag);
    assert_int_equal(kept->entry.issued, again->entry.issued);
    assert_true(again->entry.known && again->entry.opened);
}

static void on_packet(struct kept *kept, uint32_t psn, uint32_t back, uint8_t judged,
                      struct instant now)
{
    const struct srd_packet packet = {
        .opcode = SRD_READ, .psn = psn, .back = (uint16_t)back, .chunk_bytes = 512};
    struct srd_packet answer;
    kept->heard_at = now;
    srd_receiver_on_packet(&kept->receiver, &packet, false, now);
    if (srd_receiver_judge(&kept->receiver, &packet).step == SRD_STEP_OPEN) {
        srd_receiver_settle(&kept->receiver, psn, judged);
    }
    srd_receiver_answer(&kept->receiver, 0, now, &answer);
}

static void test_receivers(void **state)
{
    (void)state;
    uint32_t rests = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        struct instant now = {prng_below(&prng, 300 * DAY)};
        uint32_t next = (uint32_t)prng_next(&prng), lowest = next;
        struct kept both[2];
        open_both(both, (uint32_t)prng_next(&prng), next, now);
        for (uint32_t i = 0; i < 300; i++) {
            const uint32_t jump = prng_below(&prng, 8) == 0 ? 1 : 0;
            const uint32_t behind = (uint32_t)prng_below(&prng, 4);
            const uint8_t judged =
                prng_below(&prng, 20) == 0 ? srd_refused(SRD_STATUS_BAD_QPN) : SRD_JUDGED_TAKEN;
            next += jump;
            if (next - lowest >= 1000 || prng_below(&prng, 6) == 0) {
                lowest = next;
            }
            const uint32_t psn = next - lowest > behind ? next - behind : next;
            on_packet(&both[0], psn, psn - lowest, judged, now);
            on_packet(&both[1], psn, psn - lowest, judged, now);
            next += psn == next;
            now.ns += prng_below(&prng, prng_below(&prng, 2) ? S : 1000);
            if (srd_receiver_may_rest(&both[1].receiver)) {
                rest_until(&both[1], &both[1], now, now);
                rests++;
            }
            compare(&both[0], &both[1]);
        }
    }
    assert_true(rests > 10000);
}

/* A flow that lives for months rests now and then. */
static void test_long_lives(void **state)
{
    (void)state;
    static const uint64_t ages[] = {0, 5 * 3600 * S, 40 * DAY, 49 * DAY, 2000 * DAY};
    for (size_t i = 0; i < COUNT_OF(ages); i++) {
        struct kept both[2];
        open_both(both, 77, UINT32_MAX - 3, (struct instant){3 * DAY});
        const struct instant now = {3 * DAY + ages[i]};
        for (uint32_t k = 0; k < 8; k++) {
            on_packet(&both[0], UINT32_MAX - 3 + k, k, SRD_JUDGED_TAKEN, now);
        }
        rest_until(&both[0], &both[1], now, (struct instant){now.ns + S});
        compare(&both[0], &both[1]);
        assert_true(now.ns - both[1].heard_at.ns < SRD_TICK_NS);
    }
}

/* All 1,024 PSNs that a window has. */
static void test_full_window(void **state)
{
    (void)state;
    const struct instant now = {S};
    struct kept both[2];
    open_both(both, 1, 100, now);
    for (uint32_t i = 0; i < SRD_WINDOW; i++) {
        on_packet(&both[0], 100 + i, i, SRD_JUDGED_TAKEN, now);
    }
    rest_until(&both[0], &both[1], now, now);
    compare(&both[0], &both[1]);
}

/* A receiver does not rest while a refusal is to be repeated, until all tags are too old. */
static void test_forgetting(void **state)
{
    (void)state;
    const struct instant now = {100 * S};
    const struct instant early = {112 * S - 1}, late = {112 * S + 2 * SRD_TICK_NS};
    struct kept both[2], *kept = &both[0];
    struct srd_rest rest = {0};
    open_both(both, 1, 100, now);
    assert_true(srd_rest_may_go(&rest, now)); /* Nothing was ever heard. */
    on_packet(kept, 100, 0, SRD_JUDGED_TAKEN, now);
    assert_true(srd_receiver_may_rest(&kept->receiver));
    srd_rest_receiver(&rest, &kept->entry, &kept->receiver, kept->heard_at, early);
    assert_true(rest.opened && rest.known);
    assert_false(srd_rest_may_go(&rest, early));
    assert_true(srd_rest_may_go(&rest, late));
    on_packet(kept, 101, 1, srd_refused(SRD_STATUS_BAD_LENGTH), now);
    assert_false(srd_receiver_may_rest(&kept->receiver));
    srd_rest_receiver(&rest, &kept->entry, &kept->receiver, kept->heard_at,
                      (struct instant){112 * S});
    assert_false(rest.opened || rest.known);
    /* The hole before 102 is one, too. */
    open_both(both, 1, 100, now);
    on_packet(kept, 102, 2, SRD_JUDGED_TAKEN, now);
    assert_false(srd_receiver_may_rest(&kept->receiver));
    on_packet(kept, 103, 0, SRD_JUDGED_TAKEN, now);
    assert_true(srd_receiver_may_rest(&kept->receiver));
}

/* -- Senders ------------------------------------------------------------------------------------*/

static struct path_policy policy;
static struct path_record records[2][SRD_PATH_RECORDS];
static struct list transmissions;

static void init(struct srd_sender *sender, int number)
{
    policy = path_policy_default();
    list_init(&transmissions);
    srd_sender_init(sender, &(struct srd_sender_config){.chunk_bytes = 512,
                                                        .records = &transmissions,
                                                        .policy = &policy,
                                                        .path_records = records[number]});
}

/* A sender with a flow, on whose path a packet took 20 us. */
static void open_sender(struct srd_sender *sender, struct instant now)
{
    struct srd_transmission one;
    struct srd_instance instance = {.bytes = 100, .packets = 1};
    struct srd_packet packet;
    struct prng prng;
    prng_init(&prng, 4);
    init(sender, 0);
    list_init(&one.node);
    list_append(&transmissions, &one.node);
    srd_sender_post(sender, &instance, now);
    assert_int_equal(srd_sender_next(sender, &prng, now, &packet).kind, SRD_LEAVES_HELLO);
    const struct srd_packet challenge = {.opcode = SRD_CHALLENGE,
                                         .flow = packet.flow,
                                         .tag = UINT64_C(0xfedcba9876543210),
                                         .challenge = {.boot = 12, .reason = SRD_REASON_HELLO}};
    now.ns += 20000;
    assert_int_equal(srd_sender_on_challenge(sender, &challenge, now), SRD_HEARD);
    assert_int_equal(srd_sender_next(sender, &prng, now, &packet).kind, SRD_LEAVES_PACKET);
    const struct srd_packet answer = {
        .opcode = SRD_ANSWER,
        .flow = packet.flow,
        .tag = packet.tag,
        .answer = {.taken_before = packet.psn + 1, .echo_tsn = packet.tsn}};
    now.ns += 20000;
    assert_int_equal(srd_sender_on_answer(sender, &answer, now), SRD_HEARD);
    assert_ptr_equal(srd_sender_ended(sender), &instance);
    list_remove(&one.node);
}

static void test_senders(void **state)
{
    (void)state;
    const struct instant now = {200 * S};
    struct srd_sender sender, again;
    struct srd_rest rest = {0};
    open_sender(&sender, now);
    srd_rest_sender(&rest, &sender);
    init(&again, 1);
    srd_resume_sender(&rest, &again, (struct instant){now.ns + 2 * S});
    assert_int_equal(again.state, SRD_FLOW_OPEN);
    assert_int_equal(again.flow, sender.flow);
    assert_int_equal(again.tag, sender.tag);
    assert_int_equal(again.boot, 12);
    assert_true(again.boot_known);
    assert_int_equal(again.next, sender.next);
    assert_int_equal(again.lowest, sender.next);
    assert_int_equal(again.path.next.value, sender.path.next.value);
    assert_in_range(again.path.rtt.smoothed_ns, 19000, 20000);
    assert_in_range(again.used_at.ns, sender.used_at.ns - SRD_TICK_NS, sender.used_at.ns);
    assert_in_range(srd_rest_age(&rest, (struct instant){now.ns + 2 * S}), 2047, 2049);
}

/* A sender without a flow knows whether its process ever answered (13 or 15). */
static void test_without_flow(void **state)
{
    (void)state;
    const struct instant now = {200 * S};
    struct srd_sender sender, again;
    struct srd_rest rest = {0};
    init(&sender, 0);
    for (int known = 0; known < 2; known++) {
        sender.boot_known = known != 0;
        srd_rest_sender(&rest, &sender);
        init(&again, 1);
        srd_resume_sender(&rest, &again, now);
        assert_int_equal(again.state, SRD_FLOW_NONE);
        assert_int_equal(again.boot_known, known);
    }
    assert_int_equal(srd_rest_age(&rest, now), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_receivers),   cmocka_unit_test(test_long_lives),
        cmocka_unit_test(test_full_window), cmocka_unit_test(test_forgetting),
        cmocka_unit_test(test_senders),     cmocka_unit_test(test_without_flow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
