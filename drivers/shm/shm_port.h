/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_port - packets between two processes of one machine and user, through shared memory.
 *
 * Purpose    The same packets as on a wire, without a system call: a ring per direction and peer.
 * Inputs     shm_link_transmit, shm_port_flush; shm_port_serve when its fd says so.
 * Outputs    Records, by shm_port_next; a doorbell for consumers that sleep.
 * Ownership  Rings are memfds passed over abstract sockets: nothing has a name that could stay
 *            behind. A caller that asks for a link holds it (link_table.h). The rings of a peer go
 *            with it.
 * Units      Bytes, packets.
 * Limits     SHM_SLOTS packets and SHM_DATA_BYTES of payload per ring, a little of both for raw
 *            packets alone.
 * Source     docs/decisions/0004.
 */
#ifndef DRIVERS_SHM_PORT_H
#define DRIVERS_SHM_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"
#include "drivers/link_table.h"
#include "nic/nic.h"

struct shm_port;

/* One packet as it came out of a ring. Headers are a copy, judged by nobody yet; the payload is
 * still in the ring, where its sender may change it at any time. */
struct shm_record {
    struct nic_frame frame; /* The payload has its pad, and the ICRC if `checked`. */
    bool checked;           /* Ends with an ICRC (ports 4791, identification 0) to be verified. */
};

/* `slot`: which of the processes that share the address we are; LOCAL_NO_SLOT: it is ours alone.
 * NULL with a reason in `error`; errno is EPERM if our user cannot be told from others. */
struct shm_port *shm_port_open(const struct gid *self, int slot, char *error, size_t error_bytes);
void shm_port_close(struct shm_port *port);

/* In a child of fork, where the port's memory is not mapped, and its descriptors are closed:
 * packets that are sent over its links vanish. The port itself is not to be used any more. */
void shm_port_forget(struct shm_port *port);

/* Readable when a peer connects, rings the doorbell or hangs up: then call shm_port_serve. It
 * returns whether there was anything to serve; the second call lets in a peer that connects. */
int shm_port_fd(const struct shm_port *port);
bool shm_port_serve(struct shm_port *port);
/* Serves callers, and those that are let in. Has a peer's ring come? */
bool shm_port_greet(struct shm_port *port);

/* Lets in callers of our user, and sends callers of other users away, a limited number of each in
 * one call. A part of shm_port_serve. */
void shm_port_accept(struct shm_port *port);

/* The link to the process with that GID and slot (or to ourselves), LOCAL_NO_SLOT if it has the GID
 * alone, held once more; NULL if no nonic process of our user is there, or, with EAGAIN, its queue
 * of callers is full, and may have a place soon. */
struct link *shm_port_link(struct shm_port *port, const struct gid *peer, int slot);
struct link_table *shm_port_links(struct shm_port *port);
/* Does a link lead to that process, or does it send to us by a ring? */
bool shm_port_knows(const struct shm_port *port, const struct gid *peer, int slot);
/* Removes an idle link. The peer still reads the packets that were sent by it. */
void shm_port_drop(struct shm_port *port, struct link *link);

/* Looks for the peer of a link that was lost: its process may be there, and have had no memory, or
 * no descriptor, for our ring when it was greeted. The packets in that ring are lost. False: nobody
 * is there. */
MUST_USE bool shm_link_revive(struct shm_port *port, struct link *link);

/* Is the peer's process there, running or stopped? A child that it forked may keep its sockets open
 * after its end. */
bool shm_link_is_alive(const struct link *link);

/* shm_link_mark: how far we have written into the peer's ring, in packets. shm_link_has_read: has
 * the peer taken out all packets before such a mark? shm_link_nudge wakes the peer if it sleeps. A
 * lost link has no mark to reach. */
uint32_t shm_link_mark(const struct link *link);
bool shm_link_has_read(const struct link *link, uint32_t mark);
void shm_link_nudge(struct link *link);
/* The process number of a nonic process of our user there whose rings have another layout, that is,
 * of another version of nonic; 0: none. */
pid_t shm_find_other_layout(const struct gid *gid, int slot);
/* The same, at any address of this machine. Looks through the names of all its sockets. */
pid_t shm_find_any_other_layout(void);

/* The peer is told that queue pairs of ours reach it over UDP as well. */
void shm_link_tell_of_udp(struct link *link);

/* Do we send to anybody through a ring? */
bool shm_port_has_links(const struct shm_port *port);

/* Does the peer that the link leads to send to us through a ring, and by no other way? If it has
 * called to set up its ring, and waits to be served, it is served now. */
bool shm_link_is_answered_by_ring(struct shm_port *port, const struct link *link);

/* Room for one packet of any size, beside what is reserved for management. A lost link always has
 * room: packets that are sent there vanish. */
bool shm_link_has_room(struct link *link);

/* The number of packets that the peer has read from the ring, modulo 2^32. */
uint32_t shm_link_read(const struct link *link);

/* Copies a packet into the ring. False: its payload is not there (an on-demand region). In a child
 * of fork, where all links are lost, `port` is NULL, here and below. */
MUST_USE bool shm_link_transmit(struct shm_port *port, struct link *link,
                                const struct nic_departure *departure);

/* Transmits a ready packet, BTH to ICRC, which may take the room that is reserved for management.
 * False: no room. */
MUST_USE bool shm_link_transmit_raw(struct shm_port *port, struct link *link,
                                    struct inet_variant variant, const uint8_t *bytes,
                                    uint32_t count);

/* Is memory of the peer mapped here? */
bool shm_link_maps(const struct link *link);

/* Writes the payload of an RDMA WRITE packet into the peer's memory from here, and leaves a record
 * that says so. `mapped`: only if that memory is mapped here, so that it takes no system call; if
 * it is not, it may be soon. False: not possible, or not allowed; nothing happened. The caller
 * makes sure that everything this queue pair sent before has been executed (departure->alone). */
MUST_USE bool shm_link_place(struct shm_port *port, struct link *link,
                             const struct nic_departure *departure, bool mapped);

/* Reads the bytes that an RDMA READ request asks for from the peer's memory into `segments`, and
 * leaves a record that says so. Otherwise like shm_link_place. */
MUST_USE bool shm_link_fetch(struct shm_port *port, struct link *link,
                             const struct nic_departure *departure, const struct segment *segments,
                             uint32_t segment_count, bool mapped);

/* Accesses that were done directly, and the reasons why packets went instead. */
struct shm_direct_counters {
    uint64_t done;
    uint64_t no_owner; /* The peer's process has ended, or not begun. */
    uint64_t failed;   /* The kernel did not copy, or the peer ended meanwhile. */
    uint64_t refused[REACH_VERDICT_COUNT]; /* By nic/reach.h, applied to the peer's board. */
};
const struct shm_direct_counters *shm_port_direct(const struct shm_port *port);

struct shm_counters {
    uint64_t packets_lost;    /* Sent to a process that went, or refused our ring, unread. */
    uint64_t callers_refused; /* Their hello or ring made no sense, or there was no memory. */
    uint64_t callers_dropped; /* They said no hello while many others called. */
    uint64_t rings_broken;    /* Given up because their contents made no sense. */
};
const struct shm_counters *shm_port_counters(const struct shm_port *port);

/* Rings the doorbells of sleeping consumers to which packets were sent. False: the kernel refused
 * one, which the next flush rings; until then shm_port_has_waiting. */
bool shm_port_flush(struct shm_port *port);

/* The next packet, of up to `quantum` from each ring; it is valid until the next call. NULL: there
 * is no more. The caller asks until then: the peer gets a ring's room back when the next ring has
 * its turn. The memory of `nic` for packets that wait behind is prefetched; NULL: it is not. */
const struct shm_record *shm_port_next(struct shm_port *port, uint32_t quantum,
                                       const struct nic *nic);

/* Tells peers to ring the doorbell; false if a packet came meanwhile. shm_port_wake takes it
 * back. */
MUST_USE bool shm_port_sleep(struct shm_port *port);
void shm_port_wake(struct shm_port *port);

/* Does the peer look at its rings by itself right now? */
bool shm_link_peer_awake(const struct link *link);

/* Is a doorbell still to be rung? */
bool shm_port_has_waiting(const struct shm_port *port);

/* -- Memory that peers may reach by themselves --------------------------------------------------*/

void shm_port_set_direct(struct shm_port *port, bool welcome);
void shm_port_publish_region(struct shm_port *port, const struct region *region);
void shm_port_publish_qp(struct shm_port *port, const struct qp *qp);

/* Peers that look at the board from now on do not find the entry any more. Those that looked before
 * may still be reaching through it, until the withdrawal is settled. */
void shm_port_withdraw_region(struct shm_port *port, const struct region *region);
void shm_port_withdraw_qp(struct shm_port *port, const struct qp *qp);

/* The number of the latest withdrawal. */
uint64_t shm_port_withdrawals(const struct shm_port *port);

/* True: no peer reaches memory through an entry that was withdrawn up to that number, nor ever
 * will. Looks for some microseconds at most. */
MUST_USE bool shm_port_settled(struct shm_port *port, uint64_t withdrawal);

/* The same question about peers that take long, whose state the kernel is asked for. */
enum shm_wait {
    SHM_WAIT_OVER,    /* It is settled. */
    SHM_WAIT_ON,      /* Some peer is still inside. */
    SHM_WAIT_IN_VAIN, /* Only peers are inside that were given up before. */
};
MUST_USE enum shm_wait shm_port_look_closely(struct shm_port *port, uint64_t withdrawal);

/* A peer that is in the way of that withdrawal is not waited for again until it goes on. Returns
 * the process number of one such peer that was not given up before, or 0. */
pid_t shm_port_give_up(struct shm_port *port, uint64_t withdrawal);

/* -- Memory that peers map (shm_extent.c) -------------------------------------------------------*/

/* Reasons why a region's memory is not for peers to map: they reach it through the kernel. */
enum shm_refusal {
    SHM_REFUSED_NOT,
    SHM_REFUSED_KIND,    /* Neither shared by a file that can be had, nor ordinary memory. */
    SHM_REFUSED_THREADS, /* Private memory, into which other threads, or the kernel, may write. */
    SHM_REFUSED_PEER,    /* The kernel would not let every process of our user reach it. */
    SHM_REFUSED_BUSY,    /* A peer did not come out of it. */
    SHM_REFUSED_LIMIT,   /* No memory, or too much of it. */
    SHM_REFUSALS,
};

struct shm_extent_counters {
    uint64_t shared;    /* Extents of memory that was shared already, */
    uint64_t exchanged; /* ... of private memory, whose pages were exchanged, */
    uint64_t returned;  /* ... and exchanged back. */
    uint64_t offered;   /* Descriptors that were sent to peers. */
    uint64_t refused[SHM_REFUSALS];
};
const struct shm_extent_counters *shm_port_extents(const struct shm_port *port);

/* False, as at first: peers map nothing. */
void shm_port_set_lending(struct shm_port *port, bool lends);

/* The key of a region whose private memory a peer would map; 0: none. */
uint32_t shm_port_wanted(const struct shm_port *port);

/* Makes the memory of the region for peers to map. `alone`: the caller is the only thread that can
 * write into private memory (backing.h). A refusal is counted. */
void shm_port_lend(struct shm_port *port, uint32_t key, bool alone);

/* Is private memory exchanged? */
bool shm_port_has_lent(const struct shm_port *port);

/* Gives private memory back its own pages, if it was exchanged and overlaps [start, start + bytes).
 * `idle`: only if no region uses it any more. The caller is the only thread that can write there.
 * Without memory for that it stays as it is. False: a peer is in there. */
MUST_USE bool shm_port_take_back(struct shm_port *port, uint64_t start, uint64_t bytes, bool idle);

/* The calling thread, which lives as long as the process, stands for it: before that, and after
 * shm_port_disown (by the same thread) or its end, peers do not reach into memory. */
void shm_port_own(struct shm_port *port);
void shm_port_disown(struct shm_port *port);

#endif
