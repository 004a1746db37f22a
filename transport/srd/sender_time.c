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
    const struct path *path = &sender->path;
    if (!path->arrived_known || !psn_equal(path->arrived, one->tsn)) {
        return path_loss_deadline(path, one->tsn);
    }
    const struct instant at = path_loss_deadline(path, psn_before(one->tsn, 1));
    return at.ns == UINT64_MAX ? (struct instant){0} : at;
}

static bool is_described(const struct srd_sender *sender, uint32_t psn)
{
    return sender->described_all || srd_distance(psn, sender->described) >= 0;
}

/* A packet that the last answer did not describe is not lost before news. */
struct instant srd_first_loss_at(const struct srd_sender *sender)
{
    for (struct list *node = sender->flight.next; node != &sender->flight; node = node->next) {
        if (is_described(sender, srd_transmission_of(node)->psn)) {
            return loss_at(sender, srd_transmission_of(node));
        }
    }
    return INSTANT_NEVER;
}

/* Transmissions left in this order by one path, so behind one that is not lost nothing is. */
void srd_find_lost(struct srd_sender *sender, struct instant now)
{
    struct list *next;
    for (struct list *node = sender->flight.next; node != &sender->flight; node = next) {
        struct srd_transmission *one = srd_transmission_of(node);
        next = node->next;
        if (!instant_reached(now, loss_at(sender, one))) {
            return;
        }
        if (is_described(sender, one->psn)) {
            const uint32_t index = one->psn - one->instance->first;
            path_on_lost(&sender->path, srd_cost_of(sender, one->instance, index), now);
            list_remove(node);
            list_append(&sender->lost, node);
        }
    }
}

/* -- Deadlines ----------------------------------------------------------------------------------*/

static struct instant flow_deadline(const struct srd_sender *sender, struct instant now)
{
    struct instant at = path_deadline(&sender->path);
    at = instant_earlier(at, srd_first_loss_at(sender));
    if (!list_empty(&sender->sent)) {
        const struct srd_instance *oldest = srd_instance_of(sender->sent.next);
        at = instant_earlier(at, instant_after(oldest->first_sent, SRD_GIVE_UP_NS));
    }
    if (!list_empty(&sender->lost) || srd_has_new(sender)) {
        at = instant_earlier(at, path_room_at(&sender->path, now));
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
    return sender->state == SRD_FLOW_OPEN &&
           sender->path.congestion.silences >= sender->policy->congestion.silences;
}

bool srd_sender_on_time(struct srd_sender *sender, struct instant now)
{
    bool timed_out = false;
    srd_give_up(sender, now);
    end_waits(sender, now);
    if (sender->state == SRD_FLOW_OPEN) {
        const uint32_t before = sender->path.expiries;
        sender->probe_due |= path_on_time(&sender->path, (struct instant){0}, now) == PATH_PROBE;
        timed_out = sender->path.expiries > before;
        srd_find_lost(sender, now);
    }
    srd_wake(sender, now);
    INVARIANTS(srd_sender_check(sender));
    return timed_out;
}
