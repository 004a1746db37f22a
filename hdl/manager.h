/* SPDX-License-Identifier: BSD-2-Clause
 *
 * manager - answers the InfiniBand connection manager of peers for a design that has none.
 *
 * Purpose    A program of librdmacm connects to an address and a port. The manager is QP 1 of that
 *            address: it agrees, and gives the peer's half of the connection to the design.
 * Inputs     Datagrams to QP 1, whose ICRC is right, and whose other bytes may be anything; the
 *            time.
 * Outputs    Datagrams to send, with the ICRC for identification 0; the design's hdl_pair.
 * Ownership  The caller's memory, which must not move.
 * Time       The peers': a clock of the world, not of the design.
 * Limits     One connection at a time. A second one is refused for want of resources. The design
 *            does not ask for connections itself.
 * Source     IBTA Vol. 1, 12.9 (transport/ibta/cm.h), annex A11 (service IDs of ports), 9.2, 9.3.3.
 */
#ifndef HDL_MANAGER_H
#define HDL_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "hdl/pair.h"
#include "transport/ibta/cm.h"
#include "wire/inet.h"
#include "wire/roce.h"

#define MANAGER_CONNECTIONS 8 /* One that is there, others that are being refused or ended. */

struct manager {
    struct cm cm;
    struct cm_connection connections[MANAGER_CONNECTIONS];
    bool taken[MANAGER_CONNECTIONS];
    struct cm_connection *current; /* NULL: none. */
    struct hdl_pair *pair;         /* local.ip is the address that peers know. */
    uint64_t service_id;
    uint32_t psn;     /* The next one of QP 1. */
    uint64_t no_mad;  /* Datagrams to QP 1 that are no UD SEND with its Q_Key and a MAD. */
    uint64_t refused; /* Requests. */
    uint8_t packet[ROCE_BTH_BYTES + ROCE_DETH_BYTES + CM_MAD_BYTES + ROCE_ICRC_BYTES];
};

/* Listens at a port of RDMA's TCP port space. */
void manager_init(struct manager *manager, struct hdl_pair *pair, uint16_t port, uint64_t seed);

/* Is it a packet for QP 1? */
bool manager_is_for(const struct inet_datagram *datagram);
void manager_come(struct manager *manager, const struct inet_datagram *datagram,
                  struct instant now);
void manager_pass_time(struct manager *manager, struct instant now);
/* Tells the peer, if there is one, that the connection ends. */
void manager_end(struct manager *manager, struct instant now);

/* The next datagram to send, whose bytes are there until the next call. False: there is none. */
MUST_USE bool manager_next(struct manager *manager, struct inet_datagram *datagram);

#endif
