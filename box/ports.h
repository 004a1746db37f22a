/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ports - who serves a port of the connection manager, on which node: the table that the nodes of a
 * machine keep together.
 *
 * Purpose    A node's kernel knows which of its processes listens at a port, and a peer's kernel
 *            sends its request to that node. Here each process has a NIC of its own, so a peer is
 *            told which one.
 * Ownership  The table is the caller's, zeroed at first.
 * Limits     PORTS_MAX claims at a time.
 */
#ifndef BOX_PORTS_H
#define BOX_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/box_ask.h"

enum {
    PORTS_MAX = 8192,
};

/* Where a process is. Those of one host share its ports and its loopback addresses. */
struct ports_place {
    uint32_t host;
    uint32_t node; /* Where its NIC is. */
};

struct ports_claim {
    bool taken, offered;
    uint32_t nic;
    struct ports_place at;
    struct box_port port;
};

struct ports {
    struct ports_claim claims[PORTS_MAX];
    uint16_t next; /* The next one that nobody named. */
};

/* The number of the claim, which the NIC has from now on; or an errno below 0: as with Linux
 * -EADDRINUSE if another has the port at the address, -EADDRNOTAVAIL if it or we want any. If
 * `port` names port 0, a free one is written there. */
int64_t ports_claim(struct ports *ports, uint32_t nic, const struct ports_place *at,
                    struct box_port *port);
/* Peers find it; others may claim it. False: it is no claim of this NIC. */
bool ports_offer(struct ports *ports, uint32_t nic, uint64_t claim);
bool ports_release(struct ports *ports, uint32_t nic, uint64_t claim);
/* The NIC is no more. */
void ports_forget(struct ports *ports, uint32_t nic);
/* The NIC that serves the port, for a process of this host; -ENOENT: none. A loopback address is
 * the host's own, a node's address leads to what is served there. */
int64_t ports_find(const struct ports *ports, uint32_t host, const struct box_port *port);

#endif
