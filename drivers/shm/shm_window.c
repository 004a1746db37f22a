/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_window - a wait until no peer reaches memory by entries that were taken off the board.
 *
 * A peer that reaches into our memory opens its window first, looks at the board then, and closes
 * the window when its one system call is done. So once a window was seen closed, or opened anew,
 * after an entry had been taken off, that peer is not acting on the entry any more (both sides have
 * a full fence in between). Withdrawals are numbered, and each ring knows the last one that its
 * producer cannot act against any more; nobody has to wait under the NIC's lock.
 *
 * A window stays open while its thread is off the processor: for a time slice, or for as long as
 * somebody stopped its process. One that is stopped in the middle of the system call has in fact
 * finished it: a stop takes effect on the way back to the program, and not before. That is seen in
 * /proc. All others are waited for, and the caller decides for how long.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/lines.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/processor.h"
#include "drivers/system/system.h"

#define SPINS 1000

void shm_note_withdrawal(struct shm_port *port)
{
    port->withdrawals++;
    /* Pairs with the fence in a peer that has opened its window: either we see that it is open, or
     * the peer sees the withdrawal. */
    atomic_thread_fence(memory_order_seq_cst);
}

uint64_t shm_port_withdrawals(const struct shm_port *port)
{
    return port->withdrawals;
}

/* A look settles no more than there was at that time. */
static void settled_check(const struct shm_port *port, const struct shm_inbound *inbound)
{
    CHECK(inbound->settled <= inbound->looked_at);
    CHECK(inbound->looked_at <= port->withdrawals);
}

/* One look at a window. */
static void look(const struct shm_port *port, struct shm_inbound *inbound)
{
    const shm_window window = atomic_load_explicit(&inbound->ring->window, memory_order_acquire);
    if (window != inbound->window) {
        /* The window that we saw at the last look has been closed since. */
        inbound->settled = inbound->looked_at;
    }
    if (window == 0 || inbound->hung_up) {
        inbound->settled = port->withdrawals;
    }
    inbound->window = window;
    inbound->looked_at = port->withdrawals;
    INVARIANTS(settled_check(port, inbound));
}

static bool is_settled(const struct shm_port *port, struct shm_inbound *inbound,
                       uint64_t withdrawal)
{
    for (uint32_t i = 0; i < SPINS && inbound->settled < withdrawal; i++) {
        look(port, inbound);
        if (inbound->settled < withdrawal) {
            processor_pause();
        }
    }
    return inbound->settled >= withdrawal;
}

bool shm_port_settled(struct shm_port *port, uint64_t withdrawal)
{
    CHECK(withdrawal <= port->withdrawals); /* A later one would be waited for without end. */
    bool settled = true;
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        settled &= is_settled(port, port->inbound[i], withdrawal);
    }
    return settled;
}

/* -- Peers that take long -----------------------------------------------------------------------*/

/* Reads a file of the thread in /proc; "" if it cannot be read. */
static void read_text(char *text, size_t text_bytes, const char *name, pid_t pid, uint32_t thread)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%u/%s", pid, thread, name);
    (void)lines_read(AT_FDCWD, path, text, text_bytes);
}

/* True: the thread is stopped, and has finished the system call that reaches into our memory. It
 * was seen in the call, and then stopped (T): a stop takes effect only after a call. A thread that
 * is traced (t) may not have finished it, since tracers stop threads before a call as well. */
static bool is_stopped_behind_its_call(pid_t pid, uint32_t thread)
{
    char text[512];
    long number = -1;
    read_text(text, sizeof(text), "syscall", pid, thread);
    if (sscanf(text, "%ld", &number) != 1 ||
        (number != SYS_process_vm_readv && number != SYS_process_vm_writev &&
         number != SYS_preadv && number != SYS_pwritev)) {
        return false;
    }
    read_text(text, sizeof(text), "stat", pid, thread);
    /* The program's name before the state may hold anything, but no ')' comes after it. */
    const char *state = strrchr(text, ')');
    return state != NULL && strncmp(state, ") T", 3) == 0;
}

/* Are all threads of the peer gone, and with them their system calls? */
static bool is_gone(const struct shm_inbound *inbound)
{
    struct pollfd socket = {.fd = inbound->socket, .events = POLLRDHUP};
    if (inbound->hung_up ||
        (system_poll(&socket, 1, 0) > 0 && (socket.revents & (POLLHUP | POLLERR | POLLNVAL)))) {
        return true;
    }
    return inbound->pid > 0 && kill(inbound->pid, 0) != 0 && errno == ESRCH;
}

/* Can the peer not act on any entry that was withdrawn before now? */
static bool is_over(const struct shm_inbound *inbound)
{
    return is_gone(inbound) || (inbound->pid > 0 && is_stopped_behind_its_call(
                                                        inbound->pid, (uint32_t)inbound->window));
}

enum shm_wait shm_port_look_closely(struct shm_port *port, uint64_t withdrawal)
{
    enum shm_wait wait = SHM_WAIT_OVER;
    CHECK(withdrawal <= port->withdrawals);
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        struct shm_inbound *inbound = port->inbound[i];
        if (is_settled(port, inbound, withdrawal)) {
            continue;
        }
        if (is_over(inbound)) {
            inbound->settled = port->withdrawals;
            INVARIANTS(settled_check(port, inbound));
        } else if (wait != SHM_WAIT_ON) {
            wait = inbound->given_up == inbound->window ? SHM_WAIT_IN_VAIN : SHM_WAIT_ON;
        }
    }
    return wait;
}

pid_t shm_port_give_up(struct shm_port *port, uint64_t withdrawal)
{
    pid_t pid = 0;
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        struct shm_inbound *inbound = port->inbound[i];
        if (inbound->settled < withdrawal && inbound->given_up != inbound->window) {
            CHECK(inbound->window != 0); /* One that is closed is settled. */
            inbound->given_up = inbound->window;
            pid = inbound->pid;
        }
    }
    return pid;
}
