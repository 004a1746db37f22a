/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_internal - the live NIC's insides, for the live_*.c files only.
 */
#ifndef DRIVERS_LIVE_INTERNAL_H
#define DRIVERS_LIVE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "drivers/address.h"
#include "drivers/capture.h"
#include "drivers/faults.h"
#include "drivers/habit.h"
#include "drivers/interface_watch.h"
#include "drivers/link_table.h"
#include "drivers/live.h"
#include "drivers/lock.h"
#include "drivers/services.h"
#include "drivers/shm_port.h"
#include "drivers/shortage.h"
#include "drivers/udp_port.h"
#include "world/manager.h"

/* Response packets that one READ request asks for at most: the world that fetches the data in one
 * go is not away for long. */
#define LIVE_READ_PACKETS 512

/* Links that blocks may go over, at most. */
#define LIVE_NUMBERS_MAX 1024

/* A datagram for QP 1. Its bytes are copies: a peer may go on writing where the frame lies. */
struct live_mad {
    struct gid source, destination;
    struct inet_variant variant;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    uint32_t headers_bytes;
    uint32_t bytes; /* Only a MAD of CM_MAD_BYTES is looked into. */
    uint8_t mad[CM_MAD_BYTES];
};

struct live {
    struct live_config config;
    struct nic *nic;
    void *nic_memory;
    size_t nic_memory_bytes;
    uint8_t named[ADDRESS_MAX]; /* Which addresses have a link-local name, in the order of these, */
    uint32_t name_count;        /* and how many there are. */
    struct address_set addresses;
    struct interfaces interfaces;  /* As last told or read. */
    struct interface_watch *watch; /* NULL: nothing is told, as for a loopback of our own. */
    struct instant port_due;       /* When live_port_on_time is wanted. */
    struct {
        atomic_bool told;      /* What follows is kept up to date by `watch`. */
        _Atomic uint32_t gids; /* A bit for each address that is there. */
        _Atomic uint32_t interface_indices[ADDRESS_MAX];
        _Atomic uint8_t state; /* enum live_port. */
    } port;                    /* What is seen of `interfaces` without the lock. */
    struct udp_port udp;
    struct shm_port *shm;    /* NULL: not wanted, or not to be had. */
    struct capture *capture; /* NULL: none. */
    struct faults *faults;   /* NULL: none. */
    struct {
        const struct link *link; /* Its ring was full when a held packet was due, ... */
        uint32_t read;           /* ... had been read so far, ... */
        uint64_t waited_ns;      /* ... and no further for so long, ... */
        struct instant looked;   /* ... when we last looked. */
    } full;
    struct link_table fans;                      /* live_paths.c */
    struct link nowhere;                         /* Datagrams to a slot that no process has. */
    struct list waiting;                         /* Links that queue pairs may be parked on. */
    uint64_t numbers[LIVE_NUMBERS_MAX / 64 + 1]; /* Bits: those that links have (nic_path.peer). */
    struct live_listener listener;
    struct live_owner owner;
    struct rdma_cm *cm; /* What programs connect with (world/manager.h). */
    struct services services;
    struct presence *presence; /* NULL: of no process's end is heard. */
    struct live_cm_listener cm_listener;
    struct list cm_parked, cm_lookups; /* live_cm_route.c: requests, and whom they are for. */
    uint32_t cm_parked_count;
    struct instant cm_due; /* When live_cm_on_time is wanted. */
    uint32_t cm_psn;       /* The PSN of the next management datagram. */
    uint16_t lid;          /* 0: not yet claimed. */
    bool cm_explained;     /* The program was told why it reaches nobody. */
    uint16_t cm_ports;     /* Source ports of connections: the next one; 0: none was given yet. */
    bool shm_explained;    /* The program was told that shared memory does not lead to its peer. */
    bool crowd_explained;  /* Or that a peer's queue of callers was full. */
    bool udp_explained;    /* The program was told why no UDP leads to its peer. */
    pid_t other_layout;    /* The latest process that it was told has other rings than ours, ... */
    pid_t other_version;   /* ... and that cannot be asked for its ports. */
    struct instant others_due; /* When to look again for processes that have other rings. */

    struct lock lock;
    pthread_t thread;
    bool started;
    bool inherited; /* By a child of fork: live_forked. */
    atomic_bool stopping;
    int poll_fd;                  /* epoll: everything the thread sleeps on. */
    int wake_fd;                  /* eventfd: ends the thread's sleep. */
    int stat_fd;                  /* Listening socket of `nonic stat`; -1: none. */
    bool udp_watched;             /* The UDP sockets are among what the thread sleeps on. */
    bool asleep;                  /* Peers were told to ring the doorbell. */
    bool parked;                  /* Queue pairs may be waiting for room on their link. */
    _Atomic uint64_t rounds;      /* Rounds of programs, ever: do they go on? */
    struct instant sleeps_until;  /* The thread's; 0 ns: it does not sleep for long. */
    struct instant now;           /* When the clock was last read. */
    struct udp_counters udp_seen; /* The port's counts that the NIC's already include. */
    uint32_t fetched_bytes;       /* In the round of sending under way. */
    uint32_t placed_records;      /* In the round of receiving under way. */
    struct habit habit;
};

/* live_transmit.c: everything ready leaves, as far as links have room. Returns how many packets
 * did. */
uint32_t live_transmit(struct live *live);

/* A management datagram to the peer's QP 1. */
void live_transmit_mad(struct live *live, const struct nic_path *path,
                       const uint8_t mad[CM_MAD_BYTES]);

/* live_packet.c: is there room for a packet; a packet, which is not done
 * directly (false: its payload is not there); one as bytes, from the BTH to an ICRC for
 * identification 0; all of a departure as such bytes (0: its payload is not there); what was
 * transmitted leaves. */
MUST_USE bool live_has_room(struct live *live, struct link *link);
MUST_USE bool live_transmit_packet(struct live *live, struct link *link,
                                   const struct nic_departure *departure);
void live_transmit_raw(struct live *live, struct link *link, struct inet_variant variant,
                       const uint8_t *bytes, uint32_t count);
MUST_USE uint32_t live_serialize(const struct link *link, const struct nic_departure *departure,
                                 uint8_t *bytes);
void live_flush_ports(struct live *live);
/* The addresses and ports of what leaves by that link: each way over UDP has its own. */
MUST_USE struct inet_flow live_flow_of(const struct link *link, const struct nic_path *path);
/* Pads and ICRC behind `count` bytes from the BTH on. Returns how many there are then. */
MUST_USE uint32_t live_seal(const struct link *link, const struct nic_path *path, uint8_t *bytes,
                            size_t count, size_t pad_bytes);

/* live_blocks.c: memory for the blocks of a queue pair that has none. False: there is none. */
bool live_give_blocks(struct live *live, struct qp *qp);

/* live_faults.c: like the two of the same name, on the bad network. */
MUST_USE bool live_transmit_with_faults(struct live *live, struct link *link,
                                        const struct nic_departure *departure);
void live_transmit_raw_with_faults(struct live *live, struct link *link,
                                   struct inet_variant variant, uint8_t *bytes, uint32_t count);
/* Held packets whose time has come, and what was transmitted before, leave. Returns how many of the
 * former. */
uint32_t live_flush_with_faults(struct live *live);
/* The process ends: those whose time has not come are waited for, or leave early. */
void live_drain_held(struct live *live);

/* live_receive.c: up to `quantum` packets of each peer come in. Returns how many did, but for
 * placed records: those are no reason to stay awake. */
uint32_t live_receive(struct live *live, uint32_t quantum, bool look_at_udp);
/* `fd` is among what processes that share an address look after. False: it is not. */
bool live_receive_shared(struct live *live, int fd);
/* What the UDP port dropped or handed on, among the NIC's counters. */
void live_count_port(struct live *live);
/* One packet. */
void live_arrival(struct live *live, const struct nic_frame *frame);
/* live_multicast.c: one for a group; the way to a group. */
void live_group_arrival(struct live *live, const struct nic_frame *frame);
MUST_USE enum status live_resolve_group(struct live *live, struct nic_path *path);

/* live_direct.c: what was withdrawn is settled, or some milliseconds are over. */
void live_settle_locked(struct live *live);

/* The verdict where no link leads to the peer, for the errno of the last try: a shortage that may
 * pass, or that the peer is out of reach. */
static inline enum status live_unreachable(int reason)
{
    return shortage_is(reason) ? STATUS_FULL : STATUS_INVALID;
}

/* live_paths.c: the way to QP 1 of a process, for one management datagram that is sent at once:
 * answers go to whoever asks, so nothing is kept, and the link is not held. STATUS_INVALID: no port
 * reaches it. */
MUST_USE enum status live_resolve_management(struct live *live, struct nic_path *path,
                                             uint32_t slot);
/* Is the peer one that none of the wires we may use ever leads to? Then the user is told why. */
MUST_USE bool live_is_out_of_reach(struct live *live, const struct gid *peer, uint32_t slot);
/* The link to the process that has the queue pair. */
struct link *live_fan_link(struct live *live, struct link *fan, uint32_t destination_qpn);

/* The way to all processes that share one peer address. It holds the links of its ways. */
struct live_fan {
    struct link link;
    struct live_way {
        struct link *link;      /* NULL: not looked for yet. */
        struct instant look_at; /* If it may be better found. */
    } ways[SHARE_SLOTS];
};

/* live_links.c: there are no links yet; the last ones that are no port's go. */
void live_begin_links(struct live *live);
void live_forget_links(struct live *live);
/* The fan to the path's destination, held; NULL: no memory. */
struct link *live_hold_fan(struct live *live, const struct nic_path *path);
/* One holder less. The link stays until links are swept, which live_release does as
 * well; never while a packet is on its way from an engine to a port. */
void live_let_go(struct live *live, struct link *link);
void live_sweep_links(struct live *live);
/* A number for a link that blocks may go over; 0: all are taken. */
uint32_t live_free_number(const struct live *live);
void live_take_number(struct live *live, struct link *link, uint32_t number);

/* live_explain.c: what stands in the way to a peer is said, once. True: it is known why no ring
 * leads there. */
bool live_explain_no_ring(struct live *live, const struct gid *peer, uint32_t slot,
                          bool of_other_user);
/* With --wire shm: that no connection leaves from this address, which is not the first. */
void live_explain_source(struct live *live, const struct gid *source);
/* Its queue of callers is full, and stays so. */
void live_explain_crowded(struct live *live, const struct gid *peer);
/* With --wire shm: that there are processes on this machine whose rings are of another layout. The
 * side that fails first may be theirs, and an old build does not say why. */
void live_explain_other_layouts(struct live *live);
/* A process answered a question for a port, and we cannot read its answer. */
void live_explain_other_version(struct live *live);
/* That there is none at all, or none between addresses of different versions of IP. */
void live_explain_no_udp(struct live *live, const struct gid *source,
                         const struct gid *destination);

/* live_stopped.c: a queue pair connects by that link over UDP. A peer on this machine is known by
 * its socket from now on. */
void live_meet_peer(struct live *live, struct link *link);
/* Transport timers that are due. */
void live_check_retries(struct live *live);

/* live_wake.c: when the thread has something to do, if nothing comes; it is woken. */
struct instant live_deadline(const struct live *live);
void live_wake(struct live *live);
/* live_progress.c */
void *live_thread(void *argument);
/* What is ready leaves, counters and capture are written. Not locked. */
void live_finish(struct live *live);
/* The thread sleeps, but a timer has been started that runs out before it wakes, or requests are
 * left that nobody else sends: of UC and UD no acknowledgement comes to wake it. */
void live_wake_for_work(struct live *live);
/* live_cm.c: a packet for QP 1; the services' descriptor is readable; time has passed. */
MUST_USE bool live_cm_open(struct live *live, uint64_t seed);
void live_cm_close(struct live *live);
void live_cm_arrival(struct live *live, const struct nic_frame *frame, const struct nic_move *move);
void live_cm_serve(struct live *live);
/* live_cm_gone.c: before a request goes to a process, and when one has come. From then on its end
 * is heard of. */
void live_cm_meet_server(struct live *live, const struct cm_letter *letter, uint32_t slot);
void live_cm_meet_requester(struct live *live, const struct live_mad *mad);
void live_cm_look_for_gone(struct live *live);
MUST_USE bool live_cm_watch(struct live *live);
/* All that processes sent which have ended is taken in: they are gone. */
void live_cm_on_gone(struct live *live);
void live_cm_hear_of_gone(struct live *live);
/* The process ends: answers that a peer may not have got leave once more. */
void live_cm_say_again(struct live *live);
void live_cm_on_time(struct live *live);
/* A request that came in is ours to judge. */
void live_cm_judge(struct live *live, const struct live_mad *mad);

/* live_cm_route.c: of a message that came to an address that is shared, whether another process may
 * be meant, who is being looked for. */
MUST_USE bool live_cm_route(struct live *live, const struct live_mad *mad);
/* The answer to a question of ours about the owner of a service. False: it is no such question. */
MUST_USE bool live_cm_routed(struct live *live, const void *context, bool found,
                             const struct service_owner *owner);
void live_cm_forget_routes(struct live *live);

/* live_port.c: the addresses are known, all of them there. The thread begins, from whose sleep on
 * they are watched, and (_serve, locked) something is told of them. */
void live_port_begin(struct live *live);
MUST_USE bool live_port_watch(struct live *live);
void live_port_unwatch(struct live *live);
void live_port_serve(struct live *live);
void live_port_on_time(struct live *live);

/* live_stat.c: answers `nonic stat`. */
void live_serve_stat(struct live *live);
void live_print_stats(const struct live *live);

#endif
