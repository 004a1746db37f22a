/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The commands that Linux added to the rdma_cm device for rdma_write_cm_event and
 *         rdma_resolve_addrinfo: what a program writes comes back from its channel, in order and
 *         with its argument; services of InfiniBand are answered as on Ethernet.
 * Method  Commands as the newest librdmacm writes them, without it.
 */
#include "tests/api/cm_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kernel/cm_newer.h"

#define NOBODY   0x7fffffff /* A handle that was never given. */
#define ARGUMENT UINT64_C(0x55667788aabbccdd)

static int write_event(int fd, uint32_t id, uint32_t event, int status, uint64_t argument)
{
    struct cm_write_event in = {.id = id, .event = event, .status = (uint32_t)status};
    in.param.argument = argument;
    return command(fd, CM_WRITE_EVENT, &in, sizeof(in), 0);
}

static void expect_word(int fd, enum rdma_event_kind kind, uint32_t id, uint64_t uid, int status,
                        uint64_t argument)
{
    const struct rdma_ucm_event_resp event = expect(fd, kind);
    assert_int_equal(event.id, id);
    assert_int_equal(event.uid, uid);
    assert_int_equal((int)event.status, status);
    assert_memory_equal(&event.param, &argument, sizeof(argument));
}

static void test_events_come_back(void **state)
{
    (void)state;
    static const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB};
    const int fd = open_device(0);
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        const uint32_t id = create_id(fd, spaces[i], 0x22), other = create_id(fd, spaces[i], 0x44);
        assert_false(readable(fd));
        assert_int_equal(write_event(fd, id, RDMA_EVENT_USER, 0x11223344, ARGUMENT), 0);
        assert_int_equal(write_event(fd, other, RDMA_EVENT_USER, -5, 0), 0);
        assert_int_equal(write_event(fd, id, RDMA_EVENT_INTERNAL, 0, 16), 0);
        expect_word(fd, RDMA_EVENT_USER, id, 0x22, 0x11223344, ARGUMENT);
        expect_word(fd, RDMA_EVENT_USER, other, 0x44, -5, 0);
        expect_word(fd, RDMA_EVENT_INTERNAL, id, 0x22, 0, 16);
        assert_false(readable(fd));
        /* Written and not fetched: it goes with its id. */
        assert_int_equal(write_event(fd, id, RDMA_EVENT_USER, 0, 1), 0);
        assert_int_equal(destroy_id(fd, id), 2);
        assert_false(readable(fd));
        assert_int_equal(destroy_id(fd, other), 1);
    }
    close(fd);
}

static void test_refused_events(void **state)
{
    (void)state;
    const int fd = open_device(0), elsewhere = open_device(0);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
    for (uint32_t event = 0; event < 32; event++) {
        if (event != RDMA_EVENT_USER && event != RDMA_EVENT_INTERNAL) {
            assert_int_equal(write_event(fd, id, event, 0, 0), EINVAL);
        }
    }
    assert_int_equal(write_event(fd, NOBODY, RDMA_EVENT_USER, 0, 0), ENOENT);
    assert_int_equal(write_event(elsewhere, id, RDMA_EVENT_USER, 0, 0), ENOENT);
    assert_false(readable(fd));
    assert_false(readable(elsewhere));
    assert_int_equal(destroy_id(fd, id), 0);
    close(fd);
    close(elsewhere);
}

/* An event of the connection keeps its turn among them, and they move with their id. */
static void test_order_and_migration(void **state)
{
    (void)state;
    const int fd = open_device(0), to = open_device(0);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
    const struct sockaddr_in address = loopback(1, 5);
    assert_int_equal(resolve(fd, id, NULL, &address), 0);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_int_equal(write_event(fd, id, RDMA_EVENT_USER, 0, ARGUMENT), 0);
    struct rdma_ucm_migrate_resp out = {0};
    const struct rdma_ucm_migrate_id in = {
        .response = (uintptr_t)&out, .id = id, .fd = (uint32_t)fd};
    assert_int_equal(command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(out)), 0);
    expect(to, RDMA_EVENT_ADDR_RESOLVED);
    expect_word(to, RDMA_EVENT_USER, id, 0x22, 0, ARGUMENT);
    assert_false(readable(fd));
    close(fd);
    close(to);
}

struct waiter {
    int fd;
    struct rdma_ucm_event_resp event;
};

static void *wait_for_word(void *argument)
{
    struct waiter *waiter = argument;
    return (void *)(intptr_t)get_event(waiter->fd, &waiter->event);
}

/* The purpose of the call: a thread wakes another one that waits for events. */
static void test_wakes_a_thread(void **state)
{
    (void)state;
    struct waiter waiter = {.fd = open_device(0)};
    const uint32_t id = create_id(waiter.fd, RDMA_PS_TCP, 0x22);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_word, &waiter), 0);
    usleep(50000);
    assert_int_equal(write_event(waiter.fd, id, RDMA_EVENT_USER, 0, ARGUMENT), 0);
    void *failure;
    assert_int_equal(pthread_join(thread, &failure), 0);
    assert_null(failure);
    assert_int_equal(waiter.event.event, RDMA_EVENT_USER);
    assert_int_equal(waiter.event.id, id);
    close(waiter.fd);
}

static int resolve_service(int fd, uint32_t id)
{
    struct cm_resolve_ib_service in = {.id = id, .flags = 2};
    memcpy(in.service_name, "storage", 8);
    return command(fd, CM_RESOLVE_IB_SERVICE, &in, sizeof(in), 0);
}

static int query_services(int fd, uint32_t id, size_t room)
{
    uint8_t out[512];
    const struct rdma_ucm_query in = {
        .response = (uintptr_t)out, .id = id, .option = CM_QUERY_IB_SERVICE};
    return command(fd, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), room);
}

static void test_services_of_infiniband(void **state)
{
    (void)state;
    const int fd = open_device(O_NONBLOCK);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22), any = create_id(fd, RDMA_PS_TCP, 0x22);
    assert_int_equal(resolve_service(fd, NOBODY), ENOENT);
    assert_int_equal(resolve_service(fd, id), EINVAL); /* It has no device. */
    const struct sockaddr_in address = loopback(1, 0);
    assert_int_equal(bind_id(fd, id, &address, sizeof(address)), 0);
    assert_int_equal(resolve_service(fd, id), EOPNOTSUPP);
    const struct sockaddr_in everywhere = {.sin_family = AF_INET};
    assert_int_equal(bind_id(fd, any, &everywhere, sizeof(everywhere)), 0);
    assert_int_equal(resolve_service(fd, any), EINVAL);
    assert_int_equal(query_services(fd, id, 512), ENODATA);
    assert_int_equal(query_services(fd, id, 8), ENODATA);
    assert_int_equal(query_services(fd, id, 7), ENOSPC);
    assert_int_equal(query_services(fd, NOBODY, 512), ENOENT);
    assert_false(readable(fd));
    /* It is as it was before. */
    assert_int_equal(listen_id(fd, id), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_come_back),       cmocka_unit_test(test_refused_events),
        cmocka_unit_test(test_order_and_migration),    cmocka_unit_test(test_wakes_a_thread),
        cmocka_unit_test(test_services_of_infiniband),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
