/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_connect - commands of connections, and the events that tell of them.
 */
#include <unistd.h>

#include "base/status.h"
#include "kernel/cm_internal.h"

int cm_command_connect(struct cm_command *command)
{
    struct rdma_ucm_connect in;
    if (!cm_read_in(command, &in, offsetof(struct rdma_ucm_connect, ece))) {
        return EINVAL;
    }
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    if (!in.conn_param.valid) {
        return EINVAL;
    }
    struct rdma_parameters parameters;
    cm_read_parameters(&in.conn_param, &parameters);
    return status_errno(rdma_id_connect(cm_manager(command), &id->core, &parameters));
}

int cm_command_accept(struct cm_command *command)
{
    struct rdma_ucm_accept in;
    if (!cm_read_in(command, &in, offsetof(struct rdma_ucm_accept, ece))) {
        return EINVAL;
    }
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    if (!in.conn_param.valid) {
        return status_errno(rdma_id_establish(cm_manager(command), &id->core, cm_now(command)));
    }
    struct rdma_parameters parameters;
    cm_read_parameters(&in.conn_param, &parameters);
    const enum status status =
        rdma_id_accept(cm_manager(command), &id->core, &parameters, in.uid, cm_now(command));
    return status_errno(status);
}

int cm_command_reject(struct cm_command *command)
{
    struct rdma_ucm_reject in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    const enum cm_reason reason = in.reason == 0 ? CM_REASON_CONSUMER : (enum cm_reason)in.reason;
    if (reason != CM_REASON_CONSUMER && reason != CM_REASON_VENDOR_OPTION) {
        return EINVAL;
    }
    return status_errno(rdma_id_reject(cm_manager(command), &id->core, reason, in.private_data,
                                       in.private_data_len));
}

int cm_command_disconnect(struct cm_command *command)
{
    struct rdma_ucm_disconnect in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    return id == NULL
               ? ENOENT
               : status_errno(rdma_id_disconnect(cm_manager(command), &id->core, cm_now(command)));
}

int cm_command_init_qp_attributes(struct cm_command *command)
{
    struct rdma_ucm_init_qp_attr in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    struct ib_uverbs_qp_attr out;
    const int failure = cm_write_qp_attributes(command->file->live, &id->core, in.qp_state, &out);
    return failure != 0 ? failure : cm_write_out(command, in.response, &out, sizeof(out));
}

int cm_command_notify(struct cm_command *command)
{
    struct rdma_ucm_notify in;
    CM_READ_IN(command, in);
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    if (in.event != IBV_EVENT_COMM_EST) {
        return EINVAL; /* Another path is never loaded, so there is none to go to. */
    }
    if (id->core.connection.state == CM_STATE_ESTABLISHED) {
        return EISCONN;
    }
    return status_errno(rdma_id_note_established(cm_manager(command), &id->core));
}

/* A peer's request becomes an id of this file, under a handle of its own. EAGAIN: no event. */
int cm_command_get_event(struct cm_command *command)
{
    struct rdma_ucm_get_event in;
    CM_READ_IN(command, in);
    struct cm_file *file = command->file;
    const size_t old = offsetof(struct rdma_ucm_event_resp, ece);
    if (command->out_bytes < old - sizeof(uint32_t)) {
        return ENOSPC;
    }
    if (in.response == 0) {
        return EFAULT;
    }
    const struct rdma_event *next = rdma_channel_peek(&file->channel);
    if (next == NULL) {
        return EAGAIN;
    }
    if (next->kind == RDMA_EVENT_CONNECT_REQUEST && next->id->handle == 0) {
        struct cm_id *id = CONTAINER_OF(next->id, struct cm_id, core);
        INVARIANTS(CHECK(list_empty(&id->node) && id->core.channel == &file->channel));
        id->core.handle = cm_handle_take(CM_HANDLE_ID, id);
        if (id->core.handle == 0) {
            return ENOMEM;
        }
        list_append(&file->ids, &id->node);
    }
    struct rdma_event *event = rdma_channel_take(cm_manager(command), &file->channel);
    CHECK(event == next);
    INVARIANTS(cm_id_check(file, CONTAINER_OF(event->id, struct cm_id, core)));
    file->taker = gettid();
    struct rdma_ucm_event_resp out;
    cm_write_event(file->live, event, &out);
    const size_t bytes = command->out_bytes < sizeof(out) ? command->out_bytes : sizeof(out);
    live_cm_give_back(file->live, event);
    return cm_write_out(command, in.response, &out, bytes);
}

int cm_command_write_event(struct cm_command *command)
{
    struct cm_write_event in;
    CM_READ_IN(command, in);
    if (in.event != RDMA_EVENT_USER && in.event != RDMA_EVENT_INTERNAL) {
        return EINVAL;
    }
    struct cm_id *id = cm_find_id(command, in.id);
    if (id == NULL) {
        return ENOENT;
    }
    return status_errno(rdma_id_tell(cm_manager(command), &id->core, (enum rdma_event_kind)in.event,
                                     (int)in.status, in.param.argument));
}
