/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/segmentation.h"

#include "base/check.h"

/* The operations of a message's packets, by the kind of request (table 38). READs, atomics and
 * FLUSHes are asked for by one packet. Local work has none. */
static const struct operations {
    uint8_t first, middle, last, only;
} operations[] = {
    [WORK_SEND] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST, ROCE_SEND_ONLY},
    [WORK_SEND_IMMEDIATE] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST_IMMEDIATE,
                             ROCE_SEND_ONLY_IMMEDIATE},
    [WORK_SEND_INVALIDATE] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST_INVALIDATE,
                              ROCE_SEND_ONLY_INVALIDATE},
    [WORK_WRITE] = {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST, ROCE_WRITE_ONLY},
    [WORK_WRITE_IMMEDIATE] = {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST_IMMEDIATE,
                              ROCE_WRITE_ONLY_IMMEDIATE},
    [WORK_READ] = {.only = ROCE_READ_REQUEST},
    [WORK_COMPARE_SWAP] = {.only = ROCE_COMPARE_SWAP},
    [WORK_FETCH_ADD] = {.only = ROCE_FETCH_ADD},
    [WORK_FLUSH] = {.only = ROCE_FLUSH},
    [WORK_ATOMIC_WRITE] = {.only = ROCE_ATOMIC_WRITE},
};

enum roce_operation work_request(const struct work *work)
{
    CHECK(work_wants_response(work));
    return (enum roce_operation)operations[work->kind].only;
}

enum roce_operation single_answer(enum roce_operation request)
{
    const uint32_t traits = roce_opcode(ROCE_OPCODE(ROCE_SERVICE_RC, request))->traits;
    CHECK(traits & (ROCE_IS_ATOMIC | ROCE_IS_FLUSH));
    return traits & ROCE_HAS_ATOMIC_ETH ? ROCE_ATOMIC_ACKNOWLEDGE : ROCE_READ_RESPONSE_ONLY;
}

struct piece work_piece(const struct work *work, uint32_t index, uint32_t mtu_bytes)
{
    CHECK(!work_wants_response(work) && !work_is_local(work));
    const uint32_t offset = index * mtu_bytes;
    CHECK(offset <= work->bytes);
    const uint32_t left = work->bytes - offset;
    const bool first = index == 0;
    const bool last = left <= mtu_bytes;
    const struct operations *of = &operations[work->kind];
    const uint8_t ending = first ? of->only : of->last;
    const uint8_t going_on = first ? of->first : of->middle;
    return (struct piece){
        .operation = (enum roce_operation)(last ? ending : going_on),
        .offset = offset,
        .bytes = last ? left : mtu_bytes,
        .last = last,
    };
}
