/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/segmentation.h"

#include "base/check.h"

static enum roce_operation send_operation(const struct work *work, bool first, bool last)
{
    if (!last) {
        return first ? ROCE_SEND_FIRST : ROCE_SEND_MIDDLE;
    }
    if (work->kind == WORK_SEND_IMMEDIATE) {
        return first ? ROCE_SEND_ONLY_IMMEDIATE : ROCE_SEND_LAST_IMMEDIATE;
    }
    if (work->kind == WORK_SEND_INVALIDATE) {
        return first ? ROCE_SEND_ONLY_INVALIDATE : ROCE_SEND_LAST_INVALIDATE;
    }
    return first ? ROCE_SEND_ONLY : ROCE_SEND_LAST;
}

static enum roce_operation write_operation(const struct work *work, bool first, bool last)
{
    if (!last) {
        return first ? ROCE_WRITE_FIRST : ROCE_WRITE_MIDDLE;
    }
    if (work->kind == WORK_WRITE_IMMEDIATE) {
        return first ? ROCE_WRITE_ONLY_IMMEDIATE : ROCE_WRITE_LAST_IMMEDIATE;
    }
    return first ? ROCE_WRITE_ONLY : ROCE_WRITE_LAST;
}

struct piece work_piece(const struct work *work, uint32_t index, uint32_t mtu_bytes)
{
    CHECK(!work_wants_response(work) && !work_is_local(work));
    const uint32_t offset = index * mtu_bytes;
    CHECK(offset <= work->bytes);
    const uint32_t left = work->bytes - offset;
    const bool first = index == 0;
    const bool last = left <= mtu_bytes;
    const bool write = work->kind == WORK_WRITE || work->kind == WORK_WRITE_IMMEDIATE;
    return (struct piece){
        .operation = write ? write_operation(work, first, last) : send_operation(work, first, last),
        .offset = offset,
        .bytes = last ? left : mtu_bytes,
        .last = last,
    };
}
