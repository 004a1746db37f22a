/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/lant/packet_receiver.h"

void lant_packet_receiver_init(struct lant_packet_receiver *receiver, uint32_t packets)
{
    CHECK(packets >= 1 && packets <= LANT_RECEIVE_PACKETS_MAX);
    *receiver = (struct lant_packet_receiver){.packets = (uint8_t)packets, .part = LANT_HEAD1};
}

void lant_packet_receiver_check(const struct lant_packet_receiver *receiver)
{
    CHECK(receiver->count <= receiver->packets && receiver->head < LANT_RECEIVE_PACKETS_MAX);
    CHECK((receiver->part == LANT_HEAD1) == (receiver->kept == 0));
    CHECK(!receiver->skips || receiver->part == LANT_HEAD1);
    CHECK((receiver->part == LANT_BODY) <= (receiver->left > 0));
    if (receiver->part != LANT_HEAD1) {
        const uint32_t whole = lant_packet_flits(&receiver->header);
        const uint32_t foot = receiver->part == LANT_FOOT2 ? 1 : 2;
        CHECK(receiver->header.payload <= LANT_PAYLOAD_FLITS_MAX);
        CHECK(receiver->part < LANT_FOOT1 || receiver->kept + foot == whole);
        CHECK(receiver->part != LANT_BODY || receiver->kept + foot + receiver->left == whole);
    }
}

void lant_packet_receiver_take(struct lant_packet_receiver *receiver, const struct lant_flit *flit)
{
    CHECK(lant_packet_receiver_ready(receiver));
    receiver->flit = *flit;
    receiver->held = true;
}

void lant_packet_receiver_taken(struct lant_packet_receiver *receiver)
{
    CHECK(receiver->count > 0);
    receiver->head = (uint8_t)((receiver->head + 1) % LANT_RECEIVE_PACKETS_MAX);
    receiver->count--;
}

/* -- A cycle ------------------------------------------------------------------------------------*/

/* The packet came to its end. What has fewer flits than any packet is called short, whatever else
 * may be wrong with it (as lant_decode does). */
static void finish(struct lant_packet_receiver *receiver, enum lant_verdict verdict)
{
    receiver->counters.packets[receiver->seen < LANT_PACKET_FLITS_MIN ? LANT_SHORT : verdict]++;
    receiver->part = LANT_HEAD1;
    receiver->kept = 0;
    receiver->left = 0;
    receiver->seen = 0;
    receiver->skips = false;
}

/* The packet is dropped, with what follows of it. */
static void give_up(struct lant_packet_receiver *receiver, enum lant_verdict why)
{
    receiver->part = LANT_HEAD1;
    receiver->kept = 0;
    receiver->left = 0;
    receiver->skips = true;
    receiver->why = why;
}

/* H1: how long the packet is. */
static bool begin(struct lant_packet_receiver *receiver, const struct lant_flit *flit)
{
    if (lant_head_decode(flit->data, &receiver->header) == LANT_DAMAGED) {
        give_up(receiver, LANT_HEAD_DAMAGED);
        return false;
    }
    if (receiver->header.payload > LANT_PAYLOAD_FLITS_MAX) {
        give_up(receiver, LANT_LENGTH_WRONG);
        return false;
    }
    receiver->left = receiver->header.payload;
    return true;
}

/* F2: the packet is whole, and judged. */
static void end(struct lant_packet_receiver *receiver)
{
    const uint32_t place = (uint32_t)(receiver->head + receiver->count) % LANT_RECEIVE_PACKETS_MAX;
    struct lant_arrival *arrival = &receiver->arrivals[place];
    uint32_t repaired;
    CHECK(receiver->count < receiver->packets);
    arrival->verdict = lant_decode(receiver->flits, receiver->kept, &arrival->packet, &repaired);
    CHECK(arrival->verdict != LANT_SHORT && arrival->verdict != LANT_LENGTH_WRONG);
    receiver->counters.repaired += repaired;
    if (arrival->verdict == LANT_WHOLE || arrival->verdict == LANT_CRC_WRONG ||
        arrival->verdict == LANT_TYPE_UNKNOWN) {
        receiver->count++;
    }
    finish(receiver, arrival->verdict);
}

static void keep(struct lant_packet_receiver *receiver, const struct lant_flit *flit)
{
    if (receiver->part == LANT_HEAD1 && !begin(receiver, flit)) {
        return;
    }
    const bool is_last = receiver->part == LANT_FOOT2;
    if (flit->last != is_last) {
        give_up(receiver, LANT_LENGTH_WRONG);
        return;
    }
    receiver->flits[receiver->kept++] = flit->data;
    if (is_last) {
        end(receiver);
        return;
    }
    if (receiver->part == LANT_BODY) {
        receiver->left--;
    }
    receiver->part = lant_part_next(&receiver->header, receiver->part, receiver->left);
}

void lant_packet_receiver_step(struct lant_packet_receiver *receiver)
{
    INVARIANTS(lant_packet_receiver_check(receiver));
    if (!receiver->held) {
        return;
    }
    receiver->held = false;
    receiver->counters.flits++;
    if (receiver->seen < UINT8_MAX) {
        receiver->seen++;
    }
    if (!receiver->skips) {
        keep(receiver, &receiver->flit);
    }
    if (receiver->skips && receiver->flit.last) {
        finish(receiver, receiver->why);
    }
    INVARIANTS(lant_packet_receiver_check(receiver));
}
