/* SPDX-License-Identifier: BSD-2-Clause
 *
 * port - an Ethernet port of a hardware design: beats of an AXI4-Stream, or words of XGMII, on one
 * side, frames on the other.
 *
 * Purpose    A design in a simulator sends and receives frames as it would through a MAC: it is
 *            held back as the line holds it back, and what it does against the rules of the stream
 *            is counted by the rule's name. Of a design that has its own MAC, the port is the line.
 * Time       The caller's, in ps, and never backwards. hdl_port_edge is one rising edge of the
 *            port's clock. A frame, a pause or an end of a pause that happens at t is seen at the
 *            first edge after t, and not at t: so it does not matter what runs first at t.
 * Signals    `in` has the values that were there before the edge, `out` those that are driven after
 *            it. All outputs come out of registers. A port of XGMII has txd in s_data, txc in
 *            s_keep, rxd in m_data, rxc in m_keep, and link_up, on each edge; it has no handshakes,
 *            and neither ready, gaps nor pauses hold anything back.
 * Ownership  Memory is the caller's (hdl_port_bytes); nothing is allocated.
 * Source     AMBA 4 AXI4-Stream Protocol (IHI 0051A); IEEE 802.3, 4A.2.3.2 (padding, gap), 31B
 *            (pause), 46 (XGMII: hdl/xgmii.h); IEEE 802.1Q, 36 (priority-based flow control).
 */
#ifndef HDL_PORT_H
#define HDL_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HDL_WIDTH_BITS_MAX  1024
#define HDL_FRAME_BYTES_MAX 16384
#define HDL_FRAME_BYTES_MIN 60 /* Shorter ones are padded, as a MAC does. Without FCS. */
#define HDL_CLASSES         9  /* Eight priorities; the last one is the whole link. */
#define HDL_LINK            8
#define HDL_VIOLATIONS_KEPT 16
#define HDL_PAUSES_AHEAD    64

struct hdl_port_config {
    uint32_t width_bits;       /* A power of two, 8 .. HDL_WIDTH_BITS_MAX. */
    uint32_t frame_bytes;      /* The longest frame, without FCS: HDL_FRAME_BYTES_MIN .. MAX. */
    uint32_t frames;           /* That wait in each direction, at least 2. */
    uint64_t line_fs_per_byte; /* 0: the line takes no time. */
    uint32_t paused_by;        /* Bit c: a pause of class c holds the port's frames back. */
    uint32_t ready_ppm; /* s_ready is high in a cycle with this probability; 1000000: always. */
    uint32_t gap_ppm;   /* Towards the design: a beat waits a cycle, with this probability. */
    uint64_t seed;      /* This port alone has it; each direction draws from a stream of its own. */
    bool xgmii;         /* 64 bits, and its clock is its line's. */
    /* Beats to the design come while the frame still arrives, at the line's rate; else when it has
     * arrived, one a cycle. Words of XGMII come at the line's rate in any case. */
    bool cut_through;
};

/* NULL, or why it cannot be used. */
const char *hdl_port_config_error(const struct hdl_port_config *config);

/* The design's outputs, and its side of both handshakes. Words of 32 bits, the least first. */
struct hdl_in {
    const uint32_t *s_data, *s_keep;
    bool reset;
    bool s_valid, s_last, s_user; /* s_user counts with s_last: the frame is bad. */
    bool m_ready;
    /* A simulator of four states has bits that are neither 0 nor 1, which come as 0: valid or ready
     * is one, and there is one among last, keep, user with last, and the data that are kept. */
    bool unknown_handshake, unknown_beat;
};

/* The design's inputs. */
struct hdl_out {
    uint32_t m_data[HDL_WIDTH_BITS_MAX / 32], m_keep[HDL_WIDTH_BITS_MAX / 8 / 32];
    bool s_ready;
    bool m_valid, m_last, m_user;
    uint32_t pause; /* Bit c: class c is paused. */
    bool link_up;   /* XGMII: the design tells of no fault. */
    /* The number of the frame that passes, from 1 on; 0: none. Frames of the design that are not
     * delivered have none of their own. */
    uint32_t sent_frame, received_frame;
};

struct hdl_frame {
    uint64_t at_ps;      /* To the design: see hdl_port_push. */
    const uint8_t *data; /* From the destination's address to the last byte before the FCS. */
    uint32_t bytes;
    /* Towards the design: m_user with the last beat, or a wrong FCS of XGMII; a short frame is not
     * padded then. */
    bool bad;
};

/* From at_ps on, for quanta of 512 bits on the line; 0 ends a pause. */
struct hdl_pause {
    uint64_t at_ps;
    uint32_t priority, quanta; /* HDL_LINK: of the link. At most 65535. */
};

/* The rules of the stream, and of XGMII. A broken one is counted; HDL_LATE alone is a warning. */
enum hdl_rule {
    HDL_KEEP_PART,   /* A beat that is not the last one has bytes left out. */
    HDL_KEEP_HOLE,   /* Bytes of the last beat are left out before others. */
    HDL_KEEP_NONE,   /* The last beat has no byte. */
    HDL_WITHDRAWN,   /* valid was taken back before ready. */
    HDL_UNSTABLE,    /* Data, keep, last or user changed while valid waited for ready. */
    HDL_VALID_RESET, /* valid after an edge with reset. */
    HDL_LATE,        /* Within a frame valid is low in HDL_LATE_CYCLES in which ready is high. */
    HDL_OVERSIZE,    /* A frame is longer than the port's longest. */
    HDL_UNKNOWN, /* X or Z on valid or ready, or on a bit that counts of a beat that is taken. */
    /* Rules of XGMII, as OVERSIZE is; the first one that a frame breaks counts. */
    HDL_START_LANE, /* A frame begins in another lane than 0 and 4. */
    HDL_GAP,        /* Less than five octets lie between two frames. */
    HDL_PREAMBLE,
    HDL_ERROR,     /* An error octet in a frame. */
    HDL_TERMINATE, /* A frame ends without one. */
    HDL_RUNT,      /* It is shorter than a MAC sends. */
    HDL_FCS,
    HDL_STRAY, /* Something else than idle or an ordered set, between frames. */
    HDL_RULES
};
#define HDL_LATE_CYCLES 10000

struct hdl_rule_text {
    const char *name, *says, *clause;
};

const struct hdl_rule_text *hdl_rule_text(enum hdl_rule rule);

struct hdl_violation {
    enum hdl_rule rule;
    uint64_t at_ps, edge; /* The edge's number, from 1 on. */
    uint64_t frame;       /* Its number, from 1 on: the one in progress, or the next one. */
};

struct hdl_counters {
    uint64_t edges;
    uint64_t sent_frames, sent_bytes;         /* By the design: whole and good. */
    uint64_t received_frames, received_bytes; /* By the design: its last beat was taken. */
    uint64_t beats_sent, beats_received;
    uint64_t padded;           /* Frames that were shorter than a MAC sends. */
    uint64_t bad;              /* Frames of the design that it called bad, or that broke a rule. */
    uint64_t lost_in_reset[2]; /* Frames under way, of the design and to it. */
    uint64_t refused;          /* Frames and pauses for which there was no room. */
    uint64_t pauses;           /* That began. */
    uint64_t rules[HDL_RULES];
};

struct hdl_port;

/* Bytes of memory, which begin on a cache line, for a port of a valid configuration. */
size_t hdl_port_bytes(const struct hdl_port_config *config);
struct hdl_port *hdl_port_init(const struct hdl_port_config *config, void *memory);

/* One rising edge. */
void hdl_port_edge(struct hdl_port *port, uint64_t now_ps, const struct hdl_in *in,
                   struct hdl_out *out);

/* A frame to the design, whose first beat appears at the first edge after at_ps. With cut_through
 * at_ps is the time of its first bit, or it follows the frame before it on the line. The data are
 * copied. False: there is no room, or it is longer than the longest; it is counted. */
bool hdl_port_push(struct hdl_port *port, const struct hdl_frame *frame);
/* How many frames to the design find room before the next edge. */
uint32_t hdl_port_room(const struct hdl_port *port);
/* The next frame of the design; its last byte, with padding and FCS, leaves the line at at_ps,
 * which may lie in the future. The data are there until the next edge. */
bool hdl_port_pull(struct hdl_port *port, struct hdl_frame *frame);

/* The frame in progress is sent to its end. False: HDL_PAUSES_AHEAD of them have times that have
 * not come, which is counted. */
bool hdl_port_pause(struct hdl_port *port, const struct hdl_pause *pause);

const struct hdl_counters *hdl_port_counters(const struct hdl_port *port);
/* The next violation of the first HDL_VIOLATIONS_KEPT. */
bool hdl_port_violation(struct hdl_port *port, struct hdl_violation *violation);

#ifdef __cplusplus
}
#endif

#endif
