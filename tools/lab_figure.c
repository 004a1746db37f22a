/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Figures: gnuplot draws them as SVG, and their numbers stand beside them as CSV.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "tools/lab.h"

#define PRINTED "printed by the document"

/* Sizes in pixels: a drawing without its legend, a letter, a line of the legend. */
enum {
    WIDTH = 760,
    HEIGHT = 420,
    LETTER_WIDTH = 7,
    LINE_HEIGHT = 18,
    SAMPLE_LETTERS = 9, /* The sample before a name takes as much as these. */
};

void lab_figure_name(const struct lab_run *run, const struct lab_figure *figure, char *name,
                     size_t bytes)
{
    snprintf(name, bytes, "%s-%s", run->experiment->name, figure->id);
    for (char *at = name; *at != '\0'; at++) {
        if (*at == '/' || *at == ' ') {
            *at = '-';
        }
    }
}

/* -- CSV ----------------------------------------------------------------------------------------*/

/* A field: quotes within are doubled (RFC 4180). */
static void write_field(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', to);
        }
        fputc(*text, to);
    }
    fputc('"', to);
}

/* An empty field stands for what does not exist. */
static void write_number(FILE *to, double value)
{
    if (isfinite(value)) {
        fprintf(to, "%.10g", value);
    }
}

static void write_record(FILE *to, const char *curve, double x, double y, double expected)
{
    write_field(to, curve);
    fputc(',', to);
    write_number(to, x);
    fputc(',', to);
    write_number(to, y);
    fputc(',', to);
    write_number(to, expected);
    fputc('\n', to);
}

static void write_csv(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    fprintf(to, "curve,");
    write_field(to, axes->x);
    fputc(',', to);
    write_field(to, axes->y);
    fprintf(to, ",expected\n");
    for (uint32_t i = 0; i < run->series_count; i++) {
        const struct lab_series *series = &run->series[i];
        for (uint32_t k = 0; series->figure == figure && k < series->count; k++) {
            write_record(to, series->name, series->points[k].x, series->points[k].y,
                         series->points[k].expected);
        }
    }
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        char name[80];
        snprintf(name, sizeof(name), "%s: %s", axes->marks[i].printed ? "document" : "level",
                 axes->marks[i].text);
        write_record(to, name, axes->marks[i].x, LAB_NOTHING, axes->marks[i].y);
    }
}

/* -- gnuplot ------------------------------------------------------------------------------------*/

/* A string in gnuplot's double quotes. */
static void write_string(FILE *to, const char *text)
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

static bool has_expected(const struct lab_series *series)
{
    for (uint32_t k = 0; k < series->count; k++) {
        if (isfinite(series->points[k].expected)) {
            return true;
        }
    }
    return false;
}

/* Data come first, in named blocks: $s0, $s1 .. with x, y, expected. */
static void write_data(FILE *to, const struct lab_run *run, uint32_t figure)
{
    for (uint32_t i = 0; i < run->series_count; i++) {
        const struct lab_series *series = &run->series[i];
        if (series->figure != figure) {
            continue;
        }
        fprintf(to, "$s%u << EOD\n", i);
        for (uint32_t k = 0; k < series->count; k++) {
            fprintf(to, "%.10g %.10g ", series->points[k].x, series->points[k].y);
            if (isfinite(series->points[k].expected)) {
                fprintf(to, "%.10g\n", series->points[k].expected);
            } else {
                fprintf(to, "NaN\n");
            }
        }
        fprintf(to, "EOD\n");
    }
    fprintf(to, "$marks << EOD\n");
    for (uint32_t i = 0; i < run->figures[figure].mark_count; i++) {
        if (isfinite(run->figures[figure].marks[i].x)) {
            fprintf(to, "%.10g %.10g\n", run->figures[figure].marks[i].x,
                    run->figures[figure].marks[i].y);
        }
    }
    fprintf(to, "EOD\n");
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

/* With a logarithmic axis its numbers stand at the points of the first curve, if they have room. */
static void write_tics(FILE *to, const struct lab_run *run, uint32_t figure)
{
    enum {
        ROOM = 14
    };
    for (uint32_t i = 0; i < run->series_count; i++) {
        const struct lab_series *series = &run->series[i];
        if (series->figure != figure) {
            continue;
        }
        const struct span span = x_span(run, figure);
        if (series->count <= ROOM) {
            const double apart = pow(span.most / span.least, 1.0 / ROOM);
            double last = 0;
            fprintf(to, "set xtics (");
            for (uint32_t k = 0; k < series->count; k++) {
                const double x = series->points[k].x;
                if (x >= last * apart) {
                    fprintf(to, "%s", k > 0 ? "," : "");
                    write_tic(to, x);
                    last = x;
                }
            }
            fprintf(to, ")\n");
        } else {
            write_log_tics(to, 'x', span.least, span.most);
        }
        return;
    }
}

static void write_height(FILE *to, const struct lab_figure *axes, struct span height)
{
    if (axes->log_y) {
        fprintf(to, "set logscale y\nset yrange [%.10g:%.10g]\n", height.least / 1.2,
                height.most * 1.2);
        write_log_tics(to, 'y', height.least / 1.2, height.most * 1.2);
        return;
    }
    const double least = axes->from_zero ? fmin(0, height.least) : height.least;
    if (least < height.most) {
        const double edge = 0.06 * (height.most - least);
        fprintf(to, "set yrange [%.10g:%.10g]\n", least - (axes->from_zero ? 0 : edge),
                height.most + edge);
    }
}

/* The legend has as many columns as its longest name has room for, below the name of the axis. */
static uint32_t key_rows(const struct lab_run *run, uint32_t figure, uint32_t *columns)
{
    size_t longest = strlen(PRINTED);
    uint32_t names = 1;
    for (uint32_t i = 0; i < run->series_count; i++) {
        if (run->series[i].figure == figure) {
            const size_t length = strlen(run->series[i].name);
            longest = length > longest ? length : longest;
            names++;
        }
    }
    const uint32_t fit = (uint32_t)(WIDTH / (LETTER_WIDTH * (longest + SAMPLE_LETTERS)));
    *columns = fit < 1 ? 1 : fit > names ? names : fit;
    return (names + *columns - 1) / *columns;
}

static void write_key(FILE *to, const struct lab_run *run, uint32_t figure)
{
    uint32_t columns;
    const uint32_t rows = key_rows(run, figure, &columns);
    fprintf(to,
            "set bmargin %u\nset key at graph 0.5, screen %.4f center bottom horizontal maxcols %u "
            "Left reverse noenhanced\n",
            5 + rows + rows / 3, 8.0 / (HEIGHT + rows * LINE_HEIGHT), columns);
}

static void write_axes(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    const struct span span = x_span(run, figure);
    fprintf(to, "set xlabel ");
    write_string(to, axes->x);
    fprintf(to, "\nset ylabel ");
    write_string(to, axes->y);
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
    write_height(to, axes, y_span(run, figure));
}

static const char *mark_colour(const struct lab_figure *axes, uint32_t mark)
{
    return axes->marks[mark].printed ? "#b42318" : "#57606a";
}

/* Levels: lines across, with their names at the right. */
static void write_levels(FILE *to, const struct lab_figure *axes)
{
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        if (isfinite(axes->marks[i].x)) {
            continue;
        }
        fprintf(to,
                "set arrow from graph 0, first %.10g to graph 1, first %.10g nohead dt 3 "
                "lw 1.5 lc rgb '%s'\nset label ",
                axes->marks[i].y, axes->marks[i].y, mark_colour(axes, i));
        write_string(to, axes->marks[i].text);
        fprintf(to, " at graph 0.99, first %.10g right offset 0,0.5 noenhanced tc rgb '%s'\n",
                axes->marks[i].y, mark_colour(axes, i));
    }
}

/* Marks at points have their names beside them: at the right half of the figure on their left. */
static void write_point_names(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    const struct span span = x_span(run, figure);
    const double middle = axes->log_x ? sqrt(span.least * span.most) : (span.least + span.most) / 2;
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        if (isfinite(axes->marks[i].x)) {
            const bool left = axes->marks[i].x > middle;
            fprintf(to, "set label ");
            write_string(to, axes->marks[i].text);
            fprintf(to, " at %.10g,%.10g %s offset %g,0.6 noenhanced tc rgb '#b42318'\n",
                    axes->marks[i].x, axes->marks[i].y, left ? "right" : "left", left ? -0.8 : 0.8);
        }
    }
}

static void write_plot(FILE *to, const struct lab_run *run, uint32_t figure)
{
    const struct lab_figure *axes = &run->figures[figure];
    bool marks = false;
    uint32_t curve = 0;
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        marks |= isfinite(axes->marks[i].x);
    }
    fprintf(to, "plot ");
    for (uint32_t i = 0; i < run->series_count; i++) {
        const struct lab_series *series = &run->series[i];
        if (series->figure != figure) {
            continue;
        }
        fprintf(to, "%s$s%u using 1:2 with %s lc %u lw 2%s title ", curve > 0 ? ", " : "", i,
                series->steps ? "steps" : "linespoints", curve + 1,
                series->steps ? "" : " pt 7 ps 0.5");
        write_string(to, series->name);
        if (has_expected(series)) {
            fprintf(to, ", $s%u using 1:3 with lines lc %u lw 1.5 dt 2 notitle", i, curve + 1);
        }
        curve++;
    }
    if (marks) {
        fprintf(to, ", $marks using 1:2 with points lc rgb '#b42318' pt 1 ps 1.2 lw 2 title "
                    "'" PRINTED "'");
    }
    fprintf(to, "\n");
}

/* Tells the identifiers of this drawing from those of others in the same page. */
static void write_identifier(FILE *to, const struct lab_run *run, const struct lab_figure *figure)
{
    char name[2 * LAB_ID_BYTES + 64];
    lab_figure_name(run, figure, name, sizeof(name));
    for (const char *at = name; *at != '\0'; at++) {
        fputc(isalnum((unsigned char)*at) ? *at : '_', to);
    }
}

static void write_script(FILE *to, const char *path, const struct lab_run *run, uint32_t figure)
{
    static const char *const colours[] = {"#0a58ca", "#b26a00", "#1a7f37", "#8250df",
                                          "#57606a", "#d6336c", "#0c8599", "#845ef7"};
    uint32_t columns;
    fprintf(to, "set terminal svg size %u,%u dynamic enhanced font 'sans-serif,12' name '", WIDTH,
            HEIGHT + key_rows(run, figure, &columns) * LINE_HEIGHT);
    write_identifier(to, run, &run->figures[figure]);
    fprintf(to, "'\n");
    fprintf(to, "set output ");
    write_string(to, path);
    fprintf(to, "\nset encoding utf8\n");
    for (size_t i = 0; i < COUNT_OF(colours); i++) {
        fprintf(to, "set linetype %zu lc rgb '%s'\n", i + 1, colours[i]);
    }
    write_data(to, run, figure);
    write_axes(to, run, figure);
    write_levels(to, &run->figures[figure]);
    write_point_names(to, run, figure);
    write_plot(to, run, figure);
}

static bool draw(const char *path, const struct lab_run *run, uint32_t figure, char *error,
                 size_t error_bytes)
{
    FILE *gnuplot = popen("gnuplot -", "we");
    if (gnuplot == NULL) {
        snprintf(error, error_bytes, "cannot start gnuplot: %s", strerror(errno));
        return false;
    }
    write_script(gnuplot, path, run, figure);
    const int status = pclose(gnuplot);
    if (status != 0) {
        snprintf(error, error_bytes,
                 "gnuplot does not draw %s (is it installed? Debian: gnuplot-nox)", path);
    }
    return status == 0;
}

bool lab_draw_figure(const char *directory, const struct lab_run *run, uint32_t figure, char *error,
                     size_t error_bytes)
{
    char name[2 * LAB_ID_BYTES + 64], path[4096];
    lab_figure_name(run, &run->figures[figure], name, sizeof(name));
    snprintf(path, sizeof(path), "%s/%s.csv", directory, name);
    FILE *csv = fopen(path, "we");
    if (csv == NULL) {
        snprintf(error, error_bytes, "cannot write %s: %s", path, strerror(errno));
        return false;
    }
    write_csv(csv, run, figure);
    if (fclose(csv) != 0) {
        snprintf(error, error_bytes, "cannot write %s: %s", path, strerror(errno));
        return false;
    }
    snprintf(path, sizeof(path), "%s/%s.svg", directory, name);
    return draw(path, run, figure, error, error_bytes);
}
