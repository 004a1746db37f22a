/* SPDX-License-Identifier: BSD-2-Clause
 *
 * firmware_rig_blocks - the programs, send unit and receiver of firmware_rig.h's world.
 *
 * Each block gets a fate when its third word is stored: from a script, or by chance. The rig knows
 * by itself where each block must begin and end. It fails a test at once if the firmware stores
 * anything else, stores over a block that is not Done, or reads the mailbox's requests when there
 * is none.
 */
#ifndef HARDWARE_EXANEST_FIRMWARE_RIG_BLOCKS_H
#define HARDWARE_EXANEST_FIRMWARE_RIG_BLOCKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/firmware.h"

#define RIG_TRANSFERS 2048u
#define RIG_LINES     80u
#define RIG_EVENTS    8192u
#define RIG_FIFO      64u
#define RIG_SEND_NS   10000u /* Until a block is Done, unless its fate has it otherwise. */
#define RIG_ANSWER_NS 12000u

enum rig_fate {
    RIG_ACK,
    RIG_NACK_FAULT, /* 1..4: as enum exanest_status. */
    RIG_NACK_NO_CONTEXT,
    RIG_NACK_CRC,
    RIG_NACK_DECODE,
    RIG_LOST,       /* Nothing arrives, nobody answers. */
    RIG_ACK_LOST,   /* Everything arrives, the answer does not. */
    RIG_ACK_TWICE,  /* The second one comes much later. */
    RIG_ACK_LATE,   /* Long after the timeout. */
    RIG_NACK_EARLY, /* CRC, long before the send unit is Done. */
    RIG_NACK_OFTEN, /* No context, said for each packet. */
    RIG_FAULT,      /* The source's page is missing; mapped after 50 us, and the R5 is told, */
    RIG_FAULT_MUTE, /* or not told. */
    RIG_SLOW,       /* Done, and acknowledged, after two timeouts. */
    RIG_FATES,
};

struct rig_transfer {
    uint64_t source;
    struct exanest_target target, address;
    uint64_t data[2];
    uint32_t bytes;
    uint16_t pdid;
    uint8_t path;
    bool notify, read, ended;
    int doom;                 /* A fate of each of its blocks; -1: none. */
    uint32_t channel;         /* A write's: page * 64 + channel. */
    uint32_t served;          /* Times that its first line was cut: 1, also if asked twice. */
    uint32_t delivered;       /* Lines of which all arrived. */
    uint32_t notified, again; /* Notifications; how many more there may be. */
    uint16_t tid[RIG_LINES];
    uint8_t sent[RIG_LINES]; /* Instances. */
    bool arrived[RIG_LINES];
};

/* A descriptor of the send unit. */
struct rig_block {
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    bool started, error;
    uint8_t controls; /* Stores of its control packet. */
    uint8_t fate;
    uint64_t control[3];
    uint64_t done_at;
};

struct rig_event {
    uint64_t at;
    uint8_t kind; /* 0: free. */
    uint8_t status;
    uint16_t tid, sequence;
};

enum rig_kind {
    RIG_RESPONSE = 1,
    RIG_ARRIVAL,
    RIG_MAPPED,
    RIG_WAKE
};

struct rig {
    struct exanest_firmware firmware;
    struct exanest_scratchpad pad;
    uint64_t now;
    struct prng prng;
    bool random;      /* Fates by chance, not by script; stores stall. */
    uint32_t trouble; /* Percent of blocks with another fate than RIG_ACK. */
    uint8_t script[64];
    uint32_t scripted, played;
    uint64_t pl_request_reads, sleeps, stores, steps, control_at, w3_at, w3_first_at;
    bool last_hint;
    bool woken;     /* By RIG_WAKE. */
    uint64_t limit; /* No sleep goes beyond it; 0: none. */
    uint32_t responses, requests, request_lane;
    uint32_t response_ring[4096]; /* Deep: the network is not part of this. */
    struct exanest_word request_ring[RIG_FIFO][EXANEST_READ_REQUEST_WORDS];
    uint32_t event_count;
    struct rig_event events[RIG_EVENTS];
    struct rig_block blocks[EXANEST_TIDS];
    uint32_t transfer_count;
    struct rig_transfer transfers[RIG_TRANSFERS];
    uint64_t fates[RIG_FATES];
};

static inline struct rig *rig_new(const struct exanest_firmware_config *config, uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    prng_init(&rig->prng, seed);
    exanest_firmware_init(&rig->firmware, config);
    for (uint32_t page = 0; page < EXANEST_PAGES; page++) {
        assert_true(exanest_firmware_bind(&rig->firmware, page, (uint16_t)(1000 + page)));
        assert_true(exanest_scratchpad_bind(&rig->pad, page, (uint16_t)(1000 + page)));
    }
    return rig;
}

static inline void rig_event(struct rig *rig, uint64_t at, enum rig_kind kind, uint16_t tid,
                             uint16_t sequence, uint8_t status)
{
    assert_true(rig->event_count < RIG_EVENTS);
    rig->events[rig->event_count++] = (struct rig_event){at, (uint8_t)kind, status, tid, sequence};
}

/* -- Transfers ----------------------------------------------------------------------------------*/

/* A transfer of its own 16 MB at both ends, so that an address tells which one it is. */
static inline struct rig_transfer *rig_add(struct rig *rig, uint32_t source_offset,
                                           uint32_t target_offset, uint32_t bytes)
{
    assert_true(rig->transfer_count < RIG_TRANSFERS);
    const uint64_t base = (uint64_t)(rig->transfer_count + 1) << 24;
    struct rig_transfer *transfer = &rig->transfers[rig->transfer_count++];
    *transfer = (struct rig_transfer){
        .source = (UINT64_C(5) << 36) + base + source_offset,
        .target = {.coordinate = 1 + rig->transfer_count % 7, .va = base + target_offset},
        .address = {.coordinate = 1 + rig->transfer_count % 7, .va = base - 64},
        .data = {base + 1, rig->transfer_count},
        .bytes = bytes,
        .doom = -1,
    };
    return transfer;
}

static inline void rig_post(struct rig *rig, struct rig_transfer *transfer, uint32_t page,
                            uint32_t channel, bool notify, bool chain)
{
    transfer->pdid = (uint16_t)(1000 + page);
    transfer->channel = page * 64 + channel;
    transfer->notify = notify;
    const struct exanest_transfer posted = {.source = transfer->source,
                                            .target = transfer->target,
                                            .bytes = transfer->bytes,
                                            .notify = notify,
                                            .chain = chain,
                                            .path = transfer->path,
                                            .state = EXANEST_TRANSFER_POSTED,
                                            .address = transfer->address,
                                            .data = {transfer->data[0], transfer->data[1]},
                                            .doorbell = 1};
    assert_int_equal(exanest_scratchpad_post(&rig->pad, transfer->pdid, page, channel, &posted),
                     EXANEST_PAD_GOOD);
}

static inline struct exanest_transfer rig_state(const struct rig *rig,
                                                const struct rig_transfer *transfer)
{
    return exanest_transfer_decode(exanest_scratchpad_read(&rig->pad, transfer->channel));
}

/* A request comes to the mailbox; false: it is full. */
static inline bool rig_request(struct rig *rig, struct rig_transfer *transfer, uint32_t page,
                               uint32_t coordinate, uint16_t channel, uint32_t request_id)
{
    if (rig->requests == RIG_FIFO) {
        return false;
    }
    transfer->pdid = (uint16_t)(1000 + page);
    transfer->notify = true;
    transfer->read = true;
    transfer->data[1] = request_id;
    const struct exanest_read_request request = {.source = transfer->source,
                                                 .target = transfer->target,
                                                 .address = transfer->address,
                                                 .data = transfer->data[0],
                                                 .bytes = transfer->bytes,
                                                 .request_id = request_id,
                                                 .pdid = transfer->pdid,
                                                 .coordinate = coordinate,
                                                 .channel = channel};
    exanest_read_request_encode(&request, rig->request_ring[rig->requests++]);
    return true;
}

/* -- Blocks -------------------------------------------------------------------------------------*/

static inline uint8_t rig_choose_fate(struct rig *rig, const struct rig_transfer *transfer)
{
    uint8_t fate = RIG_ACK;
    if (transfer->doom >= 0) {
        fate = (uint8_t)transfer->doom;
    } else if (rig->random) {
        fate = prng_below(&rig->prng, 100) < rig->trouble
                   ? (uint8_t)(1 + prng_below(&rig->prng, RIG_FATES - 1))
                   : RIG_ACK;
    } else if (rig->played < rig->scripted) {
        fate = rig->script[rig->played++];
    }
    rig->fates[fate]++;
    return fate;
}

/* Foretells the outcome of a block that was started. */
static inline void rig_foretell(struct rig *rig, uint16_t tid, uint16_t sequence)
{
    struct rig_block *block = &rig->blocks[tid];
    const uint64_t timeout = rig->firmware.config.block_timeout_ns;
    const uint64_t jitter = rig->random ? prng_below(&rig->prng, 9000) : 0;
    const uint64_t answer = rig->now + RIG_ANSWER_NS + jitter;
    block->done_at = rig->now + RIG_SEND_NS;
    switch ((enum rig_fate)block->fate) {
    case RIG_ACK:
    case RIG_ACK_LOST:
    case RIG_ACK_TWICE: rig_event(rig, answer, RIG_ARRIVAL, tid, sequence, EXANEST_ACK); break;
    case RIG_ACK_LATE:
        rig_event(rig, rig->now + timeout + 300000, RIG_ARRIVAL, tid, sequence, EXANEST_ACK);
        break;
    case RIG_NACK_EARLY:
        rig_event(rig, rig->now + 3000, RIG_RESPONSE, tid, sequence, EXANEST_NACK_CRC);
        block->done_at = rig->now + 50000;
        break;
    case RIG_NACK_OFTEN:
        for (uint32_t i = 0; i < 5; i++) {
            rig_event(rig, rig->now + 3000 + 400 * i, RIG_RESPONSE, tid, sequence,
                      EXANEST_NACK_NO_CONTEXT);
        }
        break;
    case RIG_FAULT: rig_event(rig, rig->now + 60000, RIG_MAPPED, tid, sequence, 0); break;
    case RIG_SLOW:
        block->done_at = rig->now + 2 * timeout + 500000;
        rig_event(rig, block->done_at + 2000, RIG_ARRIVAL, tid, sequence, EXANEST_ACK);
        break;
    case RIG_FAULT_MUTE:
    case RIG_LOST:
    case RIG_FATES: break;
    case RIG_NACK_FAULT:
    case RIG_NACK_NO_CONTEXT:
    case RIG_NACK_CRC:
    case RIG_NACK_DECODE: rig_event(rig, answer, RIG_RESPONSE, tid, sequence, block->fate); break;
    }
    block->error = block->fate == RIG_FAULT || block->fate == RIG_FAULT_MUTE;
}

static inline struct rig_transfer *rig_transfer_at(struct rig *rig, uint64_t va)
{
    const uint64_t index = (va >> 24) - 1;
    assert_true(index < rig->transfer_count);
    return &rig->transfers[index];
}

static inline uint32_t rig_line(const struct rig_transfer *transfer, uint64_t va)
{
    return (uint32_t)(va / 16384 - transfer->target.va / 16384);
}

static inline uint32_t rig_lines(const struct rig_transfer *transfer)
{
    return rig_line(transfer, transfer->target.va + transfer->bytes - 1) + 1;
}

/* The block is exactly as its line says; and the notification is on the last one alone (EXA-44). */
static inline void rig_judge_block(struct rig *rig, uint16_t tid,
                                   const struct exanest_descriptor *descriptor)
{
    struct rig_transfer *transfer = rig_transfer_at(rig, descriptor->target.va);
    const uint32_t line = rig_line(transfer, descriptor->target.va);
    const uint64_t end = transfer->target.va + transfer->bytes;
    const uint64_t line_at = (transfer->target.va / 16384 + line) * 16384;
    const uint64_t from = line == 0 ? transfer->target.va : line_at;
    const uint64_t to = line_at + 16384 < end ? line_at + 16384 : end;
    const bool restarts = rig->firmware.config.resend == EXANEST_RESEND_TRANSFER;
    assert_true(descriptor->target.va == from && descriptor->bytes == to - from);
    assert_true(descriptor->source == transfer->source + (from - transfer->target.va));
    assert_int_equal(descriptor->target.coordinate, transfer->target.coordinate);
    assert_int_equal(descriptor->pdid, transfer->pdid);
    assert_int_equal(descriptor->notify, transfer->notify && to == end);
    assert_false(descriptor->waits || descriptor->chained);
    assert_false(transfer->ended);
    if (descriptor->notify && !rig->firmware.config.notifies_early) {
        assert_int_equal(transfer->delivered, rig_lines(transfer) - 1 + transfer->arrived[line]);
    }
    if (transfer->sent[line] == 0) {
        transfer->served += line == 0;
    } else {
        assert_true(restarts || transfer->tid[line] == tid); /* No byte is cut twice. */
    }
    transfer->tid[line] = tid;
    transfer->sent[line]++;
    assert_true(restarts || transfer->sent[line] <= 1 + rig->firmware.config.retries_max);
    rig->blocks[tid].fate = rig_choose_fate(rig, transfer);
}

/* The send unit's registers. */
static inline void rig_store(struct rig *rig, const struct exanest_firmware_action *action)
{
    struct rig_block *block = &rig->blocks[action->tid];
    rig->stores++;
    if (action->control) {
        const uint32_t bytes = rig->firmware.config.control_bytes;
        assert_int_equal(action->address,
                         0x8000 + action->path * 1024 * bytes + action->tid * bytes);
        assert_true(block->started && block->controls < 3 && action->word == block->controls);
        block->control[block->controls++] = action->value;
        rig->control_at = rig->now;
        return;
    }
    assert_int_equal(action->address, action->tid * 32 + action->word * 8);
    /* A started descriptor must not be changed (EXA-51). */
    assert_true(!block->started || rig->now >= block->done_at);
    block->words[action->word] = action->value;
    if (action->word == 2) {
        const struct exanest_descriptor descriptor = exanest_descriptor_decode(block->words);
        block->started = true;
        block->controls = 0;
        rig->w3_at = rig->now;
        rig->w3_first_at = rig->w3_first_at == 0 ? rig->now : rig->w3_first_at;
        rig_judge_block(rig, action->tid, &descriptor);
        rig_foretell(rig, action->tid, descriptor.sequence);
    }
}

static inline uint64_t rig_descriptor(const struct rig *rig, uint32_t tid)
{
    const struct rig_block *block = &rig->blocks[tid];
    const bool over = block->started && rig->now >= block->done_at;
    return block->words[2] | (uint64_t)(over && !block->error) << 57 |
           (uint64_t)(over && block->error) << 60;
}

/* -- The receiver -------------------------------------------------------------------------------*/

static inline void rig_respond(struct rig *rig, uint16_t tid, uint16_t sequence, uint8_t status)
{
    assert_true(rig->responses < COUNT_OF(rig->response_ring));
    rig->response_ring[rig->responses++] = exanest_response_encode(&(struct exanest_response){
        .valid = true, .status = status, .tid = tid, .sequence = sequence});
}

/* All packets of an instance have come. */
static inline void rig_arrive(struct rig *rig, const struct rig_event *event)
{
    struct rig_block *block = &rig->blocks[event->tid];
    const struct exanest_descriptor descriptor = exanest_descriptor_decode(block->words);
    if (descriptor.sequence != event->sequence) {
        rig_respond(rig, event->tid, event->sequence, EXANEST_ACK); /* A former instance. */
        return;
    }
    if (descriptor.notify && block->controls < 3) {
        rig_event(rig, rig->now + 500, RIG_ARRIVAL, event->tid, event->sequence, EXANEST_ACK);
        return;
    }
    struct rig_transfer *transfer = rig_transfer_at(rig, descriptor.target.va);
    const uint32_t line = rig_line(transfer, descriptor.target.va);
    transfer->delivered += !transfer->arrived[line];
    transfer->arrived[line] = true;
    if (descriptor.notify) {
        transfer->notified++;
        transfer->again += block->fate == RIG_ACK_LOST || block->fate == RIG_ACK_LATE;
        assert_true(block->control[0] == exanest_target_encode(transfer->address));
        assert_true(block->control[1] == transfer->data[0]);
        assert_true(block->control[2] == transfer->data[1]);
    }
    if (block->fate != RIG_ACK_LOST) {
        rig_respond(rig, event->tid, event->sequence, EXANEST_ACK);
    }
    if (block->fate == RIG_ACK_TWICE) {
        rig_event(rig, rig->now + 400000, RIG_RESPONSE, event->tid, event->sequence, EXANEST_ACK);
    }
}

#endif
