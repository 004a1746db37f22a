/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/lant/switch_head.h"

#include "hardware/lant/answers.h"

struct lant_route lant_switch_route(const struct lant_switch *self,
                                    const struct lant_header *header, uint32_t random)
{
    const uint32_t destination = header->destination;
    switch (self->network) {
    case LANT_NETWORK_PLACES: return lant_route_places(&self->places, destination, random);
    case LANT_NETWORK_DRAGONFLY:
        CHECK(!self->dragonfly.valiant || self->ageing);
        return lant_route_dragonfly(&self->dragonfly, self->group, self->router, destination,
                                    header->age, random);
    case LANT_NETWORK_FAT_TREE:
        return lant_route_fat_tree(&self->tree, self->level, self->position, destination, random);
    case LANT_NETWORK_TORUS: return lant_route_torus(&self->torus, self->self, destination, random);
    }
    UNREACHABLE("a network of no kind");
}

/* Modulo 4, this epoch's and the last one's are good. */
static bool is_late(uint32_t epoch, uint32_t sent)
{
    return ((epoch - sent) & 3) >= 2;
}

static enum lant_switch_verdict judge_sound(const struct lant_switch *self,
                                            const struct lant_header *header,
                                            const struct lant_route *route, uint32_t epoch)
{
    if (self->epochs && is_late(epoch, header->epoch)) {
        return LANT_SWITCH_LATE;
    }
    if (!route->exists) {
        return LANT_SWITCH_REFUSE;
    }
    if (route->is_here) {
        return LANT_SWITCH_DELIVER;
    }
    return self->ageing && header->age == LANT_AGE_MAX ? LANT_SWITCH_TOO_OLD : LANT_SWITCH_FORWARD;
}

struct lant_switching lant_switch_judge(const struct lant_switch *self, uint64_t head,
                                        uint32_t epoch, uint32_t random)
{
    struct lant_switching switching = {.verdict = LANT_SWITCH_DAMAGED, .flit = head};
    struct lant_header header;
    const enum lant_secded code = lant_secded_check(&switching.flit);
    if (code == LANT_DAMAGED) {
        return switching;
    }
    CHECK(lant_head_decode(switching.flit, &header) == LANT_CLEAN);
    const struct lant_route route = lant_switch_route(self, &header, random);
    switching.repaired = code == LANT_REPAIRED;
    switching.verdict = judge_sound(self, &header, &route, epoch);
    switching.port = route.port;
    if (self->ageing && switching.verdict == LANT_SWITCH_FORWARD) {
        switching.flit = lant_head_aged(switching.flit);
    }
    return switching;
}

bool lant_switch_refusal(const uint64_t *flits, uint32_t count, uint32_t self, uint32_t epoch,
                         enum lant_response why, struct lant_packet *answer)
{
    struct lant_packet packet;
    uint32_t repaired;
    const enum lant_verdict verdict = lant_decode(flits, count, &packet, &repaired);
    if (verdict != LANT_WHOLE && verdict != LANT_CRC_WRONG && verdict != LANT_TYPE_UNKNOWN) {
        return false;
    }
    const struct lant_ends request = {.header = packet.header, .footer = packet.footer};
    if (lant_is_answer(request.header.type)) {
        return false;
    }
    const struct lant_ends ends = lant_answer(&request, self, why);
    *answer = (struct lant_packet){.header = ends.header, .footer = ends.footer};
    answer->header.epoch = epoch & 3;
    return true;
}
