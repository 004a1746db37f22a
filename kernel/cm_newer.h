/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_newer - additions of Linux 6.17 to the commands of the rdma_cm device, as librdmacm 60 and
 * later write them. The header that this is compiled with is older.
 */
#ifndef KERNEL_CM_NEWER_H
#define KERNEL_CM_NEWER_H

#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CM_RESOLVE_IB_SERVICE = RDMA_USER_CM_CMD_JOIN_MCAST + 1,
    CM_WRITE_EVENT,
};

/* The things that RDMA_USER_CM_CMD_QUERY may ask for. */
enum {
    CM_QUERY_IB_SERVICE = RDMA_USER_CM_QUERY_GID + 1,
};

struct cm_resolve_ib_service {
    uint32_t id;
    uint32_t reserved;
    uint64_t service_id;
    uint8_t service_name[64];
    uint32_t flags;
    uint32_t reserved_too;
};

/* The answer to CM_QUERY_IB_SERVICE begins so; records follow. */
struct cm_ib_services {
    uint32_t count;
    uint32_t reserved;
};

struct cm_write_event {
    uint32_t id;
    uint32_t reserved;
    uint32_t event; /* RDMA_EVENT_USER or RDMA_EVENT_INTERNAL. */
    uint32_t status;
    union {
        struct rdma_ucm_conn_param conn;
        struct rdma_ucm_ud_param ud;
        uint64_t argument;
    } param;
};

_Static_assert(sizeof(struct cm_resolve_ib_service) == 88, "as librdmacm has it");
_Static_assert(sizeof(struct cm_write_event) == 320, "as librdmacm has it");
_Static_assert(offsetof(struct cm_write_event, param) == 16, "as librdmacm has it");

#endif
