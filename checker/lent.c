/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lent - the memory of requests that are not polled: the NIC's, and not the program's to free.
 *
 * A program frees memory far more often than it polls, and nearly never the NIC's. So lent segments
 * are counted by page, and requests are looked through only if a page of the freed bytes counts.
 */
#include "checker/internal.h"

enum {
    PAGE_BITS = 12,
};

/* The first page of a segment, and how many there are; no more than there are counters. */
static uint64_t pages_of(uint64_t address, uint64_t bytes, uint64_t *first)
{
    *first = address >> PAGE_BITS;
    const uint64_t pages = bytes == 0 ? 0 : ((address + bytes - 1) >> PAGE_BITS) - *first + 1;
    return pages < LENT_PAGES ? pages : LENT_PAGES;
}

/* One thread at a time writes, and others read. */
static void count_pages(struct checker *checker, const struct posted *posted, unsigned change)
{
    for (uint32_t i = 0; i < posted->sge_count; i++) {
        uint64_t first;
        const uint64_t pages =
            pages_of(posted->segments[i].address, posted->segments[i].bytes, &first);
        for (uint64_t at = first; at < first + pages; at++) {
            atomic_uint *count = &checker->lent[at % LENT_PAGES];
            const unsigned before = atomic_load_explicit(count, memory_order_relaxed);
            atomic_store_explicit(count, before + change, memory_order_relaxed);
        }
    }
}

bool checker_may_be_lent(const struct checker *checker, uint64_t address, uint64_t bytes)
{
    uint64_t first;
    const uint64_t pages = pages_of(address, bytes, &first);
    for (uint64_t at = first; at < first + pages; at++) {
        if (atomic_load_explicit(&checker->lent[at % LENT_PAGES], memory_order_relaxed) != 0) {
            return true;
        }
    }
    return false;
}

static void lend_as(struct checker *checker, const void *queue, uint32_t number,
                    struct posted *posted, bool receives)
{
    posted->lent = true;
    count_pages(checker, posted, 1);
    if (checker->memory->lend != NULL) {
        checker->memory->lend(&(struct checker_lent){.slot = posted,
                                                     .queue = queue,
                                                     .qpn = number,
                                                     .receives = receives,
                                                     .writes = receives || brings_data(posted),
                                                     .segments = posted->segments,
                                                     .count = posted->sge_count,
                                                     .place = posted->place});
    }
}

void lend(struct checker *checker, const void *queue, uint32_t number, struct posted *posted,
          bool receives)
{
    if (posted->sge_count == 0) {
        return;
    }
    for (uint32_t i = 0; checker->memory->on_stack != NULL && i < posted->sge_count; i++) {
        if (checker->memory->on_stack(&posted->segments[i], &posted->frame)) {
            break;
        }
    }
    lend_as(checker, queue, number, posted, receives);
}

void take_from_nic(const struct checker *checker, const struct posted *posted)
{
    if (posted->lent && checker->memory->give_back != NULL) {
        checker->memory->give_back(posted);
    }
}

void give_back(struct checker *checker, struct posted *posted)
{
    take_from_nic(checker, posted);
    if (posted->lent) {
        posted->lent = false;
        count_pages(checker, posted, -1u);
    }
}

void lend_moved(struct checker *checker, const void *queue, uint32_t number, struct posted *from,
                struct posted *to)
{
    const bool lent = from->lent;
    give_back(checker, from);
    if (lent) {
        lend_as(checker, queue, number, to, true);
    }
}

/* -- Freeing ------------------------------------------------------------------------------------*/

static void free_of(struct ring *ring, uint64_t address, uint64_t bytes, uint32_t place)
{
    for (uint32_t at = ring->head; at != ring->tail; at++) {
        struct posted *posted = ring_at(ring, at);
        for (uint32_t i = 0; i < posted->sge_count && posted->lent && !posted->freed; i++) {
            const struct segment *segment = &posted->segments[i];
            if (segment->address < address + bytes && address < segment->address + segment->bytes) {
                posted->freed = true;
                posted->freed_place = place;
            }
        }
    }
}

/* A queue pair that failed touches its memory no more. */
void checker_freed(struct checker *checker, uint64_t address, uint64_t bytes, uint32_t place)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct object *object = checker->buckets[i]; object != NULL; object = object->next) {
            if (object->kind == OBJECT_QP) {
                struct checked_qp *qp = (struct checked_qp *)(void *)object;
                if (!qp->failed) {
                    free_of(&qp->sends, address, bytes, place);
                    free_of(&qp->receives, address, bytes, place);
                }
            } else if (object->kind == OBJECT_SRQ) {
                free_of(&((struct checked_srq *)(void *)object)->receives, address, bytes, place);
            }
        }
    }
}
