/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pair - both halves of a queue pair's connection, as a nonic_qp in a design sees them.
 *
 * Units      IPv4 addresses in host order; bytes.
 * Ownership  The world's memory, which lives as long as the model.
 *
 * C and C++ include this file.
 */
#ifndef HDL_PAIR_H
#define HDL_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#define HDL_PAIRS_MAX 16 /* Numbers of a design's queue pairs are below it. */

struct hdl_half {
    uint32_t ip;
    uint32_t qpn, psn; /* The PSN of the first packet that this side sends. */
    uint64_t address;  /* Memory that the other side may reach, */
    uint32_t rkey;     /* by this key. */
};

struct hdl_pair {
    struct hdl_half local; /* The design writes it at each edge, but for its address. */
    struct hdl_half peer;
    uint32_t send_psn;    /* The first one of the design, whoever chose it, */
    uint32_t receive_psn; /* and of the peer. */
    uint32_t pmtu;
    bool connected; /* All but `local` counts. */
    bool is_new;    /* Set by whoever connects it. */
};

/* Is the design told at this edge that it is connected? A new connection is first an edge without
 * one, however soon it follows the one before it. */
static inline bool hdl_pair_shows(struct hdl_pair *pair)
{
    const bool shows = pair->connected && !pair->is_new;
    pair->is_new = false;
    return shows;
}

#endif
