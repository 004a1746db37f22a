/* SPDX-License-Identifier: BSD-2-Clause
 *
 * receiver - the host: a NIC's engine (nic/nic.h), and the program that uses it.
 *
 * Purpose    Opens the boards' queue pairs, receives, answers, posts buffers again; compares every
 *            byte of payload with the generator's pattern and every ICRC.
 * Ownership  The machine owns it; it must not move.
 * Limits     One connection for each queue pair of each board.
 * Source     feroce-rs (wire/feroce.h) for what the host does. IEEE 802.3, Annexes 31B and 31D, for
 *            pauses.
 *
 * A packet is taken, and its reply pulled, ack_ns after its last bit. With coalesce = k only
 * each k-th reply is pulled, and one a microsecond after the last packet. All receives of a
 * connection name one buffer: what is in it is compared at once.
 */
#ifndef LAB_FEROCE_RECEIVER_H
#define LAB_FEROCE_RECEIVER_H

#include "lab/feroce/packet.h"
#include "lab/feroce/setup.h"

#define FEROCE_KEPT_MAX    4096u
#define FEROCE_REPOSTS_MAX 8192u

struct feroce_connection {
    struct qp *qp;
    uint32_t sender, order; /* Its board, and its place among the board's. */
    uint32_t board_qpn;
    bool open;
    uint8_t *memory;
    struct region region;
    void *qp_memory;
    uint32_t word;       /* The pattern's that comes next. */
    struct psn expected; /* By the receiver that keeps packets. */
    bool asked;          /* It has sent a NAK for that one. */
    struct feroce_packet_on_line **kept;
    uint64_t delivered_bytes;
};

struct feroce_receiver {
    struct feroce_machine *machine;
    struct sim *sim;
    struct sim_port port;
    struct sim_errors answer_errors; /* Not of the orders: nobody would send them again. */
    struct nic *nic;
    void *memory;
    struct pd pd;
    struct cq cq;
    struct completion *ring;
    struct feroce_connection *connections;
    uint32_t connection_count, opening; /* The one that is being opened. */
    uint64_t start_ps;                  /* When the generators were started; 0: not yet. */
    struct sim_event ask;               /* The time of a request is over; or the next start. */
    uint32_t attempts, started;
    struct sim_event late; /* The last replies, when answers are coalesced. */
    uint32_t since_pull;
    /* Buffers that are posted again, in the order of their times. */
    struct sim_event repost;
    struct {
        uint64_t at_ps;
        uint32_t connection;
    } reposts[FEROCE_REPOSTS_MAX];
    uint32_t repost_first, repost_count;
    bool spoilt; /* The one bit was flipped. */
    uint32_t replies_left;
    bool withheld; /* The one packet. */
    /* Counters of the packets that it saw. */
    uint64_t frames, compared, wrong; /* Bytes of payload. */
    uint64_t first_wrong;             /* If one is: its place in what its queue pair delivered. */
    uint64_t icrcs, bad_icrcs;
    uint64_t disordered;           /* Packets that were neither in order nor answered. */
    uint64_t acks, naks, refusals; /* Pulled; refusals: NAKs of an error. */
    uint8_t refusal;               /* The syndrome of the last one. */
    uint64_t messages, failures;
    uint64_t cm_replies, opens;
    /* About board 0's frames. */
    uint32_t first_identification, last_identification;
    uint64_t board_frames, zero_identifications, skipped_identifications;
};

void feroce_receiver_open(struct feroce_receiver *receiver, struct feroce_machine *machine);
/* Asks board 0 for one more queue pair, to be connected to this address; 0: the host's. The outcome
 * is not looked at. */
void feroce_receiver_ask(struct feroce_receiver *receiver, uint32_t ip);
/* Begins to open queue pairs. */
void feroce_receiver_start(struct feroce_receiver *receiver);
void feroce_receiver_close(struct feroce_receiver *receiver);

#endif
