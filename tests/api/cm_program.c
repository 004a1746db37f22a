/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/api/cm_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/rdma_cm"

int open_device(int flags)
{
    const int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);
    assert_true(fd >= 0);
    return fd;
}

int command(int fd, uint32_t number, const void *in, size_t in_bytes, size_t out_bytes)
{
    const struct rdma_ucm_cmd_hdr header = {number, (uint16_t)in_bytes, (uint16_t)out_bytes};
    const size_t count = sizeof(header) + in_bytes;
    void *bytes = malloc(count);
    ssize_t written;
    int failure;
    memcpy(bytes, &header, sizeof(header));
    memcpy((uint8_t *)bytes + sizeof(header), in, in_bytes);
    pthread_cleanup_push(free, bytes); /* A thread that waits may be cancelled. */
    written = write(fd, bytes, count);
    failure = written < 0 ? errno : 0;
    pthread_cleanup_pop(1);
    assert_true(written < 0 || (size_t)written == count);
    return failure;
}

bool readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) == 1 && (wait.revents & POLLIN);
}

uint32_t create_id(int fd, uint16_t port_space, uint64_t uid)
{
    struct rdma_ucm_create_id_resp out = {0};
    const struct rdma_ucm_create_id in = {
        .uid = uid, .response = (uintptr_t)&out, .ps = port_space, .qp_type = IBV_QPT_RC};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(out)), 0);
    assert_int_not_equal(out.id, 0);
    return out.id;
}

uint32_t destroy_id(int fd, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp out = {0};
    const struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&out, .id = id};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(out)), 0);
    return out.events_reported;
}

struct sockaddr_in loopback(uint8_t host, uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(0x7f000000u + host)};
}

int bind_id(int fd, uint32_t id, const void *address, size_t bytes)
{
    struct rdma_ucm_bind in = {.id = id, .addr_size = (uint16_t)bytes};
    memcpy(&in.addr, address, bytes < sizeof(in.addr) ? bytes : sizeof(in.addr));
    return command(fd, RDMA_USER_CM_CMD_BIND, &in, sizeof(in), 0);
}

int resolve(int fd, uint32_t id, const struct sockaddr_in *from, const struct sockaddr_in *to)
{
    struct rdma_ucm_resolve_addr in = {.id = id, .timeout_ms = 2000, .dst_size = sizeof(*to)};
    memcpy(&in.dst_addr, to, sizeof(*to));
    if (from != NULL) {
        in.src_size = sizeof(*from);
        memcpy(&in.src_addr, from, sizeof(*from));
    }
    return command(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &in, sizeof(in), 0);
}

int listen_id(int fd, uint32_t id)
{
    const struct rdma_ucm_listen in = {.id = id, .backlog = 64};
    return command(fd, RDMA_USER_CM_CMD_LISTEN, &in, sizeof(in), 0);
}

int route(int fd, uint32_t id)
{
    const struct rdma_ucm_resolve_route in = {.id = id, .timeout_ms = 2000};
    return command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &in, sizeof(in), 0);
}

int connect_id(int fd, uint32_t id, uint8_t private_bytes)
{
    const struct rdma_ucm_connect in = {
        .id = id,
        .conn_param = {.valid = 1, .qp_num = 0x77000 + id, .private_data_len = private_bytes}};
    return command(fd, RDMA_USER_CM_CMD_CONNECT, &in, offsetof(struct rdma_ucm_connect, ece), 0);
}

int accept_id(int fd, uint32_t id, uint64_t uid, bool valid)
{
    const struct rdma_ucm_accept in = {
        .id = id, .uid = uid, .conn_param = {.valid = valid, .qp_num = 0x88000 + id}};
    return command(fd, RDMA_USER_CM_CMD_ACCEPT, &in, offsetof(struct rdma_ucm_accept, ece), 0);
}

int disconnect_id(int fd, uint32_t id)
{
    const struct rdma_ucm_disconnect in = {.id = id};
    return command(fd, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), 0);
}

int get_event(int fd, struct rdma_ucm_event_resp *out)
{
    memset(out, 0, sizeof(*out));
    const struct rdma_ucm_get_event in = {.response = (uintptr_t)out};
    return command(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), sizeof(*out));
}

struct rdma_ucm_event_resp expect(int fd, enum rdma_event_kind type)
{
    struct rdma_ucm_event_resp event;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_int_equal(get_event(fd, &event), 0);
    assert_int_equal(event.event, type);
    return event;
}

uint16_t listen_somewhere(int fd, uint32_t *id, uint16_t port_space)
{
    struct rdma_ucm_query_addr_resp out = {0};
    struct sockaddr_in address = loopback(1, 0);
    *id = create_id(fd, port_space, 0x11);
    assert_int_equal(bind_id(fd, *id, &address, sizeof(address)), 0);
    assert_int_equal(listen_id(fd, *id), 0);
    const struct rdma_ucm_query in = {
        .response = (uintptr_t)&out, .id = *id, .option = RDMA_USER_CM_QUERY_ADDR};
    assert_int_equal(command(fd, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), sizeof(out)), 0);
    assert_int_equal(out.src_size, sizeof(address));
    memcpy(&address, &out.src_addr, sizeof(address));
    assert_int_not_equal(address.sin_port, 0);
    return ntohs(address.sin_port);
}

uint32_t routed(int fd, uint16_t port_space, uint16_t port)
{
    const struct sockaddr_in to = loopback(1, port);
    const uint32_t id = create_id(fd, port_space, 0x22);
    assert_int_equal(resolve(fd, id, NULL, &to), 0);
    assert_int_equal(expect(fd, RDMA_EVENT_ADDR_RESOLVED).id, id);
    assert_int_equal(route(fd, id), 0);
    assert_int_equal(expect(fd, RDMA_EVENT_ROUTE_RESOLVED).id, id);
    return id;
}

struct ends establish(int active, int passive)
{
    struct ends ends;
    const uint16_t port = listen_somewhere(passive, &ends.listener, RDMA_PS_TCP);
    ends.active = routed(active, RDMA_PS_TCP, port);
    assert_int_equal(connect_id(active, ends.active, 0), 0);
    const struct rdma_ucm_event_resp request = expect(passive, RDMA_EVENT_CONNECT_REQUEST);
    assert_int_equal(request.uid, 0x11);
    ends.passive = request.id;
    assert_int_equal(accept_id(passive, ends.passive, 0x33, true), 0);
    const struct rdma_ucm_event_resp response = expect(active, RDMA_EVENT_CONNECT_RESPONSE);
    assert_int_equal(response.uid, 0x22);
    assert_int_equal(response.param.conn.qp_num, 0x88000 + ends.passive);
    assert_int_equal(accept_id(active, ends.active, 0, false), 0);
    assert_int_equal(expect(passive, RDMA_EVENT_ESTABLISHED).uid, 0x33);
    assert_false(readable(active) || readable(passive));
    return ends;
}
