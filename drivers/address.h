/* SPDX-License-Identifier: BSD-2-Clause
 *
 * address - the addresses of a live NIC, each with a UDP socket bound to port 4791. All nonic
 * programs of a user share an address that the user names.
 *
 * Purpose    Turns the words of a user (none, or interfaces and addresses) into GIDs.
 * Inputs     address_find; address_find_without_udp where somebody else has the UDP port.
 * Outputs    An address_set; a reason in words when there is none.
 * Ownership  The set owns its sockets until address_release; zeroed memory is an empty set.
 * Limits     ADDRESS_MAX addresses, of at most ADDRESS_WORDS_MAX interfaces or addresses named.
 * Source     RoCEv2: GIDs are IP addresses, IPv4 in the mapped form (IBTA A17.4.1.1).
 */
#ifndef DRIVERS_ADDRESS_H
#define DRIVERS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "drivers/share.h"
#include "nic/types.h"

#define ADDRESS_MAX       16
#define ADDRESS_WORDS_MAX 4 /* HELLO tells a peer the path's own GID and 3 others. */

struct address {
    struct gid gid;
    uint32_t interface_index;
    uint32_t interface_bytes; /* The interface's MTU. */
    uint8_t word;             /* The index of the user's word that it comes from. */
    bool loopback;            /* Its interface is the loopback interface. */
    int fd;                   /* A datagram socket bound to this address and port 4791; -1: none. */
    struct share *share;      /* The processes that share it; NULL: the address is ours alone. */
    int claim; /* Without a datagram socket: the listener whose name makes the address ours; -1:
                  none. */
};

struct address_set {
    struct address entries[ADDRESS_MAX];
    uint32_t count;
    uint32_t words;    /* Words that the user named, separated by commas; 1 if there were none. */
    enum path_mtu mtu; /* The largest MTU that fits all interfaces. */
    bool shared;       /* Other processes of our user share all entries, or none. */
    uint32_t slot;     /* Our number among those processes. */
    char text[256];    /* For people: "127.84.3.9 (loopback, this process alone)". */
};

/* `device` NULL: a loopback address that no other process has. Otherwise words separated by commas,
 * each the name of an interface, all of whose addresses are taken (a link-local one if there is no
 * other), or one address of this machine (a link-local one as "fe80::1%eth0"). The first GID is the
 * first word's. */
MUST_USE bool address_find(struct address_set *set, const char *device, char *error,
                           size_t error_bytes);
/* A loopback address without UDP, for a process that needs shared memory alone. */
MUST_USE bool address_find_without_udp(struct address_set *set, char *error, size_t error_bytes);
void address_release(struct address_set *set);
/* Like address_release, where the sockets are closed already. */
void address_forget(struct address_set *set);

/* The MTU of the interface that has this address; 0: no interface of this machine has it, or the
 * MTU cannot be read. */
uint32_t address_interface_bytes(const uint8_t ip[16]);

/* The largest RoCE path MTU whose packets fit an interface MTU of `bytes`; false if none does. */
bool address_path_mtu(uint32_t bytes, enum path_mtu *mtu);

#endif
