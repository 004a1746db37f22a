/* SPDX-License-Identifier: BSD-2-Clause
 *
 * design - a hardware design in lockstep with virtual time.
 *
 * Purpose    Each rising edge of the design's clocks is an event of the kernel; edges of two clocks
 *            at one time are one. Frames that the
 *            world gives reach the design's ports, and the world gets those of the design with the
 *            time at which their last bit leaves the line, which may lie ahead.
 * Time       Edge n of a clock, from 1 on, is at n of its periods, rounded down to ps: no drift
 *            adds up. Edges are counted and reset lasts by clk. A port
 *            shows what comes at t at the first edge after t (hdl/port.h), so the order of events
 *            of one time does not matter.
 * Inputs     The model (hdl/model.h), whoever loaded it.
 * Outputs    on_frame, with data that are there until it returns. The digest notes every frame,
 *            both ways: port, time, CRC.
 * Ownership  It allocates its ports when it is opened, and frees them when it is closed. It must
 *            not move in between.
 */
#ifndef SIM_PARTS_DESIGN_H
#define SIM_PARTS_DESIGN_H

#include "hdl/model.h"
#include "hdl/pair.h"
#include "hdl/port.h"
#include "sim/kernel.h"
#include "sim/parts/design_faults.h"
#include "wire/pause.h"

#define SIM_DESIGN_PORTS_MAX   HDL_PORTS_MAX
#define SIM_DESIGN_RESET_EDGES 16 /* As many as designs are told of. */

struct sim_design;

struct sim_design_config {
    const struct hdl_model_ops *ops;
    struct hdl_port_config port;        /* All have this; the design says which kind they are of. */
    uint64_t period_fs[HDL_CLOCKS_MAX]; /* clk's and clk2's; 0: no clk2. */
    uint32_t reset_edges; /* With reset, from the first one on and whenever it comes; at least 1. */
    uint64_t seed;
    struct sim_design_fault_rates faults;
    /* The world pushes frames at least this long before their times; 0: at their times. A simulator
     * that is a process of its own is asked as seldom as this. */
    uint64_t lookahead_ps;
    /* A frame of the design; its last bit leaves the line at frame->at_ps, now or later. */
    void (*on_frame)(struct sim_design *design, uint32_t port, const struct hdl_frame *frame);
};

struct sim_design {
    struct sim_design_config config;
    struct sim *sim;
    struct hdl_host host;
    struct hdl_model *model;
    struct hdl_port *ports[SIM_DESIGN_PORTS_MAX]; /* NULL: the design has none of this number. */
    uint32_t port_count;                          /* Numbers are below it. */
    uint32_t xgmii;                               /* Bit i: port i is of this kind. */
    /* Those of the design are in `pair_numbers`; `local.ip` and the peer's half are the world's. */
    struct hdl_pair pairs[HDL_PAIRS_MAX];
    uint32_t pair_numbers;
    struct {
        uint32_t width_bits;
        char scope[HDL_SCOPE_BYTES]; /* Where its signals are in a trace. */
    } waves[SIM_DESIGN_PORTS_MAX];
    uint64_t edges;                      /* clk's. */
    uint64_t next_edges[HDL_CLOCKS_MAX]; /* Numbers; 0: no such clock. */
    uint32_t reset_left;                 /* Edges with reset that are still to come. */
    struct sim_design_faults faults;
    struct sim_event edge;
    char error[160]; /* Not empty: it cannot be used, or the simulator has failed. */
};

/* Opens a model in `sim`. False, and why in design->error: it cannot be used. */
bool sim_design_open(struct sim_design *design, struct sim *sim,
                     const struct sim_design_config *config);
/* The seed's faults strike a frame that is about to be pushed, or do not. True: it is bad now. */
bool sim_design_strike(struct sim_design *design, uint32_t port, struct hdl_frame *frame);
/* A good frame of flow control pauses the port, unless the design has its own MAC. False: the port
 * has no room for the frame. */
bool sim_design_push(struct sim_design *design, uint32_t port, const struct hdl_frame *frame);
/* A pause that the port's MAC hears now. True: the MAC is the design's own, and got a frame. */
bool sim_design_pause(struct sim_design *design, uint32_t port, const struct pause *pause);
void sim_design_close(struct sim_design *design);

#endif
