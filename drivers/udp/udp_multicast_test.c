/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets that one port sends to a group come out at each port that joined it, also at its
 *         own, byte for byte, and at no other; on the wire it is a RoCEv2 packet whose ICRC holds,
 *         sent over as many hops as the link says.
 * Method  Ports on loopback addresses of their own, in random groups; a raw socket, where we may
 *         have one, which shows the kernel's packets; IPv6 in a network namespace of our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/system/descriptor.h"
#include "drivers/udp/udp_port.h"

enum {
    PORTS = 4,
    GROUPS = 12,
    STEPS = 400,
    HEADERS_BYTES = ROCE_BTH_BYTES + 8,
    PAYLOAD_MAX = 4096,
};

struct end {
    struct address_set addresses;
    struct udp_port *port;
    bool joined[GROUPS];
};

/* The packet that is being sent, to compare with what comes, and the number that arrived. */
static struct {
    struct gid source, group;
    uint8_t memory[PAYLOAD_MAX], headers[HEADERS_BYTES];
    uint32_t payload_bytes, arrived;
} sent;

static void open_end(struct end *end, const char *device)
{
    char error[256];
    memset(end, 0, sizeof(*end));
    assert_true(address_find(&end->addresses, device, error, sizeof(error)));
    end->port = calloc(1, sizeof(*end->port));
    assert_true(udp_port_open(end->port, &end->addresses, error, sizeof(error)));
}

static void close_end(struct end *end)
{
    udp_port_close(end->port);
    address_release(&end->addresses);
    free(end->port);
}

/* Each process has groups of its own, so that tests at the same time do not hear each other. */
static struct gid group_of(uint32_t number)
{
    const uint32_t id = (uint32_t)getpid();
    return (struct gid){
        {[10] = 0xff, 0xff, 239, (uint8_t)(192 + (id >> 8) % 64), (uint8_t)id, (uint8_t)number}};
}

/* The link says how far packets go; of the address vector only the traffic class counts. */
static const struct nic_av plain_av = {.hop_limit = 77};

static void transmit(struct end *from, const struct gid *group, uint8_t hops, uint32_t bytes,
                     uint32_t count)
{
    sent.source = from->addresses.entries[0].gid;
    sent.group = *group;
    sent.payload_bytes = bytes;
    struct link *link = udp_port_group_link(from->port, &sent.source, group, hops);
    assert_non_null(link);
    struct nic_departure departure = {
        .av = &plain_av,
        .headers_bytes = HEADERS_BYTES,
        .payload_bytes = bytes,
        .pad_bytes = roce_pad_bytes(bytes),
        .segment_count = bytes > 0,
        .segments = {{.address = (uintptr_t)sent.memory, .bytes = bytes}}};
    sent.headers[0] = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY);
    memcpy(departure.headers, sent.headers, HEADERS_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        /* Groups have no window: there is always room. */
        assert_true(udp_link_has_room(from->port, link, (struct instant){1}));
        assert_true(udp_port_transmit(from->port, link, &departure));
    }
    udp_port_flush(from->port);
}

static void compare(const struct udp_datagram *datagram)
{
    assert_memory_equal(&datagram->source, &sent.source, 16);
    assert_memory_equal(&datagram->destination, &sent.group, 16);
    assert_int_equal(datagram->count,
                     HEADERS_BYTES + sent.payload_bytes + roce_pad_bytes(sent.payload_bytes));
    assert_memory_equal(datagram->bytes, sent.headers, HEADERS_BYTES);
    assert_memory_equal(datagram->bytes + HEADERS_BYTES, sent.memory, sent.payload_bytes);
    sent.arrived++;
}

/* Loopback delivers before the sending call returns. */
static uint32_t arrived_at(struct end *end)
{
    const struct udp_datagram *datagram;
    uint32_t before;
    sent.arrived = 0;
    do {
        before = sent.arrived;
        while (udp_port_look_at_groups(end->port, 32) > 0) {
            while ((datagram = udp_port_next(end->port)) != NULL) {
                compare(datagram);
            }
        }
    } while (sent.arrived != before);
    /* No packet to a group comes to a port's own address. */
    assert_int_equal(udp_port_look(end->port, 32, NULL), 0);
    assert_int_equal(udp_port_bad_icrc(end->port), 0);
    return sent.arrived;
}

static void exchange(bool segmenting, uint64_t seed)
{
    struct end ends[PORTS];
    struct prng prng;
    uint32_t copies = 0;
    prng_init(&prng, seed);
    for (int i = 0; i < PORTS; i++) {
        open_end(&ends[i], NULL);
        ends[i].port->segmenting &= segmenting;
    }
    for (int step = 0; step < STEPS; step++) {
        struct end *end = &ends[prng_below(&prng, PORTS)];
        const uint32_t number = (uint32_t)prng_below(&prng, GROUPS);
        const struct gid group = group_of(number);
        if (prng_below(&prng, 3) == 0) {
            if (end->joined[number]) {
                udp_port_leave(end->port, &group);
            } else {
                assert_int_equal(udp_port_join(end->port, &group), STATUS_OK);
            }
            end->joined[number] = !end->joined[number];
            continue;
        }
        const uint32_t count = 1 + (uint32_t)prng_below(&prng, 40);
        transmit(end, &group, (uint8_t)prng_below(&prng, 256),
                 (uint32_t)prng_below(&prng, PAYLOAD_MAX + 1), count);
        for (int i = 0; i < PORTS; i++) {
            assert_int_equal(arrived_at(&ends[i]), ends[i].joined[number] ? count : 0);
            copies += ends[i].joined[number];
        }
    }
    assert_true(copies > STEPS / 4);
    for (int i = 0; i < PORTS; i++) {
        close_end(&ends[i]);
    }
}

static void test_all_that_joined(void **state)
{
    (void)state;
    exchange(false, 1);
}

static void test_all_that_joined_segmented(void **state)
{
    (void)state;
    exchange(true, 2);
}

static void test_as_many_as_promised(void **state)
{
    (void)state;
    struct end end;
    open_end(&end, NULL);
    for (uint32_t i = 0; i < UDP_GROUPS_MAX; i++) {
        const struct gid group = group_of(i);
        assert_int_equal(udp_port_join(end.port, &group), STATUS_OK);
    }
    struct gid further = group_of(0);
    further.bytes[12] = 238;
    assert_int_equal(udp_port_join(end.port, &further), STATUS_FULL);
    for (uint32_t i = 0; i < UDP_GROUPS_MAX; i++) {
        const struct gid group = group_of(i * 37 % UDP_GROUPS_MAX);
        transmit(&end, &group, 1, 64, 1);
        assert_int_equal(arrived_at(&end), 1);
        udp_port_leave(end.port, &group);
        transmit(&end, &group, 1, 64, 1);
        assert_int_equal(arrived_at(&end), 0);
    }
    close_end(&end);
}

/* A port is closed as by an exit handler in a child of fork, whose descriptors have been closed. */
static void test_leaving_without_sockets(void **state)
{
    (void)state;
    struct end end;
    int fds[3];
    open_end(&end, NULL);
    for (uint32_t i = 0; i < COUNT_OF(fds); i++) {
        const struct gid group = group_of(i);
        assert_int_equal(udp_port_join(end.port, &group), STATUS_OK);
        fds[i] = end.port->groups[i].fd;
    }
    const int epoll = end.port->groups_fd;
    udp_port_forget_sockets(end.port);
    for (uint32_t i = 0; i < COUNT_OF(fds); i++) {
        const struct gid group = group_of(i);
        udp_port_leave(end.port, &group);
        descriptor_close(fds[i]);
    }
    assert_int_equal(end.port->group_count, 0);
    descriptor_close(epoll);
    close_end(&end);
}

/* A raw socket for datagrams to the group alone: other tests fill lo. -1: it is not allowed. */
static int raw_of(const struct gid *group)
{
    const int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP);
    struct sockaddr_in to = {.sin_family = AF_INET};
    memcpy(&to.sin_addr, group->bytes + 12, 4);
    const struct timeval patience = {.tv_sec = 10};
    if (fd >= 0) {
        assert_int_equal(bind(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    }
    return fd;
}

/* The next datagram to the group, from its IP header on. Others came before bind. */
static size_t next_raw(int fd, const struct gid *group, uint8_t *bytes, size_t room)
{
    ssize_t count;
    do {
        count = recv(fd, bytes, room, 0);
        assert_true(count >= 28);
    } while (memcmp(bytes + 16, group->bytes + 12, 4) != 0);
    return (size_t)count;
}

static void test_on_the_wire(void **state)
{
    (void)state;
    const struct gid group = group_of(200);
    const int raw = raw_of(&group);
    if (raw < 0) {
        skip(); /* Only for the administrator. */
    }
    struct end end;
    open_end(&end, NULL);
    end.port->segmenting = false;
    assert_int_equal(udp_port_join(end.port, &group), STATUS_OK);
    static const uint8_t hops[] = {0, 1, 2, 64, 255, 0, 64};
    for (size_t i = 0; i < COUNT_OF(hops); i++) {
        uint8_t bytes[5000];
        const uint32_t payload = (uint32_t)(i * 601);
        transmit(&end, &group, hops[i], payload, 1);
        const size_t count = next_raw(raw, &group, bytes, sizeof(bytes));
        const uint8_t *udp = bytes + 20, *packet = udp + 8;
        const size_t packet_bytes = count - 28;
        assert_int_equal(load_be16(bytes + 4), 0);      /* Identification. */
        assert_int_equal(load_be16(bytes + 6), 0x4000); /* Don't Fragment. */
        assert_int_equal(bytes[8], hops[i]);
        assert_memory_equal(bytes + 12, end.addresses.entries[0].gid.bytes + 12, 4);
        assert_int_equal(load_be16(udp), ROCE_UDP_PORT);
        assert_int_equal(load_be16(udp + 2), ROCE_UDP_PORT);
        assert_int_equal(packet_bytes,
                         HEADERS_BYTES + payload + roce_pad_bytes(payload) + ROCE_ICRC_BYTES);
        struct inet_flow flow = {.source_port = ROCE_UDP_PORT, .destination_port = ROCE_UDP_PORT};
        memcpy(flow.source, end.addresses.entries[0].gid.bytes, 16);
        memcpy(flow.destination, group.bytes, 16);
        const size_t covered = packet_bytes - ROCE_ICRC_BYTES;
        uint32_t crc = icrc_packet(icrc_prefix(&flow, 0, packet_bytes), packet, 12);
        crc = icrc_extend(crc, packet + ROCE_BTH_BYTES, covered - ROCE_BTH_BYTES);
        assert_int_equal(load_le32(packet + covered), icrc_finish(crc));
        assert_int_equal(arrived_at(&end), 1);
    }
    close_end(&end);
    close(raw);
}

/* Loopback carries no IPv6 groups, and tests must not use a real network: we move to a network
 * namespace of our own, where that is allowed. */
static bool move_to_private_network(void)
{
    return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
           system("ip link add nonic6 type veth peer name nonic7 && ip link set nonic6 up && "
                  "ip link set nonic7 up && ip addr add fd77::1/64 dev nonic6 nodad") == 0;
}

static void test_ipv6(void **state)
{
    (void)state;
    if (!move_to_private_network()) {
        skip();
    }
    struct end end;
    open_end(&end, "fd77::1");
    /* Interface-local, link-local, site-local and global ones. */
    static const uint8_t scopes[] = {0x01, 0x02, 0x05, 0x0e};
    for (size_t i = 0; i < COUNT_OF(scopes); i++) {
        struct gid group = {{0xff, (uint8_t)(0x10 | scopes[i])}};
        store_be32(group.bytes + 12, (uint32_t)getpid());
        assert_int_equal(udp_port_join(end.port, &group), STATUS_OK);
        for (uint8_t hops = 0; hops < 3; hops++) {
            transmit(&end, &group, hops, 1000, 20);
            assert_int_equal(arrived_at(&end), 20);
        }
        udp_port_leave(end.port, &group);
        transmit(&end, &group, 1, 1000, 1);
        assert_int_equal(arrived_at(&end), 0);
    }
    /* From an IPv6 address no IPv4 group is reached. */
    const struct gid ipv4 = group_of(1);
    assert_null(udp_port_group_link(end.port, &end.addresses.entries[0].gid, &ipv4, 1));
    assert_int_equal(udp_port_join(end.port, &ipv4), STATUS_INVALID);
    close_end(&end);
}

int main(void)
{
    struct prng prng;
    prng_init(&prng, 1);
    for (size_t i = 0; i < sizeof(sent.memory); i++) {
        sent.memory[i] = (uint8_t)prng_next(&prng);
    }
    for (size_t i = 0; i < sizeof(sent.headers); i++) {
        sent.headers[i] = (uint8_t)prng_next(&prng);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_joined),
        cmocka_unit_test(test_all_that_joined_segmented),
        cmocka_unit_test(test_as_many_as_promised),
        cmocka_unit_test(test_leaving_without_sockets),
        cmocka_unit_test(test_on_the_wire),
        cmocka_unit_test(test_ipv6), /* Last: it leaves this network. */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
