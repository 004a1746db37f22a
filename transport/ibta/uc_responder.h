/* SPDX-License-Identifier: BSD-2-Clause
 *
 * uc_responder - the receiving side of an unreliable connection.
 *
 * A lost packet costs its whole message: the packets that are left of it are dropped without an
 * answer, and the next FIRST or ONLY packet begins anew at the PSN that it carries (IBTA 9.8.2).
 */
#ifndef TRANSPORT_IBTA_UC_RESPONDER_H
#define TRANSPORT_IBTA_UC_RESPONDER_H

#include "base/check.h"
#include "transport/common/psn.h"
#include "transport/ibta/incoming.h"

struct uc_responder {
    struct psn expected;
    struct incoming incoming;
};

enum uc_verdict {
    UC_VERDICT_EXECUTE,
    UC_VERDICT_EXECUTE_ANEW, /* Likewise, but the message before it is lost. */
    UC_VERDICT_GAP,          /* Belongs to a message that lost a packet. */
    UC_VERDICT_WRONG_ORDER,
    UC_VERDICT_WRONG_LENGTH,
};

void uc_responder_init(struct uc_responder *responder, struct psn expected, uint32_t mtu_bytes);
MUST_USE enum uc_verdict uc_responder_judge(const struct uc_responder *responder,
                                            const struct roce_packet *packet);
/* A packet judged EXECUTE or EXECUTE_ANEW whose memory is allowed. */
void uc_responder_accept(struct uc_responder *responder, const struct roce_packet *packet);
/* Any other packet, and one without the right to its memory: its message is lost. */
void uc_responder_abandon(struct uc_responder *responder, const struct roce_packet *packet);

#endif
