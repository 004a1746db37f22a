/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_filter.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"

struct filter {
    const char *file;
    const char *at, *end;
    uint32_t line;
    bool macro;     /* In the text of a `define, which ends with its line. */
    bool prototype; /* Up to the next semicolon: a function that has no body. */
    bool lifetime;  /* The word before was `function` or `task`: static is its own. */
    uint32_t depth; /* Functions and tasks that are open. */
    FILE *out, *told;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool begins(const struct filter *filter, const char *what)
{
    const size_t bytes = strlen(what);
    return (size_t)(filter->end - filter->at) >= bytes && memcmp(filter->at, what, bytes) == 0;
}

/* The text up to `to` goes out as it is. */
static void copy(struct filter *filter, const char *to)
{
    for (const char *at = filter->at; at < to; at++) {
        filter->line += *at == '\n';
    }
    fwrite(filter->at, 1, (size_t)(to - filter->at), filter->out);
    filter->at = to;
}

static const char *end_of_comment(const struct filter *filter)
{
    const char *text = filter->at + 2;
    const bool line = filter->at[1] == '/';
    const char *found =
        memmem(text, (size_t)(filter->end - text), line ? "\n" : "*/", line ? 1 : 2);
    return found == NULL ? filter->end : line ? found : found + 2;
}

static const char *end_of_string(const struct filter *filter)
{
    const char *at = filter->at + 1;
    while (at < filter->end && *at != '"') {
        at += *at == '\\' && at + 1 < filter->end ? 2 : 1;
    }
    return at < filter->end ? at + 1 : filter->end;
}

static const char *end_of_word(const char *at, const char *end)
{
    while (at < end && is_word(*at)) {
        at++;
    }
    return at;
}

static const char *end_of_blanks(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at)) {
        at++;
    }
    return at;
}

/* A time as `1ns` or `1 ns`, behind blanks; NULL: there is none. */
static const char *end_of_time(const char *at, const char *end)
{
    const char *number = end_of_blanks(at, end), *unit = number;
    while (unit < end && isdigit((unsigned char)*unit)) {
        unit++;
    }
    const char *letters = end_of_blanks(unit, end), *behind = end_of_word(letters, end);
    return unit > number && behind > letters ? behind : NULL;
}

/* Behind the word `timescale. Verilator takes the rest of its line for the two times, neither less
 * nor more. In a macro no line can end. */
static void pass_times(struct filter *filter)
{
    const char *end = filter->end, *at = end_of_time(filter->at, end);
    at = at == NULL ? end : end_of_blanks(at, end);
    at = at == end || *at != '/' ? NULL : end_of_time(at + 1, end);
    if (at == NULL || filter->macro) {
        return;
    }
    const uint32_t first = filter->line;
    for (; filter->at < at; filter->at++) {
        const bool line = *filter->at == '\n';
        filter->line += line;
        fputc(line ? ' ' : *filter->at, filter->out);
    }
    while (at < end && *at != '\n' && isspace((unsigned char)*at)) {
        at++;
    }
    for (uint32_t i = first; i < filter->line; i++) {
        fputc('\n', filter->out);
    }
    if (at < end && *at != '\n' && !(*at == '/' && at + 1 < end && at[1] == '/') &&
        filter->line == first) {
        fprintf(filter->out, "\n`line %u \"%s\" 0\n", filter->line, filter->file);
        filter->at = at;
    }
}

static void pass_directive(struct filter *filter)
{
    const char *name = filter->at + 1, *behind = end_of_word(name, filter->end);
    const size_t bytes = (size_t)(behind - name);
    copy(filter, behind > name ? behind : name);
    if (bytes == strlen("define") && memcmp(name, "define", bytes) == 0) {
        filter->macro = true;
    } else if (bytes == strlen("timescale") && memcmp(name, "timescale", bytes) == 0) {
        pass_times(filter);
    }
}

static bool is_one_of(const char *word, const char *const *list)
{
    while (*list != NULL && strcmp(word, *list) != 0) {
        list++;
    }
    return *list != NULL;
}

/* A word in front of a variable of a function is changed. False: it stays. */
static bool change_word(struct filter *filter, const char *word, const char *behind)
{
    const char *next = end_of_blanks(behind, filter->end);
    const bool ref = filter->end - next > 3 && memcmp(next, "ref", 3) == 0 && !is_word(next[3]);
    if (filter->depth == 0 || filter->lifetime) {
        return false;
    }
    if (strcmp(word, "const") == 0 && !ref) {
        fprintf(filter->out, "     ");
        return true;
    }
    if (strcmp(word, "static") == 0) {
        fprintf(filter->out, "automatic");
        fprintf(filter->told,
                "%s:%u: warning: 'static' in a function is made 'automatic': the variable begins "
                "anew with each call\n",
                filter->file, filter->line);
        return true;
    }
    return false;
}

static void pass_word(struct filter *filter)
{
    static const char *const no_body[] = {"import", "export", "extern", "pure", "with", NULL};
    static const char *const opens[] = {"function", "task", NULL};
    static const char *const closes[] = {"endfunction", "endtask", NULL};
    const char *behind = end_of_word(filter->at, filter->end);
    const size_t bytes = (size_t)(behind - filter->at);
    char word[16];
    snprintf(word, sizeof(word), "%.*s", bytes < sizeof(word) ? (int)bytes : 0, filter->at);
    if (change_word(filter, word, behind)) {
        filter->at = behind;
        return;
    }
    filter->lifetime = false;
    if (is_one_of(word, no_body)) {
        filter->prototype = true;
    } else if (is_one_of(word, opens) && !filter->prototype) {
        filter->depth++;
        filter->lifetime = true;
    } else if (is_one_of(word, closes) && filter->depth > 0) {
        filter->depth--;
    }
    copy(filter, behind);
}

static void pass_other(struct filter *filter)
{
    const char c = *filter->at;
    filter->prototype = filter->prototype && c != ';';
    filter->macro = filter->macro && c != '\n';
    copy(filter, filter->at + 1);
}

/* An escaped name ends with a blank. The same sign ends a line that goes on in the next one. */
static void pass_backslash(struct filter *filter)
{
    const char *at = filter->at + 1;
    if (begins(filter, "\\\r\n")) {
        at += 2;
    } else if (begins(filter, "\\\n")) {
        at += 1;
    } else {
        while (at < filter->end && !isspace((unsigned char)*at)) {
            at++;
        }
    }
    copy(filter, at);
}

void hdl_filter(const char *file, const char *text, size_t bytes, FILE *out, FILE *told)
{
    struct filter filter = {
        .file = file, .at = text, .end = text + bytes, .line = 1, .out = out, .told = told};
    while (filter.at < filter.end) {
        if (begins(&filter, "//") || begins(&filter, "/*")) {
            copy(&filter, end_of_comment(&filter));
        } else if (*filter.at == '"') {
            copy(&filter, end_of_string(&filter));
        } else if (*filter.at == '\\') {
            pass_backslash(&filter);
        } else if (*filter.at == '`') {
            pass_directive(&filter);
        } else if (is_word(*filter.at)) {
            pass_word(&filter);
        } else {
            pass_other(&filter);
        }
    }
}

static const struct {
    const char *says, *remedy;
} remedies[] = {
    {"`timescale time", "nothing may follow `timescale in its line; --filter ends the line there"},
    {"Unsupported: 'static' function/task variables",
     "this Verilator knows no static variables in functions; --filter makes them automatic"},
    {"Assigning to const variable", "this Verilator does not initialize a const variable of a "
                                    "function; --filter leaves const out"},
    {"No value found for node",
     "a const variable of a function that is evaluated here; --filter leaves const out"},
    {"can't determine constant for FUNCREF",
     "this Verilator evaluates no function with static variables (--filter makes them automatic), "
     "nor with unpacked arrays of two dimensions; make such an array packed"},
    {"Verilator internal fault",
     "constant functions whose value is '{...} are one cause; assign the elements one by one"},
    {"non-complex non-double",
     "this Verilator has no parameters or values of functions that are arrays of real; give an "
     "array of integers"},
    {"Assignment pattern missed initializing elements",
     "this Verilator makes no unpacked array of {SLICE, ELEMENT}; make the array packed"},
    {"Cannot find file containing module: 'xpm_",
     "nonic has a stand-in for some of Xilinx' modules (docs/hdl.md), not for this one"},
};

/* The begin of FILE:LINE:COLUMN: in an error; its end is behind the line. NULL: it has none. */
static const char *place_of(const char *message, size_t *bytes)
{
    const char *at = strstr(message, ": ");
    at = at == NULL ? "" : at + 2;
    if (strncmp(at, "Internal Error: ", 16) == 0) {
        at += 16;
    }
    const char *colon = strchr(at, ':');
    if (colon == NULL || !isdigit((unsigned char)colon[1])) {
        return NULL;
    }
    *bytes = (size_t)(colon - at) + 1 + strspn(colon + 1, "0123456789");
    return at;
}

void hdl_remedy(const char *message, FILE *told)
{
    if (strncmp(message, "%Error", 6) != 0) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(remedies); i++) {
        if (strstr(message, remedies[i].says) != NULL) {
            size_t bytes = 0;
            const char *place = place_of(message, &bytes);
            fprintf(told, "nonic: %.*s%s%s\n", (int)bytes, place != NULL ? place : "",
                    place != NULL ? ": " : "", remedies[i].remedy);
            return;
        }
    }
}
