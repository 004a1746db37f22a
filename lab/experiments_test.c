/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every experiment stays within the tolerances of its document's acceptance table, with the
 *         parameters as they are; the same seed gives the same digest; wrong input is refused by
 *         name.
 * Method  All of them are run: FNX-56 ping-pong through the switch, FNX-57 one way, FNX-58 to
 *         itself, FNX-59 three to one, FNX-60 to all in turn, FNX-61 two nodes direct, FNX-62 xdd,
 *         FNX-63 archives, FNX-64 the trace, FNX-65 PostMark, FNX-47 saturation, FNX-67 the soak,
 *         here with every kind of fault at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "lab/lab.h"
#include "lab/names.h"
#include "lab/test_sources.h"

static struct lab_run *prepare(const char *name, uint64_t seed)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    const struct lab_experiment *experiment = lab_find(name);
    assert_non_null(run);
    assert_non_null(experiment);
    lab_prepare(run, experiment, seed);
    return run;
}

static void set_all(struct lab_run *run, const char *assignments)
{
    char error[300] = "";
    if (!lab_set_all(run, assignments, error, sizeof(error))) {
        fail_msg("%s: %s", run->experiment->name, error);
    }
}

static void set(struct lab_run *run, const char *assignment)
{
    set_all(run, assignment);
}

static void expect_good(struct lab_run *run)
{
    const bool good = lab_execute(run);
    for (uint32_t i = 0; i < run->row_count; i++) {
        const struct lab_row *row = &run->rows[i];
        const enum lab_verdict verdict = lab_verdict_of(run, row);
        if (verdict != LAB_OK && verdict != LAB_NOT_REPRODUCED) {
            print_message("%s %s: %g, %s\n", row->id, row->what, row->measured,
                          lab_verdict_text(verdict));
        }
    }
    assert_string_equal(run->failure, "");
    assert_true(good);
}

/* It depends on the parameters that it names, and on no others. */
static void expect_uses(const struct lab_run *run)
{
    for (uint32_t i = 0; i < run->experiment->parameter_count; i++) {
        if (lab_uses(run->experiment, i) != run->used[i]) {
            fail_msg("%s: %s is %s", run->experiment->name, run->experiment->parameters[i].name,
                     run->used[i] ? "used, and not listed" : "listed, and not used");
        }
    }
}

/* Every claim has a row. */
static void expect_rows(const struct lab_run *run)
{
    for (uint32_t i = 0; i < run->experiment->claim_count; i++) {
        uint32_t rows = 0;
        for (uint32_t k = 0; k < run->row_count; k++) {
            rows += run->rows[k].claim == i;
        }
        if (rows == 0) {
            fail_msg("%s: no row for %s", run->experiment->name, run->experiment->claims[i].id);
        }
    }
}

/* The command line names an experiment, the experiments of a document, or all. It may ask for the
 * quick or for the long ones of them. */
static const char *named = "", *pace = "";

static bool is_chosen(const struct lab_experiment *experiment)
{
    const size_t length = strlen(named);
    const bool fits = length == 0 || (strncmp(experiment->name, named, length) == 0 &&
                                      strchr("/", experiment->name[length]) != NULL);
    return fits && (pace[0] == '\0' || strcmp(pace, experiment->quick ? "quick" : "long") == 0);
}

/* FNX-56 to FNX-65, EXA-68, each machine by its own table. */
static void test_acceptance(void **state)
{
    (void)state;
    uint32_t chosen = 0;
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        if (!is_chosen(lab_experiments[i])) {
            continue;
        }
        chosen++;
        struct lab_run *run = prepare(lab_experiments[i]->name, 1);
        expect_good(run);
        expect_uses(run);
        expect_rows(run);
        print_message("%s: %u rows, digest %016llx\n", lab_experiments[i]->name, run->row_count,
                      (unsigned long long)run->digest);
        free(run);
    }
    assert_true(chosen > 0);
}

static const struct lab_claim *claim_named(const char *id)
{
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        for (uint32_t k = 0; k < lab_experiments[i]->claim_count; k++) {
            if (strcmp(lab_experiments[i]->claims[k].id, id) == 0) {
                return &lab_experiments[i]->claims[k];
            }
        }
    }
    return NULL;
}

static void expect_known(const struct lab_experiment *experiment, const char *id,
                         const char *source)
{
    char wrong[LAB_TEXT_BYTES];
    if (!source_is_known(experiment->document, source, wrong, sizeof(wrong))) {
        fail_msg("%s: %s: '%s' is no place of the document, and no other source that is named",
                 experiment->name, id, wrong);
    }
}

/* Every source is a place that a reader finds. An explanation is one. The fits on which a row rests
 * are claims of its document, to which something was fitted. */
static void test_labels(void **state)
{
    (void)state;
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        const struct lab_experiment *experiment = lab_experiments[i];
        if (!is_chosen(experiment)) {
            continue;
        }
        const size_t bytes = strlen(experiment->explains);
        if (bytes < 60 || experiment->explains[bytes - 1] != '.') {
            fail_msg("%s explains nothing: %s", experiment->name, experiment->explains);
        }
        for (uint32_t k = 0; k < experiment->parameter_count; k++) {
            const struct lab_parameter *parameter = &experiment->parameters[k];
            expect_known(experiment, parameter->name, parameter->source);
        }
        for (uint32_t k = 0; k < experiment->claim_count; k++) {
            char id[LAB_ID_BYTES];
            expect_known(experiment, experiment->claims[k].id, experiment->claims[k].source);
            for (const char *given = experiment->claims[k].given;
                 given != NULL && names_next(&given, id, sizeof(id));) {
                const struct lab_claim *claim = claim_named(id);
                if (claim == NULL || claim->ground != LAB_FITTED) {
                    fail_msg("%s rests on %s, to which nothing was fitted",
                             experiment->claims[k].id, id);
                }
            }
        }
    }
}

/* No two parameters of a document have one name. */
static void expect_names(const struct lab_experiment *experiment)
{
    for (uint32_t i = 1; i < experiment->parameter_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(experiment->parameters[i].name, experiment->parameters[k].name) == 0) {
                fail_msg("%s: two parameters are called %s", experiment->name,
                         experiment->parameters[i].name);
            }
        }
    }
}

/* Ids are unique. A fitted value is named at the parameter and at the claim. The settings that must
 * break a claim are valid. */
static void test_claims(void **state)
{
    (void)state;
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        const struct lab_experiment *experiment = lab_experiments[i];
        for (uint32_t k = 0; k < experiment->claim_count; k++) {
            const struct lab_claim *claim = &experiment->claims[k];
            assert_ptr_equal(claim_named(claim->id), claim);
            assert_true(strlen(claim->id) < LAB_ID_BYTES && strlen(claim->broken_by) > 0);
            char settings[LAB_TEXT_BYTES];
            for (const char *left = claim->broken_by;
                 lab_next_alternative(&left, settings, sizeof(settings));) {
                struct lab_run *run = prepare(experiment->name, 1);
                set_all(run, settings);
                free(run);
            }
        }
        expect_names(experiment);
        for (uint32_t k = 0; k < experiment->parameter_count; k++) {
            const char *fitted = experiment->parameters[k].fitted;
            if (fitted != NULL && lab_uses(experiment, k)) {
                const struct lab_claim *claim = claim_named(fitted);
                if (claim == NULL || claim->ground != LAB_FITTED) {
                    fail_msg("%s is fitted to %s, which is no claim that rests on a fit",
                             experiment->parameters[k].name, fitted);
                }
            }
        }
    }
}

/* The first experiment of each document in which its machine runs: its trace has something in it,
 * or the run fails (lab_world_end). */
static void test_traces(void **state)
{
    (void)state;
    const struct lab_document *traced = NULL;
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        const struct lab_experiment *experiment = lab_experiments[i];
        if (!is_chosen(experiment) || !experiment->quick || experiment->document == traced) {
            continue;
        }
        char path[] = "/tmp/nonic-XXXXXX.json";
        close(mkstemps(path, 5));
        struct lab_run *run = prepare(experiment->name, 1);
        run->trace_path = path;
        (void)lab_execute(run);
        unlink(path);
        if (run->worlds > 0) {
            assert_string_equal(run->failure, "");
            traced = experiment->document;
        } else {
            assert_non_null(strstr(run->failure, "nothing to trace"));
        }
        free(run);
    }
}

/* FNX-67: bit errors, lost credits and drift together. */
static void test_soak(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct lab_run *run = prepare("forth/soak", seed);
        set(run, "packets=100000");
        set(run, "bit_errors=2e-6");
        set(run, "lost_credits=0.01");
        set(run, "drift=100ppm");
        expect_good(run);
        free(run);
    }
}

static uint64_t digest_of(const char *name, uint64_t seed, const char *const *sets)
{
    struct lab_run *run = prepare(name, seed);
    for (; *sets != NULL; sets++) {
        set(run, *sets);
    }
    (void)lab_execute(run);
    const uint64_t digest = run->digest;
    free(run);
    return digest;
}

static void test_digests(void **state)
{
    (void)state;
    static const char *const soak[] = {"packets=2000", "bit_errors=1e-5", "lost_credits=0.01",
                                       NULL};
    static const char *const plain[] = {"duration=150", NULL};
    uint64_t different = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        const uint64_t digest = digest_of("forth/soak", seed, soak);
        assert_true(digest == digest_of("forth/soak", seed, soak));
        different += digest != digest_of("forth/soak", seed + 1, soak);
        assert_true(digest_of("forth/three-to-one", seed, plain) ==
                    digest_of("forth/three-to-one", seed, plain));
    }
    assert_int_equal(different, 50);
}

static void expect_refused(struct lab_run *run, const char *assignment, const char *says)
{
    char error[300] = "";
    assert_false(lab_set(run, assignment, error, sizeof(error)));
    if (strstr(error, says) == NULL) {
        fail_msg("'%s' was refused with: %s", assignment, error);
    }
}

static void test_wrong_input(void **state)
{
    (void)state;
    struct lab_run *run = prepare("forth/one-way", 1);
    assert_null(lab_find("forth/oneway"));
    assert_string_equal(lab_nearest_experiment("forth/oneway"), "forth/one-way");
    assert_string_equal(lab_nearest_experiment("pingpong"), "forth/ping-pong");
    expect_refused(run, "linklatency=3", "'link_latency'");
    expect_refused(run, "link_latency=3us", "in cycles, not in 'us'");
    expect_refused(run, "link_latency=-1", "nearest valid is 0");
    expect_refused(run, "ports=100", "nearest valid is 64");
    expect_refused(run, "ports=3.6", "nearest valid is 4");
    expect_refused(run, "ports=nan", "not a number");
    expect_refused(run, "ports=1e999", "not a number");
    expect_refused(run, "ports=", "not a number");
    expect_refused(run, "ports", "NAME=VALUE");
    expect_refused(run, "=4", "NAME=VALUE");
    expect_refused(run, "ports=4cycles", "has no unit");
    set(run, "refresh=20us");
    set(run, "refresh=20");
    free(run);
}

/* A machine can be built with every value that a parameter may have. */
static void test_ends(void **state)
{
    (void)state;
    const struct lab_experiment *experiment = lab_find("exanest/latency");
    assert_non_null(experiment);
    for (uint32_t i = 0; i < 2 * experiment->parameter_count; i++) {
        const struct lab_parameter *parameter = &experiment->parameters[i / 2];
        char error[300] = "";
        if (parameter->words != NULL || !lab_uses(experiment, i / 2)) {
            continue;
        }
        struct lab_run *run = prepare(experiment->name, 1);
        assert_true(lab_set_value(run, i / 2, i % 2 == 0 ? parameter->least : parameter->most,
                                  error, sizeof(error)));
        lab_execute(run);
        assert_string_equal(run->failure, "");
        free(run);
    }
}

/* Each long experiment is a test of its own (lab/meson.build, whose list this is). */
static int look_at_list(char **names, int count)
{
    int missing = 0;
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        bool found = lab_experiments[i]->quick;
        for (int k = 0; k < count && !found; k++) {
            found = strcmp(names[k], lab_experiments[i]->name) == 0;
        }
        if (!found) {
            fprintf(stderr, "%s is long, and not in the list\n", lab_experiments[i]->name);
            missing++;
        }
    }
    return missing > 0;
}

/* Usage: experiments_test [EXPERIMENT or DOCUMENT [quick|long]] | listed EXPERIMENT... */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "listed") == 0) {
        return look_at_list(argv + 2, argc - 2);
    }
    named = argc > 1 ? argv[1] : "";
    pace = argc > 2 ? argv[2] : "";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims),      cmocka_unit_test(test_labels),
        cmocka_unit_test(test_traces),      cmocka_unit_test(test_acceptance),
        cmocka_unit_test(test_soak),        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_wrong_input), cmocka_unit_test(test_ends),
    };
    const struct CMUnitTest rows[] = {cmocka_unit_test(test_acceptance)};
    return strcmp(pace, "long") == 0 ? cmocka_run_group_tests(rows, NULL, NULL)
                                     : cmocka_run_group_tests(tests, NULL, NULL);
}
