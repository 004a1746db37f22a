/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fault_words - how faults are written: words such as "drop=0.01,delay=50us:0.01".
 *
 * Purpose    One reading of words, probabilities and times, whoever makes the faults.
 * Inputs     A user's text. A probability is 0 to 1; a time has a unit: ns, us, ms or s.
 * Errors     False: it is not understood, and nothing else is known of the outputs.
 */
#ifndef DRIVERS_FAULT_WORDS_H
#define DRIVERS_FAULT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: it does not know the word, or the value is wrong. */
typedef bool (*fault_word)(void *owner, const char *word, const char *value);

/* Gives one word=value after the other. False: one is not understood, and `error` quotes it and
 * says what is `valid`. */
bool fault_words_read(const char *text, fault_word take, void *owner, const char *valid,
                      char *error, size_t error_bytes);

bool fault_probability(const char *text, uint32_t *millionths);
/* A time of less than 11 days; *end is behind its unit. */
bool fault_time(const char *text, const char **end, uint64_t *ns);

#endif
