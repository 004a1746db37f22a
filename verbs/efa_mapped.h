/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_mapped - queues of an EFA device that programs write and read themselves.
 *
 * Purpose    A program asks where the queues of a queue pair and of a completion queue are
 *            (efadv_query_qp_wqs, efadv_query_cq). From then on it posts by a descriptor and a
 *            doorbell, and looks for completions in memory. All of that memory is shared: a child
 *            of fork may do it in the program's place.
 * Inputs     Descriptors (wire/efa.h), which a thread of ours reads as a device would. Nothing in
 *            them is believed: each becomes a request that is judged as any other, or a completion
 *            with an error.
 * Outputs    Completions, in the mapped queue alone.
 * Threads    Any. Not with the live lock held.
 * Limits     Queue pairs of SRD. Their completion queues are mapped first. A mapped completion
 *            queue is not polled by calls, nor is a mapped queue pair posted to by calls.
 */
#ifndef VERBS_EFA_MAPPED_H
#define VERBS_EFA_MAPPED_H

#include "verbs/efa.h"

/* 0 or errno. EINVAL: of another kind, or its completion queues are not mapped. */
int efa_map_qp(struct verbs_qp *qp, struct efa_wq_attr *sends, struct efa_wq_attr *receives);
int efa_map_cq(struct verbs_cq *cq, struct efa_cq_attr *attr);

/* The object goes, or the queue pair was reset: its indices begin at 0. Nothing happens to one that
 * is not mapped. */
void efa_unmap_qp(const struct verbs_qp *qp);
void efa_unmap_cq(const struct verbs_cq *cq);
void efa_reset_mapped_qp(const struct verbs_qp *qp);

/* In a child of fork, which keeps the memory, but has no thread. */
void efa_mapped_in_child(void);

#endif
