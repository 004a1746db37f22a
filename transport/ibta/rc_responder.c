/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/rc_responder.h"

#include <string.h>

#include "base/bits.h"
#include "transport/common/work.h"

uint32_t rc_resource_entries(uint32_t limit)
{
    return (uint32_t)power_of_two(limit);
}

void rc_responder_init(struct rc_responder *responder, struct psn expected, uint32_t mtu_bytes,
                       uint32_t resource_limit, struct rc_resource *resources)
{
    CHECK(resource_limit <= RC_RESOURCES_MAX);
    *responder = (struct rc_responder){
        .expected = expected,
        .moved = expected,
        .dropped = expected,
        .incoming = {.mtu_bytes = (uint16_t)mtu_bytes},
        .resources = resources,
        .resource_mask = (uint8_t)(rc_resource_entries(resource_limit) - 1),
        .resource_limit = (uint8_t)resource_limit,
    };
}

static struct rc_resource *resource_at(const struct rc_responder *responder, uint32_t position)
{
    return &responder->resources[position & responder->resource_mask];
}

/* The position of the oldest entry, and that of the first one that may be due; `end` if there is
 * none. */
static uint32_t oldest_at(const struct rc_responder *responder)
{
    return responder->end - responder->kept;
}

static uint32_t due_from(const struct rc_responder *responder)
{
    return responder->end - responder->due_within;
}

/* The kept READ or atomic whose PSNs include `psn`, and its position; NULL if none. The search
 * begins with the newest, which mostly is the one. */
static struct rc_resource *find_resource(const struct rc_responder *responder, struct psn psn,
                                         uint32_t *position)
{
    for (uint32_t at = responder->end; at != oldest_at(responder); at--) {
        struct rc_resource *resource = resource_at(responder, at - 1);
        const uint32_t index = psn_count(resource->first, psn);
        if (index < PSN_HALF) {
            *position = at - 1;
            return index < resource->packets ? resource : NULL;
        }
    }
    return NULL;
}

/* The PSN of the next response; behind all of them if none is left. Comparisons of PSNs take it for
 * the whole entry: sent responses may lie more than half of all PSNs back. */
static struct psn next_response_psn(const struct rc_resource *resource)
{
    return psn_after(resource->first, resource->sent);
}

static struct rc_resource *resource_of(const struct rc_responder *responder, struct psn psn)
{
    uint32_t position;
    return find_resource(responder, psn, &position);
}

static enum rc_verdict judge_duplicate(const struct rc_responder *responder,
                                       const struct roce_packet *packet, uint32_t traits)
{
    if (!(traits & ROCE_IS_ANSWERED)) {
        return RC_VERDICT_REPLAY;
    }
    const struct rc_resource *resource = resource_of(responder, psn_of(packet->psn));
    const uint8_t operation = packet->opcode & 0x1f;
    if (resource == NULL || resource->operation != operation) {
        return RC_VERDICT_IGNORE;
    }
    if (operation != ROCE_READ_REQUEST) {
        return RC_VERDICT_REPLAY_ATOMIC;
    }
    /* A resent READ asks for the rest of the original or a part of it, never for more, and with its
     * key. */
    const uint32_t index = (uint32_t)psn_distance(resource->first, psn_of(packet->psn));
    const uint64_t skipped = (uint64_t)index * responder->incoming.mtu_bytes;
    if (packet->reth.key != resource->key || packet->reth.address != resource->address + skipped ||
        skipped + packet->reth.bytes > resource->bytes) {
        return RC_VERDICT_IGNORE;
    }
    return RC_VERDICT_REPLAY_READ;
}

/* The oldest PSN that its requester cannot know to be answered. */
static struct psn oldest_in_flight(const struct rc_responder *responder)
{
    for (uint32_t at = due_from(responder); at != responder->end; at++) {
        const struct rc_resource *resource = resource_at(responder, at);
        if (!resource->answered) {
            return next_response_psn(resource);
        }
    }
    return responder->moved;
}

/* At most half of all PSNs may be in flight, or nobody could tell old ones from new ones
 * (9.7.2). */
static bool fits_flight(const struct rc_responder *responder, uint32_t read_bytes)
{
    return psn_count(oldest_in_flight(responder), responder->expected) +
               packets_of(read_bytes, responder->incoming.mtu_bytes) <=
           PSN_HALF;
}

static enum rc_verdict judge_in_order(const struct rc_responder *responder,
                                      const struct roce_packet *packet, uint32_t traits)
{
    switch (incoming_judge(&responder->incoming, packet, traits)) {
    case INCOMING_WRONG_ORDER: return RC_VERDICT_WRONG_ORDER;
    case INCOMING_WRONG_LENGTH: return RC_VERDICT_WRONG_LENGTH;
    case INCOMING_FITS: break;
    }
    if (!(traits & ROCE_IS_ANSWERED)) {
        return RC_VERDICT_EXECUTE;
    }
    if ((traits & ROCE_IS_READ) && packet->reth.bytes > MESSAGE_BYTES_MAX) {
        return RC_VERDICT_WRONG_LENGTH;
    }
    if ((traits & ROCE_IS_READ) && !fits_flight(responder, packet->reth.bytes)) {
        return RC_VERDICT_NO_RESOURCES;
    }
    /* The ring keeps answered entries for duplicates: only those never answered are in the way. One
     * that is being replayed is not: a requester that asks for more has all of it by now. */
    if (responder->kept == responder->resource_limit &&
        (responder->kept == 0 || !resource_at(responder, oldest_at(responder))->answered)) {
        return RC_VERDICT_NO_RESOURCES;
    }
    return RC_VERDICT_EXECUTE;
}

enum rc_verdict rc_responder_judge(const struct rc_responder *responder,
                                   const struct roce_packet *packet)
{
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    const int32_t ahead = psn_distance(responder->expected, psn_of(packet->psn));
    if (ahead < 0) {
        return judge_duplicate(responder, packet, traits);
    }
    if (ahead > 0) {
        return responder->stream == RC_STREAM_IN_GAP ? RC_VERDICT_IN_GAP : RC_VERDICT_REPORT_GAP;
    }
    return judge_in_order(responder, packet, traits);
}

static void owe_sequence_nak(struct rc_responder *responder)
{
    responder->stream = RC_STREAM_IN_GAP;
    responder->pending = RC_REPLY_NAK;
    responder->syndrome = ROCE_NAK_PSN_SEQUENCE;
    responder->pending_psn = responder->expected;
}

/* The packet that an unsent NAK asks for has come: the NAK is void, unless later packets were
 * dropped. The requester does not know that they were, and would wait for its timer if no packet
 * follows. */
static void reconsider_nak(struct rc_responder *responder)
{
    if (psn_distance(responder->expected, responder->dropped) >= 0) {
        owe_sequence_nak(responder);
    } else {
        responder->pending = RC_REPLY_NONE;
    }
}

/* `packets` PSNs were accepted: gaps whose NAK was sent end here. */
static void move_on(struct rc_responder *responder, uint32_t packets)
{
    responder->stream = RC_STREAM_IN_ORDER;
    responder->expected = psn_after(responder->expected, packets);
    if (responder->pending == RC_REPLY_NAK) {
        reconsider_nak(responder);
    }
}

struct psn rc_responder_expected(const struct rc_responder *responder)
{
    return responder->expected;
}

bool rc_responder_is_next(const struct rc_responder *responder, const struct roce_packet *packet)
{
    return psn_equal(psn_of(packet->psn), responder->expected);
}

bool rc_responder_found_valid(const struct rc_responder *responder, struct psn before)
{
    return !psn_equal(responder->expected, before) ||
           (responder->pending == RC_REPLY_NAK &&
            (responder->syndrome & ROCE_AETH_KIND_MASK) == ROCE_AETH_RNR_NAK);
}

void rc_responder_accept(struct rc_responder *responder, const struct roce_packet *packet)
{
    INVARIANTS(rc_responder_check(responder));
    CHECK(psn_equal(psn_of(packet->psn), responder->expected));
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    incoming_accept(&responder->incoming, packet, traits);
    if (traits & ROCE_IS_LAST) {
        responder->msn = (responder->msn + 1) & ROCE_24_BITS;
    }
    move_on(responder, 1);
    INVARIANTS(rc_responder_check(responder));
}

bool rc_responder_takes_plain(const struct rc_responder *responder, struct psn psn, uint32_t bytes)
{
    return psn_equal(responder->expected, psn) && responder->incoming.kind == INCOMING_NONE &&
           bytes <= responder->incoming.mtu_bytes;
}

static void accept_plain(struct rc_responder *responder)
{
    responder->msn = (responder->msn + 1) & ROCE_24_BITS;
    move_on(responder, 1);
}

/* The long way comes to the same. */
static void check_plain(const struct rc_responder *responder, uint8_t opcode)
{
    const struct roce_packet packet = {.opcode = opcode, .psn = responder->expected.value};
    struct rc_responder accepted = *responder, taken = *responder;
    CHECK(rc_responder_judge(responder, &packet) == RC_VERDICT_EXECUTE);
    rc_responder_accept(&accepted, &packet);
    accept_plain(&taken);
    CHECK(memcmp(&accepted, &taken, sizeof(taken)) == 0);
}

void rc_responder_accept_plain(struct rc_responder *responder, uint8_t opcode)
{
    (void)opcode;
    INVARIANTS(check_plain(responder, opcode));
    accept_plain(responder);
    INVARIANTS(rc_responder_check(responder));
}

/* READs move nothing into memory: `moved` passes them as soon as it reaches them. */
static void settle(struct rc_responder *responder)
{
    while (!psn_equal(responder->moved, responder->expected)) {
        const struct rc_resource *resource = resource_of(responder, responder->moved);
        if (resource == NULL || resource->operation != ROCE_READ_REQUEST) {
            return;
        }
        responder->moved = psn_after(resource->first, resource->packets);
    }
}

void rc_responder_on_moved(struct rc_responder *responder, struct psn psn, bool ack_request)
{
    INVARIANTS(rc_responder_check(responder));
    if (psn_distance(responder->moved, psn) >= 0) {
        responder->moved = psn_after(psn, 1);
        settle(responder);
    }
    if (ack_request && responder->pending != RC_REPLY_NAK) {
        responder->pending = RC_REPLY_ACK;
        responder->pending_psn = psn;
    }
    INVARIANTS(rc_responder_check(responder));
}

/* An entry is done: those after it may have been so before. */
static void skip_done(struct rc_responder *responder)
{
    while (responder->due_within != 0 &&
           resource_at(responder, due_from(responder))->state == RC_RESOURCE_DONE) {
        responder->due_within--;
    }
}

static void forget_oldest(struct rc_responder *responder)
{
    responder->kept--;
    if (responder->due_within > responder->kept) {
        responder->due_within = responder->kept;
    }
}

static void drop_oldest(struct rc_responder *responder)
{
    const struct rc_resource *oldest = resource_at(responder, oldest_at(responder));
    CHECK(oldest->answered);
    if (oldest->state != RC_RESOURCE_DONE) {
        responder->due--;
    }
    forget_oldest(responder);
}

void rc_responder_move(struct rc_responder *responder, uint32_t room, struct rc_resource *resources)
{
    const uint32_t mask = rc_resource_entries(room) - 1;
    CHECK(room >= responder->resource_limit && room <= RC_RESOURCES_MAX);
    for (uint32_t at = oldest_at(responder); at != responder->end; at++) {
        resources[at & mask] = *resource_at(responder, at);
    }
    responder->resources = resources;
    responder->resource_mask = (uint8_t)mask;
}

bool rc_responder_may_limit(const struct rc_responder *responder, uint32_t limit)
{
    for (uint32_t at = oldest_at(responder); responder->end - at > limit; at++) {
        if (!resource_at(responder, at)->answered) {
            return false;
        }
    }
    return true;
}

void rc_responder_set_limit(struct rc_responder *responder, uint32_t limit)
{
    CHECK(rc_responder_may_limit(responder, limit));
    CHECK(rc_resource_entries(limit) <= responder->resource_mask + 1u);
    while (responder->kept > limit) {
        drop_oldest(responder);
    }
    responder->resource_limit = (uint8_t)limit;
}

static struct rc_resource *add_resource(struct rc_responder *responder,
                                        const struct roce_packet *packet)
{
    if (responder->kept == responder->resource_limit) {
        drop_oldest(responder);
    }
    struct rc_resource *resource = resource_at(responder, responder->end);
    responder->end++;
    responder->kept++;
    responder->due++;
    responder->due_within++;
    *resource = (struct rc_resource){
        .first = psn_of(packet->psn),
        .packets = 1,
        .until = 1,
        .operation = packet->opcode & 0x1fu,
    };
    responder->msn = (responder->msn + 1) & ROCE_24_BITS;
    return resource;
}

/* Forgets entries that lie half of all PSNs behind the next expected PSN: their duplicates would be
 * taken for new requests. */
static void forget_ancient(struct rc_responder *responder, uint32_t packets)
{
    while (responder->kept != 0) {
        const struct rc_resource *oldest = resource_at(responder, oldest_at(responder));
        const struct psn end = psn_after(oldest->first, oldest->packets);
        if (oldest->state != RC_RESOURCE_DONE ||
            psn_count(end, responder->expected) + packets < PSN_HALF) {
            return;
        }
        forget_oldest(responder);
    }
}

static struct rc_resource *accept_read(struct rc_responder *responder,
                                       const struct roce_packet *packet)
{
    CHECK(psn_equal(psn_of(packet->psn), responder->expected));
    const uint32_t packets = packets_of(packet->reth.bytes, responder->incoming.mtu_bytes);
    forget_ancient(responder, packets);
    struct rc_resource *resource = add_resource(responder, packet);
    resource->packets = packets;
    resource->until = packets;
    resource->address = packet->reth.address;
    resource->key = packet->reth.key;
    resource->bytes = packet->reth.bytes;
    const bool named = roce_opcode(packet->opcode)->traits & ROCE_HAS_XRCETH;
    resource->srqn = named ? packet->xrc.srqn & ROCE_24_BITS : 0u;
    resource->state = RC_RESOURCE_READY;
    move_on(responder, resource->packets);
    settle(responder);
    return resource;
}

void rc_responder_accept_read(struct rc_responder *responder, const struct roce_packet *packet)
{
    INVARIANTS(rc_responder_check(responder));
    (void)accept_read(responder, packet);
    INVARIANTS(rc_responder_check(responder));
}

void rc_responder_accept_fetched(struct rc_responder *responder, const struct roce_packet *packet)
{
    INVARIANTS(rc_responder_check(responder));
    struct rc_resource *resource = accept_read(responder, packet);
    resource->state = RC_RESOURCE_DONE;
    resource->answered = true;
    resource->sent = resource->packets;
    responder->due--;
    skip_done(responder);
    INVARIANTS(rc_responder_check(responder));
}

void rc_responder_accept_atomic(struct rc_responder *responder, const struct roce_packet *packet)
{
    INVARIANTS(rc_responder_check(responder));
    CHECK(psn_equal(psn_of(packet->psn), responder->expected));
    struct rc_resource *resource = add_resource(responder, packet);
    resource->state = RC_RESOURCE_WAITING;
    move_on(responder, 1);
    INVARIANTS(rc_responder_check(responder));
}

void rc_responder_on_atomic(struct rc_responder *responder, struct psn psn, uint64_t original)
{
    INVARIANTS(rc_responder_check(responder));
    struct rc_resource *resource = resource_of(responder, psn);
    if (resource == NULL || resource->state != RC_RESOURCE_WAITING) {
        /* An earlier request was refused meanwhile, and no request behind it is answered. */
        CHECK(responder->stream == RC_STREAM_IN_GAP);
        return;
    }
    resource->original = original;
    resource->state = RC_RESOURCE_READY;
    if (psn_distance(responder->moved, psn) >= 0) {
        responder->moved = psn_after(psn, 1);
        settle(responder);
    }
    INVARIANTS(rc_responder_check(responder));
}

void rc_responder_replay(struct rc_responder *responder, struct psn psn)
{
    INVARIANTS(rc_responder_check(responder));
    if (responder->msn == 0 && responder->stream == RC_STREAM_IN_ORDER) {
        responder->dropped = psn;
    }
    /* Never hide a pending NAK behind an ACK: the requester would wait for its timer. */
    if (responder->pending == RC_REPLY_NONE) {
        responder->pending = RC_REPLY_ACK;
        responder->pending_psn = psn_before(responder->moved, 1);
    }
    INVARIANTS(rc_responder_check(responder));
}

void rc_responder_replay_response(struct rc_responder *responder, const struct roce_packet *packet)
{
    INVARIANTS(rc_responder_check(responder));
    uint32_t position = 0;
    struct rc_resource *resource = find_resource(responder, psn_of(packet->psn), &position);
    CHECK(resource != NULL);
    if (resource->state == RC_RESOURCE_WAITING) {
        return; /* It is answered for the first time yet. */
    }
    if (responder->end - position > responder->due_within) {
        responder->due_within = (uint8_t)(responder->end - position);
    }
    if (resource->state == RC_RESOURCE_DONE) {
        responder->due++;
    }
    resource->state = RC_RESOURCE_READY;
    resource->begun = (uint32_t)psn_distance(resource->first, psn_of(packet->psn));
    resource->sent = resource->begun;
    if (resource->operation == ROCE_READ_REQUEST) {
        resource->until =
            resource->begun + packets_of(packet->reth.bytes, responder->incoming.mtu_bytes);
    }
    INVARIANTS(rc_responder_check(responder));
}

bool rc_responder_waits(const struct rc_responder *responder, struct psn first, struct psn *came)
{
    /* One that found no receive came with the right one. */
    const bool refused =
        responder->stream == RC_STREAM_IN_GAP && responder->syndrome != ROCE_NAK_PSN_SEQUENCE;
    *came = responder->dropped;
    return responder->msn == 0 && !refused && psn_distance(responder->expected, first) == 0 &&
           psn_distance(responder->dropped, first) != 0;
}

void rc_responder_report_gap(struct rc_responder *responder, struct psn psn)
{
    INVARIANTS(rc_responder_check(responder));
    responder->dropped = psn;
    owe_sequence_nak(responder);
    INVARIANTS(rc_responder_check(responder));
}

void rc_responder_pass_over(struct rc_responder *responder, struct psn psn)
{
    INVARIANTS(rc_responder_check(responder));
    if (psn_distance(responder->dropped, psn) > 0) {
        responder->dropped = psn;
    }
    INVARIANTS(rc_responder_check(responder));
}

/* A refused request, and those behind it, get no other answer: the NAK would wait for that. */
static void drop_responses(struct rc_responder *responder, struct psn psn)
{
    for (uint32_t at = oldest_at(responder); at != responder->end; at++) {
        struct rc_resource *resource = resource_at(responder, at);
        if (resource->state != RC_RESOURCE_DONE &&
            psn_before_end(psn, next_response_psn(resource), resource->until - resource->sent)) {
            resource->state = RC_RESOURCE_DONE;
            resource->answered = true;
            responder->due--;
        }
    }
    skip_done(responder);
}

void rc_responder_refuse(struct rc_responder *responder, struct psn psn, uint8_t syndrome)
{
    INVARIANTS(rc_responder_check(responder));
    drop_responses(responder, psn);
    if (responder->stream == RC_STREAM_IN_ORDER) {
        responder->dropped = responder->expected;
    }
    responder->stream = RC_STREAM_IN_GAP;
    responder->pending = RC_REPLY_NAK;
    responder->syndrome = syndrome;
    responder->pending_psn = psn;
    INVARIANTS(rc_responder_check(responder));
}

/* The oldest entry that still has responses to send; NULL if none. */
static struct rc_resource *first_due(const struct rc_responder *responder)
{
    if (responder->due == 0) {
        return NULL;
    }
    for (uint32_t at = due_from(responder); at != responder->end; at++) {
        struct rc_resource *resource = resource_at(responder, at);
        if (resource->state != RC_RESOURCE_DONE) {
            return resource;
        }
    }
    UNREACHABLE("a count of due responses without one");
}

/* A response may be pulled when it is ready and every move before it is done: a READ behind a WRITE
 * returns the written bytes. */
static bool response_ready(const struct rc_responder *responder, const struct rc_resource *resource)
{
    return resource->state == RC_RESOURCE_READY &&
           psn_count(next_response_psn(resource), responder->moved) <= PSN_HALF;
}

/* An acknowledgement must not overtake the response of an earlier request, which it would declare
 * lost (9.7.5.1.2); nor may a NAK overtake earlier memory moves, which it declares done. */
static bool pending_ready(const struct rc_responder *responder, const struct rc_resource *due)
{
    if (responder->pending == RC_REPLY_NONE ||
        (due != NULL && psn_count(next_response_psn(due), responder->pending_psn) <= PSN_HALF)) {
        return false;
    }
    return responder->pending == RC_REPLY_ACK ||
           psn_count(responder->pending_psn, responder->moved) <= PSN_HALF;
}

bool rc_responder_ready(const struct rc_responder *responder)
{
    if (responder->due == 0) {
        return responder->pending == RC_REPLY_ACK || pending_ready(responder, NULL);
    }
    const struct rc_resource *due = first_due(responder);
    return pending_ready(responder, due) || (due != NULL && response_ready(responder, due));
}

bool rc_responder_next_is_data(const struct rc_responder *responder)
{
    const struct rc_resource *due = first_due(responder);
    return !pending_ready(responder, due) && due != NULL && response_ready(responder, due) &&
           due->operation == ROCE_READ_REQUEST;
}

static enum roce_operation response_operation(bool first, bool last)
{
    if (first) {
        return last ? ROCE_READ_RESPONSE_ONLY : ROCE_READ_RESPONSE_FIRST;
    }
    return last ? ROCE_READ_RESPONSE_LAST : ROCE_READ_RESPONSE_MIDDLE;
}

static struct rc_reply next_response(struct rc_responder *responder, struct rc_resource *resource,
                                     uint8_t credits)
{
    struct rc_reply reply = {
        .kind = RC_REPLY_ATOMIC,
        .psn = psn_after(resource->first, resource->sent),
        .syndrome = (uint8_t)(ROCE_AETH_ACK | credits),
        .msn = responder->msn,
        .resource = resource,
    };
    const bool last = resource->sent + 1 == resource->until;
    if (resource->operation == ROCE_READ_REQUEST) {
        const uint32_t offset = resource->sent * responder->incoming.mtu_bytes;
        reply.kind = RC_REPLY_READ_RESPONSE;
        reply.offset = offset;
        const uint32_t left = resource->bytes - offset;
        reply.bytes = left < responder->incoming.mtu_bytes ? left : responder->incoming.mtu_bytes;
        /* A resent READ starts with FIRST again, also in the middle. */
        reply.operation = response_operation(resource->sent == resource->begun, last);
    }
    resource->sent++;
    if (last) {
        resource->state = RC_RESOURCE_DONE;
        resource->answered = true;
        responder->due--;
        skip_done(responder);
    }
    return reply;
}

static struct rc_reply next_reply(struct rc_responder *responder, uint8_t credits)
{
    struct rc_resource *due = first_due(responder);
    if (pending_ready(responder, due)) {
        const enum rc_reply_kind kind = responder->pending;
        responder->pending = RC_REPLY_NONE;
        return (struct rc_reply){
            .kind = kind,
            .psn = responder->pending_psn,
            .syndrome =
                kind == RC_REPLY_NAK ? responder->syndrome : (uint8_t)(ROCE_AETH_ACK | credits),
            .msn = responder->msn,
        };
    }
    if (due != NULL && response_ready(responder, due)) {
        return next_response(responder, due, credits);
    }
    return (struct rc_reply){.kind = RC_REPLY_NONE};
}

bool rc_responder_owes_ack(const struct rc_responder *responder)
{
    return responder->due == 0 && responder->pending == RC_REPLY_ACK;
}

bool rc_responder_owes_other(const struct rc_responder *responder)
{
    return responder->due != 0 || responder->pending == RC_REPLY_NAK;
}

/* The long way comes to the same. */
static void check_ack(const struct rc_responder *responder)
{
    struct rc_responder replied = *responder;
    const struct rc_reply reply = next_reply(&replied, 0);
    CHECK(reply.kind == RC_REPLY_ACK && psn_equal(reply.psn, responder->pending_psn));
    CHECK(reply.msn == responder->msn);
    replied.pending = RC_REPLY_ACK;
    CHECK(memcmp(&replied, responder, sizeof(replied)) == 0);
}

struct psn rc_responder_next_ack(struct rc_responder *responder)
{
    INVARIANTS(check_ack(responder));
    responder->pending = RC_REPLY_NONE;
    return responder->pending_psn;
}

struct rc_reply rc_responder_next_reply(struct rc_responder *responder, uint8_t credits)
{
    INVARIANTS(rc_responder_check(responder));
    const struct rc_reply reply = next_reply(responder, credits);
    INVARIANTS(rc_responder_check(responder));
    return reply;
}
