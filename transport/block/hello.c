/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/block/hello.h"

/* -- The requester ------------------------------------------------------------------------------*/

void hello_ask_begin(struct hello_ask *ask, uint32_t nonce, struct psn psn, bool insists,
                     uint64_t limit_ns)
{
    CHECK(ask->state == HELLO_NOT_ASKED);
    *ask = (struct hello_ask){.state = HELLO_ASKED,
                              .due = true,
                              .insists = insists,
                              .nonce = nonce,
                              .psn = psn,
                              .next = INSTANT_NEVER,
                              .limit_ns = limit_ns};
}

static void start_clock(struct hello_ask *ask, struct instant now)
{
    if (!ask->clock_runs) {
        ask->clock_runs = true;
        ask->began = now;
    }
}

/* When the stream's patience ends. */
static struct instant end_of(const struct hello_ask *ask)
{
    if (!ask->clock_runs || ask->state != HELLO_ASKED) {
        return INSTANT_NEVER;
    }
    return instant_after(ask->began, ask->insists ? ask->limit_ns : HELLO_LAST_NS);
}

void hello_ask_blocked(struct hello_ask *ask, struct instant now)
{
    if (ask->state == HELLO_ASKED) {
        start_clock(ask, now);
    }
}

/* How long after the newest HELLO the next one follows. */
static uint64_t pause_ns(const struct hello_ask *ask)
{
    const uint64_t pause = HELLO_SECOND_NS << (ask->sent < 8 ? ask->sent - 1 : 7);
    return pause < HELLO_PAUSE_MAX_NS ? pause : HELLO_PAUSE_MAX_NS;
}

void hello_ask_sent(struct hello_ask *ask, struct instant now)
{
    CHECK(ask->state != HELLO_NOT_ASKED && ask->due);
    start_clock(ask, now);
    ask->due = false;
    ask->left = now;
    ask->sent = ask->sent == UINT8_MAX ? UINT8_MAX : (uint8_t)(ask->sent + 1);
    ask->next = instant_after(now, pause_ns(ask));
}

void hello_ask_otherwise(struct hello_ask *ask, uint32_t nonce)
{
    CHECK(ask->state == HELLO_ASKED && ask->due);
    ask->nonce = nonce;
}

struct instant hello_ask_deadline(const struct hello_ask *ask)
{
    if (ask->state == HELLO_NOT_ASKED || ask->confirmed) {
        return INSTANT_NEVER;
    }
    const struct instant end = end_of(ask);
    return instant_before(ask->next, end) ? ask->next : end;
}

bool hello_ask_is_overdue(const struct hello_ask *ask, struct instant now)
{
    return ask->insists && instant_reached(now, end_of(ask));
}

void hello_ask_wait_on(struct hello_ask *ask, struct instant now)
{
    ask->began = now;
}

enum hello_outcome hello_ask_on_time(struct hello_ask *ask, struct instant now)
{
    if (ask->state == HELLO_NOT_ASKED || ask->confirmed) {
        return HELLO_GOES_ON;
    }
    if (instant_reached(now, end_of(ask))) {
        ask->state = HELLO_NOT_ASKED;
        ask->due = false;
        return ask->insists ? HELLO_FAILS : HELLO_FALLS_BACK;
    }
    if (instant_reached(now, ask->next)) {
        ask->next = INSTANT_NEVER;
        ask->due = true;
    }
    return HELLO_GOES_ON;
}

static bool is_answer_to(const struct hello_ask *ask, uint32_t nonce, struct psn psn)
{
    return ask->state == HELLO_ASKED && ask->sent != 0 && nonce == ask->nonce &&
           psn_equal(psn, ask->psn);
}

bool hello_ask_on_refusal(struct hello_ask *ask, uint32_t nonce, struct psn psn)
{
    if (!is_answer_to(ask, nonce, psn)) {
        return false;
    }
    ask->state = HELLO_NOT_ASKED;
    ask->due = false;
    return true;
}

bool hello_ask_on_welcome(struct hello_ask *ask, uint32_t nonce, struct psn psn)
{
    if (!is_answer_to(ask, nonce, psn)) {
        return false;
    }
    ask->state = HELLO_AGREED;
    return true;
}

uint64_t hello_ask_trip_ns(const struct hello_ask *ask, struct instant now)
{
    const uint64_t trip_ns = now.ns - ask->left.ns;
    return trip_ns > 0 ? trip_ns : 1;
}

void hello_ask_confirm(struct hello_ask *ask)
{
    ask->confirmed = true;
    ask->due = false;
}

/* -- The responder ------------------------------------------------------------------------------*/

enum hello_verdict hello_judge(const struct hello_answer *answer,
                               const struct hello_question *question,
                               const struct hello_standing *standing)
{
    if (!standing->serves) {
        return HELLO_WRONG_STATE;
    }
    if (question->sender_qpn != standing->peer_qpn) {
        return HELLO_WRONG_QPN;
    }
    if (question->mtu_code != standing->mtu_code) {
        return HELLO_WRONG_MTU;
    }
    if (!psn_equal(question->psn, standing->expected)) {
        return HELLO_WRONG_PSN;
    }
    if (question->reads > standing->reads) {
        return HELLO_WRONG_READS;
    }
    if (answer->session && answer->nonce == question->nonce) {
        return HELLO_AGAIN;
    }
    if (answer->session && standing->executed) {
        return HELLO_EXECUTED;
    }
    return standing->between ? HELLO_NEW : HELLO_MIDST;
}

void hello_accept(struct hello_answer *answer, const struct hello_question *question)
{
    *answer = (struct hello_answer){
        .session = true, .due = true, .nonce = question->nonce, .psn = question->psn};
}

void hello_refuse(struct hello_answer *answer, const struct hello_question *question)
{
    answer->refuses = true;
    answer->refused = *question;
}

void hello_drop(struct hello_answer *answer)
{
    *answer = (struct hello_answer){.session = false};
}
