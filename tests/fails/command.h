/* SPDX-License-Identifier: BSD-2-Clause
 *
 * command - the connection manager's device, as librdmacm writes to it.
 *
 * An event may say that something failed (judge_outcome). Then the whole is tried again with new
 * ids.
 */
#ifndef TESTS_FAILS_COMMAND_H
#define TESTS_FAILS_COMMAND_H

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include "tests/fails/program.h"

/* As rdma/rdma_cma.h has them. */
enum {
    ADDR_RESOLVED = 0,
    ROUTE_RESOLVED = 2,
    CONNECT_REQUEST = 4,
    CONNECT_RESPONSE = 5,
    ESTABLISHED = 9,
    DISCONNECTED = 10,
    MULTICAST_JOIN = 12,
};

/* An address and a port. */
union place {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

union place place_of(const union ibv_gid *gid, bool ipv4, uint16_t port);
/* At the program's own address. */
union place here(const struct program *p, uint16_t port);
uint16_t bytes_of(const union place *place);

/* Returns 0 or an errno. */
int command(int fd, uint32_t number, const void *in, size_t in_bytes, size_t out_bytes);

int open_channel(void);
uint32_t create_id(int fd, uint16_t space);
void destroy_id(int fd, uint32_t id);
/* At `place`, on any free port if it says 0; returns the port. */
uint32_t listen_at(int fd, union place place, uint16_t *port);
/* False: an event came that says that something failed. */
bool expect_event(int fd, uint32_t kind, struct rdma_ucm_event_resp *event);
/* False: likewise. */
bool find_address(int fd, uint32_t id, const union place *to);
bool find_way(int fd, uint32_t id, const union place *to);
/* Nothing is exchanged before the other side answers. */
void ask_to_connect(int fd, uint32_t id);
void disconnect(int fd, uint32_t id);

#endif
