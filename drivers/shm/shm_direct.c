/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_direct - an RDMA WRITE into a local peer's memory, or a READ of it, done by the requester
 * itself.
 *
 * The peer's program may spin on plain memory, or sleep: its NIC would have to wait for a core. So
 * the requester asks the kernel to copy (process_vm_writev, process_vm_readv). The peer's board
 * tells which memory the requester may reach: the same that the peer's NIC would grant to a packet.
 *
 * An entry that is taken off the board must never be used again: the memory may have been given
 * back. A requester therefore opens a window in the shared ring, looks at the board, copies, and
 * closes the window; a process that takes an entry off waits for windows (shm_window.c).
 *
 * The peer's memory is named by a process number, which may come to name another process once the
 * peer has ended, or the same process with another program in it. Hang-ups come late, or never if a
 * child of the peer holds its sockets. So a requester looks at the word of the board's owner, in
 * its window before it writes, and once more after it has read, so that other memory is never taken
 * for the peer's.
 *
 * That word is in the peer's memory, and may lie. The kernel lets us reach the memory of a process
 * number only if we may trace that process: one of our user. A thread that could trace processes of
 * other users (root's) writes through a descriptor of the peer's memory. The bytes that it reads by
 * number count if the kernel says afterwards that the process of that number was there all the
 * time.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/guard.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"

/* A look whether a process is there takes as long as a copy of 1 KB. */
#define BY_NUMBER_BYTES 8192

/* -- Reaching -----------------------------------------------------------------------------------*/

/* The access that a packet is about to make. A message's first packet is judged for all of it: a
 * WRITE that cannot end is not begun. */
static struct shm_reach reach_of(const struct shm_link *link, const struct nic_departure *departure,
                                 uint32_t right)
{
    return (struct shm_reach){
        .number = departure->destination_qpn,
        .key = departure->direct.key,
        .source = {.gid = link->link.self,
                   .number = qp_number(departure->qp),
                   .terms = qp_terms(departure->qp)},
        .access = {departure->direct.address, departure->direct.bytes, right,
                   departure->direct.message_bytes},
    };
}

/* Can it succeed at all? */
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

/* Facts about the calling thread, for which the kernel is asked once. A child of fork has a copy of
 * its parent's, but a port of its own. */
struct thread {
    const struct shm_port *port;
    uint32_t number; /* Its number in /proc. */
    bool may_trace;  /* It may trace other users' processes. A thread never gets this right
                        later. */
};

static const struct thread *own_thread(const struct shm_port *port)
{
    static _Thread_local struct thread known;
    if (UNLIKELY(known.port != port)) {
        known = (struct thread){port, (uint32_t)syscall(SYS_gettid), user_may_trace_others()};
    }
    return &known;
}

/* Can the thread reach the peer's memory in a way that leads to processes of our user alone? */
static bool find_memory(struct shm_link *link, const struct thread *thread)
{
    if (LIKELY(!thread->may_trace || link->process.memory >= 0)) {
        return true;
    }
    link->direct_refused = user_of_process(link->pid, &link->process) != geteuid();
    link->direct_refused |= link->process.memory < 0;
    if (link->direct_refused) {
        user_process_close(&link->process);
    }
    return !link->direct_refused;
}

/* A window opens only if the access can succeed. The thread has a number; a thread that may trace
 * other users' processes has a descriptor of the peer's memory. */
static void window_check(const struct shm_link *link, const struct thread *thread)
{
    CHECK(!link->link.lost && link->ring != NULL && link->board != NULL && link->pid > 0);
    CHECK(thread->number != 0);
    CHECK(!thread->may_trace || link->process.memory >= 0);
    CHECK(!link->direct_refused);
}

/* Copies bytes of the peer's memory, and returns what the kernel says. Through the descriptor the
 * kernel copies each byte twice. So a large number of bytes is read by the process number; they
 * count if the process of that number is still there. */
static ssize_t copy_in(const struct thread *thread, const struct shm_link *link,
                       const struct iovec *local, uint32_t pieces, uint64_t memory, uint32_t bytes)
{
    const struct user_process *process = &link->process;
    if (thread->may_trace && (bytes < BY_NUMBER_BYTES || process->end < 0)) {
        return syscall(SYS_preadv, process->memory, local, (long)pieces, (long)memory, 0L);
    }
    const struct iovec remote = {(void *)(uintptr_t)memory, bytes};
    const ssize_t read = process_vm_readv(link->pid, local, pieces, &remote, 1, 0);
    return thread->may_trace && !user_process_is_there(process) ? 0 : read;
}

/* Does the peer's queue pair expect the packet, which begins a message? This is looked up while no
 * packet of ours is under way to it. If the PSN was right once, it stays right until either of the
 * two queue pairs is modified: nobody else sends there, and this packet is alone. */
static bool look_up_awaited(const struct thread *thread, const struct shm_link *link,
                            const struct nic_departure *departure, const struct shm_grant *grant)
{
    if (!shm_link_has_read(&link->link, link->tail)) {
        return false;
    }
    uint8_t awaited[QP_AWAITED_BYTES];
    const struct iovec local = {awaited, sizeof(awaited)};
    const uint64_t place = shm_board_awaited(link->board, grant);
    if (copy_in(thread, link, &local, 1, place, sizeof(awaited)) != sizeof(awaited) ||
        !qp_awaits(awaited, departure->psn)) {
        return false;
    }
    qp_note_agreed(departure->qp, grant->state);
    return true;
}

static void begin_window(const struct thread *thread, struct shm_link *link)
{
    INVARIANTS(window_check(link, thread));
    const shm_window window = (shm_window)++link->windows << 32 | thread->number;
    /* The owner of the memory may see this window, and not that the one before it was closed: all
     * accesses of that one are over. */
    atomic_store_explicit(&link->ring->window, window, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

/* Opens the window and judges. The caller closes it in any case. A window is good for one system
 * call: a process that sees this thread stopped in that call takes the window for closed
 * (shm_window.c). So after a look-up another window is opened, and all is judged again. */
static bool open_window(struct shm_port *port, struct shm_link *link, const struct thread *thread,
                        const struct nic_departure *departure, uint32_t right,
                        struct shm_grant *grant)
{
    const struct shm_reach reach = reach_of(link, departure, right);
    enum reach_verdict verdict;
    bool looked_up = false, again;
    if (!find_memory(link, thread)) {
        return false;
    }
    do {
        begin_window(thread, link);
        if (!shm_board_is_owned(link->board)) {
            port->direct.no_owner++;
            return false;
        }
        verdict = shm_board_judge(link->board, &reach, grant);
        again = false;
        if (verdict == REACH_ALLOWED && UNLIKELY(qp_agreed(departure->qp) != grant->state)) {
            verdict = REACH_OTHER_PSN;
            again = !looked_up && look_up_awaited(thread, link, departure, grant);
            looked_up = true;
        }
    } while (again);
    INVARIANTS(CHECK(verdict < COUNT_OF(port->direct.refused)));
    port->direct.refused[verdict] += verdict != REACH_ALLOWED;
    return verdict == REACH_ALLOWED;
}

/* Counts the result, after the window. */
static void count(struct shm_port *port, bool opened, bool moved)
{
    INVARIANTS(CHECK(opened || !moved));
    port->direct.done += moved;
    port->direct.failed += opened && !moved;
}

const struct shm_direct_counters *shm_port_direct(const struct shm_port *port)
{
    return &port->direct;
}

static void close_window(struct shm_link *link)
{
    INVARIANTS(CHECK(link->ring != NULL));
    atomic_store_explicit(&link->ring->window, 0, memory_order_release);
}

static void to_iovecs(const struct segment *segments, uint32_t count, struct iovec *iovecs)
{
    INVARIANTS(CHECK(count <= NIC_SEGMENT_MAX));
    for (uint32_t i = 0; i < count; i++) {
        iovecs[i] = (struct iovec){(void *)(uintptr_t)segments[i].address, segments[i].bytes};
    }
}

/* `moved`: what the kernel said about `bytes`. */
static bool all_moved(struct shm_link *link, ssize_t moved, uint32_t bytes)
{
    /* Any other errno is not about this memory alone: a filter may choose any. A descriptor of
     * memory says EIO if the memory is not there. */
    if (moved < 0 && errno != EFAULT && errno != EIO && errno != ENOMEM) {
        link->direct_refused = true;
    }
    return moved == (ssize_t)bytes;
}

/* -- Through memory that is mapped (shm_view.c) -------------------------------------------------*/

/* `here`: the first of the bytes, ours or the peer's. */
static bool copy_here(uint8_t *here, const struct segment *segments, uint32_t count, bool write)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *local = (uint8_t *)(uintptr_t)segments[i].address;
        if (!guard_copy(write ? here : local, write ? local : here, segments[i].bytes)) {
            return false;
        }
        here += segments[i].bytes;
    }
    return true;
}

/* An access has gone through the kernel. One of CHARGED stands for all of them, until the memory is
 * there to be mapped. */
#define CHARGED 8
static void charge(struct shm_link *link, const struct shm_grant *grant, uint32_t key,
                   uint32_t bytes)
{
    if (UNLIKELY(++link->kernel_accesses % CHARGED == 0 || grant->extent != 0)) {
        shm_view_charge(link, grant, key, bytes, CHARGED);
    }
}

/* -- Writing ------------------------------------------------------------------------------------*/

/* The last bytes are a piece of their own, so that they land last. */
#define TAIL_BYTES 8

/* Cuts a tail off the last piece. Returns how many pieces there are then. */
static uint32_t cut_tail(struct iovec *pieces, uint32_t count)
{
    INVARIANTS(CHECK(count > 0));
    struct iovec *last = &pieces[count - 1];
    if (last->iov_len <= TAIL_BYTES) {
        return count;
    }
    last->iov_len -= TAIL_BYTES;
    last[1] = (struct iovec){(uint8_t *)last->iov_base + last->iov_len, TAIL_BYTES};
    return count + 1;
}

static ssize_t copy_out(const struct thread *thread, const struct shm_link *link,
                        const struct nic_departure *departure, uint64_t memory)
{
    struct iovec local[NIC_SEGMENT_MAX + 1];
    struct iovec remote[2] = {{(void *)(uintptr_t)memory, departure->payload_bytes}};
    to_iovecs(departure->segments, departure->segment_count, local);
    if (!thread->may_trace) {
        return process_vm_writev(link->pid, local, departure->segment_count, remote,
                                 cut_tail(remote, 1), 0);
    }
    const uint32_t pieces = cut_tail(local, departure->segment_count);
    return syscall(SYS_pwritev, link->process.memory, local, (long)pieces, (long)memory, 0L);
}

static bool write_there(const struct thread *thread, struct shm_link *link,
                        const struct nic_departure *departure, uint64_t memory)
{
    return all_moved(link, copy_out(thread, link, departure, memory), departure->payload_bytes);
}

bool shm_link_place(struct shm_port *port, struct link *base, const struct nic_departure *departure,
                    bool mapped)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    struct shm_grant grant = {0};
    if (departure->payload_bytes == 0 ||
        !within_reach(link, departure->segments, departure->segment_count)) {
        return false;
    }
    const struct thread *thread = own_thread(port);
    const bool opened = open_window(port, link, thread, departure, ACCESS_REMOTE_WRITE, &grant);
    uint8_t *here = opened ? shm_view_at(link, &grant, departure->payload_bytes, true) : NULL;
    const bool reached = opened && (here != NULL || !mapped);
    const bool written = here != NULL
                             ? copy_here(here, departure->segments, departure->segment_count, true)
                             : reached && write_there(thread, link, departure, grant.memory);
    close_window(link);
    count(port, reached, written);
    if (opened && here == NULL) {
        charge(link, &grant, departure->direct.key,
               reached ? departure->payload_bytes : departure->direct.message_bytes);
    }
    if (written) {
        shm_link_note_placed(port, link, departure);
    }
    return written;
}

/* -- Reading ------------------------------------------------------------------------------------*/

static bool read_there(const struct thread *thread, struct shm_link *link,
                       const struct segment *segments, uint32_t segment_count, uint64_t memory,
                       uint32_t bytes)
{
    struct iovec local[NIC_SEGMENT_MAX];
    to_iovecs(segments, segment_count, local);
    return all_moved(link, copy_in(thread, link, local, segment_count, memory, bytes), bytes);
}

bool shm_link_fetch(struct shm_port *port, struct link *base, const struct nic_departure *departure,
                    const struct segment *segments, uint32_t segment_count, bool mapped)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    const uint32_t bytes = departure->direct.bytes;
    struct shm_grant grant = {0};
    if (bytes == 0 || !within_reach(link, segments, segment_count)) {
        return false;
    }
    const struct thread *thread = own_thread(port);
    const bool opened = open_window(port, link, thread, departure, ACCESS_REMOTE_READ, &grant);
    uint8_t *here = opened ? shm_view_at(link, &grant, bytes, false) : NULL;
    const bool reached = opened && (here != NULL || !mapped);
    const bool copied = here != NULL ? copy_here(here, segments, segment_count, false)
                                     : reached && read_there(thread, link, segments, segment_count,
                                                             grant.memory, bytes);
    const bool read = copied && shm_board_is_owned(link->board);
    close_window(link);
    count(port, reached, read);
    if (read && here == NULL) {
        charge(link, &grant, departure->direct.key, bytes);
    }
    if (read) {
        shm_link_note_placed(port, link, departure);
    }
    return read;
}
