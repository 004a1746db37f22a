/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_words - what options of `nonic repeat` and `nonic replay` have for values.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/repeat.h"

bool parse_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 6e10}};
    char *end;
    const double number = strtod(text, &end);
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (end != text && number > 0 && number * units[i].ns < 1e18 &&
            strcmp(end, units[i].unit) == 0) {
            *ns = (uint64_t)(number * units[i].ns);
            return true;
        }
    }
    return false;
}

bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0;
}

bool parse_range(const char *text, uint64_t *first, uint64_t *last)
{
    char part[64];
    const char *dots = strstr(text, "..");
    if (dots == NULL || (size_t)(dots - text) >= sizeof(part)) {
        return false;
    }
    snprintf(part, sizeof(part), "%.*s", (int)(dots - text), text);
    return parse_number(part, first) && parse_number(dots + 2, last) && *first <= *last;
}

static bool has_word(const char *words, const char *word)
{
    const char *found = words == NULL ? NULL : strstr(words, word);
    return found != NULL;
}

bool parse_without(struct repeat *repeat, const char *words)
{
    for (const char *word = words; *word != '\0';
         word += strcspn(word, ","), word += *word == ',') {
        const size_t bytes = strcspn(word, ",");
        const bool is_known = (bytes == 6 && strncmp(word, "jitter", 6) == 0) ||
                              (bytes == 4 && strncmp(word, "hold", 4) == 0) ||
                              (bytes == 4 && strncmp(word, "ties", 4) == 0);
        if (!is_known) {
            return false;
        }
    }
    repeat->box.jitter = has_word(words, "jitter") ? 0 : repeat->box.jitter;
    repeat->box.hold_ns = has_word(words, "hold") ? 0 : repeat->box.hold_ns;
    repeat->box.no_ties = has_word(words, "ties");
    return true;
}

bool parse_holds(struct repeat *repeat, const char *text)
{
    uint64_t *holds = calloc(strlen(text) + 1, sizeof(*holds));
    CHECK(holds != NULL);
    repeat->box.holds = holds;
    repeat->box.hold_count = 0;
    repeat->box.tell_holds = true;
    for (int bytes; text[0] != '\0'; text += bytes + (text[bytes] == ',')) {
        uint32_t thread, count;
        bytes = 0;
        if (sscanf(text, "%" SCNu32 ".%" SCNu32 "%n", &thread, &count, &bytes) != 2 ||
            (text[bytes] != ',' && text[bytes] != '\0')) {
            return false;
        }
        holds[repeat->box.hold_count++] = box_hold(thread, count);
    }
    return repeat->box.hold_count > 0;
}
