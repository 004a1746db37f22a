/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/odd.h"

static uint32_t any(void)
{
    return odd_draw(ODD_FIELDS, UINT32_MAX);
}

bool odd_is_late(const struct ibv_comp_channel *channel)
{
    return is_odd(ODD_LATE) && channel == NULL && odd_draw(ODD_LATE, 2) == 0;
}

/* A completion that failed has four fields. One that succeeded has no immediate value unless it
 * says so, no P_Key index but for QP 1, and no LIDs on Ethernet. */
void odd_completion(struct ibv_wc *wc)
{
    if (!is_odd(ODD_FIELDS)) {
        return;
    }
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
    if (!is_odd(ODD_FIELDS)) {
        return;
    }
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
    return is_odd(ODD_EVENTS) && odd_draw(ODD_EVENTS, 4) == 0;
}

static uint32_t larger(uint32_t value, uint32_t by, uint32_t most)
{
    const uint32_t wanted = value + (is_odd(ODD_SIZES) ? odd_draw(ODD_SIZES, by + 1) : 0);
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

bool odd_changes(void)
{
    return is_odd(ODD_CHANGES) && odd_draw(ODD_CHANGES, 2) == 0;
}
