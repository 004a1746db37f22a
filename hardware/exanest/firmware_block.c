/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A block: its stores, its response, and its repair if none comes or a bad one.
 */
#include "hardware/exanest/firmware_internal.h"

#define DOUBLINGS_MAX 20u /* The most doublings of a waiting time. */
#define UNREAD_MAX    64u /* The responses that the mailbox holds. */

/* The notification goes with the last block alone. */
static bool is_marked(struct exanest_firmware *firmware, const struct exanest_firmware_block *block)
{
    const struct exanest_firmware_transfer *transfer =
        exanest_firmware_transfer_of(firmware, block);
    return transfer->notify && block->offset + block->bytes == transfer->bytes;
}

static void count_retransmission(struct exanest_firmware_transfer *transfer)
{
    if (transfer->retransmissions < UINT16_MAX) {
        transfer->retransmissions++;
    }
}

static void release(struct exanest_firmware *firmware, uint32_t tid)
{
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    exanest_timers_cancel(&firmware->timers, tid);
    block->state = EXANEST_TID_FREE;
    block->cause = EXANEST_CAUSE_NONE;
    block->missing = 0;
    firmware->free[(firmware->free_head + firmware->free_count) % EXANEST_TIDS] = (uint16_t)tid;
    firmware->free_count++;
    exanest_firmware_block_gone(firmware, block->channel);
}

/* -- Stores -------------------------------------------------------------------------------------*/

/* W4 is stored if it differs from what the descriptor holds, and before W3, which starts the block
 * (5.3.1.1). */
void exanest_firmware_begin_stores(struct exanest_firmware *firmware, uint32_t tid,
                                   uint16_t sequence, uint8_t path, uint32_t from, uint32_t to)
{
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    const struct exanest_firmware_transfer *transfer =
        exanest_firmware_transfer_of(firmware, block);
    const bool renews = sequence != block->sequence || path != block->path;
    struct exanest_target target = exanest_target_decode(transfer->target);
    target.va += block->offset + from;
    block->sequence = sequence;
    block->path = path;
    block->state = EXANEST_TID_ARMED;
    block->cause = EXANEST_CAUSE_NONE;
    const struct exanest_descriptor descriptor = {
        .source = transfer->source + block->offset + from,
        .target = target,
        .notify = is_marked(firmware, block),
        .no_first = from != 0,
        .no_last = to != block->bytes,
        .bytes = (uint16_t)(to - from),
        .pdid = firmware->pdid[exanest_channel_page(block->channel)],
        .sequence = sequence,
        .path = path,
    };
    exanest_descriptor_encode(&descriptor, firmware->words);
    firmware->work_ns += firmware->config.costs.build;
    firmware->job = EXANEST_JOB_STORE;
    firmware->piece = to - from != block->bytes;
    firmware->stage = renews ? EXANEST_STAGE_W4 : EXANEST_STAGE_W1;
    firmware->job_tid = (uint16_t)tid;
}

static void store_whole(struct exanest_firmware *firmware, uint32_t tid, uint16_t sequence,
                        uint8_t path)
{
    exanest_firmware_begin_stores(firmware, tid, sequence, path, 0, firmware->blocks[tid].bytes);
}

static uint8_t path_of(const struct exanest_firmware *firmware,
                       const struct exanest_firmware_transfer *transfer, uint32_t offset)
{
    if (firmware->config.path_policy == EXANEST_PATH_OF_TRANSFER) {
        return transfer->path;
    }
    const uint64_t va = exanest_target_decode(transfer->target).va;
    const uint64_t lines = (va + offset) / EXANEST_BLOCK_BYTES_MAX - va / EXANEST_BLOCK_BYTES_MAX;
    return (uint8_t)((transfer->path + lines) % firmware->config.paths);
}

void exanest_firmware_issue(struct exanest_firmware *firmware)
{
    const uint32_t channel = exanest_firmware_take_listed(firmware);
    struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    const uint32_t tid = firmware->free[firmware->free_head];
    firmware->free_head = (uint16_t)((firmware->free_head + 1) % EXANEST_TIDS);
    firmware->free_count--;
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    block->offset = transfer->cut;
    block->bytes = (uint16_t)exanest_firmware_next_bytes(firmware, channel);
    block->channel = (uint16_t)channel;
    block->retries = 0;
    block->decode_errors = 0;
    block->waits = 0;
    block->unsent = false;
    block->unread = false;
    transfer->cut += block->bytes;
    transfer->outstanding++;
    firmware->counters.blocks++;
    firmware->counters.bytes += block->bytes;
    firmware->work_ns += firmware->config.costs.segment;
    const uint16_t sequence = firmware->config.sequences == EXANEST_STRICT
                                  ? 0
                                  : (uint16_t)((block->sequence + 1u) % EXANEST_SEQUENCES);
    store_whole(firmware, tid, sequence, path_of(firmware, transfer, block->offset));
    exanest_firmware_list(firmware, channel);
}

void exanest_firmware_store_next(const struct exanest_firmware *firmware,
                                 struct exanest_firmware_action *action)
{
    static const uint8_t word_of[] = {[EXANEST_STAGE_W4] = 3,
                                      [EXANEST_STAGE_W1] = 0,
                                      [EXANEST_STAGE_W2] = 1,
                                      [EXANEST_STAGE_W3] = 2};
    const struct exanest_firmware_block *block = &firmware->blocks[firmware->job_tid];
    const struct exanest_firmware_transfer *transfer = &firmware->transfers[block->channel];
    action->path = block->path;
    action->control = firmware->stage >= EXANEST_STAGE_CONTROL;
    if (!action->control) {
        action->word = word_of[firmware->stage];
        action->value = firmware->words[action->word];
        return;
    }
    action->word = (uint8_t)(firmware->stage - EXANEST_STAGE_CONTROL);
    action->value = action->word == 0 ? transfer->address : transfer->data[action->word - 1];
}

/* The block is in flight from W3 on; its control packet follows, so that it leaves while memory is
 * being read (5.2). */
void exanest_firmware_stored(struct exanest_firmware *firmware, uint64_t now)
{
    const uint32_t tid = firmware->job_tid;
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    if (firmware->stage >= EXANEST_STAGE_CONTROL) {
        firmware->counters.control_stores++;
    } else {
        firmware->counters.descriptor_stores++;
        firmware->counters.sequence_stores += firmware->stage == EXANEST_STAGE_W4;
    }
    if (firmware->stage == EXANEST_STAGE_W3) {
        const bool more = block->missing != 0;
        block->state = more ? EXANEST_TID_SETTLING : EXANEST_TID_INFLIGHT;
        block->cause = more ? EXANEST_CAUSE_PIECES : EXANEST_CAUSE_NONE;
        exanest_timers_set(
            &firmware->timers, tid,
            now + (more ? firmware->config.descriptor_poll_ns : firmware->config.block_timeout_ns));
    }
    firmware->stage++;
    if (firmware->stage == EXANEST_STAGE_END) {
        firmware->counters.controls++;
        firmware->job = EXANEST_JOB_NONE;
    } else if (firmware->stage == EXANEST_STAGE_CONTROL &&
               (firmware->piece || !is_marked(firmware, block))) {
        firmware->job = EXANEST_JOB_NONE;
    }
}

/* -- Responses ----------------------------------------------------------------------------------*/

static void look(struct exanest_firmware *firmware, uint32_t tid)
{
    firmware->job = EXANEST_JOB_LOOK;
    firmware->job_tid = (uint16_t)tid;
}

/* CAUSE_NONE: no receiver sends this about a block. */
static enum exanest_cause cause_of(const struct exanest_firmware *firmware, uint8_t status)
{
    switch (status) {
    case EXANEST_NACK_PAGE_FAULT: return EXANEST_CAUSE_FAULT;
    case EXANEST_NACK_NO_CONTEXT: return EXANEST_CAUSE_NO_CONTEXT;
    case EXANEST_NACK_CRC: return EXANEST_CAUSE_CRC;
    case EXANEST_NACK_DECODE:
        return firmware->config.decode_is_fault ? EXANEST_CAUSE_FAULT : EXANEST_CAUSE_DECODE;
    default: return EXANEST_CAUSE_NONE;
    }
}

void exanest_firmware_respond(struct exanest_firmware *firmware,
                              const struct exanest_response *response)
{
    struct exanest_firmware_block *block = &firmware->blocks[response->tid];
    const enum exanest_cause cause = cause_of(firmware, response->status);
    if (cause == EXANEST_CAUSE_NONE && response->status != EXANEST_ACK) {
        firmware->counters.malformed++;
        return;
    }
    if (block->state != EXANEST_TID_INFLIGHT || response->sequence != block->sequence) {
        firmware->counters.stale++;
        return;
    }
    if (response->status == EXANEST_ACK) {
        firmware->counters.acks++;
        exanest_firmware_transfer_of(firmware, block)->acked += block->bytes;
        release(firmware, response->tid);
        return;
    }
    firmware->counters.nacks[response->status]++;
    exanest_timers_cancel(&firmware->timers, response->tid);
    block->state = EXANEST_TID_SETTLING;
    block->cause = (uint8_t)cause;
    look(firmware, response->tid);
}

/* -- Repair -------------------------------------------------------------------------------------*/

bool exanest_firmware_retry(struct exanest_firmware *firmware, uint32_t tid, uint32_t bytes)
{
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    struct exanest_firmware_transfer *transfer = exanest_firmware_transfer_of(firmware, block);
    if (block->retries >= firmware->config.retries_max) {
        exanest_firmware_fail(firmware, block->channel, transfer->last_status);
        release(firmware, tid);
        return false;
    }
    block->retries++;
    count_retransmission(transfer);
    firmware->counters.retransmits++;
    firmware->counters.retransmitted_bytes += bytes;
    return true;
}

/* The block can be stored again: its old instance is Done or in Error. */
void exanest_firmware_resend(struct exanest_firmware *firmware, uint32_t tid)
{
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    struct exanest_firmware_transfer *transfer = exanest_firmware_transfer_of(firmware, block);
    const uint32_t limit = firmware->config.retries_max;
    if (transfer->failed || transfer->restarting) {
        release(firmware, tid);
    } else if (firmware->config.resend == EXANEST_RESEND_TRANSFER) {
        if (transfer->retransmissions >= limit) {
            exanest_firmware_fail(firmware, block->channel, transfer->last_status);
        } else {
            count_retransmission(transfer);
            firmware->counters.restarts++;
            transfer->restarting = true;
        }
        release(firmware, tid);
    } else if (exanest_firmware_retry(firmware, tid, block->bytes)) {
        block->missing = 0;
        store_whole(firmware, tid, (uint16_t)((block->sequence + 1u) % EXANEST_SEQUENCES),
                    block->path);
    }
}

/* Twice as long each time. */
static void wait(struct exanest_firmware *firmware, uint32_t tid, enum exanest_tid_state state,
                 uint64_t ns, uint64_t now)
{
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    block->state = (uint8_t)state;
    exanest_timers_set(&firmware->timers, tid, now + (ns << block->waits));
    if (block->waits < DOUBLINGS_MAX) {
        block->waits++;
    }
}

static void back_in_flight(struct exanest_firmware *firmware, uint32_t tid, uint64_t now)
{
    firmware->blocks[tid].cause = EXANEST_CAUSE_NONE;
    exanest_timers_set(&firmware->timers, tid, now + firmware->config.block_timeout_ns);
}

/* A started descriptor must not be changed (5.2). A late one that the send unit has not sent has
 * not been lost: its time begins anew. */
static void not_settled(struct exanest_firmware *firmware, uint32_t tid, uint64_t now)
{
    firmware->counters.not_done++;
    if (firmware->blocks[tid].cause == EXANEST_CAUSE_TIMEOUT) {
        firmware->counters.timeouts_unsent++;
        firmware->blocks[tid].unsent = true;
        back_in_flight(firmware, tid, now);
    } else {
        exanest_timers_set(&firmware->timers, tid, now + firmware->config.descriptor_poll_ns);
    }
}

static uint16_t status_of(uint8_t cause, bool error)
{
    switch ((enum exanest_cause)cause) {
    case EXANEST_CAUSE_FAULT: return EXANEST_NACK_PAGE_FAULT;
    case EXANEST_CAUSE_NO_CONTEXT: return EXANEST_NACK_NO_CONTEXT;
    case EXANEST_CAUSE_CRC: return EXANEST_NACK_CRC;
    case EXANEST_CAUSE_DECODE: return EXANEST_NACK_DECODE;
    case EXANEST_CAUSE_TIMEOUT:
    case EXANEST_CAUSE_MAPPED:
    case EXANEST_CAUSE_PIECES:
        return error ? (uint16_t)EXANEST_LAST_SOURCE_FAULT : (uint16_t)EXANEST_LAST_TIMEOUT;
    case EXANEST_CAUSE_NONE: break;
    }
    UNREACHABLE("cause");
}

static void repair(struct exanest_firmware *firmware, uint32_t tid, bool error, uint64_t now)
{
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    const struct exanest_firmware_config *config = &firmware->config;
    switch ((enum exanest_cause)block->cause) {
    case EXANEST_CAUSE_FAULT:
        wait(firmware, tid, EXANEST_TID_FAULT_WAIT, config->fault_wait_ns, now);
        return;
    case EXANEST_CAUSE_NO_CONTEXT:
        wait(firmware, tid, EXANEST_TID_RETRY_WAIT, config->back_off_ns, now);
        return;
    case EXANEST_CAUSE_DECODE:
        if (block->decode_errors++ >= config->decode_retries_max) {
            exanest_firmware_fail(firmware, block->channel, EXANEST_NACK_DECODE);
        }
        exanest_firmware_resend(firmware, tid);
        return;
    case EXANEST_CAUSE_TIMEOUT: firmware->counters.timeouts++; break;
    case EXANEST_CAUSE_MAPPED: firmware->counters.mapped++; break;
    case EXANEST_CAUSE_CRC:
    case EXANEST_CAUSE_PIECES: break;
    case EXANEST_CAUSE_NONE: UNREACHABLE("cause");
    }
    if (config->resend == EXANEST_RESEND_PACKET && block->cause == EXANEST_CAUSE_TIMEOUT &&
        !error) {
        exanest_firmware_ask_context(firmware, tid);
    } else {
        exanest_firmware_resend(firmware, tid);
    }
}

void exanest_firmware_looked(struct exanest_firmware *firmware, uint64_t w3, uint64_t now)
{
    const uint64_t words[EXANEST_DESCRIPTOR_WORDS] = {0, 0, w3, 0};
    const struct exanest_descriptor descriptor = exanest_descriptor_decode(words);
    const uint32_t tid = firmware->job_tid;
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    struct exanest_firmware_transfer *transfer = exanest_firmware_transfer_of(firmware, block);
    firmware->job = EXANEST_JOB_NONE;
    if (!descriptor.done && !descriptor.error) {
        not_settled(firmware, tid, now);
        return;
    }
    const bool is_fresh = block->unsent && !descriptor.error; /* Sent since, perhaps just now. */
    block->unsent = false;
    block->unread = false;
    if (block->cause == EXANEST_CAUSE_TIMEOUT && is_fresh) {
        firmware->counters.timeouts_unsent++;
        back_in_flight(firmware, tid, now);
        return;
    }
    if (block->cause == EXANEST_CAUSE_MAPPED && !descriptor.error) {
        back_in_flight(firmware, tid, now); /* The event was about an earlier instance. */
        return;
    }
    if (!transfer->failed) {
        transfer->last_status = status_of(block->cause, descriptor.error);
    }
    if (transfer->failed || transfer->restarting) {
        release(firmware, tid);
        return;
    }
    if (block->cause == EXANEST_CAUSE_PIECES && !descriptor.error) {
        exanest_firmware_send_piece(firmware, tid);
        return;
    }
    repair(firmware, tid, descriptor.error, now);
}

/* An answer that came in time can lie behind a mailbox full of others, which are read first. */
static uint64_t mailbox_ns(const struct exanest_firmware *firmware)
{
    const struct exanest_firmware_costs *costs = &firmware->config.costs;
    return (uint64_t)UNREAD_MAX * (costs->response_read + costs->response_handle);
}

void exanest_firmware_expire(struct exanest_firmware *firmware, uint64_t now)
{
    const uint32_t tid = exanest_timers_first(&firmware->timers);
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    exanest_timers_cancel(&firmware->timers, tid);
    switch ((enum exanest_tid_state)block->state) {
    case EXANEST_TID_INFLIGHT:
        if (block->cause == EXANEST_CAUSE_NONE && firmware->answers_wait && !block->unread) {
            block->unread = true;
            exanest_timers_set(&firmware->timers, tid, now + mailbox_ns(firmware));
            return;
        }
        if (block->cause == EXANEST_CAUSE_NONE) {
            block->cause = EXANEST_CAUSE_TIMEOUT;
        }
        look(firmware, tid);
        return;
    case EXANEST_TID_SETTLING: look(firmware, tid); return;
    case EXANEST_TID_RETRY_WAIT:
    case EXANEST_TID_FAULT_WAIT: exanest_firmware_resend(firmware, tid); return;
    case EXANEST_TID_FREE:
    case EXANEST_TID_ARMED: break;
    }
    UNREACHABLE("timer");
}

void exanest_firmware_take_mapped(struct exanest_firmware *firmware)
{
    const uint32_t group = (uint32_t)__builtin_ctz(firmware->mapped_groups);
    const uint32_t tid = 64 * group + (uint32_t)__builtin_ctzll(firmware->mapped[group]);
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    firmware->mapped[group] &= firmware->mapped[group] - 1;
    if (firmware->mapped[group] == 0) {
        firmware->mapped_groups &= (uint16_t) ~(1u << group);
    }
    if (block->state == EXANEST_TID_FAULT_WAIT) {
        exanest_timers_cancel(&firmware->timers, tid);
        firmware->counters.mapped++;
        exanest_firmware_resend(firmware, tid);
    } else if (block->state == EXANEST_TID_INFLIGHT) {
        exanest_timers_cancel(&firmware->timers, tid);
        block->cause = EXANEST_CAUSE_MAPPED;
        look(firmware, tid);
    }
}
