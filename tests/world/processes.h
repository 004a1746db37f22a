/* SPDX-License-Identifier: BSD-2-Clause
 *
 * processes - processes that talk by SRD, each with a NIC of its own, in virtual time.
 *
 * Purpose    What the tests of SRD's rows share: any number of NICs with one queue pair and some
 *            memory each, and address handles for each other, on a link (tests/world/link.h).
 *            They may die and come back.
 * Inputs     processes_make with settings; processes_send, processes_receive; whatever the test
 *            does to `link`, and datagrams that it gives a process by itself (processes_hear).
 * Outputs    `completed` is called for each completion, and may post; `leaves` for each packet.
 * Ownership  The world owns all; it must not move. processes_end frees it.
 * Threads    One.
 * Units      Picoseconds, as the kernel's (sim/kernel.h).
 * Limits     A process' memory has PROCESSES_BYTES; it is gone when the process restarts.
 */
#ifndef TESTS_WORLD_PROCESSES_H
#define TESTS_WORLD_PROCESSES_H

#include "nic/nic.h"
#include "tests/world/link.h"

#define PROCESSES_BYTES    65536u
#define PROCESSES_CHUNK    512u       /* The payload of a packet. */
#define PROCESSES_STRANGER UINT32_MAX /* Where a packet goes that is for nobody here. */
#define PROCESSES_MS       UINT64_C(1000000000)
#define PROCESSES_S        (1000 * PROCESSES_MS)

struct process {
    struct processes *world;
    uint32_t life;
    struct nic *nic;
    struct gid gid;
    struct pd pd;
    struct cq cq;
    struct completion *ring;
    struct qp *qp;
    void *qp_memory;
    struct region region;
    uint8_t *memory;
    struct sim_event timer;
    bool serves; /* It is pulled from and polled now. */
};

struct processes_settings {
    uint32_t count;
    uint32_t depth; /* Sends and receives of a queue pair. */
    uint32_t datagrams;
    uint8_t rnr_retry; /* 0 to 7, as in verbs. */
    struct srd_limits srd;
    struct link_settings link;
};

struct processes {
    struct sim sim;
    struct link link;
    struct sim_pool datagrams;
    struct processes_settings settings;
    struct process *all;
    void (*completed)(struct processes *world, uint32_t process,
                      const struct completion *completion);
    /* False: the test keeps the packet from leaving. NULL: all leave. */
    bool (*leaves)(struct processes *world, uint32_t from, uint32_t to, const uint8_t *bytes,
                   uint32_t count);
    uint64_t seed;
};

/* Limits that are in nobody's way; a test makes some of them smaller. */
extern const struct srd_limits processes_roomy;

/* The test sets `completed` and `leaves` beforehand. */
void processes_make(struct processes *world, const struct processes_settings *settings,
                    uint64_t seed);
void processes_end(struct processes *world);

/* The process dies with all that it has, and another one comes in its place, at its address and
 * slot. Its completions are gone, unless `completed` heard them. */
void processes_restart(struct processes *world, uint32_t number);

/* A request from memory at `offset`, to the same place of the other's memory if it is RDMA. The
 * completion at the other end has the number as immediate data, if the kind has such. */
void processes_send(struct processes *world, uint32_t from, uint32_t to, enum work_kind kind,
                    uint32_t number, uint32_t offset, uint32_t bytes);
void processes_receive(struct processes *world, uint32_t number, uint64_t wr_id, uint32_t offset,
                       uint32_t bytes);
/* A datagram comes from that address, which may be nobody's. True: its bytes went into memory. */
bool processes_hear(struct processes *world, uint32_t to, const struct gid *source,
                    const uint8_t *bytes, uint32_t count);

/* Has nobody anything under way, and every pool all that it had? */
bool processes_are_quiet(const struct processes *world);

#endif
