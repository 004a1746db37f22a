/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The end of a process of this machine, however it came about, is heard of at once by all
 *         that it was connected with, or was about to be.
 * Method  The peer is this program again, as another process that stops at a named point of its
 *         connection and is killed there. Retries alone would tell after a minute: longer than
 *         the test's patience.
 */
#include "tests/api/cm_program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONSUMER 28
#define REASON   "no room"

struct peer {
    pid_t pid;
    int words; /* The peer's words: its port, or that it has come to the point. */
};

/* -- The peer -----------------------------------------------------------------------------------*/

static void say(int words, uint16_t word)
{
    assert_int_equal(write(words, &word, sizeof(word)), sizeof(word));
}

/* The address of a queue pair, which each side tells the other. */
struct address {
    union ibv_gid gid;
    uint32_t number;
};

/* Twice as many receives: an ACK's credits are rounded down, and hold back nothing. */
#define MESSAGES 100
#define RECEIVES (2 * MESSAGES)

static struct ibv_qp *create_qp(struct api *api, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = MESSAGES,
                                            .max_recv_wr = RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(api->pd, &init);
    assert_non_null(qp);
    return qp;
}

/* An RC queue pair to that one. */
static void lead(struct ibv_qp *qp, const struct address *to)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = to->number,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = to->gid, .hop_limit = 1}}};
    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7};
    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                       IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static struct address address_of(const struct api *api, const struct ibv_qp *qp)
{
    return (struct address){api->gid, qp->qp_num};
}

static bool has_ended(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *stat = fopen(path, "r");
    const bool ended =
        stat == NULL || fgets(text, sizeof(text), stat) == NULL || strstr(text, ") Z ") != NULL;
    if (stat != NULL) {
        fclose(stat);
    }
    return ended;
}

/* Another process lets the parent go on. All that this one has sent, and its end, are there by
 * then. */
static void stop_parent_until_we_end(void)
{
    const pid_t parent = getppid(), self = getpid();
    assert_int_equal(kill(parent, SIGSTOP), 0);
    if (fork() == 0) {
        while (!has_ended(self)) {
            usleep(1000);
        }
        usleep(100000);
        kill(parent, SIGCONT);
        _exit(0);
    }
}

/* A client that is established stops its parent, sends messages, and dies. */
static void send_and_die(int words)
{
    void *state;
    struct address to;
    assert_int_equal(api_open(&state), 0);
    struct api *api = state;
    struct ibv_cq *cq = ibv_create_cq(api->context, MESSAGES, NULL, NULL, 0);
    struct ibv_qp *qp = create_qp(api, cq);
    const struct address from = address_of(api, qp);
    assert_int_equal(write(words, &from, sizeof(from)), sizeof(from));
    assert_int_equal(read(STDIN_FILENO, &to, sizeof(to)), sizeof(to));
    lead(qp, &to);
    stop_parent_until_we_end();
    for (int i = 0; i < MESSAGES; i++) {
        assert_int_equal(api_post(qp, IBV_WR_SEND, api_sge(api->mrs[0], 0, 64), 0, 0), 0);
    }
    struct ibv_wc wc;
    for (int i = 0; i < 30; i++) { /* All of it leaves. */
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
        usleep(1000);
    }
    kill(getpid(), SIGKILL);
}

/* Asks, and goes on until it is at the point. */
static void be_client(const char *point, uint16_t port, int words)
{
    const int fd = open_device(0);
    const uint32_t id = routed(fd, RDMA_PS_TCP, port);
    assert_int_equal(connect_id(fd, id, 0), 0);
    if (strcmp(point, "asked") != 0) {
        expect(fd, RDMA_EVENT_CONNECT_RESPONSE);
    }
    if (strcmp(point, "established") == 0) {
        assert_int_equal(accept_id(fd, id, 0x22, false), 0);
    }
    say(words, 1);
    if (getenv("SEND_AND_DIE") != NULL) {
        send_and_die(words);
    }
}

/* Stops its parent, refuses the connection, and ends. */
static void refuse_and_end(int fd)
{
    struct rdma_ucm_reject reject = {.id = expect(fd, RDMA_EVENT_CONNECT_REQUEST).id,
                                     .private_data_len = sizeof(REASON),
                                     .reason = CONSUMER};
    memcpy(reject.private_data, REASON, sizeof(REASON));
    stop_parent_until_we_end();
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0), 0);
    exit(0);
}

static void be_server(const char *point, int words)
{
    uint32_t listener;
    const int fd = open_device(0);
    say(words, listen_somewhere(fd, &listener, RDMA_PS_TCP));
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    if (strcmp(point, "refused") == 0) {
        refuse_and_end(fd);
    }
    if (strcmp(point, "asked") != 0) {
        const uint32_t id = expect(fd, RDMA_EVENT_CONNECT_REQUEST).id;
        assert_int_equal(accept_id(fd, id, 0x33, true), 0);
    }
    if (strcmp(point, "established") == 0) {
        expect(fd, RDMA_EVENT_ESTABLISHED);
    }
    say(words, 1);
}

static int be_peer(char **arguments)
{
    const int words = atoi(arguments[4]);
    if (strcmp(arguments[1], "client") == 0) {
        be_client(arguments[2], (uint16_t)atoi(arguments[3]), words);
    } else {
        be_server(arguments[2], words);
    }
    char order = 0;
    if (read(STDIN_FILENO, &order, 1) == 1) {
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    }
    return 1;
}

/* -- Its life -----------------------------------------------------------------------------------*/

static int order_pipe[2];

static struct peer start(const char *role, const char *point, uint16_t port)
{
    int ends[2];
    char number[16], fd[16];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(order_pipe), 0);
    snprintf(number, sizeof(number), "%u", port);
    snprintf(fd, sizeof(fd), "%d", ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(order_pipe[0], STDIN_FILENO);
        close(order_pipe[0]);
        close(order_pipe[1]);
        execl("/proc/self/exe", "cm_killed_test", role, point, number, fd, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    close(order_pipe[0]);
    return (struct peer){.pid = pid, .words = ends[0]};
}

static uint16_t hear(const struct peer *peer)
{
    uint16_t word = 0;
    assert_int_equal(read(peer->words, &word, sizeof(word)), sizeof(word));
    return word;
}

static void bury(const struct peer *peer)
{
    kill(peer->pid, SIGKILL);
    assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
    close(peer->words);
    close(order_pipe[1]);
}

/* -- Clients that are killed --------------------------------------------------------------------*/

/* The id that came with the request of a client that is at `point`. */
static uint32_t serve(int fd, const char *point, struct peer *peer)
{
    uint32_t listener;
    *peer = start("client", point, listen_somewhere(fd, &listener, RDMA_PS_TCP));
    const uint32_t id = expect(fd, RDMA_EVENT_CONNECT_REQUEST).id;
    if (strcmp(point, "asked") != 0) {
        assert_int_equal(accept_id(fd, id, 0x33, true), 0);
    }
    if (strcmp(point, "established") == 0) {
        expect(fd, RDMA_EVENT_ESTABLISHED);
    }
    assert_int_equal(hear(peer), 1);
    return id;
}

static void test_client_is_killed(void **state)
{
    (void)state;
    static const char *const points[] = {"replied", "established"};
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        struct peer peer;
        const int fd = open_device(0);
        const uint32_t id = serve(fd, points[i], &peer);
        bury(&peer);
        assert_int_equal(expect(fd, RDMA_EVENT_DISCONNECTED).id, id);
        assert_int_equal(disconnect_id(fd, id), 0);
        close(fd);
    }
}

/* Messages of a client that is killed come before its end: a program that disconnects then has all
 * of them. */
static void test_words_come_before_the_end(void **state)
{
    struct api *api = *state;
    struct peer peer;
    struct address from;
    const int fd = open_device(0);
    struct ibv_cq *cq = ibv_create_cq(api->context, RECEIVES, NULL, NULL, 0);
    struct ibv_qp *qp = create_qp(api, cq);
    const struct address here = address_of(api, qp);
    setenv("SEND_AND_DIE", "1", 1);
    const uint32_t id = serve(fd, "established", &peer);
    unsetenv("SEND_AND_DIE");
    assert_int_equal(read(peer.words, &from, sizeof(from)), sizeof(from));
    lead(qp, &from);
    for (int i = 0; i < RECEIVES; i++) {
        assert_int_equal(api_post_receive(qp, api_sge(api->mrs[0], 0, 64)), 0);
    }
    assert_int_equal(write(order_pipe[1], &here, sizeof(here)), sizeof(here));
    assert_int_equal(expect(fd, RDMA_EVENT_DISCONNECTED).id, id);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    for (int i = 0; i < MESSAGES; i++) {
        api_expect(cq, IBV_WC_SUCCESS);
    }
    bury(&peer);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    close(fd);
}

/* The program has not accepted, and is not told: it finds nobody to accept. */
static void test_client_that_asked_is_killed(void **state)
{
    (void)state;
    struct peer peer;
    const int fd = open_device(0);
    const uint32_t id = serve(fd, "asked", &peer);
    bury(&peer);
    usleep(200000);
    assert_int_equal(accept_id(fd, id, 0x33, true), EINVAL);
    close(fd);
}

/* -- Servers that are killed --------------------------------------------------------------------*/

static uint32_t ask(int fd, const char *point, struct peer *peer)
{
    *peer = start("server", point, 0);
    const uint32_t id = routed(fd, RDMA_PS_TCP, hear(peer));
    assert_int_equal(connect_id(fd, id, 0), 0);
    if (strcmp(point, "asked") != 0) {
        expect(fd, RDMA_EVENT_CONNECT_RESPONSE);
    }
    if (strcmp(point, "established") == 0) {
        assert_int_equal(accept_id(fd, id, 0x22, false), 0);
    }
    assert_int_equal(hear(peer), 1);
    return id;
}

static void test_server_is_killed(void **state)
{
    (void)state;
    static const struct {
        const char *point;
        enum rdma_event_kind event;
        int status;
    } cases[] = {{"asked", RDMA_EVENT_REJECTED, CONSUMER},
                 {"replied", RDMA_EVENT_REJECTED, CONSUMER},
                 {"established", RDMA_EVENT_DISCONNECTED, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct peer peer;
        const int fd = open_device(0);
        const uint32_t id = ask(fd, cases[i].point, &peer);
        bury(&peer);
        const struct rdma_ucm_event_resp event = expect(fd, cases[i].event);
        assert_int_equal(event.id, id);
        assert_int_equal(event.status, cases[i].status);
        close(fd);
    }
}

/* The refusal of a server that ends behind it comes before the end: it has the server's reason. The
 * server's ring is as new as its end. */
static void test_refusal_comes_before_the_end(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const struct peer peer = start("server", "refused", 0);
    const uint32_t id = routed(fd, RDMA_PS_TCP, hear(&peer));
    assert_int_equal(connect_id(fd, id, 0), 0);
    const struct rdma_ucm_event_resp event = expect(fd, RDMA_EVENT_REJECTED);
    assert_int_equal(event.id, id);
    assert_int_equal(event.status, CONSUMER);
    assert_memory_equal(event.param.conn.private_data, REASON, sizeof(REASON));
    bury(&peer);
    close(fd);
}

/* A process that is stopped lives, and may die of it. */
static void test_stopped(void **state)
{
    (void)state;
    struct peer peer;
    const int fd = open_device(0);
    ask(fd, "established", &peer);
    assert_int_equal(kill(peer.pid, SIGSTOP), 0);
    usleep(300000);
    assert_false(readable(fd));
    bury(&peer);
    expect(fd, RDMA_EVENT_DISCONNECTED);
    close(fd);
}

/* Another program in its place knows of no connection. */
static void test_another_program(void **state)
{
    (void)state;
    struct peer peer;
    const int fd = open_device(0);
    ask(fd, "established", &peer);
    assert_int_equal(write(order_pipe[1], "x", 1), 1);
    expect(fd, RDMA_EVENT_DISCONNECTED);
    bury(&peer);
    close(fd);
}

int main(int count, char **arguments)
{
    if (count == 5) {
        return be_peer(arguments);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client_is_killed),
        cmocka_unit_test(test_client_that_asked_is_killed),
        cmocka_unit_test_setup_teardown(test_words_come_before_the_end, api_open, api_close),
        cmocka_unit_test(test_server_is_killed),
        cmocka_unit_test(test_refusal_comes_before_the_end),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_another_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
