/* SPDX-License-Identifier: BSD-2-Clause
 *
 * setup - the parts and the load of a FERoCE machine.
 *
 * Purpose    Makes boards, lines, switch and receiver out of an experiment's parameters; an
 *            experiment changes afterwards what it needs otherwise.
 * Units      Bytes; femtoseconds for a byte on the line.
 * Limits     FEROCE_SENDERS_MAX boards.
 * Source     Each parameter names its own: lab/feroce/parameters.c.
 */
#ifndef LAB_FEROCE_SETUP_H
#define LAB_FEROCE_SETUP_H

#include "hdl/model.h"
#include "lab/lab.h"
#include "sim/parts/design_faults.h"
#include "sim/parts/ethernet_switch.h"
#include "transport/feroce/board.h"

#define FEROCE_SENDERS_MAX 8u

/* Clock, width and line go together. */
enum feroce_speed {
    FEROCE_10G,
    FEROCE_25G,
    FEROCE_100G,
    FEROCE_SPEEDS,
};

/* The bits that the laboratory may spoil, to see which check notices. */
enum feroce_flip {
    FEROCE_FLIP_NOTHING,
    FEROCE_FLIP_PAYLOAD, /* A bit of one packet's payload, behind the check of the ICRC. */
    FEROCE_FLIP_ICRC,    /* A bit of one packet's ICRC, in front of it. */
};

enum feroce_pauser {
    FEROCE_PAUSED_BY_SWITCH,   /* Each input has thresholds of its own. */
    FEROCE_PAUSED_BY_RECEIVER, /* One queue, that to the receiver, stops all senders. */
};

/* A board's servers. */
struct feroce_timing {
    uint64_t cycle_ps;
    uint32_t width_bytes, qp_width_bytes;
    uint32_t request_cycles, visit_cycles, packet_cycles, pipe_cycles;
    uint32_t read_ahead;
    double timer_scale; /* How fast the timers' clock goes; 1: as the board's. */
};

struct feroce_setup {
    enum feroce_speed speed;
    struct feroce_board_config board;
    struct feroce_timing timing;
    struct sim_ethernet_kind line;       /* All lines but, */
    struct sim_ethernet_kind board_line; /* with bubbles, the one from a board. */
    uint64_t switch_ps;
    struct sim_input_limits input;
    uint64_t output_bytes;
    bool one_unpaused; /* The switch never pauses the second sender. */
    enum feroce_pauser pauser;
    uint64_t ack_ps, host_ps;
    uint32_t coalesce, receives;
    uint8_t rnr_code;
    bool keeps; /* The receiver keeps packets behind a lost one. */
    enum feroce_flip flip;
    uint64_t patience_ps; /* A world without an acknowledgement for this time ends. */
    /* Boards that are hardware designs, by number, the period of their clock, and accidents; NULL:
     * the board is the laboratory's. */
    uint64_t design_period_fs[HDL_CLOCKS_MAX];
    struct sim_design_fault_rates design_faults;
    uint32_t design_ready_ppm, design_gap_ppm; /* As struct hdl_port_config has them. */
    bool design_cut_through;
    const struct hdl_model_ops *designs[FEROCE_SENDERS_MAX];
};

struct feroce_load {
    uint32_t senders, qps; /* Queue pairs that send, of each board. */
    bool write;
    uint32_t bytes[2];               /* Messages of boards with even, with odd numbers. */
    uint32_t frequency;              /* As in the generator's request. */
    uint32_t count;                  /* Each generator's messages; 0: without end. */
    uint32_t warm, messages;         /* A board's before the measurement, and in all. */
    uint64_t until_ps;               /* The end, whatever was done; 0: none. */
    uint64_t stagger_ps;             /* Between the starts of two boards. */
    uint32_t loss_millionths;        /* Packets from boards, */
    uint32_t answer_loss_millionths; /* and answers to them. */
    uint32_t lost_psn;               /* Queue pair 256's packet that is lost once; NO_PSN: none. */
    uint32_t acks;                   /* After this number of ACKs all are lost; 0: none is. */
    uint32_t lost_replies;    /* The number of replies of the boards to OPEN that are lost. */
    uint64_t reposts_from_ps; /* From the start until then no receive is posted again. */
    uint64_t window_ps;       /* Fairness is looked at over spans of this length; 0: not at all. */
};

#define FEROCE_NO_PSN UINT32_MAX

/* The board of 2024 at 10G and 25G, that of 2026 at 100G. */
struct feroce_setup feroce_setup_of(struct lab_run *run, enum feroce_speed speed);
/* The same with the board of 2026 at any speed. */
struct feroce_setup feroce_setup_2026(struct lab_run *run, enum feroce_speed speed);
/* With another gap behind frames, and bubbles in boards. */
void feroce_set_gap(struct feroce_setup *setup, uint32_t extra_bytes, uint32_t bubble_cycles);
/* One queue pair of one board sends `messages` messages of `bytes` bytes. */
struct feroce_load feroce_load_of(uint32_t bytes, uint32_t messages);

#endif
