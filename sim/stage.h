/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stage - a store-and-forward or cut-through element: a buffer, a delay, a link behind it.
 *
 * Purpose    The part that chains are made of: units come in, wait, and go out at a link's rate,
 *            as the flow control of the next one allows.
 * Inputs     sim_stage_arrive; from the next stage credits, stop words or pauses.
 * Outputs    The unit's arrival at the next stage, or at the sink; what found no room.
 * Ownership  Units lie in whoever made them; a stage links them while it holds them.
 * Threads    One world, one thread.
 * Time       Picoseconds; a unit's tail is one transmission time behind its head.
 * Units      Bytes.
 * Limits     One input, one output; SIM_STAGE_WORDS words of flow control on their way.
 * Source     Store-and-forward: a unit may leave when its tail has come; cut-through: when its head
 *            has, but never faster than it comes. Flow control: sim/flow.h.
 */
#ifndef SIM_STAGE_H
#define SIM_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sim/flow.h"
#include "sim/kernel.h"

#define SIM_STAGE_WORDS 256u

enum sim_flow_control {
    SIM_FLOW_NONE,   /* A unit that does not fit is lost. */
    SIM_FLOW_CREDIT, /* Credits count bytes. */
    SIM_FLOW_ONOFF,
    SIM_FLOW_PAUSE,
};

struct sim_stage;

/* Something that travels. */
struct sim_unit {
    struct sim_event event; /* The head reaches the next stage; at a sink, the tail. */
    struct list node;
    struct sim_stage *at;
    uint32_t bytes;
    uint64_t tail_ps; /* When its tail is at the stage where it is. */
};

struct sim_stage_config {
    bool cut_through;
    uint64_t delay_ps;             /* From head (or tail) to the first byte on the link behind. */
    uint64_t byte_ps;              /* The time of a byte on the link behind. */
    uint64_t link_ps;              /* How long the link to the next stage is, either way. */
    uint32_t buffer_bytes;         /* Room for the units that wait here. */
    enum sim_flow_control control; /* How this stage holds back the one in front of it. */
    uint32_t high, low;            /* The marks for SIM_FLOW_ONOFF and SIM_FLOW_PAUSE. */
    uint16_t pause_quanta; /* The length of a pause: longer than it takes to empty down to `low`. */
};

/* A word of flow control on its way to the stage in front. */
struct sim_stage_word {
    uint64_t at_ps;
    uint32_t value; /* Credits: bytes. On/off: 1 stop, 0 go. Pause: quanta. */
};

struct sim_stage {
    struct sim *sim;
    struct sim_stage_config config;
    struct sim_stage *previous, *next; /* NULL: nobody; a sink. */
    struct sim_event output;           /* The output is free, or may go on. */
    struct list waiting;
    uint64_t free_ps; /* When the output is free. */
    uint32_t leaving; /* Bytes of the unit that is on the link. */
    /* What this stage knows of the next one's room. */
    struct sim_credits credits;
    struct sim_pause pause;
    bool stopped;
    /* What this stage tells the previous one. */
    struct sim_onoff marks;
    struct sim_event told;
    struct sim_stage_word words[SIM_STAGE_WORDS];
    uint32_t first_word, word_count;
    uint32_t stored, peak;
    uint64_t delivered, lost;
    void (*sink)(struct sim_stage *stage, struct sim_unit *unit); /* A unit has come whole. */
    void *owner;
};

void sim_stage_init(struct sim_stage *stage, struct sim *sim,
                    const struct sim_stage_config *config);
/* Units that leave `from` go to `to`. To be called once, before anything moves. */
void sim_stage_join(struct sim_stage *from, struct sim_stage *to);
/* The unit's head is at the stage now, its tail will be at `unit->tail_ps`. False: there is no
 * room, and it is lost. */
bool sim_stage_arrive(struct sim_stage *stage, struct sim_unit *unit);

#endif
