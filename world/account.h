/* SPDX-License-Identifier: BSD-2-Clause
 *
 * account - what a NIC has to do, as text for a person whose program hangs: the same in each world.
 *
 * Threads    account_of_nic: none of the process runs meanwhile (box/), and none need hold the
 *            lock, so objects may be half changed.
 */
#ifndef WORLD_ACCOUNT_H
#define WORLD_ACCOUNT_H

#include <stdbool.h>

#include "base/box_page.h"
#include "nic/queue_pair.h"

/* A text with room for `bytes`, its end included. */
struct account {
    char *into;
    uint64_t bytes, used;
};

/* Appends, as far as there is room. */
void account_say(struct account *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const char *account_state_name(enum qp_state state);
/* Its service has a peer, and it has come far enough to have one. */
bool account_is_connected(const struct qp *qp);

/* `nic` is a struct nic. */
box_account account_of_nic;

#endif
