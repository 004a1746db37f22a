/* SPDX-License-Identifier: BSD-2-Clause
 *
 * order - the number of receives that a queue pair has when it is told to go to RTR.
 *
 * Preloaded before libibverbs. Instead of letting it go there, it is stopped, so that each receive
 * completes; the number is said on standard error, and the program is told that RTR failed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

typedef int modify_function(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    modify_function *next = NULL;
    void *found = dlsym(RTLD_NEXT, "ibv_modify_qp");
    struct ibv_qp_attr stop = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc completion;
    int posted = 0;
    memcpy(&next, &found, sizeof(next));
    if ((mask & IBV_QP_STATE) == 0 || attr->qp_state != IBV_QPS_RTR) {
        return next(qp, attr, mask);
    }
    const int status = next(qp, &stop, IBV_QP_STATE);
    while (status == 0 && ibv_poll_cq(qp->recv_cq, 1, &completion) > 0) {
        posted += completion.status == IBV_WC_WR_FLUSH_ERR;
    }
    fprintf(stderr, "order: %d receives before RTR\n", posted);
    return EINVAL;
}
