/* SPDX-License-Identifier: BSD-2-Clause
 *
 * process - this process's NIC, which all that plays a kernel has in common.
 *
 * Purpose    The NIC is made when a program first asks for devices, and goes when it ends.
 * Inputs     What the environment says of it (live_config_from_environment).
 * Outputs    The NIC. Reasons why there is none, to stderr.
 * Ownership  Ours, until the process ends.
 * Threads    Any. No call is a point where a program's thread may be cancelled.
 * Limits     One NIC. A child of fork gets one of its own.
 */
#ifndef KERNEL_PROCESS_H
#define KERNEL_PROCESS_H

#include "kernel/nldev.h"
#include "world/world.h"

/* This process's NIC, claimed when first asked for; NULL with errno. */
struct live *process_live(void);
/* Likewise, with its progress thread running. */
struct live *process_live_started(void);
/* The memory there, as far as peers map it, becomes the program's alone again (live_take_back); for
 * callers that have seen live_has_lent. errno stays. */
void process_take_back(uint64_t start, uint64_t bytes);
/* Tells people why a program gets no device, which its own messages do not say. errno stays. */
void process_complain(const char *reason);

struct objects_collection; /* nldev_objects.h */

/* The library above this room, which makes objects for the program. */
struct process_library {
    /* In a child of fork: the threads that were in the library do not exist. `live` is the parent's
     * NIC as it is between two calls; NULL: fork came in the middle of one. Makes only calls that
     * are allowed between fork and exec. */
    void (*in_child)(struct live *live);
    /* (locked) Adds its objects of a kind (objects_add), but for those of the connection manager,
     * which are not its own. */
    void (*collect)(enum nldev_kind kind, struct objects_collection *collection);
};
/* Before it makes the first object; `library` stays. Again: no change. */
void process_attach(const struct process_library *library);
/* NULL: none has made anything yet. */
const struct process_library *process_attached(void);

#endif
