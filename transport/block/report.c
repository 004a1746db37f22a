/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report - the contents of an answer: the oldest blocks of a stream that are incomplete. See
 * responder.h.
 */
#include "transport/block/responder.h"

/* The route from base to the newest block seen. */
struct walk {
    const struct block_responder *responder;
    struct block_answer *answer;
    const struct block_context *context; /* The next one in the chain. */
    uint32_t at, end;                    /* Blocks [at, end) are not reported yet. */
    uint32_t looked;                     /* Contexts; */
    uint32_t last;                       /* ... the last one's block. */
};

static struct block_record *add_record(struct walk *walk, uint32_t number, enum block_state state)
{
    struct block_record *record = &walk->answer->records[walk->answer->record_count++];
    *record = (struct block_record){.number = number, .state = (uint8_t)state};
    return record;
}

/* The oldest block of those without room that is not before `number`; `end` if there is none. */
static uint32_t next_missing(const struct walk *walk, uint32_t end)
{
    const struct block_responder *responder = walk->responder;
    for (uint32_t i = 0; i < responder->missing_count; i++) {
        if (!block_number_before(responder->missing[i], walk->at) &&
            block_number_before(responder->missing[i], end)) {
            return responder->missing[i];
        }
    }
    return end;
}

/* Nothing is kept of the blocks in front of `end`. */
static void report_gap(struct walk *walk, uint32_t end)
{
    const uint32_t missing = next_missing(walk, end);
    if (missing == walk->at) {
        add_record(walk, walk->at++, BLOCK_STATE_NO_CONTEXT);
        return;
    }
    add_record(walk, walk->at, BLOCK_STATE_RUN)->bitmap = missing - walk->at;
    walk->at = missing;
}

static bool is_early(const struct walk *walk, const struct block_context *context)
{
    return block_number_before(block_responder_base(walk->responder),
                               context->number - context->index);
}

static bool has_all(const struct block_context *context)
{
    if (context->opcode == BLOCK_READ || context->opcode == BLOCK_ATOMIC) {
        return context->arrived != 0;
    }
    return context->arrived == block_positions(context->last_position);
}

static void report_context(struct walk *walk)
{
    const struct block_context *context = walk->context;
    if (!has_all(context)) {
        const bool ordered =
            (context->flags & BLOCK_CONTEXT_DECLINED) != 0 && is_early(walk, context);
        struct block_record *record =
            add_record(walk, context->number, ordered ? BLOCK_STATE_ORDER : BLOCK_STATE_INCOMPLETE);
        record->round = context->round;
        record->bitmap = context->arrived;
    }
    walk->last = walk->at++;
    walk->context = block_contexts_next(walk->responder->contexts, context);
}

static void report_blocks(struct walk *walk)
{
    while (block_number_before(walk->at, walk->end)) {
        if (walk->answer->record_count == BLOCK_RECORDS_MAX || walk->looked == BLOCK_ANSWER_WALK) {
            walk->answer->more = true;
            return;
        }
        if (walk->context != NULL && walk->context->number == walk->at) {
            walk->looked++;
            report_context(walk);
        } else {
            report_gap(walk, walk->context == NULL ? walk->end : walk->context->number);
        }
    }
}

static struct walk walk_from_base(const struct block_responder *responder,
                                  struct block_answer *answer)
{
    return (struct walk){
        .responder = responder,
        .answer = answer,
        .context = block_contexts_first(responder->contexts, &responder->chain),
        .at = block_responder_base(responder) + responder->moving,
        .end = responder->seen + 1,
    };
}

/* On from where earlier answers had no more room: behind a context that is still there. While base
 * stands still, every second answer begins there, and so does the answer to a probe: nothing is
 * executed before it, however much is known of the rest. */
static bool walk_on(const struct block_responder *responder, struct walk *walk)
{
    const bool stands = responder->report_base == block_responder_base(responder);
    const bool on = responder->report_goes_on && !(responder->report_went_on && stands);
    const struct block_context *before =
        on && !responder->answers_probe && responder->missing_count == 0
            ? block_contexts_find(responder->contexts, &responder->chain, responder->report_after)
            : NULL;
    if (before == NULL) {
        return false;
    }
    walk->context = block_contexts_next(responder->contexts, before);
    walk->at = responder->report_after + 1;
    return true;
}

/* Notes where the next report goes on: not before the blocks that were named already. */
static void note_reported(struct block_responder *responder, const struct walk *walk, bool went_on)
{
    const bool more = walk->answer->more && walk->looked != 0;
    const bool behind = !went_on && responder->report_goes_on && more &&
                        block_number_before(walk->last, responder->report_after);
    responder->report_after = behind ? responder->report_after : walk->last;
    responder->report_goes_on = more;
    responder->report_went_on = went_on;
    responder->report_base = block_responder_base(responder);
}

/* Where much is lost, more blocks are incomplete than an answer can name: every second one goes on
 * where those before it ended. */
static void report(struct block_responder *responder, struct block_answer *answer)
{
    struct walk walk = walk_from_base(responder, answer);
    if (responder->read_refused) {
        add_record(&walk, responder->refused_read, BLOCK_STATE_REFUSED);
    }
    if (responder->refused) {
        answer->more = true; /* The known state is gone. */
        return;
    }
    bool goes_on = walk_on(responder, &walk);
    report_blocks(&walk);
    if (goes_on && answer->record_count == 0 && !answer->more) {
        /* Without a record it would say that nothing at all is missing. */
        walk = walk_from_base(responder, answer);
        report_blocks(&walk);
        goes_on = false;
    }
    note_reported(responder, &walk, goes_on);
}

/* An answer echoes one path. Others that wait for an echo have answers of their own: packets that
 * come together at all times would else leave all paths but one without news. */
static uint8_t echoed_path(const struct block_responder *responder)
{
    const struct block_last_arrived *arrived = responder->arrived;
    if (responder->status != BLOCK_STATUS_NONE || arrived[responder->newest].asked) {
        return responder->newest;
    }
    for (uint8_t path = 0; path < BLOCK_PATHS_MAX; path++) {
        if (arrived[path].asked) {
            return path;
        }
    }
    return responder->newest;
}

static bool others_asked(const struct block_responder *responder)
{
    bool asked = false;
    for (uint8_t path = 0; path < BLOCK_PATHS_MAX; path++) {
        asked |= responder->arrived[path].asked;
    }
    return asked;
}

static void report_echo(struct block_responder *responder, struct instant now,
                        struct block_answer *answer)
{
    const uint8_t path = echoed_path(responder);
    struct block_last_arrived *echo = &responder->arrived[path];
    answer->echo_void = !echo->valid;
    if (!echo->valid) {
        return;
    }
    /* The clock of arrivals may be ahead of ours. */
    const uint64_t delay = instant_before(now, echo->at) ? 0 : now.ns - echo->at.ns;
    answer->echo_path = path;
    answer->echo_tsn = echo->tsn;
    answer->echo_delay_ns = delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX;
    answer->ce_marked = responder->ce_marked[path];
    answer->duplicates = responder->duplicates[path];
    responder->ce_marked[path] = 0;
    responder->duplicates[path] = 0;
    *echo = (struct block_last_arrived){.valid = false};
}

void block_responder_answer(struct block_responder *responder, struct instant now,
                            struct block_answer *answer)
{
    INVARIANTS(block_responder_check(responder));
    *answer = (struct block_answer){.base = block_responder_base(responder),
                                    .answers_probe = responder->answers_probe,
                                    .status = responder->status};
    report(responder, answer);
    report_echo(responder, now, answer);
    responder->answer_due = !responder->refused && others_asked(responder);
    responder->answers_probe = false;
    responder->missing_count = 0;
    responder->answers++;
    if (responder->refused) {
        responder->refusal_sent = now;
    } else {
        responder->status = BLOCK_STATUS_NONE;
    }
}
