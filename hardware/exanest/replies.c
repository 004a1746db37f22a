/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/replies.h"

#include <string.h>

#define NOTIFICATION_BYTES 16u

void exanest_replies_init(struct exanest_replies *replies, uint32_t coordinate, uint32_t cycles,
                          uint32_t patience, uint32_t depth)
{
    CHECK(depth >= 1 && depth <= EXANEST_REPLIES_MAX);
    CHECK(coordinate >> EXANEST_COORDINATE_BITS == 0);
    *replies = (struct exanest_replies){
        .coordinate = coordinate, .cycles = cycles, .patience = patience, .depth = (uint8_t)depth};
}

void exanest_replies_check(const struct exanest_replies *replies)
{
    CHECK(replies->depth >= 1 && replies->depth <= EXANEST_REPLIES_MAX);
    CHECK(replies->head < EXANEST_REPLIES_MAX && replies->count <= replies->depth);
    if (replies->count == 0) {
        CHECK(replies->sent == 0);
        return;
    }
    const struct exanest_reply *reply = &replies->ring[replies->head];
    CHECK(reply->count >= 1 && reply->count <= EXANEST_REPLY_WORDS_MAX);
    CHECK(replies->sent < reply->count);
    CHECK(replies->sent == 0 || reply->due <= replies->now);
}

/* -- Replies that are put in --------------------------------------------------------------------*/

static struct exanest_reply *put(struct exanest_replies *replies)
{
    CHECK(exanest_replies_room(replies) > 0);
    struct exanest_reply *reply =
        &replies->ring[(replies->head + replies->count) % EXANEST_REPLIES_MAX];
    *reply = (struct exanest_reply){.due = replies->now + replies->cycles};
    if (replies->count++ == 0) {
        replies->moved = reply->due;
    }
    return reply;
}

static struct exanest_target at_peripheral(uint32_t coordinate, enum exanest_peripheral peripheral)
{
    return (struct exanest_target){.coordinate = coordinate,
                                   .va = exanest_peripheral_va(peripheral, 0)};
}

void exanest_replies_put_response(struct exanest_replies *replies, uint16_t pdid,
                                  const struct exanest_footer *footer, enum exanest_status status)
{
    INVARIANTS(exanest_replies_check(replies));
    struct exanest_reply *reply = put(replies);
    const struct exanest_header header = {
        .target = at_peripheral(footer->source, EXANEST_RT_RESPONSES),
        .pdid = pdid,
        .type = EXANEST_ACKNOWLEDGEMENT,
        .has_footer = true,
        .priority = true,
        .aux = footer->sequence,
    };
    const struct exanest_footer own = {
        .tid = footer->tid,
        .source = replies->coordinate,
        .sequence = footer->sequence,
        .status = (uint8_t)status,
    };
    reply->words[reply->count++] = exanest_header_encode(&header);
    reply->words[reply->count++] = exanest_footer_encode(&own);
    INVARIANTS(exanest_replies_check(replies));
}

static void put_header(struct exanest_replies *replies, enum exanest_peripheral peripheral,
                       uint16_t pdid, const struct exanest_footer *footer,
                       enum exanest_status status)
{
    INVARIANTS(exanest_replies_check(replies));
    struct exanest_reply *reply = put(replies);
    const struct exanest_header header = {
        .target = at_peripheral(footer->source, peripheral),
        .pdid = pdid,
        .type = EXANEST_ACKNOWLEDGEMENT,
        .priority = true,
        .aux = exanest_aux(status, footer->tid),
    };
    reply->words[reply->count++] = exanest_header_encode(&header);
    INVARIANTS(exanest_replies_check(replies));
}

void exanest_replies_put_acknowledgement(struct exanest_replies *replies, uint16_t pdid,
                                         const struct exanest_footer *footer,
                                         enum exanest_status status)
{
    put_header(replies, EXANEST_PACKETIZER, pdid, footer, status);
}

void exanest_replies_put_zdma(struct exanest_replies *replies, uint16_t pdid,
                              const struct exanest_footer *footer, enum exanest_status status)
{
    put_header(replies, EXANEST_ZDMA, pdid, footer, status);
}

bool exanest_replies_answer(struct exanest_replies *replies, const struct exanest_header *header,
                            const struct exanest_footer *footer, enum exanest_status status)
{
    switch (exanest_asker(header)) {
    case EXANEST_ASKER_NONE: return false;
    case EXANEST_ASKER_TRANSACTION:
        exanest_replies_put_response(replies, header->pdid, footer, status);
        return true;
    case EXANEST_ASKER_PACKETIZER:
        exanest_replies_put_acknowledgement(replies, header->pdid, footer, status);
        return true;
    }
    UNREACHABLE("an asker outside its enum");
}

void exanest_replies_put_notification(struct exanest_replies *replies, uint16_t pdid,
                                      const struct exanest_control *control)
{
    INVARIANTS(exanest_replies_check(replies));
    struct exanest_reply *reply = put(replies);
    const struct exanest_header header = {
        .target = control->address,
        .pdid = pdid,
        .type = EXANEST_NOTIFICATION,
        .bytes = NOTIFICATION_BYTES,
        .has_footer = true,
        .aux = control->sequence,
    };
    struct exanest_footer footer = {
        .tid = control->tid,
        .source = replies->coordinate,
        .sequence = control->sequence,
        .first = true,
        .last = true,
    };
    const uint32_t words = exanest_payload_words(header.target.va, header.bytes);
    struct exanest_word payload[2] = {{0, 0}, {0, 0}};
    memcpy((uint8_t *)payload + header.target.va % EXANEST_WORD_BYTES, control->data,
           NOTIFICATION_BYTES);
    reply->words[reply->count++] = exanest_header_encode(&header);
    for (uint32_t i = 0; i < words; i++) {
        footer.payload_crc = exanest_payload_crc(footer.payload_crc, payload[i]);
        reply->words[reply->count++] = payload[i];
    }
    reply->words[reply->count++] = exanest_footer_encode(&footer);
    INVARIANTS(exanest_replies_check(replies));
}

/* -- Replies that go out ------------------------------------------------------------------------*/

bool exanest_replies_offer(const struct exanest_replies *replies, struct exanest_beat *beat)
{
    if (replies->count == 0) {
        return false;
    }
    const struct exanest_reply *reply = &replies->ring[replies->head];
    if (replies->now < reply->due) {
        return false;
    }
    const bool last = replies->sent + 1 == reply->count;
    const enum exanest_part behind = last ? EXANEST_FOOTER : EXANEST_PAYLOAD;
    *beat = (struct exanest_beat){
        .part = replies->sent == 0 ? EXANEST_HEADER : behind,
        .last = last,
        .word = reply->words[replies->sent],
    };
    return true;
}

void exanest_replies_taken(struct exanest_replies *replies)
{
    INVARIANTS(exanest_replies_check(replies));
    CHECK(replies->count > 0 && replies->now >= replies->ring[replies->head].due);
    if (replies->now > replies->moved + replies->longest) {
        replies->longest = replies->now - replies->moved;
    }
    replies->moved = replies->now;
    replies->sent++;
    if (replies->sent == replies->ring[replies->head].count) {
        replies->sent = 0;
        replies->count--;
        replies->head = (uint8_t)((replies->head + 1u) % EXANEST_REPLIES_MAX);
    }
    INVARIANTS(exanest_replies_check(replies));
}
