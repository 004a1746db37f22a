/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fabric - all FPGAs, the cables between them and the routers: everything with a clock.
 *
 * Purpose    A torus of QFDBs; four FPGAs in each, joined all-to-all; F1 has the router.
 * Inputs     exanest_fabric_wake, when software did something to an FPGA.
 * Ownership  The fabric owns FPGAs, links and routers.
 * Time       One event for each edge of the datapath's clock on which anything has something to do:
 *            then every FPGA, link and router that is not idle makes its cycle.
 * Units      FPGAs by number: 4 * QFDB + 0..3, QFDBs by x, then y, then z.
 * Limits     EXANEST_FPGAS_MAX FPGAs. All have one clock, in phase.
 * Source     Xirouchakis 2.2, 2.3, 3.2.
 */
#ifndef LAB_EXANEST_FABRIC_H
#define LAB_EXANEST_FABRIC_H

#include "lab/exanest/fpga.h"
#include "sim/clock.h"
#include "sim/kernel.h"

#define EXANEST_FPGAS_MAX  1024u
#define EXANEST_QFDBS_MAX  (EXANEST_FPGAS_MAX / EXANEST_FPGAS)
#define EXANEST_QFDB_PAIRS 6u
#define EXANEST_LINKS_MAX  2u /* A pair has two (2.3). */
/* From router to router: as between two FPGAs, in cycles; our choice. */
#define EXANEST_ROUTER_WIRE_CYCLES 69u

struct exanest_fabric_config {
    uint8_t size[EXANEST_ROUTER_DIMENSIONS]; /* QFDBs in x, y and z. */
    uint64_t datapath_hz;
    struct exanest_fpga_config fpga;     /* Its place is filled in. */
    struct exanest_link_config link;     /* Between the FPGAs of a QFDB. */
    uint8_t links_per_pair;              /* 1, as the document uses them; or 2: send units have two
                                          * ports then, and path 1 is the second link. */
    uint32_t second_longer_ps;           /* The wire of a second link is longer by this time. */
    struct exanest_router_config router; /* Its place and size are filled in. */
    uint32_t router_wire_cycles;
    bool one_router_port; /* The comparison of EXA-A13. */
};

/* Words and credits on the way between two routers: words one way, credits the other. */
struct exanest_router_wire {
    uint32_t neighbour; /* The QFDB at the other end, */
    uint32_t port;      /* and its port. */
    uint32_t word_head, word_tail, credit_head, credit_tail;
    struct exanest_lane *lanes;    /* By virtual channel; NULL: nobody looks. */
    uint64_t word_due, credit_due; /* The oldest one's; UINT64_MAX: none. */
    struct {
        uint64_t due; /* Cycle. */
        struct exanest_beat beat;
    } * words;
    struct {
        uint64_t due;
        uint8_t channel;
    } * credits;
};

struct exanest_qfdb {
    struct exanest_fpga fpgas[EXANEST_FPGAS];
    struct exanest_link *links; /* The first of each pair, then the second ones. */
    uint16_t links_awake;       /* Bit i: link i. */
    uint8_t fpgas_awake;
    bool routes; /* There are other QFDBs. */
    bool router_awake;
    struct exanest_router router;
    void *router_memory;
    struct exanest_router_wire wires[EXANEST_ROUTER_REMOTES_MAX]; /* Wires that begin here. */
    uint32_t flying;                                              /* Words and credits on them. */
};

struct exanest_fabric {
    struct sim *sim;
    struct exanest_fabric_config config;
    struct sim_clock clock;
    struct sim_event edge;
    uint64_t cycle; /* The number of the last edge. */
    uint32_t qfdb_count;
    uint64_t awake[EXANEST_QFDBS_MAX / 64]; /* Bit i: QFDB i. */
    uint32_t wire_mask;
    struct exanest_qfdb *qfdbs;
};

struct exanest_fabric_config exanest_fabric_default(uint32_t x, uint32_t y, uint32_t z);
/* `fabric` must not move afterwards. */
void exanest_fabric_open(struct exanest_fabric *fabric, struct sim *sim,
                         const struct exanest_fabric_config *config);
void exanest_fabric_close(struct exanest_fabric *fabric);

static inline uint32_t exanest_fabric_fpgas(const struct exanest_fabric *fabric)
{
    return fabric->qfdb_count * EXANEST_FPGAS;
}

static inline struct exanest_fpga *exanest_fabric_fpga(struct exanest_fabric *fabric,
                                                       uint32_t number)
{
    return &fabric->qfdbs[number / EXANEST_FPGAS].fpgas[number % EXANEST_FPGAS];
}

/* Which FPGA of its QFDB is at an end, 0 or 1, of a link. */
uint32_t exanest_fabric_end(uint32_t link, uint32_t end);

/* The number of the FPGA at a place. */
uint32_t exanest_fabric_number(const struct exanest_fabric *fabric, uint32_t coordinate);

/* Software has given a unit of the FPGA something to do: cycles follow from the next edge on. */
void exanest_fabric_wake(struct exanest_fabric *fabric, uint32_t number);

/* The next edge that is not in the past. */
uint64_t exanest_fabric_edge_ps(const struct exanest_fabric *fabric);

#endif
