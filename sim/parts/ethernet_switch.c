/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/parts/ethernet_switch.h"

#include <stdlib.h>

#include "sim/parts/switch.h"

/* -- Headroom -----------------------------------------------------------------------------------*/

/* The bytes that the line carries in a time, rounded up. */
static uint64_t bytes_in(const struct sim_ethernet_kind *line, uint64_t time_ps)
{
    return (1000 * time_ps + line->wire.byte_fs - 1) / line->wire.byte_fs;
}

struct sim_headroom sim_headroom_of(const struct sim_ethernet_kind *line, uint64_t decision_ps,
                                    uint64_t frame_bytes, uint64_t reverse_bytes)
{
    return (struct sim_headroom){
        .cable = bytes_in(line, 2 * line->wire.latency_ps),
        .fec = bytes_in(line, 2 * line->fec_ps),
        .decision = bytes_in(line, decision_ps),
        .crossing = frame_bytes,
        .progress = frame_bytes,
        .reverse = reverse_bytes == 0 ? 0 : sim_ethernet_line_bytes(line, reverse_bytes),
        .pause = SIM_ETHERNET_PAUSE_BYTES,
    };
}

uint64_t sim_headroom_bytes(const struct sim_headroom *headroom)
{
    return headroom->cable + headroom->fec + headroom->decision + headroom->crossing +
           headroom->progress + headroom->reverse + headroom->pause;
}

/* -- Flow control -------------------------------------------------------------------------------*/

static struct sim_lane *lane_of(struct sim_switch_port *input, uint32_t class)
{
    return &input->lanes[input->limits.flow == SIM_PFC ? class : 0];
}

/* Asks for the same pause of every lane that is in need of one, or of one lane for its end. */
static void ask(struct sim_switch_port *input, uint32_t lanes, uint16_t quanta)
{
    const struct pause pause =
        input->limits.flow == SIM_LFC ? pause_link(quanta) : pause_classes((uint8_t)lanes, quanta);
    sim_port_pause(&input->port, &pause);
}

static uint32_t asked_lanes(const struct sim_switch_port *input)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        lanes |= (uint32_t)input->lanes[i].asked << i;
    }
    return lanes;
}

/* The sender counts quanta in bit times of its own line. */
static void refresh_later(struct sim_switch_port *input)
{
    const uint64_t pause_ps =
        sim_ethernet_quanta_ps(&input->port.peer->kind, input->of->kind.quanta);
    sim_after(input->of->sim, &input->refresh, pause_ps / 2);
}

static void on_refresh(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct sim_switch_port *input = CONTAINER_OF(event, struct sim_switch_port, refresh);
    const uint32_t lanes = asked_lanes(input);
    if (lanes != 0) {
        input->counters.refreshes++;
        ask(input, lanes, input->of->kind.quanta);
        refresh_later(input);
    }
}

static void look_above(struct sim_switch_port *input, struct sim_lane *lane)
{
    if (input->limits.flow == SIM_NO_FLOW_CONTROL || lane->asked ||
        lane->bytes <= input->limits.xoff_bytes) {
        return;
    }
    lane->asked = true;
    input->counters.xoffs++;
    ask(input, 1u << (lane - input->lanes), input->of->kind.quanta);
    if (!sim_event_scheduled(&input->refresh)) {
        refresh_later(input);
    }
}

static void look_below(struct sim_switch_port *input, struct sim_lane *lane)
{
    if (!lane->asked || lane->bytes > input->limits.xon_bytes) {
        return;
    }
    lane->asked = false;
    input->counters.xons++;
    ask(input, 1u << (lane - input->lanes), 0);
    if (asked_lanes(input) == 0) {
        sim_cancel(&input->refresh);
    }
}

/* -- Out ----------------------------------------------------------------------------------------*/

static struct sim_switch_port *output_of(struct sim_ethernet_switch *of,
                                         const struct sim_frame *frame)
{
    const uint32_t port = of->route != NULL     ? of->route(of, frame)
                          : of->outputs == NULL ? frame->destination
                                                : of->outputs[frame->destination];
    CHECK(port < of->port_count);
    return &of->ports[port];
}

static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    struct sim_switch_port *output = CONTAINER_OF(port, struct sim_switch_port, port);
    struct sim_switch_port *input = &output->of->ports[frame->ingress];
    output->leaving = frame->stored ? lane_of(input, frame->class) : NULL;
    output->leaving_ingress = frame->ingress;
    output->leaving_bytes = frame->bytes;
}

static void on_free(struct sim_port *port)
{
    struct sim_switch_port *output = CONTAINER_OF(port, struct sim_switch_port, port);
    struct sim_lane *lane = output->leaving;
    if (lane == NULL) { /* It cut through, or was a pause. */
        return;
    }
    output->leaving = NULL;
    CHECK(lane->bytes >= output->leaving_bytes);
    lane->bytes -= output->leaving_bytes;
    look_below(&output->of->ports[output->leaving_ingress], lane);
}

static void mark(struct sim_switch_port *output, struct sim_frame *frame)
{
    const struct sim_ethernet_switch_kind *kind = &output->of->kind;
    if (output->port.waiting_bytes[frame->class] <= kind->ecn_bytes) {
        return;
    }
    if (frame->ecn == SIM_NOT_ECT && !kind->ecn_ignores) {
        output->counters.unmarkable++;
    } else if (frame->ecn != SIM_CE) {
        frame->ecn = SIM_CE;
        output->counters.marked++;
    }
}

/* -- In -----------------------------------------------------------------------------------------*/

static void join_queue(struct sim_switch_port *output, struct sim_frame *frame)
{
    mark(output, frame);
    sim_port_send(&output->port, frame);
    const uint64_t queue_bytes = output->port.waiting_bytes[frame->class];
    if (queue_bytes > output->counters.worst_queue_bytes) {
        output->counters.worst_queue_bytes = queue_bytes;
    }
}

static bool has_room(uint64_t room_bytes, uint64_t taken_bytes, uint64_t bytes)
{
    return bytes <= room_bytes - taken_bytes;
}

static void store(struct sim_switch_port *input, struct sim_frame *frame)
{
    struct sim_ethernet_switch *of = input->of;
    struct sim_switch_port *output = output_of(of, frame);
    struct sim_lane *lane = lane_of(input, frame->class);
    if (frame->spoilt) {
        input->counters.lost_spoilt++;
        of->on_loss(of, frame, SIM_SPOILT_ON_LINE);
    } else if (!has_room(input->limits.room_bytes, lane->bytes, frame->bytes)) {
        input->counters.lost_at_input++;
        of->on_loss(of, frame, SIM_NO_ROOM_AT_INPUT);
    } else if (!has_room(of->kind.output_bytes, output->port.waiting_bytes[frame->class],
                         frame->bytes)) {
        output->counters.lost_at_output++;
        of->on_loss(of, frame, SIM_NO_ROOM_AT_OUTPUT);
    } else {
        frame->stored = true;
        input->counters.stored++;
        lane->bytes += frame->bytes;
        lane->worst_bytes = sim_later(lane->worst_bytes, lane->bytes);
        look_above(input, lane);
        join_queue(output, frame);
    }
}

static void on_whole(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct sim_frame *frame = CONTAINER_OF(event, struct sim_frame, event);
    store(CONTAINER_OF(frame->port, struct sim_switch_port, port), frame);
}

static void cut_or_store(struct sim_switch_port *input, struct sim_frame *frame)
{
    struct sim_ethernet_switch *of = input->of;
    struct sim_switch_port *output = output_of(of, frame);
    if (sim_port_idle(&output->port, frame->class)) {
        input->counters.cut_through++;
        sim_port_send(&output->port, frame);
    } else {
        sim_event_init(&frame->event, on_whole);
        sim_schedule(of->sim, &frame->event, frame->span.tail_ps + of->kind.delay_ps);
    }
}

static void on_ready(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct sim_frame *frame = CONTAINER_OF(event, struct sim_frame, event);
    cut_or_store(CONTAINER_OF(frame->port, struct sim_switch_port, port), frame);
}

/* The head has been here for `delay_ps`. A frame that came by a slower line than the one by which
 * it leaves has to wait, so that its tail will be there in time. */
static void on_frame(struct sim_port *port, struct sim_frame *frame)
{
    struct sim_switch_port *input = CONTAINER_OF(port, struct sim_switch_port, port);
    struct sim_ethernet_switch *of = input->of;
    const struct sim_switch_port *output = output_of(of, frame);
    const struct sim_output_kind cuts = {.switching = SIM_CUT_THROUGH,
                                         .delay_ps = of->kind.delay_ps};
    const uint64_t ready_ps = sim_output_ready(
        &cuts, frame->span, sim_ethernet_frame_ps(&output->port.kind, frame->bytes));
    frame->stored = false;
    frame->ingress = (uint32_t)(input - of->ports);
    if (ready_ps > of->sim->now_ps) {
        sim_event_init(&frame->event, on_ready);
        sim_schedule(of->sim, &frame->event, ready_ps);
    } else {
        cut_or_store(input, frame);
    }
}

static void on_loss(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss)
{
    struct sim_switch_port *input = CONTAINER_OF(port, struct sim_switch_port, port);
    input->of->on_loss(input->of, frame, loss);
}

/* -- For users ----------------------------------------------------------------------------------*/

static const struct sim_port_calls calls = {.on_frame = on_frame,
                                            .on_loss = on_loss,
                                            .on_begin = on_begin,
                                            .on_free = on_free,
                                            .at_head = true};

void sim_ethernet_switch_open(struct sim_ethernet_switch *of, struct sim *sim,
                              const struct sim_ethernet_switch_kind *kind, uint32_t ports,
                              sim_switch_on_loss on_loss_of)
{
    CHECK(kind->quanta > 1 && kind->input.xon_bytes <= kind->input.xoff_bytes);
    *of = (struct sim_ethernet_switch){
        .sim = sim, .kind = *kind, .port_count = ports, .on_loss = on_loss_of};
    of->ports = calloc(ports, sizeof(of->ports[0]));
    CHECK(of->ports != NULL);
    for (uint32_t i = 0; i < ports; i++) {
        struct sim_switch_port *port = &of->ports[i];
        port->of = of;
        port->limits = kind->input;
        sim_port_open(&port->port, sim, &kind->line, &calls);
        port->port.notice_ps = kind->delay_ps;
        sim_event_init(&port->refresh, on_refresh);
    }
}

void sim_ethernet_switch_close(struct sim_ethernet_switch *of)
{
    for (uint32_t i = 0; i < of->port_count; i++) {
        sim_cancel(&of->ports[i].refresh);
        sim_port_close(&of->ports[i].port);
    }
    free(of->ports);
    of->ports = NULL;
}

void sim_switch_counters_add(struct sim_switch_counters *total,
                             const struct sim_switch_counters *one)
{
    total->cut_through += one->cut_through;
    total->stored += one->stored;
    total->xoffs += one->xoffs;
    total->xons += one->xons;
    total->refreshes += one->refreshes;
    total->lost_at_input += one->lost_at_input;
    total->lost_spoilt += one->lost_spoilt;
    total->lost_at_output += one->lost_at_output;
    total->marked += one->marked;
    total->unmarkable += one->unmarkable;
    total->worst_queue_bytes = sim_later(total->worst_queue_bytes, one->worst_queue_bytes);
}

struct sim_switch_counters sim_ethernet_switch_total(const struct sim_ethernet_switch *of)
{
    struct sim_switch_counters total = {.stored = 0};
    for (uint32_t i = 0; i < of->port_count; i++) {
        sim_switch_counters_add(&total, &of->ports[i].counters);
    }
    return total;
}

uint64_t sim_ethernet_switch_worst(const struct sim_ethernet_switch *of)
{
    uint64_t worst_bytes = 0;
    for (uint32_t i = 0; i < of->port_count; i++) {
        for (uint32_t k = 0; k < PAUSE_CLASSES; k++) {
            worst_bytes = sim_later(worst_bytes, of->ports[i].lanes[k].worst_bytes);
        }
    }
    return worst_bytes;
}
