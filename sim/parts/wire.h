/* SPDX-License-Identifier: BSD-2-Clause
 *
 * wire - one direction of a serial wire: one thing after the other, at a rate, over a distance.
 *
 * Purpose    Says when a packet begins on the wire and when it has come.
 * Ownership  A wire is a value; it lies in its sender, and keeps nothing of what it carries:
 *            packets begin in the order in which they are sent, so the times are known at once.
 * Time       Picoseconds; the time of a byte is in femtoseconds and is rounded per packet.
 * Limits     A wire has no queue and no errors of its own: sim/parts/switch.h, sim/errors.h.
 * Source     The parameters of the machines.
 */
#ifndef SIM_PARTS_WIRE_H
#define SIM_PARTS_WIRE_H

#include <stdint.h>

/* Properties that all wires of one kind share. */
struct sim_wire_kind {
    uint64_t byte_fs;    /* Femtoseconds a byte takes. */
    uint64_t latency_ps; /* From one end to the other. */
};

struct sim_wire {
    uint64_t free_ps; /* When the next byte can begin. */
};

/* Packets pass a place: their first byte begins at `head_ps`, their last one is over at
 * `tail_ps`. */
struct sim_span {
    uint64_t head_ps, tail_ps;
};

static inline uint64_t sim_later(uint64_t a_ps, uint64_t b_ps)
{
    return a_ps > b_ps ? a_ps : b_ps;
}

/* The time that the wire takes for `bytes` bytes. */
static inline uint64_t sim_wire_ps(const struct sim_wire_kind *kind, uint64_t bytes)
{
    return bytes * kind->byte_fs / 1000;
}

/* The time for which a packet that is ready at `ready_ps` waits for earlier ones. */
static inline uint64_t sim_wire_wait_ps(const struct sim_wire *wire, uint64_t ready_ps)
{
    return sim_later(wire->free_ps, ready_ps) - ready_ps;
}

/* Sends for `length_ps`, from `ready_ps` on or as soon as the wire is free. The span is that of the
 * near end. */
static inline struct sim_span sim_wire_send(struct sim_wire *wire, uint64_t ready_ps,
                                            uint64_t length_ps)
{
    const uint64_t begin_ps = sim_later(wire->free_ps, ready_ps);
    wire->free_ps = begin_ps + length_ps;
    return (struct sim_span){begin_ps, wire->free_ps};
}

/* The same, at the far end. */
static inline struct sim_span sim_wire_arrival(const struct sim_wire_kind *kind,
                                               struct sim_span sent)
{
    return (struct sim_span){sent.head_ps + kind->latency_ps, sent.tail_ps + kind->latency_ps};
}

#endif
