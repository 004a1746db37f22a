/* SPDX-License-Identifier: BSD-2-Clause
 *
 * zoo - small programs that make one mistake each, and their right twins, for `nonic run --check`.
 *
 * A mistake is a function: it does what is wrong, or what is right. Its comment says what hardware
 * makes of it. Two connected queue pairs, A and B, of one process are there already.
 */
#ifndef TESTS_ZOO_ZOO_H
#define TESTS_ZOO_ZOO_H

#include "tests/hostile/victim.h"

enum {
    SENDS = 4,    /* max_send_wr of A and B, ... */
    RECEIVES = 4, /* max_recv_wr, ... */
    INLINE = 32,  /* max_inline_data. */
    BYTES = 64,   /* A message. */
};

extern struct victim a, b;
extern struct address of_a, of_b;

struct mistake {
    const char *name; /* The rule that finds it. */
    void (*make)(bool right);
};
extern const struct mistake memory_mistakes[], queue_mistakes[], post_mistakes[], object_mistakes[];

/* A request of A's, or of another queue pair, about BYTES bytes at `memory` of the region `mr`.
 * Returns what ibv_post_send does. */
struct message {
    struct ibv_qp *qp; /* NULL: A's. */
    enum ibv_wr_opcode opcode;
    void *memory;      /* NULL: A's. */
    struct ibv_mr *mr; /* NULL: A's. */
    uint32_t bytes;    /* 0: BYTES. */
    unsigned int flags;
    uint64_t to; /* 0: B's memory. */
};
int post(struct message message);
/* The same, and it is accepted. */
void send_one(struct message message);
/* A receive of B's. */
void receive_one(void);
/* Takes `count` completions, all of which are successes. */
void take(struct ibv_cq *cq, int count);

struct ibv_mr *registered(void *memory, size_t bytes, int access);
/* A queue pair of A's device in RESET. */
struct ibv_qp *another_qp(enum ibv_qp_type type, struct ibv_cq *cq);
extern const struct patience usual;
/* From RESET up to RTS. */
void connect_to(struct ibv_qp *qp, const struct ibv_qp *peer, struct patience patience);
/* Connects two of them, or one with itself. */
void join(struct ibv_qp *one, struct ibv_qp *other);

/* Makes a queue pair of UD ready to send to itself, with the Q_Key 1. */
struct ibv_ah *datagrams(struct ibv_qp *qp);
/* A datagram to itself, signaled. */
void send_datagram(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qkey);
/* A receive of 48 bytes, into A's memory. */
void receive_datagram(struct ibv_qp *qp);

#endif
