/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm.h"
#include "transport/lant/shm_internal.h"

void lant_shm_init(struct lant_shm *shm, const struct lant_shm_config *config)
{
    CHECK(config->node < LANT_NODES_MAX);
    CHECK(config->rows >= 1 && config->rows <= LANT_SHM_ROWS_MAX);
    CHECK(config->pending <= LANT_SHM_PENDING_MAX && config->retries <= LANT_RETRIES_MAX);
    CHECK(config->timeout > 0 && config->lifetime < LANT_NEVER / 2);
    CHECK(config->sequences <= LANT_SEQUENCES && config->first_sequence < config->sequences);
    *shm = (struct lant_shm){.config = *config};
    shm->sequences =
        (struct lant_identifiers){.count = config->sequences, .next = config->first_sequence};
}

/* -- Requests -----------------------------------------------------------------------------------*/

static enum lant_shm_verdict judge_shape(const struct lant_shm_request *request)
{
    if (request->size > 3) {
        return LANT_SHM_SIZE_WRONG;
    }
    if ((request->address & ((UINT64_C(1) << request->size) - 1)) != 0) {
        return LANT_SHM_UNALIGNED;
    }
    if ((request->strobe & ~lant_strobe_of(request->size, request->address)) != 0 ||
        (!request->store && request->strobe == 0)) {
        return LANT_SHM_STROBE_WRONG;
    }
    if (request->atomic != LANT_NO_ATOMIC &&
        (request->atomic > LANT_COMPARE_SWAP || request->store || request->lock ||
         request->strobe != 0xff)) {
        return LANT_SHM_ATOMIC_WRONG;
    }
    return LANT_SHM_ISSUED;
}

uint32_t lant_shm_find(const struct lant_shm *shm, uint64_t granule)
{
    for (uint64_t left = shm->busy; left != 0; left &= left - 1) {
        const uint32_t row = (uint32_t)__builtin_ctzll(left);
        if (lant_shm_granule(&shm->rows[row].request) == granule) {
            return row;
        }
    }
    return LANT_SHM_ROWS_MAX;
}

/* May it be acknowledged before it is done? An exclusive store never is (LNI-35). */
static bool can_be_early(const struct lant_shm *shm, const struct lant_shm_request *request)
{
    return shm->config.early_timers > 0 && request->store && !request->lock;
}

enum lant_shm_verdict lant_shm_room(const struct lant_shm *shm,
                                    const struct lant_shm_request *request, uint64_t now)
{
    const uint32_t owes = can_be_early(shm, request) ? 2 : 1;
    if (shm->busy == lant_shm_bits(shm->config.rows)) {
        return LANT_SHM_HELD_ROW;
    }
    if ((uint32_t)shm->done_count + shm->done_owed + owes > LANT_SHM_DONE_MAX) {
        return LANT_SHM_HELD_DONE;
    }
    return lant_identifier_free(&shm->sequences, now, shm->config.lifetime)
               ? LANT_SHM_ISSUED
               : LANT_SHM_HELD_SEQUENCE;
}

static enum lant_shm_verdict lant_shm_judge(const struct lant_shm *shm,
                                            const struct lant_shm_request *request, uint64_t now)
{
    const enum lant_shm_verdict shape = judge_shape(request);
    if (shape != LANT_SHM_ISSUED) {
        return shape;
    }
    const uint64_t granule = lant_shm_granule(request);
    if (lant_shm_find(shm, granule) == LANT_SHM_ROWS_MAX && !lant_shm_pending_has(shm, granule)) {
        return lant_shm_room(shm, request, now);
    }
    return shm->listed == lant_shm_bits(shm->config.pending) ? LANT_SHM_HELD_PENDING
                                                             : LANT_SHM_PENDING;
}

uint32_t lant_shm_issue(struct lant_shm *shm, const struct lant_shm_request *request, uint64_t now)
{
    const uint32_t i = (uint32_t)__builtin_ctzll(~shm->busy);
    const bool early = can_be_early(shm, request);
    struct lant_shm_row *row = &shm->rows[i];
    CHECK(i < shm->config.rows);
    shm->busy |= UINT64_C(1) << i;
    shm->done_owed = (uint16_t)(shm->done_owed + (early ? 2u : 1u));
    *row = (struct lant_shm_row){
        .request = *request,
        .sequence = lant_identifier_take(&shm->sequences, now),
        .state = LANT_SHM_ROW_NEW,
        .early = early ? LANT_SHM_EARLY_NOT_YET : LANT_SHM_EARLY_NEVER,
        .generation = (uint8_t)(row->generation + 1u),
        .response = LANT_NO_RESPONSE,
    };
    lant_shm_queue_append(&shm->queues[request->store ? LANT_SHM_STORES : LANT_SHM_LOADS], i);
    return i;
}

enum lant_shm_verdict lant_shm_request(struct lant_shm *shm, const struct lant_shm_request *request,
                                       uint64_t now)
{
    struct lant_shm_counters *counters = &shm->counters;
    INVARIANTS(lant_shm_check(shm));
    lant_shm_pending_issue(shm, now);
    const enum lant_shm_verdict verdict = lant_shm_judge(shm, request, now);
    switch (verdict) {
    case LANT_SHM_ISSUED: (void)lant_shm_issue(shm, request, now); break;
    case LANT_SHM_PENDING:
        lant_shm_pending_add(shm, request);
        counters->conflicts++;
        break;
    case LANT_SHM_HELD_ROW: counters->held_row++; break;
    case LANT_SHM_HELD_PENDING: counters->held_pending++; break;
    case LANT_SHM_HELD_SEQUENCE: counters->held_sequence++; break;
    case LANT_SHM_HELD_DONE: counters->held_done++; break;
    case LANT_SHM_SIZE_WRONG:
    case LANT_SHM_UNALIGNED:
    case LANT_SHM_STROBE_WRONG:
    case LANT_SHM_ATOMIC_WRONG: counters->refused++; break;
    }
    counters->requests += verdict <= LANT_SHM_PENDING;
    INVARIANTS(lant_shm_check(shm));
    return verdict;
}

/* -- Events -------------------------------------------------------------------------------------*/

void lant_shm_put_done(struct lant_shm *shm, const struct lant_shm_row *row,
                       enum lant_shm_done_kind kind, enum lant_response response, uint64_t data)
{
    const struct lant_shm_request *request = &row->request;
    const uint32_t place = (shm->done_first + (uint32_t)shm->done_count) % LANT_SHM_DONE_MAX;
    CHECK(shm->done_count < LANT_SHM_DONE_MAX);
    shm->done_count++;
    shm->done[place] = (struct lant_shm_done){
        .address = request->address,
        .data = data,
        .token = request->token,
        .beat = request->beat,
        .kind = (uint8_t)kind,
        .response = (uint8_t)response,
        .attempts = (uint8_t)(row->attempt + 1u),
        .store = request->store,
        .lock = request->lock,
        .fake = kind == LANT_SHM_FAILED && !request->store && response == LANT_OKAY,
    };
}

bool lant_shm_next_done(struct lant_shm *shm, uint64_t now, struct lant_shm_done *done)
{
    if (shm->done_count == 0) {
        return false;
    }
    INVARIANTS(lant_shm_check(shm));
    *done = shm->done[shm->done_first];
    shm->done_first = (uint16_t)((shm->done_first + 1u) % LANT_SHM_DONE_MAX);
    shm->done_count--;
    lant_shm_pending_issue(shm, now);
    INVARIANTS(lant_shm_check(shm));
    return true;
}

/* -- Packets ------------------------------------------------------------------------------------*/

enum lant_shm_queue_name lant_shm_next_queue(const struct lant_shm *shm)
{
    for (uint32_t i = 0; i < LANT_SHM_QUEUES; i++) {
        if (shm->queues[i].count > 0) {
            return (enum lant_shm_queue_name)i;
        }
    }
    return LANT_SHM_QUEUES;
}

/* All fields come from the row: the attempts differ in their numbers only (LNI-26). */
static void build_packet(const struct lant_shm *shm, uint32_t i, struct lant_packet *packet)
{
    const struct lant_shm_row *row = &shm->rows[i];
    const struct lant_shm_request *request = &row->request;
    packet->header = (struct lant_header){
        .destination = lant_global_node(request->address),
        .type = request->store ? LANT_AW : LANT_AR,
        .payload = request->store,
        .priority = 3, /* The most urgent: our choice. */
        .lock = request->lock,
        .address = lant_global_address(request->address),
        .strobe = request->strobe,
        .size = request->size,
        .protection = request->protection,
    };
    packet->footer = (struct lant_footer){
        .source = shm->config.node,
        .class = LANT_CLASS_SHM,
        .row = (uint16_t)i,
        .response = LANT_OKAY,
        .generation = row->generation,
        .bus_id = request->bus_id,
        .operation = (uint16_t)(row->sequence >> 17),
        .offset = row->sequence & 0x1ffff,
        .attempt = row->attempt,
    };
    packet->payload[0] = request->store ? request->data : 0;
    if (request->atomic != LANT_NO_ATOMIC) {
        packet->header.type = LANT_ATOMIC;
        packet->header.packets = request->atomic;
        packet->header.payload = request->atomic == LANT_COMPARE_SWAP ? 2 : 1;
        packet->payload[0] = request->data;
        packet->payload[1] = request->compare;
    }
}

bool lant_shm_next_packet(struct lant_shm *shm, struct lant_packet *packet)
{
    const enum lant_shm_queue_name queue = lant_shm_next_queue(shm);
    if (queue == LANT_SHM_QUEUES) {
        return false;
    }
    INVARIANTS(lant_shm_check(shm));
    const uint32_t row = lant_shm_queue_pop(&shm->queues[queue]);
    shm->rows[row].state = LANT_SHM_ROW_SENDING;
    shm->counters.packets++;
    shm->counters.resent += queue == LANT_SHM_RESENDS;
    build_packet(shm, row, packet);
    INVARIANTS(lant_shm_check(shm));
    return true;
}

void lant_shm_grant_early(struct lant_shm *shm)
{
    while (shm->early_used < shm->config.early_timers && shm->early_queue.count > 0) {
        struct lant_shm_row *row = &shm->rows[lant_shm_queue_pop(&shm->early_queue)];
        row->early = LANT_SHM_EARLY_GRANTED;
        shm->early_used++;
        shm->done_owed--;
        shm->counters.early++;
        lant_shm_put_done(shm, row, LANT_SHM_EARLY, LANT_OKAY, 0);
    }
}

/* Targets remember a request for as long as its attempts can last. */
static uint64_t timeout_of(const struct lant_shm *shm, const struct lant_shm_request *request)
{
    const struct lant_shm_config *config = &shm->config;
    const uint64_t most =
        config->timeout_most > config->timeout ? config->timeout_most : config->timeout;
    const uint64_t timeout = request->timeout != 0 ? request->timeout : config->timeout;
    return timeout < most ? timeout : most;
}

void lant_shm_sent(struct lant_shm *shm, const struct lant_footer *footer, uint64_t now)
{
    CHECK(footer->row < shm->config.rows && footer->source == shm->config.node);
    struct lant_shm_row *row = &shm->rows[footer->row];
    INVARIANTS(lant_shm_check(shm));
    if (row->state != LANT_SHM_ROW_SENDING || row->generation != footer->generation ||
        row->sequence != lant_sequence_of(footer) || row->attempt != footer->attempt) {
        return;
    }
    const uint64_t timeout = timeout_of(shm, &row->request);
    row->state = LANT_SHM_ROW_SENT;
    row->deadline = timeout > LANT_NEVER - now ? LANT_NEVER : now + timeout;
    if (row->early == LANT_SHM_EARLY_NOT_YET) {
        row->early = LANT_SHM_EARLY_WAITS;
        lant_shm_queue_append(&shm->early_queue, footer->row);
        lant_shm_grant_early(shm);
        shm->counters.early_late += row->early == LANT_SHM_EARLY_WAITS;
    }
    INVARIANTS(lant_shm_check(shm));
}
