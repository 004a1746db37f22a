/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth/machine.h"
#include "lab/forth/server.h"

#include <math.h>
#include <stdlib.h>

#define MEMORY_BYTES  (8u << 20)
#define PACKETS       4096u
#define BYTES_A_LANE  4.0
#define QWORD_BYTES   8.0
#define HERTZ_PER_MHZ 1e6

static const char *const others[] = {
    "ICS06: M. Marazakis, K. Xinidis, V. Papaefstathiou, A. Bilas, Efficient Remote Block-level "
    "I/O "
    "over an RDMA-capable NIC, ICS 2006 (abstract; very probably this NIC and these two nodes)",
    "Karol: M. J. Karol, M. G. Hluchyj, S. P. Morgan, Input Versus Output Queueing on a "
    "Space-Division Packet Switch, IEEE Transactions on Communications 35(12), 1987",
    NULL,
};

const struct lab_document forth_document = {
    .title = "FORTH-ICS TR376: multi-gigabit NIC and buffered crossbar (2006)",
    .sections = "1 2 2.1 2.2 3.1.1 3.1.2 3.1.3 3.1.4.1 3.1.4.2 3.1.4.3 3.1.5 3.1.6 3.1.6.1 3.1.6.2 "
                "3.1.6.3 3.2.1 3.2.2 3.2.3 3.2.4 3.2.5 3.3 3.3.1 4.1 4.2 4.3 5",
    .others = others,
    .note =
        "Rates and sizes are in MiB, 2^20 bytes: so the document's MBytes are read. Its two "
        "limits, 762.9 and 596 MBytes/s, follow from its clocks and widths in this reading "
        "only. Read as 10^6 bytes, its 287 would be 4.4 % less than framing gives. Two rows that "
        "count as independent evidence (FNX-A16) are volumes of a benchmark, in which the NIC "
        "has no part.",
};

const struct lab_parameter forth_parameters[FORTH_PARAMETER_COUNT] = {
    LAB_REAL("pci_clock", "MHz", 100, 33, 133, "2.1", "clock of the PCI-X bus"),
    LAB_REAL("net_clock", "MHz", 78.125, 10, 200, "3.2.1", "clock of links and switch"),
    LAB_WHOLE("post", "cycles", 8, 1, 1000, "OC", "bus cycles to write a request"),
    LAB_WHOLE("read_overhead", "cycles", 24, 2, 1000, "OC",
              "bus cycles of a DMA read beside its data"),
    LAB_WHOLE("write_overhead", "cycles", 12, 1, 1000, "OC",
              "bus cycles of a DMA write beside its data"),
    LAB_WHOLE("memory", "cycles", 40, 0, 10000, "OC", "bus cycles from split to data"),
    LAB_WHOLE("jitter", "cycles", 0, 0, 1000, "4.2: the bridge's arbitration; OC",
              "the most further bus cycles from split to data, at random"),
    LAB_WORD("core", "exclusive shared", "OC",
             "whether the host posts while the NIC fetches: no, or yes"),
    LAB_WHOLE("latency_timer", "cycles", 254, 0, 255, "3.1.2", "PCI latency timer"),
    LAB_WORD("queue_full", "count pointers", "2.1; 3.1.3; OC",
             "1024 requests pend, or 1023, as two pointers can tell"),
    LAB_REAL("link_latency", "cycles", 22.5, 0, 10000, "3.1.6.2",
             "network cycles through both transceivers, one way"),
    LAB_WHOLE("commas", "cycles", 0, 0, 1000, "3.1.6.1", "idle words behind each packet on a link"),
    LAB_WHOLE("to_pci", "cycles", 4, 0, 1000, "3.1.6.2: 5 both ways",
              "network cycles from link to bus"),
    LAB_WHOLE("to_net", "cycles", 1, 0, 1000, "3.1.6.2: 5 both ways",
              "network cycles from bus to link"),
    LAB_WORD("cut_through", "early late", "3.1.6.2",
             "a NIC takes a packet as soon as the bus cannot run dry, or when all of it is there"),
    LAB_WORD("flow_control", "on off", "3.3.1", "whether senders wait for credit"),
    LAB_FITTED_WORD("FNX-A3", "account", "links reads writes", "4.2; OC",
                    "what slows a NIC that sends and receives: credits that take the link's time, "
                    "or longer DMA reads, or longer DMA writes"),
    LAB_FITTED_WHOLE("FNX-A3", "credit", "cycles", 4, 2, 1000, "4.2",
                     "network cycles a credit costs if account=links; else it costs the two of its "
                     "start symbol and its word"),
    LAB_FITTED_WHOLE("FNX-A3.bus", "bus_more", "cycles", 7, 0, 1000, "4.2",
                     "further bus cycles of a DMA read if account=reads, of a write if "
                     "account=writes"),
    LAB_WORD("credit_rule", "each-32-words coalesced", "3.3.1; OC",
             "a NIC's credits: one for every 32 words, or one for all that have changed"),
    LAB_WORD("repeat", "on off", "3.2.4", "whether credits that have not changed are repeated"),
    LAB_REAL("refresh", "us", 10, 1, 1e6, "OC", "period of repeated credits"),
    LAB_WORD("crc", "checked ignored", "3.1.6", "what receivers do with a wrong CRC"),
    LAB_WHOLE("sync", "cycles", 3, 0, 100, "3.2.3", "switch: into the other clock domain"),
    LAB_WHOLE("decide", "cycles", 1, 0, 100, "3.2.3", "switch: an output's choice"),
    LAB_WHOLE("inform", "cycles", 1, 0, 100, "3.2.3", "switch: from choice to interface"),
    LAB_WHOLE("lead", "cycles", 3, 0, 6, "3.2.3",
              "switch: the time from the choice's begin to a packet's end"),
    LAB_FITTED_WHOLE("FNX-A4.sum", "change_over", "cycles", 3, 0, 1000, "4.2",
                     "network cycles between packets of different crosspoints"),
    LAB_WORD("arbiter", forth_arbiter_words + 1, "3.2.3; OC",
             "switch: which input is next at an output; fixed: the lowest; longest: with most "
             "packets; weighted: input 0 has several turns"),
    LAB_WHOLE("crosspoint", "QWords", 256, 64, 1024, "2.2; 3.2.2", "buffer of a crosspoint"),
    LAB_WHOLE("ports", "", 8, 2, 64, "2.2", "ports of the switch"),
    LAB_WHOLE("payload", "B", 496, 8, 4096, "3.2.1", "payload of a packet"),
    LAB_WORD("start", "apart in-step", "4.2: fair temporal randomness; OC",
             "all to all: each sender begins at its own time and turn, or all in step"),
    LAB_WORD("order", "in-turn random", "4.2", "all to all: how a sender chooses its destinations"),
    LAB_WORD(
        "nic_queues", "one per-destination", "2.1: is being implemented; OC",
        "switched: a NIC's queue of requests and its FIFO are one, or divided by destinations"),
    LAB_WORD("queues", "per-output one", "2.1",
             "saturation: whether a station has a queue for each output, or one FIFO"),
    LAB_WORD("samples", "accumulative apart", "3.1.4.2",
             "what a sample counts from: the first one, or the one before"),
    LAB_REAL("duration", "us", 2000, 10, 1e9, "OC", "time that is simulated"),
    LAB_REAL("warm_up", "us", 100, 0, 1e9, "OC",
             "time before rates are measured, up to half of it all"),
    LAB_WHOLE("drift", "ppm", 0, -200, 200, "3.1.6.3: clocks are corrected; OC",
              "of every other clock"),
    LAB_REAL("bit_errors", "", 0, 0, 1e-2, "OC", "share of bits that links flip"),
    LAB_REAL("lost_credits", "", 0, 0, 0.5, "3.2.4: possible losses; OC",
             "share of credits that links lose"),
    LAB_WHOLE("packets", "", 1000000, 1, 1e12, "4.2: billions; OC", "packets to send in all"),
    LAB_WHOLE("transactions", "", 5000, 1, 1e6, "4.1", "PostMark transactions"),
    LAB_WORD("bias", "none reads", "4.1",
             "PostMark: as many reads as appends, or four reads for each append"),
    LAB_WHOLE("carried", "", 20, 0, 1e6, "OC",
              "PostMark transactions whose data goes over the network"),
    LAB_WHOLE("file_bytes", "B", 16777216, 4096, 4294967296, "4.1: 4 GBytes; OC",
              "bytes moved for each request size"),
    LAB_WHOLE("clients", "", 3, 1, FORTH_CLIENTS_MAX, "2; OC",
              "remote disk: nodes that use it, at most"),
    LAB_WHOLE("depth", "", 16, 1, FORTH_SLOTS_MAX / FORTH_CLIENTS_MAX, "OC",
              "remote disk: requests that a client has under way, at most"),
    LAB_WHOLE("pages", "", 1, 1, 64, "4.1: 4 KByte; OC", "remote disk: pages of a request"),
    LAB_WHOLE("requests", "", 200, 10, 1e6, "OC", "remote disk: answers to a client"),
    LAB_FITTED_REAL("FNX-D.elsewhere", "serve", "us", 12, 0, 1000, "ICS06",
                    "remote disk: processor time of its host for a message"),
    LAB_REAL("disk", "us", 0, 0, 1e5, "OC", "remote disk: time of the disk for a request"),
    LAB_WORD("handler", "all one masked", "3.1.2: a level; OC",
             "remote disk: a handler takes all messages that have come, or one; masked: all, and "
             "allows no interrupt until none is left"),
    LAB_WORD("served", "in-order lowest", "OC",
             "remote disk: messages as they came, or those of the lowest client first"),
    LAB_WHOLE("scale", "", 64, 8, 4096, "OC", "the document's files are this much larger"),
    LAB_FITTED_WHOLE("FNX-A18.archive", "vocabulary", "words", 512, 256, 4096, "4.1",
                     "words of which the files are made"),
    LAB_FITTED_WHOLE("FNX-A18.archive", "common", "words", 200, 1, 4096, "4.1",
                     "how many of them make up three quarters of the source files"),
    LAB_FITTED_WHOLE("FNX-A18.trace", "calls", "", 48, 1, 56, "4.1", "kinds of calls in the trace"),
    LAB_FITTED_WHOLE("FNX-A18.trace", "offset_bits", "bits", 26, 1, 32, "4.1",
                     "random bits of an offset in the trace"),
    LAB_WHOLE("nodes", "", 4, 2, FORTH_PORTS_MAX, "4.1: four; OC", "one: nodes"),
    LAB_WORD("joined", "switch direct", "4.1; 4.2",
             "one: nodes on the switch, or two of them on a pair of links each way"),
    LAB_WHOLE("window", "", FORTH_STREAM_PENDING, 1, FORTH_QUEUE_REQUESTS, "OC; 2.1: 1024",
              "one: requests that a host keeps in its NIC's queue"),
    LAB_REAL("call", "us", 0, 0, 1000, "OC", "processor time before a request is written"),
    LAB_REAL("interrupt", "us", 0, 0, 1000, "OC; ICS06: limited by interrupt cost",
             "processor time until a program knows of a packet; 0: it looks at memory"),
    LAB_WHOLE("weight", "", 4, 1, 64, "OC; 5", "one, arbiter=weighted: turns of input 0 in a row"),
    LAB_PLAN_PARAMETERS(496, 4096),
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

/* The start symbol of a credit and its word. */
#define CREDIT_CYCLES 2u

enum forth_account forth_account_of(struct lab_run *run)
{
    return (enum forth_account)lab_word(run, "account");
}

struct forth_costs forth_costs_of(struct lab_run *run, enum forth_account account)
{
    const uint32_t credit = (uint32_t)lab_value(run, "credit");
    struct forth_costs costs = {.credit = account == FORTH_BY_LINKS ? credit : CREDIT_CYCLES,
                                .read = (uint32_t)lab_value_or_default(run, "read_overhead"),
                                .write = (uint32_t)lab_value_or_default(run, "write_overhead")};
    const uint32_t more = (uint32_t)lab_value_or_default(run, "bus_more");
    costs.read += account == FORTH_BY_READS ? more : 0;
    costs.write += account == FORTH_BY_WRITES ? more : 0;
    return costs;
}

static struct forth_costs costs_of(struct lab_run *run)
{
    return forth_costs_of(run, forth_account_of(run));
}

double forth_fetch_cycles(struct lab_run *run)
{
    return lab_value(run, "post") + costs_of(run).read + lab_value(run, "memory");
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

uint64_t forth_refresh_ps(struct lab_run *run)
{
    const uint64_t period_ps = lab_ps(run, "refresh");
    return lab_word(run, "repeat") == 0 ? period_ps : 0;
}

uint32_t forth_window_words(struct lab_run *run, uint32_t words)
{
    return lab_word(run, "flow_control") == 0 ? words : FORTH_BUFFER_UNBOUNDED;
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
        .arbiter = (enum forth_arbiter)lab_word(run, "arbiter"),
        .weight = (uint32_t)lab_value_or_default(run, "weight"),
        .change_over = cycles(run, "change_over"),
        .credit = costs_of(run).credit,
        .refresh_ps = forth_refresh_ps(run),
        .buffer_words = cycles(run, "crosspoint"),
        .node_words = forth_window_words(run, FORTH_FIFO_WORDS),
        .crc_ignored = lab_word(run, "crc") != 0,
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
    const double taken = forth_fetch_cycles(run) + qwords;
    return QWORD_BYTES * qwords / taken * lab_value(run, "pci_clock") * HERTZ_PER_MHZ / FORTH_MB;
}

void forth_link_open(struct forth_link *link, struct forth_fabric *fabric, struct forth_end *to,
                     struct lab_run *run, uint32_t clock, uint32_t lanes, uint32_t number)
{
    const double cycle_ps = (double)sim_clock_at(forth_net_clock(run, 0), 1);
    const double latency_ps = lab_value(run, "link_latency") * cycle_ps;
    forth_link_init(link, fabric, to, forth_net_clock(run, clock), (uint64_t)llround(latency_ps),
                    lanes);
    link->commas_ps = forth_link_ps(link, cycles(run, "commas"));
    const double lost = lab_value(run, "lost_credits");
    sim_errors_init(&link->errors, run->seed * 1000003 + number, lab_value(run, "bit_errors"),
                    (uint32_t)llround(lost * 1e6));
}

uint32_t forth_packets(struct lab_run *run, uint32_t nodes, uint32_t usual)
{
    const double a_link = lab_value(run, "link_latency") / forth_frame_words(1);
    const bool full = lab_word(run, "flow_control") != 0;
    return usual + (full ? 2 * nodes * (1 + (uint32_t)a_link) : 0);
}

static struct forth_node_config node_config(const struct forth_machine *machine, uint32_t index)
{
    struct lab_run *run = machine->run;
    const bool switched = machine->switched;
    const bool divided = switched && lab_word(run, "nic_queues") != 0;
    const uint32_t lanes = switched ? 1 : 2;
    const bool late = lab_word(run, "cut_through") != 0;
    const uint32_t room = switched ? cycles(run, "crosspoint") : FORTH_FIFO_WORDS;
    const struct forth_costs costs = costs_of(run);
    return (struct forth_node_config){
        .index = index,
        .pci = clock_of(run, "pci_clock", 0),
        .net = forth_net_clock(run, index + 1),
        .lanes = lanes,
        .memory_bytes = MEMORY_BYTES,
        .read_overhead = costs.read,
        .write_overhead = costs.write,
        .post = cycles(run, "post"),
        .memory_cycles = cycles(run, "memory"),
        .jitter = cycles(run, "jitter"),
        .seed = run->seed * 127 + index,
        .latency_timer = cycles(run, "latency_timer"),
        .to_pci = cycles(run, "to_pci"),
        .to_net = cycles(run, "to_net"),
        .part = late ? 8 : forth_cut_through_eighths(run, lanes),
        .of_parts = 8,
        .credit = costs.credit,
        .refresh_ps = forth_refresh_ps(run),
        .window_words = forth_window_words(run, room),
        .queues = divided ? machine->count : 1,
        .full_by_pointer = lab_word(run, "queue_full") != 0,
        .core_shared = lab_word(run, "core") != 0,
        .credits_coalesce = lab_word(run, "credit_rule") != 0,
        .crc_ignored = lab_word(run, "crc") != 0,
        .samples_apart = lab_word(run, "samples") != 0,
    };
}

/* -- Assembly -----------------------------------------------------------------------------------*/

static void join(struct forth_machine *machine, struct forth_link *link, struct forth_end *to,
                 uint32_t clock, uint32_t number)
{
    forth_link_open(link, &machine->fabric, to, machine->run, clock, machine->switched ? 1 : 2,
                    number);
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
    lab_world_begin(run, &machine->sim, &trace, &capture, PCAPNG_LINK_FORTH);
    forth_fabric_open(&machine->fabric, &machine->sim, forth_packets(run, nodes, PACKETS),
                      FORTH_WORDS_MAX);
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
        const struct forth_node_config config = node_config(machine, i);
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

void forth_machine_account(struct forth_machine *machine, enum forth_account account)
{
    const struct forth_costs costs = forth_costs_of(machine->run, account);
    for (uint32_t i = 0; i < machine->count; i++) {
        struct forth_node_config *config = &machine->nodes[i].config;
        config->credit = costs.credit;
        config->read_overhead = costs.read;
        config->write_overhead = costs.write;
    }
    machine->crossbar.config.credit = costs.credit;
}

/* -- Counters against the truth -----------------------------------------------------------------*/

/* Compares a counter of the NIC with the count of the link on which it sends. A FIFO that overflows
 * shows that the credits did not hold. */
static void compare(struct forth_machine *machine, uint32_t index, enum forth_counter counter,
                    uint64_t truth)
{
    const uint32_t counted = machine->nodes[index].registers.counters[counter];
    if (counted != (uint32_t)truth) {
        lab_fail(machine->run, "node %u: %s counts %u, there were %llu", index,
                 forth_counter_name(counter), counted, (unsigned long long)truth);
    }
}

static void compare_counters(struct forth_machine *machine, uint32_t index)
{
    const struct forth_node *node = &machine->nodes[index];
    compare(machine, index, FORTH_outgoing_packets, node->out->packets);
    compare(machine, index, FORTH_dequeued_words, node->out->qwords + node->out->packets);
    compare(machine, index, FORTH_outgoing_cycles, node->out->busy_cycles);
    compare(machine, index, FORTH_net2host_fifo_full, 0);
    compare(machine, index, FORTH_host2net_fifo_full, 0);
}

/* -- Memory -------------------------------------------------------------------------------------*/

void forth_tell_fabric(struct lab_run *run, const struct forth_fabric *fabric)
{
    lab_add_memory(run, "packet", fabric->packets.count, sim_pool_bytes(&fabric->packets));
    lab_add_memory(run, "credit", fabric->credits.count, sim_pool_bytes(&fabric->credits));
}

void forth_tell_switch(struct lab_run *run, const struct crossbar *crossbar)
{
    const uint64_t ports = crossbar->config.ports;
    lab_add_memory(run, "switch port", ports, ports * sizeof(crossbar->ports[0]));
    lab_add_memory(run, "crosspoint", ports * ports, ports * ports * sizeof(crossbar->points[0]));
}

static void tell_memory(const struct forth_machine *machine)
{
    const uint64_t nodes = machine->count;
    const uint64_t links = machine->switched ? 2 * nodes : nodes;
    const uint64_t node_bytes = sizeof(machine->nodes[0]) + machine->nodes[0].memory.size;
    lab_add_memory(machine->run, "node", nodes, nodes * node_bytes);
    lab_add_memory(machine->run, "link", links, links * sizeof(machine->up[0]));
    forth_tell_fabric(machine->run, &machine->fabric);
    if (machine->switched) {
        forth_tell_switch(machine->run, &machine->crossbar);
    }
}

void forth_machine_close(struct forth_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        compare_counters(machine, i);
    }
    tell_memory(machine);
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
