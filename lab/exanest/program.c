/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/program.h"

#include <string.h>

#define LINE         UINT64_C(16384) /* Source and target begin where a block does. */
#define NOTICE_BYTES 16u
#define NOTICES      (LINE / NOTICE_BYTES)

/* -- Memory -------------------------------------------------------------------------------------*/

static uint64_t lines(uint32_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

uint64_t exanest_program_source(void)
{
    return EXANEST_MEMORY_VA;
}

uint64_t exanest_program_target(uint32_t bytes)
{
    return EXANEST_MEMORY_VA + lines(bytes);
}

/* Each source begins a line behind the one before. */
uint64_t exanest_program_source_bytes(const struct exanest_program_config *config)
{
    return config->bytes + (config->compares ? (EXANEST_SOURCES - 1) * LINE : 0);
}

/* A sender has a place for each transfer of its window, or one for all. */
static uint64_t places_of(const struct exanest_program_config *config)
{
    return config->compares ? config->window : 1;
}

static uint64_t place(const struct exanest_program_config *config, uint64_t number)
{
    return EXANEST_MEMORY_VA + lines((uint32_t)exanest_program_source_bytes(config)) +
           number * lines(config->bytes);
}

/* Behind the places. */
static uint64_t notices(const struct exanest_program_config *config)
{
    return place(config, (config->places == 0 ? 1 : config->places) * places_of(config));
}

uint64_t exanest_program_memory_of(const struct exanest_program_config *config)
{
    return notices(config) + LINE - EXANEST_MEMORY_VA;
}

uint64_t exanest_program_memory(uint32_t bytes)
{
    const struct exanest_program_config config = {.bytes = bytes};
    return exanest_program_memory_of(&config);
}

/* -- Requests -----------------------------------------------------------------------------------*/

static uint32_t piece_bytes(const struct exanest_program *program,
                            const struct exanest_program_slot *slot)
{
    const uint32_t left = slot->bytes - slot->got;
    const uint32_t piece = program->config.piece;
    return piece == 0 || left < piece ? left : piece;
}

/* Each piece has its own for a long time: a second notification, after a lost acknowledgement of
 * its last block, does not overwrite that of the next piece. */
static uint64_t notice_va(const struct exanest_program *program, uint32_t piece)
{
    return notices(&program->config) + piece % NOTICES * NOTICE_BYTES;
}

static uint64_t source_va(const struct exanest_program_slot *slot)
{
    return exanest_program_source() + slot->source * LINE;
}

static uint64_t target_va(const struct exanest_program *program, uint32_t number)
{
    const struct exanest_program_config *config = &program->config;
    const uint32_t from = config->writes ? config->fpga : program->slots[number].other;
    const uint64_t first = config->places == 0 ? 0 : from * places_of(config);
    return place(config, first + (config->compares ? number : 0));
}

static void post(struct exanest_program *program, uint32_t number)
{
    const struct exanest_program_config *config = &program->config;
    struct exanest_program_slot *slot = &program->slots[number];
    const uint64_t source = source_va(slot) + slot->got;
    const uint64_t target = target_va(program, number) + slot->got;
    slot->asked = true;
    slot->number = ++program->asked;
    if (config->writes) {
        const struct exanest_write write = {
            .to = slot->other, .source = source, .va = target, .bytes = piece_bytes(program, slot)};
        exanest_machine_write(program->machine, config->fpga, config->process, number, &write);
        return;
    }
    const struct exanest_read read = {.owner = slot->other,
                                      .source = source,
                                      .va = target,
                                      .notify_va = notice_va(program, slot->number),
                                      .bytes = piece_bytes(program, slot),
                                      .request_id = slot->number,
                                      .data = slot->number};
    const bool taken = exanest_machine_read(program->machine, config->fpga, config->process, &read);
    CHECK(taken);
}

/* Has the slot's piece come to an end that a look would see? */
static bool ended(const struct exanest_program *program, uint32_t number)
{
    const struct exanest_program_config *config = &program->config;
    const struct exanest_program_slot *slot = &program->slots[number];
    if (config->writes) {
        const uint8_t state = (uint8_t)exanest_r5_transfer(&program->machine->r5s[config->fpga],
                                                           config->process, number)
                                  .state;
        return state == EXANEST_TRANSFER_DONE || state == EXANEST_TRANSFER_ERROR;
    }
    uint64_t data;
    memcpy(&data,
           exanest_machine_bytes(program->machine, config->fpga, config->process,
                                 notice_va(program, slot->number), NOTICE_BYTES),
           sizeof(data));
    return data == slot->number;
}

/* -- Comparing ----------------------------------------------------------------------------------*/

static const uint8_t *source_bytes(const struct exanest_program *program, uint32_t number)
{
    const struct exanest_program_config *config = &program->config;
    const struct exanest_program_slot *slot = &program->slots[number];
    return exanest_machine_bytes(program->machine, config->writes ? config->fpga : slot->other,
                                 config->process, source_va(slot), slot->bytes);
}

static uint8_t *target_bytes(const struct exanest_program *program, uint32_t number)
{
    const struct exanest_program_config *config = &program->config;
    const struct exanest_program_slot *slot = &program->slots[number];
    return exanest_machine_bytes(program->machine, config->writes ? slot->other : config->fpga,
                                 config->process, target_va(program, number), slot->bytes);
}

/* No byte of the target is right before the transfer, whatever came there last. */
static void spoil(const struct exanest_program *program, uint32_t number)
{
    const uint8_t *source = source_bytes(program, number);
    uint8_t *target = target_bytes(program, number);
    for (uint32_t i = 0; i < program->slots[number].bytes; i++) {
        target[i] = (uint8_t)~source[i];
    }
}

static bool is_right(const struct exanest_program *program, uint32_t number)
{
    return memcmp(source_bytes(program, number), target_bytes(program, number),
                  program->slots[number].bytes) == 0;
}

/* -- The end ------------------------------------------------------------------------------------*/

static void count_end(struct exanest_program *program, uint32_t number)
{
    struct exanest_program_slot *slot = &program->slots[number];
    const uint64_t now_ps = program->machine->sim->now_ps;
    const uint64_t took_ps = now_ps - slot->began_ps;
    slot->busy = false;
    program->ended++;
    program->last_ps = now_ps;
    program->sum_ps += took_ps;
    program->least_ps = took_ps < program->least_ps ? took_ps : program->least_ps;
    program->most_ps = took_ps > program->most_ps ? took_ps : program->most_ps;
    if (program->config.tally != NULL && slot->good) {
        lab_tally_count(program->config.tally, slot->began_ps, now_ps, slot->bytes);
    }
    if (program->config.compares && slot->good) {
        program->wrong += !is_right(program, number);
    }
    sim_note(program->machine->sim, took_ps);
}

static void see(struct exanest_program *program, uint32_t number)
{
    const struct exanest_program_config *config = &program->config;
    struct exanest_program_slot *slot = &program->slots[number];
    slot->got += piece_bytes(program, slot);
    slot->asked = false;
    if (config->writes) {
        const bool failed =
            exanest_r5_transfer(&program->machine->r5s[config->fpga], config->process, number)
                .state == EXANEST_TRANSFER_ERROR;
        program->failed += failed;
        slot->good = slot->good && !failed;
    } else if (slot->number == program->asked) { /* The channel still holds its request. */
        exanest_machine_read_over(program->machine, config->fpga, config->process);
    }
    if (slot->got == slot->bytes) {
        count_end(program, number);
    }
}

/* -- The next action ----------------------------------------------------------------------------*/

/* A slot with something to see; EXANEST_WINDOW_MAX: none. */
static uint32_t slot_ended(const struct exanest_program *program)
{
    for (uint32_t i = 0; i < program->config.window; i++) {
        if (program->slots[i].busy && program->slots[i].asked && ended(program, i)) {
            return i;
        }
    }
    return EXANEST_WINDOW_MAX;
}

static struct lab_plan_message errand_of(const struct exanest_program *program, uint32_t number)
{
    const struct exanest_program_config *config = &program->config;
    return config->errands != NULL
               ? config->errands[(size_t)number * config->stride]
               : (struct lab_plan_message){.to = config->other, .bytes = config->bytes};
}

/* Is there a transfer to begin now? If it is later, `wanted` comes then. */
static bool next_errand(struct exanest_program *program, struct lab_plan_message *errand)
{
    struct sim *sim = program->machine->sim;
    if (program->begun == program->config.count) {
        return false;
    }
    *errand = errand_of(program, program->begun);
    if (errand->at_ps > sim->now_ps) {
        sim_reschedule(sim, &program->wanted, errand->at_ps);
        return false;
    }
    return true;
}

/* A slot whose next piece can be asked for: rather of a transfer that has begun. */
static uint32_t slot_to_post(struct exanest_program *program)
{
    const struct exanest_program_config *config = &program->config;
    uint32_t free = EXANEST_WINDOW_MAX;
    if (!config->writes &&
        !exanest_machine_read_ready(program->machine, config->fpga, config->process)) {
        return EXANEST_WINDOW_MAX;
    }
    for (uint32_t i = 0; i < config->window; i++) {
        if (program->slots[i].busy && !program->slots[i].asked) {
            return i;
        }
        free = !program->slots[i].busy && free == EXANEST_WINDOW_MAX ? i : free;
    }
    struct lab_plan_message errand;
    if (free == EXANEST_WINDOW_MAX || !next_errand(program, &errand)) {
        return EXANEST_WINDOW_MAX;
    }
    program->slots[free] = (struct exanest_program_slot){
        .busy = true,
        .good = true,
        .other = errand.to,
        .bytes = errand.bytes,
        .source = config->compares ? program->begun % EXANEST_SOURCES : 0,
        .began_ps = config->timed ? errand.at_ps : program->machine->sim->now_ps};
    program->begun++;
    if (config->compares) {
        spoil(program, free);
    }
    return free;
}

static void begin(struct exanest_program *program, enum exanest_program_job job, uint32_t slot,
                  uint32_t cost_ns)
{
    program->job = (uint8_t)job;
    program->slot = (uint8_t)slot;
    sim_after(program->machine->sim, &program->due, cost_ns * SIM_NS);
}

static void go_on(struct exanest_program *program)
{
    const uint32_t seen = slot_ended(program);
    if (seen != EXANEST_WINDOW_MAX) {
        begin(program, EXANEST_PROGRAM_LOOKS, seen, program->config.poll_ns);
        return;
    }
    const uint32_t posted = slot_to_post(program);
    if (posted != EXANEST_WINDOW_MAX) {
        begin(program, EXANEST_PROGRAM_CALLS, posted, program->config.call_ns);
        return;
    }
    program->job = EXANEST_PROGRAM_RESTS;
}

static void on_due(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct exanest_program *program = CONTAINER_OF(event, struct exanest_program, due);
    if (program->job == EXANEST_PROGRAM_LOOKS) {
        see(program, program->slot);
    } else if (program->job == EXANEST_PROGRAM_CALLS) {
        post(program, program->slot);
    }
    go_on(program);
}

static void wake(struct exanest_program *program)
{
    if (program->job == EXANEST_PROGRAM_RESTS) {
        go_on(program);
    }
}

static void on_notice(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    wake(CONTAINER_OF(event, struct exanest_program, notice));
}

static void on_wanted(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    wake(CONTAINER_OF(event, struct exanest_program, wanted));
}

/* -- The beginning ------------------------------------------------------------------------------*/

struct exanest_program_config exanest_program_default(uint32_t fpga, uint32_t other, bool writes,
                                                      uint32_t bytes)
{
    return (struct exanest_program_config){
        .fpga = fpga,
        .other = other,
        .writes = writes,
        .bytes = bytes,
        .count = 1,
        .window = 1,
        .call_ns = EXANEST_CALL_NS,
        .poll_ns = EXANEST_POLL_NS,
    };
}

void exanest_program_open(struct exanest_program *program, struct exanest_machine *machine,
                          const struct exanest_program_config *config)
{
    CHECK(config->bytes > 0 && config->count > 0 && config->window > 0);
    CHECK(config->window <= (config->writes ? EXANEST_WRITE_CHANNELS : EXANEST_WINDOW_MAX));
    CHECK(exanest_program_memory_of(config) <= machine->config.process_bytes);
    memset(program, 0, sizeof(*program));
    program->machine = machine;
    program->config = *config;
    program->least_ps = UINT64_MAX;
    program->first_ps = machine->sim->now_ps;
    sim_event_init(&program->notice, on_notice);
    sim_event_init(&program->due, on_due);
    sim_event_init(&program->wanted, on_wanted);
    exanest_machine_watch(machine, config->fpga, config->process, notices(config), LINE,
                          &program->notice);
    begin(program, EXANEST_PROGRAM_RESTS, 0, 0);
}
