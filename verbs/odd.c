/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/odd.h"

#include "world/world.h"

static uint32_t any(void)
{
    return odd_draw(ODD_FIELDS, UINT32_MAX);
}

bool odd_is_late(const struct ibv_comp_channel *channel)
{
    return is_odd(ODD_LATE) && channel == NULL && odd_draw(ODD_LATE, 2) == 0;
}

/* The fields of a completion that are defined, besides its request and status. */
struct defined {
    bool kind, bytes, immediate, source;
};

/* One that failed says nothing else. One that succeeded has an immediate value if it says so; the
 * number of bytes, if they came; a source, if it is a datagram's. (The number of an XRC receive's
 * shared queue is there, too: programs know no other way to it.) */
static struct defined defined_of(bool succeeded, uint32_t kind, uint32_t flags, uint32_t source)
{
    const bool receive = kind == COMPLETION_RECEIVE || kind == COMPLETION_RECEIVE_WRITE_IMMEDIATE;
    return (struct defined){
        .kind = succeeded,
        .bytes = succeeded && kind != COMPLETION_SEND && kind != COMPLETION_WRITE,
        .immediate =
            succeeded && (flags & (COMPLETION_HAS_IMMEDIATE | COMPLETION_HAS_INVALIDATE)) != 0,
        .source = succeeded && (!receive || source != 0),
    };
}

void odd_completion(struct ibv_wc *wc)
{
    if (!is_odd(ODD_FIELDS)) {
        return;
    }
    const struct defined is =
        defined_of(wc->status == IBV_WC_SUCCESS, wc->opcode, wc->wc_flags, wc->src_qp);
    if (!is.kind) {
        wc->opcode = (enum ibv_wc_opcode)any();
        wc->wc_flags = any();
        wc->vendor_err = any();
    }
    wc->byte_len = is.bytes ? wc->byte_len : any();
    wc->imm_data = is.immediate ? wc->imm_data : any();
    if (!is.source) {
        wc->src_qp = any();
        wc->wc_flags ^= any() & IBV_WC_GRH;
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
    const struct defined is = defined_of(current->status == COMPLETION_SUCCESS, current->kind,
                                         current->flags, current->source_qpn);
    if (!is.kind) {
        current->kind = (uint8_t)any();
        current->flags = (uint8_t)any();
        current->vendor_error = (uint8_t)any();
    }
    current->bytes = is.bytes ? current->bytes : any();
    current->immediate = is.immediate ? current->immediate : any();
    if (!is.source) {
        current->source_qpn = any();
        current->flags ^= (uint8_t)(any() & COMPLETION_HAS_GRH);
    }
}

static bool is_receive(const struct ibv_wc *wc)
{
    return (wc->opcode & IBV_WC_RECV) != 0;
}

/* A send's completion and a receive's are of two queues, between which there is no order. Those of
 * one queue never pass one another. */
void odd_order(struct ibv_wc *wc, int count)
{
    for (int i = 1; is_odd(ODD_ORDER) && i < count; i++) {
        if (wc[i - 1].status == IBV_WC_SUCCESS && wc[i].status == IBV_WC_SUCCESS &&
            is_receive(&wc[i - 1]) != is_receive(&wc[i]) && odd_draw(ODD_ORDER, 2) == 0) {
            const struct ibv_wc earlier = wc[i - 1];
            wc[i - 1] = wc[i];
            wc[i] = earlier;
        }
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

uint32_t odd_changes(void)
{
    static const uint32_t changes[] = {0, LIVE_CHANGE_GIDS,
                                       LIVE_CHANGE_PORT_DOWN | LIVE_CHANGE_PORT_UP};
    return is_odd(ODD_CHANGES) ? changes[odd_draw(ODD_CHANGES, COUNT_OF(changes))] : 0;
}
