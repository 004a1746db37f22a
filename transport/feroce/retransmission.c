/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/retransmission.h"

#include <string.h>

#include "base/align.h"
#include "transport/common/timing.h"
#include "wire/roce.h"

static uint32_t slots_of(const struct feroce_retransmission_config *config)
{
    return (1u << config->buffer_bits) / config->qps / config->pmtu;
}

const char *feroce_retransmission_refuses(const struct feroce_retransmission_config *config)
{
    if (config->qps < 1 || config->qps > FEROCE_QPS_MAX || (config->qps & (config->qps - 1)) != 0) {
        return "queue pairs are 1, 2, 4, 8 or 16";
    }
    if (config->pmtu < 256 || config->pmtu > ROCE_PAYLOAD_BYTES_MAX ||
        (config->pmtu & (config->pmtu - 1)) != 0) {
        return "the PMTU is 256, 512, 1024, 2048 or 4096";
    }
    if (config->buffer_bits < 12 || config->buffer_bits > 28) {
        return "the memory is of 2^12 to 2^28 bytes";
    }
    if (config->retry_limit > 7 || config->rnr_limit > FEROCE_RNR_FOR_EVER) {
        return "retries are 0 to 7";
    }
    if (!config->sends_once && slots_of(config) <= 2 * config->qps + 6) {
        return "the memory has too few slots of a PMTU for each queue pair";
    }
    if (slots_of(config) < 2) {
        return "the memory has not two slots of a PMTU";
    }
    return NULL;
}

static size_t headers_bytes(const struct feroce_retransmission_config *config)
{
    return line_aligned((size_t)slots_of(config) * config->qps * sizeof(struct feroce_header));
}

size_t feroce_retransmission_bytes(const struct feroce_retransmission_config *config)
{
    return headers_bytes(config) + ((size_t)1 << config->buffer_bits);
}

void feroce_retransmission_init(struct feroce_retransmission *unit,
                                const struct feroce_retransmission_config *config, void *memory)
{
    CHECK(feroce_retransmission_refuses(config) == NULL);
    *unit = (struct feroce_retransmission){
        .config = *config,
        .headers = memory,
        .payloads = (uint8_t *)memory + headers_bytes(config),
        .slots = slots_of(config),
    };
    memset(memory, 0, headers_bytes(config)); /* A quirk may read slots that were never stored. */
}

uint32_t feroce_stop(const struct feroce_retransmission *unit)
{
    return unit->slots - (unit->config.qps + 6);
}

uint32_t feroce_release(const struct feroce_retransmission *unit)
{
    return unit->config.no_hysteresis ? feroce_stop(unit)
                                      : unit->slots - (2 * unit->config.qps + 6);
}

static bool has_quirk(const struct feroce_retransmission *unit, enum feroce_quirk quirk)
{
    return (unit->config.quirks & quirk) != 0;
}

static size_t slot_of(const struct feroce_retransmission *unit, uint32_t index, struct psn psn)
{
    return (size_t)index * unit->slots + psn.value % unit->slots;
}

static uint32_t outstanding(const struct feroce_window *window)
{
    return psn_count(window->acked, window->written);
}

static bool is_complete(const struct feroce_window *window)
{
    return psn_equal(window->acked, window->written);
}

static void look_at_room(const struct feroce_retransmission *unit, struct feroce_window *window)
{
    if (outstanding(window) > feroce_stop(unit)) {
        window->stalled = true;
    } else if (outstanding(window) <= feroce_release(unit)) {
        window->stalled = false;
    }
}

/* The RTL looks when it visits. A window without quirks knows at any time. */
static void look_at_stall(const struct feroce_retransmission *unit, struct feroce_window *window)
{
    if (!unit->config.sends_once && !has_quirk(unit, FEROCE_QUIRK_STALL)) {
        look_at_room(unit, window);
    }
}

void feroce_window_open(struct feroce_retransmission *unit, uint32_t index, struct psn first)
{
    const struct psn before = psn_before(first, 1);
    unit->windows[index] = (struct feroce_window){
        .open = true,
        .written = before,
        .sent = before,
        .acked = before,
        .high = before,
        .progress = first,
        .rnr_progress = first,
        .timeout = INSTANT_NEVER,
        .rnr_end = INSTANT_NEVER,
    };
}

void feroce_window_close(struct feroce_retransmission *unit, uint32_t index)
{
    const struct psn none = psn_of(PSN_MASK);
    unit->windows[index] = (struct feroce_window){.written = none,
                                                  .sent = none,
                                                  .acked = none,
                                                  .high = none,
                                                  .timeout = INSTANT_NEVER,
                                                  .rnr_end = INSTANT_NEVER};
}

bool feroce_window_has_room(const struct feroce_retransmission *unit, uint32_t index)
{
    const struct feroce_window *window = &unit->windows[index];
    if (unit->config.sends_once) {
        return window->open && psn_count(window->sent, window->written) < unit->slots;
    }
    return window->open && !window->stalled &&
           (has_quirk(unit, FEROCE_QUIRK_STALL) || outstanding(window) < unit->slots);
}

bool feroce_window_store(struct feroce_retransmission *unit, uint32_t index,
                         const struct feroce_header *header, const uint8_t *payload,
                         struct instant now)
{
    struct feroce_window *window = &unit->windows[index];
    CHECK(window->open && header->payload_bytes <= unit->config.pmtu);
    const uint32_t kept =
        unit->config.sends_once ? psn_count(window->sent, window->written) : outstanding(window);
    if (kept >= unit->slots) {
        if (unit->config.sends_once || !has_quirk(unit, FEROCE_QUIRK_STALL)) {
            return false;
        }
        unit->overwritten++;
    }
    if (!unit->config.sends_once && is_complete(window)) {
        window->timeout = instant_after(now, unit->config.rto_ns);
    }
    window->written = psn_after(window->written, 1);
    const size_t slot = slot_of(unit, index, window->written);
    unit->headers[slot] = *header;
    unit->headers[slot].psn = window->written;
    memcpy(unit->payloads + slot * unit->config.pmtu, payload, header->payload_bytes);
    unit->stored++;
    look_at_stall(unit, window);
    return true;
}

const struct feroce_header *feroce_window_header(const struct feroce_retransmission *unit,
                                                 uint32_t index, struct psn psn)
{
    return &unit->headers[slot_of(unit, index, psn)];
}

/* -- Answers ------------------------------------------------------------------------------------*/

const char *feroce_arrival_name(enum feroce_arrival arrival)
{
    static const char *const names[FEROCE_ARRIVAL_COUNT] = {
        [FEROCE_ARRIVAL_ACK] = "acknowledgements",
        [FEROCE_ARRIVAL_NAK] = "sequence_errors",
        [FEROCE_ARRIVAL_RNR] = "rnr_naks",
        [FEROCE_ARRIVAL_FATAL] = "fatal_naks",
        [FEROCE_ARRIVAL_OLD] = "old_answers",
        [FEROCE_ARRIVAL_AHEAD] = "answers_ahead",
        [FEROCE_ARRIVAL_WAITS] = "naks_while_waiting",
        [FEROCE_ARRIVAL_RESERVED] = "reserved_syndromes",
        [FEROCE_ARRIVAL_CLOSED] = "answers_for_closed",
        [FEROCE_ARRIVAL_FOREIGN] = "foreign_qpns",
        [FEROCE_ARRIVAL_SHORT] = "short_answers",
        [FEROCE_ARRIVAL_OTHER] = "other_opcodes",
    };
    CHECK(arrival < FEROCE_ARRIVAL_COUNT);
    return names[arrival];
}

/* Where a PSN lies: acknowledged, sent and not acknowledged (FEROCE_ARRIVAL_ACK), or never sent. */
static enum feroce_arrival place_of(const struct feroce_window *window, struct psn psn)
{
    const uint32_t ahead = psn_count(window->acked, psn);
    if (ahead >= 1 && ahead <= psn_count(window->acked, window->high)) {
        return FEROCE_ARRIVAL_ACK;
    }
    return ahead == 0 || ahead > PSN_HALF ? FEROCE_ARRIVAL_OLD : FEROCE_ARRIVAL_AHEAD;
}

static void rewind_to_refused(struct feroce_window *window)
{
    window->sent = psn_before(window->refused, 1);
}

static enum feroce_arrival take_ack(struct feroce_retransmission *unit, uint32_t index,
                                    struct psn psn, struct instant now)
{
    struct feroce_window *window = &unit->windows[index];
    const bool any = has_quirk(unit, FEROCE_QUIRK_ACK_ORDER);
    const enum feroce_arrival place = place_of(window, psn);
    if (place != FEROCE_ARRIVAL_ACK && !any) {
        return place;
    }
    /* A refused packet that lies behind the ACK still has to go again: at once, as there is an
     * answer now. The RTL forgets it. */
    const bool refused = window->rnr_waits || window->rnr_over || window->sequence_error;
    window->acked = psn;
    if (refused && !has_quirk(unit, FEROCE_QUIRK_MR_RNR)) {
        *(window->sequence_error ? &unit->sequence_rewinds : &unit->rnr_rewinds) += 1;
        rewind_to_refused(window);
    }
    window->sequence_error = window->timed_out = window->rnr_waits = window->rnr_over = false;
    window->rnr_end = INSTANT_NEVER;
    if (!any && !unit->config.sends_once && psn_distance(window->sent, psn) > 0) {
        window->sent = psn; /* Packets that were to be sent again have arrived meanwhile. */
    }
    window->timeout = is_complete(window) || unit->config.sends_once
                          ? INSTANT_NEVER
                          : instant_after(now, unit->config.rto_ns);
    look_at_stall(unit, window);
    return FEROCE_ARRIVAL_ACK;
}

/* The receiver has all packets in front of `next`. If this is news, the retries were of use. The
 * RTL takes any PSN but that of the refused packet for progress. */
static bool is_progress(const struct feroce_retransmission *unit, struct psn known, struct psn next)
{
    return has_quirk(unit, FEROCE_QUIRK_UNCOUNTED) ? !psn_equal(next, known)
                                                   : psn_distance(known, next) > 0;
}

static enum feroce_arrival take_rnr(struct feroce_retransmission *unit,
                                    struct feroce_window *window, uint8_t code, struct psn psn,
                                    struct instant now)
{
    const uint8_t limit = unit->config.rnr_limit;
    const uint64_t wait_ns = rnr_timer_ns(code);
    const uint8_t retries = is_progress(unit, window->rnr_progress, psn) ? 0 : window->rnr_retries;
    window->refused = psn;
    if (limit != FEROCE_RNR_FOR_EVER && retries >= limit) {
        window->failed = true;
        return FEROCE_ARRIVAL_FATAL;
    }
    window->rnr_waits = true;
    window->rnr_over = window->sequence_error = window->timed_out = false;
    window->rnr_end = instant_after(now, wait_ns);
    window->timeout = instant_after(window->rnr_end, unit->config.rto_ns);
    return FEROCE_ARRIVAL_RNR;
}

enum feroce_arrival feroce_window_answer(struct feroce_retransmission *unit, uint32_t index,
                                         uint8_t syndrome, struct psn psn, struct instant now)
{
    struct feroce_window *window = &unit->windows[index];
    if (!window->open) {
        return FEROCE_ARRIVAL_CLOSED;
    }
    /* Bit 7 is not looked at. */
    const uint8_t kind = syndrome & 0x60, value = syndrome & ROCE_AETH_VALUE_MASK;
    if (kind == ROCE_AETH_ACK) {
        return take_ack(unit, index, psn, now);
    }
    if (kind != ROCE_AETH_NAK && kind != ROCE_AETH_RNR_NAK) {
        return FEROCE_ARRIVAL_RESERVED;
    }
    const enum feroce_arrival place = place_of(window, psn);
    if (place != FEROCE_ARRIVAL_ACK && !has_quirk(unit, FEROCE_QUIRK_ACK_ORDER)) {
        return place;
    }
    if (unit->config.sends_once) {
        return FEROCE_ARRIVAL_NAK; /* That stops messages, not packets. */
    }
    if (kind == ROCE_AETH_NAK && value != 0) {
        window->failed = true;
        return FEROCE_ARRIVAL_FATAL;
    }
    if (window->rnr_waits) {
        return FEROCE_ARRIVAL_WAITS;
    }
    if (kind == ROCE_AETH_RNR_NAK) {
        return take_rnr(unit, window, value, psn, now);
    }
    window->refused = psn;
    if (window->retries >= FEROCE_NAK_LIMIT && !is_progress(unit, window->progress, psn)) {
        window->failed = true;
        return FEROCE_ARRIVAL_FATAL;
    }
    window->sequence_error = true;
    return FEROCE_ARRIVAL_NAK;
}

/* -- The reader ---------------------------------------------------------------------------------*/

/* Packets go again from `first` on: after progress, or once more without any. */
static void count_retry(const struct feroce_retransmission *unit, uint8_t *retries,
                        struct psn *known, struct psn first)
{
    if (is_progress(unit, *known, first)) {
        *retries = 0;
    }
    *retries = (uint8_t)(*retries + (*retries < FEROCE_NAK_LIMIT));
    if (has_quirk(unit, FEROCE_QUIRK_UNCOUNTED) || psn_distance(*known, first) > 0) {
        *known = first;
    }
}

/* Sets RD back if something asks for it. False: the queue pair is given up. */
static bool heed(struct feroce_retransmission *unit, struct feroce_window *window,
                 struct instant now, struct feroce_read *read)
{
    if (window->timed_out) {
        window->timed_out = false;
        if (window->retries >= unit->config.retry_limit) {
            return false;
        }
        window->sent = window->acked;
        count_retry(unit, &window->retries, &window->progress, psn_after(window->acked, 1));
        window->timeout = instant_after(now, unit->config.rto_ns);
        unit->timeouts++;
        read->rewound = true;
    }
    if (window->sequence_error) {
        window->sequence_error = false;
        rewind_to_refused(window);
        count_retry(unit, &window->retries, &window->progress, window->refused);
        window->alone = unit->config.resends_alone;
        unit->sequence_rewinds++;
        read->rewound = true;
    }
    if (window->rnr_over) {
        window->rnr_over = false;
        rewind_to_refused(window);
        count_retry(unit, &window->rnr_retries, &window->rnr_progress, window->refused);
        unit->rnr_rewinds++;
        read->rewound = true;
    }
    return true;
}

/* The mark goes along: one that stayed where the last retry was would seem to lie ahead once 2^23
 * packets have passed, and nothing would be progress. */
static void forgive_retries(const struct feroce_retransmission *unit, uint8_t *retries,
                            struct psn *known, struct psn next)
{
    if (!is_progress(unit, *known, next)) {
        return;
    }
    *retries = 0;
    if (!has_quirk(unit, FEROCE_QUIRK_UNCOUNTED)) {
        *known = next;
    }
}

static void count_progress(const struct feroce_retransmission *unit, struct feroce_window *window)
{
    const struct psn next = psn_after(window->acked, 1);
    forgive_retries(unit, &window->retries, &window->progress, next);
    forgive_retries(unit, &window->rnr_retries, &window->rnr_progress, next);
}

static void read_next(struct feroce_retransmission *unit, uint32_t index, struct instant now,
                      struct feroce_read *read)
{
    struct feroce_window *window = &unit->windows[index];
    window->sent = psn_after(window->sent, 1);
    const size_t slot = slot_of(unit, index, window->sent);
    read->header = &unit->headers[slot];
    read->payload = unit->payloads + slot * unit->config.pmtu;
    read->resent = psn_distance(window->high, window->sent) <= 0;
    if (!read->resent) {
        window->high = window->sent;
    }
    if (window->alone) {
        window->alone = false;
        window->sent = window->high;
    }
    if (unit->config.sending_restarts_timer) {
        window->timeout = instant_after(now, unit->config.rto_ns);
    }
    unit->sent++;
    unit->resent += read->resent;
}

enum feroce_visit feroce_window_visit(struct feroce_retransmission *unit, uint32_t index,
                                      struct instant now, struct feroce_read *read)
{
    struct feroce_window *window = &unit->windows[index];
    *read = (struct feroce_read){0};
    if (!window->open) {
        return FEROCE_VISIT_EMPTY;
    }
    if (window->failed || (!window->rnr_waits && !heed(unit, window, now, read))) {
        feroce_window_close(unit, index);
        return FEROCE_VISIT_GIVES_UP;
    }
    count_progress(unit, window);
    const bool is_empty = psn_equal(window->written, window->sent);
    if (has_quirk(unit, FEROCE_QUIRK_STALL) && !unit->config.sends_once) {
        if (is_empty) {
            window->stalled = false;
        } else {
            look_at_room(unit, window);
        }
    }
    if (is_empty || window->rnr_waits) {
        return FEROCE_VISIT_EMPTY;
    }
    read_next(unit, index, now, read);
    return FEROCE_VISIT_PACKET;
}

/* -- Time ---------------------------------------------------------------------------------------*/

struct instant feroce_retransmission_deadline(const struct feroce_retransmission *unit)
{
    struct instant earliest = INSTANT_NEVER;
    for (uint32_t i = 0; i < unit->config.qps; i++) {
        const struct feroce_window *window = &unit->windows[i];
        const struct instant due =
            window->rnr_waits && instant_before(window->rnr_end, window->timeout) ? window->rnr_end
                                                                                  : window->timeout;
        if (window->open && instant_before(due, earliest)) {
            earliest = due;
        }
    }
    return earliest;
}

void feroce_retransmission_on_time(struct feroce_retransmission *unit, struct instant now)
{
    for (uint32_t i = 0; i < unit->config.qps; i++) {
        struct feroce_window *window = &unit->windows[i];
        if (window->open && window->rnr_waits && instant_reached(now, window->rnr_end)) {
            window->rnr_waits = false;
            window->rnr_over = true;
            window->rnr_end = INSTANT_NEVER;
        }
        if (window->open && instant_reached(now, window->timeout)) {
            window->timed_out = true;
            window->timeout = INSTANT_NEVER;
        }
    }
}

/* CPL, RD, the greatest RD and WR stand in this order, and what is not acknowledged has a timer.
 * (An ACK out of order may have moved CPL anywhere.) */
void feroce_window_check(const struct feroce_retransmission *unit, uint32_t index)
{
    const struct feroce_window *window = &unit->windows[index];
    if (!window->open || has_quirk(unit, FEROCE_QUIRK_ACK_ORDER)) {
        return;
    }
    if (unit->config.sends_once) { /* Nothing waits for ACKs: CPL may be anywhere. */
        CHECK(psn_count(window->sent, window->written) <= unit->slots &&
              psn_equal(window->sent, window->high) && window->timeout.ns == INSTANT_NEVER.ns);
        return;
    }
    const uint32_t kept = outstanding(window);
    const uint32_t sent = psn_count(window->acked, window->sent);
    const uint32_t high = psn_count(window->acked, window->high);
    CHECK(sent <= high && high <= kept);
    CHECK(kept <= unit->slots || has_quirk(unit, FEROCE_QUIRK_STALL));
    CHECK(window->retries <= FEROCE_NAK_LIMIT && window->rnr_retries <= FEROCE_RNR_FOR_EVER);
    CHECK(kept == 0 || window->timed_out || window->timeout.ns != INSTANT_NEVER.ns);
    CHECK(!window->rnr_waits || window->rnr_end.ns != INSTANT_NEVER.ns);
}

bool feroce_retransmission_has_work(const struct feroce_retransmission *unit)
{
    for (uint32_t i = 0; i < unit->config.qps; i++) {
        const struct feroce_window *window = &unit->windows[i];
        const bool sends = !window->rnr_waits && !psn_equal(window->written, window->sent);
        if (window->open && (window->failed || window->timed_out || window->sequence_error ||
                             window->rnr_over || sends)) {
            return true;
        }
    }
    return false;
}
