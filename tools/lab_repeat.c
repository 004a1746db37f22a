/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Repeated runs: means and their intervals.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "tools/lab.h"

/* The 97.5 % quantile of Student's t, by degrees of freedom from 1 on. */
static const double student[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

static double quantile(uint32_t freedom)
{
    /* Beyond the table, the normal distribution's value, and the first term of its error. */
    return freedom <= COUNT_OF(student) ? student[freedom - 1] : 1.96 + 2.4 / freedom;
}

/* `sum` and `squares` are of the differences from the first value, so that equal values give 0. */
static struct lab_mean mean_of(double first, double sum, double squares, uint32_t count)
{
    const double off = sum / count;
    const double variance = count > 1 ? (squares - sum * off) / (count - 1) : 0;
    return (struct lab_mean){
        .mean = first + off,
        .half = isnan(variance) ? LAB_NOTHING
                : variance > 0  ? quantile(count - 1) * sqrt(variance / count)
                                : 0,
    };
}

struct lab_mean lab_row_mean(const struct lab_run *runs, uint32_t count, uint32_t row)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double off = runs[i].rows[row].measured - runs[0].rows[row].measured;
        sum += off;
        squares += off * off;
    }
    return mean_of(runs[0].rows[row].measured, sum, squares, count);
}

struct lab_mean lab_reading_mean(const struct lab_run *runs, uint32_t count, uint32_t reading)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double off = runs[i].readings[reading].value - runs[0].readings[reading].value;
        sum += off;
        squares += off * off;
    }
    return mean_of(runs[0].readings[reading].value, sum, squares, count);
}

struct lab_mean lab_point_mean(const struct lab_run *runs, uint32_t count, uint32_t series,
                               uint32_t point)
{
    const double first = runs[0].series[series].points[point].y;
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double off = runs[i].series[series].points[point].y - first;
        sum += off;
        squares += off * off;
    }
    return mean_of(first, sum, squares, count);
}

static bool same_shape(const struct lab_run *a, const struct lab_run *b)
{
    bool same = a->row_count == b->row_count && a->series_count == b->series_count &&
                a->reading_count == b->reading_count;
    for (uint32_t i = 0; same && i < a->row_count; i++) {
        same = strcmp(a->rows[i].id, b->rows[i].id) == 0;
    }
    for (uint32_t i = 0; same && i < a->series_count; i++) {
        same = a->series[i].count == b->series[i].count;
    }
    return same;
}

bool lab_repeats_match(const struct lab_run *runs, uint32_t count, char *error, size_t error_bytes)
{
    for (uint32_t i = 1; i < count; i++) {
        if (!same_shape(&runs[0], &runs[i])) {
            snprintf(error, error_bytes, "seeds %llu and %llu do not give the same rows: %s",
                     (unsigned long long)runs[0].seed, (unsigned long long)runs[i].seed,
                     runs[i].failure[0] != '\0' ? runs[i].failure : runs[0].failure);
            return false;
        }
    }
    return true;
}
