/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/srd/sender.h"

#include <string.h>

#define HELLO_QUICK_NS 5000000u   /* Before the second HELLO, then twice as long, ... */
#define HELLO_SLOW_NS  100000000u /* ... up to this. */
#define WAIT_NS        64000u     /* Wait code 0. */

static struct srd_instance *instance_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_instance, node);
}

static struct srd_transmission *transmission_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_transmission, node);
}

void srd_sender_init(struct srd_sender *sender, const struct srd_sender_config *config)
{
    memset(sender, 0, sizeof(*sender));
    struct list *const lists[] = {&sender->unsent, &sender->sent,   &sender->waiting,
                                  &sender->ended,  &sender->flight, &sender->lost};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        list_init(lists[i]);
    }
    sender->records = config->records;
    sender->chunk_bytes = config->chunk_bytes;
    sender->policy = config->policy;
    sender->path_records = config->path_records;
}

void srd_sender_use(struct srd_sender *sender, const struct path_policy *policy)
{
    sender->policy = sender->path.policy = policy;
}

/* -- PSNs ---------------------------------------------------------------------------------------*/

static bool is_open(const struct srd_sender *sender, uint32_t psn)
{
    return psn - sender->lowest < sender->next - sender->lowest &&
           (sender->open[psn % SRD_WINDOW / 64] >> psn % 64 & 1) != 0;
}

static void open_psn(struct srd_sender *sender, uint32_t psn)
{
    sender->open[psn % SRD_WINDOW / 64] |= UINT64_C(1) << psn % 64;
}

static void close_psn(struct srd_sender *sender, uint32_t psn)
{
    sender->open[psn % SRD_WINDOW / 64] &= ~(UINT64_C(1) << psn % 64);
    while (sender->lowest != sender->next && !is_open(sender, sender->lowest)) {
        sender->lowest++;
    }
}

void srd_sender_check(const struct srd_sender *sender)
{
    CHECK(sender->next - sender->lowest <= SRD_WINDOW);
    CHECK(sender->lowest == sender->next || is_open(sender, sender->lowest));
    CHECK(sender->state == SRD_FLOW_OPEN ||
          (list_empty(&sender->sent) && list_empty(&sender->flight) && list_empty(&sender->lost)));
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
        if (transmission_of(node)->instance == instance) {
            list_remove(node);
            list_append(sender->records, node);
        }
    }
}

/* From now on, no verdict on its PSNs matters. */
static void give_psns_up(struct srd_sender *sender, struct srd_instance *instance)
{
    free_from(sender, &sender->flight, instance);
    free_from(sender, &sender->lost, instance);
    for (uint32_t i = 0; i < instance->packets; i++) {
        close_psn(sender, instance->first + i);
    }
    list_remove(&instance->node);
}

static void end(struct srd_sender *sender, struct srd_instance *instance, enum srd_status status)
{
    instance->status = (uint8_t)status;
    list_append(&sender->ended, &instance->node);
}

static void end_sent(struct srd_sender *sender, struct srd_instance *instance,
                     enum srd_status status)
{
    give_psns_up(sender, instance);
    end(sender, instance, status);
}

struct srd_instance *srd_sender_ended(struct srd_sender *sender)
{
    struct list *node = list_pop(&sender->ended);
    return node == NULL ? NULL : instance_of(node);
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

/* A greeting was not answered: who waits for the flow since then has waited enough. */
static void give_up_unsent(struct srd_sender *sender, struct instant now)
{
    if (sender->state != SRD_FLOW_GREETS || sender->hellos == 0 ||
        !is_old(sender->hello_since, now)) {
        return;
    }
    struct list *next;
    for (struct list *node = sender->unsent.next; node != &sender->unsent; node = next) {
        next = node->next;
        if (is_old(instance_of(node)->posted_at, now)) {
            list_remove(node);
            end(sender, instance_of(node),
                sender->boot_known ? SRD_STATUS_UNRESPONSIVE : SRD_STATUS_UNREACHABLE);
        }
    }
}

/* Before anything is sent or believed: the receiver counts on it that nothing older is under way.
 * The first packets of instances left in the order of the list. */
static void give_up(struct srd_sender *sender, struct instant now)
{
    while (!list_empty(&sender->sent)) {
        struct srd_instance *oldest = instance_of(sender->sent.next);
        if (oldest->begun == 0 || !is_old(oldest->first_sent, now)) {
            break;
        }
        end_sent(sender, oldest, SRD_STATUS_UNRESPONSIVE);
    }
    give_up_unsent(sender, now);
}

void srd_sender_post(struct srd_sender *sender, struct srd_instance *instance, struct instant now)
{
    CHECK(instance->packets == srd_packets(instance->bytes, sender->chunk_bytes) &&
          instance->packets <= SRD_PACKETS && instance->tries <= SRD_RETRY_FOREVER);
    instance->begun = 0;
    instance->taken = 0;
    instance->posted_at = now;
    list_init(&instance->node);
    list_append(&sender->unsent, &instance->node);
}

void srd_sender_withdraw(struct srd_sender *sender, struct srd_instance *instance)
{
    if (instance->begun != 0) {
        give_psns_up(sender, instance);
    } else {
        list_remove(&instance->node);
    }
    INVARIANTS(srd_sender_check(sender));
}

/* -- Departure ----------------------------------------------------------------------------------*/

static void start_greeting(struct srd_sender *sender, struct instant now)
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

static void send_probe(struct srd_sender *sender, struct instant now, struct srd_packet *packet)
{
    const uint32_t psn = sender->lowest == sender->next ? sender->next : sender->next - 1;
    address(sender, psn, path_sent(&sender->path, SRD_PACKET_COST, true, now), packet);
    packet->opcode = SRD_PROBE;
    packet->ack_request = true;
    sender->probe_due = false;
}

static uint32_t cost_of(const struct srd_sender *sender, const struct srd_instance *instance,
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
    struct srd_instance *last = instance_of(sender->sent.previous);
    return last->begun < last->packets ? last : NULL;
}

static struct srd_instance *next_unsent(const struct srd_sender *sender)
{
    return list_empty(&sender->unsent) ? NULL : instance_of(sender->unsent.next);
}

static bool has_new(const struct srd_sender *sender)
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

/* A transmission leaves, for the first time or once more. */
static void transmit(struct srd_sender *sender, struct srd_transmission *one, bool again,
                     struct instant now, struct srd_packet *packet)
{
    const struct srd_instance *instance = one->instance;
    const uint32_t index = one->psn - instance->first;
    const bool asks = again || path_wants_answer(&sender->path) || !has_new(sender);
    one->tsn = path_sent(&sender->path, cost_of(sender, instance, index), asks, now);
    list_append(&sender->flight, &one->node);
    address(sender, one->psn, one->tsn, packet);
    packet->ack_request = asks;
    packet->resent = again;
    packet->index = (uint8_t)index;
    packet->last = (uint8_t)(instance->packets - 1);
    packet->chunk_bytes = (uint16_t)sender->chunk_bytes;
}

static struct srd_instance *send_again(struct srd_sender *sender, struct instant now,
                                       struct srd_packet *packet)
{
    struct srd_transmission *one = transmission_of(list_pop(&sender->lost));
    transmit(sender, one, true, now, packet);
    return one->instance;
}

static struct srd_instance *send_new(struct srd_sender *sender, struct instant now,
                                     struct srd_packet *packet)
{
    struct srd_instance *instance = current(sender);
    if (instance == NULL) {
        instance = next_unsent(sender);
        begin(sender, instance, now);
    }
    struct srd_transmission *one = transmission_of(list_pop(sender->records));
    one->instance = instance;
    one->psn = instance->first + instance->begun++;
    transmit(sender, one, false, now, packet);
    return instance;
}

static bool is_forgotten(const struct srd_sender *sender, struct instant now)
{
    return list_empty(&sender->sent) &&
           instant_reached(now, instant_after(sender->used_at, SRD_IDLE_NS));
}

/* A flow that is wanted, and not there. */
static void wake(struct srd_sender *sender, struct instant now)
{
    if (sender->state == SRD_FLOW_OPEN && is_forgotten(sender, now)) {
        sender->state = SRD_FLOW_NONE;
    }
    if (sender->state == SRD_FLOW_NONE && !list_empty(&sender->unsent)) {
        start_greeting(sender, now);
    }
    if (sender->state == SRD_FLOW_GREETS && list_empty(&sender->unsent) &&
        list_empty(&sender->waiting)) {
        sender->state = SRD_FLOW_NONE;
    }
}

static bool may_send(const struct srd_sender *sender, struct instant now)
{
    return sender->state == SRD_FLOW_OPEN && (!list_empty(&sender->lost) || has_new(sender)) &&
           path_room(&sender->path, now) != 0;
}

bool srd_sender_ready(const struct srd_sender *sender, struct instant now)
{
    switch (sender->state) {
    case SRD_FLOW_NONE: return !list_empty(&sender->unsent);
    case SRD_FLOW_GREETS: return instant_reached(now, sender->hello_at);
    case SRD_FLOW_OPEN: break;
    }
    return sender->probe_due || may_send(sender, now) ||
           (!list_empty(&sender->unsent) && is_forgotten(sender, now));
}

struct srd_departure srd_sender_next(struct srd_sender *sender, struct prng *prng,
                                     struct instant now, struct srd_packet *packet)
{
    struct srd_departure leaving = {.kind = SRD_LEAVES_NOTHING};
    give_up(sender, now);
    wake(sender, now);
    if (sender->state == SRD_FLOW_GREETS && instant_reached(now, sender->hello_at)) {
        send_hello(sender, prng, now, packet);
        leaving.kind = SRD_LEAVES_HELLO;
    } else if (sender->state == SRD_FLOW_OPEN && sender->probe_due) {
        send_probe(sender, now, packet);
        leaving.kind = SRD_LEAVES_PROBE;
    } else if (may_send(sender, now)) {
        leaving.kind = SRD_LEAVES_PACKET;
        leaving.instance = list_empty(&sender->lost) ? send_new(sender, now, packet)
                                                     : send_again(sender, now, packet);
        sender->used_at = now;
    }
    INVARIANTS(srd_sender_check(sender));
    return leaving;
}

/* -- Arrival ------------------------------------------------------------------------------------*/

/* The instance found no receive: it waits, and goes on with other PSNs. */
static void on_no_receive(struct srd_sender *sender, struct srd_instance *instance,
                          uint8_t wait_code, struct instant now)
{
    if (instance->tries == 0) {
        end_sent(sender, instance, SRD_STATUS_NO_RECEIVE);
        return;
    }
    give_psns_up(sender, instance);
    instance->tries = (uint8_t)(instance->tries - (instance->tries != SRD_RETRY_FOREVER));
    instance->begun = 0;
    instance->wait_until = instant_after(now, (uint64_t)WAIT_NS << wait_code);
    list_append(&sender->waiting, &instance->node);
}

static void on_taken(struct srd_sender *sender, struct srd_transmission *one, struct instant now)
{
    struct srd_instance *instance = one->instance;
    (void)path_on_arrived(&sender->path, one->tsn, now);
    list_remove(&one->node);
    list_append(sender->records, &one->node);
    close_psn(sender, one->psn);
    if (++instance->taken == instance->packets) {
        list_remove(&instance->node);
        end(sender, instance, SRD_STATUS_OK);
    }
}

/* The record of an answer that has a verdict on the PSN; NULL: none. */
static const struct srd_record *record_of(const struct srd_answer *answer, uint32_t psn)
{
    for (uint32_t i = 0; i < answer->record_count; i++) {
        const uint32_t ahead = psn - answer->records[i].psn;
        if (ahead < 64 && (answer->records[i].bitmap >> ahead & 1) != 0) {
            return &answer->records[i];
        }
    }
    return NULL;
}

/* Instances that the answer refuses, first: what it says of their other packets does not matter. */
static void refuse(struct srd_sender *sender, const struct srd_record *record, struct instant now)
{
    struct list *next;
    for (struct list *node = sender->sent.next; node != &sender->sent; node = next) {
        struct srd_instance *instance = instance_of(node);
        uint64_t refused = 0;
        next = node->next;
        for (uint32_t i = 0; i < instance->packets; i++) {
            const uint32_t ahead = instance->first + i - record->psn;
            refused |= ahead < 64 && is_open(sender, instance->first + i)
                           ? record->bitmap >> ahead & 1
                           : 0;
        }
        if (refused != 0 && record->kind == SRD_KIND_REFUSED) {
            end_sent(sender, instance, (enum srd_status)record->status);
        } else if (refused != 0) {
            on_no_receive(sender, instance, record->wait_code, now);
        }
    }
}

static void take(struct srd_sender *sender, struct list *list, const struct srd_answer *answer,
                 struct instant now)
{
    struct list *next;
    for (struct list *node = list->next; node != list; node = next) {
        struct srd_transmission *one = transmission_of(node);
        next = node->next;
        if (srd_distance(one->psn, answer->taken_before) > 0 ||
            record_of(answer, one->psn) != NULL) {
            on_taken(sender, one, now);
        }
    }
}

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
static struct instant first_loss_at(const struct srd_sender *sender)
{
    for (struct list *node = sender->flight.next; node != &sender->flight; node = node->next) {
        if (is_described(sender, transmission_of(node)->psn)) {
            return loss_at(sender, transmission_of(node));
        }
    }
    return INSTANT_NEVER;
}

/* Transmissions left in this order by one path, so behind one that is not lost nothing is. */
static void find_lost(struct srd_sender *sender, struct instant now)
{
    struct list *next;
    for (struct list *node = sender->flight.next; node != &sender->flight; node = next) {
        struct srd_transmission *one = transmission_of(node);
        next = node->next;
        if (!instant_reached(now, loss_at(sender, one))) {
            return;
        }
        if (is_described(sender, one->psn)) {
            const uint32_t index = one->psn - one->instance->first;
            path_on_lost(&sender->path, cost_of(sender, one->instance, index), now);
            list_remove(node);
            list_append(&sender->lost, node);
        }
    }
}

/* The answer had no room for all verdicts, and nothing is left to send on which it had one: the
 * next one has room for others. */
static void ask_for_rest(struct srd_sender *sender)
{
    sender->probe_due |= !list_empty(&sender->flight) && list_empty(&sender->lost) &&
                         first_loss_at(sender).ns == UINT64_MAX && !sender->described_all;
}

/* Does it speak of this flow, and of nothing that never left? */
static enum srd_heard judge_answer(const struct srd_sender *sender, const struct srd_packet *packet)
{
    const struct srd_answer *answer = &packet->answer;
    if (sender->state != SRD_FLOW_OPEN || packet->flow != sender->flow ||
        packet->tag != sender->tag) {
        return SRD_HEARD_STALE;
    }
    bool possible = srd_distance(answer->taken_before, sender->next) >= 0;
    for (uint32_t i = 0; i < answer->record_count; i++) {
        possible &= srd_distance(answer->records[i].psn, sender->next) > 0;
    }
    return possible ? SRD_HEARD : SRD_HEARD_IMPOSSIBLE;
}

static bool hear_echo(struct srd_sender *sender, const struct srd_answer *answer,
                      struct instant now)
{
    const struct path_echo_report echo = {.tsn = psn_of(answer->echo_tsn),
                                          .held_ns = answer->echo_delay_ns,
                                          .ce_packets = answer->ce_marked};
    if (answer->echo_void) {
        return true;
    }
    if (answer->echo_path != 0 || path_on_echo(&sender->path, &echo, now) == PATH_ECHO_IMPOSSIBLE) {
        return false;
    }
    if (answer->duplicates != 0) {
        path_on_spurious(&sender->path, answer->duplicates, now);
    }
    return true;
}

enum srd_heard srd_sender_on_answer(struct srd_sender *sender, const struct srd_packet *packet,
                                    struct instant now)
{
    const struct srd_answer *answer = &packet->answer;
    give_up(sender, now);
    const enum srd_heard heard = judge_answer(sender, packet);
    if (heard != SRD_HEARD) {
        return heard;
    }
    if (!hear_echo(sender, answer, now)) {
        return SRD_HEARD_IMPOSSIBLE;
    }
    for (uint32_t i = 0; i < answer->record_count; i++) {
        if (answer->records[i].kind != SRD_KIND_TAKEN) {
            refuse(sender, &answer->records[i], now);
        }
    }
    take(sender, &sender->flight, answer, now);
    take(sender, &sender->lost, answer, now);
    sender->described_all = !answer->more;
    if (answer->more && answer->record_count != 0) {
        sender->described = answer->records[answer->record_count - 1].psn;
    }
    find_lost(sender, now);
    ask_for_rest(sender);
    INVARIANTS(srd_sender_check(sender));
    return SRD_HEARD;
}

static void open_flow(struct srd_sender *sender, const struct srd_packet *packet,
                      struct instant now)
{
    const bool one = sender->hellos == 1;
    sender->state = SRD_FLOW_OPEN;
    sender->tag = packet->tag;
    sender->boot = packet->challenge.boot;
    sender->boot_known = true;
    sender->described_all = true;
    sender->probe_due = false;
    sender->used_at = now;
    path_init(&sender->path,
              &(struct path_config){
                  .first_tsn = psn_of(packet->flow),
                  .packet_bytes = SRD_PACKET_COST + sender->chunk_bytes,
                  .trip_ns = one ? now.ns - sender->hello_since.ns : 0,
                  .records = sender->path_records,
                  .record_count = PATH_RECORDS,
                  .policy = sender->policy,
              },
              now);
}

/* The receiver does not know the flow. A process that has not changed meanwhile has taken nothing
 * of what is under way, and never will: it all begins anew. Of one that came in the place of
 * another we do not know what the other one took. */
static void lose_flow(struct srd_sender *sender, bool same, struct instant now)
{
    while (!list_empty(&sender->sent)) {
        struct srd_instance *newest = instance_of(sender->sent.previous);
        const bool left = newest->begun != 0;
        give_psns_up(sender, newest);
        newest->begun = 0;
        if (same || !left) {
            list_prepend(&sender->unsent, &newest->node);
        } else {
            end(sender, newest, SRD_STATUS_ABORT);
        }
    }
    start_greeting(sender, now);
}

enum srd_heard srd_sender_on_challenge(struct srd_sender *sender, const struct srd_packet *packet,
                                       struct instant now)
{
    const struct srd_challenge *challenge = &packet->challenge;
    const bool greets = sender->state == SRD_FLOW_GREETS && sender->hellos != 0;
    const bool stale = challenge->reason == SRD_REASON_STALE;
    if (packet->flow != sender->flow || (stale ? sender->state != SRD_FLOW_OPEN : !greets)) {
        return SRD_HEARD_STALE;
    }
    give_up(sender, now);
    if (!stale) {
        open_flow(sender, packet, now);
    } else if (sender->next - challenge->psn - 1 >= 2 * SRD_WINDOW) {
        return SRD_HEARD_IMPOSSIBLE;
    } else {
        const bool same = challenge->boot == sender->boot;
        sender->boot = challenge->boot;
        lose_flow(sender, same, now);
    }
    INVARIANTS(srd_sender_check(sender));
    return SRD_HEARD;
}

/* -- Time ---------------------------------------------------------------------------------------*/

static struct instant flow_deadline(const struct srd_sender *sender, struct instant now)
{
    struct instant at = path_deadline(&sender->path);
    at = instant_earlier(at, first_loss_at(sender));
    if (!list_empty(&sender->sent)) {
        const struct srd_instance *oldest = instance_of(sender->sent.next);
        at = instant_earlier(at, instant_after(oldest->first_sent, SRD_GIVE_UP_NS));
    }
    if (!list_empty(&sender->lost) || has_new(sender)) {
        at = instant_earlier(at, path_room_at(&sender->path, now));
    }
    return at;
}

struct instant srd_sender_deadline(const struct srd_sender *sender, struct instant now)
{
    struct instant at = INSTANT_NEVER;
    for (struct list *node = sender->waiting.next; node != &sender->waiting; node = node->next) {
        at = instant_earlier(at, instance_of(node)->wait_until);
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
        if (instant_reached(now, instance_of(node)->wait_until)) {
            list_remove(node);
            list_prepend(&sender->unsent, node);
        }
    }
}

void srd_sender_on_time(struct srd_sender *sender, struct instant now)
{
    give_up(sender, now);
    end_waits(sender, now);
    if (sender->state == SRD_FLOW_OPEN) {
        sender->probe_due |= path_on_time(&sender->path, (struct instant){0}, now) == PATH_PROBE;
        find_lost(sender, now);
    }
    wake(sender, now);
    INVARIANTS(srd_sender_check(sender));
}
