/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qpc - the words of the csRNA machine: a queue pair's context, and how units ask for it.
 *
 * Source: csRNA 2.1, 4.3, 4.4.
 */
#ifndef HARDWARE_CSRNA_QPC_H
#define HARDWARE_CSRNA_QPC_H

#include <stdint.h>

#include "transport/common/psn.h"

#define QPC_BYTES     256
#define QPC_QPN_LIMIT (1u << 24)

/* A queue pair's context as it lies in host memory and in the cache. */
struct qpc {
    uint64_t sq_address;
    uint32_t sq_offset; /* The offset of the next WQE, in WQEs. */
    uint32_t qpn;
    uint32_t version; /* Counts updates. */
    struct psn next_psn, acknowledged_psn, expected_psn;
    uint32_t reserved[56]; /* Room for the RC engine's own state. */
};
_Static_assert(sizeof(struct qpc) == QPC_BYTES, "a context is 256 bytes long");

/* The units that ask for contexts: each has one requester. */
enum qpc_channel {
    QPC_DESCRIPTOR,
    QPC_REQUESTER,
    QPC_RESPONDER,
    QPC_CHANNELS
};

enum qpc_operation {
    QPC_READ,
    QPC_UPDATE,   /* The unit writes into the cached context as soon as it is answered. */
    QPC_PREFETCH, /* The descriptor unit's: only to be cached; its answer hands over no context. */
};

/* The out-of-order capacity: indices per channel. */
#define QPC_OOCAP_MAX 64

struct qpc_request {
    uint32_t qpn;      /* Below QPC_QPN_LIMIT. */
    uint8_t channel;   /* enum qpc_channel. */
    uint8_t index;     /* The index of the channel's requester; below oocap. */
    uint8_t operation; /* enum qpc_operation. */
};

#endif
