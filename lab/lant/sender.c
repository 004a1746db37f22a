/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/lant/sender.h"

#include <stdlib.h>
#include <string.h>

#include "lab/lant/bench.h"

#define LINE_BYTES 4096u /* A burst does not cross such a line. */

static void go_on(struct lant_sender *sender);

/* -- Memory -------------------------------------------------------------------------------------*/

static uint32_t spacing_of(const struct lab_plan *plan)
{
    return (plan->longest + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

uint64_t lant_senders_memory(const struct lab_plan *plan, uint32_t window)
{
    return (1 + (uint64_t)plan->nodes * window) * spacing_of(plan);
}

static uint64_t place_of(const struct lant_senders *all, uint32_t from, uint32_t slot)
{
    return (1 + (uint64_t)from * all->window + slot) * all->spacing;
}

static void fill_pool(const struct lant_senders *all, struct lant_node *node)
{
    for (uint64_t i = 0; i < all->spacing; i += sizeof(uint64_t)) {
        const uint64_t word = lant_bench_word(node->index, i);
        memcpy(node->memory + i, &word, sizeof(word));
    }
}

static uint8_t *target_of(const struct lant_senders *all, uint32_t from, uint32_t number)
{
    const struct lant_sender_slot *slot = &all->senders[from].slots[number];
    return all->world->nodes[slot->to].memory + place_of(all, from, number);
}

/* A message is where it belongs, as it is in its sender's pool. */
static bool is_whole(const struct lant_senders *all, uint32_t from, uint32_t number)
{
    const struct lant_sender *sender = &all->senders[from];
    return memcmp(target_of(all, from, number), sender->node->memory,
                  sender->slots[number].bytes) == 0;
}

/* -- Calls --------------------------------------------------------------------------------------*/

static void transfer(struct lant_sender *sender, uint32_t number)
{
    const struct lant_sender_slot *slot = &sender->slots[number];
    const uint64_t at = place_of(sender->all, sender->node->index, number);
    const struct lant_work work = {
        .descriptor = {.destination = lant_global(slot->to, at), .bytes = slot->bytes},
        .tag = number};
    CHECK(lant_node_submit(sender->node, LANT_QUEUE_CPU, &work) == LANT_SUBMIT_COMMITTED);
}

static void access(struct lant_sender *sender, uint32_t number)
{
    const struct lant_senders *all = sender->all;
    struct lant_sender_slot *slot = &sender->slots[number];
    const bool stores = all->work == LANT_SENDER_STORES;
    const uint64_t at = stores ? place_of(all, sender->node->index, number) : 0;
    const struct lant_shm_access access = {.address = lant_global(slot->to, at),
                                           .bytes = slot->bytes,
                                           .token = number,
                                           .store = stores};
    slot->beats = slot->open = lant_shm_access_beats(&access);
    CHECK(lant_node_access(sender->node, &access, stores ? sender->node->memory : NULL));
}

static uint32_t free_slot(const struct lant_sender *sender)
{
    uint32_t slot = 0;
    while (slot < sender->all->window && sender->slots[slot].busy) {
        slot++;
    }
    return slot;
}

/* -- The processor ------------------------------------------------------------------------------*/

static void begin(struct lant_sender *sender, enum lant_sender_job job, uint64_t time_ps)
{
    sender->job = (uint8_t)job;
    sender->busy_ps += time_ps;
    sim_after(sender->all->world->sim, &sender->done, time_ps);
}

static void call(struct lant_sender *sender, uint32_t number)
{
    struct lant_senders *all = sender->all;
    const struct lab_plan_message *message = &all->plan->messages[sender->next++];
    sender->slot = number;
    sender->slots[number] = (struct lant_sender_slot){
        .busy = true,
        .to = message->to,
        .bytes = message->bytes,
        .began_ps = all->plan->timed ? message->at_ps : all->world->sim->now_ps};
    /* Its place has the bytes of the message before: it has to bring them anew. */
    memset(target_of(all, sender->node->index, number), 0, message->bytes);
    begin(sender, LANT_SENDER_CALLS, all->call_ps);
}

static void go_on(struct lant_sender *sender)
{
    const struct lant_senders *all = sender->all;
    struct sim *sim = all->world->sim;
    if (sender->job != LANT_SENDER_RESTS) {
        return;
    }
    if (sender->count > 0) {
        sender->slot = sender->looks[sender->first];
        sender->first = (sender->first + 1) % (all->plan->nodes * all->window);
        sender->count--;
        begin(sender, LANT_SENDER_LOOKS, all->look_ps);
        return;
    }
    const uint32_t slot = free_slot(sender);
    if (slot == all->window || sender->next == all->plan->first[sender->node->index + 1]) {
        return;
    }
    if (all->plan->messages[sender->next].at_ps > sim->now_ps) {
        sim_reschedule(sim, &sender->wanted, all->plan->messages[sender->next].at_ps);
        return;
    }
    call(sender, slot);
}

/* Both interfaces have told what they have to, and nobody is yet to look: the slot can be used
 * again. */
static void free_if_over(struct lant_sender *sender, struct lant_sender_slot *slot)
{
    if (slot->sent && slot->open == 0 && slot->looks == 0 &&
        (slot->received || slot->failed || !sender->all->receivers_look)) {
        slot->busy = false;
        go_on(sender);
    }
}

/* The end of a message is seen. */
static void see(struct lant_senders *all, uint32_t which)
{
    const uint32_t from = which / all->window, number = which % all->window;
    struct lant_sender *sender = &all->senders[from];
    struct lant_sender_slot *slot = &sender->slots[number];
    struct sim *sim = all->world->sim;
    sim_note(sim, sim->now_ps - slot->began_ps);
    slot->looks--;
    if (slot->failed) {
        all->failed += !slot->sent;
    } else {
        all->wrong += all->work == LANT_SENDER_TRANSFERS && !is_whole(all, from, number);
        lab_tally_count(&all->tally, slot->began_ps, sim->now_ps, slot->bytes);
    }
    if (all->receivers_look && !slot->failed) {
        slot->received = true;
    } else {
        slot->sent = true;
    }
    free_if_over(sender, slot);
}

static void on_done(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_sender *sender = CONTAINER_OF(event, struct lant_sender, done);
    const bool looked = sender->job == LANT_SENDER_LOOKS;
    const uint32_t slot = sender->slot;
    sender->job = LANT_SENDER_RESTS;
    if (looked) {
        see(sender->all, slot);
    } else if (sender->all->work == LANT_SENDER_TRANSFERS) {
        transfer(sender, slot);
    } else {
        access(sender, slot);
    }
    go_on(sender);
}

static void on_wanted(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    go_on(CONTAINER_OF(event, struct lant_sender, wanted));
}

/* -- Ends ---------------------------------------------------------------------------------------*/

/* The node's processor is to look at the end of a message. */
static void show(struct lant_sender *at, uint32_t from, uint32_t number)
{
    const uint32_t room = at->all->plan->nodes * at->all->window;
    CHECK(at->count < room);
    at->all->senders[from].slots[number].looks++;
    at->looks[(at->first + at->count++) % room] = from * at->all->window + number;
    go_on(at);
}

static void on_bus(void *context, const struct lant_shm_done *done)
{
    struct lant_sender *sender = context;
    struct lant_sender_slot *slot = &sender->slots[done->token];
    const uint32_t self = sender->node->index;
    if (lant_shm_done_on_bus(done)) {
        slot->failed |= done->response != LANT_OKAY;
        if (!done->store && done->response == LANT_OKAY) {
            const uint64_t at = lant_global_address(done->address);
            sender->all->wrong += done->data != lant_bench_word(slot->to, at);
        }
        if (--slot->beats == 0) {
            show(sender, self, done->token);
        }
    }
    /* A store may have been answered early. */
    if (lant_shm_done_final(done) && --slot->open == 0 && done->store) {
        sender->all->wrong += !slot->failed && done->response == LANT_OKAY &&
                              !is_whole(sender->all, self, done->token);
        free_if_over(sender, slot);
    }
}

static void on_notification(void *context, enum lant_queue queue,
                            const struct lant_notification *notification)
{
    (void)queue;
    struct lant_sender *sender = context;
    struct lant_senders *all = sender->all;
    if (notification->kind == LANT_NOTIFY_SENT) {
        struct lant_sender_slot *slot = &sender->slots[notification->tag];
        slot->failed = (notification->status & LANT_STATUS_ERRORS) != 0;
        if (all->receivers_look && !slot->failed) {
            slot->sent = true;
            free_if_over(sender, slot);
        } else if (!slot->received) {
            show(sender, sender->node->index, notification->tag);
        } else {
            slot->sent = true; /* It came whole, though its sender thinks otherwise. */
            free_if_over(sender, slot);
        }
    } else if (all->receivers_look) {
        const uint64_t place = notification->destination / all->spacing - 1;
        show(sender, (uint32_t)(place / all->window), (uint32_t)(place % all->window));
    }
}

/* -- Construction -------------------------------------------------------------------------------*/

void lant_senders_open(struct lant_senders *all)
{
    struct lant_world *world = all->world;
    CHECK(all->window >= 1 && all->window <= LANT_SENDER_WINDOW_MAX);
    all->spacing = spacing_of(all->plan);
    all->senders = calloc(world->count, sizeof(all->senders[0]));
    CHECK(all->senders != NULL && all->plan->nodes == world->count);
    for (uint32_t i = 0; i < world->count; i++) {
        struct lant_sender *sender = &all->senders[i];
        *sender =
            (struct lant_sender){.all = all, .node = &world->nodes[i], .next = all->plan->first[i]};
        sender->looks = calloc((size_t)world->count * all->window, sizeof(sender->looks[0]));
        CHECK(sender->looks != NULL);
        sim_event_init(&sender->done, on_done);
        sim_event_init(&sender->wanted, on_wanted);
        sender->node->program = (struct lant_program){
            .context = sender, .on_done = on_bus, .on_notification = on_notification};
        fill_pool(all, sender->node);
    }
    for (uint32_t i = 0; i < world->count; i++) {
        go_on(&all->senders[i]);
    }
}

void lant_senders_close(struct lant_senders *all)
{
    for (uint32_t i = 0; i < all->world->count; i++) {
        free(all->senders[i].looks);
    }
    free(all->senders);
}
