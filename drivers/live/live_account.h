/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_account - what a NIC has to do, as text for a person whose program hangs.
 *
 * Threads    None of the process runs meanwhile (box/), and none need hold the lock: objects may be
 *            half changed.
 */
#ifndef DRIVERS_LIVE_ACCOUNT_H
#define DRIVERS_LIVE_ACCOUNT_H

#include "base/box_page.h"

/* `nic` is a struct live. */
box_account live_account;

#endif
