/* SPDX-License-Identifier: BSD-2-Clause
 *
 * capture - a pcapng file of every packet of the process.
 *
 * Purpose    `nonic run --capture FILE.pcapng`: RoCEv2 that Wireshark reads, whatever carried it.
 * Inputs     Packets as they leave and arrive.
 * Outputs    A file that is whole blocks at any time.
 * Ownership  capture_open allocates, capture_close frees; NULL stands for "no capture" in every
 *            call.
 * Time       Each packet is stamped when it is recorded.
 * Limits     CAPTURE_BUFFER_BYTES wait in memory at most.
 * Source     wire/pcapng.h.
 */
#ifndef DRIVERS_CAPTURE_H
#define DRIVERS_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/icrc.h"

struct capture;

/* "%p" in `path` becomes the process number. A file that another running program is writing is left
 * alone: the process number goes in front of the extension, and stderr says so. NULL with a reason
 * in `error`. */
struct capture *capture_open(const char *path, char *error, size_t error_bytes);
/* For a child of fork, which has closed the file, since it is the parent's: nothing more is
 * written. NULL: does nothing. */
void capture_forget(struct capture *capture);
void capture_close(struct capture *capture);

/* Records a packet, from BTH to ICRC. */
void capture_bytes(struct capture *capture, const struct inet_flow *flow,
                   struct inet_variant variant, const uint8_t *bytes, size_t count);

/* Records a packet in two pieces without its ICRC, which is computed for identification 0.
 * `payload` may be NULL. */
void capture_pieces(struct capture *capture, const struct inet_flow *flow,
                    struct inet_variant variant, const uint8_t *headers, size_t headers_bytes,
                    const uint8_t *payload, size_t payload_bytes);

/* Writes the packets that wait in memory. */
void capture_flush(struct capture *capture);

#endif
