/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth/link.h"

#include <string.h>

#include "base/bytes.h"
#include "sim/capture.h"
#include "sim/trace.h"

#define WORD_BITS 32u
#define SOP_BITS  8u
#define KEPT_MOST 32u
/* Events for credits on their way, beside those for packets. */
#define CREDITS_A_PACKET 4u
#define CREDIT_CYCLES    2 /* SOP, and the word: more are turn-around. */

struct credit_on_link {
    struct list node;
    uint64_t at_ps;
    uint16_t word;
};

void forth_fabric_open(struct forth_fabric *fabric, struct sim *sim, uint32_t packets,
                       uint32_t qwords)
{
    *fabric = (struct forth_fabric){.sim = sim};
    sim_pool_open(&fabric->packets, packets, sizeof(struct forth_packet) + 8 * (size_t)qwords);
    sim_pool_open(&fabric->credits, CREDITS_A_PACKET * packets, sizeof(struct credit_on_link));
}

void forth_fabric_close(struct forth_fabric *fabric)
{
    sim_pool_close(&fabric->packets);
    sim_pool_close(&fabric->credits);
}

void forth_packet_lose(struct forth_fabric *fabric, struct forth_packet *packet)
{
    sim_note(fabric->sim, ~packet->header ^ packet->fate);
    sim_pool_give(&fabric->packets, packet);
}

static void credits_due(struct sim *sim, struct sim_event *event);

void forth_link_init(struct forth_link *link, struct forth_fabric *fabric, struct forth_end *to,
                     struct sim_clock clock, uint64_t latency_ps, uint32_t lanes)
{
    CHECK(lanes == 1 || lanes == 2);
    *link = (struct forth_link){
        .fabric = fabric, .to = to, .clock = clock, .latency_ps = latency_ps, .lanes = lanes};
    list_init(&link->travelling);
    sim_event_init(&link->credit_event, credits_due);
    to->in = link;
}

void forth_packet_seal(struct forth_packet *packet)
{
    packet->body_crc =
        forth_body_crc(FORTH_BODY_CRC_BEGIN, packet->payload, 8 * (size_t)packet->qwords);
    packet->fate = FORTH_FATE_GOOD;
}

/* -- Errors -------------------------------------------------------------------------------------*/

void forth_packet_flip(struct forth_packet *packet, uint32_t bit)
{
    const uint32_t word = bit / WORD_BITS;
    const uint32_t mask = UINT32_C(1) << (WORD_BITS - 1 - bit % WORD_BITS);
    const uint32_t payload_words = 2 * (uint32_t)packet->qwords;
    if (word == 0) {
        /* The receiver ignores the commas that fill the word up. */
        packet->fate = bit < SOP_BITS ? FORTH_FATE_SOP : packet->fate;
    } else if (word == 1) {
        packet->header ^= (uint64_t)mask << WORD_BITS;
    } else if (word == 2) {
        packet->header ^= mask;
    } else if (word == 3) {
        packet->header_crc ^=
            (uint16_t)(mask >> 16); /* The receiver ignores the bits that fill the word up. */
    } else if (word < 4 + payload_words) {
        uint8_t *at = &packet->payload[4 * (size_t)(word - 4)];
        store_be32(at, load_be32(at) ^ mask);
    } else {
        packet->body_crc ^= mask;
    }
}

void forth_packet_judge(struct forth_packet *packet)
{
    if (packet->fate == FORTH_FATE_SOP) {
        return;
    }
    if (forth_header_crc(packet->header) != packet->header_crc) {
        packet->fate = FORTH_FATE_HEADER;
    } else if (forth_body_crc(FORTH_BODY_CRC_BEGIN, packet->payload, 8 * (size_t)packet->qwords) !=
               packet->body_crc) {
        packet->fate = FORTH_FATE_BODY;
    }
}

static void spoil(struct forth_link *link, struct forth_packet *packet, uint32_t bits)
{
    uint64_t at = sim_errors_next(&link->errors, 0, bits);
    packet->header_crc = forth_header_crc(packet->header);
    forth_packet_judge(packet);
    link->bad_before += packet->fate == FORTH_FATE_BODY;
    packet->fate = FORTH_FATE_GOOD;
    while (at < bits) {
        forth_packet_flip(packet, (uint32_t)at);
        at = sim_errors_next(&link->errors, at + 1, bits);
    }
    forth_packet_judge(packet);
    link->bad_sops += packet->fate == FORTH_FATE_SOP;
    link->bad_headers += packet->fate == FORTH_FATE_HEADER;
    link->bad_bodies += packet->fate == FORTH_FATE_BODY;
}

/* -- Transmission -------------------------------------------------------------------------------*/

/* As on the link: header, its CRC (filled up), payload, body CRC. */
static void write_capture(struct sim_capture *capture, const struct forth_packet *packet,
                          uint64_t at_ps)
{
    uint8_t bytes[16 + 8 * FORTH_WORDS_MAX];
    const size_t payload_bytes = 8 * (size_t)packet->qwords;
    store_be64(bytes, packet->header);
    store_be32(bytes + 8, (uint32_t)forth_header_crc(packet->header) << 16);
    memcpy(bytes + 12, packet->payload, payload_bytes);
    store_be32(bytes + 12 + payload_bytes, packet->body_crc);
    sim_capture_packet(capture, at_ps, bytes, payload_bytes + 16);
}

static void packet_arrived(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct forth_packet *packet = CONTAINER_OF(event, struct forth_packet, event);
    packet->to->on_packet(packet->to, packet);
}

void forth_link_packet(struct forth_link *link, struct forth_packet *packet, uint64_t begin_ps)
{
    CHECK(begin_ps >= link->free_ps);
    const uint32_t cycles = forth_link_cycles(link, packet->qwords);
    const struct forth_end *to = link->to;
    const uint64_t end_ps = begin_ps + forth_link_ps(link, cycles);
    link->free_ps = end_ps + link->commas_ps;
    link->packets++;
    link->qwords += packet->qwords;
    link->busy_cycles += cycles;
    packet->fate = FORTH_FATE_GOOD;
    const uint32_t bits = forth_frame_words(packet->qwords) * WORD_BITS;
    if (UNLIKELY(!sim_errors_pass(&link->errors, bits))) {
        spoil(link, packet, bits);
    }
    if (UNLIKELY(link->fabric->trace != NULL)) {
        sim_trace_span(link->fabric->trace, link->track, "packet to node", packet->header >> 56,
                       begin_ps, end_ps);
    }
    if (UNLIKELY(link->fabric->capture != NULL)) {
        write_capture(link->fabric->capture, packet, begin_ps);
    }
    packet->to = link->to;
    packet->began_ps = begin_ps + link->latency_ps;
    packet->ended_ps = end_ps + link->latency_ps;
    const uint32_t payload_cycles = link->lanes == 1 ? 2u * packet->qwords : packet->qwords;
    const uint32_t wait =
        to->part == 0 ? 0 : (payload_cycles * to->part + to->of_parts - 1) / to->of_parts;
    sim_event_init(&packet->event, packet_arrived);
    packet->event.hint = link->to;
    sim_schedule(link->fabric->sim, &packet->event,
                 packet->began_ps + forth_link_ps(link, to->lead + wait));
}

static struct credit_on_link *first_credit(struct forth_link *link)
{
    return CONTAINER_OF(link->travelling.next, struct credit_on_link, node);
}

void forth_link_collect(struct forth_link *link)
{
    const uint64_t now = link->fabric->sim->now_ps;
    while (!list_empty(&link->travelling) && first_credit(link)->at_ps <= now) {
        struct credit_on_link *credit = first_credit(link);
        const uint16_t word = credit->word;
        list_remove(&credit->node);
        link->kept--;
        sim_pool_give(&link->fabric->credits, credit);
        link->to->on_credit(link->to, word);
    }
}

static void watch(struct forth_link *link)
{
    if (!list_empty(&link->travelling) && !sim_event_scheduled(&link->credit_event)) {
        sim_schedule(link->fabric->sim, &link->credit_event, first_credit(link)->at_ps);
    }
}

static void credits_due(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct forth_link *link = CONTAINER_OF(event, struct forth_link, credit_event);
    forth_link_collect(link);
    if (link->to->eager || link->to->waiting) {
        watch(link);
    }
}

void forth_link_await(struct forth_link *link)
{
    link->to->waiting = true;
    watch(link);
}

/* A credit is one word. The receiver ignores the bits of its lower half; a flipped bit 15 makes the
 * word no credit; without its SOP the word is not seen at all. */
static bool credit_spoilt(struct forth_link *link, uint16_t *word)
{
    const uint32_t bits = 2 * WORD_BITS;
    if (LIKELY(sim_errors_pass(&link->errors, bits))) {
        return false;
    }
    bool lost = false;
    uint64_t at = sim_errors_next(&link->errors, 0, bits);
    while (at < bits) {
        if (at < SOP_BITS || at == WORD_BITS) {
            lost = true;
        } else if (at > WORD_BITS && at < WORD_BITS + 16) {
            *word ^= (uint16_t)(0x8000 >> (at - WORD_BITS));
        }
        at = sim_errors_next(&link->errors, at + 1, bits);
    }
    return lost;
}

void forth_link_credit(struct forth_link *link, struct forth_credit credit, uint64_t begin_ps,
                       uint32_t cycles)
{
    CHECK(begin_ps >= link->free_ps && cycles >= CREDIT_CYCLES);
    link->free_ps = begin_ps + forth_link_ps(link, cycles);
    link->credits++;
    link->busy_cycles += CREDIT_CYCLES;
    if (UNLIKELY(link->fabric->trace != NULL)) {
        sim_trace_span(link->fabric->trace, link->track, "credit of flow", credit.flow, begin_ps,
                       link->free_ps);
    }
    uint16_t word = forth_credit_encode(credit);
    if (sim_errors_loses(&link->errors) || credit_spoilt(link, &word)) {
        link->lost_credits++;
        return;
    }
    struct credit_on_link *travelling = sim_pool_take(&link->fabric->credits);
    if (travelling == NULL) { /* The links are longer than the fabric has memory for. */
        link->lost_credits++;
        return;
    }
    travelling->word = word;
    travelling->at_ps = begin_ps + link->latency_ps + forth_link_ps(link, CREDIT_CYCLES);
    list_init(&travelling->node);
    list_append(&link->travelling, &travelling->node);
    link->kept++;
    /* An end that never sends anything never asks for credits. */
    if (link->kept > KEPT_MOST) {
        forth_link_collect(link);
    }
    if (link->to->eager || link->to->waiting) {
        watch(link);
    }
}
