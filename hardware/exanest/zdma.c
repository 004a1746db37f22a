/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/zdma.h"

#include <string.h>

enum {
    SLOT_BITS = 6, /* Bits of a transaction ID that are the slot. */
    SLOT_USES = 16,
    TID_MASK = EXANEST_TIDS - 1,
};

#define MEMORY_END (UINT64_C(1) << EXANEST_MEMORY_BITS)

_Static_assert(EXANEST_ZDMA_OUTSTANDING_MAX == 1u << SLOT_BITS, "a slot's number fits");

static bool exanest_zdma_is_valid(const struct exanest_zdma_config *config)
{
    return config->coordinate >> EXANEST_COORDINATE_BITS == 0 &&
           config->packet >= EXANEST_WORD_BYTES && config->packet <= EXANEST_PAYLOAD_BYTES_MAX &&
           (config->packet & (config->packet - 1)) == 0 && config->outstanding >= 1 &&
           config->outstanding <= EXANEST_ZDMA_OUTSTANDING_MAX && config->packet_cycles >= 1 &&
           config->timeout_cycles >= 1;
}

void exanest_zdma_init(struct exanest_zdma *zdma, const struct exanest_zdma_config *config)
{
    CHECK(exanest_zdma_is_valid(config));
    *zdma = (struct exanest_zdma){.config = *config};
    zdma->free = exanest_zdma_slots(zdma);
    exanest_replies_init(&zdma->replies, config->coordinate, config->reply_cycles,
                         config->patience_cycles, EXANEST_REPLIES_MAX);
}

/* -- Software -----------------------------------------------------------------------------------*/

static bool in_memory(uint64_t va, uint64_t bytes)
{
    return va < MEMORY_END && bytes <= MEMORY_END - va;
}

static enum exanest_zdma_start judge_start(const struct exanest_zdma *zdma,
                                           const struct exanest_zdma_transfer *transfer)
{
    if (zdma->state.phase == EXANEST_ZDMA_ACTIVE) {
        return EXANEST_ZDMA_BUSY;
    }
    if (transfer->bytes == 0) {
        return EXANEST_ZDMA_NO_BYTES;
    }
    return in_memory(transfer->source, transfer->bytes) &&
                   in_memory(transfer->target.va, transfer->bytes) &&
                   transfer->target.coordinate >> EXANEST_COORDINATE_BITS == 0
               ? EXANEST_ZDMA_STARTED
               : EXANEST_ZDMA_NOT_MEMORY;
}

enum exanest_zdma_start exanest_zdma_start(struct exanest_zdma *zdma,
                                           const struct exanest_zdma_transfer *transfer)
{
    INVARIANTS(exanest_zdma_check(zdma));
    const enum exanest_zdma_start verdict = judge_start(zdma, transfer);
    zdma->counters.starts[verdict]++;
    if (verdict == EXANEST_ZDMA_STARTED) {
        zdma->transfer = *transfer;
        zdma->state = (struct exanest_zdma_state){.phase = EXANEST_ZDMA_ACTIVE};
        zdma->failing = false;
        zdma->cut = 0;
        zdma->wait = zdma->config.packet_cycles;
    }
    INVARIANTS(exanest_zdma_check(zdma));
    return verdict;
}

/* -- From memory to packets ---------------------------------------------------------------------*/

static void fail(struct exanest_zdma *zdma, enum exanest_status status)
{
    if (!zdma->failing) {
        zdma->failing = true;
        zdma->state.status = (uint8_t)status;
    }
}

static void free_slot(struct exanest_zdma *zdma, uint32_t slot)
{
    zdma->waiting -= zdma->slots[slot].waits;
    zdma->slots[slot].waits = false;
    zdma->free |= UINT64_C(1) << slot;
}

static uint32_t tid_of(const struct exanest_zdma *zdma, uint32_t slot)
{
    return (uint32_t)zdma->slots[slot].uses << SLOT_BITS | slot;
}

/* The next packet's bytes, up to a line of the target. */
static void cut(struct exanest_zdma *zdma)
{
    const uint32_t slot = (uint32_t)__builtin_ctzll(zdma->free);
    const uint64_t va = zdma->transfer.target.va + zdma->cut;
    const uint32_t left = zdma->transfer.bytes - zdma->cut;
    const uint32_t line = zdma->config.packet - (uint32_t)(va & (zdma->config.packet - 1u));
    const uint16_t bytes = (uint16_t)(left < line ? left : line);
    zdma->free &= ~(UINT64_C(1) << slot);
    zdma->slots[slot].uses = (uint8_t)((zdma->slots[slot].uses + 1u) % SLOT_USES);
    zdma->slots[slot].bytes = bytes;
    zdma->buffers[zdma->made++ % EXANEST_ZDMA_BUFFERS] = (struct exanest_zdma_buffer){
        .slot = (uint8_t)slot,
        .bytes = bytes,
        .source = zdma->transfer.source + zdma->cut,
        .va = va,
    };
    zdma->cut += bytes;
    zdma->wait = zdma->config.packet_cycles;
}

bool exanest_zdma_next_read(struct exanest_zdma *zdma, struct exanest_memory_read *read)
{
    if (zdma->asked == zdma->made) {
        return false;
    }
    const struct exanest_zdma_buffer *buffer = &zdma->buffers[zdma->asked % EXANEST_ZDMA_BUFFERS];
    const uint64_t address = buffer->source + zdma->asked_bytes;
    const uint32_t page = EXANEST_PAGE_BYTES - (uint32_t)(address % EXANEST_PAGE_BYTES);
    const uint32_t left = (uint32_t)buffer->bytes - zdma->asked_bytes;
    const uint32_t bytes = left < page ? left : page;
    *read = (struct exanest_memory_read){.address = address, .bytes = (uint16_t)bytes};
    zdma->asked_bytes = (uint16_t)(bytes == left ? 0 : zdma->asked_bytes + bytes);
    zdma->asked += bytes == left;
    return true;
}

void exanest_zdma_on_read_beat(struct exanest_zdma *zdma, const struct exanest_read_beat *beat)
{
    INVARIANTS(exanest_zdma_check(zdma));
    CHECK(zdma->read != zdma->asked || zdma->asked_bytes > 0);
    struct exanest_zdma_buffer *buffer = &zdma->buffers[zdma->read % EXANEST_ZDMA_BUFFERS];
    const uint32_t lane = (uint32_t)((buffer->source + buffer->filled) % EXANEST_WORD_BYTES);
    const uint32_t left = (uint32_t)buffer->bytes - buffer->filled;
    const uint32_t bytes =
        left < EXANEST_WORD_BYTES - lane ? left : (uint32_t)EXANEST_WORD_BYTES - lane;
    memcpy((uint8_t *)buffer->words + buffer->va % EXANEST_WORD_BYTES + buffer->filled,
           (const uint8_t *)&beat->word + lane, bytes);
    buffer->faulty |= beat->response != EXANEST_AXI_OKAY;
    buffer->filled = (uint16_t)(buffer->filled + bytes);
    zdma->read += buffer->filled == buffer->bytes;
    INVARIANTS(exanest_zdma_check(zdma));
}

static void build(struct exanest_zdma *zdma, const struct exanest_zdma_buffer *buffer)
{
    const struct exanest_header header = {
        .target = {zdma->transfer.target.coordinate, exanest_zdma_va(buffer->va)},
        .pdid = zdma->transfer.pdid,
        .type = EXANEST_ZDMA_WRITE,
        .bytes = buffer->bytes,
        .has_footer = true,
        .aux = exanest_zdma_aux(buffer->va),
    };
    struct exanest_footer footer = {
        .tid = (uint16_t)tid_of(zdma, buffer->slot),
        .source = zdma->config.coordinate,
        .first = true,
        .last = true,
    };
    const uint32_t words = exanest_payload_words(buffer->va, buffer->bytes);
    for (uint32_t i = 0; i < words; i++) {
        footer.payload_crc = exanest_payload_crc(footer.payload_crc, buffer->words[i]);
        zdma->packet[i + 1] = buffer->words[i];
    }
    zdma->packet[0] = exanest_header_encode(&header);
    zdma->packet[words + 1] = exanest_footer_encode(&footer);
    zdma->count = (uint8_t)(words + 2);
    zdma->sent = 0;
    zdma->sending = buffer->slot;
}

/* The oldest buffer that is filled becomes the packet that leaves. */
static void leave(struct exanest_zdma *zdma)
{
    const struct exanest_zdma_buffer *buffer = &zdma->buffers[zdma->left % EXANEST_ZDMA_BUFFERS];
    zdma->left++;
    if (buffer->faulty) {
        zdma->counters.read_faults++;
        fail(zdma, EXANEST_NACK_PAGE_FAULT);
    }
    if (zdma->failing) {
        free_slot(zdma, buffer->slot);
        return;
    }
    build(zdma, buffer);
}

static void on_sent(struct exanest_zdma *zdma)
{
    zdma->slots[zdma->sending].waits = true;
    zdma->waiting++;
    zdma->deadline = zdma->now + zdma->config.timeout_cycles;
    zdma->counters.packets++;
    zdma->counters.bytes += zdma->slots[zdma->sending].bytes;
    zdma->count = zdma->sent = 0;
}

/* -- Inputs -------------------------------------------------------------------------------------*/

/* For one more answer, when those that are due have been given. */
static bool has_room(const struct exanest_zdma *zdma)
{
    return zdma->arrived - zdma->answered < exanest_replies_room(&zdma->replies);
}

bool exanest_zdma_ready(const struct exanest_zdma *zdma, const struct exanest_beat *beat)
{
    return beat->part != EXANEST_HEADER ||
           (zdma->arrived - zdma->answered < EXANEST_ZDMA_ARRIVALS &&
            (has_room(zdma) || exanest_replies_stuck(&zdma->replies)));
}

static bool belongs_here(const struct exanest_header *header)
{
    return exanest_va_is_peripheral(header->target.va) &&
           exanest_va_peripheral(header->target.va) == EXANEST_ZDMA &&
           (header->type == EXANEST_ZDMA_WRITE ||
            (header->type == EXANEST_ACKNOWLEDGEMENT && !header->has_footer));
}

/* Where in memory the bytes go. */
static uint64_t memory_va(const struct exanest_header *header)
{
    return (uint64_t)header->aux << 32 | (uint32_t)header->target.va;
}

static enum exanest_zdma_verdict judge_answer(const struct exanest_zdma *zdma,
                                              const struct exanest_header *header)
{
    const uint32_t tid = header->aux & TID_MASK;
    const uint32_t slot = tid % EXANEST_ZDMA_OUTSTANDING_MAX;
    if (header->aux >> 10 >= EXANEST_STATUS_COUNT) {
        return EXANEST_ZDMA_UNEXPECTED;
    }
    return zdma->slots[slot].waits && tid == tid_of(zdma, slot) &&
                   header->pdid == zdma->transfer.pdid
               ? EXANEST_ZDMA_ANSWER
               : EXANEST_ZDMA_STALE;
}

/* STORED: it is to be written. */
static enum exanest_zdma_verdict judge(const struct exanest_zdma *zdma, uint8_t outcome)
{
    const struct exanest_header *header = &zdma->intake.header;
    if (outcome <= EXANEST_BAD_HEADER) {
        return EXANEST_ZDMA_DROPPED;
    }
    if (!belongs_here(header)) {
        return EXANEST_ZDMA_UNEXPECTED;
    }
    if (header->type == EXANEST_ACKNOWLEDGEMENT) {
        return judge_answer(zdma, header);
    }
    if (outcome != EXANEST_WHOLE) {
        return EXANEST_ZDMA_CORRUPT;
    }
    const bool is_good = header->bytes > 0 && in_memory(memory_va(header), header->bytes);
    return is_good ? EXANEST_ZDMA_STORED : EXANEST_ZDMA_MALFORMED;
}

static bool is_zdma(const struct exanest_header *header)
{
    return header->type == EXANEST_ZDMA_WRITE || header->type == EXANEST_ZDMA_READ;
}

static void reply(struct exanest_zdma *zdma, const struct exanest_header *header,
                  const struct exanest_footer *footer, enum exanest_status status)
{
    if (is_zdma(header)) {
        exanest_replies_put_zdma(&zdma->replies, header->pdid, footer, status);
    } else if (!exanest_replies_answer(&zdma->replies, header, footer, status)) {
        return;
    }
    zdma->counters.replies[status]++;
}

static void on_answer(struct exanest_zdma *zdma)
{
    const uint32_t aux = zdma->intake.header.aux;
    const uint32_t slot = aux % EXANEST_ZDMA_OUTSTANDING_MAX;
    const enum exanest_status status = (enum exanest_status)(aux >> 10);
    zdma->counters.answers[status]++;
    zdma->deadline = zdma->now + zdma->config.timeout_cycles;
    if (status == EXANEST_ACK) {
        zdma->state.answered += zdma->slots[slot].bytes;
    } else {
        fail(zdma, status);
    }
    free_slot(zdma, slot);
}

static void on_end(struct exanest_zdma *zdma, uint8_t outcome)
{
    const struct exanest_header *header = &zdma->intake.header;
    const struct exanest_footer *footer = &zdma->intake.footer;
    const enum exanest_zdma_verdict verdict = judge(zdma, outcome);
    struct exanest_zdma_arrival *arrival = &zdma->arrivals[zdma->arrived % EXANEST_ZDMA_ARRIVALS];
    if (verdict != EXANEST_ZDMA_DROPPED && !has_room(zdma) &&
        (is_zdma(header) || exanest_asker(header) != EXANEST_ASKER_NONE)) {
        zdma->counters.unanswered++;
        return;
    }
    switch (verdict) {
    case EXANEST_ZDMA_STORED: /* It is counted when memory has answered. */
        arrival->header = *header;
        arrival->footer = *footer;
        zdma->arrived++;
        return;
    case EXANEST_ZDMA_ANSWER: on_answer(zdma); break;
    case EXANEST_ZDMA_CORRUPT: reply(zdma, header, footer, EXANEST_NACK_CRC); break;
    case EXANEST_ZDMA_UNEXPECTED:
        if (!header->has_footer) {
            break; /* It says not who sent it. */
        }
        reply(zdma, header, footer, EXANEST_NACK_DECODE);
        break;
    case EXANEST_ZDMA_MALFORMED: reply(zdma, header, footer, EXANEST_NACK_DECODE); break;
    case EXANEST_ZDMA_FAULT:
    case EXANEST_ZDMA_DROPPED:
    case EXANEST_ZDMA_STALE:
    case EXANEST_ZDMA_VERDICT_COUNT: break;
    }
    zdma->counters.verdicts[verdict]++;
}

void exanest_zdma_take(struct exanest_zdma *zdma, const struct exanest_beat *beat)
{
    INVARIANTS(exanest_zdma_check(zdma));
    CHECK(exanest_zdma_ready(zdma, beat));
    const struct exanest_intake_step step = exanest_intake_take(&zdma->intake, beat);
    zdma->counters.verdicts[EXANEST_ZDMA_DROPPED] += step.interrupted;
    if (step.payload) {
        zdma->arrivals[zdma->arrived % EXANEST_ZDMA_ARRIVALS].words[zdma->intake.words - 1u] =
            beat->word;
    }
    if (step.ends) {
        on_end(zdma, step.outcome);
    }
    INVARIANTS(exanest_zdma_check(zdma));
}

/* -- It goes to memory --------------------------------------------------------------------------*/

bool exanest_zdma_next_write(struct exanest_zdma *zdma, struct exanest_memory_write *write)
{
    if (zdma->written == zdma->arrived) {
        return false;
    }
    const struct exanest_zdma_arrival *arrival =
        &zdma->arrivals[zdma->written % EXANEST_ZDMA_ARRIVALS];
    const uint64_t va = memory_va(&arrival->header);
    const uint32_t at = zdma->written_words++;
    const bool last = zdma->written_words == exanest_payload_words(va, arrival->header.bytes);
    *write = (struct exanest_memory_write){
        .va = va - va % EXANEST_WORD_BYTES + (uint64_t)at * EXANEST_WORD_BYTES,
        .pdid = arrival->header.pdid,
        .lanes = exanest_lanes(va, arrival->header.bytes, at),
        .first = at == 0,
        .last = last,
        .word = arrival->words[at],
    };
    if (last) {
        zdma->written++;
        zdma->written_words = 0;
    }
    return true;
}

static enum exanest_status status_of(enum exanest_axi_response response)
{
    switch (response) {
    case EXANEST_AXI_OKAY: return EXANEST_ACK;
    case EXANEST_AXI_SLAVE_ERROR: return EXANEST_NACK_PAGE_FAULT;
    case EXANEST_AXI_DECODE_ERROR: return EXANEST_NACK_DECODE;
    }
    UNREACHABLE("a response outside its enum");
}

void exanest_zdma_on_write_response(struct exanest_zdma *zdma, enum exanest_axi_response response)
{
    INVARIANTS(exanest_zdma_check(zdma));
    CHECK(zdma->answered != zdma->written);
    const struct exanest_zdma_arrival *arrival =
        &zdma->arrivals[zdma->answered++ % EXANEST_ZDMA_ARRIVALS];
    const enum exanest_status status = status_of(response);
    zdma->counters.verdicts[status == EXANEST_ACK ? EXANEST_ZDMA_STORED : EXANEST_ZDMA_FAULT]++;
    reply(zdma, &arrival->header, &arrival->footer, status);
    INVARIANTS(exanest_zdma_check(zdma));
}

/* -- Outputs ------------------------------------------------------------------------------------*/

bool exanest_zdma_offer(const struct exanest_zdma *zdma, struct exanest_beat *beat)
{
    if (zdma->outlet == EXANEST_ZDMA_REPLIES) {
        return exanest_replies_offer(&zdma->replies, beat);
    }
    if (zdma->outlet == EXANEST_ZDMA_NOTHING) {
        return false;
    }
    const bool last = zdma->sent + 1 == zdma->count;
    const enum exanest_part behind = last ? EXANEST_FOOTER : EXANEST_PAYLOAD;
    *beat = (struct exanest_beat){
        .part = zdma->sent == 0 ? EXANEST_HEADER : behind,
        .last = last,
        .word = zdma->packet[zdma->sent],
    };
    return true;
}

/* Answers first: the peer needs them to go on. */
static void choose(struct exanest_zdma *zdma)
{
    struct exanest_beat beat;
    if (exanest_replies_offer(&zdma->replies, &beat)) {
        zdma->outlet = EXANEST_ZDMA_REPLIES;
    } else {
        zdma->outlet = zdma->count > 0 ? EXANEST_ZDMA_PACKETS : EXANEST_ZDMA_NOTHING;
    }
}

void exanest_zdma_taken(struct exanest_zdma *zdma)
{
    INVARIANTS(exanest_zdma_check(zdma));
    struct exanest_beat beat;
    CHECK(exanest_zdma_offer(zdma, &beat));
    if (zdma->outlet == EXANEST_ZDMA_REPLIES) {
        exanest_replies_taken(&zdma->replies);
    } else if (++zdma->sent == zdma->count) {
        on_sent(zdma);
    }
    if (beat.last) {
        zdma->outlet = EXANEST_ZDMA_NOTHING;
    }
    INVARIANTS(exanest_zdma_check(zdma));
}

/* Answers that did not come are not waited for any more. */
static void time_out(struct exanest_zdma *zdma)
{
    zdma->counters.timeouts++;
    zdma->failing = true;
    zdma->state.timed_out = true;
    for (uint32_t slot = 0; slot < zdma->config.outstanding; slot++) {
        if (zdma->slots[slot].waits) {
            free_slot(zdma, slot);
        }
    }
}

static void step_transfer(struct exanest_zdma *zdma)
{
    if (zdma->wait > 0) {
        zdma->wait--;
    }
    if (zdma->wait == 0 && !zdma->failing && zdma->cut < zdma->transfer.bytes && zdma->free != 0 &&
        zdma->made - zdma->left < EXANEST_ZDMA_BUFFERS) {
        cut(zdma);
    }
    if (zdma->count == 0 && zdma->left != zdma->read) {
        leave(zdma);
    }
    if (zdma->waiting > 0 && zdma->now >= zdma->deadline) {
        time_out(zdma);
    }
    if (zdma->free == exanest_zdma_slots(zdma) &&
        (zdma->failing || zdma->cut == zdma->transfer.bytes)) {
        zdma->state.phase = zdma->failing ? EXANEST_ZDMA_FAILED : EXANEST_ZDMA_DONE;
        zdma->counters.failed += zdma->failing;
        zdma->counters.done += !zdma->failing;
    }
}

void exanest_zdma_step(struct exanest_zdma *zdma)
{
    INVARIANTS(exanest_zdma_check(zdma));
    zdma->now++;
    exanest_replies_step(&zdma->replies);
    if (zdma->state.phase == EXANEST_ZDMA_ACTIVE) {
        step_transfer(zdma);
    }
    if (zdma->outlet == EXANEST_ZDMA_NOTHING) {
        choose(zdma);
    }
    INVARIANTS(exanest_zdma_check(zdma));
}
