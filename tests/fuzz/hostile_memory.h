/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hostile_memory - memory that another process changes between one of our reads and the next.
 *
 * What reads it is compiled so that each of its loads calls us first (-fsanitize-coverage=
 * trace-loads), and its copies go by way of us (-Wl,--wrap=__asan_memcpy). Changes wait for a
 * number of reads; so what happens is decided by the fuzzer's input alone, as with no second
 * thread.
 */
#ifndef TESTS_FUZZ_HOSTILE_MEMORY_H
#define TESTS_FUZZ_HOSTILE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/input.h"

#define HOSTILE_WRITE_BYTES_MAX 8

/* From now on `memory`, which is zeros, is watched, and no change waits. */
void hostile_begin(void *memory, size_t bytes);
/* Nobody looks at it any more: it is zeros again, where it was written by the calls below or told
 * of by hostile_note. */
void hostile_end(void);

/* Written at once by the other process. What leads out of the memory is cut off. */
void hostile_write(size_t offset, const void *from, size_t bytes);
/* Written by ourselves. */
void hostile_note(size_t offset, size_t bytes);
/* Changes 1 to HOSTILE_WRITE_BYTES_MAX bytes, which the input tells, when so many reads more have
 * been made. */
void hostile_plan(size_t offset, uint32_t reads, struct input *input);

/* How often the byte there has been read since hostile_count. Only the first
 * HOSTILE_COUNTED_BYTES_MAX behind `offset` are counted. */
#define HOSTILE_COUNTED_BYTES_MAX 4096
void hostile_count(size_t offset);
uint32_t hostile_reads_of(size_t offset);
uint32_t hostile_changes(void);

#endif
