/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm.h"
#include "transport/lant/shm_internal.h"

/* -- Judging ------------------------------------------------------------------------------------*/

/* Can this request be answered so? LOCKED and EXOKAY are for exclusive accesses. */
static bool fits(const struct lant_shm_request *request, const struct lant_packet *packet)
{
    const enum lant_response response = (enum lant_response)packet->footer.response;
    const bool has_data = !request->store && !lant_response_is_nack(response);
    /* A machine that does not know the type cannot know that R answers it. */
    if (request->atomic != LANT_NO_ATOMIC && packet->header.type == LANT_B) {
        return response == LANT_DECERR && packet->header.payload == 0;
    }
    return packet->header.type == (request->store ? LANT_B : LANT_R) &&
           packet->header.payload == (has_data ? 1 : 0) && response <= LANT_NACK_BUSY &&
           (request->lock || (response != LANT_LOCKED && response != LANT_EXOKAY));
}

/* How many attempts have been sent to their end. */
static uint32_t attempts_sent(const struct lant_shm_row *row)
{
    return row->attempt + (row->state == LANT_SHM_ROW_SENT ? 1u : 0u);
}

static enum lant_shm_answer judge_nack(const struct lant_shm *shm, const struct lant_shm_row *row,
                                       const struct lant_footer *footer)
{
    if (footer->attempt < row->attempt) {
        return LANT_SHM_ANSWER_OLD_NACK;
    }
    return row->attempt == shm->config.retries ? LANT_SHM_ANSWER_FAILS : LANT_SHM_ANSWER_RESENDS;
}

static enum lant_shm_answer lant_shm_judge_answer(const struct lant_shm *shm,
                                                  const struct lant_packet *packet)
{
    const struct lant_footer *footer = &packet->footer;
    if (footer->class != LANT_CLASS_SHM || packet->header.destination != shm->config.node) {
        return LANT_SHM_ANSWER_FOREIGN;
    }
    if (footer->row >= shm->config.rows || !(shm->busy >> footer->row & 1)) {
        return LANT_SHM_ANSWER_STALE;
    }
    const struct lant_shm_row *row = &shm->rows[footer->row];
    if (row->generation != footer->generation || row->sequence != lant_sequence_of(footer) ||
        row->request.bus_id != footer->bus_id) {
        return LANT_SHM_ANSWER_STALE;
    }
    if (!fits(&row->request, packet)) {
        return LANT_SHM_ANSWER_MALFORMED;
    }
    if (footer->attempt >= attempts_sent(row)) {
        return LANT_SHM_ANSWER_UNASKED;
    }
    if (lant_response_is_nack((enum lant_response)footer->response)) {
        return judge_nack(shm, row, footer);
    }
    /* Switches on the way may say NACK or DECERR, but nothing else. */
    if (footer->source != lant_global_node(row->request.address) &&
        footer->response != LANT_DECERR) {
        return LANT_SHM_ANSWER_FOREIGN;
    }
    return LANT_SHM_ANSWER_DONE;
}

/* -- The end of a request -----------------------------------------------------------------------*/

/* Done or failed: the row is free. `data`: that of a load. */
static void lant_shm_finish(struct lant_shm *shm, uint32_t i, enum lant_shm_done_kind kind,
                            enum lant_response response, uint64_t data)
{
    struct lant_shm_row *row = &shm->rows[i];
    const bool waits = row->early == LANT_SHM_EARLY_NOT_YET || row->early == LANT_SHM_EARLY_WAITS;
    if (row->state == LANT_SHM_ROW_RESEND) {
        lant_shm_queue_remove(&shm->queues[LANT_SHM_RESENDS], i);
    }
    if (row->early == LANT_SHM_EARLY_WAITS) {
        lant_shm_queue_remove(&shm->early_queue, i);
    }
    shm->done_owed = (uint16_t)(shm->done_owed - (waits ? 2u : 1u));
    lant_shm_put_done(shm, row, kind, response, data);
    lant_shm_fences_on_done(shm, i,
                            kind == LANT_SHM_FAILED || kind == LANT_SHM_DENIED ||
                                response == LANT_SLVERR || response == LANT_DECERR);
    shm->early_used = (uint16_t)(shm->early_used - (row->early == LANT_SHM_EARLY_GRANTED));
    row->state = LANT_SHM_ROW_FREE;
    row->early = LANT_SHM_EARLY_NEVER;
    shm->busy &= ~(UINT64_C(1) << i);
    lant_shm_grant_early(shm);
    lant_shm_pending_release(shm, lant_shm_granule(&row->request));
}

/* -- Failures -----------------------------------------------------------------------------------*/

static enum lant_error_kind error_of(const struct lant_shm_row *row)
{
    if (row->request.atomic != LANT_NO_ATOMIC) {
        return LANT_ERROR_STORE; /* A bus error: made-up data would be believed. */
    }
    if (!row->request.store) {
        return row->request.lock ? LANT_ERROR_LOAD_EXCLUSIVE : LANT_ERROR_LOAD;
    }
    if (row->early == LANT_SHM_EARLY_GRANTED) {
        return LANT_ERROR_STORE_EARLY;
    }
    return row->request.lock ? LANT_ERROR_STORE_EXCLUSIVE : LANT_ERROR_STORE;
}

static struct lant_error_action record_failure(const struct lant_shm *shm,
                                               struct lant_errors *errors,
                                               const struct lant_shm_row *row, uint8_t response,
                                               uint64_t now)
{
    const struct lant_error error = {.time = now,
                                     .address = row->request.address,
                                     .reporter = shm->config.node,
                                     .initiator = row->request.token,
                                     .kind = (uint8_t)error_of(row),
                                     .attempts = (uint8_t)(row->attempt + 1u),
                                     .response = response,
                                     .accelerator = row->request.accelerator};
    return lant_errors_record(errors, &error);
}

/* All attempts have failed: table 4.1. */
static void give_up(struct lant_shm *shm, struct lant_errors *errors, uint32_t i, uint64_t now)
{
    const struct lant_shm_row *row = &shm->rows[i];
    const struct lant_error_action action = record_failure(shm, errors, row, row->response, now);
    const enum lant_shm_done_kind kind =
        row->early == LANT_SHM_EARLY_GRANTED ? LANT_SHM_DENIED : LANT_SHM_FAILED;
    shm->counters.failed++;
    lant_shm_finish(shm, i, kind, (enum lant_response)action.response,
                    action.fake_data ? shm->config.fake_data : 0);
}

/* The attempt has failed. */
static void try_again(struct lant_shm *shm, struct lant_errors *errors, uint32_t i, uint64_t now)
{
    struct lant_shm_row *row = &shm->rows[i];
    CHECK(row->state == LANT_SHM_ROW_SENT);
    if (row->attempt == shm->config.retries) {
        give_up(shm, errors, i, now);
        return;
    }
    row->attempt++;
    row->state = LANT_SHM_ROW_RESEND;
    lant_shm_queue_append(&shm->queues[LANT_SHM_RESENDS], i);
}

/* -- Answers ------------------------------------------------------------------------------------*/

static void take_answer(struct lant_shm *shm, struct lant_errors *errors,
                        const struct lant_packet *packet, uint64_t now)
{
    const uint32_t i = packet->footer.row;
    const struct lant_shm_row *row = &shm->rows[i];
    const enum lant_response response = (enum lant_response)packet->footer.response;
    enum lant_shm_done_kind kind = LANT_SHM_GENUINE;
    shm->counters.answered++;
    if (row->early == LANT_SHM_EARLY_GRANTED) {
        kind = response == LANT_OKAY ? LANT_SHM_CONFIRMED : LANT_SHM_DENIED;
    }
    if (kind == LANT_SHM_DENIED) {
        (void)record_failure(shm, errors, row, packet->footer.response, now);
    }
    lant_shm_finish(
        shm, i, kind, response,
        row->request.store ? 0 : packet->payload[0] & lant_strobe_bits(row->request.strobe));
}

enum lant_shm_answer lant_shm_on_answer(struct lant_shm *shm, struct lant_errors *errors,
                                        const struct lant_packet *packet, uint64_t now)
{
    INVARIANTS(lant_shm_check(shm));
    const enum lant_shm_answer answer = lant_shm_judge_answer(shm, packet);
    switch (answer) {
    case LANT_SHM_ANSWER_DONE: take_answer(shm, errors, packet, now); break;
    case LANT_SHM_ANSWER_RESENDS:
    case LANT_SHM_ANSWER_FAILS:
        shm->counters.nacks++;
        shm->rows[packet->footer.row].response = packet->footer.response;
        try_again(shm, errors, packet->footer.row, now);
        break;
    case LANT_SHM_ANSWER_STALE:
    case LANT_SHM_ANSWER_OLD_NACK:
    case LANT_SHM_ANSWER_UNASKED:
    case LANT_SHM_ANSWER_MALFORMED:
    case LANT_SHM_ANSWER_FOREIGN: shm->counters.ignored++; break;
    }
    lant_shm_pending_issue(shm, now);
    INVARIANTS(lant_shm_check(shm));
    return answer;
}

/* -- Time ---------------------------------------------------------------------------------------*/

/* The row that times out first, or LANT_SHM_ROWS_MAX. */
static uint32_t first_timer(const struct lant_shm *shm, uint64_t *deadline)
{
    uint32_t first = LANT_SHM_ROWS_MAX;
    *deadline = LANT_NEVER;
    for (uint64_t left = shm->busy; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        if (shm->rows[i].state == LANT_SHM_ROW_SENT && shm->rows[i].deadline < *deadline) {
            *deadline = shm->rows[i].deadline;
            first = i;
        }
    }
    return first;
}

uint64_t lant_shm_deadline(const struct lant_shm *shm, uint64_t now)
{
    const struct lant_identifiers *sequences = &shm->sequences;
    uint64_t deadline = LANT_NEVER;
    (void)first_timer(shm, &deadline);
    if (!lant_identifier_free(sequences, now, shm->config.lifetime)) {
        const uint64_t free_at = lant_identifier_free_at(sequences, shm->config.lifetime);
        deadline = free_at < deadline ? free_at : deadline;
    }
    return deadline;
}

void lant_shm_on_time(struct lant_shm *shm, struct lant_errors *errors, uint64_t now)
{
    uint64_t deadline = LANT_NEVER;
    INVARIANTS(lant_shm_check(shm));
    for (uint32_t i = first_timer(shm, &deadline); deadline <= now && i < LANT_SHM_ROWS_MAX;
         i = first_timer(shm, &deadline)) {
        shm->counters.timeouts++;
        try_again(shm, errors, i, now);
    }
    lant_shm_pending_issue(shm, now);
    INVARIANTS(lant_shm_check(shm));
}
