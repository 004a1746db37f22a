/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rates over the size of packets: through the switch, and between two nodes without one.
 */
#include <math.h>

#include "lab/forth/experiments.h"

/* The core whose bus is modelled. */
enum core {
    CORE_AS_SET,
    CORE_SHARED,
};

/* MB/s of one node's stream to another. */
static double stream_rate(struct lab_run *run, bool switched, uint32_t qwords, enum core core)
{
    struct forth_machine machine;
    struct forth_stream streams[2];
    forth_machine_open(&machine, run, switched ? FORTH_SWITCHED_NODES : 2, switched);
    for (uint32_t i = 0; i < 2; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
        machine.nodes[i].config.core_shared |= core == CORE_SHARED;
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
    const double bytes = (double)yard.stations[1].warm_qwords * FORTH_QWORD_BYTES;
    forth_yard_check(&yard);
    forth_yard_close(&yard);
    return bytes / seconds / FORTH_MB;
}

static double expected_rate(struct lab_run *run, uint32_t lanes, uint32_t qwords)
{
    return fmin(forth_link_rate(run, lanes, qwords), forth_dma_rate(run, qwords));
}

static void add_row(struct lab_run *run, const char *claim, uint32_t qwords, double expected,
                    double rate)
{
    char id[LAB_ID_BYTES];
    const uint32_t bytes = qwords * FORTH_QWORD_BYTES;
    struct lab_row *row =
        lab_add_row(run, forth_row_id(id, claim, "%uB", bytes), "MiB/s", "%u B of payload", bytes);
    lab_judge_relative(row, expected, rate, 0.01);
}

/* -- Through the switch (A5) --------------------------------------------------------------------*/

static void sizes(struct lab_run *run)
{
    static const uint32_t table[] = {1, 2, 4, 8, 16, 31, 62};
    double alone[COUNT_OF(table)];
    double all[COUNT_OF(table)];
    double shared[COUNT_OF(table)];
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const uint32_t qwords = table[i];
        alone[i] = link_rate(run, qwords);
        all[i] = stream_rate(run, true, qwords, CORE_AS_SET);
        shared[i] = stream_rate(run, true, qwords, CORE_SHARED);
        add_row(run, "FNX-A5.link", qwords, forth_link_rate(run, 1, qwords), alone[i]);
        if (forth_dma_rate(run, qwords) < forth_link_rate(run, 1, qwords)) {
            add_row(run, "FNX-A5.dma", qwords, forth_dma_rate(run, qwords), all[i]);
        }
        lab_progress(run, (double)(i + 1) / COUNT_OF(table));
    }
    struct lab_figure *figure =
        lab_add_figure(run, "sizes", "One way through the switch", "payload, B", "MiB/s", true);
    lab_add_mark(figure, LAB_NOTHING, 287, "measured; of which size is not said");
    struct lab_series *series = lab_add_curve(run, "links and switch alone");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        lab_add_point(series, FORTH_QWORD_BYTES * table[i], alone[i],
                      forth_link_rate(run, 1, table[i]));
    }
    series = lab_add_curve(run, "with bus and DMA initiator in front");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        lab_add_point(series, FORTH_QWORD_BYTES * table[i], all[i],
                      expected_rate(run, 1, table[i]));
    }
    series = lab_add_curve(run, "the same, core=shared");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        lab_add_point(series, FORTH_QWORD_BYTES * table[i], shared[i], LAB_NOTHING);
    }
}

static const struct lab_claim sizes_claims[] = {
    {.id = "FNX-A5.link",
     .reference = LAB_DERIVED,
     .ground = LAB_ARITHMETIC,
     .source = "3.1.6, 3.2.1: 20 bytes of a packet are no payload",
     .broken_by = "commas=4",
     .because = "idle words behind each packet"},
    {.id = "FNX-A5.dma",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FNX-A3",
     .source = "OC: cycles of the bus, and a core that does one thing at a time",
     .broken_by = "core=shared",
     .because = "the host posts the next request while memory is read"},
};

/* -- Two nodes without a switch (A7, A8) --------------------------------------------------------*/

/* The raw rate of a pair of links: the QWords of the largest packet, as the document's format
 * counts them, over the time until the pair can take the next one. */
static double raw_rate(struct lab_run *run)
{
    enum {
        SOP = 1,
        HEADER = 1,
        HEADER_CRC = 1,
        BODY_CRC = 1
    };
    struct forth_machine machine;
    struct forth_stream stream;
    forth_machine_open(&machine, run, 2, false);
    forth_stream_open(&stream, &machine, 0, FORTH_WORDS_MAX, 0);
    stream.limit = 1;
    forth_stream_to(&stream, 1);
    while (machine.up[0].packets == 0 && sim_step(&machine.sim)) {
    }
    const double seconds = (double)(machine.up[0].free_ps - machine.sim.now_ps) / 1e12;
    const double bytes =
        (double)FORTH_QWORD_BYTES * (SOP + HEADER + HEADER_CRC + FORTH_WORDS_MAX + BODY_CRC);
    forth_machine_close(&machine);
    return bytes / seconds / FORTH_MB;
}

/* From this size on the link is what limits: pci (post + read + memory + n) = net (n + 4). */
static double expected_knee(struct lab_run *run)
{
    const double pci = 1 / lab_value(run, "pci_clock");
    const double net = 1 / lab_value(run, "net_clock");
    return (pci * forth_fetch_cycles(run) - net * 4) / (net - pci);
}

static void add_knee(struct lab_run *run)
{
    double knee = LAB_UNBOUNDED;
    lab_add_figure(run, "knee", "Where the links become slower than the bus", "payload, B", "MiB/s",
                   false)
        ->from_zero = false;
    struct lab_series *series = lab_add_curve(run, "two nodes direct, one way");
    for (uint32_t qwords = 200; qwords <= 280; qwords += 4) {
        const double rate = stream_rate(run, false, qwords, CORE_AS_SET);
        lab_add_point(series, FORTH_QWORD_BYTES * qwords, rate, expected_rate(run, 2, qwords));
        if (rate >= 0.998 * forth_link_rate(run, 2, qwords)) {
            knee = fmin(knee, qwords);
        }
        lab_progress(run, 0.5 + (qwords - 200) / 160.0);
    }
    if (!isfinite(knee)) {
        lab_fail(run, "the links limit no size up to 280 QWords");
        return;
    }
    lab_judge_relative(
        lab_add_row(run, "FNX-A8.knee", "QWords", "from here on the links are what limits"),
        expected_knee(run), knee, 0.05);
}

/* The document's curves are lost; its text has the two limits. */
static void add_figure_13(struct lab_run *run)
{
    static const uint32_t table[] = {1, 2, 4, 8, 16, 31, 62, 128, 256, 512};
    struct lab_figure *figure =
        lab_add_figure(run, "13", "Two nodes connected directly", "payload, B", "MiB/s", true);
    lab_add_mark(figure, LAB_NOTHING, 596, "a pair of links");
    lab_add_mark(figure, LAB_NOTHING, 762.9, "the bus");
    struct lab_series *series = lab_add_curve(run, "one way (1-way)");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const uint32_t qwords = table[i];
        const double rate = stream_rate(run, false, qwords, CORE_AS_SET);
        const double links = forth_link_rate(run, 2, qwords);
        lab_add_point(series, FORTH_QWORD_BYTES * qwords, rate, expected_rate(run, 2, qwords));
        if (qwords == FORTH_WORDS_MAX) {
            add_row(run, "FNX-A7.rate", qwords, links, rate);
            lab_judge_relative(lab_add_row(run, "FNX-A7.elsewhere", "MiB/s",
                                           "delivered by the network: about 500"),
                               500, rate, 0.1);
        } else if (qwords == FORTH_WORDS_MAX / 2) {
            add_row(run, "FNX-A8.link", qwords, links, rate);
        } else if (qwords == 1 || qwords == 8 || qwords == 62 || qwords == 128) {
            add_row(run, "FNX-A8.dma", qwords, forth_dma_rate(run, qwords), rate);
        }
        lab_progress(run, (double)(i + 1) / COUNT_OF(table) / 2);
    }
    series = lab_add_curve(run, "ping-pong (2-way)");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const double bytes = FORTH_QWORD_BYTES * table[i];
        const double ns = forth_ping_pong_ns(run, 2, false, table[i]);
        if (isfinite(ns)) {
            lab_add_point(series, bytes, bytes / ns * 1e9 / FORTH_MB, LAB_NOTHING);
        }
    }
}

static void direct(struct lab_run *run)
{
    const double raw = raw_rate(run);
    lab_judge_relative(lab_add_row(run, "FNX-A7.raw", "MiB/s", "a pair of links, raw"), 596, raw,
                       0.001);
    add_figure_13(run);
    add_knee(run);
}

static const struct lab_claim direct_claims[] = {
    {.id = "FNX-A7.raw",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "4.3",
     .broken_by = "commas=8",
     .because = "idle words behind each packet"},
    {.id = "FNX-A7.rate",
     .reference = LAB_DERIVED,
     .ground = LAB_ARITHMETIC,
     .source = "4.3, 3.1.6: of 516 words 512 are payload",
     .broken_by = "commas=8",
     .because = "idle words behind each packet"},
    {.id = "FNX-A7.elsewhere",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "ICS06: a network that is capable of delivering about 500 MBytes/s",
     .broken_by = "core=shared",
     .because = "the host posts the next request while memory is read",
     .not_reproduced = "what limits the network to 500 is not known: the packet size, the host and "
                       "the direction are not in the abstract, and the document's curve is lost. "
                       "Ours is the links' rate less framing; 2 KB packets give 586.5, 1 KB 488.3"},
    {.id = "FNX-A8.link",
     .reference = LAB_DERIVED,
     .ground = LAB_ARITHMETIC,
     .source = "4.3, 3.1.6: four words of a packet are no payload",
     .broken_by = "commas=8",
     .because = "idle words behind each packet"},
    {.id = "FNX-A8.dma",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FNX-A3",
     .source = "OC: cycles of the bus, as the curve of Figure 13 is lost",
     .broken_by = "core=shared",
     .because = "the host posts the next request while memory is read"},
    {.id = "FNX-A8.knee",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FNX-A3",
     .source = "OC: cycles of the bus, as the curve of Figure 13 is lost",
     .broken_by = "core=shared",
     .because = "the host posts the next request while memory is read"},
};

/* -- Their names --------------------------------------------------------------------------------*/

const struct lab_experiment forth_sizes = {
    FORTH_COMMON,
    .name = "forth/sizes",
    .what = "payload rate over packet size through the switch",
    .uses = FORTH_USES_SWITCHED FORTH_USES_TIME,
    .quick = true,
    FORTH_CLAIMS(sizes_claims),
    .run = sizes,
    .explains =
        "The document gives one rate, and does not say for which of the sizes that it tried; it "
        "is that of large packets, as framing has it. The rates of smaller ones on links follow "
        "from its format. Those of the bus are our prediction: its cycles are our choice, and so "
        "is a host that does not post the next request while memory is read (core). With "
        "core=shared small packets go 12 % faster.",
};

const struct lab_experiment forth_direct = {
    FORTH_COMMON,
    .name = "forth/direct",
    .what = "two nodes on a pair of links, one way and ping-pong over size",
    .uses = FORTH_USES_DIRECT FORTH_USES_TIME,
    .quick = true,
    FORTH_CLAIMS(direct_claims),
    .run = direct,
    .explains =
        "The curves of the document's Figure 13 are lost, so nothing is compared with them. Its "
        "two limits are drawn. Large packets come close to that of the links, as their format "
        "says; where the bus limits, the rates are our predictions. An abstract of the same "
        "authors says that the network can deliver about 500 MBytes/s.",
};
