/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm - messages of the InfiniBand connection manager: 256-byte MADs <-> one struct.
 *
 * Purpose    Decodes and encodes the communication management MADs that travel from QP 1 to QP 1,
 *            and the header by which the RDMA IP CM service names the two ends.
 * Inputs     cm_decode, cm_encode; cm_addresses_decode, cm_addresses_encode.
 * Outputs    A verdict that names what is wrong with bytes nobody should trust.
 * Ownership  Everything is copied.
 * Units      Bytes; times as the exponent t of 4.096 us * 2^t.
 * Limits     Messages about alternate paths (LAP, APR) are CM_UNKNOWN_ATTRIBUTE. Other fields that
 *            RoCE has no use for are ignored when read, and written as 0: the MAD status, the
 *            alternate path, EE contexts (RD), the additional information of a SIDR_REP
 *            (redirection), and in REP and SIDR_REP the vendor who extends the message.
 * Source     IBTA Vol. 1, 12.6 (messages), 13.4.3 (MAD header), annex A11 (RDMA IP CM service).
 */
#ifndef WIRE_CM_H
#define WIRE_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define CM_MAD_BYTES      256
#define CM_HEADER_BYTES   24
#define CM_QPN            1
#define CM_QKEY           0x80010000u /* The Q_Key of QP 1 everywhere (IBTA 10.2.5). */
#define CM_PERMISSIVE_LID 0xffff

/* Room for private data in each kind of message. */
#define CM_PRIVATE_BYTES_MAX      224
#define CM_REQ_PRIVATE_BYTES      92
#define CM_REP_PRIVATE_BYTES      196
#define CM_RTU_PRIVATE_BYTES      224
#define CM_REJ_PRIVATE_BYTES      148
#define CM_MRA_PRIVATE_BYTES      222
#define CM_DREQ_PRIVATE_BYTES     220
#define CM_DREP_PRIVATE_BYTES     224
#define CM_SIDR_REQ_PRIVATE_BYTES 216
#define CM_SIDR_REP_PRIVATE_BYTES 136
#define CM_REJ_INFORMATION_BYTES  72

/* Attribute identifiers (table 97). */
enum cm_attribute {
    CM_REQ = 0x10,
    CM_MRA = 0x11,
    CM_REJ = 0x12,
    CM_REP = 0x13,
    CM_RTU = 0x14,
    CM_DREQ = 0x15,
    CM_DREP = 0x16,
    CM_SIDR_REQ = 0x17,
    CM_SIDR_REP = 0x18,
};

enum cm_transport {
    CM_TRANSPORT_RC = 0,
    CM_TRANSPORT_UC = 1,
    CM_TRANSPORT_RD = 2,
    CM_TRANSPORT_OTHER = 3, /* `extended_transport` says which: 1 is XRC. */
};

/* The message that a REJ or an MRA is about (12.6.6, 12.6.7). */
enum cm_about {
    CM_ABOUT_REQ = 0,
    CM_ABOUT_REP = 1,
    CM_ABOUT_OTHER = 2, /* MRA: a LAP. REJ: not a message, but the fact that none came. */
};

/* Why a connection is refused (table 107): the ones that occur on RoCE. */
enum cm_reason {
    CM_REASON_NO_QP = 1,
    CM_REASON_NO_RESOURCES = 3,
    CM_REASON_TIMEOUT = 4,
    CM_REASON_UNSUPPORTED_REQUEST = 5,
    CM_REASON_INVALID_COMMUNICATION_ID = 6,
    CM_REASON_INVALID_SERVICE_ID = 8,
    CM_REASON_INVALID_TRANSPORT = 9,
    CM_REASON_STALE_CONNECTION = 10,
    CM_REASON_INVALID_PATH_MTU = 26,
    CM_REASON_CONSUMER = 28,
    CM_REASON_DUPLICATE_LOCAL_COMMUNICATION_ID = 30,
    CM_REASON_INVALID_CLASS_VERSION = 31,
    CM_REASON_VENDOR_OPTION = 35,
};

/* Status of a SIDR_REP (12.11.2). */
enum cm_sidr_status {
    CM_SIDR_VALID = 0,
    CM_SIDR_UNSUPPORTED = 1, /* No such service. */
    CM_SIDR_REJECTED = 2,
    CM_SIDR_NO_QP = 3,
    CM_SIDR_REDIRECTED = 4,
    CM_SIDR_UNSUPPORTED_VERSION = 5,
};

struct cm_path {
    uint16_t local_lid, remote_lid;
    uint8_t local_gid[16], remote_gid[16];
    uint32_t flow_label; /* 20 bits. */
    uint8_t packet_rate; /* 6 bits. */
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t service_level; /* 4 bits. */
    bool subnet_local;
    uint8_t local_ack_timeout; /* 5 bits. */
};

struct cm_req {
    uint64_t service_id;
    uint64_t ca_guid;
    uint32_t vendor; /* 24 bits: 0, or the vendor that extends the message (ECE). */
    uint32_t qkey;
    uint32_t qpn;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t remote_response_timeout; /* 5 bits: the time that the answer may take. */
    uint8_t transport;               /* enum cm_transport. */
    bool flow_control;
    uint32_t starting_psn;
    uint8_t local_response_timeout; /* 5 bits. */
    uint8_t retry_count;            /* 3 bits. */
    uint16_t pkey;
    uint8_t path_mtu; /* 4 bits: enum path_mtu. */
    bool rdc_exists;
    uint8_t rnr_retry_count; /* 3 bits. */
    uint8_t max_cm_retries;  /* 4 bits. */
    bool srq;
    uint8_t extended_transport; /* 3 bits. */
    struct cm_path primary;
};

struct cm_rep {
    uint32_t qkey;
    uint32_t qpn;
    uint32_t starting_psn;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t target_ack_delay;  /* 5 bits. */
    uint8_t failover_accepted; /* 2 bits. */
    bool flow_control;
    uint8_t rnr_retry_count; /* 3 bits. */
    bool srq;
    uint64_t ca_guid;
};

struct cm_rej {
    uint8_t about; /* enum cm_about. */
    uint16_t reason;
    uint8_t information_bytes;                     /* At most CM_REJ_INFORMATION_BYTES. */
    uint8_t information[CM_REJ_INFORMATION_BYTES]; /* All the room that a REJ has. */
};

struct cm_mra {
    uint8_t about;           /* enum cm_about. */
    uint8_t service_timeout; /* 5 bits. */
};

struct cm_sidr_req {
    uint16_t pkey;
    uint64_t service_id;
};

struct cm_sidr_rep {
    uint8_t status; /* enum cm_sidr_status. */
    uint32_t qpn;
    uint64_t service_id;
    uint32_t qkey;
};

struct cm_message {
    uint64_t transaction_id;
    uint16_t attribute; /* enum cm_attribute. */
    uint32_t attribute_modifier;
    uint32_t local_id;  /* REQ to DREP: the sender's communication ID; SIDR: the request ID. */
    uint32_t remote_id; /* The receiver's; not in REQ, SIDR_REQ and SIDR_REP. */
    union {
        struct cm_req req;
        struct cm_rep rep;
        struct cm_rej rej;
        struct cm_mra mra;
        uint32_t dreq_qpn;
        struct cm_sidr_req sidr_req;
        struct cm_sidr_rep sidr_rep;
    };
    uint8_t private_data
        [CM_PRIVATE_BYTES_MAX]; /* As much as the message has room for; zeroes behind. */
};

/* Why bytes are not such a message. A REQ that asks for something it may not have is not judged
 * here: it deserves a REJ for an answer. */
enum cm_verdict {
    CM_GOOD,
    CM_WRONG_SIZE,        /* Not CM_MAD_BYTES. */
    CM_WRONG_CLASS,       /* Base version, class or method of another service. */
    CM_WRONG_VERSION,     /* Ours in another version of its class. */
    CM_UNKNOWN_ATTRIBUTE, /* A message we do not speak. */
    CM_WRONG_FIELD,       /* REJ, MRA: about something undefined, or too much information. */
    CM_VERDICT_COUNT,
};

const char *cm_verdict_name(enum cm_verdict verdict);
const char *cm_attribute_name(enum cm_attribute attribute); /* "REQ"; or "unknown". */

/* Bytes of private data a message of this kind carries. */
size_t cm_private_bytes(enum cm_attribute attribute);

/* Writes *message only when the answer is CM_GOOD. */
MUST_USE enum cm_verdict cm_decode(const uint8_t *bytes, size_t count, struct cm_message *message);

/* Decodes the fields that an answer to a MAD that is CM_WRONG_VERSION must repeat, and that every
 * version has in their places: transaction ID, attribute, and the sender's communication or request
 * ID. All other members are 0. */
void cm_decode_opening(const uint8_t bytes[CM_MAD_BYTES], struct cm_message *message);

/* A field is cut to its width on the wire. Reserved fields are 0, the alternate path is absent. */
void cm_encode(const struct cm_message *message, uint8_t out[CM_MAD_BYTES]);

/* -- RDMA IP CM service (annex A11) -------------------------------------------------------------*/

#define CM_ADDRESSES_BYTES 36

/* The first CM_ADDRESSES_BYTES of a REQ's or SIDR_REQ's private data. */
struct cm_addresses {
    bool ipv6;
    uint16_t source_port;
    uint8_t source[16], destination[16]; /* IPv6, or IPv4 mapped into it (::ffff:a.b.c.d); on the
                                          wire the mapping's ffff is 0. */
};

/* False, and nothing is written, if the version of the header or of IP is another one. */
MUST_USE bool cm_addresses_decode(const uint8_t bytes[CM_ADDRESSES_BYTES],
                                  struct cm_addresses *addresses);
void cm_addresses_encode(const struct cm_addresses *addresses, uint8_t out[CM_ADDRESSES_BYTES]);

/* A service ID names a port space (0x0106 is TCP, 0x0111 UDP) and a port in it. */
static inline uint64_t cm_service_id(uint16_t port_space, uint16_t port)
{
    return (uint64_t)port_space << 16 | port;
}

#endif
