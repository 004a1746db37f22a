/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/srd/sender.h"

#include <string.h>

#include "transport/srd/sender_internal.h"

#define HELLO_QUICK_NS 5000000u   /* Before the second HELLO, then twice as long, ... */
#define HELLO_SLOW_NS  100000000u /* ... up to this. */

void srd_sender_init(struct srd_sender *sender, const struct srd_sender_config *config)
{
    memset(sender, 0, sizeof(*sender));
    struct list *const lists[] = {&sender->unsent, &sender->sent, &sender->waiting, &sender->ended,
                                  &sender->lost};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        list_init(lists[i]);
    }
    for (size_t i = 0; i < SRD_FLOW_PATHS; i++) {
        list_init(&sender->flight[i]);
    }
    sender->records = config->records;
    sender->chunk_bytes = config->chunk_bytes;
    sender->policy = config->policy;
    sender->path_records = config->path_records;
}

void srd_sender_use(struct srd_sender *sender, const struct path_policy *policy)
{
    const bool changes = sender->policy != policy;
    sender->policy = policy;
    for (uint32_t i = 0; changes && sender->state == SRD_FLOW_OPEN && i < sender->paths.count;
         i++) {
        path_use(paths_at(&sender->paths, i), policy);
    }
}

static struct path_config path_of(const struct srd_sender *sender, struct path_record *records,
                                  struct psn tsn, uint64_t trip_ns)
{
    return (struct path_config){.first_tsn = tsn,
                                .packet_bytes = SRD_PACKET_COST + sender->chunk_bytes,
                                .trip_ns = trip_ns,
                                .records = records,
                                .record_count = SRD_PATH_RECORDS,
                                .policy = sender->policy};
}

void srd_start_flow(struct srd_sender *sender, struct psn tsn, uint64_t trip_ns, struct instant now)
{
    sender->state = SRD_FLOW_OPEN;
    sender->described_all = true;
    sender->used_at = sender->heard_at = now;
    sender->ask_at = INSTANT_NEVER;
    const struct path_config config = path_of(sender, sender->path_records, tsn, trip_ns);
    path_init(&sender->path, &config, now);
    paths_init(&sender->paths, &sender->path, NULL, 1);
}

/* Until now the first path had no other route to take. */
void srd_sender_widen(struct srd_sender *sender, struct path *others, struct path_record *records,
                      uint8_t count, struct instant now)
{
    CHECK(sender->state == SRD_FLOW_OPEN && sender->paths.count == 1 && count < SRD_FLOW_PATHS);
    for (uint32_t i = 0; i < count; i++) {
        struct path_config config = path_of(sender, records + (size_t)i * SRD_PATH_RECORDS,
                                            psn_of(sender->flow), sender->path.rtt.smoothed_ns);
        config.other_route = true;
        path_init(&others[i], &config, now);
    }
    path_own_route_answers(&sender->path, now);
    const uint16_t probes = sender->paths.probes;
    paths_init(&sender->paths, &sender->path, others, (uint8_t)(count + 1));
    sender->paths.probes = probes;
    INVARIANTS(srd_sender_check(sender));
}

/* -- PSNs ---------------------------------------------------------------------------------------*/

bool srd_psn_is_open(const struct srd_sender *sender, uint32_t psn)
{
    return psn - sender->lowest < sender->next - sender->lowest &&
           (sender->open[psn % SRD_WINDOW / 64] >> psn % 64 & 1) != 0;
}

static void open_psn(struct srd_sender *sender, uint32_t psn)
{
    sender->open[psn % SRD_WINDOW / 64] |= UINT64_C(1) << psn % 64;
}

void srd_close_psn(struct srd_sender *sender, uint32_t psn)
{
    sender->open[psn % SRD_WINDOW / 64] &= ~(UINT64_C(1) << psn % 64);
    while (sender->lowest != sender->next && !srd_psn_is_open(sender, sender->lowest)) {
        sender->lowest++;
    }
}

bool srd_has_flight(const struct srd_sender *sender)
{
    bool some = false;
    for (size_t i = 0; i < SRD_FLOW_PATHS; i++) {
        some |= !list_empty(&sender->flight[i]);
    }
    return some;
}

static void check_flight(const struct srd_sender *sender)
{
    for (uint32_t i = 0; i < SRD_FLOW_PATHS; i++) {
        const struct list *flight = &sender->flight[i];
        CHECK(list_empty(flight) || i < sender->paths.count);
        for (const struct list *node = flight->next; node != flight; node = node->next) {
            CHECK(CONTAINER_OF_CONST(node, struct srd_transmission, node)->path == i);
        }
    }
}

void srd_sender_check(const struct srd_sender *sender)
{
    CHECK(sender->next - sender->lowest <= SRD_WINDOW);
    CHECK(sender->lowest == sender->next || srd_psn_is_open(sender, sender->lowest));
    CHECK(sender->state == SRD_FLOW_OPEN ||
          (list_empty(&sender->sent) && !srd_has_flight(sender) && list_empty(&sender->lost)));
    check_flight(sender);
    for (const struct list *node = sender->sent.next; node != &sender->sent; node = node->next) {
        const struct srd_instance *instance = CONTAINER_OF_CONST(node, struct srd_instance, node);
        CHECK(instance->begun <= instance->packets && instance->taken < instance->packets);
        CHECK(instance->begun == instance->packets || node->next == &sender->sent);
    }
}

/* -- Ends of instances --------------------------------------------------------------------------*/

static void free_from(struct srd_sender *sender, struct list *list,
                      const struct srd_instance *instance)
{
    struct list *next;
    for (struct list *node = list->next; node != list; node = next) {
        next = node->next;
        if (srd_transmission_of(node)->instance == instance) {
            list_remove(node);
            list_append(sender->records, node);
        }
    }
}

void srd_give_psns_up(struct srd_sender *sender, struct srd_instance *instance)
{
    for (size_t i = 0; i < SRD_FLOW_PATHS; i++) {
        free_from(sender, &sender->flight[i], instance);
    }
    free_from(sender, &sender->lost, instance);
    for (uint32_t i = 0; i < instance->packets; i++) {
        srd_close_psn(sender, instance->first + i);
    }
    list_remove(&instance->node);
}

void srd_end_instance(struct srd_sender *sender, struct srd_instance *instance,
                      enum srd_status status)
{
    instance->status = (uint8_t)status;
    list_append(&sender->ended, &instance->node);
}

void srd_end_sent(struct srd_sender *sender, struct srd_instance *instance, enum srd_status status)
{
    srd_give_psns_up(sender, instance);
    srd_end_instance(sender, instance, status);
}

struct srd_instance *srd_sender_ended(struct srd_sender *sender)
{
    struct list *node = list_pop(&sender->ended);
    return node == NULL ? NULL : srd_instance_of(node);
}

bool srd_sender_is_idle(const struct srd_sender *sender)
{
    return list_empty(&sender->unsent) && list_empty(&sender->sent) &&
           list_empty(&sender->waiting) && list_empty(&sender->ended);
}

static bool is_old(struct instant at, struct instant now)
{
    return instant_reached(now, instant_after(at, SRD_GIVE_UP_NS));
}

bool srd_sender_is_silent(const struct srd_sender *sender, struct instant now)
{
    return sender->boot_known && is_old(sender->heard_at, now);
}

/* Instances wait for a flow, or for room behind packets, and nobody answers: they have waited
 * enough. As long as the peer says something, there is a turn to wait for. */
static void give_up_unsent(struct srd_sender *sender, struct instant now)
{
    const bool greets = sender->state == SRD_FLOW_GREETS && sender->hellos != 0;
    if (greets ? !is_old(sender->hello_since, now)
               : sender->state != SRD_FLOW_OPEN || !srd_sender_is_silent(sender, now)) {
        return;
    }
    struct list *next;
    for (struct list *node = sender->unsent.next; node != &sender->unsent; node = next) {
        next = node->next;
        if (is_old(srd_instance_of(node)->posted_at, now)) {
            list_remove(node);
            srd_end_instance(sender, srd_instance_of(node),
                             sender->boot_known ? SRD_STATUS_UNRESPONSIVE : SRD_STATUS_UNREACHABLE);
        }
    }
}

/* The first packets of instances left in the order of the list. */
void srd_give_up(struct srd_sender *sender, struct instant now)
{
    while (!list_empty(&sender->sent)) {
        struct srd_instance *oldest = srd_instance_of(sender->sent.next);
        if (oldest->begun == 0 || !is_old(oldest->first_sent, now)) {
            break;
        }
        srd_end_sent(sender, oldest, SRD_STATUS_UNRESPONSIVE);
    }
    give_up_unsent(sender, now);
}

void srd_sender_post(struct srd_sender *sender, struct srd_instance *instance, struct instant now)
{
    CHECK(instance->packets == srd_packets(instance->bytes, sender->chunk_bytes) &&
          instance->packets <= SRD_PACKETS && instance->tries <= SRD_RETRY_FOREVER);
    instance->begun = 0;
    instance->taken = 0;
    instance->refusals = 0;
    instance->posted_at = now;
    list_init(&instance->node);
    list_append(&sender->unsent, &instance->node);
}

void srd_sender_withdraw(struct srd_sender *sender, struct srd_instance *instance)
{
    if (instance->begun != 0) {
        srd_give_psns_up(sender, instance);
    } else {
        list_remove(&instance->node);
    }
    INVARIANTS(srd_sender_check(sender));
}

/* -- Departure ----------------------------------------------------------------------------------*/

void srd_start_greeting(struct srd_sender *sender, struct instant now)
{
    sender->state = SRD_FLOW_GREETS;
    sender->hellos = 0;
    sender->hello_at = now;
}

static void send_hello(struct srd_sender *sender, struct prng *prng, struct instant now,
                       struct srd_packet *packet)
{
    if (sender->hellos == 0) {
        sender->flow = (uint32_t)prng_next(prng);
        sender->next = sender->lowest = (uint32_t)prng_next(prng);
        sender->hello_since = now;
    }
    const uint64_t pause = (uint64_t)HELLO_QUICK_NS << (sender->hellos < 5 ? sender->hellos : 5);
    sender->hellos++;
    sender->hello_at = instant_after(now, pause < HELLO_SLOW_NS ? pause : HELLO_SLOW_NS);
    *packet = (struct srd_packet){.opcode = SRD_HELLO, .flow = sender->flow};
}

/* Fields that requests and probes have in common. */
static void address(struct srd_sender *sender, uint32_t psn, struct psn tsn,
                    struct srd_packet *packet)
{
    *packet = (struct srd_packet){.tsn = tsn.value,
                                  .flow = sender->flow,
                                  .tag = sender->tag,
                                  .psn = psn,
                                  .back = (uint16_t)(psn - sender->lowest)};
}

/* A flow with one path has one route: nothing has to be known of others. */
static bool send_probe(struct srd_sender *sender, struct instant now, struct srd_packet *packet)
{
    const bool several = sender->paths.count > 1;
    const bool in_use = several && !srd_sender_is_idle(sender);
    struct paths_probe probe;
    if (LIKELY((sender->paths.probes | sender->paths.away) == 0) ||
        !paths_next_probe(&sender->paths, in_use, now, &probe)) {
        return false;
    }
    const uint32_t psn = sender->lowest == sender->next ? sender->next : sender->next - 1;
    struct path *path = paths_at(&sender->paths, probe.path);
    address(sender, psn, path_sent(path, SRD_PACKET_COST, true, now), packet);
    sender->ask_at = INSTANT_NEVER;
    packet->opcode = SRD_PROBE;
    packet->ack_request = true;
    packet->path = probe.path;
    packet->index = several ? probe.round : 0;
    return true;
}

uint32_t srd_cost_of(const struct srd_sender *sender, const struct srd_instance *instance,
                     uint32_t index)
{
    const uint32_t before = index * sender->chunk_bytes;
    const uint32_t rest = instance->bytes - before;
    return SRD_PACKET_COST + (rest < sender->chunk_bytes ? rest : sender->chunk_bytes);
}

/* May an instance get PSNs now? */
static bool fits_window(const struct srd_sender *sender, const struct srd_instance *instance)
{
    return sender->next - sender->lowest + instance->packets <= SRD_WINDOW;
}

/* The instance whose packets are leaving for the first time; NULL: none. */
static struct srd_instance *current(const struct srd_sender *sender)
{
    if (list_empty(&sender->sent)) {
        return NULL;
    }
    struct srd_instance *last = srd_instance_of(sender->sent.previous);
    return last->begun < last->packets ? last : NULL;
}

static struct srd_instance *next_unsent(const struct srd_sender *sender)
{
    return list_empty(&sender->unsent) ? NULL : srd_instance_of(sender->unsent.next);
}

bool srd_has_new(const struct srd_sender *sender)
{
    const struct srd_instance *unsent = next_unsent(sender);
    return (current(sender) != NULL || (unsent != NULL && fits_window(sender, unsent))) &&
           !list_empty(sender->records);
}

static void begin(struct srd_sender *sender, struct srd_instance *instance, struct instant now)
{
    list_remove(&instance->node);
    list_append(&sender->sent, &instance->node);
    instance->begun = 0;
    instance->taken = 0;
    instance->first = sender->next;
    instance->first_sent = now;
    for (uint32_t i = 0; i < instance->packets; i++) {
        sender->next++;
        open_psn(sender, instance->first + i);
    }
}

/* Should a packet ask for an answer behind which nothing is to leave now? Programs post one message
 * after the other, and an answer for each would cost more than the message. So it asks only if no
 * answer is awaited, which tells of all that has arrived by then (ask_later). */
static bool last_one_asks(const struct srd_sender *sender, const struct path *path)
{
    return sender->paths.count > 1 || !path_awaits_answer(path);
}

/* A transmission leaves, for the first time or once more. */
static void transmit(struct srd_sender *sender, struct srd_transmission *one, uint8_t number,
                     bool again, struct instant now, struct srd_packet *packet)
{
    const struct srd_instance *instance = one->instance;
    const uint32_t index = one->psn - instance->first;
    struct path *path = paths_at(&sender->paths, number);
    const bool asks =
        again || path_wants_answer(path) || (last_one_asks(sender, path) && !srd_has_new(sender));
    const struct psn tsn = path_sent(path, srd_cost_of(sender, instance, index), asks, now);
    sender->ask_at = asks ? INSTANT_NEVER : sender->ask_at;
    one->tsn = tsn.value & PSN_MASK;
    one->path = number & (SRD_PATHS_MAX - 1);
    one->again = again;
    list_append(&sender->flight[number], &one->node);
    address(sender, one->psn, tsn, packet);
    packet->ack_request = asks;
    packet->resent = again;
    packet->path = number;
    packet->index = (uint8_t)index;
    packet->last = (uint8_t)(instance->packets - 1);
    packet->chunk_bytes = (uint16_t)sender->chunk_bytes;
}

static struct srd_instance *send_again(struct srd_sender *sender, uint8_t path, struct instant now,
                                       struct srd_packet *packet)
{
    struct srd_transmission *one = srd_transmission_of(list_pop(&sender->lost));
    transmit(sender, one, path, true, now, packet);
    return one->instance;
}

static struct srd_instance *send_new(struct srd_sender *sender, uint8_t path, struct instant now,
                                     struct srd_packet *packet)
{
    struct srd_instance *instance = current(sender);
    if (instance == NULL) {
        instance = next_unsent(sender);
        begin(sender, instance, now);
    }
    struct srd_transmission *one = srd_transmission_of(list_pop(sender->records));
    one->instance = instance;
    one->psn = instance->first + instance->begun++;
    transmit(sender, one, path, false, now, packet);
    return instance;
}

/* A packet that goes again, and a message of one packet that leaves alone, take the quickest. */
static uint8_t choose_path(struct srd_sender *sender, struct instant now)
{
    if (LIKELY(sender->paths.count == 1)) {
        return 0;
    }
    const struct srd_instance *unsent = next_unsent(sender);
    const bool alone = list_empty(&sender->sent) && unsent != NULL && unsent->packets == 1 &&
                       unsent->node.next == &sender->unsent;
    return paths_choose(&sender->paths, alone || !list_empty(&sender->lost), now);
}

static struct srd_instance *send_packet(struct srd_sender *sender, struct instant now,
                                        struct srd_packet *packet)
{
    const uint8_t path = choose_path(sender, now);
    sender->used_at = now;
    return list_empty(&sender->lost) ? send_new(sender, path, now, packet)
                                     : send_again(sender, path, now, packet);
}

static bool is_forgotten(const struct srd_sender *sender, struct instant now)
{
    return list_empty(&sender->sent) &&
           instant_reached(now, instant_after(sender->used_at, SRD_IDLE_NS));
}

void srd_wake(struct srd_sender *sender, struct instant now)
{
    if (sender->state == SRD_FLOW_OPEN && is_forgotten(sender, now)) {
        sender->state = SRD_FLOW_NONE;
    }
    if (sender->state == SRD_FLOW_NONE && !list_empty(&sender->unsent)) {
        srd_start_greeting(sender, now);
    }
    if (sender->state == SRD_FLOW_GREETS && list_empty(&sender->unsent) &&
        list_empty(&sender->waiting)) {
        sender->state = SRD_FLOW_NONE;
    }
}

static bool may_send(const struct srd_sender *sender, struct instant now)
{
    return sender->state == SRD_FLOW_OPEN && (!list_empty(&sender->lost) || srd_has_new(sender)) &&
           paths_have_room(&sender->paths, now);
}

bool srd_sender_ready(const struct srd_sender *sender, struct instant now)
{
    switch (sender->state) {
    case SRD_FLOW_NONE: return !list_empty(&sender->unsent);
    case SRD_FLOW_GREETS: return instant_reached(now, sender->hello_at);
    case SRD_FLOW_OPEN: break;
    }
    return sender->paths.probes != 0 || may_send(sender, now) ||
           (!list_empty(&sender->unsent) && is_forgotten(sender, now));
}

struct srd_departure srd_sender_next(struct srd_sender *sender, struct prng *prng,
                                     struct instant now, struct srd_packet *packet)
{
    struct srd_departure leaving = {.kind = SRD_LEAVES_NOTHING};
    srd_give_up(sender, now);
    srd_wake(sender, now);
    if (sender->state == SRD_FLOW_GREETS && instant_reached(now, sender->hello_at)) {
        send_hello(sender, prng, now, packet);
        leaving.kind = SRD_LEAVES_HELLO;
    } else if (sender->state == SRD_FLOW_OPEN && send_probe(sender, now, packet)) {
        leaving.kind = SRD_LEAVES_PROBE;
    } else if (may_send(sender, now)) {
        leaving.kind = SRD_LEAVES_PACKET;
        leaving.instance = send_packet(sender, now, packet);
    }
    INVARIANTS(srd_sender_check(sender));
    return leaving;
}
