/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each call on an id is taken in the states in which Linux takes it, and refused with Linux'
 *         errno in all others; and a source port that an id names is its own.
 * Method  A table, call by state, after drivers/infiniband/core/cma.c of Linux; each entry on a new
 *         id. Then ports that two ids want.
 */
#include "tests/api/cm_program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum state {
    IDLE,
    BOUND,
    RESOLVED,
    ROUTED,
    CONNECTING,
    REJECTED,    /* By nobody: no one listens there. */
    ESTABLISHED, /* On the side that asked. */
    DISCONNECTED,
    LISTENING,
    STATES,
};

enum call {
    BIND,
    RESOLVE_ADDRESS,
    RESOLVE_ROUTE,
    LISTEN,
    CONNECT,
    CALLS,
};

static const int answers[STATES][CALLS] = {
    /*                bind    address route   listen  connect */
    [IDLE] = {0, 0, EINVAL, 0, EINVAL},
    [BOUND] = {EINVAL, 0, EINVAL, 0, EINVAL},
    [RESOLVED] = {EINVAL, EINVAL, 0, EINVAL, EINVAL},
    [ROUTED] = {EINVAL, EINVAL, EINVAL, EINVAL, 0},
    [CONNECTING] = {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
    [REJECTED] = {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
    [ESTABLISHED] = {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
    [DISCONNECTED] = {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
    [LISTENING] = {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
};

/* A port that somebody listens on, by channels of its own. */
struct server {
    int fd;
    uint32_t listener;
    uint16_t port;
};

static uint32_t before_the_connection(int fd, enum state state, uint16_t port)
{
    const struct sockaddr_in here = loopback(1, 0), there = loopback(1, port);
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
    if (state == BOUND || state == LISTENING) {
        assert_int_equal(bind_id(fd, id, &here, sizeof(here)), 0);
    }
    if (state == LISTENING) {
        assert_int_equal(listen_id(fd, id), 0);
    }
    if (state == RESOLVED) {
        assert_int_equal(resolve(fd, id, NULL, &there), 0);
        expect(fd, RDMA_EVENT_ADDR_RESOLVED);
    }
    return id;
}

static uint32_t reach(int fd, enum state state, const struct server *server)
{
    if (state <= RESOLVED || state == LISTENING) {
        return before_the_connection(fd, state, server->port);
    }
    const uint32_t id = routed(fd, RDMA_PS_TCP, state == REJECTED ? 1 : server->port);
    if (state == ROUTED) {
        return id;
    }
    assert_int_equal(connect_id(fd, id, 0), 0);
    if (state == REJECTED) {
        expect(fd, RDMA_EVENT_REJECTED);
    } else if (state != CONNECTING) {
        const uint32_t passive = expect(server->fd, RDMA_EVENT_CONNECT_REQUEST).id;
        assert_int_equal(accept_id(server->fd, passive, 0x33, true), 0);
        expect(fd, RDMA_EVENT_CONNECT_RESPONSE);
        assert_int_equal(accept_id(fd, id, 0x22, false), 0);
        expect(server->fd, RDMA_EVENT_ESTABLISHED);
    }
    if (state == DISCONNECTED) {
        assert_int_equal(disconnect_id(fd, id), 0);
        expect(fd, RDMA_EVENT_DISCONNECTED);
    }
    return id;
}

static int call_it(int fd, enum call call, uint32_t id, uint16_t port)
{
    const struct sockaddr_in here = loopback(1, 0), there = loopback(1, port);
    switch (call) {
    case BIND: return bind_id(fd, id, &here, sizeof(here));
    case RESOLVE_ADDRESS: return resolve(fd, id, NULL, &there);
    case RESOLVE_ROUTE: return route(fd, id);
    case LISTEN: return listen_id(fd, id);
    case CONNECT: return connect_id(fd, id, 0);
    case CALLS: break;
    }
    return -1;
}

static void test_every_call_in_every_state(void **unused)
{
    (void)unused;
    for (int state = 0; state < STATES; state++) {
        for (int call = 0; call < CALLS; call++) {
            struct server server = {.fd = open_device(0)};
            server.port = listen_somewhere(server.fd, &server.listener, RDMA_PS_TCP);
            const int fd = open_device(0);
            const uint32_t id = reach(fd, (enum state)state, &server);
            const int answer = call_it(fd, (enum call)call, id, server.port);
            if (answer != answers[state][call]) {
                fail_msg("call %d in state %d: %d", call, state, answer);
            }
            close(fd);
            close(server.fd);
        }
    }
}

/* -- Ports --------------------------------------------------------------------------------------*/

/* A port that nobody has. */
static uint16_t free_port(int fd)
{
    uint32_t listener;
    const uint16_t port = listen_somewhere(fd, &listener, RDMA_PS_TCP);
    destroy_id(fd, listener);
    return port;
}

static void reuse(int fd, uint32_t id)
{
    const int one = 1;
    const struct rdma_ucm_set_option in = {.optval = (uintptr_t)&one,
                                           .id = id,
                                           .level = RDMA_OPTION_ID,
                                           .optname = RDMA_OPTION_ID_REUSEADDR,
                                           .optlen = sizeof(one)};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0), 0);
}

/* Two ids that resolve with one port, or one that resolves and one that binds it. */
static void test_source_ports(void **unused)
{
    (void)unused;
    static const struct {
        bool binds, reused, none, other_address;
        int answer;
    } cases[] = {
        {.answer = EADDRINUSE},
        {.binds = true, .answer = EADDRINUSE},
        {.none = true, .answer = 0},
        {.reused = true, .answer = 0},
        {.other_address = true, .answer = 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int fd = open_device(0);
        const uint16_t port = cases[i].none ? 0 : free_port(fd);
        const struct sockaddr_in from = loopback(1, port), there = loopback(1, 9);
        const struct sockaddr_in second = loopback(cases[i].other_address ? 2 : 1, port);
        uint32_t ids[2];
        for (int n = 0; n < 2; n++) {
            ids[n] = create_id(fd, RDMA_PS_TCP, 0x22);
            if (cases[i].reused) {
                reuse(fd, ids[n]);
            }
        }
        assert_int_equal(resolve(fd, ids[0], &from, &there), 0);
        const int answer = cases[i].binds ? bind_id(fd, ids[1], &second, sizeof(second))
                                          : resolve(fd, ids[1], &second, &there);
        assert_int_equal(answer, cases[i].answer);
        /* Who was refused may go on when the port is free. */
        if (answer != 0) {
            destroy_id(fd, ids[0]);
            assert_int_equal(resolve(fd, ids[1], &second, &there), 0);
        }
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_in_every_state),
        cmocka_unit_test(test_source_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
