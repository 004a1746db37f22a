/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The processes of a point: the initiator and its peers are children of the command, each with a
 * NIC of its own. A socket joins each peer to the initiator, in place of a connection manager.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/connections.h"
#include "transport/common/work.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Resident bytes of this process. */
static double resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;
    if (file != NULL) {
        (void)!fscanf(file, "%*d %ld", &pages);
        fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* The initiator has a core of its own where there are two. */
static void keep_to_core(bool initiator, uint32_t peer)
{
    cpu_set_t allowed, mine;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
        return;
    }
    const uint32_t wanted = initiator ? 0 : 1 + peer % (uint32_t)(CPU_COUNT(&allowed) - 1);
    uint32_t seen = 0;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && seen++ == wanted) {
            CPU_SET(core, &mine);
        }
    }
    sched_setaffinity(0, sizeof(mine), &mine);
}

/* -- Between processes --------------------------------------------------------------------------*/

static bool put(int fd, const void *from, size_t bytes)
{
    for (const char *at = from; bytes > 0;) {
        const ssize_t count = send(fd, at, bytes, MSG_NOSIGNAL);
        if (count <= 0) {
            return false;
        }
        at += count;
        bytes -= (size_t)count;
    }
    return true;
}

static bool get(int fd, void *to, size_t bytes)
{
    for (char *at = to; bytes > 0;) {
        const ssize_t count = recv(fd, at, bytes, 0);
        if (count <= 0) {
            return false;
        }
        at += count;
        bytes -= (size_t)count;
    }
    return true;
}

/* Every stage of a peer ends with whether it was good and, if not, why. */
static bool say(int fd, bool good, const char *error)
{
    put(fd, &good, sizeof(good));
    if (!good) {
        put(fd, error, ERROR_BYTES);
    }
    return good;
}

static bool hear(int fd, char *error)
{
    bool good = false;
    if (!get(fd, &good, sizeof(good)) || (!good && !get(fd, error, ERROR_BYTES))) {
        snprintf(error, ERROR_BYTES, "a peer ended early");
        return false;
    }
    return good;
}

/* The number of connections of peer `peer`: every `peers`-th one is its own. */
static uint32_t share(const struct plan *plan, uint32_t peer)
{
    return plan->qps / plan->peers + (peer < plan->qps % plan->peers);
}

/* The first connection to each peer is made, and used, before the others: so the cost of a peer is
 * not counted as the cost of a connection. */
#define ROUNDS 2u

static uint32_t round_from(uint32_t round)
{
    return round == 0 ? 0 : 1;
}

static uint32_t round_to(uint32_t round, uint32_t count)
{
    return round == 0 ? 1 : count;
}

/* -- A peer -------------------------------------------------------------------------------------*/

static bool peer_check(const struct world *world, const struct plan *plan, uint32_t peer,
                       const uint32_t *posted)
{
    for (uint32_t i = 0; i < world->count; i++) {
        const uint32_t index = i * plan->peers + peer;
        if (!slot_is(world->memory + (size_t)i * plan->bytes, plan->bytes, index,
                     plan->reads ? 0 : posted[i])) {
            return false;
        }
    }
    return true;
}

/* Makes connections [from, to) of a peer: sends its doors and receives the initiator's. */
static bool peer_connect(struct world *world, const struct plan *plan, int fd, uint32_t from,
                         uint32_t to, struct door *doors, char *error)
{
    union ibv_gid gid;
    if (!say(fd, world_make_qps(world, plan, from, to, error), error)) {
        return false;
    }
    for (uint32_t i = from; i < to; i++) {
        doors[i] = world_door(world, i);
    }
    const size_t bytes = (to - from) * sizeof(struct door);
    if (!put(fd, &world->gid, sizeof(world->gid)) || !put(fd, doors + from, bytes) ||
        !get(fd, &gid, sizeof(gid)) || !get(fd, doors + from, bytes)) {
        return false;
    }
    bool good = true;
    for (uint32_t i = from; good && i < to; i++) {
        good = world_connect(world, i, &gid, &doors[i], error);
    }
    return say(fd, good, error);
}

static bool peer_run(const struct plan *plan, uint32_t peer, int fd, char *error)
{
    const uint32_t count = share(plan, peer);
    struct world world;
    uint32_t *posted = calloc(count, sizeof(uint32_t));
    struct door *doors = calloc(count, sizeof(struct door));
    if (posted == NULL || doors == NULL || !world_open(&world, plan, count, error)) {
        return say(fd, false, error);
    }
    for (uint32_t i = 0; i < count; i++) {
        slot_fill(world.memory + (size_t)i * plan->bytes, plan->bytes, i * plan->peers + peer, 0);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint8_t start;
        if (!get(fd, &start, 1) || !peer_connect(&world, plan, fd, round_from(round),
                                                 round_to(round, count), doors, error)) {
            return false;
        }
    }
    /* All is connected. From here on only the NIC works, until the initiator is done. */
    if (!get(fd, posted, count * sizeof(uint32_t))) {
        return false;
    }
    return say(fd, peer_check(&world, plan, peer, posted),
               "a peer's memory does not hold what was written");
}

/* -- The initiator ------------------------------------------------------------------------------*/

/* One peer's part of the exchange: receives its doors, sends ours, and connects. */
static bool connect_peer(struct world *world, const struct plan *plan, uint32_t peer, int fd,
                         uint32_t round, struct door *doors, char *error)
{
    const uint32_t from = round_from(round), count = round_to(round, share(plan, peer)) - from;
    union ibv_gid gid;
    if (!hear(fd, error)) {
        return false;
    }
    if (!get(fd, &gid, sizeof(gid)) || !get(fd, doors, count * sizeof(struct door))) {
        snprintf(error, ERROR_BYTES, "a peer ended early");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = (from + i) * plan->peers + peer;
        if (!world_connect(world, index, &gid, &doors[i], error)) {
            return false;
        }
        doors[i] = world_door(world, index);
    }
    return put(fd, &world->gid, sizeof(world->gid)) && put(fd, doors, count * sizeof(struct door));
}

static bool exchange(struct world *world, const struct plan *plan, const int *fds, uint32_t round,
                     char *error)
{
    for (uint32_t p = 0; p < plan->peers; p++) {
        put(fds[p], "", 1);
    }
    struct door *doors = calloc(plan->qps, sizeof(struct door));
    bool connected = doors != NULL && world_make_qps(world, plan, round == 0 ? 0 : plan->peers,
                                                     round == 0 ? plan->peers : plan->qps, error);
    for (uint32_t p = 0; connected && p < plan->peers; p++) {
        connected = connect_peer(world, plan, p, fds[p], round, doors, error);
    }
    free(doors);
    for (uint32_t p = 0; connected && p < plan->peers; p++) {
        connected = hear(fds[p], error);
    }
    return connected;
}

/* READs: compares what came with what the peers have. WRITEs: the peers say whether all arrived. */
static bool verify(struct world *world, const struct plan *plan, const int *fds,
                   const uint32_t *posted, char *error)
{
    for (uint32_t i = 0; plan->reads && i < plan->qps; i++) {
        if (!slot_is(world->memory + (size_t)i * plan->bytes, plan->bytes, i, 0)) {
            snprintf(error, ERROR_BYTES, "the initiator's memory does not hold what it read");
            return false;
        }
    }
    for (uint32_t p = 0; p < plan->peers; p++) {
        uint32_t counts[256];
        uint32_t filled = 0;
        for (uint32_t i = p; i < plan->qps; i += plan->peers) {
            counts[filled++] = posted[i];
            if (filled == COUNT_OF(counts) || i + plan->peers >= plan->qps) {
                put(fds[p], counts, filled * sizeof(counts[0]));
                filled = 0;
            }
        }
        if (!hear(fds[p], error)) {
            return false;
        }
    }
    return true;
}

static void initiator_run(const struct plan *plan, const int *fds, struct outcome *outcome)
{
    struct world world;
    char *error = outcome->error;
    uint32_t *posted = calloc(plan->qps, sizeof(uint32_t));
    if (posted == NULL || !world_open(&world, plan, plan->qps, error)) {
        return;
    }
    for (uint32_t i = 0; i < plan->qps; i++) {
        slot_fill(world.memory + (size_t)i * plan->bytes, plan->bytes, i, plan->reads ? 1 : 0);
    }
    double begin = now_s();
    if (!exchange(&world, plan, fds, 0, error)) {
        return;
    }
    outcome->setup_s = now_s() - begin;
    if (!load_warm_up(&world, plan, plan->peers, posted, outcome)) {
        return;
    }
    const double before = resident();
    begin = now_s();
    if (!exchange(&world, plan, fds, 1, error)) {
        return;
    }
    outcome->setup_s += now_s() - begin;
    if (!load_run(&world, plan, posted, outcome)) {
        return;
    }
    outcome->ring_bytes =
        plan->foreign ? 0 : (double)send_queue_bytes(plan->ring, sizeof(struct ibv_sge));
    const uint32_t counted = plan->qps - plan->peers;
    outcome->bytes_per_qp =
        counted == 0 ? 0 : (resident() - before) / counted - outcome->ring_bytes;
    verify(&world, plan, fds, posted, error);
}

/* -- One point ----------------------------------------------------------------------------------*/

static void prepare_child(const struct series *series)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (series->batch != NULL) {
        setenv("NONIC_BATCH", series->batch, 1);
    }
}

static pid_t start_peer(const struct series *series, const struct plan *plan, uint32_t peer, int fd)
{
    const pid_t pid = fork();
    if (pid == 0) {
        char error[ERROR_BYTES] = "";
        prepare_child(series);
        keep_to_core(false, peer);
        _exit(!peer_run(plan, peer, fd, error));
    }
    return pid;
}

/* Every process ends with the point, whatever becomes of the point. */
static void end_all(pid_t *pids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
    }
}

void run_point(const struct series *series, const struct plan *plan, struct outcome *outcome)
{
    int ends[PEERS_MAX + 1][2], near[PEERS_MAX];
    pid_t pids[PEERS_MAX + 1] = {0};
    *outcome = (struct outcome){0};
    for (uint32_t i = 0; i <= plan->peers; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[i]) != 0) {
            snprintf(outcome->error, sizeof(outcome->error), "no socket: %s", strerror(errno));
            end_all(pids, plan->peers + 1);
            return;
        }
        if (i < plan->peers) {
            near[i] = ends[i][0];
            pids[i] = start_peer(series, plan, i, ends[i][1]);
            close(ends[i][1]);
        }
    }
    pids[plan->peers] = fork();
    if (pids[plan->peers] == 0) {
        prepare_child(series);
        keep_to_core(true, 0);
        initiator_run(plan, near, outcome);
        put(ends[plan->peers][1], outcome, sizeof(*outcome));
        _exit(0);
    }
    close(ends[plan->peers][1]);
    if (!get(ends[plan->peers][0], outcome, sizeof(*outcome))) {
        snprintf(outcome->error, sizeof(outcome->error), "the initiator ended early");
    }
    end_all(pids, plan->peers + 1);
    for (uint32_t i = 0; i <= plan->peers; i++) {
        close(ends[i][0]);
    }
}
