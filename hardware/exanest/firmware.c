/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/firmware.h"

#include <string.h>

#include "hardware/exanest/firmware_internal.h"
#include "hardware/exanest/pending_list.h"

/* -- Parameters ---------------------------------------------------------------------------------*/

/* All our choice; the 12 reads follow from the three words of a request (wire/exanest.h). */
struct exanest_firmware_config exanest_firmware_defaults(void)
{
    return (struct exanest_firmware_config){
        .costs = EXANEST_FIRMWARE_COSTS,
        .sequences = EXANEST_STRICT,
        .paths = 1,
        .request_reads = EXANEST_REQUEST_LANES,
        .control_bytes = 16,
        .retries_max = 16,
        .decode_retries_max = 4,
        .writes_outstanding = 4,
        .reads_outstanding = 4,
        .tids = EXANEST_TIDS,
        .issues_per_pass = 1,
        .block_timeout_ns = 1000000,
        .back_off_ns = 20000,
        .fault_wait_ns = 26000,
        .descriptor_poll_ns = 2000,
    };
}

void exanest_firmware_set_block_cost(struct exanest_firmware_costs *costs, uint32_t block_ns)
{
    const uint32_t rest = costs->response_read + costs->segment + costs->build + 3 * costs->store;
    if (block_ns >= rest) {
        costs->response_handle = block_ns - rest;
        return;
    }
    costs->response_read = 0;
    costs->segment = 0;
    costs->build = 0;
    costs->store = 0;
    costs->response_handle = block_ns;
}

void exanest_firmware_set_hardware_responses(struct exanest_firmware_costs *costs)
{
    costs->response_read = 0;
    costs->response_handle = 0;
    costs->descriptor_read = 0;
}

void exanest_firmware_init(struct exanest_firmware *firmware,
                           const struct exanest_firmware_config *config)
{
    CHECK(config->paths >= 1 && config->paths <= EXANEST_PATHS_MAX);
    CHECK(config->tids >= 1 && config->tids <= EXANEST_TIDS);
    CHECK(config->request_reads >= 2 && EXANEST_REQUEST_LANES % config->request_reads == 0);
    CHECK(config->control_bytes == 16 || config->control_bytes == 32);
    CHECK(config->writes_outstanding >= 1 && config->reads_outstanding >= 1);
    CHECK(config->issues_per_pass >= 1 && config->block_timeout_ns > 0);
    /* A core that polls for nothing in no time would never let the world's clock go on. */
    CHECK(!config->polls_when_idle || config->costs.response_read > 0);
    memset(firmware, 0, sizeof(*firmware));
    firmware->config = *config;
    firmware->update = EXANEST_NONE;
    firmware->ready_head = EXANEST_NONE;
    firmware->ready_tail = EXANEST_NONE;
    firmware->free_count = config->tids;
    for (uint32_t tid = 0; tid < config->tids; tid++) {
        firmware->free[tid] = (uint16_t)tid;
    }
}

/* -- The driver ---------------------------------------------------------------------------------*/

bool exanest_firmware_bind(struct exanest_firmware *firmware, uint32_t page, uint16_t pdid)
{
    if (page >= EXANEST_PAGES || (firmware->bound >> page & 1) != 0) {
        return false;
    }
    for (uint32_t other = 0; other < EXANEST_PAGES; other++) {
        if ((firmware->bound >> other & 1) != 0 && firmware->pdid[other] == pdid) {
            return false;
        }
    }
    firmware->bound |= (uint16_t)(1u << page);
    firmware->pdid[page] = pdid;
    exanest_history_forget(&firmware->history, pdid);
    INVARIANTS(exanest_firmware_check(firmware));
    return true;
}

bool exanest_firmware_unbind(struct exanest_firmware *firmware, uint32_t page)
{
    CHECK(page < EXANEST_PAGES);
    if ((firmware->bound >> page & 1) == 0 || firmware->active[page] != 0) {
        return false;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < firmware->queued; i++) {
        if (firmware->queue[i].pdid != firmware->pdid[page]) {
            firmware->queue[kept++] = firmware->queue[i];
        }
    }
    firmware->queued = (uint16_t)kept;
    firmware->fresh[page] = 0;
    firmware->pages_fresh &= (uint16_t) ~(1u << page);
    firmware->bound &= (uint16_t) ~(1u << page);
    INVARIANTS(exanest_firmware_check(firmware));
    return true;
}

void exanest_firmware_on_mapped(struct exanest_firmware *firmware, uint32_t tid)
{
    CHECK(tid < EXANEST_TIDS);
    firmware->mapped[tid / 64] |= UINT64_C(1) << tid % 64;
    firmware->mapped_groups |= (uint16_t)(1u << tid / 64);
}

/* -- The next action ----------------------------------------------------------------------------*/

static bool ask(struct exanest_firmware_action *action, enum exanest_do what, uint32_t cost_ns)
{
    action->what = (uint8_t)what;
    action->cost_ns = cost_ns;
    return true;
}

static bool sleep_or_go_on(struct exanest_firmware *firmware,
                           struct exanest_firmware_action *action)
{
    firmware->counters.passes++;
    firmware->step = EXANEST_STEP_RESPONSE;
    firmware->issued = 0;
    if (firmware->acted || firmware->config.polls_when_idle) {
        firmware->acted = false;
        return false;
    }
    firmware->counters.sleeps++;
    action->until = exanest_timers_deadline(&firmware->timers);
    action->takes_requests = firmware->queued < EXANEST_READ_QUEUE;
    return ask(action, EXANEST_DO_SLEEP, 0);
}

/* Without the bit, or without room, no slow read is made. */
static void begin_request(struct exanest_firmware *firmware)
{
    firmware->step = EXANEST_STEP_POLL;
    if (!firmware->requests_wait) {
        return;
    }
    if (firmware->queued == EXANEST_READ_QUEUE) {
        firmware->counters.read_queue_full++;
        return;
    }
    firmware->acted = true;
    firmware->job = EXANEST_JOB_REQUEST;
    firmware->stage = 0;
}

static void begin_issue(struct exanest_firmware *firmware)
{
    if (firmware->ready_head != EXANEST_NONE && firmware->free_count == 0) {
        firmware->counters.tid_waits++;
    }
    if (firmware->ready_head == EXANEST_NONE || firmware->free_count == 0 ||
        firmware->issued == firmware->config.issues_per_pass) {
        firmware->step = EXANEST_STEP_TIMER;
        return;
    }
    firmware->acted = true;
    firmware->issued++;
    exanest_firmware_issue(firmware);
}

/* One step of a pass. False: there was nothing to ask for, or something has begun. */
static bool take_step(struct exanest_firmware *firmware, uint64_t now,
                      struct exanest_firmware_action *action)
{
    switch ((enum exanest_firmware_step)firmware->step) {
    case EXANEST_STEP_RESPONSE:
        return ask(action, EXANEST_DO_READ_RESPONSE, firmware->config.costs.response_read);
    case EXANEST_STEP_REQUEST: begin_request(firmware); return false;
    case EXANEST_STEP_POLL: return ask(action, EXANEST_DO_POLL, firmware->config.costs.poll);
    case EXANEST_STEP_BEGIN_READ:
        firmware->step = EXANEST_STEP_BEGIN_WRITE;
        if (firmware->queue_changed) {
            exanest_firmware_begin_read(firmware);
        }
        return false;
    case EXANEST_STEP_BEGIN_WRITE:
        firmware->step = EXANEST_STEP_ISSUE;
        if (firmware->pages_fresh == 0) {
            return false;
        }
        firmware->acted = true;
        action->channel = (uint16_t)exanest_firmware_take_fresh(firmware);
        return ask(action, EXANEST_DO_READ_TRANSFER, 0);
    case EXANEST_STEP_ISSUE: begin_issue(firmware); return false;
    case EXANEST_STEP_TIMER:
        firmware->step = EXANEST_STEP_EVENT;
        if (exanest_timers_deadline(&firmware->timers) <= now) {
            firmware->acted = true;
            exanest_firmware_expire(firmware, now);
        }
        return false;
    case EXANEST_STEP_EVENT:
        firmware->step = EXANEST_STEP_END;
        if (firmware->mapped_groups != 0) {
            firmware->acted = true;
            exanest_firmware_take_mapped(firmware);
        }
        return false;
    case EXANEST_STEP_END: return sleep_or_go_on(firmware, action);
    }
    UNREACHABLE("step");
}

static uint32_t address_of(const struct exanest_firmware *firmware,
                           const struct exanest_firmware_action *action)
{
    if (!action->control) {
        return action->tid * EXANEST_DESCRIPTOR_BYTES + action->word * 8u;
    }
    const uint32_t bytes = firmware->config.control_bytes;
    return EXANEST_CONTROL_AT + action->path * bytes * EXANEST_TIDS + action->tid * bytes;
}

static void take_job(const struct exanest_firmware *firmware,
                     struct exanest_firmware_action *action)
{
    const struct exanest_firmware_costs *costs = &firmware->config.costs;
    action->tid = firmware->job_tid;
    switch ((enum exanest_firmware_job)firmware->job) {
    case EXANEST_JOB_STORE:
        exanest_firmware_store_next(firmware, action);
        action->address = address_of(firmware, action);
        ask(action, EXANEST_DO_STORE, action->control ? costs->control_store : costs->store);
        return;
    case EXANEST_JOB_LOOK:
        action->word = 2;
        action->address = address_of(firmware, action);
        ask(action, EXANEST_DO_READ_DESCRIPTOR, costs->descriptor_read);
        return;
    case EXANEST_JOB_CONTEXT: ask(action, EXANEST_DO_READ_CONTEXT, costs->context_read); return;
    case EXANEST_JOB_REQUEST:
        action->count = (uint8_t)(EXANEST_REQUEST_LANES / firmware->config.request_reads);
        ask(action, EXANEST_DO_READ_REQUEST, costs->request_read);
        return;
    case EXANEST_JOB_NONE: break;
    }
    UNREACHABLE("job");
}

static void take_update(const struct exanest_firmware *firmware,
                        struct exanest_firmware_action *action)
{
    const struct exanest_firmware_transfer *transfer = &firmware->transfers[firmware->update];
    action->channel = firmware->update;
    action->progress = (struct exanest_progress){.state = transfer->state,
                                                 .retransmissions = transfer->retransmissions,
                                                 .last_status = transfer->last_status,
                                                 .acked = transfer->acked};
    ask(action, EXANEST_DO_UPDATE, firmware->config.costs.update);
}

void exanest_firmware_next(struct exanest_firmware *firmware, uint64_t now,
                           struct exanest_firmware_action *action)
{
    CHECK(firmware->out == 0);
    INVARIANTS(exanest_firmware_check(firmware));
    action->control = false;
    for (bool asked = false; !asked;) {
        if (firmware->work_ns != 0) {
            asked = ask(action, EXANEST_DO_WORK, firmware->work_ns);
        } else if (firmware->update != EXANEST_NONE) {
            take_update(firmware, action);
            asked = true;
        } else if (firmware->job != EXANEST_JOB_NONE) {
            take_job(firmware, action);
            asked = true;
        } else {
            asked = take_step(firmware, now, action);
        }
    }
    firmware->out = (uint8_t)(1 + action->what);
    INVARIANTS(exanest_firmware_check(firmware));
}

/* -- Answers to actions -------------------------------------------------------------------------*/

static void on_response(struct exanest_firmware *firmware, uint32_t word)
{
    const struct exanest_response response = exanest_response_decode(word);
    firmware->counters.response_reads++;
    firmware->requests_wait = response.requests_wait;
    firmware->answers_wait = response.valid;
    firmware->step = EXANEST_STEP_REQUEST;
    if (!response.valid) {
        firmware->counters.response_reads_empty++;
        return;
    }
    firmware->acted = true;
    firmware->work_ns += firmware->config.costs.response_handle;
    exanest_firmware_respond(firmware, &response);
}

static void on_request_words(struct exanest_firmware *firmware,
                             const struct exanest_firmware_action *action)
{
    firmware->counters.request_reads++;
    CHECK(firmware->stage + action->count <= EXANEST_REQUEST_LANES);
    for (uint32_t i = 0; i < action->count; i++) {
        firmware->lanes[firmware->stage++] = (uint32_t)action->words[i];
    }
    if (firmware->stage == EXANEST_REQUEST_LANES) {
        firmware->job = EXANEST_JOB_NONE;
        exanest_firmware_take_request(firmware);
    }
}

static void on_polled(struct exanest_firmware *firmware,
                      const struct exanest_firmware_action *action, uint64_t posted)
{
    firmware->step = EXANEST_STEP_BEGIN_READ;
    const uint32_t page = exanest_channel_page(action->channel);
    if (posted == 0 || page >= EXANEST_PAGES || (firmware->bound >> page & 1) == 0) {
        return;
    }
    firmware->fresh[page] |= posted;
    firmware->pages_fresh |= (uint16_t)(1u << page);
}

void exanest_firmware_done(struct exanest_firmware *firmware,
                           const struct exanest_firmware_action *action, uint64_t value,
                           uint64_t now)
{
    CHECK(firmware->out == 1 + action->what);
    firmware->out = 0;
    switch ((enum exanest_do)action->what) {
    case EXANEST_DO_WORK: firmware->work_ns = 0; break;
    case EXANEST_DO_READ_RESPONSE: on_response(firmware, (uint32_t)value); break;
    case EXANEST_DO_READ_REQUEST: on_request_words(firmware, action); break;
    case EXANEST_DO_POLL: on_polled(firmware, action, value); break;
    case EXANEST_DO_READ_TRANSFER:
        exanest_firmware_begin_write(firmware, action->channel, action->words);
        break;
    case EXANEST_DO_STORE: exanest_firmware_stored(firmware, now); break;
    case EXANEST_DO_READ_DESCRIPTOR:
        firmware->counters.descriptor_reads++;
        exanest_firmware_looked(firmware, value, now);
        break;
    case EXANEST_DO_READ_CONTEXT: exanest_firmware_seen(firmware, value); break;
    case EXANEST_DO_UPDATE: exanest_firmware_updated(firmware, action->channel); break;
    case EXANEST_DO_SLEEP: break;
    }
    INVARIANTS(exanest_firmware_check(firmware));
}

bool exanest_firmware_idle(const struct exanest_firmware *firmware)
{
    uint64_t active = 0;
    for (uint32_t page = 0; page < EXANEST_PAGES; page++) {
        active |= firmware->active[page];
    }
    return active == 0 && firmware->queued == 0 && firmware->pages_fresh == 0 &&
           firmware->free_count == firmware->config.tids && firmware->job == EXANEST_JOB_NONE &&
           firmware->update == EXANEST_NONE && firmware->mapped_groups == 0;
}
