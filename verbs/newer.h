/* SPDX-License-Identifier: BSD-2-Clause
 *
 * newer - additions of rdma-core to verbs.h after version 44, as far as our functions read them.
 * docs/decisions/0030.
 *
 * The header that this is compiled with may be of version 44 or newer, and declare some of it, too.
 * So numbers are macros here, which hide enumerators of the same names; a structure that has grown,
 * or is new, has a name of our own; and functions may be declared twice.
 */
#ifndef VERBS_NEWER_H
#define VERBS_NEWER_H

#include <infiniband/verbs.h>

/* -- 45: FLUSH ----------------------------------------------------------------------------------*/

#define IBV_WR_FLUSH                14
#define IBV_WC_FLUSH                8
#define IBV_QP_EX_WITH_FLUSH        (1 << 11)
#define IBV_ACCESS_FLUSH_GLOBAL     (1 << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT (1 << 9)
#define ODP_SUPPORT_FLUSH           (1 << 6)

/* Bits of device_cap_flags_ex. */
#define DEVICE_FLUSH_GLOBAL     (UINT64_C(1) << 38)
#define DEVICE_FLUSH_PERSISTENT (UINT64_C(1) << 39)

/* Types of placement. */
#define IBV_FLUSH_GLOBAL     (1 << 0)
#define IBV_FLUSH_PERSISTENT (1 << 1)

/* Levels of selectivity. */
#define IBV_FLUSH_RANGE 0
#define IBV_FLUSH_MR    1

/* Programs call through the pointer (ibv_wr_flush is inline) on queue pairs with FLUSH only. */
struct qp_ex_45 {
    union {
        struct ibv_qp_ex ex;
        struct {
            uint8_t of_44[312 + sizeof(pthread_mutex_t)];
            void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
                             uint8_t type, uint8_t level);
        };
    };
};

/* -- 46: what ibv_query_qp_data_in_order may be asked for ---------------------------------------*/

enum {
    DATA_IN_ORDER_RETURN_CAPS = 1 << 0,
    DATA_IN_ORDER_DEVICE_ONLY = 1 << 1,
};

enum {
    DATA_IN_ORDER_WHOLE_MSG = 1 << 0,
    DATA_IN_ORDER_ALIGNED_128_BYTES = 1 << 1,
};

/* -- 49: a port's speed in more than 8 bits -----------------------------------------------------*/

struct port_attr_49 {
    union {
        struct ibv_port_attr attr;
        struct {
            uint8_t of_44[52];
            uint32_t active_speed_ex; /* 0: see active_speed. */
        };
    };
};

/* -- 58: on-demand memory as the target of a newer operation ------------------------------------*/

enum {
    ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
};

/* -- 59: registering memory of any kind by one call ---------------------------------------------*/

struct ibv_dmah;
struct ibv_buf; /* 64. */
struct ibv_mr_init_attr;

enum {
    REG_MR_IOVA = 1 << 0,
    REG_MR_ADDR = 1 << 1,
    REG_MR_FD = 1 << 2,
    REG_MR_FD_OFFSET = 1 << 3,
    REG_MR_DMAH = 1 << 4,
    REG_MR_BUF = 1 << 5, /* 64. */
};

/* A struct ibv_mr_init_attr. */
struct mr_init_attr_59 {
    size_t length;
    int access;
    uint64_t comp_mask; /* Which of these are there: REG_MR_... */
    uint64_t iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    struct ibv_dmah *dmah;
    struct ibv_buf *buf;
};

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);

struct ibv_dmah_init_attr;
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *handle);

/* -- 62 -----------------------------------------------------------------------------------------*/

int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
/* In units of 100 Mb/s. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);

/* -- 64: buffers, the first functions of theirs; 65: the export ---------------------------------*/

void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **buffer);
void ibv_free_buf(struct ibv_buf *buffer);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buffer, void *memory, size_t bytes,
                              int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buffer);

/* -- 65: completion counters --------------------------------------------------------------------*/

struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

int _ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
                              size_t caps_bytes);
struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
                                           struct ibv_comp_cntr_init_attr *attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter);
int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter,
                            struct ibv_qp_attach_comp_cntr_attr *attr);

#endif
