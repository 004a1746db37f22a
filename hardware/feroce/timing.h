/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timing - the time of a packet in each server of the board, without stepping words.
 *
 * Purpose    The sums by which a world that moves whole packets knows what limits the board's rate.
 *            timing_test proves that of the ICRC against the stepped unit.
 * Units      Bytes, also for widths. A frame goes from the destination MAC to the ICRC.
 * Limits     A server has one packet at a time; what waits is the world's.
 * Source     RTL2026 (wire/feroce.h), whose states we counted; IEEE 802.3 (overheads of a frame).
 *            The cycles of a memory write and of a request are our choice.
 */
#ifndef HARDWARE_FEROCE_TIMING_H
#define HARDWARE_FEROCE_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/feroce.h"
#include "wire/roce.h"

#define FEROCE_FCS_BYTES       4u
#define FEROCE_LINE_BYTES_MIN  64u   /* A frame with its FCS is never shorter on the line. */
#define FEROCE_LINE_GAP_BYTES  20u   /* Preamble 8, gap 12. */
#define FEROCE_QUEUE_BYTES     8192u /* Room of a queue for whole packets. */
#define FEROCE_STORE_CYCLES    2u    /* Memory write, beside the words. */
#define FEROCE_REWIND_CYCLES   2u    /* A visit that sets RD back. */
#define FEROCE_GENERATE_CYCLES 2u    /* A message, beside its words. */

/* -- Lengths ------------------------------------------------------------------------------------*/

static inline uint32_t feroce_words(uint32_t bytes, uint32_t width_bytes)
{
    return (bytes + width_bytes - 1) / width_bytes;
}

/* A packet from the destination MAC to the ICRC: 58 bytes and the payload; 16 more with RETH, 4
 * with immediate data. */
static inline uint32_t feroce_frame_bytes(uint32_t payload_bytes, bool has_reth, bool has_immediate)
{
    return (uint32_t)(FEROCE_FRAME_HEADERS_BYTES + ROCE_BTH_BYTES + ROCE_ICRC_BYTES) +
           (has_reth ? 16u : 0) + (has_immediate ? 4u : 0) + payload_bytes;
}

/* -- Servers, in cycles -------------------------------------------------------------------------*/

/* From message to message. */
static inline uint64_t feroce_generator_cycles(uint32_t frequency, uint32_t message_bytes,
                                               uint32_t width_bytes)
{
    const uint64_t period = UINT64_C(1) + frequency;
    const uint64_t words = feroce_words(message_bytes, width_bytes) + FEROCE_GENERATE_CYCLES;
    return period > words ? period : words;
}

/* Data in, a word in each cycle, and the header: the packet is whole at the end. */
static inline uint32_t feroce_queue_cycles(uint32_t payload_bytes, uint32_t width_bytes, bool first,
                                           uint32_t request_cycles)
{
    return feroce_words(payload_bytes, width_bytes) + (first ? request_cycles : 0);
}

/* Memory write: WR advances at the end (stack 2026). */
static inline uint32_t feroce_store_cycles(uint32_t payload_bytes, uint32_t width_bytes)
{
    return feroce_words(payload_bytes, width_bytes) + FEROCE_STORE_CYCLES;
}

struct feroce_visit_cycles {
    uint32_t empty;  /* A visit without a packet: 3. */
    uint32_t packet; /* One with a packet: 8, while the data of packets before it stream. */
};

/* The reader at a queue pair. */
static inline uint32_t feroce_visit_cycles(const struct feroce_visit_cycles *costs, bool sends,
                                           bool rewound)
{
    return (sends ? costs->packet : costs->empty) + (rewound ? FEROCE_REWIND_CYCLES : 0);
}

/* The reader at all of them, `busy` of which send. */
static inline uint32_t feroce_round_cycles(const struct feroce_visit_cycles *costs, uint32_t qps,
                                           uint32_t busy)
{
    return busy * costs->packet + (qps - busy) * costs->empty;
}

/* Does the ICRC need a word of its own? Its unit works on the octets behind the Ethernet header. If
 * the last word of them is full, it has no room for the ICRC. */
static inline bool feroce_icrc_is_alone(uint32_t frame_bytes, uint32_t width_bytes)
{
    return (frame_bytes - 14 - ROCE_ICRC_BYTES) % width_bytes == 0;
}

/* Memory read, headers and ICRC. */
static inline uint32_t feroce_send_cycles(uint32_t frame_bytes, uint32_t width_bytes)
{
    return feroce_words(frame_bytes, width_bytes) +
           (feroce_icrc_is_alone(frame_bytes, width_bytes) ? 1 : 0);
}

/* The delay of a frame by the ICRC's unit of 2026; the document's has three stages (crc.h). The
 * width is a power of two. */
static inline uint32_t feroce_icrc_cycles(uint32_t width_bytes)
{
    return (uint32_t)__builtin_ctz(width_bytes) + 3 + 2;
}

/* -- The line, in ps ----------------------------------------------------------------------------*/

/* How long a frame has the line. `extra_bytes` stand behind each one. A byte takes 800 ps at
 * 10 Gb/s, 320 at 25, 80 at 100. */
static inline uint64_t feroce_line_ps(uint32_t frame_bytes, uint32_t extra_bytes, uint32_t byte_ps)
{
    const uint32_t bytes = frame_bytes + FEROCE_FCS_BYTES;
    return (uint64_t)((bytes > FEROCE_LINE_BYTES_MIN ? bytes : FEROCE_LINE_BYTES_MIN) +
                      FEROCE_LINE_GAP_BYTES + extra_bytes) *
           byte_ps;
}

#endif
