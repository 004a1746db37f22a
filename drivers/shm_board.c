/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_board - what a process says on its board about its memory, and what a peer reads there.
 *
 * The owner's NIC puts up regions and queue pairs and takes them off. A peer that wants to write or
 * read looks there whether it may, as the owner's NIC would have judged its packet.
 */
#include <linux/futex.h>
#include <string.h>

#include "drivers/shm_internal.h"

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

/* FUTEX_OWNER_DIED comes in place of the thread's number. */
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

/* What peers can do by themselves. */
#define REACHABLE (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ)

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

/* A number for a protection domain, which tells peers nothing about our memory. */
static uint64_t number_of(struct shm_port *port, struct pd *pd)
{
    if (pd->number == 0) {
        pd->number = ++port->domains;
    }
    return pd->number;
}

void shm_port_publish_region(struct shm_port *port, const struct region *region)
{
    if (region->kind != REGION_MEMORY || !(region->access & REACHABLE) || region->whole_space ||
        (region->access & ACCESS_ON_DEMAND)) {
        return;
    }
    /* A second entry would outlive the withdrawal of the first. */
    CHECK(find_region(port->board, region->key, region->key) == NULL);
    struct shm_board_region *entry = find_region(port->board, region->key, 0);
    if (entry == NULL) {
        return; /* No room: the region is reached through the ring only. */
    }
    entry->access = region->access & REACHABLE;
    entry->domain = number_of(port, region->pd);
    entry->start = region->start;
    entry->bytes = region->bytes;
    entry->memory = region->memory;
    atomic_store_explicit(&entry->key, region->key, memory_order_release);
}

/* Without responder resources a queue pair refuses every READ. */
static uint8_t granted_by(const struct qp_attributes *attributes)
{
    const uint32_t refused = attributes->max_reads_in == 0 ? ACCESS_REMOTE_READ : 0u;
    return (uint8_t)(attributes->access & REACHABLE & ~refused);
}

void shm_port_publish_qp(struct shm_port *port, const struct qp *qp)
{
    struct qp_attributes attributes;
    qp_query(qp, &attributes);
    if ((attributes.state != QP_RTR && attributes.state != QP_RTS) || qp_type_of(qp) != QP_RC ||
        !(attributes.access & REACHABLE)) {
        return;
    }
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_qp *entry = &port->board->qps[qp_place(qp_number(qp), i)];
        const uint32_t number = atomic_load_explicit(&entry->number, memory_order_relaxed);
        CHECK(number != qp_number(qp));
        if (number == 0) {
            entry->peer_number = attributes.destination_qpn & ROCE_24_BITS;
            entry->access = granted_by(&attributes);
            entry->domain = number_of(port, qp_pd(qp));
            entry->peer = attributes.path.destination;
            atomic_store_explicit(&entry->number, qp_number(qp), memory_order_release);
            return;
        }
    }
}

void shm_port_withdraw_region(struct shm_port *port, const struct region *region)
{
    struct shm_board_region *entry;
    while ((entry = find_region(port->board, region->key, region->key)) != NULL) {
        atomic_store_explicit(&entry->key, 0, memory_order_release);
    }
    shm_note_withdrawal(port);
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

static bool qp_admits(const struct shm_board *board, const struct shm_reach *reach,
                      uint64_t *domain)
{
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        const struct shm_board_qp *entry = &board->qps[qp_place(reach->number, i)];
        if (atomic_load_explicit(&entry->number, memory_order_acquire) != reach->number) {
            continue;
        }
        *domain = entry->domain;
        return (entry->access & reach->access) && entry->peer_number == reach->from_number &&
               memcmp(&entry->peer, &reach->from, sizeof(entry->peer)) == 0;
    }
    return false;
}

/* The memory behind what is reached for; false: not for us. */
static bool region_admits(const struct shm_board *board, const struct shm_reach *reach,
                          uint64_t domain, uint64_t *memory)
{
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        const struct shm_board_region *entry = &board->regions[region_place(reach->key, i)];
        if (atomic_load_explicit(&entry->key, memory_order_acquire) != reach->key) {
            continue;
        }
        const uint64_t offset = reach->address - entry->start;
        if (!(entry->access & reach->access) || entry->domain != domain ||
            reach->address < entry->start || offset > entry->bytes ||
            reach->bytes > entry->bytes - offset) {
            return false;
        }
        *memory = entry->memory + offset;
        return true;
    }
    return false;
}

bool shm_board_admits(const struct shm_board *board, const struct shm_reach *reach,
                      uint64_t *memory)
{
    uint64_t domain;
    /* Free places have 0 for a key and for a number, and what was there before they were free. */
    return reach->number != 0 && reach->key != 0 && qp_admits(board, reach, &domain) &&
           region_admits(board, reach, domain, memory);
}
