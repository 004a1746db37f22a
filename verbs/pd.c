/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pd - protection domains, and the parent domains that add to one how objects get their memory and
 * which thread uses them.
 *
 * Every verb may be called from any thread, so a thread domain promises us nothing that we need.
 */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "verbs/blocks.h"
#include "verbs/checking.h"
#include "verbs/internal.h"
#include "verbs/strict.h"

/* -- Protection domains -------------------------------------------------------------------------*/

static struct {
    pthread_mutex_t mutex; /* Guards the handles of all domains, too. */
    struct list all;       /* struct verbs_pd, for those who import them. */
    uint32_t last_handle;
} domains = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all = {&domains.all, &domains.all}};

static struct protection_domain *domain_of(struct pd *core)
{
    return CONTAINER_OF(core, struct protection_domain, core);
}

/* Only a parent domain has a thread domain and allocators, and of these both or none; nobody
 * imports it. These members never change. */
static void verbs_pd_check(const struct verbs_pd *pd)
{
    CHECK(pd->core != NULL);
    CHECK(!pd->parent || !pd->imported);
    CHECK(pd->parent || (pd->td == NULL && pd->alloc == NULL && pd->pd_context == NULL));
    CHECK((pd->alloc == NULL) == (pd->free == NULL));
}

static void enlist(struct verbs_pd *pd)
{
    pthread_mutex_lock(&domains.mutex);
    INVARIANTS(verbs_pd_check(pd));
    CHECK(!pd->imported || pd->ibv.handle != 0); /* It has that of its domain. */
    if (pd->ibv.handle == 0) {
        pd->ibv.handle = ++domains.last_handle;
    }
    list_append(&domains.all, &pd->node);
    pthread_mutex_unlock(&domains.mutex);
}

/* One handle less. A domain that loses its last handle while it has objects belongs to the objects,
 * and is not freed: the program kept no way to destroy it. */
static void drop_handle(struct protection_domain *domain, bool destroys)
{
    pthread_mutex_lock(&domains.mutex);
    domain->gone |= destroys;
    const bool last = --domain->handles == 0;
    pthread_mutex_unlock(&domains.mutex);
    if (last && domain->gone) {
        memory_free(domain);
    }
}

static void forget(struct verbs_pd *pd)
{
    pthread_mutex_lock(&domains.mutex);
    INVARIANTS(verbs_pd_check(pd));
    list_remove(&pd->node);
    pthread_mutex_unlock(&domains.mutex);
    object_free(pd->ibv.context, pd);
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct protection_domain *domain = memory_make(sizeof(*domain));
    struct verbs_pd *pd = domain == NULL ? fail(ENOMEM) : object_make(context, sizeof(*pd));
    if (pd == NULL) {
        memory_free(domain);
        return NULL;
    }
    domain->handles = 1;
    pd->ibv.context = context;
    pd->core = &domain->core;
    enlist(pd);
    domain->number = pd->ibv.handle;
    return &pd->ibv;
}

/* A parent domain, which counts as a user of the domain below it. */
static int dealloc_parent(struct verbs_pd *pd)
{
    struct live *live = live_of(pd->ibv.context);
    live_lock(live);
    const bool busy = pd->borrowers > 0;
    if (!busy) {
        CHECK(pd->core->users > 0);
        pd->core->users--;
        if (pd->td != NULL) {
            CHECK(pd->td->users > 0);
            pd->td->users--;
        }
    }
    live_unlock(live);
    if (busy) {
        return checking_busy("parent domain");
    }
    forget(pd);
    return 0;
}

/* By any handle: others are unimported then. */
EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct verbs_pd *pd = pd_of(ibv);
    if (pd->parent) {
        return dealloc_parent(pd);
    }
    struct live *live = live_of(ibv->context);
    live_lock(live);
    const bool busy = pd->core->users > 0;
    live_unlock(live);
    if (busy) {
        return checking_busy("protection domain");
    }
    struct protection_domain *domain = domain_of(pd->core);
    forget(pd);
    drop_handle(domain, true);
    return 0;
}

void pd_each(void (*visit)(void *state, const struct verbs_pd *pd), void *state)
{
    pthread_mutex_lock(&domains.mutex);
    for (struct list *node = domains.all.next; node != &domains.all; node = node->next) {
        INVARIANTS(verbs_pd_check(CONTAINER_OF(node, struct verbs_pd, node)));
        visit(state, CONTAINER_OF(node, struct verbs_pd, node));
    }
    pthread_mutex_unlock(&domains.mutex);
}

void pd_in_child(void)
{
    pthread_mutex_init(&domains.mutex, NULL);
}

/* -- Import -------------------------------------------------------------------------------------*/

/* A domain of a context that shares this one's file, which gets a handle more; NULL: none. */
static struct protection_domain *take_handle(struct ibv_context *context, uint32_t handle)
{
    struct protection_domain *found = NULL;
    pthread_mutex_lock(&domains.mutex);
    for (struct list *node = domains.all.next; node != &domains.all && found == NULL;
         node = node->next) {
        const struct verbs_pd *pd = CONTAINER_OF(node, struct verbs_pd, node);
        if (pd->ibv.handle == handle && !pd->parent && !domain_of(pd->core)->gone &&
            context_of(pd->ibv.context)->file == context_of(context)->file) {
            found = domain_of(pd->core);
            found->handles++;
        }
    }
    pthread_mutex_unlock(&domains.mutex);
    return found;
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    struct protection_domain *domain = is_efa() ? NULL : take_handle(context, handle);
    if (domain == NULL) {
        return fail(is_efa() ? EOPNOTSUPP : EINVAL);
    }
    struct verbs_pd *pd = object_make(context, sizeof(*pd));
    if (pd == NULL) {
        const int reason = errno;
        drop_handle(domain, false);
        return fail(reason);
    }
    pd->ibv.context = context;
    pd->ibv.handle = handle;
    pd->core = &domain->core;
    pd->imported = true;
    enlist(pd);
    return &pd->ibv;
}

/* Also the handle that the domain was made with: it stays for the others. */
EXPORT void ibv_unimport_pd(struct ibv_pd *ibv)
{
    struct protection_domain *domain = domain_of(pd_of(ibv)->core);
    forget(pd_of(ibv));
    drop_handle(domain, false);
}

/* -- Thread domains and parent domains ----------------------------------------------------------*/

struct ibv_td *td_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    if (attr->comp_mask != 0) {
        return fail(EOPNOTSUPP);
    }
    struct verbs_td *td = object_make(context, sizeof(*td));
    if (td == NULL) {
        return NULL;
    }
    td->ibv.context = context;
    return &td->ibv;
}

int td_dealloc(struct ibv_td *ibv)
{
    struct verbs_td *td = td_of(ibv);
    struct live *live = live_of(ibv->context);
    live_lock(live);
    const bool busy = td->users > 0;
    live_unlock(live);
    if (busy) {
        return checking_busy("thread domain");
    }
    object_free(ibv->context, td);
    return 0;
}

struct ibv_pd *pd_alloc_parent(struct ibv_context *context,
                               struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t known = (is_efa() ? 0 : IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) |
                           IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    if (attr->comp_mask & ~known) {
        return fail(EOPNOTSUPP);
    }
    const bool allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
    if (attr->pd == NULL || (allocators && (attr->alloc == NULL || attr->free == NULL))) {
        return fail(EINVAL);
    }
    if (allocators && !live_offers(LIVE_OFFER_ALLOCATORS)) {
        return fail(EOPNOTSUPP);
    }
    if (!STRICT_JOINS(context, attr->pd) || !STRICT_JOINS(context, attr->td)) {
        return NULL;
    }
    struct verbs_pd *pd = object_make(context, sizeof(*pd));
    if (pd == NULL) {
        return NULL;
    }
    pd->ibv.context = context;
    pd->core = pd_core(attr->pd);
    pd->parent = true;
    if (allocators) {
        pd->alloc = attr->alloc;
        pd->free = attr->free;
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
        pd->pd_context = attr->pd_context;
    }
    pd->td = attr->td == NULL ? NULL : td_of(attr->td);
    struct live *live = live_of(context);
    live_lock(live);
    pd->core->users++;
    if (pd->td != NULL) {
        pd->td->users++;
    }
    live_unlock(live);
    enlist(pd);
    return &pd->ibv;
}

/* -- Memory of objects --------------------------------------------------------------------------*/

/* Memory of the program's own allocator is lent, and never lies in a chunk of ours. */
static void memory_check(const struct memory *memory, enum memory_kind kind)
{
    CHECK(memory->bytes > 0 && memory->bytes == line_aligned(memory->bytes));
    CHECK(!memory->from_program || memory->lent);
    CHECK(!memory->shared || (!memory->from_program && kind != MEMORY_CQ));
}

/* Programs' own allocators are called without the lock: they may do anything. */
static void *take_from_program(struct verbs_pd *pd, size_t bytes, enum memory_kind kind)
{
    initialised_arguments(5);
    void *memory = pd == NULL || pd->alloc == NULL
                       ? IBV_ALLOCATOR_USE_DEFAULT
                       : pd->alloc(&pd->ibv, pd->pd_context, bytes, 64, kind);
    if (memory != NULL && memory != IBV_ALLOCATOR_USE_DEFAULT) {
        memset(memory, 0, bytes);
    }
    return memory;
}

/* The parent domain, and with it its allocators, stays until all was given back. */
static void count_borrower(struct verbs_pd *pd, uint32_t change)
{
    struct live *live = live_of(pd->ibv.context);
    live_lock(live);
    CHECK(pd->alloc != NULL && (change == 1 || pd->borrowers > 0));
    pd->borrowers += change;
    live_unlock(live);
}

/* Queue pairs are many, and of one size; a completion queue may be large and seldom full, so that
 * nobody shall touch it before its time. */
static bool is_of_blocks(enum memory_kind kind)
{
    return kind != MEMORY_CQ && live_arena() == NULL;
}

static void *take_default(size_t bytes, enum memory_kind kind, struct memory *memory)
{
    return is_of_blocks(kind) ? blocks_take(bytes, &memory->shared) : memory_make(bytes);
}

void *memory_take(struct ibv_pd *ibv, size_t bytes, enum memory_kind kind, struct memory *memory)
{
    struct verbs_pd *pd = ibv == NULL ? NULL : pd_of(ibv);
    bytes = line_aligned(bytes);
    CHECK(bytes <= UINT32_MAX);
    *memory = (struct memory){.bytes = (uint32_t)bytes};
    void *block = take_from_program(pd, bytes, kind);
    if (block == IBV_ALLOCATOR_USE_DEFAULT) {
        block = take_default(bytes, kind, memory);
    } else if (block != NULL) {
        memory->from_program = true;
    }
    if (block != NULL && pd != NULL && pd->alloc != NULL) {
        memory->lent = true;
        count_borrower(pd, 1);
    }
    INVARIANTS(memory_check(memory, kind));
    return block;
}

void memory_give(struct ibv_pd *ibv, void *block, const struct memory *memory,
                 enum memory_kind kind)
{
    struct verbs_pd *pd = memory->lent ? pd_of(ibv) : NULL;
    INVARIANTS(memory_check(memory, kind));
    if (memory->from_program) {
        initialised_arguments(4);
        pd->free(&pd->ibv, pd->pd_context, block, kind);
    } else if (is_of_blocks(kind)) {
        blocks_give(block, memory->bytes, memory->shared);
    } else {
        memory_free(block);
    }
    if (pd != NULL) {
        count_borrower(pd, UINT32_MAX);
    }
}
