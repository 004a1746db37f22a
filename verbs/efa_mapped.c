/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/efa_mapped.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "drivers/system/raced.h"
#include "drivers/system/system.h"
#include "nic/srd.h"
#include "wire/efa.h"

/* Where the parts of a queue pair's memory begin; receives follow the sends. */
#define DOORBELL_SENDS    0
#define DOORBELL_RECEIVES 64
#define SENDS             4096

/* Descriptors of one queue that are taken before the next queue has its turn. */
#define TURN 32

/* Looks without news, after which the thread lets others run, and after which it looks less often,
 * some milliseconds later: a doorbell is memory, and wakes nobody. */
#define LOOKS_ALONE 64
#define LOOKS       4096
#define NAP_NS      50000

/* The hop limit of IBTA's that is no limit. */
#define HOPS 255

struct mapped_qp {
    struct list node;
    struct verbs_qp *qp;
    uint8_t *memory;
    size_t bytes;
    uint8_t *receives;
    uint32_t send_entries, receive_entries; /* Each 2^n. */
    uint16_t sent, received;                /* Descriptors that were taken, as doorbells count. */
    bool failed;                            /* Its writer broke the rules of the queue. */
    struct nic_av to[]; /* Where requests go: one for each entry of the sends. */
};

struct mapped_cq {
    struct list node;
    struct verbs_cq *cq;
    uint8_t *memory;
    size_t bytes;
    uint32_t entries; /* 2^n */
    uint32_t next;    /* Completions that were written; runs free. */
};

static struct {
    pthread_mutex_t mutex; /* Guards all of it. Taken before the live lock. */
    struct list qps, cqs;
    pthread_t thread;
    bool runs, stops;
    _Atomic uint32_t callers; /* They want the mutex, which the thread would take again at once. */
} mapped = {.mutex = PTHREAD_MUTEX_INITIALIZER,
            .qps = {&mapped.qps, &mapped.qps},
            .cqs = {&mapped.cqs, &mapped.cqs}};

/* -- Completions --------------------------------------------------------------------------------*/

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

/* The phase, by which a reader knows that the entry is new, becomes visible after all else. */
static void tell(struct mapped_cq *to, struct efa_completion *completion)
{
    uint8_t entry[EFA_COMPLETION_ENTRY_BYTES];
    uint8_t *place = to->memory + (size_t)(to->next % to->entries) * sizeof(entry);
    uint64_t first;
    completion->phase = (to->next / to->entries & 1) == 0;
    efa_encode_completion(completion, entry);
    memcpy(&first, entry, sizeof(first));
    memcpy(place + sizeof(first), entry + sizeof(first), sizeof(entry) - sizeof(first));
    atomic_store_explicit((_Atomic uint64_t *)(void *)place, first, memory_order_release);
    to->next++;
}

/* A request has its number in the lower 16 bits of its wr_id, and its operation above them. */
static struct efa_completion completion_of(const struct verbs_cq *cq)
{
    const struct completion *from = &cq->current;
    struct efa_completion completion = {
        .id = (uint16_t)from->wr_id,
        .status = from->vendor_error,
        .operation = (uint8_t)(from->wr_id >> 16),
        .receive = completion_is_receive(from),
        .qpn = (uint16_t)from->qpn,
    };
    if (completion.receive) {
        completion.operation = from->kind == COMPLETION_RECEIVE ? EFA_SEND : EFA_WRITE;
        completion.has_immediate = (from->flags & COMPLETION_HAS_IMMEDIATE) != 0;
        completion.unsolicited = cq->current_unsolicited;
        completion.bytes = from->bytes;
        completion.handle = (uint16_t)cq->current_slid;
        completion.source_qpn = (uint16_t)from->source_qpn;
        completion.immediate = be32toh(from->immediate);
        memcpy(completion.source, cq->current_source.bytes, sizeof(completion.source));
    }
    return completion;
}

static bool serve_cq(struct mapped_cq *mine)
{
    struct live *live = live_of(mine->cq->ex.context);
    bool moved = false;
    live_lock(live);
    for (uint32_t i = 0; i < TURN && efa_take_current(mine->cq); i++) {
        struct efa_completion completion = completion_of(mine->cq);
        tell(mine, &completion);
        moved = true;
    }
    live_unlock(live);
    return moved;
}

/* -- Requests -----------------------------------------------------------------------------------*/

/* The writer broke the rules of the queue itself: what it writes means nothing any more. */
static void fail_queue(struct mapped_qp *mine)
{
    const struct qp_attributes attributes = {.state = QP_ERR};
    struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    struct live *live = live_of(ibv->context);
    mine->failed = true;
    live_lock(live);
    (void)!qp_modify(mine->qp->core, &attributes, QP_ATTR_STATE, live_now(live));
    ibv->state = (enum ibv_qp_state)qp_state_of(mine->qp->core);
    live_flush(live);
    live_unlock(live);
}

static void tell_refused(const struct mapped_qp *mine, const struct efa_send *send,
                         enum srd_status status)
{
    const struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    struct efa_completion completion = {.id = send->id,
                                        .status = (uint8_t)status,
                                        .operation = send->operation,
                                        .qpn = (uint16_t)ibv->qp_num};
    struct mapped_cq *cq = find_cq(cq_of(ibv->send_cq));
    if (cq != NULL) {
        tell(cq, &completion);
    }
}

static enum work_kind kind_of(const struct efa_send *send)
{
    switch (send->operation) {
    case EFA_READ: return WORK_READ;
    case EFA_WRITE: return send->has_immediate ? WORK_WRITE_IMMEDIATE : WORK_WRITE;
    default: return send->has_immediate ? WORK_SEND_IMMEDIATE : WORK_SEND;
    }
}

/* (locked) The address behind a handle's number; false: there is no such handle. */
static bool find_address(struct ibv_context *context, uint16_t handle, struct nic_av *av)
{
    const uint32_t *handles = context_of(context)->handles;
    const struct live *live = live_of(context);
    if (handle >= SRD_HOSTS_MAX || handles == NULL || handles[handle] == 0) {
        return false;
    }
    *av = (struct nic_av){.source = live_own_address(live, 0),
                          .destination = *srd_host_gid(live_nic(live_of(context)), handle),
                          .hop_limit = HOPS};
    return true;
}

static uint32_t fill_sges(const struct efa_send *send, struct sge sges[EFA_SGES_MAX])
{
    if (send->is_inline) {
        sges[0] =
            (struct sge){.address = (uintptr_t)send->inline_data, .bytes = send->inline_bytes};
        return send->inline_bytes > 0;
    }
    for (uint32_t i = 0; i < send->local_count; i++) {
        sges[i] = (struct sge){send->local[i].address, send->local[i].bytes, send->local[i].key};
    }
    return send->local_count;
}

/* (locked) SRD_STATUS_OK, or the status with which it ends; *full: it has to wait. */
static enum srd_status post(struct mapped_qp *mine, const struct efa_send *send, bool *full)
{
    struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    struct nic_av *av = &mine->to[mine->sent % mine->send_entries];
    struct sge sges[EFA_SGES_MAX];
    if (!find_address(ibv->context, send->handle, av)) {
        return SRD_STATUS_LOCAL_BAD_AH;
    }
    const struct send_request request = {
        .wr_id = send->id | (uint64_t)send->operation << 16,
        .kind = kind_of(send),
        .flags = WORK_SIGNALED | (send->is_inline ? WORK_INLINE : 0),
        .sges = sges,
        .sge_count = fill_sges(send, sges),
        .immediate = htobe32(send->immediate),
        .av = av,
        .destination_qpn = efa_number_of(send->destination_qpn),
        .destination_qkey = send->qkey,
        .remote_address = send->remote.address,
        .remote_key = send->remote.key,
    };
    const int reason = efa_post_request(ibv, &request);
    *full = reason == ENOMEM;
    return reason == 0 ? SRD_STATUS_OK : SRD_STATUS_LOCAL_UNSUPPORTED;
}

/* Descriptors that the doorbell announces; more than the queue has: that is nonsense. */
static uint32_t announced(const struct mapped_qp *mine, size_t doorbell, uint16_t taken)
{
    const uint32_t count = atomic_load_explicit(
        (_Atomic uint32_t *)(void *)(mine->memory + doorbell), memory_order_acquire);
    return (uint16_t)(count - taken);
}

/* (locked) False: it has to wait, or the queue failed. */
static bool take_send(struct mapped_qp *mine)
{
    const uint32_t at = mine->sent % mine->send_entries;
    uint8_t entry[EFA_SEND_ENTRY_BYTES]; /* Its writer may be at work. */
    struct efa_send send;
    bool full = false;
    memcpy(entry, mine->memory + SENDS + (size_t)at * sizeof(entry), sizeof(entry));
    enum srd_status status = efa_decode_send(entry, &send);
    if (send.phase != (mine->sent / mine->send_entries & 1)) {
        status =
            SRD_STATUS_LOCAL_QP_ERROR; /* The doorbell was rung before the descriptor was there. */
        mine->failed = true;
    } else if (status == SRD_STATUS_OK) {
        status = post(mine, &send, &full);
    }
    if (full) {
        return false;
    }
    if (status != SRD_STATUS_OK) {
        tell_refused(mine, &send, status);
    }
    mine->sent++;
    return !mine->failed;
}

static bool serve_sends(struct mapped_qp *mine)
{
    struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    const uint16_t before = mine->sent;
    const uint32_t count = announced(mine, DOORBELL_SENDS, mine->sent);
    if (count == 0 || (ibv->state != IBV_QPS_RTS && ibv->state != IBV_QPS_SQD)) {
        return false;
    }
    mine->failed |= count > mine->send_entries;
    live_lock(live_of(ibv->context));
    for (uint32_t i = 0; i < TURN && i < count && !mine->failed && take_send(mine); i++) {
    }
    live_posted(live_of(ibv->context), mine->qp->core);
    live_unlock(live_of(ibv->context));
    if (mine->failed) {
        fail_queue(mine);
    }
    return mine->sent != before;
}

/* Takes one receive, which has a descriptor for each of its SGEs; false: it has to wait, or the
 * queue failed. */
static bool take_receive(struct mapped_qp *mine, uint32_t count)
{
    struct ibv_sge sges[EFA_SGES_MAX];
    struct ibv_recv_wr wr = {.sg_list = sges}, *bad;
    struct efa_receive receive = {0};
    uint32_t used = 0;
    while (!receive.last && used < count) {
        uint8_t entry[EFA_RECEIVE_ENTRY_BYTES];
        const uint32_t at = (mine->received + used) % mine->receive_entries;
        memcpy(entry, mine->receives + (size_t)at * sizeof(entry), sizeof(entry));
        efa_decode_receive(entry, &receive);
        mine->failed |= receive.first != (used == 0) || used == EFA_SGES_MAX;
        if (mine->failed) {
            return false;
        }
        wr.wr_id = used == 0 ? receive.id : wr.wr_id;
        sges[used++] =
            (struct ibv_sge){receive.buffer.address, receive.buffer.bytes, receive.buffer.key};
    }
    wr.num_sge = (int)used;
    const int reason = receive.last ? efa_post_recv(&mine->qp->ex.qp_base, &wr, &bad) : ENOMEM;
    mine->failed |= reason != 0 && reason != ENOMEM;
    mine->received = (uint16_t)(mine->received + (reason == 0 ? used : 0));
    return reason == 0;
}

static bool serve_receives(struct mapped_qp *mine)
{
    const struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    const uint16_t before = mine->received;
    uint32_t count = announced(mine, DOORBELL_RECEIVES, mine->received);
    if (count == 0 || ibv->state == IBV_QPS_RESET || ibv->state == IBV_QPS_ERR) {
        return false;
    }
    mine->failed |= count > mine->receive_entries;
    for (uint32_t i = 0; i < TURN && count > 0 && !mine->failed && take_receive(mine, count); i++) {
        count = announced(mine, DOORBELL_RECEIVES, mine->received);
    }
    if (mine->failed) {
        fail_queue(mine);
    }
    return mine->received != before;
}

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
            moved |= serve_receives(mine);
            moved |= serve_sends(mine);
        }
    }
    for (struct list *node = mapped.cqs.next; node != &mapped.cqs; node = node->next) {
        moved |= serve_cq(CONTAINER_OF(node, struct mapped_cq, node));
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
