/* SPDX-License-Identifier: BSD-2-Clause
 *
 * incoming - the SEND or WRITE message that is arriving, packet by packet, over RC or UC.
 *
 * Knows the order of opcodes within a message and the lengths its packets must have (IBTA 9.7.4.1
 * and 9.8.2); whether a packet is the next one at all is the business of its owner.
 */
#ifndef TRANSPORT_IBTA_INCOMING_H
#define TRANSPORT_IBTA_INCOMING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/roce.h"

/* The longest message, 2 GiB (IBTA 9.4.1). */
#define MESSAGE_BYTES_MAX 0x80000000u

enum incoming_kind {
    INCOMING_NONE,
    INCOMING_SEND,
    INCOMING_WRITE,
};

struct incoming {
    uint16_t mtu_bytes;
    uint8_t kind;        /* enum incoming_kind; NONE between messages. */
    uint32_t received;   /* Bytes of the message so far. */
    uint32_t write_left; /* Bytes of the WRITE still to come. */
    uint32_t write_key;
    uint64_t write_address; /* Where the next byte of the WRITE goes. */
};

enum incoming_verdict {
    INCOMING_FITS,
    INCOMING_WRONG_ORDER,
    INCOMING_WRONG_LENGTH,
};

/* May a request with these traits follow? READs and atomics fit between messages. */
enum incoming_verdict incoming_judge(const struct incoming *incoming,
                                     const struct roce_packet *packet, uint32_t traits);

/* Takes a SEND or WRITE packet in that fits. */
void incoming_accept(struct incoming *incoming, const struct roce_packet *packet, uint32_t traits);

/* How many bytes of its message came before a fitting packet. */
uint32_t incoming_before(const struct incoming *incoming, uint32_t traits);
/* A message that has begun has at least one packet to come, and all that came were full. */
void incoming_check(const struct incoming *incoming);

/* Where the payload of a fitting WRITE packet goes, and by which key. */
void incoming_target(const struct incoming *incoming, const struct roce_packet *packet,
                     uint32_t traits, uint64_t *address, uint32_t *key);

#endif
