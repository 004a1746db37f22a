/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/fault_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static bool parse_number(const char *text, const char **end, double *value)
{
    char *after;
    errno = 0;
    *value = strtod(text, &after);
    *end = after;
    return after != text && errno == 0;
}

bool fault_probability(const char *text, uint32_t *millionths)
{
    const char *end;
    double value;
    if (!parse_number(text, &end, &value) || *end != '\0' || !(value >= 0 && value <= 1)) {
        return false;
    }
    *millionths = (uint32_t)(value * 1e6 + 0.5);
    return true;
}

bool fault_time(const char *text, const char **end, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double value;
    if (!parse_number(text, end, &value) || !(value >= 0 && value < 1e6)) {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        const size_t length = strlen(units[i].unit);
        if (strncmp(*end, units[i].unit, length) == 0) {
            *ns = (uint64_t)(value * units[i].ns);
            *end += length;
            return true;
        }
    }
    return false;
}

bool fault_words_read(const char *text, fault_word take, void *owner, const char *valid,
                      char *error, size_t error_bytes)
{
    char copy[1024];
    if (strlen(text) >= sizeof(copy)) {
        snprintf(error, error_bytes, "fault specification is too long");
        return false;
    }
    strcpy(copy, text);
    char *rest = copy;
    char *word;
    while ((word = strsep(&rest, ",")) != NULL) {
        char *value = strchr(word, '=');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (value == NULL || !take(owner, word, value)) {
            snprintf(error, error_bytes, "fault '%s%s%s' is not understood; valid: %s", word,
                     value == NULL ? "" : "=", value == NULL ? "" : value, valid);
            return false;
        }
    }
    return true;
}
