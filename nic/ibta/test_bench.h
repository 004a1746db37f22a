/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_bench - one NIC with one queue pair and no network, for tests: each packet of the peer is
 * made by hand, each memory move is made at once, or when the test says so.
 */
#ifndef NIC_IBTA_TEST_BENCH_H
#define NIC_IBTA_TEST_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nic/internal.h"

enum {
    MTU = 256,
    FIRST_PSN = 0xfffffe, /* The wrap comes with the third packet. */
    PEER_PSN = 77,
    MOVES_MAX = 16,
    TIMEOUT_CODE = 14,
    RNR_CODE = 21,
    QKEY = 0x1234567,
};

/* An AETH that acknowledges and sets no limit. */
#define FINE (ROCE_AETH_ACK | ROCE_AETH_CREDITS_UNLIMITED)

struct bench {
    struct nic *nic;
    struct pd pd;
    struct cq cq;
    struct completion ring[64];
    struct region region;
    struct qp *qp;
    void *qp_memory;
    struct instant now;
    uint32_t access;  /* The queue pair's and the region's, of peers. */
    uint8_t reads_in; /* Responder resources. */
    bool slow;        /* Moves wait for finish_moves. */
    struct nic_move moves[MOVES_MAX];
    uint32_t move_count;
    _Alignas(64) uint8_t memory[8 * MTU];
};

static const uint8_t payload[2 * MTU];

static inline void *zeroed(size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    return memset(aligned_alloc(64, bytes), 0, bytes);
}

static inline void modify(struct bench *bench, enum qp_state state, uint32_t mask)
{
    const struct qp_attributes attributes = {
        .state = (uint8_t)state,
        .port = 1,
        .qkey = QKEY,
        .access = (uint16_t)bench->access,
        .path_mtu = PATH_MTU_256,
        .psn = {.send = FIRST_PSN, .receive = PEER_PSN},
        .av = {.destination = {{[15] = 1}}},
        .max_reads_in = bench->reads_in,
        .max_reads_out = 2,
        .timeout = TIMEOUT_CODE,
        .retry_count = 2,
        .rnr_retry = 1,
        .min_rnr_timer = RNR_CODE,
    };
    assert_int_equal(qp_modify(bench->qp, &attributes, mask | QP_ATTR_STATE, bench->now),
                     STATUS_OK);
}

static inline void receive_ready(struct bench *bench)
{
    const enum qp_type type = (enum qp_type)bench->qp->type;
    const bool reliable = type == QP_RC || type == QP_XRC_TARGET;
    if (type == QP_UD) {
        modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY);
        modify(bench, QP_RTR, 0);
        return;
    }
    modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    modify(bench, QP_RTR,
           QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               (reliable ? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER : 0));
}

static inline struct bench *begin_on(bool long_way, enum qp_type type, enum qp_state state,
                                     uint32_t access)
{
    const struct nic_limits limits = {.qps = 4,
                                      .regions = 4,
                                      .sends_per_qp = 16,
                                      .receives_per_qp = 4,
                                      .sges = 1,
                                      .inline_bytes = 64,
                                      .reads_per_qp = 2,
                                      .cq_entries = 32,
                                      .xrc_srqs = 3,
                                      .mtu = PATH_MTU_1024,
                                      .long_way = long_way};
    struct bench *bench = zeroed(sizeof(*bench));
    bench->now = (struct instant){1000};
    bench->access = access;
    bench->reads_in = 2;
    bench->nic = nic_init(&limits, 1, zeroed(nic_bytes(&limits)));
    cq_init(&bench->cq, 32, bench->ring);
    const struct region_request all = {.address = (uintptr_t)bench->memory,
                                       .start = 0,
                                       .bytes = sizeof(bench->memory),
                                       .access = ACCESS_LOCAL_WRITE | access};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &all, &bench->region),
                     STATUS_OK);
    struct qp_request request = {.type = type,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .capacity = {.sends = 16,
                                              .receives = 4,
                                              .send_sges = 1,
                                              .receive_sges = 1,
                                              .inline_bytes = 64},
                                 .signal_all = true};
    bench->qp_memory = zeroed(qp_bytes(type, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, bench->qp_memory, &bench->qp), STATUS_OK);
    receive_ready(bench);
    if (state == QP_RTS) {
        const uint32_t reliable =
            QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC;
        modify(bench, QP_RTS, QP_ATTR_SQ_PSN | (type == QP_RC ? reliable : 0));
    }
    return bench;
}

static inline struct bench *begin_with(enum qp_type type, enum qp_state state, uint32_t access)
{
    return begin_on(false, type, state, access);
}

static inline struct bench *begin(enum qp_type type, enum qp_state state)
{
    return begin_with(type, state, ACCESS_REMOTE_WRITE);
}

static inline void end(struct bench *bench)
{
    qp_destroy(bench->qp);
    free(bench->qp_memory);
    free(bench->nic);
    free(bench);
}

static inline uint64_t counted(const struct bench *bench, enum nic_counter counter)
{
    return nic_counters(bench->nic)->values[counter];
}

static inline void post(struct bench *bench, uint64_t wr_id, enum work_kind kind, uint32_t bytes)
{
    const struct sge sge = {0, bytes, bench->region.key};
    struct send_request request = {
        .wr_id = wr_id, .kind = kind, .sges = &sge, .sge_count = bytes != 0};
    if (kind == WORK_FLUSH) {
        request.sge_count = 0;
        request.remote_address = 8;
        request.remote_key = bench->region.key;
        request.flush.bytes = bytes;
        request.flush.placement = ROCE_PLACEMENT_GLOBAL;
    }
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
}

/* Takes all packets out; returns how many, and the first one in *first. */
static inline uint32_t pull(struct bench *bench, struct roce_packet *first)
{
    struct nic_departure departure;
    uint32_t count = 0;
    while (nic_next_packet(bench->nic, bench->qp, bench->now, &departure)) {
        if (count++ == 0 && first != NULL) {
            assert_int_equal(roce_decode_split(departure.headers, departure.headers_bytes, payload,
                                               departure.payload_bytes + departure.pad_bytes,
                                               first),
                             ROCE_GOOD);
        }
    }
    return count;
}

static inline void finish_moves(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->move_count; i++) {
        nic_on_moved(bench->nic, &bench->moves[i], NIC_MOVED, bench->now);
    }
    bench->move_count = 0;
}

static inline void finish_first(struct bench *bench, enum nic_move_result result)
{
    assert_true(bench->move_count > 0);
    nic_on_moved(bench->nic, &bench->moves[0], result, bench->now);
    bench->move_count--;
    memmove(&bench->moves[0], &bench->moves[1], bench->move_count * sizeof(bench->moves[0]));
}

static inline uint8_t service_of(const struct bench *bench)
{
    switch ((enum qp_type)bench->qp->type) {
    case QP_UC: return ROCE_SERVICE_UC;
    case QP_UD: return ROCE_SERVICE_UD;
    case QP_XRC_INITIATOR:
    case QP_XRC_TARGET: return ROCE_SERVICE_XRC;
    case QP_SRD: /* Its packets are none of RoCE. */
    case QP_RC: break;
    }
    return ROCE_SERVICE_RC;
}

static inline void deliver(struct bench *bench, struct roce_packet packet)
{
    packet.opcode |= service_of(bench);
    packet.pkey = ROCE_DEFAULT_PKEY;
    packet.destination_qpn = qp_number(bench->qp);
    packet.psn &= PSN_MASK;
    packet.pad_bytes = roce_pad_bytes(packet.payload_bytes);
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    const struct nic_frame frame = {
        .headers = headers,
        .payload = payload,
        .headers_bytes = (uint32_t)roce_encode_headers(&packet, headers),
        .payload_bytes = packet.payload_bytes + packet.pad_bytes,
        .source = {{[15] = 1}},
    };
    struct nic_move *move = &bench->moves[bench->move_count];
    if (nic_on_packet(bench->nic, &frame, bench->now, move) == NIC_MOVES) {
        bench->move_count++;
        if (!bench->slow) {
            finish_moves(bench);
        }
    }
}

/* An acknowledgement or response of the peer; `psn` counts from FIRST_PSN. */
static inline void answer(struct bench *bench, enum roce_operation operation, uint32_t psn,
                          uint8_t syndrome, uint32_t bytes)
{
    deliver(bench, (struct roce_packet){.opcode = (uint8_t)operation,
                                        .psn = FIRST_PSN + psn,
                                        .aeth = {.syndrome = syndrome},
                                        .payload_bytes = bytes});
}

static inline void expect_nothing(struct bench *bench)
{
    struct completion completion;
    assert_int_equal(cq_poll(&bench->cq, &completion, 1), 0);
}

static inline void expect(struct bench *bench, uint64_t wr_id, enum completion_status status)
{
    struct completion completion = {0};
    assert_int_equal(cq_poll(&bench->cq, &completion, 1), 1);
    assert_int_equal(completion.wr_id, wr_id);
    assert_int_equal(completion.status, status);
}

#endif
