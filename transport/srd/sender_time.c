/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sender_time - when packets of a sender are lost, and its deadlines.
 */
#include "transport/srd/sender_internal.h"

/* -- Losses -------------------------------------------------------------------------------------*/

/* When a packet is to be taken for lost. The path knows which packet came last: if that one has no
 * verdict, there was no room for it, so it counts as lost as soon as the one before it would. */
static struct instant loss_at(const struct srd_sender *sender, const struct srd_transmission *one)
{
    const struct path *path = paths_at(&sender->paths, one->path);
    const struct psn tsn = psn_of(one->tsn);
    if (!path->arrived_known || !psn_equal(path->arrived, tsn)) {
        return path_loss_deadline(path, tsn);
    }
    const struct instant at = path_loss_deadline(path, psn_before(tsn, 1));
    return at.ns == UINT64_MAX ? (struct instant){0} : at;
}

static bool is_described(const struct srd_sender *sender, uint32_t psn)
{
    return sender->described_all || srd_distance(psn, sender->described) >= 0;
}

/* A packet that the last answer did not describe is not lost before news. */
static struct instant first_loss_of(const struct srd_sender *sender, const struct list *flight)
{
    for (struct list *node = flight->next; node != flight; node = node->next) {
        if (is_described(sender, srd_transmission_of(node)->psn)) {
            return loss_at(sender, srd_transmission_of(node));
        }
    }
    return INSTANT_NEVER;
}

struct instant srd_first_loss_at(const struct srd_sender *sender)
{
    struct instant first = INSTANT_NEVER;
    for (uint32_t i = 0; i < sender->paths.count; i++) {
        first = instant_earlier(first, first_loss_of(sender, &sender->flight[i]));
    }
    return first;
}

/* Transmissions left in this order by one path, so behind one that is not lost nothing is. */
static void find_lost_of(struct srd_sender *sender, struct list *flight, struct instant now)
{
    struct list *next;
    for (struct list *node = flight->next; node != flight; node = next) {
        struct srd_transmission *one = srd_transmission_of(node);
        next = node->next;
        if (!instant_reached(now, loss_at(sender, one))) {
            return;
        }
        if (is_described(sender, one->psn)) {
            const uint32_t index = one->psn - one->instance->first;
            path_on_lost(paths_at(&sender->paths, one->path),
                         srd_cost_of(sender, one->instance, index), now);
            list_remove(node);
            list_append(&sender->lost, node);
        }
    }
}

void srd_find_lost(struct srd_sender *sender, struct instant now)
{
    for (uint32_t i = 0; i < sender->paths.count; i++) {
        find_lost_of(sender, &sender->flight[i], now);
    }
}

/* -- Deadlines ----------------------------------------------------------------------------------*/

static struct instant flow_deadline(const struct srd_sender *sender, struct instant now)
{
    struct instant at = instant_earlier(paths_deadline(&sender->paths), srd_sender_asks_at(sender));
    at = instant_earlier(at, srd_first_loss_at(sender));
    if (!list_empty(&sender->sent)) {
        const struct srd_instance *oldest = srd_instance_of(sender->sent.next);
        at = instant_earlier(at, instant_after(oldest->first_sent, SRD_GIVE_UP_NS));
    }
    if (!list_empty(&sender->lost) || srd_has_new(sender)) {
        at = instant_earlier(at, paths_room_at(&sender->paths, now));
    }
    return at;
}

struct instant srd_sender_deadline(const struct srd_sender *sender, struct instant now)
{
    struct instant at = INSTANT_NEVER;
    for (struct list *node = sender->waiting.next; node != &sender->waiting; node = node->next) {
        at = instant_earlier(at, srd_instance_of(node)->wait_until);
    }
    switch (sender->state) {
    case SRD_FLOW_NONE: return list_empty(&sender->unsent) ? at : now;
    case SRD_FLOW_GREETS: return instant_earlier(at, sender->hello_at);
    case SRD_FLOW_OPEN: break;
    }
    return instant_earlier(at, flow_deadline(sender, now));
}

/* Instances that have waited for a receive go to the front, in the order in which they began to
 * wait. */
static void end_waits(struct srd_sender *sender, struct instant now)
{
    struct list *previous;
    for (struct list *node = sender->waiting.previous; node != &sender->waiting; node = previous) {
        previous = node->previous;
        if (instant_reached(now, srd_instance_of(node)->wait_until)) {
            list_remove(node);
            list_prepend(&sender->unsent, node);
        }
    }
}

bool srd_sender_is_impaired(const struct srd_sender *sender)
{
    bool impaired = sender->state == SRD_FLOW_OPEN;
    for (uint32_t i = 0; impaired && i < sender->paths.count; i++) {
        impaired =
            paths_at(&sender->paths, i)->congestion.silences >= sender->policy->congestion.silences;
    }
    return impaired;
}

uint64_t srd_sender_patience_ns(const struct srd_sender *sender, uint32_t doublings)
{
    uint64_t longest = rtt_pto_ns(&sender->path.rtt, &sender->policy->rtt, doublings);
    for (uint32_t i = 1; sender->state == SRD_FLOW_OPEN && i < sender->paths.count; i++) {
        const struct path *path = paths_at(&sender->paths, i);
        const uint64_t ns = rtt_pto_ns(&path->rtt, &sender->policy->rtt, doublings);
        longest = !path->suspect && ns > longest ? ns : longest;
    }
    return longest;
}

static uint32_t timeouts(const struct srd_sender *sender)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < sender->paths.count; i++) {
        sum += paths_at(&sender->paths, i)->expiries;
    }
    return sum;
}

/* Only a path that is silent while others are not is left. Those with nothing under way, since
 * all PSNs or records are with the silent one, are asked for a sign of life. */
static void ask_idle_paths(struct srd_sender *sender)
{
    bool silent = false;
    for (uint32_t i = 0; i < sender->paths.count; i++) {
        const struct path *path = paths_at(&sender->paths, i);
        silent |= (sender->paths.probes >> i & 1) != 0 && path->probes != 0 && !path->suspect;
    }
    for (uint32_t i = 0; silent && i < sender->paths.count; i++) {
        const struct path *path = paths_at(&sender->paths, i);
        if (!path->suspect && path_flight(path) == 0) {
            paths_want_probe(&sender->paths, (uint8_t)i);
        }
    }
}

bool srd_sender_on_time(struct srd_sender *sender, struct instant now)
{
    bool timed_out = false;
    srd_give_up(sender, now);
    end_waits(sender, now);
    if (sender->state == SRD_FLOW_OPEN) {
        const uint32_t before = timeouts(sender);
        while (paths_on_time(&sender->paths, now) != PATH_NONE) {
        }
        timed_out = timeouts(sender) > before;
        if (instant_reached(now, sender->ask_at)) {
            sender->ask_at = INSTANT_NEVER;
            paths_want_probe(&sender->paths, 0);
        }
        ask_idle_paths(sender);
        srd_find_lost(sender, now); /* Also all that is under way on a path that was left. */
    }
    srd_wake(sender, now);
    INVARIANTS(srd_sender_check(sender));
    return timed_out;
}
