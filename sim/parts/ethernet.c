/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/parts/ethernet.h"

#include <stdlib.h>

#define NEVER UINT64_MAX

/* -- Coming -------------------------------------------------------------------------------------*/

static void lose(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss)
{
    CHECK(port->calls->on_loss != NULL);
    port->calls->on_loss(port, frame, loss);
}

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct sim_frame *frame = CONTAINER_OF(event, struct sim_frame, event);
    struct sim_port *port = frame->port;
    port->counters.frames_lost += frame->lost;
    port->counters.frames_spoilt += frame->spoilt && !frame->lost;
    if (frame->lost) {
        lose(port, frame, SIM_LOST_ON_LINE);
    } else if (frame->spoilt && !port->calls->at_head) {
        lose(port, frame, SIM_SPOILT_ON_LINE);
    } else {
        port->counters.frames_come++;
        port->calls->on_frame(port, frame);
    }
}

/* -- The line -----------------------------------------------------------------------------------*/

/* Does any bit of a frame come wrong? */
static bool spoils(struct sim_errors *errors, uint64_t bytes)
{
    const uint64_t bits = 8 * bytes;
    if (LIKELY(sim_errors_pass(errors, bits))) {
        return false;
    }
    uint64_t at = sim_errors_next(errors, 0, bits);
    const bool spoilt = at < bits;
    while (at < bits) {
        at = sim_errors_next(errors, at + 1, bits);
    }
    return spoilt;
}

/* The line carries a frame from now on; the span is that of the near end. */
static struct sim_span occupy(struct sim_port *port, uint64_t bytes)
{
    const uint64_t now_ps = port->sim->now_ps;
    port->sending = true;
    port->tail_ps = now_ps + sim_ethernet_frame_ps(&port->kind, bytes);
    port->free_ps = now_ps + sim_ethernet_line_ps(&port->kind, bytes);
    sim_reschedule(port->sim, &port->turn, port->free_ps);
    return (struct sim_span){now_ps, port->tail_ps};
}

/* The frame passes the near end: `out`. The far end gets it from the head on, or whole. */
static void pass(struct sim_port *port, struct sim_frame *frame, struct sim_span out, bool whole)
{
    struct sim_port *peer = port->peer;
    const uint64_t pass_ps = sim_ethernet_pass_ps(&port->kind);
    const uint64_t head_ps = whole ? out.tail_ps : out.head_ps;
    frame->span = out;
    port->counters.frames_sent++;
    port->counters.line_bytes += sim_ethernet_line_bytes(&port->kind, frame->bytes);
    if (port->calls->on_begin != NULL) {
        port->calls->on_begin(port, frame);
    }
    frame->lost |= sim_errors_loses(&port->errors);
    frame->spoilt |= spoils(&port->errors, frame->bytes);
    frame->port = peer;
    frame->span = (struct sim_span){head_ps + pass_ps, out.tail_ps + pass_ps};
    sim_event_init(&frame->event, on_arrival);
    sim_schedule(port->sim, &frame->event,
                 (peer->calls->at_head ? frame->span.head_ps : frame->span.tail_ps) +
                     peer->notice_ps);
}

static void begin(struct sim_port *port, struct sim_frame *frame)
{
    pass(port, frame, occupy(port, frame->bytes), false);
}

/* -- Pauses, out --------------------------------------------------------------------------------*/

static void fly(struct sim_port *port, const struct pause *pause)
{
    const struct sim_span out = occupy(port, SIM_ETHERNET_BYTES_MIN);
    port->counters.pauses_sent++;
    const bool lost = sim_errors_loses(&port->errors);
    if (spoils(&port->errors, SIM_ETHERNET_BYTES_MIN) || lost) {
        port->counters.pauses_lost++;
        return;
    }
    CHECK(port->flight_count < port->flight_room);
    const uint32_t last = (port->flight_first + port->flight_count++) % port->flight_room;
    port->flights[last] =
        (struct sim_flight){*pause, out.tail_ps + sim_ethernet_pass_ps(&port->kind)};
    if (port->flight_count == 1) {
        sim_schedule(port->sim, &port->landing, port->flights[last].at_ps);
    }
}

/* Sends the wanted flow control of one kind. */
static bool fly_wanted(struct sim_port *port)
{
    for (uint32_t kind = 0; kind < COUNT_OF(port->wants); kind++) {
        if (port->wants[kind]) {
            port->wants[kind] = false;
            fly(port, &port->wanted[kind]);
            return true;
        }
    }
    return false;
}

/* -- Turns --------------------------------------------------------------------------------------*/

static uint64_t paused_until(const struct sim_port *port, uint32_t class)
{
    return sim_later(port->link_until_ps, port->until_ps[class]);
}

bool sim_port_paused(const struct sim_port *port, uint32_t class)
{
    return paused_until(port, class) > port->sim->now_ps;
}

/* Begins the next frame, or says when one may begin; the line is free. */
static void begin_next(struct sim_port *port)
{
    uint64_t next_ps = NEVER;
    for (uint32_t class = PAUSE_CLASSES; class -- > 0;) {
        if (list_empty(&port->queues[class])) {
            continue;
        }
        const uint64_t until_ps = paused_until(port, class);
        if (until_ps <= port->sim->now_ps) {
            struct list *node = list_pop(&port->queues[class]);
            struct sim_frame *frame = CONTAINER_OF(node, struct sim_frame, node);
            port->waiting_bytes[class] -= frame->bytes;
            begin(port, frame);
            return;
        }
        next_ps = until_ps < next_ps ? until_ps : next_ps;
    }
    sim_cancel(&port->turn);
    if (next_ps != NEVER) {
        sim_schedule(port->sim, &port->turn, next_ps);
    }
}

/* Does what may be done by now. */
static void serve(struct sim_port *port)
{
    if (port->sending && port->free_ps <= port->sim->now_ps) {
        port->sending = false;
        if (port->calls->on_free != NULL) {
            port->calls->on_free(port);
        }
    }
    if (!port->sending && !fly_wanted(port)) {
        begin_next(port);
    }
}

static void on_turn(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    serve(CONTAINER_OF(event, struct sim_port, turn));
}

/* -- Pauses, in ---------------------------------------------------------------------------------*/

/* When a pause that is heard now will be over. */
static uint64_t end_of(const struct sim_port *port, uint16_t quanta)
{
    const uint64_t boundary_ps = sim_later(port->sim->now_ps, port->tail_ps);
    return quanta == 0 ? 0 : boundary_ps + sim_ethernet_quanta_ps(&port->kind, quanta);
}

static bool hear_link(struct sim_port *port, const struct pause *pause)
{
    if (port->hears_link) {
        port->link_until_ps = end_of(port, pause->quanta[0]);
    }
    return port->hears_link;
}

static bool hear_classes(struct sim_port *port, const struct pause *pause)
{
    const uint8_t classes = pause->classes & port->hears_classes;
    for (uint32_t class = 0; class < PAUSE_CLASSES; class ++) {
        if (classes >> class & 1) {
            port->until_ps[class] = end_of(port, pause->quanta[class]);
        }
    }
    return classes != 0;
}

static void hear(struct sim_port *port, const struct pause *pause)
{
    const bool heard =
        pause->kind == PAUSE_LINK ? hear_link(port, pause) : hear_classes(port, pause);
    port->counters.pauses_heard += heard;
    port->counters.pauses_ignored += !heard;
    if (port->calls->on_pause != NULL) {
        port->calls->on_pause(port, pause);
    }
    serve(port);
}

static void on_landing(struct sim *sim, struct sim_event *event)
{
    struct sim_port *port = CONTAINER_OF(event, struct sim_port, landing);
    const struct pause pause = port->flights[port->flight_first].pause;
    port->flight_first = (port->flight_first + 1) % port->flight_room;
    if (--port->flight_count > 0) {
        sim_schedule(sim, &port->landing, port->flights[port->flight_first].at_ps);
    }
    hear(port->peer, &pause);
}

/* -- For users ----------------------------------------------------------------------------------*/

/* As many frames of flow control as there can be between their first bit and the far end. */
static uint32_t flights_of(const struct sim_ethernet_kind *kind)
{
    const uint64_t slot_ps = sim_ethernet_line_ps(kind, SIM_ETHERNET_BYTES_MIN);
    CHECK(slot_ps > 0);
    return (uint32_t)((sim_ethernet_pass_ps(kind) + slot_ps) / slot_ps) + 1;
}

void sim_port_change(struct sim_port *port, const struct sim_ethernet_kind *kind)
{
    CHECK(port->counters.frames_sent == 0 && port->flight_count == 0);
    free(port->flights);
    port->kind = *kind;
    port->flight_room = flights_of(kind);
    port->flights = calloc(port->flight_room, sizeof(port->flights[0]));
    CHECK(port->flights != NULL);
}

void sim_port_open(struct sim_port *port, struct sim *sim, const struct sim_ethernet_kind *kind,
                   const struct sim_port_calls *calls)
{
    *port = (struct sim_port){
        .sim = sim, .calls = calls, .hears_link = true, .hears_classes = PAUSE_ALL_CLASSES};
    for (uint32_t class = 0; class < PAUSE_CLASSES; class ++) {
        list_init(&port->queues[class]);
    }
    sim_event_init(&port->turn, on_turn);
    sim_event_init(&port->landing, on_landing);
    sim_port_change(port, kind);
}

void sim_port_close(struct sim_port *port)
{
    sim_cancel(&port->turn);
    sim_cancel(&port->landing);
    free(port->flights);
    port->flights = NULL;
}

void sim_port_join(struct sim_port *a, struct sim_port *b)
{
    CHECK(a->peer == NULL && b->peer == NULL && a != b);
    a->peer = b;
    b->peer = a;
}

void sim_port_send(struct sim_port *port, struct sim_frame *frame)
{
    CHECK(port->peer != NULL);
    list_append(&port->queues[frame->class], &frame->node);
    port->waiting_bytes[frame->class] += frame->bytes;
    serve(port);
}

void sim_port_carry(struct sim_port *port, struct sim_frame *frame, uint64_t tail_ps)
{
    const uint64_t frame_ps = sim_ethernet_frame_ps(&port->kind, frame->bytes);
    CHECK(port->peer != NULL && tail_ps >= port->sim->now_ps);
    const struct sim_span out = {tail_ps > frame_ps ? tail_ps - frame_ps : 0, tail_ps};
    pass(port, frame, out, true);
}

void sim_port_pause(struct sim_port *port, const struct pause *pause)
{
    struct pause *wanted = &port->wanted[pause->kind];
    CHECK(port->peer != NULL);
    if (!port->wants[pause->kind] || pause->kind == PAUSE_LINK) {
        *wanted = *pause;
    } else {
        wanted->classes |= pause->classes;
        for (uint32_t class = 0; class < PAUSE_CLASSES; class ++) {
            if (pause->classes >> class & 1) {
                wanted->quanta[class] = pause->quanta[class];
            }
        }
    }
    port->wants[pause->kind] = true;
    serve(port);
}

bool sim_port_idle(struct sim_port *port, uint32_t class)
{
    serve(port);
    return !port->sending && !sim_port_paused(port, class) && list_empty(&port->queues[class]);
}
