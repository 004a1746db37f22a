/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_server - lets `nonic stat` read a running program's counters.
 *
 * A process listens on the abstract socket "nonic-stat/PID" (SOCK_SEQPACKET): the name vanishes
 * with the process. A client of the same user, or root, connects and is sent lines of text: first
 * "device TEXT", then "NAME VALUE" for each counter, the first of which is the version of this
 * protocol, then the connection is closed.
 */
#ifndef DRIVERS_STAT_SERVER_H
#define DRIVERS_STAT_SERVER_H

#include <stdint.h>

#define STAT_SOCKET_PREFIX "nonic-stat/"
/* Grows with every change that an older `nonic stat` would misread. New counters are none. Builds
 * that did not say their version spoke version 1, too. */
#define STAT_VERSION_NAME "stat_version"
#define STAT_VERSION      1

struct stat_line {
    const char *name;
    uint64_t value;
};

/* A non-blocking listening descriptor of this process; -1 if there is none to be had. */
int stat_server_open(void);

/* Whoever waits on `fd` and may know the counters, to be answered; -1: nobody. Never blocks. */
int stat_server_accept(int fd);
/* Says all of it to `client`, and closes that. */
void stat_server_answer(int client, const char *device, const struct stat_line *lines,
                        uint32_t count);

#endif
