/* SPDX-License-Identifier: BSD-2-Clause
 *
 * switch_head - a switch's work on a packet's first flit.
 *
 * Purpose    Mends or drops a damaged H1, drops packets that are too old, finds the port, and makes
 *            the flit that goes on. The rest of the packet follows unseen (virtual cut-through).
 * Outputs    A verdict, with the port and the flit. For a destination that does not exist: the
 *            answer, when the whole packet has come (lant_switch_refusal).
 * Time       The epoch, of which two bits count, is the caller's.
 * Limits     Ages of LANT_AGE_MAX hops.
 * Source     Lant 3.1.3, 4.3; LNI-07, LNI-08, LNI-74, LNI-79.
 *
 * A switch checks no CRC. It judges in this order, which is our choice: is H1 readable, is its
 * epoch past, does its destination exist, would it become too old. Ageing counts hops between
 * switches; the last one, to the node, does not count, so a packet that has come where it belongs
 * is never dropped for its age.
 */
#ifndef HARDWARE_LANT_SWITCH_HEAD_H
#define HARDWARE_LANT_SWITCH_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/lant/routing.h"
#include "wire/lant.h"

enum lant_network {
    LANT_NETWORK_PLACES, /* The prototype's. */
    LANT_NETWORK_DRAGONFLY,
    LANT_NETWORK_FAT_TREE,
    LANT_NETWORK_TORUS,
};

struct lant_switch {
    enum lant_network network;
    bool ageing, epochs;      /* Off in the prototype. Valiant's dragonfly needs `ageing`. */
    uint32_t self;            /* Torus: the node. */
    uint32_t group, router;   /* Dragonfly. */
    uint32_t level, position; /* Fat tree. */
    union {
        struct lant_places places;
        struct lant_dragonfly dragonfly;
        struct lant_fat_tree tree;
        struct lant_torus torus;
    };
};

enum lant_switch_verdict {
    LANT_SWITCH_FORWARD,
    LANT_SWITCH_DELIVER, /* Forward it, to the node itself. */
    LANT_SWITCH_REFUSE,  /* There is no such node: see lant_switch_refusal. */
    LANT_SWITCH_DAMAGED, /* From here on: drop it. Two wrong bits in H1, */
    LANT_SWITCH_TOO_OLD, /* too many hops, */
    LANT_SWITCH_LATE,    /* sent two epochs ago or more. */
    LANT_SWITCH_VERDICT_COUNT,
};

struct lant_switching {
    enum lant_switch_verdict verdict;
    bool repaired;
    uint32_t port;
    uint64_t flit; /* H1 as it goes on. */
};

struct lant_switch_counters {
    uint64_t packets[LANT_SWITCH_VERDICT_COUNT];
    uint64_t repaired;
};

struct lant_route lant_switch_route(const struct lant_switch *self,
                                    const struct lant_header *header, uint32_t random);

struct lant_switching lant_switch_judge(const struct lant_switch *self, uint64_t head,
                                        uint32_t epoch, uint32_t random);

static inline void lant_switch_count(struct lant_switch_counters *counters,
                                     const struct lant_switching *switching)
{
    counters->packets[switching->verdict]++;
    counters->repaired += switching->repaired;
}

/* Why to the sender of the packet that came as `count` flits, in the name of node `self`: DECERR,
 * or NACK_CRC of a switch that checks what comes by a link. False: nobody can be answered, or it is
 * an answer, which nobody answers. */
MUST_USE bool lant_switch_refusal(const uint64_t *flits, uint32_t count, uint32_t self,
                                  uint32_t epoch, enum lant_response why,
                                  struct lant_packet *answer);

#endif
