/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_multicast - commands that join groups and leave them.
 */
#include <stdlib.h>

#include "base/status.h"
#include "kernel/cm_internal.h"

/* (locked) Its program knows it by a number; the id that joined has it in its list. */
static void multicast_check(const struct cm_multicast *multicast)
{
    const uint32_t handle = multicast->core.handle;
    CHECK(handle != 0 && cm_handle_find(handle, CM_HANDLE_MULTICAST) == multicast);
    CHECK(multicast->core.id != NULL && multicast->core.id->datagrams);
    CHECK(!list_empty(&multicast->node));
    list_check(&multicast->node);
}

static int join(struct cm_command *command, uint32_t handle, const void *sockaddr, size_t bytes,
                uint64_t uid, uint64_t response)
{
    struct rdma_address group;
    struct cm_id *id = cm_find_id(command, handle);
    if (id == NULL) {
        return ENOENT;
    }
    if (!cm_read_address(sockaddr, bytes, &group)) {
        return EINVAL;
    }
    /* Before the group is joined: nobody could name it to leave it. */
    if (command->out_bytes < sizeof(struct rdma_ucm_create_id_resp)) {
        return ENOSPC;
    }
    if (response == 0) {
        return EFAULT;
    }
    struct cm_multicast *multicast = calloc(1, sizeof(*multicast));
    const uint32_t taken = multicast == NULL ? 0 : cm_handle_take(CM_HANDLE_MULTICAST, multicast);
    if (taken == 0) {
        free(multicast);
        return ENOMEM;
    }
    const struct rdma_ucm_create_id_resp out = {.id = taken};
    int failure = cm_write_out(command, response, &out, sizeof(out));
    if (failure == 0) {
        failure = status_errno(
            rdma_multicast_join(cm_manager(command), &multicast->core, &id->core, &group, uid));
    }
    if (failure != 0) {
        cm_handle_give(taken);
        free(multicast);
        return failure;
    }
    multicast->core.handle = taken;
    list_init(&multicast->node);
    list_append(&id->multicasts, &multicast->node);
    INVARIANTS(multicast_check(multicast));
    return 0;
}

int cm_command_join_ip_multicast(struct cm_command *command)
{
    struct rdma_ucm_join_ip_mcast in;
    CM_READ_IN(command, in);
    return join(command, in.id, &in.addr, sizeof(in.addr), in.uid, in.response);
}

int cm_command_join_multicast(struct cm_command *command)
{
    struct rdma_ucm_join_mcast in;
    CM_READ_IN(command, in);
    if (in.addr_size > sizeof(in.addr) || in.join_flags > RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) {
        return EINVAL;
    }
    return join(command, in.id, &in.addr, in.addr_size, in.uid, in.response);
}

int cm_command_leave_multicast(struct cm_command *command)
{
    struct rdma_ucm_destroy_id in;
    CM_READ_IN(command, in);
    struct cm_multicast *multicast = cm_handle_find(in.id, CM_HANDLE_MULTICAST);
    if (multicast == NULL || multicast->core.id->channel != &command->file->channel) {
        return ENOENT;
    }
    INVARIANTS(multicast_check(multicast));
    const struct rdma_ucm_destroy_id_resp out = {.events_reported =
                                                     multicast->core.events_reported};
    const int failure = cm_write_out(command, in.response, &out, sizeof(out));
    if (failure == 0) {
        rdma_multicast_leave(cm_manager(command), &multicast->core);
        cm_handle_give(in.id);
        list_remove(&multicast->node);
        free(multicast);
    }
    return failure;
}
