/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/config_space.h"

#include <stddef.h>

enum {
    COMMAND_MEMORY = 1 << 1,
    COMMAND_MASTER = 1 << 2,
    POINTER_MASK = 0x7f,
    TAIL_AT = 16,
    HEAD_AT = 24,
};

#define BIT(at) (1u << (at))

struct row {
    uint8_t offset;
    uint32_t reset, writable, cleared_by_1;
};

static const struct row rows[] = {
    {FORTH_CONFIG_ID, 0x17df1600, 0, 0},
    /* Status: 66 MHz capable, slow DEVSEL. Command: SERR, parity, master, memory. */
    {FORTH_CONFIG_COMMAND, 0x0420u << 16, 0x0146, 0xf9000000},
    {FORTH_CONFIG_CLASS, 0x02000017, 0, 0},
    {FORTH_CONFIG_LATENCY, 0x20 << 8, 0xffff, 0},
    {FORTH_CONFIG_BAR0, 0, 0xf8000000, 0}, /* A window of 27 bits. */
    {FORTH_CONFIG_BAR1, 0, 0xffff8000, 0}, /* Registers and request queue: 32 KB. */
    {FORTH_CONFIG_CAPABILITIES, 0x48, 0, 0},
    {FORTH_CONFIG_INTERRUPT, 0x0100, 0xff, 0},
    {FORTH_CONFIG_APPLICATION, 0, FORTH_INTERRUPT_ENABLE, FORTH_INTERRUPT_FLAG},
    {FORTH_CONFIG_PCIX_COMMAND, 0x07, 0x7fu << 16, 0},
    /* 64 bit, 133 MHz, 4,096 bytes a read, one split, cumulative size code 2. */
    {FORTH_CONFIG_PCIX_STATUS, BIT(16) | BIT(17) | 3u << 21 | 2u << 26, 0,
     BIT(18) | BIT(19) | BIT(29)},
};

static const struct row *row_of(uint32_t offset)
{
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].offset == offset) {
            return &rows[i];
        }
    }
    return NULL;
}

void forth_config_init(struct forth_config_space *space)
{
    *space = (struct forth_config_space){.values = {0}};
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        space->values[rows[i].offset / 4] = rows[i].reset;
    }
}

static uint32_t value_of(const struct forth_config_space *space, uint32_t offset)
{
    return space->values[offset / 4];
}

uint32_t forth_config_read(const struct forth_config_space *space, uint32_t offset, uint32_t head,
                           uint32_t tail)
{
    CHECK(offset % 4 == 0 && offset < FORTH_CONFIG_BYTES);
    const uint32_t value = value_of(space, offset);
    if (offset != FORTH_CONFIG_APPLICATION) {
        return value;
    }
    return value | (tail & POINTER_MASK) << TAIL_AT | (head & POINTER_MASK) << HEAD_AT;
}

static uint32_t mask_of(uint32_t enables)
{
    uint32_t mask = 0;
    for (uint32_t byte = 0; byte < 4; byte++) {
        mask |= enables >> byte & 1 ? 0xffu << (8 * byte) : 0;
    }
    return mask;
}

void forth_config_write(struct forth_config_space *space, uint32_t offset, uint32_t value,
                        uint32_t enables)
{
    CHECK(offset % 4 == 0 && offset < FORTH_CONFIG_BYTES);
    const struct row *row = row_of(offset);
    if (row == NULL) {
        return;
    }
    const uint32_t mask = mask_of(enables);
    uint32_t *at = &space->values[offset / 4];
    *at = (*at & ~(row->writable & mask)) | (value & row->writable & mask);
    *at &= ~(value & row->cleared_by_1 & mask);
}

bool forth_config_master_enabled(const struct forth_config_space *space)
{
    return value_of(space, FORTH_CONFIG_COMMAND) & COMMAND_MASTER;
}

bool forth_config_memory_enabled(const struct forth_config_space *space)
{
    return value_of(space, FORTH_CONFIG_COMMAND) & COMMAND_MEMORY;
}

uint32_t forth_config_latency_timer(const struct forth_config_space *space)
{
    return value_of(space, FORTH_CONFIG_LATENCY) >> 8 & 0xff;
}

void forth_config_raise_status(struct forth_config_space *space, enum forth_status bit)
{
    space->values[FORTH_CONFIG_COMMAND / 4] |= (uint32_t)bit;
}

void forth_config_raise_interrupt(struct forth_config_space *space)
{
    space->values[FORTH_CONFIG_APPLICATION / 4] |= FORTH_INTERRUPT_FLAG;
}

bool forth_config_interrupts(const struct forth_config_space *space)
{
    const uint32_t both = FORTH_INTERRUPT_ENABLE | FORTH_INTERRUPT_FLAG;
    return (value_of(space, FORTH_CONFIG_APPLICATION) & both) == both;
}
