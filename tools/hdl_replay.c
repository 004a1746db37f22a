/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl replay - the frames of a capture go through a design, in virtual time.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "sim/capture.h"
#include "sim/parts/design.h"
#include "tools/hdl.h"
#include "tools/hdl_compare.h"
#include "tools/hdl_design.h"
#include "tools/hdl_faults.h"
#include "tools/hdl_source.h"
#include "tools/nonic.h"

#define AHEAD_PS UINT64_C(500000) /* Frames are known ahead of their times. */

static const char help[] =
    "usage: nonic hdl replay DESIGN IN.pcapng [OPTION]...\n\n"
    "Frames of a capture of Ethernet reach port 0 of a design at their times; frames of the "
    "design\n"
    "are written down. The same seed gives the same run. Ends when the design has been silent for "
    "a\n"
    "while after the last frame, or with $finish.\n\n"
    "  -o OUT.pcapng            the frames of the design\n"
    "  --compare GOLDEN.pcapng  are they these? The first that differs is told; status 1\n"
    "  --period NS              of clk, in ns (6.4)\n"
    "  --period2 NS             of clk2, if the design has one\n"
    "  --rate GBPS              of the line, in Gb/s (10); 0: the line takes no time\n"
    "  --cut-through            beats come while their frame still arrives, at the line's rate\n"
    "  --linger US              silence that ends the run (100)\n"
    "  --ready P, --gap P       probabilities: tready in a cycle (1), a gap between two beats "
    "(0)\n" HDL_FAULT_HELP
    "  --lookahead NS           under Icarus: how far it runs alone (500); all give the same run\n"
    "  --seed N                 of registers without reset, and of all these (1)\n" HDL_TRACE_HELP
    "  --strict                 status 1 if the design breaks a rule of its stream\n";

struct wishes {
    const char *out, *golden;
    struct hdl_wishes plain;
    struct sim_design_fault_rates faults;
    double linger_us, lookahead_ns;
};

struct replay {
    struct sim sim;
    struct sim_design design;
    struct hdl_source source;
    struct hdl_comparison golden;
    struct sim_capture *out;
    uint64_t given, refused, taken, last_ps;
};

/* -- Frames to the design -----------------------------------------------------------------------*/

static void give(struct hdl_source *source, struct hdl_frame *frame)
{
    struct replay *replay = CONTAINER_OF(source, struct replay, source);
    sim_design_strike(&replay->design, 0, frame);
    if (sim_design_push(&replay->design, 0, frame)) {
        replay->given++;
    } else {
        replay->refused++;
    }
    replay->last_ps = frame->at_ps;
}

/* -- Frames of the design -----------------------------------------------------------------------*/

static void on_frame(struct sim_design *design, uint32_t port, const struct hdl_frame *frame)
{
    struct replay *replay = CONTAINER_OF(design, struct replay, design);
    replay->taken++;
    replay->last_ps = frame->at_ps;
    if (replay->out != NULL) {
        char comment[64];
        snprintf(comment, sizeof(comment), "port %u, tx_packet %" PRIu64 ", edge %" PRIu64, port,
                 hdl_port_counters(design->ports[port])->sent_frames, design->edges);
        sim_capture_commented(replay->out, frame->at_ps, frame->data, frame->bytes, comment);
    }
    hdl_compare(&replay->golden, frame->at_ps, frame->data, frame->bytes);
}

/* -- The run ------------------------------------------------------------------------------------*/

/* Frames that the design sent, and that are in no capture. */
static void print_bad(const struct replay *replay)
{
    uint64_t bad = 0;
    for (uint32_t i = 0; i < replay->design.port_count; i++) {
        const struct hdl_port *port = replay->design.ports[i];
        bad += port != NULL ? hdl_port_counters(port)->bad : 0;
    }
    if (bad > 0) {
        printf("%" PRIu64 " bad frames of the design are in no capture\n", bad);
    }
}

static bool open_design(struct replay *replay, const struct hdl_model_ops *ops,
                        const struct wishes *wishes)
{
    struct sim_design_config config = hdl_config(ops, &wishes->plain);
    config.port.paused_by = 1u << HDL_LINK;
    config.faults = wishes->faults;
    config.lookahead_ps = (uint64_t)(wishes->lookahead_ns * PS_PER_NS);
    config.on_frame = on_frame;
    return hdl_open(&replay->design, &replay->sim, &config, &wishes->plain);
}

/* Until the design has been silent for `linger_ps`, or has finished. */
static void play(struct replay *replay, uint64_t linger_ps)
{
    while (sim_step(&replay->sim)) {
        if (replay->source.over && replay->sim.now_ps > replay->last_ps + linger_ps) {
            return;
        }
    }
}

static int conclude(struct replay *replay, const struct wishes *wishes)
{
    char error[160];
    const uint64_t broken = hdl_print_violations(&replay->design, &wishes->plain);
    hdl_compare_end(&replay->golden);
    printf("%" PRIu64 " frames in, %" PRIu64 " out; %" PRIu64 " edges, %.3f us; %" PRIu64
           " rules broken; digest %016" PRIx64 "\n",
           replay->given, replay->taken, replay->design.edges,
           (double)replay->sim.now_ps / PS_PER_US, broken, replay->sim.digest);
    if (replay->refused > 0) {
        printf("%" PRIu64 " frames did not reach the design: it takes them too slowly, or they are "
               "longer than %u bytes\n",
               replay->refused, HDL_FRAME_BYTES_MAX);
    }
    hdl_print_faults("the design", &replay->design);
    print_bad(replay);
    const bool readable = hdl_source_end(&replay->source);
    if (replay->design.error[0] != '\0') {
        fprintf(stderr, "nonic: %s\n", replay->design.error);
        return 1;
    }
    if (!readable) {
        return 1;
    }
    if (replay->out != NULL && !sim_capture_close(replay->out, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return 1;
    }
    return replay->golden.differs != 0 || (wishes->plain.strict && broken > 0);
}

static int replay_with(const struct wishes *wishes, const char *design, const char *in)
{
    static struct replay replay;
    char error[160];
    const struct hdl_model_ops *ops = hdl_load(design);
    replay.golden.name = "the design's frames";
    if (ops == NULL || !hdl_source_open(&replay.source, in) ||
        (wishes->golden != NULL &&
         (replay.golden.capture = hdl_open_capture(wishes->golden)) == NULL)) {
        return 1;
    }
    if (wishes->out != NULL) {
        replay.out = sim_capture_open(wishes->out, PCAPNG_LINK_ETHERNET, error, sizeof(error));
        if (replay.out == NULL) {
            fprintf(stderr, "nonic: %s\n", error);
            return 1;
        }
    }
    sim_init(&replay.sim, (uint64_t)wishes->plain.seed);
    if (!open_design(&replay, ops, wishes)) {
        return 1;
    }
    replay.source.sim = &replay.sim;
    replay.source.ahead_ps = AHEAD_PS;
    replay.source.give = give;
    hdl_source_begin(&replay.source);
    play(&replay, (uint64_t)(wishes->linger_us * PS_PER_US));
    const int status = conclude(&replay, wishes);
    sim_design_close(&replay.design);
    return status;
}

/* -- The command line ---------------------------------------------------------------------------*/

static bool read_option(int option, struct wishes *wishes)
{
    switch (option) {
    case 'o': wishes->out = optarg; return true;
    case 'c': wishes->golden = optarg; return true;
    case 'l': return hdl_read_number("linger", optarg, 0, 1e9, &wishes->linger_us);
    case 'a':
        return hdl_read_number("lookahead", optarg, 0, AHEAD_PS / PS_PER_NS, &wishes->lookahead_ns);
    case 'f': return hdl_read_faults(optarg, &wishes->faults);
    default: return hdl_read_option(&wishes->plain, option, optarg, help);
    }
}

int hdl_replay(int argc, char **argv)
{
    static const struct option options[] = {{"compare", required_argument, NULL, 'c'},
                                            {"linger", required_argument, NULL, 'l'},
                                            {"lookahead", required_argument, NULL, 'a'},
                                            {"fault", required_argument, NULL, 'f'},
                                            HDL_OPTIONS};
    struct wishes wishes = {
        .plain = hdl_plain_wishes, .linger_us = 100, .lookahead_ns = AHEAD_PS / PS_PER_NS};
    int option;
    while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
        if (option == 'h') {
            printf("%s", help);
            return 0;
        }
        if (!read_option(option, &wishes)) {
            return EXIT_USAGE;
        }
    }
    if (argc - optind != 2) {
        fprintf(stderr, "nonic: a design and a capture are needed\n%s", help);
        return EXIT_USAGE;
    }
    return replay_with(&wishes, argv[optind], argv[optind + 1]);
}
