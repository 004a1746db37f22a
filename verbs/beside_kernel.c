/* SPDX-License-Identifier: BSD-2-Clause
 *
 * beside_kernel - calls that only make sense beside a kernel driver, and their answers without one.
 */
#include <fcntl.h>
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drivers/system/system.h"
#include "verbs/internal.h"

/* -- fork: memory is not pinned, so a child's copy-on-write hurts nobody ------------------------*/

EXPORT int ibv_fork_init(void)
{
    return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

EXPORT int ibv_dontfork_range(void *base, size_t bytes);
EXPORT int ibv_dofork_range(void *base, size_t bytes);

EXPORT int ibv_dontfork_range(void *base, size_t bytes)
{
    (void)base;
    (void)bytes;
    return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t bytes)
{
    (void)base;
    (void)bytes;
    return 0;
}

/* -- sysfs --------------------------------------------------------------------------------------*/

EXPORT const char *ibv_get_sysfs_path(void);
EXPORT int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t bytes);

EXPORT const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

/* The value of a file, without its line end; -1 if there is none. */
EXPORT int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t bytes)
{
    char path[512];
    const int length = snprintf(path, sizeof(path), "%s/%s", directory, file);
    if (length < 0 || (size_t)length >= sizeof(path) || bytes == 0) {
        return -1;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t count = system_read(fd, buffer, bytes);
    close(fd);
    if (count > 0 && buffer[count - 1] == '\n') {
        buffer[--count] = '\0';
    } else if (count >= 0 && (size_t)count < bytes) {
        buffer[count] = '\0';
    } else {
        return -1;
    }
    initialised(buffer, (size_t)count + 1);
    return (int)count;
}

/* -- Kernel structs, as librdmacm gets them -----------------------------------------------------*/

EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);
EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);

EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from)
{
    memcpy(to->grh.dgid.raw, from->grh.dgid, sizeof(to->grh.dgid.raw));
    to->grh.flow_label = from->grh.flow_label;
    to->grh.sgid_index = from->grh.sgid_index;
    to->grh.hop_limit = from->grh.hop_limit;
    to->grh.traffic_class = from->grh.traffic_class;
    to->dlid = from->dlid;
    to->sl = from->sl;
    to->src_path_bits = from->src_path_bits;
    to->static_rate = from->static_rate;
    to->is_global = from->is_global;
    to->port_num = from->port_num;
    initialised(to, sizeof(*to));
}

EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from)
{
    to->cur_qp_state = (enum ibv_qp_state)from->cur_qp_state;
    to->path_mtu = (enum ibv_mtu)from->path_mtu;
    to->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
    to->qkey = from->qkey;
    to->rq_psn = from->rq_psn;
    to->sq_psn = from->sq_psn;
    to->dest_qp_num = from->dest_qp_num;
    to->qp_access_flags = from->qp_access_flags;
    to->cap.max_send_wr = from->max_send_wr;
    to->cap.max_recv_wr = from->max_recv_wr;
    to->cap.max_send_sge = from->max_send_sge;
    to->cap.max_recv_sge = from->max_recv_sge;
    to->cap.max_inline_data = from->max_inline_data;
    ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
    ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
    to->pkey_index = from->pkey_index;
    to->alt_pkey_index = from->alt_pkey_index;
    to->en_sqd_async_notify = from->en_sqd_async_notify;
    to->sq_draining = from->sq_draining;
    to->max_rd_atomic = from->max_rd_atomic;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
    to->min_rnr_timer = from->min_rnr_timer;
    to->port_num = from->port_num;
    to->timeout = from->timeout;
    to->retry_cnt = from->retry_cnt;
    to->rnr_retry = from->rnr_retry;
    to->alt_port_num = from->alt_port_num;
    to->alt_timeout = from->alt_timeout;
    initialised(to, sizeof(*to));
}

EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from)
{
    memcpy(to->dgid.raw, from->dgid, sizeof(to->dgid));
    memcpy(to->sgid.raw, from->sgid, sizeof(to->sgid));
    to->dlid = from->dlid;
    to->slid = from->slid;
    to->raw_traffic = (int)from->raw_traffic;
    to->flow_label = from->flow_label;
    to->hop_limit = (uint8_t)from->hop_limit;
    to->traffic_class = from->traffic_class;
    to->reversible = (int)from->reversible;
    to->numb_path = from->numb_path;
    to->pkey = from->pkey;
    to->sl = from->sl;
    to->mtu_selector = from->mtu_selector;
    to->mtu = (uint8_t)from->mtu;
    to->rate_selector = from->rate_selector;
    to->rate = from->rate;
    to->packet_life_time_selector = from->packet_life_time_selector;
    to->packet_life_time = from->packet_life_time;
    to->preference = from->preference;
    initialised(to, sizeof(*to));
}

EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from)
{
    memcpy(to->dgid, from->dgid.raw, sizeof(from->dgid));
    memcpy(to->sgid, from->sgid.raw, sizeof(from->sgid));
    to->dlid = from->dlid;
    to->slid = from->slid;
    to->raw_traffic = (uint32_t)from->raw_traffic;
    to->flow_label = from->flow_label;
    to->hop_limit = from->hop_limit;
    to->traffic_class = from->traffic_class;
    to->reversible = (uint32_t)from->reversible;
    to->numb_path = from->numb_path;
    to->pkey = from->pkey;
    to->sl = from->sl;
    to->mtu_selector = from->mtu_selector;
    to->mtu = (uint8_t)from->mtu;
    to->rate_selector = from->rate_selector;
    to->rate = from->rate;
    to->packet_life_time_selector = from->packet_life_time_selector;
    to->packet_life_time = from->packet_life_time;
    to->preference = from->preference;
    initialised(to, sizeof(*to));
}
