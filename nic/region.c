/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/region.h"

#include <string.h>

/* Bits a window may be bound with, and bits a region may be registered with. */
#define ACCESS_WINDOW (ACCESS_REMOTE | ACCESS_ZERO_BASED)
#define ACCESS_REGION (ACCESS_WINDOW | ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_ON_DEMAND)

/* -- The table ----------------------------------------------------------------------------------*/

/* The part of a key that stays; the low 8 bits change with each bind of a window. */
static uint32_t key_index(uint32_t key)
{
    return key >> 8;
}

/* At most half of the slots are taken, which keeps a search at one or two steps. */
size_t region_table_slots(uint32_t count_max)
{
    size_t slots = 2;
    while (slots < 2 * (size_t)count_max) {
        slots *= 2;
    }
    return slots;
}

void region_table_init(struct region_table *table, uint32_t count_max, struct region **slots,
                       struct prng *prng)
{
    CHECK(count_max <= REGION_COUNT_MAX);
    const size_t slot_count = region_table_slots(count_max);
    memset(slots, 0, slot_count * sizeof(struct region *));
    *table = (struct region_table){
        .slots = slots,
        .mask = (uint32_t)(slot_count - 1),
        .count_max = count_max,
        .key_bits = 32,
        .prng = prng,
    };
}

/* Where the entry with the upper bits of `key` is, or else the empty slot where it belongs. */
static uint32_t slot_of(const struct region_table *table, uint32_t key)
{
    uint32_t slot = key_index(key) & table->mask;
    while (table->slots[slot] != NULL && key_index(table->slots[slot]->key) != key_index(key)) {
        slot = (slot + 1) & table->mask;
    }
    return slot;
}

/* Everything from `slot` on to the end of its chain is found by its key. */
static void check_chain(const struct region_table *table, uint32_t slot)
{
    CHECK(table->count <= table->count_max && table->count <= (table->mask + 1) / 2);
    CHECK(table->owned_windows <= table->count);
    for (slot &= table->mask; table->slots[slot] != NULL; slot = (slot + 1) & table->mask) {
        CHECK(slot_of(table, table->slots[slot]->key) == slot);
    }
}

static void check_window(const struct region *window)
{
    const struct region *region = window->bound;
    CHECK(window->windows == 0 && !window->whole_space);
    if (region == NULL) {
        CHECK(window->bytes == 0 && window->access == 0 && window->owner == NULL);
        return;
    }
    CHECK(region->kind == REGION_MEMORY && region->windows > 0 && region->pd == window->pd);
    CHECK((window->kind == REGION_WINDOW_TYPE_2) == (window->owner != NULL));
    CHECK((window->access & ~(ACCESS_WINDOW | ACCESS_ON_DEMAND)) == 0);
    /* A region that was shut has no bytes left, whatever was bound to it. */
    const uint64_t offset = window->memory - region->memory;
    CHECK(region->bytes == 0 ||
          (offset <= region->bytes && window->bytes <= region->bytes - offset));
}

/* The table finds the region by its key, and its fields agree with one another. */
static void region_check(const struct region_table *table, const struct region *region)
{
    CHECK(table->slots[slot_of(table, region->key)] == region);
    CHECK(region->bytes <= UINT64_MAX - region->start);
    CHECK(region->pd->users > 0);
    if (region->kind != REGION_MEMORY) {
        check_window(region);
        return;
    }
    CHECK(region->bound == NULL && region->owner == NULL);
    CHECK(!(region->access & ACCESS_REMOTE_WRITES) || (region->access & ACCESS_LOCAL_WRITE));
    CHECK(!region->null || region->bytes == 0);
}

/* Draws a key and enters the region under it. Upper bits of 0 are left out, so that neither 0 nor
 * any small number a program might pass by mistake is ever a key. */
static void enter(struct region_table *table, struct region *region)
{
    CHECK(table->count < table->count_max);
    uint32_t key, slot;
    do {
        key = (uint32_t)(prng_next(table->prng) >> (64 - table->key_bits));
        slot = slot_of(table, key);
    } while (key_index(key) == 0 || table->slots[slot] != NULL);
    region->key = key;
    table->slots[slot] = region;
    table->count++;
    INVARIANTS(check_chain(table, slot));
}

/* Takes the region out and closes the gap: every later entry of the chain that would no longer be
 * found moves into the hole, and leaves one of its own. */
static void leave(struct region_table *table, const struct region *region)
{
    uint32_t hole = slot_of(table, region->key);
    CHECK(table->slots[hole] == region);
    CHECK(table->count > 0);
    const uint32_t left = hole;
    uint32_t slot = hole;
    for (;;) {
        slot = (slot + 1) & table->mask;
        if (table->slots[slot] == NULL) {
            break;
        }
        const uint32_t from_home = (slot - key_index(table->slots[slot]->key)) & table->mask;
        const uint32_t from_hole = (slot - hole) & table->mask;
        if (from_home >= from_hole) {
            table->slots[hole] = table->slots[slot];
            hole = slot;
        }
    }
    table->slots[hole] = NULL;
    table->count--;
    INVARIANTS(check_chain(table, left));
    INVARIANTS(check_chain(table, hole + 1));
}

struct region *region_find(const struct region_table *table, uint32_t key)
{
    struct region *region = table->slots[slot_of(table, key)];
    return region != NULL && region->key == key ? region : NULL;
}

struct region *region_find_local(const struct region_table *table, uint32_t lkey)
{
    return region_find(table, lkey ^ table->lkey_bits);
}

struct region *region_find_generation(const struct region_table *table, uint32_t key)
{
    return table->slots[slot_of(table, key)];
}

/* -- Regions ------------------------------------------------------------------------------------*/

static uint64_t start_of(const struct region_request *request)
{
    return request->access & ACCESS_ZERO_BASED ? 0 : request->start;
}

static bool request_valid(const struct region_request *request)
{
    if (request->access & ~ACCESS_REGION) {
        return false;
    }
    /* A program cannot let peers write where it may not write itself (ibv_reg_mr). */
    if ((request->access & ACCESS_REMOTE_WRITES) && !(request->access & ACCESS_LOCAL_WRITE)) {
        return false;
    }
    /* The memory behind an address of such a region may be exchanged at any time. */
    if ((request->access & ACCESS_FLUSH_PERSISTENT) &&
        (request->whole_space || (request->access & ACCESS_ON_DEMAND))) {
        return false;
    }
    return request->whole_space || (request->bytes <= UINT64_MAX - request->address &&
                                    request->bytes <= UINT64_MAX - start_of(request));
}

static void describe(struct region *region, const struct region_request *request)
{
    region->whole_space = request->whole_space;
    region->access = request->access;
    if (request->whole_space) {
        region->access |= ACCESS_ON_DEMAND;
        region->start = 0;
        region->memory = 0;
        region->bytes = UINT64_MAX;
    } else {
        region->start = start_of(request);
        region->memory = request->address;
        region->bytes = request->bytes;
    }
}

enum status region_add(struct region_table *table, struct pd *pd,
                       const struct region_request *request, struct region *region)
{
    if (!request_valid(request)) {
        return STATUS_INVALID;
    }
    if (table->count == table->count_max) {
        return STATUS_FULL;
    }
    *region = (struct region){.kind = REGION_MEMORY, .pd = pd};
    describe(region, request);
    enter(table, region);
    pd->users++;
    INVARIANTS(region_check(table, region));
    return STATUS_OK;
}

enum status region_add_null(struct region_table *table, struct pd *pd, uint64_t memory,
                            struct region *region)
{
    if (table->count == table->count_max) {
        return STATUS_FULL;
    }
    /* The region has no bytes and is `null`, which brings every access to null_segment. */
    *region = (struct region){.kind = REGION_MEMORY,
                              .pd = pd,
                              .null = true,
                              .memory = memory,
                              .access = ACCESS_LOCAL_WRITE};
    enter(table, region);
    pd->users++;
    return STATUS_OK;
}

enum status region_remove(struct region_table *table, struct region *region)
{
    INVARIANTS(region_check(table, region));
    CHECK(region->kind == REGION_MEMORY);
    if (region->windows != 0) {
        return STATUS_BUSY;
    }
    leave(table, region);
    region->pd->users--;
    return STATUS_OK;
}

enum status region_change(struct region *region, struct pd *pd,
                          const struct region_request *request, bool change_translation,
                          bool change_pd, bool change_access)
{
    CHECK(region->kind == REGION_MEMORY);
    struct region_request wanted = {
        .address = region->memory,
        .bytes = region->bytes,
        .start = region->start,
        .whole_space = region->whole_space,
    };
    if (change_translation) {
        wanted = *request;
    }
    wanted.access = change_access ? request->access : region->access;
    if ((!change_translation && !change_pd && !change_access) || !request_valid(&wanted)) {
        return STATUS_INVALID;
    }
    if (region->windows != 0) {
        return STATUS_BUSY;
    }
    describe(region, &wanted);
    if (change_pd) {
        region->pd->users--;
        region->pd = pd;
        pd->users++;
    }
    return STATUS_OK;
}

/* -- Windows ------------------------------------------------------------------------------------*/

static void unbind(struct region_table *table, struct region *window)
{
    INVARIANTS(region_check(table, window));
    if (window->bound == NULL) {
        return;
    }
    CHECK(window->bound->windows > 0);
    window->bound->windows--;
    if (window->kind == REGION_WINDOW_TYPE_2) {
        CHECK(table->owned_windows > 0);
        table->owned_windows--;
    }
    window->bound = NULL;
    window->owner = NULL;
    window->start = 0;
    window->memory = 0;
    window->bytes = 0;
    window->access = 0;
}

enum status window_add(struct region_table *table, struct pd *pd, enum region_kind kind,
                       struct region *window)
{
    CHECK(kind != REGION_MEMORY);
    if (table->count == table->count_max) {
        return STATUS_FULL;
    }
    *window = (struct region){.kind = kind, .pd = pd};
    enter(table, window);
    pd->users++;
    INVARIANTS(region_check(table, window));
    return STATUS_OK;
}

void window_remove(struct region_table *table, struct region *window)
{
    CHECK(window->kind != REGION_MEMORY);
    unbind(table, window);
    leave(table, window);
    window->pd->users--;
}

void region_shut(struct region_table *table, struct region *region)
{
    if (region->kind != REGION_MEMORY) {
        unbind(table, region);
        return;
    }
    region->whole_space = false;
    region->access = 0;
    region->bytes = 0;
    INVARIANTS(region_check(table, region));
}

/* Does the region allow the window (IBTA C10-73 to C10-75)? A zero-based region has no addresses
 * that a window on it could use. */
static bool region_opens(const struct region *region, const struct window_bind *bind)
{
    if (region == NULL || region->pd != bind->window->pd || !(region->access & ACCESS_MW_BIND) ||
        (region->access & ACCESS_ZERO_BASED)) {
        return false;
    }
    if ((bind->access & ACCESS_REMOTE_WRITES) && !(region->access & ACCESS_LOCAL_WRITE)) {
        return false;
    }
    /* A window grants a FLUSH only if its region does. */
    if (bind->access & ACCESS_FLUSH & ~region->access) {
        return false;
    }
    return reach_inside(region->start, region->bytes, bind->address, bind->bytes);
}

static bool bind_allowed(const struct window_bind *bind, const struct pd *pd)
{
    const struct region *window = bind->window;
    if (window->pd != pd || key_index(window->key) != key_index(bind->key) ||
        (bind->access & ~ACCESS_WINDOW)) {
        return false;
    }
    switch (window->kind) {
    case REGION_WINDOW_TYPE_1:
        /* A type 1 window is never zero-based (o10-36.2.2), and may be bound over and over. */
        return !(bind->access & ACCESS_ZERO_BASED) &&
               (bind->bytes == 0 || region_opens(bind->region, bind));
    case REGION_WINDOW_TYPE_2:
        /* Only an invalidate unbinds a type 2 window: not a second bind (o10-37.2.30), nor an empty
         * one (o10-37.2.40). */
        return window->bound == NULL && bind->bytes != 0 && region_opens(bind->region, bind);
    case REGION_MEMORY: break;
    }
    UNREACHABLE("a bind of what is no window");
}

bool window_bind_execute(struct region_table *table, const struct window_bind *bind,
                         const struct qp *qp, const struct pd *pd)
{
    if (!bind_allowed(bind, pd)) {
        return false;
    }
    struct region *window = bind->window;
    struct region *region = bind->region;
    unbind(table, window);
    window->key = bind->key;
    if (bind->bytes == 0) {
        return true;
    }
    window->bound = region;
    region->windows++;
    if (window->kind == REGION_WINDOW_TYPE_2) {
        CHECK(qp != NULL);
        window->owner = qp;
        table->owned_windows++;
    }
    window->start = bind->access & ACCESS_ZERO_BASED ? 0 : bind->address;
    window->bytes = bind->bytes;
    window->memory = region->memory + (bind->address - region->start);
    window->access = bind->access | (region->access & ACCESS_ON_DEMAND);
    INVARIANTS(region_check(table, window));
    return true;
}

bool window_invalidate(struct region_table *table, uint32_t key, const struct qp *qp,
                       const struct pd *pd)
{
    CHECK(qp != NULL || pd != NULL);
    struct region *window = region_find(table, key);
    if (window == NULL || window->kind != REGION_WINDOW_TYPE_2 || window->bound == NULL) {
        return false;
    }
    if ((qp != NULL && window->owner != qp) || (pd != NULL && window->pd != pd)) {
        return false;
    }
    unbind(table, window);
    return true;
}

void window_forget_owner(struct region_table *table, const struct qp *qp)
{
    CHECK(qp != NULL);
    for (uint32_t slot = 0; slot <= table->mask && table->owned_windows > 0; slot++) {
        struct region *window = table->slots[slot];
        if (window != NULL && window->owner == qp) {
            unbind(table, window);
        }
    }
}

/* -- Judging ------------------------------------------------------------------------------------*/

/* A packet is shorter than REGION_NULL_BYTES. A longer range is only judged, never moved at once,
 * so it gets no segment. */
static struct segment null_segment(uint64_t memory, const struct reach_access *asked)
{
    if (asked->bytes > REGION_NULL_BYTES) {
        return (struct segment){0};
    }
    return (struct segment){
        .address = memory + (asked->rights & ACCESS_LOCAL_WRITE ? 0 : REGION_NULL_BYTES),
        .bytes = asked->bytes,
    };
}

/* The segment of an access that was allowed. */
static struct segment segment_of(const struct reach_region *region,
                                 const struct reach_access *asked)
{
    if (UNLIKELY(asked->bytes == 0)) {
        return (struct segment){0};
    }
    if (UNLIKELY(region->null)) {
        return null_segment(region->memory, asked);
    }
    return (struct segment){
        .address = reach_memory(region, asked->address),
        .bytes = asked->bytes,
        .may_fault = (region->access & ACCESS_ON_DEMAND) != 0,
    };
}

enum reach_verdict region_judge(const struct region_table *table, uint32_t key, const struct pd *pd,
                                const struct qp *qp, uint64_t address, uint32_t bytes,
                                uint32_t access, struct segment *segment)
{
    const struct region *region =
        qp == NULL ? region_find_local(table, key) : region_find(table, key);
    const struct reach_region view =
        LIKELY(region != NULL) ? region_view(region) : (struct reach_region){0};
    const struct reach_user user = {.domain = (uintptr_t)pd, .name = (uintptr_t)qp};
    const struct reach_access asked = {.address = address, .bytes = bytes, .rights = access};
    const enum reach_verdict verdict = reach_judge_key(&user, &view, &asked);
    if (LIKELY(verdict == REACH_ALLOWED)) {
        *segment = segment_of(&view, &asked);
    }
    return verdict;
}

enum reach_verdict region_judge_flush(const struct region_table *table, uint32_t key,
                                      const struct pd *pd, const struct qp *qp,
                                      const struct region_flush *flush, struct region_range *range)
{
    const struct region *region = region_find(table, key);
    const struct reach_region view =
        region != NULL ? region_view(region) : (struct reach_region){0};
    const struct reach_user user = {.domain = (uintptr_t)pd, .name = (uintptr_t)qp};
    const struct reach_access asked = {.address = flush->whole ? view.start : flush->address,
                                       .bytes = flush->whole ? 0 : flush->bytes,
                                       .rights = flush->access};
    const enum reach_verdict verdict = reach_judge_named(&user, &view, &asked);
    if (verdict == REACH_ALLOWED) {
        *range = (struct region_range){.address = reach_memory(&view, asked.address),
                                       .bytes = flush->whole ? view.bytes : flush->bytes};
    }
    return verdict;
}
