/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lab/forth/host.h"

#define SLOT_BYTES   4096u
#define TARGET_SLOTS 8u /* Target slots for each source. */
#define TARGETS_AT   0x40000u
#define SOURCES_AT   (TARGETS_AT + FORTH_PORTS_MAX * TARGET_SLOTS * SLOT_BYTES)

static uint32_t flow_of(uint32_t from, uint32_t to)
{
    return from << 8 | to;
}

static uint32_t target_of(uint32_t from, uint64_t number)
{
    return TARGETS_AT + (from * TARGET_SLOTS + (uint32_t)(number % TARGET_SLOTS)) * SLOT_BYTES;
}

static uint32_t pick_size(struct forth_stream *stream)
{
    return stream->least +
           (stream->most == stream->least
                ? 0
                : (uint32_t)prng_below(&stream->prng, stream->most - stream->least + 1));
}

/* How many destinations further one is for which not too much is pending; the count: none is. */
static uint32_t turns_to_room(const struct forth_stream *stream, const struct forth_node *node)
{
    uint32_t turns = 0;
    while (turns < stream->destination_count &&
           forth_node_pending_to(
               node, stream->destinations[(stream->turn + turns) % stream->destination_count]) >=
               FORTH_STREAM_PENDING) {
        turns++;
    }
    return turns;
}

/* The next packet. False: there is none now. */
static bool choose(struct forth_stream *stream, const struct forth_node *node, uint32_t *to,
                   uint32_t *qwords)
{
    if (stream->host != NULL) {
        return forth_host_next(stream->host, to, qwords);
    }
    if (stream->posted == stream->limit ||
        turns_to_room(stream, node) == stream->destination_count) {
        return false;
    }
    if (stream->at_random) {
        stream->turn = (uint32_t)prng_below(&stream->prng, stream->destination_count);
    }
    stream->turn = (stream->turn + turns_to_room(stream, node)) % stream->destination_count;
    *to = stream->destinations[stream->turn];
    *qwords = pick_size(stream);
    stream->turn = (stream->turn + 1) % stream->destination_count;
    return true;
}

static uint32_t take_source(struct forth_stream *stream)
{
    CHECK(stream->free_count > 0);
    return stream->free[--stream->free_count];
}

/* Its data may change from now on. */
static void fetched(struct forth_node *node, const struct forth_request *request)
{
    struct forth_stream *stream = node->program.owner;
    stream->free[stream->free_count++] = (uint16_t)((request->source - SOURCES_AT) / SLOT_BYTES);
}

static bool post(struct forth_node *node, struct forth_request *request)
{
    struct forth_stream *stream = node->program.owner;
    uint32_t to, qwords;
    if (!choose(stream, node, &to, &qwords)) {
        return false;
    }
    const uint64_t source = SOURCES_AT + (uint64_t)take_source(stream) * SLOT_BYTES;
    const uint64_t number = stream->numbers[to]++;
    uint64_t payload[FORTH_WORDS_MAX];
    sim_payload_fill(payload, qwords, flow_of(stream->self, to), number);
    memcpy(forth_node_memory(node, source, 8 * (size_t)qwords), payload, 8 * (size_t)qwords);
    *request = (struct forth_request){.source = source,
                                      .destination = target_of(stream->self, number),
                                      .words = (uint16_t)qwords,
                                      .node = (uint8_t)to,
                                      .start = true};
    stream->posted++;
    return true;
}

void forth_stream_judge(struct forth_stream *stream, struct forth_node *node,
                        const struct forth_header *header, bool flagged)
{
    if (flagged) {
        stream->flagged++; /* The packet is known to be wrong: it is judged no further. */
        return;
    }
    /* For an address below TARGETS_AT the difference wraps, and is large. */
    const uint32_t from = (header->destination - TARGETS_AT) / SLOT_BYTES / TARGET_SLOTS;
    if (from >= FORTH_PORTS_MAX || header->destination % SLOT_BYTES != 0) {
        stream->strays++;
        return;
    }
    const size_t bytes = 8 * (size_t)header->words;
    uint64_t payload[FORTH_WORDS_MAX];
    memcpy(payload, forth_node_memory(node, header->destination, bytes), bytes);
    const enum sim_payload_verdict verdict =
        sim_sink_judge(&stream->sinks[from], payload, header->words, flow_of(from, stream->self));
    sim_note(node->fabric->sim, payload[0] + verdict);
    const uint64_t now = node->fabric->sim->now_ps;
    sim_rate_count(&stream->arrived[from], now, bytes);
    sim_rate_count(&stream->all, now, bytes);
    if (stream->host != NULL && (verdict == SIM_PAYLOAD_GOOD || verdict == SIM_PAYLOAD_LATER)) {
        forth_host_came(stream->host, from, stream->sinks[from].expected - 1);
    }
}

static void delivered(struct forth_node *node, const struct forth_header *header, bool flagged)
{
    forth_stream_judge(node->program.owner, node, header, flagged);
}

void forth_stream_open(struct forth_stream *stream, struct forth_machine *machine, uint32_t self,
                       uint32_t qwords, uint64_t warm_ps)
{
    *stream = (struct forth_stream){.machine = machine,
                                    .self = self,
                                    .least = qwords,
                                    .most = qwords,
                                    .limit = UINT64_MAX,
                                    .all = {.from_ps = warm_ps}};
    prng_init(&stream->prng, machine->run->seed * 31 + self);
    for (uint32_t i = 0; i < FORTH_PORTS_MAX; i++) {
        stream->arrived[i].from_ps = warm_ps;
    }
    machine->nodes[self].program = (struct forth_program){
        .post = post, .fetched = fetched, .delivered = delivered, .owner = stream};
    while (stream->free_count < FORTH_STREAM_SOURCES) {
        stream->free[stream->free_count] = (uint16_t)stream->free_count;
        stream->free_count++;
    }
}

void forth_stream_to(struct forth_stream *stream, uint32_t node)
{
    CHECK(stream->destination_count < FORTH_PORTS_MAX);
    stream->destinations[stream->destination_count++] = (uint8_t)node;
    forth_node_kick(&stream->machine->nodes[stream->self]);
}

/* As the links know: a packet that is lost behind the last one that came is missed by no sink. */
static uint64_t packets_lost(const struct forth_machine *machine)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        lost += machine->up[i].bad_headers + machine->up[i].bad_sops;
        lost += machine->down[i].bad_headers + machine->down[i].bad_sops;
    }
    return lost;
}

void forth_stream_check(const struct forth_stream *stream, struct lab_run *run)
{
    const uint64_t lost = packets_lost(stream->machine);
    if (lost + stream->flagged > 0) {
        lab_fail(run, "links lost %llu packets, and %llu came to node %u flagged as wrong",
                 (unsigned long long)lost, (unsigned long long)stream->flagged, stream->self);
    }
    if (stream->strays > 0) {
        lab_fail(run, "node %u: %llu packets for addresses that nobody meant", stream->self,
                 (unsigned long long)stream->strays);
    }
    for (uint32_t i = 0; i < FORTH_PORTS_MAX; i++) {
        const struct sim_sink *sink = &stream->sinks[i];
        if (sink->wrong_bytes + sink->earlier + sink->missing > 0) {
            lab_fail(run,
                     "node %u from %u: %llu packets with wrong bytes, %llu again, %llu missing",
                     stream->self, i, (unsigned long long)sink->wrong_bytes,
                     (unsigned long long)sink->earlier, (unsigned long long)sink->missing);
        }
    }
}

double forth_stream_rate(const struct sim_rate *rate)
{
    return sim_rate_per_second(rate) / FORTH_MB;
}
