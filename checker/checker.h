/* SPDX-License-Identifier: BSD-2-Clause
 *
 * checker - judges what a program asks of verbs by rules (checker/rules.h).
 *
 * Purpose    Keeps an account of its own of what was posted and not polled yet, and says what a
 *            program may not do, or what works by luck, whatever the NIC makes of it.
 * Inputs     Each call of the program, told before it is carried out or after it, and each
 *            completion that the program takes.
 * Outputs    Findings: checker_take.
 * Ownership  The caller owns the checker's memory and that of each object, which it gives when the
 *            object is made and has back when it is gone.
 * Threads    One at a time.
 * Limits     FINDINGS_MAX findings of one call; later ones are dropped.
 */
#ifndef CHECKER_CHECKER_H
#define CHECKER_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checker/rules.h"
#include "nic/completion_queue.h"
#include "nic/queue_pair.h"
#include "nic/reach.h"

#define CHECKER_TEXT_MAX 400

struct checker_finding {
    enum checker_rule rule;
    uint32_t qpn; /* 0: it is about no queue pair. */
    /* The caller's words for the places that posted its request and that freed its memory; 0: there
     * is none. */
    uint32_t posted, freed;
    char text[CHECKER_TEXT_MAX];
};

/* A request, or a receive, is posted: its memory is the NIC's until the program knows that it is
 * over. */
struct checker_lent {
    const void *slot, *queue; /* Names of the request, while it lasts, and of its queue. */
    uint32_t qpn;             /* Or the number of the shared receive queue. */
    bool receives, writes;
    const struct segment *segments;
    uint32_t count, place;
};

/* Where an SGE leads. */
struct checker_reach {
    struct segment segment; /* The memory that it names; no bytes if it names nothing. */
    uint64_t start, bytes;  /* Its key's region; 0 and 0: there is none. */
};

/* A call of a function, and its part of the stack. */
struct checker_frame {
    uint64_t stack; /* Which thread's; 0: none. */
    uint64_t address, function;
};

/* The memory of the program, which the checker does not look at by itself. `domain` is that of the
 * queue pair, or of the shared receive queue. */
struct checker_memory {
    /* Sums up these bytes. False: they cannot be read. */
    bool (*sum)(const struct segment *segments, uint32_t count, uint32_t *sum);
    /* May work of the domain reach what an SGE names, and write there if `writes`? */
    enum reach_verdict (*judge)(const struct pd *domain, const struct sge *sge, bool writes,
                                struct checker_reach *reach);
    /* Is this memory a variable of a function that this thread is in? May be NULL. */
    bool (*on_stack)(const struct segment *segment, struct checker_frame *frame);
    /* May this thread still be in that function, or is the frame another thread's? */
    bool (*may_be_live)(const struct checker_frame *frame);
    /* Told when memory is lent to the NIC, and when the program has it back; also before, each time
     * that a region of it goes. May be NULL. */
    void (*lend)(const struct checker_lent *lent);
    void (*give_back)(const void *slot);
};

struct checker;
size_t checker_bytes(void);
/* In zeroed memory. `memory` stays. */
struct checker *checker_init(void *at, const struct checker_memory *memory);
/* Forgets all objects, in a process that has none of them. Their memory is not touched. */
void checker_forget(struct checker *checker);
/* Takes the oldest finding that was not taken yet. False: there is none. */
MUST_USE bool checker_take(struct checker *checker, struct checker_finding *finding);
/* Notes what another room judged. */
void checker_tell(struct checker *checker, enum checker_rule rule, uint32_t qpn, const char *text);

/* -- Objects (objects.c) ------------------------------------------------------------------------*/

struct checker_qp_request {
    uint32_t qpn;
    enum qp_type type;
    struct qp_capacity capacity; /* As granted. */
    bool signal_all;
    uint32_t send_cq, receive_cq, srq; /* Their numbers; 0: none. */
    const struct pd *domain;           /* NULL: XRC targets. */
};
size_t checker_qp_bytes(const struct checker_qp_request *request);
/* `memory` is zeroed. */
void checker_qp_made(struct checker *checker, const struct checker_qp_request *request,
                     void *memory);
/* Each of these returns the memory; NULL: there is no such object. */
void *checker_qp_gone(struct checker *checker, uint32_t qpn);

size_t checker_cq_bytes(void);
void checker_cq_made(struct checker *checker, uint32_t number, uint32_t entries, void *memory);
void checker_cq_resized(struct checker *checker, uint32_t number, uint32_t entries);
void *checker_cq_gone(struct checker *checker, uint32_t number);

/* The number of a shared queue of XRC, which requests name; of others, any that is lower. */
static inline uint32_t checker_xrc_srq(uint32_t number)
{
    return UINT32_C(0x80000000) | number;
}
struct checker_srq_request {
    uint32_t number;
    uint32_t receives, sges;
    const struct pd *domain;
};
size_t checker_srq_bytes(const struct checker_srq_request *request);
void checker_srq_made(struct checker *checker, const struct checker_srq_request *request,
                      void *memory);
void *checker_srq_gone(struct checker *checker, uint32_t number);
/* The queue has another size, and the receives that it had: `memory` is that of a queue that is
 * made. */
void *checker_srq_resized(struct checker *checker, const struct checker_srq_request *request,
                          void *memory);

void checker_region_made(struct checker *checker);
/* The region with this key is gone: requests that name it are not over. */
void checker_region_gone(struct checker *checker, uint32_t key);

/* qp_modify is asked for a change, and said `status`. `missing` and `excess`: attributes that the
 * change of state needs and that it does not take (enum qp_attribute). */
void checker_modified(struct checker *checker, uint32_t qpn, const struct qp_attributes *attributes,
                      uint32_t mask, enum status status, uint32_t missing, uint32_t excess);
/* A queue pair ends, or is asked for another state, that has taken no request: `came` is the PSN of
 * one that came, `first` the one that it waits for. */
void checker_waits_for_psn(struct checker *checker, uint32_t qpn, uint32_t first, uint32_t came);
/* An address handle goes: datagrams that name it are not over. */
void checker_handle_gone(struct checker *checker, const struct nic_av *handle);
/* Packets that the NIC has counted since it began. */
struct checker_counts {
    uint64_t rnr_naks;    /* That came, ... */
    uint64_t rnr_sent;    /* ... and that went. */
    uint64_t wrong_qkeys; /* Datagrams that came with another Q_Key than the queue pair's, ... */
    uint64_t no_receives; /* ... and those for which there was no receive. */
};
void checker_counted(struct checker *checker, const struct checker_counts *counts);
/* An object could not be destroyed: others use it. */
void checker_busy(struct checker *checker, const char *object);
/* The program ends. */
void checker_ended(struct checker *checker);

/* -- Requests (requests.c, posts.c) -------------------------------------------------------------*/

/* A request is about to be posted at `place`, a word of the caller's. */
void checker_send(struct checker *checker, uint32_t qpn, const struct send_request *request,
                  uint32_t place);
/* The newest `count` of them were not posted after all. */
void checker_unsend(struct checker *checker, uint32_t qpn, uint32_t count);
/* The NIC refused a request in this state. */
void checker_send_refused(struct checker *checker, uint32_t qpn, enum qp_state state,
                          const struct send_request *request, enum status status);

/* Likewise receives. `srq` is the number of a shared queue; 0: the queue pair's own. */
void checker_receive(struct checker *checker, uint32_t qpn, uint32_t srq, uint64_t wr_id,
                     const struct sge *sges, uint32_t count, uint32_t place);
void checker_unreceive(struct checker *checker, uint32_t qpn, uint32_t srq, uint32_t count);
void checker_receive_refused(struct checker *checker, uint32_t qpn, enum qp_state state,
                             uint32_t count, enum status status);

/* The program has taken a completion. */
void checker_polled(struct checker *checker, const struct completion *completion);

/* -- Memory that the program gives back (lent.c) ------------------------------------------------*/

/* May requests that are not polled name some of these bytes? Any thread may ask at any time. */
bool checker_may_be_lent(const struct checker *checker, uint64_t address, uint64_t bytes);
/* The program frees them, at `place`. */
void checker_freed(struct checker *checker, uint64_t address, uint64_t bytes, uint32_t place);

/* -- Completion queues and events (queues.c) ----------------------------------------------------*/

/* The program was told that polling failed. */
void checker_poll_failed(struct checker *checker, uint32_t cq);
/* The program goes to wait for an event, and this queue is one that it waits for: it has
 * `completions`, and asks for an event, of which none has come. */
void checker_waits(struct checker *checker, uint32_t cq, uint32_t completions, bool armed);
/* It waits, and no queue of the channel asks for an event. */
void checker_waits_unarmed(struct checker *checker);
/* ibv_destroy_qp or the like waits until `count` asynchronous events are acknowledged. */
void checker_waits_for_async(struct checker *checker, const char *call, uint32_t count);
void checker_event_taken(struct checker *checker, uint32_t cq);
void checker_events_acked(struct checker *checker, uint32_t cq, uint32_t count);
/* The program is about to destroy it. */
void checker_cq_ends(struct checker *checker, uint32_t cq);

#endif
