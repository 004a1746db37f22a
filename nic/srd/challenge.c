/* SPDX-License-Identifier: BSD-2-Clause
 *
 * challenge - the port: challenges to processes of which nothing is kept.
 */
#include "nic/srd/srd.h"

/* Is there one more to send in this second? */
static bool may_challenge(struct srd_shared *shared, struct instant now)
{
    const uint64_t burst = SRD_CHALLENGES * (uint64_t)SRD_CHALLENGE_GAP_NS;
    if (shared->challenge_tail - shared->challenge_head == SRD_CHALLENGES ||
        instant_before(instant_after(now, burst), shared->challenge_at)) {
        return false;
    }
    const struct instant from =
        instant_before(shared->challenge_at, now) ? now : shared->challenge_at;
    shared->challenge_at = instant_after(from, SRD_CHALLENGE_GAP_NS);
    return true;
}

/* Nothing is kept of who is challenged, but until the challenge leaves. */
void srd_challenge(struct nic *nic, const struct nic_frame *frame, const struct srd_packet *packet,
                   enum srd_reason reason, struct instant now)
{
    struct srd_shared *shared = nic->srd;
    if (!may_challenge(shared, now)) {
        nic_count(nic, COUNTER_drop_srd_flood);
        return;
    }
    shared->challenges[shared->challenge_tail++ % SRD_CHALLENGES] = (struct srd_challenged){
        .av = {.source = frame->destination, .destination = frame->source, .hop_limit = 64},
        .source = srd_source_of(&frame->source, (uint8_t)(packet->source_qpn >> 8)),
        .flow = packet->flow,
        .psn = reason == SRD_REASON_STALE ? packet->psn : 0,
        .reason = (uint8_t)reason,
    };
    nic_schedule(&shared->port);
}

bool srd_next_challenge(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct srd_shared *shared = qp->nic->srd;
    if (shared->challenge_head == shared->challenge_tail) {
        return false;
    }
    const struct srd_challenged *to =
        &shared->challenges[shared->challenge_head++ % SRD_CHALLENGES];
    const struct srd_packet packet = {
        .opcode = SRD_CHALLENGE,
        .destination_qpn = SRD_PORT_OF(to->source.slot),
        .flow = to->flow,
        .tag = srd_tag_make(&shared->key, &to->source, to->flow, srd_ticks(now)),
        .challenge = {.boot = shared->boot, .reason = to->reason, .psn = to->psn},
    };
    qp->attributes.av = to->av;
    departure->headers_bytes = (uint32_t)srd_encode(&packet, departure->headers);
    departure->destination_qpn = packet.destination_qpn;
    departure->reply = true;
    nic_count(qp->nic, COUNTER_challenges_sent);
    return true;
}
