/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_words - commands of simulators, which `nonic hdl build` prints and runs.
 */
#ifndef TOOLS_HDL_WORDS_H
#define TOOLS_HDL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#define HDL_WORDS_MAX 512

/* The words belong to the caller. A NULL follows them. */
struct hdl_words {
    const char *list[HDL_WORDS_MAX + 1];
    uint32_t count;
};

/* Too many words end the process. */
void hdl_words_add(struct hdl_words *words, const char *word);
/* On stderr, as a person may repeat them in a shell. */
void hdl_words_print(const struct hdl_words *words);
/* Runs the command, and returns its status. If `explained`, its messages are passed on with the
 * remedies that are known (hdl_filter.h). */
int hdl_words_run(const struct hdl_words *words, bool explained);

#endif
