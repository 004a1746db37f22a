/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A row's answer is told from any other; the timer that ends first is found, whatever the
 *         timeouts; retransmissions stay in their order.
 * Method  Every combination of response and attempt by hand; then rows taken, answered and expired
 *         by chance, held against a plain array that is searched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/retransmissions.h"
#include "transport/lant/transactions.h"

static struct lant_transactions table;

static uint16_t take(uint32_t identifier, uint32_t offset, uint32_t attempt, uint64_t now,
                     uint64_t timeout)
{
    const struct lant_transaction packet = {
        .identifier = identifier, .offset = offset, .attempt = (uint8_t)attempt};
    return lant_transaction_take(&table, &packet, now, timeout);
}

static struct lant_footer answer_of(uint32_t identifier, uint32_t offset, uint32_t row)
{
    return (struct lant_footer){.class = LANT_CLASS_RDMA,
                                .row = (uint16_t)row,
                                .generation = (uint8_t)(identifier >> 12),
                                .operation = identifier & 0xfff,
                                .offset = offset};
}

/* LNI-27: a foreign GEN, OPN or OFF is ignored, wherever the bit. */
static void test_foreign(void **state)
{
    (void)state;
    lant_transactions_init(&table, 16);
    const uint16_t row = take(0xabcde, 0x15555, 0, 5, 100);
    struct lant_footer answer = answer_of(0xabcde, 0x15555, row);
    assert_int_equal(lant_transaction_judge(&table, &answer), LANT_RDMA_ANSWER_POSITIVE);
    for (uint32_t bit = 0; bit < 20; bit++) {
        answer = answer_of(0xabcde ^ 1u << bit, 0x15555, row);
        assert_int_equal(lant_transaction_judge(&table, &answer), LANT_RDMA_ANSWER_STALE);
    }
    for (uint32_t bit = 0; bit < 17; bit++) {
        answer = answer_of(0xabcde, 0x15555 ^ 1u << bit, row);
        assert_int_equal(lant_transaction_judge(&table, &answer), LANT_RDMA_ANSWER_STALE);
    }
    for (uint32_t other = 0; other < 1u << 14; other++) {
        answer = answer_of(0xabcde, 0x15555, other);
        assert_int_equal(lant_transaction_judge(&table, &answer),
                         other == row ? LANT_RDMA_ANSWER_POSITIVE : LANT_RDMA_ANSWER_STALE);
    }
    lant_transaction_free(&table, row);
    answer = answer_of(0xabcde, 0x15555, row);
    assert_int_equal(lant_transaction_judge(&table, &answer), LANT_RDMA_ANSWER_STALE);
}

/* LNI-27: a NACK of an older copy is ignored, its positive answer is not. */
static void test_attempts(void **state)
{
    (void)state;
    lant_transactions_init(&table, 16);
    for (uint32_t attempt = 0; attempt < 8; attempt++) {
        const uint16_t row = take(7, attempt, attempt, 0, 100);
        for (uint32_t answered = 0; answered < 8; answered++) {
            for (uint32_t response = 0; response < 8; response++) {
                struct lant_footer answer = answer_of(7, attempt, row);
                answer.attempt = (uint8_t)answered;
                answer.response = (uint8_t)response;
                const enum lant_rdma_answer expected[8] = {
                    [LANT_OKAY] = LANT_RDMA_ANSWER_POSITIVE,
                    [LANT_EXOKAY] = LANT_RDMA_ANSWER_FOREIGN,
                    [LANT_SLVERR] = LANT_RDMA_ANSWER_FINAL,
                    [LANT_DECERR] = LANT_RDMA_ANSWER_FINAL,
                    [LANT_NACK_CRC] = LANT_RDMA_ANSWER_NEGATIVE,
                    [LANT_NACK_LINK] = LANT_RDMA_ANSWER_NEGATIVE,
                    [LANT_LOCKED] = LANT_RDMA_ANSWER_FOREIGN,
                    [LANT_NACK_BUSY] = LANT_RDMA_ANSWER_NEGATIVE,
                };
                enum lant_rdma_answer means = expected[response];
                if (answered > attempt) {
                    means = LANT_RDMA_ANSWER_STALE;
                } else if (answered < attempt && means == LANT_RDMA_ANSWER_NEGATIVE) {
                    means = LANT_RDMA_ANSWER_OLDER;
                }
                assert_int_equal(lant_transaction_judge(&table, &answer), means);
            }
        }
    }
}

/* LNI-25's rule for these rows: a timer ends exactly when it should, and none of others does. */
static void test_timers(void **state)
{
    (void)state;
    lant_transactions_init(&table, 16);
    assert_int_equal(lant_transactions_deadline(&table), LANT_NEVER);
    assert_int_equal(lant_transactions_expired(&table, LANT_NEVER), LANT_NO_ROW);
    const uint16_t first = take(1, 0, 0, 100, 10000);
    const uint16_t second = take(1, 1, 0, 101, 10000);
    const uint16_t near = take(2, 0, 0, 102, 50); /* A timeout of its own. */
    assert_int_equal(lant_transactions_deadline(&table), 152);
    assert_int_equal(lant_transactions_expired(&table, 151), LANT_NO_ROW);
    assert_int_equal(lant_transactions_expired(&table, 152), near);
    lant_transaction_free(&table, near);
    assert_int_equal(lant_transactions_expired(&table, 10099), LANT_NO_ROW);
    assert_int_equal(lant_transactions_expired(&table, 10100), first);
    lant_transaction_free(&table, first);
    assert_int_equal(lant_transactions_deadline(&table), 10101);
    lant_transaction_free(&table, second);
    assert_int_equal(table.used_max, 3);
}

struct entry {
    uint64_t deadline;
    uint32_t identifier;
    bool busy;
};
static struct entry model[LANT_ROWS_MAX];

static uint64_t model_deadline(uint32_t rows)
{
    uint64_t deadline = LANT_NEVER;
    for (uint32_t i = 0; i < rows; i++) {
        if (model[i].busy && model[i].deadline < deadline) {
            deadline = model[i].deadline;
        }
    }
    return deadline;
}

static void random_run(struct prng *prng, uint32_t rows)
{
    uint32_t used = 0, identifier = 0;
    lant_transactions_init(&table, rows);
    for (uint64_t now = 0; now < 6000; now += prng_below(prng, 3)) {
        const uint32_t row = (uint32_t)prng_below(prng, rows);
        if (prng_chance(prng, 600000) && used < rows) {
            const uint64_t timeout = prng_chance(prng, 800000) ? 200 : prng_below(prng, 400);
            const uint16_t taken = take(identifier, 0, 0, now, timeout);
            assert_false(model[taken].busy);
            model[taken] =
                (struct entry){.deadline = now + timeout, .identifier = identifier, .busy = true};
            identifier = (identifier + 1) & 0xfffff;
            used++;
        } else if (model[row].busy) {
            const struct lant_footer answer = answer_of(model[row].identifier, 0, row);
            assert_int_equal(lant_transaction_judge(&table, &answer), LANT_RDMA_ANSWER_POSITIVE);
            lant_transaction_free(&table, row);
            model[row].busy = false;
            used--;
        }
        assert_int_equal(lant_transactions_deadline(&table), model_deadline(rows));
        assert_int_equal(lant_transactions_full(&table), used == rows);
        while (lant_transactions_expired(&table, now) != LANT_NO_ROW) {
            const uint16_t expired = lant_transactions_expired(&table, now);
            assert_true(model[expired].busy && model[expired].deadline <= now);
            lant_transaction_free(&table, expired);
            model[expired].busy = false;
            used--;
        }
        lant_transactions_check(&table);
    }
    for (uint32_t i = 0; i < rows; i++) {
        model[i].busy = false;
    }
}

static void test_random(void **state)
{
    (void)state;
    const uint32_t rows[] = {1, 2, 16, 63, 64, 65, 200, LANT_ROWS_MAX};
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        random_run(&prng, rows[i]);
    }
}

/* Puts, takes and whole operations forgotten, against an array that is shifted. */
static void test_retransmissions(void **state)
{
    (void)state;
    static struct lant_retransmissions queue;
    static struct lant_partial plain[64];
    struct prng prng;
    uint32_t count = 0, kept;
    prng_init(&prng, 2);
    lant_retransmissions_init(&queue, 20);
    for (uint32_t i = 0; i < 20000; i++) {
        const uint64_t what = prng_below(&prng, 20);
        if (what < 11 && count < 20) {
            plain[count] = (struct lant_partial){
                .identifier = (uint32_t)prng_below(&prng, 4), .offset = i & 0xffffff, .attempt = 1};
            lant_retransmissions_put(&queue, plain[count++]);
        } else if (what < 19 && count != 0) {
            const struct lant_partial partial = lant_retransmissions_take(&queue);
            assert_int_equal(partial.offset, plain[0].offset);
            assert_int_equal(partial.identifier, plain[0].identifier);
            count--;
            for (uint32_t j = 0; j < count; j++) {
                plain[j] = plain[j + 1];
            }
        } else if (what == 19) {
            const uint32_t identifier = (uint32_t)prng_below(&prng, 4);
            kept = 0;
            for (uint32_t j = 0; j < count; j++) {
                if (plain[j].identifier != identifier) {
                    plain[kept++] = plain[j];
                }
            }
            assert_int_equal(lant_retransmissions_forget(&queue, identifier), count - kept);
            count = kept;
        }
        assert_int_equal(queue.count, count);
        for (uint32_t j = 0; j < count; j++) {
            assert_int_equal(lant_retransmissions_at(&queue, j)->offset, plain[j].offset);
        }
    }
    assert_int_equal(queue.count_max, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foreign),         cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_timers),          cmocka_unit_test(test_random),
        cmocka_unit_test(test_retransmissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
