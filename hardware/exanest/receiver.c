/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/receiver.h"

#define MEMORY_BYTES (UINT64_C(1) << EXANEST_MEMORY_BITS)

/* A beat makes two writes at most: a word, and the end of a burst that was cut off. */
#define WRITES_PER_BEAT 2u
/* A packet makes two replies at most: a response and a notification. */
#define REPLIES_PER_PACKET 2u

void exanest_receiver_init(struct exanest_receiver *receiver,
                           const struct exanest_receiver_parameters *parameters)
{
    /* One may have been cut off, and ends when the next one's header is taken. */
    CHECK(parameters->arrivals >= 2 && parameters->arrivals <= EXANEST_RECEIVER_ARRIVALS);
    CHECK(parameters->write_words >= WRITES_PER_BEAT &&
          parameters->write_words <= EXANEST_RECEIVER_WORDS);
    CHECK(parameters->replies >= REPLIES_PER_PACKET);
    *receiver = (struct exanest_receiver){.parameters = *parameters};
    exanest_context_init(&receiver->table, &parameters->contexts);
    exanest_replies_init(&receiver->replies, parameters->coordinate, parameters->response_cycles,
                         parameters->patience_cycles, parameters->replies);
}

/* -- The queues ---------------------------------------------------------------------------------*/

static uint32_t ring_index(const struct exanest_receiver *receiver, uint32_t at)
{
    return (receiver->head + at) % EXANEST_RECEIVER_ARRIVALS;
}

static struct exanest_arrival *newest(struct exanest_receiver *receiver)
{
    CHECK(receiver->arrivals > 0);
    return &receiver->ring[ring_index(receiver, receiver->arrivals - 1u)];
}

static void exanest_receiver_check(const struct exanest_receiver *receiver)
{
    CHECK(receiver->arrivals <= receiver->parameters.arrivals);
    CHECK(receiver->writes <= receiver->parameters.write_words);
    CHECK(receiver->settled <= receiver->arrivals);
    uint32_t open = 0, bursts = 0;
    for (uint32_t i = 0; i < receiver->arrivals; i++) {
        const struct exanest_arrival *arrival = &receiver->ring[ring_index(receiver, i)];
        CHECK(!arrival->burst || arrival->placed);
        CHECK(!arrival->answered || arrival->burst);
        CHECK(!arrival->placed || !arrival->outside);
        CHECK(i >= receiver->settled || !arrival->burst || arrival->answered);
        open += !arrival->ended;
        bursts += arrival->burst && !arrival->answered;
    }
    /* Only the newest packet is still coming in; a burst is in the queue, or out, or both. */
    CHECK(open == (receiver->intake.open ? 1 : 0));
    CHECK(receiver->out <= bursts);
    CHECK(!receiver->burst_open || (receiver->intake.open && bursts > receiver->out));
    exanest_replies_check(&receiver->replies);
}

static void queue_write(struct exanest_receiver *receiver, const struct exanest_memory_write *write)
{
    CHECK(receiver->writes < receiver->parameters.write_words);
    struct exanest_receiver_queued *queued =
        &receiver->queue[(receiver->write_head + receiver->writes) % EXANEST_RECEIVER_WORDS];
    receiver->writes++;
    *queued = (struct exanest_receiver_queued){
        .due = receiver->now + receiver->parameters.write_cycles, .write = *write};
}

/* -- Words come in ------------------------------------------------------------------------------*/

bool exanest_receiver_ready(const struct exanest_receiver *receiver,
                            const struct exanest_beat *beat)
{
    if (receiver->writes + WRITES_PER_BEAT > receiver->parameters.write_words) {
        return false;
    }
    return beat->part != EXANEST_HEADER || receiver->arrivals < receiver->parameters.arrivals;
}

static bool is_outside(const struct exanest_header *header)
{
    if (exanest_va_is_peripheral(header->target.va)) {
        return true;
    }
    if (header->type == EXANEST_CONTROL) {
        return header->bytes != EXANEST_CONTROL_PAYLOAD ||
               header->target.va % EXANEST_WORD_BYTES != 0;
    }
    return (header->target.va & (MEMORY_BYTES - 1)) + header->bytes > MEMORY_BYTES;
}

static void begin(struct exanest_receiver *receiver)
{
    CHECK(receiver->arrivals < receiver->parameters.arrivals);
    const struct exanest_intake *intake = &receiver->intake;
    receiver->arrivals++;
    struct exanest_arrival *arrival = newest(receiver);
    *arrival = (struct exanest_arrival){.header = intake->header,
                                        .header_verdict = intake->header_verdict};
    if (intake->header_verdict == EXANEST_GOOD) {
        const bool writes =
            intake->header.type == EXANEST_WRITE || intake->header.type == EXANEST_NOTIFICATION;
        arrival->outside =
            (writes || intake->header.type == EXANEST_CONTROL) && is_outside(&intake->header);
        arrival->placed = writes && !arrival->outside;
    }
}

/* Cut-through: a word of payload leaves before anything is known of its packet's end. */
static void on_payload(struct exanest_receiver *receiver, struct exanest_word word)
{
    const struct exanest_intake *intake = &receiver->intake;
    struct exanest_arrival *arrival = newest(receiver);
    const uint32_t index = intake->words - 1u;
    if (!arrival->placed) {
        if (index < COUNT_OF(arrival->payload)) {
            arrival->payload[index] = word;
        }
        return;
    }
    const uint64_t va = arrival->header.target.va & (MEMORY_BYTES - 1);
    const bool last = intake->words == intake->expected;
    queue_write(receiver, &(struct exanest_memory_write){
                              .va = va - va % EXANEST_WORD_BYTES + EXANEST_WORD_BYTES * index,
                              .pdid = arrival->header.pdid,
                              .lanes = exanest_lanes(va, arrival->header.bytes, index),
                              .first = !receiver->burst_open,
                              .last = last,
                              .word = word,
                          });
    arrival->burst = true;
    receiver->burst_open = !last;
}

/* The newest packet has ended. A burst that lacks words ends with one that writes nothing. */
static void on_end(struct exanest_receiver *receiver, uint8_t outcome)
{
    struct exanest_arrival *arrival = newest(receiver);
    arrival->ended = true;
    arrival->outcome = outcome;
    arrival->footer = receiver->intake.footer;
    if (receiver->burst_open) {
        const uint64_t va = arrival->header.target.va & (MEMORY_BYTES - 1);
        queue_write(receiver, &(struct exanest_memory_write){.va = va - va % EXANEST_WORD_BYTES,
                                                             .pdid = arrival->header.pdid,
                                                             .last = true});
        receiver->burst_open = false;
    }
}

void exanest_receiver_take(struct exanest_receiver *receiver, const struct exanest_beat *beat)
{
    INVARIANTS(exanest_receiver_check(receiver));
    CHECK(exanest_receiver_ready(receiver, beat));
    const struct exanest_intake_step step = exanest_intake_take(&receiver->intake, beat);
    if (step.interrupted) {
        on_end(receiver, EXANEST_CUT_OFF);
    }
    if (step.begins) {
        begin(receiver);
    }
    if (step.payload) {
        on_payload(receiver, beat->word);
    }
    if (step.ends) {
        on_end(receiver, step.outcome);
    }
    INVARIANTS(exanest_receiver_check(receiver));
}

/* -- Memory -------------------------------------------------------------------------------------*/

bool exanest_receiver_next_write(struct exanest_receiver *receiver,
                                 struct exanest_memory_write *write)
{
    const struct exanest_receiver_queued *queued = &receiver->queue[receiver->write_head];
    if (receiver->writes == 0 || receiver->now < queued->due) {
        return false;
    }
    INVARIANTS(exanest_receiver_check(receiver));
    *write = queued->write;
    receiver->writes--;
    receiver->write_head = (uint8_t)((receiver->write_head + 1u) % EXANEST_RECEIVER_WORDS);
    receiver->out += write->last;
    receiver->counters.words_written++;
    INVARIANTS(exanest_receiver_check(receiver));
    return true;
}

void exanest_receiver_on_write_response(struct exanest_receiver *receiver,
                                        enum exanest_axi_response response)
{
    INVARIANTS(exanest_receiver_check(receiver));
    CHECK(receiver->out > 0);
    struct exanest_arrival *arrival;
    do {
        CHECK(receiver->settled < receiver->arrivals);
        arrival = &receiver->ring[ring_index(receiver, receiver->settled)];
        receiver->settled++;
    } while (!arrival->burst);
    receiver->out--;
    arrival->answered = true;
    arrival->response = (uint8_t)response;
    receiver->counters.write_errors[0] += response == EXANEST_AXI_SLAVE_ERROR;
    receiver->counters.write_errors[1] += response == EXANEST_AXI_DECODE_ERROR;
    INVARIANTS(exanest_receiver_check(receiver));
}

/* -- Verdicts on packets ------------------------------------------------------------------------*/

/* Step 3. */
static enum exanest_status error_of(const struct exanest_receiver *receiver,
                                    const struct exanest_arrival *arrival)
{
    switch ((enum exanest_outcome)arrival->outcome) {
    case EXANEST_BAD_HEADER:
        return arrival->header_verdict == EXANEST_WRONG_EDC ? EXANEST_NACK_CRC
                                                            : EXANEST_NACK_DECODE;
    case EXANEST_TOO_SHORT:
    case EXANEST_TOO_LONG:
    case EXANEST_BAD_PAYLOAD: return EXANEST_NACK_CRC;
    case EXANEST_WHOLE: break;
    case EXANEST_CUT_OFF:
    case EXANEST_BAD_FOOTER:
    case EXANEST_OUTCOME_COUNT: UNREACHABLE("a packet that is dropped");
    }
    if (arrival->outside) {
        return EXANEST_NACK_DECODE;
    }
    if (!arrival->burst || arrival->response == EXANEST_AXI_OKAY) {
        return EXANEST_ACK;
    }
    return arrival->response == EXANEST_AXI_DECODE_ERROR && !receiver->parameters.berr3_is_fault
               ? EXANEST_NACK_DECODE
               : EXANEST_NACK_PAGE_FAULT;
}

static void respond(struct exanest_receiver *receiver, const struct exanest_arrival *arrival,
                    enum exanest_status status)
{
    exanest_replies_put_response(&receiver->replies, arrival->header.pdid, &arrival->footer,
                                 status);
    receiver->counters.responses[status]++;
}

static void acknowledge(struct exanest_receiver *receiver, const struct exanest_arrival *arrival,
                        enum exanest_status status)
{
    if (exanest_replies_room(&receiver->replies) == 0) {
        receiver->counters.unanswered++; /* The sender writes the same bytes again. */
        return;
    }
    exanest_replies_put_acknowledgement(&receiver->replies, arrival->header.pdid, &arrival->footer,
                                        status);
    receiver->counters.acknowledgements[status]++;
}

static struct exanest_mark mark_of(const struct exanest_arrival *arrival, enum exanest_status error)
{
    struct exanest_mark mark = {
        .source = arrival->footer.source,
        .tid = arrival->footer.tid,
        .sequence = arrival->footer.sequence,
        .pdid = arrival->header.pdid,
        .error = (uint8_t)error,
        .line = (uint8_t)(arrival->header.target.va / EXANEST_PAYLOAD_BYTES_MAX %
                          EXANEST_BLOCK_PACKETS_MAX),
        .first = arrival->footer.first,
        .last = arrival->footer.last,
        .notify = arrival->footer.notify,
        .is_control = arrival->header.type == EXANEST_CONTROL,
    };
    if (mark.is_control) {
        mark.control = exanest_control_decode(arrival->payload);
        mark.control.tid = mark.tid; /* The footer's are covered by its own code. */
        mark.control.sequence = mark.sequence;
    }
    return mark;
}

static void complete(struct exanest_receiver *receiver, const struct exanest_arrival *arrival,
                     const struct exanest_context *context)
{
    respond(receiver, arrival, EXANEST_ACK);
    if (context->notify) {
        exanest_replies_put_notification(&receiver->replies, context->pdid, &context->control);
        receiver->counters.notifications++;
    }
}

/* For EXA-A26: see exanest_receiver_defaults. */
static void respond_to_packet(struct exanest_receiver *receiver,
                              const struct exanest_arrival *arrival)
{
    struct exanest_arrival before = *arrival;
    before.footer.sequence = (uint16_t)((arrival->footer.sequence - 1u) & (EXANEST_SEQUENCES - 1));
    respond(receiver, &before, EXANEST_ACK);
}

/* How many replies a packet makes. */
static uint32_t replies_of(const struct exanest_receiver *receiver,
                           const struct exanest_judgement *judgement)
{
    switch ((enum exanest_meaning)judgement->meaning) {
    case EXANEST_MARKED: return receiver->parameters.response_per_packet ? 1 : 0;
    case EXANEST_COMPLETE: return judgement->after.notify ? 2 : 1;
    case EXANEST_NO_CONTEXT:
    case EXANEST_REFUSED: return 1;
    case EXANEST_DUPLICATE:
    case EXANEST_OLDER:
    case EXANEST_REFUSED_BEFORE: return 0;
    case EXANEST_MEANING_COUNT: break;
    }
    UNREACHABLE("a meaning outside its enum");
}

/* Steps 4 to 8. */
static void on_transaction(struct exanest_receiver *receiver, const struct exanest_arrival *arrival,
                           enum exanest_status error)
{
    const struct exanest_mark mark = mark_of(arrival, error);
    struct exanest_judgement judgement;
    exanest_context_judge(&receiver->table, &mark, &judgement);
    if (exanest_replies_room(&receiver->replies) < replies_of(receiver, &judgement)) {
        receiver->counters.unanswered++;
        return;
    }
    exanest_context_apply(&receiver->table, &judgement);
    receiver->counters.meanings[judgement.meaning]++;
    receiver->counters.flushes += judgement.flushes;
    switch ((enum exanest_meaning)judgement.meaning) {
    case EXANEST_MARKED:
        if (receiver->parameters.response_per_packet) {
            respond_to_packet(receiver, arrival);
        }
        return;
    case EXANEST_COMPLETE: complete(receiver, arrival, &judgement.after); return;
    case EXANEST_NO_CONTEXT: respond(receiver, arrival, EXANEST_NACK_NO_CONTEXT); return;
    case EXANEST_REFUSED: respond(receiver, arrival, error); return;
    case EXANEST_DUPLICATE:
    case EXANEST_OLDER:
    case EXANEST_REFUSED_BEFORE: return;
    case EXANEST_MEANING_COUNT: break;
    }
    UNREACHABLE("a meaning outside its enum");
}

static void apply(struct exanest_receiver *receiver, const struct exanest_arrival *arrival)
{
    if (arrival->outcome == EXANEST_CUT_OFF || arrival->outcome == EXANEST_BAD_FOOTER) {
        receiver->counters.dropped++;
        return;
    }
    if (arrival->outcome == EXANEST_WHOLE && !arrival->header.has_footer) {
        receiver->counters.unexpected++; /* Acknowledgements alone are so, and not for us. */
        return;
    }
    const enum exanest_status error = error_of(receiver, arrival);
    receiver->counters.outside += arrival->outside;
    if (arrival->outcome == EXANEST_BAD_HEADER) {
        on_transaction(receiver, arrival, error); /* Most packets are. The type isn't known. */
        return;
    }
    if (arrival->header.type == EXANEST_NOTIFICATION) {
        receiver->counters.notified += error == EXANEST_ACK;
        receiver->counters.notify_failed += error != EXANEST_ACK;
        return;
    }
    switch (exanest_asker(&arrival->header)) {
    case EXANEST_ASKER_TRANSACTION: on_transaction(receiver, arrival, error); return;
    case EXANEST_ASKER_PACKETIZER:
        if (arrival->header.type != EXANEST_WRITE) {
            receiver->counters.unexpected++; /* A read request. */
            acknowledge(receiver, arrival, EXANEST_NACK_DECODE);
            return;
        }
        acknowledge(receiver, arrival, error);
        return;
    case EXANEST_ASKER_NONE: receiver->counters.unexpected++; return;
    }
    UNREACHABLE("an asker outside its enum");
}

/* Room for what a packet may make, or no patience left to wait for it. */
static bool may_answer(const struct exanest_receiver *receiver)
{
    return exanest_replies_room(&receiver->replies) >= REPLIES_PER_PACKET ||
           exanest_replies_stuck(&receiver->replies);
}

/* The oldest packet is judged once it has ended and its bytes are in memory. */
static void judge_oldest(struct exanest_receiver *receiver)
{
    const struct exanest_arrival *arrival = &receiver->ring[receiver->head];
    if (receiver->arrivals == 0 || !arrival->ended || (arrival->burst && !arrival->answered) ||
        !may_answer(receiver)) {
        return;
    }
    apply(receiver, arrival);
    receiver->head = (uint8_t)ring_index(receiver, 1);
    receiver->arrivals--;
    if (receiver->settled > 0) {
        receiver->settled--;
    }
}

void exanest_receiver_step(struct exanest_receiver *receiver)
{
    INVARIANTS(exanest_receiver_check(receiver));
    receiver->now++;
    exanest_replies_step(&receiver->replies);
    judge_oldest(receiver);
    INVARIANTS(exanest_receiver_check(receiver));
}

/* -- Replies go out -----------------------------------------------------------------------------*/

bool exanest_receiver_offer(const struct exanest_receiver *receiver, struct exanest_beat *beat)
{
    return exanest_replies_offer(&receiver->replies, beat);
}

void exanest_receiver_taken(struct exanest_receiver *receiver)
{
    exanest_replies_taken(&receiver->replies);
}
