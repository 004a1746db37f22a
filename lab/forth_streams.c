/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The streams of section 5 of the report: one way, to itself, three to one, over size, and to all.
 */
#include <math.h>

#include "lab/forth_experiments.h"

#define SWITCHED_NODES 4u
#define QWORD_BYTES    8u
/* A sample of 100 us: that many PCI cycles of 10 ns. */
#define SAMPLE_CYCLES 10000u
#define SAMPLES       16u

/* Returns 0, and the run has failed, if no packet through the switch can have this payload. */
static uint32_t payload_qwords(struct lab_run *run)
{
    const uint32_t bytes = (uint32_t)lab_value(run, "payload");
    const uint32_t most = (uint32_t)lab_value(run, "crosspoint") - FORTH_OVERHEAD_WORDS;
    if (bytes % QWORD_BYTES != 0 || bytes / QWORD_BYTES > most) {
        lab_fail(run, "payload=%u is not a multiple of 8 up to %u, what a crosspoint holds", bytes,
                 most * QWORD_BYTES);
        return 0;
    }
    return bytes / QWORD_BYTES;
}

/* MB/s in the document's unit and in the other reading of it (C-1). */
static void add_rate(struct lab_run *run, const char *id, double published, double measured,
                     double bound, const char *what)
{
    struct lab_row *row =
        lab_add_row(run, id, "MB/s", "%s (%.1f of 10^6)", what, measured * FORTH_MB / 1e6);
    lab_judge_relative(row, published, measured, bound);
}

static void run_for(struct forth_machine *machine, uint64_t duration_ps)
{
    enum {
        STEPS = 20
    };
    for (uint64_t i = 1; i <= STEPS; i++) {
        sim_run_until(&machine->sim, duration_ps * i / STEPS);
        lab_progress(machine->run, (double)i / STEPS);
    }
}

/* -- One way (A1, A2, A13, A15) -----------------------------------------------------------------*/

/* The rate of one link: the words of a packet over the time for which it holds the link. */
static double raw_rate(struct lab_run *run)
{
    struct forth_yard yard;
    forth_yard_open(&yard, run, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct station_config config = forth_station_config(run, i, 2);
        config.least = config.most;
        config.packets = i == 0;
        forth_yard_station(&yard, &config);
    }
    while (yard.up[0].packets == 0 && sim_step(yard.sim)) {
    }
    const double seconds = (double)(yard.up[0].free_ps - yard.sim->now_ps) / 1e12;
    const double bytes = 4.0 * (double)yard.up[0].busy_cycles;
    forth_yard_close(&yard);
    return bytes / seconds / FORTH_MB;
}

/* The rate that the sampling facility reports for the same stream (A15). */
static double sampled_rate(struct forth_node *node)
{
    uint32_t last = 0;
    uint32_t first = 0;
    const uint32_t taken = node->sampler.taken;
    for (uint32_t i = 0; i < taken; i++) {
        (void)forth_node_read(node, FORTH_SAMPLE_DATA); /* The outgoing half, which is not used. */
        last = forth_node_read(node, FORTH_SAMPLE_DATA);
        first = i == 0 ? last : first;
    }
    return taken < 2 ? 0 : forth_sample_rate(last - first, SAMPLE_CYCLES * (taken - 1));
}

static void one_way(struct lab_run *run)
{
    struct forth_machine machine;
    struct forth_stream streams[2];
    const uint32_t qwords = payload_qwords(run);
    if (qwords == 0) {
        return;
    }
    forth_machine_open(&machine, run, SWITCHED_NODES, true);
    for (uint32_t i = 0; i < 2; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
    }
    forth_node_write(&machine.nodes[1], FORTH_SAMPLE_INTERVAL, SAMPLE_CYCLES);
    forth_node_write(&machine.nodes[1], FORTH_SAMPLE_COUNT, SAMPLES);
    forth_stream_to(&streams[0], 1);
    run_for(&machine, lab_ps(run, "duration"));

    lab_judge_absolute(lab_add_row(run, "A1", "MB/s", "one link, raw"), 298.0,
                       round(10 * raw_rate(run)) / 10, 0);
    const double rate = forth_stream_rate(&streams[1].all);
    add_rate(run, "A2", 287, rate, 0.02, "one way through the switch, 512 B packets");
    const uint64_t blocked = machine.nodes[0].registers.counters[FORTH_backpressure_cycles];
    lab_judge_range(lab_add_row(run, "A13", "cycles", "the window never held the stream up"), 0, 0,
                    (double)blocked);
    const double sampled = sampled_rate(&machine.nodes[1]);
    lab_judge_relative(lab_add_row(run, "A15", "MB/s", "the sampling utility, of the same stream"),
                       rate, sampled, 0.01);
    forth_stream_check(&streams[1], run);
    forth_machine_close(&machine);
}

/* -- To itself (A3) -----------------------------------------------------------------------------*/

static void to_itself(struct lab_run *run)
{
    struct forth_machine machine;
    struct forth_stream stream;
    const uint32_t qwords = payload_qwords(run);
    if (qwords == 0) {
        return;
    }
    forth_machine_open(&machine, run, SWITCHED_NODES, true);
    forth_stream_open(&stream, &machine, 0, qwords, forth_warm_ps(run));
    forth_stream_to(&stream, 0);
    run_for(&machine, lab_ps(run, "duration"));
    add_rate(run, "A3", 270, forth_stream_rate(&stream.all), 0.03,
             "one way to itself, 512 B packets");
    const struct forth_node *node = &machine.nodes[0];
    const double fetched = (double)node->truth.fetched;
    lab_judge_range(lab_add_row(run, "FNX-16", "", "deliveries for each fetch: neither starves"),
                    0.97, 1, (double)node->truth.delivered / fetched);
    forth_stream_check(&stream, run);
    forth_machine_close(&machine);
}

/* -- Three to one (A4, A14) ---------------------------------------------------------------------*/

static void three_to_one(struct lab_run *run)
{
    enum {
        SENDERS = 3
    };
    struct forth_machine machine;
    struct forth_stream streams[SWITCHED_NODES];
    const uint32_t qwords = payload_qwords(run);
    if (qwords == 0) {
        return;
    }
    forth_machine_open(&machine, run, SWITCHED_NODES, true);
    for (uint32_t i = 0; i < SWITCHED_NODES; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        forth_stream_to(&streams[i], SENDERS);
    }
    run_for(&machine, lab_ps(run, "duration"));
    const struct forth_stream *sink = &streams[SENDERS];
    add_rate(run, "A4", 279, forth_stream_rate(&sink->all), 0.03, "three senders, in all");
    double least = LAB_UNBOUNDED;
    double most = 0;
    for (uint32_t i = 0; i < SENDERS; i++) {
        char what[40];
        const double share = forth_stream_rate(&sink->arrived[i]);
        snprintf(what, sizeof(what), "sender %u of three", i);
        add_rate(run, "A4", 93, share, 0.03, what);
        least = fmin(least, share);
        most = fmax(most, share);
    }
    lab_judge_range(lab_add_row(run, "A4", "", "largest share over the smallest"), 1, 1.02,
                    most / least);
    for (uint32_t i = 0; i < SENDERS; i++) {
        const struct crosspoint *point = crossbar_point(&machine.crossbar, i, SENDERS);
        lab_judge_range(lab_add_row(run, "A14", "B", "most ever in crosspoint %u", i), 0, 2048,
                        QWORD_BYTES * (double)point->peak);
        lab_judge_range(lab_add_row(run, "A14", "cycles", "backpressure of sender %u", i), 1,
                        LAB_UNBOUNDED,
                        machine.nodes[i].registers.counters[FORTH_backpressure_cycles]);
    }
    forth_stream_check(sink, run);
    forth_machine_close(&machine);
}

/* -- Over size (A5) -----------------------------------------------------------------------------*/

static double stream_rate(struct lab_run *run, uint32_t nodes, bool switched, uint32_t qwords)
{
    struct forth_machine machine;
    struct forth_stream streams[2];
    forth_machine_open(&machine, run, nodes, switched);
    for (uint32_t i = 0; i < 2; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
    }
    forth_stream_to(&streams[0], 1);
    sim_run_until(&machine.sim, lab_ps(run, "duration"));
    const double rate = forth_stream_rate(&streams[1].all);
    forth_stream_check(&streams[1], run);
    forth_machine_close(&machine);
    return rate;
}

/* A station has no bus in front of the link. */
static double link_rate(struct lab_run *run, uint32_t qwords)
{
    struct forth_yard yard;
    forth_yard_open(&yard, run, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct station_config config = forth_station_config(run, i, 2);
        config.only = 1;
        config.least = config.most = qwords;
        config.packets = i == 0 ? UINT64_MAX : 0;
        config.warm_ps = forth_warm_ps(run);
        forth_yard_station(&yard, &config);
    }
    sim_run_until(yard.sim, lab_ps(run, "duration"));
    const double seconds = (double)(lab_ps(run, "duration") - forth_warm_ps(run)) / 1e12;
    const double rate = (double)yard.stations[1].warm_qwords * QWORD_BYTES / seconds / FORTH_MB;
    forth_yard_check(&yard);
    forth_yard_close(&yard);
    return rate;
}

static void sizes(struct lab_run *run)
{
    static const struct {
        uint32_t bytes;
        double link, with_dma;
    } table[] = {
        {8, 85.1, 10.5},     {16, 132.5, 20.6},   {32, 183.4, 40.2},   {64, 227.1, 76.3},
        {128, 257.7, 138.7}, {248, 275.8, 229.6}, {496, 286.5, 286.5},
    };
    struct lab_series *link =
        lab_add_series(run, "links and switch alone", "payload, B", "MB/s of 2^20", true);
    struct lab_series *dma =
        lab_add_series(run, "with the DMA initiator in front", "payload, B", "MB/s of 2^20", true);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const uint32_t qwords = table[i].bytes / QWORD_BYTES;
        const double alone = link_rate(run, qwords);
        const double all = stream_rate(run, SWITCHED_NODES, true, qwords);
        struct lab_row *row = lab_add_row(run, "A5", "MB/s", "%u B, link alone (%.1f of 10^6)",
                                          table[i].bytes, alone * FORTH_MB / 1e6);
        lab_judge_relative(row, table[i].link, alone, 0.02);
        row->predicted = true;
        row = lab_add_row(run, "A5", "MB/s", "%u B, with the DMA initiator (%.1f of 10^6)",
                          table[i].bytes, all * FORTH_MB / 1e6);
        lab_judge_relative(row, table[i].with_dma, all, 0.02);
        row->predicted = true;
        lab_add_point(link, table[i].bytes, alone, forth_link_rate(run, 1, qwords));
        lab_add_point(dma, table[i].bytes, all,
                      fmin(forth_link_rate(run, 1, qwords), forth_dma_rate(run, qwords)));
        lab_progress(run, (double)(i + 1) / COUNT_OF(table));
    }
}

/* -- Two nodes without a switch (A7, A8) --------------------------------------------------------*/

/* The size above which the link is slower than the initiator, between two sizes of a series. */
static double knee(struct lab_run *run, const struct lab_series *series)
{
    for (uint32_t i = 0; i < series->count; i++) {
        const uint32_t qwords = (uint32_t)series->points[i].x / QWORD_BYTES;
        if (series->points[i].y < 0.995 * forth_dma_rate(run, qwords)) {
            return qwords;
        }
    }
    return LAB_UNBOUNDED;
}

static void direct(struct lab_run *run)
{
    static const struct {
        uint32_t bytes;
        double rate;
    } table[] = {{8, 10.5}, {64, 76.3}, {496, 353}, {1024, 488}, {2048, 587}, {4096, 591}};
    struct lab_series *series =
        lab_add_series(run, "two nodes direct, one way", "payload, B", "MB/s of 2^20", true);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const uint32_t qwords = table[i].bytes / QWORD_BYTES;
        const double rate = stream_rate(run, 2, false, qwords);
        struct lab_row *row = lab_add_row(run, "A8", "MB/s", "direct, %u B (%.1f of 10^6)",
                                          table[i].bytes, rate * FORTH_MB / 1e6);
        lab_judge_relative(row, table[i].rate, rate, 0.03);
        row->predicted = true;
        lab_add_point(series, table[i].bytes, rate,
                      fmin(forth_link_rate(run, 2, qwords), forth_dma_rate(run, qwords)));
        if (table[i].bytes == 4096) {
            row = lab_add_row(run, "A7", "MB/s", "direct, pair of links, 4 KB (%.1f of 10^6)",
                              rate * FORTH_MB / 1e6);
            lab_judge_relative(row, 591.4, rate, 0.02);
            lab_judge_range(lab_add_row(run, "A7", "MB/s", "no more than the links carry"), 0, 596,
                            rate);
        }
    }
    struct lab_series *fine =
        lab_add_series(run, "around the knee", "payload, B", "MB/s of 2^20", false);
    for (uint32_t qwords = 200; qwords <= 280; qwords += 4) {
        lab_add_point(fine, QWORD_BYTES * qwords, stream_rate(run, 2, false, qwords),
                      fmin(forth_link_rate(run, 2, qwords), forth_dma_rate(run, qwords)));
        lab_progress(run, (qwords - 200) / 80.0);
    }
    struct lab_row *row = lab_add_row(run, "A8", "QWords", "the link becomes the bottleneck at");
    lab_judge_relative(row, 239, knee(run, fine), 0.10);
    row->predicted = true;
}

/* -- Everybody to everybody (A12) ---------------------------------------------------------------*/

static void all_to_all(struct lab_run *run)
{
    struct forth_machine machine;
    struct forth_stream streams[SWITCHED_NODES];
    double shares[SWITCHED_NODES];
    const uint32_t qwords = payload_qwords(run);
    if (qwords == 0) {
        return;
    }
    forth_machine_open(&machine, run, SWITCHED_NODES, true);
    for (uint32_t i = 0; i < SWITCHED_NODES; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
    }
    for (uint32_t i = 0; i < SWITCHED_NODES; i++) {
        for (uint32_t k = 1; k < SWITCHED_NODES; k++) {
            forth_stream_to(&streams[i], (i + k) % SWITCHED_NODES);
        }
    }
    run_for(&machine, lab_ps(run, "duration"));
    for (uint32_t i = 0; i < SWITCHED_NODES; i++) {
        shares[i] = forth_stream_rate(&streams[i].all);
        lab_judge_range(lab_add_row(run, "A12", "MB/s", "node %u receives", i), 230, 270,
                        shares[i]);
        forth_stream_check(&streams[i], run);
    }
    lab_judge_range(lab_add_row(run, "A12", "", "Jain's index over the nodes"), 0.99, 1,
                    sim_fairness(shares, SWITCHED_NODES));
    forth_machine_close(&machine);
}

/* -- Their names --------------------------------------------------------------------------------*/

FORTH_EXPERIMENT(forth_one_way, "forth/one-way", "one node sends to another through the switch",
                 one_way, "Framing alone explains the rate: 129 cycles for 496 bytes.");
FORTH_EXPERIMENT(
    forth_to_itself, "forth/to-itself", "one node sends to itself through the switch", to_itself,
    "Two credits a packet are derived; what each costs the link, 4 cycles, is fitted to "
    "this very measurement.");
FORTH_EXPERIMENT(forth_three_to_one, "forth/three-to-one", "three nodes send to the fourth",
                 three_to_one,
                 "Equal shares and no loss are derived; the 3 cycles between packets of different "
                 "crosspoints are fitted to the total.");
FORTH_EXPERIMENT(
    forth_sizes, "forth/sizes", "payload rate over packet size through the switch", sizes,
    "The document gives no rates over size: these are predictions from framing and from "
    "our costs of the bus.");
FORTH_EXPERIMENT(forth_direct, "forth/direct", "two nodes on a pair of links, one way over size",
                 direct,
                 "The curve of the document's Figure 13 is lost: these are predictions. Its bound, "
                 "596 MB/s, holds.");
FORTH_EXPERIMENT(forth_all_to_all, "forth/all-to-all", "every node sends to every other in turn",
                 all_to_all,
                 "The document says only that there were no errors. One outgoing FIFO for all "
                 "destinations and the credits of both directions cost what is missing from 287.");
