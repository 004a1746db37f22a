/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine - the whole of it: a fabric, an R5 in each FPGA, and processes with memory.
 *
 * Purpose    Experiments and tests run this machine.
 * Ownership  The machine owns everything but its world.
 * Units      FPGAs by number (fabric.h); process p of each has page p of the scratchpad, channel p
 *            of the packetizer, and protection domain p + 1.
 * Limits     EXANEST_PROCESSES_MAX processes an FPGA: as many as send units have channels.
 * Source     Xirouchakis 2.2, 4.1.
 */
#ifndef LAB_EXANEST_MACHINE_H
#define LAB_EXANEST_MACHINE_H

#include "lab/exanest/r5.h"

#define EXANEST_PROCESSES_MAX EXANEST_AXI_IDS
/* Where a process's memory begins, as it sees it. */
#define EXANEST_MEMORY_VA UINT64_C(0x10000000)

struct exanest_machine_config {
    struct exanest_fabric_config fabric;
    struct exanest_firmware_config firmware; /* Its paths are the fabric's links of a pair. */
    uint32_t firmware_cores;                 /* 1, or 2 (r5.h). */
    uint32_t processes;                      /* In each FPGA. */
    uint64_t process_bytes;                  /* Memory of each, whole pages. */
    struct sim_faults faults;
    uint32_t fault_ports; /* The blocks in front of which they strike: all that take packets. */
};

struct exanest_machine {
    struct sim *sim;
    struct exanest_machine_config config;
    struct exanest_fabric fabric;
    struct exanest_r5 *r5s; /* By FPGA. */
    struct sim_faults faults;
    uint32_t generation; /* Doorbells: how many were rung. */
};

struct exanest_machine_config exanest_machine_default(uint32_t x, uint32_t y, uint32_t z);
/* `machine` must not move afterwards; the world is at its beginning. */
void exanest_machine_open(struct exanest_machine *machine,
                          const struct exanest_machine_config *config, struct sim *sim);
void exanest_machine_close(struct exanest_machine *machine);

/* A process's memory, whether its pages are there or not. */
uint8_t *exanest_machine_bytes(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                               uint64_t va, uint64_t bytes);

/* A process's request: `bytes` from its own `source` to `va` of the same domain's process on FPGA
 * `to`; 16 bytes of `data` to `notify_va` there, unless that is 0. */
struct exanest_write {
    uint32_t to;
    uint64_t source, va, notify_va;
    uint32_t bytes;
    uint8_t path;
    bool chain;
    uint64_t data[2];
};

/* Posts it on a channel of the process's page, 0..31, which must not be in use. */
void exanest_machine_write(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                           uint32_t channel, const struct exanest_write *write);

/* A program of the process looks at its memory from `va` on, and at its packetizer's channel:
 * `notice` is scheduled when there may be something new, also when a transfer's state changes. */
void exanest_machine_watch(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                           uint64_t va, uint64_t bytes, struct sim_event *notice);

/* The same through the FPGA's old engine, which asks no R5 and notifies nobody. False: it is busy.
 */
MUST_USE bool exanest_machine_zdma(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                                   const struct exanest_write *write);

/* A message of `count` bytes, 1..256, goes to `va` of FPGA `to`: a place in the memory of the
 * same domain there, or a mailbox. False: the packetizer's channel is busy. */
MUST_USE bool exanest_machine_send(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                                   uint32_t to, uint64_t va, const void *bytes, uint32_t count);

/* A read is a request to the owner's R5 (4.1.2): `bytes` from `source` of FPGA `owner` come to `va`
 * here, and 16 bytes of `data` to `notify_va`. False: the packetizer's channel is busy. */
struct exanest_read {
    uint32_t owner;
    uint64_t source, va, notify_va;
    uint32_t bytes, request_id;
    uint64_t data;
};

bool exanest_machine_read(struct exanest_machine *machine, uint32_t fpga, uint32_t process,
                          const struct exanest_read *read);

/* The channel would take a request. */
bool exanest_machine_read_ready(struct exanest_machine *machine, uint32_t fpga, uint32_t process);
/* The data of the last request have come, whatever became of its acknowledgement: the packetizer
 * need not send it again (4.1.2). */
void exanest_machine_read_over(struct exanest_machine *machine, uint32_t fpga, uint32_t process);

/* Runs until nothing happens any more, or the time is over. False: it is over. */
bool exanest_machine_settle(struct exanest_machine *machine, uint64_t until_ps);

/* All R5s have nothing to do, all TIDs and contexts are free. */
bool exanest_machine_idle(struct exanest_machine *machine);

#endif
