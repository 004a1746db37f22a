/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/work_queues.h"

static uint64_t first_bits(uint32_t count)
{
    return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static bool segment_possible(uint32_t bytes)
{
    /* Each segment but the last has whole packets, and its bases stay aligned. */
    return bytes % LANT_PAYLOAD_BYTES_MAX == 0 && bytes <= LANT_TRANSFER_MAX;
}

void lant_work_init(struct lant_work_queues *work, const struct lant_work_config *config)
{
    CHECK(config->capacity >= 1 && config->capacity <= LANT_WORKS_MAX);
    CHECK(config->parents >= 1 && config->parents <= LANT_PARENTS_MAX);
    CHECK(segment_possible(config->segment_bytes));
    *work =
        (struct lant_work_queues){.config = *config, .parents_free = first_bits(config->parents)};
    for (uint32_t q = 0; q < LANT_QUEUE_COUNT; q++) {
        for (uint32_t i = 0; i < LANT_WORKS_MAX; i++) {
            work->queues[q].entries[i].next = (uint16_t)(i + 1);
        }
    }
    INVARIANTS(lant_work_check(work));
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static void check_queue(const struct lant_work_queues *work, const struct lant_work_queue *queue)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < LANT_PRIORITIES; p++) {
        const struct lant_work_list *list = &queue->lists[p];
        uint32_t at = list->head;
        for (uint32_t i = 0; i < list->count; i++) {
            CHECK(at < LANT_WORKS_MAX);
            CHECK(i + 1 < list->count || at == list->tail);
            CHECK(!work->config.priorities || queue->entries[at].work.descriptor.priority == p);
            at = queue->entries[at].next;
        }
        CHECK(work->config.priorities || p == 0 || list->count == 0);
        count += list->count;
    }
    CHECK(count == queue->count && count <= queue->count_max);
    CHECK(queue->count_max <= work->config.capacity);
}

static bool parent_busy(const struct lant_work_queues *work, uint32_t parent)
{
    return parent < work->config.parents && (work->parents_free >> parent & 1) == 0;
}

void lant_work_check(const struct lant_work_queues *work)
{
    uint32_t to_issue = 0;
    for (uint32_t q = 0; q < LANT_QUEUE_COUNT; q++) {
        check_queue(work, &work->queues[q]);
    }
    CHECK((work->parents_free & ~first_bits(work->config.parents)) == 0);
    for (uint32_t i = 0; i < work->config.parents; i++) {
        const struct lant_parent *parent = &work->parents[i];
        if (!parent_busy(work, i)) {
            continue;
        }
        CHECK(parent->segment_bytes != 0 && parent->remaining <= parent->work.descriptor.bytes);
        CHECK((parent->status & LANT_STATUS_ERRORS) == 0 || parent->remaining == 0);
        to_issue += parent->remaining != 0;
    }
    CHECK(to_issue == work->large_count);
    for (uint32_t i = 0; i < work->large_count; i++) {
        const uint32_t parent = work->large_ring[(work->large_head + i) % LANT_PARENTS_MAX];
        CHECK(parent_busy(work, parent) && work->parents[parent].remaining != 0);
        /* Only of the head are segments under way. */
        CHECK(i == 0 || work->parents[parent].outstanding == 0);
    }
    CHECK(work->turn < LANT_QUEUE_COUNT);
}

/* -- Submission ---------------------------------------------------------------------------------*/

bool lant_work_set_segment(struct lant_work_queues *work, uint32_t bytes)
{
    if (!segment_possible(bytes)) {
        return false;
    }
    work->config.segment_bytes = bytes;
    return true;
}

static bool is_large(const struct lant_work_queues *work, const struct lant_work *wanted)
{
    const uint32_t segment = work->config.segment_bytes;
    return segment != 0 && wanted->descriptor.bytes > segment && !wanted->descriptor.keyhole;
}

static enum lant_submit judge(const struct lant_work_queues *work, enum lant_queue queue,
                              const struct lant_work *wanted)
{
    const enum lant_submit verdict = lant_descriptor_judge(&wanted->descriptor);
    if (verdict != LANT_SUBMIT_COMMITTED) {
        return verdict;
    }
    const bool full = is_large(work, wanted) ? work->parents_free == 0
                                             : work->queues[queue].count == work->config.capacity;
    return full ? LANT_SUBMIT_FULL : LANT_SUBMIT_COMMITTED;
}

static void append_large(struct lant_work_queues *work, enum lant_queue queue,
                         const struct lant_work *wanted)
{
    const uint32_t parent = (uint32_t)__builtin_ctzll(work->parents_free);
    work->parents_free &= work->parents_free - 1;
    work->parents[parent] = (struct lant_parent){.work = *wanted,
                                                 .source = wanted->descriptor.source,
                                                 .destination = wanted->descriptor.destination,
                                                 .remaining = wanted->descriptor.bytes,
                                                 .segment_bytes = work->config.segment_bytes,
                                                 .queue = (uint8_t)queue};
    work->large_ring[(work->large_head + work->large_count) % LANT_PARENTS_MAX] = (uint16_t)parent;
    work->large_count++;
}

static void append(struct lant_work_queues *work, struct lant_work_queue *queue,
                   const struct lant_work *wanted)
{
    const uint32_t priority = work->config.priorities ? wanted->descriptor.priority : 0;
    struct lant_work_list *list = &queue->lists[priority];
    const uint16_t at = queue->free;
    queue->free = queue->entries[at].next;
    queue->entries[at].work = *wanted;
    if (list->count == 0) {
        list->head = at;
    } else {
        queue->entries[list->tail].next = at;
    }
    list->tail = at;
    list->count++;
    queue->count++;
    queue->count_max = queue->count > queue->count_max ? queue->count : queue->count_max;
}

enum lant_submit lant_work_submit(struct lant_work_queues *work, enum lant_queue queue,
                                  const struct lant_work *wanted)
{
    INVARIANTS(lant_work_check(work));
    CHECK(queue < LANT_QUEUE_COUNT);
    const enum lant_submit verdict = judge(work, queue, wanted);
    work->submitted[verdict]++;
    if (verdict == LANT_SUBMIT_COMMITTED) {
        if (is_large(work, wanted)) {
            append_large(work, queue, wanted);
        } else {
            append(work, &work->queues[queue], wanted);
        }
    }
    INVARIANTS(lant_work_check(work));
    return verdict;
}

/* -- Arbitration --------------------------------------------------------------------------------*/

bool lant_work_waits(const struct lant_work_queues *work)
{
    return work->large_count != 0 || work->queues[LANT_QUEUE_CPU].count != 0 ||
           work->queues[LANT_QUEUE_FPGA].count != 0;
}

struct choice {
    bool found, large;
    uint8_t queue, priority;
};

static struct choice choose(const struct lant_work_queues *work)
{
    const bool must = work->config.large_after != 0 && work->in_a_row >= work->config.large_after;
    if (work->large_count != 0 && must) {
        return (struct choice){.found = true, .large = true};
    }
    for (uint32_t priority = LANT_PRIORITIES; priority-- > 0;) {
        for (uint32_t i = 0; i < LANT_QUEUE_COUNT; i++) {
            const uint32_t queue = (work->turn + i) % LANT_QUEUE_COUNT;
            if (work->queues[queue].lists[priority].count != 0) {
                return (struct choice){
                    .found = true, .queue = (uint8_t)queue, .priority = (uint8_t)priority};
            }
        }
    }
    return (struct choice){.found = work->large_count != 0, .large = true};
}

static void take_whole(struct lant_work_queues *work, const struct choice *choice,
                       struct lant_work_operation *operation)
{
    struct lant_work_queue *queue = &work->queues[choice->queue];
    struct lant_work_list *list = &queue->lists[choice->priority];
    const uint16_t at = list->head;
    const struct lant_work *wanted = &queue->entries[at].work;
    *operation = (struct lant_work_operation){.source = wanted->descriptor.source,
                                              .destination = wanted->descriptor.destination,
                                              .bytes = wanted->descriptor.bytes,
                                              .tag = wanted->tag,
                                              .timeout = wanted->timeout,
                                              .parent = LANT_NO_PARENT,
                                              .queue = choice->queue,
                                              .priority = wanted->descriptor.priority,
                                              .no_notif = wanted->no_notif,
                                              .may_register = !wanted->descriptor.no_register,
                                              .keyhole = wanted->descriptor.keyhole,
                                              .last = true};
    list->head = queue->entries[at].next;
    list->count--;
    queue->count--;
    queue->entries[at].next = queue->free;
    queue->free = at;
    work->turn = (uint8_t)((choice->queue + 1) % LANT_QUEUE_COUNT);
    work->in_a_row += work->large_count != 0;
}

static void leave_large(struct lant_work_queues *work)
{
    work->large_head = (uint16_t)((work->large_head + 1) % LANT_PARENTS_MAX);
    work->large_count--;
}

static void take_segment(struct lant_work_queues *work, struct lant_work_operation *operation)
{
    const uint16_t at = work->large_ring[work->large_head];
    struct lant_parent *parent = &work->parents[at];
    const struct lant_descriptor *descriptor = &parent->work.descriptor;
    /* `<=`: the last segment of a multiple of N has N bytes. */
    const bool last = parent->remaining <= parent->segment_bytes;
    const uint32_t bytes = last ? parent->remaining : parent->segment_bytes;
    *operation = (struct lant_work_operation){.source = parent->source,
                                              .destination = parent->destination,
                                              .bytes = bytes,
                                              .tag = parent->work.tag,
                                              .timeout = parent->work.timeout,
                                              .parent = at,
                                              .queue = parent->queue,
                                              .priority = descriptor->priority,
                                              .no_notif = !last || parent->work.no_notif,
                                              .may_register = !descriptor->no_register,
                                              .last = last};
    parent->source += bytes;
    parent->destination += bytes;
    parent->remaining -= bytes;
    parent->outstanding++;
    work->segments++;
    if (last) {
        leave_large(work);
    }
    work->in_a_row = 0;
}

bool lant_work_next(struct lant_work_queues *work, struct lant_work_operation *operation)
{
    INVARIANTS(lant_work_check(work));
    const struct choice choice = choose(work);
    if (!choice.found) {
        return false;
    }
    if (choice.large) {
        take_segment(work, operation);
    } else {
        take_whole(work, &choice, operation);
    }
    INVARIANTS(lant_work_check(work));
    return true;
}

/* -- Segments end -------------------------------------------------------------------------------*/

bool lant_work_on_segment(struct lant_work_queues *work, const struct lant_work_operation *segment,
                          uint32_t identifier, uint32_t status, uint8_t attempts)
{
    INVARIANTS(lant_work_check(work));
    CHECK(parent_busy(work, segment->parent));
    struct lant_parent *parent = &work->parents[segment->parent];
    CHECK(parent->outstanding != 0);
    parent->outstanding--;
    parent->operation = identifier;
    parent->attempts = attempts > parent->attempts ? attempts : parent->attempts;
    /* All is pushed when the last segment is. */
    parent->status |= status & (segment->last ? ~UINT32_C(0) : LANT_STATUS_ERRORS);
    if ((status & LANT_STATUS_ERRORS) != 0 && parent->remaining != 0) {
        CHECK(work->large_ring[work->large_head] == segment->parent);
        parent->remaining = 0;
        leave_large(work);
    }
    INVARIANTS(lant_work_check(work));
    return parent->outstanding == 0 && parent->remaining == 0;
}

void lant_work_release(struct lant_work_queues *work, uint32_t parent)
{
    CHECK(parent_busy(work, parent));
    CHECK(work->parents[parent].outstanding == 0 && work->parents[parent].remaining == 0);
    work->parents_free |= UINT64_C(1) << parent;
    INVARIANTS(lant_work_check(work));
}
