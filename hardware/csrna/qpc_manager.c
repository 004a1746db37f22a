/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/qpc_manager.h"

#include "base/check.h"

static size_t cache_bytes(const struct qpc_manager_parameters *parameters)
{
    return qpc_cache_bytes(parameters->cache_entries);
}

size_t qpc_manager_bytes(const struct qpc_manager_parameters *parameters)
{
    return cache_bytes(parameters) + QPC_CHANNELS * parameters->oocap * sizeof(struct qpc_response);
}

void qpc_manager_init(struct qpc_manager *manager, const struct qpc_manager_parameters *parameters,
                      void *memory)
{
    CHECK(parameters->oocap >= 1 && parameters->oocap <= QPC_OOCAP_MAX);
    *manager = (struct qpc_manager){
        .policy = parameters->policy, .oocap = parameters->oocap, .last_channel = QPC_CHANNELS - 1};
    qpc_cache_init(&manager->cache, parameters->cache_entries, parameters->victim, memory);
    manager->responses =
        (struct qpc_response *)(void *)((uint8_t *)memory + cache_bytes(parameters));
    pending_table_init(&manager->table, parameters->oocap);
    pending_fifo_init(&manager->pending, parameters->oocap);
}

/* -- Requests and responses come in -------------------------------------------------------------*/

void qpc_manager_request(struct qpc_manager *manager, const struct qpc_request *request)
{
    CHECK(request->qpn < QPC_QPN_LIMIT && request->channel < QPC_CHANNELS);
    CHECK(request->operation != QPC_PREFETCH || request->channel == QPC_DESCRIPTOR);
    CHECK(request->index < manager->oocap);
    const uint64_t bit = UINT64_C(1) << request->index;
    CHECK((manager->outstanding[request->channel] & bit) == 0);
    manager->outstanding[request->channel] |= bit;
    const uint32_t channel = manager->policy == QPC_FCFS ? 0 : request->channel;
    struct qpc_request_ring *ring = &manager->requests[channel];
    ring->requests[ring->tail++] = *request;
    manager->channels_waiting |= (uint8_t)(1u << channel);
    INVARIANTS(qpc_manager_check_counts(manager));
}

/* The channel arbiter: takes the oldest request of the next channel in turn; there must be one. */
static struct qpc_request take_request(struct qpc_manager *manager)
{
    uint32_t channel = manager->last_channel;
    do {
        channel = channel + 1 == QPC_CHANNELS ? 0 : channel + 1;
    } while ((manager->channels_waiting >> channel & 1) == 0);
    manager->last_channel = (uint8_t)channel;
    struct qpc_request_ring *ring = &manager->requests[channel];
    const struct qpc_request request = ring->requests[ring->head++];
    if (ring->head == ring->tail) {
        manager->channels_waiting &= (uint8_t) ~(1u << channel);
    }
    return request;
}

void qpc_manager_on_fetched(struct qpc_manager *manager, uint32_t qpn, const struct qpc *context)
{
    const uint32_t places = QPC_CHANNELS * manager->oocap;
    CHECK(manager->response_count < places);
    uint32_t tail = manager->response_head + manager->response_count;
    tail = tail < places ? tail : tail - places;
    manager->responses[tail].qpn = qpn;
    manager->responses[tail].context = *context;
    manager->response_count++;
}

/* -- The work of both units ---------------------------------------------------------------------*/

static void clear(struct qpc_action *action)
{
    action->answers = false;
    action->fetches = false;
    action->writes_back = false;
}

static void answer(struct qpc_manager *manager, const struct qpc_request *request,
                   struct qpc *context, struct qpc_action *action)
{
    const uint64_t bit = UINT64_C(1) << request->index;
    CHECK(manager->outstanding[request->channel] & bit);
    manager->outstanding[request->channel] &= ~bit;
    if (request->operation == QPC_UPDATE) {
        qpc_cache_changed(&manager->cache, context);
    }
    action->answers = true;
    action->answer =
        (struct qpc_answer){.qpn = request->qpn,
                            .channel = request->channel,
                            .index = request->index,
                            .operation = request->operation,
                            .context = request->operation == QPC_PREFETCH ? NULL : context};
}

static void fetch(struct qpc_manager *manager, uint32_t qpn, struct qpc_action *action)
{
    manager->counters.fetches++;
    action->fetches = true;
    action->fetch_qpn = qpn;
}

static void count_hit(struct qpc_counters *counters, uint8_t operation)
{
    if (operation == QPC_PREFETCH) {
        counters->prefetch_hits++;
    } else {
        counters->hits++;
    }
}

/* Puts the oldest response into the cache. */
static struct qpc *install_response(struct qpc_manager *manager, struct qpc_action *action)
{
    const struct qpc_response *response = &manager->responses[manager->response_head];
    struct qpc *context =
        qpc_cache_install(&manager->cache, response->qpn, &response->context, &action->victim);
    manager->response_head++;
    if (manager->response_head == QPC_CHANNELS * manager->oocap) {
        manager->response_head = 0;
    }
    manager->response_count--;
    manager->counters.evictions += action->victim.evicted;
    manager->counters.write_backs += action->victim.dirty;
    action->writes_back = action->victim.dirty;
    return context;
}

/* -- Request handling unit ----------------------------------------------------------------------*/

static void push(struct qpc_manager *manager, const struct qpc_request *request, bool posted)
{
    manager->counters.type_1 += posted;
    manager->counters.type_2 += !posted;
    pending_fifo_push(&manager->pending, (struct pending){.qpn = request->qpn,
                                                          .channel = request->channel,
                                                          .index = request->index,
                                                          .operation = request->operation,
                                                          .posted = posted});
}

/* Earlier requests of the queue pair wait: so does this one. */
static void follow(struct qpc_manager *manager, const struct qpc_request *request,
                   struct pending_record *record, struct qpc_action *action)
{
    if (request->operation == QPC_PREFETCH) {
        manager->counters.prefetch_pendings++; /* The context comes without this prefetch. */
        answer(manager, request, NULL, action);
        return;
    }
    pending_table_add(&manager->table, record,
                      pending_address(manager->oocap, request->channel, request->index));
    push(manager, request, false);
}

static void miss(struct qpc_manager *manager, const struct qpc_request *request,
                 struct qpc_action *action)
{
    manager->counters.misses += request->operation != QPC_PREFETCH;
    fetch(manager, request->qpn, action);
    if (manager->policy == QPC_FCFS) {
        manager->blocked = true;
        manager->waiting = *request;
        return;
    }
    pending_table_write(&manager->table,
                        pending_address(manager->oocap, request->channel, request->index),
                        request->qpn);
    push(manager, request, true);
}

/* The source's algorithm 1. Nothing is ever pending with QPC_FCFS. */
bool qpc_manager_step_requests(struct qpc_manager *manager, struct qpc_action *action)
{
    clear(action);
    if (!qpc_manager_requests_due(manager)) {
        return false;
    }
    const struct qpc_request request = take_request(manager);
    manager->counters.prefetches += request.operation == QPC_PREFETCH;
    struct pending_record *record = pending_table_find(&manager->table, request.qpn);
    if (record != NULL) {
        follow(manager, &request, record, action);
        INVARIANTS(qpc_manager_check_counts(manager));
        return true;
    }
    struct qpc *context = qpc_cache_use(&manager->cache, request.qpn);
    if (context != NULL) {
        count_hit(&manager->counters, request.operation);
        answer(manager, &request, context, action);
    } else {
        miss(manager, &request, action);
    }
    INVARIANTS(qpc_manager_check_counts(manager));
    return true;
}

/* -- Pending handling unit ----------------------------------------------------------------------*/

static struct qpc_request request_of(const struct pending *element)
{
    return (struct qpc_request){.qpn = element->qpn,
                                .channel = element->channel,
                                .index = element->index,
                                .operation = element->operation};
}

static uint32_t returned_qpn(const struct qpc_manager *manager)
{
    return manager->responses[manager->response_head].qpn;
}

/* Is the oldest response the one for `element`? */
static void serve_returned(struct qpc_manager *manager, const struct pending *element,
                           struct qpc_action *action)
{
    CHECK(element->qpn == returned_qpn(manager));
    const struct qpc_request request = request_of(element);
    struct qpc *context = install_response(manager, action);
    struct pending_record *record = pending_table_find(&manager->table, element->qpn);
    CHECK(record != NULL && !record->returned);
    if (pending_table_answered(&manager->table, record)) {
        record->returned = true;
        manager->ready++;
        if (pending_ring_count(pending_online(&manager->pending)) != 0) {
            manager->stale = true;
        }
    }
    answer(manager, &request, context, action);
}

/* The context of `element` has returned, and no element of its queue pair waits before it. */
static void serve_ready(struct qpc_manager *manager, struct pending *element,
                        struct pending_record *record, struct qpc_action *action)
{
    struct qpc *context = qpc_cache_use(&manager->cache, element->qpn);
    if (context == NULL) {
        record->returned = false;
        manager->ready--;
        manager->counters.conversions++;
        manager->counters.type_1++;
        fetch(manager, element->qpn, action);
        element->posted = true;
        pending_fifo_push(&manager->pending, *element);
        return;
    }
    if (!pending_table_answered(&manager->table, record)) {
        manager->ready--;
    }
    const struct qpc_request request = request_of(element);
    answer(manager, &request, context, action);
}

static void check_one(struct qpc_manager *manager, struct qpc_action *action)
{
    struct pending_fifo *pending = &manager->pending;
    if (pending_ring_count(pending_offline(pending)) == 0) {
        pending_fifo_swap(pending);
        manager->counters.swaps++;
    }
    if (pending_ring_count(pending_online(pending)) == 0) {
        manager->stale = false;
    }
    manager->counters.checks++;
    struct pending element = pending_fifo_pop_check(pending);
    if (element.posted) {
        if (manager->response_count != 0 && element.qpn == returned_qpn(manager)) {
            serve_returned(manager, &element, action);
        } else {
            pending_fifo_push_checked(pending, element);
        }
        return;
    }
    struct pending_record *record = pending_table_find(&manager->table, element.qpn);
    CHECK(record != NULL);
    if (record->returned && !manager->stale) {
        serve_ready(manager, &element, record, action);
    } else {
        pending_fifo_push_checked(pending, element);
    }
}

/* The source's algorithm 2, with the differences that qpc_manager.h gives the reasons for. */
bool qpc_manager_step_pending(struct qpc_manager *manager, struct qpc_action *action)
{
    clear(action);
    if (!qpc_manager_pending_due(manager)) {
        return false;
    }
    if (manager->policy == QPC_FCFS) {
        CHECK(manager->blocked && manager->waiting.qpn == returned_qpn(manager));
        manager->blocked = false;
        answer(manager, &manager->waiting, install_response(manager, action), action);
    } else if (manager->response_count != 0 && pending_fifo_shows_posted(&manager->pending)) {
        const struct pending element = pending_fifo_pop_returned(&manager->pending);
        serve_returned(manager, &element, action);
    } else {
        check_one(manager, action);
    }
    INVARIANTS(qpc_manager_check_counts(manager));
    return true;
}
