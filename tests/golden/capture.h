/* SPDX-License-Identifier: BSD-2-Clause
 *
 * capture - reads classic pcap files and finds the RoCEv2 datagrams in them; for tests.
 *
 * Written from the formats, without wire/, so that it can be held against it. A file that is not
 * what it should be fails the test at once.
 */
#ifndef TESTS_GOLDEN_CAPTURE_H
#define TESTS_GOLDEN_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/inet.h"

/* A UDP datagram to port 4791. */
struct datagram {
    bool ipv4;
    struct inet_flow flow;
    uint16_t identification; /* 0 for IPv6. */
    const uint8_t *ip;       /* From the IP header to the end of the ICRC. */
    size_t ip_bytes;
    const uint8_t *payload; /* From the BTH to the end of the ICRC. */
    size_t payload_bytes;
};

/* Reads a datagram that starts at its IP header; bytes after its end are ignored. False if it is
 * anything but a whole RoCEv2 datagram: other protocols, IPv4 options, fragments or fragmentable,
 * lengths that disagree. Of the fields that may change on the way, none is looked at. */
bool datagram_read(const uint8_t *ip, size_t count, struct datagram *datagram);

struct capture {
    const char *name; /* "ops_rc_all.pcap" */
    uint8_t *bytes;
    size_t count;
    size_t at;
    uint32_t frame; /* Number of the frame read last, from 1 as in Wireshark. */
};

/* Loads a file into memory that capture_close gives back. */
void capture_open(struct capture *capture, const char *directory, const char *name);
void capture_close(struct capture *capture);

/* Finds the next RoCEv2 datagram, false at the end of the file. It points into the capture. */
bool capture_next(struct capture *capture, struct datagram *datagram);

#endif
