/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_internal - the structs and functions that the files of feroce_port share.
 */
#ifndef DRIVERS_FEROCE_INTERNAL_H
#define DRIVERS_FEROCE_INTERNAL_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "drivers/faults.h"
#include "drivers/feroce/feroce_port.h"
#include "wire/icrc.h"

#define FEROCE_ROCE_BYTES_MAX    ROCE_PACKET_BYTES_MAX
#define FEROCE_RECEIVE_MAX       32
#define FEROCE_RECEIVE_BYTES_MAX 2048 /* Acknowledgements and messages are shorter. */

/* A host that packets go to; faults hold packets for it. */
struct feroce_way {
    struct link link; /* For drivers/faults.h, which looks at nothing in it. */
    uint32_t ip;
    struct inet_flow flow;
    struct icrc_memo icrcs;
};

struct feroce_entry {
    struct feroce_way *way;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    uint32_t header_bytes, payload_bytes;
    const uint8_t *payload;
    bool is_whole; /* The payload is the whole packet, ICRC included. */
    uint8_t icrc[ROCE_ICRC_BYTES];
    uint16_t number;                           /* The board's identification. */
    uint8_t frame[FEROCE_FRAME_HEADERS_BYTES]; /* With a raw socket; Ethernet's part is not sent. */
};

static inline uint32_t feroce_entry_bytes(const struct feroce_entry *entry)
{
    return entry->is_whole ? entry->payload_bytes
                           : entry->header_bytes + entry->payload_bytes + ROCE_ICRC_BYTES;
}

struct feroce_capture;

struct feroce_port {
    struct feroce_port_config config;
    int cm_in, cm_out, data_out, data_in;
    int raw; /* The socket for packets with IP headers of ours; -1: none. */
    struct feroce_way ways[FEROCE_QPS_MAX]; /* One for each queue pair. */
    struct feroce_entry batch[FEROCE_BATCH_MAX];
    uint32_t batch_count;
    struct faults *faults_out, *faults_in; /* NULL: none. */
    struct feroce_way right, wrong;        /* The ICRC's verdict on datagrams that are held. */
    bool has_released;                     /* One of these datagrams is being read. */
    struct feroce_capture *capture;        /* NULL: none. */
    uint16_t identification;               /* The next one of the board. */
    struct feroce_port_counters counters;
    /* Datagrams that one of the two sockets received, and that were not yet handed on. */
    struct mmsghdr messages[FEROCE_RECEIVE_MAX];
    struct iovec vectors[FEROCE_RECEIVE_MAX];
    struct sockaddr_in sources[FEROCE_RECEIVE_MAX];
    uint8_t bytes[FEROCE_RECEIVE_MAX][FEROCE_RECEIVE_BYTES_MAX];
    uint32_t received, next;
    uint32_t data_reads;     /* Reads of data since we looked for messages. */
    bool received_cm, again; /* `again`: the last one is handed on a second time. */
};

/* feroce_capture.c */
struct feroce_capture *feroce_capture_open(const struct feroce_port_config *config, char *error,
                                           size_t error_bytes);
void feroce_capture_close(struct feroce_capture *capture);
/* Records a UDP payload that leaves, as the board would have sent it. `has_icrc`: its last four
 * bytes are made anew for the identification. */
void feroce_capture_sent(struct feroce_port *port, const struct inet_flow *flow,
                         uint16_t identification, const uint8_t *bytes, size_t count,
                         bool has_icrc);
void feroce_capture_came(struct feroce_port *port, const struct inet_flow *flow,
                         uint16_t identification, const uint8_t *bytes, size_t count);
void feroce_capture_flush(struct feroce_capture *capture);

/* Ethernet, IP and UDP headers of a packet that the board sends; the MAC addresses stay 0. */
struct feroce_frame feroce_port_frame(const struct feroce_port *port, const struct inet_flow *flow,
                                      uint16_t identification);

#endif
