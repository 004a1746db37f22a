/* SPDX-License-Identifier: BSD-2-Clause
 *
 * other - another process, to which the program is connected: what is only asked of the system
 * between two processes fails in either of them.
 *
 * A call that failed in one excuses what both are told. Neither gives up: a reliable connection
 * moves its data, and whoever asks for the other's objects gets an answer or none.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fails/program.h"

#define SMALL 16u
#define LARGE 100000u
/* Where data lie in the other's memory, and where they come back to. */
#define THERE (MEMORY_BYTES / 2)

/* The address that each side tells the other. */
struct meeting {
    union ibv_gid gid;
    uint64_t address;
    uint32_t qpn, rkey;
    uint16_t lid;
};

static int line = -1;
static pid_t other;
static struct ibv_qp *connection;
static struct meeting peer;
static uint16_t peer_port; /* Where its manager listens. */

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
static void meet_other(struct program *p)
{
    struct ibv_qp *qp = connection = POINTER(make_qp(p, IBV_QPT_RC, NULL));
    struct ibv_port_attr port;
    ZERO(ibv_query_port(p->context, 1, &port));
    const struct meeting own = {.gid = p->gid,
                                .address = (uintptr_t)p->memory,
                                .qpn = qp->qp_num,
                                .rkey = p->mr->rkey,
                                .lid = port.lid};
    char ready = 1;
    tell(&own, sizeof(own));
    hear(&peer, sizeof(peer));
    connect_qp(qp, &peer.gid, peer.qpn);
    tell(&ready, sizeof(ready));
    hear(&ready, sizeof(ready));
}

/* -- The other one ------------------------------------------------------------------------------*/

static void be_other(void)
{
    struct program p = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* Also of one that is stopped. */
    open_program(&p);
    meet_other(&p);
    serve_manager(&p, line);
    ZERO(ibv_destroy_qp(connection));
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

static struct ibv_sge here(const struct program *p, size_t offset, uint32_t bytes)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)p->memory + offset, .length = bytes, .lkey = p->mr->lkey};
}

static void write_there(struct program *p, uint32_t bytes)
{
    struct ibv_sge from = here(p, 0, bytes);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &from,
                             .wr.rdma = {.remote_addr = peer.address + THERE, .rkey = peer.rkey}};
    complete(p, connection, &wr, "WRITE to the other");
}

static void read_there(struct program *p, uint32_t bytes)
{
    struct ibv_sge to = here(p, THERE, bytes);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .sg_list = &to,
                             .wr.rdma = {.remote_addr = peer.address + THERE, .rkey = peer.rkey}};
    complete(p, connection, &wr, "READ from the other");
}

/* Bytes that are written there come back. */
static void write_and_read(struct program *p, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        p->memory[i] = (uint8_t)(i * 11 + bytes);
    }
    memset(p->memory + THERE, 0, bytes);
    write_there(p, bytes);
    read_there(p, bytes);
    must(memcmp(p->memory, p->memory + THERE, bytes) == 0, "wrong bytes came back from the other",
         0);
}

/* Longer than retries take: the program gets no notice of it. */
static void *go_on(void *unused)
{
    const struct timespec pause = {.tv_nsec = 500000000};
    (void)unused;
    nanosleep(&pause, NULL);
    kill(other, SIGCONT);
    return NULL;
}

static void stop_other(struct program *p)
{
    pthread_t later;
    must(pthread_create(&later, NULL, go_on, NULL) == 0, "pthread_create", errno);
    kill(other, SIGSTOP);
    write_and_read(p, SMALL);
    pthread_join(later, NULL);
}

/* By the number that a subnet manager would have given it. */
static void find_by_lid(struct program *p)
{
    struct ibv_ah_attr attr = {.dlid = peer.lid, .port_num = 1};
    if (peer.lid == 0) {
        return; /* Other machines reach the device: its port has none. */
    }
    struct ibv_ah *ah = POINTER(ibv_create_ah(p->pd, &attr));
    ZERO(ibv_destroy_ah(ah));
}

void talk_to_other(struct program *p)
{
    meet_other(p);
    write_and_read(p, SMALL);
    write_and_read(p, LARGE);
    if (getenv("FAILS_STOP") != NULL) {
        stop_other(p);
    }
    find_by_lid(p);
    hear(&peer_port, sizeof(peer_port));
    call_other(p);
}

void call_other(const struct program *p)
{
    call_manager(p, &peer.gid, peer_port);
}

void end_other(void)
{
    int status = -1;
    const char end = 1;
    ZERO(ibv_destroy_qp(connection));
    tell(&end, sizeof(end));
    must(waitpid(other, &status, 0) == other && status == 0, "the other", status);
    close(line);
}
