/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What the system refuses costs a program the call and nothing else: an id is what it was,
 *         no port stays claimed, and what works again works.
 * Method  The descriptor that the library waits on for askers is replaced by one that cannot wait,
 *         so that nobody can be offered anything, and put back; the process may have no more
 *         descriptors while peers ask it.
 */
#include "tests/api/cm_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

#define FDS_MAX 256

/* Is it a claim of the port space (0: of local identifiers)? */
static bool is_claim(int fd, uint16_t port_space)
{
    struct sockaddr_un name = {0};
    socklen_t bytes = sizeof(name);
    char wanted[32];
    snprintf(wanted, sizeof(wanted), "nonic/port/%04x/", port_space);
    return getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 && name.sun_family == AF_UNIX &&
           strncmp(name.sun_path + 1, wanted, strlen(wanted)) == 0;
}

static int count_claims(uint16_t port_space)
{
    int count = 0;
    for (int fd = 0; fd < FDS_MAX; fd++) {
        count += is_claim(fd, port_space);
    }
    return count;
}

/* Does the epoll descriptor wait for the other one? */
static bool waits_for(int epoll, int fd)
{
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epoll);
    FILE *file = fopen(path, "re");
    bool found = false;
    int waited;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        found |= sscanf(line, "tfd: %d", &waited) == 1 && waited == fd;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* The epoll descriptor that waits for questions about a port that is listened on; needs such a
 * port. */
static int find_epoll(void)
{
    for (int claim = 0; claim < FDS_MAX; claim++) {
        for (int epoll = 0; is_claim(claim, RDMA_PS_TCP) && epoll < FDS_MAX; epoll++) {
            if (waits_for(epoll, claim)) {
                return epoll;
            }
        }
    }
    fail_msg("nobody waits");
    return -1;
}

struct damage {
    int fd, saved, instead;
};

/* By the kernel's own call: the C library's does not get at the NIC's descriptors. */
static struct damage begin_damage(int fd)
{
    const struct damage damage = {fd, dup(fd), open("/dev/null", O_RDWR | O_CLOEXEC)};
    assert_int_equal(syscall(SYS_dup3, damage.instead, fd, 0), fd);
    return damage;
}

static void end_damage(const struct damage *damage)
{
    assert_int_equal(syscall(SYS_dup3, damage->saved, damage->fd, 0), damage->fd);
    close(damage->saved);
    close(damage->instead);
}

static uint16_t port_of(int fd, uint32_t id)
{
    struct rdma_ucm_query_addr_resp out = {0};
    const struct rdma_ucm_query in = {
        .response = (uintptr_t)&out, .id = id, .option = RDMA_USER_CM_QUERY_ADDR};
    struct sockaddr_in address;
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), sizeof(out)), 0);
    memcpy(&address, &out.src_addr, sizeof(address));
    return ntohs(address.sin_port);
}

static void share_port(int fd, uint32_t id)
{
    const int yes = 1;
    const struct rdma_ucm_set_option in = {.optval = (uintptr_t)&yes,
                                           .id = id,
                                           .level = RDMA_OPTION_ID,
                                           .optname = RDMA_OPTION_ID_REUSEADDR,
                                           .optlen = sizeof(yes)};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0), 0);
}

static void expect_listening(int fd, uint32_t id)
{
    const uint32_t asker = routed(fd, RDMA_PS_TCP, port_of(fd, id));
    assert_int_equal(connect_id(fd, asker, 0), 0);
    expect(fd, RDMA_EVENT_CONNECT_REQUEST);
}

/* Bound ids: with a port, with one that they share and claim when they listen, with none yet. */
static void test_listen_fails(void **state)
{
    (void)state;
    const int fd = open_device(0);
    uint32_t other, ids[3];
    const uint16_t port = listen_somewhere(fd, &other, RDMA_PS_TCP);
    const int epoll = find_epoll();
    struct sockaddr_in any_port = loopback(1, 0), shared = loopback(2, port);
    for (int i = 0; i < 3; i++) {
        ids[i] = create_id(fd, RDMA_PS_TCP, 0x40u + (uint32_t)i);
    }
    share_port(fd, ids[1]);
    assert_int_equal(bind_id(fd, ids[0], &any_port, sizeof(any_port)), 0);
    assert_int_equal(bind_id(fd, ids[1], &shared, sizeof(shared)), 0);
    const uint16_t chosen = port_of(fd, ids[0]);

    const int claims = count_claims(RDMA_PS_TCP);
    const struct damage damage = begin_damage(epoll);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(listen_id(fd, ids[i]), EINVAL);
        assert_int_equal(listen_id(fd, ids[i]), EINVAL);
    }
    assert_int_equal(count_claims(RDMA_PS_TCP), claims);
    assert_int_equal(listen_id(fd, ids[2]), EINVAL);
    end_damage(&damage);

    /* Nobody listens: programs that ask are told so. */
    const uint32_t asker = routed(fd, RDMA_PS_TCP, chosen);
    assert_int_equal(connect_id(fd, asker, 0), 0);
    assert_int_equal(expect(fd, RDMA_EVENT_REJECTED).id, asker);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(listen_id(fd, ids[i]), 0);
        assert_int_equal(listen_id(fd, ids[i]), EINVAL);
    }
    assert_int_equal(port_of(fd, ids[0]), chosen);
    assert_int_equal(port_of(fd, ids[1]), port);
    expect_listening(fd, ids[0]);
    /* As with the kernel, listening has bound it. */
    assert_int_equal(bind_id(fd, ids[2], &any_port, sizeof(any_port)), EINVAL);
    assert_int_equal(listen_id(fd, ids[2]), 0);
    expect_listening(fd, ids[2]);
    close(fd);
    assert_int_equal(count_claims(RDMA_PS_TCP), 0);
}

static void test_no_lid(void **state)
{
    (void)state;
    int count;
    struct ibv_device **devices = ibv_get_device_list(&count);
    assert_true(count > 0);
    struct ibv_context *context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    struct ibv_port_attr attr;
    uint32_t other;
    const int fd = open_device(0);
    listen_somewhere(fd, &other, RDMA_PS_TCP);
    assert_int_equal(count_claims(0), 0);

    const struct damage damage = begin_damage(find_epoll());
    assert_int_equal(ibv_query_port(context, 1, &attr), 0);
    assert_int_equal(attr.lid, 0);
    assert_int_equal(count_claims(0), 0);
    end_damage(&damage);

    assert_int_equal(ibv_query_port(context, 1, &attr), 0);
    assert_int_not_equal(attr.lid, 0);
    assert_int_equal(count_claims(0), 1);
    close(fd);
    ibv_close_device(context);
}

/* -- Descriptors --------------------------------------------------------------------------------*/

static uint64_t processor_ns(void)
{
    struct timespec used;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* A listener of ours whose name begins so. */
static socklen_t find_listener(const char *prefix, struct sockaddr_un *name)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        socklen_t bytes = sizeof(*name);
        memset(name, 0, sizeof(*name));
        if (getsockname(fd, (struct sockaddr *)name, &bytes) == 0 && name->sun_family == AF_UNIX &&
            strncmp(name->sun_path + 1, prefix, strlen(prefix)) == 0) {
            return bytes;
        }
    }
    fail_msg("nobody listens at %s", prefix);
    return 0;
}

/* Does an answer come that is not the end of the connection? */
static bool answered(int fd, int patience_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&wait, 1, patience_ms) == 1 && recv(fd, &byte, 1, 0) > 0;
}

/* Programs use up their descriptors, and peers ask all the same. The peers wait. This process does
 * not burn its processor, and its packets travel. Peers that still wait are answered when there is
 * room. */
static void test_no_descriptor_left(void **state)
{
    (void)state;
    const int active = open_device(0), passive = open_device(0);
    const struct ends ends = establish(active, passive);
    const struct timespec half = {.tv_nsec = 500000000};
    struct sockaddr_un names[2];
    const socklen_t bytes[2] = {find_listener("nonic/port/0106/", &names[0]),
                                find_listener("nonic-stat/", &names[1])};
    int askers[2];
    for (int i = 0; i < 2; i++) {
        askers[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_true(askers[i] >= 0);
    }
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    /* Not 0: poll wants to be allowed as many as it is asked about. */
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(connect(askers[i], (const struct sockaddr *)&names[i], bytes[i]), 0);
    }
    const uint64_t used = processor_ns();
    nanosleep(&half, NULL);
    const uint64_t burnt = processor_ns() - used;
    const bool early = answered(askers[0], 0) || answered(askers[1], 0);
    const int failure = disconnect_id(active, ends.active);
    expect(passive, RDMA_EVENT_DISCONNECTED);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(early);
    assert_int_equal(failure, 0);
    assert_true(burnt < 100000000);
    for (int i = 0; i < 2; i++) {
        assert_true(answered(askers[i], PATIENCE_MS));
        close(askers[i]);
    }
    close(active);
    close(passive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_lid),
        cmocka_unit_test(test_listen_fails),
        cmocka_unit_test(test_no_descriptor_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
