/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pcapng - see pcapng.h.
 *
 * Every block is: type, total length, body, total length again; everything inside starts at a
 * multiple of four bytes. Integers are in the byte order that the section header announces: ours
 * is little-endian. An option is a 16-bit code, a 16-bit length, and its value.
 */
#include "wire/pcapng.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

enum block_type {
    BLOCK_SECTION_HEADER = 0x0a0d0d0a,
    BLOCK_INTERFACE_DESCRIPTION = 1,
    BLOCK_ENHANCED_PACKET = 6,
};

enum option_code {
    OPTION_END = 0,
    OPTION_COMMENT = 1,
    OPTION_INTERFACE_NAME = 2,
    OPTION_APPLICATION = 4,
    OPTION_TIME_RESOLUTION = 9,
};

enum {
    BYTE_ORDER_MAGIC = 0x1a2b3c4d,
    VERSION_1_0 = 1, /* Major in the first 16 bits, minor in the next. */
    PACKET_AT = 28,  /* Where the packet starts in an enhanced packet block. */
    /* Both blocks without the texts: fixed parts 28 and 20, time resolution 8, heads of the text
     * options 3 * 4, ends of options 2 * 4. */
    HEADER_BYTES_BESIDE_TEXT = 28 + 20 + 8 + 12 + 8,
};

_Static_assert(PCAPNG_TEXT_BYTES_MAX % 4 == 0 && PCAPNG_COMMENT_BYTES_MAX % 4 == 0 &&
                   HEADER_BYTES_BESIDE_TEXT + 2 * PCAPNG_TEXT_BYTES_MAX +
                           PCAPNG_COMMENT_BYTES_MAX <=
                       PCAPNG_HEADER_BYTES_MAX,
               "the longest header fits");
_Static_assert(PCAPNG_SNAP_BYTES % 4 == 0, "the longest packet needs no padding");

static uint8_t *put_word(uint8_t *at, uint32_t value)
{
    store_le32(at, value);
    return at + 4;
}

/* Zeros behind `count` bytes that began at a multiple of four, up to the next one. */
static uint8_t *put_padding(uint8_t *at, size_t count)
{
    const size_t padding = -count & 3;
    memset(at, 0, padding);
    return at + padding;
}

static uint8_t *put_option(uint8_t *at, enum option_code code, const void *value, size_t count)
{
    at = put_word(at, (uint32_t)code | (uint32_t)count << 16);
    memcpy(at, value, count);
    return put_padding(at + count, count);
}

/* Starts a block whose length put_block_end fills in. */
static uint8_t *put_block(uint8_t *at, enum block_type type)
{
    return put_word(put_word(at, type), 0);
}

static uint8_t *put_block_end(uint8_t *block, uint8_t *at)
{
    const uint32_t total_bytes = (uint32_t)(at - block) + 4;
    store_le32(block + 4, total_bytes);
    return put_word(at, total_bytes);
}

static uint8_t *put_section_header(uint8_t *block, const char *application)
{
    uint8_t *at = put_block(block, BLOCK_SECTION_HEADER);
    at = put_word(at, BYTE_ORDER_MAGIC);
    at = put_word(at, VERSION_1_0);
    at = put_word(at, UINT32_MAX); /* Section length, 64 bits: not known. */
    at = put_word(at, UINT32_MAX);
    at = put_option(at, OPTION_APPLICATION, application, strlen(application));
    at = put_word(at, OPTION_END);
    return put_block_end(block, at);
}

static uint8_t *put_interface_description(uint8_t *block, const struct pcapng_interface *interface)
{
    uint8_t *at = put_block(block, BLOCK_INTERFACE_DESCRIPTION);
    at = put_word(at, (uint32_t)interface->link); /* 16 bits, and 16 reserved. */
    at = put_word(at, PCAPNG_SNAP_BYTES);
    at = put_option(at, OPTION_INTERFACE_NAME, interface->name, strlen(interface->name));
    at = put_option(at, OPTION_TIME_RESOLUTION, &interface->resolution,
                    sizeof(interface->resolution));
    if (interface->comment != NULL) {
        at = put_option(at, OPTION_COMMENT, interface->comment, strlen(interface->comment));
    }
    at = put_word(at, OPTION_END);
    return put_block_end(block, at);
}

size_t pcapng_encode_header(uint8_t *out, const char *application,
                            const struct pcapng_interface *interface)
{
    CHECK(strlen(application) <= PCAPNG_TEXT_BYTES_MAX);
    CHECK(strlen(interface->name) <= PCAPNG_TEXT_BYTES_MAX);
    CHECK(interface->comment == NULL || strlen(interface->comment) <= PCAPNG_COMMENT_BYTES_MAX);
    uint8_t *at = put_section_header(out, application);
    at = put_interface_description(at, interface);
    return (size_t)(at - out);
}

/* Writes everything of a packet block except the packet. */
static uint8_t *put_packet_head(uint8_t *block, uint64_t time, size_t kept_bytes, size_t bytes)
{
    uint8_t *at = put_block(block, BLOCK_ENHANCED_PACKET);
    at = put_word(at, 0); /* The first interface of the section. */
    at = put_word(at, (uint32_t)(time >> 32));
    at = put_word(at, (uint32_t)time);
    at = put_word(at, (uint32_t)kept_bytes);
    at = put_word(at, (uint32_t)bytes);
    CHECK(at == block + PACKET_AT);
    return at;
}

size_t pcapng_encode_packet(uint8_t *out, uint64_t unix_ns, const struct inet_flow *flow,
                            struct inet_variant variant, uint16_t identification,
                            const uint8_t *payload, size_t payload_bytes)
{
    const size_t kept_bytes =
        payload_bytes < BLOCK_PACKET_BYTES_MAX ? payload_bytes : BLOCK_PACKET_BYTES_MAX;
    const size_t headers_bytes =
        inet_encode(out + PACKET_AT, flow, identification, payload, payload_bytes);
    inet_put_variant(out + PACKET_AT, variant);

    uint8_t *at =
        put_packet_head(out, unix_ns, headers_bytes + kept_bytes, headers_bytes + payload_bytes);
    memcpy(at + headers_bytes, payload, kept_bytes);
    at += headers_bytes + kept_bytes;
    at = put_padding(at, headers_bytes + kept_bytes);
    return (size_t)(put_block_end(out, at) - out);
}

size_t pcapng_encode_bytes(uint8_t *out, uint64_t time, const uint8_t *packet, size_t bytes,
                           const char *comment)
{
    const size_t kept_bytes = bytes < PCAPNG_SNAP_BYTES ? bytes : PCAPNG_SNAP_BYTES;
    uint8_t *at = put_packet_head(out, time, kept_bytes, bytes);
    memcpy(at, packet, kept_bytes);
    at = put_padding(at + kept_bytes, kept_bytes);
    if (comment != NULL) {
        CHECK(strlen(comment) <= PCAPNG_COMMENT_BYTES_MAX);
        at = put_word(put_option(at, OPTION_COMMENT, comment, strlen(comment)), OPTION_END);
    }
    return (size_t)(put_block_end(out, at) - out);
}
