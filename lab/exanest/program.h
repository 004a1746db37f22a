/* SPDX-License-Identifier: BSD-2-Clause
 *
 * program - a process on an FPGA that reads from another one's memory, or writes to it.
 *
 * Purpose    Posts transfers as a benchmark does, at most a window of them at a time, and says how
 *            long they took.
 * Ownership  The caller owns the struct; the machine and its world must live as long.
 * Time       A core does one thing at a time: a call takes `call_ns`, and its registers are stored
 *            at the end of it; a look that finds something takes `poll_ns`. Looks that find nothing
 *            are not simulated: they would end when there is something to find.
 * Limits     EXANEST_WINDOW_MAX transfers at a time: as many reads as the R5 queues. Of writes, as
 *            many as a page has channels.
 * Source     Xirouchakis 4.1, 7.
 *
 * A read is a request through the packetizer; its end is a notification in our memory (4.1.2). A
 * write ends when its descriptor in the scratchpad says so. All transfers have the same source and
 * the same target, as those of the OSU benchmarks; unless the program has errands, each of which
 * names its other end. Then every FPGA has a place for what comes from each of the others; with
 * `compares` one for each transfer that may be under way, whose bytes are compared at its end.
 *
 * The window opens by what the program sees. A process has one channel of the packetizer, so the
 * next request waits for the acknowledgement of the last one, or for its data.
 */
#ifndef LAB_EXANEST_PROGRAM_H
#define LAB_EXANEST_PROGRAM_H

#include "lab/exanest/machine.h"
#include "lab/plan.h"
#include "lab/reading.h"

#define EXANEST_WINDOW_MAX EXANEST_READ_QUEUE
/* With `compares`: the bytes of a transfer, and of the three behind it, are different. */
#define EXANEST_SOURCES 4u

/* The host's share: our choice, fitted together with the R5's (firmware.h) to 4.16 us. */
#define EXANEST_CALL_NS 250u /* Library call + request registers. */
#define EXANEST_POLL_NS 250u /* User poll sees notification. */

struct exanest_program_config {
    uint32_t fpga;    /* Where the program runs, */
    uint32_t other;   /* and from where it reads, or to where it writes. */
    uint32_t process; /* At both ends. */
    bool writes;
    uint32_t bytes; /* Bytes of a transfer; of the longest errand. */
    uint32_t piece; /* A request asks for this number of its bytes, the next one when they have
                     * come; 0: for all. */
    uint32_t count, window;
    uint32_t call_ns, poll_ns;
    const struct lab_plan_message *errands; /* In the order of time; NULL: none. */
    uint32_t stride;                        /* Each program of an FPGA takes the stride-th one. */
    bool timed;              /* An errand's time begins when it is wanted, not when posted. */
    uint32_t places;         /* FPGAs from which data come; 0: they share a place. */
    bool compares;           /* Transfers have places and sources of their own. */
    struct lab_tally *tally; /* Counts transfers that ended well; NULL: nobody does. */
};

/* A transfer under way. */
struct exanest_program_slot {
    bool busy;
    uint32_t other, bytes;
    bool good;       /* No piece of it ended in an error. */
    bool asked;      /* A piece is under way; else it is to be asked for. */
    uint32_t got;    /* Bytes of earlier pieces. */
    uint32_t number; /* The piece's, among all of the program; from 1 on. */
    uint32_t source; /* Which of the sources. */
    uint64_t began_ps;
};

enum exanest_program_job {
    EXANEST_PROGRAM_RESTS,
    EXANEST_PROGRAM_CALLS,
    EXANEST_PROGRAM_LOOKS,
};

struct exanest_program {
    struct exanest_machine *machine;
    struct exanest_program_config config;
    struct sim_event notice;            /* There may be something to see. */
    struct sim_event due;               /* The job is done. */
    struct sim_event wanted;            /* The next errand is. */
    uint8_t job;                        /* enum exanest_program_job. */
    uint8_t slot;                       /* The job's. */
    uint32_t asked;                     /* Pieces so far. */
    uint32_t begun, ended;              /* Transfers. */
    uint32_t failed;                    /* Transfers that ended in an error. */
    uint32_t wrong;                     /* Ended well, and the target had not the bytes. */
    uint64_t first_ps;                  /* The first one began, */
    uint64_t last_ps;                   /* the last one ended. */
    uint64_t sum_ps, least_ps, most_ps; /* Times of transfers. */
    struct exanest_program_slot slots[EXANEST_WINDOW_MAX];
};

/* Transfers of `bytes` bytes, one after the other, with the costs above. */
struct exanest_program_config exanest_program_default(uint32_t fpga, uint32_t other, bool writes,
                                                      uint32_t bytes);

/* Begins at once. `program` must not move afterwards; it is the only one of its process. */
void exanest_program_open(struct exanest_program *program, struct exanest_machine *machine,
                          const struct exanest_program_config *config);

static inline bool exanest_program_over(const struct exanest_program *program)
{
    return program->ended == program->config.count;
}

/* The memory that a process needs for transfers of `bytes` bytes; the places of source and
 * target. */
uint64_t exanest_program_memory(uint32_t bytes);
uint64_t exanest_program_source(void);
uint64_t exanest_program_target(uint32_t bytes);
/* The same for a program with this configuration; and what its sources take together. */
uint64_t exanest_program_memory_of(const struct exanest_program_config *config);
uint64_t exanest_program_source_bytes(const struct exanest_program_config *config);

#endif
