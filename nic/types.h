/* SPDX-License-Identifier: BSD-2-Clause
 *
 * types - the vocabulary of the NIC's objects, with the numeric values of the verbs ABI.
 *
 * The NIC does not include verbs headers (it also runs where there are none), so the enums are
 * spelled here once; verbs/abi_check.c asserts that each value equals the one programs use.
 */
#ifndef NIC_TYPES_H
#define NIC_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "transport/common/work.h"
#include "wire/inet.h"

enum qp_type {
    QP_RC = 2,
    QP_UC = 3,
    QP_UD = 4,
    QP_XRC_INITIATOR = 9, /* Has requests only. */
    QP_SRD = 255,         /* IBV_QPT_DRIVER: scalable reliable datagrams. */
    QP_XRC_TARGET = 10,   /* Has neither memory nor receives: each request names a shared queue. */
};

enum qp_state {
    QP_RESET,
    QP_INIT,
    QP_RTR,
    QP_RTS,
    QP_SQD,
    QP_SQE,
    QP_ERR,
};

/* Attributes of qp_modify and qp_query, one bit each: the values of enum ibv_qp_attr_mask. */
enum qp_attribute {
    QP_ATTR_STATE = 1 << 0,
    QP_ATTR_CUR_STATE = 1 << 1,
    QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
    QP_ATTR_ACCESS_FLAGS = 1 << 3,
    QP_ATTR_PKEY_INDEX = 1 << 4,
    QP_ATTR_PORT = 1 << 5,
    QP_ATTR_QKEY = 1 << 6,
    QP_ATTR_AV = 1 << 7,
    QP_ATTR_PATH_MTU = 1 << 8,
    QP_ATTR_TIMEOUT = 1 << 9,
    QP_ATTR_RETRY_CNT = 1 << 10,
    QP_ATTR_RNR_RETRY = 1 << 11,
    QP_ATTR_RQ_PSN = 1 << 12,
    QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 13,
    QP_ATTR_ALT_PATH = 1 << 14,
    QP_ATTR_MIN_RNR_TIMER = 1 << 15,
    QP_ATTR_SQ_PSN = 1 << 16,
    QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
    QP_ATTR_PATH_MIG_STATE = 1 << 18,
    QP_ATTR_CAP = 1 << 19,
    QP_ATTR_DEST_QPN = 1 << 20,
    QP_ATTR_RATE_LIMIT = 1 << 25,
};

enum access {
    ACCESS_LOCAL_WRITE = 1 << 0,
    ACCESS_REMOTE_WRITE = 1 << 1,
    ACCESS_REMOTE_READ = 1 << 2,
    ACCESS_REMOTE_ATOMIC = 1 << 3,
    ACCESS_MW_BIND = 1 << 4,
    ACCESS_ZERO_BASED = 1 << 5,
    ACCESS_ON_DEMAND = 1 << 6,
    ACCESS_FLUSH_GLOBAL = 1 << 8,
    ACCESS_FLUSH_PERSISTENT = 1 << 9,
};

/* The values of enum ibv_wc_flags. */
enum completion_flag {
    COMPLETION_HAS_GRH = 1 << 0,
    COMPLETION_HAS_IMMEDIATE = 1 << 1,
    COMPLETION_HAS_INVALIDATE = 1 << 3,
    COMPLETION_UNSOLICITED = 1 << 7, /* None of verbs: an SRD receive that consumed nothing. */
};

/* Path MTU codes: the values of enum ibv_mtu. */
enum path_mtu {
    PATH_MTU_256 = 1,
    PATH_MTU_512,
    PATH_MTU_1024,
    PATH_MTU_2048,
    PATH_MTU_4096,
};

static inline uint32_t path_mtu_bytes(enum path_mtu mtu)
{
    return 128u << mtu;
}

static inline enum path_mtu path_mtu_of(uint32_t bytes)
{
    return (enum path_mtu)(__builtin_ctz(bytes) - 7);
}

/* Affiliated asynchronous events: the values of enum ibv_event_type. */
enum nic_event_kind {
    NIC_EVENT_CQ_ERROR = 0,
    NIC_EVENT_QP_FATAL = 1,
    NIC_EVENT_QP_REQUEST_ERROR = 2,
    NIC_EVENT_QP_ACCESS_ERROR = 3,
    NIC_EVENT_COMMUNICATION_ESTABLISHED = 4,
    NIC_EVENT_SQ_DRAINED = 5,
    NIC_EVENT_SRQ_ERROR = 14,
    NIC_EVENT_SRQ_LIMIT_REACHED = 15,
    NIC_EVENT_LAST_WQE_REACHED = 16,
    /* For the world alone, never a program's: the queue pair went into the error state by
     * itself. */
    NIC_EVENT_ENTERED_ERROR = 31,
};

struct gid {
    uint8_t bytes[16];
};

static inline bool gid_equal(const struct gid *a, const struct gid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* A piece of this process's memory: already judged, ready to be copied to or from. */
struct segment {
    uint64_t address;
    uint32_t bytes;
    bool may_fault; /* Belongs to an on-demand region: the memory may turn out not to be there. */
};

/* An acknowledgement that travels with a request of its queue pair, and comes before it: the PSN
 * and the AETH of a packet of its own. */
struct nic_piggyback {
    bool there;
    uint32_t psn, aeth;
};

#define NIC_PEERS_MASK 0xffffffu

/* The destination of the packets of a queue pair or an address handle. */
struct nic_av {
    struct gid source; /* One of the device's addresses. */
    struct gid destination;
    uint8_t source_index : 7;         /* The index of its GID in the port's table. */
    uint8_t destination_by_alias : 1; /* The program named it by its inet_loopback_alias. */
    uint8_t hop_limit;
    uint8_t traffic_class;
    uint8_t service_level;
    uint32_t flow_label;
    void *link;            /* Set by the world when it finds the peer. */
    uint32_t window_bytes; /* Request and read bytes the peer can hold in flight; 0: no limit. */
    /* Set with `link`: which of block_limits.peers the link is, from 1 on; 0: none, it carries RC
     * only. */
    uint32_t peer : 24;
    /* Likewise: the bytes behind the BTH of a request that may carry an acknowledgement, at most
     * (nic_piggyback); 0: none does. */
    uint32_t piggyback_bytes : 8;
};

/* The fields of the IP headers of its packets. A unicast hop limit of 0 or 1 is not used: programs
 * that were written for InfiniBand, where 1 means the own subnet, set it for peers behind routers,
 * too. Linux takes the route's hop limit instead (docs/decisions/0005). */
static inline struct inet_variant nic_av_variant(const struct nic_av *av)
{
    struct inet_variant variant = {
        .flow_label = av->flow_label & INET_LABEL_MASK,
        .traffic_class = (uint8_t)(av->traffic_class & ~INET_ECN_MASK),
        .hop_limit = av->hop_limit,
    };
    if (av->hop_limit < 2) {
        variant.hop_limit = inet_is_multicast(av->destination.bytes) ? 1 : INET_HOP_LIMIT;
    }
    return variant;
}

#define NIC_SGE_MAX 32
/* READs and atomics a queue pair may have outstanding, each way: a power of two. */
#define NIC_READS_MAX 128
/* Payload segments of one packet: the GRH block a UD receive starts with, and every SGE. */
#define NIC_SEGMENT_MAX (NIC_SGE_MAX + 1)
#define NIC_GRH_BYTES   40
/* Headers of one packet, of any engine. */
#define NIC_HEADERS_BYTES_MAX 100

#endif
