/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_internal - the shared-memory port's insides, for the shm_*.c files only.
 */
#ifndef DRIVERS_SHM_INTERNAL_H
#define DRIVERS_SHM_INTERNAL_H

#include <sys/types.h>

#include "drivers/shm_layout.h"
#include "drivers/shm_port.h"

/* What an epoll event is about. */
enum shm_watch {
    SHM_WATCH_LISTENER,
    SHM_WATCH_CALLER, /* A connection whose first message has not come. */
    SHM_WATCH_INBOUND,
    SHM_WATCH_LINK,
};

/* Our way to a peer: we produce, it consumes. */
struct shm_link {
    struct link link;
    enum shm_watch watch;
    int slot;                      /* Of the peer; LOCAL_NO_SLOT: it has its address alone. */
    int socket;                    /* Doorbell out; the board and the hang-up in. -1 when lost. */
    pid_t pid;                     /* Of the peer, as we see it; 0: unknown. */
    struct shm_ring *ring;         /* NULL when lost. */
    const struct shm_board *board; /* NULL until the peer answered. */
    uint32_t tail;                 /* Next slot to fill. */
    uint32_t consumed;             /* What we last saw of ring->consumed. */
    uint64_t data_tail;            /* Free-running; next payload goes to it modulo the ring. */
    uint64_t data_freed;           /* Payload bytes up to here are free again. */
    uint64_t data_end[SHM_SLOTS];  /* data_tail behind each slot's payload. */
    bool dirty;                    /* Written since the last flush, ... */
    bool unplaced;                 /* ... and not placed records alone. */
    bool direct_refused;           /* The kernel does not let us reach the peer's memory. */
    struct {
        uint32_t qpn, psn; /* The next packet of the message that is being placed. */
        uint32_t key, left;
        uint64_t address;
    } stream;
    struct shm_link *next;
};

/* A peer's way to us: it produces, we consume. */
struct shm_inbound {
    enum shm_watch watch;
    int socket;
    struct shm_ring *ring;
    struct gid source;
    uint32_t head;
    bool hung_up; /* Goes away once it is drained. */
};

/* Somebody who connected and has not said hello yet. */
struct shm_caller {
    enum shm_watch watch;
    int socket;
};

struct shm_port {
    struct gid self;
    int slot; /* LOCAL_NO_SLOT: the address is ours alone. */
    enum shm_watch watch;
    int listener, epoll;
    int board_fd; /* Read-only, for peers. */
    struct shm_board *board;
    struct shm_link *links;
    struct shm_inbound **inbound;
    uint32_t inbound_count, inbound_max;
    bool any_dirty;
    uint64_t broken; /* Rings closed because what was in them made no sense. */
};

/* shm_connect.c */
bool shm_connect(struct shm_port *port, struct shm_link *link);
void shm_link_lose(struct shm_port *port, struct shm_link *link);
void shm_inbound_close(struct shm_port *port, uint32_t index);

/* shm_ring.c: leaves a record of a packet whose payload is in place already. */
void shm_link_note_placed(struct shm_port *port, struct shm_link *link,
                          const struct nic_departure *departure);

/* shm_direct.c */
void shm_board_init(struct shm_board *board);

#endif
