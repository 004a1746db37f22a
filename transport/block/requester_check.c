/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester_check - invariants of a requester between two calls; walks through all blocks under
 * way.
 */
#include "transport/block/requester_blocks.h"

static bool is_open(const struct block_requester *requester, uint32_t bn)
{
    for (uint32_t path = 0; path < requester->paths.count; path++) {
        if ((requester->open >> path & 1) != 0 && requester->open_block[path] == bn) {
            return true;
        }
    }
    return false;
}

static void check_block(const struct block_requester *requester, const struct send_queue *queue,
                        uint32_t bn)
{
    const struct block_sending *block = block_at(requester, bn);
    const uint64_t all = block_positions(block->last);
    CHECK((block->sent & ~all) == 0 && (block->arrived & ~block->sent) == 0);
    CHECK(block->sent != 0 && (block->sent & (block->sent + 1)) == 0);
    CHECK(block->sent == all || is_open(requester, bn));
    CHECK(block->path < requester->paths.count);
    if (block->wants_data ? block_has_data(block) : block_is_executed(requester, bn)) {
        CHECK(!block_is_missing(requester, bn));
        return; /* Its request may be gone already. */
    }
    CHECK(block->work - queue->head < queue->tail - queue->head);
    const struct work *work = block_work(queue, block);
    CHECK(work->started && block_within(bn, work->first_block, work_blocks_end(work)));
    CHECK(block->wants_data == work_wants_response(work));
    CHECK(block->state == BLOCK_SENDING_QUIET || block_is_missing(requester, bn));
    CHECK(!block->wants_data || block_is_missing(requester, bn));
}

static void check_open(const struct block_requester *requester)
{
    for (uint32_t path = 0; path < requester->paths.count; path++) {
        if ((requester->open >> path & 1) != 0) {
            const uint32_t bn = requester->open_block[path];
            CHECK(block_within(bn, requester->oldest, requester->next));
            CHECK(block_at(requester, bn)->path == path);
            CHECK(!block_is_sent(block_at(requester, bn)));
        }
    }
}

static void check_blocks(const struct block_requester *requester, const struct send_queue *queue)
{
    uint32_t reads = 0;
    check_open(requester);
    for (uint32_t bn = requester->oldest; bn != requester->next; bn++) {
        const struct block_sending *block = block_at(requester, bn);
        check_block(requester, queue, bn);
        reads += block->wants_data && !block_has_data(block) &&
                 block_work(queue, block)->kind == WORK_READ;
    }
    CHECK(reads == requester->blocks_read);
    CHECK(requester->blocks_read <= requester->blocks_read_max);
}

static void check_resending(const struct block_requester *requester)
{
    if (requester->resend_left == 0) {
        return;
    }
    const struct block_sending *block = block_at(requester, requester->resending);
    CHECK(block_within(requester->resending, requester->oldest, requester->next));
    CHECK(block->wants_data || !block_is_executed(requester, requester->resending));
    CHECK((requester->resend_left & ~block->sent) == 0);
    CHECK((requester->resend_left & block->arrived) == 0);
}

void block_requester_check(const struct block_requester *requester, const struct send_queue *queue)
{
    const uint32_t under_way = requester->next - requester->oldest;
    CHECK(under_way <= requester->window && requester->window <= requester->mask + 1);
    CHECK(requester->base - requester->oldest <= under_way);
    CHECK(queue->next - queue->head <= queue->tail - queue->head);
    CHECK(requester->retries_left <= requester->retry_limit);
    CHECK(requester->rnr_left <= requester->rnr_limit);
    CHECK((requester->mode == BLOCK_REQUESTER_PAUSING) == (requester->resume_at.ns != UINT64_MAX));
    if (requester->mode == BLOCK_REQUESTER_STOPPED) {
        CHECK(requester->retry_at.ns == UINT64_MAX);
        return; /* Its requests are being flushed. */
    }
    CHECK(requester->retry_at.ns != UINT64_MAX || requester->timeout_code == 0 ||
          requester->mode == BLOCK_REQUESTER_PAUSING || requester->oldest == requester->next);
    check_blocks(requester, queue);
    check_resending(requester);
}
