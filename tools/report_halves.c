/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_halves - the first look: which halves there are, and which two are a connection.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/report.h"
#include "tools/report_index.h"

enum {
    LONELY_MAX = 512, /* Halves without a partner, of which each is compared with each. */
};

bool report_open(struct report *report)
{
    *report = (struct report){0};
    report->index = calloc(1, sizeof(*report->index));
    return report->index != NULL;
}

void report_close(struct report *report)
{
    free(report->halves);
    free(report->index);
}

/* -- Which half ---------------------------------------------------------------------------------*/

static bool is_of_roce(const struct report_packet *packet, enum roce_service service)
{
    return packet->kind == REPORT_ROCE && (packet->roce.opcode & 0xe0) == (int)service;
}

static enum report_service service_of(const struct report_packet *packet)
{
    if (packet->kind == REPORT_BLOCK) {
        return REPORT_BLOCKS;
    }
    if (packet->kind == REPORT_SRD) {
        return REPORT_DATAGRAMS;
    }
    return is_of_roce(packet, ROCE_SERVICE_RC)    ? REPORT_RC
           : is_of_roce(packet, ROCE_SERVICE_XRC) ? REPORT_XRC
           : is_of_roce(packet, ROCE_SERVICE_UC)  ? REPORT_UC
           : is_of_roce(packet, ROCE_SERVICE_UD)  ? REPORT_UD
                                                  : REPORT_UNKNOWN;
}

static uint32_t source_qpn_of(const struct report_packet *packet)
{
    return is_of_roce(packet, ROCE_SERVICE_UD) ? packet->roce.deth.source_qpn : 0;
}

static uint64_t hash_of(const struct report_half *half)
{
    const uint64_t hash = report_hash(half->qpn, half->source, sizeof(half->source));
    return report_hash(hash ^ (uint64_t)half->source_qpn << 32, half->destination,
                       sizeof(half->destination));
}

static bool same_half(const struct report_half *a, const struct report_half *b)
{
    return a->qpn == b->qpn && a->source_qpn == b->source_qpn &&
           memcmp(a->source, b->source, sizeof(a->source)) == 0 &&
           memcmp(a->destination, b->destination, sizeof(a->destination)) == 0;
}

/* The place in the index where the half is, or would be. */
static uint32_t *place_of(const struct report *report, const struct report_half *half)
{
    uint32_t at = (uint32_t)hash_of(half) % COUNT_OF(report->index->halves);
    while (report->index->halves[at] != 0 &&
           !same_half(&report->halves[report->index->halves[at] - 1], half)) {
        at = (at + 1) % COUNT_OF(report->index->halves);
    }
    return &report->index->halves[at];
}

static struct report_half key_of(const struct report_packet *packet)
{
    struct report_half half = {.qpn = packet->qpn, .source_qpn = source_qpn_of(packet)};
    memcpy(half.source, packet->flow.source, sizeof(half.source));
    memcpy(half.destination, packet->flow.destination, sizeof(half.destination));
    return half;
}

/* The key of the half that goes the other way, to this queue pair. */
static struct report_half key_back(const struct report_half *half, uint32_t qpn)
{
    struct report_half back = {.qpn = qpn, .source_qpn = half->source_qpn == 0 ? 0 : half->qpn};
    memcpy(back.source, half->destination, sizeof(back.source));
    memcpy(back.destination, half->source, sizeof(back.destination));
    return back;
}

uint32_t report_half_of(const struct report *report, const struct report_packet *packet)
{
    const struct report_half key = key_of(packet);
    const uint32_t found = *place_of(report, &key);
    return found == 0 ? (uint32_t)REPORT_NONE : found - 1;
}

/* False: there is no memory, or there are too many. */
static bool make_room(struct report *report)
{
    if (report->half_count < report->half_room) {
        return true;
    }
    const uint32_t room = report->half_room == 0 ? 64 : 2 * report->half_room;
    struct report_half *halves =
        room > REPORT_HALVES_MAX ? NULL : realloc(report->halves, room * sizeof(*halves));
    if (halves == NULL) {
        return false;
    }
    report->halves = halves;
    report->half_room = room;
    return true;
}

static uint32_t find_or_add(struct report *report, const struct report_half *key)
{
    uint32_t *place = place_of(report, key);
    if (*place == 0) {
        if (!make_room(report)) {
            return REPORT_NONE;
        }
        report->halves[report->half_count] = *key;
        report->halves[report->half_count].partner = REPORT_NONE;
        report->halves[report->half_count].drawn = REPORT_NONE;
        *place = ++report->half_count;
    }
    return *place - 1;
}

/* -- Partners -----------------------------------------------------------------------------------*/

const struct report_half *report_partner(const struct report *report,
                                         const struct report_half *half)
{
    return half->partner == REPORT_NONE ? half : &report->halves[half->partner];
}

static void join(struct report *report, uint32_t a, uint32_t b)
{
    struct report_half *halves = report->halves;
    if (a != b && halves[a].partner == REPORT_NONE && halves[b].partner == REPORT_NONE) {
        halves[a].partner = b;
        halves[b].partner = a;
    }
}

static bool is_block_response(uint8_t opcode)
{
    return opcode == BLOCK_ANSWER || opcode == BLOCK_DATA || opcode == BLOCK_WELCOME;
}

static bool is_srd_response(uint8_t opcode)
{
    return opcode == SRD_ANSWER || opcode == SRD_DATA || opcode == SRD_CHALLENGE;
}

bool report_is_response(const struct report_packet *packet)
{
    switch (packet->kind) {
    case REPORT_ROCE: return (roce_opcode(packet->roce.opcode)->traits & ROCE_IS_RESPONSE) != 0;
    case REPORT_BLOCK: return is_block_response(packet->block.opcode);
    case REPORT_SRD: return is_srd_response(packet->srd.opcode);
    case REPORT_FOREIGN:
    case REPORT_BROKEN:
    case REPORT_PORT: break;
    }
    return false;
}

/* The number by which a response names what it answers. False: there is none, or it says nothing
 * about who sent it. */
static bool token_of(const struct report_packet *packet, uint64_t *token)
{
    switch (packet->kind) {
    case REPORT_ROCE:
        *token = packet->roce.psn;
        return is_of_roce(packet, ROCE_SERVICE_RC) || is_of_roce(packet, ROCE_SERVICE_XRC);
    case REPORT_BLOCK: *token = packet->block.session; return packet->block.opcode < BLOCK_HELLO;
    case REPORT_SRD: *token = packet->srd.flow; return true;
    case REPORT_FOREIGN:
    case REPORT_BROKEN:
    case REPORT_PORT: break;
    }
    return false;
}

/* A request leaves its number with the half that it belongs to; a response looks for it. */
static void follow_token(struct report *report, uint32_t half, const struct report_packet *packet)
{
    uint64_t token;
    if (!token_of(packet, &token)) {
        return;
    }
    const struct report_half key = key_of(packet);
    const bool response = report_is_response(packet);
    const uint8_t *from = response ? key.destination : key.source;
    const uint8_t *to = response ? key.source : key.destination;
    const uint64_t hash =
        report_hash(report_hash(token ^ (uint64_t)packet->kind << 56, from, 16), to, 16);
    struct report_token *slot = &report->index->tokens[hash % COUNT_OF(report->index->tokens)];
    if (!response) {
        const bool other = slot->hash == hash && slot->half != half;
        *slot = (struct report_token){.hash = hash, .half = half, .is_ambiguous = other};
    } else if (slot->hash == hash && !slot->is_ambiguous) {
        join(report, half, slot->half);
    }
}

/* A greeting names its sender's queue pair. */
static void follow_hello(struct report *report, uint32_t half, const struct report_packet *packet)
{
    if (packet->kind == REPORT_BLOCK &&
        (packet->block.opcode == BLOCK_HELLO || packet->block.opcode == BLOCK_WELCOME)) {
        const struct report_half key =
            key_back(&report->halves[half], packet->block.hello.sender_qpn);
        const uint32_t back = find_or_add(report, &key);
        if (back != REPORT_NONE) {
            join(report, half, back);
        }
    }
}

static bool is_refusal(const struct report_packet *packet)
{
    return packet->kind == REPORT_ROCE && report_is_response(packet) &&
           (roce_opcode(packet->roce.opcode)->traits & ROCE_HAS_AETH) != 0 &&
           (packet->roce.aeth.syndrome & ROCE_AETH_KIND_MASK) != ROCE_AETH_ACK;
}

void report_learn(struct report *report, const struct report_packet *packet)
{
    report->packets++;
    report->first_ns =
        !report->has_times || packet->at_ns < report->first_ns ? packet->at_ns : report->first_ns;
    report->last_ns = packet->at_ns > report->last_ns ? packet->at_ns : report->last_ns;
    report->has_times = true;
    report->foreign += packet->kind == REPORT_FOREIGN;
    report->port += packet->kind == REPORT_PORT;
    report->cut += packet->is_cut;
    if (packet->kind <= REPORT_PORT || packet->is_wrong ||
        (packet->kind == REPORT_ROCE && packet->roce.opcode == ROCE_OPCODE_CNP)) {
        return;
    }
    const struct report_half key = key_of(packet);
    const uint32_t half = find_or_add(report, &key);
    if (half == REPORT_NONE) {
        report->crowded++;
        return;
    }
    report->halves[half].packets++;
    report->halves[half].service = service_of(packet);
    report->halves[half].refusals += is_refusal(packet);
    follow_token(report, half, packet);
    follow_hello(report, half, packet);
}

/* Datagrams name both of their ends. */
static void pair_datagrams(struct report *report)
{
    for (uint32_t i = 0; i < report->half_count; i++) {
        const struct report_half back = key_back(&report->halves[i], report->halves[i].source_qpn);
        const uint32_t found = back.qpn == 0 ? 0 : *place_of(report, &back);
        if (found != 0) {
            join(report, i, found - 1);
        }
    }
}

static bool may_be_partners(const struct report_half *a, const struct report_half *b)
{
    return a->service == b->service && a->service != REPORT_UD &&
           memcmp(a->source, b->destination, sizeof(a->source)) == 0 &&
           memcmp(a->destination, b->source, sizeof(a->source)) == 0;
}

/* Nothing else tells of UC: if two addresses have one half each way, these are partners. */
static void pair_lonely(struct report *report)
{
    uint32_t lonely[LONELY_MAX], count = 0;
    for (uint32_t i = 0; i < report->half_count && count < LONELY_MAX; i++) {
        if (report->halves[i].partner == REPORT_NONE) {
            lonely[count++] = i;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct report_half *half = &report->halves[lonely[i]];
        uint32_t ways[2] = {0}, partner = lonely[i];
        for (uint32_t k = 0; k < count; k++) {
            const struct report_half *other = &report->halves[lonely[k]];
            const bool is_back = may_be_partners(half, other);
            ways[1] += is_back;
            ways[0] += other->service == half->service &&
                       memcmp(half->source, other->source, sizeof(half->source)) == 0 &&
                       memcmp(half->destination, other->destination, sizeof(half->source)) == 0;
            partner = is_back ? lonely[k] : partner;
        }
        if (ways[0] == 1 && ways[1] == 1) {
            join(report, lonely[i], partner);
        }
    }
}

/* -- Charts -------------------------------------------------------------------------------------*/

/* Connections with refusals before others, then those with many packets. */
static bool is_before(const struct report *report, uint32_t a, uint32_t b)
{
    const struct report_half *one = &report->halves[a], *other = &report->halves[b];
    const struct report_half *back = report_partner(report, one);
    const struct report_half *other_back = report_partner(report, other);
    const bool refused = one->refusals + back->refusals > 0;
    const bool other_refused = other->refusals + other_back->refusals > 0;
    return refused != other_refused
               ? refused
               : one->packets + back->packets > other->packets + other_back->packets;
}

static void choose_drawn(struct report *report)
{
    uint32_t best[REPORT_DRAWN + 1], count = 0;
    for (uint32_t i = 0; i < report->half_count; i++) {
        if (report->halves[i].partner < i) {
            continue; /* Its partner was seen first. */
        }
        uint32_t at = count;
        for (; at > 0 && is_before(report, i, best[at - 1]); at--) {
            best[at] = best[at - 1];
        }
        best[at] = i;
        count += count < REPORT_DRAWN;
    }
    report->chart_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t back = report->halves[best[i]].partner;
        report->charts[i].halves[1] = best[i];
        report->charts[i].halves[0] = back;
        report->halves[best[i]].drawn = i;
        if (back != REPORT_NONE) {
            report->halves[back].drawn = i;
        }
    }
}

void report_pair(struct report *report)
{
    pair_datagrams(report);
    pair_lonely(report);
    choose_drawn(report);
}
