/* SPDX-License-Identifier: BSD-2-Clause
 *
 * server - a disk that several clients share, each with several requests under way.
 *
 * Purpose    What interrupts, drivers and processors cost a remote disk, beside the network.
 * Inputs     A configuration; forth_server_run plays until the first client has what it wanted.
 * Outputs    How many requests of each client were answered, when, and with how many interrupts.
 * Ownership  The server owns its machine, its disk and its processors.
 * Time       A processor does one thing at a time: first interrupts, then messages, then calls. An
 *            interrupt's handler finds what has come until its end. The disk does one request at a
 *            time. To look for messages takes no time, nor do copies.
 * Units      Node 0 has the disk, node n is client n - 1. A slot is one request of one client; it
 *            has a mailbox and a buffer at the same addresses of both nodes.
 * Limits     FORTH_SERVER_PAGES pages in all slots.
 * Source     TR376 2.1, 3.1.2: interrupts by level; 4.1: block devices elsewhere. The protocol and
 *            all times are our choice.
 */
#ifndef LAB_FORTH_SERVER_H
#define LAB_FORTH_SERVER_H

#include "lab/forth/disk.h"
#include "lab/reading.h"

#define FORTH_CLIENTS_MAX  7u
#define FORTH_SLOTS_MAX    (FORTH_CLIENTS_MAX * 64u)
#define FORTH_SERVER_PAGES 512u

/* The rules of an interrupt's handler. */
enum forth_handler {
    FORTH_HANDLER_ALL,    /* Takes all messages that have come. */
    FORTH_HANDLER_ONE,    /* Takes one. */
    FORTH_HANDLER_MASKED, /* Takes all, and allows no interrupt until no message is left. */
};

struct forth_server_config {
    uint32_t clients, depth; /* Requests that each client has under way. */
    uint32_t pages;          /* The size of a request. */
    uint32_t requests;       /* The run ends when a client has had this number of answers. */
    uint64_t call_ps;        /* A client's processor, before a request is written, */
    uint64_t interrupt_ps;   /* any processor, for an interrupt, */
    uint64_t serve_ps;       /* the server's, for a message, */
    uint64_t disk_ps;        /* and the disk, for a request. */
    bool direct;             /* One client, on a pair of links. */
    bool writes;
    bool asks; /* A write waits until the server asks for its data. */
    enum forth_handler handler;
    bool lowest; /* The server takes messages of the lowest client first. */
};

/* Slots in the order in which they came. A slot stands in no ring twice. */
struct forth_slots {
    uint32_t slots[FORTH_SLOTS_MAX];
    uint32_t head, count;
};

enum forth_processor_job {
    FORTH_PROCESSOR_RESTS,
    FORTH_PROCESSOR_INTERRUPT,
    FORTH_PROCESSOR_MESSAGE,
    FORTH_PROCESSOR_CALL,
};

struct forth_processor {
    struct forth_server *server;
    uint32_t self;
    struct forth_driver driver;
    struct sim_event done;
    enum forth_processor_job job;
    uint32_t slot;    /* The job's. */
    bool interrupted; /* A handler has to run. */
    bool masked;      /* No interrupt is allowed: the program looks for messages. */
    struct forth_slots arrived, known, to_call; /* Known: a handler has found the message. */
    uint64_t began_ps, busy_ps;                 /* The job under way; all that are over. */
    uint64_t interrupts, messages;
};

struct forth_server {
    struct forth_server_config config;
    struct forth_machine machine;
    struct forth_processor processors[FORTH_CLIENTS_MAX + 1];
    struct sim_event disk_done;
    struct forth_slots for_disk; /* The first one is being served. */
    uint8_t *disk;               /* The pages of all slots. */
    uint64_t tags[FORTH_SLOTS_MAX], began_ps[FORTH_SLOTS_MAX];
    uint32_t answered[FORTH_CLIENTS_MAX]; /* Requests. */
    uint64_t wrong; /* Messages, pages and packets that were not what they should be. */
    struct lab_tally tally;
    bool over;
};

/* False: the run has failed. `server` must not move while it runs. */
bool forth_server_run(struct forth_server *server, struct lab_run *run,
                      const struct forth_server_config *config);

#endif
