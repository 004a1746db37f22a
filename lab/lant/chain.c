/* SPDX-License-Identifier: BSD-2-Clause
 *
 * chain - see chain.h.
 */
#include "lab/lant/chain.h"

#include <math.h>

enum {
    /* Local addresses. On node 0: */
    SOURCES = 0,        /* Blocks. */
    RESULTS = 0x100000, /* F1's results. */
    /* On node 1: */
    INPUTS = 0x100000,
    ENDS = 0,
    NOTIFICATIONS = 0x210000,
    /* On both: */
    WINDOW = 0x200000,
    /* The accelerators' marks. */
    FIRST_ADDS = 1,
    SECOND_ADDS = 100,
};

static struct sim *sim_of(const struct lant_chain *chain)
{
    return chain->world->sim;
}

/* Blocks have their places in turns. */
static uint64_t place_of(const struct lant_chain *chain, uint32_t block)
{
    return (uint64_t)(block % LANT_CHAIN_UNDER_WAY_MAX) * chain->config.bytes;
}

static uint8_t byte_of(uint32_t block, uint32_t i)
{
    return (uint8_t)(block * 37 + i * 7 + (i >> 8));
}

/* -- Blocks in, results out ---------------------------------------------------------------------*/

static void submit_more(struct lant_chain *chain)
{
    const struct lant_chain_config *config = &chain->config;
    if (!chain->submitting && chain->submitted < config->blocks &&
        chain->submitted - chain->finished < config->under_way) {
        chain->submitting = true;
        sim_after(sim_of(chain), &chain->submit, lant_cycles(config->costs.submit));
    }
}

static void on_submit(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_chain *chain = CONTAINER_OF(event, struct lant_chain, submit);
    const uint32_t bytes = chain->config.bytes, block = chain->submitted;
    const struct lant_accelerator_work work = {.source = SOURCES + place_of(chain, block),
                                               .bytes = bytes,
                                               .destination = ENDS + place_of(chain, block),
                                               .result_bytes = bytes,
                                               .notification = NOTIFICATIONS};
    for (uint32_t i = 0; i < bytes; i++) {
        chain->world->nodes[0].memory[work.source + i] = byte_of(block, i);
    }
    chain->submitting = false;
    chain->submitted++;
    chain->failed |=
        lant_accelerator_work(&chain->accelerators[0], &work) != LANT_ACCELERATOR_TAKES;
    submit_more(chain);
}

static void on_result(void *context, uint64_t address, const struct lant_accelerator_work *work)
{
    (void)address;
    (void)work;
    struct lant_chain *chain = context;
    chain->ready++;
    if (!sim_event_scheduled(&chain->notice)) {
        sim_after(sim_of(chain), &chain->notice, lant_cycles(chain->config.costs.notice));
    }
}

/* The application sees a result. */
static void on_notice(struct sim *sim, struct sim_event *event)
{
    struct lant_chain *chain = CONTAINER_OF(event, struct lant_chain, notice);
    const uint32_t block = chain->finished++, blocks = chain->config.blocks;
    const uint8_t *result = chain->world->nodes[1].memory + ENDS + place_of(chain, block);
    for (uint32_t i = 0; i < chain->config.bytes; i++) {
        chain->wrong += result[i] != (uint8_t)(byte_of(block, i) + FIRST_ADDS + SECOND_ADDS);
    }
    chain->first_ps = block == 0 ? sim->now_ps : chain->first_ps;
    chain->half_ps = block + 1 == blocks / 2 ? sim->now_ps : chain->half_ps;
    chain->last_ps = sim->now_ps;
    lant_api_forget_arrivals(&chain->apis[1]);
    if (chain->ready > chain->finished) {
        sim_after(sim, &chain->notice, lant_cycles(chain->config.costs.notice));
    }
    submit_more(chain);
}

/* -- (b): the CPU of node 0 between F1 and F2 ---------------------------------------------------*/

static void on_told(struct lant_call *call)
{
    struct lant_chain *chain = call->context;
    chain->failed |= call->result != LANT_RESULT_OK;
    lant_accelerator_release(&chain->accelerators[0]);
}

/* F2 has read its last work's words, or they would be overwritten. */
static void on_fenced(struct lant_call *call)
{
    struct lant_chain *chain = call->context;
    const struct lant_accelerator_config *config = &chain->accelerators[0].config;
    const struct lant_accelerator_work work = {
        .source = config->remote_source + lant_accelerator_input(&chain->accelerators[0]),
        .bytes = config->remote_bytes,
        .destination = chain->work.destination,
        .result_bytes = config->remote_bytes,
        .notification = config->remote_notification};
    chain->failed |= call->result != LANT_RESULT_OK;
    lant_accelerator_encode(&work, chain->words);
    lant_api_shm_write(&chain->apis[0], &chain->store, config->remote_work, chain->words,
                       LANT_ACCELERATOR_WORK_BYTES);
}

static void on_sent(struct lant_call *call)
{
    struct lant_chain *chain = call->context;
    const uint32_t cycles = chain->config.costs.cpu_path;
    chain->failed |= call->result != LANT_RESULT_OK;
    chain->sent = true;
    sim_after(sim_of(chain), &chain->path, lant_cycles(cycles - cycles / 2));
}

static void on_path(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_chain *chain = CONTAINER_OF(event, struct lant_chain, path);
    const struct lant_accelerator_config *config = &chain->accelerators[0].config;
    if (chain->sent) {
        chain->call.on_return = on_fenced;
        lant_api_shm_fence(&chain->apis[0], &chain->call, 1);
    } else {
        chain->call.on_return = on_sent;
        lant_api_send_blocking(&chain->apis[0], &chain->call, chain->result,
                               config->remote_bram +
                                   lant_accelerator_input(&chain->accelerators[0]),
                               config->remote_bytes);
    }
}

static void on_intermediate(void *context, uint64_t address,
                            const struct lant_accelerator_work *work)
{
    struct lant_chain *chain = context;
    chain->work = *work;
    chain->result = address;
    chain->sent = false;
    sim_after(sim_of(chain), &chain->path, lant_cycles(chain->config.costs.cpu_path / 2));
}

/* -- Beginning and end --------------------------------------------------------------------------*/

static struct lant_accelerator_config first_of(const struct lant_chain_config *config)
{
    const double detour = config->by_cpu ? config->costs.detour_cycles : 0;
    return (struct lant_accelerator_config){
        .role = config->by_cpu ? LANT_ACCELERATOR_BY_CPU : LANT_ACCELERATOR_OFFLOADED,
        .latency_cycles = config->latency_cycles,
        .work_window = WINDOW,
        .intermediate = RESULTS,
        .remote_bram = lant_global(1, INPUTS),
        .remote_source = INPUTS,
        .remote_work = lant_global(1, WINDOW),
        .remote_notification = NOTIFICATIONS,
        .remote_bytes = config->bytes,
        .buffers = config->by_cpu ? 1 : config->buffers,
        .remote_buffers = config->under_way,
        .burst_cycles = config->costs.burst,
        .turn_cycles = config->costs.turn,
        .detour_ps = (uint64_t)llround(detour * config->bytes * LANT_CYCLE_PS),
        .direct = config->direct,
        .overlap = config->overlap,
        .adds = FIRST_ADDS,
    };
}

void lant_chain_open(struct lant_chain *chain, const struct lant_chain_config *config,
                     struct lant_world *world)
{
    const struct lant_api_config api = {.timeout_ps = LANT_NEVER};
    CHECK(world->count == 2 && world->config.memory_bytes >= LANT_CHAIN_MEMORY);
    CHECK(config->bytes >= 1 && config->bytes <= LANT_CHAIN_BLOCK_MAX && config->bytes % 8 == 0);
    CHECK(config->under_way >= 1 && config->under_way <= LANT_CHAIN_UNDER_WAY_MAX);
    chain->config = *config;
    chain->world = world;
    chain->submitted = chain->ready = chain->finished = 0;
    chain->submitting = chain->failed = chain->sent = false;
    chain->wrong = chain->first_ps = chain->half_ps = chain->last_ps = 0;
    chain->call = (struct lant_call){.context = chain};
    chain->store = (struct lant_call){.context = chain, .on_return = on_told};
    sim_event_init(&chain->submit, on_submit);
    sim_event_init(&chain->notice, on_notice);
    sim_event_init(&chain->path, on_path);
    const struct lant_accelerator_config first = first_of(config);
    const struct lant_accelerator_config last = {.role = LANT_ACCELERATOR_LAST,
                                                 .latency_cycles = config->latency_cycles,
                                                 .work_window = WINDOW,
                                                 .buffers = 1,
                                                 .burst_cycles = config->costs.burst,
                                                 .turn_cycles = config->costs.turn,
                                                 .adds = SECOND_ADDS};
    for (uint32_t i = 0; i < 2; i++) {
        lant_api_open(&chain->apis[i], &api, &world->nodes[i]);
    }
    lant_accelerator_open(&chain->accelerators[0], &first, &chain->apis[0], on_intermediate, chain);
    lant_accelerator_open(&chain->accelerators[1], &last, &chain->apis[1], on_result, chain);
}

bool lant_chain_run(struct lant_chain *chain)
{
    bool goes_on = true;
    submit_more(chain);
    while (goes_on && chain->finished < chain->config.blocks) {
        goes_on = !chain->failed && !chain->accelerators[0].failed &&
                  !chain->accelerators[1].failed && sim_step(sim_of(chain));
    }
    while (!lant_world_idle(chain->world)) {
        CHECK(sim_step(sim_of(chain)));
    }
    return goes_on;
}

void lant_chain_close(struct lant_chain *chain)
{
    struct sim_event *const events[] = {&chain->submit, &chain->notice, &chain->path};
    for (uint32_t i = 0; i < COUNT_OF(events); i++) {
        sim_cancel(events[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        lant_accelerator_close(&chain->accelerators[i]);
        lant_api_close(&chain->apis[i]);
    }
}
