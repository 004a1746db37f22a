/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_commands - the commands of the rdma_cm device: what they share, and which is which.
 */
#include <string.h>

#include "drivers/system/initialised.h"
#include "kernel/cm_internal.h"

bool cm_read_in(const struct cm_command *command, void *to, size_t bytes)
{
    if (command->in_bytes < bytes) {
        return false;
    }
    memcpy(to, command->in, bytes);
    return true;
}

int cm_write_out(const struct cm_command *command, uint64_t response, const void *from,
                 size_t bytes)
{
    if (command->out_bytes < bytes) {
        return ENOSPC;
    }
    if (response == 0) {
        return EFAULT;
    }
    memcpy((void *)(uintptr_t)response, from, bytes);
    initialised((const void *)(uintptr_t)response, bytes);
    return 0;
}

struct cm_id *cm_find_id(const struct cm_command *command, uint32_t handle)
{
    struct cm_id *id = cm_handle_find(handle, CM_HANDLE_ID);
    if (id == NULL || id->core.channel != &command->file->channel) {
        return NULL;
    }
    INVARIANTS(cm_id_check(command->file, id));
    return id;
}

struct rdma_cm *cm_manager(const struct cm_command *command)
{
    return live_cm(command->file->live);
}

struct instant cm_now(const struct cm_command *command)
{
    return live_now(command->file->live);
}

int cm_execute(uint32_t number, struct cm_command *command)
{
    static int (*const commands[])(struct cm_command *) = {
        [RDMA_USER_CM_CMD_CREATE_ID] = cm_command_create_id,
        [RDMA_USER_CM_CMD_DESTROY_ID] = cm_command_destroy_id,
        [RDMA_USER_CM_CMD_BIND_IP] = cm_command_bind_ip,
        [RDMA_USER_CM_CMD_RESOLVE_IP] = cm_command_resolve_ip,
        [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = cm_command_resolve_route,
        [RDMA_USER_CM_CMD_QUERY_ROUTE] = cm_command_query_route,
        [RDMA_USER_CM_CMD_CONNECT] = cm_command_connect,
        [RDMA_USER_CM_CMD_LISTEN] = cm_command_listen,
        [RDMA_USER_CM_CMD_ACCEPT] = cm_command_accept,
        [RDMA_USER_CM_CMD_REJECT] = cm_command_reject,
        [RDMA_USER_CM_CMD_DISCONNECT] = cm_command_disconnect,
        [RDMA_USER_CM_CMD_INIT_QP_ATTR] = cm_command_init_qp_attributes,
        [RDMA_USER_CM_CMD_GET_EVENT] = cm_command_get_event,
        [RDMA_USER_CM_CMD_SET_OPTION] = cm_command_set_option,
        [RDMA_USER_CM_CMD_NOTIFY] = cm_command_notify,
        [RDMA_USER_CM_CMD_JOIN_IP_MCAST] = cm_command_join_ip_multicast,
        [RDMA_USER_CM_CMD_LEAVE_MCAST] = cm_command_leave_multicast,
        [RDMA_USER_CM_CMD_MIGRATE_ID] = cm_command_migrate_id,
        [RDMA_USER_CM_CMD_QUERY] = cm_command_query,
        [RDMA_USER_CM_CMD_BIND] = cm_command_bind,
        [RDMA_USER_CM_CMD_RESOLVE_ADDR] = cm_command_resolve_address,
        [RDMA_USER_CM_CMD_JOIN_MCAST] = cm_command_join_multicast,
        [CM_RESOLVE_IB_SERVICE] = cm_command_resolve_ib_service,
        [CM_WRITE_EVENT] = cm_command_write_event,
    };
    CHECK(!command->file->closed);
    if (number >= COUNT_OF(commands)) {
        return EINVAL;
    }
    return commands[number] == NULL ? ENOSYS : commands[number](command);
}
