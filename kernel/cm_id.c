/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_id - commands that make ids, end them, move them and set their options.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "kernel/cm_internal.h"

int cm_command_create_id(struct cm_command *command)
{
    struct rdma_ucm_create_id in;
    CM_READ_IN(command, in);
    if (in.ps != RDMA_PS_TCP && in.ps != RDMA_PS_UDP && in.ps != RDMA_PS_IPOIB &&
        in.ps != RDMA_PS_IB) {
        return EINVAL;
    }
    struct cm_id *id = cm_id_make();
    if (id == NULL) {
        return ENOMEM;
    }
    rdma_id_init(&id->core, &command->file->channel, in.ps, in.uid);
    if (in.ps == RDMA_PS_IB) {
        rdma_id_set_service(&id->core, in.qp_type == IBV_QPT_UD   ? ROCE_SERVICE_UD
                                       : in.qp_type == IBV_QPT_UC ? ROCE_SERVICE_UC
                                                                  : ROCE_SERVICE_RC);
    }
    id->core.handle = cm_handle_take(CM_HANDLE_ID, id);
    const struct rdma_ucm_create_id_resp out = {.id = id->core.handle};
    const int failure =
        id->core.handle == 0 ? ENOMEM : cm_write_out(command, in.response, &out, sizeof(out));
    if (failure != 0) {
        cm_handle_give(id->core.handle);
        free(id);
        return failure;
    }
    list_append(&command->file->ids, &id->node);
    INVARIANTS(cm_id_check(command->file, id));
    return 0;
}

int cm_command_destroy_id(struct cm_command *command)
{
    struct rdma_ucm_destroy_id in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    const struct rdma_ucm_destroy_id_resp out = {.events_reported = id->core.events_reported};
    const int failure = cm_write_out(command, in.response, &out, sizeof(out));
    if (failure == 0) {
        cm_id_destroy(command->file->live, id);
    }
    return failure;
}

/* Called on the new file, naming the old one. */
int cm_command_migrate_id(struct cm_command *command)
{
    struct rdma_ucm_migrate_id in;
    CM_READ_IN(command, in);
    struct cm_file *from = cm_file_of((int)in.fd);
    if (from == NULL) {
        return EINVAL;
    }
    struct cm_id *id = cm_handle_find(in.id, CM_HANDLE_ID);
    if (id == NULL || id->core.channel != &from->channel) {
        return ENOENT;
    }
    INVARIANTS(cm_id_check(from, id));
    const struct rdma_ucm_migrate_resp out = {.events_reported = id->core.events_reported};
    const int failure = cm_write_out(command, in.response, &out, sizeof(out));
    if (failure == 0) {
        rdma_id_migrate(cm_manager(command), &id->core, &command->file->channel);
        list_remove(&id->node);
        list_append(&command->file->ids, &id->node);
        INVARIANTS(cm_id_check(command->file, id));
    }
    return failure;
}

/* -- Options ------------------------------------------------------------------------------------*/

static int set_id_option(struct cm_id *id, uint32_t name, const uint8_t *value, uint32_t bytes)
{
    int number = 0;
    if (bytes == sizeof(number)) {
        memcpy(&number, value, sizeof(number));
    }
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        if (bytes != 1) {
            return EINVAL;
        }
        rdma_id_set_type_of_service(&id->core, value[0]);
        return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        return bytes != 1 ? EINVAL : status_errno(rdma_id_set_ack_timeout(&id->core, value[0]));
    case RDMA_OPTION_ID_REUSEADDR:
        if (bytes != sizeof(number)) {
            return EINVAL;
        }
        if (!rdma_id_is_idle(&id->core) && (number == 0 || id->core.state == RDMA_ID_LISTENING)) {
            return EINVAL;
        }
        id->reuse_address = number != 0;
        return 0;
    case RDMA_OPTION_ID_AFONLY:
        return bytes != sizeof(number)
                   ? EINVAL
                   : status_errno(rdma_id_set_ipv6_only(&id->core, number != 0));
    default: return ENOSYS;
    }
}

int cm_command_set_option(struct cm_command *command)
{
    struct rdma_ucm_set_option in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    const uint8_t *value = (const uint8_t *)(uintptr_t)in.optval;
    if (value == NULL) {
        return EFAULT;
    }
    if (in.level == RDMA_OPTION_ID) {
        return set_id_option(id, in.optname, value, in.optlen);
    }
    /* The path a program knows from elsewhere is the one there is: its GIDs are the addresses. */
    if (in.level != RDMA_OPTION_IB || in.optname != RDMA_OPTION_IB_PATH) {
        return ENOSYS;
    }
    if (in.optlen == 0 || in.optlen % sizeof(struct ib_path_rec_data) != 0) {
        return EINVAL;
    }
    return status_errno(rdma_id_resolve_route(cm_manager(command), &id->core));
}
