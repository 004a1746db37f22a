/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_internal - functions that the files of shm share.
 *
 * Purpose    Queues of rows, and the steps from one file to the next.
 * Inputs     -
 * Outputs    -
 * Ownership  The state is struct lant_shm.
 * Units      Those of shm.h.
 * Limits     For transport/lant/shm*.c only.
 * Source     Lant 5.2.2, 6.1.
 */
#ifndef TRANSPORT_LANT_SHM_INTERNAL_H
#define TRANSPORT_LANT_SHM_INTERNAL_H

#include "transport/lant/shm.h"

/* Two accesses with the same one are kept in order. */
static inline uint64_t lant_shm_granule(const struct lant_shm_request *request)
{
    return request->address >> 3;
}

/* The lowest `count` bits: those of all rows, or of the whole list. */
static inline uint64_t lant_shm_bits(uint32_t count)
{
    return count == 0 ? 0 : UINT64_MAX >> (64 - count);
}

/* -- Queues of rows -----------------------------------------------------------------------------*/

static inline void lant_shm_queue_append(struct lant_shm_queue *queue, uint32_t row)
{
    CHECK(queue->count < LANT_SHM_ROWS_MAX);
    queue->rows[(queue->first + queue->count) % LANT_SHM_ROWS_MAX] = (uint8_t)row;
    queue->count++;
}

static inline uint32_t lant_shm_queue_pop(struct lant_shm_queue *queue)
{
    CHECK(queue->count > 0);
    const uint32_t row = queue->rows[queue->first];
    queue->first = (uint8_t)((queue->first + 1u) % LANT_SHM_ROWS_MAX);
    queue->count--;
    return row;
}

/* Takes the row out of its queue. */
static inline void lant_shm_queue_remove(struct lant_shm_queue *queue, uint32_t row)
{
    const uint32_t count = queue->count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t each = lant_shm_queue_pop(queue);
        if (each != row) {
            lant_shm_queue_append(queue, each);
        }
    }
    CHECK(queue->count + 1u == count);
}

/* -- Rows (shm.c) -------------------------------------------------------------------------------*/

/* The reason why a request gets no row now; LANT_SHM_ISSUED: none. */
enum lant_shm_verdict lant_shm_room(const struct lant_shm *shm,
                                    const struct lant_shm_request *request, uint64_t now);
/* Gives the request a row; there is room. Returns the row. */
uint32_t lant_shm_issue(struct lant_shm *shm, const struct lant_shm_request *request, uint64_t now);
/* A row that uses this granule, or LANT_SHM_ROWS_MAX. */
uint32_t lant_shm_find(const struct lant_shm *shm, uint64_t granule);
/* For a row: the event of its request. */
void lant_shm_put_done(struct lant_shm *shm, const struct lant_shm_row *row,
                       enum lant_shm_done_kind kind, enum lant_response response, uint64_t data);
/* Gives the timers of the bank that are free to the stores that wait for one. */
void lant_shm_grant_early(struct lant_shm *shm);

/* -- The pending list (shm_pending.c) -----------------------------------------------------------*/

bool lant_shm_pending_has(const struct lant_shm *shm, uint64_t granule);
void lant_shm_pending_add(struct lant_shm *shm, const struct lant_shm_request *request);
/* No row uses the granule any more: the oldest that waits for it is ready. */
void lant_shm_pending_release(struct lant_shm *shm, uint64_t granule);
/* Issues those that are ready, the oldest first, while there is room. */
void lant_shm_pending_issue(struct lant_shm *shm, uint64_t now);

/* -- Fences (shm_fence.c) -----------------------------------------------------------------------*/

void lant_shm_fences_on_issue(struct lant_shm *shm, uint32_t element, uint32_t row);
void lant_shm_fences_on_done(struct lant_shm *shm, uint32_t row, bool failed);

#endif
