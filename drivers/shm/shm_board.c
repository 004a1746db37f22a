/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_board - the entries for a process's memory on its board: written by the process, read by its
 * peers.
 *
 * The owner's NIC puts up regions and queue pairs and takes them off. A peer that wants to write or
 * read looks there whether it may, as the owner's NIC would have judged its packet.
 */
#include <linux/futex.h>
#include <string.h>

#include "drivers/shm/shm_internal.h"

void shm_board_init(struct shm_board *board)
{
    board->mark = shm_mark_of(sizeof(*board));
    atomic_store(&board->direct, 1);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&board->owner.mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void shm_port_own(struct shm_port *port)
{
    CHECK(pthread_mutex_lock(&port->board->owner.mutex) == 0);
}

void shm_port_disown(struct shm_port *port)
{
    CHECK(pthread_mutex_unlock(&port->board->owner.mutex) == 0);
}

/* When the thread ends, the kernel writes FUTEX_OWNER_DIED in place of its number. */
bool shm_board_is_owned(const struct shm_board *board)
{
    return atomic_load_explicit(&board->owner.word, memory_order_acquire) & FUTEX_TID_MASK;
}

void shm_port_set_direct(struct shm_port *port, bool welcome)
{
    atomic_store(&port->board->direct, welcome);
}

/* -- Publishing ---------------------------------------------------------------------------------*/

/* Keys are random; numbers are given out one after the other, and neighbours share a page. */
static uint32_t region_place(uint32_t key, uint32_t attempt)
{
    return ((key >> 8) * 0x9e3779b1u + attempt) & (SHM_BOARD_REGIONS - 1);
}

static uint32_t qp_place(uint32_t number, uint32_t attempt)
{
    return (number + attempt) & (SHM_BOARD_QPS - 1);
}

/* Among the places of `key`, the first entry that has the key `wanted` (0: a free one); NULL:
 * none. */
static struct shm_board_region *find_region(struct shm_board *board, uint32_t key, uint32_t wanted)
{
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_region *entry = &board->regions[region_place(key, i)];
        if (atomic_load_explicit(&entry->key, memory_order_relaxed) == wanted) {
            return entry;
        }
    }
    return NULL;
}

struct shm_board_region *shm_board_region(struct shm_board *board, uint32_t key)
{
    CHECK(key != 0);
    return find_region(board, key, key);
}

/* A number for a protection domain, which tells peers nothing about our memory. 0: there is none
 * left, and regions of that domain are reached by packets only. */
static uint32_t number_of(struct shm_port *port, struct pd *pd)
{
    if (pd->number == 0 && port->domains < UINT32_MAX) {
        pd->number = ++port->domains;
    }
    return pd->number;
}

#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

void shm_port_publish_region(struct shm_port *port, const struct region *region)
{
    const struct reach_region view = region_view(region);
    if (reach_judge_direct_region(&view) != REACH_ALLOWED || number_of(port, region->pd) == 0) {
        return;
    }
    /* A second entry would outlive the withdrawal of the first. */
    CHECK(find_region(port->board, region->key, region->key) == NULL);
    struct shm_board_region *entry = find_region(port->board, region->key, 0);
    if (entry == NULL) {
        return; /* No room: the region is reached through the ring only. */
    }
    CHECK(region->key != 0); /* That is a free place. */
    SET(entry->access, view.access & REACH_DIRECT);
    SET(entry->domain, number_of(port, region->pd));
    SET(entry->start, view.start);
    SET(entry->bytes, view.bytes);
    SET(entry->memory, view.memory);
    SET(entry->extent, 0);
    atomic_store_explicit(&entry->key, region->key, memory_order_release);
}

/* Numbers of publications come again after 2^24 others of this process. */
static uint32_t next_state(struct shm_port *port)
{
    CHECK(port->states <= SHM_STATE_MAX);
    port->states = port->states == SHM_STATE_MAX ? 1 : port->states + 1;
    return port->states;
}

static void fill_qp(struct shm_port *port, struct shm_board_qp *entry, const struct qp *qp)
{
    const struct reach_qp view = qp_view(qp);
    uint64_t peer[2];
    memcpy(peer, &view.peer, sizeof(peer));
    const uint32_t mtu = (uint32_t)path_mtu_of(view.terms.mtu_bytes);
    /* Each has its bits in a word that peers read. */
    CHECK(view.peer_number <= ROCE_24_BITS && mtu <= 7);
    CHECK(view.terms.reads <= UINT32_MAX >> SHM_READS_SHIFT);
    SET(entry->grant,
        view.peer_number | (view.granted & REACH_DIRECT) << SHM_GRANT_SHIFT | mtu << SHM_MTU_SHIFT);
    SET(entry->domain, number_of(port, qp_pd(qp)));
    SET(entry->state, next_state(port) | view.terms.reads << SHM_READS_SHIFT);
    SET(entry->peer[0], peer[0]);
    SET(entry->peer[1], peer[1]);
    /* A peer that sees the new address sees the new state, too. */
    atomic_store_explicit(&port->board->awaited[entry - port->board->qps], qp_awaited(qp),
                          memory_order_release);
}

void shm_port_publish_qp(struct shm_port *port, const struct qp *qp)
{
    const struct reach_qp view = qp_view(qp);
    if (reach_judge_direct_qp(&view) != REACH_ALLOWED || number_of(port, qp_pd(qp)) == 0) {
        return;
    }
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_qp *entry = &port->board->qps[qp_place(qp_number(qp), i)];
        const uint32_t number = atomic_load_explicit(&entry->number, memory_order_relaxed);
        CHECK(number != qp_number(qp));
        if (number == 0) {
            fill_qp(port, entry, qp);
            CHECK(atomic_load_explicit(&entry->domain, memory_order_relaxed) != 0);
            atomic_store_explicit(&entry->number, qp_number(qp), memory_order_release);
            return;
        }
    }
}

void shm_port_withdraw_qp(struct shm_port *port, const struct qp *qp)
{
    bool found = false;
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_qp *entry = &port->board->qps[qp_place(qp_number(qp), i)];
        if (atomic_load_explicit(&entry->number, memory_order_relaxed) == qp_number(qp)) {
            atomic_store_explicit(&entry->number, 0, memory_order_release);
            found = true;
        }
    }
    if (found) {
        shm_note_withdrawal(port);
    }
}

/* -- Judging ------------------------------------------------------------------------------------*/

/* The owner may change every word at any time: each is read once, and this copy is judged. */
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* Behind a copy: is the place still what it was before? If not, another entry may have come there,
 * and the copy may be of both. */
static bool is_still(const _Atomic uint32_t *word, uint32_t value)
{
    atomic_thread_fence(memory_order_acquire);
    return GET(*word) == value;
}

/* False: the queue pair is not there. A free place has the number 0, and the rest of an earlier
 * entry. */
static bool copy_qp(const struct shm_board *board, uint32_t number, struct reach_qp *view,
                    struct shm_grant *found)
{
    for (uint32_t i = 0; i < SHM_BOARD_PROBES && number != 0; i++) {
        const struct shm_board_qp *entry = &board->qps[qp_place(number, i)];
        if (atomic_load_explicit(&entry->number, memory_order_acquire) != number) {
            continue;
        }
        const uint32_t grant = GET(entry->grant);
        const uint32_t state = GET(entry->state);
        const uint64_t peer[2] = {GET(entry->peer[0]), GET(entry->peer[1])};
        *view = (struct reach_qp){
            .type = QP_RC,
            .state = QP_RTS, /* Or RTR, which makes no difference here. */
            .granted = grant >> SHM_GRANT_SHIFT & REACH_DIRECT,
            .user = {.domain = GET(entry->domain), .name = number},
            .peer_number = grant & ROCE_24_BITS,
            .terms = {path_mtu_bytes(grant >> SHM_MTU_SHIFT & 7), state >> SHM_READS_SHIFT}};
        memcpy(&view->peer, peer, sizeof(peer));
        *found = (struct shm_grant){.state = state & SHM_STATE_MAX, .place = qp_place(number, i)};
        return is_still(&entry->number, number);
    }
    return false;
}

/* `view` is not open if the region is not there; free places have the key 0. Returns the number of
 * its extent. */
static uint64_t copy_region(const struct shm_board *board, uint32_t key, struct reach_region *view)
{
    *view = (struct reach_region){0};
    for (uint32_t i = 0; i < SHM_BOARD_PROBES && key != 0; i++) {
        const struct shm_board_region *entry = &board->regions[region_place(key, i)];
        if (atomic_load_explicit(&entry->key, memory_order_acquire) != key) {
            continue;
        }
        *view = (struct reach_region){.kind = REGION_MEMORY,
                                      .access = GET(entry->access) & REACH_DIRECT,
                                      .domain = GET(entry->domain),
                                      .start = GET(entry->start),
                                      .bytes = GET(entry->bytes),
                                      .memory = GET(entry->memory)};
        const uint64_t extent = GET(entry->extent);
        /* No honest NIC registers a range that wraps. */
        view->open = is_still(&entry->key, key) && view->bytes <= UINT64_MAX - view->start;
        return extent;
    }
    return 0;
}

enum reach_verdict shm_board_judge(const struct shm_board *board, const struct shm_reach *reach,
                                   struct shm_grant *grant)
{
    struct reach_qp qp;
    struct reach_region region;
    if (!copy_qp(board, reach->number, &qp, grant)) {
        return REACH_UNKNOWN_QP;
    }
    grant->extent = copy_region(board, reach->key, &region);
    grant->bytes = region.bytes;
    const enum reach_verdict verdict = reach_judge(&qp, &reach->source, &region, &reach->access);
    if (verdict == REACH_ALLOWED) {
        grant->memory = reach_memory(&region, reach->access.address);
    }
    return verdict;
}

uint64_t shm_board_awaited(const struct shm_board *board, const struct shm_grant *grant)
{
    const struct shm_board_qp *entry = &board->qps[grant->place];
    const uint64_t address = GET(board->awaited[grant->place]);
    atomic_thread_fence(memory_order_acquire);
    return (GET(entry->state) & SHM_STATE_MAX) == grant->state && GET(entry->number) != 0 ? address
                                                                                          : 0;
}
