/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blocks - memory for objects that a program may have very many of, all of one size.
 *
 * A hundred thousand queue pairs one by one on the heap cost a page-table walk each time one is
 * touched. From the second few on, blocks of a size share chunks of 2 MB, which the kernel backs
 * with one page each where it can. Of chunks without blocks all but one go back to it. Any thread.
 */
#ifndef VERBS_BLOCKS_H
#define VERBS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed, aligned to 64 bytes; NULL: no memory. *shared is to be remembered. */
void *blocks_take(size_t bytes, bool *shared);
/* `bytes` and `shared` as it was taken with. */
void blocks_give(void *block, size_t bytes, bool shared);

/* In a child of fork: the threads that were in here do not exist. */
void blocks_in_child(void);

#endif
