/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/design/design_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/design/design_tap.h"
#include "drivers/faults.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "drivers/system/udp_socket.h"
#include "wire/block.h"

#define READY_MAX          32 /* Sockets that are asked for at a time. */
#define PAYLOAD_BYTES_MAX  65536
#define CONTROL_BYTES      (3 * CMSG_SPACE(sizeof(int)))
#define HELD_PAYLOAD_BYTES (BLOCK_PACKET_BYTES_MAX - sizeof(struct design_arrival))

/* One direction; `faults` is NULL if there are none. */
struct way {
    struct faults *faults;
    uint64_t *dropped, *held;
    struct link link; /* For drivers/faults.h, which looks at nothing in it. */
};

struct design_port {
    uint32_t ip;
    int epoll;
    int sockets[UINT16_MAX + 1];     /* By port; -1: none. 0, which is no port: the TAP device. */
    char tap[DESIGN_TAP_NAME_BYTES]; /* Its name; empty: there is none. */
    uint64_t tap_lost;               /* By the device, before it was ours. */
    uint32_t overflows[UINT16_MAX + 1];
    struct epoll_event ready[READY_MAX];
    uint32_t ready_count, ready_next;
    struct way out, in;
    struct design_arrival again; /* A datagram that is handed on this often once more. */
    uint32_t again_count;
    bool settles; /* The payload of one that was held is being read. */
    struct design_port_counters counters;
    uint8_t payload[PAYLOAD_BYTES_MAX]; /* The last datagram that came. */
    uint8_t struck[PAYLOAD_BYTES_MAX];  /* One that leaves with another bit. */
};

/* -- Opening ------------------------------------------------------------------------------------*/

/* Closes `fd` if it cannot be waited for: false, with errno. */
static bool wait_for(struct design_port *port, uint16_t number, int fd, char *error,
                     size_t error_bytes)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
    if (system_epoll_change(port->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        const int reason = errno;
        snprintf(error, error_bytes, "cannot wait for a socket: %s", strerror(reason));
        descriptor_close(fd);
        errno = reason;
        return false;
    }
    port->sockets[number] = fd;
    return true;
}

static bool open_tap(struct design_port *port, const char *name, char *error, size_t error_bytes)
{
    const int fd = design_tap_open(name, error, error_bytes);
    snprintf(port->tap, sizeof(port->tap), "%s", name);
    port->tap_lost = design_tap_lost(name);
    return fd >= 0 && wait_for(port, 0, fd, error, error_bytes);
}

static bool bind_port(struct design_port *port, uint16_t number, char *error, size_t error_bytes)
{
    if (port->sockets[number] >= 0) {
        return true;
    }
    const int fd = udp_socket_open(port->ip, number, false, error, error_bytes);
    if (fd < 0) {
        return false;
    }
    static const int on = 1;
    (void)setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
    return wait_for(port, number, fd, error, error_bytes);
}

/* Each direction decides by draws of its own. */
static bool open_faults(struct way *way, const char *spec, enum fault_direction direction,
                        char *error, size_t error_bytes)
{
    struct faults *faults = faults_open(spec, error, error_bytes);
    if (faults == NULL) {
        return false;
    }
    if (faults_apply(faults, direction)) {
        way->faults = faults;
    } else {
        faults_close(faults);
    }
    return true;
}

struct design_port *design_port_open(const struct design_port_config *config, char *error,
                                     size_t error_bytes)
{
    struct design_port *port = calloc(1, sizeof(*port));
    if (port == NULL) {
        snprintf(error, error_bytes, "no memory for the design's port");
        return NULL;
    }
    struct design_port_counters *counters = &port->counters;
    port->ip = config->ip;
    port->out = (struct way){.dropped = &counters->dropped_out, .held = &counters->held_out};
    port->in = (struct way){.dropped = &counters->dropped_in, .held = &counters->held_in};
    memset(port->sockets, -1, sizeof(port->sockets));
    port->epoll = descriptor_own(system_epoll_create(EPOLL_CLOEXEC));
    bool good = port->epoll >= 0;
    if (!good) {
        snprintf(error, error_bytes, "no descriptor to wait for sockets: %s", strerror(errno));
    }
    if (good && config->tap != NULL) {
        good = open_tap(port, config->tap, error, error_bytes);
    }
    for (uint32_t i = 0; good && i < config->port_count; i++) {
        good = bind_port(port, config->ports[i], error, error_bytes);
    }
    if (good && config->fault != NULL) {
        good = open_faults(&port->out, config->fault, FAULT_SENDING, error, error_bytes) &&
               open_faults(&port->in, config->fault, FAULT_RECEIVING, error, error_bytes);
    }
    if (!good) {
        design_port_close(port);
        return NULL;
    }
    return port;
}

void design_port_close(struct design_port *port)
{
    if (port == NULL) {
        return;
    }
    for (uint32_t i = 0; i <= UINT16_MAX; i++) {
        descriptor_close(port->sockets[i]);
    }
    descriptor_close(port->epoll);
    faults_close(port->out.faults);
    faults_close(port->in.faults);
    free(port);
}

const struct design_port_counters *design_port_counters(struct design_port *port)
{
    const uint64_t lost = port->tap[0] != '\0' ? design_tap_lost(port->tap) : 0;
    if (lost > port->tap_lost) {
        port->counters.lost = lost - port->tap_lost;
    }
    return &port->counters;
}

/* -- A bad network ------------------------------------------------------------------------------*/

/* Returns how many copies pass now. The packet is kept with its description behind its payload. */
static uint32_t pass(struct way *way, struct design_arrival *packet, struct instant now)
{
    if (way->faults == NULL) {
        return 1;
    }
    const struct inet_datagram *datagram = &packet->datagram;
    const struct fault_decision fault = faults_decide(way->faults, datagram->payload_bytes);
    packet->corrupt = fault.corrupt;
    packet->corrupt_bit = fault.corrupt_bit;
    *way->dropped += fault.drop;
    uint32_t copies = (uint32_t)fault.duplicate + !fault.drop;
    if (fault_holds(&fault) && datagram->payload_bytes <= HELD_PAYLOAD_BYTES) {
        uint8_t bytes[BLOCK_PACKET_BYTES_MAX];
        if (datagram->payload_bytes > 0) {
            memcpy(bytes, datagram->payload, datagram->payload_bytes);
        }
        memcpy(bytes + datagram->payload_bytes, packet, sizeof(*packet));
        const struct faults_packet held = {
            .link = &way->link,
            .bytes = bytes,
            .whole = true,
            .payload_bytes = (uint16_t)(datagram->payload_bytes + sizeof(*packet))};
        if (faults_hold(way->faults, &held, now, &fault)) {
            ++*way->held;
            copies--;
        }
    }
    return copies;
}

/* A packet whose time has come; its payload is there until faults_settle. */
static bool take_due(struct way *way, struct instant now, struct design_arrival *packet)
{
    const struct faults_packet *held = way->faults == NULL ? NULL : faults_due(way->faults, now);
    if (held == NULL) {
        return false;
    }
    memcpy(packet, held->bytes + held->payload_bytes - sizeof(*packet), sizeof(*packet));
    packet->datagram.payload = held->bytes;
    faults_take(way->faults);
    return true;
}

/* -- Sending ------------------------------------------------------------------------------------*/

static void add_control(struct msghdr *message, int type, int value)
{
    struct cmsghdr *control =
        (struct cmsghdr *)(void *)((char *)message->msg_control + message->msg_controllen);
    message->msg_controllen += CMSG_SPACE(sizeof(value));
    control->cmsg_level = IPPROTO_IP;
    control->cmsg_type = type;
    control->cmsg_len = CMSG_LEN(sizeof(value));
    memcpy(CMSG_DATA(control), &value, sizeof(value));
}

static bool send_now(struct design_port *port, const struct inet_datagram *datagram)
{
    char error[160];
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(datagram->peer_port),
                             .sin_addr.s_addr = htonl(datagram->peer_ip)};
    struct iovec payload = {(void *)(uintptr_t)datagram->payload, datagram->payload_bytes};
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES];
    struct msghdr message = {.msg_name = &to,
                             .msg_namelen = sizeof(to),
                             .msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = control};
    add_control(&message, IP_TOS, datagram->variant.traffic_class);
    add_control(&message, IP_TTL, datagram->variant.hop_limit);
    if (!bind_port(port, datagram->own_port, error, sizeof(error))) {
        return false;
    }
    ssize_t sent;
    do {
        sent = system_send_message(port->sockets[datagram->own_port], &message, 0);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static void transmit(struct design_port *port, const struct design_arrival *packet)
{
    struct inet_datagram datagram = packet->datagram;
    if (packet->corrupt) {
        memcpy(port->struck, datagram.payload, datagram.payload_bytes);
        port->struck[packet->corrupt_bit / 8] ^= (uint8_t)(1u << packet->corrupt_bit % 8);
        datagram.payload = port->struck;
    }
    if (port->tap[0] != '\0'
            ? design_tap_send(port->sockets[0], datagram.payload, datagram.payload_bytes)
            : send_now(port, &datagram)) {
        port->counters.sent++;
    } else {
        port->counters.refused++;
        port->counters.refused_why = errno;
        port->counters.refused_port = datagram.own_port;
    }
}

void design_port_send(struct design_port *port, const struct inet_datagram *datagram,
                      struct instant now)
{
    struct design_arrival packet = {.datagram = *datagram};
    CHECK(datagram->payload_bytes <= PAYLOAD_BYTES_MAX);
    CHECK((datagram->own_port == 0) == (port->tap[0] != '\0'));
    for (uint32_t copies = pass(&port->out, &packet, now); copies > 0; copies--) {
        transmit(port, &packet);
    }
    (void)design_port_release(port, now);
}

bool design_port_release(struct design_port *port, struct instant now)
{
    struct design_arrival packet;
    while (take_due(&port->out, now, &packet)) {
        transmit(port, &packet);
        faults_settle(port->out.faults);
    }
    return port->again_count > 0 ||
           instant_before(faults_deadline(port->out.faults), INSTANT_NEVER) ||
           instant_before(faults_deadline(port->in.faults), INSTANT_NEVER);
}

/* -- Receiving ----------------------------------------------------------------------------------*/

static void listen_to(struct design_port *port, struct inet_datagram *datagram,
                      const struct cmsghdr *control)
{
    uint32_t value = 0;
    const int level = control->cmsg_level, type = control->cmsg_type;
    memcpy(&value, CMSG_DATA(control), level == IPPROTO_IP && type == IP_TOS ? 1 : sizeof(value));
    if (level == IPPROTO_IP && type == IP_TOS) {
        datagram->variant.traffic_class = (uint8_t)value;
    } else if (level == IPPROTO_IP && type == IP_TTL) {
        datagram->variant.hop_limit = (uint8_t)value;
    } else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
        port->counters.lost += value - port->overflows[datagram->own_port];
        port->overflows[datagram->own_port] = value;
    }
}

static bool read_tap(struct design_port *port, struct inet_datagram *frame)
{
    const int fd = port->sockets[0];
    const uint32_t bytes = design_tap_receive(fd, port->payload, sizeof(port->payload));
    if (bytes == 0 && errno == EBADFD) { /* It would always be ready. */
        port->counters.gone = true;
        (void)system_epoll_change(port->epoll, EPOLL_CTL_DEL, fd, NULL);
    }
    *frame = (struct inet_datagram){.payload = port->payload, .payload_bytes = bytes};
    port->counters.received += bytes > 0;
    return bytes > 0;
}

static bool read_socket(struct design_port *port, uint16_t number, struct inet_datagram *datagram)
{
    struct sockaddr_in from;
    struct iovec payload = {port->payload, sizeof(port->payload)};
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES];
    struct msghdr message = {.msg_name = &from,
                             .msg_namelen = sizeof(from),
                             .msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    const ssize_t count = system_recv_message(port->sockets[number], &message, MSG_DONTWAIT);
    if (count < 0) {
        return false;
    }
    *datagram = (struct inet_datagram){.peer_ip = ntohl(from.sin_addr.s_addr),
                                       .peer_port = ntohs(from.sin_port),
                                       .own_port = number,
                                       .variant = INET_VARIANT_PLAIN,
                                       .payload = port->payload,
                                       .payload_bytes = (uint32_t)count};
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one != NULL;
         one = CMSG_NXTHDR(&message, one)) {
        listen_to(port, datagram, one);
    }
    port->counters.received++;
    return true;
}

/* One datagram of each socket that has any, in turn. */
static bool read_next(struct design_port *port, struct inet_datagram *datagram)
{
    for (;;) {
        if (port->ready_next == port->ready_count) {
            const int count = system_epoll(port->epoll, port->ready, READY_MAX);
            port->ready_next = 0;
            port->ready_count = count > 0 ? (uint32_t)count : 0;
            if (count <= 0) {
                return false;
            }
        }
        const uint16_t number = (uint16_t)port->ready[port->ready_next++].data.u32;
        if (number == 0 ? read_tap(port, datagram) : read_socket(port, number, datagram)) {
            return true;
        }
    }
}

bool design_port_receive(struct design_port *port, struct instant now,
                         struct design_arrival *arrival)
{
    if (port->again_count > 0) {
        port->again_count--;
        *arrival = port->again;
        return true;
    }
    if (port->settles) {
        faults_settle(port->in.faults);
        port->settles = false;
    }
    if (take_due(&port->in, now, arrival)) {
        port->settles = true;
        return true;
    }
    *arrival = (struct design_arrival){.corrupt = false};
    while (read_next(port, &arrival->datagram)) {
        const uint32_t copies = pass(&port->in, arrival, now);
        if (copies > 0) {
            port->again = *arrival;
            port->again_count = copies - 1;
            return true;
        }
    }
    return false;
}

void design_port_sleep(const struct design_port *port, uint32_t most_ms)
{
    struct pollfd sockets = {.fd = port->epoll, .events = POLLIN};
    (void)system_poll(&sockets, 1, (int)most_ms);
}
