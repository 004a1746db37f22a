/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine - nodes, links and a switch put together, with the parameters of the document.
 *
 * Two nodes joined by a pair of links each way, or up to eight on a switch with one link each.
 *
 * Source: TR376 4.1 to 4.3: NICs were measured directly, switches with four nodes.
 */
#ifndef LAB_FORTH_MACHINE_H
#define LAB_FORTH_MACHINE_H

#include "lab/forth/crossbar.h"
#include "lab/forth/node.h"
#include "lab/lab.h"
#include "lab/plan.h"
#include "sim/meter.h"
#include "sim/traffic.h"

/* The document's MBytes: 2^20 bytes (see forth_document). */
#define FORTH_MB 1048576.0

#define FORTH_PARAMETER_COUNT (66 + LAB_PLAN_PARAMETER_COUNT)

extern const struct lab_document forth_document;
extern const struct lab_parameter forth_parameters[FORTH_PARAMETER_COUNT];

/* The parameters that each part of a machine asks for, for lists of `uses`. */
#define FORTH_USES_LINKS                                                                           \
    "net_clock link_latency commas account credit repeat refresh flow_control crc "
#define FORTH_USES_ERRORS "bit_errors lost_credits drift "
#define FORTH_USES_NODES                                                                           \
    "pci_clock post read_overhead write_overhead bus_more memory latency_timer to_pci to_net "     \
    "cut_through core credit_rule queue_full samples "
#define FORTH_USES_SWITCH   "sync decide inform lead change_over arbiter crosspoint "
#define FORTH_USES_TIME     "duration warm_up "
#define FORTH_USES_MACHINE  FORTH_USES_LINKS FORTH_USES_ERRORS FORTH_USES_NODES
#define FORTH_USES_DIRECT   FORTH_USES_MACHINE "jitter "
#define FORTH_USES_SWITCHED FORTH_USES_DIRECT FORTH_USES_SWITCH "ports nic_queues "
#define FORTH_USES_YARD     FORTH_USES_LINKS FORTH_USES_SWITCH

struct forth_machine {
    struct lab_run *run;
    struct sim sim;
    struct forth_fabric fabric;
    uint32_t count;
    bool switched;
    struct forth_node *nodes;
    struct forth_link *up, *down; /* The link from node i, and the link to it (switched only). */
    struct crossbar crossbar;
};

void forth_machine_open(struct forth_machine *machine, struct lab_run *run, uint32_t nodes,
                        bool switched);
/* Compares every NIC's counters of its link with what the link carried, tells what the
 * machine's parts took, then frees it all. */
void forth_machine_close(struct forth_machine *machine);

/* Explanations of the document's rate of a node that sends to itself, which it does not tell apart:
 * the words of the parameter "account". */
enum forth_account {
    FORTH_BY_LINKS,
    FORTH_BY_READS,
    FORTH_BY_WRITES,
    FORTH_ACCOUNTS
};

/* Network cycles of a credit; PCI cycles of a DMA read beside data and memory, and of a write. */
struct forth_costs {
    uint32_t credit, read, write;
};
enum forth_account forth_account_of(struct lab_run *run);
struct forth_costs forth_costs_of(struct lab_run *run, enum forth_account account);
/* Another account than the one that was set, before the machine runs. */
void forth_machine_account(struct forth_machine *machine, enum forth_account account);
/* PCI cycles from a post's begin to the first word of its data. */
double forth_fetch_cycles(struct lab_run *run);

/* When measuring begins: after the warm-up, or half-way through the run if that is earlier. */
uint64_t forth_warm_ps(struct lab_run *run);

/* The switch as the parameters describe it, with `ports` ports. */
struct crossbar_config forth_crossbar_config(struct lab_run *run, uint32_t ports);
struct sim_clock forth_net_clock(struct lab_run *run, uint32_t unit);
/* A direction of a link as the parameters describe it, with the errors of its number. */
void forth_link_open(struct forth_link *link, struct forth_fabric *fabric, struct forth_end *to,
                     struct lab_run *run, uint32_t clock, uint32_t lanes, uint32_t number);
/* The period of repeated credits; 0: they are not repeated. */
uint64_t forth_refresh_ps(struct lab_run *run);
/* The window for a buffer of `words` words. */
uint32_t forth_window_words(struct lab_run *run, uint32_t words);
/* The eighths of a packet that must have come before the bus may take it, so that the bus does not
 * run dry. */
uint32_t forth_cut_through_eighths(struct lab_run *run, uint32_t lanes);

/* Payload of a link in MB/s: framing costs 20 bytes of a packet on one link, 4 QWords of two. */
double forth_link_rate(struct lab_run *run, uint32_t lanes, uint32_t qwords);
/* The rate at which the DMA initiator can fetch, in MB/s. */
double forth_dma_rate(struct lab_run *run, uint32_t qwords);

/* The most packets that can exist at a time: `usual` ones, and without flow control as many of the
 * smallest as fill the links. */
uint32_t forth_packets(struct lab_run *run, uint32_t nodes, uint32_t usual);

/* The memory of a fabric's pools, and of a switch. */
void forth_tell_fabric(struct lab_run *run, const struct forth_fabric *fabric);
void forth_tell_switch(struct lab_run *run, const struct crossbar *crossbar);

/* -- A program that streams -----------------------------------------------------------------------
 *
 * Posts packets of one size to its destinations in turn, and checks those that it gets. */

#define FORTH_STREAM_PENDING 16u /* Requests that a stream keeps in a queue. */
/* More than those that can pend: the last of them may have its data fetched. */
#define FORTH_STREAM_SOURCES (FORTH_QUEUE_REQUESTS + 2u)

struct forth_host;

struct forth_stream {
    struct forth_machine *machine;
    struct forth_host *host; /* Says what to post, learns of what came; NULL: the members say. */
    uint32_t self;
    uint8_t destinations[FORTH_PORTS_MAX];
    uint32_t destination_count, turn;    /* 0 destinations: the node only receives. */
    bool at_random;                      /* Destinations are drawn, not taken in turn. */
    uint32_t least, most;                /* QWords of a packet; drawn uniformly if they differ. */
    uint16_t free[FORTH_STREAM_SOURCES]; /* Places of data that no request needs. */
    uint32_t free_count;
    uint64_t limit; /* Packets to post; UINT64_MAX: no end. */
    uint64_t posted;
    struct prng prng;
    uint64_t numbers[FORTH_PORTS_MAX];
    struct sim_sink sinks[FORTH_PORTS_MAX];   /* One sink for each source. */
    struct sim_rate arrived[FORTH_PORTS_MAX]; /* Bytes, by source. */
    struct sim_rate all;
    uint64_t flagged, strays; /* Strays: for addresses outside the targets. */
};

/* Starts the stream of node `self` of the machine; packets before `warm_ps` are not measured. */
void forth_stream_open(struct forth_stream *stream, struct forth_machine *machine, uint32_t self,
                       uint32_t qwords, uint64_t warm_ps);
void forth_stream_to(struct forth_stream *stream, uint32_t node);
/* For a program's own `delivered`: compares a packet that came to the stream's node. */
void forth_stream_judge(struct forth_stream *stream, struct forth_node *node,
                        const struct forth_header *header, bool flagged);
/* Checks that every byte was right, and no packet lost, flagged, missing or repeated. Otherwise the
 * run has failed. */
void forth_stream_check(const struct forth_stream *stream, struct lab_run *run);
double forth_stream_rate(const struct sim_rate *rate); /* MB/s. */

#endif
