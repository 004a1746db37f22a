/* SPDX-License-Identifier: BSD-2-Clause
 *
 * watch - see watch.h.
 */
#include "lab/feroce/watch.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "lab/feroce/machine.h"

/* A level is written when it changes, and once at the beginning. */
struct level {
    uint32_t track;
    bool written;
    uint64_t value;
};

struct state {
    uint32_t track;
    enum feroce_state state;
    uint64_t number; /* The host's queue pair; in ERROR the syndrome. */
    uint64_t since_ps;
};

struct board {
    uint32_t line;
    struct level paused, unacknowledged;
    struct level held, asks; /* Its input of the switch. */
    struct state states[FEROCE_QPS_MAX];
};

struct feroce_watch {
    const struct feroce_machine *machine;
    struct sim_trace *trace;
    struct board boards[FEROCE_SENDERS_MAX];
    uint32_t receiver_line;
    struct level queue;
};

static const char *const state_names[] = {[FEROCE_RESET] = "RESET",
                                          [FEROCE_INIT] = "INIT",
                                          [FEROCE_RTS] = "RTS",
                                          [FEROCE_ERROR] = "ERROR"};

static const char *const queue_pair_names[FEROCE_QPS_MAX] = {
    "queue pair 256", "queue pair 257", "queue pair 258", "queue pair 259",
    "queue pair 260", "queue pair 261", "queue pair 262", "queue pair 263",
    "queue pair 264", "queue pair 265", "queue pair 266", "queue pair 267",
    "queue pair 268", "queue pair 269", "queue pair 270", "queue pair 271"};

/* -- Lines --------------------------------------------------------------------------------------*/

static const char *name_of(const struct feroce_packet_on_line *packet)
{
    if (!packet->has_icrc) {
        return "connection manager";
    }
    if (packet->is_data) {
        return packet->resent ? "data, again" : "data";
    }
    switch (packet->headers[ROCE_BTH_BYTES] & ROCE_AETH_KIND_MASK) {
    case ROCE_AETH_ACK: return "ACK";
    case ROCE_AETH_RNR_NAK: return "RNR NAK";
    default: return "NAK";
    }
}

void feroce_watch_line(struct feroce_watch *watch, const struct feroce_packet_on_line *packet)
{
    const bool from_board = packet->from < watch->machine->load.senders;
    const uint64_t psn = packet->has_icrc ? load_be32(packet->headers + 8) & ROCE_24_BITS : 0;
    sim_trace_span(watch->trace,
                   from_board ? watch->boards[packet->from].line : watch->receiver_line,
                   name_of(packet), psn, packet->frame.span.head_ps, packet->frame.span.tail_ps);
}

/* -- Levels and states --------------------------------------------------------------------------*/

static void set_level(struct feroce_watch *watch, struct level *level, uint64_t value)
{
    if (!level->written || level->value != value) {
        level->written = true;
        level->value = value;
        sim_trace_value(watch->trace, level->track, watch->machine->sim.now_ps, value);
    }
}

/* The time without a queue pair is left out. */
static void end_state(struct feroce_watch *watch, const struct state *state)
{
    if (state->state != FEROCE_RESET) {
        sim_trace_span(watch->trace, state->track, state_names[state->state], state->number,
                       state->since_ps, watch->machine->sim.now_ps);
    }
}

static void look_at_states(struct feroce_watch *watch, uint32_t number)
{
    const struct feroce_node *node = &watch->machine->nodes[number];
    for (uint32_t i = 0; i < node->board.config.window.qps; i++) {
        struct state *state = &watch->boards[number].states[i];
        const struct feroce_context *context = &node->board.table.contexts[i];
        if (context->state != state->state) {
            end_state(watch, state);
            state->state = context->state;
            state->number =
                context->state == FEROCE_ERROR ? context->syndrome : context->remote.qpn;
            state->since_ps = watch->machine->sim.now_ps;
        }
    }
}

static uint64_t unacknowledged(const struct feroce_node *node)
{
    uint64_t packets = 0;
    for (uint32_t i = 0; i < node->board.config.window.qps; i++) {
        packets += node->board.window.windows[i].open ? feroce_node_psn_diff(node, i) : 0;
    }
    return packets;
}

static void look_at_input(struct feroce_watch *watch, struct board *board,
                          const struct sim_switch_port *input)
{
    uint64_t bytes = 0;
    bool asked = false;
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        bytes += input->lanes[i].bytes;
        asked |= input->lanes[i].asked;
    }
    set_level(watch, &board->held, bytes);
    set_level(watch, &board->asks, asked || watch->machine->receiver_pauses);
}

void feroce_watch_look(struct feroce_watch *watch)
{
    const struct feroce_machine *machine = watch->machine;
    const struct sim_switch_port *ports = machine->network.ports;
    const struct sim_port *output = &ports[feroce_receiver_number(machine)].port;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        const struct feroce_node *node = &machine->nodes[i];
        struct board *board = &watch->boards[i];
        set_level(watch, &board->paused, sim_port_paused(&node->port, 0));
        set_level(watch, &board->unacknowledged, unacknowledged(node));
        look_at_input(watch, board, &ports[i]);
        look_at_states(watch, i);
    }
    set_level(watch, &watch->queue, output->waiting_bytes[0]);
}

/* -- Opening ------------------------------------------------------------------------------------*/

static void open_board(struct feroce_watch *watch, uint32_t number)
{
    struct sim_trace *trace = watch->trace;
    struct board *board = &watch->boards[number];
    const int at = (int)number;
    board->line = sim_trace_track(trace, "board", at, "line", 0);
    board->paused.track = sim_trace_track(trace, "board", at, "paused", 1);
    board->unacknowledged.track =
        sim_trace_track(trace, "board", at, "packets not acknowledged", 24);
    board->held.track = sim_trace_track(trace, "switch, input", at, "bytes", 32);
    board->asks.track = sim_trace_track(trace, "switch, input", at, "asks for a pause", 1);
    for (uint32_t i = 0; i < watch->machine->setup.board.window.qps; i++) {
        board->states[i].track = sim_trace_track(trace, "board", at, queue_pair_names[i], 0);
    }
}

struct feroce_watch *feroce_watch_open(const struct feroce_machine *machine,
                                       struct sim_trace *trace)
{
    struct feroce_watch *watch = calloc(1, sizeof(*watch));
    CHECK(watch != NULL);
    watch->machine = machine;
    watch->trace = trace;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        open_board(watch, i);
    }
    watch->queue.track = sim_trace_track(trace, "switch", -1, "bytes to the receiver", 32);
    watch->receiver_line = sim_trace_track(trace, "receiver", -1, "line", 0);
    feroce_watch_look(watch);
    return watch;
}

void feroce_watch_close(struct feroce_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    for (uint32_t i = 0; i < watch->machine->load.senders; i++) {
        for (uint32_t k = 0; k < FEROCE_QPS_MAX; k++) {
            end_state(watch, &watch->boards[i].states[k]);
        }
    }
    free(watch);
}
