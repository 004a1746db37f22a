/* SPDX-License-Identifier: BSD-2-Clause
 *
 * mr - memory regions, memory windows.
 *
 * Memory is not pinned: a region is a permission, judged on every access. But its pages are brought
 * in at registration, as hardware would by pinning them: that tells whether they are there, and
 * spares the program a fault for each page of, say, thousands of posted receives.
 */
#include <errno.h>
#include <linux/mman.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs/checking.h"
#include "verbs/internal.h"
#include "verbs/newer.h"
#include "verbs/strict.h"

#define ACCESS_KNOWN                                                                               \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                       \
     IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_FLUSH_GLOBAL |                         \
     IBV_ACCESS_FLUSH_PERSISTENT)

#define ACCESS_KNOWN_EFA (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* -- Memory regions -----------------------------------------------------------------------------*/

static int judge_request(uint64_t address, uint64_t bytes, uint64_t iova, unsigned int access,
                         struct region_request *request)
{
    /* Optional bits (relaxed ordering) ask for nothing that we could not do without. */
    const unsigned int wanted = access & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
    if (wanted & ~(unsigned int)(is_efa() ? ACCESS_KNOWN_EFA : ACCESS_KNOWN)) {
        return EOPNOTSUPP;
    }
    *request = (struct region_request){
        .address = address,
        .bytes = bytes,
        .start = iova,
        .access = wanted & ~(unsigned int)IBV_ACCESS_HUGETLB,
    };
    if ((wanted & IBV_ACCESS_ON_DEMAND) && address == 0 && bytes == SIZE_MAX) {
        request->whole_space = true;
        return 0;
    }
    if (bytes == 0 || address + bytes < address) {
        return EINVAL;
    }
    if (!(wanted & IBV_ACCESS_ON_DEMAND) &&
        !program_memory_is_there(address, bytes, wanted & IBV_ACCESS_LOCAL_WRITE)) {
        return EFAULT;
    }
    /* As Linux answers for memory that is not of an NVDIMM. */
    return wanted & IBV_ACCESS_FLUSH_PERSISTENT ? program_memory_persists(address, bytes) : 0;
}

/* (locked) A handle's region is in the NIC's table under its key until it is gone; an import has
 * none of its own. Memory that is to be given back is of one kind. */
static void verbs_mr_check(struct live *live, const struct verbs_mr *mr)
{
    const struct region *region = &mr->core;
    CHECK(mr->device_memory == NULL || mr->null_pages == NULL);
    CHECK(!mr->imported || (mr->device_memory == NULL && mr->null_pages == NULL));
    CHECK(!mr->imported || (!mr->gone && !mr->forsaken));
    CHECK(mr->imported || region->kind == REGION_MEMORY);
    CHECK(mr->imported || mr->gone ||
          region_find(nic_regions(live_nic(live)), region->key) == region);
}

/* The region was drawn a key. */
static struct ibv_mr *show(struct verbs_mr *mr)
{
    struct nic *nic = live_nic(live_of(mr->ibv.context));
    mr->ibv.handle = mr->ibv.rkey = mr->core.key;
    mr->ibv.lkey = region_lkey(nic_regions(nic), &mr->core);
    if (is_checked()) {
        checking_region_made();
    }
    return &mr->ibv;
}

/* MemorySanitizer: peers and the NIC may write into the region at any time from now on, and a
 * program may read these bytes without a completion. A region of the whole address space has the
 * program's stacks: there, only the memory that requests name counts (post_tell_send). */
static void note_writable(const struct region_request *request)
{
    if ((request->access & ACCESS_LOCAL_WRITE) && !request->whole_space) {
        initialised((const void *)(uintptr_t)request->address, request->bytes);
    }
}

struct ibv_mr *mr_register(struct ibv_pd *pd, const struct region_request *request)
{
    struct verbs_mr *mr = object_make(pd->context, sizeof(*mr));
    if (mr == NULL) {
        return NULL;
    }
    /* Once it is in the NIC's table, our thread may tell others of it (nldev_objects.c). */
    mr->ibv = (struct ibv_mr){.context = pd->context,
                              .pd = pd,
                              .addr = (void *)(uintptr_t)request->address,
                              .length = request->bytes};
    struct live *live = live_of(pd->context);
    live_lock(live);
    const enum status status =
        region_add(nic_regions(live_nic(live)), pd_core(pd), request, &mr->core);
    if (status == STATUS_OK) {
        live_publish_region(live, &mr->core);
        INVARIANTS(verbs_mr_check(live, mr));
    }
    live_unlock(live);
    if (status != STATUS_OK) {
        object_free(pd->context, mr);
        return fail(status_errno(status));
    }
    note_writable(request);
    return show(mr);
}

/* -- A region of nothing ------------------------------------------------------------------------*/

#define NULL_BYTES ((size_t)2 * REGION_NULL_BYTES)

/* Pages to lose bytes in, and pages of zeros, which nobody shall change. */
static void *map_nothing(void)
{
    uint8_t *pages =
        mmap(NULL, NULL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(pages + REGION_NULL_BYTES, REGION_NULL_BYTES, PROT_READ) != 0) {
        munmap(pages, NULL_BYTES);
        return NULL;
    }
    return pages;
}

struct ibv_mr *mr_alloc_null(struct ibv_pd *pd)
{
    struct verbs_mr *mr = object_make(pd->context, sizeof(*mr));
    if (mr == NULL) {
        return NULL;
    }
    void *pages = map_nothing();
    if (pages == NULL) {
        object_free(pd->context, mr);
        return fail(ENOMEM);
    }
    mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd};
    struct live *live = live_of(pd->context);
    live_lock(live);
    const enum status status =
        region_add_null(nic_regions(live_nic(live)), pd_core(pd), (uintptr_t)pages, &mr->core);
    live_unlock(live);
    if (status != STATUS_OK) {
        munmap(pages, NULL_BYTES);
        object_free(pd->context, mr);
        return fail(status_errno(status));
    }
    mr->null_pages = pages;
    return show(mr);
}

/* -- Registering --------------------------------------------------------------------------------*/

static struct ibv_mr *judge_and_register(struct ibv_pd *pd, void *memory, size_t bytes,
                                         uint64_t iova, unsigned int access)
{
    struct region_request request;
    const int reason = judge_request((uintptr_t)memory, bytes, iova, access, &request);
    return reason != 0 ? fail(reason) : mr_register(pd, &request);
}

#undef ibv_reg_mr
EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
    return judge_and_register(pd, memory, bytes, (uintptr_t)memory, (unsigned int)access);
}

#undef ibv_reg_mr_iova
EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *memory, size_t bytes, uint64_t iova,
                                      int access)
{
    return judge_and_register(pd, memory, bytes, iova, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *memory, size_t bytes, uint64_t iova,
                                       unsigned int access)
{
    return judge_and_register(pd, memory, bytes, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access)
{
    (void)pd;
    (void)offset;
    (void)length;
    (void)iova;
    (void)fd;
    (void)access;
    return fail(EOPNOTSUPP);
}

/* (locked) Off the board, if the region can go or change at all. */
static bool withdraw(struct live *live, struct verbs_mr *mr)
{
    CHECK(!mr->imported && !mr->gone);
    const bool free_of_windows = mr->core.windows == 0;
    if (free_of_windows) {
        live_withdraw_region(live, &mr->core);
    }
    return free_of_windows;
}

/* (locked) The handle that the region was registered with, which may go with the lock, if `mr` is
 * another one: any handle takes the region away. NULL: it is gone. */
static struct verbs_mr *owner_of(struct live *live, struct verbs_mr *mr)
{
    if (!mr->imported) {
        INVARIANTS(verbs_mr_check(live, mr));
        return mr->gone ? NULL : mr;
    }
    INVARIANTS(verbs_mr_check(live, mr));
    struct region *region = region_find(nic_regions(live_nic(live)), mr->ibv.handle);
    return region == NULL || region->kind != REGION_MEMORY
               ? NULL
               : CONTAINER_OF(region, struct verbs_mr, core);
}

/* Takes the lock, once no local peer is reaching into the region. NULL: it is gone. Not *clear: it
 * is bound to windows, or a peer does not come out. */
static struct verbs_mr *lock_withdrawn(struct live *live, struct verbs_mr *mr, bool *clear)
{
    bool settled = true;
    live_lock(live);
    struct verbs_mr *owner = owner_of(live, mr);
    if (owner != NULL && withdraw(live, owner) && !live_settled(live)) {
        live_unlock(live);
        settled = live_settle(live);
        live_lock(live);
        /* Meanwhile windows may have been bound, or another thread took the region away. */
        owner = owner_of(live, mr);
    }
    CHECK(owner == NULL || (!owner->imported && !owner->gone));
    *clear = settled && owner != NULL && owner->core.windows == 0;
    return owner;
}

static void give_up(struct verbs_mr *mr)
{
    dm_release(mr->device_memory);
    if (mr->null_pages != NULL) {
        munmap(mr->null_pages, NULL_BYTES);
    }
    object_free(mr->ibv.context, mr);
}

/* The region that a handle is for is gone afterwards; 0 or errno. */
static int deregister(struct verbs_mr *mr)
{
    struct live *live = live_of(mr->ibv.context);
    enum status status = STATUS_BUSY;
    bool clear, forsaken = false;
    struct verbs_mr *owner = lock_withdrawn(live, mr, &clear);
    if (owner == NULL) {
        status = mr->gone ? STATUS_OK : STATUS_INVALID;
    } else if (clear) {
        status = region_remove(nic_regions(live_nic(live)), &owner->core);
        CHECK(status == STATUS_OK); /* No window is bound to it: what else would keep it? */
        live_take_back_unused(live);
        owner->gone = status == STATUS_OK;
        forsaken = owner->gone && owner->forsaken;
    }
    unlock_settled(live); /* A machine may have judged packets for it before. */
    if (forsaken) {
        give_up(owner);
    }
    return status_errno(status);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
    const int reason = deregister(mr_of(ibv));
    if (is_checked() && reason == 0) {
        checking_region_gone(ibv->lkey);
    }
    if (reason == 0) {
        give_up(mr_of(ibv));
    }
    return reason;
}

/* A second handle for a region, for its keys; its address is the importer's to know. */
EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    if (is_efa()) {
        return fail(EOPNOTSUPP);
    }
    struct live *live = live_of(pd->context);
    struct verbs_mr *mr = object_make(pd->context, sizeof(*mr));
    if (mr == NULL) {
        return NULL;
    }
    live_lock(live);
    const struct region *region = region_find(nic_regions(live_nic(live)), handle);
    const bool found = region != NULL && region->kind == REGION_MEMORY && region->pd == pd_core(pd);
    if (found) {
        mr->imported = true;
        mr->ibv = (struct ibv_mr){.context = pd->context,
                                  .pd = pd,
                                  .length = region->bytes,
                                  .handle = handle,
                                  .lkey = region_lkey(nic_regions(live_nic(live)), region),
                                  .rkey = region->key};
        INVARIANTS(verbs_mr_check(live, mr));
    }
    live_unlock(live);
    if (!found) {
        object_free(pd->context, mr);
        return fail(EINVAL);
    }
    return &mr->ibv;
}

/* The region stays; so does the handle that it was registered with, until it goes. */
EXPORT void ibv_unimport_mr(struct ibv_mr *ibv)
{
    struct verbs_mr *mr = mr_of(ibv);
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(verbs_mr_check(live, mr));
    const bool over = mr->imported || mr->gone;
    mr->forsaken = !over;
    live_unlock(live);
    if (over) {
        give_up(mr);
    }
}

static int rereg_failure(int reason)
{
    errno = reason;
    return IBV_REREG_MR_ERR_INPUT;
}

EXPORT int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *memory,
                        size_t bytes, int access)
{
    struct verbs_mr *mr = mr_of(ibv);
    const bool translation = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    const bool domain = flags & IBV_REREG_MR_CHANGE_PD;
    const bool rights = flags & IBV_REREG_MR_CHANGE_ACCESS;
    if (is_efa()) {
        return rereg_failure(EOPNOTSUPP);
    }
    if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || flags == 0 || (domain && pd == NULL) ||
        mr->imported || (translation && (memory == NULL || bytes == 0))) {
        return rereg_failure(EINVAL);
    }
    if (is_closed(ibv->context)) {
        return rereg_failure(EBADF);
    }
    if (domain && !STRICT_JOINS(ibv->context, pd)) {
        return rereg_failure(EINVAL);
    }
    if (mr->device_memory != NULL || mr->null_pages != NULL) {
        return rereg_failure(EOPNOTSUPP);
    }
    struct region_request request;
    const uint64_t address = translation ? (uintptr_t)memory : mr->core.memory;
    const int reason = judge_request(address, translation ? bytes : mr->core.bytes, address,
                                     rights ? (unsigned int)access : mr->core.access, &request);
    if (reason != 0) {
        return rereg_failure(reason);
    }
    struct live *live = live_of(ibv->context);
    /* While windows are bound to it the region stays as it is, published too. */
    bool clear;
    enum status status = lock_withdrawn(live, mr, &clear) == NULL ? STATUS_INVALID : STATUS_BUSY;
    if (clear) {
        status = region_change(&mr->core, domain ? pd_core(pd) : mr->core.pd, &request, translation,
                               domain, rights);
        live_take_back_unused(live);
        live_publish_region(live, &mr->core);
        INVARIANTS(verbs_mr_check(live, mr));
    }
    unlock_settled(live);
    if (status != STATUS_OK) {
        return rereg_failure(status_errno(status));
    }
    note_writable(&request);
    if (domain) {
        ibv->pd = pd;
    }
    if (translation) {
        ibv->addr = memory;
        ibv->length = bytes;
    }
    return 0;
}

/* The memory that an SGE of advice names; 0 or errno. */
static int find_advised(struct ibv_pd *pd, const struct ibv_sge *sge, uint32_t access,
                        struct segment *segment)
{
    struct live *live = live_of(pd->context);
    int reason = 0;
    live_lock(live);
    const struct region_table *regions = nic_regions(live_nic(live));
    const struct region *region = region_find_local(regions, sge->lkey);
    if (region != NULL && region->pd != pd_core(pd)) {
        reason = EPERM;
    } else if (region != NULL && !(region->access & ACCESS_ON_DEMAND)) {
        reason = EINVAL;
    } else if (region == NULL || region_judge(regions, sge->lkey, pd_core(pd), NULL, sge->addr,
                                              sge->length, access, segment) != REACH_ALLOWED) {
        reason = EFAULT;
    }
    live_unlock(live);
    return reason;
}

/* Prefetch is advice: a page that is not brought in now is brought in when it is needed. That may
 * take long, and the NIC goes on meanwhile. A program that waits for it (FLUSH) is told of memory
 * that is not there; 0 or errno. */
static int prefetch(const struct segment *segment, bool write, uint32_t flags)
{
    const uint64_t page = segment->address & ~UINT64_C(4095);
    const bool done = madvise((void *)(uintptr_t)page, segment->address - page + segment->bytes,
                              write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
    return !done && (flags & IBV_ADVISE_MR_FLAG_FLUSH) &&
                   !program_memory_is_there(segment->address, segment->bytes, write)
               ? EFAULT
               : 0;
}

int mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
              struct ibv_sge *sges, uint32_t count)
{
    if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
        advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
        return EOPNOTSUPP;
    }
    if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || count == 0) {
        return EINVAL;
    }
    const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    int reason = 0;
    for (uint32_t i = 0; i < count && reason == 0; i++) {
        struct segment segment;
        reason = find_advised(pd, &sges[i], write ? ACCESS_LOCAL_WRITE : 0, &segment);
        if (reason == 0) {
            reason = prefetch(&segment, write, flags);
        }
    }
    return reason;
}

/* -- Memory windows -----------------------------------------------------------------------------*/

/* (locked) It is in the NIC's table under its key, which a bind changes; and it keeps the region
 * that it is bound to. */
static void verbs_mw_check(struct live *live, const struct verbs_mw *mw)
{
    const struct region *core = &mw->core;
    CHECK(core->kind != REGION_MEMORY && core->pd->users > 0);
    CHECK(region_find(nic_regions(live_nic(live)), core->key) == core);
    CHECK(core->bound == NULL || core->bound->windows > 0);
    CHECK(core->owner == NULL || core->kind == REGION_WINDOW_TYPE_2);
}

struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
        return fail(EINVAL);
    }
    struct verbs_mw *mw = object_make(pd->context, sizeof(*mw));
    if (mw == NULL) {
        return NULL;
    }
    struct live *live = live_of(pd->context);
    /* All of it before others see it in the table. */
    mw->ibv = (struct ibv_mw){.context = pd->context, .pd = pd, .type = type};
    live_lock(live);
    const enum status status =
        window_add(nic_regions(live_nic(live)), pd_core(pd),
                   type == IBV_MW_TYPE_1 ? REGION_WINDOW_TYPE_1 : REGION_WINDOW_TYPE_2, &mw->core);
    INVARIANTS(status == STATUS_OK ? verbs_mw_check(live, mw) : (void)0);
    live_unlock(live);
    if (status != STATUS_OK) {
        object_free(pd->context, mw);
        return fail(status_errno(status));
    }
    mw->ibv.rkey = mw->ibv.handle = mw->core.key;
    return &mw->ibv;
}

int mw_dealloc(struct ibv_mw *ibv)
{
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(verbs_mw_check(live, mw_of(ibv)));
    window_remove(nic_regions(live_nic(live)), &mw_of(ibv)->core);
    live_unlock(live);
    object_free(ibv->context, mw_of(ibv));
    return 0;
}
