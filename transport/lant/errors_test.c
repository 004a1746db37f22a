/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each row of the thesis' table 4.1 does what it says; the last 64 records are kept in
 *         order; an accelerator's failure reaches the CPU in charge, near or far.
 * Method  The table by hand; then failures and reports by chance, held against a long plain array.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/errors.h"

static struct lant_errors new_errors(uint32_t node, uint32_t in_charge)
{
    struct lant_errors errors;
    const struct lant_errors_config config = {.node = node, .in_charge = in_charge};
    lant_errors_init(&errors, &config);
    return errors;
}

/* LNI-30, LNI-31: what the initiator gets. */
static void test_actions(void **state)
{
    (void)state;
    struct lant_error_action action = lant_error_action(LANT_ERROR_LOAD, false);
    assert_int_equal(action.response, LANT_OKAY);
    assert_true(action.fake_data && action.record && action.interrupt && !action.report);
    action = lant_error_action(LANT_ERROR_STORE, false);
    assert_int_equal(action.response, LANT_SLVERR);
    assert_false(action.record || action.interrupt || action.notice || action.fake_data);
    action = lant_error_action(LANT_ERROR_STORE_EARLY, false);
    assert_true(action.notice && action.record && action.interrupt);
    action = lant_error_action(LANT_ERROR_LOAD_EXCLUSIVE, false);
    assert_int_equal(action.response, LANT_OKAY);
    assert_true(action.fake_data && action.record && action.interrupt);
    action = lant_error_action(LANT_ERROR_STORE_EXCLUSIVE, false);
    assert_int_equal(action.response, LANT_SLVERR);
    assert_false(action.record || action.interrupt);
}

/* LNI-32: bus error, report, and no interrupt of the local CPU unless it is in charge. */
static void test_accelerator(void **state)
{
    (void)state;
    const struct lant_error error = {.time = 5,
                                     .address = lant_global(7, 0x1238),
                                     .reporter = 3,
                                     .initiator = 0xfeedf00d,
                                     .kind = LANT_ERROR_LOAD,
                                     .attempts = 4,
                                     .response = LANT_NACK_CRC,
                                     .accelerator = true};
    struct lant_errors near = new_errors(3, 3), far = new_errors(3, 9), cpu = new_errors(9, 9);
    struct lant_packet packet;
    const struct lant_error_action action = lant_errors_record(&near, &error);
    assert_int_equal(action.response, LANT_SLVERR);
    assert_true(!action.fake_data && action.record && action.report && !action.interrupt);
    assert_int_equal(near.counters.interrupts, 1);
    assert_false(lant_errors_next_report(&near, &packet));

    (void)lant_errors_record(&far, &error);
    assert_int_equal(far.counters.interrupts, 0);
    assert_true(lant_errors_next_report(&far, &packet));
    assert_int_equal(packet.header.destination, 9);
    assert_int_equal(packet.header.type, LANT_ERROR_REPORT);
    assert_int_equal(packet.header.payload, 2);
    assert_false(lant_errors_next_report(&far, &packet));

    assert_true(lant_errors_on_report(&cpu, &packet, 77));
    assert_int_equal(cpu.counters.interrupts, 1);
    assert_int_equal(lant_errors_count(&cpu), 1);
    const struct lant_error *known = lant_errors_at(&cpu, 0);
    assert_int_equal(known->time, 77);
    assert_int_equal(known->address, error.address);
    assert_int_equal(known->reporter, error.reporter);
    assert_int_equal(known->initiator, error.initiator);
    assert_int_equal(known->kind, error.kind);
    assert_int_equal(known->attempts, error.attempts);
    assert_int_equal(known->response, error.response);
    assert_true(known->accelerator);
}

/* A report that a peer can write is judged. */
static void test_nonsense(void **state)
{
    (void)state;
    struct lant_errors errors = new_errors(1, 1);
    struct lant_packet packet = {.header = {.type = LANT_ERROR_REPORT, .payload = 2}};
    packet.payload[1] = LANT_ERROR_KIND_COUNT;
    assert_false(lant_errors_on_report(&errors, &packet, 0));
    packet.payload[1] = UINT64_C(1) << 24;
    assert_false(lant_errors_on_report(&errors, &packet, 0));
    packet.payload[1] = 0;
    packet.header.payload = 1;
    assert_false(lant_errors_on_report(&errors, &packet, 0));
    assert_int_equal(errors.written + errors.counters.interrupts, 0);
}

/* The model: every record that was ever written, and whether its report was taken or lost. */
struct model {
    uint32_t count, reported;
    uint64_t lost;
    uint32_t names[4096];
    bool owes[4096];
};

static void record_by_chance(struct prng *prng, struct lant_errors *errors, struct model *model)
{
    const struct lant_error error = {.reporter = 3,
                                     .initiator = (uint32_t)prng_next(prng),
                                     .kind = (uint8_t)prng_below(prng, LANT_ERROR_KIND_COUNT),
                                     .accelerator = prng_chance(prng, 500000)};
    if (lant_errors_record(errors, &error).record) {
        if (model->count >= LANT_ERRORS_MAX && model->owes[model->count - LANT_ERRORS_MAX]) {
            model->owes[model->count - LANT_ERRORS_MAX] = false;
            model->lost++;
        }
        model->names[model->count] = error.initiator;
        model->owes[model->count] = error.accelerator;
        model->count++;
    }
}

static void report_by_model(struct lant_errors *errors, struct model *model)
{
    struct lant_packet packet;
    while (model->reported < model->count && !model->owes[model->reported]) {
        model->reported++;
    }
    if (model->reported == model->count) {
        assert_false(lant_errors_next_report(errors, &packet));
        return;
    }
    assert_true(lant_errors_next_report(errors, &packet));
    assert_int_equal(packet.payload[1] >> 32, model->names[model->reported]);
    model->owes[model->reported] = false;
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct prng prng;
        struct lant_errors errors = new_errors(3, 9);
        struct model model = {0};
        prng_init(&prng, seed);
        for (uint32_t i = 0; i < 3000; i++) {
            /* Now and then nobody sends reports for a while. */
            if (prng_chance(&prng, i % 400 < 200 ? 300000 : 900000)) {
                record_by_chance(&prng, &errors, &model);
            } else {
                report_by_model(&errors, &model);
            }
            const uint32_t kept = lant_errors_count(&errors);
            assert_int_equal(kept, model.count < 64 ? model.count : 64);
            for (uint32_t j = 0; j < kept; j++) {
                assert_int_equal(lant_errors_at(&errors, j)->initiator,
                                 model.names[model.count - kept + j]);
            }
        }
        assert_int_equal(errors.counters.lost_reports, model.lost);
        assert_true(model.lost > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_actions),
        cmocka_unit_test(test_accelerator),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
