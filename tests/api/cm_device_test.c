/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The rdma_cm device takes any command without harm, answers as the kernel's does, wakes
 *         who waits, and is readable exactly while events wait.
 * Method  Commands as librdmacm writes them, and as nobody should, from buffers of exactly their
 *         size, with guards behind every response. Both ends of a connection are in one process.
 */
#include "tests/api/cm_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel/cm_newer.h"

#define GUARD_BYTES 64
#define NOBODY      0x7fffffff /* A handle that was never given. */

static const size_t command_bytes[] = {
    [RDMA_USER_CM_CMD_CREATE_ID] = sizeof(struct rdma_ucm_create_id),
    [RDMA_USER_CM_CMD_DESTROY_ID] = sizeof(struct rdma_ucm_destroy_id),
    [RDMA_USER_CM_CMD_BIND_IP] = sizeof(struct rdma_ucm_bind_ip),
    [RDMA_USER_CM_CMD_RESOLVE_IP] = sizeof(struct rdma_ucm_resolve_ip),
    [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = sizeof(struct rdma_ucm_resolve_route),
    [RDMA_USER_CM_CMD_QUERY_ROUTE] = offsetof(struct rdma_ucm_query, option),
    [RDMA_USER_CM_CMD_CONNECT] = offsetof(struct rdma_ucm_connect, ece),
    [RDMA_USER_CM_CMD_LISTEN] = sizeof(struct rdma_ucm_listen),
    [RDMA_USER_CM_CMD_ACCEPT] = offsetof(struct rdma_ucm_accept, ece),
    [RDMA_USER_CM_CMD_REJECT] = sizeof(struct rdma_ucm_reject),
    [RDMA_USER_CM_CMD_DISCONNECT] = sizeof(struct rdma_ucm_disconnect),
    [RDMA_USER_CM_CMD_INIT_QP_ATTR] = sizeof(struct rdma_ucm_init_qp_attr),
    [RDMA_USER_CM_CMD_GET_EVENT] = sizeof(struct rdma_ucm_get_event),
    [RDMA_USER_CM_CMD_GET_OPTION] = 0,
    [RDMA_USER_CM_CMD_SET_OPTION] = sizeof(struct rdma_ucm_set_option),
    [RDMA_USER_CM_CMD_NOTIFY] = sizeof(struct rdma_ucm_notify),
    [RDMA_USER_CM_CMD_JOIN_IP_MCAST] = sizeof(struct rdma_ucm_join_ip_mcast),
    [RDMA_USER_CM_CMD_LEAVE_MCAST] = sizeof(struct rdma_ucm_destroy_id),
    [RDMA_USER_CM_CMD_MIGRATE_ID] = sizeof(struct rdma_ucm_migrate_id),
    [RDMA_USER_CM_CMD_QUERY] = sizeof(struct rdma_ucm_query),
    [RDMA_USER_CM_CMD_BIND] = sizeof(struct rdma_ucm_bind),
    [RDMA_USER_CM_CMD_RESOLVE_ADDR] = sizeof(struct rdma_ucm_resolve_addr),
    [RDMA_USER_CM_CMD_JOIN_MCAST] = sizeof(struct rdma_ucm_join_mcast),
    [CM_RESOLVE_IB_SERVICE] = sizeof(struct cm_resolve_ib_service),
    [CM_WRITE_EVENT] = sizeof(struct cm_write_event),
};
#define COMMANDS ((uint32_t)(sizeof(command_bytes) / sizeof(command_bytes[0])))

/* Where each command has its id; -1: it has none. */
static int id_at(uint32_t number)
{
    switch (number) {
    case RDMA_USER_CM_CMD_CREATE_ID:
    case RDMA_USER_CM_CMD_GET_EVENT:
    case RDMA_USER_CM_CMD_GET_OPTION:
    case RDMA_USER_CM_CMD_MIGRATE_ID:
    case CM_WRITE_EVENT: return -1; /* See cm_newer_test.c. */
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_LEAVE_MCAST: return offsetof(struct rdma_ucm_destroy_id, id);
    case RDMA_USER_CM_CMD_BIND_IP: return offsetof(struct rdma_ucm_bind_ip, id);
    case RDMA_USER_CM_CMD_RESOLVE_IP: return offsetof(struct rdma_ucm_resolve_ip, id);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY: return offsetof(struct rdma_ucm_query, id);
    case RDMA_USER_CM_CMD_CONNECT: return offsetof(struct rdma_ucm_connect, id);
    case RDMA_USER_CM_CMD_ACCEPT: return offsetof(struct rdma_ucm_accept, id);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: return offsetof(struct rdma_ucm_init_qp_attr, id);
    case RDMA_USER_CM_CMD_SET_OPTION: return offsetof(struct rdma_ucm_set_option, id);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST: return offsetof(struct rdma_ucm_join_ip_mcast, id);
    case RDMA_USER_CM_CMD_JOIN_MCAST: return offsetof(struct rdma_ucm_join_mcast, id);
    default: return 0;
    }
}

/* -- Commands that are wrong --------------------------------------------------------------------*/

static void test_malformed_headers(void **state)
{
    (void)state;
    const int fd = open_device(0);
    static const uint8_t zeroes[sizeof(struct rdma_ucm_cmd_hdr)];
    for (size_t count = 0; count < sizeof(struct rdma_ucm_cmd_hdr); count++) {
        uint8_t *bytes = malloc(count + 1);
        memcpy(bytes, zeroes, count);
        errno = 0;
        assert_int_equal(write(fd, bytes, count), -1);
        assert_int_equal(errno, EINVAL);
        free(bytes);
    }
    for (uint32_t number = 0; number < COMMANDS + 3; number++) {
        /* More is announced than there is. */
        const struct rdma_ucm_cmd_hdr header = {number, 1, 0};
        errno = 0;
        assert_int_equal(write(fd, &header, sizeof(header)), -1);
        assert_int_equal(errno, EINVAL);
    }
    static const uint32_t unknown[] = {COMMANDS, COMMANDS + 1, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_int_equal(command(fd, unknown[i], zeroes, sizeof(zeroes), 0), EINVAL);
    }
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_GET_OPTION, zeroes, sizeof(zeroes), 0), ENOSYS);
    assert_int_equal(close(fd), 0);
    errno = 0;
    assert_int_equal(write(fd, zeroes, sizeof(zeroes)), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(close(fd), -1);
}

static void test_short_commands(void **state)
{
    (void)state;
    const int fd = open_device(O_NONBLOCK);
    uint8_t zeroes[1024] = {0};
    for (uint32_t number = 0; number < COMMANDS; number++) {
        for (size_t bytes = 0; bytes < command_bytes[number]; bytes++) {
            assert_int_equal(command(fd, number, zeroes, bytes, 1024), EINVAL);
        }
    }
    close(fd);
}

/* Handles of nobody, of another kind, and of another file. */
static void test_unknown_handles(void **state)
{
    (void)state;
    const int fd = open_device(0), other = open_device(0);
    uint32_t listener, ids[] = {0, NOBODY, UINT32_MAX, 0, 0};
    ids[3] = create_id(other, RDMA_PS_TCP, 1);
    const uint32_t gone = create_id(fd, RDMA_PS_TCP, 1);
    destroy_id(fd, gone);
    ids[4] = gone;
    uint8_t out[1024];
    for (uint32_t number = 0; number < COMMANDS; number++) {
        for (size_t i = 0; id_at(number) >= 0 && i < sizeof(ids) / sizeof(ids[0]); i++) {
            uint8_t in[1024] = {0};
            const uintptr_t response = (uintptr_t)out;
            memcpy(in, &response, sizeof(response)); /* Where commands have it, it is first. */
            if (id_at(number) == 0) {
                memset(in, 0, sizeof(response));
            }
            memcpy(in + id_at(number), &ids[i], sizeof(ids[i]));
            assert_int_equal(command(fd, number, in, command_bytes[number], sizeof(out)), ENOENT);
        }
    }
    /* An id is no group. */
    const uint32_t id = create_id(fd, RDMA_PS_UDP, 1);
    const struct rdma_ucm_destroy_id leave = {.response = (uintptr_t)out, .id = id};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), sizeof(out)),
                     ENOENT);
    (void)listen_somewhere(fd, &listener, RDMA_PS_TCP);
    close(other);
    close(fd);
}

static void test_create_id_arguments(void **state)
{
    (void)state;
    const int fd = open_device(0);
    struct rdma_ucm_create_id_resp out = {0};
    struct rdma_ucm_create_id in = {.uid = 1, .response = (uintptr_t)&out, .ps = 0x1234};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(out)), EINVAL);
    in.ps = RDMA_PS_TCP;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(out) - 1),
                     ENOSPC);
    in.response = 0;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(out)), EFAULT);
    assert_int_equal(out.id, 0);
    close(fd);
}

/* Addresses: of no family, too short, not this machine's, taken. */
static void test_bind(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 1), second = create_id(fd, RDMA_PS_TCP, 1);
    struct sockaddr_storage nonsense = {.ss_family = AF_UNIX};
    struct sockaddr_in address = loopback(1, 0);
    assert_int_equal(bind_id(fd, id, &nonsense, sizeof(nonsense)), EINVAL);
    assert_int_equal(bind_id(fd, id, &address, 0), EINVAL);
    assert_int_equal(bind_id(fd, id, &address, sizeof(address) - 1), EINVAL);
    assert_int_equal(bind_id(fd, id, &nonsense, sizeof(nonsense) + 1), EINVAL);
    const struct sockaddr_in foreign = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(0xcb007101u)};
    assert_int_equal(bind_id(fd, id, &foreign, sizeof(foreign)), EADDRNOTAVAIL);
    assert_int_equal(bind_id(fd, id, &address, sizeof(address)), 0);
    assert_int_equal(bind_id(fd, id, &address, sizeof(address)), EINVAL);
    uint32_t listener;
    address.sin_port = htons(listen_somewhere(fd, &listener, RDMA_PS_TCP));
    assert_int_equal(bind_id(fd, second, &address, sizeof(address)), EADDRINUSE);
    address.sin_addr.s_addr = 0;
    assert_int_equal(bind_id(fd, second, &address, sizeof(address)), EADDRNOTAVAIL);
    destroy_id(fd, listener);
    assert_int_equal(bind_id(fd, second, &address, sizeof(address)), 0);
    close(fd);
}

static struct rdma_ucm_query_route_resp query_route(int fd, uint32_t id)
{
    struct rdma_ucm_query_route_resp out = {0};
    const struct rdma_ucm_query in = {.response = (uintptr_t)&out, .id = id};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &in, sizeof(in), sizeof(out)), 0);
    return out;
}

/* The way to a port that is bound and has no listener leads to its owner (here to us, whose GID is
 * not 127.0.0.1) if it is one for datagrams: so rsockets reach each other. It can listen later. */
static void test_route_to_a_port_that_is_only_bound(void **state)
{
    (void)state;
    static const uint16_t spaces[] = {RDMA_PS_UDP, RDMA_PS_TCP};
    for (size_t i = 0; i < 2; i++) {
        const int fd = open_device(0);
        const uint32_t bound = create_id(fd, spaces[i], 1);
        const struct sockaddr_in address = loopback(1, 0);
        assert_int_equal(bind_id(fd, bound, &address, sizeof(address)), 0);
        struct sockaddr_in at;
        const struct rdma_ucm_query_route_resp where = query_route(fd, bound);
        memcpy(&at, &where.src_addr, sizeof(at));
        const uint32_t id = routed(fd, spaces[i], ntohs(at.sin_port));
        const struct rdma_ucm_query_route_resp way = query_route(fd, id);
        const int same = memcmp(way.ib_route[0].dgid, way.ib_route[0].sgid, 16) == 0;
        assert_int_equal(same, spaces[i] == RDMA_PS_UDP);
        assert_int_equal(listen_id(fd, bound), 0);
        close(fd);
    }
}

/* A source that is not this machine's cannot be sent from. */
static void test_foreign_source(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 1);
    const struct sockaddr_in foreign = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(0xcb007101u)},
                             to = loopback(1, 5);
    assert_int_equal(resolve(fd, id, &foreign, &to), EADDRNOTAVAIL);
    assert_false(readable(fd));
    assert_int_equal(resolve(fd, id, NULL, &to), 0);
    expect(fd, RDMA_EVENT_ADDR_RESOLVED);
    close(fd);
}

/* Every command on an id that is not so far. */
static void test_wrong_states(void **state)
{
    (void)state;
    const int fd = open_device(0);
    uint8_t out[1024];
    for (int listening = 0; listening < 2; listening++) {
        uint32_t id = create_id(fd, RDMA_PS_TCP, 1);
        if (listening) {
            listen_somewhere(fd, &id, RDMA_PS_TCP);
        }
        assert_int_equal(route(fd, id), EINVAL);
        assert_int_equal(connect_id(fd, id, 0), EINVAL);
        assert_int_equal(accept_id(fd, id, 1, true), EINVAL);
        assert_int_equal(accept_id(fd, id, 1, false), EINVAL);
        assert_int_equal(disconnect_id(fd, id), EINVAL);
        const struct rdma_ucm_reject reject = {.id = id};
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0), EINVAL);
        const struct rdma_ucm_notify notify = {.id = id, .event = IBV_EVENT_COMM_EST};
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_NOTIFY, &notify, sizeof(notify), 0), EINVAL);
        for (uint32_t step = 0; step < 9; step++) {
            const struct rdma_ucm_init_qp_attr init = {
                .response = (uintptr_t)out, .id = id, .qp_state = step};
            assert_int_equal(
                command(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &init, sizeof(init), sizeof(out)),
                step == IBV_QPS_INIT ? 0 : EINVAL);
        }
        const struct sockaddr_in group = {.sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl(0xef000001u)};
        struct rdma_ucm_join_mcast join = {
            .response = (uintptr_t)out, .id = id, .addr_size = sizeof(group)};
        memcpy(&join.addr, &group, sizeof(group));
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &join, sizeof(join), sizeof(out)),
                         EINVAL);
        if (listening) {
            assert_int_equal(listen_id(fd, id), EINVAL);
            const struct sockaddr_in to = loopback(1, 5);
            assert_int_equal(resolve(fd, id, NULL, &to), EINVAL);
        }
    }
    assert_false(readable(fd));
    close(fd);
}

static void test_options(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 1);
    static const struct {
        uint32_t level, name, bytes;
        uint8_t value;
        int result;
    } cases[] = {
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, 7, 0},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 0, 7, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, 7, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, 1, 0},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 1, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4, 1, 0},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, UINT32_MAX, 1, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 31, 0},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 32, EINVAL},
        {RDMA_OPTION_ID, 99, 4, 1, ENOSYS},
        {RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, 1, EINVAL},
        {RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 71, 1, EINVAL},
        {RDMA_OPTION_IB, 99, 4, 1, ENOSYS},
        {99, 0, 4, 1, ENOSYS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int value = cases[i].value;
        struct rdma_ucm_set_option in = {.optval = (uintptr_t)&value,
                                         .id = id,
                                         .level = cases[i].level,
                                         .optname = cases[i].name,
                                         .optlen = cases[i].bytes};
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0),
                         cases[i].result);
        in.optval = 0;
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0), EFAULT);
    }
    close(fd);
}

/* A response never exceeds its room. If the room is too small, the command is refused, and nothing
 * has happened. */
static void test_response_rooms(void **state)
{
    (void)state;
    const int fd = open_device(0), other = open_device(0);
    uint32_t listener;
    const uint16_t port = listen_somewhere(fd, &listener, RDMA_PS_TCP);
    const uint32_t id = routed(fd, RDMA_PS_TCP, port);
    for (size_t room = 0; room < 700; room++) {
        uint8_t *out = malloc(room + GUARD_BYTES);
        memset(out, 0xa5, room + GUARD_BYTES);
        const struct rdma_ucm_query query[] = {
            {.response = (uintptr_t)out, .id = id, .option = RDMA_USER_CM_QUERY_ADDR},
            {.response = (uintptr_t)out, .id = id, .option = RDMA_USER_CM_QUERY_PATH},
            {.response = (uintptr_t)out, .id = id, .option = RDMA_USER_CM_QUERY_GID},
            {.response = (uintptr_t)out, .id = id, .option = 99}};
        static const size_t least[] = {offsetof(struct rdma_ucm_query_addr_resp, ibdev_index),
                                       sizeof(struct rdma_ucm_query_path_resp),
                                       offsetof(struct rdma_ucm_query_addr_resp, ibdev_index)};
        for (int i = 0; i < 4; i++) {
            const int result =
                command(fd, RDMA_USER_CM_CMD_QUERY, &query[i], sizeof(query[i]), room);
            assert_int_equal(result, i == 3 ? ENOSYS : room < least[i] ? ENOSPC : 0);
        }
        const size_t old = offsetof(struct rdma_ucm_query_route_resp, ibdev_index);
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, query, sizeof(query[0]), room),
                         room < old ? ENOSPC : 0);
        const struct rdma_ucm_init_qp_attr init = {
            .response = (uintptr_t)out, .id = id, .qp_state = IBV_QPS_INIT};
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &init, sizeof(init), room),
                         room < sizeof(struct ib_uverbs_qp_attr) ? ENOSPC : 0);
        if (room < sizeof(struct rdma_ucm_migrate_resp)) {
            const struct rdma_ucm_migrate_id migrate = {
                .response = (uintptr_t)out, .id = id, .fd = (uint32_t)fd};
            assert_int_equal(
                command(other, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate, sizeof(migrate), room),
                ENOSPC);
            const struct rdma_ucm_destroy_id destroy = {.response = (uintptr_t)out, .id = id};
            assert_int_equal(
                command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), room), ENOSPC);
        }
        for (size_t i = 0; i < GUARD_BYTES; i++) {
            assert_int_equal(out[room + i], 0xa5);
        }
        free(out);
    }
    close(other);
    close(fd);
}

/* An event is not lost to a room too small for it, and fits the smaller struct of old programs. */
static void test_event_rooms(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const size_t old = offsetof(struct rdma_ucm_event_resp, reserved);
    for (size_t room = 0; room < sizeof(struct rdma_ucm_event_resp) + 8; room++) {
        const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
        const struct sockaddr_in to = loopback(1, 5);
        assert_int_equal(resolve(fd, id, NULL, &to), 0);
        uint8_t *out = malloc(room + GUARD_BYTES);
        memset(out, 0xa5, room + GUARD_BYTES);
        const struct rdma_ucm_get_event in = {.response = (uintptr_t)out};
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), room),
                         room < old ? ENOSPC : 0);
        for (size_t i = 0; i < GUARD_BYTES; i++) {
            assert_int_equal(out[room + i], 0xa5);
        }
        assert_int_equal(readable(fd), room < old);
        if (room < old) {
            expect(fd, RDMA_EVENT_ADDR_RESOLVED);
        }
        free(out);
        assert_int_equal(destroy_id(fd, id), 1);
    }
    const struct rdma_ucm_get_event nowhere = {.response = 0};
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
    const struct sockaddr_in to = loopback(1, 5);
    assert_int_equal(resolve(fd, id, NULL, &to), 0);
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &nowhere, sizeof(nowhere), 1024),
                     EFAULT);
    expect(fd, RDMA_EVENT_ADDR_RESOLVED);
    close(fd);
}

/* -- Connections --------------------------------------------------------------------------------*/

static uint8_t timeout_of(int fd, uint32_t id)
{
    struct ib_uverbs_qp_attr attr;
    const struct rdma_ucm_init_qp_attr init = {
        .response = (uintptr_t)&attr, .id = id, .qp_state = IBV_QPS_RTS};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &init, sizeof(init), sizeof(attr)),
                     0);
    return attr.timeout;
}

static void set_timeout(int fd, uint32_t id, uint8_t code)
{
    const struct rdma_ucm_set_option in = {.optval = (uintptr_t)&code,
                                           .id = id,
                                           .level = RDMA_OPTION_ID,
                                           .optname = RDMA_OPTION_ID_ACK_TIMEOUT,
                                           .optlen = sizeof(code)};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0), 0);
}

/* The option is for this side's queue pair, whichever side asked for the connection; 0: no
 * timer. */
static void test_ack_timeout(void **state)
{
    (void)state;
    const int active = open_device(0), passive = open_device(0);
    const struct ends ends = establish(active, passive);
    const uint8_t before = timeout_of(active, ends.active);
    assert_int_not_equal(before, 0);
    set_timeout(passive, ends.passive, 20);
    assert_int_equal(timeout_of(passive, ends.passive), 20);
    assert_int_equal(timeout_of(active, ends.active), before);
    set_timeout(active, ends.active, 0);
    assert_int_equal(timeout_of(active, ends.active), 0);
    close(active);
    close(passive);
}

static void test_connect_and_disconnect(void **state)
{
    (void)state;
    const int active = open_device(0), passive = open_device(0);
    const struct ends ends = establish(active, passive);
    assert_int_equal(connect_id(active, ends.active, 0), EINVAL);
    struct ib_uverbs_qp_attr attr;
    for (uint32_t step = IBV_QPS_INIT; step <= IBV_QPS_RTS; step++) {
        const struct rdma_ucm_init_qp_attr init = {
            .response = (uintptr_t)&attr, .id = ends.active, .qp_state = step};
        assert_int_equal(
            command(active, RDMA_USER_CM_CMD_INIT_QP_ATTR, &init, sizeof(init), sizeof(attr)), 0);
        assert_true(step != IBV_QPS_RTR || attr.dest_qp_num == 0x88000 + ends.passive);
    }
    assert_int_equal(disconnect_id(passive, ends.passive), 0);
    assert_int_equal(expect(active, RDMA_EVENT_DISCONNECTED).uid, 0x22);
    assert_int_equal(expect(passive, RDMA_EVENT_DISCONNECTED).uid, 0x33);
    assert_int_equal(disconnect_id(active, ends.active), 0);
    /* ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE, DISCONNECTED, perhaps TIMEWAIT_EXIT. */
    assert_true(destroy_id(active, ends.active) >= 4);
    assert_true(destroy_id(passive, ends.passive) >= 2);
    assert_int_equal(destroy_id(passive, ends.listener), 1);
    close(active);
    close(passive);
}

static void test_private_data_and_rejection(void **state)
{
    (void)state;
    const int fd = open_device(0);
    uint32_t listener;
    const uint16_t port = listen_somewhere(fd, &listener, RDMA_PS_TCP);
    const uint32_t id = routed(fd, RDMA_PS_TCP, port);
    assert_int_equal(connect_id(fd, id, 57), EINVAL);
    assert_int_equal(connect_id(fd, id, 56), 0);
    const struct rdma_ucm_event_resp request = expect(fd, RDMA_EVENT_CONNECT_REQUEST);
    assert_int_equal(request.param.conn.private_data_len, 56);
    struct rdma_ucm_reject reject = {.id = request.id, .reason = 7, .private_data_len = 2};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0), EINVAL);
    reject.reason = 0;
    reject.private_data_len = 149;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0), EINVAL);
    reject.private_data_len = 148;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0), 0);
    const struct rdma_ucm_event_resp rejected = expect(fd, RDMA_EVENT_REJECTED);
    assert_int_equal(rejected.status, 28);
    assert_int_equal(rejected.param.conn.private_data_len, 148);
    close(fd);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    const int fd = open_device(0);
    uint32_t listener;
    const uint16_t port = listen_somewhere(fd, &listener, RDMA_PS_TCP);
    destroy_id(fd, listener);
    const uint32_t id = routed(fd, RDMA_PS_TCP, port);
    assert_int_equal(connect_id(fd, id, 0), 0);
    assert_int_equal(expect(fd, RDMA_EVENT_REJECTED).status, 8);
    close(fd);
}

/* -- The owner of events ------------------------------------------------------------------------*/

static void test_migrate(void **state)
{
    (void)state;
    const int from = open_device(0), to = open_device(0);
    struct rdma_ucm_migrate_resp out = {0};
    const uint32_t id = create_id(from, RDMA_PS_TCP, 0x22);
    const struct sockaddr_in address = loopback(1, 5);
    struct rdma_ucm_migrate_id in = {.response = (uintptr_t)&out, .id = id, .fd = (uint32_t)from};
    assert_int_equal(resolve(from, id, NULL, &address), 0);
    assert_int_equal(command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(out)), 0);
    assert_int_equal(out.events_reported, 0);
    assert_false(readable(from));
    assert_int_equal(expect(to, RDMA_EVENT_ADDR_RESOLVED).id, id);
    assert_int_equal(route(from, id), ENOENT);
    assert_int_equal(command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(out)),
                     ENOENT);
    in.fd = (uint32_t)to;
    assert_int_equal(command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(out)), 0);
    assert_int_equal(out.events_reported, 1);
    static const uint32_t nonsense[] = {UINT32_MAX, 0x7fffffff, 1000000, 2};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        in.fd = nonsense[i];
        assert_int_equal(command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(out)),
                         EINVAL);
    }
    close(from);
    assert_int_equal(route(to, id), 0);
    expect(to, RDMA_EVENT_ROUTE_RESOLVED);
    close(to);
}

static void test_groups(void **state)
{
    (void)state;
    const int fd = open_device(0), other = open_device(0);
    const uint32_t id = create_id(fd, RDMA_PS_UDP, 0x22);
    const struct sockaddr_in here = loopback(1, 0),
                             group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010203u)};
    struct rdma_ucm_create_id_resp out = {0};
    struct rdma_ucm_destroy_id_resp left = {99};
    struct rdma_ucm_join_mcast in = {
        .response = (uintptr_t)&out, .uid = 0x44, .id = id, .addr_size = sizeof(group)};
    memcpy(&in.addr, &group, sizeof(group));
    assert_int_equal(bind_id(fd, id, &here, sizeof(here)), 0);
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(out) - 1),
                     ENOSPC);
    in.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(out)),
                     EINVAL);
    in.join_flags = 0;
    in.addr_size = sizeof(in.addr) + 1;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(out)),
                     EINVAL);
    in.addr_size = sizeof(group);
    in.response = 0;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(out)),
                     EFAULT);
    assert_false(readable(fd)); /* It has not joined. */
    in.response = (uintptr_t)&out;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(out)), 0);
    const struct rdma_ucm_event_resp joined = expect(fd, RDMA_EVENT_MULTICAST_JOIN);
    assert_int_equal(joined.id, out.id);
    assert_int_equal(joined.uid, 0x44);
    assert_int_equal(joined.param.ud.qp_num, 0xffffff);
    const struct rdma_ucm_destroy_id leave = {.response = (uintptr_t)&left, .id = out.id};
    assert_int_equal(
        command(other, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), sizeof(left)), ENOENT);
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &leave, sizeof(leave), sizeof(left)),
                     ENOENT); /* A group is no id. */
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), sizeof(left)),
                     0);
    assert_int_equal(left.events_reported, 1);
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), sizeof(left)),
                     ENOENT);
    /* Once more, and away with its event pending. */
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(out)), 0);
    assert_true(readable(fd));
    assert_int_equal(destroy_id(fd, id), 1); /* Its groups' events are its own, too. */
    assert_false(readable(fd));
    close(other);
    close(fd);
}

/* A descriptor is closed with events, requests and connections pending: all of them go, the peers
 * are told, the port is free. */
static void test_close_with_everything_pending(void **state)
{
    (void)state;
    for (int heard = 0; heard < 2; heard++) {
        const int active = open_device(0), passive = open_device(0);
        establish(active, passive);
        uint32_t listener;
        const uint16_t port = listen_somewhere(passive, &listener, RDMA_PS_TCP);
        const uint32_t id = routed(active, RDMA_PS_TCP, port);
        assert_int_equal(connect_id(active, id, 0), 0);
        struct pollfd wait = {.fd = passive, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
        if (heard) {
            expect(passive, RDMA_EVENT_CONNECT_REQUEST);
        }
        assert_int_equal(close(passive), 0);
        bool rejected = false, disconnected = false;
        while (!rejected || !disconnected) {
            struct rdma_ucm_event_resp event;
            wait.fd = active;
            assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
            assert_int_equal(get_event(active, &event), 0);
            rejected |= event.event == RDMA_EVENT_REJECTED;
            disconnected |= event.event == RDMA_EVENT_DISCONNECTED;
            assert_true(event.event == RDMA_EVENT_REJECTED ||
                        event.event == RDMA_EVENT_DISCONNECTED ||
                        event.event == RDMA_EVENT_TIMEWAIT_EXIT);
        }
        const struct sockaddr_in address = loopback(1, port);
        const uint32_t again = create_id(active, RDMA_PS_TCP, 1);
        assert_int_equal(bind_id(active, again, &address, sizeof(address)), 0);
        close(active);
    }
}

/* All that ask are told, however many, and not that nobody serves the port: by its own word. */
static void test_listener_with_many_requests_goes(void **state)
{
    (void)state;
    enum {
        ASKING = 60,
        CONSUMER = 28
    };
    const int active = open_device(0), passive = open_device(0);
    uint32_t listener;
    const uint16_t port = listen_somewhere(passive, &listener, RDMA_PS_TCP);
    for (int i = 0; i < ASKING; i++) {
        assert_int_equal(connect_id(active, routed(active, RDMA_PS_TCP, port), 0), 0);
    }
    usleep(100000); /* They have come. */
    assert_int_equal(destroy_id(passive, listener), 0);
    for (int i = 0; i < ASKING; i++) {
        assert_int_equal(expect(active, RDMA_EVENT_REJECTED).status, CONSUMER);
    }
    close(active);
    close(passive);
}

/* Also by the way: dup2 over it, close_range. */
static void test_closed_by_the_way(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        uint32_t listener;
        const int fd = open_device(0), other = open_device(0);
        const uint16_t port = listen_somewhere(fd, &listener, RDMA_PS_TCP);
        if (way == 0) {
            assert_int_equal(dup2(STDIN_FILENO, fd), fd);
            assert_int_equal(close(fd), 0);
        } else {
            assert_int_equal(close_range((unsigned)fd, (unsigned)fd, 0), 0);
        }
        const struct sockaddr_in address = loopback(1, port);
        const uint32_t id = create_id(other, RDMA_PS_TCP, 1);
        assert_int_equal(bind_id(other, id, &address, sizeof(address)), 0);
        close(other);
    }
}

/* A command that the kernel refuses closes nothing. */
static void test_not_closed_by_the_way(void **state)
{
    (void)state;
    uint32_t listener;
    const int fd = open_device(0), other = open_device(0);
    const uint16_t port = listen_somewhere(fd, &listener, RDMA_PS_TCP);
    assert_int_equal(dup2(-1, fd), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(dup3(STDIN_FILENO, fd, O_APPEND), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(close_range((unsigned)fd, (unsigned)fd, 1 << 20), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(close_range((unsigned)fd, (unsigned)fd - 1, 0), -1);
    const struct sockaddr_in address = loopback(1, port);
    const uint32_t id = create_id(other, RDMA_PS_TCP, 1);
    assert_int_equal(bind_id(other, id, &address, sizeof(address)), EADDRINUSE);
    close(other);
    close(fd);
}

/* -- Waiting ------------------------------------------------------------------------------------*/

static void test_nonblocking(void **state)
{
    (void)state;
    struct rdma_ucm_event_resp event;
    const int fd = open_device(O_NONBLOCK), later = open_device(0);
    assert_int_equal(get_event(fd, &event), EAGAIN);
    assert_int_equal(fcntl(later, F_SETFL, fcntl(later, F_GETFL) | O_NONBLOCK), 0);
    assert_int_equal(get_event(later, &event), EAGAIN);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 1);
    const struct sockaddr_in to = loopback(1, 5);
    assert_int_equal(resolve(fd, id, NULL, &to), 0);
    expect(fd, RDMA_EVENT_ADDR_RESOLVED);
    assert_int_equal(get_event(fd, &event), EAGAIN);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
    close(later);
}

static void test_readable_while_events_wait(void **state)
{
    (void)state;
    const int fd = open_device(0);
    uint32_t ids[3];
    const struct sockaddr_in to = loopback(1, 5);
    assert_false(readable(fd));
    for (int i = 0; i < 3; i++) {
        ids[i] = create_id(fd, RDMA_PS_TCP, 0x20u + (uint32_t)i);
        assert_int_equal(resolve(fd, ids[i], NULL, &to), 0);
        assert_true(readable(fd));
    }
    assert_int_equal(expect(fd, RDMA_EVENT_ADDR_RESOLVED).id, ids[0]);
    assert_true(readable(fd));
    assert_int_equal(destroy_id(fd, ids[1]), 0); /* Its event goes. */
    assert_true(readable(fd));
    assert_int_equal(destroy_id(fd, ids[0]), 1);
    assert_true(readable(fd));
    assert_int_equal(expect(fd, RDMA_EVENT_ADDR_RESOLVED).uid, 0x22);
    assert_false(readable(fd));
    close(fd);
}

struct waiter {
    int fd;
    pthread_t thread;
    atomic_int number;  /* The thread's, once it runs. */
    atomic_int failure; /* Looked at while the thread should be waiting. */
    struct rdma_ucm_event_resp event;
};

static void *wait_for_event(void *argument)
{
    struct waiter *waiter = argument;
    waiter->number = gettid();
    waiter->failure = get_event(waiter->fd, &waiter->event);
    return NULL;
}

static void start(struct waiter *waiter, int fd)
{
    waiter->fd = fd;
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_event, waiter), 0);
}

static void sleep_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* On a busy machine it may be a while until the thread waits. */
static void await_wait(const struct waiter *waiter)
{
    char state = 'R', path[64], line[64];
    for (int ms = 0; ms < PATIENCE_MS && state != 'S'; ms++) {
        sleep_ms(1);
        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", waiter->number);
        FILE *file = waiter->number == 0 ? NULL : fopen(path, "r");
        if (file != NULL && fgets(line, sizeof(line), file) != NULL && strchr(line, ')') != NULL) {
            state = strchr(line, ')')[2];
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    assert_int_equal(state, 'S');
}

/* Each of two threads that wait gets one event, and nobody gets none. */
static void test_two_threads_wait(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const struct sockaddr_in to = loopback(1, 5);
    for (int round = 0; round < 20; round++) {
        struct waiter waiters[2];
        uint32_t ids[2];
        start(&waiters[0], fd);
        start(&waiters[1], fd);
        sleep_ms(round % 4);
        for (int i = 0; i < 2; i++) {
            ids[i] = create_id(fd, RDMA_PS_TCP, 0x20u + (uint32_t)i);
            assert_int_equal(resolve(fd, ids[i], NULL, &to), 0);
        }
        for (int i = 0; i < 2; i++) {
            pthread_join(waiters[i].thread, NULL);
            assert_int_equal(waiters[i].failure, 0);
        }
        assert_int_equal(waiters[0].event.uid + waiters[1].event.uid, 0x41);
        assert_false(readable(fd));
        assert_int_equal(destroy_id(fd, ids[0]), 1);
        assert_int_equal(destroy_id(fd, ids[1]), 1);
    }
    close(fd);
}

/* A thread that polls, and then takes the event without looking again, some time later. */
struct poller {
    struct waiter waiter;
    atomic_bool took_one, told;
    atomic_long delay_ms;
};

static void *poll_for_events(void *argument)
{
    struct poller *poller = argument;
    struct pollfd wait = {.fd = poller->waiter.fd, .events = POLLIN};
    struct timespec from, now;
    poller->waiter.failure = get_event(poller->waiter.fd, &poller->waiter.event);
    poller->took_one = true;
    if (poll(&wait, 1, PATIENCE_MS) != 1) {
        return NULL;
    }
    poller->told = true;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do { /* It could go on, if it only had the processor. */
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 <
             poller->delay_ms);
    poller->waiter.failure = get_event(poller->waiter.fd, &poller->waiter.event);
    return NULL;
}

/* Another thread destroys the id meanwhile: the one that was told takes its event first, or it
 * would wait for ever. */
static void test_destroyed_behind_a_poll(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const struct sockaddr_in to = loopback(1, 5);
    for (long delay_ms = 0; delay_ms <= 20; delay_ms += 10) {
        struct poller poller = {.waiter = {.fd = fd, .failure = -1}, .delay_ms = delay_ms};
        const uint32_t first = create_id(fd, RDMA_PS_TCP, 0x20);
        const uint32_t second = create_id(fd, RDMA_PS_TCP, 0x21);
        assert_int_equal(pthread_create(&poller.waiter.thread, NULL, poll_for_events, &poller), 0);
        assert_int_equal(resolve(fd, first, NULL, &to), 0);
        while (!poller.took_one) {
            sleep_ms(1);
        }
        poller.waiter.failure = -1;
        assert_int_equal(resolve(fd, second, NULL, &to), 0);
        while (!poller.told) {
            sleep_ms(0);
        }
        assert_int_equal(destroy_id(fd, second), 1);
        struct timespec deadline;
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += 5;
        assert_int_equal(pthread_timedjoin_np(poller.waiter.thread, NULL, &deadline), 0);
        assert_int_equal(poller.waiter.failure, 0);
        assert_int_equal(poller.waiter.event.uid, 0x21);
        assert_int_equal(destroy_id(fd, first), 1);
    }
    close(fd);
}

static void ignore(int signal)
{
    (void)signal;
}

static void test_signal_ends_the_wait(void **state)
{
    (void)state;
    const int fd = open_device(0);
    struct waiter waiter;
    const struct sigaction action = {.sa_handler = ignore};
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    start(&waiter, fd);
    sleep_ms(50);
    pthread_kill(waiter.thread, SIGUSR1);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.failure, EINTR);
    sigaction(SIGUSR1, &before, NULL);
    /* The next one is not confused by it. */
    const struct sockaddr_in to = loopback(1, 5);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
    start(&waiter, fd);
    sleep_ms(20);
    assert_int_equal(resolve(fd, id, NULL, &to), 0);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.failure, 0);
    assert_int_equal(waiter.event.uid, 0x22);
    close(fd);
}

/* Programs close a channel under the thread that waits for it: that thread goes on waiting, as with
 * the kernel, and can be cancelled. */
static void test_close_under_a_waiting_thread(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        const int fd = open_device(0);
        struct waiter waiter = {.failure = -1};
        start(&waiter, fd);
        if (round % 2 == 0) {
            await_wait(&waiter);
            /* Not close(), which TSan takes for a race with the waiting write(): it is one. */
            assert_int_equal(close_range((unsigned)fd, (unsigned)fd, 0), 0);
            sleep_ms(5);
            assert_int_equal(waiter.failure, -1);
        }
        pthread_cancel(waiter.thread);
        void *result;
        pthread_join(waiter.thread, &result);
        assert_true(result == PTHREAD_CANCELED || waiter.failure == EBADF);
        if (round % 2 != 0) {
            close(fd);
        }
    }
}

static atomic_bool enough;

/* Works with any file, while another thread closes it. */
static void *meddle(void *argument)
{
    const atomic_int *shared = argument;
    const struct sockaddr_in to = loopback(1, 5);
    while (!enough) {
        const int fd = atomic_load(shared);
        struct rdma_ucm_create_id_resp out = {0};
        const struct rdma_ucm_create_id in = {
            .uid = 5, .response = (uintptr_t)&out, .ps = RDMA_PS_TCP};
        if (command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(out)) == 0) {
            (void)resolve(fd, out.id, NULL, &to);
            struct rdma_ucm_event_resp event;
            (void)get_event(fd, &event);
            struct rdma_ucm_destroy_id_resp gone;
            const struct rdma_ucm_destroy_id destroy = {.response = (uintptr_t)&gone, .id = out.id};
            (void)command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy), sizeof(gone));
        }
    }
    return NULL;
}

/* A thread that is cancelled at any time takes no lock along. */
static void test_cancelled_threads(void **state)
{
    (void)state;
    atomic_int shared = open_device(0);
    enough = false;
    for (int round = 0; round < 100; round++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, meddle, &shared), 0);
        sleep_ms(round % 3);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        const uint32_t id = create_id(shared, RDMA_PS_TCP, 1);
        destroy_id(shared, id);
    }
    close(shared);
}

/* -- Children, and many threads -----------------------------------------------------------------*/

/* A child may use and close its copy of the descriptor: its parent does not notice. */
static void test_child_closes(void **state)
{
    (void)state;
    const int active = open_device(0), passive = open_device(0);
    const struct ends ends = establish(active, passive);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(active);
        close(passive);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(readable(active) || readable(passive));
    assert_int_equal(disconnect_id(active, ends.active), 0);
    expect(active, RDMA_EVENT_DISCONNECTED);
    expect(passive, RDMA_EVENT_DISCONNECTED);
    close(active);
    close(passive);
}

/* A command of a child is none, and no event of its parent's either. */
static void test_child_commands(void **state)
{
    (void)state;
    const int active = open_device(0), other = open_device(0);
    const uint32_t id = create_id(active, RDMA_PS_TCP, 1);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const uint64_t command[4] = {1, id, 0, 0};
        errno = 0;
        const bool refused =
            write(active, command, sizeof(command)) == -1 && errno == EBADF && !readable(active);
        /* Its number may be another file's afterwards. */
        close(active);
        const int file = memfd_create("file", 0);
        const bool again = dup2(file, active) == active && write(active, "text", 4) == 4;
        const bool over = dup2(file, other) == other && write(other, "text", 4) == 4;
        _exit(refused && again && over ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(readable(active) || readable(other));
    close(active);
    close(other);
}

static void test_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    int fds[100];
    atomic_int shared = fds[0] = open_device(O_NONBLOCK);
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    enough = false;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, meddle, &shared), 0);
    }
    for (int i = 1; i < 100; i++) {
        fds[i] = open_device(O_NONBLOCK);
        atomic_store(&shared, fds[i]);
        /* Closes it, and keeps the number from being given to somebody else. */
        assert_int_equal(dup2(nothing, fds[i - 1]), fds[i - 1]);
        sleep_ms(1);
    }
    enough = true;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 100; i++) {
        close(fds[i]);
    }
    close(nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malformed_headers),
        cmocka_unit_test(test_short_commands),
        cmocka_unit_test(test_unknown_handles),
        cmocka_unit_test(test_create_id_arguments),
        cmocka_unit_test(test_bind),
        cmocka_unit_test(test_route_to_a_port_that_is_only_bound),
        cmocka_unit_test(test_foreign_source),
        cmocka_unit_test(test_wrong_states),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_response_rooms),
        cmocka_unit_test(test_event_rooms),
        cmocka_unit_test(test_connect_and_disconnect),
        cmocka_unit_test(test_ack_timeout),
        cmocka_unit_test(test_private_data_and_rejection),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_migrate),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_close_with_everything_pending),
        cmocka_unit_test(test_listener_with_many_requests_goes),
        cmocka_unit_test(test_closed_by_the_way),
        cmocka_unit_test(test_not_closed_by_the_way),
        cmocka_unit_test(test_nonblocking),
        cmocka_unit_test(test_readable_while_events_wait),
        cmocka_unit_test(test_two_threads_wait),
        cmocka_unit_test(test_destroyed_behind_a_poll),
        cmocka_unit_test(test_signal_ends_the_wait),
        cmocka_unit_test(test_close_under_a_waiting_thread),
        cmocka_unit_test(test_cancelled_threads),
        cmocka_unit_test(test_child_closes),
        cmocka_unit_test(test_child_commands),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
