/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A node's bus: the program's requests, the fetching of their data, the delivery of what arrived.
 *
 * The NIC's core is target or initiator, not both: while the answer to a split read is awaited or
 * comes, requests of the host are held off (specification 2.1: a request takes at least
 * post + read + memory + n cycles).
 */
#include <string.h>

#include "base/bytes.h"
#include "lab/forth_node.h"

#define HEADER_WORDS 1u
#define WORD_BYTES   8u
#define CREDIT_WORDS (1u << FORTH_CREDIT_SHIFT)

static uint64_t pci_ps(const struct forth_node *node, uint64_t cycles)
{
    return sim_clock_at(node->config.pci, cycles);
}

/* A word on the link begins with bits 63..56, in memory with bits 7..0. */
static void swap_words(void *to, const void *from, uint32_t words)
{
    const uint8_t *source = from;
    uint8_t *target = to;
    for (uint32_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, source + (size_t)i * WORD_BYTES, WORD_BYTES);
        store_be64(target + (size_t)i * WORD_BYTES, word);
    }
}

static void count_dma(struct forth_node *node)
{
    const uint64_t now = forth_node_cycle(node);
    const bool waiting = node->sampler.waiting;
    forth_timer_request(&node->registers, now);
    forth_sampler_dma(&node->sampler, now);
    if (waiting) {
        node->samples_out = (uint32_t)node->truth.qwords_out;
        node->samples_in = (uint32_t)node->truth.qwords_in;
        sim_schedule(node->fabric->sim, &node->sample,
                     pci_ps(node, forth_sampler_due(&node->sampler)));
    }
}

static void take_sample(struct sim *sim, struct sim_event *event)
{
    struct forth_node *node = CONTAINER_OF(event, struct forth_node, sample);
    forth_sampler_take(
        &node->sampler,
        (struct forth_sample){.out = (uint32_t)node->truth.qwords_out - node->samples_out,
                              .in = (uint32_t)node->truth.qwords_in - node->samples_in});
    const uint64_t due = forth_sampler_due(&node->sampler);
    if (due != UINT64_MAX) {
        sim_schedule(sim, event, pci_ps(node, due));
    }
}

/* A write of one word, if there is memory at its address. */
static void write_notification(struct forth_node *node, uint64_t address, uint64_t word)
{
    uint8_t *at;
    if (sim_memory_at(&node->memory, address, WORD_BYTES, &at) != SIM_MEMORY_GOOD) {
        forth_config_raise_status(&node->config_space, FORTH_STATUS_GOT_MASTER_ABORT);
        node->truth.aborts++;
        return;
    }
    memcpy(at, &word, WORD_BYTES);
}

/* -- The host posts -----------------------------------------------------------------------------*/

static bool held_off(const struct forth_node *node)
{
    return node->fetch.state == FORTH_FETCH_SPLIT || node->fetch.state == FORTH_FETCH_DATA;
}

static bool queue_full(const struct forth_node *node)
{
    const uint32_t usable = FORTH_QUEUE_REQUESTS - (node->config.full_by_pointer ? 1 : 0);
    return node->queue.pending >= usable;
}

void forth_node_kick(struct forth_node *node)
{
    if (!node->has_next && node->program.post != NULL) {
        node->has_next = node->program.post(node, &node->next);
    }
    if (node->has_next && !held_off(node) && !queue_full(node)) {
        sim_bus_request(&node->bus, &node->host);
    }
}

static struct sim_bus_tenure host_granted(struct sim_bus_user *user)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, host);
    return (struct sim_bus_tenure){.overhead = node->config.post};
}

static void host_ended(struct sim_bus_user *user, uint32_t moved)
{
    (void)moved;
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, host);
    uint64_t words[2];
    forth_request_encode(&node->next, words);
    const uint32_t offset = 16 * (uint32_t)node->queue.tail;
    forth_queue_write(&node->queue, offset, words[0], WORD_BYTES);
    forth_queue_write(&node->queue, offset + WORD_BYTES, words[1], WORD_BYTES);
    node->truth.posted++;
    node->has_next = false;
    forth_node_fetch(node);
    forth_node_kick(node);
}

/* -- Fetching -----------------------------------------------------------------------------------*/

static bool enabled(const struct forth_node *node)
{
    return forth_registers_initiator_enabled(&node->registers) &&
           forth_config_master_enabled(&node->config_space);
}

/* Room for the packet is reserved before its data is asked for, because two of the largest packets
 * do not fit. */
static bool reserve(struct forth_node *node, uint32_t words)
{
    const uint64_t room_ps = forth_node_room_ps(node, words);
    if (room_ps > node->fabric->sim->now_ps) {
        if (room_ps != UINT64_MAX) {
            sim_reschedule(node->fabric->sim, &node->room, room_ps);
        }
        return false;
    }
    return true;
}

static void room_is_there(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    forth_node_fetch(CONTAINER_OF(event, struct forth_node, room));
}

static void skip_bad_request(struct forth_node *node)
{
    forth_queue_advance(&node->queue);
    node->truth.bad_requests++;
}

static void begin_fetch(struct forth_node *node, const struct forth_request *request)
{
    struct forth_packet *packet = sim_pool_take(&node->fabric->packets);
    CHECK(packet != NULL);
    const struct forth_header header = forth_fetch_header(request);
    packet->header = forth_header_encode(&header);
    packet->qwords = request->words;
    node->filling = packet;
    forth_fetch_begin(&node->fetch, request);
    node->fetch_queued = true;
    node->host2net.used += request->words + HEADER_WORDS;
    forth_node_show_fifo(node);
    node->fetch_from = forth_node_cycle(node);
    count_dma(node);
    sim_bus_request(&node->bus, &node->reader);
}

void forth_node_fetch(struct forth_node *node)
{
    while (node->fetch.state == FORTH_FETCH_IDLE && enabled(node) &&
           forth_queue_released(&node->queue)) {
        struct forth_request request;
        if (forth_queue_next(&node->queue, &request) != FORTH_GOOD) {
            skip_bad_request(node);
            continue;
        }
        if (!reserve(node, request.words + HEADER_WORDS)) {
            return;
        }
        begin_fetch(node, &request);
    }
}

static struct forth_transfer next_fetch(const struct forth_node *node)
{
    return forth_fetch_next(&node->fetch, node->registers.local_notification);
}

/* The overhead of a read: half of it precedes the request, half of it the answer. */
static struct sim_bus_tenure reader_granted(struct sim_bus_user *user)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, reader);
    const struct forth_transfer transfer = next_fetch(node);
    const uint32_t ask = node->config.read_overhead / 2;
    switch (transfer.step) {
    case FORTH_STEP_ADDRESS: return (struct sim_bus_tenure){.overhead = ask};
    case FORTH_STEP_DATA:
        return (struct sim_bus_tenure){node->config.read_overhead - ask, transfer.qwords};
    case FORTH_STEP_REST:
        return (struct sim_bus_tenure){node->config.read_overhead, transfer.qwords};
    case FORTH_STEP_NOTIFY:
        return (struct sim_bus_tenure){node->config.write_overhead, transfer.qwords};
    case FORTH_STEP_NONE:
    case FORTH_STEP_WRITE: break;
    }
    UNREACHABLE("a fetch that wants nothing of the bus");
}

/* The request at the head is done, unless the queue was reset meanwhile. */
static void leave_queue(struct forth_node *node)
{
    if (node->fetch_queued) {
        forth_queue_advance(&node->queue);
        node->fetch_queued = false;
    }
}

static void end_fetch(struct forth_node *node)
{
    const uint64_t now = forth_node_cycle(node);
    forth_node_count(node, FORTH_host2nic_dma_ops, 1);
    forth_node_count(node, FORTH_host2nic_dma_active, now - node->fetch_from);
    forth_timer_completed(&node->registers, now);
    forth_fetch_end(&node->fetch);
    leave_queue(node);
    node->truth.fetched++;
    forth_node_fetch(node);
    forth_node_kick(node);
}

/* There is no memory to read: the operation ends without a packet. */
static void abort_fetch(struct forth_node *node)
{
    forth_config_raise_status(&node->config_space, FORTH_STATUS_GOT_MASTER_ABORT);
    node->truth.aborts++;
    forth_fifo_take(&node->host2net, node->filling->qwords + HEADER_WORDS);
    sim_pool_give(&node->fabric->packets, node->filling);
    node->filling = NULL;
    node->fetch.state = FORTH_FETCH_DONE;
    end_fetch(node);
}

static void complete_packet(struct forth_node *node)
{
    forth_packet_seal(node->filling);
    list_append(&node->outgoing, &node->filling->node);
    node->filling = NULL;
    forth_fifo_count(&node->host2net, true, false);
    forth_node_transmit(node);
}

static void data_came(struct forth_node *node, const struct forth_transfer *transfer,
                      uint32_t moved)
{
    uint8_t *at = NULL;
    if (moved > 0 && sim_memory_at(&node->memory, transfer->address, (size_t)moved * WORD_BYTES,
                                   &at) != SIM_MEMORY_GOOD) {
        abort_fetch(node);
        return;
    }
    swap_words(&node->filling->payload[(size_t)node->fetch.moved * WORD_BYTES], at, moved);
    node->truth.qwords_out += moved;
    forth_node_count(node, FORTH_host2nic_qwords, moved);
    forth_node_count(node, FORTH_host2nic_requests, 1);
    forth_node_count(node, FORTH_host2nic_disconnects, moved < transfer->qwords);
    forth_fetch_moved(&node->fetch, moved);
    if (moved == transfer->qwords) {
        complete_packet(node);
    }
}

static void notify_locally(struct forth_node *node)
{
    const struct forth_request *request = &node->fetch.request;
    const uint64_t word = forth_notification(request->words, request->node, ++node->notifications);
    write_notification(node, node->registers.local_notification, word);
    forth_node_count(node, FORTH_local_notifications, 1);
    node->truth.local_notifications++;
    forth_fetch_moved(&node->fetch, 1);
    if (node->program.notified != NULL) {
        node->program.notified(node, false, word);
    }
}

static void await_split(struct forth_node *node)
{
    forth_fetch_split(&node->fetch);
    forth_node_count(node, FORTH_split_operations, 1);
    node->split_from = forth_node_cycle(node);
    sim_bus_withdraw(&node->bus, &node->host);
    sim_after(node->fabric->sim, &node->split, pci_ps(node, node->config.memory_cycles));
}

static void split_is_ready(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct forth_node *node = CONTAINER_OF(event, struct forth_node, split);
    forth_fetch_ready(&node->fetch);
    sim_bus_request(&node->bus, &node->reader);
}

static void reader_ended(struct sim_bus_user *user, uint32_t moved)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, reader);
    const struct forth_transfer transfer = next_fetch(node);
    if (node->reader_stale) {
        node->reader_stale = false;
        return;
    }
    const uint64_t held = forth_node_cycle(node) - node->bus.began;
    forth_node_count(node, FORTH_host2nic_bus_granted, held);
    switch (transfer.step) {
    case FORTH_STEP_ADDRESS: await_split(node); return;
    case FORTH_STEP_DATA:
        /* The time from the split's response to the first datum. */
        forth_node_count(node, FORTH_split_duration,
                         forth_node_cycle(node) - moved - node->split_from);
        data_came(node, &transfer, moved);
        break;
    case FORTH_STEP_REST: data_came(node, &transfer, moved); break;
    case FORTH_STEP_NOTIFY: notify_locally(node); break;
    case FORTH_STEP_NONE:
    case FORTH_STEP_WRITE: UNREACHABLE("a fetch that had the bus for nothing");
    }
    if (node->fetch.state == FORTH_FETCH_DONE) {
        end_fetch(node);
    } else if (node->fetch.state != FORTH_FETCH_IDLE) {
        sim_bus_request(&node->bus, &node->reader);
        forth_node_kick(node);
    }
}

/* -- Delivering ---------------------------------------------------------------------------------*/

static struct forth_packet *arrived(const struct forth_node *node)
{
    return CONTAINER_OF(node->incoming.next, struct forth_packet, node);
}

void forth_node_deliver(struct forth_node *node)
{
    if (node->delivery.busy || list_empty(&node->incoming)) {
        return;
    }
    struct forth_header header;
    CHECK(forth_header_decode(arrived(node)->header, &header) == FORTH_GOOD);
    forth_delivery_begin(&node->delivery, &header);
    node->delivery_from = forth_node_cycle(node);
    count_dma(node);
    sim_bus_request(&node->bus, &node->writer);
}

static struct forth_transfer next_delivery(const struct forth_node *node)
{
    return forth_delivery_next(&node->delivery, node->registers.remote_notification);
}

/* The next moment at which the ledger's value changes while words go to the host. */
static void watch_credit(struct forth_node *node)
{
    const uint32_t next = CREDIT_WORDS - node->ledger.forwarded % CREDIT_WORDS;
    if (node->forwarded + next <= node->to_forward) {
        sim_schedule(node->fabric->sim, &node->forward,
                     node->forward_from_ps + pci_ps(node, node->forwarded + next));
    }
}

static void forward(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct forth_node *node = CONTAINER_OF(event, struct forth_node, forward);
    const uint32_t words = CREDIT_WORDS - node->ledger.forwarded % CREDIT_WORDS;
    node->forwarded += words;
    forth_node_forwarded(node, words);
    watch_credit(node);
}

static struct sim_bus_tenure writer_granted(struct sim_bus_user *user)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, writer);
    const struct forth_transfer transfer = next_delivery(node);
    const uint32_t overhead = node->config.write_overhead;
    if (transfer.step == FORTH_STEP_WRITE) {
        node->forwarded = 0;
        node->to_forward = transfer.qwords;
        node->forward_from_ps = pci_ps(node, node->bus.began + overhead);
        watch_credit(node);
    }
    return (struct sim_bus_tenure){overhead, transfer.qwords};
}

static void raise_interrupt(struct forth_node *node)
{
    forth_config_raise_interrupt(&node->config_space);
    node->truth.interrupts++;
    if (!node->irq && forth_config_interrupts(&node->config_space)) {
        node->irq = true;
        node->irq_from = forth_node_cycle(node);
        forth_node_count(node, FORTH_irq_assertions, 1);
        if (node->program.interrupted != NULL) {
            node->program.interrupted(node);
        }
    }
}

/* The packet's overhead leaves the FIFO with its last word. */
static void end_delivery(struct forth_node *node)
{
    struct forth_packet *packet = arrived(node);
    const struct forth_header header = node->delivery.header;
    const uint64_t now = forth_node_cycle(node);
    const bool good = forth_body_crc(FORTH_BODY_CRC_BEGIN, packet->payload,
                                     (size_t)packet->qwords * WORD_BYTES) == packet->body_crc;
    forth_node_count(node, FORTH_nic2host_dma_ops, 1);
    forth_node_count(node, FORTH_nic2host_dma_active, now - node->delivery_from);
    forth_node_count(node, FORTH_body_crc_errors, !good);
    forth_timer_completed(&node->registers, now);
    forth_fifo_take(&node->net2host, packet->qwords + HEADER_WORDS);
    forth_node_forwarded(node, FORTH_OVERHEAD_WORDS);
    node->truth.delivered++;
    node->truth.flagged += !good;
    sim_note(node->fabric->sim, packet->header ^ packet->body_crc);
    list_remove(&packet->node);
    sim_pool_give(&node->fabric->packets, packet);
    if (node->program.delivered != NULL) {
        node->program.delivered(node, &header, !good);
    }
    if (header.flags.remote_interrupt) {
        raise_interrupt(node);
    }
    forth_node_deliver(node);
}

static void data_went(struct forth_node *node, const struct forth_transfer *transfer,
                      uint32_t moved)
{
    const struct forth_packet *packet = arrived(node);
    uint8_t *at = NULL;
    sim_cancel(&node->forward);
    if (moved > 0 && sim_memory_at(&node->memory, transfer->address, (size_t)moved * WORD_BYTES,
                                   &at) == SIM_MEMORY_GOOD) {
        swap_words(at, &packet->payload[(size_t)node->delivery.moved * WORD_BYTES], moved);
    } else if (moved > 0) {
        forth_config_raise_status(&node->config_space, FORTH_STATUS_GOT_MASTER_ABORT);
        node->truth.aborts++;
    }
    /* The bus must not have overtaken the link. */
    CHECK(node->delivery.moved + moved < packet->qwords ||
          node->fabric->sim->now_ps + pci_ps(node, 1) >= packet->ended_ps);
    node->truth.qwords_in += moved;
    forth_node_forwarded(node, moved - node->forwarded);
    forth_node_count(node, FORTH_nic2host_qwords, moved);
    forth_node_count(node, FORTH_nic2host_requests, 1);
    forth_node_count(node, FORTH_nic2host_disconnects, moved < transfer->qwords);
}

static void notify_remotely(struct forth_node *node)
{
    const struct forth_header *header = &node->delivery.header;
    const uint64_t word = forth_notification(header->words, header->node, ++node->notifications);
    write_notification(node, node->registers.remote_notification, word);
    forth_node_count(node, FORTH_remote_notifications, 1);
    node->truth.remote_notifications++;
    if (node->program.notified != NULL) {
        node->program.notified(node, true, word);
    }
}

static void writer_ended(struct sim_bus_user *user, uint32_t moved)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, writer);
    const struct forth_transfer transfer = next_delivery(node);
    if (node->writer_stale) {
        node->writer_stale = false;
        return;
    }
    forth_node_count(node, FORTH_nic2host_bus_granted, forth_node_cycle(node) - node->bus.began);
    if (transfer.step == FORTH_STEP_NOTIFY) {
        notify_remotely(node);
    } else {
        data_went(node, &transfer, moved);
    }
    if (forth_delivery_moved(&node->delivery, moved)) {
        end_delivery(node);
    } else {
        sim_bus_request(&node->bus, &node->writer);
    }
}

/* -- Construction -------------------------------------------------------------------------------*/

void forth_node_reset_dma(struct forth_node *node)
{
    sim_bus_withdraw(&node->bus, &node->reader);
    sim_bus_withdraw(&node->bus, &node->writer);
    node->reader_stale = node->bus.holder == &node->reader;
    node->writer_stale = node->bus.holder == &node->writer;
    sim_cancel(&node->split);
    sim_cancel(&node->room);
    sim_cancel(&node->forward);
    if (node->filling != NULL) {
        sim_pool_give(&node->fabric->packets, node->filling);
        node->filling = NULL;
    }
    leave_queue(node);
    node->fetch = (struct forth_fetch){.state = FORTH_FETCH_IDLE};
    node->delivery = (struct forth_delivery){.busy = false};
    node->host2net = node->net2host = (struct forth_fifo){.used = 0};
}

void forth_node_attach_bus(struct forth_node *node)
{
    sim_event_init(&node->split, split_is_ready);
    sim_event_init(&node->room, room_is_there);
    sim_event_init(&node->forward, forward);
    sim_event_init(&node->sample, take_sample);
    node->host =
        (struct sim_bus_user){.name = "post", .granted = host_granted, .ended = host_ended};
    node->reader =
        (struct sim_bus_user){.name = "read", .granted = reader_granted, .ended = reader_ended};
    node->writer =
        (struct sim_bus_user){.name = "write", .granted = writer_granted, .ended = writer_ended};
    sim_bus_init(&node->bus, node->fabric->sim, node->config.pci);
    sim_bus_attach(&node->bus, &node->host);
    sim_bus_attach(&node->bus, &node->reader);
    sim_bus_attach(&node->bus, &node->writer);
    node->bus.latency_timer = node->config.latency_timer;
}
