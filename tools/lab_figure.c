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
#include "tools/lab_figure.h"

static const char *const colours[] = {"0a58ca", "b26a00", "1a7f37", "8250df",
                                      "57606a", "d6336c", "0c8599", "845ef7"};

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

/* Do half of the points of a curve lie on a later one, which is drawn over it? */
static bool is_covered(const struct lab_run *run, uint32_t curve)
{
    const struct lab_series *below = &run->series[curve];
    const uint32_t figure = below->figure;
    for (uint32_t i = curve + 1; i < run->series_count; i++) {
        const struct lab_series *above = &run->series[i];
        uint32_t same = 0;
        for (uint32_t k = 0; above->figure == figure && k < below->count; k++) {
            for (uint32_t j = 0; j < above->count; j++) {
                same += above->points[j].x == below->points[k].x &&
                        fabs(figure_share_of_height(run, figure, above->points[j].y) -
                             figure_share_of_height(run, figure, below->points[k].y)) < 0.01;
            }
        }
        if (same > 0 && 2 * same >= below->count) {
            return true;
        }
    }
    return false;
}

/* A curve below another one is wide and pale, so that both are seen. */
static void write_curve(FILE *to, const struct lab_run *run, uint32_t index, uint32_t number)
{
    const struct lab_series *series = &run->series[index];
    const char *lines = series->steps ? "steps" : "lines";
    const char *colour = colours[(number - 1) % COUNT_OF(colours)];
    fprintf(to, "$s%u using 1:2 with %s%s ", index, lines, series->steps ? "" : "points");
    if (is_covered(run, index)) {
        fprintf(to, "lc rgb '#a0%s' lw 7", colour);
    } else {
        fprintf(to, "lc rgb '#%s' lw 2", colour);
    }
    fprintf(to, "%s title ", series->steps ? "" : " pt 7 ps 0.5");
    figure_write_string(to, series->name);
    if (has_expected(series)) {
        fprintf(to, ", $s%u using 1:3 with %s lc rgb '#%s' lw 1.5 dt 2 notitle", index, lines,
                colour);
    }
}

static void write_plot(FILE *to, const struct lab_run *run, uint32_t figure)
{
    uint32_t curve = 0;
    fprintf(to, "plot ");
    for (uint32_t i = 0; i < run->series_count; i++) {
        const struct lab_series *series = &run->series[i];
        if (series->figure != figure) {
            continue;
        }
        fprintf(to, "%s", curve > 0 ? ", " : "");
        write_curve(to, run, i, curve + 1);
        curve++;
    }
    if (figure_has_point_marks(&run->figures[figure])) {
        fprintf(to, ", $marks using 1:2 with points lc rgb '#b42318' pt 1 ps 1.2 lw 2 title "
                    "'" FIGURE_PRINTED "'");
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
    uint32_t columns;
    fprintf(to, "set terminal svg size %u,%u dynamic enhanced font 'sans-serif,12' name '",
            FIGURE_WIDTH,
            FIGURE_HEIGHT + figure_key_rows(run, figure, &columns) * FIGURE_LINE_HEIGHT);
    write_identifier(to, run, &run->figures[figure]);
    fprintf(to, "'\n");
    fprintf(to, "set output ");
    figure_write_string(to, path);
    fprintf(to, "\nset encoding utf8\n");
    write_data(to, run, figure);
    figure_write_axes(to, run, figure);
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
