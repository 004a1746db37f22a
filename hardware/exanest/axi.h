/* SPDX-License-Identifier: BSD-2-Clause
 *
 * axi - the messages between the units and memory.
 *
 * A read asks for `bytes` bytes from `address` on and never crosses a line of 4 KB. Memory answers
 * with the 16-byte words in which they lie, exanest_payload_words(address, bytes) of them. Answers
 * to reads of one AXI ID come in the order of the reads; those to different IDs may be mixed.
 *
 * A unit that writes has `NAME_next_write`, which the world pulls when memory takes a word, and
 * `NAME_on_write_response`, for memory's answer to each burst, in the order of the bursts.
 *
 * Source: Xirouchakis 5.3.2, 5.3.3, 5.3.4, 6.1. The document says that a fault answers with 2 or 3,
 * and tells faults from decode errors: that 2 is the one and 3 the other is our choice.
 */
#ifndef HARDWARE_EXANEST_AXI_H
#define HARDWARE_EXANEST_AXI_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/exanest.h"

#define EXANEST_AXI_IDS     8u /* One per protection domain, and per context of the SMMU. */
#define EXANEST_PAGE_BYTES  4096u
#define EXANEST_MEMORY_BITS 39 /* The bits of an address that the SMMU takes. */

/* AXI's RRESP and BRESP; 1 is not used here. */
enum exanest_axi_response {
    EXANEST_AXI_OKAY = 0,
    EXANEST_AXI_SLAVE_ERROR = 2,
    EXANEST_AXI_DECODE_ERROR = 3,
};

struct exanest_memory_read {
    uint64_t address;
    uint16_t bytes; /* 1..256. */
    uint8_t axi_id;
};

struct exanest_read_beat {
    struct exanest_word word;
    uint8_t axi_id;
    uint8_t response; /* enum exanest_axi_response. */
    bool last;        /* The last one of its read. */
};

/* A write of one word. A burst is what lies between `first` and `last`. */
struct exanest_memory_write {
    uint64_t va; /* The word's: EXANEST_MEMORY_BITS bits, a multiple of 16. */
    uint16_t pdid;
    uint16_t lanes; /* Bit k: byte k is written. 0 in a word that only ends a burst. */
    bool first, last;
    struct exanest_word word;
};

#endif
