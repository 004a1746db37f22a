/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_bench - a NIC with one reliable queue pair, for tests of the peer's blocks: memory that two
 * keys open, receives of its own or shared, and moves that are made by hand.
 */
#ifndef NIC_BLOCK_BLOCK_BENCH_H
#define NIC_BLOCK_BLOCK_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nic/block/block_receiver.h"

enum {
    BENCH_MTU = 256,
    BENCH_MEMORY_BYTES = 40000,
    BENCH_RECEIVE_BYTES = 140 * BENCH_MTU,
    BENCH_RECEIVES = 16,
    BENCH_READS = 4,
    BENCH_SESSION = 0x5e551011,
    BENCH_WINDOW = 32,
};

struct bench_config {
    bool shared;
    uint32_t held;
    enum block_place place;
    uint32_t access; /* 0: everything. */
};

struct bench {
    struct nic *nic;
    struct pd pd;
    struct cq cq;
    struct completion ring[64];
    struct region region[2], receive_region;
    struct srq srq;
    struct qp *qp;
    struct instant now;
    void *nic_memory, *qp_memory, *srq_memory;
    uint8_t memory[BENCH_MEMORY_BYTES];
    uint8_t receives[BENCH_RECEIVES][BENCH_RECEIVE_BYTES];
};

static inline void *bench_zeroed(size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    return memset(aligned_alloc(64, bytes), 0, bytes);
}

static inline void bench_modify(struct bench *bench, enum qp_state state, uint32_t mask,
                                uint32_t access)
{
    const struct qp_attributes attributes = {
        .state = (uint8_t)state,
        .port = 1,
        .access = access != 0 ? (uint16_t)access
                              : ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
        .path_mtu = PATH_MTU_256,
        .av = {.destination = {{[15] = 1}}},
        .max_reads_in = BENCH_READS,
        .max_reads_out = BENCH_READS,
        .timeout = 14,
    };
    assert_int_equal(qp_modify(bench->qp, &attributes, mask | QP_ATTR_STATE, bench->now),
                     STATUS_OK);
}

static inline void bench_add_region(struct bench *bench, struct region *region, void *memory,
                                    uint64_t bytes)
{
    const struct region_request request = {.address = (uintptr_t)memory,
                                           .start = 0,
                                           .bytes = bytes,
                                           .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                     ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &request, region), STATUS_OK);
}

static inline void bench_make_qp(struct bench *bench, bool shared, uint32_t access)
{
    struct qp_request request = {
        .type = QP_RC,
        .pd = &bench->pd,
        .send_cq = &bench->cq,
        .receive_cq = &bench->cq,
        .srq = shared ? &bench->srq : NULL,
        .capacity = {.sends = 1, .receives = BENCH_RECEIVES, .send_sges = 1, .receive_sges = 1}};
    if (shared) {
        bench->srq_memory = bench_zeroed(receive_queue_bytes(BENCH_RECEIVES, 1));
        srq_init(&bench->srq, &bench->pd, BENCH_RECEIVES, 1, bench->srq_memory);
    }
    bench->qp_memory = bench_zeroed(qp_bytes(QP_RC, &request.capacity, shared));
    assert_int_equal(qp_create(bench->nic, &request, bench->qp_memory, &bench->qp), STATUS_OK);
    bench_modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, access);
    bench_modify(bench, QP_RTR,
                 QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
                     QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
                 0);
}

/* A queue pair that speaks RC. */
static inline void bench_make(struct bench *bench, const struct bench_config *config)
{
    const struct nic_limits limits = {.qps = 4,
                                      .regions = 8,
                                      .sends_per_qp = 4,
                                      .receives_per_qp = BENCH_RECEIVES,
                                      .receives_per_srq = BENCH_RECEIVES,
                                      .sges = 1,
                                      .inline_bytes = 64,
                                      .reads_per_qp = BENCH_READS,
                                      .cq_entries = 64,
                                      .mtu = PATH_MTU_256,
                                      .block = {.transport = NIC_TRANSPORT_BLOCK,
                                                .place = config->place,
                                                .window = 64,
                                                .reads = BENCH_READS,
                                                .paths = 1,
                                                .contexts = 16,
                                                .held = config->held}};
    memset(bench, 0, sizeof(*bench));
    bench->now = (struct instant){1000000000};
    bench->nic_memory = bench_zeroed(nic_bytes(&limits));
    bench->nic = nic_init(&limits, 1, bench->nic_memory);
    cq_init(&bench->cq, 64, bench->ring);
    bench_add_region(bench, &bench->region[0], bench->memory, BENCH_MEMORY_BYTES);
    bench_add_region(bench, &bench->region[1], bench->memory, BENCH_MEMORY_BYTES);
    bench_add_region(bench, &bench->receive_region, bench->receives, sizeof(bench->receives));
    bench_make_qp(bench, config->shared, config->access);
}

/* From now on the queue pair takes blocks. */
static inline void bench_speak_blocks(struct bench *bench, uint32_t first_number,
                                      uint32_t first_receive)
{
    const struct block_terms terms = {.session = BENCH_SESSION,
                                      .window = BENCH_WINDOW,
                                      .reads = BENCH_READS,
                                      .path_count = 1,
                                      .payload_bytes = bench->qp->mtu_bytes,
                                      .shared_receives = bench->qp->shares};
    block_watch_begin(bench->qp);
    assert_true(block_join(bench->qp));
    bench->qp->block->answer = (struct hello_answer){.session = true, .nonce = BENCH_SESSION};
    bench->qp->block->receiving = terms;
    block_receive_begin(bench->qp, &terms);
    struct block_responder *stream = &bench->qp->block->receiver->stream;
    stream->chain.base = first_number;
    stream->seen = first_number - 1;
    stream->first_number = first_number;
    stream->next_receive = first_receive;
}

static inline void bench_end(struct bench *bench)
{
    qp_destroy(bench->qp);
    assert_int_equal(bench->nic->block_shared->hold.used, 0);
    free(bench->qp_memory);
    free(bench->nic_memory);
    free(bench->srq_memory);
}

static inline void bench_post_receive(struct bench *bench, uint32_t buffer, uint32_t bytes,
                                      uint32_t key)
{
    const struct sge sge = {(uint64_t)buffer * BENCH_RECEIVE_BYTES, bytes, key};
    assert_int_equal(bench->qp->shares ? srq_post_receive(&bench->srq, buffer, &sge, 1)
                                       : qp_post_receive(bench->qp, buffer, &sge, 1),
                     STATUS_OK);
}

static inline void bench_make_move(struct nic_move *move)
{
    const uint8_t *payload = move->payload;
    if (move->kind == NIC_MOVE_ATOMIC) {
        uint64_t *at = (uint64_t *)(uintptr_t)move->segments[0].address;
        move->original = *at;
        *at = nic_atomic_result(move, *at);
        return;
    }
    for (uint32_t i = 0; move->kind == NIC_MOVE_SCATTER && i < move->segment_count; i++) {
        memcpy((void *)(uintptr_t)move->segments[i].address, payload, move->segments[i].bytes);
        payload += move->segments[i].bytes;
    }
}

#endif
