/* SPDX-License-Identifier: BSD-2-Clause
 *
 * world - the second world (world/world.h): a program's NIC is one of the laboratory, which the box
 * of `nonic repeat --machine` drives.
 *
 * Purpose    The process posts, polls and changes objects by nic's own functions, in an arena that
 *            it shares with the box (base/box_ask.h). All else that a NIC does the box does: it
 *            pulls packets, moves bytes and tells the engine of what arrives.
 * Threads    One thread of all runs at a time, and gives way only where it makes a call, or where
 *            no engine is in the middle of something (box_arena.inside).
 * Time       Virtual: that of the thread that runs.
 */
#ifndef VIRTUAL_WORLD_H
#define VIRTUAL_WORLD_H

#include <pthread.h>

#include "base/box_ask.h"
#include "base/box_page.h"
#include "virtual/arena.h"
#include "world/manager.h"

/* The connection manager, which is a kernel's in its stead: it takes the process's time, and its
 * objects do not lie in the arena. */
struct manager {
    struct rdma_cm *cm;
    struct live_cm_listener listener;
    struct list searches; /* manager.c: ids whose peers are looked for again. */
    struct instant due;   /* When its alarm is. */
    uint16_t ports;       /* That ids had which connect from any. */
};

struct live {
    struct arena *arena;
    struct nic *nic;
    uint32_t number; /* among the NICs of the run */
    bool strict;
    bool is_started, is_inherited, has_left;
    void *copy; /* While the program forks: the arena as it is now, for the child; or NULL. */
    size_t copy_bytes;
    pthread_mutex_t mutex;
    struct live_listener listener;
    struct live_owner owner;
    struct manager manager;
};

/* The time of the processor for a call, in nanoseconds: our choice (docs/decisions/0069). */
enum {
    COST_VERB = 20, /* any of them, beside what follows */
    COST_POST = 60,
    COST_POLL_EMPTY = 20,
    COST_POLL_FOUND = 45,
    COST_ARM = 60,
    COST_FLUSH = 1000,  /* a command to the NIC that waits for what it does just now */
    COST_OBJECT = 8000, /* a command to the NIC: a queue pair changes, goes */
    COST_REGION = 5000, /* memory is registered */
    COST_PAGE = 90,     /* likewise, for each 4 KB of it */
    COST_LEAVE = 20000, /* a process ends: the kernel closes its device */
};

static inline struct box_page *world_page(void)
{
    return (struct box_page *)BOX_PAGE_ADDRESS;
}

/* ask.c: the box's answer; below 0: an errno. Inside, only for what it answers at once and what
 * does not change engines. */
int64_t world_ask(enum box_ask what, uint32_t number, const void *about);
/* The thread's clock goes on. */
void world_charge(uint64_t cost_ns);
/* In a child of fork, whose only thread is a new one. */
void world_forget_thread(struct live *live);
/* (locked) What others do meanwhile they may do with the lock, too: it is taken again then. */
int64_t world_ask_unlocked(struct live *live, enum box_ask what, const void *about);

/* progress.c: the thread that waits for notifications and events of `live`. */
void *world_listen(void *live);

/* manager.c. False: no memory. */
MUST_USE bool world_manager_open(struct live *live);
void world_manager_close(struct live *live);
/* (locked) Datagrams, ends of peers, times: all that has come. */
void world_manager_work(struct live *live);
/* (locked) The process ends: peers that it was connected with hear of it. */
void world_manager_leave(struct live *live);

/* port.c: the GID of a NIC that was opened. */
struct gid world_gid(uint32_t number);
/* The number of the NIC with this GID; -1: no NIC ever had it. */
int world_number(const struct gid *gid);
/* The way there (nic_av.link); NULL: none. */
void *world_find(const struct gid *gid);

/* memory.c: the arena from which objects come from now on. */
void world_use_arena(struct arena *arena);
/* Nobody takes or gives memory in between. */
void world_hold_arena(void);
void world_let_arena(void);

#endif
