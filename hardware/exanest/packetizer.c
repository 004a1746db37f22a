/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/packetizer.h"

#include <string.h>

#define NEVER UINT64_MAX

enum {
    CHANNEL_BITS = 4, /* Bits of a TID that are the channel. */
    COMMAND_BYTES = 0x1ff,
};

void exanest_packetizer_init(struct exanest_packetizer *packetizer,
                             const struct exanest_packetizer_parameters *parameters)
{
    CHECK(parameters->coordinate >> EXANEST_COORDINATE_BITS == 0);
    *packetizer = (struct exanest_packetizer){
        .parameters = *parameters, .next_deadline = NEVER, .last = EXANEST_PACKETIZER_CHANNELS - 1};
}

static void exanest_packetizer_check(const struct exanest_packetizer *packetizer)
{
    uint32_t sending = 0;
    for (uint32_t c = 0; c < EXANEST_PACKETIZER_CHANNELS; c++) {
        const struct exanest_packetizer_channel *channel = &packetizer->channels[c];
        const bool timed =
            channel->phase == EXANEST_CHANNEL_WAITING || channel->phase == EXANEST_CHANNEL_BACKOFF;
        CHECK((packetizer->ready >> c & 1) == (channel->phase == EXANEST_CHANNEL_READY));
        CHECK((packetizer->timed >> c & 1) == timed);
        CHECK(!timed || channel->deadline >= packetizer->next_deadline);
        CHECK(channel->retries <= packetizer->parameters.retries);
        CHECK(channel->message < EXANEST_PACKETIZER_MESSAGES);
        if (channel->phase == EXANEST_CHANNEL_SENDING) {
            CHECK(c == packetizer->last && packetizer->count > 0);
            sending++;
        } else {
            CHECK(!channel->answered && !channel->given_back);
        }
    }
    CHECK(sending == (packetizer->count > 0 ? 1 : 0));
    CHECK(packetizer->count == 0 || packetizer->sent < packetizer->count);
    CHECK(packetizer->count <= EXANEST_PACKET_WORDS_MAX);
}

/* -- A channel's phases -------------------------------------------------------------------------*/

static uint32_t index_of(const struct exanest_packetizer *packetizer,
                         const struct exanest_packetizer_channel *channel)
{
    return (uint32_t)(channel - packetizer->channels);
}

static void enter(struct exanest_packetizer *packetizer, struct exanest_packetizer_channel *channel,
                  enum exanest_packetizer_phase phase)
{
    const uint16_t bit = (uint16_t)(1u << index_of(packetizer, channel));
    const bool timed = phase == EXANEST_CHANNEL_WAITING || phase == EXANEST_CHANNEL_BACKOFF;
    packetizer->ready &= (uint16_t)~bit;
    packetizer->timed &= (uint16_t)~bit;
    packetizer->ready |= phase == EXANEST_CHANNEL_READY ? bit : 0;
    packetizer->timed |= timed ? bit : 0;
    channel->phase = (uint8_t)phase;
    channel->answered = false;
    channel->given_back = false;
}

static void enter_until(struct exanest_packetizer *packetizer,
                        struct exanest_packetizer_channel *channel,
                        enum exanest_packetizer_phase phase, uint64_t cycles)
{
    enter(packetizer, channel, phase);
    channel->deadline = packetizer->now + cycles;
    if (channel->deadline < packetizer->next_deadline) {
        packetizer->next_deadline = channel->deadline;
    }
}

static void finish(struct exanest_packetizer *packetizer,
                   struct exanest_packetizer_channel *channel, bool well)
{
    packetizer->counters.done += well;
    packetizer->counters.failed += !well;
    enter(packetizer, channel, well ? EXANEST_CHANNEL_DONE : EXANEST_CHANNEL_FAILED);
}

/* The message is sent again after `cycles` cycles, unless it was repeated too often. */
static void retry(struct exanest_packetizer *packetizer, struct exanest_packetizer_channel *channel,
                  uint64_t cycles)
{
    if (channel->retries == packetizer->parameters.retries) {
        finish(packetizer, channel, false);
        return;
    }
    if (cycles == 0) {
        channel->retries++;
        packetizer->counters.retransmissions++;
        enter(packetizer, channel, EXANEST_CHANNEL_READY);
    } else {
        enter_until(packetizer, channel, EXANEST_CHANNEL_BACKOFF, cycles);
    }
}

/* -- Software -----------------------------------------------------------------------------------*/

/* The message is nobody's any more. Words that are on their way cannot be called back. */
static void give_back(struct exanest_packetizer *packetizer,
                      struct exanest_packetizer_channel *channel)
{
    if (channel->phase == EXANEST_CHANNEL_SENDING) {
        channel->given_back = true;
    } else {
        enter(packetizer, channel, EXANEST_CHANNEL_FREE);
    }
}

void exanest_packetizer_give(struct exanest_packetizer *packetizer, uint32_t channel, uint16_t pdid)
{
    INVARIANTS(exanest_packetizer_check(packetizer));
    CHECK(channel < EXANEST_PACKETIZER_CHANNELS);
    struct exanest_packetizer_channel *one = &packetizer->channels[channel];
    give_back(packetizer, one);
    one->given = true;
    one->pdid = pdid;
    one->bytes = 0;
    one->target = (struct exanest_target){0};
    memset(one->payload, 0, sizeof(one->payload));
    INVARIANTS(exanest_packetizer_check(packetizer));
}

static bool is_busy(const struct exanest_packetizer_channel *channel)
{
    return channel->phase != EXANEST_CHANNEL_FREE && channel->phase != EXANEST_CHANNEL_DONE &&
           channel->phase != EXANEST_CHANNEL_FAILED;
}

static enum exanest_store_verdict judge_command(const struct exanest_packetizer_channel *channel,
                                                uint64_t bytes)
{
    if (bytes > EXANEST_PAYLOAD_BYTES_MAX ||
        exanest_payload_words(channel->target.va, (uint32_t)bytes) > EXANEST_PAYLOAD_WORDS_MAX) {
        return EXANEST_STORE_LENGTH;
    }
    return EXANEST_STORE_GOOD;
}

static enum exanest_store_verdict judge_store(const struct exanest_packetizer *packetizer,
                                              uint32_t channel, uint32_t offset, uint64_t value)
{
    if (channel >= EXANEST_PACKETIZER_CHANNELS || offset % 8 != 0 ||
        offset > EXANEST_PACKETIZER_COMMAND) {
        return EXANEST_STORE_NO_REGISTER;
    }
    const struct exanest_packetizer_channel *one = &packetizer->channels[channel];
    if (!one->given) {
        return EXANEST_STORE_NO_DOMAIN;
    }
    const bool gives_back = offset == EXANEST_PACKETIZER_COMMAND && value == 0;
    if (is_busy(one) && !gives_back) {
        return EXANEST_STORE_BUSY;
    }
    return offset == EXANEST_PACKETIZER_COMMAND ? judge_command(one, value) : EXANEST_STORE_GOOD;
}

static void command(struct exanest_packetizer *packetizer,
                    struct exanest_packetizer_channel *channel, uint64_t bytes)
{
    if (bytes == 0) {
        packetizer->counters.given_back++;
        give_back(packetizer, channel);
        return;
    }
    channel->bytes = (uint16_t)(bytes & COMMAND_BYTES);
    channel->retries = 0;
    channel->last_status = EXANEST_ACK;
    channel->message = (uint8_t)((channel->message + 1u) % EXANEST_PACKETIZER_MESSAGES);
    packetizer->counters.messages++;
    enter(packetizer, channel, EXANEST_CHANNEL_READY);
}

enum exanest_store_verdict exanest_packetizer_store(struct exanest_packetizer *packetizer,
                                                    uint32_t channel, uint32_t offset,
                                                    uint64_t value)
{
    INVARIANTS(exanest_packetizer_check(packetizer));
    const enum exanest_store_verdict verdict = judge_store(packetizer, channel, offset, value);
    packetizer->counters.stores[verdict]++;
    if (verdict != EXANEST_STORE_GOOD) {
        return verdict;
    }
    struct exanest_packetizer_channel *one = &packetizer->channels[channel];
    if (offset == EXANEST_PACKETIZER_COMMAND) {
        command(packetizer, one, value);
    } else if (offset == EXANEST_PACKETIZER_TARGET) {
        one->target = exanest_target_decode(value);
    } else {
        one->payload[offset / 8] = value;
    }
    INVARIANTS(exanest_packetizer_check(packetizer));
    return verdict;
}

struct exanest_packetizer_state exanest_packetizer_state(
    const struct exanest_packetizer *packetizer, uint32_t channel)
{
    CHECK(channel < EXANEST_PACKETIZER_CHANNELS);
    const struct exanest_packetizer_channel *one = &packetizer->channels[channel];
    return (struct exanest_packetizer_state){
        .phase = one->phase, .last_status = one->last_status, .retries = one->retries};
}

uint64_t exanest_packetizer_load(const struct exanest_packetizer *packetizer, uint32_t channel,
                                 uint32_t offset)
{
    if (channel >= EXANEST_PACKETIZER_CHANNELS || offset % 8 != 0) {
        return 0;
    }
    const struct exanest_packetizer_channel *one = &packetizer->channels[channel];
    if (offset < EXANEST_PACKETIZER_TARGET) {
        return one->payload[offset / 8];
    }
    switch (offset) {
    case EXANEST_PACKETIZER_TARGET: return exanest_target_encode(one->target);
    case EXANEST_PACKETIZER_COMMAND: return one->bytes;
    case EXANEST_PACKETIZER_STATE:
        return one->phase | (uint64_t)one->last_status << 4 | (uint64_t)one->retries << 8;
    default: return 0;
    }
}

/* -- Packets go out -----------------------------------------------------------------------------*/

static bool asks_to_read(const struct exanest_target *target)
{
    return exanest_va_is_peripheral(target->va) &&
           exanest_va_peripheral(target->va) == EXANEST_RT_READ_REQUESTS;
}

static uint16_t tid_of(const struct exanest_packetizer *packetizer,
                       const struct exanest_packetizer_channel *channel)
{
    return (uint16_t)((uint32_t)channel->message << CHANNEL_BITS | index_of(packetizer, channel));
}

static void build(struct exanest_packetizer *packetizer,
                  const struct exanest_packetizer_channel *channel)
{
    const struct exanest_header header = {
        .target = channel->target,
        .pdid = channel->pdid,
        .type = asks_to_read(&channel->target) ? EXANEST_READ_REQUEST : EXANEST_WRITE,
        .bytes = channel->bytes,
        .has_footer = true,
        .priority = true,
        .aux = channel->retries & (EXANEST_SEQUENCES - 1),
    };
    struct exanest_footer footer = {
        .tid = tid_of(packetizer, channel),
        .source = packetizer->parameters.coordinate,
        .sequence = header.aux,
        .first = true,
        .last = true,
    };
    const uint32_t words = exanest_payload_words(header.target.va, header.bytes);
    memset(packetizer->packet, 0, sizeof(packetizer->packet));
    memcpy((uint8_t *)&packetizer->packet[1] + header.target.va % EXANEST_WORD_BYTES,
           channel->payload, header.bytes);
    for (uint32_t i = 1; i <= words; i++) {
        footer.payload_crc = exanest_payload_crc(footer.payload_crc, packetizer->packet[i]);
    }
    packetizer->packet[0] = exanest_header_encode(&header);
    packetizer->packet[words + 1] = exanest_footer_encode(&footer);
    packetizer->count = (uint8_t)(words + 2);
    packetizer->sent = 0;
    packetizer->counters.packets[header.type]++;
    packetizer->counters.bytes[header.type] += header.bytes;
}

/* Round robin over the channels that are ready. */
static void begin(struct exanest_packetizer *packetizer)
{
    const uint32_t behind = packetizer->ready & ~((2u << packetizer->last) - 1);
    packetizer->last = (uint8_t)__builtin_ctz(behind != 0 ? behind : packetizer->ready);
    struct exanest_packetizer_channel *channel = &packetizer->channels[packetizer->last];
    enter(packetizer, channel, EXANEST_CHANNEL_SENDING);
    build(packetizer, channel);
}

bool exanest_packetizer_offer(const struct exanest_packetizer *packetizer,
                              struct exanest_beat *beat)
{
    if (packetizer->count == 0) {
        return false;
    }
    const bool last = packetizer->sent + 1 == packetizer->count;
    const enum exanest_part behind = last ? EXANEST_FOOTER : EXANEST_PAYLOAD;
    *beat = (struct exanest_beat){
        .part = packetizer->sent == 0 ? EXANEST_HEADER : behind,
        .last = last,
        .word = packetizer->packet[packetizer->sent],
    };
    return true;
}

static void end(struct exanest_packetizer *packetizer)
{
    struct exanest_packetizer_channel *channel = &packetizer->channels[packetizer->last];
    packetizer->count = 0;
    if (channel->given_back) {
        enter(packetizer, channel, EXANEST_CHANNEL_FREE);
    } else if (channel->answered) {
        finish(packetizer, channel, true);
    } else {
        enter_until(packetizer, channel, EXANEST_CHANNEL_WAITING,
                    packetizer->parameters.timeout_cycles);
    }
}

void exanest_packetizer_taken(struct exanest_packetizer *packetizer)
{
    INVARIANTS(exanest_packetizer_check(packetizer));
    CHECK(packetizer->count > 0);
    packetizer->sent++;
    if (packetizer->sent == packetizer->count) {
        end(packetizer);
    }
    INVARIANTS(exanest_packetizer_check(packetizer));
}

/* -- Acknowledgements come in -------------------------------------------------------------------*/

/* The channel whose message the answer is about; NULL: none waits for it. */
static struct exanest_packetizer_channel *asked(struct exanest_packetizer *packetizer, uint32_t tid)
{
    struct exanest_packetizer_channel *channel =
        &packetizer->channels[tid & (EXANEST_PACKETIZER_CHANNELS - 1)];
    const bool waits = is_busy(channel) && !channel->answered && !channel->given_back;
    return waits && tid >> CHANNEL_BITS == channel->message ? channel : NULL;
}

static void on_answer(struct exanest_packetizer *packetizer,
                      struct exanest_packetizer_channel *channel, enum exanest_status status)
{
    packetizer->counters.answers[status]++;
    channel->last_status = (uint8_t)status;
    const bool sending = channel->phase == EXANEST_CHANNEL_SENDING;
    if (status == EXANEST_ACK) {
        if (sending) {
            channel->answered = true; /* An earlier copy's: the packet has to end first. */
        } else {
            finish(packetizer, channel, true);
        }
    } else if (channel->phase == EXANEST_CHANNEL_WAITING) {
        retry(packetizer, channel,
              status == EXANEST_NACK_CRC ? 0 : packetizer->parameters.backoff_cycles);
    }
    /* Else it is an earlier copy that was refused, and the next one is on its way. */
}

static void on_end(struct exanest_packetizer *packetizer, uint8_t outcome)
{
    const struct exanest_header *header = &packetizer->intake.header;
    const uint32_t status = header->aux >> 10;
    if (outcome != EXANEST_WHOLE || header->type != EXANEST_ACKNOWLEDGEMENT || header->has_footer ||
        status >= EXANEST_STATUS_COUNT) {
        packetizer->counters.unexpected++;
        return;
    }
    struct exanest_packetizer_channel *channel = asked(packetizer, header->aux & 0x3ff);
    if (channel == NULL || channel->pdid != header->pdid) {
        packetizer->counters.stale++;
        return;
    }
    on_answer(packetizer, channel, (enum exanest_status)status);
}

void exanest_packetizer_take(struct exanest_packetizer *packetizer, const struct exanest_beat *beat)
{
    INVARIANTS(exanest_packetizer_check(packetizer));
    const struct exanest_intake_step step = exanest_intake_take(&packetizer->intake, beat);
    packetizer->counters.unexpected += step.interrupted;
    if (step.ends) {
        on_end(packetizer, step.outcome);
    }
    INVARIANTS(exanest_packetizer_check(packetizer));
}

/* -- Time ---------------------------------------------------------------------------------------*/

static void expire(struct exanest_packetizer *packetizer,
                   struct exanest_packetizer_channel *channel)
{
    packetizer->counters.timeouts += channel->phase == EXANEST_CHANNEL_WAITING;
    retry(packetizer, channel, 0);
}

static void expire_all(struct exanest_packetizer *packetizer)
{
    for (uint32_t left = packetizer->timed; left != 0; left &= left - 1) {
        struct exanest_packetizer_channel *channel = &packetizer->channels[__builtin_ctz(left)];
        if (channel->deadline <= packetizer->now) {
            expire(packetizer, channel);
        }
    }
    packetizer->next_deadline = NEVER;
    for (uint32_t left = packetizer->timed; left != 0; left &= left - 1) {
        const uint64_t deadline = packetizer->channels[__builtin_ctz(left)].deadline;
        if (deadline < packetizer->next_deadline) {
            packetizer->next_deadline = deadline;
        }
    }
}

void exanest_packetizer_step(struct exanest_packetizer *packetizer)
{
    INVARIANTS(exanest_packetizer_check(packetizer));
    packetizer->now++;
    if (packetizer->now >= packetizer->next_deadline) {
        expire_all(packetizer);
    }
    if (packetizer->count == 0 && packetizer->ready != 0) {
        begin(packetizer);
    }
    INVARIANTS(exanest_packetizer_check(packetizer));
}
