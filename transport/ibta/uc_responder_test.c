/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Over an unreliable connection a message arrives whole or not at all (IBTA 9.8.2).
 * Method  Random messages with packets dropped. The model: a message counts if and only if none of
 *         its packets was dropped; what the responder executes to the end must be just those.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/ibta/segmentation.h"
#include "transport/ibta/uc_responder.h"

#define MTU 256

static bool executes(enum uc_verdict verdict)
{
    return verdict == UC_VERDICT_EXECUTE || verdict == UC_VERDICT_EXECUTE_ANEW;
}

/* Feeds what of the message is not dropped; returns whether its end was executed. */
static bool feed(struct uc_responder *responder, struct prng *prng, const struct work *work,
                 struct psn first, uint32_t permille, bool *whole)
{
    const uint32_t packets = packets_of(work->bytes, MTU);
    bool ended = false;
    *whole = true;
    for (uint32_t i = 0; i < packets; i++) {
        const struct piece piece = work_piece(work, i, MTU);
        if (prng_below(prng, 1000) < permille) {
            *whole = false;
            continue;
        }
        const struct roce_packet packet = {
            .opcode = ROCE_OPCODE(ROCE_SERVICE_UC, piece.operation),
            .psn = psn_after(first, i).value,
            .payload_bytes = piece.bytes,
            .reth = {.address = 0, .key = 1, .bytes = work->bytes},
        };
        const enum uc_verdict verdict = uc_responder_judge(responder, &packet);
        if (executes(verdict)) {
            uc_responder_accept(responder, &packet);
            ended = piece.last;
        } else {
            uc_responder_abandon(responder, &packet);
            ended = false;
        }
    }
    return ended;
}

static void test_whole_or_not_at_all(void **state)
{
    (void)state;
    static const uint8_t kinds[] = {WORK_WRITE, WORK_SEND, WORK_SEND_IMMEDIATE,
                                    WORK_WRITE_IMMEDIATE};
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct prng prng;
        struct uc_responder responder;
        prng_init(&prng, seed);
        struct psn psn = psn_of(0xffff00); /* Soon over the wrap. */
        uc_responder_init(&responder, psn, MTU);
        uint32_t arrived = 0;
        for (int message = 0; message < 500; message++) {
            const struct work work = {.kind = kinds[prng_below(&prng, 4)],
                                      .bytes = (uint32_t)prng_below(&prng, 5 * MTU)};
            bool whole;
            const bool ended =
                feed(&responder, &prng, &work, psn, (uint32_t)(seed % 5 * 100), &whole);
            assert_int_equal(ended, whole);
            arrived += ended;
            psn = psn_after(psn, packets_of(work.bytes, MTU));
        }
        assert_true(seed % 5 == 0 ? arrived == 500 : arrived > 0 && arrived < 500);
    }
}

static void test_verdicts(void **state)
{
    (void)state;
    struct uc_responder responder;
    uc_responder_init(&responder, psn_of(10), MTU);
    struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_UC, ROCE_SEND_MIDDLE), .psn = 10, .payload_bytes = MTU};
    assert_int_equal(uc_responder_judge(&responder, &packet), UC_VERDICT_WRONG_ORDER);
    packet.psn = 12;
    assert_int_equal(uc_responder_judge(&responder, &packet), UC_VERDICT_GAP);
    packet.opcode = ROCE_OPCODE(ROCE_SERVICE_UC, ROCE_SEND_FIRST);
    assert_int_equal(uc_responder_judge(&responder, &packet), UC_VERDICT_EXECUTE_ANEW);
    packet.payload_bytes = MTU - 1; /* Not the last, so not full is wrong. */
    assert_int_equal(uc_responder_judge(&responder, &packet), UC_VERDICT_WRONG_LENGTH);
    packet.psn = 10;
    packet.payload_bytes = MTU;
    assert_int_equal(uc_responder_judge(&responder, &packet), UC_VERDICT_EXECUTE);
}

/* A packet that was dropped is the last one that is behind us: the next message is in order. */
static void test_next_after_a_drop(void **state)
{
    (void)state;
    struct uc_responder responder;
    uc_responder_init(&responder, psn_of(10), MTU);
    struct roce_packet packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UC, ROCE_SEND_LAST),
                                 .psn = 0xffffff,
                                 .payload_bytes = 1};
    uc_responder_abandon(&responder, &packet);
    packet.opcode = ROCE_OPCODE(ROCE_SERVICE_UC, ROCE_SEND_ONLY);
    packet.psn = 0;
    assert_int_equal(uc_responder_judge(&responder, &packet), UC_VERDICT_EXECUTE);
    packet.psn = 1;
    assert_int_equal(uc_responder_judge(&responder, &packet), UC_VERDICT_EXECUTE_ANEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_or_not_at_all),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_next_after_a_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
