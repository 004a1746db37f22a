/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whose a port is, is decided as Linux decides it (drivers/infiniband/core/cma.c), whether
 *         an id is bound by its program or by looking for the way; also among processes.
 * Method  For each pair of ids that want one port: what the second hears, and that the port is free
 *         when the first is gone. A child process stands for another program.
 */
#include "tests/api/cm_program.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

/* This run alone has them: others may run at the same time. */
static uint16_t port;

enum way {
    BIND,
    RESOLVE,
};

struct want {
    enum way way;
    uint8_t host; /* Behind 127.0.0.; 0: any address. */
    bool shares;
    bool listens;
};

static int share(int fd, uint32_t id, int on)
{
    const struct rdma_ucm_set_option in = {.optval = (uintptr_t)&on,
                                           .id = id,
                                           .level = RDMA_OPTION_ID,
                                           .optname = RDMA_OPTION_ID_REUSEADDR,
                                           .optlen = sizeof(on)};
    return command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0);
}

static struct sockaddr_in address_of(uint8_t host)
{
    struct sockaddr_in address = loopback(host, port);
    if (host == 0) {
        address.sin_addr.s_addr = 0;
    }
    return address;
}

/* 0, or the errno of taking the port. */
static int take(int fd, const struct want *want, uint32_t *id)
{
    const struct sockaddr_in from = address_of(want->host), to = loopback(1, 9);
    *id = create_id(fd, RDMA_PS_TCP, 0x22);
    if (want->shares) {
        assert_int_equal(share(fd, *id, 1), 0);
    }
    int failure =
        want->way == RESOLVE ? resolve(fd, *id, &from, &to) : bind_id(fd, *id, &from, sizeof(from));
    if (failure == 0 && want->way == RESOLVE) {
        expect(fd, RDMA_EVENT_ADDR_RESOLVED);
    }
    if (failure == 0 && want->listens) {
        failure = listen_id(fd, *id);
    }
    return failure;
}

static const struct {
    struct want first, second;
    int result;
} cases[] = {
    {{BIND, 1, false, false}, {BIND, 1, false, false}, EADDRINUSE},
    {{BIND, 1, false, false}, {RESOLVE, 1, false, false}, EADDRINUSE},
    {{RESOLVE, 1, false, false}, {BIND, 1, false, false}, EADDRINUSE},
    {{RESOLVE, 1, false, false}, {RESOLVE, 1, false, false}, EADDRINUSE},
    {{BIND, 1, false, true}, {RESOLVE, 1, false, false}, EADDRINUSE},
    {{RESOLVE, 1, false, false}, {BIND, 1, false, true}, EADDRINUSE},
    {{RESOLVE, 1, false, false}, {RESOLVE, 2, false, false}, 0},
    {{BIND, 1, false, true}, {RESOLVE, 2, false, false}, 0},
    {{BIND, 0, false, false}, {BIND, 0, false, false}, EADDRNOTAVAIL},
    {{BIND, 0, false, true}, {RESOLVE, 1, false, false}, EADDRNOTAVAIL},
    {{RESOLVE, 1, false, false}, {BIND, 0, false, true}, EADDRNOTAVAIL},
    {{RESOLVE, 0, false, false}, {RESOLVE, 0, false, false}, EADDRNOTAVAIL},
    /* Both share, until one listens. */
    {{BIND, 1, true, false}, {BIND, 1, true, false}, 0},
    {{RESOLVE, 1, true, false}, {RESOLVE, 1, true, false}, 0},
    {{BIND, 0, true, false}, {BIND, 1, true, false}, 0},
    {{BIND, 1, true, false}, {BIND, 2, false, false}, 0},
    {{BIND, 1, true, true}, {BIND, 1, true, false}, EADDRINUSE},
    {{BIND, 1, true, true}, {RESOLVE, 1, true, false}, EADDRINUSE},
    {{BIND, 0, true, true}, {BIND, 1, true, false}, EADDRNOTAVAIL},
    /* One alone cannot. */
    {{BIND, 1, false, false}, {BIND, 1, true, false}, EADDRINUSE},
    {{RESOLVE, 1, false, false}, {RESOLVE, 1, true, false}, EADDRINUSE},
    {{BIND, 1, true, false}, {BIND, 1, false, false}, EADDRINUSE},
    {{RESOLVE, 1, true, false}, {RESOLVE, 1, false, false}, EADDRINUSE},
    {{BIND, 0, true, false}, {BIND, 1, false, false}, EADDRNOTAVAIL},
};

static void test_two_ids(void **state)
{
    (void)state;
    const int fd = open_device(0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t first, second;
        assert_int_equal(take(fd, &cases[i].first, &first), 0);
        const int result = take(fd, &cases[i].second, &second);
        if (result != cases[i].result) {
            fail_msg("case %zu: errno %d", i, result);
        }
        destroy_id(fd, first);
        destroy_id(fd, second);
        assert_int_equal(take(fd, &cases[i].second, &second), 0); /* It is free again. */
        destroy_id(fd, second);
    }
    close(fd);
}

/* Other processes know nothing of ids that are bound and share, until one listens. */
static bool is_known(const struct want *want)
{
    return !want->shares || want->listens;
}

/* Another program: takes the port of case `i`, says so, and keeps it until its input ends. */
static int own_port(size_t i)
{
    uint32_t id;
    char byte = 0;
    const int fd = open_device(0);
    if (take(fd, &cases[i].first, &id) == 0) {
        (void)!write(STDOUT_FILENO, &byte, 1);
        (void)!read(STDIN_FILENO, &byte, 1);
    }
    close(fd);
    return 0;
}

struct owner {
    pid_t pid;
    int input;
};

static struct owner start_owner(size_t i)
{
    int in[2], out[2];
    char number[16], at[16], byte;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    snprintf(number, sizeof(number), "%zu", i);
    snprintf(at, sizeof(at), "%u", port);
    const struct owner owner = {.pid = fork(), .input = in[1]};
    if (owner.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl("/proc/self/exe", "cm_ports_test", "own", number, at, NULL);
        _exit(1);
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(read(out[0], &byte, 1), 1);
    close(out[0]);
    return owner;
}

static void test_two_processes(void **state)
{
    (void)state;
    const int fd = open_device(0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t second;
        if (!is_known(&cases[i].first)) {
            continue;
        }
        const struct owner owner = start_owner(i);
        const int result = take(fd, &cases[i].second, &second);
        close(owner.input);
        assert_int_equal(waitpid(owner.pid, NULL, 0), owner.pid);
        if (result != cases[i].result) {
            fail_msg("case %zu: errno %d", i, result);
        }
        destroy_id(fd, second);
    }
    close(fd);
}

/* One that shares any IPv4 address, and one that wants any IPv6 address and no IPv4. */
static void test_families_apart(void **state)
{
    (void)state;
    const int fd = open_device(0);
    const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const struct want any4 = {BIND, 0, true, false};
    const int on = 1;
    uint32_t first;
    assert_int_equal(take(fd, &any4, &first), 0);
    const uint32_t second = create_id(fd, RDMA_PS_TCP, 0x22);
    assert_int_equal(bind_id(fd, second, &any6, sizeof(any6)), EADDRNOTAVAIL);
    const struct rdma_ucm_set_option in = {.optval = (uintptr_t)&on,
                                           .id = second,
                                           .level = RDMA_OPTION_ID,
                                           .optname = RDMA_OPTION_ID_AFONLY,
                                           .optlen = sizeof(on)};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0), 0);
    assert_int_equal(bind_id(fd, second, &any6, sizeof(any6)), 0);
    close(fd);
}

/* No port is any port: two ids never get the same. */
static void test_any_port(void **state)
{
    (void)state;
    enum {
        IDS = 100
    };
    const int fd = open_device(0);
    const struct sockaddr_in from = loopback(1, 0), to = loopback(1, 9);
    uint16_t ports[IDS];
    for (int i = 0; i < IDS; i++) {
        struct rdma_ucm_query_addr_resp out = {0};
        const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
        assert_int_equal(resolve(fd, id, i % 2 == 0 ? &from : NULL, &to), 0);
        expect(fd, RDMA_EVENT_ADDR_RESOLVED);
        const struct rdma_ucm_query query = {
            .response = (uintptr_t)&out, .id = id, .option = RDMA_USER_CM_QUERY_ADDR};
        assert_int_equal(command(fd, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(out)),
                         0);
        struct sockaddr_in at;
        memcpy(&at, &out.src_addr, sizeof(at));
        ports[i] = ntohs(at.sin_port);
        assert_int_not_equal(ports[i], 0);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(ports[i], ports[j]);
        }
    }
    close(fd);
}

/* The way cannot be found: the id remains bound, and its port its own. */
static void test_no_way(void **state)
{
    (void)state;
    const int fd = open_device(0);
    uint32_t other;
    const struct want same = {BIND, 1, false, false};
    const struct sockaddr_in from = loopback(1, port), near = loopback(1, 9),
                             far = {.sin_family = AF_INET,
                                    .sin_port = htons(9),
                                    .sin_addr.s_addr = htonl(0xcb007101u)};
    const struct sockaddr_in6 other_family = {
        .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const uint32_t id = create_id(fd, RDMA_PS_TCP, 0x22);
    struct rdma_ucm_resolve_addr in = {
        .id = id, .src_size = sizeof(from), .dst_size = sizeof(other_family), .timeout_ms = 1000};
    memcpy(&in.src_addr, &from, sizeof(from));
    memcpy(&in.dst_addr, &other_family, sizeof(other_family));
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &in, sizeof(in), 0), EINVAL);
    assert_false(readable(fd));
    assert_int_equal(take(fd, &same, &other), EADDRINUSE);
    assert_int_equal(resolve(fd, id, NULL, &far), 0);
    expect(fd, RDMA_EVENT_ADDR_ERROR);
    assert_int_equal(bind_id(fd, id, &from, sizeof(from)), EINVAL);
    assert_int_equal(take(fd, &same, &other), EADDRINUSE);
    assert_int_equal(resolve(fd, id, &from, &near), 0);
    expect(fd, RDMA_EVENT_ADDR_RESOLVED);
    close(fd);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "own") == 0) {
        port = (uint16_t)strtoul(arguments[3], NULL, 10);
        return own_port(strtoul(arguments[2], NULL, 10));
    }
    port = (uint16_t)(10000 + getpid() % 20000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_ids),        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_families_apart), cmocka_unit_test(test_any_port),
        cmocka_unit_test(test_no_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
