/* SPDX-License-Identifier: BSD-2-Clause
 *
 * manager - the connection manager's device, as librdmacm writes to it: both ends of a connection.
 *
 * An event may say that something failed. Then the whole is tried again with new ids.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fails/program.h"

#define COMMAND_BYTES 512
#define LOOPBACK      0x7f000001u

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

static int command(int fd, uint32_t number, const void *in, size_t in_bytes, size_t out_bytes)
{
    const struct rdma_ucm_cmd_hdr header = {number, (uint16_t)in_bytes, (uint16_t)out_bytes};
    uint8_t bytes[COMMAND_BYTES];
    must(sizeof(header) + in_bytes <= sizeof(bytes), "a long command", 0);
    memcpy(bytes, &header, sizeof(header));
    memcpy(bytes + sizeof(header), in, in_bytes);
    return write(fd, bytes, sizeof(header) + in_bytes) < 0 ? errno : 0;
}

static int open_channel(void)
{
    return open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
}

static uint32_t create_id(int fd, uint16_t space)
{
    struct rdma_ucm_create_id_resp out = {0};
    const struct rdma_ucm_create_id in = {
        .uid = 1, .response = (uintptr_t)&out, .ps = space, .qp_type = IBV_QPT_RC};
    ZERO(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(out)));
    return out.id;
}

static void destroy_id(int fd, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp out = {0};
    const struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&out, .id = id};
    ZERO(command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(out)));
}

static struct sockaddr_in loopback(uint32_t address, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
}

static uint32_t listen_somewhere(int fd, uint16_t *port)
{
    const uint32_t id = create_id(fd, RDMA_PS_TCP);
    struct sockaddr_in address = loopback(LOOPBACK, 0);
    struct rdma_ucm_bind bind = {.id = id, .addr_size = sizeof(address)};
    const struct rdma_ucm_listen listen = {.id = id, .backlog = 8};
    struct rdma_ucm_query_addr_resp out = {0};
    const struct rdma_ucm_query query = {
        .response = (uintptr_t)&out, .id = id, .option = RDMA_USER_CM_QUERY_ADDR};
    memcpy(&bind.addr, &address, sizeof(address));
    ZERO(command(fd, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0));
    ZERO(command(fd, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0));
    ZERO(command(fd, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(out)));
    memcpy(&address, &out.src_addr, sizeof(address));
    *port = ntohs(address.sin_port);
    return id;
}

/* False: an event came that says that something failed. */
static bool expect(int fd, uint32_t kind, struct rdma_ucm_event_resp *event)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    const struct rdma_ucm_get_event in = {.response = (uintptr_t)event};
    memset(event, 0, sizeof(*event));
    must(poll(&wait, 1, PATIENCE_MS) == 1, "no event of the manager", (int)kind);
    ZERO(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), sizeof(*event)));
    if (event->event != kind) {
        judge_outcome("an event of the manager", (int)event->event);
        return false;
    }
    return true;
}

static bool find_way(int fd, uint32_t id, const struct sockaddr_in *to)
{
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_resolve_addr address = {.id = id, .timeout_ms = 2000, .dst_size = sizeof(*to)};
    const struct rdma_ucm_resolve_route route = {.id = id, .timeout_ms = 2000};
    memcpy(&address.dst_addr, to, sizeof(*to));
    ZERO(command(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &address, sizeof(address), 0));
    if (!expect(fd, ADDR_RESOLVED, &event)) {
        return false;
    }
    ZERO(command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0));
    return expect(fd, ROUTE_RESOLVED, &event);
}

static void disconnect(int fd, uint32_t id)
{
    const struct rdma_ucm_disconnect in = {.id = id};
    ZERO(command(fd, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), 0));
}

/* The listener's channel and the other one's: 0 and 1. */
static bool connect_and_part(const int fds[2], uint32_t id, uint32_t *passive)
{
    struct rdma_ucm_event_resp event;
    const struct rdma_ucm_connect connect = {.id = id, .conn_param = {.valid = 1, .qp_num = 77}};
    const size_t connect_bytes = offsetof(struct rdma_ucm_connect, ece);
    ZERO(command(fds[1], RDMA_USER_CM_CMD_CONNECT, &connect, connect_bytes, 0));
    struct pollfd waits[] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    must(poll(waits, 2, PATIENCE_MS) > 0, "no request", 0);
    if (!expect(fds[waits[0].revents == 0], CONNECT_REQUEST, &event)) {
        return false;
    }
    *passive = event.id;
    const struct rdma_ucm_accept accept = {
        .id = event.id, .uid = 3, .conn_param = {.valid = 1, .qp_num = 88}};
    ZERO(command(fds[0], RDMA_USER_CM_CMD_ACCEPT, &accept, offsetof(struct rdma_ucm_accept, ece),
                 0));
    const struct rdma_ucm_accept ready = {.id = id, .uid = 1};
    if (!expect(fds[1], CONNECT_RESPONSE, &event)) {
        return false;
    }
    ZERO(
        command(fds[1], RDMA_USER_CM_CMD_ACCEPT, &ready, offsetof(struct rdma_ucm_accept, ece), 0));
    if (!expect(fds[0], ESTABLISHED, &event)) {
        return false;
    }
    disconnect(fds[1], id);
    if (!expect(fds[0], DISCONNECTED, &event)) {
        return false;
    }
    disconnect(fds[0], *passive);
    return expect(fds[1], DISCONNECTED, &event);
}

static bool meet(const int fds[2], uint16_t port)
{
    const struct sockaddr_in to = loopback(LOOPBACK, port);
    const uint32_t id = create_id(fds[1], RDMA_PS_TCP);
    uint32_t passive = 0;
    const bool good = find_way(fds[1], id, &to) && connect_and_part(fds, id, &passive);
    destroy_id(fds[1], id);
    if (passive != 0) {
        destroy_id(fds[0], passive);
    }
    return good;
}

/* `by_address`: as librdmacm asked once. */
static bool join_and_leave(int fd, bool by_address)
{
    const struct sockaddr_in group = loopback(0xef070708u, 0);
    const uint32_t id = create_id(fd, RDMA_PS_UDP);
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_create_id_resp out = {0};
    struct rdma_ucm_join_mcast join = {.response = (uintptr_t)&out,
                                       .uid = 5,
                                       .id = id,
                                       .addr_size = sizeof(group),
                                       .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER};
    struct rdma_ucm_destroy_id_resp left = {0};
    struct rdma_ucm_join_ip_mcast join_ip = {.response = (uintptr_t)&out, .uid = 5, .id = id};
    memcpy(&join.addr, &group, sizeof(group));
    memcpy(&join_ip.addr, &group, sizeof(group));
    bool good = find_way(fd, id, &group);
    if (good) {
        ZERO(by_address
                 ? command(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join_ip, sizeof(join_ip),
                           sizeof(out))
                 : command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &join, sizeof(join), sizeof(out)));
        good = expect(fd, MULTICAST_JOIN, &event);
        const struct rdma_ucm_destroy_id leave = {.response = (uintptr_t)&left, .id = out.id};
        ZERO(command(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), sizeof(left)));
    }
    destroy_id(fd, id);
    return good;
}

/* From one channel to the other. */
static void migrate(const int fds[2])
{
    const uint32_t id = create_id(fds[0], RDMA_PS_TCP);
    struct rdma_ucm_migrate_resp out = {0};
    const struct rdma_ucm_migrate_id in = {
        .response = (uintptr_t)&out, .id = id, .fd = (uint32_t)fds[0]};
    ZERO(command(fds[1], RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(out)));
    destroy_id(fds[1], id);
}

/* With channels of its own: events of what failed go with those. */
static bool do_all(void)
{
    const int fds[2] = {NUMBER(open_channel()), NUMBER(open_channel())};
    uint16_t port;
    const uint32_t listener = listen_somewhere(fds[0], &port);
    const bool good =
        meet(fds, port) && join_and_leave(fds[1], false) && join_and_leave(fds[1], true);
    migrate(fds);
    destroy_id(fds[0], listener);
    close(fds[0]);
    close(fds[1]);
    return good;
}

/* -- With another process -----------------------------------------------------------------------*/

static void serve_event(int fd)
{
    struct rdma_ucm_event_resp event = {0};
    const struct rdma_ucm_get_event in = {.response = (uintptr_t)&event};
    ZERO(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), sizeof(event)));
    const struct rdma_ucm_accept accept = {
        .id = event.id, .uid = 3, .conn_param = {.valid = 1, .qp_num = 88}};
    switch (event.event) {
    case CONNECT_REQUEST:
        ZERO(command(fd, RDMA_USER_CM_CMD_ACCEPT, &accept, offsetof(struct rdma_ucm_accept, ece),
                     0));
        return;
    case ESTABLISHED: return;
    case DISCONNECTED: disconnect(fd, event.id); break;
    default: judge_outcome("an event of the manager", (int)event.event);
    }
    destroy_id(fd, event.id);
}

void serve_manager(int line)
{
    uint16_t port;
    const int fd = NUMBER(open_channel());
    const uint32_t listener = listen_somewhere(fd, &port);
    must(send(line, &port, sizeof(port), 0) == sizeof(port), "send", errno);
    struct pollfd waits[] = {{.fd = fd, .events = POLLIN}, {.fd = line, .events = POLLIN}};
    while (waits[1].revents == 0) {
        must(poll(waits, 2, 4 * PATIENCE_MS) > 0, "nothing from the program", 0);
        if (waits[0].revents != 0) {
            serve_event(fd);
        }
    }
    destroy_id(fd, listener);
    close(fd);
}

static bool call_once(uint16_t port)
{
    const struct sockaddr_in to = loopback(LOOPBACK, port);
    const int fd = NUMBER(open_channel());
    const uint32_t id = create_id(fd, RDMA_PS_TCP);
    const struct rdma_ucm_connect connect = {.id = id, .conn_param = {.valid = 1, .qp_num = 77}};
    const struct rdma_ucm_accept ready = {.id = id, .uid = 1};
    struct rdma_ucm_event_resp event;
    bool good = find_way(fd, id, &to);
    if (good) {
        ZERO(command(fd, RDMA_USER_CM_CMD_CONNECT, &connect, offsetof(struct rdma_ucm_connect, ece),
                     0));
        good = expect(fd, CONNECT_RESPONSE, &event);
    }
    if (good) {
        ZERO(
            command(fd, RDMA_USER_CM_CMD_ACCEPT, &ready, offsetof(struct rdma_ucm_accept, ece), 0));
        disconnect(fd, id);
        good = expect(fd, DISCONNECTED, &event);
    }
    destroy_id(fd, id);
    close(fd);
    return good;
}

void call_manager(uint16_t port)
{
    must(call_once(port) || call_once(port), "no connection to the other", 0);
}

void use_manager(void)
{
    must(do_all() || do_all(), "no connection or no group", 0);
}
