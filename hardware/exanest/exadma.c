/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/exadma.h"

#include <string.h>

/* -- Memory of its own --------------------------------------------------------------------------*/

struct layout {
    size_t ports, buffers, slots, commands, end; /* Where each begins. */
    uint32_t buffer_count;
};

static size_t aligned(size_t bytes)
{
    const size_t alignment = _Alignof(max_align_t);
    return (bytes + alignment - 1) / alignment * alignment;
}

static struct layout layout_of(const struct exanest_exadma_config *config)
{
    struct layout layout = {.buffer_count = config->shares_buffer ? 1 : config->ports};
    const size_t count = layout.buffer_count;
    layout.buffers = aligned(config->ports * sizeof(struct exanest_exadma_port));
    layout.slots = layout.buffers + aligned(count * sizeof(struct exanest_output_buffer));
    layout.commands = layout.slots + aligned(count * config->slots * sizeof(struct exanest_slot));
    layout.end =
        layout.commands + aligned(count * EXANEST_SLOTS_MAX * sizeof(struct exanest_shift_command));
    return layout;
}

size_t exanest_exadma_bytes(const struct exanest_exadma_config *config)
{
    CHECK(config->ports >= 1 && config->ports <= EXANEST_PATHS_MAX);
    CHECK(config->slots >= 1 && config->slots <= EXANEST_SLOTS_MAX);
    return layout_of(config).end;
}

void exanest_exadma_init(struct exanest_exadma *exadma, const struct exanest_exadma_config *config,
                         void *memory)
{
    const struct layout layout = layout_of(config);
    CHECK(exanest_exadma_bytes(config) == layout.end);
    CHECK(config->hold_cycles <= UINT16_MAX);
    memset(exadma, 0, sizeof(*exadma));
    memset(memory, 0, layout.end);
    uint8_t *bytes = memory;
    exadma->config = *config;
    exadma->ports = (struct exanest_exadma_port *)(void *)bytes;
    exadma->buffers = (struct exanest_output_buffer *)(void *)(bytes + layout.buffers);
    struct exanest_slot *slots = (struct exanest_slot *)(void *)(bytes + layout.slots);
    for (uint32_t i = 0; i < layout.buffer_count; i++) {
        exanest_buffer_init(&exadma->buffers[i], config->slots, slots + (size_t)i * config->slots);
    }
    for (uint32_t i = 0; i < config->ports; i++) {
        exadma->ports[i].exanetizer =
            (struct exanest_exanetizer){.port = (uint8_t)i,
                                        .holds_slot = config->holds_slot,
                                        .hold_cycles = (uint16_t)config->hold_cycles};
    }
    exanest_shifter_init(&exadma->shifter, config->shifter_cycles, config->shifter_bubble,
                         layout.buffer_count * EXANEST_SLOTS_MAX,
                         (struct exanest_shift_command *)(void *)(bytes + layout.commands));
    exanest_scheduler_init(&exadma->scheduler, &(struct exanest_scheduler_config){
                                                   .ports = config->ports,
                                                   .coordinate = config->coordinate,
                                                   .entries = config->scheduler_entries,
                                                   .cycles = config->scheduler_cycles,
                                                   .reads_max = config->reads_max,
                                                   .cuts_at_source = config->cuts_at_source,
                                                   .drains = config->drains,
                                                   .shares_buffer = config->shares_buffer});
    exanest_pending_init(&exadma->list,
                         &(struct exanest_pending_config){.ports = config->ports,
                                                          .control_bytes = config->control_bytes,
                                                          .takes_pieces = config->takes_pieces});
}

static struct exanest_output_buffer *buffer_of(const struct exanest_exadma *exadma, uint32_t port)
{
    return &exadma->buffers[exadma->config.shares_buffer ? 0 : port];
}

void exanest_exadma_check(const struct exanest_exadma *exadma)
{
    exanest_pending_check(&exadma->list);
    exanest_scheduler_check(&exadma->scheduler);
    exanest_shifter_check(&exadma->shifter);
    for (uint32_t i = 0; i < exadma->config.ports; i++) {
        const struct exanest_exadma_port *port = &exadma->ports[i];
        const struct exanest_output_buffer *buffer = buffer_of(exadma, i);
        exanest_buffer_check(buffer);
        exanest_control_slot_check(&port->control);
        exanest_exanetizer_check(&port->exanetizer, buffer, &port->control);
        const bool active = !exanest_exanetizer_idle(&port->exanetizer) || port->control.ready ||
                            exanest_buffer_winner(buffer, i) >= 0;
        CHECK(!active || exadma->active >> i & 1);
        CHECK((exadma->control_full >> i & 1) == port->control.ready);
    }
}

/* -- Host ---------------------------------------------------------------------------------------*/

/* A beat of write data, with WREADY; it goes where the address says. */
static void exanest_exadma_on_write_data(struct exanest_exadma *exadma, struct exanest_word data,
                                         uint16_t strobe)
{
    CHECK(exanest_exadma_write_data_ready(exadma));
    const struct exanest_pending_effect effect =
        exanest_pending_write_data(&exadma->list, data, strobe);
    switch ((enum exanest_pending_event)effect.event) {
    case EXANEST_PENDING_NOTHING: return;
    case EXANEST_PENDING_RENEWED: exanest_scheduler_renewed(&exadma->scheduler, effect.tid); return;
    case EXANEST_PENDING_ENQUEUE: exanest_scheduler_enqueue(&exadma->scheduler, effect.tid); return;
    case EXANEST_PENDING_CONTROL: break;
    }
    const struct exanest_descriptor descriptor =
        exanest_pending_descriptor(&exadma->list, effect.tid);
    if (exanest_control_store(&exadma->ports[effect.port].control, effect.tid, effect.data,
                              &descriptor, exadma->config.coordinate, effect.port)) {
        exadma->active |= 1u << effect.port;
        exadma->control_full |= 1u << effect.port;
    }
}

struct exanest_host_store exanest_host_store_64(uint32_t address, uint64_t data)
{
    CHECK(address % 8 == 0);
    const bool upper = address / 8 & 1;
    return (struct exanest_host_store){
        .address = address,
        .strobe = upper ? 0xff00 : 0x00ff,
        .data = {upper ? 0 : data, upper ? data : 0},
    };
}

bool exanest_exadma_write(struct exanest_exadma *exadma, struct exanest_host_store *store)
{
    uint8_t id;
    enum exanest_axi_response response;
    if (store->stage == EXANEST_STORE_ADDRESS &&
        exanest_pending_write_address_ready(&exadma->list)) {
        exanest_pending_write_address(&exadma->list, store->address, 0, 1);
        store->stage = EXANEST_STORE_DATA;
    } else if (store->stage == EXANEST_STORE_DATA && exanest_exadma_write_data_ready(exadma)) {
        exanest_exadma_on_write_data(exadma, store->data, store->strobe);
        store->stage = EXANEST_STORE_ANSWER;
    } else if (store->stage == EXANEST_STORE_ANSWER &&
               exanest_pending_next_write_answer(&exadma->list, &id, &response)) {
        store->response = (uint8_t)response;
        store->stage = EXANEST_STORE_DONE;
        return true;
    }
    return false;
}

bool exanest_exadma_read(struct exanest_exadma *exadma, struct exanest_host_load *load)
{
    struct exanest_read_beat beat;
    if (load->stage == 0 && exanest_pending_read_address_ready(&exadma->list)) {
        exanest_pending_read_address(&exadma->list, load->address, 0, 1);
        load->stage = 1;
    } else if (load->stage == 1 && exanest_pending_next_read_beat(&exadma->list, &beat)) {
        load->data = beat.word;
        load->response = beat.response;
        load->stage = 2;
        return true;
    }
    return false;
}

/* -- Memory -------------------------------------------------------------------------------------*/

void exanest_exadma_on_read_beat(struct exanest_exadma *exadma,
                                 const struct exanest_read_beat *beat)
{
    exanest_shifter_beat(&exadma->shifter, beat);
    if (beat->last) {
        exanest_scheduler_read_done(&exadma->scheduler);
    }
}

/* -- Cycles -------------------------------------------------------------------------------------*/

static void step_port(struct exanest_exadma *exadma, uint32_t at)
{
    struct exanest_exadma_port *port = &exadma->ports[at];
    struct exanest_output_buffer *buffer = buffer_of(exadma, at);
    exanest_exanetizer_step(&port->exanetizer, buffer, &port->control);
    if (!port->control.ready) {
        exadma->control_full &= ~(1u << at);
    }
    if (exanest_exanetizer_idle(&port->exanetizer)) {
        exadma->active &= ~(1u << at);
    }
    exadma->releases |= buffer->waiting != 0;
}

static void step_releases(struct exanest_exadma *exadma)
{
    exadma->releases = false;
    const uint32_t count = exadma->config.shares_buffer ? 1 : exadma->config.ports;
    for (uint32_t i = 0; i < count; i++) {
        exanest_buffer_step(&exadma->buffers[i]);
        exadma->releases |= exadma->buffers[i].waiting != 0;
    }
}

/* A word has come out of the shifter. */
static void fill(struct exanest_exadma *exadma, const struct exanest_shifted *shifted)
{
    const uint32_t at = shifted->slot % EXANEST_SLOTS_MAX;
    struct exanest_output_buffer *buffer = &exadma->buffers[shifted->slot / EXANEST_SLOTS_MAX];
    const struct exanest_slot *slot = &buffer->slots[at];
    switch (exanest_buffer_write(buffer, at, shifted->word, shifted->response)) {
    case EXANEST_FILLING: break;
    case EXANEST_FILLED: exadma->active |= 1u << slot->port; break;
    case EXANEST_FAULTED:
        exanest_scheduler_fault(&exadma->scheduler, &exadma->list, slot->footer.tid,
                                slot->footer.sequence);
        break;
    }
}

void exanest_exadma_step(struct exanest_exadma *exadma)
{
    struct exanest_shifted shifted;
    if (exadma->releases) {
        step_releases(exadma);
    }
    for (uint32_t left = exadma->active; left != 0; left &= left - 1) {
        step_port(exadma, (uint32_t)__builtin_ctz(left));
    }
    if (exanest_shifter_step(&exadma->shifter, &shifted)) {
        fill(exadma, &shifted);
    }
    exanest_scheduler_step(&exadma->scheduler, &exadma->list, exadma->buffers, &exadma->shifter);
    exanest_pending_step(&exadma->list);
}
