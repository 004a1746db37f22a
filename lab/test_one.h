/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_one - readings of MACHINE/one for tests. To be included behind cmocka.h.
 */
#ifndef LAB_TEST_ONE_H
#define LAB_TEST_ONE_H

#include <stdlib.h>
#include <string.h>

#include "lab/lab.h"

static inline struct lab_run *one_prepare(const char *experiment, const char *settings)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    char error[300] = "";
    assert_non_null(run);
    assert_non_null(lab_find(experiment));
    lab_prepare(run, lab_find(experiment), 1);
    if (!lab_set_all(run, settings, error, sizeof(error))) {
        fail_msg("%s: %s", settings, error);
    }
    run->judged = false;
    return run;
}

/* A run that must not fail. To be freed. */
static inline struct lab_run *one_run(const char *experiment, const char *settings)
{
    struct lab_run *run = one_prepare(experiment, settings);
    if (!lab_execute(run)) {
        fail_msg("%s: %s", settings, run->failure);
    }
    return run;
}

static inline double one_value(const struct lab_run *run, const char *name)
{
    uint32_t i = 0;
    while (i < run->reading_count && strcmp(run->readings[i].name, name) != 0) {
        i++;
    }
    assert_true(i < run->reading_count);
    return run->readings[i].value;
}

static inline double one_reading(const char *experiment, const char *settings, const char *name)
{
    struct lab_run *run = one_run(experiment, settings);
    const double value = one_value(run, name);
    free(run);
    return value;
}

/* The run fails, and says so. */
static inline void one_fails(const char *experiment, const char *settings, const char *says)
{
    struct lab_run *run = one_prepare(experiment, settings);
    assert_false(lab_execute(run));
    if (strstr(run->failure, says) == NULL) {
        fail_msg("%s: %s", settings, run->failure);
    }
    free(run);
}

/* The names of the list in lab/reading.h that every machine has. */
static inline void one_has_all(const char *experiment, const char *settings)
{
    static const char *const names[] = {"rate",        "messages",    "latency_mean", "latency_p50",
                                        "latency_p99", "latency_max", "link_share",   "queue_mean",
                                        "queue_max",   "lost"};
    struct lab_run *run = one_run(experiment, settings);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const double value = one_value(run, names[i]);
        if (!isfinite(value)) {
            fail_msg("%s: %s has no value", experiment, names[i]);
        }
    }
    assert_true(one_value(run, "latency_p50") <= one_value(run, "latency_p99"));
    assert_true(one_value(run, "latency_p99") <= one_value(run, "latency_max"));
    assert_true(one_value(run, "link_share") > 0 && one_value(run, "link_share") <= 1);
    free(run);
}

#endif
