/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/lant/answer_receiver.h"

bool lant_answer_receiver_offer(const struct lant_answer_receiver *receiver,
                                struct lant_answer_arrival *arrival)
{
    const struct lant_arrival *first = lant_packet_receiver_offer(&receiver->receiver);
    if (first == NULL) {
        return false;
    }
    const uint32_t response = first->packet.footer.response;
    const bool damaged = first->verdict != LANT_WHOLE;
    *arrival = (struct lant_answer_arrival){
        .kind = lant_answer_kind(first->packet.header.type),
        .again = !damaged && lant_response_is_nack((enum lant_response)response),
        .damaged = damaged,
        .packet = &first->packet};
    return true;
}

/* What came last, if it is nobody's, leaves before anybody sees it: it is the only packet that can
 * be new, so the ring holds none of them. */
static void drop_newest(struct lant_answer_receiver *receiver)
{
    struct lant_packet_receiver *ring = &receiver->receiver;
    const uint32_t place = (uint32_t)(ring->head + ring->count - 1) % LANT_RECEIVE_PACKETS_MAX;
    const struct lant_arrival *newest = &ring->arrivals[place];
    const enum lant_answer_kind kind = lant_answer_kind(newest->packet.header.type);
    const bool damaged = newest->verdict != LANT_WHOLE && kind != LANT_ANSWER_NOTIFICATION;
    if (kind == LANT_ANSWER_NONE || damaged) {
        receiver->strays += kind == LANT_ANSWER_NONE;
        receiver->damaged += kind != LANT_ANSWER_NONE;
        ring->count--;
    }
}

void lant_answer_receiver_step(struct lant_answer_receiver *receiver)
{
    const uint32_t before = receiver->receiver.count;
    lant_packet_receiver_step(&receiver->receiver);
    if (receiver->receiver.count > before) {
        drop_newest(receiver);
    }
}
