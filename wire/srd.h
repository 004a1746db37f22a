/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd - the packets of scalable reliable datagrams (SRD): bytes <-> one struct.
 *
 * Purpose    Decodes the bytes behind the UDP header, up to but not including the ICRC, encodes
 *            them, and says whether the fields of a packet agree with each other.
 * Inputs     srd_decode, srd_encode; srd_is chooses between this and roce.h.
 * Outputs    A verdict that names what is wrong with bytes nobody should trust.
 * Ownership  A decoded packet points into the bytes it was decoded from.
 * Time       Not used; an answer says how long its echo was held.
 * Units      Bytes; flows, PSNs and keys are 32 bits wide, TSNs 24, QPNs 16.
 * Limits     An instance of a message has at most SRD_PACKETS packets.
 * Source     Our choice, since EFA's own wire is not public; its interface (rdma-core,
 *            providers/efa) says what SRD promises. The BTH is IBTA's (Vol. 1, 9.2).
 *
 * A flow is one direction of requests between two processes. A message, or up to 64 packets of a
 * longer one, travels as an instance: packets of successive PSNs. A message that is to be sent once
 * more, because there was no receive for it, is a new instance with new PSNs.
 */
#ifndef WIRE_SRD_H
#define WIRE_SRD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/roce.h"

#define SRD_FXH_BYTES    32 /* Flow, PSN, and the queue pairs: in front of each request. */
#define SRD_SXH_BYTES    8  /* SEND. */
#define SRD_RXH_BYTES    24 /* WRITE and READ. */
#define SRD_DXH_BYTES    24 /* DATA. */
#define SRD_AXH_BYTES    32 /* ANSWER, in front of its records. */
#define SRD_RECORD_BYTES 16
#define SRD_HXH_BYTES    64 /* HELLO: more than the CHALLENGE that answers it. */
#define SRD_CXH_BYTES    32 /* CHALLENGE. */
#define SRD_PXH_BYTES    72 /* PATH CHALLENGE and PATH RESPONSE. */

#define SRD_VERSION     1
#define SRD_RECORDS_MAX 3
#define SRD_PACKETS     64 /* An instance has no more. */
#define SRD_WINDOW_LOG2 10
#define SRD_WINDOW      (1u << SRD_WINDOW_LOG2) /* PSNs of a flow that may be under way. */
#define SRD_PATHS_MAX   16
#define SRD_GIDS_MAX    3  /* Addresses of a process beside its first one. */
#define SRD_CHUNK_STEP  64 /* The payload of an instance's packets: a multiple of this, ... */
#define SRD_CHUNK_LEAST 512
#define SRD_CHUNK_MOST  ROCE_PAYLOAD_BYTES_MAX
#define SRD_WAIT_CODES  14 /* 64 us << code: up to half a second. */
#define SRD_NO_LIMIT    0xffffu

/* All requests, answers and greetings for a process go to this number of its slot. */
#define SRD_PORT               0xfeffu
#define SRD_PORT_OF(slot)      ((uint32_t)(slot) << 16 | SRD_PORT)
#define SRD_SLOT_OF(qpn)       ((qpn) >> 8)
#define SRD_SLOT_OF_PORT(port) ((port) >> 16)

/* The longest headers: an answer with all its records; with payload: a WRITE's. */
#define SRD_HEADERS_BYTES_MAX (ROCE_BTH_BYTES + SRD_AXH_BYTES + SRD_RECORDS_MAX * SRD_RECORD_BYTES)

#define SRD_PAYLOAD_HEADERS_BYTES_MAX (ROCE_BTH_BYTES + SRD_FXH_BYTES + SRD_RXH_BYTES)

/* X(name, number, text, bytes behind the BTH in front of records and payload) */
/* clang-format off */
#define SRD_OPCODES(X)                                                                             \
    X(SEND, 0xd0, "SRD SEND", SRD_FXH_BYTES + SRD_SXH_BYTES)                                       \
    X(WRITE, 0xd1, "SRD WRITE", SRD_FXH_BYTES + SRD_RXH_BYTES)                                     \
    X(READ, 0xd2, "SRD READ", SRD_FXH_BYTES + SRD_RXH_BYTES)                                       \
    X(DATA, 0xd3, "SRD Data", SRD_DXH_BYTES)                                                       \
    X(ANSWER, 0xd4, "SRD Answer", SRD_AXH_BYTES)                                                   \
    X(HELLO, 0xd5, "SRD HELLO", SRD_HXH_BYTES)                                                     \
    X(CHALLENGE, 0xd6, "SRD CHALLENGE", SRD_CXH_BYTES)                                             \
    X(PROBE, 0xd7, "SRD Probe", SRD_FXH_BYTES)                                                     \
    X(PATH_CHALLENGE, 0xd8, "SRD PATH CHALLENGE", SRD_PXH_BYTES)                                   \
    X(PATH_RESPONSE, 0xd9, "SRD PATH RESPONSE", SRD_PXH_BYTES)
/* clang-format on */

#define SRD_NUMBER(name, number, text, bytes) SRD_##name = (number),
enum srd_opcode {
    SRD_OPCODES(SRD_NUMBER)
};

#define SRD_OPCODE_FIRST SRD_SEND
#define SRD_OPCODE_LAST  SRD_PATH_RESPONSE

/* Is this an opcode of SRD? */
static inline bool srd_is(uint8_t opcode)
{
    return (uint8_t)(opcode - SRD_OPCODE_FIRST) <= SRD_OPCODE_LAST - SRD_OPCODE_FIRST;
}

/* Does payload follow the headers of an opcode of SRD? How long are these, but for an answer's
 * records? */
bool srd_has_payload(uint8_t opcode);
size_t srd_headers_bytes(uint8_t opcode);

/* NULL if the opcode is not one of SRD. */
const char *srd_opcode_name(uint8_t opcode);

/* How a request ends: the values of enum efa_io_comp_status (EFA's kernel interface), which
 * programs see as the vendor's code of a completion. X(name, number, refuses, text); `refuses`: a
 * target may say so of a request (SRD_KIND_REFUSED). */
/* clang-format off */
#define SRD_STATUSES(X)                                                                            \
    X(OK, 0, false, "success")                                                                     \
    X(FLUSHED, 1, false, "flushed")                                                                \
    X(LOCAL_QP_ERROR, 2, false, "internal error of the queue pair")                                \
    X(LOCAL_UNSUPPORTED, 3, false, "operation not supported")                                      \
    X(LOCAL_BAD_AH, 4, false, "address handle is not valid")                                       \
    X(LOCAL_BAD_LKEY, 5, false, "lkey is not valid")                                               \
    X(LOCAL_BAD_LENGTH, 6, false, "message is too long")                                           \
    X(BAD_ADDRESS, 7, true, "rkey is unknown, gives no right, or does not reach that far")         \
    X(ABORT, 8, false, "remote process went, and another one came")                                \
    X(BAD_QPN, 9, true, "no such remote queue pair, or not in a state to receive")                 \
    X(NO_RECEIVE, 10, false, "remote queue pair has no receive")                                   \
    X(BAD_LENGTH, 11, true, "longer than the remote receive")                                      \
    X(BAD_STATUS, 12, false, "remote status that is not expected")                                 \
    X(UNRESPONSIVE, 13, false, "remote process answers no more")                                   \
    X(UNKNOWN_PEER, 14, true, "remote process has no address handle for this one")                 \
    X(UNREACHABLE, 15, false, "remote process never answered")                                     \
    X(FEATURE_MISMATCH, 18, true, "remote queue pair was not created for that")
/* clang-format on */

#define SRD_STATUS_NUMBER(name, number, refuses, text) SRD_STATUS_##name = (number),
enum srd_status {
    SRD_STATUSES(SRD_STATUS_NUMBER)
};

/* NULL if there is no such status. */
const char *srd_status_name(uint8_t status);
/* May a target refuse a request with it? */
bool srd_status_refuses(uint8_t status);

/* The verdict on some PSNs, in an answer. */
enum srd_kind {
    SRD_KIND_TAKEN,
    SRD_KIND_NO_RECEIVE, /* The message may come again, with other PSNs. */
    SRD_KIND_REFUSED,    /* For good, with a status. */
    SRD_KIND_COUNT,
};

struct srd_record {
    uint32_t psn;
    uint8_t kind;      /* enum srd_kind. */
    uint8_t status;    /* SRD_KIND_REFUSED: why; else 0. */
    uint8_t wait_code; /* SRD_KIND_NO_RECEIVE: how long to wait; else 0. */
    uint64_t bitmap;   /* Bit i: psn + i. Bit 0 is set. */
};

struct srd_answer {
    uint32_t taken_before; /* CUM: every PSN of the window before this one was taken. */
    bool more;             /* There are verdicts for which this answer has no room. */
    bool answers_probe;
    bool echo_void; /* echo_path, echo_tsn and echo_delay_ns say nothing. */
    uint8_t echo_path;
    uint32_t echo_tsn;
    uint32_t echo_delay_ns;
    uint8_t ce_marked; /* Since the last answer, on echo_path; both counts stop at 255. */
    uint8_t duplicates;
    uint16_t credits; /* Receives of the process; SRD_NO_LIMIT: not told. */
    uint8_t record_count;
    struct srd_record records[SRD_RECORDS_MAX];
};

enum srd_reason {
    SRD_REASON_HELLO = 1, /* Answers a HELLO. */
    SRD_REASON_STALE = 3, /* The flow of a request is not known here, and its tag opens none. */
};

struct srd_challenge {
    uint32_t boot;  /* The life of the process that answers. */
    uint8_t reason; /* enum srd_reason. */
    uint32_t psn;   /* SRD_REASON_STALE: of the packet that was not known; else 0. */
};

/* The sender of a PATH CHALLENGE asks whether the process of a flow receives by this path; the
 * response repeats the number. Each names the addresses of its sender. */
struct srd_path_challenge {
    uint64_t number;
    bool of_target;    /* It comes from the process to which the flow leads. */
    uint8_t gid_count; /* Addresses beside the one by which programs name the process. */
    uint8_t gids[SRD_GIDS_MAX][16];
};

/* One packet. Fields of headers that the opcode does not have are left unset. Values are in host
 * order, except `immediate`. Every packet may have A; it counts where it means something. */
struct srd_packet {
    uint8_t opcode;           /* enum srd_opcode. */
    bool ack_request;         /* A: an answer is wanted. */
    uint32_t destination_qpn; /* SRD_PORT_OF the target's slot. */
    uint32_t tsn;

    uint32_t flow;
    uint64_t tag; /* All but HELLO: proves that the target challenged the sender. */
    uint8_t path; /* Requests, probes, DATA. */

    uint32_t psn;        /* Requests, probes; DATA: that of its READ. */
    uint16_t back;       /* Every PSN before psn - back is answered, or given up. */
    uint8_t index;       /* Its place in the instance; DATA: in the READ's segment; probes: how
                            often the path has left its route. */
    uint8_t last;        /* The index of the instance's last packet. */
    uint16_t source_qpn; /* All but requests: the slot alone, with 0 for the queue pair. */
    uint16_t target_qpn;
    uint32_t qkey;
    uint16_t chunk_bytes; /* Payload of all packets but the last; READ: of its DATA. */
    bool has_immediate;
    bool resent;
    bool unsolicited; /* A WRITE with immediate data that is to consume no receive. */

    uint32_t message_bytes; /* SEND: all of it; WRITE: of the request; READ: the segment's. */
    uint32_t immediate;     /* 4 bytes as on the wire. */
    uint64_t address;       /* WRITE: of this packet; READ: of the segment. */
    uint32_t key;

    union {
        uint64_t wanted; /* READ: bit i for DATA packet i of the segment. */
        struct srd_answer answer;
        struct srd_challenge challenge;
        struct srd_path_challenge path_challenge;
    };

    const uint8_t *payload; /* NULL if payload_bytes is 0. */
    uint32_t payload_bytes; /* Without pad. */
};

/* Why bytes are not a packet. */
enum srd_verdict {
    SRD_GOOD,
    SRD_SHORT,          /* Fewer bytes than the headers of its opcode need. */
    SRD_UNKNOWN_OPCODE, /* Not one of SRD's. */
    SRD_WRONG_VERSION,  /* The BTH's TVer is not 0. */
    SRD_WRONG_PKEY,     /* Not the default one. */
    SRD_WRONG_PAD,      /* Pad longer than the payload, or total not a multiple of 4. */
    SRD_TOO_LONG,       /* Payload above ROCE_PAYLOAD_BYTES_MAX, or on an opcode that has none. */
    SRD_WRONG_COUNT,    /* Not whole records, or others than the header says. */
    SRD_RESERVED_BITS,  /* Bits that are to be 0 are not. */
    SRD_OTHER_VERSION,  /* Another version of SRD. */
    SRD_UNKNOWN_VALUE,  /* A reason, a window, a kind, a status or a wait code that is none. */
    /* The fields contradict each other: */
    SRD_WRONG_PORT,    /* The BTH names no SRD port, or the target has another slot. */
    SRD_WRONG_BACK,    /* Further back than the window is long. */
    SRD_WRONG_INDEX,   /* Behind the instance's last packet, or more packets than there may be. */
    SRD_WRONG_CHUNK,   /* Not a multiple of 64 that is allowed. */
    SRD_WRONG_PAYLOAD, /* As many bytes as that place of the message does not have. */
    SRD_WRONG_FLAGS,   /* A flag or immediate data where they mean nothing. */
    SRD_WRONG_WANTED,  /* A READ of nothing, or of packets that its segment does not have. */
    SRD_WRONG_RECORD,  /* Empty, out of the window, or it speaks of what another one does. */
    SRD_VERDICT_COUNT,
};

const char *srd_verdict_name(enum srd_verdict verdict);

/* Decodes and judges a packet. Without a separate `payload` (NULL), `headers` holds all of it, up
 * to the ICRC, and padded_bytes is not looked at. Else `headers` holds exactly the headers, and
 * padded_bytes of payload with pad are elsewhere; they are not read. *packet is to be used only if
 * the answer is SRD_GOOD. */
MUST_USE enum srd_verdict srd_decode(const uint8_t *headers, size_t headers_bytes,
                                     const uint8_t *payload, size_t padded_bytes,
                                     struct srd_packet *packet);

/* Do the fields of a packet agree with each other? srd_decode asks it; srd_judge.c. */
MUST_USE enum srd_verdict srd_judge(const struct srd_packet *packet);

/* Encodes all but the payload into `out`, which has room for SRD_HEADERS_BYTES_MAX, with the pad
 * that payload_bytes needs. Returns the number of bytes written. A field is cut to its width on the
 * wire, so a value too wide never reaches its neighbour. */
size_t srd_encode(const struct srd_packet *packet, uint8_t *out);

/* -- Numbers and places ------------------------------------------------------------------------ */

/* How far `to` is ahead of `from`, of PSNs that wrap: -2^31 .. 2^31-1. */
static inline int32_t srd_distance(uint32_t from, uint32_t to)
{
    return (int32_t)(to - from);
}

/* The number of packets of `chunk_bytes` that carry `bytes`; no bytes take one packet, too. */
static inline uint32_t srd_packets(uint32_t bytes, uint32_t chunk_bytes)
{
    return bytes == 0 ? 1 : (uint32_t)(((uint64_t)bytes + chunk_bytes - 1) / chunk_bytes);
}

/* A set of the lowest `packets` of 64: 1 .. 64. */
static inline uint64_t srd_set_of(uint32_t packets)
{
    return ~UINT64_C(0) >> (64 - packets);
}

#endif
