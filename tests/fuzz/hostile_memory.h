/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hostile_memory - memory that another process changes between one of our reads and the next.
 *
 * The code that reads it is compiled so that each of its loads calls us first (-fsanitize-coverage=
 * trace-loads), and its copies go by way of us (-Wl,--wrap=__asan_memcpy). Changes wait for a
 * number of reads. So the fuzzer's input alone decides about all events, as it could not with a
 * second thread.
 */
#ifndef TESTS_FUZZ_HOSTILE_MEMORY_H
#define TESTS_FUZZ_HOSTILE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/input.h"

#define HOSTILE_WRITE_BYTES_MAX 8

/* From now on `memory`, which is zeros, is watched, and no change waits. */
void hostile_begin(void *memory, size_t bytes);
/* Nobody looks at the memory any more. It is zeros again, in all places that the calls below wrote
 * or hostile_note named. */
void hostile_end(void);

/* The other process writes at once. Bytes beyond the memory are cut off. */
void hostile_write(size_t offset, const void *from, size_t bytes);
/* We have written here ourselves. */
void hostile_note(size_t offset, size_t bytes);
/* Changes 1 to HOSTILE_WRITE_BYTES_MAX bytes, which the input gives, after `reads` more reads. */
void hostile_plan(size_t offset, uint32_t reads, struct input *input);

/* The number of reads of the byte at `offset` since hostile_count. Only the first
 * HOSTILE_COUNTED_BYTES_MAX bytes from `offset` on are counted. */
#define HOSTILE_COUNTED_BYTES_MAX 4096
void hostile_count(size_t offset);
uint32_t hostile_reads_of(size_t offset);
uint32_t hostile_changes(void);

#endif
