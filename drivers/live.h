/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live - one NIC in real time: the engines, the ports that carry its packets, and who drives them.
 *
 * Purpose    Assembles nic/ with the udp and shm ports, clock, progress thread, faults, capture.
 * Inputs     live_open with a configuration; live_flush after posting; live_progress from pollers.
 * Outputs    Packets, completions; notifications and events through the two callbacks' fds.
 * Ownership  live_open allocates, live_close frees. Objects live in the NIC between lock and
 *            unlock.
 * Threads    Everything marked (locked) is called between live_lock and live_unlock.
 * Time       CLOCK_MONOTONIC.
 * Units      Nanoseconds, bytes.
 * Limits     live_limits below.
 * Source     ARCHITECTURE.md, "live world".
 */
#ifndef DRIVERS_LIVE_H
#define DRIVERS_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/interfaces.h"
#include "nic/multicast.h"
#include "nic/nic.h"

struct live;

enum live_wire {
    LIVE_WIRE_AUTO, /* Shared memory to nonic processes of this machine and user, UDP to others. */
    LIVE_WIRE_UDP,
    LIVE_WIRE_SHM, /* Shared memory only: no socket leaves the process. */
};

/* All strings may be NULL. Read from the environment by live_config_from_environment. */
struct live_config {
    enum live_wire wire;          /* NONIC_WIRE=auto|udp|shm */
    enum nic_transport transport; /* NONIC_TRANSPORT=rc|block|auto: of connections over UDP. */
    const char *device;  /* NONIC_DEVICE=IFACE|ADDR[,...]; NULL: a loopback address of our own. */
    const char *capture; /* NONIC_CAPTURE=FILE.pcapng */
    const char *fault;   /* NONIC_FAULT=drop=0.01,... */
    bool stats;          /* NONIC_STATS=1: print the counters to stderr at exit. */
    /* NONIC_BATCH=1..256: queue pairs whose turn is prepared together, and requests of a polling
     * program that may wait for one another. 1: one by one, without prefetching. */
    uint32_t batch;
    uint32_t paths; /* NONIC_PATHS=1..16: source ports of each address at a time; 0: usual. */
    bool strict;    /* NONIC_STRICT=1: what hardware refuses is refused (verbs/strict.h). */
};

/* False: `error` says which variable is wrong and what it may be. */
bool live_config_from_environment(struct live_config *config, char *error, size_t error_bytes);

/* Verbs-level limits every live NIC has. */
const struct nic_limits *live_limits(void);

/* One entry of the GID table. First come the device's addresses, each its own GID; then a
 * link-local name for each of them that is of 127.0.0.0/8 (inet.h), as long as there is room. */
struct live_gid {
    struct gid gid;
    struct gid address;       /* What packets carry: `gid`, or the address that it is a name of. */
    uint32_t interface_index; /* netdev ifindex; 0: the interface is gone. */
};

/* The address is claimed and the sockets are bound by live_claim; threads start in live_open. NULL
 * with a reason in `error`. */
struct live *live_claim(const struct live_config *config, char *error, size_t error_bytes);
/* The same, as the environment says. */
struct live *live_claim_from_environment(char *error, size_t error_bytes);
bool live_start(struct live *live, char *error, size_t error_bytes);

/* Is the program to be refused what hardware refuses? */
bool live_is_strict(const struct live *live);

/* Do other processes share our address? Then they count on our thread from live_claim on, so it is
 * to be started at once. */
bool live_is_shared(const struct live *live);

/* In a child of fork, which has copies of its parent's descriptors and objects: closes the
 * descriptors, which would keep names and connections alive behind the parent's end, and makes the
 * copy of the NIC one that reaches nobody and tells nothing. What the program does to objects that
 * it inherited, as in its exit handlers, is done to that copy. Only what is allowed between fork
 * and exec. */
void live_forked(struct live *live);
bool live_is_inherited(const struct live *live);

/* The program ends: our thread sends what is ready, writes counters and capture, and stops. Other
 * threads of the program may still be inside, so nothing is freed. So may be the calling thread, if
 * a signal handler of the program called exit(): what it holds it never gives back, so nothing is
 * waited for then, and never for long. */
void live_leave(struct live *live);
void live_close(struct live *live);

struct nic *live_nic(struct live *live);
/* Entries of the GID table, some of which may be empty: those whose address is gone. Each address
 * keeps its entry, so that it has the same index when it comes back. */
uint32_t live_gid_count(const struct live *live);
/* False: the entry is empty, or there is none. May be called with or without the lock, as all that
 * follows up to live_port_refresh. */
MUST_USE bool live_gid(const struct live *live, uint32_t index, struct live_gid *gid);
/* What packets from an entry carry, whether it is there or not: its GID, or the address that its
 * GID is a name of. `index` is less than live_gid_count. */
struct gid live_own_address(const struct live *live, uint32_t index);
struct gid live_own_gid(const struct live *live, uint32_t index); /* Likewise, the GID. */
/* It is known that it is not there: no packet can leave from it. */
bool live_gid_is_gone(const struct live *live, uint32_t index);
/* The interface of the first entry; 0: it is gone. */
uint32_t live_interface(const struct live *live);
enum interfaces_port live_port_state(const struct live *live);
/* (not locked) Where the kernel tells nothing of interfaces: what the above say is looked up. */
void live_port_refresh(struct live *live);
uint64_t live_guid(const struct live *live); /* Host byte order. */
/* A local identifier, unique on this machine, for programs that know no GIDs. 0, as of every port
 * on Ethernet: other machines reach the device, where no LID leads to; or none is to be had. */
uint16_t live_lid(struct live *live);
/* The GID of the process that owns `lid`; may wait for that process. Not locked. False: no process
 * owns it; or, with an errno that shortage_is, it could not be asked just now. */
MUST_USE bool live_gid_of_lid(struct live *live, uint16_t lid, struct gid *gid);
enum path_mtu live_active_mtu(const struct live *live);
const char *live_device_text(
    const struct live *live); /* "127.84.3.9 (loopback, private to this process)" */

/* What carries the packets, for people. */
struct live_ports {
    bool udp, segmentation, shm;
    uint32_t paths; /* UDP source ports of each address, for those that speak blocks. */
    uint32_t receive_bytes, window_bytes;
};
void live_describe_ports(const struct live *live, struct live_ports *ports);

void live_lock(struct live *live);
void live_unlock(struct live *live);
/* False: the calling thread holds it, as a signal handler of the program cannot know. */
bool live_lock_unless_held(struct live *live);

/* (locked) Before RTR, when the way to the peer is known, which live_resolve found: the queue pair
 * gets memory for blocks if it is to speak them, or will when there is a use for it; else it speaks
 * none. The memory is freed by whoever takes it (qp_take_blocks). ENOMEM. */
int live_make_blocks(struct live *live, struct qp *qp, const struct nic_path *path);

/* (locked) Now, as the engines see it. */
struct instant live_now(struct live *live);

/* (locked) Finds the way to a queue pair at path->destination and fills path->link and
 * path->window_bytes. The link is held until live_release. A destination that is the link-local
 * name of a loopback address becomes that address (destination_by_alias). STATUS_INVALID: no port
 * reaches it. */
MUST_USE enum status live_resolve(struct live *live, struct nic_path *path,
                                  uint32_t destination_qpn);
/* (locked) The same for datagrams, to any queue pair there, or to a multicast group. */
MUST_USE enum status live_resolve_datagrams(struct live *live, struct nic_path *path);

/* (locked) Nobody uses the path any more, but for datagrams that were posted: the way to the peer
 * goes when it was the last one. A path without a link is none. */
void live_release(struct live *live, const struct nic_path *path);

/* (locked) There is a UD queue pair, which shows its program what IP headers vary in: from now on
 * the sockets tell it. */
void live_show_variants(struct live *live);

/* (locked) UD queue pairs and multicast groups. STATUS_INVALID: not UD, not a multicast GID, no
 * address of its family, or (detach) not attached; STATUS_FULL: no room, here or in the kernel. */
MUST_USE enum status live_attach(struct live *live, const struct gid *group, struct qp *qp);
MUST_USE enum status live_detach(struct live *live, const struct gid *group, struct qp *qp);

/* (locked) Sends what is ready. */
void live_flush(struct live *live);

/* (locked) Requests were posted to `qp`: sends them now, or together with those posted next where
 * the program has the habit of posting several and polling then (docs/decisions/0009). */
void live_posted(struct live *live, struct qp *qp);

/* (locked) One round of receiving, timers and sending, by a thread that polls a completion queue,
 * which is or is not armed. */
void live_progress(struct live *live, bool armed);

/* (locked) A program took completions without a round of progress. */
void live_reaped(struct live *live, bool armed);

/* A program armed a completion queue or is about to block: the thread takes over at once. (locked)
 */
void live_will_block(struct live *live);

/* (locked) What local peers may reach by themselves. Who looks after a withdrawal finds nothing;
 * who looked before is out of reach once it is settled. A region is withdrawn before it is changed
 * or removed, and published once; likewise a queue pair. */
void live_publish_region(struct live *live, const struct region *region);
void live_withdraw_region(struct live *live, const struct region *region);
void live_publish_qp(struct live *live, const struct qp *qp);
void live_withdraw_qp(struct live *live, const struct qp *qp);

/* (locked) No local peer reaches any more through what was withdrawn so far: nearly always so at
 * once. False: live_settle waits for it. */
MUST_USE bool live_settled(struct live *live);

/* (not locked) The same, after waiting as long as it takes, but some seconds at most. False: a
 * peer is stopped inside, which the program was told; no memory may be given back. */
MUST_USE bool live_settle(struct live *live);

/* Called, locked and by whichever thread made progress, for each notification and event. They may
 * only queue and wake. */
struct live_listener {
    void (*on_completion_event)(struct cq *cq);
    void (*on_async_event)(const struct nic_event *event);
    /* What became of the port and of the GID table, which show it already: interfaces_change. */
    void (*on_port_change)(uint32_t changes);
};
/* (locked) By the library that makes objects, before it makes the first. */
void live_listen(struct live *live, const struct live_listener *listener);

/* Called by our thread. */
struct live_owner {
    void (*on_leaving)(void); /* Before it stops; not locked. */
    /* Locked: what is told to another process, root's or of our user, that wishes for it, as lines
     * (stat_server.h). Returns their length; 0: the wish is unknown; SIZE_MAX: it is known, but
     * cannot be granted just now. */
    size_t (*on_wish)(struct live *live, const char *wish, bool root, char *text, size_t bytes);
};
/* By who claimed the NIC, before live_start. */
void live_set_owner(struct live *live, const struct live_owner *owner);

#endif
