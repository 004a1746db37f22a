/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/world/link.h"

#include <string.h>

void link_pool_open(struct sim_pool *pool, uint32_t count, uint32_t bytes_max)
{
    sim_pool_open(pool, count, sizeof(struct datagram) + bytes_max);
}

void link_init(struct link *link, struct sim *sim, struct sim_pool *pool,
               const struct link_settings *settings, sim_action arrived)
{
    *link = (struct link){.sim = sim, .settings = *settings, .arrived = arrived, .pool = pool};
}

static bool strikes(struct link *link, enum sim_fault fault)
{
    return sim_fault_strikes(&link->settings.faults, fault, &link->sim->prng);
}

static bool loses(struct link *link)
{
    const uint64_t now_ps = link->sim->now_ps;
    if (now_ps < link->cut_until_ps) {
        return true;
    }
    if (strikes(link, SIM_FAULT_cut)) {
        link->cut_until_ps = now_ps + prng_below(&link->sim->prng, link->settings.cut_ps + 1);
        return true;
    }
    return strikes(link, SIM_FAULT_drop);
}

static uint64_t draw_route(struct link *link)
{
    const struct link_settings *settings = &link->settings;
    struct prng *prng = &link->sim->prng;
    uint64_t way_ps = settings->latency_ps;
    if (strikes(link, SIM_FAULT_reorder)) {
        way_ps += prng_below(prng, settings->reorder_ps + 1);
    }
    if (strikes(link, SIM_FAULT_late)) {
        way_ps += prng_below(prng, settings->late_ps + 1);
    }
    return way_ps;
}

static void damage(struct link *link, struct datagram *datagram)
{
    struct prng *prng = &link->sim->prng;
    const uint32_t most = link->settings.damage_bytes;
    const uint64_t at = prng_below(prng, datagram->count < most ? datagram->count : most);
    datagram->bytes[at] ^= (uint8_t)(1u << prng_below(prng, 8));
}

static void launch(struct link *link, uint32_t from, uint32_t to, const uint8_t *bytes,
                   uint32_t count, bool markable)
{
    link->sent++;
    if (loses(link)) {
        link->lost++;
        return;
    }
    struct datagram *datagram = sim_pool_take(link->pool);
    if (datagram == NULL) {
        link->lost++;
        link->crowded++;
        return;
    }
    sim_event_init(&datagram->event, link->arrived);
    datagram->link = link;
    datagram->from = from;
    datagram->to = to;
    datagram->count = count;
    memcpy(datagram->bytes, bytes, count);
    if (count > 0 && strikes(link, SIM_FAULT_damage)) {
        damage(link, datagram);
    }
    datagram->marked = markable && strikes(link, SIM_FAULT_mark);
    sim_after(link->sim, &datagram->event, draw_route(link));
}

static void send(struct link *link, uint32_t from, uint32_t to, const uint8_t *bytes,
                 uint32_t count, bool markable)
{
    CHECK(sizeof(struct datagram) + count <= link->pool->bytes);
    launch(link, from, to, bytes, count, markable);
    if (strikes(link, SIM_FAULT_duplicate)) {
        launch(link, from, to, bytes, count, markable);
    }
}

void link_send(struct link *link, uint32_t from, uint32_t to, const uint8_t *bytes, uint32_t count)
{
    send(link, from, to, bytes, count, false);
}

void link_send_markable(struct link *link, uint32_t from, uint32_t to, const uint8_t *bytes,
                        uint32_t count)
{
    send(link, from, to, bytes, count, true);
}
