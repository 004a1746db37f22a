/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/scratchpad.h"

#include <string.h>

#define DOORBELL 7u /* The word of a transfer descriptor that is written last. */

static bool is_bound(const struct exanest_scratchpad *pad, uint32_t page)
{
    return page < EXANEST_PAGES && (pad->bound >> page & 1) != 0;
}

void exanest_scratchpad_check(const struct exanest_scratchpad *pad)
{
    CHECK(pad->last_page < EXANEST_PAGES);
    for (uint32_t page = 0; page < EXANEST_PAGES; page++) {
        CHECK((pad->pages_posted >> page & 1) == (pad->posted[page] != 0));
        CHECK(pad->posted[page] == 0 || is_bound(pad, page));
        for (uint32_t other = 0; other < page; other++) {
            CHECK(!is_bound(pad, page) || !is_bound(pad, other) ||
                  pad->pdid[page] != pad->pdid[other]);
        }
    }
}

/* -- The driver ---------------------------------------------------------------------------------*/

bool exanest_scratchpad_bind(struct exanest_scratchpad *pad, uint32_t page, uint16_t pdid)
{
    if (page >= EXANEST_PAGES || is_bound(pad, page)) {
        return false;
    }
    for (uint32_t other = 0; other < EXANEST_PAGES; other++) {
        if (is_bound(pad, other) && pad->pdid[other] == pdid) {
            return false;
        }
    }
    memset(pad->words[page * EXANEST_PAGE_CHANNELS], 0, EXANEST_SCRATCHPAD_PAGE_BYTES);
    pad->pdid[page] = pdid;
    pad->bound |= (uint16_t)(1u << page);
    INVARIANTS(exanest_scratchpad_check(pad));
    return true;
}

void exanest_scratchpad_unbind(struct exanest_scratchpad *pad, uint32_t page)
{
    CHECK(page < EXANEST_PAGES);
    pad->bound &= (uint16_t) ~(1u << page);
    pad->pages_posted &= (uint16_t) ~(1u << page);
    pad->posted[page] = 0;
    INVARIANTS(exanest_scratchpad_check(pad));
}

/* -- Programs -----------------------------------------------------------------------------------*/

static enum exanest_pad_access judge(const struct exanest_scratchpad *pad, uint16_t pdid,
                                     uint32_t page, uint32_t offset)
{
    if (!is_bound(pad, page) || pad->pdid[page] != pdid) {
        return EXANEST_PAD_FOREIGN;
    }
    return offset >= EXANEST_SCRATCHPAD_PAGE_BYTES || offset % 8 != 0 ? EXANEST_PAD_MISPLACED
                                                                      : EXANEST_PAD_GOOD;
}

enum exanest_pad_access exanest_scratchpad_store(struct exanest_scratchpad *pad, uint16_t pdid,
                                                 uint32_t page, uint32_t offset, uint64_t value)
{
    const enum exanest_pad_access access = judge(pad, pdid, page, offset);
    pad->accesses[access]++;
    if (access != EXANEST_PAD_GOOD) {
        return access;
    }
    const uint32_t channel = offset / EXANEST_CHANNEL_BYTES;
    const uint32_t word = offset % EXANEST_CHANNEL_BYTES / 8;
    pad->words[page * EXANEST_PAGE_CHANNELS + channel][word] = value;
    if (word == DOORBELL && (value & 1) != 0) {
        pad->posted[page] |= UINT64_C(1) << channel;
        pad->pages_posted |= (uint16_t)(1u << page);
    }
    INVARIANTS(exanest_scratchpad_check(pad));
    return access;
}

enum exanest_pad_access exanest_scratchpad_load(struct exanest_scratchpad *pad, uint16_t pdid,
                                                uint32_t page, uint32_t offset, uint64_t *value)
{
    const enum exanest_pad_access access = judge(pad, pdid, page, offset);
    pad->accesses[access]++;
    if (access == EXANEST_PAD_GOOD) {
        *value = pad->words[page * EXANEST_PAGE_CHANNELS + offset / EXANEST_CHANNEL_BYTES]
                           [offset % EXANEST_CHANNEL_BYTES / 8];
    }
    return access;
}

enum exanest_pad_access exanest_scratchpad_post(struct exanest_scratchpad *pad, uint16_t pdid,
                                                uint32_t page, uint32_t channel,
                                                const struct exanest_transfer *transfer)
{
    uint64_t words[EXANEST_TRANSFER_WORDS];
    exanest_transfer_encode(transfer, words);
    if (channel >= EXANEST_PAGE_CHANNELS) {
        pad->accesses[EXANEST_PAD_MISPLACED]++;
        return EXANEST_PAD_MISPLACED;
    }
    enum exanest_pad_access access = EXANEST_PAD_GOOD;
    for (uint32_t i = 0; i < EXANEST_TRANSFER_WORDS && access == EXANEST_PAD_GOOD; i++) {
        access = exanest_scratchpad_store(pad, pdid, page, channel * EXANEST_CHANNEL_BYTES + 8 * i,
                                          words[i]);
    }
    return access;
}

/* -- The R5 -------------------------------------------------------------------------------------*/

uint64_t exanest_scratchpad_poll(struct exanest_scratchpad *pad, uint32_t *page)
{
    if (pad->pages_posted == 0) {
        return 0;
    }
    uint32_t next = pad->last_page;
    do {
        next = (next + 1) % EXANEST_PAGES;
    } while ((pad->pages_posted >> next & 1) == 0);
    const uint64_t posted = pad->posted[next];
    pad->posted[next] = 0;
    pad->pages_posted &= (uint16_t) ~(1u << next);
    pad->last_page = next;
    *page = next;
    INVARIANTS(exanest_scratchpad_check(pad));
    return posted;
}

const uint64_t *exanest_scratchpad_read(const struct exanest_scratchpad *pad, uint32_t channel)
{
    CHECK(channel < EXANEST_CHANNELS);
    return pad->words[channel];
}

void exanest_scratchpad_update(struct exanest_scratchpad *pad, uint32_t channel,
                               const struct exanest_progress *progress)
{
    CHECK(channel < EXANEST_CHANNELS);
    uint64_t *words = pad->words[channel];
    words[2] = (words[2] & UINT64_C(0xffffffffffff)) | (uint64_t)progress->state << 48;
    words[6] = progress->acked | (uint64_t)progress->retransmissions << 32 |
               (uint64_t)progress->last_status << 48;
}
