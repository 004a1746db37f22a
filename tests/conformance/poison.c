/* SPDX-License-Identifier: BSD-2-Clause
 *
 * poison - a program that lets its NIC use memory that is not the program's, or send bytes that it
 * never wrote: AddressSanitizer, memcheck or MemorySanitizer says so, not of the right twin.
 *
 * Usage: poison MISTAKE [right], under `nonic run`
 */
#include "tests/hostile/victim.h"

enum {
    BYTES = 64
};

static struct victim a, b;
static struct address of_a, of_b;
static bool is_right;

static struct ibv_mr *registered(char *memory, size_t bytes)
{
    struct ibv_mr *mr = ibv_reg_mr(a.pd, memory, bytes, VICTIM_ACCESS);
    EXPECT(mr != NULL);
    return mr;
}

static void post_send(enum ibv_wr_opcode opcode, char *memory, const struct ibv_mr *mr,
                      uint32_t flags)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES, .lkey = mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED | flags,
                                   .wr.rdma = {of_b.memory, of_b.rkey}};
    EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
}

static void post_receive(const struct victim *v, char *memory, const struct ibv_mr *mr)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES, .lkey = mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(v->qp, &wr, &bad) == 0);
}

/* It posts what it has freed. */
static void freed(enum ibv_wr_opcode opcode)
{
    char *memory = calloc(1, BYTES);
    struct ibv_mr *mr = registered(memory, BYTES);
    if (!is_right) {
        free(memory);
    }
    post_send(opcode, memory, mr, 0);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
}

/* The SGE is longer than what was allocated, and the region too. */
static void beyond(void)
{
    char *memory = calloc(1, is_right ? BYTES : BYTES - 1);
    post_receive(&a, memory, registered(memory, BYTES));
}

/* It frees what is still to be sent: the message came when there was no receive, and comes
 * again. */
static void in_flight(void)
{
    char *memory = calloc(1, BYTES);
    struct ibv_mr *mr = registered(memory, BYTES);
    post_send(IBV_WR_SEND, memory, mr, 0);
    if (!is_right) {
        free(memory);
    }
    usleep(100000);
    post_receive(&b, b.memory, b.mr);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    if (is_right) {
        free(memory);
    }
}

/* A peer writes what was freed, though its region is not deregistered. */
static void written(void)
{
    char *memory = calloc(1, BYTES);
    struct ibv_mr *mr = registered(memory, BYTES);
    if (!is_right) {
        free(memory);
    }
    const struct address of_memory = {.memory = (uintptr_t)memory, .rkey = mr->rkey};
    EXPECT(victim_post(&b, IBV_WR_RDMA_WRITE, &of_memory, BYTES) == 0);
    EXPECT(victim_wait(&b) == IBV_WC_SUCCESS);
}

/* Inline data are copied at once, so that the memory may be freed. */
static void inlined(void)
{
    char *memory = calloc(1, BYTES);
    struct ibv_mr *mr = registered(memory, BYTES);
    post_receive(&b, b.memory, b.mr);
    post_send(IBV_WR_SEND, memory, mr, is_right ? IBV_SEND_INLINE : 0);
    free(memory);
    if (!is_right) {
        post_send(IBV_WR_RDMA_WRITE, memory, mr, 0);
    }
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
}

/* It sends bytes that it never wrote. */
static void undefined(uint32_t flags)
{
    char *memory = malloc(BYTES);
    struct ibv_mr *mr = ibv_reg_mr(a.pd, memory, BYTES, 0);
    EXPECT(mr != NULL);
    memset(memory, 1, is_right ? BYTES : BYTES / 2);
    post_send(IBV_WR_RDMA_WRITE, memory, mr, flags);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2);
    const char *mistake = argv[1];
    is_right = argc == 3;
    victim_open(&a);
    victim_open(&b);
    ibv_destroy_qp(a.qp);
    struct ibv_qp_init_attr attr = {.send_cq = a.cq,
                                    .recv_cq = a.cq,
                                    .cap = {.max_send_wr = 16,
                                            .max_recv_wr = 16,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = BYTES},
                                    .qp_type = IBV_QPT_RC};
    EXPECT((a.qp = ibv_create_qp(a.pd, &attr)) != NULL);
    of_a = victim_address(&a);
    of_b = victim_address(&b);
    victim_connect(a.qp, &of_b, 14, 7);
    victim_connect(b.qp, &of_a, 14, 7);
    if (strcmp(mistake, "write") == 0) {
        freed(IBV_WR_RDMA_WRITE);
    } else if (strcmp(mistake, "read") == 0) {
        freed(IBV_WR_RDMA_READ);
    } else if (strcmp(mistake, "beyond") == 0) {
        beyond();
    } else if (strcmp(mistake, "in-flight") == 0) {
        in_flight();
    } else if (strcmp(mistake, "written") == 0) {
        written();
    } else if (strncmp(mistake, "undefined", 9) == 0) {
        undefined(strcmp(mistake, "undefined-inline") == 0 ? IBV_SEND_INLINE : 0);
    } else {
        inlined();
    }
    _exit(0); /* LeakSanitizer has nothing to say here. */
}
