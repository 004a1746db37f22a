/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share_stranger - for the tests of sharing: an address, and a peer with a plain socket.
 */
#ifndef TESTS_SHARE_STRANGER_H
#define TESTS_SHARE_STRANGER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/roce_frame.h"

#define PACKET_BYTES     64
#define MAD_PACKET_BYTES (12 + 8 + 256 + 4)

/* An address of each test, children and all, so that none finds what another one that failed left:
 * loopback, and not one that a lone process draws. */
static char own_text[32];

static inline int take_address(void **state)
{
    (void)state;
    static int tests;
    const int host = getpid() % 4000 * 16 + tests++ % 16 + 1;
    snprintf(own_text, sizeof(own_text), "127.255.%d.%d", host / 256, host % 256);
    return 0;
}

static inline const char *own_address(void)
{
    return own_text;
}

static inline struct sockaddr_in port_of(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return address;
}

/* From a stranger; the last four bytes become the ICRC. */
static inline void send_bytes(int fd, uint8_t *packet, size_t count)
{
    struct sockaddr_in to = port_of(own_address()), from;
    socklen_t bytes = sizeof(from);
    struct inet_flow flow = {.destination_port = ROCE_UDP_PORT};
    assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &bytes), 0);
    flow.source[10] = flow.source[11] = flow.destination[10] = flow.destination[11] = 0xff;
    memcpy(flow.source + 12, &from.sin_addr, 4);
    memcpy(flow.destination + 12, &to.sin_addr, 4);
    flow.source_port = ntohs(from.sin_port);
    roce_frame_seal(&flow, packet, count - ROCE_ICRC_BYTES, 0);
    assert_int_equal(sendto(fd, packet, count, 0, (struct sockaddr *)&to, sizeof(to)), count);
}

static inline void send_packet(int fd, uint32_t qpn, uint32_t tag)
{
    uint8_t packet[PACKET_BYTES] = {[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY)};
    store_be32(packet + 4, qpn);
    store_be32(packet + 12, tag);
    send_bytes(fd, packet, sizeof(packet));
}

/* A message of communication management, in 280 bytes. */
static inline void put_mad(uint8_t *packet, uint16_t attribute, uint32_t local_id,
                           uint32_t remote_id)
{
    memset(packet, 0, MAD_PACKET_BYTES);
    packet[0] = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY);
    packet[7] = 1;     /* Queue pair 1. */
    packet[20] = 1;    /* Version of MADs, */
    packet[21] = 0x07; /* communication management. */
    store_be16(packet + 20 + 16, attribute);
    store_be32(packet + 20 + 24, local_id);
    store_be32(packet + 20 + 28, remote_id);
}

static inline int stranger(void)
{
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in self = {.sin_family = AF_INET};
    const int discover = IP_PMTUDISC_DO;
    inet_pton(AF_INET, "127.0.0.1", &self.sin_addr);
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
    assert_int_equal(bind(fd, (struct sockaddr *)&self, sizeof(self)), 0);
    return fd;
}

static inline bool has_packet(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) == 1;
}

#endif
