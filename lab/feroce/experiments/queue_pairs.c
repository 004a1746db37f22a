/* SPDX-License-Identifier: BSD-2-Clause
 *
 * 100 Gb/s over the queue pairs of one board: rows A15, A18 to A21.
 */
#include "lab/feroce/experiments.h"
#include "lab/feroce/rows.h"

enum {
    MESSAGE_BYTES = 262144,
    MESSAGES = 60, /* Each queue pair's; 10 of them are not measured. */
    SMALL_BYTES = 64,
    SMALL_MESSAGES = 5000,
    QPS_MOST = 8,
};

/* -- The line -----------------------------------------------------------------------------------*/

static double stream_gbps(struct lab_run *run, struct feroce_sums *sums, uint32_t qps,
                          uint32_t extra_bytes)
{
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = feroce_load_of(MESSAGE_BYTES, MESSAGES * qps);
    feroce_set_gap(&setup, extra_bytes, 0);
    load.warm = 10 * qps;
    load.qps = qps < setup.board.window.qps ? qps : setup.board.window.qps;
    return feroce_run_in(run, sums, &setup, &load).gbps;
}

static void line_rows(struct lab_run *run, struct feroce_sums *sums)
{
    /* Requests to one queue pair keep one busy, however many they are. */
    const bool one = lab_word(run, "requests") != 0;
    const double alone = stream_gbps(run, sums, 1, 0);
    struct lab_figure *figure =
        lab_add_figure(run, "queue-pairs", "Throughput at 100 Gb/s over busy queue pairs",
                       "queue pairs", "payload, Gb/s", false);
    lab_add_level(figure, 98.04, "the line: 98.04");
    struct lab_series *series = lab_add_curve(run, "messages of 262,144 bytes");
    double gbps[QPS_MOST + 1] = {0};
    for (uint32_t qps = 1; qps <= QPS_MOST; qps++) {
        gbps[qps] = qps == 1 || one ? alone : stream_gbps(run, sums, qps, 0);
        lab_add_point(series, qps, gbps[qps], LAB_NOTHING);
        lab_progress(run, 0.08 * qps);
    }
    lab_judge_relative(lab_add_row(run, "FER-A15", "Gb/s", "8 queue pairs, no extra gap"), 98.0,
                       stream_gbps(run, sums, QPS_MOST, 0), 0.003);
    lab_judge_relative(lab_add_row(run, "FER-A15.gap", "Gb/s", "8 queue pairs, the gap of 10G"),
                       96.4, stream_gbps(run, sums, QPS_MOST, feroce_whole(run, "extra_bytes")),
                       0.003);
    lab_judge_relative(lab_add_row(run, "FER-A18", "Gb/s", "one queue pair"), 40, gbps[1], 0.05);
    lab_judge_relative(lab_add_row(run, "FER-A19/2", "Gb/s", "two queue pairs"), 82.4, gbps[2],
                       0.01);
    lab_judge_relative(lab_add_row(run, "FER-A19/3", "Gb/s", "three queue pairs"), 98.0, gbps[3],
                       0.01);
}

/* -- Small messages -----------------------------------------------------------------------------*/

static double small_rate(struct lab_run *run, struct feroce_sums *sums, uint32_t qps)
{
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = feroce_load_of(SMALL_BYTES, SMALL_MESSAGES * qps);
    setup.ack_ps = (uint64_t)(lab_value(run, "fast_ack") * 1e3);
    load.write = false;
    load.warm = 500 * qps;
    load.qps = qps < setup.board.window.qps ? qps : setup.board.window.qps;
    return feroce_run_in(run, sums, &setup, &load).messages_per_s / 1e6;
}

static void small_rows(struct lab_run *run, struct feroce_sums *sums)
{
    lab_add_figure(run, "small", "Rate of 64-byte SENDs over busy queue pairs", "queue pairs",
                   "million messages a second", false);
    struct lab_series *series = lab_add_curve(run, "of 8 queue pairs");
    double rates[QPS_MOST + 1] = {0};
    for (uint32_t qps = 1; qps <= QPS_MOST; qps++) {
        rates[qps] = small_rate(run, sums, qps);
        /* A round of the reader has 8 cycles for a queue pair that sends, 3 for one that does
         * not. */
        lab_add_point(series, qps, rates[qps], 322.265625 * qps / (8 * qps + 3 * (8 - qps)));
        lab_progress(run, 0.64 + 0.04 * qps);
    }
    lab_judge_relative(lab_add_row(run, "FER-A20", "M/s", "64-byte SENDs, 8 queue pairs busy"),
                       40.3, rates[QPS_MOST], 0.02);
    lab_judge_relative(lab_add_row(run, "FER-A21", "M/s", "64-byte SENDs, 1 of 8 busy"), 11.1,
                       rates[1], 0.02);
}

static void queue_pairs(struct lab_run *run)
{
    struct feroce_sums sums = {0};
    line_rows(run, &sums);
    small_rows(run, &sums);
    feroce_sums_rows(run, &sums, "FER-A37.bytes.qps", "FER-A37.icrcs.qps");
}

static const struct lab_claim claims[] = {
    {.id = "FER-A15",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "OC: 4,096 B in 4,178 of the line, while the reader keeps up",
     .broken_by = "packet_cycles=120",
     .because = "it does not keep up: 88 Gb/s"},
    {.id = "FER-A15.gap",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FER-A3",
     .source = "OC: 4,096 B in 4,249 of the line, while the reader keeps up",
     .broken_by = "packet_cycles=120 | extra_bytes=0",
     .because = "it does not keep up: 88 Gb/s; or the line has no gap"},
    {.id = "FER-A18",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "RTL2026: about 40 Gb/s for a queue pair of 128 bits at 322 MHz",
     .broken_by = "qp_width=256",
     .because = "the channel is twice as wide"},
    {.id = "FER-A19",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the bottleneck moves from the channel to the line",
     .broken_by = "requests=one",
     .because = "one channel stays the bottleneck"},
    {.id = "FER-A20",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "RTL2026: 8 cycles for each packet",
     .broken_by = "packet_cycles=12",
     .because = "26.9 M/s"},
    {.id = "FER-A21",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "RTL2026: 7 x 3 + 8 = 29 cycles a round",
     .broken_by = "qps=2",
     .because = "3 + 8 = 11 cycles a round"},
    FEROCE_SUM_CLAIMS("qps"),
};

const struct lab_experiment feroce_queue_pairs = {
    FEROCE_COMMON,
    .name = "feroce/queue-pairs",
    .what = "one board at 100 Gb/s: one to eight queue pairs, long messages and small ones",
    .uses = "qps qp_width request_cycles visit_cycles packet_cycles extra_bytes fast_ack requests "
            "buffer_bits quirks pmtu pipe_cycles host_ns cable switch coalesce ack_ns flip",
    FEROCE_CLAIMS(claims),
    .run = queue_pairs,
    .explains =
        "A queue pair's channel is 128 bits wide, so that one of them fills 41 % of the line, two "
        "fill 82 %, and three fill it. With small messages the reader is the bottleneck: it visits "
        "all queue pairs in turn, and a visit costs 3 cycles even if there is nothing to send. "
        "This is the authors' public design of 2026: the slides have one queue pair, print nothing "
        "at 100 Gb/s, and their board sends nothing twice. Nobody has published a measurement of "
        "any of this; a comment of that design says about 40 Gb/s for a queue pair.",
};
