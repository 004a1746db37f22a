/* SPDX-License-Identifier: BSD-2-Clause
 *
 * dm - device memory. Our device is this process, so its memory is the process's; what programs
 * rely on stays: it is limited, begins at offset 0, and is reached in words.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "drivers/system/raced.h"
#include "verbs/checking.h"
#include "verbs/internal.h"
#include "verbs/strict.h"

#define WORD_BYTES    4
#define LOG_ALIGN_MAX 12

/* Taken of DM_BYTES_MAX. */
static _Atomic size_t taken;

struct device_memory {
    struct list node; /* In the list of all, for imports. */
    uint8_t *bytes;
    size_t count;
    uint64_t file;
    uint32_t handle;
    uint32_t handles, regions;
    bool gone; /* Freed by one of the handles. */
};

static struct {
    pthread_mutex_t mutex; /* Guards the counts, too. */
    struct list all;
    uint32_t last_handle;
} memories = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all = {&memories.all, &memories.all}};

/* (mutex) It is there as long as somebody uses it. Once it was freed there are handles alone, which
 * the program is to unimport. */
static void device_memory_check(const struct device_memory *memory)
{
    CHECK(memory->handles > 0 || memory->regions > 0);
    CHECK(!memory->gone || memory->regions == 0);
    CHECK(memory->handle != 0 && memory->handle <= memories.last_handle);
    CHECK(memory->bytes != NULL && memory->count > 0 && memory->count <= DM_BYTES_MAX);
    list_check(&memory->node);
}

static struct verbs_dm *dm_of(struct ibv_dm *dm)
{
    return CONTAINER_OF(dm, struct verbs_dm, ibv);
}

/* -- Copying ------------------------------------------------------------------------------------*/

static bool inside(const struct device_memory *memory, uint64_t offset, size_t bytes)
{
    return offset % WORD_BYTES == 0 && bytes % WORD_BYTES == 0 && offset <= memory->count &&
           bytes <= memory->count - offset;
}

/* The device orders accesses of its memory by itself: ThreadSanitizer has nothing to find here. */
static void copy(void *to, const void *from, size_t bytes)
{
    race_enter();
    memcpy(to, from, bytes);
    race_leave();
}

static int copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t bytes)
{
    struct device_memory *memory = dm_of(dm)->memory;
    if (!inside(memory, offset, bytes)) {
        return EFAULT;
    }
    copy(memory->bytes + offset, from, bytes);
    return 0;
}

static int copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t bytes)
{
    const struct device_memory *memory = dm_of(dm)->memory;
    if (!inside(memory, offset, bytes)) {
        return EFAULT;
    }
    copy(to, memory->bytes + offset, bytes);
    initialised(to, bytes); /* Peers may have written it. */
    return 0;
}

/* -- Making and freeing -------------------------------------------------------------------------*/

static bool reserve(size_t bytes)
{
    size_t before = atomic_load(&taken);
    do {
        CHECK(before <= DM_BYTES_MAX);
        if (bytes > DM_BYTES_MAX - before) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&taken, &before, before + bytes));
    return true;
}

static struct device_memory *make(size_t bytes, uint32_t log_align, uint64_t file)
{
    const size_t align = (size_t)1 << (log_align < 6 ? 6 : log_align);
    struct device_memory *memory = calloc(1, sizeof(*memory));
    uint8_t *content = aligned_alloc(align, round_up(bytes, align));
    if (memory == NULL || content == NULL) {
        free(memory);
        free(content);
        return fail(ENOMEM);
    }
    memset(content, 0, bytes);
    memory->bytes = content;
    memory->count = bytes;
    memory->file = file;
    memory->handles = 1;
    pthread_mutex_lock(&memories.mutex);
    memory->handle = ++memories.last_handle;
    list_append(&memories.all, &memory->node);
    INVARIANTS(device_memory_check(memory));
    pthread_mutex_unlock(&memories.mutex);
    return memory;
}

static struct ibv_dm *make_handle(struct ibv_context *context, struct device_memory *memory)
{
    struct verbs_dm *dm = object_make(context, sizeof(*dm));
    if (dm == NULL) {
        return NULL;
    }
    dm->memory = memory;
    dm->ibv = (struct ibv_dm){.context = context,
                              .memcpy_to_dm = copy_to,
                              .memcpy_from_dm = copy_from,
                              .handle = memory->handle};
    return &dm->ibv;
}

static void destroy(struct device_memory *memory)
{
    CHECK(memory->handles == 0 && memory->regions == 0);
    CHECK(atomic_fetch_sub(&taken, memory->count) >= memory->count);
    free(memory->bytes);
    free(memory);
}

/* (mutex) The last user takes it away. */
static void unlock_and_destroy_unused(struct device_memory *memory)
{
    const bool last = memory->handles == 0 && memory->regions == 0;
    if (last) {
        list_remove(&memory->node);
    }
    pthread_mutex_unlock(&memories.mutex);
    if (last) {
        destroy(memory);
    }
}

static void drop_handle(struct device_memory *memory)
{
    pthread_mutex_lock(&memories.mutex);
    INVARIANTS(device_memory_check(memory));
    CHECK(memory->handles > 0);
    memory->handles--;
    unlock_and_destroy_unused(memory);
}

static void drop_region(struct device_memory *memory)
{
    pthread_mutex_lock(&memories.mutex);
    INVARIANTS(device_memory_check(memory));
    CHECK(memory->regions > 0);
    memory->regions--;
    unlock_and_destroy_unused(memory);
}

/* False: it was freed. */
static bool add_region(struct device_memory *memory)
{
    pthread_mutex_lock(&memories.mutex);
    const bool there = !memory->gone;
    memory->regions += there;
    INVARIANTS(device_memory_check(memory));
    pthread_mutex_unlock(&memories.mutex);
    return there;
}

struct ibv_dm *dm_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    if (attr->comp_mask != 0 || attr->length == 0 || attr->log_align_req > LOG_ALIGN_MAX) {
        return fail(EINVAL);
    }
    if (attr->length > DM_BYTES_MAX) {
        return fail(EINVAL);
    }
    if (!reserve(attr->length)) {
        return fail(ENOMEM);
    }
    struct device_memory *memory =
        make(attr->length, attr->log_align_req, context_of(context)->file);
    if (memory == NULL) {
        atomic_fetch_sub(&taken, attr->length);
        return NULL;
    }
    struct ibv_dm *dm = make_handle(context, memory);
    if (dm == NULL) {
        const int reason = errno;
        drop_handle(memory);
        return fail(reason);
    }
    return dm;
}

/* By any handle: others are unimported then. */
int dm_free(struct ibv_dm *ibv)
{
    struct device_memory *memory = dm_of(ibv)->memory;
    pthread_mutex_lock(&memories.mutex);
    const bool busy = memory->regions > 0;
    memory->gone |= !busy;
    INVARIANTS(device_memory_check(memory));
    pthread_mutex_unlock(&memories.mutex);
    if (busy) {
        return checking_busy("piece of device memory");
    }
    drop_handle(memory);
    object_free(ibv->context, dm_of(ibv));
    return 0;
}

/* -- Regions ------------------------------------------------------------------------------------*/

struct ibv_mr *dm_register(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t bytes,
                           unsigned int access)
{
    struct device_memory *memory = dm_of(dm)->memory;
    /* Programs have no address for it: requests name an offset. */
    const unsigned int wanted = access & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
    const unsigned int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                               IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_FLUSH_GLOBAL;
    if (!(wanted & IBV_ACCESS_ZERO_BASED) || (wanted & ~known) || !inside(memory, offset, bytes)) {
        return fail(EINVAL);
    }
    const struct region_request request = {
        .address = (uintptr_t)(memory->bytes + offset), .bytes = bytes, .access = wanted};
    if (!STRICT_JOINS(pd->context, dm)) {
        return NULL;
    }
    if (!add_region(memory)) {
        return fail(EINVAL);
    }
    struct ibv_mr *mr = mr_register(pd, &request);
    if (mr == NULL) {
        const int reason = errno;
        drop_region(memory);
        return fail(reason);
    }
    mr->addr = NULL;
    mr_of(mr)->device_memory = memory;
    return mr;
}

void dm_release(struct device_memory *memory)
{
    if (memory != NULL) {
        drop_region(memory);
    }
}

void dm_in_child(void)
{
    pthread_mutex_init(&memories.mutex, NULL);
}

/* -- Import -------------------------------------------------------------------------------------*/

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    struct device_memory *found = NULL;
    pthread_mutex_lock(&memories.mutex);
    for (struct list *node = memories.all.next; node != &memories.all; node = node->next) {
        struct device_memory *memory = CONTAINER_OF(node, struct device_memory, node);
        if (memory->handle == handle && !memory->gone &&
            memory->file == context_of(context)->file) {
            found = memory;
            memory->handles++;
            INVARIANTS(device_memory_check(memory));
        }
    }
    pthread_mutex_unlock(&memories.mutex);
    if (found == NULL) {
        return fail(EINVAL);
    }
    struct ibv_dm *dm = make_handle(context, found);
    if (dm == NULL) {
        const int reason = errno;
        drop_handle(found);
        return fail(reason);
    }
    return dm;
}

/* Also the handle that the memory was allocated with: it stays for the others. */
EXPORT void ibv_unimport_dm(struct ibv_dm *ibv)
{
    drop_handle(dm_of(ibv)->memory);
    object_free(ibv->context, dm_of(ibv));
}
