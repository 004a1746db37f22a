/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_judge - do the fields of a decoded packet agree with each other? See srd.h.
 */
#include "wire/srd.h"

const char *srd_verdict_name(enum srd_verdict verdict)
{
    switch (verdict) {
    case SRD_GOOD: return "good";
    case SRD_SHORT: return "short";
    case SRD_UNKNOWN_OPCODE: return "unknown opcode";
    case SRD_WRONG_VERSION: return "wrong version";
    case SRD_WRONG_PKEY: return "wrong P_Key";
    case SRD_WRONG_PAD: return "wrong pad";
    case SRD_TOO_LONG: return "too long";
    case SRD_WRONG_COUNT: return "wrong count of records";
    case SRD_RESERVED_BITS: return "reserved bits";
    case SRD_OTHER_VERSION: return "another version of SRD";
    case SRD_UNKNOWN_VALUE: return "unknown value";
    case SRD_WRONG_PORT: return "wrong port";
    case SRD_WRONG_BACK: return "window too long";
    case SRD_WRONG_INDEX: return "wrong index";
    case SRD_WRONG_CHUNK: return "wrong length of packets";
    case SRD_WRONG_PAYLOAD: return "wrong payload length";
    case SRD_WRONG_FLAGS: return "wrong flags";
    case SRD_WRONG_WANTED: return "wrong packets wanted";
    case SRD_WRONG_RECORD: return "wrong record";
    case SRD_VERDICT_COUNT: break;
    }
    UNREACHABLE("a verdict outside its enum");
}

#define STATUS_NAME(name, number, refuses, text)                                                   \
    case SRD_STATUS_##name: return (text);

const char *srd_status_name(uint8_t status)
{
    switch (status) {
        SRD_STATUSES(STATUS_NAME)
    }
    return NULL;
}

#define STATUS_REFUSES(name, number, refuses, text)                                                \
    case SRD_STATUS_##name: return (refuses);

bool srd_status_refuses(uint8_t status)
{
    switch (status) {
        SRD_STATUSES(STATUS_REFUSES)
    }
    return false;
}

static bool chunk_allowed(const struct srd_packet *packet)
{
    return packet->chunk_bytes % SRD_CHUNK_STEP == 0 && packet->chunk_bytes >= SRD_CHUNK_LEAST &&
           packet->chunk_bytes <= SRD_CHUNK_MOST;
}

/* Where a request is in its flow and instance. */
static enum srd_verdict judge_place(const struct srd_packet *packet)
{
    if (packet->back >= SRD_WINDOW) {
        return SRD_WRONG_BACK;
    }
    if (packet->last >= SRD_PACKETS || packet->index > packet->last) {
        return SRD_WRONG_INDEX;
    }
    if (SRD_SLOT_OF(packet->target_qpn) != SRD_SLOT_OF_PORT(packet->destination_qpn)) {
        return SRD_WRONG_PORT;
    }
    return chunk_allowed(packet) ? SRD_GOOD : SRD_WRONG_CHUNK;
}

/* All packets but the last are full, and the last one of several has something. */
static bool payload_fits(const struct srd_packet *packet)
{
    return packet->index < packet->last ? packet->payload_bytes == packet->chunk_bytes
                                        : packet->payload_bytes <= packet->chunk_bytes &&
                                              (packet->payload_bytes != 0 || packet->last == 0);
}

static enum srd_verdict judge_send(const struct srd_packet *packet)
{
    const uint32_t before = (uint32_t)packet->last * packet->chunk_bytes;
    if (srd_packets(packet->message_bytes, packet->chunk_bytes) != packet->last + 1u ||
        !payload_fits(packet) ||
        (packet->index == packet->last &&
         packet->payload_bytes != packet->message_bytes - before)) {
        return SRD_WRONG_PAYLOAD;
    }
    const bool flags = packet->unsolicited || (!packet->has_immediate && packet->immediate != 0);
    return flags ? SRD_WRONG_FLAGS : SRD_GOOD;
}

/* An instance may be a part of a longer WRITE. */
static enum srd_verdict judge_write(const struct srd_packet *packet)
{
    const uint32_t least = (uint32_t)packet->last * packet->chunk_bytes +
                           (packet->index == packet->last ? packet->payload_bytes : 1u);
    const bool nothing = packet->payload_bytes == 0;
    if (!payload_fits(packet) || nothing != (packet->message_bytes == 0) ||
        (!nothing && packet->message_bytes < least)) {
        return SRD_WRONG_PAYLOAD;
    }
    const bool flags = !packet->has_immediate && (packet->unsolicited || packet->immediate != 0);
    return flags ? SRD_WRONG_FLAGS : SRD_GOOD;
}

static enum srd_verdict judge_read(const struct srd_packet *packet)
{
    const uint32_t packets = srd_packets(packet->message_bytes, packet->chunk_bytes);
    if (packet->last != 0 || packets > SRD_PACKETS) {
        return SRD_WRONG_INDEX;
    }
    if (packet->has_immediate || packet->unsolicited) {
        return SRD_WRONG_FLAGS;
    }
    const uint64_t there = packet->message_bytes == 0 ? 0 : srd_set_of(packets);
    const bool some = (packet->wanted != 0) == (there != 0);
    return some && (packet->wanted & ~there) == 0 ? SRD_GOOD : SRD_WRONG_WANTED;
}

static enum srd_verdict judge_data(const struct srd_packet *packet)
{
    if (packet->index >= SRD_PACKETS) {
        return SRD_WRONG_INDEX;
    }
    if (!chunk_allowed(packet)) {
        return SRD_WRONG_CHUNK;
    }
    const bool fits = packet->payload_bytes != 0 && packet->payload_bytes <= packet->chunk_bytes;
    return fits ? SRD_GOOD : SRD_WRONG_PAYLOAD;
}

/* A packet that is no queue pair's names its sender's slot alone. */
static enum srd_verdict judge_slot(const struct srd_packet *packet)
{
    return (packet->source_qpn & 0xff) == 0 ? SRD_GOOD : SRD_RESERVED_BITS;
}

/* A probe speaks of a flow and a path, and of no queue pair. */
static enum srd_verdict judge_probe(const struct srd_packet *packet)
{
    if (packet->back >= SRD_WINDOW) {
        return SRD_WRONG_BACK;
    }
    if (packet->last != 0) {
        return SRD_WRONG_INDEX;
    }
    if (packet->chunk_bytes != 0) {
        return SRD_WRONG_CHUNK;
    }
    const bool flags = packet->has_immediate || packet->unsolicited || packet->resent ||
                       packet->target_qpn != 0 || packet->qkey != 0;
    return flags ? SRD_WRONG_FLAGS : judge_slot(packet);
}

/* Do two records speak of one PSN? */
static bool records_meet(const struct srd_record *a, const struct srd_record *b)
{
    const int32_t ahead = srd_distance(a->psn, b->psn);
    if (ahead < 0) {
        return records_meet(b, a);
    }
    return ahead < 64 && (a->bitmap >> ahead & b->bitmap) != 0;
}

static enum srd_verdict judge_answer(const struct srd_answer *answer)
{
    for (size_t i = 0; i < answer->record_count; i++) {
        const struct srd_record *record = &answer->records[i];
        if ((record->bitmap & 1) == 0 || record->psn - answer->taken_before >= SRD_WINDOW) {
            return SRD_WRONG_RECORD;
        }
        for (size_t other = 0; other < i; other++) {
            if (records_meet(record, &answer->records[other])) {
                return SRD_WRONG_RECORD;
            }
        }
    }
    return SRD_GOOD;
}

static enum srd_verdict judge_request(const struct srd_packet *packet)
{
    const enum srd_verdict verdict = judge_place(packet);
    if (UNLIKELY(verdict != SRD_GOOD)) {
        return verdict;
    }
    switch (packet->opcode) {
    case SRD_SEND: return judge_send(packet);
    case SRD_WRITE: return judge_write(packet);
    default: return judge_read(packet);
    }
}

enum srd_verdict srd_judge(const struct srd_packet *packet)
{
    if (UNLIKELY((packet->destination_qpn & 0xffff) != SRD_PORT)) {
        return SRD_WRONG_PORT;
    }
    switch ((enum srd_opcode)packet->opcode) {
    case SRD_SEND:
    case SRD_WRITE:
    case SRD_READ: return judge_request(packet);
    case SRD_DATA: return judge_data(packet);
    case SRD_ANSWER: return judge_answer(&packet->answer);
    case SRD_PROBE: return judge_probe(packet);
    case SRD_HELLO:
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: return judge_slot(packet);
    case SRD_CHALLENGE: return SRD_GOOD;
    }
    UNREACHABLE("a packet that was not decoded");
}
