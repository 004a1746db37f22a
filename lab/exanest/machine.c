/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct exanest_machine_config exanest_machine_default(uint32_t x, uint32_t y, uint32_t z)
{
    return (struct exanest_machine_config){
        .fabric = exanest_fabric_default(x, y, z),
        .firmware = exanest_firmware_defaults(),
        .firmware_cores = 1,
        .processes = 1,
        .process_bytes = 1 << 20,
        .fault_ports = EXANEST_FAULT_PORTS,
    };
}

static uint16_t domain_of(uint32_t process)
{
    return (uint16_t)(process + 1);
}

static void open_process(struct exanest_machine *machine, uint32_t fpga, uint32_t process)
{
    struct exanest_fpga *at = exanest_fabric_fpga(&machine->fabric, fpga);
    const bool mapped = exanest_memory_map(&at->memory, domain_of(process), EXANEST_MEMORY_VA,
                                           machine->config.process_bytes, true);
    CHECK(mapped);
    exanest_r5_bind(&machine->r5s[fpga], process, domain_of(process));
    exanest_packetizer_give(&at->packetizer, process, domain_of(process));
}

static bool any_faults(const struct sim_faults *faults)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < SIM_FAULT_COUNT; i++) {
        any |= faults->millionths[i];
    }
    return any != 0;
}

void exanest_machine_open(struct exanest_machine *machine,
                          const struct exanest_machine_config *config, struct sim *sim)
{
    memset(machine, 0, sizeof(*machine));
    CHECK(config->processes >= 1 && config->processes <= EXANEST_PROCESSES_MAX);
    machine->config = *config;
    machine->faults = config->faults;
    machine->sim = sim;
    struct exanest_fabric_config fabric = config->fabric;
    fabric.fpga.memory.bytes = config->processes * config->process_bytes;
    fabric.fpga.exadma.takes_pieces = config->firmware.resend == EXANEST_RESEND_PACKET;
    exanest_fabric_open(&machine->fabric, sim, &fabric);
    struct exanest_firmware_config firmware = config->firmware;
    firmware.paths = fabric.links_per_pair;
    const uint32_t fpgas = exanest_fabric_fpgas(&machine->fabric);
    machine->r5s = calloc(fpgas, sizeof(*machine->r5s));
    CHECK(machine->r5s != NULL);
    for (uint32_t i = 0; i < fpgas; i++) {
        exanest_r5_open(&machine->r5s[i], &machine->fabric, i, &firmware, config->firmware_cores);
        for (uint32_t p = 0; p < config->processes; p++) {
            open_process(machine, i, p);
        }
        if (any_faults(&config->faults)) {
            exanest_fpga_misuse(exanest_fabric_fpga(&machine->fabric, i), config->fault_ports,
                                &machine->faults, &sim->prng);
        }
    }
}

void exanest_machine_close(struct exanest_machine *machine)
{
    exanest_fabric_close(&machine->fabric);
    free(machine->r5s);
}

uint8_t *exanest_machine_bytes(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                               uint64_t va, uint64_t bytes)
{
    uint8_t *at = exanest_memory_bytes(&exanest_fabric_fpga(&machine->fabric, fpga)->memory,
                                       domain_of(process), va, bytes);
    CHECK(at != NULL);
    return at;
}

static struct exanest_target target_at(struct exanest_machine *machine, uint32_t fpga, uint64_t va)
{
    return (struct exanest_target){exanest_fabric_fpga(&machine->fabric, fpga)->coordinate, va};
}

void exanest_machine_write(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                           uint32_t channel, const struct exanest_write *write)
{
    CHECK(channel < EXANEST_WRITE_CHANNELS);
    const struct exanest_transfer transfer = {
        .source = write->source,
        .target = target_at(machine, write->to, write->va),
        .bytes = write->bytes,
        .notify = write->notify_va != 0,
        .chain = write->chain,
        .path = write->path,
        .state = EXANEST_TRANSFER_POSTED,
        .address = target_at(machine, write->to, write->notify_va),
        .data = {write->data[0], write->data[1]},
        .doorbell = (uint64_t)++machine->generation << 1 | 1,
    };
    const enum exanest_pad_access access =
        exanest_r5_post(&machine->r5s[fpga], process, channel, &transfer);
    CHECK(access == EXANEST_PAD_GOOD);
}

void exanest_machine_watch(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                           uint64_t va, uint64_t bytes, struct sim_event *notice)
{
    struct exanest_fpga *at = exanest_fabric_fpga(&machine->fabric, fpga);
    CHECK(process < COUNT_OF(at->programs));
    exanest_memory_watch(&at->memory, domain_of(process), va, bytes);
    at->programs[process] = notice;
}

bool exanest_machine_zdma(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                          const struct exanest_write *write)
{
    const struct exanest_zdma_transfer transfer = {
        .source = write->source,
        .target = target_at(machine, write->to, write->va),
        .bytes = write->bytes,
        .pdid = domain_of(process),
    };
    const enum exanest_zdma_start start =
        exanest_zdma_start(&exanest_fabric_fpga(&machine->fabric, fpga)->zdma, &transfer);
    CHECK(start == EXANEST_ZDMA_STARTED || start == EXANEST_ZDMA_BUSY);
    exanest_fabric_wake(&machine->fabric, fpga);
    return start == EXANEST_ZDMA_STARTED;
}

bool exanest_machine_read_ready(struct exanest_machine *machine, uint32_t fpga, uint32_t process)
{
    const struct exanest_packetizer *packetizer =
        &exanest_fabric_fpga(&machine->fabric, fpga)->packetizer;
    const uint8_t phase = exanest_packetizer_state(packetizer, process).phase;
    return phase == EXANEST_CHANNEL_FREE || phase == EXANEST_CHANNEL_DONE ||
           phase == EXANEST_CHANNEL_FAILED;
}

void exanest_machine_read_over(struct exanest_machine *machine, uint32_t fpga, uint32_t process)
{
    struct exanest_packetizer *packetizer =
        &exanest_fabric_fpga(&machine->fabric, fpga)->packetizer;
    exanest_packetizer_store(packetizer, process, EXANEST_PACKETIZER_COMMAND, 0);
    exanest_fabric_wake(&machine->fabric, fpga);
}

bool exanest_machine_send(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                          uint32_t to, uint64_t va, const void *bytes, uint32_t count)
{
    struct exanest_packetizer *packetizer =
        &exanest_fabric_fpga(&machine->fabric, fpga)->packetizer;
    uint64_t words[EXANEST_PAYLOAD_BYTES_MAX / sizeof(uint64_t)] = {0};
    CHECK(count > 0 && count <= sizeof(words));
    if (!exanest_machine_read_ready(machine, fpga, process)) {
        return false;
    }
    memcpy(words, bytes, count);
    for (uint32_t i = 0; i * sizeof(words[0]) < count; i++) {
        exanest_packetizer_store(packetizer, process, 8 * i, words[i]);
    }
    exanest_packetizer_store(packetizer, process, EXANEST_PACKETIZER_TARGET,
                             exanest_target_encode(target_at(machine, to, va)));
    const enum exanest_store_verdict verdict =
        exanest_packetizer_store(packetizer, process, EXANEST_PACKETIZER_COMMAND, count);
    CHECK(verdict == EXANEST_STORE_GOOD);
    exanest_fabric_wake(&machine->fabric, fpga);
    return true;
}

bool exanest_machine_read(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                          const struct exanest_read *read)
{
    const struct exanest_read_request request = {
        .source = read->source,
        .target = target_at(machine, fpga, read->va),
        .address = target_at(machine, fpga, read->notify_va),
        .data = read->data,
        .bytes = read->bytes,
        .request_id = read->request_id,
    };
    struct exanest_word words[EXANEST_READ_REQUEST_WORDS];
    exanest_read_request_encode(&request, words);
    return exanest_machine_send(machine, fpga, process, read->owner,
                                exanest_peripheral_va(EXANEST_RT_READ_REQUESTS, 0), words,
                                sizeof(words));
}

bool exanest_machine_settle(struct exanest_machine *machine, uint64_t until_ps)
{
    while (sim_next_ps(machine->sim) <= until_ps) {
        sim_step(machine->sim);
    }
    return sim_next_ps(machine->sim) == UINT64_MAX;
}

bool exanest_machine_idle(struct exanest_machine *machine)
{
    for (uint32_t i = 0; i < exanest_fabric_fpgas(&machine->fabric); i++) {
        const struct exanest_fpga *fpga = exanest_fabric_fpga(&machine->fabric, i);
        if (!exanest_r5_idle(&machine->r5s[i]) || fpga->receiver.table.used != 0) {
            return false;
        }
    }
    return true;
}
