/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - mistakes with the memory that requests name.
 */
#include "tests/zoo/zoo.h"

/* It writes the next message into the buffer before the last one is known to be sent. On hardware
 * the peer gets the old bytes, the new ones, or some of each: most often the old ones, so that
 * tests pass. */
static void send_changed(bool right)
{
    receive_one();
    send_one((struct message){.opcode = IBV_WR_RDMA_WRITE, .memory = a.memory + BYTES});
    send_one((struct message){.opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED}); /* This one. */
    if (!right) {
        strcpy(a.memory, "the next message");
    }
    take(a.cq, 1);
    strcpy(a.memory, "the next message");
}

/* The SGE goes beyond its region. Hardware takes the request, and ends it with a local protection
 * error, and the queue pair with it, once it is its turn; here only the last 16 bytes are named
 * in vain. */
static void bad_key(bool right)
{
    struct ibv_mr *mr = registered(a.memory, right ? BYTES : BYTES - 16, 0);
    receive_one();
    send_one((struct message){.opcode = IBV_WR_SEND, .mr = mr, .flags = IBV_SEND_SIGNALED});
    if (right) {
        take(a.cq, 1);
    } else {
        EXPECT(victim_wait(&a) == IBV_WC_LOC_PROT_ERR);
    }
    EXPECT(ibv_dereg_mr(mr) == 0);
}

/* It deregisters the memory when the peer has answered, but has not polled the completion. On
 * hardware the request may be sent again: a lost acknowledgement is enough. Then it ends with a
 * local protection error. */
static void region_gone(bool right)
{
    struct ibv_mr *mr = registered(a.memory, BYTES, 0);
    receive_one();
    send_one((struct message){.opcode = IBV_WR_SEND, .mr = mr, .flags = IBV_SEND_SIGNALED});
    take(b.cq, 1);
    if (!right) {
        EXPECT(ibv_dereg_mr(mr) == 0);
    }
    take(a.cq, 1);
    if (right) {
        EXPECT(ibv_dereg_mr(mr) == 0);
    }
}

/* It frees the memory when the peer has answered. Hardware has pinned the pages, and may send once
 * more what the program has there by then; or write into it, if it is a receive's. */
static void freed(bool right)
{
    char *memory = malloc(BYTES);
    struct ibv_mr *mr = registered(memory, BYTES, 0);
    receive_one();
    send_one((struct message){
        .opcode = IBV_WR_SEND, .memory = memory, .mr = mr, .flags = IBV_SEND_SIGNALED});
    take(b.cq, 1);
    if (!right) {
        free(memory);
    }
    take(a.cq, 1);
    EXPECT(ibv_dereg_mr(mr) == 0);
    if (right) {
        free(memory);
    }
}

static __attribute__((noinline)) struct ibv_mr *send_local(bool right)
{
    char memory[BYTES] = "a local variable";
    struct ibv_mr *mr = registered(memory, BYTES, 0);
    receive_one();
    send_one((struct message){
        .opcode = IBV_WR_SEND, .memory = memory, .mr = mr, .flags = IBV_SEND_SIGNALED});
    if (right) {
        take(a.cq, 1);
    }
    return mr;
}

/* A message is a local variable of a function that returns before the completion is polled. The
 * next functions have their variables there, and hardware sends those. */
static void stack_gone(bool right)
{
    struct ibv_mr *mr = send_local(right);
    if (!right) {
        take(a.cq, 1);
    }
    EXPECT(ibv_dereg_mr(mr) == 0);
}

/* It sends on what a READ brings, right behind the READ. Hardware begins with the SEND before the
 * data of the READ are there, and sends what was in the buffer before. */
static void fence(bool right)
{
    receive_one();
    send_one((struct message){.opcode = IBV_WR_RDMA_READ});
    send_one((struct message){.opcode = IBV_WR_SEND,
                              .flags = IBV_SEND_SIGNALED | (right ? IBV_SEND_FENCE : 0)});
    take(a.cq, 1);
}

/* It reads the peer's memory, and overwrites it right behind. If the READ's answer is lost on the
 * way, hardware reads again, and brings what the WRITE has written. */
static void read_overtaken(bool right)
{
    send_one((struct message){.opcode = IBV_WR_RDMA_READ});
    send_one((struct message){.opcode = IBV_WR_RDMA_WRITE,
                              .memory = a.memory + BYTES,
                              .flags = IBV_SEND_SIGNALED | (right ? IBV_SEND_FENCE : 0)});
    take(a.cq, 1);
}

/* A receive of UD is as long as the message. The first 40 bytes are the GRH's, on hardware as here:
 * the message does not fit. */
static void ud_room(bool right)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_UD, a.cq);
    EXPECT(ibv_destroy_ah(datagrams(qp)) == 0);
    struct ibv_sge sge = {
        .addr = (uintptr_t)a.memory, .length = right ? 40 + 8 : 8, .lkey = a.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(qp, &wr, &bad) == 0);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* A receive for a message without data has an SGE of 0 bytes, in place of no SGE. */
static void empty_sge(bool right)
{
    struct ibv_sge sge = {.addr = (uintptr_t)b.memory, .lkey = b.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = !right};
    EXPECT(ibv_post_recv(b.qp, &wr, &bad) == 0);
}

/* It destroys the address handle when the datagram is posted. The NIC may still need it: hardware
 * has a pointer to it, or a copy. */
static void handle_gone(bool right)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_UD, a.cq);
    struct ibv_ah *ah = datagrams(qp);
    send_datagram(qp, ah, 1);
    if (!right) {
        EXPECT(ibv_destroy_ah(ah) == 0);
    }
    take(a.cq, 1);
    if (right) {
        EXPECT(ibv_destroy_ah(ah) == 0);
    }
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* It writes the next datagram into the buffer at once. Hardware may not have read it yet. */
static void datagram_changed(bool right)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_UD, a.cq);
    struct ibv_ah *ah = datagrams(qp);
    send_datagram(qp, ah, 1);
    if (!right) {
        strcpy(a.memory, "next");
    }
    take(a.cq, 1);
    strcpy(a.memory, "next");
    EXPECT(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(qp) == 0);
}

/* It deregisters the memory of a datagram at once. Hardware may not have read it yet. */
static void datagram_gone(bool right)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_UD, a.cq);
    struct ibv_ah *ah = datagrams(qp);
    struct ibv_mr *mr = a.mr;
    a.mr = registered(a.memory, BYTES, 0);
    send_datagram(qp, ah, 1);
    if (!right) {
        EXPECT(ibv_dereg_mr(a.mr) == 0);
    }
    take(a.cq, 1);
    if (right) {
        EXPECT(ibv_dereg_mr(a.mr) == 0);
    }
    a.mr = mr;
    EXPECT(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(qp) == 0);
}

const struct mistake memory_mistakes[] = {
    {"send-changed", send_changed},
    {"bad-key", bad_key},
    {"region-gone", region_gone},
    {"freed", freed},
    {"stack-gone", stack_gone},
    {"fence", fence},
    {"read-overtaken", read_overtaken},
    {"ud-room", ud_room},
    {"empty-sge", empty_sge},
    {"handle-gone", handle_gone},
    {"datagram-changed", datagram_changed},
    {"datagram-gone", datagram_gone},
    {NULL, NULL},
};
