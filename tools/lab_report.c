/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report: one HTML page that needs nothing beside itself.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/html.h"
#include "tools/lab.h"

/* -- Figures ------------------------------------------------------------------------------------*/

/* Copies the drawing into the page, from its <svg> on. */
static bool copy_drawing(FILE *to, const char *path)
{
    char line[4096];
    bool inside = false;
    FILE *from = fopen(path, "re");
    if (from == NULL) {
        return false;
    }
    while (fgets(line, sizeof(line), from) != NULL) {
        inside |= strstr(line, "<svg") != NULL;
        if (inside) {
            fputs(line, to);
        }
    }
    return fclose(from) == 0 && inside;
}

bool lab_draw_figures(const char *directory, const struct lab_run *run, char *error,
                      size_t error_bytes)
{
    if (mkdir(directory, 0755) != 0 && errno != EEXIST) {
        snprintf(error, error_bytes, "cannot make %s: %s", directory, strerror(errno));
        return false;
    }
    for (uint32_t i = 0; i < run->figure_count; i++) {
        if (!lab_draw_figure(directory, run, i, error, error_bytes)) {
            return false;
        }
    }
    return true;
}

static bool write_figures(FILE *to, const char *directory, const struct lab_run *run, char *error,
                          size_t error_bytes)
{
    for (uint32_t i = 0; i < run->figure_count; i++) {
        char name[2 * LAB_ID_BYTES + 64], path[4096];
        lab_figure_name(run, &run->figures[i], name, sizeof(name));
        snprintf(path, sizeof(path), "%s/%s.svg", directory, name);
        fprintf(to, "<figure>");
        if (!copy_drawing(to, path)) {
            snprintf(error, error_bytes, "%s is no drawing", path);
            return false;
        }
        fprintf(to,
                "<figcaption><a href=\"%s.csv\">CSV</a> <a href=\"%s.svg\">SVG</a></figcaption>"
                "</figure>\n",
                name, name);
    }
    return true;
}

/* -- Tables -------------------------------------------------------------------------------------*/

static void write_cell(FILE *to, const char *class, const char *text)
{
    fprintf(to, "<td%s%s>", class[0] != '\0' ? " class=" : "", class);
    html_write(to, text);
    fprintf(to, "</td>");
}

static const char *class_of(enum lab_verdict verdict)
{
    return verdict == LAB_OK ? "ok" : verdict == LAB_NOT_REPRODUCED ? "missed" : "out";
}

static void write_row(FILE *to, const struct lab_run *run, const struct lab_row *row)
{
    const struct lab_claim *claim = lab_claim_of(run, row);
    const enum lab_verdict verdict = lab_verdict_of(run, row);
    char published[48], bound[48];
    lab_published_text(row, published, sizeof(published));
    lab_bound_text(row, bound, sizeof(bound));
    fprintf(to, "<tr>");
    write_cell(to, "", row->id);
    write_cell(to, "", row->what);
    write_cell(to, "n", published);
    write_cell(to, "", lab_reference_text(claim->reference));
    fprintf(to, "<td class=n>%.6g</td>", row->measured);
    write_cell(to, "", row->unit);
    write_cell(to, "", bound);
    fprintf(to, "<td>%s%s%s</td>", lab_ground_text(claim->ground),
            claim->given != NULL ? ", given " : "", claim->given != NULL ? claim->given : "");
    write_cell(to, "setting", claim->not_reproduced == NULL ? claim->broken_by : "");
    write_cell(to, class_of(verdict), lab_verdict_text(verdict));
    fprintf(to, "</tr>\n");
}

static void write_rows(FILE *to, const struct lab_run *run)
{
    if (run->row_count == 0) {
        return;
    }
    fprintf(to, "<table><tr><th>row</th><th>what</th><th class=n>expected</th><th>which is</th>"
                "<th class=n>nonic</th><th>unit</th><th>tolerance</th><th>rests on</th>"
                "<th>broken by</th><th>verdict</th></tr>\n");
    for (uint32_t i = 0; i < run->row_count; i++) {
        write_row(to, run, &run->rows[i]);
    }
    fprintf(to, "</table>\n");
    for (uint32_t i = 0; i < run->experiment->claim_count; i++) {
        const struct lab_claim *claim = &run->experiment->claims[i];
        if (claim->not_reproduced != NULL) {
            fprintf(to, "<p class=missed>%s is not reproduced: ", claim->id);
            html_write(to, claim->not_reproduced);
            fprintf(to, "</p>\n");
        }
    }
}

static void write_parameters(FILE *to, const struct lab_experiment *experiment)
{
    static struct lab_run run;
    lab_prepare(&run, experiment, 1);
    fprintf(to, "<details><summary>Parameters</summary><table><tr><th>parameter</th>"
                "<th class=n>value</th><th>unit</th><th>what</th>"
                "<th>source (a number: section of the document; OC: our choice)</th></tr>\n");
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        const struct lab_parameter *parameter = &experiment->parameters[i];
        char value[48];
        if (!lab_uses(experiment, i)) {
            continue;
        }
        lab_value_text(parameter, run.values[i], value, sizeof(value));
        fprintf(to, "<tr%s>", parameter->fitted != NULL ? " class=fitted" : "");
        write_cell(to, "", parameter->name);
        write_cell(to, "n", value);
        write_cell(to, "", parameter->unit);
        write_cell(to, "", parameter->what);
        fprintf(to, "<td>");
        html_write(to, parameter->source);
        if (parameter->fitted != NULL) {
            fprintf(to, ", <b>fitted</b> to %s", parameter->fitted);
        }
        fprintf(to, "</td></tr>\n");
    }
    fprintf(to, "</table></details>\n");
}

/* -- The page -----------------------------------------------------------------------------------*/

static const char head[] =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>nonic lab</title><style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:84em;margin:2em auto;padding:0 1em;"
    "color:#1c2024;background:#fff}\n"
    "h1{font-size:1.7em}h2{font-size:1.25em;margin-top:2.2em;border-bottom:1px solid #d8dde3}\n"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:.2em .7em;border-bottom:1px solid #e6e9ed;vertical-align:top}\n"
    "th{font-weight:600;color:#57606a}.n{text-align:right}\n"
    ".ok{color:#1a7f37}.out{color:#b42318;font-weight:600}.fitted{background:#fff8e1}\n"
    ".note{color:#57606a}figure{display:inline-block;width:38em;max-width:100%;margin:.5em 1em "
    ".5em 0}\n"
    "figcaption{font-weight:600}figcaption a{font-weight:400;font-size:.85em}svg{width:100%;"
    "height:auto}\n"
    ".missed{color:#8a5a00}.setting{font-family:monospace;font-size:.85em}\n"
    "summary{cursor:pointer;color:#57606a}code{background:#f3f4f6;padding:0 .3em}\n"
    "</style></head><body>\n";

/* A page is written after each experiment, so some have not run. */
static uint32_t count_finished(const struct lab_run *runs, uint32_t count)
{
    uint32_t finished = 0;
    for (uint32_t i = 0; i < count; i++) {
        finished += runs[i].finished;
    }
    return finished;
}

static void write_summary(FILE *to, const struct lab_run *runs, uint32_t count)
{
    fprintf(to, "<table><tr><th>experiment</th><th>what</th><th class=n>rows</th>"
                "<th class=n>within tolerance</th><th class=n>not reproduced</th>"
                "<th class=n>events</th><th>digest</th></tr>\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct lab_run *run = &runs[i];
        if (!run->finished) {
            continue;
        }
        uint32_t verdicts[LAB_NOT_JUDGED + 1] = {0};
        for (uint32_t k = 0; k < run->row_count; k++) {
            verdicts[lab_verdict_of(run, &run->rows[k])]++;
        }
        fprintf(to, "<tr><td><a href=\"#%s\">%s</a></td>", run->experiment->name,
                run->experiment->name);
        write_cell(to, "", run->experiment->what);
        fprintf(to,
                "<td class=n>%u</td><td class=\"n %s\">%u</td><td class=n>%u</td>"
                "<td class=n>%" PRIu64 "</td><td><code>%016" PRIx64 "</code></td></tr>\n",
                run->row_count, lab_run_good(run) ? "ok" : "out", verdicts[LAB_OK],
                verdicts[LAB_NOT_REPRODUCED], run->events, run->digest);
    }
    fprintf(to, "</table>\n");
}

/* The rows of one document, counted by kind. */
struct evidence {
    uint32_t rows, references[LAB_REFERENCES], fitted, given, independent, within;
};

static struct evidence evidence_of(const struct lab_run *runs, uint32_t count,
                                   const struct lab_document *document)
{
    struct evidence evidence = {0};
    for (uint32_t i = 0; i < count; i++) {
        const bool counts = runs[i].finished && runs[i].experiment->document == document;
        for (uint32_t k = 0; counts && k < runs[i].row_count; k++) {
            const struct lab_row *row = &runs[i].rows[k];
            const struct lab_claim *claim = lab_claim_of(&runs[i], row);
            evidence.rows++;
            evidence.references[claim->reference]++;
            evidence.fitted += claim->ground == LAB_FITTED;
            evidence.given += claim->given != NULL;
            evidence.independent += lab_is_independent(claim);
            evidence.within += lab_is_independent(claim) && row->within;
        }
    }
    return evidence;
}

static void write_evidence_of(FILE *to, const struct lab_document *document,
                              const struct evidence *evidence)
{
    fprintf(to, "<tr>");
    write_cell(to, "", document->title);
    fprintf(to, "<td class=n>%u</td>", evidence->rows);
    for (int i = 0; i < LAB_REFERENCES; i++) {
        fprintf(to, "<td class=n>%u</td>", evidence->references[i]);
    }
    fprintf(to, "<td class=n>%u</td><td class=n>%u</td>", evidence->fitted, evidence->given);
    if (evidence->independent == 0) {
        fprintf(to, "<td class=missed>none</td></tr>\n");
    } else {
        fprintf(to, "<td>%u, of which %u are within tolerance</td></tr>\n", evidence->independent,
                evidence->within);
    }
}

/* How much of what follows is evidence: the reader's first question. */
static void write_evidence(FILE *to, const struct lab_run *runs, uint32_t count)
{
    fprintf(to, "<p>Independent evidence is a row whose numeral is printed, by the document or "
                "elsewhere by its authors, and which comes out of a mechanism: no parameter was "
                "fitted to it, nor to a row on which it rests.</p>\n"
                "<table><tr><th>document</th><th class=n>rows</th>");
    for (enum lab_reference i = 0; i < LAB_REFERENCES; i++) {
        fprintf(to, "<th class=n>%s</th>", lab_reference_text(i));
    }
    fprintf(to, "<th class=n>fitted</th><th class=n>given a fit</th>"
                "<th>independent evidence</th></tr>\n");
    const struct lab_document *document = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (runs[i].finished && runs[i].experiment->document != document) {
            document = runs[i].experiment->document;
            const struct evidence evidence = evidence_of(runs, count, document);
            write_evidence_of(to, document, &evidence);
        }
    }
    fprintf(to, "</table>\n<p class=note>printed: the document prints the numeral. derived: "
                "arithmetic on numerals that it prints. in words: it says so without a numeral, "
                "and the bound is ours. elsewhere: its authors print the numeral in another "
                "publication. prediction: nobody has published anything of it.</p>\n");
}

/* A sentence and the pictures come first: they are what a reader wants to show. */
static bool write_experiment(FILE *to, const char *directory, const struct lab_run *run,
                             char *error, size_t error_bytes)
{
    fprintf(to, "<h2 id=\"%s\">%s</h2><p>", run->experiment->name, run->experiment->name);
    fputc(toupper((unsigned char)run->experiment->what[0]), to);
    html_write(to, run->experiment->what + 1);
    fprintf(to, ".</p>\n");
    if (run->failure[0] != '\0') {
        fprintf(to, "<p class=out>");
        html_write(to, run->failure);
        fprintf(to, "</p>\n");
    }
    if (!write_figures(to, directory, run, error, error_bytes)) {
        return false;
    }
    fprintf(to, "<p class=note>");
    html_write(to, run->experiment->explains);
    fprintf(to, "</p>\n");
    write_rows(to, run);
    write_parameters(to, run->experiment);
    return true;
}

static void write_document(FILE *to, const struct lab_document *document)
{
    fprintf(to, "<h1>");
    html_write(to, document->title);
    fprintf(to, "</h1>\n");
    if (document->note != NULL) {
        fprintf(to, "<p>");
        html_write(to, document->note);
        fprintf(to, "</p>\n");
    }
    if (document->others == NULL) {
        return;
    }
    fprintf(to, "<p class=note>Sources that are not the document's own sections:");
    for (const char *const *other = document->others; *other != NULL; other++) {
        fprintf(to, "<br>");
        html_write(to, *other);
    }
    fprintf(to, "</p>\n");
}

static bool write_page(FILE *to, const char *directory, const struct lab_run *runs, uint32_t count,
                       char *error, size_t error_bytes)
{
    fputs(head, to);
    fprintf(to,
            "<h1>nonic lab</h1><p>Models of published NICs and switches under a virtual clock, "
            "beside what their documents measured. Seed %" PRIu64 "; the same seed gives the same "
            "digests on any machine.</p>\n",
            runs[0].seed);
    if (count_finished(runs, count) < count) {
        fprintf(to, "<p class=out>%u of %u experiments have run.</p>\n",
                count_finished(runs, count), count);
    }
    write_evidence(to, runs, count);
    fprintf(to,
            "<p class=note>Each row names the setting that must break it; <code>nonic lab "
            "falsify</code> tries them all. In figures, dashed lines are what our formulas expect, "
            "red what the document prints.</p>\n");
    write_summary(to, runs, count);
    const struct lab_document *document = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!runs[i].finished) {
            continue;
        }
        if (runs[i].experiment->document != document) {
            document = runs[i].experiment->document;
            write_document(to, document);
        }
        if (!write_experiment(to, directory, &runs[i], error, error_bytes)) {
            return false;
        }
    }
    fputs("</body></html>\n", to);
    return true;
}

bool lab_write_report(const char *directory, const struct lab_run *runs, uint32_t count,
                      char *error, size_t error_bytes)
{
    char path[4096], page[4096];
    snprintf(page, sizeof(page), "%s/report.html", directory);
    snprintf(path, sizeof(path), "%s/report.%ld", directory, (long)getpid());
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        snprintf(error, error_bytes, "cannot write %s: %s", path, strerror(errno));
        return false;
    }
    const bool written = write_page(file, directory, runs, count, error, error_bytes);
    const bool good = !ferror(file);
    const bool closed = fclose(file) == 0;
    const bool named = written && good && closed && rename(path, page) == 0;
    if (!named) {
        unlink(path);
    }
    if (written && !named) {
        snprintf(error, error_bytes, "cannot write %s", page);
    }
    return named;
}
