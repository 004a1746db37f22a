/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_server - lets `nonic stat` read a running program's counters.
 *
 * A process listens on the abstract socket "nonic-stat/PID" (SOCK_SEQPACKET): the name vanishes
 * with the process. A client of the same user, or root, connects and is sent lines of text: first
 * "device TEXT", then "NAME VALUE" for each counter, the first of which is the version of this
 * protocol. In further messages follow lines "connection TEXT", where TEXT is a list of NAME=VALUE,
 * one for each reliable connection but for those that there is no room for; then the socket is
 * closed.
 *
 * A client that has given its socket the name "nonic-wish/WORD/..." gets the text that the word
 * stands for instead: "hang" is live/live_account.h's, others are made and understood by kernel/
 * (kernel/nldev_objects.h). If the word stands for nothing, the client gets the usual text. So a
 * wish is there when the client is, and nobody waits for one.
 */
#ifndef DRIVERS_STAT_SERVER_H
#define DRIVERS_STAT_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/nic.h"

#define STAT_SOCKET_PREFIX "nonic-stat/"
/* Grows with each change that an older `nonic stat` would misread; a new counter is no such change.
 * Builds that did not say their version spoke version 1, too. */
#define STAT_VERSION_NAME "stat_version"
#define STAT_VERSION      1

struct stat_line {
    const char *name;
    uint64_t value;
};

/* A non-blocking listening descriptor of this process; -1 if the system gives none. */
int stat_server_open(void);

/* Accepts a client that waits on `fd` and may know the counters, to be answered; -1: there is none.
 * Never blocks. */
int stat_server_accept(int fd);
/* False: it could not be sent, and nothing may follow. */
MUST_USE bool stat_server_answer(int client, const char *device, const struct stat_line *lines,
                                 uint32_t count);
/* The facts that a client is told of a connection: its QPN, the peer's address, and so on. */
struct stat_connection {
    uint32_t qpn, peer_qpn;
    struct gid peer;
    struct qp_report report;
};
/* Several at a time. False: the client takes no more. */
#define STAT_CONNECTIONS_AT_ONCE 32
bool stat_server_connections(int client, const struct stat_connection *connections, uint32_t count);
void stat_server_close(int client);

bool stat_server_serves_root(int client);
/* The word of the client's wish; empty: the usual text. False: the wish cannot be found out just
 * now. */
#define STAT_WISH_BYTES 16
#define STAT_WISH_HANG  "hang"
MUST_USE bool stat_server_wish(int client, char wish[STAT_WISH_BYTES]);
/* Says lines, as many at a time as a message has room for. */
void stat_server_say(int client, const char *text, size_t bytes);
/* Gives a client's socket the name of a wish. False: it did not get the name. */
bool stat_server_wish_for(int client, const char *wish);

#endif
