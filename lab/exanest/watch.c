/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"
#include "lab/exanest/machine.h"

#define NO_TRACK UINT32_MAX
#define CHAINS   256u

/* Text that lives until the watch is closed, since a trace keeps it by pointer. */
struct name {
    struct name *next;
    uint32_t key;
    char text[56];
};

struct exanest_watch {
    struct sim *sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct exanest_fpga_watch *fpgas;
    struct exanest_lane *lanes; /* First those of links, then of wires between routers. */
    uint32_t fpga_count, lane_count;
    struct name *names[CHAINS];
};

/* -- Names --------------------------------------------------------------------------------------*/

static const char *const type_names[] = {
    [0] = "damaged packet",
    [EXANEST_WRITE] = "write",
    [EXANEST_READ_REQUEST] = "read request",
    [EXANEST_CONTROL] = "control",
    [EXANEST_NOTIFICATION] = "notification",
    [EXANEST_ZDMA_READ] = "zDMA read",
    [EXANEST_ZDMA_WRITE] = "zDMA write",
    [EXANEST_ZDMA_RESPONSE] = "zDMA response",
    [EXANEST_ACKNOWLEDGEMENT] = "acknowledgement",
    [EXANEST_RELEASE] = "release",
    [EXANEST_FLOW_RATE] = "flow rate",
};

enum {
    CONTEXT = COUNT_OF(type_names), /* Not a packet, but what the receiver keeps of a block. */
};

static const char *const status_names[EXANEST_STATUS_COUNT] = {
    [EXANEST_ACK] = "ACK",
    [EXANEST_NACK_PAGE_FAULT] = "NACK for a page fault",
    [EXANEST_NACK_NO_CONTEXT] = "NACK for want of a context",
    [EXANEST_NACK_CRC] = "NACK for a CRC",
    [EXANEST_NACK_DECODE] = "NACK for an address",
    [EXANEST_NACK_FULL] = "NACK for a full mailbox",
};

/* "write, sequence 3, TID": the number that follows is the span's. Kinds are types, CONTEXT, and
 * behind it the statuses of acknowledgements. */
static const char *name_of(struct exanest_watch *watch, uint32_t kind, uint32_t sequence)
{
    const uint32_t key = kind << 16 | sequence;
    struct name **chain = &watch->names[(sequence ^ kind * 37) % CHAINS];
    for (struct name *name = *chain; name != NULL; name = name->next) {
        if (name->key == key) {
            return name->text;
        }
    }
    struct name *name = malloc(sizeof(*name));
    CHECK(name != NULL);
    name->next = *chain;
    name->key = key;
    *chain = name;
    const char *what = kind < CONTEXT    ? type_names[kind]
                       : kind == CONTEXT ? "block"
                                         : status_names[kind - CONTEXT - 1];
    snprintf(name->text, sizeof(name->text), "%s, sequence %u, TID", what, sequence);
    return name->text;
}

static uint32_t kind_of(uint32_t type, uint32_t status)
{
    return type == EXANEST_ACKNOWLEDGEMENT && status < EXANEST_STATUS_COUNT ? CONTEXT + 1 + status
                                                                            : type;
}

/* -- Packets ------------------------------------------------------------------------------------*/

static struct exanest_word word_at(const struct exanest_lane *lane, uint32_t at)
{
    return (struct exanest_word){lane->words[2 * at], lane->words[2 * at + 1]};
}

static void add_span(struct exanest_lane *lane, uint64_t end_ps)
{
    struct exanest_watch *watch = lane->watch;
    struct exanest_header header;
    struct exanest_footer footer;
    const char *what = type_names[0];
    uint64_t number = 0;
    const uint32_t words = lane->count / 2u;
    if (exanest_header_decode(word_at(lane, 0), &header) == EXANEST_GOOD) {
        if (!header.has_footer) { /* The packetizer's; `aux` says for which of its channels. */
            what = header.aux >> 10 == EXANEST_ACK ? "ACK, channel" : "NACK, channel";
            number = header.aux & 0x3ff;
        } else if (exanest_footer_decode(word_at(lane, words - 1), &footer) == EXANEST_GOOD) {
            what = name_of(watch, kind_of(header.type, footer.status), footer.sequence);
            number = footer.tid;
        }
    }
    sim_trace_span(watch->trace, lane->track, what, number, lane->begin_ps, end_ps);
}

static void add_frame(const struct exanest_lane *lane, uint64_t at_ps)
{
    uint8_t bytes[EXANEST_PACKET_WORDS_MAX * EXANEST_WORD_BYTES];
    for (uint32_t i = 0; i < lane->count; i++) {
        store_le32(bytes + 8 * i, (uint32_t)lane->words[i]);
        store_le32(bytes + 8 * i + 4, (uint32_t)(lane->words[i] >> 32));
    }
    sim_capture_packet(lane->watch->capture, at_ps, bytes, 8u * lane->count);
}

void exanest_lane_take(struct exanest_lane *lane, const uint64_t *words, uint32_t count, bool last,
                       uint64_t begin_ps, uint64_t end_ps)
{
    CHECK(lane->count + count <= COUNT_OF(lane->words));
    lane->begin_ps = lane->count == 0 ? begin_ps : lane->begin_ps;
    for (uint32_t i = 0; i < count; i++) {
        lane->words[lane->count++] = words[i];
    }
    if (!last) {
        return;
    }
    if (lane->track != NO_TRACK) {
        add_span(lane, end_ps);
    }
    if (lane->captures) {
        add_frame(lane, end_ps);
    }
    lane->count = 0;
}

void exanest_lane_take_beat(struct exanest_lane *lane, const struct exanest_beat *beat)
{
    const uint64_t words[2] = {beat->word.low, beat->word.high};
    const uint64_t now_ps = lane->watch->sim->now_ps;
    exanest_lane_take(lane, words, 2, beat->last, now_ps, now_ps);
}

void exanest_lane_stop(struct exanest_lane *lane, bool stopped, uint64_t now_ps)
{
    if (lane->stopped && !stopped && lane->stopped_track != NO_TRACK) {
        sim_trace_span(lane->watch->trace, lane->stopped_track, "XOFF", 0, lane->stopped_ps,
                       now_ps);
    }
    lane->stopped_ps = lane->stopped ? lane->stopped_ps : now_ps;
    lane->stopped = stopped;
}

/* -- R5s and contexts ---------------------------------------------------------------------------*/

static const char *store_name(const struct exanest_firmware_action *action)
{
    static const char *const words[2][4] = {
        {"store W1 of TID", "store W2 of TID", "store W3 of TID", "store W4 of TID"},
        {"store control word 1 of TID", "store control word 2 of TID",
         "store control word 3 of TID", "store"}};
    return words[action->control][action->word % 4];
}

void exanest_watch_action(struct exanest_fpga_watch *fpga,
                          const struct exanest_firmware_action *action, uint64_t value,
                          uint64_t began_ps)
{
    struct exanest_watch *watch = fpga->watch;
    const struct exanest_response response = exanest_response_decode((uint32_t)value);
    const char *what = NULL;
    uint64_t number = action->tid;
    switch ((enum exanest_do)action->what) {
    case EXANEST_DO_READ_RESPONSE:
        what = response.valid ? "read response, TID" : "read response, none:";
        number = response.tid;
        break;
    case EXANEST_DO_READ_REQUEST:
        what = "read request, words";
        number = action->count;
        break;
    case EXANEST_DO_STORE: what = store_name(action); break;
    case EXANEST_DO_READ_DESCRIPTOR: what = "read descriptor, TID"; break;
    case EXANEST_DO_READ_CONTEXT: what = "read context, TID"; break;
    case EXANEST_DO_POLL: what = "look at scratchpad, channel"; break;
    case EXANEST_DO_READ_TRANSFER: what = "read transfer, channel"; break;
    case EXANEST_DO_UPDATE: what = "update transfer, channel"; break;
    case EXANEST_DO_WORK:
        what = "work, ns";
        number = action->cost_ns;
        break;
    case EXANEST_DO_SLEEP: return;
    }
    if (action->what == EXANEST_DO_POLL || action->what == EXANEST_DO_READ_TRANSFER ||
        action->what == EXANEST_DO_UPDATE) {
        number = action->channel;
    }
    if (began_ps < watch->sim->now_ps) {
        sim_trace_span(watch->trace, fpga->actions, what, number, began_ps, watch->sim->now_ps);
    }
}

static void end_context(struct exanest_fpga_watch *fpga, struct exanest_watched_context *place)
{
    struct exanest_watch *watch = fpga->watch;
    if (place->lane < EXANEST_CONTEXT_LANES) {
        sim_trace_span(watch->trace, fpga->contexts[place->lane],
                       name_of(watch, CONTEXT, place->sequence), place->tid, place->begin_ps,
                       watch->sim->now_ps);
        fpga->busy &= ~(1u << place->lane);
    }
    place->valid = false;
}

static void begin_context(struct exanest_fpga_watch *fpga, struct exanest_watched_context *place,
                          const struct exanest_context *context)
{
    const uint32_t free = ~fpga->busy & ((1u << EXANEST_CONTEXT_LANES) - 1);
    *place = (struct exanest_watched_context){
        .valid = true,
        .lane = (uint8_t)(free == 0 ? EXANEST_CONTEXT_LANES : (uint32_t)__builtin_ctz(free)),
        .tid = context->tid,
        .sequence = context->sequence,
        .source = context->source,
        .begin_ps = fpga->watch->sim->now_ps,
    };
    fpga->busy |= free & -free;
}

void exanest_watch_contexts(struct exanest_fpga_watch *fpga,
                            const struct exanest_receiver *receiver)
{
    uint64_t judged = receiver->counters.aged;
    for (uint32_t i = 0; i < EXANEST_MEANING_COUNT; i++) {
        judged += receiver->counters.meanings[i];
    }
    if (judged == fpga->judged) {
        return;
    }
    fpga->judged = judged;
    if (receiver->table.used != fpga->used) {
        fpga->used = receiver->table.used;
        sim_trace_value(fpga->watch->trace, fpga->used_track, fpga->watch->sim->now_ps, fpga->used);
    }
    for (uint32_t i = 0; i < EXANEST_CONTEXTS_MAX; i++) {
        struct exanest_watched_context *place = &fpga->places[i];
        const struct exanest_context *context = exanest_receiver_context(receiver, i);
        if (place->valid &&
            (!context->valid || context->tid != place->tid || context->source != place->source ||
             context->sequence != place->sequence)) {
            end_context(fpga, place);
        }
        if (context->valid && !place->valid) {
            begin_context(fpga, place, context);
        }
    }
}

/* -- Opening and closing ------------------------------------------------------------------------*/

static struct exanest_lane lane_of(struct exanest_watch *watch, uint32_t fpga, const char *name,
                                   const char *stopped_name, bool captures)
{
    const bool traced = watch->trace != NULL && fpga < EXANEST_WATCHED_FPGAS;
    return (struct exanest_lane){
        .watch = watch,
        .captures = captures && watch->capture != NULL,
        .track = traced ? sim_trace_track(watch->trace, "FPGA", (int)fpga, name, 0) : NO_TRACK,
        .stopped_track = traced && stopped_name != NULL
                             ? sim_trace_track(watch->trace, "FPGA", (int)fpga, stopped_name, 0)
                             : NO_TRACK,
    };
}

static void watch_fpga(struct exanest_watch *watch, struct exanest_fpga *fpga, uint32_t number)
{
    static const char *const sends[] = {"send unit", "send unit, path 1"};
    static const char *const contexts[EXANEST_CONTEXT_LANES] = {
        "context a", "context b", "context c", "context d", "context e", "context f",
        "context g", "context h", "context i", "context j", "context k", "context l",
        "context m", "context n", "context o", "context p"};
    struct exanest_fpga_watch *own = &watch->fpgas[number];
    own->watch = watch;
    own->actions = sim_trace_track(watch->trace, "FPGA", (int)number, "R5", 0);
    for (uint32_t i = 0; i < fpga->exadma.config.ports; i++) {
        own->sends[i] = lane_of(watch, number, sends[i], NULL, false);
    }
    own->used_track = sim_trace_track(watch->trace, "FPGA", (int)number, "contexts in use", 9);
    for (uint32_t i = 0; i < EXANEST_CONTEXT_LANES; i++) {
        own->contexts[i] = sim_trace_track(watch->trace, "FPGA", (int)number, contexts[i], 0);
    }
    fpga->watch = own;
}

/* Both directions of all links of a QFDB. */
static struct exanest_lane *watch_links(struct exanest_watch *watch, struct exanest_fabric *fabric,
                                        uint32_t qfdb, struct exanest_lane *lane)
{
    static const char *const names[2][EXANEST_FPGAS][2] = {
        {{"link to F1", "link to F1 stopped"},
         {"link to F2", "link to F2 stopped"},
         {"link to F3", "link to F3 stopped"},
         {"link to F4", "link to F4 stopped"}},
        {{"second link to F1", "second link to F1 stopped"},
         {"second link to F2", "second link to F2 stopped"},
         {"second link to F3", "second link to F3 stopped"},
         {"second link to F4", "second link to F4 stopped"}}};
    for (uint32_t i = 0; i < EXANEST_QFDB_PAIRS * fabric->config.links_per_pair; i++) {
        for (uint32_t end = 0; end < 2; end++) {
            const uint32_t from = EXANEST_FPGAS * qfdb + exanest_fabric_end(i, end);
            const char *const *name = names[i / EXANEST_QFDB_PAIRS][exanest_fabric_end(i, !end)];
            *lane = lane_of(watch, from, name[0], name[1], true);
            fabric->qfdbs[qfdb].links[i].ways[end].lane = lane;
            lane++;
        }
    }
    return lane;
}

/* Watches the words that leave a router by its remote ports, a lane for each virtual channel. */
static struct exanest_lane *watch_wires(struct exanest_watch *watch, struct exanest_fabric *fabric,
                                        uint32_t qfdb, struct exanest_lane *lane)
{
    static const char *const names[2 * EXANEST_ROUTER_DIMENSIONS][EXANEST_ROUTER_CHANNELS_MAX] = {
        {"router to x + 1", "router to x + 1, channel 1"},
        {"router to x - 1", "router to x - 1, channel 1"},
        {"router to y + 1", "router to y + 1, channel 1"},
        {"router to y - 1", "router to y - 1, channel 1"},
        {"router to z + 1", "router to z + 1, channel 1"},
        {"router to z - 1", "router to z - 1, channel 1"}};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        fabric->qfdbs[qfdb].wires[i].lanes = lane;
        for (uint32_t channel = 0; channel < EXANEST_ROUTER_CHANNELS_MAX; channel++) {
            *lane++ = lane_of(watch, EXANEST_FPGAS * qfdb, names[i][channel], NULL, true);
        }
    }
    return lane;
}

struct exanest_watch *exanest_watch_open(struct exanest_machine *machine, struct sim_trace *trace,
                                         struct sim_capture *capture)
{
    struct exanest_fabric *fabric = &machine->fabric;
    if (trace == NULL && capture == NULL) {
        return NULL;
    }
    struct exanest_watch *watch = calloc(1, sizeof(*watch));
    CHECK(watch != NULL);
    watch->sim = machine->sim;
    watch->trace = trace;
    watch->capture = capture;
    const uint32_t fpgas = exanest_fabric_fpgas(fabric);
    watch->fpga_count = trace == NULL                   ? 0
                        : fpgas < EXANEST_WATCHED_FPGAS ? fpgas
                                                        : EXANEST_WATCHED_FPGAS;
    watch->fpgas = calloc(EXANEST_WATCHED_FPGAS, sizeof(*watch->fpgas));
    const uint32_t wires = 2 * EXANEST_ROUTER_DIMENSIONS * EXANEST_ROUTER_CHANNELS_MAX;
    const uint32_t ways = 2 * EXANEST_QFDB_PAIRS * fabric->config.links_per_pair;
    watch->lanes = calloc((size_t)fabric->qfdb_count * (ways + wires), sizeof(*watch->lanes));
    CHECK(watch->fpgas != NULL && watch->lanes != NULL);
    for (uint32_t i = 0; i < watch->fpga_count; i++) {
        watch_fpga(watch, exanest_fabric_fpga(fabric, i), i);
    }
    struct exanest_lane *lane = watch->lanes;
    for (uint32_t i = 0; i < fabric->qfdb_count; i++) {
        lane = watch_links(watch, fabric, i, lane);
        lane = fabric->qfdbs[i].routes ? watch_wires(watch, fabric, i, lane) : lane;
    }
    watch->lane_count = (uint32_t)(lane - watch->lanes);
    return watch;
}

void exanest_watch_end(struct exanest_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    for (uint32_t i = 0; i < watch->lane_count; i++) {
        exanest_lane_stop(&watch->lanes[i], false, watch->sim->now_ps);
    }
    for (uint32_t i = 0; i < watch->fpga_count; i++) {
        for (uint32_t k = 0; k < EXANEST_CONTEXTS_MAX; k++) {
            if (watch->fpgas[i].places[k].valid) {
                end_context(&watch->fpgas[i], &watch->fpgas[i].places[k]);
            }
        }
    }
}

void exanest_watch_close(struct exanest_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    for (uint32_t i = 0; i < CHAINS; i++) {
        for (struct name *name = watch->names[i]; name != NULL;) {
            struct name *next = name->next;
            free(name);
            name = next;
        }
    }
    free(watch->lanes);
    free(watch->fpgas);
    free(watch);
}
