/* SPDX-License-Identifier: BSD-2-Clause
 *
 * All clients send, and the server answers: contexts are asked for by packets that come, of which
 * no work request tells beforehand.
 */
#include <math.h>

#include "lab/csrna/experiments.h"

#define FEW  200u  /* Connections whose contexts are all on the chip, */
#define MANY 5120u /* and of which few are. */

struct incast {
    double rate;   /* Million messages a second. */
    double missed; /* The share of the server's requests for a context that did not find it. */
};

static struct incast incast(struct lab_run *run, enum csrna_policy policy, bool inward,
                            uint32_t qps)
{
    struct csrna_load load = csrna_load_of(run);
    load.policy = policy;
    load.placement = (enum csrna_placement)lab_word(run, "placement");
    load.framing = (enum csrna_framing)lab_word(run, "framing");
    load.bytes = (uint32_t)lab_value(run, "payload");
    load.oocap = (uint32_t)lab_value(run, "oocap");
    load.inward = inward;
    load.qps = qps;
    /* Clients post all batches at once, and the server has to come to the last one. */
    load.share = inward ? 1 : CSRNA_PART;
    const struct csrna_result result = csrna_run(run, &load);
    const double found = (double)result.server.hits;
    const double asked = found + (double)(result.server.misses + result.server.type_2);
    return (struct incast){.rate = result.rate / CSRNA_MILLION, .missed = 1 - found / asked};
}

static void draw(struct lab_run *run, enum csrna_policy policy)
{
    static const uint32_t points[] = {100, FEW, 320, 640, 2560, MANY, 10240};
    static const struct {
        const char *name;
        bool inward, blocks;
    } curves[] = {{"the clients send", true, false},
                  {"the clients send, first come first served", true, true},
                  {"the server sends", false, false}};
    lab_add_figure(run, "rate", "All clients send to one server", "connections", "M/s", true);
    for (uint32_t c = 0; c < COUNT_OF(curves); c++) {
        struct lab_series *series = lab_add_curve(run, "%s", curves[c].name);
        for (uint32_t i = 0; i < COUNT_OF(points); i++) {
            const struct incast found =
                incast(run, curves[c].blocks ? CSRNA_FCFS : policy, curves[c].inward, points[i]);
            lab_add_point(series, points[i], found.rate, LAB_NOTHING);
        }
        lab_progress(run, (c + 1.0) / (COUNT_OF(curves) + 1));
    }
}

/* Requests that can wait for a context in a second, in millions, if each waits for a whole read.
 * One that comes while an earlier one of its connection waits has less to wait for. */
static double reads_at_once(struct lab_run *run)
{
    const double bytes = lab_value(run, "context") + lab_value(run, "access");
    const double read_ns = lab_value(run, "read") + bytes * 8 / lab_value(run, "pcie");
    return 1000 * lab_value(run, "oocap") / read_ns;
}

static void incasts(struct lab_run *run)
{
    const enum csrna_policy policy = (enum csrna_policy)lab_word(run, "policy");
    draw(run, policy);
    const struct incast few = incast(run, policy, true, FEW);
    const struct incast many = incast(run, policy, true, MANY);
    const struct incast out = incast(run, policy, false, MANY);
    if (run->failure[0] != '\0') {
        return;
    }
    lab_judge_relative(
        lab_add_row(run, "CSR-I-link", "M/s",
                    "%u clients' connections, all on the chip: the server's link", FEW),
        1000 * lab_value(run, "ethernet") / (8 * lab_value(run, "payload")), few.rate, 0.01);
    lab_judge_range(lab_add_row(run, "CSR-I-waits", "",
                                "times %.1f M/s, the out-of-order capacity over the time of a "
                                "read: requests that do not find their context",
                                reads_at_once(run)),
                    1, 1.4, many.rate * many.missed / reads_at_once(run));
    lab_judge_range(lab_add_row(run, "CSR-I-out", "",
                                "of the rate at which the server sends over as many connections"),
                    -LAB_UNBOUNDED, 0.7, many.rate / out.rate);
    lab_judge_range(lab_add_row(run, "CSR-I-missed", "",
                                "of the requests for a context miss; %.4f if the server sends",
                                out.missed),
                    0.8, 1, many.missed);
}

static const struct lab_claim claims[] = {
    {.id = "CSR-I-link",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.1",
     .broken_by = "cache=100 | framing=rocev2",
     .because = "half of the contexts have to be read; headers take of the link, too"},
    {.id = "CSR-I-waits",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.3: the pending FIFOs hold what waits for a context",
     .broken_by = "policy=fcfs | placement=board",
     .because = "one context is read at a time; a read takes a fifth of the time"},
    {.id = "CSR-I-out",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "CSR-A1",
     .source = "2.2; 4.5",
     .broken_by = "oocap=64 | cache=6000",
     .because = "four times as many contexts are read at once; none has to be read"},
    {.id = "CSR-I-missed",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.5: contexts are read while work requests are",
     .broken_by = "window_of=nic | cache=6000",
     .because = "clients send the messages of a batch without those of others between; all are on "
                "the chip"},
};

CSRNA_EXPERIMENT(
    csrna_incast, "csrna/incast", "all clients send to one server, which answers",
    CSRNA_LOAD_USES " " CSRNA_MACHINE_USES " " CSRNA_RATE_USES
                    " policy placement framing payload oocap",
    claims, false, incasts,
    "The document's server sends, and all its figures are of that. A sender's NIC knows from its "
    "doorbells which contexts it will need, and reads them beside the work requests, so nearly "
    "none is missed. A receiver's does not know who will send next: packets of thousands of "
    "connections come mixed, and nearly each needs a context that is not there. Then the rate is "
    "that at which requests wait for contexts: the out-of-order capacity over the time of a read "
    "(CSR-I-waits). 16 are too few; a capacity of 64, or contexts in the board's memory, bring the "
    "rate back. Nobody has published anything of it.");
