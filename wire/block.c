/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block - see block.h.
 */
#include "wire/block.h"

#include "wire/bth.h"

#define HEADERS_BYTES(name, number, text, bytes)                                                   \
    [(number)-BLOCK_OPCODE_FIRST] = ROCE_BTH_BYTES + (bytes),
#define NAME(name, number, text, bytes) [(number)-BLOCK_OPCODE_FIRST] = (text),

/* BTH and all that does not repeat. */
static const uint8_t headers_bytes_of[] = {BLOCK_OPCODES(HEADERS_BYTES)};
static const char *const names[] = {BLOCK_OPCODES(NAME)};

_Static_assert(BLOCK_HEADERS_BYTES_MAX >=
                   ROCE_BTH_BYTES + BLOCK_HXH_BYTES + BLOCK_GIDS_MAX * BLOCK_GID_BYTES,
               "an answer has the longest headers");

const char *block_opcode_name(uint8_t opcode)
{
    return block_is(opcode) ? names[opcode - BLOCK_OPCODE_FIRST] : NULL;
}

static bool has_payload(uint8_t opcode)
{
    return opcode == BLOCK_SEND || opcode == BLOCK_WRITE || opcode == BLOCK_DATA;
}

/* -- Words of flags -----------------------------------------------------------------------------
 * Word 3 of BXH, word 3 of ANH, word 0 of HXH. */
enum {
    BXH_POSITION_SHIFT = 26,
    BXH_LAST_SHIFT = 20,
    BXH_POSITION_MASK = BLOCK_POSITIONS - 1,
    BXH_LAST_BLOCK = 1 << 19,
    BXH_EARLY = 1 << 18,
    BXH_IMMEDIATE = 1 << 17,
    BXH_INVALIDATES = 1 << 16,
    BXH_RESENT = 1 << 15,
    BXH_UNKNOWN = 7 << 12,
    BXH_PATH_SHIFT = 8,
    PATH_MASK = BLOCK_PATHS_MAX - 1,

    ANH_LIMIT_VOID = 1 << 30,
    ANH_ECHO_VOID = 1 << 29,
    ANH_ANSWERS_PROBE = 1 << 28,
    ANH_PATH_SHIFT = 24,

    HXH_GIDS_SHIFT = 20,
    HXH_GIDS_MASK = 15,
    HXH_SHARED = 1 << 16,
    HXH_UNKNOWN = 14 << 16,
};
#define ANH_MORE (UINT32_C(1) << 31)

static uint32_t flag(bool set, uint32_t bit)
{
    return set ? bit : 0;
}

/* -- Fields -------------------------------------------------------------------------------------
 * One pair of functions for each header. */

static void decode_bxh(const uint8_t *at, struct block_packet *packet)
{
    const uint32_t word = load_be32(at + 12);

    packet->session = load_be32(at);
    packet->number = load_be32(at + 4);
    packet->index = load_be32(at + 8);
    packet->position = (uint8_t)(word >> BXH_POSITION_SHIFT);
    packet->last_position = word >> BXH_LAST_SHIFT & BXH_POSITION_MASK;
    packet->last_block = (word & BXH_LAST_BLOCK) != 0;
    packet->early = (word & BXH_EARLY) != 0;
    packet->has_immediate = (word & BXH_IMMEDIATE) != 0;
    packet->invalidates = (word & BXH_INVALIDATES) != 0;
    packet->resent = (word & BXH_RESENT) != 0;
    packet->path = word >> BXH_PATH_SHIFT & PATH_MASK;
    packet->round = word & 0xff;
}

static void encode_bxh(uint8_t *at, const struct block_packet *packet)
{
    store_be32(at, packet->session);
    store_be32(at + 4, packet->number);
    store_be32(at + 8, packet->index);
    store_be32(at + 12,
               (uint32_t)packet->position << BXH_POSITION_SHIFT |
                   (uint32_t)(packet->last_position & BXH_POSITION_MASK) << BXH_LAST_SHIFT |
                   flag(packet->last_block, BXH_LAST_BLOCK) | flag(packet->early, BXH_EARLY) |
                   flag(packet->has_immediate, BXH_IMMEDIATE) |
                   flag(packet->invalidates, BXH_INVALIDATES) | flag(packet->resent, BXH_RESENT) |
                   (uint32_t)(packet->path & PATH_MASK) << BXH_PATH_SHIFT | packet->round);
}

static void decode_sxh(const uint8_t *at, struct block_packet *packet)
{
    packet->message_bytes = load_be32(at);
    packet->receive_number = load_be32(at + 4);
    memcpy(&packet->tag, at + 8, sizeof(packet->tag));
}

static void encode_sxh(uint8_t *at, const struct block_packet *packet)
{
    store_be32(at, packet->message_bytes);
    store_be32(at + 4, packet->receive_number);
    memcpy(at + 8, &packet->tag, sizeof(packet->tag));
}

/* The headers of a WRITE, a READ and an atomic begin alike. */
static void decode_target(const uint8_t *at, struct block_packet *packet)
{
    packet->address = load_be64(at);
    packet->key = load_be32(at + 8);
}

static void encode_target(uint8_t *at, const struct block_packet *packet)
{
    store_be64(at, packet->address);
    store_be32(at + 8, packet->key);
}

static void decode_axh(const uint8_t *at, struct block_packet *packet)
{
    decode_target(at, packet);
    packet->atomic.kind = load_be32(at + 12);
    packet->atomic.swap_or_add = load_be64(at + 16);
    packet->atomic.compare = load_be64(at + 24);
}

static void encode_axh(uint8_t *at, const struct block_packet *packet)
{
    encode_target(at, packet);
    store_be32(at + 12, packet->atomic.kind);
    store_be64(at + 16, packet->atomic.swap_or_add);
    store_be64(at + 24, packet->atomic.compare);
}

static void decode_answer(const uint8_t *at, size_t records, struct block_packet *packet)
{
    struct block_answer *answer = &packet->answer;
    const uint32_t word = load_be32(at + 12);

    packet->session = load_be32(at);
    answer->base = load_be32(at + 4);
    answer->receive_limit = load_be32(at + 8);
    answer->more = (word & ANH_MORE) != 0;
    answer->limit_void = (word & ANH_LIMIT_VOID) != 0;
    answer->echo_void = (word & ANH_ECHO_VOID) != 0;
    answer->answers_probe = (word & ANH_ANSWERS_PROBE) != 0;
    answer->echo_path = word >> ANH_PATH_SHIFT & PATH_MASK;
    answer->echo_tsn = word & ROCE_24_BITS;
    answer->echo_delay_ns = load_be32(at + 16);
    answer->status = at[20];
    answer->rnr_code = at[21];
    answer->ce_marked = at[22];
    answer->duplicates = at[23];
    answer->record_count = (uint8_t)records;
    at += BLOCK_ANH_BYTES;
    for (size_t i = 0; i < records; i++, at += BLOCK_RECORD_BYTES) {
        struct block_record *record = &answer->records[i];
        record->number = load_be32(at);
        record->round = at[4];
        record->state = at[5];
        record->bitmap = load_be64(at + 8);
    }
}

static void encode_answer(uint8_t *at, const struct block_packet *packet)
{
    const struct block_answer *answer = &packet->answer;

    store_be32(at, packet->session);
    store_be32(at + 4, answer->base);
    store_be32(at + 8, answer->receive_limit);
    store_be32(at + 12, flag(answer->more, ANH_MORE) | flag(answer->limit_void, ANH_LIMIT_VOID) |
                            flag(answer->echo_void, ANH_ECHO_VOID) |
                            flag(answer->answers_probe, ANH_ANSWERS_PROBE) |
                            (uint32_t)(answer->echo_path & PATH_MASK) << ANH_PATH_SHIFT |
                            (answer->echo_tsn & ROCE_24_BITS));
    store_be32(at + 16, answer->echo_delay_ns);
    at[20] = answer->status;
    at[21] = answer->rnr_code;
    at[22] = answer->ce_marked;
    at[23] = answer->duplicates;
    at += BLOCK_ANH_BYTES;
    for (size_t i = 0; i < answer->record_count; i++, at += BLOCK_RECORD_BYTES) {
        const struct block_record *record = &answer->records[i];
        store_be32(at, record->number);
        at[4] = record->round;
        at[5] = record->state;
        store_be16(at + 6, 0);
        store_be64(at + 8, record->bitmap);
    }
}

static void decode_hello(const uint8_t *at, size_t gids, struct block_packet *packet)
{
    struct block_hello *hello = &packet->hello;

    hello->gid_count = (uint8_t)gids;
    hello->shared_receives = (load_be32(at) & HXH_SHARED) != 0;
    hello->mtu_code = at[2];
    hello->paths = at[3];
    hello->nonce = load_be32(at + 4);
    hello->reads = at[8];
    hello->next_psn = load_24(at + 8);
    hello->sender_qpn = load_24(at + 12);
    hello->window = load_be16(at + 16);
    hello->read_queue = load_be16(at + 18);
    hello->payload_bytes = load_be16(at + 20);
    memcpy(hello->gids, at + BLOCK_HXH_BYTES, gids * BLOCK_GID_BYTES);
}

static void encode_hello(uint8_t *at, const struct block_packet *packet)
{
    const struct block_hello *hello = &packet->hello;

    store_be32(at, (uint32_t)BLOCK_VERSION << 24 | (uint32_t)hello->gid_count << HXH_GIDS_SHIFT |
                       flag(hello->shared_receives, HXH_SHARED) | (uint32_t)hello->mtu_code << 8 |
                       hello->paths);
    store_be32(at + 4, hello->nonce);
    store_8_24(at + 8, hello->reads, hello->next_psn);
    store_8_24(at + 12, 0, hello->sender_qpn);
    store_be16(at + 16, hello->window);
    store_be16(at + 18, hello->read_queue);
    store_be16(at + 20, hello->payload_bytes);
    memset(at + 22, 0, BLOCK_HXH_BYTES - 22);
    memcpy(at + BLOCK_HXH_BYTES, hello->gids, hello->gid_count * (size_t)BLOCK_GID_BYTES);
}

static void decode_challenge(const uint8_t *at, struct block_packet *packet)
{
    packet->session = load_be32(at);
    packet->challenge = load_be64(at + 4);
}

static void encode_challenge(uint8_t *at, const struct block_packet *packet)
{
    store_be32(at, packet->session);
    store_be64(at + 4, packet->challenge);
}

/* -- Decoding ---------------------------------------------------------------------------------- */

/* The bytes of a packet, told apart. */
struct parts {
    const uint8_t *headers;
    size_t headers_bytes; /* BTH and all that does not repeat. */
    size_t items;         /* Records or GIDs behind it. */
    const uint8_t *payload;
    size_t padded_bytes;
};

/* Judges the values of the BTH, which says how to read the rest. */
static enum block_verdict judge_bth(const uint8_t *bth, size_t count)
{
    if (UNLIKELY(count < ROCE_BTH_BYTES)) {
        return BLOCK_SHORT;
    }
    if (UNLIKELY((bth[1] & BTH_VERSION_MASK) != 0)) {
        return BLOCK_WRONG_VERSION;
    }
    if (UNLIKELY(!block_is(bth[0]))) {
        return BLOCK_UNKNOWN_OPCODE;
    }
    if (UNLIKELY(load_be16(bth + 2) != ROCE_DEFAULT_PKEY)) {
        return BLOCK_WRONG_PKEY;
    }
    const bool reserved = (bth[1] & BTH_MIGRATION_REQUEST) != 0 || bth[4] != 0 ||
                          (bth[8] & (BTH_ACK_REQUEST - 1)) != 0;
    return UNLIKELY(reserved) ? BLOCK_RESERVED_BITS : BLOCK_GOOD;
}

/* Judges the bytes behind headers of a fixed length. */
static enum block_verdict judge_payload(const struct parts *parts)
{
    const size_t pad_bytes = bth_pad(parts->headers);

    if (!has_payload(parts->headers[0]) && parts->padded_bytes != 0) {
        return BLOCK_TOO_LONG;
    }
    if (parts->padded_bytes % 4 != 0 || pad_bytes > parts->padded_bytes) {
        return BLOCK_WRONG_PAD;
    }
    return parts->padded_bytes - pad_bytes > ROCE_PAYLOAD_BYTES_MAX ? BLOCK_TOO_LONG : BLOCK_GOOD;
}

/* Records and GIDs are headers: as many as there are bytes. */
static enum block_verdict take_items(struct parts *parts, size_t bytes, size_t item_bytes,
                                     size_t items_max)
{
    parts->items = bytes / item_bytes;
    return bytes % item_bytes != 0 || parts->items > items_max ? BLOCK_WRONG_COUNT : BLOCK_GOOD;
}

static enum block_verdict judge_answer(struct parts *parts, size_t more_bytes)
{
    const uint8_t *at = parts->headers + ROCE_BTH_BYTES;

    if (at[20] >= BLOCK_STATUS_COUNT || at[21] >= BLOCK_RNR_CODES) {
        return BLOCK_UNKNOWN_VALUE;
    }
    const enum block_verdict verdict =
        take_items(parts, more_bytes, BLOCK_RECORD_BYTES, BLOCK_RECORDS_MAX);
    at += BLOCK_ANH_BYTES;
    for (size_t i = 0; verdict == BLOCK_GOOD && i < parts->items; i++, at += BLOCK_RECORD_BYTES) {
        if (at[5] >= BLOCK_STATE_COUNT) {
            return BLOCK_UNKNOWN_VALUE;
        }
        if (load_be16(at + 6) != 0) {
            return BLOCK_RESERVED_BITS;
        }
    }
    return verdict;
}

/* A greeting that tells a payload carries zeroes, with the headers or beside them. Nobody reads
 * them. */
static enum block_verdict judge_zeroes(struct parts *parts, size_t more_bytes)
{
    const size_t zeroes = BLOCK_GREETING_ZEROES(load_be16(parts->headers + ROCE_BTH_BYTES + 20));
    const bool agrees = more_bytes + parts->padded_bytes == zeroes;
    parts->padded_bytes = 0;
    return agrees ? BLOCK_GOOD : BLOCK_WRONG_COUNT;
}

static enum block_verdict judge_hello(struct parts *parts, size_t more_bytes)
{
    const uint8_t *at = parts->headers + ROCE_BTH_BYTES;
    const uint32_t word = load_be32(at), gids = word >> HXH_GIDS_SHIFT & HXH_GIDS_MASK;

    if ((word & HXH_UNKNOWN) != 0) {
        return BLOCK_UNKNOWN_FLAGS;
    }
    if (at[12] != 0 || load_be16(at + 22) != 0 || load_be64(at + 24) != 0) {
        return BLOCK_RESERVED_BITS;
    }
    if (load_be16(at + 20) != 0 && gids == 0) {
        return judge_zeroes(parts, more_bytes);
    }
    const enum block_verdict verdict =
        take_items(parts, more_bytes, BLOCK_GID_BYTES, BLOCK_GIDS_MAX);
    return verdict == BLOCK_GOOD && gids != parts->items ? BLOCK_WRONG_COUNT : verdict;
}

static bool is_greeting(uint8_t opcode)
{
    return opcode == BLOCK_HELLO || opcode == BLOCK_WELCOME;
}

static bool has_bxh(uint8_t opcode)
{
    return opcode <= BLOCK_DATA || opcode == BLOCK_PROBE;
}

/* Tells the headers from the rest and judges both. */
static enum block_verdict judge_parts(struct parts *parts, size_t count)
{
    const uint8_t *headers = parts->headers;
    enum block_verdict verdict = judge_bth(headers, count);
    if (UNLIKELY(verdict != BLOCK_GOOD)) {
        return verdict;
    }
    /* Another version may have other lengths. */
    if (is_greeting(headers[0]) && count > ROCE_BTH_BYTES &&
        headers[ROCE_BTH_BYTES] != BLOCK_VERSION) {
        return BLOCK_OTHER_VERSION;
    }
    parts->headers_bytes = headers_bytes_of[headers[0] - BLOCK_OPCODE_FIRST];
    if (UNLIKELY(count < parts->headers_bytes)) {
        return BLOCK_SHORT;
    }
    size_t more_bytes = count - parts->headers_bytes;
    if (headers[0] == BLOCK_ANSWER || is_greeting(headers[0])) {
        verdict = headers[0] == BLOCK_ANSWER ? judge_answer(parts, more_bytes)
                                             : judge_hello(parts, more_bytes);
        return verdict == BLOCK_GOOD ? judge_payload(parts) : verdict;
    }
    if (parts->payload == NULL) {
        parts->payload = headers + parts->headers_bytes;
        parts->padded_bytes = more_bytes;
        more_bytes = 0;
    }
    if (UNLIKELY(has_bxh(headers[0]) &&
                 (load_be32(headers + ROCE_BTH_BYTES + 12) & BXH_UNKNOWN) != 0)) {
        return BLOCK_UNKNOWN_FLAGS;
    }
    return more_bytes != 0 ? BLOCK_TOO_LONG : judge_payload(parts);
}

enum block_verdict block_decode(const uint8_t *headers, size_t headers_bytes,
                                const uint8_t *payload, size_t padded_bytes,
                                struct block_packet *packet)
{
    struct parts parts = {
        .headers = headers, .payload = payload, .padded_bytes = payload == NULL ? 0 : padded_bytes};
    const enum block_verdict verdict = judge_parts(&parts, headers_bytes);
    if (UNLIKELY(verdict != BLOCK_GOOD)) {
        return verdict;
    }
    packet->opcode = headers[0];
    packet->solicited = (headers[1] & BTH_SOLICITED) != 0;
    packet->ack_request = (headers[8] & BTH_ACK_REQUEST) != 0;
    packet->destination_qpn = load_24(headers + 4);
    packet->tsn = load_24(headers + 8);
    packet->payload_bytes = (uint32_t)parts.padded_bytes - bth_pad(headers);
    packet->payload = packet->payload_bytes == 0 ? NULL : parts.payload;

    const uint8_t *at = headers + ROCE_BTH_BYTES;
    const uint8_t *behind = at + BLOCK_BXH_BYTES;
    switch ((enum block_opcode)headers[0]) {
    case BLOCK_ANSWER: decode_answer(at, parts.items, packet); return BLOCK_GOOD;
    case BLOCK_HELLO:
    case BLOCK_WELCOME: decode_hello(at, parts.items, packet); return BLOCK_GOOD;
    case BLOCK_CHALLENGE:
    case BLOCK_RESPONSE: decode_challenge(at, packet); return BLOCK_GOOD;
    case BLOCK_SEND: decode_sxh(behind, packet); break;
    case BLOCK_WRITE:
        decode_target(behind, packet);
        decode_sxh(behind + 12, packet);
        break;
    case BLOCK_READ:
        decode_target(behind, packet);
        packet->message_bytes = load_be32(behind + 12);
        packet->wanted = load_be64(behind + 16);
        break;
    case BLOCK_ATOMIC: decode_axh(behind, packet); break;
    case BLOCK_DATA:
    case BLOCK_PROBE: break;
    }
    decode_bxh(at, packet);
    return BLOCK_GOOD;
}

/* -- Encoding ---------------------------------------------------------------------------------- */

size_t block_encode(const struct block_packet *packet, uint8_t *out)
{
    CHECK(block_is(packet->opcode));
    const size_t headers_bytes = headers_bytes_of[packet->opcode - BLOCK_OPCODE_FIRST];
    uint8_t *at = out + ROCE_BTH_BYTES, *behind = at + BLOCK_BXH_BYTES;

    out[0] = packet->opcode;
    out[1] = (uint8_t)(flag(packet->solicited, BTH_SOLICITED) |
                       (uint32_t)roce_pad_bytes(packet->payload_bytes) << BTH_PAD_SHIFT);
    store_be16(out + 2, ROCE_DEFAULT_PKEY);
    store_8_24(out + 4, 0, packet->destination_qpn);
    store_8_24(out + 8, (uint8_t)flag(packet->ack_request, BTH_ACK_REQUEST), packet->tsn);
    switch ((enum block_opcode)packet->opcode) {
    case BLOCK_ANSWER:
        CHECK(packet->answer.record_count <= BLOCK_RECORDS_MAX);
        encode_answer(at, packet);
        return headers_bytes + packet->answer.record_count * (size_t)BLOCK_RECORD_BYTES;
    case BLOCK_HELLO:
    case BLOCK_WELCOME:
        CHECK(packet->hello.gid_count <= BLOCK_GIDS_MAX);
        encode_hello(at, packet);
        return headers_bytes + packet->hello.gid_count * (size_t)BLOCK_GID_BYTES;
    case BLOCK_CHALLENGE:
    case BLOCK_RESPONSE: encode_challenge(at, packet); return headers_bytes;
    case BLOCK_SEND: encode_sxh(behind, packet); break;
    case BLOCK_WRITE:
        encode_target(behind, packet);
        encode_sxh(behind + 12, packet);
        break;
    case BLOCK_READ:
        encode_target(behind, packet);
        store_be32(behind + 12, packet->message_bytes);
        store_be64(behind + 16, packet->wanted);
        break;
    case BLOCK_ATOMIC: encode_axh(behind, packet); break;
    case BLOCK_DATA:
    case BLOCK_PROBE: break;
    }
    encode_bxh(at, packet);
    return headers_bytes;
}
