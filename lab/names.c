/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/names.h"

#include <string.h>

#include "base/check.h"

size_t names_distance(const char *a, const char *b)
{
    enum {
        NAME_MAX_BYTES = 64
    };
    size_t row[NAME_MAX_BYTES + 1];
    const size_t columns = strnlen(b, NAME_MAX_BYTES);
    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i] != '\0' && i < NAME_MAX_BYTES; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            const size_t changed = diagonal + (a[i] != b[j]);
            const size_t shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = changed < shorter ? changed : shorter;
        }
    }
    return row[columns];
}

bool names_next(const char **list, char *word, size_t bytes)
{
    const char *at = *list + strspn(*list, " ");
    const size_t length = strcspn(at, " ");
    *list = at + length;
    if (length == 0) {
        return false;
    }
    CHECK(length < bytes);
    memcpy(word, at, length);
    word[length] = '\0';
    return true;
}
