/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_board_fuzz - verdicts by a peer's board, while the peer writes it.
 *
 * Goal    Whatever a board contains, and whenever it changes, each word is read once (the number of
 *         an entry once more after its copy), and an access that is allowed lies within one range
 *         that does not wrap. While nothing changes, the verdict is that of a plain search.
 * Method  The input lays entries of queue pairs and regions where a key or a number leads, plans
 *         changes for after some of our reads (tests/fuzz/hostile_memory.h), and then asks.
 */
#include <string.h>

#include "drivers/shm/shm_internal.h"
#include "tests/fuzz/hostile_memory.h"

static struct shm_board board __attribute__((aligned(4096)));

/* There are few numbers, so that entries are found. */
static const uint32_t numbers[] = {0, 1, 2, SHM_BOARD_QPS - 1, SHM_BOARD_QPS + 1, 0xffffff};
static const uint32_t keys[] = {0, 0x100, 0x101, 0x200, 0xffffff00, 0x12345678};

static const struct gid peers[] = {{.bytes = {[15] = 1}}, {.bytes = {[15] = 2}}};

/* The places where shm_board.c looks. */
static uint32_t region_place(uint32_t key, uint32_t attempt)
{
    return ((key >> 8) * 0x9e3779b1u + attempt) & (SHM_BOARD_REGIONS - 1);
}

static uint32_t qp_place(uint32_t number, uint32_t attempt)
{
    return (number + attempt) & (SHM_BOARD_QPS - 1);
}

static size_t region_at(uint32_t key, uint32_t attempt)
{
    return offsetof(struct shm_board, regions) +
           region_place(key, attempt) * sizeof(struct shm_board_region);
}

static size_t qp_at(uint32_t number, uint32_t attempt)
{
    return offsetof(struct shm_board, qps) +
           qp_place(number, attempt) * sizeof(struct shm_board_qp);
}

static uint64_t address(struct input *input)
{
    const uint8_t kind = take(input);
    const uint64_t low = take_number(input, 2);
    return kind & 1 ? UINT64_MAX - low : kind & 2 ? low : low << 32;
}

static void lay_qp(struct input *input)
{
    const uint32_t number = numbers[take(input) % COUNT_OF(numbers)];
    const uint8_t where = take(input);
    const struct gid *peer = &peers[where >> 4 & 1];
    struct shm_board_qp entry = {.number = number,
                                 .grant = take(input) % 4u | (uint32_t)take(input)
                                                                 << SHM_GRANT_SHIFT,
                                 .domain = take(input) % 3u,
                                 .state = (take(input) % 4u) << SHM_READS_SHIFT | 1};
    memcpy(entry.peer, peer, sizeof(entry.peer));
    hostile_write(qp_at(number, where % SHM_BOARD_PROBES), &entry, sizeof(entry));
}

static void lay_region(struct input *input)
{
    const uint32_t key = keys[take(input) % COUNT_OF(keys)];
    const uint8_t where = take(input);
    struct shm_board_region entry = {.key = key,
                                     .access = take(input),
                                     .domain = take(input) % 3u,
                                     .start = address(input),
                                     .bytes = address(input),
                                     .memory = address(input)};
    hostile_write(region_at(key, where % SHM_BOARD_PROBES), &entry, sizeof(entry));
}

/* A byte of an entry that is looked at, or any byte. */
static size_t place(struct input *input)
{
    const uint8_t kind = take(input);
    const uint8_t byte = take(input);
    if (kind & 1) {
        return qp_at(numbers[(kind >> 2) % COUNT_OF(numbers)], kind & 2 ? 1 : 0) +
               byte % sizeof(struct shm_board_qp);
    }
    if (kind & 2) {
        return region_at(keys[(kind >> 2) % COUNT_OF(keys)], kind & 64 ? 1 : 0) +
               byte % sizeof(struct shm_board_region);
    }
    return take_number(input, 3) % sizeof(board);
}

static struct shm_reach reach_of(struct input *input)
{
    const uint8_t choice = take(input);
    return (struct shm_reach){
        .number = numbers[take(input) % COUNT_OF(numbers)],
        .key = keys[take(input) % COUNT_OF(keys)],
        .source = {.gid = peers[choice & 1],
                   .number = choice >> 1 & 3,
                   .terms = {256u << (choice >> 4 & 3), 1}},
        .access = {address(input), take_number(input, 3),
                   choice & 8 ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ, take_number(input, 2)},
    };
}

/* -- The model ----------------------------------------------------------------------------------*/

static const struct shm_board_qp *find_qp(uint32_t number)
{
    for (uint32_t i = 0; number != 0 && i < SHM_BOARD_PROBES; i++) {
        const struct shm_board_qp *entry = &board.qps[qp_place(number, i)];
        if (entry->number == number) {
            return entry;
        }
    }
    return NULL;
}

static const struct shm_board_region *find_region(uint32_t key)
{
    for (uint32_t i = 0; key != 0 && i < SHM_BOARD_PROBES; i++) {
        const struct shm_board_region *entry = &board.regions[region_place(key, i)];
        if (entry->key == key) {
            return entry;
        }
    }
    return NULL;
}

/* Do both ends agree on the terms of the connection? */
static bool agrees(const struct shm_board_qp *qp, const struct shm_reach *reach)
{
    const uint32_t mtu_bytes = 128u << (qp->grant >> SHM_MTU_SHIFT & 7);
    const uint32_t smaller =
        mtu_bytes < reach->source.terms.mtu_bytes ? mtu_bytes : reach->source.terms.mtu_bytes;
    return (mtu_bytes == reach->source.terms.mtu_bytes || reach->access.message_bytes <= smaller) &&
           (reach->access.rights == ACCESS_REMOTE_WRITE ||
            reach->source.terms.reads <= qp->state >> SHM_READS_SHIFT);
}

/* The rule, written a second time, for a board that does not change. */
static bool may_reach(const struct shm_reach *reach)
{
    const struct shm_board_qp *qp = find_qp(reach->number);
    const struct shm_board_region *region = find_region(reach->key);
    if (qp == NULL) {
        return false;
    }
    const uint64_t peer[2] = {qp->peer[0], qp->peer[1]};
    if (memcmp(peer, &reach->source.gid, sizeof(peer)) != 0 ||
        (qp->grant & ROCE_24_BITS) != reach->source.number ||
        (qp->grant >> SHM_GRANT_SHIFT & reach->access.rights) == 0 || !agrees(qp, reach)) {
        return false;
    }
    if (reach->access.bytes == 0) {
        return true;
    }
    return region != NULL && region->domain == qp->domain &&
           (region->access & reach->access.rights) != 0 &&
           region->bytes <= UINT64_MAX - region->start && reach->access.address >= region->start &&
           reach->access.bytes <= region->bytes &&
           reach->access.address - region->start <= region->bytes - reach->access.bytes;
}

/* The first word, the number of the entry, is read once more after the copy. */
static void check_reads(size_t first, size_t entry_bytes)
{
    for (size_t i = 0; i < SHM_BOARD_PROBES * entry_bytes && first + i < sizeof(board); i++) {
        CHECK(hostile_reads_of(first + i) <= (i % entry_bytes < sizeof(uint32_t) ? 2u : 1u));
    }
}

static void ask(struct input *input)
{
    const bool at_region = take(input) & 1;
    const struct shm_reach reach = reach_of(input);
    const size_t first = at_region ? region_at(reach.key, 0) : qp_at(reach.number, 0);
    const uint32_t changes = hostile_changes();
    const bool expected = may_reach(&reach);
    struct shm_grant grant;
    hostile_count(first);
    const enum reach_verdict verdict = shm_board_judge(&board, &reach, &grant);
    CHECK(verdict < REACH_VERDICT_COUNT);
    check_reads(first, at_region ? sizeof(struct shm_board_region) : sizeof(struct shm_board_qp));
    if (hostile_changes() == changes) {
        CHECK((verdict == REACH_ALLOWED) == expected);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    hostile_begin(&board, sizeof(board));
    while (input.count > 0) {
        const uint8_t kind = take(&input);
        switch (kind & 7) {
        case 0:
        case 1: lay_qp(&input); break;
        case 2:
        case 3: lay_region(&input); break;
        case 4: {
            const size_t offset = place(&input);
            hostile_plan(offset, kind >> 3, &input);
            break;
        }
        default: ask(&input); break;
        }
    }
    hostile_end();
    return 0;
}
