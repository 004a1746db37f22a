/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_receive_verbs - the device, and queue pairs with the attributes that feroce-rs gives them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/check.h"
#include "tools/feroce_receive.h"

#define PORT          1
#define RNR_TIMER     8  /* 0.16 ms. */
#define TRAFFIC_CLASS 96 /* DSCP 24. */
#define HOP_LIMIT     64
#define TIMEOUT       14
#define RETRIES       7
#define UNTOUCHED     0xff /* The ring is filled with this: no word that is expected soon. */

static bool fail(char *error, const char *what)
{
    snprintf(error, ERROR_BYTES, "%s: %s", what, strerror(errno));
    return false;
}

static struct ibv_context *open_named(const char *name)
{
    int count = 0;
    struct ibv_context *context = NULL;
    struct ibv_device **devices = ibv_get_device_list(&count);
    for (int i = 0; devices != NULL && i < count && context == NULL; i++) {
        if (name == NULL || strcmp(ibv_get_device_name(devices[i]), name) == 0) {
            context = ibv_open_device(devices[i]);
        }
    }
    if (devices != NULL) {
        ibv_free_device_list(devices);
    }
    return context;
}

static bool is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/* Which GID has an IPv4 address, by RoCE v2. */
static bool find_gid(struct device *device, int wanted, char *error)
{
    struct ibv_gid_entry entries[256];
    const ssize_t count =
        ibv_query_gid_table(device->context, entries, sizeof(entries) / sizeof(entries[0]), 0);
    for (ssize_t i = 0; i < count; i++) {
        const struct ibv_gid_entry *entry = &entries[i];
        if (entry->port_num == PORT && entry->gid_type == IBV_GID_TYPE_ROCE_V2 &&
            is_ipv4(&entry->gid) && (wanted < 0 || entry->gid_index == (uint32_t)wanted)) {
            device->gid_index = (int)entry->gid_index;
            device->ip = load_be32(entry->gid.raw + 12);
            return true;
        }
    }
    snprintf(error, ERROR_BYTES,
             wanted < 0 ? "the device has no GID of RoCE v2 and IPv4"
                        : "the GID %d is none of RoCE v2 and IPv4",
             wanted);
    return false;
}

/* No device that was tried says yes: its memory would have to come from a GPU's own library, which
 * is not a part of this program. So the device's answer is printed, and nothing is received. */
static bool refuse_gpu(const struct device *device, char *error)
{
    struct ibv_pd *pd = ibv_alloc_pd(device->context);
    struct ibv_mr *mr = NULL;
    if (pd == NULL) {
        return fail(error, "no protection domain");
    }
    mr = ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);
    const int reason = errno;
    CHECK(mr == NULL); /* There is no descriptor -1. */
    ibv_dealloc_pd(pd);
    if (reason == EOPNOTSUPP || reason == ENOSYS) {
        snprintf(error, ERROR_BYTES, "--gpu: the device refuses dma-buf memory: %s",
                 strerror(reason));
    } else {
        snprintf(error, ERROR_BYTES,
                 "--gpu: the device may take dma-buf memory, but this program has no library that "
                 "gives it any");
    }
    return false;
}

bool device_open(struct device *device, const struct wishes *wishes, char *error)
{
    device->context = open_named(wishes->device);
    if (device->context == NULL) {
        snprintf(error, ERROR_BYTES, "there is no RDMA device%s%s that opens",
                 wishes->device == NULL ? "" : " ", wishes->device == NULL ? "" : wishes->device);
        return false;
    }
    errno = ibv_query_port(device->context, PORT, &device->port);
    if (errno != 0) {
        return fail(error, "port 1 of the device");
    }
    if (device->port.state != IBV_PORT_ACTIVE ||
        device->port.link_layer != IBV_LINK_LAYER_ETHERNET) {
        snprintf(error, ERROR_BYTES, "port 1 of the device is not active, or no Ethernet");
        return false;
    }
    if (fcntl(device->context->async_fd, F_SETFL, O_NONBLOCK) != 0) {
        return fail(error, "the device's events");
    }
    device->mtu = device->port.active_mtu;
    for (uint32_t code = 0; wishes->pmtu != 0 && code < 5; code++) {
        device->mtu = wishes->pmtu == 256u << code ? (enum ibv_mtu)(code + 1) : device->mtu;
    }
    return find_gid(device, wishes->gid_index, error) &&
           (!wishes->gpu || refuse_gpu(device, error));
}

bool stream_init(struct stream *stream, const struct device *device, const struct wishes *wishes,
                 char *error)
{
    const size_t ring = (size_t)wishes->wrap + wishes->buf_size;
    const size_t buffers = wishes->write_ring ? 0 : (size_t)wishes->num_buf * wishes->buf_size;
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (!wishes->write_ring) { /* In a ring the last word must not come before the others. */
        access |= IBV_ACCESS_RELAXED_ORDERING;
    }
    stream->memory_bytes = ring + buffers;
    stream->memory = mmap(NULL, stream->memory_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stream->memory == MAP_FAILED) {
        return fail(error, "memory");
    }
    stream->channel = ibv_create_comp_channel(device->context);
    stream->pd = ibv_alloc_pd(device->context);
    if (stream->channel == NULL || stream->pd == NULL) {
        return fail(error, "completion channel and protection domain");
    }
    stream->cq = ibv_create_cq(device->context, (int)wishes->num_buf, NULL, stream->channel, 0);
    stream->mr = ibv_reg_mr(stream->pd, stream->memory, stream->memory_bytes, access);
    if (stream->cq == NULL || stream->mr == NULL) {
        return fail(error, "completion queue and memory region");
    }
    if (fcntl(stream->channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
        ibv_req_notify_cq(stream->cq, 0) != 0) {
        return fail(error, "completion channel");
    }
    feroce_checker_init(&stream->checker, wishes->check);
    return true;
}

bool stream_post(struct stream *stream, const struct wishes *wishes, uint64_t buffer)
{
    const size_t at = (size_t)wishes->wrap + wishes->buf_size + buffer * wishes->buf_size;
    struct ibv_sge place = {.addr = (uintptr_t)stream->memory + at,
                            .length = wishes->buf_size,
                            .lkey = stream->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = buffer, .sg_list = &place, .num_sge = 1}, *bad = NULL;
    if (wishes->write_ring) { /* Immediate data only. */
        receive.sg_list = NULL;
        receive.num_sge = 0;
    }
    errno = ibv_post_recv(stream->qp, &receive, &bad);
    return errno == 0;
}

static bool enter_init(struct stream *stream)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = PORT,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
    };
    errno = ibv_modify_qp(stream->qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return errno == 0;
}

bool stream_make(struct stream *stream, const struct wishes *wishes, char *error)
{
    struct ibv_qp_init_attr init = {
        .qp_context = stream,
        .send_cq = stream->cq,
        .recv_cq = stream->cq,
        .cap = {.max_send_wr = 1,
                .max_recv_wr = wishes->num_buf,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    stream->qp = ibv_create_qp(stream->pd, &init);
    if (stream->qp == NULL || !enter_init(stream)) {
        return fail(error, "a queue pair");
    }
    stream->qpn = stream->qp->qp_num;
    /* Before RTR: the front end may send as soon as it knows of the queue pair. */
    for (uint64_t i = 0; i < wishes->num_buf; i++) {
        if (!stream_post(stream, wishes, i)) {
            return fail(error, "a receive");
        }
    }
    memset(stream->memory, UNTOUCHED, (size_t)wishes->wrap + wishes->buf_size);
    stream->offset = 0;
    stream->written = 0;
    stream->immediates = 0;
    stream->is_open = false;
    stream->is_closing = false;
    stream->refusal = IBV_EVENT_COMM_EST;
    stream->failed_ns = 0;
    feroce_checker_open(&stream->checker);
    return true;
}

struct feroce_side stream_side(const struct stream *stream)
{
    return (struct feroce_side){
        .qpn = stream->qp->qp_num, .rkey = stream->mr->rkey, .address = (uintptr_t)stream->memory};
}

static void gid_of(uint32_t ip, union ibv_gid *gid)
{
    *gid = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff}};
    store_be32(gid->raw + 12, ip);
}

/* The front end may have sent before RTS, and its packets may have been wrong. The queue pair is
 * connected all the same, and its completions name the error. */
static bool has_failed(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR;
}

static int enter_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = TIMEOUT,
        .retry_cnt = RETRIES,
        .rnr_retry = RETRIES,
        .max_rd_atomic = 1,
    };
    const int reason =
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return reason != 0 && has_failed(qp) ? 0 : reason;
}

bool stream_connect(struct stream *stream, const struct device *device,
                    const struct feroce_side *remote, char *error)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .grh = {.sgid_index = (uint8_t)device->gid_index,
                            .hop_limit = HOP_LIMIT,
                            .traffic_class = TRAFFIC_CLASS}},
        .path_mtu = device->mtu,
        .dest_qp_num = remote->qpn,
        .rq_psn = remote->psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = RNR_TIMER,
    };
    gid_of(remote->ip, &attr.ah_attr.grh.dgid);
    errno = ibv_modify_qp(stream->qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (errno == 0) {
        errno = enter_rts(stream->qp);
    }
    if (errno != 0) {
        return fail(error, "the queue pair does not connect");
    }
    stream->remote = *remote;
    stream->path_mtu = 128u << device->mtu;
    stream->is_open = true;
    return true;
}

/* Whole messages count. But a front end that goes on sending does not keep us here. */
static void take_rest(struct stream *stream, const struct wishes *wishes)
{
    const uint64_t most = stream->messages + wishes->num_buf + wishes->wrap / wishes->buf_size;
    while (stream_take(stream, wishes) && stream->has_more && stream->messages < most) {
    }
}

void stream_stop(struct stream *stream, const struct wishes *wishes)
{
    struct ibv_wc completion;
    if (stream->qp == NULL) {
        return;
    }
    if (stream->is_open && stream->error[0] == '\0') {
        take_rest(stream, wishes);
    }
    stream->is_open = false;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    (void)ibv_modify_qp(stream->qp, &attr, IBV_QP_STATE);
    (void)ibv_destroy_qp(stream->qp);
    stream->qp = NULL;
    while (ibv_poll_cq(stream->cq, 1, &completion) > 0) {
    }
}
