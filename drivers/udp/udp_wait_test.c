/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Messages that found a full send buffer leave later, once each and in order, by their own
 *         socket; the packets of messages that find no room, or are refused, are counted.
 * Method  Random messages for two sockets whose buffers the test opens and closes (--wrap=syscall),
 *         beside a queue of the test's own. The program's memory is overwritten at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/prng.h"
#include "drivers/system/system.h"
#include "drivers/udp/udp_port.h"

#define STEPS     20000
#define FDS       2
#define BYTES_MAX ((size_t)UDP_BATCH_MAX * BLOCK_PACKET_BYTES_MAX) /* Bytes that can wait. */

struct message {
    int fd;
    uint32_t packets;
    uint8_t byte; /* The value of all its bytes. */
    size_t bytes;
    bool told; /* It has control data. */
};

static struct {
    struct udp_port port;
    struct prng prng;
    struct message queue[UDP_BATCH_MAX]; /* The model: the oldest first. */
    uint32_t first, count;
    size_t bytes; /* The bytes of all messages, also of those that have left. */
    uint64_t waited, failed;
    uint32_t room[FDS]; /* Messages that a socket takes. */
    int reason;         /* The errno when it takes none. */
    uint32_t polls;     /* Polls until there is room for one. */
} world;

/* -- The kernel ---------------------------------------------------------------------------------*/

long __wrap_syscall(long number, ...);

static void compare(const struct message *wanted, int fd, const struct msghdr *message)
{
    assert_int_equal(fd, wanted->fd);
    assert_int_equal(message->msg_iovlen, 1);
    assert_int_equal(message->msg_iov->iov_len, wanted->bytes);
    for (size_t i = 0; i < wanted->bytes; i++) {
        assert_int_equal(((const uint8_t *)message->msg_iov->iov_base)[i], wanted->byte);
    }
    assert_int_equal(((const struct sockaddr_in *)message->msg_name)->sin_port, wanted->byte);
    assert_int_equal(message->msg_controllen, wanted->told ? CMSG_SPACE(sizeof(int)) : 0);
    assert_true(!wanted->told || *(const uint8_t *)message->msg_control == wanted->byte);
}

/* poll: room comes at the poll that the test names. */
static long wait_for_room(int fd, int ms)
{
    assert_int_equal(fd, world.queue[world.first].fd);
    assert_int_equal(ms, 10);
    world.room[fd] = --world.polls == 0;
    return world.room[fd];
}

/* sendmmsg. */
long __wrap_syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    if (number == SYSTEM_POLL) {
        const int polled = va_arg(list, struct pollfd *)->fd;
        (void)va_arg(list, unsigned long);
#ifdef SYS_poll
        const int ms = va_arg(list, int);
#else
        const int ms = (int)(va_arg(list, const struct timespec *)->tv_nsec / 1000000);
#endif
        va_end(list);
        return wait_for_room(polled, ms);
    }
    const int fd = va_arg(list, int);
    const struct mmsghdr *messages = va_arg(list, struct mmsghdr *);
    const uint32_t count = va_arg(list, uint32_t);
    va_end(list);
    assert_int_equal(number, SYS_sendmmsg);
    uint32_t sent = 0;
    for (; sent < count && world.room[fd] > 0; sent++, world.room[fd]--) {
        assert_true(world.first < world.count);
        compare(&world.queue[world.first++], fd, &messages[sent].msg_hdr);
    }
    if (sent > 0) {
        return sent;
    }
    errno = world.reason;
    if (errno == EINTR) {
        world.reason = EAGAIN;
    } else if (errno != EAGAIN) { /* The first one is lost. */
        world.failed += world.queue[world.first++].packets;
        world.reason = EAGAIN;
    }
    return -1;
}

/* -- The model ----------------------------------------------------------------------------------*/

static void note(const struct message *message)
{
    if (world.count == UDP_BATCH_MAX || message->bytes > BYTES_MAX - world.bytes) {
        world.failed += message->packets;
        return;
    }
    world.queue[world.count++] = *message;
    world.bytes += message->bytes;
    world.waited += message->packets;
}

/* Hands over a message in several pieces, whose memory is overwritten afterwards. */
static void wait_with(const struct message *message)
{
    static uint8_t bytes[4 * BLOCK_PACKET_BYTES_MAX], control[CMSG_SPACE(sizeof(int))];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = message->byte};
    const size_t cut = prng_below(&world.prng, message->bytes + 1);
    struct iovec pieces[] = {{bytes, cut}, {bytes + cut, message->bytes - cut}};
    const uint32_t places[] = {7, 7 + message->packets};
    const struct mmsghdr header = {
        .msg_hdr = {.msg_name = &to,
                    .msg_namelen = sizeof(to),
                    .msg_iov = pieces,
                    .msg_iovlen = 2,
                    .msg_control = message->told ? control : NULL,
                    .msg_controllen = message->told ? sizeof(control) : 0}};
    memset(bytes, message->byte, message->bytes);
    memset(control, message->byte, sizeof(control));
    udp_wait(&world.port, message->fd, &header, places, 1);
    memset(bytes, 0, message->bytes);
    memset(control, 0, sizeof(control));
    memset(&to, 0, sizeof(to));
}

static void send_waiting(void)
{
    static const int reasons[] = {EAGAIN, EAGAIN, EINTR, EPERM};
    for (int fd = 0; fd < FDS; fd++) {
        world.room[fd] = (uint32_t)prng_below(&world.prng, 2 * UDP_BATCH_MAX);
    }
    world.reason = reasons[prng_below(&world.prng, COUNT_OF(reasons))];
    udp_send_waiting(&world.port);
    if (world.first == world.count) {
        world.first = world.count = 0;
        world.bytes = 0;
    } else { /* It stopped at a socket without room. */
        assert_int_equal(world.room[world.queue[world.first].fd], 0);
    }
}

static void check_state(void)
{
    assert_int_equal(udp_port_has_waiting(&world.port), world.count > 0);
    assert_int_equal(world.port.counters.send_waited, world.waited);
    assert_int_equal(world.port.counters.send_failed, world.failed);
}

static int setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    prng_init(&world.prng, 1);
    world.port.waiting = udp_waiting_make();
    return world.port.waiting == NULL;
}

static int teardown(void **state)
{
    (void)state;
    free(world.port.waiting);
    return 0;
}

static void test_once_each_and_in_order(void **state)
{
    (void)state;
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < STEPS; i++) {
        const struct message message = {
            .fd = (int)prng_below(&world.prng, FDS),
            .packets = 1 + (uint32_t)prng_below(&world.prng, 64),
            .byte = (uint8_t)prng_next(&world.prng),
            .bytes = 1 + prng_below(&world.prng,
                                    prng_below(&world.prng, 2) ? 64 : 4 * BLOCK_PACKET_BYTES_MAX),
            .told = prng_below(&world.prng, 2)};
        if (prng_below(&world.prng, 200) == 0) {
            send_waiting();
        } else {
            note(&message);
            wait_with(&message);
        }
        least = world.count < least ? world.count : least;
        most = world.count > most ? world.count : most;
        check_state();
    }
    assert_int_equal(least, 0);
    assert_in_range(most, 100, UDP_BATCH_MAX);
    assert_true(world.failed > 0 && world.waited > 0);
}

static void test_as_many_as_promised(void **state)
{
    (void)state;
    struct message message = {.packets = 1, .bytes = BLOCK_PACKET_BYTES_MAX};
    for (int i = 0; i < UDP_BATCH_MAX + 1; i++) {
        message.byte = (uint8_t)i;
        note(&message);
        wait_with(&message);
    }
    assert_int_equal(world.waited, UDP_BATCH_MAX); /* The model agrees. */
    check_state();
    udp_waiting_forget(&world.port);
    assert_false(udp_port_has_waiting(&world.port));
    world.reason = EPERM;
    udp_send_waiting(&world.port); /* Nothing is left to send. */
    assert_int_equal(world.port.counters.send_calls, 0);
}

/* Draining takes at most the time that the caller allows, 10 ms at a time. */
static void test_draining(void **state)
{
    (void)state;
    const struct message message = {.packets = 1, .bytes = 100, .byte = 5};
    for (int i = 0; i < 2; i++) {
        note(&message);
        wait_with(&message);
    }
    world.reason = EAGAIN;
    world.polls = 3;
    udp_port_drain(&world.port, 20);
    assert_int_equal(world.polls, 1);
    udp_port_drain(&world.port, 10);
    assert_int_equal(world.first, 1);
    assert_true(udp_port_has_waiting(&world.port));
    world.polls = 1;
    udp_port_drain(&world.port, 1000); /* It ends when no message waits any more. */
    assert_int_equal(world.polls, 0);
    assert_false(udp_port_has_waiting(&world.port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_once_each_and_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_as_many_as_promised, setup, teardown),
        cmocka_unit_test_setup_teardown(test_draining, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
