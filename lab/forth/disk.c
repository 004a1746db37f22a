/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Both nodes have the same layout: a mailbox that the other one writes messages into, a place for
 * the message that is being sent, and a buffer of a request's data.
 */
#include "lab/forth/disk.h"

#include <stdlib.h>
#include <string.h>

#define INITIATOR     0u
#define TARGET        1u
#define MAILBOX_AT    0x1000u
#define OUTBOX_AT     0x2000u
#define BUFFER_AT     0x100000u
#define MESSAGE_WORDS (sizeof(struct forth_disk_message) / 8)
#define PAGE_QWORDS   (FORTH_DISK_PAGE_BYTES / 8)
#define PATIENCE_PS   UINT64_C(1000000000000) /* A second: no request takes longer. */

static struct forth_node *node_of(struct forth_disk *disk, uint32_t index)
{
    return &disk->machine.nodes[index];
}

static uint8_t *buffer_of(struct forth_disk *disk, uint32_t index)
{
    return forth_node_memory(node_of(disk, index), BUFFER_AT,
                             (size_t)FORTH_DISK_REQUEST_PAGES * FORTH_DISK_PAGE_BYTES);
}

/* -- Sending ------------------------------------------------------------------------------------*/

static void send_message(struct forth_disk_side *side, uint32_t self,
                         const struct forth_disk_message *message)
{
    struct forth_node *node = node_of(side->disk, self);
    memcpy(forth_node_memory(node, OUTBOX_AT, sizeof(*message)), message, sizeof(*message));
    forth_driver_send(&side->driver, (struct forth_driver_write){.source = OUTBOX_AT,
                                                                 .destination = MAILBOX_AT,
                                                                 .qwords = MESSAGE_WORDS,
                                                                 .to = (uint8_t)(1 - self),
                                                                 .notify = true});
}

static void send_pages(struct forth_disk_side *side, uint32_t self, uint32_t pages)
{
    for (uint32_t i = 0; i < pages; i++) {
        const uint32_t at = BUFFER_AT + i * FORTH_DISK_PAGE_BYTES;
        forth_driver_send(&side->driver, (struct forth_driver_write){.source = at,
                                                                     .destination = at,
                                                                     .qwords = PAGE_QWORDS,
                                                                     .to = (uint8_t)(1 - self)});
    }
}

static bool post(struct forth_node *node, struct forth_request *request)
{
    return forth_driver_next(&((struct forth_disk_side *)node->program.owner)->driver, request);
}

/* -- The target ---------------------------------------------------------------------------------*/

static void load(struct forth_disk *disk, uint64_t page, uint64_t pages)
{
    for (uint64_t i = 0; i < pages; i++) {
        uint8_t *to = buffer_of(disk, TARGET) + i * FORTH_DISK_PAGE_BYTES;
        if (disk->pages[page + i] == NULL) {
            memset(to, 0, FORTH_DISK_PAGE_BYTES);
        } else {
            memcpy(to, disk->pages[page + i], FORTH_DISK_PAGE_BYTES);
        }
    }
}

static void store(struct forth_disk *disk, uint64_t page, uint64_t pages)
{
    for (uint64_t i = 0; i < pages; i++) {
        if (disk->pages[page + i] == NULL) {
            disk->pages[page + i] = malloc(FORTH_DISK_PAGE_BYTES);
            CHECK(disk->pages[page + i] != NULL);
        }
        memcpy(disk->pages[page + i], buffer_of(disk, TARGET) + i * FORTH_DISK_PAGE_BYTES,
               FORTH_DISK_PAGE_BYTES);
    }
}

static void answer(struct forth_disk_side *side, enum forth_disk_operation operation)
{
    struct forth_disk_message message = side->asked;
    message.operation = operation;
    send_message(side, TARGET, &message);
}

static void on_request(struct forth_disk *disk, const struct forth_disk_message *message)
{
    struct forth_disk_side *side = &disk->target;
    if (message->pages == 0 || message->pages > FORTH_DISK_REQUEST_PAGES ||
        message->page >= disk->page_count || message->pages > disk->page_count - message->page) {
        disk->wrong++;
        return;
    }
    side->asked = *message;
    side->arrived_qwords = 0;
    if (message->operation == FORTH_DISK_READ) {
        load(disk, message->page, message->pages);
        send_pages(side, TARGET, (uint32_t)message->pages);
        answer(side, FORTH_DISK_DONE);
    } else {
        answer(side, FORTH_DISK_PUSH);
    }
    forth_node_kick(node_of(disk, TARGET));
}

static void on_data_at_target(struct forth_disk *disk, uint32_t qwords)
{
    struct forth_disk_side *side = &disk->target;
    side->arrived_qwords += qwords;
    if (side->arrived_qwords == side->asked.pages * PAGE_QWORDS) {
        store(disk, side->asked.page, side->asked.pages);
        answer(side, FORTH_DISK_DONE);
        forth_node_kick(node_of(disk, TARGET));
    }
}

/* -- The initiator ------------------------------------------------------------------------------*/

static void on_answer(struct forth_disk *disk, const struct forth_disk_message *message)
{
    struct forth_disk_side *side = &disk->initiator;
    if (message->tag != disk->tag || message->pages != disk->asked_pages) {
        disk->wrong++;
    } else if (message->operation == FORTH_DISK_PUSH) {
        send_pages(side, INITIATOR, (uint32_t)message->pages);
        forth_node_kick(node_of(disk, INITIATOR));
    } else {
        disk->done = true;
    }
}

/* -- Both ---------------------------------------------------------------------------------------*/

static void delivered(struct forth_node *node, const struct forth_header *header, bool flagged)
{
    struct forth_disk_side *side = node->program.owner;
    struct forth_disk *disk = side->disk;
    struct forth_disk_message message;
    disk->wrong += flagged;
    if (header->destination != MAILBOX_AT) {
        if (node->config.index == TARGET) {
            on_data_at_target(disk, header->words);
        }
        return;
    }
    memcpy(&message, forth_node_memory(node, MAILBOX_AT, sizeof(message)), sizeof(message));
    if (node->config.index == TARGET) {
        on_request(disk, &message);
    } else {
        on_answer(disk, &message);
    }
}

static bool ask(struct forth_disk *disk, enum forth_disk_operation operation, uint64_t page,
                uint32_t pages)
{
    CHECK(pages >= 1 && pages <= FORTH_DISK_REQUEST_PAGES && page + pages <= disk->page_count);
    const struct forth_disk_message message = {
        .operation = operation, .page = page, .pages = pages, .tag = ++disk->tag};
    struct sim *sim = &disk->machine.sim;
    const uint64_t give_up_ps = sim->now_ps + PATIENCE_PS;
    if (disk->dead) {
        return false;
    }
    disk->done = false;
    disk->asked_pages = pages;
    disk->requests++;
    send_message(&disk->initiator, INITIATOR, &message);
    forth_node_kick(node_of(disk, INITIATOR));
    while (!disk->done && sim->now_ps < give_up_ps && sim_step(sim)) {
    }
    if (!disk->done) {
        disk->dead = true;
        lab_fail(disk->machine.run, "a request for %u pages was never answered", pages);
    }
    return disk->done;
}

bool forth_disk_read(struct forth_disk *disk, uint64_t page, uint32_t pages, void *bytes)
{
    if (!ask(disk, FORTH_DISK_READ, page, pages)) {
        return false;
    }
    memcpy(bytes, buffer_of(disk, INITIATOR), (size_t)pages * FORTH_DISK_PAGE_BYTES);
    disk->bytes_read += (uint64_t)pages * FORTH_DISK_PAGE_BYTES;
    return true;
}

bool forth_disk_write(struct forth_disk *disk, uint64_t page, uint32_t pages, const void *bytes)
{
    memcpy(buffer_of(disk, INITIATOR), bytes, (size_t)pages * FORTH_DISK_PAGE_BYTES);
    disk->bytes_written += (uint64_t)pages * FORTH_DISK_PAGE_BYTES;
    return ask(disk, FORTH_DISK_WRITE, page, pages);
}

static void open_side(struct forth_disk *disk, struct forth_disk_side *side, uint32_t index)
{
    *side = (struct forth_disk_side){.disk = disk};
    forth_driver_open(&side->driver, disk->machine.switched);
    node_of(disk, index)->program =
        (struct forth_program){.post = post, .delivered = delivered, .owner = side};
}

void forth_disk_open(struct forth_disk *disk, struct lab_run *run, bool switched,
                     uint64_t page_count)
{
    enum {
        SWITCHED_NODES = 4
    };
    *disk = (struct forth_disk){.page_count = page_count};
    disk->pages = calloc(page_count, sizeof(disk->pages[0]));
    CHECK(disk->pages != NULL);
    forth_machine_open(&disk->machine, run, switched ? SWITCHED_NODES : 2, switched);
    open_side(disk, &disk->initiator, INITIATOR);
    open_side(disk, &disk->target, TARGET);
}

void forth_disk_close(struct forth_disk *disk)
{
    if (disk->wrong > 0) {
        lab_fail(disk->machine.run, "%llu messages or packets were wrong",
                 (unsigned long long)disk->wrong);
    }
    uint64_t written = 0;
    for (uint64_t i = 0; i < disk->page_count; i++) {
        written += disk->pages[i] != NULL;
    }
    lab_add_memory(disk->machine.run, "disk page", written,
                   written * FORTH_DISK_PAGE_BYTES + disk->page_count * sizeof(disk->pages[0]));
    forth_machine_close(&disk->machine);
    for (uint64_t i = 0; i < disk->page_count; i++) {
        free(disk->pages[i]);
    }
    free(disk->pages);
}
