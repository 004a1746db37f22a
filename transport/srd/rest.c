/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/srd/rest.h"

#include "transport/srd/sender_internal.h"

#define ISSUED_MASK ((UINT64_C(1) << 40) - 1)
/* Both ends of a time are cut to ticks. */
#define FORGET_TICKS (SRD_FORGET_NS / SRD_TICK_NS + 2)

static uint32_t short_ticks(struct instant at)
{
    return (uint32_t)srd_ticks(at);
}

/* The last instant before `now` that has these ticks. */
static struct instant instant_of(uint32_t ticks, struct instant now)
{
    const uint64_t age = short_ticks(now) - ticks;
    return (struct instant){(srd_ticks(now) - age) * SRD_TICK_NS};
}

/* -- Senders ------------------------------------------------------------------------------------*/

static uint32_t trip_us(const struct path *path)
{
    const uint64_t us = path->rtt.smoothed_ns / 1000;
    return us > UINT16_MAX ? 0 : (uint32_t)us;
}

void srd_rest_sender(struct srd_rest *rest, const struct srd_sender *sender)
{
    CHECK(srd_sender_is_idle(sender) && sender->lowest == sender->next);
    rest->open = sender->state == SRD_FLOW_OPEN;
    rest->boot_known = sender->boot_known;
    rest->boot = sender->boot;
    if (rest->open) {
        rest->flow = sender->flow;
        rest->tag = sender->tag;
        rest->next = sender->next;
        rest->used_at = short_ticks(sender->used_at);
        rest->tsn = sender->path.next.value & ROCE_24_BITS;
        rest->trip_us = trip_us(&sender->path) & UINT16_MAX;
    }
}

void srd_resume_sender(const struct srd_rest *rest, struct srd_sender *sender, struct instant now)
{
    sender->boot = rest->boot;
    sender->boot_known = rest->boot_known;
    if (rest->open) {
        sender->flow = rest->flow;
        sender->tag = rest->tag;
        sender->next = sender->lowest = rest->next;
        srd_start_flow(sender, psn_of((uint32_t)rest->tsn), rest->trip_us * UINT64_C(1000), now);
        sender->used_at = instant_of(rest->used_at, now);
    }
    INVARIANTS(srd_sender_check(sender));
}

/* -- Receivers ----------------------------------------------------------------------------------*/

bool srd_receiver_may_rest(const struct srd_receiver *receiver)
{
    return list_empty(&receiver->assemblies) && receiver->moving == 0 && !receiver->reply.due &&
           receiver->window.taken_before == receiver->window.end;
}

static bool is_forgotten(struct instant heard_at, struct instant now)
{
    return instant_reached(now, instant_after(heard_at, SRD_FORGET_NS));
}

void srd_rest_receiver(struct srd_rest *rest, const struct srd_entry *entry,
                       const struct srd_receiver *receiver, struct instant heard_at,
                       struct instant now)
{
    const bool kept = entry->opened && srd_receiver_may_rest(receiver);
    CHECK(kept || !entry->opened || is_forgotten(heard_at, now));
    rest->opened = kept;
    rest->known = kept && entry->known;
    if (kept) {
        rest->heard_flow = entry->flow;
        rest->issued = entry->issued & ISSUED_MASK;
        rest->base = receiver->window.base;
        rest->taken = (receiver->window.end - receiver->window.base) & (2 * SRD_WINDOW - 1);
        rest->heard_at = short_ticks(heard_at);
    }
}

struct srd_entry srd_rest_entry(const struct srd_rest *rest, const struct siphash_key *key,
                                const struct srd_source *source, struct instant now)
{
    if (!rest->opened) {
        return (struct srd_entry){.known = false};
    }
    const uint64_t ticks = srd_ticks(now);
    const uint64_t issued = ticks - ((ticks - rest->issued) & ISSUED_MASK);
    return (struct srd_entry){.known = rest->known,
                              .opened = true,
                              .flow = rest->heard_flow,
                              .tag = srd_tag_make(key, source, rest->heard_flow, issued),
                              .issued = issued};
}

void srd_resume_receiver(const struct srd_rest *rest, const struct siphash_key *key,
                         const struct srd_source *source, struct srd_entry *entry,
                         struct srd_receiver *receiver, struct instant *heard_at,
                         struct instant now)
{
    *entry = srd_rest_entry(rest, key, source, now);
    srd_receiver_init(receiver, entry->flow, entry->tag, rest->opened ? rest->base : 0);
    *heard_at = rest->opened ? instant_of(rest->heard_at, now) : (struct instant){0};
    for (uint32_t i = 0; rest->opened && i < rest->taken; i++) {
        srd_window_set(&receiver->window, rest->base + i, SRD_JUDGED_TAKEN);
    }
}

/* -- Both ---------------------------------------------------------------------------------------*/

bool srd_rest_may_go(const struct srd_rest *rest, struct instant now)
{
    return !rest->opened || short_ticks(now) - rest->heard_at >= FORGET_TICKS;
}

uint32_t srd_rest_age(const struct srd_rest *rest, struct instant now)
{
    const uint32_t ticks = short_ticks(now), never = UINT32_MAX;
    const uint32_t heard = rest->opened ? ticks - rest->heard_at : never;
    const uint32_t used = rest->open ? ticks - rest->used_at : never;
    return heard < used ? heard : used;
}
