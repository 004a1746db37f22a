/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/registers.h"

#define CONTROL_INITIATOR      (1u << 0)
#define CONTROL_SOFTWARE_RESET (1u << 4)
#define CONTROL_RESET_QUEUE    (1u << 24)
#define CONTROL_LOOPBACK       (3u << 30)
#define CONTROL_STAYS          (CONTROL_INITIATOR | CONTROL_LOOPBACK)
#define TAIL_MASK              0x3ffu
#define HEAD_MASK              0x7ffu /* The lowest bit: which QWord of a request. */

struct row {
    const char *name;
    uint16_t offset;
    uint8_t bits;
};

#define X(name, offset, bits) {#name, offset, bits},
static const struct row rows[FORTH_COUNTER_COUNT] = {FORTH_HOST_COUNTERS(X)
                                                         FORTH_NETWORK_COUNTERS(X)};
#undef X

const char *forth_counter_name(enum forth_counter counter)
{
    CHECK(counter < FORTH_COUNTER_COUNT);
    return rows[counter].name;
}

uint32_t forth_counter_offset(enum forth_counter counter)
{
    CHECK(counter < FORTH_COUNTER_COUNT);
    return rows[counter].offset;
}

void forth_registers_init(struct forth_registers *registers)
{
    *registers = (struct forth_registers){.control = 0};
}

static uint32_t width_mask(enum forth_counter counter)
{
    return rows[counter].bits == 32 ? UINT32_MAX : (1u << rows[counter].bits) - 1;
}

void forth_count(struct forth_registers *registers, enum forth_counter counter, uint32_t amount)
{
    CHECK(counter < FORTH_COUNTER_COUNT);
    registers->counters[counter] = (registers->counters[counter] + amount) & width_mask(counter);
}

/* FORTH_COUNTER_COUNT: no counter stands there. */
static enum forth_counter counter_at(uint32_t offset)
{
    uint32_t counter = 0;
    while (counter < FORTH_COUNTER_COUNT && rows[counter].offset != offset) {
        counter++;
    }
    return (enum forth_counter)counter;
}

static bool is_network(enum forth_counter counter)
{
    return counter >= FORTH_outgoing_cycles;
}

/* -- The host's side ----------------------------------------------------------------------------*/

static uint32_t read_counter(struct forth_registers *registers, enum forth_counter counter)
{
    const uint32_t value = registers->counters[counter];
    if (is_network(counter)) {
        registers->counters[counter] = 0;
    }
    return value;
}

uint32_t forth_registers_read(struct forth_registers *registers, uint32_t offset, uint32_t head,
                              uint32_t tail)
{
    CHECK(offset % 4 == 0);
    const enum forth_counter counter = counter_at(offset);
    if (counter != FORTH_COUNTER_COUNT) {
        return read_counter(registers, counter);
    }
    switch (offset) {
    case FORTH_REGISTER_CONTROL: return registers->control;
    case FORTH_REGISTER_POINTERS: return (tail & TAIL_MASK) | (head & HEAD_MASK) << 16;
    case FORTH_REGISTER_REMOTE_LOW: return (uint32_t)registers->remote_notification;
    case FORTH_REGISTER_REMOTE_HIGH: return (uint32_t)(registers->remote_notification >> 32);
    case FORTH_REGISTER_LOCAL_LOW: return (uint32_t)registers->local_notification;
    case FORTH_REGISTER_LOCAL_HIGH: return (uint32_t)(registers->local_notification >> 32);
    case FORTH_REGISTER_TIMER: return registers->timer;
    default: return 0;
    }
}

static void set_low(uint64_t *address, uint32_t value)
{
    *address = (*address & ~(uint64_t)UINT32_MAX) | value;
}

static void set_high(uint64_t *address, uint32_t value)
{
    *address = (*address & UINT32_MAX) | (uint64_t)value << 32;
}

static enum forth_command write_control(struct forth_registers *registers, uint32_t value)
{
    registers->control = value & CONTROL_STAYS;
    return (enum forth_command)(
        (value & CONTROL_RESET_QUEUE ? FORTH_COMMAND_RESET_QUEUE : 0) |
        (value & CONTROL_SOFTWARE_RESET ? FORTH_COMMAND_SOFTWARE_RESET : 0));
}

static void write_counter(struct forth_registers *registers, enum forth_counter counter,
                          uint32_t value)
{
    if (counter != FORTH_outgoing_cycles) {
        registers->counters[counter] = value & width_mask(counter);
        return;
    }
    for (int i = FORTH_outgoing_cycles; i < FORTH_COUNTER_COUNT; i++) {
        registers->counters[i] = 0;
    }
}

enum forth_command forth_registers_write(struct forth_registers *registers, uint32_t offset,
                                         uint32_t value)
{
    CHECK(offset % 4 == 0);
    const enum forth_counter counter = counter_at(offset);
    if (counter != FORTH_COUNTER_COUNT) {
        write_counter(registers, counter, value);
        return FORTH_COMMAND_NONE;
    }
    switch (offset) {
    case FORTH_REGISTER_CONTROL: return write_control(registers, value);
    case FORTH_REGISTER_REMOTE_LOW: set_low(&registers->remote_notification, value); break;
    case FORTH_REGISTER_REMOTE_HIGH: set_high(&registers->remote_notification, value); break;
    case FORTH_REGISTER_LOCAL_LOW: set_low(&registers->local_notification, value); break;
    case FORTH_REGISTER_LOCAL_HIGH: set_high(&registers->local_notification, value); break;
    case FORTH_REGISTER_TIMER:
        registers->timer = value;
        registers->timer_armed = true;
        registers->timer_runs = false;
        break;
    default: break;
    }
    return FORTH_COMMAND_NONE;
}

bool forth_registers_initiator_enabled(const struct forth_registers *registers)
{
    return registers->control & CONTROL_INITIATOR;
}

bool forth_registers_loops_back(const struct forth_registers *registers)
{
    return (registers->control & CONTROL_LOOPBACK) == CONTROL_LOOPBACK;
}

/* -- The cumulative timer -----------------------------------------------------------------------*/

void forth_timer_request(struct forth_registers *registers, uint64_t cycle)
{
    if (registers->timer_armed) {
        registers->timer_armed = false;
        registers->timer_runs = true;
        registers->timer_started = cycle - registers->timer;
    }
}

void forth_timer_completed(struct forth_registers *registers, uint64_t cycle)
{
    if (registers->timer_runs) {
        registers->timer = (uint32_t)(cycle - registers->timer_started);
    }
}
