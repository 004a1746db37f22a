/* SPDX-License-Identifier: BSD-2-Clause
 *
 * strict - calls that hardware refuses and nonic tolerates: with NONIC_STRICT nonic refuses them,
 * and says why.
 *
 * The rules are here; each is judged where its objects are: slots in nic/slots.c, all others in the
 * file of the call. Calls that nonic always refuses need no rule (docs/decisions/0043).
 */
#ifndef VERBS_STRICT_H
#define VERBS_STRICT_H

#include "verbs/internal.h"

/* RULE(NAME, name for people, errno or 0, what is not right, cure, source). */
/* clang-format off */
#define STRICT_RULES(RULE)                                                                         \
    RULE(SEND_SLOTS, "send-slots", ENOMEM,                                                         \
         "the send queue has no free slot: a slot is free when the completion of its request, or " \
         "of a later one, was polled",                                                             \
         "signal at least one request in max_send_wr and poll its completion before posting more", \
         "rdma-core: mlx5_wq_overflow, and mlx5_poll_one moves the tail")                          \
    RULE(RECEIVE_SLOTS, "receive-slots", ENOMEM,                                                   \
         "the receive queue has no free slot: a slot is free when the completion of its receive "  \
         "was polled, a flushed one too",                                                          \
         "poll the completions before posting more receives",                                      \
         "rdma-core: mlx5_wq_overflow, and mlx5_poll_one moves the tail")                          \
    RULE(SRQ_SLOTS, "srq-slots", ENOMEM,                                                           \
         "the shared receive queue has no free slot: a slot is free when the completion of its "   \
         "receive was polled",                                                                     \
         "poll the completions before posting more receives",                                      \
         "rdma-core: mlx5_free_srq_wqe is called for a completion that is polled")                 \
    RULE(CONTEXTS, "contexts", EINVAL,                                                             \
         "an object is made of objects of two contexts: each ibv_open_device opens another, and "  \
         "librdmacm has its own",                                                                  \
         "make all of them on one context; with librdmacm on that of the id (id->verbs)",          \
         "Linux: a handle belongs to its file (rdma_lookup_get_uobject)")                          \
    RULE(DESTROYED, "destroyed", 0,                                                                \
         "ibv_destroy_qp has taken completions that nobody polled out of the completion queue",    \
         "poll them before the queue pair is destroyed, or expect none",                           \
         "rdma-core: mlx5_cq_clean, mlx4_cq_clean")                                                \
    RULE(GID_FAMILIES, "gid-families", EINVAL,                                                     \
         "an address has an IPv4 GID at one end and an IPv6 or link-local one at the other",       \
         "take the sgid_index of a GID that is of the same kind as dgid",                          \
         "Linux: rdma_resolve_ip, for ib_modify_qp and ib_create_ah")                              \
    RULE(GRH, "grh", EINVAL,                                                                       \
         "an address has no GRH: on Ethernet a LID leads nowhere",                                 \
         "set is_global and grh.dgid to the peer's GID, and grh.sgid_index to one of ours",        \
         "ibv_create_ah(3), IBV_QPF_GRH_REQUIRED; Linux: rdma_check_ah_attr")                      \
    RULE(AH_DOMAIN, "ah-domain", EINVAL,                                                           \
         "a datagram's address handle is of another protection domain than its queue pair",        \
         "make the handle in the queue pair's domain",                                             \
         "Linux: rxe_get_av; rdma-core: mlx4 puts the domain into the address vector")
/* clang-format on */

#define STRICT_NAME(name, ...) STRICT_##name,
enum strict_rule {
    STRICT_RULES(STRICT_NAME) STRICT_RULE_COUNT
};

/* Says on stderr which rule it is and the cure, once in a process. Returns the rule's errno, and
 * leaves errno as it is. Not locked. */
int strict_refuse(enum strict_rule rule);

/* A sentence for people, of what is not right. */
const char *strict_wrong(enum strict_rule rule);

/* The error of a call that posts: all slots in use breaks this rule. */
static inline int strict_if_full(int reason, enum strict_rule rule)
{
    return reason == ENOMEM ? strict_refuse(rule) : reason;
}

/* May the two be made into one object, with an object of another context? Without NONIC_STRICT in
 * any case. False, EINVAL, and it was said. Not locked. */
MUST_USE bool strict_joins(struct ibv_context *context, struct ibv_context *other);
#define STRICT_JOINS(own, object) ((object) == NULL || strict_joins((own), (object)->context))

/* 0, or the errno of an address vector that hardware refuses. Not locked. */
MUST_USE int strict_judge_address(struct live *live, const struct ibv_ah_attr *attr);

#endif
