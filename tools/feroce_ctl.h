/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_ctl - one message to a FERoCE board by hand, in two parts: feroce_ctl.c makes it out of
 * the command line; feroce_ctl_exchange.c sends it and waits for the reply.
 */
#ifndef TOOLS_FEROCE_CTL_H
#define TOOLS_FEROCE_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/feroce.h"

struct ctl_wish {
    struct feroce_cm message;
    enum feroce_cm_version version;
    uint32_t remote_ip, bind_ip; /* bind_ip 0: the kernel chooses. */
    uint16_t remote_port;
    uint32_t attempts; /* 0: no reply is expected. */
    uint64_t attempt_ns;
};

/* The address from which this machine speaks to `ip`; 0 if it does not reach it. */
uint32_t ctl_address_towards(uint32_t ip);

/* Returns the exit status: 0 if the board says ACK, or was not asked anything. */
int ctl_exchange(const struct ctl_wish *wish);

#endif
