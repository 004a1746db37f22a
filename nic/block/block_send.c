/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_send - our requests by blocks: packets that leave, and answers that come.
 *
 * The requester (transport/block/requester.h) decides which packet leaves, and when. This file has
 * to do with keys, memory, completions and counters. A request ends as it would by RC.
 */
#include "base/align.h"
#include "nic/block/block.h"
#include "transport/block/requester.h"

struct block_sender {
    struct block_requester *requester; /* In the memory behind this. */
    uint32_t session;
    uint64_t resent; /* Packets. */
    struct path_policy policy;
};

static struct block_requester *requester_of(const struct qp *qp)
{
    return qp->block->sender->requester;
}

/* -- Life ---------------------------------------------------------------------------------------*/

size_t block_send_bytes(const struct nic_limits *limits)
{
    return line_aligned(sizeof(struct block_sender)) +
           line_aligned(block_requester_bytes(limits->block.window, (uint8_t)limits->block.paths));
}

static struct block_requester_config config_of(const struct qp *qp)
{
    const struct qp_attributes *attributes = &qp->attributes;
    const uint32_t cost = qp->nic->limits.rc.packet_cost;
    return (struct block_requester_config){
        .mtu_bytes = qp->block->sending.payload_bytes,
        /* A packet in flight takes room in the window even if it has no payload. */
        .packet_cost = cost != 0 ? cost : BLOCK_PAYLOAD_HEADERS_BYTES_MAX,
        .link_window_bytes = attributes->av.window_bytes,
        .far_window_bytes = nic_peer_of(qp) == NULL ? 0 : nic_peer_of(qp)->routes.grant_bytes,
        .retry_limit = attributes->retry_count,
        .rnr_limit = attributes->rnr_retry,
        .reads_max = attributes->max_reads_out,
        .timeout_code = attributes->timeout,
        .policy = &qp->block->sender->policy,
    };
}

void block_send_begin(struct qp *qp, const struct block_terms *terms, struct instant now)
{
    struct block_sender *sender = qp->block->sender;
    const struct block_limits *limits = &qp->nic->limits.block;
    const uint32_t paths = terms->path_count < limits->paths ? terms->path_count : limits->paths;
    sender->session = terms->session;
    sender->resent = 0;
    sender->policy = path_policy_default();
    struct block_requester_config config = config_of(qp);
    config.window = terms->window < limits->window ? terms->window : limits->window;
    config.read_blocks = terms->reads == 0 ? 1 : terms->reads;
    config.trip_ns = terms->trip_ns;
    config.path_count = (uint8_t)(paths == 0 ? 1 : paths);
    uint8_t *behind = (uint8_t *)sender + line_aligned(sizeof(*sender));
    sender->requester = block_requester_init(behind, limits->window, &config, now);
    INVARIANTS(block_send_check(qp));
}

void block_send_retune(struct qp *qp, struct instant now)
{
    const struct block_requester_config config = config_of(qp);
    block_requester_retune(requester_of(qp), &config, now);
    INVARIANTS(block_send_check(qp));
}

/* -- Completing ---------------------------------------------------------------------------------*/

/* Completes every request that is finished, in order; fails the queue pair if one went wrong. */
static void collect(struct qp *qp)
{
    struct block_requester *requester = requester_of(qp);
    struct work *work;
    INVARIANTS(block_send_check(qp));
    while ((work = block_requester_completed(requester, &qp->sends)) != NULL &&
           work->status == COMPLETION_SUCCESS) {
        qp_complete_work(qp, work, COMPLETION_SUCCESS);
    }
    if (!block_fail_oldest(qp) && qp->state == QP_SQD && block_send_drained(qp)) {
        qp_note_drained(qp);
    }
}

static void arm_timer(struct qp *qp)
{
    nic_arm_timer(qp, block_send_deadline(qp));
}

/* Requests are done, or one failed: pushes their completions, and sets the timer for the rest. */
static void go_on(struct qp *qp)
{
    collect(qp);
    if (qp->state != QP_ERR) {
        arm_timer(qp);
    }
}

bool block_send_drained(const struct qp *qp)
{
    return block_requester_drained(requester_of(qp), &qp->sends);
}

/* -- Departure ----------------------------------------------------------------------------------*/

bool block_send_ready(const struct qp *qp)
{
    return block_requester_ready(requester_of(qp), &qp->sends);
}

/* The 8 bytes that an atomic WRITE carries, from the request itself or from its memory. False: the
 * key no longer allows it. They are part of the headers, so they are read here. (Payloads are read
 * by the world, which survives if a program has unmapped its memory.) */
static bool value_of(const struct qp *qp, struct work *work, uint64_t *value)
{
    uint8_t *to = (uint8_t *)value;
    struct segment segments[NIC_SEGMENT_MAX];
    uint32_t count = 0;
    if (work->flags & WORK_INLINE) {
        __builtin_memcpy(value, work_inline(work), sizeof(*value));
        return true;
    }
    if (sges_gather(qp, work_sges(work), work->sge_count, 0, sizeof(*value), 0, segments, &count) !=
        GATHER_GOOD) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        __builtin_memcpy(to, (const void *)(uintptr_t)segments[i].address, segments[i].bytes);
        to += segments[i].bytes;
    }
    return true;
}

/* Reads the program's memory for the packet: the segments of its payload, or the value of an atomic
 * WRITE. */
static bool gather(struct qp *qp, const struct block_outgoing *out, struct nic_departure *departure,
                   uint64_t *value)
{
    if (out->work != NULL && out->work->kind == WORK_ATOMIC_WRITE) {
        return value_of(qp, out->work, value);
    }
    return out->bytes == 0 || departure_gather(qp, out->work, out->offset, out->bytes, departure);
}

static void describe_atomic(const struct work *work, uint64_t value, struct block_packet *packet)
{
    packet->address = work->remote_address;
    packet->atomic.compare = 0;
    switch (work->kind) {
    case WORK_COMPARE_SWAP:
        packet->atomic.kind = BLOCK_COMPARE_SWAP;
        packet->atomic.swap_or_add = work->atomic.swap;
        packet->atomic.compare = work->atomic.compare_or_add;
        return;
    case WORK_FETCH_ADD:
        packet->atomic.kind = BLOCK_FETCH_ADD;
        packet->atomic.swap_or_add = work->atomic.compare_or_add;
        return;
    default:
        packet->atomic.kind = BLOCK_ATOMIC_WRITE;
        packet->atomic.swap_or_add = value;
        return;
    }
}

/* Fills in the fields that only the last packet of a message has. */
static void describe_end(const struct work *work, struct block_packet *packet)
{
    const bool invalidates = work->kind == WORK_SEND_INVALIDATE;
    packet->has_immediate = work_is(work, WORK_HAS_IMMEDIATE);
    packet->invalidates = invalidates;
    if (invalidates) {
        block_set_invalidate_key(packet, work->immediate);
    } else if (packet->has_immediate) {
        packet->tag = work->immediate;
    }
    packet->solicited = (work->flags & WORK_SOLICITED) && work_takes_receive(work);
}

static void describe(const struct qp *qp, const struct block_outgoing *out, uint64_t value,
                     struct block_packet *packet)
{
    const struct work *work = out->work;
    *packet = (struct block_packet){
        .opcode = out->opcode,
        .ack_request = out->ack_request,
        .destination_qpn = qp->attributes.destination_qpn,
        .tsn = out->tsn.value,
        .session = qp->block->sender->session,
        .number = out->number,
        .index = out->index,
        .position = out->position,
        .last_position = out->last_position,
        .last_block = out->last_block,
        .early = out->early,
        .resent = out->resent,
        .path = out->path,
        .round = out->round,
    };
    if (work == NULL) {
        return;
    }
    packet->key = work->remote_key;
    if (out->opcode == BLOCK_ATOMIC) {
        describe_atomic(work, value, packet);
        return;
    }
    packet->address = work->remote_address;
    packet->message_bytes = work->bytes;
    if (out->opcode == BLOCK_READ) {
        packet->wanted = out->wanted;
        return;
    }
    packet->receive_number = work->receive_number;
    packet->payload_bytes = out->bytes;
    if (out->last) {
        describe_end(work, packet);
    }
}

static void count(struct qp *qp, const struct block_outgoing *out)
{
    if (out->work == NULL) {
        nic_count(qp->nic, COUNTER_block_probes_sent);
    } else if (out->resent) {
        nic_count(qp->nic, COUNTER_retransmitted_pkts);
        qp->block->sender->resent++;
    } else if (out->last) {
        departure_count_request(qp, out->work);
    }
}

/* May no new request begin? That is so while the queue drains, and behind local work that failed:
 * it completes when the requests before it are done, and those behind it are flushed. */
static bool stands_still(const struct qp *qp)
{
    return qp->state == QP_SQD || departure_is_behind_failure(qp);
}

/* Does the request at the cursor fail? It is judged only if it could begin now. */
static bool has_to_fail(struct qp *qp, bool draining)
{
    return qp_has_sends(qp) && (!draining || send_queue_at(&qp->sends, qp->sends.next)->started) &&
           !departure_may_begin(qp, false);
}

/* The next packet. Executes the local work in front of it. */
static bool next_outgoing(struct qp *qp, struct instant now, struct block_outgoing *out)
{
    for (;;) {
        const bool draining = stands_still(qp);
        if (has_to_fail(qp, draining)) {
            collect(qp);
            if (qp->state == QP_ERR) {
                return false;
            }
        }
        if (!block_requester_next(requester_of(qp), &qp->sends, draining, now, out)) {
            return false;
        }
        if (out->work == NULL || !work_is_local(out->work)) {
            return true;
        }
        if (!qp_execute_local(qp, out->work)) {
            out->work->status = COMPLETION_WINDOW_BIND;
        }
        collect(qp);
        if (qp->state == QP_ERR) {
            return false;
        }
    }
}

bool block_send_next(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct block_outgoing out;
    struct block_packet packet;
    INVARIANTS(block_send_check(qp));
    const bool found = next_outgoing(qp, now, &out);
    if (qp->state == QP_ERR) {
        return false;
    }
    arm_timer(qp);
    if (!found) {
        return false;
    }
    departure->segment_count = 0;
    uint64_t value = 0;
    if (!gather(qp, &out, departure, &value)) {
        block_fail_work(qp, out.work, COMPLETION_LOCAL_PROTECTION);
        return false;
    }
    describe(qp, &out, value, &packet);
    count(qp, &out);
    block_seal(qp, &packet, departure);
    const struct paths *paths = &requester_of(qp)->paths;
    departure->route = block_route_of(qp, out.path, paths->count,
                                      out.own_route ? 0 : paths_at(paths, out.path)->turns);
    INVARIANTS(CHECK(departure->payload_bytes == (out.opcode == BLOCK_READ ? 0 : out.bytes)));
    departure->psn = out.number; /* For block_send_on_gather_failed. */
    return true;
}

void block_send_on_gather_failed(struct qp *qp, const struct nic_departure *departure)
{
    struct work *work = block_requester_work_of(requester_of(qp), &qp->sends, departure->psn);
    if (work != NULL) {
        block_fail_work(qp, work, COMPLETION_LOCAL_PROTECTION);
    }
}

void block_send_on_blocked(struct qp *qp, struct instant now)
{
    if (block_send_ready(qp) && (qp->state == QP_RTS || qp->state == QP_SQD)) {
        block_requester_blocked(requester_of(qp), &qp->sends, qp->state == QP_SQD, now);
        arm_timer(qp);
    }
}

/* -- Arrival ------------------------------------------------------------------------------------*/

static void count_failure(struct qp *qp, const struct block_progress *progress)
{
    struct nic *nic = qp->nic;
    switch (progress->verdict) {
    case BLOCK_STALE: nic_count(nic, COUNTER_block_answers_stale); return;
    case BLOCK_IMPOSSIBLE: nic_count(nic, COUNTER_drop_block_impossible); return;
    case BLOCK_PROGRESS:
    case BLOCK_DATA_COMES: return;
    case BLOCK_PAUSE: nic_count(nic, COUNTER_rcvd_rnr_err); return;
    case BLOCK_BAD_ORDER: nic_count(nic, COUNTER_bad_response_order); return;
    case BLOCK_BAD_LENGTH: nic_count(nic, COUNTER_bad_response_length); return;
    case BLOCK_FAILED:
        if (progress->work != NULL && progress->work->status == COMPLETION_RNR_RETRY_EXCEEDED) {
            nic_count(nic, COUNTER_retry_rnr_exceeded_err);
        }
        return;
    }
}

void block_send_on_answer(struct qp *qp, const struct block_arrival *arrival, struct instant now)
{
    INVARIANTS(block_send_check(qp));
    nic_count(qp->nic, COUNTER_block_answers_received);
    const struct block_progress progress =
        block_requester_on_answer(requester_of(qp), &qp->sends, &arrival->packet, arrival->at, now);
    count_failure(qp, &progress);
    if (nic_peer_of(qp) != NULL) {
        nic_peer_of(qp)->routes.far = requester_of(qp)->far;
    }
    go_on(qp);
}

/* The data of a READ or atomic cannot be put where it belongs. Requests before it complete as
 * usual. */
static void fail_unplaced(struct qp *qp, struct work *work)
{
    work->status = COMPLETION_LOCAL_PROTECTION;
    go_on(qp);
}

bool block_send_on_data(struct qp *qp, const struct block_arrival *arrival, struct instant now,
                        struct nic_move *move)
{
    const struct block_packet *packet = &arrival->packet;
    const struct block_progress progress =
        block_requester_on_data(requester_of(qp), &qp->sends, packet, now);
    struct work *work = progress.work;
    if (progress.verdict != BLOCK_DATA_COMES) {
        count_failure(qp, &progress);
        go_on(qp);
        return false;
    }
    const bool atomic = work_is_atomic(work);
    INVARIANTS(CHECK(work->moves_pending > 0 && work_wants_response(work)));
    move->kind = packet->payload_bytes == 0 ? NIC_MOVE_NOTHING : NIC_MOVE_SCATTER;
    move->in_order = true;
    move->segment_count = 0;
    move->prefix_bytes = 0;
    move->payload = packet->payload;
    move->qp = qp;
    move->work = work;
    move->purpose = NIC_FOR_REQUEST;
    move->psn = packet->number;
    move->epoch = qp->send_epoch;
    move->action = MOVE_BLOCK_DATA;
    move->ack_request = false;
    move->completes = false;
    if (sges_gather(qp, work_sges(work), work->sge_count, progress.offset, packet->payload_bytes,
                    ACCESS_LOCAL_WRITE, move->segments, &move->segment_count) != GATHER_GOOD) {
        block_requester_on_moved(requester_of(qp), work);
        fail_unplaced(qp, work);
        return false;
    }
    if (atomic && packet->payload_bytes != 0) {
        /* Programs read the original value in host order. */
        const uint64_t original = load_be64(packet->payload);
        move->prefix_bytes = sizeof(original);
        __builtin_memcpy(move->prefix, &original, sizeof(original));
    }
    arm_timer(qp);
    return true;
}

void block_send_on_data_moved(struct qp *qp, const struct nic_move *move,
                              enum nic_move_result result)
{
    block_requester_on_moved(requester_of(qp), move->work);
    if (result == NIC_MOVE_FAULTED) {
        fail_unplaced(qp, move->work);
    } else {
        go_on(qp);
    }
}

/* -- Time ---------------------------------------------------------------------------------------*/

struct instant block_send_deadline(const struct qp *qp)
{
    return block_requester_deadline(requester_of(qp));
}

bool block_send_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue)
{
    struct block_requester *requester = requester_of(qp);
    block_requester_relax(requester, &qp->sends, qp->state == QP_SQD);
    if (!block_requester_on_time(requester, now)) {
        nic_schedule(qp);
        return false;
    }
    overdue->since = block_requester_waits_since(requester);
    overdue->last = block_requester_last_try(requester);
    return true;
}

void block_send_on_unread(struct qp *qp, struct instant now)
{
    block_requester_wait_on(requester_of(qp), now);
    nic_schedule(qp);
}

void block_send_on_timeout(struct qp *qp, struct instant now)
{
    const struct block_progress progress =
        block_requester_on_timeout(requester_of(qp), &qp->sends, now);
    if (progress.verdict == BLOCK_FAILED) {
        nic_count(qp->nic, COUNTER_retry_exceeded_err);
        if (progress.work == NULL) {
            block_fail_work(qp, NULL, COMPLETION_RETRY_EXCEEDED);
        } else {
            collect(qp);
        }
        return;
    }
    nic_count(qp->nic, COUNTER_completer_retry_err);
    nic_schedule(qp);
}

/* -- Looking ------------------------------------------------------------------------------------*/

void block_send_report(const struct qp *qp, struct qp_report *report)
{
    const struct block_sender *sender = qp->block->sender;
    const struct paths *paths = &sender->requester->paths;
    uint64_t least_ns = UINT64_MAX;
    report->paths = 0;
    for (uint32_t i = 0; i < paths->count; i++) {
        const struct path *path = paths_at(paths, i);
        if (path->rtt.smoothed_ns != 0 && path->rtt.smoothed_ns < least_ns) {
            least_ns = path->rtt.smoothed_ns;
        }
        report->paths += !path->suspect;
        report->window_bytes += congestion_window(&path->congestion, &sender->policy.congestion);
        report->flight_bytes += path_flight(path);
    }
    report->round_trip_ns = least_ns == UINT64_MAX ? 0 : least_ns;
    report->losses = sender->resent;
    report->pauses = sender->requester->mode == BLOCK_REQUESTER_PAUSING;
}

void block_send_check(const struct qp *qp)
{
    const struct block_sender *sender = qp->block->sender;
    CHECK(sender->session == qp->block->ask.nonce);
    CHECK((uint8_t *)sender->requester ==
          (uint8_t *)qp->block->sender + line_aligned(sizeof(*sender)));
    block_requester_check(requester_of(qp), &qp->sends);
}
