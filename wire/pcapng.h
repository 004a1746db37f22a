/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pcapng - blocks of a pcapng file, as bytes; whoever has a file writes them to it.
 *
 * Purpose    A capture that Wireshark reads: section header, interface description, packets.
 * Inputs     The packet as an inet_flow, identification, and the UDP payload (BTH .. ICRC).
 * Outputs    Encoded blocks in the caller's buffer, and their length.
 * Ownership  Nothing is kept.
 * Time       An argument: since the Unix epoch, in the interface's resolution (if_tsresol).
 * Limits     A UDP payload longer than any packet is cut to BLOCK_PACKET_BYTES_MAX, which the file
 *            says (its snap length, and the original length of the packet).
 * Source     draft-ietf-opsawg-pcapng; link types as registered by tcpdump.org.
 */
#ifndef WIRE_PCAPNG_H
#define WIRE_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#include "wire/block.h"
#include "wire/inet.h"
#include "wire/roce.h"

#define PCAPNG_TEXT_BYTES_MAX    64
#define PCAPNG_COMMENT_BYTES_MAX 160
#define PCAPNG_HEADER_BYTES_MAX  384
#define PCAPNG_SNAP_BYTES        16384
/* A block is 28 bytes, the packet, and 4 bytes. */
#define PCAPNG_PACKET_BYTES_MAX (28 + INET_HEADERS_BYTES_MAX + BLOCK_PACKET_BYTES_MAX + 4)
/* The same with the longest packet of any format, and a comment. */
#define PCAPNG_BYTES_MAX (28 + PCAPNG_SNAP_BYTES + 4 + PCAPNG_COMMENT_BYTES_MAX + 4 + 4)

enum pcapng_link {
    PCAPNG_LINK_ETHERNET = 1,
    PCAPNG_LINK_IP = 101, /* LINKTYPE_RAW: packets start at the IP header. */
    /* Formats that have no registered number: tools/wireshark/nonic_lab.lua shows them. */
    PCAPNG_LINK_FORTH = 147, /* USER0 */
    PCAPNG_LINK_EXANEST = 148,
    PCAPNG_LINK_LANT = 150,  /* USER3: to Wireshark, 149 is Apple's PKTAP. */
    PCAPNG_LINK_BYTES = 151, /* USER4: payload without headers. */
};

struct pcapng_interface {
    const char *name; /* "nonic0". */
    enum pcapng_link link;
    uint8_t resolution;  /* Times count units of 10^-resolution seconds. */
    const char *comment; /* A note for readers about the packets; NULL: none. */
};

/* Section header and one interface description, with `application` ("nonic 0.1.0") as its writer;
 * it and the name at most PCAPNG_TEXT_BYTES_MAX long, a comment at most PCAPNG_COMMENT_BYTES_MAX.
 * Returns the bytes written, at most PCAPNG_HEADER_BYTES_MAX. */
size_t pcapng_encode_header(uint8_t *out, const char *application,
                            const struct pcapng_interface *interface);

/* One enhanced packet block: IP and UDP header as inet_encode makes them, but for `variant`, and
 * `payload` of `payload_bytes`, which starts at the BTH and ends with the ICRC.
 * Returns the bytes written, at most PCAPNG_PACKET_BYTES_MAX. */
size_t pcapng_encode_packet(uint8_t *out, uint64_t unix_ns, const struct inet_flow *flow,
                            struct inet_variant variant, uint16_t identification,
                            const uint8_t *payload, size_t payload_bytes);

/* The same for a packet in a format of its own, at most PCAPNG_BYTES_MAX. A packet longer than
 * PCAPNG_SNAP_BYTES is cut. A comment of at most PCAPNG_COMMENT_BYTES_MAX, which readers show with
 * the packet; NULL: none. */
size_t pcapng_encode_bytes(uint8_t *out, uint64_t time, const uint8_t *packet, size_t bytes,
                           const char *comment);

#endif
