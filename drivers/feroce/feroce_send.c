/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_send - one or a few system calls for a batch of the board's packets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/bytes.h"
#include "drivers/feroce/feroce_internal.h"
#include "drivers/system/system.h"

#define CALL_BYTES_MAX 65000
#define ADDRESS_BYTES  4

/* A batch has at most FEROCE_BATCH_MAX packets, and each of them a way that leads somewhere. */
static void batch_check(const struct feroce_port *port)
{
    CHECK(port->batch_count <= FEROCE_BATCH_MAX);
    for (uint32_t i = 0; i < port->batch_count; i++) {
        const struct feroce_entry *entry = &port->batch[i];
        CHECK(entry->way->flow.destination_port == ROCE_UDP_PORT);
        CHECK(entry->header_bytes <= ROCE_HEADERS_BYTES_MAX);
        CHECK(feroce_entry_bytes(entry) <= FEROCE_ROCE_BYTES_MAX);
        CHECK(!entry->is_whole || entry->header_bytes == 0);
    }
}

/* -- Departures ---------------------------------------------------------------------------------*/

static void make_icrc(struct feroce_entry *entry, uint16_t identification)
{
    const uint32_t prefix = icrc_remembered_prefix(&entry->way->icrcs, &entry->way->flow,
                                                   identification, feroce_entry_bytes(entry));
    const uint32_t crc = icrc_packet(prefix, entry->headers, entry->header_bytes);
    store_le32(entry->icrc, icrc_finish(icrc_extend(crc, entry->payload, entry->payload_bytes)));
}

/* Writes a packet with its ICRC for identification 0. */
static uint32_t join(const struct feroce_entry *entry, uint8_t *out)
{
    if (entry->is_whole) {
        memcpy(out, entry->payload, entry->payload_bytes);
        return entry->payload_bytes;
    }
    struct feroce_entry copy = *entry;
    make_icrc(&copy, 0);
    memcpy(out, copy.headers, copy.header_bytes);
    memcpy(out + copy.header_bytes, copy.payload, copy.payload_bytes);
    memcpy(out + copy.header_bytes + copy.payload_bytes, copy.icrc, ROCE_ICRC_BYTES);
    return feroce_entry_bytes(entry);
}

/* The next identification: a board of 2026 counts all packets that it sends. */
static uint16_t next_number(struct feroce_port *port)
{
    return port->config.stack == FEROCE_STACK_2026 ? port->identification++ : 0;
}

static void capture_entry(struct feroce_port *port, const struct feroce_entry *entry)
{
    if (port->capture != NULL) {
        uint8_t bytes[FEROCE_ROCE_BYTES_MAX];
        const uint32_t count = join(entry, bytes);
        feroce_capture_sent(port, &entry->way->flow, entry->number, bytes, count, !entry->is_whole);
    }
}

static void count_refused(struct feroce_port *port, uint32_t packets)
{
    port->counters.refused += packets;
    port->counters.refused_why = errno;
}

/* -- One call a packet, or a segmented call for many --------------------------------------------*/

struct call {
    struct mmsghdr messages[FEROCE_BATCH_MAX];
    struct sockaddr_in to[FEROCE_BATCH_MAX];
    struct iovec vectors[4 * FEROCE_BATCH_MAX];
    struct {
        _Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control[FEROCE_BATCH_MAX];
    uint32_t packets[FEROCE_BATCH_MAX]; /* How many each message has. */
    uint32_t count, vector_count;
};

static void add_vector(struct call *call, struct msghdr *message, const void *at, size_t bytes)
{
    INVARIANTS(CHECK(call->vector_count < COUNT_OF(call->vectors)));
    if (bytes > 0) {
        call->vectors[call->vector_count++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = bytes};
        message->msg_iovlen++;
    }
}

/* How many packets from `at` on go into one message. */
static uint32_t run_length(const struct feroce_port *port, uint32_t at)
{
    const struct feroce_entry *first = &port->batch[at];
    const uint32_t size = feroce_entry_bytes(first);
    uint32_t count = 1, bytes = size;
    INVARIANTS(CHECK(at < port->batch_count));
    if (!port->config.segmenting || first->is_whole) {
        return 1;
    }
    while (at + count < port->batch_count) {
        const struct feroce_entry *next = &port->batch[at + count];
        const uint32_t more = feroce_entry_bytes(next);
        if (next->way->ip != first->way->ip || next->is_whole || more > size ||
            bytes + more > CALL_BYTES_MAX) {
            break;
        }
        bytes += more;
        count++;
        if (more < size) {
            break;
        }
    }
    return count;
}

/* Adds a packet for a raw socket: IP and UDP header are ours, and the identification counts up. */
static void add_frame(struct feroce_port *port, struct call *call, struct msghdr *message,
                      struct feroce_entry *entry)
{
    const struct feroce_frame frame = feroce_port_frame(port, &entry->way->flow, entry->number);
    feroce_frame_encode(&frame, feroce_entry_bytes(entry), entry->frame);
    add_vector(call, message, entry->frame + 14, sizeof(entry->frame) - 14);
}

static void lay_message(struct feroce_port *port, struct call *call, uint32_t at, uint32_t run)
{
    INVARIANTS(CHECK(call->count < FEROCE_BATCH_MAX && at + run <= port->batch_count));
    const uint32_t which = call->count++;
    struct msghdr *message = &call->messages[which].msg_hdr;
    call->packets[which] = run;
    call->to[which] = (struct sockaddr_in){.sin_family = AF_INET,
                                           .sin_port = htons(ROCE_UDP_PORT),
                                           .sin_addr.s_addr = htonl(port->batch[at].way->ip)};
    *message = (struct msghdr){.msg_name = &call->to[which],
                               .msg_namelen = sizeof(call->to[which]),
                               .msg_iov = &call->vectors[call->vector_count]};
    for (uint32_t i = 0; i < run; i++) {
        struct feroce_entry *entry = &port->batch[at + i];
        if (port->raw >= 0) {
            add_frame(port, call, message, entry);
        }
        if (!entry->is_whole) {
            make_icrc(entry, port->raw >= 0 ? entry->number : (uint16_t)i);
            add_vector(call, message, entry->headers, entry->header_bytes);
            add_vector(call, message, entry->payload, entry->payload_bytes);
            add_vector(call, message, entry->icrc, ROCE_ICRC_BYTES);
        } else {
            add_vector(call, message, entry->payload, entry->payload_bytes);
        }
    }
    if (run > 1) {
        const uint16_t size = (uint16_t)feroce_entry_bytes(&port->batch[at]);
        message->msg_control = call->control[which].bytes;
        message->msg_controllen = sizeof(call->control[which].bytes);
        struct cmsghdr *control = CMSG_FIRSTHDR(message);
        control->cmsg_level = IPPROTO_UDP;
        control->cmsg_type = UDP_SEGMENT;
        control->cmsg_len = CMSG_LEN(sizeof(size));
        memcpy(CMSG_DATA(control), &size, sizeof(size));
    }
}

/* A message that the system refuses is lost, as on a wire; the next one may be taken. */
static void make_calls(struct feroce_port *port, struct call *call)
{
    for (uint32_t done = 0; done < call->count;) {
        const int sent = sendmmsg(port->raw >= 0 ? port->raw : port->data_out,
                                  call->messages + done, call->count - done, 0);
        port->counters.calls++;
        if (sent > 0) {
            done += (uint32_t)sent;
        } else if (errno != EINTR) {
            count_refused(port, call->packets[done++]);
        }
    }
}

static void send_batch(struct feroce_port *port)
{
    struct call call;
    INVARIANTS(batch_check(port));
    call.count = call.vector_count = 0;
    for (uint32_t i = 0; i < port->batch_count; i++) {
        port->batch[i].number = next_number(port);
    }
    for (uint32_t at = 0; at < port->batch_count;) {
        const uint32_t run = run_length(port, at);
        lay_message(port, &call, at, run);
        at += run;
    }
    for (uint32_t i = 0; i < port->batch_count; i++) {
        port->counters.packets++;
        port->counters.bytes += feroce_entry_bytes(&port->batch[i]);
        capture_entry(port, &port->batch[i]);
    }
    make_calls(port, &call);
    port->batch_count = 0;
    if (port->faults_out != NULL) {
        faults_settle(port->faults_out);
    }
}

static void push(struct feroce_port *port, const struct feroce_entry *entry)
{
    if (port->batch_count == FEROCE_BATCH_MAX) {
        send_batch(port);
    }
    port->batch[port->batch_count++] = *entry;
    INVARIANTS(batch_check(port));
}

/* -- A bad network ------------------------------------------------------------------------------*/

/* The address of its destination stands behind a packet that is held. Meanwhile another host may
 * have opened the queue pair, and the way leads to that host: then the packet is lost. */
static void feroce_port_release(struct feroce_port *port, struct instant now)
{
    const struct faults_packet *held;
    while (port->faults_out != NULL && (held = faults_due(port->faults_out, now)) != NULL) {
        const struct feroce_entry entry = {.way = CONTAINER_OF(held->link, struct feroce_way, link),
                                           .payload = held->bytes,
                                           .payload_bytes = held->payload_bytes - ADDRESS_BYTES,
                                           .is_whole = true};
        if (load_be32(held->bytes + entry.payload_bytes) == entry.way->ip) {
            push(port, &entry);
        } else {
            port->counters.dropped++;
        }
        faults_take(port->faults_out);
    }
}

/* A struck packet leaves from a copy. */
static void send_struck(struct feroce_port *port, const struct feroce_entry *entry,
                        const struct fault_decision *fault, struct instant now)
{
    uint8_t bytes[FEROCE_ROCE_BYTES_MAX + ADDRESS_BYTES];
    CHECK(port->faults_out != NULL && fault_strikes(fault));
    const uint32_t count = join(entry, bytes);
    store_be32(bytes + count, entry->way->ip);
    if (fault->corrupt) {
        bytes[fault->corrupt_bit / 8] ^= (uint8_t)(1u << fault->corrupt_bit % 8);
    }
    const struct faults_packet packet = {.link = &entry->way->link,
                                         .bytes = bytes,
                                         .whole = true,
                                         .payload_bytes = (uint16_t)(count + ADDRESS_BYTES)};
    uint32_t copies = (uint32_t)fault->duplicate + !fault->drop;
    port->counters.dropped += fault->drop;
    if (fault_holds(fault) && faults_hold(port->faults_out, &packet, now, fault)) {
        port->counters.held++;
        copies--;
    }
    const struct feroce_entry whole = {
        .way = entry->way, .payload = bytes, .payload_bytes = count, .is_whole = true};
    for (; copies > 0; copies--) {
        push(port, fault->corrupt ? &whole : entry);
    }
    if (fault->corrupt) {
        send_batch(port); /* The copy ends with this function. */
    }
}

/* Packets that wait for a call leave before their way leads to another host. */
static struct feroce_way *way_to(struct feroce_port *port, const struct feroce_packet *packet)
{
    INVARIANTS(CHECK(packet->qpn - FEROCE_FIRST_QPN < FEROCE_QPS_MAX));
    struct feroce_way *way = &port->ways[packet->qpn - FEROCE_FIRST_QPN];
    /* A host may name any address, also 0, so the address does not tell whether a way was made. */
    if (way->ip != packet->destination_ip || way->flow.destination_port != ROCE_UDP_PORT) {
        const uint16_t from = port->config.stack == FEROCE_STACK_2024 ? FEROCE_PORT_DATA_FROM_2024
                                                                      : FEROCE_PORT_DATA_FROM;
        if (port->batch_count > 0) {
            send_batch(port);
        }
        *way = (struct feroce_way){
            .ip = packet->destination_ip,
            .flow = inet_flow_ipv4(port->config.ip, from, packet->destination_ip, ROCE_UDP_PORT)};
    }
    return way;
}

void feroce_port_send(struct feroce_port *port, const struct feroce_packet *packet,
                      struct instant now)
{
    struct feroce_entry entry = {.way = way_to(port, packet),
                                 .header_bytes = packet->header_bytes,
                                 .payload = packet->payload,
                                 .payload_bytes = packet->payload_bytes};
    memcpy(entry.headers, packet->headers, packet->header_bytes);
    if (port->faults_out == NULL) {
        push(port, &entry);
        return;
    }
    const struct fault_decision fault = faults_decide(port->faults_out, feroce_entry_bytes(&entry));
    if (fault_strikes(&fault)) {
        send_struck(port, &entry, &fault, now);
    } else {
        push(port, &entry);
    }
    feroce_port_release(port, now);
}

void feroce_port_flush(struct feroce_port *port, struct instant now)
{
    INVARIANTS(batch_check(port));
    feroce_port_release(port, now);
    if (port->batch_count > 0) {
        send_batch(port);
    }
    feroce_capture_flush(port->capture);
}

static bool send_cm_raw(struct feroce_port *port, const struct inet_flow *flow, uint16_t number,
                        const uint8_t bytes[FEROCE_CM_BYTES], const struct sockaddr_in *to)
{
    uint8_t out[FEROCE_FRAME_HEADERS_BYTES + FEROCE_CM_BYTES];
    const struct feroce_frame frame = feroce_port_frame(port, flow, number);
    const size_t count = sizeof(out) - 14;
    feroce_frame_encode(&frame, FEROCE_CM_BYTES, out);
    memcpy(out + FEROCE_FRAME_HEADERS_BYTES, bytes, FEROCE_CM_BYTES);
    return system_send_to(port->raw, out + 14, count, (const struct sockaddr *)(const void *)to,
                          sizeof(*to)) == (ssize_t)count;
}

void feroce_port_send_cm(struct feroce_port *port, const uint8_t bytes[FEROCE_CM_BYTES],
                         uint32_t ip, uint16_t udp_port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(udp_port), .sin_addr.s_addr = htonl(ip)};
    const struct inet_flow flow =
        inet_flow_ipv4(port->config.ip, FEROCE_PORT_CM_FROM, ip, udp_port);
    const uint16_t number = next_number(port);
    feroce_capture_sent(port, &flow, number, bytes, FEROCE_CM_BYTES, false);
    const bool sent = port->raw >= 0 ? send_cm_raw(port, &flow, number, bytes, &to)
                                     : system_send_to(port->cm_out, bytes, FEROCE_CM_BYTES,
                                                      (const struct sockaddr *)(const void *)&to,
                                                      sizeof(to)) == FEROCE_CM_BYTES;
    if (!sent) {
        count_refused(port, 1);
    }
}
