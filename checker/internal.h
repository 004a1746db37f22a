/* SPDX-License-Identifier: BSD-2-Clause
 *
 * internal - the checker's account: objects, and the requests that are not polled yet.
 */
#ifndef CHECKER_INTERNAL_H
#define CHECKER_INTERNAL_H

#include <stdatomic.h>

#include "checker/checker.h"

enum {
    FINDINGS_MAX = 16,
    BUCKETS = 256,      /* A power of two, ... */
    LENT_PAGES = 16384, /* ... and this, too. */
};

/* A request, or a receive, between its post and the poll of its completion. */
struct posted {
    uint64_t wr_id, remote_address;
    uint32_t place; /* Where it was posted: a word of the caller's. */
    uint32_t remote_key, bytes;
    uint32_t sum; /* The sum of the bytes that it reads, if `summed`. */
    uint8_t kind, flags, sge_count;
    bool summed;
    bool over;                   /* It was polled; older ones were not (shared receives). */
    bool lent;                   /* Its memory is the NIC's. */
    bool freed;                  /* The program has freed it, ... */
    uint32_t freed_place;        /* ... here. */
    uint32_t gone_key;           /* Its region was deregistered; 0: none was. */
    const struct nic_av *handle; /* Datagrams: only compared. */
    bool handle_gone;
    struct checker_frame frame; /* The call that has its memory as a variable. */
    struct segment *segments;   /* Where its SGEs lead. */
    struct sge sges[];
};

/* Positions run free, and are masked. There is room for more than the queue has: the NIC counts
 * slots in another way (nic/slots.h). */
struct ring {
    uint8_t *slots;
    uint32_t stride, mask, sge_max;
    uint32_t head, tail;
    uint32_t open;  /* Receives that are not over. */
    uint32_t limit; /* Requests that hardware has room for. */
    bool told_full;
};

size_t ring_bytes(uint32_t limit, uint32_t sges);
void ring_init(struct ring *ring, uint32_t limit, uint32_t sges, void *memory);

static inline struct posted *ring_at(const struct ring *ring, uint32_t position)
{
    return (struct posted *)(void *)(ring->slots + (size_t)(position & ring->mask) * ring->stride);
}

static inline uint32_t ring_count(const struct ring *ring)
{
    return ring->tail - ring->head;
}

enum object_kind {
    OBJECT_QP,
    OBJECT_CQ,
    OBJECT_SRQ,
};

struct object {
    struct object *next; /* In its bucket. */
    enum object_kind kind;
    uint32_t number;
};

struct checked_cq {
    struct object object;
    uint32_t entries;
    uint32_t owed; /* Completions that may still come, or lie there. */
    uint32_t events_taken, events_acked;
    uint32_t single_acks; /* Calls that acknowledged one event, with no other among them. */
    bool failed;          /* The program was told that polling failed. */
    bool told_room;       /* That there is not enough room. */
};

struct checked_srq {
    struct object object;
    const struct pd *domain;
    struct ring receives;
};

struct checked_qp {
    struct object object;
    enum qp_type type;
    bool signal_all;
    bool failed; /* A request failed, so that all others do. */
    struct qp_capacity capacity;
    uint32_t send_cq, receive_cq, srq;
    const struct pd *domain;
    struct ring sends, receives;
    uint64_t posts, signaled; /* Requests, in all. */
    uint32_t deepest;         /* The most that were posted and not polled at a time. */
};

struct checker {
    const struct checker_memory *memory;
    struct object *buckets[BUCKETS];
    uint32_t count[3];            /* Objects, by kind. */
    uint64_t regions_made, posts; /* In all. */
    uint32_t regions;
    struct checker_finding findings[FINDINGS_MAX];
    uint32_t first, pending;
    /* How many lent segments touch each page, by its number. */
    atomic_uint lent[LENT_PAGES];
};

/* table.c: an object comes and goes. NULL: there is none. */
void table_enter(struct checker *checker, struct object *object, enum object_kind kind,
                 uint32_t number);
void *table_leave(struct checker *checker, enum object_kind kind, uint32_t number);
struct object *object_find(struct checker *checker, enum object_kind kind, uint32_t number);

static inline struct checked_qp *find_qp(struct checker *checker, uint32_t qpn)
{
    return (struct checked_qp *)(void *)object_find(checker, OBJECT_QP, qpn);
}

static inline struct checked_cq *find_cq(struct checker *checker, uint32_t number)
{
    return (struct checked_cq *)(void *)object_find(checker, OBJECT_CQ, number);
}

static inline struct checked_srq *find_srq(struct checker *checker, uint32_t number)
{
    return (struct checked_srq *)(void *)object_find(checker, OBJECT_SRQ, number);
}

/* Notes a finding. `posted` is the request it is about, or NULL. */
void tell(struct checker *checker, enum checker_rule rule, uint32_t qpn,
          const struct posted *posted, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The name of a kind of request, as verbs spell it. */
const char *kind_name(uint32_t kind);
const char *state_name(enum qp_state state);

static inline bool is_visible(const struct checked_qp *qp, const struct posted *posted)
{
    return qp->signal_all || (posted->flags & WORK_SIGNALED) != 0;
}

static inline bool brings_data(const struct posted *posted)
{
    return work_kind_in(work_kinds(WORK_BRINGS_DATA), posted->kind);
}

/* memory.c: finds out where the SGEs lead. Do their keys open it? */
void judge_keys(struct checker *checker, uint32_t qpn, const struct pd *domain,
                struct posted *posted, bool writes);
/* A request that is about to be posted may begin before READs and atomics in front of it are
 * complete. */
/* The NIC may send the request's bytes once more, until it is acknowledged. */
static inline bool repeats(const struct checked_qp *qp)
{
    return qp->type != QP_UD && qp->type != QP_UC;
}

void judge_bytes(struct checker *checker, const struct checked_qp *qp, const struct posted *posted,
                 const char *until);
/* Whether the request before it, whose completion was not polled, still has its bytes, if `next`
 * names them again: a program that never polls it would not be told otherwise. */
void judge_reuse(struct checker *checker, const struct checked_qp *qp, const struct posted *next);
void judge_order(struct checker *checker, const struct checked_qp *qp, const struct posted *posted);

/* requests.c: a completion queue has one completion less to come. */
void pay(struct checker *checker, uint32_t number);
/* The receives of a queue pair, its own or shared ones, and their domain; NULL: there are none. */
struct ring *receives_of(struct checker *checker, uint32_t qpn, uint32_t srq,
                         const struct pd **domain);
/* lent.c: its memory is the NIC's from the post on, `queue` is the name of its queue; and the
 * program's once it knows that the request is over. Again: no change. */
void lend(struct checker *checker, const void *queue, uint32_t number, struct posted *posted,
          bool receives);
void give_back(struct checker *checker, struct posted *posted);
/* A receive is in another ring now: `to` is a copy of `from`. */
void lend_moved(struct checker *checker, const void *queue, uint32_t number, struct posted *from,
                struct posted *to);
/* The NIC reaches its memory no more, or not all of it; the account stays. */
void take_from_nic(const struct checker *checker, const struct posted *posted);

/* A queue pair's requests are forgotten, as a reset forgets them; and the receives of a queue that
 * goes. */
void receives_forget(struct checker *checker, struct ring *receives);
/* Those of a shared queue that are not polled go from one ring to another. */
void receives_move(struct checker *checker, uint32_t srq, struct ring *from, struct ring *to);
void requests_forget(struct checker *checker, struct checked_qp *qp);
/* The region with this key goes: notes that in requests which name it. */
void requests_lose_region(struct checker *checker, const struct checked_qp *qp, struct ring *ring,
                          uint32_t key);

#endif
