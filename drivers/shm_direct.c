/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_direct - an RDMA WRITE into a local peer's memory, done by the writer itself.
 *
 * The peer's program may spin on plain memory, or sleep: its NIC would have to wait for a core. So
 * the writer asks the kernel to copy (process_vm_writev). What it may reach stands on the peer's
 * board: the peer's NIC has judged it, as it would have judged the packet.
 *
 * Taking something off the board has to be final: memory that was given back must never be written.
 * A writer therefore opens a window in the shared ring, looks at the board, writes, and closes the
 * window; whoever takes an entry off waits until every window was seen closed. A writer that is
 * stopped inside its window (a few instructions and one system call) is waited for until it goes on
 * or dies: safety first.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/shm_internal.h"

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

void shm_port_publish_region(struct shm_port *port, const struct region *region)
{
    if (region->kind != REGION_MEMORY || !(region->access & ACCESS_REMOTE_WRITE) ||
        region->whole_space || (region->access & ACCESS_ON_DEMAND)) {
        return;
    }
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_region *entry = &port->board->regions[region_place(region->key, i)];
        if (atomic_load_explicit(&entry->key, memory_order_relaxed) == 0) {
            entry->domain = (uintptr_t)region->pd;
            entry->start = region->start;
            entry->bytes = region->bytes;
            entry->memory = region->memory;
            atomic_store_explicit(&entry->key, region->key, memory_order_release);
            return;
        }
    }
    /* No room: the region is reached through the ring only. */
}

void shm_port_publish_qp(struct shm_port *port, const struct qp *qp)
{
    struct qp_attributes attributes;
    qp_query(qp, &attributes);
    if ((attributes.state != QP_RTR && attributes.state != QP_RTS) || qp_type_of(qp) != QP_RC ||
        !(attributes.access & ACCESS_REMOTE_WRITE)) {
        return;
    }
    shm_port_withdraw_qp(port, qp);
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_qp *entry = &port->board->qps[qp_place(qp_number(qp), i)];
        if (atomic_load_explicit(&entry->number, memory_order_relaxed) == 0) {
            entry->peer_number = attributes.destination_qpn;
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
            if (poll(&peer, 1, 1) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR))) {
                break; /* Dead: its system call has ended with it. */
            }
        }
    }
}

void shm_port_withdraw_region(struct shm_port *port, const struct region *region)
{
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        struct shm_board_region *entry = &port->board->regions[region_place(region->key, i)];
        if (atomic_load_explicit(&entry->key, memory_order_relaxed) == region->key) {
            atomic_store_explicit(&entry->key, 0, memory_order_release);
            wait_for_windows(port);
            return;
        }
    }
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

/* -- Writing ------------------------------------------------------------------------------------*/

/* Where and by which key a packet writes: its RETH, or where the packet before it ended. */
struct target {
    uint64_t address;
    uint32_t key;
};

static bool find_target(const struct shm_link *link, const struct nic_departure *departure,
                        uint32_t traits, struct target *target)
{
    if (traits & ROCE_IS_FIRST) {
        *target = (struct target){departure->packet->reth.address, departure->packet->reth.key};
        return true;
    }
    *target = (struct target){link->stream.address, link->stream.key};
    return link->stream.left != 0 && link->stream.qpn == qp_number(departure->qp) &&
           link->stream.psn == departure->packet->psn;
}

static bool qp_admits(const struct shm_board *board, const struct shm_link *link,
                      const struct nic_departure *departure, uint64_t *domain)
{
    const uint32_t number = departure->packet->destination_qpn;
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        const struct shm_board_qp *entry = &board->qps[qp_place(number, i)];
        if (atomic_load_explicit(&entry->number, memory_order_acquire) != number) {
            continue;
        }
        *domain = entry->domain;
        return entry->peer_number == qp_number(departure->qp) &&
               memcmp(&entry->peer, &link->link.self, sizeof(entry->peer)) == 0;
    }
    return false;
}

/* The memory behind [address, address + bytes); false: not for us. */
static bool region_admits(const struct shm_board *board, const struct target *target,
                          uint64_t domain, uint32_t bytes, uint64_t *memory)
{
    for (uint32_t i = 0; i < SHM_BOARD_PROBES; i++) {
        const struct shm_board_region *entry = &board->regions[region_place(target->key, i)];
        if (atomic_load_explicit(&entry->key, memory_order_acquire) != target->key) {
            continue;
        }
        const uint64_t offset = target->address - entry->start;
        if (entry->domain != domain || target->address < entry->start || offset > entry->bytes ||
            bytes > entry->bytes - offset) {
            return false;
        }
        *memory = entry->memory + offset;
        return true;
    }
    return false;
}

/* The last bytes are a piece of their own, so that they land last. */
static bool write_memory(struct shm_link *link, const struct nic_departure *departure,
                         uint64_t memory)
{
    const uint32_t bytes = departure->payload_bytes;
    const uint32_t tail = bytes < 8 ? bytes : 8;
    struct iovec local[NIC_SEGMENT_MAX];
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        local[i] = (struct iovec){(void *)(uintptr_t)departure->segments[i].address,
                                  departure->segments[i].bytes};
    }
    const struct iovec remote[2] = {{(void *)(uintptr_t)memory, bytes - tail},
                                    {(void *)(uintptr_t)(memory + bytes - tail), tail}};
    const bool split = bytes > tail;
    const ssize_t written = process_vm_writev(link->pid, local, departure->segment_count,
                                              split ? remote : remote + 1, split ? 2 : 1, 0);
    if (written < 0 && (errno == EPERM || errno == ENOSYS || errno == ESRCH)) {
        link->direct_refused = true;
    }
    return written == (ssize_t)bytes;
}

/* A message's first packet is judged for all of it: a WRITE that cannot end is not begun. */
static uint32_t wanted_bytes(const struct nic_departure *departure, uint32_t traits)
{
    return traits & ROCE_IS_FIRST ? departure->packet->reth.bytes : departure->payload_bytes;
}

static bool write_through_window(struct shm_link *link, const struct nic_departure *departure,
                                 const struct target *target, uint32_t traits)
{
    uint64_t domain, memory;
    atomic_store_explicit(&link->ring->window, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    const bool done =
        qp_admits(link->board, link, departure, &domain) &&
        region_admits(link->board, target, domain, wanted_bytes(departure, traits), &memory) &&
        write_memory(link, departure, memory);
    atomic_store_explicit(&link->ring->window, 0, memory_order_release);
    return done;
}

static void advance_stream(struct shm_link *link, const struct nic_departure *departure,
                           const struct target *target, uint32_t traits)
{
    const uint32_t left =
        traits & ROCE_IS_FIRST ? departure->packet->reth.bytes : link->stream.left;
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
    struct target target;
    if (base->lost || link->board == NULL || link->pid <= 0 || link->direct_refused ||
        departure->payload_bytes == 0 ||
        atomic_load_explicit(&link->board->direct, memory_order_relaxed) == 0 ||
        !find_target(link, departure, traits, &target)) {
        return false;
    }
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        if (departure->segments[i].may_fault) {
            return false;
        }
    }
    if (!write_through_window(link, departure, &target, traits)) {
        link->stream.left = 0;
        return false;
    }
    advance_stream(link, departure, &target, traits);
    shm_link_note_placed(port, link, departure);
    return true;
}
