/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/rt_mailbox.h"

#define REQUEST_BYTES (EXANEST_READ_REQUEST_WORDS * EXANEST_WORD_BYTES)
#define REQUEST_READS (EXANEST_READ_REQUEST_WORDS * EXANEST_RT_READS)

void exanest_rt_mailbox_init(struct exanest_rt_mailbox *mailbox,
                             const struct exanest_rt_mailbox_parameters *parameters)
{
    CHECK(parameters->responses >= 1 && parameters->responses <= EXANEST_RT_RESPONSES_MAX);
    CHECK(parameters->requests >= 1 && parameters->requests <= EXANEST_RT_REQUESTS_MAX);
    *mailbox = (struct exanest_rt_mailbox){.parameters = *parameters};
    exanest_replies_init(&mailbox->replies, parameters->coordinate, parameters->reply_cycles,
                         parameters->patience_cycles, parameters->replies);
}

static void exanest_rt_mailbox_check(const struct exanest_rt_mailbox *mailbox)
{
    CHECK(mailbox->responses <= mailbox->parameters.responses);
    CHECK(mailbox->requests <= mailbox->parameters.requests);
    CHECK(mailbox->reads < REQUEST_READS);
    CHECK(mailbox->reads == 0 || mailbox->requests > 0); /* None is left half read. */
    exanest_replies_check(&mailbox->replies);
}

/* -- Words come in ------------------------------------------------------------------------------*/

static bool may_store(const struct exanest_rt_mailbox *mailbox)
{
    const uint32_t patience = mailbox->parameters.patience_cycles;
    return mailbox->responses < mailbox->parameters.responses ||
           (patience != 0 && mailbox->refused >= patience);
}

static bool may_answer(const struct exanest_rt_mailbox *mailbox)
{
    return exanest_replies_room(&mailbox->replies) > 0 || exanest_replies_stuck(&mailbox->replies);
}

bool exanest_rt_mailbox_ready(const struct exanest_rt_mailbox *mailbox,
                              const struct exanest_beat *beat)
{
    return beat->part != EXANEST_HEADER || (may_store(mailbox) && may_answer(mailbox));
}

static void on_response(struct exanest_rt_mailbox *mailbox)
{
    if (mailbox->responses == mailbox->parameters.responses) {
        mailbox->counters.responses_lost++;
        return;
    }
    const struct exanest_footer *footer = &mailbox->intake.footer;
    const struct exanest_response response = {
        .status = footer->status, .tid = footer->tid, .sequence = footer->sequence};
    mailbox
        ->response_ring[(mailbox->response_head + mailbox->responses) % EXANEST_RT_RESPONSES_MAX] =
        exanest_response_encode(&response);
    mailbox->responses++;
    mailbox->counters.responses[footer->status]++;
    if (mailbox->responses > mailbox->counters.responses_max) {
        mailbox->counters.responses_max = mailbox->responses;
    }
}

/* Overwrites the protected part with the header's domain, and the footer's source and channel. */
static void on_request(struct exanest_rt_mailbox *mailbox)
{
    struct exanest_read_request request = exanest_read_request_decode(mailbox->payload);
    request.pdid = mailbox->intake.header.pdid;
    request.coordinate = mailbox->intake.footer.source;
    request.channel = mailbox->intake.footer.tid;
    exanest_read_request_encode(&request,
                                mailbox->request_ring[(mailbox->request_head + mailbox->requests) %
                                                      EXANEST_RT_REQUESTS_MAX]);
    mailbox->requests++;
    mailbox->counters.requests++;
    if (mailbox->requests > mailbox->counters.requests_max) {
        mailbox->counters.requests_max = mailbox->requests;
    }
}

enum verdict {
    RESPONSE,
    REQUEST,
    REQUEST_FULL,
    CORRUPT,    /* The sender may be told. */
    DROPPED,    /* Nobody is. */
    UNEXPECTED, /* A packet that does not belong here. */
};

static enum verdict judge_response(const struct exanest_rt_mailbox *mailbox, uint8_t outcome)
{
    const struct exanest_header *header = &mailbox->intake.header;
    if (outcome != EXANEST_WHOLE) {
        return DROPPED;
    }
    return header->has_footer && header->bytes == 0 &&
                   exanest_va_peripheral(header->target.va) == EXANEST_RT_RESPONSES &&
                   mailbox->intake.footer.status < EXANEST_STATUS_COUNT
               ? RESPONSE
               : UNEXPECTED;
}

static enum verdict judge(const struct exanest_rt_mailbox *mailbox, uint8_t outcome)
{
    const struct exanest_header *header = &mailbox->intake.header;
    if (outcome <= EXANEST_BAD_HEADER) {
        return DROPPED;
    }
    if (!exanest_va_is_peripheral(header->target.va)) {
        return UNEXPECTED;
    }
    if (header->type == EXANEST_ACKNOWLEDGEMENT) {
        return judge_response(mailbox, outcome);
    }
    if (header->type != EXANEST_READ_REQUEST || header->bytes != REQUEST_BYTES ||
        header->target.va % EXANEST_WORD_BYTES != 0 ||
        exanest_va_peripheral(header->target.va) != EXANEST_RT_READ_REQUESTS) {
        return UNEXPECTED;
    }
    if (outcome != EXANEST_WHOLE) {
        return CORRUPT;
    }
    return mailbox->requests < mailbox->parameters.requests ? REQUEST : REQUEST_FULL;
}

static void answer(struct exanest_rt_mailbox *mailbox, enum exanest_status status)
{
    const bool asked = mailbox->intake.header.has_footer &&
                       exanest_replies_answer(&mailbox->replies, &mailbox->intake.header,
                                              &mailbox->intake.footer, status);
    mailbox->counters.refused[status] += asked && status != EXANEST_ACK;
}

static bool has_answer(enum verdict verdict)
{
    return verdict != RESPONSE && verdict != DROPPED;
}

static void on_end(struct exanest_rt_mailbox *mailbox, uint8_t outcome)
{
    const enum verdict verdict = judge(mailbox, outcome);
    if (has_answer(verdict) && exanest_replies_room(&mailbox->replies) == 0) {
        mailbox->counters.unanswered++;
        return;
    }
    switch (verdict) {
    case RESPONSE: on_response(mailbox); return;
    case REQUEST:
        on_request(mailbox);
        answer(mailbox, EXANEST_ACK);
        return;
    case REQUEST_FULL: answer(mailbox, EXANEST_NACK_FULL); return;
    case CORRUPT: answer(mailbox, EXANEST_NACK_CRC); return;
    case DROPPED: mailbox->counters.dropped++; return;
    case UNEXPECTED:
        mailbox->counters.unexpected++;
        answer(mailbox, EXANEST_NACK_DECODE);
        return;
    }
    UNREACHABLE("a verdict outside its enum");
}

void exanest_rt_mailbox_take(struct exanest_rt_mailbox *mailbox, const struct exanest_beat *beat)
{
    INVARIANTS(exanest_rt_mailbox_check(mailbox));
    CHECK(exanest_rt_mailbox_ready(mailbox, beat));
    const struct exanest_intake_step step = exanest_intake_take(&mailbox->intake, beat);
    mailbox->counters.dropped += step.interrupted;
    if (step.payload && mailbox->intake.words <= EXANEST_READ_REQUEST_WORDS) {
        mailbox->payload[mailbox->intake.words - 1] = beat->word;
    }
    if (step.ends) {
        on_end(mailbox, step.outcome);
    }
    INVARIANTS(exanest_rt_mailbox_check(mailbox));
}

/* -- The R5 reads -------------------------------------------------------------------------------*/

uint32_t exanest_rt_mailbox_read_response(struct exanest_rt_mailbox *mailbox)
{
    INVARIANTS(exanest_rt_mailbox_check(mailbox));
    struct exanest_response response = {0};
    if (mailbox->responses == 0) {
        mailbox->counters.reads_empty++;
    } else {
        response = exanest_response_decode(mailbox->response_ring[mailbox->response_head]);
        response.valid = true;
        mailbox->response_head =
            (uint8_t)((mailbox->response_head + 1u) % EXANEST_RT_RESPONSES_MAX);
        mailbox->responses--;
        mailbox->refused = 0;
    }
    response.requests_wait = mailbox->requests > 0;
    INVARIANTS(exanest_rt_mailbox_check(mailbox));
    return exanest_response_encode(&response);
}

uint32_t exanest_rt_mailbox_read_request(struct exanest_rt_mailbox *mailbox)
{
    INVARIANTS(exanest_rt_mailbox_check(mailbox));
    if (mailbox->requests == 0) {
        mailbox->counters.requests_empty++;
        return 0;
    }
    const struct exanest_word word =
        mailbox->request_ring[mailbox->request_head][mailbox->reads / EXANEST_RT_READS];
    const uint32_t part = mailbox->reads % EXANEST_RT_READS;
    const uint64_t half = part < 2 ? word.low : word.high;
    mailbox->reads++;
    if (mailbox->reads == REQUEST_READS) {
        mailbox->reads = 0;
        mailbox->request_head = (uint8_t)((mailbox->request_head + 1u) % EXANEST_RT_REQUESTS_MAX);
        mailbox->requests--;
    }
    INVARIANTS(exanest_rt_mailbox_check(mailbox));
    return (uint32_t)(half >> (32 * (part % 2)));
}

/* -- Acknowledgements go out --------------------------------------------------------------------*/

bool exanest_rt_mailbox_offer(const struct exanest_rt_mailbox *mailbox, struct exanest_beat *beat)
{
    return exanest_replies_offer(&mailbox->replies, beat);
}

void exanest_rt_mailbox_taken(struct exanest_rt_mailbox *mailbox)
{
    exanest_replies_taken(&mailbox->replies);
}
