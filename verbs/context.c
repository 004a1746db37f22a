/* SPDX-License-Identifier: BSD-2-Clause
 *
 * context - an opened device, and the slots that programs call through it without a symbol.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "kernel/describe.h"
#include "verbs/checking.h"
#include "verbs/efa.h"
#include "verbs/internal.h"
#include "verbs/odd.h"
#include "verbs/refusals.h"

static struct {
    pthread_mutex_t mutex;
    struct list all; /* struct context */
    uint32_t last_number;
} contexts = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all = {&contexts.all, &contexts.all}};

/* (mutex) A context has holders until it goes: the program, until it closes the context, and each
 * object that was made on it. */
static void context_check(const struct context *context)
{
    CHECK(context->live != NULL);
    CHECK(context->number != 0 && context->number <= contexts.last_number);
    list_check(&context->node);
}

/* The descriptor that programs duplicate and pass on to import a device by: nothing is behind it
 * but an inode to know it by. */
static bool identify(int fd, uint64_t *file)
{
    struct stat status;
    if (fd < 0 || system_status(fd, &status) != 0) {
        return false;
    }
    *file = status.st_ino;
    return true;
}

static void *refuse(int reason)
{
    char text[128];
    snprintf(text, sizeof(text), "no descriptor for an open device: %s", strerror(reason));
    process_complain(text);
    return fail(reason);
}

static void context_fill_slots(struct verbs_context *verbs, bool strict);

/* `fd` is the context's from now on, if there is one. */
static struct ibv_context *make(struct ibv_device *device, int fd)
{
    struct live *live = library_open();
    if (live == NULL) {
        return NULL;
    }
    struct context *context = calloc(1, sizeof(*context));
    if (context == NULL) {
        return fail(ENOMEM);
    }
    struct ibv_context *ibv = &context->verbs.context;
    if (!identify(fd, &context->file)) {
        const int reason = errno;
        free(context);
        return refuse(reason);
    }
    context->live = live;
    event_open(context);
    pthread_mutex_init(&context->mutex, NULL);
    pthread_mutex_init(&ibv->mutex, NULL);
    ibv->device = device;
    ibv->cmd_fd = descriptor_lend(fd);
    ibv->num_comp_vectors = 1;
    ibv->async_fd = descriptor_lend(system_eventfd(EFD_CLOEXEC | EFD_SEMAPHORE));
    if (ibv->async_fd < 0) {
        const int reason = errno;
        free(context);
        return refuse(reason);
    }
    context->verbs.sz = sizeof(context->verbs);
    ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
    context_fill_slots(&context->verbs, live_is_strict(live));
    pthread_mutex_lock(&contexts.mutex);
    atomic_init(&context->holders, 1);
    context->number = ++contexts.last_number;
    list_append(&contexts.all, &context->node);
    INVARIANTS(context_check(context));
    pthread_mutex_unlock(&contexts.mutex);
    return ibv;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    int fd = memfd_create(device->name, MFD_CLOEXEC);
    if (fd < 0 && errno != EMFILE && errno != ENFILE) {
        /* An old kernel, or a filter: any other file with an inode of its own does, too. */
        fd = system_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    if (fd < 0) {
        return refuse(errno);
    }
    struct ibv_context *context = make(device, fd);
    if (context == NULL) {
        descriptor_close(fd);
        return NULL;
    }
    return context;
}

/* A context of this process with the same file; NULL: none. Contexts of other processes cannot be
 * imported, since each process is a NIC. */
EXPORT struct ibv_context *ibv_import_device(int fd)
{
    uint64_t file;
    struct ibv_device *device = NULL;
    if (is_efa()) {
        return fail(EOPNOTSUPP);
    }
    errno = EBADF;
    if (!identify(fd, &file)) {
        return NULL;
    }
    pthread_mutex_lock(&contexts.mutex);
    for (struct list *node = contexts.all.next; node != &contexts.all; node = node->next) {
        const struct context *context = CONTAINER_OF(node, struct context, node);
        if (context->file == file && !is_closed(&context->verbs.context)) {
            device = context->verbs.context.device;
        }
    }
    pthread_mutex_unlock(&contexts.mutex);
    return device == NULL ? fail(EOPNOTSUPP) : make(device, fd);
}

/* Is another context with its file open? */
static bool is_shared(const struct context *context)
{
    bool shared = false;
    pthread_mutex_lock(&contexts.mutex);
    for (struct list *node = contexts.all.next; node != &contexts.all; node = node->next) {
        const struct context *other = CONTAINER_OF(node, struct context, node);
        shared = shared || (other->file == context->file && !is_closed(&other->verbs.context));
    }
    pthread_mutex_unlock(&contexts.mutex);
    return shared;
}

bool context_is_over(const struct ibv_context *ibv)
{
    const struct context *context = CONTAINER_OF_CONST(ibv, struct context, verbs.context);
    return is_closed(ibv) && !is_shared(context);
}

void context_each(void (*visit)(void *state, struct context *context), void *state)
{
    pthread_mutex_lock(&contexts.mutex);
    for (struct list *node = contexts.all.next; node != &contexts.all; node = node->next) {
        INVARIANTS(context_check(CONTAINER_OF(node, struct context, node)));
        visit(state, CONTAINER_OF(node, struct context, node));
    }
    pthread_mutex_unlock(&contexts.mutex);
}

void context_free(struct context *context)
{
    pthread_mutex_lock(&contexts.mutex);
    INVARIANTS(context_check(context));
    CHECK(list_empty(&context->events)); /* It was closed, and is told nothing since then. */
    list_remove(&context->node);
    pthread_mutex_unlock(&contexts.mutex);
    pthread_mutex_destroy(&context->verbs.context.mutex);
    pthread_mutex_destroy(&context->mutex);
    free(context->handles);
    free(context);
}

EXPORT int ibv_close_device(struct ibv_context *ibv)
{
    struct context *context = context_of(ibv);
    event_close(context);
    if (!is_shared(context)) {
        live_lock(context->live);
        context_end_objects(context->live, context->file);
        unlock_settled(context->live);
    }
    descriptor_take_back(ibv->cmd_fd);
    descriptor_take_back(ibv->async_fd);
    context_release(ibv);
    return 0;
}

void context_in_child(void)
{
    pthread_mutex_init(&contexts.mutex, NULL);
}

/* -- Calls that are not offered -----------------------------------------------------------------*/

/* Programs may call a slot without a check for NULL, so each slot has a function that fails. */
REFUSE_POINTER(struct ibv_counters, no_counters, U struct ibv_context *context,
               U struct ibv_counters_init_attr *attr)
REFUSE_POINTER(struct ibv_flow_action, no_flow_action, U struct ibv_context *context,
               U struct ibv_flow_action_esp_attr *attr)
REFUSE_POINTER(struct ibv_rwq_ind_table, no_rwq_ind_table, U struct ibv_context *context,
               U struct ibv_rwq_ind_table_init_attr *attr)
REFUSE_POINTER(struct ibv_wq, no_wq, U struct ibv_context *context, U struct ibv_wq_init_attr *attr)
REFUSE_POINTER(struct ibv_flow, no_flow, U struct ibv_qp *qp, U struct ibv_flow_attr *attr)
REFUSE_INT(no_read_counters, U struct ibv_counters *counters, U uint64_t *values, U uint32_t count,
           U uint32_t flags)
REFUSE_INT(no_attach_counters, U struct ibv_counters *counters,
           U struct ibv_counter_attach_attr *attr, U struct ibv_flow *flow)
REFUSE_INT(no_destroy_counters, U struct ibv_counters *counters)
REFUSE_INT(no_modify_flow_action, U struct ibv_flow_action *action,
           U struct ibv_flow_action_esp_attr *attr)
REFUSE_INT(no_destroy_flow_action, U struct ibv_flow_action *action)
REFUSE_INT(no_rate_limit, U struct ibv_qp *qp, U struct ibv_qp_rate_limit_attr *attr)
REFUSE_INT(no_modify_cq, U struct ibv_cq *cq, U struct ibv_modify_cq_attr *attr)
REFUSE_INT(no_srq_ops, U struct ibv_srq *srq, U struct ibv_ops_wr *op, U struct ibv_ops_wr **bad)
REFUSE_INT(no_destroy_rwq_ind_table, U struct ibv_rwq_ind_table *table)
REFUSE_INT(no_destroy_wq, U struct ibv_wq *wq)
REFUSE_INT(no_modify_wq, U struct ibv_wq *wq, U struct ibv_wq_attr *attr)
REFUSE_INT(no_destroy_flow, U struct ibv_flow *flow)

/* Completion timestamps count the nanoseconds of CLOCK_MONOTONIC. */
static int query_clock(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) {
        return EINVAL;
    }
    clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    return 0;
}

/* Fills the slots that programs call without a symbol. */
static void context_fill_slots(struct verbs_context *verbs, bool strict)
{
    verbs->query_port = port_query;
    verbs->advise_mr = mr_advise;
    verbs->alloc_null_mr = mr_alloc_null;
    verbs->read_counters = no_read_counters;
    verbs->attach_counters_point_flow = no_attach_counters;
    verbs->create_counters = no_counters;
    verbs->destroy_counters = no_destroy_counters;
    verbs->reg_dm_mr = dm_register;
    verbs->alloc_dm = dm_alloc;
    verbs->free_dm = dm_free;
    verbs->modify_flow_action_esp = no_modify_flow_action;
    verbs->destroy_flow_action = no_destroy_flow_action;
    verbs->create_flow_action_esp = no_flow_action;
    verbs->modify_qp_rate_limit = no_rate_limit;
    verbs->alloc_parent_domain = pd_alloc_parent;
    verbs->dealloc_td = td_dealloc;
    verbs->alloc_td = td_alloc;
    verbs->modify_cq = no_modify_cq;
    verbs->post_srq_ops = no_srq_ops;
    verbs->destroy_rwq_ind_table = no_destroy_rwq_ind_table;
    verbs->create_rwq_ind_table = no_rwq_ind_table;
    verbs->destroy_wq = no_destroy_wq;
    verbs->modify_wq = no_modify_wq;
    verbs->create_wq = no_wq;
    verbs->query_rt_values = query_clock;
    verbs->create_cq_ex = cq_create_ex;
    verbs->query_device_ex = device_query_ex;
    verbs->ibv_destroy_flow = no_destroy_flow;
    verbs->ibv_create_flow = no_flow;
    verbs->open_qp = xrc_open_qp;
    verbs->create_qp_ex = qp_create_ex;
    verbs->get_srq_num = srq_get_number;
    verbs->create_srq_ex = srq_create_ex;
    verbs->open_xrcd = xrcd_open;
    verbs->close_xrcd = xrcd_close;
    struct ibv_context_ops *ops = &verbs->context.ops;
    ops->alloc_mw = mw_alloc;
    ops->bind_mw = bind_mw;
    ops->dealloc_mw = mw_dealloc;
    ops->poll_cq = strict ? cq_poll_wc_strictly : cq_poll_wc;
    ops->req_notify_cq = cq_request_notify;
    ops->post_srq_recv = strict ? post_srq_recv_strictly : post_srq_recv;
    ops->post_send = strict ? post_send_strictly : post_send;
    ops->post_recv = strict ? post_recv_strictly : post_recv;
    if (is_checked()) {
        ops->poll_cq = cq_poll_wc_checked;
        ops->post_srq_recv = checked_post_srq_recv;
        ops->post_send = checked_post_send;
        ops->post_recv = checked_post_recv;
    }
    if (odd_wanted != 0) {
        ops->poll_cq = cq_poll_wc_odd;
    }
    if (is_odd(ODD_ORDER) && !is_checked()) {
        ops->post_srq_recv = post_srq_recv_as_wished;
    }
    if (is_efa()) {
        efa_fill_slots(verbs);
    }
}
