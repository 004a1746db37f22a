/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_direct - an RDMA WRITE into a local peer's memory, or a READ of it, done by who asks for it.
 *
 * The peer's program may spin on plain memory, or sleep: its NIC would have to wait for a core. So
 * the requester asks the kernel to copy (process_vm_writev, process_vm_readv). What it may reach
 * stands on the peer's board: the peer's NIC has judged it, as it would have judged the packet.
 *
 * Taking something off the board has to be final: memory that was given back must never be touched.
 * A requester therefore opens a window in the shared ring, looks at the board, copies, and closes
 * the window; whoever takes an entry off waits for windows (shm_window.c).
 *
 * The peer's memory is named by a process number, which may come to name another process once the
 * peer has ended, or the same process with another program in it. Hang-ups come late, or never if a
 * child of the peer holds its sockets. So a requester looks at the word of the board's owner, in
 * its window before it writes, and once more after it has read, so that other memory is never taken
 * for the peer's.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/shm_internal.h"
#include "drivers/uncancelled.h"

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

/* -- Reaching -----------------------------------------------------------------------------------*/

/* What a packet is about to do, and what has to be open for it. */
struct reach {
    uint64_t address;
    uint32_t key;
    uint32_t bytes;  /* From there on, which have to be open. */
    uint32_t access; /* ACCESS_REMOTE_WRITE or ACCESS_REMOTE_READ. */
};

/* A message's first packet is judged for all of it: a WRITE that cannot end is not begun. */
static struct reach reach_of(const struct nic_direct *direct, uint32_t access)
{
    return (struct reach){direct->address, direct->key, direct->bytes, access};
}

static bool qp_admits(const struct shm_link *link, const struct nic_departure *departure,
                      const struct reach *reach, uint64_t *domain)
{
    const uint32_t number = departure->destination_qpn;
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        const struct shm_board_qp *entry = &link->board->qps[qp_place(number, i)];
        if (atomic_load_explicit(&entry->number, memory_order_acquire) != number) {
            continue;
        }
        *domain = entry->domain;
        return (entry->access & reach->access) && entry->peer_number == qp_number(departure->qp) &&
               memcmp(&entry->peer, &link->link.self, sizeof(entry->peer)) == 0;
    }
    return false;
}

/* The memory behind what is reached for; false: not for us. */
static bool region_admits(const struct shm_board *board, const struct reach *reach, uint64_t domain,
                          uint64_t *memory)
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

/* Is there any use in trying? */
static bool within_reach(const struct shm_link *link, const struct segment *segments,
                         uint32_t segment_count)
{
    if (link->link.lost || link->board == NULL || link->pid <= 0 || link->direct_refused ||
        atomic_load_explicit(&link->board->direct, memory_order_relaxed) == 0) {
        return false;
    }
    for (uint32_t i = 0; i < segment_count; i++) {
        if (segments[i].may_fault) {
            return false;
        }
    }
    return true;
}

/* The calling thread, as /proc names it; asked of the kernel once. A child of fork has its parent's
 * copy, but a port of its own. */
static uint32_t own_thread(const struct shm_port *port)
{
    static _Thread_local struct {
        const struct shm_port *port;
        uint32_t thread;
    } known;
    if (UNLIKELY(known.port != port)) {
        known.thread = (uint32_t)syscall(SYS_gettid);
        known.port = port;
    }
    return known.thread;
}

/* Opens the window and judges. The caller closes it in any case. */
static bool open_window(const struct shm_port *port, struct shm_link *link,
                        const struct nic_departure *departure, const struct reach *reach,
                        uint64_t *memory)
{
    uint64_t domain;
    const shm_window window = (shm_window)++link->windows << 32 | own_thread(port);
    atomic_store_explicit(&link->ring->window, window, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return shm_board_is_owned(link->board) && qp_admits(link, departure, reach, &domain) &&
           region_admits(link->board, reach, domain, memory);
}

static void close_window(struct shm_link *link)
{
    atomic_store_explicit(&link->ring->window, 0, memory_order_release);
}

static void to_iovecs(const struct segment *segments, uint32_t count, struct iovec *iovecs)
{
    for (uint32_t i = 0; i < count; i++) {
        iovecs[i] = (struct iovec){(void *)(uintptr_t)segments[i].address, segments[i].bytes};
    }
}

/* `moved`: what the kernel said about `bytes`. */
static bool all_moved(struct shm_link *link, ssize_t moved, uint32_t bytes)
{
    if (moved < 0 && (errno == EPERM || errno == ENOSYS || errno == ESRCH)) {
        link->direct_refused = true;
    }
    return moved == (ssize_t)bytes;
}

/* -- Writing ------------------------------------------------------------------------------------*/

/* The last bytes are a piece of their own, so that they land last. */
static bool write_memory(struct shm_link *link, const struct nic_departure *departure,
                         uint64_t memory)
{
    const uint32_t bytes = departure->payload_bytes;
    const uint32_t tail = bytes < 8 ? bytes : 8;
    struct iovec local[NIC_SEGMENT_MAX];
    to_iovecs(departure->segments, departure->segment_count, local);
    const struct iovec remote[2] = {{(void *)(uintptr_t)memory, bytes - tail},
                                    {(void *)(uintptr_t)(memory + bytes - tail), tail}};
    const bool split = bytes > tail;
    return all_moved(link,
                     process_vm_writev(link->pid, local, departure->segment_count,
                                       split ? remote : remote + 1, split ? 2 : 1, 0),
                     bytes);
}

bool shm_link_place(struct shm_port *port, struct link *base, const struct nic_departure *departure)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    const struct reach target = reach_of(&departure->direct, ACCESS_REMOTE_WRITE);
    uint64_t memory;
    if (departure->payload_bytes == 0 ||
        !within_reach(link, departure->segments, departure->segment_count)) {
        return false;
    }
    const bool written = open_window(port, link, departure, &target, &memory) &&
                         write_memory(link, departure, memory);
    close_window(link);
    if (written) {
        shm_link_note_placed(port, link, departure);
    }
    return written;
}

/* -- Reading ------------------------------------------------------------------------------------*/

static bool read_memory(struct shm_link *link, const struct segment *segments,
                        uint32_t segment_count, uint64_t memory, uint32_t bytes)
{
    struct iovec local[NIC_SEGMENT_MAX];
    to_iovecs(segments, segment_count, local);
    const struct iovec remote = {(void *)(uintptr_t)memory, bytes};
    return all_moved(link, process_vm_readv(link->pid, local, segment_count, &remote, 1, 0), bytes);
}

bool shm_link_fetch(struct shm_port *port, struct link *base, const struct nic_departure *departure,
                    const struct segment *segments, uint32_t segment_count)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    const struct reach source = reach_of(&departure->direct, ACCESS_REMOTE_READ);
    uint64_t memory;
    if (source.bytes == 0 || !within_reach(link, segments, segment_count)) {
        return false;
    }
    const bool read = open_window(port, link, departure, &source, &memory) &&
                      read_memory(link, segments, segment_count, memory, source.bytes) &&
                      shm_board_is_owned(link->board);
    close_window(link);
    if (read) {
        shm_link_note_placed(port, link, departure);
    }
    return read;
}
