/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/qpc_requester.h"

void qpc_requester_init(struct qpc_requester *requester, uint32_t oocap, uint32_t info_bytes,
                        void *memory)
{
    CHECK(oocap >= 1 && oocap <= QPC_OOCAP_MAX);
    *requester = (struct qpc_requester){
        .memory = memory, .info_bytes = info_bytes, .oocap = oocap, .free_count = oocap};
    for (uint32_t i = 0; i < oocap; i++) {
        requester->free[i] = (uint8_t)i;
    }
}

int qpc_requester_reserve(struct qpc_requester *requester)
{
    if (requester->free_count == 0) {
        return -1;
    }
    const uint8_t index = requester->free[requester->free_head];
    requester->free_head = (requester->free_head + 1) % requester->oocap;
    requester->free_count--;
    CHECK((requester->used >> index & 1) == 0);
    requester->used |= UINT64_C(1) << index;
    return index;
}

void qpc_requester_release(struct qpc_requester *requester, uint32_t index)
{
    CHECK(index < requester->oocap && (requester->used >> index & 1));
    requester->used &= ~(UINT64_C(1) << index);
    requester->free[(requester->free_head + requester->free_count) % requester->oocap] =
        (uint8_t)index;
    requester->free_count++;
    CHECK(requester->free_count <= requester->oocap);
}
