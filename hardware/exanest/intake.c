/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/intake.h"

uint16_t exanest_lanes(uint64_t va, uint32_t bytes, uint32_t index)
{
    const uint32_t begin = (uint32_t)(va % EXANEST_WORD_BYTES);
    const uint32_t end = begin + bytes; /* Both count from byte 0 of word 0. */
    const uint32_t from = EXANEST_WORD_BYTES * index;
    CHECK(from < end);
    uint32_t mask = 0xffff;
    if (begin > from) {
        mask &= 0xffffu << (begin - from);
    }
    if (end - from < EXANEST_WORD_BYTES) {
        mask &= 0xffffu >> (EXANEST_WORD_BYTES - (end - from));
    }
    return (uint16_t)mask;
}

static void exanest_intake_check(const struct exanest_intake *intake)
{
    CHECK(intake->words <= intake->expected && intake->expected <= EXANEST_PAYLOAD_WORDS_MAX);
    CHECK(intake->header_verdict < EXANEST_VERDICT_COUNT);
    CHECK(!intake->too_long || intake->words == intake->expected);
    CHECK(intake->header_verdict == EXANEST_GOOD || intake->expected == 0);
}

static void end(struct exanest_intake *intake, struct exanest_intake_step *step,
                enum exanest_outcome outcome)
{
    intake->open = false;
    intake->counters.outcomes[outcome]++;
    if (outcome == EXANEST_WHOLE) {
        intake->counters.packets[intake->header.type]++;
        intake->counters.bytes[intake->header.type] += intake->header.bytes;
    }
    step->ends = true;
    step->outcome = (uint8_t)outcome;
}

static struct exanest_intake_step on_header(struct exanest_intake *intake,
                                            const struct exanest_beat *beat)
{
    struct exanest_intake_step step = {.interrupted = intake->open, .begins = true};
    intake->counters.outcomes[EXANEST_CUT_OFF] += intake->open;
    intake->header = (struct exanest_header){0};
    const enum exanest_verdict verdict = exanest_header_decode(beat->word, &intake->header);
    intake->counters.headers[verdict]++;
    intake->open = true;
    intake->too_long = false;
    intake->header_verdict = (uint8_t)verdict;
    intake->expected =
        (uint8_t)exanest_payload_words(intake->header.target.va, intake->header.bytes);
    intake->words = 0;
    intake->crc = 0;
    if (verdict == EXANEST_GOOD && !intake->header.has_footer) {
        end(intake, &step, EXANEST_WHOLE);
    } else if (beat->last) {
        end(intake, &step, EXANEST_CUT_OFF);
    }
    return step;
}

static struct exanest_intake_step on_payload(struct exanest_intake *intake,
                                             const struct exanest_beat *beat)
{
    struct exanest_intake_step step = {0};
    if (!intake->open) {
        intake->counters.strays++;
        return step;
    }
    if (intake->words < intake->expected) {
        intake->words++;
        intake->crc = exanest_payload_crc(intake->crc, beat->word);
        step.payload = true;
    } else {
        intake->too_long = true; /* Also behind a bad header, which announces nothing. */
    }
    if (beat->last) {
        end(intake, &step, EXANEST_CUT_OFF);
    }
    return step;
}

static enum exanest_outcome judge_footer(const struct exanest_intake *intake)
{
    if (intake->header_verdict != EXANEST_GOOD) {
        return EXANEST_BAD_HEADER;
    }
    if (intake->words < intake->expected) {
        return EXANEST_TOO_SHORT;
    }
    if (intake->too_long) {
        return EXANEST_TOO_LONG;
    }
    /* Without payload the sum is 0, and so the footer's is to be. */
    return intake->crc == intake->footer.payload_crc ? EXANEST_WHOLE : EXANEST_BAD_PAYLOAD;
}

static struct exanest_intake_step on_footer(struct exanest_intake *intake,
                                            const struct exanest_beat *beat)
{
    struct exanest_intake_step step = {0};
    if (!intake->open) {
        intake->counters.strays++;
        return step;
    }
    const enum exanest_verdict verdict = exanest_footer_decode(beat->word, &intake->footer);
    intake->counters.footers[verdict]++;
    end(intake, &step, verdict == EXANEST_GOOD ? judge_footer(intake) : EXANEST_BAD_FOOTER);
    return step;
}

static struct exanest_intake_step take(struct exanest_intake *intake,
                                       const struct exanest_beat *beat)
{
    switch (beat->part) {
    case EXANEST_HEADER: return on_header(intake, beat);
    case EXANEST_PAYLOAD: return on_payload(intake, beat);
    case EXANEST_FOOTER: return on_footer(intake, beat);
    }
    UNREACHABLE("a part outside its enum");
}

struct exanest_intake_step exanest_intake_take(struct exanest_intake *intake,
                                               const struct exanest_beat *beat)
{
    INVARIANTS(exanest_intake_check(intake));
    const struct exanest_intake_step step = take(intake, beat);
    INVARIANTS(exanest_intake_check(intake));
    return step;
}
