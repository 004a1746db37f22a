/* SPDX-License-Identifier: BSD-2-Clause
 *
 * reach_model - for the tests of nic/reach.h and its users: the rule again, deliberately simple.
 *
 * It computes in 128 bits, takes every access to a window through the region behind it, and knows
 * what programs asked for instead of what the NIC made of it.
 */
#ifndef TESTS_REACH_MODEL_H
#define TESTS_REACH_MODEL_H

#include "nic/region.h"

__extension__ typedef unsigned __int128 wide;

enum {
    NONE = -1,
};

/* The memory that a key opens. Domains and queue pairs are numbers of the test's. */
struct modelled_key {
    bool live;
    enum region_kind kind;
    int domain;
    int owner; /* The queue pair of a bound type 2 window, or NONE. */
    /* How a region was registered, or a window bound. */
    struct region_request asked;
    /* How a window's region was registered; NULL: the window is not bound. */
    const struct region_request *region;
};

struct modelled_qp {
    enum qp_type type;
    enum qp_state state;
    uint32_t access;
    uint32_t reads; /* Responder resources. */
    int domain, name;
    uint8_t peer; /* The last byte of its GID. */
    uint32_t peer_number;
    uint32_t mtu_bytes;
};

struct modelled_access {
    uint64_t address;
    uint32_t bytes, rights;
    uint8_t source;
    uint32_t source_number;
    uint32_t source_mtu_bytes;
    uint32_t source_reads; /* That it asks at a time. */
};

static inline wide model_start(const struct region_request *asked)
{
    return asked->whole_space || (asked->access & ACCESS_ZERO_BASED) ? 0 : asked->start;
}

/* Memory that `address` of a region stands for; false if [address, +bytes) is not in the region. */
static inline bool model_translates(const struct region_request *asked, wide address, wide bytes,
                                    wide *memory)
{
    const wide first = model_start(asked);
    const wide length = asked->whole_space ? UINT64_MAX : asked->bytes;
    *memory = address - first + (asked->whole_space ? 0 : asked->address);
    return address >= first && address + bytes <= first + length;
}

/* A window's address as its region knows it; false if the access is not in the window. */
static inline bool model_through_window(const struct region_request *asked, uint64_t address,
                                        uint32_t bytes, wide *in_region)
{
    const wide opened = asked->address;
    *in_region = asked->access & ACCESS_ZERO_BASED ? opened + address : address;
    return *in_region >= opened && *in_region + bytes <= opened + asked->bytes;
}

/* `qp` NONE: work of the program itself. On REACH_ALLOWED *segment is where, also of no bytes. */
static inline enum reach_verdict model_judge_named(const struct modelled_key *key, int domain,
                                                   int qp, const struct modelled_access *access,
                                                   struct segment *segment)
{
    const struct region_request *region = &key->asked;
    wide in_region = access->address, memory;
    bool fits = true;
    if (!key->live) {
        return REACH_UNKNOWN_KEY;
    }
    if (key->kind != REGION_MEMORY) {
        if (key->region == NULL) {
            return REACH_UNKNOWN_KEY;
        }
        if (qp == NONE || (access->rights & 0x30e) == 0) {
            return REACH_FORBIDDEN;
        }
        region = key->region;
        fits = model_through_window(&key->asked, access->address, access->bytes, &in_region);
    }
    if (key->kind == REGION_WINDOW_TYPE_2 ? key->owner != qp : key->domain != domain) {
        return REACH_WRONG_DOMAIN;
    }
    if (!fits || !model_translates(region, in_region, access->bytes, &memory)) {
        return REACH_OUT_OF_BOUNDS;
    }
    if ((access->rights & key->asked.access) != access->rights) {
        return REACH_FORBIDDEN;
    }
    *segment = (struct segment){
        .address = (uint64_t)memory,
        .bytes = access->bytes,
        .may_fault = region->whole_space || (region->access & ACCESS_ON_DEMAND) != 0,
    };
    return REACH_ALLOWED;
}

static inline enum reach_verdict model_judge_key(const struct modelled_key *key, int domain, int qp,
                                                 const struct modelled_access *access,
                                                 struct segment *segment)
{
    if (access->bytes == 0) {
        *segment = (struct segment){0};
        return REACH_ALLOWED;
    }
    return model_judge_named(key, domain, qp, access, segment);
}

/* The part of its key's memory that a FLUSH is about. */
static inline enum reach_verdict model_judge_flush(const struct modelled_key *key, int domain,
                                                   int qp, const struct region_flush *flush,
                                                   struct region_range *range)
{
    const struct region_request *asked = &key->asked;
    const bool region = key->kind == REGION_MEMORY;
    struct modelled_access access = {
        .address = flush->address, .bytes = flush->bytes, .rights = flush->access};
    uint64_t bytes = flush->bytes;
    if (flush->whole) {
        access.bytes = 0;
        access.address = region                              ? (uint64_t)model_start(asked)
                         : asked->access & ACCESS_ZERO_BASED ? 0
                                                             : asked->address;
        bytes = region && asked->whole_space ? UINT64_MAX : asked->bytes;
    }
    struct segment segment;
    const enum reach_verdict verdict = model_judge_named(key, domain, qp, &access, &segment);
    if (verdict == REACH_ALLOWED) {
        *range = (struct region_range){segment.address, bytes};
    }
    return verdict;
}

/* Do both halves of a connection cut a message into the same packets? */
static inline bool model_cuts_alike(uint32_t bytes, uint32_t mtu_bytes, uint32_t other_mtu_bytes)
{
    while (bytes > 0) {
        const uint32_t packet = bytes < mtu_bytes ? bytes : mtu_bytes;
        if (packet != (bytes < other_mtu_bytes ? bytes : other_mtu_bytes)) {
            return false;
        }
        bytes -= packet;
    }
    return true;
}

/* An access is a message of its own. */
static inline enum reach_verdict model_judge_qp(const struct modelled_qp *qp,
                                                const struct modelled_access *access)
{
    const bool memory = qp->type == QP_RC || qp->type == QP_UC || qp->type == QP_XRC_TARGET;
    const bool serves =
        qp->state == QP_RTR || qp->state == QP_RTS || qp->state == QP_SQD || qp->state == QP_SQE;
    const bool resources = qp->reads > 0 || qp->type == QP_UC ||
                           !(access->rights & (ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
                                               ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT));
    const bool alike = model_cuts_alike(access->bytes, qp->mtu_bytes, access->source_mtu_bytes);
    const bool answers =
        !(access->rights & ACCESS_REMOTE_READ) || access->source_reads <= qp->reads;
    const bool granted = resources && (qp->access & access->rights) == access->rights;
    return !memory                                    ? REACH_WRONG_SERVICE
           : !serves                                  ? REACH_WRONG_STATE
           : qp->peer != access->source               ? REACH_WRONG_PEER
           : qp->peer_number != access->source_number ? REACH_WRONG_PEER
           : !alike                                   ? REACH_OTHER_MTU
           : !granted                                 ? REACH_NO_RIGHT
           : !answers                                 ? REACH_OTHER_READS
                                                      : REACH_ALLOWED;
}

static inline enum reach_verdict model_judge(const struct modelled_qp *qp,
                                             const struct modelled_key *key,
                                             const struct modelled_access *access,
                                             struct segment *segment)
{
    const enum reach_verdict verdict = model_judge_qp(qp, access);
    return verdict == REACH_ALLOWED ? model_judge_key(key, qp->domain, qp->name, access, segment)
                                    : verdict;
}

/* May a local peer use it by itself, for any operation? */
static inline bool model_qp_is_direct(const struct modelled_qp *qp)
{
    const bool readable = (qp->access & ACCESS_REMOTE_READ) && qp->reads > 0;
    return qp->type == QP_RC && (qp->state == QP_RTR || qp->state == QP_RTS) &&
           (readable || (qp->access & ACCESS_REMOTE_WRITE));
}

static inline bool model_key_is_direct(const struct modelled_key *key)
{
    const uint32_t access = key->asked.access;
    return key->live && key->kind == REGION_MEMORY && !key->asked.whole_space &&
           !(access & ACCESS_ON_DEMAND) &&
           (access & (ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE)) != 0;
}

#endif
