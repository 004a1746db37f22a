/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/checking.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "drivers/system/guard.h"
#include "drivers/system/raced.h"
#include "verbs/findings.h"
#include "verbs/frames.h"
#include "verbs/freeing.h"

bool checking;
static struct {
    pthread_mutex_t mutex;
    struct checker *checker;
    struct live *live; /* The process's NIC, or that of its parent. */
    pid_t owner;       /* The process that has begun to check. */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* -- The program's memory -----------------------------------------------------------------------*/

static bool sum_memory(const struct segment *segments, uint32_t count, uint32_t *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = (const uint8_t *)(uintptr_t)segments[i].address;
        if (!findings_are_wanted() || !guard_sum(at, segments[i].bytes, sum)) {
            return false;
        }
    }
    return true;
}

static enum reach_verdict judge_memory(const struct pd *domain, const struct sge *sge, bool writes,
                                       struct checker_reach *reach)
{
    const uint32_t access = writes ? ACCESS_LOCAL_WRITE : 0;
    live_lock(state.live);
    const struct region_table *regions = nic_regions(live_nic(state.live));
    const enum reach_verdict verdict = region_judge(regions, sge->key, domain, NULL, sge->address,
                                                    sge->bytes, access, &reach->segment);
    const struct region *region = region_find_local(regions, sge->key);
    reach->start = region == NULL ? 0 : region->start;
    reach->bytes = region == NULL ? 0 : region->bytes;
    live_unlock(state.live);
    if (verdict != REACH_ALLOWED) {
        reach->segment = (struct segment){.bytes = 0};
    }
    return verdict;
}

/* -- A program that ThreadSanitizer watches -----------------------------------------------------*/

/* The word that orders all that a thread did before it posted before all that the receiver does
 * that polls it. */
static const char loop;

static void lend(const struct checker_lent *lent)
{
    struct race_access access = {.kind = lent->receives ? RACE_RECEIVES : RACE_SENDS,
                                 .qpn = lent->qpn,
                                 .writes = lent->writes,
                                 .after = lent->queue,
                                 .before = lent->slot};
    access.call_count = findings_calls(lent->place, &access.calls);
    race_release(lent->queue);
    race_release(&loop);
    race_touch(&access, lent->segments, lent->count);
}

/* A receive that is polled is behind what its sender did here, and behind what the peer wrote. */
static void order_received(const struct completion *completion)
{
    if (race_is_noted() && completion_is_receive(completion)) {
        race_acquire(&loop);
        race_acquire(race_peer_word(completion->qpn));
    }
}

/* Nobody reaches the memory any more, and no peer is in the middle of it. */
static void order_withdrawn(void)
{
    for (uint32_t i = 0; i < RACE_FIBERS && race_is_noted(); i++) {
        race_acquire(race_peer_word(i));
    }
}

static const struct checker_memory memory = {.sum = sum_memory,
                                             .judge = judge_memory,
                                             .on_stack = frame_find,
                                             .may_be_live = frame_may_be_live};
static const struct checker_memory raced_memory = {.sum = sum_memory,
                                                   .judge = judge_memory,
                                                   .on_stack = frame_find,
                                                   .may_be_live = frame_may_be_live,
                                                   .lend = lend,
                                                   .give_back = race_acquire};

/* -- Begin and end ------------------------------------------------------------------------------*/

static void write_findings(void)
{
    struct checker_finding finding;
    while (checker_take(state.checker, &finding)) {
        findings_write(&finding);
    }
}

/* The thread that ends the program may be in the checker already: a handler of a signal may call
 * exit(). So it does not wait for long. */
static bool enter_at_the_end(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    return state.owner == getpid() && pthread_mutex_timedlock(&state.mutex, &end) == 0;
}

/* The counters are read without the live lock: other threads of the program may still hold it, and
 * go no further. */
static void end(void)
{
    race_enter();
    if (enter_at_the_end()) {
        const uint64_t *counted = nic_counters(live_nic(state.live))->values;
        const struct checker_counts counts = {.rnr_naks = counted[COUNTER_rcvd_rnr_err],
                                              .rnr_sent = counted[COUNTER_send_rnr_err],
                                              .wrong_qkeys = counted[COUNTER_drop_wrong_qkey],
                                              .no_receives = counted[COUNTER_drop_no_receive]};
        checker_counted(state.checker, &counts);
        checker_ended(state.checker);
        write_findings();
        findings_write_counts();
        pthread_mutex_unlock(&state.mutex);
    }
    race_leave();
}

static void on_freed(const void *freed, size_t bytes, const void *caller)
{
    if (checker_may_be_lent(state.checker, (uintptr_t)freed, bytes) &&
        freeing_is_the_programs(caller)) {
        struct checker *checker = checking_enter();
        const uint32_t place = findings_place(caller, __builtin_frame_address(0));
        checker_freed(checker, (uintptr_t)freed, bytes, place);
        checking_leave();
    }
}

/* When ThreadSanitizer reports, it opens files by the C library's names, which are kernel's own.
 * The first time, these look the C library's functions up, and the loader frees the text of an
 * earlier error: not with the sanitizer's allocator of that time. So both are done before. */
static void prepare_for_reports(void)
{
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        close(file);
    }
    (void)dlerror();
}

/* (mutex) The first time in a process. */
static void begin(struct live *live, const char *report)
{
    void *room = state.checker != NULL ? state.checker : calloc(1, checker_bytes());
    if (room == NULL) {
        process_complain("no memory for the checker: nothing is checked");
        return;
    }
    if (state.checker == NULL) {
        state.checker = checker_init(room, race_is_noted() ? &raced_memory : &memory);
        atexit(end);
    }
    if (race_is_noted()) {
        prepare_for_reports();
    }
    state.live = live;
    state.owner = getpid();
    findings_begin(report);
    checking = true;
    freeing_begin(on_freed);
}

void checking_begin(struct live *live)
{
    const char *report = secure_getenv("NONIC_CHECK");
    if (report == NULL) {
        report = "";
    }
    if (report[0] == '\0' && !race_is_noted()) {
        return;
    }
    pthread_mutex_lock(&state.mutex);
    if (state.owner != getpid()) {
        begin(live, report);
    }
    pthread_mutex_unlock(&state.mutex);
}

/* Its NIC is a new one, and has none of the objects, whose memory is left where it is. Calls on
 * them still come here. */
void checking_in_child(void)
{
    pthread_mutex_init(&state.mutex, NULL);
    if (state.checker != NULL) {
        checker_forget(state.checker);
        findings_in_child();
    }
}

struct checker *checking_enter(void)
{
    race_enter();
    pthread_mutex_lock(&state.mutex);
    race_release(&race_told);
    return state.checker;
}

void checking_leave(void)
{
    write_findings();
    pthread_mutex_unlock(&state.mutex);
    race_leave();
}

struct checker *checking_enter_queue(struct ibv_context *context, struct sole *sole, uint32_t qpn)
{
    const bool others = sole->promised && atomic_exchange(&sole->in_use, true);
    struct checker *checker = checking_enter();
    if (others) {
        checker_tell(checker, CHECKER_ONE_THREAD, qpn,
                     "two threads are in calls of it at the same time, and it was made for one: "
                     "with a thread domain, or IBV_CREATE_CQ_ATTR_SINGLE_THREADED");
    }
    if (live_is_inherited(live_of(context))) {
        checker_tell(checker, CHECKER_INHERITED, qpn,
                     "a child of fork uses it, and it is the parent's: nothing comes of the call");
    }
    return checker;
}

void checking_leave_queue(struct sole *sole)
{
    atomic_store(&sole->in_use, false);
    checking_leave();
}

/* -- Hooks --------------------------------------------------------------------------------------*/

static uint32_t number_of(const struct ibv_cq *cq)
{
    return cq == NULL ? 0 : cq->handle;
}

uint32_t checking_srq_number(const struct verbs_srq *srq)
{
    return srq->core.xrcd != NULL ? checker_xrc_srq(srq->core.number) : srq->ibv.handle;
}

void checking_qp_made(const struct verbs_qp *qp, bool signal_all)
{
    const struct ibv_qp *ibv = &qp->ex.qp_base;
    const struct checker_qp_request request = {
        .qpn = ibv->qp_num,
        .type = qp_type_of(qp->core),
        .capacity = qp_capacity_of(qp->core),
        .signal_all = signal_all,
        .send_cq = number_of(ibv->send_cq),
        .receive_cq = number_of(ibv->recv_cq),
        .srq = ibv->srq == NULL ? 0 : checking_srq_number(srq_of(ibv->srq)),
        .domain = qp_pd(qp->core),
    };
    struct checker *checker = checking_enter();
    /* A context that was closed may have left one of this number. */
    free(checker_qp_gone(checker, request.qpn));
    void *room = calloc(1, checker_qp_bytes(&request));
    if (room != NULL) {
        checker_qp_made(checker, &request, room);
    }
    checking_leave();
}

void checking_cq_made(const struct verbs_cq *cq)
{
    struct checker *checker = checking_enter();
    void *room = calloc(1, checker_cq_bytes());
    if (room != NULL) {
        checker_cq_made(checker, cq->ex.handle, cq->core.capacity, room);
    }
    checking_leave();
}

void checking_cq_resized(const struct verbs_cq *cq)
{
    checker_cq_resized(checking_enter(), cq->ex.handle, cq->core.capacity);
    checking_leave();
}

static struct checker_srq_request srq_request(const struct verbs_srq *srq)
{
    return (struct checker_srq_request){.number = checking_srq_number(srq),
                                        .receives = srq->core.queue.limit,
                                        .sges = srq->core.queue.sge_max,
                                        .domain = srq->core.pd};
}

/* Without memory the account keeps to the size before. */
void checking_srq_resized(const struct verbs_srq *srq)
{
    const struct checker_srq_request request = srq_request(srq);
    struct checker *checker = checking_enter();
    void *room = calloc(1, checker_srq_bytes(&request));
    if (room != NULL) {
        free(checker_srq_resized(checker, &request, room));
    }
    checking_leave();
}

void checking_srq_made(const struct verbs_srq *srq)
{
    const struct checker_srq_request request = srq_request(srq);
    struct checker *checker = checking_enter();
    free(checker_srq_gone(checker, request.number)); /* Likewise. */
    void *room = calloc(1, checker_srq_bytes(&request));
    if (room != NULL) {
        checker_srq_made(checker, &request, room);
    }
    checking_leave();
}

void checking_qp_ends(const struct verbs_qp *qp)
{
    uint32_t first, came;
    live_lock(state.live);
    const bool waits = qp_waits_for_psn(qp->core, &first, &came);
    live_unlock(state.live);
    if (waits) {
        checker_waits_for_psn(checking_enter(), qp->ex.qp_base.qp_num, first, came);
        checking_leave();
    }
}

void checking_qp_gone(uint32_t qpn)
{
    free(checker_qp_gone(checking_enter(), qpn));
    order_withdrawn();
    checking_leave();
}

void checking_cq_gone(uint32_t number)
{
    free(checker_cq_gone(checking_enter(), number));
    checking_leave();
}

void checking_srq_gone(const struct verbs_srq *srq)
{
    free(checker_srq_gone(checking_enter(), checking_srq_number(srq)));
    checking_leave();
}

void checking_region_made(void)
{
    checker_region_made(checking_enter());
    checking_leave();
}

void checking_region_gone(uint32_t key)
{
    checker_region_gone(checking_enter(), key);
    order_withdrawn();
    checking_leave();
}

int checking_busy(const char *object)
{
    if (is_checked()) {
        checker_busy(checking_enter(), object);
        checking_leave();
    }
    return EBUSY;
}

void checking_handle_gone(const struct nic_av *handle)
{
    checker_handle_gone(checking_enter(), handle);
    checking_leave();
}

void checking_strict(const char *wrong)
{
    checker_tell(checking_enter(), CHECKER_ADDRESS, 0, wrong);
    checking_leave();
}

/* -- Events -------------------------------------------------------------------------------------*/

void checking_event_taken(const struct verbs_cq *cq)
{
    checker_event_taken(checking_enter(), cq->ex.handle);
    checking_leave();
}

void checking_events_acked(const struct ibv_cq *cq, uint32_t count)
{
    checker_events_acked(checking_enter(), cq->handle, count);
    checking_leave();
}

void checking_waits_for_async(const char *call, uint32_t count)
{
    checker_waits_for_async(checking_enter(), call, count);
    checking_leave();
}

void checking_cq_ends(const struct verbs_cq *cq)
{
    checker_cq_ends(checking_enter(), cq->ex.handle);
    checking_leave();
}

/* -- Requests and completions -------------------------------------------------------------------*/

void checking_before_sends(struct verbs_qp *qp, const struct send_request *requests, uint32_t count,
                           const void *code, const void *stack)
{
    struct ibv_qp *ibv = &qp->ex.qp_base;
    struct checker *checker = checking_enter_queue(ibv->context, &qp->sole, ibv->qp_num);
    const uint32_t place = findings_place(code, stack);
    for (uint32_t i = 0; i < count; i++) {
        checker_send(checker, ibv->qp_num, &requests[i], place);
    }
}

void checking_after_sends(struct verbs_qp *qp, const struct send_request *requests, uint32_t count,
                          int reason)
{
    struct checker *checker = state.checker;
    if (reason != 0 && count > 0) {
        checker_unsend(checker, qp->ex.qp_base.qp_num, count);
        checker_send_refused(checker, qp->ex.qp_base.qp_num, qp_state_of(qp->core), &requests[0],
                             reason == ENOMEM ? STATUS_FULL : STATUS_INVALID);
    }
    checking_leave_queue(&qp->sole);
}

void checking_polled(struct checker *checker, const struct completion *completion)
{
    order_received(completion);
    checker_polled(checker, completion);
}

int checking_poll(struct verbs_cq *cq, int (*poll)(struct ibv_cq_ex *ex))
{
    struct checker *checker = checking_enter_queue(cq->ex.context, &cq->sole, 0);
    const int reason = poll(&cq->ex);
    if (reason == 0) {
        checking_polled(checker, &cq->current);
    }
    checking_leave_queue(&cq->sole);
    return reason;
}

void checking_modified(const struct verbs_qp *qp, const struct qp_attributes *attributes,
                       uint32_t mask, enum qp_state before, int reason)
{
    uint32_t missing, excess;
    const enum qp_state to = mask & QP_ATTR_STATE ? attributes->state : before;
    qp_judge_change(qp_type_of(qp->core), before, to, mask, &missing, &excess);
    checker_modified(checking_enter(), qp->ex.qp_base.qp_num, attributes, mask,
                     reason == 0 ? STATUS_OK : STATUS_INVALID, missing, excess);
    checking_leave();
}
