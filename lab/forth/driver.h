/* SPDX-License-Identifier: BSD-2-Clause
 *
 * driver - a host's driver: remote writes that wait for the NIC, cut into packets.
 *
 * Purpose    A program that writes more than a packet at a time says where from and where to. The
 *            driver gives the NIC one request after the other.
 * Inputs     forth_driver_send; forth_driver_next when the NIC could take a request.
 * Time       None: who sends says what a processor's work takes.
 * Limits     FORTH_DRIVER_WRITES that wait.
 * Source     Our choice: the document's driver only maps registers (TR376 4.1).
 */
#ifndef LAB_FORTH_DRIVER_H
#define LAB_FORTH_DRIVER_H

#include "lab/forth/node.h"

#define FORTH_DRIVER_WRITES 1024u

/* The last packet of a write asks for a notification, or for an interrupt. */
struct forth_driver_write {
    uint32_t source, destination, qwords;
    uint8_t to;
    bool notify, interrupt;
};

struct forth_driver {
    uint32_t packet_qwords; /* The largest packet. */
    struct forth_driver_write queue[FORTH_DRIVER_WRITES];
    uint32_t head, count; /* The queue is a ring. */
};

/* Packets of up to 4 KB between two nodes, of 496 bytes through the switch. */
void forth_driver_open(struct forth_driver *driver, bool switched);
void forth_driver_send(struct forth_driver *driver, struct forth_driver_write write);
/* The next request; false: nothing waits. */
bool forth_driver_next(struct forth_driver *driver, struct forth_request *request);

#endif
