/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Stores are acknowledged early when they may be, once, and as timers allow; what fails for
 *         good is told to those whom table 4.1 names.
 * Method  Cases by hand, each with the number of its behaviour.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/lant/shm_rig.h"

/* -- Early acknowledgements ---------------------------------------------------------------------*/

/* LNI-33: from the footer on, while a timer is free; the others wait for one, or for their peer.
 * LNI-29: a load never. */
static void test_early(void **state)
{
    (void)state;
    struct rig rig;
    struct lant_packet packets[5];
    rig_start(&rig, 2);
    for (uint32_t i = 0; i < 5; i++) {
        (void)rig_ask(&rig, rig_store(i, RIG_PEER, 8 * i), 0);
        assert_true(lant_shm_next_packet(&rig.shm, &packets[i]));
        rig_expect_nothing(&rig);
        lant_shm_sent(&rig.shm, &packets[i].footer, 0);
        if (i < 2) {
            rig_expect_done(&rig, i, LANT_SHM_EARLY, LANT_OKAY);
        }
        rig_expect_nothing(&rig);
    }
    assert_int_equal(rig.shm.counters.early_late, 3);
    /* 3 is answered before it gets a timer; then 2 gets the one of 1, and 4 that of 0. */
    (void)rig_answer(&rig, &packets[3], LANT_OKAY, 0, 1);
    rig_expect_done(&rig, 3, LANT_SHM_GENUINE, LANT_OKAY);
    (void)rig_answer(&rig, &packets[1], LANT_OKAY, 0, 2);
    rig_expect_done(&rig, 1, LANT_SHM_CONFIRMED, LANT_OKAY);
    rig_expect_done(&rig, 2, LANT_SHM_EARLY, LANT_OKAY);
    (void)rig_answer(&rig, &packets[0], LANT_OKAY, 0, 3);
    rig_expect_done(&rig, 0, LANT_SHM_CONFIRMED, LANT_OKAY);
    rig_expect_done(&rig, 4, LANT_SHM_EARLY, LANT_OKAY);
    (void)rig_ask(&rig, rig_load(7, RIG_PEER, 80), 4);
    assert_true(rig_send(&rig, 4));
    rig_expect_nothing(&rig);
    (void)rig_answer(&rig, &packets[4], LANT_OKAY, 0, 5);
    (void)rig_answer(&rig, &packets[2], LANT_DECERR, 0, 5);
    rig_expect_done(&rig, 4, LANT_SHM_CONFIRMED, LANT_OKAY);
    rig_expect_done(&rig, 2, LANT_SHM_DENIED, LANT_DECERR);
    assert_int_equal(rig.errors.counters.interrupts, 1);
    assert_int_equal(lant_errors_at(&rig.errors, 0)->kind, LANT_ERROR_STORE_EARLY);
    assert_int_equal(rig.shm.early_used, 0);
}

/* A second attempt of a store is not acknowledged early again. */
static void test_early_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, 16);
    (void)rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0);
    assert_true(rig_send(&rig, 0));
    rig_expect_done(&rig, 1, LANT_SHM_EARLY, LANT_OKAY);
    (void)rig_answer(&rig, &rig.packet, LANT_NACK_CRC, 0, 1);
    assert_true(rig_send(&rig, 1));
    rig_expect_nothing(&rig);
    assert_int_equal(rig.shm.early_used, 1);
    (void)rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 1);
    rig_expect_done(&rig, 1, LANT_SHM_CONFIRMED, LANT_OKAY);
}

/* -- Failures -----------------------------------------------------------------------------------*/

static struct lant_error only_record(struct rig *rig)
{
    assert_int_equal(lant_errors_count(&rig->errors), 1);
    return *lant_errors_at(&rig->errors, 0);
}

/* LNI-30: a load that nobody answers: OKAY with fake data, a record, an interrupt. */
static void test_failed_load(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, 16);
    (void)rig_ask(&rig, rig_load(0xabc, RIG_PEER, 0x128), 0);
    assert_int_equal(rig_fail_all(&rig, 0), 4 * RIG_TIMEOUT);
    assert_int_equal(rig.shm.counters.packets, 4);
    const struct lant_shm_done done = rig_done(&rig, 0);
    assert_int_equal(done.kind, LANT_SHM_FAILED);
    assert_int_equal(done.response, LANT_OKAY);
    assert_int_equal(done.data, rig.shm.config.fake_data);
    assert_true(done.fake);
    const struct lant_error error = only_record(&rig);
    assert_int_equal(error.time, 4 * RIG_TIMEOUT);
    assert_int_equal(error.address, lant_global(RIG_PEER, 0x128));
    assert_int_equal(error.reporter, RIG_NODE);
    assert_int_equal(error.initiator, 0xabc);
    assert_int_equal(error.kind, LANT_ERROR_LOAD);
    assert_int_equal(error.attempts, 4);
    assert_int_equal(error.response, LANT_NO_RESPONSE);
    assert_false(error.accelerator);
    assert_int_equal(rig.errors.counters.interrupts, 1);
    assert_true(lant_shm_idle(&rig.shm));
}

/* LNI-31: a store without early acknowledgement: a bus error and no more; with it, a negative
 * notice, a record and an interrupt. */
static void test_failed_store(void **state)
{
    (void)state;
    for (uint16_t early = 0; early < 2; early++) {
        struct rig rig;
        rig_start(&rig, early);
        (void)rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0);
        (void)rig_fail_all(&rig, 0);
        if (early != 0) {
            rig_expect_done(&rig, 1, LANT_SHM_EARLY, LANT_OKAY);
        }
        rig_expect_done(&rig, 1, early != 0 ? LANT_SHM_DENIED : LANT_SHM_FAILED, LANT_SLVERR);
        rig_expect_nothing(&rig);
        assert_int_equal(rig.errors.counters.interrupts, early);
        assert_int_equal(lant_errors_count(&rig.errors), early);
        assert_true(early == 0 || only_record(&rig).kind == LANT_ERROR_STORE_EARLY);
    }
}

/* LNI-32: an accelerator gets a bus error, the CPU in charge a report. */
static void test_failed_accelerator(void **state)
{
    (void)state;
    for (uint32_t store = 0; store < 2; store++) {
        struct rig rig;
        struct lant_packet report;
        struct lant_shm_request request =
            store != 0 ? rig_store(1, RIG_PEER, 8) : rig_load(1, RIG_PEER, 8);
        rig_start(&rig, 0);
        request.accelerator = true;
        (void)rig_ask(&rig, request, 0);
        (void)rig_fail_all(&rig, 0);
        const struct lant_shm_done done = rig_done(&rig, 0);
        assert_int_equal(done.kind, LANT_SHM_FAILED);
        assert_int_equal(done.response, LANT_SLVERR);
        assert_false(done.fake);
        assert_int_equal(done.data, 0);
        assert_true(lant_errors_next_report(&rig.errors, &report));
        assert_int_equal(report.header.destination, 77);
        assert_int_equal(report.payload[0], lant_global(RIG_PEER, 8));
    }
}

/* Exclusive accesses: as a load, and as a store with a bus error. */
static void test_failed_exclusive(void **state)
{
    (void)state;
    for (uint32_t store = 0; store < 2; store++) {
        struct rig rig;
        struct lant_shm_request request =
            store != 0 ? rig_store(1, RIG_PEER, 8) : rig_load(1, RIG_PEER, 8);
        rig_start(&rig, 16);
        request.lock = true;
        (void)rig_ask(&rig, request, 0);
        (void)rig_fail_all(&rig, 0);
        rig_expect_done(&rig, 1, LANT_SHM_FAILED, store != 0 ? LANT_SLVERR : LANT_OKAY);
        assert_int_equal(lant_errors_count(&rig.errors), 1 - store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_early_once),
        cmocka_unit_test(test_failed_load),
        cmocka_unit_test(test_failed_store),
        cmocka_unit_test(test_failed_accelerator),
        cmocka_unit_test(test_failed_exclusive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
