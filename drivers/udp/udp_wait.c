/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_wait - messages for which a socket's send buffer had no room.
 *
 * A device slower than its senders fills the buffer. To wait for room in the call would stop every
 * thread of the program, since we hold the NIC's lock; to drop the messages that do not fit would
 * be worse: RC would repeat them after a timeout, UC and UD would lose them. So they are copied,
 * because their memory is the program's again when we return, and leave at a later flush. Meanwhile
 * no link has room, so queue pairs wait, and packets that come in between (acknowledgements) queue
 * behind.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/system/system.h"
#include "drivers/udp/udp_port.h"

/* The bytes of one batch of the largest packets. */
#define WAITING_BYTES_MAX ((size_t)UDP_BATCH_MAX * BLOCK_PACKET_BYTES_MAX)

struct udp_waiting {
    struct mmsghdr messages[UDP_BATCH_MAX];
    struct {
        int fd;
        uint32_t packets;
        struct iovec vector;
        struct sockaddr_storage to;
        _Alignas(struct cmsghdr) char control[UDP_CONTROL_BYTES];
    } parts[UDP_BATCH_MAX]; /* The memory that the messages point to. */
    uint32_t first, count;  /* Those before `first` have left. */
    size_t used;            /* Used part of `bytes`. */
    uint8_t bytes[WAITING_BYTES_MAX];
};

/* All messages that wait lie one behind the other in `bytes`; if one waits, the port is blocked. */
static void udp_waiting_check(const struct udp_port *port)
{
    const struct udp_waiting *waiting = port->waiting;
    CHECK(waiting->first <= waiting->count && waiting->count <= UDP_BATCH_MAX);
    CHECK(waiting->used <= WAITING_BYTES_MAX);
    CHECK(port->blocked || waiting->first == waiting->count);
    size_t used = 0;
    for (uint32_t i = 0; i < waiting->count; i++) {
        CHECK(waiting->parts[i].vector.iov_base == waiting->bytes + used);
        CHECK(waiting->messages[i].msg_hdr.msg_iov == &waiting->parts[i].vector);
        used += waiting->parts[i].vector.iov_len;
    }
    CHECK(used == waiting->used);
}

struct udp_waiting *udp_waiting_make(void)
{
    struct udp_waiting *waiting = malloc(sizeof(*waiting));
    if (waiting != NULL) {
        waiting->first = waiting->count = 0;
        waiting->used = 0;
    }
    return waiting;
}

void udp_waiting_forget(struct udp_port *port)
{
    struct udp_waiting *waiting = port->waiting;
    waiting->first = waiting->count = 0;
    waiting->used = 0;
    port->blocked = false;
}

static size_t bytes_of(const struct msghdr *message)
{
    size_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        bytes += message->msg_iov[i].iov_len;
    }
    return bytes;
}

/* Copies a message. False: there is no room here either. */
static bool keep(struct udp_waiting *waiting, int fd, const struct msghdr *message,
                 uint32_t packets)
{
    const size_t bytes = bytes_of(message);
    if (waiting->count == UDP_BATCH_MAX || bytes > WAITING_BYTES_MAX - waiting->used) {
        return false;
    }
    struct msghdr *kept = &waiting->messages[waiting->count].msg_hdr;
    uint8_t *at = waiting->bytes + waiting->used;
    *kept = *message;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        memcpy(at, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
        at += message->msg_iov[i].iov_len;
    }
    waiting->parts[waiting->count].fd = fd;
    waiting->parts[waiting->count].packets = packets;
    waiting->parts[waiting->count].vector =
        (struct iovec){.iov_base = waiting->bytes + waiting->used, .iov_len = bytes};
    memcpy(&waiting->parts[waiting->count].to, message->msg_name, message->msg_namelen);
    kept->msg_name = &waiting->parts[waiting->count].to;
    kept->msg_iov = &waiting->parts[waiting->count].vector;
    kept->msg_iovlen = 1;
    if (message->msg_controllen > 0) {
        CHECK(message->msg_controllen <= UDP_CONTROL_BYTES);
        memcpy(waiting->parts[waiting->count].control, message->msg_control,
               message->msg_controllen);
        kept->msg_control = waiting->parts[waiting->count].control;
    }
    waiting->used += bytes;
    waiting->count++;
    return true;
}

void udp_wait(struct udp_port *port, int fd, const struct mmsghdr *messages, const uint32_t *places,
              uint32_t count)
{
    INVARIANTS(udp_waiting_check(port));
    port->blocked = true;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t packets = places[i + 1] - places[i];
        if (keep(port->waiting, fd, &messages[i].msg_hdr, packets)) {
            port->counters.send_waited += packets;
        } else {
            port->counters.send_failed += packets;
        }
    }
    INVARIANTS(udp_waiting_check(port));
}

/* The number of messages in a row for one socket. */
static uint32_t run_of(const struct udp_waiting *waiting)
{
    uint32_t end = waiting->first + 1;
    while (end < waiting->count && waiting->parts[end].fd == waiting->parts[waiting->first].fd) {
        end++;
    }
    return end - waiting->first;
}

void udp_send_waiting(struct udp_port *port)
{
    struct udp_waiting *waiting = port->waiting;
    INVARIANTS(udp_waiting_check(port));
    while (waiting->first < waiting->count) {
        port->counters.send_calls++;
        const long sent = syscall(SYS_sendmmsg, waiting->parts[waiting->first].fd,
                                  waiting->messages + waiting->first, run_of(waiting),
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            waiting->first += (uint32_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            port->counters.send_failed += waiting->parts[waiting->first].packets;
            waiting->first++;
        }
    }
    udp_waiting_forget(port);
}

void udp_port_drain(struct udp_port *port, int limit_ms)
{
    for (int waited_ms = 0; port->blocked && waited_ms < limit_ms; waited_ms += 10) {
        struct pollfd room = {.fd = port->waiting->parts[port->waiting->first].fd,
                              .events = POLLOUT};
        (void)system_poll(&room, 1, 10);
        udp_send_waiting(port);
    }
}
