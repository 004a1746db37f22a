/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exit_in_handler - a program whose signal handler calls exit() whatever the signal interrupts, as
 * many do on SIGTERM. Each of COUNT runs of itself takes the signal at another moment, and has to
 * end, although what it was in the middle of never goes on.
 *
 * Usage: exit_in_handler cm|verbs|threads COUNT
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/hostile/victim.h"

#define STATUS     3
#define PATIENCE_S 30

static void on_alarm(int signal)
{
    (void)signal;
    exit(STATUS);
}

static void arm(unsigned int seed)
{
    srand(seed);
    const struct itimerval soon = {.it_value = {.tv_usec = 20000 + rand() % 30000}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &soon, NULL);
}

/* Debian's librdmacm, without its headers. */
struct cm_library {
    void *(*create_channel)(void);
    int (*create_id)(void *channel, void **id, void *context, int port_space);
    int (*bind_address)(void *id, struct sockaddr *address);
    int (*listen)(void *id, int backlog);
    int (*destroy_id)(void *id);
};

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    EXPECT(symbol != NULL);
    return symbol;
}

static void use_cm(unsigned int seed)
{
    void *library = dlopen("librdmacm.so.1", RTLD_NOW);
    EXPECT(library != NULL);
    struct cm_library cm;
    *(void **)&cm.create_channel = find(library, "rdma_create_event_channel");
    *(void **)&cm.create_id = find(library, "rdma_create_id");
    *(void **)&cm.bind_address = find(library, "rdma_bind_addr");
    *(void **)&cm.listen = find(library, "rdma_listen");
    *(void **)&cm.destroy_id = find(library, "rdma_destroy_id");
    void *channel = cm.create_channel();
    EXPECT(channel != NULL);
    arm(seed);
    for (;;) {
        void *id;
        struct sockaddr_in any = {.sin_family = AF_INET};
        EXPECT(cm.create_id(channel, &id, NULL, 0x106) == 0);
        EXPECT(cm.bind_address(id, (struct sockaddr *)&any) == 0);
        EXPECT(cm.listen(id, 1) == 0);
        EXPECT(cm.destroy_id(id) == 0);
    }
}

static void use_verbs(unsigned int seed)
{
    struct victim v;
    victim_open(&v);
    const struct address self = victim_address(&v);
    victim_connect(v.qp, &self, 14, 7);
    arm(seed);
    for (int i = 0;; i++) {
        EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &self, 64) == 0);
        EXPECT(victim_wait(&v) == IBV_WC_SUCCESS);
        if (i % 64 == 0) {
            struct ibv_qp *qp = victim_create_qp(&v);
            struct ibv_mr *mr = ibv_reg_mr(v.pd, v.memory, 64, VICTIM_ACCESS);
            EXPECT(qp != NULL && mr != NULL);
            EXPECT(ibv_req_notify_cq(v.cq, 0) == 0);
            EXPECT(ibv_dereg_mr(mr) == 0);
            EXPECT(ibv_destroy_qp(qp) == 0);
        }
    }
}

static struct victim of_threads;

static void *post_for_ever(void *unused)
{
    (void)unused;
    const struct address self = victim_address(&of_threads);
    for (;;) {
        EXPECT(victim_post(&of_threads, IBV_WR_RDMA_WRITE, &self, 64) == 0);
        EXPECT(victim_wait(&of_threads) == IBV_WC_SUCCESS);
    }
    return NULL;
}

/* Another thread is inside most of the time, and goes on. */
static void use_threads(unsigned int seed)
{
    pthread_t thread;
    victim_open(&of_threads);
    const struct address self = victim_address(&of_threads);
    victim_connect(of_threads.qp, &self, 14, 7);
    EXPECT(pthread_create(&thread, NULL, post_for_ever, NULL) == 0);
    arm(seed);
    for (;;) {
        struct ibv_mr *mr = ibv_reg_mr(of_threads.pd, of_threads.memory, 64, VICTIM_ACCESS);
        EXPECT(mr != NULL && ibv_dereg_mr(mr) == 0);
    }
}

/* False: it did not end as it should. */
static bool run_one(char *self, char *mode, int seed, double *longest)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", seed);
    char *arguments[] = {self, mode, "seed", number, NULL};
    const double began = seconds_now();
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        execv(self, arguments);
        _exit(126);
    }
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (seconds_now() - began > PATIENCE_S) {
            printf("run %d did not end within %d s\n", seed, PATIENCE_S);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return false;
        }
        usleep(1000);
    }
    const double took = seconds_now() - began;
    *longest = took > *longest ? took : *longest;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS) {
        printf("run %d ended with status 0x%x\n", seed, status);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 3);
    if (argc == 4) {
        const unsigned int seed = (unsigned int)atoi(argv[3]);
        void (*const use)(unsigned int) = strcmp(argv[1], "cm") == 0      ? use_cm
                                          : strcmp(argv[1], "verbs") == 0 ? use_verbs
                                                                          : use_threads;
        use(seed);
        return 1;
    }
    double longest = 0;
    int bad = 0;
    const int count = atoi(argv[2]);
    for (int i = 0; i < count && bad < 3; i++) {
        bad += !run_one(argv[0], argv[1], i, &longest);
    }
    printf("%d of %d runs went wrong, the longest of the others took %.2f s\n", bad, count,
           longest);
    return bad > 0;
}
