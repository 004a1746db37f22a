/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_chart - drawings as SVG: what happened over time, and which packet went where.
 */
#include <inttypes.h>

#include "base/check.h"
#include "tools/html.h"
#include "tools/report.h"

enum {
    WIDTH = 900,
    LEFT = 70, /* Where an axis begins, and how much is left behind its end. */
    RIGHT = 20,
    RATE_HEIGHT = 170,
    LOSS_HEIGHT = 70,
    ROW = 26, /* A packet of a sequence. */
    LANE_LEFT = 170,
    LANE_RIGHT = 590,
};

/* -- Over time ----------------------------------------------------------------------------------*/

/* The next of 1, 2, 5, 10, 20 ... that is not below. */
static double round_up(double value)
{
    double step = 1;
    while (step * 10 < value) {
        step *= 10;
    }
    return value <= step       ? step
           : value <= 2 * step ? 2 * step
           : value <= 5 * step ? 5 * step
                               : 10 * step;
}

/* A number of bits per second, or of seconds, as a person writes it. */
static void write_rate(FILE *page, double bits)
{
    static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
    uint32_t unit = 0;
    while (bits >= 1000 && unit + 1 < COUNT_OF(units)) {
        bits /= 1000;
        unit++;
    }
    fprintf(page, "%.3g %s", bits, units[unit]);
}

static void write_seconds(FILE *page, double seconds)
{
    if (seconds >= 1 || seconds == 0) {
        fprintf(page, "%.3g s", seconds);
    } else if (seconds >= 1e-3) {
        fprintf(page, "%.3g ms", seconds * 1e3);
    } else {
        fprintf(page, "%.3g us", seconds * 1e6);
    }
}

struct plot {
    FILE *page;
    const struct report_bin *bins;
    double seconds, bin_seconds, rate_most, loss_most;
};

static double x_of(uint32_t bin)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * bin / REPORT_BINS;
}

static double rate_of(const struct plot *plot, uint32_t bin)
{
    return (double)plot->bins[bin].bytes * 8 / plot->bin_seconds;
}

static void write_axis(const struct plot *plot, double top, double height)
{
    fprintf(plot->page,
            "<line class=axis x1=%d y1=%.1f x2=%d y2=%.1f /><line class=axis x1=%d y1=%.1f x2=%d "
            "y2=%.1f />\n",
            LEFT, top, LEFT, top + height, LEFT, top + height, WIDTH - RIGHT, top + height);
}

static void write_rates(const struct plot *plot)
{
    const double top = 20;
    write_axis(plot, top, RATE_HEIGHT);
    fprintf(plot->page, "<text class=tick x=%d y=14>payload, at most ", LEFT);
    write_rate(plot->page, plot->rate_most);
    fprintf(plot->page, "</text>\n");
    const double scale = round_up(plot->rate_most);
    for (int half = 1; half <= 2; half++) {
        const double y = top + RATE_HEIGHT - RATE_HEIGHT * half / 2.0;
        fprintf(plot->page, "<line class=grid x1=%d y1=%.1f x2=%d y2=%.1f />", LEFT, y,
                WIDTH - RIGHT, y);
        fprintf(plot->page, "<text class=tick text-anchor=end x=%d y=%.1f>", LEFT - 6, y + 4);
        write_rate(plot->page, scale * half / 2);
        fprintf(plot->page, "</text>\n");
    }
    fprintf(plot->page, "<path class=rate d=\"M%d %.1f", LEFT, top + RATE_HEIGHT);
    for (uint32_t i = 0; i < REPORT_BINS; i++) {
        const double y = top + RATE_HEIGHT - RATE_HEIGHT * rate_of(plot, i) / scale;
        fprintf(plot->page, "V%.1fH%.1f", y, x_of(i + 1));
    }
    fprintf(plot->page, "V%.1fZ\" />\n", top + RATE_HEIGHT);
}

static void write_bar(const struct plot *plot, const char *class, uint32_t bin, double from,
                      double count, double bottom)
{
    if (count > 0) {
        const double height = LOSS_HEIGHT * count / plot->loss_most;
        fprintf(plot->page,
                "<rect class=%s x=%.1f y=%.1f width=%.1f height=%.1f><title>%.0f</title></rect>\n",
                class, x_of(bin), bottom - LOSS_HEIGHT * from / plot->loss_most - height,
                x_of(bin + 1) - x_of(bin), height, count);
    }
}

static void write_losses(const struct plot *plot)
{
    const double top = 20 + RATE_HEIGHT + 40, bottom = top + LOSS_HEIGHT;
    write_axis(plot, top, LOSS_HEIGHT);
    fprintf(plot->page,
            "<text class=tick x=%d y=%.1f>packets that were <tspan class=again>sent again</tspan>, "
            "<tspan class=rnr>receiver not ready</tspan></text>\n"
            "<text class=tick text-anchor=end x=%d y=%.1f>%.0f</text>\n",
            LEFT, top - 6, LEFT - 6, top + 8, plot->loss_most);
    for (uint32_t i = 0; i < REPORT_BINS; i++) {
        const struct report_bin *bin = &plot->bins[i];
        write_bar(plot, "again", i, 0, (double)bin->again, bottom);
        write_bar(plot, "rnr", i, (double)bin->again, (double)bin->not_ready, bottom);
    }
    for (int part = 0; part <= 4; part++) {
        fprintf(plot->page, "<text class=tick text-anchor=%s x=%.1f y=%.1f>",
                part == 4 ? "end" : "middle", LEFT + (WIDTH - LEFT - RIGHT) * part / 4.0,
                bottom + 16);
        write_seconds(plot->page, plot->seconds * part / 4);
        fprintf(plot->page, "</text>\n");
    }
}

void report_write_times(FILE *page, const struct report *report, const struct report_bin *bins,
                        const char *title)
{
    struct plot plot = {.page = page, .bins = bins};
    plot.seconds = (double)(report->last_ns - report->first_ns) / 1e9;
    plot.seconds = plot.seconds > 0 ? plot.seconds : 1e-6;
    plot.bin_seconds = plot.seconds / REPORT_BINS;
    for (uint32_t i = 0; i < REPORT_BINS; i++) {
        const double losses = (double)bins[i].again + (double)bins[i].not_ready;
        plot.rate_most = rate_of(&plot, i) > plot.rate_most ? rate_of(&plot, i) : plot.rate_most;
        plot.loss_most = losses > plot.loss_most ? losses : plot.loss_most;
    }
    plot.loss_most = plot.loss_most > 0 ? plot.loss_most : 1;
    fprintf(page,
            "<figure><figcaption>%s</figcaption><svg class=times role=img aria-label=\"%s\" "
            "viewBox=\"0 0 %d %d\">\n",
            title, title, WIDTH, 20 + RATE_HEIGHT + 40 + LOSS_HEIGHT + 24);
    write_rates(&plot);
    write_losses(&plot);
    fprintf(page, "</svg></figure>\n");
}

/* -- Packets ------------------------------------------------------------------------------------*/

static void write_arrow(FILE *page, const struct report_step *step, bool is_right, double y)
{
    const int from = is_right ? LANE_LEFT : LANE_RIGHT;
    const int to = is_right ? LANE_RIGHT : LANE_LEFT;
    const int back = is_right ? -8 : 8;
    const char *class = step->again_of != 0   ? "arrow again"
                        : step->odd != NULL   ? "arrow odd"
                        : step->again_in != 0 ? "arrow lost"
                        : step->is_request    ? "arrow request"
                                              : "arrow";
    fprintf(page,
            "<g class=\"%s\"><line x1=%d y1=%.1f x2=%d y2=%.1f /><path d=\"M%d %.1fL%d "
            "%.1fL%d %.1fZ\" /></g>",
            class, from, y, to + back, y, to, y, to + back, y - 4, to + back, y + 4);
}

static void write_remark(FILE *page, const struct report_step *step, double y)
{
    fprintf(page, "<text class=remark x=%d y=%.1f>", LANE_RIGHT + 10, y + 4);
    fputs(step->odd != NULL ? step->odd : "", page);
    if (step->again_of != 0) {
        fprintf(page, ": first as packet %" PRIu64, step->again_of);
    }
    if (step->again_in != 0) {
        fprintf(page, "%ssent again as packet %" PRIu64, step->odd != NULL ? ", " : "",
                step->again_in);
    }
    fprintf(page, "</text>\n");
}

static void write_skipped(FILE *page, uint64_t skipped, double y)
{
    if (skipped > 0) {
        fprintf(page,
                "<text class=skipped text-anchor=middle x=%d y=%.1f>%" PRIu64
                " packets are not drawn</text>\n",
                (LANE_LEFT + LANE_RIGHT) / 2, y + 14, skipped);
    }
}

static double write_step(FILE *page, const struct report *report, uint32_t number,
                         const struct report_step *step, double top)
{
    const struct report_chart *chart = &report->charts[number];
    const bool is_right = step->half == chart->halves[1];
    const uint64_t since_ns = step->at_ns < report->first_ns ? 0 : step->at_ns - report->first_ns;
    double y = top;
    if (step->skipped > 0) {
        write_skipped(page, step->skipped, y);
        y += ROW;
    }
    fprintf(page,
            "<g class=step id=c%" PRIu32 "p%" PRIu64 "><text class=tick x=4 y=%.1f>%" PRIu64
            "</text><text class=tick text-anchor=end x=%d y=%.1f>%.6f s</text>"
            "<text class=label text-anchor=middle x=%d y=%.1f>",
            number, step->number, y + 20, step->number, LANE_LEFT - 10, y + 20,
            (double)since_ns / 1e9, (LANE_LEFT + LANE_RIGHT) / 2, y + 12);
    html_write(page, step->label);
    fprintf(page, "</text>");
    write_arrow(page, step, is_right, y + 17);
    write_remark(page, step, y + 17);
    fprintf(page, "</g>\n");
    return y + ROW;
}

static double height_of(const struct report_chart *chart)
{
    double rows = 2;
    for (uint32_t i = 0; i < chart->count; i++) {
        rows += chart->steps[i].skipped > 0 ? 2 : 1;
    }
    return 40 + rows * ROW;
}

void report_write_steps(FILE *page, const struct report *report, uint32_t number)
{
    const struct report_chart *chart = &report->charts[number];
    const struct report_half *half = &report->halves[chart->halves[1]];
    const double height = height_of(chart);
    double y = 40;
    fprintf(page,
            "<div class=scroll><svg class=steps role=img aria-label=\"packets in the order of the "
            "capture\" viewBox=\"0 0 %d %.0f\">\n<text class=tick x=4 y=14>packet</text>"
            "<text class=end text-anchor=middle x=%d y=14>",
            WIDTH, height, LANE_LEFT);
    report_write_end(page, report, half, true);
    fprintf(page, "</text><text class=end text-anchor=middle x=%d y=14>", LANE_RIGHT);
    report_write_end(page, report, half, false);
    fprintf(page,
            "</text>\n<line class=lane x1=%d y1=22 x2=%d y2=%.0f />"
            "<line class=lane x1=%d y1=22 x2=%d y2=%.0f />\n",
            LANE_LEFT, LANE_LEFT, height, LANE_RIGHT, LANE_RIGHT, height);
    for (uint32_t i = 0; i < chart->count; i++) {
        y = write_step(page, report, number, &chart->steps[i], y);
    }
    write_skipped(page, chart->skipped + chart->before_count, y);
    fprintf(page, "</svg></div>\n");
}
