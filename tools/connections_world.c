/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/connections.h"

#define PORT 1

static bool fail(char *error, const char *what)
{
    snprintf(error, ERROR_BYTES, "%s: %s", what, strerror(errno));
    return false;
}

/* The memory is resident from the start, so that it is not counted as the NIC's. */
static uint8_t *pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static struct ibv_context *open_named(const char *name, char *error)
{
    struct ibv_context *context = NULL;
    struct ibv_device **devices = ibv_get_device_list(NULL), **device = devices;
    while (name != NULL && device != NULL && *device != NULL &&
           strcmp(ibv_get_device_name(*device), name) != 0) {
        device++;
    }
    if (device == NULL || *device == NULL) {
        snprintf(error, ERROR_BYTES, "there is no RDMA device%s%s (ibv_devices lists them)",
                 name == NULL ? "" : " ", name == NULL ? "" : name);
    } else if ((context = ibv_open_device(*device)) == NULL) {
        fail(error, "the device does not open");
    }
    if (devices != NULL) {
        ibv_free_device_list(devices);
    }
    return context;
}

static bool open_port(struct world *world, const struct plan *plan, char *error)
{
    struct ibv_port_attr port;
    errno = ibv_query_port(world->context, PORT, &port);
    if (errno != 0 || port.state != IBV_PORT_ACTIVE) {
        errno = errno == 0 ? ENETDOWN : errno;
        return fail(error, "port 1 of the device");
    }
    world->lid = port.link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : port.lid;
    world->gid_index = plan->gid_index;
    if (ibv_query_gid(world->context, PORT, (int)world->gid_index, &world->gid) != 0) {
        snprintf(error, ERROR_BYTES, "the device has no GID %u", world->gid_index);
        return false;
    }
    return true;
}

bool world_open(struct world *world, const struct plan *plan, uint32_t count, char *error)
{
    *world = (struct world){.count = count, .bytes = plan->bytes};
    world->context = open_named(plan->device, error);
    if (world->context == NULL || !open_port(world, plan, error)) {
        return false;
    }
    const size_t slots = (size_t)count * plan->bytes;
    world->memory = pages(slots);
    world->qps = (struct ibv_qp **)(void *)pages(count * sizeof(struct ibv_qp *));
    world->doors = (struct door *)(void *)pages(count * sizeof(struct door));
    world->pd = ibv_alloc_pd(world->context);
    world->cq = ibv_create_cq(world->context, (int)plan->depth + 1, NULL, NULL, 0);
    if (world->memory == NULL || world->qps == NULL || world->doors == NULL || world->pd == NULL ||
        world->cq == NULL) {
        return fail(error, "no memory or no completion queue");
    }
    world->mr =
        ibv_reg_mr(world->pd, world->memory, slots,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (world->mr == NULL) {
        return fail(error, "the memory is not registered");
    }
    return true;
}

bool world_make_qps(struct world *world, const struct plan *plan, uint32_t from, uint32_t to,
                    char *error)
{
    for (uint32_t i = from; i < to; i++) {
        struct ibv_qp_init_attr init = {
            .send_cq = world->cq,
            .recv_cq = world->cq,
            .cap = {.max_send_wr = plan->ring, .max_send_sge = 1},
            .qp_type = IBV_QPT_RC,
            .sq_sig_all = 0,
        };
        world->qps[i] = ibv_create_qp(world->pd, &init);
        if (world->qps[i] == NULL) {
            return fail(error, "a queue pair is refused");
        }
        struct ibv_qp_attr attr = {
            .qp_state = IBV_QPS_INIT,
            .port_num = PORT,
            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
        };
        errno = ibv_modify_qp(world->qps[i], &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        if (errno != 0) {
            return fail(error, "a queue pair does not initialize");
        }
    }
    return true;
}

struct door world_door(const struct world *world, uint32_t index)
{
    return (struct door){
        .address = (uintptr_t)(world->memory + (size_t)index * world->bytes),
        .key = world->mr->rkey,
        .qpn = world->qps[index]->qp_num,
    };
}

bool world_connect(struct world *world, uint32_t index, const union ibv_gid *gid,
                   const struct door *door, char *error)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .dlid = world->lid,
                    .grh = {.dgid = *gid,
                            .hop_limit = 64,
                            .sgid_index = (uint8_t)world->gid_index}},
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = door->qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
    };
    errno = ibv_modify_qp(world->qps[index], &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (errno == 0) {
        attr = (struct ibv_qp_attr){
            .qp_state = IBV_QPS_RTS,
            .timeout = 17,
            .retry_cnt = 7,
            .rnr_retry = 7,
            .max_rd_atomic = 4,
        };
        errno = ibv_modify_qp(world->qps[index], &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    }
    world->doors[index] = *door;
    return errno == 0 || fail(error, "a queue pair does not connect");
}

static uint8_t pattern(uint32_t index, uint32_t posted, uint32_t at)
{
    return (uint8_t)((index * 0x9e3779b1u + posted * 0x85ebca6bu) >> 8) ^ (uint8_t)(at * 29u);
}

/* Only the ends change from message to message: the NIC should be the load, not the making of
 * patterns. */
void slot_fill(uint8_t *slot, uint32_t bytes, uint32_t index, uint32_t posted)
{
    slot[0] = pattern(index, posted, 0);
    slot[bytes - 1] = pattern(index, posted, bytes - 1);
    for (uint32_t i = 1; posted == 0 && i + 1 < bytes; i++) {
        slot[i] = pattern(index, 0, i);
    }
}

bool slot_is(const uint8_t *slot, uint32_t bytes, uint32_t index, uint32_t posted)
{
    for (uint32_t i = 1; i + 1 < bytes; i++) {
        if (slot[i] != pattern(index, 0, i)) {
            return false;
        }
    }
    return slot[bytes - 1] == pattern(index, posted, bytes - 1) &&
           (bytes == 1 || slot[0] == pattern(index, posted, 0));
}
