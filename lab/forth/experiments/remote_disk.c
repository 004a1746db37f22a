/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A remote disk with what the document's authors name as its first limit: interrupts. One client
 * alone, and several clients with several requests each.
 */
#include <math.h>
#include <stdlib.h>

#include "lab/forth/experiments.h"
#include "lab/forth/server.h"

struct point {
    double rate;       /* MiB/s, of all clients. */
    double latency_us; /* The mean. */
    double interrupts; /* At the server, for a message. */
    double busy;       /* The share of the time in which the server's processor works. */
    double shares;     /* The least client's answers over the most. */
};

static struct forth_server_config config_of(struct lab_run *run, uint32_t clients, uint32_t depth)
{
    return (struct forth_server_config){
        .clients = clients,
        .depth = depth,
        .pages = (uint32_t)lab_value(run, "pages"),
        .requests = (uint32_t)lab_value(run, "requests"),
        .call_ps = lab_ps(run, "call"),
        .interrupt_ps = lab_ps(run, "interrupt"),
        .serve_ps = lab_ps(run, "serve"),
        .disk_ps = lab_ps(run, "disk"),
        .handler = (enum forth_handler)lab_word(run, "handler"),
        .lowest = lab_word(run, "served") != 0,
    };
}

static double shares_of(const struct forth_server *server)
{
    uint32_t least = UINT32_MAX, most = 1;
    for (uint32_t i = 0; i < server->config.clients; i++) {
        const uint32_t answered = server->answered[i];
        least = answered < least ? answered : least;
        most = answered > most ? answered : most;
    }
    return (double)least / most;
}

/* False: the run has failed. */
static bool measure(struct lab_run *run, const struct forth_server_config *config,
                    struct point *point)
{
    struct forth_server *server = malloc(sizeof(*server));
    CHECK(server != NULL);
    const bool good = forth_server_run(server, run, config);
    if (good) {
        const struct forth_processor *processor = &server->processors[0];
        const struct lab_tally *tally = &server->tally;
        const double seconds = (double)(tally->last_ps - tally->first_ps) / 1e12;
        *point = (struct point){
            .rate = (double)tally->bytes / seconds / FORTH_MB,
            .latency_us = sim_spread_mean(&tally->latency) / 1e6,
            .interrupts = (double)processor->interrupts / (double)processor->messages,
            .busy = (double)processor->busy_ps / (double)server->machine.sim.now_ps,
            .shares = shares_of(server),
        };
    }
    free(server);
    return good;
}

/* -- One request alone --------------------------------------------------------------------------*/

/* The times of a request's parts, one behind the other, in us. */
struct parts {
    double message, data; /* On the bus and the links; data: pages, and a message behind them. */
    double interrupt, serve;
    double ends; /* Call and disk, once. */
};

static struct parts parts_of(struct lab_run *run)
{
    const uint32_t message = sizeof(struct forth_disk_message) / FORTH_QWORD_BYTES;
    const double pci_us = 1 / lab_value(run, "pci_clock");
    const double behind_us = pci_us * (forth_costs_of(run, forth_account_of(run)).write + message);
    const double more_us =
        (lab_value(run, "pages") - 1) * (4.0 + FORTH_WORDS_MAX) / lab_value(run, "net_clock");
    return (struct parts){
        .message = forth_one_way_ns(run, message) / 1e3,
        .data = forth_one_way_ns(run, FORTH_WORDS_MAX) / 1e3 + more_us + behind_us,
        .interrupt = lab_value(run, "interrupt"),
        .serve = lab_value(run, "serve"),
        .ends = lab_value(run, "call") + lab_value(run, "disk"),
    };
}

static bool add_alone(struct lab_run *run)
{
    static const struct {
        const char *name, *what;
        bool writes, asks;
        /* How often each part comes; there is one message more than interrupts before data. */
        uint32_t messages, serves;
    } kinds[] = {{"read", "a read", false, false, 1, 1},
                 {"write", "a write", true, false, 1, 1},
                 {"asked", "a write that asks before it sends", true, true, 3, 2}};
    const struct parts parts = parts_of(run);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct forth_server_config config = config_of(run, 1, 1);
        struct point point;
        char id[LAB_ID_BYTES];
        config.direct = true;
        config.writes = kinds[i].writes;
        config.asks = kinds[i].asks;
        if (!measure(run, &config, &point)) {
            return false;
        }
        const double sum = parts.ends + kinds[i].messages * parts.message + parts.data +
                           (kinds[i].messages + 1) * parts.interrupt +
                           kinds[i].serves * parts.serve;
        lab_judge_relative(lab_add_row(run, forth_row_id(id, "FNX-D.alone", "%s", kinds[i].name),
                                       "us", "%s alone, direct", kinds[i].what),
                           sum, point.latency_us, 0.005);
    }
    return true;
}

/* The requests of one client, as many as may be under way. */
static bool add_direct(struct lab_run *run)
{
    struct forth_server_config config = config_of(run, 1, (uint32_t)lab_value(run, "depth"));
    const double bytes = (double)config.pages * FORTH_DISK_PAGE_BYTES;
    struct point found, masked;
    config.direct = true;
    if (!measure(run, &config, &found)) {
        return false;
    }
    config.handler = FORTH_HANDLER_MASKED;
    if (!measure(run, &config, &masked)) {
        return false;
    }
    lab_judge_relative(lab_add_row(run, "FNX-D.elsewhere", "MiB/s",
                                   "remote block I/O: about 200; ours is one client, %u reads of "
                                   "%u KB under way, direct",
                                   config.depth, 4 * config.pages),
                       200, found.rate, 0.05);
    lab_judge_relative(
        lab_add_row(run, "FNX-D.masked", "MiB/s", "the same, no interrupt while messages are left"),
        bytes / FORTH_MB / (lab_value(run, "serve") / 1e6), masked.rate, 0.03);
    return true;
}

/* -- Several clients ----------------------------------------------------------------------------*/

enum {
    DEPTHS = 7 /* 1, 2, up to 64. */
};

struct points {
    uint32_t depths; /* How many. */
    uint32_t depth[DEPTHS];
    struct point at[FORTH_CLIENTS_MAX][DEPTHS];
};

static bool measure_all(struct lab_run *run, uint32_t clients, struct points *points)
{
    const uint32_t most = (uint32_t)lab_value(run, "depth");
    for (uint32_t depth = 1; depth < most; depth *= 2) {
        points->depth[points->depths++] = depth;
    }
    points->depth[points->depths++] = most;
    for (uint32_t i = 0; i < clients; i++) {
        for (uint32_t k = 0; k < points->depths; k++) {
            const struct forth_server_config config = config_of(run, i + 1, points->depth[k]);
            if (!measure(run, &config, &points->at[i][k])) {
                return false;
            }
        }
        lab_progress(run, (i + 1.0) / clients);
    }
    return true;
}

static void draw(struct lab_run *run, uint32_t clients, const struct points *points, bool rates)
{
    lab_add_figure(run, rates ? "rate" : "latency",
                   rates ? "Reads of a disk that several clients share" : "The time of a read",
                   "requests that a client has under way", rates ? "MiB/s, all clients" : "us",
                   true);
    for (uint32_t i = 0; i < clients; i++) {
        struct lab_series *series = lab_add_curve(run, i == 0 ? "%u client" : "%u clients", i + 1);
        for (uint32_t k = 0; k < points->depths; k++) {
            const struct point *point = &points->at[i][k];
            lab_add_point(series, points->depth[k], rates ? point->rate : point->latency_us,
                          LAB_NOTHING);
        }
    }
}

static void add_shared(struct lab_run *run, uint32_t clients, const struct points *points)
{
    const struct point *most = &points->at[clients - 1][points->depths - 1];
    lab_judge_range(lab_add_row(run, "FNX-D.together", "",
                                "%u clients over one, a request of each under way", clients),
                    0.7 * clients, clients,
                    points->at[clients - 1][0].rate / points->at[0][0].rate);
    lab_judge_range(lab_add_row(run, "FNX-D.busy", "",
                                "of its time, the server's processor, with all requests"),
                    0.97, 1, most->busy);
    lab_judge_range(lab_add_row(run, "FNX-D.interrupts", "",
                                "interrupts for a message at the server, with all requests"),
                    0.9, 1.01, most->interrupts);
    lab_judge_range(lab_add_row(run, "FNX-D.shares", "", "smallest share over the largest"), 0.97,
                    1, most->shares);
}

static void remote_disk(struct lab_run *run)
{
    const uint32_t clients = (uint32_t)lab_value(run, "clients");
    struct points points = {0};
    if (add_alone(run) && add_direct(run) && measure_all(run, clients, &points)) {
        add_shared(run, clients, &points);
        draw(run, clients, &points, true);
        draw(run, clients, &points, false);
    }
}

static const struct lab_claim claims[] = {
    {.id = "FNX-D.alone",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FNX-D.elsewhere",
     .source = "OC: the sum of the parts' times; 4.1 gives none",
     .broken_by = "cut_through=late",
     .because = "the bus takes a packet when all of it has come"},
    {.id = "FNX-D.elsewhere",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_FITTED,
     .source = "ICS06: a throughput of about 200 MBytes/s",
     .broken_by = "handler=masked | serve=0",
     .because = "few interrupts; messages cost nothing but interrupts"},
    {.id = "FNX-D.masked",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FNX-D.elsewhere",
     .source = "OC: a page for each time of the server's processor",
     .broken_by = "disk=100 | depth=1",
     .because = "the disk is the limit; a request waits for its answer"},
    {.id = "FNX-D.together",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-D.elsewhere",
     .source = "OC; 2: hosts share a storage server",
     .broken_by = "disk=100",
     .because = "the disk does one request at a time"},
    {.id = "FNX-D.busy",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-D.elsewhere",
     .source = "OC; ICS06: limited by interrupt cost",
     .broken_by = "disk=100 | interrupt=0 serve=0",
     .because = "the disk is the limit; the links are"},
    {.id = "FNX-D.interrupts",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-D.elsewhere",
     .source = "OC; 3.1.2: the interrupt is a level",
     .broken_by = "handler=masked",
     .because = "the handler looks for messages until none is left"},
    {.id = "FNX-D.shares",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC; 2: hosts share a storage server",
     .broken_by = "served=lowest",
     .because = "the server always has a message of the lowest client"},
};

const struct lab_experiment forth_remote_disk = {
    FORTH_COMMON,
    .name = "forth/remote-disk",
    .what = "a disk that clients share: interrupts, processors, several requests under way",
    .uses = FORTH_USES_SWITCHED
    "clients depth pages requests call=5 interrupt=10 serve disk handler served",
    FORTH_CLAIMS(claims),
    .quick = true,
    .run = remote_disk,
    .explains =
        "The document's hosts share a storage server (2), and a later publication of its authors "
        "names the cost of interrupts as the first limit of a remote disk, with about 200 "
        "MBytes/s. Here a request costs a call, and an interrupt at either side; the server's "
        "processor takes 12 us for a message, which is fitted to the 200, with 10 us for an "
        "interrupt, which is our choice: other pairs would do as well. The handler takes all "
        "messages that have come. That helps less than it seems to: an interrupt goes before the "
        "messages that wait, each answer brings the client's next request alone, and so nearly "
        "each message has its interrupt, with 48 requests under way as with one. A handler that "
        "allows no interrupt until no message is left gives two thirds more.",
};
