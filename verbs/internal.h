/* SPDX-License-Identifier: BSD-2-Clause
 *
 * internal - verbs objects: what programs see, with the NIC's object inside.
 */
#ifndef VERBS_INTERNAL_H
#define VERBS_INTERNAL_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/list.h"
#include "drivers/system/initialised.h"
#include "kernel/process.h"
#include "nic/nic.h"
#include "nic/slots.h"
#include "verbs/efa_newer.h"
#include "verbs/newer.h"
#include "world/world.h"

/* The symbols that programs and their libraries bind to; every other symbol of the shared object is
 * hidden. */
#define EXPORT __attribute__((visibility("default")))

/* Device memory of a process. */
#define DM_BYTES_MAX ((size_t)1 << 20)

/* -- Objects ------------------------------------------------------------------------------------*/

struct async_event {
    struct list node;
    struct ibv_async_event event;
    const void *object;
};

/* Asynchronous events for which a context has room when there is no memory. */
#define EVENT_RESERVE 8
/* The newest events about its port that wait for a program that asks for no events. */
#define PORT_EVENTS_MAX 64

struct context {
    struct verbs_context verbs; /* First: programs hold a pointer to verbs.context. */
    struct live *live;
    uint32_t number;          /* Among the process's contexts that ever were. */
    uint64_t file;            /* Inode behind cmd_fd: contexts that were imported share it. */
    atomic_bool closed;       /* By the program; objects that are left keep it. */
    _Atomic uint32_t holders; /* Objects, and the program while it is open. */
    struct list node;         /* In the list of all contexts. */
    pthread_mutex_t mutex;    /* Guards the rest. Taken inside the live lock, never around it. */
    struct list events;       /* struct async_event, oldest first; one count in async_fd each. */
    struct list spare_events;
    uint32_t *handles; /* EFA: the address handles to each host; (locked). NULL: there was none. */
    struct async_event reserve[EVENT_RESERVE];
    bool lost_events;     /* There was no room for more: a count, too. */
    uint32_t port_events; /* The number of `events` that are about the port. */
};

struct verbs_td {
    struct ibv_td ibv;
    uint32_t users;
};

/* A queue that the program wants to use from one thread at a time. */
struct sole {
    bool promised;
    atomic_bool in_use; /* A thread is in a call of it. Only where the program is checked. */
};

/* The parts of an object that programs may want to have in memory of their own. */
enum memory_kind {
    MEMORY_QP,
    MEMORY_CQ,
    MEMORY_SRQ,
};

/* The origin of a piece of memory: see memory_take. */
struct memory {
    uint32_t bytes;
    bool shared;       /* As blocks_take said. */
    bool from_program; /* The parent domain's allocator gave it. */
    bool lent;         /* The parent domain counts it. */
};

/* The part of a protection domain that all its handles share; its parents point to it. */
struct protection_domain {
    struct pd core;
    uint32_t number; /* The handle, as programs import it. */
    uint32_t handles;
    bool gone; /* Destroyed by one of them. */
};

struct verbs_pd {
    struct ibv_pd ibv;
    struct pd *core; /* Its domain's. */
    bool parent;     /* A parent domain. */
    bool imported;   /* A second handle. */
    struct list node;
    struct verbs_td *td; /* Parent domains. */
    void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t bytes, size_t alignment,
                   uint64_t kind);
    void (*free)(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t kind);
    void *pd_context;
    uint32_t borrowers; /* Objects whose memory these functions have to take back. */
};

struct verbs_dm {
    struct ibv_dm ibv;
    struct device_memory *memory;
};

struct verbs_mr {
    struct ibv_mr ibv;
    struct region core;
    struct device_memory *device_memory; /* NULL: the program's own. */
    void *null_pages;                    /* The pages of a null region. */
    bool imported; /* A second handle for a region: its key is ibv.handle, and there is no core. */
    bool gone;     /* The region was deregistered by such a handle. */
    bool forsaken; /* Its region stays, for such handles, but the program has no more use for it. */
};

struct verbs_mw {
    struct ibv_mw ibv;
    struct region core;
};

struct verbs_ah {
    struct ibv_ah ibv;
    struct pd *pd;
    struct nic_av av;
    uint16_t host; /* EFA: its GID's number (nic/srd.h). */
};

struct verbs_channel {
    struct ibv_comp_channel ibv;
    pthread_mutex_t mutex; /* Guards `events` and refcnt. Taken inside the live lock. */
    struct list events;    /* struct verbs_cq with events, in turn; one count in fd each. */
};

struct verbs_cq {
    struct ibv_cq_ex ex; /* struct ibv_cq is its prefix. */
    struct list node;    /* Among all of them. */
    struct cq core;
    struct completion *ring;
    struct memory memory; /* The memory of the ring. */
    struct ibv_pd *parent;
    struct sole sole;
    uint32_t comp_events_delivered, async_events_delivered;
    /* Under the channel's mutex: */
    struct list waiting; /* In the channel, ... */
    uint32_t events;     /* ... while there are any that the program has not taken. */
    struct completion current;
    /* EFA: the number and the address of the sender of `current`, and what libefa shows. */
    uint32_t current_slid;
    struct gid current_source;
    bool current_unsolicited;
    struct efa_cq direct;
};

struct verbs_srq {
    struct ibv_srq ibv;
    struct list node; /* Among all of them. */
    struct srq core;
    void *slots;
    struct memory memory; /* The memory of the slots. */
    uint32_t async_events_delivered;
    struct sole sole;
};

struct builder;

/* One block of memory holds this and, behind it, the core with its rings. */
struct verbs_qp {
    struct qp *core;
    union {
        struct builder *builder;   /* `extended`. */
        struct xrc_target *target; /* XRC targets, which send nothing. */
    };
    struct memory memory; /* The memory of the block. */
    uint32_t async_events_delivered;
    bool extended : 1;    /* Made with send_ops_flags. */
    bool signals_all : 1; /* As the program asked for it. */
    struct sole sole;
    /* Last, because only a queue pair that was made with send_ops_flags has all of it: others end
     * with its first member, struct ibv_qp. Its second member is at the end of the first. */
    union {
        struct ibv_qp_ex ex;
        struct qp_ex_45 newer;
    };
};

_Static_assert(offsetof(struct verbs_qp, ex) == 32, "with struct ibv_qp three cache lines");

static inline struct context *context_of(struct ibv_context *context)
{
    return CONTAINER_OF(context, struct context, verbs.context);
}

static inline struct verbs_pd *pd_of(struct ibv_pd *pd)
{
    return CONTAINER_OF(pd, struct verbs_pd, ibv);
}

/* The NIC's protection domain behind any kind of handle. */
static inline struct pd *pd_core(struct ibv_pd *pd)
{
    return pd_of(pd)->core;
}

static inline bool has_thread_domain(struct ibv_pd *pd)
{
    return pd != NULL && pd_of(pd)->td != NULL;
}

static inline struct verbs_td *td_of(struct ibv_td *td)
{
    return CONTAINER_OF(td, struct verbs_td, ibv);
}

static inline struct verbs_mr *mr_of(struct ibv_mr *mr)
{
    return CONTAINER_OF(mr, struct verbs_mr, ibv);
}

static inline struct verbs_mw *mw_of(struct ibv_mw *mw)
{
    return CONTAINER_OF(mw, struct verbs_mw, ibv);
}

static inline struct verbs_ah *ah_of(struct ibv_ah *ah)
{
    return CONTAINER_OF(ah, struct verbs_ah, ibv);
}

static inline struct verbs_channel *channel_of(struct ibv_comp_channel *channel)
{
    return CONTAINER_OF(channel, struct verbs_channel, ibv);
}

static inline struct verbs_cq *cq_of(struct ibv_cq *cq)
{
    return (struct verbs_cq *)(void *)cq;
}

static inline struct verbs_srq *srq_of(struct ibv_srq *srq)
{
    return CONTAINER_OF(srq, struct verbs_srq, ibv);
}

static inline struct verbs_qp *qp_of(struct ibv_qp *qp)
{
    return CONTAINER_OF(qp, struct verbs_qp, ex.qp_base);
}

/* (locked) The core knows the block that it lies in. A target has the block of one of its handles,
 * and sends nothing that a builder could build. */
static inline void verbs_qp_check(const struct verbs_qp *qp)
{
    const bool target = qp_type_of(qp->core) == QP_XRC_TARGET;
    CHECK(target || qp_context(qp->core) == qp);
    CHECK(!target || (qp->target != NULL && !qp->extended));
    CHECK(!qp->extended || qp->memory.bytes >= sizeof(struct verbs_qp));
}

static inline struct live *live_of(struct ibv_context *context)
{
    return context_of(context)->live;
}

static inline const struct nic_limits *limits_of(struct ibv_context *context)
{
    return nic_limits(live_nic(live_of(context)));
}

/* -- Between the files --------------------------------------------------------------------------*/

/* Sets errno and returns NULL: how creating calls fail. */
static inline void *fail(int reason)
{
    INVARIANTS(CHECK(reason > 0));
    errno = reason;
    return NULL;
}

/* The process's device is an EFA device, which has neither connections nor much else of RoCE's. */
static inline bool is_efa(void)
{
    return UNLIKELY(live_personality() == LIVE_EFA);
}

/* library.c: this process's NIC with its thread running; it reports its events to this library.
 * NULL with errno. */
struct live *library_open(void);

/* In a child of fork: the threads that were in these files do not exist. */
void context_in_child(void);
void cq_in_child(void);
void dm_in_child(void);
void pd_in_child(void);
void srq_in_child(void);

/* Visits all objects, of all NICs. None is made or goes meanwhile. May be called with the live lock
 * held; `visit` takes no lock. */
void context_each(void (*visit)(void *state, struct context *context), void *state);
void cq_each(void (*visit)(void *state, const struct verbs_cq *cq), void *state);
void pd_each(void (*visit)(void *state, const struct verbs_pd *pd), void *state);
void srq_each(void (*visit)(void *state, const struct verbs_srq *srq), void *state);

/* Functions for the answers of private_stubs.c: device.c, names.c. */
int gid_query_type(struct ibv_context *context, uint8_t port, unsigned int index,
                   unsigned int *type);
const char *opcode_text(enum ibv_wr_opcode opcode);

/* closing.c: an object of the context is made or gone. The context stays until then. False, EBADF:
 * it was closed. */
MUST_USE bool context_hold(struct ibv_context *context);
void context_release(struct ibv_context *context);
/* All contexts of this file are closed: nobody can reach the objects that were made on them.
 * Locked. */
void context_end_objects(struct live *live, uint64_t file);
/* Unlocks, and waits for peers that may still act on withdrawn objects. A peer that does not come
 * out keeps regions, not queue pairs. */
void unlock_settled(struct live *live);
/* context.c: the context is closed, and so are all that share its file. */
bool context_is_over(const struct ibv_context *context);
/* context.c: nobody holds the context. */
void context_free(struct context *context);

static inline bool is_closed(const struct ibv_context *context)
{
    return atomic_load_explicit(&CONTAINER_OF_CONST(context, struct context, verbs.context)->closed,
                                memory_order_relaxed);
}

/* Zeroed memory for what engines point to; NULL: there is none. */
static inline void *memory_make(size_t bytes)
{
    const struct live_arena *arena = live_arena();
    return arena == NULL ? calloc(1, bytes) : arena->take(bytes);
}

static inline void memory_free(void *memory)
{
    const struct live_arena *arena = live_arena();
    if (arena == NULL) {
        free(memory);
    } else {
        arena->give(memory);
    }
}

/* Zeroed memory for an object of the context, which it holds. NULL with errno. */
static inline void *object_make(struct ibv_context *context, size_t bytes)
{
    if (!context_hold(context)) {
        return NULL;
    }
    void *object = memory_make(bytes);
    if (object == NULL) {
        context_release(context);
        errno = ENOMEM;
    }
    return object;
}

static inline void object_free(struct ibv_context *context, void *object)
{
    INVARIANTS(CHECK(atomic_load(&context_of(context)->holders) > 0));
    memory_free(object);
    context_release(context);
}

/* A completion as programs of plain queues see it. */
static inline void wc_fill(const struct completion *completion, struct ibv_wc *wc)
{
    wc->wr_id = completion->wr_id;
    wc->status = (enum ibv_wc_status)completion->status;
    wc->opcode = (enum ibv_wc_opcode)completion->kind;
    wc->vendor_err = completion->vendor_error;
    wc->byte_len = completion->bytes;
    wc->imm_data = completion->immediate;
    wc->qp_num = completion->qpn;
    wc->src_qp = completion->source_qpn;
    wc->wc_flags = completion->flags;
    wc->pkey_index = completion->pkey_index;
    wc->slid = 0;
    wc->sl = completion->service_level;
    wc->dlid_path_bits = 0;
}

/* event.c: called by the NIC, locked, from any thread. */
void event_on_async(const struct nic_event *event);
void event_on_completion(struct cq *cq);
void event_on_port_change(uint32_t changes);
/* Withdraws queued events of an object, and waits until delivered ones are acknowledged. */
void event_forget(struct context *context, const void *object);
/* (the object's mutex) Waits until all asynchronous events that `call` waits for, as it destroys
 * the object, are acknowledged. */
void event_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                      const uint32_t *delivered, const char *call);
void channel_forget(struct verbs_channel *channel, struct verbs_cq *cq);
/* A context that opens, and one that closes: from then on nothing is made on it, and it is told
 * nothing. */
void event_open(struct context *context);
void event_close(struct context *context);

/* ah.c: an address vector that names a LID gets the GRH of its owner, if there is one. Not locked:
 * the owner may be asked. 0, or an errno: it could not be asked. */
MUST_USE int av_find_lid(struct live *live, struct ibv_ah_attr *attr);
/* Verbs' address vector in our form, still to be resolved. 0 or errno; locked. */
int av_from_attr(struct live *live, const struct ibv_ah_attr *attr, struct nic_av *av);
void av_to_attr(const struct nic_av *av, struct ibv_ah_attr *attr);

/* mr.c: a region of memory that is known to be there. NULL with errno. */
struct ibv_mr *mr_register(struct ibv_pd *pd, const struct region_request *request);
/* dm.c: a region on device memory (NULL: it was none) is gone. */
void dm_release(struct device_memory *memory);

/* pd.c: allocates zeroed memory for a part of an object that is created in `pd`. `pd` may be NULL,
 * and must still exist when memory_give is called. Returns NULL if there is no memory. Not to be
 * called with the live lock held. */
void *memory_take(struct ibv_pd *pd, size_t bytes, enum memory_kind kind, struct memory *memory);
void memory_give(struct ibv_pd *pd, void *block, const struct memory *memory,
                 enum memory_kind kind);

/* xrc.c: handles of a target. All locked. */
struct xrcd *xrcd_core(struct ibv_xrcd *xrcd);
bool xrc_target_add(struct ibv_xrcd *xrcd, struct verbs_qp *qp);
/* A handle goes. True: it was the last, and the core is to go. */
bool xrc_target_drop(struct verbs_qp *qp);
/* Nobody waits for its events any more. Not NULL: nor for those of another handle that has gone,
 * and none is left: the block that the core was in is to go, which is that of the first handle. */
struct verbs_qp *xrc_target_end(struct verbs_qp *qp);
/* The core lies in the block of this handle. */
bool xrc_target_holds(const struct verbs_qp *qp);
/* The handles of a target, by any of them; NULL: no more. */
struct verbs_qp *xrc_target_handle(const struct verbs_qp *qp, uint32_t index);
/* qp.c: the fields of a queue pair that programs see, but for its context. */
void qp_fill_public(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr, struct verbs_qp *qp);

/* qp_ex.c */
int qp_ex_init(struct verbs_qp *qp, uint64_t send_ops, uint32_t sends);
/* Nobody builds requests in a child of fork. */
void qp_ex_in_child(struct verbs_qp *qp);
void qp_ex_free(struct verbs_qp *qp);
/* Was it made to send FLUSHes? */
bool qp_ex_flushes(const struct verbs_qp *qp);

/* program_memory.c: memory that a program registers. */
/* Every byte of it is mapped, readable, and writable if `write`. Brings it in. */
bool program_memory_is_there(uint64_t address, uint64_t bytes, bool write);
/* Can a FLUSH make it persistent: is all of it of files, mapped shared, on a file system that keeps
 * them? Returns 0, EINVAL, or why that could not be found out. */
int program_memory_persists(uint64_t address, uint64_t bytes);

/* post.c */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* A request as the NIC takes it; 0 or errno: it cannot be one. */
int post_translate(const struct ibv_qp *qp, const struct ibv_send_wr *wr,
                   struct send_request *request);
/* The address handle of a datagram is of another domain than its queue pair: judged with `strict`
 * and by the checker only. */
bool post_names_foreign_handle(struct ibv_qp *qp, const struct ibv_send_wr *wr);
/* (locked) A request that is posted to a failed queue pair completes at once, and needs the
 * time. */
void post_note_time(struct live *live, const struct qp *qp);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* The same by the rules of verbs/strict.h. */
int post_send_strictly(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv_strictly(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv_strictly(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Strictly or not, and with --odd in another order. */
int post_srq_recv_as_wished(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* (locked) Sanitizers are told of the memory that a send request names: it is the NIC's from now
 * on, or copied now if it is inline. */
void post_tell_send(struct live *live, const struct qp *qp, enum work_kind kind, bool is_inline,
                    const struct sge *sges, uint32_t count);
/* The window bind a request asks for; 0 or errno. */
int bind_request(struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey,
                 struct window_bind *bind);

/* device.c: the context is of our device. */
bool device_is_ours(const struct ibv_context *context);
/* qp.c: an EFA device's queue pairs. `efa`: what the direct calls say besides; NULL: it is made by
 * a call of verbs. */
struct ibv_qp *qp_create_direct(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                const struct efa_qp_init_attr *efa);
struct ibv_qp *qp_create_plain(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
                               const struct efa_qp_init_attr *efa);

/* Slots, each in the file of its object. */
int device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t attr_bytes);
int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
               size_t attr_bytes);
int cq_poll_wc(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int cq_poll_wc_strictly(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int cq_poll_wc_checked(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int cq_poll_wc_odd(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int cq_request_notify(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_srq *srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
struct ibv_xrcd *xrcd_open(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int xrcd_close(struct ibv_xrcd *xrcd);
struct ibv_qp *xrc_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_td *td_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr);
int td_dealloc(struct ibv_td *td);
struct ibv_pd *pd_alloc_parent(struct ibv_context *context,
                               struct ibv_parent_domain_init_attr *attr);
struct ibv_dm *dm_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int dm_free(struct ibv_dm *dm);
struct ibv_mr *dm_register(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t bytes,
                           unsigned int access);
int srq_get_number(struct ibv_srq *srq, uint32_t *number);
struct ibv_mr *mr_alloc_null(struct ibv_pd *pd);
struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int mw_dealloc(struct ibv_mw *mw);
int mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
              struct ibv_sge *sges, uint32_t count);

#endif
