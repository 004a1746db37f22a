/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An address is proven by the number of a challenge that is out and by nothing else; the
 *         challenges that go there before are bounded in number and in time; a proof that is not
 *         repeated ends.
 * Method  One address, by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nic/proof.h"

#define SECOND UINT64_C(1000000000)

/* Challenges until `end`, as soon as each is due; returns how many. */
static uint32_t challenge_until(struct proof *proof, uint64_t number, uint64_t begin_ns,
                                uint64_t end_ns)
{
    uint32_t count = 0;
    while (proof->next.ns < end_ns) {
        const struct instant now = {proof->next.ns > begin_ns ? proof->next.ns : begin_ns};
        assert_true(proof_due(proof, true, now));
        assert_int_equal(proof_challenge(proof, number, now), number);
        assert_false(proof_due(proof, true, now));
        count++;
    }
    return count;
}

static void test_only_the_number_proves(void **state)
{
    (void)state;
    struct proof proof = {0};
    assert_false(proof_on_response(&proof, 0)); /* Nobody asked. */
    assert_int_equal(proof_challenge(&proof, 77, (struct instant){1}), 77);
    assert_int_equal(proof_challenge(&proof, 78, (struct instant){2}),
                     77); /* Either may be lost. */
    for (uint32_t bit = 0; bit < 64; bit++) {
        assert_false(proof_on_response(&proof, 77 ^ UINT64_C(1) << bit));
    }
    assert_false(proof.given);
    assert_true(proof_on_response(&proof, 77));
    assert_true(proof.given);
    assert_false(proof_on_response(&proof, 77)); /* Once. */
    assert_int_equal(proof_challenge(&proof, 79, (struct instant){SECOND}), 79);
    assert_false(proof_on_response(&proof, 77));
    assert_true(proof.given);
}

/* No host is there, or one that does not want our packets. */
static void test_who_never_responds_is_left_alone(void **state)
{
    (void)state;
    struct proof proof = {0};
    assert_in_range(challenge_until(&proof, 5, 1, SECOND), 1, 7);
    assert_in_range(challenge_until(&proof, 5, 1, 11 * SECOND), 1, 4);
    assert_in_range(challenge_until(&proof, 5, 1, 21 * SECOND), 0, 1);
    challenge_until(&proof, 5, 1, UINT64_MAX);
    assert_int_equal(proof.tries, PROOF_TRIES_MAX);
    assert_false(proof_due(&proof, true, (struct instant){UINT64_MAX - 1}));
    for (int i = 0; i < 300; i++) {
        proof_renew(&proof);
        assert_int_equal(challenge_until(&proof, 5, 600 * SECOND, UINT64_MAX), 1);
    }
    assert_true(proof_on_response(&proof, 5));
}

static void test_who_never_responded_has_to_be_paid_for(void **state)
{
    (void)state;
    struct proof proof = {0};
    assert_false(proof_due(&proof, false, (struct instant){SECOND}));
    assert_true(proof_due(&proof, true, (struct instant){SECOND}));
    (void)proof_challenge(&proof, 1, (struct instant){SECOND});
    assert_true(proof_on_response(&proof, 1));
    assert_false(proof_due(&proof, false, (struct instant){2 * SECOND}));
    assert_true(proof_due(&proof, false, (struct instant){3 * SECOND}));
}

/* The route is dead, or another host has the address now. Challenges go on, at least one in 11 s,
 * so that the route is found again. */
static void test_a_proof_ends(void **state)
{
    (void)state;
    struct proof proof = {0};
    (void)proof_challenge(&proof, 1, (struct instant){SECOND});
    assert_true(proof_on_response(&proof, 1));
    const uint64_t begin = proof.next.ns;
    challenge_until(&proof, 2, begin, begin + 2 * SECOND);
    assert_true(proof.given);
    challenge_until(&proof, 2, begin, begin + 6 * SECOND);
    assert_false(proof.given);
    assert_in_range(challenge_until(&proof, 2, begin, begin + 3600 * SECOND), 350, 370);
    assert_true(proof.next.ns < begin + 3611 * SECOND);
    assert_true(proof_on_response(&proof, 2));
    assert_true(proof.given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_number_proves),
        cmocka_unit_test(test_who_never_responds_is_left_alone),
        cmocka_unit_test(test_who_never_responded_has_to_be_paid_for),
        cmocka_unit_test(test_a_proof_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
