/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Frames of a design are frames of an interface, byte for byte, both ways and whatever they
 *         are (FER-170); faults strike them, and lost ones are counted. A TAP device that is not to
 *         be had is told with the remedy (FER-171).
 * Method  In a network of its own a packet socket is the peer. Refusals are put in the place of the
 *         system's answers (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/design/design_port.h"
#include "drivers/design/design_tap.h"
#include "drivers/system/clock.h"
#include "tests/own_network.h"

#define NAME    "nonic-tap0"
#define NOW(us) ((struct instant){1000u * (us)})

static bool has_network;
static struct design_port *port;
static int peer;
static char error[256];

/* -- The system ---------------------------------------------------------------------------------*/

static int open_fails, ioctl_fails; /* An errno; 0: the system answers. */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...);

long __wrap_syscall(long number, ...)
{
    long arguments[5];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 5; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    if (number == SYS_openat && open_fails != 0) {
        errno = open_fails;
        return -1;
    }
    if (number == SYS_openat && ioctl_fails != 0) {
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4]);
}

int __wrap_ioctl(int fd, unsigned long what, ...)
{
    va_list list;
    va_start(list, what);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (what == TUNSETIFF && ioctl_fails != 0) {
        errno = ioctl_fails;
        return -1;
    }
    return __real_ioctl(fd, what, argument);
}

/* -- Errors -------------------------------------------------------------------------------------*/

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"t", "tap0", "nonic-tap_0.1", "fifteen-letters"};
    static const char *const bad[] = {"",      ".",   "..", "sixteen--letters", "a/b", "a:b",
                                      "tap%d", "a b", "a\n"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(design_tap_is_name(good[i]));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(design_tap_is_name(bad[i]));
    }
}

static int next_descriptor(void)
{
    const int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        int open_fails, ioctl_fails;
        const char *says, *remedy;
    } rows[] = {
        {ENOENT, 0, "cannot open /dev/net/tun: No such file", "module is `tun`"},
        {ENODEV, 0, "cannot open /dev/net/tun: No such device", "module is `tun`"},
        {EACCES, 0, "cannot open /dev/net/tun: Permission denied", ""},
        {0, EPERM, NAME ": Operation not permitted", "CAP_NET_ADMIN"},
        {0, EPERM, "`unshare -rn`", "`ip tuntap add dev " NAME " mode tap user USER`"},
        {0, EBUSY, NAME ": Device or resource busy", "another process has it"},
        {0, EINVAL, NAME ": Invalid argument", "no TAP device"},
        {0, ENOMEM, NAME ": Cannot allocate memory", ""},
    };
    const struct design_port_config config = {.tap = NAME};
    const int before = next_descriptor();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        open_fails = rows[i].open_fails;
        ioctl_fails = rows[i].ioctl_fails;
        assert_null(design_port_open(&config, error, sizeof(error)));
        assert_non_null(strstr(error, rows[i].says));
        assert_non_null(strstr(error, rows[i].remedy));
    }
    open_fails = ioctl_fails = 0;
    assert_int_equal(next_descriptor(), before);
}

/* -- Frames -------------------------------------------------------------------------------------*/

/* IPv6 would send by itself. */
static void be_silent(void)
{
    const int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        assert_int_equal(write(fd, "1", 1), 1);
        close(fd);
    }
}

static void set_up(const char *fault)
{
    const struct design_port_config config = {.tap = NAME, .fault = fault};
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    if (!has_network) {
        skip();
    }
    be_silent();
    port = design_port_open(&config, error, sizeof(error));
    assert_non_null(port);
    peer = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    at.sll_ifindex = (int)if_nametoindex(NAME);
    assert_int_equal(bind(peer, (const struct sockaddr *)(const void *)&at, sizeof(at)), 0);
}

static void tear_down(void)
{
    design_port_close(port);
    close(peer);
    assert_int_equal(if_nametoindex(NAME), 0);
}

static void design_says(const uint8_t *frame, uint32_t bytes, uint32_t us)
{
    const struct inet_datagram whole = {.payload = frame, .payload_bytes = bytes};
    design_port_send(port, &whole, NOW(us));
}

/* The first byte behind the EtherType; -1: nothing has come. */
static int design_hears(uint32_t us)
{
    struct design_arrival arrival;
    return design_port_receive(port, NOW(us), &arrival) ? arrival.datagram.payload[14] : -1;
}

static int peer_hears(void)
{
    uint8_t bytes[100];
    return recv(peer, bytes, sizeof(bytes), 0) > 0 ? bytes[14] : -1;
}

static void lay_out(uint8_t *frame, uint16_t type, uint8_t byte)
{
    static const uint8_t macs[] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7};
    memcpy(frame, macs, sizeof(macs));
    store_be16(frame + 12, type);
    frame[14] = byte;
}

static void test_frames(void **state)
{
    (void)state;
    set_up(NULL);
    static const uint16_t types[] = {0x0800, 0x0806, 0x86dd, 0x8100, 0x8808, 0x88b5};
    uint8_t frame[1514], back[1514];
    struct design_arrival arrival;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < 200; i++) {
        const uint16_t type = types[i % COUNT_OF(types)];
        const uint32_t bytes = 60 + (uint32_t)prng_below(&prng, sizeof(frame) - 59);
        for (uint32_t byte = 0; byte < bytes; byte++) {
            frame[byte] = (uint8_t)prng_next(&prng);
        }
        lay_out(frame, type, 1);
        assert_int_equal(send(peer, frame, bytes, 0), bytes);
        assert_true(design_port_receive(port, NOW(0), &arrival));
        assert_int_equal(arrival.datagram.payload_bytes, bytes);
        assert_memory_equal(arrival.datagram.payload, frame, bytes);
        assert_false(arrival.corrupt);
        if (type != 0x8100) { /* A packet socket has the tag elsewhere. */
            design_says(frame, bytes, 0);
            assert_int_equal(recv(peer, back, sizeof(back), 0), bytes);
            assert_memory_equal(back, frame, bytes);
        }
    }
    assert_false(design_port_receive(port, NOW(0), &arrival));
    assert_int_equal(design_port_counters(port)->received, 200);
    assert_int_equal(design_port_counters(port)->lost, 0);
    tear_down();
}

static void test_faults(void **state)
{
    (void)state;
    set_up("delay=50us:#1,drop=#2,dup=#3,corrupt=#4,dir=both");
    uint8_t frame[100] = {0}, struck[100];
    for (uint8_t i = 1; i <= 4; i++) {
        lay_out(frame, 0x88b5, i);
        assert_int_equal(send(peer, frame, sizeof(frame), 0), sizeof(frame));
    }
    assert_int_equal(design_hears(10), 3);
    assert_int_equal(design_hears(10), 3);
    struct design_arrival arrival;
    assert_true(design_port_receive(port, NOW(10), &arrival));
    assert_true(arrival.corrupt && arrival.corrupt_bit < 8 * sizeof(frame));
    assert_int_equal(design_hears(59), -1);
    assert_int_equal(design_hears(60), 1);

    for (uint8_t i = 1; i <= 4; i++) {
        lay_out(frame, 0x88b5, i);
        design_says(frame, sizeof(frame), 100);
    }
    assert_int_equal(peer_hears(), 3);
    assert_int_equal(peer_hears(), 3);
    assert_int_equal(recv(peer, struck, sizeof(struck), 0), sizeof(struck));
    uint32_t bits = 0;
    for (uint32_t i = 0; i < sizeof(struck); i++) {
        bits += (uint32_t)__builtin_popcount(struck[i] ^ frame[i]);
    }
    assert_int_equal(bits, 1);
    assert_int_equal(peer_hears(), -1);
    (void)design_port_release(port, NOW(150));
    assert_int_equal(peer_hears(), 1);
    tear_down();
}

/* A device that is full loses frames, one that is down takes none, and one that is deleted is told
 * and ends no wait. */
static void test_losses(void **state)
{
    (void)state;
    set_up(NULL);
    uint8_t frame[60] = {0};
    uint32_t came = 0;
    enum {
        SENT = 5000
    };
    lay_out(frame, 0x88b5, 1);
    for (int i = 0; i < SENT; i++) {
        (void)send(peer, frame, sizeof(frame), 0);
    }
    while (design_hears(0) >= 0) {
        came++;
    }
    assert_in_range(came, 1, SENT - 1);
    assert_int_equal(design_port_counters(port)->lost, SENT - came);

    struct ifreq down = {.ifr_name = NAME};
    assert_true(own_network_ask(SIOCSIFFLAGS, &down));
    design_says(frame, sizeof(frame), 0);
    assert_int_equal(design_port_counters(port)->refused, 1);
    assert_int_equal(design_port_counters(port)->refused_why, EIO);
    tear_down();
}

static void test_taken(void **state)
{
    (void)state;
    set_up(NULL);
    assert_int_equal(design_tap_open(NAME, error, sizeof(error)), -1);
    assert_non_null(strstr(error, "another process has it"));
    assert_int_equal(design_tap_open("lo", error, sizeof(error)), -1);
    assert_non_null(strstr(error, "no TAP device"));
    tear_down();
}

/* As `ip link delete` does, which would not be allowed to in a user namespace of ours. */
static void delete_device(void)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
    } message = {{sizeof(message), RTM_DELLINK, NLM_F_REQUEST, 1, 0},
                 {.ifi_index = (int)if_nametoindex(NAME)}};
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    assert_int_equal(send(fd, &message, sizeof(message), 0), sizeof(message));
    close(fd);
    assert_int_equal(if_nametoindex(NAME), 0);
}

static void test_deleted(void **state)
{
    (void)state;
    set_up(NULL);
    delete_device();
    assert_int_equal(design_hears(0), -1);
    assert_true(design_port_counters(port)->gone);
    assert_int_equal(design_hears(0), -1);
    const struct instant before = clock_now();
    design_port_sleep(port, 50);
    assert_true(clock_now().ns - before.ns >= 50000000);
    tear_down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_frames),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_losses),  cmocka_unit_test(test_taken),
        cmocka_unit_test(test_deleted),
    };
    has_network = access("/dev/net/tun", R_OK | W_OK) == 0 && own_network_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
