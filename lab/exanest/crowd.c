/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/crowd.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define SAMPLE_PS     UINT64_C(5000000)
#define STANDSTILL_PS (UINT64_C(3) * EXANEST_PATIENCE_CYCLES * 6667)
#define END_PS        UINT64_C(1000000000000) /* Retries end long before. */

#define SOURCE_BYTES (2u * EXANEST_CROWD_BYTES_MAX) /* All that an FPGA sends is of these. */
#define NOTE_BYTES   16u
#define NOTED_ONE_OF 4u

/* -- The plan -----------------------------------------------------------------------------------*/

/* A place for `bytes` bytes at FPGA `to`, a few behind the last one's. */
static uint64_t place_for(struct exanest_crowd *crowd, struct prng *prng, uint32_t to,
                          uint32_t bytes)
{
    const uint64_t va = crowd->used[to] + prng_below(prng, EXANEST_WORD_BYTES);
    crowd->used[to] = va + bytes;
    return va;
}

static void plan_one(struct exanest_crowd *crowd, struct prng *prng, uint32_t fpga, bool reads)
{
    uint32_t other;
    do {
        other = (uint32_t)prng_below(prng, crowd->fpgas);
    } while (other == fpga);
    struct exanest_crowd_transfer *transfer = &crowd->transfers[crowd->count];
    *transfer = (struct exanest_crowd_transfer){
        .from = reads ? other : fpga,
        .to = reads ? fpga : other,
        .bytes = 1 + (uint32_t)prng_below(prng, EXANEST_CROWD_BYTES_MAX),
        .id = ++crowd->count,
        .source = EXANEST_MEMORY_VA + prng_below(prng, SOURCE_BYTES - EXANEST_CROWD_BYTES_MAX),
        .reads = reads,
    };
    transfer->va = place_for(crowd, prng, transfer->to, transfer->bytes);
    if (reads || prng_below(prng, NOTED_ONE_OF) == 0) {
        transfer->notify_va = place_for(crowd, prng, transfer->to, NOTE_BYTES);
    }
    crowd->bytes += transfer->bytes;
}

void exanest_crowd_plan(struct exanest_crowd *crowd, const uint8_t size[3], uint32_t writes,
                        uint64_t seed)
{
    CHECK(writes >= 1 && writes <= EXANEST_WRITE_CHANNELS);
    struct prng prng;
    prng_init(&prng, seed);
    *crowd = (struct exanest_crowd){.fpgas = 4u * size[0] * size[1] * size[2], .writes = writes};
    exanest_order_open(&crowd->order, size);
    crowd->transfers = calloc((size_t)crowd->fpgas * (writes + 1), sizeof(*crowd->transfers));
    crowd->used = calloc(crowd->fpgas, sizeof(*crowd->used));
    CHECK(crowd->transfers != NULL && crowd->used != NULL);
    for (uint32_t i = 0; i < crowd->fpgas; i++) {
        crowd->used[i] = EXANEST_MEMORY_VA + SOURCE_BYTES;
    }
    for (uint32_t i = 0; i < crowd->fpgas; i++) {
        for (uint32_t k = 0; k < writes; k++) {
            plan_one(crowd, &prng, i, false);
        }
        plan_one(crowd, &prng, i, true);
    }
}

uint64_t exanest_crowd_process_bytes(const struct exanest_crowd *crowd)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < crowd->fpgas; i++) {
        most = crowd->used[i] > most ? crowd->used[i] : most;
    }
    return (most - EXANEST_MEMORY_VA + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES * SIM_PAGE_BYTES;
}

void exanest_crowd_close(struct exanest_crowd *crowd)
{
    exanest_order_close(&crowd->order);
    free(crowd->transfers);
    free(crowd->used);
    free(crowd->samples);
}

/* -- Posting ------------------------------------------------------------------------------------*/

static void fill_sources(struct exanest_crowd *crowd, struct exanest_machine *machine)
{
    for (uint32_t i = 0; i < crowd->fpgas; i++) {
        uint8_t *at = exanest_machine_bytes(machine, i, 0, EXANEST_MEMORY_VA, SOURCE_BYTES);
        for (uint32_t k = 0; k < SOURCE_BYTES; k += sizeof(uint64_t)) {
            const uint64_t value = prng_next(&machine->sim->prng);
            memcpy(at + k, &value, sizeof(value));
        }
        exanest_fabric_fpga(&machine->fabric, i)->order = &crowd->order;
    }
}

static void post_write(struct exanest_crowd *crowd, struct exanest_machine *machine,
                       const struct exanest_crowd_transfer *transfer, uint32_t channel)
{
    const uint32_t links = (crowd->writes + EXANEST_CROWD_CHAINS - 1) / EXANEST_CROWD_CHAINS;
    const struct exanest_write write = {
        .to = transfer->to,
        .source = transfer->source,
        .va = transfer->va,
        .notify_va = transfer->notify_va,
        .bytes = transfer->bytes,
        .chain = channel % links != 0,
        .data = {transfer->id, ~(uint64_t)transfer->id},
    };
    exanest_machine_write(machine, transfer->from, 0, channel, &write);
}

static void post_read(struct exanest_machine *machine,
                      const struct exanest_crowd_transfer *transfer)
{
    const struct exanest_read read = {
        .owner = transfer->from,
        .source = transfer->source,
        .va = transfer->va,
        .notify_va = transfer->notify_va,
        .bytes = transfer->bytes,
        .request_id = transfer->id,
        .data = transfer->id,
    };
    const bool posted = exanest_machine_read(machine, transfer->to, 0, &read);
    CHECK(posted);
}

static void post_all(struct exanest_crowd *crowd, struct exanest_machine *machine)
{
    for (uint32_t i = 0; i < crowd->count; i++) {
        const struct exanest_crowd_transfer *transfer = &crowd->transfers[i];
        if (transfer->reads) {
            post_read(machine, transfer);
        } else {
            post_write(crowd, machine, transfer, i % (crowd->writes + 1));
        }
    }
}

/* -- Running ------------------------------------------------------------------------------------*/

struct progress {
    uint64_t moved;   /* Words through crossbars, */
    uint64_t written; /* and to memory. */
    bool rests;
};

static struct progress look(struct exanest_machine *machine)
{
    struct progress progress = {.rests = true};
    for (uint32_t i = 0; i < exanest_fabric_fpgas(&machine->fabric); i++) {
        const struct exanest_fpga *fpga = exanest_fabric_fpga(&machine->fabric, i);
        progress.moved += fpga->crossbar.counters.words;
        progress.written += fpga->memory.words_written;
        progress.rests = progress.rests && exanest_fpga_idle(fpga);
    }
    return progress;
}

static void add_sample(struct exanest_crowd *crowd, uint64_t written)
{
    if (crowd->sample_count == crowd->sample_places) {
        crowd->sample_places = crowd->sample_places == 0 ? 256 : 2 * crowd->sample_places;
        crowd->samples = realloc(crowd->samples, crowd->sample_places * sizeof(*crowd->samples));
        CHECK(crowd->samples != NULL);
    }
    crowd->samples[crowd->sample_count++] = written;
}

/* Until nothing happens any more. False: because words stand somewhere. */
static bool play(struct exanest_crowd *crowd, struct exanest_machine *machine)
{
    struct sim *sim = machine->sim;
    struct progress before = {0};
    uint64_t moved_ps = 0;
    while (sim_next_ps(sim) != UINT64_MAX && sim->now_ps < END_PS) {
        sim_run_until(sim, sim->now_ps + SAMPLE_PS);
        const struct progress progress = look(machine);
        add_sample(crowd, progress.written);
        if (progress.moved != before.moved || progress.rests) {
            moved_ps = sim->now_ps;
        } else if (sim->now_ps - moved_ps > STANDSTILL_PS) {
            return false;
        }
        before = progress;
    }
    return sim_next_ps(sim) == UINT64_MAX;
}

/* When a quarter, or three, of all words were written, in samples. */
static double sample_of(const struct exanest_crowd *crowd, uint64_t quarters)
{
    const uint64_t wanted = crowd->samples[crowd->sample_count - 1] * quarters / 4;
    uint64_t before = 0;
    for (uint32_t i = 0; i < crowd->sample_count; i++) {
        const uint64_t written = crowd->samples[i];
        if (written >= wanted && written > before) {
            return i + (double)(wanted - before) / (double)(written - before);
        }
        before = written;
    }
    return crowd->sample_count;
}

/* -- Results ------------------------------------------------------------------------------------*/

/* A read request carries eight bytes of data only, which the owner's R5 sends twice. */
static void note_of(const struct exanest_crowd_transfer *transfer, uint64_t data[2])
{
    data[0] = transfer->id;
    data[1] = transfer->reads ? transfer->id : ~(uint64_t)transfer->id;
}

static bool is_done(struct exanest_crowd *crowd, struct exanest_machine *machine, uint32_t i)
{
    const struct exanest_crowd_transfer *transfer = &crowd->transfers[i];
    if (transfer->notify_va != 0) {
        uint64_t data[2];
        note_of(transfer, data);
        const uint8_t *at =
            exanest_machine_bytes(machine, transfer->to, 0, transfer->notify_va, NOTE_BYTES);
        if (memcmp(at, data, sizeof(data)) != 0) {
            return false;
        }
    }
    return transfer->reads ||
           exanest_r5_transfer(&machine->r5s[transfer->from], 0, i % (crowd->writes + 1)).state ==
               EXANEST_TRANSFER_DONE;
}

/* Has the FPGA exactly the bytes that were sent there? */
static bool is_right(struct exanest_crowd *crowd, struct exanest_machine *machine, uint32_t fpga)
{
    const uint64_t begin = EXANEST_MEMORY_VA + SOURCE_BYTES;
    const uint64_t bytes = machine->config.process_bytes - SOURCE_BYTES;
    uint8_t *expected = calloc(1, bytes);
    CHECK(expected != NULL);
    for (uint32_t i = 0; i < crowd->count; i++) {
        const struct exanest_crowd_transfer *transfer = &crowd->transfers[i];
        if (transfer->to != fpga) {
            continue;
        }
        memcpy(expected + (transfer->va - begin),
               exanest_machine_bytes(machine, transfer->from, 0, transfer->source, transfer->bytes),
               transfer->bytes);
        if (transfer->notify_va != 0) {
            uint64_t data[2];
            note_of(transfer, data);
            memcpy(expected + (transfer->notify_va - begin), data, sizeof(data));
        }
    }
    const bool right =
        memcmp(expected, exanest_machine_bytes(machine, fpga, 0, begin, bytes), bytes) == 0;
    free(expected);
    return right;
}

static void add_counters(struct exanest_crowd_result *result, struct exanest_machine *machine,
                         uint32_t number)
{
    const struct exanest_fpga *fpga = exanest_fabric_fpga(&machine->fabric, number);
    const struct exanest_firmware_counters *firmware = &machine->r5s[number].firmware.counters;
    result->cycles += fpga->counters.cycles;
    result->words += fpga->crossbar.counters.words;
    result->packets += fpga->crossbar.counters.packets;
    result->resent += firmware->retransmits;
    result->timeouts += firmware->timeouts;
    result->unanswered += fpga->receiver.counters.unanswered;
    if (fpga->receiver.replies.longest > result->longest) {
        result->longest = fpga->receiver.replies.longest;
    }
}

struct exanest_crowd_result exanest_crowd_run(struct exanest_crowd *crowd,
                                              struct exanest_machine *machine)
{
    fill_sources(crowd, machine);
    post_all(crowd, machine);
    struct exanest_crowd_result result = {.transfers = crowd->count};
    result.stands = !play(crowd, machine);
    result.idle = exanest_machine_idle(machine);
    result.late = crowd->order.late;
    for (uint32_t i = 0; i < crowd->count; i++) {
        result.lost += !is_done(crowd, machine, i);
    }
    for (uint32_t i = 0; i < crowd->fpgas; i++) {
        result.wrong += !is_right(crowd, machine, i);
        add_counters(&result, machine, i);
    }
    const double us = (sample_of(crowd, 3) - sample_of(crowd, 1)) * (double)SAMPLE_PS / 1e6;
    result.gbps = us > 0 ? (double)crowd->bytes * 8 / 2 / us / 1000 / crowd->fpgas : 0;
    return result;
}
