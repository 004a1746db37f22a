/* SPDX-License-Identifier: BSD-2-Clause
 *
 * router - the inter-QFDB router of F1: a node of a torus of up to three dimensions.
 *
 * Purpose    Packets between the four local ports of a QFDB and its neighbours, the shorter way
 *            round, one dimension after the other, without loss and without deadlock.
 * Ownership  The caller owns the struct and the memory of exanest_router_bytes.
 * Time       One call of exanest_router_step is one 150 MHz cycle. A header that was taken in cycle
 *            t can be offered in cycle t + latency. While exanest_router_idle, steps may be left
 *            out.
 * Limits     128 x 128 x 64 nodes; EXANEST_ROUTER_SLOTS_MAX packets per buffer.
 * Source     The document says "black box", four local and eight remote ports, and that it resolves
 *            deadlocks by virtual channels (3.2, 6.4). All else is our choice.
 *
 * Ports 0..3 are local: what is for FPGA i leaves by port i (6.4; that it holds for this direction:
 * our choice). Port 4 + 2d leads to the neighbour of the next higher coordinate in dimension d,
 * port 5 + 2d to the next lower. A packet that leaves by port 4 + 2d arrives at port 5 + 2d.
 *
 * Each local input, and each virtual channel of a remote input, is a lane: a queue of whole
 * packets. A packet leaves the head of its lane only when the next router has promised a slot (a
 * credit) for all of it, and then it leaves while it still comes in (virtual cut-through). So a
 * packet that has begun needs no more slots.
 *
 * No packets wait in a circle, for this reason. A waiting packet holds a slot of lane L and waits
 * for one of lane L'. Give each lane a rank, and each packet waits for a lane of higher rank:
 *   - Dimensions are taken in the order x, y, z, and local outputs come last. A lane of dimension d
 *     waits for lanes of d, of later ones, or for a local output, never for an earlier one. Local
 *     inputs come first: nothing waits for them.
 *   - In one dimension and direction the lanes form a ring, which is cut at the dateline, the link
 *     between the greatest coordinate and 0. A packet begins a dimension on channel 0 and goes over
 *     to channel 1 with the hop across the dateline. Rank channel 0 by the hops left to the
 *     dateline, and channel 1 behind it, by the hops made since. No packet comes round to the
 *     dateline again, because it goes the shorter way: at most half the ring.
 *   - Local outputs are taken in the end: in F1 a packet from the router goes to a block of F1 or
 *     over one link (routing.h), never back to the router. The world must see to it that blocks
 *     take packets even when their own packets cannot leave. With one channel (`channels` = 1) the
 *     ring is closed, and it does lock up: a test shows it.
 *
 * Packets of one source and one destination stay in order: they take the same lanes.
 *
 * The link to a neighbour must not stop: credits do that. A beat's `channel` goes with it.
 */
#ifndef HARDWARE_EXANEST_ROUTER_H
#define HARDWARE_EXANEST_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/exanest/beat.h"

#define EXANEST_ROUTER_DIMENSIONS   3u
#define EXANEST_ROUTER_LOCALS       4u
#define EXANEST_ROUTER_REMOTES_MAX  8u /* The document's number; 4 are used in 2D, 6 in 3D. */
#define EXANEST_ROUTER_PORTS_MAX    (EXANEST_ROUTER_LOCALS + EXANEST_ROUTER_REMOTES_MAX)
#define EXANEST_ROUTER_CHANNELS_MAX 2u
#define EXANEST_ROUTER_LANES_MAX                                                                   \
    (EXANEST_ROUTER_LOCALS + EXANEST_ROUTER_REMOTES_MAX * EXANEST_ROUTER_CHANNELS_MAX)
#define EXANEST_ROUTER_SLOTS_MAX 64u

/* Defaults, all our choice. */
#define EXANEST_ROUTER_LATENCY     120u /* Cycles: L_rtr. */
#define EXANEST_ROUTER_GAP         4u   /* Cycles: g_rtr, fitted to 7.9 Gb/s (7). */
#define EXANEST_ROUTER_WORD        192u /* Hundredths: 12.8 ns, a word at 10 Gb/s. */
#define EXANEST_ROUTER_LOCAL_SLOTS 8u
/* Until a credit comes back: 120 cycles in the router, 35 a packet, twice a wire of 63, rounded up
 * to what 39 cycles per packet let through. */
#define EXANEST_ROUTER_REMOTE_SLOTS 12u

struct exanest_router_config {
    uint8_t own[EXANEST_ROUTER_DIMENSIONS];  /* The QFDB's x, y, z. */
    uint8_t size[EXANEST_ROUTER_DIMENSIONS]; /* 1 .. 128, 128, 64; 1 also for dimensions unused. */
    uint8_t channels;                        /* 1 or 2. */
    uint8_t local_slots, remote_slots;       /* Packets per lane. */
    uint16_t latency;                        /* Cycles; 1 at least. */
    /* Remote outputs: what a word takes (100 at least), and the dead time behind a packet, in
     * hundredths of a cycle. 100 and 0 if a serializer with its own timing stands behind. */
    uint16_t word_hundredths, gap_hundredths;
    bool one_local_port; /* All that is for this QFDB leaves by port 0: for EXA-A13. */
};

struct exanest_router_packet {
    uint8_t output;  /* A port. */
    uint8_t channel; /* On the next link. */
    uint8_t written, read;
    bool whole, has_footer;
    uint32_t written_at; /* The cycle of the last word, modulo 2^32. */
    struct exanest_word words[EXANEST_PACKET_WORDS_MAX];
};

struct exanest_router_lane {
    struct exanest_router_packet *packets; /* A ring. */
    uint8_t slots, head, count;
    uint8_t ripe; /* Packets from the head on whose latency is over. */
};

/* A header's latency under way. */
struct exanest_router_wait {
    uint32_t due; /* The cycle, modulo 2^32. */
    uint8_t lane;
};

struct exanest_router_counters {
    uint64_t packets, words; /* Packets and words that left. */
    uint64_t bad_headers;    /* Packets dropped: no destination can be read, */
    uint64_t outside;        /* or it lies outside the torus. */
    uint64_t overruns;       /* Packets dropped: the neighbour had no credit for them. */
    uint64_t wrong_channels; /* Packets dropped: we have no such channel. */
    uint64_t wrong_credits;  /* Credits for slots that were not used. */
};

/* An output port. */
struct exanest_router_output {
    uint8_t lane; /* The lane that is sent, while the output is active. */
    uint8_t last; /* The lane that was chosen last. */
    uint8_t credits[EXANEST_ROUTER_CHANNELS_MAX];
    uint32_t requests[EXANEST_ROUTER_CHANNELS_MAX]; /* Lanes, by the channel they want. */
    uint64_t due; /* When the next word or packet may come, in hundredths of a cycle. */
};

struct exanest_router {
    uint8_t own[EXANEST_ROUTER_DIMENSIONS], size[EXANEST_ROUTER_DIMENSIONS];
    uint8_t channels, ports;
    bool one_local_port;
    uint16_t latency, word_hundredths, gap_hundredths;
    uint16_t wanted;      /* Outputs with requests. */
    uint16_t active;      /* Outputs in the midst of a packet. */
    uint16_t open;        /* Input ports in the midst of a packet. */
    uint16_t dropping;    /* Input ports of `open` whose packet is dropped. */
    uint16_t credits_due; /* Ports with credits to tell. */
    uint16_t wait_head, wait_count, wait_places;
    uint32_t packets;    /* In all lanes. */
    uint64_t now;        /* Cycles stepped. */
    uint64_t busy_until; /* Hundredths: the latest `due` of an output. */
    uint8_t open_lane[EXANEST_ROUTER_PORTS_MAX];
    uint8_t owed[EXANEST_ROUTER_PORTS_MAX][EXANEST_ROUTER_CHANNELS_MAX]; /* Credits to tell. */
    struct exanest_router_wait *waits; /* A ring, in the order in which they are due. */
    struct exanest_router_counters counters;
    struct exanest_router_output outputs[EXANEST_ROUTER_PORTS_MAX];
    struct exanest_router_lane lanes[EXANEST_ROUTER_LANES_MAX];
};

/* Lanes of a router with `ports` ports. The lanes of a second channel count even if it is not
 * used. */
static inline uint32_t exanest_router_lanes(uint32_t ports)
{
    return EXANEST_ROUTER_LOCALS + (ports - EXANEST_ROUTER_LOCALS) * EXANEST_ROUTER_CHANNELS_MAX;
}

static inline uint32_t exanest_router_lane(uint32_t port, uint32_t channel)
{
    const uint32_t remote = port - EXANEST_ROUTER_LOCALS;
    return port < EXANEST_ROUTER_LOCALS
               ? port
               : EXANEST_ROUTER_LOCALS + remote * EXANEST_ROUTER_CHANNELS_MAX + channel;
}

/* A node of a two-dimensional torus. */
struct exanest_router_config exanest_router_default(uint8_t x, uint8_t y, uint8_t size_x,
                                                    uint8_t size_y);
size_t exanest_router_bytes(const struct exanest_router_config *config);
/* `memory` is 8-byte aligned. */
void exanest_router_init(struct exanest_router *router, const struct exanest_router_config *config,
                         void *memory);

/* Ready of an input port. Remote ports are always ready: credits see to that. */
bool exanest_router_ready(const struct exanest_router *router, uint32_t port,
                          const struct exanest_beat *beat);
void exanest_router_take(struct exanest_router *router, uint32_t port,
                         const struct exanest_beat *beat);

void exanest_router_step(struct exanest_router *router);

/* Ports in the midst of a packet: only those can offer something. */
static inline uint16_t exanest_router_active(const struct exanest_router *router)
{
    return router->active;
}

MUST_USE bool exanest_router_offer(const struct exanest_router *router, uint32_t port,
                                   struct exanest_beat *beat);
void exanest_router_taken(struct exanest_router *router, uint32_t port);

/* A slot of a remote port is free again: its neighbour is to be told the channel. False: no. */
MUST_USE bool exanest_router_next_credit(struct exanest_router *router, uint32_t port,
                                         uint32_t *channel);
/* Ports for which exanest_router_next_credit has something. */
static inline uint16_t exanest_router_credits_due(const struct exanest_router *router)
{
    return router->credits_due;
}

/* The neighbour at a remote port has a slot free again. */
void exanest_router_on_credit(struct exanest_router *router, uint32_t port, uint32_t channel);

/* Would a step change nothing but the count of cycles? */
static inline bool exanest_router_idle(const struct exanest_router *router)
{
    return router->packets == 0 && router->credits_due == 0 &&
           router->now * 100 >= router->busy_until;
}

/* The port and channel by which a packet goes on that came in by `input` on channel `arrived`;
 * false: its destination lies outside the torus. */
MUST_USE bool exanest_router_route(const struct exanest_router *router, uint32_t input,
                                   uint32_t arrived, struct exanest_place place, uint32_t *output,
                                   uint32_t *channel);

void exanest_router_check(const struct exanest_router *router);

#endif
