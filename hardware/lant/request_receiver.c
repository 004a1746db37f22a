/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/lant/request_receiver.h"

void lant_request_receiver_init(struct lant_request_receiver *receiver, uint32_t packets,
                                bool cut_through)
{
    *receiver = (struct lant_request_receiver){.cut_through = cut_through};
    lant_packet_receiver_init(&receiver->receiver, packets);
}

/* Beats of a good packet: a load has one, too. */
static uint32_t beats_of(const struct lant_header *header)
{
    return header->payload == 0 ? 1 : header->payload;
}

/* The next beat of the first packet that is whole. */
static void beat_of_arrival(const struct lant_request_receiver *receiver,
                            const struct lant_arrival *arrival, struct lant_request_beat *beat)
{
    const struct lant_header *header = &arrival->packet.header;
    const bool whole = arrival->verdict == LANT_WHOLE;
    const uint32_t beats = whole ? beats_of(header) : 0;
    *beat = (struct lant_request_beat){.packet = &arrival->packet,
                                       .header = *header,
                                       .verdict = arrival->verdict,
                                       .beat = receiver->beat};
    if (receiver->beat < beats) {
        beat->unverified = receiver->cut_through;
        beat->packet = beat->unverified ? NULL : beat->packet;
        beat->data = header->payload == 0 ? 0 : arrival->packet.payload[receiver->beat];
        beat->last = !receiver->cut_through && receiver->beat + 1u == beats;
    } else {
        beat->last = true;
    }
}

/* The next beat of a packet whose end has not come. False: it is not there either. */
static bool beat_of_part(const struct lant_request_receiver *receiver,
                         struct lant_request_beat *beat)
{
    const struct lant_packet_receiver *inner = &receiver->receiver;
    struct lant_header header = inner->header;
    if (inner->part < LANT_BODY || lant_address_decode(inner->flits[1], &header) == LANT_DAMAGED) {
        return false;
    }
    const uint32_t come = header.payload == 0 ? 1u : (uint32_t)header.payload - inner->left;
    const uint32_t head = header.extended ? 3 : 2;
    if (receiver->beat >= come) {
        return false;
    }
    *beat = (struct lant_request_beat){
        .header = header,
        .beat = receiver->beat,
        .data = header.payload == 0 ? 0 : inner->flits[head + receiver->beat],
        .unverified = true};
    return true;
}

bool lant_request_receiver_offer(const struct lant_request_receiver *receiver,
                                 struct lant_request_beat *beat)
{
    const struct lant_arrival *arrival = lant_packet_receiver_offer(&receiver->receiver);
    if (receiver->taken) {
        return false;
    }
    if (arrival == NULL) {
        return receiver->cut_through && beat_of_part(receiver, beat);
    }
    beat_of_arrival(receiver, arrival, beat);
    return true;
}

void lant_request_receiver_taken(struct lant_request_receiver *receiver)
{
    struct lant_request_beat beat;
    CHECK(lant_request_receiver_offer(receiver, &beat));
    receiver->taken = true;
    receiver->ends = beat.last;
    receiver->beats++;
    if (beat.last && beat.verdict != LANT_WHOLE) {
        receiver->damaged += receiver->beat;
    }
}

static uint64_t dropped(const struct lant_packet_receiver *receiver)
{
    const uint64_t *packets = receiver->counters.packets;
    return packets[LANT_SHORT] + packets[LANT_HEAD_DAMAGED] + packets[LANT_LENGTH_WRONG] +
           packets[LANT_FOOT_DAMAGED] + packets[LANT_MALFORMED];
}

void lant_request_receiver_step(struct lant_request_receiver *receiver)
{
    struct lant_packet_receiver *inner = &receiver->receiver;
    const uint64_t before = dropped(inner);
    if (receiver->taken) {
        receiver->taken = false;
        receiver->beat++;
        if (receiver->ends) {
            receiver->beat = 0;
            lant_packet_receiver_taken(inner);
        }
    }
    lant_packet_receiver_step(inner);
    /* Cut through, and then dropped: what was given of it cannot be called back. */
    if (dropped(inner) > before && inner->count == 0) {
        receiver->damaged += receiver->beat;
        receiver->beat = 0;
    }
}
