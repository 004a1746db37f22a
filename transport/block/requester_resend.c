/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester_resend - positions of blocks that leave again: which ones, when, and on which path.
 *
 * A position is missing if the newest report of its block says so. It is lost if that report was
 * made after something had come that left no earlier on the same path, and a late packet would have
 * come by now. Data are lost if some that left later have come, or none for long.
 */
#include "transport/block/requester_blocks.h"

/* The first pause for want of a context, doubled up to the last. */
#define PAUSE_NS      UINT64_C(20000)
#define PAUSE_MOST_NS UINT64_C(10000000)

/* A READ window holds at least this many packets, however many are lost. */
#define READ_PACKETS_LEAST 16

uint32_t block_next_missing(const struct block_requester *requester, uint32_t from)
{
    uint32_t bn = from;
    while (bn != requester->next) {
        const uint32_t slot = bn & requester->mask;
        const uint64_t word = requester->missing[slot / 64] >> slot % 64;
        const uint32_t left = requester->next - bn;
        const uint32_t in_word = 64 - slot % 64;
        if (word != 0) {
            const uint32_t ahead = (uint32_t)__builtin_ctzll(word);
            return ahead < left ? bn + ahead : requester->next;
        }
        bn = left < in_word ? requester->next : bn + in_word;
    }
    return bn;
}

uint64_t block_data_patience_ns(const struct block_requester *requester)
{
    return rtt_pto_ns(&paths_at(&requester->paths, 0)->rtt, &requester->policy->rtt,
                      requester->read_silences);
}

static uint64_t pause_ns(uint8_t pauses)
{
    const uint64_t ns = pauses < 10 ? PAUSE_NS << pauses : PAUSE_MOST_NS;
    return ns < PAUSE_MOST_NS ? ns : PAUSE_MOST_NS;
}

/* When the missing positions of a block may be taken for lost. */
static struct instant loss_at(const struct block_requester *requester,
                              const struct block_sending *block)
{
    if (!block->echoed) {
        return INSTANT_NEVER;
    }
    const struct path *path = paths_at(&requester->paths, block->path);
    const bool newest_came = psn_equal(path->arrived, block->newest);
    /* The newest packet itself came, but was not kept: the packet before it decides. */
    const struct instant at =
        path_loss_deadline(path, newest_came ? psn_before(block->newest, 1) : block->newest);
    return newest_came && at.ns == UINT64_MAX ? (struct instant){0} : at;
}

/* When data are asked for again: a while after the last data that came, unless these show that
 * others were lost. */
static struct instant data_due(const struct block_requester *requester,
                               const struct block_sending *block)
{
    const struct instant patience =
        instant_after(requester->data_at, block_data_patience_ns(requester));
    return block->data_missed || !instant_before(block->due, patience) ? block->due : patience;
}

/* May a declined block go again? Yes, once base has come to its message. A WRITE that found no room
 * to wait for its turn may also go earlier, behind the last block that it waits for: one block
 * after the other would take a round trip each. But base must have come half the way since, or the
 * block would be sent and declined without end. */
static bool declined_is_due(const struct block_requester *requester,
                            const struct block_sending *block, const struct work *work, bool first)
{
    const bool turn = !block_number_before(requester->base, work->first_block);
    const bool waits = first && !block->early && work_is(work, WORK_IS_WRITE) &&
                       !block_number_before(requester->base, block->again_from);
    return (turn || waits) && block->echoed;
}

/* When a block goes again; INSTANT_NEVER: not before news. `first`: no block before it is to go
 * again. */
static struct instant due_at(const struct block_requester *requester,
                             const struct send_queue *queue, uint32_t bn, bool first)
{
    const struct block_sending *block = block_at(requester, bn);
    const struct work *work = block_work(queue, block);
    if (requester->mode == BLOCK_REQUESTER_REFUSED &&
        (!block->wants_data || block->work - queue->head >= requester->refused - queue->head)) {
        return INSTANT_NEVER;
    }
    if (block_is_executed(requester, bn)) {
        return data_due(requester, block);
    }
    switch ((enum block_sending_state)block->state) {
    case BLOCK_SENDING_QUIET: return INSTANT_NEVER;
    case BLOCK_SENDING_INCOMPLETE: return loss_at(requester, block);
    case BLOCK_SENDING_NO_CONTEXT: return block->echoed ? block->due : INSTANT_NEVER;
    case BLOCK_SENDING_ORDER:
        return declined_is_due(requester, block, work, first) ? (struct instant){0} : INSTANT_NEVER;
    case BLOCK_SENDING_DUE: return (struct instant){0};
    }
    UNREACHABLE("a block's state outside its enum");
}

bool block_resend_path(struct block_requester *requester, struct block_sending *block,
                       struct instant now)
{
    const uint8_t path = paths_choose(&requester->paths, true, now);
    if (path == PATH_NONE) {
        return false;
    }
    block->path = path;
    return true;
}

static void note_loss(struct block_requester *requester, const struct block_sending *block,
                      uint32_t bytes, struct instant now)
{
    requester->lost_at[block->path] = now;
    path_on_lost(paths_at(&requester->paths, block->path), bytes, now);
}

/* From now on READs ask for half as much. */
static void shrink_reads(struct block_requester *requester)
{
    const uint32_t least = READ_PACKETS_LEAST * (requester->mtu_bytes + requester->packet_cost);
    const uint32_t half = requester->read_flight / 2;
    requester->read_window = half < least ? least : half;
}

static void begin(struct block_requester *requester, const struct send_queue *queue, uint32_t bn,
                  struct instant now)
{
    struct block_sending *block = block_at(requester, bn);
    const struct work *work = block_work(queue, block);
    requester->resending = bn;
    requester->resend_left = block->sent & ~block->arrived;
    const uint32_t bytes =
        block_cost_of(requester, work, bn - work->first_block, requester->resend_left);
    if (block_is_executed(requester, bn)) {
        shrink_reads(requester);
        if (!block->data_missed && requester->read_silences < 6) {
            requester->read_silences++;
        }
        block->data_missed = false;
    } else if (block->state == BLOCK_SENDING_INCOMPLETE) {
        note_loss(requester, block, block->wants_data ? requester->packet_cost : bytes, now);
    }
    if (block->state == BLOCK_SENDING_ORDER && block_number_before(requester->base, bn)) {
        block->again_from = requester->base + (bn - requester->base + 1) / 2;
    }
    block->pauses = block->state == BLOCK_SENDING_NO_CONTEXT
                        ? (uint8_t)(block->pauses + (block->pauses < 16))
                        : 0;
    block->state = BLOCK_SENDING_QUIET;
    block->round++;
    if (!block->wants_data) {
        block_note_found(requester, bn);
    }
}

void block_resend_begin(struct block_requester *requester, const struct send_queue *queue,
                        struct instant now)
{
    struct instant earliest = INSTANT_NEVER;
    bool first = true;
    for (uint32_t bn = block_next_missing(requester, requester->oldest); bn != requester->next;
         bn = block_next_missing(requester, bn + 1)) {
        const struct instant at = due_at(requester, queue, bn, first);
        const struct block_sending *block = block_at(requester, bn);
        if (instant_reached(now, at) && (block->sent & ~block->arrived) != 0) {
            begin(requester, queue, bn, now);
            requester->resend_at = (struct instant){0};
            return;
        }
        if (instant_before(at, earliest) && instant_before(now, at)) {
            earliest = at;
        }
        first = first && block->wants_data;
    }
    requester->resend_at = earliest;
}

/* A block that was to go again, and has not, is due as before. */
static void put_back(struct block_requester *requester, uint32_t bn, struct instant now)
{
    struct block_sending *block = block_at(requester, bn);
    requester->resend_left = 0;
    if (block_is_executed(requester, bn)) {
        block->data_missed = true;
        block->due = now;
    } else {
        block->state = BLOCK_SENDING_DUE;
    }
    block_note_missing(requester, bn);
}

void block_resend_give_way(struct block_requester *requester, const struct send_queue *queue,
                           struct instant now)
{
    const uint32_t waiting = requester->resending;
    bool first = true;
    for (uint32_t bn = block_next_missing(requester, requester->oldest);
         bn != requester->next && block_number_before(bn, waiting);
         bn = block_next_missing(requester, bn + 1)) {
        const struct block_sending *block = block_at(requester, bn);
        if (instant_reached(now, due_at(requester, queue, bn, first)) &&
            (block->sent & ~block->arrived) != 0) {
            put_back(requester, waiting, now);
            begin(requester, queue, bn, now);
            return;
        }
        first = first && block->wants_data;
    }
}

void block_resend_path_left(struct block_requester *requester, uint8_t path)
{
    for (uint32_t bn = requester->base; bn != requester->next; bn++) {
        struct block_sending *block = block_at(requester, bn);
        if (block->path == path && (block->sent & ~block->arrived) != 0) {
            block->state = BLOCK_SENDING_DUE;
            block_note_missing(requester, bn);
        }
    }
}

/* The pause for want of a context, from a report on. */
static void pause_block(struct block_sending *block, struct instant now)
{
    block->due = instant_after(now, pause_ns(block->pauses));
}

void block_resend_reported(struct block_requester *requester, uint32_t bn,
                           const struct block_record *record, struct instant now)
{
    struct block_sending *block = block_at(requester, bn);
    const struct path *path = paths_at(&requester->paths, block->path);
    /* A path that was left may never echo anything again. */
    block->echoed =
        path->suspect || (path->arrived_known && psn_distance(block->newest, path->arrived) >= 0);
    switch ((enum block_state)record->state) {
    case BLOCK_STATE_NO_CONTEXT:
        block->state = BLOCK_SENDING_NO_CONTEXT;
        if (block->echoed) {
            pause_block(block, now);
        }
        break;
    case BLOCK_STATE_ORDER:
        block->state = BLOCK_SENDING_ORDER;
        requester->declined = true;
        break;
    case BLOCK_STATE_RUN:
    case BLOCK_STATE_INCOMPLETE: block->state = BLOCK_SENDING_INCOMPLETE; break;
    case BLOCK_STATE_REFUSED:
    case BLOCK_STATE_COUNT: return;
    }
    if (requester->resend_left != 0 && requester->resending == bn) {
        /* It is on its way again already. */
        requester->resend_left &= ~block->arrived;
        block->state = BLOCK_SENDING_QUIET;
        return;
    }
    block_note_missing(requester, bn);
}
