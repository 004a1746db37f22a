/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lab_figure_axes - what stands around the curves: axes and their numbers, legend, levels, names.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "tools/lab_figure.h"

enum {
    LETTER_WIDTH = 7,
    AXIS_LETTERS = 10,   /* The numbers and the name of the y axis. */
    SAMPLE_LETTERS = 13, /* In the legend: the sample before a name takes as much as these. */
    NAME_LETTERS = 18,   /* A line of a level's name is no longer, if its words are not. */
    GRAPH_HEIGHT = 300,  /* About, between the axes' ends. */
};

void figure_write_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', to);
        }
        fputc(*text, to);
    }
    fputc('"', to);
}

struct span {
    double least, most;
};

static struct span x_span(const struct lab_run *run, uint32_t figure)
{
    struct span span = {LAB_UNBOUNDED, -LAB_UNBOUNDED};
    for (uint32_t i = 0; i < run->series_count; i++) {
        for (uint32_t k = 0; run->series[i].figure == figure && k < run->series[i].count; k++) {
            span.least = fmin(span.least, run->series[i].points[k].x);
            span.most = fmax(span.most, run->series[i].points[k].x);
        }
    }
    return span;
}

static void widen(struct span *span, double value)
{
    if (isfinite(value)) {
        span->least = fmin(span->least, value);
        span->most = fmax(span->most, value);
    }
}

/* The y values of curves, of expected values, and of marks, which gnuplot would not count. */
static struct span y_span(const struct lab_run *run, uint32_t figure)
{
    struct span span = {LAB_UNBOUNDED, -LAB_UNBOUNDED};
    for (uint32_t i = 0; i < run->series_count; i++) {
        for (uint32_t k = 0; run->series[i].figure == figure && k < run->series[i].count; k++) {
            widen(&span, run->series[i].points[k].y);
            widen(&span, run->series[i].points[k].expected);
        }
    }
    for (uint32_t i = 0; i < run->figures[figure].mark_count; i++) {
        widen(&span, run->figures[figure].marks[i].y);
    }
    return span;
}

/* A power of two is easier to read as 64K. */
static void write_tic(FILE *to, double value)
{
    const double power = value >= 1024 && value < 1e12 ? log2(value) : 0.5;
    if (power != floor(power)) {
        fprintf(to, "%.10g", value);
    } else if (power < 20) {
        fprintf(to, "'%gK' %.10g", value / 1024, value);
    } else {
        fprintf(to, "'%gM' %.10g", value / 1048576, value);
    }
}

/* A logarithmic axis of less than three decades would have one number or two. */
static void write_log_tics(FILE *to, char axis, double least, double most)
{
    static const double digits[] = {1, 2, 5};
    const char *comma = "";
    if (most / least >= 1000) {
        return;
    }
    fprintf(to, "set %ctics (", axis);
    for (double decade = pow(10, floor(log10(least))); decade <= most; decade *= 10) {
        for (size_t i = 0; i < COUNT_OF(digits); i++) {
            const double value = decade * digits[i];
            if (value >= least && value <= most) {
                fprintf(to, "%s%.10g", comma, value);
                comma = ",";
            }
        }
    }
    fprintf(to, ")\n");
}

/* The x values of a figure, if all curves together have so few. */
static uint32_t x_values(const struct lab_run *run, uint32_t figure, double values[LAB_POINTS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->series_count; i++) {
        const struct lab_series *series = &run->series[i];
        for (uint32_t k = 0; series->figure == figure && k < series->count; k++) {
            uint32_t at = 0;
            while (at < count && values[at] < series->points[k].x) {
                at++;
            }
            if (at < count && values[at] == series->points[k].x) {
                continue;
            }
            if (count == LAB_POINTS_MAX) {
                return 0;
            }
            memmove(&values[at + 1], &values[at], (count - at) * sizeof(values[0]));
            values[at] = series->points[k].x;
            count++;
        }
    }
    return count;
}

static bool are_octaves(const double *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (log2(values[i]) != floor(log2(values[i]))) {
            return false;
        }
    }
    return count > 1;
}

/* Numbers of a logarithmic x axis stand at points as far as they have room. Where there are too
 * many points, it has them at some powers of two if all points are such, else at decades. */
static void write_tics(FILE *to, const struct lab_run *run, uint32_t figure)
{
    enum {
        ROOM = 14
    };
    double values[LAB_POINTS_MAX], last = 0;
    const struct span span = x_span(run, figure);
    const uint32_t count = x_values(run, figure, values);
    const bool octaves = are_octaves(values, count);
    if (count == 0 || (count > ROOM && !octaves)) {
        write_log_tics(to, 'x', span.least, span.most);
        return;
    }
    const double apart = octaves ? pow(2, ceil(log2(span.most / span.least) / ROOM))
                                 : pow(span.most / span.least, 1.0 / ROOM);
    const char *comma = "";
    fprintf(to, "set xtics (");
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] >= last * apart) {
            fprintf(to, "%s", comma);
            write_tic(to, values[i]);
            last = values[i];
            comma = ",";
        }
    }
    fprintf(to, ")\n");
}

/* The values at the ends of the y axis. */
static struct span height_of(const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    const struct span values = y_span(run, figure);
    if (axes->log_y) {
        return (struct span){values.least / 1.2, values.most * 1.2};
    }
    const double least = axes->from_zero ? fmin(0, values.least) : values.least;
    const double edge = 0.06 * (values.most - least);
    return (struct span){least - (axes->from_zero ? 0 : edge), values.most + edge};
}

static void write_height(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct span height = height_of(run, figure);
    if (run->figures[figure].log_y) {
        fprintf(to, "set logscale y\n");
        write_log_tics(to, 'y', height.least, height.most);
    }
    if (height.least < height.most) {
        fprintf(to, "set yrange [%.10g:%.10g]\n", height.least, height.most);
    }
}

/* A line across; else a mark at a point. */
static bool is_level(const struct lab_figure *axes, uint32_t mark)
{
    return !isfinite(axes->marks[mark].x);
}

bool figure_has_point_marks(const struct lab_figure *axes)
{
    bool marks = false;
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        marks |= !is_level(axes, i);
    }
    return marks;
}

static bool has_levels(const struct lab_figure *axes)
{
    bool levels = false;
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        levels |= is_level(axes, i);
    }
    return levels;
}

/* The legend has as many columns as its longest name has room for, below the name of the axis. */
uint32_t figure_key_rows(const struct lab_run *run, uint32_t figure, uint32_t *columns)
{
    const bool marks = figure_has_point_marks(&run->figures[figure]);
    size_t longest = marks ? strlen(FIGURE_PRINTED) : 0;
    uint32_t names = marks;
    for (uint32_t i = 0; i < run->series_count; i++) {
        if (run->series[i].figure == figure) {
            const size_t length = strlen(run->series[i].name);
            longest = length > longest ? length : longest;
            names++;
        }
    }
    const uint32_t letters = FIGURE_WIDTH / LETTER_WIDTH - AXIS_LETTERS -
                             (has_levels(&run->figures[figure]) ? NAME_LETTERS : 0);
    const uint32_t fit = (uint32_t)(letters / (longest + SAMPLE_LETTERS));
    *columns = fit < 1 ? 1 : fit > names ? names : fit;
    return (names + *columns - 1) / *columns;
}

static void write_key(FILE *to, const struct lab_run *run, uint32_t figure)
{
    uint32_t columns;
    const uint32_t rows = figure_key_rows(run, figure, &columns);
    fprintf(
        to,
        "set bmargin %.1f\nset key at graph 0.5, screen %.4f center bottom horizontal maxcols %u "
        "Left reverse noenhanced\n",
        3.6 + 1.5 * rows, 8.0 / (FIGURE_HEIGHT + rows * FIGURE_LINE_HEIGHT), columns);
}

static void write_frame(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    const struct span span = x_span(run, figure);
    fprintf(to, "set title ");
    figure_write_string(to, axes->title);
    fprintf(to, " noenhanced font ',14'\nset xlabel ");
    figure_write_string(to, axes->x);
    fprintf(to, "\nset ylabel ");
    figure_write_string(to, axes->y);
    fprintf(to, "\nset grid lc rgb '#e6e9ed' lt 1\nset border 3 lc rgb '#57606a'\n"
                "set tics nomirror\n");
    write_key(to, run, figure);
    if (axes->log_x) {
        fprintf(to, "set logscale x\n");
        write_tics(to, run, figure);
    }
    if (span.least < span.most) {
        const double edge = axes->log_x ? 0 : 0.01 * (span.most - span.least);
        const double factor = axes->log_x ? 1.03 : 1;
        fprintf(to, "set xrange [%.10g:%.10g]\n", span.least / factor - edge,
                span.most * factor + edge);
    }
    write_height(to, run, figure);
}

static const char *mark_colour(const struct lab_figure *axes, uint32_t mark)
{
    return axes->marks[mark].printed ? "#b42318" : "#57606a";
}

double figure_share_of_height(const struct lab_run *run, uint32_t figure, double value)
{
    const struct span height = height_of(run, figure);
    return run->figures[figure].log_y ? log(value / height.least) / log(height.most / height.least)
                                      : (value - height.least) / (height.most - height.least);
}

/* Writes a name in lines of NAME_LETTERS, as far as its words allow, and returns their number. */
static uint32_t wrap(FILE *to, const char *text)
{
    uint32_t lines = 1, column = 0;
    while (*text != '\0') {
        const uint32_t word = (uint32_t)strcspn(text, " ");
        if (column > 0 && column + 1 + word > NAME_LETTERS) {
            fprintf(to, "\\n");
            lines++;
            column = 0;
        } else if (column > 0) {
            fputc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", (int)word, text);
        column += word;
        text += word + (text[word] == ' ');
    }
    return lines;
}

/* The highest level whose name is not written yet; its mark's index, or mark_count. */
static uint32_t next_level(const struct lab_figure *axes, const bool *written)
{
    uint32_t next = axes->mark_count;
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        if (is_level(axes, i) && !written[i] &&
            (next == axes->mark_count || axes->marks[i].y > axes->marks[next].y)) {
            next = i;
        }
    }
    return next;
}

/* Levels: lines across, with their names to the right of the curves, none over another one. */
static void write_levels(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    const double line = (double)FIGURE_LINE_HEIGHT / GRAPH_HEIGHT;
    bool written[LAB_MARKS_MAX] = {false};
    double highest = 1;
    for (uint32_t i; (i = next_level(axes, written)) < axes->mark_count; written[i] = true) {
        const double y = axes->marks[i].y;
        highest = fmin(highest, figure_share_of_height(run, figure, y));
        fprintf(to,
                "set arrow from graph 0, first %.10g to graph 1, first %.10g nohead dt 3 "
                "lw 1.5 lc rgb '%s'\nset label \"",
                y, y, mark_colour(axes, i));
        const uint32_t lines = wrap(to, axes->marks[i].text);
        fprintf(to, "\" at graph 1.01, graph %.4f left noenhanced tc rgb '%s'\n", highest,
                mark_colour(axes, i));
        highest -= lines * line;
    }
    if (has_levels(axes)) {
        fprintf(to, "set rmargin %d\n", NAME_LETTERS);
    }
}

/* Marks at points have their names beside them: at the right half of the figure on their left. */
static void write_point_names(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    const struct span span = x_span(run, figure);
    const double middle = axes->log_x ? sqrt(span.least * span.most) : (span.least + span.most) / 2;
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        if (!is_level(axes, i)) {
            const bool left = axes->marks[i].x > middle;
            fprintf(to, "set label ");
            figure_write_string(to, axes->marks[i].text);
            fprintf(to, " at %.10g,%.10g %s offset %g,0.6 noenhanced tc rgb '#b42318'\n",
                    axes->marks[i].x, axes->marks[i].y, left ? "right" : "left", left ? -0.8 : 0.8);
        }
    }
}

void figure_write_axes(FILE *to, const struct lab_run *run, uint32_t figure)
{
    write_frame(to, run, figure);
    write_levels(to, run, figure);
    write_point_names(to, run, figure);
}
