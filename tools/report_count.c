/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_count - the second look: what went each way, and what is odd about it.
 */
#include <string.h>

#include "base/check.h"
#include "tools/report.h"
#include "tools/report_index.h"

/* A packet while it is counted. */
struct seen {
    struct report *report;
    const struct report_packet *packet;
    uint32_t half;
    struct report_half *own, *back; /* back: NULL: no partner is known. */
    uint64_t again_of;
    const char *odd; /* NULL: nothing is. */
};

static void note(struct seen *seen, enum report_rule rule, const char *detail)
{
    struct report_oddity *oddity = &seen->report->oddities[rule];
    if (oddity->count < REPORT_EXAMPLES) {
        oddity->examples[oddity->count].number = seen->packet->number;
        oddity->examples[oddity->count].half = seen->half;
        oddity->examples[oddity->count].detail = detail;
    }
    oddity->count++;
    seen->odd = report_rules[rule].title;
}

/* -- Over time ----------------------------------------------------------------------------------*/

static struct report_bin *bin_at(const struct report *report, struct report_bin *bins,
                                 uint64_t at_ns)
{
    const uint64_t all = report->last_ns - report->first_ns;
    const uint64_t since = at_ns < report->first_ns ? 0 : at_ns - report->first_ns;
    const double part = all == 0 ? 0 : (double)since / (double)all;
    const uint32_t at = (uint32_t)(part * REPORT_BINS);
    return &bins[at < REPORT_BINS ? at : REPORT_BINS - 1];
}

/* Adds to the bins of the capture and of the connection. `half`: the one whose requests it is
 * about. */
static void add_bins(const struct seen *seen, const struct report_half *half,
                     struct report_bin more)
{
    struct report *report = seen->report;
    struct report_bin *bins[2] = {bin_at(report, report->bins, seen->packet->at_ns), NULL};
    if (half->drawn != REPORT_NONE) {
        bins[1] = bin_at(report, report->charts[half->drawn].bins, seen->packet->at_ns);
    }
    for (uint32_t i = 0; i < COUNT_OF(bins) && bins[i] != NULL; i++) {
        bins[i]->bytes += more.bytes;
        bins[i]->again += more.again;
        bins[i]->not_ready += more.not_ready;
    }
}

static void count_bytes(const struct seen *seen)
{
    seen->own->bytes += seen->packet->payload_bytes;
    add_bins(seen, seen->own, (struct report_bin){.bytes = seen->packet->payload_bytes});
}

static void count_again(struct seen *seen, enum report_rule rule)
{
    seen->own->again++;
    add_bins(seen, seen->own, (struct report_bin){.again = 1});
    note(seen, rule, NULL);
}

static void count_not_ready(struct seen *seen, enum report_rule rule)
{
    struct report_half *half = seen->back == NULL ? seen->own : seen->back;
    half->not_ready++;
    add_bins(seen, half, (struct report_bin){.not_ready = 1});
    note(seen, rule, NULL);
}

static void count_refused(struct seen *seen, enum report_rule rule, const char *detail)
{
    struct report_half *half = seen->back == NULL ? seen->own : seen->back;
    half->refused++;
    note(seen, rule, detail);
}

/* -- Packets that were sent ---------------------------------------------------------------------*/

static struct report_sent *place_of(const struct seen *seen, const struct report_half *half,
                                    uint64_t key)
{
    const uint64_t number = (uint64_t)(half - seen->report->halves);
    struct report_index *index = seen->report->index;
    return &index->sent[report_mix(key ^ number << 40) % COUNT_OF(index->sent)];
}

static const struct report_sent *recall(const struct seen *seen, const struct report_half *half,
                                        uint64_t key)
{
    const struct report_sent *sent = place_of(seen, half, key);
    const bool is_it = sent->number != 0 && sent->key == key &&
                       sent->half == (uint32_t)(half - seen->report->halves);
    return is_it ? sent : NULL;
}

static void remember(const struct seen *seen, uint64_t key)
{
    *place_of(seen, seen->own, key) = (struct report_sent){.key = key,
                                                           .number = seen->packet->number,
                                                           .at_ns = seen->packet->at_ns,
                                                           .half = seen->half};
}

/* The packet repeats the one with this key: nobody knows then which of the two is answered. If the
 * first one was lost before it came here, this one counts for it. */
static void count_repeated(struct seen *seen, uint64_t key, bool is_last)
{
    const struct report_sent *sent = recall(seen, seen->own, key);
    seen->again_of = sent != NULL ? sent->number : 0;
    if (sent == NULL) {
        remember(seen, key);
        seen->own->messages += is_last;
        count_bytes(seen);
    }
    place_of(seen, seen->own, key)->is_repeated = true;
}

static void count_response(const struct seen *seen, uint64_t key)
{
    const struct report_sent *sent = seen->back == NULL ? NULL : recall(seen, seen->back, key);
    if (sent == NULL || sent->is_repeated || seen->packet->at_ns < sent->at_ns) {
        return;
    }
    const uint64_t took_ns = seen->packet->at_ns - sent->at_ns;
    seen->back->responses++;
    seen->back->response_ns += took_ns;
    seen->back->response_most_ns =
        took_ns > seen->back->response_most_ns ? took_ns : seen->back->response_most_ns;
}

/* -- RC, XRC, UC: requests ----------------------------------------------------------------------*/

static bool is_mtu(uint32_t bytes)
{
    return bytes >= 256 && bytes <= ROCE_PAYLOAD_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

/* All packets of a message but the last are as long as the path MTU, and tell it. */
static void judge_length(struct seen *seen, uint32_t traits)
{
    const uint32_t bytes = seen->packet->payload_bytes;
    if ((traits & ROCE_IS_LAST) != 0 || (traits & ROCE_HAS_PAYLOAD) == 0) {
        return;
    }
    if (!is_mtu(bytes)) {
        note(seen, REPORT_LENGTH, "not the length of an MTU");
    } else if (seen->own->mtu_bytes != 0 && seen->own->mtu_bytes != bytes) {
        note(seen, REPORT_LENGTH, "another length than before");
    } else {
        seen->own->mtu_bytes = bytes;
        if (seen->back != NULL && seen->back->mtu_bytes == 0) {
            seen->back->mtu_bytes = bytes;
        }
    }
}

static void judge_order(struct seen *seen, uint32_t traits, bool after_gap)
{
    const uint32_t kind = traits & (ROCE_IS_SEND | ROCE_IS_WRITE);
    const bool begins = (traits & ROCE_IS_FIRST) != 0;
    const bool is_known = seen->own->has_next && !after_gap;
    if (is_known && begins && seen->own->is_within) {
        note(seen, REPORT_ORDER, "a message begins within another one");
    } else if (is_known && !begins && !seen->own->is_within) {
        note(seen, REPORT_ORDER, "no message has begun");
    } else if (is_known && !begins && seen->own->within != kind) {
        note(seen, REPORT_ORDER, "it goes on as another kind of message");
    }
    seen->own->is_within = (traits & ROCE_IS_LAST) == 0;
    seen->own->within = kind;
}

static uint32_t psns_of(uint32_t bytes, uint32_t mtu_bytes)
{
    const uint64_t packets = ((uint64_t)bytes + mtu_bytes - 1) / mtu_bytes;
    return packets == 0 ? 1 : packets < PSN_HALF ? (uint32_t)packets : PSN_HALF - 1;
}

/* A READ takes the PSNs of its responses; how many these are, the MTU says, if it is known. */
static void expect_next(struct report_half *half, const struct roce_packet *packet, uint32_t traits)
{
    uint32_t least = 1, most = 1;
    if ((traits & ROCE_IS_READ) != 0) {
        least = psns_of(packet->reth.bytes, half->mtu_bytes != 0 ? half->mtu_bytes : 4096);
        most = psns_of(packet->reth.bytes, half->mtu_bytes != 0 ? half->mtu_bytes : 256);
    }
    half->has_next = true;
    half->next_least = psn_after(psn_of(packet->psn), least);
    half->next_most = psn_after(psn_of(packet->psn), most);
}

static void count_request(struct seen *seen)
{
    const struct roce_packet *packet = &seen->packet->roce;
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    const struct psn psn = psn_of(packet->psn);
    struct report_half *own = seen->own;
    const bool is_reliable = own->service != REPORT_UC && own->service != REPORT_UD;
    const int32_t ahead = own->has_next ? psn_distance(own->next_least, psn) : 0;
    const bool is_gap = own->has_next && psn_distance(own->next_most, psn) > 0;
    if (own->service == REPORT_UD) {
        own->messages++;
        count_bytes(seen);
        return;
    }
    if (ahead < 0 && is_reliable) {
        /* A READ that goes on in its middle is no other message. */
        count_repeated(seen, packet->psn, (traits & (ROCE_IS_LAST | ROCE_IS_READ)) == ROCE_IS_LAST);
        count_again(seen, REPORT_AGAIN);
        return;
    }
    if (is_gap) {
        note(seen, REPORT_GAP, NULL);
    }
    judge_length(seen, traits);
    judge_order(seen, traits, is_gap || ahead < 0);
    own->messages += (traits & ROCE_IS_LAST) != 0;
    count_bytes(seen);
    remember(seen, packet->psn);
    expect_next(own, packet, traits);
}

/* -- RC, XRC: responses -------------------------------------------------------------------------*/

static void count_nak(struct seen *seen, uint8_t syndrome)
{
    switch (syndrome) {
    case ROCE_NAK_PSN_SEQUENCE: note(seen, REPORT_NAK_SEQUENCE, NULL); break;
    case ROCE_NAK_INVALID_REQUEST: count_refused(seen, REPORT_NAK_INVALID, NULL); break;
    case ROCE_NAK_REMOTE_ACCESS: count_refused(seen, REPORT_NAK_ACCESS, NULL); break;
    case ROCE_NAK_REMOTE_OPERATIONAL: count_refused(seen, REPORT_NAK_OPERATION, NULL); break;
    default: note(seen, REPORT_RESERVED, NULL); break;
    }
}

static void count_answer(struct seen *seen)
{
    const struct roce_packet *packet = &seen->packet->roce;
    const uint32_t traits = roce_opcode(packet->opcode)->traits;
    if ((traits & ROCE_IS_READ) != 0) {
        judge_length(seen, traits);
    }
    count_bytes(seen);
    if ((traits & ROCE_HAS_AETH) == 0) {
        return;
    }
    switch (packet->aeth.syndrome & ROCE_AETH_KIND_MASK) {
    case ROCE_AETH_ACK:
        if (seen->back != NULL && seen->back->has_next &&
            psn_distance(seen->back->next_most, psn_of(packet->psn)) >= 0) {
            note(seen, REPORT_UNSENT, NULL);
        }
        count_response(seen, packet->psn);
        break;
    case ROCE_AETH_RNR_NAK: count_not_ready(seen, REPORT_NOT_READY); break;
    case ROCE_AETH_NAK: count_nak(seen, packet->aeth.syndrome); break;
    default: note(seen, REPORT_RESERVED, NULL); break;
    }
}

static void count_roce(struct seen *seen)
{
    if (seen->packet->roce.opcode == ROCE_OPCODE_CNP) {
        note(seen, REPORT_NOTIFIED, NULL);
    } else if (report_is_response(seen->packet)) {
        count_answer(seen);
    } else {
        count_request(seen);
    }
}

/* -- Blocks -------------------------------------------------------------------------------------*/

/* A WELCOME says how long the packets of the other way will be. */
static void learn_welcome(const struct seen *seen, const struct block_hello *hello)
{
    const bool is_code =
        hello->mtu_code >= BLOCK_MTU_CODE_LEAST && hello->mtu_code <= BLOCK_MTU_CODE_MAX;
    if (seen->back != NULL && hello->window != 0 && is_code) {
        seen->back->mtu_bytes =
            hello->payload_bytes != 0 ? hello->payload_bytes : BLOCK_MTU_BYTES(hello->mtu_code);
    }
}

static void count_block_status(struct seen *seen, uint8_t status)
{
    switch (status) {
    case BLOCK_STATUS_RNR: count_not_ready(seen, REPORT_BLOCK_NOT_READY); break;
    case BLOCK_STATUS_INVALID_REQUEST:
        count_refused(seen, REPORT_BLOCK_REFUSED, "invalid request");
        break;
    case BLOCK_STATUS_ACCESS:
        count_refused(seen, REPORT_BLOCK_REFUSED, "remote access error");
        break;
    case BLOCK_STATUS_OPERATIONAL:
        count_refused(seen, REPORT_BLOCK_REFUSED, "remote operational error");
        break;
    default: break;
    }
}

static void count_block(struct seen *seen)
{
    const struct block_packet *packet = &seen->packet->block;
    const uint64_t key = (uint64_t)packet->number * BLOCK_POSITIONS + packet->position;
    const struct report_half *asking =
        packet->opcode == BLOCK_ANSWER || packet->opcode == BLOCK_DATA ? seen->back : seen->own;
    if (asking != NULL && asking->mtu_bytes != 0 && packet->opcode < BLOCK_HELLO) {
        const enum block_judgement judgement = block_judge(packet, asking->mtu_bytes);
        if (judgement != BLOCK_CONSISTENT) {
            note(seen, REPORT_BLOCK_CONTRADICTS, block_judgement_name(judgement));
            return;
        }
    }
    switch (packet->opcode) {
    case BLOCK_SEND:
    case BLOCK_WRITE:
    case BLOCK_READ:
    case BLOCK_ATOMIC:
        if (packet->resent) {
            count_repeated(seen, key, block_is_last(packet));
            count_again(seen, REPORT_BLOCK_AGAIN);
            return;
        }
        seen->own->messages += block_is_last(packet);
        remember(seen, key);
        break;
    case BLOCK_ANSWER: count_block_status(seen, packet->answer.status); break;
    case BLOCK_WELCOME: learn_welcome(seen, &packet->hello); break;
    default: break;
    }
    count_bytes(seen);
}

/* -- SRD ----------------------------------------------------------------------------------------*/

static void count_srd_answer(struct seen *seen, const struct srd_answer *answer)
{
    for (uint8_t i = 0; i < answer->record_count; i++) {
        const struct srd_record *record = &answer->records[i];
        if (record->kind == SRD_KIND_NO_RECEIVE) {
            count_not_ready(seen, REPORT_SRD_NOT_READY);
        } else if (record->kind == SRD_KIND_REFUSED) {
            count_refused(seen, REPORT_SRD_REFUSED, srd_status_name(record->status));
        }
    }
}

static void count_srd(struct seen *seen)
{
    const struct srd_packet *packet = &seen->packet->srd;
    switch (packet->opcode) {
    case SRD_SEND:
    case SRD_WRITE:
    case SRD_READ:
        if (packet->resent) {
            count_repeated(seen, packet->psn, packet->index == packet->last);
            count_again(seen, REPORT_SRD_AGAIN);
            return;
        }
        seen->own->messages += packet->index == packet->last;
        remember(seen, packet->psn);
        break;
    case SRD_ANSWER: count_srd_answer(seen, &packet->answer); break;
    case SRD_CHALLENGE:
        if (packet->challenge.reason == SRD_REASON_STALE) {
            note(seen, REPORT_SRD_STALE, NULL);
        }
        break;
    default: break;
    }
    count_bytes(seen);
}

/* -- All ----------------------------------------------------------------------------------------*/

static void count_good(struct seen *seen)
{
    const uint64_t at_ns = seen->packet->at_ns;
    struct report_half *own = seen->own;
    own->first_ns = own->first_ns == 0 || at_ns < own->first_ns ? at_ns : own->first_ns;
    own->last_ns = at_ns > own->last_ns ? at_ns : own->last_ns;
    if (seen->packet->is_marked) {
        own->marked++;
        note(seen, REPORT_MARKED, NULL);
    }
    switch (seen->packet->kind) {
    case REPORT_ROCE: count_roce(seen); break;
    case REPORT_BLOCK: count_block(seen); break;
    case REPORT_SRD: count_srd(seen); break;
    case REPORT_FOREIGN:
    case REPORT_BROKEN:
    case REPORT_PORT: break;
    }
}

void report_count(struct report *report, const struct report_packet *packet)
{
    struct seen seen = {.report = report, .packet = packet};
    if (packet->kind == REPORT_FOREIGN || packet->kind == REPORT_PORT ||
        (packet->kind == REPORT_BROKEN && packet->is_cut)) {
        return;
    }
    seen.half = report_half_of(report, packet);
    if (packet->kind == REPORT_BROKEN) {
        note(&seen, REPORT_MALFORMED, packet->flaw);
    } else if (packet->is_wrong) {
        note(&seen, REPORT_ICRC, NULL);
    } else if (seen.half != REPORT_NONE) {
        seen.own = &report->halves[seen.half];
        seen.back = seen.own->partner == REPORT_NONE ? NULL : &report->halves[seen.own->partner];
        count_good(&seen);
    }
    if (seen.half != REPORT_NONE) {
        report_draw(report, seen.half, packet, seen.again_of, seen.odd);
    }
}
