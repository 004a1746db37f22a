/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Management datagrams come to an address that processes share: bytes that a peer changes
 *         meanwhile are not judged, and requests for ports that nobody serves do not keep others
 *         off. No thread is cancelled while it is inside. A process that takes the name of a dead
 *         one is not taken for that.
 * Method  A live NIC without its thread at a shared loopback address; arrivals are made by hand,
 *         and time is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_receive.h"
#include "drivers/system/clock.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/presence.h"

#define PORT        7000
#define MS          UINT64_C(1000000)
#define PATIENCE_MS 10000

/* A port space that no program has: tests may run side by side. */
static uint16_t space;

static struct live *open_live(void)
{
    static char address[32];
    static int count;
    char error[256];
    snprintf(address, sizeof(address), "127.254.%d.%d", getpid() % 250, 1 + count++ % 250);
    const struct live_config config = {.wire = LIVE_WIRE_UDP, .device = address, .batch = 1};
    struct live *live = live_claim(&config, error, sizeof(error));
    if (live == NULL) {
        fail_msg("%s", error);
    }
    assert_true(live_is_shared(live));
    live_lock(live); /* As of every call of these functions. */
    live_now(live);
    return live;
}

static void shut(struct live *live)
{
    live_unlock(live);
    live_close(live);
}

static struct gid sender_of(uint32_t number)
{
    return (struct gid){.bytes = {[10] = 0xff,
                                  [11] = 0xff,
                                  [12] = 127,
                                  [13] = 253,
                                  [14] = (uint8_t)(number >> 8),
                                  [15] = (uint8_t)number}};
}

/* Makes a new REQ for the port. */
static void make_request(const struct live *live, uint16_t port, uint8_t mad[CM_MAD_BYTES])
{
    static uint32_t count;
    count++;
    struct cm_message request = {.attribute = CM_REQ, .local_id = count, .transaction_id = count};
    request.req = (struct cm_req){
        .service_id = cm_service_id(space, port), .qpn = 77, .path_mtu = 3, .pkey = 0xffff};
    struct cm_addresses addresses = {.source_port = 1000};
    const struct gid sender = sender_of(0);
    memcpy(addresses.source, sender.bytes, 16);
    memcpy(addresses.destination, live->addresses.entries[0].gid.bytes, 16);
    cm_addresses_encode(&addresses, request.private_data);
    cm_encode(&request, mad);
}

static void arrive(struct live *live, const struct gid *sender, const uint8_t *mad)
{
    const struct roce_packet packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = CM_QPN,
                                       .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN}};
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    const struct nic_frame frame = {
        .headers = headers,
        .payload = mad,
        .headers_bytes = (uint32_t)roce_encode_headers(&packet, headers),
        .payload_bytes = CM_MAD_BYTES,
        .source = *sender,
        .destination = live->addresses.entries[0].gid,
    };
    live_arrival(live, &frame);
}

static void request_from(struct live *live, uint32_t sender, uint16_t port)
{
    uint8_t mad[CM_MAD_BYTES];
    const struct gid gid = sender_of(sender);
    make_request(live, port, mad);
    arrive(live, &gid, mad);
}

static uint32_t length(const struct list *head)
{
    uint32_t count = 0;
    for (const struct list *node = head->next; node != head; node = node->next) {
        count++;
    }
    return count;
}

/* Until no owner of a port is looked for any more. */
static void let_time_pass(struct live *live)
{
    for (int i = 0; live->manager.parked_count > 0; i++) {
        assert_true(i < 1000);
        live->now = instant_after(live->now, 10 * MS);
        live_cm_on_time(live);
    }
    assert_true(list_empty(&live->manager.lookups));
    assert_true(list_empty(&live->manager.services.questions));
}

/* -- Memory of a peer ---------------------------------------------------------------------------*/

static uint8_t *pages;
static size_t page;
static uint8_t *changing; /* A byte of the first page. */

/* The second page is read for the first time: now the peer changes bytes in the first page. */
static void on_fault(int signal)
{
    (void)signal;
    mprotect(pages + page, page, PROT_READ | PROT_WRITE);
    *changing ^= 0x40;
}

/* A MAD lies across two pages, so that bytes which have been read change in the middle of reading.
 * It is one message or the other, and both are judged; there is no third one. */
static void test_a_peer_that_writes_while_we_read(void **state)
{
    (void)state;
    page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t before = 4; before < CM_MAD_BYTES; before += 4) {
        for (size_t at = 0; at < before; at += 3) {
            struct live *live = open_live();
            pages =
                mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            assert_ptr_not_equal(pages, MAP_FAILED);
            uint8_t *mad = pages + page - before;
            make_request(live, PORT, mad);
            changing = mad + at;
            const struct sigaction change = {.sa_handler = on_fault};
            struct sigaction usual;
            sigaction(SIGSEGV, &change, &usual);
            mprotect(pages + page, page, PROT_NONE);
            const struct gid sender = sender_of(1);
            arrive(live, &sender, mad);
            sigaction(SIGSEGV, &usual, NULL);
            let_time_pass(live);
            munmap(pages, 2 * page);
            shut(live);
        }
        before += before < 40 ? 12 : 80; /* Each takes some milliseconds. */
    }
}

/* -- Floods -------------------------------------------------------------------------------------*/

/* However many requests there are for a port, its owner is looked for once. */
static void test_one_question_for_a_port(void **state)
{
    (void)state;
    struct live *live = open_live();
    for (uint32_t i = 0; i < 100; i++) {
        request_from(live, i, PORT);
    }
    assert_int_equal(live->manager.parked_count, 100);
    assert_int_equal(length(&live->manager.lookups), 1);
    assert_int_equal(length(&live->manager.services.questions), 1);
    let_time_pass(live);
    shut(live);
}

/* A sender that makes many connections may ask for all of them at once. */
static void test_burst_of_one_sender(void **state)
{
    (void)state;
    struct live *live = open_live();
    for (uint32_t i = 0; i < 200; i++) {
        request_from(live, 1, PORT);
    }
    assert_int_equal(live->manager.parked_count, 200);
    for (uint32_t i = 0; i < 1000; i++) {
        request_from(live, 1, PORT);
    }
    assert_in_range(live->manager.parked_count, 200, 300);
    let_time_pass(live);
    shut(live);
}

/* A copy of a request that waits is not kept. */
static void test_repeated_request(void **state)
{
    (void)state;
    struct live *live = open_live();
    uint8_t mad[CM_MAD_BYTES];
    const struct gid sender = sender_of(1);
    make_request(live, PORT, mad);
    for (int i = 0; i < 10; i++) {
        arrive(live, &sender, mad);
    }
    assert_int_equal(live->manager.parked_count, 1);
    let_time_pass(live);
    shut(live);
}

/* If one sender asks for ports that nobody serves, requests of another sender do not wait for that.
 * If many senders do it, a request whose port is served is still answered. */
static void test_flood_of_requests(void **state)
{
    (void)state;
    for (uint32_t senders = 1; senders <= 1000; senders *= 10) {
        struct live *live = open_live();
        struct services other;
        const struct service_owner self = {.gid = live->addresses.entries[0].gid,
                                           .slot = (int)live->addresses.slot ^ 1};
        struct service *service;
        uint16_t chosen;
        assert_true(services_open(&other, &self));
        assert_int_equal(
            services_claim(&other, space, self.gid.bytes, false, PORT, &chosen, &service), 0);
        assert_int_equal(services_offer(&other, service), 0);
        /* This request is early: its server is not there yet. */
        request_from(live, 5000, PORT + 1);
        for (uint32_t i = 0; i < 2000; i++) {
            request_from(live, i % senders, (uint16_t)(20000 + i));
        }
        assert_in_range(live->manager.parked_count, 2, 1024);
        assert_int_equal(length(&live->manager.lookups), live->manager.parked_count);
        if (senders == 1) {
            assert_in_range(live->manager.parked_count, 2, 20);
        }
        const uint32_t before = live->manager.parked_count;
        request_from(live, 5000, PORT);
        const uint32_t parked = live->manager.parked_count;
        assert_in_range(parked, before, before + 1);
        for (int ms = 0; live->manager.parked_count == parked; ms++) {
            struct pollfd wait = {.fd = live->manager.services.fd, .events = POLLIN};
            services_serve(&other);
            poll(&wait, 1, 1);
            live_cm_serve(live);
            assert_true(ms < PATIENCE_MS);
        }
        let_time_pass(live);
        services_close(&other);
        shut(live);
    }
}

/* -- Cancelled threads --------------------------------------------------------------------------*/

static struct live *visited;
static bool came_back;

static void take_request(void)
{
    request_from(visited, 1, PORT);
}

/* Lets time pass, so that the port's owner is looked for again. */
static void pass_time(void)
{
    visited->now = instant_after(visited->now, 10 * MS);
    live_cm_on_time(visited);
}

static void (*const calls[])(void) = {take_request, pass_time};

static void *cancelled(void *index)
{
    pthread_cancel(pthread_self());
    live_lock(visited);
    calls[(intptr_t)index]();
    live_unlock(visited);
    came_back = true;
    pthread_testcancel();
    return NULL;
}

/* A program's poll may do this work, and holds the NIC's lock meanwhile. */
static void test_no_thread_is_cancelled_inside(void **state)
{
    (void)state;
    visited = open_live();
    live_unlock(visited);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        pthread_t thread;
        void *result;
        came_back = false;
        assert_int_equal(pthread_create(&thread, NULL, cancelled, (void *)(intptr_t)i), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
        assert_true(came_back);
    }
    live_lock(visited);
    let_time_pass(visited);
    shut(visited);
}

/* -- Peers that end -----------------------------------------------------------------------------*/

/* A process that lives under that name until it is killed. */
static pid_t start_process(const struct gid *gid)
{
    int ready[2];
    char word = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        word = presence_open(gid, 1, 0) != NULL;
        (void)!write(ready[1], &word, 1);
        pause();
    }
    assert_int_equal(read(ready[0], &word, 1), 1);
    assert_int_equal(word, 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void kill_process(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The request of the new process is read before we hear of the end of the dead one. */
static void test_successor_of_a_dead_requester(void **state)
{
    (void)state;
    struct live *live = open_live();
    struct live_mad mad = {.bytes = CM_MAD_BYTES, .source = sender_of(1)};
    make_request(live, PORT, mad.mad);
    const pid_t first = start_process(&mad.source);
    live_cm_meet_requester(live, &mad);
    kill_process(first);
    const pid_t second = start_process(&mad.source);
    live_cm_meet_requester(live, &mad);
    presence_serve(live->manager.presence);
    live_cm_on_gone(live);
    kill_process(second);
    struct gid gid;
    uint32_t slot;
    presence_serve(live->manager.presence);
    assert_true(presence_gone(live->manager.presence, &gid, &slot));
    assert_true(gid_equal(&gid, &mad.source));
    shut(live);
}

/* A request of one process tells its predecessor's end alone: what another one has sent may still
 * lie in a ring, so its end waits for the thread. */
static void test_ends_of_others_wait(void **state)
{
    (void)state;
    struct live *live = open_live();
    struct live_mad mads[2];
    pid_t processes[2];
    for (uint8_t i = 0; i < 2; i++) {
        mads[i] = (struct live_mad){.bytes = CM_MAD_BYTES, .source = sender_of(1 + i)};
        make_request(live, PORT, mads[i].mad);
        processes[i] = start_process(&mads[i].source);
        live_cm_meet_requester(live, &mads[i]);
    }
    kill_process(processes[0]);
    kill_process(processes[1]);
    live_cm_meet_requester(live, &mads[0]);
    struct gid gid;
    uint32_t slot;
    assert_true(presence_gone(live->manager.presence, &gid, &slot));
    assert_true(gid_equal(&gid, &mads[1].source));
    live_cm_on_time(live);
    assert_true(live_cm_has_gone(live));
    live_cm_on_gone(live);
    assert_false(live_cm_has_gone(live));
    shut(live);
}

int main(void)
{
    space = (uint16_t)(0x8000 | (getpid() & 0x7fff));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peer_that_writes_while_we_read),
        cmocka_unit_test(test_one_question_for_a_port),
        cmocka_unit_test(test_burst_of_one_sender),
        cmocka_unit_test(test_repeated_request),
        cmocka_unit_test(test_flood_of_requests),
        cmocka_unit_test(test_no_thread_is_cancelled_inside),
        cmocka_unit_test(test_successor_of_a_dead_requester),
        cmocka_unit_test(test_ends_of_others_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
