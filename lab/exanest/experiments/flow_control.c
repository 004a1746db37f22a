/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A receiver that stalls in a stream at line rate (row A10).
 */
#include "lab/exanest/bench.h"
#include "lab/exanest/experiments.h"

enum {
    PHASES = 48, /* 25 words of 12.8 ns are 48 cycles: each way to meet a word's end. */
    SOURCES = 2,
};

/* A cycle until XOFF is wanted, its word, the wire there and back. */
#define LOOP_NS   (6.7 + 12.8 + 2 * 420)
#define WORD_NS   (exanest_aurora_packet_ns(10) / EXANEST_PACKET_WORDS_MAX)
#define WARM_PS   (5000 * SIM_NS)
#define STALL_PS  (10000 * SIM_NS)
#define AFTER_PS  (5000 * SIM_NS)
#define SAMPLE_PS (128 * SIM_NS)
#define BEFORE_PS (1000 * SIM_NS) /* The figure shows this time before the stream is stopped. */

static struct exanest_bench_config config_of(struct lab_run *run)
{
    const uint32_t mhz = (uint32_t)lab_value(run, "datapath");
    const uint32_t mbps = exanest_link_mbps(run);
    const uint32_t xon = (uint32_t)lab_value(run, "xon");
    const uint32_t watermark = (uint32_t)lab_value(run, "watermark");
    struct exanest_bench_config config = {
        .datapath_hz = mhz * UINT64_C(1000000),
        .crossbar = exanest_crossbar_default(),
        .link = exanest_link_default(),
        .sources = SOURCES,
        .words = EXANEST_PACKET_WORDS_MAX,
        .take_ps = (uint64_t)(128000 / lab_value(run, "drain")),
    };
    config.link.serializer.line = exanest_line_of((enum exanest_line_model)lab_word(run, "line"),
                                                  (uint32_t)lab_value(run, "gap"), mhz, mbps);
    config.link.wire_ps = (uint32_t)lab_ps(run, "wire");
    config.link.deserializer.xoff_free = (uint16_t)watermark;
    config.link.deserializer.xon_used = (uint16_t)(xon == 0 ? watermark : xon);
    return config;
}

/* The effects of stalls, the worst of all. */
struct stalls {
    uint64_t lost, bubbles;
    double bubble_us;
    uint32_t most; /* Words in the FIFO. */
};

/* Runs, and draws how much is in the FIFO, if there is a series. */
static void run_drawn(struct exanest_bench *bench, struct lab_series *series, uint64_t until_ps)
{
    const struct exanest_deserializer *receiver = exanest_bench_receiver(bench);
    while (series != NULL && bench->sim->now_ps + SAMPLE_PS < until_ps) {
        exanest_bench_run(bench, bench->sim->now_ps + SAMPLE_PS);
        const uint64_t now_ps = bench->sim->now_ps;
        if (now_ps >= WARM_PS - BEFORE_PS) {
            lab_add_point(series, ((double)now_ps - (double)WARM_PS) / 1e6, receiver->fifo.used,
                          LAB_NOTHING);
        }
    }
    exanest_bench_run(bench, until_ps);
}

static void stall(struct lab_run *run, uint32_t phase, struct lab_series *series,
                  struct stalls *stalls)
{
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct exanest_bench bench;
    const struct exanest_bench_config config = config_of(run);
    const struct exanest_deserializer *receiver = exanest_bench_receiver(&bench);
    lab_world_begin(run, &sim, &trace, &capture, PCAPNG_LINK_EXANEST);
    exanest_bench_open(&bench, &config, &sim);
    const uint64_t stops_ps = WARM_PS + sim_clock_at(bench.clock, phase);
    run_drawn(&bench, series, stops_ps);
    bench.stalled = true;
    run_drawn(&bench, series, stops_ps + STALL_PS);
    bench.stalled = false;
    exanest_bench_watch(&bench);
    run_drawn(&bench, series, stops_ps + STALL_PS + AFTER_PS);
    stalls->lost += receiver->counters.lost;
    stalls->bubbles += bench.bubbles;
    stalls->bubble_us = fmax(stalls->bubble_us, (double)bench.bubble_ps / 1e6);
    stalls->most = receiver->peak > stalls->most ? receiver->peak : stalls->most;
    lab_world_end(run, &sim, trace, capture);
    exanest_bench_close(&bench);
}

static void flow_control(struct lab_run *run)
{
    struct stalls stalls = {0};
    struct lab_figure *figure =
        lab_add_figure(run, "fifo", "The receiver's FIFO around a stall of 10 us",
                       "us since the receiver takes nothing", "words", false);
    lab_add_level(figure, EXANEST_FIFO_WORDS - EXANEST_WATERMARK, "XOFF: 72 are free");
    lab_add_level(figure, EXANEST_WATERMARK, "XON: 72 are in use");
    lab_add_level(figure, EXANEST_FIFO_WORDS, "full");
    struct lab_series *series = lab_add_curve(run, "words in the FIFO");
    for (uint32_t phase = 0; phase < PHASES; phase++) {
        stall(run, phase, phase == 0 ? series : NULL, &stalls);
    }
    lab_judge_absolute(lab_add_row(run, "EXA-A10.loss", "words", "lost in %d stalls", PHASES), 0,
                       (double)stalls.lost, 0);
    lab_judge_absolute(lab_add_row(run, "EXA-A10.after", "words", "that came after XOFF, at most"),
                       LOOP_NS / WORD_NS,
                       stalls.most - (EXANEST_FIFO_WORDS - lab_value(run, "watermark")), 1);
    lab_judge_absolute(lab_add_row(run, "EXA-A10.bubbles", "",
                                   "times without a word in %d drains, the longest %.0f ns", PHASES,
                                   1000 * stalls.bubble_us),
                       0, (double)stalls.bubbles, 0);
}

static const struct lab_claim flow_control_claims[] = {
    {.id = "EXA-A10.loss",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.2.2: flow control \"to prevent buffer overflows\"; 6.3: 72 words",
     .broken_by = "watermark=60 | wire=0.5 | link=16 drain=16",
     .because = "words that are under way when XOFF is said find no room"},
    {.id = "EXA-A10.after",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 6.7 + 12.8 + 2 x 420 ns are 63.3 words of 13.59 ns",
     .broken_by = "wire=0.46 | link=16 drain=16",
     .because = "a longer wire, or a faster link, has more words under way"},
    {.id = "EXA-A10.bubbles",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.3: 72 words; OC: they last 978 ns, the first one after XON needs 860",
     .broken_by = "xon=40 | drain=19.2 | watermark=60",
     .because = "the FIFO is empty before the first word after XON has come"},
};

const struct lab_experiment exanest_flow_control = {
    .name = "exanest/flow-control",
    .what = "a receiver that stalls in a stream at line rate",
    EXANEST_COMMON,
    .uses = "datapath link line gap wire watermark xon drain",
    EXANEST_CLAIMS(flow_control_claims),
    .quick = true,
    .run = flow_control,
    .explains =
        "64 words come after XOFF is wanted, so 72 free ones are enough; and 72 in use bridge the "
        "silence after XON, for which 64 would do. The document prints the 72 words "
        "and \"almost 0.5us\" of a transceiver; how much of that is the wire, and how much is its "
        "FIFOs, is our choice. 72 words allow a wire of at most 0.475 us, so with a FIFO of 0.02 "
        "us "
        "at each end the two figures agree; 0.42 us was not fitted to them, but chosen below that. "
        "If the receiver drains at the datapath's rate, the FIFO is empty for 0.4 us. At 16 Gb/s, "
        "of which the hardware is capable, 72 words are too few.",
};
