/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_sources - the places of documents that sources name, for tests.
 */
#ifndef LAB_TEST_SOURCES_H
#define LAB_TEST_SOURCES_H

#include <stdio.h>
#include <string.h>

#include "lab/lab.h"

/* The word with which a place begins: up to a space or the mark behind which words follow. */
static size_t first_word(const char *place)
{
    return strcspn(place, " ,:;()");
}

static bool is_word_of(const char *list, const char *word, size_t bytes)
{
    for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (length == bytes && memcmp(at, word, bytes) == 0) {
            return true;
        }
        at += length;
    }
    return false;
}

static bool is_name_of(const char *const *others, const char *word, size_t bytes)
{
    for (; others != NULL && *others != NULL; others++) {
        if (strcspn(*others, ":") == bytes && memcmp(*others, word, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether each place of a source is one of the document's, or one of the others. If not, the first
 * that is not is copied to `wrong`. */
static bool source_is_known(const struct lab_document *document, const char *source, char *wrong,
                            size_t bytes)
{
    while (true) {
        const size_t length = first_word(source);
        if (!is_word_of("OC", source, length) && !is_word_of(document->sections, source, length) &&
            !is_name_of(document->others, source, length)) {
            snprintf(wrong, bytes, "%.*s", (int)strcspn(source, ";"), source);
            return false;
        }
        const char *next = strstr(source, "; ");
        if (next == NULL) {
            return true;
        }
        source = next + 2;
    }
}

#endif
