/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bench - sources that always have a packet, one output of a crossbar, a link, and a receiver.
 *
 * Purpose    Measures crossbar and link alone.
 * Inputs     The packets' shape; at which rate the receiver takes words, and when it takes none.
 * Outputs    Words taken and lost, what is in the receiver's FIFO, times without a word.
 * Ownership  The bench owns all its parts until exanest_bench_close; the sim is the caller's.
 * Time       Runs to the time that exanest_bench_run names, a cycle of the datapath an event.
 * Limits     Packets of one shape; crossbar and link have one clock.
 * Source     Xirouchakis 3.2.2, 6.3. Rows EXA-A10, EXA-A20.
 */
#ifndef LAB_EXANEST_BENCH_H
#define LAB_EXANEST_BENCH_H

#include "hardware/exanest/crossbar.h"
#include "lab/exanest/link.h"
#include "sim/clock.h"
#include "sim/kernel.h"

struct exanest_bench_config {
    uint64_t datapath_hz;
    struct exanest_crossbar_config crossbar;
    struct exanest_link_config link;
    uint32_t sources; /* At inputs 1 and on; the link is behind output 0. */
    uint32_t words;   /* A packet: 1 is a header, more have a footer; 18 at most. */
    uint64_t take_ps; /* The receiver takes a word in this time, at most one a cycle. */
};

struct exanest_bench {
    struct exanest_bench_config config;
    struct sim *sim;
    struct sim_clock clock;
    struct sim_event edge;
    uint64_t cycle;
    uint8_t sent[EXANEST_PORTS_MAX]; /* By source: words of its packet that were taken. */
    struct exanest_beat beats[EXANEST_PACKET_WORDS_MAX]; /* The packet. */
    struct exanest_crossbar crossbar;
    struct exanest_link link;
    bool stalled;      /* The receiver takes nothing. The caller's to set between two runs. */
    uint64_t due_ps;   /* When it takes its next word. */
    uint64_t taken_ps; /* When it took its last one. */
    uint64_t taken;    /* Words. */
    /* Since exanest_bench_watch: how often the receiver had to wait longer for a word than the line
     * takes for one, and a cycle, and the most that it was more than the line's time. */
    uint64_t bubbles, bubble_ps;
};

/* `bench` must not move afterwards; the world is at its beginning. */
void exanest_bench_open(struct exanest_bench *bench, const struct exanest_bench_config *config,
                        struct sim *sim);
void exanest_bench_close(struct exanest_bench *bench);

/* All edges up to `until_ps` happen. */
void exanest_bench_run(struct exanest_bench *bench, uint64_t until_ps);

/* Bubbles are counted from the next word on. */
void exanest_bench_watch(struct exanest_bench *bench);

/* The receiver's end of the link. */
static inline const struct exanest_deserializer *exanest_bench_receiver(
    const struct exanest_bench *bench)
{
    return &bench->link.ways[0].deserializer;
}

/* Line time of a word. */
static inline uint64_t exanest_bench_word_ps(const struct exanest_bench *bench)
{
    return 2 * (uint64_t)bench->config.link.serializer.line.half_ps;
}

#endif
