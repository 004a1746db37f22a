/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A node's bus: the delivery of packets that arrived.
 */
#include "lab/forth/node.h"

#define HEADER_WORDS 1u
#define WORD_BYTES   8u
#define CREDIT_WORDS (1u << FORTH_CREDIT_SHIFT)
#define FLAGGED      (UINT64_C(1) << 63) /* In a note: no header has this bit. */

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
    forth_node_count_dma(node);
    forth_bus_request(&node->bus, &node->writer);
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
                     node->forward_from_ps + forth_node_pci_ps(node, node->forwarded + next));
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

static struct forth_bus_tenure writer_granted(struct forth_bus_user *user)
{
    struct forth_node *node = CONTAINER_OF(user, struct forth_node, writer);
    const struct forth_transfer transfer = next_delivery(node);
    const uint32_t overhead = node->config.write_overhead;
    if (transfer.step == FORTH_STEP_WRITE) {
        node->forwarded = 0;
        node->to_forward = transfer.qwords;
        node->forward_from_ps = forth_node_pci_ps(node, node->bus.began + overhead);
        watch_credit(node);
    }
    return (struct forth_bus_tenure){overhead, transfer.qwords};
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
    const bool good = node->config.crc_ignored ||
                      forth_body_crc(FORTH_BODY_CRC_BEGIN, packet->payload,
                                     (size_t)packet->qwords * WORD_BYTES) == packet->body_crc;
    forth_node_count(node, FORTH_nic2host_dma_ops, 1);
    forth_node_count(node, FORTH_nic2host_dma_active, now - node->delivery_from);
    forth_node_count(node, FORTH_body_crc_errors, !good);
    forth_timer_completed(&node->registers, now);
    forth_fifo_take(&node->net2host, packet->qwords + HEADER_WORDS);
    forth_node_forwarded(node, FORTH_OVERHEAD_WORDS);
    node->truth.delivered++;
    node->truth.flagged += !good;
    sim_note(node->fabric->sim, packet->header ^ packet->body_crc ^ (good ? 0 : FLAGGED));
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
        forth_node_swap_words(at, &packet->payload[(size_t)node->delivery.moved * WORD_BYTES],
                              moved);
    } else if (moved > 0) {
        forth_config_raise_status(&node->config_space, FORTH_STATUS_GOT_MASTER_ABORT);
        node->truth.aborts++;
    }
    /* The bus must not have overtaken the link. */
    CHECK(node->delivery.moved + moved < packet->qwords ||
          node->fabric->sim->now_ps + forth_node_pci_ps(node, 1) >= packet->ended_ps);
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
    forth_node_notify(node, node->registers.remote_notification, word);
    forth_node_count(node, FORTH_remote_notifications, 1);
    node->truth.remote_notifications++;
    if (node->program.notified != NULL) {
        node->program.notified(node, true, word);
    }
}

static void writer_ended(struct forth_bus_user *user, uint32_t moved)
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
        forth_bus_request(&node->bus, &node->writer);
    }
}

void forth_node_attach_writer(struct forth_node *node)
{
    sim_event_init(&node->forward, forward);
    node->writer =
        (struct forth_bus_user){.name = "write", .granted = writer_granted, .ended = writer_ended};
    forth_bus_attach(&node->bus, &node->writer);
}
