/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_account - what a NIC has to do, as text for a program that judges whether another one hangs.
 *
 * Threads    The lock is held.
 */
#ifndef DRIVERS_LIVE_ACCOUNT_H
#define DRIVERS_LIVE_ACCOUNT_H

#include <stddef.h>

struct live;

/* For `nonic stat --hang`: a line "program NAME=VALUE...", and "qp NAME=VALUE..." for each queue
 * pair, as far as `bytes` go. Addresses are IPv6's, or mapped. Returns the length. */
size_t live_account_facts(const struct live *live, char *text, size_t bytes);

#endif
