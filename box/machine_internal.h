/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine_internal - what machine.c and manager.c share.
 */
#ifndef BOX_MACHINE_INTERNAL_H
#define BOX_MACHINE_INTERNAL_H

#include "base/box_ask.h"
#include "box/machine.h"
#include "box/ports.h"
#include "lab/roce/roce.h"

struct letter;

/* A NIC of a program. */
struct seat {
    struct box *box;
    struct process *process;
    uint32_t number;
    struct box_arena *arena;        /* NULL: it is closed. */
    struct roce_function *function; /* NULL: it is not attached. */
    struct nic *engine;
    bool was_attached;
    uint64_t changes; /* of what the program can see */
    uint64_t alarm_ns;
    struct {
        struct letter *first, **end; /* `end` is where the next one is put; NULL: there is none. */
        uint32_t count;
    } letters;                    /* datagrams that have come for QP 1 */
    bool has_met[BOX_ARENAS_MAX]; /* NICs that it had datagrams to or from */
};

struct machine {
    struct sim sim;
    struct roce *roce;
    struct sim_capture *capture; /* NULL: nothing is captured. */
    struct seat seat[BOX_ARENAS_MAX];
    uint32_t seats; /* that are in use, or were */
    struct ports ports;
    bool *is_named; /* By number of a node: a process was started there. */
};

/* manager.c: as struct roce_host has it; `context` is a seat. */
void seat_on_datagram(void *context, const struct gid *source, const struct gid *destination,
                      const uint8_t *payload, uint32_t bytes);
/* It ends: those hear of it that it had to do with, and what has come for it is gone. */
void seat_tell_end(struct seat *seat);

#endif
