/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fork_child - programs that fork without exec while they have a device open.
 *
 * Usage: fork_child ghost|anew|inherited
 *   ghost      The parent ends. Nothing by which others find or reach it stays with its child.
 *   anew       The child opens the device itself, and talks with its parent.
 *   inherited  Children do to the objects that they inherited what exit handlers do, and end by
 *              exit(); their parent's traffic and memory are as before.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/hostile/victim.h"

#define PATIENCE_S 20
#define CHILDREN   20
#define GROUPS     3

/* -- ghost --------------------------------------------------------------------------------------*/

/* Whether a line of the file has the text. */
static bool has_line(const char *path, const char *text)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen(path, "re");
    EXPECT(file != NULL);
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        found = strstr(line, text) != NULL;
    }
    fclose(file);
    return found;
}

/* How /proc/net says it: names of sockets, an IPv4 address and port. */
static bool is_there(const union ibv_gid *gid, pid_t pid)
{
    char name[64] = "@nonic/", stat_name[64], udp[32];
    for (int i = 0; i < 16; i++) {
        sprintf(name + strlen(name), "%02x", gid->raw[i]);
    }
    snprintf(stat_name, sizeof(stat_name), "@nonic-stat/%d\n", pid);
    snprintf(udp, sizeof(udp), "%02X%02X%02X%02X:12B7", gid->raw[15], gid->raw[14], gid->raw[13],
             gid->raw[12]);
    return has_line("/proc/net/unix", name) || has_line("/proc/net/unix", stat_name) ||
           has_line("/proc/net/udp", udp);
}

/* Sockets and epolls that this process has; none of them is its own. */
static int count_inherited(void)
{
    int count = 0;
    const struct dirent *entry;
    DIR *directory = opendir("/proc/self/fd");
    EXPECT(directory != NULL);
    while ((entry = readdir(directory)) != NULL) {
        char to[64] = "";
        const ssize_t bytes = readlinkat(dirfd(directory), entry->d_name, to, sizeof(to) - 1);
        if (bytes > 0 && atoi(entry->d_name) > 2) {
            to[bytes] = '\0';
            count += strncmp(to, "socket:", 7) == 0 || strcmp(to, "anon_inode:[eventpoll]") == 0;
        }
    }
    closedir(directory);
    return count;
}

static void haunt(const union ibv_gid *gid, pid_t parent, int life)
{
    char byte;
    EXPECT(read(life, &byte, 1) == 0); /* It is gone. */
    EXPECT(count_inherited() == 0);
    EXPECT(!has_line("/proc/self/maps", "memfd:nonic"));
    const double began = seconds_now();
    while (is_there(gid, parent)) {
        EXPECT(seconds_now() - began < PATIENCE_S);
        usleep(10000);
    }
}

static int ghost(void)
{
    struct victim v;
    int life[2], verdict[2];
    EXPECT(pipe(life) == 0 && pipe(verdict) == 0);
    const pid_t parent = fork();
    EXPECT(parent >= 0);
    if (parent == 0) {
        victim_open(&v);
        const struct address self = victim_address(&v);
        victim_connect(v.qp, &self, 14, 7);
        EXPECT(is_there(&self.gid, getpid()));
        const pid_t own = getpid();
        const pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            close(life[1]);
            haunt(&self.gid, own, life[0]);
            EXPECT(write(verdict[1], "", 1) == 1);
        }
        _exit(0);
    }
    close(life[1]);
    close(verdict[1]);
    char byte;
    EXPECT(waitpid(parent, NULL, 0) == parent);
    return read(verdict[0], &byte, 1) == 1 ? 0 : 1; /* Its end without a word is bad. */
}

/* -- anew ---------------------------------------------------------------------------------------*/

/* One side of a pingpong of WRITEs with another process. */
static void play(struct victim *v, int socket, bool first)
{
    struct address peer;
    const struct address own = victim_address(v);
    EXPECT(write(socket, &own, sizeof(own)) == (ssize_t)sizeof(own));
    EXPECT(read(socket, &peer, sizeof(peer)) == (ssize_t)sizeof(peer));
    victim_connect(v->qp, &peer, 14, 7);
    char ready = 'r';
    EXPECT(write(socket, &ready, 1) == 1 && read(socket, &ready, 1) == 1);
    /* Odd numbers go one way, even ones the other. */
    volatile char *turn = v->memory;
    for (char i = first ? 1 : 2; i < 100; i = (char)(i + 2)) {
        const double began = seconds_now();
        struct ibv_wc wc;
        while (*turn != i - 1) {
            EXPECT(seconds_now() - began < PATIENCE_S);
            EXPECT(ibv_poll_cq(v->cq, 1, &wc) == 0);
        }
        *turn = i;
        EXPECT(victim_post(v, IBV_WR_RDMA_WRITE, &peer, 8) == 0);
        EXPECT(victim_wait(v) == IBV_WC_SUCCESS);
    }
    EXPECT(write(socket, &ready, 1) == 1 && read(socket, &ready, 1) == 1);
}

static int anew(void)
{
    struct victim v, other;
    int sockets[2], status;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    victim_open(&v);
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        victim_open(&other);
    }
    play(child == 0 ? &other : &v, sockets[child == 0], child == 0);
    if (child == 0) {
        exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

/* -- inherited ----------------------------------------------------------------------------------*/

static struct victim ours;
static struct ibv_qp *member; /* Attached to groups. */
static volatile bool done;

static union ibv_gid group_of(uint8_t number)
{
    return (union ibv_gid){
        .raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = number}};
}

/* Which of several are left first matters. */
static void join_groups(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = ours.cq,
        .recv_cq = ours.cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    EXPECT((member = ibv_create_qp(ours.pd, &init)) != NULL);
    for (uint8_t i = 0; i < GROUPS; i++) {
        const union ibv_gid group = group_of(i);
        EXPECT(ibv_attach_mcast(member, &group, 0) == 0);
    }
}

static void leave_groups(void)
{
    for (uint8_t i = 0; i < GROUPS; i++) {
        const union ibv_gid group = group_of(i);
        (void)ibv_detach_mcast(member, &group, 0);
    }
    (void)ibv_destroy_qp(member);
}

static void *traffic(void *unused)
{
    (void)unused;
    const struct address self = victim_address(&ours);
    while (!done) {
        EXPECT(victim_post(&ours, IBV_WR_RDMA_READ, &self, VICTIM_BYTES) == 0);
        EXPECT(victim_wait(&ours) == IBV_WC_SUCCESS);
    }
    return NULL;
}

/* The calls of programs' exit handlers, and a few more. */
static void clean_up(void)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    const struct address self = victim_address(&ours);
    (void)victim_post(&ours, IBV_WR_RDMA_WRITE, &self, 8);
    (void)ibv_modify_qp(ours.qp, &error, IBV_QP_STATE);
    leave_groups();
    (void)ibv_dereg_mr(ours.mr);
    (void)ibv_destroy_qp(ours.qp);
    (void)ibv_destroy_cq(ours.cq);
    (void)ibv_destroy_comp_channel(ours.channel);
    (void)ibv_dealloc_pd(ours.pd);
    (void)ibv_close_device(ours.context);
}

/* An event that the parent has not taken, which a child may not take either. */
static void leave_event(void)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_recv_wr *bad, wr = {0};
    EXPECT(ibv_req_notify_cq(ours.cq, 0) == 0);
    EXPECT(ibv_post_recv(ours.qp, &wr, &bad) == 0);
    EXPECT(ibv_modify_qp(ours.qp, &error, IBV_QP_STATE) == 0);
}

static void fork_and_clean_up(void)
{
    int status;
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            clean_up();
            exit(0);
        }
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    }
}

static int inherited(void)
{
    pthread_t thread;
    victim_open(&ours);
    const struct address self = victim_address(&ours);
    victim_connect(ours.qp, &self, 14, 7);
    join_groups();
    EXPECT(pthread_create(&thread, NULL, traffic, NULL) == 0);
    fork_and_clean_up();
    done = true;
    EXPECT(pthread_join(thread, NULL) == 0);
    leave_event();
    fork_and_clean_up();
    struct ibv_cq *cq;
    void *context;
    EXPECT(ibv_get_cq_event(ours.channel, &cq, &context) == 0 && cq == ours.cq);
    return 0;
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    if (strcmp(argv[1], "ghost") == 0) {
        return ghost();
    }
    if (strcmp(argv[1], "anew") == 0) {
        return anew();
    }
    EXPECT(strcmp(argv[1], "inherited") == 0);
    return inherited();
}
