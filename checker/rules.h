/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rules - the rules of `nonic run --check`: what programs do with verbs that they may not, or that
 * works by luck.
 */
#ifndef CHECKER_RULES_H
#define CHECKER_RULES_H

#include "base/check.h"

enum checker_level {
    CHECKER_ERROR,  /* The specification forbids it; the exit status tells of it. */
    CHECKER_LUCK,   /* It works here and now, and fails with other timing or on other hardware. */
    CHECKER_ADVICE, /* It works, and costs more than it has to. Told with --check=all only. */
};

/* RULE(NAME, name for people, level, cure, source). The sentence that says what is wrong is made of
 * the facts, where the rule is judged. */
/* clang-format off */
#define CHECKER_RULES(RULE)                                                                        \
    /* Memory (checker/requests.c). */                                                             \
    RULE(SEND_CHANGED, "send-changed", ERROR,                                                      \
         "leave the memory as it is until the completion of the request, or of a later signaled "  \
         "one of the queue, was polled; or post it with IBV_SEND_INLINE",                          \
         "ibv_post_send(3), notes")    \
    RULE(DATAGRAM_CHANGED, "datagram-changed", LUCK,                                               \
         "leave the memory as it is until the completion of the request, or of a later signaled "  \
         "one of the queue, was polled; or post it with IBV_SEND_INLINE",                          \
         "ibv_post_send(3), notes. It is right where the peer has said that the message came: "    \
         "UD and UC never send again")                                                             \
    RULE(DATAGRAM_GONE, "datagram-gone", LUCK,                                                     \
         "poll the completion of a datagram before its memory is deregistered or freed",           \
         "ibv_post_send(3), notes. It is right where the peer has said that the message came: "    \
         "UD and UC never send again")                                                             \
    RULE(BAD_KEY, "bad-key", ERROR,                                                                \
         "give each SGE the lkey of a region that has all its bytes, is of the queue pair's "      \
         "domain, and has IBV_ACCESS_LOCAL_WRITE if data come to it",                              \
         "ibv_reg_mr(3); IBTA 10.6.3")                                                             \
    RULE(REGION_GONE, "region-gone", ERROR,                                                        \
         "poll the completions of all requests that use a region before ibv_dereg_mr",             \
         "ibv_post_send(3), notes; IBTA 10.6.3")                     \
    RULE(FREED, "freed", ERROR,                                                                    \
         "poll the completions of all requests that use memory before it is freed",                \
         "ibv_post_send(3), ibv_post_recv(3), notes")                                              \
    RULE(STACK_GONE, "stack-gone", ERROR,                                                          \
         "poll the completion before the function returns, or give the request other memory",      \
         "ibv_post_send(3), ibv_post_recv(3), notes")                                              \
    RULE(FENCE, "fence", ERROR,                                                                    \
         "post the later request with IBV_SEND_FENCE, or poll the READ's completion first",        \
         "ibv_post_send(3), IBV_SEND_FENCE; IBTA 10.8.3.3")                                        \
    RULE(READ_OVERTAKEN, "read-overtaken", LUCK,                                                   \
         "post the WRITE with IBV_SEND_FENCE, or poll the READ's completion first",                \
         "IBTA 10.8.3.3")                                                                          \
    RULE(UD_ROOM, "ud-room", ERROR,                                                                \
         "give receives of UD 40 bytes more, in front: for the GRH",                               \
         "ibv_post_recv(3), notes")                                                                \
    RULE(EMPTY_SGE, "empty-sge", LUCK,                                                             \
         "leave an SGE without bytes out: num_sge may be 0",                                       \
         "rdma-core: mlx5_post_recv passes it on, and hardware takes 0 for 2^31")                  \
    RULE(HANDLE_GONE, "handle-gone", ERROR,                                                        \
         "poll the completions of all datagrams that use an address handle before ibv_destroy_ah", \
         "ibv_post_send(3), notes")                                                                \
    /* Queues (checker/requests.c, checker/queues.c). */                                           \
    RULE(NEVER_SIGNALED, "never-signaled", ERROR,                                                  \
         "signal at least one request in max_send_wr, and poll its completion",                    \
         "ibv_create_qp(3), sq_sig_all; rdma-core: mlx5_wq_overflow")                              \
    RULE(SEND_SLOTS, "send-slots", LUCK,                                                           \
         "poll completions before posting more than max_send_wr requests",                         \
         "rdma-core: mlx5_wq_overflow, and mlx5_poll_one moves the tail")                          \
    RULE(RECEIVE_SLOTS, "receive-slots", LUCK,                                                     \
         "poll completions before posting more than max_recv_wr (max_wr) receives",                \
         "rdma-core: mlx5_wq_overflow, and mlx5_poll_one moves the tail")                          \
    RULE(CQ_ROOM, "cq-room", LUCK,                                                                 \
         "make the completion queue as long as all that may complete at a time",                   \
         "ibv_poll_cq(3), notes; IBTA 11.6.3.2")                                                   \
    RULE(CQ_OVERRUN, "cq-overrun", ERROR,                                                          \
         "make the completion queue as long as all that may complete at a time",                   \
         "ibv_poll_cq(3), notes; IBTA 11.6.3.2")                                                   \
    RULE(POLL_FAILED, "poll-failed", LUCK,                                                         \
         "look at what ibv_poll_cq returns: below 0 the queue is of no use any more",              \
         "ibv_poll_cq(3), return value")                                                           \
    RULE(LOST_WAKEUP, "lost-wakeup", LUCK,                                                         \
         "poll until the queue is empty after each ibv_req_notify_cq, and wait only then",         \
         "ibv_req_notify_cq(3); ibv_get_cq_event(3), example")                                     \
    RULE(EVENTS_UNACKED, "events-unacked", ERROR,                                                  \
         "acknowledge each event that ibv_get_cq_event gave: ibv_ack_cq_events",                   \
         "ibv_get_cq_event(3), notes")                                                             \
    RULE(EVENTS_OVERACKED, "events-overacked", ERROR,                                              \
         "acknowledge each event once",                                                            \
         "ibv_get_cq_event(3), notes")                                                             \
    RULE(NOT_ARMED, "not-armed", LUCK,                                                             \
         "ask for an event (ibv_req_notify_cq) before waiting for one",                            \
         "ibv_get_cq_event(3), example; ibv_req_notify_cq(3)")                                     \
    RULE(ASYNC_UNACKED, "async-unacked", ERROR,                                                    \
         "acknowledge each event that ibv_get_async_event gave: ibv_ack_async_event",              \
         "ibv_get_async_event(3), notes")                                                          \
    RULE(SIGNAL_EACH, "signal-each", ADVICE,                                                       \
         "signal one request in several: a completion covers all before it",                       \
         "ibv_post_send(3), IBV_SEND_SIGNALED; ibv_create_qp(3), sq_sig_all")                      \
    RULE(ACK_EACH, "ack-each", ADVICE,                                                             \
         "count events, and acknowledge several of them in one call",                              \
         "ibv_get_cq_event(3), notes: each call takes a mutex")                                    \
    RULE(ONE_THREAD, "one-thread", ERROR,                                                          \
         "take a lock around calls that two threads make of the object, or make it without that "  \
         "promise",                                                                                \
         "ibv_alloc_td(3); ibv_create_cq_ex(3), IBV_CREATE_CQ_ATTR_SINGLE_THREADED")               \
    RULE(INHERITED, "inherited", ERROR,                                                            \
         "open the device in the child, and make its objects there",                               \
         "ibv_fork_init(3); rdma-core: queues of mlx4, mlx5 and others are not in the child's "    \
         "memory (ibv_dontfork_range)")                                                            \
    /* Packets that the NIC has counted (checker/objects.c). */                                    \
    RULE(RNR_SEEN, "rnr-seen", LUCK,                                                               \
         "let the peer post its receives before this side sends",                                  \
         "IBTA 9.7.5.2.8: each costs a pause of the peer's min_rnr_timer, and a retry")            \
    RULE(RNR_SENT, "rnr-sent", LUCK,                                                               \
         "post receives before the peer sends",                                                    \
         "IBTA 9.7.5.2.8: each costs a pause of min_rnr_timer, and one of the peer's"              \
         " retries")                                                                               \
    RULE(QKEY, "qkey", ERROR,                                                                      \
         "give datagrams the Q_Key of the queue pair that they go to (wr.ud.remote_qkey)",         \
         "IBTA 9.6, 10.2.5")                                                                       \
    RULE(NO_RECEIVE, "no-receive", LUCK,                                                           \
         "post more receives, earlier: a datagram without one is lost",                            \
         "IBTA 9.8")                                                                               \
    /* Calls that post (checker/posts.c). */                                                       \
    RULE(POST_STATE, "post-state", ERROR,                                                          \
         "post sends from RTS on, and receives from INIT on",                                      \
         "IBTA 10.3.1; ibv_modify_qp(3)")                                                          \
    RULE(POST_KIND, "post-kind", ERROR,                                                            \
         "post what the queue pair's transport offers: ibv_post_send(3) has the table",            \
         "IBTA 10.8.3; ibv_post_send(3)")                                                          \
    RULE(SGE_COUNT, "sge-count", ERROR,                                                            \
         "ask for enough SGEs when the queue pair is made: max_send_sge, max_recv_sge",            \
         "ibv_create_qp(3), cap")                                                                  \
    RULE(INLINE_LENGTH, "inline-length", ERROR,                                                    \
         "send inline at most the max_inline_data that was granted, and only SENDs and WRITEs",    \
         "ibv_create_qp(3), ibv_post_send(3)")                                                     \
    RULE(ATOMIC_SHAPE, "atomic-shape", ERROR,                                                      \
         "name 8 bytes, at a remote address that is a multiple of 8",                              \
         "IBTA 9.4.5")                                                                             \
    RULE(POST_REFUSED, "post-refused", ERROR,                                                      \
         "look at what the call returns: nothing from *bad_wr on was posted",                      \
         "ibv_post_send(3), ibv_post_recv(3), return value")                                       \
    RULE(POST_FULL, "post-full", ADVICE,                                                           \
         "count what is outstanding: most devices refuse earlier",                                 \
         "ibv_post_send(3), return value")                                                         \
    RULE(REQUEST_FAILED, "request-failed", ERROR,                                                  \
         "the sentence names the possible causes",                                                 \
         "ibv_poll_cq(3), status")                                                                 \
    /* Programs that stand still (the command looks, as `nonic stat --hang` does). */              \
    RULE(HANG, "hang", ERROR,                                                                      \
         "poll until the queue is empty after each ibv_req_notify_cq, and wait only then",         \
         "ibv_req_notify_cq(3); ibv_get_cq_event(3), example")                                     \
    RULE(STANDS, "stands-still", LUCK, "the sentence says what it waits for", "docs/ci.md")        \
    RULE(PSN, "psn", ERROR,                                                                        \
         "give the queue pair, as rq_psn, what its peer has as sq_psn",                            \
         "ibv_modify_qp(3), rq_psn and sq_psn")                                                    \
    /* Queue pairs and other objects (checker/objects.c). */                                       \
    RULE(ATTRIBUTES, "attributes", ERROR,                                                          \
         "give exactly the attributes that the change of state takes",                             \
         "ibv_modify_qp(3), notes; IBTA 11.2.5.2")                                                 \
    RULE(RETRY_ZERO, "retry-zero", LUCK,                                                           \
         "set retry_cnt to 7 (retry_count of rdma_conn_param)",                                    \
         "IBTA 9.7.6: without a retry one lost packet ends the connection")                        \
    RULE(TIMEOUT_ZERO, "timeout-zero", LUCK,                                                       \
         "set timeout to 14, which is 67 ms",                                                      \
         "IBTA 9.7.6: 0 is no timer, so that a lost packet is never sent again")                   \
    RULE(RNR_TIMER, "rnr-timer", ADVICE,                                                           \
         "set min_rnr_timer to 12, which is 0.64 ms",                                              \
         "IBTA table 45: 0 stands for 655.36 ms")                                                  \
    RULE(RNR_ENDLESS, "rnr-endless", ADVICE,                                                       \
         "set rnr_retry below 7 where a peer that never posts a receive is to be noticed",         \
         "IBTA 9.7.5.2.8: 7 stands for any number of retries")                                     \
    RULE(BUSY, "busy", LUCK,                                                                       \
         "destroy what uses the object first, and look at what the call returns",                  \
         "ibv_destroy_cq(3), ibv_dealloc_pd(3) and others: EBUSY")                                 \
    RULE(LEFT_OVER, "left-over", ADVICE,                                                           \
         "destroy what was made: a program that runs for long has fewer and fewer of them",        \
         "ibv_destroy_qp(3), ibv_dereg_mr(3)")                                                     \
    RULE(REGISTER_EACH, "register-each", ADVICE,                                                   \
         "register memory once, and use it again: it costs more than most messages",               \
         "ibv_reg_mr(3): a system call that pins each page")                                       \
    RULE(ADDRESS, "address", ERROR,                                                                \
         "the sentence names it; --strict refuses it",                                             \
         "docs/strict.md")
/* clang-format on */

#define CHECKER_RULE_NAME(name, ...) CHECKER_##name,
enum checker_rule {
    CHECKER_RULES(CHECKER_RULE_NAME) CHECKER_RULE_COUNT
};

struct checker_rule_text {
    const char *name;
    enum checker_level level;
    const char *cure, *source;
};
extern const struct checker_rule_text checker_rules[CHECKER_RULE_COUNT];

#endif
