/* SPDX-License-Identifier: BSD-2-Clause
 *
 * late - a program that comes to RTS only after its peer's message has failed its queue pair.
 *
 * Preloaded before libibverbs.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOKS    10000
#define PAUSE_NS 1000000

typedef int modify_function(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static int has_failed(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    modify_function *next = NULL;
    void *found = dlsym(RTLD_NEXT, "ibv_modify_qp");
    memcpy(&next, &found, sizeof(next));
    if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTS) {
        for (int i = 0; i < LOOKS && !has_failed(qp); i++) {
            nanosleep(&pause, NULL);
        }
        fprintf(stderr, "late: %s\n", has_failed(qp) ? "failed before RTS" : "nothing failed");
    }
    return next(qp, attr, mask);
}
