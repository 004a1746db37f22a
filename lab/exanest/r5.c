/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/r5.h"

#include <string.h>

#include "base/check.h"

static uint64_t now_ns(const struct exanest_r5 *r5)
{
    return sim_instant(r5->fabric->sim).ns;
}

/* Sleeps end at the first nanosecond that is not before `ns`. */
static uint64_t ps_of(uint64_t ns)
{
    return ns > UINT64_MAX / SIM_NS ? UINT64_MAX : ns * SIM_NS;
}

static void ask(struct exanest_r5 *r5);

/* -- Sleeping -----------------------------------------------------------------------------------*/

static bool mailbox_calls(const struct exanest_r5 *r5)
{
    const struct exanest_rt_mailbox *mailbox = &r5->fpga->rt_mailbox;
    return mailbox->responses > 0 || (r5->action.takes_requests && mailbox->requests > 0);
}

static void finish(struct exanest_r5 *r5, uint64_t value)
{
    sim_note(r5->fabric->sim, (uint64_t)r5->number << 48 ^ (uint64_t)r5->action.what << 40 ^ value);
    if (UNLIKELY(r5->fpga->watch != NULL)) {
        exanest_watch_action(r5->fpga->watch, &r5->action, value, r5->began_ps);
    }
    exanest_firmware_done(&r5->firmware, &r5->action, value, now_ns(r5));
    ask(r5);
}

static void sleep(struct exanest_r5 *r5)
{
    struct sim *sim = r5->fabric->sim;
    if (r5->called || mailbox_calls(r5) || !exanest_scratchpad_idle(&r5->scratchpad)) {
        r5->called = false;
        sim_after(sim, &r5->due, 0);
        return;
    }
    r5->sleeping = true;
    r5->fpga->attention = &r5->attention;
    r5->fpga->attends_requests = r5->action.takes_requests;
    if (r5->action.until != UINT64_MAX) {
        const uint64_t until_ps = ps_of(r5->action.until);
        sim_schedule(sim, &r5->due, until_ps > sim->now_ps ? until_ps : sim->now_ps);
    }
}

static void wake(struct exanest_r5 *r5)
{
    if (!r5->sleeping) {
        r5->called = true;
        return;
    }
    r5->sleeping = false;
    r5->fpga->attention = NULL;
    sim_cancel(&r5->due);
    finish(r5, 0);
}

static void on_attention(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct exanest_r5 *r5 = CONTAINER_OF(event, struct exanest_r5, attention);
    if (r5->sleeping) {
        wake(r5);
    }
}

/* -- Actions ------------------------------------------------------------------------------------*/

static bool touches_hardware(const struct exanest_firmware_action *action)
{
    return action->what == EXANEST_DO_STORE || action->what == EXANEST_DO_READ_DESCRIPTOR;
}

/* How long the core that runs the loop is busy with the action. */
static uint64_t time_of(struct exanest_r5 *r5)
{
    const uint64_t now_ps = r5->fabric->sim->now_ps;
    const uint64_t cost_ps = ps_of(r5->action.cost_ns);
    r5->busy_ps += cost_ps;
    if (r5->action.what != EXANEST_DO_WORK || !r5->two_cores || r5->second_ps > now_ps) {
        return cost_ps;
    }
    r5->second_ps = now_ps + cost_ps;
    return 0;
}

/* The next action begins: it is done after its cost. */
static void ask(struct exanest_r5 *r5)
{
    struct exanest_firmware_action *action = &r5->action;
    r5->began_ps = r5->fabric->sim->now_ps;
    exanest_firmware_next(&r5->firmware, now_ns(r5), action);
    if (action->what == EXANEST_DO_SLEEP) {
        sleep(r5);
        return;
    }
    if (action->what == EXANEST_DO_STORE) {
        r5->store = exanest_host_store_64(action->address, action->value);
    } else if (action->what == EXANEST_DO_READ_DESCRIPTOR) {
        r5->load = (struct exanest_host_load){.address = action->address};
    }
    sim_after(r5->fabric->sim, &r5->due, time_of(r5));
}

/* The unit does a part of it in each cycle; true: all is done. */
static bool access(struct exanest_r5 *r5)
{
    exanest_fabric_wake(r5->fabric, r5->number);
    return r5->action.what == EXANEST_DO_STORE ? exanest_exadma_write(&r5->fpga->exadma, &r5->store)
                                               : exanest_exadma_read(&r5->fpga->exadma, &r5->load);
}

/* The debug port of the block's receiver. */
static uint64_t read_context(const struct exanest_r5 *r5, uint32_t tid)
{
    const struct exanest_firmware_block *block = &r5->firmware.blocks[tid];
    const uint64_t target = r5->firmware.transfers[block->channel].target;
    const uint32_t number =
        exanest_fabric_number(r5->fabric, exanest_target_decode(target).coordinate);
    if (number >= exanest_fabric_fpgas(r5->fabric)) {
        return 0; /* A program may ask for any destination. */
    }
    const struct exanest_fpga *peer = exanest_fabric_fpga(r5->fabric, number);
    const struct exanest_context *context =
        exanest_context_find(&peer->receiver.table, r5->fpga->coordinate, tid);
    const bool good = context != NULL && context->sequence == block->sequence && !context->nacked;
    return good ? context->bitmap : 0;
}

static uint64_t perform(struct exanest_r5 *r5)
{
    struct exanest_firmware_action *action = &r5->action;
    uint32_t page;
    uint64_t posted;
    switch ((enum exanest_do)action->what) {
    case EXANEST_DO_READ_RESPONSE: return exanest_rt_mailbox_read_response(&r5->fpga->rt_mailbox);
    case EXANEST_DO_READ_REQUEST:
        for (uint32_t i = 0; i < action->count; i++) {
            action->words[i] = exanest_rt_mailbox_read_request(&r5->fpga->rt_mailbox);
        }
        return 0;
    case EXANEST_DO_POLL:
        posted = exanest_scratchpad_poll(&r5->scratchpad, &page);
        action->channel = (uint16_t)(posted == 0 ? 0 : page * EXANEST_PAGE_CHANNELS);
        return posted;
    case EXANEST_DO_READ_TRANSFER:
        memcpy(action->words, exanest_scratchpad_read(&r5->scratchpad, action->channel),
               sizeof(action->words));
        return 0;
    case EXANEST_DO_UPDATE:
        exanest_scratchpad_update(&r5->scratchpad, action->channel, &action->progress);
        exanest_fpga_notice(r5->fpga, action->channel / EXANEST_PAGE_CHANNELS);
        return 0;
    case EXANEST_DO_READ_DESCRIPTOR: /* W3 is the lower half of its line. */
        return r5->load.data.low;
    case EXANEST_DO_READ_CONTEXT: return read_context(r5, action->tid);
    case EXANEST_DO_WORK:
    case EXANEST_DO_STORE:
    case EXANEST_DO_SLEEP: return 0;
    }
    UNREACHABLE("an action outside its enum");
}

static void on_due(struct sim *sim, struct sim_event *event)
{
    struct exanest_r5 *r5 = CONTAINER_OF(event, struct exanest_r5, due);
    if (touches_hardware(&r5->action) && !access(r5)) {
        sim_schedule(sim, event, exanest_fabric_edge_ps(r5->fabric));
        return;
    }
    if (r5->sleeping) {
        r5->sleeping = false;
        r5->fpga->attention = NULL;
    }
    finish(r5, perform(r5));
}

/* -- The driver ---------------------------------------------------------------------------------*/

/* The blocks that read from the page. */
static void tell(struct exanest_r5 *r5, const struct exanest_page_fault *fault)
{
    for (uint32_t tid = 0; tid < EXANEST_TIDS; tid++) {
        const struct exanest_firmware_block *block = &r5->firmware.blocks[tid];
        if (block->state == EXANEST_TID_FREE) {
            continue;
        }
        const uint64_t source = r5->firmware.transfers[block->channel].source + block->offset;
        const uint16_t pdid = r5->firmware.pdid[block->channel / EXANEST_PAGE_CHANNELS];
        if (pdid == fault->pdid && source < fault->va + SIM_PAGE_BYTES &&
            fault->va < source + block->bytes) {
            exanest_firmware_on_mapped(&r5->firmware, tid);
        }
    }
}

static void on_driver(struct sim *sim, struct sim_event *event)
{
    struct exanest_r5 *r5 = CONTAINER_OF(event, struct exanest_r5, driver);
    if (r5->repairing) {
        exanest_memory_set_present(&r5->fpga->memory, r5->fault.pdid, r5->fault.va, true);
        if (!r5->fault.writes) {
            tell(r5, &r5->fault);
            wake(r5);
        }
    }
    r5->repairing = exanest_memory_next_fault(&r5->fpga->memory, &r5->fault);
    if (r5->repairing) {
        sim_after(sim, event, r5->fault_ps);
    }
}

/* -- Programs -----------------------------------------------------------------------------------*/

void exanest_r5_open(struct exanest_r5 *r5, struct exanest_fabric *fabric, uint32_t number,
                     const struct exanest_firmware_config *config, uint32_t cores)
{
    CHECK(cores == 1 || cores == 2);
    memset(r5, 0, sizeof(*r5));
    r5->two_cores = cores == 2;
    r5->fabric = fabric;
    r5->number = number;
    r5->fpga = exanest_fabric_fpga(fabric, number);
    r5->fault_ps = EXANEST_FAULT_PS;
    sim_event_init(&r5->due, on_due);
    sim_event_init(&r5->attention, on_attention);
    sim_event_init(&r5->driver, on_driver);
    r5->fpga->faulted = &r5->driver;
    exanest_firmware_init(&r5->firmware, config);
    ask(r5);
}

void exanest_r5_bind(struct exanest_r5 *r5, uint32_t page, uint16_t pdid)
{
    const bool bound = exanest_scratchpad_bind(&r5->scratchpad, page, pdid) &&
                       exanest_firmware_bind(&r5->firmware, page, pdid);
    CHECK(bound);
    if (page < EXANEST_AXI_IDS) {
        exanest_fpga_give_channel(r5->fpga, page, pdid);
    }
}

enum exanest_pad_access exanest_r5_post(struct exanest_r5 *r5, uint32_t page, uint32_t channel,
                                        const struct exanest_transfer *transfer)
{
    const enum exanest_pad_access access = exanest_scratchpad_post(
        &r5->scratchpad, r5->scratchpad.pdid[page], page, channel, transfer);
    if (access == EXANEST_PAD_GOOD && r5->sleeping) {
        wake(r5);
    }
    return access;
}

struct exanest_transfer exanest_r5_transfer(const struct exanest_r5 *r5, uint32_t page,
                                            uint32_t channel)
{
    return exanest_transfer_decode(
        exanest_scratchpad_read(&r5->scratchpad, page * EXANEST_PAGE_CHANNELS + channel));
}

bool exanest_r5_idle(const struct exanest_r5 *r5)
{
    return r5->sleeping && r5->action.until == UINT64_MAX && exanest_firmware_idle(&r5->firmware);
}
