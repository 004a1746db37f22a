/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report: one HTML page that needs nothing beside itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "tools/lab.h"

enum {
    WIDTH = 640,
    HEIGHT = 300,
    LEFT = 64,
    RIGHT = 28,
    TOP = 16,
    BOTTOM = 44,
    TICKS = 5
};

static void escaped(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
    }
}

/* -- Plots --------------------------------------------------------------------------------------*/

struct axes {
    double least_x, most_x, most_y;
    bool logarithmic;
};

static struct axes axes_of(const struct lab_series *series)
{
    struct axes axes = {.least_x = LAB_UNBOUNDED, .logarithmic = series->logarithmic};
    for (uint32_t i = 0; i < series->count; i++) {
        axes.least_x = fmin(axes.least_x, series->points[i].x);
        axes.most_x = fmax(axes.most_x, series->points[i].x);
        axes.most_y = fmax(axes.most_y, series->points[i].y);
        if (isfinite(series->points[i].expected)) {
            axes.most_y = fmax(axes.most_y, series->points[i].expected);
        }
    }
    return axes;
}

/* A round step that divides `most` into about TICKS parts. */
static double round_step(double most)
{
    const double raw = most / TICKS;
    const double power = pow(10, floor(log10(raw)));
    const double leading = raw / power;
    return (leading <= 1 ? 1 : leading <= 2 ? 2 : leading <= 5 ? 5 : 10) * power;
}

static double x_at(const struct axes *axes, double x)
{
    const double share = axes->logarithmic
                             ? log(x / axes->least_x) / log(axes->most_x / axes->least_x)
                             : (x - axes->least_x) / (axes->most_x - axes->least_x);
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double y_at(double top, double y)
{
    return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM);
}

static void write_grid(FILE *to, const struct lab_series *series, const struct axes *axes,
                       double step, double top)
{
    for (double y = 0; y <= top * (1 + 1e-9); y += step) {
        fprintf(to,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%g</text>\n",
                LEFT, WIDTH - RIGHT, y_at(top, y), y_at(top, y), LEFT - 6, y_at(top, y) + 4, y);
    }
    double last = -LAB_UNBOUNDED;
    for (uint32_t i = 0; i < series->count; i++) {
        const double x = x_at(axes, series->points[i].x);
        if (x - last < 44) {
            continue; /* There is no room for its number. */
        }
        last = x;
        fprintf(to,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%g</text>\n",
                x, x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 16, series->points[i].x);
    }
}

static void write_curve(FILE *to, const struct lab_series *series, const struct axes *axes,
                        double top, bool expected)
{
    fprintf(to, "<polyline class=\"%s\" points=\"", expected ? "expected" : "measured");
    for (uint32_t i = 0; i < series->count; i++) {
        const double y = expected ? series->points[i].expected : series->points[i].y;
        if (isfinite(y)) {
            fprintf(to, "%.1f,%.1f ", x_at(axes, series->points[i].x), y_at(top, y));
        }
    }
    fprintf(to, "\"/>\n");
    for (uint32_t i = 0; !expected && i < series->count; i++) {
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%g: %g</title></circle>\n",
                x_at(axes, series->points[i].x), y_at(top, series->points[i].y),
                series->points[i].x, series->points[i].y);
    }
}

static void write_plot(FILE *to, const struct lab_series *series)
{
    if (series->count < 2) {
        return;
    }
    const struct axes axes = axes_of(series);
    const double step = round_step(axes.most_y > 0 ? axes.most_y : 1);
    const double top = ceil(axes.most_y / step - 1e-9) * step;
    fprintf(to, "<figure><figcaption>");
    escaped(to, series->name);
    fprintf(to, "</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, HEIGHT);
    write_grid(to, series, &axes, step, top);
    write_curve(to, series, &axes, top, true);
    write_curve(to, series, &axes, top, false);
    fprintf(to, "<text class=\"axis\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">",
            LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 8);
    escaped(to, series->x);
    fprintf(to,
            "</text><text class=\"axis\" text-anchor=\"middle\" transform=\"translate(14 %d) "
            "rotate(-90)\">",
            TOP + (HEIGHT - TOP - BOTTOM) / 2);
    escaped(to, series->y);
    fprintf(to, "</text></svg></figure>\n");
}

/* -- Tables -------------------------------------------------------------------------------------*/

static void write_published(FILE *to, const struct lab_row *row)
{
    if (row->kind != LAB_RANGE || row->published == row->upper) {
        fprintf(to, "%.4g", row->published);
    } else if (isinf(row->upper)) {
        fprintf(to, "≥ %.4g", row->published);
    } else {
        fprintf(to, "%.4g … %.4g", row->published, row->upper);
    }
    fputs(row->predicted ? "<sup>*</sup>" : "", to);
}

static void write_rows(FILE *to, const struct lab_run *run)
{
    fprintf(to, "<table><tr><th>row</th><th>what</th><th class=\"n\">document</th>"
                "<th class=\"n\">nonic</th><th>unit</th><th>tolerance</th><th>verdict</th></tr>\n");
    for (uint32_t i = 0; i < run->row_count; i++) {
        const struct lab_row *row = &run->rows[i];
        char bound[48];
        lab_bound_text(row, bound, sizeof(bound));
        fprintf(to, "<tr><td>%s</td><td>", row->id);
        escaped(to, row->what);
        fprintf(to, "</td><td class=\"n\">");
        write_published(to, row);
        fprintf(
            to,
            "</td><td class=\"n\">%.6g</td><td>%s</td><td>%s</td><td class=\"%s\">%s</td></tr>\n",
            row->measured, row->unit, bound, row->ok ? "ok" : "out",
            row->ok ? "ok" : "out of tolerance");
    }
    fprintf(to, "</table>\n");
}

static void write_parameters(FILE *to, const struct lab_experiment *experiment)
{
    fprintf(
        to,
        "<h2 id=\"parameters\">Parameters</h2><p>Nothing is tuned to meet a result, but what is "
        "named as fitted.</p>\n<table><tr><th>parameter</th><th class=\"n\">value</th>"
        "<th>unit</th><th>what</th><th>source (section; OC: our choice)</th></tr>\n");
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        const struct lab_parameter *parameter = &experiment->parameters[i];
        fprintf(to, "<tr%s><td>%s</td><td class=\"n\">%g</td><td>%s</td><td>",
                parameter->fitted ? " class=\"fitted\"" : "", parameter->name, parameter->value,
                parameter->unit);
        escaped(to, parameter->what);
        fprintf(to, "</td><td>");
        escaped(to, parameter->source);
        fprintf(to, "%s</td></tr>\n", parameter->fitted ? " <b>fitted</b>" : "");
    }
    fprintf(to, "</table>\n");
}

/* -- The page -----------------------------------------------------------------------------------*/

static const char head[] =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>nonic lab</title><style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;"
    "color:#1c2024;background:#fff}\n"
    "h1{font-size:1.7em}h2{font-size:1.25em;margin-top:2.2em;border-bottom:1px solid #d8dde3}\n"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:.2em .7em;border-bottom:1px solid #e6e9ed;vertical-align:top}\n"
    "th{font-weight:600;color:#57606a}.n{text-align:right}\n"
    ".ok{color:#1a7f37}.out{color:#b42318;font-weight:600}.fitted{background:#fff8e1}\n"
    ".note{color:#57606a}figure{display:inline-block;width:31em;max-width:100%;margin:.5em 1em "
    ".5em 0}\n"
    "figcaption{font-weight:600}svg{width:100%;height:auto}\n"
    ".grid{stroke:#e6e9ed}.tick{font-size:11px;fill:#57606a}.axis{font-size:12px;fill:#1c2024}\n"
    ".measured{fill:none;stroke:#0a58ca;stroke-width:2}circle{fill:#0a58ca}\n"
    ".expected{fill:none;stroke:#b26a00;stroke-width:2;stroke-dasharray:5 4}\n"
    "code{background:#f3f4f6;padding:0 .3em}\n"
    "</style></head><body>\n";

static void write_summary(FILE *to, const struct lab_run *runs, uint32_t count)
{
    fprintf(to, "<table><tr><th>experiment</th><th>what</th><th class=\"n\">rows</th>"
                "<th class=\"n\">within tolerance</th><th class=\"n\">events</th>"
                "<th>digest</th></tr>\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct lab_run *run = &runs[i];
        uint32_t good = 0;
        for (uint32_t k = 0; k < run->row_count; k++) {
            good += run->rows[k].ok;
        }
        fprintf(to, "<tr><td><a href=\"#%s\">%s</a></td><td>", run->experiment->name,
                run->experiment->name);
        escaped(to, run->experiment->what);
        fprintf(to,
                "</td><td class=\"n\">%u</td><td class=\"n %s\">%u</td><td class=\"n\">%" PRIu64
                "</td><td><code>%016" PRIx64 "</code></td></tr>\n",
                run->row_count, lab_run_good(run) ? "ok" : "out", good, run->events, run->digest);
    }
    fprintf(to, "</table>\n");
}

static void write_experiment(FILE *to, const struct lab_run *run)
{
    fprintf(to, "<h2 id=\"%s\">%s</h2><p>", run->experiment->name, run->experiment->name);
    escaped(to, run->experiment->what);
    fprintf(to, ".</p><p class=\"note\">");
    escaped(to, run->experiment->explains);
    fprintf(to, "</p>\n");
    if (run->failure[0] != '\0') {
        fprintf(to, "<p class=\"out\">");
        escaped(to, run->failure);
        fprintf(to, "</p>\n");
    }
    write_rows(to, run);
    for (uint32_t i = 0; i < run->series_count; i++) {
        write_plot(to, &run->series[i]);
    }
}

static void write_page(FILE *to, const struct lab_run *runs, uint32_t count)
{
    fputs(head, to);
    fprintf(to,
            "<h1>nonic lab</h1><p>Models of published NICs and switches under a virtual clock, "
            "beside what their documents measured. Seed %" PRIu64 "; the same seed gives the same "
            "digests on any machine.</p>\n"
            "<p class=\"note\">In plots, blue is what the model does, dashed what the document "
            "says or implies. <sup>*</sup> marks figures that the document does not give (or that "
            "are lost with its drawings): derived from its parameters. MB/s are 2<sup>20</sup> "
            "bytes a second, which is how the two rates of the document that can be checked "
            "exactly are given; rows name the other reading, 10<sup>6</sup>, too.</p>\n",
            runs[0].seed);
    write_summary(to, runs, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(runs[i].experiment->document, runs[i - 1].experiment->document) != 0) {
            fprintf(to, "<h1>");
            escaped(to, runs[i].experiment->document);
            fprintf(to, "</h1>\n");
        }
        write_experiment(to, &runs[i]);
        if (i + 1 == count ||
            strcmp(runs[i].experiment->document, runs[i + 1].experiment->document) != 0) {
            write_parameters(to, runs[i].experiment);
        }
    }
    fputs("</body></html>\n", to);
}

bool lab_write_report(const char *directory, const struct lab_run *runs, uint32_t count,
                      char *error, size_t error_bytes)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/report.html", directory);
    if (mkdir(directory, 0755) != 0 && errno != EEXIST) {
        snprintf(error, error_bytes, "cannot make %s: %s", directory, strerror(errno));
        return false;
    }
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        snprintf(error, error_bytes, "cannot write %s: %s", path, strerror(errno));
        return false;
    }
    write_page(file, runs, count);
    const bool good = !ferror(file);
    const bool closed = fclose(file) == 0;
    if (!good || !closed) {
        snprintf(error, error_bytes, "cannot write %s", path);
    }
    return good && closed;
}
