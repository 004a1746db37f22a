/* SPDX-License-Identifier: BSD-2-Clause
 *
 * receiver_rig - a receiver with a memory that takes its time and a switch that stalls, for tests.
 *
 * Memory has RIG_DOMAINS domains of RIG_BYTES, beginning at address 0. A burst has the answer that
 * stands next in `planned` (OKAY if none does), and is done as a whole if that is OKAY. A write
 * that is not OKAY does nothing.
 */
#ifndef HARDWARE_EXANEST_RECEIVER_RIG_H
#define HARDWARE_EXANEST_RECEIVER_RIG_H

#include <stdlib.h>

#include "base/prng.h"
#include "hardware/exanest/receiver.h"
#include "hardware/exanest/test_beats.h"

#define RIG_COORDINATE 0x1234u
#define RIG_DOMAINS    2u
#define RIG_BYTES      65536u
#define RIG_BURSTS     64u
#define RIG_REPLIES    64u

struct rig {
    struct exanest_receiver receiver;
    struct prng prng;
    bool stalls; /* Memory and switch have times at which they take nothing. */
    bool deaf;   /* The switch takes nothing at all. */
    uint32_t memory_cycles;
    uint64_t cycle, first_write_cycle;
    uint8_t memory[RIG_DOMAINS][RIG_BYTES];
    uint8_t planned[RIG_BURSTS]; /* enum exanest_axi_response. */
    uint32_t planned_head, planned_tail;
    struct {
        uint64_t due;
        uint8_t response;
    } bursts[RIG_BURSTS];
    uint32_t burst_head, burst_tail;
    struct exanest_memory_write words[EXANEST_PAYLOAD_WORDS_MAX + 1]; /* The burst under way. */
    uint32_t word_count;
    uint64_t outside; /* Writes outside of the memory, or out of a burst. */
    struct test_sent sending;
    struct test_sent replies[RIG_REPLIES];
    uint32_t reply_count;
    bool bad_reply;
};

static inline struct rig *rig_new(const struct exanest_receiver_parameters *parameters,
                                  uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    CHECK(rig != NULL);
    exanest_receiver_init(&rig->receiver, parameters);
    prng_init(&rig->prng, seed);
    rig->memory_cycles = 10;
    return rig;
}

static inline void rig_plan(struct rig *rig, enum exanest_axi_response response)
{
    CHECK(rig->planned_tail - rig->planned_head < RIG_BURSTS);
    rig->planned[rig->planned_tail++ % RIG_BURSTS] = (uint8_t)response;
}

static inline void rig_do_burst(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->word_count; i++) {
        const struct exanest_memory_write *write = &rig->words[i];
        if (write->lanes != 0 &&
            (write->pdid >= RIG_DOMAINS || write->va + EXANEST_WORD_BYTES > RIG_BYTES)) {
            rig->outside++;
            continue;
        }
        for (uint32_t byte = 0; byte < EXANEST_WORD_BYTES; byte++) {
            if (write->lanes >> byte & 1) {
                rig->memory[write->pdid][write->va + byte] = ((const uint8_t *)&write->word)[byte];
            }
        }
    }
}

static inline void rig_on_write(struct rig *rig, const struct exanest_memory_write *write)
{
    rig->outside += write->first != (rig->word_count == 0) || write->va % EXANEST_WORD_BYTES != 0;
    CHECK(rig->word_count < COUNT_OF(rig->words));
    rig->words[rig->word_count++] = *write;
    if (!write->last) {
        return;
    }
    const uint8_t response = rig->planned_head == rig->planned_tail
                                 ? EXANEST_AXI_OKAY
                                 : rig->planned[rig->planned_head++ % RIG_BURSTS];
    if (response == EXANEST_AXI_OKAY) {
        rig_do_burst(rig);
    }
    rig->word_count = 0;
    CHECK(rig->burst_tail - rig->burst_head < RIG_BURSTS);
    rig->bursts[rig->burst_tail % RIG_BURSTS].response = response;
    rig->bursts[rig->burst_tail++ % RIG_BURSTS].due = rig->cycle + rig->memory_cycles;
}

static inline void rig_memory(struct rig *rig)
{
    struct exanest_memory_write write;
    if ((!rig->stalls || prng_below(&rig->prng, 3) != 0) &&
        exanest_receiver_next_write(&rig->receiver, &write)) {
        rig->first_write_cycle = rig->first_write_cycle == 0 ? rig->cycle : rig->first_write_cycle;
        rig_on_write(rig, &write);
    }
    if (rig->burst_head != rig->burst_tail &&
        rig->bursts[rig->burst_head % RIG_BURSTS].due <= rig->cycle) {
        exanest_receiver_on_write_response(
            &rig->receiver,
            (enum exanest_axi_response)rig->bursts[rig->burst_head++ % RIG_BURSTS].response);
    }
}

static inline void rig_switch(struct rig *rig)
{
    struct exanest_beat beat;
    if (rig->deaf || (rig->stalls && prng_below(&rig->prng, 3) == 0) ||
        !exanest_receiver_offer(&rig->receiver, &beat)) {
        return;
    }
    exanest_receiver_taken(&rig->receiver);
    const int whole = test_collect(&rig->sending, &beat);
    rig->bad_reply |= whole < 0;
    if (whole == 1) {
        CHECK(rig->reply_count < RIG_REPLIES);
        rig->replies[rig->reply_count++] = rig->sending;
    }
}

static inline void rig_cycle(struct rig *rig)
{
    rig->cycle++;
    rig_memory(rig);
    rig_switch(rig);
    exanest_receiver_step(&rig->receiver);
}

/* False: the beat was not taken in a thousand cycles. */
static inline bool rig_beat(struct rig *rig, const struct exanest_beat *beat)
{
    for (uint32_t i = 0; i < 1000; i++) {
        if (exanest_receiver_ready(&rig->receiver, beat)) {
            exanest_receiver_take(&rig->receiver, beat);
            rig_cycle(rig);
            return true;
        }
        exanest_receiver_waits(&rig->receiver);
        rig_cycle(rig);
    }
    return false;
}

static inline bool rig_send(struct rig *rig, const struct test_packet *packet)
{
    for (uint32_t i = 0; i < packet->count; i++) {
        if (!rig_beat(rig, &packet->beats[i])) {
            return false;
        }
        if (rig->stalls && prng_below(&rig->prng, 8) == 0) {
            rig_cycle(rig);
        }
    }
    return true;
}

/* Until nothing is left to do. */
static inline bool rig_drain(struct rig *rig)
{
    for (uint32_t i = 0; i < 10000; i++) {
        if (exanest_receiver_idle(&rig->receiver)) {
            return true;
        }
        rig_cycle(rig);
    }
    return false;
}

#endif
