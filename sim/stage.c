/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/stage.h"

static void output(struct sim *sim, struct sim_event *event);
static void told(struct sim *sim, struct sim_event *event);

void sim_stage_init(struct sim_stage *stage, struct sim *sim, const struct sim_stage_config *config)
{
    *stage = (struct sim_stage){
        .sim = sim, .config = *config, .marks = {.high = config->high, .low = config->low}};
    list_init(&stage->waiting);
    sim_event_init(&stage->output, output);
    sim_event_init(&stage->told, told);
}

void sim_stage_join(struct sim_stage *from, struct sim_stage *to)
{
    from->next = to;
    to->previous = from;
    from->credits.available = to->config.buffer_bytes;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void wake(struct sim_stage *stage, uint64_t at_ps)
{
    if (!sim_event_scheduled(&stage->output)) {
        sim_schedule(stage->sim, &stage->output, at_ps);
    }
}

/* -- Flow control -------------------------------------------------------------------------------*/

/* The words of one stage travel at one speed, so they arrive in the order in which they were
 * sent. */
static void tell(struct sim_stage *stage, uint32_t value)
{
    CHECK(stage->word_count < SIM_STAGE_WORDS);
    const uint64_t at_ps = stage->sim->now_ps + stage->previous->config.link_ps;
    const uint32_t at = (stage->first_word + stage->word_count++) % SIM_STAGE_WORDS;
    stage->words[at] = (struct sim_stage_word){at_ps, value};
    if (stage->word_count == 1) {
        sim_schedule(stage->sim, &stage->told, at_ps);
    }
}

static void told(struct sim *sim, struct sim_event *event)
{
    struct sim_stage *stage = CONTAINER_OF(event, struct sim_stage, told);
    struct sim_stage *previous = stage->previous;
    const struct sim_stage_word word = stage->words[stage->first_word];
    stage->first_word = (stage->first_word + 1) % SIM_STAGE_WORDS;
    stage->word_count--;
    if (stage->word_count > 0) {
        sim_schedule(sim, event, stage->words[stage->first_word].at_ps);
    }
    switch (stage->config.control) {
    case SIM_FLOW_NONE: break;
    case SIM_FLOW_CREDIT: sim_credits_return(&previous->credits, word.value); break;
    case SIM_FLOW_ONOFF: previous->stopped = word.value != 0; break;
    case SIM_FLOW_PAUSE:
        sim_pause_heard(&previous->pause, sim->now_ps, (uint16_t)word.value,
                        (previous->config.byte_ps + 7) / 8);
        break;
    }
    sim_cancel(&previous->output);
    wake(previous, later_of(sim->now_ps, previous->free_ps));
}

static bool is_pause(const struct sim_stage *stage)
{
    return stage->config.control == SIM_FLOW_PAUSE;
}

static void stored(struct sim_stage *stage, uint32_t bytes)
{
    stage->stored += bytes;
    stage->peak = stage->stored > stage->peak ? stage->stored : stage->peak;
    if (stage->previous == NULL || stage->config.control == SIM_FLOW_NONE ||
        stage->config.control == SIM_FLOW_CREDIT) {
        return;
    }
    /* A pause runs out by itself, so every unit above the mark asks for it again. */
    const bool stop = sim_onoff_stored(&stage->marks, bytes);
    if (stop || (is_pause(stage) && stage->marks.stopped)) {
        tell(stage, is_pause(stage) ? stage->config.pause_quanta : 1);
    }
}

static void taken(struct sim_stage *stage, uint32_t bytes)
{
    stage->stored -= bytes;
    if (stage->previous == NULL || stage->config.control == SIM_FLOW_NONE) {
        return;
    }
    if (stage->config.control == SIM_FLOW_CREDIT) {
        tell(stage, bytes);
    } else if (sim_onoff_taken(&stage->marks, bytes)) {
        tell(stage, 0);
    }
}

/* When the next stage will take a unit of `bytes`; UINT64_MAX: when it says so. Takes the credits
 * if that is now. */
static uint64_t admitted_ps(struct sim_stage *stage, uint32_t bytes)
{
    const uint64_t now = stage->sim->now_ps;
    switch (stage->next->config.control) {
    case SIM_FLOW_NONE: return now;
    case SIM_FLOW_CREDIT: return sim_credits_take(&stage->credits, bytes) ? now : UINT64_MAX;
    case SIM_FLOW_ONOFF: return stage->stopped ? UINT64_MAX : now;
    case SIM_FLOW_PAUSE: return sim_pause_silent(&stage->pause, now) ? stage->pause.until_ps : now;
    }
    UNREACHABLE("a flow control outside its enum");
}

/* -- Units --------------------------------------------------------------------------------------*/

static void head_arrives(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct sim_unit *unit = CONTAINER_OF(event, struct sim_unit, event);
    (void)sim_stage_arrive(unit->at, unit);
}

static void tail_arrives(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct sim_unit *unit = CONTAINER_OF(event, struct sim_unit, event);
    struct sim_stage *stage = unit->at;
    stage->delivered++;
    taken(stage, unit->bytes);
    stage->sink(stage, unit);
}

bool sim_stage_arrive(struct sim_stage *stage, struct sim_unit *unit)
{
    if (unit->bytes > stage->config.buffer_bytes - stage->stored) {
        stage->lost++;
        return false;
    }
    unit->at = stage;
    stored(stage, unit->bytes);
    if (stage->next == NULL) {
        sim_event_init(&unit->event, tail_arrives);
        sim_schedule(stage->sim, &unit->event, unit->tail_ps);
    } else {
        list_append(&stage->waiting, &unit->node);
        wake(stage, later_of(stage->sim->now_ps, stage->free_ps));
    }
    return true;
}

/* When a unit may begin to leave: not so early that its tail would be sent before it has come. */
static uint64_t ready_ps(const struct sim_stage *stage, const struct sim_unit *unit,
                         uint64_t arrived_ps)
{
    const uint64_t taken_ps = unit->bytes * stage->config.byte_ps;
    if (!stage->config.cut_through) {
        return unit->tail_ps + stage->config.delay_ps;
    }
    const uint64_t in_time_ps = unit->tail_ps > taken_ps ? unit->tail_ps - taken_ps : 0;
    return later_of(arrived_ps, in_time_ps) + stage->config.delay_ps;
}

static void transmit(struct sim_stage *stage, struct sim_unit *unit)
{
    struct sim *sim = stage->sim;
    list_remove(&unit->node);
    stage->free_ps = sim->now_ps + unit->bytes * stage->config.byte_ps;
    stage->leaving = unit->bytes;
    stage->delivered++;
    unit->at = stage->next;
    unit->tail_ps = stage->free_ps + stage->config.link_ps;
    sim_event_init(&unit->event, head_arrives);
    sim_schedule(sim, &unit->event, sim->now_ps + stage->config.link_ps);
    sim_schedule(sim, &stage->output, stage->free_ps);
}

static void output(struct sim *sim, struct sim_event *event)
{
    struct sim_stage *stage = CONTAINER_OF(event, struct sim_stage, output);
    if (sim->now_ps < stage->free_ps) {
        sim_schedule(sim, event, stage->free_ps);
        return;
    }
    if (stage->leaving > 0) {
        taken(stage, stage->leaving);
        stage->leaving = 0;
    }
    if (list_empty(&stage->waiting)) {
        return;
    }
    struct sim_unit *unit = CONTAINER_OF(stage->waiting.next, struct sim_unit, node);
    const uint64_t arrived_ps = unit->event.at_ps; /* Its head's event was its arrival. */
    const uint64_t ready = ready_ps(stage, unit, arrived_ps);
    if (ready > sim->now_ps) {
        sim_schedule(sim, event, ready);
        return;
    }
    const uint64_t admitted = admitted_ps(stage, unit->bytes);
    if (admitted == sim->now_ps) {
        transmit(stage, unit);
    } else if (admitted != UINT64_MAX) {
        sim_schedule(sim, event, admitted);
    }
}
