/* SPDX-License-Identifier: BSD-2-Clause
 *
 * program - a process on a node of RoCE NICs, for tests and experiments: an engine, a region of
 * memory, a completion queue, queue pairs.
 *
 * Ownership  A program must not move. All that it opens is freed by roce_program_close.
 * Limits     Its memory is one region, whose address is as peers name it.
 */
#ifndef LAB_ROCE_PROGRAM_H
#define LAB_ROCE_PROGRAM_H

#include "lab/roce/roce.h"

#define ROCE_PROGRAM_SGES   4u
#define ROCE_PROGRAM_INLINE 256u
#define ROCE_PROGRAM_READS  16u

struct roce_program_config {
    uint32_t node;
    size_t memory_bytes;
    uint32_t qps;   /* At most. */
    uint32_t depth; /* Sends, and receives, of each of them. */
    enum path_mtu mtu;
    uint8_t timeout; /* As IBTA codes it: 4.096 us << timeout. */
    uint64_t seed;
    struct dcqcn_policy dcqcn; /* All 0: the engine's default. */
};

struct roce_program {
    struct roce *roce;
    struct sim *sim;
    struct roce_program_config config;
    struct roce_function *function;
    struct nic *engine;
    struct pd pd;
    struct cq cq;
    struct region region;
    struct completion *ring;
    uint8_t *memory, *engine_memory, *qp_memory;
    size_t each_bytes; /* A queue pair's, in qp_memory. */
    uint32_t qp_count;
    struct qp **qps;
    uint64_t written_ps; /* When its memory was last written. */
    uint64_t changes;    /* How often it was told of a change. */
    /* The user's, for each change; NULL: none. */
    void (*on_change)(struct roce_program *program);
    /* Likewise, for each datagram of QP 1. */
    void (*on_datagram)(struct roce_program *program, const struct gid *source,
                        const uint8_t *payload, uint32_t bytes);
    void *context;
};

void roce_program_open(struct roce_program *program, struct roce *roce, struct sim *sim,
                       const struct roce_program_config *config);
void roce_program_close(struct roce_program *program);

/* A queue pair in RESET. */
struct qp *roce_program_qp(struct roce_program *program, enum qp_type type);
/* Connects two queue pairs of RC or UC; both can send afterwards. */
void roce_program_connect(struct roce_program *a, struct qp *a_qp, struct roce_program *b,
                          struct qp *b_qp);
/* The address of a program, for datagrams. */
struct nic_av roce_program_av(const struct roce_program *from, const struct roce_program *to);

/* Posts and rings; it must find room. `offset` is in its own memory. */
void roce_program_post(struct roce_program *program, struct qp *qp,
                       const struct send_request *request, size_t offset, uint32_t bytes);
/* Posts and does not ring: the request belongs to the next doorbell. */
void roce_program_add(struct roce_program *program, struct qp *qp,
                      const struct send_request *request, size_t offset, uint32_t bytes);
void roce_program_receive(struct roce_program *program, struct qp *qp, uint64_t wr_id,
                          size_t offset, uint32_t bytes);
/* The address by which a peer names a place of its memory. */
uint64_t roce_program_address(const struct roce_program *program, size_t offset);

#endif
