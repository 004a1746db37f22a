/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_page - the page: a sentence, the connections, what happened over time, what is odd, and
 * the packets of some connections. It has no script and loads nothing, and its browser is told so.
 */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "tools/html.h"
#include "tools/report.h"

enum {
    ROWS_MAX = 200, /* Connections in the table. */
};

static const char head[] =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width\">"
    "<title>nonic report</title><style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:80em;margin:2em auto;padding:0 1em;"
    "color:#1c2024;background:#fff}\n"
    "h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #d8dde3}"
    "h3{font-size:1.05em;margin-top:1.6em}\n"
    ".wide{overflow-x:auto}td.who{white-space:nowrap}table{border-collapse:collapse;margin:1em "
    "0;font-variant-numeric:tabular-nums;"
    "font-size:.88em}\n"
    "th,td{text-align:left;padding:.2em .45em;border-bottom:1px solid #e6e9ed;vertical-align:top}\n"
    "th{font-weight:600;color:#57606a}.n{text-align:right}tr.first td{border-top:1px solid "
    "#aab2bb}\n"
    ".bad{color:#b42318}.broken{color:#b42318;font-weight:600}.note{color:#57606a}\n"
    "figure{margin:1em 0}figcaption{font-weight:600}svg{width:100%;height:auto;display:block}\n"
    ".scroll{max-height:44em;overflow-y:auto;border:1px solid #d8dde3;padding:.5em}\n"
    "svg text{font:12px system-ui,sans-serif;fill:#1c2024}svg .tick{fill:#57606a}"
    "svg .label{font-size:11px}svg .end{font-weight:600}svg .skipped{fill:#57606a;font-style:"
    "italic}\n"
    ".axis{stroke:#8b949e}.grid{stroke:#e6e9ed}.lane{stroke:#8b949e;stroke-width:2}"
    ".rate{fill:#9ec5fe;stroke:#0b5ed7;stroke-width:1}\n"
    "rect.again,tspan.again{fill:#b42318}rect.rnr,tspan.rnr{fill:#c77700}"
    "svg tspan{font-weight:600}\n"
    ".arrow line{stroke:#8b949e;stroke-width:1.3}.arrow path{fill:#8b949e}"
    ".request line{stroke:#0b5ed7}.request path{fill:#0b5ed7}\n"
    ".arrow.again line,.arrow.odd line{stroke:#b42318;stroke-width:2}"
    ".arrow.again path,.arrow.odd path{fill:#b42318}\n"
    ".lost line{stroke:#b42318;stroke-dasharray:6 4}.lost path{fill:#b42318}"
    "svg .remark{fill:#b42318}\n"
    "g.step:target text{font-weight:700}code{background:#f3f4f6;padding:0 .3em}\n"
    "</style></head><body>\n";

/* -- Words --------------------------------------------------------------------------------------*/

static const char *service_name(enum report_service service)
{
    static const char *const names[] = {"?", "RC", "XRC", "UC", "UD", "blocks", "SRD"};
    return names[service];
}

static void write_bytes(FILE *page, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    uint32_t unit = 0;
    while (value >= 1000 && unit + 1 < COUNT_OF(units)) {
        value /= 1000;
        unit++;
    }
    fprintf(page, "%.*f %s", unit == 0 || value >= 100 ? 0 : 1, value, units[unit]);
}

static double seconds_since(const struct report *report, uint64_t at_ns)
{
    return at_ns < report->first_ns ? 0 : (double)(at_ns - report->first_ns) / 1e9;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* -- The first sentence -------------------------------------------------------------------------*/

struct totals {
    uint64_t connections, messages, bytes, packets, again, not_ready, broken;
};

static bool is_second(const struct report *report, uint32_t half)
{
    return report->halves[half].partner < half;
}

static struct totals totals_of(const struct report *report)
{
    struct totals totals = {0};
    for (uint32_t i = 0; i < report->half_count; i++) {
        const struct report_half *half = &report->halves[i];
        totals.connections += !is_second(report, i);
        totals.messages += half->messages;
        totals.bytes += half->bytes;
        totals.packets += half->packets;
        totals.again += half->again;
        totals.not_ready += half->not_ready;
    }
    for (uint32_t i = 0; i < REPORT_RULES; i++) {
        totals.broken += report_rules[i].breaks ? report->oddities[i].count : 0;
    }
    return totals;
}

static void write_sentence(FILE *page, const struct report *report)
{
    const struct totals totals = totals_of(report);
    const double seconds = (double)(report->last_ns - report->first_ns) / 1e9;
    fprintf(page, "<p id=sentence>In %.4g s, %" PRIu64 " connection%s carried ", seconds,
            totals.connections, plural(totals.connections));
    write_bytes(page, totals.bytes);
    fprintf(page, " of payload in %" PRIu64 " message%s (%" PRIu64 " packet%s): ", totals.messages,
            plural(totals.messages), totals.packets, plural(totals.packets));
    if (totals.again == 0) {
        fprintf(page, "nothing was sent again, ");
    } else {
        fprintf(page, "%" PRIu64 " packet%s (%.2f %%) %s sent again, ", totals.again,
                plural(totals.again), 100.0 * (double)totals.again / (double)totals.packets,
                totals.again == 1 ? "was" : "were");
    }
    if (totals.not_ready > 0) {
        fprintf(page, "a receiver was not ready %" PRIu64 " time%s, ", totals.not_ready,
                plural(totals.not_ready));
    }
    if (totals.broken == 0) {
        fprintf(page, "and no rule was broken.</p>\n");
    } else {
        fprintf(page, "and rules were <a href=\"#oddities\">broken</a> %" PRIu64 " time%s.</p>\n",
                totals.broken, plural(totals.broken));
    }
}

static void write_left_out(FILE *page, const struct report *report, const char *broken)
{
    if (broken != NULL) {
        fprintf(page, "<p class=broken id=broken>The file could not be read to its end: ");
        html_write(page, broken);
        fprintf(page, ". This page shows what is before that.</p>\n");
    }
    fprintf(page, "<p class=note>The capture has %" PRIu64 " packet%s", report->packets,
            plural(report->packets));
    if (report->foreign > 0) {
        fprintf(page, ", of which %" PRIu64 " %s not RoCEv2", report->foreign,
                report->foreign == 1 ? "is" : "are");
    }
    if (report->port > 0) {
        fprintf(page, "; %" PRIu64 " %s nonic's flow control", report->port,
                report->port == 1 ? "is" : "are");
    }
    if (report->cut > 0) {
        fprintf(page, "; %" PRIu64 " %s cut: their checksums were not looked at", report->cut,
                report->cut == 1 ? "is" : "are");
    }
    if (report->crowded > 0) {
        fprintf(page, "; %" PRIu64 " belong to connections beyond the first %d, and are left out",
                report->crowded, REPORT_HALVES_MAX / 2);
    }
    fprintf(page,
            ". Packets have the numbers that Wireshark gives them; times count from the first "
            "packet.</p>\n");
}

/* -- Connections --------------------------------------------------------------------------------*/

static void write_response(FILE *page, const struct report_half *half)
{
    if (half->responses == 0) {
        fprintf(page, "<td class=n>-</td><td class=n>-</td>");
    } else {
        fprintf(page, "<td class=n>%.1f</td><td class=n>%.1f</td>",
                (double)half->response_ns / (double)half->responses / 1e3,
                (double)half->response_most_ns / 1e3);
    }
}

static void write_count(FILE *page, uint64_t count)
{
    fprintf(page, "<td class=\"n%s\">%" PRIu64 "</td>", count > 0 ? " bad" : "", count);
}

static void write_half(FILE *page, const struct report *report, uint32_t number, bool is_first)
{
    const struct report_half *half = &report->halves[number];
    fprintf(page, "<tr%s><td>", is_first ? " class=first" : "");
    if (is_first && half->drawn != REPORT_NONE) {
        fprintf(page, "<a href=\"#c%" PRIu32 "\">%s</a>", half->drawn, service_name(half->service));
    } else {
        fputs(is_first ? service_name(half->service) : "", page);
    }
    fprintf(page, "</td><td class=who>");
    report_write_end(page, report, half, true);
    fprintf(page, " &rarr; ");
    report_write_end(page, report, half, false);
    fprintf(page, "</td><td class=n>%" PRIu64 "</td><td class=n>%" PRIu64 "</td><td class=n>",
            half->messages, half->packets);
    write_bytes(page, half->bytes);
    fprintf(page, "</td>");
    write_count(page, half->again);
    write_count(page, half->not_ready);
    write_count(page, half->refused);
    write_count(page, half->marked);
    write_response(page, half);
    fprintf(page, "<td class=n>%.3f</td><td class=n>%.3f</td></tr>\n",
            seconds_since(report, half->first_ns), seconds_since(report, half->last_ns));
}

static void write_connections(FILE *page, const struct report *report)
{
    uint32_t rows = 0, left_out = 0;
    fprintf(page,
            "<h2>Connections</h2>\n<p class=note>A row for each direction of requests. Messages, "
            "and what was sent again, not ready or refused, are of requests that go this way; "
            "payload is all that went this way, with the data of READs. An answer is how long a "
            "request "
            "waited for its acknowledgement: the mean, and the slowest. A name leads to the "
            "connection's "
            "packets.</p>\n<div class=wide><table id=connections><tr><th></th><th>from, to</th>"
            "<th class=n>messages</th><th class=n>packets</th><th class=n>payload</th>"
            "<th class=n>sent again</th><th class=n>not ready</th><th class=n>refused</th>"
            "<th class=n>marked</th><th class=n>answer [us]</th><th class=n>slowest</th>"
            "<th class=n>from [s]</th><th class=n>until</th></tr>\n");
    for (uint32_t i = 0; i < report->half_count; i++) {
        if (is_second(report, i)) {
            continue;
        }
        if (rows++ >= ROWS_MAX) {
            left_out++;
            continue;
        }
        write_half(page, report, i, true);
        if (report->halves[i].partner != REPORT_NONE) {
            write_half(page, report, report->halves[i].partner, false);
        }
    }
    fprintf(page, "</table></div>\n");
    if (left_out > 0) {
        fprintf(page, "<p class=note>%" PRIu32 " more connection%s not shown.</p>\n", left_out,
                left_out == 1 ? " is" : "s are");
    }
    if (report->half_count == 0) {
        fprintf(page, "<p class=note>There is none: the capture has no RoCEv2 (UDP port %d).</p>\n",
                ROCE_UDP_PORT);
    }
}

/* -- Oddities -----------------------------------------------------------------------------------*/

static void write_examples(FILE *page, const struct report *report,
                           const struct report_oddity *oddity)
{
    const uint64_t shown = oddity->count < REPORT_EXAMPLES ? oddity->count : REPORT_EXAMPLES;
    const char *said = NULL;
    for (uint64_t i = 0; i < shown; i++) {
        const uint64_t number = oddity->examples[i].number;
        const uint32_t chart = report_chart_with(report, oddity->examples[i].half, number);
        fputs(i == 0 ? "" : ", ", page);
        if (chart == REPORT_NONE) {
            fprintf(page, "%" PRIu64, number);
        } else {
            fprintf(page, "<a href=\"#c%" PRIu32 "p%" PRIu64 "\">%" PRIu64 "</a>", chart, number,
                    number);
        }
        const char *detail = oddity->examples[i].detail;
        if (detail != NULL && (said == NULL || strcmp(said, detail) != 0)) {
            fprintf(page, " (");
            html_write(page, detail);
            fprintf(page, ")");
            said = detail;
        }
    }
    if (oddity->count > shown) {
        fprintf(page, " and %" PRIu64 " more", oddity->count - shown);
    }
}

static void write_oddities(FILE *page, const struct report *report)
{
    bool any = false;
    fprintf(page, "<h2 id=oddities>Oddities</h2>\n");
    for (uint32_t i = 0; i < REPORT_RULES; i++) {
        const struct report_words *words = &report_rules[i];
        if (report->oddities[i].count == 0) {
            continue;
        }
        if (!any) {
            fprintf(page,
                    "<p class=note>What is worth a look. Where a sender <b>breaks</b> a rule, "
                    "the rule is red; elsewhere it is the rule for what went wrong before."
                    "</p>\n<table><tr><th>what</th><th class=n>times</th><th>rule</th>"
                    "<th>what it means</th><th>packets</th></tr>\n");
            any = true;
        }
        fprintf(page,
                "<tr><td>%s</td><td class=n>%" PRIu64 "</td><td class=%s>%s%s</td><td>%s"
                "</td><td>",
                words->title, report->oddities[i].count, words->breaks ? "broken" : "rule",
                words->breaks ? "breaks " : "", words->rule, words->meaning);
        write_examples(page, report, &report->oddities[i]);
        fprintf(page, "</td></tr>\n");
    }
    fprintf(page, any ? "</table>\n" : "<p>None was found.</p>\n");
}

/* -- The page -----------------------------------------------------------------------------------*/

static void write_chart(FILE *page, const struct report *report, uint32_t number,
                        bool is_one_of_many)
{
    const struct report_chart *chart = &report->charts[number];
    const struct report_half *half = &report->halves[chart->halves[1]];
    fprintf(page, "<h3 id=c%" PRIu32 ">%s: ", number, service_name(half->service));
    report_write_end(page, report, half, true);
    fprintf(page, " and ");
    report_write_end(page, report, half, false);
    fprintf(page, "</h3>\n");
    report_write_steps(page, report, number);
    if (is_one_of_many) {
        report_write_times(page, report, chart->bins, "This connection over time");
    }
}

static void write_charts(FILE *page, const struct report *report, uint64_t connections)
{
    if (report->chart_count == 0) {
        return;
    }
    fprintf(page,
            "<h2>Packets</h2>\n<p class=note>Time goes down; an arrow is a packet. Blue ones are "
            "requests, grey ones answers. A dashed red one was sent again later, a thick red one "
            "is that repetition, or another oddity. Drawn are a connection's first %d packets and "
            "those around oddities, %d at most; <code>wireshark -g NUMBER FILE</code> shows any "
            "other.",
            REPORT_FIRST, REPORT_STEPS);
    if (connections > report->chart_count) {
        fprintf(page,
                " Of %" PRIu64 " connections these %" PRIu32
                " have a chart: those with refusals, then those with the most packets.",
                connections, report->chart_count);
    }
    fprintf(page, "</p>\n");
    for (uint32_t i = 0; i < report->chart_count; i++) {
        write_chart(page, report, i, connections > 1);
    }
}

void report_page(FILE *page, const struct report *report, const char *name, const char *broken)
{
    fputs(head, page);
    fprintf(page, "<h1>nonic report: ");
    html_write(page, name);
    fprintf(page, "</h1>\n");
    write_sentence(page, report);
    write_left_out(page, report, broken);
    write_connections(page, report);
    fprintf(page, "<h2>Over time</h2>\n");
    report_write_times(page, report, report->bins, "All connections");
    write_oddities(page, report);
    write_charts(page, report, totals_of(report).connections);
    fprintf(page, "</body></html>\n");
}
