/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_account - what a NIC has to do, as text for a person whose program hangs.
 *
 * Threads    live_account: none of the process runs meanwhile (box/), and none need hold the lock,
 *            so objects may be half changed. live_account_facts: the lock is held.
 */
#ifndef DRIVERS_LIVE_ACCOUNT_H
#define DRIVERS_LIVE_ACCOUNT_H

#include <stddef.h>

#include "base/box_page.h"

struct live;

/* `nic` is a struct live. */
box_account live_account;

/* The same for `nonic stat --hang`: a line "program NAME=VALUE...", and "qp NAME=VALUE..." for each
 * queue pair, as far as `bytes` go. Addresses are IPv6's, or mapped. Returns the length. */
size_t live_account_facts(const struct live *live, char *text, size_t bytes);

#endif
