/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/uc_responder.h"

void uc_responder_init(struct uc_responder *responder, struct psn expected, uint32_t mtu_bytes)
{
    *responder = (struct uc_responder){
        .expected = expected,
        .incoming = {.mtu_bytes = (uint16_t)mtu_bytes},
    };
}

enum uc_verdict uc_responder_judge(const struct uc_responder *responder,
                                   const struct roce_packet *packet)
{
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    const bool first = traits & ROCE_IS_FIRST;
    const bool in_order = psn_equal(psn_of(packet->psn), responder->expected);
    if (!in_order && !first) {
        return UC_VERDICT_GAP;
    }
    const bool anew = first && (!in_order || responder->incoming.kind != INCOMING_NONE);
    struct incoming incoming = responder->incoming;
    if (anew) {
        incoming.kind = INCOMING_NONE;
        incoming.received = 0;
    }
    switch (incoming_judge(&incoming, packet, traits)) {
    case INCOMING_FITS: return anew ? UC_VERDICT_EXECUTE_ANEW : UC_VERDICT_EXECUTE;
    case INCOMING_WRONG_ORDER: return UC_VERDICT_WRONG_ORDER;
    case INCOMING_WRONG_LENGTH: return UC_VERDICT_WRONG_LENGTH;
    }
    UNREACHABLE("a verdict outside its enum");
}

void uc_responder_accept(struct uc_responder *responder, const struct roce_packet *packet)
{
    INVARIANTS(incoming_check(&responder->incoming));
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    if (traits & ROCE_IS_FIRST) {
        responder->incoming.received = 0;
    }
    incoming_accept(&responder->incoming, packet, traits);
    responder->expected = psn_after(psn_of(packet->psn), 1);
    INVARIANTS(incoming_check(&responder->incoming));
}

void uc_responder_abandon(struct uc_responder *responder, const struct roce_packet *packet)
{
    responder->incoming.kind = INCOMING_NONE;
    responder->incoming.received = 0;
    responder->expected = psn_after(psn_of(packet->psn), 1);
}
