/* SPDX-License-Identifier: BSD-2-Clause
 *
 * check_words - the wishes of `nonic run --check=WORDS`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/check.h"

static bool leave_out(struct check_wishes *wishes, const char *name)
{
    for (int i = 0; i < CHECKER_RULE_COUNT; i++) {
        if (strcmp(checker_rules[i].name, name) == 0) {
            wishes->left_out[i] = true;
            return true;
        }
    }
    fprintf(stderr, "nonic: --check: there is no rule '%s'; the rules are", name);
    for (int i = 0; i < CHECKER_RULE_COUNT; i++) {
        fprintf(stderr, "%s %s", i == 0 ? "" : ",", checker_rules[i].name);
    }
    fprintf(stderr, "\n");
    return false;
}

/* RULE:PATTERN on each line; empty lines and those that begin with # say nothing. */
static bool read_exceptions(struct check_wishes *wishes, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    if (file == NULL) {
        fprintf(stderr, "nonic: --check: cannot read %s: %s\n", path, strerror(errno));
        return false;
    }
    while (good && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#') {
            continue;
        }
        char **more = realloc(wishes->exceptions, (wishes->exception_count + 1) * sizeof(*more));
        good = more != NULL && strchr(line, ':') != NULL;
        if (more != NULL) {
            wishes->exceptions = more;
            more[wishes->exception_count++] = strdup(line);
        }
        if (!good) {
            fprintf(stderr,
                    "nonic: --check: '%s' in %s is not RULE:FUNCTION, RULE:FILE or "
                    "RULE:LIBRARY\n",
                    line, path);
        }
    }
    free(line);
    fclose(file);
    return good;
}

static bool read_word(struct check_wishes *wishes, const char *word)
{
    if (strcmp(word, "all") == 0) {
        wishes->advice = true;
    } else if (strcmp(word, "json") == 0) {
        wishes->json = true;
    } else if (strncmp(word, "except=", 7) == 0) {
        return read_exceptions(wishes, word + 7);
    } else if (word[0] == '-') {
        return leave_out(wishes, word + 1);
    } else if (word[0] != '\0') {
        fprintf(stderr,
                "nonic: --check is '%s'; valid are all, json, -RULE and except=FILE, with "
                "commas between them\n",
                word);
        return false;
    }
    return true;
}

bool check_read_wishes(const char *words, struct check_wishes *wishes)
{
    char *copy = strdup(words), *rest = copy, *word;
    bool good = copy != NULL;
    while (good && (word = strsep(&rest, ",")) != NULL) {
        good = read_word(wishes, word);
    }
    free(copy);
    return good;
}
