/* SPDX-License-Identifier: BSD-2-Clause
 *
 * registers - the control registers and counters of the FORTH NIC, as its host reads them.
 *
 * Purpose    One table of what counts, where it stands and how wide it is.
 * Units      Events, QWords and cycles, modulo 2^32 (16 bits where the source says so).
 * Source     TR376 3.1.4. Where it gives two registers one offset, the sampler moved: our
 *            choice.
 */
#ifndef HARDWARE_FORTH_REGISTERS_H
#define HARDWARE_FORTH_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* Name, offset from BAR1, bits. */
#define FORTH_HOST_COUNTERS(X)                                                                     \
    X(host2nic_dma_ops, 0x20, 32)                                                                  \
    X(nic2host_dma_ops, 0x24, 32)                                                                  \
    X(host2nic_requests, 0x28, 32)                                                                 \
    X(nic2host_requests, 0x2c, 32)                                                                 \
    X(host2nic_qwords, 0x30, 32)                                                                   \
    X(nic2host_qwords, 0x34, 32)                                                                   \
    X(host2nic_dma_active, 0x38, 32)                                                               \
    X(nic2host_dma_active, 0x3c, 32)                                                               \
    X(host2nic_bus_granted, 0x40, 32)                                                              \
    X(nic2host_bus_granted, 0x44, 32)                                                              \
    X(host2nic_disconnects, 0x48, 32)                                                              \
    X(nic2host_disconnects, 0x4c, 32)                                                              \
    X(irq_active, 0x50, 32)                                                                        \
    X(irq_assertions, 0x54, 32)                                                                    \
    X(local_notifications, 0x58, 32)                                                               \
    X(remote_notifications, 0x5c, 32)                                                              \
    X(split_operations, 0x60, 32)                                                                  \
    X(split_duration, 0x64, 32)                                                                    \
    X(body_crc_errors, 0x68, 16)                                                                   \
    X(header_alignment_errors, 0x6c, 16)                                                           \
    X(host2net_fifo_full, 0x74, 32)                                                                \
    X(net2host_fifo_full, 0x78, 32)

/* Counters that reading clears; any write to the first one clears all. */
#define FORTH_NETWORK_COUNTERS(X)                                                                  \
    X(outgoing_cycles, 0x80, 32)                                                                   \
    X(incoming_cycles, 0x84, 32)                                                                   \
    X(unknown_characters_0, 0x88, 32)                                                              \
    X(losses_of_sync_0, 0x8c, 32)                                                                  \
    X(parity_errors_0, 0x90, 32)                                                                   \
    X(tx_buffer_full_0, 0x94, 32)                                                                  \
    X(unknown_characters_1, 0x98, 32)                                                              \
    X(losses_of_sync_1, 0x9c, 32)                                                                  \
    X(parity_errors_1, 0xa0, 32)                                                                   \
    X(tx_buffer_full_1, 0xa4, 32)                                                                  \
    X(outgoing_packets, 0xa8, 32)                                                                  \
    X(dequeued_words, 0xac, 32)                                                                    \
    X(incoming_packets, 0xb0, 32)                                                                  \
    X(enqueued_words, 0xb4, 32)                                                                    \
    X(header_crc_errors, 0xb8, 32)                                                                 \
    X(fifo_alignment_errors, 0xbc, 32)                                                             \
    X(backpressure_cycles, 0xc0, 32)                                                               \
    X(host2net_starts, 0xc4, 32)                                                                   \
    X(net2host_starts, 0xc8, 32)

#define X(name, offset, bits) FORTH_##name,
enum forth_counter {
    FORTH_HOST_COUNTERS(X) FORTH_NETWORK_COUNTERS(X) FORTH_COUNTER_COUNT
};
#undef X

enum {
    FORTH_REGISTER_CONTROL = 0x00,
    FORTH_REGISTER_POINTERS = 0x04,
    FORTH_REGISTER_REMOTE_LOW = 0x08, /* Where notifications are written. */
    FORTH_REGISTER_REMOTE_HIGH = 0x0c,
    FORTH_REGISTER_LOCAL_LOW = 0x10,
    FORTH_REGISTER_LOCAL_HIGH = 0x14,
    FORTH_REGISTER_TIMER = 0x70, /* The cumulative timer. */
    FORTH_REGISTERS_BYTES = 0x100,
};

/* The actions that a write asks of the NIC, beside the value that it stores. */
enum forth_command {
    FORTH_COMMAND_NONE = 0,
    FORTH_COMMAND_RESET_QUEUE = 1 << 0,
    FORTH_COMMAND_SOFTWARE_RESET = 1 << 1,
};

struct forth_registers {
    uint32_t counters[FORTH_COUNTER_COUNT];
    uint32_t control; /* The bits of the control register that stay: loopback, initiator enable. */
    uint64_t remote_notification, local_notification;
    uint32_t timer;   /* The value that was latched last. */
    bool timer_armed; /* Written, and waiting for the first request. */
    bool timer_runs;
    uint64_t timer_started; /* In PCI cycles, less the value that was written. */
};

const char *forth_counter_name(enum forth_counter counter);
uint32_t forth_counter_offset(enum forth_counter counter);

void forth_registers_init(struct forth_registers *registers);
void forth_count(struct forth_registers *registers, enum forth_counter counter, uint32_t amount);

/* The host, at an aligned offset. An offset without a register reads 0 and takes no write. Reading
 * a network counter clears it. */
uint32_t forth_registers_read(struct forth_registers *registers, uint32_t offset, uint32_t head,
                              uint32_t tail);
MUST_USE enum forth_command forth_registers_write(struct forth_registers *registers,
                                                  uint32_t offset, uint32_t value);

bool forth_registers_initiator_enabled(const struct forth_registers *registers);
bool forth_registers_loops_back(const struct forth_registers *registers);

/* forth_timer_request: the bus is requested; the first time since the timer was written starts it.
 * The other one: an operation is complete, and the timer shows this time. */
void forth_timer_request(struct forth_registers *registers, uint64_t cycle);
void forth_timer_completed(struct forth_registers *registers, uint64_t cycle);

#endif
