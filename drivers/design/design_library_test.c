/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    libnonic_hdl as a caller with a main() of its own has it: frames of a design leave as
 *         datagrams, and datagrams reach it as frames; its clock waits, or never does; frames that
 *         are dropped are named; values that cannot be are refused (FER-141, FER-152).
 * Method  The design is this file: it drives the beats of a port. A socket on loopback is its peer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/design/design_library.h"
#include "hdl/port.h"
#include "wire/inet.h"

#define OWN_PORT      5000
#define PERIOD_PS     6400
#define HEADERS_BYTES 42

static const uint16_t own_ports[] = {OWN_PORT};
static const struct hdl_port_config port_config = {.width_bits = 64,
                                                   .frame_bytes = 2000,
                                                   .frames = 3,
                                                   .line_fs_per_byte = 800000,
                                                   .ready_ppm = 1000000};

static struct hdl_port *port;
static struct hdl_live *live;
static struct hdl_out out;
static uint64_t now_ps, turn_ps;
static uint8_t came[4000]; /* The frames that the design got, one behind the other. */
static uint32_t came_bytes, came_frames, came_last;
static int peer;
static uint16_t peer_port;

/* A loopback address that no other run of this test has. */
static uint32_t own_ip(void)
{
    const uint32_t pid = (uint32_t)getpid();
    return 127u << 24 | (100 + (pid >> 8) % 100) << 16 | (pid & 0xff) << 8 | 7;
}

static const char *own_address(void)
{
    const struct in_addr ip = {htonl(own_ip())};
    return inet_ntoa(ip);
}

static void set_up(struct hdl_live_config config)
{
    char error[256] = "";
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(name);
    config.address = own_address();
    config.ports = own_ports;
    config.port_count = 1;
    port = hdl_port_open(&port_config, error, sizeof(error));
    assert_non_null(port);
    live = hdl_live_open(port, &config, error, sizeof(error));
    assert_string_equal(error, "");
    assert_non_null(live);
    peer = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(bind(peer, (const struct sockaddr *)(const void *)&name, sizeof(name)), 0);
    assert_int_equal(getsockname(peer, (struct sockaddr *)(void *)&name, &bytes), 0);
    peer_port = ntohs(name.sin_port);
    memset(&out, 0, sizeof(out));
    now_ps = turn_ps = 0;
    came_bytes = came_frames = came_last = 0;
}

static void tear_down(void)
{
    hdl_live_close(live);
    hdl_port_close(port);
    close(peer);
}

/* -- The design ---------------------------------------------------------------------------------*/

static void take_beat(void)
{
    const uint32_t bytes = (uint32_t)__builtin_popcount(out.m_keep[0]);
    assert_true(came_bytes + bytes <= sizeof(came));
    memcpy(came + came_bytes, out.m_data, bytes);
    came_bytes += bytes;
    if (out.m_last) {
        came_frames++;
    }
}

/* An edge, with a beat of the design if it has bytes. Returns how many of them were taken. */
static uint32_t edge(const uint8_t *beat, uint32_t bytes, bool last)
{
    uint32_t data[2] = {0};
    const uint32_t keep = (1u << bytes) - 1;
    if (bytes > 0) {
        memcpy(data, beat, bytes);
    }
    const struct hdl_in in = {
        .s_data = data, .s_keep = &keep, .s_valid = bytes > 0, .s_last = last, .m_ready = true};
    const uint32_t taken = out.s_ready ? bytes : 0;
    if (out.m_valid) {
        take_beat();
    }
    now_ps += PERIOD_PS;
    hdl_port_edge(port, now_ps, &in, &out);
    if (now_ps >= turn_ps) {
        turn_ps = hdl_live_turn(live, now_ps);
        assert_true(turn_ps > now_ps);
    }
    return taken;
}

static void idle(uint32_t edges)
{
    for (uint32_t i = 0; i < edges; i++) {
        edge(NULL, 0, false);
    }
}

static void send_frame(const uint8_t *frame, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes;) {
        const uint32_t beat = bytes - at < 8 ? bytes - at : 8;
        at += edge(frame + at, beat, at + beat == bytes);
    }
    idle(200);
}

static uint32_t frame_to_peer(uint8_t *frame, const char *text)
{
    const uint32_t bytes = (uint32_t)strlen(text);
    const struct inet_flow flow = inet_flow_ipv4(own_ip(), OWN_PORT, INADDR_LOOPBACK, peer_port);
    static const uint8_t ethernet[14] = {2, 0, 127, 0, 0, 1, 4, 4, 4, 4, 4, 4, 8, 0};
    memcpy(frame, ethernet, sizeof(ethernet));
    inet_encode(frame + sizeof(ethernet), &flow, 1, (const uint8_t *)text, bytes);
    memcpy(frame + HEADERS_BYTES, text, bytes);
    return HEADERS_BYTES + bytes;
}

/* -- Tests --------------------------------------------------------------------------------------*/

static void test_both_ways(void **state)
{
    (void)state;
    static const char there[] = "a datagram of the design",
                      back[] = "one of its peer, which is longer";
    char heard[200];
    uint8_t frame[200];
    struct sockaddr_in from;
    socklen_t from_bytes = sizeof(from);
    set_up((struct hdl_live_config){.wait_ms = 1});
    send_frame(frame, frame_to_peer(frame, there));
    assert_int_equal(recvfrom(peer, heard, sizeof(heard), MSG_DONTWAIT,
                              (struct sockaddr *)(void *)&from, &from_bytes),
                     strlen(there));
    assert_memory_equal(heard, there, strlen(there));
    assert_int_equal(ntohl(from.sin_addr.s_addr), own_ip());
    assert_int_equal(ntohs(from.sin_port), OWN_PORT);
    assert_int_equal(
        sendto(peer, back, strlen(back), 0, (const struct sockaddr *)(void *)&from, from_bytes),
        strlen(back));
    for (uint32_t i = 0; i < 100000 && came_frames == 0; i++) {
        idle(1);
    }
    assert_int_equal(came_frames, 1);
    assert_int_equal(came_bytes, HEADERS_BYTES + strlen(back));
    assert_memory_equal(came + HEADERS_BYTES, back, strlen(back));
    struct hdl_live_counters counters;
    hdl_live_count(live, &counters);
    assert_int_equal(counters.given, 1);
    assert_int_equal(counters.taken, 1);
    tear_down();
}

/* A datagram waits for an answer to the question for the design's MAC address, 20 us at most. */
static void test_question(void **state)
{
    (void)state;
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(OWN_PORT), .sin_addr.s_addr = htonl(own_ip())};
    const uint64_t reset_ps = 1000000;
    set_up((struct hdl_live_config){.wait_ms = 1, .reset_ps = reset_ps});
    assert_int_equal(
        sendto(peer, "x", 1, 0, (const struct sockaddr *)(const void *)&to, sizeof(to)), 1);
    while (came_frames == 0 && now_ps < 100 * reset_ps) {
        idle(1);
    }
    assert_in_range(now_ps, reset_ps, 2 * reset_ps);
    assert_int_equal(came[12] << 8 | came[13], 0x0806);
    assert_int_equal(came_bytes, 60);
    while (came_frames == 1 && now_ps < 100 * reset_ps) {
        idle(1);
    }
    assert_in_range(now_ps, 21 * reset_ps, 24 * reset_ps);
    assert_int_equal(came[60 + HEADERS_BYTES], 'x');
    tear_down();
}

static void test_hold(void **state)
{
    (void)state;
    struct hdl_live_counters counters;
    set_up((struct hdl_live_config){.wait_ms = 1});
    idle(12 * 1000000 / PERIOD_PS);
    hdl_live_count(live, &counters);
    assert_in_range(counters.waits, 1, 3);
    assert_true(counters.waited_ns > 0);
    tear_down();
    set_up((struct hdl_live_config){.wait_ms = 1, .hold_ps = HDL_LIVE_NEVER});
    idle(12 * 1000000 / PERIOD_PS);
    hdl_live_count(live, &counters);
    assert_int_equal(counters.waits, 0);
    tear_down();
}

static void test_dropped(void **state)
{
    (void)state;
    uint64_t count;
    uint8_t frame[64] = {2, 0, 127, 0, 0, 1, 4, 4, 4, 4, 4, 4, 0x81, 0};
    set_up((struct hdl_live_config){.hold_ps = HDL_LIVE_NEVER});
    assert_null(hdl_live_dropped(live, 0, &count));
    send_frame(frame, sizeof(frame));
    send_frame(frame, sizeof(frame));
    frame[12] = 0x88;
    frame[13] = 0xcc;
    send_frame(frame, sizeof(frame));
    assert_string_equal(hdl_live_dropped(live, 0, &count), "VLAN tags");
    assert_int_equal(count, 2);
    assert_string_equal(hdl_live_dropped(live, 1, &count), "other EtherTypes");
    assert_int_equal(count, 1);
    assert_null(hdl_live_dropped(live, 2, &count));
    tear_down();
}

static void refuse(const struct hdl_live_config *config, const char *says)
{
    char error[256] = "";
    assert_null(hdl_live_open(port, config, error, sizeof(error)));
    assert_non_null(strstr(error, says));
}

static void test_refusals(void **state)
{
    (void)state;
    char error[256];
    static const uint16_t none[65] = {0};
    const char *own = own_address();
    struct hdl_port_config two = port_config;
    port = hdl_port_open(&port_config, error, sizeof(error));
    refuse(&(struct hdl_live_config){.address = NULL}, "''");
    refuse(&(struct hdl_live_config){.address = "::1"}, "'::1'");
    refuse(&(struct hdl_live_config){.address = "0.0.0.0"}, "'0.0.0.0'");
    refuse(&(struct hdl_live_config){.address = "203.0.113.7"}, "203.0.113.7");
    refuse(&(struct hdl_live_config){.address = own, .ports = none, .port_count = 1}, "UDP port");
    refuse(&(struct hdl_live_config){.address = own, .ports = none, .port_count = 65}, "64");
    refuse(&(struct hdl_live_config){.address = own, .port_count = 1}, "64");
    refuse(&(struct hdl_live_config){.address = own, .wait_ms = 60001}, "60000");
    refuse(&(struct hdl_live_config){.address = own, .fault = "rain=1"}, "rain");
    hdl_port_close(port);
    two.frames = 2;
    port = hdl_port_open(&two, error, sizeof(error));
    refuse(&(struct hdl_live_config){.address = own}, "3 frames");
    hdl_port_close(port);
    port = NULL;
    refuse(&(struct hdl_live_config){.address = own}, "3 frames");
    two.width_bits = 65;
    assert_null(hdl_port_open(&two, error, sizeof(error)));
    assert_non_null(strstr(error, "width"));
    hdl_port_close(NULL);
    hdl_live_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways), cmocka_unit_test(test_question),
        cmocka_unit_test(test_hold),      cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
