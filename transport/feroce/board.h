/* SPDX-License-Identifier: BSD-2-Clause
 *
 * board - FERoCE's front end: a sender of RDMA WRITEs and SENDs, without a line or a clock.
 *
 * Purpose    Queue pairs that others open, messages that become packets, packets sent again.
 * Inputs     Datagrams of the connection manager, payload of messages, acknowledgements, time.
 * Outputs    Replies, packets (headers, and payload in place), events.
 * Ownership  feroce_board_bytes() of the caller's memory.
 * Units      Bytes, nanoseconds; IPv4 addresses in host order.
 * Limits     FEROCE_QPS_MAX queue pairs; payload in multiples of 4 bytes.
 * Source     RTL2026 and RTL2024 (wire/feroce.h). docs/decisions/0029.
 *
 * The world adds what lies below the BTH: identification, IP and UDP headers, and the ICRC.
 * It takes all events before it stores a packet: after FEROCE_EVENT_CLOSED the rest of a message is
 * not stored any more.
 */
#ifndef TRANSPORT_FEROCE_BOARD_H
#define TRANSPORT_FEROCE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "transport/feroce/cm_master.h"
#include "transport/feroce/cm_slave.h"
#include "transport/feroce/latency.h"
#include "transport/feroce/qp_table.h"
#include "transport/feroce/retransmission.h"
#include "wire/feroce.h"
#include "wire/roce.h"

enum feroce_stack {
    FEROCE_STACK_2026,
    FEROCE_STACK_2024, /* One queue pair, WRITE only, nothing is sent again. */
};

struct feroce_board_config {
    enum feroce_stack stack;
    enum feroce_cm_version cm_version;
    uint32_t ip;
    struct feroce_retransmission_config window; /* Also qps, pmtu, quirks. */
    uint64_t master_timeout_ns;
};

/* A message that a program hands to a queue. */
struct feroce_message {
    bool write, has_immediate;
    uint32_t immediate; /* As it stands on the wire. */
    uint64_t offset;    /* WRITE: added to the peer's base address. */
    uint32_t length;    /* Bytes, for RETH. */
};

enum feroce_store {
    FEROCE_STORED,
    FEROCE_STORE_FULL,     /* No room: later. */
    FEROCE_STORE_NOT_OPEN, /* The queue pair is not in RTS: the message is dropped whole. */
    FEROCE_STORE_HALTED,   /* Stack 2024 after a NAK: until feroce_board_start. */
    FEROCE_STORE_REFUSED,  /* Bytes or operation that the board cannot send. */
};

struct feroce_packet {
    uint32_t destination_ip;
    uint32_t qpn; /* The board's. */
    struct psn psn;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    uint32_t header_bytes;
    const uint8_t *payload;
    uint32_t payload_bytes;
    bool resent;
    bool is_last; /* In its message. */
};

enum feroce_event_kind {
    FEROCE_EVENT_OPENED,
    FEROCE_EVENT_CLOSED,
    FEROCE_EVENT_FAILED, /* Given up: ERROR. CLOSED follows at once if the peer was faster. */
    FEROCE_EVENT_META,   /* The generator of a queue pair gets an order. */
};

struct feroce_event {
    enum feroce_event_kind kind;
    uint32_t index;
    uint8_t syndrome;  /* FAILED: the AETH that began it, or FEROCE_SYNDROME_LIMIT. */
    uint8_t opcode;    /* FAILED by an AETH: the opcode of the packet that was refused. */
    uint16_t udp_port; /* OPENED: where the host that asked listens; 0: the board asked. */
    struct feroce_meta meta;
};

#define FEROCE_EVENTS_MAX 64

/* Why a datagram for the connection manager had no effect, or had one. */
enum feroce_cm_arrival {
    FEROCE_CM_TAKEN,
    FEROCE_CM_LENGTH,       /* Not 64 octets. */
    FEROCE_CM_ADDRESS,      /* Not the board's address. */
    FEROCE_CM_PORT,         /* Not its port. */
    FEROCE_CM_NOTHING,      /* Valid in no part, or nothing that is answered. */
    FEROCE_CM_LOST,         /* While others wait. */
    FEROCE_CM_UNASKED,      /* A reply to nothing. */
    FEROCE_CM_META_FOREIGN, /* For the generator of a queue pair that is not the board's. */
    FEROCE_CM_ARRIVALS,
};

const char *feroce_cm_arrival_name(enum feroce_cm_arrival arrival);

/* A queue's own state. */
struct feroce_queue {
    bool in_message;
    bool halted;
    uint8_t refused; /* The opcode of the packet that the peer refused for good. */
    uint32_t stored; /* Bytes of the message so far. */
    struct feroce_ack_timer ack_timer;
};

struct feroce_board {
    struct feroce_board_config config;
    struct feroce_table table;
    struct feroce_retransmission window;
    struct feroce_slave slave;
    struct feroce_master master;
    struct feroce_queue queues[FEROCE_QPS_MAX];
    uint32_t turn; /* The reader's next queue pair. */
    struct feroce_event events[FEROCE_EVENTS_MAX];
    uint32_t first_event, event_count;
    uint64_t arrivals[FEROCE_ARRIVAL_COUNT];
    uint64_t cm_arrivals[FEROCE_CM_ARRIVALS];
    uint64_t cm_version_suspect;
    uint64_t wrong_icrc; /* Accepted all the same. */
    uint64_t messages;   /* Stored to their end. */
    struct feroce_latency latency;
};

/* NULL, or why there is no such board. */
const char *feroce_board_refuses(const struct feroce_board_config *config);
size_t feroce_board_bytes(const struct feroce_board_config *config);
void feroce_board_init(struct feroce_board *board, const struct feroce_board_config *config,
                       void *memory);

/* A UDP datagram that came to `to_ip` and `to_port` from `from_port`. */
enum feroce_cm_arrival feroce_board_on_cm(struct feroce_board *board, const uint8_t *bytes,
                                          size_t count, uint32_t to_ip, uint16_t to_port,
                                          uint16_t from_port);
/* A message of the board's, slave's or master's, with where it goes. */
MUST_USE bool feroce_board_next_cm(struct feroce_board *board, struct instant now,
                                   uint8_t out[FEROCE_CM_BYTES], uint32_t *ip, uint16_t *port);

/* May the queue store another packet? */
bool feroce_board_has_room(const struct feroce_board *board, uint32_t index);
/* The next packet of a message: the payload is wholly in memory then. All but a message's last have
 * PMTU bytes. */
MUST_USE enum feroce_store feroce_board_store(struct feroce_board *board, uint32_t index,
                                              const struct feroce_message *message,
                                              const uint8_t *payload, uint32_t bytes, bool is_last,
                                              struct instant now);
/* Stack 2024: messages may begin again. */
void feroce_board_start(struct feroce_board *board, uint32_t index);

/* The reader looks at the next queue pair in turn; `*rewound` says whether it set RD back. */
enum feroce_visit feroce_board_visit(struct feroce_board *board, struct instant now,
                                     struct feroce_packet *packet, bool *rewound);
/* Visits until there is a packet. False: no queue pair has one. */
MUST_USE bool feroce_board_next_packet(struct feroce_board *board, struct instant now,
                                       struct feroce_packet *packet);

/* A datagram came to UDP port 4791: from the BTH on, ICRC included. A wrong ICRC changes
 * nothing. */
enum feroce_arrival feroce_board_on_roce(struct feroce_board *board, const uint8_t *bytes,
                                         size_t count, bool icrc_is_right, struct instant now);

struct instant feroce_board_deadline(const struct feroce_board *board);
void feroce_board_on_time(struct feroce_board *board, struct instant now);

/* The invariants between two calls: each queue pair is open or free, its window fits its state. */
void feroce_board_check(const struct feroce_board *board);

MUST_USE bool feroce_board_next_event(struct feroce_board *board, struct feroce_event *event);

#endif
