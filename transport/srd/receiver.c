/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/srd/receiver.h"

#include "transport/common/psn.h"

void srd_receiver_init(struct srd_receiver *receiver, uint32_t flow, uint64_t tag, uint32_t base)
{
    receiver->flow = flow;
    receiver->tag = tag;
    list_init(&receiver->assemblies);
    receiver->moving = 0;
    receiver->reply = (struct srd_reply){.due = false};
    srd_window_init(&receiver->window, base);
}

static struct srd_assembly *assembly_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_assembly, node);
}

void srd_receiver_check(const struct srd_receiver *receiver)
{
    uint32_t moving = 0;
    srd_window_check(&receiver->window);
    for (struct list *node = receiver->assemblies.next; node != &receiver->assemblies;
         node = node->next) {
        const struct srd_assembly *assembly = assembly_of(node);
        CHECK(assembly->packets >= 1 && assembly->packets <= SRD_PACKETS && !assembly->left);
        CHECK((assembly->taken & ~srd_set_of(assembly->packets)) == 0);
        CHECK(assembly->taken != srd_set_of(assembly->packets));
        CHECK(assembly->moving + __builtin_popcountll(assembly->taken) <= assembly->packets);
        moving += assembly->moving;
    }
    CHECK(moving <= receiver->moving);
}

/* -- Packets ------------------------------------------------------------------------------------*/

static void count_to_255(uint8_t *count)
{
    *count = (uint8_t)(*count + (*count != UINT8_MAX));
}

/* The newest transmission of one path is echoed: that of the last packet that asked, or any. */
static void note_echo(struct srd_reply *reply, const struct srd_packet *packet, bool marked,
                      struct instant now)
{
    const bool other = reply->echo_there && reply->echo_path != packet->path;
    if (other) {
        reply->ce_marked = 0;
        reply->duplicates = 0;
    } else if (reply->echo_there &&
               psn_distance(psn_of(reply->echo_tsn), psn_of(packet->tsn)) < 0) {
        return;
    }
    reply->echo_there = true;
    reply->echo_path = packet->path;
    reply->echo_tsn = packet->tsn;
    reply->echo_arrived = now;
    if (marked) {
        count_to_255(&reply->ce_marked);
    }
}

void srd_receiver_on_packet(struct srd_receiver *receiver, const struct srd_packet *packet,
                            bool marked, struct instant now)
{
    srd_window_advance(&receiver->window, packet->psn - packet->back);
    note_echo(&receiver->reply, packet, marked, now);
    if (packet->opcode == SRD_PROBE) {
        receiver->reply.due = true;
        receiver->reply.answers_probe = true;
    }
    INVARIANTS(srd_receiver_check(receiver));
}

void srd_receiver_on_duplicate(struct srd_receiver *receiver)
{
    count_to_255(&receiver->reply.duplicates);
}

static struct srd_assembly *find(const struct srd_receiver *receiver, uint32_t first)
{
    for (struct list *node = receiver->assemblies.next; node != &receiver->assemblies;
         node = node->next) {
        if (assembly_of(node)->first == first) {
            return assembly_of(node);
        }
    }
    return NULL;
}

static struct srd_judgement judge_new(const struct srd_receiver *receiver,
                                      const struct srd_packet *packet)
{
    const uint32_t first = packet->psn - packet->index, packets = packet->last + 1u;
    if (!srd_is_collected(packet)) {
        return (struct srd_judgement){.step = SRD_STEP_OPEN};
    }
    struct srd_assembly *assembly = find(receiver, first);
    if (assembly != NULL) {
        const bool fits = assembly->packets == packets;
        return (struct srd_judgement){.step = fits ? SRD_STEP_CONTINUE : SRD_STEP_CONTRADICT,
                                      .assembly = fits ? assembly : NULL};
    }
    const uint8_t judged = srd_window_judge_instance(&receiver->window, first, packets);
    return (struct srd_judgement){.step = judged == SRD_JUDGED_NOT ? SRD_STEP_OPEN : SRD_STEP_SAME,
                                  .judged = judged};
}

struct srd_judgement srd_receiver_judge(const struct srd_receiver *receiver,
                                        const struct srd_packet *packet)
{
    const struct srd_window *window = &receiver->window;
    switch (srd_window_place(window, packet->psn)) {
    case SRD_PLACE_BEFORE: return (struct srd_judgement){.step = SRD_STEP_ANSWER};
    case SRD_PLACE_BEYOND: return (struct srd_judgement){.step = SRD_STEP_BEYOND};
    case SRD_PLACE_INSIDE: break;
    }
    switch (srd_window_judged(window, packet->psn)) {
    case SRD_JUDGED_NOT: return judge_new(receiver, packet);
    case SRD_JUDGED_MOVING: return (struct srd_judgement){.step = SRD_STEP_MOVING};
    default: return (struct srd_judgement){.step = SRD_STEP_ANSWER};
    }
}

/* -- Deeds of the caller ------------------------------------------------------------------------*/

void srd_receiver_settle(struct srd_receiver *receiver, uint32_t psn, uint8_t judged)
{
    CHECK(judged > SRD_JUDGED_MOVING);
    srd_window_set(&receiver->window, psn, judged);
    INVARIANTS(srd_receiver_check(receiver));
}

void srd_receiver_open(struct srd_receiver *receiver, struct srd_assembly *assembly,
                       const struct srd_packet *packet, struct instant now)
{
    assembly->first = packet->psn - packet->index;
    assembly->packets = (uint8_t)(packet->last + 1);
    assembly->moving = 0;
    assembly->left = false;
    assembly->taken = 0;
    assembly->since = now;
    list_init(&assembly->node);
    list_prepend(&receiver->assemblies, &assembly->node);
}

void srd_receiver_move(struct srd_receiver *receiver, struct srd_assembly *assembly, uint32_t psn)
{
    srd_window_set(&receiver->window, psn, SRD_JUDGED_MOVING);
    receiver->moving++;
    if (assembly != NULL) {
        assembly->moving++;
    }
    INVARIANTS(srd_receiver_check(receiver));
}

/* The sender may know meanwhile that it does not wait for the verdict. */
static void settle_moved(struct srd_receiver *receiver, uint32_t psn, uint8_t judged)
{
    CHECK(receiver->moving != 0);
    receiver->moving--;
    if (srd_window_place(&receiver->window, psn) == SRD_PLACE_INSIDE) {
        srd_window_set(&receiver->window, psn, judged);
    }
}

/* A packet of a message that was left is refused, although its bytes are there: if all packets of a
 * message are taken, it was delivered. */
static enum srd_moved moved_in_left(struct srd_receiver *receiver, struct srd_assembly *assembly,
                                    uint32_t psn, enum srd_status status)
{
    assembly->moving--;
    settle_moved(receiver, psn, srd_refused(status));
    return assembly->moving == 0 ? SRD_MOVED_LEFT : SRD_MOVED_MORE;
}

enum srd_moved srd_receiver_moved(struct srd_receiver *receiver, struct srd_assembly *assembly,
                                  uint32_t psn)
{
    if (assembly == NULL) {
        settle_moved(receiver, psn, SRD_JUDGED_TAKEN);
        return SRD_MOVED_MORE;
    }
    if (assembly->left) {
        return moved_in_left(receiver, assembly, psn, SRD_STATUS_BAD_QPN);
    }
    assembly->moving--;
    assembly->taken |= UINT64_C(1) << (psn - assembly->first);
    settle_moved(receiver, psn, SRD_JUDGED_TAKEN);
    if (assembly->taken != srd_set_of(assembly->packets)) {
        return SRD_MOVED_MORE;
    }
    list_remove(&assembly->node);
    return SRD_MOVED_COMPLETE;
}

enum srd_moved srd_receiver_move_failed(struct srd_receiver *receiver,
                                        struct srd_assembly *assembly, uint32_t psn,
                                        enum srd_status status)
{
    CHECK(assembly == NULL || assembly->left);
    if (assembly != NULL) {
        return moved_in_left(receiver, assembly, psn, status);
    }
    settle_moved(receiver, psn, srd_refused(status));
    return SRD_MOVED_MORE;
}

/* Does it miss a packet that the sender does not wait for any more? */
static bool is_given_up(const struct srd_receiver *receiver, const struct srd_assembly *assembly)
{
    const int32_t behind = srd_distance(assembly->first, receiver->window.base);
    const uint64_t missing = ~assembly->taken & srd_set_of(assembly->packets);
    return behind > 0 && (behind >= 64 || (missing & srd_set_of((uint32_t)behind)) != 0);
}

struct srd_assembly *srd_receiver_outdated(const struct srd_receiver *receiver, struct instant now)
{
    for (struct list *node = receiver->assemblies.next; node != &receiver->assemblies;
         node = node->next) {
        struct srd_assembly *assembly = assembly_of(node);
        if (is_given_up(receiver, assembly) ||
            instant_reached(now, instant_after(assembly->since, SRD_GIVE_UP_NS))) {
            return assembly;
        }
    }
    return NULL;
}

struct instant srd_receiver_deadline(const struct srd_receiver *receiver)
{
    /* New ones are in front. */
    return list_empty(&receiver->assemblies)
               ? INSTANT_NEVER
               : instant_after(assembly_of(receiver->assemblies.previous)->since, SRD_GIVE_UP_NS);
}

bool srd_receiver_leave(struct srd_assembly *assembly)
{
    list_remove(&assembly->node);
    assembly->left = true;
    return assembly->moving == 0;
}

/* -- Answers ------------------------------------------------------------------------------------*/

static uint32_t delay_ns(struct instant arrived, struct instant now)
{
    const uint64_t ns = now.ns > arrived.ns ? now.ns - arrived.ns : 0;
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

void srd_receiver_answer(struct srd_receiver *receiver, uint8_t wait_code, struct instant now,
                         struct srd_packet *packet)
{
    struct srd_reply *reply = &receiver->reply;
    *packet = (struct srd_packet){
        .opcode = SRD_ANSWER,
        .tsn = psn_of(reply->answers).value,
        .flow = receiver->flow,
        .tag = receiver->tag,
        .answer = {.answers_probe = reply->answers_probe,
                   .echo_void = !reply->echo_there,
                   .echo_path = reply->echo_path,
                   .echo_tsn = reply->echo_tsn,
                   .echo_delay_ns = reply->echo_there ? delay_ns(reply->echo_arrived, now) : 0,
                   .ce_marked = reply->ce_marked,
                   .duplicates = reply->duplicates,
                   .credits = SRD_NO_LIMIT},
    };
    srd_window_report(&receiver->window, wait_code, &packet->answer);
    *reply = (struct srd_reply){.answers = reply->answers + 1};
}
