/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crowd - many nodes that exchange data while bits are flipped, and every byte of them compared.
 *
 * Purpose    An all-to-all and a halo exchange on whole networks: the interface promises that data
 *            come right and that operations are told of once, and here everything goes wrong that
 *            can.
 * Inputs     The run's parameters (LANT_CROWD_USES, and LANT_HALO_USES); the kind of network.
 * Outputs    struct lant_crowd_outcome: bytes that are not as a model of memory says, and
 *            operations that were not told of exactly once.
 * Time       Picoseconds of the world; what a program computes takes no time.
 * Units      Bytes; nodes by index. The nodes in use are the first of the network's.
 * Limits     LANT_CROWD_NODES_MAX nodes.
 * Source     LNI-86, LNI-87. The exchanged data are our choice.
 */
#ifndef LAB_LANT_CROWD_H
#define LAB_LANT_CROWD_H

#include "lab/lant/bench.h"
#include "lab/lant/distances.h"

#define LANT_CROWD_NODES_MAX 4096u

#define LANT_CROWD_USES                                                                            \
    LANT_LINE_USES "switch shm_issue shm_beat shm_receive shm_done shm_rows rdma_setup ram "       \
                   "rdma_receive rdma_done ack rows operations timers early_timer early "          \
                   "engine_window timeout cam entries escapes escape_time register "               \
                   "receiver crowd bit_errors crc rings block "
#define LANT_HALO_USES "fence steps "

struct lant_crowd_outcome {
    uint64_t bytes;      /* Bytes that were compared, */
    uint64_t wrong;      /* and those of them that differ from the model. */
    uint64_t operations; /* Transfers, loads and stores. */
    /* Answers and notifications that are missing, that came twice, or that say something false; and
     * stores that were done more or less than once. */
    uint64_t miscounted;
    uint64_t failed;   /* Operations that the interface reported as failed. */
    uint64_t kept;     /* Nodes whose tables are not empty in the end. */
    uint64_t flipped;  /* Bits. */
    uint64_t repaired; /* Flits with one wrong bit, at switches and nodes. */
    uint64_t nacks;    /* Packets that were refused for their CRC. */
    uint64_t timeouts; /* Packets that nobody answered. */
    uint64_t packets;  /* Packets that came to a node. */
    uint64_t again;    /* Requests that a node knew already: their answers were lost. */
    double us;
};

/* Each node sends a block to each other. */
struct lant_crowd_outcome lant_crowd_exchange(struct lab_run *run, enum lant_network_kind kind);
/* Nodes of a 3D grid compute cells out of their own and their six neighbours', step by step. One
 * dimension's faces are transferred, one's stored and fenced, one's loaded. */
struct lant_crowd_outcome lant_crowd_halo(struct lab_run *run, enum lant_network_kind kind);

/* -- Between the files --------------------------------------------------------------------------*/

/* The smallest network of its kind that has so many nodes, as topology_open reads it. */
void lant_crowd_describe(enum lant_network_kind kind, uint32_t nodes, char *text, size_t bytes);
/* The sizes of a torus of so many nodes, as near to a cube as they can be, the largest first. */
void lant_crowd_grid(uint32_t nodes, uint32_t grid[3]);

/* A network of this kind with at least as many nodes as the run wants. */
struct lant_bench *lant_crowd_open(struct lab_run *run, enum lant_network_kind kind,
                                   uint64_t memory_bytes);
/* Runs until nothing is left to do, also for timers, and counts. */
void lant_crowd_finish(struct lant_bench *bench, struct lant_crowd_outcome *outcome);
/* Closes the world. */
void lant_crowd_close(struct lant_bench *bench);
/* All of a node's memory is as `expected`, memory_bytes of it. */
void lant_crowd_compare(const struct lant_node *node, const uint8_t *expected,
                        struct lant_crowd_outcome *outcome);

static inline uint64_t lant_crowd_apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

#endif
