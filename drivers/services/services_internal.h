/* SPDX-License-Identifier: BSD-2-Clause
 *
 * services_internal - the parts that the files of services share: claims, and questions about them.
 *
 * A port has a door for each version of IP: the abstract socket that any claim of the port has to
 * hold. The kernel gives a name to one socket only, so the user that binds the door first has the
 * port. A claim of any address answers at the door itself. A claim of one address binds a second
 * name, and holds the door together with all such claims of its user: a process that holds it gives
 * it to the next one.
 */
#ifndef DRIVERS_SERVICES_INTERNAL_H
#define DRIVERS_SERVICES_INTERNAL_H

#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "drivers/services/services.h"

/* Numbers that name the meaning and the layout of an answer: "nonicpos" and "nonicdoo". A change of
 * the layout changes the last three letters: a message that begins with "nonic" and goes on
 * otherwise is the answer of another version. */
#define SERVICES_MAGIC_OWNER UINT64_C(0x6e6f6e6963706f73) /* This process serves the port. */
/* There is no claim of any address. For a process of its user, the door comes along. */
#define SERVICES_MAGIC_DOOR UINT64_C(0x6e6f6e6963646f6f)

#define SERVICES_MAGIC_FAMILY UINT64_C(0x6e6f6e6963)
#define SERVICES_KIND_BITS    24

struct services_answer {
    uint64_t magic;
    struct gid gid;
    int32_t slot;
    uint32_t reserved;
};

enum scope {
    SCOPE_ADDRESS,
    SCOPE_ANY_IPV4,
    SCOPE_ANY_IPV6,
};

struct service_name {
    struct sockaddr_un address;
    socklen_t bytes;
};

struct service {
    struct list node;
    struct services *services;
    /* Any IPv6 address usually stands for any IPv4 address, too: two doors. -1: none. */
    int doors[2];
    struct service_name names[2]; /* The names of the doors. */
    int own;                      /* The name of one address; -1: a claim of any. */
    bool any;
    bool offered; /* A process that asks finds us. */
};

/* The door for addresses of the version of `address`. */
enum scope services_door(const uint8_t address[16]);
struct service_name services_name(enum scope scope, uint16_t port_space, const uint8_t address[16],
                                  uint16_t port);

/* Connects without waiting; `user`, who may be USER_UNKNOWN, has the name. -1 with errno: nobody,
 * or the kernel could not tell who just now. */
MUST_USE int services_dial(const struct service_name *name, uid_t *user);

/* From now on `fd` ends a wait for services->fd as well; `what` names it. */
MUST_USE bool services_watch(struct services *services, int fd, void *what);
/* Closes *descriptor, which may be -1. `ours`: the socket ends with that, even if a child of fork
 * has a copy of the descriptor. */
void services_let_go(const struct services *services, int *descriptor, bool ours);

/* All services of this process, by `node`: one of each NIC. The NICs have locks of their own, so
 * services_lock is held by a thread that changes the list or a NIC's claims, or looks at those of
 * another NIC. */
extern struct list services_opened;
extern pthread_mutex_t services_lock;

#endif
