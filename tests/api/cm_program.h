/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_program - a program that uses the rdma_cm device without librdmacm: commands as the kernel
 * takes them, and both ends of a connection in one process. Listeners have uid 0x11, the active end
 * of a connection has 0x22, the passive one 0x33.
 */
#ifndef TESTS_API_CM_PROGRAM_H
#define TESTS_API_CM_PROGRAM_H

#include "tests/api/api.h"

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>

#include "transport/ibta/rdma_cm.h"

#define PATIENCE_MS 20000

int open_device(int flags);
bool readable(int fd);

/* Commands: 0 or the errno. */
int command(int fd, uint32_t number, const void *in, size_t in_bytes, size_t out_bytes);
int bind_id(int fd, uint32_t id, const void *address, size_t bytes);
int resolve(int fd, uint32_t id, const struct sockaddr_in *from, const struct sockaddr_in *to);
int listen_id(int fd, uint32_t id);
int route(int fd, uint32_t id);
int connect_id(int fd, uint32_t id, uint8_t private_bytes);
int accept_id(int fd, uint32_t id, uint64_t uid, bool valid);
int disconnect_id(int fd, uint32_t id);
int get_event(int fd, struct rdma_ucm_event_resp *out);

/* Those that must succeed. */
uint32_t create_id(int fd, uint16_t port_space, uint64_t uid);
/* The events that the id has reported. */
uint32_t destroy_id(int fd, uint32_t id);
/* The next event, which is announced by poll. */
struct rdma_ucm_event_resp expect(int fd, enum rdma_event_kind type);

/* 127.0.0.0 + host. */
struct sockaddr_in loopback(uint8_t host, uint16_t port);
/* A port of 127.0.0.1 that a new id listens on. */
uint16_t listen_somewhere(int fd, uint32_t *id, uint16_t port_space);
/* A new id that may connect to a port of 127.0.0.1. */
uint32_t routed(int fd, uint16_t port_space, uint16_t port);

struct ends {
    uint32_t listener, active, passive;
};
struct ends establish(int active, int passive);

#endif
