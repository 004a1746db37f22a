/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cq - completion queues.
 */
#include <stdlib.h>
#include <time.h>

#include "verbs/checking.h"
#include "verbs/efa_mapped.h"
#include "verbs/internal.h"
#include "verbs/odd.h"
#include "verbs/strict.h"

/* -- All of them --------------------------------------------------------------------------------*/

static struct {
    pthread_mutex_t mutex;
    struct list all; /* struct verbs_cq */
    uint32_t last_handle;
} queues = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all = {&queues.all, &queues.all}};

/* It gets a number among them. All else of it is there: others may look at it from now on. */
static void enter(struct verbs_cq *cq)
{
    pthread_mutex_lock(&queues.mutex);
    cq->ex.handle = ++queues.last_handle;
    list_append(&queues.all, &cq->node);
    pthread_mutex_unlock(&queues.mutex);
}

static void leave(struct verbs_cq *cq)
{
    pthread_mutex_lock(&queues.mutex);
    list_remove(&cq->node);
    pthread_mutex_unlock(&queues.mutex);
}

void cq_each(void (*visit)(void *state, const struct verbs_cq *cq), void *state)
{
    pthread_mutex_lock(&queues.mutex);
    for (struct list *node = queues.all.next; node != &queues.all; node = node->next) {
        visit(state, CONTAINER_OF(node, struct verbs_cq, node));
    }
    pthread_mutex_unlock(&queues.mutex);
}

void cq_in_child(void)
{
    pthread_mutex_init(&queues.mutex, NULL);
}

/* (locked) The ring is the core's, and has its entries; a parent domain is named where the program
 * may have given the memory. */
static void verbs_cq_check(const struct verbs_cq *cq)
{
    cq_check(&cq->core);
    CHECK(cq->core.ring == cq->ring);
    CHECK(((size_t)cq->core.mask + 1) * sizeof(*cq->ring) <= cq->memory.bytes);
    CHECK(!cq->memory.lent || cq->parent != NULL);
    list_check(&cq->core.notify);
    CHECK(list_empty(&cq->core.event_link) == (cq->core.events == 0));
}

/* -- Creation -----------------------------------------------------------------------------------*/

static struct verbs_cq *create(struct ibv_context *context, uint32_t entries, void *cq_context,
                               struct ibv_comp_channel *channel, uint32_t vector,
                               struct ibv_pd *parent)
{
    if (entries == 0 || entries > limits_of(context)->cq_entries || vector != 0) {
        return fail(EINVAL);
    }
    if (!STRICT_JOINS(context, channel) || !STRICT_JOINS(context, parent)) {
        return NULL;
    }
    entries = odd_entries(entries, limits_of(context)->cq_entries);
    struct verbs_cq *cq = object_make(context, sizeof(*cq));
    if (cq == NULL) {
        return NULL;
    }
    struct memory memory;
    struct completion *ring =
        memory_take(parent, cq_ring_entries(entries) * sizeof(*ring), MEMORY_CQ, &memory);
    if (ring == NULL) {
        object_free(context, cq);
        return fail(ENOMEM);
    }
    cq->ring = ring;
    cq->memory = memory;
    cq->parent = parent;
    cq->sole.promised = has_thread_domain(parent);
    cq_init(&cq->core, entries, ring);
    if (is_efa() && !efa_note_sources(&cq->core)) {
        memory_give(parent, ring, &memory, MEMORY_CQ);
        object_free(context, cq);
        return fail(ENOMEM);
    }
    list_init(&cq->core.notify);
    list_init(&cq->core.event_link);
    list_init(&cq->waiting);
    cq->ex.context = context;
    cq->ex.channel = channel;
    cq->ex.cq_context = cq_context;
    cq->ex.cqe = (int)entries;
    INVARIANTS(verbs_cq_check(cq));
    pthread_mutex_init(&cq->ex.mutex, NULL);
    pthread_cond_init(&cq->ex.cond, NULL);
    if (channel != NULL) {
        pthread_mutex_lock(&channel_of(channel)->mutex);
        channel->refcnt++;
        pthread_mutex_unlock(&channel_of(channel)->mutex);
    }
    enter(cq);
    if (is_checked()) {
        checking_cq_made(cq);
    }
    return cq;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector)
{
    if (cqe <= 0 || vector < 0) {
        return fail(EINVAL);
    }
    struct verbs_cq *cq =
        create(context, (uint32_t)cqe, cq_context, channel, (uint32_t)vector, NULL);
    return cq == NULL ? NULL : (struct ibv_cq *)(void *)&cq->ex;
}

/* (the queue's mutex) */
static bool is_acknowledged(const struct verbs_cq *cq)
{
    return cq->ex.comp_events_completed == cq->comp_events_delivered &&
           cq->ex.async_events_completed == cq->async_events_delivered;
}

/* (the queue's mutex) Another thread may still acknowledge. False: none has for a second. */
static bool wait_a_second(struct verbs_cq *cq)
{
    struct timespec end;
    int reason = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    while (!is_acknowledged(cq) && reason == 0) {
        reason = pthread_cond_timedwait(&cq->ex.cond, &cq->ex.mutex, &end);
    }
    return is_acknowledged(cq);
}

static void wait_for_acknowledgements(struct verbs_cq *cq)
{
    pthread_mutex_lock(&cq->ex.mutex);
    if (is_checked() && !wait_a_second(cq)) {
        pthread_mutex_unlock(&cq->ex.mutex);
        checking_cq_ends(cq);
        pthread_mutex_lock(&cq->ex.mutex);
    }
    while (!is_acknowledged(cq)) {
        pthread_cond_wait(&cq->ex.cond, &cq->ex.mutex);
    }
    pthread_mutex_unlock(&cq->ex.mutex);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct verbs_cq *cq = cq_of(ibv);
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(verbs_cq_check(cq));
    if (cq->core.users > 0) {
        live_unlock(live);
        return checking_busy("completion queue");
    }
    nic_forget_cq(&cq->core);
    INVARIANTS(CHECK(list_empty(&cq->core.notify) && cq->core.events == 0));
    live_unlock(live);
    if (is_efa()) {
        efa_unmap_cq(cq);
    }
    leave(cq);
    event_forget(context_of(ibv->context), cq);
    if (ibv->channel != NULL) {
        channel_forget(channel_of(ibv->channel), cq);
    }
    wait_for_acknowledgements(cq);
    if (is_checked()) {
        checking_cq_gone(ibv->handle);
    }
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    free(cq->core.sources);
    memory_give(cq->parent, cq->ring, &cq->memory, MEMORY_CQ);
    object_free(ibv->context, cq);
    return 0;
}

EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
    if (is_efa()) {
        return EOPNOTSUPP;
    }
    if (cqe <= 0 || (uint32_t)cqe > limits_of(ibv->context)->cq_entries) {
        return EINVAL;
    }
    struct verbs_cq *cq = cq_of(ibv);
    struct memory memory;
    struct completion *ring =
        memory_take(cq->parent, cq_ring_entries((uint32_t)cqe) * sizeof(*ring), MEMORY_CQ, &memory);
    if (ring == NULL) {
        return ENOMEM;
    }
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(verbs_cq_check(cq));
    const bool fits = cq_count(&cq->core) <= (uint32_t)cqe;
    if (fits) {
        const struct memory old = cq->memory;
        cq->ring = ring;
        cq->memory = memory;
        ring = cq_resize(&cq->core, (uint32_t)cqe, ring);
        memory = old;
        ibv->cqe = cqe;
        INVARIANTS(verbs_cq_check(cq));
    }
    live_unlock(live);
    if (is_checked() && fits) {
        checking_cq_resized(cq);
    }
    memory_give(cq->parent, ring, &memory, MEMORY_CQ);
    return fits ? 0 : EINVAL;
}

/* -- Polling ------------------------------------------------------------------------------------*/

/* A request ended with a local QP operation error, which has one cause: said once. */
static void explain_depth(void)
{
    static bool explained;
    if (!__atomic_exchange_n(&explained, true, __ATOMIC_RELAXED)) {
        process_complain(
            "a READ, atomic or FLUSH cannot be sent by a queue pair whose max_rd_atomic is 0: it "
            "needs at least 1 (ibv_modify_qp, initiator_depth of rdma_conn_param)");
    }
}

static void explain(const struct completion *completion)
{
    if (UNLIKELY(completion->status == COMPLETION_LOCAL_QP_OPERATION)) {
        explain_depth();
    }
}

static void to_wc(const struct completion *completion, struct ibv_wc *wc)
{
    explain(completion);
    wc_fill(completion, wc);
}

/* Takes up to `count` completions that are there. */
static ALWAYS_INLINE int take_wcs(struct live *live, struct cq *cq, struct ibv_wc *wc, int count,
                                  bool strict)
{
    const uint32_t waiting = cq_count(cq);
    const uint32_t taken = (uint32_t)count < waiting ? (uint32_t)count : waiting;
    for (uint32_t i = 0; i < taken; i++) {
        if (strict) {
            slots_polled(live_nic(live), cq_peek(cq, i), 1);
        }
        to_wc(cq_peek(cq, i), &wc[i]);
    }
    cq_drop(cq, taken);
    return (int)taken;
}

/* Takes completions that are there, else those that one round of the NIC brings. Made twice, like
 * the calls that post. */
static ALWAYS_INLINE int poll_wc(struct ibv_cq *ibv, int count, struct ibv_wc *wc, bool strict)
{
    struct verbs_cq *cq = cq_of(ibv);
    struct live *live = live_of(ibv->context);
    int total = 0;
    live_lock(live);
    INVARIANTS(verbs_cq_check(cq));
    if (LIKELY(count > 0)) {
        const bool armed = cq->core.arming != CQ_NOT_ARMED;
        total = take_wcs(live, &cq->core, wc, count, strict);
        if (total > 0) {
            live_reaped(live, armed);
        } else {
            live_progress(live, armed);
            total = take_wcs(live, &cq->core, wc, count, strict);
        }
    }
    const bool overrun = cq->core.overrun && total == 0;
    live_unlock(live);
    initialised(wc, (size_t)total * sizeof(*wc));
    return overrun ? -1 : total;
}

int cq_poll_wc(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    return poll_wc(ibv, count, wc, false);
}

int cq_poll_wc_strictly(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    return poll_wc(ibv, count, wc, true);
}

int cq_poll_wc_checked(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    struct sole *sole = &cq_of(ibv)->sole;
    struct checker *checker = checking_enter_queue(ibv->context, sole, 0);
    const int found = poll_wc(ibv, count, wc, live_is_strict(live_of(ibv->context)));
    for (int i = 0; i < found; i++) {
        const struct completion completion = {.wr_id = wc[i].wr_id,
                                              .status = (uint8_t)wc[i].status,
                                              .kind = (uint8_t)wc[i].opcode,
                                              .qpn = wc[i].qp_num,
                                              .source_qpn = wc[i].src_qp};
        checking_polled(checker, &completion);
    }
    if (found < 0) {
        checker_poll_failed(checker, ibv->handle);
    }
    checking_leave_queue(sole);
    return found;
}

/* A completion was polled while the queue was armed, or not. As if it had come behind the request
 * for an event, it brings one, which the program takes when there is no completion any more. */
static void odd_event_of(struct verbs_cq *cq, bool armed)
{
    struct live *live = live_of(cq->ex.context);
    if (!armed || !odd_event()) {
        return;
    }
    live_lock(live);
    if (cq->core.arming == CQ_ARMED_NEXT) {
        cq->core.arming = CQ_NOT_ARMED;
        event_on_completion(&cq->core);
    }
    live_unlock(live);
}

int cq_poll_wc_odd(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    const bool armed = cq_of(ibv)->core.arming == CQ_ARMED_NEXT;
    const bool strict = live_is_strict(live_of(ibv->context));
    const int most = odd_is_late(ibv->channel) ? 0 : count;
    const int found =
        is_checked() ? cq_poll_wc_checked(ibv, most, wc) : poll_wc(ibv, most, wc, strict);
    odd_order(wc, found);
    for (int i = 0; i < found; i++) {
        odd_completion(&wc[i]);
    }
    if (found > 0) {
        odd_event_of(cq_of(ibv), armed);
    }
    return found;
}

int cq_request_notify(struct ibv_cq *ibv, int solicited_only)
{
    struct live *live = live_of(ibv->context);
    live_lock(live);
    cq_arm(&cq_of(ibv)->core, solicited_only != 0);
    live_will_block(live);
    live_unlock(live);
    return 0;
}

/* -- Extended queues ----------------------------------------------------------------------------*/

static struct verbs_cq *ex_of(struct ibv_cq_ex *ex)
{
    return CONTAINER_OF(ex, struct verbs_cq, ex);
}

/* The fields programs read directly. */
static void show_current(struct verbs_cq *cq)
{
    INVARIANTS(CHECK(cq->current.qpn != 0)); /* A completion was taken. */
    explain(&cq->current);
    cq->ex.status = (enum ibv_wc_status)cq->current.status;
    cq->ex.wr_id = cq->current.wr_id;
}

/* The same for an extended queue, a completion at a time. */
static ALWAYS_INLINE uint32_t poll_first_of(struct live *live, struct verbs_cq *cq)
{
    INVARIANTS(verbs_cq_check(cq));
    const bool armed = cq->core.arming != CQ_NOT_ARMED;
    const uint32_t found = cq_poll(&cq->core, &cq->current, 1);
    if (found > 0) {
        live_reaped(live, armed);
        return found;
    }
    live_progress(live, armed);
    return cq_poll(&cq->core, &cq->current, 1);
}

static ALWAYS_INLINE int ex_poll(struct ibv_cq_ex *ex, bool first, bool strict)
{
    struct verbs_cq *cq = ex_of(ex);
    struct live *live = live_of(ex->context);
    live_lock(live);
    const uint32_t found = first ? poll_first_of(live, cq) : cq_poll(&cq->core, &cq->current, 1);
    if (strict) {
        slots_polled(live_nic(live), &cq->current, found);
    }
    live_unlock(live);
    if (found == 0) {
        return ENOENT;
    }
    show_current(cq);
    return 0;
}

static int ex_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    return attr->comp_mask != 0 ? EINVAL : ex_poll(ex, true, false);
}

static int ex_start_poll_strictly(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    return attr->comp_mask != 0 ? EINVAL : ex_poll(ex, true, true);
}

static int ex_next_poll(struct ibv_cq_ex *ex)
{
    return ex_poll(ex, false, false);
}

static int ex_next_poll_strictly(struct ibv_cq_ex *ex)
{
    return ex_poll(ex, false, true);
}

static int poll_first(struct ibv_cq_ex *ex)
{
    return ex_poll(ex, true, live_is_strict(live_of(ex->context)));
}

static int poll_next(struct ibv_cq_ex *ex)
{
    return ex_poll(ex, false, live_is_strict(live_of(ex->context)));
}

static int ex_start_poll_checked(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    return attr->comp_mask != 0 ? EINVAL : checking_poll(ex_of(ex), poll_first);
}

static int ex_next_poll_checked(struct ibv_cq_ex *ex)
{
    return checking_poll(ex_of(ex), poll_next);
}

static int poll_oddly(struct ibv_cq_ex *ex, int (*poll)(struct ibv_cq_ex *ex))
{
    const bool armed = ex_of(ex)->core.arming == CQ_ARMED_NEXT;
    const int reason = is_checked() ? checking_poll(ex_of(ex), poll) : poll(ex);
    if (reason == 0) {
        odd_current(&ex_of(ex)->current);
        odd_event_of(ex_of(ex), armed);
    }
    return reason;
}

static int ex_start_poll_odd(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    if (attr->comp_mask == 0 && odd_is_late(ex->channel)) {
        return ENOENT;
    }
    return attr->comp_mask != 0 ? EINVAL : poll_oddly(ex, poll_first);
}

static int ex_next_poll_odd(struct ibv_cq_ex *ex)
{
    return poll_oddly(ex, poll_next);
}

/* The completion was copied out: there is nothing to give back. */
static void ex_end_poll(struct ibv_cq_ex *ex)
{
    (void)ex;
}

static enum ibv_wc_opcode ex_read_opcode(struct ibv_cq_ex *ex)
{
    return (enum ibv_wc_opcode)ex_of(ex)->current.kind;
}

static uint32_t ex_read_vendor_err(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.vendor_error;
}

static uint32_t ex_read_byte_len(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.bytes;
}

static __be32 ex_read_imm_data(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.immediate;
}

static uint32_t ex_read_qp_num(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.qpn;
}

static uint32_t ex_read_src_qp(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.source_qpn;
}

static unsigned int ex_read_wc_flags(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.flags;
}

static uint32_t ex_read_slid(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint8_t ex_read_sl(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.service_level;
}

static uint8_t ex_read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint64_t ex_read_completion_ts(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current.at_ns;
}

/* The NIC stamps in monotonic time. The two clocks have kept their distance since then. */
static uint64_t ex_read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
    struct timespec wall, monotonic;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    const uint64_t wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    const uint64_t now_ns = (uint64_t)monotonic.tv_sec * 1000000000u + (uint64_t)monotonic.tv_nsec;
    return wall_ns - now_ns + ex_of(ex)->current.at_ns;
}

#define WC_FLAGS_SERVED                                                                            \
    (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                 \
     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static uint64_t wc_flags_served(void)
{
    return is_efa() ? (uint64_t)IBV_WC_STANDARD_FLAGS : WC_FLAGS_SERVED;
}

struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
        attr->wc_flags & ~wc_flags_served()) {
        return fail(EOPNOTSUPP);
    }
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
        (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
        return fail(EOPNOTSUPP);
    }
    struct verbs_cq *cq =
        create(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector,
               attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL);
    if (cq == NULL) {
        return NULL;
    }
    cq->sole.promised |= (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 &&
                         (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
    struct ibv_cq_ex *ex = &cq->ex;
    const bool strict = live_is_strict(live_of(context));
    ex->start_poll = strict ? ex_start_poll_strictly : ex_start_poll;
    ex->next_poll = strict ? ex_next_poll_strictly : ex_next_poll;
    if (is_checked()) {
        ex->start_poll = ex_start_poll_checked;
        ex->next_poll = ex_next_poll_checked;
    }
    if (odd_wanted != 0) {
        ex->start_poll = ex_start_poll_odd;
        ex->next_poll = ex_next_poll_odd;
    }
    ex->end_poll = ex_end_poll;
    ex->read_opcode = ex_read_opcode;
    ex->read_vendor_err = ex_read_vendor_err;
    ex->read_byte_len = ex_read_byte_len;
    ex->read_imm_data = ex_read_imm_data;
    ex->read_qp_num = ex_read_qp_num;
    ex->read_src_qp = ex_read_src_qp;
    ex->read_wc_flags = ex_read_wc_flags;
    ex->read_slid = ex_read_slid;
    ex->read_sl = ex_read_sl;
    ex->read_dlid_path_bits = ex_read_dlid_path_bits;
    ex->read_completion_ts = ex_read_completion_ts;
    ex->read_completion_wallclock_ns = ex_read_completion_wallclock_ns;
    if (is_efa()) {
        efa_fill_polls(ex);
    }
    return ex;
}
