/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_judge - do the fields of a decoded packet agree with each other? See block.h.
 */
#include "wire/block.h"

const char *block_verdict_name(enum block_verdict verdict)
{
    switch (verdict) {
    case BLOCK_GOOD: return "good";
    case BLOCK_SHORT: return "short";
    case BLOCK_UNKNOWN_OPCODE: return "unknown opcode";
    case BLOCK_WRONG_VERSION: return "wrong version";
    case BLOCK_WRONG_PKEY: return "wrong P_Key";
    case BLOCK_WRONG_PAD: return "wrong pad";
    case BLOCK_TOO_LONG: return "too long";
    case BLOCK_WRONG_COUNT: return "wrong count of records or GIDs";
    case BLOCK_RESERVED_BITS: return "reserved bits";
    case BLOCK_UNKNOWN_FLAGS: return "unknown flags";
    case BLOCK_UNKNOWN_VALUE: return "unknown value";
    case BLOCK_OTHER_VERSION: return "another version of the block transport";
    case BLOCK_VERDICT_COUNT: break;
    }
    UNREACHABLE("a verdict outside its enum");
}

const char *block_judgement_name(enum block_judgement judgement)
{
    switch (judgement) {
    case BLOCK_CONSISTENT: return "consistent";
    case BLOCK_WRONG_POSITION: return "wrong position";
    case BLOCK_WRONG_LAST: return "wrong last position";
    case BLOCK_WRONG_INDEX: return "wrong index";
    case BLOCK_WRONG_PAYLOAD: return "wrong payload length";
    case BLOCK_WRONG_FLAGS: return "wrong flags";
    case BLOCK_WRONG_TAG: return "wrong tag";
    case BLOCK_WRONG_WANTED: return "wrong positions wanted";
    case BLOCK_WRONG_KIND: return "wrong kind of atomic";
    case BLOCK_WRONG_RECORD: return "wrong record";
    case BLOCK_WRONG_OFFER: return "wrong offer";
    case BLOCK_JUDGEMENT_COUNT: break;
    }
    UNREACHABLE("a judgement outside its enum");
}

/* Is the place that BXH names one of a message of these bytes? Without a division: `last` is the
 * number of the block's last packet in the message. */
static enum block_judgement judge_place(const struct block_packet *packet, uint32_t mtu_bytes)
{
    const uint64_t first = (uint64_t)packet->index * BLOCK_POSITIONS;
    const uint64_t last_begins = (first + packet->last_position) * mtu_bytes;

    if (packet->position > packet->last_position) {
        return BLOCK_WRONG_POSITION;
    }
    if (packet->index != 0 && first * mtu_bytes >= packet->message_bytes) {
        return BLOCK_WRONG_INDEX;
    }
    if (!packet->last_block) {
        const bool goes_on = packet->last_position == BLOCK_POSITIONS - 1 &&
                             last_begins + mtu_bytes < packet->message_bytes;
        return goes_on ? BLOCK_CONSISTENT : BLOCK_WRONG_LAST;
    }
    const bool ends = last_begins + mtu_bytes >= packet->message_bytes &&
                      (last_begins < packet->message_bytes || last_begins == 0);
    return ends ? BLOCK_CONSISTENT : BLOCK_WRONG_LAST;
}

/* SEND, WRITE: the place is right. */
static enum block_judgement judge_carried(const struct block_packet *packet, uint32_t mtu_bytes)
{
    const bool last = block_is_last(packet);
    const uint64_t rest = packet->message_bytes - block_payload_offset(packet, mtu_bytes);

    if (packet->payload_bytes != (last ? rest : mtu_bytes)) {
        return BLOCK_WRONG_PAYLOAD;
    }
    const bool tagged = packet->has_immediate || packet->invalidates;
    if ((tagged && !last) || (!tagged && packet->tag != 0)) {
        return BLOCK_WRONG_TAG;
    }
    const bool impossible = packet->has_immediate || packet->opcode == BLOCK_WRITE;
    return packet->invalidates && impossible ? BLOCK_WRONG_TAG : BLOCK_CONSISTENT;
}

static bool has_message_flags(const struct block_packet *packet)
{
    return packet->early || packet->has_immediate || packet->invalidates;
}

/* BXH's place of a message that is one packet. */
static enum block_judgement judge_single(const struct block_packet *packet)
{
    if (packet->index != 0) {
        return BLOCK_WRONG_INDEX;
    }
    if (packet->position != 0) {
        return BLOCK_WRONG_POSITION;
    }
    return packet->last_position == 0 ? BLOCK_CONSISTENT : BLOCK_WRONG_LAST;
}

/* One packet asks for a whole block. */
static enum block_judgement judge_read(const struct block_packet *packet, uint32_t mtu_bytes)
{
    if (packet->position != 0) {
        return BLOCK_WRONG_POSITION;
    }
    if (has_message_flags(packet)) {
        return BLOCK_WRONG_FLAGS;
    }
    const enum block_judgement judgement = judge_place(packet, mtu_bytes);
    if (judgement != BLOCK_CONSISTENT) {
        return judgement;
    }
    const uint64_t beyond = ~block_positions(packet->last_position);
    return packet->wanted == 0 || (packet->wanted & beyond) != 0 ? BLOCK_WRONG_WANTED
                                                                 : BLOCK_CONSISTENT;
}

static enum block_judgement judge_atomic(const struct block_packet *packet)
{
    const enum block_judgement judgement = judge_single(packet);
    if (judgement != BLOCK_CONSISTENT) {
        return judgement;
    }
    if (!packet->last_block) {
        return BLOCK_WRONG_LAST;
    }
    if (has_message_flags(packet)) {
        return BLOCK_WRONG_FLAGS;
    }
    return packet->atomic.kind < BLOCK_ATOMIC_KIND_COUNT ? BLOCK_CONSISTENT : BLOCK_WRONG_KIND;
}

/* The message's length is known to the requester only: its last packet may have any up to the MTU,
 * but an empty one is the whole message. */
static enum block_judgement judge_data(const struct block_packet *packet, uint32_t mtu_bytes)
{
    if (packet->position > packet->last_position) {
        return BLOCK_WRONG_POSITION;
    }
    if (!packet->last_block && packet->last_position != BLOCK_POSITIONS - 1) {
        return BLOCK_WRONG_LAST;
    }
    if (has_message_flags(packet)) {
        return BLOCK_WRONG_FLAGS;
    }
    const bool whole = packet->index == 0 && packet->last_position == 0;
    const bool right = block_is_last(packet) ? packet->payload_bytes <= mtu_bytes &&
                                                   (packet->payload_bytes != 0 || whole)
                                             : packet->payload_bytes == mtu_bytes;
    return right ? BLOCK_CONSISTENT : BLOCK_WRONG_PAYLOAD;
}

/* A probe names a block, a path and how often this left its way, but nothing of the block. */
static enum block_judgement judge_probe(const struct block_packet *packet)
{
    const enum block_judgement judgement = judge_single(packet);
    if (judgement != BLOCK_CONSISTENT) {
        return judgement;
    }
    const bool flags = packet->last_block || has_message_flags(packet) || packet->resent;
    return flags ? BLOCK_WRONG_FLAGS : BLOCK_CONSISTENT;
}

/* Is the record in the window that begins with base? A refused READ may lie before it. */
static bool record_fits(const struct block_record *record, uint32_t base)
{
    const int32_t ahead = block_number_distance(base, record->number);
    const bool run = record->state == BLOCK_STATE_RUN;

    if (ahead < 0) {
        return record->state == BLOCK_STATE_REFUSED && ahead >= -BLOCK_WINDOW_MAX;
    }
    return ahead < BLOCK_WINDOW_MAX &&
           (!run ||
            (record->bitmap != 0 && record->bitmap <= (uint64_t)(BLOCK_WINDOW_MAX - ahead)));
}

/* Records stand in BN order, and none speaks of a block of which another does. */
static enum block_judgement judge_answer(const struct block_answer *answer)
{
    for (size_t i = 0; i < answer->record_count; i++) {
        const struct block_record *record = &answer->records[i];
        if (!record_fits(record, answer->base)) {
            return BLOCK_WRONG_RECORD;
        }
        const uint32_t blocks = record->state == BLOCK_STATE_RUN ? (uint32_t)record->bitmap : 1;
        if (i + 1 < answer->record_count &&
            block_number_before(record[1].number, record->number + blocks)) {
            return BLOCK_WRONG_RECORD;
        }
    }
    return BLOCK_CONSISTENT;
}

/* A payload beyond the MTU, and below the next one, is told by an end that has one address. */
static bool is_beyond_mtu(const struct block_hello *hello)
{
    const uint32_t mtu_bytes = BLOCK_MTU_BYTES(hello->mtu_code);
    return hello->payload_bytes > mtu_bytes && hello->payload_bytes < 2 * mtu_bytes &&
           hello->payload_bytes < ROCE_PAYLOAD_BYTES_MAX &&
           hello->payload_bytes % BLOCK_PAYLOAD_STEP == 0 && hello->gid_count == 0;
}

static enum block_judgement judge_hello(const struct block_hello *hello, bool may_refuse)
{
    const bool possible = hello->mtu_code >= BLOCK_MTU_CODE_LEAST &&
                          hello->mtu_code <= BLOCK_MTU_CODE_MAX && hello->paths >= 1 &&
                          hello->paths <= BLOCK_PATHS_MAX && (hello->window >= 1 || may_refuse) &&
                          hello->window <= BLOCK_WINDOW_MAX &&
                          (hello->payload_bytes == 0 || is_beyond_mtu(hello));
    return possible ? BLOCK_CONSISTENT : BLOCK_WRONG_OFFER;
}

enum block_judgement block_judge(const struct block_packet *packet, uint32_t mtu_bytes)
{
    switch ((enum block_opcode)packet->opcode) {
    case BLOCK_SEND:
    case BLOCK_WRITE: {
        const enum block_judgement judgement = judge_place(packet, mtu_bytes);
        return LIKELY(judgement == BLOCK_CONSISTENT) ? judge_carried(packet, mtu_bytes) : judgement;
    }
    case BLOCK_READ: return judge_read(packet, mtu_bytes);
    case BLOCK_ATOMIC: return judge_atomic(packet);
    case BLOCK_DATA: return judge_data(packet, mtu_bytes);
    case BLOCK_ANSWER: return judge_answer(&packet->answer);
    case BLOCK_PROBE: return judge_probe(packet);
    case BLOCK_HELLO: return judge_hello(&packet->hello, false);
    case BLOCK_WELCOME: return judge_hello(&packet->hello, true);
    case BLOCK_CHALLENGE:
    case BLOCK_RESPONSE: return BLOCK_CONSISTENT;
    }
    UNREACHABLE("a packet that was not decoded");
}
