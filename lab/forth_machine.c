/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth_machine.h"

#include <math.h>
#include <stdlib.h>

#define MEMORY_BYTES  (4u << 20)
#define PACKETS       4096u
#define BYTES_A_LANE  4.0
#define QWORD_BYTES   8.0
#define HERTZ_PER_MHZ 1e6

const struct lab_parameter forth_parameters[FORTH_PARAMETER_COUNT] = {
    {"pci_clock", "MHz", 100, 33, 133, false, false, "2.1", "clock of the PCI-X bus"},
    {"net_clock", "MHz", 78.125, 10, 200, false, false, "3.2.1", "clock of links and switch"},
    {"post", "cycles", 8, 1, 1000, true, false, "OC", "bus cycles to write a request"},
    {"read_overhead", "cycles", 24, 2, 1000, true, false, "OC",
     "bus cycles of a DMA read beside its data"},
    {"write_overhead", "cycles", 12, 1, 1000, true, false, "OC",
     "bus cycles of a DMA write beside its data"},
    {"memory", "cycles", 40, 0, 10000, true, false, "OC", "bus cycles from split to data"},
    {"latency_timer", "cycles", 254, 0, 255, true, false, "3.1.2", "PCI latency timer"},
    {"link_latency", "cycles", 22.5, 0, 10000, false, false, "3.1.6.2",
     "network cycles through both transceivers, one way"},
    {"to_pci", "cycles", 4, 0, 1000, true, false, "3.1.6.2: 5 both ways",
     "network cycles from link to bus"},
    {"to_net", "cycles", 1, 0, 1000, true, false, "3.1.6.2: 5 both ways",
     "network cycles from bus to link"},
    {"credit", "cycles", 4, 2, 1000, true, true, "6.1 (A3)", "network cycles a credit costs"},
    {"change_over", "cycles", 3, 0, 1000, true, true, "6.1 (A4)",
     "network cycles between packets of different crosspoints"},
    {"refresh", "us", 10, 1, 1e6, false, false, "OC", "period of repeated credits"},
    {"sync", "cycles", 3, 0, 100, true, false, "3.2.3", "switch: into the other clock domain"},
    {"decide", "cycles", 1, 0, 100, true, false, "3.2.3", "switch: an output's choice"},
    {"inform", "cycles", 1, 0, 100, true, false, "3.2.3", "switch: from choice to interface"},
    {"lead", "cycles", 3, 0, 6, true, false, "3.2.3", "switch: choice before a packet's end"},
    {"crosspoint", "QWords", 256, 64, 1024, true, false, "2.2, 3.2.2", "buffer of a crosspoint"},
    {"queue_full_mode", "", 0, 0, 1, true, false, "2.1, C-20",
     "0: 1024 requests pend, 1: full by pointers, 1023"},
    {"ports", "", 8, 2, 64, true, false, "2.2", "ports of the switch"},
    {"payload", "B", 496, 8, 4096, true, false, "3.2.1", "payload of a packet"},
    {"duration", "us", 2000, 10, 1e9, false, false, "OC", "time that is simulated"},
    {"warm_up", "us", 100, 0, 1e9, false, false, "OC",
     "time before rates are measured, up to half of it all"},
    {"drift", "ppm", 0, -200, 200, true, false, "3.1.6.3", "of every other clock"},
    {"bit_errors", "", 0, 0, 1e-2, false, false, "2.14", "share of bits that links flip"},
    {"lost_credits", "", 0, 0, 0.5, false, false, "FNX-33", "share of credits that links lose"},
    {"packets", "", 1000000, 1, 1e12, true, false, "FNX-67", "packets to send in all"},
    {"transactions", "", 5000, 1, 1e6, true, false, "5", "PostMark transactions"},
    {"carried", "", 20, 0, 1e6, true, false, "OC",
     "PostMark transactions whose data goes over the network"},
    {"file_bytes", "B", 16777216, 4096, 4294967296, true, false, "5",
     "bytes moved for each request size"},
    {"scale", "", 64, 8, 4096, true, false, "OC", "the document's files are this much larger"},
};

/* -- Parameters in the units of their users -----------------------------------------------------*/

static uint32_t cycles(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value(run, name);
}

static struct sim_clock clock_of(struct lab_run *run, const char *name, int32_t ppm)
{
    return sim_clock_hz_ppm((uint64_t)llround(lab_value(run, name) * HERTZ_PER_MHZ), ppm);
}

uint64_t forth_warm_ps(struct lab_run *run)
{
    const uint64_t half_ps = lab_ps(run, "duration") / 2;
    const uint64_t warm_ps = lab_ps(run, "warm_up");
    return warm_ps < half_ps ? warm_ps : half_ps;
}

struct sim_clock forth_net_clock(struct lab_run *run, uint32_t unit)
{
    const int32_t drift = (int32_t)lab_value(run, "drift");
    return clock_of(run, "net_clock", unit % 2 == 0 ? 0 : drift);
}

uint64_t forth_link_latency_ps(struct lab_run *run)
{
    return (uint64_t)llround(lab_value(run, "link_latency") *
                             (double)sim_clock_at(forth_net_clock(run, 0), 1));
}

struct crossbar_config forth_crossbar_config(struct lab_run *run, uint32_t ports)
{
    return (struct crossbar_config){
        .ports = ports,
        .clock = forth_net_clock(run, 0),
        .sync = cycles(run, "sync"),
        .decide = cycles(run, "decide"),
        .inform = cycles(run, "inform"),
        .lead = cycles(run, "lead"),
        .change_over = cycles(run, "change_over"),
        .credit = cycles(run, "credit"),
        .refresh_ps = lab_ps(run, "refresh"),
        .buffer_words = cycles(run, "crosspoint"),
        .node_words = FORTH_FIFO_WORDS,
    };
}

uint32_t forth_cut_through_eighths(struct lab_run *run, uint32_t lanes)
{
    const double fill = lab_value(run, "net_clock") * BYTES_A_LANE * lanes;
    const double drain = lab_value(run, "pci_clock") * QWORD_BYTES;
    return fill >= drain ? 0 : (uint32_t)ceil(8 * (1 - fill / drain) - 1e-9);
}

double forth_link_rate(struct lab_run *run, uint32_t lanes, uint32_t qwords)
{
    const double frame = lanes == 1 ? forth_frame_words(qwords) : 4.0 + qwords;
    return QWORD_BYTES * qwords / frame * lab_value(run, "net_clock") * HERTZ_PER_MHZ / FORTH_MB;
}

double forth_dma_rate(struct lab_run *run, uint32_t qwords)
{
    const double taken = lab_value(run, "post") + lab_value(run, "read_overhead") +
                         lab_value(run, "memory") + qwords;
    return QWORD_BYTES * qwords / taken * lab_value(run, "pci_clock") * HERTZ_PER_MHZ / FORTH_MB;
}

void forth_link_errors(struct forth_link *link, struct lab_run *run, uint32_t number)
{
    const double lost = lab_value(run, "lost_credits");
    sim_errors_init(&link->errors, run->seed * 1000003 + number, lab_value(run, "bit_errors"),
                    (uint32_t)llround(lost * 1e6));
}

static struct forth_node_config node_config(struct lab_run *run, uint32_t index, bool switched)
{
    const uint32_t lanes = switched ? 1 : 2;
    return (struct forth_node_config){
        .index = index,
        .pci = clock_of(run, "pci_clock", 0),
        .net = forth_net_clock(run, index + 1),
        .lanes = lanes,
        .memory_bytes = MEMORY_BYTES,
        .read_overhead = cycles(run, "read_overhead"),
        .write_overhead = cycles(run, "write_overhead"),
        .post = cycles(run, "post"),
        .memory_cycles = cycles(run, "memory"),
        .latency_timer = cycles(run, "latency_timer"),
        .to_pci = cycles(run, "to_pci"),
        .to_net = cycles(run, "to_net"),
        .part = forth_cut_through_eighths(run, lanes),
        .of_parts = 8,
        .credit = cycles(run, "credit"),
        .refresh_ps = lab_ps(run, "refresh"),
        .window_words = switched ? cycles(run, "crosspoint") : FORTH_FIFO_WORDS,
        .full_by_pointer = lab_value(run, "queue_full_mode") > 0,
    };
}

/* -- Assembly -----------------------------------------------------------------------------------*/

static void join(struct forth_machine *machine, struct forth_link *link, struct forth_end *to,
                 uint32_t clock, uint32_t number)
{
    struct lab_run *run = machine->run;
    forth_link_init(link, &machine->fabric, to, forth_net_clock(run, clock),
                    forth_link_latency_ps(run), machine->switched ? 1 : 2);
    forth_link_errors(link, run, number);
}

static void add_tracks(struct forth_machine *machine)
{
    struct sim_trace *trace = machine->fabric.trace;
    for (uint32_t i = 0; i < machine->count; i++) {
        struct forth_node *node = &machine->nodes[i];
        machine->up[i].track = sim_trace_track(trace, "node", (int)i, "link out", 0);
        node->bus.trace = trace;
        node->bus.track = sim_trace_track(trace, "node", (int)i, "PCI-X bus", 0);
        node->fifo_track = sim_trace_track(trace, "node", (int)i, "Host2Net words", 11);
        if (machine->switched) {
            machine->down[i].track = sim_trace_track(trace, "switch output", (int)i, "link", 0);
        }
    }
    if (machine->switched) {
        crossbar_trace(&machine->crossbar, trace);
    }
}

void forth_machine_open(struct forth_machine *machine, struct lab_run *run, uint32_t nodes,
                        bool switched)
{
    *machine = (struct forth_machine){.run = run, .count = nodes, .switched = switched};
    struct sim_trace *trace;
    struct sim_capture *capture;
    lab_world_begin(run, &machine->sim, &trace, &capture, PCAPNG_LINK_USER0);
    forth_fabric_open(&machine->fabric, &machine->sim, PACKETS, FORTH_WORDS_MAX);
    machine->fabric.trace = trace;
    machine->fabric.capture = capture;
    machine->nodes = calloc(nodes, sizeof(machine->nodes[0]));
    machine->up = calloc(nodes, sizeof(machine->up[0]));
    machine->down = calloc(nodes, sizeof(machine->down[0]));
    CHECK(machine->nodes != NULL && machine->up != NULL && machine->down != NULL);
    if (switched) {
        uint32_t ports = cycles(run, "ports");
        if (ports < nodes) {
            lab_fail(run, "%u nodes do not fit a switch of %u ports", nodes, ports);
            ports = nodes;
        }
        const struct crossbar_config config = forth_crossbar_config(run, ports);
        crossbar_open(&machine->crossbar, &machine->fabric, &config);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        const struct forth_node_config config = node_config(run, i, switched);
        forth_node_open(&machine->nodes[i], &machine->fabric, &machine->up[i], &config);
        join(machine, &machine->up[i],
             switched ? crossbar_end(&machine->crossbar, i) : &machine->nodes[1 - i].end, i + 1,
             2 * i);
        if (switched) {
            join(machine, &machine->down[i], &machine->nodes[i].end, 0, 2 * i + 1);
            crossbar_attach(&machine->crossbar, i, &machine->down[i]);
        }
    }
    if (trace != NULL) {
        add_tracks(machine);
    }
}

/* -- Counters against the truth (A19) -----------------------------------------------------------*/

static void compare(struct forth_machine *machine, uint32_t index, enum forth_counter counter,
                    uint64_t truth)
{
    const uint32_t counted = machine->nodes[index].registers.counters[counter];
    const uint32_t mask = counter == FORTH_body_crc_errors ? UINT16_MAX : UINT32_MAX;
    if (counted != (truth & mask)) {
        lab_fail(machine->run, "node %u: %s counts %u, there were %llu", index,
                 forth_counter_name(counter), counted, (unsigned long long)truth);
    }
}

static void compare_counters(struct forth_machine *machine, uint32_t index)
{
    const struct forth_node *node = &machine->nodes[index];
    const struct forth_truth *truth = &node->truth;
    compare(machine, index, FORTH_host2nic_dma_ops, truth->fetched);
    compare(machine, index, FORTH_nic2host_dma_ops, truth->delivered);
    compare(machine, index, FORTH_host2nic_qwords, truth->qwords_out);
    compare(machine, index, FORTH_nic2host_qwords, truth->qwords_in);
    compare(machine, index, FORTH_local_notifications, truth->local_notifications);
    compare(machine, index, FORTH_remote_notifications, truth->remote_notifications);
    compare(machine, index, FORTH_body_crc_errors, truth->flagged);
    compare(machine, index, FORTH_outgoing_packets, node->out->packets);
    compare(machine, index, FORTH_dequeued_words, node->out->qwords + node->out->packets);
    compare(machine, index, FORTH_outgoing_cycles, node->out->busy_cycles);
    compare(machine, index, FORTH_net2host_fifo_full, 0);
    compare(machine, index, FORTH_host2net_fifo_full, 0);
}

void forth_machine_close(struct forth_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        compare_counters(machine, i);
    }
    lab_world_end(machine->run, &machine->sim, machine->fabric.trace, machine->fabric.capture);
    for (uint32_t i = 0; i < machine->count; i++) {
        forth_node_close(&machine->nodes[i]);
    }
    if (machine->switched) {
        crossbar_close(&machine->crossbar);
    }
    forth_fabric_close(&machine->fabric);
    free(machine->nodes);
    free(machine->up);
    free(machine->down);
}
