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
 * the window; whoever takes an entry off waits until every window was seen closed. A requester that
 * is stopped inside its window (a few instructions and one system call) is waited for until it goes
 * on or dies: safety first.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/shm_internal.h"
#include "drivers/uncancelled.h"

void shm_board_init(struct shm_board *board)
{
    board->magic = SHM_MAGIC;
    atomic_store(&board->direct, 1);
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

/* Among the places of `key`: the first entry that has the key `wanted`, 0 for a free one; NULL: none. */
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
    entry->domain = (uintptr_t)region->pd;
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
    shm_port_withdraw_qp(port, qp);
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_qp *entry = &port->board->qps[qp_place(qp_number(qp), i)];
        if (atomic_load_explicit(&entry->number, memory_order_relaxed) == 0) {
            entry->peer_number = attributes.destination_qpn & ROCE_24_BITS;
            entry->access = granted_by(&attributes);
            entry->domain = (uintptr_t)qp_pd(qp);
            entry->peer = attributes.path.destination;
            atomic_store_explicit(&entry->number, qp_number(qp), memory_order_release);
            return;
        }
    }
}

/* Until no writer can still act on what the board said before. */
static void wait_for_windows(struct shm_port *port)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        const struct shm_inbound *inbound = port->inbound[i];
        for (uint32_t turn = 0;
             atomic_load_explicit(&inbound->ring->window, memory_order_acquire) != 0; turn++) {
            if (turn < 1000) {
                __builtin_ia32_pause();
                continue;
            }
            struct pollfd peer = {.fd = inbound->socket, .events = POLLRDHUP};
            if (uncancelled_poll(&peer, 1, 1) > 0 &&
                (peer.revents & (POLLRDHUP | POLLHUP | POLLERR))) {
                break; /* Dead: its system call has ended with it. */
            }
        }
    }
}

void shm_port_withdraw_region(struct shm_port *port, const struct region *region)
{
    struct shm_board_region *entry;
    while ((entry = find_region(port->board, region->key, region->key)) != NULL) {
        atomic_store_explicit(&entry->key, 0, memory_order_release);
    }
    wait_for_windows(port);
}

void shm_port_withdraw_qp(struct shm_port *port, const struct qp *qp)
{
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_qp *entry = &port->board->qps[qp_place(qp_number(qp), i)];
        if (atomic_load_explicit(&entry->number, memory_order_relaxed) == qp_number(qp)) {
            atomic_store_explicit(&entry->number, 0, memory_order_release);
            wait_for_windows(port);
            return;
        }
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

static bool qp_admits(const struct shm_link *link, const struct nic_departure *departure,
                      const struct reach *reach, uint64_t *domain)
{
    const uint32_t number = departure->packet->destination_qpn;
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

/* Opens the window and judges. The caller closes it in any case. */
static bool open_window(struct shm_link *link, const struct nic_departure *departure,
                        const struct reach *reach, uint64_t *memory)
{
    uint64_t domain;
    atomic_store_explicit(&link->ring->window, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return qp_admits(link, departure, reach, &domain) &&
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

/* Where and by which key a packet writes: its RETH, or where the packet before it ended. A
 * message's first packet is judged for all of it: a WRITE that cannot end is not begun. */
static bool find_target(const struct shm_link *link, const struct nic_departure *departure,
                        uint32_t traits, struct reach *target)
{
    const struct roce_packet *packet = departure->packet;
    target->access = ACCESS_REMOTE_WRITE;
    if (traits & ROCE_IS_FIRST) {
        target->address = packet->reth.address;
        target->key = packet->reth.key;
        target->bytes = packet->reth.bytes;
        return true;
    }
    target->address = link->stream.address;
    target->key = link->stream.key;
    target->bytes = departure->payload_bytes;
    return link->stream.left != 0 && link->stream.qpn == qp_number(departure->qp) &&
           link->stream.psn == packet->psn;
}

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

static void advance_stream(struct shm_link *link, const struct nic_departure *departure,
                           const struct reach *target, uint32_t traits)
{
    const uint32_t left = traits & ROCE_IS_FIRST ? target->bytes : link->stream.left;
    link->stream.qpn = qp_number(departure->qp);
    link->stream.psn = (departure->packet->psn + 1) & ROCE_24_BITS;
    link->stream.key = target->key;
    link->stream.address = target->address + departure->payload_bytes;
    link->stream.left = left - departure->payload_bytes;
}

bool shm_link_place(struct shm_port *port, struct link *base, const struct nic_departure *departure)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    const uint32_t traits = roce_opcode(departure->packet->opcode)->traits;
    struct reach target;
    uint64_t memory;
    if (departure->payload_bytes == 0 ||
        !within_reach(link, departure->segments, departure->segment_count) ||
        !find_target(link, departure, traits, &target)) {
        return false;
    }
    const bool written =
        open_window(link, departure, &target, &memory) && write_memory(link, departure, memory);
    close_window(link);
    if (!written) {
        link->stream.left = 0;
        return false;
    }
    advance_stream(link, departure, &target, traits);
    shm_link_note_placed(port, link, departure);
    return true;
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
    const struct reach source = {
        .address = departure->packet->reth.address,
        .key = departure->packet->reth.key,
        .bytes = departure->packet->reth.bytes,
        .access = ACCESS_REMOTE_READ,
    };
    uint64_t memory;
    if (source.bytes == 0 || !within_reach(link, segments, segment_count)) {
        return false;
    }
    const bool read = open_window(link, departure, &source, &memory) &&
                      read_memory(link, segments, segment_count, memory, source.bytes);
    close_window(link);
    if (read) {
        shm_link_note_placed(port, link, departure);
    }
    return read;
}
