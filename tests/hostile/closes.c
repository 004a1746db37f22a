/* SPDX-License-Identifier: BSD-2-Clause
 *
 * closes - closes all descriptors that are not its own, as daemons do, when its device is open, and
 * opens files then. None of them may get what the NIC writes, and the NIC works on.
 *
 * Usage: closes one|range|from|over|streams
 *
 * one: close() of each number. range: close_range(). from: closefrom(). over: dup2() of a file to
 * each number. streams: the standard streams are closed before the device is opened, and become
 * files by dup2() afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/hostile/victim.h"

#define FIRST STDERR_FILENO + 1
#define LAST  199 /* As far as files are opened. */
#define LOOPS 50

static int files[LAST + 1];

static int open_file(void)
{
    char name[] = "/tmp/nonic-closes-XXXXXX";
    const int fd = mkstemp(name);
    EXPECT(fd >= 0 && unlink(name) == 0);
    return fd;
}

static void close_all(const char *how, const struct victim *v)
{
    const int file = open_file();
    EXPECT(close(-1) == -1 && errno == EBADF);
    if (strcmp(how, "one") == 0) {
        for (int i = FIRST; i <= LAST; i++) {
            close(i);
        }
    } else if (strcmp(how, "range") == 0) {
        EXPECT(close_range(FIRST, ~0u, 0) == 0);
    } else if (strcmp(how, "from") == 0) {
        closefrom(FIRST);
    } else if (strcmp(how, "over") == 0) {
        for (int i = FIRST; i <= LAST; i++) {
            files[i] = dup2(file, i) == i;
            EXPECT(files[i] || errno == EBADF);
        }
        EXPECT(files[v->channel->fd] && files[v->context->async_fd]);
    } else {
        for (int i = STDIN_FILENO; i < STDERR_FILENO; i++) {
            files[i] = dup2(file, i) == i;
            EXPECT(files[i]);
        }
    }
}

/* As many as there are free numbers. */
static void open_all(void)
{
    for (int fd = open_file(); fd >= 0 && fd <= LAST; fd = open_file()) {
        files[fd] = true;
    }
}

/* Through the NIC, to this program itself; an event for each, which wakes the reader. */
static void send(struct victim *v, const struct address *own)
{
    EXPECT(ibv_req_notify_cq(v->cq, 0) == 0);
    EXPECT(victim_post(v, IBV_WR_RDMA_WRITE, own, 64) == 0);
    EXPECT(victim_wait(v) == IBV_WC_SUCCESS);
    usleep(1000);
}

static void expect_untouched(void)
{
    struct stat status;
    for (int i = 0; i <= LAST; i++) {
        EXPECT(!files[i] || (fstat(i, &status) == 0 && S_ISREG(status.st_mode)));
        if (files[i] && status.st_size != 0) {
            fprintf(stderr, "descriptor %d: %ld bytes\n", i, (long)status.st_size);
            _exit(1);
        }
    }
}

/* The channel and the device have lost their descriptors, and know it. */
static void expect_gone(struct victim *v)
{
    struct ibv_async_event event;
    struct ibv_cq *cq;
    void *context;
    EXPECT(ibv_get_cq_event(v->channel, &cq, &context) == -1 && errno == EBADF);
    EXPECT(ibv_get_async_event(v->context, &event) == -1 && errno == EBADF);
}

int main(int count, char **words)
{
    struct victim v;
    EXPECT(count == 2);
    const bool streams = strcmp(words[1], "streams") == 0;
    for (int i = STDIN_FILENO; streams && i < STDERR_FILENO; i++) {
        close(i);
    }
    victim_open(&v);
    const struct address own = victim_address(&v);
    close_all(words[1], &v);
    open_all();
    victim_connect(v.qp, &own, 14, 7);
    for (int i = 0; i < LOOPS; i++) {
        send(&v, &own);
    }
    expect_untouched();
    if (!streams) {
        expect_gone(&v);
    }
    EXPECT(ibv_destroy_qp(v.qp) == 0 && ibv_destroy_cq(v.cq) == 0);
    EXPECT(ibv_destroy_comp_channel(v.channel) == 0 && ibv_dereg_mr(v.mr) == 0);
    EXPECT(ibv_dealloc_pd(v.pd) == 0 && ibv_close_device(v.context) == 0);
    expect_untouched();
    return 0;
}
