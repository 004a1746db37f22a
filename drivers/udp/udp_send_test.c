/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A refusal of the kernel or a device (of segmented calls, by a full send buffer) costs no
 *         packet that can be sent another way. Packets that do not fit the interface are counted.
 *         Acknowledgements cost no message of their own.
 * Method  Two ports on loopback addresses; the linker puts a kernel that refuses in front of the
 *         real one (--wrap=syscall).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

/* -- A kernel that refuses ----------------------------------------------------------------------*/

static struct {
    int segmented_reason; /* Its errno for segmented messages; 0: it takes them. */
    size_t bytes_max;     /* Limit of a datagram; 0: no limit. */
    int reason;           /* Its errno for all messages; 0: it looks closer. */
    uint32_t room;        /* Messages before the send buffer is full. */
    uint32_t calls, explained;
} kernel;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static size_t segment_of(const struct msghdr *message)
{
    struct msghdr copy = *message;
    for (struct cmsghdr *control = CMSG_FIRSTHDR(&copy); control != NULL;
         control = CMSG_NXTHDR(&copy, control)) {
        if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_SEGMENT) {
            uint16_t bytes;
            memcpy(&bytes, CMSG_DATA(control), sizeof(bytes));
            return bytes;
        }
    }
    return 0;
}

/* The errno for a message; 0: the kernel takes it. */
static int reason_against(const struct msghdr *message)
{
    const size_t segment = segment_of(message);
    size_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        bytes += message->msg_iov[i].iov_len;
    }
    if (kernel.reason != 0) {
        return kernel.reason;
    }
    if (segment != 0 && kernel.segmented_reason != 0) {
        return kernel.segmented_reason;
    }
    if (kernel.bytes_max != 0 && (segment != 0 ? segment : bytes) > kernel.bytes_max) {
        return segment != 0 ? EINVAL : EMSGSIZE;
    }
    return kernel.room == 0 ? EAGAIN : 0;
}

/* Does as the real kernel: returns how many messages it took, and an errno only if it refuses the
 * first one. */
static long send_some(int fd, struct mmsghdr *messages, uint32_t count, int flags)
{
    uint32_t sent = 0;
    int reason = 0;
    kernel.calls++;
    assert_true(flags & MSG_DONTWAIT); /* The caller holds a lock. */
    while (sent < count && (reason = reason_against(&messages[sent].msg_hdr)) == 0) {
        assert_int_equal(__real_syscall(SYS_sendmmsg, fd, messages + sent, 1, flags), 1);
        kernel.room--;
        sent++;
    }
    errno = reason;
    return sent > 0 ? (long)sent : -1;
}

/* The sixth argument lies on the stack, where a caller that passes fewer keeps other things. */
static size_t arguments_of(long number)
{
    return number == SYS_sendto || number == SYS_recvfrom ? 6 : 5;
}

long __wrap_syscall(long number, ...)
{
    long arguments[6] = {0};
    va_list list;
    va_start(list, number);
    for (size_t i = 0; i < arguments_of(number); i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    if (number == SYS_write && arguments[0] == STDERR_FILENO) {
        kernel.explained++;
        return arguments[2];
    }
    if (number == SYS_sendmmsg) {
        return send_some((int)arguments[0], (struct mmsghdr *)(uintptr_t)arguments[1],
                         (uint32_t)arguments[2], (int)arguments[3]);
    }
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
}

/* -- Two ports ----------------------------------------------------------------------------------*/

struct end {
    struct address_set addresses;
    struct udp_port port;
};

static const struct nic_av plain_av = {.hop_limit = INET_HOP_LIMIT};

struct bench {
    struct end a, b;
    struct link *link; /* From a to b. */
    uint8_t memory[4096];
    uint32_t sent, received;
    uint32_t sizes[4096]; /* The bytes of each packet's payload, by number. */
};

static void open_end(struct end *end)
{
    char error[256];
    assert_true(address_find(&end->addresses, NULL, error, sizeof(error)));
    assert_true(udp_port_open(&end->port, &end->addresses, error, sizeof(error)));
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    memset(&kernel, 0, sizeof(kernel));
    kernel.room = UINT32_MAX;
    open_end(&bench->a);
    open_end(&bench->b);
    bench->link = udp_port_link(&bench->a.port, &bench->a.addresses.entries[0].gid,
                                &bench->b.addresses.entries[0].gid, LOCAL_NO_SLOT);
    for (size_t i = 0; i < sizeof(bench->memory); i++) {
        bench->memory[i] = (uint8_t)(i * 31 + i / 256);
    }
    *state = bench;
    return bench->link == NULL;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    udp_port_close(&bench->a.port);
    udp_port_close(&bench->b.port);
    address_release(&bench->a.addresses);
    address_release(&bench->b.addresses);
    free(bench);
    return 0;
}

/* The number of the packet stands where its PSN would. */
static void transmit_as(struct bench *bench, uint8_t opcode, uint32_t bytes)
{
    struct nic_departure departure = {
        .av = &plain_av, .headers_bytes = ROCE_BTH_BYTES, .payload_bytes = bytes};
    departure.headers[0] = opcode;
    store_be32(departure.headers + 8, bench->sent);
    departure.segments[0] = (struct segment){.address = (uintptr_t)bench->memory, .bytes = bytes};
    departure.segment_count = bytes > 0;
    bench->sizes[bench->sent++] = bytes;
    assert_true(udp_port_transmit(&bench->a.port, bench->link, &departure));
}

static void transmit(struct bench *bench, uint32_t bytes)
{
    transmit_as(bench, ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY), bytes);
}

static void compare(struct bench *bench, const struct udp_datagram *datagram)
{
    const uint32_t number = bench->received++;
    assert_int_equal(load_be32(datagram->bytes + 8), number);
    assert_int_equal(datagram->count, ROCE_BTH_BYTES + bench->sizes[number]);
    assert_memory_equal(datagram->bytes + ROCE_BTH_BYTES, bench->memory, bench->sizes[number]);
}

static uint32_t look(struct bench *bench, struct udp_port *port)
{
    const struct udp_datagram *datagram;
    uint32_t arrived, count = 0;
    while ((arrived = udp_port_look(port, 256, NULL)) > 0) {
        while ((datagram = udp_port_next(port)) != NULL) {
            compare(bench, datagram);
        }
        count += arrived;
    }
    return count;
}

static void receive(struct bench *bench)
{
    while (look(bench, &bench->b.port) > 0) {
    }
    assert_int_equal(udp_port_bad_icrc(&bench->b.port), 0);
    (void)look(bench, &bench->a.port); /* Answers to probes. */
}

/* Transmits several messages: sizes change, and small packets are copied. */
static void transmit_mix(struct bench *bench)
{
    for (uint32_t i = 0; i < 60; i++) {
        transmit(bench, i % 20 < 12 ? 1024 : i % 20 < 17 ? 64 : 2048);
    }
}

/* -- Tests --------------------------------------------------------------------------------------*/

static void segments_are_refused(struct bench *bench, int reason)
{
    assert_true(bench->a.port.segmenting);
    transmit_mix(bench);
    udp_port_flush(&bench->a.port);
    kernel.segmented_reason = reason; /* Say, the route has changed to a tunnel. */
    for (int round = 0; round < 5; round++) {
        transmit_mix(bench);
        udp_port_flush(&bench->a.port);
    }
    receive(bench);
    assert_int_equal(bench->received, bench->sent);
    assert_int_equal(bench->a.port.counters.send_failed, 0);
    assert_false(bench->a.port.segmenting);
}

static void test_device_that_refuses_segments(void **state)
{
    segments_are_refused(*state, EIO);
}

static void test_kernel_that_refuses_segments(void **state)
{
    segments_are_refused(*state, EINVAL);
}

/* The kernel answers segments that are too large as it answers segments that it refuses altogether:
 * those that fit go on together, and each one that does not fit is counted. */
static void test_packets_too_large_for_the_interface(void **state)
{
    struct bench *bench = *state;
    kernel.bytes_max = 1500;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) {
            transmit(bench, 4096);
        }
        udp_port_flush(&bench->a.port);
    }
    assert_int_equal(bench->a.port.counters.send_failed, 30);
    assert_int_equal(kernel.explained, 1); /* The program is told why, but once. */
    assert_true(bench->a.port.segmenting);
    kernel.calls = 0;
    bench->sent = 0;
    for (int i = 0; i < 10; i++) {
        transmit(bench, 1024);
    }
    udp_port_flush(&bench->a.port);
    assert_int_equal(kernel.calls, 1);
    receive(bench);
    assert_int_equal(bench->received, bench->sent);
}

/* An error of the kernel while an interface has lost its address says nothing about segments: once
 * the address is back, packets go together as before. */
static void test_source_address_that_is_gone(void **state)
{
    struct bench *bench = *state;
    kernel.reason = EINVAL;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) {
            transmit(bench, 1024);
        }
        udp_port_flush(&bench->a.port);
    }
    assert_int_equal(bench->a.port.counters.send_failed, 30);
    assert_int_equal(kernel.explained, 0);
    kernel.reason = 0;
    kernel.calls = 0;
    bench->sent = 0;
    for (int i = 0; i < 10; i++) {
        transmit(bench, 1024);
    }
    udp_port_flush(&bench->a.port);
    assert_int_equal(kernel.calls, 1);
    assert_true(bench->a.port.segmenting);
    receive(bench);
    assert_int_equal(bench->received, bench->sent);
}

/* `nonic stat` counts packets, however many of them go in one message. */
static void test_packets_are_counted(void **state)
{
    struct bench *bench = *state;
    const struct udp_counters *counters = &bench->a.port.counters;
    kernel.reason = EPERM; /* A rule of a firewall. */
    for (uint32_t i = 0; i < 10; i++) {
        transmit(bench, 1024);
    }
    udp_port_flush(&bench->a.port);
    assert_int_equal(kernel.calls, 1);
    assert_int_equal(counters->send_failed, 10);
    kernel.reason = EAGAIN;
    for (uint32_t i = 0; i < 12; i++) {
        transmit(bench, 1024);
    }
    udp_port_flush(&bench->a.port);
    assert_int_equal(counters->send_waited, 12);
    kernel.reason = EPERM;
    udp_port_flush(&bench->a.port);
    assert_int_equal(kernel.calls, 3);
    assert_int_equal(counters->send_failed, 22);
}

/* A full send buffer blocks nothing, no packet is lost, and all stay in order; the program may use
 * its memory again. */
static void test_full_send_buffer(void **state)
{
    struct bench *bench = *state;
    const struct instant now = {1};
    uint8_t before[sizeof(bench->memory)];
    memcpy(before, bench->memory, sizeof(before));
    for (uint32_t room = 0; room < 12; room++) {
        kernel.room = room;
        transmit_mix(bench);
        udp_port_flush(&bench->a.port);
        memset(bench->memory, 0xee, sizeof(bench->memory));
        const bool waiting = bench->a.port.blocked;
        assert_true(waiting || room > 2);
        assert_true(udp_link_has_room(&bench->a.port, bench->link, now) == !waiting);
        udp_port_flush(&bench->a.port); /* Still no room. */
        kernel.room = 1;
        udp_port_flush(&bench->a.port); /* There is room for one message. */
        kernel.room = UINT32_MAX;
        memcpy(bench->memory, before, sizeof(before));
        transmit(bench, 0); /* A packet that comes now queues behind. */
        udp_port_flush(&bench->a.port);
        assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
        receive(bench);
        assert_int_equal(bench->received, bench->sent);
    }
    assert_int_equal(bench->a.port.counters.send_failed, 0);
    assert_true(bench->a.port.counters.send_waited > 0);
}

/* A caller that transmits though there is no room loses the packets that are too many, and these
 * are counted. */
static void test_more_than_can_wait(void **state)
{
    struct bench *bench = *state;
    kernel.room = 0;
    bench->a.port.segmenting = false;
    for (uint32_t i = 0; i < 2 * UDP_BATCH_MAX; i++) {
        transmit(bench, 4096);
    }
    udp_port_flush(&bench->a.port);
    assert_true(bench->a.port.counters.send_waited + bench->a.port.counters.send_failed >=
                2 * UDP_BATCH_MAX); /* Probes, too. */
    assert_true(bench->a.port.counters.send_waited > UDP_BATCH_MAX / 2);
    kernel.room = 50;
    udp_port_flush(&bench->a.port);
    receive(bench);
    assert_int_equal(bench->received, 50);
}

/* One look. Returns how many datagrams it brought. */
static uint32_t note_numbers(struct bench *bench)
{
    const struct udp_datagram *datagram;
    uint32_t count = 0, arrived;
    while ((arrived = udp_port_look(&bench->b.port, 256, NULL)) > 0) {
        count += arrived;
        while ((datagram = udp_port_next(&bench->b.port)) != NULL) {
            bench->sizes[bench->received++] = load_be32(datagram->bytes + 8);
        }
    }
    return count;
}

/* An answer leaves behind the next request, as the end of the same message. No other packets change
 * places. */
static void test_answers_travel_with_requests(void **state)
{
    static const struct {
        uint8_t opcode;
        uint32_t messages;
    } rows[] = {{ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE), 1},
                {BLOCK_ANSWER, 1},
                {BLOCK_DATA, 2},
                {ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_READ_REQUEST), 2}};
    struct bench *bench = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bench->sent = bench->received = 0;
        kernel.room = 100;
        transmit_as(bench, rows[i].opcode, 8);
        transmit(bench, 16);
        udp_port_flush(&bench->a.port);
        assert_int_equal(100 - kernel.room, rows[i].messages);
        while (note_numbers(bench) > 0) {
        }
        assert_int_equal(bench->received, 2);
        assert_int_equal(bench->sizes[0], rows[i].messages == 1);
    }
}

#define SEND_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEND_TEST(test_device_that_refuses_segments),
        SEND_TEST(test_kernel_that_refuses_segments),
        SEND_TEST(test_packets_too_large_for_the_interface),
        SEND_TEST(test_source_address_that_is_gone),
        SEND_TEST(test_packets_are_counted),
        SEND_TEST(test_full_send_buffer),
        SEND_TEST(test_more_than_can_wait),
        SEND_TEST(test_answers_travel_with_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
