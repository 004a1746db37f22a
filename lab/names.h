/* SPDX-License-Identifier: BSD-2-Clause
 *
 * names - words in lists that are separated by spaces, and the nearest valid name to a wrong one.
 */
#ifndef LAB_NAMES_H
#define LAB_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Levenshtein's distance of two names. Only their first 64 bytes count. */
size_t names_distance(const char *a, const char *b);

/* Copies the next word of *list to `word` and moves *list behind it. False: none. Aborts
 * if a word is too long: lists are our own. */
bool names_next(const char **list, char *word, size_t bytes);

#endif
