/* SPDX-License-Identifier: BSD-2-Clause
 *
 * presence - news of the ends of processes of this machine that we are connected with.
 *
 * Purpose    A process that is killed cannot tell its peers that it ends, and no driver in the
 *            kernel does it instead: a process that is connected with it has to hear of its end
 *            from the system.
 * Inputs     presence_meet with each process that a request goes to or comes from; presence_serve
 *            when the descriptor is readable.
 * Outputs    presence_gone, by address and slot.
 * Ownership  A presence holds its descriptors: two for each process that was met, one for each that
 *            met us, and one for each address.
 * Time       Not used: the system tells of an end at once.
 * Limits     Processes of our user on this machine, in our network namespace. Retries find the ends
 *            of others.
 * Source     pidfd_open(2), unix(7); docs/decisions/0013.
 */
#ifndef DRIVERS_PRESENCE_H
#define DRIVERS_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "nic/types.h"

struct presence;

/* NULL with errno. Also without a name of its own at an address (`count`, `gids`) this process
 * hears of others. `slot` 0: it is alone at its addresses. */
struct presence *presence_open(const struct gid *gids, uint32_t count, uint32_t slot);
/* NULL: does nothing. */
void presence_close(struct presence *presence);
/* When it is readable, call presence_serve. */
int presence_fd(const struct presence *presence);

/* From now on we hear of the end of the process that has this address. Does nothing if it was met
 * already, if it is not a process of our user on this machine, or if there are no descriptors. */
void presence_meet(struct presence *presence, const struct gid *gid, uint32_t slot);
void presence_serve(struct presence *presence);
/* A process that was met and is gone; false: there is none. It is the same one until
 * presence_forget. */
MUST_USE bool presence_gone(const struct presence *presence, struct gid *gid, uint32_t *slot);
/* Is the process that was met by this name gone? */
MUST_USE bool presence_is_gone(const struct presence *presence, const struct gid *gid,
                               uint32_t slot);
void presence_forget(struct presence *presence, const struct gid *gid, uint32_t slot);

#endif
