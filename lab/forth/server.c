/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Each slot has its own pages on the disk. A write gives them a new version, which the next read
 * of them must bring back.
 */
#include "lab/forth/server.h"

#include <stdlib.h>
#include <string.h>

#define SERVER        0u
#define MAILBOX_AT    0x10000u
#define OUTBOX_AT     0x20000u
#define BUFFER_AT     0x100000u
#define MESSAGE_BYTES ((uint32_t)sizeof(struct forth_disk_message))
#define PAGE_QWORDS   (FORTH_DISK_PAGE_BYTES / 8)
#define PATIENCE_PS   UINT64_C(10000000000000) /* Ten seconds: no request takes longer. */

static void go_on(struct forth_processor *processor);

static struct forth_node *node_of(const struct forth_processor *processor)
{
    return &processor->server->machine.nodes[processor->self];
}

static uint32_t client_of(const struct forth_server *server, uint32_t slot)
{
    return slot / server->config.depth;
}

/* -- Slots --------------------------------------------------------------------------------------*/

static void slots_append(struct forth_slots *slots, uint32_t slot)
{
    CHECK(slots->count < FORTH_SLOTS_MAX);
    slots->slots[(slots->head + slots->count++) % FORTH_SLOTS_MAX] = slot;
}

static uint32_t slots_take(struct forth_slots *slots)
{
    const uint32_t slot = slots->slots[slots->head];
    slots->head = (slots->head + 1) % FORTH_SLOTS_MAX;
    slots->count--;
    return slot;
}

/* The lowest slot, which is one of the lowest client. */
static uint32_t slots_take_lowest(struct forth_slots *slots)
{
    uint32_t *first = &slots->slots[slots->head];
    for (uint32_t i = 1; i < slots->count; i++) {
        uint32_t *other = &slots->slots[(slots->head + i) % FORTH_SLOTS_MAX];
        if (*other < *first) {
            const uint32_t slot = *other;
            *other = *first;
            *first = slot;
        }
    }
    return slots_take(slots);
}

/* -- Pages --------------------------------------------------------------------------------------*/

static size_t slot_bytes(const struct forth_server *server)
{
    return (size_t)server->config.pages * FORTH_DISK_PAGE_BYTES;
}

static uint32_t buffer_at(const struct forth_server *server, uint32_t slot)
{
    return BUFFER_AT + slot * (uint32_t)slot_bytes(server);
}

static uint8_t *buffer_of(const struct forth_processor *processor, uint32_t slot)
{
    const struct forth_server *server = processor->server;
    return forth_node_memory(node_of(processor), buffer_at(server, slot), slot_bytes(server));
}

static uint8_t *disk_of(const struct forth_server *server, uint32_t slot)
{
    return server->disk + slot * slot_bytes(server);
}

static void fill(const struct forth_server *server, uint8_t *bytes, uint32_t slot, uint64_t version)
{
    uint64_t page[PAGE_QWORDS];
    for (uint32_t i = 0; i < server->config.pages; i++) {
        sim_payload_fill(page, PAGE_QWORDS, slot, version * FORTH_SERVER_PAGES + i);
        memcpy(bytes + (size_t)i * FORTH_DISK_PAGE_BYTES, page, sizeof(page));
    }
}

/* The pages that a read brought: those of the newest write, or the first ones. */
static void judge(struct forth_server *server, const uint8_t *bytes, uint32_t slot,
                  uint64_t version)
{
    uint64_t page[PAGE_QWORDS];
    for (uint32_t i = 0; i < server->config.pages; i++) {
        struct sim_sink sink = {.expected = version * FORTH_SERVER_PAGES + i};
        memcpy(page, bytes + (size_t)i * FORTH_DISK_PAGE_BYTES, sizeof(page));
        server->wrong += sim_sink_judge(&sink, page, PAGE_QWORDS, slot) != SIM_PAYLOAD_GOOD;
    }
}

/* -- Sending ------------------------------------------------------------------------------------*/

static void send_pages(struct forth_processor *processor, uint32_t slot, uint32_t to)
{
    for (uint32_t i = 0; i < processor->server->config.pages; i++) {
        const uint32_t at = buffer_at(processor->server, slot) + i * FORTH_DISK_PAGE_BYTES;
        forth_driver_send(&processor->driver, (struct forth_driver_write){.source = at,
                                                                          .destination = at,
                                                                          .qwords = PAGE_QWORDS,
                                                                          .to = (uint8_t)to});
    }
}

static void send_message(struct forth_processor *processor, uint32_t slot, uint32_t to,
                         enum forth_disk_operation operation)
{
    struct forth_server *server = processor->server;
    const struct forth_disk_message message = {.operation = operation,
                                               .page = slot * (uint64_t)server->config.pages,
                                               .pages = server->config.pages,
                                               .tag = server->tags[slot]};
    const uint32_t at = slot * MESSAGE_BYTES;
    memcpy(forth_node_memory(node_of(processor), OUTBOX_AT + at, MESSAGE_BYTES), &message,
           MESSAGE_BYTES);
    forth_driver_send(&processor->driver,
                      (struct forth_driver_write){.source = OUTBOX_AT + at,
                                                  .destination = MAILBOX_AT + at,
                                                  .qwords = MESSAGE_BYTES / 8,
                                                  .to = (uint8_t)to,
                                                  .interrupt = true});
    forth_node_kick(node_of(processor));
}

static bool post(struct forth_node *node, struct forth_request *request)
{
    return forth_driver_next(&((struct forth_processor *)node->program.owner)->driver, request);
}

/* -- The server's work --------------------------------------------------------------------------*/

static void use_disk(struct forth_server *server)
{
    if (server->for_disk.count > 0 && !sim_event_scheduled(&server->disk_done)) {
        sim_after(&server->machine.sim, &server->disk_done, server->config.disk_ps);
    }
}

static void on_disk_done(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct forth_server *server = CONTAINER_OF(event, struct forth_server, disk_done);
    struct forth_processor *processor = &server->processors[SERVER];
    const uint32_t slot = slots_take(&server->for_disk);
    const uint32_t to = client_of(server, slot) + 1;
    uint8_t *buffer = buffer_of(processor, slot);
    if (server->config.writes) {
        memcpy(disk_of(server, slot), buffer, slot_bytes(server));
    } else {
        memcpy(buffer, disk_of(server, slot), slot_bytes(server));
        send_pages(processor, slot, to);
    }
    send_message(processor, slot, to, FORTH_DISK_DONE);
    use_disk(server);
}

static void serve(struct forth_processor *processor, uint32_t slot, uint64_t operation)
{
    struct forth_server *server = processor->server;
    if (operation == FORTH_DISK_WRITE && server->config.asks) {
        send_message(processor, slot, client_of(server, slot) + 1, FORTH_DISK_PUSH);
    } else if (operation == FORTH_DISK_DONE || operation == FORTH_DISK_PUSH) {
        server->wrong++;
    } else {
        slots_append(&server->for_disk, slot);
        use_disk(server);
    }
}

/* -- A client's work ----------------------------------------------------------------------------*/

static void want(struct forth_processor *processor, uint32_t slot)
{
    struct forth_server *server = processor->server;
    server->began_ps[slot] = server->machine.sim.now_ps;
    server->tags[slot]++;
    slots_append(&processor->to_call, slot);
}

static void call(struct forth_processor *processor, uint32_t slot)
{
    struct forth_server *server = processor->server;
    const bool writes = server->config.writes;
    if (writes) {
        fill(server, buffer_of(processor, slot), slot, server->tags[slot]);
        if (!server->config.asks) {
            send_pages(processor, slot, SERVER);
        }
    }
    send_message(processor, slot, SERVER, writes ? FORTH_DISK_WRITE : FORTH_DISK_READ);
}

static void end_request(struct forth_processor *processor, uint32_t slot)
{
    struct forth_server *server = processor->server;
    const uint64_t version = server->config.writes ? server->tags[slot] : 0;
    const uint64_t now = server->machine.sim.now_ps;
    const uint8_t *bytes =
        server->config.writes ? disk_of(server, slot) : buffer_of(processor, slot);
    judge(server, bytes, slot, version);
    lab_tally_count(&server->tally, server->began_ps[slot], now, slot_bytes(server));
    sim_note(&server->machine.sim, now - server->began_ps[slot]);
    server->over |= ++server->answered[processor->self - 1] == server->config.requests;
    want(processor, slot);
}

/* -- Processors ---------------------------------------------------------------------------------*/

static void allow_interrupts(struct forth_processor *processor, bool allow)
{
    const uint32_t enable = allow ? FORTH_INTERRUPT_ENABLE : 0;
    forth_node_configure(node_of(processor), FORTH_CONFIG_APPLICATION,
                         enable | FORTH_INTERRUPT_FLAG);
    processor->masked = !allow;
}

static void find_messages(struct forth_processor *processor, bool all)
{
    struct forth_slots *arrived = &processor->arrived;
    while (arrived->count > 0) {
        slots_append(&processor->known, slots_take(arrived));
        if (!all) {
            return;
        }
    }
}

/* Clears the flag first: what comes from now on raises it again. */
static void handle_interrupt(struct forth_processor *processor)
{
    const enum forth_handler handler = processor->server->config.handler;
    allow_interrupts(processor, handler != FORTH_HANDLER_MASKED);
    processor->interrupts++;
    find_messages(processor, handler != FORTH_HANDLER_ONE);
    processor->interrupted |= processor->arrived.count > 0;
}

static void handle_message(struct forth_processor *processor, uint32_t slot)
{
    struct forth_server *server = processor->server;
    struct forth_disk_message message;
    memcpy(&message,
           forth_node_memory(node_of(processor), MAILBOX_AT + slot * MESSAGE_BYTES, MESSAGE_BYTES),
           MESSAGE_BYTES);
    processor->messages++;
    if (message.tag != server->tags[slot] || message.pages != server->config.pages ||
        message.page != slot * message.pages) {
        server->wrong++;
    } else if (processor->self == SERVER) {
        serve(processor, slot, message.operation);
    } else if (message.operation == FORTH_DISK_PUSH) {
        send_pages(processor, slot, SERVER);
        send_message(processor, slot, SERVER, FORTH_DISK_SENT);
    } else {
        end_request(processor, slot);
    }
}

static void on_done(struct sim *sim, struct sim_event *event)
{
    struct forth_processor *processor = CONTAINER_OF(event, struct forth_processor, done);
    const enum forth_processor_job job = processor->job;
    processor->job = FORTH_PROCESSOR_RESTS;
    processor->busy_ps += sim->now_ps - processor->began_ps;
    if (job == FORTH_PROCESSOR_INTERRUPT) {
        handle_interrupt(processor);
    } else if (job == FORTH_PROCESSOR_MESSAGE) {
        handle_message(processor, processor->slot);
    } else {
        call(processor, processor->slot);
    }
    go_on(processor);
}

static void begin(struct forth_processor *processor, enum forth_processor_job job, uint64_t time_ps)
{
    processor->job = job;
    processor->began_ps = processor->server->machine.sim.now_ps;
    sim_after(&processor->server->machine.sim, &processor->done, time_ps);
}

static void go_on(struct forth_processor *processor)
{
    const struct forth_server_config *config = &processor->server->config;
    const bool serves = processor->self == SERVER;
    if (processor->job != FORTH_PROCESSOR_RESTS) {
        return;
    }
    if (processor->masked && processor->known.count == 0) {
        find_messages(processor, true);
        allow_interrupts(processor, processor->known.count == 0);
    }
    if (processor->interrupted) {
        processor->interrupted = false;
        begin(processor, FORTH_PROCESSOR_INTERRUPT, config->interrupt_ps);
    } else if (processor->known.count > 0) {
        processor->slot = serves && config->lowest ? slots_take_lowest(&processor->known)
                                                   : slots_take(&processor->known);
        begin(processor, FORTH_PROCESSOR_MESSAGE, serves ? config->serve_ps : 0);
    } else if (processor->to_call.count > 0) {
        processor->slot = slots_take(&processor->to_call);
        begin(processor, FORTH_PROCESSOR_CALL, config->call_ps);
    }
}

static void delivered(struct forth_node *node, const struct forth_header *header, bool flagged)
{
    struct forth_processor *processor = node->program.owner;
    processor->server->wrong += flagged;
    if (header->destination < BUFFER_AT) {
        slots_append(&processor->arrived, (header->destination - MAILBOX_AT) / MESSAGE_BYTES);
    }
}

static void interrupted(struct forth_node *node)
{
    struct forth_processor *processor = node->program.owner;
    processor->interrupted = true;
    go_on(processor);
}

/* -- A run --------------------------------------------------------------------------------------*/

static void open_processor(struct forth_server *server, uint32_t self)
{
    struct forth_processor *processor = &server->processors[self];
    processor->server = server;
    processor->self = self;
    sim_event_init(&processor->done, on_done);
    forth_driver_open(&processor->driver, !server->config.direct);
    node_of(processor)->program = (struct forth_program){
        .post = post, .delivered = delivered, .interrupted = interrupted, .owner = processor};
    forth_node_configure(node_of(processor), FORTH_CONFIG_APPLICATION, FORTH_INTERRUPT_ENABLE);
}

static void begin_requests(struct forth_server *server)
{
    const uint32_t depth = server->config.depth;
    for (uint32_t slot = 0; slot < server->config.clients * depth; slot++) {
        fill(server, disk_of(server, slot), slot, 0);
        want(&server->processors[client_of(server, slot) + 1], slot);
    }
    for (uint32_t i = 1; i <= server->config.clients; i++) {
        go_on(&server->processors[i]);
    }
}

static void play(struct forth_server *server)
{
    struct sim *sim = &server->machine.sim;
    uint64_t answered = 0, give_up_ps = PATIENCE_PS;
    while (!server->over && sim->now_ps < give_up_ps && sim_step(sim)) {
        if (server->tally.latency.count > answered) {
            answered = server->tally.latency.count;
            give_up_ps = sim->now_ps + PATIENCE_PS;
        }
    }
    if (!server->over) {
        lab_fail(server->machine.run, "a request was never answered");
    } else if (server->wrong > 0) {
        lab_fail(server->machine.run, "%llu messages, pages or packets were wrong",
                 (unsigned long long)server->wrong);
    }
}

bool forth_server_run(struct forth_server *server, struct lab_run *run,
                      const struct forth_server_config *config)
{
    const uint32_t slots = config->clients * config->depth;
    *server = (struct forth_server){.config = *config};
    if (slots * config->pages > FORTH_SERVER_PAGES) {
        lab_fail(run, "%u clients with %u requests of %u pages: the server's memory has %u pages",
                 config->clients, config->depth, config->pages, FORTH_SERVER_PAGES);
        return false;
    }
    server->disk = malloc(slots * slot_bytes(server));
    CHECK(server->disk != NULL);
    forth_machine_open(&server->machine, run, config->clients + 1, !config->direct);
    sim_event_init(&server->disk_done, on_disk_done);
    for (uint32_t i = 0; i <= config->clients; i++) {
        open_processor(server, i);
    }
    begin_requests(server);
    play(server);
    lab_add_memory(run, "disk page", (uint64_t)slots * config->pages, slots * slot_bytes(server));
    forth_machine_close(&server->machine);
    free(server->disk);
    return run->failure[0] == '\0';
}
