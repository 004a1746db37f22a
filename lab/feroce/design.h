/* SPDX-License-Identifier: BSD-2-Clause
 *
 * design - a board that is a hardware design: its frames in the machine, and the machine's to it.
 *
 * Purpose    Stands in the place of a board's servers (node.h): the same line, switch and receiver,
 *            and the same counters, which come from the packets that pass.
 * Inputs     A compiled design (hdl/model.h) with one port, whose queue pair is opened by FERoCE's
 *            connection manager.
 * Ownership  The node owns it.
 * Limits     One queue pair; FEROCE_SENT_MAX packets that are not acknowledged. UDP over IPv4
 *            (hdl/bridge.h); the switch gets its frames whole.
 * Source     docs/decisions/0053-designs-in-verilog.md.
 */
#ifndef LAB_FEROCE_DESIGN_H
#define LAB_FEROCE_DESIGN_H

#include "hdl/bridge.h"
#include "lab/feroce/node.h"
#include "sim/parts/design.h"

struct feroce_design {
    struct feroce_node *node;
    struct sim_design design;
    struct bridge bridge;   /* Judges its frames, and answers ARP and ICMP echo. */
    struct psn acked, next; /* The oldest that is not acknowledged; behind the last one sent. */
    uint64_t last_data_ps;  /* When it sent data last. */
    uint64_t nowhere;       /* Datagrams to an address or a port that nobody has, or no RoCEv2. */
    uint32_t given;         /* Frames to the design, */
    uint64_t refused;       /* and those for which its port had no room. */
};

/* A design gets frames with their tails, or with their heads. */
extern const struct sim_port_calls feroce_design_calls, feroce_cut_through_calls;

/* The node is open. The run fails if the design cannot be used. */
void feroce_design_open(struct feroce_node *node, const struct hdl_model_ops *ops);
void feroce_design_close(struct feroce_node *node);

#endif
