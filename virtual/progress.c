/* SPDX-License-Identifier: BSD-2-Clause
 *
 * progress - what a program does that its NIC has to know at once, and what the NIC has to tell the
 * program.
 */
#include "virtual/world.h"

/* (locked) Tells the program of notifications and events that there are. */
static void tell_news(struct live *live)
{
    struct nic_event event;
    struct cq *cq;
    while ((cq = nic_next_notification(live->nic)) != NULL) {
        if (live->listener.on_completion_event != NULL) {
            live->listener.on_completion_event(cq);
        }
    }
    while (nic_next_event(live->nic, &event)) {
        if (event.kind != NIC_EVENT_ENTERED_ERROR && live->listener.on_async_event != NULL) {
            live->listener.on_async_event(&event);
        }
    }
}

static inline void tell(struct live *live)
{
    if (nic_has_news(live->nic)) {
        tell_news(live);
    }
}

/* As an interrupt's handler in a kernel, it runs for what no call of the program comes upon. */
void *world_listen(void *context)
{
    struct live *live = context;
    while (world_ask(BOX_ASK_NEWS, live->number, NULL) == 0) {
        live_lock(live);
        tell_news(live);
        world_manager_work(live);
        live_unlock(live);
    }
    return NULL;
}

void live_posted(struct live *live, struct qp *qp)
{
    if (live->is_inherited) {
        return;
    }
    world_charge(COST_POST);
    (void)world_ask_unlocked(live, BOX_ASK_DOORBELL, qp);
    tell(live);
}

void live_flush(struct live *live)
{
    if (live->is_inherited) {
        return;
    }
    world_charge(COST_FLUSH);
    (void)world_ask_unlocked(live, BOX_ASK_POKE, NULL);
    tell(live);
}

void live_progress(struct live *live, bool armed)
{
    (void)armed;
    if (live->is_inherited) {
        return;
    }
    world_charge(COST_POLL_EMPTY);
    (void)world_ask_unlocked(live, BOX_ASK_POLL, NULL);
    tell(live);
}

void live_reaped(struct live *live, bool armed)
{
    (void)live;
    (void)armed;
    world_charge(COST_POLL_FOUND);
}

void live_will_block(struct live *live)
{
    world_charge(COST_ARM);
    tell(live);
}

/* -- Objects that local peers may reach by themselves: none does --------------------------------*/

/* Pages of 4 KB that the kernel pins; it pins none of a window, or of an on-demand region. */
static uint64_t pinned_pages(const struct region *region)
{
    const bool pins = region->kind == REGION_MEMORY && !(region->access & ACCESS_ON_DEMAND) &&
                      !region->whole_space && !region->null;
    return pins ? region->bytes / 4096 + 1 : 0;
}

void live_publish_region(struct live *live, const struct region *region)
{
    (void)live;
    world_charge(COST_REGION + COST_PAGE * pinned_pages(region));
}

void live_withdraw_region(struct live *live, const struct region *region)
{
    (void)live;
    (void)region;
    world_charge(COST_REGION);
}

void live_publish_qp(struct live *live, const struct qp *qp)
{
    (void)live;
    (void)qp;
    world_charge(COST_OBJECT);
}

void live_withdraw_qp(struct live *live, const struct qp *qp)
{
    (void)live;
    (void)qp;
}

void live_end_qp(struct live *live, const struct qp *qp)
{
    if (!live->is_inherited) {
        world_charge(COST_OBJECT);
        (void)world_ask_unlocked(live, BOX_ASK_FORGET, qp);
    }
}

/* Bytes of packets that were judged before a region went are on their way to its memory. */
bool live_settled(struct live *live)
{
    return live->is_inherited;
}

bool live_settle(struct live *live)
{
    (void)world_ask(BOX_ASK_SETTLE, live->number, NULL);
    return true;
}

void live_take_back(struct live *live, uint64_t start, uint64_t bytes)
{
    (void)live;
    (void)start;
    (void)bytes;
}

void live_take_back_unused(struct live *live)
{
    (void)live;
}
