/* SPDX-License-Identifier: BSD-2-Clause
 *
 * port_internal - the state of a port, for those that turn beats into frames (port.c), and for the
 * mirror of a port that does so in another process (mirror.c).
 */
#ifndef HDL_PORT_INTERNAL_H
#define HDL_PORT_INTERNAL_H

#include "base/prng.h"
#include "hdl/port.h"
#include "hdl/xgmii.h"

#define FS_PER_PS 1000

/* A frame in the queue of a direction. */
struct slot {
    uint64_t at_ps;
    uint32_t bytes;
    bool bad;
};

struct queue {
    struct slot *slots;
    uint8_t *data;       /* `stride` bytes for each slot. */
    uint64_t first, end; /* Frames that were taken out, and put in. */
};

/* A beat, as it is on the wires. */
struct beat {
    uint8_t data[HDL_WIDTH_BITS_MAX / 8], keep[HDL_WIDTH_BITS_MAX / 64];
    bool valid, last, user;
    bool unknown; /* A bit that counts has no value. */
};

struct hdl_port {
    struct hdl_port_config config;
    uint32_t beat_bytes, stride;
    struct queue out, in; /* Frames of the design, and those to it. */

    /* From the design. */
    uint32_t filled;   /* Bytes of the frame in progress; it is put into the queue's next slot. */
    uint32_t idle;     /* Cycles without a beat, within a frame. */
    uint64_t begun;    /* Frames, whatever became of them. */
    bool within;       /* One is in progress. */
    bool spoilt;       /* It will not be delivered. */
    bool was_reset;    /* At the last edge. */
    bool ready;        /* s_ready, as it is driven. */
    struct beat waits; /* The beat that was not taken at the last edge; valid: there is one. */
    uint64_t begun_ps; /* When the frame in progress began on the line. */
    uint64_t free_ps;  /* When the line is free for the next one. */
    struct prng ready_draws;

    /* To the design. */
    uint32_t
        driven; /* Bytes of the first frame that were driven, the ones on the wires included. */
    struct beat wires; /* m_*, as they are driven. */
    uint64_t come_ps;  /* With cut_through: the line to the design is free. */
    struct prng gap_draws;

    struct hdl_pause pauses[HDL_PAUSES_AHEAD]; /* Their times have not come. */
    uint64_t pauses_first, pauses_end;         /* As a queue's. */
    uint64_t pause_over_ps[HDL_CLASSES];       /* The first time that is not paused any more. */
    struct hdl_counters counters;
    struct hdl_violation violations[HDL_VIOLATIONS_KEPT];
    uint32_t violation_count, violations_told;

    /* For XGMII: */
    struct xgmii_decoder decoder;
    struct xgmii_encoder encoder;

    /* A mirror's. */
    uint64_t forwarded; /* Frames to the design that were taken out for the port there. */
    struct hdl_counters mirrored;
};

/* port_xgmii.c, for port.c. */
void port_xgmii_init(struct hdl_port *port);
void port_xgmii_edge(struct hdl_port *port, uint64_t now_ps, const struct hdl_in *in,
                     struct hdl_out *out);

/* A rule was. */
static inline void port_broken(struct hdl_port *port, enum hdl_rule rule, uint64_t now_ps)
{
    port->counters.rules[rule]++;
    if (port->violation_count < HDL_VIOLATIONS_KEPT) {
        port->violations[port->violation_count++] =
            (struct hdl_violation){.rule = rule,
                                   .at_ps = now_ps,
                                   .edge = port->counters.edges,
                                   .frame = port->begun + !port->within};
    }
}

static inline uint64_t line_ps(const struct hdl_port *port, uint64_t bytes)
{
    return bytes * port->config.line_fs_per_byte / FS_PER_PS;
}

static inline uint32_t queued(const struct queue *queue)
{
    return (uint32_t)(queue->end - queue->first);
}

static inline struct slot *slot_at(const struct hdl_port *port, const struct queue *queue,
                                   uint64_t number)
{
    return &queue->slots[number % port->config.frames];
}

static inline uint8_t *data_at(const struct hdl_port *port, const struct queue *queue,
                               uint64_t number)
{
    return queue->data + (size_t)(number % port->config.frames) * port->stride;
}

#endif
