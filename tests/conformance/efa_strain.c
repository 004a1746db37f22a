/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_strain - programs that ask much of their EFA device, or do to it what few programs do: the
 * device goes on, each request ends once, and peers notice nothing (SRD-08, SRD-10).
 *
 * Usage: efa_strain crowd|handles|order|own|renewed|threads, or where there is UDP,
 *        efa_strain addresses; under `nonic run --nic efa`
 *   crowd      All queue pairs that there may be have requests out, and are destroyed.
 *   handles    The handle goes, of an address at which 12,288 requests wait.
 *   order      The first half of a full send queue ends last.
 *   own        A process sends to itself; its Q_Key changes in between.
 *   renewed    A queue pair is reset and led back while messages for it arrive.
 *   threads    Threads, and handlers of signals between two calls, post to one queue pair.
 *   addresses  Handles to 65,535 addresses.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

#include "tests/conformance/efa_peer.h"

enum {
    QPS_MAX = 250,
    SENDS_MAX = 4096,
    HANDLES_MAX = 65535,
    BYTES = 8,
    PATIENCE_MS = 20000,
    /* Statuses of efa_io_defs.h. */
    OK = 0,
    FLUSHED = 1,
    BAD_QPN = 9,
    UNRESPONSIVE = 13,
};

static struct end end;
static struct target good, bad;
static struct ibv_ah *to_good, *to_bad;

static void start(void)
{
    good = target_start();
    bad = target_start();
    end_open(&end);
    end.qp = end_queue_pair(&end, 0, 7);
    const struct address own = end_address(&end);
    target_order(&good, ORDER_OPEN, 0, NULL);
    target_order(&bad, ORDER_OPEN, 0, NULL);
    target_order(&good, ORDER_HANDLE, 0, &own);
    target_order(&bad, ORDER_HANDLE, 0, &own);
    to_good = end_handle(&end, &good.address.gid);
    to_bad = end_handle(&end, &bad.address.gid);
}

static struct ibv_qp *deep_queue_pair(void)
{
    struct ibv_qp *qp = end_queue_pair_of(&end, 0, SENDS_MAX);
    EXPECT(qp != NULL);
    end_lead(qp, 7);
    return qp;
}

static int post_write(struct ibv_qp *qp, struct ibv_ah *ah, const struct address *to,
                      uint64_t wr_id)
{
    struct end from = end;
    const struct request write = {.opcode = IBV_WR_RDMA_WRITE, .wr_id = wr_id, .bytes = BYTES};
    from.qp = qp;
    return end_post(&from, ah, to, &write);
}

static void expect_status(const struct seen *seen, uint32_t status)
{
    if (!seen->there || seen->vendor_err != status) {
        fprintf(stderr, "there %d, wr_id %lu, vendor %u instead of %u\n", seen->there,
                (unsigned long)seen->wr_id, seen->vendor_err, status);
        _exit(1);
    }
}

/* Both peers serve our first queue pair. */
static void expect_service(void)
{
    for (int i = 0; i < 2; i++) {
        const struct target *to = i == 0 ? &good : &bad;
        EXPECT(post_write(end.qp, i == 0 ? to_good : to_bad, &to->address, 7) == 0);
        const struct seen seen = end_wait(&end, PATIENCE_MS);
        expect_status(&seen, OK);
        EXPECT(seen.wr_id == 7);
    }
    EXPECT(!end_wait(&end, 20).there);
}

/* -- Many queue pairs ---------------------------------------------------------------------------*/

/* Those of every second one have been seen by then. */
static void crowd_once(void)
{
    static struct ibv_qp *qps[QPS_MAX];
    int count = 0;
    while ((qps[count] = end_queue_pair_of(&end, 0, 16)) != NULL) {
        end_lead(qps[count], 7);
        for (uint64_t i = 0; i < 16; i++) {
            EXPECT(post_write(qps[count], i % 2 == 0 ? to_good : to_bad,
                              i % 2 == 0 ? &good.address : &bad.address, i) == 0);
        }
        count++;
        EXPECT(count < QPS_MAX);
    }
    EXPECT(count == QPS_MAX - 1);
    for (int i = 0; i < count; i++) {
        EXPECT(ibv_destroy_qp(qps[i * 7 % count]) == 0);
    }
    for (struct seen seen; (seen = end_wait(&end, 0)).there;) {
        expect_status(&seen, OK); /* It was done before. */
    }
    expect_service();
}

static void crowd(void)
{
    start();
    for (int i = 0; i < 10; i++) {
        crowd_once();
    }
}

/* -- Many requests ------------------------------------------------------------------------------*/

static void handles(void)
{
    enum {
        QPS = 3
    };
    static bool ended[QPS * SENDS_MAX];
    struct ibv_qp *qps[QPS];
    start();
    expect_service();
    target_stop(&bad);
    for (uint64_t i = 0; i < QPS * SENDS_MAX; i++) {
        qps[i / SENDS_MAX] = i % SENDS_MAX == 0 ? deep_queue_pair() : qps[i / SENDS_MAX];
        EXPECT(post_write(qps[i / SENDS_MAX], to_bad, &bad.address, i) == 0);
    }
    EXPECT(post_write(qps[0], to_bad, &bad.address, 0) == ENOMEM);
    EXPECT(ibv_destroy_ah(to_bad) == 0);
    for (int i = 0; i < QPS * SENDS_MAX; i++) {
        const struct seen seen = end_wait(&end, 0);
        EXPECT(seen.there && seen.wr_id < QPS * SENDS_MAX && !ended[seen.wr_id]);
        ended[seen.wr_id] = true;
        expect_status(&seen, FLUSHED);
    }
    target_continue(&bad);
    to_bad = end_handle(&end, &bad.address.gid);
    expect_service();
    for (int i = 0; i < QPS; i++) {
        EXPECT(post_write(qps[i], to_bad, &bad.address, 5) == 0);
        const struct seen seen = end_wait(&end, PATIENCE_MS);
        expect_status(&seen, OK);
    }
}

enum {
    HALF = SENDS_MAX / 2,
    ALL = 4 * HALF,
};

/* Takes completions until `count` have come. Each is another one's. */
static void take(bool *ended, uint32_t count)
{
    while (count > 0) {
        const struct seen seen = end_wait(&end, PATIENCE_MS);
        EXPECT(seen.there && seen.wr_id < ALL && !ended[seen.wr_id]);
        EXPECT(seen.vendor_err == OK || (seen.wr_id < HALF && seen.vendor_err == UNRESPONSIVE));
        ended[seen.wr_id] = true;
        count--;
    }
}

static uint32_t count_ended(const bool *ended)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ALL; i++) {
        count += ended[i];
    }
    return count;
}

/* Half of the slots is taken by requests that wait; the other half is used again and again. */
static void order(void)
{
    static bool ended[ALL];
    int reason;
    start();
    expect_service();
    struct ibv_qp *qp = deep_queue_pair();
    target_stop(&bad);
    for (uint64_t i = 0; i < HALF; i++) {
        EXPECT(post_write(qp, to_bad, &bad.address, i) == 0);
    }
    for (uint64_t i = HALF; i < ALL; i++) {
        while ((reason = post_write(qp, to_good, &good.address, i)) == ENOMEM) {
            take(ended, 1);
        }
        EXPECT(reason == 0);
    }
    take(ended, ALL - HALF - count_ended(ended));
    EXPECT(ended[ALL - 1]);
    target_continue(&bad);
    take(ended, ALL - count_ended(ended));
    expect_service();
}

/* -- To itself ----------------------------------------------------------------------------------*/

static void send_to_itself(struct ibv_ah *ah, uint32_t qkey, uint32_t status)
{
    struct address own = end_address(&end);
    const struct request send = {.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 8192};
    own.qkey = qkey;
    end_fill(&end, qkey);
    end_receive(&end, 2, PEER_BYTES / 2, 8192);
    EXPECT(end_post(&end, ah, &own, &send) == 0);
    for (int i = 0; i < (status == OK ? 2 : 1); i++) {
        const struct seen seen = end_wait(&end, PATIENCE_MS);
        expect_status(&seen, seen.wr_id == 1 ? status : OK);
        EXPECT(seen.wr_id == 1 || seen.bytes == 8192);
    }
    EXPECT((memcmp(end.memory, end.memory + PEER_BYTES / 2, 8192) == 0) == (status == OK));
    EXPECT(!end_wait(&end, 20).there);
}

static void own(void)
{
    start();
    struct ibv_ah *ah = end_handle(&end, &end.gid);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .qkey = PEER_QKEY + 1};
    const struct request read = {
        .opcode = IBV_WR_RDMA_READ, .wr_id = 3, .offset = PEER_BYTES / 4, .bytes = PEER_BYTES / 4};
    struct address to = end_address(&end);
    send_to_itself(ah, PEER_QKEY, OK);
    EXPECT(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_QKEY) == 0);
    send_to_itself(ah, PEER_QKEY, BAD_QPN);
    send_to_itself(ah, PEER_QKEY + 1, OK);
    to.memory -= PEER_BYTES / 4;
    to.qkey = PEER_QKEY + 1;
    EXPECT(end_post(&end, ah, &to, &read) == 0);
    const struct seen seen = end_wait(&end, PATIENCE_MS);
    expect_status(&seen, OK);
    EXPECT(memcmp(end.memory, end.memory + PEER_BYTES / 4, PEER_BYTES / 4) == 0);
    expect_service();
}

enum {
    MESSAGES = 32,
    MESSAGE_BYTES = 8192, /* Two packets. */
    ROUNDS = 100,
    RESETS = 12,
    FEW = 8, /* Receives between two resets. */
};
_Static_assert((RESETS * FEW + MESSAGES) * MESSAGE_BYTES <= PEER_BYTES / 2, "places");

/* In how many places does the message lie, in whole? */
static int count_places(uint8_t message)
{
    static uint8_t whole[MESSAGE_BYTES];
    int count = 0;
    memset(whole, message, sizeof(whole));
    for (int i = 0; i < RESETS * FEW + MESSAGES; i++) {
        count += memcmp(end.memory + PEER_BYTES / 2 + i * MESSAGE_BYTES, whole, MESSAGE_BYTES) == 0;
    }
    return count;
}

static void reset(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    EXPECT(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE) == 0);
    end_lead(end.qp, 7);
}

/* Resets our first queue pair again and again, which has some other receives each time; at last as
 * many as there are messages. */
static void *reset_often(void *unused)
{
    uint32_t place = 0;
    (void)unused;
    for (uint32_t i = 0; i <= RESETS; i++) {
        reset();
        for (const uint32_t last = place + (i < RESETS ? FEW : MESSAGES); place < last; place++) {
            end_receive(&end, 1000, PEER_BYTES / 2 + place * MESSAGE_BYTES, MESSAGE_BYTES);
        }
        usleep(i);
    }
    return NULL;
}

/* Our second queue pair sends to the first one. Returns how many messages succeeded. */
static int renew(struct ibv_qp *sender, struct ibv_ah *ah)
{
    pthread_t resetter;
    struct end from = end;
    from.qp = sender;
    const struct address to = end_address(&end);
    int successes = 0;
    reset(); /* The receives of before are at the same places. */
    memset(end.memory, 0, PEER_BYTES);
    EXPECT(pthread_create(&resetter, NULL, reset_often, NULL) == 0);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const struct request send = {.opcode = IBV_WR_SEND,
                                     .wr_id = 1 + i,
                                     .offset = i * MESSAGE_BYTES,
                                     .bytes = MESSAGE_BYTES};
        memset(end.memory + i * MESSAGE_BYTES, (int)(1 + i), MESSAGE_BYTES);
        EXPECT(end_post(&from, ah, &to, &send) == 0);
    }
    for (int left = MESSAGES; left > 0;) {
        const struct seen seen = end_wait(&end, PATIENCE_MS);
        EXPECT(seen.there);
        if (seen.wr_id <= MESSAGES) {
            left--;
            successes += seen.vendor_err == OK;
            EXPECT(seen.vendor_err == OK || seen.vendor_err == BAD_QPN);
            /* One that failed may have come in whole, and then its receive was reset. */
            const int places = count_places((uint8_t)seen.wr_id);
            EXPECT(seen.vendor_err == OK ? places == 1 : places <= 1);
        }
    }
    EXPECT(pthread_join(resetter, NULL) == 0);
    while (end_wait(&end, 0).there) { /* Receives. */
    }
    return successes;
}

static void renewed(void)
{
    int successes = 0;
    start();
    struct ibv_ah *ah = end_handle(&end, &end.gid);
    struct ibv_qp *sender = end_queue_pair(&end, 0, 7);
    for (int i = 0; i < ROUNDS; i++) {
        successes += renew(sender, ah);
    }
    EXPECT(successes > 0 && successes < ROUNDS * MESSAGES);
    expect_service();
}

/* -- Threads and signals ------------------------------------------------------------------------*/

enum {
    THREADS = 4,
    EACH = 1000,
    FROM_HANDLER = 200,
};

static struct ibv_qp *shared;
static volatile sig_atomic_t between_calls;
static atomic_uint from_handler;

static void *post_each(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < EACH; i++) {
        int reason;
        while ((reason = post_write(shared, to_good, &good.address, i)) == ENOMEM) {
            sched_yield();
        }
        EXPECT(reason == 0);
    }
    return NULL;
}

/* A handler may not post in the middle of a call that does, as with other devices: the lock of the
 * queue pair is taken. */
static void post_one(int signal)
{
    (void)signal;
    if (between_calls && from_handler < FROM_HANDLER &&
        post_write(shared, to_good, &good.address, EACH) == 0) {
        from_handler++;
    }
}

static void threads(void)
{
    pthread_t ids[THREADS];
    sigset_t alarms;
    start();
    shared = deep_queue_pair();
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    EXPECT(pthread_sigmask(SIG_BLOCK, &alarms, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&ids[i], NULL, post_each, NULL) == 0);
    }
    EXPECT(pthread_sigmask(SIG_UNBLOCK, &alarms, NULL) == 0);
    EXPECT(signal(SIGALRM, post_one) != SIG_ERR);
    const struct itimerval often = {{.tv_usec = 500}, {.tv_usec = 500}};
    EXPECT(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (uint32_t done = 0; done < THREADS * EACH + from_handler || from_handler < FROM_HANDLER;) {
        const struct seen seen = end_wait(&end, 0);
        EXPECT(!seen.there || seen.vendor_err == OK);
        done += seen.there;
        between_calls = 1;
        for (volatile int i = 0; i < (seen.there ? 0 : 1000); i++) {
        }
        between_calls = 0;
    }
    const struct itimerval never = {0};
    EXPECT(setitimer(ITIMER_REAL, &never, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_join(ids[i], NULL) == 0);
    }
    expect_service();
}

/* -- Many addresses -----------------------------------------------------------------------------*/

static struct ibv_ah *handle_to(uint32_t number)
{
    struct ibv_ah_attr attr = {.is_global = 1,
                               .port_num = 1,
                               .grh.dgid.raw = {[10] = 0xff,
                                                0xff,
                                                127,
                                                (uint8_t)(100 + (number >> 16)),
                                                (uint8_t)(number >> 8),
                                                (uint8_t)number}};
    return ibv_create_ah(end.pd, &attr);
}

static void addresses(void)
{
    static struct ibv_ah *to[HANDLES_MAX];
    uint32_t count = 0;
    start();
    while ((to[count] = handle_to(count)) != NULL) {
        count++;
        EXPECT(count < HANDLES_MAX);
    }
    const bool alike = memcmp(&good.address.gid, &bad.address.gid, sizeof(good.address.gid)) == 0;
    EXPECT(errno == ENOMEM && count + (alike ? 1 : 2) == HANDLES_MAX); /* Our peers have some. */
    EXPECT(ibv_destroy_ah(end_handle(&end, &good.address.gid)) == 0);  /* It is no other address. */
    EXPECT(ibv_destroy_ah(to[100]) == 0);
    EXPECT((to[100] = handle_to(HANDLES_MAX)) != NULL);
    EXPECT(handle_to(100) == NULL && errno == ENOMEM);
    expect_service();
    while (count > 0) {
        EXPECT(ibv_destroy_ah(to[--count]) == 0);
    }
    expect_service();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"crowd", crowd},     {"handles", handles}, {"order", order},        {"own", own},
                 {"renewed", renewed}, {"threads", threads}, {"addresses", addresses}};
    for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            printf("%s: ok\n", argv[1]);
            return 0;
        }
    }
    return 2;
}
