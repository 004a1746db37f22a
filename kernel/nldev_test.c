/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Requests for RDMA devices are answered as a kernel answers them, byte for byte; none that
 *         a program can make is answered with anything but whole messages, or reads outside itself.
 * Method  Requests as iproute2's `rdma` sends them, against replies written down here; then each of
 *         them with every length cut off, every byte changed, and attributes of wrong sizes. Then
 *         objects as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "kernel/nldev.h"

#define PORT_ID 0x01020304u
#define ROOM    (8 * NLDEV_DATAGRAM_BYTES)

static const struct nldev_counter counters[] = {
    {"sent", 7}, {"received", 0}, {"rare", 0}, {"odd", 9}};

static struct nldev_resource objects[2];

static struct nldev_device make_device(void)
{
    memset(objects, 0, sizeof(objects));
    for (uint32_t i = 0; i < 2; i++) {
        objects[i].pid = 100 + i;
        nldev_set(&objects[i], NLDEV_NUMBER, 17 + i);
        nldev_set(&objects[i], QP_TYPE, 2);
        nldev_set(&objects[i], QP_STATE, 3);
        nldev_set(&objects[i], QP_SEND_PSN, 5);
    }
    return (struct nldev_device){
        .name = "nonic0",
        .firmware = "1.2",
        .protocol = "roce",
        .node_guid = 0x1122334455667788u,
        .capabilities = 0x10,
        .node_type = 1,
        .port_state = 4,
        .port_physical_state = 5,
        .interface_index = 2,
        .interface_name = "eth0",
        .verbs_number = 0xe7c0,
        .cm_number = 0xa7b,
        .verbs_name = "uverbs0",
        .verbs_abi = 1,
        .cm_abi = 4,
        .totals = {1, 2, 3, 4, 5, 6, 7},
        .resources = objects,
        .resource_count = 2,
        .counters = counters,
        .counter_count = COUNT_OF(counters),
        .lasting_counters = 2,
    };
}

static uint8_t reply[ROOM];

/* A request in memory of exactly its size, so that a sanitizer sees what is read behind it. Returns
 * the length of the answer in `reply`. */
static size_t ask(const void *bytes, size_t count, const struct nldev_device *device)
{
    struct nldev_out out = {.bytes = reply, .room = sizeof(reply), .port_id = PORT_ID};
    struct nldev_request request;
    uint8_t *exact = malloc(count == 0 ? 1 : count);
    memcpy(exact, bytes, count);
    for (size_t at = 0; nldev_next(exact, count, &at, &request);) {
        assert_true(at <= count);
        nldev_answer(&request, device, &out);
    }
    free(exact);
    return out.used;
}

/* -- Requests -----------------------------------------------------------------------------------*/

struct message {
    struct nlmsghdr header;
    uint8_t rest[256];
};

static struct message message(int command, uint16_t flags)
{
    return (struct message){
        .header = {.nlmsg_len = sizeof(struct nlmsghdr),
                   .nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
                   .nlmsg_flags = NLM_F_REQUEST | flags,
                   .nlmsg_seq = 0x0a0b0c0d}};
}

static void attach(struct message *message, uint16_t type, const void *value, size_t bytes)
{
    const struct nlattr attribute = {(uint16_t)(sizeof(attribute) + bytes), type};
    uint8_t *to = (uint8_t *)message + message->header.nlmsg_len;
    memcpy(to, &attribute, sizeof(attribute));
    memcpy(to + sizeof(attribute), value, bytes);
    message->header.nlmsg_len += (uint32_t)((sizeof(attribute) + bytes + 3) & ~(size_t)3);
}

static void attach_u32(struct message *message, uint16_t type, uint32_t value)
{
    attach(message, type, &value, sizeof(value));
}

/* About port 1 of device 0. */
static struct message port_message(int command, uint16_t flags)
{
    struct message one = message(command, flags);
    attach_u32(&one, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
    attach_u32(&one, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    return one;
}

static size_t ask_message(const struct message *message, const struct nldev_device *device)
{
    return ask(message, message->header.nlmsg_len, device);
}

/* -- Answers ------------------------------------------------------------------------------------*/

static struct nlmsghdr header_at(size_t at)
{
    struct nlmsghdr header;
    memcpy(&header, reply + at, sizeof(header));
    return header;
}

/* The answer is one message: this error, for the request. */
static void expect_error(const struct message *message, const struct nldev_device *device,
                         int error)
{
    const size_t count = ask_message(message, device);
    const struct nlmsghdr header = header_at(0);
    int32_t code;
    memcpy(&code, reply + sizeof(header), sizeof(code));
    assert_int_equal(header.nlmsg_type, NLMSG_ERROR);
    assert_int_equal(-code, error);
    assert_int_equal(header.nlmsg_len, count);
    assert_int_equal(header.nlmsg_seq, message->header.nlmsg_seq);
    assert_int_equal(header.nlmsg_pid, PORT_ID);
    assert_memory_equal(reply + sizeof(header) + sizeof(code), message,
                        error == 0 ? sizeof(header) : message->header.nlmsg_len);
    assert_int_equal(header.nlmsg_flags, error == 0 ? NLM_F_CAPPED : 0);
}

/* The value of an attribute in `bytes`; NULL: it is not there. */
static const uint8_t *find(const uint8_t *bytes, size_t count, uint16_t type, size_t *length)
{
    *length = 0;
    for (size_t at = 0; at < count;) {
        struct nlattr attribute;
        memcpy(&attribute, bytes + at, sizeof(attribute));
        assert_true(attribute.nla_len >= sizeof(attribute) && attribute.nla_len <= count - at);
        if ((attribute.nla_type & 0x3fff) == type) {
            *length = attribute.nla_len - sizeof(attribute);
            return bytes + at + sizeof(attribute);
        }
        at += (attribute.nla_len + 3u) & ~3u;
    }
    return NULL;
}

static uint32_t u32_in(const uint8_t *bytes, size_t count, uint16_t type)
{
    size_t length;
    uint32_t value;
    const uint8_t *found = find(bytes, count, type, &length);
    assert_non_null(found);
    assert_int_equal(length, sizeof(value));
    memcpy(&value, found, sizeof(value));
    return value;
}

static const char *text_in(const uint8_t *bytes, size_t count, uint16_t type)
{
    size_t length;
    const uint8_t *found = find(bytes, count, type, &length);
    assert_non_null(found);
    assert_int_equal(found[length - 1], '\0');
    return (const char *)found;
}

/* -- Golden -------------------------------------------------------------------------------------*/

/* Bytes in hexadecimal, as they lie in memory: numbers are little-endian, as on all machines that
 * nonic runs on. Returns how many. */
static size_t from_hex(const char *text, uint8_t *bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 0;
    for (; *text != '\0'; text++) {
        if (*text != ' ') {
            const size_t high = (size_t)(strchr(digits, text[0]) - digits);
            const size_t low = (size_t)(strchr(digits, text[1]) - digits);
            bytes[count++] = (uint8_t)(high << 4 | low);
            text++;
        }
    }
    return count;
}

static void expect_bytes(size_t count, const char *hex)
{
    uint8_t expected[512];
    assert_int_equal(count, from_hex(hex, expected));
    assert_memory_equal(reply, expected, count);
}

#define INDEX "0800 0100 00000000 "
#define NAME  "0b00 0200 6e6f6e69633000 00 "
#define PORT  "0800 0300 01000000 "
#define DONE  "14000000 0300 0200 0d0c0b0a 04030201 00000000"

/* `rdma dev`: all devices, and the end. */
static void test_devices(void **state)
{
    (void)state;
    uint8_t request[16];
    const struct nldev_device device = make_device();
    const size_t count = from_hex("10000000 0114 0503 0d0c0b0a 00000000", request);
    expect_bytes(ask(request, count, &device), /* header */
                 "74000000 0114 0200 0d0c0b0a 04030201 " INDEX NAME PORT
                 "0c00 0400 1000000000000000 " /* capabilities */
                 "0800 0500 312e3200 "         /* firmware */
                 "0c00 0600 8877665544332211 " /* node GUID */
                 "0c00 0700 8877665544332211 " /* the system image's */
                 "0500 0e00 01000000 "         /* node type */
                 "0500 5400 00000000 "         /* no moderation */
                 "0900 4300 726f636500000000 " /* protocol */
                 DONE);
    expect_bytes(ask(request, count, NULL), DONE);
}

/* `rdma link show nonic0/1`, with its acknowledgement. */
static void test_port(void **state)
{
    (void)state;
    struct nldev_device device = make_device();
    const struct message request = port_message(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK);
    expect_bytes(ask_message(&request, &device),
                 "50000000 0514 0000 0d0c0b0a 04030201 " INDEX NAME PORT
                 "0500 0c00 04000000 "                            /* ACTIVE */
                 "0500 0d00 05000000 "                            /* LINK_UP */
                 "0800 3200 02000000 0900 3300 6574683000000000 " /* network interface */
                 "24000000 0200 0001 0d0c0b0a 04030201 00000000 " /* error 0, for: */
                 "20000000 0514 0500 0d0c0b0a 00000000");
    /* The reply, then the acknowledgement, in datagrams of their own. */
    assert_int_equal(nldev_datagram(reply, 116), 80);
    assert_int_equal(nldev_datagram(reply + 80, 36), 36);
    size_t length;
    device.interface_index = 0;
    ask_message(&request, &device);
    assert_null(find(reply + 16, header_at(0).nlmsg_len - 16, RDMA_NLDEV_ATTR_NDEV_INDEX, &length));
}

static void test_totals(void **state)
{
    (void)state;
    static const char *const names[] = {"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"};
    const struct nldev_device device = make_device();
    const struct message request = message(RDMA_NLDEV_CMD_RES_GET, NLM_F_DUMP);
    size_t length, at = 0;
    uint64_t value;
    ask_message(&request, &device);
    const uint8_t *table =
        find(reply + 16, header_at(0).nlmsg_len - 16, RDMA_NLDEV_ATTR_RES_SUMMARY, &length);
    assert_non_null(table);
    for (uint64_t i = 0; i < NLDEV_KINDS; i++) {
        size_t entry_length, value_length;
        const uint8_t *entry =
            find(table + at, length - at, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, &entry_length);
        assert_string_equal(text_in(entry, entry_length, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME),
                            names[i]);
        assert_string_equal(nldev_kind_name((enum nldev_kind)i), names[i]);
        memcpy(&value,
               find(entry, entry_length, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, &value_length), 8);
        assert_int_equal(value, i + 1);
        at += 4 + entry_length;
    }
    assert_int_equal(at, length);
}

/* Two objects are two messages; one that is asked for by its number stands for itself. */
static void test_objects(void **state)
{
    (void)state;
    const struct nldev_device device = make_device();
    struct message request = port_message(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP);
    const size_t count = ask_message(&request, &device);
    size_t at = 0, length;
    for (uint32_t i = 0; i < 2; i++) {
        const size_t bytes = header_at(at).nlmsg_len;
        const uint8_t *entry = find(reply + at + 16, bytes - 16, RDMA_NLDEV_ATTR_RES_QP, &length);
        entry = find(entry, length, RDMA_NLDEV_ATTR_RES_QP_ENTRY, &length);
        assert_int_equal(u32_in(entry, length, RDMA_NLDEV_ATTR_RES_LQPN), 17 + i);
        assert_int_equal(u32_in(entry, length, RDMA_NLDEV_ATTR_RES_PID), 100 + i);
        assert_int_equal(u32_in(entry, length, RDMA_NLDEV_ATTR_RES_SQ_PSN), 5);
        at += bytes;
    }
    assert_int_equal(header_at(at).nlmsg_type, NLMSG_DONE);
    assert_int_equal(at + 20, count);

    request = port_message(RDMA_NLDEV_CMD_RES_QP_GET, 0);
    attach_u32(&request, RDMA_NLDEV_ATTR_RES_LQPN, 18);
    const size_t one = ask_message(&request, &device);
    assert_int_equal(one, header_at(0).nlmsg_len);
    assert_int_equal(u32_in(reply + 16, header_at(0).nlmsg_len - 16, RDMA_NLDEV_ATTR_RES_PID), 101);
    request = port_message(RDMA_NLDEV_CMD_RES_QP_GET, 0);
    attach_u32(&request, RDMA_NLDEV_ATTR_RES_LQPN, 19);
    expect_error(&request, &device, ENOENT);
    request = port_message(RDMA_NLDEV_CMD_RES_QP_GET, 0);
    expect_error(&request, &device, EINVAL);
}

static void test_addresses(void **state)
{
    (void)state;
    struct nldev_device device = make_device();
    struct nldev_resource *id = &objects[0];
    struct message request = port_message(RDMA_NLDEV_CMD_RES_CM_ID_GET, 0);
    size_t length;
    attach_u32(&request, RDMA_NLDEV_ATTR_RES_CM_IDN, 17);
    *id = (struct nldev_resource){.pid = 1};
    nldev_set(id, NLDEV_NUMBER, 17);
    nldev_set(id, CM_ID_SOURCE, AF_INET);
    nldev_set(id, CM_ID_SOURCE + 1, 0x1234);
    nldev_set(id, CM_ID_SOURCE + 3, 0xffff7f000001);
    nldev_set(id, CM_ID_DESTINATION, AF_INET6);
    nldev_set(id, CM_ID_DESTINATION + 2, UINT64_C(0xfe80000000000000));
    nldev_set(id, CM_ID_DESTINATION + 3, 9);
    ask_message(&request, &device);
    const size_t bytes = header_at(0).nlmsg_len - 16;
    static const uint8_t source[] = {AF_INET, 0, 0x12, 0x34, 127, 0, 0, 1};
    static const uint8_t destination[24] = {AF_INET6, 0, [8] = 0xfe, 0x80, [23] = 9};
    const uint8_t *found = find(reply + 16, bytes, RDMA_NLDEV_ATTR_RES_SRC_ADDR, &length);
    assert_int_equal(length, sizeof(struct sockaddr_storage));
    assert_memory_equal(found, source, sizeof(source));
    found = find(reply + 16, bytes, RDMA_NLDEV_ATTR_RES_DST_ADDR, &length);
    assert_memory_equal(found, destination, sizeof(destination));
}

/* Counters that last are always there, others when they counted. */
static void test_counters(void **state)
{
    (void)state;
    static const char *const names[] = {"sent", "received", "odd"};
    const struct nldev_device device = make_device();
    const struct message request = port_message(RDMA_NLDEV_CMD_STAT_GET, 0);
    size_t length, at = 0;
    ask_message(&request, &device);
    const uint8_t *table =
        find(reply + 16, header_at(0).nlmsg_len - 16, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, &length);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t entry_length;
        const uint8_t *entry =
            find(table + at, length - at, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, &entry_length);
        assert_string_equal(text_in(entry, entry_length, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME),
                            names[i]);
        at += 4 + entry_length;
    }
    assert_int_equal(at, length);
}

/* A message has no room for all of them: it is whole all the same, and says as many as fit. */
static void test_too_many_counters(void **state)
{
    (void)state;
    static struct nldev_counter many[400];
    struct nldev_device device = make_device();
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        many[i] = (struct nldev_counter){"a_counter_with_a_name", i};
    }
    device.counters = many;
    device.counter_count = device.lasting_counters = COUNT_OF(many);
    const struct message request = port_message(RDMA_NLDEV_CMD_STAT_GET, NLM_F_ACK);
    const size_t count = ask_message(&request, &device);
    const size_t first = nldev_datagram(reply, count);
    assert_in_range(first, NLDEV_DATAGRAM_BYTES - 64, NLDEV_DATAGRAM_BYTES);
    assert_int_equal(nldev_datagram(reply + first, count - first), 36);
}

static void test_many_objects(void **state)
{
    (void)state;
    static struct nldev_resource many[2000];
    struct nldev_device device = make_device();
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        nldev_set(&many[i], NLDEV_NUMBER, i);
    }
    device.resources = many;
    device.resource_count = COUNT_OF(many);
    const struct message request = port_message(RDMA_NLDEV_CMD_RES_CTX_GET, NLM_F_DUMP);
    const size_t count = ask_message(&request, &device);
    size_t at = 0, last = 0;
    while (at < count) {
        const size_t bytes = nldev_datagram(reply + at, count - at);
        assert_in_range(bytes, 16, NLDEV_DATAGRAM_BYTES);
        last = at;
        at += bytes;
    }
    assert_int_equal(at, count);
    while (header_at(last).nlmsg_type != NLMSG_DONE) {
        last += header_at(last).nlmsg_len;
    }
    assert_int_equal(last + 20, count);
    /* An answer for which there is no room is not begun. */
    struct nldev_out out = {.bytes = reply, .room = sizeof(reply), .used = sizeof(reply) - 100};
    struct nldev_request one;
    size_t next = 0;
    assert_true(nldev_next((const uint8_t *)&request, request.header.nlmsg_len, &next, &one));
    assert_false(nldev_answer(&one, &device, &out));
    assert_int_equal(out.used, sizeof(reply) - 100);
}

static void test_system(void **state)
{
    (void)state;
    const struct message request = message(RDMA_NLDEV_CMD_SYS_GET, 0);
    size_t length;
    const size_t count = ask_message(&request, NULL);
    assert_int_equal(*find(reply + 16, count - 16, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, &length), 0);
    assert_int_equal(*find(reply + 16, count - 16, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, &length), 1);
}

/* As librdmacm asks. */
static void test_chardev(void **state)
{
    (void)state;
    const struct nldev_device device = make_device();
    struct message request = message(RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_ACK);
    uint64_t number;
    size_t length;
    attach(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", 8);
    ask_message(&request, &device);
    const size_t bytes = header_at(0).nlmsg_len - 16;
    assert_string_equal(text_in(reply + 16, bytes, RDMA_NLDEV_ATTR_CHARDEV_NAME), "rdma_cm");
    memcpy(&number, find(reply + 16, bytes, RDMA_NLDEV_ATTR_CHARDEV, &length), sizeof(number));
    assert_int_equal(number, 0xa7b);
    expect_error(&request, NULL, EOPNOTSUPP);

    request = message(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
    attach(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "umad", 5);
    expect_error(&request, &device, EOPNOTSUPP);
    request = message(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
    expect_error(&request, &device, EINVAL);
    attach(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", 7); /* Without its end. */
    expect_error(&request, &device, EINVAL);
    request = message(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
    static const char name[NLDEV_NAME_BYTES + 1] = "";
    attach(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, name, sizeof(name));
    expect_error(&request, &device, ERANGE);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

static void test_refused(void **state)
{
    (void)state;
    static const int changes[] = {RDMA_NLDEV_CMD_SET,           RDMA_NLDEV_CMD_NEWLINK,
                                  RDMA_NLDEV_CMD_DELLINK,       RDMA_NLDEV_CMD_SYS_SET,
                                  RDMA_NLDEV_CMD_STAT_SET,      RDMA_NLDEV_CMD_STAT_DEL,
                                  RDMA_NLDEV_CMD_RES_QP_GET_RAW};
    static const int unknown[] = {RDMA_NLDEV_CMD_UNSPEC, 8, RDMA_NLDEV_NUM_OPS, 1023};
    const struct nldev_device device = make_device();
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        const struct message request = port_message(changes[i], 0);
        expect_error(&request, &device, EOPNOTSUPP);
    }
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        const struct message request = port_message(unknown[i], 0);
        expect_error(&request, &device, EINVAL);
    }
    struct message request = message(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
    request.header.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_LS, RDMA_NL_LS_OP_RESOLVE);
    expect_error(&request, &device, EINVAL);
}

static void test_targets(void **state)
{
    (void)state;
    const struct nldev_device device = make_device();
    struct message request = message(RDMA_NLDEV_CMD_GET, 0);
    expect_error(&request, &device, EINVAL); /* No device. */
    attach_u32(&request, RDMA_NLDEV_ATTR_DEV_INDEX, 1);
    expect_error(&request, &device, EINVAL); /* Another device. */
    request = message(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP);
    expect_error(&request, &device, EINVAL);
    request = message(RDMA_NLDEV_CMD_PORT_GET, 0);
    attach_u32(&request, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
    expect_error(&request, &device, EINVAL); /* No port. */
    attach_u32(&request, RDMA_NLDEV_ATTR_PORT_INDEX, 2);
    expect_error(&request, &device, EINVAL);
    request = port_message(RDMA_NLDEV_CMD_RES_PD_GET, NLM_F_DUMP);
    expect_error(&request, NULL, EINVAL);
    request = message(RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP);
    expect_error(&request, &device, EINVAL); /* Counters of what? */
    attach_u32(&request, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
    assert_int_equal(ask_message(&request, &device), 20); /* Queue pairs have none. */
    request = port_message(RDMA_NLDEV_CMD_STAT_GET, 0);
    attach_u32(&request, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_CTX);
    expect_error(&request, &device, EINVAL);
}

/* Numbers of a wrong size; attributes that do not lie in the message. */
static void test_malformed(void **state)
{
    (void)state;
    const struct nldev_device device = make_device();
    for (size_t bytes = 0; bytes <= 9; bytes++) {
        struct message request = message(RDMA_NLDEV_CMD_GET, 0);
        attach(&request, RDMA_NLDEV_ATTR_DEV_INDEX, "\0\0\0\0\0\0\0\0\0", bytes);
        if (bytes != 4) {
            expect_error(&request, &device, ERANGE);
        }
    }
    for (uint16_t length = 0; length < 64; length++) {
        struct message request = port_message(RDMA_NLDEV_CMD_PORT_GET, 0);
        memcpy(request.rest + 8, &length, sizeof(length));
        const bool good = length == 8, wrong_size = length >= 4 && length < 8;
        if (!good) {
            expect_error(&request, &device, wrong_size ? ERANGE : EINVAL);
        }
    }
    struct message request = port_message(RDMA_NLDEV_CMD_PORT_GET, 0);
    request.header.nlmsg_len += 3; /* Less than an attribute. */
    expect_error(&request, &device, EINVAL);
    /* Attributes that are none of the command's are passed over, whatever they are. */
    request = port_message(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK);
    attach(&request, RDMA_NLDEV_ATTR_RES_LQPN, "x", 1);
    attach(&request, 16000, "", 0);
    assert_int_equal(ask_message(&request, &device), 80 + 36);
}

/* Control messages, and what is no request, are acknowledged if they want it. */
static void test_control(void **state)
{
    (void)state;
    const struct nldev_device device = make_device();
    struct message request = message(RDMA_NLDEV_CMD_GET, NLM_F_ACK);
    request.header.nlmsg_type = NLMSG_NOOP;
    expect_error(&request, &device, 0);
    request = port_message(RDMA_NLDEV_CMD_GET, 0);
    request.header.nlmsg_flags = NLM_F_ACK;
    expect_error(&request, &device, 0);
    request.header.nlmsg_flags = 0;
    assert_int_equal(ask_message(&request, &device), 0);
}

/* An error about a request that fills more than a datagram does not repeat it. */
static void test_long_request(void **state)
{
    (void)state;
    static uint8_t bytes[12000];
    const struct nlmsghdr header = {.nlmsg_len = sizeof(bytes),
                                    .nlmsg_type =
                                        RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SET),
                                    .nlmsg_flags = NLM_F_REQUEST};
    memcpy(bytes, &header, sizeof(header));
    assert_int_equal(ask(bytes, sizeof(bytes), NULL), 36);
    assert_int_equal(header_at(0).nlmsg_flags, NLM_F_CAPPED);
    /* Several requests at once; what is left over is none. */
    const struct message one = message(RDMA_NLDEV_CMD_SYS_GET, 0);
    memcpy(bytes, &one, 16);
    memcpy(bytes + 16, &one, 16);
    assert_int_equal(ask(bytes, 40, NULL), 64);
    assert_int_equal(ask(bytes, 15, NULL), 0);
}

/* -- Mutations ----------------------------------------------------------------------------------*/

/* Any answer consists of whole messages, in datagrams that readers have room for. */
static void check_answer(size_t count)
{
    for (size_t at = 0; at < count;) {
        const struct nlmsghdr header = header_at(at);
        assert_in_range(header.nlmsg_len, sizeof(header), NLDEV_DATAGRAM_BYTES);
        assert_int_equal(header.nlmsg_pid, PORT_ID);
        at += (header.nlmsg_len + 3u) & ~3u;
        assert_true(at <= count);
    }
    for (size_t at = 0; at < count;) {
        const size_t bytes = nldev_datagram(reply + at, count - at);
        assert_in_range(bytes, sizeof(struct nlmsghdr), NLDEV_DATAGRAM_BYTES);
        at += bytes;
    }
}

static void test_mutations(void **state)
{
    (void)state;
    const struct nldev_device device = make_device();
    for (int command = 0; command <= RDMA_NLDEV_NUM_OPS; command++) {
        for (int dump = 0; dump < 2; dump++) {
            struct message request =
                port_message(command, (uint16_t)(NLM_F_ACK | (dump ? NLM_F_DUMP : 0)));
            attach_u32(&request, RDMA_NLDEV_ATTR_RES_LQPN, 17);
            attach(&request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs", 7);
            const size_t bytes = request.header.nlmsg_len;
            for (size_t count = 0; count <= bytes; count++) {
                check_answer(ask(&request, count, &device));
            }
            for (size_t at = 0; at < bytes; at++) {
                for (int value = 0; value < 256; value += 5) {
                    struct message wrong = request;
                    ((uint8_t *)&wrong)[at] = (uint8_t)value;
                    check_answer(ask(&wrong, bytes, &device));
                }
            }
        }
    }
}

/* -- Text ---------------------------------------------------------------------------------------*/

static void test_text(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "object",
                                        "object -",
                                        "objects 1",
                                        "object  1",
                                        "object 1g",
                                        "object g",
                                        "total qp 1",
                                        "object 1 x",
                                        "object 1 --",
                                        "object 1 0x1",
                                        "object A",
                                        "object 1 ",
                                        "object 1 2 -3",
                                        "object 11112222333344445"};
    struct nldev_resource one = {0}, again;
    char text[NLDEV_LINE_BYTES];
    for (uint32_t i = 0; i < NLDEV_VALUES; i++) {
        nldev_set(&one, (enum nldev_value)i, i % 2 ? UINT64_MAX - i : i);
    }
    for (uint32_t i = 1; i <= NLDEV_VALUES; i++) {
        const size_t length = nldev_print(&one, text, sizeof(text));
        assert_true(length > 0 && text[length - 1] == '\n');
        assert_int_equal(nldev_print(&one, text, length),
                         0); /* No room for the end of the string. */
        assert_int_equal(nldev_print(&one, text, length + 1), length);
        text[length - 1] = '\0';
        assert_true(nldev_parse(text, &again));
        assert_memory_equal(&again, &one, sizeof(one));
        one.present &= ~(1u << (i % NLDEV_VALUES));
        one.values[i % NLDEV_VALUES] = 0;
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(nldev_parse(wrong[i], &again));
    }
    /* Lines of an earlier build, and of a later one. */
    assert_true(nldev_parse("object 1f - 2", &again));
    assert_int_equal(again.present, 5);
    assert_int_equal(again.values[0], 0x1f);
    assert_true(nldev_parse("object 1 2 3 4 5 6 7 8 9 a b c d e f 10 11 12 13", &again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_port),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_too_many_counters),
        cmocka_unit_test(test_many_objects),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_chardev),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_long_request),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
