/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share - one address and its UDP port 4791, shared by all nonic programs of a user.
 *
 * Purpose    Sockets that all members hold, so that no packet changes its socket when a member
 *            goes; a slot for each member, the upper 8 bits of its QPNs; packets handed on to the
 *            member they are for.
 * Inputs     share_join and share_claim_slot; share_admit and share_collect when descriptors are
 *            readable; share_hand_on.
 * Outputs    A UDP socket that brings the slot's packets, another one for packets that have no
 *            slot.
 * Ownership  share_leave closes everything. Nothing has a name that could stay behind.
 * Time       share_join waits, at most JOIN_MS.
 * Units      Bytes, packets.
 * Limits     SHARE_SLOTS processes an address; 66 descriptors an address, and a few.
 * Source     docs/decisions/0012.
 */
#ifndef DRIVERS_SHARE_H
#define DRIVERS_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/check.h"
#include "nic/types.h"

#define SHARE_SOCKETS     64  /* Slot s reads socket s modulo this; a common one follows. */
#define SHARE_SLOTS       256 /* The most processes at an address. */
#define SHARE_QPN_SPAN    (1u << 16)
#define SHARE_CONNECTIONS 4 /* Connections to other members that are kept. */
/* A handover holds the packets of one look at a socket: 64 KB, and two bytes with each packet. */
#define SHARE_HANDOVER_BYTES_MAX (80 << 10)

static inline uint32_t share_slot_of(uint32_t qpn)
{
    return qpn / SHARE_QPN_SPAN;
}

struct share {
    struct gid gid;
    uint32_t slot;
    int listener;                   /* Newcomers are admitted here, by the member that wakes up. */
    int sockets[SHARE_SOCKETS + 1]; /* In the order of binding. */
    int slot_listener;              /* Its name is the claim on the slot; connections come here. */
    int mail;                       /* epoll: slot_listener, and connections that came. */
    struct share_connection {
        int fd; /* -1: none. */
        uint32_t slot;
    } connections[SHARE_CONNECTIONS];
    uint32_t next_connection;
};

/* Joins the processes that share `address` (with its port), or makes the sockets as the first one.
 * `text` names the address for people. False with a reason in `error`. */
MUST_USE bool share_join(struct share *share, const struct sockaddr *address, socklen_t bytes,
                         const struct gid *gid, const char *text, char *error, size_t error_bytes);

/* Claims a slot that is free at all of the addresses. False: there is none. */
MUST_USE bool share_claim_slot(struct share *const *shares, uint32_t count, char *error,
                               size_t error_bytes);
void share_leave(struct share *share);
/* Like share_leave, where the descriptors are closed already. */
void share_forget(struct share *share);

/* Does the address and port have sockets that are not of the share: other programs' of our user? */
bool share_is_disturbed(const struct share *share, const struct sockaddr *address);

/* Is the address shared by programs of this machine, of whichever user? */
bool share_exists(const struct gid *gid);

/* Does a living process, stopped or not, have that slot of the address? */
bool share_has_slot(const struct gid *gid, uint32_t slot);

/* Do datagrams for the process of that slot lie unread? */
bool share_has_unread(const struct share *share, uint32_t slot);

/* A member that has a slot. */
void share_check(const struct share *share);

int share_own_socket(const struct share *share);
int share_common_socket(const struct share *share);

/* The listener is readable: gives newcomers the descriptors. */
void share_admit(const struct share *share);

#define SHARE_MAGIC_HANDOVER 0x315254454c5353u /* "SSLETR1" */

/* share_mail.c: packets that one member read and another one owns. */
struct share_handover {
    uint64_t magic;
    struct gid source;
    uint8_t hop_limit, traffic_class;
    uint8_t reserved[2];
    uint32_t flow_label;
}; /* Packets follow, BTH on, without ICRC, each behind its length in two bytes. */

enum share_fate {
    SHARE_HANDED_ON,
    SHARE_NOBODY,  /* No process has the slot. */
    SHARE_CROWDED, /* The owner is too slow, or stopped; or we lack a descriptor, or memory. */
};
enum share_fate share_hand_on(struct share *share, uint32_t slot, const void *handover,
                              size_t bytes);

/* Is it a handover, with packets whose lengths add up to `count` bytes? */
MUST_USE bool share_handover_is_whole(const uint8_t *bytes, size_t count);
/* `mail` is readable: the next handover, judged to be whole; 0: none waits. */
size_t share_collect(struct share *share, void *handover, size_t bytes_max);

#endif
