/* SPDX-License-Identifier: BSD-2-Clause
 *
 * node_internal - calls between the files of the board: node.c (its servers), node_input.c (its
 * input).
 */
#ifndef LAB_FEROCE_NODE_INTERNAL_H
#define LAB_FEROCE_NODE_INTERNAL_H

#include "lab/feroce/node.h"

/* node.c */
static inline uint64_t feroce_cycles_ps(const struct feroce_node *node, uint64_t cycles)
{
    return cycles * node->timing.cycle_ps;
}

/* The next edge at which the timers' round robin stands at queue pair `index`. */
uint64_t feroce_turn_ps(const struct feroce_node *node, uint64_t at_ps, uint32_t index);
bool feroce_is_2024(const struct feroce_node *node);
/* There may be something to send, or to store. */
void feroce_wake_reader(struct feroce_node *node);
void feroce_wake_writer(struct feroce_node *node);
void feroce_wake_queue(struct feroce_queue_server *queue);
/* Goes next through memory read and headers, in front of packets that wait. */
void feroce_insert_output(struct feroce_node *node, struct feroce_packet_on_line *packet);

/* node_input.c */
extern const struct sim_port_calls feroce_node_calls;
void feroce_on_timer(struct sim *sim, struct sim_event *event);
/* The engine's deadline may have changed. */
void feroce_set_timer(struct feroce_node *node);
/* Takes the engine's events. */
void feroce_take_events(struct feroce_node *node);

#endif
