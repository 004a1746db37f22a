/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_ah - numbers of address handles (ahn), as an EFA device has them: one for each GID that there
 * are handles to.
 *
 * Purpose    Programs tell senders by such a number (slid of a completion) instead of by a GID.
 * Inputs     GIDs of address handles that are made and destroyed, and of senders.
 * Outputs    Numbers below EFA_AH_NONE.
 * Threads    Any.
 * Limits     65,535 GIDs at a time.
 */
#ifndef VERBS_EFA_AH_H
#define VERBS_EFA_AH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "nic/types.h"

/* The number that stands for none. */
#define EFA_AH_NONE 0xffffu

/* An address handle to that GID is made, and has the number of all of them. False: all numbers are
 * in use, or there is no memory. */
MUST_USE bool efa_ah_hold(const struct gid *gid, uint16_t *number);
/* One of those that hold the number goes. */
void efa_ah_let_go(uint16_t number);
/* EFA_AH_NONE: there is no address handle to that GID. */
uint16_t efa_ah_number(const struct gid *gid);
/* In a child of fork: the threads that were in here do not exist. */
void efa_ah_in_child(void);

#endif
