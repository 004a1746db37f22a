/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Unread datagrams are seen only at the right address and port, for IPv4 and IPv6, and only
 *         in the socket that was there before.
 * Method  Sockets of this test, in the kernel's own list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/udp/udp_unread.h"
#include "wire/roce.h"

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Loopback addresses that no other run of this test has. */
static struct gid gid_of(uint8_t last)
{
    const uint32_t pid = (uint32_t)getpid();
    return (struct gid){.bytes = {[10] = 0xff,
                                  [11] = 0xff,
                                  [12] = 127,
                                  [13] = (uint8_t)(100 + (pid >> 8) % 100),
                                  [14] = (uint8_t)pid,
                                  [15] = last}};
}

static union any_address address_of(const struct gid *gid, uint16_t port)
{
    union any_address address = {.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
    memcpy(&address.v4.sin_addr, gid->bytes + 12, 4);
    return address;
}

/* A socket that nobody reads yet. */
static int open_at(const union any_address *address)
{
    const int fd = socket(address->any.sa_family, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    const int failure = bind(fd, &address->any, sizeof(*address));
    assert_int_equal(failure, 0);
    return fd;
}

static void send_to(const union any_address *address)
{
    const int fd = socket(address->any.sa_family, SOCK_DGRAM, 0);
    assert_int_equal(sendto(fd, "packet", 6, 0, &address->any, sizeof(*address)), 6);
    close(fd);
}

static void read_from(int fd)
{
    char bytes[16];
    assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), 6);
}

static struct udp_owner owner_at(const struct gid *gid)
{
    struct udp_owner owner;
    assert_true(udp_find_owner(gid, &owner));
    assert_int_equal(owner.uid, geteuid());
    return owner;
}

static void test_unread_until_all_is_read(void **state)
{
    (void)state;
    const struct gid gid = gid_of(1);
    const union any_address address = address_of(&gid, ROCE_UDP_PORT);
    struct udp_owner owner;
    assert_false(udp_find_owner(&gid, &owner)); /* No socket is there. */
    const int fd = open_at(&address);
    owner = owner_at(&gid);
    assert_false(udp_unread_at(&gid, &owner, false));
    send_to(&address);
    send_to(&address);
    assert_true(udp_unread_at(&gid, &owner, false));
    read_from(fd);
    assert_true(udp_unread_at(&gid, &owner, false));
    read_from(fd);
    assert_false(udp_unread_at(&gid, &owner, false));
    send_to(&address);
    assert_true(udp_unread_at(&gid, &owner, false));
    close(fd); /* Unread datagrams are gone with their socket. */
    assert_false(udp_unread_at(&gid, &owner, false));
}

static void test_other_sockets(void **state)
{
    (void)state;
    const struct gid gid = gid_of(2), other = gid_of(3);
    const union any_address here = address_of(&gid, ROCE_UDP_PORT);
    const union any_address another_port = address_of(&gid, ROCE_UDP_PORT + 1);
    const union any_address another_address = address_of(&other, ROCE_UDP_PORT);
    const int fds[] = {open_at(&here), open_at(&another_port), open_at(&another_address)};
    const struct udp_owner owner = owner_at(&gid), others = owner_at(&other);
    send_to(&another_port);
    assert_false(udp_unread_at(&gid, &owner, false));
    send_to(&another_address);
    assert_false(udp_unread_at(&gid, &owner, false));
    assert_true(udp_unread_at(&other, &others, false));
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
}

/* A process that takes the address of a process that ended does not count as that one, be it of the
 * same user or of another. */
static void test_stranger_at_the_same_address(void **state)
{
    (void)state;
    const struct gid gid = gid_of(6);
    const union any_address address = address_of(&gid, ROCE_UDP_PORT);
    int fd = open_at(&address);
    const struct udp_owner owner = owner_at(&gid);
    close(fd);
    fd = open_at(&address);
    send_to(&address);
    const struct udp_owner stranger = owner_at(&gid);
    assert_true(stranger.inode != owner.inode);
    assert_false(udp_unread_at(&gid, &owner, false));
    assert_true(udp_unread_at(&gid, &stranger, false));
    const struct udp_owner of_another_user = {.uid = stranger.uid + 1, .inode = stranger.inode};
    for (int shared = 0; shared < 2; shared++) {
        assert_false(udp_unread_at(&gid, &of_another_user, shared));
    }
    close(fd);
}

/* An address that processes share has several sockets: any of them counts. */
static void test_shared_address(void **state)
{
    (void)state;
    const struct gid gid = gid_of(4);
    const union any_address address = address_of(&gid, ROCE_UDP_PORT);
    int fds[4];
    for (int i = 0; i < 4; i++) {
        const int one = 1;
        fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
        assert_int_equal(bind(fds[i], &address.any, sizeof(address.v4)), 0);
    }
    const struct udp_owner owner = owner_at(&gid);
    assert_false(udp_unread_at(&gid, &owner, true));
    send_to(&address);
    assert_true(udp_unread_at(&gid, &owner, true));
    for (int i = 0; i < 4; i++) {
        close(fds[i]);
    }
}

static void test_ipv6(void **state)
{
    (void)state;
    const struct gid gid = {.bytes = {[15] = 1}};
    union any_address address = {.v6 = {.sin6_family = AF_INET6,
                                        .sin6_port = htons(ROCE_UDP_PORT),
                                        .sin6_addr = {{{[15] = 1}}}}};
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    if (fd < 0 || bind(fd, &address.any, sizeof(address.v6)) != 0) {
        close(fd);
        skip(); /* No IPv6, or another program has the only loopback address. */
    }
    const struct udp_owner owner = owner_at(&gid);
    assert_false(udp_unread_at(&gid, &owner, false));
    send_to(&address);
    assert_true(udp_unread_at(&gid, &owner, false));
    read_from(fd);
    assert_false(udp_unread_at(&gid, &owner, false));
    close(fd);
}

/* -- While other sockets come and go ------------------------------------------------------------*/

/* More than the kernel gives out at a time. */
#define CROWD 300
#define LOOKS 300

static void be_busy(void)
{
    for (uint32_t i = 0;; i++) {
        int fds[8];
        for (uint8_t at = 0; at < 8; at++) {
            struct gid gid = gid_of((uint8_t)(20 + at));
            gid.bytes[14] = (uint8_t)(gid.bytes[14] + i);
            const union any_address address = address_of(&gid, ROCE_UDP_PORT);
            fds[at] = socket(AF_INET, SOCK_DGRAM, 0);
            (void)!bind(fds[at], &address.any, sizeof(address.v4));
        }
        for (int at = 0; at < 8; at++) {
            close(fds[at]);
        }
    }
}

/* A list in sixteen, or where it is at the end of a piece a list in three, lacks the socket that we
 * look for. */
static void test_while_others_come_and_go(void **state)
{
    (void)state;
    const struct gid gid = gid_of(5);
    const union any_address address = address_of(&gid, ROCE_UDP_PORT);
    int fds[CROWD];
    for (uint32_t i = 0; i < CROWD; i++) {
        struct gid other = gid_of((uint8_t)(50 + i % 200));
        other.bytes[13] = (uint8_t)(other.bytes[13] - 40 - i / 200);
        const union any_address other_address = address_of(&other, ROCE_UDP_PORT);
        fds[i] = open_at(&other_address);
    }
    const int fd = open_at(&address);
    const struct udp_owner owner = owner_at(&gid);
    send_to(&address);
    const pid_t busy = fork();
    if (busy == 0) {
        be_busy();
    }
    int missed = 0;
    for (int i = 0; i < LOOKS; i++) {
        missed += !udp_unread_at(&gid, &owner, false);
    }
    kill(busy, SIGKILL);
    waitpid(busy, NULL, 0);
    for (int i = 0; i < CROWD; i++) {
        close(fds[i]);
    }
    close(fd);
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unread_until_all_is_read),
        cmocka_unit_test(test_other_sockets),
        cmocka_unit_test(test_shared_address),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_stranger_at_the_same_address),
        cmocka_unit_test(test_while_others_come_and_go),
    };
    return cmocka_run_group_tests_name("udp_unread", tests, NULL, NULL);
}
