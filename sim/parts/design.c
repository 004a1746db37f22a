/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/parts/design.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/align.h"
#include "wire/crc32c.h"

#define FS_PER_PS 1000

/* -- Ports --------------------------------------------------------------------------------------*/

static struct hdl_port *attach(void *owner, uint32_t number, uint32_t width_bits, bool xgmii,
                               const char *scope)
{
    struct sim_design *design = owner;
    struct hdl_port_config config = design->config.port;
    config.width_bits = width_bits;
    config.xgmii = xgmii;
    config.seed = design->config.seed * SIM_DESIGN_PORTS_MAX + number;
    if (number >= SIM_DESIGN_PORTS_MAX || design->ports[number] != NULL) {
        snprintf(design->error, sizeof(design->error),
                 "%s has two ports of number %u, or one beyond %d", design->config.ops->name,
                 number, SIM_DESIGN_PORTS_MAX - 1);
        return NULL;
    }
    const char *wrong = hdl_port_config_error(&config);
    if (wrong != NULL) {
        snprintf(design->error, sizeof(design->error), "port %u: %s", number, wrong);
        return NULL;
    }
    void *memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(hdl_port_bytes(&config)));
    CHECK(memory != NULL);
    design->ports[number] = hdl_port_init(&config, memory);
    design->xgmii |= (uint32_t)xgmii << number;
    design->port_count = number >= design->port_count ? number + 1 : design->port_count;
    design->waves[number].width_bits = width_bits;
    snprintf(design->waves[number].scope, HDL_SCOPE_BYTES, "%s", scope);
    return design->ports[number];
}

static struct hdl_pair *attach_pair(void *owner, uint32_t number)
{
    struct sim_design *design = owner;
    if (number >= HDL_PAIRS_MAX || design->pair_numbers >> number & 1) {
        snprintf(design->error, sizeof(design->error),
                 "%s has two queue pairs of number %u, or one beyond %d", design->config.ops->name,
                 number, HDL_PAIRS_MAX - 1);
        return NULL;
    }
    design->pair_numbers |= 1u << number;
    return &design->pairs[number];
}

static void fail(void *owner, const char *why)
{
    struct sim_design *design = owner;
    if (design->error[0] == '\0') {
        snprintf(design->error, sizeof(design->error), "%s", why);
    }
}

static void free_ports(struct sim_design *design)
{
    for (uint32_t i = 0; i < design->port_count; i++) {
        free(design->ports[i]);
    }
}

/* -- Frames -------------------------------------------------------------------------------------*/

static void note(struct sim_design *design, uint32_t port, const struct hdl_frame *frame)
{
    const uint64_t what = (uint64_t)frame->bad << 63 | (uint64_t)port << 32;
    sim_note(design->sim, frame->at_ps);
    sim_note(design->sim, what | crc32c(0, frame->data, frame->bytes));
}

/* Flow control is for the MAC. A port stands for it, and the design sees what follows; a design
 * that speaks XGMII has its own. */
static bool has_mac(const struct sim_design *design, uint32_t port)
{
    return (design->xgmii >> port & 1) != 0;
}

static bool pause_port(struct hdl_port *port, const struct pause *pause, uint64_t at_ps)
{
    if (pause->kind == PAUSE_LINK) {
        const struct hdl_pause link = {at_ps, HDL_LINK, pause->quanta[0]};
        return hdl_port_pause(port, &link);
    }
    bool room = true;
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        const struct hdl_pause one = {at_ps, i, pause->quanta[i]};
        if (pause->classes >> i & 1) {
            room &= hdl_port_pause(port, &one);
        }
    }
    return room;
}

bool sim_design_pause(struct sim_design *design, uint32_t port, const struct pause *pause)
{
    CHECK(port < design->port_count && design->ports[port] != NULL);
    if (has_mac(design, port)) {
        uint8_t bytes[PAUSE_FRAME_BYTES];
        pause_encode(pause, bytes);
        const struct hdl_frame frame = {
            .at_ps = design->sim->now_ps, .data = bytes, .bytes = sizeof(bytes)};
        return sim_design_push(design, port, &frame);
    }
    pause_port(design->ports[port], pause, design->sim->now_ps);
    return false;
}

bool sim_design_strike(struct sim_design *design, uint32_t port, struct hdl_frame *frame)
{
    return sim_design_faults_strike(&design->faults, port, frame);
}

bool sim_design_push(struct sim_design *design, uint32_t port, const struct hdl_frame *frame)
{
    CHECK(port < design->port_count && design->ports[port] != NULL);
    const uint64_t ahead_ps = design->config.lookahead_ps;
    CHECK(ahead_ps == 0 || frame->at_ps >= design->sim->now_ps + ahead_ps);
    struct pause pause;
    note(design, SIM_DESIGN_PORTS_MAX + port, frame);
    if (!frame->bad && !has_mac(design, port) && pause_decode(frame->data, frame->bytes, &pause)) {
        return pause_port(design->ports[port], &pause, frame->at_ps);
    }
    return hdl_port_push(design->ports[port], frame);
}

static void take_frames(struct sim_design *design)
{
    for (uint32_t i = 0; i < design->port_count; i++) {
        struct hdl_frame frame;
        while (design->ports[i] != NULL && hdl_port_pull(design->ports[i], &frame)) {
            note(design, i, &frame);
            design->config.on_frame(design, i, &frame);
        }
    }
}

/* -- Edges --------------------------------------------------------------------------------------*/

/* UINT64_MAX: the design has no such clock. */
static uint64_t next_edge_ps(const struct sim_design *design, uint32_t clock)
{
    const uint64_t edge = design->next_edges[clock];
    CHECK(edge == 0 || edge <= UINT64_MAX / design->config.period_fs[clock]);
    return edge == 0 ? UINT64_MAX : edge * design->config.period_fs[clock] / FS_PER_PS;
}

static void schedule_edge(struct sim_design *design)
{
    const uint64_t clk_ps = next_edge_ps(design, 0), clk2_ps = next_edge_ps(design, 1);
    sim_schedule(design->sim, &design->edge, clk_ps < clk2_ps ? clk_ps : clk2_ps);
}

/* The clocks that rise now; their next edges are later. */
static uint32_t rising(struct sim_design *design)
{
    uint32_t clocks = 0;
    for (uint32_t i = 0; i < HDL_CLOCKS_MAX; i++) {
        if (next_edge_ps(design, i) == design->sim->now_ps) {
            clocks |= 1u << i;
            design->next_edges[i]++;
        }
    }
    return clocks;
}

static void begin_reset(struct sim_design *design)
{
    design->config.ops->reset(design->model, true);
    design->reset_left = design->config.reset_edges;
    design->faults.resets++;
    design->faults.last_reset_ps = design->sim->now_ps;
}

static void on_edge(struct sim *sim, struct sim_event *event)
{
    struct sim_design *design = CONTAINER_OF(event, struct sim_design, edge);
    const struct hdl_model_ops *ops = design->config.ops;
    const uint32_t clocks = rising(design);
    const bool clk = (clocks & 1) != 0;
    design->edges += clk;
    if (clk && sim_design_faults_reset(&design->faults, sim->now_ps) && design->reset_left == 0) {
        begin_reset(design);
    }
    ops->step(design->model, sim->now_ps, clocks);
    if (clk && design->reset_left > 0 && --design->reset_left == 0) {
        ops->reset(design->model, false);
    }
    take_frames(design);
    if (design->error[0] == '\0' && !ops->finished(design->model)) {
        schedule_edge(design);
    }
}

/* -- Opening ------------------------------------------------------------------------------------*/

bool sim_design_open(struct sim_design *design, struct sim *sim,
                     const struct sim_design_config *config)
{
    /* A simulator that runs alone would be beyond a reset. */
    const bool may_reset = sim_design_faults_may_reset(&config->faults);
    const struct hdl_host host = {.owner = design,
                                  .attach = attach,
                                  .attach_pair = attach_pair,
                                  .edge = hdl_port_edge,
                                  .fail = fail,
                                  .period_fs = {config->period_fs[0], config->period_fs[1]},
                                  .lookahead_ps = may_reset ? 0 : config->lookahead_ps};
    *design = (struct sim_design){
        .config = *config, .sim = sim, .host = host, .reset_left = config->reset_edges};
    sim_design_faults_init(&design->faults, &config->faults, config->seed);
    CHECK(config->period_fs[0] >= HDL_PERIOD_FS_MIN && config->reset_edges >= 1);
    CHECK(config->period_fs[1] == 0 || config->period_fs[1] >= HDL_PERIOD_FS_MIN);
    if (config->ops->abi != HDL_ABI || config->ops->in_bytes != sizeof(struct hdl_in) ||
        config->ops->out_bytes != sizeof(struct hdl_out)) {
        snprintf(design->error, sizeof(design->error),
                 "the design was compiled by another nonic: build it again");
        return false;
    }
    const bool has_clk2 = config->ops->clocks > 1;
    if (has_clk2 != (config->period_fs[1] != 0)) {
        snprintf(design->error, sizeof(design->error),
                 has_clk2 ? "%s has a clk2, of which the period was not given"
                          : "%s has no clk2, of which the period was given",
                 config->ops->name);
        return false;
    }
    design->next_edges[0] = 1;
    design->next_edges[1] = has_clk2;
    sim_event_init(&design->edge, on_edge);
    design->model = config->ops->open(config->ops, &design->host, config->seed);
    if (design->model == NULL || design->port_count == 0) {
        if (design->error[0] == '\0') {
            snprintf(design->error, sizeof(design->error),
                     "%s has no nonic_axis, and no nonic_xgmii", config->ops->name);
        }
        sim_design_close(design);
        return false;
    }
    schedule_edge(design);
    return true;
}

void sim_design_close(struct sim_design *design)
{
    if (design->model != NULL) {
        sim_cancel(&design->edge);
        design->config.ops->close(design->model);
    }
    free_ports(design);
}
