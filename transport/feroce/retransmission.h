/* SPDX-License-Identifier: BSD-2-Clause
 *
 * retransmission - the board's memory of what is not acknowledged, and which packet leaves next.
 *
 * Purpose    Go-back-N for all queue pairs of a board: every packet is stored first, read from
 *            there, and read again when it is lost.
 * Inputs     Packets to store, ACKs and NAKs, visits in round robin, time.
 * Outputs    The packet that a visit sends; a queue pair that is given up; whether there is room.
 * Ownership  feroce_retransmission_bytes() of the caller's memory; packets are copied into it.
 * Units      Bytes, nanoseconds, PSNs of 24 bits.
 * Limits     Packets of one PMTU; slots of a power of two for each queue pair.
 * Source     RTL2026 (wire/feroce.h). Where it errs, this does what was meant; the mistakes are
 *            quirks (quirks.h). docs/decisions/0029.
 *
 * Three PSNs a queue pair: WR, the newest packet that is wholly stored; RD, the newest that was
 * handed to the wire, or a lower one when packets are to be sent again; CPL, the newest that is
 * acknowledged.
 */
#ifndef TRANSPORT_FEROCE_RETRANSMISSION_H
#define TRANSPORT_FEROCE_RETRANSMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "transport/common/psn.h"
#include "transport/feroce/qp_table.h"
#include "transport/feroce/quirks.h"

#define FEROCE_RNR_FOR_EVER 7
/* The limit of NAKs; the limit of timeouts may be another one. */
#define FEROCE_NAK_LIMIT 7

struct feroce_retransmission_config {
    uint32_t qps;         /* 1, 2, 4, 8 or 16. */
    uint32_t pmtu;        /* 256 to 4096, a power of two. */
    uint32_t buffer_bits; /* 2^buffer_bits bytes of memory for all queue pairs. */
    uint8_t retry_limit;  /* Timeouts without progress until a queue pair is given up: 0..7. */
    uint8_t rnr_limit;    /* RNR waits likewise; FEROCE_RNR_FOR_EVER. */
    uint64_t rto_ns;
    uint32_t quirks; /* enum feroce_quirk. */
    bool sends_once; /* Stack 2024: nothing is sent again, and nothing waits for ACKs. */
    /* Other ways that the board could work; for the laboratory. */
    bool sending_restarts_timer;
    bool resends_alone; /* After a NAK the lost packet only. */
    bool no_hysteresis; /* A queue is stalled while WR - CPL > stop, and no longer. */
};

/* The contents of a packet's header. */
struct feroce_header {
    uint8_t opcode;
    struct psn psn;
    uint64_t address;
    uint32_t length;    /* The message's. */
    uint32_t immediate; /* As it stands on the wire. */
    uint32_t payload_bytes;
};

struct feroce_window {
    bool open;
    struct psn written, sent, acked; /* WR, RD, CPL. */
    struct psn high;                 /* The greatest that RD ever was. */
    /* Retries count from when it became known that the receiver has all in front of this: by ACKs,
     * by NAKs. The same for RNR waits. */
    struct psn progress, rnr_progress;
    struct psn refused; /* The PSN of the NAK. */
    uint8_t retries, rnr_retries;
    bool stalled, failed, timed_out, sequence_error, rnr_waits, rnr_over, alone;
    struct instant timeout; /* INSTANT_NEVER: everything is acknowledged. */
    struct instant rnr_end;
};

struct feroce_retransmission {
    struct feroce_retransmission_config config;
    struct feroce_header *headers; /* By queue pair and slot. */
    uint8_t *payloads;
    uint32_t slots; /* Each queue pair's. */
    struct feroce_window windows[FEROCE_QPS_MAX];
    uint64_t stored, sent, resent, overwritten;
    uint64_t timeouts, sequence_rewinds, rnr_rewinds; /* Begun. */
};

/* NULL, or why a board cannot be like this: the thresholds would wrap. */
const char *feroce_retransmission_refuses(const struct feroce_retransmission_config *config);
size_t feroce_retransmission_bytes(const struct feroce_retransmission_config *config);
/* A configuration that is not refused, and memory for 64-bit words. */
void feroce_retransmission_init(struct feroce_retransmission *unit,
                                const struct feroce_retransmission_config *config, void *memory);

/* Thresholds of WR - CPL. */
uint32_t feroce_stop(const struct feroce_retransmission *unit);
uint32_t feroce_release(const struct feroce_retransmission *unit);

void feroce_window_open(struct feroce_retransmission *unit, uint32_t index, struct psn first);
void feroce_window_close(struct feroce_retransmission *unit, uint32_t index);

/* May its queue store another packet? */
bool feroce_window_has_room(const struct feroce_retransmission *unit, uint32_t index);

/* Stores the packet behind WR; the header's PSN is filled in. False: all slots hold packets that
 * are not acknowledged (never with FEROCE_QUIRK_STALL, which overwrites them). */
MUST_USE bool feroce_window_store(struct feroce_retransmission *unit, uint32_t index,
                                  const struct feroce_header *header, const uint8_t *payload,
                                  struct instant now);

/* The header in the slot of this PSN: the packet's, as long as it is not acknowledged. */
const struct feroce_header *feroce_window_header(const struct feroce_retransmission *unit,
                                                 uint32_t index, struct psn psn);

/* The effect of an acknowledgement. */
enum feroce_arrival {
    FEROCE_ARRIVAL_ACK,      /* CPL moved. */
    FEROCE_ARRIVAL_NAK,      /* Packets will be sent again. */
    FEROCE_ARRIVAL_RNR,      /* ... after a wait. */
    FEROCE_ARRIVAL_FATAL,    /* The queue pair will be given up. */
    FEROCE_ARRIVAL_OLD,      /* Its packet is acknowledged. */
    FEROCE_ARRIVAL_AHEAD,    /* Its packet was never sent. */
    FEROCE_ARRIVAL_WAITS,    /* A NAK during an RNR wait. */
    FEROCE_ARRIVAL_RESERVED, /* AETH type 10. */
    FEROCE_ARRIVAL_CLOSED,   /* The queue pair is not in RTS. */
    FEROCE_ARRIVAL_FOREIGN,  /* The QPN is not the board's. */
    FEROCE_ARRIVAL_SHORT,    /* Less than BTH, AETH and ICRC. */
    FEROCE_ARRIVAL_OTHER,    /* Not an acknowledgement. */
    FEROCE_ARRIVAL_COUNT,
};

const char *feroce_arrival_name(enum feroce_arrival arrival);

enum feroce_arrival feroce_window_answer(struct feroce_retransmission *unit, uint32_t index,
                                         uint8_t syndrome, struct psn psn, struct instant now);

/* The reader looks at one queue pair. */
enum feroce_visit {
    FEROCE_VISIT_EMPTY,
    FEROCE_VISIT_PACKET,
    FEROCE_VISIT_GIVES_UP, /* The window is closed now. */
};

struct feroce_read {
    const struct feroce_header *header;
    const uint8_t *payload;
    bool resent;
    bool rewound; /* This visit set RD back. */
};

/* The bytes that `read` points to stay until a later packet takes their slot. */
enum feroce_visit feroce_window_visit(struct feroce_retransmission *unit, uint32_t index,
                                      struct instant now, struct feroce_read *read);

/* When feroce_retransmission_on_time is due: INSTANT_NEVER if no timer runs. */
struct instant feroce_retransmission_deadline(const struct feroce_retransmission *unit);
void feroce_retransmission_on_time(struct feroce_retransmission *unit, struct instant now);

/* The invariants of a queue pair between two calls. */
void feroce_window_check(const struct feroce_retransmission *unit, uint32_t index);

/* Would a visit do anything? */
bool feroce_retransmission_has_work(const struct feroce_retransmission *unit);

#endif
