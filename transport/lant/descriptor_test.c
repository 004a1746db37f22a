/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The bits of a descriptor stand where Table 5.2 has them; what cannot be done is refused;
 *         a submission is three writes in their order, of which the last one commits.
 * Method  Cases by hand for each bit; random descriptors, there and back; random writes, held
 *         against the three last ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/descriptor.h"

#define DESTINATION UINT64_C(0x0520140011110000) /* Node 0x14805, 0x11110000 there. */

static struct lant_descriptor good(void)
{
    return (struct lant_descriptor){.source = 0x1000, .destination = DESTINATION, .bytes = 1};
}

static uint64_t word(const uint8_t *bytes, uint32_t at, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = count; i-- > 0;) {
        value = value << 8 | bytes[at + i];
    }
    return value;
}

/* LNI-41: the places of the fields. */
static void test_places(void **state)
{
    (void)state;
    uint8_t bytes[LANT_DESCRIPTOR_BYTES];
    struct lant_descriptor descriptor = good();
    descriptor.next = UINT64_C(0x1122334455667788);
    descriptor.bytes = LANT_TRANSFER_MAX;
    lant_descriptor_encode(&descriptor, bytes);
    assert_int_equal(word(bytes, 0x00, 8), descriptor.next);
    assert_int_equal(word(bytes, 0x08, 8), 0x1000);
    assert_int_equal(word(bytes, 0x10, 8), DESTINATION);
    assert_int_equal(word(bytes, 0x18, 4), 0x03ffffff);
    assert_int_equal(word(bytes, 0x1c, 4), 0);
    assert_int_equal(bytes[0], 0x88);

    descriptor = good();
    descriptor.bytes = 0;
    assert_int_equal(lant_descriptor_control(&descriptor), 0);
    descriptor.priority = 3;
    assert_int_equal(lant_descriptor_control(&descriptor), 0x0c000000);
    descriptor.priority = 0;
    descriptor.keyhole = true;
    assert_int_equal(lant_descriptor_control(&descriptor), 1u << 28);
    descriptor.keyhole = false;
    descriptor.no_register = true;
    assert_int_equal(lant_descriptor_control(&descriptor), 1u << 29);
    assert_int_equal(LANT_STATUS_COMPLETE, 0x80000000);
    assert_int_equal(LANT_STATUS_DECODE_ERROR, 0x40000000);
    assert_int_equal(LANT_STATUS_SLAVE_ERROR, 0x20000000);
    assert_int_equal(LANT_STATUS_INTERNAL_ERROR, 0x10000000);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < 20000; i++) {
        const uint64_t bits = prng_next(&prng);
        const struct lant_descriptor before = {
            .next = prng_next(&prng),
            .source = prng_next(&prng) >> 8 & ~UINT64_C(7),
            .destination = prng_next(&prng) & ~UINT64_C(0x20000000007),
            .bytes = 1 + (uint32_t)prng_below(&prng, LANT_TRANSFER_MAX),
            .status = (uint32_t)(bits & 0xf) << 28,
            .priority = bits >> 4 & 3,
            .keyhole = bits >> 6 & 1,
            .no_register = bits >> 7 & 1,
        };
        uint8_t bytes[LANT_DESCRIPTOR_BYTES];
        struct lant_descriptor after;
        lant_descriptor_encode(&before, bytes);
        assert_int_equal(lant_descriptor_decode(bytes, &after), LANT_SUBMIT_COMMITTED);
        assert_int_equal(after.next, before.next);
        assert_int_equal(after.source, before.source);
        assert_int_equal(after.destination, before.destination);
        assert_int_equal(after.bytes, before.bytes);
        assert_int_equal(after.status, before.status);
        assert_int_equal(after.priority, before.priority);
        assert_int_equal(after.keyhole, before.keyhole);
        assert_int_equal(after.no_register, before.no_register);
    }
}

/* LNI-41: each reserved bit by itself is refused. */
static void test_reserved(void **state)
{
    (void)state;
    const struct lant_descriptor descriptor = good();
    struct lant_descriptor after;
    for (uint32_t bit = 0; bit < 64; bit++) {
        uint8_t bytes[LANT_DESCRIPTOR_BYTES];
        lant_descriptor_encode(&descriptor, bytes);
        bytes[LANT_DESCRIPTOR_CONTROL + bit / 8] |= (uint8_t)(1u << bit % 8);
        const bool reserved = bit == 30 || bit == 31 || (bit >= 32 && bit < 60);
        assert_int_equal(lant_descriptor_decode(bytes, &after),
                         reserved ? LANT_SUBMIT_RESERVED : LANT_SUBMIT_COMMITTED);
    }
}

/* LNI-41: no bytes; bases are multiples of 8, lengths are not; addresses do not wrap. */
static void test_judge(void **state)
{
    (void)state;
    struct lant_descriptor descriptor = good();
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_COMMITTED);
    descriptor.bytes = 0;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_NO_BYTES);
    for (uint32_t low = 1; low < 8; low++) {
        descriptor = good();
        descriptor.source |= low;
        assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_UNALIGNED);
        descriptor = good();
        descriptor.destination |= low;
        assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_UNALIGNED);
        descriptor = good();
        descriptor.bytes += low;
        assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_COMMITTED);
    }
    descriptor = good();
    descriptor.bytes = LANT_TRANSFER_MAX + 1;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_RANGE);
    descriptor = good();
    descriptor.destination = lant_global(5, LANT_ADDRESSES - 1024);
    descriptor.bytes = 1024;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_COMMITTED);
    descriptor.bytes = 1025;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_RANGE);
    descriptor.keyhole = true;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_COMMITTED);
    descriptor = good();
    descriptor.source = UINT64_MAX - 7;
    descriptor.bytes = 8;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_COMMITTED);
    descriptor.bytes = 9;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_RANGE);
    descriptor = good();
    descriptor.priority = 4;
    assert_int_equal(lant_descriptor_judge(&descriptor), LANT_SUBMIT_RESERVED);
}

static enum lant_submit write_at(struct lant_submission *submission, uint32_t at, uint64_t value)
{
    struct lant_descriptor descriptor;
    return lant_submission_write(submission, at, value, &descriptor);
}

/* LNI-41: source, destination, control; the control write commits. */
static void test_submission(void **state)
{
    (void)state;
    struct lant_submission submission = {0};
    struct lant_descriptor descriptor;
    assert_int_equal(write_at(&submission, 0x08, 0x1000), LANT_SUBMIT_PART);
    assert_int_equal(write_at(&submission, 0x10, DESTINATION), LANT_SUBMIT_PART);
    assert_int_equal(lant_submission_write(&submission, 0x18, 0x24000200, &descriptor),
                     LANT_SUBMIT_COMMITTED);
    assert_int_equal(descriptor.source, 0x1000);
    assert_int_equal(descriptor.destination, DESTINATION);
    assert_int_equal(descriptor.bytes, 512);
    assert_int_equal(descriptor.priority, 1);
    assert_true(descriptor.no_register);
    assert_false(descriptor.keyhole);
    /* All three are needed again. */
    assert_int_equal(write_at(&submission, 0x18, 512), LANT_SUBMIT_ORDER);
    assert_int_equal(write_at(&submission, 0x10, DESTINATION), LANT_SUBMIT_ORDER);
    assert_int_equal(write_at(&submission, 0x08, 0x1000), LANT_SUBMIT_PART);
    assert_int_equal(write_at(&submission, 0x18, 512), LANT_SUBMIT_ORDER);
    assert_int_equal(write_at(&submission, 0x10, DESTINATION), LANT_SUBMIT_ORDER);
    for (uint32_t wrong = 0; wrong < 4; wrong++) {
        const uint64_t control[] = {0, UINT64_C(1) << 30, UINT64_C(1) << 32, UINT64_C(1) << 63};
        assert_int_equal(write_at(&submission, 0x08, 0x1000), LANT_SUBMIT_PART);
        assert_int_equal(write_at(&submission, 0x10, DESTINATION), LANT_SUBMIT_PART);
        assert_int_equal(write_at(&submission, 0x18, control[wrong]),
                         wrong == 0 ? LANT_SUBMIT_NO_BYTES : LANT_SUBMIT_RESERVED);
        assert_int_equal(write_at(&submission, 0x18, 512), LANT_SUBMIT_ORDER);
    }
    assert_int_equal(write_at(&submission, 0x00, 0), LANT_SUBMIT_PLACE);
    assert_int_equal(write_at(&submission, 0x1c, 0), LANT_SUBMIT_PLACE);
    assert_int_equal(write_at(&submission, 0x20, 0), LANT_SUBMIT_PLACE);
}

/* A submission commits exactly when the three last writes are the three, in their order. */
static void test_random_writes(void **state)
{
    (void)state;
    struct prng prng;
    struct lant_submission submission = {0};
    uint32_t before[2] = {0}, committed = 0;
    prng_init(&prng, 2);
    for (uint32_t i = 0; i < 50000; i++) {
        const uint32_t at = (uint32_t)prng_below(&prng, 4) * 8;
        const bool commits = before[0] == 0x08 && before[1] == 0x10 && at == 0x18;
        const enum lant_submit verdict = write_at(&submission, at, 8);
        assert_int_equal(verdict == LANT_SUBMIT_COMMITTED, commits);
        committed += commits;
        before[0] = before[1];
        before[1] = at;
    }
    assert_true(committed > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_reserved),   cmocka_unit_test(test_judge),
        cmocka_unit_test(test_submission), cmocka_unit_test(test_random_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
