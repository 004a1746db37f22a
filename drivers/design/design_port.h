/* SPDX-License-Identifier: BSD-2-Clause
 *
 * design_port - the sockets of a hardware design that stands in an ordinary process, or its TAP
 *               device.
 *
 * Purpose    Sends and receives the datagrams of one IPv4 address, from and to any port of it; or,
 *            by a TAP device, whole frames.
 * Inputs     Datagrams of the design; datagrams of the network. A whole frame is the payload of one
 *            that has no ports, addresses and variant.
 * Outputs    Datagrams that leave, and those that came.
 * Ownership  design_port_open allocates, design_port_close frees (NULL: nothing).
 * Time       The design's own, simulated time: a fault that delays a packet for 50 us does so by
 *            the clock that the design sees.
 * Limits     Faults do not hold packets of more than about 4 KB; those pass.
 */
#ifndef DRIVERS_DESIGN_PORT_H
#define DRIVERS_DESIGN_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "wire/inet.h"

struct design_port_config {
    const char *tap;       /* The name of a TAP device (design_tap_is_name); NULL: sockets, */
    uint32_t ip;           /* which have this address. */
    const uint16_t *ports; /* That receive from the beginning; others when they have sent. */
    uint32_t port_count;
    const char *fault; /* As `nonic run --fault` says it, or NULL. */
};

struct design_port_counters {
    uint64_t sent, received;
    uint64_t refused;      /* Datagrams of the design that the system did not take, the last one */
    int refused_why;       /* with this errno */
    uint16_t refused_port; /* from this port. */
    uint64_t lost;         /* To the design: there was no room in the socket or the device. */
    bool gone;             /* Somebody has deleted the TAP device. */
    uint64_t dropped_out, dropped_in; /* By faults. */
    uint64_t held_out, held_in;
};

struct design_arrival {
    struct inet_datagram datagram; /* Its payload is there until the next call. */
    bool corrupt;                  /* A fault flips this bit of it behind all checks of ours. */
    uint32_t corrupt_bit;
};

struct design_port;

/* NULL, with a reason in `error`. */
struct design_port *design_port_open(const struct design_port_config *config, char *error,
                                     size_t error_bytes);
void design_port_close(struct design_port *port);

void design_port_send(struct design_port *port, const struct inet_datagram *datagram,
                      struct instant now);

/* The next datagram. False: none has come. */
MUST_USE bool design_port_receive(struct design_port *port, struct instant now,
                                  struct design_arrival *arrival);

/* Sends what faults held back until now. True: they hold something still, either way, so time has
 * to go on. */
bool design_port_release(struct design_port *port, struct instant now);

/* Sleeps until a datagram comes, a signal, or the end of `most_ms` milliseconds. */
void design_port_sleep(const struct design_port *port, uint32_t most_ms);

/* Frames that a TAP device has lost are counted now. */
const struct design_port_counters *design_port_counters(struct design_port *port);

#endif
