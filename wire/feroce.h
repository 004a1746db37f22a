/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce - formats of FERoCE's front end beside RoCEv2: its exchange of queue pairs, its frames.
 *
 * Purpose    The connection manager's messages (versions 3, 2 and 1) and the headers in front of a
 *            packet, between structs and bytes.
 * Inputs     Bytes of a UDP datagram that nobody should trust; or fields.
 * Outputs    Fields or a verdict; bytes.
 * Units      Bytes. All values are in host order, IPv4 addresses too (10.0.0.1 is 0x0a000001).
 * Limits     QPNs and PSNs of 24 bits: what is above them is cut.
 * Source     The authors' public Verilog and receiver: RTL2026 and feroce-rs, whose full names are
 *            in lab/feroce/parameters.c, and RTL2024, the state of RTL2026 at 23c1fb8d (July 2024).
 *            The document says only that information on queue pairs goes by UDP, and that RoCE
 *            frames have a UDP checksum of 0.
 */
#ifndef WIRE_FEROCE_H
#define WIRE_FEROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/inet.h"

#define FEROCE_CM_BYTES   64 /* Versions 2 and 3. */
#define FEROCE_CM_1_BYTES 44

/* UDP ports. A board listens at one port and speaks from another. */
enum feroce_udp_port {
    FEROCE_PORT_CM = 0x4321,
    FEROCE_PORT_CM_MASTER = 0x4322, /* Where a board that opens looks for its host. */
    FEROCE_PORT_CM_FROM = 0x8765,
    FEROCE_PORT_DATA_FROM = 0x8657,      /* Stack 2026. */
    FEROCE_PORT_DATA_FROM_2024 = 0x2123, /* Stack 2024. */
};

enum feroce_cm_version {
    FEROCE_CM_2 = 2, /* April 2025 to February 2026: little-endian. */
    FEROCE_CM_3 = 3, /* Big-endian. */
};

enum feroce_request {
    FEROCE_NULL = 0,
    FEROCE_OPEN_QP = 1,
    FEROCE_SEND_QP_INFO = 2,
    FEROCE_MODIFY_QP_RTS = 3,
    FEROCE_CLOSE_QP = 4,
    FEROCE_REQUEST_ERROR = 7,
};

enum feroce_ack {
    FEROCE_ACK_NULL = 0,
    FEROCE_ACK = 1,
    FEROCE_ACK_NO_QP = 2,
    FEROCE_ACK_NAK = 3,
    FEROCE_ACK_ERROR = 7,
};

/* One end of a connection. */
struct feroce_side {
    uint32_t qpn, psn, rkey, ip;
    uint64_t address;
};

/* An order to the board's generator of test data. */
struct feroce_meta {
    bool valid, start, immediate, write;
    uint32_t length;    /* Bytes of a message. */
    uint32_t count;     /* Messages. */
    uint32_t frequency; /* Clock cycles between messages; 0: as fast as possible. */
};

struct feroce_cm {
    uint8_t request; /* enum feroce_request, or a value that has no name (0..7). */
    uint8_t ack;     /* enum feroce_ack, likewise. */
    bool info_valid;
    bool ack_valid;                   /* This is a reply. */
    struct feroce_side local, remote; /* Local is always the sender of the message. */
    uint16_t listening_port;          /* Where the sender of the message wants the reply. */
    struct feroce_meta meta;
};

/* Unused octets and bits are 0. */
void feroce_cm_encode(enum feroce_cm_version version, const struct feroce_cm *message,
                      uint8_t out[FEROCE_CM_BYTES]);

/* False: not FEROCE_CM_BYTES long; *message is left alone. Any 64 octets are a message: the
 * receiver judges the request in it. */
MUST_USE bool feroce_cm_decode(enum feroce_cm_version version, const uint8_t *bytes, size_t count,
                               struct feroce_cm *message);

/* Does a message that was taken for version 3 look like version 2? For diagnostics only: no
 * message says its version. */
bool feroce_cm_suspect(const uint8_t bytes[FEROCE_CM_BYTES], uint16_t source_port);

/* The one-way message of 2024, which sets the board's registers. */
struct feroce_cm_1 {
    bool info_valid;
    uint32_t remote_qpn, local_qpn, remote_psn, local_psn, rkey, remote_ip;
    uint64_t remote_address;
    bool meta_valid, start, write;
    uint64_t offset; /* The first WRITE's, to remote_address. */
    uint32_t length; /* Bytes of a message. */
    uint16_t udp_port;
};

void feroce_cm_1_encode(const struct feroce_cm_1 *message, uint8_t out[FEROCE_CM_1_BYTES]);
/* False: not FEROCE_CM_1_BYTES long. */
MUST_USE bool feroce_cm_1_decode(const uint8_t *bytes, size_t count, struct feroce_cm_1 *message);

/* The headers in front of a board's packet: Ethernet, IPv4 and UDP. */
#define FEROCE_FRAME_HEADERS_BYTES (14 + INET_IPV4_BYTES + INET_UDP_BYTES)
struct feroce_frame {
    uint8_t destination_mac[6], source_mac[6];
    uint32_t source_ip, destination_ip;
    uint16_t source_port, destination_port;
    uint16_t identification;
    uint8_t service_class; /* 0..7: the upper three bits of DSCP. */
    bool ce;               /* Congestion experienced: only a switch says so. */
};

void feroce_frame_encode(const struct feroce_frame *frame, size_t udp_payload_bytes,
                         uint8_t out[FEROCE_FRAME_HEADERS_BYTES]);

#endif
