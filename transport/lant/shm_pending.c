/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm.h"
#include "transport/lant/shm_internal.h"

/* An element is ready when no row uses its address, and no older element wants it: the one that
 * was before it has just left its row. So at most one of each address is. */

bool lant_shm_pending_has(const struct lant_shm *shm, uint64_t granule)
{
    for (uint64_t left = shm->listed; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        if (lant_shm_granule(&shm->pending[i].request) == granule) {
            return true;
        }
    }
    return false;
}

void lant_shm_pending_add(struct lant_shm *shm, const struct lant_shm_request *request)
{
    const uint32_t i = (uint32_t)__builtin_ctzll(~shm->listed);
    CHECK(i < shm->config.pending);
    shm->listed |= UINT64_C(1) << i;
    shm->pending[i] = (struct lant_shm_pending){.request = *request, .ticket = shm->tickets};
    shm->tickets++;
}

void lant_shm_pending_release(struct lant_shm *shm, uint64_t granule)
{
    uint64_t oldest = UINT64_MAX;
    uint32_t found = 0;
    for (uint64_t left = shm->listed; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        const struct lant_shm_pending *element = &shm->pending[i];
        if (lant_shm_granule(&element->request) == granule && element->ticket < oldest) {
            oldest = element->ticket;
            found = i;
        }
    }
    if (oldest != UINT64_MAX) {
        shm->ready |= UINT64_C(1) << found;
    }
}

static uint32_t oldest_ready(const struct lant_shm *shm)
{
    uint32_t oldest = (uint32_t)__builtin_ctzll(shm->ready);
    for (uint64_t left = shm->ready; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        if (shm->pending[i].ticket < shm->pending[oldest].ticket) {
            oldest = i;
        }
    }
    return oldest;
}

void lant_shm_pending_issue(struct lant_shm *shm, uint64_t now)
{
    while (shm->ready != 0) {
        const uint32_t i = oldest_ready(shm);
        if (lant_shm_room(shm, &shm->pending[i].request, now) != LANT_SHM_ISSUED) {
            return;
        }
        const uint64_t bit = UINT64_C(1) << i;
        shm->listed &= ~bit;
        shm->ready &= ~bit;
        lant_shm_fences_on_issue(shm, i, lant_shm_issue(shm, &shm->pending[i].request, now));
    }
}
