/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/nic_target.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/check.h"

static const struct nic_limits limits = {.qps = 8,
                                         .xrc_srqs = 2,
                                         .regions = 8,
                                         .sends_per_qp = 16,
                                         .receives_per_qp = 16,
                                         .receives_per_srq = 16,
                                         .sges = 4,
                                         .inline_bytes = 64,
                                         .reads_per_qp = 4,
                                         .cq_entries = 256,
                                         .mtu = PATH_MTU_4096};

static const enum qp_type types[NIC_TARGET_QPS] = {QP_RC, QP_UC, QP_UD, QP_XRC_TARGET};

static void *zeroed(size_t bytes)
{
    bytes = line_aligned(bytes);
    void *memory = aligned_alloc(64, bytes);
    CHECK(memory != NULL);
    return memset(memory, 0, bytes);
}

static struct gid gid_of(uint8_t last)
{
    return (struct gid){.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = last}};
}

static void connect(struct nic_target *target, struct qp *qp, enum qp_type type, void *link)
{
    struct qp_attributes attributes = {
        .state = QP_INIT,
        .port = 1,
        .access = ACCESS_REMOTE,
        .path_mtu = PATH_MTU_256,
        .qkey = 0x1234,
        .av = {.source = target->self, .destination = target->peer, .link = link},
        .max_reads_in = 4,
        .max_reads_out = 4,
        .timeout = 10,
        .retry_count = 1,
        .rnr_retry = 1};
    const uint32_t connected = QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
    const uint32_t init = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
                          (type == QP_UD ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS);
    const uint32_t rtr =
        QP_ATTR_STATE | (type == QP_UD ? 0 : connected) |
        (type == QP_RC || type == QP_XRC_TARGET ? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER
                                                : 0);
    const uint32_t rts = QP_ATTR_STATE | QP_ATTR_SQ_PSN |
                         (type == QP_RC ? QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                                              QP_ATTR_MAX_QP_RD_ATOMIC
                          : type == QP_XRC_TARGET ? QP_ATTR_TIMEOUT
                                                  : 0);
    const struct instant now = {1};
    CHECK(qp_modify(qp, &attributes, init, now) == STATUS_OK);
    attributes.state = QP_RTR;
    CHECK(qp_modify(qp, &attributes, rtr, now) == STATUS_OK);
    attributes.state = QP_RTS;
    CHECK(qp_modify(qp, &attributes, rts, now) == STATUS_OK);
}

static struct qp_request request_of(struct nic_target *target, enum qp_type type)
{
    if (type == QP_XRC_TARGET) {
        return (struct qp_request){.type = type, .xrcd = &target->xrcd};
    }
    return (struct qp_request){.type = type,
                               .pd = &target->pd,
                               .send_cq = &target->cq,
                               .receive_cq = &target->cq,
                               .capacity = {4, 8, 2, 2, 16}};
}

static void make_srq(struct nic_target *target)
{
    target->srq_memory = zeroed(receive_queue_bytes(8, 1));
    srq_init(&target->srq, &target->pd, 8, 1, target->srq_memory);
    target->srq.xrcd = &target->xrcd;
    target->srq.cq = &target->cq;
    CHECK(srq_enter(target->nic, &target->srq) == STATUS_OK);
}

void nic_target_make(struct nic_target *target, void *link, uint32_t qpn_base, uint32_t qpn_span)
{
    memset(target, 0, sizeof(*target));
    memset(target->memory, 0xa5, sizeof(target->memory));
    struct nic_limits own = limits;
    own.qpn_base = qpn_base;
    own.qpn_span = qpn_span;
    target->nic_memory = zeroed(nic_bytes(&own));
    target->nic = nic_init(&own, 1, target->nic_memory);
    target->self = gid_of(1);
    target->peer = gid_of(2);
    cq_init(&target->cq, 256, target->ring);
    list_init(&target->cq.notify);
    list_init(&target->cq.event_link);
    const struct region_request request = {.address =
                                               (uintptr_t)(target->memory + NIC_TARGET_GUARD_BYTES),
                                           .bytes = NIC_TARGET_REGION_BYTES,
                                           .start = NIC_TARGET_BASE,
                                           .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE};
    CHECK(region_add(nic_regions(target->nic), &target->pd, &request, &target->region) ==
          STATUS_OK);
    make_srq(target);
    for (int i = 0; i < NIC_TARGET_QPS; i++) {
        struct qp_request made = request_of(target, types[i]);
        target->qp_memory[i] = zeroed(qp_bytes(types[i], &made.capacity, false));
        CHECK(qp_create(target->nic, &made, target->qp_memory[i], &target->qps[i]) == STATUS_OK);
        connect(target, target->qps[i], types[i], link);
        for (uint32_t n = 0; n < 8; n++) {
            const struct sge sge = {NIC_TARGET_BASE + n * 512, 512, target->region.key};
            CHECK((types[i] == QP_XRC_TARGET
                       ? srq_post_receive(&target->srq, n, &sge, 1)
                       : qp_post_receive(target->qps[i], n, &sge, 1)) == STATUS_OK);
        }
    }
    /* A READ of ours under way, and a FLUSH, so that responses have something to answer. */
    const struct sge sge = {NIC_TARGET_BASE, 1000, target->region.key};
    const struct send_request read = {
        .kind = WORK_READ, .sges = &sge, .sge_count = 1, .remote_address = 1};
    const struct send_request flush = {.kind = WORK_FLUSH, .flush.placement = ROCE_PLACEMENT_KNOWN};
    CHECK(qp_post_send(target->qps[0], &read) == STATUS_OK);
    CHECK(qp_post_send(target->qps[0], &flush) == STATUS_OK);
}

void nic_target_drop(struct nic_target *target)
{
    srq_leave(target->nic, &target->srq);
    free(target->srq_memory);
    for (int i = 0; i < NIC_TARGET_QPS; i++) {
        qp_destroy(target->qps[i]);
        free(target->qp_memory[i]);
    }
    free(target->nic_memory);
}

void nic_target_hint(const struct nic_target *target, uint8_t hints, struct roce_packet *packet)
{
    const struct qp *qp = target->qps[hints & HINT_SERVICE];
    packet->destination_qpn = qp_number(qp);
    packet->pkey = ROCE_DEFAULT_PKEY;
    if (hints & HINT_PSN) {
        const bool response = roce_opcode(packet->opcode)->traits & ROCE_IS_RESPONSE;
        if (qp_type_of(qp) != QP_UC && qp_type_of(qp) != QP_UD) {
            const struct qp_flow flow = qp_flow_of(qp);
            packet->psn = response ? flow.unacked.value : flow.expected.value;
        }
    }
    if (hints & HINT_KEY) {
        packet->reth.key = packet->atomic.key = target->region.key;
        packet->xrc.srqn = target->srq.number + (packet->xrc.srqn & 1);
        packet->reth.address =
            NIC_TARGET_BASE + packet->reth.address % (NIC_TARGET_REGION_BYTES + 512);
        packet->atomic.address =
            NIC_TARGET_BASE + packet->atomic.address % (NIC_TARGET_REGION_BYTES + 16);
    }
    if (hints & HINT_QKEY) {
        packet->deth.qkey = 0x1234;
    }
}

/* Nothing outside the region is flushed, either. */
static void check_flush(const struct nic_target *target, const struct nic_move *wanted)
{
    const uint64_t start = (uintptr_t)(target->memory + NIC_TARGET_GUARD_BYTES);
    const struct region_range *range = &wanted->flush.range;
    CHECK(range->address >= start && range->address - start <= NIC_TARGET_REGION_BYTES);
    CHECK(range->bytes <= NIC_TARGET_REGION_BYTES - (range->address - start));
}

void nic_target_move(const struct nic_target *target, struct nic_move *wanted)
{
    const uint8_t *payload = wanted->payload;
    uint32_t prefix = 0;
    if (wanted->kind == NIC_MOVE_ATOMIC) {
        uint64_t *at = (uint64_t *)(uintptr_t)wanted->segments[0].address;
        wanted->original = *at;
        *at = nic_atomic_result(wanted, *at);
        return;
    }
    if (wanted->kind == NIC_MOVE_FLUSH) {
        check_flush(target, wanted);
        return;
    }
    if (wanted->kind == NIC_MOVE_NOTHING) {
        return;
    }
    for (uint32_t i = 0; i < wanted->segment_count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)wanted->segments[i].address;
        for (uint32_t k = 0; k < wanted->segments[i].bytes; k++) {
            *to++ = prefix < wanted->prefix_bytes ? wanted->prefix[prefix++] : *payload++;
        }
    }
}

void nic_target_check(const struct nic_target *target)
{
    nic_check(target->nic);
    for (size_t i = 0; i < NIC_TARGET_GUARD_BYTES; i++) {
        CHECK(target->memory[i] == 0xa5);
        CHECK(target->memory[NIC_TARGET_GUARD_BYTES + NIC_TARGET_REGION_BYTES + i] == 0xa5);
    }
}
