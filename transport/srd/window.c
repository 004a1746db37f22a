/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/srd/window.h"

#include <string.h>

/* Verdicts by their codes; others there are none. */
static const uint8_t verdicts[16] = {
    SRD_JUDGED_NOT,
    SRD_JUDGED_MOVING,
    SRD_JUDGED_TAKEN,
    SRD_JUDGED_NO_RECEIVE,
    SRD_REFUSED(SRD_STATUS_BAD_ADDRESS),
    SRD_REFUSED(SRD_STATUS_BAD_QPN),
    SRD_REFUSED(SRD_STATUS_BAD_LENGTH),
    SRD_REFUSED(SRD_STATUS_UNKNOWN_PEER),
    SRD_REFUSED(SRD_STATUS_FEATURE_MISMATCH),
};

static uint8_t code_of(uint8_t judged)
{
    uint8_t code = 0;
    while (verdicts[code] != judged) {
        code++;
        CHECK(code < COUNT_OF(verdicts));
    }
    return code;
}

static uint32_t shift_of(uint32_t psn)
{
    return psn % 2 * 4;
}

static void put(struct srd_window *window, uint32_t psn, uint8_t judged)
{
    uint8_t *byte = &window->judged[psn % SRD_WINDOW / 2];
    const uint32_t shift = shift_of(psn);
    *byte = (uint8_t)((*byte & ~(0xfu << shift)) | (uint32_t)code_of(judged) << shift);
}

uint8_t srd_window_judged(const struct srd_window *window, uint32_t psn)
{
    return verdicts[window->judged[psn % SRD_WINDOW / 2] >> shift_of(psn) & 0xf];
}

void srd_window_init(struct srd_window *window, uint32_t base)
{
    *window = (struct srd_window){.base = base, .taken_before = base, .end = base};
}

void srd_window_check(const struct srd_window *window)
{
    CHECK(window->taken_before - window->base <= window->end - window->base);
    CHECK(window->end - window->base <= SRD_WINDOW);
    CHECK(window->taken_before == window->end ||
          srd_window_judged(window, window->taken_before) != SRD_JUDGED_TAKEN);
}

static void skip_taken(struct srd_window *window)
{
    while (window->taken_before != window->end &&
           srd_window_judged(window, window->taken_before) == SRD_JUDGED_TAKEN) {
        window->taken_before++;
    }
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return srd_distance(a, b) > 0 ? b : a;
}

void srd_window_advance(struct srd_window *window, uint32_t base)
{
    if (srd_distance(window->base, base) <= 0) {
        return;
    }
    for (uint32_t psn = window->base; psn != window->end && psn != base; psn++) {
        put(window, psn, SRD_JUDGED_NOT);
    }
    window->base = base;
    window->end = later(window->end, base);
    window->taken_before = later(window->taken_before, base);
    skip_taken(window);
    INVARIANTS(srd_window_check(window));
}

void srd_window_set(struct srd_window *window, uint32_t psn, uint8_t judged)
{
    CHECK(srd_window_place(window, psn) == SRD_PLACE_INSIDE);
    put(window, psn, judged);
    window->end = later(window->end, psn + 1);
    skip_taken(window);
    INVARIANTS(srd_window_check(window));
}

/* An instance one of whose packets got `judged`, and which no assembly collects: a message that was
 * left, or that never was one. */
static uint8_t verdict_on_rest(uint8_t judged)
{
    return judged == SRD_JUDGED_TAKEN || judged == SRD_JUDGED_MOVING
               ? srd_refused(SRD_STATUS_BAD_QPN)
               : judged;
}

uint8_t srd_window_judge_instance(const struct srd_window *window, uint32_t first, uint32_t packets)
{
    if (srd_window_place(window, first) == SRD_PLACE_BEFORE) {
        return srd_refused(SRD_STATUS_BAD_QPN);
    }
    for (uint32_t psn = first; psn != first + packets; psn++) {
        if (srd_window_place(window, psn) == SRD_PLACE_INSIDE &&
            srd_window_judged(window, psn) != SRD_JUDGED_NOT) {
            return verdict_on_rest(srd_window_judged(window, psn));
        }
    }
    return SRD_JUDGED_NOT;
}

/* -- Answers ------------------------------------------------------------------------------------*/

static struct srd_record record_of(uint32_t psn, uint8_t judged, uint8_t wait_code)
{
    struct srd_record record = {.psn = psn, .bitmap = 1};
    if (judged == SRD_JUDGED_NO_RECEIVE) {
        record.kind = SRD_KIND_NO_RECEIVE;
        record.wait_code = wait_code;
    } else if (judged != SRD_JUDGED_TAKEN) {
        record.kind = SRD_KIND_REFUSED;
        record.status = (uint8_t)(judged - SRD_JUDGED_REFUSED);
    }
    return record;
}

/* Adds a verdict to the record that has its like and reaches that far, or to a new one. False:
 * there is no room. */
static bool add(struct srd_answer *answer, const struct srd_record *one)
{
    for (uint32_t i = 0; i < answer->record_count; i++) {
        struct srd_record *record = &answer->records[i];
        if (record->kind == one->kind && record->status == one->status &&
            one->psn - record->psn < 64) {
            record->bitmap |= UINT64_C(1) << (one->psn - record->psn);
            return true;
        }
    }
    if (answer->record_count == SRD_RECORDS_MAX) {
        return false;
    }
    answer->records[answer->record_count++] = *one;
    return true;
}

void srd_window_report(const struct srd_window *window, uint8_t wait_code,
                       struct srd_answer *answer)
{
    answer->taken_before = window->taken_before;
    answer->record_count = 0;
    answer->more = false;
    for (uint32_t psn = window->taken_before; psn != window->end && !answer->more; psn++) {
        const uint8_t judged = srd_window_judged(window, psn);
        if (judged > SRD_JUDGED_MOVING) {
            const struct srd_record one = record_of(psn, judged, wait_code);
            answer->more = !add(answer, &one);
        }
    }
}
