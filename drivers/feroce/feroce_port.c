/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/feroce/feroce_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "drivers/feroce/feroce_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "drivers/system/udp_socket.h"

#define SOCKET_BYTES_WANTED (4 << 20)
#define DATA_READS_MAX      2 /* Reads of data in a row, before messages have their turn. */

/* -- Opening ------------------------------------------------------------------------------------*/

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

/* A socket as the board's frames need it. */
static int open_socket(const struct feroce_port *port, uint16_t udp_port, bool has_checksum,
                       char *error, size_t error_bytes)
{
    const int fd = udp_socket_open(port->config.ip, udp_port, has_checksum, error, error_bytes);
    set_option(fd, IPPROTO_IP, IP_TOS, port->config.service_class << 5);
    return fd;
}

static bool open_sockets(struct feroce_port *port, char *error, size_t error_bytes)
{
    const uint16_t from = port->config.stack == FEROCE_STACK_2024 ? FEROCE_PORT_DATA_FROM_2024
                                                                  : FEROCE_PORT_DATA_FROM;
    port->cm_in = open_socket(port, FEROCE_PORT_CM, false, error, error_bytes);
    port->cm_out =
        port->cm_in < 0 ? -1 : open_socket(port, FEROCE_PORT_CM_FROM, false, error, error_bytes);
    port->data_out = port->cm_out < 0
                         ? -1
                         : open_socket(port, from, port->config.segmenting, error, error_bytes);
    port->data_in =
        port->data_out < 0 ? -1 : open_socket(port, ROCE_UDP_PORT, false, error, error_bytes);
    return port->data_in >= 0;
}

/* UDP's ports are still held by the other sockets. */
static bool open_raw(struct feroce_port *port, char *error, size_t error_bytes)
{
    if (!port->config.exact_ip) {
        return true;
    }
    port->raw = descriptor_own(system_socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
    if (port->raw < 0) {
        snprintf(error, error_bytes, "--exact-ip needs CAP_NET_RAW: %s", strerror(errno));
        return false;
    }
    set_option(port->raw, SOL_SOCKET, SO_SNDBUF, SOCKET_BYTES_WANTED);
    return true;
}

static bool open_faults(struct feroce_port *port, char *error, size_t error_bytes)
{
    if (port->config.fault == NULL) {
        return true;
    }
    struct faults **const both[] = {&port->faults_out, &port->faults_in};
    static const enum fault_direction directions[] = {FAULT_SENDING, FAULT_RECEIVING};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct faults *faults = faults_open(port->config.fault, error, error_bytes);
        if (faults == NULL) {
            return false;
        }
        if (!faults_apply(faults, directions[i])) {
            faults_close(faults);
            faults = NULL;
        }
        *both[i] = faults;
    }
    return true;
}

struct feroce_port *feroce_port_open(const struct feroce_port_config *config, char *error,
                                     size_t error_bytes)
{
    struct feroce_port *port = calloc(1, sizeof(*port));
    if (port == NULL) {
        snprintf(error, error_bytes, "no memory for the board's port");
        return NULL;
    }
    port->config = *config;
    port->cm_in = port->cm_out = port->data_out = port->data_in = port->raw = -1;
    if (!open_sockets(port, error, error_bytes) || !open_raw(port, error, error_bytes) ||
        !open_faults(port, error, error_bytes)) {
        feroce_port_close(port);
        return NULL;
    }
    if (config->capture != NULL) {
        port->capture = feroce_capture_open(config, error, error_bytes);
        if (port->capture == NULL) {
            feroce_port_close(port);
            return NULL;
        }
    }
    return port;
}

void feroce_port_close(struct feroce_port *port)
{
    if (port == NULL) {
        return;
    }
    descriptor_close(port->cm_in);
    descriptor_close(port->cm_out);
    descriptor_close(port->data_out);
    descriptor_close(port->data_in);
    descriptor_close(port->raw);
    faults_close(port->faults_out);
    faults_close(port->faults_in);
    feroce_capture_close(port->capture);
    free(port);
}

struct feroce_frame feroce_port_frame(const struct feroce_port *port, const struct inet_flow *flow,
                                      uint16_t identification)
{
    return (struct feroce_frame){.source_ip = load_be32(flow->source + 12),
                                 .destination_ip = load_be32(flow->destination + 12),
                                 .source_port = flow->source_port,
                                 .destination_port = flow->destination_port,
                                 .identification = identification,
                                 .service_class = port->config.service_class};
}

const struct feroce_port_counters *feroce_port_counters(const struct feroce_port *port)
{
    return &port->counters;
}

/* -- Receiving ----------------------------------------------------------------------------------*/

static bool read_socket(struct feroce_port *port, bool is_cm)
{
    CHECK(port->next == port->received && !port->again); /* None would be lost. */
    for (uint32_t i = 0; i < FEROCE_RECEIVE_MAX; i++) {
        port->vectors[i] =
            (struct iovec){.iov_base = port->bytes[i], .iov_len = FEROCE_RECEIVE_BYTES_MAX};
        port->messages[i].msg_hdr = (struct msghdr){.msg_name = &port->sources[i],
                                                    .msg_namelen = sizeof(port->sources[i]),
                                                    .msg_iov = &port->vectors[i],
                                                    .msg_iovlen = 1};
    }
    /* A second message may be one that data came before. */
    const int count = recvmmsg(is_cm ? port->cm_in : port->data_in, port->messages,
                               is_cm ? 1 : FEROCE_RECEIVE_MAX, MSG_DONTWAIT, NULL);
    port->received = count > 0 ? (uint32_t)count : 0;
    port->next = 0;
    port->received_cm = is_cm;
    port->data_reads = is_cm || port->received == 0 ? 0 : port->data_reads + 1;
    port->counters.received += port->received;
    return port->received > 0;
}

static bool has_message(const struct feroce_port *port)
{
    struct pollfd one = {.fd = port->cm_in, .events = POLLIN};
    return ppoll(&one, 1, &(struct timespec){0}, NULL) > 0;
}

/* Messages have a turn although data may come without end. Else all data that came before a message
 * are taken before it: a host that refuses a packet may close at once. */
static bool read_sockets(struct feroce_port *port)
{
    if (port->data_reads >= DATA_READS_MAX && read_socket(port, true)) {
        return true;
    }
    return read_socket(port, false) ||
           (has_message(port) && (read_socket(port, false) || read_socket(port, true)));
}

/* Takes a datagram that faults held back. */
static bool take_held(struct feroce_port *port, struct instant now,
                      struct feroce_datagram *datagram)
{
    if (port->faults_in == NULL) {
        return false;
    }
    if (port->has_released) {
        faults_settle(port->faults_in);
        port->has_released = false;
    }
    const struct faults_packet *held = faults_due(port->faults_in, now);
    if (held == NULL) {
        return false;
    }
    *datagram = (struct feroce_datagram){.icrc_is_right = held->link == &port->right.link,
                                         .bytes = held->bytes,
                                         .count = held->payload_bytes};
    faults_take(port->faults_in);
    port->has_released = true;
    return true;
}

/* Applies the faults to a datagram. False: the datagram is lost, or comes later. A datagram of 0
 * bytes has no byte that faults could change. */
static bool survives(struct feroce_port *port, struct instant now, struct feroce_datagram *datagram)
{
    if (port->faults_in == NULL || datagram->is_cm || datagram->count == 0 ||
        datagram->count > FEROCE_RECEIVE_BYTES_MAX || port->again) {
        return true;
    }
    const struct fault_decision fault = faults_decide(port->faults_in, (uint32_t)datagram->count);
    struct feroce_way *verdict =
        datagram->icrc_is_right && !fault.corrupt ? &port->right : &port->wrong;
    if (fault.corrupt) {
        CHECK(fault.corrupt_bit / 8 < datagram->count);
        port->bytes[port->next][fault.corrupt_bit / 8] ^= (uint8_t)(1u << fault.corrupt_bit % 8);
        datagram->icrc_is_right = false;
    }
    if (fault.drop) {
        port->counters.dropped_in++;
        return false;
    }
    const struct faults_packet packet = {.link = &verdict->link,
                                         .bytes = datagram->bytes,
                                         .whole = true,
                                         .payload_bytes = (uint16_t)datagram->count};
    if (fault_holds(&fault) && faults_hold(port->faults_in, &packet, now, &fault)) {
        return false;
    }
    port->again = fault.duplicate;
    return true;
}

static void describe(struct feroce_port *port, struct feroce_datagram *datagram)
{
    CHECK(port->next < port->received && port->received <= FEROCE_RECEIVE_MAX);
    const struct sockaddr_in *source = &port->sources[port->next];
    const uint32_t count = port->messages[port->next].msg_len;
    *datagram = (struct feroce_datagram){.is_cm = port->received_cm,
                                         .from_ip = ntohl(source->sin_addr.s_addr),
                                         .from_port = ntohs(source->sin_port),
                                         .bytes = port->bytes[port->next],
                                         .count = count};
    const struct inet_flow flow =
        inet_flow_ipv4(datagram->from_ip, datagram->from_port, port->config.ip,
                       port->received_cm ? FEROCE_PORT_CM : ROCE_UDP_PORT);
    uint16_t identification = 0;
    datagram->icrc_is_right = !port->received_cm && icrc_explain(&flow, datagram->bytes,
                                                                 datagram->count, &identification);
    if (!port->again) {
        feroce_capture_came(port, &flow, identification, datagram->bytes, datagram->count);
    }
}

bool feroce_port_receive(struct feroce_port *port, struct instant now,
                         struct feroce_datagram *datagram)
{
    if (take_held(port, now, datagram)) {
        return true;
    }
    while (port->next < port->received || read_sockets(port)) {
        describe(port, datagram);
        if (port->again) {
            port->again = false;
            port->next++;
            return true;
        }
        if (survives(port, now, datagram)) {
            port->next += !port->again;
            return true;
        }
        port->next++;
    }
    return false;
}

bool feroce_port_wait(struct feroce_port *port, uint64_t most_ns)
{
    struct pollfd both[] = {{.fd = port->data_in, .events = POLLIN},
                            {.fd = port->cm_in, .events = POLLIN}};
    const struct timespec time = {.tv_sec = (time_t)(most_ns / 1000000000),
                                  .tv_nsec = (long)(most_ns % 1000000000)};
    return ppoll(both, COUNT_OF(both), &time, NULL) >= 0 || errno != EINTR;
}

struct instant feroce_port_deadline(struct feroce_port *port)
{
    const struct instant in = faults_deadline(port->faults_in);
    const struct instant out = faults_deadline(port->faults_out);
    return instant_before(in, out) ? in : out;
}
