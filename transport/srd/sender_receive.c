/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sender_receive - answers and challenges that a sender hears.
 */
#include "transport/srd/sender_internal.h"

#define WAIT_NS 64000u /* Wait code 0. */

/* -- Answers ------------------------------------------------------------------------------------*/

/* The receiver says how long a message waits that has few tries. One that may try for ever comes
 * sooner at first: a program that is about to post a receive does so within microseconds. */
static uint64_t wait_ns(struct srd_instance *instance, uint8_t wait_code)
{
    const bool sooner = instance->tries == SRD_RETRY_FOREVER && instance->refusals < wait_code;
    return (uint64_t)WAIT_NS << (sooner ? instance->refusals++ : wait_code);
}

/* The instance found no receive: it waits, and goes on with other PSNs. */
static void on_no_receive(struct srd_sender *sender, struct srd_instance *instance,
                          uint8_t wait_code, struct instant now)
{
    if (instance->tries == 0) {
        srd_end_sent(sender, instance, SRD_STATUS_NO_RECEIVE);
        return;
    }
    srd_give_psns_up(sender, instance);
    instance->tries = (uint8_t)(instance->tries - (instance->tries != SRD_RETRY_FOREVER));
    instance->begun = 0;
    instance->wait_until = instant_after(now, wait_ns(instance, wait_code));
    list_append(&sender->waiting, &instance->node);
}

static void on_taken(struct srd_sender *sender, struct srd_transmission *one, struct instant now)
{
    struct srd_instance *instance = one->instance;
    if (!one->again) { /* Else the one before may have come. */
        (void)path_on_arrived(paths_at(&sender->paths, one->path), psn_of(one->tsn), now);
    }
    list_remove(&one->node);
    list_append(sender->records, &one->node);
    srd_close_psn(sender, one->psn);
    if (++instance->taken == instance->packets) {
        list_remove(&instance->node);
        srd_end_instance(sender, instance, SRD_STATUS_OK);
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
        struct srd_instance *instance = srd_instance_of(node);
        uint64_t refused = 0;
        next = node->next;
        for (uint32_t i = 0; i < instance->packets; i++) {
            const uint32_t ahead = instance->first + i - record->psn;
            refused |= ahead < 64 && srd_psn_is_open(sender, instance->first + i)
                           ? record->bitmap >> ahead & 1
                           : 0;
        }
        if (refused != 0 && record->kind == SRD_KIND_REFUSED) {
            srd_end_sent(sender, instance, (enum srd_status)record->status);
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
        struct srd_transmission *one = srd_transmission_of(node);
        next = node->next;
        if (srd_distance(one->psn, answer->taken_before) > 0 ||
            record_of(answer, one->psn) != NULL) {
            on_taken(sender, one, now);
        }
    }
}

/* The answer had no room for all verdicts, and nothing is left to send on which it had one: the
 * next one has room for others. The path of the answer's echo works. */
static void ask_for_rest(struct srd_sender *sender, const struct srd_answer *answer)
{
    if (!sender->described_all && srd_has_flight(sender) && list_empty(&sender->lost) &&
        srd_first_loss_at(sender).ns == UINT64_MAX) {
        paths_want_probe(&sender->paths,
                         answer->echo_path < sender->paths.count ? answer->echo_path : 0);
    }
}

/* Nothing that is under way has asked. Most of the time the program is about to post, and the next
 * packet asks (last_one_asks). If none leaves for a quarter of a round trip, a probe does. */
static void ask_later(struct srd_sender *sender, struct instant now)
{
    if (sender->ask_at.ns == UINT64_MAX && sender->paths.count == 1 &&
        !list_empty(&sender->flight[0]) && !path_awaits_answer(&sender->path)) {
        sender->ask_at = instant_after(now, sender->path.rtt.smoothed_ns / 4);
    }
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
    /* The flow may have had more paths before it rested. */
    if (answer->echo_void || answer->echo_path >= sender->paths.count) {
        return answer->echo_void || answer->echo_path < SRD_FLOW_PATHS;
    }
    struct path *path = paths_at(&sender->paths, answer->echo_path);
    if (path_on_echo(path, &echo, now) == PATH_ECHO_IMPOSSIBLE) {
        return false;
    }
    if (answer->duplicates != 0) {
        path_on_spurious(path, answer->duplicates, now);
    }
    return true;
}

enum srd_heard srd_sender_on_answer(struct srd_sender *sender, const struct srd_packet *packet,
                                    struct instant now)
{
    const struct srd_answer *answer = &packet->answer;
    srd_give_up(sender, now);
    const enum srd_heard heard = judge_answer(sender, packet);
    if (heard != SRD_HEARD) {
        return heard;
    }
    sender->heard_at = now;
    if (!hear_echo(sender, answer, now)) {
        return SRD_HEARD_IMPOSSIBLE;
    }
    if (UNLIKELY(answer->answers_probe)) {
        paths_on_probe_answered(&sender->paths, now);
    }
    for (uint32_t i = 0; i < answer->record_count; i++) {
        if (answer->records[i].kind != SRD_KIND_TAKEN) {
            refuse(sender, &answer->records[i], now);
        }
    }
    for (uint32_t i = 0; i < sender->paths.count; i++) {
        take(sender, &sender->flight[i], answer, now);
    }
    take(sender, &sender->lost, answer, now);
    sender->described_all = !answer->more;
    if (answer->more && answer->record_count != 0) {
        sender->described = answer->records[answer->record_count - 1].psn;
    }
    srd_find_lost(sender, now);
    ask_for_rest(sender, answer);
    ask_later(sender, now);
    INVARIANTS(srd_sender_check(sender));
    return SRD_HEARD;
}

/* -- Challenges ---------------------------------------------------------------------------------*/

static void open_flow(struct srd_sender *sender, const struct srd_packet *packet,
                      struct instant now)
{
    const uint64_t trip_ns = sender->hellos == 1 ? now.ns - sender->hello_since.ns : 0;
    sender->tag = packet->tag;
    sender->boot = packet->challenge.boot;
    sender->boot_known = true;
    srd_start_flow(sender, psn_of(packet->flow), trip_ns, now);
}

/* The receiver does not know the flow. A process that has not changed meanwhile has taken nothing
 * of what is under way, and never will: it all begins anew. Of one that came in the place of
 * another we do not know what the other one took. */
static void lose_flow(struct srd_sender *sender, bool same, struct instant now)
{
    while (!list_empty(&sender->sent)) {
        struct srd_instance *newest = srd_instance_of(sender->sent.previous);
        const bool left = newest->begun != 0;
        srd_give_psns_up(sender, newest);
        newest->begun = 0;
        if (same || !left) {
            list_prepend(&sender->unsent, &newest->node);
        } else {
            srd_end_instance(sender, newest, SRD_STATUS_ABORT);
        }
    }
    srd_start_greeting(sender, now);
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
    srd_give_up(sender, now);
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
