/* SPDX-License-Identifier: BSD-2-Clause
 *
 * visitors - a server that lives long: what many clients that came and went have left in it.
 *
 * Usage: visitors CLIENTS (at least 1), under `nonic run`. Each client is a process with a device
 * of its own: it opens the device, connects, sends one message and ends, every other one without a
 * word. Prints one JSON object: the time that an 8-byte SEND of the server to itself takes, its
 * memory and its descriptors, before the clients and after them; and how long they took. The first
 * WARMING clients come before that, since a few ways to peers are kept.
 */
#include <dirent.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/hostile/victim.h"

#define WARMING  150
#define ROUNDS   15
#define MESSAGES 2000

struct figures {
    double latency_us;
    long kilobytes;
    int descriptors;
};

/* Lets the other process run, which is what is waited for. */
static void wait_politely(struct victim *v)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(v->cq, 1, &wc) == 0) {
        sched_yield();
    }
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "process %d: opcode %d ended with %s\n", getpid(), wc.opcode,
                ibv_wc_status_str(wc.status));
    }
    EXPECT(wc.status == IBV_WC_SUCCESS);
}

/* -- Clients ------------------------------------------------------------------------------------*/

static void visit(int server, bool orderly)
{
    struct victim own;
    struct address peer;
    victim_open(&own);
    const struct address address = victim_address(&own);
    EXPECT(write(server, &address, sizeof(address)) == sizeof(address));
    EXPECT(read(server, &peer, sizeof(peer)) == sizeof(peer));
    victim_connect(own.qp, &peer, 14, 7);
    EXPECT(victim_post(&own, IBV_WR_SEND, &peer, 8) == 0);
    wait_politely(&own);
    if (orderly) {
        exit(0);
    }
    _exit(0);
}

/* Makes one client whenever the server asks for one. It has no device itself. */
static void make_clients(int server)
{
    char asked;
    for (bool orderly = false; read(server, &asked, 1) == 1; orderly = !orderly) {
        const pid_t client = fork();
        EXPECT(client >= 0);
        if (client == 0) {
            visit(server, orderly);
        }
        int status;
        EXPECT(waitpid(client, &status, 0) == client && status == 0);
        EXPECT(write(server, &asked, 1) == 1);
    }
    _exit(0);
}

/* -- The server ---------------------------------------------------------------------------------*/

static void receive(const struct victim *v, struct ibv_qp *qp)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v->memory, .length = 8, .lkey = v->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(qp, &wr, &bad) == 0);
}

static void serve(struct victim *v, int clients)
{
    struct address peer;
    EXPECT(write(clients, "c", 1) == 1);
    EXPECT(read(clients, &peer, sizeof(peer)) == sizeof(peer));
    struct ibv_qp *qp = victim_create_qp(v);
    EXPECT(qp != NULL);
    victim_connect(qp, &peer, 14, 7);
    receive(v, qp);
    struct address own = victim_address(v);
    own.qpn = qp->qp_num;
    EXPECT(write(clients, &own, sizeof(own)) == sizeof(own));
    wait_politely(v);
    char gone;
    EXPECT(read(clients, &gone, 1) == 1);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

static long kilobytes(void)
{
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    EXPECT(file != NULL);
    while (found == 0 && fgets(line, sizeof(line), file) != NULL) {
        (void)!sscanf(line, "VmRSS: %ld", &found);
    }
    fclose(file);
    return found;
}

static int descriptors(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    EXPECT(all != NULL);
    while (readdir(all) != NULL) {
        count++;
    }
    closedir(all);
    return count;
}

/* The best of some rounds: what else the machine does only makes them longer. */
static struct figures measure(struct victim *v, const struct address *own)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double began = seconds_now();
        for (int i = 0; i < MESSAGES; i++) {
            receive(v, v->qp);
            EXPECT(victim_post(v, IBV_WR_SEND, own, 8) == 0);
            EXPECT(victim_wait(v) == IBV_WC_SUCCESS);
            EXPECT(victim_wait(v) == IBV_WC_SUCCESS);
        }
        const double took = (seconds_now() - began) / MESSAGES * 1e6;
        best = took < best ? took : best;
    }
    return (struct figures){
        .latency_us = best, .kilobytes = kilobytes(), .descriptors = descriptors()};
}

static void print(const char *when, const struct figures *figures)
{
    printf("\"%s\": {\"latency_us\": %.3f, \"kilobytes\": %ld, \"descriptors\": %d}, ", when,
           figures->latency_us, figures->kilobytes, figures->descriptors);
}

int main(int count, char **arguments)
{
    const int clients = count == 2 ? atoi(arguments[1]) : 0;
    int pair[2];
    if (clients < 1 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) {
        return 2;
    }
    const pid_t maker = fork();
    if (maker == 0) {
        close(pair[0]);
        make_clients(pair[1]);
    }
    close(pair[1]);
    struct victim v;
    victim_open(&v);
    const struct address own = victim_address(&v);
    victim_connect(v.qp, &own, 14, 7);
    for (int i = 0; i < WARMING; i++) {
        serve(&v, pair[0]);
    }
    const struct figures before = measure(&v, &own);
    const double began = seconds_now();
    for (int i = 0; i < clients; i++) {
        serve(&v, pair[0]);
    }
    const double took = seconds_now() - began;
    const struct figures after = measure(&v, &own);
    printf("{");
    print("before", &before);
    print("after", &after);
    printf("\"clients\": %d, \"seconds\": %.1f}\n", clients, took);
    close(pair[0]);
    return 0;
}
