/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The throughput of programs that run side by side.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/exanest/experiments.h"

struct flows {
    struct exanest_world *world;
    const struct exanest_program_config *configs;
    struct exanest_program *programs;
    uint32_t count;
};

static uint32_t sender_of(const struct exanest_program_config *config)
{
    return config->writes ? config->fpga : config->other;
}

static uint32_t target_of(const struct exanest_program_config *config)
{
    return config->writes ? config->other : config->fpga;
}

static uint8_t *bytes_at(const struct flows *flows, uint32_t fpga, uint32_t program, uint64_t va)
{
    const struct exanest_program_config *config = &flows->configs[program];
    return exanest_machine_bytes(&flows->world->machine, fpga, config->process, va, config->bytes);
}

static void open_programs(struct flows *flows)
{
    struct prng *prng = &flows->world->sim.prng;
    flows->programs = calloc(flows->count, sizeof(*flows->programs));
    CHECK(flows->programs != NULL);
    for (uint32_t i = 0; i < flows->count; i++) {
        const struct exanest_program_config *config = &flows->configs[i];
        uint8_t *source = bytes_at(flows, sender_of(config), i, exanest_program_source());
        for (uint32_t k = 0; k < config->bytes; k++) {
            source[k] = (uint8_t)prng_next(prng);
        }
        exanest_program_open(&flows->programs[i], &flows->world->machine, config);
    }
}

/* Words of data that have been written, or that will have been. */
static uint64_t words_of(const struct flows *flows, bool in_the_end)
{
    uint64_t words = 0;
    for (uint32_t i = 0; i < flows->count; i++) {
        const struct exanest_program_config *config = &flows->configs[i];
        const uint32_t target = target_of(config);
        if (in_the_end) {
            words += config->count * ((config->bytes + UINT64_C(15)) / EXANEST_WORD_BYTES);
            continue;
        }
        bool again = false;
        for (uint32_t k = 0; k < i; k++) {
            again = again || target_of(&flows->configs[k]) == target;
        }
        if (!again) {
            const struct exanest_fpga *fpga =
                exanest_fabric_fpga(&flows->world->machine.fabric, target);
            words += fpga->memory.words_written - fpga->receiver.counters.notified;
        }
    }
    return words;
}

/* Returns when. */
static uint64_t run_to_words(const struct flows *flows, uint64_t words)
{
    struct sim *sim = &flows->world->sim;
    while (words_of(flows, false) < words && sim_step(sim)) {
    }
    return sim->now_ps;
}

static bool over(const struct flows *flows)
{
    bool all = true;
    for (uint32_t i = 0; i < flows->count; i++) {
        all = all && exanest_program_over(&flows->programs[i]);
    }
    return all;
}

static void check(const struct flows *flows)
{
    for (uint32_t i = 0; i < flows->count; i++) {
        const struct exanest_program_config *config = &flows->configs[i];
        const uint8_t *source = bytes_at(flows, sender_of(config), i, exanest_program_source());
        const uint8_t *target =
            bytes_at(flows, target_of(config), i, exanest_program_target(config->bytes));
        if (!exanest_program_over(&flows->programs[i]) || flows->programs[i].failed != 0) {
            lab_fail(flows->world->run, "program %u stopped after %u of %u transfers", i,
                     flows->programs[i].ended, config->count);
        } else if (memcmp(source, target, config->bytes) != 0) {
            lab_fail(flows->world->run, "the bytes of program %u arrived wrong", i);
        }
    }
}

struct exanest_flows exanest_flows_of(struct lab_run *run,
                                      const struct exanest_machine_config *config,
                                      const struct exanest_program_config *programs, uint32_t count)
{
    struct exanest_machine_config sized = *config;
    uint64_t sum_ps = 0, transfers = 0;
    sized.process_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t bytes = exanest_program_memory(programs[i].bytes);
        sized.process_bytes = bytes > sized.process_bytes ? bytes : sized.process_bytes;
    }
    struct flows flows = {
        .world = exanest_world_begin(run, &sized), .configs = programs, .count = count};
    open_programs(&flows);
    const uint64_t words = words_of(&flows, true);
    const uint64_t middle_ps = run_to_words(&flows, words / 2);
    const uint64_t end_ps = run_to_words(&flows, words);
    while (!over(&flows) && sim_step(&flows.world->sim)) {
    }
    check(&flows);
    for (uint32_t i = 0; i < count; i++) {
        sum_ps += flows.programs[i].sum_ps;
        transfers += flows.programs[i].ended;
    }
    const struct exanest_flows result = {
        .gbps = end_ps == middle_ps
                    ? 0
                    : (double)(words - words / 2) * 128 * 1000 / (double)(end_ps - middle_ps),
        .us = transfers == 0 ? 0 : (double)sum_ps / (double)transfers / 1e6,
    };
    free(flows.programs);
    exanest_world_end(flows.world);
    return result;
}

double exanest_transfer_us(struct lab_run *run, const struct exanest_machine_config *config,
                           uint32_t fpga, uint32_t other, bool writes, uint32_t bytes)
{
    const struct exanest_program_config program =
        exanest_program_default(fpga, other, writes, bytes);
    return exanest_flows_of(run, config, &program, 1).us;
}
