/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each call on an id gives in each of the id's states what Linux gives (cma.c and ucma.c of
 *         drivers/infiniband/core).
 * Method  A table of calls and states. For each cell an id is brought into the state anew by real
 *         exchanges with a second channel, and the call's errno compared.
 */
#include "tests/api/cm_program.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

enum place {
    IDLE,
    BOUND,
    LISTENING,
    RESOLVED,
    ROUTED,
    CONNECTING,
    REPLIED, /* CONNECT_RESPONSE is told. */
    CONNECTED,
    REJECTED,
    DISCONNECTED,
    REQUESTED,
    ACCEPTED, /* And no RTU yet. */
    ESTABLISHED,
    PLACES,
};

static const char *const names[PLACES] = {
    "idle",      "bound",    "listening",    "resolved",  "routed",   "connecting",  "replied",
    "connected", "rejected", "disconnected", "requested", "accepted", "established",
};

static int active, passive;

static void let_in(uint32_t *child)
{
    *child = expect(passive, RDMA_EVENT_CONNECT_REQUEST).id;
}

/* An id of `passive` from REQUESTED on, of `active` otherwise; `fd` is its channel. */
static uint32_t bring_to(enum place place, int *fd)
{
    uint32_t listener, child;
    *fd = place >= REQUESTED ? passive : active;
    const struct sockaddr_in here = loopback(1, 0), to = loopback(1, 9);
    if (place <= BOUND || place == RESOLVED) {
        const uint32_t id = create_id(active, RDMA_PS_TCP, 0x22);
        if (place != IDLE) {
            assert_int_equal(bind_id(active, id, &here, sizeof(here)), 0);
        }
        if (place == RESOLVED) {
            assert_int_equal(resolve(active, id, NULL, &to), 0);
            expect(active, RDMA_EVENT_ADDR_RESOLVED);
        }
        return id;
    }
    if (place == LISTENING) {
        listen_somewhere(active, &listener, RDMA_PS_TCP);
        return listener;
    }
    const uint32_t id =
        routed(active, RDMA_PS_TCP, listen_somewhere(passive, &listener, RDMA_PS_TCP));
    if (place == ROUTED) {
        return id;
    }
    assert_int_equal(connect_id(active, id, 0), 0);
    let_in(&child);
    if (place == CONNECTING || place == REQUESTED) {
        return place == REQUESTED ? child : id;
    }
    if (place == REJECTED) {
        const struct rdma_ucm_reject reject = {.id = child};
        assert_int_equal(command(passive, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0), 0);
        expect(active, RDMA_EVENT_REJECTED);
        return id;
    }
    assert_int_equal(accept_id(passive, child, 0x33, true), 0);
    expect(active, RDMA_EVENT_CONNECT_RESPONSE);
    if (place == REPLIED || place == ACCEPTED) {
        return place == ACCEPTED ? child : id;
    }
    assert_int_equal(accept_id(active, id, 0, false), 0);
    expect(passive, RDMA_EVENT_ESTABLISHED);
    if (place == DISCONNECTED) {
        assert_int_equal(disconnect_id(active, id), 0);
        expect(active, RDMA_EVENT_DISCONNECTED);
    }
    return place == ESTABLISHED ? child : id;
}

static int bind_any(int fd, uint32_t id)
{
    const struct sockaddr_in here = loopback(1, 0);
    return bind_id(fd, id, &here, sizeof(here));
}

static int resolve_any(int fd, uint32_t id)
{
    const struct sockaddr_in to = loopback(1, 9);
    return resolve(fd, id, NULL, &to);
}

static int connect_any(int fd, uint32_t id)
{
    return connect_id(fd, id, 0);
}

static int accept_request(int fd, uint32_t id)
{
    return accept_id(fd, id, 0x33, true);
}

static int accept_reply(int fd, uint32_t id)
{
    return accept_id(fd, id, 0, false);
}

static int notify(int fd, uint32_t id, uint32_t event)
{
    const struct rdma_ucm_notify in = {.id = id, .event = event};
    return command(fd, RDMA_USER_CM_CMD_NOTIFY, &in, sizeof(in), 0);
}

static int notify_established(int fd, uint32_t id)
{
    return notify(fd, id, IBV_EVENT_COMM_EST);
}

static int notify_path(int fd, uint32_t id)
{
    return notify(fd, id, IBV_EVENT_PATH_MIG);
}

static int set_option(int fd, uint32_t id, uint32_t name, int value)
{
    const struct rdma_ucm_set_option in = {.optval = (uintptr_t)&value,
                                           .id = id,
                                           .level = RDMA_OPTION_ID,
                                           .optname = name,
                                           .optlen = sizeof(value)};
    return command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0);
}

static int share(int fd, uint32_t id)
{
    return set_option(fd, id, RDMA_OPTION_ID_REUSEADDR, 1);
}

static int share_no_more(int fd, uint32_t id)
{
    return set_option(fd, id, RDMA_OPTION_ID_REUSEADDR, 0);
}

static int want_ipv6_only(int fd, uint32_t id)
{
    return set_option(fd, id, RDMA_OPTION_ID_AFONLY, 1);
}

#define E EINVAL
static const struct {
    const char *name;
    int (*call)(int fd, uint32_t id);
    int results[PLACES];
} calls[] = {
    /*                     idle bnd lst rsv rtd cnn rpl con rej dis req acc est */
    {"bind", bind_any, {0, E, E, E, E, E, E, E, E, E, E, E, E}},
    {"resolve_addr", resolve_any, {0, 0, E, E, E, E, E, E, E, E, E, E, E}},
    {"resolve_route", route, {E, E, E, 0, E, E, E, E, E, E, E, E, E}},
    {"listen", listen_id, {0, 0, E, E, E, E, E, E, E, E, E, E, E}},
    {"connect", connect_any, {E, E, E, E, 0, E, E, E, E, E, E, E, E}},
    {"accept", accept_request, {E, E, E, E, E, E, E, E, E, E, 0, E, E}},
    {"accept without parameters", accept_reply, {E, E, E, E, E, E, 0, E, E, E, E, E, E}},
    {"disconnect", disconnect_id, {E, E, E, E, E, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"notify COMM_EST", notify_established, {E, E, E, E, E, E, E, EISCONN, E, E, E, 0, EISCONN}},
    {"notify PATH_MIG", notify_path, {E, E, E, E, E, E, E, E, E, E, E, E, E}},
    {"REUSEADDR 1", share, {0, 0, E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"REUSEADDR 0", share_no_more, {0, E, E, E, E, E, E, E, E, E, E, E, E}},
    {"AFONLY", want_ipv6_only, {0, 0, E, E, E, E, E, E, E, E, E, E, E}},
};
#undef E

static void test_every_call_in_every_state(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT_OF(calls); c++) {
        for (int place = IDLE; place < PLACES; place++) {
            int fd;
            active = open_device(0);
            passive = open_device(0);
            const uint32_t id = bring_to((enum place)place, &fd);
            const int result = calls[c].call(fd, id);
            if (result != calls[c].results[place]) {
                fail_msg("%s, %s: errno %d", calls[c].name, names[place], result);
            }
            close(active);
            close(passive);
        }
    }
}

/* Nobody is there, or does not answer: such an id connects no more either. */
static void test_after_a_failure(void **state)
{
    (void)state;
    static const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP};
    for (size_t i = 0; i < COUNT_OF(spaces); i++) {
        active = open_device(0);
        const uint32_t id = routed(active, spaces[i], 9);
        assert_int_equal(connect_id(active, id, 0), 0);
        expect(active, spaces[i] == RDMA_PS_TCP ? RDMA_EVENT_REJECTED : RDMA_EVENT_UNREACHABLE);
        assert_int_equal(connect_id(active, id, 0), EINVAL);
        assert_int_equal(resolve_any(active, id), EINVAL);
        assert_int_equal(disconnect_id(active, id), 0);
        assert_false(readable(active));
        close(active);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_in_every_state),
        cmocka_unit_test(test_after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
