/* SPDX-License-Identifier: BSD-2-Clause
 *
 * manager - both ends of a connection by address and port; groups.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fails/command.h"

/* The listener's channel and the other one's: 0 and 1. */
static bool connect_and_part(const int fds[2], uint32_t id, uint32_t *passive)
{
    struct rdma_ucm_event_resp event;
    ask_to_connect(fds[1], id);
    struct pollfd waits[] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    must(poll(waits, 2, PATIENCE_MS) > 0, "no request", 0);
    if (!expect_event(fds[waits[0].revents == 0], CONNECT_REQUEST, &event)) {
        return false;
    }
    *passive = event.id;
    const struct rdma_ucm_accept accept = {
        .id = event.id, .uid = 3, .conn_param = {.valid = 1, .qp_num = 88}};
    ZERO(command(fds[0], RDMA_USER_CM_CMD_ACCEPT, &accept, offsetof(struct rdma_ucm_accept, ece),
                 0));
    const struct rdma_ucm_accept ready = {.id = id, .uid = 1};
    if (!expect_event(fds[1], CONNECT_RESPONSE, &event)) {
        return false;
    }
    ZERO(
        command(fds[1], RDMA_USER_CM_CMD_ACCEPT, &ready, offsetof(struct rdma_ucm_accept, ece), 0));
    if (!expect_event(fds[0], ESTABLISHED, &event)) {
        return false;
    }
    disconnect(fds[1], id);
    if (!expect_event(fds[0], DISCONNECTED, &event)) {
        return false;
    }
    disconnect(fds[0], *passive);
    return expect_event(fds[1], DISCONNECTED, &event);
}

static bool meet(const struct program *p, const int fds[2], uint16_t port)
{
    const union place to = here(p, port);
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
static bool join_and_leave(const struct program *p, int fd, bool by_address)
{
    static const union ibv_gid group4 = {.raw = {[12] = 239, 7, 7, 8}};
    static const union ibv_gid group6 = {.raw = {0xff, 0x15, [14] = 7, 8}};
    const union place group = place_of(has_ipv4(p) ? &group4 : &group6, has_ipv4(p), 0);
    const uint32_t id = create_id(fd, RDMA_PS_UDP);
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_create_id_resp out = {0};
    struct rdma_ucm_join_mcast join = {.response = (uintptr_t)&out,
                                       .uid = 5,
                                       .id = id,
                                       .addr_size = bytes_of(&group),
                                       .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER};
    struct rdma_ucm_destroy_id_resp left = {0};
    struct rdma_ucm_join_ip_mcast join_ip = {.response = (uintptr_t)&out, .uid = 5, .id = id};
    memcpy(&join.addr, &group, sizeof(group));
    memcpy(&join_ip.addr, &group, sizeof(group));
    bool good = find_address(fd, id, &group);
    if (good) {
        ZERO(by_address
                 ? command(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join_ip, sizeof(join_ip),
                           sizeof(out))
                 : command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &join, sizeof(join), sizeof(out)));
        good = expect_event(fd, MULTICAST_JOIN, &event);
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
static bool do_all(const struct program *p)
{
    const int fds[2] = {NUMBER(open_channel()), NUMBER(open_channel())};
    uint16_t port;
    const uint32_t listener = listen_at(fds[0], here(p, 0), &port);
    const bool good =
        meet(p, fds, port) &&
        (!has_groups(p) || (join_and_leave(p, fds[1], false) && join_and_leave(p, fds[1], true)));
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

void serve_manager(const struct program *p, int line)
{
    uint16_t port;
    const int fd = NUMBER(open_channel());
    const uint32_t listener = listen_at(fd, here(p, 0), &port);
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

static bool call_once(const union place *to)
{
    const int fd = NUMBER(open_channel());
    const uint32_t id = create_id(fd, RDMA_PS_TCP);
    const struct rdma_ucm_accept ready = {.id = id, .uid = 1};
    struct rdma_ucm_event_resp event;
    bool good = find_way(fd, id, to);
    if (good) {
        ask_to_connect(fd, id);
        good = expect_event(fd, CONNECT_RESPONSE, &event);
    }
    if (good) {
        ZERO(
            command(fd, RDMA_USER_CM_CMD_ACCEPT, &ready, offsetof(struct rdma_ucm_accept, ece), 0));
        disconnect(fd, id);
        good = expect_event(fd, DISCONNECTED, &event);
    }
    destroy_id(fd, id);
    close(fd);
    return good;
}

/* The other's port, at an address of our own. */
static void listen_beside(const struct program *p, uint16_t port)
{
    uint16_t same;
    const int fd = NUMBER(open_channel());
    const uint32_t listener = listen_at(fd, here(p, port), &same);
    must(same == port, "another port", same);
    destroy_id(fd, listener);
    close(fd);
}

void call_manager(const struct program *p, const union ibv_gid *gid, uint16_t port)
{
    const union place to = place_of(gid, has_ipv4(p), port);
    while (!call_once(&to)) {
    }
    if (memcmp(gid, &p->gid, sizeof(*gid)) != 0) {
        listen_beside(p, port);
    }
}

void use_manager(const struct program *p)
{
    while (!do_all(p)) {
    }
    while (!use_reader(p)) {
    }
}
