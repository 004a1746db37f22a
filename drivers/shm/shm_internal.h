/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_internal - the parts of the shared-memory port that only the shm_*.c files use.
 */
#ifndef DRIVERS_SHM_INTERNAL_H
#define DRIVERS_SHM_INTERNAL_H

#include <sys/types.h>

#include "drivers/link_table.h"
#include "drivers/shm/shm_layout.h"
#include "drivers/shm/shm_port.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/user.h"

/* The subject of an epoll event. */
enum shm_watch {
    SHM_WATCH_LISTENER,
    SHM_WATCH_CALLER, /* A connection whose first message has not come. */
    SHM_WATCH_INBOUND,
    SHM_WATCH_LINK,
};

/* Our ring to a peer: we produce, the peer consumes. */
struct shm_link {
    struct link link;
    enum shm_watch watch;
    int socket;                    /* Doorbell out; the board and the hang-up in. -1 when lost. */
    pid_t pid;                     /* The peer, as we see it; 0: unknown. */
    struct user_process process;   /* shm_direct.c: the peer; all -1: not needed so far. */
    struct shm_ring *ring;         /* NULL when lost. */
    const struct shm_board *board; /* NULL until the peer answered. */
    uint32_t tail;                 /* Next slot to fill. */
    uint32_t consumed;             /* The last value of ring->consumed that we saw. */
    uint64_t data_tail;            /* Free-running; next payload goes to it modulo the ring. */
    uint64_t data_freed;           /* Payload bytes up to here are free again. */
    uint64_t data_end[SHM_SLOTS];  /* data_tail behind each slot's payload. */
    uint32_t windows;              /* Windows that were opened so far. */
    struct list dirty;             /* In port->dirty: written since the last flush, ... */
    bool unplaced;                 /* ... and not placed records alone. */
    bool direct_refused;           /* The kernel does not let us reach the peer's memory. */
    struct shm_views *views;       /* shm_view.c: memory of the peer; NULL: none is used. */
    uint32_t mapped;               /* Views. */
    uint32_t kernel_accesses;      /* shm_direct.c: those that a view would have made cheaper. */
    bool revived;                  /* It was lost, and looked for again. */
    bool udp_too;                  /* Queue pairs of ours reach the peer over UDP as well. */
};

/* A peer's ring to us: the peer produces, we consume. */
struct shm_inbound {
    enum shm_watch watch;
    int socket;
    struct shm_ring *ring;
    struct gid source;
    int slot;  /* The peer's. */
    pid_t pid; /* The peer's, as we see it; 0: unknown. */
    uint32_t head;
    bool hung_up; /* It is removed once the packets in it were taken. */
    bool broken;  /* Its contents made no sense: nothing is taken from it any more. */
    /* shm_window.c: the peer cannot act against any withdrawal up to `settled`, ... */
    uint64_t settled;
    /* ... whose window was `window` when those up to `looked_at` had been made. */
    uint64_t looked_at;
    shm_window window;
    shm_window given_up; /* We have waited for this window long enough. */
};

/* A process that connected and has not sent its hello yet. */
struct shm_caller {
    enum shm_watch watch;
    int socket;
    struct list node; /* In port->callers. */
};

/* Memory of this process that peers can map (shm_extent.c). */
#define SHM_EXTENTS 64
struct shm_extent {
    uint64_t number;
    uint64_t start, bytes; /* Addresses of this process. */
    uint64_t offset;       /* The place of `start` in the file. */
    dev_t device;
    ino_t inode;
    int fd;
    uint32_t regions; /* With its number on the board. */
    bool exchanged;   /* The memory was private; it becomes so again. */
    bool offered;     /* A peer may map it. */
};

struct shm_port {
    struct gid self;
    int slot; /* LOCAL_NO_SLOT: the address is ours alone. */
    enum shm_watch watch;
    int listener, epoll;
    int board_fd; /* Read-only, for peers. */
    struct shm_board *board;
    struct link_table links;
    struct list dirty;   /* Links that were written into since the last flush. */
    struct list callers; /* The oldest first. */
    uint32_t caller_count;
    struct shm_inbound **inbound;
    uint32_t inbound_count, inbound_max;
    uint64_t greeted; /* Rings that ever came. */
    struct shm_turn {
        uint32_t ring;  /* Which of `inbound` is read, ... */
        uint32_t taken; /* ... and how many packets were taken from it. */
        struct shm_slot slot;
        uint8_t long_headers[NIC_HEADERS_BYTES_MAX];
        struct shm_record record; /* The newest one of them: of what stands in `slot`. */
    } turn;                       /* Where shm_port_next goes on. */
    uint64_t withdrawals;         /* All withdrawals from the board so far. */
    uint32_t domains;             /* Protection domains that were numbered so far. */
    uint32_t states; /* The newest number of a queue pair's publication on the board. */
    struct shm_direct_counters direct;
    struct shm_counters counters;
    bool lends;      /* Peers may map memory. */
    uint32_t wanted; /* The key of a region for whose private memory a peer has asked; 0: none. */
    uint32_t extent_count;
    uint64_t extent_numbers; /* Given out so far. */
    uint64_t exchanged_bytes;
    struct shm_extent extents[SHM_EXTENTS];
    struct shm_extent_counters extent;
};

/* shm_connect.c */
void shm_link_lose(struct shm_port *port, struct shm_link *link);
void shm_inbound_close(struct shm_port *port, uint32_t index);
/* Nothing is taken from the ring any more, and its producer is told to leave. The ring stays until
 * then, because its window may be open. */
void shm_inbound_break(struct shm_port *port, struct shm_inbound *inbound);

/* shm_ring.c: packets that the peer has not read, as far as it says. */
uint32_t shm_link_unread(struct shm_link *link);

/* shm_ring.c: leaves a record of a packet whose payload is in place already. */
void shm_link_note_placed(struct shm_port *port, struct shm_link *link,
                          const struct nic_departure *departure);

/* shm_board.c */
void shm_board_init(struct shm_board *board);
/* The entry of that key, which is not 0; NULL: none. */
struct shm_board_region *shm_board_region(struct shm_board *board, uint32_t key);
bool shm_board_is_owned(const struct shm_board *board);

/* An access to memory that a packet is about to make. */
struct shm_reach {
    uint32_t number; /* The peer's queue pair. */
    uint32_t key;
    struct reach_source source;
    struct reach_access access;
};

/* An access that a board allows. Addresses are those of the board's process. */
struct shm_grant {
    uint64_t memory;
    uint64_t extent; /* The number of the extent that has it; 0: none. */
    uint64_t bytes;  /* The region's size. */
    uint32_t state;  /* The number of the queue pair's publication that allows it. */
    uint32_t place;  /* On the board. */
};

/* Judges the access by nic/reach.h and the board, as if the queue pair expected the packet's PSN. A
 * queue pair or key that is not on the board is REACH_UNKNOWN_QP or REACH_UNKNOWN_KEY, whatever the
 * reason. */
MUST_USE enum reach_verdict shm_board_judge(const struct shm_board *board,
                                            const struct shm_reach *reach, struct shm_grant *grant);
/* The address at which the queue pair says what it awaits (qp_awaited); 0: it has left. */
uint64_t shm_board_awaited(const struct shm_board *board, const struct shm_grant *grant);

/* shm_extent.c: a peer asks for the memory of a region; the end. */
void shm_extent_asked(struct shm_port *port, const struct shm_inbound *inbound, uint32_t key);
void shm_extents_close(struct shm_port *port);

/* shm_view.c: where bytes of the peer, which a board granted, are mapped here; NULL: nowhere. */
uint8_t *shm_view_at(const struct shm_link *link, const struct shm_grant *grant, uint32_t bytes,
                     bool write);
/* `count` such accesses have gone through the kernel: when that has cost enough, the peer is
 * asked. */
void shm_view_charge(struct shm_link *link, const struct shm_grant *grant, uint32_t key,
                     uint32_t bytes, uint32_t count);
/* The peer's answer. `fd` stays the caller's. */
void shm_view_offered(struct shm_link *link, const struct shm_offer *offer, int fd);
/* All that is mapped goes, and what is known of costs. */
void shm_views_close(struct shm_link *link);

/* shm_window.c: an entry has been taken off the board. */
void shm_note_withdrawal(struct shm_port *port);

/* shm_version.c: the name at which processes whose rings have that layout listen. */
struct local_name shm_name(uint32_t layout, const struct gid *gid, int slot);

/* shm_memory.c: makes memory to share. `sealed_for_others`: only this mapping can write it, and the
 * descriptor is for reading. -1 with errno; EFBIG: beyond the process's limit on files. */
MUST_USE int shm_memory_make(const char *name, size_t bytes, bool sealed_for_others, void **map);
/* Maps memory from a peer. NULL: it has not the size, the seals and the mark of our layout that we
 * ask for, or cannot be mapped. */
void *shm_memory_map(int fd, size_t bytes, int protection);
struct shm_mark shm_mark_of(size_t bytes);
bool shm_mark_fits(const struct shm_mark *mark, size_t bytes);

#endif
