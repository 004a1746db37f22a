/* SPDX-License-Identifier: BSD-2-Clause
 *
 * services - the processes of this machine that serve ports of the RDMA connection manager.
 *
 * Purpose    One port space for all processes of a machine, whether each has an address of its own
 *            or shares one: a port is claimed once, by one user, and a process that connects finds
 *            the port's owner, whatever names other users bind.
 * Inputs     services_claim, services_find; services_serve when its descriptor is readable.
 * Outputs    The GID of a port's owner, and its slot if it shares that GID, at once or later.
 * Ownership  A claim is an abstract socket: it ends with its owner, however that ends.
 * Time       An argument of services_on_time. services_claim may wait for another process of our
 *            user that has the port at another address, at most a second.
 * Units      Ports in host byte order; addresses of 16 bytes, IPv4 mapped, all zero: any.
 * Limits     The system's descriptors: two per claim, one per question under way.
 * Source     docs/decisions/0013.
 */
#ifndef DRIVERS_SERVICES_H
#define DRIVERS_SERVICES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/instant.h"
#include "base/list.h"
#include "nic/types.h"

struct service_owner {
    struct gid gid;
    int slot; /* Its number among the processes that share the GID; LOCAL_NO_SLOT: it has the GID
                 alone. */
};

struct services {
    int fd; /* epoll: claims that are asked and questions that are answered. */
    struct list claims, questions;
    struct list node; /* In the list of all services: a child of fork closes the descriptors that it
                         inherits. */
    struct service_owner self;
    /* The latest process that answered as another version of nonic does; 0: none. */
    pid_t other_version;
};

/* A port of ours. */
struct service;

MUST_USE bool services_open(struct services *services, const struct service_owner *self);
void services_close(struct services *services);

/* Claims a port, by which nobody finds us yet. 0 or an errno: EMFILE, ENOMEM; as with Linux
 * EADDRINUSE if another has the port at the address, EADDRNOTAVAIL if it or we want any address.
 * `port` 0: any free one, written to *chosen. */
int services_claim(struct services *services, uint16_t port_space, const uint8_t address[16],
                   bool ipv6_only, uint16_t port, uint16_t *chosen, struct service **service);
/* From now on a process that asks for the port finds us. Does nothing if that is so already. 0 or
 * an errno. */
int services_offer(struct services *services, struct service *service);
void services_release(struct service *service);

enum service_answer {
    SERVICE_NOBODY,
    SERVICE_ASKED, /* The answer comes through services_serve or services_on_time. */
};
enum service_answer services_find(struct services *services, uint16_t port_space,
                                  const uint8_t address[16], uint16_t port, struct instant now,
                                  void *context);
/* The same, but SERVICE_NOBODY is believed only after a moment: a server that takes one client
 * after the other may just be making its next listener. */
enum service_answer services_await(struct services *services, uint16_t port_space,
                                   const uint8_t address[16], uint16_t port, struct instant now,
                                   void *context);
/* As services_find, but waits for the answer. Not to be called while the owner may wait for us.
 * False: there is no owner; or, with an errno that shortage_is, it could not be asked just now. */
MUST_USE bool services_ask(uint16_t port_space, uint16_t port, struct service_owner *owner);

/* The question of `context` needs no answer any more. */
void services_forget(struct services *services, const void *context);

/* The next answer that came in: false if there is none. `*found` false: nobody serves it. */
bool services_next_answer(struct services *services, void **context, bool *found,
                          struct service_owner *owner);
/* Answers processes that ask for our ports, and takes in answers. */
void services_serve(struct services *services);
void services_on_time(struct services *services, struct instant now);
struct instant services_deadline(const struct services *services);

#endif
