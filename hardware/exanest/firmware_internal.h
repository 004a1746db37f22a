/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Functions that the parts of the firmware call in each other: its loop (firmware.c), blocks
 * (firmware_block.c), transfers (firmware_transfer.c) and invariants (firmware_check.c).
 */
#ifndef HARDWARE_EXANEST_FIRMWARE_INTERNAL_H
#define HARDWARE_EXANEST_FIRMWARE_INTERNAL_H

#include "hardware/exanest/firmware.h"

enum exanest_firmware_step {
    EXANEST_STEP_RESPONSE,
    EXANEST_STEP_REQUEST,
    EXANEST_STEP_POLL,
    EXANEST_STEP_BEGIN_READ,
    EXANEST_STEP_BEGIN_WRITE,
    EXANEST_STEP_ISSUE,
    EXANEST_STEP_TIMER,
    EXANEST_STEP_EVENT,
    EXANEST_STEP_END,
};

enum exanest_firmware_job {
    EXANEST_JOB_NONE,
    EXANEST_JOB_STORE,   /* A block's words are stored; the stages are below. */
    EXANEST_JOB_LOOK,    /* At a descriptor's Done and Error. */
    EXANEST_JOB_CONTEXT, /* At what the peer has of a block. */
    EXANEST_JOB_REQUEST, /* Reads of the mailbox; stage: lanes that are there. */
};

/* Stages of EXANEST_JOB_STORE. W4 comes first: W3 starts the block. */
enum exanest_firmware_stage {
    EXANEST_STAGE_W4,
    EXANEST_STAGE_W1,
    EXANEST_STAGE_W2,
    EXANEST_STAGE_W3,
    EXANEST_STAGE_CONTROL, /* This stage has two more behind it. */
    EXANEST_STAGE_END = EXANEST_STAGE_CONTROL + 3,
};

static inline struct exanest_firmware_transfer *exanest_firmware_transfer_of(
    struct exanest_firmware *firmware, const struct exanest_firmware_block *block)
{
    return &firmware->transfers[block->channel];
}

static inline uint32_t exanest_channel_page(uint32_t channel)
{
    return channel / EXANEST_PAGE_CHANNELS;
}

static inline bool exanest_channel_reads(uint32_t channel)
{
    return channel % EXANEST_PAGE_CHANNELS >= EXANEST_WRITE_CHANNELS;
}

static inline bool exanest_channel_active(const struct exanest_firmware *firmware, uint32_t channel)
{
    return (firmware->active[exanest_channel_page(channel)] >> channel % EXANEST_PAGE_CHANNELS &
            1) != 0;
}

/* -- firmware_block.c ---------------------------------------------------------------------------*/

/* Cuts and arms the next block of the first transfer that can issue; there must be one, and a free
 * TID. */
void exanest_firmware_issue(struct exanest_firmware *firmware);
void exanest_firmware_store_next(const struct exanest_firmware *firmware,
                                 struct exanest_firmware_action *action);
void exanest_firmware_stored(struct exanest_firmware *firmware, uint64_t now);
/* A response word with its valid bit set. */
void exanest_firmware_respond(struct exanest_firmware *firmware,
                              const struct exanest_response *response);
/* The descriptor of `job_tid` was read. */
void exanest_firmware_looked(struct exanest_firmware *firmware, uint64_t w3, uint64_t now);
/* The earliest timer has come; there is one. */
void exanest_firmware_expire(struct exanest_firmware *firmware, uint64_t now);
/* Takes one event of the driver; there is one. */
void exanest_firmware_take_mapped(struct exanest_firmware *firmware);

/* The block as a whole, under the next sequence; or it, or its transfer, is given up. */
void exanest_firmware_resend(struct exanest_firmware *firmware, uint32_t tid);
/* One more attempt of the block; false: the limit is reached. */
bool exanest_firmware_retry(struct exanest_firmware *firmware, uint32_t tid, uint32_t bytes);
/* Begins to store W1 to W3 of the descriptor, for the bytes from..to of the block. */
void exanest_firmware_begin_stores(struct exanest_firmware *firmware, uint32_t tid,
                                   uint16_t sequence, uint8_t path, uint32_t from, uint32_t to);

/* -- firmware_pieces.c --------------------------------------------------------------------------*/

/* A block was not answered: the peer is asked which packets of it it has. */
void exanest_firmware_ask_context(struct exanest_firmware *firmware, uint32_t tid);
/* The bitmap of its context; 0: it has none. */
void exanest_firmware_seen(struct exanest_firmware *firmware, uint64_t bitmap);
/* The next of the missing pieces; there is one, and the descriptor is Done. */
void exanest_firmware_send_piece(struct exanest_firmware *firmware, uint32_t tid);

/* -- firmware_transfer.c ------------------------------------------------------------------------*/

/* Could a block of it be issued, if a TID is free? */
bool exanest_firmware_can_issue(const struct exanest_firmware *firmware, uint32_t channel);
/* Puts it into the list if it can and is not there. */
void exanest_firmware_list(struct exanest_firmware *firmware, uint32_t channel);
/* Takes the first of the list; there is one. */
uint32_t exanest_firmware_take_listed(struct exanest_firmware *firmware);
/* The bytes of its next block; it has one. */
uint32_t exanest_firmware_next_bytes(const struct exanest_firmware *firmware, uint32_t channel);
/* The transfer will end in ERROR. */
void exanest_firmware_fail(struct exanest_firmware *firmware, uint32_t channel, uint16_t status);
/* A block of it is no more. Its last one ends it, or begins it anew. */
void exanest_firmware_block_gone(struct exanest_firmware *firmware, uint32_t channel);
/* The channel's descriptor was updated. */
void exanest_firmware_updated(struct exanest_firmware *firmware, uint32_t channel);

/* Takes the words of a channel that was posted. */
void exanest_firmware_begin_write(struct exanest_firmware *firmware, uint32_t channel,
                                  const uint64_t words[EXANEST_TRANSFER_WORDS]);
/* The next channel in turn that was posted but not read; there is one. */
uint32_t exanest_firmware_take_fresh(struct exanest_firmware *firmware);
/* A whole request was read. */
void exanest_firmware_take_request(struct exanest_firmware *firmware);
/* Gives a channel to the first request whose domain has one. */
void exanest_firmware_begin_read(struct exanest_firmware *firmware);

#endif
