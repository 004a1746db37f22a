/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/lant/packet_sender.h"

void lant_packet_sender_init(struct lant_packet_sender *sender,
                             const struct lant_sender_config *config)
{
    CHECK(config->sources >= 1 && config->sources <= LANT_SOURCES);
    CHECK(config->requests >= 1 && config->requests <= LANT_SEND_REQUESTS_MAX);
    CHECK(config->flits >= 1 && config->flits <= LANT_SEND_FLITS_MAX);
    *sender = (struct lant_packet_sender){.config = *config};
}

void lant_packet_sender_check(const struct lant_packet_sender *sender)
{
    for (uint32_t i = 0; i < LANT_SOURCES; i++) {
        const struct lant_send_queue *queue = &sender->queues[i];
        const bool used = i < sender->config.sources;
        CHECK(queue->count <= (used ? sender->config.requests : 0));
        CHECK(queue->data_count <= (used ? sender->config.flits : 0));
        CHECK(queue->head < LANT_SEND_REQUESTS_MAX && queue->data_head < LANT_SEND_FLITS_MAX);
    }
    CHECK(sender->stands || !sender->taken);
    CHECK(sender->active || !sender->stands);
    CHECK(!sender->active || sender->stands || sender->part == LANT_BODY);
    CHECK(sender->source < sender->config.sources);
    if (sender->active) {
        const uint32_t payload = sender->packet.header.payload;
        CHECK(sender->part > LANT_BODY ? sender->left == 0 : sender->left <= payload);
        CHECK(sender->part != LANT_BODY || sender->left > 0);
        CHECK(sender->flit.last == (sender->part == LANT_FOOT2) || !sender->stands);
    }
}

/* -- Queues -------------------------------------------------------------------------------------*/

void lant_packet_sender_take(struct lant_packet_sender *sender, uint32_t source,
                             const struct lant_ends *request)
{
    CHECK(source < sender->config.sources && lant_packet_sender_ready(sender, source));
    CHECK(request->header.payload <= LANT_PAYLOAD_FLITS_MAX);
    struct lant_send_queue *queue = &sender->queues[source];
    queue->requests[(queue->head + queue->count) % LANT_SEND_REQUESTS_MAX] = *request;
    queue->count++;
}

void lant_packet_sender_take_data(struct lant_packet_sender *sender, uint32_t source, uint64_t flit)
{
    CHECK(source < sender->config.sources && lant_packet_sender_data_ready(sender, source));
    struct lant_send_queue *queue = &sender->queues[source];
    queue->data[(queue->data_head + queue->data_count) % LANT_SEND_FLITS_MAX] = flit;
    queue->data_count++;
}

/* HEAD1: the first source that has a request. False: none has. */
static bool begin_packet(struct lant_packet_sender *sender)
{
    for (uint32_t source = 0; source < sender->config.sources; source++) {
        struct lant_send_queue *queue = &sender->queues[source];
        if (queue->count > 0) {
            sender->packet = queue->requests[queue->head];
            queue->head = (uint8_t)((queue->head + 1) % LANT_SEND_REQUESTS_MAX);
            queue->count--;
            sender->active = true;
            sender->source = (uint8_t)source;
            sender->part = LANT_HEAD1;
            sender->left = sender->packet.header.payload;
            sender->crc = LANT_CRC_START;
            sender->counters.packets[source]++;
            return true;
        }
    }
    return false;
}

/* -- A cycle ------------------------------------------------------------------------------------*/

bool lant_packet_sender_offer(const struct lant_packet_sender *sender, struct lant_flit *flit)
{
    if (!sender->stands || sender->taken) {
        return false;
    }
    *flit = sender->flit;
    return true;
}

void lant_packet_sender_taken(struct lant_packet_sender *sender)
{
    CHECK(sender->stands && !sender->taken);
    sender->taken = true;
}

/* The flit has left. */
static void advance(struct lant_packet_sender *sender)
{
    sender->stands = false;
    sender->taken = false;
    sender->counters.flits++;
    sender->crc = lant_crc_flit(sender->crc, sender->part, sender->flit.data);
    if (sender->part == LANT_FOOT2) {
        sender->active = false;
        return;
    }
    if (sender->part == LANT_BODY) {
        sender->left--;
    }
    sender->part = lant_part_next(&sender->packet.header, sender->part, sender->left);
}

/* The flit of the part that is reached comes to the output, if there is one. */
static void show(struct lant_packet_sender *sender)
{
    uint64_t data;
    if (sender->part == LANT_BODY) {
        struct lant_send_queue *queue = &sender->queues[sender->source];
        if (queue->data_count == 0) {
            sender->counters.waits++;
            return;
        }
        data = queue->data[queue->data_head];
        queue->data_head = (uint8_t)((queue->data_head + 1) % LANT_SEND_FLITS_MAX);
        queue->data_count--;
    } else {
        const struct lant_ends *packet = &sender->packet;
        data = lant_flit_encode(&packet->header, &packet->footer, sender->part, sender->crc);
    }
    sender->flit = (struct lant_flit){.data = data, .last = sender->part == LANT_FOOT2};
    sender->stands = true;
}

void lant_packet_sender_step(struct lant_packet_sender *sender)
{
    INVARIANTS(lant_packet_sender_check(sender));
    if (sender->taken) {
        advance(sender);
    }
    if (!sender->stands && (sender->active || begin_packet(sender))) {
        show(sender);
    }
    INVARIANTS(lant_packet_sender_check(sender));
}
