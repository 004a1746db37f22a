/* SPDX-License-Identifier: BSD-2-Clause
 *
 * api_access - loads, stores and fences of programs: see api.h.
 */
#include "lab/lant/api_internal.h"

/* -- Loads and stores ---------------------------------------------------------------------------*/

static void begin_access(struct lant_api *api, struct lant_call *call, enum lant_call_kind kind,
                         uint64_t address, uint64_t length)
{
    lant_api_begin(api, call, kind);
    call->left = length;
    call->access = (struct lant_shm_access){
        .address = address, .token = call->name, .store = kind == LANT_CALL_SHM_WRITE};
    call->node = lant_global_node(address);
    if (length == 0 || length > LANT_ADDRESSES - lant_global_address(address)) {
        call->left = 0;
        lant_api_return(call, LANT_RESULT_REFUSED);
        return;
    }
    list_append(&api->stores, &call->store_place);
}

void lant_api_shm_write(struct lant_api *api, struct lant_call *call, uint64_t address,
                        const void *bytes, uint64_t length)
{
    begin_access(api, call, LANT_CALL_SHM_WRITE, address, length);
    call->from = bytes;
}

void lant_api_shm_read(struct lant_api *api, struct lant_call *call, uint64_t address, void *bytes,
                       uint64_t length)
{
    begin_access(api, call, LANT_CALL_SHM_READ, address, length);
    call->to = bytes;
}

/* The longest access that a bus can do at once. */
static uint32_t access_bytes(uint64_t address, uint64_t left)
{
    const uint64_t in_line = LANT_SHM_ACCESS_MAX - address % LANT_SHM_ACCESS_MAX;
    const uint32_t most = (uint32_t)(left < in_line ? left : in_line);
    uint32_t bytes = most & ~UINT32_C(7);
    if (address % 8 != 0 || bytes == 0) {
        bytes = 4;
        while (bytes > most || address % bytes != 0) {
            bytes /= 2;
        }
    }
    return bytes;
}

/* The next access of the call, if the node has room. */
void lant_api_access_next(struct lant_call *call)
{
    struct lant_shm_access *access = &call->access;
    struct lant_shm_access next = *access;
    next.address += access->bytes;
    next.bytes = access_bytes(next.address, call->left);
    const uint8_t *from = access->store ? call->from + call->done : NULL;
    if (!lant_node_access(call->api->node, &next, from)) {
        return;
    }
    *access = next;
    call->gather = lant_shm_gather_begin(access);
    call->unfinished += lant_shm_access_beats(access);
    call->left -= access->bytes;
    call->step = LANT_CALL_WAITS;
}

/* Tells the fences that began later than the store, and cover its node. */
static void tell_fences(struct lant_api *api, const struct lant_call *store)
{
    for (struct list *at = api->calls.next; at != &api->calls; at = at->next) {
        struct lant_call *fence = lant_call_at(at);
        fence->denied |= fence->kind == LANT_CALL_SHM_FENCE && fence->order > store->order &&
                         (fence->node == LANT_ALL_NODES || fence->node == store->node);
    }
}

/* All of an access has its answer on the bus. */
static void access_answered(struct lant_call *call)
{
    const uint8_t response = call->gather.response;
    call->done += call->access.bytes;
    if (call->gather.fake || (response != LANT_OKAY && response != LANT_EXOKAY)) {
        call->left = 0;
        call->denied = true;
        lant_api_return(call, LANT_RESULT_FAILED);
    } else if (call->left == 0) {
        lant_api_return(call, LANT_RESULT_OK);
    } else {
        call->step = LANT_CALL_WANTS;
    }
}

void lant_api_take_done(struct lant_call *call, const struct lant_shm_done *done)
{
    if (lant_shm_done_on_bus(done)) {
        lant_shm_gather_add(&call->gather, &call->access, done,
                            call->access.store ? NULL : call->to + call->done);
        if (call->gather.unanswered == 0) {
            access_answered(call);
        }
    }
    if (lant_shm_done_final(done)) {
        call->unfinished--;
        call->denied |= done->kind == LANT_SHM_DENIED;
    }
    if (call->denied && call->access.store) {
        tell_fences(call->api, call);
    }
    if (call->unfinished == 0 && call->left == 0) {
        list_remove(&call->store_place);
    }
}

enum lant_store_state lant_api_poll(const struct lant_call *call)
{
    if (call->denied || (call->step >= LANT_CALL_RETURNING && call->result != LANT_RESULT_OK)) {
        return LANT_STORE_FAILED;
    }
    return call->step < LANT_CALL_RETURNING || call->unfinished != 0 ? LANT_STORE_WAITS
                                                                     : LANT_STORE_DONE;
}

/* -- Fences of loads and stores -----------------------------------------------------------------*/

void lant_api_shm_fence(struct lant_api *api, struct lant_call *call, uint32_t node)
{
    lant_api_begin(api, call, LANT_CALL_SHM_FENCE);
    call->node = node;
}

/* The interface's own fence covers the stores that it has taken. So the interface must have taken
 * all earlier ones. */
static bool may_fence(const struct lant_call *fence)
{
    const struct list *stores = &fence->api->stores;
    for (const struct list *at = stores->next; at != stores; at = at->next) {
        const struct lant_call *call = CONTAINER_OF_CONST(at, struct lant_call, store_place);
        if (call->order < fence->order && call->step < LANT_CALL_RETURNING &&
            call->kind == LANT_CALL_SHM_WRITE) {
            return false;
        }
    }
    return true;
}

void lant_api_look_at_fence(struct lant_call *call)
{
    struct lant_shm *shm = &call->api->node->shm;
    if (call->step == LANT_CALL_WANTS && may_fence(call)) {
        call->fence = lant_shm_fence_begin(shm, call->node);
        call->step = call->fence == LANT_SHM_NO_FENCES ? LANT_CALL_WANTS : LANT_CALL_WAITS;
    }
    if (call->step != LANT_CALL_WAITS) {
        return;
    }
    const enum lant_shm_fence_state state = lant_shm_fence_look(shm, call->fence);
    if (state != LANT_SHM_FENCE_WAITS) {
        lant_shm_fence_end(shm, call->fence);
        lant_api_return(call, state == LANT_SHM_FENCE_FAILED || call->denied ? LANT_RESULT_FAILED
                                                                             : LANT_RESULT_OK);
    }
}
