/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/system_mailbox.h"

#include <string.h>

enum {
    QUEUE_SHIFT = 16, /* The queue stands in bits 31..16 of the address. */
    QUEUE_MASK = 0xffff,
};

static uint64_t exanest_system_tag_encode(const struct exanest_system_tag *tag)
{
    CHECK(tag->bytes < 512 && tag->source >> EXANEST_COORDINATE_BITS == 0);
    return tag->lap | (uint64_t)tag->bytes << 16 | (uint64_t)tag->source << 25 |
           (uint64_t)tag->notifies << 47;
}

struct exanest_system_tag exanest_system_tag_decode(uint64_t word)
{
    return (struct exanest_system_tag){
        .lap = (uint16_t)word,
        .bytes = (uint16_t)(word >> 16 & 0x1ff),
        .source = (uint32_t)(word >> 25 & ((1u << EXANEST_COORDINATE_BITS) - 1)),
        .notifies = word >> 47 & 1,
    };
}

void exanest_system_mailbox_init(struct exanest_system_mailbox *mailbox,
                                 const struct exanest_system_mailbox_parameters *parameters)
{
    *mailbox = (struct exanest_system_mailbox){.parameters = *parameters};
    exanest_replies_init(&mailbox->replies, parameters->coordinate, parameters->reply_cycles,
                         parameters->patience_cycles, parameters->replies);
}

static void exanest_system_mailbox_check(const struct exanest_system_mailbox *mailbox)
{
    for (uint32_t q = 0; q < EXANEST_SYSTEM_QUEUES; q++) {
        const struct exanest_system_queue *queue = &mailbox->queues[q];
        if (queue->open) {
            CHECK(queue->tail - queue->head <= queue->slots);
            CHECK(queue->place < queue->slots);
        }
    }
    CHECK(mailbox->written <= EXANEST_SYSTEM_SLOT_WORDS);
    CHECK(!mailbox->writing || mailbox->queue < EXANEST_SYSTEM_QUEUES);
    /* Room for the answer, if there will be one, was there when the message came. */
    CHECK(!mailbox->writing || exanest_replies_room(&mailbox->replies) > 0 ||
          exanest_asker(&mailbox->header) == EXANEST_ASKER_NONE);
    exanest_replies_check(&mailbox->replies);
}

/* -- Kernel and process -------------------------------------------------------------------------*/

static void forget(struct exanest_system_mailbox *mailbox, uint32_t queue)
{
    CHECK(queue < EXANEST_SYSTEM_QUEUES);
    mailbox->forgotten |= mailbox->writing && mailbox->queue == queue;
}

void exanest_system_mailbox_open(struct exanest_system_mailbox *mailbox, uint32_t queue,
                                 uint16_t pdid, uint64_t va, uint32_t slots)
{
    CHECK(slots >= 1 && slots <= EXANEST_SYSTEM_SLOTS && va % EXANEST_SYSTEM_SLOT_BYTES == 0);
    CHECK(va + (uint64_t)slots * EXANEST_SYSTEM_SLOT_BYTES <= UINT64_C(1) << EXANEST_MEMORY_BITS);
    forget(mailbox, queue);
    mailbox->queues[queue] = (struct exanest_system_queue){
        .open = true, .pdid = pdid, .slots = (uint16_t)slots, .va = va};
    INVARIANTS(exanest_system_mailbox_check(mailbox));
}

void exanest_system_mailbox_close(struct exanest_system_mailbox *mailbox, uint32_t queue)
{
    forget(mailbox, queue);
    mailbox->queues[queue] = (struct exanest_system_queue){0};
}

bool exanest_system_mailbox_read(struct exanest_system_mailbox *mailbox, uint32_t queue,
                                 uint32_t head)
{
    if (queue >= EXANEST_SYSTEM_QUEUES || !mailbox->queues[queue].open ||
        head - mailbox->queues[queue].head >
            mailbox->queues[queue].tail - mailbox->queues[queue].head) {
        mailbox->counters.bad_heads++;
        return false;
    }
    mailbox->queues[queue].head = head;
    INVARIANTS(exanest_system_mailbox_check(mailbox));
    return true;
}

/* -- A message comes in -------------------------------------------------------------------------*/

bool exanest_system_mailbox_ready(const struct exanest_system_mailbox *mailbox,
                                  const struct exanest_beat *beat)
{
    return beat->part != EXANEST_HEADER ||
           (!mailbox->writing && (exanest_replies_room(&mailbox->replies) > 0 ||
                                  exanest_replies_stuck(&mailbox->replies)));
}

static uint32_t queue_of(const struct exanest_header *header)
{
    return (uint32_t)(header->target.va >> QUEUE_SHIFT) & QUEUE_MASK;
}

static bool belongs_here(const struct exanest_header *header)
{
    return (header->type == EXANEST_WRITE || header->type == EXANEST_NOTIFICATION) &&
           exanest_va_is_peripheral(header->target.va) &&
           exanest_va_peripheral(header->target.va) == EXANEST_SYSTEM_MAILBOXES;
}

/* STORED: it is to be written. */
static enum exanest_system_verdict judge(const struct exanest_system_mailbox *mailbox,
                                         uint8_t outcome)
{
    const struct exanest_header *header = &mailbox->intake.header;
    const struct exanest_footer *footer = &mailbox->intake.footer;
    if (outcome <= EXANEST_BAD_HEADER) {
        return EXANEST_SYSTEM_DROPPED;
    }
    if (!belongs_here(header)) {
        return EXANEST_SYSTEM_UNEXPECTED;
    }
    if (outcome != EXANEST_WHOLE) {
        return EXANEST_SYSTEM_CORRUPT;
    }
    if (header->bytes == 0 || header->bytes > EXANEST_SYSTEM_MESSAGE_BYTES || !footer->first ||
        !footer->last) {
        return EXANEST_SYSTEM_WRONG_SIZE;
    }
    if (queue_of(header) >= EXANEST_SYSTEM_QUEUES || !mailbox->queues[queue_of(header)].open) {
        return EXANEST_SYSTEM_NO_QUEUE;
    }
    const struct exanest_system_queue *queue = &mailbox->queues[queue_of(header)];
    if (queue->pdid != header->pdid) {
        return EXANEST_SYSTEM_WRONG_DOMAIN;
    }
    return queue->tail - queue->head == queue->slots ? EXANEST_SYSTEM_FULL : EXANEST_SYSTEM_STORED;
}

static enum exanest_status status_of(enum exanest_system_verdict verdict)
{
    switch (verdict) {
    case EXANEST_SYSTEM_STORED: return EXANEST_ACK;
    case EXANEST_SYSTEM_FULL: return EXANEST_NACK_FULL;
    case EXANEST_SYSTEM_FAULT: return EXANEST_NACK_PAGE_FAULT;
    case EXANEST_SYSTEM_CORRUPT: return EXANEST_NACK_CRC;
    case EXANEST_SYSTEM_NO_QUEUE:
    case EXANEST_SYSTEM_WRONG_DOMAIN:
    case EXANEST_SYSTEM_WRONG_SIZE:
    case EXANEST_SYSTEM_UNEXPECTED: return EXANEST_NACK_DECODE;
    case EXANEST_SYSTEM_DROPPED:
    case EXANEST_SYSTEM_VERDICT_COUNT: break;
    }
    UNREACHABLE("a verdict that nobody is told of");
}

static void conclude(struct exanest_system_mailbox *mailbox, const struct exanest_header *header,
                     const struct exanest_footer *footer, enum exanest_system_verdict verdict)
{
    mailbox->counters.verdicts[verdict]++;
    mailbox->counters.notifications_lost +=
        header->type == EXANEST_NOTIFICATION && verdict != EXANEST_SYSTEM_STORED;
    if (verdict == EXANEST_SYSTEM_DROPPED || !header->has_footer) {
        return;
    }
    const enum exanest_status status = status_of(verdict);
    if (exanest_replies_answer(&mailbox->replies, header, footer, status)) {
        mailbox->counters.answers[status]++;
    }
}

static void begin_slot(struct exanest_system_mailbox *mailbox)
{
    const struct exanest_header *header = &mailbox->intake.header;
    const struct exanest_system_queue *queue = &mailbox->queues[queue_of(header)];
    const struct exanest_system_tag tag = {
        .lap = (uint16_t)(queue->laps + 1),
        .bytes = header->bytes,
        .source = mailbox->intake.footer.source,
        .notifies = header->type == EXANEST_NOTIFICATION,
    };
    mailbox->header = *header;
    mailbox->footer = mailbox->intake.footer;
    mailbox->queue = (uint8_t)queue_of(header);
    mailbox->written = 0;
    mailbox->writing = true;
    mailbox->forgotten = false;
    memset(mailbox->slot, 0, sizeof(mailbox->slot));
    memcpy(mailbox->slot,
           (const uint8_t *)mailbox->payload + header->target.va % EXANEST_WORD_BYTES,
           header->bytes);
    mailbox->slot[EXANEST_SYSTEM_SLOT_WORDS - 1].high = exanest_system_tag_encode(&tag);
}

static void on_end(struct exanest_system_mailbox *mailbox, uint8_t outcome)
{
    const enum exanest_system_verdict verdict = judge(mailbox, outcome);
    if (verdict != EXANEST_SYSTEM_DROPPED && exanest_replies_room(&mailbox->replies) == 0 &&
        exanest_asker(&mailbox->intake.header) != EXANEST_ASKER_NONE) {
        mailbox->counters.unanswered++;
        return;
    }
    if (verdict == EXANEST_SYSTEM_STORED) {
        begin_slot(mailbox);
        return;
    }
    conclude(mailbox, &mailbox->intake.header, &mailbox->intake.footer, verdict);
}

void exanest_system_mailbox_take(struct exanest_system_mailbox *mailbox,
                                 const struct exanest_beat *beat)
{
    INVARIANTS(exanest_system_mailbox_check(mailbox));
    CHECK(exanest_system_mailbox_ready(mailbox, beat));
    const struct exanest_intake_step step = exanest_intake_take(&mailbox->intake, beat);
    mailbox->counters.verdicts[EXANEST_SYSTEM_DROPPED] += step.interrupted;
    if (step.payload && mailbox->intake.words <= COUNT_OF(mailbox->payload)) {
        mailbox->payload[mailbox->intake.words - 1] = beat->word;
    }
    if (step.ends) {
        on_end(mailbox, step.outcome);
    }
    INVARIANTS(exanest_system_mailbox_check(mailbox));
}

/* -- It goes to memory --------------------------------------------------------------------------*/

bool exanest_system_mailbox_next_write(struct exanest_system_mailbox *mailbox,
                                       struct exanest_memory_write *write)
{
    if (!mailbox->writing || mailbox->written == EXANEST_SYSTEM_SLOT_WORDS) {
        return false;
    }
    const struct exanest_system_queue *queue = &mailbox->queues[mailbox->queue];
    const uint32_t at = mailbox->written;
    mailbox->written++;
    *write = (struct exanest_memory_write){
        .va = queue->va + (uint64_t)queue->place * EXANEST_SYSTEM_SLOT_BYTES +
              (uint64_t)at * EXANEST_WORD_BYTES,
        .pdid = mailbox->header.pdid,
        .lanes = mailbox->forgotten ? 0 : 0xffff,
        .first = at == 0,
        .last = mailbox->written == EXANEST_SYSTEM_SLOT_WORDS,
        .word = mailbox->slot[at],
    };
    return true;
}

static void advance(struct exanest_system_queue *queue)
{
    queue->tail++;
    queue->place++;
    if (queue->place == queue->slots) {
        queue->place = 0;
        queue->laps++;
    }
}

void exanest_system_mailbox_on_write_response(struct exanest_system_mailbox *mailbox,
                                              enum exanest_axi_response response)
{
    INVARIANTS(exanest_system_mailbox_check(mailbox));
    CHECK(mailbox->writing && mailbox->written == EXANEST_SYSTEM_SLOT_WORDS);
    enum exanest_system_verdict verdict =
        response == EXANEST_AXI_OKAY ? EXANEST_SYSTEM_STORED : EXANEST_SYSTEM_FAULT;
    if (mailbox->forgotten) {
        verdict = EXANEST_SYSTEM_NO_QUEUE;
    } else if (verdict == EXANEST_SYSTEM_STORED) {
        advance(&mailbox->queues[mailbox->queue]);
    }
    conclude(mailbox, &mailbox->header, &mailbox->footer, verdict);
    mailbox->writing = false;
    INVARIANTS(exanest_system_mailbox_check(mailbox));
}

/* -- Acknowledgements go out --------------------------------------------------------------------*/

bool exanest_system_mailbox_offer(const struct exanest_system_mailbox *mailbox,
                                  struct exanest_beat *beat)
{
    return exanest_replies_offer(&mailbox->replies, beat);
}

void exanest_system_mailbox_taken(struct exanest_system_mailbox *mailbox)
{
    exanest_replies_taken(&mailbox->replies);
}
