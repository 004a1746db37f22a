/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal       Memory is reached exactly as far as regions and windows open it, keys are found as
 *            long as they live and no longer, and every count of users is right at any time.
 * Method     Random calls on a small table, beside a model that searches linearly and judges by
 *            tests/reach_model.h. Ranges lie at both ends of the address space and accesses around
 *            the ends of ranges. Counters show that every case was seen. Then a large table, and
 *            the life of one window told in numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nic/region.h"
#include "tests/reach_model.h"

enum {
    ENTRIES = 10,
    PDS = 2,
    QPS = 3,
    SLOTS_MAX = 64,
    SEEDS = 4000,
    STEPS = 150,
    STATUSES = STATUS_DENIED + 1,
    KINDS = REGION_WINDOW_TYPE_2 + 1,
};

#define REMOTE_WRITES (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)
#define REMOTE        (REMOTE_WRITES | ACCESS_REMOTE_READ)
#define FLUSH         (ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT)

/* -- The model --------------------------------------------------------------------------------- */

struct entry {
    bool live;
    enum region_kind kind;
    uint32_t key;
    int pd;
    /* Regions: what the program asked for. Windows: what the bind asked for. */
    struct region_request asked;
    int bound; /* Windows: entry of the region, or NONE. */
    int owner; /* Type 2 windows: queue pair, or NONE. */
};

struct world {
    struct prng prng, keys;
    struct region_table table;
    struct region *slots[SLOTS_MAX];
    struct pd pds[PDS];
    struct region regions[ENTRIES];
    struct entry model[ENTRIES];
    uint32_t old_keys[ENTRIES];
    uint32_t count;
};

/* How often each case was seen, in all runs together. */
static struct {
    uint32_t judged[KINDS][REACH_VERDICT_COUNT], flushed[KINDS][REACH_VERDICT_COUNT];
    uint32_t added[STATUSES], removed[STATUSES], changed[STATUSES], windows_added[STATUSES];
    uint32_t bound[KINDS][2], unbound, invalidated[2], forgotten, faulting, wrapped;
} seen;

static const char qp_places[QPS];

static const struct qp *qp_of(int qp)
{
    return qp == NONE ? NULL : (const struct qp *)(const void *)&qp_places[qp];
}

static int draw(struct world *world, int bound)
{
    return (int)prng_below(&world->prng, (uint64_t)bound);
}

static bool request_good(const struct region_request *request)
{
    const wide end = (wide)1 << 64;
    const uint64_t start = request->access & ACCESS_ZERO_BASED ? 0 : request->start;
    if ((request->access & ~0x37fu) != 0) {
        return false;
    }
    const bool comes_and_goes = request->whole_space || (request->access & ACCESS_ON_DEMAND) != 0;
    if ((request->access & ACCESS_FLUSH_PERSISTENT) != 0 && comes_and_goes) {
        return false;
    }
    if ((request->access & REMOTE_WRITES) != 0 && (request->access & ACCESS_LOCAL_WRITE) == 0) {
        return false;
    }
    return request->whole_space ||
           ((wide)request->address + request->bytes < end && (wide)start + request->bytes < end);
}

static struct modelled_key modelled(const struct world *world, const struct entry *entry)
{
    struct modelled_key key = {0};
    if (entry != NULL) {
        key = (struct modelled_key){true, entry->kind, entry->pd, entry->owner, entry->asked, NULL};
        key.region = entry->bound == NONE ? NULL : &world->model[entry->bound].asked;
    }
    return key;
}

static uint32_t windows_of(const struct world *world, int region)
{
    uint32_t count = 0;
    for (int i = 0; i < ENTRIES; i++) {
        count += world->model[i].live && world->model[i].bound == region;
    }
    return count;
}

/* -- Random choices ---------------------------------------------------------------------------- */

static uint64_t random_address(struct world *world)
{
    static const uint64_t places[] = {0, 0x1000, 1ull << 63, UINT64_MAX - 200};
    return places[draw(world, COUNT_OF(places))] + (uint64_t)draw(world, 64);
}

static uint32_t random_access(struct world *world)
{
    static const uint32_t accesses[] = {
        0,
        ACCESS_LOCAL_WRITE,
        ACCESS_LOCAL_WRITE | REMOTE | ACCESS_MW_BIND,
        ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_MW_BIND | ACCESS_ON_DEMAND,
        ACCESS_REMOTE_READ | ACCESS_MW_BIND,
    };
    const uint32_t flush = draw(world, 2) ? (uint32_t)draw(world, 4) << 8 : 0;
    return flush | (draw(world, 6) == 0 ? (uint32_t)draw(world, 0x80 + 20)
                                        : accesses[draw(world, COUNT_OF(accesses))]);
}

static struct region_request random_request(struct world *world)
{
    struct region_request request = {
        .address = random_address(world),
        .bytes = (uint64_t)draw(world, 100),
        .access = random_access(world),
        .whole_space = draw(world, 8) == 0,
    };
    if (draw(world, 20) == 0) {
        request.bytes = UINT64_MAX - random_address(world);
    }
    request.start = draw(world, 2) == 0 ? request.address : random_address(world);
    return request;
}

/* The first from a random place on that is live and of that kind; NONE if there is none. */
static int random_live(struct world *world, bool window)
{
    const int start = draw(world, ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
        const struct entry *entry = &world->model[(start + i) % ENTRIES];
        if (entry->live && (entry->kind != REGION_MEMORY) == window) {
            return (start + i) % ENTRIES;
        }
    }
    return NONE;
}

/* Mostly the first, so that objects usually get along. */
static int random_pd(struct world *world)
{
    return draw(world, 4) == 0 ? draw(world, PDS) : 0;
}

static int random_idle(struct world *world)
{
    const int i = draw(world, ENTRIES);
    return world->model[i].live ? NONE : i;
}

/* -- Calls, on both sides ---------------------------------------------------------------------- */

static void note_key(struct world *world, int i)
{
    struct entry *entry = &world->model[i];
    const uint32_t key = world->regions[i].key;
    assert_int_not_equal(key >> 8, 0);
    for (int other = 0; other < ENTRIES; other++) {
        if (other != i && world->model[other].live) {
            assert_int_not_equal(key >> 8, world->model[other].key >> 8);
        }
    }
    world->old_keys[i] = entry->key;
    entry->key = key;
}

static void add_region(struct world *world)
{
    const int i = random_idle(world);
    if (i == NONE) {
        return;
    }
    const struct region_request request = random_request(world);
    const int pd = random_pd(world);
    const enum status expected = !request_good(&request)                  ? STATUS_INVALID
                                 : world->count == world->table.count_max ? STATUS_FULL
                                                                          : STATUS_OK;
    assert_int_equal(region_add(&world->table, &world->pds[pd], &request, &world->regions[i]),
                     expected);
    seen.added[expected]++;
    if (expected == STATUS_OK) {
        world->model[i] = (struct entry){true, REGION_MEMORY, 0, pd, request, NONE, NONE};
        world->count++;
        note_key(world, i);
    }
}

static void remove_region(struct world *world)
{
    const int i = random_live(world, false);
    if (i == NONE) {
        return;
    }
    const enum status expected = windows_of(world, i) != 0 ? STATUS_BUSY : STATUS_OK;
    assert_int_equal(region_remove(&world->table, &world->regions[i]), expected);
    seen.removed[expected]++;
    if (expected == STATUS_OK) {
        world->model[i].live = false;
        world->count--;
    }
}

static void change_region(struct world *world)
{
    const int i = random_live(world, false);
    if (i == NONE) {
        return;
    }
    struct entry *entry = &world->model[i];
    const struct region_request request = random_request(world);
    const bool translation = draw(world, 2), domain = draw(world, 2), access = draw(world, 2);
    const int pd = random_pd(world);
    struct region_request wanted = entry->asked;
    /* The range stays as it is, not the start that a zero-based range left unused. */
    wanted.start = (uint64_t)model_start(&wanted);
    if (wanted.whole_space) {
        wanted.access |= ACCESS_ON_DEMAND;
    }
    const uint32_t old_access = wanted.access;
    if (translation) {
        wanted = request;
    }
    wanted.access = access ? request.access : old_access;
    const struct region before = world->regions[i];
    enum status expected = windows_of(world, i) != 0 ? STATUS_BUSY : STATUS_OK;
    if (!request_good(&wanted) || (!translation && !domain && !access)) {
        expected = STATUS_INVALID;
    }
    assert_int_equal(region_change(&world->regions[i], domain ? &world->pds[pd] : NULL,
                                   translation || access ? &request : NULL, translation, domain,
                                   access),
                     expected);
    seen.changed[expected]++;
    if (expected != STATUS_OK) {
        assert_memory_equal(&before, &world->regions[i], sizeof(before));
        return;
    }
    entry->asked = wanted;
    entry->pd = domain ? pd : entry->pd;
    assert_int_equal(world->regions[i].key, before.key);
}

static void add_window(struct world *world)
{
    const int i = random_idle(world);
    if (i == NONE) {
        return;
    }
    const int pd = random_pd(world);
    const enum region_kind kind = draw(world, 2) ? REGION_WINDOW_TYPE_1 : REGION_WINDOW_TYPE_2;
    const enum status expected = world->count == world->table.count_max ? STATUS_FULL : STATUS_OK;
    assert_int_equal(window_add(&world->table, &world->pds[pd], kind, &world->regions[i]),
                     expected);
    seen.windows_added[expected]++;
    if (expected == STATUS_OK) {
        world->model[i] = (struct entry){.live = true, .kind = kind, .pd = pd};
        world->model[i].bound = NONE;
        world->model[i].owner = NONE;
        world->count++;
        note_key(world, i);
    }
}

static void remove_window(struct world *world)
{
    const int i = random_live(world, true);
    if (i == NONE) {
        return;
    }
    window_remove(&world->table, &world->regions[i]);
    world->model[i].live = false;
    world->count--;
}

/* A range near that of the region, which is usually inside. */
static struct window_bind random_bind(struct world *world, int i, int region)
{
    static const uint32_t accesses[] = {ACCESS_REMOTE_READ,
                                        ACCESS_REMOTE_WRITE,
                                        REMOTE,
                                        ACCESS_REMOTE_READ | ACCESS_ZERO_BASED,
                                        ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL,
                                        FLUSH};
    struct window_bind bind = {
        .window = &world->regions[i],
        .region = region == NONE ? NULL : &world->regions[region],
        .address = random_address(world),
        .bytes = (uint64_t)draw(world, 24),
        .access =
            draw(world, 8) == 0 ? random_access(world) : accesses[draw(world, COUNT_OF(accesses))],
        .key = (world->model[i].key & ~0xffu) | (uint32_t)draw(world, 256),
    };
    if (region != NONE && draw(world, 4) != 0) {
        const struct region_request *asked = &world->model[region].asked;
        bind.address =
            (uint64_t)model_start(asked) + (uint64_t)draw(world, 16) - (draw(world, 8) == 0);
    }
    if (draw(world, 16) == 0) {
        bind.key ^= 1u << (8 + draw(world, 24));
    }
    if (draw(world, 16) == 0) {
        bind.bytes = UINT64_MAX - (uint64_t)draw(world, 100);
    }
    return bind;
}

static bool model_bind_good(const struct world *world, const struct entry *window, int region,
                            const struct window_bind *bind, int pd)
{
    const bool type_1 = window->kind == REGION_WINDOW_TYPE_1;
    if (window->pd != pd || (bind->key ^ window->key) > 0xff ||
        (bind->access & ~(uint32_t)(REMOTE | FLUSH | ACCESS_ZERO_BASED)) != 0) {
        return false;
    }
    if (type_1 ? (bind->access & ACCESS_ZERO_BASED) != 0
               : window->bound != NONE || bind->bytes == 0) {
        return false;
    }
    if (bind->bytes == 0) {
        return true;
    }
    if (region == NONE) {
        return false;
    }
    const struct entry *opened = &world->model[region];
    const uint32_t writes = bind->access & REMOTE_WRITES;
    wide memory;
    return opened->pd == window->pd && (opened->asked.access & ACCESS_MW_BIND) != 0 &&
           (opened->asked.access & ACCESS_ZERO_BASED) == 0 &&
           (writes == 0 || (opened->asked.access & ACCESS_LOCAL_WRITE) != 0) &&
           (bind->access & FLUSH & ~opened->asked.access) == 0 &&
           model_translates(&opened->asked, bind->address, bind->bytes, &memory);
}

static void bind_window(struct world *world)
{
    const int i = random_live(world, true);
    if (i == NONE) {
        return;
    }
    struct entry *window = &world->model[i];
    const int region = random_live(world, false);
    const struct window_bind bind = random_bind(world, i, region);
    const int pd = draw(world, 8) == 0 ? draw(world, PDS) : window->pd;
    const int qp = draw(world, QPS);
    const bool expected = model_bind_good(world, window, region, &bind, pd);
    const struct region before = world->regions[i];
    assert_int_equal(window_bind_execute(&world->table, &bind, qp_of(qp), &world->pds[pd]),
                     expected);
    seen.bound[window->kind][expected]++;
    if (!expected) {
        assert_memory_equal(&before, &world->regions[i], sizeof(before));
        return;
    }
    seen.unbound += bind.bytes == 0 && window->bound != NONE;
    note_key(world, i);
    assert_int_equal(window->key, bind.key);
    window->bound = bind.bytes == 0 ? NONE : region;
    window->owner = window->kind == REGION_WINDOW_TYPE_2 ? qp : NONE;
    window->asked = (struct region_request){
        .address = bind.address, .bytes = bind.bytes, .access = bind.access};
}

/* A live key, one that was alive before, or one nobody drew. */
static uint32_t random_key(struct world *world)
{
    const int window = random_live(world, true);
    const int i = window != NONE && draw(world, 2) ? window : draw(world, ENTRIES);
    switch (draw(world, 12)) {
    case 0: return world->old_keys[i];
    case 1: return world->model[i].key ^ 1u << draw(world, 32);
    case 2: return (uint32_t)prng_next(&world->prng);
    case 3: return (uint32_t)draw(world, 512);
    default: return world->model[i].key;
    }
}

static struct entry *model_find(struct world *world, uint32_t key)
{
    for (int i = 0; i < ENTRIES; i++) {
        if (world->model[i].live && world->model[i].key == key) {
            return &world->model[i];
        }
    }
    return NULL;
}

static void invalidate_window(struct world *world)
{
    const int by = draw(world, 3); /* Remote, local on a queue pair, local. */
    const uint32_t key = random_key(world);
    struct entry *window = model_find(world, key);
    const bool owned = window != NULL && window->owner != NONE;
    const int some_qp = owned && draw(world, 2) ? window->owner : draw(world, QPS);
    const int qp = by == 2 ? NONE : some_qp;
    const int pd = by == 0 ? NONE : random_pd(world);
    const bool expected = window != NULL && window->kind == REGION_WINDOW_TYPE_2 &&
                          window->bound != NONE && (qp == NONE || window->owner == qp) &&
                          (pd == NONE || window->pd == pd);
    assert_int_equal(
        window_invalidate(&world->table, key, qp_of(qp), pd == NONE ? NULL : &world->pds[pd]),
        expected);
    seen.invalidated[expected]++;
    if (expected) {
        window->bound = NONE;
        window->owner = NONE;
    }
}

static void forget_owner(struct world *world)
{
    const int qp = draw(world, QPS);
    window_forget_owner(&world->table, qp_of(qp));
    for (int i = 0; i < ENTRIES; i++) {
        struct entry *entry = &world->model[i];
        if (entry->live && entry->kind == REGION_WINDOW_TYPE_2 && entry->owner == qp) {
            entry->bound = NONE;
            entry->owner = NONE;
            seen.forgotten++;
        }
    }
}

/* An address at one end of what the entry opens, or anywhere. */
static uint64_t random_target(struct world *world, const struct entry *entry)
{
    if (entry == NULL || draw(world, 8) == 0) {
        return draw(world, 2) ? random_address(world) : prng_next(&world->prng);
    }
    const struct region_request *asked = &entry->asked;
    const bool region = entry->kind == REGION_MEMORY;
    const uint64_t opened = region ? (uint64_t)model_start(asked) : asked->address;
    const uint64_t start = asked->access & ACCESS_ZERO_BASED ? 0 : opened;
    const uint64_t around = (uint64_t)draw(world, 12) - 4;
    return start + around + (draw(world, 2) ? asked->bytes : 0);
}

static void judge(struct world *world)
{
    static const uint32_t accesses[] = {0,
                                        ACCESS_LOCAL_WRITE,
                                        ACCESS_REMOTE_READ,
                                        ACCESS_REMOTE_WRITE,
                                        ACCESS_REMOTE_ATOMIC,
                                        ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE};
    const uint32_t key = random_key(world);
    struct entry *entry = model_find(world, key);
    const uint64_t address = random_target(world, entry);
    uint32_t bytes = (uint32_t)draw(world, 12);
    if (draw(world, 16) == 0) {
        bytes = UINT32_MAX - (uint32_t)draw(world, 100);
    }
    const uint32_t access = accesses[draw(world, COUNT_OF(accesses))];
    const int pd = entry != NULL && draw(world, 4) != 0 ? entry->pd : draw(world, PDS);
    const int qp = entry != NULL && entry->owner != NONE && draw(world, 2)
                       ? entry->owner
                       : draw(world, QPS + 1) - 1;
    const struct segment untouched = {.address = 0x55, .bytes = 0x66, .may_fault = true};
    struct segment expected_segment = untouched, segment = untouched;
    const struct modelled_access asked = {.address = address, .bytes = bytes, .rights = access};
    const struct modelled_key named = modelled(world, entry);
    const enum reach_verdict expected = model_judge_key(&named, pd, qp, &asked, &expected_segment);
    if (bytes != 0 && entry != NULL) {
        seen.judged[entry->kind][expected]++;
        seen.wrapped += address + bytes < address;
        seen.faulting += expected == REACH_ALLOWED && expected_segment.may_fault;
    }
    assert_int_equal(region_judge(&world->table, key, &world->pds[pd], qp_of(qp), address, bytes,
                                  access, &segment),
                     expected);
    assert_int_equal(segment.address, expected_segment.address);
    assert_int_equal(segment.bytes, expected_segment.bytes);
    assert_int_equal(segment.may_fault, expected_segment.may_fault);
}

/* The key of a FLUSH is judged for no bytes as well. */
static void judge_flush(struct world *world)
{
    const uint32_t key = random_key(world);
    struct entry *entry = model_find(world, key);
    const struct region_flush asked = {.address = random_target(world, entry),
                                       .bytes = (uint32_t)draw(world, 3) * (uint32_t)draw(world, 8),
                                       .access = (1 + (uint32_t)draw(world, 3)) << 8,
                                       .whole = draw(world, 2)};
    const int pd = entry != NULL && draw(world, 4) != 0 ? entry->pd : draw(world, PDS);
    const int qp =
        entry != NULL && entry->owner != NONE && draw(world, 4) ? entry->owner : draw(world, QPS);
    struct region_range expected_range = {0x55, 0x66}, range = expected_range;
    const struct modelled_key named = modelled(world, entry);
    const enum reach_verdict expected = model_judge_flush(&named, pd, qp, &asked, &expected_range);
    if (entry != NULL) {
        seen.flushed[entry->kind][expected]++;
    }
    assert_int_equal(
        region_judge_flush(&world->table, key, &world->pds[pd], qp_of(qp), &asked, &range),
        expected);
    assert_int_equal(range.address, expected_range.address);
    assert_int_equal(range.bytes, expected_range.bytes);
}

/* -- Invariants between any two calls ---------------------------------------------------------- */

/* No empty slot stands between an entry and its home, or it would not be found. */
static void check_chains(const struct region_table *table)
{
    uint32_t entries = 0, owned = 0;
    for (uint32_t slot = 0; slot <= table->mask; slot++) {
        const struct region *region = table->slots[slot];
        if (region == NULL) {
            continue;
        }
        entries++;
        owned += region->owner != NULL;
        for (uint32_t at = region->key >> 8 & table->mask; at != slot;
             at = (at + 1) & table->mask) {
            assert_non_null(table->slots[at]);
        }
        assert_ptr_equal(region_find(table, region->key), region);
    }
    assert_int_equal(entries, table->count);
    assert_int_equal(owned, table->owned_windows);
}

static void check_world(struct world *world)
{
    uint32_t users[PDS] = {0};
    assert_int_equal(world->table.count, world->count);
    check_chains(&world->table);
    for (int i = 0; i < ENTRIES; i++) {
        const struct entry *entry = &world->model[i];
        struct entry *old = model_find(world, world->old_keys[i]);
        assert_ptr_equal(region_find(&world->table, world->old_keys[i]),
                         old == NULL ? NULL : &world->regions[old - world->model]);
        if (!entry->live) {
            assert_null(region_find(&world->table, entry->key));
            continue;
        }
        assert_ptr_equal(region_find(&world->table, entry->key), &world->regions[i]);
        assert_int_equal(world->regions[i].windows, windows_of(world, i));
        users[entry->pd]++;
    }
    for (int i = 0; i < PDS; i++) {
        assert_int_equal(world->pds[i].users, users[i]);
    }
}

static void step(struct world *world)
{
    switch (draw(world, 24)) {
    case 0:
    case 1:
    case 2: add_region(world); break;
    case 3: remove_region(world); break;
    case 4: change_region(world); break;
    case 5:
    case 6: add_window(world); break;
    case 7: remove_window(world); break;
    case 8: invalidate_window(world); break;
    case 9: forget_owner(world); break;
    case 10:
    case 11:
    case 12:
    case 13: bind_window(world); break;
    default:
        for (int i = 0; i < 4; i++) {
            judge(world);
        }
    }
}

static void test_against_model(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(&world, 0, sizeof(world));
        prng_init(&world.prng, seed);
        prng_init(&world.keys, ~seed);
        const uint32_t count_max = 4 + (uint32_t)draw(&world, ENTRIES - 3);
        assert_true(region_table_slots(count_max) <= SLOTS_MAX);
        memset(world.slots, 0x55, sizeof(world.slots));
        region_table_init(&world.table, count_max, world.slots, &world.keys);
        for (int i = 0; i < STEPS; i++) {
            step(&world);
            check_world(&world);
            judge(&world);
            judge_flush(&world);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        for (enum reach_verdict verdict = 0; verdict < REACH_VERDICT_COUNT; verdict++) {
            const bool of_keys = verdict == REACH_ALLOWED ||
                                 (verdict >= REACH_UNKNOWN_KEY && verdict <= REACH_FORBIDDEN);
            /* A key that is found and unknown all the same is that of an unbound window. */
            if (of_keys && (kind != REGION_MEMORY || verdict != REACH_UNKNOWN_KEY)) {
                assert_true(seen.judged[kind][verdict] > 500);
                assert_true(seen.flushed[kind][verdict] > 100);
            }
        }
    }
    for (int answer = 0; answer < 2; answer++) {
        assert_true(seen.bound[REGION_WINDOW_TYPE_1][answer] > 1000);
        assert_true(seen.bound[REGION_WINDOW_TYPE_2][answer] > 1000);
        assert_true(seen.invalidated[answer] > 100);
    }
    assert_true(seen.added[STATUS_OK] > 1000 && seen.added[STATUS_INVALID] > 1000);
    assert_true(seen.added[STATUS_FULL] > 1000 && seen.windows_added[STATUS_FULL] > 1000);
    assert_true(seen.removed[STATUS_OK] > 1000 && seen.removed[STATUS_BUSY] > 100);
    assert_true(seen.changed[STATUS_OK] > 1000 && seen.changed[STATUS_INVALID] > 1000);
    assert_true(seen.changed[STATUS_BUSY] > 100);
    assert_true(seen.unbound > 100 && seen.forgotten > 100);
    assert_true(seen.faulting > 1000 && seen.wrapped > 1000);
}

/* -- A table of many --------------------------------------------------------------------------- */

static void test_many_regions(void **state)
{
    (void)state;
    enum {
        MANY = 1000
    };
    static struct region regions[MANY];
    static bool live[MANY];
    static struct region *slots[2048];
    struct prng prng;
    struct region_table table;
    struct pd pd = {0};
    const struct region_request request = {.address = 0x1000, .start = 0x1000, .bytes = 16};
    prng_init(&prng, 1);
    assert_int_equal(region_table_slots(MANY), COUNT_OF(slots));
    region_table_init(&table, MANY, slots, &prng);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(region_add(&table, &pd, &request, &regions[i]), STATUS_OK);
        live[i] = true;
    }
    struct region none = {0};
    assert_int_equal(region_add(&table, &pd, &request, &none), STATUS_FULL);
    for (int turn = 0; turn < 20000; turn++) {
        const uint64_t i = prng_below(&prng, MANY);
        if (live[i]) {
            assert_int_equal(region_remove(&table, &regions[i]), STATUS_OK);
            assert_null(region_find(&table, regions[i].key));
        } else {
            assert_int_equal(region_add(&table, &pd, &request, &regions[i]), STATUS_OK);
        }
        live[i] = !live[i];
        if (turn % 100 == 0) {
            check_chains(&table);
        }
    }
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(region_find(&table, regions[i].key), live[i] ? &regions[i] : NULL);
    }
}

static void test_keys(void **state)
{
    (void)state;
    enum {
        KEYS = 64
    };
    static struct region regions[KEYS];
    struct region *slots[2 * KEYS];
    struct region_table table;
    struct pd pd = {0};
    const struct region_request request = {.address = 0x1000, .start = 0x1000, .bytes = 16};
    /* States chosen so that the first draws are 0 and, in the upper half, 5: neither is a key. */
    struct prng zero = {{1, 0, 2, 3}}, small = {{1, 0x6671c71c72000000, 2, 3}};
    struct prng copy = zero;
    assert_int_equal(prng_next(&copy), 0);
    copy = small;
    assert_int_equal(prng_next(&copy) >> 32, 5);
    region_table_init(&table, KEYS, slots, &zero);
    assert_int_equal(region_add(&table, &pd, &request, &regions[0]), STATUS_OK);
    assert_true(regions[0].key > 0xff);
    region_table_init(&table, KEYS, slots, &small);
    assert_int_equal(region_add(&table, &pd, &request, &regions[0]), STATUS_OK);
    assert_true(regions[0].key > 0xff);

    /* Every bit of a key is drawn: none is the same in all of them. */
    uint32_t ones = regions[0].key, zeros = ~regions[0].key;
    for (int i = 1; i < KEYS; i++) {
        assert_int_equal(region_add(&table, &pd, &request, &regions[i]), STATUS_OK);
        ones |= regions[i].key;
        zeros |= ~regions[i].key;
    }
    assert_int_equal(ones, UINT32_MAX);
    assert_int_equal(zeros, UINT32_MAX);
}

/* -- One window, told in numbers --------------------------------------------------------------- */

/* Every address of a null region is there, for its own domain's requests only. */
static void test_null_region(void **state)
{
    (void)state;
    struct prng prng;
    struct region *slots[8];
    struct region_table table;
    struct pd pd = {0}, other = {0};
    struct region null;
    struct segment segment;
    prng_init(&prng, 9);
    region_table_init(&table, 4, slots, &prng);
    assert_int_equal(region_add_null(&table, &pd, 0x10000, &null), STATUS_OK);
    assert_int_equal(pd.users, 1);
    static const uint64_t addresses[] = {0, 1, 0x10000, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        const uint64_t at = addresses[i];
        assert_int_equal(
            region_judge(&table, null.key, &pd, NULL, at, 4136, ACCESS_LOCAL_WRITE, &segment),
            REACH_ALLOWED);
        assert_true(segment.address == 0x10000 && segment.bytes == 4136 && !segment.may_fault);
        assert_int_equal(region_judge(&table, null.key, &pd, NULL, at, 4096, 0, &segment),
                         REACH_ALLOWED);
        assert_true(segment.address == 0x10000 + REGION_NULL_BYTES && segment.bytes == 4096);
        assert_int_equal(region_judge(&table, null.key, &pd, NULL, at, 1u << 30, 0, &segment),
                         REACH_ALLOWED);
        assert_int_equal(segment.bytes, 0);
        assert_int_equal(region_judge(&table, null.key, &other, NULL, at, 8, 0, &segment),
                         REACH_WRONG_DOMAIN);
        assert_int_equal(region_judge(&table, null.key, &pd, (const struct qp *)&null, at, 8,
                                      ACCESS_REMOTE_READ, &segment),
                         REACH_FORBIDDEN);
    }
    assert_int_equal(region_remove(&table, &null), STATUS_OK);
    assert_int_equal(pd.users, 0);
}

/* Bytes 0x180 to 0x1bf of a region that begins at 0x100, zero-based, to be written by one queue
 * pair. */
static void check_what_it_opens(const struct region_table *table, const struct pd *pd, uint32_t key,
                                uint32_t former_key)
{
    const struct qp *qp = qp_of(0), *other = qp_of(1);
    struct segment segment;
    /* Offset 0x3f of the window is 0xbf of the region: 0x80 in front of the window, 0x3f in it. */
    assert_int_equal(region_judge(table, key, pd, qp, 0x3f, 1, ACCESS_REMOTE_WRITE, &segment),
                     REACH_ALLOWED);
    assert_int_equal(segment.address, 0x70bf);
    assert_int_equal(segment.bytes, 1);
    assert_false(segment.may_fault);
    assert_int_equal(region_judge(table, key, pd, qp, 0x3f, 2, ACCESS_REMOTE_WRITE, &segment),
                     REACH_OUT_OF_BOUNDS);
    assert_int_equal(region_judge(table, key, pd, qp, 0, 1, ACCESS_REMOTE_READ, &segment),
                     REACH_FORBIDDEN);
    assert_int_equal(region_judge(table, key, pd, other, 0, 1, ACCESS_REMOTE_WRITE, &segment),
                     REACH_WRONG_DOMAIN);
    assert_int_equal(region_judge(table, former_key, pd, qp, 0, 1, ACCESS_REMOTE_WRITE, &segment),
                     REACH_UNKNOWN_KEY);
    assert_int_equal(region_judge(table, key, pd, NULL, 0, 1, 0, &segment), REACH_FORBIDDEN);
}

/* Where an lkey is no rkey, each is good for its own use only. */
static void test_lkey(void **state)
{
    (void)state;
    struct prng prng;
    struct region *slots[8], region;
    struct region_table table;
    struct pd pd = {0};
    struct segment segment;
    prng_init(&prng, 7);
    region_table_init(&table, 4, slots, &prng);
    table.lkey_bits = 0x5a;
    const struct region_request request = {
        .address = 0x7000, .start = 0x7000, .bytes = 0x1000, .access = ACCESS_REMOTE_READ};
    assert_int_equal(region_add(&table, &pd, &request, &region), STATUS_OK);
    const uint32_t lkey = region_lkey(&table, &region), rkey = region.key;
    assert_int_equal(lkey ^ rkey, 0x5a);
    for (int local = 0; local < 2; local++) {
        const struct qp *qp = local ? NULL : qp_of(0);
        const uint32_t access = local ? 0 : ACCESS_REMOTE_READ;
        assert_int_equal(
            region_judge(&table, local ? lkey : rkey, &pd, qp, 0x7000, 1, access, &segment),
            REACH_ALLOWED);
        assert_int_equal(
            region_judge(&table, local ? rkey : lkey, &pd, qp, 0x7000, 1, access, &segment),
            REACH_UNKNOWN_KEY);
    }
    assert_true(region_find_local(&table, lkey) == &region && region_find(&table, rkey) == &region);
    assert_null(region_find_local(&table, rkey));
    assert_int_equal(region_remove(&table, &region), STATUS_OK);
}

static void test_life_of_a_window(void **state)
{
    (void)state;
    struct prng prng;
    struct region *slots[8];
    struct region_table table;
    struct pd pd = {0};
    struct region region, window;
    struct segment segment;
    prng_init(&prng, 7);
    assert_int_equal(region_table_slots(4), COUNT_OF(slots));
    region_table_init(&table, 4, slots, &prng);
    const struct region_request request = {
        .address = 0x7000,
        .start = 0x100,
        .bytes = 0x1000,
        .access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND,
    };
    assert_int_equal(region_add(&table, &pd, &request, &region), STATUS_OK);
    assert_int_equal(window_add(&table, &pd, REGION_WINDOW_TYPE_2, &window), STATUS_OK);
    const uint32_t first_key = window.key;
    const struct window_bind bind = {
        .window = &window,
        .region = &region,
        .address = 0x180,
        .bytes = 0x40,
        .access = ACCESS_REMOTE_WRITE | ACCESS_ZERO_BASED,
        .key = first_key ^ 1,
    };
    const struct qp *qp = qp_of(0), *other = qp_of(1);
    assert_true(window_bind_execute(&table, &bind, qp, &pd));

    check_what_it_opens(&table, &pd, bind.key, first_key);
    /* Peers cannot go around the window. */
    assert_int_equal(
        region_judge(&table, region.key, &pd, qp, 0x180, 1, ACCESS_REMOTE_WRITE, &segment),
        REACH_FORBIDDEN);

    assert_false(window_bind_execute(&table, &bind, qp, &pd));
    assert_int_equal(region_remove(&table, &region), STATUS_BUSY);
    assert_false(window_invalidate(&table, bind.key, other, &pd));
    assert_true(window_invalidate(&table, bind.key, qp, NULL));
    assert_false(window_invalidate(&table, bind.key, qp, NULL));
    assert_int_equal(region_judge(&table, bind.key, &pd, qp, 0, 1, ACCESS_REMOTE_WRITE, &segment),
                     REACH_UNKNOWN_KEY);
    assert_int_equal(region_remove(&table, &region), STATUS_OK);
    window_remove(&table, &window);
    assert_int_equal(pd.users, 0);
    assert_int_equal(table.count, 0);
}

/* Descriptors of an EFA device have 24 bits for a key: none is longer, and each is found. */
static void test_short_keys(void **state)
{
    (void)state;
    enum {
        COUNT = 1000
    };
    static struct region regions[COUNT];
    static struct region *slots[4096];
    struct prng prng;
    struct region_table table;
    struct pd pd = {0};
    prng_init(&prng, 9);
    assert_true(region_table_slots(COUNT) <= COUNT_OF(slots));
    region_table_init(&table, COUNT, slots, &prng);
    table.key_bits = REGION_SHORT_KEY_BITS;
    const struct region_request request = {.address = 0x7000, .start = 0x7000, .bytes = 0x1000};
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(region_add(&table, &pd, &request, &regions[i]), STATUS_OK);
        assert_true(regions[i].key >> 8 != 0 && regions[i].key >> REGION_SHORT_KEY_BITS == 0);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_ptr_equal(region_find(&table, regions[i].key), &regions[i]);
        assert_int_equal(region_remove(&table, &regions[i]), STATUS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model), cmocka_unit_test(test_many_regions),
        cmocka_unit_test(test_keys),          cmocka_unit_test(test_null_region),
        cmocka_unit_test(test_lkey),          cmocka_unit_test(test_life_of_a_window),
        cmocka_unit_test(test_short_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
