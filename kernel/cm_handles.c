/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_handles - numbers for the objects of the rdma_cm device.
 */
#include <stdlib.h>

#include "kernel/cm_internal.h"

struct slot {
    void *object;
    enum cm_handle_kind kind;
};

/* Handle 0 is none. `next` is where the search for a free one starts: late reuse. */
static struct {
    struct slot *slots;
    uint32_t count, next;
} table;

/* A number of an object and no other; 0 is nobody's. */
static void slot_check(uint32_t handle)
{
    const struct slot *slot = &table.slots[handle];
    CHECK(handle < table.count && table.next <= table.count);
    CHECK((slot->kind == CM_HANDLE_FREE) == (slot->object == NULL));
    CHECK(handle != 0 || slot->kind == CM_HANDLE_FREE);
}

static bool grow(void)
{
    const uint32_t count = table.count == 0 ? 64 : 2 * table.count;
    struct slot *slots = realloc(table.slots, count * sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (uint32_t i = table.count; i < count; i++) {
        slots[i] = (struct slot){NULL, CM_HANDLE_FREE};
    }
    table.next = table.count;
    table.slots = slots;
    table.count = count;
    return true;
}

uint32_t cm_handle_take(enum cm_handle_kind kind, void *object)
{
    CHECK(kind != CM_HANDLE_FREE && object != NULL);
    for (uint32_t i = 0; i < table.count; i++) {
        const uint32_t handle = (table.next + i) % table.count;
        if (handle != 0 && table.slots[handle].kind == CM_HANDLE_FREE) {
            table.slots[handle] = (struct slot){object, kind};
            table.next = handle + 1;
            INVARIANTS(slot_check(handle));
            return handle;
        }
    }
    return grow() ? cm_handle_take(kind, object) : 0;
}

void cm_handle_give(uint32_t handle)
{
    if (handle != 0) {
        CHECK(handle < table.count && table.slots[handle].kind != CM_HANDLE_FREE);
        table.slots[handle] = (struct slot){NULL, CM_HANDLE_FREE};
    }
}

void *cm_handle_find(uint32_t handle, enum cm_handle_kind kind)
{
    return handle < table.count && table.slots[handle].kind == kind ? table.slots[handle].object
                                                                    : NULL;
}

void *cm_handle_each(uint32_t *at, enum cm_handle_kind kind)
{
    while (*at < table.count) {
        const struct slot *slot = &table.slots[(*at)++];
        INVARIANTS(slot_check(*at - 1));
        if (slot->kind == kind) {
            return slot->object;
        }
    }
    return NULL;
}
