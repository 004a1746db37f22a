/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/efa_mapped.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "drivers/system/raced.h"
#include "drivers/system/system.h"
#include "verbs/efa_mapped_serve.h"
#include "wire/efa.h"

/* Looks without news, after which the thread lets others run, and after which it looks less often,
 * some milliseconds later: a doorbell is memory, and wakes nobody. */
#define LOOKS_ALONE 64
#define LOOKS       4096
#define NAP_NS      50000

static struct {
    pthread_mutex_t mutex; /* Guards all of it. Taken before the live lock. */
    struct list qps, cqs;
    pthread_t thread;
    bool runs, stops;
    _Atomic uint32_t callers; /* They want the mutex, which the thread would take again at once. */
} mapped = {.mutex = PTHREAD_MUTEX_INITIALIZER,
            .qps = {&mapped.qps, &mapped.qps},
            .cqs = {&mapped.cqs, &mapped.cqs}};

/* -- The thread ---------------------------------------------------------------------------------*/

/* (mutex) As a program that polls: packets come in and go out. */
static void make_progress(void)
{
    if (!list_empty(&mapped.cqs)) {
        const struct mapped_cq *one = CONTAINER_OF(mapped.cqs.next, struct mapped_cq, node);
        struct live *live = live_of(one->cq->ex.context);
        live_lock(live);
        live_progress(live, false);
        live_unlock(live);
    }
}

/* (mutex) */
static bool serve_all(void)
{
    bool moved = false;
    for (struct list *node = mapped.qps.next; node != &mapped.qps; node = node->next) {
        struct mapped_qp *mine = CONTAINER_OF(node, struct mapped_qp, node);
        if (!mine->failed) {
            moved |= efa_serve_receives(mine);
            moved |= efa_serve_sends(mine);
        }
    }
    for (struct list *node = mapped.cqs.next; node != &mapped.cqs; node = node->next) {
        moved |= efa_serve_cq(CONTAINER_OF(node, struct mapped_cq, node));
    }
    return moved;
}

static void *serve(void *unused)
{
    uint32_t looks = 0;
    bool stops = false;
    race_enter();
    while (!stops) {
        pthread_mutex_lock(&mapped.mutex);
        if (looks < LOOKS) {
            make_progress();
        }
        looks = serve_all() ? 0 : looks + (looks < LOOKS);
        stops = mapped.stops;
        pthread_mutex_unlock(&mapped.mutex);
        if (looks == LOOKS) {
            system_sleep(NAP_NS);
        } else if (looks > LOOKS_ALONE || atomic_load(&mapped.callers) != 0) {
            sched_yield();
        }
    }
    race_leave();
    return unused;
}

/* (mutex) 0 or errno. */
static int start(void)
{
    if (mapped.runs) {
        return 0;
    }
    sigset_t all, before;
    sigfillset(&all); /* But those for faults of our copies. */
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    mapped.stops = false;
    const int reason = system_start_thread(&mapped.thread, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    mapped.runs = reason == 0;
    return reason;
}

static void enter(void)
{
    atomic_fetch_add(&mapped.callers, 1);
    pthread_mutex_lock(&mapped.mutex);
    atomic_fetch_sub(&mapped.callers, 1);
}

/* (mutex) Gives the mutex up, and ends the thread if nothing is mapped. */
static void leave(void)
{
    const bool ends = mapped.runs && list_empty(&mapped.qps) && list_empty(&mapped.cqs);
    const pthread_t thread = mapped.thread;
    mapped.stops |= ends;
    mapped.runs &= !ends;
    pthread_mutex_unlock(&mapped.mutex);
    if (ends) {
        pthread_join(thread, NULL);
    }
}

/* -- Mapping ------------------------------------------------------------------------------------*/

static struct mapped_cq *find_cq(const struct verbs_cq *cq)
{
    for (struct list *node = mapped.cqs.next; node != &mapped.cqs; node = node->next) {
        struct mapped_cq *one = CONTAINER_OF(node, struct mapped_cq, node);
        if (one->cq == cq) {
            return one;
        }
    }
    return NULL;
}

static void *take_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static uint32_t entries_of(uint32_t count)
{
    return count == 0 ? 1 : (uint32_t)power_of_two(count);
}

static struct mapped_qp *make_qp(struct verbs_qp *qp)
{
    const struct qp_capacity capacity = qp_capacity_of(qp->core);
    const uint32_t sends = entries_of(capacity.sends);
    const uint32_t receives = entries_of(capacity.receives * EFA_SGES_MAX);
    struct mapped_qp *mine = calloc(1, sizeof(*mine) + sends * sizeof(mine->to[0]));
    if (mine == NULL) {
        return NULL;
    }
    const size_t receives_at = SENDS + (size_t)sends * EFA_SEND_ENTRY_BYTES;
    list_init(&mine->node);
    mine->qp = qp;
    mine->send_entries = sends;
    mine->receive_entries = receives;
    mine->bytes = receives_at + (size_t)receives * EFA_RECEIVE_ENTRY_BYTES;
    mine->memory = take_pages(mine->bytes);
    if (mine->memory == NULL) {
        free(mine);
        return NULL;
    }
    mine->receives = mine->memory + receives_at;
    return mine;
}

static struct mapped_qp *find_qp(const struct verbs_qp *qp)
{
    for (struct list *node = mapped.qps.next; node != &mapped.qps; node = node->next) {
        struct mapped_qp *one = CONTAINER_OF(node, struct mapped_qp, node);
        if (one->qp == qp) {
            return one;
        }
    }
    return NULL;
}

static void describe_qp(const struct mapped_qp *mine, struct efa_wq_attr *sends,
                        struct efa_wq_attr *receives)
{
    *sends = (struct efa_wq_attr){
        .buffer = mine->memory + SENDS,
        .entry_size = EFA_SEND_ENTRY_BYTES,
        .num_entries = mine->send_entries,
        .doorbell = (uint32_t *)(void *)(mine->memory + DOORBELL_SENDS),
        .max_batch = mine->send_entries,
    };
    *receives = (struct efa_wq_attr){
        .buffer = mine->receives,
        .entry_size = EFA_RECEIVE_ENTRY_BYTES,
        .num_entries = mine->receive_entries,
        .doorbell = (uint32_t *)(void *)(mine->memory + DOORBELL_RECEIVES),
        .max_batch = mine->receive_entries,
    };
}

int efa_map_qp(struct verbs_qp *qp, struct efa_wq_attr *sends, struct efa_wq_attr *receives)
{
    const struct ibv_qp *ibv = &qp->ex.qp_base;
    int reason = 0;
    enter();
    struct mapped_qp *mine = find_qp(qp);
    if (ibv->qp_type != IBV_QPT_DRIVER || find_cq(cq_of(ibv->send_cq)) == NULL ||
        find_cq(cq_of(ibv->recv_cq)) == NULL) {
        reason = EINVAL;
    } else if (mine == NULL && (mine = make_qp(qp)) == NULL) {
        reason = ENOMEM;
    } else if (list_empty(&mine->node)) {
        mine->ends = find_cq(cq_of(ibv->send_cq));
        list_append(&mapped.qps, &mine->node);
    }
    if (reason == 0) {
        describe_qp(mine, sends, receives);
    }
    leave();
    return reason;
}

int efa_map_cq(struct verbs_cq *cq, struct efa_cq_attr *attr)
{
    int reason = 0;
    enter();
    struct mapped_cq *mine = find_cq(cq);
    if (mine == NULL) {
        mine = calloc(1, sizeof(*mine));
        reason = mine == NULL ? ENOMEM : start();
        if (reason == 0) {
            mine->cq = cq;
            mine->entries = entries_of((uint32_t)cq->ex.cqe);
            mine->bytes = (size_t)mine->entries * EFA_COMPLETION_ENTRY_BYTES;
            mine->memory = take_pages(mine->bytes);
            reason = mine->memory == NULL ? ENOMEM : 0;
        }
        if (reason == 0) {
            list_append(&mapped.cqs, &mine->node);
        } else {
            free(mine);
        }
    }
    if (reason == 0) {
        *attr = (struct efa_cq_attr){.buffer = mine->memory,
                                     .entry_size = EFA_COMPLETION_ENTRY_BYTES,
                                     .num_entries = mine->entries};
    }
    leave();
    return reason;
}

void efa_unmap_qp(const struct verbs_qp *qp)
{
    enter();
    struct mapped_qp *mine = find_qp(qp);
    if (mine != NULL) {
        list_remove(&mine->node);
        munmap(mine->memory, mine->bytes);
        free(mine);
    }
    leave();
}

void efa_unmap_cq(const struct verbs_cq *cq)
{
    enter();
    struct mapped_cq *mine = find_cq(cq);
    if (mine != NULL) {
        list_remove(&mine->node);
        munmap(mine->memory, mine->bytes);
        free(mine);
    }
    leave();
}

void efa_reset_mapped_qp(const struct verbs_qp *qp)
{
    enter();
    struct mapped_qp *mine = find_qp(qp);
    if (mine != NULL) {
        mine->sent = mine->received = 0;
        mine->failed = false;
        memset(mine->memory, 0, SENDS);
    }
    leave();
}

void efa_mapped_in_child(void)
{
    pthread_mutex_init(&mapped.mutex, NULL);
    list_init(&mapped.qps);
    list_init(&mapped.cqs);
    mapped.runs = false;
    atomic_store(&mapped.callers, 0);
}
