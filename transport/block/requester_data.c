/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester_data - data of READs, and results of atomics, that have come.
 *
 * Each position is taken once. Data show that their request, and all before it, was executed.
 */
#include "transport/block/requester_blocks.h"

static struct block_progress plain(enum block_requester_verdict verdict)
{
    return (struct block_progress){verdict, NULL, 0};
}

/* Is no request before the refused one still waiting for data? Then its turn has come. */
void block_settle_refusal(struct block_requester *requester, const struct send_queue *queue)
{
    if (LIKELY(requester->mode != BLOCK_REQUESTER_REFUSED)) {
        return;
    }
    if (requester->oldest == requester->next ||
        block_at(requester, requester->oldest)->work - queue->head >=
            requester->refused - queue->head) {
        block_stop(requester);
    }
}

/* Requests before it end as they would. */
static struct block_progress bad(struct block_requester *requester, const struct send_queue *queue,
                                 enum block_requester_verdict verdict, uint32_t bn,
                                 struct instant now)
{
    const struct block_progress ends =
        block_end_request(requester, queue, bn, COMPLETION_BAD_RESPONSE, now);
    return (struct block_progress){verdict, ends.work, 0};
}

/* How long later data may overtake others. */
static uint64_t reordering_ns(const struct block_requester *requester)
{
    const uint64_t quarter = rtt_least_ns(&paths_at(&requester->paths, 0)->rtt) / 4;
    const uint64_t least = requester->policy->reordering_least_ns;
    return quarter > least ? quarter : least;
}

/* Data of this position left behind those of all lower ones that were asked for with it. */
static void note_gap(struct block_requester *requester, uint32_t bn,
                     const struct block_packet *packet, struct instant now)
{
    struct block_sending *block = block_at(requester, bn);
    const uint64_t lower = (UINT64_C(1) << packet->position) - 1;
    if (!block->data_missed && packet->round == block->round &&
        (block->sent & ~block->arrived & lower) != 0) {
        block->data_missed = true;
        block->due = instant_after(now, reordering_ns(requester));
        block_note_missing(requester, bn);
    }
}

/* READs that come in ask for more at a time, up to all they want. */
static void grow_reads(struct block_requester *requester, uint32_t bytes)
{
    if (requester->read_window == 0) {
        return;
    }
    requester->read_window += bytes / 4;
    if (requester->read_window > requester->blocks_read_max * BLOCK_POSITIONS *
                                     (requester->mtu_bytes + requester->packet_cost)) {
        requester->read_window = 0;
    }
}

/* Is the request of the block one that nobody waits for any more? */
static bool is_given_up(const struct block_requester *requester, const struct send_queue *queue,
                        const struct block_sending *block)
{
    return requester->mode == BLOCK_REQUESTER_REFUSED &&
           block->work - queue->head >= requester->refused - queue->head;
}

static void take_data(struct block_requester *requester, struct send_queue *queue, uint32_t bn,
                      const struct block_packet *packet, struct instant now)
{
    struct block_sending *block = block_at(requester, bn);
    struct work *work = block_work(queue, block);
    const uint64_t bit = UINT64_C(1) << packet->position;
    const uint32_t cost = block_cost_of(requester, work, packet->index, bit);
    block->arrived |= bit;
    work->awaited--;
    work->moves_pending++;
    requester->read_flight -= cost;
    requester->data_at = now;
    requester->read_silences = 0;
    grow_reads(requester, cost);
    if (requester->resending == bn) {
        requester->resend_left &= ~bit;
    }
    note_gap(requester, bn, packet, now);
    if (block_has_data(block)) {
        block_note_found(requester, bn);
        if (work->kind == WORK_READ) {
            requester->blocks_read--;
        }
    }
    /* The answer shows that the request was executed. */
    if (!block_is_executed(requester, bn)) {
        block_advance(requester, queue, bn + 1, now);
    }
    block_settle(requester);
    block_note_progress(requester, now);
    block_settle_refusal(requester, queue);
}

static struct block_progress on_data(struct block_requester *requester, struct send_queue *queue,
                                     const struct block_packet *packet, struct instant now)
{
    const uint32_t bn = packet->number;
    if (requester->mode == BLOCK_REQUESTER_STOPPED || block_number_before(bn, requester->oldest)) {
        return plain(BLOCK_STALE);
    }
    if (!block_within(bn, requester->oldest, requester->next)) {
        return plain(BLOCK_IMPOSSIBLE);
    }
    const struct block_sending *block = block_at(requester, bn);
    const uint64_t bit = UINT64_C(1) << packet->position;
    if (!block->wants_data || (block->sent & bit) == 0 ||
        block_number_before(block_base_limit(requester), bn)) {
        return plain(BLOCK_IMPOSSIBLE);
    }
    if ((block->arrived & bit) != 0 || is_given_up(requester, queue, block)) {
        return plain(BLOCK_STALE);
    }
    struct work *work = block_work(queue, block);
    const bool last_block = bn + 1 == work_blocks_end(work);
    if (packet->index != bn - work->first_block || packet->last_position != block->last ||
        packet->last_block != last_block) {
        return bad(requester, queue, BLOCK_BAD_ORDER, bn, now);
    }
    const uint32_t offset =
        (packet->index * BLOCK_POSITIONS + packet->position) * requester->mtu_bytes;
    const uint32_t left =
        work_is_atomic(work) ? (work_wants_data(work) ? 8 : 0) : work->bytes - offset;
    if (packet->payload_bytes != (left < requester->mtu_bytes ? left : requester->mtu_bytes)) {
        return bad(requester, queue, BLOCK_BAD_LENGTH, bn, now);
    }
    take_data(requester, queue, bn, packet, now);
    return (struct block_progress){BLOCK_DATA_COMES, work, offset};
}

struct block_progress block_requester_on_data(struct block_requester *requester,
                                              struct send_queue *queue,
                                              const struct block_packet *packet, struct instant now)
{
    INVARIANTS(block_requester_check(requester, queue));
    const struct block_progress progress = on_data(requester, queue, packet, now);
    INVARIANTS(block_requester_check(requester, queue));
    return progress;
}

void block_requester_on_moved(struct block_requester *requester, struct work *work)
{
    CHECK(work->moves_pending > 0);
    work->moves_pending--;
    if (work->moves_pending == 0 && work->awaited == 0) {
        CHECK(requester->reads_out > 0);
        requester->reads_out--;
    }
}
