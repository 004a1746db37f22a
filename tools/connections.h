/* SPDX-License-Identifier: BSD-2-Clause
 *
 * connections - one process with many connections: how fast, how late, how large.
 *
 * An ordinary verbs program in three parts: connections.c reads the command line and prints;
 * connections_process.c runs a point in processes of its own; connections_world.c makes queue
 * pairs and connects them; connections_load.c posts and polls.
 */
#ifndef TOOLS_CONNECTIONS_H
#define TOOLS_CONNECTIONS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define CONNECTIONS_MAX 131072u
#define PEERS_MAX       64u
#define ERROR_BYTES     160u

/* One measurement. */
struct plan {
    uint32_t qps;   /* Connections of the initiator. */
    uint32_t peers; /* Processes to which the connections lead, in turn. */
    uint32_t bytes; /* The size of a message. */
    uint32_t depth; /* Messages under way, all connections together. */
    uint32_t ring;  /* Send requests a queue pair has room for. */
    bool reads;     /* RDMA READ instead of WRITE. */
    bool shuffled;  /* Connections in random order instead of round robin. */
    double seconds;
    bool foreign;       /* The device is not nonic's. */
    const char *device; /* Its name; NULL: the first one. */
    uint32_t gid_index;
};

struct outcome {
    double rate;             /* Messages a second. */
    double latency_us;       /* Median of one message alone. */
    double setup_s;          /* Until all queue pairs of both sides were connected. */
    double bytes_per_qp;     /* The growth of the process, without the send ring ... */
    double ring_bytes;       /* ... of one queue pair; a foreign device's is not known: 0. */
    char error[ERROR_BYTES]; /* Empty: all is well. */
};

/* One side's queue pairs, its memory (one slot of `bytes` for each), and doors to the others. */
struct world {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    union ibv_gid gid;
    uint32_t gid_index;
    uint16_t lid; /* 0: Ethernet. */
    uint32_t count, bytes;
    uint8_t *memory;
    struct ibv_qp **qps;
    struct door *doors; /* By connection: where the other side's slot is. */
};

/* The other side of a connection has to know this in order to find us. */
struct door {
    uint64_t address;
    uint32_t key, qpn;
};

/* False: `error` (of ERROR_BYTES) says why. */
bool world_open(struct world *world, const struct plan *plan, uint32_t count, char *error);
/* Queue pairs [from, to). */
bool world_make_qps(struct world *world, const struct plan *plan, uint32_t from, uint32_t to,
                    char *error);
struct door world_door(const struct world *world, uint32_t index);
bool world_connect(struct world *world, uint32_t index, const union ibv_gid *gid,
                   const struct door *door, char *error);

/* Fills a slot with the `bytes` that it holds after `posted` messages on connection `index`. */
void slot_fill(uint8_t *slot, uint32_t bytes, uint32_t index, uint32_t posted);
bool slot_is(const uint8_t *slot, uint32_t bytes, uint32_t index, uint32_t posted);

/* Sends messages over the first `qps` connections until memory and links have settled. */
bool load_warm_up(struct world *world, const struct plan *plan, uint32_t qps, uint32_t *posted,
                  struct outcome *outcome);
/* Runs the load. posted[i] counts the messages of connection i. */
bool load_run(struct world *world, const struct plan *plan, uint32_t *posted,
              struct outcome *outcome);

/* A series: how the NIC of its processes is set up. */
struct series {
    const char *name;
    const char *batch; /* The value of NONIC_BATCH; NULL: not set. */
};

/* Runs one point; outcome->error says what went wrong, if anything did. */
void run_point(const struct series *series, const struct plan *plan, struct outcome *outcome);

#endif
