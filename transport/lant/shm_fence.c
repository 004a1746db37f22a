/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm.h"
#include "transport/lant/shm_internal.h"

static bool covers(const struct lant_shm_request *request, uint32_t node)
{
    return request->store && (node == LANT_ALL_NODES || lant_global_node(request->address) == node);
}

uint32_t lant_shm_fence_begin(struct lant_shm *shm, uint32_t node)
{
    struct lant_shm_fence fence = {0};
    if (shm->fenced == UINT64_MAX) {
        return LANT_SHM_NO_FENCES;
    }
    INVARIANTS(lant_shm_check(shm));
    for (uint64_t left = shm->busy; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        fence.rows |= (uint64_t)covers(&shm->rows[i].request, node) << i;
    }
    for (uint64_t left = shm->listed; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        fence.pending |= (uint64_t)covers(&shm->pending[i].request, node) << i;
    }
    const uint32_t number = (uint32_t)__builtin_ctzll(~shm->fenced);
    shm->fenced |= UINT64_C(1) << number;
    shm->fences[number] = fence;
    INVARIANTS(lant_shm_check(shm));
    return number;
}

enum lant_shm_fence_state lant_shm_fence_look(const struct lant_shm *shm, uint32_t fence)
{
    CHECK(fence < LANT_SHM_FENCES_MAX && shm->fenced >> fence & 1);
    if ((shm->fences[fence].rows | shm->fences[fence].pending) != 0) {
        return LANT_SHM_FENCE_WAITS;
    }
    return shm->fences[fence].failed ? LANT_SHM_FENCE_FAILED : LANT_SHM_FENCE_PASSED;
}

void lant_shm_fence_end(struct lant_shm *shm, uint32_t fence)
{
    CHECK(fence < LANT_SHM_FENCES_MAX && shm->fenced >> fence & 1);
    shm->fenced &= ~(UINT64_C(1) << fence);
    INVARIANTS(lant_shm_check(shm));
}

/* -- Events of rows -----------------------------------------------------------------------------*/

void lant_shm_fences_on_issue(struct lant_shm *shm, uint32_t element, uint32_t row)
{
    for (uint64_t left = shm->fenced; left != 0; left &= left - 1) {
        struct lant_shm_fence *fence = &shm->fences[__builtin_ctzll(left)];
        fence->rows |= (fence->pending >> element & 1) << row;
        fence->pending &= ~(UINT64_C(1) << element);
    }
}

void lant_shm_fences_on_done(struct lant_shm *shm, uint32_t row, bool failed)
{
    for (uint64_t left = shm->fenced; left != 0; left &= left - 1) {
        struct lant_shm_fence *fence = &shm->fences[__builtin_ctzll(left)];
        fence->failed |= failed && (fence->rows >> row & 1);
        fence->rows &= ~(UINT64_C(1) << row);
    }
}
