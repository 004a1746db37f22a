/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/feroce.h"

#include <string.h>

#include "base/bytes.h"

#define QPN_BITS 0xffffffu

/* Octets of a message. A QPN or PSN of 24 bits has five octets: with its pad octet in front
 * of it (version 3) or behind it (version 2). */
enum {
    AT_FLAGS = 0,
    AT_LOCAL_QPN = 1,
    AT_LOCAL_PSN = 5,
    AT_LOCAL_RKEY = 9,
    AT_LOCAL_ADDRESS = 13,
    AT_LOCAL_IP = 21,
    AT_REMOTE = 24, /* From a local field to the remote one. */
    AT_PORT = 49,
    AT_META = 51,
    AT_LENGTH = 52,
    AT_COUNT = 56,
    AT_FREQUENCY = 60,
};

enum {
    FLAG_INFO_VALID = 1 << 0,
    FLAG_ACK_VALID = 1 << 4,
    META_VALID = 1 << 0,
    META_START = 1 << 1,
    META_IMMEDIATE = 1 << 2,
    META_WRITE = 1 << 3,
};

/* 2, 4 or 8 octets in the version's byte order. */
static void put(enum feroce_cm_version version, uint8_t *to, uint32_t bytes, uint64_t value)
{
    for (uint32_t i = 0; i < bytes; i++) {
        const uint32_t shift = 8 * (version == FEROCE_CM_3 ? bytes - 1 - i : i);
        to[i] = (uint8_t)(value >> shift);
    }
}

static uint64_t get(enum feroce_cm_version version, const uint8_t *from, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        const uint32_t shift = 8 * (version == FEROCE_CM_3 ? bytes - 1 - i : i);
        value |= (uint64_t)from[i] << shift;
    }
    return value;
}

/* As 32 bits whose highest are 0, in either order, the pad octet is where it belongs. */
static void put_side(enum feroce_cm_version version, const struct feroce_side *side, uint8_t *out)
{
    put(version, out + AT_LOCAL_QPN, 4, side->qpn & QPN_BITS);
    put(version, out + AT_LOCAL_PSN, 4, side->psn & QPN_BITS);
    put(version, out + AT_LOCAL_RKEY, 4, side->rkey);
    put(version, out + AT_LOCAL_ADDRESS, 8, side->address);
    put(version, out + AT_LOCAL_IP, 4, side->ip);
}

static struct feroce_side get_side(enum feroce_cm_version version, const uint8_t *bytes)
{
    return (struct feroce_side){
        .qpn = (uint32_t)get(version, bytes + AT_LOCAL_QPN, 4) & QPN_BITS,
        .psn = (uint32_t)get(version, bytes + AT_LOCAL_PSN, 4) & QPN_BITS,
        .rkey = (uint32_t)get(version, bytes + AT_LOCAL_RKEY, 4),
        .address = get(version, bytes + AT_LOCAL_ADDRESS, 8),
        .ip = (uint32_t)get(version, bytes + AT_LOCAL_IP, 4),
    };
}

void feroce_cm_encode(enum feroce_cm_version version, const struct feroce_cm *message,
                      uint8_t out[FEROCE_CM_BYTES])
{
    const struct feroce_meta *meta = &message->meta;
    memset(out, 0, FEROCE_CM_BYTES);
    out[AT_FLAGS] =
        (uint8_t)((message->info_valid ? FLAG_INFO_VALID : 0) | (message->request & 7) << 1 |
                  (message->ack_valid ? FLAG_ACK_VALID : 0) | (message->ack & 7) << 5);
    put_side(version, &message->local, out);
    put_side(version, &message->remote, out + AT_REMOTE);
    put(version, out + AT_PORT, 2, message->listening_port);
    out[AT_META] =
        (uint8_t)((meta->valid ? META_VALID : 0) | (meta->start ? META_START : 0) |
                  (meta->immediate ? META_IMMEDIATE : 0) | (meta->write ? META_WRITE : 0));
    put(version, out + AT_LENGTH, 4, meta->length);
    put(version, out + AT_COUNT, 4, meta->count);
    put(version, out + AT_FREQUENCY, 4, meta->frequency);
}

bool feroce_cm_decode(enum feroce_cm_version version, const uint8_t *bytes, size_t count,
                      struct feroce_cm *message)
{
    if (count != FEROCE_CM_BYTES) {
        return false;
    }
    const uint8_t flags = bytes[AT_FLAGS], meta = bytes[AT_META];
    *message = (struct feroce_cm){
        .request = flags >> 1 & 7,
        .ack = flags >> 5,
        .info_valid = (flags & FLAG_INFO_VALID) != 0,
        .ack_valid = (flags & FLAG_ACK_VALID) != 0,
        .local = get_side(version, bytes),
        .remote = get_side(version, bytes + AT_REMOTE),
        .listening_port = (uint16_t)get(version, bytes + AT_PORT, 2),
        .meta = {.valid = (meta & META_VALID) != 0,
                 .start = (meta & META_START) != 0,
                 .immediate = (meta & META_IMMEDIATE) != 0,
                 .write = (meta & META_WRITE) != 0,
                 .length = (uint32_t)get(version, bytes + AT_LENGTH, 4),
                 .count = (uint32_t)get(version, bytes + AT_COUNT, 4),
                 .frequency = (uint32_t)get(version, bytes + AT_FREQUENCY, 4)},
    };
    return true;
}

bool feroce_cm_suspect(const uint8_t bytes[FEROCE_CM_BYTES], uint16_t source_port)
{
    const bool big = get(FEROCE_CM_3, bytes + AT_PORT, 2) == source_port;
    const bool little = get(FEROCE_CM_2, bytes + AT_PORT, 2) == source_port;
    return bytes[AT_LOCAL_QPN] != 0 || (little && !big);
}

/* Octets of version 1, big-endian without pads. */
enum {
    AT_1_REMOTE_QPN = 1,
    AT_1_LOCAL_QPN = 4,
    AT_1_REMOTE_PSN = 7,
    AT_1_LOCAL_PSN = 10,
    AT_1_RKEY = 13,
    AT_1_ADDRESS = 17,
    AT_1_META = 25,
    AT_1_IP = 26,
    AT_1_OFFSET = 30,
    AT_1_LENGTH = 38,
    AT_1_PORT = 42,
    META_1_VALID = 1 << 0,
    META_1_START = 1 << 1,
    META_1_WRITE = 1 << 2,
};

void feroce_cm_1_encode(const struct feroce_cm_1 *message, uint8_t out[FEROCE_CM_1_BYTES])
{
    memset(out, 0, FEROCE_CM_1_BYTES);
    out[AT_FLAGS] = message->info_valid ? FLAG_INFO_VALID : 0;
    put(FEROCE_CM_3, out + AT_1_REMOTE_QPN, 3, message->remote_qpn);
    put(FEROCE_CM_3, out + AT_1_LOCAL_QPN, 3, message->local_qpn);
    put(FEROCE_CM_3, out + AT_1_REMOTE_PSN, 3, message->remote_psn);
    put(FEROCE_CM_3, out + AT_1_LOCAL_PSN, 3, message->local_psn);
    store_be32(out + AT_1_RKEY, message->rkey);
    store_be64(out + AT_1_ADDRESS, message->remote_address);
    out[AT_1_META] =
        (uint8_t)((message->meta_valid ? META_1_VALID : 0) | (message->start ? META_1_START : 0) |
                  (message->write ? META_1_WRITE : 0));
    store_be32(out + AT_1_IP, message->remote_ip);
    store_be64(out + AT_1_OFFSET, message->offset);
    store_be32(out + AT_1_LENGTH, message->length);
    store_be16(out + AT_1_PORT, message->udp_port);
}

bool feroce_cm_1_decode(const uint8_t *bytes, size_t count, struct feroce_cm_1 *message)
{
    if (count != FEROCE_CM_1_BYTES) {
        return false;
    }
    *message = (struct feroce_cm_1){
        .info_valid = (bytes[AT_FLAGS] & FLAG_INFO_VALID) != 0,
        .remote_qpn = (uint32_t)get(FEROCE_CM_3, bytes + AT_1_REMOTE_QPN, 3),
        .local_qpn = (uint32_t)get(FEROCE_CM_3, bytes + AT_1_LOCAL_QPN, 3),
        .remote_psn = (uint32_t)get(FEROCE_CM_3, bytes + AT_1_REMOTE_PSN, 3),
        .local_psn = (uint32_t)get(FEROCE_CM_3, bytes + AT_1_LOCAL_PSN, 3),
        .rkey = load_be32(bytes + AT_1_RKEY),
        .remote_ip = load_be32(bytes + AT_1_IP),
        .remote_address = load_be64(bytes + AT_1_ADDRESS),
        .meta_valid = (bytes[AT_1_META] & META_1_VALID) != 0,
        .start = (bytes[AT_1_META] & META_1_START) != 0,
        .write = (bytes[AT_1_META] & META_1_WRITE) != 0,
        .offset = load_be64(bytes + AT_1_OFFSET),
        .length = load_be32(bytes + AT_1_LENGTH),
        .udp_port = load_be16(bytes + AT_1_PORT),
    };
    return true;
}

void feroce_frame_encode(const struct feroce_frame *frame, size_t udp_payload_bytes,
                         uint8_t out[FEROCE_FRAME_HEADERS_BYTES])
{
    static const uint8_t constant[] = {0x08, 0x00, 0x45};
    uint8_t *ip = out + 14, *udp = ip + INET_IPV4_BYTES;
    memset(out, 0, FEROCE_FRAME_HEADERS_BYTES);
    memcpy(out, frame->destination_mac, 6);
    memcpy(out + 6, frame->source_mac, 6);
    memcpy(out + 12, constant, sizeof(constant));
    ip[1] = (uint8_t)(frame->service_class << 5 | (frame->ce ? 3 : 0));
    store_be16(ip + 2, (uint16_t)(INET_IPV4_BYTES + INET_UDP_BYTES + udp_payload_bytes));
    store_be16(ip + 4, frame->identification);
    ip[6] = 0x40; /* Don't Fragment. */
    ip[8] = 64;
    ip[9] = 17;
    store_be32(ip + 12, frame->source_ip);
    store_be32(ip + 16, frame->destination_ip);
    store_be16(ip + 10, inet_checksum(inet_sum(0, ip, INET_IPV4_BYTES)));
    store_be16(udp, frame->source_port);
    store_be16(udp + 2, frame->destination_port);
    store_be16(udp + 4, (uint16_t)(INET_UDP_BYTES + udp_payload_bytes));
}
