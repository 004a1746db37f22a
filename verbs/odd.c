/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/odd.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/prng.h"

bool odd_wanted;
static uint64_t seed;
static _Atomic uint64_t drawn;

void odd_begin(void)
{
    const char *text = secure_getenv("NONIC_ODD");
    if (text != NULL && text[0] != '\0') {
        seed = strtoull(text, NULL, 10);
        odd_wanted = true;
    }
}

/* Any number below `bound`. */
static uint32_t draw(uint32_t bound)
{
    struct prng prng;
    prng_init(&prng, seed + (atomic_fetch_add(&drawn, 1) << 20));
    return (uint32_t)prng_below(&prng, bound);
}

static uint32_t any(void)
{
    return draw(UINT32_MAX);
}

/* A completion that failed has four fields. One that succeeded has no immediate value unless it
 * says so, no P_Key index but for QP 1, and no LIDs on Ethernet. */
void odd_completion(struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        wc->opcode = (enum ibv_wc_opcode)any();
        wc->byte_len = any();
        wc->src_qp = any();
        wc->wc_flags = any();
    }
    if (wc->status != IBV_WC_SUCCESS || !(wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))) {
        wc->imm_data = any();
    }
    wc->pkey_index = (uint16_t)any();
    wc->slid = (uint16_t)any();
    wc->dlid_path_bits = (uint8_t)any();
}

void odd_current(struct completion *current)
{
    if (current->status != COMPLETION_SUCCESS) {
        current->kind = (uint8_t)any();
        current->bytes = any();
        current->source_qpn = any();
        current->flags = (uint8_t)any();
    }
    if (current->status != COMPLETION_SUCCESS ||
        !(current->flags & (COMPLETION_HAS_IMMEDIATE | COMPLETION_HAS_INVALIDATE))) {
        current->immediate = any();
    }
}

bool odd_event(void)
{
    return draw(4) == 0;
}

static uint32_t larger(uint32_t value, uint32_t by, uint32_t most)
{
    const uint32_t wanted = value + draw(by + 1);
    return value >= most ? value : wanted < most ? wanted : most;
}

void odd_capacity(struct ibv_qp_cap *cap, bool has_srq, const struct nic_limits *limits)
{
    cap->max_send_wr = larger(cap->max_send_wr, 7, limits->sends_per_qp);
    cap->max_send_sge = larger(cap->max_send_sge, 2, limits->sges);
    cap->max_inline_data = larger(cap->max_inline_data, 64, limits->inline_bytes);
    if (!has_srq) {
        cap->max_recv_wr = larger(cap->max_recv_wr, 7, limits->receives_per_qp);
        cap->max_recv_sge = larger(cap->max_recv_sge, 2, limits->sges);
    }
}

uint32_t odd_entries(uint32_t entries, uint32_t most)
{
    return larger(entries, 15, most);
}
