/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fails/command.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_BYTES 512

int command(int fd, uint32_t number, const void *in, size_t in_bytes, size_t out_bytes)
{
    const struct rdma_ucm_cmd_hdr header = {number, (uint16_t)in_bytes, (uint16_t)out_bytes};
    uint8_t bytes[COMMAND_BYTES];
    must(sizeof(header) + in_bytes <= sizeof(bytes), "a long command", 0);
    memcpy(bytes, &header, sizeof(header));
    memcpy(bytes + sizeof(header), in, in_bytes);
    return write(fd, bytes, sizeof(header) + in_bytes) < 0 ? errno : 0;
}

int open_channel(void)
{
    return open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
}

uint32_t create_id(int fd, uint16_t space)
{
    struct rdma_ucm_create_id_resp out = {0};
    const struct rdma_ucm_create_id in = {
        .uid = 1, .response = (uintptr_t)&out, .ps = space, .qp_type = IBV_QPT_RC};
    ZERO(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(out)));
    return out.id;
}

void destroy_id(int fd, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp out = {0};
    const struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&out, .id = id};
    ZERO(command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(out)));
}

union place place_of(const union ibv_gid *gid, bool ipv4, uint16_t port)
{
    union place place = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
    memcpy(&place.v6.sin6_addr, gid->raw, 16);
    if (ipv4) {
        place.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&place.v4.sin_addr, gid->raw + 12, 4);
    }
    return place;
}

union place here(const struct program *p, uint16_t port)
{
    return place_of(&p->gid, has_ipv4(p), port);
}

uint16_t bytes_of(const union place *place)
{
    return place->v4.sin_family == AF_INET ? sizeof(place->v4) : sizeof(place->v6);
}

uint32_t listen_at(int fd, union place place, uint16_t *port)
{
    const uint32_t id = create_id(fd, RDMA_PS_TCP);
    struct rdma_ucm_bind bind = {.id = id, .addr_size = bytes_of(&place)};
    const struct rdma_ucm_listen listen = {.id = id, .backlog = 8};
    struct rdma_ucm_query_addr_resp out = {0};
    const struct rdma_ucm_query query = {
        .response = (uintptr_t)&out, .id = id, .option = RDMA_USER_CM_QUERY_ADDR};
    memcpy(&bind.addr, &place, sizeof(place));
    ZERO(command(fd, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0));
    ZERO(command(fd, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0));
    ZERO(command(fd, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(out)));
    memcpy(&place, &out.src_addr, sizeof(place));
    *port = ntohs(place.v4.sin_port); /* IPv6's stands at the same place. */
    return id;
}

bool expect_event(int fd, uint32_t kind, struct rdma_ucm_event_resp *event)
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

bool find_address(int fd, uint32_t id, const union place *to)
{
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_resolve_addr address = {.id = id, .timeout_ms = 2000, .dst_size = bytes_of(to)};
    memcpy(&address.dst_addr, to, sizeof(*to));
    ZERO(command(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &address, sizeof(address), 0));
    return expect_event(fd, ADDR_RESOLVED, &event);
}

bool find_way(int fd, uint32_t id, const union place *to)
{
    struct rdma_ucm_event_resp event;
    const struct rdma_ucm_resolve_route route = {.id = id, .timeout_ms = 2000};
    if (!find_address(fd, id, to)) {
        return false;
    }
    ZERO(command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0));
    return expect_event(fd, ROUTE_RESOLVED, &event);
}

void ask_to_connect(int fd, uint32_t id)
{
    const struct rdma_ucm_connect in = {.id = id, .conn_param = {.valid = 1, .qp_num = 77}};
    ZERO(command(fd, RDMA_USER_CM_CMD_CONNECT, &in, offsetof(struct rdma_ucm_connect, ece), 0));
}

void disconnect(int fd, uint32_t id)
{
    const struct rdma_ucm_disconnect in = {.id = id};
    ZERO(command(fd, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), 0));
}
