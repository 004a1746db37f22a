/* SPDX-License-Identifier: BSD-2-Clause
 *
 * switch - an output of a switch: a queue, and the wire behind it.
 *
 * Purpose    Says on a packet's arrival when it leaves, or that there is no room for it.
 * Ownership  An output is the wire behind it; nothing is kept for a packet.
 * Units      A buffer is as large as the time that its contents take on the wire.
 * Limits     First come, first served: packets are told in the order in which they are ready, so
 *            one that was told is never overtaken, and when it leaves is known at once.
 * Source     Karol, Hluchyj, Morgan, "Input versus output queueing on a space-division packet
 *            switch" (1987): an output that takes from all inputs at once is never idle while
 *            something waits for it.
 */
#ifndef SIM_PARTS_SWITCH_H
#define SIM_PARTS_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/parts/wire.h"

#define SIM_UNBOUNDED_PS UINT64_MAX

enum sim_switching {
    SIM_CUT_THROUGH,       /* A packet may leave when its head has come, */
    SIM_STORE_AND_FORWARD, /* or when all of it has. */
};

/* Properties that all outputs of one kind share. */
struct sim_output_kind {
    struct sim_wire_kind wire;
    enum sim_switching switching;
    uint64_t delay_ps;  /* From then to the first byte on a wire that is free. */
    uint64_t buffer_ps; /* Room for what waits, the packet itself included; or unbounded. */
};

/* When a packet that comes in as `in` can begin to leave. A wire that is faster than the one it
 * came by has to wait, so that the tail is there when its turn has come. */
static inline uint64_t sim_output_ready(const struct sim_output_kind *kind, struct sim_span in,
                                        uint64_t length_ps)
{
    const uint64_t tail_ps = in.tail_ps + kind->delay_ps;
    const uint64_t head_ps = in.head_ps + kind->delay_ps;
    if (kind->switching == SIM_STORE_AND_FORWARD) {
        return tail_ps;
    }
    return head_ps + length_ps < tail_ps ? tail_ps - length_ps : head_ps;
}

/* The packet leaves by the output as `out`, which takes `length_ps`. False: it finds no room, and
 * nothing has happened. */
static inline bool sim_output_send(const struct sim_output_kind *kind, struct sim_wire *output,
                                   struct sim_span in, uint64_t length_ps, struct sim_span *out)
{
    const uint64_t ready_ps = sim_output_ready(kind, in, length_ps);
    if (sim_wire_wait_ps(output, ready_ps) + length_ps > kind->buffer_ps) {
        return false;
    }
    *out = sim_wire_send(output, ready_ps, length_ps);
    return true;
}

#endif
