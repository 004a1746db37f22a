/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lab - experiments: their names, their parameters, their results.
 *
 * Purpose    An experiment reproduces a row or figure of a document. It is a function of its
 *            parameters and a seed. It gives rows to compare and figures to draw. Its claims, and
 *            the settings that must break each claim, are written down before it runs.
 * Source     The documents (struct lab_document), by section.
 */
#ifndef LAB_LAB_H
#define LAB_LAB_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/capture.h"
#include "sim/kernel.h"
#include "sim/trace.h"

/* Stands for a value or a bound that does not exist. */
#define LAB_NOTHING   ((double)NAN)
#define LAB_UNBOUNDED ((double)INFINITY)

#define LAB_PARAMETERS_MAX 128
#define LAB_ROWS_MAX       128
#define LAB_READINGS_MAX   48
#define LAB_FIGURES_MAX    16
#define LAB_MARKS_MAX      48
#define LAB_SERIES_MAX     32
#define LAB_POINTS_MAX     128
#define LAB_MEMORIES_MAX   16
#define LAB_TEXT_BYTES     160
#define LAB_ID_BYTES       32
#define LAB_FAILURE_BYTES  512

/* -- Parameters ---------------------------------------------------------------------------------*/

enum lab_kind {
    LAB_IS_REAL,
    LAB_IS_WHOLE, /* Whole numbers only. */
    LAB_IS_WORD,  /* One of some words; its value is the word's index, from 0 on. */
};

struct lab_parameter {
    const char *name;
    const char *unit; /* As printed, and as accepted behind a value; "" for a number. */
    enum lab_kind kind;
    double value, least, most;
    const char *words;  /* The valid words, with a space between two; NULL: a number. */
    const char *fitted; /* The row to which the value was fitted; NULL: it was not fitted. */
    const char *source; /* As a claim's; or "OC": our choice. */
    const char *what;
};

/* Entries of tables of parameters. The first of the words is the value. */
#define LAB_REAL(name, unit, value, least, most, source, what)                                     \
    {                                                                                              \
        name, unit, LAB_IS_REAL, value, least, most, NULL, NULL, source, what                      \
    }
#define LAB_WHOLE(name, unit, value, least, most, source, what)                                    \
    {                                                                                              \
        name, unit, LAB_IS_WHOLE, value, least, most, NULL, NULL, source, what                     \
    }
#define LAB_WORD(name, words, source, what)                                                        \
    {                                                                                              \
        name, "", LAB_IS_WORD, 0, 0, 0, words, NULL, source, what                                  \
    }
#define LAB_FITTED_WORD(row, name, words, source, what)                                            \
    {                                                                                              \
        name, "", LAB_IS_WORD, 0, 0, 0, words, row, source, what                                   \
    }
#define LAB_FITTED_REAL(row, name, unit, value, least, most, source, what)                         \
    {                                                                                              \
        name, unit, LAB_IS_REAL, value, least, most, NULL, row, source, what                       \
    }
#define LAB_FITTED_WHOLE(row, name, unit, value, least, most, source, what)                        \
    {                                                                                              \
        name, unit, LAB_IS_WHOLE, value, least, most, NULL, row, source, what                      \
    }

/* -- Documents -----------------------------------------------------------------------------------
 *
 * A source is one place or several, with "; " between two. Words may follow a place, behind a
 * comma, a colon or a space. A place begins with a word of `sections`, with the name of one of
 * `others`, or is "OC". So a reader finds it in a text that he can get. */

struct lab_document {
    const char *title;
    const char *sections; /* Numbers and words ("5.3.4", "figure"), with a space between two. */
    const char *const *others; /* "NAME: full title" of other sources; the last one is NULL. */
    const char *note;          /* Sentences for the reader of its rows, above them. NULL: none. */
};

/* -- Claims --------------------------------------------------------------------------------------
 *
 * An experiment makes claims about its document before it runs, and each row belongs to one claim.
 * A claim that nothing could break says nothing. So it names the settings that must put each of its
 * rows out of tolerance, and `nonic lab falsify` tries them. */

enum lab_reference {
    LAB_PRINTED,   /* The document prints this numeral. */
    LAB_DERIVED,   /* Arithmetic on numerals that the document prints. */
    LAB_IN_WORDS,  /* The document says it in words, without a numeral: the bound is ours. */
    LAB_ELSEWHERE, /* The same authors print the numeral in another publication: the source. */
    LAB_PREDICTED, /* It is ours: nobody has published anything of it. */
    LAB_REFERENCES
};

enum lab_ground {
    LAB_MECHANISM,  /* The row comes out of parts that act on one another. */
    LAB_ARITHMETIC, /* Between the parameters and the row there is one formula. */
    LAB_FITTED,     /* A parameter was fitted to this row. */
    LAB_GROUNDS
};

struct lab_claim {
    const char *id; /* Unique among all experiments, shorter than LAB_ID_BYTES. */
    enum lab_reference reference;
    enum lab_ground ground;
    /* NULL, or claims, with a space between two: the row rests on parameters that were fitted to
     * their rows, so much that other values would move it by more than its tolerance. */
    const char *given;
    const char *source; /* The places that print it, or from which it is derived. */
    /* Settings, NAME=VALUE, with a space between two; or several alternatives with " | " between
     * two, each of which must break the rows alone. */
    const char *broken_by;
    const char *because; /* The feature that these settings take away. */
    /* NULL, or why the model does not reproduce the figure. The row must be out of tolerance. */
    const char *not_reproduced;
};

/* -- Results ------------------------------------------------------------------------------------*/

enum lab_bound {
    LAB_RELATIVE, /* |measured - published| <= bound * |published|. */
    LAB_ABSOLUTE, /* |measured - published| <= bound. */
    LAB_RANGE,    /* published <= measured <= upper. */
};

struct lab_row {
    char id[LAB_ID_BYTES]; /* The claim's, and behind a '/' which of its rows, if there are more. */
    char what[LAB_TEXT_BYTES], unit[24];
    uint32_t claim; /* Index in the experiment's claims. */
    double published, upper, measured, bound;
    enum lab_bound kind;
    bool within; /* Within its tolerance. */
};

/* A number that a run measured, and that is compared with nothing. It is no part of the digest, as
 * it follows from what the run's worlds have noted. */
struct lab_reading {
    char name[LAB_ID_BYTES]; /* A column of tables: small letters, digits and '_'. */
    char what[LAB_TEXT_BYTES], unit[24];
    double value; /* LAB_NOTHING: there was nothing to measure. */
};

enum lab_verdict {
    LAB_OK,
    LAB_OUT,
    LAB_NOT_REPRODUCED, /* Out of tolerance, as the claim says, which gives the reason. */
    LAB_UNEXPECTED,     /* Within tolerance, though the claim says that it is not reproduced. */
    LAB_NOT_JUDGED,     /* The run explores: its parameters are not the document's. */
};

/* The curves and marks on one pair of axes. */
struct lab_figure {
    char id[LAB_ID_BYTES]; /* Unique in its experiment; a part of file names. */
    char title[LAB_TEXT_BYTES], x[LAB_TEXT_BYTES], y[LAB_TEXT_BYTES];
    bool log_x;
    bool log_y;     /* If so, all values that are drawn are above 0. */
    bool from_zero; /* The y axis begins at 0, unless it is logarithmic. */
    uint32_t mark_count;
    struct {
        double x, y;  /* x is LAB_NOTHING for a level: a line across. */
        bool printed; /* By the document; else it is a bound, a theory's or a parameter. */
        char text[48];
    } marks[LAB_MARKS_MAX];
};

struct lab_series {
    char name[LAB_TEXT_BYTES];
    uint32_t figure; /* Index of its figure. */
    bool steps;      /* From one point to the next the value stays, and jumps there. */
    uint32_t count;
    struct {
        double x, y, expected; /* `expected` is LAB_NOTHING where nothing is expected. */
    } points[LAB_POINTS_MAX];
};

/* The memory of all parts of one kind, in the largest world of the run. */
struct lab_memory {
    char part[LAB_ID_BYTES]; /* "node", "link". */
    uint64_t count, bytes;   /* The number of the parts, and the memory of all. */
};

/* A network and its traffic, which a run may be given as text (docs/topologies.md). */
enum lab_text_kind {
    LAB_TOPOLOGY,
    LAB_PATTERN,
    LAB_TRAFFIC,
    LAB_TEXTS,
};

struct lab_text {
    const char *name; /* A description, or the path of a file. NULL: nothing was given. */
    const char *text; /* The contents of the file. NULL: `name` is a description. */
    size_t bytes;
};

struct lab_experiment;

struct lab_run {
    const struct lab_experiment *experiment;
    uint64_t seed;
    double values[LAB_PARAMETERS_MAX]; /* The values, by index in the experiment's parameters. */
    bool set[LAB_PARAMETERS_MAX];
    bool used[LAB_PARAMETERS_MAX];    /* The experiment asked for the value of this parameter. */
    bool judged;                      /* Rows are compared with the document. */
    struct lab_text texts[LAB_TEXTS]; /* The caller's, for as long as the run takes. */
    const char *trace_path, *capture_path; /* Files for the first world; NULL: none. */
    /* Called now and then with the progress of the run, 0..1; may be NULL. */
    void (*progress)(const struct lab_run *run, double share);
    struct lab_row rows[LAB_ROWS_MAX];
    struct lab_reading readings[LAB_READINGS_MAX];
    struct lab_figure figures[LAB_FIGURES_MAX];
    struct lab_series series[LAB_SERIES_MAX];
    struct lab_memory memories[LAB_MEMORIES_MAX];
    uint32_t row_count, reading_count, figure_count, series_count, memory_count;
    uint64_t digest, events;
    uint64_t pending; /* The most events that were pending when a world ended. */
    uint32_t worlds;
    double wall_s;
    bool finished; /* lab_execute is through with it. */
    char failure
        [LAB_FAILURE_BYTES]; /* If not empty, the run itself went wrong, and this says how. */
};

struct lab_experiment {
    const char *name;
    const struct lab_document *document;
    const char *what;
    const struct lab_parameter *parameters; /* All of its document's. */
    uint32_t parameter_count;
    /* The names of the parameters on which it depends, with a space between two. NAME=VALUE gives
     * one another value in this experiment. */
    const char *uses;
    const struct lab_claim *claims;
    uint32_t claim_count;
    bool quick; /* A run takes a second or two. */
    /* Fails the run if its texts are wrong. NULL: the experiment takes none. */
    void (*judge_texts)(struct lab_run *run);
    void (*run)(struct lab_run *run);
    const char *explains; /* The facts of the document that the model explains, and those that it
                           * does not. */
};

/* All experiments; the last entry is NULL. */
extern const struct lab_experiment *const lab_experiments[];
const struct lab_experiment *lab_find(const char *name);
const char *lab_nearest_experiment(const char *name);

/* -- Settings -----------------------------------------------------------------------------------*/

/* Whether the experiment depends on the parameter with this index. */
bool lab_uses(const struct lab_experiment *experiment, uint32_t index);
/* The index of a parameter on which the experiment depends; -1, and the nearest name in `nearest`
 * (never NULL). */
int lab_parameter_index(const struct lab_experiment *experiment, const char *name,
                        const char **nearest);
/* Reads a number with or without its unit, or a word. */
bool lab_parse_value(const struct lab_parameter *parameter, const char *text, double *value,
                     char *error, size_t error_bytes);
/* Whether it is in the parameter's range; else why not, with the nearest that is. */
bool lab_judge_value(const struct lab_parameter *parameter, double value, char *error,
                     size_t error_bytes);
/* The value as lab_parse_value reads it, without the unit. */
void lab_value_text(const struct lab_parameter *parameter, double value, char *text, size_t bytes);
/* The valid values: "1..64", or the words. */
void lab_range_text(const struct lab_parameter *parameter, char *text, size_t bytes);

/* A run with the experiment's own values, which is judged. */
void lab_prepare(struct lab_run *run, const struct lab_experiment *experiment, uint64_t seed);
/* "name=value" or "name=valueUNIT". False, and why with the nearest valid name or range. */
bool lab_set(struct lab_run *run, const char *assignment, char *error, size_t error_bytes);
/* Several of them, with a space between two. */
bool lab_set_all(struct lab_run *run, const char *assignments, char *error, size_t error_bytes);
/* The next of a claim's alternatives, for lab_set_all; `left` moves behind it. False: none is left.
 */
bool lab_next_alternative(const char **left, char *settings, size_t bytes);
bool lab_set_value(struct lab_run *run, uint32_t index, double value, char *error,
                   size_t error_bytes);

/* Whether the value was set, by name. */
bool lab_is_set(const struct lab_run *run, const char *name);

/* Runs it. False if the run went wrong, or if it is judged and a row is not as its claim says. */
bool lab_execute(struct lab_run *run);
bool lab_run_good(const struct lab_run *run);

/* -- Rows, as they are read ---------------------------------------------------------------------*/

const struct lab_claim *lab_claim_of(const struct lab_run *run, const struct lab_row *row);
enum lab_verdict lab_verdict_of(const struct lab_run *run, const struct lab_row *row);
const char *lab_verdict_text(enum lab_verdict verdict);
const char *lab_reference_text(enum lab_reference reference);
const char *lab_ground_text(enum lab_ground ground);
/* The row is evidence for the model that owes nothing to it: the document, or another publication,
 * prints the numeral, no parameter was fitted to it or to a row on which it rests, and no formula
 * alone leads from parameters to it. */
bool lab_is_independent(const struct lab_claim *claim);
/* The share of the tolerance that is used up: 0 in its middle, 1 at a bound, more beyond. If there
 * is one bound only, its own size is the measure, and a value far within uses none. */
double lab_tolerance_used(const struct lab_row *row);
/* Prints the bound: "±2 %"; and the figure that it bounds: "287", ">= 0.97", "0.5..0.55". */
void lab_bound_text(const struct lab_row *row, char *text, size_t bytes);
void lab_published_text(const struct lab_row *row, char *text, size_t bytes);

/* -- For experiments ----------------------------------------------------------------------------*/

double lab_value(struct lab_run *run, const char *name);
/* For what experiments share: one that does not depend on the parameter gets its default. */
double lab_value_or_default(struct lab_run *run, const char *name);
/* The value of a parameter in us, as picoseconds. */
uint64_t lab_ps(struct lab_run *run, const char *name);
/* The index of a parameter's word. */
uint32_t lab_word(struct lab_run *run, const char *name);

/* `id` is that of a claim; if the claim has several rows, '/' and a name of the row follow. */
struct lab_row *lab_add_row(struct lab_run *run, const char *id, const char *unit, const char *what,
                            ...) __attribute__((format(printf, 4, 5)));
void lab_judge_relative(struct lab_row *row, double published, double measured, double bound);
void lab_judge_absolute(struct lab_row *row, double published, double measured, double bound);
void lab_judge_range(struct lab_row *row, double least, double most, double measured);

/* `name` is unique in the run. MACHINE/one adds those of lab/reading.h. */
void lab_add_reading(struct lab_run *run, const char *name, const char *unit, double value,
                     const char *what, ...) __attribute__((format(printf, 5, 6)));

/* A figure's y axis is linear and begins at 0 unless `log_y` is set or `from_zero` is cleared. */
struct lab_figure *lab_add_figure(struct lab_run *run, const char *id, const char *title,
                                  const char *x, const char *y, bool log_x);
/* A numeral that the document prints, and no other: a point, or a level if x is LAB_NOTHING. */
void lab_add_mark(struct lab_figure *figure, double x, double y, const char *text);
/* A level to compare with that the document does not print: a theory's, or a parameter. */
void lab_add_level(struct lab_figure *figure, double y, const char *text);
/* A curve of the figure that was added last. */
struct lab_series *lab_add_curve(struct lab_run *run, const char *name, ...)
    __attribute__((format(printf, 2, 3)));
void lab_add_point(struct lab_series *series, double x, double y, double expected);

/* A world has `count` of these parts, which take `bytes` in all, what they point to included. */
void lab_add_memory(struct lab_run *run, const char *part, uint64_t count, uint64_t bytes);

/* A world of the run begins (for the first one trace and capture are opened); a world has ended. */
void lab_world_begin(struct lab_run *run, struct sim *sim, struct sim_trace **trace,
                     struct sim_capture **capture, enum pcapng_link link);
void lab_world_end(struct lab_run *run, struct sim *sim, struct sim_trace *trace,
                   struct sim_capture *capture);
/* Something on which two runs must agree, where no world notes it. */
void lab_note(struct lab_run *run, uint64_t what);
void lab_fail(struct lab_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lab_progress(const struct lab_run *run, double share);

#endif
