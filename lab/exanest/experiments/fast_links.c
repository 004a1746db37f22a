/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Links at 16 Gb/s, which the document's transceivers can do: the rate of a stream, its limit, and
 * whether the watermark of 72 words still protects the FIFO.
 */
#include "lab/exanest/experiments.h"

#define MEGABYTE     1048576u
#define PACKET_WORDS EXANEST_PACKET_WORDS_MAX
#define FASTEST      40.0 /* Gb/s, far beyond what the datapath fills. */
#define STALL_CYCLES 1500u

static double gbps_at(struct lab_run *run, double link, enum exanest_line_model model)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t mhz = (uint32_t)lab_value(run, "datapath");
    config.fabric.link.serializer.line = exanest_line_of(model, (uint32_t)lab_value(run, "gap"),
                                                         mhz, (uint32_t)llround(link * 1000));
    const uint32_t bytes = (uint32_t)lab_value(run, "megabytes") * MEGABYTE;
    return exanest_stream_of(run, &config, 0, 1, bytes, 0, 0).gbps;
}

static enum exanest_line_model line(struct lab_run *run)
{
    return (enum exanest_line_model)lab_word(run, "line");
}

static void draw_throughput(struct lab_run *run)
{
    static const double rates[] = {5, 7.5, 10, 12.5, 16, 18, 20, 22.5, 25, 30};
    static const char *const names[] = {"Aurora 64B/66B", "words and 3 dead cycles a packet"};
    struct lab_figure *figure =
        lab_add_figure(run, "rate", "One link, datapath at 150 MHz: a stream over the link's rate",
                       "link (Gb/s)", "payload (Gb/s)", false);
    lab_add_mark(figure, 10, 8.23, "8.23 measured");
    lab_add_mark(figure, LAB_NOTHING, 19.2, "19.2: words of the datapath");
    for (uint32_t model = 0; model < COUNT_OF(names); model++) {
        struct lab_series *series = lab_add_curve(run, "%s", names[model]);
        for (uint32_t i = 0; i < COUNT_OF(rates); i++) {
            lab_add_point(series, rates[i], gbps_at(run, rates[i], (enum exanest_line_model)model),
                          LAB_NOTHING);
        }
    }
}

/* -- A receiver that stands still ---------------------------------------------------------------*/

/* Word `at` of a packet of the greatest length. */
static struct exanest_beat beat_of(uint32_t at)
{
    const struct exanest_header header = {
        .type = EXANEST_WRITE, .bytes = EXANEST_PAYLOAD_BYTES_MAX, .has_footer = true};
    const struct exanest_footer footer = {.first = true};
    struct exanest_beat beat = {.part = EXANEST_PAYLOAD, .last = at + 1 == PACKET_WORDS};
    if (at == 0) {
        beat.part = EXANEST_HEADER;
        beat.word = exanest_header_encode(&header);
    } else if (beat.last) {
        beat.part = EXANEST_FOOTER;
        beat.word = exanest_footer_encode(&footer);
    }
    return beat;
}

struct stall {
    double late; /* Words that come after XOFF was due, */
    double lost; /* and those that find no room. */
};

/* One end sends all the time, the other takes nothing. */
static struct stall stall_of(struct lab_run *run, double rate)
{
    struct exanest_link_config config = exanest_config_of(run, 1, 1, 1).fabric.link;
    const uint64_t cycle_ps = 1000 * SIM_NS / (uint64_t)lab_value(run, "datapath");
    struct exanest_link link;
    config.serializer.line =
        exanest_line_of(line(run), (uint32_t)lab_value(run, "gap"),
                        (uint32_t)lab_value(run, "datapath"), (uint32_t)llround(rate * 1000));
    exanest_link_open(&link, &config);
    uint32_t at = 0;
    for (uint64_t cycle = 0; cycle < STALL_CYCLES; cycle++) {
        const struct exanest_beat beat = beat_of(at);
        if (exanest_serializer_ready(exanest_link_in(&link, 0), &beat)) {
            exanest_serializer_take(exanest_link_in(&link, 0), &beat);
            at = (at + 1) % PACKET_WORDS;
        }
        exanest_link_step(&link, cycle * cycle_ps);
    }
    const struct exanest_deserializer *deserializer = exanest_link_out(&link, 1);
    const uint32_t due = EXANEST_FIFO_WORDS - config.deserializer.xoff_free;
    const struct stall stall = {
        .late = (double)deserializer->fifo.used + (double)deserializer->counters.lost - due,
        .lost = (double)deserializer->counters.lost,
    };
    exanest_link_close(&link);
    return stall;
}

static void draw_stall(struct lab_run *run)
{
    struct lab_figure *figure =
        lab_add_figure(run, "stall", "A receiver stands still: words that come after XOFF is due",
                       "link (Gb/s)", "words", false);
    lab_add_level(figure, EXANEST_WATERMARK, "72 are free");
    struct lab_series *series = lab_add_curve(run, "Aurora 64B/66B");
    for (uint32_t rate = 6; rate <= 20; rate += 2) {
        lab_add_point(series, rate, stall_of(run, rate).late, LAB_NOTHING);
    }
}

/* -- Rows ---------------------------------------------------------------------------------------*/

static void fast_links(struct lab_run *run)
{
    const double link = lab_value(run, "link");
    lab_judge_relative(
        lab_add_row(run, "EXA-W-16.gap", "Gb/s", "links of 16 Gb/s with 3 dead cycles a packet"),
        EXANEST_STREAM_BITS / exanest_gap_packet_ns(16, 3 / 0.15),
        gbps_at(run, link, exanest_other_line(run)), 0.005);
    lab_judge_relative(
        lab_add_row(run, "EXA-W-16.aurora", "Gb/s", "links of 16 Gb/s, Aurora 64B/66B"),
        EXANEST_STREAM_BITS / exanest_aurora_packet_ns(16), gbps_at(run, link, line(run)), 0.005);
    lab_judge_relative(
        lab_add_row(run, "EXA-W-fast", "Gb/s", "links of %g Gb/s: the crossbar", FASTEST),
        19.2 * 16 / 20, gbps_at(run, FASTEST, line(run)), 0.01);
    const struct stall stall = stall_of(run, link);
    lab_judge_range(lab_add_row(run, "EXA-W-16.stall", "words",
                                "lost if a receiver stands still; %g come after XOFF is due",
                                stall.late),
                    1, LAB_UNBOUNDED, stall.lost);
    draw_throughput(run);
    draw_stall(run);
}

static const struct lab_claim fast_claims[] = {
    {.id = "EXA-W-16.gap",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source =
         "OC: what if links ran at 16 Gb/s, as 6.3 says that they can: 18 words of 8 ns, 3 cycles",
     .broken_by = "link=10 | slots=3 | other_line=aurora",
     .because = "more packets have to be in flight on a faster link; its dead time stays"},
    {.id = "EXA-W-16.aurora",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if links ran at 16 Gb/s; PG074: 37 blocks of 66 bits, compensation",
     .broken_by = "link=10 | slots=3 | line=gap",
     .because =
         "more packets have to be in flight on a faster link; the other model has dead time"},
    {.id = "EXA-W-fast",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if links were faster than the datapath: 16 words of 18 and 2 idle cycles",
     .broken_by = "idle=0 | idle=3 | slots=3 | scheduler=21",
     .because = "then it is as inside one FPGA: the crossbar's idle cycles are the bound"},
    {.id = "EXA-W-16.stall",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if links ran at 16 Gb/s: a round trip of 0.86 us is 101 words of 8.5 ns",
     .broken_by = "link=10 | wire=0.2 | watermark=108",
     .because = "72 words are the round trip of this wire at 10 Gb/s"},
};

const struct lab_experiment exanest_fast_links = {
    .name = "exanest/fast-links",
    .what = "what if links ran at 16 Gb/s: a stream over one, and what limits it",
    EXANEST_COMMON,
    .uses = EXANEST_USES "link=16 megabytes=1 other_line",
    EXANEST_CLAIMS(fast_claims),
    .quick = true,
    .run = fast_links,
    .explains =
        "At 16 Gb/s the link is still the bound, and 8 slots and 4 blocks suffice: 13.4 Gb/s if "
        "the "
        "line's coding is what a packet costs, 12.5 if it is three cycles of dead wire. From about "
        "18 Gb/s on (dead wire: 20) the crossbar's two idle cycles are the bound, 15.36 Gb/s, as "
        "inside an FPGA. The watermark does not suffice: more than 72 words are on the way when "
        "XOFF comes, so a receiver that stands still loses words, which only the blocks' timeouts "
        "repair. 108 words would do. The document's boards can run 16 Gb/s "
        "(6.3), and it measured none of that.",
};
