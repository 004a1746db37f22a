/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/forth.h"

#include <isa-l/crc.h>

enum {
    /* Request, QWord 1. */
    REQUEST_WORDS_AT = 32,
    REQUEST_NODE_AT = 50,
    REQUEST_START_AT = 59,
    REQUEST_INTERRUPT_AT = 60,
    REQUEST_LOCAL_AT = 61,
    REQUEST_REMOTE_AT = 62,
    /* Header. */
    HEADER_WORDS_AT = 32,
    HEADER_START_AT = 51, /* Always 1: the request's start flag arrives. */
    HEADER_INTERRUPT_AT = 52,
    HEADER_LOCAL_AT = 53,
    HEADER_REMOTE_AT = 54,
    HEADER_NODE_AT = 56,
};

#define BIT(at)       (UINT64_C(1) << (at))
#define WORDS_MASK    0x3ffu
#define NODE_MASK     0x7fu
#define REQUEST_ZEROS (BIT(63) | BIT(58) | BIT(57) | UINT64_C(0xff) << 42)
#define HEADER_ZEROS  (BIT(55) | UINT64_C(0x1ff) << 42)

static bool length_good(uint64_t words)
{
    return words >= 1 && words <= FORTH_WORDS_MAX;
}

/* -- Requests -----------------------------------------------------------------------------------*/

void forth_request_encode(const struct forth_request *request, uint64_t words[2])
{
    CHECK(length_good(request->words));
    CHECK(request->node < FORTH_NODES);
    words[0] = request->source;
    words[1] = request->destination | (uint64_t)request->words << REQUEST_WORDS_AT |
               (uint64_t)request->node << REQUEST_NODE_AT |
               (uint64_t)request->start << REQUEST_START_AT |
               (uint64_t)request->flags.remote_interrupt << REQUEST_INTERRUPT_AT |
               (uint64_t)request->flags.local_notification << REQUEST_LOCAL_AT |
               (uint64_t)request->flags.remote_notification << REQUEST_REMOTE_AT;
}

enum forth_verdict forth_request_decode(const uint64_t words[2], struct forth_request *request)
{
    const uint64_t word = words[1];
    const uint64_t count = word >> REQUEST_WORDS_AT & WORDS_MASK;
    if (!length_good(count)) {
        return FORTH_WRONG_LENGTH;
    }
    if (word & REQUEST_ZEROS) {
        return FORTH_RESERVED_BITS;
    }
    *request = (struct forth_request){
        .source = words[0],
        .destination = (uint32_t)word,
        .words = (uint16_t)count,
        .node = (uint8_t)(word >> REQUEST_NODE_AT & NODE_MASK),
        .start = word >> REQUEST_START_AT & 1,
        .flags = {.remote_interrupt = word >> REQUEST_INTERRUPT_AT & 1,
                  .local_notification = word >> REQUEST_LOCAL_AT & 1,
                  .remote_notification = word >> REQUEST_REMOTE_AT & 1},
    };
    return FORTH_GOOD;
}

/* -- Headers ------------------------------------------------------------------------------------*/

uint64_t forth_header_encode(const struct forth_header *header)
{
    CHECK(length_good(header->words));
    CHECK(header->node < FORTH_NODES);
    return header->destination | (uint64_t)header->words << HEADER_WORDS_AT | BIT(HEADER_START_AT) |
           (uint64_t)header->flags.remote_interrupt << HEADER_INTERRUPT_AT |
           (uint64_t)header->flags.local_notification << HEADER_LOCAL_AT |
           (uint64_t)header->flags.remote_notification << HEADER_REMOTE_AT |
           (uint64_t)header->node << HEADER_NODE_AT;
}

enum forth_verdict forth_header_decode(uint64_t word, struct forth_header *header)
{
    const uint64_t count = word >> HEADER_WORDS_AT & WORDS_MASK;
    if (word & BIT(63)) {
        return FORTH_NOT_A_HEADER;
    }
    if (!length_good(count)) {
        return FORTH_WRONG_LENGTH;
    }
    if ((word & HEADER_ZEROS) || !(word & BIT(HEADER_START_AT))) {
        return FORTH_RESERVED_BITS;
    }
    *header = (struct forth_header){
        .node = (uint8_t)(word >> HEADER_NODE_AT & NODE_MASK),
        .words = (uint16_t)count,
        .destination = (uint32_t)word,
        .flags = {.remote_interrupt = word >> HEADER_INTERRUPT_AT & 1,
                  .local_notification = word >> HEADER_LOCAL_AT & 1,
                  .remote_notification = word >> HEADER_REMOTE_AT & 1},
    };
    return FORTH_GOOD;
}

/* One byte at a time without a table: `mixed` is the byte's effect on the polynomial's three
 * terms. */
static uint16_t crc16_byte(uint16_t crc, uint8_t byte)
{
    uint8_t mixed = (uint8_t)(crc >> 8 ^ byte);
    mixed ^= mixed >> 4;
    return (uint16_t)(crc << 8 ^ mixed << 12 ^ mixed << 5 ^ mixed);
}

uint16_t forth_header_crc(uint64_t header)
{
    uint16_t crc = 0xffff;
    for (int shift = 56; shift >= 0; shift -= 8) {
        crc = crc16_byte(crc, (uint8_t)(header >> shift));
    }
    return crc;
}

bool forth_header_repair(uint64_t *header, uint16_t crc)
{
    const uint16_t difference = forth_header_crc(*header) ^ crc;
    if ((difference & (difference - 1)) == 0) {
        return true; /* The bit was one of the CRC's own. */
    }
    for (int bit = 0; bit < 64; bit++) {
        const uint64_t tried = *header ^ UINT64_C(1) << bit;
        if (forth_header_crc(tried) == crc) {
            *header = tried;
            return true;
        }
    }
    return false;
}

/* The library leaves the upper halves of the vector registers in use, and every SSE instruction
 * behind it waits to merge with them: a simulation around it ran at half its speed. */
static void release_wide_registers(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile("vzeroupper");
    }
#endif
}

/* The library complements on the way in and on the way out. */
uint32_t forth_body_crc(uint32_t crc, const uint8_t *payload, size_t bytes)
{
    const uint32_t result = ~crc32_ieee(~crc, (uint8_t *)(uintptr_t)payload, bytes);
    release_wide_registers();
    return result;
}

/* -- Credits ------------------------------------------------------------------------------------*/

static bool odd(uint16_t bits)
{
    return __builtin_parity(bits);
}

uint16_t forth_credit_encode(struct forth_credit credit)
{
    CHECK(credit.flow < FORTH_NODES);
    CHECK(credit.value <= 0x7f);
    const uint16_t content = (uint16_t)(credit.flow << 7 | credit.value);
    return (uint16_t)(0x8000 | odd(content) << 14 | content);
}

enum forth_verdict forth_credit_decode(uint16_t word, struct forth_credit *credit)
{
    const uint16_t content = word & 0x3fff;
    if (!(word & 0x8000)) {
        return FORTH_NOT_A_CREDIT;
    }
    if (odd(content) != (word >> 14 & 1)) {
        return FORTH_WRONG_PARITY;
    }
    *credit = (struct forth_credit){.flow = (uint8_t)(content >> 7), .value = content & 0x7f};
    return FORTH_GOOD;
}
