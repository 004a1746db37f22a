/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The invariants, as far as they can be seen between two steps; walks through everything.
 */
#include "base/check.h"
#include "hardware/csrna/qpc_manager.h"

/* Element `i` in order of arrival: the online FIFO, then the offline one. */
static const struct pending *element_at(const struct pending_fifo *fifo, uint32_t i)
{
    const struct pending_ring *online = pending_online(fifo);
    const struct pending_ring *offline = pending_offline(fifo);
    const uint32_t count = pending_ring_count(online);
    return i < count ? &online->elements[(uint8_t)(online->head + i)]
                     : &offline->elements[(uint8_t)(offline->head + i - count)];
}

/* Every index that is out stands for one request, in a FIFO or waiting. */
static void check_outstanding(const struct qpc_manager *manager)
{
    uint64_t seen[QPC_CHANNELS] = {0};
    for (uint32_t c = 0; c < QPC_CHANNELS; c++) {
        const struct qpc_request_ring *ring = &manager->requests[c];
        CHECK((manager->channels_waiting >> c & 1) == (ring->head != ring->tail));
        for (uint8_t at = ring->head; at != ring->tail; at++) {
            const struct qpc_request *request = &ring->requests[at];
            CHECK((seen[request->channel] >> request->index & 1) == 0);
            seen[request->channel] |= UINT64_C(1) << request->index;
        }
    }
    const uint32_t count = pending_fifo_count(&manager->pending);
    for (uint32_t i = 0; i < count; i++) {
        const struct pending *element = element_at(&manager->pending, i);
        CHECK((seen[element->channel] >> element->index & 1) == 0);
        seen[element->channel] |= UINT64_C(1) << element->index;
    }
    if (manager->blocked) {
        CHECK((seen[manager->waiting.channel] >> manager->waiting.index & 1) == 0);
        seen[manager->waiting.channel] |= UINT64_C(1) << manager->waiting.index;
    }
    for (uint32_t c = 0; c < QPC_CHANNELS; c++) {
        CHECK(seen[c] == manager->outstanding[c]);
    }
}

/* The record at `address`, held against the elements of its queue pair. */
static void check_record(const struct qpc_manager *manager, uint32_t address)
{
    const struct pending_record *record = &manager->table.records[address];
    const uint32_t count = pending_fifo_count(&manager->pending);
    const uint32_t online = pending_ring_count(pending_online(&manager->pending));
    uint32_t elements = 0, posted = 0;
    bool at_its_address = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct pending *element = element_at(&manager->pending, i);
        if (element->qpn != record->qpn) {
            continue;
        }
        elements++;
        posted += element->posted;
        at_its_address |=
            pending_address(manager->oocap, element->channel, element->index) == address;
        CHECK(!record->returned || manager->stale || i >= online);
    }
    CHECK(elements == record->count && at_its_address);
    CHECK(posted == !record->returned); /* One fetch at most is on its way. */
    CHECK(record->returned || !qpc_cache_holds(&manager->cache, record->qpn));
}

static void check_records(struct qpc_manager *manager)
{
    uint32_t records = 0, elements = 0, ready = 0;
    for (uint32_t address = 0; address < QPC_CHANNELS * manager->oocap; address++) {
        const struct pending_record *record = &manager->table.records[address];
        if (record->count == 0) {
            continue;
        }
        CHECK(pending_table_find(&manager->table, record->qpn) ==
              record); /* No other record is found. */
        check_record(manager, address);
        records++;
        elements += record->count;
        ready += record->returned;
    }
    CHECK(records == manager->table.count);
    CHECK(elements == pending_fifo_count(&manager->pending));
    CHECK(ready == manager->ready);
}

/* Type 1 elements stand in the order of their fetches, and so of what has returned of them. */
static void check_returned(const struct qpc_manager *manager)
{
    const uint32_t places = QPC_CHANNELS * manager->oocap;
    const uint32_t count = pending_fifo_count(&manager->pending);
    uint32_t returned = 0;
    for (uint32_t i = 0; i < count && returned < manager->response_count; i++) {
        const struct pending *element = element_at(&manager->pending, i);
        if (element->posted) {
            const uint32_t at = (manager->response_head + returned) % places;
            CHECK(manager->responses[at].qpn == element->qpn);
            returned++;
        }
    }
    CHECK(returned == manager->response_count);
}

static uint32_t bits_of(uint64_t bits)
{
    uint32_t count = 0;
    for (; bits != 0; bits &= bits - 1) {
        count++;
    }
    return count;
}

void qpc_manager_check_counts(const struct qpc_manager *manager)
{
    const uint32_t pending = pending_fifo_count(&manager->pending);
    uint32_t indices = 0, requests = pending + manager->blocked;
    for (uint32_t c = 0; c < QPC_CHANNELS; c++) {
        const struct qpc_request_ring *ring = &manager->requests[c];
        CHECK((manager->channels_waiting >> c & 1) == (ring->head != ring->tail));
        requests += (uint8_t)(ring->tail - ring->head);
        indices += bits_of(manager->outstanding[c]);
    }
    CHECK(indices == requests);
    CHECK(manager->table.count <= pending && manager->ready <= manager->table.count);
    CHECK(manager->policy != QPC_FCFS || pending == 0);
}

void qpc_manager_check(struct qpc_manager *manager)
{
    qpc_manager_check_counts(manager);
    check_outstanding(manager);
    if (manager->policy == QPC_FCFS) {
        CHECK(pending_fifo_count(&manager->pending) == 0 && manager->table.count == 0);
        CHECK(manager->response_count <= manager->blocked);
    } else {
        CHECK(!manager->blocked);
        check_records(manager);
        check_returned(manager);
    }
}
