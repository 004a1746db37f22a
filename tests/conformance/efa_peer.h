/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_peer - what the programs of tests/conformance/efa share: SRD queue pairs as a program of EFA
 * makes them, and target processes that do what their parent orders.
 *
 * A target opens the device when it is ordered to, so it may be forked before its parent has one.
 */
#ifndef TESTS_CONFORMANCE_EFA_PEER_H
#define TESTS_CONFORMANCE_EFA_PEER_H

#include <infiniband/efadv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* Flags, and a function of struct efadv_cq, that newer headers have. */
#include "verbs/efa_newer.h"

enum {
    PEER_BYTES = 1 << 21,
    PEER_QKEY = 0x1234567,
    PEER_RECEIVES = 64,
    PEER_COMPLETIONS = 1 << 14,
};

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* A queue pair and memory, as a requester has to know them. */
struct address {
    union ibv_gid gid;
    uint32_t qpn, qkey, rkey, ahn;
    uint64_t memory;
};

/* A completion, every field of it. */
struct seen {
    bool there;
    uint64_t wr_id;
    uint32_t status, vendor_err, opcode, bytes, immediate, flags, qpn, source_qpn, slid;
    bool unsolicited;
    int sgid_reason; /* As efadv_wc_read_sgid returned it. */
    union ibv_gid sgid;
};

/* A program's device, with a queue pair in RTS. */
struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq_ex *cq;
    struct ibv_mr *mr;
    uint8_t *memory; /* PEER_BYTES */
    struct ibv_qp *qp;
    union ibv_gid gid;
};

void end_open(struct end *end);
/* With EFA_QP_UNSOLICITED_WRITE_RECV, or 0. */
struct ibv_qp *end_queue_pair(struct end *end, uint16_t flags, uint8_t rnr_retry);
/* In RESET, for a number of requests; NULL with errno. */
struct ibv_qp *end_queue_pair_of(struct end *end, uint16_t flags, uint32_t sends);
/* From RESET to RTS. */
void end_lead(struct ibv_qp *qp, uint8_t rnr_retry);
struct ibv_ah *end_handle(struct end *end, const union ibv_gid *gid);
struct address end_address(const struct end *end);
/* The next completion, within `ms` milliseconds; not `there`: none came. */
struct seen end_wait(struct end *end, int ms);

/* -- Requests -----------------------------------------------------------------------------------*/

struct request {
    enum ibv_wr_opcode opcode;
    uint64_t wr_id;
    uint32_t offset, bytes; /* In our memory, and the peer's. */
    uint32_t lkey;
    uint32_t immediate;
    bool inlined;
};

/* Posts it to a peer, whose address may be wrong on purpose. 0 or errno. */
int end_post(struct end *end, struct ibv_ah *ah, const struct address *to,
             const struct request *request);
void end_receive(struct end *end, uint64_t wr_id, uint32_t offset, uint32_t bytes);

/* -- Targets ------------------------------------------------------------------------------------*/

enum order {
    ORDER_OPEN,        /* value: flags of its queue pair. */
    ORDER_HANDLE,      /* To `who`; the answer's ahn. */
    ORDER_HANDLE_GONE, /* That one. */
    ORDER_RECEIVE,     /* A receive of `value` bytes, wr_id 1000 + value. */
    ORDER_TELL,        /* The next completion. */
    ORDER_TELL_NONE,   /* Likewise, but hardly waiting. */
    ORDER_FORGET_MEMORY,
    ORDER_REGISTER, /* value: access. */
    ORDER_FAIL,     /* Its queue pair enters the error state. */
    ORDER_RENEW,    /* It has another queue pair. */
    ORDER_COMPARE,  /* Are `value` bytes of its memory those that end_fill made? */
    ORDER_FILL,     /* Fills its memory with that seed. */
    ORDER_SUM,      /* A sum of its memory; ORDER_FORGET_MEMORY tells it as well. */
};

struct target {
    pid_t pid;
    int socket;
    struct address address;
};

struct told {
    struct address address;
    struct seen seen;
    bool alike;
    uint64_t sum;
};

/* A child, which has opened nothing. */
struct target target_start(void);
struct told target_order(struct target *target, enum order order, uint32_t value,
                         const struct address *who);
/* Ends it as if its machine had failed. */
void target_kill(struct target *target);
/* Returns when it does nothing any more. */
void target_stop(struct target *target);
void target_continue(struct target *target);

/* Bytes of a seed, which differ from one place to the next. */
void end_fill(struct end *end, uint32_t seed);
uint64_t end_sum(const struct end *end);
bool end_is_filled(const struct end *end, uint32_t seed, uint32_t bytes);

#endif
