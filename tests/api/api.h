/* SPDX-License-Identifier: BSD-2-Clause
 *
 * api - a device, and two queue pairs of one process connected to each other, for tests that are
 * ordinary verbs programs.
 */
#ifndef TESTS_API_API_H
#define TESTS_API_API_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* After those: */
#include <setjmp.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define MEMORY_BYTES 65536

struct api {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cqs[2];
    struct ibv_qp *qps[2];
    struct ibv_mr *mrs[2];
    uint8_t *memory[2]; /* MEMORY_BYTES each, registered for everything. */
    union ibv_gid gid;
    uint8_t timeout;   /* The timer's code for api_connect; 0: 14, which is 67 ms. */
    bool asks_nothing; /* It sets max_rd_atomic to 0. */
};

/* cmocka fixtures: the device alone, or with two connected RC queue pairs. */
int api_open(void **state);
int api_open_rc(void **state);
int api_close(void **state);

struct ibv_qp *api_create_qp(struct api *api, enum ibv_qp_type type, struct ibv_cq *cq,
                             struct ibv_srq *srq);
/* From RESET up to RTS, towards `peer` (itself for UD). */
void api_connect(struct api *api, struct ibv_qp *qp, const struct ibv_qp *peer);
/* Likewise, by this way. */
void api_connect_by(struct api *api, struct ibv_qp *qp, const struct ibv_qp *peer,
                    const struct ibv_global_route *route);
struct ibv_ah *api_address_handle(struct api *api);

/* One signaled request of one SGE; `remote` and `rkey` where the opcode has them. */
int api_post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote,
             uint32_t rkey);
int api_post_receive(struct ibv_qp *qp, struct ibv_sge sge);
struct ibv_sge api_sge(const struct ibv_mr *mr, uint32_t offset, uint32_t bytes);

/* The value of the port's counter, named as in its directory. */
uint64_t api_counter(const char *name);

/* The next completion of a queue; fails the test if none comes. */
struct ibv_wc api_wait(struct ibv_cq *cq);
/* Likewise, and its status is this. */
struct ibv_wc api_expect(struct ibv_cq *cq, enum ibv_wc_status status);
/* The next asynchronous event is this one; acknowledges it. */
void api_expect_event(struct api *api, enum ibv_event_type type);

#endif
