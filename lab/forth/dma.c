/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A node's bus: the program's requests, and the fetching of their data.
 *
 * By default the NIC's core is target or initiator, not both: while the answer to a split read is
 * awaited or comes, requests of the host are held off. With `core_shared` the host posts while
 * memory is read. The document says nothing of this; only the former takes post + read + memory + n
 * cycles for a request, as rows FNX-A5.dma and FNX-A8.dma have it (docs/decisions/0008).
 */
#include <string.h>

#include "base/bytes.h"
#include "lab/forth/node.h"

#define HEADER_WORDS 1u
#define WORD_BYTES   8u

void forth_node_swap_words(void *to, const void *from, uint32_t words)
{
    const uint8_t *source = from;
    uint8_t *target = to;
    for (uint32_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, source + (size_t)i * WORD_BYTES, WORD_BYTES);
        store_be64(target + (size_t)i * WORD_BYTES, word);
    }
}

void forth_node_count_dma(struct forth_node *node)
{
    const uint64_t now = forth_node_cycle(node);
    const bool waiting = node->sampler.waiting;
    forth_timer_request(&node->registers, now);
    forth_sampler_dma(&node->sampler, now);
    if (waiting) {
        node->samples_out = (uint32_t)node->truth.qwords_out;
        node->samples_in = (uint32_t)node->truth.qwords_in;
        sim_schedule(node->fabric->sim, &node->sample,
                     forth_node_pci_ps(node, forth_sampler_due(&node->sampler)));
    }
}

static void take_sample(struct sim *sim, struct sim_event *event)
{
    struct forth_node *node = CONTAINER_OF(event, struct forth_node, sample);
    forth_sampler_take(
        &node->sampler,
        (struct forth_sample){.out = (uint32_t)node->truth.qwords_out - node->samples_out,
                              .in = (uint32_t)node->truth.qwords_in - node->samples_in});
    if (node->config.samples_apart) {
        node->samples_out = (uint32_t)node->truth.qwords_out;
        node->samples_in = (uint32_t)node->truth.qwords_in;
    }
    const uint64_t due = forth_sampler_due(&node->sampler);
    if (due != UINT64_MAX) {
        sim_schedule(sim, event, forth_node_pci_ps(node, due));
    }
}

void forth_node_notify(struct forth_node *node, uint64_t address, uint64_t word)
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
    return !node->config.core_shared &&
           (node->fetch.state == FORTH_FETCH_SPLIT || node->fetch.state == FORTH_FETCH_DATA);
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
    /* The host that holds the bus is writing this request: to ask again would write it twice. */
    if (node->has_next && node->bus.holder != &node->host && !held_off(node) && !queue_full(node)) {
        forth_bus_request(&node->bus, &node->host);
    }
}

static struct forth_bus_tenure host_granted(struct forth_bus_user *user)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, host);
    return (struct forth_bus_tenure){.overhead = node->config.post};
}

static void host_ended(struct forth_bus_user *user, uint32_t moved)
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
static uint64_t room_ps(struct forth_node *node, const struct forth_request *request)
{
    return forth_node_room_ps(node, forth_node_queue(node, request->node),
                              request->words + HEADER_WORDS);
}

static void await_room(struct forth_node *node, uint64_t when_ps)
{
    if (when_ps != UINT64_MAX) {
        sim_reschedule(node->fabric->sim, &node->room, when_ps);
    }
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
    node->host2net.used += request->words + HEADER_WORDS;
    node->words_to[forth_node_queue(node, request->node)] += request->words + HEADER_WORDS;
    forth_node_show_fifo(node);
    node->fetch_from = forth_node_cycle(node);
    forth_node_count_dma(node);
    forth_bus_request(&node->bus, &node->reader);
}

/* The oldest request that makes sense; false: there is none. */
static bool released(struct forth_node *node, struct forth_request *request)
{
    while (forth_queue_released(&node->queue)) {
        if (forth_queue_next(&node->queue, request) == FORTH_GOOD) {
            return true;
        }
        skip_bad_request(node);
    }
    return false;
}

/* The queue's head stays there until its data are fetched. */
static void fetch_in_order(struct forth_node *node)
{
    struct forth_request request;
    if (!released(node, &request)) {
        return;
    }
    const uint64_t when_ps = room_ps(node, &request);
    if (when_ps > node->fabric->sim->now_ps) {
        await_room(node, when_ps);
        return;
    }
    begin_fetch(node, &request);
    node->fetch_queued = true;
}

/* Requests leave the queue for those of their destinations, which take turns, as far as there is
 * room for their data. */
static void fetch_by_destination(struct forth_node *node)
{
    struct forth_voqs *voqs = &node->voqs;
    struct forth_request request;
    uint64_t eligible = 0, when_ps = UINT64_MAX;
    while (released(node, &request) && forth_voqs_put(voqs, &request)) {
        forth_queue_advance(&node->queue);
    }
    for (uint64_t left = voqs->waiting; left != 0; left &= left - 1) {
        const uint32_t to = (uint32_t)__builtin_ctzll(left);
        const uint64_t at_ps = room_ps(node, forth_voqs_first(voqs, to));
        eligible |= (uint64_t)(at_ps <= node->fabric->sim->now_ps) << to;
        when_ps = at_ps < when_ps ? at_ps : when_ps;
    }
    const int to = forth_round_robin(eligible, node->fetched_last, FORTH_PORTS_MAX);
    if (to < 0) {
        await_room(node, when_ps);
        return;
    }
    node->fetched_last = (uint32_t)to;
    request = *forth_voqs_first(voqs, (uint32_t)to);
    forth_voqs_drop_first(voqs, (uint32_t)to);
    begin_fetch(node, &request);
}

void forth_node_fetch(struct forth_node *node)
{
    if (node->fetch.state != FORTH_FETCH_IDLE || !enabled(node)) {
        return;
    }
    if (node->config.queues > 1) {
        fetch_by_destination(node);
    } else {
        fetch_in_order(node);
    }
}

static struct forth_transfer next_fetch(const struct forth_node *node)
{
    return forth_fetch_next(&node->fetch, node->registers.local_notification);
}

/* The overhead of a read: half of it precedes the request, half of it the answer. */
static struct forth_bus_tenure reader_granted(struct forth_bus_user *user)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, reader);
    const struct forth_transfer transfer = next_fetch(node);
    const uint32_t ask = node->config.read_overhead / 2;
    switch (transfer.step) {
    case FORTH_STEP_ADDRESS: return (struct forth_bus_tenure){.overhead = ask};
    case FORTH_STEP_DATA:
        return (struct forth_bus_tenure){node->config.read_overhead - ask, transfer.qwords};
    case FORTH_STEP_REST:
        return (struct forth_bus_tenure){node->config.read_overhead, transfer.qwords};
    case FORTH_STEP_NOTIFY:
        return (struct forth_bus_tenure){node->config.write_overhead, transfer.qwords};
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
    if (node->program.fetched != NULL) {
        node->program.fetched(node, &node->fetch.request);
    }
    forth_node_fetch(node);
    /* A core that can be posted to while it fetches is, so that the bus goes on fetching. */
    if (!node->config.core_shared || node->fetch.state == FORTH_FETCH_IDLE) {
        forth_node_kick(node);
    }
}

/* There is no memory to read: the operation ends without a packet. */
static void abort_fetch(struct forth_node *node)
{
    forth_config_raise_status(&node->config_space, FORTH_STATUS_GOT_MASTER_ABORT);
    node->truth.aborts++;
    forth_fifo_take(&node->host2net, node->filling->qwords + HEADER_WORDS);
    node->words_to[forth_node_queue(node, node->fetch.request.node)] -=
        node->filling->qwords + HEADER_WORDS;
    sim_pool_give(&node->fabric->packets, node->filling);
    node->filling = NULL;
    node->fetch.state = FORTH_FETCH_DONE;
    end_fetch(node);
}

static void complete_packet(struct forth_node *node)
{
    forth_packet_seal(node->filling);
    const uint32_t queue = forth_node_queue(node, node->fetch.request.node);
    list_append(&node->outgoing[queue], &node->filling->node);
    node->sendable |= UINT64_C(1) << queue;
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
    forth_node_swap_words(&node->filling->payload[(size_t)node->fetch.moved * WORD_BYTES], at,
                          moved);
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
    forth_node_notify(node, node->registers.local_notification, word);
    forth_node_count(node, FORTH_local_notifications, 1);
    node->truth.local_notifications++;
    forth_fetch_moved(&node->fetch, 1);
    if (node->program.notified != NULL) {
        node->program.notified(node, false, word);
    }
}

/* PCI cycles until memory has the data. */
static uint64_t memory_cycles(struct forth_node *node)
{
    const uint32_t jitter = node->config.jitter;
    return node->config.memory_cycles + (jitter > 0 ? prng_below(&node->prng, jitter + 1) : 0);
}

static void await_split(struct forth_node *node)
{
    forth_fetch_split(&node->fetch);
    forth_node_count(node, FORTH_split_operations, 1);
    node->split_from = forth_node_cycle(node);
    if (held_off(node)) {
        forth_bus_withdraw(&node->bus, &node->host);
    } else {
        forth_node_kick(node);
    }
    sim_after(node->fabric->sim, &node->split, forth_node_pci_ps(node, memory_cycles(node)));
}

static void split_is_ready(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct forth_node *node = CONTAINER_OF(event, struct forth_node, split);
    forth_fetch_ready(&node->fetch);
    forth_bus_request(&node->bus, &node->reader);
}

static void reader_ended(struct forth_bus_user *user, uint32_t moved)
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
        forth_bus_request(&node->bus, &node->reader);
        forth_node_kick(node);
    }
}

/* -- Construction -------------------------------------------------------------------------------*/

void forth_node_reset_dma(struct forth_node *node)
{
    forth_bus_withdraw(&node->bus, &node->reader);
    forth_bus_withdraw(&node->bus, &node->writer);
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
    memset(node->words_to, 0, sizeof(node->words_to));
}

void forth_node_attach_bus(struct forth_node *node)
{
    sim_event_init(&node->split, split_is_ready);
    sim_event_init(&node->room, room_is_there);
    sim_event_init(&node->sample, take_sample);
    node->host =
        (struct forth_bus_user){.name = "post", .granted = host_granted, .ended = host_ended};
    node->reader =
        (struct forth_bus_user){.name = "read", .granted = reader_granted, .ended = reader_ended};
    forth_bus_init(&node->bus, node->fabric->sim, node->config.pci);
    forth_bus_attach(&node->bus, &node->host);
    forth_bus_attach(&node->bus, &node->reader);
    forth_node_attach_writer(node);
    node->bus.latency_timer = node->config.latency_timer;
}
