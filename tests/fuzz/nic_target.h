/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nic_target - a NIC for fuzzers: a queue pair of each service, connected to one peer, with a
 *              region between guards and receives in it, a READ and a FLUSH under way.
 */
#ifndef TESTS_FUZZ_NIC_TARGET_H
#define TESTS_FUZZ_NIC_TARGET_H

#include "nic/nic.h"

#define NIC_TARGET_REGION_BYTES 8192
#define NIC_TARGET_GUARD_BYTES  256
#define NIC_TARGET_BASE         0x10000u
#define NIC_TARGET_QPS          4

/* Changes that bring a packet of a fuzzer past the first judges. */
enum nic_target_hint {
    HINT_SERVICE = 3, /* Which queue pair: RC, UC, UD, XRC target. */
    HINT_PSN = 4,
    HINT_KEY = 8,
    HINT_QKEY = 16,
};

struct nic_target {
    struct nic *nic;
    void *nic_memory;
    struct qp *qps[NIC_TARGET_QPS];
    void *qp_memory[NIC_TARGET_QPS];
    struct xrcd xrcd;
    struct srq srq;
    void *srq_memory;
    struct pd pd;
    struct cq cq;
    struct completion ring[256];
    struct region region;
    struct gid self, peer;
    uint8_t memory[NIC_TARGET_GUARD_BYTES + NIC_TARGET_REGION_BYTES + NIC_TARGET_GUARD_BYTES];
};

/* `link`: that of the queue pairs' address vectors. The NIC has the QPNs from qpn_base on, qpn_span
 * of them; 0: all. */
void nic_target_make(struct nic_target *target, void *link, uint32_t qpn_base, uint32_t qpn_span);
void nic_target_drop(struct nic_target *target);

/* Puts right numbers into a packet, as far as `hints` say. */
void nic_target_hint(const struct nic_target *target, uint8_t hints, struct roce_packet *packet);

/* Does a move as the contract says. */
void nic_target_move(const struct nic_target *target, struct nic_move *wanted);

/* Nothing beside the region was written, and the NIC's invariants hold. */
void nic_target_check(const struct nic_target *target);

#endif
