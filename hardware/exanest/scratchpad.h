/* SPDX-License-Identifier: BSD-2-Clause
 *
 * scratchpad - the R5's memory, where programs post transfers: 16 pages of 64 transfer channels.
 *
 * Purpose    A program asks for a transfer by storing 64 bytes, without a system call; and the R5
 *            finds posted transfers without looking at 1,024 channels.
 * Inputs     The driver binds pages; programs store and load; the firmware polls, reads, updates.
 * Outputs    The channels whose doorbells were rung, and the words of a channel.
 * Ownership  The caller owns the struct; zeroed memory is a scratchpad without bound pages.
 * Time       Not used: the R5's time for its accesses is in firmware.h, a program's is the world's.
 * Units      64-bit words; channel numbers of the R5 are 64 * page + channel of the page.
 * Limits     A page belongs to one protection domain, and a domain has one page.
 * Source     Xirouchakis 4.1; wire/exanest.h.
 *
 * Channels 0..31 of a page are for writes, which programs post; 32..63 are the reads that the R5
 * serves for requesters of the domain. Which are which is our choice. A page is mapped into the
 * process as a whole, so a program can store at any place in it. The firmware therefore judges what
 * it reads, works on a copy, and refuses transfers that are posted to a read channel.
 */
#ifndef HARDWARE_EXANEST_SCRATCHPAD_H
#define HARDWARE_EXANEST_SCRATCHPAD_H

#include "wire/exanest.h"

#define EXANEST_PAGES                 16u
#define EXANEST_PAGE_CHANNELS         64u
#define EXANEST_WRITE_CHANNELS        32u /* The first of a page; as many others are for reads. */
#define EXANEST_READ_CHANNELS         (EXANEST_PAGE_CHANNELS - EXANEST_WRITE_CHANNELS)
#define EXANEST_CHANNELS              (EXANEST_PAGES * EXANEST_PAGE_CHANNELS)
#define EXANEST_CHANNEL_BYTES         64u
#define EXANEST_SCRATCHPAD_PAGE_BYTES (EXANEST_PAGE_CHANNELS * EXANEST_CHANNEL_BYTES)

/* The outcome of a program's access. */
enum exanest_pad_access {
    EXANEST_PAD_GOOD,
    EXANEST_PAD_FOREIGN,   /* No such page, or it is not bound to this domain. */
    EXANEST_PAD_MISPLACED, /* Beyond the page, or not aligned to 8 bytes. */
    EXANEST_PAD_COUNT,
};

/* The fields that the R5 writes into a transfer descriptor. */
struct exanest_progress {
    uint16_t state; /* enum exanest_transfer_state. */
    uint16_t retransmissions, last_status;
    uint32_t acked;
};

struct exanest_scratchpad {
    uint64_t posted[EXANEST_PAGES]; /* Bit c: its doorbell was rung since the R5 last looked. */
    uint16_t pages_posted;          /* Bit p: posted[p] is not 0. */
    uint16_t bound;                 /* Bit p: the page belongs to pdid[p]. */
    uint32_t last_page;             /* The page that was polled last. */
    uint16_t pdid[EXANEST_PAGES];
    uint64_t accesses[EXANEST_PAD_COUNT];
    uint64_t words[EXANEST_CHANNELS][EXANEST_TRANSFER_WORDS];
};

/* The driver gives a page to a domain; what a former owner left there is wiped. False: there is no
 * such page, it is bound, or the domain has one. */
MUST_USE bool exanest_scratchpad_bind(struct exanest_scratchpad *pad, uint32_t page, uint16_t pdid);
void exanest_scratchpad_unbind(struct exanest_scratchpad *pad, uint32_t page);

/* A program of domain `pdid` stores or loads a word, `offset` bytes into a page. */
enum exanest_pad_access exanest_scratchpad_store(struct exanest_scratchpad *pad, uint16_t pdid,
                                                 uint32_t page, uint32_t offset, uint64_t value);
enum exanest_pad_access exanest_scratchpad_load(struct exanest_scratchpad *pad, uint16_t pdid,
                                                uint32_t page, uint32_t offset, uint64_t *value);
/* Eight stores, the doorbell's last. Stops at the first that is refused. */
enum exanest_pad_access exanest_scratchpad_post(struct exanest_scratchpad *pad, uint16_t pdid,
                                                uint32_t page, uint32_t channel,
                                                const struct exanest_transfer *transfer);

/* The R5 looks: the next page in turn to which a transfer was posted, and its channels. 0: there
 * was no post. */
uint64_t exanest_scratchpad_poll(struct exanest_scratchpad *pad, uint32_t *page);
/* ... reads a channel's EXANEST_TRANSFER_WORDS, */
const uint64_t *exanest_scratchpad_read(const struct exanest_scratchpad *pad, uint32_t channel);
/* ... and writes there, beside what the program wrote. */
void exanest_scratchpad_update(struct exanest_scratchpad *pad, uint32_t channel,
                               const struct exanest_progress *progress);

static inline bool exanest_scratchpad_idle(const struct exanest_scratchpad *pad)
{
    return pad->pages_posted == 0;
}

void exanest_scratchpad_check(const struct exanest_scratchpad *pad);

#endif
