/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_program - an EFA device, and datagrams from a queue pair to another of one process, for tests
 * that are ordinary programs of it. NONIC_NIC is efa.
 */
#ifndef TESTS_API_EFA_PROGRAM_H
#define TESTS_API_EFA_PROGRAM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* After those: */
#include <setjmp.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

enum {
    EFA_MEMORY_BYTES = 1 << 18,
    EFA_GRH_BYTES = 40,
    EFA_QKEY = 0x11111111
};

/* Fails for this reason; the value before the call does not matter. */
#define assert_refused(call, reason)                                                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_null(call);                                                                         \
        assert_int_equal(errno, reason);                                                           \
    } while (0)

struct efa {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *memory;
    union ibv_gid gid;
};

/* cmocka fixtures. */
int efa_open(void **state);
int efa_close(void **state);

/* A UD queue pair with 4 sends and receives of 2 SGEs and 32 bytes inline, in RESET. */
struct ibv_qp *efa_queue_pair(struct efa *efa, struct ibv_cq *cq);
/* Likewise, of SRD. */
struct ibv_qp *efa_queue_pair_srd(struct efa *efa, struct ibv_cq *cq);
/* Likewise, of UD, with the functions of ibv_wr_*. */
struct ibv_qp *efa_queue_pair_ex(struct efa *efa, struct ibv_cq *cq);
/* 0 or errno. */
int efa_modify(struct ibv_qp *qp, enum ibv_qp_state state, int mask);
/* From RESET to this state by the shortest way that programs have; not to SQE. */
void efa_lead(struct ibv_qp *qp, enum ibv_qp_state state);
/* To the process itself. */
struct ibv_ah *efa_handle(struct efa *efa);

/* The first `bytes` of the memory, to `to`; 0 or errno. */
int efa_send(struct efa *efa, struct ibv_qp *from, const struct ibv_qp *to, struct ibv_ah *ah,
             uint32_t bytes, unsigned int flags);
/* Room for a message at that place of the memory. */
int efa_receive(struct efa *efa, struct ibv_qp *qp, uint32_t offset, uint32_t bytes);
/* The next completion, within 20 s. */
struct ibv_wc efa_wait(struct ibv_cq *cq);

#endif
