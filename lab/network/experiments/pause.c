/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Flow control of Ethernet: the headroom behind a threshold, marks, and how senders share a line.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "lab/network/experiments.h"
#include "lab/network/flow.h"

#define PS_PER_NS 1e3
#define KB        1024u

/* -- Parameters ---------------------------------------------------------------------------------*/

static const struct lab_parameter parameters[] = {
    LAB_REAL("rate", "Gb/s", 10, 0.1, 400, "OC", "rate of every line"),
    LAB_REAL("cable", "ns", 10, 0, 1e5, "OC: 2 m", "latency of a short cable"),
    LAB_REAL("long_cable", "ns", 5000, 0, 1e5, "OC: 1 km", "latency of a long cable"),
    LAB_REAL("fec", "ns", 0, 0, 1e4, "OC: 0 at 10 Gb/s, 204.8 at 25",
             "what forward error correction adds to a pass of a line"),
    LAB_WHOLE("extra", "B", 0, 0, 1024, "OC", "a longer gap behind every frame"),
    LAB_REAL("switch", "ns", 500, 0, 1e5, "OC", "first bit in to first bit out"),
    LAB_WHOLE("frame", "B", 4162, 64, 9216, "OC: 4,096 of payload, and headers",
              "senders' frames, FCS included"),
    LAB_WHOLE("reverse", "B", 64, 0, 9216, "OC: acknowledgements",
              "frames on the way back, which is never idle; 0: none"),
    LAB_WHOLE("senders", "", 2, 1, FLOW_SENDERS_MAX, "OC", "to one receiver"),
    LAB_WHOLE("many", "", 8, 2, FLOW_SENDERS_MAX, "OC", "more of them"),
    LAB_WHOLE("least_xoff", "KB", 4, 1, 1024, "OC", "the lowest threshold"),
    LAB_WHOLE("most_xoff", "KB", 64, 1, 1024, "OC",
              "the highest one; between them each is twice the one before; xon is half of xoff"),
    LAB_WHOLE("shared_xoff", "KB", 16, 1, 1024, "OC",
              "the threshold where senders share, and where queues mark"),
    LAB_WORD("flow", "pfc lfc none", "802.1Qbb; 802.3: annex 31B",
             "how the switch asks for pauses"),
    LAB_WORD("without", "nothing cable fec decision crossing progress reverse", "OC",
             "the headroom's term that is left out"),
    LAB_WHOLE("short", "frames", 2, 0, 16, "OC", "what less room lacks"),
    LAB_WHOLE("phases", "", 8, 1, 64, "OC",
              "moments at which senders begin, within a frame's time"),
    LAB_REAL("start", "us", 20, 0, 1e4, "OC: the pause has come before", "when senders begin"),
    LAB_REAL("hold", "us", 150, 0, 1e4, "OC: longer than the largest room takes to fill",
             "time for which the receiver pauses; 0: never"),
    LAB_REAL("busy", "us", 150, 0, 1e4, "OC", "time for which senders then go on"),
    LAB_REAL("ecn", "B", 8000, 0, 1e9, "OC", "a longer queue marks what joins it"),
    LAB_WORD("marks", "ect any", "RFC3168: 5", "which frames a switch marks"),
    LAB_WHOLE("unpaused", "", 0, 0, 1, "OC", "inputs without flow control"),
    LAB_REAL("stagger", "us", 1, 0, 100, "OC", "time between the starts of two senders"),
    LAB_REAL("duration", "us", 2000, 100, 1e5, "OC", "time for which senders share a line"),
    LAB_REAL("warm", "us", 100, 0, 1e4, "OC", "what comes before is not counted"),
};

static struct flow_config config_of(struct lab_run *run, double cable_ns)
{
    const struct sim_ethernet_kind line = {
        .wire = {.byte_fs = (uint64_t)llround(8e6 / lab_value(run, "rate")),
                 .latency_ps = (uint64_t)llround(cable_ns * PS_PER_NS)},
        .fec_ps = (uint64_t)llround(lab_value(run, "fec") * PS_PER_NS),
        .extra_bytes = (uint32_t)lab_value(run, "extra")};
    static const enum sim_flow_control flows[] = {SIM_PFC, SIM_LFC, SIM_NO_FLOW_CONTROL};
    return (struct flow_config){
        .kind = {.line = line,
                 .delay_ps = (uint64_t)llround(lab_value(run, "switch") * PS_PER_NS),
                 .input = {.flow = flows[lab_word(run, "flow")]},
                 .output_bytes = SIM_NO_BOUND,
                 .ecn_bytes = SIM_NO_BOUND,
                 .quanta = PAUSE_QUANTA_MAX},
        .senders = (uint32_t)lab_value(run, "senders"),
        .frame_bytes = (uint32_t)lab_value(run, "frame"),
        .reverse_bytes = (uint32_t)lab_value(run, "reverse"),
    };
}

/* The words of the parameter "without", in their order. */
static uint64_t headroom_bytes(struct lab_run *run, const struct flow_config *config)
{
    struct sim_headroom headroom = sim_headroom_of(&config->kind.line, config->kind.delay_ps,
                                                   config->frame_bytes, config->reverse_bytes);
    uint64_t *const terms[] = {NULL,
                               &headroom.cable,
                               &headroom.fec,
                               &headroom.decision,
                               &headroom.crossing,
                               &headroom.progress,
                               &headroom.reverse};
    uint64_t *const without = terms[lab_word(run, "without")];
    if (without != NULL) {
        *without = 0;
    }
    return sim_headroom_bytes(&headroom);
}

/* Without flow control a switch has one queue for all, of the room that an input would have. */
static void set_thresholds(struct lab_run *run, struct flow_config *config, uint64_t xoff_bytes)
{
    config->kind.input.xoff_bytes = xoff_bytes;
    config->kind.input.xon_bytes = xoff_bytes / 2;
    config->kind.input.room_bytes = xoff_bytes + headroom_bytes(run, config);
    if (config->kind.input.flow == SIM_NO_FLOW_CONTROL) {
        config->kind.output_bytes = config->kind.input.room_bytes;
    }
}

static struct flow_world *run_world(struct lab_run *run, const struct flow_config *config)
{
    struct flow_world *world = calloc(1, sizeof(*world));
    CHECK(world != NULL);
    flow_open(world, run, config);
    flow_run(world);
    return world;
}

static void end_world(struct flow_world *world)
{
    flow_close(world);
    free(world);
}

/* -- Headroom -----------------------------------------------------------------------------------*/

struct losses {
    uint64_t all;         /* Frames lost in all worlds of a threshold. */
    uint64_t worst_bytes; /* The most room that an input took in any of them. */
};

/* Senders begin while the receiver holds the switch's output, at several moments of the frames on
 * the way back, so that each input fills at the rate of its line. When the receiver lets go, they
 * go on for a while. */
static struct losses lost_at(struct lab_run *run, struct flow_config *config)
{
    const uint32_t phases = (uint32_t)lab_value(run, "phases");
    const uint64_t line_ps = sim_ethernet_line_ps(&config->kind.line, config->frame_bytes);
    struct losses losses = {.all = 0};
    config->go_ps = lab_ps(run, "hold");
    config->stop_ps = config->go_ps + lab_ps(run, "busy");
    for (uint32_t i = 0; i < phases && run->failure[0] == '\0'; i++) {
        config->start_ps = lab_ps(run, "start") + i * line_ps / phases;
        struct flow_world *world = run_world(run, config);
        const uint64_t worst_bytes = sim_ethernet_switch_worst(&world->middle);
        losses.all += flow_lost(world);
        losses.worst_bytes = sim_later(losses.worst_bytes, worst_bytes);
        end_world(world);
    }
    return losses;
}

struct sweep {
    uint64_t lost;          /* With the headroom, at all thresholds together. */
    uint64_t lost_less;     /* With less, at the threshold where that costs least. */
    uint64_t nearest_bytes; /* The least room that was left at the threshold. */
};

static struct sweep sweep_thresholds(struct lab_run *run, double cable_ns)
{
    struct flow_config config = config_of(run, cable_ns);
    struct sweep sweep = {.lost_less = UINT64_MAX, .nearest_bytes = UINT64_MAX};
    const uint64_t most_bytes = (uint64_t)lab_value(run, "most_xoff") * KB;
    uint64_t xoff_bytes = (uint64_t)lab_value(run, "least_xoff") * KB;
    for (; xoff_bytes <= most_bytes && run->failure[0] == '\0'; xoff_bytes *= 2) {
        set_thresholds(run, &config, xoff_bytes);
        const uint64_t room_bytes = config.kind.input.room_bytes;
        const uint64_t short_bytes = (uint64_t)lab_value(run, "short") * config.frame_bytes;
        const struct losses full = lost_at(run, &config);
        config.kind.input.room_bytes = room_bytes > short_bytes ? room_bytes - short_bytes : 0;
        const struct losses less = lost_at(run, &config);
        const uint64_t left_bytes = room_bytes - full.worst_bytes;
        sweep.lost += full.all;
        sweep.lost_less = less.all < sweep.lost_less ? less.all : sweep.lost_less;
        sweep.nearest_bytes = left_bytes < sweep.nearest_bytes ? left_bytes : sweep.nearest_bytes;
    }
    return sweep;
}

static void add_headroom(struct lab_run *run, bool is_long)
{
    const double cable_ns = lab_value(run, is_long ? "long_cable" : "cable");
    const struct sweep sweep = sweep_thresholds(run, cable_ns);
    lab_judge_absolute(
        lab_add_row(run, is_long ? "PFC-long" : "PFC-near", "frames",
                    "lost with xoff and headroom, cable %g ns; %llu B of room left at least",
                    cable_ns, (unsigned long long)sweep.nearest_bytes),
        0, (double)sweep.lost, 0);
    lab_judge_range(lab_add_row(run, is_long ? "PFC-short-long" : "PFC-short-near", "frames",
                                "lost with %g frames less of room, at the best threshold",
                                lab_value(run, "short")),
                    1, LAB_UNBOUNDED, (double)sweep.lost_less);
}

/* -- Sharing and marks --------------------------------------------------------------------------*/

static struct flow_config shared_config(struct lab_run *run)
{
    struct flow_config config = config_of(run, lab_value(run, "cable"));
    set_thresholds(run, &config, (uint64_t)lab_value(run, "shared_xoff") * KB);
    config.stagger_ps = lab_ps(run, "stagger");
    config.warm_ps = lab_ps(run, "warm");
    config.stop_ps = lab_ps(run, "duration");
    return config;
}

/* The share of its line rate that the receiver's line carried between warm and stop. */
static double carried(const struct flow_world *world)
{
    const struct flow_config *config = &world->config;
    const uint64_t line_ps = sim_ethernet_line_ps(&config->kind.line, config->frame_bytes);
    uint64_t frames = 0;
    for (uint32_t i = 0; i < config->senders; i++) {
        frames += world->hosts[config->senders].counted[i];
    }
    return (double)(frames * line_ps) / (double)(config->stop_ps - config->warm_ps);
}

static void add_sharing(struct lab_run *run)
{
    struct flow_config config = shared_config(run);
    config.unpaused = lab_value(run, "unpaused") > 0;
    struct flow_world *world = run_world(run, &config);
    double shares[FLOW_SENDERS_MAX];
    for (uint32_t i = 0; i < config.senders; i++) {
        shares[i] = world->hosts[config.senders].counted[i];
    }
    const struct sim_switch_counters total = sim_ethernet_switch_total(&world->middle);
    lab_judge_range(lab_add_row(run, "PFC-fair", "", "Jain's index of %u senders", config.senders),
                    0.99, 1, sim_fairness(shares, config.senders));
    lab_judge_range(lab_add_row(run, "PFC-carried", "", "the receiver's line; %llu pauses",
                                (unsigned long long)total.xoffs),
                    0.99, 1.01, carried(world));
    end_world(world);
}

/* The same run twice, with frames that may be marked, and with such that may not. */
static void add_marks(struct lab_run *run)
{
    struct flow_config config = shared_config(run);
    config.kind.ecn_bytes = (uint64_t)lab_value(run, "ecn");
    config.kind.ecn_ignores = lab_word(run, "marks") != 0;
    struct flow_world *world = run_world(run, &config);
    const struct sim_switch_counters total = sim_ethernet_switch_total(&world->middle);
    lab_judge_absolute(lab_add_row(run, "ECN-not-ect", "frames",
                                   "CE on frames that are Not-ECT; %llu joined a longer queue",
                                   (unsigned long long)(total.unmarkable + total.marked)),
                       0, (double)world->ce, 0);
    end_world(world);
    config.ecn = SIM_ECT_0;
    world = run_world(run, &config);
    lab_judge_range(lab_add_row(run, "ECN-ect", "frames", "CE on the same frames as ECT"), 1,
                    LAB_UNBOUNDED, (double)world->ce);
    end_world(world);
}

/* The mean time from a frame's end on its sender's line to its end at the receiver. */
static double latency_ps(struct lab_run *run, uint32_t senders)
{
    struct flow_config config = shared_config(run);
    config.senders = senders;
    struct flow_world *world = run_world(run, &config);
    const double mean_ps =
        world->latencies == 0 ? 0 : (double)world->latency_ps / (double)world->latencies;
    end_world(world);
    return mean_ps;
}

static void add_latency(struct lab_run *run)
{
    const uint32_t few = (uint32_t)lab_value(run, "senders");
    const uint32_t many = (uint32_t)lab_value(run, "many");
    if (few >= many) {
        lab_fail(run, "senders is not below many");
        return;
    }
    const struct flow_config config = shared_config(run);
    const double threshold_ps =
        (double)sim_wire_ps(&config.kind.line.wire, config.kind.input.xoff_bytes);
    const double few_ps = latency_ps(run, few), many_ps = latency_ps(run, many);
    lab_judge_range(lab_add_row(run, "PFC-latency", "",
                                "each further sender's part in a queue, as thresholds; %.1f us, "
                                "%.1f with %u",
                                few_ps / 1e6, many_ps / 1e6, many),
                    0.5, 1.5, (many_ps - few_ps) / (many - few) / threshold_ps);
}

static void pauses(struct lab_run *run)
{
    if (lab_value(run, "least_xoff") > lab_value(run, "most_xoff")) {
        lab_fail(run, "least_xoff is above most_xoff");
        return;
    }
    if (lab_value(run, "warm") >= lab_value(run, "duration")) {
        lab_fail(run, "warm is not below duration");
        return;
    }
    add_headroom(run, false);
    add_headroom(run, true);
    add_sharing(run);
    add_latency(run);
    add_marks(run);
}

static const struct lab_claim claims[] = {
    {.id = "PFC-near",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what may still come after a pause was asked for",
     .broken_by = "flow=none | without=progress",
     .because = "nobody stops; the frame that a sender has begun finds no room"},
    {.id = "PFC-long",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what may still come after a pause was asked for",
     .broken_by = "without=cable",
     .because = "what is on the cable finds no room"},
    {.id = "PFC-short-near",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the formula is no larger than it has to be, but for two frames",
     .broken_by = "short=0",
     .because = "there is the headroom"},
    {.id = "PFC-short-long",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the formula is no larger than it has to be, but for two frames",
     .broken_by = "short=0 | hold=0",
     .because = "there is the headroom; an output that goes on draining hides what lacks"},
    {.id = "PFC-fair",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: each input holds its own threshold",
     .broken_by = "unpaused=1",
     .because = "one sender is never paused, and fills the queue"},
    {.id = "PFC-latency",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: each input holds its own threshold",
     .broken_by = "flow=none",
     .because = "all share one queue, which drops"},
    {.id = "PFC-carried",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: senders go on before their queues are empty: xon is more than a round trip",
     .broken_by = "cable=20000",
     .because = "a queue of xon is empty before the end of a pause has crossed the cable"},
    {.id = "ECN-not-ect",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "RFC3168: 5, only packets of a transport that is ECN-capable are marked",
     .broken_by = "marks=any",
     .because = "the switch marks whatever joins a long queue"},
    {.id = "ECN-ect",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "RFC3168: 5, a queue that builds up marks them",
     .broken_by = "ecn=1000000",
     .because = "no queue reaches this threshold"},
};

static const char *const others[] = {
    "802.3: IEEE Std 802.3-2022, Ethernet (annex 31B: MAC Control PAUSE operation)",
    "802.1Qbb: IEEE Std 802.1Qbb-2011, Priority-based Flow Control",
    "RFC3168: K. Ramakrishnan, S. Floyd, D. Black, The Addition of Explicit Congestion "
    "Notification "
    "(ECN) to IP, 2001",
    NULL,
};

static const struct lab_document pause_document = {
    .title = "flow control of Ethernet; IEEE 802.3, 802.1Qbb, RFC 3168",
    .sections = "",
    .others = others,
    .note = "The standards print no rates and no losses: the rows are predictions, or sentences of "
            "the standards.",
};

const struct lab_experiment network_pause = {
    .name = "network/pause",
    .document = &pause_document,
    .what = "PFC with and without its headroom, how senders share, what is marked",
    .parameters = parameters,
    .parameter_count = COUNT_OF(parameters),
    .uses =
        "rate cable long_cable fec extra switch frame reverse senders many least_xoff most_xoff "
        "shared_xoff flow without short phases start hold busy ecn marks unpaused "
        "stagger "
        "duration warm",
    NETWORK_CLAIMS(claims),
    .quick = true,
    .run = pauses,
    .explains = "Behind its threshold an input needs room for what is on the cable both ways, for "
                "the time that the switch takes and for three frames: the one that crossed the "
                "threshold, the one that the sender has begun, the one on the way back. With that "
                "room PFC loses nothing, and with two frames less it does, if the output stands "
                "still. How the receiver's own pauses come about is not modelled.",
};
