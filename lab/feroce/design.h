/* SPDX-License-Identifier: BSD-2-Clause
 *
 * design - a board that is a hardware design: its frames in the machine, and the machine's to it.
 *
 * Purpose    Stands in the place of a board's servers (node.h): the same line, switch and receiver,
 *            and the same counters, which come from the packets that pass.
 * Inputs     A compiled design (hdl/model.h) with one port, whose queue pair is opened by FERoCE's
 *            connection manager.
 * Ownership  The node owns it.
 * Limits     One queue pair. UDP over IPv4 without options; the switch gets its frames whole.
 * Source     Specification of FERoCE, 9.5.
 */
#ifndef LAB_FEROCE_DESIGN_H
#define LAB_FEROCE_DESIGN_H

#include "lab/feroce/node.h"
#include "sim/parts/design.h"

/* Why a frame of the design goes nowhere. */
enum feroce_stray {
    FEROCE_STRAY_PROTOCOL, /* Not UDP over IPv4 in one piece, or its lengths disagree. */
    FEROCE_STRAY_ADDRESS,  /* Neither receiver nor port that anybody has. */
    FEROCE_STRAY_ROCE,     /* No packet of RoCEv2. */
    FEROCE_STRAY_ICRC,
    FEROCE_STRAYS,
};

struct feroce_design {
    struct feroce_node *node;
    struct sim_design design;
    struct psn acked, next; /* The oldest that is not acknowledged; behind the last one sent. */
    uint64_t strays[FEROCE_STRAYS];
    uint32_t taken;                   /* Packets to the design for which there was room. */
    uint64_t refused;                 /* Packets to the design for which its port had no room. */
    uint32_t icrc_found, icrc_wanted; /* The first wrong one. */
};

extern const struct sim_port_calls feroce_design_calls;
extern const char *const feroce_stray_texts[FEROCE_STRAYS];

/* The node is open. The run fails if the design cannot be used. */
void feroce_design_open(struct feroce_node *node, const struct hdl_model_ops *ops);
void feroce_design_close(struct feroce_node *node);

#endif
