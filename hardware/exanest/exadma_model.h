/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exadma_model - the model in the tests of the send unit: the packets of a block, and their state.
 *
 * The upper half of a source address is the transaction's identifier, so that a read names its
 * transaction. A byte of memory is a function of its address.
 */
#ifndef HARDWARE_EXANEST_EXADMA_MODEL_H
#define HARDWARE_EXANEST_EXADMA_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/exadma.h"
#include "wire/crc32c.h"

#define WORLD_COORDINATE 0x12345u
#define WORLD_READS      1024
#define WORLD_STORES     16384
#define WORLD_ISSUED     64
#define WORLD_CONTROLS   4096

struct world_packet {
    struct exanest_word words[EXANEST_PACKET_WORDS_MAX];
    uint32_t count;
};

/* A packet whose bytes memory was asked for. */
struct world_issued {
    uint16_t sequence, offset, bytes;
    uint16_t left; /* Bytes that memory was not asked for yet. */
    bool faulted;
    struct exanest_descriptor descriptor;
};

struct world_block {
    struct exanest_descriptor descriptor;
    bool posted, faulted;
    int predecessor; /* -1, or who has still to enqueue it. */
    uint32_t issued; /* Bytes of this instance that memory was asked for. */
    uint32_t received;
    uint64_t finished_at; /* The cycle of its last packet's footer. */
    uint32_t records;
    struct world_issued record[WORLD_ISSUED];
};

struct world_read {
    struct exanest_memory_read read;
    uint64_t due;
    uint32_t at;  /* Beats delivered. */
    int fault_at; /* Which of them says that it failed: -1 for none. */
    uint8_t response;
};

struct world_port {
    struct world_packet packet;
    struct exanest_beat shown; /* The beat that was offered and not taken. */
    bool showing;
    uint32_t pause; /* Cycles without Ready. */
    uint64_t packets, words, controls;
    uint32_t control_head, control_tail;
    struct world_packet control[WORLD_CONTROLS];
};

struct world {
    struct exanest_exadma *dma;
    void *memory;
    struct prng prng;
    uint64_t cycle;
    /* Behaviour. */
    uint32_t latency, latency_more; /* Cycles from a read to its first beat: at least, and more. */
    uint32_t not_ready, no_beat, no_read, fault; /* Chances, in millionths. */
    uint32_t pause;                              /* Cycles without Ready behind a packet. */
    bool skips_idle, mixes_widths;
    uint64_t stalled_ports;
    struct world_block *blocks;
    struct world_port *ports;
    struct world_read reads[EXANEST_AXI_IDS][WORLD_READS];
    uint32_t read_head[EXANEST_AXI_IDS], read_tail[EXANEST_AXI_IDS];
    struct exanest_host_store stores[WORLD_STORES];
    uint32_t store_head, store_tail;
    uint64_t last_read_at, packets, payload_words, faults;
    uint16_t last_tid; /* The transaction of the last read. */
};

static inline uint64_t world_mix(uint64_t value)
{
    value = (value ^ value >> 31) * 0x9e3779b97f4a7c15u;
    return value ^ value >> 29;
}

static inline uint8_t world_byte(uint64_t address)
{
    return (uint8_t)(world_mix(address / 8) >> 8 * (address % 8));
}

/* -- Packets of a block -------------------------------------------------------------------------*/

/* The first read of the transaction's next packet. */
static inline struct world_issued *world_issue(struct world *world, struct world_block *block)
{
    const struct exanest_descriptor *descriptor = &block->descriptor;
    assert_int_equal(block->predecessor, -1);
    assert_true(block->posted && block->issued < descriptor->bytes);
    const uint32_t line = 256 - (uint32_t)((descriptor->target.va + block->issued) % 256);
    const uint32_t left = descriptor->bytes - block->issued;
    uint32_t bytes = left < line ? left : line;
    if (world->dma->config.cuts_at_source) {
        const uint32_t other = 256 - (uint32_t)((descriptor->source + block->issued) % 256);
        bytes = bytes < other ? bytes : other;
    }
    assert_true(block->records < WORLD_ISSUED);
    struct world_issued *record = &block->record[block->records++];
    *record = (struct world_issued){.sequence = descriptor->sequence,
                                    .offset = (uint16_t)block->issued,
                                    .bytes = (uint16_t)bytes,
                                    .left = (uint16_t)bytes,
                                    .descriptor = *descriptor};
    block->issued += bytes;
    if (descriptor->chained && block->issued == descriptor->bytes) {
        world->blocks[descriptor->successor].predecessor = -1; /* May begin from now on. */
    }
    return record;
}

/* The packet that must come. */
static inline struct world_packet world_expected(uint32_t tid, const struct world_issued *record)
{
    const struct exanest_descriptor *descriptor = &record->descriptor;
    const uint64_t va = (descriptor->target.va + record->offset) & 0x3ffffffffff;
    const struct exanest_header header = {
        .target = {.coordinate = descriptor->target.coordinate, .va = va},
        .pdid = descriptor->pdid,
        .type = EXANEST_WRITE,
        .bytes = record->bytes,
        .has_footer = true,
        .aux = descriptor->sequence};
    uint8_t bytes[16 * EXANEST_PAYLOAD_WORDS_MAX] = {0};
    for (uint32_t i = 0; i < record->bytes; i++) {
        bytes[va % 16 + i] = world_byte(descriptor->source + record->offset + i);
    }
    struct world_packet packet = {0};
    packet.words[packet.count++] = exanest_header_encode(&header);
    const uint32_t words = (uint32_t)(va % 16 + record->bytes + 15) / 16;
    memcpy(&packet.words[1], bytes, 16 * (size_t)words);
    packet.count += words;
    const struct exanest_footer footer = {.payload_crc = crc32c(0, bytes, 16 * (size_t)words),
                                          .tid = (uint16_t)tid,
                                          .source = WORLD_COORDINATE,
                                          .sequence = descriptor->sequence,
                                          .first = record->offset == 0,
                                          .last =
                                              record->offset + record->bytes == descriptor->bytes,
                                          .notify = descriptor->notify,
                                          .path = descriptor->path};
    packet.words[packet.count++] = exanest_footer_encode(&footer);
    return packet;
}

static inline void assert_packets_equal(const struct world_packet *got,
                                        const struct world_packet *expected)
{
    assert_int_equal(got->count, expected->count);
    assert_memory_equal(got->words, expected->words, got->count * sizeof(got->words[0]));
}

/* The oldest packet of its instance that could be read; those before it could not. */
static inline void world_data_packet(struct world *world, uint32_t port,
                                     const struct world_packet *packet,
                                     const struct exanest_footer *footer)
{
    struct world_block *block = &world->blocks[footer->tid];
    uint32_t at = 0, kept = 0;
    for (; at < block->records; at++) {
        const struct world_issued *record = &block->record[at];
        if (record->sequence == footer->sequence) {
            if (!record->faulted) {
                break;
            }
        } else {
            block->record[kept++] = *record;
        }
    }
    assert_true(at < block->records);
    const struct world_issued record = block->record[at];
    assert_int_equal(record.left, 0);
    assert_int_equal(record.descriptor.path, port);
    const struct world_packet expected = world_expected(footer->tid, &record);
    assert_packets_equal(packet, &expected);
    for (at++; at < block->records; at++) {
        block->record[kept++] = block->record[at];
    }
    block->records = kept;
    if (record.sequence == block->descriptor.sequence) {
        block->received += record.bytes;
        block->finished_at = world->cycle;
    }
    world->packets++;
    world->payload_words += packet->count - 2;
    world->ports[port].packets++;
}

#endif
