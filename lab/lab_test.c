/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Settings are judged by name, word, unit and range; rows get the verdict that their claim
 *         asks for; results are kept as they are added.
 * Method  An experiment of two parameters and four claims that measures its parameters' values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "lab/lab.h"
#include "lab/names.h"
#include "lab/test_sources.h"

static const struct lab_parameter parameters[] = {
    LAB_REAL("speed", "MHz", 100, 1, 200, "1", "of the clock"),
    LAB_WORD("policy", "fair first-come none", "2", "of the arbiter"),
    LAB_FITTED_WHOLE("T-3", "cost", "cycles", 4, 0, 10, "OC", "of a credit"),
    LAB_WHOLE("other", "", 1, 0, 10, "OC", "another experiment's"),
};

static const struct lab_claim claims[] = {
    {"T-1", LAB_PRINTED, LAB_ARITHMETIC, NULL, "table 1", "speed=90", "the rate of the clock",
     NULL},
    {"T-2", LAB_PREDICTED, LAB_MECHANISM, NULL, "figure 2", "policy=none", "the arbiter", NULL},
    {"T-3", LAB_PRINTED, LAB_FITTED, NULL, "section 3", "cost=0", "what a credit costs", NULL},
    {"T-4", LAB_PRINTED, LAB_MECHANISM, NULL, "figure 4", "policy=none", "the arbiter",
     "the document does not say how"},
};

/* Puts a result away: a run without a number. */
static bool loses_rate;

static void measure(struct lab_run *run)
{
    const double speed = lab_value(run, "speed");
    lab_judge_relative(lab_add_row(run, "T-1", "MB/s", "rate"), 100,
                       loses_rate ? LAB_NOTHING : speed, 0.05);
    lab_judge_range(lab_add_row(run, "T-2/first", "", "share"), 0.9, 1,
                    lab_word(run, "policy") == 2 ? 0.5 : 1);
    lab_judge_absolute(lab_add_row(run, "T-3", "cycles", "cost"), 4, lab_value(run, "cost"), 1);
    lab_judge_range(lab_add_row(run, "T-4", "", "at least"), 10, LAB_UNBOUNDED, 5);
}

static const struct lab_document document = {.title = "none", .sections = "1 2.1"};

static const struct lab_experiment experiment = {
    .name = "test/one",
    .document = &document,
    .what = "a test",
    .parameters = parameters,
    .parameter_count = COUNT_OF(parameters),
    .uses = "speed policy cost=4",
    .claims = claims,
    .claim_count = COUNT_OF(claims),
    .run = measure,
    .explains = "nothing",
};

static struct lab_run run;

static void prepare(const char *settings)
{
    char error[300] = "";
    lab_prepare(&run, &experiment, 1);
    if (!lab_set_all(&run, settings, error, sizeof(error))) {
        fail_msg("%s", error);
    }
}

/* Runs that differ in a result, in a point or in their failure differ in their digests. */
static void test_digest_sees_results(void **state)
{
    (void)state;
    static const char *const settings[] = {"", "speed=101", "cost=5", "policy=none"};
    uint64_t digests[COUNT_OF(settings)];
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        prepare(settings[i]);
        (void)lab_execute(&run);
        assert_true(run.finished);
        digests[i] = run.digest;
        for (size_t k = 0; k < i; k++) {
            assert_true(digests[k] != digests[i]);
        }
        prepare(settings[i]);
        (void)lab_execute(&run);
        assert_true(run.digest == digests[i]);
    }
}

/* A run without a number has failed, judged or not; so has one that should be traced and has no
 * machine. */
static void test_no_number(void **state)
{
    (void)state;
    loses_rate = true;
    for (uint32_t i = 0; i < 2; i++) {
        prepare(i == 0 ? "" : "speed=90");
        assert_false(lab_execute(&run));
        assert_non_null(strstr(run.failure, "T-1 has no value"));
    }
    loses_rate = false;
    prepare("");
    assert_true(lab_execute(&run));
    prepare("");
    run.trace_path = "/nonexistent.json";
    assert_false(lab_execute(&run));
    assert_non_null(strstr(run.failure, "nothing to trace"));
}

/* Independent evidence is printed, comes out of a mechanism, and rests on no fit. */
static void test_independent(void **state)
{
    (void)state;
    struct lab_claim claim = {.reference = LAB_PRINTED, .ground = LAB_MECHANISM};
    assert_true(lab_is_independent(&claim));
    claim.reference = LAB_ELSEWHERE;
    assert_true(lab_is_independent(&claim));
    claim.given = "T-3";
    assert_false(lab_is_independent(&claim));
    claim.given = NULL;
    claim.reference = LAB_DERIVED;
    assert_false(lab_is_independent(&claim));
    assert_false(lab_is_independent(&claims[0]) || lab_is_independent(&claims[2]));
}

/* A place begins with a section, the name of another source, or OC; words may stand behind it. */
static void test_sources(void **state)
{
    (void)state;
    static const char *const others[] = {"RTL: the authors' sources", "R: theirs, too", NULL};
    static const struct lab_document named = {
        .title = "none", .sections = "1 2.1 figure", .others = others};
    char wrong[40];
    static const char *const known[] = {
        "1",   "2.1, the table", "2.1; OC",  "OC",
        "RTL", "R: 3",           "figure 7", "1 (below the table); RTL, rx"};
    static const char *const unknown[] = {"",   "2", "2.1.1", "1; 3", "RT", "RTL: 3; 2.2, words",
                                          "OCS"};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        assert_true(source_is_known(&named, known[i], wrong, sizeof(wrong)));
    }
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        assert_false(source_is_known(&named, unknown[i], wrong, sizeof(wrong)));
    }
    assert_false(source_is_known(&named, "1; 3, words; 2.1", wrong, sizeof(wrong)));
    assert_string_equal(wrong, "3, words");
    assert_false(source_is_known(&document, "R", wrong, sizeof(wrong)));
}

static void expect_refused(const char *setting, const char *says)
{
    char error[300] = "";
    lab_prepare(&run, &experiment, 1);
    assert_false(lab_set(&run, setting, error, sizeof(error)));
    if (strstr(error, says) == NULL) {
        fail_msg("'%s' was refused with: %s", setting, error);
    }
}

static void test_settings(void **state)
{
    (void)state;
    char text[64];
    prepare("policy=none speed=90MHz");
    assert_true(run.values[1] == 2 && run.values[0] == 90 && run.set[0] && run.set[1]);
    assert_false(run.set[2]);
    lab_value_text(&parameters[1], 2, text, sizeof(text));
    assert_string_equal(text, "none");
    lab_value_text(&parameters[1], 0, text, sizeof(text));
    assert_string_equal(text, "fair");
    lab_value_text(&parameters[0], 12.5, text, sizeof(text));
    assert_string_equal(text, "12.5");
    lab_range_text(&parameters[1], text, sizeof(text));
    assert_string_equal(text, "fair first-come none");
    lab_range_text(&parameters[0], text, sizeof(text));
    assert_string_equal(text, "1..200");
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("policy=first-cone", "the nearest is first-come");
    expect_refused("policy=2", "valid are fair first-come none");
    expect_refused("policy=", "valid are");
    expect_refused("speed=fast", "not a number");
    expect_refused("speed=90us", "is in MHz");
    expect_refused("speed=1000", "nearest valid is 200");
    expect_refused("cost=1.5", "whole number");
    expect_refused("spead=1", "'speed'");
    /* A parameter of the document, but not of this experiment. */
    expect_refused("other=2", "no parameter 'other'");
    expect_refused("speed", "NAME=VALUE");
}

static const char *verdict_of(const char *id)
{
    for (uint32_t i = 0; i < run.row_count; i++) {
        if (strcmp(run.rows[i].id, id) == 0) {
            return lab_verdict_text(lab_verdict_of(&run, &run.rows[i]));
        }
    }
    return "missing";
}

static void test_verdicts(void **state)
{
    (void)state;
    prepare("");
    assert_true(lab_execute(&run));
    assert_string_equal(verdict_of("T-1"), "ok");
    assert_string_equal(verdict_of("T-2/first"), "ok");
    assert_string_equal(verdict_of("T-4"), "not reproduced");
    assert_ptr_equal(lab_claim_of(&run, &run.rows[1]), &claims[1]);
    assert_true(run.used[0] && run.used[1] && run.used[2] && !run.used[3]);
    prepare("speed=90 policy=none");
    assert_false(lab_execute(&run));
    assert_string_equal(verdict_of("T-1"), "OUT");
    assert_string_equal(verdict_of("T-2/first"), "OUT");
    run.judged = false;
    assert_true(lab_run_good(&run));
    assert_string_equal(verdict_of("T-1"), "not judged");
    /* A row that is said not to be reproduced must not be. */
    prepare("");
    (void)lab_execute(&run);
    lab_judge_range(&run.rows[3], 1, LAB_UNBOUNDED, 5);
    assert_string_equal(verdict_of("T-4"), "UNEXPECTED");
    assert_false(lab_run_good(&run));
    /* A run that went wrong is never good. */
    prepare("");
    (void)lab_execute(&run);
    lab_fail(&run, "%s", "first");
    lab_fail(&run, "%s", "second");
    run.judged = false;
    assert_false(lab_run_good(&run));
    assert_string_equal(run.failure, "first");
}

static void test_tolerance(void **state)
{
    (void)state;
    struct lab_row row;
    char text[48];
    lab_judge_relative(&row, 200, 205, 0.05);
    assert_true(row.within && lab_tolerance_used(&row) == 0.5);
    lab_judge_absolute(&row, 90, 85, 5);
    assert_true(row.within && lab_tolerance_used(&row) == 1);
    lab_judge_absolute(&row, 0, 0, 0);
    assert_true(row.within && lab_tolerance_used(&row) == 0);
    lab_judge_absolute(&row, 0, 1, 0);
    assert_true(!row.within && lab_tolerance_used(&row) == LAB_UNBOUNDED);
    lab_judge_range(&row, 0.5, 0.55, 0.55);
    assert_true(row.within && lab_tolerance_used(&row) > 0.999 && lab_tolerance_used(&row) < 1.001);
    lab_judge_range(&row, 0.97, LAB_UNBOUNDED, 0.97);
    assert_true(row.within && lab_tolerance_used(&row) == 1);
    lab_judge_range(&row, -LAB_UNBOUNDED, 2, 3);
    assert_true(!row.within && lab_tolerance_used(&row) == 1.5);
    lab_published_text(&row, text, sizeof(text));
    assert_string_equal(text, "<= 2");
}

static void test_figures_and_memory(void **state)
{
    (void)state;
    prepare("");
    struct lab_figure *figure = lab_add_figure(&run, "7", "title", "x", "y", true);
    lab_add_mark(figure, LAB_NOTHING, 66.4, "printed");
    lab_add_point(lab_add_curve(&run, "curve %d", 1), 1, 2, LAB_NOTHING);
    (void)lab_add_figure(&run, "8", "title", "x", "y", false);
    (void)lab_add_curve(&run, "other");
    assert_int_equal(run.series[0].figure, 0);
    assert_int_equal(run.series[1].figure, 1);
    assert_string_equal(run.series[0].name, "curve 1");
    lab_add_memory(&run, "node", 2, 100);
    lab_add_memory(&run, "link", 8, 10);
    lab_add_memory(&run, "node", 4, 200);
    lab_add_memory(&run, "node", 1, 50);
    assert_int_equal(run.memory_count, 2);
    assert_int_equal(run.memories[0].count, 4);
    assert_int_equal(run.memories[0].bytes, 200);
}

static void test_alternatives(void **state)
{
    (void)state;
    const char *left = "speed=90 | policy=none speed=80 | cost=0";
    char settings[32];
    assert_true(lab_next_alternative(&left, settings, sizeof(settings)));
    assert_string_equal(settings, "speed=90");
    assert_true(lab_next_alternative(&left, settings, sizeof(settings)));
    assert_string_equal(settings, "policy=none speed=80");
    prepare(settings);
    assert_true(run.set[0] && run.set[1]);
    assert_true(lab_next_alternative(&left, settings, sizeof(settings)));
    assert_string_equal(settings, "cost=0");
    assert_false(lab_next_alternative(&left, settings, sizeof(settings)));
}

static void test_names(void **state)
{
    (void)state;
    const char *list = " one  two";
    char word[8];
    assert_int_equal(names_distance("credit", "credits"), 1);
    assert_int_equal(names_distance("", "abc"), 3);
    assert_true(names_next(&list, word, sizeof(word)));
    assert_string_equal(word, "one");
    assert_true(names_next(&list, word, sizeof(word)));
    assert_string_equal(word, "two");
    assert_false(names_next(&list, word, sizeof(word)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_figures_and_memory),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_alternatives),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_digest_sees_results),
        cmocka_unit_test(test_no_number),
        cmocka_unit_test(test_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
