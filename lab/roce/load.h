/* SPDX-License-Identifier: BSD-2-Clause
 *
 * load - programs on the nodes of a network of RoCE NICs, and the messages that they send.
 *
 * Purpose    Measures latencies and rates under load. Every byte is compared.
 * Ownership  The world owns machine, programs and flows; all is allocated by roce_world_open.
 * Time       Programs take no time: a message is posted at once when its place is free. Rates are
 *            limited by DCQCN as the engine has it, with the rate of a line.
 * Units      Rates are of payload, in Gb/s.
 * Limits     ROCE_FLOWS_MAX flows. A flow is a connection of its own; one program a node.
 */
#ifndef LAB_ROCE_LOAD_H
#define LAB_ROCE_LOAD_H

#include "lab/roce/machine.h"
#include "lab/roce/program.h"
#include "sim/meter.h"

#define ROCE_FLOWS_MAX 65536u

/* The words of the parameter `work`, in their order. */
enum roce_work {
    ROCE_WRITE,
    ROCE_SEND,
    ROCE_READ,
};

struct roce_load {
    const char *topology; /* A description; NULL: `text`. */
    const char *text;
    size_t text_bytes;
    enum roce_work work;
    bool inlined;
    bool alike;        /* Messages of all flows are alike, and have the same place at each node. */
    uint32_t bytes;    /* A message. */
    uint32_t depth;    /* Messages of a flow that are under way. */
    uint64_t messages; /* Each flow's; 0: until stop_ps. */
    uint64_t warm_ps, stop_ps; /* Measuring begins and ends; no message is posted after that. */
    uint64_t pcie_byte_fs;     /* 0: the parameter's. */
    uint64_t stagger_ps;       /* Between the beginnings of two flows. */
};

struct roce_world;

/* Messages from one node to another. Of READs the first one asks. */
struct roce_flow {
    uint32_t from, to; /* Nodes. */
    struct qp *qps[2];
    size_t offsets[2]; /* Its places begin there, in the memory of the two. */
    uint64_t posted, completed, received;
    struct sim_rate rate; /* Bytes of messages that were complete from warm_ps to stop_ps. */
    struct sim_event start;
    struct roce_world *world;
    uint64_t *posted_ps; /* By place. */
};

struct roce_world {
    struct sim sim;
    struct lab_run *run;
    struct roce_load load;
    struct roce_config config;
    struct roce *roce;
    struct roce_program *programs; /* By node. */
    struct roce_flow *flows;
    uint32_t flow_count;
    struct sim_trace *trace;
    struct sim_capture *capture;
    uint64_t wrong;             /* Messages whose bytes are not what was sent. */
    uint64_t posted, completed; /* Messages. */
    uint32_t started;           /* Flows. */
    uint64_t last_ps;           /* When the newest one was complete. */
    uint64_t written_ps;        /* The newest message's time from its post to the last write. */
    struct sim_rate rate;       /* All flows' together. */
    struct sim_spread *latency; /* From post to completion, after warm_ps. */
};

/* The machine that the run's parameters make. */
struct roce_config roce_world_config(struct lab_run *run, const struct roce_load *load);
/* Whether there is such a machine; else why there is none. */
bool roce_world_fits(struct lab_run *run, const struct roce_load *load, char *error,
                     size_t error_bytes);
/* Opens it. False: the run has failed. */
bool roce_world_open(struct roce_world *world, struct lab_run *run, const struct roce_load *load,
                     uint32_t flows);
/* Before roce_world_run. The nodes are the topology's, and differ. */
void roce_world_flow(struct roce_world *world, uint32_t from, uint32_t to);
/* Connects the flows and runs until all messages have come. Fails the run if they do not. */
void roce_world_run(struct roce_world *world);
/* Fails the run if a byte was wrong, or a packet unaccounted for. */
void roce_world_close(struct roce_world *world);

double roce_flow_gbps(const struct roce_flow *flow);
/* All flows together, and Jain's index of them. */
double roce_world_gbps(const struct roce_world *world);
double roce_world_fairness(const struct roce_world *world);

#endif
