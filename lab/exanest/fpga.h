/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fpga - one FPGA: the blocks of its network interface around the crossbar, and its memory.
 *
 * Purpose    Joins the units of hardware/exanest to each other, a cycle at a time.
 * Inputs     exanest_fpga_step; the host's side of each unit (exadma, zDMA, packetizer, mailboxes,
 *            memory), which the R5 and the programs use by themselves.
 * Ownership  The FPGA owns its units; cables and router are the machine's.
 * Units      Ports of the crossbar: enum exanest_port.
 * Limits     Packets for blocks that are not modelled (accelerators) are counted and dropped.
 * Source     Xirouchakis 3.1, 3.2.
 */
#ifndef LAB_EXANEST_FPGA_H
#define LAB_EXANEST_FPGA_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/crossbar.h"
#include "hardware/exanest/exadma.h"
#include "hardware/exanest/packetizer.h"
#include "hardware/exanest/receiver.h"
#include "hardware/exanest/router.h"
#include "hardware/exanest/routing.h"
#include "hardware/exanest/rt_mailbox.h"
#include "hardware/exanest/system_mailbox.h"
#include "hardware/exanest/zdma.h"
#include "lab/exanest/link.h"
#include "lab/exanest/memory.h"
#include "lab/exanest/misuse.h"
#include "lab/exanest/order.h"
#include "lab/exanest/watch.h"
#include "sim/kernel.h"

struct exanest_fpga_config {
    struct exanest_routing_config routing; /* Its `own` is the FPGA's place. */
    struct exanest_crossbar_config crossbar;
    struct exanest_exadma_config exadma; /* Its coordinate is filled in. */
    struct exanest_receiver_parameters receiver;
    struct exanest_packetizer_parameters packetizer;
    struct exanest_zdma_config zdma; /* Its coordinate is filled in. */
    struct exanest_memory_config memory;
    uint64_t age_ps; /* A context without a packet for age_ps is forgotten, at most another age_ps
                      * later. */
    /* A fixture: the packets that the send unit has for other FPGAs of the QFDB take the two
     * links in turn, whatever path their block has. The document's unit never does that. */
    bool sprays;
};

/* One end of a link. */
struct exanest_cable {
    struct exanest_link *link; /* NULL: none. */
    uint8_t end;
};

/* Blocks that seldom send share a port: the packets of one after those of another. */
enum exanest_replier {
    EXANEST_REPLIER_RECEIVER,
    EXANEST_REPLIER_RT_MAILBOX,
    EXANEST_REPLIER_SYSTEM_MAILBOX,
    EXANEST_REPLIER_COUNT,
};

struct exanest_fpga_counters {
    uint64_t nobody[EXANEST_PORTS_MAX]; /* Words at outputs where nothing stands. */
    uint64_t routes[EXANEST_ROUTE_VERDICT_COUNT];
    uint64_t cycles; /* Stepped. */
};

struct exanest_fpga {
    uint32_t coordinate;
    uint32_t linked;   /* Ports with a cable. */
    uint32_t standing; /* Inputs that may have something at any time: these, and local blocks. */
    uint32_t shown;    /* Inputs that show a beat which was not taken yet: it stays (3.2.4). */
    struct exanest_offer offers[EXANEST_PORTS_MAX]; /* Their beats. */
    uint16_t misused; /* Outputs in front of which packets are misused. */
    uint8_t replier;  /* The unit that has the shared port, or had it last. */
    bool replying;    /* It is in the midst of a packet. */
    bool looped;      /* A beat stands at the dead port. */
    struct exanest_beat loop;
    bool sprays;
    bool sprayed; /* The last packet took the second link. */
    struct exanest_cable cables[EXANEST_PORTS_MAX];
    struct exanest_router *router; /* F1 has one; else NULL. */
    /* Software that sleeps: scheduled when the mailbox has something, or a page fault is reported;
     * NULL: nobody waits for it. */
    struct sim_event *attention, *faulted;
    /* Programs that poll, by process: scheduled when a word has come to where one looks, or a
     * channel of the packetizer is free again. NULL: nobody polls. */
    struct sim_event *programs[EXANEST_AXI_IDS];
    uint64_t noticed;        /* Words that had come when programs were scheduled last. */
    uint16_t busy;           /* Channels of the packetizer that had a message in the last cycle. */
    struct sim_event ageing; /* The receiver's contexts grow old. */
    struct sim *sim;
    uint64_t age_ps;
    bool attends_requests;
    struct exanest_routing routing;
    struct exanest_crossbar crossbar;
    struct exanest_memory memory;
    struct exanest_rt_mailbox rt_mailbox;
    struct exanest_packetizer packetizer;
    struct exanest_system_mailbox system_mailbox;
    struct exanest_receiver receiver;
    struct exanest_exadma exadma;
    struct exanest_zdma zdma;
    void *exadma_memory;
    struct exanest_misuse *misuse[EXANEST_PORTS_MAX]; /* By output; NULL: packets pass unharmed. */
    struct exanest_order *order; /* Sees what the receiver takes; NULL: nobody does. */
    struct exanest_fpga_counters counters;
    struct exanest_fpga_watch *watch; /* NULL: nobody looks. */
};

struct exanest_fpga_config exanest_fpga_default(struct exanest_place place);
void exanest_fpga_open(struct exanest_fpga *fpga, const struct exanest_fpga_config *config,
                       struct sim *sim);
void exanest_fpga_close(struct exanest_fpga *fpga);

/* The cable to another FPGA of the QFDB, the first or the second. */
void exanest_fpga_plug(struct exanest_fpga *fpga, uint32_t to, bool second,
                       struct exanest_link *link, uint32_t end);

/* From now on packets for the FPGA's own blocks meet these faults; bit i of `ports`: port i. */
#define EXANEST_FAULT_PORTS                                                                        \
    (1u << EXANEST_PORT_RDMA | 1u << EXANEST_PORT_RT_MAILBOX | 1u << EXANEST_PORT_PACKETIZER |     \
     1u << EXANEST_PORT_SYSTEM_MAILBOX | 1u << EXANEST_PORT_ZDMA)
void exanest_fpga_misuse(struct exanest_fpga *fpga, uint32_t ports, struct sim_faults *faults,
                         struct prng *prng);

/* The driver: a protection domain gets a channel of the send unit. */
void exanest_fpga_give_channel(struct exanest_fpga *fpga, uint32_t channel, uint16_t pdid);

/* A cycle. Returns the ports whose cables were used: their links have something to do. */
uint32_t exanest_fpga_step(struct exanest_fpga *fpga);

/* Something that programs of a process may be waiting for has come. */
void exanest_fpga_notice(struct exanest_fpga *fpga, uint32_t process);

/* Wakes software that waits for what the last cycle brought. */
void exanest_fpga_call(struct exanest_fpga *fpga);

/* Would steps change nothing until a word comes, or software does something? */
bool exanest_fpga_idle(const struct exanest_fpga *fpga);

#endif
