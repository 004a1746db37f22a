/* SPDX-License-Identifier: BSD-2-Clause
 *
 * kept - a program whose only pointers to some memory are in requests: no leak. With an argument
 * it forgets a piece of it: a leak.
 */
#include "tests/hostile/victim.h"

enum {
    QPS = 64, /* So many that they have memory in common. */
};

static struct victim v;
static struct ibv_qp *qps[QPS];

static __attribute__((noinline)) void *allocate(void)
{
    return malloc(777);
}

static __attribute__((noinline)) void receive(struct ibv_qp *qp)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v.memory, .length = 64, .lkey = v.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = (uintptr_t)allocate(), .sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(qp, &wr, &bad) == 0);
}

/* Functions that were called before leave pointers on the stack. */
static __attribute__((noinline)) void clear_stack(void)
{
    volatile char bytes[16384];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 0;
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    victim_open(&v);
    const struct ibv_qp *first = v.qp;
    for (int i = 0; i < QPS; i++) {
        EXPECT((qps[i] = victim_create_qp(&v)) != NULL);
        v.qp = qps[i];
        const struct address self = victim_address(&v);
        victim_connect(qps[i], &self, 14, 7);
        receive(qps[i]);
    }
    v.qp = (struct ibv_qp *)(uintptr_t)first;
    if (argc > 1) {
        (void)!allocate();
    }
    clear_stack();
    return 0;
}
