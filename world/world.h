/* SPDX-License-Identifier: BSD-2-Clause
 *
 * world - the functions of a world that verbs/ and kernel/ call: a NIC that programs can use
 * (struct live).
 *
 * Purpose    The contract between those who answer a program's calls and those who have time, a
 *            network and other processes. It is kept by functions of these names and nothing else:
 *            the linker chooses the world. There are two: that of drivers/, in real time, and that
 *            of virtual/, whose NIC is one of the laboratory, in virtual time.
 * Inputs     Objects of nic/nic.h, which the caller makes and changes by nic's own functions, with
 *            the lock held; and the world is told what became of them.
 * Outputs    Packets, completions, events; the port and its GID table.
 * Ownership  A NIC is the world's, from live_claim_from_environment to live_close. Objects are the
 *            caller's.
 * Threads    (locked): the calling thread holds the lock. (not locked): it does not. All others: as
 *            it likes, in any thread. No call is a point where a program's thread may be cancelled.
 * Time       The world's own: live_now.
 * Units      Bytes; nanoseconds.
 * Limits     Those of nic_limits.
 * Source     ARCHITECTURE.md; docs/decisions/0049.
 */
#ifndef WORLD_WORLD_H
#define WORLD_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/multicast.h"
#include "nic/nic.h"

struct live;

/* The kind of NIC that programs see: one that speaks RoCE, or an Elastic Fabric Adapter (EFA). */
enum live_personality {
    LIVE_ROCE,
    LIVE_EFA,
};

/* The name of each one's device. */
#define LIVE_DEVICE_ROCE "nonic0"
#define LIVE_DEVICE_EFA  "rdmap0s31"

/* The one that the environment names, from the first call on; nothing is made. LIVE_ROCE also where
 * it names none that exists: then no NIC can be claimed. */
enum live_personality live_personality(void);

/* -- Differences between worlds -----------------------------------------------------------------*/

/* One of the worlds does not have these. */
enum live_offer {
    LIVE_OFFER_XRC,        /* XRC's domains. */
    LIVE_OFFER_ALLOCATORS, /* Objects in memory of the program's own allocators. */
};

/* Does this one have it? False: standard error says so, once, and the caller refuses. */
bool live_offers(enum live_offer what);

/* The memory in which all has to lie that engines point to, where they are driven from outside of
 * the process. NULL: any memory will do. */
struct live_arena {
    void *(*take)(size_t bytes); /* Zeroed, aligned to 64 bytes; NULL: there is none. */
    void (*give)(void *memory);
};
/* (not locked) While there is a NIC. */
const struct live_arena *live_arena(void);

/* -- Its life: for who has the process's NIC ----------------------------------------------------*/

/* The NIC that the environment describes, with its addresses; no thread runs yet. NULL with a
 * reason in `error`; and in errno, if it is one of the system's. */
struct live *live_claim_from_environment(char *error, size_t error_bytes);
/* Packets come and go from now on. Again: no change. False with a reason in `error`; errno is not 0
 * if it is one of the system's. */
bool live_start(struct live *live, char *error, size_t error_bytes);

/* Do other processes share our address? Then they count on our thread from the claim on, so the NIC
 * is to be started at once. */
bool live_is_shared(const struct live *live);

/* Called by a thread of the world's own. */
struct live_owner {
    void (*on_leaving)(void); /* Before that thread stops; not locked. */
    /* Locked: what is told to another process, root's or of our user, that wishes for it, as lines
     * in `text`. Returns their length; 0: the wish is unknown; SIZE_MAX: it is known, but cannot be
     * granted just now. */
    size_t (*on_wish)(struct live *live, const char *wish, bool root, char *text, size_t bytes);
};
/* By who claimed the NIC, before live_start. */
void live_set_owner(struct live *live, const struct live_owner *owner);

/* (locked) The program forks: a child's copy of the NIC is what the NIC is now. Still locked,
 * live_goes_on follows in the parent. */
void live_forks(struct live *live);
void live_goes_on(struct live *live);
/* In a child of fork, which has copies of its parent's descriptors and objects: closes the
 * descriptors, which would keep names and connections alive behind the parent's end, and makes the
 * copy of the NIC one that reaches nobody and tells nothing. Objects that the program inherited are
 * of that copy: its exit handlers may touch them. Only what is allowed between fork and exec. */
void live_forked(struct live *live);
bool live_is_inherited(const struct live *live);

/* The program ends: the world's thread sends what is ready, writes counters and capture, and stops.
 * Other threads of the program may still be inside, so nothing is freed. So may be the calling
 * thread, if a signal handler of the program called exit(): what it holds it never gives back, so
 * nothing is waited for then, and never for long. */
void live_leave(struct live *live);
/* Frees a NIC that nobody uses any more. */
void live_close(struct live *live);

/* -- The NIC ------------------------------------------------------------------------------------*/

void live_lock(struct live *live);
void live_unlock(struct live *live);
/* False: the calling thread holds it, as a signal handler of the program cannot know. */
bool live_lock_unless_held(struct live *live);

/* Its functions are called with the lock held, but for nic_limits. */
struct nic *live_nic(struct live *live);
/* Is the program to be refused what hardware refuses? */
bool live_is_strict(const struct live *live);
/* Programs may write the queues of an EFA device themselves. */
bool live_maps_queues(const struct live *live);
uint64_t live_guid(const struct live *live); /* Host byte order. */
/* (locked) Now, as the engines see it. */
struct instant live_now(struct live *live);

/* Called, locked and by whichever thread made progress, for each notification and event. They may
 * only queue and wake. */
struct live_listener {
    void (*on_completion_event)(struct cq *cq);
    void (*on_async_event)(const struct nic_event *event);
    /* The port or the GID table has changed, and shows it already. `changes`: enum live_change,
     * or'ed. */
    void (*on_port_change)(uint32_t changes);
};
/* (locked) By the library that makes objects, before it makes the first. */
void live_listen(struct live *live, const struct live_listener *listener);

/* -- The port and its GID table -----------------------------------------------------------------*/

/* One of several interfaces is enough, as where Linux bonds them. */
enum live_port {
    LIVE_PORT_ACTIVE,
    LIVE_PORT_POLLING,  /* Switched on, without a carrier. */
    LIVE_PORT_DISABLED, /* Switched off, or gone. */
};

/* In the order in which a NIC would tell them. */
enum live_change {
    LIVE_CHANGE_PORT_DOWN = 1 << 0, /* The port was active and is not any more. */
    LIVE_CHANGE_PORT_UP = 1 << 1,   /* It was not and is now. */
    LIVE_CHANGE_GIDS = 1 << 2,      /* An address came or went. */
};

/* One entry of the GID table. First come the device's addresses, each its own GID; then a
 * link-local name for each of them that is of 127.0.0.0/8 (wire/inet.h), as long as there is
 * room. */
struct live_gid {
    struct gid gid;
    struct gid address;       /* Packets carry it: `gid`, or the address that it is a name of. */
    uint32_t interface_index; /* netdev ifindex; 0: the interface is gone. */
};

/* No world has more entries than that. */
#define LIVE_GIDS_MAX 16

/* Entries of the GID table, some of which may be empty: those whose address is gone. Each address
 * keeps its entry, so that it has the same index when it comes back. EFA has the first alone. */
uint32_t live_gid_count(const struct live *live);
/* False: the entry is empty, or there is none. */
MUST_USE bool live_gid(const struct live *live, uint32_t index, struct live_gid *gid);
/* Packets from an entry carry it, whether the entry is there or not: its GID, or the address that
 * the GID is a name of. `index` is less than live_gid_count. */
struct gid live_own_address(const struct live *live, uint32_t index);
struct gid live_own_gid(const struct live *live, uint32_t index); /* Likewise, the GID. */
/* It is known that it is not there: no packet can leave from it. */
bool live_gid_is_gone(const struct live *live, uint32_t index);
/* The interface of the first entry; 0: it is gone. */
uint32_t live_interface(const struct live *live);
enum live_port live_port_state(const struct live *live);
/* (not locked) Where the system tells nothing of interfaces: what the above say is looked up. */
void live_port_refresh(struct live *live);
enum path_mtu live_active_mtu(const struct live *live);
/* Do packets to some peers go through memory, at its speed? */
bool live_has_memory_wire(const struct live *live);
/* A local identifier, unique on this machine, for programs that know no GIDs. 0, as of every port
 * on Ethernet: other machines reach the device, where no LID leads to; or none is to be had. */
uint16_t live_lid(struct live *live);
/* (not locked) The GID of the process that owns `lid`; may wait for that process. False: no process
 * owns it; or, with an errno that shortage_is, it could not be asked just now. */
MUST_USE bool live_gid_of_lid(struct live *live, uint16_t lid, struct gid *gid);

/* -- Ways to peers ------------------------------------------------------------------------------*/

/* (locked) Finds the link to a queue pair at av->destination and fills av->link and
 * av->window_bytes. The link is held until live_release. A destination that is the link-local
 * name of a loopback address becomes that address (destination_by_alias). STATUS_INVALID: no port
 * reaches it. */
MUST_USE enum status live_resolve(struct live *live, struct nic_av *av, uint32_t destination_qpn);
/* (locked) The same for datagrams, to any queue pair there, or to a multicast group. */
MUST_USE enum status live_resolve_datagrams(struct live *live, struct nic_av *av);
/* (locked) Nobody uses the address vector any more, but for datagrams that were posted: the link to
 * the peer goes when it was the last one. Nothing is done if it has no link. */
void live_release(struct live *live, const struct nic_av *av);

/* (locked) There is a UD queue pair, which shows its program in what IP headers vary: from now on
 * the sockets tell it. */
void live_show_variants(struct live *live);

/* (locked) UD queue pairs and multicast groups. STATUS_INVALID: not UD, not a multicast GID, no
 * address of its family, or (detach) not attached; STATUS_FULL: no room, here or in the kernel. */
MUST_USE enum status live_attach(struct live *live, const struct gid *group, struct qp *qp);
MUST_USE enum status live_detach(struct live *live, const struct gid *group, struct qp *qp);

/* -- Progress -----------------------------------------------------------------------------------*/

/* (locked) Sends what is ready. */
void live_flush(struct live *live);
/* (locked) Requests were posted to `qp`: sends them now, or together with those posted next where
 * the program has the habit of posting several and polling then (docs/decisions/0009). */
void live_posted(struct live *live, struct qp *qp);
/* (locked) One round of receiving, timers and sending, by a thread that polls a completion queue,
 * which is or is not armed. */
void live_progress(struct live *live, bool armed);
/* (locked) A program took completions without a round of progress; now and then this makes one. */
void live_reaped(struct live *live, bool armed);
/* (locked) A program armed a completion queue or is about to block: the world goes on by itself, at
 * once. */
void live_will_block(struct live *live);

/* -- Objects that local peers may reach by themselves -------------------------------------------*/

/* (locked) Who looks after a withdrawal finds nothing; who looked before is out of reach once it is
 * settled. A region is withdrawn before it is changed or removed, and published once; likewise a
 * queue pair. */
void live_publish_region(struct live *live, const struct region *region);
void live_withdraw_region(struct live *live, const struct region *region);
void live_publish_qp(struct live *live, const struct qp *qp);
void live_withdraw_qp(struct live *live, const struct qp *qp);
/* (locked) The same, and it is about to be destroyed. */
void live_end_qp(struct live *live, const struct qp *qp);
/* (locked) No local peer reaches any more through what was withdrawn so far: nearly always so at
 * once. False: live_settle waits for it. */
MUST_USE bool live_settled(struct live *live);
/* (not locked) The same, after waiting as long as it takes, but some seconds at most. False: a
 * peer is stopped inside, which the program was told; no memory may be given back. */
MUST_USE bool live_settle(struct live *live);

/* -- Memory that local peers map ----------------------------------------------------------------*/

/* (locked) Private memory that peers map becomes private again where it overlaps [start, start +
 * bytes), or where no region is in it any more: before the program may do with it what it can do
 * with private memory alone. Not if the program has more threads: nobody could take it back
 * then. */
void live_take_back(struct live *live, uint64_t start, uint64_t bytes);
void live_take_back_unused(struct live *live);
/* Is there such memory in this process? Never while it has more threads than one. */
extern atomic_bool live_has_lent;

#endif
