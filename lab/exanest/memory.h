/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - an FPGA's memory behind its SMMU: the addresses of processes, pages that may be absent.
 *
 * Purpose    Answers the send unit's reads and the receiver's writes, each by the addresses of its
 *            protection domain, after the time that memory takes.
 * Time       One step is a cycle of the datapath. A read's first beat comes `read_cycles` after it
 *            was taken, or up to `jitter_cycles` more; one beat a cycle. A burst is answered
 *            `write_cycles` after its last word.
 * Limits     EXANEST_SPACES_MAX spaces; reads of one AXI ID are answered in order, those of
 *            different IDs in any order, unless `in_order` is set.
 * Source     Xirouchakis 2.2, 5.3.3, 5.3.4. The source does not say how its memory works: all of it
 *            is our choice.
 */
#ifndef LAB_EXANEST_MEMORY_H
#define LAB_EXANEST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "hardware/exanest/axi.h"
#include "sim/memory.h"

#define EXANEST_SPACES_MAX  16u
#define EXANEST_READS_MAX   64u /* Under way, for each AXI ID: 32 ports, two reads a packet. */
#define EXANEST_BURSTS_MAX  64u
#define EXANEST_WRITE_PORTS 3u /* The receiver's, the system mailboxes', and the zDMA's. */
/* Reads by the zDMA, which has a port of its own: an ID behind those of the send unit. */
#define EXANEST_ZDMA_READS   EXANEST_AXI_IDS
#define EXANEST_READ_QUEUES  (EXANEST_AXI_IDS + 1)
#define EXANEST_FAULTS_MAX   64u
#define EXANEST_READ_CYCLES  40u /* 5.1: "up to 40 clock cycles". */
#define EXANEST_WRITE_CYCLES 4u  /* Our choice. */

struct exanest_memory_config {
    uint64_t bytes;
    uint32_t read_cycles, jitter_cycles, write_cycles;
    bool in_order; /* Reads of different IDs are answered in order, too: a what-if. */
};

/* A part of a process's addresses, and whether each of its pages is there. */
struct exanest_space {
    uint16_t pdid;
    uint64_t va; /* Its first byte: a page's. */
    uint64_t pages;
    uint64_t physical;                  /* Where it lies in the memory's bytes. */
    uint64_t *present;                  /* Bit i: page i. */
    uint64_t *reported;                 /* Bit i: the driver knows that page i is missing. */
    uint64_t watched_va, watched_bytes; /* Where a program looks. */
    uint32_t late_cycles;               /* Reads take longer: no cache has it. */
};

struct exanest_read_under_way {
    uint64_t due; /* The cycle of the next beat, at the earliest. */
    uint64_t address;
    uint64_t taken;  /* The cycle in which it was. */
    uint32_t number; /* Among all reads. */
    uint16_t pdid;
    uint8_t beats; /* Left. */
};

/* Bursts of one writer, which are answered in order. */
struct exanest_write_port {
    uint8_t response; /* To the burst that comes in. */
    uint32_t head, tail;
    struct {
        uint64_t due;
        uint8_t response;
    } bursts[EXANEST_BURSTS_MAX];
};

struct exanest_page_fault {
    uint64_t va; /* Where the page begins. */
    uint16_t pdid;
    bool writes;
};

struct exanest_memory {
    struct sim_memory bytes;
    struct exanest_memory_config config;
    struct prng *prng;
    uint64_t now; /* Cycles. */
    uint64_t used;
    uint32_t space_count;
    struct exanest_space spaces[EXANEST_SPACES_MAX];
    uint32_t reads_taken;
    uint64_t waited[EXANEST_READ_QUEUES]; /* Cycles from a read to its last beat, the last one's. */
    uint16_t waiting;                     /* Bit i: reads of AXI ID i are under way. */
    uint8_t last;                         /* The ID that was served last. */
    uint32_t heads[EXANEST_READ_QUEUES], tails[EXANEST_READ_QUEUES];
    struct exanest_read_under_way reads[EXANEST_READ_QUEUES][EXANEST_READS_MAX];
    struct exanest_write_port ports[EXANEST_WRITE_PORTS];
    uint32_t fault_head, fault_tail;
    struct exanest_page_fault faults[EXANEST_FAULTS_MAX];
    uint64_t faults_lost; /* Found no place: the page is reported again by the next access. */
    uint64_t words_read, words_written;
    uint64_t watched; /* Written where programs look. */
};

/* `prng` is the world's; it may be NULL if there is no jitter. */
void exanest_memory_open(struct exanest_memory *memory, const struct exanest_memory_config *config,
                         struct prng *prng);
void exanest_memory_close(struct exanest_memory *memory);

/* -- The driver ---------------------------------------------------------------------------------*/

/* Gives a domain `bytes` at `va`, whole pages of both, which are there or not. False: no room, or
 * they overlap others of the same domain. */
MUST_USE bool exanest_memory_map(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                                 uint64_t bytes, bool present);
/* A page comes, or goes; its bytes stay. False: nothing is mapped there. */
bool exanest_memory_set_present(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                                bool present);
/* Reads of the space in which `va` lies take `cycles` longer. */
void exanest_memory_set_late(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                             uint32_t cycles);
/* False: none. */
MUST_USE bool exanest_memory_next_fault(struct exanest_memory *memory,
                                        struct exanest_page_fault *fault);

/* The bytes that a process sees at its own addresses, also where pages are missing: the kernel
 * brings them in. NULL: the range is not mapped, or not all of it in one space. */
uint8_t *exanest_memory_bytes(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                              uint64_t bytes);

/* A program polls the addresses: words that are written there are counted as `watched`. */
void exanest_memory_watch(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                          uint64_t bytes);

/* -- The hardware -------------------------------------------------------------------------------*/

/* Is there room for a read of this ID? */
bool exanest_memory_read_ready(const struct exanest_memory *memory, uint32_t axi_id);
void exanest_memory_on_read(struct exanest_memory *memory, uint16_t pdid,
                            const struct exanest_memory_read *read);
/* The beat of this cycle. False: none. Call it once a cycle, if the shifter is ready. */
MUST_USE bool exanest_memory_next_beat(struct exanest_memory *memory,
                                       struct exanest_read_beat *beat);
/* The same of the zDMA's port. */
MUST_USE bool exanest_memory_next_zdma_beat(struct exanest_memory *memory,
                                            struct exanest_read_beat *beat);

/* `port` is below EXANEST_WRITE_PORTS: a word a cycle each. */
void exanest_memory_on_write(struct exanest_memory *memory, uint32_t port,
                             const struct exanest_memory_write *write);
/* The answer to the port's oldest burst. False: it is not due. */
MUST_USE bool exanest_memory_next_response(struct exanest_memory *memory, uint32_t port,
                                           enum exanest_axi_response *response);

static inline void exanest_memory_step(struct exanest_memory *memory)
{
    memory->now++;
}

static inline bool exanest_memory_idle(const struct exanest_memory *memory)
{
    return memory->waiting == 0 && memory->ports[0].head == memory->ports[0].tail &&
           memory->ports[1].head == memory->ports[1].tail &&
           memory->ports[2].head == memory->ports[2].tail;
}

#endif
