/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm.h"
#include "transport/lant/shm_internal.h"

/* How many rows are in each state. */
struct tally {
    uint32_t states[LANT_SHM_ROW_SENT + 1];
    uint32_t early[LANT_SHM_EARLY_GRANTED + 1];
    uint32_t owed;
};

static void check_row(const struct lant_shm *shm, uint32_t i)
{
    const struct lant_shm_row *row = &shm->rows[i];
    const bool sent_once = row->attempt > 0 || row->state == LANT_SHM_ROW_SENT;
    CHECK(row->state != LANT_SHM_ROW_FREE && row->state <= LANT_SHM_ROW_SENT);
    CHECK(row->attempt <= shm->config.retries);
    CHECK(row->state != LANT_SHM_ROW_NEW || row->attempt == 0);
    CHECK(row->state != LANT_SHM_ROW_RESEND || row->attempt > 0);
    CHECK(row->early == LANT_SHM_EARLY_NEVER || (row->request.store && !row->request.lock));
    CHECK(row->early < LANT_SHM_EARLY_WAITS || sent_once);
    CHECK(row->early != LANT_SHM_EARLY_NOT_YET || !sent_once);
    CHECK(lant_shm_find(shm, lant_shm_granule(&row->request)) == i);
}

static struct tally tally_rows(const struct lant_shm *shm)
{
    struct tally tally = {0};
    for (uint64_t left = shm->busy; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        const uint32_t early = shm->rows[i].early;
        check_row(shm, i);
        tally.states[shm->rows[i].state]++;
        tally.early[early]++;
        tally.owed += early == LANT_SHM_EARLY_NOT_YET || early == LANT_SHM_EARLY_WAITS ? 2 : 1;
    }
    return tally;
}

/* An element is ready exactly if nothing older has its address. */
static void check_pending(const struct lant_shm *shm, uint32_t i)
{
    const struct lant_shm_pending *element = &shm->pending[i];
    const uint64_t granule = lant_shm_granule(&element->request);
    bool first = lant_shm_find(shm, granule) == LANT_SHM_ROWS_MAX;
    CHECK(element->ticket < shm->tickets);
    for (uint64_t left = shm->listed & ~(UINT64_C(1) << i); left != 0; left &= left - 1) {
        const struct lant_shm_pending *other = &shm->pending[__builtin_ctzll(left)];
        CHECK(other->ticket != element->ticket);
        first = first &&
                (lant_shm_granule(&other->request) != granule || other->ticket > element->ticket);
    }
    CHECK(first == (shm->ready >> i & 1));
}

void lant_shm_check(const struct lant_shm *shm)
{
    const struct tally tally = tally_rows(shm);
    CHECK((shm->busy & ~lant_shm_bits(shm->config.rows)) == 0);
    CHECK((shm->listed & ~lant_shm_bits(shm->config.pending)) == 0);
    CHECK((shm->ready & ~shm->listed) == 0);
    CHECK(shm->queues[LANT_SHM_RESENDS].count == tally.states[LANT_SHM_ROW_RESEND]);
    CHECK((uint32_t)shm->queues[LANT_SHM_LOADS].count + shm->queues[LANT_SHM_STORES].count ==
          tally.states[LANT_SHM_ROW_NEW]);
    CHECK(shm->early_used == tally.early[LANT_SHM_EARLY_GRANTED]);
    CHECK(shm->early_used <= shm->config.early_timers);
    CHECK(shm->early_queue.count == tally.early[LANT_SHM_EARLY_WAITS]);
    CHECK(shm->early_queue.count == 0 || shm->early_used == shm->config.early_timers);
    CHECK(shm->done_owed == tally.owed);
    CHECK((uint32_t)shm->done_count + shm->done_owed <= LANT_SHM_DONE_MAX);
    /* All elements would be too many pairs; which one it is changes as packets come and go. */
    const uint64_t any =
        (shm->counters.packets * 5 + shm->counters.requests) % LANT_SHM_PENDING_MAX;
    if (shm->listed >> any & 1) {
        check_pending(shm, (uint32_t)any);
    }
    for (uint64_t left = shm->fenced; left != 0; left &= left - 1) {
        const struct lant_shm_fence *fence = &shm->fences[__builtin_ctzll(left)];
        CHECK((fence->rows & ~shm->busy) == 0 && (fence->pending & ~shm->listed) == 0);
    }
}
