/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm - see cm.h.
 *
 * Tables say where each member of struct cm_message stands in a MAD; decoding and encoding follow
 * them. Bits that no row names are reserved, or of a part that we leave out: they are ignored when
 * read, and written as 0.
 */
#include "wire/cm.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/inet.h"

/* -- Fields ------------------------------------------------------------------------------------ */

/* Bit 0 is the highest of the first byte, as in the specification's figures. */
struct field {
    uint16_t bit;
    /* The width in bits. A wider field than 64 bits is bytes, copied as they are. */
    uint16_t width;
    uint16_t member;       /* Offset in struct cm_message. */
    uint16_t member_bytes; /* The size of an integer or bool. */
};

#define MEMBER(name) offsetof(struct cm_message, name), sizeof(((const struct cm_message *)0)->name)
#define FIELD(byte, bit, width, name)                                                              \
    {                                                                                              \
        8 * (byte) + (bit), (width), MEMBER(name)                                                  \
    }

/* Offsets in the MAD. */
static const struct field header_fields[] = {
    FIELD(8, 0, 64, transaction_id),
    FIELD(16, 0, 16, attribute),
    FIELD(20, 0, 32, attribute_modifier),
};

/* Offsets behind the MAD header, as in all tables below. */
static const struct field req_fields[] = {
    FIELD(0, 0, 32, local_id),
    FIELD(5, 0, 24, req.vendor),
    FIELD(8, 0, 64, req.service_id),
    FIELD(16, 0, 64, req.ca_guid),
    FIELD(28, 0, 32, req.qkey),
    FIELD(32, 0, 24, req.qpn),
    FIELD(35, 0, 8, req.responder_resources),
    FIELD(39, 0, 8, req.initiator_depth),
    FIELD(43, 0, 5, req.remote_response_timeout),
    FIELD(43, 5, 2, req.transport),
    FIELD(43, 7, 1, req.flow_control),
    FIELD(44, 0, 24, req.starting_psn),
    FIELD(47, 0, 5, req.local_response_timeout),
    FIELD(47, 5, 3, req.retry_count),
    FIELD(48, 0, 16, req.pkey),
    FIELD(50, 0, 4, req.path_mtu),
    FIELD(50, 4, 1, req.rdc_exists),
    FIELD(50, 5, 3, req.rnr_retry_count),
    FIELD(51, 0, 4, req.max_cm_retries),
    FIELD(51, 4, 1, req.srq),
    FIELD(51, 5, 3, req.extended_transport),
    FIELD(52, 0, 16, req.primary.local_lid),
    FIELD(54, 0, 16, req.primary.remote_lid),
    FIELD(56, 0, 128, req.primary.local_gid),
    FIELD(72, 0, 128, req.primary.remote_gid),
    FIELD(88, 0, 20, req.primary.flow_label),
    FIELD(91, 2, 6, req.primary.packet_rate),
    FIELD(92, 0, 8, req.primary.traffic_class),
    FIELD(93, 0, 8, req.primary.hop_limit),
    FIELD(94, 0, 4, req.primary.service_level),
    FIELD(94, 4, 1, req.primary.subnet_local),
    FIELD(95, 0, 5, req.primary.local_ack_timeout),
};

static const struct field rep_fields[] = {
    FIELD(0, 0, 32, local_id),
    FIELD(4, 0, 32, remote_id),
    FIELD(8, 0, 32, rep.qkey),
    FIELD(12, 0, 24, rep.qpn),
    FIELD(20, 0, 24, rep.starting_psn),
    FIELD(24, 0, 8, rep.responder_resources),
    FIELD(25, 0, 8, rep.initiator_depth),
    FIELD(26, 0, 5, rep.target_ack_delay),
    FIELD(26, 5, 2, rep.failover_accepted),
    FIELD(26, 7, 1, rep.flow_control),
    FIELD(27, 0, 3, rep.rnr_retry_count),
    FIELD(27, 3, 1, rep.srq),
    FIELD(28, 0, 64, rep.ca_guid),
};

/* RTU and DREP only say to which connection they belong. */
static const struct field bare_fields[] = {
    FIELD(0, 0, 32, local_id),
    FIELD(4, 0, 32, remote_id),
};

static const struct field rej_fields[] = {
    FIELD(0, 0, 32, local_id),    FIELD(4, 0, 32, remote_id),
    FIELD(8, 0, 2, rej.about),    FIELD(9, 0, 7, rej.information_bytes),
    FIELD(10, 0, 16, rej.reason), FIELD(12, 0, 8 * CM_REJ_INFORMATION_BYTES, rej.information),
};

static const struct field mra_fields[] = {
    FIELD(0, 0, 32, local_id),
    FIELD(4, 0, 32, remote_id),
    FIELD(8, 0, 2, mra.about),
    FIELD(9, 0, 5, mra.service_timeout),
};

static const struct field dreq_fields[] = {
    FIELD(0, 0, 32, local_id),
    FIELD(4, 0, 32, remote_id),
    FIELD(8, 0, 24, dreq_qpn),
};

static const struct field sidr_req_fields[] = {
    FIELD(0, 0, 32, local_id),
    FIELD(4, 0, 16, sidr_req.pkey),
    FIELD(8, 0, 64, sidr_req.service_id),
};

static const struct field sidr_rep_fields[] = {
    FIELD(0, 0, 32, local_id),       FIELD(4, 0, 8, sidr_rep.status),
    FIELD(8, 0, 24, sidr_rep.qpn),   FIELD(12, 0, 64, sidr_rep.service_id),
    FIELD(20, 0, 32, sidr_rep.qkey),
};

/* A field lies in the 64 bits that begin at its first byte. They end within the MAD, because
 * private data stands behind every field. */
static void decode_fields(const struct field *fields, size_t count, const uint8_t *bytes,
                          struct cm_message *message)
{
    for (const struct field *field = fields; field < fields + count; field++) {
        const uint8_t *from = bytes + field->bit / 8;
        uint8_t *member = (uint8_t *)message + field->member;
        if (field->width > 64) {
            memcpy(member, from, field->width / 8);
        } else {
            const uint64_t value = load_be64(from) << field->bit % 8 >> (64 - field->width);
            memcpy(member, &value, field->member_bytes);
        }
    }
}

/* Writes into bytes that are 0. */
static void encode_fields(const struct field *fields, size_t count, uint8_t *bytes,
                          const struct cm_message *message)
{
    for (const struct field *field = fields; field < fields + count; field++) {
        uint8_t *to = bytes + field->bit / 8;
        const uint8_t *member = (const uint8_t *)message + field->member;
        if (field->width > 64) {
            memcpy(to, member, field->width / 8);
        } else {
            uint64_t value = 0;
            memcpy(&value, member, field->member_bytes);
            store_be64(to, load_be64(to) | value << (64 - field->width) >> field->bit % 8);
        }
    }
}

/* -- Messages ---------------------------------------------------------------------------------- */

/* Private data ends every message. */
struct layout {
    const char *name;
    const struct field *fields;
    size_t fields_count;
    size_t private_bytes;
};

#define LAYOUT(kind, fields)                                                                       \
    [CM_##kind] = {#kind, (fields), COUNT_OF(fields), CM_##kind##_PRIVATE_BYTES}

static const struct layout layouts[] = {
    /* clang-format off */
    LAYOUT(REQ, req_fields),
    LAYOUT(MRA, mra_fields),
    LAYOUT(REJ, rej_fields),
    LAYOUT(REP, rep_fields),
    LAYOUT(RTU, bare_fields),
    LAYOUT(DREQ, dreq_fields),
    LAYOUT(DREP, bare_fields),
    LAYOUT(SIDR_REQ, sidr_req_fields),
    LAYOUT(SIDR_REP, sidr_rep_fields),
    /* clang-format on */
};

/* NULL: not a message we speak. */
static const struct layout *layout_of(uint16_t attribute)
{
    return attribute < COUNT_OF(layouts) && layouts[attribute].name != NULL ? &layouts[attribute]
                                                                            : NULL;
}

const char *cm_attribute_name(enum cm_attribute attribute)
{
    const struct layout *layout = layout_of((uint16_t)attribute);
    return layout == NULL ? "unknown" : layout->name;
}

size_t cm_private_bytes(enum cm_attribute attribute)
{
    const struct layout *layout = layout_of((uint16_t)attribute);
    CHECK(layout != NULL);
    return layout->private_bytes;
}

static const char *const verdict_names[CM_VERDICT_COUNT] = {
    "good", "wrong size", "wrong class", "wrong version", "unknown attribute", "wrong field",
};

const char *cm_verdict_name(enum cm_verdict verdict)
{
    CHECK(verdict < CM_VERDICT_COUNT);
    return verdict_names[verdict];
}

/* How every MAD of ours begins: base version 1, class 7 (communication management) in its version
 * 2, method Send. */
static const uint8_t header_start[] = {1, 7, 2, 3};

enum {
    VERSION_AT = 2,
    METHOD_AT = 3,
    ATTRIBUTE_AT = 16,
};

static enum cm_verdict judge_header(const uint8_t *bytes, size_t count)
{
    if (count != CM_MAD_BYTES) {
        return CM_WRONG_SIZE;
    }
    if (memcmp(bytes, header_start, VERSION_AT) != 0 ||
        bytes[METHOD_AT] != header_start[METHOD_AT]) {
        return CM_WRONG_CLASS;
    }
    if (bytes[VERSION_AT] != header_start[VERSION_AT]) {
        return CM_WRONG_VERSION;
    }
    return layout_of(load_be16(bytes + ATTRIBUTE_AT)) == NULL ? CM_UNKNOWN_ATTRIBUTE : CM_GOOD;
}

static enum cm_verdict judge_fields(const struct cm_message *message)
{
    bool good = true;
    if (message->attribute == CM_REJ) {
        good = message->rej.about <= CM_ABOUT_OTHER &&
               message->rej.information_bytes <= CM_REJ_INFORMATION_BYTES;
    } else if (message->attribute == CM_MRA) {
        good = message->mra.about <= CM_ABOUT_OTHER;
    }
    return good ? CM_GOOD : CM_WRONG_FIELD;
}

enum cm_verdict cm_decode(const uint8_t *bytes, size_t count, struct cm_message *message)
{
    enum cm_verdict verdict = judge_header(bytes, count);
    if (verdict != CM_GOOD) {
        return verdict;
    }
    const struct layout *layout = layout_of(load_be16(bytes + ATTRIBUTE_AT));
    struct cm_message decoded = {0};
    decode_fields(header_fields, COUNT_OF(header_fields), bytes, &decoded);
    decode_fields(layout->fields, layout->fields_count, bytes + CM_HEADER_BYTES, &decoded);
    memcpy(decoded.private_data, bytes + CM_MAD_BYTES - layout->private_bytes,
           layout->private_bytes);
    verdict = judge_fields(&decoded);
    if (verdict == CM_GOOD) {
        *message = decoded;
    }
    return verdict;
}

void cm_decode_opening(const uint8_t bytes[CM_MAD_BYTES], struct cm_message *message)
{
    *message = (struct cm_message){0};
    decode_fields(header_fields, COUNT_OF(header_fields), bytes, message);
    message->local_id = load_be32(bytes + CM_HEADER_BYTES);
}

void cm_encode(const struct cm_message *message, uint8_t out[CM_MAD_BYTES])
{
    const struct layout *layout = layout_of(message->attribute);
    CHECK(layout != NULL);
    memset(out, 0, CM_MAD_BYTES);
    memcpy(out, header_start, sizeof(header_start));
    encode_fields(header_fields, COUNT_OF(header_fields), out, message);
    encode_fields(layout->fields, layout->fields_count, out + CM_HEADER_BYTES, message);
    memcpy(out + CM_MAD_BYTES - layout->private_bytes, message->private_data,
           layout->private_bytes);
}

/* -- RDMA IP CM service ------------------------------------------------------------------------ */

enum {
    ADDRESSES_VERSION = 0,
    ADDRESSES_IPV4 = 4, /* IP version: the high nibble of byte 1. The low one is reserved. */
    ADDRESSES_IPV6 = 6,
    ADDRESSES_PORT_AT = 2,
    ADDRESSES_SOURCE_AT = 4,
    ADDRESSES_DESTINATION_AT = 20,
    IPV4_AT = 12, /* The offset of an IPv4 address in the 16 bytes of an address. */
};

static void decode_address(bool ipv6, const uint8_t from[16], uint8_t address[16])
{
    static const uint8_t mapped[IPV4_AT] = {[10] = 0xff, 0xff};
    memcpy(address, from, 16);
    if (!ipv6) {
        memcpy(address, mapped, sizeof(mapped));
    }
}

static void encode_address(bool ipv6, const uint8_t address[16], uint8_t to[16])
{
    CHECK(ipv6 || inet_is_ipv4(address));
    memcpy(to, address, 16);
    if (!ipv6) {
        memset(to, 0, IPV4_AT);
    }
}

bool cm_addresses_decode(const uint8_t bytes[CM_ADDRESSES_BYTES], struct cm_addresses *addresses)
{
    const uint8_t ip_version = bytes[1] >> 4;
    if (bytes[0] != ADDRESSES_VERSION ||
        (ip_version != ADDRESSES_IPV4 && ip_version != ADDRESSES_IPV6)) {
        return false;
    }
    addresses->ipv6 = ip_version == ADDRESSES_IPV6;
    addresses->source_port = load_be16(bytes + ADDRESSES_PORT_AT);
    decode_address(addresses->ipv6, bytes + ADDRESSES_SOURCE_AT, addresses->source);
    decode_address(addresses->ipv6, bytes + ADDRESSES_DESTINATION_AT, addresses->destination);
    return true;
}

void cm_addresses_encode(const struct cm_addresses *addresses, uint8_t out[CM_ADDRESSES_BYTES])
{
    out[0] = ADDRESSES_VERSION;
    out[1] = (uint8_t)((addresses->ipv6 ? ADDRESSES_IPV6 : ADDRESSES_IPV4) << 4);
    store_be16(out + ADDRESSES_PORT_AT, addresses->source_port);
    encode_address(addresses->ipv6, addresses->source, out + ADDRESSES_SOURCE_AT);
    encode_address(addresses->ipv6, addresses->destination, out + ADDRESSES_DESTINATION_AT);
}
