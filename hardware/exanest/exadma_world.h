/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exadma_world - the surroundings of a send unit in its tests: a host, a memory and a network,
 * which compare each read and each packet with a model (exadma_model.h).
 */
#ifndef HARDWARE_EXANEST_EXADMA_WORLD_H
#define HARDWARE_EXANEST_EXADMA_WORLD_H

#include "hardware/exanest/exadma_model.h"

/* -- Begin and end ------------------------------------------------------------------------------*/

static inline struct world *world_new(const struct exanest_exadma_config *config, uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    struct exanest_exadma_config own = *config;
    own.coordinate = WORLD_COORDINATE;
    world->dma = calloc(1, sizeof(*world->dma));
    world->memory = calloc(1, exanest_exadma_bytes(&own));
    world->blocks = calloc(EXANEST_TIDS, sizeof(*world->blocks));
    world->ports = calloc(own.ports, sizeof(*world->ports));
    exanest_exadma_init(world->dma, &own, world->memory);
    prng_init(&world->prng, seed);
    for (uint32_t i = 0; i < EXANEST_AXI_IDS; i++) {
        exanest_scheduler_map(&world->dma->scheduler, i, (uint16_t)(100 + i));
    }
    world->latency = 40;
    return world;
}

static inline void world_free(struct world *world)
{
    exanest_exadma_check(world->dma);
    free(world->ports);
    free(world->blocks);
    free(world->memory);
    free(world->dma);
    free(world);
}

/* -- Host ---------------------------------------------------------------------------------------*/

static inline void world_store(struct world *world, struct exanest_host_store store)
{
    assert_true(world->store_tail - world->store_head < WORLD_STORES);
    world->stores[world->store_tail++ % WORLD_STORES] = store;
}

/* A descriptor's word, in stores of 32 bits or one of 64; the upper half comes last. */
static inline void world_store_word(struct world *world, uint32_t address, uint64_t word)
{
    if (!world->mixes_widths || prng_below(&world->prng, 2)) {
        world_store(world, exanest_host_store_64(address, word));
        return;
    }
    struct exanest_host_store store = exanest_host_store_64(address, word);
    const uint16_t both = store.strobe;
    store.strobe = both & 0x0f0f;
    world_store(world, store);
    store.strobe = both & 0xf0f0;
    world_store(world, store);
}

static inline void world_post(struct world *world, uint32_t tid,
                              const struct exanest_descriptor *descriptor)
{
    struct world_block *block = &world->blocks[tid];
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    exanest_descriptor_encode(descriptor, words);
    const uint32_t at = tid * EXANEST_DESCRIPTOR_BYTES;
    block->descriptor = *descriptor;
    block->posted = true;
    block->faulted = false;
    block->issued = 0;
    block->received = 0;
    block->predecessor = -1;
    if (world->mixes_widths && prng_below(&world->prng, 3) == 0) {
        world_store(world, (struct exanest_host_store){
                               .address = at, .strobe = 0xffff, .data = {words[0], words[1]}});
        world_store(world, (struct exanest_host_store){
                               .address = at + 16, .strobe = 0xffff, .data = {words[2], words[3]}});
        return;
    }
    world_store_word(world, at + 24, words[3]);
    world_store_word(world, at, words[0]);
    world_store_word(world, at + 8, words[1]);
    world_store_word(world, at + 16, words[2]);
}

/* The control packet of a posted transaction, by `port`. */
static inline void world_post_control(struct world *world, uint32_t tid, uint32_t port)
{
    const struct exanest_descriptor *descriptor = &world->blocks[tid].descriptor;
    const uint32_t bytes = world->dma->list.config.control_bytes;
    const uint32_t at = EXANEST_CONTROL_AT + port * EXANEST_TIDS * bytes + tid * bytes;
    uint64_t data[3];
    for (int i = 0; i < 3; i++) {
        data[i] = prng_next(&world->prng);
        world_store(world,
                    exanest_host_store_64(at + 8 * (uint32_t)prng_below(&world->prng, 2), data[i]));
    }
    const struct exanest_header header = {.target = {.coordinate = descriptor->target.coordinate,
                                                     .va = descriptor->target.va / 16 * 16},
                                          .pdid = descriptor->pdid,
                                          .type = EXANEST_CONTROL,
                                          .bytes = 32,
                                          .has_footer = true,
                                          .priority = true,
                                          .aux = descriptor->sequence};
    struct world_packet packet = {.count = 4};
    packet.words[0] = exanest_header_encode(&header);
    packet.words[1] = (struct exanest_word){data[0], data[1]};
    packet.words[2] = (struct exanest_word){data[2], tid | (uint64_t)descriptor->sequence << 10 |
                                                         (uint64_t)descriptor->bytes << 24};
    const struct exanest_footer footer = {
        .payload_crc =
            exanest_payload_crc(exanest_payload_crc(0, packet.words[1]), packet.words[2]),
        .tid = (uint16_t)tid,
        .source = WORLD_COORDINATE,
        .sequence = descriptor->sequence,
        .notify = descriptor->notify,
        .path = (uint8_t)port};
    packet.words[3] = exanest_footer_encode(&footer);
    struct world_port *to = &world->ports[port];
    assert_true(to->control_tail - to->control_head < WORLD_CONTROLS);
    to->control[to->control_tail++ % WORLD_CONTROLS] = packet;
}

static inline void world_host(struct world *world)
{
    if (world->store_head == world->store_tail) {
        return;
    }
    struct exanest_host_store *store = &world->stores[world->store_head % WORLD_STORES];
    if (exanest_exadma_write(world->dma, store)) {
        assert_int_equal(store->response, EXANEST_AXI_OKAY);
        world->store_head++;
    }
}

/* -- Memory -------------------------------------------------------------------------------------*/

/* EXA-18: a read ends at a line of 4 KB at the latest. */
static inline void world_take_read(struct world *world, const struct exanest_memory_read *read)
{
    const uint32_t tid = (uint32_t)(read->address >> 32);
    assert_true(tid < EXANEST_TIDS);
    struct world_block *block = &world->blocks[tid];
    struct world_issued *record = block->records == 0 ? NULL : &block->record[block->records - 1];
    if (record == NULL || record->left == 0) {
        record = world_issue(world, block);
    }
    const uint32_t offset = (uint32_t)record->offset + record->bytes - record->left;
    assert_true(read->address == record->descriptor.source + offset);
    const uint32_t page = 4096 - (uint32_t)(read->address % 4096);
    assert_int_equal(read->bytes, record->left < page ? record->left : page);
    record->left = (uint16_t)(record->left - read->bytes);
    assert_int_equal(read->axi_id + 100, record->descriptor.pdid);
    struct world_read taken = {.read = *read, .fault_at = -1};
    const uint32_t beats = exanest_payload_words(read->address, read->bytes);
    taken.due = world->cycle + world->latency;
    if (world->latency_more != 0) {
        taken.due += prng_below(&world->prng, world->latency_more + 1);
    }
    if (prng_chance(&world->prng, world->fault)) {
        taken.fault_at = (int)prng_below(&world->prng, beats);
        taken.response = (uint8_t)(2 + prng_below(&world->prng, 2));
        record->faulted = true;
        block->faulted = true;
        world->faults++;
    }
    const uint32_t id = read->axi_id;
    assert_true(world->read_tail[id] - world->read_head[id] < WORLD_READS);
    world->reads[id][world->read_tail[id]++ % WORLD_READS] = taken;
    world->last_read_at = world->cycle;
    world->last_tid = (uint16_t)tid;
}

static inline void world_deliver(struct world *world, uint32_t id)
{
    struct world_read *read = &world->reads[id][world->read_head[id] % WORLD_READS];
    const uint64_t address = read->read.address / 16 * 16 + 16 * (uint64_t)read->at;
    const uint32_t beats = exanest_payload_words(read->read.address, read->read.bytes);
    const struct exanest_read_beat beat = {
        .word = {world_mix(address / 8), world_mix(address / 8 + 1)},
        .axi_id = (uint8_t)id,
        .response = read->fault_at == (int)read->at ? read->response : 0,
        .last = read->at + 1 == beats};
    exanest_exadma_on_read_beat(world->dma, &beat);
    read->at++;
    if (read->at == beats) {
        world->read_head[id]++;
    }
}

/* One beat of any ID whose time has come. */
static inline void world_memory(struct world *world)
{
    struct exanest_memory_read read;
    if (!prng_chance(&world->prng, world->no_read) && exanest_exadma_next_read(world->dma, &read)) {
        world_take_read(world, &read);
    }
    if (!exanest_exadma_read_ready(world->dma) || prng_chance(&world->prng, world->no_beat)) {
        return;
    }
    const uint32_t first = world->latency_more ? (uint32_t)prng_below(&world->prng, 8) : 0;
    for (uint32_t i = 0; i < EXANEST_AXI_IDS; i++) {
        const uint32_t id = (first + i) % EXANEST_AXI_IDS;
        if (world->read_head[id] != world->read_tail[id] &&
            world->reads[id][world->read_head[id] % WORLD_READS].due <= world->cycle) {
            world_deliver(world, id);
            return;
        }
    }
}

/* -- Network ------------------------------------------------------------------------------------*/

static inline void world_packet_came(struct world *world, uint32_t port)
{
    struct world_port *to = &world->ports[port];
    struct exanest_header header;
    struct exanest_footer footer;
    assert_int_equal(exanest_header_decode(to->packet.words[0], &header), EXANEST_GOOD);
    assert_int_equal(exanest_footer_decode(to->packet.words[to->packet.count - 1], &footer),
                     EXANEST_GOOD);
    if (header.type == EXANEST_CONTROL) {
        assert_true(to->control_head != to->control_tail);
        assert_packets_equal(&to->packet, &to->control[to->control_head++ % WORLD_CONTROLS]);
        to->controls++;
    } else {
        world_data_packet(world, port, &to->packet, &footer);
    }
    to->packet.count = 0;
}

/* EXA-30: a beat that is shown stays until it is taken, and a packet is header, payload, footer. */
static inline void world_network(struct world *world, uint32_t port)
{
    struct world_port *to = &world->ports[port];
    struct exanest_beat beat;
    memset(&beat, 0, sizeof(beat));
    const bool offered = exanest_exadma_offer(world->dma, port, &beat);
    if (to->showing) {
        assert_true(offered && beat.part == to->shown.part && beat.last == to->shown.last);
        assert_memory_equal(&beat.word, &to->shown.word, sizeof(beat.word));
    }
    to->showing = false;
    const bool ready = to->pause == 0 && (world->stalled_ports >> port & 1) == 0 &&
                       !prng_chance(&world->prng, world->not_ready);
    to->pause -= to->pause != 0;
    if (!offered) {
        return;
    }
    if (!ready) {
        to->showing = true;
        to->shown = beat;
        return;
    }
    exanest_exadma_taken(world->dma, port);
    assert_int_equal(beat.part == EXANEST_HEADER, to->packet.count == 0);
    assert_int_equal(beat.part == EXANEST_FOOTER, beat.last);
    assert_true(to->packet.count < EXANEST_PACKET_WORDS_MAX);
    to->packet.words[to->packet.count++] = beat.word;
    to->words++;
    if (beat.last) {
        world_packet_came(world, port);
        to->pause = world->pause;
    }
}

/* -- Cycles -------------------------------------------------------------------------------------*/

static inline void world_cycle(struct world *world)
{
    if (!world->skips_idle || !exanest_exadma_idle(world->dma) || prng_below(&world->prng, 2)) {
        exanest_exadma_step(world->dma);
    }
    world->cycle++;
    world_memory(world);
    for (uint32_t port = 0; port < world->dma->config.ports; port++) {
        world_network(world, port);
    }
    world_host(world);
}

static inline bool world_quiet(const struct world *world)
{
    for (uint32_t id = 0; id < EXANEST_AXI_IDS; id++) {
        if (world->read_head[id] != world->read_tail[id]) {
            return false;
        }
    }
    return world->store_head == world->store_tail && exanest_exadma_idle(world->dma);
}

/* Until nothing is left to do. */
static inline void world_drain(struct world *world)
{
    uint64_t left = 4000000;
    while (!world_quiet(world)) {
        world_cycle(world);
        assert_true(left-- != 0);
    }
    exanest_exadma_check(world->dma);
}

static inline void world_run(struct world *world, uint64_t cycles)
{
    for (uint64_t i = 0; i < cycles; i++) {
        world_cycle(world);
    }
}

/* The descriptor as software reads it. */
static inline struct exanest_descriptor world_descriptor(struct world *world, uint32_t tid)
{
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    for (uint32_t i = 0; i < 2; i++) {
        struct exanest_host_load load = {.address = tid * EXANEST_DESCRIPTOR_BYTES + 16 * i};
        while (!exanest_exadma_read(world->dma, &load)) {
            world_cycle(world);
        }
        assert_int_equal(load.response, EXANEST_AXI_OKAY);
        words[2 * i] = load.data.low;
        words[2 * i + 1] = load.data.high;
    }
    return exanest_descriptor_decode(words);
}

/* A transaction of `bytes` bytes, all aligned. */
static inline struct exanest_descriptor world_block_of(uint32_t tid, uint32_t bytes)
{
    return (struct exanest_descriptor){
        .source = (uint64_t)tid << 32,
        .target = {.coordinate = 0x54321, .va = (uint64_t)tid << 14},
        .bytes = (uint16_t)bytes,
        .pdid = 100,
    };
}

/* EXA-19: Done, Bytes sent and Error of a transaction without a packet under way. */
static inline void world_check_end(struct world *world, uint32_t tid)
{
    const struct world_block *block = &world->blocks[tid];
    const struct exanest_descriptor got = world_descriptor(world, tid);
    const bool all = block->issued == block->descriptor.bytes;
    assert_int_equal(got.sent, block->issued);
    assert_int_equal(got.error, block->faulted);
    assert_int_equal(got.done, all);
    assert_true(all || block->faulted);
    assert_true(block->faulted || block->received == block->descriptor.bytes);
}

#endif
