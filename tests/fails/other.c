/* SPDX-License-Identifier: BSD-2-Clause
 *
 * other - another process, to which the program is connected: what is only asked of the system
 * between two processes fails in either of them.
 *
 * A call that failed in one excuses what both are told. Neither gives up: a reliable connection
 * moves its data, and whoever asks for the other's objects gets an answer or none.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fails/program.h"

#define SMALL 16u
#define LARGE 100000u
/* Where data lie in the other's memory, and where they come back to. */
#define THERE (MEMORY_BYTES / 2)

/* What each tells the other of itself. */
struct meeting {
    union ibv_gid gid;
    uint64_t address;
    uint32_t qpn, rkey;
};

static int line = -1;
static pid_t other;

static void tell(const void *bytes, size_t count)
{
    must(send(line, bytes, count, 0) == (ssize_t)count, "send to the other", errno);
}

static void hear(void *bytes, size_t count)
{
    struct pollfd wait = {.fd = line, .events = POLLIN};
    must(poll(&wait, 1, 2 * PATIENCE_MS) == 1, "nothing from the other", 0);
    must(recv(line, bytes, count, 0) == (ssize_t)count, "recv from the other", errno);
}

/* Both are connected when it returns. */
static struct ibv_qp *meet_other(struct program *p, struct meeting *peer)
{
    struct ibv_qp *qp = POINTER(make_qp(p, IBV_QPT_RC, NULL));
    const struct meeting own = {
        .gid = p->gid, .address = (uintptr_t)p->memory, .qpn = qp->qp_num, .rkey = p->mr->rkey};
    char ready = 1;
    tell(&own, sizeof(own));
    hear(peer, sizeof(*peer));
    connect_qp(qp, &peer->gid, peer->qpn);
    tell(&ready, sizeof(ready));
    hear(&ready, sizeof(ready));
    return qp;
}

/* -- The other one ------------------------------------------------------------------------------*/

static void be_other(void)
{
    struct program p = {0};
    struct meeting peer;
    open_program(&p);
    struct ibv_qp *qp = meet_other(&p, &peer);
    serve_manager(line);
    ZERO(ibv_destroy_qp(qp));
    close_program(&p);
    close(line);
    exit(0);
}

void start_other(void)
{
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair", errno);
    other = fork();
    must(other >= 0, "fork", errno);
    line = ends[other == 0];
    close(ends[other != 0]);
    if (other == 0) {
        be_other();
    }
}

/* -- The program's side -------------------------------------------------------------------------*/

static void reach_there(struct program *p, struct ibv_qp *qp, const struct meeting *peer,
                        enum ibv_wr_opcode opcode, uint32_t bytes)
{
    const bool read = opcode == IBV_WR_RDMA_READ;
    struct ibv_sge here = {
        .addr = (uintptr_t)p->memory + (read ? THERE : 0), .length = bytes, .lkey = p->mr->lkey};
    struct ibv_send_wr wr = {.opcode = opcode,
                             .sg_list = &here,
                             .wr.rdma = {.remote_addr = peer->address + THERE, .rkey = peer->rkey}};
    complete(p, qp, &wr, read ? "READ from the other" : "WRITE to the other");
}

/* What is written there comes back. */
static void write_and_read(struct program *p, struct ibv_qp *qp, const struct meeting *peer,
                           uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        p->memory[i] = (uint8_t)(i * 11 + bytes);
    }
    memset(p->memory + THERE, 0, bytes);
    reach_there(p, qp, peer, IBV_WR_RDMA_WRITE, bytes);
    reach_there(p, qp, peer, IBV_WR_RDMA_READ, bytes);
    must(memcmp(p->memory, p->memory + THERE, bytes) == 0, "what came back from the other", 0);
}

void talk_to_other(struct program *p)
{
    struct meeting peer;
    uint16_t port;
    struct ibv_qp *qp = meet_other(p, &peer);
    write_and_read(p, qp, &peer, SMALL);
    write_and_read(p, qp, &peer, LARGE);
    hear(&port, sizeof(port));
    if (has_ipv4(p)) {
        call_manager(port);
    }
    ZERO(ibv_destroy_qp(qp));
}

void end_other(void)
{
    int status = -1;
    const char end = 1;
    tell(&end, sizeof(end));
    must(waitpid(other, &status, 0) == other && status == 0, "the other", status);
    close(line);
}
