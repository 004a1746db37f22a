/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdl/port_internal.h"

#include <string.h>

#include "base/align.h"
#include "base/check.h"

#define FCS_BYTES      4
#define PREAMBLE_BYTES 8 /* And the start of the frame. */
#define GAP_BYTES      12
#define QUANTUM_BYTES  64
#define ALWAYS         1000000 /* ready_ppm. */

/* -- Memory -------------------------------------------------------------------------------------*/

const char *hdl_port_config_error(const struct hdl_port_config *config)
{
    if (config->width_bits < 8 || config->width_bits > HDL_WIDTH_BITS_MAX ||
        (config->width_bits & (config->width_bits - 1)) != 0) {
        return "the width is a power of two, 8 to 1024 bits";
    }
    if (config->xgmii && config->width_bits != 8 * XGMII_LANES) {
        return "XGMII has 64 bits here";
    }
    if (config->frame_bytes < HDL_FRAME_BYTES_MIN || config->frame_bytes > HDL_FRAME_BYTES_MAX) {
        return "the longest frame has 60 to 16384 bytes";
    }
    if (config->frames < 2 || config->frames > 65536) {
        return "2 to 65536 frames wait in each direction";
    }
    if (config->ready_ppm == 0 || config->ready_ppm > ALWAYS) {
        return "a probability of 0 would never let a beat pass, and none is above 1";
    }
    if (config->gap_ppm >= 1000000) {
        return "with gaps of probability 1 no beat would ever appear";
    }
    if (config->line_fs_per_byte > UINT64_C(1000000000000)) {
        return "a byte takes a millisecond at most";
    }
    return NULL;
}

static size_t slots_bytes(const struct hdl_port_config *config)
{
    return line_aligned(config->frames * sizeof(struct slot));
}

static size_t stride_of(const struct hdl_port_config *config)
{
    return line_aligned(config->frame_bytes + FCS_BYTES); /* XGMII has it. */
}

static size_t data_bytes(const struct hdl_port_config *config)
{
    return config->frames * stride_of(config);
}

size_t hdl_port_bytes(const struct hdl_port_config *config)
{
    CHECK(hdl_port_config_error(config) == NULL);
    return line_aligned(sizeof(struct hdl_port)) + 2 * (slots_bytes(config) + data_bytes(config));
}

static void queue_init(struct queue *queue, const struct hdl_port_config *config, uint8_t **memory)
{
    queue->slots = (struct slot *)(void *)*memory;
    queue->data = *memory + slots_bytes(config);
    *memory += slots_bytes(config) + data_bytes(config);
}

struct hdl_port *hdl_port_init(const struct hdl_port_config *config, void *memory)
{
    CHECK(hdl_port_config_error(config) == NULL && (uintptr_t)memory % CACHE_LINE_BYTES == 0);
    struct hdl_port *port = memory;
    uint8_t *rest = (uint8_t *)memory + line_aligned(sizeof(*port));
    *port = (struct hdl_port){.config = *config,
                              .beat_bytes = config->width_bits / 8,
                              .stride = (uint32_t)stride_of(config)};
    queue_init(&port->out, config, &rest);
    queue_init(&port->in, config, &rest);
    prng_init(&port->ready_draws, 2 * config->seed);
    prng_init(&port->gap_draws, 2 * config->seed + 1);
    port_xgmii_init(port);
    return port;
}

/* -- Time on the line ---------------------------------------------------------------------------*/

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t padded(uint32_t bytes)
{
    return bytes < HDL_FRAME_BYTES_MIN ? HDL_FRAME_BYTES_MIN : bytes;
}

/* -- Pauses -------------------------------------------------------------------------------------*/

bool hdl_port_pause(struct hdl_port *port, const struct hdl_pause *pause)
{
    CHECK(pause->priority < HDL_CLASSES);
    if (port->pauses_end - port->pauses_first == HDL_PAUSES_AHEAD) {
        port->counters.refused++;
        return false;
    }
    port->pauses[port->pauses_end++ % HDL_PAUSES_AHEAD] = *pause;
    return true;
}

/* A pause of no time is over at the edge that sees it begin. */
static void begin_pauses(struct hdl_port *port, uint64_t now_ps)
{
    while (port->pauses_first != port->pauses_end) {
        const struct hdl_pause *pause = &port->pauses[port->pauses_first % HDL_PAUSES_AHEAD];
        if (pause->at_ps >= now_ps) {
            return;
        }
        port->pause_over_ps[pause->priority] =
            pause->at_ps + line_ps(port, (uint64_t)pause->quanta * QUANTUM_BYTES) + 1;
        port->counters.pauses += pause->quanta > 0;
        port->pauses_first++;
    }
}

static uint32_t paused(const struct hdl_port *port, uint64_t now_ps)
{
    uint32_t classes = 0;
    for (uint32_t i = 0; i < HDL_CLASSES; i++) {
        classes |= (uint32_t)(now_ps < port->pause_over_ps[i]) << i;
    }
    return classes;
}

/* -- Rules --------------------------------------------------------------------------------------*/

bool hdl_port_violation(struct hdl_port *port, struct hdl_violation *violation)
{
    if (port->violations_told == port->violation_count) {
        return false;
    }
    *violation = port->violations[port->violations_told++];
    return true;
}

/* The number of leading bytes that are kept, and whether others follow behind a gap. */
static uint32_t kept_bytes(const struct hdl_port *port, const uint8_t *keep, bool *hole)
{
    uint32_t leading = 0, all = 0;
    for (uint32_t i = 0; i < port->beat_bytes; i++) {
        const bool kept = keep[i / 8] >> i % 8 & 1;
        leading += kept && all == i;
        all += kept;
    }
    *hole = all != leading;
    return leading;
}

static bool same_beat(const struct hdl_port *port, const struct beat *a, const struct beat *b)
{
    return a->last == b->last && a->user == b->user &&
           memcmp(a->data, b->data, port->beat_bytes) == 0 &&
           memcmp(a->keep, b->keep, (port->beat_bytes + 7) / 8) == 0;
}

/* A beat that waited for ready is still there, unchanged. */
static void judge_wait(struct hdl_port *port, const struct beat *now, uint64_t now_ps)
{
    if (!port->waits.valid) {
        return;
    }
    if (!now->valid) {
        port_broken(port, HDL_WITHDRAWN, now_ps);
    } else if (!same_beat(port, now, &port->waits)) {
        port_broken(port, HDL_UNSTABLE, now_ps);
    }
}

/* Before the first edge with reset nothing has a value. */
static void judge_handshake(struct hdl_port *port, const struct hdl_in *in, uint64_t now_ps)
{
    if (in->unknown_handshake && (port->was_reset || !in->reset)) {
        port_broken(port, HDL_UNKNOWN, now_ps);
    }
}

/* Within a frame the design has data: valid may be low for a while, but must not wait for ready. */
static void judge_pace(struct hdl_port *port, bool valid, uint64_t now_ps)
{
    if (!port->within || valid) {
        port->idle = 0;
    } else if (port->ready && ++port->idle == HDL_LATE_CYCLES) {
        port_broken(port, HDL_LATE, now_ps);
    }
}

/* -- Of the design ------------------------------------------------------------------------------*/

static void begin_frame(struct hdl_port *port, uint64_t now_ps)
{
    port->within = true;
    port->begun++;
    port->spoilt = false;
    port->filled = 0;
    port->begun_ps = later(port->free_ps, now_ps);
}

/* The last beat has passed: the line is taken for the frame, even if nobody will get it. */
static void end_frame(struct hdl_port *port, uint64_t now_ps)
{
    const uint64_t bytes = PREAMBLE_BYTES + (uint64_t)padded(port->filled) + FCS_BYTES;
    const uint64_t left_ps = later(port->begun_ps + line_ps(port, bytes), now_ps);
    port->free_ps = left_ps + line_ps(port, GAP_BYTES);
    port->within = false;
    if (port->spoilt) {
        port->counters.bad++;
        return;
    }
    struct slot *slot = slot_at(port, &port->out, port->out.end);
    uint8_t *data = data_at(port, &port->out, port->out.end);
    if (port->filled < HDL_FRAME_BYTES_MIN) {
        memset(data + port->filled, 0, HDL_FRAME_BYTES_MIN - port->filled);
        port->counters.padded++;
    }
    *slot = (struct slot){.at_ps = left_ps, .bytes = padded(port->filled)};
    port->out.end++;
    port->counters.sent_frames++;
    port->counters.sent_bytes += port->filled;
}

static void judge_keep(struct hdl_port *port, const struct beat *beat, uint32_t bytes, bool hole,
                       uint64_t now_ps)
{
    const enum hdl_rule rule = !beat->last ? HDL_KEEP_PART : hole ? HDL_KEEP_HOLE : HDL_KEEP_NONE;
    const bool whole = !hole && bytes == port->beat_bytes;
    if (beat->last ? hole || bytes == 0 : !whole) {
        port_broken(port, rule, now_ps);
        port->spoilt = true;
    }
}

static void take_beat(struct hdl_port *port, const struct beat *beat, uint64_t now_ps)
{
    bool hole;
    const uint32_t bytes = kept_bytes(port, beat->keep, &hole);
    if (!port->within) {
        begin_frame(port, now_ps);
    }
    port->counters.beats_sent++;
    if (beat->unknown) {
        port_broken(port, HDL_UNKNOWN, now_ps);
        port->spoilt = true;
    } else {
        judge_keep(port, beat, bytes, hole, now_ps);
    }
    if (port->filled + bytes > port->config.frame_bytes) {
        if (!port->spoilt) {
            port_broken(port, HDL_OVERSIZE, now_ps);
        }
        port->spoilt = true;
    } else {
        memcpy(data_at(port, &port->out, port->out.end) + port->filled, beat->data, bytes);
        port->filled += bytes;
    }
    if (beat->last) {
        port->spoilt |= beat->user;
        end_frame(port, now_ps);
    }
}

/* Not more than one beat lies ahead of the line when the next one is taken; that is at the next
 * edge, because ready comes out of a register. */
static bool line_has_room(const struct hdl_port *port, uint64_t now_ps)
{
    const uint64_t due_ps =
        port->within ? port->begun_ps + line_ps(port, port->filled) : port->free_ps;
    return due_ps <= now_ps + line_ps(port, 2 * port->beat_bytes);
}

static bool may_send(struct hdl_port *port, uint64_t now_ps, uint32_t pauses)
{
    const bool held = !port->within && (pauses & port->config.paused_by) != 0;
    const bool turn =
        port->config.ready_ppm == ALWAYS || prng_chance(&port->ready_draws, port->config.ready_ppm);
    return turn && !held && queued(&port->out) < port->config.frames && line_has_room(port, now_ps);
}

static void read_beat(const struct hdl_port *port, const struct hdl_in *in, struct beat *beat)
{
    beat->valid = in->s_valid;
    beat->last = in->s_last;
    beat->user = in->s_last && in->s_user;
    beat->unknown = in->unknown_beat;
    memcpy(beat->data, in->s_data, port->beat_bytes);
    memcpy(beat->keep, in->s_keep, (port->beat_bytes + 7) / 8);
}

static void edge_of_design(struct hdl_port *port, uint64_t now_ps, const struct hdl_in *in,
                           uint32_t pauses)
{
    struct beat beat;
    beat.valid = in->s_valid;
    if (in->s_valid) {
        read_beat(port, in, &beat);
    }
    judge_wait(port, &beat, now_ps);
    judge_pace(port, in->s_valid, now_ps);
    port->waits.valid = in->s_valid && !port->ready;
    if (port->waits.valid) {
        port->waits = beat;
    } else if (in->s_valid) {
        take_beat(port, &beat, now_ps);
    }
    port->ready = may_send(port, now_ps, pauses);
}

/* -- To the design ------------------------------------------------------------------------------*/

uint32_t hdl_port_room(const struct hdl_port *port)
{
    return port->config.frames - queued(&port->in);
}

/* Nobody pads a frame that was cut on its way. */
static uint32_t bytes_to_design(const struct hdl_frame *frame)
{
    return frame->bad && frame->bytes > 0 ? frame->bytes : padded(frame->bytes);
}

bool hdl_port_push(struct hdl_port *port, const struct hdl_frame *frame)
{
    struct queue *queue = &port->in;
    const uint32_t bytes = bytes_to_design(frame);
    if (queued(queue) == port->config.frames || bytes > port->config.frame_bytes) {
        port->counters.refused++;
        return false;
    }
    uint8_t *data = data_at(port, queue, queue->end);
    memcpy(data, frame->data, frame->bytes);
    memset(data + frame->bytes, 0, bytes - frame->bytes);
    port->counters.padded += bytes > frame->bytes;
    *slot_at(port, queue, queue->end) =
        (struct slot){.at_ps = frame->at_ps, .bytes = bytes, .bad = frame->bad};
    queue->end++;
    return true;
}

bool hdl_port_pull(struct hdl_port *port, struct hdl_frame *frame)
{
    if (queued(&port->out) == 0) {
        return false;
    }
    const struct slot *slot = slot_at(port, &port->out, port->out.first);
    *frame = (struct hdl_frame){.at_ps = slot->at_ps,
                                .data = data_at(port, &port->out, port->out.first),
                                .bytes = slot->bytes};
    port->out.first++;
    return true;
}

/* The first bit of the design's first frame comes; with cut_through frames follow one another. */
static uint64_t first_bit_ps(const struct hdl_port *port)
{
    return later(slot_at(port, &port->in, port->in.first)->at_ps, port->come_ps);
}

/* The first frame to the design is over. */
static void frame_over(struct hdl_port *port)
{
    const uint32_t bytes = slot_at(port, &port->in, port->in.first)->bytes;
    if (port->config.cut_through) {
        port->come_ps = first_bit_ps(port) +
                        line_ps(port, PREAMBLE_BYTES + (uint64_t)bytes + FCS_BYTES + GAP_BYTES);
    }
    port->in.first++;
    port->driven = 0;
}

/* The beat on the wires was taken. */
static void beat_taken(struct hdl_port *port)
{
    port->counters.beats_received++;
    if (port->wires.last) {
        port->counters.received_frames++;
        port->counters.received_bytes += port->driven;
        frame_over(port);
    }
    port->wires.valid = false;
}

/* When the first frame's next beat is there. The last one is good or bad by the FCS. */
static uint64_t beat_ps(const struct hdl_port *port)
{
    const struct slot *slot = slot_at(port, &port->in, port->in.first);
    if (!port->config.cut_through) {
        return slot->at_ps;
    }
    const uint32_t end = port->driven + port->beat_bytes;
    const uint32_t bytes = end < slot->bytes ? end : slot->bytes + FCS_BYTES;
    return first_bit_ps(port) + line_ps(port, PREAMBLE_BYTES + (uint64_t)bytes);
}

/* The first frame's next beat may appear: its time has come, and no gap was drawn. */
static bool beat_is_due(struct hdl_port *port, uint64_t now_ps)
{
    if (queued(&port->in) == 0) {
        return false;
    }
    return beat_ps(port) < now_ps && !prng_chance(&port->gap_draws, port->config.gap_ppm);
}

static void drive_beat(struct hdl_port *port)
{
    const struct slot *slot = slot_at(port, &port->in, port->in.first);
    const uint32_t left = slot->bytes - port->driven;
    const uint32_t bytes = left < port->beat_bytes ? left : port->beat_bytes;
    struct beat *wires = &port->wires;
    memset(wires->data, 0, port->beat_bytes);
    memset(wires->keep, 0, (port->beat_bytes + 7) / 8);
    memcpy(wires->data, data_at(port, &port->in, port->in.first) + port->driven, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        wires->keep[i / 8] |= (uint8_t)(1u << i % 8);
    }
    port->driven += bytes;
    wires->valid = true;
    wires->last = port->driven == slot->bytes;
    wires->user = wires->last && slot->bad;
}

static void edge_to_design(struct hdl_port *port, uint64_t now_ps, bool ready)
{
    if (port->wires.valid && ready) {
        beat_taken(port);
    }
    if (!port->wires.valid && beat_is_due(port, now_ps)) {
        drive_beat(port);
    }
}

/* -- Reset --------------------------------------------------------------------------------------*/

/* Frames under way are gone; those that wait for the design wait on. */
static void edge_in_reset(struct hdl_port *port, uint64_t now_ps, bool valid)
{
    if (port->was_reset && valid) {
        port_broken(port, HDL_VALID_RESET, now_ps);
    }
    port->counters.lost_in_reset[0] += port->within;
    port->within = false;
    port->waits.valid = false;
    port->ready = false;
    port->idle = 0;
    if (port->driven > 0) {
        port->counters.lost_in_reset[1]++;
        frame_over(port);
    }
    port->wires.valid = false;
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static void port_check(const struct hdl_port *port)
{
    CHECK(port->out.first <= port->out.end && queued(&port->out) <= port->config.frames);
    CHECK(port->in.first <= port->in.end && queued(&port->in) <= port->config.frames);
    CHECK(port->filled <= port->config.frame_bytes);
    CHECK(!port->within || port->spoilt || queued(&port->out) < port->config.frames);
    CHECK(!port->ready || queued(&port->out) < port->config.frames);
    CHECK(!port->wires.valid || (queued(&port->in) > 0 && port->driven > 0));
    CHECK(port->driven == 0 || port->driven <= slot_at(port, &port->in, port->in.first)->bytes);
    CHECK(!port->waits.valid || !port->was_reset);
    CHECK(port->violations_told <= port->violation_count);
}

/* -- The edge -----------------------------------------------------------------------------------*/

static void drive(const struct hdl_port *port, struct hdl_out *out, uint32_t pauses)
{
    const struct beat *wires = &port->wires;
    out->s_ready = port->ready;
    out->m_valid = wires->valid;
    out->pause = pauses;
    out->sent_frame = port->within ? (uint32_t)port->out.end + 1 : 0;
    out->received_frame = wires->valid ? (uint32_t)port->in.first + 1 : 0;
    if (wires->valid) {
        out->m_last = wires->last;
        out->m_user = wires->user;
        memcpy(out->m_data, wires->data, port->beat_bytes);
        memcpy(out->m_keep, wires->keep, (port->beat_bytes + 7) / 8);
    }
}

void hdl_port_edge(struct hdl_port *port, uint64_t now_ps, const struct hdl_in *in,
                   struct hdl_out *out)
{
    INVARIANTS(port_check(port));
    begin_pauses(port, now_ps);
    const uint32_t pauses = paused(port, now_ps);
    port->counters.edges++;
    if (UNLIKELY(port->config.xgmii)) {
        out->pause = pauses;
        port_xgmii_edge(port, now_ps, in, out);
        return;
    }
    judge_handshake(port, in, now_ps);
    if (in->reset) {
        edge_in_reset(port, now_ps, in->s_valid);
    } else {
        edge_of_design(port, now_ps, in, pauses);
        edge_to_design(port, now_ps, in->m_ready);
    }
    port->was_reset = in->reset;
    drive(port, out, pauses);
    INVARIANTS(port_check(port));
}

const struct hdl_counters *hdl_port_counters(const struct hdl_port *port)
{
    return &port->counters;
}
