/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/block/responder.h"

/* The flags that a message's last packet alone says. */
#define SAID_BY_LAST (BLOCK_CONTEXT_IMMEDIATE | BLOCK_CONTEXT_INVALIDATE | BLOCK_CONTEXT_SOLICITED)

void block_responder_init(struct block_responder *responder,
                          const struct block_responder_config *config,
                          struct block_contexts *contexts, struct block_hold *hold)
{
    CHECK(config->window >= 1 && config->window <= BLOCK_WINDOW_MAX);
    *responder = (struct block_responder){
        .contexts = contexts,
        .hold = hold,
        .session = config->session,
        .window = config->window,
        .mtu_bytes = config->mtu_bytes,
        .first_number = config->first_number,
        .seen = config->first_number - 1,
        .next_receive = config->first_receive,
        .answers = config->answers,
        .hold_all = config->hold_all,
    };
    block_chain_init(&responder->chain, config->owner, config->first_number, &responder->reserve);
}

static void remove_context(struct block_responder *responder, struct block_context *context)
{
    block_hold_drop(responder->hold, &context->held);
    block_contexts_remove(responder->contexts, context);
}

void block_responder_withdraw(struct block_responder *responder)
{
    struct block_context *context;
    while ((context = block_contexts_first(responder->contexts, &responder->chain)) != NULL) {
        remove_context(responder, context);
    }
    responder->moving = false;
    responder->inside = false;
}

/* -- Messages -----------------------------------------------------------------------------------*/

static uint8_t flags_of(const struct block_packet *packet)
{
    return (uint8_t)((packet->last_block ? BLOCK_CONTEXT_LAST : 0) |
                     (block_is_last(packet)
                          ? (packet->has_immediate ? BLOCK_CONTEXT_IMMEDIATE : 0) |
                                (packet->invalidates ? BLOCK_CONTEXT_INVALIDATE : 0) |
                                (packet->solicited ? BLOCK_CONTEXT_SOLICITED : 0)
                          : 0));
}

static uint32_t length_of(const struct block_packet *packet)
{
    return packet->opcode == BLOCK_ATOMIC ? packet->atomic.kind : packet->message_bytes;
}

struct block_message block_message_of_context(const struct block_context *context)
{
    return (struct block_message){
        .address = context->address,
        .start = context->number - context->index,
        .bytes = context->message_bytes,
        .key = context->key,
        .receive_number = context->receive_number,
        .tag = context->tag,
        .opcode = context->opcode,
        .flags = context->flags,
    };
}

struct block_message block_message_of_packet(const struct block_packet *packet)
{
    const bool carries = packet->opcode == BLOCK_SEND || packet->opcode == BLOCK_WRITE;
    const bool named = packet->opcode != BLOCK_SEND;
    return (struct block_message){
        .address = named ? packet->address : 0,
        .start = packet->number - packet->index,
        .bytes = length_of(packet),
        .key = named ? packet->key : 0,
        .receive_number = carries ? packet->receive_number : 0,
        .tag = carries ? packet->tag : 0,
        .opcode = packet->opcode,
        .flags = flags_of(packet),
    };
}

bool block_message_consumes(const struct block_message *message)
{
    return message->opcode == BLOCK_SEND || (message->flags & BLOCK_CONTEXT_IMMEDIATE) != 0;
}

static bool same_message(const struct block_message *a, const struct block_message *b)
{
    return a->opcode == b->opcode && a->start == b->start && a->bytes == b->bytes &&
           a->address == b->address && a->key == b->key &&
           (a->opcode != BLOCK_SEND || a->receive_number == b->receive_number);
}

bool block_responder_follows(const struct block_responder *responder,
                             const struct block_message *message)
{
    if (block_message_consumes(message) && message->receive_number != responder->next_receive) {
        return false;
    }
    return responder->inside ? same_message(&responder->message, message)
                             : message->start == responder->chain.base;
}

/* -- Judging ------------------------------------------------------------------------------------*/

/* Is all of its block that precedes the position on its way into memory? */
static bool begun_below(const struct block_responder *responder,
                        const struct block_context *context, uint8_t position)
{
    const uint64_t below = ((uint64_t)1 << position) - 1;
    const uint64_t arrived = context == NULL ? 0 : context->arrived;
    return (arrived & below) == below &&
           (context == NULL || context->held == BLOCK_HOLD_NONE ||
            block_hold_position(responder->hold,
                                block_hold_first(responder->hold, context->held)) >= position);
}

static bool fits_context(const struct block_context *context, const struct block_packet *packet,
                         const struct block_message *message)
{
    const struct block_message other = block_message_of_context(context);
    return context->last_position == packet->last_position && context->index == packet->index &&
           same_message(&other, message);
}

/* A READ may be asked for in pieces, which are no copies of each other. */
static bool asks_for_more(const struct block_context *context, const struct block_packet *packet)
{
    return packet->opcode == BLOCK_READ && context->opcode == BLOCK_READ &&
           (packet->wanted & ~context->wanted) != 0;
}

static enum block_arrived judge_within(const struct block_responder *responder,
                                       const struct block_packet *packet, struct block_case *it)
{
    const enum block_judgement judgement = block_judge(packet, responder->mtu_bytes);
    if (UNLIKELY(judgement != BLOCK_CONSISTENT)) {
        it->length = judgement == BLOCK_WRONG_PAYLOAD || judgement == BLOCK_WRONG_LAST ||
                     judgement == BLOCK_WRONG_INDEX;
        return BLOCK_ARRIVED_CONTRADICTION;
    }
    const bool known = it->context != NULL && it->context->arrived != 0;
    if ((known && (it->context->arrived >> packet->position & 1) &&
         !asks_for_more(it->context, packet)) ||
        (responder->moving && packet->number == responder->chain.base)) {
        return BLOCK_ARRIVED_DUPLICATE;
    }
    const struct block_message message = block_message_of_packet(packet);
    const bool fits = (!known || fits_context(it->context, packet, &message)) &&
                      (!it->in_order || block_responder_follows(responder, &message));
    return fits ? BLOCK_ARRIVED_NEW : BLOCK_ARRIVED_CONTRADICTION;
}

static enum block_arrived judge_executed(const struct block_responder *responder,
                                         const struct block_packet *packet, int32_t ahead)
{
    if (packet->opcode == BLOCK_READ) {
        if (ahead < -(int32_t)responder->window) {
            return BLOCK_ARRIVED_BEFORE;
        }
        return block_judge(packet, responder->mtu_bytes) == BLOCK_CONSISTENT
                   ? BLOCK_ARRIVED_REPEATED
                   : BLOCK_ARRIVED_DUPLICATE;
    }
    return packet->opcode == BLOCK_ATOMIC ? BLOCK_ARRIVED_REPEATED : BLOCK_ARRIVED_DUPLICATE;
}

struct block_case block_responder_judge(const struct block_responder *responder,
                                        const struct block_packet *packet)
{
    struct block_case it = {.arrived = BLOCK_ARRIVED_STRANGE};
    if (UNLIKELY(packet->session != responder->session)) {
        return it;
    }
    const int32_t ahead = block_number_distance(responder->chain.base, packet->number);
    if (UNLIKELY(ahead >= (int32_t)responder->window)) {
        it.arrived = BLOCK_ARRIVED_BEYOND;
    } else if (packet->opcode == BLOCK_PROBE) {
        it.arrived = BLOCK_ARRIVED_PROBE;
    } else if (ahead < 0) {
        it.arrived = judge_executed(responder, packet, ahead);
    } else {
        it.context = block_contexts_find(responder->contexts, &responder->chain, packet->number);
        it.in_order = packet->index >= (uint32_t)ahead;
        it.turn = ahead == 0 && !responder->moving &&
                  begun_below(responder, it.context, packet->position);
        it.arrived = judge_within(responder, packet, &it);
    }
    return it;
}

enum block_where block_responder_where(const struct block_responder *responder,
                                       const struct block_packet *packet,
                                       const struct block_case *it)
{
    if (it->turn) {
        return BLOCK_INTO_MEMORY;
    }
    if (responder->hold_all) {
        return BLOCK_INTO_HOLD;
    }
    /* Programs poll a WRITE's last bytes: all else is there before them. */
    if (packet->opcode == BLOCK_WRITE && block_is_last(packet)) {
        return BLOCK_INTO_HOLD;
    }
    const bool one_packet = packet->last_block && packet->index == 0 && packet->last_position == 0;
    if (it->in_order || one_packet || packet->early) {
        return BLOCK_INTO_MEMORY;
    }
    /* The other half is for last packets, which have no other place. */
    const struct block_hold *hold = responder->hold;
    return hold->used < hold->count / 2 ? BLOCK_INTO_HOLD : BLOCK_NOWHERE;
}

/* -- Packets that came --------------------------------------------------------------------------*/

static void count_up(uint8_t *count)
{
    *count = (uint8_t)(*count + (*count < UINT8_MAX));
}

static void ask_answer(struct block_responder *responder)
{
    responder->answer_due = true;
}

/* Keeps the packet that a temporary status is about, until an answer has echoed it. */
static void note_arrived(struct block_responder *responder, const struct block_packet *packet,
                         struct instant at)
{
    const bool free = responder->status == BLOCK_STATUS_NONE || responder->refused ||
                      !responder->arrived[responder->newest].valid;
    const uint8_t path = packet->path % BLOCK_PATHS_MAX;
    struct block_last_arrived *arrived = &responder->arrived[path];
    if (free || path != responder->newest) {
        const bool asked = arrived->asked || packet->ack_request || packet->opcode == BLOCK_PROBE;
        *arrived = (struct block_last_arrived){
            .at = at, .tsn = packet->tsn, .valid = true, .asked = asked};
    }
    responder->newest = free ? path : responder->newest;
}

void block_responder_arrived(struct block_responder *responder, const struct block_packet *packet,
                             bool marked, struct instant at, struct instant now)
{
    const bool probe = packet->opcode == BLOCK_PROBE;
    if (responder->refused) {
        if (!responder->answer_due && now.ns - responder->refusal_sent.ns < BLOCK_REFUSAL_NS) {
            return;
        }
        ask_answer(responder);
    }
    note_arrived(responder, packet, at);
    if (UNLIKELY(marked)) {
        count_up(&responder->ce_marked[packet->path % BLOCK_PATHS_MAX]);
    }
    if (block_number_before(responder->seen, packet->number)) {
        responder->seen = packet->number;
    }
    if (probe) {
        responder->answers_probe = true;
    }
    if (probe || packet->ack_request) {
        ask_answer(responder);
    }
}

void block_responder_duplicate(struct block_responder *responder, const struct block_packet *packet)
{
    count_up(&responder->duplicates[packet->path % BLOCK_PATHS_MAX]);
}

/* There was no room for its block: the next answer says so, if there is room for that. */
static void note_missing(struct block_responder *responder, uint32_t number)
{
    ask_answer(responder);
    uint32_t at = 0;
    while (at < responder->missing_count && block_number_before(responder->missing[at], number)) {
        at++;
    }
    if (responder->missing_count == BLOCK_MISSING_MAX ||
        (at < responder->missing_count && responder->missing[at] == number)) {
        return;
    }
    for (uint32_t i = responder->missing_count; i > at; i--) {
        responder->missing[i] = responder->missing[i - 1];
    }
    responder->missing[at] = number;
    responder->missing_count++;
}

static void fill_context(struct block_context *context, const struct block_packet *packet)
{
    const struct block_message message = block_message_of_packet(packet);
    context->address = message.address;
    context->index = packet->index;
    context->message_bytes = message.bytes;
    context->key = message.key;
    context->receive_number = message.receive_number;
    context->opcode = packet->opcode;
    context->last_position = packet->last_position;
    context->round = packet->round;
}

struct block_context *block_responder_context(struct block_responder *responder,
                                              const struct block_packet *packet, struct instant now)
{
    struct block_context *context =
        block_contexts_find(responder->contexts, &responder->chain, packet->number);
    if (context == NULL) {
        context = block_contexts_add(responder->contexts, &responder->chain, packet->number, now);
        if (context == NULL) {
            note_missing(responder, packet->number);
            return NULL;
        }
    }
    if (context->arrived == 0) {
        const uint8_t round = context->round;
        const bool declined = context->flags & BLOCK_CONTEXT_DECLINED;
        fill_context(context, packet);
        context->flags &= (uint8_t) ~(SAID_BY_LAST | BLOCK_CONTEXT_LAST);
        context->round = declined ? round : packet->round;
    }
    block_context_touch(context, now);
    if ((int8_t)(packet->round - context->round) > 0) {
        context->round = packet->round;
        context->flags &= (uint8_t)~BLOCK_CONTEXT_DECLINED;
    }
    context->flags |= packet->ack_request ? BLOCK_CONTEXT_ASKED : 0;
    return context;
}

static bool is_complete(const struct block_context *context)
{
    const uint64_t wanted = context->opcode == BLOCK_READ || context->opcode == BLOCK_ATOMIC
                                ? 1
                                : block_positions(context->last_position);
    return context->arrived == wanted;
}

/* A message's last packet has fields that its others lack. The newest last packet that came counts,
 * since it was judged. */
static void mark(struct block_responder *responder, struct block_context *context,
                 const struct block_packet *packet)
{
    context->arrived |= (uint64_t)1 << packet->position;
    if (block_is_last(packet)) {
        context->flags &= (uint8_t)~SAID_BY_LAST;
    }
    context->flags |= flags_of(packet);
    if (block_is_last(packet) && (packet->opcode == BLOCK_SEND || packet->opcode == BLOCK_WRITE)) {
        context->tag = packet->tag;
        context->receive_number = packet->receive_number;
    }
    if ((context->flags & BLOCK_CONTEXT_ASKED) && is_complete(context)) {
        ask_answer(responder);
    }
}

void block_responder_begin(struct block_responder *responder, struct block_context *context,
                           const struct block_packet *packet)
{
    if (context == NULL) {
        CHECK(!responder->moving && packet->number == responder->chain.base);
        struct block_context *declined =
            block_contexts_find(responder->contexts, &responder->chain, packet->number);
        if (declined != NULL) {
            remove_context(responder, declined);
        }
        responder->moving = true;
        responder->inside = false;
        responder->message = block_message_of_packet(packet);
        responder->message.flags |= packet->ack_request ? BLOCK_CONTEXT_ASKED : 0;
        return;
    }
    mark(responder, context, packet);
}

bool block_responder_hold(struct block_responder *responder, struct block_context *context,
                          const struct block_packet *packet)
{
    if (!block_hold_add(responder->hold, &context->held, packet->position, packet->payload,
                        packet->payload_bytes)) {
        return false;
    }
    mark(responder, context, packet);
    return true;
}

void block_responder_keep(struct block_responder *responder, struct block_context *context,
                          const struct block_packet *packet)
{
    context->tag = packet->path;
    if (packet->opcode == BLOCK_READ) {
        context->wanted = packet->wanted | (context->arrived != 0 ? context->wanted : 0);
    } else {
        context->compare = packet->atomic.compare;
        context->swap_or_add = packet->atomic.swap_or_add;
    }
    mark(responder, context, packet);
}

bool block_responder_decline(struct block_responder *responder, const struct block_packet *packet,
                             struct instant now)
{
    struct block_context *context = block_responder_context(responder, packet, now);
    if (context == NULL || (context->flags & BLOCK_CONTEXT_DECLINED)) {
        return false;
    }
    context->flags |= BLOCK_CONTEXT_DECLINED;
    ask_answer(responder);
    return true;
}

/* -- Moves --------------------------------------------------------------------------------------*/

struct block_context *block_responder_moved(const struct block_responder *responder,
                                            uint32_t number, uint32_t birth)
{
    struct block_context *context =
        block_contexts_find(responder->contexts, &responder->chain, number);
    return context != NULL && context->birth == birth ? context : NULL;
}

void block_responder_placed(struct block_responder *responder, struct block_context *context,
                            uint8_t position)
{
    (void)responder;
    CHECK(context->arrived >> position & 1);
    context->placed |= (uint64_t)1 << position;
}

void block_responder_unplaced(struct block_responder *responder, struct block_context *context,
                              uint8_t position)
{
    context->arrived &= ~((uint64_t)1 << position);
    ask_answer(responder);
}

/* -- Block base ---------------------------------------------------------------------------------*/

static enum block_step what_is_ready(const struct block_responder *responder,
                                     const struct block_context *context)
{
    if (context->opcode == BLOCK_READ) {
        return BLOCK_STEP_READ;
    }
    if (context->opcode == BLOCK_ATOMIC) {
        return context->flags & BLOCK_CONTEXT_BEGUN ? BLOCK_STEP_WAIT : BLOCK_STEP_ATOMIC;
    }
    if (context->held != BLOCK_HOLD_NONE) {
        const uint32_t first = block_hold_first(responder->hold, context->held);
        return begun_below(responder, context, block_hold_position(responder->hold, first))
                   ? BLOCK_STEP_HELD
                   : BLOCK_STEP_WAIT;
    }
    return context->placed == block_positions(context->last_position) ? BLOCK_STEP_DONE
                                                                      : BLOCK_STEP_WAIT;
}

enum block_step block_responder_step(const struct block_responder *responder,
                                     struct block_context **result)
{
    struct block_context *context = block_contexts_first(responder->contexts, &responder->chain);
    *result = context;
    if (context == NULL || context->number != responder->chain.base || context->arrived == 0 ||
        responder->moving) {
        return BLOCK_STEP_WAIT;
    }
    const enum block_step step = what_is_ready(responder, context);
    if (step == BLOCK_STEP_WAIT) {
        return step;
    }
    const struct block_message message = block_message_of_context(context);
    return block_responder_follows(responder, &message) ? step : BLOCK_STEP_INVALID;
}

uint32_t block_responder_detach(struct block_responder *responder, struct block_context *context)
{
    return block_hold_detach(responder->hold, &context->held);
}

void block_responder_drop_held(struct block_responder *responder, struct block_context *context)
{
    const uint32_t slot = block_hold_detach(responder->hold, &context->held);
    context->arrived &= ~((uint64_t)1 << block_hold_position(responder->hold, slot));
    block_hold_release(responder->hold, slot);
}

static void advance(struct block_responder *responder, const struct block_message *message)
{
    responder->next_receive +=
        (message->flags & BLOCK_CONTEXT_LAST) && block_message_consumes(message);
    responder->chain.base++;
    /* Its memory may have taken longer than the answer that was asked for. */
    responder->answer_due |= (message->flags & BLOCK_CONTEXT_ASKED) != 0;
    if (!responder->refused) {
        responder->status = BLOCK_STATUS_NONE;
    }
}

void block_responder_executed(struct block_responder *responder, struct block_context *context)
{
    CHECK(context->number == responder->chain.base);
    const struct block_message message = block_message_of_context(context);
    remove_context(responder, context);
    responder->inside = !(message.flags & BLOCK_CONTEXT_LAST);
    responder->message = message;
    advance(responder, &message);
}

void block_responder_executed_alone(struct block_responder *responder)
{
    CHECK(responder->moving);
    responder->moving = false;
    advance(responder, &responder->message);
}

void block_responder_forget(struct block_responder *responder, uint32_t start)
{
    struct block_context *context = block_contexts_first(responder->contexts, &responder->chain);
    while (context != NULL) {
        struct block_context *next = block_contexts_next(responder->contexts, context);
        if (context->number - context->index == start) {
            remove_context(responder, context);
        }
        context = next;
    }
}

/* -- Answers ------------------------------------------------------------------------------------*/

void block_responder_refuse_for_now(struct block_responder *responder)
{
    responder->status = BLOCK_STATUS_RNR;
    ask_answer(responder);
}

void block_responder_refuse(struct block_responder *responder, enum block_status status)
{
    if (!responder->refused) {
        responder->refused = true;
        responder->status = (uint8_t)status;
    }
    ask_answer(responder);
}

void block_responder_refuse_read(struct block_responder *responder, uint32_t number)
{
    /* The oldest of several is named: those behind it end with it. */
    if (!responder->read_refused || block_number_before(number, responder->refused_read)) {
        responder->refused_read = number;
    }
    responder->read_refused = true;
    block_responder_refuse(responder, BLOCK_STATUS_ACCESS);
}

/* -- Looking ------------------------------------------------------------------------------------*/

void block_responder_check(const struct block_responder *responder)
{
    const struct block_chain *chain = &responder->chain;
    block_chain_check(responder->contexts, chain);
    CHECK(chain->count <= responder->window);
    CHECK(block_number_distance(chain->base - 1, responder->seen) >= 0);
    CHECK(block_number_distance(chain->base, responder->seen) < (int32_t)responder->window);
    CHECK(!(responder->inside && responder->moving));
    for (const struct block_context *context = block_contexts_first(responder->contexts, chain);
         context != NULL; context = block_contexts_next(responder->contexts, context)) {
        CHECK(context->held == BLOCK_HOLD_NONE || context->arrived != 0);
        CHECK(!block_number_before(responder->seen, context->number));
    }
}
