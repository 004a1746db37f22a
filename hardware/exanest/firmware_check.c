/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Invariants of the firmware between two calls.
 */
#include "hardware/exanest/firmware_internal.h"

void exanest_firmware_check(const struct exanest_firmware *firmware)
{
    CHECK(firmware->free_count <= firmware->config.tids);
    CHECK(firmware->queued <= EXANEST_READ_QUEUE);
    CHECK(firmware->timers.count <= (uint32_t)(firmware->config.tids - firmware->free_count));
    CHECK((firmware->pages_fresh & ~firmware->bound) == 0);
    for (uint32_t page = 0; page < EXANEST_PAGES; page++) {
        CHECK((firmware->pages_fresh >> page & 1) == (firmware->fresh[page] != 0));
        CHECK(firmware->active[page] == 0 || (firmware->bound >> page & 1) != 0);
    }
    for (uint32_t group = 0; group < EXANEST_TIDS / 64; group++) {
        CHECK((firmware->mapped_groups >> group & 1) == (firmware->mapped[group] != 0));
    }
    if (firmware->job == EXANEST_JOB_STORE) {
        CHECK(firmware->stage < EXANEST_STAGE_END);
        CHECK(firmware->blocks[firmware->job_tid].state ==
              (firmware->stage < EXANEST_STAGE_CONTROL ? EXANEST_TID_ARMED : EXANEST_TID_INFLIGHT));
    }
}

/* Blocks by channel; and each has the timer that its state says. */
static void check_blocks(const struct exanest_firmware *firmware, uint16_t *outstanding)
{
    uint32_t free = 0;
    for (uint32_t tid = 0; tid < firmware->config.tids; tid++) {
        const struct exanest_firmware_block *block = &firmware->blocks[tid];
        const bool runs = exanest_timers_running(&firmware->timers, tid);
        const bool is_looked_at =
            (firmware->job == EXANEST_JOB_LOOK || firmware->job == EXANEST_JOB_CONTEXT) &&
            firmware->job_tid == tid;
        if (block->state == EXANEST_TID_FREE) {
            CHECK(!runs);
            free++;
            continue;
        }
        CHECK(runs == (block->state != EXANEST_TID_ARMED && !is_looked_at));
        CHECK(block->bytes >= 1 && block->bytes <= EXANEST_BLOCK_BYTES_MAX);
        CHECK(block->retries <= firmware->config.retries_max);
        CHECK(block->sequence < EXANEST_SEQUENCES);
        CHECK(exanest_channel_active(firmware, block->channel));
        outstanding[block->channel]++;
    }
    CHECK(free == firmware->free_count);
    for (uint32_t i = 0; i < firmware->free_count; i++) {
        const uint32_t tid = firmware->free[(firmware->free_head + i) % EXANEST_TIDS];
        CHECK(firmware->blocks[tid].state == EXANEST_TID_FREE);
    }
}

static void check_transfer(const struct exanest_firmware *firmware, uint32_t channel,
                           uint32_t outstanding)
{
    const struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    CHECK((transfer->state != EXANEST_TRANSFER_FREE) == exanest_channel_active(firmware, channel));
    if (transfer->state == EXANEST_TRANSFER_FREE) {
        CHECK(outstanding == 0 && !transfer->listed);
        return;
    }
    CHECK(transfer->outstanding == outstanding);
    CHECK(transfer->listed == exanest_firmware_can_issue(firmware, channel));
    CHECK(transfer->acked <= transfer->cut && transfer->cut <= transfer->bytes);
    CHECK(!transfer->waits || transfer->cut == 0);
    if (transfer->state == EXANEST_TRANSFER_ACTIVE) {
        /* Something will go on with it. */
        CHECK(outstanding != 0 || transfer->listed || transfer->waits);
    } else {
        CHECK(outstanding == 0 && firmware->update == channel);
    }
}

void exanest_firmware_check_all(const struct exanest_firmware *firmware)
{
    uint16_t outstanding[EXANEST_CHANNELS] = {0};
    uint32_t listed = 0, in_list = 0;
    exanest_firmware_check(firmware);
    exanest_timers_check(&firmware->timers);
    check_blocks(firmware, outstanding);
    for (uint32_t channel = 0; channel < EXANEST_CHANNELS; channel++) {
        check_transfer(firmware, channel, outstanding[channel]);
        listed += firmware->transfers[channel].listed;
    }
    for (uint16_t at = firmware->ready_head; at != EXANEST_NONE;
         at = firmware->transfers[at].next) {
        CHECK(firmware->transfers[at].listed && in_list++ < EXANEST_CHANNELS);
        CHECK(firmware->transfers[at].next != EXANEST_NONE || firmware->ready_tail == at);
    }
    CHECK(in_list == listed);
}
