/* SPDX-License-Identifier: BSD-2-Clause
 *
 * config_space - the PCI configuration registers of the FORTH NIC, and its interrupt line.
 *
 * Each 32-bit register is a row of a table: its value after reset, the bits a host may write, and
 * those that writing 1 clears. Everything else is hard-wired.
 *
 * Source: TR376 3.1.2. Its bits overlap: that the pointers of the queue show 7 bits each is our
 * choice.
 */
#ifndef HARDWARE_FORTH_CONFIG_SPACE_H
#define HARDWARE_FORTH_CONFIG_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

#define FORTH_CONFIG_BYTES 256

/* Offsets. */
enum {
    FORTH_CONFIG_ID = 0x00,
    FORTH_CONFIG_COMMAND = 0x04, /* The status is the upper half. */
    FORTH_CONFIG_CLASS = 0x08,
    FORTH_CONFIG_LATENCY = 0x0c,
    FORTH_CONFIG_BAR0 = 0x10,
    FORTH_CONFIG_BAR1 = 0x14,
    FORTH_CONFIG_CAPABILITIES = 0x34,
    FORTH_CONFIG_INTERRUPT = 0x3c,
    FORTH_CONFIG_APPLICATION = 0x40, /* Application interrupt register. */
    FORTH_CONFIG_PCIX_COMMAND = 0x48,
    FORTH_CONFIG_PCIX_STATUS = 0x4c,
};

/* Status bits, as they stand in the register at FORTH_CONFIG_COMMAND. */
enum forth_status {
    FORTH_STATUS_PARITY_REPORTED = 1 << 24,
    FORTH_STATUS_TARGET_ABORTED = 1 << 27,
    FORTH_STATUS_GOT_TARGET_ABORT = 1 << 28,
    FORTH_STATUS_GOT_MASTER_ABORT = 1 << 29,
    FORTH_STATUS_SERR = 1 << 30,
};

/* Bits of the application interrupt register. A write of the flag clears it. */
enum {
    FORTH_INTERRUPT_ENABLE = 1 << 0,
    FORTH_INTERRUPT_FLAG = 1 << 4,
};

struct forth_config_space {
    uint32_t values[FORTH_CONFIG_BYTES / 4];
};

void forth_config_init(struct forth_config_space *space);

/* Reads at an aligned offset; 0 where no register stands. The application interrupt register shows
 * the low 7 bits of the pointers of the request queue. */
uint32_t forth_config_read(const struct forth_config_space *space, uint32_t offset, uint32_t head,
                           uint32_t tail);
/* Bit i of `enables`: byte i is written. */
void forth_config_write(struct forth_config_space *space, uint32_t offset, uint32_t value,
                        uint32_t enables);

bool forth_config_master_enabled(const struct forth_config_space *space);
bool forth_config_memory_enabled(const struct forth_config_space *space);
uint32_t forth_config_latency_timer(const struct forth_config_space *space); /* PCI cycles. */

/* The hardware's side: a status bit comes up; a packet asks for an interrupt. */
void forth_config_raise_status(struct forth_config_space *space, enum forth_status bit);
void forth_config_raise_interrupt(struct forth_config_space *space);
/* INTA, a level: asserted while the flag is set and interrupts are enabled. */
bool forth_config_interrupts(const struct forth_config_space *space);

#endif
