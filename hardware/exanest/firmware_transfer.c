/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A transfer: how it begins, when it may issue a block, and how it ends.
 */
#include <string.h>

#include "hardware/exanest/firmware_internal.h"

/* -- Those that can issue -----------------------------------------------------------------------*/

uint32_t exanest_firmware_next_bytes(const struct exanest_firmware *firmware, uint32_t channel)
{
    const struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    return exanest_block_bytes((enum exanest_cut)firmware->config.cut,
                               transfer->source + transfer->cut,
                               exanest_target_decode(transfer->target).va + transfer->cut,
                               transfer->bytes - transfer->cut);
}

/* The block with the notification is held back until all others are acknowledged. */
static bool is_held(const struct exanest_firmware *firmware, uint32_t channel)
{
    const struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    return transfer->notify && !firmware->config.notifies_early && transfer->outstanding != 0 &&
           transfer->cut + exanest_firmware_next_bytes(firmware, channel) == transfer->bytes;
}

bool exanest_firmware_can_issue(const struct exanest_firmware *firmware, uint32_t channel)
{
    const struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    const uint32_t limit = exanest_channel_reads(channel) ? firmware->config.reads_outstanding
                                                          : firmware->config.writes_outstanding;
    return transfer->state == EXANEST_TRANSFER_ACTIVE && !transfer->waits && !transfer->failed &&
           !transfer->restarting && transfer->cut < transfer->bytes &&
           transfer->outstanding < limit && !is_held(firmware, channel);
}

void exanest_firmware_list(struct exanest_firmware *firmware, uint32_t channel)
{
    struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    if (transfer->listed || !exanest_firmware_can_issue(firmware, channel)) {
        return;
    }
    transfer->listed = true;
    transfer->next = EXANEST_NONE;
    if (firmware->ready_head == EXANEST_NONE) {
        firmware->ready_head = (uint16_t)channel;
    } else {
        firmware->transfers[firmware->ready_tail].next = (uint16_t)channel;
    }
    firmware->ready_tail = (uint16_t)channel;
}

uint32_t exanest_firmware_take_listed(struct exanest_firmware *firmware)
{
    const uint32_t channel = firmware->ready_head;
    struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    firmware->ready_head = transfer->next;
    transfer->listed = false;
    return channel;
}

/* A transfer that fails, or begins anew, may stand in the list. Rare, so it is looked for. */
static void unlist(struct exanest_firmware *firmware, uint32_t channel)
{
    if (!firmware->transfers[channel].listed) {
        return;
    }
    uint16_t before = EXANEST_NONE;
    uint16_t at = firmware->ready_head;
    while (at != channel) {
        before = at;
        at = firmware->transfers[at].next;
    }
    const uint16_t after = firmware->transfers[at].next;
    if (before == EXANEST_NONE) {
        firmware->ready_head = after;
    } else {
        firmware->transfers[before].next = after;
    }
    if (after == EXANEST_NONE) {
        firmware->ready_tail = before;
    }
    firmware->transfers[channel].listed = false;
}

/* -- Chains of a program's transfers ------------------------------------------------------------*/

/* `by` 1: the write channel behind; EXANEST_WRITE_CHANNELS - 1: the one before. In a ring. */
static uint32_t neighbour(uint32_t channel, uint32_t by)
{
    const uint32_t page = exanest_channel_page(channel) * EXANEST_PAGE_CHANNELS;
    return page + (channel - page + by) % EXANEST_WRITE_CHANNELS;
}

static uint32_t before(uint32_t channel)
{
    return neighbour(channel, EXANEST_WRITE_CHANNELS - 1);
}

/* A chained transfer waits for that of the channel before, if that one is under way or posted. A
 * ring of 32 that all wait for each other begins with the one that closed it. */
static bool has_to_wait(const struct exanest_firmware *firmware, uint32_t channel)
{
    const uint32_t first = before(channel);
    const uint64_t fresh = firmware->fresh[exanest_channel_page(channel)];
    if (!exanest_channel_active(firmware, first)) {
        return (fresh >> first % EXANEST_PAGE_CHANNELS & 1) != 0;
    }
    uint32_t at = first;
    while (at != channel && exanest_channel_active(firmware, at) && firmware->transfers[at].waits) {
        at = before(at);
    }
    return at != channel;
}

static void end_wait(struct exanest_firmware *firmware, uint32_t channel)
{
    if (exanest_channel_reads(channel)) {
        return;
    }
    const uint32_t behind = neighbour(channel, 1);
    if (exanest_channel_active(firmware, behind) && firmware->transfers[behind].waits) {
        firmware->transfers[behind].waits = false;
        exanest_firmware_list(firmware, behind);
    }
}

/* -- The end ------------------------------------------------------------------------------------*/

static void set_active(struct exanest_firmware *firmware, uint32_t channel, bool active)
{
    const uint64_t bit = UINT64_C(1) << channel % EXANEST_PAGE_CHANNELS;
    uint64_t *bits = &firmware->active[exanest_channel_page(channel)];
    *bits = active ? *bits | bit : *bits & ~bit;
    if (!active && exanest_channel_reads(channel)) {
        firmware->queue_changed = true;
    }
}

static void ask_update(struct exanest_firmware *firmware, uint32_t channel)
{
    CHECK(firmware->update == EXANEST_NONE);
    firmware->update = (uint16_t)channel;
}

static void finish(struct exanest_firmware *firmware, uint32_t channel,
                   enum exanest_transfer_state state)
{
    struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    const bool done = state == EXANEST_TRANSFER_DONE;
    CHECK(!transfer->listed && transfer->outstanding == 0);
    transfer->state = (uint8_t)state;
    if (exanest_channel_reads(channel)) {
        firmware->counters.reads_done += done;
        firmware->counters.reads_failed += !done;
        transfer->state = EXANEST_TRANSFER_FREE;
        set_active(firmware, channel, false);
    } else {
        firmware->counters.writes_done += done;
        firmware->counters.writes_failed += !done;
        ask_update(firmware, channel);
        end_wait(firmware, channel);
    }
}

void exanest_firmware_fail(struct exanest_firmware *firmware, uint32_t channel, uint16_t status)
{
    struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    unlist(firmware, channel);
    transfer->failed = true;
    transfer->last_status = status;
}

void exanest_firmware_block_gone(struct exanest_firmware *firmware, uint32_t channel)
{
    struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    CHECK(transfer->outstanding > 0);
    transfer->outstanding--;
    if (transfer->restarting) {
        unlist(firmware, channel);
    }
    if (transfer->outstanding == 0 && transfer->failed) {
        finish(firmware, channel, EXANEST_TRANSFER_ERROR);
        return;
    }
    if (transfer->outstanding == 0 && transfer->restarting) {
        transfer->restarting = false;
        transfer->cut = 0;
        transfer->acked = 0;
    }
    if (transfer->acked == transfer->bytes) {
        finish(firmware, channel, EXANEST_TRANSFER_DONE);
        return;
    }
    exanest_firmware_list(firmware, channel);
}

/* From now on the program may post to the channel again. */
void exanest_firmware_updated(struct exanest_firmware *firmware, uint32_t channel)
{
    struct exanest_firmware_transfer *transfer = &firmware->transfers[channel];
    firmware->update = EXANEST_NONE;
    if (transfer->state != EXANEST_TRANSFER_ACTIVE) {
        transfer->state = EXANEST_TRANSFER_FREE;
        set_active(firmware, channel, false);
    }
}

/* -- The beginning ------------------------------------------------------------------------------*/

/* Neither end wraps round, and memory does not run into peripherals; these are the last addresses,
 * so a range beyond the 42 bits is seen as well. */
static bool are_ranges_good(uint64_t source, struct exanest_target target, uint32_t bytes)
{
    return bytes != 0 && source + (bytes - 1) >= source &&
           exanest_va_is_peripheral(target.va) == exanest_va_is_peripheral(target.va + bytes - 1);
}

static void refuse(struct exanest_firmware *firmware, uint32_t channel)
{
    firmware->counters.posts_refused++;
    firmware->transfers[channel] = (struct exanest_firmware_transfer){
        .state = EXANEST_TRANSFER_ERROR, .last_status = EXANEST_LAST_REFUSED};
    set_active(firmware, channel, true);
    ask_update(firmware, channel);
    end_wait(firmware, channel);
}

void exanest_firmware_begin_write(struct exanest_firmware *firmware, uint32_t channel,
                                  const uint64_t words[EXANEST_TRANSFER_WORDS])
{
    const struct exanest_transfer posted = exanest_transfer_decode(words);
    if ((firmware->bound >> exanest_channel_page(channel) & 1) == 0) {
        return;
    }
    if (exanest_channel_active(firmware, channel)) {
        firmware->counters.posts_busy++;
        return;
    }
    if (exanest_channel_reads(channel) || posted.read || (posted.doorbell & 1) == 0 ||
        posted.path >= firmware->config.paths ||
        !are_ranges_good(posted.source, posted.target, posted.bytes)) {
        refuse(firmware, channel);
        return;
    }
    firmware->work_ns += firmware->config.costs.lookup;
    firmware->transfers[channel] = (struct exanest_firmware_transfer){
        .source = posted.source,
        .target = exanest_target_encode(posted.target),
        .address = exanest_target_encode(posted.address),
        .data = {posted.data[0], posted.data[1]},
        .bytes = posted.bytes,
        .state = EXANEST_TRANSFER_ACTIVE,
        .path = posted.path,
        .notify = posted.notify,
        .waits = posted.chain && has_to_wait(firmware, channel),
    };
    set_active(firmware, channel, true);
    ask_update(firmware, channel);
    exanest_firmware_list(firmware, channel);
}

uint32_t exanest_firmware_take_fresh(struct exanest_firmware *firmware)
{
    uint32_t page = firmware->fresh_page;
    do {
        page = (page + 1) % EXANEST_PAGES;
    } while ((firmware->pages_fresh >> page & 1) == 0);
    firmware->fresh_page = page;
    const uint32_t channel = (uint32_t)__builtin_ctzll(firmware->fresh[page]);
    firmware->fresh[page] &= firmware->fresh[page] - 1;
    if (firmware->fresh[page] == 0) {
        firmware->pages_fresh &= (uint16_t) ~(1u << page);
    }
    return page * EXANEST_PAGE_CHANNELS + channel;
}

/* -- Reads --------------------------------------------------------------------------------------*/

/* EXANEST_PAGES: the domain has none. */
static uint32_t page_of(const struct exanest_firmware *firmware, uint16_t pdid)
{
    uint32_t page = 0;
    while (page < EXANEST_PAGES &&
           ((firmware->bound >> page & 1) == 0 || firmware->pdid[page] != pdid)) {
        page++;
    }
    return page;
}

static struct exanest_read_request assemble(const uint32_t lanes[EXANEST_REQUEST_LANES])
{
    struct exanest_word words[EXANEST_READ_REQUEST_WORDS];
    for (uint32_t i = 0; i < EXANEST_READ_REQUEST_WORDS; i++) {
        const uint32_t *lane = &lanes[4 * i];
        words[i].low = (uint64_t)lane[1] << 32 | lane[0];
        words[i].high = (uint64_t)lane[3] << 32 | lane[2];
    }
    return exanest_read_request_decode(words);
}

void exanest_firmware_take_request(struct exanest_firmware *firmware)
{
    const struct exanest_read_request request = assemble(firmware->lanes);
    const struct exanest_request_key key = {.coordinate = request.coordinate,
                                            .request_id = request.request_id,
                                            .channel = request.channel,
                                            .pdid = request.pdid};
    if (page_of(firmware, request.pdid) == EXANEST_PAGES) {
        firmware->counters.reads_unbound++;
    } else if (!are_ranges_good(request.source, request.target, request.bytes)) {
        firmware->counters.reads_malformed++;
    } else if (exanest_history_has(&firmware->history, key)) {
        firmware->counters.reads_duplicate++;
    } else {
        exanest_history_add(&firmware->history, key);
        CHECK(firmware->queued < EXANEST_READ_QUEUE);
        firmware->queue[firmware->queued++] = request;
        firmware->queue_changed = true;
        firmware->counters.reads_taken++;
    }
}

/* The lowest read channel of the page that is free; EXANEST_NONE: none is. */
static uint32_t free_read_channel(const struct exanest_firmware *firmware, uint32_t page)
{
    const uint64_t free = ~firmware->active[page] >> EXANEST_WRITE_CHANNELS;
    return free == 0 ? EXANEST_NONE
                     : page * EXANEST_PAGE_CHANNELS + EXANEST_WRITE_CHANNELS +
                           (uint32_t)__builtin_ctzll(free);
}

/* Always with a notification: nothing else tells the requester. Of its 16 bytes the request brings
 * 8; the request's number in the others tells a second notification from the next. */
static void begin(struct exanest_firmware *firmware, uint32_t channel,
                  const struct exanest_read_request *request)
{
    firmware->acted = true;
    firmware->work_ns += firmware->config.costs.lookup;
    firmware->transfers[channel] = (struct exanest_firmware_transfer){
        .source = request->source,
        .target = exanest_target_encode(request->target),
        .address = exanest_target_encode(request->address),
        .data = {request->data, request->request_id},
        .bytes = request->bytes,
        .state = EXANEST_TRANSFER_ACTIVE,
        .notify = true,
    };
    set_active(firmware, channel, true);
    exanest_firmware_list(firmware, channel);
}

/* The oldest whose domain has a channel: a domain that has none does not hold up others. */
void exanest_firmware_begin_read(struct exanest_firmware *firmware)
{
    for (uint32_t i = 0; i < firmware->queued; i++) {
        const uint32_t page = page_of(firmware, firmware->queue[i].pdid);
        CHECK(page != EXANEST_PAGES);
        const uint32_t channel = free_read_channel(firmware, page);
        if (channel != EXANEST_NONE) {
            begin(firmware, channel, &firmware->queue[i]);
            firmware->queued--;
            memmove(&firmware->queue[i], &firmware->queue[i + 1],
                    (firmware->queued - i) * sizeof(firmware->queue[0]));
            return;
        }
    }
    firmware->queue_changed = false;
}
