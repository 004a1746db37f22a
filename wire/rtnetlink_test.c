/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What the kernel tells of links and addresses is understood as rtnetlink(7) says; whatever
 *         else comes has a verdict, and nothing behind its end is read.
 * Method  Messages put together from the kernel's structs; every way to cut one off; every octet of
 *         one changed; random octets. Each in memory of exactly its size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/prng.h"
#include "wire/rtnetlink.h"

#define ROOM 512

struct datagram {
    uint8_t bytes[ROOM];
    size_t count, message; /* Where the newest message begins. */
};

static void put(struct datagram *datagram, const void *bytes, size_t count)
{
    memcpy(datagram->bytes + datagram->count, bytes, count);
    datagram->count += count;
    const struct nlmsghdr *header = (const void *)(datagram->bytes + datagram->message);
    struct nlmsghdr changed = *header;
    changed.nlmsg_len = (uint32_t)(datagram->count - datagram->message);
    memcpy(datagram->bytes + datagram->message, &changed, sizeof(changed));
}

static void begin(struct datagram *datagram, uint16_t type, uint16_t flags)
{
    const struct nlmsghdr header = {
        .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = 7, .nlmsg_pid = 9};
    datagram->count = NLMSG_ALIGN(datagram->count);
    datagram->message = datagram->count;
    put(datagram, &header, sizeof(header));
}

static void put_attribute(struct datagram *datagram, uint16_t type, const void *value, size_t count)
{
    static const uint8_t padding[4];
    const struct nlattr attribute = {.nla_len = (uint16_t)(sizeof(attribute) + count),
                                     .nla_type = type};
    put(datagram, padding, NLMSG_ALIGN(datagram->count) - datagram->count);
    put(datagram, &attribute, sizeof(attribute));
    put(datagram, value, count);
}

static void put_link(struct datagram *datagram, uint16_t type, uint8_t family, int index,
                     uint32_t flags)
{
    const struct ifinfomsg link = {.ifi_family = family, .ifi_index = index, .ifi_flags = flags};
    begin(datagram, type, 0);
    put(datagram, &link, sizeof(link));
    put_attribute(datagram, IFLA_IFNAME, "rdma0", 6);
}

static void put_address(struct datagram *datagram, uint16_t type, uint8_t family, uint8_t flags)
{
    const struct ifaddrmsg address = {.ifa_family = family, .ifa_flags = flags, .ifa_index = 5};
    begin(datagram, type, 0);
    put(datagram, &address, sizeof(address));
}

static const uint8_t v4[4] = {10, 77, 0, 1}, v4_peer[4] = {10, 77, 0, 2};
static const uint8_t v6[16] = {0xfd, 0x77, [15] = 1};
static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 10, 77, 0, 1};

/* In memory that ends where it ends, so that a sanitizer sees what is read behind. */
static enum rtnetlink_verdict next(const struct datagram *datagram, size_t count, size_t *at,
                                   struct rtnetlink_message *message)
{
    uint8_t *exact = malloc(count + (count == 0));
    memcpy(exact, datagram->bytes, count);
    const enum rtnetlink_verdict verdict = rtnetlink_next(exact, count, at, message);
    free(exact);
    return verdict;
}

static struct rtnetlink_message only(const struct datagram *datagram)
{
    struct rtnetlink_message message;
    size_t at = 0;
    assert_int_equal(next(datagram, datagram->count, &at, &message), RTNETLINK_MESSAGE);
    assert_int_equal(at, datagram->count);
    assert_int_equal(next(datagram, datagram->count, &at, &message), RTNETLINK_END);
    at = 0;
    assert_int_equal(next(datagram, datagram->count, &at, &message), RTNETLINK_MESSAGE);
    return message;
}

static void expect_link(uint16_t type, uint32_t flags, enum rtnetlink_kind kind, bool up,
                        bool carrier)
{
    struct datagram datagram = {0};
    put_link(&datagram, type, AF_UNSPEC, 3, flags);
    const struct rtnetlink_message message = only(&datagram);
    assert_int_equal(message.kind, kind);
    assert_int_equal(message.interface_index, 3);
    assert_int_equal(message.up, up);
    assert_int_equal(message.carrier, carrier);
    assert_int_equal(message.sequence, 7);
    assert_int_equal(message.port_id, 9);
    assert_false(message.interrupted);
}

static void test_links(void **state)
{
    (void)state;
    expect_link(RTM_NEWLINK, IFF_UP | IFF_LOWER_UP | IFF_RUNNING, RTNETLINK_LINK, true, true);
    expect_link(RTM_NEWLINK, IFF_UP | IFF_BROADCAST, RTNETLINK_LINK, true, false);
    expect_link(RTM_NEWLINK, IFF_BROADCAST, RTNETLINK_LINK, false, false);
    expect_link(RTM_DELLINK, IFF_UP, RTNETLINK_LINK_GONE, true, false);
}

/* Bridges tell of their ports by the same types. */
static void test_bridges(void **state)
{
    (void)state;
    struct datagram datagram = {0};
    put_link(&datagram, RTM_DELLINK, AF_BRIDGE, 3, IFF_UP);
    assert_int_equal(only(&datagram).kind, RTNETLINK_OTHER);
}

static void expect_address(const struct datagram *datagram, enum rtnetlink_kind kind,
                           const uint8_t address[16])
{
    const struct rtnetlink_message message = only(datagram);
    assert_int_equal(message.kind, kind);
    assert_int_equal(message.interface_index, 5);
    assert_memory_equal(message.address, address, 16);
}

static void test_addresses(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        const uint16_t type = gone ? RTM_DELADDR : RTM_NEWADDR;
        const enum rtnetlink_kind kind = gone ? RTNETLINK_ADDRESS_GONE : RTNETLINK_ADDRESS;
        struct datagram datagram = {0};
        put_address(&datagram, type, AF_INET, IFA_F_PERMANENT);
        put_attribute(&datagram, IFA_ADDRESS, v4, 4);
        expect_address(&datagram, kind, mapped);
        datagram = (struct datagram){0};
        put_address(&datagram, type, AF_INET6, 0);
        put_attribute(&datagram, IFA_ADDRESS, v6, 16);
        expect_address(&datagram, kind, v6);
    }
    /* In either order, IFA_LOCAL is ours and IFA_ADDRESS the peer's. */
    for (int first = 0; first < 2; first++) {
        struct datagram datagram = {0};
        put_address(&datagram, RTM_NEWADDR, AF_INET, 0);
        put_attribute(&datagram, first ? IFA_LOCAL : IFA_ADDRESS, first ? v4 : v4_peer, 4);
        put_attribute(&datagram, first ? IFA_ADDRESS : IFA_LOCAL, first ? v4_peer : v4, 4);
        expect_address(&datagram, RTNETLINK_ADDRESS, mapped);
    }
}

/* Both of the message and, where all 32 do not fit, of an attribute. */
static void test_addresses_not_yet_usable(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        bool usable;
    } cases[] = {{0, true},
                 {IFA_F_PERMANENT | IFA_F_NODAD, true},
                 {IFA_F_TENTATIVE, false},
                 {IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, true},
                 {IFA_F_DADFAILED, false},
                 {IFA_F_DADFAILED | IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, false},
                 {IFA_F_DEPRECATED, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int attribute = 0; attribute < 2; attribute++) {
            const uint32_t flags = cases[i].flags | (attribute ? IFA_F_NOPREFIXROUTE : 0);
            struct datagram datagram = {0};
            put_address(&datagram, RTM_NEWADDR, AF_INET6, (uint8_t)(attribute ? 0 : flags));
            put_attribute(&datagram, IFA_ADDRESS, v6, 16);
            if (attribute) {
                put_attribute(&datagram, IFA_FLAGS, &flags, 4);
            }
            expect_address(&datagram, cases[i].usable ? RTNETLINK_ADDRESS : RTNETLINK_ADDRESS_GONE,
                           v6);
        }
    }
}

static void test_ends(void **state)
{
    (void)state;
    const int error = -1, none = 0;
    struct datagram datagram = {0};
    begin(&datagram, NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR);
    put(&datagram, &none, sizeof(none));
    assert_int_equal(only(&datagram).kind, RTNETLINK_DONE);
    assert_true(only(&datagram).interrupted);
    datagram = (struct datagram){0};
    begin(&datagram, NLMSG_DONE, NLM_F_MULTI);
    put(&datagram, &error, sizeof(error));
    assert_int_equal(only(&datagram).kind, RTNETLINK_REFUSED);
    datagram = (struct datagram){0};
    begin(&datagram, NLMSG_ERROR, 0);
    put(&datagram, &error, sizeof(error));
    assert_int_equal(only(&datagram).kind, RTNETLINK_REFUSED);
    datagram = (struct datagram){0};
    begin(&datagram, NLMSG_OVERRUN, 0);
    assert_int_equal(only(&datagram).kind, RTNETLINK_OVERRUN);
    datagram = (struct datagram){0};
    begin(&datagram, RTM_NEWROUTE, 0);
    assert_int_equal(only(&datagram).kind, RTNETLINK_OTHER);
}

static struct datagram several(void)
{
    struct datagram datagram = {0};
    put_link(&datagram, RTM_NEWLINK, AF_UNSPEC, 3, IFF_UP);
    put_address(&datagram, RTM_NEWADDR, AF_INET, 0);
    put_attribute(&datagram, IFA_LABEL, "x", 2); /* Ends in the middle of a word. */
    put_attribute(&datagram, IFA_LOCAL, v4, 4);
    begin(&datagram, NLMSG_DONE, NLM_F_MULTI);
    return datagram;
}

static void test_several(void **state)
{
    (void)state;
    const struct datagram datagram = several();
    static const enum rtnetlink_kind kinds[] = {RTNETLINK_LINK, RTNETLINK_ADDRESS, RTNETLINK_DONE};
    struct rtnetlink_message message;
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(next(&datagram, datagram.count, &at, &message), RTNETLINK_MESSAGE);
        assert_int_equal(message.kind, kinds[i]);
    }
    assert_int_equal(next(&datagram, datagram.count, &at, &message), RTNETLINK_END);
}

/* Cut off anywhere but between two messages, the last one is none. */
static void test_lengths(void **state)
{
    (void)state;
    const struct datagram whole = several();
    struct rtnetlink_message message;
    uint32_t ends = 0;
    for (size_t count = 0; count <= whole.count; count++) {
        size_t at = 0;
        enum rtnetlink_verdict verdict;
        while ((verdict = next(&whole, count, &at, &message)) == RTNETLINK_MESSAGE) {
        }
        ends += verdict == RTNETLINK_END;
    }
    /* Behind each of three, with or without the padding of the first, and at the beginning. */
    assert_int_equal(ends, 6);
}

static void expect_malformed(const struct datagram *datagram)
{
    struct rtnetlink_message message;
    size_t at = 0;
    assert_int_equal(next(datagram, datagram->count, &at, &message), RTNETLINK_MALFORMED);
    assert_int_equal(at, 0);
}

static void test_malformed(void **state)
{
    (void)state;
    struct datagram datagram = {0};
    put_address(&datagram, RTM_NEWADDR, AF_INET, 0); /* No address at all. */
    expect_malformed(&datagram);
    put_attribute(&datagram, IFA_LOCAL, v6, 16); /* One of the other family. */
    expect_malformed(&datagram);
    datagram = (struct datagram){0};
    put_address(&datagram, RTM_NEWADDR, AF_INET6, 0);
    put_attribute(&datagram, IFA_ADDRESS, v6, 16);
    put_attribute(&datagram, IFA_FLAGS, v6, 3);
    expect_malformed(&datagram);
    datagram = (struct datagram){0};
    put_link(&datagram, RTM_NEWLINK, AF_UNSPEC, 0, IFF_UP); /* No interface has this number. */
    expect_malformed(&datagram);
    datagram = (struct datagram){0};
    begin(&datagram, NLMSG_ERROR, 0); /* No number of an error. */
    expect_malformed(&datagram);
}

/* An attribute lies in its message, and has room for its own header. */
static void test_malformed_attributes(void **state)
{
    (void)state;
    static const uint16_t lengths[] = {0, 3, 9, 0xffff};
    struct datagram good = {0};
    put_address(&good, RTM_NEWADDR, AF_INET, 0);
    put_attribute(&good, IFA_LOCAL, v4, 4);
    assert_int_equal(only(&good).kind, RTNETLINK_ADDRESS);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct datagram bad = good;
        memcpy(bad.bytes + good.count - 8, &lengths[i], 2);
        expect_malformed(&bad);
    }
    put(&good, "\0\0", 2); /* No room for another one. */
    expect_malformed(&good);
}

static void walk(const uint8_t *bytes, size_t count)
{
    struct rtnetlink_message message;
    size_t at = 0, before = 0;
    uint8_t *exact = malloc(count);
    memcpy(exact, bytes, count);
    while (rtnetlink_next(exact, count, &at, &message) == RTNETLINK_MESSAGE) {
        assert_true(at > before && at <= count);
        before = at;
    }
    free(exact);
}

static void test_any_octets(void **state)
{
    (void)state;
    const struct datagram whole = several();
    for (size_t i = 0; i < whole.count; i++) {
        for (int value = 0; value < 256; value++) {
            struct datagram changed = whole;
            changed.bytes[i] = (uint8_t)value;
            walk(changed.bytes, changed.count);
        }
    }
    struct prng prng;
    prng_init(&prng, 5);
    for (int round = 0; round < 20000; round++) {
        struct datagram random = whole;
        for (int i = 0; i < 8; i++) {
            random.bytes[prng_below(&prng, whole.count)] = (uint8_t)prng_next(&prng);
        }
        walk(random.bytes, 1 + prng_below(&prng, whole.count));
    }
}

static void test_requests(void **state)
{
    (void)state;
    static const uint8_t links[] = {
        40, 0, 0,  0, 18, 0, 1, 3, 0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0, /* RTM_GETLINK, a dump. */
        0,  0, 0,  0, 0,  0, 0, 0, 0,    0,    0,    0,    0, 0, 0, 0, /* All families. */
        8,  0, 29, 0, 8,  0, 0, 0};                                    /* Without statistics. */
    static const uint8_t addresses[] = {24, 0, 0, 0, 22, 0, 1, 3, 0x44, 0x33, 0x22, 0x11,
                                        0,  0, 0, 0, 0,  0, 0, 0, 0,    0,    0,    0};
    uint8_t bytes[RTNETLINK_REQUEST_BYTES_MAX];
    memset(bytes, 0xee, sizeof(bytes));
    assert_int_equal(rtnetlink_ask_links(bytes, 0x11223344), sizeof(links));
    assert_memory_equal(bytes, links, sizeof(links));
    memset(bytes, 0xee, sizeof(bytes));
    assert_int_equal(rtnetlink_ask_addresses(bytes, 0x11223344), sizeof(addresses));
    assert_memory_equal(bytes, addresses, sizeof(addresses));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_bridges),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_addresses_not_yet_usable),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_malformed_attributes),
        cmocka_unit_test(test_any_octets),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
