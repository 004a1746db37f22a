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
        snprintf(name, sizeof(name), "document: %s", axes->marks[i].text);
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
        if (series->count <= ROOM) {
            fprintf(to, "set xtics (");
            for (uint32_t k = 0; k < series->count; k++) {
                fprintf(to, "%s%.10g", k > 0 ? "," : "", series->points[k].x);
            }
            fprintf(to, ")\n");
        }
        return;
    }
}

static void write_height(FILE *to, const struct lab_figure *axes, struct span height)
{
    if (axes->log_y) {
        fprintf(to, "set logscale y\nset yrange [%.10g:%.10g]\n", height.least / 1.2,
                height.most * 1.2);
        return;
    }
    const double least = axes->from_zero ? fmin(0, height.least) : height.least;
    if (least < height.most) {
        const double edge = 0.06 * (height.most - least);
        fprintf(to, "set yrange [%.10g:%.10g]\n", least - (axes->from_zero ? 0 : edge),
                height.most + edge);
    }
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
                "set tics nomirror\nset key outside below center maxrows 6 noenhanced\n");
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

/* Levels that the document prints: lines across, with their names at the right. */
static void write_levels(FILE *to, const struct lab_figure *axes)
{
    for (uint32_t i = 0; i < axes->mark_count; i++) {
        if (isfinite(axes->marks[i].x)) {
            continue;
        }
        fprintf(to,
                "set arrow from graph 0, first %.10g to graph 1, first %.10g nohead dt 3 "
                "lw 1.5 lc rgb '#b42318'\nset label ",
                axes->marks[i].y, axes->marks[i].y);
        write_string(to, axes->marks[i].text);
        fprintf(to, " at graph 0.99, first %.10g right offset 0,0.5 noenhanced tc rgb '#b42318'\n",
                axes->marks[i].y);
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
        fprintf(to, "%s$s%u using 1:2 with linespoints lc %u lw 2 pt 7 ps 0.5 title ",
                curve > 0 ? ", " : "", i, curve + 1);
        write_string(to, series->name);
        if (has_expected(series)) {
            fprintf(to, ", $s%u using 1:3 with lines lc %u lw 1.5 dt 2 notitle", i, curve + 1);
        }
        curve++;
    }
    if (marks) {
        fprintf(to, ", $marks using 1:2 with points lc rgb '#b42318' pt 1 ps 1.2 lw 2 title "
                    "'printed by the document'");
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
    fprintf(to, "set terminal svg size 760,460 dynamic enhanced font 'sans-serif,12' name '");
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
