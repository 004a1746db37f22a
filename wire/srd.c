/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd - see srd.h.
 */
#include "wire/srd.h"

#include "wire/bth.h"

#define HEADERS_BYTES(name, number, text, bytes)                                                   \
    [(number)-SRD_OPCODE_FIRST] = ROCE_BTH_BYTES + (bytes),
#define NAME(name, number, text, bytes) [(number)-SRD_OPCODE_FIRST] = (text),

/* BTH and all that does not repeat. */
static const uint8_t headers_bytes_of[] = {SRD_OPCODES(HEADERS_BYTES)};
static const char *const names[] = {SRD_OPCODES(NAME)};

_Static_assert(SRD_HXH_BYTES >= SRD_CXH_BYTES, "a HELLO brings no more than it takes");

const char *srd_opcode_name(uint8_t opcode)
{
    return srd_is(opcode) ? names[opcode - SRD_OPCODE_FIRST] : NULL;
}

bool srd_has_payload(uint8_t opcode)
{
    return opcode == SRD_SEND || opcode == SRD_WRITE || opcode == SRD_DATA;
}

size_t srd_headers_bytes(uint8_t opcode)
{
    CHECK(srd_is(opcode));
    return headers_bytes_of[opcode - SRD_OPCODE_FIRST];
}

static bool has_fxh(uint8_t opcode)
{
    return opcode <= SRD_READ || opcode == SRD_PROBE;
}

/* -- Words of flags -----------------------------------------------------------------------------
 * Word 7 of FXH, word 4 of AXH, word 5 of DXH. */
enum {
    PATH_SHIFT = 28,
    PATH_MASK = SRD_PATHS_MAX - 1,

    FXH_IMMEDIATE = 1 << 27,
    FXH_RESENT = 1 << 26,
    FXH_UNSOLICITED = 1 << 25,
    FXH_VERSION_SHIFT = 20,
    FXH_VERSION_MASK = 15,
    FXH_ZEROES = 1 << 24 | 15 << 16,

    AXH_MORE = 1 << 27,
    AXH_ANSWERS_PROBE = 1 << 26,
    AXH_ECHO_VOID = 1 << 25,
    AXH_ZEROES = 1 << 24,
};

static uint32_t flag(bool set, uint32_t bit)
{
    return set ? bit : 0;
}

static uint32_t path_word(uint8_t path)
{
    return (uint32_t)(path & PATH_MASK) << PATH_SHIFT;
}

/* -- Fields -------------------------------------------------------------------------------------
 * Functions for each header: judging what is always the same, decoding, encoding. */

static enum srd_verdict judge_fxh(const uint8_t *at)
{
    const uint32_t word = load_be32(at + 28);
    if ((word >> FXH_VERSION_SHIFT & FXH_VERSION_MASK) != SRD_VERSION) {
        return SRD_OTHER_VERSION;
    }
    return (word & FXH_ZEROES) != 0 ? SRD_RESERVED_BITS : SRD_GOOD;
}

static void decode_fxh(const uint8_t *at, struct srd_packet *packet)
{
    const uint32_t word = load_be32(at + 28);

    packet->flow = load_be32(at);
    packet->tag = load_be64(at + 4);
    packet->psn = load_be32(at + 12);
    packet->back = load_be16(at + 16);
    packet->index = at[18];
    packet->last = at[19];
    packet->source_qpn = load_be16(at + 20);
    packet->target_qpn = load_be16(at + 22);
    packet->qkey = load_be32(at + 24);
    packet->path = (uint8_t)(word >> PATH_SHIFT);
    packet->has_immediate = (word & FXH_IMMEDIATE) != 0;
    packet->resent = (word & FXH_RESENT) != 0;
    packet->unsolicited = (word & FXH_UNSOLICITED) != 0;
    packet->chunk_bytes = (uint16_t)word;
}

static void encode_fxh(uint8_t *at, const struct srd_packet *packet)
{
    store_be32(at, packet->flow);
    store_be64(at + 4, packet->tag);
    store_be32(at + 12, packet->psn);
    store_be16(at + 16, packet->back);
    at[18] = packet->index;
    at[19] = packet->last;
    store_be16(at + 20, packet->source_qpn);
    store_be16(at + 22, packet->target_qpn);
    store_be32(at + 24, packet->qkey);
    store_be32(at + 28, path_word(packet->path) | flag(packet->has_immediate, FXH_IMMEDIATE) |
                            flag(packet->resent, FXH_RESENT) |
                            flag(packet->unsolicited, FXH_UNSOLICITED) |
                            (uint32_t)SRD_VERSION << FXH_VERSION_SHIFT | packet->chunk_bytes);
}

static void decode_sxh(const uint8_t *at, struct srd_packet *packet)
{
    packet->message_bytes = load_be32(at);
    memcpy(&packet->immediate, at + 4, sizeof(packet->immediate));
}

static void encode_sxh(uint8_t *at, const struct srd_packet *packet)
{
    store_be32(at, packet->message_bytes);
    memcpy(at + 4, &packet->immediate, sizeof(packet->immediate));
}

/* WRITE and READ. */
static void decode_rxh(const uint8_t *at, struct srd_packet *packet)
{
    packet->address = load_be64(at);
    packet->key = load_be32(at + 8);
    packet->message_bytes = load_be32(at + 12);
    if (packet->opcode == SRD_READ) {
        packet->wanted = load_be64(at + 16);
    } else {
        memcpy(&packet->immediate, at + 16, sizeof(packet->immediate));
    }
}

static void encode_rxh(uint8_t *at, const struct srd_packet *packet)
{
    store_be64(at, packet->address);
    store_be32(at + 8, packet->key);
    store_be32(at + 12, packet->message_bytes);
    if (packet->opcode == SRD_READ) {
        store_be64(at + 16, packet->wanted);
    } else {
        memcpy(at + 16, &packet->immediate, sizeof(packet->immediate));
        store_be32(at + 20, 0);
    }
}

static enum srd_verdict judge_dxh(const uint8_t *at)
{
    const bool zeroes = at[17] == 0 && (load_be32(at + 20) & ~path_word(PATH_MASK)) == 0;
    return zeroes ? SRD_GOOD : SRD_RESERVED_BITS;
}

static void decode_dxh(const uint8_t *at, struct srd_packet *packet)
{
    packet->flow = load_be32(at);
    packet->tag = load_be64(at + 4);
    packet->psn = load_be32(at + 12);
    packet->index = at[16];
    packet->chunk_bytes = load_be16(at + 18);
    packet->path = (uint8_t)(load_be32(at + 20) >> PATH_SHIFT);
}

static void encode_dxh(uint8_t *at, const struct srd_packet *packet)
{
    store_be32(at, packet->flow);
    store_be64(at + 4, packet->tag);
    store_be32(at + 12, packet->psn);
    at[16] = packet->index;
    at[17] = 0;
    store_be16(at + 18, packet->chunk_bytes);
    store_be32(at + 20, path_word(packet->path));
}

static enum srd_verdict judge_record(const uint8_t *at)
{
    const uint8_t kind = at[4], status = at[5], wait_code = at[6];
    if (kind >= SRD_KIND_COUNT || wait_code >= SRD_WAIT_CODES ||
        (kind == SRD_KIND_REFUSED && !srd_status_refuses(status))) {
        return SRD_UNKNOWN_VALUE;
    }
    const bool zeroes = (kind == SRD_KIND_REFUSED || status == 0) &&
                        (kind == SRD_KIND_NO_RECEIVE || wait_code == 0) && at[7] == 0;
    return zeroes ? SRD_GOOD : SRD_RESERVED_BITS;
}

/* `more_bytes`: behind the header. */
static enum srd_verdict judge_axh(const uint8_t *at, size_t more_bytes)
{
    if ((load_be32(at + 16) & AXH_ZEROES) != 0 || at[27] != 0 || load_be16(at + 30) != 0) {
        return SRD_RESERVED_BITS;
    }
    const size_t records = at[26];
    if (records > SRD_RECORDS_MAX || more_bytes != records * SRD_RECORD_BYTES) {
        return SRD_WRONG_COUNT;
    }
    enum srd_verdict verdict = SRD_GOOD;
    for (size_t i = 0; i < records && verdict == SRD_GOOD; i++) {
        verdict = judge_record(at + SRD_AXH_BYTES + i * SRD_RECORD_BYTES);
    }
    return verdict;
}

static void decode_axh(const uint8_t *at, struct srd_packet *packet)
{
    struct srd_answer *answer = &packet->answer;
    const uint32_t word = load_be32(at + 16);

    packet->flow = load_be32(at);
    packet->tag = load_be64(at + 4);
    answer->taken_before = load_be32(at + 12);
    answer->echo_path = (uint8_t)(word >> PATH_SHIFT);
    answer->more = (word & AXH_MORE) != 0;
    answer->answers_probe = (word & AXH_ANSWERS_PROBE) != 0;
    answer->echo_void = (word & AXH_ECHO_VOID) != 0;
    answer->echo_tsn = word & ROCE_24_BITS;
    answer->echo_delay_ns = load_be32(at + 20);
    answer->ce_marked = at[24];
    answer->duplicates = at[25];
    answer->record_count = at[26];
    answer->credits = load_be16(at + 28);
    at += SRD_AXH_BYTES;
    for (size_t i = 0; i < answer->record_count; i++, at += SRD_RECORD_BYTES) {
        struct srd_record *record = &answer->records[i];
        record->psn = load_be32(at);
        record->kind = at[4];
        record->status = at[5];
        record->wait_code = at[6];
        record->bitmap = load_be64(at + 8);
    }
}

static void encode_axh(uint8_t *at, const struct srd_packet *packet)
{
    const struct srd_answer *answer = &packet->answer;

    store_be32(at, packet->flow);
    store_be64(at + 4, packet->tag);
    store_be32(at + 12, answer->taken_before);
    store_be32(at + 16, path_word(answer->echo_path) | flag(answer->more, AXH_MORE) |
                            flag(answer->answers_probe, AXH_ANSWERS_PROBE) |
                            flag(answer->echo_void, AXH_ECHO_VOID) |
                            (answer->echo_tsn & ROCE_24_BITS));
    store_be32(at + 20, answer->echo_delay_ns);
    at[24] = answer->ce_marked;
    at[25] = answer->duplicates;
    at[26] = answer->record_count;
    at[27] = 0;
    store_be16(at + 28, answer->credits);
    store_be16(at + 30, 0);
    at += SRD_AXH_BYTES;
    for (size_t i = 0; i < answer->record_count; i++, at += SRD_RECORD_BYTES) {
        const struct srd_record *record = &answer->records[i];
        store_be32(at, record->psn);
        at[4] = record->kind;
        at[5] = record->status;
        at[6] = record->wait_code;
        at[7] = 0;
        store_be64(at + 8, record->bitmap);
    }
}

static bool are_zeroes(const uint8_t *at, size_t count)
{
    uint8_t all = 0;
    for (size_t i = 0; i < count; i++) {
        all |= at[i];
    }
    return all == 0;
}

static enum srd_verdict judge_hxh(const uint8_t *at)
{
    if (at[4] != SRD_VERSION) {
        return SRD_OTHER_VERSION;
    }
    const bool zeroes = at[5] == 0 && are_zeroes(at + 8, SRD_HXH_BYTES - 8);
    return zeroes ? SRD_GOOD : SRD_RESERVED_BITS;
}

static void decode_hxh(const uint8_t *at, struct srd_packet *packet)
{
    packet->flow = load_be32(at);
    packet->source_qpn = load_be16(at + 6);
}

static void encode_hxh(uint8_t *at, const struct srd_packet *packet)
{
    memset(at, 0, SRD_HXH_BYTES);
    store_be32(at, packet->flow);
    at[4] = SRD_VERSION;
    store_be16(at + 6, packet->source_qpn);
}

static enum srd_verdict judge_cxh(const uint8_t *at)
{
    if (at[16] != SRD_VERSION) {
        return SRD_OTHER_VERSION;
    }
    if ((at[17] != SRD_REASON_HELLO && at[17] != SRD_REASON_STALE) || at[18] != SRD_WINDOW_LOG2) {
        return SRD_UNKNOWN_VALUE;
    }
    const bool zeroes = at[19] == 0 && load_be64(at + 24) == 0 &&
                        (at[17] == SRD_REASON_STALE || load_be32(at + 20) == 0);
    return zeroes ? SRD_GOOD : SRD_RESERVED_BITS;
}

static void decode_cxh(const uint8_t *at, struct srd_packet *packet)
{
    packet->flow = load_be32(at);
    packet->tag = load_be64(at + 4);
    packet->challenge.boot = load_be32(at + 12);
    packet->challenge.reason = at[17];
    packet->challenge.psn = load_be32(at + 20);
}

static void encode_cxh(uint8_t *at, const struct srd_packet *packet)
{
    store_be32(at, packet->flow);
    store_be64(at + 4, packet->tag);
    store_be32(at + 12, packet->challenge.boot);
    at[16] = SRD_VERSION;
    at[17] = packet->challenge.reason;
    at[18] = SRD_WINDOW_LOG2;
    at[19] = 0;
    store_be32(at + 20, packet->challenge.psn);
    store_be64(at + 24, 0);
}

enum {
    PXH_OF_TARGET = 1 << 7,
    PXH_COUNT_MASK = 3,
    PXH_VERSION_SHIFT = 4,
};
_Static_assert(SRD_GIDS_MAX <= PXH_COUNT_MASK, "the number of addresses has two bits");

static enum srd_verdict judge_pxh(const uint8_t *at)
{
    if (at[23] >> PXH_VERSION_SHIFT != SRD_VERSION) {
        return SRD_OTHER_VERSION;
    }
    const size_t used = 24 + (size_t)(at[22] & PXH_COUNT_MASK) * 16;
    const bool zeroes = (at[22] & ~(PXH_OF_TARGET | PXH_COUNT_MASK)) == 0 &&
                        (at[23] & ((1 << PXH_VERSION_SHIFT) - 1)) == 0 &&
                        are_zeroes(at + used, SRD_PXH_BYTES - used);
    return zeroes ? SRD_GOOD : SRD_RESERVED_BITS;
}

static void decode_pxh(const uint8_t *at, struct srd_packet *packet)
{
    struct srd_path_challenge *challenge = &packet->path_challenge;
    packet->flow = load_be32(at);
    packet->tag = load_be64(at + 4);
    challenge->number = load_be64(at + 12);
    packet->source_qpn = load_be16(at + 20);
    challenge->of_target = (at[22] & PXH_OF_TARGET) != 0;
    challenge->gid_count = at[22] & PXH_COUNT_MASK;
    memcpy(challenge->gids, at + 24, sizeof(challenge->gids));
}

static void encode_pxh(uint8_t *at, const struct srd_packet *packet)
{
    const struct srd_path_challenge *challenge = &packet->path_challenge;
    CHECK(challenge->gid_count <= SRD_GIDS_MAX);
    memset(at, 0, SRD_PXH_BYTES);
    store_be32(at, packet->flow);
    store_be64(at + 4, packet->tag);
    store_be64(at + 12, challenge->number);
    store_be16(at + 20, packet->source_qpn);
    at[22] = (uint8_t)(flag(challenge->of_target, PXH_OF_TARGET) | challenge->gid_count);
    at[23] = SRD_VERSION << PXH_VERSION_SHIFT;
    memcpy(at + 24, challenge->gids, challenge->gid_count * sizeof(challenge->gids[0]));
}

/* -- Decoding ---------------------------------------------------------------------------------- */

/* The bytes of a packet, told apart. */
struct parts {
    const uint8_t *headers;
    const uint8_t *payload;
    size_t padded_bytes;
};

/* Judges the values of the BTH, which says how to read the rest. */
static enum srd_verdict judge_bth(const uint8_t *bth, size_t count)
{
    if (UNLIKELY(count < ROCE_BTH_BYTES)) {
        return SRD_SHORT;
    }
    if (UNLIKELY((bth[1] & BTH_VERSION_MASK) != 0)) {
        return SRD_WRONG_VERSION;
    }
    if (UNLIKELY(!srd_is(bth[0]))) {
        return SRD_UNKNOWN_OPCODE;
    }
    if (UNLIKELY(load_be16(bth + 2) != ROCE_DEFAULT_PKEY)) {
        return SRD_WRONG_PKEY;
    }
    const bool reserved = (bth[1] & (BTH_SOLICITED | BTH_MIGRATION_REQUEST)) != 0 || bth[4] != 0 ||
                          (bth[8] & (BTH_ACK_REQUEST - 1)) != 0;
    return UNLIKELY(reserved) ? SRD_RESERVED_BITS : SRD_GOOD;
}

static enum srd_verdict judge_payload(const struct parts *parts)
{
    const size_t pad_bytes = bth_pad(parts->headers);

    if (!srd_has_payload(parts->headers[0]) && parts->padded_bytes != 0) {
        return SRD_TOO_LONG;
    }
    if (parts->padded_bytes % 4 != 0 || pad_bytes > parts->padded_bytes) {
        return SRD_WRONG_PAD;
    }
    return parts->padded_bytes - pad_bytes > ROCE_PAYLOAD_BYTES_MAX ? SRD_TOO_LONG : SRD_GOOD;
}

/* Judges the fields that are the same in every header of its kind. */
static enum srd_verdict judge_headers(const uint8_t *headers, size_t more_bytes)
{
    const uint8_t *at = headers + ROCE_BTH_BYTES;
    switch ((enum srd_opcode)headers[0]) {
    case SRD_ANSWER: return judge_axh(at, more_bytes);
    case SRD_HELLO: return judge_hxh(at);
    case SRD_CHALLENGE: return judge_cxh(at);
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: return judge_pxh(at);
    case SRD_DATA: return judge_dxh(at);
    case SRD_SEND:
    case SRD_READ:
    case SRD_PROBE: return judge_fxh(at);
    case SRD_WRITE: {
        const enum srd_verdict verdict = judge_fxh(at);
        const bool zeroes = load_be32(at + SRD_FXH_BYTES + 20) == 0;
        return verdict == SRD_GOOD && !zeroes ? SRD_RESERVED_BITS : verdict;
    }
    }
    UNREACHABLE("an opcode that was judged");
}

/* Tells the headers from the rest and judges both. */
static enum srd_verdict judge_parts(struct parts *parts, size_t count)
{
    const uint8_t *headers = parts->headers;
    enum srd_verdict verdict = judge_bth(headers, count);
    if (UNLIKELY(verdict != SRD_GOOD)) {
        return verdict;
    }
    const size_t headers_bytes = srd_headers_bytes(headers[0]);
    if (UNLIKELY(count < headers_bytes)) {
        return SRD_SHORT;
    }
    size_t more_bytes = count - headers_bytes;
    if (parts->payload == NULL && headers[0] != SRD_ANSWER) {
        parts->payload = headers + headers_bytes;
        parts->padded_bytes = more_bytes;
        more_bytes = 0;
    }
    verdict = judge_headers(headers, more_bytes);
    if (UNLIKELY(verdict != SRD_GOOD)) {
        return verdict;
    }
    return headers[0] != SRD_ANSWER && more_bytes != 0 ? SRD_TOO_LONG : judge_payload(parts);
}

static void decode_headers(const uint8_t *headers, struct srd_packet *packet)
{
    const uint8_t *at = headers + ROCE_BTH_BYTES, *behind = at + SRD_FXH_BYTES;

    packet->opcode = headers[0];
    packet->ack_request = (headers[8] & BTH_ACK_REQUEST) != 0;
    packet->destination_qpn = load_24(headers + 4);
    packet->tsn = load_24(headers + 8);
    if (has_fxh(packet->opcode)) {
        decode_fxh(at, packet);
    }
    switch ((enum srd_opcode)packet->opcode) {
    case SRD_SEND: decode_sxh(behind, packet); return;
    case SRD_WRITE:
    case SRD_READ: decode_rxh(behind, packet); return;
    case SRD_DATA: decode_dxh(at, packet); return;
    case SRD_ANSWER: decode_axh(at, packet); return;
    case SRD_HELLO: decode_hxh(at, packet); return;
    case SRD_CHALLENGE: decode_cxh(at, packet); return;
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: decode_pxh(at, packet); return;
    case SRD_PROBE: return;
    }
    UNREACHABLE("an opcode that was judged");
}

enum srd_verdict srd_decode(const uint8_t *headers, size_t headers_bytes, const uint8_t *payload,
                            size_t padded_bytes, struct srd_packet *packet)
{
    struct parts parts = {
        .headers = headers, .payload = payload, .padded_bytes = payload == NULL ? 0 : padded_bytes};
    const enum srd_verdict verdict = judge_parts(&parts, headers_bytes);
    if (UNLIKELY(verdict != SRD_GOOD)) {
        return verdict;
    }
    decode_headers(headers, packet);
    packet->payload_bytes = (uint32_t)parts.padded_bytes - bth_pad(headers);
    packet->payload = packet->payload_bytes == 0 ? NULL : parts.payload;
    return srd_judge(packet);
}

/* -- Encoding ---------------------------------------------------------------------------------- */

size_t srd_encode(const struct srd_packet *packet, uint8_t *out)
{
    const size_t headers_bytes = srd_headers_bytes(packet->opcode);
    uint8_t *at = out + ROCE_BTH_BYTES, *behind = at + SRD_FXH_BYTES;

    out[0] = packet->opcode;
    out[1] = (uint8_t)(roce_pad_bytes(packet->payload_bytes) << BTH_PAD_SHIFT);
    store_be16(out + 2, ROCE_DEFAULT_PKEY);
    store_8_24(out + 4, 0, packet->destination_qpn);
    store_8_24(out + 8, (uint8_t)flag(packet->ack_request, BTH_ACK_REQUEST), packet->tsn);
    if (has_fxh(packet->opcode)) {
        encode_fxh(at, packet);
    }
    switch ((enum srd_opcode)packet->opcode) {
    case SRD_SEND: encode_sxh(behind, packet); return headers_bytes;
    case SRD_WRITE:
    case SRD_READ: encode_rxh(behind, packet); return headers_bytes;
    case SRD_DATA: encode_dxh(at, packet); return headers_bytes;
    case SRD_ANSWER:
        CHECK(packet->answer.record_count <= SRD_RECORDS_MAX);
        encode_axh(at, packet);
        return headers_bytes + packet->answer.record_count * (size_t)SRD_RECORD_BYTES;
    case SRD_HELLO: encode_hxh(at, packet); return headers_bytes;
    case SRD_CHALLENGE: encode_cxh(at, packet); return headers_bytes;
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: encode_pxh(at, packet); return headers_bytes;
    case SRD_PROBE: return headers_bytes;
    }
    UNREACHABLE("an opcode that was checked");
}
