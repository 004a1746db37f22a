/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl lab - designs as boards of the laboratory's network, in lockstep with its clock.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "drivers/fault_words.h"
#include "lab/feroce/design.h"
#include "lab/feroce/experiments.h"
#include "lab/feroce/machine.h"
#include "tools/hdl.h"
#include "tools/hdl_design.h"
#include "tools/hdl_faults.h"
#include "tools/hdl_wire.h"
#include "tools/nonic.h"

#define PS_PER_MS 1e9
#define FS_PER_NS 1e6

static const char help[] =
    "usage: nonic hdl lab DESIGN.so... [OPTION]...\n"
    "       nonic hdl lab A.so B.so --wire TIME [OPTION]...\n\n"
    "Up to eight designs and a host at one switch, in virtual time. The host opens a queue pair "
    "of\n"
    "each design by FERoCE's connection manager, orders messages, receives them with nonic's\n"
    "engine, and compares every byte with the pattern. The same seed gives the same run. Status 1\n"
    "if a message is missing or a byte is wrong.\n\n"
    "With --wire there is no host and no switch: two designs are joined at their ports 0 by a "
    "line\n"
    "of this delay, and send each other what they send.\n\n"
    "  --messages N          of each design (1000)\n"
    "  --bytes N             of a message (4096)\n"
    "  --write               RDMA WRITE instead of SEND\n"
    "  --loss P              probability with which a packet is lost, each way (0)\n"
    "  --rate GBPS           of all lines, in Gb/s (10)\n"
    "  --period NS           of the designs' clock clk, in ns (6.4)\n"
    "  --period2 NS          of their clk2, if they have one\n"
    "  --cut-through         frames reach designs while they still arrive, not when they are "
    "whole\n"
    "  --ready P, --gap P    probabilities: tready in a cycle (1), a gap between two beats (0)\n"
    "  --seed N              of losses, and of registers without reset (1)\n"
    "  --patience MS         the run ends when nothing was acknowledged, with --wire when no "
    "frame\n"
    "                        passed, for this time (10)\n"
    "  --set NAME=VALUE      a parameter of the network or the host; a wrong NAME lists "
    "them\n" HDL_FAULT_HELP
    "  --capture OUT.pcapng  every frame that came to a host or a design\n" HDL_TRACE_HELP
    "  --strict              status 1 if a design breaks a rule of its stream\n"
    "  --wire TIME           the delay of the line between two designs, such as 500ns\n"
    "  --replay IN.pcapng    with --wire: these frames come to both designs, at their times\n"
    "  --for US              with --wire: the run ends at this time\n";

/* The parameters of FERoCE's machine that mean something here, with values of a plain network. */
static const struct lab_experiment experiment = {
    .name = "hdl",
    FEROCE_COMMON,
    .what = "designs as boards",
    .uses = "extra_bytes=0 ack_ns=500 host_ns cable=500 switch coalesce pfc xoff_10G buffer_bytes",
};

struct wishes {
    struct hdl_wishes plain;
    double messages, bytes, loss, patience_ms;
    bool write;
    bool hosts, wired; /* An option was given that needs a host, or a line between two designs. */
    struct sim_design_fault_rates faults;
    const char *capture, *replay;
    uint64_t wire_ns; /* UINT64_MAX: there is a switch. */
    double for_us;
    const char *settings[LAB_PARAMETERS_MAX];
    uint32_t setting_count;
};

/* -- The run ------------------------------------------------------------------------------------*/

static struct feroce_setup setup_of(struct lab_run *run, const struct wishes *wishes)
{
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_10G);
    setup.design_faults = wishes->faults;
    hdl_periods(&wishes->plain, setup.design_period_fs);
    setup.design_ready_ppm = (uint32_t)(wishes->plain.ready * 1e6);
    setup.design_gap_ppm = (uint32_t)(wishes->plain.gap * 1e6);
    setup.design_cut_through = wishes->plain.cut_through;
    setup.line.wire.byte_fs = (uint64_t)(HDL_BITS_PER_FS / wishes->plain.rate_gbps);
    setup.board_line = setup.line;
    setup.patience_ps = (uint64_t)(wishes->patience_ms * PS_PER_MS);
    return setup;
}

static struct feroce_load load_of(const struct wishes *wishes, uint32_t designs)
{
    struct feroce_load load = feroce_load_of((uint32_t)wishes->bytes, (uint32_t)wishes->messages);
    load.senders = designs;
    load.write = wishes->write;
    load.count = load.messages;
    load.warm = load.messages > 40 ? 20 : 0;
    load.loss_millionths = load.answer_loss_millionths = (uint32_t)(wishes->loss * 1e6);
    return load;
}

static void print_lost(const struct feroce_design *design)
{
    char name[16];
    snprintf(name, sizeof(name), "design %u", design->node->number);
    hdl_print_faults(name, &design->design);
    hdl_print_dropped(&design->bridge);
    if (design->bridge.counts[BRIDGE_ICRC] > 0) {
        printf("the last wrong ICRC: %08" PRIx32 ", expected %08" PRIx32 "\n",
               design->bridge.icrc.found, design->bridge.icrc.expected);
    }
    if (design->nowhere > 0) {
        printf("%" PRIu64 " datagrams of design %u went nowhere: an address or a port that nobody "
               "has, or no packet of RoCEv2\n",
               design->nowhere, design->node->number);
    }
    if (design->refused > 0) {
        printf("%" PRIu64 " frames did not reach design %u: it takes them too slowly\n",
               design->refused, design->node->number);
    }
}

/* A reset has closed the queue pair of a design, which sends nothing since. */
static void tell_lost_pair(struct feroce_machine *machine, const struct feroce_node *node)
{
    const struct sim_design_faults *faults = &node->design->design.faults;
    const struct feroce_connection *connection = &machine->receiver.connections[node->number];
    if (faults->resets > 0 && connection->open && node->messages < machine->load.messages &&
        node->design->last_data_ps < faults->last_reset_ps) {
        lab_fail(machine->run,
                 "queue pair 0x%" PRIx32 " of design %u is gone: it was reset at %.3f us",
                 connection->board_qpn, node->number, (double)faults->last_reset_ps / PS_PER_US);
    }
}

/* Returns the rules that designs broke. */
static uint64_t print_designs(struct feroce_machine *machine, const struct hdl_wishes *wishes)
{
    uint64_t broken = 0;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        struct feroce_node *node = &machine->nodes[i];
        broken += hdl_print_violations(&node->design->design, i == 0 ? wishes : &hdl_plain_wishes);
        if (node->design->design.error[0] != '\0') {
            lab_fail(machine->run, "%s", node->design->design.error);
        }
        print_lost(node->design);
        tell_lost_pair(machine, node);
        printf("design %u, %s: %" PRIu64 " of %u messages acknowledged, %" PRIu64
               " packets, %" PRIu64 " of them again; %" PRIu64 " edges\n",
               i, machine->setup.designs[i]->name, node->messages, machine->load.messages,
               node->packets, node->resent, node->design->design.edges);
    }
    return broken;
}

/* Returns the status. */
static int conclude(struct feroce_machine *machine, struct lab_run *run,
                    const struct hdl_wishes *wishes)
{
    const struct feroce_result result = feroce_machine_result(machine);
    const struct feroce_receiver *receiver = &machine->receiver;
    const uint64_t broken = print_designs(machine, wishes), wrong = receiver->wrong;
    const uint64_t compared = receiver->compared, naks = receiver->naks;
    const uint64_t first_wrong = receiver->first_wrong;
    feroce_machine_close(machine);
    if (run->failure[0] != '\0') {
        printf("FAILED: %s\n", run->failure);
    }
    printf("%.3f us, %.3f Gb/s; %" PRIu64 " packets lost, %" PRIu64 " NAKs\n",
           (double)result.end_ps / PS_PER_US, result.gbps, result.lost, naks);
    printf("%" PRIu64 " bytes compared, %" PRIu64 " wrong", compared, wrong);
    if (wrong > 0) {
        printf(", the first one at offset %" PRIu64, first_wrong);
    }
    printf("; %" PRIu64 " rules broken; digest %016" PRIx64 "\n", broken, run->digest);
    return !result.done || wrong > 0 || run->failure[0] != '\0' || (wishes->strict && broken > 0);
}

static int run_designs(struct lab_run *run, const struct wishes *wishes, int count, char **paths)
{
    struct feroce_setup setup = setup_of(run, wishes);
    const struct feroce_load load = load_of(wishes, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        setup.designs[i] = hdl_load(paths[i]);
        if (setup.designs[i] == NULL) {
            return 1;
        }
    }
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    if (machine == NULL || run->failure[0] != '\0') {
        fprintf(stderr, "nonic: %s\n", run->failure);
        return 1;
    }
    if (!hdl_trace(&machine->nodes[0].design->design, &wishes->plain)) {
        return 1;
    }
    feroce_machine_run(machine);
    return conclude(machine, run, &wishes->plain);
}

/* -- The command line ---------------------------------------------------------------------------*/

static bool read_wire(const char *text, struct wishes *wishes)
{
    const char *end;
    if (!fault_time(text, &end, &wishes->wire_ns) || *end != '\0') {
        fprintf(stderr, "nonic: --wire takes a time such as 500ns, not '%s'\n", text);
        return false;
    }
    return true;
}

static bool read_setting(const char *text, struct wishes *wishes)
{
    if (wishes->setting_count == COUNT_OF(wishes->settings)) {
        fprintf(stderr, "nonic: more settings than there are parameters\n");
        return false;
    }
    wishes->settings[wishes->setting_count++] = text;
    return true;
}

/* Those that all commands have are no letters. */
static bool is_one_of(int option, const char *letters)
{
    return option < HDL_OPTION_TRACE && strchr(letters, option) != NULL;
}

static bool read_option(int option, struct wishes *wishes)
{
    wishes->hosts |= is_one_of(option, "mbwlx");
    wishes->wired |= is_one_of(option, "rF");
    switch (option) {
    case 'm': return hdl_read_number("messages", optarg, 1, 1e9, &wishes->messages);
    case 'b': return hdl_read_number("bytes", optarg, 4, 1 << 24, &wishes->bytes);
    case 'w': wishes->write = true; return true;
    case 'l': return hdl_read_number("loss", optarg, 0, 0.5, &wishes->loss);
    case 'P': return hdl_read_number("patience", optarg, 0.001, 1e6, &wishes->patience_ms);
    case 'f': return hdl_read_faults(optarg, &wishes->faults);
    case 'c': wishes->capture = optarg; return true;
    case 'x': return read_setting(optarg, wishes);
    case 'W': return read_wire(optarg, wishes);
    case 'r': wishes->replay = optarg; return true;
    case 'F': return hdl_read_number("for", optarg, 0.001, 1e12, &wishes->for_us);
    default: return hdl_read_option(&wishes->plain, option, optarg, help);
    }
}

static void print_parameters(void)
{
    for (uint32_t i = 0; i < experiment.parameter_count; i++) {
        const struct lab_parameter *parameter = &experiment.parameters[i];
        char range[LAB_TEXT_BYTES];
        if (lab_uses(&experiment, i)) {
            lab_range_text(parameter, range, sizeof(range));
            fprintf(stderr, "  %-13s %s %s: %s\n", parameter->name, range, parameter->unit,
                    parameter->what);
        }
    }
}

static bool prepare(struct lab_run *run, const struct wishes *wishes)
{
    char error[LAB_TEXT_BYTES];
    if (wishes->plain.rate_gbps < 0.001) {
        fprintf(stderr, "nonic: lines of the laboratory take time: --rate is at least 0.001\n");
        return false;
    }
    lab_prepare(run, &experiment, (uint64_t)wishes->plain.seed);
    run->capture_path = wishes->capture;
    for (uint32_t i = 0; i < wishes->setting_count; i++) {
        if (!lab_set(run, wishes->settings[i], error, sizeof(error))) {
            fprintf(stderr, "nonic: %s\n", error);
            print_parameters();
            return false;
        }
    }
    return true;
}

/* -- The two worlds -----------------------------------------------------------------------------*/

static int join(const struct wishes *wishes, int count, char **paths)
{
    const struct hdl_wire_wishes wire = {
        .plain = &wishes->plain,
        .faults = &wishes->faults,
        .replay = wishes->replay,
        .capture = wishes->capture,
        .delay_ps = wishes->wire_ns * (uint64_t)PS_PER_NS,
        .rest_ps = (uint64_t)(wishes->patience_ms * PS_PER_MS),
        .until_ps = (uint64_t)(wishes->for_us * PS_PER_US),
    };
    if (count != 2 || wishes->hosts) {
        fprintf(stderr, "nonic: --wire joins two designs, without a host: --messages, --bytes, "
                        "--write, --loss and --set are not for it\n");
        return EXIT_USAGE;
    }
    return hdl_wire(&wire, paths);
}

static int run_network(const struct wishes *wishes, int count, char **paths)
{
    static struct lab_run run;
    if (wishes->wired) {
        fprintf(stderr, "nonic: --replay and --for are for --wire\n");
        return EXIT_USAGE;
    }
    if (count < 1 || count > (int)FEROCE_SENDERS_MAX) {
        fprintf(stderr, "nonic: from one to %u designs are needed\n%s", FEROCE_SENDERS_MAX, help);
        return EXIT_USAGE;
    }
    return prepare(&run, wishes) ? run_designs(&run, wishes, count, paths) : EXIT_USAGE;
}

int hdl_lab(int argc, char **argv)
{
    static const struct option options[] = {
        {"messages", required_argument, NULL, 'm'}, {"bytes", required_argument, NULL, 'b'},
        {"write", no_argument, NULL, 'w'},          {"loss", required_argument, NULL, 'l'},
        {"patience", required_argument, NULL, 'P'}, {"set", required_argument, NULL, 'x'},
        {"capture", required_argument, NULL, 'c'},  {"fault", required_argument, NULL, 'f'},
        {"wire", required_argument, NULL, 'W'},     {"replay", required_argument, NULL, 'r'},
        {"for", required_argument, NULL, 'F'},      HDL_OPTIONS};
    struct wishes wishes = {.plain = hdl_plain_wishes,
                            .messages = 1000,
                            .bytes = 4096,
                            .patience_ms = 10,
                            .wire_ns = UINT64_MAX};
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            printf("%s", help);
            return 0;
        }
        if (!read_option(option, &wishes)) {
            return EXIT_USAGE;
        }
    }
    const int count = argc - optind;
    return wishes.wire_ns != UINT64_MAX ? join(&wishes, count, argv + optind)
                                        : run_network(&wishes, count, argv + optind);
}
