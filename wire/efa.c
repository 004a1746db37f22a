/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/efa.h"

#include <string.h>

/* Fields of entries are little-endian and aligned to their size. */
static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value);
    put16(at + 2, value >> 16);
}

/* -- Sends --------------------------------------------------------------------------------------*/

/* Bytes of a send's entry. */
enum {
    META_OPERATION = 2, /* 3:0 operation, 4 immediate, 5 inline, 6 extension, 7 meta */
    META_CONTROL = 3,   /* 0 phase, 2 first, 3 last, 4 completion wanted */
    META_QPN = 4,
    META_LENGTH = 6,
    META_IMMEDIATE = 8,
    META_HANDLE = 12,
    META_HINTS = 14, /* 1:0 */
    META_QKEY = 16,
    META_RESERVED = 20,
    DATA = 32,
    BUFFER_BYTES = 16,
};

/* First, last, and a completion is wanted; each has to be set. */
#define CONTROL_SET 0x1cu

static struct efa_buffer buffer(const uint8_t *at)
{
    return (struct efa_buffer){
        .bytes = get32(at),
        .key = get32(at + 4),
        .address = get32(at + 8) | (uint64_t)get32(at + 12) << 32,
    };
}

/* Bits that stand for what this device has not, or for nothing. */
static bool is_known(const uint8_t *entry)
{
    uint32_t reserved = 0;
    for (uint32_t i = META_RESERVED; i < DATA; i++) {
        reserved |= entry[i];
    }
    return (entry[META_OPERATION] & 0xc0) == 0x80 && (entry[META_CONTROL] & ~1u) == CONTROL_SET &&
           (entry[META_HINTS] & ~3u) == 0 && entry[META_HINTS + 1] == 0 && reserved == 0;
}

static enum srd_status decode_buffers(const uint8_t *entry, uint32_t length, struct efa_send *send)
{
    if (length > EFA_SGES_MAX) {
        return SRD_STATUS_LOCAL_BAD_LENGTH;
    }
    for (uint32_t i = 0; i < length; i++) {
        send->local[i] = buffer(entry + DATA + i * BUFFER_BYTES);
    }
    send->local_count = length;
    return SRD_STATUS_OK;
}

/* One buffer here and one there, of the same length. */
static enum srd_status decode_remote(const uint8_t *entry, uint32_t length, struct efa_send *send)
{
    if (send->is_inline || length > 1) {
        return SRD_STATUS_LOCAL_UNSUPPORTED;
    }
    send->remote = buffer(entry + DATA);
    send->local[0] = buffer(entry + DATA + BUFFER_BYTES);
    send->local_count = length;
    return send->remote.bytes == (length == 0 ? 0 : send->local[0].bytes)
               ? SRD_STATUS_OK
               : SRD_STATUS_LOCAL_BAD_LENGTH;
}

enum srd_status efa_decode_send(const uint8_t entry[EFA_SEND_ENTRY_BYTES], struct efa_send *send)
{
    const uint32_t length = get16(entry + META_LENGTH);
    *send = (struct efa_send){
        .id = get16(entry),
        .operation = entry[META_OPERATION] & 0xf,
        .has_immediate = (entry[META_OPERATION] & 0x10) != 0,
        .is_inline = (entry[META_OPERATION] & 0x20) != 0,
        .phase = (entry[META_CONTROL] & 1) != 0,
        .destination_qpn = get16(entry + META_QPN),
        .handle = get16(entry + META_HANDLE),
        .qkey = get32(entry + META_QKEY),
        .immediate = get32(entry + META_IMMEDIATE),
    };
    if (!is_known(entry) || send->operation > EFA_WRITE ||
        (send->operation == EFA_READ && send->has_immediate)) {
        return SRD_STATUS_LOCAL_UNSUPPORTED;
    }
    if (send->operation != EFA_SEND) {
        return decode_remote(entry, length, send);
    }
    if (!send->is_inline) {
        return decode_buffers(entry, length, send);
    }
    if (length > EFA_INLINE_BYTES_MAX) {
        return SRD_STATUS_LOCAL_BAD_LENGTH;
    }
    send->inline_data = entry + DATA;
    send->inline_bytes = length;
    return SRD_STATUS_OK;
}

/* -- Receives -----------------------------------------------------------------------------------*/

/* The address, the number, 16 bits of length, and 24 bits of a key with two flags above it. */
void efa_decode_receive(const uint8_t entry[EFA_RECEIVE_ENTRY_BYTES], struct efa_receive *receive)
{
    const uint32_t key = get32(entry + 12);
    *receive = (struct efa_receive){
        .id = get16(entry + 8),
        .first = key >> 30 & 1,
        .last = key >> 31,
        .buffer = {.address = get32(entry) | (uint64_t)get32(entry + 4) << 32,
                   .bytes = get16(entry + 10),
                   .key = key & 0xffffff},
    };
}

/* -- Completions --------------------------------------------------------------------------------*/

static uint8_t completion_flags(const struct efa_completion *completion)
{
    return (uint8_t)(completion->phase | (completion->receive ? 2 : 1) << 1 |
                     completion->has_immediate << 3 | (completion->operation & 7) << 4 |
                     completion->unsolicited << 7);
}

void efa_encode_completion(const struct efa_completion *completion,
                           uint8_t entry[EFA_COMPLETION_ENTRY_BYTES])
{
    memset(entry, 0, EFA_COMPLETION_ENTRY_BYTES);
    put16(entry, completion->id);
    entry[2] = completion->status;
    entry[3] = completion_flags(completion);
    put16(entry + 4, completion->qpn);
    if (!completion->receive) {
        return;
    }
    put16(entry + 6, completion->bytes);
    put16(entry + 8, completion->handle);
    put16(entry + 10, completion->source_qpn);
    put32(entry + 12, completion->immediate);
    if (completion->operation == EFA_WRITE) {
        put16(entry + 16, completion->bytes >> 16);
    } else if (completion->handle == 0xffff) {
        memcpy(entry + 16, completion->source, sizeof(completion->source));
    }
}
