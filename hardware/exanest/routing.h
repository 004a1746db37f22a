/* SPDX-License-Identifier: BSD-2-Clause
 *
 * routing - the port of an FPGA's crossbar by which a packet leaves.
 *
 * Purpose    Two levels, and an address map that is data: to another QFDB, to another FPGA of this
 *            one, or to the block that owns the address.
 * Outputs    An output port, or a verdict that says why there is none.
 * Ownership  The caller owns the struct; nothing changes it after exanest_routing_init.
 * Threads    Constant: any number of readers.
 * Limits     EXANEST_PORTS_MAX ports, EXANEST_RANGES_MAX ranges.
 * Source     Xirouchakis 3.2.1, 3.2.3, 6.4. The map of peripherals and ports is our choice.
 *
 * Ports 0..3 are those of the links to F1..F4 in every FPGA. The own FPGA's is dead: what leaves by
 * it comes in again by the same port, where it counts as local. No rule sends anything there; a map
 * may.
 *
 * Two serial links join each pair of FPGAs (2.3), of which the document uses one (3.2.1). If both
 * are used, the input port alone decides which of them a packet takes: path 1 of the send unit has
 * an input of its own, and all packets from there take the second link. All else takes the first,
 * answers too. That needs four ports more than the document's sixteen: three links, and that input;
 * so this crossbar is wider.
 *
 * Inside a QFDB nothing can wait in a circle because a packet crosses one link at most (3.2.1). Two
 * headers would break that: one that came by a link and asks for another FPGA of this QFDB, and one
 * that came from the router and asks for another QFDB. Only corrupt or wrongly sent packets do:
 * they get EXANEST_ROUTE_SECOND_HOP. So does what came by either if a map would send it out again.
 */
#ifndef HARDWARE_EXANEST_ROUTING_H
#define HARDWARE_EXANEST_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/exanest.h"

#define EXANEST_PORTS      16u /* The document's crossbar. */
#define EXANEST_PORTS_MAX  20u /* With second links. */
#define EXANEST_FPGAS      4u
#define EXANEST_RANGES_MAX 16u
/* In place of a port: the packet's words are taken and dropped. */
#define EXANEST_NO_PORT 0xffu

/* The ports of the default map. */
enum exanest_port {
    EXANEST_PORT_F1 = 0, /* .. 3: F4. */
    EXANEST_PORT_ROUTER_0 = 4,
    EXANEST_PORT_RDMA = 8, /* Out: the RDMA receiver. In: the send unit. */
    EXANEST_PORT_RT_MAILBOX = 9,
    EXANEST_PORT_PACKETIZER = 10,
    EXANEST_PORT_SYSTEM_MAILBOX = 11,
    EXANEST_PORT_ZDMA = 12,
    EXANEST_PORT_ACCELERATOR_0 = 13,
    EXANEST_PORT_ACCELERATOR_1 = 14,
    EXANEST_PORT_ACKNOWLEDGEMENTS = 15, /* In: the blocks that make them share it. */
    EXANEST_PORT_SECOND_F1 = 16,        /* .. 19: F4. Only where pairs have two links. */
};

/* Addresses first..last, both included, belong to the block behind `port`. */
struct exanest_range {
    uint64_t first, last;
    uint8_t port;
};

struct exanest_routing_config {
    struct exanest_place own;
    uint8_t fpga_ports[EXANEST_FPGAS]; /* The link to each FPGA; the own one's is dead. */
    /* F1: the router's local port that is reserved for each FPGA; [0]: for F1's own blocks. */
    uint8_t router_ports[EXANEST_FPGAS];
    /* Where pairs of FPGAs have two links: the second one to each FPGA. At the own one's comes in
     * what the send unit has for path 1. */
    bool two_links;
    uint8_t second_ports[EXANEST_FPGAS];
    bool one_router_port;    /* All go by router_ports[0]: the comparison of EXA-A13. */
    uint8_t bad_header_port; /* Where a header with a wrong error code goes, or EXANEST_NO_PORT. */
    uint8_t nobody_port;     /* Likewise one whose address no range has. */
    uint8_t range_count;
    struct exanest_range ranges[EXANEST_RANGES_MAX]; /* The first that fits is taken. */
};

enum exanest_route_verdict {
    EXANEST_ROUTE_GOOD,
    EXANEST_ROUTE_BAD_HEADER, /* exanest_header_decode refuses it. */
    EXANEST_ROUTE_NOBODY,     /* No range has the address: an AXI decode error. */
    EXANEST_ROUTE_SECOND_HOP, /* It would wait where it could close a circle. */
    EXANEST_ROUTE_LOOP,       /* From the dead port to the dead port. */
    EXANEST_ROUTE_VERDICT_COUNT,
};

struct exanest_route {
    enum exanest_route_verdict verdict;
    uint8_t port; /* EXANEST_NO_PORT unless the verdict is good or the map has a port for it. */
};

/* The kinds of neighbours at an input port. */
enum exanest_side {
    EXANEST_SIDE_LINK, /* Another FPGA. */
    EXANEST_SIDE_ROUTER,
    EXANEST_SIDE_LOCAL, /* A block of this FPGA, or the dead port. */
};

struct exanest_routing {
    struct exanest_routing_config config;
    uint8_t dead_port;
    uint8_t second_input; /* Packets from this input take the second links; EXANEST_NO_PORT: none
                           * do. */
    uint8_t sides[EXANEST_PORTS_MAX];       /* enum exanest_side, by input port. */
    uint8_t router_port[EXANEST_PORTS_MAX]; /* The way to other QFDBs, by input port. */
};

/* The default map. Corrupt headers go to the RDMA receiver, which answers with NACK(CRC) if the
 * footer is good. */
struct exanest_routing_config exanest_routing_default(struct exanest_place own);
/* The same with the second links. */
struct exanest_routing_config exanest_routing_two_links(struct exanest_place own);

/* Could exanest_routing_init take it? For maps that somebody else chose. */
MUST_USE bool exanest_routing_is_valid(const struct exanest_routing_config *config);
void exanest_routing_init(struct exanest_routing *routing,
                          const struct exanest_routing_config *config);

struct exanest_route exanest_route(const struct exanest_routing *routing, uint32_t input,
                                   const struct exanest_header *header);
/* The same of a header word as it came. */
struct exanest_route exanest_route_word(const struct exanest_routing *routing, uint32_t input,
                                        struct exanest_word word);

#endif
