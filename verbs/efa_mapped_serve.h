/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_mapped_serve - what the thread of mapped queues does with one of them: descriptors become
 * requests, and completions become entries.
 *
 * Threads    The thread of efa_mapped.c, with its mutex; without the live lock.
 */
#ifndef VERBS_EFA_MAPPED_SERVE_H
#define VERBS_EFA_MAPPED_SERVE_H

#include "verbs/efa.h"

/* Where the parts of a queue pair's memory begin; receives follow the sends. */
#define DOORBELL_SENDS    0
#define DOORBELL_RECEIVES 64
#define SENDS             4096

struct mapped_cq {
    struct list node;
    struct verbs_cq *cq;
    uint8_t *memory;
    size_t bytes;
    uint32_t entries; /* 2^n */
    uint32_t next;    /* Completions that were written; runs free. */
};

struct mapped_qp {
    struct list node;
    struct verbs_qp *qp;
    struct mapped_cq *ends; /* Where its sends complete. */
    uint8_t *memory;
    size_t bytes;
    uint8_t *receives;
    uint32_t send_entries, receive_entries; /* Each 2^n. */
    uint16_t sent, received;                /* Descriptors that were taken, as doorbells count. */
    bool failed;                            /* Its writer broke the rules of the queue. */
    struct nic_av to[]; /* Where requests go: one for each entry of the sends. */
};

/* Each takes some, and says whether there were any. One that its writer broke (mapped_qp.failed) is
 * left alone. */
bool efa_serve_sends(struct mapped_qp *mine);
bool efa_serve_receives(struct mapped_qp *mine);
bool efa_serve_cq(struct mapped_cq *mine);

#endif
