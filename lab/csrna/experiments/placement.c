/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Contexts in host or on-board memory (figure 9).
 */
#include <math.h>
#include <stdio.h>

#include "lab/csrna/experiments.h"

static struct csrna_load load_of(struct lab_run *run)
{
    struct csrna_load load = csrna_load_of(run);
    load.policy = (enum csrna_policy)lab_word(run, "policy");
    load.framing = (enum csrna_framing)lab_word(run, "framing");
    load.oocap = (uint32_t)lab_value(run, "oocap");
    return load;
}

/* Figures 9a to 9e: the document does not print its sizes. */
static void add_connections(struct lab_run *run)
{
    static const uint32_t sizes[] = {64, 256, 1024, 2048, 4096};
    static const uint32_t points[] = {300, 320, 51200};
    struct csrna_load load = load_of(run);
    for (uint32_t s = 0; s < COUNT_OF(sizes); s++) {
        char id[8], title[64];
        snprintf(id, sizeof(id), "9%c", (char)('a' + s));
        snprintf(title, sizeof(title), "Figure %s: placement of contexts, %u B", id, sizes[s]);
        lab_add_figure(run, id, title, "connections", "million messages a second", true);
        load.bytes = sizes[s];
        for (uint32_t board = 0; board < 2; board++) {
            struct lab_series *series =
                lab_add_curve(run, "%s", board ? "on-board memory" : "host memory");
            load.placement = board ? CSRNA_BOARD : CSRNA_HOST;
            for (uint32_t i = 0; i < COUNT_OF(points); i++) {
                lab_add_point(series, points[i], csrna_rate_of(run, load, points[i]), LAB_NOTHING);
            }
        }
        lab_progress(run, 0.6 * (s + 1) / COUNT_OF(sizes));
    }
}

struct gaps {
    double small;    /* The most up to 64 B, */
    double middle;   /* and of 96 B to 1 KB; */
    double kilobyte; /* at 1 KB. */
};

/* How much slower host memory is, over the size of messages. */
static struct gaps add_sizes(struct lab_run *run, enum csrna_framing framing, const char *name,
                             const uint32_t *sizes)
{
    const uint32_t qps = (uint32_t)lab_value(run, "qps");
    struct csrna_load load = load_of(run);
    struct lab_series *series = lab_add_curve(run, "%s", name);
    struct gaps gaps = {0};
    load.framing = framing;
    for (; *sizes != 0; sizes++) {
        load.bytes = *sizes;
        load.placement = CSRNA_HOST;
        const double far = csrna_rate_of(run, load, qps);
        load.placement = CSRNA_BOARD;
        const double gap = 1 - far / csrna_rate_of(run, load, qps);
        lab_add_point(series, *sizes, gap, LAB_NOTHING);
        if (*sizes <= 64) {
            gaps.small = fmax(gaps.small, gap);
        } else if (*sizes <= 1024) {
            gaps.middle = fmax(gaps.middle, gap);
            gaps.kilobyte = gap;
        }
    }
    return gaps;
}

static void placement(struct lab_run *run)
{
    static const uint32_t all[] = {16, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 0};
    static const uint32_t some[] = {64, 128, 192, 256, 1024, 0};
    add_connections(run);
    lab_add_figure(run, "gap", "How much slower contexts in host memory are, by framing",
                   "message size, B", "share of the rate", true);
    const struct gaps gaps = add_sizes(run, (enum csrna_framing)lab_word(run, "framing"),
                                       "as the public model times packets", all);
    lab_progress(run, 0.8);
    const struct gaps headers =
        add_sizes(run, CSRNA_FRAMING_HEADERS, "the public model's headers, all links", some);
    const struct gaps real = add_sizes(run, CSRNA_FRAMING_ROCEV2, "RoCEv2, all links", some);
    if (run->failure[0] != '\0') {
        return;
    }
    lab_judge_range(lab_add_row(run, "CSR-A16.small", "", "slower from host memory, up to 64 B"),
                    -LAB_UNBOUNDED, 0.02, gaps.small);
    lab_judge_range(lab_add_row(run, "CSR-A16", "", "slower at worst, 96 B to 1 KB"), 0.05,
                    LAB_UNBOUNDED, gaps.middle);
    lab_judge_range(lab_add_row(run, "CSR-A16.large", "", "1 KB, of the worst"), 0.1, 0.6,
                    gaps.middle > 0.01 ? gaps.kilobyte / gaps.middle : 0);
    lab_judge_range(lab_add_row(run, "CSR-A16.links/headers", "",
                                "slower at 1 KB, if all links carry headers and data"),
                    -LAB_UNBOUNDED, 0.01, headers.kilobyte);
    lab_judge_range(
        lab_add_row(run, "CSR-A16.links/rocev2", "", "slower at worst, if all links carry RoCEv2"),
        -LAB_UNBOUNDED, 0.01, real.middle);
}

static const struct lab_claim claims[] = {
    {.id = "CSR-A16",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5.3: on-board memory optimizes",
     .broken_by = "framing=rocev2",
     .because = "all links carry RoCEv2: they are the bound, not PCIe"},
    {.id = "CSR-A16.small",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .given = "CSR-A1",
     .source = "5.3: little effect below 64 bytes",
     .broken_by = "processing=1",
     .because = "PCIe is the bound, not the slowest unit"},
    {.id = "CSR-A16.large",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5.3: the impact decreases",
     .broken_by = "framing=rocev2",
     .because = "all links carry RoCEv2: they are the bound, not PCIe"},
    {.id = "CSR-A16.links",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC",
     .broken_by = "processing=1 ethernet=400",
     .because = "nothing but PCIe is a bound"},
};

CSRNA_EXPERIMENT(csrna_placement, "csrna/placement", "contexts in host or on-board memory",
                 CSRNA_LOAD_USES " " CSRNA_MACHINE_USES " " CSRNA_RATE_USES
                                 " policy framing oocap qps=6400",
                 claims, false, placement,
                 "Contexts and data share PCIe's reads. Up to 96 B the slowest unit is the bound; "
                 "beyond, PCIe is, and contexts weigh less the longer messages are. This shape of "
                 "figure 9 rests on what the public model leaves out: there a server's own link "
                 "has no rate. If its 100 Gb/s carry the data and the model's short headers, the "
                 "link is the bound from 512 B on, and placement makes no difference any more; "
                 "with RoCEv2's headers it makes none at any size. The document does not print the "
                 "five sizes of its figure: these are ours, and so are the bounds of the rows.");
