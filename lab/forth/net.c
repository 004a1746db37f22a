/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A node's link: packets out of Host2Net, packets into Net2Host, and the credits of both.
 */
#include "lab/forth/node.h"
#include "sim/trace.h"

#define HEADER_WORDS 1u
/* After this many periods in which the link was never idle a repeated credit is urgent. */
#define QUIET_MAX 8u

static uint64_t net_ps(const struct forth_node *node, uint64_t cycles)
{
    return sim_clock_at(node->config.net, cycles);
}

/* A word of the FIFO takes a cycle on two links, two on one. */
static uint64_t word_ps(const struct forth_node *node)
{
    return net_ps(node, node->config.lanes == 1 ? 2 : 1);
}

/* -- Host2Net -----------------------------------------------------------------------------------*/

/* Words of the packet on the link that have left the FIFO. */
static uint32_t left_so_far(const struct forth_node *node)
{
    const uint64_t now = node->fabric->sim->now_ps;
    if (node->leaving == 0 || now <= node->leaving_from_ps) {
        return 0;
    }
    const uint64_t words = (now - node->leaving_from_ps) / word_ps(node);
    return words < node->leaving ? (uint32_t)words : node->leaving;
}

/* When `words` more fit into a memory of `room` words, out of which `leaving` words go. */
static uint64_t fits_ps(const struct forth_node *node, uint32_t used, uint32_t words, uint32_t room,
                        uint32_t leaving)
{
    if (used + words <= room + (leaving > 0 ? left_so_far(node) : 0)) {
        return 0;
    }
    const uint32_t missing = used + words - room;
    return missing > leaving ? UINT64_MAX : node->leaving_from_ps + missing * word_ps(node);
}

/* Each queue has an equal share of the memory; a packet that is larger has to be alone in it. */
uint64_t forth_node_room_ps(struct forth_node *node, uint32_t queue, uint32_t words)
{
    const uint64_t all_ps =
        fits_ps(node, node->host2net.used, words, FORTH_FIFO_WORDS, node->leaving);
    const uint32_t share = FORTH_FIFO_WORDS / node->config.queues;
    const uint32_t leaving = node->leaving_queue == queue ? node->leaving : 0;
    const uint64_t own_ps =
        fits_ps(node, node->words_to[queue], words, words > share ? words : share, leaving);
    return all_ps > own_ps ? all_ps : own_ps;
}

void forth_node_show_fifo(struct forth_node *node)
{
    if (UNLIKELY(node->fabric->trace != NULL)) {
        sim_trace_value(node->fabric->trace, node->fifo_track, node->fabric->sim->now_ps,
                        node->host2net.used);
    }
}

static void end_leaving(struct forth_node *node)
{
    if (node->leaving > 0 && left_so_far(node) == node->leaving) {
        forth_fifo_take(&node->host2net, node->leaving);
        node->words_to[node->leaving_queue] -= node->leaving;
        node->leaving = 0;
        forth_node_show_fifo(node);
    }
}

static void unblock(struct forth_node *node)
{
    if (node->blocked) {
        const uint64_t waited = node->fabric->sim->now_ps - node->blocked_from_ps;
        node->blocked = false;
        forth_node_count(node, FORTH_backpressure_cycles, waited / net_ps(node, 1));
    }
}

static void block(struct forth_node *node)
{
    if (!node->blocked) {
        node->blocked = true;
        node->blocked_from_ps = node->fabric->sim->now_ps;
    }
}

static void send_credit(struct forth_node *node)
{
    const struct forth_credit credit = {.flow = (uint8_t)node->config.index,
                                        .value = forth_ledger_take(&node->ledger)};
    node->credits_due--;
    node->quiet_refreshes = 0;
    forth_link_credit(node->out, credit, node->fabric->sim->now_ps, node->config.credit);
    forth_node_count(node, FORTH_outgoing_cycles, 2);
    node->truth.credits_out++;
}

static void send_packet(struct forth_node *node, struct forth_packet *packet)
{
    const uint32_t qwords = packet->qwords;
    const uint32_t queue = forth_node_queue(node, (uint32_t)(packet->header >> 56));
    list_remove(&packet->node);
    if (list_empty(&node->outgoing[queue])) {
        node->sendable &= ~(UINT64_C(1) << queue);
    }
    node->sent_last = queue;
    node->leaving_queue = queue;
    forth_fifo_count(&node->host2net, false, true);
    forth_window_sent(&node->windows[packet->header >> 56], qwords + FORTH_OVERHEAD_WORDS);
    node->leaving = qwords + HEADER_WORDS;
    node->leaving_from_ps = node->fabric->sim->now_ps;
    forth_node_count(node, FORTH_outgoing_packets, 1);
    forth_node_count(node, FORTH_outgoing_cycles, forth_link_cycles(node->out, qwords));
    forth_node_count(node, FORTH_host2net_starts, 1);
    forth_node_count(node, FORTH_dequeued_words, node->leaving);
    node->truth.packets_out++;
    forth_link_packet(node->out, packet, node->fabric->sim->now_ps);
    forth_node_fetch(node); /* There will be room for another packet. */
}

static bool admitted(const struct forth_node *node, uint32_t queue)
{
    const struct forth_packet *packet =
        CONTAINER_OF(node->outgoing[queue].next, struct forth_packet, node);
    return forth_window_admits(&node->windows[packet->header >> 56],
                               packet->qwords + FORTH_OVERHEAD_WORDS);
}

/* The queues whose first packets have credit take turns. NULL: none has. */
static struct forth_packet *next_packet(const struct forth_node *node)
{
    uint64_t eligible = 0;
    for (uint64_t left = node->sendable; left != 0; left &= left - 1) {
        const uint32_t queue = (uint32_t)__builtin_ctzll(left);
        eligible |= (uint64_t)admitted(node, queue) << queue;
    }
    const int queue = forth_round_robin(eligible, node->sent_last, FORTH_PORTS_MAX);
    return queue < 0 ? NULL : CONTAINER_OF(node->outgoing[queue].next, struct forth_packet, node);
}

static void transmit(struct sim *sim, struct sim_event *event)
{
    struct forth_node *node = CONTAINER_OF(event, struct forth_node, transmit);
    if (node->out->free_ps > sim->now_ps) {
        sim_schedule(sim, event, node->out->free_ps);
        return;
    }
    end_leaving(node);
    if (node->credits_due > 0) {
        send_credit(node);
    } else if (node->sendable != 0) {
        struct forth_packet *packet = next_packet(node);
        if (packet == NULL) {
            block(node);
            return;
        }
        unblock(node);
        send_packet(node, packet);
    } else {
        return;
    }
    if (!sim_event_scheduled(event)) {
        sim_schedule(sim, event, node->out->free_ps);
    }
}

void forth_node_transmit(struct forth_node *node)
{
    const uint64_t at_ps = node->fabric->sim->now_ps + net_ps(node, node->config.to_net);
    if (!sim_event_scheduled(&node->transmit)) {
        sim_schedule(node->fabric->sim, &node->transmit,
                     at_ps > node->out->free_ps ? at_ps : node->out->free_ps);
    }
}

/* -- Net2Host -----------------------------------------------------------------------------------*/

void forth_node_forwarded(struct forth_node *node, uint32_t words)
{
    const uint32_t before = node->ledger.forwarded >> FORTH_CREDIT_SHIFT;
    forth_ledger_forwarded(&node->ledger, words);
    const uint32_t changes = ((node->ledger.forwarded >> FORTH_CREDIT_SHIFT) - before) &
                             (FORTH_COUNTER_MASK >> FORTH_CREDIT_SHIFT);
    if (changes > 0) {
        node->credits_due = node->config.credits_coalesce ? 1 : node->credits_due + changes;
        forth_node_transmit(node);
    }
}

/* The words of the packet have been paid for, so they count as taken out. */
static void discard(struct forth_node *node, struct forth_packet *packet,
                    enum forth_counter counter)
{
    forth_node_count(node, counter, 1);
    node->truth.header_errors++;
    forth_node_forwarded(node, packet->qwords + FORTH_OVERHEAD_WORDS);
    forth_packet_lose(node->fabric, packet);
}

/* A header that passed its CRC may still be wrong: the size in it must be the packet's. */
static bool header_agrees(const struct forth_packet *packet)
{
    struct forth_header header;
    return forth_header_decode(packet->header, &header) == FORTH_GOOD &&
           header.words == packet->qwords;
}

static void on_packet(struct forth_end *end, struct forth_packet *packet)
{
    struct forth_node *node = CONTAINER_OF(end, struct forth_node, end);
    forth_node_count(node, FORTH_incoming_cycles, forth_link_cycles(node->out, packet->qwords));
    if (packet->fate == FORTH_FATE_HEADER && !node->config.crc_ignored) {
        discard(node, packet, FORTH_header_crc_errors);
        return;
    }
    if (packet->fate == FORTH_FATE_SOP) {
        discard(node, packet, FORTH_fifo_alignment_errors);
        return;
    }
    if (!header_agrees(packet)) {
        discard(node, packet, FORTH_header_alignment_errors);
        return;
    }
    const uint32_t words = packet->qwords + HEADER_WORDS;
    forth_node_count(node, FORTH_incoming_packets, 1);
    forth_node_count(node, FORTH_net2host_starts, 1);
    forth_node_count(node, FORTH_enqueued_words, words);
    const uint32_t lost = forth_fifo_put(&node->net2host, words);
    if (lost > 0) { /* The credits did not hold: the packet cannot be delivered. */
        forth_node_count(node, FORTH_net2host_fifo_full, lost);
        forth_fifo_take(&node->net2host, words - lost);
        forth_packet_lose(node->fabric, packet);
        return;
    }
    list_append(&node->incoming, &packet->node);
    forth_node_deliver(node);
}

static void on_credit(struct forth_end *end, uint16_t word)
{
    struct forth_node *node = CONTAINER_OF(end, struct forth_node, end);
    struct forth_credit credit;
    forth_node_count(node, FORTH_incoming_cycles, 2);
    if (forth_credit_decode(word, &credit) != FORTH_GOOD) {
        forth_node_count(node, FORTH_parity_errors_0, 1);
        node->truth.bad_credits++;
        return;
    }
    node->truth.credits_in++;
    struct forth_window *window = &node->windows[credit.flow];
    const uint16_t before = window->forwarded;
    forth_window_credit(window, credit.value);
    if (window->forwarded != before) {
        node->credit_told_ps = node->fabric->sim->now_ps;
    }
    if (node->blocked && !sim_event_scheduled(&node->transmit)) {
        sim_schedule(node->fabric->sim, &node->transmit, node->fabric->sim->now_ps);
    }
}

/* -- Repetition ---------------------------------------------------------------------------------*/

static void refresh(struct sim *sim, struct sim_event *event)
{
    struct forth_node *node = CONTAINER_OF(event, struct forth_node, refresh);
    const bool idle = node->out->free_ps <= sim->now_ps && node->credits_due == 0;
    node->quiet_refreshes++;
    if (idle || node->quiet_refreshes > QUIET_MAX) {
        node->credits_due = node->config.credits_coalesce ? 1 : node->credits_due + 1;
        forth_node_transmit(node);
    }
    sim_after(sim, event, node->config.refresh_ps);
}

/* -- Construction -------------------------------------------------------------------------------*/

static void drop_all(struct forth_node *node, struct list *packets)
{
    struct list *at;
    while ((at = list_pop(packets)) != NULL) {
        sim_pool_give(&node->fabric->packets, CONTAINER_OF(at, struct forth_packet, node));
    }
}

/* Packets that waited to leave were not sent yet; packets that came count as taken out. */
void forth_node_reset_link(struct forth_node *node)
{
    for (uint32_t i = 0; i < FORTH_PORTS_MAX; i++) {
        drop_all(node, &node->outgoing[i]);
    }
    node->sendable = 0;
    struct list *at;
    while ((at = list_pop(&node->incoming)) != NULL) {
        struct forth_packet *packet = CONTAINER_OF(at, struct forth_packet, node);
        forth_node_forwarded(node, packet->qwords + FORTH_OVERHEAD_WORDS);
        sim_pool_give(&node->fabric->packets, packet);
    }
    node->leaving = 0;
    node->blocked = false;
}

void forth_node_attach_link(struct forth_node *node)
{
    const struct forth_node_config *config = &node->config;
    /* The receiver acts behind SOP, header and header CRC, in the other clock domain. */
    const uint32_t head = config->lanes == 1 ? 4 : 3;
    node->end = (struct forth_end){.lead = head + config->to_pci,
                                   .part = config->part,
                                   .of_parts = config->of_parts,
                                   .eager = true, /* Its counters tell of every credit. */
                                   .in = node->end.in,
                                   .on_packet = on_packet,
                                   .on_credit = on_credit};
    for (uint32_t i = 0; i < FORTH_PORTS_MAX; i++) {
        list_init(&node->outgoing[i]);
    }
    list_init(&node->incoming);
    sim_event_init(&node->transmit, transmit);
    sim_event_init(&node->refresh, refresh);
    for (uint32_t i = 0; i < FORTH_NODES; i++) {
        forth_window_init(&node->windows[i], (uint16_t)config->window_words);
    }
    if (config->refresh_ps > 0) {
        sim_after(node->fabric->sim, &node->refresh, config->refresh_ps);
    }
}
