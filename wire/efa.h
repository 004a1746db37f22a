/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa - descriptors of an EFA device: what a program writes into the mapped queues of a queue pair,
 * and what the device writes into a mapped completion queue.
 *
 * Purpose    A program, or another one to which it gives the memory, posts requests without a call.
 *            It does so in this format, with little-endian fields.
 * Inputs     Entries as they lie in the queue. A caller copies them first: their writer may be at
 *            work.
 * Outputs    Requests, or the status with which a device completes what it does not understand.
 * Source     rdma-core, providers/efa/efa_io_defs.h; efadv_query_qp_wqs(3), efadv_query_cq(3).
 */
#ifndef WIRE_EFA_H
#define WIRE_EFA_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/srd.h"

#define EFA_SEND_ENTRY_BYTES       64
#define EFA_RECEIVE_ENTRY_BYTES    16
#define EFA_COMPLETION_ENTRY_BYTES 32
#define EFA_INLINE_BYTES_MAX       32
#define EFA_SGES_MAX               2

enum efa_operation {
    EFA_SEND,
    EFA_READ,
    EFA_WRITE,
};

/* A piece of memory: of the queue pair's process, or with a remote key of its peer's. */
struct efa_buffer {
    uint64_t address;
    uint32_t bytes;
    uint32_t key;
};

struct efa_send {
    uint16_t id; /* Comes back in the completion. */
    uint8_t operation;
    bool has_immediate, is_inline;
    bool phase; /* It differs from one round of the queue to the next. */
    uint16_t destination_qpn, handle;
    uint32_t qkey;
    uint32_t immediate; /* As a number. */
    struct efa_buffer local[EFA_SGES_MAX];
    uint32_t local_count;
    struct efa_buffer remote;   /* READ and WRITE. */
    const uint8_t *inline_data; /* Within the entry. */
    uint32_t inline_bytes;
};

/* SRD_STATUS_OK, or why the device completes it at once. `id` and `operation` are there in any
 * case. */
enum srd_status efa_decode_send(const uint8_t entry[EFA_SEND_ENTRY_BYTES], struct efa_send *send);

/* One entry of a receive, which has one for each of its SGEs. */
struct efa_receive {
    uint16_t id;
    bool first, last;
    struct efa_buffer buffer;
};
void efa_decode_receive(const uint8_t entry[EFA_RECEIVE_ENTRY_BYTES], struct efa_receive *receive);

struct efa_completion {
    uint16_t id;
    uint8_t status; /* enum srd_status. */
    uint8_t operation;
    bool receive, has_immediate, unsolicited, phase;
    uint16_t qpn;
    /* Receives have the rest, too. */
    uint32_t bytes;
    uint16_t handle; /* 0xffff: there is none to the sender, whose GID is `source`. */
    uint16_t source_qpn;
    uint32_t immediate; /* As a number. */
    uint8_t source[16];
};

/* The first 8 bytes have the phase: they are to be written last, and at once. */
void efa_encode_completion(const struct efa_completion *completion,
                           uint8_t entry[EFA_COMPLETION_ENTRY_BYTES]);

#endif
