/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_memory - memory for connections that speak blocks, out of the NIC's pool.
 */
#include "base/align.h"
#include "nic/block/block.h"

static size_t peers_bytes(const struct nic_limits *limits)
{
    return line_aligned(limits->block.peers * sizeof(struct nic_peer));
}

static size_t streams_bytes(const struct nic_limits *limits)
{
    return line_aligned(sizeof(struct block_streams)) + block_send_bytes(limits) +
           block_receive_bytes(limits);
}

static size_t pool_bytes(const struct nic_limits *limits)
{
    const size_t connections = limits->block.connections;
    return (connections == 0 ? limits->qps : connections) * streams_bytes(limits);
}

size_t block_nic_bytes(const struct nic_limits *limits)
{
    return block_is_spoken(limits)
               ? peers_bytes(limits) + block_shared_bytes(limits) + pool_bytes(limits)
               : 0;
}

void block_nic_init(struct nic *nic, void *memory)
{
    const struct nic_limits *limits = &nic->limits;
    if (!block_is_spoken(limits)) {
        return;
    }
    uint8_t *at = memory;
    nic->peers = memory;
    at += peers_bytes(limits);
    block_shared_init(nic, at);
    at += block_shared_bytes(limits);
    CHECK((uintptr_t)memory % CACHE_LINE_BYTES == 0);
    CHECK(at + pool_bytes(limits) == (uint8_t *)memory + block_nic_bytes(limits));
    pool_init(&nic->streams, streams_bytes(limits), at, pool_bytes(limits));
}

bool block_join(struct qp *qp)
{
    CHECK(qp->type == QP_RC && qp->engine == ENGINE_RC && qp->watching != WATCH_NOTHING);
    struct block_streams *streams = pool_take(&qp->nic->streams, 0);
    if (streams == NULL) {
        return nic_drop(qp->nic, COUNTER_blocks_no_memory);
    }
    uint8_t *at = (uint8_t *)streams + line_aligned(sizeof(*streams));
    *streams = (struct block_streams){
        .sender = (struct block_sender *)(void *)at,
        .receiver = (struct block_receiver *)(void *)(at + block_send_bytes(&qp->nic->limits)),
        .ask = {.state = HELLO_NOT_ASKED},
    };
    hello_drop(&streams->answer);
    block_receive_init(streams->receiver);
    qp->block = streams;
    qp->engine = ENGINE_RC_OR_BLOCKS;
    INVARIANTS(block_streams_check(qp));
    return true;
}

void block_leave(struct qp *qp)
{
    block_withdraw(qp);
    CHECK(qp->nic->holder != qp); /* It would be asked for held payloads in memory of another. */
    pool_give(&qp->nic->streams, 0, qp->block);
    qp->engine = ENGINE_RC;
    rc_withdraw(qp);
}
