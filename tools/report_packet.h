/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_packet - a packet of a capture, judged: what it is, from whom and for whom.
 *
 * Inputs     Bytes of a file that anybody may have written. Nothing of them is believed.
 * Ownership  What was read points into the bytes.
 * Source     Link types as registered by tcpdump.org; RFC 791, RFC 8200, RFC 768; wire/ for the
 *            rest.
 */
#ifndef TOOLS_REPORT_PACKET_H
#define TOOLS_REPORT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/block.h"
#include "wire/inet.h"
#include "wire/roce.h"
#include "wire/srd.h"

/* A packet as it lies in a capture. */
struct report_frame {
    uint64_t number; /* As Wireshark counts: from 1. */
    uint64_t at_ns;
    const uint8_t *bytes;
    uint32_t kept_bytes, bytes_on_wire; /* The capture may have less than there was. */
};

enum report_kind {
    REPORT_FOREIGN, /* Not RoCEv2. */
    REPORT_BROKEN,  /* At RoCE's port, and no packet: `flaw` says why. */
    REPORT_PORT,    /* Flow control between two nonics. */
    REPORT_ROCE,    /* RC, XRC, UC, UD, congestion notifications. */
    REPORT_BLOCK,
    REPORT_SRD,
};

struct report_packet {
    uint64_t number, at_ns;
    struct inet_flow flow;
    enum report_kind kind;
    const char *flaw, *name; /* NULL: none. */
    bool is_marked;          /* A router marked it (ECN). */
    bool is_wrong;           /* The ICRC does not fit. */
    bool is_cut;             /* The capture does not have all of it. */
    uint32_t qpn, payload_bytes;
    union {
        struct roce_packet roce;
        struct block_packet block;
        struct srd_packet srd;
    };
};

/* Can packets of this link type (libpcap's DLT_...) be read? */
bool report_reads_link(int link);

/* Reads a packet of such a link; never fails, since any bytes are a packet of some kind. */
void report_read_packet(int link, const struct report_frame *frame, struct report_packet *packet);

#endif
