/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester_receive - answers that come to a requester.
 *
 * An answer is judged as a whole before anything of it counts: one that speaks of what never left
 * changes nothing.
 */
#include "transport/block/requester_blocks.h"

#include "transport/common/timing.h"

static struct block_progress plain(enum block_requester_verdict verdict)
{
    return (struct block_progress){verdict, NULL, 0};
}

/* -- Progress -----------------------------------------------------------------------------------*/

void block_settle(struct block_requester *requester)
{
    while (requester->oldest != requester->base) {
        const struct block_sending *block = block_at(requester, requester->oldest);
        if (block->wants_data && !block_has_data(block)) {
            return;
        }
        requester->atomics_open = (uint8_t)(requester->atomics_open - block->atomic);
        requester->oldest++;
    }
}

/* A packet that left only once is known to have come. */
static void note_arrived(struct block_requester *requester, const struct block_sending *block,
                         struct instant now)
{
    struct path *path = paths_at(&requester->paths, block->path);
    if (block->round == 0 &&
        (!path->arrived_known || psn_distance(path->arrived, block->newest) > 0)) {
        (void)path_on_arrived(path, block->newest, now);
    }
}

void block_advance(struct block_requester *requester, struct send_queue *queue, uint32_t base,
                   struct instant now)
{
    if (base == requester->base) {
        return;
    }
    for (uint32_t bn = requester->base; bn != base; bn++) {
        struct block_sending *block = block_at(requester, bn);
        note_arrived(requester, block, now);
        block->state = BLOCK_SENDING_QUIET;
        if (block->wants_data) {
            requester->resend_at = (struct instant){0};
            continue;
        }
        block_note_found(requester, bn);
        if (requester->resending == bn) {
            requester->resend_left = 0;
        }
    }
    requester->base = base;
    requester->rnr_left = requester->rnr_limit;
    requester->paused = false;
    requester->declined = requester->declined && base != requester->next;
    /* Numbers wrap: one of long ago would lie ahead again. */
    requester->receive_taken =
        requester->receive_taken && block_number_before(base, requester->receive_end);
    if (!block_number_before(base, requester->plain_end)) {
        requester->plain_end = base;
    }
    block_ranges_on_base(&requester->ranges, base);
    block_settle(requester);
    block_note_progress(requester, now);
    block_settle_refusal(requester, queue);
}

/* -- Judging an answer --------------------------------------------------------------------------*/

uint32_t block_base_limit(const struct block_requester *requester)
{
    uint32_t limit = requester->next;
    for (uint32_t path = 0; path < requester->paths.count; path++) {
        const uint32_t bn = requester->open_block[path];
        if ((requester->open >> path & 1) != 0 && block_number_before(bn, limit) &&
            !block_at(requester, bn)->wants_data) {
            limit = bn;
        }
    }
    return limit;
}

static bool record_is_possible(const struct block_requester *requester,
                               const struct block_record *record)
{
    const uint32_t left = requester->next - record->number;
    if (block_number_before(record->number, requester->base)) {
        /* It is past, or begins there. */
        return record->state != BLOCK_STATE_RUN || record->bitmap <= left;
    }
    if (left - 1 >= requester->next - requester->base) {
        return false;
    }
    const struct block_sending *block = block_at(requester, record->number);
    switch ((enum block_state)record->state) {
    case BLOCK_STATE_RUN: return record->bitmap <= left;
    case BLOCK_STATE_INCOMPLETE:
    case BLOCK_STATE_NO_CONTEXT:
    case BLOCK_STATE_ORDER: return block->wants_data || (record->bitmap & ~block->sent) == 0;
    case BLOCK_STATE_REFUSED: return block->wants_data;
    case BLOCK_STATE_COUNT: break;
    }
    return false;
}

static bool answer_is_possible(const struct block_requester *requester,
                               const struct block_answer *answer)
{
    const int32_t ahead = block_number_distance(requester->base, answer->base);
    if (ahead < -BLOCK_WINDOW_MAX ||
        ahead > block_number_distance(requester->base, block_base_limit(requester))) {
        return false;
    }
    if (!answer->echo_void && answer->echo_path >= requester->paths.count) {
        return false;
    }
    if (answer->status != BLOCK_STATUS_NONE && answer->status != BLOCK_STATUS_ACCESS &&
        answer->base == requester->next) {
        return false;
    }
    for (uint32_t i = 0; i < answer->record_count; i++) {
        if (!record_is_possible(requester, &answer->records[i])) {
            return false;
        }
    }
    return true;
}

/* The answer came at `came`. The time that it lay here, and the time that the peer held it, are no
 * part of the round trip. A copy of the newest answer brings no further marks. */
static bool apply_echo(struct block_requester *requester, const struct block_answer *answer,
                       bool copy, struct instant came, struct instant now)
{
    if (answer->echo_void) {
        return true;
    }
    struct path *path = paths_at(&requester->paths, answer->echo_path);
    const uint64_t here = instant_before(now, came) ? 0 : now.ns - came.ns;
    const uint64_t held = answer->echo_delay_ns + here;
    const struct path_echo_report echo = {
        .tsn = psn_of(answer->echo_tsn),
        .held_ns = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX,
        .ce_packets = copy ? 0 : answer->ce_marked,
    };
    if (path_on_echo(path, &echo, now) == PATH_ECHO_IMPOSSIBLE) {
        return false;
    }
    if (answer->duplicates != 0 && block_was_lossy(requester, answer->echo_path, now)) {
        path_on_spurious(path, answer->duplicates, now);
    }
    return true;
}

/* -- Applying it --------------------------------------------------------------------------------*/

/* Positions that were reported missing before, and are not in this answer, have come. That holds
 * from the answer's first record to the end of the blocks that it speaks of. */
static void apply_absence(struct block_requester *requester, const struct block_answer *answer)
{
    uint32_t from = requester->base, end = requester->next;
    if (answer->more) {
        end = answer->record_count == 0 ? requester->base
                                        : answer->records[answer->record_count - 1].number;
    }
    if (answer->record_count != 0 && block_number_before(from, answer->records[0].number)) {
        from = answer->records[0].number;
    }
    uint32_t i = 0;
    for (uint32_t bn = block_next_missing(requester, from);
         bn != requester->next && block_number_before(bn, end);
         bn = block_next_missing(requester, bn + 1)) {
        while (i < answer->record_count && block_number_before(answer->records[i].number, bn) &&
               !(answer->records[i].state == BLOCK_STATE_RUN &&
                 bn - answer->records[i].number < answer->records[i].bitmap)) {
            i++;
        }
        const bool listed =
            i < answer->record_count && !block_number_before(bn, answer->records[i].number);
        struct block_sending *block = block_at(requester, bn);
        if (listed || block->state == BLOCK_SENDING_DUE || block->state == BLOCK_SENDING_QUIET) {
            continue;
        }
        block->state = BLOCK_SENDING_QUIET;
        if (!block->wants_data) {
            block->arrived = block->sent;
            block_note_found(requester, bn);
        }
    }
}

/* True: there was something new in it. */
static bool apply_report(struct block_requester *requester, uint32_t bn,
                         const struct block_record *record, struct instant now)
{
    struct block_sending *block = block_at(requester, bn);
    const uint64_t bitmap = record->state == BLOCK_STATE_RUN ? 0 : record->bitmap;
    if (block->wants_data) {
        if (bitmap != 0 && record->state == BLOCK_STATE_INCOMPLETE) {
            block->state = BLOCK_SENDING_QUIET; /* The request is there, its turn is to come. */
            return false;
        }
        block_resend_reported(requester, bn, record, now);
        return false;
    }
    const bool news = (bitmap & ~block->arrived) != 0;
    block->arrived = bitmap & block->sent;
    if (bitmap != 0 && 63 - __builtin_clzll(bitmap) == 63 - __builtin_clzll(block->sent)) {
        note_arrived(requester, block, now);
    }
    block_resend_reported(requester, bn, record, now);
    return news;
}

static bool apply_records(struct block_requester *requester, const struct block_answer *answer,
                          struct instant now)
{
    bool news = false;
    for (uint32_t i = 0; i < answer->record_count; i++) {
        const struct block_record *record = &answer->records[i];
        const uint32_t count = record->state == BLOCK_STATE_RUN ? (uint32_t)record->bitmap : 1;
        if (record->state == BLOCK_STATE_REFUSED) {
            continue;
        }
        for (uint32_t bn = record->number; bn != record->number + count; bn++) {
            if (!block_is_executed(requester, bn)) {
                news |= apply_report(requester, bn, record, now);
            }
        }
    }
    return news;
}

/* -- Refusals of the peer -----------------------------------------------------------------------*/

static enum completion_status status_of(uint8_t status)
{
    switch (status) {
    case BLOCK_STATUS_INVALID_REQUEST: return COMPLETION_REMOTE_INVALID_REQUEST;
    case BLOCK_STATUS_ACCESS: return COMPLETION_REMOTE_ACCESS;
    default: return COMPLETION_REMOTE_OPERATION;
    }
}

struct block_progress block_end_request(struct block_requester *requester,
                                        const struct send_queue *queue, uint32_t bn,
                                        enum completion_status status, struct instant now)
{
    const uint32_t position = block_at(requester, bn)->work;
    struct work *work = send_queue_at(queue, position);
    const bool known = requester->mode == BLOCK_REQUESTER_REFUSED &&
                       requester->refused - queue->head <= position - queue->head;
    if (known) {
        return plain(BLOCK_PROGRESS);
    }
    work->status = (uint8_t)status;
    requester->mode = BLOCK_REQUESTER_REFUSED;
    requester->refused = position;
    requester->resend_left = 0;
    requester->resume_at = INSTANT_NEVER;
    block_note_progress(requester, now);
    block_settle_refusal(requester, queue);
    return (struct block_progress){BLOCK_FAILED, work, 0};
}

/* The peer has no receive for the message of block base. */
static struct block_progress wait_for_receiver(struct block_requester *requester,
                                               const struct send_queue *queue,
                                               const struct block_answer *answer,
                                               struct instant now)
{
    if (requester->mode != BLOCK_REQUESTER_SENDING || answer->echo_void ||
        (requester->paused &&
         psn_distance(requester->resumed[answer->echo_path], psn_of(answer->echo_tsn)) < 0)) {
        return plain(BLOCK_PROGRESS); /* It is about packets that left before the last pause. */
    }
    if (requester->rnr_limit != RNR_RETRY_FOREVER) {
        if (requester->rnr_left == 0) {
            /* Data of READs before it may still be on their way. */
            return block_end_request(requester, queue, requester->base,
                                     COMPLETION_RNR_RETRY_EXCEEDED, now);
        }
        requester->rnr_left--;
    }
    if (requester->resend_left != 0) {
        block_at(requester, requester->resending)->state = BLOCK_SENDING_DUE;
        block_note_missing(requester, requester->resending);
        requester->resend_left = 0;
    }
    requester->mode = BLOCK_REQUESTER_PAUSING;
    requester->resume_at = instant_after(now, rnr_timer_ns(answer->rnr_code));
    requester->retry_at = INSTANT_NEVER;
    requester->probe_at = INSTANT_NEVER;
    return plain(BLOCK_PAUSE);
}

static struct block_progress apply_status(struct block_requester *requester,
                                          const struct send_queue *queue,
                                          const struct block_answer *answer, struct instant now)
{
    if (answer->status == BLOCK_STATUS_ACCESS) {
        for (uint32_t i = 0; i < answer->record_count; i++) {
            const struct block_record *record = &answer->records[i];
            if (record->state != BLOCK_STATE_REFUSED) {
                continue;
            }
            const bool waits = block_within(record->number, requester->oldest, requester->next) &&
                               block_at(requester, record->number)->wants_data &&
                               !block_has_data(block_at(requester, record->number));
            return waits ? block_end_request(requester, queue, record->number,
                                             status_of(answer->status), now)
                         : plain(BLOCK_PROGRESS);
        }
    }
    if (answer->status == BLOCK_STATUS_NONE || answer->base != requester->base ||
        requester->base == requester->next) {
        return plain(BLOCK_PROGRESS);
    }
    if (answer->status == BLOCK_STATUS_RNR) {
        return wait_for_receiver(requester, queue, answer, now);
    }
    return block_end_request(requester, queue, requester->base, status_of(answer->status), now);
}

static void note_own_route(struct block_requester *requester, const struct block_answer *answer,
                           struct instant now)
{
    if (UNLIKELY(answer->answers_probe)) {
        paths_on_probe_answered(&requester->paths, now);
    }
}

static struct block_progress on_answer(struct block_requester *requester, struct send_queue *queue,
                                       const struct block_packet *packet, struct instant came,
                                       struct instant now)
{
    const struct block_answer *answer = &packet->answer;
    const struct psn count = psn_of(packet->tsn);
    if (requester->mode == BLOCK_REQUESTER_STOPPED) {
        return plain(BLOCK_STALE);
    }
    if (requester->answered && psn_distance(requester->answer, count) <= 0) {
        /* A newer answer overtook it, perhaps by a shorter route. Its echo is true all the same,
         * and that path may get no other. */
        const bool known = answer->echo_void || answer->echo_path < requester->paths.count;
        const bool copy = psn_equal(requester->answer, count);
        if (!known || !apply_echo(requester, answer, copy, came, now)) {
            return plain(BLOCK_IMPOSSIBLE);
        }
        note_own_route(requester, answer, now);
        return plain(BLOCK_STALE);
    }
    if (!answer_is_possible(requester, answer) ||
        !apply_echo(requester, answer, false, came, now)) {
        return plain(BLOCK_IMPOSSIBLE);
    }
    note_own_route(requester, answer, now);
    block_note_distance(requester);
    requester->answered = true;
    requester->answer = count;
    requester->silences = 0;
    requester->receives_limited = !answer->limit_void;
    requester->receive_limit = answer->receive_limit;
    if (block_number_before(requester->base, answer->base)) {
        block_advance(requester, queue, answer->base, now);
        if (requester->mode == BLOCK_REQUESTER_STOPPED) {
            return plain(BLOCK_PROGRESS);
        }
    }
    apply_absence(requester, answer);
    if (apply_records(requester, answer, now)) {
        block_note_progress(requester, now);
    }
    requester->probe_at = INSTANT_NEVER;
    if (requester->base != requester->next && requester->mode != BLOCK_REQUESTER_PAUSING) {
        block_arm_probe(requester, now);
    }
    return apply_status(requester, queue, answer, now);
}

struct block_progress block_requester_on_answer(struct block_requester *requester,
                                                struct send_queue *queue,
                                                const struct block_packet *packet,
                                                struct instant came, struct instant now)
{
    INVARIANTS(block_requester_check(requester, queue));
    const struct block_progress progress = on_answer(requester, queue, packet, came, now);
    INVARIANTS(block_requester_check(requester, queue));
    return progress;
}
